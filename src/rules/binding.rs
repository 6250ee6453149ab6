//! Binding: thirteen checks between an answer and the job it claims to answer, all run, all shown
//! (semantic-execution contract, 07). A good answer to the wrong question is still invalid.

use serde_json::Value;

use super::blind;
use super::freeze::FrozenJob;
use super::independence;
use super::schema;
use crate::model::check::Check;
use crate::model::handoff::{Attempt, Transport};
use crate::model::job::{Grade, Job, Polarity, ResultScope, Verdict};
use crate::model::witness::Witness;

mod claim;

pub use claim::Claim;

/// Bytes of the canonical result.
pub const MAX_RESULT: usize = 256 * 1024;
/// Characters of the reason for not judging.
pub const MAX_REASON: usize = 500;

/// What a check says that only the store can make.
pub const LEFT: &str = "left to the import";

/// The thirteen names, in order.
pub const NAMES: [&str; 13] = [
    "form",
    "job",
    "fingerprint",
    "job_digest",
    "attempt",
    "schema",
    "verdict",
    "evidence",
    "scope",
    "leakage",
    "provenance",
    "independence",
    "model",
];

/// Everything that an answer is bound against.
pub struct Against<'a> {
    /// The frozen job, from its blob.
    pub frozen: &'a FrozenJob,
    /// The job, from the log, where there is one.
    pub job: Option<&'a Job>,
    /// The attempt.
    pub attempt: &'a Attempt,
    /// Whether the attempt may speak: it is the current one, or this very result is its answer.
    pub attempt_check: Check,
    /// What is known of source and worker; nothing where there is no store.
    pub independence: Option<independence::Facts<'a>>,
}

/// Runs all thirteen checks.
pub fn bind(claim: &Claim, against: &Against<'_>) -> Vec<Check> {
    let frozen = against.frozen;
    let judged = |check: &str, run: &dyn Fn(&Value) -> Check| match &claim.output {
        Some(output) if claim.completed => run(output),
        None if claim.completed => Check::new(check, false, "an output", "none"),
        _ => Check::not_asked(check),
    };
    let asked = identity(claim, against);
    vec![
        Check::new("form", claim.faults.is_empty(), "the return form", or(&claim.faults, "the return form")),
        asked.0,
        asked.1,
        asked.2,
        against.attempt_check.clone(),
        judged("schema", &|output| schema_check(&frozen.question.output, output)),
        match frozen.verdict_rule() {
            None => Check::not_asked("verdict"),
            Some(rule) => judged("verdict", &|output| {
                let known = [rule.pass.as_slice(), &rule.fail, &rule.neutral].concat().join(", ");
                let got = output.pointer(&rule.pointer).map_or("nothing".to_owned(), Value::to_string);
                Check::new(
                    "verdict",
                    rule.read(output).is_some(),
                    format!("{}: one of {known}", rule.pointer),
                    got,
                )
            }),
        },
        judged("evidence", &|output| evidence_check(&frozen.question.evidence, output)),
        scope_check(claim, frozen.permissions.result_scope),
        leakage_check(claim, frozen),
        provenance_check(claim, against),
        independence_check(against),
        model_check(claim, &frozen.execution.models),
    ]
}

/// Whether an answer names what was asked: `job`, `fingerprint` and `job_digest`.
fn identity(claim: &Claim, against: &Against<'_>) -> (Check, Check, Check) {
    let Some(job) = against.job else {
        let named = claim.handoff.clone().unwrap_or_else(|| format!("job {}", claim.job));
        let own = Check::equal("job", against.attempt.handoff.to_string(), named);
        return (own, Check::not_asked("fingerprint"), Check::not_asked("job_digest"));
    };
    let (fingerprint, digest) = against.frozen.digest_again();
    let sound = fingerprint == job.fingerprint;
    let named = claim.handoff.as_ref().map(|handoff| format!("handoff {handoff}"));
    (
        Check::equal(
            "job",
            format!("{} {}", job.id, job.subject),
            named.unwrap_or_else(|| format!("{} {}", claim.job, against.frozen.question.subject)),
        ),
        Check::new(
            "fingerprint",
            claim.fingerprint == job.fingerprint && sound,
            &*job.fingerprint,
            if sound { claim.fingerprint.clone() } else { fingerprint },
        ),
        Check::equal("job_digest", job.job_digest.clone(), digest),
    )
}

fn or(list: &[String], otherwise: &str) -> String {
    if list.is_empty() { otherwise.to_owned() } else { list.join("; ") }
}

fn schema_check(wanted: &Value, output: &Value) -> Check {
    match schema::check_sound(wanted, output) {
        Ok(violations) if violations.is_empty() => {
            Check::new("schema", true, "the output schema", "it holds")
        }
        Ok(violations) => {
            let lines: Vec<String> =
                violations.iter().map(|found| format!("{} {}", found.pointer, found.message)).collect();
            Check::new("schema", false, "the output schema", lines.join("; "))
        }
        Err(bad) => Check::new("schema", false, "a sound schema", format!("{} {}", bad.pointer, bad.message)),
    }
}

fn evidence_check(pointers: &[String], output: &Value) -> Check {
    if pointers.is_empty() {
        return Check::not_asked("evidence");
    }
    let missing: Vec<String> = pointers
        .iter()
        .filter(|pointer| output.pointer(pointer).is_none_or(says_nothing))
        .map(|pointer| format!("{pointer} is missing or empty"))
        .collect();
    Check::new("evidence", missing.is_empty(), pointers.join(", "), or(&missing, "present"))
}

