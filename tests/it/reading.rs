//! Reading shows what is recorded, a page at a time, and writes nothing.

use serde_json::{Value, json};

use crate::expect::{answer, done, names, records, refused, shown, silent};
use crate::harness::{Packet, Project, Ran};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

fn ids(data: &Value) -> Vec<String> {
    data["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn a_list_is_newest_first_and_its_pages_stay_good_while_new_objects_come_in() {
    let project = Project::new();
    let mut all: Vec<String> = (0..5).map(|_| project.start()).collect();
    all.reverse();
    let first = silent(&project, &["list", "session", "--limit", "2"], b"");
    assert_eq!(ids(&first), all[..2]);
    project.start();
    let token = first["next"].to_string();
    let second = silent(&project, &["list", "session", "--limit", "2", "--after", &token], b"");
    assert_eq!(ids(&second), all[2..4]);
    let token = second["next"].to_string();
    let third = silent(&project, &["list", "sessions", "--limit", "2", "--after", &token], b"");
    assert_eq!(ids(&third), all[4..]);
    assert!(third["next"].is_null(), "{third}");
}

#[test]
fn a_list_is_narrowed_by_state_resource_job_and_session() {
    let project = Project::new();
    let packet = project.ask();
    let source = shown(&project, &packet.handoff, "/source_session");
    let source = source.as_str().expect("an id");
    let other = project.nf(&["start", "--resource", "novel/emma", "--task", "review"]).expect(0).line();
    let list = |arguments: &[&str]| ids(&silent(&project, &[&["list"], arguments].concat(), b""));
    assert_eq!(list(&["session", "--resource", "novel/emma"]), std::slice::from_ref(&other));
    assert_eq!(list(&["session", "--state", "awaiting_user"]), [source]);
    assert_eq!(list(&["job", "--resource", "novel/pride/ch01"]), std::slice::from_ref(&packet.job));
    assert_eq!(list(&["handoff", "--job", &packet.job]), std::slice::from_ref(&packet.handoff));
    assert_eq!(list(&["attempt", "--job", &packet.job, "--state", "completed"]), Vec::<String>::new());
    assert_eq!(list(&["attempt", "--job", &packet.job, "--state", "active"]).len(), 1);
    assert_eq!(list(&["run", "--session", &other]).len(), 1);
    let result = answer(&project, &packet, "accept");
    assert_eq!(list(&["result", "--state", "valid"]), std::slice::from_ref(&result));
    assert_eq!(list(&["result", "--job", &packet.job[..8]]), [result]);
    let empty = project.nf(&["list", "receipt"]).expect(0);
    assert_eq!((empty.stdout.as_str(), empty.stderr.trim_end()), ("", "no receipt to list"));
}

#[test]
fn show_explains_a_job_a_handoff_and_a_result() {
    let project = Project::new();
    let packet = project.ask();
    let job = silent(&project, &["show", &packet.job], b"");
    assert_eq!(job["history"]["opened"], 1);
    names(&job["remarks"][0], &["min_grade declared", "peer_chat", "interactive true"]);
    let handoff = silent(&project, &["show", &packet.handoff[..7]], b"");
    assert_eq!(handoff["id"], json!(packet.handoff));
    names(&handoff["remarks"][0], &["stands: out", "packet for chat"]);
    names(&handoff["remarks"][2], &["number 1", "active"]);
    let result = answer(&project, &packet, "reject");
    let text = project.nf(&["show", &result]).expect(0).stdout;
    for word in ["answer:", "verdict: reject", "independence: declared", "history: 1 attempt opened"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains(&packet.nonce));
}

#[test]
fn validate_runs_all_checks_again_and_writes_nothing() {
    let project = Project::new();
    let packet = project.ask();
    refused(&project, &["validate"], 2, "no_candidate");
    let result = answer(&project, &packet, "reject");
    let checked = silent(&project, &["validate"], b"");
    assert_eq!(checked["result"], json!(result));
    assert_eq!(checked["standing"], "valid");
    let all = checked["checks"].as_array().expect("checks");
    assert!(all.len() == 13 && all.iter().all(|check| check["ok"] == true));
    let text = project.nf(&["validate", &result]).expect(0).stdout;
    assert_eq!(text.lines().count(), 14, "{text}");
    done(&project, &["consume", "--as", GATE]);
    silent(&project, &["validate", &result], b"");
    let hash = shown(&project, &result, "/blob");
    let hash = hash.as_str().expect("a hash");
    std::fs::remove_file(project.at(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]))).expect("a blob");
    refused(&project, &["validate", &result], 11, "damaged");
}

#[test]
fn the_log_shows_its_newest_records_and_those_of_one_object() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "accept");
    let whole = project.nf(&["log"]).expect(0).stdout;
    assert_eq!(whole.lines().count(), records(&project).len());
    let last = project.nf(&["log", "--limit", "1"]).expect(0).stdout;
    assert!(last.contains("result.stored") && last.lines().count() == 1, "{last}");
    let of_result = project.nf(&["log", &result[..8]]).expect(0).stdout;
    assert_eq!(of_result, last, "one record names the result");
    let lines = project.nf(&["log", "--json"]).expect(0).stdout;
    assert_eq!(lines.as_bytes(), project.log(), "byte for byte what is recorded");
    refused(&project, &["log", "--limit", "0"], 2, "usage");
}

