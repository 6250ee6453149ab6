//! `verify` proves the store, `doctor` says what is wrong with it and mends what can be mended.

use clap::Args;

use super::bar::Bar;
use super::ctx::Context;
use super::history::History;
use super::output::{Done, Report, count};
use crate::error::{Error, Kind, Result};
use crate::store::{Finding, Position, Severity};

mod settings;

/// Prove that nothing recorded has changed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf verify\n  nf verify --at 42:9f86d081884c7d65")]
pub struct Verify {
    /// Prove that the store still contains this moment, as a writer printed it
    #[arg(long, value_name = "SEQ:HASH")]
    pub at: Option<String>,
}

/// What a verification saw.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct VerifyReport {
    /// Records verified.
    pub records: u64,
    /// Log segments.
    pub segments: u32,
    /// Bytes of log and blobs.
    pub bytes: u64,
    /// Blobs hashed.
    pub blobs: u64,
    /// Receipts whose marks were compared.
    pub receipts: u64,
    /// The newest record.
    pub head: Option<Position>,
    /// The moment that was asked for, if the store contains it.
    pub at: Option<Position>,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

impl Report for VerifyReport {
    const COMMAND: &'static str = "verify";

    fn answer(&self) -> String {
        let mut lines = finding_lines(&self.findings);
        let told = |number: u64, noun| count(usize::try_from(number).unwrap_or(usize::MAX), noun);
        lines.push(format!(
            "{} in {}, {}, {}, {} verified",
            told(self.records, "record"),
            told(self.segments.into(), "segment"),
            told(self.blobs, "blob"),
            told(self.receipts, "receipt"),
            told(self.bytes, "byte"),
        ));
        if let Some(at) = &self.at {
            lines.push(format!("contains {}:{}", at.seq, at.hash));
        }
        if let Some(head) = &self.head {
            lines.push(format!("head {}:{}", head.seq, head.hash));
        }
        lines.join("\n")
    }

    fn failure(&self) -> Option<Error> {
        damage(&self.findings)
    }
}

/// Findings that are errors, as one: exit 11.
fn damage(findings: &[Finding]) -> Option<Error> {
    let bad: Vec<&Finding> = findings.iter().filter(|found| found.severity == Severity::Error).collect();
    let first = bad.first()?;
    let error = Error::new(Kind::Damaged, format!("{} of the findings are errors", bad.len()));
    Some(error.because(first.what.clone()).fix(first.fix.clone()))
}

fn finding_lines(findings: &[Finding]) -> Vec<String> {
    let line = |finding: &Finding| {
        format!("{} {}: {}\n  fix: {}", finding.severity, finding.code, finding.what, finding.fix)
    };
    findings.iter().map(line).collect()
}

impl Verify {
    /// Runs the command.
    ///
    /// # Errors
    /// `damaged` where the moment is not contained; `io`. Damage is a finding, with exit 11.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let at = match &self.at {
            Some(text) => Some(moment(&opened.store, text)?),
            None => None,
        };
        let mut history = History::default();
        let bar = Bar::new(ctx);
        let verified = opened
            .store
            .verify(&mut |done, total| bar.show(done, total), &mut |record| history.take(record))?;
        bar.end();
        let mut findings = verified.findings;
        findings.extend(history.findings());
        let report = VerifyReport {
            records: verified.records,
            segments: verified.segments,
            bytes: verified.bytes,
            blobs: verified.blobs,
            receipts: verified.receipts,
            head: verified.head,
            at,
            findings,
        };
        Ok(Done::of(&report))
    }
}

/// The recorded position that `SEQ:HASH` names; 16 or more digits of the hash are enough.
fn moment(store: &crate::store::Store, text: &str) -> Result<Position> {
    let wrong = || {
        Error::new(Kind::Usage, "--at wants SEQ:HASH, as writers print it")
            .because(format!("got {text:?}"))
            .fix("give the record that a writer printed, such as --at 42:9f86d081884c7d65")
    };
    let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
    let seq: u64 = seq.parse().map_err(|_| wrong())?;
    if !(16..=64).contains(&hash.len()) || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let gone = |got: String| {
        Error::new(Kind::Damaged, format!("the store does not contain {text}"))
            .because(got)
            .fix("nf doctor; compare with a backup: the history was changed or cut")
    };
    match store.records(seq).next().transpose()?.filter(|record| record.seq == seq) {
        None => Err(gone(format!("it has no record {seq}"))),
        Some(record) if record.hash.hex().starts_with(&hash.to_lowercase()) => {
            Ok(Position { seq: record.seq, hash: record.hash })
        }
        Some(record) => Err(gone(format!("record {seq} has hash {}", record.hash))),
    }
}

/// Say what is wrong with the store and the settings, and mend the store
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf doctor\n  nf doctor --fix\n  nf doctor --fix --accept-loss   \
    give up durable records, openly")]
pub struct Doctor {
    /// Mend what can be mended without losing a record
    #[arg(long)]
    pub fix: bool,
    /// Also give up what cannot be read; the loss itself is recorded
    #[arg(long, requires = "fix")]
    pub accept_loss: bool,
    /// Say whether the store lock excludes another process here
    #[arg(long)]
    pub selftest: bool,
}

/// What the doctor found or did.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct DoctorReport {
    /// What was done.
    pub done: Vec<Finding>,
    /// What is not as it should be (after what was done).
    pub findings: Vec<Finding>,
    /// What is wrong with config.yaml, contract packs and the user's workers.yaml. It damages no store.
    pub settings: Vec<Finding>,
    /// With --selftest: whether another process failed to take the lock that this one held.
    pub lock_excludes: Option<bool>,
}

impl Report for DoctorReport {
    const COMMAND: &'static str = "doctor";

    fn answer(&self) -> String {
        let mut lines: Vec<String> =
            self.done.iter().map(|done| format!("mended {}: {}", done.code, done.what)).collect();
        lines.extend(finding_lines(&self.findings));
        match self.lock_excludes {
            Some(true) => lines.push("the store lock excludes another process here".to_owned()),
            Some(false) => {
                lines.push("it is not proved that the store lock excludes another process".to_owned())
            }
            None => {}
        }
        if self.findings.is_empty() {
            lines.push("the store is sound".to_owned());
        }
        lines.extend(finding_lines(&self.settings));
        lines.join("\n")
    }

    fn failure(&self) -> Option<Error> {
        damage(&self.findings)
    }
}

impl Doctor {
    /// Runs the command.
    ///
    /// # Errors
    /// `busy`, `io`, `not_durable`, `lock_not_exclusive`. What is wrong with the store is a finding, with
    /// exit 11.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let done = if self.fix && !ctx.global.dry_run {
            opened.store.fix(&opened.source, self.accept_loss)?
        } else {
            Vec::new()
        };
        // What could not be mended is a finding; what a look alone would not see is among it.
        let (done, mut findings): (Vec<Finding>, Vec<Finding>) =
            done.into_iter().partition(|finding| finding.severity == Severity::Note);
        for found in opened.store.findings() {
            if !findings.iter().any(|left| left.code == found.code) {
                findings.push(found);
            }
        }
        let unsure = |finding: &Finding| ["lock_not_exclusive", "lock_busy"].contains(&finding.code.as_str());
        let lock_excludes = self.selftest.then(|| !findings.iter().any(unsure));
        let settings = settings::findings(ctx, &opened);
        Ok(Done::of(&DoctorReport { done, findings, settings, lock_excludes }))
    }
}
