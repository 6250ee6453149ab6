//! The one lock of a store. Everything that writes holds it; nothing that only reads does. The only file
//! that names `fs2`. It never keeps the lock longer than its guard lives.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::files::{Folder, Want};
use crate::error::{Error, Kind, Result};

/// The name of the file.
pub(super) const LOCK: &str = "lock";
/// Times that a lock file that was replaced while we waited is opened again.
const TRIES: usize = 5;

/// The lock, held. Released explicitly by [`Held::release`], and at the latest when dropped.
#[derive(Debug)]
pub(super) struct Held {
    file: Option<File>,
}

impl Held {
    /// Gives the lock back.
    pub fn release(mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        fs2::FileExt::unlock(&file).map_err(|error| Error::io("unlock of the store", &error))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Closing the file, which follows, gives it back as well.
            let _ = fs2::FileExt::unlock(&file);
        }
    }
}

/// Takes the lock, waiting up to `timeout_ms`.
///
/// # Errors
/// Not had in time ([`Kind::Busy`], naming the holder); any other lock error is fatal.
pub(super) fn acquire(folder: &Folder, timeout_ms: u64) -> Result<Held> {
    for _ in 0..TRIES {
        let missing = || Error::new(Kind::Io, "the lock file could not be made");
        let opened = folder.open(LOCK, Want::Make)?.ok_or_else(missing)?;
        let held = match try_lock(&opened.file) {
            Ok(true) => Held { file: Some(opened.file) },
            Ok(false) => wait(opened.file, timeout_ms)?,
            Err(error) => return Err(lock_failed(&error)),
        };
        // Somebody may have put another file in its place: that one is the lock now.
        let now = folder.stat_of(LOCK)?.map(|stat| (stat.st_dev, stat.st_ino));
        if now == Some((opened.stat.st_dev, opened.stat.st_ino)) {
            return Ok(held);
        }
    }
    Err(Error::new(Kind::LockNotExclusive, "the lock file is replaced again and again"))
}

/// Takes the lock only if nobody holds it; `None` too where there is no lock file or it cannot be locked.
pub(super) fn try_acquire(folder: &Folder) -> Option<Held> {
    let opened = folder.open(LOCK, Want::Write).ok()??;
    if !try_lock(&opened.file).ok()? {
        return None;
    }
    let held = Held { file: Some(opened.file) };
    let now = folder.stat_of(LOCK).ok()?.map(|stat| (stat.st_dev, stat.st_ino));
    (now == Some((opened.stat.st_dev, opened.stat.st_ino))).then_some(held)
}

fn lock_failed(error: &io::Error) -> Error {
    Error::io("lock of the store", error)
}

/// Tries once; false where another holds it.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    loop {
        match fs2::FileExt::try_lock_exclusive(file) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Blocks in a thread of its own: the kernel then wakes waiters in turn, which polling never does.
fn wait(file: File, timeout_ms: u64) -> Result<Held> {
    let inode = file.metadata().map(|meta| meta.ino()).map_err(|error| lock_failed(&error))?;
    let (send, receive) = mpsc::channel();
    let thread = std::thread::Builder::new().name("lock".to_owned());
    let spawned = thread.spawn(move || {
        let locked = loop {
            match fs2::FileExt::lock_exclusive(&file) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other.map(|()| Held { file: Some(file) }),
            }
        };
        // When nobody waits any more the lock comes back inside the error and is released by its drop.
        drop(send.send(locked));
    });
    spawned.map_err(|error| lock_failed(&error))?;
    match receive.recv_timeout(Duration::from_millis(timeout_ms)) {
        Ok(locked) => locked.map_err(|error| lock_failed(&error)),
        Err(_) => Err(busy(inode, timeout_ms)),
    }
}

fn busy(inode: u64, timeout_ms: u64) -> Error {
    let error = Error::new(Kind::Busy, format!("the store's lock was not had within {timeout_ms} ms"));
    match holder(inode) {
        Some((pid, name)) => error
            .because(format!("process {pid} ({name}) holds it"))
            .details(serde_json::json!({"pid": pid, "command": name})),
        None => error.because("another process holds it"),
    }
}

/// Who holds the lock on an inode, as far as the kernel tells.
fn holder(inode: u64) -> Option<(u32, String)> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // "1: FLOCK ADVISORY WRITE 4711 fe:00:12345 0 EOF"; waiters have "->" after the number.
        let [_, "FLOCK", _, _, pid, place, ..] = words[..] else { return None };
        (place.rsplit(':').next()? == inode.to_string()).then(|| pid.parse::<u32>().ok())?
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let shown: String = name.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Some((pid, shown))
}

/// Whether the lock at `path` could be taken: the hidden command `lock-probe`, run as a child of a process
/// that holds the lock. `Ok(true)` means that the lock does not exclude anybody.
///
/// # Errors
/// The file cannot be opened, or locked at all.
pub fn probe(path: &Path) -> Result<bool> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| Error::io(format!("open of {}", path.display()), &error))?;
    let taken = try_lock(&file).map_err(|error| lock_failed(&error))?;
    if taken {
        drop(Held { file: Some(file) });
    }
    Ok(taken)
}

/// Runs `program lock-probe PATH` while the lock is held: the child must fail to take it.
///
/// # Errors
/// The child took the lock ([`Kind::LockNotExclusive`]) or could not be run.
pub(super) fn self_check(program: &Path, folder: &Folder, _held: &Held) -> Result<()> {
    let path = folder.member(LOCK);
    let mut command = std::process::Command::new(program);
    command.arg("lock-probe").arg(&path);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let status = command.stderr(std::process::Stdio::null()).status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(1)) => {
            Err(Error::new(Kind::LockNotExclusive, "another process took the lock while it was held")
                .because(format!("the file system of {} does not keep locks", path.display())))
        }
        Ok(code) => Err(Error::new(Kind::Io, "the lock's self-check did not end as it should")
            .because(format!("{} lock-probe ended with {code:?}", program.display()))),
        Err(error) => Err(Error::io(format!("lock self-check by {}", program.display()), &error)),
    }
}
