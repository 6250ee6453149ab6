//! The commands that lead on from a handoff or an answer, each of them one that would not be refused now: the
//! one place where `next:`, `fix:`, `status` and `show` take them from. Decides nothing.

use super::lease::{has_expired, may_send, unmet};
use super::lifecycle;
use crate::model::decision::Turn;
use crate::model::handoff::{Attempt, Handoff, HandoffState, Transport};
use crate::model::id::{HandoffId, Id, JobId, Name, ResultId, SessionId};
use crate::model::job::{Family, Grade, Job};
use crate::model::result::{Standing, StoredResult};
use crate::model::run::Run;
use crate::model::session::{Role, Session, Status};
use crate::model::state::State;

/// The flag that a command needs to act for a session: none where it is the only open one.
pub fn acting(state: &State, session: &SessionId) -> String {
    let mut open = state.open_sessions();
    let only = open.next().is_some_and(|first| first.id == *session) && open.next().is_none();
    if only { String::new() } else { format!(" --session {session}") }
}

/// `packet`, with the form that its transport wants; a chat's is the usual one.
fn packet(what: &str, transport: Transport) -> String {
    match transport {
        Transport::Chat => format!("nf packet {what}"),
        other => format!("nf packet {what} --for {other}"),
    }
}

/// The packet of a relay that is out, shown again.
pub fn packet_again(handoff: &HandoffId, transport: Transport) -> String {
    packet(handoff.as_str(), transport)
}

/// The packet of a question, in the first form that its job's own terms allow.
pub fn first_packet(job: &Job, what: &str) -> Option<String> {
    let relays = [Transport::Chat, Transport::Human, Transport::Agent];
    let allowed =
        relays.into_iter().find(|relay| unmet(job, relay.family(), true, Grade::Declared).is_empty());
    allowed.map(|relay| packet(what, relay))
}

/// A claim of a handoff, by the first family that its job's own terms allow.
pub fn claim(job: Option<&Job>, handoff: &HandoffId, class: &Role) -> Option<String> {
    let allowed =
        |family: &Family| job.is_none_or(|job| unmet(job, *family, false, Grade::Declared).is_empty());
    let usual = Some(Family::ServiceJob).filter(allowed);
    let family = usual.or_else(|| Family::ALL.iter().copied().find(allowed))?;
    let family = if family == Family::ServiceJob { String::new() } else { format!(" --family {family}") };
    Some(format!("nf handoff claim {handoff} --class {class} --worker NAME{family}"))
}

/// How a job that is frozen is asked by a session: by a packet, else by the queue, else not at all.
pub fn to_ask(job: &Job) -> String {
    let id = &job.id;
    first_packet(job, id.as_str()).unwrap_or_else(|| {
        let claims = |family: &Family| unmet(job, *family, false, Grade::Declared).is_empty();
        match Family::ALL.iter().any(claims) {
            true => format!("nf handoff open {id} --class CLASS; its terms let no packet answer it"),
            false => format!("nf route {id} tells who may answer it: no packet and no claim can"),
        }
    })
}

/// A packet that a session sends; where it cannot, what it does first, and a session where there is none.
pub fn by_packet(session: Option<&Session>, packet: &str) -> String {
    match session {
        None => format!("nf start --resource R --task T, then {packet}"),
        Some(session) if may_send(session).is_err() => lifecycle::way(&session.id, session.status),
        Some(_) => packet.to_owned(),
    }
}

/// How a job is asked when all that is out about its question is known: its own handoff's way, else whoever
/// has it, else a way to ask it.
pub fn to_go_on(turn: &Turn<'_>, job: &Job, session: Option<&Session>) -> String {
    let state = turn.state;
    let history = state.history(&job.fingerprint);
    if let Some(answer) = history.closing(Some(&job.execution)) {
        return after_answer(state, &answer.result);
    }
    let own = session.and_then(|session| {
        state.open_handoffs(&session.id).find(|handoff| handoff.job.as_ref() == Some(&job.id))
    });
    if let Some(own) = own {
        return super::waiting::look(state, &own, &turn.now, &|time| time.to_string()).way;
    }
    let live = |attempt: &Attempt| !attempt.lapsed && !has_expired(&attempt.lease, &turn.now);
    match state.active(&history).find(live) {
        Some(attempt) => format!("nf show {} tells who has it", attempt.handoff),
        None => by_packet(session, &to_ask(job)),
    }
}

