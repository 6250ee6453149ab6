//! Work that is carried to an empty machine and back: exported, answered where there is no store, imported
//! twice, bound once and consumed once; and all that can go wrong on the way. `NF_TEST_CARRY_KILLS` (24) is
//! the number of kills, `NF_TEST_SEED` repeats the draws.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::expect::{done, done_with, events_of, failed, names, recorded, refused, shown, silent};
use crate::faults::tools::{Random, assert_sound, at_once, count, events, kind, picture};
use crate::handoffs::{CLAIM, queued};
use crate::harness::{Packet, Project, Ran};

const RESULT: &str = "result.json";
/// Milliseconds of an export's lease.
const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// A folder without a store, on a machine where nothing else is known: no variable is set but an empty HOME.
pub struct Far {
    place: Project,
}

impl Far {
    /// An empty machine.
    pub fn new() -> Self {
        Self { place: Project::in_memory() }
    }

    /// Runs a command there.
    pub fn nf(&self, arguments: &[&str]) -> Ran {
        let mut command: Command = self.place.command(arguments);
        let home = self.place.at("home");
        std::fs::create_dir_all(&home).expect("a folder");
        command.env("HOME", home).output().expect("nf runs").into()
    }

    /// Writes a file there.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        self.place.write(path, text);
    }

    /// Carries a file there, and gives its packet.
    #[track_caller]
    pub fn receive(&self, export: &str) -> Packet {
        self.place.write("export.json", export);
        Packet::read(&self.nf(&["packet", "--from", "export.json"]).expect(0).stdout)
    }

    /// Answers there, and gives the result file's text.
    #[track_caller]
    pub fn answer(&self, answer: &str) -> String {
        self.place.write("answer.txt", answer);
        let line = ["reply", "--from", "export.json", "answer.txt", "--out", RESULT];
        assert_eq!(self.nf(&line).expect(0).line(), RESULT);
        self.place.read(RESULT)
    }
}

/// Exports a handoff and gives the file's text.
#[track_caller]
pub fn exported(project: &Project, handoff: &str) -> String {
    project.nf(&["export", handoff, "--worker", "jane"]).expect(0).stdout
}

/// Exports, answers far away with each verdict, and puts the result files into the project.
#[track_caller]
pub fn answered(project: &Project, handoff: &str, verdicts: &[&str]) {
    let far = Far::new();
    let packet = far.receive(&exported(project, handoff));
    for verdict in verdicts {
        project.write(&format!("{verdict}.json"), far.answer(&packet.verdict(verdict)));
    }
}

#[test]
fn carried_to_an_empty_machine_and_back_twice_it_is_bound_once_and_consumed_once() {
    let project = Project::new();
    let (session, job, handoff) = queued(&project, "novel/q1", &["--wait"]);
    let export = ["export", &handoff, "--worker", "jane", "--out", "export.json"];
    let out = done(&project, &export);
    assert_eq!((&out["export"], &out["out"]), (&Value::Null, &json!("export.json")));
    let mode =
        |path: std::path::PathBuf| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(project.at("export.json")), 0o600, "the file holds a secret");
    let text = project.read("export.json");
    let again = silent(&project, &["export", &handoff, "--out", "export.json"], b"");
    assert_eq!((&again["again"], project.read("export.json")), (&json!(true), text.clone()));

    let far = Far::new();
    let packet = far.receive(&text);
    assert_eq!((&packet.job, &packet.handoff), (&job, &handoff));
    assert!(!String::from_utf8_lossy(&project.log()).contains(&packet.nonce));
    let pasted =
        format!("Here is what I think of it, in private.\n```json\n{}\n```\n", packet.verdict("reject"));
    let result = far.answer(&pasted);
    assert_eq!(mode(far.place.at(RESULT)), 0o600);
    assert!(!result.contains("in private"), "what stands around the answer is not kept");
    assert_eq!(far.answer(&pasted), result, "the same answer, the same bytes");
    let left: Vec<String> = std::fs::read_dir(far.place.at("."))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left.len(), 4, "nothing else was made there: {left:?}");

    project.write(RESULT, &result);
    let planned = project.nf(&["import", RESULT, "-n"]).expect(0);
    assert!(planned.stdout.contains("result.stored") && events_of(&project, "result.stored").is_empty());
    let first = done(&project, &["import", RESULT]);
    let second = silent(&project, &["import", RESULT], b"");
    assert_eq!((&first["duplicate"], &second["duplicate"]), (&json!(false), &json!(true)));
    assert_eq!(first["result"], second["result"]);
    assert_eq!(first["steps"], json!(["fence_extracted", "prose_stripped"]));
    let id = first["result"].as_str().expect("an id");
    let provenance = shown(&project, id, "/provenance");
    assert_eq!((&provenance["transport"], &provenance["provider"]), (&json!("import"), &json!("peer-chat")));
    let from = &provenance["imported_from"];
    assert_eq!(from["file"], nf::model::hash::Hash::of(result.as_bytes()).hex());
    assert_eq!(from["pasted"]["bytes"], pasted.len());
    let gate = first["gate"].as_str().expect("a gate");
    let consume = ["consume", "--as", gate, "--session", &session];
    assert_eq!(done(&project, &consume)["outcome"]["value"], "reject");
    silent(&project, &consume, b"");
    silent(&project, &["import", RESULT], b"");
    assert_eq!(
        (events_of(&project, "result.stored").len(), events_of(&project, "receipt.recorded").len()),
        (1, 1)
    );
    let receipt = &events_of(&project, "receipt.recorded")[0]["receipt"];
    assert_eq!(
        (&receipt["history"]["opened"], &receipt["history"]["verdicts"]),
        (&json!(1), &json!(["reject"]))
    );
    assert_sound(&project);
}

