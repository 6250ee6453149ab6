//! A gate takes the answer to its own question, on the terms of its own job, and nothing else in its place.

use crate::harness::{JOB, Packet, Project};

const OPEN: &[&str] = &["handoff", "open", "--class", "semantic_reviewer", "--gate", "ci/gate"];

/// A project with a question in the queue for ci/gate.
fn waiting() -> (Project, String) {
    let project = Project::new();
    let session = project.start();
    let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
    project.nf(&[OPEN, &[job.as_str()]].concat()).expect(0);
    (project, session)
}

#[test]
fn a_gate_that_waits_takes_no_answer_of_another_gate() {
    let (project, _) = waiting();
    project.write("other.yaml", JOB.replace("novel/pride/ch01", "novel/pride/other"));
    let other = project.nf(&["freeze", "other.yaml"]).expect(0).line();
    let packet = Packet::read(&project.nf(&["packet", &other, "--gate", "other/gate"]).expect(0).stdout);
    project.nf_with(&["reply"], packet.verdict("accept").as_bytes()).expect(0);
    let before = project.log();
    project.nf(&["consume", "--as", "ci/gate", "--exit-verdict"]).expect(8);
    assert!(before == project.log());
    project.nf(&["consume", "--as", "other/gate", "--exit-verdict"]).expect(0);
}

#[test]
fn a_weak_review_of_the_same_question_opens_no_gate_and_blocks_no_independent_one() {
    let (project, session) = waiting();
    let independent = ["independent: true", "\"independent\": true"];
    let word = independent.iter().find(|word| JOB.contains(**word)).expect("a job that wants independence");
    let weak =
        JOB.replace(word, &word.replace("true", "false")).replace("min_grade: declared", "min_grade: none");
    project.write("weak.yaml", weak);
    let weak = project.nf(&["freeze", "weak.yaml"]).expect(0).line();
    project.nf(&["handoff", "open", &weak, "--class", "specialist", "--gate", "weak/gate"]).expect(0);
    let claim = ["handoff", "claim", "--class", "specialist", "--worker", "me", "--worker-session", &session];
    let own = Packet::read(&project.nf(&claim).expect(0).stdout);
    let own = project.nf_with(&["handoff", "complete"], own.verdict("accept").as_bytes()).expect(0).line();
    project.nf(&["consume", "--as", "ci/gate", "--exit-verdict"]).expect(8);
    let refused = project.nf(&["consume", &own, "--as", "ci/gate"]).expect(3);
    assert!(refused.stderr.contains("does not meet"), "{}", refused.stderr);
    let claim = ["handoff", "claim", "--class", "semantic_reviewer", "--worker", "other"];
    let packet = Packet::read(&project.nf(&claim).expect(0).stdout);
    let bound =
        project.nf_with(&["handoff", "complete"], packet.verdict("reject").as_bytes()).expect(0).line();
    let reason = ["--contested", "the asker's own accept was no review"];
    project.nf(&[&["consume", &bound, "--as", "ci/gate"], &reason[..]].concat()).expect(0);
    assert!(project.nf(&["status"]).expect(0).stdout.contains("ci/gate rejected"));
}
