//! The log's end, under the lock: append, sync, head, and the change from a full segment to the next. One
//! write for each record and one sync for each record or group of them; what fails is never tried again.

use std::fs::File;
use std::io::{ErrorKind, Write};

use super::files::{self, Want};
use super::fold::Folded;
use super::head::{Head, HeadFile};
use super::lock::{self, Held};
use super::record::{self, Draft};
use super::scan::{Place, segment_name};
use super::side::POISON;
use super::{Position, Store};
use crate::error::{Error, Kind, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::{Hash, Hasher};
use crate::model::id::Name;
use crate::model::time::{Moment, Time};

/// Age at which the last sync of head is too old, in milliseconds.
const HEAD_AGE_MS: u64 = 1000;

/// The right to write: the lock is held and nothing is poisoned.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    pub store: &'a Store,
    held: Held,
    pub head: HeadFile,
    /// The segment that is open to append, and its number.
    segment: Option<(u32, File)>,
    /// Whether head is to be synced after the lock is given back.
    sync_head: bool,
    /// What recovery found and mended.
    pub notes: Vec<String>,
    /// Events of records that are appended and not yet durable.
    owed: Vec<Event>,
}

/// A lock that is kept from one transaction of a group to the next.
#[derive(Debug)]
pub(super) struct Parked {
    held: Held,
    head: HeadFile,
    segment: Option<(u32, File)>,
    sync_head: bool,
    notes: Vec<String>,
    owed: Vec<Event>,
}

impl Parked {
    /// The lock again, for the store that it was taken of.
    pub fn resume(self, store: &Store) -> Locked<'_> {
        let Self { held, head, segment, sync_head, notes, owed } = self;
        Locked { store, held, head, segment, sync_head, notes, owed }
    }
}

/// What a record says besides its place.
pub(super) struct Entry<'a> {
    pub op: Option<(&'a Name, Hash)>,
    pub cmd: &'a str,
    pub events: &'a [Event],
}

impl Store {
    /// Takes the lock for writing.
    pub(super) fn lock(&self) -> Result<Locked<'_>> {
        let locked = self.lock_poisoned()?;
        if let Some(reason) = self.poisoned()? {
            let error = Error::new(Kind::Poisoned, "all writes are stopped");
            return Err(error.because(format!("{POISON}: {reason}")));
        }
        Ok(locked)
    }

    /// Takes the lock whether or not writes are stopped; for doctor.
    pub(super) fn lock_poisoned(&self) -> Result<Locked<'_>> {
        let held = lock::acquire(&self.folder, self.options.lock_timeout_ms)?;
        let head = HeadFile::open(&self.folder, &self.info.store_id)?;
        let (notes, owed) = (Vec::new(), Vec::new());
        Ok(Locked { store: self, held, head, segment: None, sync_head: false, notes, owed })
    }
}

/// The time of the next record: never earlier than the one before.
pub(super) fn not_before(folded: &Folded, now: Time) -> Time {
    folded.state.meta().at.map_or(now, |before| before.max(now))
}

