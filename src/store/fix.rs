//! Doctor's work: under the lock it finds its findings again and mends what can be mended. Every whole line
//! is kept; what was durable is given up only when that is accepted, and then it is recorded.

use std::path::Path;

use super::append::{Entry, Locked};
use super::finding::{Finding, Severity};
use super::head::{self, HEAD, Head};
use super::mend::Plan;
use super::record::{self, Draft};
use super::scan::{Place, segment_name};
use super::side::{POISON, mark_bytes, mark_name};
use super::survey::Survey;
use super::verify::Audit;
use super::{Position, Store, blob};
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::time::{Moment, Source};

/// What doctor was asked, and what has been done so far.
struct Done<'a> {
    source: &'a Source,
    accept_loss: bool,
    findings: Vec<Finding>,
}

impl Done<'_> {
    fn add(&mut self, code: &str, what: impl Into<String>) {
        self.findings.push(Finding::new(code, Severity::Note, what, "done"));
    }

    fn left(&mut self, code: &str, what: impl Into<String>, fix: &str) {
        self.findings.push(Finding::new(code, Severity::Error, what, fix));
    }
}

impl Store {
    /// Mends what can be mended and says what was done, and what was left. With `accept_loss`, records that
    /// were durable and cannot be kept are given up; their bytes stay in `torn/`, and a record says so.
    ///
    /// # Errors
    /// The lock is not had or does not exclude others; a newer program wrote the store; a failed write or
    /// sync.
    pub fn fix(&self, source: &Source, accept_loss: bool) -> Result<Vec<Finding>> {
        if self.info.format > 1 {
            return Err(Error::new(Kind::NewerFormat, "a newer nf wrote this store; nothing was changed"));
        }
        let mut done = Done { source, accept_loss, findings: Vec::new() };
        self.put_in_order(&mut done)?;
        let mut locked = self.lock_poisoned()?;
        locked.self_check()?;
        self.sweep(&mut done)?;
        if self.fix_log(&mut locked, &mut done)? {
            self.fix_beside(&mut done)?;
        }
        self.fix_index(&mut done);
        if let Ok(mut folded) = self.folded.lock() {
            *folded = None;
        }
        for note in locked.release() {
            done.add("recovered", note);
        }
        Ok(done.findings)
    }

    /// Folders and modes; what is needed to take the lock at all.
    fn put_in_order(&self, done: &mut Done<'_>) -> Result<()> {
        let survey = Survey::of(self);
        for name in &survey.missing {
            match name.split_once('/') {
                Some((parent, name)) => drop(self.folder.folder_made(parent)?.folder_made(name)?),
                None => drop(self.folder.folder_made(name)?),
            }
        }
        if !survey.missing.is_empty() {
            done.add("folders", format!("{} missing folder(s) were made", survey.missing.len()));
        }
        for (path, mode) in &survey.modes {
            let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(*mode);
            std::fs::set_permissions(path, mode)
                .map_err(|error| Error::io(format!("chmod of {}", path.display()), &error))?;
        }
        if !survey.modes.is_empty() {
            done.add("modes", format!("{} mode(s) were set", survey.modes.len()));
        }
        Ok(())
    }

    /// Removes what writers that died left unfinished: under the lock nobody is at work.
    fn sweep(&self, done: &mut Done<'_>) -> Result<()> {
        let leftovers = Survey::of(self).leftovers;
        for path in &leftovers {
            std::fs::remove_file(path)
                .map_err(|error| Error::io(format!("removal of {}", path.display()), &error))?;
        }
        let old = self.sweep_indexes();
        if old > 0 {
            done.add("index_old", format!("{old} old index folder(s) were removed"));
        }
        if !leftovers.is_empty() {
            done.add("unfinished", format!("{} unfinished file(s) were removed", leftovers.len()));
        }
        Ok(())
    }

