//! Consequential writes: planned, run at most once, proved by their path; and what stands where no proof is.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::expect::{answer, done, events, names, recorded, refused, shown, silent};
use crate::faults::tools::assert_sound;
use crate::harness::{Packet, Project};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";
pub const PATH: &str = "canon/ch01.md";
const WRITE: &str = "cp draft.md canon/ch01.md";
pub const PLAN: &[&str] =
    &["effect", "plan", "--key", "settle", "--path", "canon/ch01.md", "--expect", "draft.md"];

pub fn hash(text: &str) -> String {
    nf::model::hash::Hash::of(text.as_bytes()).hex()
}

/// A project with a running session, a text in `canon/` and the one that is to take its place.
pub fn project() -> (Project, String) {
    let mut project = Project::new();
    project.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    project.write(PATH, "old\n");
    project.write("draft.md", "new\n");
    let session = project.start();
    (project, session)
}

/// The same with the write planned. Gives the effect too.
pub fn planned() -> (Project, String, String) {
    let (project, session) = project();
    let effect = project.nf(PLAN).expect(0).line();
    (project, session, effect)
}

/// Runs a shell's line for the effect.
pub fn run(line: &str) -> [&str; 7] {
    ["effect", "run", "settle", "--", "sh", "-c", line]
}

pub fn json_run(line: &str) -> [&str; 8] {
    ["effect", "run", "settle", "--json", "--", "sh", "-c", line]
}

/// The error of a run that must fail so.
#[track_caller]
pub fn run_fails(project: &Project, line: &str, code: i32, kind: &str) -> Value {
    let error = project.nf(&json_run(line)).expect(code).json()["error"].clone();
    assert_eq!(error["kind"], kind, "{error}");
    error
}

#[track_caller]
pub fn stands(project: &Project, code: i32, status: &str) -> Value {
    let before = project.log();
    let ran = project.nf(&["effect", "check", "settle"]).expect(code);
    assert_eq!(ran.line(), status, "{}", ran.stderr);
    let document = project.nf(&["effect", "check", "settle", "--json"]).expect(code).json();
    assert!(before == project.log(), "a check writes nothing");
    crate::harness::report(&document).clone()
}

#[test]
fn a_write_is_planned_run_once_proved_and_never_run_again() {
    let (project, session, effect) = planned();
    let held = shown(&project, &effect, "");
    assert_eq!((&held["before"], &held["required"]), (&json!(hash("old\n")), &json!(hash("new\n"))));
    let checkpoint = shown(&project, &session, "/checkpoint");
    let checkpoint = shown(&project, checkpoint.as_str().expect("an id"), "");
    assert_eq!(checkpoint["boundary"], "before_write");
    assert_eq!(checkpoint["bindings"]["inline"]["effects"], json!([effect]));
    assert_eq!(stands(&project, 0, "untouched")["uncertain"], false);
    let ran = project.nf(&run(WRITE)).expect(0);
    assert_eq!(ran.line(), "new");
    assert_eq!(stands(&project, 0, "applied")["effect"]["witness"], "run");
    let again = silent(&project, &["effect", "done", "settle"], b"");
    assert_eq!(again["application"], "already");
    let before = project.log();
    let again = project.nf(&run("touch ran-again")).expect(0);
    assert_eq!(again.line(), "already");
    assert!(before == project.log() && !project.at("ran-again").exists());
    let words: Vec<Value> = events(&project).iter().map(|event| event["type"].clone()).collect();
    let of_effect = words.iter().filter(|word| word.as_str().is_some_and(|word| word.starts_with("effect.")));
    assert_eq!(of_effect.collect::<Vec<_>>(), ["effect.planned", "effect.started", "effect.done"]);
    let resumed = done(&project, &["resume", "--interrupted"]);
    let check = resumed["checks"][7].clone();
    assert_eq!((&check["check"], &check["ok"]), (&json!("effects"), &json!(true)));
    names(&check["got"], &[&effect, "settle", "applied"]);
    // After done the record wins over the file.
    project.write(PATH, "something else\n");
    stands(&project, 9, "diverged");
    assert_eq!(project.nf(&run("touch ran-again")).expect(0).line(), "already");
    assert!(!project.at("ran-again").exists());
    let error = refused(&project, &["resume", "--interrupted"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["effects"]));
    names(&error["cause"], &["diverged", PATH]);
    refused(&project, &["effect", "clear", "settle", "--reason", "x"], 3, "effect_refused");
    assert_sound(&project);
}

