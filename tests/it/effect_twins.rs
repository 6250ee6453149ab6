//! Two writes where one is meant: a command that still runs when its effect is given up, whoever has died
//! meanwhile, and one file under two names.

use std::process::{Child, Stdio};
use std::time::Duration;

use crate::effects::{PATH, PLAN, planned, project, run, stands};
use crate::expect::{done, names, refused};
use crate::harness::Project;

const CLEAR: &[&str] = &["effect", "clear", "settle", "--reason", "given up"];
/// A command that waits for a file before it does something.
const WAITS: &str = "touch begun; while [ ! -e go ]; do sleep 0.02; done;";

/// Waits for what another process does; a minute is for a machine that does much else.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} did not come");
}

fn started(project: &Project, line: &str) -> Child {
    let mut command = project.command(&run(line));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nf starts");
    wait("the command", || project.at("begun").exists());
    child
}

#[track_caller]
fn still_runs(project: &Project) {
    let error = refused(project, CLEAR, 9, "uncertain");
    names(&error["message"], &["still running"]);
    names(&error["cause"], &["/running/f-"]);
    refused(project, &[CLEAR, &["-n"]].concat(), 9, "uncertain");
}

/// Lets the command go on, and clears the effect as soon as that is allowed.
fn cleared_once_it_has_ended(project: &Project) {
    project.write("go", "");
    wait("the end of the command", || project.nf(CLEAR).code == 0);
    assert!(std::fs::read_dir(project.at(".novelforge/running")).expect("a folder").next().is_none());
    done(project, PLAN);
}

#[test]
fn an_effect_is_not_cleared_while_its_command_runs() {
    let (project, _, _) = planned();
    let mut child = started(&project, &format!("{WAITS} cp draft.md canon/ch01.md"));
    still_runs(&project);
    project.write("go", "");
    assert!(child.wait().expect("an end").success());
    stands(&project, 0, "applied");
    refused(&project, CLEAR, 3, "effect_refused");
    assert!(std::fs::read_dir(project.at(".novelforge/running")).expect("a folder").next().is_none());
}

#[test]
fn a_command_outlives_the_program_that_started_it_and_still_holds_its_effect() {
    let (project, _, _) = planned();
    let mut child = started(&project, &format!("{WAITS} true"));
    child.kill().expect("a kill");
    child.wait().expect("an end");
    stands(&project, 9, "started");
    still_runs(&project);
    cleared_once_it_has_ended(&project);
}

#[test]
fn what_a_command_leaves_behind_counts_as_the_command() {
    let (project, _, _) = planned();
    let line = format!("({WAITS} true) > /dev/null 2>&1 & while [ ! -e begun ]; do sleep 0.02; done; exit 1");
    project.nf(&run(&line)).expect(7);
    still_runs(&project);
    cleared_once_it_has_ended(&project);
}

#[test]
fn one_file_under_two_names_is_not_planned_twice() {
    let (project, _, _) = planned();
    std::fs::hard_link(project.at(PATH), project.at("canon/other.md")).expect("a link");
    let other = ["effect", "plan", "--key", "other", "--path", "canon/other.md", "--expect", "draft.md"];
    let error = refused(&project, &other, 3, "effect_refused");
    names(&error["message"], &["canon/other.md", "canon/ch01.md", "same file"]);
    names(&error["fix"], &["nf effect check settle"]);
    done(&project, CLEAR);
    done(&project, &other);
}

#[test]
fn two_files_that_became_one_after_their_plans_are_not_both_written() {
    let (project, _) = project();
    project.write("canon/other.md", "old\n");
    done(&project, PLAN);
    done(&project, &["effect", "plan", "--key", "other", "--path", "canon/other.md", "--expect", "draft.md"]);
    std::fs::remove_file(project.at("canon/other.md")).expect("removed");
    std::fs::hard_link(project.at(PATH), project.at("canon/other.md")).expect("a link");
    let error = project.nf(&["effect", "run", "other", "--json", "--", "touch", "ran"]).expect(3).json();
    names(&error["error"]["message"], &["same file"]);
    assert!(!project.at("ran").exists());
    // The kind is told apart by the file, so that it may be written once the other is settled.
    done(&project, CLEAR);
    project.nf(&["effect", "run", "other", "--", "cp", "draft.md", "canon/other.md"]).expect(0);
}
