//! Recovery: the one routine that brings the log's end in order. Only a holder of the lock mends, only
//! beyond head, and only what was never acknowledged is taken away (and even that is kept in `torn/`).

use super::Store;
use super::append::Locked;
use super::damage::{Damage, Flaw};
use super::files::{self, Want};
use super::fold::Folded;
use super::head::{Head, boot_mark};
use super::scan::{Limit, Place, Scan, Stop, segment_name};
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::hash::{Hash, Hasher};
use crate::model::time::{Moment, Source};

/// Bytes copied at once.
const CHUNK: usize = 256 * 1024;

/// What lies beyond head.
struct Tail {
    /// Where it begins.
    start: Place,
    /// How many whole records it has.
    records: u64,
    /// Events with consequences outside the log.
    events: Vec<Event>,
    /// Bytes after the last whole record: their segment and offset.
    torn: Option<(u32, u64)>,
}

impl Locked<'_> {
    /// Folds on up to head and makes durable what lies beyond it, so that everything answered after this
    /// rests on records that head covers.
    pub fn catch_up(&mut self, folded: &mut Folded, source: &Source) -> Result<()> {
        let head = self.head.slots.newest().cloned();
        let moved = head.as_ref().is_none_or(|head| head.device != self.store.folder.device());
        if moved {
            self.self_check()?;
        }
        if let Some(head) = &head {
            let back = (head.segment, head.offset) < (folded.place.segment, folded.place.offset);
            if back || !folded.covered {
                *folded = self.store.blank();
            }
            let limit = Limit::Head(head.clone());
            if let Some(newer) = self.store.newer_rows(folded, head) {
                *folded = newer;
            }
            match self.store.fold_on(folded, limit.clone()) {
                // The index may be wrong about the log: what the log itself says counts.
                Err(Stop::Damage(_)) if folded.state.is_based() => {
                    *folded = self.store.blank();
                    self.store.fold_on(folded, limit).map_err(Stop::error)?;
                }
                other => other.map_err(Stop::error)?,
            }
            folded.covered = true;
        } else {
            // Another process may have cut what this one saw: without head nothing is certain.
            *folded = self.store.blank();
        }
        self.store.writable(folded)?;
        if let Some(head) = &head {
            let size = self.open_segment(head.segment, Want::Append)?;
            let size = size.ok_or_else(|| folded.place.damage(Flaw::Missing).error())?;
            if size < head.offset {
                return Err(folded.place.damage(Flaw::Lost).error());
            }
            if size == head.offset && !folded.place.closed {
                return if moved { self.cover(folded, &(source.moment)()) } else { Ok(()) };
            }
        }
        self.mend(folded, head.as_ref(), &(source.moment)())
    }

    /// The two tables of the store contract, for what lies beyond head.
    fn mend(&mut self, folded: &mut Folded, head: Option<&Head>, now: &Moment) -> Result<()> {
        let tail = self.store.tail(folded)?;
        self.store.writable(folded)?;
        if folded.place.seq == 0 {
            return Err(folded.place.damage(Flaw::Lost).error());
        }
        if let Some((segment, offset)) = tail.torn {
            let doubt = head.is_none_or(|head| head.boot != boot_mark(&now.boot_id));
            self.quarantine(segment, offset, doubt)?;
        }
        if head.is_some() {
            self.rewrite(&tail.start, &folded.place)?;
            if tail.records > 0 {
                let count = tail.records;
                self.notes
                    .push(format!("{count} record(s) whose writer died before head covered them now count"));
            }
        } else {
            self.sync(folded.place.segment)?;
            self.store.log()?.sync().map_err(|error| self.store.poisoned_by(error))?;
            self.notes.push("head was missing or unreadable; it was written again".to_owned());
        }
        self.cover(folded, now)?;
        if head.is_none() {
            self.sync_head()?;
        } else {
            self.store.settle(&tail.events, true, &mut self.notes);
        }
        if folded.place.closed { self.begin_segment(folded, now) } else { Ok(()) }
    }

    /// Moves the bytes from an offset to a segment's end into `torn/`, durably, and cuts them off.
    pub fn quarantine(&mut self, segment: u32, offset: u64, doubt: bool) -> Result<(Hash, u64)> {
        let (name, hash, bytes) = self.store.keep_torn(segment, offset)?;
        let log = self.store.log()?;
        let path = log.member(&segment_name(segment));
        let opened = log.open(&segment_name(segment), Want::Write)?;
        let opened = opened.ok_or_else(|| Error::new(Kind::Io, format!("{} vanished", path.display())))?;
        files::truncate(&opened.file, offset, &path)?;
        files::sync_bytes(&opened.file, &path).map_err(|error| self.store.poisoned_by(error))?;
        let verdict = if doubt { "are unacknowledged or damaged" } else { "were never acknowledged" };
        self.notes.push(format!(
            "{bytes} bytes after the last record of segment {segment} {verdict}; moved to torn/{name} \
             (hash {hash})"
        ));
        Ok((hash, bytes))
    }

    /// Writes the records between two places again with the same bytes: after a failed sync the kernel
    /// calls lost pages clean, and only writing makes them dirty again.
    fn rewrite(&mut self, start: &Place, end: &Place) -> Result<()> {
        let log = self.store.log()?;
        for segment in start.segment..=end.segment {
            let name = segment_name(segment);
            let path = log.member(&name);
            let from = if segment == start.segment { start.offset } else { 0 };
            if segment < end.segment && !self.store.info.shared {
                // A full segment is read-only already, where only head stayed behind.
                log.chmod(&name, self.store.folder.access.file())?;
            }
            let Some(opened) = log.open(&name, Want::Write)? else { continue };
            let to = if segment == end.segment { end.offset } else { opened.size };
            copy(&opened.file, from..to, |bytes, at| files::write_at(&opened.file, bytes, at, &path))?;
            files::sync_bytes(&opened.file, &path).map_err(|error| self.store.poisoned_by(error))?;
            if segment < end.segment {
                self.store.freeze(segment);
            }
        }
        if end.segment > start.segment {
            log.sync().map_err(|error| self.store.poisoned_by(error))?;
        }
        Ok(())
    }
}

