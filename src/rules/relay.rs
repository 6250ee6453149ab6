//! A relay: the packet leaves, by hand, and the session waits (session-runtime contract, 09). Opening,
//! claiming and waiting are one batch.

use super::checkpoint::{self, Saved};
use super::freeze::FrozenJob;
use super::lease::{self, Admission, Asked};
use super::lifecycle::Course;
use super::packet::{self, Packet};
use super::session::{Spec, create};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{AttemptEnd, Event};
use crate::model::handoff::{Attempt, AttemptState, ContextPolicy, Handoff, HandoffState, Lease, Transport};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, SessionId, word};
use crate::model::job::Job;
use crate::model::result::History;
use crate::model::run::{GateStatus, ManifestEntry, Run};
use crate::model::session::{Host, MemoryPolicy, ResumePolicy, Role, Session, Status};

/// Everything that a relay is decided on.
pub struct Relay<'a> {
    /// The session that asks.
    pub session: Session,
    /// Its current run.
    pub run: Option<Run>,
    /// The job, from the log.
    pub job: &'a Job,
    /// The frozen job, from its blob.
    pub frozen: &'a FrozenJob,
    /// The bytes of its artifacts.
    pub artifacts: &'a [Vec<u8>],
    /// How packet and answer travel.
    pub transport: Transport,
    /// The gate asked for.
    pub gate: Option<Name>,
    /// The session's own open handoff of this job.
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
    /// The job.
    pub job: JobId,
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
        now: &now,
        state: turn.state,
    };
    let overtaken = match lease::admit(&asked)? {
        Admission::Again(attempt) if relay.kept.is_some() => return again(&relay, *attempt),
        // The packet is gone and its nonce with it: only a new attempt can be answered.
        Admission::Again(attempt) => Some(attempt),
        Admission::New { overtaken } => overtaken,
    };
    lease::may_send(&relay.session)?;
    lease::transport_allowed(relay.job, relay.transport)?;
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
            "nf packet --for {} shows it again; to take it back: nf session move {} stale, then nf start \
             --from {}",
            attempt.transport, relay.session.id, relay.session.id
        )));
    }
    let gate = relay.own.as_ref().map(|own| own.gate.clone());
    Ok(Decision::nothing(Sent {
        handoff: attempt.handoff,
        job: attempt.job,
        session: relay.session.id.clone(),
        status: relay.session.status,
        gate: gate.map_or_else(|| lease::default_gate(relay.job), Ok)?,
        transport: attempt.transport,
        packet_hash: attempt.packet_hash,
        expires_at: attempt.lease.expires_at(),
        attempt: attempt.id,
        again: true,
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
            let gate = relay.gate.map_or_else(|| lease::default_gate(relay.job), Ok)?;
            let handoff = opened(turn, &course.session, relay.job, relay.transport, gate)?;
            course.events.push(Event::HandoffOpened { handoff: handoff.clone() });
            if let Some(run) = &mut course.run {
                run.pending.handoffs.insert(handoff.id.clone());
            }
            handoff
        }
    };
    let nonce = turn.nonce()?;
    let packet = packet::render(
        &Packet {
            job: relay.frozen,
            artifacts: relay.artifacts,
            handoff: &handoff.id,
            nonce: &nonce,
            source: &course.session.id,
        },
        relay.transport,
    );
    let attempt = claimed(turn, &mut course, &handoff, relay.frozen, relay.transport, (&nonce, &packet))?;
    gate_pending(&mut course, &handoff);
    wait(turn, &mut course, &handoff, relay.transport, relay.bindings)?;
    let sent = Sent {
        handoff: handoff.id,
        attempt: attempt.id.clone(),
        job: relay.job.id.clone(),
        session: course.session.id.clone(),
        status: course.session.status,
        gate: handoff.gate,
        transport: relay.transport,
        packet_hash: attempt.packet_hash,
        expires_at: attempt.lease.expires_at(),
        again: false,
    };
    Ok(Decision { events: course.events, packet: Some((attempt.id, packet)), outcome: Ok(sent) })
}

