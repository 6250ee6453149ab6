//! Claims: which handoff a worker gets. Of any number of claims at once exactly one wins; what has become due
//! or has run out is put back into the queue on the way (control-plane contract, 05).

use super::handoff::sound_ttl;
use super::lease::{self, Admission, Asked};
use super::ways;
use crate::error::{Error, Kind, Result};
use crate::model::decision::Turn;
use crate::model::event::Event;
use crate::model::handoff::{Attempt, Handoff, HandoffState, Transport, terms_allow};
use crate::model::id::{HandoffId, JobId, Name};
use crate::model::job::{Cost, Family, Grade, Job, Locality};
use crate::model::queue::{Filter, order};
use crate::model::session::{MemoryPolicy, Role, Session, Status};
use crate::model::state::State;

/// Handoffs and leases that one claim puts back into the queue, before it looks whether it has found one.
const AT_ONCE: usize = 64;
/// How many it puts back at most.
const AT_MOST: usize = 1024;

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The class of the work.
    pub class: Role,
    /// Only this handoff.
    pub handoff: Option<Handoff>,
    /// Only work on this resource.
    pub resource: Option<Name>,
    /// Only this job's question.
    pub job: Option<JobId>,
    /// Only work for this gate.
    pub gate: Option<Name>,
    /// The worker's name, which proves nothing.
    pub worker: Name,
    /// The family that it belongs to.
    pub family: Family,
    /// How long its lease is to last, in milliseconds; by default as the handoff says.
    pub ttl_ms: Option<u64>,
    /// The session that it works in; one of its own is made where it names none.
    pub session: Option<Session>,
    /// How its answer will come, as far as that is known before.
    pub offer: Offer,
}

/// How an answer will come, as far as that is known before it is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// How packet and answer travel.
    pub transport: Transport,
    /// The best grade that it can have.
    pub best: Grade,
    /// What it costs, where that is known.
    pub cost: Option<Cost>,
    /// Where the text goes, where that is known.
    pub locality: Option<Locality>,
    /// The model that will be asked for, where one is.
    pub model: Option<String>,
    /// Whether it is never known which model served.
    pub unattested: bool,
}

impl Offer {
    /// A worker that takes the packet away and comes back: it states who it is and returns its nonce.
    pub fn by_hand() -> Self {
        Self {
            transport: Transport::Worker,
            best: Grade::Declared,
            cost: None,
            locality: None,
            model: None,
            unattested: false,
        }
    }

    /// Refuses what the job's terms exclude, before any work is done and paid for.
    fn allowed(&self, job: &Job) -> Result<()> {
        let terms = &job.execution;
        let mut reasons = Vec::new();
        if let Some(cost) = self.cost.filter(|cost| !terms.cost.contains(cost)) {
            let allowed: Vec<&str> = terms.cost.iter().map(|cost| cost.word()).collect();
            reasons.push(format!("cost may be {}, and this worker costs {cost}", allowed.join(", ")));
        }
        if terms.locality == Locality::Local && self.locality == Some(Locality::Any) {
            reasons.push("locality is local, and this worker takes the text elsewhere".to_owned());
        }
        let models = terms.models.join(", ");
        match &self.model {
            _ if terms.models.is_empty() => {}
            _ if self.unattested => {
                reasons
                    .push(format!("the model must be one of {models}, and this worker does not report it"));
            }
            Some(model) if !terms.models.contains(model) => {
                reasons.push(format!("the model must be one of {models}, and this worker asks for {model}"));
            }
            _ => {}
        }
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::ExecutionUnavailable, format!("job {} may not be answered so", job.id))
            .because(reasons.join("; "))
            .fix("let another worker have it: nf route says which families may answer"))
    }
}

impl Wish {
    /// The filter by which the fewest are looked at.
    fn filter(&self) -> Filter {
        match (&self.job, &self.gate, &self.resource) {
            (Some(job), _, _) => Filter::Job(job.clone()),
            (None, Some(gate), _) => Filter::Gate(gate.clone()),
            (None, None, Some(resource)) => Filter::Resource(resource.clone()),
            (None, None, None) => Filter::All,
        }
    }

    fn keeps(&self, handoff: &Handoff) -> bool {
        let any = |wanted: Option<bool>| wanted.unwrap_or(true);
        any(self.job.as_ref().map(|job| handoff.job.as_ref() == Some(job)))
            && any(self.gate.as_ref().map(|gate| *gate == handoff.gate))
            && any(self.resource.as_ref().map(|resource| *resource == handoff.resource))
    }
}

/// What a claim found.
pub struct Found {
    /// What became due or ran out, in the order that it was found.
    pub events: Vec<Event>,
    /// The handoff to claim.
    pub handoff: Handoff,
    /// Its attempt whose lease ran out.
    pub overtaken: Option<Attempt>,
}