/// How a handoff that is free gets its answer.
pub fn to_answer(state: &State, job: Option<&Job>, handoff: &Handoff) -> String {
    let Handoff { id, target_class: class, source_session, .. } = handoff;
    let sends = state.get::<Session>(source_session).is_some_and(|source| may_send(&source).is_ok());
    let packet = match job {
        Some(job) => first_packet(job, id.as_str()),
        // Work that is no question may be done by anybody.
        None if *class == Role::HumanReviewer => Some(packet(id.as_str(), Transport::Human)),
        None => Some(packet(id.as_str(), Transport::Chat)),
    };
    let packet = packet.filter(|_| sends);
    let ways: Vec<String> = claim(job, id, class).into_iter().chain(packet).collect();
    match (ways.is_empty(), &handoff.job) {
        (true, Some(job)) => {
            format!("nf route {job} tells who may answer it; nf handoff cancel {id} takes it back")
        }
        _ => ways.join(", or "),
    }
}

/// How a question is asked anew by the session that asked it, with as many attempts where it had too few.
pub fn anew(state: &State, handoff: &Handoff, attempts: Option<u32>) -> String {
    let Handoff { id, target_class: class, source_session, .. } = handoff;
    if let Some(source) = state.get::<Session>(source_session).filter(|source| may_send(source).is_err()) {
        return lifecycle::way(source_session, source.status);
    }
    // Work that is no frozen question is opened again with all that it was opened with.
    let of = handoff.job.as_ref().map_or_else(|| "...".to_owned(), JobId::to_string);
    let more = attempts.map_or_else(String::new, |attempts| format!(" --max-attempts {attempts}"));
    let open = format!("nf handoff open {of} --class {class}{more}{}", acting(state, source_session));
    match handoff.state {
        HandoffState::Queued | HandoffState::Claimed => format!("nf handoff cancel {id}, then {open}"),
        _ => open,
    }
}

/// What leads on from an answer: its gate applies it, or has done so and only another text is asked about.
pub fn after_answer(state: &State, result: &ResultId) -> String {
    let stored = state.get::<StoredResult>(result);
    let handoff = stored.as_ref().and_then(|stored| state.get::<Handoff>(&stored.provenance.handoff));
    match (stored, handoff) {
        (Some(stored), Some(handoff)) => to_apply(state, &stored, &handoff),
        _ => format!("nf show {result}"),
    }
}

/// The same of an answer that may be no part of the state yet.
pub fn to_apply(state: &State, stored: &StoredResult, handoff: &Handoff) -> String {
    let (result, gate) = (&stored.id, &handoff.gate);
    let look = format!("nf show {result}; change the text, then nf freeze FILE");
    if stored.consumed.contains_key(gate) {
        return format!("{gate} has consumed it; change the text, then nf freeze FILE");
    }
    let Some(session) = state.get::<Session>(&handoff.source_session) else { return look };
    let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
    let newest = run.as_ref().and_then(|run| run.pending.gates.get(gate)?.handoff.clone());
    let newest = newest.and_then(|id| state.get::<Handoff>(&id));
    let overtaken = newest.is_some_and(|newest| newest.question() != stored.question());
    let standing = stored.checked.as_ref().map(|checked| checked.standing);
    if session.status.is_ended() || overtaken || matches!(standing, None | Some(Standing::Surplus)) {
        return look;
    }
    let consume = format!("{}{}", consume(stored, gate), acting(state, &session.id));
    // Only a current run consumes.
    match run.is_some_and(|run| run.status.is_current()) {
        true => consume,
        false if session.status == Status::Created => lifecycle::way(&session.id, session.status),
        false => format!("nf resume {}, then {consume}", session.id),
    }
}

/// How a gate applies a result, by a session that has a current run.
pub fn consume(stored: &StoredResult, gate: &Name) -> String {
    let standing = stored.checked.as_ref().map(|checked| checked.standing);
    let openly = if standing == Some(Standing::Contested) { " --contested REASON" } else { "" };
    format!("nf consume {} --as {gate}{openly}", stored.id)
}

/// What is said of a gate that has left another question for this one.
pub fn left_for_another(gate: &Name, other: &HandoffId) -> String {
    format!("gate {gate} waited for handoff {other} until now: its answer will not move the gate any more")
}
