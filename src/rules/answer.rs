//! An answer comes in: stored, checked and counted against its question, or refused with the reason
//! recorded (control-plane contract, 05 to 06; semantic-execution contract, 07, 10 and 13).

use serde_json::Value;

use super::binding::{self, Against, Claim};
use super::checkpoint::{self, Saved};
use super::freeze::FrozenJob;
use super::independence;
use super::intake::{Extracted, IntakeFault};
use super::lease;
use super::refusal::{binding_error, intake_error, surplus};
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{ConflictKind, Event, Reply};
use crate::model::handoff::{Attempt, AttemptState, Handoff, Lease};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, ResultId, SessionId, word};
use crate::model::job::{Grade, Job, Verdict};
use crate::model::result::{Checked, History, Provenance, ReplyClass, Standing, StoredResult};
use crate::model::run::Run;
use crate::model::session::{Session, Status};

/// What intake made of one reply.
pub type Intake = std::result::Result<Extracted, IntakeFault>;

/// Everything that an answer is decided on.
pub struct Arrival<'a> {
    /// BLAKE3 and length of the reply's bytes.
    pub bytes: (Hash, u64),
    /// What intake made of it.
    pub intake: &'a Intake,
    /// The sound answers of a reply that intake refuses: their verdicts are remembered.
    pub candidates: Vec<Value>,
    /// The attempt whose nonce it carries.
    pub attempt: Attempt,
    /// Its handoff.
    pub handoff: Handoff,
    /// The job, from the log.
    pub job: Job,
    /// The frozen job, from its blob.
    pub frozen: &'a FrozenJob,
    /// What has happened to the question.
    pub history: History,
    /// The session that asked, and its current run.
    pub source: (Session, Option<Run>),
    /// Its ancestors.
    pub ancestors: Vec<SessionId>,
    /// The session that answered.
    pub worker: Session,
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
    /// The job.
    pub job: JobId,
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
}

/// Decides what becomes of a reply whose nonce is known.
///
/// # Errors
/// Refusals that record nothing; all others stand in the decision's outcome.
pub fn arrive(turn: &mut Turn<'_>, arrival: Arrival<'_>) -> Result<Decision<Bound>> {
    let extracted = match arrival.intake {
        Ok(extracted) => extracted,
        Err(fault) => return unreadable(turn, &arrival, fault),
    };
    let claim = Claim::read(&extracted.value);
    if let Some(held) = &arrival.held {
        return again(turn, &arrival, &claim, held);
    }
    if let Err(refusal) = lease::may_answer(&arrival.attempt, &arrival.handoff) {
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
        job: &arrival.job,
        attempt,
        attempt_check: Check::new(
            "attempt",
            current,
            format!("attempt {} (number {}), current, with its nonce", attempt.id, attempt.number),
            got,
        ),
        independence: facts(arrival, claim, nonce_returned),
    };
    binding::bind(claim, &against)
}

fn facts<'a>(arrival: &'a Arrival<'_>, claim: &Claim, nonce_returned: bool) -> independence::Facts<'a> {
    independence::Facts {
        source: &arrival.source.0.id,
        ancestors: &arrival.ancestors,
        source_native: arrival.source.0.native.as_deref(),
        worker: &arrival.worker,
        frozen_by: &arrival.job.frozen_by,
        nonce_returned,
        named: claim.named(arrival.attempt.transport),
    }
}

