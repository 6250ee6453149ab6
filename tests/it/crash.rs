//! SIGKILL at random moments, while commands of every kind run in parallel. `NF_TEST_KILLS` (200) kills in
//! all, `NF_TEST_SEED` repeats a run (moments differ all the same: the machine is no clockwork);
//! `NF_TEST_SPREAD` (2) calls of each kind at which a command is killed by strace.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::faults::tools::{Random, acknowledged, assert_kept, assert_sound, count, kind, records};
use crate::harness::{Packet, Project, Ran, report};

const WRITERS: usize = 4;

/// What all writers of a test share.
struct Field {
    project: Project,
    /// Kills still to come.
    left: AtomicU64,
    kept: Mutex<Vec<(u64, String)>>,
    /// How long each kind of command took when it was let be, so that kills fall inside it.
    took: Mutex<BTreeMap<String, Duration>>,
}

/// One process after another, each in a session of its own.
struct Writer<'a> {
    field: &'a Field,
    random: Random,
    number: usize,
    step: u64,
}

impl Writer<'_> {
    /// Runs a command until it ends by itself, killing it at random moments; each try is the same request
    /// with the same operation key. A whole answer is an acknowledgement, even that of a killed process.
    fn run(&mut self, line: &str) -> Ran {
        self.step += 1;
        let op = format!("op/{}/{}", self.number, self.step);
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--json", "--op", &op, "--lock-timeout", "60s"]);
        loop {
            let spared = self.random.below(4) == 0;
            let ran = if spared { None } else { self.killed(&words) };
            match ran.or_else(|| self.left_over(spared, &words)) {
                Some(ran) => {
                    self.field.kept.lock().expect("kept").extend(acknowledged(&ran));
                    return ran;
                }
                None => continue,
            }
        }
    }

    /// A run that nobody kills.
    fn left_over(&self, spared: bool, words: &[&str]) -> Option<Ran> {
        if !spared && self.field.left.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let began = Instant::now();
        let ran: Ran = self.field.project.command(words).output().expect("nf runs").into();
        self.field.took.lock().expect("took").insert(words[0].to_owned(), began.elapsed());
        Some(ran)
    }

    /// A run that is killed; its answer if it was quicker.
    fn killed(&mut self, words: &[&str]) -> Option<Ran> {
        let usual = self.field.took.lock().expect("took").get(words[0]).copied();
        let usual = usual.unwrap_or(Duration::from_millis(30)).as_micros() as usize;
        let moment = Duration::from_micros(self.random.below(usual * 5 / 4 + 1) as u64);
        let mut command: Command = self.field.project.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nf starts");
        std::thread::sleep(moment);
        let quicker = child.try_wait().expect("a child").is_some();
        child.kill().expect("a kill");
        let output = child.wait_with_output().expect("nf ends");
        if quicker || output.status.code().is_some() {
            return Some(output.into());
        }
        self.told(&output.into());
        let _ = self.field.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        None
    }

    /// A killed run that had printed its whole answer had acknowledged it: the record is in the log already,
    /// before the same command is tried again. (Others append meanwhile: the log may end in half a line.)
    fn told(&self, ran: &Ran) {
        let Some((seq, hash)) = acknowledged(ran) else { return };
        let log = self.field.project.log();
        let own = format!("\"hash\":\"{hash}\"}}\n");
        let there = log.windows(own.len()).any(|bytes| bytes == own.as_bytes());
        assert!(there, "record {seq} was acknowledged by a killed process and is not there: {}", ran.stdout);
        self.field.kept.lock().expect("kept").push((seq, hash));
    }

    /// The whole loop in a session of its own, again and again while there are kills to come.
    fn loops(&mut self) {
        let mut round = 0;
        while round == 0 || self.field.left.load(Ordering::SeqCst) > 0 {
            round += 1;
            let subject = format!("novel/w{}/r{round}", self.number);
            let ran = self.run(&format!("start --resource {subject} --task review"));
            let session = data(&ran, "session");
            let file = format!("job-{}-{round}.yaml", self.number);
            let job = crate::harness::JOB.replace("novel/pride/ch01", &subject);
            self.field.project.write(&file, job);
            let ran = self.run(&format!("freeze {file} --session {session}"));
            let job = data(&ran, "job");
            let ran = self.run(&format!("packet {job} --session {session} --gate gate/{subject}"));
            let packet = Packet::read(&data(&ran, "packet"));
            let answer = format!("answer-{}-{round}.json", self.number);
            self.field.project.write(&answer, packet.verdict("reject"));
            let ran = self.run(&format!("reply {answer}"));
            let result = data(&ran, "result");
            let ran = self.run(&format!("consume {result} --as gate/{subject} --session {session}"));
            assert_eq!(data(&ran, "application"), "new");
            self.run(&format!("resume {session}"));
            self.run(&format!("run step --cursor ch02 --session {session}"));
            self.run(&format!("run finish --status completed --session {session}"));
            self.run(&format!("session move {session} stale"));
        }
    }
}

/// A member of an answer's data.
#[track_caller]
fn data(ran: &Ran, member: &str) -> String {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.json()["data"][member].as_str().unwrap_or_else(|| panic!("no {member} in {}", ran.stdout)).to_owned()
}

