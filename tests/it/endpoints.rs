//! The adapter for endpoints against a server that gives each status, header and shape: class, reason and
//! time to wait, and that no key leaks.
#![cfg(feature = "http")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nf::adapters::ask::{Ask, Failure, Limits, Outcome};
use nf::adapters::http::{Address, Dialect, Endpoint, ask};
use serde_json::{Value, json};

use crate::stub::{Stub, response};

mod keys;

const KEY: &str = "key-that-nobody-may-see-4711";
/// A packet whose length is told by the tokens that it has.
const PACKET: &str = "Judge only what stands in this packet. Would a first-time reader turn the page?\n";
const LONG: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits { wall: LONG, idle: LONG, bytes: 1 << 20 };

fn endpoint(dialect: Dialect, url: &str) -> Endpoint {
    let address = Address::parse(url).expect("an address");
    Endpoint { provider: "the-worker".to_owned(), dialect, address, insecure: false, max_tokens: None }
}

fn put(endpoint: &Endpoint, schema: Option<&Value>, limits: Limits) -> Outcome {
    let stop = AtomicBool::new(false);
    let asked = Ask { packet: PACKET, schema, model: Some("model-1"), limits, stop: &stop };
    let outcome = ask(endpoint, Some(KEY), &asked);
    let told = format!("{outcome:?}");
    assert!(!told.contains(KEY), "the key stands in {told}");
    outcome
}

#[track_caller]
fn failure(outcome: &Outcome) -> Failure {
    outcome.answer.clone().expect_err("a failure")
}

/// What a server of the openai dialect says, with some members in place of others.
fn openai(changes: Value) -> Value {
    let mut body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "model-1-2026",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "{\"a\": 1}", "refusal": null}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27},
    });
    merge(&mut body, changes);
    body
}

/// The same of the anthropic dialect.
fn anthropic(changes: Value) -> Value {
    let mut body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-1-2026",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "{\"a\""},
            {"type": "text", "text": ": 1}"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 5,
            "output_tokens": 7},
    });
    merge(&mut body, changes);
    body
}

fn merge(body: &mut Value, changes: Value) {
    match changes {
        Value::Object(members) => {
            for (name, value) in members {
                merge(&mut body[name.as_str()], value);
            }
        }
        value => *body = value,
    }
}

const BOTH: [Dialect; 2] = [Dialect::Openai, Dialect::Anthropic];

fn whole(dialect: Dialect) -> String {
    match dialect {
        Dialect::Openai => openai(json!({})).to_string(),
        Dialect::Anthropic => anthropic(json!({})).to_string(),
    }
}

