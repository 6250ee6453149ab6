//! A command repeated with its operation key gives its first answer again and writes nothing; a dry run
//! shows what would be written and writes nothing.

use serde_json::{Value, json};

use crate::expect::{answer, done, events_of, failed, names, recorded, records, refused, shown};
use crate::harness::{CHAPTER, JOB, Packet, Project, Ran};
use crate::routes::DECLARE;

pub mod table;

use table::*;

#[test]
fn every_command_is_a_writer_of_the_table_or_said_to_be_none() {
    fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let words = format!("{words} {}", inner.get_name()).trim().to_owned();
            match inner.has_subcommands() {
                true => leaves(inner, &words, found),
                false => found.push(words),
            }
        }
    }
    let mut found = Vec::new();
    leaves(&nf::cli::command(), "", &mut found);
    assert!(found.len() > 20, "{found:?}");
    let writes = |leaf: &str| WRITERS.iter().any(|(_, words)| starts(words, leaf));
    for leaf in &found {
        let other = OTHERS.iter().filter(|(words, _)| words == leaf).count();
        assert_eq!(usize::from(writes(leaf)) + other, 1, "{leaf} must stand in exactly one of the tables");
    }
    for (leaf, why) in OTHERS {
        assert!(found.iter().any(|known| known == leaf), "{leaf} is no command");
        assert!(!why.is_empty(), "{leaf} needs a reason");
    }
}

/// Whether a command line begins with these words.
fn starts(line: &[&str], words: &str) -> bool {
    words.split(' ').enumerate().all(|(at, word)| line.get(at) == Some(&word))
}

#[test]
fn a_reader_with_a_key_records_none() {
    let scene = scene(Answered);
    let packet = scene.packet.as_ref().expect("a packet");
    let before = scene.project.log();
    for (command, _) in OTHERS.iter().filter(|(_, why)| *why == "reads") {
        let mut words: Vec<&str> = command.split(' ').collect();
        match *command {
            "show" => words.push(&scene.session),
            "list" => words.push("job"),
            "contract check" | "effect check" => continue,
            _ => {}
        }
        scene.project.nf(&[&words[..], &["--op", "reader"]].concat()).expect(0);
    }
    assert!(before == scene.project.log());
    // So the key is still free for a writer.
    done(&scene.project, &["consume", "--as", GATE, "--op", "reader"]);
    assert_eq!(done(&scene.project, &["show", &packet.handoff])["object"]["state"], "completed");
}

#[test]
fn a_packet_is_not_given_again_once_its_attempt_has_ended() {
    let scene = scene(Frozen);
    let first = scene.project.nf(&["packet", "--op", "key-1"]).expect(0).stdout;
    answer(&scene.project, &Packet::read(&first), "accept");
    // The one answer that a key does not bring back: the packet went with its attempt, for its nonce.
    let error = refused(&scene.project, &["packet", "--op", "key-1"], 3, "lease_lost");
    names(&error["message"], &["has ended", "its packet with it"]);
    refused(&scene.project, &["packet", "--op", "key-1", "--gate", "gate/x"], 4, "op_conflict");
}

#[test]
fn each_writer_repeated_with_its_key_gives_the_same_answer_and_writes_nothing() {
    for (stage, command) in WRITERS {
        let scene = scene(*stage);
        let first = scene.run(command, &["--op", "key-1"]).expect(0);
        let before = scene.project.log();
        assert!(records(&scene.project).last().expect("a record")["op"] == "key-1", "{command:?}");
        let again = scene.run(command, &["--op", "key-1"]).expect(0);
        assert_eq!(again.stdout, first.stdout, "{command:?}");
        let mut by_variable = scene.project.command(&scene.arguments(command, &[]));
        by_variable.env("NF_OP", "key-1");
        let again = if command.last() == Some(&"-") {
            scene.run(command, &["--op", "key-1"])
        } else {
            Ran::from(by_variable.output().expect("nf runs")).expect(0)
        };
        assert_eq!(again.stdout, first.stdout, "{command:?} by NF_OP");
        let json = scene.run(command, &["--op", "key-1", "--json"]).expect(0).json();
        assert_eq!(json["ok"], true);
        assert!(json["record"]["seq"].is_u64(), "the first record is named: {json}");
        assert!(before == scene.project.log(), "{command:?} wrote to the log again");
    }
}

