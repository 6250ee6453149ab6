//! The return form as a JSON Schema: what a program that can be held to a schema is asked for. What it gives
//! back goes through the same intake and binding as any answer; a provider's word that it fits counts for
//! nothing.

use serde_json::{Value, json};

use super::freeze::FrozenJob;

/// The schema of the whole answer to a packet. The nonce is not in it: a schema may stand where others read
/// it.
pub fn schema(job: &FrozenJob) -> Value {
    let text = json!({"type": "string"});
    let identity = match job.id {
        Some(_) => closed(&[("job", text.clone()), ("fingerprint", text.clone()), ("nonce", text.clone())]),
        None => closed(&[("handoff", text.clone()), ("nonce", text.clone())]),
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
