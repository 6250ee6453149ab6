//! Calls that were read together are synced once, and none is answered before its own bytes are durable.

use serde_json::{Value, json};

use super::{Server, document};
use crate::expect::{records, refused};
use crate::faults::trace::strace;
use crate::harness::{NF, Project};

/// A server under strace, with what it is asked all at once, and what it answered.
fn traced(project: &Project, options: &[&str], calls: &[Value]) -> (String, Vec<Value>) {
    let trace = tempfile::NamedTempFile::new().expect("a file");
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "2000000", "-o"]).arg(trace.path()).args(options);
    command.arg(NF).arg("mcp").current_dir(project.path()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut server = Server::bare(command);
    server.initialize("2025-11-25");
    let all: String = calls
        .iter()
        .enumerate()
        .map(|(id, call)| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string() + "\n"
        })
        .collect();
    server.write(all.as_bytes());
    let (mut rest, status) = server.end();
    assert!(status.success(), "{status}");
    rest.sort_by_key(|message| message["id"].as_i64());
    (std::fs::read_to_string(trace.path()).expect("a trace"), rest)
}

fn steps(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({"name": "nf_run_step", "arguments": {"cursor": format!("c{number}")}}))
        .collect()
}

/// The numbers after a sign in a text of strace, which escapes quotes as often as JSON does.
fn numbers_after(text: &str, sign: &str) -> Vec<u64> {
    let parts = text.split(sign).skip(1);
    parts.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

#[test]
fn calls_that_are_read_together_are_synced_together_and_answered_after_it() {
    if strace().is_none() {
        return;
    }
    let project = Project::new();
    project.start();
    let options = ["-e", "trace=write,fdatasync"];
    let (trace, answers) = traced(&project, &options, &steps(100));
    assert_eq!(answers.len(), 100);
    for answer in &answers {
        assert_eq!(document(answer)["ok"], true, "{answer}");
    }
    // In order, each its own record.
    let cursors: Vec<Value> =
        records(&project)[2..].iter().map(|record| record["events"][0]["cursor"].clone()).collect();
    assert_eq!(cursors, (0..100).map(|number| json!(format!("c{number}"))).collect::<Vec<_>>());
    let (mut appended, mut durable, mut syncs, mut told) = (0, 0, 0, 0);
    for line in trace.lines() {
        let of_log = line.contains("/.novelforge/log/");
        if of_log && line.contains(" write(") {
            appended = numbers_after(line, "\\\"seq\\\":").into_iter().max().unwrap_or(appended);
        } else if of_log && line.contains("fdatasync(") && line.trim_end().ends_with("= 0") {
            (durable, syncs) = (appended, syncs + 1);
        } else if line.contains(" write(1<") {
            for seq in numbers_after(line, "\\\"seq\\\":") {
                assert!(seq <= durable, "record {seq} was told when {durable} were durable: {line}");
                told += 1;
            }
        }
    }
    assert_eq!((appended, durable), (102, 102), "{syncs} syncs");
    assert_eq!(told, 100, "each answer names its record");
    assert!((1..=25).contains(&syncs), "{syncs} syncs for 100 calls");
}

#[test]
fn a_sync_that_fails_makes_every_call_of_the_group_not_durable() {
    if strace().is_none() {
        return;
    }
    let project = Project::new();
    project.start();
    let options = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1+"];
    let mut calls = steps(60);
    // One that is refused rests on records of the group too.
    calls.push(json!({"name": "nf_run_step", "arguments": {"cursor": "x", "expect_version": 1}}));
    let (_, answers) = traced(&project, &options, &calls);
    assert_eq!(answers.len(), 61);
    let kinds: Vec<(Value, Value)> = answers
        .iter()
        .map(|answer| {
            let error = document(answer)["error"].clone();
            (error["code"].clone(), error["kind"].clone())
        })
        .collect();
    assert_eq!(kinds[0], (json!(12), json!("not_durable")));
    for (code, kind) in &kinds {
        let is_known = [(12, "not_durable"), (11, "poisoned")].iter().any(|(c, k)| code == c && kind == k);
        assert!(is_known, "{code} {kind}");
    }
    let lost = kinds.iter().filter(|(code, _)| *code == 12).count();
    assert!(lost >= 1, "{kinds:?}");
    // Writing is stopped for all, and doctor leads back.
    refused(&project, &["run", "step", "--cursor", "y"], 11, "poisoned");
    project.nf(&["doctor", "--fix"]).expect(0);
    project.nf(&["verify"]).expect(0);
    project.nf(&["run", "step", "--cursor", "y"]).expect(0);
}

#[test]
fn a_call_that_reads_sees_what_the_same_input_wrote_before_it() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let start = json!({"resource": "novel/pride", "task": "review"});
    let asked: Vec<(i64, i64)> = (0..30)
        .map(|_| {
            (
                server.ask_tool("nf_start", &start),
                server.ask_tool("nf_list", &json!({"kind": "session", "limit": 1})),
            )
        })
        .collect();
    for (start, list) in asked {
        let (start, list) = (server.answer(start), server.answer(list));
        assert_eq!(document(&list)["data"]["items"][0]["id"], document(&start)["data"]["session"]);
    }
}

