//! The control plane where a hostile reader looked: what may not be begun yet, what nobody asks any more,
//! what a gate has left, what runs still, and what a person is told of each.

use serde_json::json;

use crate::expect::{done, events_of, names, refused, shown};
use crate::handoffs::{CLAIM, CLASS, claimed, queued};
use crate::harness::{Packet, Project, Ran};

const NOW: &str = "2026-01-01T08:00:00Z";
const SOON: &str = "2026-01-01T08:10:00Z";

fn boot(minutes: u64) -> String {
    format!("machine/boot/time/{}", 1000 + minutes * 60_000)
}

#[test]
fn a_packet_is_refused_before_its_moment_and_in_the_pause_after_a_failure() {
    let mut project = Project::testing(NOW);
    project.set("NF_BOOT", &boot(0));
    let (session, job, handoff) = queued(&project, "novel/q1", &["--not-before", SOON]);
    let before = project.log();
    for words in [
        &["packet", &handoff][..],
        &["packet", &job, "--session", &session],
        &["packet", "--for", "human", "--session", &session],
        &["handoff", "claim", &handoff, "--class", CLASS, "--worker", "w"],
        &["export", &handoff, "--worker", "jane"],
    ] {
        let error = refused(&project, words, 8, "pending");
        names(&error["cause"], &["2026-01-01T08:10:00"]);
        names(&error["fix"], &["nf handoff cancel"]);
    }
    assert!(before == project.log());
    project.set("NF_NOW", SOON);
    let packet = Packet::read(&project.nf(&["packet", &handoff]).expect(0).stdout);
    assert_eq!(packet.handoff, handoff);
    let (_, _, other) = queued(&project, "novel/q2", &[]);
    let (_, worker) = claimed(&project, &[]);
    done(&project, &["handoff", "fail", "--reason", "crash", "--nonce", &worker.nonce]);
    refused(&project, &["packet", &other], 8, "pending");
}

#[test]
fn an_ended_session_takes_back_what_it_asked() {
    let project = Project::new();
    let (one, _, leased) = queued(&project, "novel/q1", &[]);
    let (_, packet) = claimed(&project, &[]);
    done(&project, &["session", "move", &one, "terminated"]);
    assert_eq!(shown(&project, &leased, "/state"), "cancelled");
    let late = project.nf_with(&["handoff", "complete"], packet.verdict("accept").as_bytes()).expect(3);
    assert!(late.stderr.contains("was cancelled"), "{}", late.stderr);
    let (two, _, waits) = queued(&project, "novel/q2", &[]);
    done(&project, &["session", "move", &two, "stale"]);
    done(&project, &["start", "--from", &two]);
    assert_eq!(shown(&project, &waits, "/state"), "cancelled");
    refused(&project, CLAIM, 8, "pending");
}

#[test]
fn a_gate_that_waits_for_another_question_now_says_so() {
    let project = Project::new();
    project.start();
    project.write("task.md", "Find three sources.\n");
    project.write("returns.yaml", "type: object\n");
    let open = ["handoff", "open", "--class", "specialist", "--gate", "research/ch01", "--instructions"];
    let open = [&open[..], &["task.md", "--returns", "returns.yaml"]].concat();
    let first = project.nf(&open).expect(0).line();
    let second = project.nf(&open).expect(0);
    assert!(second.stderr.contains(&format!("waited for handoff {first} until now")), "{}", second.stderr);
    let third = done(&project, &open);
    assert_eq!(third["displaced"], second.line());
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let packet = project.nf(&["packet", "--gate", "research/ch01"]).expect(0);
    let third = third["handoff"].as_str().expect("an id");
    assert!(packet.stderr.contains(&format!("waited for handoff {third} until now")), "{}", packet.stderr);
}

