//! What tests ask of an answer: exit code, error kind, and whether anything was written.

use serde_json::Value;

use crate::harness::{Packet, Project};

/// A command line with more options: before `--`, behind which a program stands.
pub fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let at = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    [&arguments[..at], more, &arguments[at..]].concat()
}

/// Runs a command that must be refused with this exit code and kind, and must write nothing. Gives the error.
#[track_caller]
pub fn refused(project: &Project, arguments: &[&str], code: i32, kind: &str) -> Value {
    refused_with(project, arguments, b"", code, kind)
}

/// The same with bytes on standard input.
#[track_caller]
pub fn refused_with(project: &Project, arguments: &[&str], input: &[u8], code: i32, kind: &str) -> Value {
    let before = project.log();
    let error = failed(project, arguments, input, code, kind);
    assert!(before == project.log(), "{arguments:?} wrote to the log");
    error
}

/// Runs a command that must be refused with this exit code and kind, and must record that in one record.
#[track_caller]
pub fn recorded(project: &Project, arguments: &[&str], input: &[u8], code: i32, kind: &str) -> Value {
    let before = records(project).len();
    let error = failed(project, arguments, input, code, kind);
    assert_eq!(records(project).len(), before + 1, "{arguments:?} records its refusal once");
    error
}

/// Runs a command that must fail with this exit code and kind, whatever it writes.
#[track_caller]
pub fn failed(project: &Project, arguments: &[&str], input: &[u8], code: i32, kind: &str) -> Value {
    let arguments = with(arguments, &["--json"]);
    let ran = project.nf_with(&arguments, input).expect(code);
    let document = ran.json();
    let error = document.get("error").unwrap_or_else(|| panic!("{arguments:?} gave no error: {document}"));
    assert_eq!(document["ok"], false, "{document}");
    assert_eq!(error["kind"], kind, "{document}");
    assert_eq!(error["code"], code, "{document}");
    error.clone()
}

/// Runs a command that must end with exit 0, and gives its data.
#[track_caller]
pub fn done(project: &Project, arguments: &[&str]) -> Value {
    done_with(project, arguments, b"")
}

/// The same with bytes on standard input.
#[track_caller]
pub fn done_with(project: &Project, arguments: &[&str], input: &[u8]) -> Value {
    let arguments = with(arguments, &["--json"]);
    let document = project.nf_with(&arguments, input).expect(0).json();
    assert_eq!(document["ok"], true, "{document}");
    document["data"].clone()
}

/// Runs a command that must end with exit 0 and must write nothing.
#[track_caller]
pub fn silent(project: &Project, arguments: &[&str], input: &[u8]) -> Value {
    let before = project.log();
    let data = done_with(project, arguments, input);
    assert!(before == project.log(), "{arguments:?} wrote to the log");
    data
}

/// Every record of the log.
pub fn records(project: &Project) -> Vec<Value> {
    let log = project.log();
    let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a record")).collect()
}

/// Every event of the log, in order.
pub fn events(project: &Project) -> Vec<Value> {
    records(project)
        .iter()
        .flat_map(|record| record["events"].as_array().cloned().unwrap_or_default())
        .collect()
}

/// The events of a type.
pub fn events_of(project: &Project, kind: &str) -> Vec<Value> {
    events(project).into_iter().filter(|event| event["type"] == kind).collect()
}

/// The only session's or another object's member, as `show` tells it.
#[track_caller]
pub fn shown(project: &Project, id: &str, pointer: &str) -> Value {
    let data = done(project, &["show", id]);
    data["object"].pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {data}")).clone()
}

/// Gives a valid answer with this verdict, and the result's id.
#[track_caller]
pub fn answer(project: &Project, packet: &Packet, verdict: &str) -> String {
    project.nf_with(&["reply"], packet.verdict(verdict).as_bytes()).expect(0).line()
}

/// Whether a text names all of these.
#[track_caller]
pub fn names(text: &Value, all: &[&str]) {
    let text = text.as_str().unwrap_or_else(|| panic!("no text: {text}"));
    for word in all {
        assert!(text.contains(word), "{word} in {text}");
    }
}
