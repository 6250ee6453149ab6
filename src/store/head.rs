//! The durable watermark: two checksummed slots of text, written in turn. A slot that does not check is
//! as good as none. Says how far the log may be believed; never what is in it.

use std::fs::File;

use super::files::{self, Folder, Want};
use super::scan::Place;
use crate::error::{Error, Result};
use crate::model::hash::Hash;

/// The name of the file.
pub(super) const HEAD: &str = "head";

/// Bytes of a slot, its newline included.
const SLOT: usize = 512;
/// Distance of the slots: no sector of a disk holds both, so one torn write spoils one slot only.
const STRIDE: usize = 4096;
const WHOLE: usize = STRIDE + SLOT;
const CONTEXT: &str = "novelforge head v1";
/// Times that a reader looks again when both slots were being written under its eyes.
const LOOKS: usize = 3;

/// Where the durable part of the log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Counts the writings of this file; the slot with the higher number is the newer.
    pub turn: u64,
    /// Number of the last covered record.
    pub seq: u64,
    /// Its segment.
    pub segment: u32,
    /// Its end: the offset of the byte after its newline.
    pub offset: u64,
    /// Its hash.
    pub hash: Hash,
    /// The store's id.
    pub store: String,
    /// The boot under which the slot was written, as the first half of a hash.
    pub boot: String,
    /// The device of the store's folder.
    pub device: u64,
    /// CLOCK_BOOTTIME of the last sync of this file, in milliseconds.
    pub synced: u64,
}

/// How a boot id stands in a slot: of fixed width, whatever the system calls it.
pub(super) fn boot_mark(boot_id: &str) -> String {
    Hash::of(boot_id.as_bytes()).hex()[..32].to_owned()
}

impl Head {
    /// A head that covers the log up to a place. Its turn is counted when it is written.
    pub fn at(place: &Place, store: &str, device: u64, boot_id: &str, synced: u64) -> Self {
        Self {
            turn: 0,
            seq: place.seq,
            segment: place.segment,
            offset: place.offset,
            hash: place.hash,
            store: store.to_owned(),
            boot: boot_mark(boot_id),
            device,
            synced,
        }
    }

    fn text(&self) -> String {
        format!(
            "nf-head 1 turn={:020} seq={:020} segment={:08} offset={:020} hash={} store={} boot={} \
             device={:016x} synced={:020}",
            self.turn,
            self.seq,
            self.segment,
            self.offset,
            self.hash,
            self.store,
            self.boot,
            self.device,
            self.synced
        )
    }

    /// The bytes of a slot.
    fn encode(&self) -> Vec<u8> {
        let text = self.text();
        let check = Hash::derive(CONTEXT, text.as_bytes());
        let mut slot = format!("{text} check={check}").into_bytes();
        slot.resize(SLOT - 1, b' ');
        slot.push(b'\n');
        slot
    }

    /// Reads a slot; `None` where it does not check.
    fn decode(slot: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(slot).ok()?;
        let (text, check) = text.split_once(" check=")?;
        let check = check.strip_suffix('\n')?.trim_end_matches(' ');
        // Only the one spelling of the check counts, so that every changed bit shows, of its digits too.
        let hash = Hash::derive(CONTEXT, text.as_bytes());
        if slot.len() != SLOT || !hash.is_written(check.as_bytes()) {
            return None;
        }
        let mut words = text.strip_prefix("nf-head 1 ")?.split(' ');
        let mut field = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let head = Self {
            turn: number(field("turn")?, 20, 10)?,
            seq: number(field("seq")?, 20, 10)?,
            segment: number(field("segment")?, 8, 10)?.try_into().ok()?,
            offset: number(field("offset")?, 20, 10)?,
            hash: field("hash")?.parse().ok()?,
            store: field("store")?.to_owned(),
            boot: field("boot")?.to_owned(),
            device: number(field("device")?, 16, 16)?,
            synced: number(field("synced")?, 20, 10)?,
        };
        words.next().is_none().then_some(head)
    }
}

/// A number in its one spelling: so many digits, and no other sign.
fn number(text: &str, width: usize, radix: u32) -> Option<u64> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let spelled = Some(text).filter(|text| text.len() == width && text.bytes().all(is_digit));
    spelled.and_then(|text| u64::from_str_radix(text, radix).ok())
}

/// Both slots as read, and which is the newer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slots {
    slots: [Option<Head>; 2],
}

impl Slots {
    /// The newest slot that checks.
    pub fn newest(&self) -> Option<&Head> {
        self.slots.iter().flatten().max_by_key(|head| head.turn)
    }

    /// The slot to write next: never the newest one.
    fn next(&self) -> usize {
        match (&self.slots[0], self.newest()) {
            (Some(first), Some(newest)) if first == newest => 1,
            _ => 0,
        }
    }

