//! Sessions: resumable execution containers with a role, a lifecycle and a memory policy. A role is a
//! responsibility, never authority (session-runtime contract, 02 to 04).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::id::{AttemptId, CheckpointId, Name, RunId, SessionId};
use super::time::Time;

/// Declares an enum of words: serde, `FromStr`, `Display`, `ALL` and `word` from one list.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        pub enum $name { $($(#[$item])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];
            /// The word, as in JSON and on the command line.
            pub const fn word(self) -> &'static str { match self { $($name::$variant => $word,)+ } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.word()) }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> std::result::Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|value| value.word()).collect();
                    format!("{text:?} is not one of {}", known.join(", "))
                })
            }
        }
    };
}

/// A responsibility inside the work: who does what, never who may decide what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Owns one task mode and the user's interaction.
    Manager,
    /// A bounded drafting worker.
    Writer,
    /// Simulation, research, analysis or implementation.
    Specialist,
    /// A separate semantic invocation.
    SemanticReviewer,
    /// A person or a peer relay.
    HumanReviewer,
    /// An explicit extension, written `other:<name>`.
    Other(Name),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Manager => f.write_str("manager"),
            Role::Writer => f.write_str("writer"),
            Role::Specialist => f.write_str("specialist"),
            Role::SemanticReviewer => f.write_str("semantic_reviewer"),
            Role::HumanReviewer => f.write_str("human_reviewer"),
            Role::Other(name) => write!(f, "other:{name}"),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "manager" => Role::Manager,
            "writer" => Role::Writer,
            "specialist" => Role::Specialist,
            "semantic_reviewer" => Role::SemanticReviewer,
            "human_reviewer" => Role::HumanReviewer,
            _ => match text.strip_prefix("other:") {
                Some(name) => Role::Other(name.parse()?),
                None => {
                    return Err(format!(
                        "{text:?} is not one of manager, writer, specialist, semantic_reviewer, \
                         human_reviewer, other:<name>"
                    ));
                }
            },
        })
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Role {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern":
            "^(manager|writer|specialist|semantic_reviewer|human_reviewer|other:.+)$"})
    }
}

words! {
    /// What a runtime may keep; never what the next prompt gets (session-runtime contract, 03).
    MemoryPolicy {
        /// Nothing is kept.
        None = "none",
        /// Only the bounded packet.
        Bounded = "bounded",
        /// The session's own history.
        Session = "session",
        /// Kept outside.
        External = "external",
        /// Only checkpoints.
        CheckpointOnly = "checkpoint_only",
    }
}

words! {
    /// Whether a session may be resumed at all.
    ResumePolicy {
        /// By a fresh validation.
        Revalidate = "revalidate",
        /// Never; a new session begins instead.
        Forbidden = "forbidden",
    }
}

words! {
    /// Where the session runs.
    Host {
        /// A chat window.
        Chat = "chat",
        /// A local agent program.
        LocalAgent = "local_agent",
        /// A provider's API.
        ProviderApi = "provider_api",
        /// A local model endpoint.
        LocalModel = "local_model",
        /// An MCP client.
        Mcp = "mcp",
        /// A service.
        Service = "service",
        /// A CI job.
        Ci = "ci",
        /// A shell.
        Shell = "shell",
        /// A person.
        Human = "human",
    }
}

words! {
    /// The lifecycle state (session-runtime contract, 04).
    Status {
        /// Made, not yet running.
        Created = "created",
        /// A run is going on.
        Running = "running",
        /// The last run is finished.
        Idle = "idle",
        /// A person must bring something.
        AwaitingUser = "awaiting_user",
        /// A worker must bring something.
        AwaitingExternal = "awaiting_external",
        /// The work is done.
        Completed = "completed",
        /// The last run failed.
        Failed = "failed",
        /// Ended for good.
        Terminated = "terminated",
        /// Its bindings were left behind.
        Stale = "stale",
    }
}

impl Status {
    /// Whether nothing more is expected of the session.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Completed | Status::Terminated | Status::Stale)
    }
}

/// A resumable execution container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The durable resource that is worked on.
    pub resource: Name,
    /// The project, where one is named apart from the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// Its responsibility.
    pub role: Role,
    /// Its one task mode.
    pub task_mode: Name,
    /// What may be kept.
    pub memory_policy: MemoryPolicy,
    /// Whether it may be resumed.
    pub resume_policy: ResumePolicy,
    /// The session it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The provider's own id, at most 1 KiB: data, never authority, never a precondition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// Where it runs.
    pub host: Host,
    /// The attempt that it was made for, where it is a worker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_of: Option<AttemptId>,
    /// Its lifecycle state.
    pub status: Status,
    /// Counts every change of state, from 1.
    pub version: u64,
    /// When it was made.
    pub created_at: Time,
    /// When its state last changed.
    pub updated_at: Time,
    /// Its newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Its newest checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_words_and_extensions_are_explicit() {
        for word in ["manager", "writer", "specialist", "semantic_reviewer", "human_reviewer", "other:editor"]
        {
            assert_eq!(word.parse::<Role>().map(|role| role.to_string()), Ok(word.to_owned()));
        }
        assert!("editor".parse::<Role>().is_err());
        assert!("other:".parse::<Role>().is_err());
    }

    #[test]
    fn words_name_the_known_ones_when_refused() {
        let refused = "later".parse::<Status>().unwrap_err();
        assert!(refused.contains("awaiting_user"), "{refused}");
        assert_eq!(Status::ALL.len(), 9);
    }
}
