//! The index beside a fold of its own, for verify: they must be equal where the index ends. What is folded goes
//! out of memory into sorted runs, and is walked beside the index in the order of the keys. Reads only.

use std::io;
use std::sync::Arc;

use super::Store;
use super::finding::{Finding, Severity};
use super::fold::Folded;
use super::index::{self, Found, Raw};
use super::runs::{Runs, Walk};
use crate::model::event::Record;
use crate::model::state::State;

/// Events that are folded in memory before they are put out of it.
const HELD: usize = if cfg!(test) { 3 } else { 12_288 };

/// The index and what the log says, as far as it was read.
pub(super) struct Compared {
    index: Raw,
    folded: Folded,
    /// Events since the fold was last put out of memory.
    held: usize,
    runs: Runs,
    finding: Option<Finding>,
}

impl Compared {
    /// The index as it stands, if it would be trusted. To be called before head is read.
    pub fn new(store: &Store) -> Option<Self> {
        store.options.boot.as_ref()?;
        let Found::Ready(index) = store.index_opened() else { return None };
        let index = index.raw().filter(|index| store.trusted(&index.place))?;
        Some(Self { index, folded: store.blank(), held: 0, runs: Runs::default(), finding: None })
    }

    /// Takes the next record of the log.
    pub fn record(&mut self, store: &Store, record: &Record) {
        let end = &self.index.place;
        if record.seq > end.seq {
            return;
        }
        self.folded.state.apply(record);
        self.held += record.events.len();
        if record.seq == end.seq && record.hash == end.hash {
            self.finding = self.end(store).unwrap_or_else(|error| Some(unread(&error)));
            (self.folded, self.runs) = (store.blank(), Runs::default());
        } else if self.held >= HELD {
            self.held = 0;
            // Where there is no room the fold goes on in memory.
            let _ = self.put_out(store);
        }
    }

    fn put_out(&mut self, store: &Store) -> io::Result<()> {
        self.runs.put_out(self.folded.state.changes(), &|| index::scratch(store))?;
        self.folded.state = State::on(Arc::new(self.runs.clone()), self.folded.state.meta().clone());
        Ok(())
    }

    /// What came of it.
    pub fn finding(self) -> Option<Finding> {
        self.finding
    }

    /// Where the index ends: everything is put out and walked beside it.
    fn end(&mut self, store: &Store) -> io::Result<Option<Finding>> {
        self.put_out(store)?;
        let finding = self.difference(self.runs.walk()?)?;
        if self.runs.is_sound() { Ok(finding) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
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
        if *self.folded.state.meta() != self.index.meta || !whole {
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
