//! `effect run`: what its command gets, who may run it, and that it is run once.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use crate::effects::{PATH, PLAN, hash, json_run, planned, project, run, run_fails, stands};
use crate::expect::{done, events_of, failed, names, refused, shown};
use crate::faults::tools::assert_sound;
use crate::harness::{NF, Ran};

#[test]
fn a_command_that_fails_and_wrote_is_done_and_says_so() {
    let (project, _, _) = planned();
    let ran = project.nf(&run("cp draft.md canon/ch01.md; exit 5")).expect(0);
    assert_eq!(ran.line(), "new");
    assert!(ran.stderr.contains("exit code 5"), "{}", ran.stderr);
}

#[test]
fn a_program_that_is_not_there_starts_nothing() {
    let (project, _, _) = planned();
    project.write("not-a-program", "#!/bin/sh\n");
    for program in ["no-such-program", "./nothing", "./not-a-program", "canon", "./canon", ""] {
        let before = project.log();
        let ran = project.nf(&["effect", "run", "settle", "--json", "--", program, "x"]).expect(7);
        names(&ran.json()["error"]["cause"], &["nothing was started"]);
        assert!(before == project.log(), "{program}");
    }
    project.nf(&["effect", "run", "settle"]).expect(2);
    project.nf(&["effect", "run", "settle", "--"]).expect(2);
    // What only the system finds wrong was started all the same: strictly, nothing is known.
    project.write("odd", "\x7fELF nonsense");
    std::fs::set_permissions(project.at("odd"), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let ran = project.nf(&["effect", "run", "settle", "--json", "--", "./odd"]).expect(7);
    names(&ran.json()["error"]["message"], &["could not be run"]);
    stands(&project, 9, "started");
}

#[test]
fn the_command_gets_no_input_no_key_a_group_of_its_own_and_one_descriptor_that_says_it_runs() {
    let (project, session, effect) = planned();
    // Descriptors that this test has from outside go through all children: they are compared with.
    let list = "ls /proc/$$/fd > fds";
    let mut plain = std::process::Command::new("sh");
    let plain = plain.args(["-c", list]).current_dir(project.path()).stdin(std::process::Stdio::null());
    assert!(plain.status().expect("a shell").success());
    let outer = project.read("fds");
    let line = "ls /proc/$$/fd > fds; readlink /proc/$$/fd/* > targets; env > env; cat > input; \
        ps -o pgid= -p $$ > group; echo $$ > pid; pwd > folder; echo to-stdout; cp draft.md canon/ch01.md";
    let mut command = project.command(&json_run(line));
    command.envs([("NF_OP", "key"), ("NF_NONCE", "secret"), ("NF_SESSION", &session), ("KEPT", "yes")]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("nf runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), b"typed").expect("written");
    let ran: Ran = child.wait_with_output().expect("nf ends").into();
    let ran = ran.expect(0);
    assert_eq!(ran.json()["data"]["application"], "new", "stdout is the answer alone");
    assert!(ran.stderr.contains("to-stdout"), "{}", ran.stderr);
    assert_eq!(project.read("input"), "", "no input");
    let env = project.read("env");
    let has = |line: &str| env.lines().any(|held| held == line);
    assert!(has(&format!("NF_EFFECT_BEFORE={}", hash("old\n"))) && has("KEPT=yes"), "{env}");
    assert!(has(&format!("NF_SESSION={session}")), "{env}");
    assert!(!env.contains("NF_OP=") && !env.contains("NF_NONCE="), "{env}");
    assert_eq!(project.read("group").trim(), project.read("pid").trim(), "a process group of its own");
    assert_eq!(
        project.read("folder").trim(),
        project.path().canonicalize().expect("a path").display().to_string()
    );
    assert_eq!(project.read("fds").lines().count(), outer.lines().count() + 1, "one descriptor of its own");
    let targets = project.read("targets");
    let stores: Vec<&str> = targets.lines().filter(|line| line.contains(".novelforge")).collect();
    assert_eq!(stores.len(), 1, "{targets}");
    assert!(stores[0].ends_with(&format!("/running/{effect}")), "{targets}");
    assert!(targets.starts_with("/dev/null\n"), "{targets}");
}

#[test]
fn the_store_is_free_while_the_command_runs() {
    let (mut project, _, _) = planned();
    project.set("NF", NF);
    let line = "$NF run step --cursor inside --lock-timeout 1s && $NF effect check settle; \
        $NF resume --interrupted; echo $? > code; cp draft.md canon/ch01.md";
    let ran = project.nf(&run(line)).expect(0);
    assert!(ran.stderr.contains("started"), "{}", ran.stderr);
    assert_eq!(project.read("code"), "9\n", "nobody resumes beside a running write");
    assert_eq!(events_of(&project, "run.stepped").len(), 1);
    assert_sound(&project);
}

#[test]
fn before_is_absent_where_nothing_stood() {
    let (project, _) = project();
    let plan = ["effect", "plan", "--key", "settle", "--path", "canon/new.md", "--expect", "draft.md"];
    assert_eq!(done(&project, &plan)["effect"]["before"], "absent");
    let line = "test \"$NF_EFFECT_BEFORE\" = absent && cp draft.md canon/new.md";
    project.nf(&run(line)).expect(0);
    stands(&project, 0, "applied");
}

#[test]
fn a_file_that_cannot_be_read_proves_nothing() {
    let (project, _, _) = planned();
    if std::fs::metadata(project.path()).is_ok_and(|meta| meta.uid() == 0) {
        // Root reads everything: a folder in the file's place is as unreadable.
        std::fs::remove_file(project.at(PATH)).expect("removed");
        std::fs::create_dir(project.at(PATH)).expect("a folder");
    } else {
        std::fs::set_permissions(project.at(PATH), std::fs::Permissions::from_mode(0o0)).expect("chmod");
    }
    assert_eq!(stands(&project, 9, "diverged")["now"], Value::Null);
    run_fails(&project, "touch ran", 9, "diverged");
    refused(&project, &["effect", "done", "settle"], 9, "diverged");
    assert!(!project.at("ran").exists());
}

#[test]
fn a_zombie_manager_and_a_stranger_write_nothing() {
    let (project, session, _) = planned();
    let old = shown(&project, &session, "/run").as_str().expect("an id").to_owned();
    done(&project, &["resume", "--interrupted"]);
    let zombie = |words: &[&str]| {
        let before = project.log();
        let ran: Ran = project.command(words).env("NF_RUN", &old).output().expect("nf runs").into();
        assert_eq!(ran.expect(3).json()["error"]["kind"], "not_current_run", "{words:?}");
        assert!(before == project.log());
    };
    zombie(&[PLAN, &["--json"]].concat());
    zombie(&json_run("touch ran"));
    zombie(&["effect", "done", "settle", "--json"]);
    zombie(&["effect", "clear", "settle", "--reason", "x", "--json"]);
    let other = project.start();
    for words in [
        &["effect", "run", "settle", "--session", &other, "--", "touch", "ran"][..],
        &["effect", "done", "settle", "--session", &other],
        &["effect", "clear", "settle", "--reason", "x", "--session", &other],
    ] {
        let before = project.log();
        let ran = project.nf(words).expect(3);
        assert!(ran.stderr.contains(&session) && before == project.log(), "{}", ran.stderr);
    }
    assert!(!project.at("ran").exists());
    let run = ["effect", "run", "settle", "--expect-version", "99", "--", "touch", "ran"];
    project.nf(&run).expect(3);
    assert!(!project.at("ran").exists());
}

#[test]
fn who_begins_where_an_uncertain_session_stopped_settles_its_write() {
    let (project, session, _) = planned();
    run_fails(&project, "exit 1", 7, "execution_failed");
    done(&project, &["session", "move", &session, "stale"]);
    let heir = done(&project, &["start", "--from", &session])["session"].as_str().expect("an id").to_owned();
    let status = done(&project, &["status"]);
    assert_eq!(status["sessions"][0]["next"], "nf effect check settle");
    let error = refused(&project, &["resume", "--interrupted"], 9, "stale");
    assert_eq!(error["details"]["failed"], json!(["effects"]));
    project.write(PATH, "new\n");
    let done_now = done(&project, &["effect", "done", "settle"]);
    assert_eq!(done_now["effect"]["session"], json!(session));
    assert_eq!(events_of(&project, "effect.done")[0]["session"], json!(heir));
    done(&project, &["resume", "--interrupted"]);
    assert_sound(&project);
}

#[test]
fn a_dry_run_runs_nothing() {
    let (project, _, _) = planned();
    let before = project.log();
    let words = ["effect", "run", "settle", "-n", "--json", "--", "touch", "ran"];
    let planned = project.nf(&words).expect(0).json()["planned"].clone();
    let words: Vec<&Value> = planned.as_array().expect("events").iter().map(|event| &event["type"]).collect();
    assert_eq!(words, ["effect.started", "effect.done"]);
    assert!(before == project.log() && !project.at("ran").exists());
}

#[test]
fn an_operation_key_is_answered_by_a_proved_write_only() {
    let (project, _, _) = planned();
    let words = |line| ["effect", "run", "settle", "--op", "one", "--json", "--", "sh", "-c", line];
    project.nf(&words("exit 1")).expect(7);
    let error = project.nf(&words("exit 1")).expect(9).json()["error"].clone();
    assert_eq!(error["kind"], "uncertain", "the key was not answered");
    project.write(PATH, "new\n");
    done(&project, &["effect", "done", "settle"]);
    project.nf(&words("exit 1")).expect(0);
    // `already` wrote nothing, so that the key is free still.
    let other = ["effect", "plan", "--key", "two", "--path", "two.md", "--expect", "draft.md"];
    done(&project, &other);
    let run = |line| ["effect", "run", "two", "--op", "one", "--json", "--", "sh", "-c", line];
    let first = project.nf(&run("cp draft.md two.md")).expect(0).json();
    let again = project.nf(&run("cp draft.md two.md")).expect(0).json();
    assert_eq!(again, first);
    assert_eq!(project.nf(&run("touch ran")).expect(4).json()["error"]["kind"], "op_conflict");
    failed(&project, &["effect", "done", "two", "--op", "one"], b"", 4, "op_conflict");
}

#[test]
fn of_many_runs_at_once_one_runs_its_command() {
    let (project, _, _) = planned();
    let line = "echo x >> count; sleep 0.2; cp draft.md canon/ch01.md";
    let words = run(line);
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = project.command(&words);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().expect("nf starts")
        })
        .collect();
    let ran: Vec<Ran> =
        children.into_iter().map(|child| child.wait_with_output().expect("nf ends").into()).collect();
    assert_eq!(project.read("count"), "x\n");
    assert_eq!(ran.iter().filter(|ran| ran.line() == "new").count(), 1, "{ran:?}");
    assert!(ran.iter().all(|ran| ran.line() == "new" || ran.line() == "already" || ran.code == 9), "{ran:?}");
    stands(&project, 0, "applied");
    assert_sound(&project);
}
