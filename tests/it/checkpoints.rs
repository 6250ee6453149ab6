//! Where the work is kept along the path, what each kept point holds, and where a cut-off run goes on.

use serde_json::{Value, json};

use crate::expect::{answer, done, done_with, events_of, names, refused, shown};
use crate::harness::{CHAPTER, Packet, Project};

const NOW: &str = "2026-11-30T10:00:00.000000Z";

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A project with a running session, and that session.
fn started() -> (Project, String) {
    let project = Project::testing(NOW);
    let session = project.start();
    (project, session)
}

/// The session's newest checkpoint.
#[track_caller]
fn newest(project: &Project, session: &str) -> Value {
    let id = text(&shown(project, session, "/checkpoint"));
    shown(project, &id, "")
}

/// The newest checkpoint is at this boundary, waits for this, binds the chapter so, and holds every other
/// member as the session and its run have it.
#[track_caller]
fn kept(project: &Project, session: &str, boundary: &str, pending: &Value, chapter: Option<&str>) {
    let hash = nf::model::hash::Hash::of(CHAPTER.as_bytes()).hex();
    let bound = chapter.map(|binding| {
        json!({"artifacts": [{"name": "chapter", "path": "ch01.md", "hash": hash, "binding": binding}]})
    });
    let holder = shown(project, session, "");
    let run = shown(project, &text(&holder["run"]), "");
    let want = json!({
        "id": holder["checkpoint"],
        "session": session,
        "session_version": holder["version"],
        "run": holder["run"],
        "boundary": boundary,
        "cursor": run["cursor"],
        "pending": pending,
        "resume_policy": "revalidate",
        "at": NOW,
        "bindings": {"inline": bound.unwrap_or_else(|| json!({}))},
    });
    assert_eq!(newest(project, session), want);
}

#[test]
fn each_step_of_the_path_keeps_its_own_point() {
    for (whom, boundary) in [("chat", "user_wait"), ("human", "user_wait"), ("agent", "external_wait")] {
        let (project, session) = started();
        kept(&project, &session, "other", &json!({}), None);
        done(&project, &["run", "step", "--cursor", "ch01/review"]);
        kept_before(&project, &session, "start");
        done(&project, &["freeze", "job.yaml"]);
        kept(&project, &session, "candidate_frozen", &json!({}), Some("exact"));
        let packet = Packet::read(&project.nf(&["packet", "--for", whom]).expect(0).stdout);
        let pending = json!({"handoff": packet.handoff, "gate": GATE});
        kept(&project, &session, boundary, &pending, Some("exact"));
        // A person is known by a name, a model by its own.
        let reply = packet.verdict("reject").replace("\"model\":", "\"name\":\"A. Reader\",\"model\":");
        done_with(&project, &["reply"], reply.as_bytes());
        kept(&project, &session, "result_bound", &pending, Some("exact"));
        done(&project, &["consume", "--as", GATE]);
        kept(&project, &session, "other", &json!({"gate": GATE}), Some("context"));
        done(&project, &["resume"]);
        kept(&project, &session, "other", &json!({}), Some("context"));
        let points = events_of(&project, "checkpoint.saved");
        assert_eq!(points.len(), 6, "{whom}: one for each step and none besides");
    }
}

/// A step moves the run and not the point that was kept before it.
#[track_caller]
fn kept_before(project: &Project, session: &str, cursor: &str) {
    assert_eq!(newest(project, session)["cursor"], cursor);
    let run = text(&shown(project, session, "/run"));
    assert_ne!(shown(project, &run, "/cursor"), cursor);
}