#[test]
fn what_binds_nowhere_is_refused_far_away_and_asked_for() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    let far = Far::new();
    let packet = far.receive(&exported(&project, &handoff));
    let answers = [
        ("nothing", "no_answer"),
        (&packet.answer(&json!({})), "binding"),
        (&packet.verdict("accept").replace(&packet.nonce, &"0".repeat(26)), "binding"),
    ];
    for (answer, reason) in answers {
        far.place.write("answer.txt", answer);
        let line = ["reply", "--from", "export.json", "answer.txt"];
        let error = failed(&far.place, &[&line[..], &["--out", RESULT]].concat(), b"", 5, "semantic_invalid");
        assert_eq!(error["details"]["reason"], reason, "{error}");
        names(&error["fix"], &[if reason == "binding" { "--ask" } else { "ask the reviewer" }]);
        let asked = far.nf(&[&line[..], &["--ask"]].concat()).expect(0);
        assert!(asked.stdout.contains("lease") && !asked.stdout.contains("accept"), "{}", asked.stdout);
    }
    assert!(!far.place.at(RESULT).exists(), "no result is written of what does not bind");
    far.place.write("answer.txt", packet.verdict("accept"));
    let dry = far.nf(&["reply", "--from", "export.json", "answer.txt", "-n", "--out", RESULT]).expect(0);
    assert!(dry.stderr.contains("left to the import") && !far.place.at(RESULT).exists());
    failed(&far.place, &["reply", "--from", "export.json", "answer.txt"], b"", 2, "usage");
    let over = ["reply", "--from", "export.json", "answer.txt", "--out", "export.json"];
    failed(&far.place, &over, b"", 2, "usage");
    failed(&far.place, &["packet", "--from", "export.json", "--for", "human"], b"", 2, "usage");
    let agent = far.nf(&["packet", "--from", "export.json", "--for", "agent"]).expect(0).stdout;
    assert_eq!(Packet::read(&agent).nonce, packet.nonce);
    failed(&far.place, &["packet", "h-4q2m"], b"", 1, "no_store");
}

#[test]
fn a_reviewer_that_cannot_judge_is_told_to_the_store() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    let far = Far::new();
    let packet = far.receive(&exported(&project, &handoff));
    let mut answer: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    answer["status"] = json!("cannot_judge");
    answer.as_object_mut().expect("an object").remove("output");
    project.write(RESULT, far.answer(&answer.to_string()));
    recorded(&project, &["import", RESULT], b"", 7, "execution_failed");
    refused(&project, &["import", RESULT], 3, "lease_lost");
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
}

#[test]
fn another_answer_is_a_conflict_and_a_stale_one_is_kept_and_not_applied() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    answered(&project, &handoff, &["accept", "reject"]);
    done(&project, &["import", "accept.json"]);
    recorded(&project, &["import", "reject.json"], b"", 4, "result_conflict");
    refused(&project, &["import", "reject.json"], 4, "result_conflict");
    silent(&project, &["import", "accept.json"], b"");

    let (_, _, handoff) = queued(&project, "novel/q2", &[]);
    answered(&project, &handoff, &["accept"]);
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    let error = recorded(&project, &["import", "accept.json"], b"", 3, "lease_lost");
    names(&error["fix"], &["the answer is kept as blob"]);
    refused(&project, &["import", "accept.json"], 3, "lease_lost");
    let gate = shown(&project, &handoff, "/gate");
    failed(&project, &["consume", "--as", gate.as_str().expect("a gate")], b"", 2, "not_only_candidate");
}

