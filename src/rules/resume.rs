//! Resume: a fresh validation, never "continue where memory says it left off" (session-runtime contract,
//! 07 and 12). All eleven checks run and are shown; any failure stops, and nothing is written.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use super::bindings::checks;
use super::checkpoint::{self, Saved};
use super::effect;
use super::lifecycle::{self, Course};
use super::session::next_run;
use crate::error::{Error, Kind, Result};
use crate::model::capability::Capability;
use crate::model::check::{Check, failed};
use crate::model::checkpoint::{ArtifactPlace, Bindings, Boundary, Checkpoint, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::effect::Effect;
use crate::model::handoff::{Attempt, AttemptState, Handoff};
use crate::model::hash::Hash;
use crate::model::id::{CheckpointId, Name, ResultId, RunId, SessionId};
use crate::model::result::StoredResult;
use crate::model::run::{Gate, ManifestEntry, Run, RunStatus};
use crate::model::session::{ResumePolicy, Session, Status};

/// The eleven names, in order.
pub const NAMES: [&str; 11] = [
    "session",
    "checkpoint",
    "compatibility",
    "authority",
    "context",
    "artifacts",
    "approvals",
    "effects",
    "capabilities",
    "pending",
    "consumed",
];

/// What was read from a bound file: its bytes' hash, or why it could not be read.
pub type Seen = std::result::Result<Hash, String>;

/// What the bound files say now, by binding name.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Artifacts by place: hash of the slice, and how a changed one differs.
    pub artifacts: BTreeMap<ArtifactPlace, (Seen, Option<Difference>)>,
    /// Authority files.
    pub authority: BTreeMap<Name, Seen>,
    /// Recorded versions.
    pub compatibility: BTreeMap<Name, Seen>,
    /// Approvals.
    pub approvals: BTreeMap<Name, Seen>,
}

/// A difference that a reader would not see; it still blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Only line endings differ.
    LineEndings,
    /// Only Unicode normalisation differs.
    Normalisation,
    /// The text differs.
    Text,
}

impl Difference {
    /// How two byte strings differ.
    pub fn between(before: &[u8], after: &[u8]) -> Self {
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
        let (before, after) = (lines(before), lines(after));
        if before == after {
            Difference::LineEndings
        } else if before.nfc().eq(after.nfc()) {
            Difference::Normalisation
        } else {
            Difference::Text
        }
    }

    /// The difference in words, or nothing where the text itself differs.
    pub fn words(self) -> &'static str {
        match self {
            Difference::LineEndings => " (only the line endings differ)",
            Difference::Normalisation => " (only the Unicode normalisation differs)",
            Difference::Text => "",
        }
    }
}

/// A result that came back for this session.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The result.
    pub result: ResultId,
    /// The handoff's gate.
    pub gate: Name,
    /// Whether the gate has consumed it.
    pub consumed: bool,
    /// The checks, run again from its bytes.
    pub failed: Vec<String>,
}

/// Everything that a resume is decided on.
pub struct Resume {
    /// The session.
    pub session: Session,
    /// Its newest run.
    pub run: Option<Run>,
    /// The checkpoint to resume from: the newest, or the one that was named.
    pub checkpoint: Option<Checkpoint>,
    /// Its bindings.
    pub bindings: Bindings,
    /// What the bound files say now.
    pub observed: Observed,
    /// Whether a run that was cut off is to be ended first.
    pub interrupted: bool,
    /// The run that the caller means.
    pub expected_run: Option<RunId>,
    /// The version that the caller means.
    pub expected_version: Option<u64>,
    /// Handoffs that are outstanding, with their newest attempts.
    pub outstanding: Vec<(Handoff, Option<Attempt>)>,
    /// The effects that it answers for, with what stands at their paths now.
    pub effects: Vec<(Effect, effect::Seen)>,
    /// Results that came back since.
    pub returned: Vec<Returned>,
    /// The newest evidence of the capabilities that the bindings name.
    pub evidence: BTreeMap<Name, Capability>,
    /// The bindings that the new checkpoint carries, with what the config declares.
    pub carried: Bindings,
}

/// Where the work goes on.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Resumed {
    /// The session.
    pub session: SessionId,
    /// Its state now.
    pub status: Status,
    /// The new run.
    pub run: RunId,
    /// The checkpoint that was validated.
    pub from: CheckpointId,
    /// The workflow step.
    pub cursor: Name,
    /// All eleven checks.
    pub checks: Vec<Check>,
    /// What to read: name, path and hash, never content.
    pub context: Vec<ManifestEntry>,
    /// Names of what changed since and must be read again.
    pub reread: Vec<Name>,
    /// What the gates say.
    pub gates: BTreeMap<Name, Gate>,
    /// A result that waits to be consumed, and the gate it is for.
    pub unconsumed: Vec<(ResultId, Name)>,
    /// The command that consumes the first of them.
    #[serde(default)]
    pub way: Option<String>,
}

