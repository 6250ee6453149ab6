//! Tests of the store through its own door, each in a folder of its own.

mod cut;
mod door;
mod end;
mod fixing;
mod groups;
mod hostile;
mod index;
mod index_lies;
mod looking;
mod meanwhile;
mod pieces;
mod protocol;
mod turning;
mod whole;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::model::decision::Decision;
use crate::model::event::{ConflictKind, Event};
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::time::{Moment, Source};

/// A folder for a test, removed at its end, with a store in it.
pub(super) struct Home {
    dir: tempfile::TempDir,
    pub root: PathBuf,
}

pub(super) fn moment(boot: &str, boottime_ms: u64) -> Moment {
    Moment {
        wall: Time::from_micros(1_700_000_000_000_000 + boottime_ms as i64 * 1000),
        machine: "m".into(),
        boot_id: boot.into(),
        namespace: "n".into(),
        boottime_ms,
    }
}

/// A source that stands still, on one boot.
pub(super) fn source() -> Source {
    Source::fixed(moment("boot-1", 5), "seed".into())
}

pub(super) fn options() -> Options {
    Options { lock_timeout_ms: 2000, ..Options::default() }
}

impl Home {
    pub fn new() -> Self {
        Self::with(&InitOptions::default())
    }

    pub fn with(init: &InitOptions) -> Self {
        // In memory where there is such a place: these tests sync a lot, and what a disk does with it is
        // tested elsewhere.
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        let root = dir.path().join(".novelforge");
        Store::init(&root, init, options(), &source()).unwrap();
        Self { dir, root }
    }

    /// A store with some records after the first.
    pub fn filled(records: u64) -> Self {
        let home = Self::new();
        let store = home.open();
        for _ in 0..records {
            write(&store).unwrap();
        }
        home
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn open(&self) -> Store {
        Store::open(&self.root, options()).unwrap()
    }

    /// Opens the store with an index from the first record on, as on this boot.
    pub fn indexed(&self, boot: &str) -> Store {
        let options = Options { boot: Some(boot.to_owned()), ..options() };
        let mut store = Store::open(&self.root, options).unwrap();
        store.index_anything();
        store
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.root.join("log").join(scan::segment_name(number))
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Writes over a file in place, whatever its mode.
    pub fn set(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The codes of what doctor finds.
    pub fn codes(&self) -> Vec<String> {
        self.open().findings().into_iter().map(|finding| finding.code).collect()
    }

    /// Mends and gives the codes of what was done.
    pub fn fix(&self, accept_loss: bool) -> Vec<String> {
        let done = self.open().fix(&source(), accept_loss).unwrap();
        done.into_iter().map(|finding| finding.code).collect()
    }
}

/// The log of a one-segment store.
pub(super) const LOG: &str = "log/00000001.jsonl";

pub(super) fn request(cmd: &str) -> Request {
    Request { cmd: cmd.into(), op: None, args: json!({}), dry_run: false }
}

/// A request under an operation key.
pub(super) fn keyed(op: &str, args: Value) -> Request {
    Request { cmd: "test".into(), op: Some(op.parse::<Name>().unwrap()), args, dry_run: false }
}

/// An event that changes a counter only.
pub(super) fn counted() -> Event {
    Event::ConflictRefused {
        kind: ConflictKind::Late,
        attempt: None,
        result: None,
        consumer: None,
        event: None,
        effect: None,
        value: None,
    }
}

/// An event from its JSON, so that these tests need not know every member of every entity.
pub(super) fn event(value: Value) -> Event {
    serde_json::from_value(value).unwrap()
}

pub(super) fn session_created(id: &str) -> Event {
    event(json!({"type": "session.created", "session": {
        "id": id, "resource": "novel/pride", "role": "manager", "task_mode": "review",
        "memory_policy": "session", "resume_policy": "revalidate", "host": "shell", "status": "created",
        "version": 1, "created_at": "2026-01-01T00:00:00.000000Z",
        "updated_at": "2026-01-01T00:00:00.000000Z",
    }}))
}

pub(super) fn receipt_recorded(consumer: &str, seq: u64) -> Event {
    event(json!({"type": "receipt.recorded", "receipt": {
        "id": "t-000000000001", "source": "x-000000000001", "consumer": consumer,
        "result_hash": Hash::of(b"r"),
        "fingerprint": "nf1:0", "outcome": {"value": "accept", "polarity": "pass"},
        "attempt": "a-000000000001", "checks": [], "earlier": [], "seq": seq,
        "history": {"opened": 1, "cancelled": 0, "released": 0, "expired": 0, "invalid": 0,
            "cannot_judge": 0, "late": 0, "conflicts": 0},
        "at": "2026-01-01T00:00:00.000000Z",
    }}))
}

pub(super) fn attempt_ended(id: &str) -> Event {
    event(json!({"type": "attempt.ended", "attempt": id, "how": "failed", "reason": "test"}))
}

/// Writes a record with one counted event; its answer is the record's number.
pub(super) fn write(store: &Store) -> Result<Answer<u64>> {
    write_with(store, &source(), &request("test"))
}

pub(super) fn write_with(store: &Store, source: &Source, request: &Request) -> Result<Answer<u64>> {
    record(store, source, request, vec![counted()])
}

/// Writes a record with some events.
pub(super) fn record(
    store: &Store,
    source: &Source,
    request: &Request,
    events: Vec<Event>,
) -> Result<Answer<u64>> {
    store.transact(
        source,
        request,
        |_| Ok(Gathered::of(())),
        |turn, ()| Ok(Decision::new(events.clone(), turn.seq())),
    )
}

/// Writes the events under the command `test`.
pub(super) fn put(store: &Store, events: Vec<Event>) -> Result<Answer<u64>> {
    record(store, &source(), &request("test"), events)
}

/// The highest number that a reader sees.
pub(super) fn seen(store: &Store) -> u64 {
    store.read().unwrap().position.map_or(0, |position| position.seq)
}
