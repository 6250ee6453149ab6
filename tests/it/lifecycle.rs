//! Every pair of session states through the binary, what each move does to the run, and who moves what.

use serde_json::json;

use crate::expect::{answer, done, done_with, names, refused, shown, silent};
use crate::harness::{Packet, Project};

/// The contract's table.
const TABLE: [(&str, &[&str]); 9] = [
    ("created", &["running"]),
    (
        "running",
        &["idle", "awaiting_user", "awaiting_external", "completed", "failed", "terminated", "stale"],
    ),
    ("idle", &["running", "completed", "terminated", "stale"]),
    ("awaiting_user", &["running", "failed", "terminated", "stale"]),
    ("awaiting_external", &["running", "failed", "terminated", "stale"]),
    ("failed", &["running", "terminated", "stale"]),
    ("completed", &["stale"]),
    ("stale", &["terminated"]),
    ("terminated", &[]),
];

/// What the current run becomes when its session goes there from running.
const RUNS: [(&str, &str); 7] = [
    ("idle", "completed"),
    ("awaiting_user", "waiting"),
    ("awaiting_external", "waiting"),
    ("completed", "completed"),
    ("failed", "failed"),
    ("stale", "interrupted"),
    ("terminated", "terminated"),
];

/// A session in a state.
fn session_in(project: &Project, state: &str) -> String {
    let id =
        project.nf(&["session", "new", "--resource", "novel/pride", "--task", "review"]).expect(0).line();
    if state != "created" {
        project.nf(&["session", "move", &id, "running"]).expect(0);
    }
    if !matches!(state, "created" | "running") {
        project.nf(&["session", "move", &id, state]).expect(0);
    }
    id
}

#[test]
fn all_pairs_that_the_contract_has_not_are_refused_and_name_the_legal_ones() {
    let project = Project::new();
    let mut refusals = 0;
    for (from, legal) in TABLE {
        let session = session_in(&project, from);
        for (to, _) in TABLE {
            if legal.contains(&to) {
                continue;
            }
            refusals += 1;
            let error = refused(&project, &["session", "move", &session, to], 3, "illegal_transition");
            assert_eq!(error["details"]["from"], from, "{from} to {to}");
            assert_eq!(error["details"]["to"], to, "{from} to {to}");
            assert_eq!(error["details"]["legal"], json!(legal), "{from} to {to}");
            names(&error["cause"], if legal.is_empty() { &["is final"] } else { legal });
        }
        assert_eq!(shown(&project, &session, "/status"), from);
    }
    assert_eq!(refusals, 81 - 25);
}

#[test]
fn every_legal_pair_goes_by_hand_but_into_running_only_from_created() {
    let project = Project::new();
    let mut legal_pairs = 0;
    for (from, legal) in TABLE {
        for to in legal {
            legal_pairs += 1;
            let session = session_in(&project, from);
            if *to == "running" && from != "created" {
                let error = refused(&project, &["session", "move", &session, to], 3, "illegal_transition");
                assert_eq!(error["fix"], json!(format!("nf resume {session}")), "{from}");
                let resumed = done(&project, &["resume", &session]);
                assert_eq!(resumed["status"], "running", "{from}");
                continue;
            }
            let before = shown(&project, &session, "/version").as_u64().expect("a number");
            let moved = done(&project, &["session", "move", &session, to]);
            assert_eq!(moved["status"], *to, "{from}");
            assert_eq!(moved["version"], before + 1, "{from} to {to}");
        }
    }
    assert_eq!(legal_pairs, 25);
}

