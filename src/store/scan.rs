//! Reading the log forward: line by line, each verified against its own hash and against the record
//! before. Reads only; gives damage as data, so that each caller can judge it.

use std::fs::File;

use super::damage::{Damage, Flaw};
use super::files::{self, Folder, Want};
use super::head::Head;
use super::record::{self, LINE_LIMIT};
use crate::error::{Error, Kind, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::Hash;

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

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

/// A piece of a file between two newlines.
enum Piece {
    /// A line: where it stands in the buffer, without its newline.
    Line(usize, usize),
    /// Bytes without a newline at the end of the file, or more of them than a line may have.
    Rest(usize, usize),
    /// Nothing more.
    End,
}

/// The lines of one file.
struct Lines {
    file: File,
    /// Offset in the file of the buffer's end.
    read: u64,
    /// Offset after which nothing is read.
    end: u64,
    buffer: Vec<u8>,
    from: usize,
    /// Bytes of the buffer in which there is no newline after `from`.
    searched: usize,
}

impl Lines {
    fn new(file: File, offset: u64, end: u64) -> Self {
        Self { file, read: offset, end, buffer: Vec::new(), from: 0, searched: 0 }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> std::io::Result<bool> {
        let want = self.end.saturating_sub(self.read).min(CHUNK as u64) as usize;
        self.buffer.drain(..self.from);
        self.searched -= self.from;
        self.from = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + want, 0);
        let count = files::read_at(&self.file, &mut self.buffer[old..], self.read)?;
        self.buffer.truncate(old + count);
        self.read += count as u64;
        Ok(count > 0)
    }

    fn next(&mut self) -> std::io::Result<Piece> {
        loop {
            let unsearched = &self.buffer[self.searched..];
            if let Some(at) = find_newline(unsearched) {
                let line = Piece::Line(self.from, self.searched + at);
                self.from = self.searched + at + 1;
                self.searched = self.from;
                return Ok(line);
            }
            self.searched = self.buffer.len();
            let overlong = self.searched - self.from >= LINE_LIMIT;
            if overlong || !self.fill()? {
                let rest = Piece::Rest(self.from, self.searched);
                return Ok(if self.searched > self.from { rest } else { Piece::End });
            }
        }
    }
}

fn find_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
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
        let read = record::read(self.bytes(from, to)).map_err(|flaw| self.place.damage(flaw))?;
        let length = (to - from + 1) as u64;
        match read {
            record::Read::Newer { v, seq, prev } => {
                self.follows(seq, prev)?;
                let message = format!("record {seq} (format {v}) was written by a newer nf");
                Err(Error::new(Kind::NewerFormat, message).into())
            }
            record::Read::Record(record) => {
                self.check(&record)?;
                self.place = self.place.after(&record, length);
                Ok(Some(*record))
            }
        }
    }

    /// The bytes of the record given last, without its newline.
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

    fn follows(&self, seq: u64, prev: Hash) -> std::result::Result<(), Damage> {
        let expected = self.place.seq + 1;
        if seq == expected && prev == self.place.hash {
            return Ok(());
        }
        let flaw = match seq {
            _ if seq == expected => Flaw::Chain,
            _ if seq < expected && self.place.seq > 0 => Flaw::Repeated,
            _ => Flaw::Order,
        };
        Err(self.place.damage(flaw))
    }

    /// Everything about a whole line that the lines before decide.
    fn check(&self, record: &Record) -> std::result::Result<(), Damage> {
        self.follows(record.seq, record.prev)?;
        let opens = match record.events.first() {
            Some(Event::SegmentOpened { segment, store, last }) => {
                *segment == self.place.segment && store == self.store && *last == record.prev
            }
            _ => false,
        };
        if opens != (self.place.offset == 0) {
            return Err(self.place.damage(Flaw::Foreign));
        }
        match record.events.last() {
            Some(Event::SegmentClosed { segment, bytes, .. })
                if (*segment, *bytes) != (self.place.segment, self.place.offset) =>
            {
                Err(self.place.damage(Flaw::Segment))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a line that is whole in itself begins at or after a byte of a segment: then what is wrong there
/// is no torn end.
pub(super) fn sealed_from(log: &Folder, segment: u32, byte: u64) -> Result<bool> {
    let name = segment_name(segment);
    let Some(opened) = log.open(&name, Want::Read)? else { return Ok(false) };
    let mut lines = Lines::new(opened.file, byte, u64::MAX);
    loop {
        let piece = lines
            .next()
            .map_err(|error| Error::io(format!("read of {}", log.member(&name).display()), &error))?;
        match piece {
            Piece::Line(from, to) if record::sealed(&lines.buffer[from..to]).is_some() => return Ok(true),
            Piece::Line(..) => {}
            // An overlong line is passed over piece by piece; at the end of the file nothing follows.
            Piece::Rest(_, to) => lines.from = to,
            Piece::End => return Ok(false),
        }
    }
}
