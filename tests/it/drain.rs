//! Several workers empty a queue through real processes: nothing is claimed twice, nothing is lost, also
//! where they are killed at random moments, and what all of them left is taken up again once.
//! `NF_TEST_DRAIN` (160) handoffs, `NF_TEST_DRAIN_KILLED` (24) of them under kills, `NF_TEST_EXPIRED` (48)
//! whose leases all run out, `NF_TEST_SEED` repeats the draws.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::expect::records;
use crate::faults::tools::{Random, assert_sound, count, events, kind};
use crate::handoffs::CLASS;
use crate::harness::{JOB, Packet, Project, Ran};

const WORKERS: usize = 8;

/// Queues as many questions, each of a session of its own; gives the session of each handoff.
fn fill(project: &Project, handoffs: u64, more: &[&str]) -> BTreeMap<String, String> {
    let next = AtomicU64::new(0);
    let fill = || {
        let mut opened = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= handoffs {
                return opened;
            }
            let file = format!("job-{number}.yaml");
            project.write(&file, JOB.replace("novel/pride/ch01", &format!("novel/q{number}")));
            let session = project.start();
            let job = project.nf(&["freeze", &file, "--session", &session]).expect(0).line();
            let open = [&["handoff", "open", &job, "--class", CLASS, "--session", &session], more].concat();
            opened.push((project.nf(&open).expect(0).line(), session));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|_| scope.spawn(fill)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    })
}

/// One worker with what all of them share.
struct Worker<'a> {
    project: &'a Project,
    sessions: &'a BTreeMap<String, String>,
    number: usize,
    random: Random,
    /// Kills still to come.
    kills: &'a AtomicU64,
    consumed: &'a AtomicUsize,
}

