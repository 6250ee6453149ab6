//! Beginning from the index, keeping it up, and making it anew. Every holder of
//! the lock may write the index; a reader does so only where nobody else wants the lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use super::append::Locked;
use super::finding::{Finding, Severity};
use super::fold::Folded;
use super::head::{self, Head};
use super::index::{self, Found, INDEX, Index, STAMP};
use super::lock::{self, Held};
use super::scan::{Limit, Place, Scan, segment_name};
use super::whole::LONG;

/// Bytes of log that are folded sooner than an index is made for them.
pub(super) const WORTH: u64 = 32 * 1024;
/// Bytes of log that a reader folds sooner than it brings the index up.
const BEHIND: u64 = 1024 * 1024;
/// Bytes of log that a writer leaves beyond the rows for the next one: folding them again takes less than
/// writing rows after each record would.
const AHEAD: u64 = if cfg!(test) { 1 } else { 8 * 1024 };
/// Bytes of log whose rows are written at once while an index is made, so that memory stays small and no
/// writer waits long for the lock.
const PIECE: u64 = if cfg!(test) { 4 * 1024 } else { 2 * 1024 * 1024 };
/// How long the lock is left free between two pieces.
const PAUSE: Duration = Duration::from_millis(2);
/// Times that the lock is tried for a later piece.
const TRIES: u32 = 20;

/// Indexes of other boots, mounts, users and versions that are kept when one is made.
const KEPT: usize = 7;

impl Store {
    /// The index's rows with nothing folded over them, or nothing folded yet. `build` says whether an index
    /// may be made where none counts.
    pub(super) fn start(&self, build: bool) -> Folded {
        self.indexed(build).unwrap_or_else(|| self.blank())
    }

    fn indexed(&self, build: bool) -> Option<Folded> {
        if self.options.boot.is_none() || self.info.format > 1 {
            return None;
        }
        let view = match self.index_opened() {
            Found::Unusable => return None,
            Found::None => None,
            Found::Ready(index) => index.view(self),
        };
        // Head is read after the rows: what is folded over them is what became durable meanwhile.
        let slots = head::read(&self.folder, &self.info.store_id).ok()?;
        let head = slots.newest()?;
        let view = view.filter(|view| self.trusted_by(head, &view.place));
        let end = (head.segment, head.offset);
        let (from, limit) = match &view {
            Some(view) => ((view.place.segment, view.place.offset), BEHIND),
            None => ((1, 0), self.index_worth),
        };
        let worth = end.0 > from.0 || end.1.saturating_sub(from.1) >= limit;
        if !build || !worth {
            return view;
        }
        if view.is_none() && self.log_bytes(end.0, end.1) >= LONG {
            self.build_whole();
        }
        self.build().or(view)
    }

    /// The index's rows as others have written them meanwhile, beyond what is folded: going on from there is
    /// less than folding all that they appended. For a holder of the lock.
    pub(super) fn newer_rows(&self, folded: &Folded, head: &Head) -> Option<Folded> {
        if !folded.state.is_based() || folded.place.seq >= head.seq {
            return None;
        }
        let index = self.index_kept()?;
        let beyond = |place: &Place| place.seq > folded.place.seq;
        index.covered().filter(beyond)?;
        index.view(self).filter(|view| beyond(&view.place) && self.trusted_by(head, &view.place))
    }

    /// Whether a view is not beyond what is durable, and of this log.
    pub(super) fn trusted(&self, place: &Place) -> bool {
        let Ok(slots) = head::read(&self.folder, &self.info.store_id) else { return false };
        slots.newest().is_some_and(|head| self.trusted_by(head, place))
    }

    fn trusted_by(&self, head: &Head, place: &Place) -> bool {
        let covered = (place.segment, place.offset, place.seq) <= (head.segment, head.offset, head.seq);
        covered && self.bears_out(place)
    }

