//! Work without a frozen question through the commands: instructions go out, what comes back fits its schema
//! and is applied once.

use serde_json::json;

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
fn a_task_is_no_packet_for_a_person_and_no_judgement() {
    let project = project();
    let handoff = project.nf(OPEN).expect(0).line();
    let refused = project.nf(&["packet", &handoff]).expect(2);
    assert!(refused.stderr.contains(&format!("nf handoff claim {handoff}")), "{}", refused.stderr);
    let again = project.nf(OPEN).expect(0).line();
    assert_ne!(handoff, again, "the same words twice are two pieces of work");
    let keyed = [OPEN, &["--op", "task-1"]].concat();
    assert_eq!(project.nf(&keyed).expect(0).line(), project.nf(&keyed).expect(0).line());
}