/// Validates and goes on, or says what changed.
///
/// # Errors
/// `cannot_resume`, `illegal_transition`, `older_checkpoint`, `not_current_run`, `version_mismatch` (exit
/// 3); `stale` (exit 9) with all checks; `pending` (exit 8).
pub fn resume(turn: &mut Turn<'_>, resume: Resume) -> Result<Decision<Resumed>> {
    let mut course =
        Course::new(resume.session.clone(), resume.run.clone().filter(|run| run.status.is_current()));
    course.expect_version(resume.expected_version)?;
    expect_run(&resume)?;
    may_resume(&resume)?;
    let checkpoint = newest_checkpoint(&resume)?;
    let checks = checks(&resume, checkpoint, turn.at());
    // Outstanding work alone is exit 8; everything else that failed, a returned result that no longer
    // binds among it, is exit 9.
    let only_waits = resume.returned.iter().all(|returned| returned.failed.is_empty());
    let stale: Vec<String> =
        failed(&checks).into_iter().filter(|name| name != "pending" || !only_waits).collect();
    if !stale.is_empty() {
        return Err(stale_error(&resume.session.id, &checks, &stale));
    }
    if let Some((handoff, attempt)) = resume.outstanding.first() {
        return Err(pending_error(turn, handoff, attempt.as_ref(), &checks));
    }
    if resume.interrupted && course.session.status == Status::Running {
        course.end(RunStatus::Interrupted, "interrupted");
        course.go(Status::Failed)?;
    }
    course.end(RunStatus::Completed, "continued_by");
    go_on(turn, course, resume, checks)
}

fn expect_run(resume: &Resume) -> Result<()> {
    let current = resume.session.run.as_ref();
    match &resume.expected_run {
        Some(run) if current != Some(run) => Err(not_current(&resume.session, run)),
        _ => Ok(()),
    }
}

/// The refusal of a run that is no longer its session's current one.
pub fn not_current(session: &Session, run: &RunId) -> Error {
    let current = session.run.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    Error::new(Kind::NotCurrentRun, format!("run {run} is not the current run of session {}", session.id))
        .because(format!("the newest run is {current}"))
}

fn may_resume(resume: &Resume) -> Result<()> {
    let session = &resume.session;
    if session.resume_policy == ResumePolicy::Forbidden {
        return Err(Error::new(
            Kind::CannotResume,
            format!("session {} has resume policy forbidden", session.id),
        )
        .fix(way_from(&session.id)));
    }
    match session.status {
        Status::Idle | Status::AwaitingUser | Status::AwaitingExternal | Status::Failed => Ok(()),
        Status::Running if resume.interrupted => Ok(()),
        Status::Running => {
            Err(Error::new(Kind::IllegalTransition, format!("session {} is running", session.id))
                .because("a session resumes from idle, awaiting_user, awaiting_external or failed")
                .fix(format!(
                    "it runs already: nf status; if its shell is dead: nf resume {} --interrupted",
                    session.id
                )))
        }
        other => {
            lifecycle::allow(&session.id, other, Status::Running)?;
            Err(Error::new(Kind::CannotResume, format!("session {} is {other} and has not run", session.id))
                .fix(lifecycle::way(&session.id, other)))
        }
    }
}

fn newest_checkpoint(resume: &Resume) -> Result<&Checkpoint> {
    let session = &resume.session;
    let newest = session.checkpoint.as_ref();
    match &resume.checkpoint {
        Some(checkpoint) if checkpoint.session != session.id => {
            Err(Error::new(Kind::CannotResume, format!("checkpoint {} is another session's", checkpoint.id))
                .because(format!("want session {}, got {}", session.id, checkpoint.session)))
        }
        Some(checkpoint) if newest != Some(&checkpoint.id) => {
            let newest = newest.map_or_else(|| "none".to_owned(), ToString::to_string);
            Err(Error::new(Kind::OlderCheckpoint, format!("checkpoint {} is not the newest", checkpoint.id))
                .because(format!("the newest is {newest}"))
                .fix(format!("nf session move {} stale, then nf start --from {}", session.id, checkpoint.id)))
        }
        Some(checkpoint) => Ok(checkpoint),
        None => Err(Error::new(Kind::CannotResume, format!("session {} has no checkpoint", session.id))
            .fix(way_from(&session.id))),
    }
}

