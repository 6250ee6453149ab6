//! Answers that come late, twice or against each other: nothing is lost, nothing is applied twice.

use serde_json::json;

use crate::expect::{answer, done, done_with, events_of, names, recorded, refused, refused_with, shown};
use crate::harness::{Packet, Project};

const NOW: &str = "2026-11-30T10:00:00Z";
const GATE: &str = "gate/novel/pride/ch01/reader_reaction";
/// The length of a relay's lease.
const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;

fn at(project: &mut Project, boottime_ms: u64) {
    project.set("NF_BOOT", &format!("machine/boot-1/time-1/{boottime_ms}"));
}

/// Two sessions ask one question, the second when the first one's lease has run out.
fn overtaken() -> (Project, Packet, Packet, String) {
    let mut project = Project::testing(NOW);
    at(&mut project, 1000);
    let first = project.ask();
    let other = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &other]).expect(0);
    let ask = ["packet", &first.job, "--session", &other];
    at(&mut project, 999 + WEEK_MS);
    refused(&project, &ask, 8, "under_review");
    at(&mut project, 1000 + WEEK_MS);
    let second = Packet::read(&project.nf(&ask).expect(0).stdout);
    (project, first, second, other)
}

#[test]
fn a_second_valid_answer_is_surplus_and_never_consumed() {
    let (project, first, second, _) = overtaken();
    let source = shown(&project, &first.handoff, "/source_session");
    let good = answer(&project, &second, "accept");
    let reply = first.verdict("reject");
    let error = recorded(&project, &["reply"], reply.as_bytes(), 3, "surplus");
    assert_eq!(error["details"]["first"], json!(good));
    let surplus = error["details"]["result"].as_str().expect("an id").to_owned();
    assert_eq!(shown(&project, &surplus, "/checked/standing"), "surplus");
    let named = ["consume", &surplus, "--as", GATE, "--session", source.as_str().expect("an id")];
    refused(&project, &named, 3, "not_consumable");
    refused(&project, &["consume", &surplus, "--as", "anyone", "--contested", "x"], 3, "not_consumable");
    refused_with(&project, &["reply"], reply.as_bytes(), 3, "surplus");
    assert_eq!(done(&project, &["consume", &good, "--as", GATE])["outcome"]["value"], "accept");
    assert_eq!(events_of(&project, "receipt.recorded").len(), 1);
}

#[test]
fn a_late_answer_revives_its_lease_while_nobody_else_has_claimed() {
    let mut project = Project::testing(NOW);
    at(&mut project, 1000);
    let packet = project.ask();
    at(&mut project, 1000 + 2 * WEEK_MS);
    answer(&project, &packet, "accept");
    assert_eq!(events_of(&project, "lease.revived").len(), 1);
    assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], "passed");
}

#[test]
fn the_owner_opens_a_new_attempt_when_its_lease_has_run_out_and_the_old_answer_is_kept() {
    let mut project = Project::testing(NOW);
    at(&mut project, 1000);
    let old = project.ask();
    let attempt = shown(&project, &old.handoff, "/attempt");
    at(&mut project, 1000 + WEEK_MS);
    let new = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert_eq!(new.handoff, old.handoff);
    assert_ne!(new.nonce, old.nonce);
    assert_eq!(shown(&project, attempt.as_str().expect("an id"), "/state"), "superseded");
    let error = recorded(&project, &["reply"], old.verdict("accept").as_bytes(), 3, "lease_lost");
    let value = error["details"]["value"].as_str().expect("a hash");
    assert!(project.at(&format!(".novelforge/blobs/{}/{value}", &value[..2])).exists());
    names(&error["fix"], &[value]);
    assert_eq!(events_of(&project, "result.stored").len(), 0);
    answer(&project, &new, "accept");
    assert_eq!(done(&project, &["status"])["conflicts"], 1);
}

#[test]
fn another_boot_and_a_clock_set_back_do_not_end_a_lease_early() {
    let mut project = Project::testing(NOW);
    at(&mut project, 1000);
    let packet = project.ask();
    let other = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &other]).expect(0);
    let ask = ["packet", &packet.job, "--session", &other];
    project.set("NF_BOOT", "machine/boot-2/time-1/5");
    for now in ["2016-11-30T10:00:00Z", "2026-11-30T10:00:01Z", "2026-12-07T10:00:29Z"] {
        project.set("NF_NOW", now);
        refused(&project, &ask, 8, "under_review");
    }
    project.set("NF_NOW", "2026-12-07T10:00:30Z");
    project.nf(&ask).expect(0);
}

