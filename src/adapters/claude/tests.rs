//! What is read out of the events that the program really prints, and out of ones that no program should.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::adapters::agent::tests::tool;
use crate::adapters::ask::Limits;
use crate::adapters::child::End;

const HELP: &str = include_str!("../../../tests/fixtures/agents/claude-help.txt");
const PLAIN: &str = include_str!("../../../tests/fixtures/agents/claude-plain.jsonl");
const STRUCTURED: &str = include_str!("../../../tests/fixtures/agents/claude-structured.jsonl");
const UNAUTHORIZED: &str = include_str!("../../../tests/fixtures/agents/claude-unauthorized.jsonl");
const RETRYING: &str = include_str!("../../../tests/fixtures/agents/claude-retrying.jsonl");

fn seen(output: &str, end: End, isolate: bool, packet: &str) -> (Result<Vec<u8>, Failure>, Witness) {
    let limits = Limits { wall: Duration::from_secs(9), idle: Duration::from_secs(9), bytes: 99 };
    let stop = AtomicBool::new(false);
    let ask = Ask { packet, schema: None, model: None, limits, stop: &stop };
    let ended = Ended { output: output.as_bytes().to_vec(), end, invocation: None };
    let mut witness = Witness::default();
    (read(&ended, isolate, &ask, &mut witness), witness)
}

fn reason(output: &str, end: End) -> &'static str {
    seen(output, end, false, "").0.unwrap_err().reason
}

#[test]
fn the_installed_version_has_the_options_and_the_command_line_holds_no_packet() {
    let installed = tool(HELP);
    assert!(CLAUDE.required.iter().all(|flag| installed.lists(flag)), "{CLAUDE:?}");
    assert!(!installed.lists(TURNS), "left out, and noted");
    let schema = serde_json::json!({"type": "object"});
    let words = |tool: &Tool| {
        let words = command(tool, Some("m"), Some(&schema));
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join("|")
    };
    assert_eq!(
        words(&installed),
        "/no/tool|-p|--output-format|stream-json|--verbose|--model|m|--json-schema|{\"type\":\"object\"}|\
         --tools||--strict-mcp-config|--disable-slash-commands|--safe-mode|--setting-sources||\
         --no-session-persistence"
    );
    assert!(words(&tool("--max-turns <n>")).ends_with("|--max-turns|4"));
}

#[test]
fn an_answer_is_the_structured_one_or_else_the_result() {
    let (answer, witness) = seen(PLAIN, End::Exit(0), true, "short");
    assert_eq!(answer.unwrap(), b"{\"hello\": 1}");
    assert_eq!(witness.model_served.as_deref(), Some("stub-model-served"));
    assert_eq!(witness.native_session.as_deref(), Some("3001a443-db2e-4454-8c67-51488ce44b89"));
    assert_eq!((witness.tokens_in, witness.tokens_out), (Some(700), Some(12)));
    assert_eq!(witness.request_id.as_deref(), Some("req_stub_1"));
    assert!(!witness.unattested);
    let (answer, witness) = seen(STRUCTURED, End::Exit(0), true, "short");
    assert_eq!(answer.unwrap(), br#"{"nf":"x","status":"completed"}"#);
    assert_eq!(witness.isolation.len(), 4);
}

#[test]
fn another_mind_is_proved_only_with_another_home_and_no_tools() {
    let tools = PLAIN.replace("\"tools\":[]", "\"tools\":[\"Read\"]");
    let servers = PLAIN.replace("\"mcp_servers\":[]", "\"mcp_servers\":[{\"name\":\"files\"}]");
    let silent = PLAIN.split_once('\n').unwrap().1;
    for (output, isolate) in
        [(PLAIN, false), (tools.as_str(), true), (servers.as_str(), true), (silent, true)]
    {
        let (answer, witness) = seen(output, End::Exit(0), isolate, "short");
        assert!(answer.is_ok() && witness.isolation.is_empty() && !witness.notes.is_empty(), "{output}");
    }
}

#[test]
fn what_is_no_verdict_is_named_for_what_it_is() {
    let turns = PLAIN.replace(
        "\"subtype\":\"success\",\"is_error\":false",
        "\"subtype\":\"error_max_turns\",\"is_error\":true",
    );
    let empty = PLAIN.replace("\"result\":\"{\\\"hello\\\": 1}\"", "\"result\":\" \"");
    let hidden = PLAIN.replace("\"is_error\":false", "\"is_error\":true");
    let silent = PLAIN.replace("\"is_error\":false,", "");
    let quota = UNAUTHORIZED.replace("\"api_error_status\":401", "\"api_error_status\":429");
    let limited = RETRYING.replace("\"error_status\":401", "\"error_status\":429");
    let unknown = RETRYING.replace("\"error_status\":401", "\"error_status\":null");
    // A call that was tried again and then went through is no reason any more.
    let came = RETRYING.to_owned() + PLAIN.rsplit_once("{\"type\":\"result\"").unwrap().0;
    let cut = &PLAIN[..PLAIN.len() - 40];
    for (output, end, word) in [
        (UNAUTHORIZED, End::Exit(1), "unauthorized"),
        (UNAUTHORIZED, End::Exit(0), "unauthorized"),
        (&quota, End::Exit(1), "quota"),
        (&turns, End::Exit(0), "max_turns"),
        (&empty, End::Exit(0), "empty"),
        (&hidden, End::Exit(0), "reported_error"),
        (&silent, End::Exit(0), "reported_error"),
        (cut, End::Exit(0), "no_result"),
        ("", End::Exit(0), "no_result"),
        (PLAIN, End::Exit(1), "crash"),
        (PLAIN, End::Wall, "timeout"),
        (UNAUTHORIZED, End::Wall, "unauthorized"),
        (RETRYING, End::Wall, "unauthorized"),
        (RETRYING, End::Idle, "unauthorized"),
        (RETRYING, End::Signal(9), "unauthorized"),
        (RETRYING, End::Exit(0), "unauthorized"),
        (RETRYING, End::Stopped, "stopped"),
        (RETRYING, End::TooMuch, "too_much_output"),
        (&limited, End::Wall, "quota"),
        (&unknown, End::Wall, "timeout"),
        (&came, End::Wall, "timeout"),
    ] {
        assert_eq!(reason(output, end), word, "{output}");
    }
    let (answer, witness) = seen(UNAUTHORIZED, End::Exit(1), false, "");
    assert!(answer.unwrap_err().unavailable);
    assert_eq!((witness.model_served, witness.unattested), (None, true), "nobody was asked");
    let (answer, _) = seen(PLAIN, End::Exit(0), false, &"x".repeat(8 * 701));
    assert_eq!(answer.unwrap_err().reason, "truncated_input");
}
