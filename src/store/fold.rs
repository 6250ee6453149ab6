//! The state of a store as its log tells it: folded up to head, and further when a holder of the lock has
//! made more durable. Reads only.

use super::damage::Damage;
use super::head::{self, Head};
use super::scan::{Limit, Place, Scan, Stop};
use super::{Position, Store};
use crate::error::{Error, Kind, Result};
use crate::model::state::State;

/// A state and the point of the log that it covers.
#[derive(Debug, Clone)]
pub(super) struct Folded {
    pub state: State,
    pub place: Place,
    /// Segment and offset up to which the index's rows lie below; `None` without an index.
    pub rows: Option<(u32, u64)>,
    /// Whether head bore the point out; without a valid head nothing says what is durable.
    pub covered: bool,
    /// Whether a record of a newer format is among those folded.
    pub newer: bool,
}

impl Folded {
    /// The point as a position; `None` before the first record.
    pub fn position(&self) -> Option<Position> {
        (self.place.seq > 0).then_some(Position { seq: self.place.seq, hash: self.place.hash })
    }
}

/// What a reader sees: the state up to head.
#[derive(Debug)]
pub struct Snapshot {
    /// The fold of all events up to the position.
    pub state: State,
    /// The last record covered; `None` in a log without a record.
    pub position: Option<Position>,
    /// What a person should know, for stderr.
    pub warnings: Vec<String>,
}

/// Times that a reader starts again when head moved while it found damage.
const LOOKS: usize = 3;

impl Store {
    /// The state up to head, without a lock.
    ///
    /// # Errors
    /// Damage before head ([`Kind::Damaged`]), unless damaged stores are allowed; a record that only a
    /// newer program understands ([`Kind::NewerFormat`]); a failed read.
    pub fn read(&self) -> Result<Snapshot> {
        if let Some(held) = self.read_held() {
            return Ok(held);
        }
        let mut warnings = Vec::new();
        let mut folded = self.start(true);
        if let Err(stop) = self.fold_to_head(&mut folded, &mut warnings) {
            match stop {
                Stop::Damage(damage) if self.options.allow_damaged => warnings.push(format!(
                    "the log is damaged ({damage}); everything shown rests on the {} records before",
                    folded.place.seq
                )),
                stop => return Err(stop.error()),
            }
        }
        if self.info.format > 1 || folded.newer {
            warnings.push("a newer nf wrote this store; this version only reads it".to_owned());
        }
        Ok(Snapshot { position: folded.position(), state: folded.state, warnings })
    }

    /// Nothing folded yet.
    pub(super) fn blank(&self) -> Folded {
        let place = Place::start(self.info_hash);
        Folded { state: State::default(), place, rows: None, covered: false, newer: false }
    }

    /// Folds on, up to head. What changes meanwhile is read again before it is called damage.
    pub(super) fn fold_to_head(
        &self,
        folded: &mut Folded,
        warnings: &mut Vec<String>,
    ) -> std::result::Result<(), Stop> {
        let mut head = head::read(&self.folder, &self.info.store_id)?.newest().cloned();
        let mut look = 0;
        loop {
            let stop = match self.fold_to(folded, head.as_ref(), warnings) {
                Ok(()) => return Ok(()),
                // The index may be wrong about the log: what the log itself says counts.
                Err(Stop::Damage(_)) if folded.state.is_based() => {
                    *folded = self.blank();
                    continue;
                }
                Err(stop) => stop,
            };
            let now = head::read(&self.folder, &self.info.store_id)?.newest().cloned();
            look += 1;
            if now == head || look == LOOKS {
                return Err(stop);
            }
            head = now;
            *folded = self.blank();
        }
    }

    fn fold_to(
        &self,
        folded: &mut Folded,
        head: Option<&Head>,
        warnings: &mut Vec<String>,
    ) -> std::result::Result<(), Stop> {
        let Some(head) = head else {
            warnings.push("head is missing or unreadable; all valid records are shown".to_owned());
            if folded.state.is_based() {
                *folded = self.blank();
            }
            return match self.fold_on(folded, Limit::End) {
                Err(Stop::Damage(damage)) if self.is_torn(&damage)? => {
                    warnings.push(format!("what follows the valid records is not shown ({damage})"));
                    Ok(())
                }
                other => other,
            };
        };
        if (head.segment, head.offset) < (folded.place.segment, folded.place.offset) {
            // Head went back: the files were put back from a copy, or doctor cut the log.
            *folded = self.blank();
        }
        self.fold_on(folded, Limit::Head(head.clone()))?;
        folded.covered = true;
        Ok(())
    }

    /// Folds on as far as a limit; on damage, up to the damage.
    pub(super) fn fold_on(&self, folded: &mut Folded, limit: Limit) -> std::result::Result<(), Stop> {
        let log = self.log()?;
        let mut scan = Scan::new(log, &self.info.store_id, folded.place.clone(), limit);
        loop {
            match scan.next() {
                Ok(Some(record)) => {
                    folded.newer |= record.v > super::record::FORMAT;
                    folded.state.apply(&record);
                    folded.place = scan.place.clone();
                }
                Ok(None) => return Ok(()),
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Whether a line that is whole in itself follows a damaged one: then it is no torn end.
    pub(super) fn valid_after(&self, damage: &Damage) -> Result<bool> {
        super::lines::sealed_from(self.log()?, damage.segment, damage.byte)
    }

    /// Refuses to write where a newer program wrote.
    pub(super) fn writable(&self, folded: &Folded) -> Result<()> {
        if self.info.format > 1 || folded.newer {
            return Err(Error::new(Kind::NewerFormat, "a newer nf wrote this store; nothing was written"));
        }
        Ok(())
    }
}
