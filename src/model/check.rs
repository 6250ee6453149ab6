//! A check: one named comparison of want and got. Checks never stop at the first failure.

use serde::{Deserialize, Serialize};

/// One named comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// The name of the check.
    pub check: String,
    /// Whether it held.
    pub ok: bool,
    /// What was wanted.
    pub want: String,
    /// What was found.
    pub got: String,
}

impl Check {
    /// A check with its verdict.
    pub fn new(check: &str, ok: bool, want: impl Into<String>, got: impl Into<String>) -> Self {
        Self { check: check.to_owned(), ok, want: want.into(), got: got.into() }
    }

    /// Equality of two texts.
    pub fn equal(check: &str, want: impl Into<String>, got: impl Into<String>) -> Self {
        let (want, got) = (want.into(), got.into());
        Self { check: check.to_owned(), ok: want == got, want, got }
    }

    /// A check that does not apply here.
    pub fn not_asked(check: &str) -> Self {
        Self::new(check, true, "not asked", "not asked")
    }
}

/// The names of the checks that failed, in order.
pub fn failed(checks: &[Check]) -> Vec<String> {
    checks.iter().filter(|check| !check.ok).map(|check| check.check.clone()).collect()
}