#[test]
fn a_packet_goes_out_in_the_words_of_its_dialect_and_an_answer_comes_back() {
    let strict = json!({"type": "object", "additionalProperties": false, "required": ["a"],
        "properties": {"a": {"type": "integer"}}});
    for dialect in BOTH {
        let stub = Stub::saying(response("200 OK", "request-id: req-9\r\n", &whole(dialect)));
        let outcome = put(&endpoint(dialect, &stub.url()), Some(&strict), LIMITS);
        assert_eq!(outcome.answer, Ok(b"{\"a\": 1}".to_vec()));
        let witness = outcome.witness;
        assert_eq!(witness.provider.as_deref(), Some("the-worker"));
        assert_eq!(witness.model_requested.as_deref(), Some("model-1"));
        assert_eq!(witness.model_served.as_deref(), Some("model-1-2026"));
        assert_eq!((witness.tokens_in, witness.tokens_out), (Some(20), Some(7)));
        assert!(witness.request_id.is_some() && witness.notes.is_empty() && !witness.isolation.is_empty());
        let request = stub.requests().remove(0);
        let body = request.json();
        assert_eq!(body["model"], "model-1");
        assert_eq!(body["messages"], json!([{"role": "user", "content": PACKET}]));
        match dialect {
            Dialect::Openai => {
                assert!(
                    request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
                    "{}",
                    request.head
                );
                assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}")));
                assert_eq!(body["response_format"]["type"], "json_schema");
                assert_eq!(body["response_format"]["json_schema"]["strict"], true);
                assert_eq!(body["response_format"]["json_schema"]["schema"], strict);
                assert!(
                    body["response_format"]["json_schema"]["name"].is_string()
                        && body["max_tokens"].is_null()
                );
            }
            Dialect::Anthropic => {
                assert!(request.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", request.head);
                assert_eq!(request.header("x-api-key").as_deref(), Some(KEY));
                assert_eq!(request.header("anthropic-version").as_deref(), Some("2023-06-01"));
                assert_eq!(
                    body["output_config"],
                    json!({"format": {"type": "json_schema", "schema": strict}})
                );
                assert!(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
            }
        }
    }
}

#[test]
fn a_schema_that_is_not_strict_is_left_out_and_that_is_said() {
    let open = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    for dialect in BOTH {
        let stub = Stub::saying(response("200 OK", "", &whole(dialect)));
        let mut endpoint = endpoint(dialect, &format!("{}/v1/", stub.url()));
        endpoint.max_tokens = Some(99);
        let outcome = put(&endpoint, Some(&open), LIMITS);
        assert!(outcome.answer.is_ok());
        assert!(outcome.witness.notes.iter().any(|note| note.contains("schema was not sent")));
        let body = stub.requests().remove(0).json();
        assert!(body["response_format"].is_null() && body["output_config"].is_null(), "{body}");
        assert_eq!(body["max_tokens"], 99);
    }
}

#[test]
fn each_status_has_its_class_its_reason_and_its_wait() {
    let headers = "retry-after: 7\r\n";
    let leaky = format!(
        "{{\"error\": {{\"message\": \"no such {KEY}\", \"type\": \"some_word\", \"code\": \"{KEY}\"}}}}"
    );
    for dialect in BOTH {
        for (status, unavailable, reason, retryable) in [
            ("400 Bad Request", false, "bad_request", false),
            ("401 Unauthorized", true, "unauthorized", false),
            ("402 Payment Required", false, "quota", false),
            ("403 Forbidden", true, "forbidden", false),
            ("404 Not Found", true, "not_found", false),
            ("408 Request Timeout", false, "timeout", true),
            ("413 Too Large", false, "too_large", false),
            ("422 Unprocessable", false, "bad_request", false),
            ("429 Too Many Requests", false, "quota", true),
            ("500 Internal", false, "server_error", true),
            ("503 Unavailable", false, "server_error", true),
            ("529 Overloaded", false, "server_error", true),
            ("204 No Content", false, "bad_request", false),
            ("418 Teapot", false, "bad_request", false),
        ] {
            let body = if status.starts_with("204") { "" } else { &leaky };
            let stub = Stub::saying(response(status, headers, body));
            let failure = failure(&put(&endpoint(dialect, &stub.url()), None, LIMITS));
            assert_eq!((failure.unavailable, failure.reason), (unavailable, reason), "{status}: {failure:?}");
            assert_eq!(failure.retryable, retryable, "{status}");
            let wait = retryable.then_some(Duration::from_secs(7));
            assert_eq!(failure.retry_after, wait, "{status}");
            assert!(failure.detail.contains(&status[..3]), "{failure:?}");
            assert!(body.is_empty() || failure.detail.contains("(some_word)"), "{failure:?}");
            assert_eq!(stub.requests().len(), 1, "an adapter tries nothing twice");
        }
    }
    for word in ["exceed_context_size_error", "context_length_exceeded"] {
        let body = json!({"error": {"code": 400, "type": word}}).to_string();
        let stub = Stub::saying(response("400 Bad Request", "", &body));
        let failure = failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS));
        assert_eq!((failure.reason, failure.retryable), ("too_large", false), "{failure:?}");
    }
    let date = "date: Tue, 01 Dec 2026 10:00:00 GMT\r\nretry-after: Tue, 01 Dec 2026 10:01:30 GMT\r\n";
    let stub = Stub::saying(response("503 Unavailable", date, "busy"));
    let failure = failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(90)));
}

#[test]
fn what_a_provider_calls_done_is_not_always_an_answer() {
    let choice = |choice: Value| {
        let mut body = openai(json!({}));
        merge(&mut body["choices"][0], choice);
        body
    };
    let rows = [
        (Dialect::Openai, choice(json!({"finish_reason": "length"})), "truncated_output"),
        (Dialect::Openai, choice(json!({"finish_reason": "content_filter"})), "content_filter"),
        (Dialect::Openai, choice(json!({"finish_reason": "tool_calls"})), "unfinished"),
        (Dialect::Openai, choice(json!({"message": {"refusal": "I will not."}})), "refusal"),
        (Dialect::Openai, choice(json!({"message": {"content": null}})), "empty_answer"),
        (Dialect::Openai, choice(json!({"message": {"content": " \n"}})), "empty_answer"),
        (Dialect::Openai, openai(json!({"choices": []})), "bad_response"),
        (Dialect::Openai, openai(json!({"choices": null})), "bad_response"),
        (Dialect::Openai, json!({"error": {"message": "no"}}), "bad_response"),
        (Dialect::Openai, json!([]), "bad_response"),
        (Dialect::Openai, openai(json!({"usage": {"prompt_tokens": 9}})), "truncated_input"),
        (Dialect::Openai, openai(json!({"usage": {"prompt_tokens": 1}})), "truncated_input"),
        (Dialect::Anthropic, anthropic(json!({"stop_reason": "max_tokens"})), "truncated_output"),
        (Dialect::Anthropic, anthropic(json!({"stop_reason": "refusal"})), "refusal"),
        (Dialect::Anthropic, anthropic(json!({"stop_reason": "tool_use"})), "unfinished"),
        (Dialect::Anthropic, anthropic(json!({"content": []})), "empty_answer"),
        (Dialect::Anthropic, anthropic(json!({"content": "{}"})), "bad_response"),
        (
            Dialect::Anthropic,
            anthropic(json!({"usage": {"input_tokens": 1, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 1}})),
            "truncated_input",
        ),
        (Dialect::Anthropic, json!({"type": "error", "error": {"type": "api_error"}}), "bad_response"),
    ];
    for (dialect, body, reason) in rows {
        let stub = Stub::saying(response("200 OK", "", &body.to_string()));
        let failure = failure(&put(&endpoint(dialect, &stub.url()), None, LIMITS));
        assert_eq!((failure.reason, failure.unavailable), (reason, false), "{body}");
        assert_eq!(failure.retryable, reason != "truncated_input", "{body}");
    }
    // What is not counted is not held against anybody; it is noted.
    for usage in [json!(null), json!({"prompt_tokens": 0})] {
        let stub = Stub::saying(response("200 OK", "", &openai(json!({"usage": usage})).to_string()));
        let outcome = put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS);
        assert!(outcome.answer.is_ok() && outcome.witness.notes[0].contains("does not count"));
    }
    let stub = Stub::saying(response("200 OK", "", &choice(json!({"finish_reason": null})).to_string()));
    let outcome = put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS);
    assert!(outcome.answer.is_ok() && outcome.witness.notes[0].contains("does not say how"));
}