/// Whether a value holds nothing that could be looked at: a list of blanks is no more evidence than a blank.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(map) => map.values().all(says_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn scope_check(claim: &Claim, permitted: ResultScope) -> Check {
    let mut faults: Vec<String> = blind::high_permissions(&claim.whole)
        .into_iter()
        .map(|pointer| format!("{pointer} is named like a permission that nothing here grants"))
        .collect();
    match claim.scope.as_deref().map(str::parse::<ResultScope>) {
        None => {}
        Some(Err(unknown)) => faults.push(unknown),
        Some(Ok(scope)) if scope > permitted => faults.push(format!("{scope} is wider")),
        Some(Ok(_)) => {}
    }
    Check::new("scope", faults.is_empty(), format!("at most {permitted}"), or(&faults, "within it"))
}

fn leakage_check(claim: &Claim, frozen: &FrozenJob) -> Check {
    let mut found = blind::private(&claim.whole);
    if let Some(output) = &claim.output {
        let inside = frozen.forbidden().find(output).into_iter().map(|pointer| format!("/output{pointer}"));
        found.extend(inside);
    }
    // The nonce is a secret of the attempt: it stands in the member nf and nowhere else.
    let texts = [
        claim.output.as_ref().map(Value::to_string),
        claim.reason.clone(),
        claim.name.clone(),
        claim.provider.clone(),
        claim.model.clone(),
        claim.stated.clone(),
    ];
    if !claim.nonce.is_empty() && texts.iter().flatten().any(|text| text.contains(&claim.nonce)) {
        found.push("the nonce, outside /nf".to_owned());
    }
    found.sort();
    found.dedup();
    let got = if found.is_empty() {
        "none".to_owned()
    } else {
        format!("private or forbidden: {}", found.join(", "))
    };
    Check::new("leakage", found.is_empty(), "no private reasoning and no forbidden key", got)
}

fn provenance_check(claim: &Claim, against: &Against<'_>) -> Check {
    let family = against.attempt.family();
    let wanted = match against.attempt.form() {
        Transport::Human => "a name",
        Transport::Worker | Transport::Process | Transport::Http => "a worker's name",
        Transport::Chat | Transport::Agent | Transport::Import => "provider and model",
    };
    let mut faults = Vec::new();
    if against.attempt.transport == Transport::Import && !claim.imported {
        faults.push("the answer of an exported packet comes back as a result file (nf import)".to_owned());
    }
    let named = claim.named(against.attempt);
    if named.is_none() {
        faults.push(format!("{wanted} not given"));
    }
    faults.extend(unseen(against.attempt.transport, claim.witness.as_ref()));
    if !against.frozen.execution.families.contains(&family) {
        faults.push(format!("family {family} is not allowed"));
    }
    let got = or(&faults, &named.unwrap_or_default());
    Check::new("provenance", faults.is_empty(), format!("{wanted}, by {family}"), got)
}

/// What is missing of what `nf` itself must have seen, where it ran the program or made the call.
fn unseen(transport: Transport, witness: Option<&Witness>) -> Option<String> {
    let witness = match (transport.is_seen(), witness) {
        (false, _) => return None,
        (true, None) => {
            return Some("only nf work, which ran it, can bring the answer of this attempt".to_owned());
        }
        (true, Some(witness)) => witness,
    };
    let wanted: &[(&str, bool)] = match transport {
        Transport::Process => &[("process", witness.invocation.is_some())],
        _ => &[
            ("provider", witness.provider.is_some()),
            ("model that was asked for", witness.model_requested.is_some()),
            ("id of the request", witness.request_id.is_some()),
        ],
    };
    let missing: Vec<&str> = wanted.iter().filter(|(_, seen)| !seen).map(|(what, _)| *what).collect();
    (!missing.is_empty()).then(|| format!("not recorded: {}", missing.join(", ")))
}

fn independence_check(against: &Against<'_>) -> Check {
    let execution = &against.frozen.execution;
    if !execution.independent && execution.min_grade == Grade::None {
        return Check::not_asked("independence");
    }
    let Some(facts) = &against.independence else {
        return Check::new("independence", true, format!("at least {}", execution.min_grade), LEFT);
    };
    let grounds = independence::grounds(facts);
    let grade = independence::grade(&grounds);
    let missing: Vec<String> = grounds
        .iter()
        .filter(|ground| !ground.ok)
        .map(|ground| format!("{}: want {}, got {}", ground.check, ground.want, ground.got))
        .collect();
    let got =
        if missing.is_empty() { grade.to_string() } else { format!("{grade} ({})", missing.join("; ")) };
    Check::new("independence", grade >= execution.min_grade, format!("at least {}", execution.min_grade), got)
}

fn model_check(claim: &Claim, allowed: &[String]) -> Check {
    let served = claim.model.clone().unwrap_or_else(|| "unattested".to_owned());
    let want = if allowed.is_empty() {
        "any, recorded".to_owned()
    } else {
        format!("one of {}", allowed.join(", "))
    };
    Check::new("model", allowed.is_empty() || allowed.contains(&served), want, served)
}

/// The verdict of an answer by its job's rule; without a rule, one without polarity.
pub fn verdict(frozen: &FrozenJob, output: &Value) -> Option<Verdict> {
    match frozen.verdict_rule() {
        None => Some(Verdict { value: None, polarity: Polarity::None, route: None }),
        Some(rule) => rule.read(output),
    }
}
