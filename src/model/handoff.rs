//! Handoffs and attempts: one bounded transfer of work and the tries at it. Attempt number and nonce
//! decide who may act; a clock only decides when others may reclaim (control-plane contract, 04 to 05).

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::id::{AttemptId, HandoffId, Id, JobId, Name, ResultId, SessionId};
use super::job::{Execution, Family, Grade, Place, ResultScope};
use super::run::ManifestEntry;
use super::session::Role;
use super::time::Time;
use crate::words;

pub use super::lease::{Lease, clock};

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
    /// Where in the log it was opened, which the fold says: the order of those that were opened at one time.
    #[serde(default, skip_serializing_if = "is_nowhere")]
    pub place: u64,
}

fn is_nowhere(place: &u64) -> bool {
    *place == 0
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

/// What only the one who begins an attempt can say of it.
pub struct Begun {
    /// Its id.
    pub id: AttemptId,
    /// Its handoff, and its number within that.
    pub handoff: (HandoffId, u32),
    /// The question, where it is one: the job and its fingerprint.
    pub question: (Option<JobId>, Option<String>),
    /// The worker's session.
    pub worker_session: SessionId,
    /// How packet and answer travel, and the family where that alone does not say.
    pub by: (Transport, Option<Family>),
    /// The name that its worker gave.
    pub worker: Option<Name>,
    /// The nonce and the packet, of which only hashes are kept.
    pub secret: (Hash, Hash),
    /// What the worker is given.
    pub context_manifest: Vec<ManifestEntry>,
    /// Its lease, and when it was claimed.
    pub lease: (Lease, Time),
}

impl Attempt {
    /// An attempt that nothing has happened to yet.
    pub fn new(begun: Begun) -> Self {
        Self {
            id: begun.id,
            handoff: begun.handoff.0,
            job: begun.question.0,
            fingerprint: begun.question.1,
            number: begun.handoff.1,
            worker_session: begun.worker_session,
            transport: begun.by.0,
            family: begun.by.1,
            worker: begun.worker,
            nonce_hash: begun.secret.0,
            packet_hash: begun.secret.1,
            context_manifest: begun.context_manifest,
            lease: begun.lease.0,
            lapsed: false,
            claimed_at: begun.lease.1,
            state: AttemptState::Active,
            invalid: 0,
            brought: None,
            result: None,
            ended_at: None,
            reason: None,
        }
    }

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
