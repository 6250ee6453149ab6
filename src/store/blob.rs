//! Blobs: bytes under their own hash, written once and never changed. Durable before any record cites
//! them; hashed again whenever they are read.

use super::Store;
use super::files::{self, Folder, Want};
use crate::error::{Error, Kind, Result};
use crate::model::hash::Hash;

/// Bytes that a blob may have.
pub(super) const BLOB_LIMIT: u64 = 64 * 1024 * 1024;

/// The folder of a blob below `blobs`.
pub(super) fn shelf(hash: &Hash) -> String {
    hash.hex()[..2].to_owned()
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

    /// Keeps bytes as a blob, durably. Only for a holder of the lock.
    pub(super) fn put_blob(&self, bytes: &[u8]) -> Result<Hash> {
        let hash = Hash::of(bytes);
        if bytes.len() as u64 > BLOB_LIMIT {
            let message = format!("{} bytes are more than a blob may have ({BLOB_LIMIT})", bytes.len());
            return Err(Error::new(Kind::TooLarge, message));
        }
        let name = hash.hex();
        let shelf = self.folder.folder_made("blobs")?.folder_made(&shelf(&hash))?;
        if self.equal_blob(&shelf, &hash)? {
            return Ok(hash);
        }
        let tmp = self.folder.folder_made("tmp")?;
        let file = tmp.create_fresh(&name, self.folder.access.frozen())?;
        let path = tmp.member(&name);
        let placed = files::write_at(&file, bytes, 0, &path)
            .and_then(|()| files::sync_bytes(&file, &path))
            .and_then(|()| tmp.rename_new(&name, &shelf, &name));
        match placed {
            Ok(true) => shelf.sync().map_err(|error| self.poisoned_by(error))?,
            Ok(false) => {
                tmp.unlink(&name)?;
                self.equal_blob(&shelf, &hash)?;
            }
            Err(error) => {
                // The error matters; the unfinished file is swept by doctor if it cannot be removed now.
                let _ = tmp.unlink(&name);
                return Err(error);
            }
        }
        Ok(hash)
    }

    /// Whether the blob is there already: hashed again, and synced again with its folder, since whoever
    /// wrote it may have died in between.
    fn equal_blob(&self, shelf: &Folder, hash: &Hash) -> Result<bool> {
        let name = hash.hex();
        let Some(opened) = shelf.open(&name, Want::Read)? else { return Ok(false) };
        let bytes = shelf.read(&name, BLOB_LIMIT)?.unwrap_or_default();
        if Hash::of(&bytes) != *hash {
            return Err(damaged(hash));
        }
        let synced = files::sync_bytes(&opened.file, &shelf.member(&name)).and_then(|()| shelf.sync());
        // A second sync might succeed without having written anything: nobody may try.
        synced.map(|()| true).map_err(|error| self.poisoned_by(error))
    }
}

fn damaged(hash: &Hash) -> Error {
    Error::new(Kind::Damaged, format!("blob {hash} is damaged: its bytes have another hash"))
        .details(serde_json::json!({"blob": hash}))
}
