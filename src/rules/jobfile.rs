//! What a job file and a contract pack may say, and how the two become one specification
//! (semantic-execution contract, 01).

use serde_json::Value;

use super::blind::HIGH_PERMISSIONS;
use super::members::{Members, wrong};
use super::sound::{finished, valid_schema};
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Permissions;
use crate::model::id::Name;
use crate::model::job::{Cost, Execution, Family, Grade, Locality, ResultScope, VerdictRule};

const JOB: &[&str] = &[
    "contract",
    "kind",
    "subject",
    "input",
    "context",
    "rubric",
    "output",
    "verdict",
    "evidence",
    "permissions",
    "execution",
    "forbidden_keys",
    "allow_evidence",
];
const PACK: &[&str] = &[
    "id",
    "version",
    "kind",
    "purpose",
    "input",
    "rubric",
    "output",
    "verdict",
    "evidence",
    "permissions",
    "execution",
    "forbidden_keys",
];
const EXECUTION: &[&str] =
    &["independent", "min_grade", "families", "models", "interactive", "cost", "locality"];

/// Artifacts that one job may have.
pub const MAX_ARTIFACTS: usize = 256;

/// One artifact that a job file names.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactRef {
    /// Its name.
    pub name: Name,
    /// Its path from the project root.
    pub path: String,
    /// The lines wanted, 1-based and inclusive.
    pub lines: Option<(u64, u64)>,
    /// Whether its bytes need not be UTF-8.
    pub base64: bool,
    /// Where the job file names it.
    pub pointer: String,
}

/// What `kind, output, verdict, …` say, in a job file or a pack.
#[derive(Debug, Clone, PartialEq, Default)]
struct Terms {
    rubric: Vec<Value>,
    output: Option<Value>,
    verdict: Option<VerdictRule>,
    evidence: Vec<String>,
    permissions: Option<Permissions>,
    execution: serde_json::Map<String, Value>,
    forbidden_keys: Vec<String>,
}

/// A contract pack: a question that is asked again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// Its id.
    pub id: Name,
    /// Its version.
    pub version: u64,
    /// The kind of question.
    pub kind: Name,
    /// What it is for.
    pub purpose: String,
    /// A schema for the input, as it is frozen.
    pub input: Option<Value>,
    terms: Terms,
}

impl Contract {
    /// `id@version`, as job files name it.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.id, self.version)
    }
}

/// Everything that a job file asks, with its contract's part in it; its artifacts are not yet read.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The contract, `id@version`.
    pub contract: Option<String>,
    /// The contract's schema for the input.
    pub input_schema: Option<Value>,
    /// The kind of question.
    pub kind: Name,
    /// What it is about.
    pub subject: Name,
    /// The input without its artifacts.
    pub input: serde_json::Map<String, Value>,
    /// The input's artifacts; `None` where the input names none.
    pub artifacts: Option<Vec<ArtifactRef>>,
    /// The context's artifacts.
    pub context: Vec<ArtifactRef>,
    /// The rubric.
    pub rubric: Vec<Value>,
    /// The schema of the answer.
    pub output: Value,
    /// Where the verdict stands.
    pub verdict: Option<VerdictRule>,
    /// Pointers that must be present and not empty.
    pub evidence: Vec<String>,
    /// What the work may touch.
    pub permissions: Permissions,
    /// What it demands of its execution.
    pub execution: Execution,
    /// Keys forbidden beside the built-in ones.
    pub forbidden_keys: Vec<String>,
    /// Keys that the rubric itself asks to judge.
    pub allow_evidence: Vec<String>,
}

/// Reads a contract pack.
///
/// # Errors
/// `bad_input` with pointer; `not_blind` for an output that asks for private reasoning.
pub fn contract(value: &Value) -> Result<Contract> {
    let what = "contract";
    let members = Members::new(what, value, "", PACK)?;
    let contract = Contract {
        id: members.need("id")?,
        version: members.need("version")?,
        kind: members.need("kind")?,
        purpose: members.get("purpose")?.unwrap_or_default(),
        input: members.raw("input").cloned(),
        terms: terms(what, &members)?,
    };
    if let Some(input) = &contract.input {
        valid_schema(what, "/input", input)?;
    }
    let output = contract.terms.output.as_ref();
    let output = output.ok_or_else(|| wrong(what, "/output", "this member is required"))?;
    finished(what, output, contract.terms.verdict.as_ref(), &contract.terms.evidence)?;
    // The terms must make sense by themselves, not only in some job.
    execution(what, &contract.terms.execution)?;
    Ok(contract)
}

