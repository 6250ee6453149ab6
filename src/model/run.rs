//! Runs: one invocation inside a session, with what it was given and what it waits for
//! (session-runtime contract, 05).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::id::{HandoffId, Name, ResultId, RunId, SessionId};
use super::time::Time;
use crate::words;

words! {
    /// The state of a run.
    RunStatus {
        /// Going on.
        Running = "running",
        /// Its session waits.
        Waiting = "waiting",
        /// Ended well.
        Completed = "completed",
        /// Ended in failure.
        Failed = "failed",
        /// Cut off, or left behind.
        Interrupted = "interrupted",
        /// Ended for good.
        Terminated = "terminated",
    }
}

impl RunStatus {
    /// Whether the run is its session's current one.
    pub fn is_current(self) -> bool {
        matches!(self, RunStatus::Running | RunStatus::Waiting)
    }
}

words! {
    /// The state of a gate of a run. A gate is where an answer steers the work.
    GateStatus {
        /// An answer is expected.
        Pending = "pending",
        /// No route is eligible.
        SemanticPending = "semantic_pending",
        /// A passing verdict was consumed.
        Passed = "passed",
        /// A failing verdict was consumed.
        Rejected = "rejected",
        /// A valid answer without polarity was consumed.
        Answered = "answered",
    }
}

/// A gate of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gate {
    /// Its state.
    pub status: GateStatus,
    /// The handoff whose answer it waits for or got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The result that was consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultId>,
    /// The verdict, as the answer spelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The repair route of a failing verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Name>,
}

/// One thing that an invocation was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ManifestEntry {
    /// The name it has in the work.
    pub name: Name,
    /// Its path from the project root, where it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
}

/// What a run waits for and what its gates say; goes on from run to run of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outlook {
    /// Handoffs that are outstanding.
    #[serde(default)]
    pub handoffs: BTreeSet<HandoffId>,
    /// Gates by name.
    #[serde(default)]
    pub gates: BTreeMap<Name, Gate>,
}

/// One invocation inside a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The session that owns it.
    pub session: SessionId,
    /// The task mode it executes.
    pub task_mode: Name,
    /// The resource it targets.
    pub resource: Name,
    /// The workflow step it is at.
    pub cursor: Name,
    /// What it was given; what is not here was not given.
    pub context_manifest: Vec<ManifestEntry>,
    /// What it waits for.
    pub pending: Outlook,
    /// Its state.
    pub status: RunStatus,
    /// How it ended, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Name>,
    /// The run that it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}
