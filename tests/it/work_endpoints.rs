//! Endpoints as workers of `work`, against a server on this machine that answers as it is told: a verdict is
//! bound with what was seen, each failure leads on as its class says, and a key stands nowhere afterwards.

use std::io::Write;

use serde_json::json;

use crate::expect::{done, events_of, failed, names, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::CLASS;
use crate::harness::{Packet, Project};
use crate::stub::{Request, Stub, response};
use crate::work::{WORK, provenance};
use crate::work_agents::strict;
use crate::workers::with_settings;

const KEY: &str = "key-that-nobody-may-see-8317";
const NOW: &str = "2026-06-01T08:00:00Z";

/// The packet of a request, which is its only message.
fn packet(request: &Request) -> Packet {
    let body = request.json();
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(1), "{body}");
    Packet::read(body["messages"][0]["content"].as_str().expect("a text"))
}

/// A response of either dialect with this text as the answer, by `served`.
fn saying(request: &Request, text: &str, served: &str) -> Vec<u8> {
    let read = request.body.len() / 4;
    let body = if request.head.contains("/v1/messages") {
        json!({"id": "msg-7", "type": "message", "role": "assistant", "model": served,
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": read, "output_tokens": 9}})
    } else {
        json!({"id": "chatcmpl-7", "object": "chat.completion", "model": served,
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, "refusal": null}}],
            "usage": {"prompt_tokens": read, "completion_tokens": 9}})
    };
    response("200 OK", "content-type: application/json\r\n", &body.to_string())
}

/// A server that judges every packet so.
fn judging(verdict: &'static str, served: &'static str) -> Stub {
    Stub::new(move |request, stream| {
        let answer = packet(request).verdict(verdict);
        drop(stream.write_all(&saying(request, &answer, served)));
    })
}

/// A project whose workers are these servers in order, named `one`, `two` and so on, and one queued question.
fn asked(terms: &str, stubs: &[(&str, &Stub)]) -> (Project, String) {
    let mut project = Project::testing(NOW);
    let mut workers = String::from("workers:\n");
    for (name, (kind, stub)) in ["one", "two", "three"].iter().zip(stubs) {
        let url = stub.url();
        workers += &format!("  {name}: {{kind: {kind}, url: '{url}', model: model-1, key_env: A_KEY}}\n");
    }
    with_settings(&mut project, &workers);
    project.set("A_KEY", KEY);
    project.set("NF_LOG", "trace");
    project.write("job.yaml", strict().replace("min_grade: declared", terms));
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let open = ["handoff", "open", "--class", CLASS, "--max-attempts", "9"];
    let handoff = project.nf(&open).expect(0).line();
    (project, handoff)
}

fn line<'a>(workers: &[&'a str]) -> Vec<&'a str> {
    let named = workers.iter().flat_map(|name| ["--worker-config", name]);
    WORK.iter().copied().chain(named).collect()
}

/// Every file of the project's folder but the settings, for what must stand in none of them.
fn everything(project: &Project) -> Vec<u8> {
    let files = walkdir::WalkDir::new(project.path()).into_iter().map(|entry| entry.expect("an entry"));
    let files = files.filter(|entry| entry.file_type().is_file());
    files.flat_map(|entry| std::fs::read(entry.path()).expect("a file")).collect()
}

#[track_caller]
fn keyless(project: &Project, said: &[&str]) {
    let all = everything(project);
    assert!(!all.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "the key stands in the store");
    assert!(said.iter().all(|text| !text.contains(KEY)), "the key was told: {said:?}");
}

#[test]
fn an_endpoint_answers_once_and_what_was_seen_of_it_is_recorded() {
    for (kind, verdict) in
        [("openai", "accept"), ("openai", "reject"), ("anthropic", "accept"), ("anthropic", "reject")]
    {
        let stub = judging(verdict, "model-1");
        let (project, handoff) = asked("min_grade: attested, models: [model-1]", &[(kind, &stub)]);
        let ran = project.nf(&[line(&["one"]), vec!["--json"]].concat()).expect(0);
        let item = ran.json()["data"]["items"][0].clone();
        assert_eq!((&item["fate"], &item["worker"]), (&json!("valid"), &json!("one")));
        assert_eq!((&item["verdict"]["value"], &item["grade"]), (&json!(verdict), &json!("attested")));
        let seen = provenance(&project, item["result"].as_str().expect("a result"));
        assert_eq!((&seen["transport"], &seen["family"]), (&json!("http"), &json!("local_model")));
        assert_eq!((&seen["model_requested"], &seen["model_served"]), (&json!("model-1"), &json!("model-1")));
        assert_eq!((&seen["provider"], &seen["witness"]["provider"]), (&json!("one"), &json!("one")));
        assert!(seen["witness"]["request_id"].is_string() && seen["witness"]["tokens_in"].is_u64(), "{seen}");
        let requests = stub.requests();
        assert_eq!(requests.len(), 1);
        // What the answer must repeat is fixed in the schema, which nobody else sees.
        let body = requests[0].json();
        let schema = body.pointer("/response_format/json_schema/schema");
        let schema = schema.or(body.pointer("/output_config/format/schema")).expect("a schema");
        let packet = packet(&requests[0]);
        for (member, value) in
            [("job", &packet.job), ("fingerprint", &packet.fingerprint), ("nonce", &packet.nonce)]
        {
            let fixed = &schema["properties"]["nf"]["properties"][member]["const"];
            assert_eq!(fixed, &json!(value), "{member} of {kind}");
        }
        let gate = item["gate"].as_str().expect("a gate");
        assert_eq!(done(&project, &["consume", "--as", gate])["outcome"]["value"], verdict);
        assert_eq!(shown(&project, &handoff, "/state"), "completed");
        keyless(&project, &[&ran.stdout, &ran.stderr]);
        assert_sound(&project);
    }
}