    /// The log, head and POISON; false where they were left as they are.
    fn fix_log(&self, locked: &mut Locked<'_>, done: &mut Done<'_>) -> Result<bool> {
        let newest = locked.head.slots.newest().cloned();
        let plan = self.plan(newest.as_ref())?;
        if plan.loss && !done.accept_loss {
            let kept = plan.place.as_ref().map_or(0, |place| place.seq);
            let what = match &newest {
                Some(head) => format!("of {} durable records {kept} can be kept without a gap", head.seq),
                None => format!("{kept} records can be kept without a gap, and others stand after them"),
            };
            let fix = "restore the log from a copy, or nf doctor --fix --accept-loss";
            done.left("loss", what, fix);
            return Ok(false);
        }
        let poisoned = self.poisoned()?;
        if plan.changes() || poisoned.is_some() {
            let end = newest.as_ref().map_or_else(|| plan.segments.len() as u32, |head| head.segment);
            let from = if poisoned.is_some() { end } else { u32::MAX };
            let given_up = locked.mend_log(&plan, from)?;
            self.end_of_mending(locked, &plan, given_up, done)?;
        }
        self.fix_head(locked, done)?;
        let mut folded = self.blank();
        locked.catch_up(&mut folded, done.source)?;
        locked.sync_head()?;
        if poisoned.is_some() {
            self.folder.unlink(POISON)?;
            self.folder.sync()?;
            done.add("poisoned", "the verified records were copied to a new file; writes go on");
        }
        Ok(true)
    }

    /// After files were written anew: head where it lies no longer in the log, and the record of a loss.
    fn end_of_mending(
        &self,
        locked: &mut Locked<'_>,
        plan: &Plan,
        given_up: Vec<Event>,
        done: &mut Done<'_>,
    ) -> Result<()> {
        if !plan.loss {
            if plan.changes() {
                done.add("damage", "the log was mended; every record was kept");
            }
            return Ok(());
        }
        let now = &(done.source.moment)();
        let place = match &plan.place {
            Some(place) => place.clone(),
            None => self.found_again(now)?,
        };
        let (id, device) = (&self.info.store_id, self.folder.device());
        let head = Head::at(&place, id, device, &now.boot_id, now.boottime_ms);
        locked.head.renew(Some(head), &self.folder, id)?;
        let mut folded = self.blank();
        locked.catch_up(&mut folded, done.source)?;
        let entry = Entry { op: None, cmd: "doctor", events: &given_up };
        let draft = locked.draft(&folded, &entry, now.wall)?;
        let Position { seq, .. } = locked.append(&mut folded, draft, &given_up)?;
        locked.settle(&folded, now)?;
        locked.sync_head()?;
        let what = format!("records after number {} were given up; record {seq} says so", place.seq);
        done.add("loss", what);
        Ok(())
    }

    /// A first record for a log of which nothing can be kept.
    fn found_again(&self, now: &Moment) -> Result<Place> {
        let last = self.info_hash;
        let events = [Event::SegmentOpened { segment: 1, store: self.info.store_id.clone(), last }];
        let draft = Draft { seq: 1, at: now.wall, op: None, cmd: "doctor", events: &events, prev: last };
        let (record, line) = record::encode(&draft)?;
        self.log()?.put(&segment_name(1), &line, self.folder.access.file())?;
        Ok(Place::start(last).after(&record, line.len() as u64))
    }

    fn fix_head(&self, locked: &mut Locked<'_>, done: &mut Done<'_>) -> Result<()> {
        let bytes = self.folder.read(HEAD, 1 << 20)?.unwrap_or_default();
        let faults = head::faults(&bytes, &self.info.store_id);
        if !faults.is_empty() {
            locked.head.renew(None, &self.folder, &self.info.store_id)?;
            done.add("head_slot", format!("head was written anew ({})", faults.join("; ")));
        }
        Ok(())
    }