impl Store {
    /// Folds everything beyond a place.
    ///
    /// # Errors
    /// What lies there is no torn end but damage.
    fn tail(&self, folded: &mut Folded) -> Result<Tail> {
        let start = folded.place.clone();
        let (mut records, mut events, mut torn) = (0, Vec::new(), None);
        let mut scan = Scan::new(self.log()?, &self.info.store_id, start.clone(), Limit::End);
        loop {
            match scan.next() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    records += 1;
                    folded.newer |= record.v > super::record::FORMAT;
                    folded.state.apply(&record);
                    folded.place = scan.place.clone();
                    let matters = |event: &Event| {
                        event.ended_attempt().is_some() || matches!(event, Event::ReceiptRecorded { .. })
                    };
                    events.extend(record.events.into_iter().filter(matters));
                }
                Err(Stop::Damage(damage)) if self.is_torn(&damage)? => {
                    torn = Some((damage.segment, damage.byte));
                    break;
                }
                Err(stop) => return Err(stop.error()),
            }
        }
        Ok(Tail { start, records, events, torn })
    }

    /// Whether damage beyond head is only an end that nobody acknowledged: nothing whole follows it.
    pub(super) fn is_torn(&self, damage: &Damage) -> Result<bool> {
        if matches!(damage.flaw, Flaw::Missing | Flaw::After) || self.valid_after(damage)? {
            return Ok(false);
        }
        Ok(!self.log()?.has(&segment_name(damage.segment + 1))?)
    }

    /// Copies the bytes from an offset to a segment's end into `torn/`, durably; gives the copy's name, hash
    /// and length.
    pub(super) fn keep_torn(&self, segment: u32, offset: u64) -> Result<(String, Hash, u64)> {
        let log = self.log()?;
        let missing = || Error::new(Kind::Io, format!("segment {segment} vanished"));
        let opened = log.open(&segment_name(segment), Want::Read)?.ok_or_else(missing)?;
        let mut hasher = Hasher::default();
        copy(&opened.file, offset..opened.size, |bytes, _| {
            hasher.update(bytes);
            Ok(())
        })?;
        let hash = hasher.finish();
        let torn = self.folder.folder_made("torn")?;
        let name = format!("{segment:08}-{offset:020}-{}", hash.short());
        let fresh = format!("{name}.new");
        let path = torn.member(&fresh);
        let file = torn.create_fresh(&fresh, self.folder.access.frozen())?;
        copy(&opened.file, offset..opened.size, |bytes, at| {
            files::write_at(&file, bytes, at - offset, &path)
        })?;
        files::sync_bytes(&file, &path)?;
        torn.rename(&fresh, &torn, &name)?;
        torn.sync()?;
        Ok((name, hash, opened.size.saturating_sub(offset)))
    }
}

/// Gives the bytes of a range of a file to `each`, piece by piece, with the offset of each.
pub(super) fn copy(
    file: &std::fs::File,
    range: std::ops::Range<u64>,
    mut each: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0u8; CHUNK.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let want = (range.end - at).min(CHUNK as u64) as usize;
        let read = files::read_at(file, &mut buffer[..want], at)
            .map_err(|error| Error::io("read of a segment", &error))?;
        if read == 0 {
            return Err(Error::new(Kind::Damaged, "a segment became shorter while it was read"));
        }
        each(&buffer[..read], at)?;
        at += read as u64;
    }
    Ok(())
}