#[test]
fn a_refused_key_ends_the_evidence_of_that_name_and_the_next_worker_is_asked() {
    let refusing = Stub::saying(response("401 Unauthorized", "", &format!("{{\"error\": \"{KEY}\"}}")));
    let other = judging("accept", "model-1");
    let (mut project, handoff) =
        asked("min_grade: declared", &[("openai", &refusing), ("anthropic", &refusing), ("openai", &other)]);
    for name in ["one", "three"] {
        let declare = "--family local_model --permission-class diagnostic --cost free --interactive false \
            --executes-model true --isolated true";
        let words: Vec<&str> =
            ["capability", "declare", name].into_iter().chain(declare.split_whitespace()).collect();
        done(&project, &words);
    }
    // With nobody left the way is missing, and each reason is told; the question stays in the queue.
    let error = failed(&project, &line(&["one", "two"]), b"", 6, "execution_unavailable");
    names(&error["cause"], &["unauthorized", "401"]);
    assert_eq!(shown(&project, "one", "/available"), false);
    assert_eq!(shown(&project, "three", "/available"), true, "that says nothing of others");
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
    // The queue gives it out again after a pause.
    project.set("NF_NOW", "2026-06-01T09:00:00Z");
    let drained =
        failed(&project, &[line(&["one", "two"]), vec!["--drain"]].concat(), b"", 6, "execution_unavailable");
    names(&drained["cause"], &["one: unauthorized", "two: unauthorized"]);
    assert_eq!(refusing.requests().len(), 4, "each is asked once by each work");
    project.set("NF_NOW", "2026-06-01T10:00:00Z");
    let ran = project.nf(&[line(&["one", "three"]), vec!["--json"]].concat()).expect(0);
    let items = ran.json()["data"]["items"].clone();
    assert_eq!(
        (&items[0]["fate"], &items[0]["reason"]),
        (&json!("execution_unavailable"), &json!("unauthorized"))
    );
    assert_eq!((&items[1]["fate"], &items[1]["worker"]), (&json!("valid"), &json!("three")));
    keyless(&project, &[&ran.stdout, &ran.stderr, &error.to_string(), &drained.to_string()]);
    assert_sound(&project);
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_the_endpoint_says() {
    let limited = Stub::saying(response("429 Too Many Requests", "retry-after: 120\r\n", "{}"));
    let (mut project, handoff) = asked("min_grade: declared", &[("openai", &limited)]);
    let error = failed(&project, &line(&["one"]), b"", 7, "execution_failed");
    names(&error["cause"], &["quota"]);
    let details = &error["details"];
    assert_eq!((&details["retryable"], &details["retry_after_ms"]), (&json!(true), &json!(120_000)));
    let ready = "2026-06-01T08:02:00.000000Z";
    assert_eq!(details["items"][0]["ready_at"], ready);
    assert_eq!(shown(&project, &handoff, "/ready_at"), ready);
    failed(&project, &line(&["one"]), b"", 8, "pending");
    project.set("NF_NOW", "2026-06-01T08:01:59Z");
    failed(&project, &line(&["one"]), b"", 8, "pending");
    assert_eq!(limited.requests().len(), 1, "nothing is called before its time");
    project.set("NF_NOW", ready);
    failed(&project, &line(&["one"]), b"", 7, "execution_failed");
    assert_eq!(limited.requests().len(), 2);
}

#[test]
fn a_server_that_fails_is_followed_by_another_worker_with_the_same_question() {
    for status in ["500 Broken", "503 Busy", "529 Overloaded", "408 Slow"] {
        let failing = Stub::saying(response(status, "retry-after: 30\r\n", "{}"));
        let other = judging("accept", "model-1");
        let (project, handoff) = asked("min_grade: declared", &[("anthropic", &failing), ("openai", &other)]);
        let items = done(&project, &line(&["one", "two"]))["items"].clone();
        assert_eq!((&items[0]["fate"], &items[1]["fate"]), (&json!("execution_failed"), &json!("valid")));
        let (first, second) = (packet(&failing.requests()[0]), packet(&other.requests()[0]));
        assert_eq!((first.job, first.fingerprint), (second.job, second.fingerprint), "{status}");
        assert_ne!(first.nonce, second.nonce, "each attempt has its own");
        assert_eq!(shown(&project, &handoff, "/number"), 2);
        assert_sound(&project);
    }
}

#[test]
fn a_request_that_is_refused_for_good_is_queued_anew_for_somebody_else() {
    let refusing = Stub::saying(response("400 No", "", "{}"));
    let other = judging("accept", "model-1");
    let (project, handoff) = asked("min_grade: declared", &[("openai", &refusing), ("openai", &other)]);
    let error = failed(&project, &line(&["one"]), b"", 7, "execution_failed");
    assert_eq!(
        (&error["details"]["reason"], &error["details"]["retryable"]),
        (&json!("bad_request"), &json!(false))
    );
    names(&error["fix"], &["tells why", "nf handoff open j-", "--max-attempts 2"]);
    assert_eq!(shown(&project, &handoff, "/state"), "exhausted");
    let job = shown(&project, &handoff, "/job").as_str().expect("an id").to_owned();
    project.nf(&["handoff", "open", &job, "--class", CLASS]).expect(0);
    assert_eq!(done(&project, &line(&["two"]))["answered"], 1);
    let (first, second) = (packet(&refusing.requests()[0]), packet(&other.requests()[0]));
    assert_eq!((first.job, first.fingerprint), (second.job, second.fingerprint));
}

#[test]
fn after_an_answer_nobody_else_is_asked_whatever_it_says() {
    let never = judging("accept", "model-1");
    let broken = Stub::new(|request, stream| {
        drop(stream.write_all(&saying(request, "{\"nf\": {}}", "model-1")));
    });
    for (stub, code) in
        [(&judging("reject", "model-1"), 0), (&judging("perhaps", "model-1"), 5), (&broken, 5)]
    {
        let (project, handoff) = asked("min_grade: declared", &[("openai", stub), ("openai", &never)]);
        project.nf(&line(&["one", "two"])).expect(code);
        assert_eq!(shown(&project, &handoff, "/number"), 1);
        // A verdict is final: there is nothing left to be claimed.
        if code == 0 {
            project.nf(&line(&["two"])).expect(8);
        }
    }
    assert_eq!(never.requests().len(), 0);
}

#[test]
fn an_answer_of_another_model_than_the_job_allows_fails_that_check_alone() {
    for served in ["model-2", "model-1-20260101"] {
        let stub = judging("accept", served);
        let (project, handoff) = asked("min_grade: declared, models: [model-1]", &[("openai", &stub)]);
        let error = failed(&project, &line(&["one"]), b"", 5, "semantic_invalid");
        assert_eq!(error["cause"], format!("model: want one of model-1, got {served}"));
        assert_eq!(events_of(&project, "result.stored").len(), 0);
        assert_eq!(shown(&project, &handoff, "/state"), "queued");
    }
    // Who does not say which model served is not taken at its answer's word.
    let silent = Stub::new(|request, stream| {
        let answer = packet(request).verdict("accept").replace("some-model-1", "model-1");
        let said = String::from_utf8(saying(request, &answer, "SERVED")).expect("text");
        // Of the same length, so that the response's own length stays true.
        drop(stream.write_all(said.replace("\"model\":\"SERVED\"", "\"mode_\":\"SERVED\"").as_bytes()));
    });
    let (project, _) = asked("min_grade: declared, models: [model-1]", &[("openai", &silent)]);
    let error = failed(&project, &line(&["one"]), b"", 5, "semantic_invalid");
    names(&error["cause"], &["model: want one of model-1, got unattested"]);
}

#[test]
fn a_key_stands_nowhere_whatever_an_endpoint_makes_of_it() {
    let echo = |status: &str| response(status, &format!("x-request-id: {KEY}\r\n"), &format!("\"{KEY}\""));
    let leaks = Stub::new(|request, stream| {
        let answer = packet(request).verdict("accept").replace("nine people", KEY);
        drop(stream.write_all(&saying(request, &answer, "model-1")));
    });
    let named = judging("accept", KEY);
    let mut stubs: Vec<(Stub, i32)> = ["401 No", "400 No", "500 No", "302 Found"]
        .into_iter()
        .map(|status| (Stub::saying(echo(status)), if status.starts_with("401") { 6 } else { 7 }))
        .collect();
    stubs.push((leaks, 7));
    stubs.push((named, 0));
    for (stub, code) in &stubs {
        for kind in ["openai", "anthropic"] {
            let (project, _) = asked("min_grade: declared", &[(kind, stub)]);
            let plain = project.nf(&line(&["one"])).expect(*code);
            let told = project.nf(&["log", "--json"]).expect(0);
            let status = project.nf(&["status"]).expect(0);
            keyless(&project, &[&plain.stdout, &plain.stderr, &told.stdout, &told.stderr, &status.stdout]);
            let request = &stub.requests()[0];
            let sent = request.header("authorization").or(request.header("x-api-key")).expect("a key");
            assert!(sent.ends_with(KEY), "it was sent");
        }
    }
}
