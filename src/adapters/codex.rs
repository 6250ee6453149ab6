//! Codex as a reviewer: one run without the user's settings, rules or a session that is kept. Owns its
//! command line and the meaning of its events. The answer is the last message's file and never an earlier
//! message. Its sandbox lets it read the disk, so that another mind is never proved here, only declared.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use super::agent::{self, Tool, named};
use super::ask::{Ask, Failure, Outcome};
use super::child::{self, Ended, Run};
use super::flags::CODEX;
use super::room::{House, Room};
use crate::model::hash::canonical;
use crate::model::witness::Witness;

/// The program, where none is named.
pub const PROGRAM: &str = "codex";
/// A failure of which the program tells nothing that is known.
const UNKNOWN: &str = "turn_failed";

/// Finds the program, with all the options that a run needs.
///
/// # Errors
/// As [`Tool::find`].
pub fn find(program: &str, house: &House<'_>) -> Result<Tool, Failure> {
    Tool::find(program, &CODEX, house)
}

fn command(tool: &Tool, room: &Room, model: Option<&str>, schema: Option<&Path>) -> Vec<OsString> {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<OsString>>();
    let mut all: Vec<OsString> = vec![tool.file.clone().into()];
    all.extend(words(&["exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules"]));
    all.extend(words(&["--skip-git-repo-check", "--sandbox", "read-only", "-C"]));
    all.push(room.folder.clone().into());
    all.extend(model.into_iter().flat_map(|model| ["-m", model]).map(OsString::from));
    all.extend(words(&["-c", "project_doc_max_bytes=0", "-c", "mcp_servers={}"]));
    all.extend(schema.into_iter().flat_map(|file| ["--output-schema".into(), file.as_os_str().to_owned()]));
    all.extend(["-o".into(), last(room).into(), "-".into()]);
    all
}

/// Where the last message is written.
fn last(room: &Room) -> std::path::PathBuf {
    room.side.join("last.json")
}

/// Runs the program for one answer.
pub fn ask(tool: &Tool, house: &House<'_>, ask: &Ask<'_>) -> Outcome {
    let mut witness = Witness {
        provider: Some("codex".to_owned()),
        model_requested: ask.model.map(str::to_owned),
        // It reports no model.
        unattested: true,
        tool_version: Some(tool.version.clone()),
        ..Witness::default()
    };
    let schema = agent::schema(ask, &mut witness.notes);
    let prepared = house.room().and_then(|room| {
        let file = schema.map(|schema| (room.side.join("schema.json"), canonical(&schema)));
        let file = file.map(|(file, text)| std::fs::write(&file, text).map(|()| file)).transpose();
        file.map(|file| (room, file)).map_err(|error| format!("the schema's file: {error}"))
    });
    let (room, schema) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Outcome { answer: Err(Failure::failed("no_room", true, why)), witness },
    };
    let ended = child::run(&Run {
        command: &command(tool, &room, ask.model, schema.as_deref()),
        room: &room,
        input: ask.packet.as_bytes(),
        limits: ask.limits,
        stop: ask.stop,
        house,
    });
    let answer = read(&ended, ask, &mut witness).and_then(|()| message(&last(&room), ask.limits.bytes));
    witness.invocation = ended.invocation;
    Outcome { answer, witness }
}

/// Whether the stream of a run says that its turn was completed, with what it tells of who answered.
fn read(ended: &Ended, ask: &Ask<'_>, witness: &mut Witness) -> Result<(), Failure> {
    let mut completed = false;
    let mut error = None;
    let mut retried = None;
    for event in agent::events(&ended.output) {
        let kind = agent::kind(&event);
        let item = event.pointer("/item/type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "thread.started" => witness.native_session = named(&event, "/thread_id"),
            "turn.completed" => {
                completed = true;
                retried = None;
                witness.tokens_in = event.pointer("/usage/input_tokens").and_then(Value::as_u64);
                witness.tokens_out = event.pointer("/usage/output_tokens").and_then(Value::as_u64);
            }
            "turn.failed" => error = Some(meant(&event, "/error/message")),
            "error" if connects_again(&event) => {
                // Of what is no known failure the limit that was reached says more.
                retried = Some(meant(&event, "/message")).filter(|failure| failure.reason != UNKNOWN);
            }
            "error" => error = error.or(Some(meant(&event, "/message"))),
            _ if wants_a_person(kind) || wants_a_person(item) => {
                error = Some(Failure::failed(
                    "user_input",
                    false,
                    "it asked for a person's input, and there is none",
                ));
            }
            _ => {}
        }
    }
    match (ended.end.failure(&ask.limits), error) {
        (Some(ended), error) => Err(agent::why(ended, error.or(retried))),
        (None, Some(error)) => Err(error),
        (None, None) if !completed => {
            Err(Failure::failed("no_result", true, "it ended and its turn was not completed"))
        }
        (None, None) => agent::cut(ask.packet, witness.tokens_in).map_or(Ok(()), Err),
    }
}

fn meant(event: &Value, pointer: &str) -> Failure {
    let text = event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    agent::meant(text, UNKNOWN)
}

/// A connection that is made again is told as an error, and the turn goes on.
fn connects_again(event: &Value) -> bool {
    let text = event.get("message").and_then(Value::as_str).unwrap_or_default();
    text.trim_start().to_lowercase().starts_with("reconnecting")
}

fn wants_a_person(word: &str) -> bool {
    ["user_input", "elicitation", "approval_request", "request_permissions"]
        .iter()
        .any(|part| word.contains(part))
}

/// The last message, from the file that the program wrote, and from nothing else that may stand there.
fn message(file: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let none = || Failure::failed("empty", true, "it wrote no last message");
    let meta = std::fs::symlink_metadata(file).ok().filter(|meta| meta.is_file()).ok_or_else(none)?;
    if meta.len() > limit {
        return Err(Failure::failed(
            "too_much_output",
            true,
            format!("its last message has more than {limit} bytes"),
        ));
    }
    let bytes = std::fs::read(file).map_err(|_| none())?;
    if bytes.trim_ascii().is_empty() { Err(none()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
