//! What goes into a transaction and what comes out. Plain data, apart from [`FileStamp::of`], which looks
//! at one file.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::model::event::Event;
use crate::model::hash::{Hash, canonical};
use crate::model::id::Name;
use crate::model::state::State;

/// A record in the log, as every writer prints it: `SEQ:HASH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Position {
    /// Its number, from 1.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (seq, hash) = text.split_once(':').ok_or("a position is SEQ:HASH")?;
        let seq = seq.parse().map_err(|_| format!("not a number: {seq:?}"))?;
        Ok(Self { seq, hash: hash.parse()? })
    }
}

/// What is asked of a transaction.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command, as the record names it.
    pub cmd: String,
    /// The operation key; the same key with the same request gets the same answer.
    pub op: Option<Name>,
    /// What the command was asked, for the operation key.
    pub args: Value,
    /// Whether to decide only, on what a reader sees.
    pub dry_run: bool,
}

impl Request {
    /// The hash that tells this request from others under the same operation key.
    pub fn hash(&self) -> Hash {
        Hash::of(&canonical(&json!({"cmd": self.cmd, "args": self.args})))
    }
}

/// What was gathered outside the lock, and by what it is compared again under it.
#[derive(Debug, Clone)]
pub struct Gathered<F> {
    /// What the decision reads.
    pub facts: F,
    /// Bytes that become blobs if the decision has events.
    pub blobs: Vec<Vec<u8>>,
    /// The files that were read, as they stood.
    pub files: Vec<FileStamp>,
    /// The entities that were read, with [`State::stamp`] of each.
    pub seen: Vec<(String, Option<Hash>)>,
}

impl<F> Gathered<F> {
    /// Facts that rest on nothing that could move.
    pub fn of(facts: F) -> Self {
        Self { facts, blobs: Vec::new(), files: Vec::new(), seen: Vec::new() }
    }

    /// The same looks behind other facts.
    pub fn map<G>(self, change: impl FnOnce(F) -> G) -> Gathered<G> {
        let Self { facts, blobs, files, seen } = self;
        Gathered { facts: change(facts), blobs, files, seen }
    }

    /// Whether everything still stands as it was seen; if not, what moved.
    pub(super) fn moved(&self, state: &State) -> Result<Option<String>> {
        let entity = self.seen.iter().find(|(id, stamp)| state.stamp(id) != *stamp);
        if let Some((id, _)) = entity {
            return Ok(Some(id.clone()));
        }
        for stamp in &self.files {
            if FileStamp::of(&stamp.path)? != *stamp {
                return Ok(Some(stamp.path.display().to_string()));
            }
        }
        Ok(None)
    }
}

/// Which file stood at a path and which bytes it had, as far as its metadata tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    /// The path.
    pub path: PathBuf,
    /// What stood there; `None` where there was nothing.
    pub found: Option<Found>,
}

/// The metadata by which a changed file is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change of bytes, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Time of the last change of bytes or metadata, in nanoseconds since 1970.
    pub ctime_ns: i128,
}

impl FileStamp {
    /// The stamp of a path now; links are followed, as reading follows them.
    ///
    /// # Errors
    /// Anything but a missing file.
    pub fn of(path: &Path) -> Result<Self> {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let found = match std::fs::metadata(path) {
            Ok(meta) => Some(Found {
                device: meta.dev(),
                inode: meta.ino(),
                size: meta.size(),
                mtime_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()),
                ctime_ns: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(format!("stat of {}", path.display()), &error)),
        };
        Ok(Self { path: path.to_owned(), found })
    }
}

/// What came of a transaction.
#[derive(Debug)]
pub struct Answer<T> {
    /// The answer, or the refusal that was recorded.
    pub outcome: Result<T>,
    /// The events recorded; of a dry run, those that would be.
    pub events: Vec<Event>,
    /// The record written; for a repeat, the first one. `None` where nothing was written.
    pub position: Option<Position>,
    /// What recovery found and mended, for stderr.
    pub notes: Vec<String>,
    /// Whether the operation key had been answered before.
    pub repeated: bool,
    /// Whether this was a dry run.
    pub dry_run: bool,
}

impl<T> Answer<T> {
    /// An answer of which nothing is written yet.
    pub(super) fn of(outcome: Result<T>, events: Vec<Event>) -> Self {
        Self { outcome, events, position: None, notes: Vec::new(), repeated: false, dry_run: false }
    }
}
