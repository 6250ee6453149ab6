//! Freezing: a specification and its artifacts' bytes become one job whose bytes never change
//! (semantic-execution contract, 01 and 09).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blind::Forbidden;
use super::fingerprint::{self, FrozenArtifact, Question};
use super::jobfile::{ArtifactRef, JobSpec};
use super::members::wrong;
use super::schema;
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Permissions;
use crate::model::hash::{Hash, canonical};
use crate::model::id::{Id, JobId, Name, RunId, SessionId};
use crate::model::job::{Execution, Job, Place, VerdictRule};
use crate::model::state::State;
use crate::model::time::Time;
use crate::model::{json, yaml};

/// Bytes that the whole input of a job may have.
pub const MAX_INPUT: u64 = 8 * 1024 * 1024;
/// Bytes of input from which some transports cut what they carry.
pub const WARN_INPUT: u64 = 256 * 1024;

/// A frozen job: everything that a reviewer is asked, and on what terms. Kept as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenJob {
    /// The start of the digest; work that is no question has no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<JobId>,
    /// `nf1:` and the hash of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// `nfj1:` and the hash of question, permissions and terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_digest: Option<String>,
    /// The question.
    pub question: Question,
    /// What the work may touch.
    pub permissions: Permissions,
    /// What it demands of its execution.
    pub execution: Execution,
    /// Keys forbidden beside the built-in ones.
    pub forbidden_keys: Vec<String>,
    /// Keys that the rubric itself asks to judge.
    pub allow_evidence: Vec<String>,
}

impl FrozenJob {
    /// The verdict rule, where the job asks for a verdict.
    pub fn verdict_rule(&self) -> Option<VerdictRule> {
        self.question.verdict.as_ref().and_then(|rule| serde_json::from_value(rule.clone()).ok())
    }

    /// The keys that this job forbids.
    pub fn forbidden(&self) -> Forbidden {
        Forbidden::new(&self.forbidden_keys, &self.allow_evidence)
    }

    /// Every artifact, input before context.
    pub fn artifacts(&self) -> Vec<FrozenArtifact> {
        let input = self.question.input.get("artifacts").cloned().unwrap_or_default();
        let input: Vec<FrozenArtifact> = serde_json::from_value(input).unwrap_or_default();
        input.into_iter().chain(self.question.context.iter().cloned()).collect()
    }

    /// The digest taken anew from the parts.
    pub fn digest_again(&self) -> (String, String) {
        let print = fingerprint::fingerprint(&self.question);
        let digest = fingerprint::job_digest(
            &print,
            &json!(self.permissions),
            &json!(self.execution),
            &self.forbidden_keys,
            &self.allow_evidence,
        );
        (print, fingerprint::job_digest_text(&digest))
    }
}

/// A job that was frozen just now, with what goes beside it.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// The job.
    pub job: FrozenJob,
    /// Where its artifacts stand.
    pub places: Vec<Place>,
    /// Bytes of its whole input.
    pub bytes: u64,
}

impl Frozen {
    /// The canonical bytes that become the job's blob.
    pub fn blob(&self) -> Vec<u8> {
        canonical(&self.job)
    }

    /// The job as the log knows it.
    pub fn entity(&self, session: Option<&SessionId>, run: Option<&RunId>, at: Time) -> Result<Job> {
        let question = &self.job.question;
        let unnamed = || Error::new(Kind::BadInput, "work that is no question is no job");
        let name = |text: &str| text.parse::<Name>().map_err(|bad| wrong("job file", "", &bad));
        Ok(Job {
            id: self.job.id.clone().ok_or_else(unnamed)?,
            fingerprint: self.job.fingerprint.clone().ok_or_else(unnamed)?,
            job_digest: self.job.job_digest.clone().ok_or_else(unnamed)?,
            contract: question.contract.clone(),
            kind: name(&question.kind)?,
            subject: name(&question.subject)?,
            result_scope: self.job.permissions.result_scope,
            execution: self.job.execution.clone(),
            blob: Hash::of(&self.blob()),
            bytes: self.bytes,
            places: self.places.clone(),
            frozen_by: session.into_iter().cloned().collect(),
            run: run.cloned(),
            frozen_at: at,
        })
    }
}

