//! `work`: queued questions are answered by programs, by the same rules as by hand, and every way in which a
//! program gives no answer has its class, its reason and its exit code.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::expect::{done, events_of, failed, names, recorded, refused, shown, silent, with};
use crate::faults::tools::assert_sound;
use crate::handoffs::{CLASS, claimed, queued};
use crate::harness::{JOB, Packet, Project};

/// How every worker of these tests begins.
pub const WORK: &[&str] = &["work", "--class", CLASS];

/// What a fake program begins with: the packet is in `$packet`, and `answer VERDICT` prints an answer to it.
pub const PRELUDE: &str = r#"#!/bin/sh
read_packet() { packet=$(cat); }
member() { printf '%s\n' "$packet" | sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" | head -n 1; }
answer() {
    printf '{"nf": {"job": "%s", "fingerprint": "%s", "nonce": "%s"}, ' \
        "$(member job)" "$(member fingerprint)" "${nonce:-$(member nonce)}"
    printf '"worker": {"provider": "house", "model": "stated-1"}, "status": "completed", '
    printf '"output": {"verdict": "%s", "evidence": ["%s"], "confidence": 0.5}}\n' "$1" "${2:-A line.}"
}
"#;

/// A project in which programs are found, also those of its folder `bin`.
pub fn project() -> Project {
    let mut project = Project::new();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
    project.set("PATH", &path);
    project
}

/// A fake program of the project.
pub fn program(project: &Project, name: &str, text: &str) {
    project.write(name, format!("{PRELUDE}{text}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.at(name), mode).expect("a mode");
}

/// A project with one queued question and a program that answers as told. Gives the handoff too.
pub fn with_program(text: &str) -> (Project, String) {
    let project = project();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    program(&project, "answer.sh", text);
    (project, handoff)
}

/// A command line of a worker by the project's program.
pub fn line<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [WORK, more, &["--", "./answer.sh"]].concat()
}

/// The provenance of a result.
pub fn provenance(project: &Project, result: &str) -> Value {
    shown(project, result, "/provenance")
}

fn result(data: &Value) -> String {
    data["items"][0]["result"].as_str().unwrap_or_else(|| panic!("a result in {data}")).to_owned()
}

#[test]
fn a_program_answers_and_what_nf_saw_of_it_is_recorded() {
    let (project, handoff) = with_program("read_packet; answer reject");
    let data = done(&project, &line(&["--wall", "1m"]));
    let item = &data["items"][0];
    assert_eq!((&item["fate"], &item["verdict"]["value"]), (&json!("valid"), &json!("reject")));
    assert_eq!((&item["grade"], &item["worker"]), (&json!("declared"), &json!("answer.sh")));
    let result = result(&data);
    let seen = provenance(&project, &result);
    assert_eq!((&seen["transport"], &seen["family"]), (&json!("process"), &json!("service_job")));
    assert_eq!(seen["model_served"], "stated-1", "a program of one's own says what it used");
    let process = &seen["witness"]["invocation"];
    assert_eq!((&process["exit"], &process["env_names"]), (&json!(0), &json!(["PATH"])));
    let file = format!("{}/./answer.sh", project.path().display());
    let argv = nf::model::hash::Hash::of(&nf::model::hash::canonical(&json!([file]))).hex();
    assert_eq!(process["argv_hash"], argv);
    assert!(process["started_at"].as_str() <= process["ended_at"].as_str(), "{process}");
    assert_eq!(seen["witness"].get("isolation"), None, "nothing proves that it did not read the disk");
    let told = project.nf(&["show", &result]).expect(0).stdout;
    for line in ["independence: declared", "one that nf itself made", "it might read the disk"] {
        let word = line.trim_start_matches("one that nf itself made");
        assert!(told.contains(word), "{line} in {told}");
    }
    assert!(told.contains(&format!("process {}", process["pid"])), "{told}");
    let consumed = done(
        &project,
        &[
            "consume",
            &result,
            "--as",
            item["gate"].as_str().expect("a gate"),
            "--session",
            shown(&project, &handoff, "/source_session").as_str().expect("an id"),
        ],
    );
    assert_eq!(consumed["outcome"]["route"], "repair.story");
    assert_sound(&project);
}

#[test]
fn a_judged_or_absent_question_is_not_asked_and_a_dry_run_asks_nobody() {
    let (project, handoff) = with_program("read_packet; answer accept; touch \"$0.ran\"");
    let planned = silent(&project, &line(&["-n"]), b"");
    assert_eq!(planned["answered"], 0);
    assert!(!project.at("answer.sh.ran").exists(), "a dry run runs nothing");
    done(&project, &line(&[]));
    std::fs::remove_file(project.at("answer.sh.ran")).expect("it ran");
    for more in [&[][..], &["--once"], &["--drain"]] {
        refused(&project, &line(more), 8, "pending");
    }
    refused(&project, &line(&[&handoff]), 3, "already_judged");
    let (_, _, other) = queued(&project, "novel/q2", &[]);
    claimed(&project, &[&other]);
    refused(&project, &line(&[&other]), 8, "under_review");
    refused(&project, &line(&[]), 8, "pending");
    assert!(!project.at("answer.sh.ran").exists());
}

/// A program that gives no valid answer: exit code, kind, reason, and whether the answer was given.
const NO_ANSWER: &[(&str, i32, &str, &str)] = &[
    ("exit 3", 7, "execution_failed", "crash"),
    ("read_packet; answer accept; exit 1", 7, "execution_failed", "crash"),
    ("kill -9 $$", 7, "execution_failed", "crash"),
    (":", 7, "execution_failed", "empty"),
    ("echo; echo ' '", 7, "execution_failed", "empty"),
    ("exec sleep 300", 7, "execution_failed", "idle"),
    ("while :; do echo a; sleep 0.1; done", 7, "execution_failed", "timeout"),
    ("exec cat /dev/zero", 7, "execution_failed", "too_much_output"),
    ("read_packet; answer accept | head -c 60", 5, "semantic_invalid", "truncated"),
    ("read_packet; answer perhaps", 5, "semantic_invalid", "verdict"),
    ("read_packet; nonce=AAAAAAAAAAAAAAAAAAAAAAAAAA; answer accept", 5, "semantic_invalid", "attempt"),
    ("echo I would say yes.", 5, "semantic_invalid", "nothing"),
    ("echo '{\"type\": \"error\", \"message\": \"boom\"}'", 5, "semantic_invalid", "nothing"),
    (
        "read_packet; answer accept | sed 's/completed/cannot_judge/; s/, \"output.*/}/'",
        7,
        "execution_failed",
        "cannot_judge",
    ),
    (
        "read_packet; answer accept | sed 's/completed/cannot_judge/; s/\"output.*/\"output\": null}/'",
        7,
        "execution_failed",
        "cannot_judge",
    ),
];

#[test]
fn what_is_no_answer_has_its_class_and_the_question_stays_open() {
    for (text, code, kind, reason) in NO_ANSWER {
        let (project, handoff) = with_program(text);
        let limits = ["--wall", "6s", "--idle", "3s", "--max-bytes", "2000000"];
        let error = failed(&project, &line(&limits), b"", *code, kind);
        let told = error["details"].to_string() + error["cause"].as_str().unwrap_or_default();
        assert!(*reason == "nothing" || told.contains(reason), "{text}: {reason} in {error}");
        let attempt = shown(&project, &handoff, "/attempt");
        assert_eq!(shown(&project, attempt.as_str().expect("an id"), "/state"), "failed", "{text}");
        assert_eq!(shown(&project, &handoff, "/state"), "queued", "{text}");
        assert!(shown(&project, &handoff, "/ready_at").is_string(), "{text}: it pauses");
        assert_eq!(events_of(&project, "result.stored").len(), 0, "{text}");
        // Not even what was printed in vain stays anywhere.
        assert_eq!(events_of(&project, "handoff.claimed").len(), 1, "{text}");
        assert_sound(&project);
    }
}

#[test]
fn a_program_that_is_not_there_costs_no_attempt() {
    let (project, _) = with_program("exit 0");
    for command in ["./no-such.sh", "no-such-program", "./ch01.md"] {
        let error = refused(&project, &[WORK, &["--", command]].concat(), 6, "execution_unavailable");
        names(&error["cause"], &["not_there"]);
    }
    let error = refused(
        &project,
        &[WORK, &["--key-env", "NO_SUCH_KEY", "--", "./answer.sh"]].concat(),
        6,
        "execution_unavailable",
    );
    names(&error["cause"], &["NO_SUCH_KEY is not set"]);
    assert_eq!(events_of(&project, "handoff.claimed").len(), 0);
}

#[test]
fn every_wrong_command_line_says_what_to_do_instead() {
    let (project, _) = with_program("exit 0");
    for (more, word) in [
        (&["--class", CLASS][..], "-- ./review.sh"),
        (&["--class", CLASS, "--op", "k", "--", "./answer.sh"], "NF_OP"),
        (&["--class", CLASS, "--once", "--drain", "--", "./answer.sh"], "--help"),
        (&["--", "./answer.sh"], "--help"),
        (&["--class", CLASS, "--wall", "0s", "--", "./answer.sh"], "above 0"),
        (&["--class", CLASS, "--key-env", "NF_SESSION", "--", "./answer.sh"], "ANTHROPIC_API_KEY"),
        (&["--class", CLASS, "--key-env", "HOME", "--", "./answer.sh"], "ANTHROPIC_API_KEY"),
        (&["--class", CLASS, "--agent", "gpt", "--", "./answer.sh"], "--help"),
        (&["--class", CLASS, "--out", "x", "--", "./answer.sh"], "--from EXPORT"),
        (&["--class", CLASS, "--worker-config", "a", "--model", "m"], "workers.yaml"),
        (&["--class", CLASS, "--worker-config", "a", "--isolate"], "workers.yaml"),
        (&["--from", "e.json", "--class", CLASS, "--", "./answer.sh"], "--help"),
        (&["--from", "e.json", "--gate", "g", "--out", "x", "--", "./answer.sh"], "leave the filter out"),
        (&["--from", "e.json", "--", "./answer.sh"], "--out RESULT"),
    ] {
        let ran = project.nf(&with(&[&["work"], more].concat(), &["--json"])).expect(2);
        names(&ran.json()["error"]["fix"], &[word]);
    }
    assert_eq!(events_of(&project, "handoff.claimed").len(), 0);
}

#[test]
fn a_queue_is_drained_and_the_filters_are_those_of_a_claim() {
    let project = project();
    program(&project, "answer.sh", "read_packet; answer accept");
    for number in 0..4 {
        queued(&project, &format!("novel/q{number}"), &["--gate", &format!("gate/{number}")]);
    }
    let data = done(&project, &line(&["--gate", "gate/2", "--drain", "--worker", "w-1"]));
    assert_eq!((&data["answered"], &data["items"][0]["gate"]), (&json!(1), &json!("gate/2")));
    assert_eq!(data["items"][0]["worker"], "w-1");
    refused(&project, &line(&["--gate", "gate/2", "--drain"]), 8, "pending");
    let ran = project.nf(&line(&["--drain"])).expect(0);
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("by answer.sh: valid, result x-"), "{}", ran.stderr);
    refused(&project, &line(&["--drain"]), 8, "pending");
    // One that answers nothing gives the class of its last failure, though there was work.
    queued(&project, "novel/bad", &[]);
    program(&project, "answer.sh", "exit 1");
    let error = failed(&project, &line(&["--drain"]), b"", 7, "execution_failed");
    assert_eq!(error["details"]["items"].as_array().map(Vec::len), Some(1));
    assert_sound(&project);
}

#[test]
fn nobody_reviews_their_own_question_over_this_door() {
    let (project, handoff) = with_program("read_packet; answer accept");
    let source = shown(&project, &handoff, "/source_session").as_str().expect("an id").to_owned();
    let error =
        refused(&project, &line(&[&handoff, "--worker-session", &source]), 6, "execution_unavailable");
    names(&error["cause"], &["asked the question"]);
    refused(&project, &line(&["--worker-session", &source]), 8, "pending");
    // The session that is acted for is never the one that answers.
    let mut project = project;
    project.set("NF_SESSION", &source);
    let data = done(&project, &line(&[]));
    assert_ne!(provenance(&project, &result(&data))["worker_session"], source.as_str());
}

#[test]
fn only_the_work_that_ran_it_brings_the_answer_of_a_process() {
    let text = "read_packet; printf '%s' \"$packet\" > \"$0.packet\"; exec sleep 300";
    let (project, handoff) = with_program(text);
    let mut working = project.command(&line(&["--ttl", "3s"]));
    let mut working = working.stderr(std::process::Stdio::null()).spawn().expect("nf runs");
    let packet = crate::work_children::appears(&project, "answer.sh.packet");
    let packet = Packet::read(&packet);
    let error = recorded(
        &project,
        &["handoff", "complete"],
        packet.verdict("accept").as_bytes(),
        5,
        "semantic_invalid",
    );
    names(&error["cause"], &["provenance", "only nf work, which ran it"]);
    let code = working.wait().expect("nf ends").code();
    assert_eq!(code, Some(3), "its attempt is no longer active: the program is ended");
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
}

#[test]
fn terms_that_a_program_cannot_meet_are_refused_before_it_runs() {
    let project = project();
    program(&project, "answer.sh", "touch \"$0.ran\"; read_packet; answer accept");
    for (terms, word) in [
        ("min_grade: attested", "at best declared"),
        ("families: [human]", "service_job"),
        ("models: [other-1]", "asks for some-1"),
    ] {
        let subject = format!("novel/{}", &terms[..5]);
        let job = JOB.replace("min_grade: declared", terms).replace("novel/pride/ch01", &subject);
        project.write("job.yaml", &job);
        let session = project.start();
        let job = project.nf(&["freeze", "job.yaml", "--session", &session]).expect(0).line();
        let open = ["handoff", "open", &job, "--class", CLASS, "--session", &session];
        let handoff = project.nf(&open).expect(0).line();
        let error = refused(&project, &line(&[&handoff, "--model", "some-1"]), 6, "execution_unavailable");
        names(&error["cause"], &[word]);
        refused(&project, &line(&["--model", "some-1"]), 8, "pending");
    }
    assert!(!project.at("answer.sh.ran").exists());
}

#[test]
fn what_a_program_says_on_standard_error_is_shown_when_asked_for_and_never_kept() {
    for (more, shown) in [(&[][..], false), (&["--show-stderr"], true)] {
        let (project, _) = with_program("read_packet; echo private-thoughts >&2; answer accept");
        let ran = project.nf(&line(more)).expect(0);
        assert_eq!(ran.stderr.contains("private-thoughts"), shown, "{}", ran.stderr);
        assert!(!String::from_utf8_lossy(&project.log()).contains("private-thoughts"));
    }
}

#[test]
fn an_answer_that_came_when_the_attempt_was_lost_is_kept_and_not_applied() {
    let text = "read_packet; touch \"$0.ran\"; while [ ! -e \"$0.go\" ]; do sleep 0.05; done; answer accept";
    let (project, handoff) = with_program(text);
    // A lease so long that no renewal tells of the loss before the answer comes.
    let mut working = project.command(&line(&["--ttl", "1h", "--json"]));
    let working = working.stdout(std::process::Stdio::piped()).spawn().expect("nf runs");
    crate::work_children::until("its start", || project.at("answer.sh.ran").exists().then_some(()));
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    project.write("answer.sh.go", "");
    let output = working.wait_with_output().expect("nf ends");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["error"]["details"]["items"][0]["fate"], "lease_lost");
    names(&document["error"]["fix"], &["kept as blob"]);
    assert_eq!(events_of(&project, "conflict.refused").len(), 1);
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
    assert_sound(&project);
}
