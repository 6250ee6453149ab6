//! Contract packs: questions that are asked again and again, copied into each job when it is frozen.

use serde_json::json;

use crate::expect::{answer, done, events_of, names, recorded, refused, silent};
use crate::harness::{JOB, Packet, Project};

const PACK: &str = "id: reader.engagement
version: 1
kind: reader_reaction
purpose: Whether a first-time reader goes on.
input:
  type: object
  required: [question]
rubric:
  - Judge only the text in the packet.
output:
  type: object
  required: [verdict]
  properties:
    verdict: {enum: [accept, reject]}
verdict: {pointer: /verdict, pass: [accept], fail: [reject], repair: {reject: repair.story}}
execution: {independent: true}
forbidden_keys: [author_intent]
";

const USE: &str = "contract: reader.engagement@1
subject: novel/pride/ch01
input:
  question: Would a first-time reader turn the page?
  artifacts: [{name: chapter, path: ch01.md}]
";

fn with_pack() -> Project {
    let project = Project::new();
    project.write(".novelforge/contracts/reader.yaml", PACK);
    project.write("use.yaml", USE);
    project
}

#[test]
fn packs_are_listed_and_checked() {
    let project = Project::new();
    assert_eq!(silent(&project, &["contract", "list"], b"")["packs"], json!([]));
    project.write("reader.yaml", PACK);
    let sound = silent(&project, &["contract", "check", "reader.yaml"], b"");
    assert_eq!(sound["pack"]["contract"], "reader.engagement@1");
    project.write(".novelforge/contracts/reader.yaml", PACK);
    let listed = silent(&project, &["contract", "list"], b"");
    assert_eq!(listed["packs"][0]["contract"], "reader.engagement@1");
    assert_eq!(listed["packs"][0]["kind"], "reader_reaction");
    let table = project.nf(&["contract", "list"]).expect(0).stdout;
    assert!(table.contains("reader.engagement@1") && table.contains("goes on"), "{table}");
    project.write(".novelforge/contracts/again.yaml", PACK);
    let twice = refused(&project, &["contract", "list"], 1, "bad_input");
    names(&twice["message"], &["reader.engagement@1", "twice"]);
}

#[test]
fn a_pack_that_makes_no_sense_is_refused_by_the_check() {
    let project = Project::new();
    for (from, to, code, kind, word) in [
        ("version: 1\n", "", 1, "bad_input", "/version"),
        ("purpose:", "porpoise:", 1, "bad_input", "did you mean purpose?"),
        ("enum: [accept, reject]", "enum: [accept, reject, maybe]", 1, "bad_input", "maybe"),
        ("repair: {reject: repair.story}", "repair: {}", 1, "bad_input", "reject"),
        ("properties:\n", "properties:\n    thinking: {}\n", 3, "not_blind", "thinking"),
        ("execution:", "permissions: {canon_write: true}\nexecution:", 3, "authority_denied", "canon_write"),
        ("{independent: true}", "{independent: true, min_grade: none}", 1, "bad_input", "min_grade"),
        ("type: object\n  required: [question]", "type: objekt", 1, "bad_input", "/input"),
    ] {
        let bad = PACK.replacen(from, to, 1);
        assert_ne!(bad, PACK, "{from}");
        project.write("bad.yaml", bad);
        let error = refused(&project, &["contract", "check", "bad.yaml"], code, kind);
        assert!(error.to_string().contains(word), "{word} in {error}");
    }
}

