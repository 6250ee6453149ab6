//! An answer comes in: stored, checked and counted against its question, or refused with the reason
//! recorded (control-plane contract, 05 to 06; semantic-execution contract, 07, 10 and 13).

use serde_json::Value;

use super::binding::{self, Against, Claim};
use super::checkpoint::{self, Saved};
use super::freeze::FrozenJob;
use super::independence;
use super::intake::{Extracted, IntakeFault};
use super::lease;
use super::no_result::{again, cannot_judge, invalid, late, unreadable};
use super::refusal::surplus;
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{Event, Reply};
use crate::model::handoff::{Attempt, AttemptState, Handoff, Lease};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, ResultId, SessionId};
use crate::model::job::{Grade, Job, Verdict};
use crate::model::result::{Checked, History, Imported, Provenance, ReplyClass, Standing, StoredResult};
use crate::model::run::Run;
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::model::witness::Witness;

/// What intake made of one reply.
pub type Intake = std::result::Result<Extracted, IntakeFault>;

/// Everything that an answer is decided on.
pub struct Arrival<'a> {
    /// BLAKE3 and length of the reply's bytes, or of the result file that brought it.
    pub bytes: (Hash, u64),
    /// The result file that brought it, where there is one.
    pub imported: Option<Imported>,
    /// What intake made of it.
    pub intake: &'a Intake,
    /// The sound answers of a reply that intake refuses: their verdicts are remembered.
    pub candidates: Vec<Value>,
    /// The attempt whose nonce it carries.
    pub attempt: Attempt,
    /// BLAKE3 of that nonce: the attempt's own, or one that it had before its claim was repeated.
    pub nonce: Hash,
    /// Its handoff.
    pub handoff: Handoff,
    /// The job, from the log, where there is one.
    pub job: Option<Job>,
    /// The frozen job, from its blob.
    pub frozen: &'a FrozenJob,
    /// What has happened to the question.
    pub history: History,
    /// The session that asked, and its current run.
    pub source: (Session, Option<Run>),
    /// Its ancestors.
    pub ancestors: Vec<SessionId>,
    /// The other side's ids of those who asked and froze, and of those before them, as far as they are known.
    pub natives: Vec<String>,
    /// The session that answered.
    pub worker: Session,
    /// What was seen of the invocation, where `nf` made one itself.
    pub witness: Option<Witness>,
    /// The result of the attempt, where it has one.
    pub held: Option<StoredResult>,
    /// The bindings that a checkpoint carries over.
    pub bindings: Bindings,
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Bound {
    /// The result.
    pub result: ResultId,
    /// The job, where there is one.
    pub job: Option<JobId>,
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The gate that `consume --as` must name for it to move.
    pub gate: Name,
    /// What the result is good for.
    pub standing: Standing,
    /// Its verdict; a negative one is valid.
    pub verdict: Verdict,
    /// How well a separate reviewer is proved.
    pub grade: Grade,
    /// All thirteen checks.
    pub checks: Vec<Check>,
    /// What intake changed.
    pub steps: Vec<String>,
    /// Whether the same answer was there already.
    pub duplicate: bool,
    /// Who has applied it.
    pub consumed: Vec<Name>,
    /// The command that leads on.
    #[serde(default)]
    pub way: String,
}

impl Arrival<'_> {
    /// Whether an answer from here counts: the attempt is the current one, and the nonce its newest.
    ///
    /// # Errors
    /// `handoff_cancelled`, `lease_lost`.
    pub(super) fn may_answer(&self) -> Result<()> {
        lease::may_answer(&self.attempt, &self.handoff)?;
        if self.nonce == self.attempt.nonce_hash {
            return Ok(());
        }
        Err(Error::new(Kind::LeaseLost, format!("the claim of attempt {} was repeated", self.attempt.id))
            .because("its packet went out again with another nonce, and only that one counts"))
    }
}

/// Decides what becomes of a reply whose nonce is known.
///
/// # Errors
/// Refusals that record nothing; all others stand in the decision's outcome.
pub fn arrive(turn: &mut Turn<'_>, arrival: Arrival<'_>) -> Result<Decision<Bound>> {
    // The same file again tells nothing that is not recorded: it gets its refusal and writes nothing.
    let again = arrival.imported.is_some() && arrival.attempt.brought == Some(arrival.bytes.0);
    let decision = decided(turn, arrival)?;
    Ok(match decision.outcome.is_err() && again {
        true => Decision { events: Vec::new(), ..decision },
        false => decision,
    })
}

