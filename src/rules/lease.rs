//! Leases and attempts: who may act on a handoff, and whether a question may be asked again at all
//! (control-plane contract, 05; semantic-execution contract, 10). Attempt number and nonce decide who may
//! act; a clock only decides when others may reclaim.

use super::lifecycle::{Course, followers};
use super::ways;
use crate::error::{Error, Kind, Result};
use crate::model::event::{AttemptEnd, Event};
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState, Lease, Transport};
use crate::model::id::{HandoffId, JobId, Name};
use crate::model::job::{Family, Grade, Job};
use crate::model::result::{Answer, History};
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::model::time::{Moment, Time};

/// How long a relay is protected from reclaim.
pub const RELAY_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Attempts that a question may have by relay, over all its handoffs.
pub const RELAY_MAX_ATTEMPTS: u32 = 10;
/// Invalid replies after which a relay's attempt fails.
pub const MAX_INVALID: u32 = 5;

/// Whether a lease has run out, so that others may reclaim.
///
/// On one boot and time namespace, boot time decides. Otherwise the wall clock and 30 s; a start that lies
/// further ahead than the lease is long (a clock was set back) counts from now.
pub fn has_expired(lease: &Lease, now: &Moment) -> bool {
    let same_boot =
        lease.machine == now.machine && lease.boot_id == now.boot_id && lease.namespace == now.namespace;
    if same_boot {
        return now.boottime_ms >= lease.boottime_end();
    }
    now.wall.millis() >= lease.wall_end()
}

/// What is asked, in words: the job, or the handoff where it is no frozen question.
pub fn what(job: Option<&JobId>, handoff: Option<&HandoffId>) -> String {
    match (job, handoff) {
        (Some(job), _) => format!("job {job}"),
        (None, Some(handoff)) => format!("handoff {handoff}"),
        (None, None) => "this work".to_owned(),
    }
}

/// What a wish to ask a question meets.
pub struct Asked<'a> {
    /// The job, where a frozen question is asked.
    pub job: Option<&'a Job>,
    /// What has happened to its question.
    pub history: &'a History,
    /// The question's active attempts.
    pub active: &'a [Attempt],
    /// The handoff that is asked by, where there is one.
    pub own: Option<&'a Handoff>,
    /// Attempts that the question may have, over all its handoffs.
    pub limit: u32,
    /// The moment.
    pub now: &'a Moment,
    /// Where the gate of an answer is looked up.
    pub state: &'a State,
}

/// What a wish to ask may do.
#[derive(Debug, PartialEq)]
pub enum Admission {
    /// The own attempt is open: show it again.
    Again(Box<Attempt>),
    /// A new attempt may open, after the own expired one, if any, is overtaken.
    New {
        /// The own attempt whose lease ran out.
        overtaken: Option<Box<Attempt>>,
    },
}

/// No reviewer shopping: a question with a counting answer is closed, whatever its verdict; one that is
/// out elsewhere waits; one whose attempts are used up is not asked again.
///
/// # Errors
/// `already_judged`, `under_review`, `exhausted`.
pub fn admit(asked: &Asked<'_>) -> Result<Admission> {
    let name = what(asked.job.map(|job| &job.id), asked.own.map(|own| &own.id));
    if let Some(answer) = asked.history.closing(asked.job.map(|job| &job.execution)) {
        return Err(already_judged(asked.state, &name, answer));
    }
    let own = |attempt: &&Attempt| asked.own.is_some_and(|handoff| handoff.id == attempt.handoff);
    let live = |attempt: &&Attempt| !attempt.lapsed && !has_expired(&attempt.lease, asked.now);
    if let Some(elsewhere) = asked.active.iter().find(|attempt| live(attempt) && !own(attempt)) {
        return Err(under_review(elsewhere));
    }
    let mine = asked.active.iter().find(own);
    match mine {
        Some(attempt) if live(&attempt) => Ok(Admission::Again(Box::new(attempt.clone()))),
        _ => {
            let limit = asked.limit;
            if asked.history.opened >= limit {
                return Err(used_up(asked, &name));
            }
            Ok(Admission::New { overtaken: mine.cloned().map(Box::new) })
        }
    }
}

