//! Verification: everything recorded is hashed again, in one pass and bounded memory. Reads only, takes no
//! lock, and looks twice at what may have changed under its eyes.

use std::collections::BTreeSet;

use super::cites::cited;
use super::compare::Compared;
use super::damage::{Damage, Flaw};
use super::files::Folder;
use super::finding::{Finding, Severity};
use super::head::Head;
use super::record::LINE_LIMIT;
use super::scan::{Limit, Place, Scan, Stop, segment_name};
use super::side::{mark_bytes, mark_name};
use super::{Position, Store};
use crate::error::{Kind, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::{Hash, Hasher};
use crate::model::id::{AttemptId, Name, ReceiptId};
use crate::model::result::{Receipt, Source};

mod blobs;

/// What a verification saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Verified {
    /// Records verified.
    pub records: u64,
    /// Log segments.
    pub segments: u32,
    /// Bytes of log and blobs hashed.
    pub bytes: u64,
    /// Blobs hashed.
    pub blobs: u64,
    /// Receipts whose marks were compared.
    pub receipts: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
    /// The last record that head covers.
    pub head: Option<Position>,
}

/// The running hash of a segment. Lines are gathered first: many at once are hashed faster than one by one.
#[derive(Default)]
struct SegmentHash {
    hasher: Hasher,
    lines: Vec<u8>,
}

impl SegmentHash {
    const AT_ONCE: usize = 64 * 1024;

    fn line(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        if self.lines.len() >= Self::AT_ONCE {
            self.hasher.update(&self.lines);
            self.lines.clear();
        }
    }

    fn finish(&mut self) -> Hash {
        self.hasher.update(&self.lines);
        self.lines.clear();
        self.hasher.finish()
    }
}

/// Called with how much is done and how much there is in all, in bytes of log or what takes as long; an error
/// ends the work.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

impl Store {
    /// Verifies every record, chain, segment, blob and receipt mark.
    ///
    /// `each` gets every record in order, so that a caller can run its rules over history.
    ///
    /// # Errors
    /// Something could not be read at all; what `progress` refuses. Damage is a finding.
    pub fn verify(&self, progress: Progress<'_>, each: &mut dyn FnMut(&Record)) -> Result<Verified> {
        let mut audit = Audit::new(self, true)?;
        audit.log(progress, each)?;
        audit.marks()?;
        audit.blobs(progress)?;
        if let (None, Some(place), Some(_)) = (&audit.damage, audit.place.take(), audit.seen.head) {
            audit.seen.findings.extend(self.beyond(place)?);
        }
        audit.seen.findings.splice(0..0, super::survey::head_findings(self)?);
        Ok(audit.seen)
    }

    /// Whether the store holds exactly this record, in the part that head covers.
    ///
    /// # Errors
    /// Damage up to it, or a failed read.
    pub fn contains(&self, position: &Position) -> Result<bool> {
        match self.records(position.seq).next() {
            Some(record) => record.map(|record| (record.seq, record.hash) == (position.seq, position.hash)),
            None => Ok(false),
        }
    }
}

/// One pass over everything recorded.
pub(super) struct Audit<'a> {
    store: &'a Store,
    hash_blobs: bool,
    /// The index beside the fold of the log.
    index: Option<Compared>,
    /// The marks; opened once, as there is one for each receipt. Who makes the folder later is met by the
    /// second look at what has no mark.
    receipts: Option<Folder>,
    /// Marks that were there before head was read: each must have its record.
    there: BTreeSet<String>,
    /// Receipts whose marks are not there, or empty.
    unmarked: Vec<(Source, Name, ReceiptId)>,
    /// Marks that have no record.
    pub foreign: Vec<String>,
    cited: Vec<Hash>,
    /// Attempts that have not ended.
    pub active: BTreeSet<AttemptId>,
    /// How far the work has come, and how far it goes: in bytes of log, or what takes as long.
    done: u64,
    total: u64,
    /// What came of it.
    pub seen: Verified,
    /// Where the first damage of the log is.
    pub damage: Option<Damage>,
    /// Behind the last record seen.
    pub place: Option<Place>,
    /// Blobs whose bytes are not what their names say, and whether a record cites them.
    pub bad_blobs: Vec<(Hash, bool)>,
}

