//! The packet: one text that carries a frozen job to a separate reviewer. Its only inputs are the job,
//! the attempt's ids and nonce, and the return form; no signature here lets anything else in
//! (semantic-execution contract, 01, 04 and 11).

use std::fmt::Write;

use base64::Engine;
use serde_json::{Map, Value, json};

use super::freeze::FrozenJob;
use crate::model::handoff::Transport;
use crate::model::hash::Hash;
use crate::model::id::{HandoffId, Name, SessionId};

/// Everything that a packet is made from.
pub struct Packet<'a> {
    /// The frozen job.
    pub job: &'a FrozenJob,
    /// The bytes of its artifacts, in the order of [`FrozenJob::artifacts`].
    pub artifacts: &'a [Vec<u8>],
    /// The handoff.
    pub handoff: &'a HandoffId,
    /// The attempt's nonce.
    pub nonce: &'a str,
    /// The session that asks.
    pub source: &'a SessionId,
    /// What is listed for the worker besides the packet, by name.
    pub context: &'a [Name],
}

/// The packet's text in the form that a transport takes. Same input, same bytes.
pub fn render(packet: &Packet<'_>, transport: Transport) -> String {
    if transport == Transport::Agent {
        return agent(packet);
    }
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = text(&mut body, packet, transport);
    let hash = Hash::of(body.as_bytes()).hex();
    format!("NF PACKET {} {} bytes blake3 {}\n{body}", packet.handoff, body.len(), &hash[..16])
}

const NOTHING_ELSE: &str = "Use no project files, no other chat and no memory of either.";

/// The sentences that open every packet.
fn sentences(packet: &Packet<'_>, transport: Transport) -> [String; 5] {
    let form = if transport == Transport::Human { "form" } else { "JSON block" };
    let whole = match transport {
        Transport::Agent => "this JSON document is not whole".to_owned(),
        Transport::Chat
        | Transport::Human
        | Transport::Worker
        | Transport::Process
        | Transport::Http
        | Transport::Import => {
            format!("the last line is not \"END NF PACKET {}\"", packet.handoff)
        }
    };
    let (first, second) = match (&packet.job.id, packet.context) {
        (Some(_), _) => ("Judge only what stands in this packet.", NOTHING_ELSE),
        (None, []) => ("Do only what stands in this packet.", NOTHING_ELSE),
        (None, _) => {
            ("Do only what stands in this packet.", "Use what is listed as context, and nothing else.")
        }
    };
    [
        first.to_owned(),
        second.to_owned(),
        "Put no private reasoning into the answer; evidence is what a reader can check.".to_owned(),
        format!("If {whole}, answer with the one word: truncated"),
        format!("Answer with one {form}, filled in as the return form at the end shows."),
    ]
}

fn text(out: &mut String, packet: &Packet<'_>, transport: Transport) -> std::fmt::Result {
    for sentence in sentences(packet, transport) {
        writeln!(out, "{sentence}")?;
    }
    writeln!(out)?;
    for (name, value) in header(packet) {
        writeln!(out, "{name}: {value}")?;
    }
    writeln!(out, "\n# Input\n")?;
    for (key, value) in members(&packet.job.question.input) {
        match value {
            Value::String(line) if !line.contains('\n') => writeln!(out, "{key}: {line}\n")?,
            Value::String(lines) => {
                writeln!(out, "{key}:")?;
                fenced(out, "text", lines)?;
            }
            other => {
                writeln!(out, "{key}:")?;
                fenced(out, "json", &pretty(other))?;
            }
        }
    }
    for (artifact, bytes) in packet.job.artifacts().iter().zip(packet.artifacts) {
        writeln!(out, "artifact {} ({} bytes, blake3 {}):", artifact.name, artifact.bytes, artifact.hash)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => fenced(out, "text", text)?,
            Err(_) => fenced(out, "base64", &base64::engine::general_purpose::STANDARD.encode(bytes))?,
        }
    }
    if packet.job.id.is_some() {
        writeln!(out, "# Rubric\n")?;
    }
    for (number, line) in packet.job.question.rubric.as_array().into_iter().flatten().enumerate() {
        match line {
            Value::String(line) => writeln!(out, "{}. {}", number + 1, line.replace('\n', "\n   "))?,
            other => writeln!(out, "{}. {other}", number + 1)?,
        }
    }
    writeln!(out, "\n# Output (JSON Schema of the member \"output\")\n")?;
    fenced(out, "json", &pretty(&packet.job.question.output))?;
    if !packet.job.question.evidence.is_empty() {
        writeln!(out, "These must be present and not empty: {}\n", packet.job.question.evidence.join(", "))?;
    }
    return_form(out, packet, transport)?;
    writeln!(out, "END NF PACKET {}", packet.handoff)
}