#[test]
fn the_same_plan_is_the_same_effect_and_another_is_kept_as_a_conflict() {
    let (project, _, effect) = planned();
    let again = silent(&project, PLAN, b"");
    assert_eq!((&again["application"], &again["effect"]["id"]), (&json!("already"), &json!(effect)));
    let mut by_hash = PLAN.to_vec();
    let wanted = hash("new\n");
    by_hash[7] = &wanted;
    assert_eq!(silent(&project, &by_hash, b"")["effect"]["id"], json!(effect));
    let mut other = PLAN.to_vec();
    other[5] = "canon/ch02.md";
    let error = recorded(&project, &other, b"", 4, "effect_conflict");
    let value = error["details"]["value"].as_str().expect("a hash").to_owned();
    let kept = project.read(&format!(".novelforge/blobs/{}/{value}", &value[..2]));
    assert!(kept.contains("canon/ch02.md"), "{kept}");
    assert_eq!(done(&project, &["status"])["conflicts"], 1);
    project.nf(&run(WRITE)).expect(0);
    assert_eq!(silent(&project, PLAN, b"")["effect"]["state"], "done", "a repeat after the write");
    assert_sound(&project);
}

#[test]
fn what_was_started_and_is_not_proved_is_uncertain_until_it_is_settled() {
    for (line, code, kind, words) in [
        ("exit 3", 7, "execution_failed", &["exit code 3", "as it was before"][..]),
        ("kill -9 $$", 7, "execution_failed", &["signal 9"]),
        ("true", 9, "uncertain", &["what it held before"]),
        ("echo half > canon/ch01.md; exit 1", 9, "uncertain", &["exit code 1", "neither before nor after"]),
        ("echo other > canon/ch01.md", 9, "uncertain", &["neither before nor after"]),
        ("rm canon/ch01.md", 9, "uncertain", &["holds nothing"]),
        ("rm canon/ch01.md; mkdir canon/ch01.md", 9, "uncertain", &["no regular file"]),
        ("rm canon/ch01.md; ln -s ../draft.md canon/ch01.md", 9, "uncertain", &["cannot be read"]),
        ("mv canon old; ln -s old canon; cp draft.md old/ch01.md", 9, "uncertain", &["cannot be read"]),
    ] {
        let (project, _, effect) = planned();
        let error = run_fails(&project, line, code, kind);
        let text = json!(format!("{} {}", error["message"], error["cause"]));
        names(&text, words);
        names(&error["fix"], &["nf effect done settle", "nf effect clear settle --reason"]);
        let check = stands(&project, 9, "started");
        assert_eq!((&check["effect"]["key"], &check["uncertain"]), (&json!("settle"), &json!(true)));
        let before = project.log();
        run_fails(&project, "touch ran-again", 9, "uncertain");
        assert!(before == project.log() && !project.at("ran-again").exists(), "{line}");
        let error = refused(&project, &["resume", "--interrupted"], 9, "stale");
        assert_eq!(error["details"]["failed"], json!(["effects"]), "{line}");
        names(&error["cause"], &[&effect, "uncertain"]);
        let status = done(&project, &["status"]);
        assert_eq!(status["sessions"][0]["effects"][0]["id"], json!(effect));
        assert_eq!(status["sessions"][0]["next"], "nf effect check settle");
        refused(&project, &["effect", "done", "settle"], 9, "uncertain");
        let clear = ["effect", "clear", "settle", "--reason", "nothing was written"];
        assert_eq!(done(&project, &clear)["application"], "new");
        assert_eq!(silent(&project, &clear, b"")["application"], "already");
        let error = run_fails(&project, "true", 3, "effect_refused");
        names(&error["fix"], &["nf effect plan"]);
        done(&project, &["resume", "--interrupted"]);
        assert_sound(&project);
    }
}