fn used_up(asked: &Asked<'_>, name: &str) -> Error {
    let (opened, limit) = (asked.history.opened, asked.limit);
    let error = Error::new(Kind::Exhausted, format!("{name} has used its attempts"))
        .because(format!("{opened} of {limit} are opened"));
    match (asked.own, asked.job) {
        (Some(own), _) => {
            let anew = ways::anew(asked.state, own, Some(opened + 1));
            error.fix(format!("nf show {} tells why; {anew}", own.id))
        }
        (None, Some(job)) => error.fix(format!(
            "nf list attempt --job {} tells why; nf handoff open {} --class CLASS --max-attempts {}",
            job.id,
            job.id,
            opened + 1
        )),
        (None, None) => error,
    }
}

/// The refusal to ask a question that is out.
pub fn under_review(attempt: &Attempt) -> Error {
    let Attempt { id, handoff, lease, job, .. } = attempt;
    let name = what(job.as_ref(), Some(handoff));
    Error::new(Kind::UnderReview, format!("{name} is under review elsewhere"))
        .because(format!("attempt {id} of handoff {handoff} is open until {}", lease.expires_at()))
        .details(serde_json::json!({"attempt": id, "handoff": handoff}))
}

/// The refusal to ask a judged question again, with the answer that it has.
pub fn already_judged(state: &State, name: &str, answer: &Answer) -> Error {
    let verdict = answer.verdict.clone().unwrap_or_else(|| "without verdict".to_owned());
    Error::new(Kind::AlreadyJudged, format!("{name} is judged already"))
        .because(format!("result {} ({verdict}) answers the same question", answer.result))
        .fix(ways::after_answer(state, &answer.result))
        .details(serde_json::json!({"result": answer.result, "verdict": answer.verdict}))
}

/// Refuses a transport that the job's own terms exclude, before any work is done.
///
/// # Errors
/// `execution_unavailable`, with every reason.
pub fn transport_allowed(job: &Job, transport: Transport) -> Result<()> {
    // A relay states its reviewer and binds it by nonce; it can prove no more.
    family_allowed(job, transport.family(), true, Grade::Declared)
}

/// What a job's own terms say against an answer by a family in this way, which can be of that grade at best.
pub fn unmet(job: &Job, family: Family, relayed: bool, best: Grade) -> Vec<String> {
    let execution = &job.execution;
    // What a family could prove at best is routing's question; here it is what this way of answering can.
    let told = super::routing::barred(execution, family).into_iter();
    let other = told.filter(|reason| reason.obstacle != super::routing::Obstacle::Independence);
    let mut reasons: Vec<String> = other.map(|reason| reason.why).collect();
    if execution.min_grade > best {
        let what = if relayed { "a relay" } else { "a worker that claims" };
        reasons.push(format!("min_grade is {}, and {what} is at best {best}", execution.min_grade));
    }
    reasons
}

/// Refuses a family that the job's own terms exclude, or whose answers cannot be of the grade they want.
///
/// # Errors
/// `execution_unavailable`, with every reason.
pub fn family_allowed(job: &Job, family: Family, relayed: bool, best: Grade) -> Result<()> {
    let reasons = unmet(job, family, relayed, best);
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::ExecutionUnavailable, format!("job {} may not be answered by {family}", job.id))
        .because(reasons.join("; "))
        .fix(ways::to_ask(job)))
}

