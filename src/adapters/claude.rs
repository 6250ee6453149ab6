//! Claude Code as a reviewer: one print-mode run without tools, settings, memory files or a session that is
//! kept. Owns its command line and the meaning of its events. An answer is taken from the final result alone.

use std::ffi::OsString;

use serde_json::Value;

use super::agent::{self, Tool, named};
use super::ask::{Ask, Failure, Outcome};
use super::child::{self, Ended, Run};
use super::flags::CLAUDE;
use super::room::House;
use crate::model::hash::canonical;
use crate::model::witness::Witness;

/// The program, where none is named.
pub const PROGRAM: &str = "claude";
/// Not every version lists it; then the limit of time is the limit of turns too.
const TURNS: &str = "--max-turns";
/// What a model that was never asked is called in an event that the program made up itself.
const NO_MODEL: &str = "<synthetic>";
/// What an event is called that tells of a call which is tried again, with the status that it had.
const RETRY: &str = "api_retry";
/// The one tool that is no tool: by it the answer is given in the shape of the schema.
const ANSWER_TOOL: &str = "StructuredOutput";

/// Finds the program, with all the options that a run needs.
///
/// # Errors
/// As [`Tool::find`].
pub fn find(program: &str, house: &House<'_>) -> Result<Tool, Failure> {
    Tool::find(program, &CLAUDE, house)
}

fn command(tool: &Tool, model: Option<&str>, schema: Option<&Value>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![tool.file.clone().into()];
    words.extend(["-p", "--output-format", "stream-json", "--verbose"].map(OsString::from));
    words.extend(model.into_iter().flat_map(|model| ["--model", model]).map(OsString::from));
    if let Some(schema) = schema {
        let text = String::from_utf8_lossy(&canonical(schema)).into_owned();
        words.extend([OsString::from("--json-schema"), text.into()]);
    }
    words.extend(
        ["--tools", "", "--strict-mcp-config", "--disable-slash-commands", "--safe-mode"].map(OsString::from),
    );
    words.extend(["--setting-sources", "", "--no-session-persistence"].map(OsString::from));
    if tool.lists(TURNS) {
        words.extend([TURNS, "4"].map(OsString::from));
    }
    words
}

/// Runs the program for one answer.
pub fn ask(tool: &Tool, house: &House<'_>, ask: &Ask<'_>) -> Outcome {
    let mut witness = Witness {
        provider: Some("claude-code".to_owned()),
        model_requested: ask.model.map(str::to_owned),
        tool_version: Some(tool.version.clone()),
        ..Witness::default()
    };
    let schema = agent::schema(ask, &mut witness.notes);
    if !tool.lists(TURNS) {
        witness.notes.push(format!("{TURNS} is not listed by this version and was left out"));
    }
    let room = match house.room() {
        Ok(room) => room,
        Err(why) => return Outcome { answer: Err(Failure::failed("no_room", true, why)), witness },
    };
    let ended = child::run(&Run {
        command: &command(tool, ask.model, schema.as_ref()),
        room: &room,
        input: ask.packet.as_bytes(),
        limits: ask.limits,
        stop: ask.stop,
        house,
    });
    let answer = read(&ended, house.isolate, ask, &mut witness);
    witness.invocation = ended.invocation;
    Outcome { answer, witness }
}

