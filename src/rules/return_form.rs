//! The return form as a JSON Schema: what a program that can be held to a schema is asked for. What it gives
//! back goes through the same intake and binding as any answer; a provider's word that it fits counts for
//! nothing.

use serde_json::{Value, json};

use super::freeze::FrozenJob;
use crate::model::id::{HandoffId, Id};

/// The schema of the whole answer to a packet: what the answer must repeat is fixed in it, so that no model
/// has to copy it. The nonce is so only where it is given: a schema may stand where others read it.
pub fn schema(job: &FrozenJob, handoff: &HandoffId, nonce: Option<&str>) -> Value {
    let text = json!({"type": "string"});
    let fixed = |word: Option<&str>| match word {
        Some(word) => json!({"type": "string", "const": word}),
        None => text.clone(),
    };
    let identity = match &job.id {
        Some(id) => closed(&[
            ("job", fixed(Some(id.as_str()))),
            ("fingerprint", fixed(job.fingerprint.as_deref())),
            ("nonce", fixed(nonce)),
        ]),
        None => closed(&[("handoff", fixed(Some(handoff.as_str()))), ("nonce", fixed(nonce))]),
    };
    // Who cannot judge says null here: a form of which every member must be filled in has no other way.
    let output = json!({"anyOf": [job.question.output, {"type": "null"}]});
    closed(&[
        ("nf", identity),
        ("worker", closed(&[("provider", text.clone()), ("model", text)])),
        ("status", json!({"type": "string", "enum": ["completed", "cannot_judge"]})),
        ("output", output),
    ])
}

/// An object of these members, all of them and no others.
fn closed(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "additionalProperties": false, "required": names, "properties": properties})
}
