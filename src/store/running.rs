//! Which commands of guarded writes are still running: each holds a lock on a file of its own, which goes
//! with every process that it starts. The kernel gives a lock back when the last of them has ended, however
//! they ended, so that nothing here is ever out of date. Says nothing of what was written.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use super::Store;
use super::files::Want;
use super::lock::try_lock;
use crate::error::{Error, Kind, Result};
use crate::model::id::{EffectId, Id};

/// The folder of the files, one for each effect whose command was started and is not settled.
const RUNNING: &str = "running";

/// The lock of a running command, held. It is never given back by hand: that would take it from the processes
/// that the command has left behind.
#[derive(Debug)]
pub struct Running {
    file: File,
}

impl Running {
    /// What a child must keep open.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Store {
    /// Takes the lock of an effect's command.
    ///
    /// # Errors
    /// `busy` where another process holds it; `io`.
    pub fn run_begins(&self, effect: &EffectId) -> Result<Running> {
        let missing = || Error::new(Kind::Io, format!("{RUNNING}/{effect} could not be made"));
        let opened =
            self.folder.folder_made(RUNNING)?.open(effect.as_str(), Want::Make)?.ok_or_else(missing)?;
        let locked =
            try_lock(&opened.file).map_err(|error| Error::io("lock of a running command", &error))?;
        match locked {
            true => Ok(Running { file: opened.file }),
            false => Err(Error::new(Kind::Busy, format!("a command of effect {effect} is running"))
                .because(format!("another process holds {}", self.running_file(effect)))),
        }
    }

    /// Whether a command of an effect, or anything that it left behind, still runs.
    ///
    /// # Errors
    /// A failed look.
    pub fn is_running(&self, effect: &EffectId) -> Result<bool> {
        let Some(folder) = self.folder.folder(RUNNING)? else { return Ok(false) };
        let Some(opened) = folder.open(effect.as_str(), Want::Write)? else { return Ok(false) };
        // Whoever gets the lock gives it back by closing the file.
        let free = try_lock(&opened.file).map_err(|error| Error::io("lock of a running command", &error))?;
        Ok(!free)
    }

    /// Where the lock of an effect's command lies, for people.
    pub fn running_file(&self, effect: &EffectId) -> String {
        self.root().join(RUNNING).join(effect.as_str()).display().to_string()
    }

    /// Removes the file of an effect that is settled: nothing asks for it any more.
    pub fn run_is_over(&self, effect: &EffectId) {
        if let Ok(Some(folder)) = self.folder.folder(RUNNING) {
            let _ = folder.unlink(effect.as_str());
        }
    }
}
