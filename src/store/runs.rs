//! Rows that are put out of memory: sorted runs in files without a name, newest over older, so that a fold of
//! any length needs little memory and is walked in order in the end. Gone with the process; never an index.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::files;
use crate::model::tables::Base;

#[cfg(test)]
mod tests;
mod walk;

pub(super) use walk::Walk;

/// Bytes of a block: what is read to find one row.
const BLOCK: usize = if cfg!(test) { 128 } else { 8 * 1024 };
/// Runs of one level that are put together into one of the next.
const FAN: usize = if cfg!(test) { 2 } else { 8 };
/// Bits of a run's filter for each row: about one key in a hundred that a run lacks is looked for in it.
const BITS: u64 = 10;
/// Bits that a key sets in a filter.
const PROBES: u64 = 4;
/// The length that stands in the place of a value that was removed.
const REMOVED: u32 = u32::MAX;
/// Bytes before the key of a row: the lengths of key and value.
const LENGTHS: usize = 6;

/// A key and its value, or that it was removed.
type Row<'a> = (&'a [u8], Option<&'a [u8]>);
type OwnedRow = (Vec<u8>, Option<Vec<u8>>);

/// One sorted run.
#[derive(Debug)]
struct Run {
    file: File,
    /// The first key and the offset of each block; the offset behind the last one is `end`.
    blocks: Vec<(Vec<u8>, u64)>,
    end: u64,
    filter: Vec<u64>,
    rows: u64,
    level: u32,
    /// The block read last, and its number.
    last: Mutex<(usize, Arc<Vec<u8>>)>,
}

/// All runs, oldest first, as a base of tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    runs: Vec<Arc<Run>>,
    /// Whether something that was put out could not be read again: then nothing found here counts.
    broken: Arc<AtomicBool>,
}

impl Runs {
    /// Puts changes out, given in the order of their keys, into a file of their own; `fresh` makes files. A
    /// value is given as what adds its bytes to others.
    ///
    /// # Errors
    /// A failed write or read; then nothing has changed.
    pub fn put_out<'a>(
        &mut self,
        changes: impl Iterator<Item = (&'a [u8], Option<impl FnOnce(&mut Vec<u8>)>)>,
        fresh: &dyn Fn() -> Option<File>,
    ) -> io::Result<()> {
        let mut writer = Writer::new(fresh, changes.size_hint().0 as u64, 0)?;
        for (key, value) in changes {
            writer.row(key, value)?;
        }
        let mut runs = self.runs.clone();
        runs.push(Arc::new(writer.finish()?));
        while let Some(from) = full_level(&runs) {
            let (mut walk, rows) = (Walk::new(&runs[from..])?, runs[from..].iter().map(|run| run.rows).sum());
            let mut writer = Writer::new(fresh, rows, runs[from].level + 1)?;
            while let Some((key, value)) = walk.row() {
                // Nothing lies below the oldest run that a removed row could hide.
                if value.is_some() || from > 0 {
                    writer.row(key, value.map(|value| |into: &mut Vec<u8>| into.extend_from_slice(value)))?;
                }
                walk.step()?;
            }
            runs.truncate(from);
            runs.push(Arc::new(writer.finish()?));
        }
        self.runs = runs;
        Ok(())
    }

    /// All rows in order, those that were removed too.
    ///
    /// # Errors
    /// A failed read.
    pub fn walk(&self) -> io::Result<Walk> {
        Walk::new(&self.runs)
    }

    /// Whether everything that was looked up could be read.
    pub fn is_sound(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
    }

    fn sound<T>(&self, found: io::Result<Option<T>>) -> Option<T> {
        found.unwrap_or_else(|_| {
            self.broken.store(true, Ordering::Relaxed);
            None
        })
    }

    /// The row at one end of a range: the newest of its key, that of no removed key.
    fn end_row(
        &self,
        mut from: Bound<Vec<u8>>,
        mut to: Bound<Vec<u8>>,
        back: bool,
    ) -> io::Result<Option<OwnedRow>> {
        loop {
            let mut found: Option<OwnedRow> = None;
            let (low, high) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
            for run in &self.runs {
                let row = if back { run.last(low, high)? } else { run.first(low, high)? };
                let Some(row) = row else { continue };
                let nearer = |before: &OwnedRow| if back { row.0 >= before.0 } else { row.0 <= before.0 };
                if found.as_ref().is_none_or(nearer) {
                    found = Some(row);
                }
            }
            match found {
                Some((key, None)) if back => to = Bound::Excluded(key),
                Some((key, None)) => from = Bound::Excluded(key),
                found => return Ok(found),
            }
        }
    }
}

/// Where the newest runs begin that are enough of one level to be put together.
fn full_level(runs: &[Arc<Run>]) -> Option<usize> {
    let from = runs.len().checked_sub(FAN)?;
    (runs[from].level == runs[runs.len() - 1].level).then_some(from)
}

impl Base for Runs {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let hash = hash(key);
        for run in self.runs.iter().rev().filter(|run| run.may_hold(hash)) {
            let bounds = (Bound::Included(key), Bound::Included(key));
            if let Some((_, value)) = self.sound(run.first(bounds.0, bounds.1)) {
                return value;
            }
        }
        None
    }

    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let row = self.sound(self.end_row(from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec), false));
        row.and_then(|(key, value)| Some((key, value?)))
    }

    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let row = self.sound(self.end_row(from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec), true));
        row.and_then(|(key, value)| Some((key, value?)))
    }
}