#[test]
fn two_exports_of_one_handoff_are_one_attempt_and_nobody_else_gets_it() {
    let project = Project::new();
    let (session, job, handoff) = queued(&project, "novel/q1", &[]);
    let line = |name: &str| ["export", &handoff, "--worker", name].map(str::to_owned).to_vec();
    let ran = at_once(&project, &(0..16).map(|number| line(["jane", "joe"][number % 2])).collect::<Vec<_>>());
    assert_eq!(events(&project, "handoff.claimed").len(), 1);
    let files: std::collections::BTreeSet<String> =
        ran.iter().filter(|ran| ran.code == 0).map(|ran| ran.json()["data"]["export"].to_string()).collect();
    assert_eq!(files.len(), 1, "whoever got it got the same bytes");
    assert_eq!(ran.iter().filter(|ran| ran.code == 0).count(), 8, "{ran:#?}");
    assert!(ran.iter().all(|ran| ran.code == 0 || kind(ran) == "under_review"), "{ran:#?}");
    failed(&project, CLAIM, b"", 8, "pending");
    let error = failed(&project, &["packet", &job, "--session", &session], b"", 8, "under_review");
    names(&error["fix"], &["release", "--revoke"]);
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    let second = done(&project, &["export", &handoff, "--worker", "joe"]);
    assert_eq!(second["number"], 2);
    // A held piece of work is not exported either.
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    done(&project, CLAIM);
    failed(&project, &["export", &handoff, "--worker", "jane"], b"", 8, "under_review");
}

#[test]
fn an_import_and_a_reclaim_at_once_have_one_outcome() {
    for round in 0..2 {
        let mut project = Project::testing("2026-11-30T10:00:00Z");
        project.set("NF_BOOT", "machine/boot/time/1000");
        let (_, _, handoff) = queued(&project, "novel/q1", &[]);
        answered_here(&project, &handoff);
        project.set("NF_BOOT", &format!("machine/boot/time/{}", 1000 + WEEK_MS));
        let lines = [
            vec!["import".to_owned(), RESULT.to_owned()],
            CLAIM.iter().map(|word| (*word).to_owned()).collect(),
        ];
        let ran =
            at_once(&project, &(0..16).map(|number| lines[(number + round) % 2].clone()).collect::<Vec<_>>());
        let (imports, claims): (Vec<&Ran>, Vec<&Ran>) =
            ran.iter().partition(|ran| ran.stdout.contains("nf.import/"));
        let won = claims.iter().filter(|ran| ran.code == 0).count();
        let taken = imports.iter().filter(|ran| ran.code == 0).count();
        assert_eq!((imports.len(), claims.len()), (8, 8));
        assert!([(0, 8), (1, 0)].contains(&(won, taken)), "{ran:#?}");
        assert!(won == 0 || imports.iter().all(|ran| kind(ran) == "lease_lost"), "{ran:#?}");
        assert_eq!(events(&project, "result.stored").len(), 1 - won);
        assert_eq!(events(&project, "reply.received").len(), 1, "the same file is told once");
        assert_sound(&project);
    }
}

/// As [`answered`], in a testing store: the clock is the project's, and far away there is none.
fn answered_here(project: &Project, handoff: &str) {
    let far = Far::new();
    let packet = far.receive(&exported(project, handoff));
    project.write(RESULT, far.answer(&packet.verdict("accept")));
}

#[test]
fn killed_at_random_moments_it_is_exported_once_bound_once_and_consumed_once() {
    let mut random = Random::new();
    let mut left = count("NF_TEST_CARRY_KILLS", 24);
    let mut round = 0;
    while left > 0 {
        round += 1;
        let project = Project::in_memory().furnished();
        let (session, _, handoff) = queued(&project, &format!("novel/q{round}"), &[]);
        let mut insist = |project: &Project, line: &[&str]| loop {
            let mut child =
                project.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nf");
            if left > 0 && random.below(3) > 0 {
                std::thread::sleep(Duration::from_micros(random.below(15_000) as u64));
                child.kill().expect("a kill");
            }
            match child.wait().expect("nf ends").code() {
                Some(code) => return assert_eq!(code, 0, "{line:?}"),
                None => left = left.saturating_sub(1),
            }
        };
        insist(&project, &["export", &handoff, "--worker", "jane", "--out", "export.json"]);
        let far = Far::new();
        let packet = far.receive(&project.read("export.json"));
        far.place.write("answer.txt", packet.verdict("reject"));
        insist(&far.place, &["reply", "--from", "export.json", "answer.txt", "--out", RESULT]);
        project.write(RESULT, far.place.read(RESULT));
        insist(&project, &["import", RESULT]);
        insist(&project, &["import", RESULT]);
        let gate = shown(&project, &handoff, "/gate");
        insist(&project, &["consume", "--as", gate.as_str().expect("a gate"), "--session", &session]);
        for once in ["handoff.claimed", "reply.received", "result.stored", "receipt.recorded"] {
            assert_eq!(events(&project, once).len(), 1, "{once}");
        }
        assert_sound(&project);
    }
}

