//! What was asked is taken back, for good or from the worker that has it, and only by the session that asked
//! (control-plane contract, 04 and 05).

use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::AttemptEnd;
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState};
use crate::model::id::{AttemptId, HandoffId, word};
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::{lease, ways};

/// What became of a handoff that its source took back.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct TakenBack {
    /// The handoff.
    pub handoff: HandoffId,
    /// Its state now.
    pub state: HandoffState,
    /// The attempt that was taken back with it.
    pub attempt: Option<AttemptId>,
    /// Whether it was so already.
    pub again: bool,
}

/// Refuses all but the session that asked, or one begun from it.
fn its_source(state: &State, session: &Session, handoff: &Handoff) -> Result<()> {
    let source = &handoff.source_session;
    if session.id == *source || state.ancestors(session).contains(source) {
        return Ok(());
    }
    Err(Error::new(Kind::Usage, format!("handoff {} is another session's", handoff.id))
        .because(format!("want {source}, got {}", session.id))
        .fix(format!("give --session {source}")))
}

fn active(state: &State, handoff: &Handoff) -> Option<Attempt> {
    let newest = handoff.attempt.as_ref().and_then(|id| state.get::<Attempt>(id));
    newest.filter(|attempt| attempt.state == AttemptState::Active)
}

/// Takes a handoff back for good; its attempt, if one is active, is revoked.
///
/// # Errors
/// `usage` for another session's; `already_judged` where it has its result.
pub fn cancel(turn: &Turn<'_>, session: &Session, handoff: &Handoff) -> Result<Decision<TakenBack>> {
    its_source(turn.state, session, handoff)?;
    let attempt = active(turn.state, handoff).map(|attempt| attempt.id);
    let told = TakenBack {
        handoff: handoff.id.clone(),
        state: HandoffState::Cancelled,
        attempt,
        again: handoff.state == HandoffState::Cancelled,
    };
    match handoff.state {
        HandoffState::Cancelled => Ok(Decision::nothing(told)),
        HandoffState::Completed => Err(completed(turn.state, handoff)),
        HandoffState::Queued | HandoffState::Claimed | HandoffState::Exhausted => {
            Ok(Decision::new(lease::cancel(turn.state, handoff, &word("by_source")?)?, told))
        }
    }
}

/// The refusal to take back what has its result.
fn completed(state: &State, handoff: &Handoff) -> Error {
    let way = handoff.result.as_ref().map(|result| ways::after_answer(state, result));
    let error = Error::new(Kind::AlreadyJudged, format!("handoff {} has its result", handoff.id));
    match way {
        Some(way) => error.fix(way),
        None => error,
    }
}

/// Takes the active attempt of a handoff back, without its nonce: the handoff is queued again.
///
/// # Errors
/// `usage` for another session's; `lease_lost` where no attempt is active.
pub fn revoke(turn: &Turn<'_>, session: &Session, handoff: &Handoff) -> Result<Decision<TakenBack>> {
    its_source(turn.state, session, handoff)?;
    if handoff.state == HandoffState::Completed {
        return Err(completed(turn.state, handoff));
    }
    let Some(attempt) = active(turn.state, handoff) else {
        return Err(Error::new(Kind::LeaseLost, format!("no attempt of handoff {} is active", handoff.id))
            .because(format!("it is {}", handoff.state))
            .fix(format!("nf show {}", handoff.id)));
    };
    let mut events = lease::end(turn.state, &attempt, AttemptEnd::Revoked, &word("by_source")?)?;
    let history = turn.state.history(handoff.question());
    events.push(lease::next(handoff, &history, None));
    let state = lease::state_after(handoff, &history);
    Ok(Decision::new(
        events,
        TakenBack { handoff: handoff.id.clone(), state, attempt: Some(attempt.id), again: false },
    ))
}