fn return_form(out: &mut String, packet: &Packet<'_>, transport: Transport) -> std::fmt::Result {
    writeln!(out, "# Return form\n")?;
    if transport == Transport::Human {
        writeln!(
            out,
            "Fill in between the two NF FORM lines and send those lines back with what is between.\n"
        )?;
        return human_form(out, packet);
    }
    writeln!(
        out,
        "Name your provider and model. If you cannot judge, set \"status\" to \"cannot_judge\", add a"
    )?;
    writeln!(out, "short \"reason\" and leave \"output\" out. Keep the member \"nf\" exactly as it is.\n")?;
    fenced(out, "json", &pretty(&blank(packet.job, packet.handoff, packet.nonce, transport)))
}

fn header(packet: &Packet<'_>) -> Vec<(&'static str, String)> {
    let question = &packet.job.question;
    let execution = &packet.job.execution;
    if packet.job.id.is_none() {
        return task_header(packet);
    }
    let independence = if execution.independent {
        format!("required ({}): answer only if you had no part in making this work", execution.min_grade)
    } else {
        "not required".to_owned()
    };
    vec![
        ("job", packet.job.id.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("fingerprint", packet.job.fingerprint.clone().unwrap_or_default()),
        ("contract", question.contract.clone().unwrap_or_else(|| "none".to_owned())),
        ("kind", question.kind.clone()),
        ("subject", question.subject.clone()),
        ("result scope", packet.job.permissions.result_scope.to_string()),
        ("independence", independence),
        ("source session", packet.source.to_string()),
    ]
}

/// The header of work that is no question.
fn task_header(packet: &Packet<'_>) -> Vec<(&'static str, String)> {
    let context = match packet.context {
        [] => "this packet only".to_owned(),
        listed => listed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    vec![
        ("handoff", packet.handoff.to_string()),
        ("kind", packet.job.question.kind.clone()),
        ("subject", packet.job.question.subject.clone()),
        ("context", context),
        ("result scope", packet.job.permissions.result_scope.to_string()),
        ("source session", packet.source.to_string()),
    ]
}

/// The input's members without its artifacts, which follow by themselves.
fn members(input: &Value) -> impl Iterator<Item = (&String, &Value)> {
    input.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != "artifacts")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A block in a fence longer than any run of backticks inside it.
fn fenced(out: &mut String, info: &str, text: &str) -> std::fmt::Result {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    writeln!(out, "{fence}{info}\n{text}{end}{fence}\n")
}

/// What an answer returns unchanged: the question and the nonce, or the handoff where it is no question.
fn identity(job: &FrozenJob, handoff: &HandoffId, nonce: &str) -> Value {
    match (&job.id, &job.fingerprint) {
        (Some(id), Some(fingerprint)) => json!({"job": id, "fingerprint": fingerprint, "nonce": nonce}),
        _ => json!({"handoff": handoff, "nonce": nonce}),
    }
}

/// The return form with its blanks empty: what the reviewer fills in, and what intake knows as unfilled.
pub fn blank(job: &FrozenJob, handoff: &HandoffId, nonce: &str, transport: Transport) -> Value {
    let worker = match transport {
        Transport::Human => json!({"name": ""}),
        Transport::Chat
        | Transport::Agent
        | Transport::Worker
        | Transport::Process
        | Transport::Http
        | Transport::Import => {
            json!({"model": "", "provider": ""})
        }
    };
    json!({
        "nf": identity(job, handoff, nonce),
        "worker": worker,
        "status": "completed",
        "output": blank_of(&job.question.output),
    })
}

/// An empty value of the shape that a schema asks for.
fn blank_of(schema: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str);
    match (kind, schema.get("properties").and_then(Value::as_object)) {
        (Some("object") | None, Some(properties)) => {
            let blanks = asked(schema, properties).map(|(key, inner)| (key.clone(), blank_of(inner)));
            Value::Object(blanks.collect())
        }
        (Some("object"), None) => json!({}),
        (Some("array"), _) => json!([]),
        (Some("number" | "integer" | "boolean" | "null"), _) => Value::Null,
        _ => json!(""),
    }
}

/// The required members of an object schema; all of them where none is required.
fn asked<'a>(
    schema: &'a Value,
    properties: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    properties.iter().filter(move |(key, _)| required.is_empty() || required.contains(&key.as_str()))
}