#[test]
fn after_clear_the_write_is_planned_anew_and_run() {
    let (project, _, first) = planned();
    run_fails(&project, "echo half > canon/ch01.md", 9, "uncertain");
    let long = "The disk was full; half of it was written. ".repeat(20);
    done(&project, &["effect", "clear", "settle", "--reason", &long]);
    refused(&project, &["effect", "clear", "settle", "--reason", " "], 2, "usage");
    let second = done(&project, PLAN);
    assert_eq!(second["application"], "new");
    assert_eq!(
        (&second["effect"]["previous"], &second["effect"]["before"]),
        (&json!(first), &json!(hash("half\n")))
    );
    project.nf(&run(WRITE)).expect(0);
    stands(&project, 0, "applied");
    assert_eq!(shown(&project, &first, "/state"), "cleared");
    assert_sound(&project);
}

#[test]
fn done_by_hand_is_recorded_only_where_the_path_proves_it() {
    let (project, session, effect) = planned();
    let error = refused(&project, &["effect", "done", "settle"], 3, "effect_refused");
    names(&error["message"], &["untouched"]);
    project.write(PATH, "half\n");
    refused(&project, &["effect", "done", "settle"], 9, "diverged");
    let error = run_fails(&project, "touch ran", 9, "diverged");
    names(&error["fix"], &["restore canon/ch01.md", "nf effect clear settle"]);
    project.write(PATH, "new\n");
    let error = run_fails(&project, "touch ran", 3, "effect_refused");
    names(&error["fix"], &["nf effect done settle"]);
    assert!(!project.at("ran").exists());
    stands(&project, 0, "applied");
    assert_eq!(done(&project, &["effect", "done", "settle"])["effect"]["witness"], "hand");
    // One that was started and cut off is proved by hand as well, also when its session has failed.
    let plan = ["effect", "plan", "--key", "two", "--path", "two.md", "--expect", "draft.md"];
    done(&project, &plan);
    project.nf(&["effect", "run", "two", "--", "false"]).expect(7);
    done(&project, &["run", "finish", "--status", "failed"]);
    refused(&project, &["resume"], 9, "stale");
    project.write("two.md", "new\n");
    names(&refused(&project, &["resume"], 9, "stale")["cause"], &["nf effect done two"]);
    done(&project, &["effect", "done", "two"]);
    done(&project, &["resume"]);
    assert_eq!(shown(&project, &effect, "/session"), json!(session));
    assert_sound(&project);
}

#[test]
fn a_path_is_a_file_of_the_project_outside_every_store() {
    let (project, _) = project();
    let outside = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), project.at("out")).expect("a link");
    symlink("nowhere", project.at("dangling")).expect("a link");
    symlink("canon", project.at("linked")).expect("a link");
    symlink("loop", project.at("loop")).expect("a link");
    symlink("canon/ch01.md", project.at("same.md")).expect("a link");
    std::fs::create_dir_all(project.at("inner/.novelforge")).expect("folders");
    let pipe = std::process::Command::new("mkfifo").arg(project.at("pipe")).status().expect("mkfifo");
    assert!(pipe.success());
    let absolute = outside.path().join("x.md").display().to_string();
    let long = "x".repeat(5000);
    for path in [
        "",
        ".",
        "..",
        "../x.md",
        "canon",
        "canon/",
        "canon/new/",
        "canon/..",
        "canon/../../x.md",
        "/etc/passwd",
        "/",
        "out/x.md",
        "dangling",
        "loop",
        "pipe",
        "nofolder/x.md",
        "draft.md/x.md",
        ".novelforge/log/x",
        ".novelforge/config.yaml",
        ".novelforge",
        "inner/.novelforge/x",
        "inner/.novelforge",
        absolute.as_str(),
        long.as_str(),
    ] {
        let plan = ["effect", "plan", "--key", "k", "--path", path, "--expect", "draft.md"];
        refused(&project, &plan, 1, "bad_input");
    }
    for (key, path, real) in [
        ("a", "linked/new.md", "canon/new.md"),
        ("b", "same.md", "canon/ch01.md"),
        ("c", "canon/../other.md", "other.md"),
        ("d", "caf\u{e9} \u{202e}x.md", "caf\u{e9} \u{202e}x.md"),
    ] {
        let plan = ["effect", "plan", "--key", key, "--path", path, "--expect", "draft.md"];
        assert_eq!(done(&project, &plan)["effect"]["path"], real);
    }
    let ran = project.nf(&["status"]).expect(0);
    assert!(!ran.stdout.contains('\u{202e}'), "made visible");
    let plan = ["effect", "plan", "--key", "e", "--path", PATH, "--expect", "draft.md"];
    refused(&project, &plan, 3, "effect_refused");
}