#[test]
fn a_repeat_does_not_look_at_files_that_have_changed_meanwhile() {
    for (stage, command) in WRITERS {
        let scene = scene(*stage);
        let first = scene.run(command, &["--op", "key-1"]).expect(0);
        let before = scene.project.log();
        scene.project.write("ch01.md", "Everything is different now.\n");
        scene.project.write("canon.md", "The canon too.\n");
        scene.project.write(".novelforge/config.yaml", "bindings: {authority: [nothing.md]}\n");
        let again = scene.run(command, &["--op", "key-1"]).expect(0);
        assert_eq!(again.stdout, first.stdout, "{command:?}");
        assert!(before == scene.project.log(), "{command:?} wrote to the log again");
    }
}

#[test]
fn the_same_key_with_another_request_is_a_conflict() {
    let scene = scene(Started);
    done(&scene.project, &["run", "step", "--cursor", "one", "--op", "key-1"]);
    for command in [
        &["run", "step", "--cursor", "two"][..],
        &["run", "finish", "--status", "completed"],
        &["freeze", "job.yaml"],
        &["start", "--resource", "novel/pride", "--task", "review"],
    ] {
        let error = refused(&scene.project, &scene.arguments(command, &["--op", "key-1"]), 4, "op_conflict");
        assert_ne!(error["details"]["recorded"], error["details"]["given"], "both hashes: {error}");
        names(&error["message"], &["key-1"]);
    }
    done(&scene.project, &["run", "step", "--cursor", "two", "--op", "key-2"]);
}

#[test]
fn a_changed_job_file_under_the_same_key_is_another_request() {
    let scene = scene(Started);
    done(&scene.project, &["freeze", "job.yaml", "--op", "freeze-1"]);
    scene.project.write("job.yaml", JOB.replace("turn the page?", "weep?"));
    refused(&scene.project, &["freeze", "job.yaml", "--op", "freeze-1"], 4, "op_conflict");
    let scene = self::scene(Asked);
    let packet = scene.packet.clone().expect("a packet");
    let first = packet.verdict("accept");
    scene.project.nf_with(&["reply", "--op", "r"], first.as_bytes()).expect(0);
    let other = packet.verdict("reject");
    failed(&scene.project, &["reply", "--op", "r"], other.as_bytes(), 4, "op_conflict");
}

#[test]
fn a_refusal_recorded_under_a_key_is_the_same_refusal_again() {
    let scene = scene(Asked);
    let project = &scene.project;
    let packet = scene.packet.clone().expect("a packet");
    let invalid = packet.verdict("accept").replace("0.7", "7");
    let first = recorded(project, &["reply", "--op", "r-1"], invalid.as_bytes(), 5, "semantic_invalid");
    let before = project.log();
    let again = failed(project, &["reply", "--op", "r-1"], invalid.as_bytes(), 5, "semantic_invalid");
    assert_eq!(again, first);
    let mut cannot: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    cannot["status"] = json!("cannot_judge");
    cannot.as_object_mut().expect("an object").remove("output");
    let cannot = cannot.to_string();
    assert!(before == project.log());
    let first = recorded(project, &["reply", "--op", "r-2"], cannot.as_bytes(), 7, "execution_failed");
    let again = failed(project, &["reply", "--op", "r-2"], cannot.as_bytes(), 7, "execution_failed");
    assert_eq!(again, first);
    assert_eq!(events_of(project, "reply.received").len(), 2);
    assert_eq!(done(project, &["show", &packet.handoff])["history"]["invalid"], 1);
}

#[test]
fn a_refusal_that_recorded_nothing_leaves_its_key_free() {
    let scene = scene(Asked);
    refused(&scene.project, &["resume", "--op", "go-on"], 8, "pending");
    let packet = scene.packet.as_ref().expect("a packet");
    answer(&scene.project, packet, "accept");
    done(&scene.project, &["resume", "--op", "go-on"]);
}