    /// Marks, packets and blobs, by what the log says.
    fn fix_beside(&self, done: &mut Done<'_>) -> Result<()> {
        let (mut marks, mut failed) = (0u64, None);
        let mut audit = Audit::new(self, true)?;
        audit.log(&mut |_, _| Ok(()), &mut |record| {
            for event in &record.events {
                let Event::ReceiptRecorded { receipt } = event else { continue };
                let there = self.mark(&receipt.source, &receipt.consumer);
                let bytes = mark_bytes(receipt);
                if there.is_ok_and(|there| there.is_some_and(|there| there == bytes)) {
                    continue;
                }
                let name = mark_name(&receipt.source, &receipt.consumer);
                let receipts = self.folder.folder_made("receipts");
                let put = receipts.and_then(|folder| folder.put(&name, &bytes, self.folder.access.file()));
                match put {
                    Ok(()) => marks += 1,
                    Err(error) => failed = Some(error),
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if marks > 0 {
            done.add("mark_missing", format!("{marks} receipt mark(s) were written again"));
        }
        audit.marks()?;
        audit.blobs(&mut |_, _| Ok(()))?;
        self.drop_packets(&audit, done)?;
        self.move_away(&audit, done)?;
        let left = |finding: &&Finding| ["blob_missing", "index"].contains(&finding.code.as_str());
        let lost = audit.seen.findings.iter().filter(left);
        done.findings.extend(lost.cloned());
        Ok(())
    }

    /// An index that is sound stays: the next command need not make it anew.
    fn fix_index(&self, done: &mut Done<'_>) {
        let bad =
            done.findings.iter().any(|found| ["damage", "loss", "index"].contains(&found.code.as_str()));
        done.findings.retain(|found| found.code != "index");
        if (bad || !self.index_counts()) && self.drop_index() {
            done.add("index", "the index was removed; the next command makes it anew");
        }
    }

    fn drop_packets(&self, audit: &Audit<'_>, done: &mut Done<'_>) -> Result<()> {
        let Some(packets) = self.folder.folder("packets")? else { return Ok(()) };
        let mut dropped = 0;
        for name in packets.names()? {
            if !audit.active.iter().any(|attempt| attempt.to_string() == name) {
                packets.unlink(&name)?;
                dropped += 1;
            }
        }
        if dropped > 0 {
            done.add("packets", format!("{dropped} packet(s) of attempts that are not open were dropped"));
        }
        Ok(())
    }

    /// Marks without a record, and blobs that are not what they say, go to `torn/`.
    fn move_away(&self, audit: &Audit<'_>, done: &mut Done<'_>) -> Result<()> {
        let torn = self.folder.folder_made("torn")?;
        for name in &audit.foreign {
            if done.accept_loss {
                self.folder.folder_made("receipts")?.rename(name, &torn, &format!("receipt-{name}"))?;
                done.add("receipt_lost", format!("receipts/{name}, whose record is lost, went to torn/"));
            } else {
                let what = format!("receipts/{name} marks a receipt that the log lacks");
                done.left(
                    "receipt_lost",
                    what,
                    "restore the log from a copy, or nf doctor --fix --accept-loss",
                );
            }
        }
        for (hash, cited) in &audit.bad_blobs {
            if *cited && !done.accept_loss {
                let fix = "put the blob back from a copy; nf doctor --fix --accept-loss moves it to torn/";
                done.left("blob_damaged", format!("blob {hash} is damaged"), fix);
                continue;
            }
            let name = hash.hex();
            let shelf = Path::new("blobs").join(blob::shelf(hash)).join(&name);
            if self.root().join(shelf).exists() {
                let shelf = self.folder.folder_made("blobs")?.folder_made(&blob::shelf(hash))?;
                shelf.rename(&name, &torn, &format!("blob-{name}"))?;
                done.add("blob_damaged", format!("blob {hash}, which is damaged, went to torn/"));
            }
        }
        torn.sync()
    }
}
