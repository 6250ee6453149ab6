//! The index: the rows of the fold in LMDB, so that no command folds the whole log. A cache, deletable at any
//! time: whatever is wrong with it, the log is folded in memory instead. The only file that names `heed`, and
//! the only one with an `unsafe` block. Never decides what is durable, and never makes a command fail.

mod load;
mod pages;
mod raw;
mod view;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use super::files::{self, Folder, Want};
use super::fold::Folded;
use super::scan::{Place, segment_name};
use super::{INFO, Store};
use crate::model::hash::Hash;
use crate::model::state::{Meta, State};
use pages::Looked;
pub(super) use raw::Raw;
use view::View;

/// The folder of all indexes.
pub(super) const INDEX: &str = "index";
/// Raised when rows change their form: another number never meets the rows of this one.
const FORM: &str = concat!("6 ", env!("CARGO_PKG_VERSION"));
/// Says which generation counts, and how its file looked when it was written last.
pub(super) const STAMP: &str = "stamp";
/// The file of rows that LMDB makes.
const DATA: &str = "data.mdb";
/// The key of the entry that says what the rows cover; no table begins with this byte.
const COVERED: &[u8] = b"\0covered";
/// Bytes of address space, not of memory or disk: some 40 million events. Valgrind maps no 64 GiB.
const MAP_SIZE: usize = 32 << 30;
/// Processes that may read at once; one more folds in memory.
const READERS: u32 = 200;
/// The file of LMDB's lock and readers.
const LOCKS: &str = "lock.mdb";
/// Bytes that are room enough for it.
const LOCKS_SIZE: usize = 16 * 1024;
/// Bytes of the check before each value.
const CHECK: usize = 8;
/// Times that the stamp is read again when a writer seems to be at work.
const LOOKS: usize = 4;

type Rows = Database<Bytes, Bytes>;

/// Up to where the rows are the fold of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Covered {
    segment: u32,
    offset: u64,
    line: u64,
    seq: u64,
    hash: Hash,
    closed: bool,
    meta: Meta,
}

/// What there is of an index.
pub(super) enum Found {
    /// One that can be read; whether the log bears it out was not looked at.
    Ready(Arc<Index>),
    /// None that counts: a holder of the lock may make one.
    None,
    /// It cannot be used, and making another would not help.
    Unusable,
}

/// An open generation of this store's index.
#[derive(Debug)]
pub(super) struct Index {
    home: Folder,
    folder: Folder,
    generation: u64,
    env: Env<WithoutTls>,
    rows: Rows,
}

/// What the stamp says.
struct Stamp {
    generation: u64,
    /// How the file looked; `None` while a writer is at work on it, or after it died there.
    seen: Option<Hash>,
}

/// The name of this store's index, here and now: another boot, mount, copy, user or version has another.
pub(super) fn name(store: &Store) -> Option<String> {
    let boot = store.options.boot.as_deref().filter(|boot| !boot.is_empty())?;
    let stat = store.folder.stat_of(INFO).ok()??;
    let mount = store.folder.mount().ok()?;
    let user = rustix::process::geteuid().as_raw();
    let parts = [u64::from(user), mount, stat.st_dev, stat.st_ino].map(|number| number.to_string());
    let [user, mount, device, inode] = &parts;
    Some(Hash::of_parts(&[FORM, boot, user, mount, device, inode]).hex())
}

/// Opens the index of a store.
pub(super) fn open(store: &Store) -> Found {
    let Some(name) = name(store) else { return Found::Unusable };
    let home = match store.folder.folder(INDEX).map(|index| index.map(|index| index.folder(&name))) {
        Ok(None | Some(Ok(None))) => return Found::None,
        Ok(Some(Ok(Some(home)))) => home,
        _ => return Found::Unusable,
    };
    for _ in 0..LOOKS {
        let Some(stamp) = read_stamp(&home) else { return Found::None };
        let Ok(Some(folder)) = home.folder(&stamp.generation.to_string()) else { return Found::None };
        let Ok(Some(stat)) = folder.stat_of(DATA) else { return Found::None };
        // Somebody else wrote into the file, or put another in its place: what LMDB would do with such
        // bytes is not known. Between reading the stamp and the file a writer may have been at work.
        if stamp.seen.is_some_and(|seen| seen != looks(&stat)) {
            continue;
        }
        return Index::open(home, folder, stamp.generation);
    }
    Found::None
}

