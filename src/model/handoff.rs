//! Handoffs and attempts: one bounded transfer of work and the tries at it. Attempt number and nonce
//! decide who may act; a clock only decides when others may reclaim (control-plane contract, 04 to 05).

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::id::{AttemptId, HandoffId, Id, JobId, Name, ResultId, SessionId};
use super::job::{Execution, Family, Grade, Place, ResultScope};
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
        /// A worker that claimed the work from the queue.
        Worker = "worker",
        /// A process that `nf work` itself ran for it.
        Process = "process",
        /// A call of an endpoint that `nf work` itself made for it.
        Http = "http",
        /// A file that is carried to another machine, and a result file that is brought back.
        Import = "import",
    }
}

impl Transport {
    /// The family that an attempt by this transport belongs to, unless it says another.
    pub fn family(self) -> Family {
        match self {
            Transport::Chat | Transport::Import => Family::PeerChat,
            Transport::Human => Family::Human,
            Transport::Agent => Family::LocalAgent,
            Transport::Worker | Transport::Process => Family::ServiceJob,
            Transport::Http => Family::ProviderApi,
        }
    }

    /// Whether the packet goes out by `packet`, for a person to paste.
    pub fn is_relay(self) -> bool {
        matches!(self, Transport::Chat | Transport::Human | Transport::Agent)
    }

    /// Whether a person carries packet and answer: such an attempt outlives an invalid answer.
    pub fn is_carried(self) -> bool {
        self.is_relay() || self == Transport::Import
    }

    /// Whether `nf` itself asked, and so saw who answered.
    pub fn is_seen(self) -> bool {
        matches!(self, Transport::Process | Transport::Http)
    }

    /// The transport whose packet form is used and whose way of naming the reviewer counts: its own, and for
    /// a carried file that of the family that answers far away.
    pub fn form(self, family: Family) -> Self {
        match (self, family) {
            (Transport::Import, Family::Human) => Transport::Human,
            (Transport::Import, Family::LocalAgent) => Transport::Agent,
            (Transport::Import, Family::ServiceJob) => Transport::Worker,
            (Transport::Import, _) => Transport::Chat,
            (Transport::Process | Transport::Http, _) => Transport::Worker,
            (own, _) => own,
        }
    }
}

words! {
    /// What besides the packet a worker may be given.
    ContextPolicy {
        /// Nothing.
        PacketOnly = "packet_only",
        /// What is listed by name.
        Listed = "listed",
    }
}

/// What the work may touch. The high permissions parse only as `false`: nothing here grants authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Permissions {
    /// How far the result may reach.
    pub result_scope: ResultScope,
}

/// Work that is no frozen question: what is to be done and what comes back, for one handoff alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Task {
    /// The blob with its instructions, its artifacts by hash and the schema of what comes back.
    pub blob: Hash,
    /// Where its artifacts stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// One bounded transfer of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Handoff {
    /// Its id.
    pub id: HandoffId,
    /// The frozen question, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The question's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The work, where it is no frozen question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
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
    /// What is listed for the worker besides the packet, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Name>,
    /// What the work may touch.
    pub permissions: Permissions,
    /// Who goes first in the queue: 9 before 0, the oldest first among equals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u8,
    /// Which workers may have it: the terms of its job, as [`terms`] writes them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub terms: String,
    /// Before when it is not to be claimed: its opener's wish, or a pause after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
    /// Attempts at it that failed.
    #[serde(default, skip_serializing_if = "is_none_failed")]
    pub failures: u32,
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

fn is_zero(priority: &u8) -> bool {
    *priority == 0
}

fn is_none_failed(failures: &u32) -> bool {
    *failures == 0
}

/// The terms of a job that decide which worker may claim it, in one word: one letter a family, in the
/// contract's order, and the grade. Handoffs of equal terms queue together.
pub fn terms(execution: &Execution) -> String {
    let letters = Family::ALL.iter().zip('a'..).filter(|(family, _)| execution.families.contains(family));
    letters.map(|(_, letter)| letter).chain(['-']).collect::<String>() + execution.min_grade.word()
}

