//! A relay: the packet leaves, by hand, and the session waits (session-runtime contract, 09). Opening,
//! claiming and waiting are one batch.

use super::attempt::{self, Asking, Claimant};
use super::freeze::FrozenJob;
use super::handoff::{self, Terms, Work};
use super::lease::{self, Admission, Asked};
use super::lifecycle::Course;
use super::ways;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Boundary};
use crate::model::decision::{Decision, Turn};
use crate::model::event::AttemptEnd;
use crate::model::handoff::{Attempt, Handoff, Transport};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, SessionId, word};
use crate::model::job::Job;
use crate::model::result::History;
use crate::model::run::Run;
use crate::model::session::{Role, Session, Status};

/// Everything that a relay is decided on.
pub struct Relay<'a> {
    /// The session that asks.
    pub session: Session,
    /// Its current run.
    pub run: Option<Run>,
    /// The job, from the log; none where what is sent is the work that its own handoff carries.
    pub job: Option<&'a Job>,
    /// What is asked: the frozen job, or that work, from its blob.
    pub frozen: &'a FrozenJob,
    /// The bytes of its artifacts.
    pub artifacts: &'a [Vec<u8>],
    /// How packet and answer travel.
    pub transport: Transport,
    /// The gate asked for.
    pub gate: Option<Name>,
    /// The session's own open handoff of this job, or of that work.
    pub own: Option<Handoff>,
    /// What has happened to the question.
    pub history: History,
    /// The question's active attempts.
    pub active: Vec<Attempt>,
    /// The packet file of the own open attempt, if it is there.
    pub kept: Option<String>,
    /// The bindings that a checkpoint carries over, with what the config declares.
    pub bindings: Bindings,
}

/// What went out.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Sent {
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The job, where it is a frozen question.
    pub job: Option<JobId>,
    /// The session that asks.
    pub session: SessionId,
    /// Its state now.
    pub status: Status,
    /// The gate that the answer moves.
    pub gate: Name,
    /// How packet and answer travel.
    pub transport: Transport,
    /// BLAKE3 of the packet.
    pub packet_hash: Hash,
    /// Until when nobody else may ask.
    pub expires_at: crate::model::time::Time,
    /// Whether an open packet was shown again.
    pub again: bool,
    /// The handoff for whose answer the gate waited until now: that answer moves it no more.
    #[serde(default)]
    pub displaced: Option<HandoffId>,
}

/// Opens a relay attempt, or shows the open one again.
///
/// # Errors
/// `illegal_transition`, `execution_unavailable`, `already_judged`, `under_review`, `exhausted`, `usage`.
pub fn send(turn: &mut Turn<'_>, relay: Relay<'_>) -> Result<Decision<Sent>> {
    if let Some(own) = &relay.own {
        lease::same_gate(&own.id, &own.gate, relay.gate.as_ref())?;
    }
    let now = turn.now.clone();
    let asked = Asked {
        job: relay.job,
        history: &relay.history,
        active: &relay.active,
        own: relay.own.as_ref(),
        limit: relay.own.as_ref().map_or(lease::RELAY_MAX_ATTEMPTS, |own| own.max_attempts),
        now: &now,
        state: turn.state,
    };
    let overtaken = match lease::admit(&asked)? {
        Admission::Again(attempt) if relay.kept.is_some() => return again(&relay, *attempt),
        // A worker holds its own packet, and an exported one is on its way: neither is taken by asking again.
        Admission::Again(attempt) if !attempt.transport.is_relay() => {
            return Err(lease::under_review(&attempt).fix(format!(
                "nf handoff release {} --revoke takes it back from the worker",
                attempt.handoff
            )));
        }
        // The packet is gone and its nonce with it: only a new attempt can be answered.
        Admission::Again(attempt) => Some(attempt),
        Admission::New { overtaken } => overtaken,
    };
    relay.own.as_ref().map_or(Ok(()), |own| lease::due(own, &now))?;
    lease::may_send(&relay.session)?;
    // Work that is no question asks for no proof of who does it.
    relay.job.map_or(Ok(()), |job| lease::transport_allowed(job, relay.transport))?;
    open(turn, relay, overtaken.as_deref())
}

