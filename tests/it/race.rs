//! Many processes at once on one store. All are started while the test holds the store's lock, so that
//! they pile up on it. `NF_TEST_ROUNDS` (1) repeats each race.

use serde_json::Value;

use crate::faults::tools::{acknowledged, assert_kept, assert_sound, at_once, count, events, kind, words};
use crate::harness::{Packet, Project, Ran};

const PROCESSES: usize = 64;

fn rounds() -> u64 {
    count("NF_TEST_ROUNDS", 1)
}

/// How many ended with an exit code.
fn with_code(ran: &[Ran], code: i32) -> usize {
    ran.iter().filter(|ran| ran.code == code).count()
}

/// The values of a member of the data that the successful ones gave.
fn answers(ran: &[Ran], member: &str) -> Vec<Value> {
    ran.iter().filter(|ran| ran.code == 0).map(|ran| ran.json()["data"][member].clone()).collect()
}

fn distinct(mut values: Vec<Value>) -> Vec<String> {
    let mut texts: Vec<String> = values.drain(..).map(|value| value.to_string()).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// The same command many times.
fn same(line: &str) -> Vec<Vec<String>> {
    vec![words(line); PROCESSES]
}

#[track_caller]
fn sound_with(project: &Project, ran: &[Ran]) {
    let known: Vec<_> = ran.iter().filter_map(acknowledged).collect();
    assert_kept(project, &known);
    assert_sound(project);
}

/// A session with a question of its own that is answered and not yet consumed; gives its session.
fn answered(project: &Project, number: usize) -> String {
    let job = project.read("job.yaml").replace("novel/pride/ch01", &format!("novel/pride/q{number}"));
    let file = format!("job-{number}.yaml");
    project.write(&file, job);
    let session = project.start();
    project.nf(&["freeze", &file, "--session", &session]).expect(0);
    let packet = Packet::read(&project.nf(&["packet", "--session", &session]).expect(0).stdout);
    project.nf_with(&["reply", "-"], packet.verdict("reject").as_bytes()).expect(0);
    session
}

#[test]
fn writers_of_every_kind_at_once_lose_nothing_and_leave_no_gap() {
    for _ in 0..rounds() {
        let project = Project::new();
        let sessions: Vec<String> = (0..6).map(|number| answered(&project, number)).collect();
        let mut commands = Vec::new();
        for number in 0..24 {
            commands.push(words(&format!("start --resource novel/r{number} --task review")));
            let job = project.read("job.yaml").replace("novel/pride/ch01", &format!("novel/pride/f{number}"));
            project.write(&format!("f{number}.yaml"), job);
            commands.push(words(&format!("freeze f{number}.yaml --session {}", sessions[number % 6])));
            let of = &sessions[number % 6];
            let consumer = if number < 6 { "first".to_owned() } else { format!("other/{}", number % 3) };
            commands.push(words(&format!("consume --session {of} --as {consumer}")));
        }
        commands.truncate(PROCESSES + 8);
        let before = events(&project, "session.created").len();
        let ran = at_once(&project, &commands);
        assert_eq!(with_code(&ran, 0), commands.len(), "{ran:#?}");
        assert_eq!(events(&project, "session.created").len(), before + 24);
        sound_with(&project, &ran);
        for ran in ran.iter().filter(|ran| ran.json()["schema"] == "nf.start/1") {
            let id = ran.json()["data"]["session"].as_str().expect("an id").to_owned();
            project.nf(&["show", &id]).expect(0);
        }
    }
}

#[test]
fn of_equal_consumes_exactly_one_is_new() {
    for _ in 0..rounds() {
        let project = Project::new();
        let session = answered(&project, 0);
        let ran = at_once(&project, &same(&format!("consume --session {session} --as gate/one")));
        let said = answers(&ran, "application");
        assert_eq!(said.iter().filter(|word| **word == "new").count(), 1, "{said:?}");
        assert_eq!(said.iter().filter(|word| **word == "already").count(), PROCESSES - 1, "{said:?}");
        assert_eq!(events(&project, "receipt.recorded").len(), 1);
        sound_with(&project, &ran);
    }
}

#[test]
fn a_question_answered_under_two_handoffs_has_one_winner() {
    let mut project = Project::testing("2026-01-01T00:00:00Z");
    project.set("NF_BOOT", "machine/boot/namespace/1000");
    let first = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &first]).expect(0);
    let early = Packet::read(&project.nf(&["packet", "--session", &first]).expect(0).stdout);
    // The first one's lease is long over when the second asks; its answer comes late, with the second's.
    project.set("NF_NOW", "2026-02-01T00:00:00Z");
    project.set("NF_BOOT", "machine/boot/namespace/2678401000");
    let second = project.start();
    project.nf(&["freeze", "job.yaml", "--session", &second]).expect(0);
    let late = Packet::read(&project.nf(&["packet", "--session", &second]).expect(0).stdout);
    assert_ne!(early.handoff, late.handoff);
    project.write("early.json", early.verdict("reject"));
    project.write("late.json", late.verdict("accept"));
    let replies: Vec<_> = (0..PROCESSES)
        .map(|n| words(if n % 2 == 0 { "reply early.json" } else { "reply late.json" }))
        .collect();
    let ran = at_once(&project, &replies);
    let winners = distinct(answers(&ran, "result"));
    assert_eq!(winners.len(), 1, "{ran:#?}");
    let lost: Vec<String> = ran.iter().filter(|ran| ran.code != 0).map(kind).collect();
    assert!(
        lost.iter()
            .all(|kind| ["surplus", "lease_lost", "already_judged", "contested"].contains(&kind.as_str())),
        "{lost:?}"
    );
    assert_eq!(lost.len(), PROCESSES / 2, "{ran:#?}");

    let mut consumes = Vec::new();
    for number in 0..PROCESSES {
        let session = if number % 2 == 0 { &first } else { &second };
        let result = winners[0].trim_matches('"');
        consumes.push(words(&format!(
            "consume {result} --as gate/both --session {session} --contested both-looked-at"
        )));
    }
    let ran = at_once(&project, &consumes);
    let new = answers(&ran, "application").iter().filter(|word| **word == "new").count();
    assert_eq!(new, 1, "{ran:#?}");
    assert_eq!(events(&project, "receipt.recorded").len(), 1);
    sound_with(&project, &ran);
}

