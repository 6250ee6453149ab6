//! A fold of any length in little memory: what was folded goes into sorted runs once it has become much, and
//! is walked in the order of its keys in the end. Decides nothing about what comes of it.

use std::io;
use std::sync::Arc;

use super::Store;
use super::fold::Folded;
use super::index;
use super::runs::{Runs, Walk};
use super::scan::Place;
use crate::model::event::Record;
use crate::model::state::State;

/// Events that are folded in memory before they are put out of it.
const HELD: usize = if cfg!(test) { 3 } else { 12_288 };

/// What was folded so far.
pub(super) struct Spilled {
    pub folded: Folded,
    /// Events since the fold was last put out of memory.
    held: usize,
    runs: Runs,
}

impl Spilled {
    /// Nothing folded yet.
    pub fn new(store: &Store) -> Self {
        Self { folded: store.blank(), held: 0, runs: Runs::default() }
    }

    /// Takes the next record of the log, which ends at a place.
    pub fn record(&mut self, store: &Store, record: &Record, place: &Place) {
        self.folded.state.apply(record);
        self.folded.place = place.clone();
        self.held += record.events.len();
        if self.held >= HELD {
            self.held = 0;
            // Where there is no room the fold goes on in memory.
            let _ = self.put_out(store);
        }
    }

    fn put_out(&mut self, store: &Store) -> io::Result<()> {
        self.runs.put_out(self.folded.state.written(), &|| index::scratch(store))?;
        self.folded.state = State::on(Arc::new(self.runs.clone()), self.folded.state.meta().clone());
        Ok(())
    }

    /// All rows in the order of their keys, those that were removed too.
    ///
    /// # Errors
    /// What was put out could not be written or not be read again: then nothing that was folded counts.
    pub fn end(&mut self, store: &Store) -> io::Result<Walk> {
        self.put_out(store)?;
        if self.runs.is_sound() { self.runs.walk() } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
