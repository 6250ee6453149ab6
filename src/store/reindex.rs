//! Beginning from the index, keeping it up, making it anew, and finding out whether it lies. Every holder of
//! the lock may write the index; a reader does so only where nobody else wants the lock.

use std::sync::Arc;

use super::Store;
use super::append::Locked;
use super::finding::{Finding, Severity};
use super::fold::Folded;
use super::head;
use super::index::{self, Found, INDEX, Index, Raw};
use super::lock;
use super::scan::{Limit, Place, Scan};
use crate::model::event::Record;

/// Bytes of log that are folded sooner than an index is made for them.
pub(super) const WORTH: u64 = 64 * 1024;
/// Bytes of log that a reader folds sooner than it brings the index up.
const BEHIND: u64 = 1024 * 1024;
/// Bytes of log whose rows are written at once while an index is made, so that memory stays small.
const BATCH: u64 = 2 * 1024 * 1024;

/// Records that verify folds in memory before it puts the fold on disk.
const HELD: usize = if cfg!(test) { 3 } else { 2_000 };

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
            Found::Ready(index) => index.view(self).filter(|view| self.trusted(&view.place)),
        };
        // Head is read after the rows: what is folded over them is what became durable meanwhile.
        let end = head::read(&self.folder, &self.info.store_id)
            .ok()?
            .newest()
            .map(|head| (head.segment, head.offset))?;
        let (from, limit) = match &view {
            Some(view) => ((view.place.segment, view.place.offset), BEHIND),
            None => ((1, 0), self.index_worth),
        };
        let worth = end.0 > from.0 || end.1.saturating_sub(from.1) >= limit;
        if !build || !worth {
            return view;
        }
        self.build(view.clone()).or(view)
    }

    /// Whether a view is not beyond what is durable, and of this log.
    fn trusted(&self, place: &Place) -> bool {
        let Ok(slots) = head::read(&self.folder, &self.info.store_id) else { return false };
        let covered = slots.newest().is_some_and(|head| {
            (place.segment, place.offset, place.seq) <= (head.segment, head.offset, head.seq)
        });
        covered && self.bears_out(place)
    }

    fn index_opened(&self) -> Found {
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

    fn keep_index(&self, index: Option<Arc<Index>>) {
        if let Ok(mut kept) = self.index.lock() {
            *kept = index;
        }
    }

    /// Makes an index, or brings one up to head, if nobody else holds the lock.
    fn build(&self, view: Option<Folded>) -> Option<Folded> {
        let held = lock::try_acquire(&self.folder)?;
        let built = self.build_locked(view);
        let _ = held.release();
        built
    }

    fn build_locked(&self, view: Option<Folded>) -> Option<Folded> {
        if self.poisoned().ok()?.is_some() {
            return None;
        }
        let head = head::read(&self.folder, &self.info.store_id).ok()?.newest().cloned()?;
        // Another may have made one while this one looked.
        let view = view.or_else(|| match self.index_opened() {
            Found::Ready(index) => index.view(self).filter(|view| self.trusted(&view.place)),
            _ => None,
        });
        let fresh = view.is_none();
        let index = match view {
            Some(_) => self.index_kept()?,
            None => {
                self.keep_index(None);
                Arc::new(index::make(self)?)
            }
        };
        let mut folded = view.unwrap_or_else(|| self.blank());
        let done = self.fill(&index, &mut folded, Limit::Head(head));
        if done.is_none() && fresh {
            drop(folded);
            if let Ok(index) = Arc::try_unwrap(index) {
                index.discard();
            }
            return None;
        }
        done?;
        index.alone();
        self.keep_index(Some(index));
        Some(folded)
    }

    /// Folds up to a limit, with rows written batch by batch; `None` where the log or the index is no good.
    fn fill(&self, index: &Arc<Index>, folded: &mut Folded, limit: Limit) -> Option<()> {
        let mut scan = Scan::new(self.log().ok()?, &self.info.store_id, folded.place.clone(), limit);
        let mut bytes = 0;
        while let Some(record) = scan.next().ok()? {
            if record.v > super::record::FORMAT {
                return None;
            }
            folded.state.apply(&record);
            folded.place = scan.place.clone();
            bytes += scan.last_line().len() as u64;
            if bytes >= BATCH {
                index.write(folded)?;
                *folded = index.view(self)?;
                bytes = 0;
            }
        }
        index.write(folded)?;
        *folded = index.view(self)?;
        Some(())
    }

    /// Removes all indexes; for doctor, under the lock. False where there was none.
    pub(super) fn drop_index(&self) -> bool {
        self.keep_index(None);
        self.root().join(INDEX).exists() && std::fs::remove_dir_all(self.root().join(INDEX)).is_ok()
    }

    /// Indexes that are not this boot's, mount's and version's.
    pub(super) fn foreign_indexes(&self) -> Vec<Finding> {
        let (Ok(Some(folder)), Some(own)) = (self.folder.folder(INDEX), index::name(self)) else {
            return Vec::new();
        };
        let count = folder.names().unwrap_or_default().iter().filter(|name| **name != own).count();
        if count == 0 {
            return Vec::new();
        }
        let what = format!("{count} index folder(s) of other boots, mounts, users or versions");
        vec![Finding::new("index_old", Severity::Note, what, "nf doctor --fix removes them")]
    }
}

