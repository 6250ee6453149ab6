//! What an answer says of itself: the member names of the return form, and what does not fit it.

use serde_json::Value;

use super::{MAX_REASON, MAX_RESULT};
use crate::model::handoff::{Attempt, Transport};
use crate::model::hash::canonical;
use crate::model::result::StoredResult;
use crate::model::witness::Witness;

/// What an answer claims, read from a reply or from a stored result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// The handoff it names, where it answers no question.
    pub handoff: Option<String>,
    /// The job it names.
    pub job: String,
    /// The fingerprint it names.
    pub fingerprint: String,
    /// The nonce it carries.
    pub nonce: String,
    /// Whether it judges.
    pub completed: bool,
    /// The typed answer.
    pub output: Option<Value>,
    /// Why nothing was judged.
    pub reason: Option<String>,
    /// The scope it gives itself.
    pub scope: Option<String>,
    /// The provider, unless blank.
    pub provider: Option<String>,
    /// The model, unless blank.
    pub model: Option<String>,
    /// The model that the answer names, where another one, or none, was seen.
    pub stated: Option<String>,
    /// What was seen of the invocation, where `nf` made one itself.
    pub witness: Option<Witness>,
    /// The name, unless blank.
    pub name: Option<String>,
    /// Whether a result file brought it.
    pub imported: bool,
    /// What is wrong with its form.
    pub faults: Vec<String>,
    /// The whole answer, for leakage.
    pub whole: Value,
}

impl Claim {
    /// Reads the one value of a reply. What does not fit the return form is listed, not lost.
    pub fn read(value: &Value) -> Self {
        let mut claim = Self { whole: value.clone(), ..Self::default() };
        claim.unknown(value, "", &["nf", "worker", "status", "reason", "scope", "output"]);
        let nf = value.get("nf").unwrap_or(&Value::Null);
        // The answer to a question names it; what is no question is named by its handoff.
        let known: &[&str] = match nf.get("handoff") {
            Some(_) => &["handoff", "nonce"],
            None => &["job", "fingerprint", "nonce"],
        };
        claim.unknown(nf, "/nf", known);
        for key in known {
            if nf.get(key).is_none() {
                claim.faults.push(format!("/nf/{key} is missing"));
            }
        }
        claim.handoff = claim.text(nf, "/nf", "handoff");
        claim.job = claim.text(nf, "/nf", "job").unwrap_or_default();
        claim.fingerprint = claim.text(nf, "/nf", "fingerprint").unwrap_or_default();
        claim.nonce = claim.text(nf, "/nf", "nonce").unwrap_or_default();
        let worker = value.get("worker").unwrap_or(&Value::Null);
        claim.unknown(worker, "/worker", &["provider", "model", "name"]);
        let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        claim.provider = filled(claim.text(worker, "/worker", "provider"));
        claim.model = filled(claim.text(worker, "/worker", "model"));
        claim.name = filled(claim.text(worker, "/worker", "name"));
        claim.reason = claim.text(value, "", "reason");
        claim.scope = claim.text(value, "", "scope");
        claim.output = value.get("output").cloned();
        claim.status(value);
        claim
    }

    /// The same claim with what was seen of the one who answered in place of what it states: a model does not
    /// know its own name. A model that is hidden is not made known by an answer.
    #[must_use]
    pub fn seen(mut self, attempt: &Attempt, witness: Option<&Witness>) -> Self {
        let Some(witness) = witness else { return self };
        let hidden = witness.unattested || attempt.transport == Transport::Http;
        self.stated = self.model.take();
        self.model = witness.model_served.clone().or_else(|| self.stated.clone().filter(|_| !hidden));
        self.provider = witness.provider.clone().or(self.provider);
        self.witness = Some(witness.clone());
        self
    }

