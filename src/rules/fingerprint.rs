//! The identity of a question and of a job: BLAKE3 over RFC 8785 bytes.
//!
//! Owns which members are hashed and the forms of the names made from them. Must never normalise a
//! string: prose is the subject. A change here would change the identity of every stored job.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::hash::{Hash, canonical};

#[cfg(test)]
mod tests;

/// The version of the fingerprint's form; its member `v`.
const VERSION: u8 = 1;

/// An artifact as a frozen job holds it: by name and content, never by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrozenArtifact {
    /// The name the question uses.
    pub name: String,
    /// BLAKE3 of the bytes, or of the slice of lines that was asked for.
    pub hash: Hash,
    /// How many bytes these are.
    pub bytes: u64,
}

/// A question as it is hashed: everything that decides what is asked, and nothing that decides how it is
/// sent. Clause: semantic jobs, fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Further artifacts, in the order of the job file.
    pub context: Vec<FrozenArtifact>,
    /// The contract as `id@version`; none for a question written inline.
    pub contract: Option<String>,
    /// JSON pointers into the output that must be present and not empty.
    pub evidence: Vec<String>,
    /// The input; its `artifacts`, if it has any, are frozen artifacts already.
    pub input: Value,
    /// The kind of question.
    pub kind: String,
    /// The JSON Schema of the answer.
    pub output: Value,
    /// The rubric, an array.
    pub rubric: Value,
    /// What is judged.
    pub subject: String,
    /// Where the verdict stands and what its values mean; none where nothing is passed or failed.
    pub verdict: Option<Value>,
}

/// The members of the hashed object, no more and no fewer.
#[derive(Serialize)]
struct Form<'question> {
    #[serde(flatten)]
    question: &'question Question,
    v: u8,
}

/// The members of the object whose digest names a job.
#[derive(Serialize)]
struct JobForm<'job> {
    allow_evidence: &'job [String],
    execution: &'job Value,
    fingerprint: &'job str,
    forbidden_keys: &'job [String],
    permissions: &'job Value,
}

/// The bytes that [`fingerprint`] hashes: RFC 8785 of the question's members and `v`, absent ones null.
pub fn canonical_question(question: &Question) -> Vec<u8> {
    canonical(&Form { question, v: VERSION })
}

/// The fingerprint of a question: `nf1:` and 64 hex digits. Equal exactly for equal questions.
pub fn fingerprint(question: &Question) -> String {
    format!("nf1:{}", Hash::of(&canonical_question(question)))
}

/// The digest that names a job: the question and all that governs its answering. Lists count in the order
/// given.
pub fn job_digest(
    fingerprint: &str,
    permissions: &Value,
    execution: &Value,
    forbidden_keys: &[String],
    allow_evidence: &[String],
) -> Hash {
    Hash::of(&canonical(&JobForm { allow_evidence, execution, fingerprint, forbidden_keys, permissions }))
}

/// A job digest as text: `nfj1:` and 64 hex digits.
pub fn job_digest_text(digest: &Hash) -> String {
    format!("nfj1:{digest}")
}
