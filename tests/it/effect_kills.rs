//! `effect run` is killed with SIGKILL at random moments, and everything is asked what happened: the write
//! happens at most once, and where nothing proves it the effect is uncertain. `NF_TEST_EFFECT_KILLS` (200)
//! kills, `NF_TEST_SEED` repeats a run as far as the machine does.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::expect::{done, names, refused};
use crate::faults::tools::{Random, assert_sound, count};
use crate::harness::{Project, Ran};

/// A write that compares and swaps, and counts how often it wrote. `$1` is the hash that it knows, `$2` the
/// text of that hash, `$3` the line that it appends.
const SWAP: &str = "test \"$NF_EFFECT_BEFORE\" = \"$1\" && test \"$(cat text)\" = \"$2\" || exit 4; \
    echo \"$3\" >> wrote; { cat text; echo \"$3\"; } > next; mv next text";

fn hash(text: &str) -> String {
    nf::model::hash::Hash::of(text.as_bytes()).hex()
}

/// How often a line was written.
fn wrote(project: &Project, line: &str) -> usize {
    let all = std::fs::read_to_string(project.at("wrote")).unwrap_or_default();
    all.lines().filter(|held| *held == line).count()
}

/// Runs a command and kills it after some microseconds; how long it took if it was quicker. The command that
/// it started goes on in a group of its own and holds the pipe of its errors: it has ended when that has.
fn kill_after(project: &Project, words: &[&str], micros: usize) -> Option<usize> {
    let mut command = project.command(words);
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("nf starts");
    drop(command);
    std::thread::sleep(Duration::from_micros(micros as u64));
    let quicker = child.try_wait().expect("a child").is_some();
    child.kill().expect("a kill");
    child.wait_with_output().expect("nf ends");
    quicker.then(|| began.elapsed().as_micros() as usize)
}

/// What came of the effect that a killed process left.
#[derive(Clone, Copy, PartialEq)]
enum Came {
    Done,
    NotBegun,
    Uncertain,
}

/// Asks for the same write again, and settles it where it is uncertain.
fn ask_again(project: &Project, key: &str, line: &str, words: &[&str]) -> Came {
    let before = wrote(project, line);
    let ran: Ran = project.nf(words);
    match (ran.code, ran.line().as_str()) {
        (0, "already") => {
            assert_eq!((before, wrote(project, line)), (1, 1), "{key}: done, and written once");
            Came::Done
        }
        (0, "new") => {
            assert_eq!((before, wrote(project, line)), (0, 1), "{key}: nothing had been started");
            Came::NotBegun
        }
        (9, _) => {
            assert_eq!(wrote(project, line), before, "{key}: nothing is run again");
            let check = project.nf(&["effect", "check", key]).expect(9);
            assert_eq!(check.line(), "started");
            let error = refused(project, &["resume", "--interrupted"], 9, "stale");
            names(&error["cause"], &["uncertain", key]);
            if before == 1 {
                done(project, &["effect", "done", key]);
            } else {
                refused(project, &["effect", "done", key], 9, "uncertain");
                done(project, &["effect", "clear", key, "--reason", "nothing was written"]);
            }
            Came::Uncertain
        }
        other => panic!("{key}: {other:?} {}", ran.stderr),
    }
}