    fn status(&mut self, value: &Value) {
        match value.get("status").and_then(Value::as_str) {
            Some("completed") => {
                self.completed = true;
                if self.output.is_none() {
                    self.faults.push("/output is missing".to_owned());
                }
            }
            Some("cannot_judge") => {
                // A program that must fill in every member of a form says with null that there is none.
                self.output = self.output.take().filter(|output| !output.is_null());
                if self.output.is_some() {
                    self.faults.push("/output stands beside cannot_judge".to_owned());
                }
            }
            Some(other) => self.faults.push(format!("/status is {other:?}, not completed or cannot_judge")),
            None => self.faults.push("/status is missing or no text".to_owned()),
        }
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            self.faults.push(format!("/reason is over {MAX_REASON} characters"));
        }
        if self.body_bytes().len() > MAX_RESULT {
            self.faults.push(format!("the result is over {MAX_RESULT} bytes"));
        }
    }

    fn unknown(&mut self, value: &Value, pointer: &str, known: &[&str]) {
        match value.as_object() {
            None => {
                self.faults.push(format!("{} is no object", if pointer.is_empty() { "/" } else { pointer }))
            }
            Some(map) => {
                let extra = map.keys().filter(|key| !known.contains(&key.as_str()));
                self.faults.extend(extra.map(|key| format!("{pointer}/{key} is not a member of the form")));
            }
        }
    }

    fn text(&mut self, value: &Value, pointer: &str, key: &str) -> Option<String> {
        let member = value.get(key)?;
        let text = member.as_str().map(str::to_owned);
        if text.is_none() {
            self.faults.push(format!("{pointer}/{key} is no text"));
        }
        // Provider-native texts are data of at most 1 KiB.
        if text.as_ref().is_some_and(|text| pointer == "/worker" && text.len() > 1024) {
            self.faults.push(format!("{pointer}/{key} is over 1024 bytes"));
            return None;
        }
        text
    }

    /// The claim that a stored result made, from its blob and its provenance.
    pub fn stored(result: &StoredResult, body: &Value) -> Self {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut claim = Self {
            handoff: body.get("handoff").and_then(Value::as_str).map(str::to_owned),
            job: text("job"),
            fingerprint: text("fingerprint"),
            completed: text("status") == "completed",
            output: body.get("output").cloned(),
            scope: result.provenance.scope.map(|scope| scope.to_string()),
            provider: result.provenance.provider.clone(),
            model: result.provenance.model_served.clone(),
            stated: result.provenance.model_stated.clone(),
            witness: result.provenance.witness.as_deref().cloned(),
            name: result.provenance.name.clone(),
            imported: result.provenance.imported_from.is_some(),
            whole: body.clone(),
            ..Self::default()
        };
        let known: &[&str] = match claim.handoff {
            Some(_) => &["handoff", "status", "output"],
            None => &["job", "fingerprint", "status", "output"],
        };
        claim.unknown(body, "", known);
        claim
    }

    /// The canonical bytes of the result: `{job, fingerprint, status, output}`, or with `handoff` in place of
    /// job and fingerprint.
    pub fn body_bytes(&self) -> Vec<u8> {
        let status = if self.completed { "completed" } else { "cannot_judge" };
        let mut body = match &self.handoff {
            Some(handoff) => serde_json::json!({"handoff": handoff, "status": status}),
            None => serde_json::json!({"job": self.job, "fingerprint": self.fingerprint, "status": status}),
        };
        if let (Some(output), Some(map)) = (&self.output, body.as_object_mut()) {
            map.insert("output".to_owned(), output.clone());
        }
        canonical(&body)
    }

    /// Who answered, as stated, in the words of the attempt's transport; `None` where the blank was left.
    pub fn named(&self, attempt: &Attempt) -> Option<String> {
        match attempt.form() {
            Transport::Human => self.name.clone(),
            Transport::Worker | Transport::Process | Transport::Http => {
                attempt.worker.as_ref().map(ToString::to_string)
            }
            Transport::Chat | Transport::Agent | Transport::Import => match (&self.provider, &self.model) {
                (Some(provider), Some(model)) => Some(format!("{provider} {model}")),
                _ => None,
            },
        }
    }
}