/// Reads a job file, with the contract that it names.
///
/// # Errors
/// `bad_input` with pointer and did-you-mean; `authority_denied` for a high permission; `not_blind` for an
/// output that asks for private reasoning.
pub fn job(value: &Value, find: &dyn Fn(&str) -> Result<Contract>) -> Result<JobSpec> {
    let what = "job file";
    let members = Members::new(what, value, "", JOB)?;
    let reference: Option<String> = members.get("contract")?;
    let contract = reference.as_deref().map(find).transpose()?;
    let own = terms(what, &members)?;
    let base = contract.as_ref().map(|contract| contract.terms.clone()).unwrap_or_default();
    let kind = same(what, "/kind", contract.as_ref().map(|pack| pack.kind.clone()), members.get("kind")?)?;
    let output = same(what, "/output", base.output, own.output)?;
    let spec = JobSpec {
        contract: contract.as_ref().map(Contract::reference),
        input_schema: contract.and_then(|contract| contract.input),
        kind: kind.ok_or_else(|| wrong(what, "/kind", "this member is required"))?,
        subject: members.need("subject")?,
        input: input(what, &members)?,
        artifacts: artifacts_of_input(what, &members)?,
        context: artifacts(what, members.raw("context"), "/context")?.unwrap_or_default(),
        rubric: [base.rubric, own.rubric].concat(),
        output: output.ok_or_else(|| wrong(what, "/output", "this member is required"))?,
        verdict: same(what, "/verdict", base.verdict, own.verdict)?,
        evidence: union(base.evidence, own.evidence),
        permissions: same(what, "/permissions", base.permissions, own.permissions)?
            .unwrap_or(Permissions { result_scope: ResultScope::Diagnostic }),
        execution: execution(what, &merged(what, base.execution, own.execution)?)?,
        forbidden_keys: union(base.forbidden_keys, own.forbidden_keys),
        allow_evidence: members.get("allow_evidence")?.unwrap_or_default(),
    };
    finished(what, &spec.output, spec.verdict.as_ref(), &spec.evidence)?;
    distinct_names(what, &spec)?;
    Ok(spec)
}

fn terms(what: &str, members: &Members<'_>) -> Result<Terms> {
    let execution = match members.raw("execution") {
        None => serde_json::Map::new(),
        Some(value) => {
            Members::new(what, value, "/execution", EXECUTION)?;
            value.as_object().cloned().unwrap_or_default()
        }
    };
    if let Some(value) = members.raw("verdict") {
        Members::new(what, value, "/verdict", &["pointer", "pass", "fail", "neutral", "repair"])?;
    }
    Ok(Terms {
        rubric: members.get("rubric")?.unwrap_or_default(),
        output: members.raw("output").cloned(),
        verdict: members.get("verdict")?,
        evidence: members.get("evidence")?.unwrap_or_default(),
        permissions: permissions(what, members)?,
        execution,
        forbidden_keys: members.get("forbidden_keys")?.unwrap_or_default(),
    })
}

/// The high permissions parse only as `false` and are then left out: there is nothing to grant.
fn permissions(what: &str, members: &Members<'_>) -> Result<Option<Permissions>> {
    let Some(value) = members.raw("permissions") else { return Ok(None) };
    let known: Vec<&str> = HIGH_PERMISSIONS.iter().copied().chain(["result_scope"]).collect();
    let inner = Members::new(what, value, "/permissions", &known)?;
    for high in HIGH_PERMISSIONS {
        if inner.raw(high).is_some_and(|value| *value != Value::Bool(false)) {
            return Err(Error::new(Kind::AuthorityDenied, format!("{what}: {high} can only be false"))
                .because("no job, verdict or flag grants authority")
                .details(serde_json::json!({"pointer": inner.at(high)})));
        }
    }
    Ok(Some(Permissions { result_scope: inner.get("result_scope")?.unwrap_or(ResultScope::Diagnostic) }))
}

fn execution(what: &str, given: &serde_json::Map<String, Value>) -> Result<Execution> {
    let value = Value::Object(given.clone());
    let members = Members::new(what, &value, "/execution", EXECUTION)?;
    let independent = members.get("independent")?.unwrap_or(false);
    let weakest = if independent { Grade::Declared } else { Grade::None };
    let execution = Execution {
        independent,
        min_grade: members.get("min_grade")?.unwrap_or(weakest),
        families: members.get("families")?.unwrap_or_else(|| Family::ALL.to_vec()),
        models: members.get("models")?.unwrap_or_default(),
        interactive: members.get("interactive")?.unwrap_or(true),
        cost: members.get("cost")?.unwrap_or_else(|| Cost::ALL.to_vec()),
        locality: members.get("locality")?.unwrap_or(Locality::Any),
    };
    if execution.independent && execution.min_grade == Grade::None {
        return Err(wrong(what, "/execution/min_grade", "independence needs declared or attested"));
    }
    if execution.families.is_empty() || execution.cost.is_empty() {
        return Err(wrong(what, "/execution", "an empty list of families or cost excludes every reviewer"));
    }
    Ok(execution)
}