#[test]
fn one_lock_is_had_for_all_and_a_refusal_leaves_the_others_alone() {
    let project = Project::new();
    let session = project.start();
    let mut server = Server::begin(&project, &[]);
    let step = |cursor: &str, more: Value| {
        let mut arguments = json!({"cursor": cursor, "session": session});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    let asked = [
        server.ask_tool("nf_run_step", &step("a", json!({"op": "key-1"}))),
        server.ask_tool("nf_run_step", &step("..", json!({}))),
        server.ask_tool("nf_run_step", &step("b", json!({"expect_version": 77}))),
        server.ask_tool("nf_run_step", &step("a", json!({"op": "key-1"}))),
        server.ask_tool("nf_run_step", &step("c", json!({"op": "key-1"}))),
        server.ask_tool("nf_run_step", &step("d", json!({"dry_run": true}))),
        server.ask_tool("nf_run_step", &step("e", json!({}))),
    ];
    let answers: Vec<Value> = asked.iter().map(|id| document(&server.answer(*id))).collect();
    let kinds: Vec<&str> =
        answers.iter().map(|answer| answer["error"]["kind"].as_str().unwrap_or("done")).collect();
    assert_eq!(kinds, ["done", "usage", "version_mismatch", "done", "op_conflict", "done", "done"]);
    assert_eq!(answers[0]["record"], answers[3]["record"], "the same key, the same answer");
    assert_eq!(answers[5]["planned"][0]["cursor"], "d");
    let cursors: Vec<Value> =
        records(&project)[2..].iter().map(|record| record["events"][0]["cursor"].clone()).collect();
    assert_eq!(cursors, ["a", "e"]);
    // The lock was given back: a command has it at once.
    project.nf(&["run", "step", "--cursor", "f", "--lock-timeout", "0s"]).expect(0);
}

#[test]
fn no_call_waits_for_the_lock_longer_than_a_call_may() {
    let project = Project::new();
    project.start();
    let mut server = Server::begin(&project, &[]);
    let lock = std::fs::File::open(project.at(".novelforge/lock")).expect("a lock");
    fs2::FileExt::lock_exclusive(&lock).expect("held");
    let begun = std::time::Instant::now();
    let asked: Vec<i64> = (0..20)
        .map(|_| server.ask_tool("nf_run_step", &json!({"cursor": "x", "lock_timeout": "10m"})))
        .collect();
    for id in asked {
        let error = document(&server.answer(id))["error"].clone();
        assert_eq!((&error["code"], &error["kind"]), (&json!(75), &json!("busy")), "{error}");
    }
    // However long each asks for, all are answered in the time of one; the rest is for a loaded machine.
    assert!(begun.elapsed().as_secs() < 90, "{:?}", begun.elapsed());
    drop(lock);
    server.done("nf_run_step", &json!({"cursor": "y"}));
}

#[test]
fn each_call_waits_for_the_lock_as_long_as_it_says_itself() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let lock = std::fs::OpenOptions::new().write(true).open(project.at(".novelforge/lock")).expect("it");
    fs2::FileExt::lock_exclusive(&lock).expect("held");
    let start = |resource: &str, timeout: &str| {
        let task = "review";
        json!({"resource": resource, "task": task, "lock_timeout": timeout})
    };
    let short = server.ask_tool("nf_start", &start("novel/a", "100ms"));
    let long = server.ask_tool("nf_start", &start("novel/b", "18s"));
    // The refusal of the one does not wait for the other, which would wait for this lock.
    let refused = document(&server.answer(short));
    assert_eq!(refused["error"]["kind"], "busy", "{refused}");
    fs2::FileExt::unlock(&lock).expect("free");
    let done = document(&server.answer(long));
    assert_eq!(done["ok"], true, "{done}");
}
