//! Handoffs whose lease has run out: claimed as the log tells it, and free for anybody by the clock. They are
//! found by the ends of their leases, so that those which still run cost nothing.

use serde_json::Value;

use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState};
use crate::model::id::{Id, JobId, Name, SessionId};
use crate::model::session::Role;
use crate::model::state::State;
use crate::model::time::Moment;
use crate::rules::lease::has_expired;

/// What a handoff is called that stands so.
pub const RECLAIMABLE: &str = "reclaimable";

/// Whether the lease of a claimed handoff has run out and nobody has taken it since.
fn is_free(attempt: &Attempt, handoff: &Handoff, now: &Moment) -> bool {
    let current = handoff.state == HandoffState::Claimed && handoff.attempt.as_ref() == Some(&attempt.id);
    let over = attempt.lapsed || has_expired(&attempt.lease, now);
    current && attempt.state == AttemptState::Active && over
}

/// What a page may be narrowed to.
pub struct Only<'a> {
    /// The session that asked.
    pub session: Option<&'a SessionId>,
    /// The resource.
    pub resource: Option<&'a Name>,
    /// The job.
    pub job: Option<&'a JobId>,
}

impl Only<'_> {
    fn keeps(&self, handoff: &Handoff) -> bool {
        self.session.is_none_or(|session| *session == handoff.source_session)
            && self.resource.is_none_or(|resource| *resource == handoff.resource)
            && self.job.is_none_or(|job| handoff.job.as_ref() == Some(job))
    }
}

/// A page, newest first, with the token of the next one.
pub fn page(
    state: &State,
    only: &Only<'_>,
    now: &Moment,
    (after, limit): (Option<u64>, usize),
) -> (Vec<Value>, Option<u64>) {
    // Leases of every class are looked at, whichever is named.
    let attempts = state.lapsing(&Role::Manager, now).chain(state.lapsed());
    let mut free: Vec<(u64, Handoff)> = attempts
        .filter_map(|attempt| {
            let handoff = state.get::<Handoff>(&attempt.handoff)?;
            (is_free(&attempt, &handoff, now) && only.keeps(&handoff)).then_some((handoff.place, handoff))
        })
        .filter(|(place, _)| after.is_none_or(|after| *place < after))
        .collect();
    free.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
    let next = free.get(limit).and_then(|_| free.get(limit - 1)).map(|(place, _)| *place);
    let items = free.iter().take(limit).filter_map(|(_, handoff)| state.value(handoff.id.as_str()));
    (items.map(|item| stands(state, item, now)).collect(), next)
}

/// A handoff as the log tells it, with where it stands by the clock.
pub fn stands(state: &State, mut item: Value, now: &Moment) -> Value {
    let handoff = serde_json::from_value::<Handoff>(item.clone()).ok();
    let attempt = handoff.as_ref().and_then(|handoff| state.get::<Attempt>(handoff.attempt.as_ref()?));
    let free = attempt.zip(handoff).is_some_and(|(attempt, handoff)| is_free(&attempt, &handoff, now));
    if let Some(map) = item.as_object_mut() {
        let stands = if free { RECLAIMABLE.into() } else { map.get("state").cloned().unwrap_or_default() };
        map.insert("stands".to_owned(), stands);
    }
    item
}
