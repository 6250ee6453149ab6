//! Reading the log forward: line by line, each verified against its own hash and against the record
//! before. Reads only; gives damage as data, so that each caller can judge it.

use super::damage::{Damage, Flaw};
use super::files::{Folder, Want};
use super::head::Head;
use super::lines::{Lines, Piece, next_sealed};
use super::record;
use crate::error::{Error, Kind, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::Hash;

/// The file name of a segment.
pub(super) fn segment_name(segment: u32) -> String {
    format!("{segment:08}.jsonl")
}

/// The number in a segment's file name.
pub(super) fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".jsonl")?;
    let number = digits.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// A point between two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: u32,
    /// Offset of the byte after the last record.
    pub offset: u64,
    /// Lines of this segment that lie before.
    pub line: u64,
    /// Number of the record before; 0 at the start.
    pub seq: u64,
    /// Hash of the record before; at the start, of `store.json`.
    pub hash: Hash,
    /// Whether the record before closed the segment.
    pub closed: bool,
}

impl Place {
    /// The start of the log.
    pub fn start(info: Hash) -> Self {
        Self { segment: 1, offset: 0, line: 0, seq: 0, hash: info, closed: false }
    }

    /// Whether head covers exactly up to here.
    pub fn is(&self, head: &Head) -> bool {
        (self.segment, self.offset, self.seq, self.hash) == (head.segment, head.offset, head.seq, head.hash)
    }

    /// Damage at the line that would begin here.
    pub fn damage(&self, flaw: Flaw) -> Damage {
        Damage { segment: self.segment, line: self.line + 1, byte: self.offset, flaw }
    }

    /// Behind a record whose line of `length` bytes (newline included) begins here.
    pub fn after(&self, record: &Record, length: u64) -> Self {
        Self {
            segment: self.segment,
            offset: self.offset + length,
            line: self.line + 1,
            seq: record.seq,
            hash: record.hash,
            closed: matches!(record.events.last(), Some(Event::SegmentClosed { .. })),
        }
    }

    /// The start of the next segment.
    pub fn next_segment(&self) -> Self {
        Self { segment: self.segment + 1, offset: 0, line: 0, closed: false, ..self.clone() }
    }
}

/// Why a scan stopped before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes are wrong.
    Damage(Damage),
    /// The file could not be read, or was written by a newer program.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl Stop {
    /// The error of a command that cannot go on.
    pub fn error(self) -> Error {
        match self {
            Self::Damage(damage) => damage.error(),
            Self::Error(error) => error,
        }
    }
}

/// How far a scan goes.
#[derive(Debug, Clone)]
pub(super) enum Limit {
    /// Up to what head covers; the log must hold all of it.
    Head(Head),
    /// As far as there are lines.
    End,
}

/// A verified walk over the log.
pub(super) struct Scan<'a> {
    log: &'a Folder,
    store: &'a str,
    /// Behind the last record given.
    pub place: Place,
    limit: Limit,
    lines: Option<Lines>,
    last: (usize, usize),
}

impl<'a> Scan<'a> {
    /// A walk that begins at a place.
    pub fn new(log: &'a Folder, store: &'a str, place: Place, limit: Limit) -> Self {
        Self { log, store, place, limit, lines: None, last: (0, 0) }
    }

    /// The next record; `None` where the limit is reached.
    pub fn next(&mut self) -> std::result::Result<Option<Record>, Stop> {
        if self.at_limit()? {
            return Ok(None);
        }
        if self.place.closed && !self.enter_next()? {
            return Ok(None);
        }
        let (from, to) = match self.piece()? {
            Piece::Line(from, to) => (from, to),
            Piece::Rest(from, to) => {
                let flaw = match record::flaw(self.bytes(from, to)) {
                    Flaw::Bits => Flaw::Torn,
                    flaw => flaw,
                };
                return Err(self.place.damage(flaw).into());
            }
            Piece::End => {
                return match self.limit {
                    Limit::End => Ok(None),
                    Limit::Head(_) => Err(self.place.damage(Flaw::Lost).into()),
                };
            }
        };
        self.last = (from, to);
        let read =
            record::read(self.bytes(from, to), &self.place.hash).map_err(|flaw| self.place.damage(flaw))?;
        let length = (to - from + 1) as u64;
        match read {
            record::Read::Newer { v, seq, prev, hash } => {
                self.place.follows(seq, prev)?;
                let (offset, line) = (self.place.offset + length, self.place.line + 1);
                self.place = Place { segment: self.place.segment, offset, line, seq, hash, closed: false };
                let message = format!("record {seq} (format {v}) was written by a newer nf");
                Err(Error::new(Kind::NewerFormat, message).into())
            }
            record::Read::Record(record) => {
                self.place.check(&record, self.store)?;
                self.place = self.place.after(&record, length);
                Ok(Some(*record))
            }
        }
    }