fn received(
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
fn readable(arrival: &Arrival<'_>, claim: &Claim) -> Option<String> {
    let rule = arrival.frozen.verdict_rule()?;
    let spelled = rule.spelled(claim.output.as_ref()?)?;
    // A text that is no verdict of this job says nothing, and a long one does not belong in the log.
    [&rule.pass, &rule.fail, &rule.neutral]
        .into_iter()
        .any(|known| known.contains(&spelled))
        .then_some(spelled)
}

/// Bytes came that are not one value: the attempt stays open, at most five times.
fn unreadable(turn: &mut Turn<'_>, arrival: &Arrival<'_>, fault: &IntakeFault) -> Result<Decision<Bound>> {
    let error = intake_error(fault);
    let current = lease::may_answer(&arrival.attempt, &arrival.handoff).is_ok();
    let class = if current { ReplyClass::SemanticInvalid } else { ReplyClass::Late };
    let own = |claim: &Claim| Hash::of(claim.nonce.as_bytes()) == arrival.attempt.nonce_hash;
    let claims = arrival.candidates.iter().map(Claim::read).filter(own);
    let mut verdicts = claims.filter_map(|claim| readable(arrival, &claim));
    let first = verdicts.next();
    let mut reply = received(arrival, class, Some(fault.reason.word().to_owned()), first);
    reply.others = verdicts.collect();
    if !current {
        return Ok(Decision::refused(vec![Event::ReplyReceived { reply }], error));
    }
    one_more_invalid(turn, arrival, reply, error)
}

/// A value came that does not bind.
fn invalid(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
    checks: Vec<Check>,
    failures: &[String],
) -> Result<Decision<Bound>> {
    let class = ReplyClass::SemanticInvalid;
    let reply = received(arrival, class, Some(failures.join(",")), readable(arrival, claim));
    one_more_invalid(turn, arrival, reply, binding_error(&arrival.job.id, checks))
}

fn one_more_invalid(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    reply: Reply,
    error: Error,
) -> Result<Decision<Bound>> {
    let mut events = vec![Event::ReplyReceived { reply }];
    let used = arrival.attempt.invalid + 1;
    let error = if used >= lease::MAX_INVALID {
        let reason = word("too_many_invalid")?;
        events.extend(lease::fail(
            turn.state,
            &arrival.attempt,
            &arrival.handoff,
            &arrival.history,
            &reason,
        )?);
        error.fix(format!(
            "attempt {} ends after {used} invalid replies; nf packet opens another",
            arrival.attempt.id
        ))
    } else {
        error
    };
    Ok(Decision::refused(events, error))
}

fn cannot_judge(turn: &mut Turn<'_>, arrival: &Arrival<'_>, claim: &Claim) -> Result<Decision<Bound>> {
    let mut reply = received(arrival, ReplyClass::ExecutionFailed, Some("cannot_judge".to_owned()), None);
    reply.said = claim.reason.as_deref().map(|said| turn.text(said));
    let mut events = vec![Event::ReplyReceived { reply }];
    let reason = word("cannot_judge")?;
    events.extend(lease::fail(turn.state, &arrival.attempt, &arrival.handoff, &arrival.history, &reason)?);
    let said = claim.reason.clone().unwrap_or_else(|| "no reason given".to_owned());
    let error = Error::new(Kind::ExecutionFailed, "the reviewer could not judge; this is no verdict")
        .because(format!("cannot_judge: {said}"))
        .details(serde_json::json!({"reason": "cannot_judge", "said": claim.reason}));
    Ok(Decision::refused(events, error))
}

/// Keeps a refused value as a blob that only the refusal cites, unless it holds what must not be kept.
fn kept(turn: &mut Turn<'_>, claim: &Claim) -> Option<Hash> {
    let clean = super::blind::private(&claim.whole).is_empty();
    let body = claim.body_bytes();
    (clean && claim.output.is_some() && body.len() <= binding::MAX_RESULT).then(|| turn.blob(body))
}

/// An attempt that is not the current one: nothing lost, nothing applied.
fn late(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
    refusal: Error,
) -> Result<Decision<Bound>> {
    let value = kept(turn, claim);
    let reply = received(arrival, ReplyClass::Late, Some(refusal.kind.word()), readable(arrival, claim));
    let events = vec![
        Event::ReplyReceived { reply },
        Event::ConflictRefused {
            kind: ConflictKind::Late,
            attempt: Some(arrival.attempt.id.clone()),
            result: None,
            consumer: None,
            value,
        },
    ];
    let error = refusal.details(serde_json::json!({"attempt": arrival.attempt.id, "value": value}));
    let error = match value {
        Some(hash) => error.fix(format!("nothing was applied; the answer is kept as blob {hash}; nf status")),
        None => error,
    };
    Ok(Decision::refused(events, error))
}

/// The attempt has its result: the same value is the same answer, another one a hard stop.
fn again(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
    held: &StoredResult,
) -> Result<Decision<Bound>> {
    if Hash::of(&claim.body_bytes()) == held.blob {
        let bound = bound(arrival, held, true)?;
        return Ok(match bound.standing {
            Standing::Surplus => Decision::refused(Vec::new(), surplus(&arrival.history, held)),
            Standing::Valid | Standing::Contested => Decision::nothing(bound),
        });
    }
    let value = kept(turn, claim);
    let reply =
        received(arrival, ReplyClass::Conflict, Some("other_answer".to_owned()), readable(arrival, claim));
    let events = vec![
        Event::ReplyReceived { reply },
        Event::ConflictRefused {
            kind: ConflictKind::Result,
            attempt: Some(arrival.attempt.id.clone()),
            result: Some(held.id.clone()),
            consumer: None,
            value,
        },
    ];
    let got = value.map_or_else(|| "a value that is not kept".to_owned(), |hash| hash.hex());
    let error =
        Error::new(Kind::ResultConflict, format!("attempt {} has given another answer", arrival.attempt.id))
            .because(format!("want {}, got {got}", held.blob))
            .fix(format!("stop and look: nf show {}; the new value was not applied", held.id))
            .details(serde_json::json!({"result": held.id, "want": held.blob, "value": value}));
    Ok(Decision::refused(events, error))
}

fn bound(arrival: &Arrival<'_>, result: &StoredResult, duplicate: bool) -> Result<Bound> {
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
    if lease::has_expired(&arrival.attempt.lease, &turn.now) {
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
    let answer = bound(&arrival, &whole, false)?;
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
    if lease::closing(&arrival.history, &arrival.job).is_some() {
        return Standing::Surplus;
    }
    let differs = |earlier: &String| Some(earlier) != verdict.value.as_ref();
    if arrival.history.verdicts.iter().any(differs) { Standing::Contested } else { Standing::Valid }
}

fn stored(turn: &mut Turn<'_>, arrival: &Arrival<'_>, claim: &Claim) -> Result<StoredResult> {
    let extracted = arrival.intake.as_ref().ok();
    Ok(StoredResult {
        id: turn.id()?,
        job: arrival.job.id.clone(),
        fingerprint: arrival.job.fingerprint.clone(),
        blob: turn.blob(claim.body_bytes()),
        provenance: Provenance {
            source_session: arrival.source.0.id.clone(),
            worker_session: arrival.worker.id.clone(),
            handoff: arrival.handoff.id.clone(),
            attempt: arrival.attempt.id.clone(),
            transport: arrival.attempt.transport,
            family: arrival.attempt.transport.family(),
            provider: claim.provider.clone(),
            model_served: claim.model.clone(),
            name: claim.name.clone(),
            scope: claim.scope.as_deref().and_then(|scope| scope.parse().ok()),
            normalisation: extracted.map(steps).unwrap_or_default(),
        },
        stored_at: turn.at(),
        checked: None,
        consumed: std::collections::BTreeMap::new(),
    })
}
