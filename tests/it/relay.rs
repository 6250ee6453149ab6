//! The relay loop: a verdict is a result, not a failure, and the same question is asked once.

use serde_json::{Value, json};

use crate::expect::{
    answer, done, done_with, events_of, failed, names, recorded, refused, refused_with, shown, silent,
};
use crate::harness::{JOB, Packet, Project};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

fn rejected() -> (Project, Packet, String) {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "reject");
    let consumed = done(&project, &["consume", "--as", GATE]);
    assert_eq!(consumed["application"], "new");
    assert_eq!(consumed["gate_status"], "rejected");
    assert_eq!(consumed["outcome"], json!({"polarity": "fail", "route": "repair.story", "value": "reject"}));
    (project, packet, result)
}

#[test]
fn a_rejection_is_a_valid_outcome_that_names_its_repair() {
    let project = Project::new();
    let packet = project.ask();
    let ran = project.nf_with(&["reply"], packet.verdict("reject").as_bytes()).expect(0);
    assert!(ran.stderr.contains("verdict reject (a valid outcome)"), "{}", ran.stderr);
    let ran = project.nf(&["consume", "--as", GATE]).expect(0);
    assert_eq!(ran.line(), "new");
    assert!(ran.stderr.contains("route repair.story"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is rejected"), "{}", ran.stderr);
}

#[test]
fn a_judged_question_is_asked_nowhere_again() {
    let (project, packet, result) = rejected();
    let frozen = done(&project, &["freeze", "job.yaml"]);
    assert_eq!(frozen["judged"], json!(result));
    let first = project.nf(&["list", "session"]).expect(0);
    assert!(first.stdout.contains("awaiting_user"), "{}", first.stdout);
    for arguments in [
        &["packet"][..],
        &["packet", &packet.job],
        &["packet", &packet.handoff],
        &["packet", "--for", "human"],
        &["packet", "--for", "agent"],
    ] {
        let error = refused(&project, arguments, 3, "already_judged");
        assert_eq!(error["details"]["result"], json!(result), "{arguments:?}");
    }
    let other = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &other]).expect(0);
    refused(&project, &["packet", &packet.job, "--session", &other], 3, "already_judged");
    refused(&project, &["packet", &packet.job, "--session", &other, "--gate", "gate/x"], 3, "already_judged");
}

#[test]
fn a_job_of_other_terms_and_the_same_question_is_judged_too() {
    let (project, packet, _) = rejected();
    let other = JOB.replace("result_scope: diagnostic", "result_scope: proposal");
    project.write("job.yaml", other);
    let frozen = done(&project, &["freeze", "job.yaml"]);
    assert_eq!(frozen["fingerprint"], json!(packet.fingerprint));
    let job = frozen["job"].as_str().expect("an id");
    assert_ne!(job, packet.job);
    refused(&project, &["packet", job], 3, "already_judged");
}

#[test]
fn a_repaired_text_is_a_new_job_that_lists_the_earlier_judgement() {
    let (project, packet, result) = rejected();
    project.write("ch01.md", "A shorter chapter, and a better one.\n");
    let resumed = done(&project, &["resume"]);
    assert_eq!(resumed["reread"], json!(["chapter"]), "a changed text is listed and does not block");
    assert_eq!(resumed["gates"][GATE]["route"], "repair.story");
    let ran = project.nf(&["freeze", "job.yaml", "--json"]).expect(0).json();
    let frozen = &ran["data"];
    assert_eq!(frozen["new"], true);
    assert_ne!(frozen["fingerprint"], json!(packet.fingerprint));
    assert_ne!(frozen["job"], json!(packet.job));
    assert_eq!(frozen["earlier"][0]["result"], json!(result));
    assert_eq!(frozen["earlier"][0]["verdict"], "reject");
    let next = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let second = answer(&project, &next, "accept");
    let consumed = done(&project, &["consume", "--as", GATE]);
    assert_eq!(consumed["source"], json!(second));
    assert_eq!(consumed["gate_status"], "passed");
    let receipt = consumed["receipt"].as_str().expect("an id");
    assert_eq!(shown(&project, receipt, "/earlier/0/result"), json!(result));
}

#[test]
fn the_same_text_under_another_question_lists_what_judged_it() {
    let (project, _, result) = rejected();
    project.write("job.yaml", JOB.replace("turn the page?", "laugh aloud?"));
    let frozen = done(&project, &["freeze", "job.yaml"]);
    assert_eq!(frozen["earlier"][0]["result"], json!(result));
    assert_eq!(frozen["earlier"][0]["shares"], "artifact");
}

