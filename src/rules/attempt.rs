//! Attempts: how one begins, with its worker's session, its nonce and the packet that holds it. The nonce
//! goes to the worker and into no record but as a hash (control-plane contract, 05).

use super::claim::{Found, Wish};
use super::freeze::FrozenJob;
use super::lease;
use super::packet::{self, Packet};
use super::session::{Spec, create};
use crate::error::Result;
use crate::model::decision::{Decision, Turn};
use crate::model::event::{AttemptEnd, Event};
use crate::model::handoff::{Attempt, Begun, Handoff, Lease, Transport};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, SessionId, word};
use crate::model::job::Family;
use crate::model::run::ManifestEntry;
use crate::model::session::{Host, MemoryPolicy, ResumePolicy, Role, Session, Status};
use crate::model::time::Time;

/// Who begins an attempt, and how.
pub struct Claimant {
    /// How packet and answer travel.
    pub transport: Transport,
    /// The family, where the transport alone does not say.
    pub family: Option<Family>,
    /// The worker's name.
    pub worker: Option<Name>,
    /// The session that it works in.
    pub session: Option<SessionId>,
    /// How long its lease lasts, in milliseconds.
    pub ttl_ms: u64,
}

/// What an attempt is asked.
pub struct Asking<'a> {
    /// The session that asks.
    pub source: &'a Session,
    /// The frozen job.
    pub frozen: &'a FrozenJob,
    /// The bytes of its artifacts.
    pub artifacts: &'a [Vec<u8>],
}

/// A new attempt at a handoff, with its worker's session and its packet, which holds the nonce.
///
/// # Errors
/// The system gives no random bytes.
pub fn begin(
    turn: &mut Turn<'_>,
    events: &mut Vec<Event>,
    handoff: &Handoff,
    asking: &Asking<'_>,
    claimant: Claimant,
) -> Result<(Attempt, String, String)> {
    let id: AttemptId = turn.id()?;
    let nonce = turn.nonce()?;
    let family = claimant.family.unwrap_or_else(|| claimant.transport.family());
    let packet = render(handoff, asking, &nonce, claimant.transport.form(family));
    let worker_session = match claimant.session {
        Some(session) => session,
        None => {
            let mut life = create(turn, worker(asking.source, handoff, &id, family))?;
            let session = life.session.id.clone();
            life.go(Status::Running)?;
            events.append(&mut life.events);
            session
        }
    };
    let manifest = asking.frozen.artifacts().into_iter().filter_map(|artifact| {
        Some(ManifestEntry { name: artifact.name.parse().ok()?, path: None, hash: artifact.hash })
    });
    let attempt = Attempt::new(Begun {
        id,
        handoff: (handoff.id.clone(), handoff.number + 1),
        question: (handoff.job.clone(), handoff.fingerprint.clone()),
        worker_session,
        by: (claimant.transport, claimant.family),
        worker: claimant.worker,
        secret: (Hash::of(nonce.as_bytes()), Hash::of(packet.as_bytes())),
        context_manifest: manifest.collect(),
        lease: (Lease::starting(&turn.now, claimant.ttl_ms), turn.at()),
    });
    events.push(Event::HandoffClaimed { attempt: attempt.clone() });
    Ok((attempt, packet, nonce))
}

fn render(handoff: &Handoff, asking: &Asking<'_>, nonce: &str, transport: Transport) -> String {
    let packet = Packet {
        job: asking.frozen,
        artifacts: asking.artifacts,
        handoff: &handoff.id,
        nonce,
        source: &asking.source.id,
        context: &handoff.context,
    };
    packet::render(&packet, transport)
}

/// The worker's session: a reviewer that keeps nothing, and lives and ends with its attempt.
fn worker(source: &Session, handoff: &Handoff, attempt: &AttemptId, family: Family) -> Spec {
    let host = match family {
        Family::PeerChat => Host::Chat,
        Family::Human => Host::Human,
        Family::LocalAgent => Host::LocalAgent,
        Family::ProviderApi => Host::ProviderApi,
        Family::LocalModel => Host::LocalModel,
        Family::McpWorker => Host::Mcp,
        Family::ServiceJob => Host::Service,
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

/// A claim that was won. The nonce and the packet that holds it go to the worker and into no record.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Claimed {
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its number within the handoff.
    pub number: u32,
    /// The job, where it is a frozen question.
    pub job: Option<JobId>,
    /// The class of the work.
    pub class: Role,
    /// The gate that the answer moves.
    pub gate: Name,
    /// The worker's session.
    pub worker_session: SessionId,
    /// Until when nobody else may claim.
    pub expires_at: Time,
    /// Whether that time is over already, where a claim is repeated: anybody may claim it then.
    #[serde(default)]
    pub expired: bool,
}

/// The secret of a won claim.
#[derive(Debug, Clone, Default)]
pub struct Secret {
    /// What the worker returns to prove that it is the one.
    pub nonce: String,
    /// The packet that it answers.
    pub packet: String,
}

/// Claims what was found.
///
/// # Errors
/// The system gives no random bytes.
pub fn claim(
    turn: &mut Turn<'_>,
    wish: &Wish,
    found: Found,
    asking: &Asking<'_>,
) -> Result<(Decision<Claimed>, Secret)> {
    let Found { mut events, handoff, overtaken } = found;
    if let Some(old) = &overtaken {
        let reason = word("lease_expired")?;
        events.extend(lease::end(turn.state, old, AttemptEnd::Superseded, &reason)?);
    }
    let claimant = Claimant {
        transport: wish.offer.transport,
        family: Some(wish.family).filter(|family| *family != wish.offer.transport.family()),
        worker: Some(wish.worker.clone()),
        session: wish.session.as_ref().map(|session| session.id.clone()),
        ttl_ms: wish.ttl_ms.unwrap_or(handoff.ttl_ms),
    };
    let (attempt, packet, nonce) = begin(turn, &mut events, &handoff, asking, claimant)?;
    Ok((Decision::new(events, claimed(&attempt, &handoff)), Secret { nonce, packet }))
}

fn claimed(attempt: &Attempt, handoff: &Handoff) -> Claimed {
    Claimed {
        handoff: handoff.id.clone(),
        attempt: attempt.id.clone(),
        number: attempt.number,
        job: handoff.job.clone(),
        class: handoff.target_class.clone(),
        gate: handoff.gate.clone(),
        worker_session: attempt.worker_session.clone(),
        expires_at: attempt.lease.expires_at(),
        expired: false,
    }
}

/// A claim that is repeated after its answer was lost: the same attempt with a new nonce.
///
/// # Errors
/// `lease_lost`, `handoff_cancelled` where the attempt may not act any more.
pub fn claim_again(
    turn: &mut Turn<'_>,
    attempt: &Attempt,
    handoff: &Handoff,
    asking: &Asking<'_>,
) -> Result<(Decision<Claimed>, Secret)> {
    lease::may_answer(attempt, handoff)?;
    let nonce = turn.nonce()?;
    let packet = render(handoff, asking, &nonce, attempt.form());
    let event = Event::AttemptRenonced {
        attempt: attempt.id.clone(),
        nonce_hash: Hash::of(nonce.as_bytes()),
        packet_hash: Hash::of(packet.as_bytes()),
    };
    let expired = attempt.lapsed || lease::has_expired(&attempt.lease, &turn.now);
    let again = Claimed { expired, ..claimed(attempt, handoff) };
    Ok((Decision::new(vec![event], again), Secret { nonce, packet }))
}
