//! Other programs, run to their end. A child gets no input, none of this program's own descriptors but one
//! that says by its lock that it runs, and a process group of its own, so that a signal to this program does
//! not stop it half-way. Its output goes to standard error: standard output carries the answer alone. Nothing
//! of it is kept.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// What is run, and with what around it.
pub struct Job<'a> {
    /// The program and its arguments; at least one.
    pub command: &'a [OsString],
    /// The working folder.
    pub folder: &'a Path,
    /// Variables that are set for it.
    pub set: &'a [(&'a str, String)],
    /// Variables that it must not see.
    pub unset: &'a [&'a str],
    /// Whether its standard output is dropped.
    pub quiet: bool,
    /// A descriptor that it keeps open, with everything that it starts.
    pub keeps: Option<BorrowedFd<'a>>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With exit code 0.
    Well,
    /// With another exit code, by a signal, or never begun; in words.
    Badly(String),
}

/// Runs a program to its end.
pub fn run(job: &Job<'_>) -> Ending {
    let [program, arguments @ ..] = job.command else { return Ending::Badly("no program".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(job.folder).process_group(0).stdin(Stdio::null());
    command.stdout(if job.quiet { Stdio::null() } else { Stdio::from(std::io::stderr()) });
    for name in job.unset {
        command.env_remove(name);
    }
    command.envs(job.set.iter().map(|(name, value)| (name, value)));
    if let Some(fd) = job.keeps
        && let Err(errno) = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())
    {
        return Ending::Badly(format!("could not be run: {errno}"));
    }
    match command.status() {
        Ok(status) if status.success() => Ending::Well,
        Ok(status) => Ending::Badly(match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended in no known way".to_owned(),
        }),
        Err(error) => Ending::Badly(format!("could not be run: {error}")),
    }
}

/// Whether a program can be found: by its path, else in the folders of `PATH`. Where `PATH` is not set the
/// system looks in places of its own, and the answer is yes.
pub fn is_there(program: &std::ffi::OsStr, folder: &Path, path: Option<&str>) -> bool {
    let runs = |file: &Path| {
        let access = rustix::fs::access(file, rustix::fs::Access::EXEC_OK);
        access.is_ok() && file.is_file()
    };
    let program = Path::new(program);
    if program.as_os_str().is_empty() {
        return false;
    }
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return runs(&folder.join(program));
    }
    let Some(path) = path else { return true };
    path.split(':').any(|place| runs(&folder.join(place).join(program)))
}