/// Refuses to begin an attempt before the moment that a handoff's opener named, or in the pause after a
/// failure, whoever asks.
///
/// # Errors
/// `pending`, with the moment.
pub fn due(handoff: &Handoff, now: &Moment) -> Result<()> {
    match handoff.ready_at.filter(|from| *from > now.wall) {
        Some(from) => {
            let id = &handoff.id;
            Err(Error::new(Kind::Pending, format!("handoff {id} is not to be claimed yet"))
                .because(format!("it waits until {from}"))
                .fix(format!("ask or claim it then; nf handoff cancel {id} takes it back, to be asked anew"))
                .details(serde_json::json!({"handoff": id, "ready_at": from})))
        }
        None => Ok(()),
    }
}

/// Refuses a packet from a session that neither runs nor waits, naming the legal way.
///
/// # Errors
/// `illegal_transition`.
pub fn may_send(session: &Session) -> Result<()> {
    if matches!(session.status, Status::Running | Status::AwaitingUser | Status::AwaitingExternal) {
        return Ok(());
    }
    Err(Error::new(
        Kind::IllegalTransition,
        format!("session {} is {} and sends no packet", session.id, session.status),
    )
    .fix(super::lifecycle::way(&session.id, session.status)))
}

/// The end of an attempt's own worker session, which lives and ends with its attempt.
///
/// # Errors
/// `illegal_transition`, which the table itself rules out.
pub fn end_worker(state: &State, attempt: &Attempt, to: Status) -> Result<Vec<Event>> {
    let worker = state.get::<Session>(&attempt.worker_session);
    // A worker session that was named, not minted, is somebody's own and stays as it is.
    let Some(worker) = worker.filter(|session| session.worker_of.as_ref() == Some(&attempt.id)) else {
        return Ok(Vec::new());
    };
    // One that somebody has ended by hand stays ended: that takes no answer away.
    if !followers(worker.status).contains(&to) {
        return Ok(Vec::new());
    }
    let mut course = Course::new(worker, None);
    course.go(to)?;
    Ok(course.events)
}

/// An attempt that is overtaken or taken back, with its worker's session.
///
/// # Errors
/// As [`end_worker`].
pub fn end(state: &State, attempt: &Attempt, how: AttemptEnd, reason: &Name) -> Result<Vec<Event>> {
    let mut events = vec![Event::AttemptEnded { attempt: attempt.id.clone(), how, reason: reason.clone() }];
    let to = if how == AttemptEnd::Failed { Status::Failed } else { Status::Terminated };
    events.extend(end_worker(state, attempt, to)?);
    Ok(events)
}

/// The end of an attempt that gave no valid result: the handoff waits for another, or is used up.
///
/// # Errors
/// As [`end_worker`].
pub fn fail(
    state: &State,
    attempt: &Attempt,
    handoff: &Handoff,
    history: &History,
    reason: &Name,
    ready_at: Option<Time>,
) -> Result<Vec<Event>> {
    let mut events = end(state, attempt, AttemptEnd::Failed, reason)?;
    events.push(next(handoff, history, ready_at));
    Ok(events)
}

/// Where a handoff goes when its attempt is over without a result.
pub fn state_after(handoff: &Handoff, history: &History) -> HandoffState {
    match history.opened >= handoff.max_attempts {
        true => HandoffState::Exhausted,
        false => HandoffState::Queued,
    }
}

/// The event that takes it there.
pub fn next(handoff: &Handoff, history: &History, ready_at: Option<Time>) -> Event {
    let handoff_id = handoff.id.clone();
    match state_after(handoff, history) {
        HandoffState::Exhausted => Event::HandoffExhausted { handoff: handoff_id },
        _ => Event::HandoffQueued { handoff: handoff_id, ready_at },
    }
}

/// The openly taken way out: a handoff is cancelled and its active attempt revoked.
///
/// # Errors
/// As [`end_worker`].
pub fn cancel(state: &State, handoff: &Handoff, reason: &Name) -> Result<Vec<Event>> {
    let newest = handoff.attempt.as_ref().and_then(|id| state.get::<Attempt>(id));
    let mut events = match newest.filter(|attempt| attempt.state == AttemptState::Active) {
        Some(attempt) => end(state, &attempt, AttemptEnd::Revoked, reason)?,
        None => Vec::new(),
    };
    events.push(Event::HandoffCancelled { handoff: handoff.id.clone(), reason: reason.clone() });
    Ok(events)
}

