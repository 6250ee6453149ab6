//! Tasks: work that is no frozen question, such as research or maintenance. What is to be done and what comes
//! back are fixed when it is queued, for that one handoff; nothing about it is judged (control-plane
//! contract, 04).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::blind::Forbidden;
use super::fingerprint::Question;
use super::freeze::{FrozenJob, MAX_INPUT, taken};
use super::jobfile::ArtifactRef;
use super::sound;
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Permissions;
use crate::model::hash::canonical;
use crate::model::id::Name;
use crate::model::job::{Cost, Execution, Family, Grade, Locality, Place, ResultScope};
use crate::model::{json, yaml};

/// Bytes that instructions may have.
pub const MAX_INSTRUCTIONS: usize = 256 * 1024;

/// The kind that stands in the packet of a task.
pub(super) const KIND: &str = "task";

/// What a task is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSpec {
    /// What is to be done.
    pub instructions: String,
    /// The JSON Schema of what comes back.
    pub returns: Value,
    /// Texts that the worker needs.
    pub artifacts: Vec<ArtifactRef>,
    /// How far the result may reach.
    pub scope: ResultScope,
}

/// A task with where its artifacts stand.
#[derive(Debug, Clone)]
pub struct FrozenTask {
    /// The task, in the form of a job that has no identity of its own.
    pub work: FrozenJob,
    /// Where its artifacts stand.
    pub places: Vec<Place>,
}

impl FrozenTask {
    /// The bytes that become its blob.
    pub fn blob(&self) -> Vec<u8> {
        canonical(&self.work)
    }
}

/// Terms that anybody meets: a task asks for no proof of who did it.
fn anybody() -> Execution {
    Execution {
        independent: false,
        min_grade: Grade::None,
        families: Family::ALL.to_vec(),
        models: Vec::new(),
        interactive: true,
        cost: Cost::ALL.to_vec(),
        locality: Locality::Any,
    }
}

/// Fixes a task about a resource over the bytes of its artifacts.
///
/// # Errors
/// `bad_input` for empty instructions, a schema that is none, a text that is not UTF-8; `not_blind` for a
/// private key in instructions, artifacts or schema; `too_large`.
pub fn fix(spec: &TaskSpec, resource: &Name, contents: &BTreeMap<Name, Vec<u8>>) -> Result<FrozenTask> {
    if spec.instructions.trim().is_empty() {
        return Err(Error::new(Kind::BadInput, "the instructions are empty"));
    }
    if spec.instructions.len() > MAX_INSTRUCTIONS {
        return Err(Error::new(Kind::TooLarge, "the instructions are too long")
            .because(format!("{} bytes, at most {MAX_INSTRUCTIONS}", spec.instructions.len())));
    }
    let private = Forbidden::private();
    let bytes = spec.instructions.as_bytes();
    let value = json::parse(bytes).ok().or_else(|| yaml::parse(bytes).ok());
    match value.filter(|value| value.is_object() || value.is_array()) {
        Some(value) => private.refuse("the instructions", &value)?,
        None => private.refuse_text("the instructions", &spec.instructions)?,
    }
    sound::finished("the return contract", &spec.returns, None, &[])?;
    let mut places = Vec::new();
    let artifacts = spec.artifacts.iter().map(|artifact| taken(artifact, contents, &private, &mut places));
    let artifacts = artifacts.collect::<Result<Vec<_>>>()?;
    let size = spec.instructions.len() as u64 + places.iter().map(|place: &Place| place.bytes).sum::<u64>();
    if size > MAX_INPUT {
        return Err(Error::new(Kind::TooLarge, format!("the task has {size} bytes, at most {MAX_INPUT}")));
    }
    let question = Question {
        context: Vec::new(),
        contract: None,
        evidence: Vec::new(),
        input: json!({"artifacts": artifacts, "instructions": spec.instructions}),
        kind: KIND.to_owned(),
        output: spec.returns.clone(),
        rubric: json!([]),
        subject: resource.to_string(),
        verdict: None,
    };
    let work = FrozenJob {
        id: None,
        fingerprint: None,
        job_digest: None,
        question,
        permissions: Permissions { result_scope: spec.scope },
        execution: anybody(),
        forbidden_keys: Vec::new(),
        allow_evidence: Vec::new(),
    };
    let task = FrozenTask { work, places };
    // What is kept must be readable again under the same guard.
    json::parse(&task.blob()).map_err(|fault| fault.into_error("the task"))?;
    Ok(task)
}