impl Locked<'_> {
    /// Gives the lock back, then makes head durable where that is due; a failure there takes nothing
    /// back, since every covered record was synced by itself.
    pub fn release(self) -> Vec<String> {
        let Self { store, held, head, sync_head, mut notes, .. } = self;
        if let Err(error) = held.release() {
            notes.push(format!("{error}; closing it gives it back"));
        }
        if sync_head && let Err(error) = head.sync(&store.folder) {
            notes.push(format!("{error}; the record itself is durable"));
        }
        notes
    }

    /// Keeps the lock for the next transaction of the group.
    pub fn park(self) -> Parked {
        let Self { held, head, segment, sync_head, notes, owed, .. } = self;
        Parked { held, head, segment, sync_head, notes, owed }
    }

    /// Lets a child try the lock that is held.
    pub fn self_check(&self) -> Result<()> {
        match &self.store.options.self_check {
            Some(program) => lock::self_check(program, &self.store.folder, &self.held),
            None => Ok(()),
        }
    }

    /// Opens a segment to append and gives its length.
    pub fn open_segment(&mut self, segment: u32, want: Want) -> Result<Option<u64>> {
        self.segment = None;
        let Some(opened) = self.store.log()?.open(&segment_name(segment), want)? else { return Ok(None) };
        self.segment = Some((segment, opened.file));
        Ok(Some(opened.size))
    }

    /// Closes the segment that was open to append; another file may stand in its place now.
    pub fn forget_segment(&mut self) {
        self.segment = None;
    }

    /// The line of the next record; refused before anything is written where it is too long.
    pub fn draft(&self, folded: &Folded, entry: &Entry<'_>, now: Time) -> Result<(record::Line, Place)> {
        let draft = Draft {
            seq: folded.place.seq + 1,
            at: not_before(folded, now),
            op: entry.op,
            cmd: entry.cmd,
            events: entry.events,
            prev: folded.place.hash,
        };
        let line = record::encode(&draft)?;
        let place = folded.place.after(&line.0, line.1.len() as u64);
        Ok((line, place))
    }

    /// Appends a drafted record and folds it. It counts for nothing before [`Locked::settle`].
    pub fn append(
        &mut self,
        folded: &mut Folded,
        draft: (record::Line, Place),
        events: &[Event],
    ) -> Result<Position> {
        let record = self.append_only(folded, draft, events)?;
        folded.state.apply(&record);
        Ok(Position { seq: record.seq, hash: record.hash })
    }

    /// The same, but the record is left to fold for the caller: the state lacks it until then.
    pub fn append_only(
        &mut self,
        folded: &mut Folded,
        ((record, line), place): (record::Line, Place),
        events: &[Event],
    ) -> Result<Record> {
        self.write(&folded.place, &line)?;
        folded.place = place;
        folded.covered = true;
        self.owed.extend_from_slice(events);
        Ok(record)
    }

    /// Makes what was appended durable, lets head cover it, and does what follows from it: once for all
    /// records since the last time. Nothing of them may be answered before.
    pub fn settle(&mut self, folded: &Folded, now: &Moment) -> Result<()> {
        if self.owed.is_empty() {
            return Ok(());
        }
        self.sync(folded.place.segment)?;
        self.cover(folded, now)?;
        let events = std::mem::take(&mut self.owed);
        self.store.settle(&events, false, &mut self.notes);
        Ok(())
    }

    fn file(&mut self, segment: u32) -> Result<&File> {
        if self.segment.as_ref().is_none_or(|(open, _)| *open != segment) {
            self.open_segment(segment, Want::Append)?;
        }
        let missing = || Error::new(Kind::Damaged, format!("segment {segment} is missing"));
        self.segment.as_ref().map(|(_, file)| file).ok_or_else(missing)
    }

    /// One write at the end of the log, with its length checked before and after.
    fn write(&mut self, place: &Place, line: &[u8]) -> Result<()> {
        let store = self.store;
        let path = store.log()?.member(&segment_name(place.segment));
        let mut file = self.file(place.segment)?;
        let before = files::size(file, &path)?;
        if before != place.offset {
            return Err(store.not_exclusive(before, place.offset));
        }
        let written = loop {
            match file.write(line) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let error = match written {
            Ok(count) if count == line.len() => {
                let after = files::size(file, &path)?;
                let expected = place.offset + line.len() as u64;
                return if after == expected { Ok(()) } else { Err(store.not_exclusive(after, expected)) };
            }
            Ok(count) => Error::new(Kind::DiskFull, format!("append to {} stopped short", path.display()))
                .because(format!("{count} of {} bytes were written", line.len())),
            Err(error) => Error::io(format!("append to {}", path.display()), &error),
        };
        // Nothing of a record that failed may stay: the next writer would find it and believe it.
        let cut = files::truncate(file, place.offset, &path).and_then(|()| files::sync_bytes(file, &path));
        match cut {
            Ok(()) => Err(error),
            Err(second) => {
                let reason = format!("{error} ({}); then {second}", error.cause.as_deref().unwrap_or(""));
                store.poison(&reason);
                Err(Error::new(Kind::Poisoned, "an append failed and could not be taken back")
                    .because(reason))
            }
        }
    }

    /// Makes a segment durable. A failed sync is never repeated: the kernel may call lost pages clean.
    pub fn sync(&mut self, segment: u32) -> Result<()> {
        let store = self.store;
        let path = store.log()?.member(&segment_name(segment));
        let file = self.file(segment)?;
        files::sync_bytes(file, &path).map_err(|error| store.poisoned_by(error))
    }

    /// Lets head cover what is folded. Every covered record is durable by itself; head is synced only now
    /// and then, so that a power cut leaves it a second behind at most.
    pub fn cover(&mut self, folded: &Folded, now: &Moment) -> Result<()> {
        let store = self.store;
        let boot = super::head::boot_mark(&now.boot_id);
        let last = self.head.slots.newest().filter(|head| head.boot == boot).map(|head| head.synced);
        let fresh = last.filter(|last| now.boottime_ms.saturating_sub(*last) <= HEAD_AGE_MS);
        let fresh = fresh.filter(|last| *last <= now.boottime_ms);
        self.sync_head |= fresh.is_none();
        let synced = fresh.unwrap_or(now.boottime_ms);
        let (id, device) = (&store.info.store_id, store.folder.device());
        let head = Head::at(&folded.place, id, device, &now.boot_id, synced);
        self.head.write(head, &store.folder).map_err(|error| {
            Error::new(Kind::NotDurable, "the record is synced, but head could not be moved over it")
                .because(format!("{error}: {}", error.cause.as_deref().unwrap_or("")))
                .fix("it counts with the next write: run the same command again with the same --op")
        })
    }

    /// Makes head durable now.
    pub fn sync_head(&mut self) -> Result<()> {
        self.sync_head = false;
        self.head.sync(&self.store.folder)
    }

    /// Closes a full segment and opens the next.
    pub fn rotate(&mut self, folded: &mut Folded, now: &Moment) -> Result<()> {
        let (segment, bytes) = (folded.place.segment, folded.place.offset);
        let hash = self.hash_of(segment, bytes)?;
        let events = [Event::SegmentClosed { segment, bytes, hash }];
        let draft = self.draft(folded, &Entry { op: None, cmd: "rotate", events: &events }, now.wall)?;
        self.append(folded, draft, &events)?;
        self.settle(folded, now)?;
        self.begin_segment(folded, now)
    }

    /// Begins the segment after a closed one; a file that a dead writer left there empty is used.
    pub fn begin_segment(&mut self, folded: &mut Folded, now: &Moment) -> Result<()> {
        let closed = folded.place.segment;
        let segment = closed + 1;
        let log = self.store.log()?;
        let size = self.open_segment(segment, Want::Make)?;
        self.open_segment(segment, Want::Append)?;
        if size != Some(0) {
            return Err(folded.place.next_segment().damage(super::damage::Flaw::After).error());
        }
        let last = folded.place.hash;
        let events = [Event::SegmentOpened { segment, store: self.store.info.store_id.clone(), last }];
        folded.place = folded.place.next_segment();
        let draft = self.draft(folded, &Entry { op: None, cmd: "rotate", events: &events }, now.wall)?;
        // The name must be durable before head leads there.
        log.sync().map_err(|error| self.store.poisoned_by(error))?;
        self.append(folded, draft, &events)?;
        self.settle(folded, now)?;
        self.sync_head()?;
        self.store.freeze(closed);
        Ok(())
    }

    /// BLAKE3 of the first bytes of a segment.
    pub fn hash_of(&mut self, segment: u32, bytes: u64) -> Result<Hash> {
        let path = self.store.log()?.member(&segment_name(segment));
        let file = self.file(segment)?;
        let (mut hasher, mut offset, mut buffer) = (Hasher::default(), 0, vec![0u8; 1 << 20]);
        while offset < bytes {
            let want = (bytes - offset).min(buffer.len() as u64) as usize;
            let read = files::read_at(file, &mut buffer[..want], offset)
                .map_err(|error| Error::io(format!("read of {}", path.display()), &error))?;
            if read == 0 {
                return Err(Error::new(Kind::Damaged, format!("{} is too short", path.display())));
            }
            hasher.update(&buffer[..read]);
            offset += read as u64;
        }
        Ok(hasher.finish())
    }
}

impl Store {
    /// The log is not as long as the holder of its lock left it.
    fn not_exclusive(&self, found: u64, expected: u64) -> Error {
        let reason = format!("the log has {found} bytes where {expected} belong, under the lock");
        self.poison(&reason);
        Error::new(Kind::LockNotExclusive, "another process writes without the lock").because(reason)
    }

    /// Makes a full segment read-only. In a shared store only its owner could make it writable again for
    /// recovery, so there it stays as it is; elsewhere this guards against slips, nothing rests on it.
    pub(super) fn freeze(&self, segment: u32) {
        if let (false, Ok(log)) = (self.info.shared, self.log()) {
            let _ = log.chmod(&segment_name(segment), self.folder.access.frozen());
        }
    }

    /// A sync failed: nothing may be written until the log has been looked at.
    pub(super) fn poisoned_by(&self, error: Error) -> Error {
        let cause = error.cause.as_deref().unwrap_or("");
        self.poison(&format!("{error}: {cause}"));
        Error { kind: Kind::NotDurable, ..error }
    }
}