/// A number of a key for the filters: eight bytes of it at a time. Keys that were made to collide would cost
/// looks into a run, and nothing else.
fn hash(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        mix(word.try_into().map_or(0, u64::from_le_bytes));
    }
    mix(words.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    hash ^ hash >> 29
}

/// The bits of a key in a filter of so many words.
fn bits(hash: u64, words: usize) -> impl Iterator<Item = (usize, u64)> {
    (0..PROBES).map(move |probe| {
        let mixed = hash.wrapping_add(probe.wrapping_mul(hash >> 17 | 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = (u128::from(mixed) * (words as u128 * 64)) >> 64;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

/// The row that begins at a byte of a block, and where the next one begins; `None` at the end.
fn row_at(block: &[u8], at: usize) -> Option<(Row<'_>, usize)> {
    let lengths = block.get(at..at + LENGTHS)?;
    let key = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
    let value = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]);
    let from = at + LENGTHS + key;
    let to = if value == REMOVED { from } else { from + value as usize };
    let row = (block.get(at + LENGTHS..from)?, block.get(from..to)?);
    Some(((row.0, (value != REMOVED).then_some(row.1)), to))
}

/// The rows of a block.
fn rows(block: &[u8]) -> impl Iterator<Item = Row<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (row, next) = row_at(block, at)?;
        at = next;
        Some(row)
    })
}

fn is_above(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }
}

fn is_below(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    }
}

fn owned((key, value): Row<'_>) -> OwnedRow {
    (key.to_vec(), value.map(<[u8]>::to_vec))
}

impl Run {
    fn may_hold(&self, hash: u64) -> bool {
        bits(hash, self.filter.len()).all(|(word, bit)| self.filter[word] & bit != 0)
    }

    /// The bytes of a block.
    fn block(&self, number: usize) -> io::Result<Arc<Vec<u8>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != number {
            let mut block = Vec::new();
            self.read(number, &mut block)?;
            *last = (number, Arc::new(block));
        }
        Ok(last.1.clone())
    }

    /// Reads a block into bytes that were another one's.
    fn read(&self, number: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let from = self.blocks[number].1;
        let to = self.blocks.get(number + 1).map_or(self.end, |block| block.1);
        bytes.resize((to - from) as usize, 0);
        match files::read_at(&self.file, bytes, from)? {
            read if read == bytes.len() => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The first row of a range.
    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> io::Result<Option<OwnedRow>> {
        let after = self.blocks.partition_point(|(first, _)| !is_above(first, from));
        for number in after.saturating_sub(1)..self.blocks.len() {
            if !is_below(&self.blocks[number].0, to) {
                break;
            }
            let block = self.block(number)?;
            if let Some(row) = rows(&block).find(|(key, _)| is_above(key, from)) {
                return Ok(is_below(row.0, to).then(|| owned(row)));
            }
        }
        Ok(None)
    }

    /// The last row of a range.
    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> io::Result<Option<OwnedRow>> {
        let after = self.blocks.partition_point(|(first, _)| is_below(first, to));
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        // The block begins below the end of the range, so its last row there is the one, or there is none.
        let block = self.block(number)?;
        let row = rows(&block).take_while(|(key, _)| is_below(key, to)).last();
        Ok(row.filter(|(key, _)| is_above(key, from)).map(owned))
    }
}

/// Writes one run.
struct Writer {
    file: BufWriter<File>,
    run: Run,
    block: Vec<u8>,
}

impl Writer {
    fn new(fresh: &dyn Fn() -> Option<File>, rows: u64, level: u32) -> io::Result<Self> {
        let file = fresh().ok_or(ErrorKind::Other)?;
        let filter = vec![0; (rows * BITS / 64 + 1) as usize];
        let written = BufWriter::with_capacity(64 * 1024, file.try_clone()?);
        let last = Mutex::new((usize::MAX, Arc::default()));
        let run = Run { file, blocks: Vec::new(), end: 0, filter, rows: 0, level, last };
        Ok(Self { file: written, run, block: Vec::with_capacity(BLOCK * 2) })
    }

    fn row(&mut self, key: &[u8], value: Option<impl FnOnce(&mut Vec<u8>)>) -> io::Result<()> {
        let (run, block) = (&mut self.run, &mut self.block);
        if block.is_empty() {
            run.blocks.push((key.to_vec(), run.end));
        }
        let mut lengths = [0; LENGTHS];
        lengths[..2].copy_from_slice(&(key.len() as u16).to_le_bytes());
        lengths[2..].copy_from_slice(&REMOVED.to_le_bytes());
        let at = block.len() + 2;
        block.extend_from_slice(&lengths);
        block.extend_from_slice(key);
        if let Some(write) = value {
            // How long a value is, is known once it is written.
            let from = block.len();
            write(block);
            let length = (block.len() - from) as u32;
            block[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        let words = run.filter.len();
        bits(hash(key), words).for_each(|(word, bit)| run.filter[word] |= bit);
        run.rows += 1;
        if self.block.len() >= BLOCK { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.file.write_all(&self.block)?;
        self.run.end += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Run> {
        self.end_block()?;
        self.file.flush()?;
        Ok(self.run)
    }
}
