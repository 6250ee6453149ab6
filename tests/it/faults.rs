//! System calls that fail, put there by strace; a disk that is full; a lock that locks nothing. Never a
//! false success, never damage afterwards. `NF_TEST_SPREAD` (2) calls of each kind fail in turn.

pub mod full;
pub mod tools;
pub mod trace;

use serde_json::Value;

use crate::harness::{Project, Ran};
use tools::{LOOP, Steps, acknowledged, assert_kept, assert_sound, count, kind, records};
use trace::{Strace, spread, strace};

/// How often the operation key of the tests stands in the log.
fn applied(project: &Project) -> usize {
    records(project).iter().filter(|record| record["op"] == "once").count()
}

/// A command of the loop with the operation key and one document as its answer.
fn keyed<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let mut words = command.to_vec();
    words.extend(["--op", "once", "--json"]);
    words
}

/// The codes of what `doctor` finds.
fn found(project: &Project) -> Vec<String> {
    let report = project.nf(&["doctor", "--json"]).json();
    let findings = crate::harness::report(&report)["findings"].as_array().cloned().unwrap_or_default();
    findings.iter().filter_map(|finding| Some(finding["code"].as_str()?.to_owned())).collect()
}

#[test]
fn a_failed_sync_stops_all_writes_until_doctor_and_the_retry_applies_once() {
    let Some(strace) = strace() else { return };
    let steps = Steps::new();
    for (name, command) in LOOP {
        for errno in ["EIO", "ENOSPC"] {
            let project = steps.before(name);
            // The log's own sync is the first of a start; others sync blobs and packets before.
            let words = keyed(command);
            let Some(when) = log_sync(&strace, &steps.before(name), &words) else {
                panic!("{name} syncs nothing")
            };
            let ran = strace.inject(&project, &words, "fdatasync", &format!("error={errno}"), when);
            let what = format!("{name} {errno}: {}", ran.stdout);
            assert_eq!((ran.code, kind(&ran).as_str()), (12, "not_durable"), "{what}");
            assert!(project.at(".novelforge/POISON").exists(), "{what}");
            for _ in 0..2 {
                let next = project.nf(&words);
                assert_eq!((next.code, kind(&next).as_str()), (11, "poisoned"), "{what}");
            }
            project.nf(&["status"]).expect(0);
            project.nf(&["list", "session"]).expect(0);
            assert!(found(&project).contains(&"poisoned".to_owned()), "{what}");
            project.nf(&["doctor", "--fix"]).expect(0);
            assert!(!project.at(".novelforge/POISON").exists(), "{what}");
            project.nf(&words).expect(0);
            assert_eq!(applied(&project), 1, "{what}");
            assert_sound(&project);
        }
    }
}

/// Which fdatasync of a command is that of the log.
fn log_sync(strace: &Strace, project: &Project, words: &[&str]) -> Option<u64> {
    let lines = strace.lines(project, words, "fdatasync");
    let at = lines.iter().position(|line| line.contains(".jsonl"))?;
    Some(at as u64 + 1)
}

#[test]
fn a_failed_append_is_taken_back_and_the_next_command_works() {
    let Some(strace) = strace() else { return };
    let steps = Steps::new();
    let faults = [
        ("error=EIO", "io"),
        ("error=ENOSPC", "disk_full"),
        ("error=EDQUOT", "disk_full"),
        // Of a write that says that it was short, nothing is in the file here: the log is as it was.
        ("retval=5", "disk_full"),
    ];
    for (name, command) in LOOP {
        let words = keyed(command);
        let lines = strace.lines(&steps.before(name), &words, "write");
        let at = lines.iter().position(|line| line.contains(".jsonl")).expect("an append") + 1;
        for (fault, error) in faults {
            let project = steps.before(name);
            let before = project.log();
            let ran = strace.inject(&project, &words, "write", fault, at);
            assert_eq!((ran.code, kind(&ran).as_str()), (1, error), "{name} {fault}: {}", ran.stdout);
            assert_eq!(project.log(), before, "{name} {fault}");
            assert!(!project.at(".novelforge/POISON").exists(), "{name} {fault}");
            project.nf(&words).expect(0);
            assert_eq!(applied(&project), 1, "{name} {fault}");
            assert_sound(&project);
        }
        let project = steps.before(name);
        strace.inject(&project, &words, "write", "error=EINTR", at).expect(0);
        assert_eq!(applied(&project), 1, "{name}: interrupted");
        assert_sound(&project);
    }
}