#[test]
fn a_dry_run_shows_the_events_and_writes_nothing() {
    for (stage, command) in WRITERS {
        let scene = scene(*stage);
        let files = tree(&scene.project);
        let text = scene.run(command, &["-n"]).expect(0);
        let shown: Vec<Value> =
            text.stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        assert!(!shown.is_empty(), "{command:?} shows no event");
        assert!(text.stderr.contains("dry run: nothing was recorded"), "{command:?}: {}", text.stderr);
        let json = scene.run(command, &["--dry-run", "--json"]).expect(0).json();
        assert!(json["record"].is_null(), "{json}");
        assert_eq!(tree(&scene.project), files, "{command:?} left something behind");
        let before = records(&scene.project).len();
        let ran = scene.run(command, &["--json"]).expect(0).json();
        assert!(ran["planned"].is_null() && ran["record"]["seq"].is_u64(), "{ran}");
        let types = |events: &[Value]| events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
        let planned = json["planned"].as_array().expect("events");
        let written = records(&scene.project).split_off(before);
        let twice = starts(command, "effect run");
        assert_eq!(written.len(), if twice { 2 } else { 1 }, "{command:?}");
        let written = written.iter().flat_map(|record| record["events"].as_array().expect("events").clone());
        assert_eq!(types(planned), types(&written.collect::<Vec<_>>()), "{command:?}");
        assert_eq!(types(&shown), types(planned), "{command:?}");
    }
}

/// Every file of the store with its bytes, but for the index.
fn tree(project: &Project) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![project.at(".novelforge")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if path.ends_with("index") => {}
                true => folders.push(path),
                false => files.push((path.display().to_string(), std::fs::read(&path).expect("a file"))),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_dry_refusal_writes_nothing_either() {
    let scene = scene(Asked);
    let packet = scene.packet.as_ref().expect("a packet");
    let before = tree(&scene.project);
    let invalid = packet.verdict("accept").replace("0.7", "7");
    failed(&scene.project, &["reply", "-n"], invalid.as_bytes(), 5, "semantic_invalid");
    failed(&scene.project, &["resume", "-n"], b"", 8, "pending");
    failed(&scene.project, &["consume", "-n", "--as", GATE], b"", 8, "pending");
    scene.project.write("ch01.md", format!("{CHAPTER}."));
    failed(&scene.project, &["resume", "-n"], b"", 9, "stale");
    assert_eq!(tree(&scene.project), before);
}

#[test]
fn an_operation_key_is_a_name() {
    let scene = scene(Started);
    for key in ["", "a b", "../x", "a..b", "\u{e9}"] {
        refused(&scene.project, &["run", "step", "--cursor", "x", "--op", key], 2, "usage");
    }
}

#[test]
fn a_claim_repeated_with_its_key_gives_the_same_attempt_with_a_new_nonce() {
    let scene = scene(Queued);
    let project = &scene.project;
    let files = tree(project);
    let planned = project.nf(&[CLAIM, &["-n", "--json"]].concat()).expect(0).json();
    let last = planned["planned"].as_array().and_then(|events| events.last()).expect("events").clone();
    assert_eq!((last["type"].as_str(), &planned["data"]["nonce"]), (Some("handoff.claimed"), &Value::Null));
    assert_eq!(tree(project), files, "a dry run leaves nothing behind");
    let claim = [CLAIM, &["--op", "key-1"]].concat();
    let first = done(project, &claim);
    let before = records(project).len();
    let again = done(project, &claim);
    for member in ["handoff", "attempt", "number", "job", "gate", "worker_session", "expires_at"] {
        assert_eq!(first[member], again[member], "{member}");
    }
    assert_ne!(first["nonce"], again["nonce"]);
    let words: Vec<Value> =
        records(project)[before..].iter().map(|record| record["events"].clone()).collect();
    assert_eq!(words.len(), 1, "one record: {words:?}");
    assert_eq!(words[0].as_array().map(Vec::len), Some(1), "{words:?}");
    assert_eq!(words[0][0]["type"], "attempt.renonced");
    let nonce = |claimed: &Value| claimed["nonce"].as_str().expect("a nonce").to_owned();
    refused(project, &["handoff", "renew", "--nonce", &nonce(&first)], 3, "lease_lost");
    done(project, &["handoff", "renew", "--nonce", &nonce(&again)]);
    refused(project, &[&claim[..], &["--ttl", "1h"]].concat(), 4, "op_conflict");
    let packet = Packet::read(again["packet"].as_str().expect("a packet"));
    crate::expect::done_with(project, &["handoff", "complete"], packet.verdict("accept").as_bytes());
    refused(project, &claim, 3, "lease_lost");
    assert_eq!(events_of(project, "handoff.claimed").len(), 1);
}
