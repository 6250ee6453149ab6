//! Work without a frozen question through the commands: instructions go out, what comes back fits its schema
//! and is applied once.

use serde_json::json;

use crate::expect::{done, done_with, failed, names, refused, shown, silent};
use crate::faults::tools::assert_sound;
use crate::harness::{Project, report};

const RETURNS: &str =
    "type: object\nrequired: [sources]\nproperties:\n  sources: {type: array, minItems: 1}\n";
const GATE: &str = "research/ch01";

fn project() -> Project {
    let project = Project::new();
    project.write("task.md", "Find three sources on the flood.\n");
    project.write("returns.yaml", RETURNS);
    project.start();
    project
}

const OPEN: &[&str] = &[
    "handoff",
    "open",
    "--class",
    "specialist",
    "--gate",
    GATE,
    "--instructions",
    "task.md",
    "--returns",
    "returns.yaml",
];

/// The answer to a packet in the form that it shows.
fn answer(packet: &str, sources: &str) -> String {
    let nonce = packet.split('"').find(|part| part.len() == 26).expect("a nonce");
    let handoff = packet.split_whitespace().nth(2).expect("a handoff");
    let sources: Vec<String> = serde_json::from_str(sources).expect("JSON");
    json!({
        "nf": {"handoff": handoff, "nonce": nonce}, "worker": {"provider": "p", "model": "m"},
        "status": "completed", "output": {"sources": sources},
    })
    .to_string()
}

#[test]
fn a_task_goes_out_with_its_texts_and_comes_back_once() {
    let project = project();
    let artifact = ["--artifact", "chapter=ch01.md", "--context", "web", "--wait"];
    let opened = project.nf(&[OPEN, &artifact].concat()).expect(0).line();
    let claim = ["handoff", "claim", "--class", "specialist", "--worker", "w-1"];
    let packet = project.nf(&claim).expect(0).stdout;
    for part in ["Find three sources on the flood.", "context: web", "artifact chapter", &opened] {
        assert!(packet.contains(part), "{part}: {packet}");
    }
    let failed = project.nf_with(&["handoff", "complete", "-n"], answer(&packet, "[]").as_bytes()).expect(5);
    assert!(failed.stderr.contains("/sources must have 1 items or more"), "{}", failed.stderr);
    let good = answer(&packet, "[\"Gazette\"]");
    let result = project.nf_with(&["handoff", "complete"], good.as_bytes()).expect(0).line();
    project.nf_with(&["handoff", "complete"], good.as_bytes()).expect(0);
    project.nf_with(&["reply"], answer(&packet, "[\"Other\"]").as_bytes()).expect(4);
    let shown = project.nf(&["show", &result, "--json"]).expect(0).json();
    let object = &report(&shown)["object"];
    assert!(object.get("job").is_none() && object.get("fingerprint").is_none(), "{object}");
    assert_eq!(project.nf(&["consume", "--as", GATE]).expect(0).line(), "new");
    assert_eq!(project.nf(&["consume", "--as", GATE]).expect(0).line(), "already");
    project.nf(&["resume"]).expect(0);
    project.nf(&["verify"]).expect(0);
    assert!(project.nf(&["status"]).expect(0).stdout.contains("answered"));
}

#[test]
fn wrong_words_about_a_task_are_refused_and_nothing_is_queued() {
    let project = project();
    project.write("private.md", "messages:\n  - hello\n");
    project.write("empty.md", "");
    project.write("bad.yaml", "type: 7\n");
    let with = |flag: &str, value: &'static str| {
        let mut words = OPEN.to_vec();
        let at = words.iter().position(|word| *word == flag).expect("a flag");
        words[at + 1] = value;
        words
    };
    let cases: Vec<(Vec<&str>, i32)> = vec![
        (OPEN[..8].to_vec(), 2),
        ([&OPEN[..4], &OPEN[6..]].concat(), 2),
        ([OPEN, &["--artifact", "chapter"]].concat(), 2),
        ([OPEN, &["--artifact", "a=ch01.md", "--artifact", "a=ch01.md"]].concat(), 2),
        ([OPEN, &["--artifact", "chapter=../out.md"]].concat(), 1),
        ([OPEN, &["--artifact", "chapter=none.md"]].concat(), 1),
        ([OPEN, &["--scope", "canon_write"]].concat(), 2),
        (with("--instructions", "none.md"), 1),
        (with("--instructions", "empty.md"), 1),
        (with("--instructions", "private.md"), 3),
        (with("--returns", "bad.yaml"), 1),
        (vec!["handoff", "open", "--class", "specialist", "--gate", GATE, "--context", "web"], 2),
    ];
    let before = project.log();
    for (words, code) in cases {
        let ran = project.nf(&words).expect(code);
        assert!(ran.stderr.contains("fix:"), "{words:?}: {}", ran.stderr);
    }
    assert!(before == project.log());
}

