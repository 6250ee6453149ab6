//! Deliveries of GitHub through the binary: one event each, once; a comment of somebody who is named may
//! answer a packet, and nobody else's.

use serde_json::{Value, json};

use crate::expect::{done, done_with, events_of, failed, names, recorded, records, refused, shown, silent};
use crate::handoffs::{claimed, queued};
use crate::harness::{Packet, Project};
use crate::workers::with_settings;

/// A finished workflow, as it is delivered.
pub const WORKFLOW: &str = r#"{"action": "completed", "repository": {"full_name": "jane/pride"},
    "sender": {"login": "jane"}, "workflow_run": {"id": 7, "name": "review", "conclusion": "failure",
    "head_sha": "0123abc", "html_url": "https://example.org/runs/7", "run_attempt": 1}}"#;

const SECRET: &str = "a-secret-of-the-webhook-4711";

fn import<'a>(name: &'a str, delivery: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["event", "import", "github", "-", "--name", name, "--delivery", delivery], more].concat()
}

fn comment(author: &str, sender: &str, text: &str) -> String {
    json!({"action": "created", "repository": {"full_name": "jane/pride"}, "issue": {"number": 3},
        "sender": {"login": sender}, "comment": {"body": text, "user": {"login": author},
        "html_url": "https://example.org/issues/3#1"}})
    .to_string()
}

#[test]
fn each_delivery_is_one_event_once() {
    let project = Project::new();
    let session = project.start();
    let (_, _, handoff) = queued(&project, "novel/pride/ch02", &[]);
    let first = done_with(
        &project,
        &import("workflow_run", "d-1", &["--resource", "novel/pride"]),
        WORKFLOW.as_bytes(),
    );
    assert_eq!(
        (&first["received"]["type"], &first["received"]["delivery"]),
        (&json!("ci.observed"), &json!("new"))
    );
    let event = first["received"]["event"].as_str().expect("an id");
    let object = done(&project, &["show", event])["object"].clone();
    assert_eq!(object["key"], "github/d-1");
    assert_eq!(object["source"]["actor"], "jane");
    assert_eq!(
        (&object["source"]["kind"], &object["source"]["transport"]),
        (&json!("github"), &json!("d-1"))
    );
    let before = project.log();
    let again = done_with(&project, &import("workflow_run", "d-1", &[]), WORKFLOW.as_bytes());
    assert_eq!(
        (&again["received"]["event"], &again["received"]["delivery"]),
        (&json!(event), &json!("duplicate"))
    );
    assert!(before == project.log());
    let other = WORKFLOW.replace("failure", "success");
    let error =
        recorded(&project, &import("workflow_run", "d-1", &[]), other.as_bytes(), 4, "event_conflict");
    assert!(
        error["details"]["pointers"].as_array().expect("pointers").contains(&json!("/payload/conclusion")),
        "{error}"
    );
    let dispatch = json!({"action": "go", "client_payload": {"nf": "research.refresh_requested",
        "resource": "novel/pride", "session": session, "note": "three sources are new"}})
    .to_string();
    let told = done_with(&project, &import("repository_dispatch", "d-2", &[]), dispatch.as_bytes());
    assert_eq!(told["received"]["scope"], "request");
    assert_eq!(payload(&project, &told)["client_payload"]["note"], "three sources are new");
    assert_eq!(
        shown(&project, told["received"]["event"].as_str().expect("an id"), "/session"),
        session.as_str()
    );
    let named = dispatch.replace(&session, "s-zzzz");
    failed(&project, &import("repository_dispatch", "d-3", &[]), named.as_bytes(), 1, "unknown_id");
    // An event moves nothing.
    assert_eq!(shown_state(&project, &handoff), "queued");
    let requested = WORKFLOW.replace("completed", "requested");
    let nothing = silent(&project, &import("workflow_run", "d-4", &[]), requested.as_bytes());
    assert_eq!(nothing["received"], Value::Null);
    names(&nothing["note"], &["workflow_run requested"]);
    failed(&project, &import("ping", "d-5", &[]), b"{}", 2, "usage");
    failed(&project, &import("workflow_run", "d-6", &[]), b"{\"a\": 1, \"a\": 2}", 1, "bad_input");
    refused(&project, &["event", "import", "gitlab", "-", "--name", "a", "--delivery", "b"], 2, "usage");
    failed(&project, &import("workflow_run", "../x", &[]), b"{}", 2, "usage");
}

