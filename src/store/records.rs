//! The records that head covers, verified as they are read: forward from a number, or backward from head.

use super::Store;
use super::damage::{Damage, Flaw};
use super::files::{self, Opened, Want};
use super::head::{self, Head};
use super::record::{self, LINE_LIMIT};
use super::scan::{Limit, Place, Scan, Stop, segment_name};
use crate::error::{Error, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::Hash;

/// Bytes read at once on the way back.
const CHUNK: u64 = 64 * 1024;

/// Records oldest first; goes on when the log has grown.
pub struct Records<'a> {
    store: &'a Store,
    place: Place,
    scan: Option<Scan<'a>>,
    from: u64,
    /// Whether damage was met: then there is no going on.
    failed: bool,
}

/// Records newest first.
pub struct RecordsBack<'a> {
    store: &'a Store,
    segment: u32,
    /// Offset of the end of the next line to give.
    end: u64,
    /// The hash that it must have.
    hash: Hash,
    opened: Option<Opened>,
    /// Bytes that end at `end`.
    buffer: Vec<u8>,
    done: bool,
}

impl Store {
    /// The records from number `from` on, oldest first, as far as head covers. Everything before is
    /// verified too, and passed over.
    ///
    /// # Errors
    /// The iterator gives damage, and ends there.
    pub fn records(&self, from: u64) -> Records<'_> {
        Records { store: self, place: Place::start(self.info_hash), scan: None, from, failed: false }
    }

    /// The records that head covers, newest first; as cheap as what is taken of them.
    ///
    /// # Errors
    /// Head is missing and the log is damaged; the iterator gives damage, and ends there.
    pub fn records_back(&self) -> Result<RecordsBack<'_>> {
        let (segment, end, hash) = match self.head()? {
            Some(head) => (head.segment, head.offset, head.hash),
            None => {
                let mut folded = self.blank();
                self.fold_to_head(&mut folded, &mut Vec::new()).map_err(Stop::error)?;
                (folded.place.segment, folded.place.offset, folded.place.hash)
            }
        };
        Ok(self.records_back_from(segment, end, hash))
    }

    /// The records that head covers now, newest first, and those that it will cover after them, oldest first.
    ///
    /// # Errors
    /// As [`Store::records_back`].
    pub fn records_and_later(&self) -> Result<(RecordsBack<'_>, Records<'_>)> {
        let back = self.records_back()?;
        let mut newest = self.records_back_from(back.segment, back.end, back.hash);
        let record = newest.next().transpose()?;
        let closed = record
            .as_ref()
            .is_some_and(|record| matches!(record.events.last(), Some(Event::SegmentClosed { .. })));
        let place = Place {
            segment: back.segment,
            offset: back.end,
            line: self.lines_before(back.segment, record.as_ref())?,
            seq: record.as_ref().map_or(0, |record| record.seq),
            hash: back.hash,
            closed,
        };
        Ok((back, Records { store: self, place, scan: None, from: 0, failed: false }))
    }

    /// Lines of a segment up to a record: each record is a line, and the first one says its number.
    fn lines_before(&self, segment: u32, record: Option<&Record>) -> Result<u64> {
        let (Some(record), Some(opened)) = (record, self.log()?.open(&segment_name(segment), Want::Read)?)
        else {
            return Ok(0);
        };
        let mut lines = super::lines::Lines::new(opened.file, 0, u64::MAX);
        let first = match lines.next() {
            Ok(super::lines::Piece::Line(from, to)) => {
                serde_json::from_slice::<serde_json::Value>(&lines.buffer[from..to]).ok()
            }
            _ => None,
        };
        let first = first.and_then(|first| first.get("seq")?.as_u64()).unwrap_or(record.seq);
        Ok((record.seq + 1).saturating_sub(first))
    }

    fn records_back_from(&self, segment: u32, end: u64, hash: Hash) -> RecordsBack<'_> {
        RecordsBack { store: self, segment, end, hash, opened: None, buffer: Vec::new(), done: false }
    }

    /// What head covers now; `None` where head is missing or unreadable.
    pub(super) fn head(&self) -> Result<Option<Head>> {
        Ok(head::read(&self.folder, &self.info.store_id)?.newest().cloned())
    }

    /// The newest record that head covers; `None` where head is missing or unreadable. Cheap: what
    /// somebody who waits for new records looks at.
    ///
    /// # Errors
    /// A failed read.
    pub fn covered(&self) -> Result<Option<super::Position>> {
        Ok(self.head()?.map(|head| super::Position { seq: head.seq, hash: head.hash }))
    }
}

