//! Transactions that are synced together: what one of them leaves to the next, and the sync that all their
//! answers rest on. Decides nothing and writes nothing by itself; [`Store::transact`] stays the one door.

use super::Store;
use super::append::{Locked, Parked};
use super::fold::{Folded, Snapshot};
use super::scan::Stop;
use crate::error::{Error, Kind, Result};
use crate::model::time::Source;

/// What a transaction works on.
pub(super) struct Work {
    /// The state that is decided on.
    pub folded: Folded,
    /// What a reader should know of it.
    pub warnings: Vec<String>,
    /// Whether the fold has come, under the lock, to the end of the log.
    pub caught_up: bool,
    /// Whether the state lacks the record that was appended last, so that nothing can go on from it.
    pub spent: bool,
    /// The lock, where an earlier transaction of the group took it.
    lock: Option<Parked>,
}

/// What a group holds between two of its transactions: the lock, and the fold with all that it appended.
#[derive(Debug)]
pub(super) struct Held {
    lock: Parked,
    folded: Folded,
}

impl Store {
    /// Makes durable, with one sync, what the transactions of a group have appended, and gives the lock back.
    /// Nothing that one of them answered may be told to anybody before; after a failure none of it may be.
    /// Gives what a person should know. Without [`super::Options::group`] there is nothing to do.
    ///
    /// # Errors
    /// [`Kind::NotDurable`]: every record of the group may or may not be there.
    pub fn commit(&self, source: &Source) -> Result<Vec<String>> {
        let Some(Held { lock, mut folded }) = self.held_taken() else { return Ok(Vec::new()) };
        let mut locked = lock.resume(self);
        let settled = match self.poisoned()? {
            None => locked.settle(&folded, &(source.moment)()),
            Some(reason) => Err(Error::new(Kind::NotDurable, "a write of the same group failed")
                .because(format!("POISON: {reason}"))),
        };
        if settled.is_ok() {
            locked.index(&mut folded);
        }
        let notes = locked.release();
        settled.map(|()| {
            self.keep_folded(folded);
            notes
        })
    }

    /// Whether a group holds the lock, so that something waits for [`Store::commit`].
    pub fn is_holding(&self) -> bool {
        self.group.lock().is_ok_and(|held| held.is_some())
    }

    /// What a transaction begins with: what its group holds, else the fold up to head.
    pub(super) fn begin_work(&self, build: bool) -> Result<Work> {
        let mut warnings = Vec::new();
        if let Some(Held { lock, folded }) = self.held_taken() {
            return Ok(Work { folded, warnings, caught_up: true, spent: false, lock: Some(lock) });
        }
        let mut folded = self.take_folded(build);
        self.fold_to_head(&mut folded, &mut warnings).map_err(Stop::error)?;
        Ok(Work { folded, warnings, caught_up: false, spent: false, lock: None })
    }

    /// Keeps what the next transaction goes on from. `sure` says whether the fold may be kept without a lock.
    pub(super) fn end_work(&self, work: Work, sure: bool) {
        // What was looked up after the decision takes nothing back from it.
        let sure = sure && !self.options.doubt.take() && !work.spent;
        match work.lock {
            Some(lock) => {
                if let Ok(mut held) = self.group.lock() {
                    *held = Some(Held { lock, folded: work.folded });
                }
            }
            None if sure => self.keep_folded(work.folded),
            None => {}
        }
    }

    /// The lock: the group's, else one taken now.
    pub(super) fn lock_for(&self, work: &mut Work) -> Result<Locked<'_>> {
        match work.lock.take() {
            Some(lock) => Ok(lock.resume(self)),
            None => {
                work.caught_up = false;
                self.lock()
            }
        }
    }

    /// Keeps the lock for the rest of a group, or gives it back and keeps what is to be told.
    pub(super) fn unlock_after(&self, work: &mut Work, locked: Locked<'_>) {
        if self.options.group && work.caught_up {
            work.lock = Some(locked.park());
        } else {
            let released = locked.release();
            self.note(released);
        }
    }

    /// What a reader inside a group sees: its own records too, since its answer waits for them.
    pub(super) fn read_held(&self) -> Option<Snapshot> {
        let held = self.group.lock().ok()?;
        let folded = &held.as_ref()?.folded;
        Some(Snapshot { position: folded.position(), state: folded.state.clone(), warnings: Vec::new() })
    }

    fn held_taken(&self) -> Option<Held> {
        self.group.lock().ok()?.take()
    }

    /// What this process folded last; the fold goes on from there.
    fn take_folded(&self, build: bool) -> Folded {
        let kept = self.folded.lock().ok().and_then(|mut folded| folded.take());
        kept.filter(|folded| folded.covered).unwrap_or_else(|| self.start(build))
    }

    fn keep_folded(&self, folded: Folded) {
        if let Ok(mut kept) = self.folded.lock() {
            *kept = Some(folded);
        }
    }
}