fn shown_state(project: &Project, handoff: &str) -> Value {
    shown(project, handoff, "/state")
}

/// What the event of a delivery carries, in place or in its blob.
fn payload(project: &Project, told: &Value) -> Value {
    let data = done(project, &["show", told["received"]["event"].as_str().expect("an id")]);
    if data["payload"].is_object() {
        data["payload"].clone()
    } else {
        data["object"]["payload"]["inline"].clone()
    }
}

fn signature(secret: &str, body: &[u8]) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("a secret");
    mac.update(body);
    let digits: Vec<String> = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={}", digits.concat())
}

#[test]
fn a_delivery_is_checked_before_anything_is_read_of_it() {
    let mut project = Project::new();
    project.set("HOOK", SECRET);
    let good = signature(SECRET, WORKFLOW.as_bytes());
    let signed = |signature: &'static str| ["--signature", signature, "--secret-env", "HOOK"];
    let bad = "sha256=0000000000000000000000000000000000000000000000000000000000000000";
    let before = records(&project).len();
    for (signature, body) in [(bad, WORKFLOW), ("", WORKFLOW), ("sha1=00", WORKFLOW), (bad, "no JSON at all")]
    {
        let error = failed(
            &project,
            &import("workflow_run", "d-1", &signed(signature)),
            body.as_bytes(),
            3,
            "bad_signature",
        );
        assert!(!error.to_string().contains(SECRET) && !error.to_string().contains(&good[7..]), "{error}");
    }
    let more = ["--signature", good.as_str(), "--secret-env", "HOOK"];
    failed(
        &project,
        &import("workflow_run", "d-1", &more),
        WORKFLOW.replace('7', "8").as_bytes(),
        3,
        "bad_signature",
    );
    let unset = ["--signature", good.as_str(), "--secret-env", "NO_SUCH_HOOK"];
    let error = failed(&project, &import("workflow_run", "d-1", &unset), WORKFLOW.as_bytes(), 2, "usage");
    names(&error["message"], &["NO_SUCH_HOOK is not set"]);
    for half in [["--signature", good.as_str()], ["--secret-env", "HOOK"]] {
        failed(&project, &import("workflow_run", "d-1", &half), WORKFLOW.as_bytes(), 2, "usage");
    }
    assert_eq!(records(&project).len(), before, "nothing was written");
    done_with(&project, &import("workflow_run", "d-1", &more), WORKFLOW.as_bytes());
    assert!(!String::from_utf8_lossy(&project.log()).contains(SECRET));
}

/// A project with a question that a worker holds, and settings that name one account.
fn held() -> (Project, String, Packet) {
    let mut project = Project::new();
    with_settings(&mut project, "github: {actors: [Jane]}\n");
    let (_, _, handoff) = queued(&project, "novel/pride/ch01", &[]);
    let (_, packet) = claimed(&project, &[]);
    (project, handoff, packet)
}

#[test]
fn the_answer_of_somebody_who_is_named_is_bound_with_its_delivery() {
    let (project, handoff, packet) = held();
    let text = format!("Here it is:\r\n\r\n```json\r\n{}\r\n```\r\nAll the best", packet.verdict("reject"));
    let body = comment("jane", "JANE", &text);
    let before = records(&project).len();
    let told = done_with(&project, &import("issue_comment", "d-1", &[]), body.as_bytes());
    assert_eq!(told["received"]["type"], "semantic.result_arrived");
    assert_eq!(told["received"]["reports"], handoff.as_str());
    assert_eq!(told["bound"]["verdict"]["value"], "reject");
    assert_eq!(records(&project).len(), before + 1, "one record for both");
    assert_eq!(shown_state(&project, &handoff), "completed");
    let log = String::from_utf8_lossy(&project.log()).into_owned();
    assert!(!log.contains(&packet.nonce) && !log.contains("All the best"), "the comment is not kept");
    let again = silent(&project, &import("issue_comment", "d-1", &[]), body.as_bytes());
    assert_eq!(again["received"]["delivery"], "duplicate");
    let other = comment("jane", "jane", &packet.verdict("accept"));
    recorded(&project, &import("issue_comment", "d-1", &[]), other.as_bytes(), 4, "event_conflict");
    // The same answer in another comment is a duplicate of the answer and a delivery of its own.
    let twice = done_with(&project, &import("issue_comment", "d-2", &[]), body.as_bytes());
    assert_eq!(twice["bound"]["duplicate"], true);
    let result = told["bound"]["result"].as_str().expect("an id");
    let event = told["received"]["event"].as_str().expect("an id");
    refused(&project, &["consume", event, "--as", "ci/gate"], 3, "not_consumable");
    done(&project, &["consume", result, "--as", "ci/gate"]);
}

