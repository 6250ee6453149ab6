//! Events applied: once for each consumer, by a current run, and never for a gate.

use super::*;

#[test]
fn a_consumer_applies_an_event_once_and_no_gate_moves() {
    let project = Project::new();
    let packet = project.ask();
    let event = done(&project, &put(&[]))["event"].to_string().replace('"', "");
    refused(&project, &["consume", "--as", "desk"], 8, "pending");
    for name in ["desk", GATE] {
        let first = done(&project, &["consume", &event, "--as", name]);
        assert_eq!((&first["application"], &first["source"]), (&json!("new"), &json!(event)));
        assert!(first["gate"].is_null() && first["own_gate"].is_null(), "{first}");
        names(&first["note"], &["an event moves none"]);
        let again = silent(&project, &["consume", &event[..9], "--as", name], b"");
        assert_eq!((&again["application"], &again["receipt"]), (&json!("already"), &first["receipt"]));
        let receipt = shown(&project, first["receipt"].as_str().expect("an id"), "");
        assert_eq!((&receipt["source"], &receipt["consumer"]), (&json!(event), &json!(name)));
        assert_eq!(receipt["payload_hash"], shown(&project, &event, "/payload_hash"));
        assert_eq!(receipt["outcome"], json!({"polarity": "none"}));
        for absent in ["result_hash", "fingerprint", "attempt", "history"] {
            assert!(receipt.get(absent).is_none(), "{absent} in {receipt}");
        }
    }
    let status = done(&project, &["status"]);
    assert_eq!(status["sessions"][0]["gates"][GATE]["status"], "pending", "{status}");
    // The gate is still free for the answer that it waits for.
    answer(&project, &packet, "accept");
    assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], "passed");
    for flag in [&["--exit-verdict"][..], &["--contested", "because"]] {
        refused(&project, &[&["consume", &event, "--as", "another"][..], flag].concat(), 2, "usage");
    }
    refused(&project, &["consume", "e-0000", "--as", "desk"], 1, "unknown_id");
    assert_eq!(std::fs::read_dir(project.at(".novelforge/receipts")).expect("marks").count(), 3);
    project.nf(&["verify"]).expect(0);
    let lines = project.nf(&["log", &event]).expect(0).stdout;
    assert_eq!(lines.lines().count(), 3, "its coming and its two receipts: {lines}");
}

#[test]
fn an_event_is_applied_in_a_current_run_and_by_no_zombie() {
    let project = Project::new();
    let event = done(&project, &put(&[]))["event"].to_string().replace('"', "");
    refused(&project, &["consume", &event, "--as", "desk"], 2, "no_candidate");
    let session = project.start();
    let run = shown(&project, &session, "/run").as_str().expect("an id").to_owned();
    done(&project, &["run", "finish", "--status", "completed"]);
    refused(&project, &["consume", &event, "--as", "desk"], 3, "not_current_run");
    done(&project, &["resume"]);
    refused(&project, &["consume", &event, "--as", "desk", "--run", &run], 3, "not_current_run");
    done(&project, &["consume", &event, "--as", "desk"]);
    done(&project, &["run", "finish", "--status", "completed"]);
    assert_eq!(silent(&project, &["consume", &event, "--as", "desk"], b"")["application"], "already");
}

#[test]
fn the_report_of_a_result_is_no_source_and_points_to_the_result() {
    let project = Project::new();
    let packet = project.ask();
    let report = ["event", "put", "semantic.result_arrived", "--key", "w/1", "--handoff", &packet.handoff];
    let told = done(&project, &report);
    assert_eq!(told["reports"], json!(packet.handoff));
    let event = told["event"].as_str().expect("an id");
    let error = refused(&project, &["consume", event, "--as", GATE], 3, "not_consumable");
    names(&error["fix"], &[&packet.handoff]);
    let result = answer(&project, &packet, "reject");
    let error = refused(&project, &["consume", event, "--as", GATE], 3, "not_consumable");
    names(&error["fix"], &[&format!("nf consume {result} --as {GATE}")]);
    assert_eq!(
        done(&project, &["consume", "--as", GATE])["source"],
        json!(result),
        "only results are candidates"
    );
    let bare = done(&project, &["event", "put", "eval.result_arrived", "--key", "w/2"]);
    done(&project, &["consume", bare["event"].as_str().expect("an id"), "--as", "desk"]);
}

#[test]
fn a_large_payload_is_a_blob_and_is_shown_whole() {
    let project = Project::new();
    let payload = json!({"log": "x\u{1b}[31my\u{202e}".repeat(40), "n": 1.5});
    let data = done_with(&project, &put(&["--payload", "-"]), payload.to_string().as_bytes());
    let event = data["event"].as_str().expect("an id");
    assert_eq!(done(&project, &["show", event])["payload"], payload);
    let hash = shown(&project, event, "/payload/blob").as_str().expect("a hash").to_owned();
    let text = project.nf(&["show", event]).expect(0).stdout;
    assert!(text.contains("x\\u{1b}[31my\\u{202e}") && !text.contains('\u{1b}'), "{text}");
    let path = project.at(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]));
    std::fs::rename(&path, project.at("away")).expect("moved");
    project.start();
    for arguments in [&["show", event][..], &["consume", event, "--as", "desk"], &put(&["--payload", "[1]"])]
    {
        refused(&project, arguments, 11, "damaged");
    }
    assert!(project.nf(&["verify"]).code == 11, "a cited blob is missed");
    std::fs::rename(project.at("away"), &path).expect("back");
    done(&project, &["consume", event, "--as", "desk"]);
}