#[test]
fn equal_replies_store_one_result() {
    for _ in 0..rounds() {
        let project = Project::new();
        let packet = project.ask();
        project.write("answer.json", packet.verdict("reject"));
        let ran = at_once(&project, &same("reply answer.json"));
        assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
        assert_eq!(distinct(answers(&ran, "result")).len(), 1);
        assert_eq!(events(&project, "result.stored").len(), 1);
        sound_with(&project, &ran);
    }
}

#[test]
fn different_replies_of_one_attempt_store_one_result_and_conflict_with_the_others() {
    let project = Project::new();
    let packet = project.ask();
    for number in 0..PROCESSES {
        let output =
            serde_json::json!({"verdict": "reject", "evidence": [format!("e{number}")], "confidence": 0.5});
        project.write(&format!("answer-{number}.json"), packet.answer(&output));
    }
    let commands: Vec<_> = (0..PROCESSES).map(|n| words(&format!("reply answer-{n}.json"))).collect();
    let ran = at_once(&project, &commands);
    assert_eq!(with_code(&ran, 0), 1, "{ran:#?}");
    assert_eq!(with_code(&ran, 4), PROCESSES - 1, "{ran:#?}");
    assert_eq!(events(&project, "result.stored").len(), 1);
    sound_with(&project, &ran);
}

#[test]
fn of_equal_events_at_once_one_is_recorded_and_the_others_are_duplicates() {
    for _ in 0..rounds() {
        let project = Project::new();
        let ran = at_once(&project, &same("event put ci.observed --key build/1 --payload {\"green\":true}"));
        assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
        let said = answers(&ran, "delivery");
        assert_eq!(said.iter().filter(|word| **word == "new").count(), 1, "{said:?}");
        assert_eq!(distinct(answers(&ran, "event")).len(), 1);
        assert_eq!(events(&project, "event.received").len(), 1);
        assert_eq!(events(&project, "conflict.refused").len(), 0);
        sound_with(&project, &ran);
    }
}