fn opened(
    turn: &mut Turn<'_>,
    session: &Session,
    job: &Job,
    transport: Transport,
    gate: Name,
) -> Result<Handoff> {
    let target_class = match transport {
        Transport::Human => Role::HumanReviewer,
        Transport::Chat | Transport::Agent => Role::SemanticReviewer,
    };
    Ok(Handoff {
        id: turn.id()?,
        job: job.id.clone(),
        fingerprint: job.fingerprint.clone(),
        source_session: session.id.clone(),
        target_class,
        resource: session.resource.clone(),
        gate,
        context_policy: ContextPolicy::PacketOnly,
        permissions: crate::model::handoff::Permissions { result_scope: job.result_scope },
        max_attempts: lease::RELAY_MAX_ATTEMPTS,
        ttl_ms: lease::RELAY_TTL_MS,
        state: HandoffState::Queued,
        number: 0,
        attempt: None,
        result: None,
        opened_at: turn.at(),
    })
}

fn claimed(
    turn: &mut Turn<'_>,
    course: &mut Course,
    handoff: &Handoff,
    frozen: &FrozenJob,
    transport: Transport,
    (nonce, packet): (&str, &str),
) -> Result<Attempt> {
    let id: AttemptId = turn.id()?;
    let mut life = create(turn, worker(&course.session, handoff, &id, transport))?;
    let worker_session = life.session.id.clone();
    life.go(Status::Running)?;
    course.events.append(&mut life.events);
    let manifest = frozen.artifacts().into_iter().filter_map(|artifact| {
        Some(ManifestEntry { name: artifact.name.parse().ok()?, path: None, hash: artifact.hash })
    });
    let attempt = Attempt {
        id,
        handoff: handoff.id.clone(),
        job: handoff.job.clone(),
        fingerprint: handoff.fingerprint.clone(),
        number: handoff.number + 1,
        worker_session,
        transport,
        nonce_hash: Hash::of(nonce.as_bytes()),
        packet_hash: Hash::of(packet.as_bytes()),
        context_manifest: manifest.collect(),
        lease: Lease::starting(&turn.now, handoff.ttl_ms),
        claimed_at: turn.at(),
        state: AttemptState::Active,
        invalid: 0,
        result: None,
        ended_at: None,
        reason: None,
    };
    course.events.push(Event::HandoffClaimed { attempt: attempt.clone() });
    Ok(attempt)
}

/// The worker's session: a reviewer that keeps nothing, and lives and ends with its attempt.
fn worker(source: &Session, handoff: &Handoff, attempt: &AttemptId, transport: Transport) -> Spec {
    let host = match transport {
        Transport::Chat => Host::Chat,
        Transport::Human => Host::Human,
        Transport::Agent => Host::LocalAgent,
    };
    Spec {
        resource: handoff.resource.clone(),
        project: source.project.clone(),
        role: handoff.target_class.clone(),
        task_mode: source.task_mode.clone(),
        memory_policy: MemoryPolicy::None,
        resume_policy: ResumePolicy::Forbidden,
        parent: Some(source.id.clone()),
        native: None,
        host,
        worker_of: Some(attempt.clone()),
    }
}

fn gate_pending(course: &mut Course, handoff: &Handoff) {
    let Some(run) = &course.run else { return };
    let held = run.pending.gates.get(&handoff.gate);
    let waits = |gate: &crate::model::run::Gate| {
        gate.status == GateStatus::Pending && gate.handoff.as_ref() == Some(&handoff.id)
    };
    if !held.is_some_and(waits) {
        course.events.push(Event::GateMoved {
            run: run.id.clone(),
            gate: handoff.gate.clone(),
            to: GateStatus::Pending,
            handoff: Some(handoff.id.clone()),
            result: None,
            verdict: None,
        });
    }
}

/// The session waits, unless it waits already, and the moment is kept as a checkpoint.
fn wait(
    turn: &mut Turn<'_>,
    course: &mut Course,
    handoff: &Handoff,
    transport: Transport,
    bindings: Bindings,
) -> Result<()> {
    let (status, boundary) = match transport {
        Transport::Agent => (Status::AwaitingExternal, Boundary::ExternalWait),
        Transport::Chat | Transport::Human => (Status::AwaitingUser, Boundary::UserWait),
    };
    if course.session.status == Status::Running {
        course.go(status)?;
    }
    let Some(run) = course.run.clone() else { return Ok(()) };
    let pending = CheckpointPending { handoff: Some(handoff.id.clone()), gate: Some(handoff.gate.clone()) };
    let saved = Saved { session: &course.session, run: &run, boundary, pending };
    let checkpoint = checkpoint::save(turn, saved, bindings)?;
    course.events.push(Event::CheckpointSaved { checkpoint });
    Ok(())
}