/// The handoff that a wish gets.
///
/// # Errors
/// In the decision `pending` where there is nothing to claim: what became due meanwhile is recorded all the
/// same. Outside it, for a handoff that is named, why that one cannot be claimed.
pub fn find(turn: &Turn<'_>, wish: &Wish) -> Result<std::result::Result<Found, (Vec<Event>, Error)>> {
    if let Some(ttl_ms) = wish.ttl_ms {
        sound_ttl(ttl_ms)?;
    }
    if let Some(handoff) = &wish.handoff {
        let (handoff, overtaken) = named(turn, wish, handoff)?;
        return Ok(Ok(Found { events: Vec::new(), handoff, overtaken }));
    }
    let mut events = Vec::new();
    let mut fresh: Vec<Handoff> = Vec::new();
    let mut due = turn.state.due(&wish.class, &turn.now);
    let mut lapsing = turn.state.lapsing(&wish.class, &turn.now);
    let filter = wish.filter();
    let ready = turn.state.ready(&wish.class, &filter, wish.family, wish.offer.best);
    // Few at the head do not fit; but however many do not, the one behind them is found.
    let mut found = ready.into_iter().find_map(|handoff| possible(turn, wish, handoff));
    while events.len() < AT_MOST {
        let before = events.len();
        for handoff in due.by_ref().take(AT_ONCE) {
            events.push(Event::HandoffQueued { handoff: handoff.id.clone(), ready_at: None });
            fresh.push(handoff);
        }
        for attempt in lapsing.by_ref().take(AT_ONCE) {
            fresh.extend(lapsed(turn, &attempt, &mut events));
        }
        fresh.sort_by_key(order);
        let chosen = fresh.drain(..).find_map(|handoff| possible(turn, wish, handoff));
        found = [found, chosen].into_iter().flatten().min_by_key(|(handoff, _)| order(handoff));
        if found.is_some() || events.len() == before {
            break;
        }
    }
    Ok(match found {
        Some((handoff, overtaken)) => Ok(Found { events, handoff, overtaken }),
        None => Err((events, nothing(turn, wish))),
    })
}

/// A lease that ran out: its question can be claimed again, by every handoff that asks it, or its handoff has
/// no attempt left.
fn lapsed(turn: &Turn<'_>, attempt: &Attempt, events: &mut Vec<Event>) -> Vec<Handoff> {
    let handoff = turn.state.get::<Handoff>(&attempt.handoff);
    let Some(handoff) = handoff.filter(|_| lease::has_expired(&attempt.lease, &turn.now)) else {
        return Vec::new();
    };
    events.push(Event::LeaseExpired { attempt: attempt.id.clone() });
    let exhausted = turn.state.history(handoff.question()).opened >= handoff.max_attempts;
    if exhausted {
        events.push(Event::HandoffExhausted { handoff: handoff.id.clone() });
    }
    let asking = turn.state.asking(handoff.question());
    asking.filter(|other| !exhausted || other.id != handoff.id).collect()
}

/// Why there is nothing: what waits and excludes this worker, else what waits for its moment.
fn nothing(turn: &Turn<'_>, wish: &Wish) -> Error {
    let error = Error::new(Kind::Pending, format!("there is nothing to claim for {}", wish.class))
        .fix("nf status shows what waits, and until when");
    let excluded = |id: &HandoffId, job: &JobId, why: &str| {
        let why = format!("handoff {id} waits, and its job excludes this worker: {why}");
        error.clone().because(why).fix(format!("nf route {job} tells who may answer it"))
    };
    let (filter, best) = (wish.filter(), wish.offer.best);
    if let Some(other) = turn.state.ready_for_others(&wish.class, &filter, wish.family, best)
        && let Some(job) = other.job.as_ref().and_then(|job| turn.state.get::<Job>(job))
    {
        let reasons = lease::unmet(&job, wish.family, false, best);
        return excluded(&other.id, &job.id, &reasons.join("; "));
    }
    let ready = turn.state.ready(&wish.class, &filter, wish.family, best).take(AT_ONCE);
    for handoff in ready.filter(|handoff| wish.keeps(handoff)) {
        if let (Some(job), Err(refusal)) = (&handoff.job, named(turn, wish, &handoff))
            && refusal.kind == Kind::ExecutionUnavailable
        {
            return excluded(&handoff.id, job, refusal.cause.as_deref().unwrap_or(&refusal.message));
        }
    }
    let later = turn.state.paused(&wish.class).take(AT_ONCE).filter(|handoff| wish.keeps(handoff));
    let mut waits = later.filter_map(|handoff| Some((handoff.id, handoff.ready_at?)));
    match waits.find(|(_, from)| *from > turn.now.wall) {
        Some((id, from)) => error.because(format!("handoff {id} is not to be claimed before {from}")),
        None => error,
    }
}

