//! The one shape of every adapter: a frozen packet goes in, and one answer or one failure of execution comes
//! out, with what was seen of who gave it. An adapter changes nothing of the packet, never retries, and never
//! reads a verdict (semantic-execution contract, 12); what it brings goes through the same intake as a pasted
//! reply.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::model::witness::Witness;

/// What one invocation is given.
pub struct Ask<'a> {
    /// The packet, whole.
    pub packet: &'a str,
    /// The schema of the answer (the return form as a whole), where it may be sent with the packet.
    pub schema: Option<&'a Value>,
    /// The model that is wanted.
    pub model: Option<&'a str>,
    /// How long and how much.
    pub limits: Limits,
    /// Set from outside when the answer is wanted no longer: end at once, leave nothing behind.
    pub stop: &'a AtomicBool,
}

/// The limits of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From begin to end.
    pub wall: Duration,
    /// Without a byte of output.
    pub idle: Duration,
    /// Bytes of output in all.
    pub bytes: u64,
}

/// What came of one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The bytes of the answer, as they came, for intake to judge; or why execution gave none.
    pub answer: Result<Vec<u8>, Failure>,
    /// What was seen of who answered.
    pub witness: Witness,
}

/// Why execution gave no answer. Never a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether this way is no longer there (its evidence ends, and the route is resolved anew), or only this
    /// invocation failed.
    pub unavailable: bool,
    /// The reason, one word of the failure list such as `timeout`, `quota`, `truncated_input`,
    /// `unauthorized`.
    pub reason: &'static str,
    /// What happened, in words, without secrets and without the text of an answer.
    pub detail: String,
    /// Whether the same way may be tried again.
    pub retryable: bool,
    /// How long the other side asks to wait.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// The way itself is not there: its evidence ends, and the route is resolved anew.
    pub fn gone(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { unavailable: true, ..Self::failed(reason, false, detail) }
    }

    /// Only this invocation failed.
    pub fn failed(reason: &'static str, retryable: bool, detail: impl Into<String>) -> Self {
        Self { unavailable: false, reason, detail: detail.into(), retryable, retry_after: None }
    }
}
