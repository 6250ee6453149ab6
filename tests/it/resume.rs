//! Resume is a fresh validation: what changed since the checkpoint stops it and is named.

use serde_json::{Value, json};

use crate::expect::{answer, done, done_with, events_of, failed, names, recorded, refused, shown, silent};
use crate::harness::{CHAPTER, Packet, Project};

const NOW: &str = "2026-11-30T10:00:00Z";
const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// A project in which every kind of binding is held, with its answer consumed. Gives the session.
fn bound() -> (Project, String) {
    let project = Project::testing(NOW);
    project.write("ch01.md", format!("{CHAPTER}\nCaf\u{e9}.\n"));
    project.write("canon.md", "Elizabeth is the second of five.\n");
    project.write("lock.txt", "bundle 7\n");
    project.write("tool.txt", "1.4\n");
    project.write("notes.md", "Read the letter again.\n");
    project.write("approval.txt", "Yes. The editor.\n");
    project.write("versions.yaml", "framework: {version: 3}\nnote: one\n");
    project.write("old.json", "{\"a\": [1, 2]}\n");
    let version = "versions.yaml#/framework/version";
    let config = format!("bindings: {{authority: [canon.md], compatibility: {{framework: '{version}'}}}}\n");
    project.write(".novelforge/config.yaml", config);
    let packet = project.ask();
    answer(&project, &packet, "accept");
    project.nf(&["consume", "--as", GATE]).expect(0);
    let save = [
        "checkpoint",
        "save",
        "--boundary",
        "before_settlement",
        "--cursor",
        "ch01/settle",
        "--authority",
        "lock=lock.txt",
        "--compat",
        "tool=tool.txt",
        "--compat",
        "second=old.json#/a/1",
        "--artifact",
        "notes=notes.md:context",
        "--approval",
        "editor=approval.txt,expires=2026-12-24T00:00:00Z",
    ];
    project.nf(&save).expect(0);
    let session = done(&project, &["status"])["sessions"][0]["session"].as_str().expect("an id").to_owned();
    (project, session)
}

#[track_caller]
fn stale(project: &Project, session: &str, check: &str, words: &[&str]) {
    for arguments in [&["resume", "-n"][..], &["resume"]] {
        let error = refused(project, arguments, 9, "stale");
        assert_eq!(error["details"]["failed"], json!([check]), "{error}");
        assert_eq!(error["details"]["checks"].as_array().map(Vec::len), Some(11), "all are shown: {error}");
        names(&error["cause"], words);
        let (away, from) = (format!("nf session move {session} stale"), format!("nf start --from {session}"));
        names(&error["fix"], &["restore", &away, &from]);
    }
}

#[test]
fn the_chat_is_lost_and_a_new_process_finds_everything_in_the_store() {
    let project = Project::new();
    project.start();
    project.nf(&["run", "step", "--cursor", "ch01/review"]).expect(0);
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let status = silent(&project, &["status"], b"");
    assert_eq!(status["sessions"][0]["status"], "awaiting_user");
    assert_eq!(status["sessions"][0]["outstanding"][0]["handoff"], json!(packet.handoff));
    let again = project.nf(&["packet"]).expect(0).stdout;
    assert_eq!(again, packet.text);
    let result = answer(&project, &Packet::read(&again), "accept");
    let status = silent(&project, &["status"], b"");
    assert_eq!(status["sessions"][0]["unconsumed"][0]["result"], json!(result));
    assert_eq!(done(&project, &["consume", "--as", GATE])["gate_status"], "passed");
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["cursor"], "ch01/review");
    assert_eq!(resumed["status"], "running");
    assert_eq!(resumed["gates"][GATE]["status"], "passed");
    assert_eq!(resumed["unconsumed"], json!([]));
    assert_eq!(resumed["context"][0]["path"], "ch01.md");
    assert!(resumed["context"][0].get("content").is_none());
}

#[test]
fn each_changed_binding_stops_resume_and_is_named_and_restoring_it_goes_on() {
    let (project, session) = bound();
    let chapter = project.read("ch01.md");
    let cases: &[(&str, String, &str, &[&str])] = &[
        (
            "ch01.md",
            chapter.replacen("truth", "trutH", 1),
            "artifacts",
            &["chapter (ch01.md)", "want", "got"],
        ),
        ("ch01.md", chapter.replace('\n', "\r\n"), "artifacts", &["chapter", "only the line endings differ"]),
        (
            "ch01.md",
            chapter.replace('\u{e9}', "e\u{301}"),
            "artifacts",
            &["only the Unicode normalisation differs"],
        ),
        ("canon.md", "Elizabeth is the first.\n".into(), "authority", &["canon.md"]),
        ("lock.txt", "bundle 8\n".into(), "authority", &["lock (lock.txt)"]),
        ("tool.txt", "1.5\n".into(), "compatibility", &["tool (tool.txt)"]),
        (
            "versions.yaml",
            "framework: {version: 4}\n".into(),
            "compatibility",
            &["versions.yaml#/framework/version"],
        ),
        ("versions.yaml", "framework: {}\n".into(), "compatibility", &["framework"]),
        ("old.json", "{\"a\": [1, 3]}".into(), "compatibility", &["second (old.json#/a/1)"]),
        ("approval.txt", "No. The editor.\n".into(), "approvals", &["editor (approval.txt)"]),
    ];
    for (path, text, check, words) in cases {
        let before = project.read(path);
        project.write(path, text);
        stale(&project, &session, check, words);
        project.write(path, before);
        silent(&project, &["resume", "-n"], b"");
    }
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["cursor"], "ch01/settle");
    assert!(resumed["checks"].as_array().expect("checks").iter().all(|check| check["ok"] == true));
}

