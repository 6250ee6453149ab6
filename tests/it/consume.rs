//! A result acts once for each named consumer, from bytes that are checked again.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::expect::{answer, done, events_of, failed, names, refused, shown, silent};
use crate::harness::{JOB, Packet, Project};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

fn answered(verdict: &str) -> (Project, String) {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, verdict);
    (project, result)
}

#[test]
fn the_same_name_consumes_once_and_a_repeat_writes_nothing() {
    let (project, result) = answered("accept");
    let first = done(&project, &["consume", "--as", GATE]);
    assert_eq!(first["application"], "new");
    assert_eq!(first["gate"], GATE);
    for arguments in [&["consume", "--as", GATE][..], &["consume", &result, "--as", GATE]] {
        let again = silent(&project, arguments, b"");
        assert_eq!(again["application"], "already");
        assert_eq!(again["receipt"], first["receipt"]);
        assert_eq!(again["outcome"], first["outcome"]);
    }
    assert_eq!(project.nf(&["consume", "--as", GATE]).expect(0).line(), "already");
    done(&project, &["resume"]);
    assert_eq!(silent(&project, &["consume", &result, "--as", GATE], b"")["application"], "already");
}

#[test]
fn another_name_gets_its_own_receipt_and_moves_no_gate() {
    let (project, result) = answered("accept");
    let other = done(&project, &["consume", "--as", "ci/nightly"]);
    assert_eq!(other["application"], "new");
    assert!(other["gate"].is_null() && other["gate_status"].is_null(), "{other}");
    names(&other["note"], &["no gate moved", "ci/nightly"]);
    let status = done(&project, &["status"]);
    assert_eq!(status["sessions"][0]["gates"][GATE]["status"], "pending", "{status}");
    assert_eq!(status["sessions"][0]["unconsumed"][0]["gate"], GATE, "its gate still waits for it");
    let gate = done(&project, &["consume", &result, "--as", GATE]);
    assert_ne!(gate["receipt"], other["receipt"]);
    assert_eq!(gate["gate_status"], "passed");
    assert_eq!(events_of(&project, "gate.moved").iter().filter(|event| event["to"] != "pending").count(), 1);
}

#[test]
fn each_polarity_moves_the_gate_its_own_way() {
    for (verdict, status) in [("accept", "passed"), ("reject", "rejected"), ("unsure", "answered")] {
        let project = Project::new();
        let job = JOB
            .replace("enum: [accept, reject]", "enum: [accept, reject, unsure]")
            .replace("fail: [reject],", "fail: [reject], neutral: [unsure],");
        project.write("job.yaml", job);
        let packet = project.ask();
        answer(&project, &packet, verdict);
        assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], status);
    }
}

#[test]
fn a_question_without_a_verdict_is_answered() {
    let project = Project::new();
    let job: String =
        JOB.lines().filter(|line| !line.starts_with("verdict:")).map(|line| format!("{line}\n")).collect();
    project.write("job.yaml", job);
    let packet = project.ask();
    answer(&project, &packet, "accept");
    let consumed = done(&project, &["consume", "--as", GATE]);
    assert_eq!(consumed["gate_status"], "answered");
    assert_eq!(consumed["outcome"]["polarity"], "none");
}

#[test]
fn a_receipt_holds_the_checks_and_the_history_of_its_question() {
    let (project, result) = answered("reject");
    let consumed = done(&project, &["consume", "--as", GATE]);
    let receipt = shown(&project, consumed["receipt"].as_str().expect("an id"), "");
    assert_eq!(receipt["source"], json!(result));
    assert_eq!(receipt["consumer"], GATE);
    assert_eq!(receipt["result_hash"], shown(&project, &result, "/blob"));
    assert_eq!(receipt["outcome"]["route"], "repair.story");
    let checks = receipt["checks"].as_array().expect("checks");
    assert!(checks.len() == 13 && checks.iter().all(|check| check["ok"] == true), "{receipt}");
    assert_eq!(receipt["history"]["opened"], 1);
    let validated = events_of(&project, "result.validated");
    assert_eq!(validated.len(), 1, "the deciding validation is recorded with the receipt");
    let record = crate::expect::records(&project).pop().expect("a record");
    let types: Vec<&str> = record["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(types[..2], ["result.validated", "receipt.recorded"], "one batch");
    assert_eq!(receipt["seq"], record["seq"]);
}

#[test]
fn a_changed_result_is_found_and_never_consumed() {
    for (change, text) in [("edited", Some("accept")), ("emptied", None)] {
        let (project, result) = answered("reject");
        let hash = shown(&project, &result, "/blob");
        let hash = hash.as_str().expect("a hash");
        let path = project.at(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]));
        let whole = std::fs::read_to_string(&path).expect("a blob");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
        let changed = text.map_or_else(String::new, |text| whole.replace("reject", text));
        std::fs::write(&path, changed).expect("an edit");
        let before = project.log();
        for name in [GATE, "somebody/else"] {
            let error = failed(&project, &["consume", &result, "--as", name], b"", 11, "damaged");
            names(&error["fix"], &["nf doctor"]);
        }
        assert!(before == project.log(), "{change}: nothing was consumed");
        std::fs::write(&path, whole).expect("restored");
        assert_eq!(done(&project, &["consume", &result, "--as", GATE])["outcome"]["value"], "reject");
    }
}

