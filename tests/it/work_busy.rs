//! `work` beside what goes on around it: a store that is busy, full or put back from a copy, children that
//! were there before, and keys that a program prints. No answer is lost to it, and nothing is kept or ended
//! that is not `work`'s own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::expect::{done, failed, names, refused, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::queued;
use crate::harness::{NF, Project};
use crate::work::{line, program, project, with_program};
use crate::work_children::{appears, until};

/// The store's lock, held until it is dropped.
fn held(project: &Project) -> File {
    let lock = File::options().write(true).open(project.at(".novelforge/lock")).expect("the lock");
    fs2::FileExt::lock_exclusive(&lock).expect("held");
    lock
}

/// Whether a text stands in any file below a folder.
fn stands_in(folder: &std::path::Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).expect("a folder").flatten().any(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => stands_in(&path, text),
            false => std::fs::read(&path).expect("a file").windows(text.len()).any(|part| part == text),
        }
    })
}

#[test]
fn a_key_that_a_program_prints_is_kept_nowhere_and_the_next_step_works() {
    const KEY: &str = "sk-canary/0123456789";
    // As it is, and as JSON may spell it.
    for spelled in ["$HOUSE_KEY", r"$(echo $HOUSE_KEY | sed 's,/,\\/,')"] {
        let (mut project, handoff) =
            with_program(&format!("read_packet; key={spelled}; answer accept \"it is $key\""));
        project.set("HOUSE_KEY", KEY);
        let error = failed(&project, &line(&["--key-env", "HOUSE_KEY"]), b"", 7, "execution_failed");
        assert_eq!(error["details"]["reason"], "leaked_key", "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
        assert!(!stands_in(&project.at(".novelforge"), b"0123456789"), "{spelled}");
        assert_eq!(shown(&project, &handoff, "/state"), "exhausted");
        let fix = error["fix"].as_str().expect("a next step");
        let open = fix.split_once("; nf ").expect("a command").1;
        project.nf(&open.split(' ').collect::<Vec<_>>()).expect(0);
        program(&project, "answer.sh", "read_packet; answer accept");
        assert_eq!(done(&project, &line(&["--key-env", "HOUSE_KEY"]))["answered"], 1);
        assert_sound(&project);
    }
}

#[test]
fn children_that_were_there_before_are_not_ended() {
    // As the first process of a container becomes nf when it has begun what runs beside it.
    let (project, _) = with_program("read_packet; setsid sleep 300 & echo $! > \"$0.pids\"; answer accept");
    let work = project.command(&line(&[]));
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg("sleep 300 & echo $! > beside; exec \"$@\"").arg("sh");
    shell.arg(work.get_program()).args(work.get_args()).current_dir(project.path()).env_clear();
    shell.envs(work.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let lives = |file: &str| {
        let stat = format!("/proc/{}/stat", appears(&project, file).trim());
        std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
    };
    let beside = lives("beside");
    let pid = appears(&project, "beside").trim().parse().expect("a number");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    assert!(beside, "what was there before goes on");
    assert!(output.expect("nf runs").success());
    until("the end of what the program left", || (!lives("answer.sh.pids")).then_some(()));
}

#[test]
fn an_answer_waits_for_a_store_that_is_busy() {
    let text = "read_packet; echo > \"$0.ran\"; while ! [ -e \"$0.go\" ]; do sleep 0.05; done; answer reject";
    for more in [&["--once"][..], &["--drain"]] {
        let (project, handoff) = with_program(text);
        let mut work = project.command(&line(&[more, &["--lock-timeout", "100ms"]].concat()));
        let mut work = work.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("nf runs");
        appears(&project, "answer.sh.ran");
        let lock = held(&project);
        project.write("answer.sh.go", "");
        let mut told = BufReader::new(work.stderr.take().expect("a pipe")).lines();
        let waits = told.next().expect("a line").expect("text");
        names(&json!(waits), &["lock was not had", "is kept and recorded then"]);
        drop(lock);
        told.for_each(drop);
        assert_eq!(work.wait().expect("nf ends").code(), Some(0), "{more:?}");
        assert_eq!(shown(&project, &handoff, "/state"), "completed");
        assert_eq!(shown(&project, &handoff, "/number"), 1, "it was asked once");
        assert_sound(&project);
    }
}

#[test]
fn an_answer_that_no_store_took_in_time_is_not_asked_for_again_and_again() {
    let text =
        "read_packet; echo ran >> \"$0.ran\"; while ! [ -e \"$0.go\" ]; do sleep 0.05; done; answer reject";
    let (project, handoff) = with_program(text);
    let more = ["--loop", "--json", "--ttl", "1s", "--lock-timeout", "100ms"];
    let mut work = project.command(&line(&more));
    let work = work.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nf runs");
    appears(&project, "answer.sh.ran");
    let lock = held(&project);
    project.write("answer.sh.go", "");
    let output = work.wait_with_output().expect("nf ends");
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    drop(lock);
    assert_eq!(project.read("answer.sh.ran").lines().count(), 1);
    assert_eq!(shown(&project, &handoff, "/number"), 1);
}

#[test]
fn a_busy_store_ends_no_loop_and_is_no_end_of_a_queue() {
    let (project, handoff) = with_program("read_packet; answer accept");
    let lock = held(&project);
    for more in ["--once", "--drain"] {
        refused(&project, &line(&[more, "--lock-timeout", "100ms"]), 75, "busy");
    }
    let mut work = project.command(&line(&["--loop", "--lock-timeout", "100ms"]));
    let mut work = work.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nf runs");
    // Long enough for some tries on most machines; on a slower one less is tested.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(work.try_wait().expect("a child"), None, "it goes on");
    drop(lock);
    until("an answer", || (shown(&project, &handoff, "/state") == "completed").then_some(()));
    end(&mut work, 0);
    assert_sound(&project);
}

fn end(work: &mut std::process::Child, code: i32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(work.id()).expect("a number"));
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::TERM).expect("a signal");
    assert_eq!(work.wait().expect("nf ends").code(), Some(code));
}