#[test]
fn the_store_is_the_nearest_upward_or_the_one_that_is_named() {
    let project = Project::new();
    let session = project.start();
    std::fs::create_dir_all(project.at("a/b")).expect("folders");
    let status = |ran: Ran| ran.expect(0).json()["data"]["sessions"][0]["session"].clone();
    assert_eq!(status(project.nf(&["-C", "a/b", "status", "--json"])), json!(session));
    let away = Project::empty();
    let mut named = away.command(&["status", "--json"]);
    named.env("NF_DIR", project.at(".novelforge"));
    assert_eq!(status(named.output().expect("nf runs").into()), json!(session));
    let frozen = project.nf(&["-C", "a/b", "freeze", "../../job.yaml"]).expect(0);
    assert!(frozen.line().starts_with("j-"), "artifacts are named from the project root");
}

#[test]
fn a_checkpoint_holds_hashes_up_to_its_limit_and_never_a_text() {
    let project = Project::new();
    project.start();
    let save = |count: usize| {
        let names: Vec<String> =
            (0..count).map(|number| format!("artifact-{number:04}=ch01.md:context")).collect();
        let mut arguments = vec!["checkpoint", "save", "--boundary", "context_freeze"];
        arguments.extend(names.iter().flat_map(|name| ["--artifact", name.as_str()]));
        arguments.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |count: usize| {
        let arguments = save(count);
        project.nf(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let small = run(3).expect(0).line();
    assert!(shown(&project, &small, "").to_string().contains("artifact-0002"));
    let large = run(100).expect(0).line();
    assert!(!shown(&project, &large, "").to_string().contains("artifact-0099"), "over 4 KiB it is a blob");
    let before = project.log();
    let refusal = run(900).expect(1);
    assert!(refusal.stderr.contains("at most 64 KiB"), "{}", refusal.stderr);
    assert!(before == project.log());
    assert!(!String::from_utf8_lossy(&before).contains("universally acknowledged"));
    done(&project, &["run", "finish", "--status", "completed"]);
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["context"].as_array().map(Vec::len), Some(100), "carried over from the blob");
}

#[test]
fn what_cannot_be_read_again_is_no_binding() {
    let project = Project::new();
    project.start();
    project.write("v.yaml", "a: {b: 1}\n");
    std::os::unix::fs::symlink("/etc/hostname", project.at("out.txt")).expect("a link");
    for (flag, value, code, kind) in [
        ("--authority", "a=nothing.md", 3, "not_a_binding"),
        ("--authority", "a=out.txt", 3, "not_a_binding"),
        ("--authority", "a=../x", 3, "not_a_binding"),
        ("--artifact", "a=.novelforge/store.json", 3, "not_a_binding"),
        ("--compat", "a=v.yaml#/a/c", 3, "not_a_binding"),
        ("--compat", "a=ch01.md#/a", 3, "not_a_binding"),
        ("--authority", "ch01.md", 2, "usage"),
        ("--authority", "a b=ch01.md", 2, "usage"),
        ("--approval", "a=ch01.md,expires=soon", 2, "usage"),
        ("--boundary", "somewhere", 2, "usage"),
    ] {
        let base = ["checkpoint", "save"];
        let boundary: &[&str] = if flag == "--boundary" { &[] } else { &["--boundary", "other"] };
        refused(&project, &[&base[..], boundary, &[flag, value]].concat(), code, kind);
    }
    let good = ["checkpoint", "save", "--boundary", "other", "--compat", "a=v.yaml#/a/b"];
    project.nf(&good).expect(0);
}

#[test]
fn a_rejected_text_that_is_frozen_again_may_still_be_repaired() {
    let project = Project::new();
    let packet = project.ask();
    answer(&project, &packet, "reject");
    done(&project, &["consume", "--as", GATE]);
    done(&project, &["freeze", "job.yaml"]);
    project.write("ch01.md", "Repaired.\n");
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["reread"], json!(["chapter"]));
    done(&project, &["freeze", "job.yaml"]);
    project.write("ch01.md", "Changed under a frozen candidate.\n");
    done(&project, &["run", "finish", "--status", "completed"]);
    refused(&project, &["resume"], 9, "stale");
}

#[test]
fn making_a_store_can_be_tried_first_and_is_done_once() {
    let project = Project::empty();
    project.nf(&["init", "-n"]).expect(0);
    assert!(!project.at(".novelforge").exists(), "a dry run makes nothing");
    project.nf(&["init", "--git"]).expect(0);
    let ignored = project.read(".novelforge/.gitignore");
    assert!(ignored.contains("packets") || ignored.starts_with('*'), "{ignored}");
    refused(&project, &["init"], 1, "store_exists");
    let packet = project.nf(&["packet"]).expect(2);
    assert!(packet.stderr.contains("nf start"), "{}", packet.stderr);
}

#[test]
fn a_packet_that_was_lost_is_replaced_by_a_new_attempt() {
    let project = Project::new();
    let old = project.ask();
    let attempt = shown(&project, &old.handoff, "/attempt");
    let attempt = attempt.as_str().expect("an id").to_owned();
    std::fs::remove_file(project.at(&format!(".novelforge/packets/{attempt}"))).expect("a packet");
    let new = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert_eq!(new.handoff, old.handoff);
    assert_ne!(new.nonce, old.nonce);
    assert_eq!(shown(&project, &attempt, "/state"), "superseded");
}