#[test]
fn a_run_ends_or_waits_with_its_session() {
    let project = Project::new();
    for (to, run_status) in RUNS {
        let session = session_in(&project, to);
        let run = shown(&project, &session, "/run");
        let run = run.as_str().expect("an id");
        assert_eq!(shown(&project, run, "/status"), run_status, "{to}");
        let ended = run_status != "waiting";
        assert_eq!(shown(&project, run, "")["ended_at"].is_string(), ended, "{to}");
    }
    for from in ["awaiting_user", "awaiting_external"] {
        for to in ["failed", "terminated", "stale"] {
            let session = session_in(&project, from);
            project.nf(&["session", "move", &session, to]).expect(0);
            let run = shown(&project, &session, "/run");
            let wanted = RUNS.iter().find(|(state, _)| *state == to).expect("a row").1;
            assert_eq!(shown(&project, run.as_str().expect("an id"), "/status"), wanted, "{from} to {to}");
        }
    }
}

#[test]
fn a_writer_that_expects_another_version_is_refused() {
    let project = Project::new();
    let session = project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let version = shown(&project, &session, "/version").as_u64().expect("a number");
    let (right, wrong) = (version.to_string(), (version + 1).to_string());
    for command in [
        &["session", "move", &session, "idle"][..],
        &["run", "step", "--cursor", "x"],
        &["run", "finish", "--status", "completed"],
        &["checkpoint", "save", "--boundary", "other"],
        &["freeze", "job.yaml"],
        &["packet"],
    ] {
        let expecting = [command, &["--expect-version", &wrong]].concat();
        let error = refused(&project, &expecting, 3, "version_mismatch");
        names(&error["cause"], &[&wrong, &right]);
    }
    let moved = done(&project, &["run", "finish", "--status", "completed", "--expect-version", &right]);
    assert_eq!(moved["version"], version + 1);
    let stale = right;
    refused(&project, &["resume", "--expect-version", &stale], 3, "version_mismatch");
    done(&project, &["resume", "--expect-version", &(version + 1).to_string()]);
}

#[test]
fn a_packet_makes_a_running_session_wait_and_leaves_a_waiting_one_as_it_is() {
    for (whom, status, run) in [
        ("chat", "awaiting_user", "waiting"),
        ("human", "awaiting_user", "waiting"),
        ("agent", "awaiting_external", "waiting"),
    ] {
        let project = Project::new();
        let session = project.start();
        project.nf(&["freeze", "job.yaml"]).expect(0);
        done(&project, &["packet", "--for", whom]);
        assert_eq!(shown(&project, &session, "/status"), status, "{whom}");
        let id = shown(&project, &session, "/run");
        assert_eq!(shown(&project, id.as_str().expect("an id"), "/status"), run);
        let version = shown(&project, &session, "/version");
        project.write("second.yaml", crate::harness::JOB.replace("turn the page?", "weep?"));
        let second = project.nf(&["freeze", "second.yaml"]).expect(0).line();
        let other = if whom == "agent" { "chat" } else { "agent" };
        done(&project, &["packet", &second, "--for", other]);
        assert_eq!(shown(&project, &session, "/status"), status, "a second packet moves nothing");
        assert_eq!(shown(&project, &session, "/version"), version);
    }
}

#[test]
fn a_session_that_neither_runs_nor_waits_sends_no_packet_and_names_the_way() {
    let project = Project::new();
    let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
    for (state, way) in [
        ("created", "nf session move"),
        ("idle", "nf resume"),
        ("failed", "nf resume"),
        ("completed", "stale"),
        ("stale", "nf start --from"),
        ("terminated", "nf start --from"),
    ] {
        let session = session_in(&project, state);
        let error = refused(&project, &["packet", &job, "--session", &session], 3, "illegal_transition");
        names(&error["message"], &[&session, state]);
        names(&error["fix"], &[way, &session]);
    }
}

