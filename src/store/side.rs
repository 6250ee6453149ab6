//! What lies beside the log: packets while their attempts are open, receipt marks, the user's own files,
//! and POISON. Only the log is the truth; nothing here is ever believed against it.

use super::Store;
use super::files;
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::hash::{Hash, canonical};
use crate::model::id::{AttemptId, Id, Name};
use crate::model::result::{Receipt, Source};

/// The name of the file whose presence stops all writes.
pub(super) const POISON: &str = "POISON";
/// Bytes that a user's file inside the store may have.
pub const USER_FILE_LIMIT: u64 = 256 * 1024;
/// Bytes that a receipt mark may have: those of a log line.
const MARK_LIMIT: u64 = super::LINE_LIMIT as u64;
/// Bytes that a packet may have.
const PACKET_LIMIT: u64 = super::blob::BLOB_LIMIT;

/// The name of the mark of a receipt.
pub(super) fn mark_name(source: &Source, consumer: &Name) -> String {
    Hash::of_parts(&[source.as_str(), consumer.as_str()]).hex()
}

/// The bytes of the mark of a receipt.
pub(super) fn mark_bytes(receipt: &Receipt) -> Vec<u8> {
    let mut bytes = canonical(receipt);
    bytes.push(b'\n');
    bytes
}

impl Store {
    /// The packet of an open attempt; `None` where there is none.
    ///
    /// # Errors
    /// A failed read.
    pub fn packet(&self, attempt: &AttemptId) -> Result<Option<String>> {
        let Some(packets) = self.folder.folder("packets")? else { return Ok(None) };
        let Some(bytes) = packets.read(attempt.as_str(), PACKET_LIMIT)? else { return Ok(None) };
        let damaged = |_| Error::new(Kind::Damaged, format!("the packet of {attempt} is not text"));
        String::from_utf8(bytes).map(Some).map_err(damaged)
    }

    /// The mark beside the receipt of a consumer for a source: `None` where there is none, no bytes where
    /// its writer died over it.
    ///
    /// # Errors
    /// A failed read.
    pub fn mark(&self, source: &Source, consumer: &Name) -> Result<Option<Vec<u8>>> {
        let Some(receipts) = self.folder.folder("receipts")? else { return Ok(None) };
        receipts.read(&mark_name(source, consumer), MARK_LIMIT)
    }

    /// The bytes of `config.yaml`; `None` where there is none.
    ///
    /// # Errors
    /// A symbolic link, over [`USER_FILE_LIMIT`], or a failed read.
    pub fn config(&self) -> Result<Option<Vec<u8>>> {
        self.folder.read("config.yaml", USER_FILE_LIMIT)
    }

    /// The contract packs, `contracts/*.yaml`, by name.
    ///
    /// # Errors
    /// A symbolic link, over [`USER_FILE_LIMIT`], or a failed read.
    pub fn contract_files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let Some(folder) = self.folder.folder("contracts")? else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        for name in folder.names()?.into_iter().filter(|name| name.ends_with(".yaml")) {
            if let Some(bytes) = folder.read(&name, USER_FILE_LIMIT)? {
                files.push((name, bytes));
            }
        }
        Ok(files)
    }

    /// Keeps a packet, durably, before the record that opens its attempt.
    pub(super) fn keep_packet(&self, attempt: &AttemptId, text: &str) -> Result<()> {
        let packets = self.folder.folder_made("packets")?;
        packets.put(attempt.as_str(), text.as_bytes(), self.folder.access.file())
    }

    /// Refuses a receipt whose mark is there already: its record was lost from the log.
    pub(super) fn no_foreign_mark(&self, events: &[Event]) -> Result<()> {
        for receipt in events.iter().filter_map(receipt_of) {
            if self.mark(&receipt.source, &receipt.consumer)?.is_some_and(|bytes| !bytes.is_empty()) {
                let Receipt { source, consumer, .. } = receipt;
                let message = format!("the log lacks a receipt of {source} for {consumer} that was recorded");
                return Err(Error::new(Kind::Damaged, message)
                    .because(format!("receipts/{} is there", mark_name(source, consumer))));
            }
        }
        Ok(())
    }

    /// What follows a durable record outside the log: its marks, and the packets that it ends. Nothing
    /// here can undo the record, so a failure is a note.
    pub(super) fn settle(&self, events: &[Event], again: bool, notes: &mut Vec<String>) {
        for event in events {
            if let Some(receipt) = receipt_of(event) {
                match self.write_mark(receipt) {
                    Ok(true) if again => {
                        notes.push(format!("the mark of receipt {} was rewritten", receipt.id))
                    }
                    Ok(_) => {}
                    Err(error) => notes.push(format!("the mark of receipt {}: {error}", receipt.id)),
                }
            }
            if let Some(attempt) = event.ended_attempt()
                && let Err(error) = self.drop_packet(attempt)
            {
                notes.push(format!("the packet of {attempt}: {error}"));
            }
        }
    }

    fn drop_packet(&self, attempt: &AttemptId) -> Result<()> {
        match self.folder.folder("packets")? {
            Some(packets) => packets.unlink(attempt.as_str()),
            None => Ok(()),
        }
    }

    /// Makes the mark of a recorded receipt, or puts it in place of an empty one; false where it was there.
    pub(super) fn write_mark(&self, receipt: &Receipt) -> Result<bool> {
        let receipts = self.folder.folder_made("receipts")?;
        let name = mark_name(&receipt.source, &receipt.consumer);
        let bytes = mark_bytes(receipt);
        if let Some(file) = receipts.create(&name, self.folder.access.file())? {
            files::write_at(&file, &bytes, 0, &receipts.member(&name))?;
            return Ok(true);
        }
        match receipts.read(&name, MARK_LIMIT)? {
            Some(there) if there == bytes => Ok(false),
            Some(there) if !there.is_empty() => {
                Err(Error::new(Kind::Damaged, format!("receipts/{name} is of another receipt")))
            }
            _ => receipts.put(&name, &bytes, self.folder.access.file()).map(|()| true),
        }
    }

    /// Stops all writes until doctor has looked, as far as the disk still lets us say so.
    pub(super) fn poison(&self, reason: &str) {
        let mode = self.folder.access.file();
        let Ok(Some(file)) = self.folder.create(POISON, mode) else { return };
        let path = self.folder.member(POISON);
        // Each step is worth trying whatever the one before gave: the name alone stops writers.
        let _ = files::write_at(&file, format!("{reason}\n").as_bytes(), 0, &path);
        let _ = files::sync_bytes(&file, &path);
        let _ = self.folder.sync();
    }

    /// Why writes are stopped; `None` where they are not.
    ///
    /// # Errors
    /// A failed read.
    pub fn poisoned(&self) -> Result<Option<String>> {
        if !self.folder.has(POISON)? {
            return Ok(None);
        }
        let bytes = self.folder.read(POISON, USER_FILE_LIMIT).unwrap_or_default().unwrap_or_default();
        let reason = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some(if reason.is_empty() { "no reason was kept".to_owned() } else { reason }))
    }
}

fn receipt_of(event: &Event) -> Option<&Receipt> {
    match event {
        Event::ReceiptRecorded { receipt } => Some(receipt),
        _ => None,
    }
}
