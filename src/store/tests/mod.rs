//! Tests of the store through its own door, each in a folder of its own.

mod protocol;

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::model::decision::Decision;
use crate::model::event::{ConflictKind, Event};
use crate::model::hash::Hash;
use crate::model::id::SessionId;
use crate::model::session::{Host, MemoryPolicy, ResumePolicy, Role, Session, Status};
use crate::model::time::{Moment, Source};

/// A folder for a test, removed at its end, with a store in it.
pub(super) struct Home {
    _dir: tempfile::TempDir,
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
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(".novelforge");
        Store::init(&root, init, options(), &source()).unwrap();
        Self { _dir: dir, root }
    }

    pub fn open(&self) -> Store {
        Store::open(&self.root, options()).unwrap()
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.root.join("log").join(scan::segment_name(number))
    }
}

pub(super) fn request(cmd: &str) -> Request {
    Request { cmd: cmd.into(), op: None, args: json!({}), dry_run: false }
}

/// An event that changes a counter only.
pub(super) fn counted() -> Event {
    Event::ConflictRefused {
        kind: ConflictKind::Late,
        attempt: None,
        result: None,
        consumer: None,
        value: None,
    }
}

pub(super) fn session(id: &str) -> Session {
    Session {
        id: id.parse::<SessionId>().unwrap(),
        resource: "novel/pride".parse().unwrap(),
        project: None,
        role: Role::Manager,
        task_mode: "review".parse().unwrap(),
        memory_policy: MemoryPolicy::Session,
        resume_policy: ResumePolicy::Revalidate,
        parent: None,
        native: None,
        host: Host::Shell,
        worker_of: None,
        status: Status::Created,
        version: 1,
        created_at: Time::from_micros(0),
        updated_at: Time::from_micros(0),
        run: None,
        checkpoint: None,
    }
}

/// Writes a record with one counted event; its answer is the record's number.
pub(super) fn write(store: &Store) -> Result<Answer<u64>> {
    write_with(store, &source(), &request("test"))
}

pub(super) fn write_with(store: &Store, source: &Source, request: &Request) -> Result<Answer<u64>> {
    store.transact(
        source,
        request,
        |_| Ok(Gathered::of(())),
        |turn, ()| Ok(Decision::new(vec![counted()], turn.seq())),
    )
}