#[test]
fn reply_and_consume_never_move_a_session() {
    let project = Project::new();
    let packet = project.ask();
    let session = shown(&project, &packet.handoff, "/source_session");
    let session = session.as_str().expect("an id").to_owned();
    let stands =
        |project: &Project| (shown(project, &session, "/status"), shown(project, &session, "/version"));
    let before = stands(&project);
    answer(&project, &packet, "accept");
    assert_eq!(stands(&project), before);
    done(&project, &["consume", "--as", "gate/novel/pride/ch01/reader_reaction"]);
    assert_eq!(stands(&project), before);
    let run = shown(&project, &session, "/run");
    done(&project, &["resume"]);
    let run = run.as_str().expect("an id");
    assert_eq!(shown(&project, run, "/status"), "completed");
    assert_eq!(shown(&project, run, "/outcome"), "continued_by");
    let new = shown(&project, &session, "/run");
    assert_eq!(shown(&project, new.as_str().expect("an id"), "/resumed_from"), run);
}

#[test]
fn a_finished_run_leaves_its_session_idle_or_failed_and_resumable() {
    let project = Project::new();
    let session = project.start();
    for (status, state) in [("completed", "idle"), ("failed", "failed")] {
        let finished = done(&project, &["run", "finish", "--status", status]);
        assert_eq!(finished["status"], state);
        refused(&project, &["run", "finish", "--status", status], 3, "illegal_transition");
        refused(&project, &["run", "step", "--cursor", "x"], 3, "not_current_run");
        assert_eq!(done(&project, &["resume"])["session"], json!(session));
    }
}

#[test]
fn the_cursor_moves_with_the_run_and_a_manager_keeps_its_one_task() {
    let project = Project::new();
    project.start();
    let stepped = done(&project, &["run", "step", "--cursor", "ch01/draft", "--task", "review"]);
    assert_eq!(stepped["cursor"], "ch01/draft");
    silent(&project, &["run", "step", "--cursor", "ch01/draft"], b"");
    let error = refused(&project, &["run", "step", "--cursor", "x", "--task", "draft"], 3, "other_task");
    names(&error["cause"], &["review", "draft"]);
}

#[test]
fn a_reviewer_keeps_no_memory_and_other_roles_what_they_ask() {
    let project = Project::new();
    let new = |role: &'static str, rest: &[&'static str]| {
        let base = ["session", "new", "--resource", "novel/pride", "--task", "review", "--role", role];
        [&base[..], rest].concat()
    };
    for memory in ["session", "external", "checkpoint_only"] {
        let arguments = new("semantic_reviewer", &["--memory", memory]);
        let error = refused(&project, &arguments, 2, "usage");
        names(&error["cause"], &["none or bounded", memory]);
    }
    for (role, rest, memory) in [
        ("semantic_reviewer", &[][..], "none"),
        ("semantic_reviewer", &["--memory", "bounded"], "bounded"),
        ("human_reviewer", &[], "none"),
        ("writer", &[], "session"),
        ("manager", &["--memory", "checkpoint_only"], "checkpoint_only"),
        ("other:archivist", &["--memory", "external"], "external"),
    ] {
        let made = done_with(&project, &new(role, rest), b"");
        let id = made["session"].as_str().expect("an id");
        assert_eq!(shown(&project, id, "/memory_policy"), memory, "{role}");
        assert_eq!(shown(&project, id, "/role"), role);
        assert_eq!(shown(&project, id, "/status"), "created");
    }
    refused(&project, &new("editor_in_chief", &[]), 2, "usage");
}

#[test]
fn a_second_packet_of_a_session_is_answered_by_its_own_nonce() {
    let project = Project::new();
    let first = project.ask();
    project.write("second.yaml", crate::harness::JOB.replace("turn the page?", "weep?"));
    let job = project.nf(&["freeze", "second.yaml"]).expect(0).line();
    let second = Packet::read(&project.nf(&["packet", &job]).expect(0).stdout);
    let two = done_with(&project, &["reply"], second.verdict("reject").as_bytes());
    let one = done_with(&project, &["reply"], first.verdict("accept").as_bytes());
    assert_eq!((&two["job"], &one["job"]), (&json!(second.job), &json!(first.job)));
    assert_eq!(one["gate"], two["gate"], "both questions are of one subject and kind");
}
