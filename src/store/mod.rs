//! The store: the log, its watermark, blobs, receipt marks and packets; bytes to records and back.
//!
//! Owns every file below `.novelforge`. [`Store::transact`] is the one door by which anything is written;
//! [`Store::init`] and [`Store::fix`] use the same lock and the same syncs. Knows no rule, no command line
//! and no clock.

mod access;
mod append;
mod blob;
mod cites;
mod compare;
mod damage;
mod doctor;
mod files;
mod finding;
mod fix;
mod fold;
mod group;
mod head;
mod index;
mod init;
mod lines;
pub mod lock;
mod mend;
mod record;
mod records;
mod recover;
mod reindex;
mod request;
mod running;
mod runs;
mod scan;
mod side;
mod spill;
mod survey;
mod transact;
mod verify;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

pub use damage::Doubt;
pub use finding::{Finding, Severity};
pub use fold::Snapshot;
pub use record::LINE_LIMIT;
pub use records::{Records, RecordsBack};
pub use request::{Answer, FileStamp, Found, Gathered, Position, Request};
pub use running::Running;
pub use side::USER_FILE_LIMIT;
pub use verify::Verified;

use crate::error::{Error, Kind, Result};
use crate::model::hash::{Hash, canonical};
use crate::model::time::Time;
use files::Folder;

/// The format of the store that this program makes and writes.
const FORMAT: u32 = 1;
/// The name of the file that makes a folder a store.
const INFO: &str = "store.json";
/// Its limit in bytes.
const INFO_LIMIT: u64 = 64 * 1024;
/// Bytes at which a segment is closed.
const SEGMENT_LIMIT: u64 = 64 * 1024 * 1024;

/// How long to wait for the lock where nothing says so, in milliseconds.
pub const LOCK_TIMEOUT_MS: u64 = 10_000;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to wait for the lock, in milliseconds.
    pub lock_timeout_ms: u64,
    /// Whether a file system that is not on the list is used all the same.
    pub allow_fs: bool,
    /// Whether a reader goes on with what lies before damage.
    pub allow_damaged: bool,
    /// The program that checks the lock as a child, run as `PROGRAM lock-probe PATH`; its exit code is 0
    /// if it could not take the lock, 1 if it could ([`lock::probe`]). `None` skips the check.
    pub self_check: Option<PathBuf>,
    /// The kernel's boot id. An index is of one boot; without it none is used.
    pub boot: Option<String>,
    /// Told how far the making of an index has come.
    pub watch: Watch,
    /// Raised where what was read does not count. [`Store::transact`] looks at it before it writes; a reader
    /// asks when it is done with its [`Snapshot`].
    pub doubt: Doubt,
    /// Whether transactions keep the lock from the first that takes it and are made durable together, by
    /// [`Store::commit`], before any of them is answered.
    pub group: bool,
}

/// Called with bytes done and bytes in all; equal at the end.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<dyn Fn(u64, u64) + Send + Sync>>);

impl Watch {
    /// One that calls `each`.
    pub fn new(each: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(each)))
    }

    fn tell(&self, done: u64, total: u64) {
        if let Some(each) = &self.0 {
            each(done, total);
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({})", self.0.is_some())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lock_timeout_ms: LOCK_TIMEOUT_MS,
            allow_fs: false,
            allow_damaged: false,
            self_check: None,
            boot: None,
            watch: Watch::default(),
            doubt: Doubt::default(),
            group: false,
        }
    }
}

/// How a store is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct InitOptions {
    /// Whether the store is to be kept in git: what is not derived is not ignored.
    pub git: bool,
    /// Whether the folder's group may write.
    pub shared: bool,
    /// Whether time and randomness may be given from outside.
    pub testing: bool,
}

/// What `store.json` says: written once, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Info {
    /// The format of the store.
    pub format: u32,
    /// Its id: 26 base32 characters.
    pub store_id: String,
    /// When it was made.
    pub created_at: Time,
    /// Whether its group may write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether time and randomness may be given from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub testing: bool,
}