impl Worker<'_> {
    /// Runs a command, or kills it somewhere; what it said if it came to its end.
    fn run(&mut self, line: &[&str]) -> Option<Ran> {
        let line = [line, &["--json", "--lock-timeout", "60s"]].concat();
        let mut command = self.project.command(&line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nf starts");
        let spared = self.kills.load(Ordering::SeqCst) == 0 || self.random.below(2) == 0;
        if !spared {
            std::thread::sleep(Duration::from_micros(self.random.below(25_000) as u64));
            child.kill().expect("a kill");
        }
        let output = child.wait_with_output().expect("nf ends");
        if output.status.code().is_none() {
            let _ = self.kills.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            return None;
        }
        Some(output.into())
    }

    /// The same command until one run of it came to its end.
    fn insist(&mut self, line: &[&str]) -> Ran {
        loop {
            if let Some(ran) = self.run(line) {
                return ran;
            }
        }
    }

    /// Claims, answers and consumes until everything is consumed. A killed claim leaves work that nobody
    /// holds, until its lease is over.
    fn drains(&mut self) {
        let name = format!("w{}", self.number);
        while self.consumed.load(Ordering::SeqCst) < self.sessions.len() {
            let Some(claim) = self.run(&["handoff", "claim", "--class", CLASS, "--worker", &name]) else {
                continue;
            };
            if claim.code == 8 {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let data = claim.expect(0).json()["data"].clone();
            let packet = Packet::read(data["packet"].as_str().expect("a packet"));
            let file = format!("answer-{}.json", self.number);
            self.project.write(&file, packet.verdict("reject"));
            let answer = self.insist(&["handoff", "complete", &file]);
            if kind(&answer) == "lease_lost" {
                continue;
            }
            let result = text(&answer.expect(0).json()["data"]["result"]);
            let (gate, session) = (text(&data["gate"]), &self.sessions[&packet.handoff]);
            self.insist(&["consume", &result, "--as", &gate, "--session", session]).expect(0);
            self.consumed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Drains a queue, with as many kills; gives how often each handoff was claimed.
fn drained(handoffs: u64, kills: u64, more: &[&str]) -> BTreeMap<String, usize> {
    let mut random = Random::new();
    let project = Project::in_memory().furnished();
    let sessions = fill(&project, handoffs, more);
    let (wanted, kills, consumed) = (kills, &AtomicU64::new(kills), &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let random = Random::of(random.next());
            let (project, sessions) = (&project, &sessions);
            let mut worker = Worker { project, sessions, number, random, kills, consumed };
            scope.spawn(move || worker.drains());
        }
    });
    let killed = wanted - kills.load(Ordering::SeqCst);
    assert!(killed >= wanted / 4, "only {killed} of {wanted} were killed");
    let completed: BTreeSet<String> =
        events(&project, "handoff.completed").iter().map(|event| text(&event["handoff"])).collect();
    assert_eq!(completed, sessions.keys().cloned().collect(), "every handoff has its answer");
    for once in ["handoff.completed", "result.stored", "receipt.recorded"] {
        assert_eq!(events(&project, once).len(), sessions.len(), "{once}");
    }
    assert_sound(&project);
    claims(&project)
}

/// How often each handoff was claimed. No claim comes while another attempt is active: the one before has
/// ended earlier, or ends in the same record, after its lease was seen to be over.
fn claims(project: &Project) -> BTreeMap<String, usize> {
    let (mut active, mut count) = (BTreeMap::new(), BTreeMap::new());
    for record in records(project) {
        for event in record["events"].as_array().expect("events") {
            match event["type"].as_str().expect("a type") {
                "handoff.claimed" => {
                    let attempt = &event["attempt"];
                    let before = active.insert(text(&attempt["handoff"]), text(&attempt["id"]));
                    assert_eq!(before, None, "{record}");
                    *count.entry(text(&attempt["handoff"])).or_default() += 1;
                }
                "attempt.ended" | "handoff.completed" => {
                    active.retain(|_, attempt| *attempt != text(&event["attempt"]));
                }
                _ => {}
            }
        }
    }
    count
}

#[test]
fn eight_workers_empty_a_queue_and_claim_nothing_twice() {
    let claims = drained(count("NF_TEST_DRAIN", 160), 0, &[]);
    assert!(claims.values().all(|times| *times == 1), "{claims:?}");
}

#[test]
fn workers_that_are_killed_at_random_moments_cost_time_and_nothing_else() {
    let handoffs = count("NF_TEST_DRAIN_KILLED", 24);
    let claims = drained(handoffs, handoffs * 2, &["--ttl", "1s", "--max-attempts", "1000"]);
    assert!(claims.values().all(|times| *times >= 1), "{claims:?}");
}

/// Eight workers at once claim until there is nothing to claim; how many claims each of them won.
fn claim_all(project: &Project) -> Vec<usize> {
    let claims = |number: usize| {
        let name = format!("w{number}");
        let mut won = 0;
        loop {
            let claim = ["handoff", "claim", "--class", CLASS, "--worker", &name, "--lock-timeout", "60s"];
            let ran = project.nf(&claim);
            if ran.code == 8 {
                return won;
            }
            ran.expect(0);
            won += 1;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|number| scope.spawn(move || claims(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    })
}

#[test]
fn leases_that_all_ran_out_are_each_reclaimed_once_by_workers_at_once() {
    let handoffs = count("NF_TEST_EXPIRED", 48);
    let mut project = Project::in_memory();
    let boot = |ms: u64| format!("machine/boot/one/{ms}");
    project.set("NF_NOW", "2026-01-01T00:00:00Z");
    project.set("NF_BOOT", &boot(1_000));
    project.nf(&["init", "--testing"]).expect(0);
    project.write("ch01.md", crate::harness::CHAPTER);
    fill(&project, handoffs, &[]);
    assert_eq!(claim_all(&project).iter().sum::<usize>() as u64, handoffs);
    assert_eq!(claim_all(&project).iter().sum::<usize>(), 0, "nothing is claimed while it is held");
    project.set("NF_NOW", "2026-01-01T01:00:00Z");
    project.set("NF_BOOT", &boot(3_601_000));
    assert_eq!(claim_all(&project).iter().sum::<usize>() as u64, handoffs);
    assert!(claims(&project).values().all(|times| *times == 2), "every lease is reclaimed once");
    assert_eq!(events(&project, "lease.expired").len() as u64, handoffs);
    assert_sound(&project);
}
