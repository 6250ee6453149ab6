//! Effects: consequential writes outside the store, each with the state before, the state required after and
//! how far it came (session-runtime contract, 08). `nf` never performs the write; it witnesses it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::event::Text;
use super::hash::Hash;
use super::id::{EffectId, Name, ReceiptId, RunId, SessionId};
use super::time::Time;
use crate::words;

words! {
    /// The word for a path at which nothing stands.
    Nothing {
        /// Nothing stands there.
        Absent = "absent",
    }
}

/// What stands at a path: the hash of a file's bytes, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum FileState {
    /// A file with these bytes.
    File(Hash),
    /// Nothing.
    Nothing(Nothing),
}

impl FileState {
    /// Nothing stands there.
    pub const ABSENT: Self = FileState::Nothing(Nothing::Absent);
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileState::File(hash) => hash.fmt(f),
            FileState::Nothing(nothing) => nothing.fmt(f),
        }
    }
}

words! {
    /// How far an effect came, as the log tells it. What the path tells is compared with it.
    EffectState {
        /// Recorded; nothing was started for it.
        Planned = "planned",
        /// A command was about to be run for it.
        Started = "started",
        /// The path held the required state.
        Done = "done",
        /// Given up openly; its key is free again.
        Cleared = "cleared",
    }
}

words! {
    /// Who saw that the path held the required state.
    Witness {
        /// `effect run`, after its command.
        Run = "run",
        /// `effect done`, by hand.
        Hand = "hand",
    }
}

/// One consequential write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Effect {
    /// Its id.
    pub id: EffectId,
    /// What it is called: one name, one plan.
    pub key: Name,
    /// The file that is written, from the project root, with every link resolved.
    pub path: String,
    /// What stood there when it was planned.
    pub before: FileState,
    /// BLAKE3 of the bytes that stand there after.
    pub required: Hash,
    /// The receipts that it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<ReceiptId>,
    /// The session that planned it.
    pub session: SessionId,
    /// Its run then.
    pub run: RunId,
    /// The resource of that session.
    pub resource: Name,
    /// How far it came.
    pub state: EffectState,
    /// The effect of the same key that was cleared before this one was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<EffectId>,
    /// The effect on the same path whose state it found when it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<EffectId>,
    /// The next effect on the same path: its plan found there what this one left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_by: Option<EffectId>,
    /// When it was planned.
    pub planned_at: Time,
    /// When a command was about to be run for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it was done or cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// Who saw it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// Why it was cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

impl Effect {
    /// Whether it is still to be proved: neither done nor cleared.
    pub fn is_open(&self) -> bool {
        matches!(self.state, EffectState::Planned | EffectState::Started)
    }

    /// Whether its path says something of it: it was not cleared, and no later effect went on from it.
    pub fn stands(&self) -> bool {
        self.state != EffectState::Cleared && self.followed_by.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_a_file_is_one_word() {
        for state in [FileState::File(Hash::of(b"x")), FileState::ABSENT] {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(text, format!("\"{state}\""));
            assert_eq!(serde_json::from_str::<FileState>(&text).unwrap(), state);
        }
        assert!(serde_json::from_str::<FileState>("\"gone\"").is_err());
        assert!(serde_json::from_str::<FileState>("null").is_err());
    }
}
