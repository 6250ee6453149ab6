//! Replies that become no new result: unreadable, unbound, undecided, late, repeated or contradicting. What
//! is recorded of each counts for its question; what is refused is kept only as a hash or a blob of its own.

use super::answer::{Arrival, Bound, bound, readable, received};
use super::binding::{self, Claim};
use super::holding::pause_ms;
use super::intake::IntakeFault;
use super::lease;
use super::refusal::{binding_error, intake_error, surplus};
use super::ways;
use crate::error::{Error, Kind, Result};
use crate::model::check::Check;
use crate::model::decision::{Decision, Turn};
use crate::model::event::{ConflictKind, Event, Reply};
use crate::model::handoff::{Handoff, HandoffState, Transport};
use crate::model::hash::Hash;
use crate::model::id::word;
use crate::model::result::{ReplyClass, Standing, StoredResult};

/// Bytes came that are not one value: the attempt stays open, at most five times.
pub(super) fn unreadable(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    fault: &IntakeFault,
) -> Result<Decision<Bound>> {
    let error = intake_error(fault);
    let current = arrival.may_answer().is_ok();
    let class = if current { ReplyClass::SemanticInvalid } else { ReplyClass::Late };
    let own = |claim: &Claim| Hash::of(claim.nonce.as_bytes()) == arrival.nonce;
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
pub(super) fn invalid(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
    checks: Vec<Check>,
    failures: &[String],
) -> Result<Decision<Bound>> {
    let class = ReplyClass::SemanticInvalid;
    let reply = received(arrival, class, Some(failures.join(",")), readable(arrival, claim));
    one_more_invalid(
        turn,
        arrival,
        reply,
        binding_error(&lease::what(arrival.attempt.job.as_ref(), Some(&arrival.handoff.id)), checks),
    )
}

fn one_more_invalid(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    reply: Reply,
    error: Error,
) -> Result<Decision<Bound>> {
    let mut events = vec![Event::ReplyReceived { reply }];
    let used = arrival.attempt.invalid + 1;
    let id = &arrival.attempt.id;
    if !arrival.attempt.transport.is_carried() {
        // Nobody pastes again: a worker that gave no sound answer has failed.
        events.extend(failed(turn, arrival, "semantic_invalid")?);
        let fix = format!("attempt {id} has failed; {}", onward(turn, arrival));
        return Ok(Decision::refused(events, error.fix(fix)));
    }
    if used < lease::MAX_INVALID {
        return Ok(Decision::refused(events, error));
    }
    events.extend(failed(turn, arrival, "too_many_invalid")?);
    let fix = format!("attempt {id} ends after {used} invalid replies; {}", onward(turn, arrival));
    Ok(Decision::refused(events, error.fix(fix)))
}

/// The attempt fails. A worker's handoff pauses before it can be claimed again; a person may ask at once.
fn failed(turn: &Turn<'_>, arrival: &Arrival<'_>, reason: &str) -> Result<Vec<Event>> {
    let Arrival { attempt, handoff, history, .. } = arrival;
    let pause = || turn.at().plus_millis(pause_ms(handoff.failures));
    let ready_at = (!attempt.transport.is_carried()).then(pause);
    lease::fail(turn.state, attempt, handoff, history, &word(reason)?, ready_at)
}

/// What leads on after an attempt that gave no answer: other work for a worker, another attempt for whoever
/// carries the question, and what to look at where no attempt is left.
fn onward(turn: &Turn<'_>, arrival: &Arrival<'_>) -> String {
    let Arrival { attempt, handoff, history, .. } = arrival;
    let (id, class) = (&handoff.id, &handoff.target_class);
    let is_worker = !attempt.transport.is_carried();
    let other = match attempt.transport {
        Transport::Process | Transport::Http => format!("nf work --class {class} -- CMD takes other work"),
        _ => format!("nf handoff claim --class {class} --worker NAME takes other work"),
    };
    if lease::state_after(handoff, history) == HandoffState::Exhausted {
        let given_up = Handoff { state: HandoffState::Exhausted, ..handoff.clone() };
        let anew = ways::anew(turn.state, &given_up, Some(history.opened + 1));
        return format!("no attempt is left: {}", if is_worker { other } else { anew });
    }
    match attempt.transport {
        Transport::Worker | Transport::Process | Transport::Http => {
            format!("{other}; this can be claimed again once its pause is over")
        }
        Transport::Import => format!("nf export {id} --worker NAME opens another"),
        relay => format!("{} opens another", ways::packet_again(id, relay)),
    }
}

pub(super) fn cannot_judge(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
) -> Result<Decision<Bound>> {
    let mut reply = received(arrival, ReplyClass::ExecutionFailed, Some("cannot_judge".to_owned()), None);
    reply.said = claim.reason.as_deref().map(|said| turn.text(said));
    let mut events = vec![Event::ReplyReceived { reply }];
    events.extend(failed(turn, arrival, "cannot_judge")?);
    let said = claim.reason.clone().unwrap_or_else(|| "no reason given".to_owned());
    let error = Error::new(Kind::ExecutionFailed, "the reviewer could not judge; this is no verdict")
        .because(format!("cannot_judge: {said}"))
        .fix(onward(turn, arrival))
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
pub(super) fn late(
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
            event: None,
            effect: None,
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
pub(super) fn again(
    turn: &mut Turn<'_>,
    arrival: &Arrival<'_>,
    claim: &Claim,
    held: &StoredResult,
) -> Result<Decision<Bound>> {
    if Hash::of(&claim.body_bytes()) == held.blob {
        let bound = bound(turn.state, arrival, held, true)?;
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
            event: None,
            effect: None,
            value,
        },
    ];
    let got = value.map_or_else(|| "a value that is not kept".to_owned(), |hash| hash.hex());
    let of = |verdict: Option<String>| verdict.map_or_else(String::new, |verdict| format!(" ({verdict})"));
    let first = held.checked.as_ref().and_then(|checked| checked.verdict.value.clone());
    let error =
        Error::new(Kind::ResultConflict, format!("attempt {} has given another answer", arrival.attempt.id))
            .because(format!("want {}{}, got {got}{}", held.blob, of(first), of(readable(arrival, claim))))
            .fix(format!("stop and look: nf show {}; the new value was not applied", held.id))
            .details(serde_json::json!({"result": held.id, "want": held.blob, "value": value}));
    Ok(Decision::refused(events, error))
}
