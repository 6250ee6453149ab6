//! Workers at once and workers too late: one winner, one result, and an order that the log tells.
//! `NF_TEST_ROUNDS` (1) repeats each race, `NF_TEST_COMMANDS` (40) is the length of each worker's history.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};

use crate::expect::{done, done_with, names, recorded, records, refused, shown};
use crate::faults::tools::{Random, acknowledged, assert_kept, assert_sound, at_once, count, events, kind};
use crate::handoffs::{CLAIM, CLASS, claimed, queued};
use crate::harness::{Packet, Project, Ran};

const PROCESSES: usize = 64;
const NOW: &str = "2026-11-30T10:00:00Z";
/// Milliseconds of a worker's lease.
const TTL_MS: u64 = 15 * 60 * 1000;

fn rounds() -> u64 {
    count("NF_TEST_ROUNDS", 1)
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

fn with_code(ran: &[Ran], code: i32) -> usize {
    ran.iter().filter(|ran| ran.code == code).count()
}

#[track_caller]
fn sound_with(project: &Project, ran: &[Ran]) {
    let known: Vec<_> = ran.iter().filter_map(acknowledged).collect();
    assert_kept(project, &known);
    assert_sound(project);
}

#[test]
fn of_many_claims_at_once_exactly_one_wins() {
    for _ in 0..rounds() {
        let project = Project::new();
        let (_, _, handoff) = queued(&project, "novel/q1", &[]);
        let claim = |number: usize| {
            let worker = format!("w{number}");
            let mut line = words(&["handoff", "claim", "--class", CLASS, "--worker", &worker]);
            line.extend(number.is_multiple_of(2).then(|| handoff.clone()));
            line
        };
        let ran = at_once(&project, &(0..PROCESSES).map(claim).collect::<Vec<_>>());
        assert_eq!((with_code(&ran, 0), with_code(&ran, 8)), (1, PROCESSES - 1), "{ran:#?}");
        assert_eq!(events(&project, "handoff.claimed").len(), 1);
        let won = ran.iter().find(|ran| ran.code == 0).expect("a winner").json();
        let worker = shown(&project, won["data"]["attempt"].as_str().expect("an id"), "/worker");
        let claimed = &events(&project, "handoff.claimed")[0]["attempt"];
        assert_eq!((&claimed["worker"], &claimed["id"]), (&worker, &won["data"]["attempt"]));
        sound_with(&project, &ran);
    }
}

#[test]
fn a_completion_and_a_reclaim_at_once_have_one_outcome() {
    for round in 0..rounds() {
        let mut project = Project::testing(NOW);
        project.set("NF_BOOT", "machine/boot/time/1000");
        let (session, _, handoff) = queued(&project, "novel/q1", &[]);
        let (first, packet) = claimed(&project, &[]);
        project.write("old.json", packet.verdict("accept"));
        project.set("NF_BOOT", &format!("machine/boot/time/{}", 1000 + TTL_MS));
        let (one, other) = (words(&["handoff", "complete", "old.json"]), words(CLAIM));
        // Whoever is started first is not always first at the lock.
        let line = |number: usize| {
            if (number as u64 + round).is_multiple_of(2) { one.clone() } else { other.clone() }
        };
        let ran = at_once(&project, &(0..PROCESSES).map(line).collect::<Vec<_>>());
        let claims: Vec<&Ran> = ran.iter().filter(|ran| ran.stdout.contains("nf.handoff.claim/")).collect();
        let won: Vec<Value> = claims.iter().filter(|ran| ran.code == 0).map(|ran| ran.json()).collect();
        let completions: Vec<&Ran> =
            ran.iter().filter(|ran| ran.stdout.contains("nf.handoff.complete/")).collect();
        assert_eq!((claims.len(), completions.len()), (PROCESSES / 2, PROCESSES / 2), "{ran:#?}");
        let taken = completions.iter().filter(|ran| ran.code == 0).count();
        match won.len() {
            0 => assert_eq!(taken, PROCESSES / 2, "{ran:#?}"),
            1 => {
                assert!(completions.iter().all(|ran| kind(ran) == "lease_lost"), "{ran:#?}");
                let new = Packet::read(won[0]["data"]["packet"].as_str().expect("a packet"));
                done_with(&project, &["handoff", "complete"], new.verdict("accept").as_bytes());
            }
            _ => panic!("two claims won: {won:#?}"),
        }
        assert!(claims.iter().all(|ran| [0, 8].contains(&ran.code)), "{ran:#?}");
        assert_eq!(events(&project, "result.stored").len(), 1);
        let held = shown(&project, first["attempt"].as_str().expect("an id"), "/state");
        assert_eq!(held, if won.is_empty() { "completed" } else { "superseded" });
        let gate = shown(&project, &handoff, "/gate");
        let consume = ["consume", "--as", gate.as_str().expect("a gate"), "--session", &session];
        let consumed = done(&project, &consume)["source"].clone();
        let by = shown(&project, consumed.as_str().expect("an id"), "/provenance/attempt");
        assert_eq!(by == first["attempt"], won.is_empty(), "the result of the one that was in time");
        sound_with(&project, &ran);
    }
}

#[test]
fn equal_and_different_completions_of_one_attempt_store_one_result() {
    for _ in 0..rounds() {
        for different in [false, true] {
            let project = Project::new();
            queued(&project, "novel/q1", &[]);
            let (_, packet) = claimed(&project, &[]);
            let complete = |number: usize| {
                let evidence = format!("e{}", if different { number } else { 0 });
                let output = json!({"verdict": "reject", "evidence": [evidence], "confidence": 0.5});
                let file = format!("answer-{number}.json");
                project.write(&file, packet.answer(&output));
                words(&["handoff", "complete", &file])
            };
            let ran = at_once(&project, &(0..PROCESSES).map(complete).collect::<Vec<_>>());
            let (new, refused) = if different { (1, PROCESSES - 1) } else { (PROCESSES, 0) };
            assert_eq!((with_code(&ran, 0), with_code(&ran, 4)), (new, refused), "{ran:#?}");
            assert_eq!(events(&project, "result.stored").len(), 1);
            sound_with(&project, &ran);
        }
    }
}

#[test]
fn a_stale_worker_of_the_same_name_is_refused_on_any_clock_and_its_answer_kept() {
    for (now, boot, why) in [
        ("2026-11-30T10:15:00Z", "machine/boot-1/time-1/901000", "the same clock"),
        ("2026-11-30T11:00:00Z", "machine/boot-1/time-1/901000", "the wall an hour forward"),
        ("2026-11-30T09:00:00Z", "machine/boot-1/time-1/901000", "the wall an hour back"),
        ("2026-11-30T10:15:30Z", "machine/boot-2/time-1/5", "another boot"),
        ("2026-11-30T10:15:30Z", "other/boot-1/time-1/5", "another machine"),
        ("2026-11-30T10:15:30Z", "machine/boot-1/time-2/9000000000", "a shifted time namespace"),
    ] {
        let mut project = Project::testing(NOW);
        project.set("NF_BOOT", "machine/boot-1/time-1/1000");
        let (session, _, handoff) = queued(&project, "novel/q1", &["--gate", "ci/gate"]);
        let (old, old_packet) = claimed(&project, &[]);
        refused(&project, CLAIM, 8, "pending");
        project.set("NF_NOW", now);
        project.set("NF_BOOT", boot);
        let (new, new_packet) = claimed(&project, &[]);
        assert_eq!((&new["handoff"], &new["number"]), (&json!(handoff), &json!(2)), "{why}");
        let id = |data: &Value| data["attempt"].as_str().expect("an id").to_owned();
        for act in [&["renew"][..], &["release"], &["fail", "--reason", "crash"]] {
            let line = [&["handoff"], act, &["--nonce", &old_packet.nonce]].concat();
            let error = refused(&project, &line, 3, "lease_lost");
            names(&error["cause"], &[&id(&new), "number 2"]);
        }
        let answer = old_packet.verdict("accept");
        let error = recorded(&project, &["handoff", "complete"], answer.as_bytes(), 3, "lease_lost");
        let value = error["details"]["value"].as_str().expect("a hash");
        names(&error["fix"], &[value]);
        let blob = project.read(&format!(".novelforge/blobs/{}/{value}", &value[..2]));
        assert!(blob.contains("\"verdict\":\"accept\""), "{why}: nothing is lost: {blob}");
        assert_eq!(shown(&project, &id(&old), "/state"), "superseded", "{why}");
        assert_eq!(shown(&project, &id(&new), "/state"), "active", "{why}: the new one is unaffected");
        done(&project, &["handoff", "renew", "--nonce", &new_packet.nonce]);
        let bound = done_with(&project, &["handoff", "complete"], new_packet.verdict("accept").as_bytes());
        assert_eq!(bound["attempt"], new["attempt"], "{why}");
        let consumed = done(&project, &["consume", "--as", "ci/gate", "--session", &session]);
        assert_eq!(consumed["source"], bound["result"], "{why}: nothing of the old one is applied");
        assert_sound(&project);
    }
}

/// One command of a history: when it was asked and answered, and what.
struct Told {
    asked: Instant,
    answered: Instant,
    document: Value,
}

impl Told {
    /// The record that it wrote.
    fn seq(&self) -> Option<u64> {
        let record = [&self.document["record"], &self.document["error"]["details"]["record"]];
        record.into_iter().find_map(|record| record["seq"].as_u64())
    }
}

/// One worker that claims, holds, answers, gives back, and answers too late.
fn works(project: &Project, worker: usize, seed: u64, told: &Mutex<Vec<Told>>) {
    let mut random = Random::of(seed);
    let mut held: Option<Packet> = None;
    let run = |line: &[&str]| {
        let asked = Instant::now();
        let line = [line, &["--json", "--lock-timeout", "60s"]].concat();
        let ran: Ran = project.command(&line).output().expect("nf runs").into();
        let document = ran.json();
        told.lock().expect("told").push(Told { asked, answered: Instant::now(), document: document.clone() });
        document
    };
    for number in 0..count("NF_TEST_COMMANDS", 40) {
        let Some(packet) = held.clone() else {
            let name = format!("w{worker}");
            let claimed = run(&["handoff", "claim", "--class", CLASS, "--worker", &name]);
            held = claimed["data"]["packet"].as_str().map(Packet::read);
            continue;
        };
        let file = format!("answer-{worker}-{number}.json");
        project.write(&file, packet.verdict("reject"));
        match random.below(8) {
            0..=1 => drop(run(&["handoff", "renew", "--nonce", &packet.nonce])),
            2..=6 => {
                run(&["handoff", "release", "--nonce", &packet.nonce]);
                if random.below(2) == 0 {
                    run(&["handoff", "complete", &file]);
                }
                held = None;
            }
            _ => {
                run(&["handoff", "complete", &file]);
                held = None;
            }
        }
    }
}

/// A handoff as the log has it so far: where it stands in the order of claims, how often it was claimed, and
/// the attempt that holds it.
#[derive(Clone)]
struct Replayed {
    place: (i64, usize),
    number: u64,
    holder: Option<String>,
    over: bool,
}

/// The log in order, as one worker after another would have made it; gives how many could be claimed after
/// each record.
fn replay(project: &Project, handoffs: &[(String, i64)], told: &BTreeMap<u64, &Value>) -> Vec<usize> {
    let place = |(at, (id, priority)): (usize, &(String, i64))| {
        let begun = Replayed { place: (-priority, at), number: 0, holder: None, over: false };
        (id.clone(), begun)
    };
    let mut queue: BTreeMap<String, Replayed> = handoffs.iter().enumerate().map(place).collect();
    let free = |one: &Replayed| one.holder.is_none() && !one.over;
    let mut left = Vec::new();
    for record in records(project) {
        let document = told.get(&record["seq"].as_u64().expect("a number"));
        for event in record["events"].as_array().expect("events") {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match event["type"].as_str().expect("a type") {
                "handoff.claimed" => {
                    let (attempt, handoff) =
                        (text(&event["attempt"]["id"]), text(&event["attempt"]["handoff"]));
                    let best = queue.iter().filter(|(_, one)| free(one)).min_by_key(|(_, one)| one.place);
                    assert_eq!(best.map(|(id, _)| id), Some(&handoff), "the first in the queue: {record}");
                    let one = queue.get_mut(&handoff).expect("a known one");
                    (one.number, one.holder) = (one.number + 1, Some(attempt.clone()));
                    let said = &document.expect("an answer")["data"];
                    let want = (json!(handoff), json!(attempt), json!(one.number));
                    assert_eq!(
                        (&said["handoff"], &said["attempt"], &said["number"]),
                        (&want.0, &want.1, &want.2)
                    );
                }
                "attempt.ended" | "lease.renewed" | "handoff.completed" => {
                    let attempt = text(&event["attempt"]);
                    let held = queue.values_mut().find(|one| one.holder.as_ref() == Some(&attempt));
                    let one = held.unwrap_or_else(|| panic!("{attempt} holds nothing: {record}"));
                    if event["type"] != "lease.renewed" {
                        (one.holder, one.over) = (None, event["type"] == "handoff.completed");
                    }
                    assert_eq!(document.expect("an answer")["data"]["attempt"], event["attempt"]);
                }
                "conflict.refused" => {
                    let attempt = text(&event["attempt"]);
                    assert!(queue.values().all(|one| one.holder.as_ref() != Some(&attempt)), "{record}");
                    assert_eq!(document.expect("an answer")["error"]["kind"], "lease_lost");
                }
                _ => {}
            }
        }
        left.push(queue.values().filter(|one| free(one)).count());
    }
    left
}

#[test]
fn a_history_of_many_workers_is_what_the_log_in_its_order_gives() {
    let random = &mut Random::new();
    let project = Project::new();
    let handoff = |at: usize| {
        let priority = (at % 3).to_string();
        let more = ["--priority", priority.as_str(), "--max-attempts", "1000"];
        (queued(&project, &format!("novel/q{at}"), &more).2, at as i64 % 3)
    };
    let handoffs: Vec<(String, i64)> = (0..12).map(handoff).collect();
    let begun = records(&project).len() as u64;
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let (project, told, seed) = (&project, &told, random.next());
            scope.spawn(move || works(project, worker, seed, told));
        }
    });
    let told = told.into_inner().expect("told");
    let by_seq: BTreeMap<u64, &Value> =
        told.iter().filter_map(|told| Some((told.seq()?, &told.document))).collect();
    assert_eq!(by_seq.len() as u64, records(&project).len() as u64 - begun, "each record has one answer");
    let left = replay(&project, &handoffs, &by_seq);
    for one in &told {
        let before = told.iter().filter(|other| other.answered < one.asked).filter_map(Told::seq).max();
        let after = told.iter().filter(|other| other.asked > one.answered).filter_map(Told::seq).min();
        let (from, to) = (before.unwrap_or(begun), after.unwrap_or(left.len() as u64 + 1) - 1);
        match one.seq() {
            Some(seq) => assert!(from < seq && seq <= to, "record {seq} is not between {from} and {to}"),
            None => {
                assert_eq!(one.document["error"]["kind"], "pending", "{}", one.document);
                let moments = &left[from as usize - 1..to as usize];
                assert!(moments.contains(&0), "there was work all the time from {from} to {to}: {moments:?}");
            }
        }
    }
    assert!(told.iter().filter(|one| one.seq().is_some()).count() > 60, "too little happened");
    assert_sound(&project);
}