#[test]
fn what_can_be_reclaimed_is_listed() {
    let mut project = Project::testing(NOW);
    project.set("NF_BOOT", &boot(0));
    let (session, job, lost) = queued(&project, "novel/q1", &["--ttl", "1m"]);
    claimed(&project, &[]);
    let (_, _, seen) = queued(&project, "novel/q2", &["--ttl", "1m"]);
    claimed(&project, &[]);
    let (_, _, held) = queued(&project, "novel/q3", &["--ttl", "1h"]);
    claimed(&project, &[]);
    let list = ["list", "handoff", "--state", "reclaimable"];
    let ids = |project: &Project, more: &[&str]| -> Vec<String> {
        let data = done(project, &[&list[..], more].concat());
        let items = data["items"].as_array().expect("items").clone();
        assert!(items.iter().all(|item| item["stands"] == "reclaimable" && item["state"] == "claimed"));
        items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert!(ids(&project, &[]).is_empty());
    project.set("NF_NOW", SOON);
    project.set("NF_BOOT", &boot(10));
    assert_eq!(ids(&project, &[]), [seen.clone(), lost.clone()], "newest first");
    assert_eq!(ids(&project, &["--session", &session]), std::slice::from_ref(&lost));
    assert_eq!(ids(&project, &["--job", &job]), std::slice::from_ref(&lost));
    let first = done(&project, &[&list[..], &["--limit", "1"]].concat());
    assert_eq!(first["items"][0]["id"], seen.as_str());
    let token = first["next"].to_string();
    assert_eq!(ids(&project, &["--limit", "1", "--after", &token]), std::slice::from_ref(&lost));
    // A claim of other work sees both leases run out: the log says so from then on, and nobody has taken
    // them.
    let (_, _, fourth) = queued(&project, "novel/q4", &["--priority", "9"]);
    assert_eq!(claimed(&project, &[]).0["handoff"], fourth.as_str());
    assert!(!events_of(&project, "lease.expired").is_empty());
    assert_eq!(ids(&project, &[]), [seen.clone(), lost.clone()]);
    let all = done(&project, &["list", "handoff", "--state", "claimed"]);
    let stands = |id: &str| {
        let items = all["items"].as_array().expect("items").iter();
        items.clone().find(|item| item["id"] == id).map(|item| item["stands"].clone())
    };
    assert_eq!((stands(&lost), stands(&held)), (Some(json!("reclaimable")), Some(json!("claimed"))));
    assert!(project.nf(&list).expect(0).stdout.contains("reclaimable"));
    assert_eq!(claimed(&project, &[]).0["handoff"], lost.as_str(), "the oldest first");
    assert_eq!(ids(&project, &[]), [seen]);
}

#[test]
fn a_repeated_claim_whose_time_is_over_says_so() {
    let mut project = Project::testing(NOW);
    project.set("NF_BOOT", &boot(0));
    queued(&project, "novel/q1", &["--ttl", "1m"]);
    let claim = [CLAIM, &["--op", "once"]].concat();
    let first = project.nf(&claim).expect(0);
    assert!(first.stderr.contains("nobody else may claim it until"), "{}", first.stderr);
    project.set("NF_NOW", SOON);
    project.set("NF_BOOT", &boot(10));
    let again = project.nf(&claim).expect(0);
    assert!(again.stderr.contains("its lease ran out") && again.stderr.contains("nf handoff renew"));
    assert!(!again.stderr.contains("nobody else may claim"), "{}", again.stderr);
    let data = done(&project, &claim);
    assert_eq!(data["expired"], true);
    let nonce = data["nonce"].as_str().expect("a nonce");
    done(&project, &["handoff", "renew", "--nonce", nonce]);
    let renewed = project.nf(&claim).expect(0);
    assert!(renewed.stderr.contains("nobody else may claim it until"), "{}", renewed.stderr);
}

#[test]
fn a_dry_run_of_what_is_refused_shows_what_would_be_recorded() {
    let project = Project::new();
    project.start();
    let job =
        crate::harness::JOB.replace("min_grade: declared", "min_grade: declared, families: [local_agent]");
    project.write("job.yaml", job);
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let before = project.log();
    let planned = project.nf(&["route", "--gate", "ci/gate", "-n"]).expect(6);
    assert!(planned.stdout.contains("\"gate.moved\"") && planned.stdout.contains("semantic_pending"));
    assert!(planned.stderr.contains("dry run: nothing was recorded"), "{}", planned.stderr);
    let document = project.nf(&["route", "--gate", "ci/gate", "-n", "--json"]).expect(6).json();
    assert_eq!(document["planned"][0]["type"], "gate.moved");
    assert!(document["error"]["details"].get("planned").is_none());
    assert!(before == project.log());
    let recorded = project.nf(&["route", "--gate", "ci/gate", "--json"]).expect(6).json();
    assert!(recorded.get("planned").is_none(), "{recorded}");
    assert_eq!(events_of(&project, "gate.moved").len(), 1);
}

#[test]
fn a_reviewer_who_could_not_judge_is_told_what_a_worker_does_next() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    let (_, packet) = claimed(&project, &[]);
    let unsure = |packet: &Packet| {
        let mut answer: serde_json::Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
        answer["status"] = json!("cannot_judge");
        answer["reason"] = json!("the text is cut");
        answer.as_object_mut().expect("an object").remove("output");
        answer.to_string()
    };
    let ran = project.nf_with(&["handoff", "complete", "--json"], unsure(&packet).as_bytes()).expect(7);
    let fix = ran.json()["error"]["fix"].as_str().expect("a fix").to_owned();
    assert!(
        fix.starts_with(&format!("nf handoff claim --class {CLASS}")) && !fix.contains("packet"),
        "{fix}"
    );
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
    let (session, _, second) = queued(&project, "novel/q2", &[]);
    let packet = Packet::read(&project.nf(&["packet", &second, "--session", &session]).expect(0).stdout);
    let ran: Ran = project.nf_with(&["reply"], unsure(&packet).as_bytes()).expect(7);
    assert!(ran.stderr.contains(&format!("nf packet {second} opens another")), "{}", ran.stderr);
}