fn decided(turn: &mut Turn<'_>, arrival: Arrival<'_>) -> Result<Decision<Bound>> {
    let extracted = match arrival.intake {
        Ok(extracted) => extracted,
        Err(fault) => return unreadable(turn, &arrival, fault),
    };
    let claim = Claim { imported: arrival.imported.is_some(), ..Claim::read(&extracted.value) };
    let claim = claim.seen(&arrival.attempt, arrival.witness.as_ref());
    if let Some(held) = &arrival.held {
        return again(turn, &arrival, &claim, held);
    }
    if let Err(refusal) = arrival.may_answer() {
        return late(turn, &arrival, &claim, refusal);
    }
    let checks = checks(&arrival, &claim);
    let failures = failed(&checks);
    if !failures.is_empty() {
        return invalid(turn, &arrival, &claim, checks, &failures);
    }
    if !claim.completed {
        return cannot_judge(turn, &arrival, &claim);
    }
    valid(turn, arrival, &claim, checks)
}

fn checks(arrival: &Arrival<'_>, claim: &Claim) -> Vec<Check> {
    let attempt = &arrival.attempt;
    let nonce_returned = Hash::of(claim.nonce.as_bytes()) == attempt.nonce_hash;
    let got = if nonce_returned { attempt.state.word() } else { "another nonce" };
    let current = attempt.state == AttemptState::Active && nonce_returned;
    let against = Against {
        frozen: arrival.frozen,
        job: arrival.job.as_ref(),
        attempt,
        attempt_check: Check::new(
            "attempt",
            current,
            format!("attempt {} (number {}), current, with its nonce", attempt.id, attempt.number),
            got,
        ),
        independence: Some(facts(arrival, claim, nonce_returned)),
    };
    binding::bind(claim, &against)
}

fn facts<'a>(arrival: &'a Arrival<'_>, claim: &Claim, nonce_returned: bool) -> independence::Facts<'a> {
    independence::Facts {
        source: &arrival.source.0.id,
        ancestors: &arrival.ancestors,
        natives: &arrival.natives,
        worker: &arrival.worker,
        witness: arrival.witness.as_ref(),
        imported: arrival.imported.is_some(),
        frozen_by: arrival.job.as_ref().map_or(&[], |job| &job.frozen_by),
        nonce_returned,
        named: claim.named(&arrival.attempt),
    }
}

pub(super) fn received(
    arrival: &Arrival<'_>,
    class: ReplyClass,
    reason: Option<String>,
    verdict: Option<String>,
) -> Reply {
    let extracted = arrival.intake.as_ref().ok();
    Reply {
        attempt: arrival.attempt.id.clone(),
        hash: arrival.bytes.0,
        bytes: arrival.bytes.1,
        class,
        reason,
        verdict,
        others: Vec::new(),
        said: None,
        steps: extracted.map(steps).unwrap_or_default(),
        prose: extracted.and_then(|extracted| extracted.prose.as_ref()).cloned(),
    }
}

fn steps(extracted: &Extracted) -> Vec<String> {
    extracted.steps.iter().map(|step| step.word().to_owned()).collect()
}

/// The verdict as spelled, known or not: what later answers are compared with.
pub(super) fn readable(arrival: &Arrival<'_>, claim: &Claim) -> Option<String> {
    let rule = arrival.frozen.verdict_rule()?;
    let spelled = rule.spelled(claim.output.as_ref()?)?;
    // A text that is no verdict of this job says nothing, and a long one does not belong in the log.
    [&rule.pass, &rule.fail, &rule.neutral]
        .into_iter()
        .any(|known| known.contains(&spelled))
        .then_some(spelled)
}

pub(super) fn bound(
    state: &State,
    arrival: &Arrival<'_>,
    result: &StoredResult,
    duplicate: bool,
) -> Result<Bound> {
    let way = super::ways::to_apply(state, result, &arrival.handoff);
    let checked = result.checked.clone().ok_or_else(|| {
        Error::new(Kind::NotConsumable, format!("result {} was stored and never checked", result.id))
    })?;
    Ok(Bound {
        result: result.id.clone(),
        job: result.job.clone(),
        handoff: arrival.handoff.id.clone(),
        attempt: arrival.attempt.id.clone(),
        gate: arrival.handoff.gate.clone(),
        standing: checked.standing,
        verdict: checked.verdict,
        grade: checked.grade,
        checks: checked.checks,
        steps: result.provenance.normalisation.clone(),
        duplicate,
        consumed: result.consumed.keys().cloned().collect(),
        way,
    })
}

