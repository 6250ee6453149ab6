//! The blobs of a verification: each is hashed again, and compared with what the records cite. Reads only.

use super::super::blob;
use super::super::files::{Folder, Want};
use super::super::finding::Severity;
use super::super::recover::copy;
use super::{Audit, Progress};
use crate::error::Result;
use crate::model::hash::{Hash, Hasher};

/// Bytes of log that take as long as a usual blob, most of whose time is its opening.
const SHARE: u64 = 2048;

impl Audit<'_> {
    /// Every cited blob, and those that nothing cites.
    pub fn blobs(&mut self, progress: Progress<'_>) -> Result<()> {
        let mut cited = std::mem::take(&mut self.cited);
        cited.sort_unstable();
        cited.dedup();
        let mut found = vec![false; cited.len()];
        let mut uncited = 0u64;
        let blobs = self.store.folder.folder("blobs")?;
        let shelves = blobs.as_ref().map_or(Ok(Vec::new()), Folder::names)?;
        for place in &shelves {
            let Some(shelf) = blobs.as_ref().map_or(Ok(None), |blobs| blobs.folder(place))? else { continue };
            for name in shelf.names()? {
                self.done += SHARE;
                let Ok(hash) = name.parse::<Hash>() else { continue };
                let citing = cited.binary_search(&hash);
                match citing {
                    Ok(at) => found[at] = true,
                    Err(_) => uncited += 1,
                }
                if self.hash_blobs {
                    let misplaced = name.get(..blob::SHELF) != Some(place.as_str());
                    self.one_blob(&shelf, (&name, &hash), citing.is_ok(), misplaced)?;
                    progress(self.done, self.total)?;
                }
            }
        }
        for (hash, _) in cited.iter().zip(found).filter(|(_, found)| !found) {
            let what = format!("blob {hash} is cited and missing");
            self.find("blob_missing", Severity::Error, what, "put the blob back from a copy");
        }
        if uncited > 0 {
            let what = format!("{uncited} blob(s) that no record cites");
            self.find("blob_uncited", Severity::Note, what, "nothing: their writers died before the record");
        }
        Ok(())
    }

    fn one_blob(
        &mut self,
        shelf: &Folder,
        (name, hash): (&str, &Hash),
        cited: bool,
        misplaced: bool,
    ) -> Result<()> {
        let opened = match shelf.open(name, Want::Read) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.find("blob_unreadable", Severity::Error, error.to_string(), "nf doctor");
                return Ok(());
            }
        };
        let mut hasher = Hasher::default();
        let read = copy(&opened.file, 0..opened.size, |bytes, _| {
            hasher.update(bytes);
            Ok(())
        });
        self.seen.blobs += 1;
        self.seen.bytes += opened.size;
        if read.is_err() || hasher.finish() != *hash || misplaced {
            let (severity, fix) = if cited {
                (
                    Severity::Error,
                    "put the blob back from a copy; nf doctor --fix --accept-loss moves it to torn/",
                )
            } else {
                (Severity::Warning, "nf doctor --fix moves it to torn/; no record cites it")
            };
            let what = format!("blob {hash} is damaged");
            self.bad_blobs.push((*hash, cited));
            self.find("blob_damaged", severity, what, fix);
        }
        Ok(())
    }

    /// What all blobs are of the whole work: asking each for its size would take a good part of the time that
    /// reading it takes.
    pub(super) fn blob_share(&self) -> Result<u64> {
        let (true, Some(blobs)) = (self.hash_blobs, self.store.folder.folder("blobs")?) else { return Ok(0) };
        let mut count = 0;
        for name in blobs.names()? {
            let Some(shelf) = blobs.folder(&name)? else { continue };
            count += shelf.count()?;
        }
        Ok(count * SHARE)
    }
}
