//! Consume once: a named consumer applies a source exactly once, after the checks were run again
//! (control-plane contract, 06 to 07; session-runtime contract, 08). A result here, an event in [`event`].

use super::binding::{self, Against, Claim};
use super::checkpoint::{self, Saved};
use super::freeze::FrozenJob;
use super::independence;
use super::ways;
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{ConflictKind, Event};
use crate::model::handoff::{Attempt, Handoff};
use crate::model::id::{Name, ReceiptId, ResultId, RunId, SessionId};
use crate::model::job::{Job, Polarity, Verdict};
use crate::model::result::{Judgement, Receipt, Shared, Source, Standing, StoredResult};
use crate::model::run::{GateStatus, Run};
use crate::model::session::{Session, Status};
use crate::model::state::State;

pub mod event;

/// Earlier judgements that one answer or receipt lists at most.
pub const MAX_EARLIER: usize = 20;

/// Everything that a stored result is checked against once more.
pub struct Evidence {
    /// The result.
    pub result: StoredResult,
    /// The value in its blob.
    pub body: serde_json::Value,
    /// Its job, from the log, where there is one.
    pub job: Option<Job>,
    /// Its job, from the blob.
    pub frozen: FrozenJob,
    /// Its attempt.
    pub attempt: Attempt,
    /// Its handoff.
    pub handoff: Handoff,
    /// The ancestors of the session that asked.
    pub ancestors: Vec<SessionId>,
    /// The other side's ids of those who asked and froze, and of those before them, as far as they are known.
    pub natives: Vec<String>,
    /// The session that asked.
    pub source: Session,
    /// The session that answered.
    pub worker: Session,
}

impl Evidence {
    /// What is known of source and worker.
    fn facts(&self, claim: &Claim) -> independence::Facts<'_> {
        independence::Facts {
            source: &self.source.id,
            ancestors: &self.ancestors,
            natives: &self.natives,
            worker: &self.worker,
            witness: self.result.provenance.witness.as_deref(),
            imported: self.result.provenance.imported_from.is_some(),
            frozen_by: self.job.as_ref().map_or(&[], |job| &job.frozen_by),
            // The result exists because its attempt's nonce came back.
            nonce_returned: self.attempt.result.as_ref() == Some(&self.result.id),
            named: claim.named(&self.attempt),
        }
    }

    /// All thirteen checks, run anew from the stored bytes.
    pub fn checks(&self) -> Vec<Check> {
        let claim = Claim::stored(&self.result, &self.body);
        let got = self.attempt.result.as_ref().map_or_else(|| "no result".to_owned(), ToString::to_string);
        let against = Against {
            frozen: &self.frozen,
            job: self.job.as_ref(),
            attempt: &self.attempt,
            attempt_check: Check::equal("attempt", self.result.id.to_string(), got),
            independence: Some(self.facts(&claim)),
        };
        binding::bind(&claim, &against)
    }

    /// What was asked, in words.
    fn name(&self) -> String {
        super::lease::what(self.result.job.as_ref(), Some(&self.handoff.id))
    }

    /// The grounds of its independence grade, line by line.
    pub fn grounds(&self) -> Vec<Check> {
        independence::grounds(&self.facts(&Claim::stored(&self.result, &self.body)))
    }
}

/// Everything that a consumption is decided on.
pub struct Consume {
    /// The result and what it is checked against.
    pub evidence: Evidence,
    /// Who applies it.
    pub consumer: Name,
    /// The reason for applying a contested result.
    pub contested: Option<String>,
    /// The session that acts, and its current run.
    pub acting: (Session, Run),
    /// The receipt of this consumer for this result.
    pub held: Option<Receipt>,
    /// The receipt of this consumer for this question.
    pub held_for_question: Option<Receipt>,
    /// The bindings that a checkpoint carries over.
    pub bindings: Bindings,
}

/// What came of a consumption.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Consumed {
    /// `new`, or `already` for a repeat.
    pub application: Application,
    /// The receipt.
    pub receipt: ReceiptId,
    /// What was applied.
    pub source: Source,
    /// The verdict and where it leads; an event has none.
    pub outcome: Verdict,
    /// The gate that the source is for; an event is for none.
    pub own_gate: Option<Name>,
    /// The gate that moved, where the consumer is its name.
    pub gate: Option<Name>,
    /// Its state then.
    pub gate_status: Option<GateStatus>,
    /// The run that it moved on.
    pub run: Option<RunId>,
    /// The session that acted.
    pub session: SessionId,
    /// Its state, which a consumption does not change.
    pub status: Status,
    /// The command by which the source's own gate applies it, where no gate moved.
    #[serde(default)]
    pub way: Option<String>,
}

crate::words! {
    /// Whether a consumption applied something.
    Application {
        /// It did, now.
        New = "new",
        /// It had been applied before; nothing was written.
        Already = "already",
    }
}