impl Locked<'_> {
    /// Writes what was folded over the index into it, once head covers it. A failure costs nothing but the
    /// folding: the rows stay behind.
    pub fn index(&self, folded: &mut Folded) {
        if !folded.covered || folded.newer || !folded.state.is_based() {
            return;
        }
        let Some(index) = self.store.index_kept() else { return };
        if index.write(folded).is_some()
            && let Some(view) = index.view(self.store).filter(|view| view.place == folded.place)
        {
            *folded = view;
        }
    }
}

/// The index beside a fold of its own, for verify: they must be equal where the index ends.
pub(super) struct Compared {
    index: Raw,
    folded: Folded,
    /// Records since the fold was last put out of memory.
    held: usize,
    scratch: Option<Arc<Index>>,
    finding: Option<Finding>,
}

impl Compared {
    /// The index as it stands, if it would be trusted. To be called before head is read.
    pub fn new(store: &Store) -> Option<Self> {
        store.options.boot.as_ref()?;
        let Found::Ready(index) = store.index_opened() else { return None };
        let index = index.raw().filter(|index| store.trusted(&index.place))?;
        Some(Self { index, folded: store.blank(), held: 0, scratch: None, finding: None })
    }

    /// Takes the next record of the log.
    pub fn record(&mut self, store: &Store, record: &Record) {
        let end = &self.index.place;
        if record.seq > end.seq {
            return;
        }
        self.folded.state.apply(record);
        self.held += 1;
        if record.seq == end.seq && record.hash == end.hash {
            self.finding = self.difference();
            self.folded = store.blank();
        } else if self.held >= HELD {
            self.held = 0;
            self.put_out(store);
        }
    }

    /// Puts the fold so far on disk, if there is room; else it stays in memory.
    fn put_out(&mut self, store: &Store) -> Option<()> {
        if self.scratch.is_none() {
            self.scratch = index::make_scratch(store).map(Arc::new);
        }
        let scratch = self.scratch.as_ref()?;
        scratch.put(&self.folded)?;
        self.folded = scratch.view(store)?;
        Some(())
    }

    /// What came of it.
    pub fn finding(self) -> Option<Finding> {
        drop(self.folded);
        if let Some(scratch) = self.scratch.and_then(|scratch| Arc::try_unwrap(scratch).ok()) {
            scratch.discard();
        }
        self.finding
    }

    fn difference(&self) -> Option<Finding> {
        let (mut wrong, mut first) = (0u64, None::<Vec<u8>>);
        let mut differs = |key: &[u8]| {
            wrong += 1;
            first.get_or_insert_with(|| key.to_vec());
        };
        let mut folded = self.folded.state.all_rows().peekable();
        let whole = self.index.each(|key, value| {
            while let Some((missing, _)) = folded.next_if(|(known, _)| known.as_ref() < key) {
                differs(&missing);
            }
            match folded.next_if(|(known, _)| known.as_ref() == key) {
                Some((_, known)) if value == Some(known.as_ref()) => {}
                _ => differs(key),
            }
        });
        folded.for_each(|(missing, _)| differs(&missing));
        if *self.folded.state.meta() != self.index.meta || !whole {
            differs(b"the counters");
        }
        let first = first?;
        let what = format!(
            "{wrong} row(s) of the index are not what the log says (first: {})",
            String::from_utf8_lossy(&first).escape_debug()
        );
        let fix = "nf doctor --fix, or delete .novelforge/index: the next command makes it anew";
        Some(Finding::new("index", Severity::Warning, what, fix))
    }
}
