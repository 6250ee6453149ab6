//! Mending a damaged log: which lines of it are whole and in their place, and how they are put into files
//! anew. Every change is a new file, renamed over the old one, whose bytes are kept in `torn/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use super::Store;
use super::append::Locked;
use super::files;
use super::head::Head;
use super::lines::RawLines;
use super::record::{self, Read};
use super::scan::{Place, segment_name, segment_number};
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::hash::Hash;

/// Longest line in which a flipped bit is looked for.
const REPAIR_LIMIT: usize = 32 * 1024;

/// One segment as it can be kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub number: u32,
    /// Where the segment begins.
    start: Place,
    /// Behind the last line kept.
    pub place: Place,
    /// Whether the lines kept differ from the bytes that begin the file.
    changed: bool,
    /// Offset in the file behind the last line kept, where bytes follow it.
    rest: Option<u64>,
    /// Whether whole lines are not among those kept.
    dropped: bool,
    /// Whether the record that head covers is another.
    misled: bool,
}

/// What can be kept of a log.
#[derive(Debug)]
pub(super) struct Plan {
    pub segments: Vec<Kept>,
    /// Behind the last line kept; `None` where nothing is.
    pub place: Option<Place>,
    /// Segments that follow what can be kept.
    pub later: Vec<u32>,
    /// Whether records that were durable are not among those kept.
    pub loss: bool,
}

impl Plan {
    /// Whether a file must be written anew, whatever else is asked.
    pub fn changes(&self) -> bool {
        self.loss || self.segments.iter().any(|kept| kept.changed)
    }
}

impl Store {
    /// Finds out what can be kept.
    pub(super) fn plan(&self, head: Option<&Head>) -> Result<Plan> {
        let log = self.log()?;
        let numbers: Vec<u32> = log.names()?.iter().filter_map(|name| segment_number(name)).collect();
        let (mut segments, mut next) = (Vec::<Kept>::new(), Some(Place::start(self.info_hash)));
        while let Some(start) = next.take() {
            let Some(kept) = self.keep(&start, head, None)? else { break };
            if kept.place.closed {
                next = Some(kept.place.next_segment());
            }
            if kept.place.seq > start.seq || start.segment == 1 {
                segments.push(kept);
            }
        }
        let place = segments.last().map(|kept| kept.place.clone()).filter(|place| place.seq > 0);
        let last = segments.last().map_or(0, |kept| kept.number);
        let after_close = place.as_ref().is_some_and(|place| place.closed).then_some(last + 1);
        // The segment after a closed one may be empty or torn: that is a change of segments cut short.
        let unfinished = |number: &u32| {
            Some(*number) == after_close && !super::lines::sealed_from(log, *number, 0).unwrap_or(true)
        };
        let covers = head.is_none_or(|head| place.as_ref().is_some_and(|place| place.seq >= head.seq));
        let later: Vec<u32> =
            numbers.into_iter().filter(|number| *number > last && !(covers && unfinished(number))).collect();
        let dropped = segments.iter().any(|kept| kept.dropped || kept.misled);
        let loss = dropped || !covers || place.is_none() || !later.is_empty();
        Ok(Plan { segments, place, later, loss })
    }

    /// Walks over one segment and gives what is kept of it, written to `out` where that is given.
    fn keep(
        &self,
        start: &Place,
        head: Option<&Head>,
        out: Option<(&File, &std::path::Path)>,
    ) -> Result<Option<Kept>> {
        let number = start.segment;
        let Some(mut raw) = RawLines::open(self.log()?, number, 0)? else { return Ok(None) };
        let mut kept = Kept {
            number,
            start: start.clone(),
            place: start.clone(),
            changed: false,
            rest: None,
            dropped: false,
            misled: false,
        };
        let (mut offset, mut pool) = (0u64, Pool::default());
        while let Some(bytes) = raw.next()? {
            offset += bytes.len() as u64;
            let mended = whole(bytes);
            let mut next: Vec<Vec<u8>> = Vec::new();
            let lines = mended.as_deref().unwrap_or(bytes);
            next.extend(lines.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).rev());
            let (mut taken, mut pooled) = (0, 0);
            while let Some(line) = next.pop() {
                let Some((place, hash)) = self.take(&kept.place, &line)? else {
                    pool.put(line);
                    continue;
                };
                kept.misled |= head.is_some_and(|head| head.seq == place.seq && head.hash != hash);
                if let Some((file, path)) = out {
                    files::write_at(file, &line, kept.place.offset, path)?;
                }
                (kept.place, taken) = (place, taken + 1);
                // A line that stood before its turn.
                if let Some(line) = pool.after(hash) {
                    pooled += 1;
                    next.push(line);
                }
            }
            if taken > 0 {
                kept.changed |= kept.rest.is_some() || mended.is_some() || pooled > 0;
                kept.rest = None;
            } else if kept.rest.is_none() {
                kept.rest = Some(offset - bytes.len() as u64);
            }
        }
        kept.dropped = !pool.lines.is_empty();
        // Nothing may follow a closing record.
        kept.changed |= kept.place.closed && kept.rest.is_some();
        Ok(Some(kept))
    }

    /// The place behind a line, if it is the next record.
    ///
    /// # Errors
    /// A newer program wrote it: what it means is not for this one to judge.
    fn take(&self, place: &Place, line: &[u8]) -> Result<Option<(Place, Hash)>> {
        let Some(body) = line.strip_suffix(b"\n") else { return Ok(None) };
        let newer = || Error::new(Kind::NewerFormat, "a newer nf wrote this log; nothing was changed");
        match record::read(body, &place.hash) {
            Ok(Read::Record(record)) if record.v > record::FORMAT => Err(newer()),
            Ok(Read::Newer { .. }) => Err(newer()),
            Ok(Read::Record(record))
                if !place.closed && place.check(&record, &self.info.store_id).is_ok() =>
            {
                Ok(Some((place.after(&record, line.len() as u64), record.hash)))
            }
            _ => Ok(None),
        }
    }
}