/// A contract's own terms stand; a job file may repeat them and set what the contract leaves open.
fn merged(
    what: &str,
    base: serde_json::Map<String, Value>,
    own: serde_json::Map<String, Value>,
) -> Result<serde_json::Map<String, Value>> {
    let mut all = base;
    for (key, value) in own {
        match all.get(&key) {
            Some(held) if *held != value => {
                let place = format!("/execution/{key}");
                return Err(wrong(what, &place, "the contract sets this")
                    .because(format!("want {held}, got {value}")));
            }
            _ => {
                all.insert(key, value);
            }
        }
    }
    Ok(all)
}

fn same<T: PartialEq>(what: &str, pointer: &str, base: Option<T>, own: Option<T>) -> Result<Option<T>> {
    match (base, own) {
        (Some(base), Some(own)) if base != own => {
            Err(wrong(what, pointer, "the contract sets this, and a job file may not change it"))
        }
        (Some(base), _) => Ok(Some(base)),
        (None, own) => Ok(own),
    }
}

fn union(mut base: Vec<String>, own: Vec<String>) -> Vec<String> {
    for item in own {
        if !base.contains(&item) {
            base.push(item);
        }
    }
    base
}

fn input(what: &str, members: &Members<'_>) -> Result<serde_json::Map<String, Value>> {
    let mut map: serde_json::Map<String, Value> = members.need("input")?;
    map.remove("artifacts");
    if map.is_empty() && members.raw("input").and_then(|input| input.get("artifacts")).is_none() {
        return Err(wrong(what, "/input", "an empty input asks nothing"));
    }
    Ok(map)
}

fn artifacts_of_input(what: &str, members: &Members<'_>) -> Result<Option<Vec<ArtifactRef>>> {
    artifacts(what, members.raw("input").and_then(|input| input.get("artifacts")), "/input/artifacts")
}

fn artifacts(what: &str, value: Option<&Value>, pointer: &str) -> Result<Option<Vec<ArtifactRef>>> {
    let Some(value) = value else { return Ok(None) };
    let list = value.as_array().ok_or_else(|| wrong(what, pointer, "a list is wanted here"))?;
    let artifact = |(index, item): (usize, &Value)| {
        let pointer = format!("{pointer}/{index}");
        let members = Members::new(what, item, &pointer, &["name", "path", "lines", "encoding"])?;
        let path: String = members.need("path")?;
        relative_path(what, &members.at("path"), &path)?;
        let encoding: Option<String> = members.get("encoding")?;
        if let Some(other) = encoding.as_deref().filter(|encoding| *encoding != "base64") {
            return Err(
                wrong(what, &members.at("encoding"), "only base64 is known").because(format!("got {other}"))
            );
        }
        let lines =
            members.raw("lines").map(|lines| line_range(what, &members.at("lines"), lines)).transpose()?;
        Ok(ArtifactRef { name: members.need("name")?, path, lines, base64: encoding.is_some(), pointer })
    };
    list.iter().enumerate().map(artifact).collect::<Result<Vec<_>>>().map(Some)
}

fn relative_path(what: &str, pointer: &str, path: &str) -> Result<()> {
    let bad = path.is_empty()
        || path.len() > 1024
        || path.starts_with('/')
        || path.contains('\0')
        || path.split('/').any(|part| part == ".." || part == ".novelforge");
    if bad {
        return Err(wrong(
            what,
            pointer,
            "a path from the project root is wanted, without .. or .novelforge",
        ));
    }
    Ok(())
}

fn line_range(what: &str, pointer: &str, value: &Value) -> Result<(u64, u64)> {
    let bad = || wrong(what, pointer, "lines are written first-last, such as 10-80");
    let (first, last) = value.as_str().and_then(|text| text.split_once('-')).ok_or_else(bad)?;
    let first = first.trim().parse::<u64>().map_err(|_| bad())?;
    let last = last.trim().parse::<u64>().map_err(|_| bad())?;
    if first == 0 || last < first { Err(bad()) } else { Ok((first, last)) }
}

fn distinct_names(what: &str, spec: &JobSpec) -> Result<()> {
    let all: Vec<&ArtifactRef> = spec.artifacts.iter().flatten().chain(&spec.context).collect();
    if all.len() > MAX_ARTIFACTS {
        return Err(Error::new(
            Kind::TooLarge,
            format!("{what}: a job has at most {MAX_ARTIFACTS} artifacts"),
        ));
    }
    for (index, artifact) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.name == artifact.name) {
            let pointer = format!("{}/name", artifact.pointer);
            return Err(wrong(what, &pointer, &format!("the name {} stands twice", artifact.name)));
        }
    }
    Ok(())
}