/// Makes a file without a name beside the generations: room for a fold that is too large for memory.
pub(super) fn scratch(store: &Store) -> Option<File> {
    let home = store.folder.folder(INDEX).ok()??.folder(&name(store)?).ok()??;
    let name = format!("fold-{}", rustix::process::getpid().as_raw_pid());
    let file = home.create_fresh(&name, home.access.file()).ok()?;
    home.unlink(&name).ok().map(|()| file)
}

/// The folder of this store's index, here and now, made where it is missing.
pub(super) fn home_made(store: &Store) -> Option<Folder> {
    store.folder.folder_made(INDEX).ok()?.folder_made(&name(store)?).ok()
}

/// Makes an empty index beside any that there is; it counts once it is written for the first time.
pub(super) fn make(store: &Store) -> Option<Index> {
    let home = home_made(store)?;
    let used = home.names().ok()?.into_iter().filter_map(|name| name.parse::<u64>().ok()).max();
    let generation = used.unwrap_or(0) + 1;
    let folder = home.folder_made(&generation.to_string()).ok()?;
    // LMDB writes to this file through memory: where the disk is full that would end the process, so its
    // bytes are taken now.
    let locks = folder.create_fresh(LOCKS, folder.access.file()).ok()?;
    files::write_at(&locks, &[0; LOCKS_SIZE], 0, &folder.member(LOCKS)).ok()?;
    // Closed before LMDB opens it: a process that closes any descriptor of a file gives up all its record
    // locks of it, and by those LMDB knows who reads.
    drop(locks);
    let env = open_env(folder.path()).ok()?;
    let mut txn = env.write_txn().ok()?;
    let rows = env.create_database(&mut txn, None).ok()?;
    txn.commit().ok()?;
    Some(Index { home, folder, generation, env, rows })
}

/// The names beside one generation and the stamp: generations that count no more, and what verify left.
fn others(home: &Folder, generation: u64) -> impl Iterator<Item = String> {
    let own = generation.to_string();
    home.names().unwrap_or_default().into_iter().filter(move |name| *name != own && name != STAMP)
}

/// What lies in the folder of all indexes and is no part of this store's index, here and now.
pub(super) fn leftovers(store: &Store) -> Vec<PathBuf> {
    let (Ok(Some(all)), Some(own)) = (store.folder.folder(INDEX), name(store)) else { return Vec::new() };
    let names = all.names().unwrap_or_default().into_iter();
    let mut found: Vec<PathBuf> = names.filter(|name| *name != own).map(|name| all.member(&name)).collect();
    if let Ok(Some(home)) = all.folder(&own) {
        let generation = read_stamp(&home).map_or(0, |stamp| stamp.generation);
        found.extend(others(&home, generation).map(|name| home.member(&name)));
    }
    found
}

/// How a file looks from outside: any write into it and any other file in its place shows.
fn looks(stat: &Stat) -> Hash {
    let facts = [
        stat.st_dev.to_string(),
        stat.st_ino.to_string(),
        stat.st_size.to_string(),
        format!("{} {}", stat.st_mtime, stat.st_mtime_nsec),
        format!("{} {}", stat.st_ctime, stat.st_ctime_nsec),
    ];
    Hash::of(facts.join(" ").as_bytes())
}

fn read_stamp(home: &Folder) -> Option<Stamp> {
    let bytes = home.read(STAMP, 256).ok()??;
    let (generation, seen) = std::str::from_utf8(&bytes).ok()?.trim_end().split_once(' ')?;
    let seen = if seen == "written" { None } else { Some(seen.trim().parse().ok()?) };
    Some(Stamp { generation: generation.parse().ok()?, seen })
}