#[test]
fn an_answer_after_another_readable_verdict_is_contested_and_consumed_only_with_a_reason() {
    let project = Project::new();
    let packet = project.ask();
    let invalid = packet.answer(&json!({"verdict": "reject", "confidence": 0.7}));
    recorded(&project, &["reply"], invalid.as_bytes(), 5, "semantic_invalid");
    let bound = done_with(&project, &["reply"], packet.verdict("accept").as_bytes());
    assert_eq!(bound["standing"], "contested");
    let error = refused(&project, &["consume", "--as", GATE], 4, "contested");
    names(&error["cause"], &["reject, then accept"]);
    names(&error["fix"], &["--contested"]);
    refused(&project, &["consume", "--as", GATE, "--contested", "  "], 2, "usage");
    let consume = ["consume", "--as", GATE, "--contested", "the first reply had no evidence"];
    let consumed = done(&project, &consume);
    assert_eq!(consumed["outcome"]["value"], "accept");
    assert_eq!(consumed["gate_status"], "passed");
    let receipt = shown(&project, consumed["receipt"].as_str().expect("an id"), "");
    assert!(receipt["contested"].to_string().contains("the first reply had no evidence"), "{receipt}");
    assert_eq!(receipt["history"]["invalid"], 1);
}

#[test]
fn an_equal_verdict_after_an_invalid_reply_is_not_contested() {
    let project = Project::new();
    let packet = project.ask();
    let invalid = packet.answer(&json!({"verdict": "accept", "confidence": 0.7}));
    recorded(&project, &["reply"], invalid.as_bytes(), 5, "semantic_invalid");
    let bound = done_with(&project, &["reply"], packet.verdict("accept").as_bytes());
    assert_eq!(bound["standing"], "valid");
    let consumed = done(&project, &["consume", "--as", GATE, "--contested", "no need"]);
    let receipt = shown(&project, consumed["receipt"].as_str().expect("an id"), "");
    assert!(receipt.get("contested").is_none_or(serde_json::Value::is_null), "{receipt}");
}

#[test]
fn a_verdict_of_an_ambiguous_reply_is_remembered_against_a_later_answer() {
    let project = Project::new();
    let packet = project.ask();
    let both = format!("{}\n\n{}", packet.verdict("reject"), packet.verdict("accept"));
    recorded(&project, &["reply"], both.as_bytes(), 5, "semantic_invalid");
    let bound = done_with(&project, &["reply"], packet.verdict("accept").as_bytes());
    assert_eq!(bound["standing"], "contested", "both verdicts were readable");
}

#[test]
fn a_session_named_as_reviewer_of_itself_is_no_worker() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "accept");
    let worker = shown(&project, &result, "/provenance/worker_session");
    let source = shown(&project, &result, "/provenance/source_session");
    assert_ne!(worker, source);
    let worker = worker.as_str().expect("an id");
    assert_eq!(shown(&project, worker, "/memory_policy"), "none");
    assert_eq!(shown(&project, worker, "/role"), "semantic_reviewer");
    assert_eq!(shown(&project, worker, "/parent"), source);
    assert_eq!(shown(&project, worker, "/status"), "completed");
    let grounds = done(&project, &["show", &result])["grounds"].clone();
    assert!(grounds.as_array().is_some_and(|lines| lines.len() > 4), "line by line: {grounds}");
}

#[test]
fn a_reviewers_session_that_was_ended_by_hand_takes_no_answer_away() {
    for state in ["terminated", "stale", "completed", "failed"] {
        let project = Project::new();
        let packet = project.ask();
        let attempt = shown(&project, &packet.handoff, "/attempt");
        let worker = shown(&project, attempt.as_str().expect("an id"), "/worker_session");
        let worker = worker.as_str().expect("an id").to_owned();
        done(&project, &["session", "move", &worker, state]);
        answer(&project, &packet, "accept");
        assert_eq!(shown(&project, &worker, "/status"), state, "it stays as it was left");
        assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], "passed");
    }
}

#[test]
fn a_lease_that_ran_out_is_no_verdict() {
    let mut project = Project::testing(NOW);
    at(&mut project, 1000);
    let first = project.ask();
    let before = project.log();
    at(&mut project, 1000 + 10 * WEEK_MS);
    let status = done(&project, &["status"]);
    assert_eq!(status["sessions"][0]["gates"][GATE]["status"], "pending", "{status}");
    refused(&project, &["resume"], 8, "pending");
    refused(&project, &["consume", "--as", GATE], 8, "pending");
    assert!(before == project.log(), "time alone writes nothing");
    let second = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert_ne!(second.nonce, first.nonce);
    assert_eq!((&second.job, &second.fingerprint), (&first.job, &first.fingerprint));
    let history = done(&project, &["show", &second.handoff])["history"].clone();
    assert_eq!(
        (&history["expired"], &history["invalid"], &history["opened"]),
        (&json!(1), &json!(0), &json!(2))
    );
    assert!(history.get("verdicts").is_none_or(|verdicts| *verdicts == json!([])), "{history}");
    let bound = done_with(&project, &["reply"], second.verdict("accept").as_bytes());
    assert_eq!(bound["standing"], "valid", "not contested: nobody had rejected");
    assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], "passed");
}