#[test]
fn killed_at_any_moment_the_write_happens_at_most_once_and_is_else_uncertain() {
    let kills = count("NF_TEST_EFFECT_KILLS", 200);
    let mut project = Project::in_memory().furnished();
    project.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    project.write("text", "0\n");
    project.start();
    let (mut random, mut usual, mut seen) = (Random::new(), 30_000, Vec::new());
    for number in 1..=kills {
        let (key, line, text) = (format!("k/{number}"), number.to_string(), project.read("text"));
        let (known, required) = (hash(&text), hash(&format!("{text}{line}\n")));
        done(&project, &["effect", "plan", "--key", &key, "--path", "text", "--expect", &required]);
        let words = ["effect", "run", &key, "--", "sh", "-c", SWAP, "sh", &known, text.trim_end(), &line];
        if let Some(took) = kill_after(&project, &words, random.below(usual * 5 / 4)) {
            usual = (usual + took) / 2;
        }
        let now = project.read("text");
        assert!(wrote(&project, &line) <= 1, "{key} was written twice");
        assert_eq!(hash(&now) == required, wrote(&project, &line) == 1, "{key}: {now:?}");
        seen.push(ask_again(&project, &key, &line, &words));
        assert!(wrote(&project, &line) <= 1, "{key} was written twice");
    }
    let met = [Came::Done, Came::NotBegun, Came::Uncertain]
        .map(|came| seen.iter().filter(|held| **held == came).count());
    eprintln!("{kills} kills: {} done, {} not begun, {} uncertain", met[0], met[1], met[2]);
    assert!(kills < 100 || met.iter().all(|times| *times > 0), "every moment is met: {met:?}");
    assert_sound(&project);
}

/// A project with one write planned.
fn planned() -> Project {
    let mut project = Project::new();
    project.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    project.write("new.md", "new\n");
    project.start();
    done(&project, &["effect", "plan", "--key", "k", "--path", "text", "--expect", "new.md"]);
    project
}

/// Runs a line whose shell kills `nf`, and waits until the line has ended.
fn killed_by_its_command(project: &Project, line: &str) {
    let mut command = project.command(&["effect", "run", "k", "--", "sh", "-c", line]);
    let output = command.stderr(Stdio::piped()).output().expect("nf starts");
    assert_eq!(output.status.code(), None, "nf was killed");
}

#[test]
fn each_moment_of_a_crash_is_told_for_what_it_is() {
    // Between the start and the write.
    let project = planned();
    killed_by_its_command(&project, "kill -9 $PPID");
    project.nf(&["effect", "run", "k", "--", "touch", "ran"]).expect(9);
    refused(&project, &["effect", "done", "k"], 9, "uncertain");
    // A command that goes on writes after all: that is why nothing was guessed.
    let project = planned();
    killed_by_its_command(&project, "kill -9 $PPID; sleep 0.1; cp new.md text");
    project.nf(&["effect", "run", "k", "--", "touch", "ran"]).expect(9);
    names(&refused(&project, &["resume", "--interrupted"], 9, "stale")["cause"], &["nf effect done k"]);
    assert_eq!(done(&project, &["effect", "done", "k"])["application"], "new");
    done(&project, &["resume", "--interrupted"]);
    // Between the write and its record.
    let project = planned();
    killed_by_its_command(&project, "cp new.md text; kill -9 $PPID");
    assert_eq!(project.nf(&["effect", "check", "k"]).expect(9).line(), "started");
    project.nf(&["effect", "run", "k", "--", "touch", "ran"]).expect(9);
    done(&project, &["effect", "done", "k"]);
    let again = project.nf(&["effect", "run", "k", "--", "touch", "ran"]).expect(0);
    assert_eq!(again.line(), "already");
    assert!(!project.at("ran").exists());
    assert_sound(&project);
}

#[test]
fn a_write_that_cannot_be_made_durable_is_not_done() {
    let Some(strace) = crate::faults::trace::strace() else { return };
    let project = planned();
    project.write("text", "new\n");
    let before = project.log();
    for when in [1, 2] {
        let ran = strace.inject(&project, &["effect", "done", "k", "--json"], "fsync", "error=EIO", when);
        assert_eq!(ran.expect(12).json()["error"]["kind"], "not_durable", "call {when}");
        assert!(before == project.log() && !project.at(".novelforge/POISON").exists());
    }
    done(&project, &["effect", "done", "k"]);
}

#[test]
fn quiet_leaves_the_commands_own_errors_alone() {
    let project = planned();
    let line = "echo words; echo trouble >&2; cp new.md text";
    let ran = project.nf(&["effect", "run", "k", "-q", "--", "sh", "-c", line]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("new\n", "trouble\n"));
}