/// Whether terms, as [`terms`] writes them, allow a family whose answers are at best of a grade.
pub fn terms_allow(terms: &str, family: Family, best: Grade) -> bool {
    let Some((letters, grade)) = terms.split_once('-') else { return false };
    let mut known = Family::ALL.iter().zip('a'..);
    let letter = known.find(|(known, _)| **known == family).map(|(_, letter)| letter);
    letter.is_some_and(|letter| letters.contains(letter))
        && grade.parse::<Grade>().is_ok_and(|grade| grade <= best)
}

/// What wall clocks of two boots may differ by.
const WALL_GRACE_MS: i64 = 30_000;

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

    /// When it ends by its own boot clock, in milliseconds.
    pub fn boottime_end(&self) -> u64 {
        self.boottime_ms.saturating_add(self.ttl_ms)
    }

    /// From when it counts as over by the wall clock of another boot or machine, in milliseconds.
    pub fn wall_end(&self) -> i64 {
        let length = i64::try_from(self.ttl_ms).unwrap_or(i64::MAX);
        self.wall.millis().saturating_add(length).saturating_add(WALL_GRACE_MS)
    }

    /// The machine, boot and time namespace whose boot clock it runs by, as one word.
    pub fn clock(&self) -> String {
        clock(&self.machine, &self.boot_id, &self.namespace)
    }

    /// When it ends by the wall clock, for people.
    pub fn expires_at(&self) -> Time {
        self.wall.plus_millis(self.ttl_ms)
    }
}

/// The one word for a machine, boot and time namespace.
pub fn clock(machine: &str, boot_id: &str, namespace: &str) -> String {
    Hash::of_parts(&[machine, boot_id, namespace]).hex()[..16].to_owned()
}

/// One try at a handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Its handoff.
    pub handoff: HandoffId,
    /// The question, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The question's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Its number within the handoff.
    pub number: u32,
    /// The worker's session.
    pub worker_session: SessionId,
    /// How packet and answer travel.
    pub transport: Transport,
    /// The family that it belongs to, where the transport alone does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The name that its worker gave: it proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Name>,
    /// BLAKE3 of the nonce; the nonce itself is in no record.
    pub nonce_hash: Hash,
    /// BLAKE3 of the packet.
    pub packet_hash: Hash,
    /// What the worker was given.
    pub context_manifest: Vec<ManifestEntry>,
    /// Its lease.
    pub lease: Lease,
    /// Whether the lease was seen to have run out, so that others may claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lapsed: bool,
    /// When it was claimed.
    pub claimed_at: Time,
    /// Its state.
    pub state: AttemptState,
    /// Replies that failed intake or binding.
    #[serde(default)]
    pub invalid: u32,
    /// BLAKE3 of the file that came back last, where one is carried: the same again says nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Hash>,
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

impl Handoff {
    /// What its attempts and answers are counted under: the question, wherever it is asked, or the handoff
    /// itself where it is no question.
    pub fn question(&self) -> &str {
        self.fingerprint.as_deref().unwrap_or_else(|| self.id.as_str())
    }
}

impl Attempt {
    /// As [`Handoff::question`].
    pub fn question(&self) -> &str {
        self.fingerprint.as_deref().unwrap_or_else(|| self.handoff.as_str())
    }

    /// The family that it belongs to.
    pub fn family(&self) -> Family {
        self.family.unwrap_or_else(|| self.transport.family())
    }

    /// The transport whose packet form and way of naming the reviewer it uses.
    pub fn form(&self) -> Transport {
        self.transport.form(self.family())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::{Cost, Locality};

    #[test]
    fn terms_tell_the_families_and_the_grade() {
        let execution = Execution {
            independent: true,
            min_grade: Grade::Declared,
            families: vec![Family::ServiceJob, Family::PeerChat],
            models: Vec::new(),
            interactive: true,
            cost: vec![Cost::Free],
            locality: Locality::Any,
        };
        let terms = terms(&execution);
        assert_eq!(terms, "ag-declared");
        for (family, best, allowed) in [
            (Family::ServiceJob, Grade::Declared, true),
            (Family::PeerChat, Grade::Attested, true),
            (Family::ServiceJob, Grade::None, false),
            (Family::LocalAgent, Grade::Attested, false),
        ] {
            assert_eq!(terms_allow(&terms, family, best), allowed, "{family} {best}");
        }
        assert!(!terms_allow("", Family::ServiceJob, Grade::Attested));
    }
}