fn human_form(out: &mut String, packet: &Packet<'_>) -> std::fmt::Result {
    writeln!(out, "# NF FORM {}", packet.handoff)?;
    let identity = identity(packet.job, packet.handoff, packet.nonce);
    let lines = if packet.job.id.is_some() { "four" } else { "three" };
    writeln!(out, "# leave these {lines} lines as they are")?;
    writeln!(out, "nf:")?;
    for (name, value) in identity.as_object().into_iter().flatten() {
        writeln!(out, "  {name}: {value}")?;
    }
    writeln!(out, "# from here on: text between the quotes; a quotation mark inside a text is written \\\"")?;
    writeln!(out, "worker:")?;
    writeln!(out, "  # your name, between the quotes")?;
    writeln!(out, "  name: \"\"")?;
    writeln!(out, "# completed; or cannot_judge, then add a line such as   reason: \"why not\"   and take")?;
    writeln!(out, "# everything from output: on away")?;
    writeln!(out, "status: completed")?;
    let schema = &packet.job.question.output;
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            writeln!(out, "output:")?;
            for (key, inner) in asked(schema, properties) {
                writeln!(out, "  # {}", hint(inner))?;
                writeln!(out, "  {}: {}", Value::from(key.as_str()), blank_of(inner))?;
            }
        }
        None => writeln!(out, "# {}\noutput: {}", hint(schema), blank_of(schema))?,
    }
    writeln!(out, "# END NF FORM {}\n", packet.handoff)
}

/// A field of the form in words, made from its schema.
fn hint(schema: &Value) -> String {
    let mut words = Vec::new();
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        words.push(format!("one of {}", values.join(", ")));
    } else if let Some(kind) = schema.get("type").and_then(Value::as_str) {
        words.push(match kind {
            "array" => "a list, such as [\"first\", \"second\"]".to_owned(),
            "string" => "text, between the quotes".to_owned(),
            "number" | "integer" => format!("a {kind} in place of null"),
            "boolean" => "true or false in place of null".to_owned(),
            other => format!("a JSON {other}"),
        });
    }
    for (key, word) in
        [("minimum", "from"), ("maximum", "to"), ("minItems", "at least"), ("minLength", "at least")]
    {
        if let Some(bound) = schema.get(key) {
            words.push(format!("{word} {bound}"));
        }
    }
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        words.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if words.is_empty() { "any value".to_owned() } else { words.join(", ") }
}

/// One JSON document for an agent: the same job, ids and form.
fn agent(packet: &Packet<'_>) -> String {
    let artifacts: Vec<Value> = packet
        .job
        .artifacts()
        .iter()
        .zip(packet.artifacts)
        .map(|(artifact, bytes)| {
            let (encoding, content) = match std::str::from_utf8(bytes) {
                Ok(text) => ("utf-8", text.to_owned()),
                Err(_) => ("base64", base64::engine::general_purpose::STANDARD.encode(bytes)),
            };
            json!({"name": artifact.name, "hash": artifact.hash, "bytes": artifact.bytes,
                "encoding": encoding, "content": content})
        })
        .collect();
    let header: Map<String, Value> =
        header(packet).into_iter().map(|(name, value)| (name.replace(' ', "_"), value.into())).collect();
    let input: Map<String, Value> =
        members(&packet.job.question.input).map(|(key, value)| (key.clone(), value.clone())).collect();
    let document = json!({
        "nf_packet": packet.handoff,
        "instructions": sentences(packet, Transport::Agent),
        "header": header,
        "input": input,
        "artifacts": artifacts,
        "rubric": packet.job.question.rubric,
        "output_schema": packet.job.question.output,
        "evidence": packet.job.question.evidence,
        "return_form": blank(packet.job, packet.handoff, packet.nonce, Transport::Agent),
    });
    pretty(&document) + "\n"
}
