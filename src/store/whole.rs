//! Making an index for a long log at one go, without the lock: its rows are written once, in their order, so
//! that it takes half the time and half the room of one that grows. Takes the lock only to let it count.

use std::time::Duration;

use super::Store;
use super::head;
use super::index::{self, Index};
use super::scan::{Limit, Scan};
use super::spill::Spilled;

/// Bytes of log from which on an index is made at one go.
pub(super) const LONG: u64 = if cfg!(test) { 1 << 40 } else { 8 * 1024 * 1024 };
/// How long is waited between two looks at whether somebody else is still making one.
const PAUSE: Duration = Duration::from_millis(20);
/// Records between two words about how far it has come.
const TOLD: u64 = 64;
/// Times that the lock is tried for letting the index count.
const TRIES: u32 = 500;

impl Store {
    /// Makes an index for all that head covers now, or waits for who is making it, as long as for the lock.
    /// Whether one counts afterwards is for the caller to see.
    pub(super) fn build_whole(&self) -> Option<()> {
        if self.poisoned().ok()?.is_some() {
            return None;
        }
        let home = index::home_made(self)?;
        let mut waited = Duration::ZERO;
        while !home.lock_alone() {
            if waited.as_millis() >= u128::from(self.options.lock_timeout_ms) {
                return None;
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        // The folder is given back when it is closed, at the end of this.
        if self.index_counts() {
            return Some(());
        }
        let mut spilled = Spilled::new(self);
        self.fold_whole(&mut spilled)?;
        let walk = spilled.end(self).ok()?;
        let held = self.lock_tried(TRIES)?;
        let made = index::make(self);
        held.release().ok()?;
        let index = made?;
        // Nobody else is in the way of the bytes: who goes by the stamp does not know of them yet.
        if index.load(&spilled.folded, walk).and_then(|()| self.let_count(&index)).is_none() {
            index.discard();
            return None;
        }
        self.keep_index(Some(std::sync::Arc::new(index)));
        Some(())
    }

    fn fold_whole(&self, spilled: &mut Spilled) -> Option<()> {
        let head = head::read(&self.folder, &self.info.store_id).ok()?.newest().cloned()?;
        let total = self.log_bytes(head.segment, head.offset);
        let place = spilled.folded.place.clone();
        let mut scan = Scan::new(self.log().ok()?, &self.info.store_id, place, Limit::Head(head));
        while let Some(record) = scan.next().ok()? {
            if record.v > super::record::FORMAT {
                return None;
            }
            spilled.record(self, &record, &scan.place);
            if record.seq.is_multiple_of(TOLD) {
                self.options.watch.tell(self.log_bytes(scan.place.segment, scan.place.offset), total);
            }
        }
        Some(())
    }

    /// Lets a new index count, under the lock, unless a newer one does.
    fn let_count(&self, index: &Index) -> Option<()> {
        let held = self.lock_tried(TRIES)?;
        let counts = match self.poisoned() {
            Ok(None) => index.count(),
            _ => None,
        };
        if counts.is_some() {
            index.alone();
            self.prune_indexes();
        }
        held.release().ok().and(counts)
    }
}