/// How often each operation key stands in the log.
fn operations(project: &Project) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for record in records(project) {
        if let Some(op) = record["op"].as_str() {
            *seen.entry(op.to_owned()).or_default() += 1;
        }
    }
    seen
}

#[test]
fn killed_writers_lose_nothing_acknowledged_and_apply_nothing_twice() {
    let kills = count("NF_TEST_KILLS", 200);
    let field = Field {
        project: Project::new(),
        left: AtomicU64::new(kills),
        kept: Mutex::default(),
        took: Mutex::default(),
    };
    let mut seeds = Random::new();
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let random = Random::of(seeds.next());
            let field = &field;
            scope.spawn(move || Writer { field, random, number, step: 0 }.loops());
        }
    });
    let kept = field.kept.into_inner().expect("kept");
    assert!(kept.len() >= WRITERS * 9, "{} acknowledged", kept.len());
    assert_kept(&field.project, &kept);
    assert_sound(&field.project);
    let twice: Vec<_> = operations(&field.project).into_iter().filter(|(_, times)| *times != 1).collect();
    assert!(twice.is_empty(), "applied more than once: {twice:?}");
    let ran = field.project.nf(&["doctor", "--json"]).expect(0);
    let errors: Vec<Value> = report(&ran.json())["findings"].as_array().cloned().unwrap_or_default();
    // A writer that died between head and mark leaves a record without its mark: the record is the receipt.
    let known = ["blob_uncited", "mark_missing", "unfinished", "packets", "modes", "torn_kept"];
    let odd: Vec<&Value> =
        errors.iter().filter(|finding| !known.contains(&finding["code"].as_str().unwrap_or(""))).collect();
    assert!(odd.is_empty(), "{odd:#?}");
    field.project.nf(&["doctor", "--fix"]).expect(0);
    assert_sound(&field.project);
    assert_kept(&field.project, &kept);
}

/// The writing end of a pipe that is full: whoever writes to it stands still. With the reading end.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).expect("flags");
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("set");
    while writer.write(b".").is_ok() {}
    fcntl_setfl(&writer, flags).expect("set");
    (reader, writer)
}

#[test]
fn what_a_process_printed_before_it_was_killed_is_recorded() {
    let project = Project::new();
    for (number, line) in [
        "start --resource novel/pride --task review",
        "freeze job.yaml",
        "packet",
        "checkpoint save --boundary other --cursor ch01/kept",
        "session move @ stale",
        "start --from @",
    ]
    .into_iter()
    .enumerate()
    {
        let session = records(&project)
            .iter()
            .find_map(|record| record["events"][0]["session"]["id"].as_str().map(str::to_owned));
        let line = line.replace('@', session.as_deref().unwrap_or_default());
        let op = format!("op-{number}");
        let words: Vec<&str> = line.split(' ').chain(["--op", &op]).collect();
        // Its news have nowhere to go, so that it stands still behind its answer.
        let (_reader, stderr) = full_pipe();
        let (mut stdout, writer) = std::io::pipe().expect("a pipe");
        let mut command = project.command(&words);
        let mut child = command.stdout(writer).stderr(stderr).spawn().expect("nf starts");
        drop(command);
        let mut answer = vec![0; 1 << 16];
        let length = stdout.read(&mut answer).expect("an answer");
        assert!(length > 0, "{line}: nothing was printed");
        child.kill().expect("a kill");
        let status = child.wait().expect("nf ends");
        assert_eq!(status.code(), None, "{line} had ended by itself");
        stdout.read_to_end(&mut Vec::new()).expect("the end");
        assert_eq!(operations(&project).get(&op), Some(&1), "{line} was acknowledged and is not there");
        let before = project.log();
        let again = project.nf(&words).expect(0);
        assert_eq!(again.stdout.as_bytes(), &answer[..length], "{line}");
        assert!(before == project.log(), "{line} was recorded again");
    }
    assert_sound(&project);
}

#[test]
fn a_writer_killed_at_each_system_call_is_before_or_after() {
    let Some(strace) = crate::faults::trace::strace() else { return };
    let steps = crate::faults::tools::Steps::new();
    for (name, command) in crate::faults::tools::LOOP {
        for call in ["write", "pwrite64", "fdatasync", "fsync", "renameat"] {
            let mut words = command.to_vec();
            words.extend(["--op", "once", "--json"]);
            let calls = strace.calls(&steps.before(name), &words, call);
            for when in crate::faults::trace::spread(calls, count("NF_TEST_SPREAD", 2)) {
                let project = steps.before(name);
                let what = format!("{name}: killed at {call} {when} of {calls}");
                let ran = strace.inject(&project, &words, call, "signal=KILL", when);
                assert_eq!(ran.code, -1, "{what}: {}", ran.stderr);
                let told: Vec<_> = acknowledged(&ran).into_iter().collect();
                assert_kept(&project, &told);
                project.nf(&["verify"]).expect(0);
                let again = project.nf(&words);
                assert_eq!((again.code, kind(&again).as_str()), (0, ""), "{what}: {}", again.stdout);
                assert!(told.is_empty() || told == Vec::from_iter(acknowledged(&again)), "{what}");
                assert_eq!(operations(&project).get("once"), Some(&1), "{what}");
                assert_sound(&project);
            }
        }
    }
}
