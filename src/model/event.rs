//! The events: what can have happened, each in the past tense. An event is a fact; its fold
//! ([`super::state`]) never refuses one.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::capability::Capability;
use super::check::Check;
use super::checkpoint::Checkpoint;
use super::effect::{Effect, Witness};
use super::external::ExternalEvent;
use super::handoff::{Attempt, Handoff, Lease};
use super::hash::Hash;
use super::id::{AttemptId, EffectId, EventId, HandoffId, JobId, Name, ResultId, RunId, SessionId};
use super::job::{Job, Place, Verdict};
use super::result::{Checked, Receipt, ReplyClass, StoredResult};
use super::run::{GateStatus, Run, RunStatus};
use super::session::{Session, Status};
use super::tagged::{self, Variants};
use super::time::Time;
use crate::words;

/// Bytes up to which a user's text stands in the log itself.
pub const INLINE_TEXT: usize = 256;

/// A user's text: in place up to [`INLINE_TEXT`] bytes, else in a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// In place.
    Inline(String),
    /// In a blob.
    Blob(Hash),
}

words! {
    /// How an attempt came to its end without a valid result.
    AttemptEnd {
        /// The execution failed, or too many replies were invalid.
        Failed = "failed",
        /// Given back.
        Released = "released",
        /// Overtaken.
        Superseded = "superseded",
        /// Taken back.
        Revoked = "revoked",
    }
}

words! {
    /// What was refused because it contradicted the record.
    ConflictKind {
        /// Another answer from the attempt of a result.
        Result = "result",
        /// An answer from an attempt that is not the current one.
        Late = "late",
        /// Another result for a consumer that has one.
        Receipt = "receipt",
        /// Another meaning under the key of an event.
        Event = "event",
        /// Another plan under the key of an effect.
        Effect = "effect",
    }
}

/// One reply that carried a known nonce: its hash and length, never its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reply {
    /// The attempt whose nonce it carried.
    pub attempt: AttemptId,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
    /// Its length in bytes.
    pub bytes: u64,
    /// What became of it.
    pub class: ReplyClass,
    /// Why, in a word: an intake reason, or the failed checks joined by a comma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The verdict, if it was readable at its pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Further readable verdicts, where the reply gave different answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The reason that the reviewer gave for not judging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Text>,
    /// What intake changed, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Length and hash of the text around the value; the text itself is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prose: Option<Prose>,
}

/// Length and hash of a text that is not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prose {
    /// Its length in bytes.
    pub bytes: u64,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
}

/// Makes the enum twice from one list: as it is written, with its type as a member, and as it is read,
/// where the type is known before the members, so that nothing needs to be kept until it is.
macro_rules! events {
    ($($variants:tt)*) => {
        /// Everything that can have happened.
        #[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
        #[serde(tag = "type")]
        #[allow(missing_docs, reason = "the fields are the entities' own, described there")]
        pub enum Event { $($variants)* }

        mod read {
            use super::*;

            #[derive(Deserialize)]
            #[serde(remote = "super::Event")]
            #[allow(dead_code, reason = "what is read is the other enum")]
            pub(super) enum Event { $($variants)* }
        }
    };
}