/// A result file with its members changed and sealed anew, as whoever can read the code can do it.
fn forged(result: &str, change: impl Fn(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(result).expect("JSON");
    value.as_object_mut().expect("an object").remove("hash");
    change(&mut value);
    let hash = nf::model::hash::Hash::of(&nf::model::hash::canonical(&value));
    value["hash"] = json!(hash);
    value.to_string()
}

#[test]
fn hostile_result_files_are_refused_and_change_nothing() {
    let (project, other) = (Project::new(), Project::new());
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    let (_, _, elsewhere) = queued(&project, "novel/q2", &[]);
    let far = Far::new();
    let export = exported(&project, &handoff);
    let packet = far.receive(&export);
    let result = far.answer(&packet.verdict("accept"));
    let second = done(&project, &["export", &elsewhere, "--worker", "joe"]);
    let set = |pointer: &'static str, to: Value| {
        forged(&result, move |value| *value.pointer_mut(pointer).expect("a member") = to.clone())
    };
    let added = |member: &'static str, to: Value| forged(&result, move |value| value[member] = to.clone());
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let table = [
        ("cut", result[..result.len() / 2].to_owned(), 1, "bad_input"),
        ("edited", result.replace("accept", "reject"), 1, "bad_input"),
        ("a key twice", result.replacen('{', "{\"nf_result\": 1,", 1), 1, "bad_input"),
        ("deep", result.replacen("\"accept\"", &deep, 1), 1, "bad_input"),
        ("huge", format!("{result}{}", " ".repeat(9 << 20)), 1, "too_large"),
        ("newer", added("nf_result", json!(2)), 1, "newer_format"),
        ("a format that is none", added("nf_result", json!("1")), 1, "bad_input"),
        ("a program", added("command", json!(["sh", "-c", "true"])), 1, "bad_input"),
        ("a path", added("path", json!("/etc/passwd")), 1, "bad_input"),
        ("a family", added("family", json!("human")), 1, "bad_input"),
        ("a step that is none", set("/steps", json!(["trusted"])), 1, "bad_input"),
        ("a version that is none", set("/nf", json!("\u{202e}1")), 1, "bad_input"),
        ("another store", set("/store", json!("0".repeat(26))), 3, "mismatched_references"),
        ("an attempt that is not there", set("/attempt", json!("a-000000000000")), 1, "unknown_id"),
        ("another attempt", set("/attempt", second["attempt"].clone()), 3, "mismatched_references"),
        ("another handoff", set("/handoff", json!(elsewhere)), 3, "mismatched_references"),
        ("another job", set("/job", second["job"].clone()), 3, "mismatched_references"),
        ("a nonce that is none", set("/answer/nf/nonce", json!("0".repeat(26))), 5, "semantic_invalid"),
        ("an export file", export.clone(), 2, "usage"),
        ("no file of nf's", "{}".to_owned(), 1, "bad_input"),
        ("no answer", set("/answer", json!("accept")), 5, "semantic_invalid"),
    ];
    let before = picture(&project.at(".novelforge"));
    for (what, text, code, word) in table {
        project.write(RESULT, &text);
        let ran = project.nf(&["import", RESULT, "--json"]);
        assert_eq!((ran.code, kind(&ran).as_str()), (code, word), "{what}: {}", ran.stdout);
        assert!(picture(&project.at(".novelforge")) == before, "{what}: something was changed");
    }
    other.start();
    other.write(RESULT, &result);
    refused(&other, &["import", RESULT], 3, "mismatched_references");
    refused(&project, &["import", "nothing.json"], 1, "io");
    // An answer that claims a permission is told by the checks, as any pasted one.
    project.write(RESULT, forged(&result, |value| value["answer"]["canon_write"] = json!(true)));
    let error = recorded(&project, &["import", RESULT], b"", 5, "semantic_invalid");
    assert_eq!(error["details"]["failed"], json!(["form", "scope"]));
    let own = forged(&result, |_| {});
    done_with(&project, &["import", "-"], own.as_bytes());
}

#[test]
fn an_export_never_lands_in_the_store_or_on_a_file_of_yours() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    for path in ["ch01.md", ".novelforge/export.json", ".novelforge/config.yaml"] {
        refused(&project, &["export", &handoff, "--worker", "jane", "--out", path], 2, "usage");
    }
    refused(&project, &["export", &handoff], 2, "usage");
    refused(&project, &["export", "h-0000", "--worker", "jane"], 1, "unknown_id");
    let (_, job, _) = queued(&project, "novel/q2", &[]);
    refused(&project, &["export", &job, "--worker", "jane"], 2, "usage");
}
