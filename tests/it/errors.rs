//! Every kind of error through the binary, with its exit code and a next step; and the two streams.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use nf::error::Kind;
use serde_json::json;

use crate::expect::{done, failed, names, refused, refused_with, with};
use crate::harness::{JOB, Project, Ran};

type Prepare = fn(&Project);

fn nothing(_: &Project) {}

fn opened_to_all(project: &Project) {
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(project.at(".novelforge"), open).expect("chmod");
}

fn with_a_changed_log(project: &Project) {
    let folder = std::fs::read_dir(project.at(".novelforge/log")).expect("a log");
    let segment = folder.flatten().next().expect("a segment").path();
    let mut bytes = std::fs::read(&segment).expect("bytes");
    let at = bytes.windows(11).position(|part| part == b"novel/pride").expect("the resource");
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).expect("written");
}

const PUT_BIG: &[&str] = &["event", "put", "x.a", "--key", "k", "--payload", "big.json"];

/// Kinds that one command meets in a store with one running session.
const ROWS: &[(Kind, Prepare, &[&str])] = &[
    (Kind::Io, nothing, &["freeze", "nothing.yaml"]),
    (Kind::Io, nothing, &["-C", "nowhere", "status"]),
    (Kind::UnknownId, nothing, &["show", "s-0000"]),
    (Kind::BadInput, nothing, &["freeze", "ch01.md"]),
    (Kind::BadInput, with_a_program_in_its_config, &["start", "--resource", "a", "--task", "b"]),
    (Kind::TooLarge, |project| project.write("big.yaml", vec![b' '; 9 << 20]), &["freeze", "big.yaml"]),
    (Kind::NoStore, nothing, &["-C", "/", "status"]),
    (Kind::StoreExists, nothing, &["init"]),
    (Kind::ForeignStore, opened_to_all, &["status"]),
    (Kind::Usage, nothing, &["show"]),
    (Kind::Usage, nothing, &["show", "chapter-1"]),
    (Kind::Usage, nothing, &["list", "chapters"]),
    (Kind::NotOnlyCandidate, |project| drop(project.start()), &["run", "step", "--cursor", "x"]),
    (Kind::NoCandidate, nothing, &["packet"]),
    (Kind::IllegalTransition, nothing, &["resume"]),
    (Kind::AuthorityDenied, with_a_permission, &["freeze", "job.yaml"]),
    (Kind::OtherTask, nothing, &["run", "step", "--cursor", "x", "--task", "draft"]),
    (Kind::NotBlind, with_a_hope, &["freeze", "job.yaml"]),
    (Kind::PrivateKey, nothing, &["event", "put", "x.a", "--key", "k", "--payload", r#"{"thinking": 1}"#]),
    (Kind::AuthorityDenied, nothing, &["event", "put", "x.canon_write", "--key", "k"]),
    (Kind::TooLarge, |project| project.write("big.json", vec![b' '; 65 << 10]), PUT_BIG),
    (Kind::VersionMismatch, nothing, &["run", "step", "--cursor", "x", "--expect-version", "9"]),
    (Kind::NotABinding, nothing, &["checkpoint", "save", "--boundary", "other", "--authority", "a=no.md"]),
    (Kind::LooksSecret, nothing, &["capability", "probe", "a", "--family", "human", "--", "api_key=letmein"]),
    (Kind::Damaged, with_a_changed_log, &["status"]),
    (Kind::Poisoned, |project| project.write(".novelforge/POISON", "x"), &["run", "step", "--cursor", "x"]),
];

fn with_a_program_in_its_config(project: &Project) {
    project.write(".novelforge/config.yaml", "reviewer: {command: ./reviewer.sh}\n");
}

fn with_a_permission(project: &Project) {
    project.write("job.yaml", JOB.replace("{result_scope: diagnostic}", "{canon_write: true}"));
}

fn with_a_hope(project: &Project) {
    project.write("job.yaml", JOB.replace("input:\n", "input:\n  expected_verdict: accept\n"));
}

/// Kinds that other tests meet, and where.
const ELSEWHERE: &[(Kind, &str)] = &[
    (Kind::AmbiguousId, "errors::two_ids_that_begin_alike_are_both_shown"),
    (Kind::Busy, "errors::a_lock_that_is_not_had_in_time_is_busy"),
    (Kind::LeaseLost, "late, relay"),
    (Kind::BadSignature, "github::a_delivery_is_checked_before_anything_is_read_of_it"),
    (Kind::AlreadyJudged, "relay"),
    (Kind::Surplus, "late"),
    (Kind::NotCurrentRun, "resume, lifecycle"),
    (Kind::CannotResume, "resume"),
    (Kind::OlderCheckpoint, "resume"),
    (Kind::Exhausted, "relay"),
    (Kind::HandoffCancelled, "resume"),
    (Kind::NotConsumable, "late"),
    (Kind::OpConflict, "ops"),
    (Kind::ResultConflict, "relay"),
    (Kind::ReceiptConflict, "contracts"),
    (Kind::EventConflict, "events"),
    (Kind::MismatchedReferences, "events"),
    (Kind::Contested, "late"),
    (Kind::SemanticInvalid, "cases"),
    (Kind::ExecutionUnavailable, "relay, routes"),
    (Kind::ExecutionFailed, "cases, relay"),
    (Kind::Pending, "resume, consume"),
    (Kind::UnderReview, "relay, late"),
    (Kind::Stale, "resume"),
    (Kind::EffectRefused, "effects"),
    (Kind::EffectConflict, "effects"),
    (Kind::Uncertain, "effects"),
    (Kind::Diverged, "effects"),
    (Kind::NotPassing, "consume: an exit code, never an error"),
];

/// Kinds that need a fault of the machine, or that no command can reach now.
const NOT_HERE: &[(Kind, &str)] = &[
    (Kind::DiskFull, "a full disk"),
    (Kind::UnsupportedFileSystem, "a file system outside the list"),
    (Kind::NewerFormat, "a whole store that a newer program made; tested in the store"),
    (Kind::FactsMoved, "a file that changes three times in one command"),
    (Kind::LockNotExclusive, "a lock that does nothing"),
    (Kind::NotDurable, "a sync that fails"),
];

#[test]
fn every_kind_has_its_test_or_its_reason() {
    let rows = ROWS.iter().map(|(kind, ..)| *kind);
    let others = ELSEWHERE.iter().chain(NOT_HERE).map(|(kind, _)| *kind);
    let listed: BTreeSet<Kind> = rows.chain(others).collect();
    let all: BTreeSet<Kind> = Kind::ALL.iter().copied().collect();
    assert_eq!(all.difference(&listed).collect::<Vec<_>>(), Vec::<&Kind>::new());
}

#[test]
fn each_kind_has_its_exit_code_and_a_next_step_and_writes_nothing() {
    for (kind, prepare, arguments) in ROWS {
        let project = Project::new();
        project.start();
        prepare(&project);
        let error = refused(&project, arguments, i32::from(kind.exit()), &kind.word());
        let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
        assert!(!text("fix").is_empty(), "{kind}: {error}");
        let first = text("message").chars().next().expect("a message");
        assert!(!first.is_uppercase(), "{kind}: {error}");
        let plain = project.nf(arguments).expect(i32::from(kind.exit()));
        assert_eq!(plain.stdout, "", "{kind}: errors go to stderr");
        for word in ["error: ", "fix:   "] {
            assert!(plain.stderr.contains(word), "{kind}: {}", plain.stderr);
        }
        let quiet = project.nf(&with(arguments, &["-q"]));
        let said = quiet.stderr.replace(" --quiet", "");
        assert_eq!(said, plain.stderr, "{kind}: -q silences no error");
    }
}

#[test]
fn a_lock_that_is_not_had_in_time_is_busy() {
    let project = Project::new();
    project.start();
    let lock =
        std::fs::OpenOptions::new().write(true).open(project.at(".novelforge/lock")).expect("the lock");
    lock.lock().expect("held");
    let step = ["run", "step", "--cursor", "x", "--lock-timeout", "50ms"];
    refused(&project, &step, 75, "busy");
    project.nf(&["status"]).expect(0);
    lock.unlock().expect("free");
    project.nf(&step).expect(0);
}

/// Two job files whose ids begin with the same four characters.
fn twins() -> (String, String) {
    let job = |number: u32| {
        format!("kind: k\nsubject: s/{number}\ninput: {{question: q}}\noutput: {{type: object}}\n")
    };
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..100_000 {
        let value = nf::model::yaml::parse(job(number).as_bytes()).expect("YAML");
        let none = |_: &str| Err(nf::error::Error::new(Kind::BadInput, "no contracts"));
        let spec = nf::rules::jobfile::job(&value, &none).expect("a job");
        let frozen = nf::rules::freeze::freeze(&spec, &std::collections::BTreeMap::new()).expect("frozen");
        if let Some(other) = seen.insert(frozen.job.id.expect("an id").to_string()[..6].to_owned(), number) {
            return (job(other), job(number));
        }
    }
    panic!("no two ids begin alike");
}

#[test]
fn two_ids_that_begin_alike_are_both_shown() {
    let project = Project::new();
    let (one, two) = twins();
    let one = project.nf_with(&["freeze", "-"], one.as_bytes()).expect(0).line();
    let two = project.nf_with(&["freeze", "-"], two.as_bytes()).expect(0).line();
    let error = refused(&project, &["show", &one[..6]], 1, "ambiguous_id");
    names(&error["cause"], &[&one, &two]);
    done(&project, &["show", &one]);
    let distinct = one.chars().zip(two.chars()).take_while(|(a, b)| a == b).count() + 1;
    assert_eq!(done(&project, &["show", &two[..distinct]])["id"], json!(two));
}

#[test]
fn what_was_meant_is_offered_for_ids_kinds_and_commands() {
    let project = Project::new();
    let session = project.start();
    let mut near = session.clone();
    near.replace_range(13..14, if session.ends_with('0') { "1" } else { "0" });
    for (arguments, code, kind, word) in [
        (&["show", &near][..], 1, "unknown_id", format!("did you mean {session}?")),
        (&["list", "sesions"], 2, "usage", "did you mean session?".to_owned()),
        (&["frezee", "job.yaml"], 2, "usage", "'freeze'".to_owned()),
        (&["packet", "--gte", "x"], 2, "usage", "--gate".to_owned()),
    ] {
        let error = refused(&project, arguments, code, kind);
        names(&error["cause"], &[&word]);
    }
    for id in
        ["", "s", "s-", "s-4q", "s-4q2mk7ta0xwd9", "S-4q2m", "s-ilou", "q-4q2m", "../x", "s-4q2m\u{0661}"]
    {
        refused(&project, &["show", "--", id], 2, "usage");
    }
    refused(&project, &["packet", &session], 2, "usage");
}

#[test]
fn several_open_sessions_are_listed_and_none_is_guessed() {
    let project = Project::new();
    let (one, two) = (project.start(), project.start());
    for arguments in [
        &["run", "step", "--cursor", "x"][..],
        &["run", "finish", "--status", "completed"],
        &["checkpoint", "save", "--boundary", "other"],
        &["packet"],
        &["resume"],
        &["consume", "--as", "gate/x"],
        &["freeze", "job.yaml"],
    ] {
        let error = refused(&project, arguments, 2, "not_only_candidate");
        names(&error["cause"], &[&one, &two]);
        assert_eq!(error["details"]["candidates"].as_array().map(Vec::len), Some(2), "{arguments:?}");
    }
    done(&project, &["run", "step", "--cursor", "x", "--session", &one[..8]]);
    let by_variable = project.command(&["run", "step", "--cursor", "y"]).env("NF_SESSION", &two).output();
    Ran::from(by_variable.expect("nf runs")).expect(0);
    project.nf(&["session", "move", &two, "stale"]).expect(0);
    done(&project, &["run", "step", "--cursor", "z"]);
}

#[test]
fn a_fixed_clock_counts_only_in_a_store_for_testing() {
    for (name, value) in [("NF_NOW", "2026-11-30T10:00:00Z"), ("NF_BOOT", "m/b/n/1"), ("NF_SEED", "x")] {
        let mut project = Project::new();
        project.set(name, value);
        let error = refused(&project, &["status"], 2, "usage");
        names(&error["message"], &[name, "not for testing"]);
    }
    let mut project = Project::testing("2026-11-30T10:00:00Z");
    for (name, value) in [("NF_NOW", "yesterday"), ("NF_BOOT", "m/b/1"), ("NF_BOOT", "m/b/n/x")] {
        let before = if name == "NF_NOW" { "2026-11-30T10:00:00Z" } else { "m/b/n/1" };
        project.set(name, value);
        refused(&project, &["start", "--resource", "a", "--task", "b"], 2, "usage");
        project.set(name, before);
    }
}

#[test]
fn json_is_one_document_on_stdout_also_when_the_command_line_is_wrong() {
    let project = Project::new();
    for arguments in [
        &["--json"][..],
        &["--json", "frezee"],
        &["--json", "show"],
        &["--json", "packet", "--for", "nobody"],
        &["status", "--json", "--lock-timeout", "soon"],
        &["--json", "session", "move", "s-0000", "sleeping"],
        &["--json", "list", "session", "--limit", "0"],
    ] {
        let ran = project.nf(arguments).expect(2);
        assert_eq!(ran.stderr, "", "{arguments:?}");
        let document = ran.json();
        assert_eq!(document["ok"], false);
        assert_eq!(document["error"]["kind"], "usage");
        assert!(document["schema"].as_str().is_some_and(|name| name.starts_with("nf.")), "{document}");
    }
    let wrong = failed(&project, &["reply", "nothing.txt"], b"", 1, "io");
    names(&wrong["fix"], &["standard input"]);
    refused_with(&project, &["freeze", "-"], b"\xff\xfe", 1, "bad_input");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let project = Project::new();
    project.ask();
    for arguments in [
        &["log"][..],
        &["log", "--json"],
        &["status"],
        &["status", "--json"],
        &["list", "session"],
        &["packet"],
        &["man"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = project.command(arguments);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().expect("nf runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panic") && !stderr.contains("Broken pipe"), "{arguments:?}: {stderr}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    }
}
