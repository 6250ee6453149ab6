//! What was seen of one invocation of a program or an endpoint: the truth about who answered, as far as it is
//! known (semantic-execution contract, 05 and 12). Never a credential, never what was said to the user.

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::time::Time;

/// What an adapter saw of the invocation that it made. What it did not see is left out and never guessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Witness {
    /// The provider that was called, as the worker's settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_requested: Option<String>,
    /// The model that says it served; none where the program or endpoint does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_served: Option<String>,
    /// Whether the program has a model answer and does not say which: what the answer says of it counts for
    /// nothing then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattested: bool,
    /// The id of the session or conversation on the other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_session: Option<String>,
    /// The version that the program says it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// The id of the request at an endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The process, where one was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Invocation>,
    /// Tokens that were counted as read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Tokens that were counted as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// What was left out or done otherwise than usual, in words, such as a schema that was not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How the one who answered was kept apart from the project, line by line. It is filled only where all of
    /// it together proves another mind (`attested`), and stays empty where anything is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation: Vec<String>,
}

/// One process that was run for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Invocation {
    /// BLAKE3 of the RFC 8785 bytes of the list of program and arguments.
    pub argv_hash: Hash,
    /// The names of the variables that it was given; never their values.
    pub env_names: Vec<String>,
    /// Its process number.
    pub pid: u32,
    /// When it was started.
    pub started_at: Time,
    /// When it had ended, or was ended.
    pub ended_at: Time,
    /// Its exit code; none where a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
}