    /// Goes on behind damage, at the next line that is whole in itself, trusting it for its place; false
    /// where there is none. For a walk that wants to see all damage.
    pub fn resume(&mut self, flaw: Flaw) -> Result<bool> {
        let end = match &self.limit {
            Limit::Head(head) => (head.segment, head.offset),
            Limit::End => (u32::MAX, u64::MAX),
        };
        let mut at = (self.place.segment, self.place.offset, self.place.line);
        // The line here is the damaged one, unless it is whole and only what should precede it is missing.
        let mut skip = u32::from(!matches!(flaw, Flaw::Order | Flaw::Chain));
        loop {
            if let Some(place) = next_sealed(self.log, at, skip)? {
                let found = (place.segment, place.offset) < end;
                if found {
                    (self.place, self.lines) = (place, None);
                }
                return Ok(found);
            }
            let known_end = end.0 != u32::MAX;
            if at.0 >= end.0 || (!known_end && !self.log.has(&segment_name(at.0 + 1))?) {
                return Ok(false);
            }
            at = (at.0 + 1, 0, 0);
            skip = 0;
        }
    }

    /// The bytes of the line read last, without its newline.
    pub fn last_line(&self) -> &[u8] {
        self.bytes(self.last.0, self.last.1)
    }

    fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.lines.as_ref().map_or(&[], |lines| &lines.buffer[from..to])
    }

    fn at_limit(&self) -> std::result::Result<bool, Damage> {
        let Limit::Head(head) = &self.limit else { return Ok(false) };
        let (here, end) = ((self.place.segment, self.place.offset), (head.segment, head.offset));
        if here < end {
            return Ok(false);
        }
        if self.place.is(head) { Ok(true) } else { Err(self.place.damage(Flaw::Head)) }
    }

    /// Goes to the next segment; false where there is none and none is needed.
    fn enter_next(&mut self) -> std::result::Result<bool, Stop> {
        let name = segment_name(self.place.segment + 1);
        if matches!(self.limit, Limit::End) {
            if !matches!(self.piece()?, Piece::End) {
                return Err(self.place.damage(Flaw::After).into());
            }
            if !self.log.has(&name)? {
                return Ok(false);
            }
        }
        self.place = self.place.next_segment();
        self.lines = None;
        Ok(true)
    }

    fn piece(&mut self) -> std::result::Result<Piece, Stop> {
        let name = segment_name(self.place.segment);
        if self.lines.is_none() {
            let end = match &self.limit {
                Limit::Head(head) if head.segment == self.place.segment => head.offset,
                _ => u64::MAX,
            };
            let Some(opened) = self.log.open(&name, Want::Read)? else {
                let flaw = if self.place.segment == 1 && matches!(self.limit, Limit::End) {
                    return Ok(Piece::End);
                } else {
                    Flaw::Missing
                };
                return Err(self.place.damage(flaw).into());
            };
            self.lines = Some(Lines::new(opened.file, self.place.offset, end));
        }
        let Some(lines) = &mut self.lines else { return Ok(Piece::End) };
        lines.next().map_err(|error| {
            Error::io(format!("read of {}", self.log.member(&name).display()), &error).into()
        })
    }
}

impl Place {
    /// Whether a record of this number, on this hash, is the next one.
    pub fn follows(&self, seq: u64, prev: Hash) -> std::result::Result<(), Damage> {
        let expected = self.seq + 1;
        if seq == expected && prev == self.hash {
            return Ok(());
        }
        let flaw = match seq {
            _ if seq == expected => Flaw::Chain,
            _ if seq < expected && self.seq > 0 => Flaw::Repeated,
            _ => Flaw::Order,
        };
        Err(self.damage(flaw))
    }

    /// Everything about a whole line that the lines before decide.
    pub fn check(&self, record: &Record, store: &str) -> std::result::Result<(), Damage> {
        self.follows(record.seq, record.prev)?;
        let opens = match record.events.first() {
            Some(Event::SegmentOpened { segment, store: id, last }) => {
                *segment == self.segment && id == store && *last == record.prev
            }
            _ => false,
        };
        if opens != (self.offset == 0) {
            return Err(self.damage(Flaw::Foreign));
        }
        match record.events.last() {
            Some(Event::SegmentClosed { segment, bytes, .. })
                if (*segment, *bytes) != (self.segment, self.offset) =>
            {
                Err(self.damage(Flaw::Segment))
            }
            _ => Ok(()),
        }
    }
}