#[test]
fn no_blob_holds_the_nonce_of_an_open_attempt() {
    let project = Project::new();
    let (session, _, _) = queued(&project, "novel/q1", &[]);
    let (_, packet) = claimed(&project, &[]);
    let long = "word ".repeat(100);
    let payload = json!({"seen": packet.nonce, "long": long}).to_string();
    project.write("task.md", format!("{long}\nThe packet says {}.\n", packet.nonce));
    project.write("text.md", &packet.text);
    project.write("good.md", "Find three sources.\n");
    project.write("returns.yaml", "type: object\n");
    project.write("nosy.yaml", format!("type: object\ndescription: '{}'\n", packet.nonce));
    let open = ["handoff", "open", "--class", "specialist", "--gate", "g/one", "--session", &session];
    let with = |instructions: &'static str, returns: &'static str| {
        [&open[..], &["--instructions", instructions, "--returns", returns]].concat()
    };
    let before = project.log();
    for words in [
        with("task.md", "returns.yaml"),
        with("good.md", "nosy.yaml"),
        [&with("good.md", "returns.yaml")[..], &["--artifact", "text=text.md"]].concat(),
        vec!["event", "put", "ci.observed", "--key", "k", "--payload", &payload, "--resource", "r"],
    ] {
        let ran = project.nf(&words).expect(3);
        assert!(ran.stderr.contains("hold the nonce"), "{words:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains(&packet.nonce), "{}", ran.stderr);
    }
    assert!(before == project.log());
    for entry in walkdir::WalkDir::new(project.at(".novelforge")) {
        let entry = entry.expect("an entry");
        let bytes =
            if entry.file_type().is_file() { std::fs::read(entry.path()).expect("bytes") } else { vec![] };
        let nonce = packet.nonce.as_bytes();
        assert!(!bytes.windows(nonce.len()).any(|part| part == nonce), "{}", entry.path().display());
    }
    // Once the attempt is over its packet is a text like any other.
    done(&project, &["handoff", "release", "--nonce", &packet.nonce]);
    project.nf(&with("task.md", "returns.yaml")).expect(0);
}
