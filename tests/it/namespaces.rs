//! Processes of the same number, each the first one of a PID namespace of its own, on one store with an
//! index: LMDB tells readers apart by that number. Needs root and `unshare`.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

use crate::faults::tools::{Random, acknowledged, assert_kept, assert_sound, spawn, twin};
use crate::harness::{NF, Project, Ran, skipped};
use crate::index::long;

/// New namespaces for each command: of processes alone, and of everything that an index is named by as well.
const NAMESPACES: [&[&str]; 2] = [&[], &["--ipc", "--mount"]];

/// Commands of each thread.
const TURNS: usize = 25;

fn unshare(more: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).args(more).arg("--");
    command
}

/// Whether a command can be the first process of a namespace.
fn there() -> bool {
    let first = NAMESPACES.iter().all(|more| {
        let ran = unshare(more).args(["sh", "-c", "echo $$"]).output();
        ran.is_ok_and(|ran| ran.stdout == b"1\n")
    });
    if !first {
        skipped("NF_NEED_UNSHARE", "there is no right to make namespaces of processes");
    }
    first
}

/// A command as the first process of a namespace.
fn apart(project: &Project, more: &[&str], words: &[&str]) -> Command {
    let mut command = unshare(more);
    command.arg(NF).args(words).current_dir(project.path()).env_clear();
    let plain = project.command(&[]);
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn run(mut command: Command) -> Ran {
    command.output().expect("unshare runs").into()
}

fn sessions(ran: &Ran) -> BTreeSet<String> {
    let items = ran.json()["data"]["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}

const LIST: [&str; 5] = ["list", "session", "--limit", "1000", "--json"];
const START: [&str; 6] = ["start", "--resource", "novel/emma", "--task", "review", "--json"];

/// What is asked, but for what changes from one asking to the next.
fn answers(project: &Project, session: &str) -> Vec<Value> {
    let asked: [&[&str]; 5] = [
        &LIST,
        &["list", "run", "--limit", "1000", "--json"],
        &["show", session, "--json"],
        &["status", "--json"],
        &["log", "--limit", "5", "--json"],
    ];
    let answer = |words: &&[&str]| {
        let ran = project.nf(words).expect(0);
        if words[0] == "log" {
            return Value::String(ran.stdout);
        }
        let mut answer = ran.json();
        answer["data"]["now"] = Value::Null;
        answer
    };
    asked.iter().map(answer).collect()
}

/// The store answers as its log does, and nothing is wrong with it.
fn as_the_fold(project: &Project, session: &str, known: &[(u64, String)]) {
    assert_kept(project, known);
    assert_sound(project);
    let mut bare = twin(project);
    bare.set("NF_SESSION", session);
    let index = bare.at(".novelforge/index");
    std::fs::remove_dir_all(&index).expect("an index");
    std::fs::write(&index, b"").expect("a file, so that none is made");
    assert_eq!(answers(project, session), answers(&bare, session));
    let verified = project.nf(&["verify", "--json"]).expect(0).json();
    assert_eq!(verified["data"]["findings"], serde_json::json!([]));
}

/// How many indexes there are, and which generation counts in the one that was there first.
fn generation(project: &Project) -> (usize, String) {
    let index = project.at(".novelforge/index");
    let homes = std::fs::read_dir(&index).expect("a folder").map(|entry| entry.expect("an entry").path());
    let homes: Vec<_> = homes.collect();
    let stamp = std::fs::read_to_string(homes[0].join("stamp")).expect("a stamp");
    (homes.len(), stamp.split(' ').next().expect("a number").to_owned())
}

#[test]
fn processes_of_one_number_read_and_write_at_once() {
    if !there() {
        return;
    }
    for more in NAMESPACES {
        let (project, session) = long();
        project.nf(&LIST).expect(0);
        let before = generation(&project);
        let known: Mutex<Vec<(u64, String, String)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        let ran = run(apart(&project, more, &START)).expect(0);
                        let (seq, hash) = acknowledged(&ran).expect("a record");
                        let id = ran.json()["data"]["session"].as_str().expect("an id").to_owned();
                        known.lock().expect("a list").push((seq, hash, id));
                    }
                });
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        let there: Vec<String> =
                            known.lock().expect("a list").iter().map(|(.., id)| id.clone()).collect();
                        let seen = sessions(&run(apart(&project, more, &LIST)).expect(0));
                        assert!(
                            there.iter().all(|id| seen.contains(id)),
                            "an acknowledged record is not seen"
                        );
                    }
                });
            }
        });
        let known: Vec<(u64, String)> =
            known.into_inner().expect("a list").into_iter().map(|(seq, hash, _)| (seq, hash)).collect();
        assert_eq!(known.len(), 2 * TURNS);
        as_the_fold(&project, &session, &known);
        if more.is_empty() {
            assert_eq!(generation(&project), before, "whoever finds its number taken makes no other index");
        }
    }
}

#[test]
fn a_reader_killed_beside_a_writer_of_its_number_leaves_nothing_behind() {
    if !there() {
        return;
    }
    let (project, session) = long();
    project.nf(&LIST).expect(0);
    let mut random = Random::new();
    let mut known = Vec::new();
    let (mut killed, mut turns) = (0, 0);
    // A quick reader is done before it is killed; then it is tried again.
    while turns < 40 || (killed <= 5 && turns < 1000) {
        turns += 1;
        let mut reader = spawn(apart(&project, &[], &LIST));
        let writer = spawn(apart(&project, &[], &START));
        std::thread::sleep(Duration::from_micros(random.below(6_000) as u64));
        // The kernel kills what it forked as well.
        reader.kill().expect("killed");
        killed += usize::from(!reader.wait().expect("ended").success());
        let ran: Ran = writer.wait_with_output().expect("nf ends").into();
        known.push(acknowledged(&ran.expect(0)).expect("a record"));
    }
    assert!(killed > 5, "only {killed} readers were killed in time");
    as_the_fold(&project, &session, &known);
}
