//! Doctor's look at a store: everything that is not as it should be, with the next step. Changes nothing
//! and needs no lock, but takes it for a moment to see that it excludes others.

use super::Store;
use super::damage::Flaw;
use super::finding::{Finding, Severity};
use super::lock::{self, LOCK};
use super::scan::{Limit, Place, Scan, Stop};
use super::survey::{self, Survey};
use super::verify::Audit;
use crate::error::{Error, Kind, Result};

impl Store {
    /// Everything that is not as it should be; changes nothing. Blobs are looked for, not hashed
    /// ([`Store::verify`] does that).
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Survey::of(self).findings;
        take(&mut found, survey::head_findings(self));
        found.extend(self.foreign_indexes());
        take(&mut found, self.recorded());
        take(&mut found, self.lock_findings().map(|finding| finding.into_iter().collect()));
        found.sort_by_key(|finding| finding.severity);
        found
    }

    /// What is wrong with the log and what rests on it.
    fn recorded(&self) -> Result<Vec<Finding>> {
        let mut audit = Audit::new(self, false)?;
        audit.log(&mut |_, _| Ok(()), &mut |_| {})?;
        audit.marks()?;
        audit.blobs(&mut |_, _| Ok(()))?;
        if let (None, Some(place), Some(_)) = (&audit.damage, audit.place.clone(), audit.seen.head) {
            audit.seen.findings.extend(self.beyond(place)?);
        }
        let packets = self.folder.folder("packets")?.map_or(Ok(Vec::new()), |packets| packets.names())?;
        let open = |name: &String| audit.active.iter().any(|attempt| attempt.to_string() == *name);
        let ended: Vec<&String> =
            packets.iter().filter(|name| !name.ends_with(".new") && !open(name)).collect();
        if let Some(first) = ended.first() {
            let what = format!("{} packet(s) of attempts that are not open (first: {first})", ended.len());
            audit.seen.findings.push(Finding::new("packets", Severity::Warning, what, "nf doctor --fix"));
        }
        Ok(audit.seen.findings)
    }

    /// What lies beyond head: a writer at work, or one that died.
    pub(super) fn beyond(&self, place: Place) -> Result<Vec<Finding>> {
        let start = place.seq;
        let mut scan = Scan::new(self.log()?, &self.info.store_id, place, Limit::End);
        let mut found = Vec::new();
        let stop = loop {
            match scan.next() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(stop) => break Some(stop),
            }
        };
        if scan.place.seq > start {
            let what = format!("{} record(s) that head does not cover yet", scan.place.seq - start);
            found.push(Finding::new("behind", Severity::Note, what, "nothing: the next writer covers them"));
        }
        match stop {
            None => {}
            Some(Stop::Error(error)) => return Err(error),
            Some(Stop::Damage(damage)) if damage.flaw == Flaw::After || self.valid_after(&damage)? => {
                let what = format!("log, beyond head: {damage}");
                found.push(Finding::new("damage", Severity::Error, what, "nf doctor --fix"));
            }
            Some(Stop::Damage(damage)) => {
                let what = format!("bytes after the last record ({damage}): torn, never acknowledged");
                let fix = "nothing: the next writer moves them to torn/";
                found.push(Finding::new("torn", Severity::Warning, what, fix));
            }
        }
        if scan.place.closed {
            let fix = "nothing: the next writer begins the next segment";
            found.push(Finding::new("rotation", Severity::Note, "the last segment is closed", fix));
        }
        // What a writer at work had not covered yet is no finding.
        let moved = self.head()?.is_none_or(|head| head.seq != start);
        Ok(if moved { Vec::new() } else { found })
    }

    /// Whether the file system and the modes let this user write the store.
    fn can_write(&self) -> bool {
        rustix::fs::access(self.root().join(LOCK), rustix::fs::Access::WRITE_OK).is_ok()
    }

    fn lock_findings(&self) -> Result<Option<Finding>> {
        if !self.folder.has(LOCK)? {
            return Ok(None);
        }
        let held = match lock::acquire(&self.folder, self.options.lock_timeout_ms) {
            Ok(held) => held,
            Err(error) if error.kind == Kind::Busy => {
                let what = format!("the lock could not be tried: {error}");
                return Ok(Some(Finding::new("lock_busy", Severity::Note, what, "run nf doctor again")));
            }
            Err(error) if !self.can_write() => {
                let what = format!("the store can only be read here: {error}");
                return Ok(Some(Finding::new("read_only", Severity::Note, what, error.next_step())));
            }
            Err(error) => return Err(error),
        };
        let checked = match &self.options.self_check {
            Some(program) => lock::self_check(program, &self.folder, &held),
            None => Ok(()),
        };
        held.release()?;
        checked.map(|()| None)
    }
}

/// Takes findings; an error while looking is a finding too.
fn take(found: &mut Vec<Finding>, more: Result<Vec<Finding>>) {
    match more {
        Ok(more) => found.extend(more),
        Err(error) => found.push(of_error(&error)),
    }
}

fn of_error(error: &Error) -> Finding {
    let cause = error.cause.as_deref().map_or(String::new(), |cause| format!(" ({cause})"));
    let fix = if error.next_step() == "nf doctor" { "nf doctor --fix" } else { error.next_step() };
    Finding::new(&error.kind.word(), Severity::Error, format!("{error}{cause}"), fix)
}