/// Refuses an answer to a handoff that was cancelled or whose attempt is not the current one.
///
/// # Errors
/// `handoff_cancelled`, `lease_lost`.
pub fn may_answer(attempt: &Attempt, handoff: &Handoff) -> Result<()> {
    if handoff.state == HandoffState::Cancelled {
        return Err(Error::new(Kind::HandoffCancelled, format!("handoff {} was cancelled", handoff.id)));
    }
    let current = handoff.attempt.as_ref() == Some(&attempt.id) && attempt.state == AttemptState::Active;
    if current {
        return Ok(());
    }
    Err(Error::new(Kind::LeaseLost, format!("attempt {} is {} and may not act", attempt.id, attempt.state))
        .because(current_of(handoff)))
}

fn current_of(handoff: &Handoff) -> String {
    match &handoff.attempt {
        Some(attempt) => {
            format!("the newest attempt of handoff {} is {attempt} (number {})", handoff.id, handoff.number)
        }
        None => format!("handoff {} has no attempt", handoff.id),
    }
}

/// The default gate of a job: `gate/<subject>/<kind>`.
pub fn default_gate(job: &Job) -> Result<Name> {
    format!("gate/{}/{}", job.subject, job.kind).parse().map_err(|bad: String| {
        Error::new(Kind::Usage, "the default gate of this job is no name")
            .because(bad)
            .fix("give --gate NAME")
    })
}

/// Refuses another gate than the one a handoff was opened for.
///
/// # Errors
/// `usage`.
pub fn same_gate(handoff: &HandoffId, held: &Name, asked: Option<&Name>) -> Result<()> {
    match asked {
        Some(gate) if gate != held => {
            Err(Error::new(Kind::Usage, format!("handoff {handoff} was opened for another gate"))
                .because(format!("want {held}, got {gate}"))
                .fix(format!("leave --gate out, or give --gate {held}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(boot: &str, boottime_ms: u64, wall_ms: i64) -> Moment {
        Moment {
            wall: Time::from_micros(wall_ms * 1000),
            machine: "machine".to_owned(),
            boot_id: boot.to_owned(),
            namespace: "one".to_owned(),
            boottime_ms,
        }
    }

    #[test]
    fn expiry_by_boot_time_on_one_boot_and_by_the_wall_elsewhere() {
        let start = moment("a", 1_000, 1_000_000);
        let lease = Lease::starting(&start, 10_000);
        let hour = 3_600_000;
        for (now, expired, why) in [
            (moment("a", 10_999, 1_000_000), false, "one millisecond left"),
            (moment("a", 11_000, 1_000_000), true, "just over"),
            (moment("a", 5_000, 1_000_000 + hour), false, "the wall stepped forward on the same boot"),
            (moment("a", 11_000, 1_000_000 - hour), true, "the wall stepped back on the same boot"),
            (moment("b", 50, 1_000_000 + 39_999), false, "another boot, within the grace"),
            (moment("b", 50, 1_000_000 + 40_000), true, "another boot, after the grace"),
            (moment("b", 50, 1_000_000 - hour), false, "another boot, clock set back: counts from now"),
        ] {
            assert_eq!(has_expired(&lease, &now), expired, "{why}");
        }
        let other_namespace = Moment { namespace: "two".to_owned(), ..moment("a", 99_999, 1_000_001) };
        assert!(!has_expired(&lease, &other_namespace));
        let other_machine = Moment { machine: "other".to_owned(), ..moment("a", 99_999, 1_000_001) };
        assert!(!has_expired(&lease, &other_machine));
    }
}
