//! Typed events from outside: recorded once for each key, with no authority, applied once for each consumer.

mod applying;
mod hostile;

use serde_json::{Value, json};

use crate::expect::{
    answer, done, done_with, events_of, failed, names, recorded, records, refused, refused_with, shown,
    silent,
};
use crate::harness::Project;

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// Every type of the contract with its scope, and one of a user's own.
const TYPES: [(&str, &str); 11] = [
    ("resume.requested", "request"),
    ("eval.requested", "request"),
    ("maintenance.requested", "request"),
    ("research.refresh_requested", "request"),
    ("semantic.job_requested", "request"),
    ("semantic.result_arrived", "result"),
    ("eval.result_arrived", "result"),
    ("feedback.observed", "observation"),
    ("acceptance.observed", "observation"),
    ("ci.observed", "observation"),
    ("x.weather/rain", "observation"),
];

fn put<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["event", "put", "ci.observed", "--key", "build/42"], more].concat()
}

#[test]
fn every_type_is_recorded_with_its_scope_and_changes_nothing_else() {
    let project = Project::new();
    let session = project.start();
    let (before, status) = (shown(&project, &session, ""), done(&project, &["status"]));
    for (kind, scope) in TYPES {
        let data = done(&project, &["event", "put", kind, "--key", kind, "--payload", r#"{"do": "it"}"#]);
        assert_eq!(
            (&data["type"], &data["scope"], &data["delivery"]),
            (&json!(kind), &json!(scope), &json!("new"))
        );
        let last = records(&project).pop().expect("a record");
        assert_eq!(last["events"].as_array().map(Vec::len), Some(1), "{last}");
        assert_eq!(last["events"][0]["type"], "event.received");
        let event = shown(&project, data["event"].as_str().expect("an id"), "");
        assert_eq!((&event["type"], &event["scope"]), (&json!(kind), &json!(scope)));
        assert_eq!((&event["session"], &event["payload"]["inline"]["do"]), (&Value::Null, &json!("it")));
    }
    assert_eq!(shown(&project, &session, ""), before, "no event moves a session");
    let after = done(&project, &["status"]);
    for member in ["sessions", "conflicts", "left", "more"] {
        assert_eq!(after[member], status[member], "{member}");
    }
    assert_eq!(
        done(&project, &["list", "event", "--limit", "50"])["items"].as_array().map(Vec::len),
        Some(11)
    );
}

#[test]
fn an_unknown_type_is_refused_with_the_nearest_one() {
    let project = Project::new();
    for (word, near) in [
        ("ci.observd", "ci.observed"),
        ("resume.request", "resume.requested"),
        ("acceptance.observe", "acceptance.observed"),
    ] {
        let error = refused(&project, &["event", "put", word, "--key", "k"], 2, "usage");
        names(&error["cause"], &[near]);
    }
    for word in ["canon.write", "x.", "x", "", "X.a", "x. a", "ci.observed\u{1b}[31m", &"x.".repeat(5000)] {
        let error = refused(&project, &["event", "put", word, "--key", "k"], 2, "usage");
        names(&error["fix"], &["acceptance.observed", "x.NAME"]);
        assert!(error["message"].as_str().is_some_and(|text| text.len() < 200), "{error}");
    }
    let help = project.nf(&["event", "put", "--help"]).expect(0).stdout;
    for (word, _) in nf::model::external::EVENT_TYPES {
        assert!(help.contains(word), "{word} in {help}");
    }
    for word in ["x.canon_write", "x.Framework_Promotion", "x.a/durable_taste_write"] {
        refused(&project, &["event", "put", word, "--key", "k"], 3, "authority_denied");
    }
}

#[test]
fn a_retry_with_another_time_transport_or_spelling_is_a_duplicate() {
    let mut project = Project::testing("2026-01-01T00:00:00Z");
    let first = r#"{"green": true, "tests": 1, "ratio": 0.5, "note": "café"}"#;
    let told =
        ["--source", "webhook", "--actor", "ci", "--transport", "d-1", "--ref", "https://ci.example/1"];
    let data = done_with(&project, &put(&[&told[..], &["--payload", "-"]].concat()), first.as_bytes());
    let spellings = [
        r#"{"note":"café","ratio":0.5,"tests":1,"green":true}"#,
        r#"{"tests": 1.0, "ratio": 5e-1, "green": true, "note": "caf\u00e9"}"#,
        "\n{\"gr\\u0065en\":true,\r\n\t\"tests\":10e-1,\"ratio\":0.50,\"note\":\"café\"}\n",
    ];
    for (number, text) in spellings.iter().enumerate() {
        project.set("NF_NOW", &format!("2027-0{}-01T00:00:00Z", number + 1));
        let transport = format!("d-{number}");
        for told in [&["--transport", &transport, "--source", "schedule"][..], &[]] {
            let arguments = put(&[told, &["--payload", "-"]].concat());
            let again = silent(&project, &arguments, text.as_bytes());
            assert_eq!(again["delivery"], "duplicate", "{text}");
            for member in ["event", "payload_hash", "received_at"] {
                assert_eq!(again[member], data[member], "{member}: {text}");
            }
            let plain = project.nf_with(&arguments, text.as_bytes()).expect(0);
            assert_eq!(plain.line(), data["event"].as_str().expect("an id"));
            assert!(
                plain.stderr.contains("duplicate") && !plain.stderr.contains("record "),
                "{}",
                plain.stderr
            );
        }
    }
    assert_eq!(shown(&project, data["event"].as_str().expect("an id"), "/source/transport"), "d-1");
}

#[test]
fn another_meaning_under_the_same_key_names_both_hashes_and_each_difference() {
    let project = Project::new();
    let session = project.start();
    project.write("log.txt", "all is well\n");
    let payload = r#"{"runs": [{"os": "linux", "ok": true}], "n": 1, "a/b": 0}"#;
    let more = ["--resource", "novel/pride", "--artifact", "log=log.txt", "--payload"];
    let first = done(&project, &put(&[&more[..], &[payload]].concat()));
    let with = |payload: &'static str| [&more[..], &[payload]].concat();
    let cases: [(Vec<&str>, Value); 6] = [
        (
            with(r#"{"runs": [{"os": "linux", "ok": false}], "n": 1, "a/b": 0}"#),
            json!(["/payload/runs/0/ok"]),
        ),
        (
            with(r#"{"runs": [], "n": "1", "a/b": 1}"#),
            json!(["/payload/a~1b", "/payload/n", "/payload/runs/0"]),
        ),
        (with("[]"), json!(["/payload"])),
        (
            vec!["--resource", "novel/emma", "--artifact", "log=log.txt", "--payload", payload],
            json!(["/resource"]),
        ),
        (vec!["--resource", "novel/pride", "--payload", payload], json!(["/artifacts"])),
        ([&more[..], &[payload, "--session", &session]].concat(), json!(["/session"])),
    ];
    for (more, pointers) in cases {
        let error = recorded(&project, &put(&more), b"", 4, "event_conflict");
        assert_eq!(error["details"]["pointers"], pointers, "{more:?}");
        assert_eq!(error["details"]["want"], first["payload_hash"]);
        let got = error["details"]["got"].as_str().expect("a hash").to_owned();
        names(&error["cause"], &[first["payload_hash"].as_str().expect("a hash"), &got]);
        for pointer in pointers.as_array().expect("a list") {
            names(&error["cause"], &[pointer.as_str().expect("a pointer")]);
        }
        let refusal = records(&project).pop().expect("a record")["events"].clone();
        assert_eq!(refusal.as_array().map(Vec::len), Some(1), "only the refusal is recorded");
        let kept =
            json!({"type": "conflict.refused", "kind": "event", "event": first["event"], "value": got});
        assert_eq!(refusal[0], kept);
        let blob = project.read(&format!(".novelforge/blobs/{}/{got}", &got[..2]));
        assert_eq!(serde_json::from_str::<Value>(&blob).expect("JSON")["type"], "ci.observed");
    }
    project.write("log.txt", "it broke\n");
    let error = recorded(&project, &put(&with(payload)), b"", 4, "event_conflict");
    assert_eq!(
        error["details"]["pointers"],
        json!(["/artifacts/0/hash"]),
        "the bytes are part of the meaning"
    );
    project.write("log.txt", "all is well\n");
    assert_eq!(silent(&project, &put(&with(payload)), b"")["delivery"], "duplicate", "the first one stands");
    assert_eq!(done(&project, &["status"])["conflicts"], 7);
    project.nf(&["verify"]).expect(0);
}

#[test]
fn a_conflict_under_an_operation_key_is_the_same_refusal_again() {
    let project = Project::new();
    done(&project, &put(&[]));
    let first = recorded(&project, &put(&["--payload", "[1]", "--op", "o"]), b"", 4, "event_conflict");
    let before = project.log();
    let told = ["--payload", "[1]", "--op", "o", "--transport", "another", "--actor", "another"];
    assert_eq!(failed(&project, &put(&told), b"", 4, "event_conflict"), first);
    refused(&project, &put(&["--payload", "[2]", "--op", "o"]), 4, "op_conflict");
    assert!(before == project.log());
    let dry = failed(&project, &put(&["--payload", "[3]", "-n"]), b"", 4, "event_conflict");
    assert_eq!(dry["details"]["pointers"], json!(["/payload"]));
    assert!(before == project.log(), "a dry refusal writes nothing");
}

#[test]
fn an_event_carries_no_authority_and_no_private_reasoning() {
    let project = Project::new();
    let session = project.start();
    for key in ["canon_write", "Framework_Promotion", "DURABLE_TASTE_WRITE"] {
        let payload = json!({"a": [{"permissions": {key: true}}]}).to_string();
        let error =
            refused_with(&project, &put(&["--payload", "-"]), payload.as_bytes(), 3, "authority_denied");
        assert_eq!(error["details"]["pointers"], json!([format!("/payload/a/0/permissions/{key}")]));
    }
    for key in ["messages", "chain_of_thought", "Scratchpad", "private_reasoning"] {
        let payload = json!([[{key: "so it goes"}]]).to_string();
        let error = refused_with(&project, &put(&["--payload", "-"]), payload.as_bytes(), 3, "private_key");
        assert_eq!(error["details"]["pointers"], json!([format!("/payload/0/0/{key}")]));
    }
    // A key that is taken gives no way in either: what is refused so is not kept.
    done(&project, &put(&[]));
    refused(&project, &put(&["--payload", r#"{"thinking": "x"}"#]), 3, "private_key");
    // An observed acceptance is an observation, and no gate, session or file is another for it.
    let before = shown(&project, &session, "");
    let accepted = ["event", "put", "acceptance.observed", "--key", "mail/1", "--session", &session];
    let event = done(&project, &accepted)["event"].as_str().expect("an id").to_owned();
    done(&project, &["consume", &event, "--as", "settlement"]);
    assert_eq!(shown(&project, &session, ""), before);
    assert!(events_of(&project, "gate.moved").is_empty());
}

#[test]
fn references_must_exist_and_belong_together() {
    let project = Project::new();
    let packet = project.ask();
    let session = shown(&project, &packet.handoff, "/source_session").as_str().expect("an id").to_owned();
    let run = shown(&project, &session, "/run").as_str().expect("an id").to_owned();
    let stranger = project.start();
    let their = shown(&project, &stranger, "/run").as_str().expect("an id").to_owned();
    let (hand, job) = (packet.handoff.as_str(), packet.job.as_str());
    for missing in
        [["--session", "s-000000000000"], ["--run", "r-000000000000"], ["--handoff", "h-000000000000"]]
    {
        refused(&project, &put(&missing), 1, "unknown_id");
    }
    for other in [["--session", job], ["--run", hand], ["--handoff", "h-../../x"], ["--handoff", ""]] {
        refused(&project, &put(&other), 2, "usage");
    }
    for (wrong, said) in [
        (vec!["--session", &session, "--run", &their], &their),
        (vec!["--session", &stranger, "--handoff", hand], &stranger),
        (vec!["--run", &their, "--handoff", hand], &stranger),
        (vec!["--session", &session, "--resource", "novel/emma"], &session),
    ] {
        let error = refused(&project, &put(&wrong), 3, "mismatched_references");
        names(&error["cause"], &[said.as_str()]);
    }
    let all = ["--session", &session, "--run", &run, "--handoff", hand, "--resource", "novel/pride/ch01"];
    let data = done(&project, &put(&all));
    let event = shown(&project, data["event"].as_str().expect("an id"), "");
    assert_eq!(
        (&event["session"], &event["run"], &event["handoff"]),
        (&json!(session), &json!(run), &json!(hand))
    );
    // A beginning of an id means the id.
    let short = [
        "--session",
        &session[..8],
        "--run",
        &run,
        "--handoff",
        &hand[..8],
        "--resource",
        "novel/pride/ch01",
    ];
    assert_eq!(silent(&project, &put(&short), b"")["delivery"], "duplicate");
    let listed = done(&project, &["list", "event", "--session", &session]);
    assert_eq!(listed["items"][0]["id"], data["event"]);
}

#[test]
fn the_environments_session_and_run_are_no_references() {
    let mut project = Project::new();
    let session = project.start();
    let run = shown(&project, &session, "/run").as_str().expect("an id").to_owned();
    let first = done(&project, &put(&["--op", "o"]));
    project.set("NF_SESSION", &session);
    project.set("NF_RUN", &run);
    let again = silent(&project, &put(&["--op", "o"]), b"");
    assert_eq!(again["event"], first["event"], "nor part of what the operation key stands for");
    assert_eq!(silent(&project, &put(&[]), b"")["delivery"], "duplicate");
    assert_eq!(shown(&project, first["event"].as_str().expect("an id"), "")["session"], Value::Null);
}

#[test]
fn keys_are_kept_through_everything_that_comes_after() {
    let project = Project::new();
    let first = done(&project, &put(&["--payload", "[1]"]));
    for number in 0..30 {
        done(&project, &["event", "put", "x.a", "--key", &format!("other/{number}")]);
    }
    let session = project.start();
    done(&project, &["consume", first["event"].as_str().expect("an id"), "--as", "desk"]);
    done(&project, &["session", "move", &session, "terminated"]);
    std::fs::remove_dir_all(project.at(".novelforge/index")).ok();
    assert_eq!(silent(&project, &put(&["--payload", "[1]"]), b"")["event"], first["event"]);
    recorded(&project, &put(&["--payload", "[2]"]), b"", 4, "event_conflict");
    let page = done(&project, &["list", "events", "--limit", "30"]);
    let after = page["next"].to_string();
    let rest = done(&project, &["list", "event", "--after", &after]);
    assert_eq!(rest["items"][0]["id"], first["event"]);
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(1));
    let on = ["event", "put", "x.a", "--key", "r", "--resource", "novel/emma"];
    let emma = done(&project, &on);
    let listed = done(&project, &["list", "event", "--resource", "novel/emma"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["items"][0]["id"], emma["event"]);
}