impl Consumed {
    /// What a receipt says, for those who act. No gate has moved.
    fn of(application: Application, receipt: &Receipt, (session, _): &(Session, Run)) -> Self {
        Self {
            application,
            receipt: receipt.id.clone(),
            source: receipt.source.clone(),
            outcome: receipt.outcome.clone(),
            own_gate: None,
            gate: None,
            gate_status: None,
            run: None,
            session: session.id.clone(),
            status: session.status,
            way: None,
        }
    }
}

/// Applies a result for a consumer, once.
///
/// # Errors
/// `not_consumable`; `contested` and `receipt_conflict` as recorded refusals; `semantic_invalid` where a
/// check no longer holds.
pub fn consume(turn: &mut Turn<'_>, consume: Consume) -> Result<Decision<Consumed>> {
    let result = &consume.evidence.result;
    let checked = result.checked.clone().ok_or_else(|| not_consumable(&result.id, "it was never checked"))?;
    if checked.standing == Standing::Surplus {
        return Err(not_consumable(&result.id, "it is surplus: another result answered the question first"));
    }
    if let Some(receipt) = &consume.held {
        return already(turn.state, &consume, receipt);
    }
    if let Some(other) = &consume.held_for_question {
        return Ok(conflict(&consume, other));
    }
    if checked.standing == Standing::Contested && consume.contested.is_none() {
        return Err(contested(turn.state, result));
    }
    newest_question(turn.state, &consume)?;
    let checks = consume.evidence.checks();
    if !failed(&checks).is_empty() {
        return Err(super::refusal::binding_error(&consume.evidence.name(), checks));
    }
    apply(turn, consume, checked.verdict, checks)
}

fn not_consumable(result: &ResultId, why: &str) -> Error {
    Error::new(Kind::NotConsumable, format!("result {result} cannot be consumed")).because(why)
}

/// A gate waits for the question that was last sent for it, by the session that asked or one begun from it:
/// the answer to an earlier question moves it no more, and a stranger's session not at all.
fn newest_question(state: &State, consume: &Consume) -> Result<()> {
    let (own, (acting, run)) = (&consume.evidence.handoff, &consume.acting);
    let result = &consume.evidence.result;
    let newest = run.pending.gates.get(&consume.consumer).and_then(|gate| gate.handoff.as_ref());
    let newest = newest.and_then(|id| state.get::<Handoff>(id));
    if consume.consumer != own.gate {
        // It moves no gate; where a gate of this name waits for the same question it would stand in its way.
        let same = newest.filter(|newest| newest.question() == result.question());
        return same.map_or(Ok(()), |newest| meets_terms(state, result, &newest));
    }
    match newest {
        // The same question, whoever sent it: its one answer serves.
        Some(newest) if newest.question() == result.question() => meets_terms(state, result, &newest),
        Some(newest) => {
            let why = format!("gate {} waits for handoff {}, which was sent later", own.gate, newest.id);
            Err(not_consumable(&result.id, &why)
                .fix(format!("nf show {}; the answer to an earlier question moves no gate", newest.id)))
        }
        None if acting.id == own.source_session || state.ancestors(acting).contains(&own.source_session) => {
            Ok(())
        }
        None => {
            let why = format!("session {} asked the question, not {}", own.source_session, acting.id);
            Err(not_consumable(&result.id, &why).fix(format!("give --session {}", own.source_session)))
        }
    }
}

/// A gate takes an answer that meets the terms of the job that was sent for it: a weaker one, brought in by a
/// twin of the job with lower terms, stands in no stronger one's way.
fn meets_terms(state: &State, result: &StoredResult, newest: &Handoff) -> Result<()> {
    let Some(job) = newest.job.as_ref().and_then(|id| state.get::<Job>(id)) else { return Ok(()) };
    let history = state.history(result.question());
    let weak =
        history.answers.iter().any(|answer| answer.result == result.id && !answer.meets(&job.execution));
    if !weak {
        return Ok(());
    }
    let why = format!("it does not meet what job {} demands of its execution", job.id);
    Err(not_consumable(&result.id, &why).fix(format!("nf show {}; gate {} waits", newest.id, newest.gate)))
}

fn contested(state: &State, result: &StoredResult) -> Error {
    let verdicts = state.history(result.question()).verdicts.join(", then ");
    Error::new(Kind::Contested, format!("result {} follows a different readable verdict", result.id))
        .because(format!("verdicts that came in for this question: {verdicts}"))
        .fix(format!("look at both, then nf consume {} --as NAME --contested REASON", result.id))
        .details(serde_json::json!({"result": result.id}))
}

fn already(state: &State, consume: &Consume, receipt: &Receipt) -> Result<Decision<Consumed>> {
    if receipt.result_hash != Some(consume.evidence.result.blob) {
        return Ok(conflict(consume, receipt));
    }
    let gate = consume.acting.1.pending.gates.get(&consume.consumer);
    Ok(Decision::nothing(Consumed {
        own_gate: Some(consume.evidence.handoff.gate.clone()),
        gate: gate.map(|_| consume.consumer.clone()),
        gate_status: gate.map(|gate| gate.status),
        run: gate.map(|_| consume.acting.1.id.clone()),
        way: gate.is_none().then(|| ways::after_answer(state, &consume.evidence.result.id)),
        ..Consumed::of(Application::Already, receipt, &consume.acting)
    }))
}

