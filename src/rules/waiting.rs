//! Where a handoff stands and why nobody can claim it now, with the command that leads on: what `status` and
//! `show` say of it. Decides nothing; the order of the reasons is that in which a claim meets them.

use super::lease::has_expired;
use super::ways;
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState, Transport};
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
    if handoff.state == HandoffState::Cancelled {
        let way = format!("{} asks anew", ways::anew(state, handoff, None));
        return (Stand::Cancelled, "it was cancelled".to_owned(), way);
    }
    let history = state.history(handoff.question());
    let job = handoff.job.as_ref().and_then(|job| state.get::<Job>(job));
    if let Some(answer) = history.closing(job.as_ref().map(|job| &job.execution)) {
        let verdict = answer.verdict.as_deref().unwrap_or("without verdict");
        let why = format!("its question is judged by result {} ({verdict})", answer.result);
        return (Stand::Judged, why, ways::after_answer(state, &answer.result));
    }
    let live = |attempt: &Attempt| !attempt.lapsed && !has_expired(&attempt.lease, now);
    if let Some(attempt) = attempt.filter(|attempt| live(attempt)) {
        return held(handoff, attempt, tell);
    }
    let others = state.active(&history);
    if let Some(other) = others.filter(live).find(|other| other.handoff != *id) {
        let until = tell(other.lease.expires_at());
        let why = format!("attempt {} of handoff {} asks it until {until}", other.id, other.handoff);
        return (Stand::UnderReview, why, format!("nf show {}", other.handoff));
    }
    let used = handoff.state == HandoffState::Exhausted || history.opened >= *max_attempts;
    if let Some(attempt) = attempt.filter(|_| handoff.state != HandoffState::Exhausted) {
        let (why, late) = left(attempt, tell);
        let anew = match used {
            true => ways::anew(state, handoff, Some(history.opened + 1)),
            false => ways::to_answer(state, job.as_ref(), handoff),
        };
        return (Stand::Reclaimable, why, format!("{late}{anew}"));
    }
    if used {
        let why = format!("{} of {max_attempts} attempts are used", history.opened);
        let more = history.opened.max(*max_attempts) + 1;
        let way = format!("nf show {id} tells why; {}", ways::anew(state, handoff, Some(more)));
        return (Stand::Exhausted, why, way);
    }
    match handoff.ready_at.filter(|from| *from > now.wall) {
        Some(from) => {
            let why = format!("not to be claimed before {}", tell(from));
            let then = ways::to_answer(state, job.as_ref(), handoff);
            let way = format!("wait until {}, then {then}; nf handoff cancel {id} takes it back", tell(from));
            (Stand::Later, why, way)
        }
        None => {
            let why = format!("waits for a {class} since {}", tell(handoff.opened_at));
            (Stand::Ready, why, ways::to_answer(state, job.as_ref(), handoff))
        }
    }
}

/// What an attempt that may act makes of its handoff.
fn held(handoff: &Handoff, attempt: &Attempt, tell: Tell<'_>) -> Said {
    let id = &handoff.id;
    let until = tell(attempt.lease.expires_at());
    let (transport, from) = (attempt.transport, tell(attempt.claimed_at));
    if transport.is_relay() {
        let again = ways::packet_again(id, transport);
        let way = format!("nf reply with the answer; {again} shows the packet again");
        return (Stand::Out, format!("packet for {transport} is out until {until}"), way);
    }
    let who = attempt.worker.as_ref().map_or_else(|| transport.word(), |worker| worker.as_str());
    let why = format!("{who} holds it since {from}, until {until} (attempt {})", attempt.id);
    let answer = match transport {
        Transport::Import => format!("nf import RESULT; nf export {id} shows its file again"),
        _ => format!("nf log {id} --follow waits for it"),
    };
    (Stand::Leased, why, format!("{answer}; nf handoff release {id} --revoke takes it back"))
}

/// An attempt whose time has run out: why, and how its answer may still come in.
fn left(attempt: &Attempt, tell: Tell<'_>) -> (String, &'static str) {
    let until = tell(attempt.lease.expires_at());
    let transport = attempt.transport;
    let who = attempt.worker.as_ref().map_or_else(|| transport.word(), |worker| worker.as_str());
    match transport {
        Transport::Worker | Transport::Process | Transport::Http => {
            (format!("the lease of {who} ran out {until} (attempt {})", attempt.id), "")
        }
        Transport::Import => (
            format!("the time of the file that {who} carries ran out {until}; an answer is still taken"),
            "nf import RESULT; ",
        ),
        Transport::Chat | Transport::Human | Transport::Agent => (
            format!("the time of its packet for {transport} ran out {until}; an answer is still taken"),
            "nf reply with the answer; ",
        ),
    }
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