#[test]
fn of_different_events_at_once_under_one_key_one_is_recorded_and_the_others_are_refused() {
    let project = Project::new();
    let commands: Vec<_> = (0..PROCESSES)
        .map(|n| words(&format!("event put ci.observed --key build/1 --payload {{\"number\":{n}}}")))
        .collect();
    let ran = at_once(&project, &commands);
    assert_eq!(with_code(&ran, 0), 1, "{ran:#?}");
    let lost: Vec<&Ran> = ran.iter().filter(|ran| ran.code != 0).collect();
    assert!(lost.iter().all(|ran| ran.code == 4 && kind(ran) == "event_conflict"), "{lost:#?}");
    let pointers = lost.iter().map(|ran| ran.json()["error"]["details"]["pointers"].clone()).collect();
    assert_eq!(distinct(pointers), [r#"["/payload/number"]"#]);
    assert_eq!(events(&project, "event.received").len(), 1);
    assert_eq!(events(&project, "conflict.refused").len(), PROCESSES - 1);
    sound_with(&project, &ran);
}

#[test]
fn an_event_that_many_consume_at_once_is_applied_once_for_each_name() {
    let project = Project::new();
    let session = project.start();
    let event = project.nf(&["event", "put", "acceptance.observed", "--key", "mail/1"]).expect(0).line();
    let commands: Vec<_> = (0..PROCESSES)
        .map(|n| words(&format!("consume {event} --as desk/{} --session {session}", n % 2)))
        .collect();
    let ran = at_once(&project, &commands);
    assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
    assert_eq!(answers(&ran, "application").iter().filter(|word| **word == "new").count(), 2);
    assert_eq!(distinct(answers(&ran, "receipt")).len(), 2);
    sound_with(&project, &ran);
}

#[test]
fn packets_of_one_job_from_many_sessions_open_one_attempt() {
    for _ in 0..rounds() {
        let project = Project::new();
        let ran = at_once(&project, &same("start --resource novel/pride --task review"));
        assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
        let sessions: Vec<String> =
            answers(&ran, "session").iter().filter_map(|id| Some(id.as_str()?.to_owned())).collect();
        let freezes: Vec<_> =
            sessions.iter().map(|id| words(&format!("freeze job.yaml --session {id}"))).collect();
        let ran = at_once(&project, &freezes);
        assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
        assert_eq!(distinct(answers(&ran, "job")).len(), 1);
        let packets: Vec<_> = sessions.iter().map(|id| words(&format!("packet --session {id}"))).collect();
        let ran = at_once(&project, &packets);
        assert_eq!(with_code(&ran, 0), 1, "{ran:#?}");
        let others: Vec<&Ran> = ran.iter().filter(|ran| ran.code != 0).collect();
        assert!(others.iter().all(|ran| ran.code == 8 && kind(ran) == "under_review"), "{others:#?}");
        assert_eq!(events(&project, "handoff.claimed").len(), 1);
        sound_with(&project, &ran);
    }
}

#[test]
fn one_operation_key_is_one_record_however_many_send_it() {
    for _ in 0..rounds() {
        let project = Project::new();
        let ran = at_once(&project, &same("start --resource novel/pride --task review --op once"));
        assert_eq!(with_code(&ran, 0), PROCESSES, "{ran:#?}");
        assert_eq!(distinct(answers(&ran, "session")).len(), 1);
        assert_eq!(events(&project, "session.created").len(), 1);
        assert_eq!(ran.iter().filter_map(acknowledged).map(|(seq, _)| seq).min(), Some(2));
        assert_eq!(ran.iter().filter_map(acknowledged).map(|(seq, _)| seq).max(), Some(2));
        let other =
            project.nf(&["start", "--resource", "novel/other", "--task", "review", "--op", "once", "--json"]);
        assert_eq!((other.code, kind(&other).as_str()), (4, "op_conflict"));
        sound_with(&project, &ran);
    }
}