/// Whether a handoff can be this worker's, and which attempt it overtakes then.
fn possible(turn: &Turn<'_>, wish: &Wish, handoff: Handoff) -> Option<(Handoff, Option<Attempt>)> {
    let fits = wish.keeps(&handoff)
        && terms_allow(&handoff.terms, wish.family, wish.offer.best)
        && handoff.target_class == wish.class;
    if !fits {
        return None;
    }
    named(turn, wish, &handoff).ok()
}

/// Whether this very handoff can be the worker's.
///
/// # Errors
/// `handoff_cancelled`, `already_judged`, `under_review`, `exhausted`, `pending` before its moment,
/// `execution_unavailable` where the job's terms exclude the worker.
fn named(turn: &Turn<'_>, wish: &Wish, handoff: &Handoff) -> Result<(Handoff, Option<Attempt>)> {
    if handoff.target_class != wish.class {
        return Err(Error::new(Kind::Usage, format!("handoff {} is for another class", handoff.id))
            .because(format!("want {}, got {}", handoff.target_class, wish.class))
            .fix(format!("give --class {}", handoff.target_class)));
    }
    let job = match &handoff.job {
        Some(id) => Some(turn.state.get::<Job>(id).ok_or_else(|| {
            Error::new(Kind::UnknownId, format!("job {id} of handoff {} is not there", handoff.id))
        })?),
        None => None,
    };
    let history = turn.state.history(handoff.question());
    let active: Vec<Attempt> = turn.state.active(&history).collect();
    let asked = Asked {
        job: job.as_ref(),
        history: &history,
        active: &active,
        own: Some(handoff),
        limit: handoff.max_attempts,
        now: &turn.now,
        state: turn.state,
    };
    let overtaken = match lease::admit(&asked)? {
        Admission::Again(attempt) => return Err(lease::under_review(&attempt)),
        Admission::New { overtaken } => overtaken.map(|attempt| *attempt),
    };
    match handoff.state {
        HandoffState::Queued | HandoffState::Claimed => {}
        HandoffState::Cancelled | HandoffState::Completed => {
            return Err(Error::new(
                Kind::HandoffCancelled,
                format!("handoff {} is {}", handoff.id, handoff.state),
            ));
        }
        HandoffState::Exhausted => {
            let anew = ways::anew(turn.state, handoff, Some(history.opened + 1));
            return Err(Error::new(Kind::Exhausted, format!("handoff {} has no attempt left", handoff.id))
                .fix(format!("nf show {} tells why; {anew}", handoff.id)));
        }
    }
    lease::due(handoff, &turn.now)?;
    somebody_asks(turn.state, handoff)?;
    if let Some(job) = &job {
        lease::family_allowed(job, wish.family, false, wish.offer.best)?;
        wish.offer.allowed(job)?;
        another_mind(turn, wish, handoff, job)?;
    }
    Ok((handoff.clone(), overtaken))
}

/// Refuses work whose asker is gone for good. Ending a session takes back what it asked; a log in which that
/// was not so may still hold such work.
fn somebody_asks(state: &State, handoff: &Handoff) -> Result<()> {
    let source = state.get::<Session>(&handoff.source_session);
    if source.is_none_or(|source| source.status != Status::Terminated) {
        return Ok(());
    }
    Err(Error::new(Kind::HandoffCancelled, format!("nobody asks handoff {} any more", handoff.id))
        .because(format!("session {} was terminated", handoff.source_session))
        .fix(format!("claim another; nf handoff cancel {} puts it away", handoff.id)))
}

/// Refuses a worker's session that could not be independent, before any work is done.
fn another_mind(turn: &Turn<'_>, wish: &Wish, handoff: &Handoff, job: &Job) -> Result<()> {
    let Some(session) = wish.session.as_ref().filter(|_| job.execution.independent) else { return Ok(()) };
    let source = turn.state.get::<Session>(&handoff.source_session);
    let ancestors = source.map(|source| turn.state.ancestors(&source)).unwrap_or_default();
    let own = session.id == handoff.source_session
        || ancestors.contains(&session.id)
        || job.frozen_by.contains(&session.id);
    let keeps = !matches!(session.memory_policy, MemoryPolicy::None | MemoryPolicy::Bounded);
    if !own && !keeps {
        return Ok(());
    }
    let why = match own {
        true => format!("session {} asked the question, or froze it", session.id),
        false => format!("session {} keeps memory ({})", session.id, session.memory_policy),
    };
    Err(Error::new(Kind::ExecutionUnavailable, format!("job {} wants an independent reviewer", job.id))
        .because(why)
        .fix("leave --worker-session out: a session of its own is made for each attempt"))
}