#[allow(unsafe_code, reason = "heed marks opening a memory map unsafe; see the comment inside")]
fn open_env(folder: &Path) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_SIZE).max_readers(READERS);
    // Sound as far as anything that maps a file can be: the file lies in a folder that only this user (in a
    // shared store still only this user: each has an index of their own) can open; only LMDB writes it, and
    // every writer holds LMDB's own lock; it is never cut, replaced or removed while its folder counts, since
    // a new index is a new folder; a file that others wrote into or cut is not opened (its stamp does not
    // fit); heed itself refuses to open it twice in a process. NO_SYNC gives up
    // durability over a power cut, after which the boot id names another folder.
    unsafe {
        options.flags(EnvFlags::NO_SYNC);
        options.open(folder)
    }
}

/// What an index is that could not be opened. The rows may be good, only not for this process now: it has it
/// open already, all places of readers are taken, or in another PID namespace a process of the same number
/// reads (LMDB tells readers apart by that number and refuses the second).
fn unopened(error: &heed::Error) -> Found {
    match error {
        heed::Error::EnvAlreadyOpened | heed::Error::Mdb(heed::MdbError::ReadersFull) => Found::Unusable,
        heed::Error::Io(error) if error.kind() != std::io::ErrorKind::InvalidData => Found::Unusable,
        _ => Found::None,
    }
}

impl Index {
    fn open(home: Folder, folder: Folder, generation: u64) -> Found {
        let env = match open_env(folder.path()) {
            Ok(env) => env,
            Err(error) => return unopened(&error),
        };
        let rows = env.read_txn().and_then(|txn| env.open_database(&txn, None));
        match rows {
            Ok(Some(rows)) => Found::Ready(Arc::new(Self { home, folder, generation, env, rows })),
            Ok(None) => Found::None,
            Err(error) => unopened(&error),
        }
    }

    /// The rows as they stand now, with up to where they cover the log.
    pub fn view(&self, store: &Store) -> Option<Folded> {
        let Raw { home, rows, txn, place, meta } = self.raw()?;
        let view = View::new(store, rows, txn, place.clone(), home)?;
        let rows = Some((place.segment, place.offset));
        Some(Folded { state: State::on(Arc::new(view), meta), place, rows, covered: true, newer: false })
    }

    /// Writes what changed over a view, and up to where the rows cover the log now; `None` where it failed.
    /// Only a holder of the store's lock may call it.
    pub fn write(&self, folded: &Folded) -> Option<()> {
        // A newer generation counts; an older one whose file somebody touched is what this one replaces.
        if read_stamp(&self.home).is_some_and(|stamp| stamp.generation > self.generation) {
            return None;
        }
        self.stamp(None)?;
        self.put(folded)?;
        // Readers that were killed keep old pages from being used again until somebody looks.
        let _ = self.env.clear_stale_readers();
        let stat = self.folder.stat_of(DATA).ok()??;
        self.stamp(Some(looks(&stat)))
    }

    fn put(&self, folded: &Folded) -> Option<()> {
        let covered = serde_json::to_vec(&Covered::of(folded)).ok()?;
        let mut txn = self.env.write_txn().ok()?;
        let looked = Looked::new(self.home.path());
        for (key, value) in folded.state.changes() {
            looked.one();
            match value {
                Some(value) => self.rows.put(&mut txn, key, &with_check(key, &value)).ok()?,
                None => drop(self.rows.delete(&mut txn, key).ok()?),
            }
        }
        self.rows.put(&mut txn, COVERED, &with_check(COVERED, &covered)).ok()?;
        txn.commit().ok()
    }

    fn stamp(&self, seen: Option<Hash>) -> Option<()> {
        let seen = seen.map_or_else(|| "written".to_owned(), |seen| seen.hex());
        let text = format!("{:020} {seen:<64}\n", self.generation);
        let opened = self.home.open(STAMP, Want::Make).ok()??;
        files::write_at(&opened.file, text.as_bytes(), 0, &self.home.member(STAMP)).ok()
    }

    /// Removes every generation but this one.
    pub fn alone(&self) {
        for name in others(&self.home, self.generation) {
            if name.parse::<u64>().is_ok() {
                let _ = std::fs::remove_dir_all(self.home.member(&name));
            }
        }
    }

    /// Removes this generation, which did not come to be.
    pub fn discard(self) {
        let path = self.folder.path().to_owned();
        drop(self);
        let _ = std::fs::remove_dir_all(path);
    }