    pub(super) fn index_opened(&self) -> Found {
        let Ok(mut kept) = self.index.lock() else { return Found::Unusable };
        if let Some(index) = kept.as_ref() {
            return Found::Ready(index.clone());
        }
        let found = index::open(self);
        if let Found::Ready(index) = &found {
            *kept = Some(index.clone());
        }
        found
    }

    fn index_kept(&self) -> Option<Arc<Index>> {
        self.index.lock().ok()?.clone()
    }

    pub(super) fn keep_index(&self, index: Option<Arc<Index>>) {
        if let Ok(mut kept) = self.index.lock() {
            *kept = index;
        }
    }

    /// Makes an index, or brings one up to head, if nobody else holds the lock: piece by piece, so that a
    /// writer waits for one piece at most. Gives how far it came.
    fn build(&self) -> Option<Folded> {
        let (mut built, mut tries) = (None, 1);
        while let Some(held) = self.lock_tried(tries) {
            let piece = self.build_piece();
            let _ = held.release();
            let Some((folded, whole)) = piece else { break };
            built = Some(folded);
            if whole {
                break;
            }
            // Whoever waits for the lock is awake by then, and has it.
            std::thread::sleep(PAUSE);
            tries = TRIES;
        }
        self.options.watch.tell(1, 1);
        built
    }

    pub(super) fn lock_tried(&self, tries: u32) -> Option<Held> {
        for number in 0..tries {
            if number > 0 {
                std::thread::sleep(PAUSE);
            }
            if let Some(held) = lock::try_acquire(&self.folder) {
                return Some(held);
            }
        }
        None
    }

    /// One piece, under the lock; with whether the rows cover all that head covers now.
    fn build_piece(&self) -> Option<(Folded, bool)> {
        if self.poisoned().ok()?.is_some() {
            return None;
        }
        let head = head::read(&self.folder, &self.info.store_id).ok()?.newest().cloned()?;
        // Another may have made one, or brought it up, while the lock was free.
        let view = match self.index_opened() {
            Found::Ready(index) => index.view(self).filter(|view| self.trusted(&view.place)),
            Found::None => None,
            Found::Unusable => return None,
        };
        let Some(mut folded) = view else {
            self.keep_index(None);
            let index = Arc::new(index::make(self)?);
            let mut folded = self.blank();
            let Some(whole) = self.fill(&index, &mut folded, head) else {
                drop(folded);
                if let Ok(index) = Arc::try_unwrap(index) {
                    index.discard();
                }
                return None;
            };
            index.alone();
            self.prune_indexes();
            self.keep_index(Some(index));
            return Some((folded, whole));
        };
        let index = self.index_kept()?;
        let whole = self.fill(&index, &mut folded, head)?;
        Some((folded, whole))
    }

    /// Folds a piece of the log and writes its rows; with whether the limit was reached. `None` where the log
    /// or the index is no good.
    fn fill(&self, index: &Index, folded: &mut Folded, head: Head) -> Option<bool> {
        let total = self.log_bytes(head.segment, head.offset);
        let limit = Limit::Head(head);
        let mut scan = Scan::new(self.log().ok()?, &self.info.store_id, folded.place.clone(), limit);
        let mut bytes = 0;
        let mut whole = true;
        while let Some(record) = scan.next().ok()? {
            if record.v > super::record::FORMAT {
                return None;
            }
            folded.state.apply(&record);
            folded.place = scan.place.clone();
            bytes += scan.last_line().len() as u64;
            if bytes >= PIECE {
                whole = false;
                break;
            }
        }
        self.options.doubt.check().ok()?;
        index.write(folded)?;
        *folded = index.view(self)?;
        self.options.watch.tell(self.log_bytes(folded.place.segment, folded.place.offset), total);
        Some(whole)
    }

    /// Bytes of the log before a point.
    pub(super) fn log_bytes(&self, segment: u32, offset: u64) -> u64 {
        let size = |segment| self.log().ok()?.stat_of(&segment_name(segment)).ok()?;
        (1..segment).filter_map(size).map(|stat| stat.st_size as u64).sum::<u64>() + offset
    }

