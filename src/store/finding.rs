//! What doctor and verify say: findings as data. Looks at nothing itself.

use serde::Serialize;

use crate::words;

words! {
    /// How much a finding matters.
    Severity {
        /// Something recorded is lost or cannot be trusted, or nothing can be written.
        Error = "error",
        /// Something is not as it should be, and is safe.
        Warning = "warning",
        /// Worth knowing.
        Note = "note",
    }
}

/// One thing that is not as it should be, or what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// A stable word for programs.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, naming the thing.
    pub what: String,
    /// The exact next command or act.
    pub fix: String,
}

impl Finding {
    pub(super) fn new(
        code: &str,
        severity: Severity,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { code: code.to_owned(), severity, what: what.into(), fix: fix.into() }
    }
}
