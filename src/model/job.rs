//! Jobs: a frozen question and the terms of its execution. Its bytes never change; a changed input is
//! another job (semantic-execution contract, 01).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::Hash;
use super::id::{JobId, Name, RunId, SessionId};
use super::time::Time;
use crate::words;

words! {
    /// How far a result may reach, narrowest first. Nothing here grants authority.
    ResultScope {
        /// Describes the subject.
        Diagnostic = "diagnostic",
        /// Proposes a change.
        Proposal = "proposal",
        /// Records what was seen.
        Observation = "observation",
        /// Judges against a rubric.
        Evaluation = "evaluation",
    }
}

words! {
    /// How well a separate reviewer is proved, weakest first.
    Grade {
        /// Not at all.
        None = "none",
        /// Stated and bound by nonce, not proved.
        Declared = "declared",
        /// `nf` ran the separate process itself and recorded how.
        Attested = "attested",
    }
}

words! {
    /// The families of execution (semantic-execution contract, 02).
    Family {
        /// A separate chat.
        PeerChat = "peer_chat",
        /// A person.
        Human = "human",
        /// A local agent program.
        LocalAgent = "local_agent",
        /// A provider's API.
        ProviderApi = "provider_api",
        /// A local model endpoint.
        LocalModel = "local_model",
        /// An MCP worker.
        McpWorker = "mcp_worker",
        /// A service or CI job.
        ServiceJob = "service_job",
    }
}

words! {
    /// What an execution may cost.
    Cost {
        /// Nothing.
        Free = "free",
        /// Covered by a plan.
        Plan = "plan",
        /// Paid by use.
        Metered = "metered",
        /// A person's time.
        Human = "human",
    }
}

words! {
    /// Where the execution may happen.
    Locality {
        /// Anywhere.
        Any = "any",
        /// On this machine.
        Local = "local",
    }
}

/// What a job demands of its execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Execution {
    /// Whether a separate reviewer is required.
    pub independent: bool,
    /// How well that must be proved.
    pub min_grade: Grade,
    /// The families allowed.
    pub families: Vec<Family>,
    /// The models allowed; empty allows all.
    pub models: Vec<String>,
    /// Whether a person may have to act.
    pub interactive: bool,
    /// The costs allowed.
    pub cost: Vec<Cost>,
    /// Where it may happen.
    pub locality: Locality,
}

/// Where the verdict stands in the output and what each value means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerdictRule {
    /// JSON pointer into the output.
    pub pointer: String,
    /// Passing values.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Failing values.
    #[serde(default)]
    pub fail: Vec<String>,
    /// Values without polarity.
    #[serde(default)]
    pub neutral: Vec<String>,
    /// The repair route of each failing value.
    #[serde(default)]
    pub repair: BTreeMap<String, Name>,
}

words! {
    /// What a verdict means.
    Polarity {
        /// Go on.
        Pass = "pass",
        /// Repair.
        Fail = "fail",
        /// Neither.
        Neutral = "neutral",
        /// The job asks for no verdict.
        None = "none",
    }
}

/// Where a frozen artifact came from; beside the job, outside its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// The artifact's name.
    pub name: Name,
    /// Its path from the project root.
    pub path: String,
    /// The lines frozen, 1-based and inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
    /// BLAKE3 of the slice.
    pub hash: Hash,
    /// Length of the slice in bytes.
    pub bytes: u64,
}

/// A frozen question as the log knows it; the whole of it is a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Job {
    /// The start of its digest.
    pub id: JobId,
    /// `nf1:` and the hash of the question.
    pub fingerprint: String,
    /// `nfj1:` and the hash of question, permissions and terms.
    pub job_digest: String,
    /// The contract it came from, `id@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The kind of question.
    pub kind: Name,
    /// What it is about.
    pub subject: Name,
    /// How far a result may reach.
    pub result_scope: ResultScope,
    /// Its demands on execution.
    pub execution: Execution,
    /// The blob that holds the frozen job.
    pub blob: Hash,
    /// Bytes of its whole input.
    pub bytes: u64,
    /// Where its artifacts stand now.
    pub places: Vec<Place>,
    /// The sessions that froze it.
    pub frozen_by: Vec<SessionId>,
    /// The run in which it was first frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it was first frozen.
    pub frozen_at: Time,
}

/// What a verdict of an answer is, by the job's rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The value, where the job asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What it means.
    pub polarity: Polarity,
    /// The repair route of a failing value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Name>,
}

impl VerdictRule {
    /// The verdict that stands in an output, if it is one that the rule knows.
    pub fn read(&self, output: &Value) -> Option<Verdict> {
        let value = self.spelled(output)?;
        let polarity =
            [(&self.pass, Polarity::Pass), (&self.fail, Polarity::Fail), (&self.neutral, Polarity::Neutral)]
                .into_iter()
                .find(|(values, _)| values.contains(&value))?
                .1;
        let route = self.repair.get(&value).filter(|_| polarity == Polarity::Fail).cloned();
        Some(Verdict { value: Some(value), polarity, route })
    }

    /// The text at the pointer, known or not.
    pub fn spelled(&self, output: &Value) -> Option<String> {
        output.pointer(&self.pointer).and_then(Value::as_str).map(str::to_owned)
    }
}