impl<'a> Audit<'a> {
    pub fn new(store: &'a Store, hash_blobs: bool) -> Result<Self> {
        // A mark is written after head: what is there now has its record before what head covers next.
        let receipts = store.folder.folder("receipts")?;
        let there = match &receipts {
            Some(folder) => folder.names()?.into_iter().filter(|name| name.parse::<Hash>().is_ok()).collect(),
            None => BTreeSet::new(),
        };
        Ok(Self {
            store,
            hash_blobs,
            index: Compared::new(store),
            receipts,
            there,
            unmarked: Vec::new(),
            foreign: Vec::new(),
            cited: Vec::new(),
            active: BTreeSet::new(),
            done: 0,
            total: 0,
            seen: Verified::default(),
            damage: None,
            place: None,
            bad_blobs: Vec::new(),
        })
    }

    fn find(&mut self, code: &str, severity: Severity, what: impl Into<String>, fix: &str) {
        self.seen.findings.push(Finding::new(code, severity, what, fix));
    }

    /// Every record up to head, and on behind damage.
    pub fn log(&mut self, progress: Progress<'_>, each: &mut dyn FnMut(&Record)) -> Result<()> {
        let head = self.store.head()?;
        self.seen.head = head.as_ref().map(|head| Position { seq: head.seq, hash: head.hash });
        self.total = self.log_bytes(head.as_ref())? + self.blob_share()?;
        let limit = head.map_or(Limit::End, Limit::Head);
        let log = self.store.log()?;
        let id = &self.store.info.store_id;
        let mut scan = Scan::new(log, id, Place::start(self.store.info_hash), limit.clone());
        let mut hasher = SegmentHash::default();
        loop {
            let before = scan.place.clone();
            match scan.next() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    self.record(&record, &mut hasher, &scan);
                    each(&record);
                    if self.seen.records.is_multiple_of(1024) {
                        progress(self.done, self.total)?;
                    }
                }
                Err(Stop::Damage(damage)) => {
                    // What changed meanwhile is read again before it is called damage.
                    let mut again = Scan::new(log, id, before.clone(), limit.clone());
                    if again.next().is_ok() {
                        scan = Scan::new(log, id, before, limit.clone());
                    } else if !self.damaged(&damage, &limit)? || !scan.resume(damage.flaw)? {
                        break;
                    }
                }
                Err(Stop::Error(error)) if error.kind == Kind::NewerFormat => {
                    self.seen.records += 1;
                    hasher.line(scan.last_line());
                    self.find("newer_format", Severity::Warning, error.to_string(), "update nf");
                }
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        self.seen.segments = scan.place.segment;
        self.seen.findings.extend(self.index.take().and_then(Compared::finding));
        self.place = Some(scan.place);
        progress(self.done, self.total)?;
        Ok(())
    }

    fn record(&mut self, record: &Record, hasher: &mut SegmentHash, scan: &Scan<'_>) {
        match record.events.first() {
            Some(Event::SegmentOpened { .. }) => *hasher = SegmentHash::default(),
            // Where lines before were damaged this would only say it again.
            Some(Event::SegmentClosed { segment, hash, .. })
                if self.damage.is_none() && hasher.finish() != *hash =>
            {
                let damage = Damage { segment: *segment, line: 0, byte: 0, flaw: Flaw::Segment };
                self.find("damage", Severity::Error, format!("log: {damage}"), "nf doctor");
            }
            _ => {}
        }
        hasher.line(scan.last_line());
        self.seen.bytes += scan.last_line().len() as u64 + 1;
        self.done = self.seen.bytes;
        self.seen.records += 1;
        if let Some(index) = &mut self.index {
            index.record(self.store, record, &scan.place);
        }
        for event in &record.events {
            self.cited.extend(cited(event));
            match event {
                Event::HandoffClaimed { attempt } => drop(self.active.insert(attempt.id.clone())),
                Event::ReceiptRecorded { receipt } => self.receipt(receipt),
                _ => {}
            }
            if let Some(attempt) = event.ended_attempt() {
                self.active.remove(attempt);
            }
        }
    }