#[test]
fn a_packet_shown_again_is_the_same_bytes_and_writes_nothing() {
    let project = Project::new();
    let packet = project.ask();
    let before = project.log();
    for arguments in
        [&["packet"][..], &["packet", &packet.job], &["packet", &packet.handoff], &["packet", "--gate", GATE]]
    {
        assert_eq!(project.nf(arguments).expect(0).stdout, packet.text, "{arguments:?}");
    }
    assert!(before == project.log());
    project.write("chapter.md", "It was a dark night.");
    let refused = project.nf(&["packet", "--out", "chapter.md"]).expect(2);
    assert!(refused.stderr.contains("is no packet"), "{}", refused.stderr);
    assert_eq!(project.read("chapter.md"), "It was a dark night.");
    project.write("p.txt", "NF PACKET of another day, that others may read");
    let out = project.nf(&["packet", "--out", "p.txt"]).expect(0);
    assert_eq!(out.line(), "p.txt");
    assert_eq!(project.read("p.txt"), packet.text);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(project.at("p.txt")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a packet holds a nonce");
}

#[test]
fn a_packet_is_not_written_into_the_store() {
    let project = Project::new();
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    std::os::unix::fs::symlink(".novelforge/log/00000001.jsonl", project.at("link")).expect("a link");
    for path in [".novelforge/log/00000001.jsonl", ".novelforge/packets/new", "a/../.novelforge/x", "link"] {
        std::fs::create_dir_all(project.at("a")).expect("a folder");
        refused(&project, &["packet", "--out", path], 2, "usage");
    }
    project.nf(&["packet", "--out", "a/p.txt"]).expect(0);
    project.nf(&["status"]).expect(0);
}

#[test]
fn the_head_line_counts_and_hashes_everything_after_it() {
    let project = Project::new();
    let packet = project.ask();
    let (head, rest) = packet.text.split_once('\n').expect("a first line");
    let hash = nf::model::hash::Hash::of(rest.as_bytes()).hex();
    assert_eq!(head, format!("NF PACKET {} {} bytes blake3 {}", packet.handoff, rest.len(), &hash[..16]));
    assert_eq!(rest.lines().last(), Some(format!("END NF PACKET {}", packet.handoff).as_str()));
}

#[test]
fn the_nonce_stands_in_the_packet_file_and_nowhere_in_the_log() {
    let project = Project::new();
    let packet = project.ask();
    let attempt = shown(&project, &packet.handoff, "/attempt");
    let kept = format!(".novelforge/packets/{}", attempt.as_str().expect("an id"));
    assert!(project.at(&kept).exists());
    answer(&project, &packet, "accept");
    assert!(!String::from_utf8_lossy(&project.log()).contains(&packet.nonce));
    assert!(!project.at(&kept).exists(), "it is dropped when the attempt ends");
}

#[test]
fn a_packet_in_another_form_or_for_another_gate_is_refused_while_one_is_out() {
    let project = Project::new();
    let packet = project.ask();
    for whom in ["human", "agent"] {
        let error = refused(&project, &["packet", "--for", whom], 8, "under_review");
        names(&error["fix"], &[&format!("nf packet {} shows it again", packet.handoff)]);
    }
    let error = refused(&project, &["packet", "--gate", "gate/other"], 2, "usage");
    names(&error["cause"], &[GATE, "gate/other"]);
    assert_eq!(shown(&project, &packet.handoff, "/gate"), GATE);
}

#[test]
fn a_question_that_is_out_elsewhere_waits() {
    let project = Project::new();
    let packet = project.ask();
    let other = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &other]).expect(0);
    let error = refused(&project, &["packet", &packet.job, "--session", &other], 8, "under_review");
    assert_eq!(error["details"]["handoff"], json!(packet.handoff));
}

#[test]
fn an_equal_answer_again_is_a_duplicate_and_another_one_a_hard_stop() {
    let project = Project::new();
    let packet = project.ask();
    let reply = packet.verdict("accept");
    let first = done_with(&project, &["reply"], reply.as_bytes());
    for again in [reply.clone(), format!("Here it is again:\n```json\n{reply}\n```\n")] {
        let data = silent(&project, &["reply"], again.as_bytes());
        assert_eq!(data["duplicate"], true);
        assert_eq!(data["result"], first["result"]);
    }
    let other = packet.verdict("reject");
    let error = recorded(&project, &["reply"], other.as_bytes(), 4, "result_conflict");
    let want = shown(&project, first["result"].as_str().expect("an id"), "/blob");
    assert_eq!(error["details"]["want"], want);
    let value = error["details"]["value"].as_str().expect("the other hash");
    names(&error["cause"], &[want.as_str().expect("a hash"), value]);
    assert!(project.at(&format!(".novelforge/blobs/{}/{value}", &value[..2])).exists(), "it is kept");
    assert_eq!(done(&project, &["status"])["conflicts"], 1);
    assert_eq!(done(&project, &["consume", "--as", GATE])["outcome"]["value"], "accept");
}

#[test]
fn five_invalid_replies_end_the_attempt_and_a_packet_opens_the_next() {
    let project = Project::new();
    let packet = project.ask();
    let broken = packet.verdict("accept").replace("0.7", "7");
    for number in 1..=5 {
        let error = recorded(&project, &["reply"], broken.as_bytes(), 5, "semantic_invalid");
        assert_eq!(error["details"]["failed"], json!(["schema"]));
        let state = shown(&project, &packet.handoff, "/state");
        assert_eq!(state, if number < 5 { "claimed" } else { "queued" }, "after {number}");
    }
    let late = packet.verdict("accept");
    let error = recorded(&project, &["reply"], late.as_bytes(), 3, "lease_lost");
    assert!(error["details"]["value"].is_string(), "the value is kept: {error}");
    let next = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert_eq!(next.handoff, packet.handoff);
    assert_ne!(next.nonce, packet.nonce);
    assert_eq!(shown(&project, &next.handoff, "/number"), 2);
    answer(&project, &next, "accept");
}