/// The answer in the stream of a run, or why there is none, with what the stream tells of who gave it.
fn read(ended: &Ended, isolate: bool, ask: &Ask<'_>, witness: &mut Witness) -> Result<Vec<u8>, Failure> {
    let mut result = None;
    let mut tools = None;
    let mut retried = None;
    for event in agent::events(&ended.output) {
        match agent::kind(&event) {
            "system" if event.get("tools").is_some() => tools = Some(toolless(&event)),
            "system" if event.get("subtype").is_some_and(|subtype| subtype == RETRY) => {
                retried = event.get("error_status").and_then(Value::as_u64);
            }
            "assistant" => {
                retried = None;
                let model = named(&event, "/message/model").filter(|model| model != NO_MODEL);
                witness.model_served = model.or(witness.model_served.take());
                witness.request_id = named(&event, "/request_id").or(witness.request_id.take());
            }
            "result" => result = Some(event),
            _ => {}
        }
    }
    witness.unattested = witness.model_served.is_none();
    if let Some(result) = &result {
        witness.native_session = named(result, "/session_id");
        witness.tokens_in = tokens(result);
        witness.tokens_out = result.pointer("/usage/output_tokens").and_then(Value::as_u64);
    }
    kept_apart(isolate, tools, witness);
    let error = match &result {
        Some(result) => reported(result),
        None => retried.and_then(agent::refused),
    };
    match (ended.end.failure(&ask.limits), error, result) {
        (Some(ended), error, _) => Err(agent::why(ended, error)),
        (None, Some(error), _) => Err(error),
        (None, None, None) => Err(Failure::failed("no_result", true, "it ended without a result")),
        (None, None, Some(result)) => {
            if let Some(cut) = agent::cut(ask.packet, witness.tokens_in) {
                return Err(cut);
            }
            answer(&result).ok_or_else(|| Failure::failed("empty", true, "its result is empty"))
        }
    }
}

fn answer(result: &Value) -> Option<Vec<u8>> {
    match result.get("structured_output") {
        Some(output @ Value::Object(_)) => serde_json::to_vec(output).ok(),
        _ => {
            let text = result.get("result")?.as_str()?;
            (!text.trim().is_empty()).then(|| text.as_bytes().to_vec())
        }
    }
}

/// Tokens of the whole prompt, wherever they were read from.
fn tokens(result: &Value) -> Option<u64> {
    let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let counted = parts.iter().filter_map(|part| result.pointer(&format!("/usage/{part}"))?.as_u64());
    counted.reduce(u64::saturating_add)
}

/// Why a final result is no answer: an error with the subtype of a success is an error.
fn reported(result: &Value) -> Option<Failure> {
    let subtype = result.get("subtype").and_then(Value::as_str).unwrap_or_default();
    let is_error = result.get("is_error") != Some(&Value::Bool(false));
    if subtype == "error_max_turns" {
        return Some(Failure::failed("max_turns", true, "it used up its turns and gave no answer"));
    }
    if subtype == "success" && !is_error {
        return None;
    }
    let status = result.get("api_error_status").and_then(Value::as_u64);
    if let Some(failure) = status.and_then(agent::refused) {
        return Some(failure);
    }
    let text = result.get("result").and_then(Value::as_str).unwrap_or_default();
    Some(agent::meant(text, "reported_error"))
}

/// Whether the program says that the model has no tools and no servers of tools.
fn toolless(event: &Value) -> bool {
    let none = |key: &str| {
        let all = event.get(key).and_then(Value::as_array);
        all.is_none_or(|all| all.iter().all(|one| one == ANSWER_TOOL))
    };
    none("tools") && none("mcp_servers")
}

/// The lines that prove another mind: only where the home folder is another one and the model has no tools.
fn kept_apart(isolate: bool, tools: Option<bool>, witness: &mut Witness) {
    match (isolate, tools) {
        (true, Some(true)) => witness.isolation.extend(
            [
                "a process of its own, in an empty folder outside the project",
                "HOME is an empty folder: no memory, no settings, no earlier session",
                "the program reports no file tools and no tool servers (--tools \"\", --strict-mcp-config)",
                "no customisation and no setting is loaded (--safe-mode, --setting-sources \"\")",
            ]
            .map(str::to_owned),
        ),
        (true, _) => witness.notes.push("the program did not report that the model has no tools".to_owned()),
        (false, _) => witness.notes.push("HOME is the user's own: its memory could be read".to_owned()),
    }
}

#[cfg(test)]
mod tests;
