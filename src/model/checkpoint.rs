//! Checkpoints: a validated cursor with the hashes that must still hold to go on from it
//! (session-runtime contract, 06). Never a copy of the chat.

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::id::{CheckpointId, EffectId, HandoffId, Name, RunId, SessionId};
use super::session::ResumePolicy;
use super::time::Time;
use crate::words;

words! {
    /// Where in the work a checkpoint stands.
    Boundary {
        /// The context is frozen.
        ContextFreeze = "context_freeze",
        /// A candidate is frozen for review.
        CandidateFrozen = "candidate_frozen",
        /// A person must bring something.
        UserWait = "user_wait",
        /// A worker must bring something.
        ExternalWait = "external_wait",
        /// Before a consequential write.
        BeforeWrite = "before_write",
        /// A valid result is bound.
        ResultBound = "result_bound",
        /// Before Canon settlement.
        BeforeSettlement = "before_settlement",
        /// Before long work.
        BeforeLongWork = "before_long_work",
        /// Anything else.
        Other = "other",
    }
}

words! {
    /// How tightly an artifact is bound.
    BindingKind {
        /// Any change blocks resume.
        Exact = "exact",
        /// A change is listed for re-reading.
        Context = "context",
    }
}

/// A file, or lines of it, whose bytes the work rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BoundArtifact {
    /// Its name.
    pub name: Name,
    /// Its path from the project root.
    pub path: String,
    /// The lines that count, 1-based and inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
    /// BLAKE3 of the slice.
    pub hash: Hash,
    /// How tightly it is bound.
    pub binding: BindingKind,
}

/// Where a bound artifact stands: its name, path and lines.
pub type ArtifactPlace = (Name, String, Option<(u64, u64)>);

impl BoundArtifact {
    /// Where it stands: two texts may have one name, and each is bound.
    pub fn place(&self) -> ArtifactPlace {
        (self.name.clone(), self.path.clone(), self.lines)
    }
}

/// A file that carries authority over the work (Canon, a lock, a bundle).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BoundAuthority {
    /// Its name.
    pub name: Name,
    /// Its path from the project root.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
}

/// A recorded version of Framework or Project: a file, or one value in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BoundCompatibility {
    /// Its name.
    pub name: Name,
    /// The path of the file from the project root.
    pub path: String,
    /// A JSON pointer into the file read as YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// BLAKE3 of the bytes, or of the canonical value at the pointer.
    pub hash: Hash,
}

/// An approval that somebody gave, as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BoundApproval {
    /// What the approval is called.
    #[serde(rename = "ref")]
    pub reference: Name,
    /// The path of the file from the project root.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
    /// When it stops counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// Everything that must still hold to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bindings {
    /// Artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<BoundArtifact>,
    /// Authority files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<BoundAuthority>,
    /// Recorded versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatibility: Vec<BoundCompatibility>,
    /// Approvals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<BoundApproval>,
    /// Capabilities that outstanding external work needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Name>,
    /// Consequential writes that were planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectId>,
}

/// What a checkpoint waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckpointPending {
    /// The handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Name>,
}

/// The part of a checkpoint that always stands in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// Its session.
    pub session: SessionId,
    /// The session's version when it was saved.
    pub session_version: u64,
    /// Its run.
    pub run: RunId,
    /// Where in the work it stands.
    pub boundary: Boundary,
    /// The workflow step.
    pub cursor: Name,
    /// What it waits for.
    #[serde(default)]
    pub pending: CheckpointPending,
    /// Whether the session may be resumed from it.
    pub resume_policy: ResumePolicy,
    /// When it was saved.
    pub at: Time,
    /// The bindings, or the blob that holds them when they are over 4 KiB.
    pub bindings: BindingsRef,
}

/// Bindings in place, or in a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BindingsRef {
    /// In place.
    Inline(Bindings),
    /// Canonical JSON in a blob.
    Blob(Hash),
}