#[test]
fn a_reviewer_who_cannot_judge_gives_no_verdict_and_the_question_is_open_again() {
    let project = Project::new();
    let packet = project.ask();
    let mut reply: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    reply["status"] = json!("cannot_judge");
    reply["reason"] = json!("the last line is missing");
    let both = failed(&project, &["reply", "-n"], reply.to_string().as_bytes(), 5, "semantic_invalid");
    assert_eq!(both["details"]["failed"], json!(["form"]), "no output stands beside it");
    reply.as_object_mut().expect("an object").remove("output");
    let error = recorded(&project, &["reply"], reply.to_string().as_bytes(), 7, "execution_failed");
    names(&error["cause"], &["the last line is missing"]);
    assert_eq!(shown(&project, &packet.handoff, "/state"), "queued");
    let next = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert_eq!((next.job.as_str(), next.fingerprint.as_str()), (&*packet.job, &*packet.fingerprint));
    assert_eq!(shown(&project, &next.handoff, "/number"), 2);
    answer(&project, &next, "reject");
    let consumed = done(&project, &["consume", "--as", GATE]);
    let receipt = consumed["receipt"].as_str().expect("an id");
    assert_eq!(shown(&project, receipt, "/history/cannot_judge"), 1);
    assert_eq!(shown(&project, receipt, "/history/opened"), 2);
}

#[test]
fn ten_attempts_use_a_question_up_over_all_its_handoffs() {
    let project = Project::new();
    let mut packet = project.ask();
    let cannot = |packet: &Packet| {
        let mut reply: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
        reply["status"] = json!("cannot_judge");
        reply.as_object_mut().expect("an object").remove("output");
        reply.to_string()
    };
    for _ in 1..10 {
        failed(&project, &["reply"], cannot(&packet).as_bytes(), 7, "execution_failed");
        packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    }
    failed(&project, &["reply"], cannot(&packet).as_bytes(), 7, "execution_failed");
    assert_eq!(shown(&project, &packet.handoff, "/state"), "exhausted");
    refused(&project, &["packet"], 3, "exhausted");
    let other = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &other]).expect(0);
    refused(&project, &["packet", &packet.job, "--session", &other], 3, "exhausted");
    assert_eq!(events_of(&project, "handoff.claimed").len(), 10);
}

#[test]
fn terms_that_a_relay_cannot_meet_are_refused_before_the_work() {
    for (terms, word) in [
        ("{independent: true, families: [human, local_agent]}", "peer_chat"),
        ("{independent: true, interactive: false}", "interactive is false"),
        ("{independent: true, min_grade: attested}", "attested"),
    ] {
        let project = Project::new();
        project.write("job.yaml", JOB.replace("{independent: true, min_grade: declared}", terms));
        project.start();
        project.nf(&["freeze", "job.yaml"]).expect(0);
        let error = refused(&project, &["packet"], 6, "execution_unavailable");
        names(&error["cause"], &[word]);
        if word == "peer_chat" {
            project.nf(&["packet", "--for", "human"]).expect(0);
        }
    }
}

#[test]
fn a_served_model_that_the_job_does_not_list_does_not_bind() {
    let project = Project::new();
    project.write("job.yaml", JOB.replace("min_grade: declared", "models: [other-model]"));
    let packet = project.ask();
    let error = failed(&project, &["reply"], packet.verdict("accept").as_bytes(), 5, "semantic_invalid");
    assert_eq!(error["details"]["failed"], json!(["model"]));
    let served = packet.verdict("accept").replace("some-model-1", "other-model");
    done_with(&project, &["reply"], served.as_bytes());
}

#[test]
fn another_packets_answer_does_not_bind_to_this_question() {
    let project = Project::new();
    let first = project.ask();
    project.write("second.yaml", JOB.replace("turn the page?", "weep?"));
    let second = done(&project, &["freeze", "second.yaml"])["job"].as_str().expect("an id").to_owned();
    let second = Packet::read(&project.nf(&["packet", &second]).expect(0).stdout);
    let crossed = first.verdict("accept").replace(&first.nonce, &second.nonce);
    let error = failed(&project, &["reply"], crossed.as_bytes(), 5, "semantic_invalid");
    assert_eq!(error["details"]["failed"], json!(["job", "fingerprint"]));
    let nobody = first.verdict("accept").replace(&first.nonce, "0000000000000000000000000z");
    let error = refused_with(&project, &["reply"], nobody.as_bytes(), 5, "semantic_invalid");
    assert_eq!(error["details"]["reason"], "no_such_packet");
    answer(&project, &first, "accept");
    answer(&project, &second, "reject");
}
