//! What is read out of the events that the program really prints, and out of ones that no program should.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::adapters::agent::tests::tool;
use crate::adapters::ask::Limits;
use crate::adapters::child::End;
use crate::adapters::room::tests::house;

const HELP: &str = include_str!("../../../tests/fixtures/agents/codex-exec-help.txt");
const COMPLETED: &str = include_str!("../../../tests/fixtures/agents/codex-completed.jsonl");
const UNAUTHORIZED: &str = include_str!("../../../tests/fixtures/agents/codex-unauthorized.jsonl");
const FAILED: &str = include_str!("../../../tests/fixtures/agents/codex-failed.jsonl");
const QUOTA: &str = include_str!("../../../tests/fixtures/agents/codex-quota.jsonl");
const RETRYING: &str = include_str!("../../../tests/fixtures/agents/codex-retrying.jsonl");

fn seen(output: &str, end: End, packet: &str) -> (Result<(), Failure>, Witness) {
    let limits = Limits { wall: Duration::from_secs(9), idle: Duration::from_secs(9), bytes: 99 };
    let stop = AtomicBool::new(false);
    let ask = Ask { packet, schema: None, model: None, limits, stop: &stop };
    let ended = Ended { output: output.as_bytes().to_vec(), end, invocation: None };
    let mut witness = Witness::default();
    (read(&ended, &ask, &mut witness), witness)
}

#[test]
fn the_installed_version_has_the_options_and_the_command_line_holds_no_packet() {
    let installed = tool(HELP);
    assert!(CODEX.required.iter().all(|flag| installed.lists(flag)), "{CODEX:?}");
    let (house, schema) = (house(), Path::new("/side/schema.json"));
    let room = house.room().unwrap();
    let words = command(&installed, &room, Some("m"), Some(schema));
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let all = words
        .join("|")
        .replace(room.folder.to_str().unwrap(), "DIR")
        .replace(room.side.to_str().unwrap(), "SIDE");
    assert_eq!(
        all,
        "/no/tool|exec|--json|--ephemeral|--ignore-user-config|--ignore-rules|--skip-git-repo-check|\
         --sandbox|read-only|-C|DIR|-m|m|-c|project_doc_max_bytes=0|-c|mcp_servers={}|--output-schema|\
         /side/schema.json|-o|SIDE/last.json|-"
    );
}

#[test]
fn a_turn_that_was_completed_tells_its_thread_and_tokens() {
    let (read, witness) = seen(COMPLETED, End::Exit(0), "short");
    assert_eq!(read, Ok(()));
    assert_eq!(witness.native_session.as_deref(), Some("01a23137-200b-7d61-8b4e-c1ab3792e2b7"));
    assert_eq!((witness.tokens_in, witness.tokens_out), (Some(700), Some(12)));
    let again =
        "{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (status 503)\"}\n".to_owned() + COMPLETED;
    assert_eq!(seen(&again, End::Exit(0), "short").0, Ok(()), "it was connected again, and went on");
}

#[test]
fn what_is_no_verdict_is_named_for_what_it_is() {
    let late = format!("{COMPLETED}{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"boom\"}}}}\n");
    let broken = RETRYING.replace("unexpected status 401 Unauthorized: invalid x-api-key", "stream closed");
    let came = RETRYING.to_owned() + COMPLETED;
    let person =
        format!("{{\"type\":\"item.started\",\"item\":{{\"type\":\"request_user_input\"}}}}\n{COMPLETED}");
    for (output, end, word) in [
        (UNAUTHORIZED, End::Exit(1), "unauthorized"),
        (UNAUTHORIZED, End::Exit(0), "unauthorized"),
        (FAILED, End::Exit(1), "turn_failed"),
        (FAILED, End::Exit(0), "turn_failed"),
        (QUOTA, End::Exit(1), "quota"),
        (&late, End::Exit(0), "turn_failed"),
        (&person, End::Exit(0), "user_input"),
        (&COMPLETED[..COMPLETED.len() - 20], End::Exit(0), "no_result"),
        ("", End::Exit(0), "no_result"),
        (COMPLETED, End::Exit(1), "crash"),
        (COMPLETED, End::Idle, "idle"),
        (RETRYING, End::Wall, "unauthorized"),
        (RETRYING, End::Exit(1), "unauthorized"),
        (RETRYING, End::Stopped, "stopped"),
        (&broken, End::Wall, "timeout"),
        (&came, End::Wall, "timeout"),
    ] {
        assert_eq!(seen(output, end, "short").0.unwrap_err().reason, word, "{output}");
    }
    let cut = seen(COMPLETED, End::Exit(0), &"x".repeat(8 * 701)).0;
    assert_eq!(cut.unwrap_err().reason, "truncated_input");
}

#[test]
fn the_last_message_is_read_from_a_file_and_from_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last.json");
    assert_eq!(message(&file, 99).unwrap_err().reason, "empty");
    std::fs::write(&file, " \n").unwrap();
    assert_eq!(message(&file, 99).unwrap_err().reason, "empty");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(message(&file, 99).unwrap(), b"{}");
    assert_eq!(message(&file, 1).unwrap_err().reason, "too_much_output");
    std::fs::rename(&file, folder.path().join("other")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("other"), &file).unwrap();
    assert_eq!(message(&file, 99).unwrap_err().reason, "empty", "a link leads anywhere");
}
