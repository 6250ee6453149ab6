//! What is said in each dialect and where the answer stands in what comes back. What a provider calls done is
//! only that: whether the answer is one is for intake and binding to say.

use serde_json::{Value, json};

use super::{Dialect, Endpoint, MAX_TOKENS};
use crate::adapters::ask::{Ask, Failure};
use crate::adapters::strict::not_strict;
use crate::model::witness::Witness;

/// The revision of the anthropic dialect.
pub const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Bytes that an id or the name of a model has at most.
const MAX_NAME: usize = 256;

impl Dialect {
    /// Where a question goes, below `/v1`.
    pub fn path(self) -> &'static str {
        match self {
            Dialect::Openai => "chat/completions",
            Dialect::Anthropic => "messages",
        }
    }
}

/// The body of the request: the packet as the only message. The schema goes along where its form allows.
pub fn request(endpoint: &Endpoint, ask: &Ask<'_>, notes: &mut Vec<String>) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": ask.packet}], "stream": false});
    if let Some(model) = ask.model {
        body["model"] = model.into();
    }
    let tokens = match endpoint.dialect {
        Dialect::Openai => endpoint.max_tokens,
        Dialect::Anthropic => Some(endpoint.max_tokens.unwrap_or(MAX_TOKENS)),
    };
    if let Some(tokens) = tokens {
        body["max_tokens"] = tokens.into();
    }
    let Some(schema) = ask.schema else { return body };
    if let Some(why) = not_strict(schema) {
        notes.push(format!("the schema was not sent: {why}"));
        return body;
    }
    match endpoint.dialect {
        Dialect::Openai => {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": "nf_answer", "strict": true, "schema": schema},
            });
        }
        Dialect::Anthropic => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
    }
    body
}

/// The answer in a response of status 200, with what it says of itself added to the witness.
///
/// # Errors
/// What is no answer, each by its reason.
pub fn answer(
    dialect: Dialect,
    body: &[u8],
    bytes: usize,
    witness: &mut Witness,
) -> Result<Vec<u8>, Failure> {
    let garbled = |why: &str| Err(Failure::failed("bad_response", true, format!("the response {why}")));
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return garbled("is not JSON") };
    if !body.is_object() || body.get("error").is_some_and(|error| !error.is_null()) {
        return garbled("is no answer and no status said so");
    }
    witness.model_served = named(body.get("model"));
    if let Some(id) = named(body.get("id")) {
        witness.request_id = Some(id);
    }
    match dialect {
        Dialect::Openai => openai(&body, bytes, witness),
        Dialect::Anthropic => anthropic(&body, bytes, witness),
    }
}

fn openai(body: &Value, bytes: usize, witness: &mut Witness) -> Result<Vec<u8>, Failure> {
    let usage = |member: &str| body.pointer(&format!("/usage/{member}")).and_then(Value::as_u64);
    witness.tokens_in = usage("prompt_tokens");
    witness.tokens_out = usage("completion_tokens");
    let Some(choice) = body.pointer("/choices/0") else {
        return Err(Failure::failed("bad_response", true, "the response has no choices".to_owned()));
    };
    read_whole(bytes, witness)?;
    if choice.pointer("/message/refusal").and_then(Value::as_str).is_some_and(|said| !said.is_empty()) {
        return Err(refusal("the message is a refusal"));
    }
    match choice.get("finish_reason").and_then(Value::as_str) {
        Some("stop") => {}
        Some("length") => return Err(cut("finish_reason is length")),
        Some("content_filter") => return Err(filtered()),
        Some(_) => return Err(unfinished("finish_reason")),
        None => witness.notes.push("the endpoint does not say how the answer ended".to_owned()),
    }
    match choice.pointer("/message/content") {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone().into_bytes()),
        _ => Err(empty()),
    }
}

fn anthropic(body: &Value, bytes: usize, witness: &mut Witness) -> Result<Vec<u8>, Failure> {
    let usage = |member: &str| body.pointer(&format!("/usage/{member}")).and_then(Value::as_u64);
    // What a cache served was read too.
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let read: Vec<u64> = read.into_iter().filter_map(usage).collect();
    witness.tokens_in =
        (!read.is_empty()).then(|| read.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)));
    witness.tokens_out = usage("output_tokens");
    let Some(content) = body.get("content").and_then(Value::as_array) else {
        return Err(Failure::failed("bad_response", true, "the response has no content".to_owned()));
    };
    read_whole(bytes, witness)?;
    match body.get("stop_reason").and_then(Value::as_str) {
        Some("end_turn" | "stop_sequence") => {}
        Some("max_tokens") => return Err(cut("stop_reason is max_tokens")),
        Some("model_context_window_exceeded") => return Err(cut("the model's context was full")),
        Some("refusal") => return Err(refusal("stop_reason is refusal")),
        Some(_) => return Err(unfinished("stop_reason")),
        None => witness.notes.push("the endpoint does not say how the answer ended".to_owned()),
    }
    let texts = content.iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    let text: String = texts.filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    if text.trim().is_empty() { Err(empty()) } else { Ok(text.into_bytes()) }
}

/// A server that cuts what it reads says nothing of it but the count. A token has four bytes or so; one that
/// has over eight on the average is a text that was not read to its end.
fn read_whole(bytes: usize, witness: &mut Witness) -> Result<(), Failure> {
    match witness.tokens_in {
        Some(0) | None => {
            witness.notes.push("the endpoint does not count what it read".to_owned());
            Ok(())
        }
        Some(tokens) if tokens < bytes as u64 / 8 => {
            let detail = format!(
                "the endpoint read {tokens} tokens of a packet of {bytes} bytes; give the model \
                a larger context"
            );
            Err(Failure::failed("truncated_input", false, detail))
        }
        Some(_) => Ok(()),
    }
}

fn cut(why: &str) -> Failure {
    Failure::failed("truncated_output", true, format!("the answer was cut: {why}; max_tokens allows more"))
}

fn refusal(why: &str) -> Failure {
    Failure::failed("refusal", true, format!("the model would not answer: {why}"))
}

fn filtered() -> Failure {
    Failure::failed("content_filter", true, "the provider's filter took the answer away".to_owned())
}

fn unfinished(member: &str) -> Failure {
    Failure::failed("unfinished", true, format!("{member} is none of an answer that is whole"))
}

fn empty() -> Failure {
    Failure::failed("empty_answer", true, "the answer is empty".to_owned())
}

/// A short text of the other side's, as it may be kept.
pub fn named(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    let kept = !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    kept.then(|| text.to_owned())
}