impl Records<'_> {
    /// Gives what head covers by now, after the end was reached once.
    fn look(&mut self) -> std::result::Result<Option<Record>, Stop> {
        if self.scan.is_none() {
            let limit = self.store.head()?.map_or(Limit::End, Limit::Head);
            if let Limit::Head(head) = &limit
                && (head.segment, head.offset) <= (self.place.segment, self.place.offset)
            {
                return Ok(None);
            }
            let log = self.store.log()?;
            self.scan = Some(Scan::new(log, &self.store.info.store_id, self.place.clone(), limit));
        }
        let Some(scan) = &mut self.scan else { return Ok(None) };
        loop {
            let record = scan.next()?;
            self.place = scan.place.clone();
            match record {
                Some(record) if record.seq < self.from => {}
                Some(record) => return Ok(Some(record)),
                None => {
                    self.scan = None;
                    return Ok(None);
                }
            }
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record>;

    /// `None` is the end for now: asked again later, the iterator looks whether head covers more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.look().map_err(Stop::error);
        self.failed = record.is_err();
        record.transpose()
    }
}

impl RecordsBack<'_> {
    fn step(&mut self) -> Result<Option<Record>> {
        if self.end == 0 {
            if self.segment <= 1 {
                return if self.hash == self.store.info_hash {
                    Ok(None)
                } else {
                    Err(self.damage(Flaw::Chain))
                };
            }
            self.segment -= 1;
            (self.opened, self.buffer) = (None, Vec::new());
            self.end = self.file()?.size;
        }
        let from = self.line_start()?;
        let (Some(b'\n'), line) = (self.buffer.last(), &self.buffer[from..]) else {
            return Err(self.damage(Flaw::Torn));
        };
        let line = &line[..line.len() - 1];
        // On the way back the hash before is not known; the record's own must be the one expected.
        let read = record::read(line, &self.hash).map_err(|flaw| self.damage(flaw))?;
        let record::Read::Record(record) = read else {
            let message = "a record was written by a newer nf";
            return Err(Error::new(crate::error::Kind::NewerFormat, message));
        };
        if record.hash != self.hash {
            return Err(self.damage(Flaw::Chain));
        }
        self.hash = record.prev;
        self.end -= (self.buffer.len() - from) as u64;
        self.buffer.truncate(from);
        Ok(Some(*record))
    }

    /// Where in the buffer the last line begins; reads more where it does not hold the whole line.
    fn line_start(&mut self) -> Result<usize> {
        loop {
            let body = &self.buffer[..self.buffer.len().saturating_sub(1)];
            if let Some(at) = body.iter().rposition(|byte| *byte == b'\n') {
                return Ok(at + 1);
            }
            let begin = self.end - self.buffer.len() as u64;
            if begin == 0 && !self.buffer.is_empty() {
                return Ok(0);
            }
            if self.buffer.len() > LINE_LIMIT {
                return Err(self.damage(Flaw::Torn));
            }
            let more = begin.min(CHUNK);
            let mut bytes = vec![0u8; more as usize];
            let read = files::read_at(&self.file()?.file, &mut bytes, begin - more)
                .map_err(|error| Error::io("read of the log", &error))?;
            if read as u64 != more || more == 0 {
                return Err(self.damage(Flaw::Lost));
            }
            bytes.extend_from_slice(&self.buffer);
            self.buffer = bytes;
        }
    }

    fn file(&mut self) -> Result<&Opened> {
        if self.opened.is_none() {
            self.opened = self.store.log()?.open(&segment_name(self.segment), Want::Read)?;
        }
        let missing = Damage { segment: self.segment, line: 1, byte: 0, flaw: Flaw::Missing };
        self.opened.as_ref().ok_or_else(|| missing.error())
    }

    /// Damage somewhere in the line that ends at `end`; on the way back lines have no numbers.
    fn damage(&self, flaw: Flaw) -> Error {
        Damage { segment: self.segment, line: 0, byte: self.end, flaw }.error()
    }
}

impl Iterator for RecordsBack<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.step();
        self.done = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}
