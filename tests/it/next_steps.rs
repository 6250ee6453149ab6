//! What a newcomer is told to do next, where the walk stumbles: a worker that was refused, a queue that gives
//! nothing, a command line that is wrong, a folder that is another one.

use serde_json::Value;

use crate::expect::{done, failed, names, refused, shown};
use crate::handoffs::{CLASS, queued};
use crate::harness::{JOB, Project};
use crate::work::{line, program, project, with_program};

fn fix_of(error: &Value) -> String {
    error["fix"].as_str().unwrap_or_else(|| panic!("a fix in {error}")).to_owned()
}

/// Queues a question of other terms, and gives its job.
fn queued_as(project: &Project, subject: &str, terms: &str) -> String {
    let job = JOB.replace("min_grade: declared", terms).replace("novel/pride/ch01", subject);
    project.write("job.yaml", &job);
    let session = project.start();
    let job = project.nf(&["freeze", "job.yaml", "--session", &session]).expect(0).line();
    project.nf(&["handoff", "open", &job, "--class", CLASS, "--session", &session]).expect(0);
    job
}

#[test]
fn a_program_whose_answer_does_not_bind_is_followed_by_other_work_and_no_packet() {
    for text in ["read_packet; answer perhaps", "read_packet; echo no JSON"] {
        let (project, handoff) = with_program(text);
        let ran = project.nf(&[&line(&[])[..3], &["--json"], &line(&[])[3..]].concat()).expect(5);
        let fix = fix_of(&ran.json()["error"]);
        let other = format!("nf work --class {CLASS} -- CMD takes other work");
        names(&fix.as_str().into(), &[&other, "its pause"]);
        assert!(!fix.contains("nf packet"), "{fix}");
        assert_eq!(shown(&project, &handoff, "/failures"), 1);
        // Until the pause is over, all who are asked say until when it is, and what to do then.
        let (from, claim) = ("is not to be claimed before 2", format!("nf handoff claim {handoff}"));
        let error = refused(&project, &line(&[]), 8, "pending");
        names(&error["cause"], &[&handoff, from]);
        names(&error["fix"], &["nf status"]);
        let status = done(&project, &["status"]);
        names(&status["sessions"][0]["matters"][0]["command"], &["wait until 2", &claim, "takes it back"]);
    }
}

#[test]
fn resume_says_until_when_a_pause_lasts() {
    let project = project();
    program(&project, "answer.sh", "exit 3");
    let (session, _, handoff) = queued(&project, "novel/q1", &["--wait"]);
    project.nf(&line(&[])).expect(7);
    let error = refused(&project, &["resume", &session], 8, "pending");
    names(&error["cause"], &["not to be claimed before 2"]);
    names(&error["fix"], &["wait until 2", &format!("nf handoff claim {handoff}")]);
}

#[test]
fn terms_that_exclude_whoever_claims_are_told_with_the_command_that_lists_who_may() {
    for (terms, more, word) in [
        ("families: [peer_chat, human]", &[][..], "family service_job is not among peer_chat, human"),
        ("min_grade: attested", &[], "a worker that claims is at best declared"),
        ("models: [m]", &["--model", "x"], "the model must be one of m, and this worker asks for x"),
    ] {
        let project = project();
        program(&project, "answer.sh", "touch \"$0.ran\"");
        let job = queued_as(&project, "novel/q1", terms);
        let error = refused(&project, &line(more), 8, "pending");
        names(&error["cause"], &["waits, and its job excludes this worker", word]);
        assert_eq!(fix_of(&error), format!("nf route {job} tells who may answer it"));
        assert!(!project.at("answer.sh.ran").exists());
        // What somebody else asks for is no reason for this worker.
        let error = refused(&project, &line(&[more, &["--gate", "gate/other"]].concat()), 8, "pending");
        assert_eq!(error["cause"], Value::Null, "{error}");
    }
}

#[test]
fn what_waits_for_its_moment_is_named_to_whom_it_may_concern() {
    let project = project();
    program(&project, "answer.sh", "exit 1");
    let (_, _, late) = queued(&project, "novel/q1", &["--not-before", "2999-01-01T00:00:00Z"]);
    let claim = ["handoff", "claim", "--class", CLASS, "--worker", "w"];
    let error = refused(&project, &claim, 8, "pending");
    names(&error["cause"], &[&late, "2999-01-01"]);
    let other = refused(&project, &[&claim[..], &["--resource", "novel/other"]].concat(), 8, "pending");
    assert_eq!(other["cause"], Value::Null);
}

#[test]
fn a_wrong_command_line_names_the_help_of_its_own_command() {
    let project = Project::new();
    for (arguments, help) in [
        (&["work"][..], "nf work --help"),
        (&["start"], "nf start --help"),
        (&["handoff", "claim", "--class", "x"], "nf handoff claim --help"),
        (&["event", "import", "gitlab", "d.json"], "nf event import --help"),
        (&["ini"], "nf --help"),
        (&["-C", ".", "list"], "nf list --help"),
        // Those that the command itself refuses.
        (&["mcp", "--tools", "nf_statu"], "nf mcp --help"),
    ] {
        let ran = project.nf(&[arguments, &["--json"]].concat()).expect(2);
        let error = &ran.json()["error"];
        assert_eq!(fix_of(error), help, "{arguments:?}: {error}");
        assert!(!error.to_string().contains("For more information"), "{error}");
    }
}

#[test]
fn a_folder_without_a_store_may_be_the_wrong_folder() {
    let project = Project::empty();
    for arguments in [&["status"][..], &["freeze", "job.yaml"], &["import", "result.json"]] {
        let error = failed(&project, arguments, b"", 1, "no_store");
        names(&error["fix"], &["-C DIR", "nf init"]);
    }
}