/// Freezes a specification over the bytes of its artifacts (by name, each already cut to its lines).
///
/// # Errors
/// `not_blind` for a forbidden key in input, rubric or a JSON or YAML artifact; `bad_input` for text that
/// is not UTF-8 and for input that the contract's schema refuses; `too_large` over 8 MiB.
pub fn freeze(spec: &JobSpec, contents: &BTreeMap<Name, Vec<u8>>) -> Result<Frozen> {
    let forbidden = Forbidden::new(&spec.forbidden_keys, &spec.allow_evidence);
    forbidden.refuse("input", &Value::Object(spec.input.clone()))?;
    forbidden.refuse("rubric", &Value::Array(spec.rubric.clone()))?;
    // An output that asks for a forbidden member could never bind.
    forbidden.refuse("the output schema", &spec.output)?;
    let mut places = Vec::new();
    let mut taken = |list: &[ArtifactRef]| -> Result<Vec<FrozenArtifact>> {
        list.iter().map(|artifact| taken(artifact, contents, &forbidden, &mut places)).collect()
    };
    let mut input = spec.input.clone();
    if let Some(list) = &spec.artifacts {
        input.insert("artifacts".to_owned(), json!(taken(list)?));
    }
    let context = taken(&spec.context)?;
    let input = Value::Object(input);
    fits(spec, &input)?;
    let bytes = canonical(&input).len() as u64 + places.iter().map(|place: &Place| place.bytes).sum::<u64>();
    if bytes > MAX_INPUT {
        return Err(Error::new(Kind::TooLarge, "a job's whole input is at most 8 MiB")
            .because(format!("this one has {bytes} bytes")));
    }
    let question = Question {
        context,
        contract: spec.contract.clone(),
        evidence: spec.evidence.clone(),
        input,
        kind: spec.kind.to_string(),
        output: spec.output.clone(),
        rubric: Value::Array(spec.rubric.clone()),
        subject: spec.subject.to_string(),
        verdict: spec.verdict.as_ref().map(|rule| json!(rule)),
    };
    let fingerprint = fingerprint::fingerprint(&question);
    let digest = fingerprint::job_digest(
        &fingerprint,
        &json!(spec.permissions),
        &json!(spec.execution),
        &spec.forbidden_keys,
        &spec.allow_evidence,
    );
    let job = FrozenJob {
        id: Some(JobId::from_bytes(digest.bytes())),
        job_digest: Some(fingerprint::job_digest_text(&digest)),
        fingerprint: Some(fingerprint),
        question,
        permissions: spec.permissions,
        execution: spec.execution.clone(),
        forbidden_keys: spec.forbidden_keys.clone(),
        allow_evidence: spec.allow_evidence.clone(),
    };
    let frozen = Frozen { job, places, bytes };
    // What is kept must be readable again under the same guard.
    json::parse(&frozen.blob()).map_err(|fault| fault.into_error("the frozen job"))?;
    Ok(frozen)
}

pub(super) fn taken(
    artifact: &ArtifactRef,
    contents: &BTreeMap<Name, Vec<u8>>,
    forbidden: &Forbidden,
    places: &mut Vec<Place>,
) -> Result<FrozenArtifact> {
    let bytes = contents
        .get(&artifact.name)
        .ok_or_else(|| wrong("job file", &artifact.pointer, "this artifact was not read"))?;
    let text = std::str::from_utf8(bytes);
    if let (Err(bad), false) = (&text, artifact.base64) {
        let message = format!("{} is not UTF-8 text", artifact.path);
        return Err(wrong("job file", &artifact.pointer, &message)
            .because(format!("first bad byte at offset {}", bad.valid_up_to()))
            .fix("save the file as UTF-8, or say encoding: base64 for a file that is not text"));
    }
    blind_to(artifact, bytes, forbidden)?;
    let (hash, length) = (Hash::of(bytes), bytes.len() as u64);
    places.push(Place {
        name: artifact.name.clone(),
        path: artifact.path.clone(),
        lines: artifact.lines,
        hash,
        bytes: length,
    });
    Ok(FrozenArtifact { name: artifact.name.to_string(), hash, bytes: length })
}

/// A file that says by its name that it is JSON or YAML is searched for forbidden keys: as a value where
/// it can be read as one, else as text, where any `key:` counts.
fn blind_to(artifact: &ArtifactRef, bytes: &[u8], forbidden: &Forbidden) -> Result<()> {
    let what = format!("artifact {}", artifact.name);
    let ending = artifact.path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let parsed = match ending.as_str() {
        "json" => json::parse(bytes),
        "yaml" | "yml" => yaml::parse(bytes),
        _ => return Ok(()),
    };
    match parsed {
        Ok(value) => forbidden.refuse(&what, &value),
        Err(_) => forbidden.refuse_text(&what, &String::from_utf8_lossy(bytes)),
    }
}

fn fits(spec: &JobSpec, input: &Value) -> Result<()> {
    let Some(wanted) = &spec.input_schema else { return Ok(()) };
    let violations = schema::check(wanted, input)
        .map_err(|bad| wrong("contract", &format!("/input{}", bad.pointer), &bad.message))?;
    match violations.first() {
        None => Ok(()),
        Some(first) => {
            let place = format!("/input{}", first.pointer);
            Err(wrong("job file", &place, "the contract's input schema refuses this")
                .because(first.message.clone()))
        }
    }
}

/// Refuses an artifact whose bytes are a stored answer: a reviewer sees no earlier one.
///
/// # Errors
/// `not_blind`, naming the result.
pub fn no_stored_result(state: &State, places: &[Place]) -> Result<()> {
    for place in places {
        if let Some(result) = state.result_of_blob(&place.hash) {
            return Err(Error::new(
                Kind::NotBlind,
                format!("artifact {} is the stored result {result}", place.name),
            )
            .because("a reviewer sees no earlier answer")
            .fix("leave this artifact out of the job"));
        }
    }
    Ok(())
}