#[test]
fn a_missing_file_stops_resume_under_the_check_that_holds_it() {
    let (project, session) = bound();
    for (path, check) in [
        ("ch01.md", "context"),
        ("notes.md", "context"),
        ("lock.txt", "authority"),
        ("tool.txt", "compatibility"),
        ("approval.txt", "approvals"),
    ] {
        let before = project.read(path);
        std::fs::remove_file(project.at(path)).expect("a file");
        stale(&project, &session, check, &[path]);
        project.write(path, before);
    }
    project.nf(&["resume"]).expect(0);
}

#[test]
fn what_is_not_bound_may_change_and_context_is_listed_for_reading_again() {
    let (project, _) = bound();
    project.write("versions.yaml", "framework: {version: 3}\nnote: two\n");
    project.write("old.json", "{\"a\": [7, 2], \"b\": 1}\n");
    project.write("notes.md", "Read both letters again.\n");
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["reread"], json!(["notes"]));
}

#[test]
fn an_approval_that_ran_out_stops_resume() {
    let (mut project, session) = bound();
    project.set("NF_NOW", "2026-12-23T23:59:59Z");
    silent(&project, &["resume", "-n"], b"");
    project.set("NF_NOW", "2026-12-24T00:00:00Z");
    stale(&project, &session, "approvals", &["editor (approval.txt)", "expired at"]);
}

#[test]
fn every_failed_check_is_named_and_not_only_the_first() {
    let (project, _) = bound();
    for path in ["ch01.md", "canon.md", "tool.txt", "approval.txt"] {
        project.write(path, "changed");
    }
    let error = refused(&project, &["resume"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["compatibility", "authority", "artifacts", "approvals"]));
}

#[test]
fn a_packet_that_is_out_is_pending_and_a_changed_text_goes_before_it() {
    let project = Project::new();
    let packet = project.ask();
    let error = refused(&project, &["resume"], 8, "pending");
    assert_eq!(error["details"]["handoff"], json!(packet.handoff));
    names(&error["message"], &[&packet.handoff, GATE]);
    project.write("ch01.md", "Another text.\n");
    let error = refused(&project, &["resume"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["artifacts"]));
    let checks = error["details"]["checks"].as_array().expect("checks");
    let pending = checks.iter().find(|check| check["check"] == "pending").expect("pending");
    names(&pending["got"], &[&packet.handoff]);
}

#[test]
fn the_old_bindings_are_left_behind_openly_and_the_old_answer_is_kept_and_never_applied() {
    let project = Project::new();
    let session = project.start();
    project.nf(&["run", "step", "--cursor", "ch01/review"]).expect(0);
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let attempt = shown(&project, &packet.handoff, "/attempt");
    project.write("ch01.md", "Another text.\n");
    refused(&project, &["resume"], 9, "stale");
    refused(&project, &["start", "--from", &session], 3, "illegal_transition");
    done(&project, &["session", "move", &session, "stale"]);
    let started = done(&project, &["start", "--from", &session]);
    let new = started["session"].as_str().expect("an id");
    assert_eq!(started["parent"], json!(session));
    assert_eq!(started["cursor"], "ch01/review");
    assert_eq!(started["status"], "running");
    for (member, value) in [("/resource", "novel/pride"), ("/task_mode", "review"), ("/role", "manager")] {
        assert_eq!(shown(&project, new, member), value);
    }
    let checkpoint = shown(&project, new, "/checkpoint");
    let text = shown(&project, checkpoint.as_str().expect("an id"), "").to_string();
    assert!(!text.contains("ch01.md"), "no old binding: {text}");
    assert_eq!(shown(&project, &packet.handoff, "/state"), "cancelled");
    assert_eq!(shown(&project, attempt.as_str().expect("an id"), "/state"), "revoked");
    let reply = packet.verdict("accept");
    let error = recorded(&project, &["reply"], reply.as_bytes(), 3, "handoff_cancelled");
    kept_and_not_applied(&project, &error);
}

fn kept_and_not_applied(project: &Project, error: &Value) {
    let hash = error["details"]["value"].as_str().expect("the hash of the value");
    let blob = project.read(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]));
    assert!(blob.contains("\"verdict\":\"accept\""), "{blob}");
    assert_eq!(events_of(project, "result.stored").len(), 0);
    assert_eq!(done(project, &["list", "result"])["items"], json!([]));
}