#[test]
fn a_job_takes_everything_from_its_contract_and_may_add_to_the_rubric() {
    let project = with_pack();
    project.start();
    let plain = done(&project, &["freeze", "use.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    assert!(packet.text.contains("reader.engagement@1"));
    assert!(packet.text.contains("Judge only the text in the packet."));
    answer(&project, &packet, "reject");
    let consumed = done(&project, &["consume", "--as", "gate/novel/pride/ch01/reader_reaction"]);
    assert_eq!(consumed["outcome"]["route"], "repair.story");
    project.write("more.yaml", format!("{USE}rubric: [Cite a sentence.]\n"));
    let more = done(&project, &["freeze", "more.yaml"]);
    assert_ne!(more["fingerprint"], plain["fingerprint"], "another rubric is another question");
    let job = more["job"].as_str().expect("an id");
    let packet = project.nf(&["packet", job]).expect(0).stdout;
    let (first, second) = (packet.find("1. Judge only"), packet.find("2. Cite a sentence."));
    assert!(first.is_some() && first < second, "the contract's rubric stands first: {packet}");
}

#[test]
fn what_the_contract_sets_a_job_may_repeat_and_not_change() {
    let project = with_pack();
    let plain = done(&project, &["freeze", "use.yaml"]);
    let same =
        "output: {type: object, required: [verdict], properties: {verdict: {enum: [accept, reject]}}}\n";
    project.write("use.yaml", format!("{USE}kind: reader_reaction\n{same}"));
    assert_eq!(done(&project, &["freeze", "use.yaml"])["job"], plain["job"]);
    for (line, pointer) in [
        ("kind: other\n", "/kind"),
        ("output: {type: object}\n", "/output"),
        ("execution: {independent: false}\n", "/execution/independent"),
        (
            "verdict: {pointer: /verdict, pass: [reject], fail: [accept], repair: {accept: repair.story}}\n",
            "/verdict",
        ),
    ] {
        project.write("use.yaml", format!("{USE}{line}"));
        let error = refused(&project, &["freeze", "use.yaml"], 1, "bad_input");
        names(&error["message"], &[pointer, "the contract sets this"]);
    }
}

#[test]
fn the_contracts_own_schema_and_keys_bind_the_input() {
    let project = with_pack();
    project
        .write("use.yaml", USE.replace("question: Would a first-time reader turn the page?", "topic: pages"));
    let error = refused(&project, &["freeze", "use.yaml"], 1, "bad_input");
    names(&error["message"], &["/input", "the contract's input schema"]);
    project.write("use.yaml", USE.replace("  artifacts", "  Author_Intent: to please\n  artifacts"));
    let error = refused(&project, &["freeze", "use.yaml"], 3, "not_blind");
    names(&error["message"], &["/Author_Intent"]);
    project.write("use.yaml", USE.replace("engagement@1", "engagment@1"));
    let error = refused(&project, &["freeze", "use.yaml"], 1, "bad_input");
    names(&error["cause"], &["did you mean reader.engagement@1?"]);
    project.write("use.yaml", USE.replace("@1", "@2"));
    refused(&project, &["freeze", "use.yaml"], 1, "bad_input");
}

#[test]
fn a_later_edit_of_the_pack_changes_no_frozen_job() {
    let project = with_pack();
    project.start();
    let before = done(&project, &["freeze", "use.yaml"]);
    let packet = project.nf(&["packet"]).expect(0).stdout;
    project.write(".novelforge/contracts/reader.yaml", PACK.replace("Judge only", "Praise only"));
    assert_eq!(project.nf(&["packet"]).expect(0).stdout, packet);
    let read = Packet::read(&packet);
    let result = answer(&project, &read, "accept");
    std::fs::remove_file(project.at(".novelforge/contracts/reader.yaml")).expect("a pack");
    done(&project, &["validate", &result]);
    done(&project, &["consume", "--as", "gate/novel/pride/ch01/reader_reaction"]);
    project.write(".novelforge/contracts/reader.yaml", PACK.replace("Judge only", "Praise only"));
    let after = done(&project, &["freeze", "use.yaml"]);
    assert_ne!(after["job"], before["job"], "the edited contract asks another question");
}

#[test]
fn two_results_of_one_question_under_other_terms_do_not_both_reach_one_consumer() {
    let project = Project::new();
    let chats = JOB.replace("min_grade: declared", "families: [peer_chat]");
    let people = JOB.replace("min_grade: declared", "families: [human]");
    project.write("job.yaml", chats);
    let first = project.ask();
    let one = answer(&project, &first, "accept");
    done(&project, &["consume", &one, "--as", "gate/novel/pride/ch01/reader_reaction"]);
    project.write("job.yaml", people);
    let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
    let second = Packet::read(&project.nf(&["packet", &job, "--for", "human"]).expect(0).stdout);
    assert_eq!(second.fingerprint, first.fingerprint, "a chat's answer closes no question to a person");
    let reply = second
        .verdict("accept")
        .replace("\"model\":\"some-model-1\",\"provider\":\"peer-chat\"", "\"name\":\"A\"");
    let two = project.nf_with(&["reply"], reply.as_bytes()).expect(0).line();
    let consume = ["consume", &two, "--as", "gate/novel/pride/ch01/reader_reaction"];
    let error = recorded(&project, &consume, b"", 4, "receipt_conflict");
    assert_ne!(error["details"]["want"], error["details"]["got"], "both hashes: {error}");
    assert_eq!(events_of(&project, "receipt.recorded").len(), 1);
    assert_eq!(events_of(&project, "conflict.refused").len(), 1);
    assert_eq!(done(&project, &["status"])["conflicts"], 1);
    done(&project, &["consume", &two, "--as", "another/reader"]);
}
