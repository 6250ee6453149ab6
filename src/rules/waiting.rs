//! Where a handoff stands and why nobody can claim it now, with the command that leads on: what `status` and
//! `show` say of it. Decides nothing; the order of the reasons is that in which a claim meets them.

use super::lease::{after_answer, has_expired};
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState};
use crate::model::job::{Family, Grade, Job};
use crate::model::queue::Filter;
use crate::model::state::State;
use crate::model::time::{Moment, Time};

/// Handoffs that are looked at for a place in the queue.
const AHEAD: usize = 1000;

crate::words! {
    /// Where a handoff stands.
    Stand {
        /// It can be claimed now.
        Ready = "ready",
        /// It can be claimed later.
        Later = "later",
        /// A worker holds it.
        Leased = "leased",
        /// A packet is out for a person to carry.
        Out = "out",
        /// The lease of its attempt has run out, and nobody has taken it since.
        Reclaimable = "reclaimable",
        /// Another handoff asks the same question now.
        UnderReview = "under_review",
        /// Its question has its answer, under this or another handoff.
        Judged = "judged",
        /// No attempt is left.
        Exhausted = "exhausted",
        /// Taken back by its source.
        Cancelled = "cancelled",
    }
}

crate::words! {
    /// With whom a matter is.
    Group {
        /// With the person who asks.
        You = "you",
        /// With nobody, and nothing goes on by itself.
        Stuck = "stuck",
        /// With a worker.
        Leased = "leased",
        /// With nobody yet.
        Queued = "queued",
        /// Over; only its answer waits.
        Settled = "settled",
    }
}

impl Stand {
    /// With whom a handoff is that stands so.
    pub fn group(self) -> Group {
        match self {
            Stand::Out => Group::You,
            Stand::Leased | Stand::UnderReview => Group::Leased,
            Stand::Ready | Stand::Later => Group::Queued,
            Stand::Reclaimable | Stand::Exhausted => Group::Stuck,
            Stand::Judged | Stand::Cancelled => Group::Settled,
        }
    }
}

/// Where a handoff stands.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// In a word.
    pub stand: Stand,
    /// Why, in words.
    pub why: String,
    /// The command that leads on.
    pub way: String,
    /// Its attempt that is not over.
    pub attempt: Option<Attempt>,
}

/// How a moment is written for whoever reads it.
pub type Tell<'a> = &'a dyn Fn(Time) -> String;

/// Looks where a handoff stands.
pub fn look(state: &State, handoff: &Handoff, now: &Moment, tell: Tell<'_>) -> Waiting {
    let newest = handoff.attempt.as_ref().and_then(|id| state.get::<Attempt>(id));
    let attempt = newest.filter(|attempt| attempt.state == AttemptState::Active);
    let (stand, why, way) = said(state, handoff, attempt.as_ref(), now, tell);
    Waiting { stand, why, way, attempt }
}

/// A stand, why, and the way on.
type Said = (Stand, String, String);

fn said(state: &State, handoff: &Handoff, attempt: Option<&Attempt>, now: &Moment, tell: Tell<'_>) -> Said {
    let Handoff { id, target_class: class, max_attempts, .. } = handoff;
    // Work that is no frozen question is opened again with all that it was opened with.
    let of = handoff.job.as_ref().map_or_else(|| "...".to_owned(), ToString::to_string);
    if handoff.state == HandoffState::Cancelled {
        let way = format!("nf handoff open {of} --class {class} asks anew");
        return (Stand::Cancelled, "its source has cancelled it".to_owned(), way);
    }
    let history = state.history(handoff.question());
    let job = handoff.job.as_ref().and_then(|job| state.get::<Job>(job));
    if let Some(answer) = history.closing(job.as_ref().map(|job| &job.execution)) {
        let verdict = answer.verdict.as_deref().unwrap_or("without verdict");
        let why = format!("its question is judged by result {} ({verdict})", answer.result);
        return (Stand::Judged, why, after_answer(state, &answer.result));
    }
    let live = |attempt: &Attempt| !attempt.lapsed && !has_expired(&attempt.lease, now);
    if let Some(attempt) = attempt
        && let Some(held) = held(handoff, attempt, live(attempt), tell)
    {
        return held;
    }
    let others = state.active(&history);
    if let Some(other) = others.filter(live).find(|other| other.handoff != *id) {
        let until = tell(other.lease.expires_at());
        let why = format!("attempt {} of handoff {} asks it until {until}", other.id, other.handoff);
        return (Stand::UnderReview, why, format!("nf show {}", other.handoff));
    }
    if handoff.state == HandoffState::Exhausted || history.opened >= *max_attempts {
        let why = format!("{} of {max_attempts} attempts are used", history.opened);
        let more = history.opened.max(*max_attempts) + 1;
        let way =
            format!("nf show {id} tells why; nf handoff open {of} --class {class} --max-attempts {more}");
        return (Stand::Exhausted, why, way);
    }
    let packet = if job.is_some() { format!(", or nf packet {id}") } else { String::new() };
    let claim = format!("nf handoff claim {id} --class {class} --worker NAME{packet}");
    match handoff.ready_at.filter(|from| *from > now.wall) {
        Some(from) => {
            let why = format!("not to be claimed before {}", tell(from));
            (Stand::Later, why, format!("nf handoff cancel {id} takes it back"))
        }
        None => (Stand::Ready, format!("waits for a {class} since {}", tell(handoff.opened_at)), claim),
    }
}

/// What an attempt that is not over makes of its handoff; nothing where its time has run out and the handoff
/// was given up.
fn held(handoff: &Handoff, attempt: &Attempt, live: bool, tell: Tell<'_>) -> Option<Said> {
    let Handoff { id, target_class: class, .. } = handoff;
    let until = tell(attempt.lease.expires_at());
    let (transport, from) = (attempt.transport, tell(attempt.claimed_at));
    let who = attempt.worker.as_ref().map_or_else(|| transport.word(), |worker| worker.as_str());
    Some(match (live, transport.is_relay()) {
        (true, true) => (
            Stand::Out,
            format!("packet for {transport} is out until {until}"),
            format!("nf reply with the answer; nf packet {id} shows the packet again"),
        ),
        (true, false) => (
            Stand::Leased,
            format!("{who} holds it since {from}, until {until} (attempt {})", attempt.id),
            format!("nf handoff release {id} --revoke takes it back"),
        ),
        (false, _) if handoff.state == HandoffState::Exhausted => return None,
        (false, true) => (
            Stand::Reclaimable,
            format!("the time of its packet for {transport} ran out {until}; an answer is still taken"),
            format!("nf reply with the answer; nf packet {id} asks anew"),
        ),
        (false, false) => (
            Stand::Reclaimable,
            format!("the lease of {who} ran out {until} (attempt {})", attempt.id),
            format!("nf handoff claim {id} --class {class} --worker NAME"),
        ),
    })
}

/// How many can be claimed before a handoff by a worker that may have it, and the family of such a worker;
/// none where it is not in the queue, or too far behind to count.
pub fn ahead(state: &State, handoff: &Handoff) -> Option<(usize, Family)> {
    let job = handoff.job.as_ref().and_then(|job| state.get::<Job>(job));
    let family = job.map_or(Some(Family::ServiceJob), |job| {
        let families = &job.execution.families;
        let usual = families.iter().find(|family| **family == Family::ServiceJob);
        usual.or(families.first()).copied()
    })?;
    let ready = state.ready(&handoff.target_class, &Filter::All, family, Grade::Attested);
    let at = ready.take(AHEAD).position(|other| other.id == handoff.id)?;
    Some((at, family))
}
