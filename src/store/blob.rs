//! Blobs: bytes under their own hash, written once and never changed. Durable before any record cites
//! them; hashed again whenever they are read.

use std::collections::{BTreeMap, BTreeSet};

use super::Store;
use super::files::{self, Folder, Want};
use crate::error::{Error, Kind, Result};
use crate::model::hash::Hash;

/// Bytes that a blob may have.
pub(super) const BLOB_LIMIT: u64 = 64 * 1024 * 1024;

/// Characters of a blob's name that name its folder.
pub(super) const SHELF: usize = 2;

/// The folder of a blob below `blobs`.
pub(super) fn shelf(hash: &Hash) -> String {
    hash.hex()[..SHELF].to_owned()
}

impl Store {
    /// The bytes of a blob, hashed again.
    ///
    /// # Errors
    /// Missing, or not the bytes that its name says ([`Kind::Damaged`]).
    pub fn blob(&self, hash: &Hash) -> Result<Vec<u8>> {
        let missing = || Error::new(Kind::Damaged, format!("blob {hash} is missing"));
        let blobs = self.folder.folder("blobs")?.ok_or_else(missing)?;
        let shelf = blobs.folder(&shelf(hash))?.ok_or_else(missing)?;
        let bytes = shelf.read(&hash.hex(), BLOB_LIMIT).map_err(|error| match error.kind {
            Kind::TooLarge => damaged(hash),
            _ => error,
        })?;
        let bytes = bytes.ok_or_else(missing)?;
        if Hash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged(hash)) }
    }

    /// Keeps each of these bytes as a blob, durably. Only for a holder of the lock.
    ///
    /// All are written, then all synced, then all named, then each folder synced once: where the disk makes
    /// several files durable at a time, it can.
    ///
    /// # Errors
    /// Too large; a blob that is there and damaged; a failed write or sync. Nothing unfinished stays.
    pub(super) fn put_blobs(&self, blobs: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let blobs: BTreeMap<Hash, Vec<u8>> = blobs.map(|bytes| (Hash::of(&bytes), bytes)).collect();
        if let Some(large) = blobs.values().find(|bytes| bytes.len() as u64 > BLOB_LIMIT) {
            let message = format!("{} bytes are more than a blob may have ({BLOB_LIMIT})", large.len());
            return Err(Error::new(Kind::TooLarge, message));
        }
        if blobs.is_empty() {
            return Ok(());
        }
        let tmp = self.folder.folder_made("tmp")?;
        let placed = self.place_blobs(&blobs, &tmp);
        if placed.is_err() {
            // The error matters; what cannot be removed now is swept by doctor.
            blobs.keys().for_each(|hash| drop(tmp.unlink(&hash.hex())));
        }
        placed
    }

    fn place_blobs(&self, blobs: &BTreeMap<Hash, Vec<u8>>, tmp: &Folder) -> Result<()> {
        let names: BTreeSet<String> = blobs.keys().map(shelf).collect();
        let shelves = self.folder.folder_made("blobs")?.folders_made(names)?;
        let mut fresh = Vec::new();
        for (hash, bytes) in blobs {
            if !self.equal_blob(&shelves[&shelf(hash)], hash)? {
                let name = hash.hex();
                let file = tmp.create_fresh(&name, self.folder.access.frozen())?;
                files::write_at(&file, bytes, 0, &tmp.member(&name))?;
                fresh.push((hash, name, file));
            }
        }
        for (_, name, file) in &fresh {
            files::sync_bytes(file, &tmp.member(name))?;
        }
        for (hash, name, _) in &fresh {
            let shelf = &shelves[&shelf(hash)];
            if !tmp.rename_new(name, shelf, name)? {
                tmp.unlink(name)?;
                self.equal_blob(shelf, hash)?;
            }
        }
        // A second sync might succeed without having written anything: nobody may try.
        shelves.values().try_for_each(|shelf| shelf.sync().map_err(|error| self.poisoned_by(error)))
    }

    /// Whether the blob is there already: hashed again and synced again, as its folder will be, since whoever
    /// wrote it may have died in between.
    fn equal_blob(&self, shelf: &Folder, hash: &Hash) -> Result<bool> {
        let name = hash.hex();
        let Some(opened) = shelf.open(&name, Want::Read)? else { return Ok(false) };
        let bytes = shelf.read(&name, BLOB_LIMIT)?.unwrap_or_default();
        if Hash::of(&bytes) != *hash {
            return Err(damaged(hash));
        }
        let synced = files::sync_bytes(&opened.file, &shelf.member(&name));
        synced.map(|()| true).map_err(|error| self.poisoned_by(error))
    }
}

fn damaged(hash: &Hash) -> Error {
    Error::new(Kind::Damaged, format!("blob {hash} is damaged: its bytes have another hash"))
        .details(serde_json::json!({"blob": hash}))
}
