//! The kinds of worker that the user's settings may name. Plain words; what each is run or called with is the
//! adapters' affair.

use crate::words;

words! {
    /// What a worker is.
    WorkerKind {
        /// Claude Code.
        Claude = "claude",
        /// Codex.
        Codex = "codex",
        /// Any program that reads a packet and prints an answer.
        Command = "command",
        /// An endpoint of the openai dialect.
        Openai = "openai",
        /// An endpoint of the anthropic dialect.
        Anthropic = "anthropic",
    }
}