fn again(relay: &Relay<'_>, attempt: Attempt) -> Result<Decision<Sent>> {
    if attempt.transport != relay.transport {
        return Err(Error::new(
            Kind::UnderReview,
            format!("attempt {} is out as a packet for {}", attempt.id, attempt.transport),
        )
        .because(format!("a packet for {} would be a second reviewer", relay.transport))
        .fix(format!(
            "{} shows it again; nf handoff cancel {} takes it back, to be asked anew",
            ways::packet_again(&attempt.handoff, attempt.transport),
            attempt.handoff
        )));
    }
    let gate = match (&relay.own, relay.job) {
        (Some(own), _) => own.gate.clone(),
        (None, job) => lease::default_gate(job.ok_or_else(nothing)?)?,
    };
    Ok(Decision::nothing(Sent {
        handoff: attempt.handoff,
        job: attempt.job,
        session: relay.session.id.clone(),
        status: relay.session.status,
        gate,
        transport: attempt.transport,
        packet_hash: attempt.packet_hash,
        expires_at: attempt.lease.expires_at(),
        attempt: attempt.id,
        again: true,
        displaced: None,
    }))
}

fn open(turn: &mut Turn<'_>, relay: Relay<'_>, overtaken: Option<&Attempt>) -> Result<Decision<Sent>> {
    let mut course = Course::new(relay.session, relay.run);
    if let Some(old) = overtaken {
        let expired = lease::has_expired(&old.lease, &turn.now);
        let reason = word(if expired { "lease_expired" } else { "packet_lost" })?;
        course.events.extend(lease::end(turn.state, old, AttemptEnd::Superseded, &reason)?);
    }
    let handoff = match relay.own {
        Some(own) => own,
        None => {
            let terms = terms(relay.transport, relay.gate);
            let question = Work::Question(relay.job.ok_or_else(nothing)?);
            let handoff = handoff::made(turn, &course.session, question, terms)?;
            handoff::announce(&mut course, &handoff);
            handoff
        }
    };
    let claimant = Claimant {
        transport: relay.transport,
        family: None,
        worker: None,
        session: None,
        ttl_ms: lease::RELAY_TTL_MS,
    };
    let asking = Asking { source: &course.session, frozen: relay.frozen, artifacts: relay.artifacts };
    let mut begun = Vec::new();
    let (attempt, packet, _) = attempt::begin(turn, &mut begun, &handoff, &asking, claimant)?;
    course.events.append(&mut begun);
    let displaced = handoff::gate_pending(turn.state, &mut course, &handoff);
    let waits = match relay.transport {
        Transport::Agent | Transport::Worker | Transport::Process | Transport::Http | Transport::Import => {
            (Some(Status::AwaitingExternal), Boundary::ExternalWait)
        }
        Transport::Chat | Transport::Human => (Some(Status::AwaitingUser), Boundary::UserWait),
    };
    handoff::save(turn, &mut course, &handoff, waits, relay.bindings)?;
    let sent = Sent {
        handoff: handoff.id,
        attempt: attempt.id.clone(),
        job: handoff.job,
        session: course.session.id.clone(),
        status: course.session.status,
        gate: handoff.gate,
        transport: relay.transport,
        packet_hash: attempt.packet_hash,
        expires_at: attempt.lease.expires_at(),
        again: false,
        displaced,
    };
    Ok(Decision { events: course.events, packet: Some((attempt.id, packet)), outcome: Ok(sent) })
}

/// The refusal to send what is neither a question nor work of a handoff.
fn nothing() -> Error {
    Error::new(Kind::Usage, "neither a job nor a handoff is named").fix("nf packet JOB, or nf packet HANDOFF")
}

/// A relay's own terms: a person carries it, so it has more time and more attempts.
fn terms(transport: Transport, gate: Option<Name>) -> Terms {
    let class = match transport {
        Transport::Human => Role::HumanReviewer,
        Transport::Chat
        | Transport::Agent
        | Transport::Worker
        | Transport::Process
        | Transport::Http
        | Transport::Import => Role::SemanticReviewer,
    };
    Terms { gate, max_attempts: lease::RELAY_MAX_ATTEMPTS, ttl_ms: lease::RELAY_TTL_MS, ..Terms::of(class) }
}