/// The answer binds: it is stored, checked, and counted among the question's answers.
fn valid(
    turn: &mut Turn<'_>,
    arrival: Arrival<'_>,
    claim: &Claim,
    checks: Vec<Check>,
) -> Result<Decision<Bound>> {
    let output = claim.output.clone().unwrap_or_default();
    let verdict = binding::verdict(arrival.frozen, &output)
        .ok_or_else(|| Error::new(Kind::SemanticInvalid, "the verdict is not one that the job knows"))?;
    let standing = standing(&arrival, &verdict);
    let result = stored(turn, &arrival, claim)?;
    let grade = independence::grade(&independence::grounds(&facts(&arrival, claim, true)));
    let checked = Checked { standing, verdict, grade, checks };
    let reply = received(&arrival, ReplyClass::Valid, None, checked.verdict.value.clone());
    let mut events = Vec::new();
    if arrival.attempt.lapsed || lease::has_expired(&arrival.attempt.lease, &turn.now) {
        let lease = Lease::starting(&turn.now, arrival.attempt.lease.ttl_ms);
        events.push(Event::LeaseRevived { attempt: arrival.attempt.id.clone(), lease });
    }
    events.push(Event::ReplyReceived { reply });
    events.push(Event::ResultStored { result: result.clone() });
    events.push(Event::ResultChecked { result: result.id.clone(), checked: checked.clone() });
    events.push(Event::HandoffCompleted {
        handoff: arrival.handoff.id.clone(),
        attempt: arrival.attempt.id.clone(),
        result: result.id.clone(),
    });
    events.extend(lease::end_worker(turn.state, &arrival.attempt, Status::Completed)?);
    let whole = StoredResult { checked: Some(checked), ..result };
    if standing == Standing::Surplus {
        return Ok(Decision::refused(events, surplus(&arrival.history, &whole)));
    }
    let answer = bound(turn.state, &arrival, &whole, false)?;
    let (source, run) = arrival.source;
    if let Some(run) = run {
        let pending =
            CheckpointPending { handoff: Some(arrival.handoff.id), gate: Some(arrival.handoff.gate) };
        let saved = Saved { session: &source, run: &run, boundary: Boundary::ResultBound, pending };
        events.push(Event::CheckpointSaved { checkpoint: checkpoint::save(turn, saved, arrival.bindings)? });
    }
    Ok(Decision::new(events, answer))
}

/// Counted again under the lock: a second answer is surplus, one that follows another readable verdict
/// is contested.
fn standing(arrival: &Arrival<'_>, verdict: &Verdict) -> Standing {
    if arrival.history.closing(arrival.job.as_ref().map(|job| &job.execution)).is_some() {
        return Standing::Surplus;
    }
    let differs = |earlier: &String| Some(earlier) != verdict.value.as_ref();
    if arrival.history.verdicts.iter().any(differs) { Standing::Contested } else { Standing::Valid }
}

fn stored(turn: &mut Turn<'_>, arrival: &Arrival<'_>, claim: &Claim) -> Result<StoredResult> {
    let extracted = arrival.intake.as_ref().ok();
    Ok(StoredResult {
        id: turn.id()?,
        job: arrival.job.as_ref().map(|job| job.id.clone()),
        fingerprint: arrival.job.as_ref().map(|job| job.fingerprint.clone()),
        blob: turn.blob(claim.body_bytes()),
        provenance: Provenance {
            source_session: arrival.source.0.id.clone(),
            worker_session: arrival.worker.id.clone(),
            handoff: arrival.handoff.id.clone(),
            attempt: arrival.attempt.id.clone(),
            transport: arrival.attempt.transport,
            family: arrival.attempt.family(),
            provider: claim.provider.clone(),
            model_requested: arrival.witness.as_ref().and_then(|witness| witness.model_requested.clone()),
            model_served: claim.model.clone(),
            model_stated: claim.stated.clone().filter(|stated| claim.model.as_ref() != Some(stated)),
            name: claim.name.clone().or_else(|| arrival.attempt.worker.as_ref().map(ToString::to_string)),
            scope: claim.scope.as_deref().and_then(|scope| scope.parse().ok()),
            normalisation: extracted.map(steps).unwrap_or_default(),
            witness: arrival.witness.clone().map(Box::new),
            imported_from: arrival.imported.clone(),
        },
        stored_at: turn.at(),
        checked: None,
        consumed: std::collections::BTreeMap::new(),
    })
}