#[test]
fn the_same_words_twice_are_two_pieces_of_work() {
    let project = project();
    let handoff = project.nf(OPEN).expect(0).line();
    let again = project.nf(OPEN).expect(0).line();
    assert_ne!(handoff, again);
    let keyed = [OPEN, &["--op", "task-1"]].concat();
    assert_eq!(project.nf(&keyed).expect(0).line(), project.nf(&keyed).expect(0).line());
}

#[test]
fn a_person_gets_work_as_a_form_and_answers_by_reply() {
    let project = project();
    let opened = project.nf(OPEN).expect(0);
    let handoff = opened.line();
    let lead = format!("or nf packet {handoff}");
    assert!(opened.stderr.contains(&lead), "{}", opened.stderr);
    let sent = done(&project, &["packet", &handoff, "--for", "human"]);
    assert_eq!(
        (&sent["handoff"], &sent["job"], &sent["gate"]),
        (&json!(handoff), &json!(null), &json!(GATE))
    );
    assert_eq!(sent["status"], "awaiting_user");
    let form = sent["packet"].as_str().expect("a packet");
    for part in ["Do only what stands in this packet.", "# leave these three lines", "a list, such as"] {
        assert!(form.contains(part), "{part}: {form}");
    }
    // The same again, and no second person besides: neither by another form nor by a claim.
    let again = silent(&project, &["packet", &handoff, "--for", "human"], b"");
    assert_eq!((&again["packet"], &again["again"]), (&sent["packet"], &json!(true)));
    refused(&project, &["packet", &handoff], 8, "under_review");
    let claim = ["handoff", "claim", &handoff, "--class", "specialist", "--worker", "w-1"];
    refused(&project, &claim, 8, "under_review");
    let (_, lines) = form.split_once("# NF FORM ").expect("a form");
    let empty = format!("# NF FORM {lines}");
    let filled = empty.replace("name: \"\"", "name: \"Ann\"");
    failed(&project, &["reply"], filled.as_bytes(), 5, "semantic_invalid");
    let filled = filled.replace("\"sources\": []", "\"sources\": [\"Gazette\"]");
    let bound = done_with(&project, &["reply"], filled.as_bytes());
    assert_eq!(bound["gate"], GATE);
    let result = bound["result"].as_str().expect("a result");
    assert_eq!(shown(&project, result, "/provenance/name"), "Ann");
    assert_eq!(shown(&project, result, "/provenance/family"), "human");
    assert_eq!(done(&project, &["consume", "--as", GATE])["application"], "new");
    done(&project, &["resume"]);
    refused(&project, &["packet", &handoff, "--for", "human"], 3, "already_judged");
    assert_sound(&project);
}

#[test]
fn work_goes_out_as_a_packet_of_any_form_by_its_own_session_alone() {
    for form in ["chat", "human", "agent"] {
        let project = project();
        let handoff = project.nf(OPEN).expect(0).line();
        let other = project.start();
        let error = refused(&project, &["packet", &handoff, "--for", form, "--session", &other], 2, "usage");
        names(&error["message"], &["another session's"]);
        refused(&project, &["packet", &handoff, "--for", form, "--gate", "other/gate"], 2, "usage");
        let packet = project.nf(&["packet", &handoff, "--for", form]).expect(0).stdout;
        assert!(packet.contains("Find three sources on the flood."), "{packet}");
        done(&project, &["handoff", "cancel", &handoff]);
        refused(&project, &["packet", &handoff, "--for", form], 3, "handoff_cancelled");
    }
    // A worker that has claimed it keeps it, until it is taken back.
    let project = project();
    let handoff = project.nf(OPEN).expect(0).line();
    let claim = ["handoff", "claim", &handoff, "--class", "specialist", "--worker", "w-1"];
    let packet = project.nf(&claim).expect(0).stdout;
    let error = refused(&project, &["packet", &handoff, "--for", "human"], 8, "under_review");
    names(&error["fix"], &["--revoke"]);
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    project.nf(&["packet", &handoff, "--for", "human"]).expect(0);
    failed(&project, &["reply"], answer(&packet, "[\"Late\"]").as_bytes(), 3, "lease_lost");
}