#[test]
fn a_loop_works_in_the_store_that_stands_there_now() {
    let project = project();
    program(&project, "answer.sh", "read_packet; answer accept");
    let copy = |from: &str, to: &str| {
        let status = Command::new("cp").arg("-a").arg(project.at(from)).arg(project.at(to)).status();
        assert!(status.expect("cp runs").success());
    };
    let (_, _, first) = queued(&project, "novel/q1", &[]);
    let mut work = project.command(&line(&["--loop"]));
    let mut work = work.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nf runs");
    until("an answer", || (shown(&project, &first, "/state") == "completed").then_some(()));
    // Another store is made beside it and put into its place, with a question of its own.
    let other = crate::work::project();
    let (_, _, second) = queued(&other, "novel/q2", &[]);
    copy(other.at(".novelforge").to_str().expect("text"), "fresh");
    std::fs::rename(project.at(".novelforge"), project.at("old")).expect("moved away");
    std::fs::rename(project.at("fresh"), project.at(".novelforge")).expect("put back");
    until("an answer in the other store", || {
        (shown(&project, &second, "/state") == "completed").then_some(())
    });
    end(&mut work, 0);
    assert_sound(&project);
    let old = Command::new(NF).args(["verify"]).env_clear().env("NF_DIR", project.at("old")).output();
    assert!(old.expect("nf runs").status.success());
}

#[test]
fn who_loses_a_question_between_two_workers_goes_on_with_the_next() {
    let project = project();
    program(&project, "fails.sh", "exit 3");
    program(&project, "answer.sh", "read_packet; answer accept");
    let settings = tempfile::tempdir().expect("a folder");
    let fails = project.at("fails.sh").display().to_string();
    let text = json!({"workers": {"fails": {"kind": "command", "command": [fails]}}});
    std::fs::write(settings.path().join("workers.yaml"), text.to_string()).expect("a file");
    (0..8).for_each(|number| drop(queued(&project, &format!("novel/q{number}"), &[])));
    let spells: Vec<_> = (0..4)
        .map(|_| {
            let mut work = project.command(&line(&["--drain", "--json", "--worker-config", "fails"]));
            work.env("NF_CONFIG", settings.path()).stdout(Stdio::piped()).stderr(Stdio::null());
            work.spawn().expect("nf runs")
        })
        .collect();
    for spell in spells {
        let output = spell.wait_with_output().expect("nf ends");
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // Some have nothing to do, or only what failed; none ends since another one was quicker.
        let kind = told["error"]["kind"].as_str().unwrap_or("none");
        assert!(["none", "pending", "execution_failed"].contains(&kind), "{told}");
    }
    assert_sound(&project);
}