    /// Notes damage; false where nothing behind it can be read as records.
    fn damaged(&mut self, damage: &Damage, limit: &Limit) -> Result<bool> {
        let open_end = matches!(limit, Limit::End) && damage.flaw == Flaw::Torn;
        if open_end && !self.store.valid_after(damage)? {
            self.find("torn", Severity::Warning, format!("log: {damage}"), "nf doctor --fix");
            return Ok(false);
        }
        if self.damage.is_none() {
            self.damage = Some(damage.clone());
        }
        let what = match (damage.segment, damage.line, damage.flaw) {
            (1, 1, Flaw::Chain) => format!("store.json is not what record 1 stands on ({damage})"),
            _ => format!("log: {damage}"),
        };
        let fix = "restore the log from a copy, or nf doctor --fix";
        self.find("damage", Severity::Error, what, fix);
        Ok(damage.flaw != Flaw::Head)
    }

    fn receipt(&mut self, receipt: &Receipt) {
        self.seen.receipts += 1;
        let name = mark_name(&receipt.source, &receipt.consumer);
        self.there.remove(&name);
        let mark = match &self.receipts {
            Some(receipts) => receipts.read(&name, LINE_LIMIT as u64),
            None => Ok(None),
        };
        match mark {
            Ok(Some(bytes)) if bytes == mark_bytes(receipt) => {}
            Ok(mark) if mark.as_ref().is_none_or(Vec::is_empty) => {
                self.unmarked.push((receipt.source.clone(), receipt.consumer.clone(), receipt.id.clone()));
            }
            Ok(_) => {
                let what = format!("receipts/{name} is not the mark of receipt {}", receipt.id);
                self.find(
                    "mark_damaged",
                    Severity::Error,
                    what,
                    "nf doctor --fix writes it again from the record",
                );
            }
            Err(error) => {
                let what = format!("the mark of receipt {}: {error}", receipt.id);
                self.find("mark_unreadable", Severity::Error, what, "nf doctor");
            }
        }
    }

    /// Marks and records, compared.
    pub fn marks(&mut self) -> Result<()> {
        // A writer may have been between head and mark when its record was read.
        for key in std::mem::take(&mut self.unmarked) {
            if self.store.mark(&key.0, &key.1)?.is_none_or(|bytes| bytes.is_empty()) {
                self.unmarked.push(key);
            }
        }
        if let Some((_, _, first)) = self.unmarked.first() {
            let what = format!("{} receipt(s) without a mark (first: {first})", self.unmarked.len());
            self.find("mark_missing", Severity::Note, what, "nf doctor --fix writes them again");
        }
        if self.damage.is_some() {
            return Ok(());
        }
        for name in std::mem::take(&mut self.there) {
            let empty =
                self.store.folder.folder("receipts")?.map_or(Ok(None), |folder| folder.stat_of(&name));
            if empty?.is_none_or(|stat| stat.st_size == 0) {
                continue;
            }
            let what = format!("receipts/{name} marks a receipt that the log lacks");
            let fix = "restore the log from a copy, or nf doctor --fix --accept-loss";
            self.find("receipt_lost", Severity::Error, what, fix);
            self.foreign.push(name);
        }
        Ok(())
    }

    fn log_bytes(&self, head: Option<&Head>) -> Result<u64> {
        let mut bytes = 0;
        for segment in 1.. {
            match head {
                Some(head) if head.segment == segment => return Ok(bytes + head.offset),
                _ => {}
            }
            match self.store.log()?.stat_of(&segment_name(segment))? {
                Some(stat) => bytes += stat.st_size as u64,
                None => break,
            }
        }
        Ok(bytes)
    }
}