#[test]
fn the_exit_code_tells_the_verdict_only_when_it_is_asked_to() {
    for (verdict, code) in [("accept", 0), ("reject", 10)] {
        let (project, result) = answered(verdict);
        let ran = project.nf(&["consume", "--as", GATE, "--exit-verdict"]).expect(code);
        assert_eq!(ran.line(), "new");
        let again = project.nf(&["consume", &result, "--as", GATE, "--exit-verdict"]).expect(code);
        assert_eq!(again.line(), "already");
        project.nf(&["consume", &result, "--as", GATE]).expect(0);
    }
}

#[test]
fn a_reply_that_is_not_in_is_pending_and_nothing_asked_is_no_candidate() {
    let project = Project::new();
    project.start();
    refused(&project, &["consume", "--as", GATE], 2, "no_candidate");
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let error = refused(&project, &["consume", "--as", GATE], 8, "pending");
    names(&error["message"], &[&packet.handoff]);
    names(&error["cause"], &[GATE]);
}

#[test]
fn several_results_are_listed_and_none_is_guessed() {
    let project = Project::new();
    let first = project.ask();
    project.write("second.yaml", JOB.replace("turn the page?", "weep?"));
    let job = project.nf(&["freeze", "second.yaml"]).expect(0).line();
    let second = Packet::read(&project.nf(&["packet", &job, "--gate", "gate/second"]).expect(0).stdout);
    let one = answer(&project, &first, "accept");
    let two = answer(&project, &second, "accept");
    let error = refused(&project, &["consume", "--as", "desk"], 2, "not_only_candidate");
    names(&error["cause"], &[&one, &two]);
    done(&project, &["consume", &one, "--as", "desk"]);
    // A gate of the run is waited for by one question only.
    assert_eq!(done(&project, &["consume", "--as", GATE])["source"], serde_json::json!(one));
    let rest = silent(&project, &["consume", "-n", "--as", "desk"], b"");
    assert_eq!(rest["source"], json!(two), "the only one that this name has not consumed is meant");
}

#[test]
fn consuming_needs_a_current_run_and_a_repeat_does_not() {
    let (project, result) = answered("accept");
    done(&project, &["resume"]);
    done(&project, &["run", "finish", "--status", "completed"]);
    refused(&project, &["consume", &result, "--as", GATE], 3, "not_current_run");
    names(&done(&project, &["status"])["sessions"][0]["next"], &["nf resume"]);
    done(&project, &["resume"]);
    done(&project, &["consume", &result, "--as", GATE]);
    done(&project, &["run", "finish", "--status", "completed"]);
    assert_eq!(silent(&project, &["consume", &result, "--as", GATE], b"")["application"], "already");
}

#[test]
fn a_receipt_mark_without_its_record_stops_the_consumer() {
    let (project, result) = answered("accept");
    let marks = || std::fs::read_dir(project.at(".novelforge/receipts")).expect("marks").count();
    let before = project.log();
    done(&project, &["consume", &result, "--as", GATE]);
    assert_eq!(marks(), 1);
    let segment =
        std::fs::read_dir(project.at(".novelforge/log")).expect("a log").flatten().next().expect("one");
    std::fs::write(segment.path(), before).expect("the log of before");
    let ran = project.nf(&["consume", &result, "--as", GATE, "--json"]).expect(11);
    assert_eq!(ran.json()["error"]["kind"], "damaged", "an acknowledged record is lost");
}