    /// Whether there is an index that commands go by.
    pub(super) fn index_counts(&self) -> bool {
        let Found::Ready(index) = self.index_opened() else { return false };
        index.view(self).is_some_and(|view| self.trusted(&view.place))
    }

    /// Removes all indexes; for doctor, under the lock. False where there was none.
    pub(super) fn drop_index(&self) -> bool {
        self.keep_index(None);
        self.root().join(INDEX).exists() && std::fs::remove_dir_all(self.root().join(INDEX)).is_ok()
    }

    /// Removes the indexes that were written longest ago, where there are many: each mount namespace, such as
    /// a sandbox has, leaves one.
    pub(super) fn prune_indexes(&self) {
        let all = self.root().join(INDEX);
        let mut others = index::leftovers(self);
        others.retain(|path| path.parent() == Some(&all));
        let written =
            |path: &PathBuf| std::fs::metadata(path.join(STAMP)).and_then(|meta| meta.modified()).ok();
        others.sort_by_cached_key(|path| std::cmp::Reverse(written(path)));
        for path in others.iter().skip(KEPT) {
            let _ = std::fs::remove_dir_all(path);
        }
    }

    /// Removes what is no part of this store's index, here and now; for doctor, under the lock. Gives how
    /// many there were.
    pub(super) fn sweep_indexes(&self) -> usize {
        let found = index::leftovers(self);
        let removed = |path: &&PathBuf| match path.is_dir() {
            true => std::fs::remove_dir_all(path).is_ok(),
            false => std::fs::remove_file(path).is_ok(),
        };
        found.iter().filter(removed).count()
    }

    /// Indexes that are not this boot's, mount's, user's and version's, and what was left in this one's
    /// folder.
    pub(super) fn foreign_indexes(&self) -> Vec<Finding> {
        let found = index::leftovers(self);
        let Some(first) = found.first() else { return Vec::new() };
        let what = format!(
            "{} old index folder(s): of other boots, mounts, users or versions, or unfinished (first: {})",
            found.len(),
            first.display()
        );
        vec![Finding::new("index_old", Severity::Note, what, "nf doctor --fix removes them")]
    }
}

impl Locked<'_> {
    /// Writes what was folded over the index into it, once head covers it and enough has come together. A
    /// failure costs nothing but the folding: the rows stay behind.
    pub fn index(&self, folded: &mut Folded) {
        let doubt = self.store.options.doubt.check().is_err();
        if doubt || !folded.is_due() || !folded.covered || folded.newer {
            return;
        }
        let Some(index) = self.store.index_kept() else { return };
        // While this one waited for the lock others may have written the rows that it goes on from: all that
        // it folded over the older ones would be written a second time.
        let rows = index.covered().map(|place| (place.segment, place.offset));
        if rows != folded.rows {
            let Some(rows) = rows.filter(|rows| !is_near(*rows, folded)) else { return };
            let Some(newer) = self.refolded(&index, folded).filter(|newer| newer.rows == Some(rows)) else {
                return;
            };
            *folded = newer;
        }
        if index.write(folded).is_some()
            && let Some(view) = index.view(self.store).filter(|view| view.place == folded.place)
        {
            *folded = view;
        }
    }

    /// The same fold over the rows as they are now.
    fn refolded(&self, index: &Index, folded: &Folded) -> Option<Folded> {
        let mut newer = index.view(self.store)?;
        self.store.fold_on(&mut newer, Limit::Head(self.head.slots.newest()?.clone())).ok()?;
        (newer.place == folded.place && !newer.newer).then_some(newer)
    }
}

impl Folded {
    /// Whether enough of the log lies beyond the rows of an index that they are worth writing.
    pub fn is_due(&self) -> bool {
        self.state.is_based() && self.rows.is_some_and(|rows| !is_near(rows, self))
    }
}

/// Whether so little of the log lies beyond rows that they are not worth writing yet.
fn is_near((segment, offset): (u32, u64), folded: &Folded) -> bool {
    segment == folded.place.segment && folded.place.offset.saturating_sub(offset) < AHEAD
}
