//! The index beside a fold of its own, for verify: they must be equal where the index ends, and are walked
//! beside each other in the order of the keys. Reads only.

use std::io;

use super::Store;
use super::finding::{Finding, Severity};
use super::index::{Found, Raw};
use super::runs::Walk;
use super::scan::Place;
use super::spill::Spilled;
use crate::model::event::Record;

/// The index and what the log says, as far as it was read.
pub(super) struct Compared {
    index: Raw,
    spilled: Spilled,
    finding: Option<Finding>,
}

impl Compared {
    /// The index as it stands, if it would be trusted. To be called before head is read.
    pub fn new(store: &Store) -> Option<Self> {
        store.options.boot.as_ref()?;
        let Found::Ready(index) = store.index_opened() else { return None };
        let index = index.raw().filter(|index| store.trusted(&index.place))?;
        Some(Self { index, spilled: Spilled::new(store), finding: None })
    }

    /// Takes the next record of the log, which ends at a place.
    pub fn record(&mut self, store: &Store, record: &Record, place: &Place) {
        let end = &self.index.place;
        if record.seq > end.seq {
            return;
        }
        self.spilled.record(store, record, place);
        if record.seq == end.seq && record.hash == end.hash {
            let walk = self.spilled.end(store);
            let finding = walk.and_then(|walk| self.difference(walk));
            self.finding = finding.unwrap_or_else(|error| Some(unread(&error)));
            self.spilled = Spilled::new(store);
        }
    }

    /// What came of it.
    pub fn finding(self) -> Option<Finding> {
        self.finding
    }

    fn difference(&self, mut folded: Walk) -> io::Result<Option<Finding>> {
        let (mut wrong, mut first) = (0u64, None::<Vec<u8>>);
        let mut differs = |key: &[u8]| {
            wrong += 1;
            first.get_or_insert_with(|| key.to_vec());
        };
        let mut walked = Ok(());
        let whole = self.index.each(|key, value| {
            if walked.is_ok() {
                walked = beside(&mut folded, key, value, &mut differs);
            }
        });
        walked?;
        while let Some((key, value)) = folded.row() {
            if value.is_some() {
                differs(key);
            }
            folded.step()?;
        }
        if *self.spilled.folded.state.meta() != self.index.meta || !whole {
            differs(b"the counters");
        }
        let Some(first) = first else { return Ok(None) };
        let what = format!(
            "{wrong} row(s) of the index are not what the log says (first: {})",
            String::from_utf8_lossy(&first).escape_debug()
        );
        let fix = "nf doctor --fix, or delete .novelforge/index: the next command makes it anew";
        Ok(Some(Finding::new("index", Severity::Warning, what, fix)))
    }
}

/// Walks the fold up to a row of the index, and tells every key whose rows differ.
fn beside(
    folded: &mut Walk,
    key: &[u8],
    value: Option<&[u8]>,
    differs: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    let mut known = None;
    while let Some((here, found)) = folded.row().filter(|(here, _)| *here <= key) {
        if here == key {
            known = Some(found.is_some() && found == value);
        } else if found.is_some() {
            differs(here);
        }
        folded.step()?;
    }
    if known != Some(true) {
        differs(key);
    }
    Ok(())
}

/// The fold could not be kept or read again, so nothing is known of the index.
fn unread(error: &io::Error) -> Finding {
    let what = format!("the index could not be compared with the log: {error}");
    Finding::new("index", Severity::Warning, what, "make room on the disk, then nf verify")
}