/// Whole lines that are not in their place, by the record that they follow.
#[derive(Default)]
struct Pool {
    lines: BTreeMap<Hash, Vec<u8>>,
    /// Those that found their place: the same line again is only a repetition.
    kept: BTreeSet<Hash>,
}

impl Pool {
    /// Keeps a line that is whole and not a repetition; another one after the same record is kept too.
    fn put(&mut self, line: Vec<u8>) {
        let body = line.strip_suffix(b"\n").unwrap_or(&line);
        let Some(hash) = record::sealed(body).filter(|hash| !self.kept.contains(hash)) else { return };
        let prev = serde_json::from_slice::<record::Envelope>(body).map_or(hash, |envelope| envelope.prev);
        let key = if self.lines.contains_key(&prev) { hash } else { prev };
        self.lines.insert(key, line);
    }

    /// The line that follows a record that was kept.
    fn after(&mut self, hash: Hash) -> Option<Vec<u8>> {
        self.kept.insert(hash);
        self.lines.remove(&hash)
    }
}

/// A line as it was before a small damage, newline included, if its own hash proves it; one newline may
/// have been lost between two lines. `None` where the line is whole, or cannot be mended.
fn whole(line: &[u8]) -> Option<Vec<u8>> {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    if record::sealed(body).is_some() {
        return (body.len() == line.len()).then(|| [body, b"\n"].concat());
    }
    if let Some(body) = body.strip_suffix(b"\r").filter(|body| record::sealed(body).is_some()) {
        return Some([body, b"\n"].concat());
    }
    if body.len() > REPAIR_LIMIT {
        return None;
    }
    split_again(body).or_else(|| uncovered(body)).or_else(|| flipped_back(body))
}

/// Two lines, or one and nothing, whose newline was flipped into something else.
fn split_again(body: &[u8]) -> Option<Vec<u8>> {
    let near = |byte: &u8| (byte ^ b'\n').count_ones() == 1;
    let places = (0..body.len()).filter(|at| near(&body[*at]));
    places.into_iter().find_map(|at| {
        let (one, two) = (&body[..at], &body[at + 1..]);
        record::sealed(one)?;
        match two {
            [] => Some([one, b"\n"].concat()),
            two => record::sealed(two).map(|_| [one, b"\n", two, b"\n"].concat()),
        }
    })
}

/// A line before which bytes were put, such as zeros without a newline of their own.
fn uncovered(body: &[u8]) -> Option<Vec<u8>> {
    let starts = (1..body.len()).filter(|at| body[*at..].starts_with(b"{\"v\":"));
    let at = starts.into_iter().find(|at| record::sealed(&body[*at..]).is_some())?;
    Some([&body[at..], b"\n"].concat())
}

/// A line of which one bit was flipped.
fn flipped_back(body: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = body.to_vec();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            if record::sealed(&bytes).is_some() {
                bytes.push(b'\n');
                return Some(bytes);
            }
            bytes[at] ^= 1 << bit;
        }
    }
    None
}

impl Locked<'_> {
    /// Puts a log in place that holds what the plan keeps; from segment `from` on every file is written
    /// anew, whether or not it changed. Gives what was given up, if records were.
    pub fn mend_log(&mut self, plan: &Plan, from: u32) -> Result<Vec<Event>> {
        let store = self.store;
        let log = store.log()?;
        let mut given_up = Vec::new();
        let end = plan.place.as_ref().map_or(1, |place| place.segment);
        for kept in &plan.segments {
            let number = kept.number;
            let rest = if plan.place.is_some() { kept.rest } else { Some(0) };
            let lost = rest.filter(|_| plan.loss && number == end);
            if let Some(offset) = lost {
                let (_, quarantined, bytes) = store.keep_torn(number, offset)?;
                given_up.push(Event::LossAccepted { segment: number, offset, bytes, quarantined });
            }
            if kept.changed {
                store.keep_torn(number, 0)?;
            } else if let (Some(offset), true, None) = (kept.rest, number >= from, lost) {
                store.keep_torn(number, offset)?;
            }
            if kept.changed || number >= from || lost.is_some() {
                self.write_anew(kept)?;
            }
        }
        for number in &plan.later {
            let (_, quarantined, bytes) = store.keep_torn(*number, 0)?;
            given_up.push(Event::LossAccepted { segment: *number, offset: 0, bytes, quarantined });
            log.unlink(&segment_name(*number))?;
        }
        if let (true, true, Some(place)) = (plan.loss, given_up.is_empty(), &plan.place) {
            // The log is shorter than it was: there is nothing to keep, and that is to be said as well.
            let (segment, offset) = (place.segment, place.offset);
            given_up.push(Event::LossAccepted { segment, offset, bytes: 0, quarantined: Hash::of(&[]) });
        }
        log.sync()?;
        self.forget_segment();
        Ok(given_up)
    }

    fn write_anew(&self, kept: &Kept) -> Result<()> {
        let log = self.store.log()?;
        let name = segment_name(kept.number);
        let fresh = format!("{name}.new");
        let path = log.member(&fresh);
        let file = log.create_fresh(&fresh, self.store.folder.access.file())?;
        let again = self.store.keep(&kept.start, None, Some((&file, &path)))?;
        if again.is_none_or(|again| again.place != kept.place) {
            return Err(Error::new(
                Kind::Damaged,
                format!("segment {} changed while it was mended", kept.number),
            ));
        }
        files::sync_bytes(&file, &path)?;
        log.rename(&fresh, log, &name)?;
        log.sync()
    }
}
