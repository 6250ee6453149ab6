//! Lines of a segment as they stand, read in pieces of bounded size. Verifies nothing but, where asked,
//! whether a line is whole in itself.

use std::fs::File;

use super::files::{self, Folder, Want};
use super::record::{self, LINE_LIMIT};
use super::scan::{Place, segment_name};
use crate::error::{Error, Result};

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// A piece of a file between two newlines.
pub(super) enum Piece {
    /// A line: where it stands in the buffer, without its newline.
    Line(usize, usize),
    /// Bytes without a newline at the end of the file, or more of them than a line may have.
    Rest(usize, usize),
    /// Nothing more.
    End,
}

/// The lines of one file.
pub(super) struct Lines {
    file: File,
    /// Offset in the file of the buffer's end.
    read: u64,
    /// Offset after which nothing is read.
    end: u64,
    pub buffer: Vec<u8>,
    /// Bytes of the buffer that were read; what is behind them is room.
    filled: usize,
    from: usize,
    /// Bytes of the buffer in which there is no newline after `from`.
    searched: usize,
}

impl Lines {
    /// The lines from an offset on; nothing at or after `end` is read.
    pub fn new(file: File, offset: u64, end: u64) -> Self {
        Self { file, read: offset, end, buffer: Vec::new(), filled: 0, from: 0, searched: 0 }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> std::io::Result<bool> {
        let want = self.end.saturating_sub(self.read).min(CHUNK as u64) as usize;
        self.buffer.copy_within(self.from..self.filled, 0);
        self.filled -= self.from;
        self.searched -= self.from;
        self.from = 0;
        let end = self.filled + want;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        let count = files::read_at(&self.file, &mut self.buffer[self.filled..end], self.read)?;
        self.filled += count;
        self.read += count as u64;
        Ok(count > 0)
    }

    /// The next piece.
    pub fn next(&mut self) -> std::io::Result<Piece> {
        loop {
            if let Some(at) = find_newline(&self.buffer[self.searched..self.filled]) {
                let line = Piece::Line(self.from, self.searched + at);
                self.from = self.searched + at + 1;
                self.searched = self.from;
                return Ok(line);
            }
            self.searched = self.filled;
            let overlong = self.searched - self.from >= LINE_LIMIT;
            if overlong || !self.fill()? {
                let rest = Piece::Rest(self.from, self.searched);
                return Ok(if self.searched > self.from { rest } else { Piece::End });
            }
        }
    }
}

fn find_newline(bytes: &[u8]) -> Option<usize> {
    // The standard library's own search goes by words, not by bytes.
    let passed = std::io::BufRead::skip_until(&mut &*bytes, b'\n').ok()?;
    (passed > 0 && bytes[passed - 1] == b'\n').then(|| passed - 1)
}

/// Whether a line that is whole in itself begins at or after a byte of a segment: then what is wrong there
/// is no torn end.
pub(super) fn sealed_from(log: &Folder, segment: u32, byte: u64) -> Result<bool> {
    Ok(next_sealed(log, (segment, byte, 0), 0)?.is_some())
}

/// The place before the next line that is whole in itself, at or after a segment's byte (its third part
/// counts the lines before), when `skip` lines are passed over.
pub(super) fn next_sealed(log: &Folder, from: (u32, u64, u64), mut skip: u32) -> Result<Option<Place>> {
    let (segment, mut offset, mut line) = from;
    let Some(mut raw) = RawLines::open(log, segment, offset)? else { return Ok(None) };
    while let Some(bytes) = raw.next()? {
        let whole = bytes.strip_suffix(b"\n").filter(|bytes| record::sealed(bytes).is_some());
        let envelope = whole.and_then(|bytes| serde_json::from_slice::<record::Envelope>(bytes).ok());
        if let Some(envelope) = envelope.filter(|_| skip == 0) {
            let seq = envelope.seq.saturating_sub(1);
            return Ok(Some(Place { segment, offset, line, seq, hash: envelope.prev, closed: false }));
        }
        skip = skip.saturating_sub(1);
        offset += bytes.len() as u64;
        line += 1;
    }
    Ok(None)
}

/// The lines of one segment as they stand, newline included, whatever they are.
pub(super) struct RawLines {
    lines: Lines,
    what: String,
}

impl RawLines {
    /// The lines of a segment from a byte on; `None` where the segment is missing.
    pub fn open(log: &Folder, segment: u32, byte: u64) -> Result<Option<Self>> {
        let name = segment_name(segment);
        let Some(opened) = log.open(&name, Want::Read)? else { return Ok(None) };
        let what = format!("read of {}", log.member(&name).display());
        Ok(Some(Self { lines: Lines::new(opened.file, byte, u64::MAX), what }))
    }

    /// The next line; an overlong one, and the end of the file, come without a newline.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let piece = self.lines.next().map_err(|error| Error::io(&self.what, &error))?;
        Ok(match piece {
            Piece::Line(from, to) => Some(&self.lines.buffer[from..=to]),
            Piece::Rest(from, to) => {
                self.lines.from = to;
                Some(&self.lines.buffer[from..to])
            }
            Piece::End => None,
        })
    }
}