fn conflict(consume: &Consume, other: &Receipt) -> Decision<Consumed> {
    let result = &consume.evidence.result;
    let want = other.result_hash.map(|hash| hash.hex());
    let event = Event::ConflictRefused {
        kind: ConflictKind::Receipt,
        attempt: None,
        result: Some(result.id.clone()),
        consumer: Some(consume.consumer.clone()),
        event: None,
        effect: None,
        value: Some(result.blob),
    };
    let error = Error::new(
        Kind::ReceiptConflict,
        format!("{} has applied another result for this question", consume.consumer),
    )
    .because(format!(
        "want {} (receipt {}), got {}",
        want.as_deref().unwrap_or("none"),
        other.id,
        result.blob
    ))
    .fix(format!("stop and look: nf show {}; nothing was applied", other.id))
    .details(serde_json::json!({"receipt": other.id, "want": want, "got": result.blob}));
    Decision::refused(vec![event], error)
}

fn apply(
    turn: &mut Turn<'_>,
    consume: Consume,
    verdict: Verdict,
    checks: Vec<Check>,
) -> Result<Decision<Consumed>> {
    let evidence = &consume.evidence;
    let (result, job) = (&evidence.result, &evidence.job);
    let (session, run) = &consume.acting;
    let is_contested = result.checked.as_ref().is_some_and(|checked| checked.standing == Standing::Contested);
    let reason = consume.contested.as_deref().filter(|_| is_contested);
    let contested = reason.map(|reason| turn.text(reason));
    let receipt = Receipt {
        id: turn.id()?,
        source: result.id.clone().into(),
        consumer: consume.consumer.clone(),
        result_hash: Some(result.blob),
        payload_hash: None,
        fingerprint: result.fingerprint.clone(),
        outcome: verdict.clone(),
        attempt: Some(evidence.attempt.id.clone()),
        checks: checks.clone(),
        history: Some(turn.state.history(result.question())),
        earlier: job.as_ref().map(|job| earlier(turn.state, job)).unwrap_or_default(),
        contested,
        seq: turn.seq(),
        at: turn.at(),
    };
    let mut events = vec![
        Event::validated(result.id.clone(), consume.consumer.clone(), &checks),
        Event::ReceiptRecorded { receipt: receipt.clone() },
    ];
    let mut consumed = Consumed {
        own_gate: Some(evidence.handoff.gate.clone()),
        ..Consumed::of(Application::New, &receipt, &consume.acting)
    };
    if consume.consumer != evidence.handoff.gate {
        consumed.way = Some(ways::after_answer(turn.state, &result.id));
    } else {
        let to = gate_status(verdict.polarity);
        events.push(Event::GateMoved {
            run: run.id.clone(),
            gate: consume.consumer.clone(),
            to,
            handoff: Some(evidence.handoff.id.clone()),
            result: Some(result.id.clone()),
            verdict: Some(verdict.clone()),
        });
        consumed.gate = Some(consume.consumer.clone());
        consumed.gate_status = Some(to);
        consumed.run = Some(run.id.clone());
    }
    if verdict.polarity == Polarity::Fail {
        // Repair will change the judged text: from here it is for re-reading, not exact.
        let judged = job.as_ref().map_or(&[][..], |job| &job.places);
        let bindings = checkpoint::loosen(&consume.bindings, judged);
        let pending = CheckpointPending { handoff: None, gate: Some(consume.consumer.clone()) };
        let saved = Saved { session, run, boundary: Boundary::Other, pending };
        events.push(Event::CheckpointSaved { checkpoint: checkpoint::save(turn, saved, bindings)? });
    }
    Ok(Decision::new(events, consumed))
}

fn gate_status(polarity: Polarity) -> GateStatus {
    match polarity {
        Polarity::Pass => GateStatus::Passed,
        Polarity::Fail => GateStatus::Rejected,
        Polarity::Neutral | Polarity::None => GateStatus::Answered,
    }
}

/// Judgements of the same artifacts or the same subject under other questions, newest first.
pub fn earlier(state: &State, job: &Job) -> Vec<Judgement> {
    let mut found: Vec<Judgement> = Vec::new();
    let artifacts = job.places.iter().map(|place| place.hash.hex());
    let keys = artifacts.chain([format!("subject {}", job.subject)]);
    for judgement in keys.flat_map(|key| state.judgements(&key).take(MAX_EARLIER).collect::<Vec<_>>()) {
        let listed = found.iter().any(|held| held.result == judgement.result);
        if judgement.fingerprint != job.fingerprint && !listed {
            found.push(judgement);
        }
    }
    // What judged the same bytes comes first: that is where shopping would show.
    found.sort_by_key(|judgement| judgement.shares == Shared::Subject);
    found.truncate(MAX_EARLIER);
    found
}
