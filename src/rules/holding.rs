//! What the holder of an attempt does with it besides answering: it renews its lease, gives the work back, or
//! says that it failed. Each act is the nonce's; a worker's name proves nothing (control-plane contract, 05
//! and 11).

use super::handoff::sound_ttl;
use super::lease;
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{AttemptEnd, Event};
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState, Lease};
use crate::model::id::{AttemptId, HandoffId, Name, word};
use crate::model::time::Time;

/// The pause after a first failure, in milliseconds; it doubles with each further one.
const PAUSE_MS: u64 = 30_000;
/// The longest pause, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 60 * 60 * 1000;

crate::words! {
    /// Why an attempt gave no answer. Neither is a verdict.
    FailureClass {
        /// The way to the worker is not there.
        Unavailable = "execution_unavailable",
        /// The execution crashed, ran out of time or quota, or was refused.
        Failed = "execution_failed",
    }
}

/// What became of an attempt and its handoff.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Held {
    /// The handoff.
    pub handoff: HandoffId,
    /// Its state now.
    pub handoff_state: HandoffState,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its state now.
    pub state: AttemptState,
    /// Until when nobody else may claim, while it is active.
    pub expires_at: Option<Time>,
    /// From when the handoff can be claimed again, where it pauses.
    pub ready_at: Option<Time>,
    /// Whether it was so already.
    pub again: bool,
}

fn held(attempt: &Attempt, handoff: &Handoff) -> Held {
    Held {
        handoff: handoff.id.clone(),
        handoff_state: handoff.state,
        attempt: attempt.id.clone(),
        state: attempt.state,
        expires_at: None,
        ready_at: None,
        again: true,
    }
}

/// Makes a lease longer, from now. One that has run out is taken up again while nobody else has claimed.
///
/// # Errors
/// `lease_lost`, `handoff_cancelled`, `usage` for its length.
pub fn renew(
    turn: &Turn<'_>,
    attempt: &Attempt,
    handoff: &Handoff,
    ttl_ms: Option<u64>,
) -> Result<Decision<Held>> {
    let ttl_ms = ttl_ms.unwrap_or(attempt.lease.ttl_ms);
    sound_ttl(ttl_ms)?;
    if attempt.state == AttemptState::Completed {
        return Ok(Decision::nothing(held(attempt, handoff)));
    }
    lease::may_answer(attempt, handoff)?;
    let lease = Lease::starting(&turn.now, ttl_ms);
    let expires_at = Some(lease.expires_at());
    let id = attempt.id.clone();
    let event = match attempt.lapsed || lease::has_expired(&attempt.lease, &turn.now) {
        true => Event::LeaseRevived { attempt: id, lease },
        false => Event::LeaseRenewed { attempt: id, lease },
    };
    let told =
        Held { handoff_state: HandoffState::Claimed, expires_at, again: false, ..held(attempt, handoff) };
    Ok(Decision::new(vec![event], told))
}

/// Gives the work back: the handoff is queued again, and the attempt counts.
///
/// # Errors
/// `lease_lost`, `handoff_cancelled`.
pub fn release(turn: &Turn<'_>, attempt: &Attempt, handoff: &Handoff) -> Result<Decision<Held>> {
    if matches!(attempt.state, AttemptState::Completed | AttemptState::Released) {
        return Ok(Decision::nothing(held(attempt, handoff)));
    }
    lease::may_answer(attempt, handoff)?;
    let mut events = lease::end(turn.state, attempt, AttemptEnd::Released, &word("by_worker")?)?;
    let history = turn.state.history(attempt.question());
    events.push(lease::next(handoff, &history, None));
    Ok(Decision::new(
        events,
        Held {
            state: AttemptState::Released,
            handoff_state: lease::state_after(handoff, &history),
            again: false,
            ..held(attempt, handoff)
        },
    ))
}

/// A failure as the worker reports it.
pub struct Failure {
    /// Its class.
    pub class: FailureClass,
    /// Why, in a word.
    pub reason: Name,
    /// Whether another attempt could help.
    pub retryable: bool,
    /// How long to wait before it, in milliseconds, where the worker was told.
    pub retry_after_ms: Option<u64>,
}

/// The attempt failed: the handoff is queued again after a pause, unless no other attempt could help or is
/// left.
///
/// # Errors
/// `lease_lost`, `handoff_cancelled`.
pub fn fail(
    turn: &Turn<'_>,
    attempt: &Attempt,
    handoff: &Handoff,
    failure: &Failure,
) -> Result<Decision<Held>> {
    if attempt.state == AttemptState::Completed {
        return Err(Error::new(Kind::LeaseLost, format!("attempt {} has given its answer", attempt.id))
            .because("what is answered did not fail")
            .fix(format!("nf show {}", handoff.id)));
    }
    if attempt.state == AttemptState::Failed {
        return Ok(Decision::nothing(held(attempt, handoff)));
    }
    lease::may_answer(attempt, handoff)?;
    let reason = word(&format!("{}/{}", failure.class, failure.reason))?;
    let pause = failure.retry_after_ms.unwrap_or_else(|| pause_ms(handoff.failures));
    let ready_at = Some(turn.at().plus_millis(pause));
    let mut events = lease::end(turn.state, attempt, AttemptEnd::Failed, &reason)?;
    let history = turn.state.history(attempt.question());
    let again = failure.retryable && lease::state_after(handoff, &history) == HandoffState::Queued;
    events.push(match again {
        true => lease::next(handoff, &history, ready_at),
        false => Event::HandoffExhausted { handoff: handoff.id.clone() },
    });
    Ok(Decision::new(
        events,
        Held {
            state: AttemptState::Failed,
            handoff_state: if again { HandoffState::Queued } else { HandoffState::Exhausted },
            ready_at: ready_at.filter(|_| again),
            again: false,
            ..held(attempt, handoff)
        },
    ))
}

/// The pause after a failure, in milliseconds, given how many came before it.
pub fn pause_ms(failures: u32) -> u64 {
    1u64.checked_shl(failures)
        .map_or(LONGEST_PAUSE_MS, |times| PAUSE_MS.saturating_mul(times).min(LONGEST_PAUSE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        let pauses: Vec<u64> = [0, 1, 2, 6, 7, 31, 63, 64, u32::MAX].map(pause_ms).to_vec();
        let hour = LONGEST_PAUSE_MS;
        assert_eq!(pauses, [30_000, 60_000, 120_000, 1_920_000, hour, hour, hour, hour, hour]);
    }
}