#[test]
fn broken_responses_are_failures_and_no_answers() {
    let body = whole(Dialect::Openai);
    let length = body.len();
    let half = &body[..length / 2];
    let (head, chunk) = ("HTTP/1.1 200 OK\r\n", format!("{:x}\r\n{half}\r\n", half.len()));
    for (bytes, reason) in [
        ("garbage\r\n\r\n".to_owned(), "bad_response"),
        (response_text("200 OK", "<html>"), "bad_response"),
        (response_text("200 OK", ""), "bad_response"),
        (response_text("200 OK", half), "bad_response"),
        (format!("{head}\r\n{half}"), "bad_response"),
        (format!("{head}content-length: {length}\r\n\r\n{half}"), "connection_lost"),
        (format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}"), "connection_lost"),
        (format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n"), "bad_response"),
        (format!("{head}content-len"), "connection_lost"),
        (String::new(), "connection_lost"),
        (format!("{head}x: {}\r\n\r\n", "y".repeat(200_000)), "bad_response"),
    ] {
        let stub = Stub::saying(bytes.clone());
        let failure = failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS));
        let shown: String = bytes.chars().take(90).collect();
        assert!(!failure.unavailable && failure.retryable, "{shown}: {failure:?}");
        assert_eq!(failure.reason, reason, "{shown}: {failure:?}");
    }
    let (one, two) = body.split_at(length / 3);
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    let stub = Stub::saying(chunked);
    assert!(put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS).answer.is_ok());
}

fn response_text(status: &str, body: &str) -> String {
    String::from_utf8(response(status, "", body)).expect("text")
}

#[test]
fn a_response_has_an_end_whatever_the_other_side_does() {
    let short = Limits { wall: Duration::from_millis(600), ..LIMITS };
    let idle = Limits { idle: Duration::from_millis(300), ..LIMITS };
    let silent = Stub::new(|_, stream| {
        let _ = stream.flush();
        std::thread::sleep(LONG);
    });
    let begun = Stub::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{");
        std::thread::sleep(LONG);
    });
    let slow = Stub::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let headers = Stub::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"x: y\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    for (stub, limits) in
        [(&silent, short), (&begun, short), (&begun, idle), (&slow, short), (&headers, short)]
    {
        let failure = failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, limits));
        assert_eq!((failure.reason, failure.retryable), ("timeout", true), "{failure:?}");
    }
    let endless = |head: &'static [u8]| {
        Stub::new(move |_, stream| {
            let _ = stream.write_all(head);
            while stream.write_all(&[b' '; 65536]).is_ok() {}
        })
    };
    for stub in [
        endless(b"HTTP/1.1 200 OK\r\n\r\n"),
        endless(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"),
        endless(b"HTTP/1.1 500 No\r\n\r\n"),
    ] {
        for limits in [LIMITS, Limits { bytes: u64::MAX, ..LIMITS }] {
            let failure = failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, limits));
            assert_eq!((failure.reason, failure.retryable), ("too_large", false), "{failure:?}");
        }
    }
}

#[test]
fn a_call_ends_when_it_is_wanted_no_longer() {
    let (stop, gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (wish, seen) = (stop.clone(), gone.clone());
    let stub = Stub::new(move |_, stream| {
        wish.store(true, Ordering::Relaxed);
        // The other side closes the connection: nothing is left behind.
        let mut byte = [0];
        let read = std::io::Read::read(stream, &mut byte);
        seen.store(!matches!(read, Ok(1)), Ordering::Relaxed);
    });
    let asked = Ask { packet: PACKET, schema: None, model: None, limits: LIMITS, stop: &stop };
    let outcome = ask(&endpoint(Dialect::Openai, &stub.url()), Some(KEY), &asked);
    assert_eq!(failure(&outcome).reason, "stopped");
    assert!(stub.requests()[0].json()["model"].is_null(), "no model was named");
    while !gone.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