#[test]
fn an_answer_that_does_not_bind_is_refused_as_any_paste_and_its_delivery_stands() {
    let (project, handoff, packet) = held();
    let body = comment("jane", "jane", &packet.verdict("accept").replace("0.7", "7"));
    let before = records(&project).len();
    failed(&project, &import("issue_comment", "d-1", &[]), body.as_bytes(), 5, "semantic_invalid");
    assert_eq!(records(&project).len(), before + 1);
    assert_eq!(events_of(&project, "reply.received").len(), 1);
    let again = silent(&project, &import("issue_comment", "d-1", &[]), body.as_bytes());
    assert_eq!((&again["received"]["delivery"], &again["bound"]), (&json!("duplicate"), &Value::Null));
    assert_eq!(done(&project, &["show", &handoff])["history"]["invalid"], 1, "counted once");
}

#[test]
fn anybody_elses_answer_is_an_observation_and_its_nonce_is_not_kept() {
    let (project, handoff, packet) = held();
    for (at, (author, sender)) in [("joe", "joe"), ("jane", "joe"), ("joe", "jane")].into_iter().enumerate() {
        let body = comment(author, sender, &packet.verdict("accept"));
        let told = done_with(&project, &import("issue_comment", &format!("d-{at}"), &[]), body.as_bytes());
        assert_eq!((&told["received"]["type"], &told["bound"]), (&json!("feedback.observed"), &Value::Null));
        names(&told["note"], &["joe is not among github.actors"]);
    }
    assert_eq!(shown_state(&project, &handoff), "claimed");
    assert!(events_of(&project, "reply.received").is_empty());
    let bare = comment("joe", "joe", &format!("I saw {} somewhere", packet.nonce));
    done_with(&project, &import("issue_comment", "d-8", &[]), bare.as_bytes());
    let log = String::from_utf8_lossy(&project.log()).into_owned();
    assert!(!log.contains(&packet.nonce), "a nonce stands in no record");
    for (delivery, author) in [("d-9", "joe"), ("d-10", "jane")] {
        let body = comment(author, author, "I would read on.");
        let told = done_with(&project, &import("issue_comment", delivery, &[]), body.as_bytes());
        let said = payload(&project, &told);
        assert_eq!((&said["text"], &said["author"]), (&json!("I would read on."), &json!(author)));
    }
    // Nor is it kept where a program sends it, in the record or in a blob beside it.
    for filler in ["", &"x".repeat(1000)] {
        let sent = json!({"nf": "x.a", "filler": filler, "note": packet.nonce});
        let body = json!({"client_payload": sent}).to_string();
        failed(&project, &import("repository_dispatch", "d-20", &[]), body.as_bytes(), 3, "not_blind");
        let put = ["event", "put", "x.a", "--key", "k", "--payload", "-"];
        failed(&project, &put, sent.to_string().as_bytes(), 3, "not_blind");
    }
}

#[test]
fn without_settings_nobody_is_named() {
    let (mut project, handoff, packet) = held();
    project.set("NF_CONFIG", "nowhere");
    let body = comment("jane", "jane", &packet.verdict("accept"));
    done_with(&project, &import("issue_comment", "d-1", &[]), body.as_bytes());
    assert_eq!(shown_state(&project, &handoff), "claimed");
    // And nothing that a store holds can name anybody.
    project.write(".novelforge/config.yaml", "github: {actors: [jane]}\n");
    refused(&project, &["start", "--resource", "a", "--task", "b"], 1, "bad_input");
}
