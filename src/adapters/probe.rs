//! Asks a program for its version: whether it is there, may be run and answers in time. Owns the child and
//! its whole process group until both are gone; never gives it a terminal, the project's folder or the user's
//! variables.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// How long a program may take to tell its version.
pub const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of output that are read; who says more is cut off.
const OUTPUT_LIMIT: u64 = 64 * 1024;
/// How often a child is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// The file of a program: the path that is given, or the first one of that name in the absolute folders of
/// `PATH`. A folder that is not absolute is left out: the project must not choose what is run.
///
/// # Errors
/// Why there is none, in words.
pub fn find(program: &str, path: &str, folder: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let file = folder.join(program);
        return if runnable(&file)? { Ok(file) } else { Err(format!("{program} may not be run")) };
    }
    let mut idle = false;
    for place in std::env::split_paths(path).filter(|place| place.is_absolute()) {
        match runnable(&place.join(program)) {
            Ok(true) => return Ok(place.join(program)),
            Ok(false) => idle = true,
            Err(_) => {}
        }
    }
    Err(match idle {
        true => format!("{program} is on PATH and may not be run"),
        false => format!("{program} is not on PATH"),
    })
}

/// Whether a file is there and has a bit that lets it be run.
fn runnable(file: &Path) -> Result<bool, String> {
    let meta = std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The first line that a program prints for `--version`. It gets no input, `/` as folder and two variables.
///
/// # Errors
/// Why it gave none, in words.
pub fn version(program: &Path, path: &str, limit: Duration) -> Result<String, String> {
    let text = said(program, &["--version"], path, limit)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map(str::to_owned).ok_or_else(|| "--version printed nothing".to_owned())
}

/// What a program prints on standard output for a few words. It gets no input, `/` as folder and two
/// variables.
///
/// # Errors
/// Why it gave nothing, in words.
pub fn said(program: &Path, words: &[&str], path: &str, limit: Duration) -> Result<String, String> {
    let named = words.join(" ");
    let mut command = Command::new(program);
    command.args(words).current_dir("/").env_clear().env("PATH", path).env("LANG", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
    let until = Instant::now() + limit;
    let (sender, output) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // A child of the child may hold the pipe open for ever; then this thread ends with the process.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(OUTPUT_LIMIT).read_to_end(&mut bytes);
            sender.send(read.map(|_| bytes))
        });
    }
    let in_time = has_ended(&child, until);
    let left = until.saturating_duration_since(Instant::now());
    let said = if in_time { output.recv_timeout(left).ok().and_then(Result::ok) } else { None };
    let status = end(&mut child)?;
    let late = || format!("it gave no answer to {named} in {} s", limit.as_secs_f32());
    let said = said.ok_or_else(late)?;
    if !status.success() {
        return Err(format!("{named} ended with {status}"));
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Waits until a child has ended, and leaves it to be collected: its number is nobody else's until then.
fn has_ended(child: &Child, until: Instant) -> bool {
    let Some(pid) = pid_of(child) else { return false };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match rustix::process::waitid(WaitId::Pid(pid), look) {
            Ok(Some(_)) => return true,
            Ok(None) | Err(rustix::io::Errno::INTR) if Instant::now() < until => std::thread::sleep(PAUSE),
            _ => return false,
        }
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Ends what is left of a child's process group and collects the child.
fn end(child: &mut Child) -> Result<std::process::ExitStatus, String> {
    if let Some(pid) = pid_of(child) {
        // A group that is gone already is what is wanted.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
    child.wait().map_err(|error| format!("it could not be waited for: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with one script in it.
    fn script(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, file)
    }

    fn asked(text: &str, limit: u64) -> Result<String, String> {
        let (_folder, file) = script(text, 0o755);
        // Another test may fork while the script is still open for writing; then it is busy for a moment.
        loop {
            let said = version(&file, "/usr/bin:/bin", Duration::from_millis(limit));
            if !said.as_ref().is_err_and(|why| why.contains("busy")) {
                return said;
            }
        }
    }

    #[test]
    fn a_program_is_found_by_its_path_or_in_absolute_folders_only() {
        let (folder, file) = script("echo 1", 0o755);
        let here = folder.path().to_str().unwrap();
        assert_eq!(find("program", here, Path::new("/")), Ok(file.clone()));
        assert_eq!(find("./program", "", folder.path()), Ok(folder.path().join("./program")));
        for path in ["", ".", "relative:.", "/nowhere"] {
            assert!(find("program", path, folder.path()).unwrap_err().contains("not on PATH"), "{path}");
        }
        let (idle, _) = script("echo 1", 0o644);
        let idle = idle.path().to_str().unwrap();
        assert!(find("program", idle, Path::new("/")).unwrap_err().contains("may not be run"));
        assert_eq!(find("program", &format!("{idle}:{here}"), Path::new("/")), Ok(file));
        assert!(find("./", "", folder.path()).unwrap_err().contains("may not be run"));
    }

    #[test]
    fn the_first_line_is_the_version_and_the_user_stays_outside() {
        assert_eq!(asked("echo; echo \"tool 1.2 $1\"; echo more", 5000), Ok("tool 1.2 --version".to_owned()));
        let seen = "echo \"$PWD $HOME $CARGO_MANIFEST_DIR $(cat | wc -c)\"";
        assert_eq!(asked(seen, 5000).as_deref(), Ok("/   0"));
    }

    #[test]
    fn what_does_not_answer_is_said_in_words() {
        for (text, word) in [
            ("exit 3", "exit status: 3"),
            ("echo 1; exit 3", "exit status: 3"),
            ("exit 0", "printed nothing"),
            ("echo 1 >&2", "printed nothing"),
            ("kill -9 $$", "signal: 9"),
        ] {
            let why = asked(text, 5000).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
        let why = version(Path::new("/no/such"), "", VERSION_LIMIT).unwrap_err();
        assert!(why.contains("cannot be run"), "{why}");
    }

    #[test]
    fn what_hangs_is_ended_with_all_that_it_started() {
        for text in ["sleep 300", "sleep 300 & echo 1", "while :; do echo 1; done"] {
            let begun = Instant::now();
            let said = asked(text, 300);
            assert!(said.is_err(), "{text}: {said:?}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{text}");
        }
        let (folder, file) = script("sleep 300 &\necho $! > \"${0%/*}/child\"\necho 1; wait", 0o755);
        let late = version(&file, "/usr/bin:/bin", Duration::from_millis(1500));
        assert!(late.unwrap_err().contains("no answer"));
        let child: i32 =
            std::fs::read_to_string(folder.path().join("child")).unwrap().trim().parse().unwrap();
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        assert!(
            (0..200).any(|_| gone() || {
                std::thread::sleep(PAUSE);
                false
            }),
            "the child of the child"
        );
    }
}