#[test]
fn a_session_begins_again_at_an_older_checkpoint_and_only_there() {
    let project = Project::new();
    let session = project.start();
    project.nf(&["run", "step", "--cursor", "one"]).expect(0);
    let save = ["checkpoint", "save", "--boundary", "context_freeze", "--artifact", "chapter=ch01.md"];
    let older = project.nf(&save).expect(0).line();
    project.nf(&["run", "step", "--cursor", "two"]).expect(0);
    project.nf(&["checkpoint", "save", "--boundary", "other"]).expect(0);
    project.nf(&["run", "finish", "--status", "completed"]).expect(0);
    let error = refused(&project, &["resume", "--checkpoint", &older], 3, "older_checkpoint");
    names(&error["fix"], &[&format!("nf start --from {older}")]);
    done(&project, &["session", "move", &session, "stale"]);
    let started = done(&project, &["start", "--from", &older]);
    assert_eq!(started["cursor"], "one");
    assert_eq!(started["parent"], json!(session));
}

#[test]
fn a_session_that_forbids_it_is_not_resumed_and_names_the_way() {
    let project = Project::new();
    let new =
        ["session", "new", "--resource", "novel/pride", "--task", "review", "--resume-policy", "forbidden"];
    let session = project.nf(&new).expect(0).line();
    done(&project, &["session", "move", &session, "running"]);
    done(&project, &["session", "move", &session, "idle"]);
    let error = refused(&project, &["resume", &session], 3, "cannot_resume");
    names(&error["fix"], &[&format!("nf start --from {session}")]);
}

#[test]
fn a_dry_resume_runs_every_check_and_writes_nothing() {
    let (project, session) = bound();
    let before = project.log();
    let ran = project.nf(&["resume", "-n", "--json"]).expect(0).json();
    assert!(before == project.log());
    assert_eq!(ran["data"]["checks"].as_array().map(Vec::len), Some(11));
    let planned: Vec<&str> = ran["planned"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    let real = done(&project, &["resume"]);
    let last = crate::expect::records(&project).pop().expect("a record");
    let written: Vec<&str> = last["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(planned, written);
    assert_eq!(real["checks"], ran["data"]["checks"]);
    assert_eq!(shown(&project, &session, "/status"), "running");
}

#[test]
fn after_a_killed_shell_the_old_run_is_interrupted_and_may_do_nothing_more() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "accept");
    let session = shown(&project, &packet.handoff, "/source_session");
    let session = session.as_str().expect("an id").to_owned();
    done(&project, &["resume"]);
    let old = shown(&project, &session, "/run");
    let old = old.as_str().expect("an id").to_owned();
    let error = refused(&project, &["resume"], 3, "illegal_transition");
    names(&error["fix"], &[&format!("nf resume {session} --interrupted")]);
    let resumed = done(&project, &["resume", "--interrupted"]);
    assert_ne!(resumed["run"], json!(old));
    assert_eq!(shown(&project, &old, "/status"), "interrupted");
    assert_eq!(shown(&project, &session, "/status"), "running");
    for command in [
        &["run", "step", "--cursor", "x"][..],
        &["run", "finish", "--status", "completed"],
        &["checkpoint", "save", "--boundary", "other"],
        &["consume", &result, "--as", GATE],
        &["freeze", "job.yaml"],
        &["resume", "--interrupted"],
    ] {
        let flagged = [command, &["--run", &old]].concat();
        refused(&project, &flagged, 3, "not_current_run");
        let mut zombie = project.command(&[command, &["--json"]].concat());
        let output = zombie.env("NF_RUN", &old).output().expect("nf runs");
        assert_eq!(output.status.code(), Some(3), "{command:?} under NF_RUN");
    }
    let run = resumed["run"].as_str().expect("an id");
    done(&project, &["consume", &result, "--as", GATE, "--run", run]);
}

#[test]
fn a_result_that_waits_is_named_and_its_gate_goes_with_the_session() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "reject");
    let ran = project.nf(&["resume"]).expect(0);
    assert!(ran.stdout.contains(&format!("unconsumed {result} for {GATE}")), "{}", ran.stdout);
    assert!(ran.stderr.contains(&format!("nf consume {result} --as {GATE}")), "{}", ran.stderr);
    let consumed = done(&project, &["consume", "--as", GATE]);
    assert_eq!(consumed["gate_status"], "rejected");
    done(&project, &["run", "finish", "--status", "completed"]);
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["gates"][GATE]["status"], "rejected", "gates move to the new run");
    assert_eq!(resumed["gates"][GATE]["route"], "repair.story");
    assert_eq!(resumed["unconsumed"], json!([]), "what is consumed is not offered again");
}

#[test]
fn a_returned_result_is_bound_again_from_its_bytes() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "accept");
    let hash = shown(&project, &result, "/blob");
    let hash = hash.as_str().expect("a hash");
    let path = project.at(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]));
    let changed = std::fs::read_to_string(&path).expect("a blob").replace("accept", "reject");
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, changed).expect("written");
    let before = project.log();
    failed(&project, &["resume"], b"", 11, "damaged");
    assert!(before == project.log());
    let again = done_with(&project, &["status"], b"");
    assert_eq!(again["sessions"][0]["status"], "awaiting_user");
}