    /// How many slots check.
    pub fn valid(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Reads the slots of a store; a slot of another store does not count.
    fn of(bytes: &[u8], store: &str) -> Self {
        let slot = |at: usize| {
            let head = Head::decode(bytes.get(at..at + SLOT)?)?;
            (head.store == store).then_some(head)
        };
        Self { slots: [slot(0), slot(STRIDE)] }
    }
}

/// The slots of an open head file.
pub(super) fn read_from(file: &File, folder: &Folder, store: &str) -> Result<Slots> {
    let mut slots = Slots::default();
    for _ in 0..LOOKS {
        let mut bytes = [0u8; WHOLE];
        let read = files::read_at(file, &mut bytes, 0)
            .map_err(|error| Error::io(format!("read of {}", folder.member(HEAD).display()), &error))?;
        slots = Slots::of(&bytes[..read], store);
        if slots.valid() > 0 || read < SLOT {
            break;
        }
    }
    Ok(slots)
}

/// The slots of a store; none where the file is missing.
pub(super) fn read(folder: &Folder, store: &str) -> Result<Slots> {
    match folder.open(HEAD, Want::Read)? {
        Some(opened) => read_from(&opened.file, folder, store),
        None => Ok(Slots::default()),
    }
}

/// Head as a holder of the lock writes it.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
    /// What stands in it.
    pub slots: Slots,
}

impl HeadFile {
    /// Opens head for writing; made where it is missing (a clone has none).
    pub fn open(folder: &Folder, store: &str) -> Result<Self> {
        let missing = || Error::new(crate::error::Kind::Io, "head could not be made");
        let opened = folder.open(HEAD, Want::Make)?.ok_or_else(missing)?;
        if opened.size == 0 {
            files::write_at(&opened.file, &blank(), 0, &folder.member(HEAD))?;
        }
        let slots = read_from(&opened.file, folder, store)?;
        Ok(Self { file: opened.file, slots })
    }

    /// Writes the other slot. The page cache holds it then; a power cut may take it back.
    pub fn write(&mut self, mut head: Head, folder: &Folder) -> Result<()> {
        head.turn = self.slots.newest().map_or(0, |newest| newest.turn) + 1;
        let next = self.slots.next();
        files::write_at(&self.file, &head.encode(), (next * STRIDE) as u64, &folder.member(HEAD))?;
        self.slots.slots[next] = Some(head);
        Ok(())
    }

    /// Puts a new head file in place, durably, whose only slot is the newest of this one, or `head`.
    pub fn renew(&mut self, head: Option<Head>, folder: &Folder, store: &str) -> Result<()> {
        let mut bytes = blank();
        let turn = self.slots.newest().map_or(0, |newest| newest.turn) + 1;
        if let Some(head) = head.or_else(|| self.slots.newest().cloned()) {
            bytes[..SLOT].copy_from_slice(&Head { turn, ..head }.encode());
        }
        folder.put(HEAD, &bytes, folder.access.file())?;
        *self = Self::open(folder, store)?;
        Ok(())
    }

    /// Makes head durable.
    pub fn sync(&self, folder: &Folder) -> Result<()> {
        files::sync_bytes(&self.file, &folder.member(HEAD))
    }
}

/// What is wrong with the bytes of a head file, in words; also what its slots do not need.
pub(super) fn faults(bytes: &[u8], store: &str) -> Vec<String> {
    let blank = blank();
    let mut faults = Vec::new();
    if bytes.len() != WHOLE {
        faults.push(format!("it has {} bytes, not {WHOLE}", bytes.len()));
        return faults;
    }
    for (number, at) in [(1, 0), (2, STRIDE)] {
        let slot = &bytes[at..at + SLOT];
        match Head::decode(slot) {
            Some(head) if head.store == store => {}
            Some(_) => faults.push(format!("slot {number} is of another store")),
            None if slot == &blank[at..at + SLOT] => {}
            None => faults.push(format!("slot {number} is unreadable")),
        }
    }
    if bytes[SLOT..STRIDE] != blank[SLOT..STRIDE] {
        faults.push("the bytes between its slots are not blank".to_owned());
    }
    faults
}

/// A head file without a slot.
fn blank() -> Vec<u8> {
    let mut bytes = vec![b' '; WHOLE];
    for (index, byte) in bytes.iter_mut().enumerate() {
        if (index + 1) % SLOT == 0 {
            *byte = b'\n';
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_read_in_its_one_spelling_only_whatever_its_check_says() {
        let place = Place::start(Hash::of(b"info"));
        let head = Head { turn: 7, ..Head::at(&place, "store", 0xab, "boot", 5) };
        let slot = |text: &str| {
            let check = Hash::derive(CONTEXT, text.as_bytes());
            format!("{:<1$}\n", format!("{text} check={check}"), SLOT - 1).into_bytes()
        };
        let text = head.text();
        assert_eq!(slot(&text), head.encode());
        assert_eq!(Head::decode(&slot(&text)), Some(head));
        for (from, to) in [
            ("turn=0000", "turn=+000"),
            ("turn=0", "turn="),
            ("turn=0", "turn=00"),
            ("seq=0", "seq=a"),
            ("segment=0", "segment=00"),
            ("device=00000000000000ab", "device=00000000000000AB"),
            (" seq=", "  seq="),
            (" boot=", " more=1 boot="),
        ] {
            assert!(text.contains(from), "{from}");
            assert_eq!(Head::decode(&slot(&text.replacen(from, to, 1))), None, "{from} as {to}");
        }
        assert_eq!(Head::decode(&slot(&format!("{text} more=1"))), None);
        assert_eq!(Head::decode(&slot(&text)[..SLOT - 1]), None);
    }
}
