//! Results, receipts and the history of a question. Stored, valid and consumed are three facts
//! (control-plane contract, 06 to 07).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::check::Check;
use super::handoff::Transport;
use super::hash::Hash;
use super::id::{AttemptId, EventId, HandoffId, Id, JobId, Name, ReceiptId, ResultId, SessionId};
use super::job::{Execution, Family, Grade, ResultScope, Verdict};
use super::time::Time;
use super::witness::Witness;
use crate::words;

/// Who answered, when and how; never credentials, never private reasoning
/// (semantic-execution contract, 05).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Provenance {
    /// The session that asked.
    pub source_session: SessionId,
    /// The session that answered.
    pub worker_session: SessionId,
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// How packet and answer travelled.
    pub transport: Transport,
    /// The family of execution.
    pub family: Family,
    /// The provider, as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that was asked for; a relay asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_requested: Option<String>,
    /// The model that served: as seen where `nf` itself asked, else as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_served: Option<String>,
    /// The model that the answer names, where another one, or none, was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_stated: Option<String>,
    /// The person's or worker's name, as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The scope that the answer gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ResultScope>,
    /// What intake changed, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub normalisation: Vec<String>,
    /// What `nf` saw of the invocation, where it made one itself; of an imported answer as its file states
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Box<Witness>>,
    /// The result file that brought it, where it was answered far away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<Imported>,
}

/// Where an answer that was given far away came in from, as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Imported {
    /// BLAKE3 of the result file.
    pub file: Hash,
    /// The hash of the export file that was answered.
    pub export: Hash,
    /// Length and hash of what was pasted far away; the text itself is not kept.
    pub pasted: super::event::Prose,
    /// The version of the program that took it there.
    pub nf: String,
}

words! {
    /// What a checked result is good for.
    Standing {
        /// It may be consumed.
        Valid = "valid",
        /// It follows a different readable verdict; consumed only openly.
        Contested = "contested",
        /// A second valid answer; never consumed.
        Surplus = "surplus",
    }
}

/// One stored answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoredResult {
    /// Its id.
    pub id: ResultId,
    /// The question, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The question's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The blob with the canonical JSON of `{job, fingerprint, status, output}`, or of `{handoff, status,
    /// output}` where there was no question; also its hash.
    pub blob: Hash,
    /// Who answered, when and how.
    pub provenance: Provenance,
    /// When it was stored.
    pub stored_at: Time,
    /// What the checks said, once they ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// Who consumed it, with the receipt of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed: BTreeMap<Name, ReceiptId>,
}

/// What the checks said of a stored answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// What it is good for.
    pub standing: Standing,
    /// Its verdict.
    pub verdict: Verdict,
    /// How well a separate reviewer is proved.
    pub grade: Grade,
    /// All thirteen checks.
    pub checks: Vec<Check>,
}

words! {
    /// What became of one reply that carried a known nonce.
    ReplyClass {
        /// It became a result.
        Valid = "valid",
        /// It differs from the answer that is there.
        Conflict = "conflict",
        /// It came from an attempt that is not the current one.
        Late = "late",
        /// It failed intake or binding.
        SemanticInvalid = "semantic_invalid",
        /// The reviewer could not judge.
        ExecutionFailed = "execution_failed",
    }
}

/// An answer that counts for a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// The result.
    pub result: ResultId,
    /// The job whose terms it met, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Its verdict, as spelled.
    pub verdict: Option<String>,
    /// How well a separate reviewer is proved.
    pub grade: Grade,
    /// The family that answered.
    pub family: Family,
    /// The model that served.
    pub model: Option<String>,
    /// What it is good for.
    pub standing: Standing,
}

impl StoredResult {
    /// What it is counted under: see [`super::handoff::Handoff::question`].
    pub fn question(&self) -> &str {
        self.fingerprint.as_deref().unwrap_or_else(|| self.provenance.handoff.as_str())
    }
}

impl Answer {
    /// Whether it meets the terms of a job, so that it counts against asking again.
    pub fn meets(&self, execution: &Execution) -> bool {
        let model = || self.model.clone().unwrap_or_default();
        self.standing != Standing::Surplus
            && self.grade >= execution.min_grade
            && execution.families.contains(&self.family)
            && (execution.models.is_empty() || execution.models.contains(&model()))
    }
}

/// What has happened to one question over all its handoffs; stands in every receipt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct History {
    /// Attempts opened.
    pub opened: u32,
    /// Attempts taken back.
    pub cancelled: u32,
    /// Attempts given back.
    pub released: u32,
    /// Attempts overtaken after their lease ran out.
    pub expired: u32,
    /// Replies that failed intake or binding.
    pub invalid: u32,
    /// Reviewers that could not judge.
    pub cannot_judge: u32,
    /// Replies from attempts that were no longer current.
    pub late: u32,
    /// Replies that differed from the answer that was there.
    pub conflicts: u32,
    /// The verdicts that were readable in any reply, each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<String>,
    /// Answers, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The attempts that are still active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<AttemptId>,
}

impl History {
    /// The answer that closes the question on these terms; work without a job has none, and any answer closes
    /// it.
    pub fn closing(&self, execution: Option<&Execution>) -> Option<&Answer> {
        let counts = |answer: &&Answer| match execution {
            Some(execution) => answer.meets(execution),
            None => answer.standing != Standing::Surplus,
        };
        self.answers.iter().find(counts)
    }
}

words! {
    /// What a judgement shares with the question that lists it.
    Shared {
        /// The bytes of an artifact: the same text was judged under another question.
        Artifact = "artifact",
        /// Only the subject: an earlier text was judged.
        Subject = "subject",
    }
}

/// A judgement given earlier, under another question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The question's fingerprint.
    pub fingerprint: String,
    /// The job.
    pub job: JobId,
    /// The result.
    pub result: ResultId,
    /// Its verdict, as spelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What it shares with the question at hand.
    pub shares: Shared,
}

/// What a consumer applies: a result or an event, told apart by the letter of its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Source {
    /// A stored answer.
    Result(ResultId),
    /// An event from outside.
    Event(EventId),
}

impl Source {
    /// The text of its id.
    pub fn as_str(&self) -> &str {
        match self {
            Source::Result(id) => id.as_str(),
            Source::Event(id) => id.as_str(),
        }
    }
}

impl From<ResultId> for Source {
    fn from(id: ResultId) -> Self {
        Source::Result(id)
    }
}

impl From<EventId> for Source {
    fn from(id: EventId) -> Self {
        Source::Event(id)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Source::Result).or_else(|_| text.parse().map(Source::Event))
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The record that a named consumer applied a source, once. What only an answer has (its question, attempt
/// and history) is absent where an event was applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Receipt {
    /// Its id.
    pub id: ReceiptId,
    /// What was applied.
    pub source: Source,
    /// Who applied it.
    pub consumer: Name,
    /// BLAKE3 of the result's blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<Hash>,
    /// The hash of the event's meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<Hash>,
    /// The question's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The verdict and where it leads; an event has none.
    pub outcome: Verdict,
    /// The attempt that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// The checks, run again at this moment.
    pub checks: Vec<Check>,
    /// What had happened to the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Judgements of the same artifacts, or of the same subject, under other fingerprints.
    pub earlier: Vec<Judgement>,
    /// The reason given for consuming a contested result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contested: Option<super::event::Text>,
    /// The log position: the record's sequence number.
    pub seq: u64,
    /// When it was recorded.
    pub at: Time,
}