#[test]
fn a_link_put_in_the_way_after_the_plan_is_not_followed() {
    let (project, _, _) = planned();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("ch01.md"), "new\n").expect("written");
    std::fs::rename(project.at("canon"), project.at("kept")).expect("renamed");
    symlink(outside.path(), project.at("canon")).expect("a link");
    stands(&project, 9, "diverged");
    refused(&project, &["effect", "done", "settle"], 9, "diverged");
    run_fails(&project, "touch ran", 9, "diverged");
    assert!(!project.at("ran").exists());
}

#[test]
fn a_path_that_is_bound_is_told_and_bound_anew_after_the_write() {
    let (project, _) = project();
    let save = ["checkpoint", "save", "--boundary", "other", "--authority", "canon=canon/ch01.md"];
    done(&project, &save);
    assert_eq!(done(&project, PLAN)["bound"], json!(["canon"]));
    project.nf(&run(WRITE)).expect(0);
    let error = refused(&project, &["resume", "--interrupted"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["authority"]));
    done(&project, &save);
    done(&project, &["resume", "--interrupted"]);
}

#[test]
fn what_a_plan_names_must_be_there_and_be_something_else() {
    let (project, _) = project();
    let plan = |key: &str, expect: &str| {
        ["effect", "plan", "--key", key, "--path", PATH, "--expect", expect].map(str::to_owned)
    };
    let refused_plan = |key: &str, expect: &str, code: i32, kind: &str| {
        let words = plan(key, expect);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(&project, &words, code, kind)
    };
    refused_plan("k", "nothing.md", 1, "io");
    refused_plan("k", "canon", 1, "io");
    refused_plan("k", PATH, 3, "effect_refused");
    refused_plan("k", &hash("old\n"), 3, "effect_refused");
    for key in ["", "a b", "../x", "a..b"] {
        refused_plan(key, "draft.md", 2, "usage");
    }
    refused(&project, &[PLAN, &["--receipt", "t-0000"]].concat(), 1, "unknown_id");
    refused(&project, &[PLAN, &["--receipt", "x-0000"]].concat(), 2, "usage");
    for command in [&["effect", "check", "setle"][..], &["effect", "done", "setle"]] {
        done(&project, PLAN);
        let error = refused(&project, command, 1, "unknown_id");
        names(&error["cause"], &["did you mean settle?"]);
    }
}

#[test]
fn a_write_rests_on_receipts_that_are_not_negative() {
    for (verdict, code) in [("accept", 0), ("reject", 3)] {
        let (project, _) = project();
        project.nf(&["freeze", "job.yaml"]).expect(0);
        let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
        answer(&project, &packet, verdict);
        let receipt =
            done(&project, &["consume", "--as", GATE])["receipt"].as_str().expect("an id").to_owned();
        let plan = [PLAN, &["--receipt", &receipt]].concat();
        if code == 0 {
            let effect = done(&project, &plan)["effect"]["id"].as_str().expect("an id").to_owned();
            let remarks = done(&project, &["show", &receipt])["remarks"].clone();
            names(&remarks[3], &["rests on it", &effect, "settle", "planned"]);
        } else {
            let error = refused(&project, &plan, code, "effect_refused");
            names(&error["message"], &[&receipt, "negative"]);
        }
    }
}

#[test]
fn a_receipt_that_rests_on_a_contested_result_is_told() {
    let (project, _) = project();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let invalid = packet.verdict("reject").replace("0.7", "7");
    recorded(&project, &["reply"], invalid.as_bytes(), 5, "semantic_invalid");
    answer(&project, &packet, "accept");
    let consume = ["consume", "--as", GATE, "--contested", "A confidence of seven."];
    let receipt = done(&project, &consume)["receipt"].as_str().expect("an id").to_owned();
    let ran = project.nf(&[PLAN, &["--receipt", &receipt]].concat()).expect(0);
    assert!(ran.stderr.contains(&format!("receipt {receipt} rests on a contested result")), "{}", ran.stderr);
    assert_eq!(done(&project, &[PLAN, &["--receipt", &receipt]].concat())["contested"], json!([receipt]));
}