/// What must hold after one call of a command failed; gives what is wrong.
fn after_fault(project: &Project, ran: &Ran, words: &[&str]) -> Option<String> {
    if ![0, 1, 11, 12, 75].contains(&ran.code) {
        return Some(format!("exit {}", ran.code));
    }
    let known: Vec<(u64, String)> = acknowledged(ran).into_iter().collect();
    if ran.code == 0 && (known.is_empty() || applied(project) != 1) {
        return Some("success without a record".to_owned());
    }
    if ran.code == 0 && project.at(".novelforge/POISON").exists() {
        return Some("success over a failed sync".to_owned());
    }
    let fixed = project.nf(&["doctor", "--fix", "--json"]);
    if fixed.code != 0 {
        return Some(format!("doctor --fix: {}", fixed.stdout));
    }
    let verified = project.nf(&["verify"]);
    if verified.code != 0 {
        return Some(format!("verify: {}{}", verified.stdout, verified.stderr));
    }
    let again = project.nf(words);
    if again.code != 0 {
        return Some(format!("the retry: {}", again.stdout));
    }
    if applied(project) != 1 {
        return Some(format!("applied {} times", applied(project)));
    }
    assert_kept(project, &known);
    assert_sound(project);
    None
}

/// One kind of call fails at some of its turns, in each command of the loop.
#[track_caller]
fn each_fails(calls: &[&str], errors: &[&str]) {
    let Some(strace) = strace() else { return };
    let steps = Steps::new();
    let (mut wrong, mut tried, mut met) = (Vec::new(), 0, 0);
    for (name, command) in LOOP {
        let words = keyed(command);
        for call in calls {
            let lines = strace.lines(&steps.before(name), &words, call);
            // The loader's own calls come before the program's, and end in no answer of its own.
            let own: Vec<u64> =
                (1u64..).zip(&lines).filter(|(_, line)| !loader(line)).map(|(at, _)| at).collect();
            for pick in spread(own.len() as u64, count("NF_TEST_SPREAD", 2)) {
                let when = own[pick as usize - 1];
                for error in errors {
                    tried += 1;
                    let project = steps.before(name);
                    let ran = strace.inject(&project, &words, call, &format!("error={error}"), when);
                    met += u32::from(ran.code != 0);
                    if let Some(why) = after_fault(&project, &ran, &words) {
                        let call = &lines[when as usize - 1];
                        wrong.push(format!(
                            "{name}: {error} at {call}: {why}\n  said: {} {}",
                            ran.stdout, ran.stderr
                        ));
                    }
                }
            }
        }
    }
    assert!(met > 0, "none of {tried} failures was met");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

fn loader(line: &str) -> bool {
    ["/etc/", "/lib", "/usr/", "/proc/", "/sys/", "\\177ELF"].iter().any(|start| line.contains(start))
}

#[test]
fn failed_opens_end_in_a_clear_error_and_no_damage() {
    each_fails(&["openat"], &["EIO"]);
}

#[test]
fn failed_renames_links_and_removals_end_in_a_clear_error_and_no_damage() {
    each_fails(&["renameat", "renameat2", "linkat", "unlinkat"], &["EIO"]);
}

#[test]
fn failed_syncs_of_anything_end_in_a_clear_error_and_no_damage() {
    each_fails(&["fsync", "fdatasync"], &["EIO"]);
}

#[test]
fn failed_writes_in_place_end_in_a_clear_error_and_no_damage() {
    each_fails(&["pwrite64"], &["EIO", "ENOSPC"]);
}

#[test]
fn failed_locks_end_in_a_clear_error_and_no_damage() {
    each_fails(&["flock"], &["ENOLCK"]);
}

#[test]
fn an_append_that_cannot_be_taken_back_stops_all_writes() {
    let Some(strace) = strace() else { return };
    let steps = Steps::new();
    let project = steps.before("freeze");
    let words = keyed(LOOP[1].1);
    let lines = strace.lines(&steps.before("freeze"), &words, "write");
    let at = lines.iter().position(|line| line.contains(".jsonl")).expect("an append") + 1;
    let first = format!("inject=write:error=EIO:when={at}");
    let ran = strace.with(&project, &words, &[&first, "inject=ftruncate:error=EIO"]);
    assert_eq!((ran.code, kind(&ran).as_str()), (11, "poisoned"), "{}", ran.stdout);
    let next = project.nf(&words);
    assert_eq!((next.code, kind(&next).as_str()), (11, "poisoned"), "{}", next.stdout);
    let why = after_fault(&project, &ran, &words);
    assert_eq!(why, None::<String>);
    let report: Value = project.nf(&["verify", "--json"]).expect(0).json();
    assert_eq!(report["ok"], true);
}