    /// The rows as they stand now, without anything that would put right what is wrong with them.
    pub fn raw(&self) -> Option<Raw> {
        let txn = self.env.clone().static_read_txn().ok()?;
        let covered = self.covered_in(&txn)?;
        let home = self.home.path().to_owned();
        Some(Raw { home, rows: self.rows, place: covered.place(), meta: covered.meta, txn })
    }

    /// Up to where the rows cover the log now.
    pub fn covered(&self) -> Option<Place> {
        let txn = self.env.read_txn().ok()?;
        self.covered_in(&txn).map(|covered| covered.place())
    }

    fn covered_in(&self, txn: &RoTxn<'_, WithoutTls>) -> Option<Covered> {
        let bytes = self.rows.get(txn, COVERED).ok()??;
        serde_json::from_slice(checked(COVERED, bytes)?).ok()
    }
}

#[cfg(test)]
impl Store {
    /// Puts a row into the index, or takes one out, with a check that holds.
    pub(crate) fn lie(&self, key: &crate::model::tables::Key, value: Option<&[u8]>) {
        let index = self.index.lock().unwrap().clone().unwrap();
        let mut txn = index.env.write_txn().unwrap();
        match value {
            Some(value) => index.rows.put(&mut txn, key.bytes(), &with_check(key.bytes(), value)).unwrap(),
            None => drop(index.rows.delete(&mut txn, key.bytes()).unwrap()),
        }
        txn.commit().unwrap();
        let stat = index.folder.stat_of(DATA).unwrap().unwrap();
        index.stamp(Some(looks(&stat))).unwrap();
    }

    /// Changes a value in the index, and not its check.
    pub(crate) fn spoil_row(&self, key: &crate::model::tables::Key) {
        self.spoil_row_at(key.bytes());
    }

    /// The same by the bytes of the key.
    pub(crate) fn spoil_row_at(&self, key: &[u8]) {
        let index = self.index.lock().unwrap().clone().unwrap();
        let mut txn = index.env.write_txn().unwrap();
        let mut bytes = index.rows.get(&txn, key).unwrap().unwrap().to_vec();
        bytes[CHECK + 1] ^= 1;
        index.rows.put(&mut txn, key, &bytes).unwrap();
        txn.commit().unwrap();
        let stat = index.folder.stat_of(DATA).unwrap().unwrap();
        index.stamp(Some(looks(&stat))).unwrap();
    }
}

impl Covered {
    fn of(folded: &Folded) -> Self {
        let Place { segment, offset, line, seq, hash, closed } = folded.place.clone();
        Self { segment, offset, line, seq, hash, closed, meta: folded.state.meta().clone() }
    }

    fn place(&self) -> Place {
        let Self { segment, offset, line, seq, hash, closed, .. } = self.clone();
        Place { segment, offset, line, seq, hash, closed }
    }
}

/// A value with its check, which covers its key as well: a row in the place of another shows.
fn with_check(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = check(key, value).to_vec();
    bytes.extend_from_slice(value);
    bytes
}

fn check(key: &[u8], value: &[u8]) -> [u8; CHECK] {
    let mut hasher = crate::model::hash::Hasher::default();
    hasher.update(&(key.len() as u64).to_be_bytes());
    hasher.update(key);
    hasher.update(value);
    let mut check = [0; CHECK];
    check.copy_from_slice(&hasher.finish().bytes()[..CHECK]);
    check
}

/// The value behind its check; `None` where it does not hold.
fn checked<'a>(key: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (found, value) = bytes.split_at_checked(CHECK)?;
    (found == check(key, value)).then_some(value)
}

impl Store {
    /// Whether the log holds a place's hash at its offset: the end of the line before it.
    pub(super) fn bears_out(&self, place: &Place) -> bool {
        let end = format!(",\"hash\":\"{}\"}}\n", place.hash.hex());
        let Some(from) = place.offset.checked_sub(end.len() as u64) else { return false };
        let opened = self.log().and_then(|log| log.open(&segment_name(place.segment), Want::Read));
        let Ok(Some(opened)) = opened else { return false };
        let mut found = vec![0; end.len()];
        files::read_at(&opened.file, &mut found, from).is_ok_and(|read| found[..read] == *end.as_bytes())
    }
}
