//! Handoffs and attempts: one bounded transfer of work and the tries at it. Attempt number and nonce
//! decide who may act; a clock only decides when others may reclaim (control-plane contract, 04 to 05).

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::id::{AttemptId, HandoffId, JobId, Name, ResultId, SessionId};
use super::job::{Family, ResultScope};
use super::run::ManifestEntry;
use super::session::Role;
use super::time::{Moment, Time};
use crate::words;

words! {
    /// The state of a handoff.
    HandoffState {
        /// Waits for a claim.
        Queued = "queued",
        /// An attempt is on it.
        Claimed = "claimed",
        /// A valid result is in.
        Completed = "completed",
        /// Every attempt is used.
        Exhausted = "exhausted",
        /// Taken back by its source.
        Cancelled = "cancelled",
    }
}

impl HandoffState {
    /// Whether an answer may still come in.
    pub fn is_open(self) -> bool {
        matches!(self, HandoffState::Queued | HandoffState::Claimed)
    }
}

words! {
    /// The state of an attempt.
    AttemptState {
        /// The current one.
        Active = "active",
        /// Gave a valid result.
        Completed = "completed",
        /// Could not give one.
        Failed = "failed",
        /// Given back by its worker.
        Released = "released",
        /// Overtaken by a newer one after its lease ran out.
        Superseded = "superseded",
        /// Taken back by the source.
        Revoked = "revoked",
    }
}

words! {
    /// The way an attempt's packet and answer travel.
    Transport {
        /// Copy and paste with another chat.
        Chat = "chat",
        /// A person with a form.
        Human = "human",
        /// A local agent that is handed one JSON document.
        Agent = "agent",
    }
}

impl Transport {
    /// The family that a relay by this transport belongs to.
    pub fn family(self) -> Family {
        match self {
            Transport::Chat => Family::PeerChat,
            Transport::Human => Family::Human,
            Transport::Agent => Family::LocalAgent,
        }
    }
}

words! {
    /// What besides the packet a worker may be given.
    ContextPolicy {
        /// Nothing.
        PacketOnly = "packet_only",
    }
}

/// What the work may touch. The high permissions parse only as `false`: nothing here grants authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Permissions {
    /// How far the result may reach.
    pub result_scope: ResultScope,
}

/// One bounded transfer of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Handoff {
    /// Its id.
    pub id: HandoffId,
    /// The frozen question.
    pub job: JobId,
    /// The question's fingerprint.
    pub fingerprint: String,
    /// The session that asks.
    pub source_session: SessionId,
    /// The role that may answer.
    pub target_class: Role,
    /// The resource worked on.
    pub resource: Name,
    /// The gate that the answer moves.
    pub gate: Name,
    /// What else the worker is given.
    pub context_policy: ContextPolicy,
    /// What the work may touch.
    pub permissions: Permissions,
    /// Attempts that the question may have, over all its handoffs.
    pub max_attempts: u32,
    /// How long a lease lasts, in milliseconds.
    pub ttl_ms: u64,
    /// Its state.
    pub state: HandoffState,
    /// Number of its newest attempt: the fencing epoch.
    pub number: u32,
    /// Its newest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// Its valid result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultId>,
    /// When it was opened.
    pub opened_at: Time,
}

/// How long an attempt is protected from reclaim, by each clock that may be asked later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lease {
    /// Its length in milliseconds.
    pub ttl_ms: u64,
    /// Hash of the machine id.
    pub machine: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// The time namespace.
    pub namespace: String,
    /// CLOCK_BOOTTIME at its start, in milliseconds.
    pub boottime_ms: u64,
    /// Wall clock at its start.
    pub wall: Time,
}

impl Lease {
    /// A lease that starts now.
    pub fn starting(now: &Moment, ttl_ms: u64) -> Self {
        Self {
            ttl_ms,
            machine: now.machine.clone(),
            boot_id: now.boot_id.clone(),
            namespace: now.namespace.clone(),
            boottime_ms: now.boottime_ms,
            wall: now.wall,
        }
    }

    /// When it ends by the wall clock, for people.
    pub fn expires_at(&self) -> Time {
        self.wall.plus_millis(self.ttl_ms)
    }
}

/// One try at a handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Its handoff.
    pub handoff: HandoffId,
    /// The question.
    pub job: JobId,
    /// The question's fingerprint.
    pub fingerprint: String,
    /// Its number within the handoff.
    pub number: u32,
    /// The worker's session.
    pub worker_session: SessionId,
    /// How packet and answer travel.
    pub transport: Transport,
    /// BLAKE3 of the nonce; the nonce itself is in no record.
    pub nonce_hash: Hash,
    /// BLAKE3 of the packet.
    pub packet_hash: Hash,
    /// What the worker was given.
    pub context_manifest: Vec<ManifestEntry>,
    /// Its lease.
    pub lease: Lease,
    /// When it was claimed.
    pub claimed_at: Time,
    /// Its state.
    pub state: AttemptState,
    /// Replies that failed intake or binding.
    #[serde(default)]
    pub invalid: u32,
    /// Its valid result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultId>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// Why it ended, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Name>,
}