impl Info {
    /// The bytes of `store.json`: canonical JSON and a newline.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = canonical(self);
        bytes.push(b'\n');
        bytes
    }
}

/// An open store. Opening takes no lock and reads no record.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    folder: Folder,
    log: OnceLock<Arc<Folder>>,
    info: Info,
    /// Hash of the bytes of `store.json`: what record 1 stands on.
    info_hash: Hash,
    options: Options,
    segment_limit: u64,
    /// Bytes of log from which on an index is made.
    index_worth: u64,
    /// The index, once it was opened.
    index: Mutex<Option<Arc<index::Index>>>,
    /// The fold that the last transaction of this process ended with.
    folded: Mutex<Option<fold::Folded>>,
    /// What a group of transactions holds.
    group: Mutex<Option<group::Held>>,
    /// What recovery did in transactions that ended in an error.
    notes: Mutex<Vec<String>>,
}

impl Store {
    /// Opens the store whose folder (`…/.novelforge`) is `root`.
    ///
    /// A damaged, poisoned or newer store opens: `doctor` must be able to look at it.
    ///
    /// # Errors
    /// No store there; it belongs to another user, is open to others or a symbolic link; its file system
    /// is not on the list; `store.json` is unreadable ([`Kind::Damaged`]).
    pub fn open(root: &Path, options: Options) -> Result<Self> {
        let none = || Error::new(Kind::NoStore, format!("there is no store at {}", root.display()));
        let mut folder = Folder::root(root)?.ok_or_else(none)?;
        // Whether the group may write is said in store.json: read it before anything is judged by it, but
        // let it say that only to somebody who could make the folder so.
        folder.access.shared = folder.stat.st_mode & 0o020 != 0;
        folder.access.check(&folder.stat, root)?;
        let Some(bytes) = folder.read(INFO, INFO_LIMIT)? else {
            return Err(init::without_info(&folder)?.unwrap_or_else(none));
        };
        let info: Info = serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(Kind::Damaged, format!("{} is damaged", folder.member(INFO).display()))
                .because(error.to_string())
                .fix("put store.json back from a copy; every record rests on its bytes")
        })?;
        folder.access.shared = info.shared;
        folder.access.check(&folder.stat, root)?;
        folder.access.private = folder.stat.st_mode & 0o077 == 0;
        if !options.allow_fs {
            init::known_file_system(&folder)?;
        }
        Ok(Self {
            root: root.to_owned(),
            folder,
            log: OnceLock::new(),
            info_hash: Hash::of(&bytes),
            info,
            options,
            segment_limit: SEGMENT_LIMIT,
            index_worth: reindex::WORTH,
            index: Mutex::new(None),
            folded: Mutex::new(None),
            group: Mutex::new(None),
            notes: Mutex::new(Vec::new()),
        })
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What `store.json` says.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Makes segments smaller, so that tests meet their ends.
    #[cfg(test)]
    pub(crate) fn limit_segments(&mut self, bytes: u64) {
        self.segment_limit = bytes;
    }

    /// Makes an index for a log of any length, so that tests need no long ones.
    #[cfg(test)]
    pub(crate) fn index_anything(&mut self) {
        self.index_worth = 0;
    }

    /// The folder of the log, opened once.
    fn log(&self) -> Result<&Folder> {
        self.log_shared().map(|log| &**log)
    }

    /// The same, to be kept.
    fn log_shared(&self) -> Result<&Arc<Folder>> {
        if let Some(log) = self.log.get() {
            return Ok(log);
        }
        let missing = || Error::new(Kind::Damaged, "the log's folder is missing");
        let log = self.folder.folder("log")?.ok_or_else(missing)?;
        Ok(self.log.get_or_init(|| Arc::new(log)))
    }
}

#[cfg(test)]
mod tests;