events! {
    /// A log segment was begun; the first record of each.
    #[serde(rename = "segment.opened")]
    SegmentOpened { segment: u32, store: String, last: Hash },
    /// A log segment was closed; the last record of each full one. `hash` covers the bytes before it.
    #[serde(rename = "segment.closed")]
    SegmentClosed { segment: u32, bytes: u64, hash: Hash },
    /// A session was made.
    #[serde(rename = "session.created")]
    SessionCreated { session: Session },
    /// A session went from one state to another.
    #[serde(rename = "session.moved")]
    SessionMoved { session: SessionId, from: Status, to: Status, version: u64 },
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted { run: Run },
    /// A run began to wait.
    #[serde(rename = "run.waited")]
    RunWaited { run: RunId },
    /// A run ended.
    #[serde(rename = "run.ended")]
    RunEnded { run: RunId, status: RunStatus, outcome: Name },
    /// A run's cursor moved.
    #[serde(rename = "run.stepped")]
    RunStepped { run: RunId, cursor: Name },
    /// A gate of a run changed.
    #[serde(rename = "gate.moved")]
    GateMoved {
        run: RunId,
        gate: Name,
        to: GateStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<HandoffId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ResultId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// A checkpoint was saved.
    #[serde(rename = "checkpoint.saved")]
    CheckpointSaved { checkpoint: Checkpoint },
    /// A question was frozen.
    #[serde(rename = "job.frozen")]
    JobFrozen { job: Job },
    /// The same question was frozen again, by another session or with its artifacts elsewhere.
    #[serde(rename = "job.frozen_again")]
    JobFrozenAgain {
        job: JobId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        places: Vec<Place>,
    },
    /// A handoff was opened.
    #[serde(rename = "handoff.opened")]
    HandoffOpened { handoff: Handoff },
    /// An attempt claimed a handoff.
    #[serde(rename = "handoff.claimed")]
    HandoffClaimed { attempt: Attempt },
    /// A handoff waits for a claim again: at once, or from a moment on.
    #[serde(rename = "handoff.queued")]
    HandoffQueued {
        handoff: HandoffId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ready_at: Option<Time>,
    },
    /// A handoff has no attempt left.
    #[serde(rename = "handoff.exhausted")]
    HandoffExhausted { handoff: HandoffId },
    /// A handoff was taken back.
    #[serde(rename = "handoff.cancelled")]
    HandoffCancelled { handoff: HandoffId, reason: Name },
    /// A handoff has its valid result.
    #[serde(rename = "handoff.completed")]
    HandoffCompleted { handoff: HandoffId, attempt: AttemptId, result: ResultId },
    /// A lease was made longer by its owner.
    #[serde(rename = "lease.renewed")]
    LeaseRenewed { attempt: AttemptId, lease: Lease },
    /// A lease was seen to have run out: others may claim the handoff, and until one does its owner goes on.
    #[serde(rename = "lease.expired")]
    LeaseExpired { attempt: AttemptId },
    /// A lease that had run out was taken up again by its owner.
    #[serde(rename = "lease.revived")]
    LeaseRevived { attempt: AttemptId, lease: Lease },
    /// A repeated claim got a new nonce for its attempt; the old one is worth nothing.
    #[serde(rename = "attempt.renonced")]
    AttemptRenonced { attempt: AttemptId, nonce_hash: Hash, packet_hash: Hash },
    /// An attempt ended without a valid result.
    #[serde(rename = "attempt.ended")]
    AttemptEnded { attempt: AttemptId, how: AttemptEnd, reason: Name },
    /// A reply with a known nonce came in.
    #[serde(rename = "reply.received")]
    ReplyReceived { reply: Reply },
    /// An answer was stored.
    #[serde(rename = "result.stored")]
    ResultStored { result: StoredResult },
    /// A stored answer was checked.
    #[serde(rename = "result.checked")]
    ResultChecked { result: ResultId, checked: Checked },
    /// A consumer's own checks held.
    #[serde(rename = "result.validated")]
    ResultValidated { result: ResultId, consumer: Name, failed: Vec<String> },
    /// A typed event came in from outside.
    #[serde(rename = "event.received")]
    ExternalReceived { event: ExternalEvent },
    /// A consumer applied a result or an event, once.
    #[serde(rename = "receipt.recorded")]
    ReceiptRecorded { receipt: Receipt },
    /// Something that contradicts the record was refused; `value` names the blob that keeps it.
    #[serde(rename = "conflict.refused")]
    ConflictRefused {
        kind: ConflictKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ResultId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consumer: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<EventId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<EffectId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Hash>,
    },
    /// Evidence for a capability came in.
    #[serde(rename = "capability.observed")]
    CapabilityObserved { capability: Capability },
    /// A consequential write was planned.
    #[serde(rename = "effect.planned")]
    EffectPlanned { effect: Effect },
    /// A command is about to be run for an effect.
    #[serde(rename = "effect.started")]
    EffectStarted { effect: EffectId, run: RunId },
    /// The path of an effect held the required state.
    #[serde(rename = "effect.done")]
    EffectDone { effect: EffectId, witness: Witness, session: SessionId },
    /// An effect was given up, openly.
    #[serde(rename = "effect.cleared")]
    EffectCleared { effect: EffectId, reason: Text, session: SessionId },
    /// Records that were durable were given up, openly, to mend a damaged log.
    #[serde(rename = "loss.accepted")]
    LossAccepted { segment: u32, offset: u64, bytes: u64, quarantined: Hash },
    /// What a command with an operation key answered; the same key gets the same answer.
    #[serde(rename = "op.answered")]
    OpAnswered { answer: Value },
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

impl Variants for Event {
    fn read<'de, D: Deserializer<'de>>(variant: D) -> Result<Self, D::Error> {
        read::Event::deserialize(variant)
    }
}

impl Event {
    /// The word that stands as `type` in the log.
    pub fn word(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            _ => String::new(),
        }
    }

    /// The attempt that ended by this event, whose packet is to be dropped.
    pub fn ended_attempt(&self) -> Option<&AttemptId> {
        match self {
            Event::AttemptEnded { attempt, .. } | Event::HandoffCompleted { attempt, .. } => Some(attempt),
            _ => None,
        }
    }

    /// The failed checks of a list, for `result.validated`.
    pub fn validated(result: ResultId, consumer: Name, checks: &[Check]) -> Self {
        Event::ResultValidated { result, consumer, failed: super::check::failed(checks) }
    }
}

/// One record of the log: a command's whole batch, the unit of atomicity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// The record format: 1.
    pub v: u32,
    /// Its number in the one order, from 1, without gaps.
    pub seq: u64,
    /// Wall time, never earlier than the record before; for people.
    pub at: Time,
    /// The operation key, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Name>,
    /// Hash of command and canonical request; stands with `op`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub req: Option<Hash>,
    /// The command that wrote it.
    pub cmd: String,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// The hash of the record before; of record 1, the hash of `store.json`.
    pub prev: Hash,
    /// The hash of this record's bytes before this member.
    pub hash: Hash,
}