fn way_from(session: &SessionId) -> String {
    format!("nf session move {session} stale, then nf start --from {session}")
}

fn stale_error(session: &SessionId, checks: &[Check], stale: &[String]) -> Error {
    let lines: Vec<String> = checks
        .iter()
        .filter(|check| stale.contains(&check.check))
        .map(|check| format!("{}: {}", check.check, check.got))
        .collect();
    let changed: Vec<&str> = stale.iter().map(String::as_str).filter(|name| *name != "effects").collect();
    let (mut why, mut ways) = (Vec::new(), Vec::new());
    if !changed.is_empty() {
        why.push(format!("{} changed since its checkpoint", changed.join(", ")));
        let from = way_from(session);
        ways.push(format!("restore what changed and resume, or leave the old bindings behind: {from}"));
    }
    // An uncertain write goes with whoever follows: leaving the session behind proves nothing.
    if changed.len() < stale.len() {
        why.push("a write is not proved".to_owned());
        ways.insert(0, "settle each effect as said above, then resume".to_owned());
    }
    Error::new(Kind::Stale, format!("session {session} cannot go on: {}", why.join("; ")))
        .because(lines.join("\n       "))
        .fix(ways.join("; "))
        .details(serde_json::json!({"failed": stale, "checks": checks}))
}

fn pending_error(turn: &Turn<'_>, handoff: &Handoff, attempt: Option<&Attempt>, checks: &[Check]) -> Error {
    let open = attempt.filter(|attempt| attempt.state == AttemptState::Active);
    let stands = super::waiting::look(turn.state, handoff, &turn.now, &|time| time.to_string());
    let until = open.map_or(stands.why, |attempt| {
        format!("attempt {} is open until {}", attempt.id, attempt.lease.expires_at())
    });
    Error::new(Kind::Pending, format!("handoff {} is outstanding for gate {}", handoff.id, handoff.gate))
        .because(until)
        .fix(stands.way)
        .details(serde_json::json!({"handoff": handoff.id, "gate": handoff.gate, "checks": checks}))
}

/// What to read now: each bound artifact with the hash that it has now.
fn manifest(resume: &Resume) -> (Vec<ManifestEntry>, Vec<Name>) {
    let mut reread = Vec::new();
    let entries = resume.bindings.artifacts.iter().map(|artifact| {
        let now = resume.observed.artifacts.get(&artifact.place()).and_then(|(seen, _)| seen.as_ref().ok());
        let hash = now.copied().unwrap_or(artifact.hash);
        if hash != artifact.hash {
            reread.push(artifact.name.clone());
        }
        ManifestEntry { name: artifact.name.clone(), path: Some(artifact.path.clone()), hash }
    });
    (entries.collect(), reread)
}

fn go_on(
    turn: &mut Turn<'_>,
    mut course: Course,
    mut resume: Resume,
    checks: Vec<Check>,
) -> Result<Decision<Resumed>> {
    let (context, reread) = manifest(&resume);
    let from = resume.checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
    let from = from.ok_or_else(|| Error::new(Kind::CannotResume, "there is no checkpoint to resume from"))?;
    let old = resume.run.as_ref();
    let cursor = old
        .map(|run| run.cursor.clone())
        .or_else(|| resume.checkpoint.as_ref().map(|checkpoint| checkpoint.cursor.clone()));
    course.go(Status::Running)?;
    let cursor = cursor.ok_or_else(|| Error::new(Kind::CannotResume, "the session has no cursor"))?;
    let run = next_run(turn, &course.session, cursor, context.clone(), old)?;
    course.begin(run.clone());
    let saved = Saved {
        session: &course.session,
        run: &run,
        boundary: Boundary::Other,
        pending: CheckpointPending::default(),
    };
    effect::drop_what_is_over(turn.state, &mut resume.carried);
    let saved = checkpoint::save(turn, saved, resume.carried)?;
    course.events.push(crate::model::event::Event::CheckpointSaved { checkpoint: saved });
    let waiting = resume.returned.into_iter().filter(|returned| !returned.consumed);
    let unconsumed: Vec<_> = waiting.map(|returned| (returned.result, returned.gate)).collect();
    let way = unconsumed.first().and_then(|(id, gate)| {
        turn.state.get::<StoredResult>(id).map(|stored| super::ways::consume(&stored, gate))
    });
    Ok(Decision::new(
        course.events,
        Resumed {
            session: course.session.id,
            status: course.session.status,
            run: run.id,
            from,
            cursor: run.cursor,
            checks,
            context,
            reread,
            gates: run.pending.gates,
            unconsumed,
            way,
        },
    ))
}