#[test]
fn a_passing_answer_leaves_the_text_bound_as_it_was_judged() {
    let (project, session) = started();
    done(&project, &["freeze", "job.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    answer(&project, &packet, "accept");
    done(&project, &["consume", "--as", GATE]);
    let pending = json!({"handoff": packet.handoff, "gate": GATE});
    kept(&project, &session, "result_bound", &pending, Some("exact"));
}

#[test]
fn a_run_shows_all_that_it_was_given_waits_for_and_came_to() {
    let (project, session) = started();
    let first = text(&shown(&project, &session, "/run"));
    let run = |status: &str, pending: Value| {
        json!({"id": first, "session": session, "task_mode": "review", "resource": "novel/pride",
            "cursor": "start", "context_manifest": [], "pending": pending, "status": status,
            "started_at": NOW})
    };
    let nothing = json!({"handoffs": [], "gates": {}});
    assert_eq!(shown(&project, &first, ""), run("running", nothing));
    done(&project, &["freeze", "job.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let out = json!({"handoffs": [packet.handoff],
        "gates": {GATE: {"status": "pending", "handoff": packet.handoff}}});
    assert_eq!(shown(&project, &first, ""), run("waiting", out));
    let result = answer(&project, &packet, "reject");
    let back = json!({"handoffs": [],
        "gates": {GATE: {"status": "pending", "handoff": packet.handoff}}});
    assert_eq!(shown(&project, &first, ""), run("waiting", back));
    done(&project, &["consume", "--as", GATE]);
    let gates = json!({"handoffs": [], "gates": {GATE: {"status": "rejected", "handoff": packet.handoff,
        "result": result, "verdict": "reject", "route": "repair.story"}}});
    assert_eq!(shown(&project, &first, ""), run("waiting", gates.clone()));
    let resumed = done(&project, &["resume"]);
    let mut ended = run("completed", gates.clone());
    ended["outcome"] = json!("continued_by");
    ended["ended_at"] = json!(NOW);
    assert_eq!(shown(&project, &first, ""), ended);
    let hash = nf::model::hash::Hash::of(CHAPTER.as_bytes()).hex();
    let mut next = run("running", gates);
    next["id"] = resumed["run"].clone();
    next["resumed_from"] = json!(first);
    next["context_manifest"] = json!([{"name": "chapter", "path": "ch01.md", "hash": hash}]);
    assert_eq!(shown(&project, &text(&resumed["run"]), ""), next);
}

#[test]
fn every_invocation_has_a_list_of_what_it_was_given() {
    let (project, session) = started();
    done(&project, &["freeze", "job.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let attempt = text(&shown(&project, &packet.handoff, "/attempt"));
    let hash = nf::model::hash::Hash::of(CHAPTER.as_bytes()).hex();
    let given = shown(&project, &attempt, "/context_manifest");
    assert_eq!(given, json!([{"name": "chapter", "hash": hash}]), "a reviewer is told no path");
    answer(&project, &packet, "accept");
    done(&project, &["resume"]);
    for event in events_of(&project, "run.started") {
        let manifest = &event["run"]["context_manifest"];
        let first = event["run"]["resumed_from"].is_null();
        assert_eq!(manifest.as_array().map(Vec::len), Some(if first { 0 } else { 1 }), "{event}");
    }
    let run = text(&shown(&project, &session, "/run"));
    let manifest = json!([{"name": "chapter", "path": "ch01.md", "hash": hash}]);
    assert_eq!(shown(&project, &run, "/context_manifest"), manifest);
}

#[test]
fn a_capability_that_pending_work_needs_and_nothing_proves_stops_resume() {
    let (project, session) = started();
    let save = [
        "checkpoint",
        "save",
        "--boundary",
        "before_long_work",
        "--capability",
        "vision",
        "--capability",
        "de",
    ];
    done(&project, &save);
    let bindings = newest(&project, &session)["bindings"].clone();
    assert_eq!(bindings, json!({"inline": {"capabilities": ["vision", "de"]}}));
    done(&project, &["freeze", "job.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let held = newest(&project, &session)["bindings"]["inline"]["capabilities"].clone();
    assert_eq!(held, json!(["vision", "de"]), "carried over");
    let error = refused(&project, &["resume"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["capabilities"]), "{error}");
    names(&error["cause"], &["vision: no evidence; de: no evidence"]);
    answer(&project, &packet, "accept");
    done(&project, &["consume", "--as", GATE]);
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["status"], "running");
    let checks = resumed["checks"].as_array().expect("checks").clone();
    let check = checks.iter().find(|check| check["check"] == "capabilities").expect("the check");
    assert_eq!((&check["ok"], &check["got"]), (&json!(true), &json!("no outstanding work")));
}

#[test]
fn a_cut_off_run_goes_on_at_its_own_cursor_and_not_at_the_older_checkpoints() {
    let (project, session) = started();
    let save = ["checkpoint", "save", "--boundary", "before_long_work", "--cursor", "ch01/a"];
    done(&project, &save);
    done(&project, &["run", "step", "--cursor", "ch01/b"]);
    let old = text(&shown(&project, &session, "/run"));
    // The shell is killed here: nothing more is written for it.
    assert_eq!(newest(&project, &session)["cursor"], "ch01/a");
    let resumed = done(&project, &["resume", "--interrupted"]);
    assert_eq!(resumed["cursor"], "ch01/b");
    assert_eq!(newest(&project, &session)["cursor"], "ch01/b");
    let run = text(&resumed["run"]);
    assert_eq!(shown(&project, &run, "/resumed_from"), json!(old));
    assert_eq!(shown(&project, &old, "/status"), "interrupted");
    assert_eq!(shown(&project, &old, "/outcome"), "interrupted");
    let moves: Vec<String> = events_of(&project, "session.moved")
        .iter()
        .filter(|event| event["session"] == json!(session))
        .map(|event| format!("{}-{}", text(&event["from"]), text(&event["to"])))
        .collect();
    assert_eq!(moves, ["created-running", "running-failed", "failed-running"]);
}

#[test]
fn a_cut_off_run_whose_bindings_changed_is_left_as_it_is() {
    let (project, session) = started();
    project.write("canon.md", "Elizabeth is the second of five.\n");
    let save = ["checkpoint", "save", "--boundary", "before_write", "--authority", "canon=canon.md"];
    done(&project, &save);
    let (run, version) = (shown(&project, &session, "/run"), shown(&project, &session, "/version"));
    project.write("canon.md", "Elizabeth is the first of five.\n");
    for arguments in [&["resume", "--interrupted", "-n"][..], &["resume", "--interrupted"]] {
        let error = refused(&project, arguments, 9, "stale");
        assert_eq!(error["details"]["failed"], json!(["authority"]), "{error}");
    }
    assert_eq!(shown(&project, &session, "/run"), run);
    assert_eq!(shown(&project, &session, "/version"), version);
    assert_eq!(shown(&project, &text(&run), "/status"), "running");
    project.write("canon.md", "Elizabeth is the second of five.\n");
    assert_eq!(done(&project, &["resume", "--interrupted"])["status"], "running");
}

#[test]
fn semantic_pending_is_a_gates_word_and_no_sessions() {
    use nf::model::run::GateStatus;
    use nf::model::session::Status;
    assert!("semantic_pending".parse::<Status>().is_err());
    assert_eq!("semantic_pending".parse::<GateStatus>(), Ok(GateStatus::SemanticPending));
    let (project, session) = started();
    let refused = project.nf(&["session", "move", &session, "semantic_pending"]).expect(2);
    assert!(refused.stderr.contains("awaiting_external"), "the real words are named: {}", refused.stderr);
    assert_eq!(shown(&project, &session, "/status"), "running");
}
