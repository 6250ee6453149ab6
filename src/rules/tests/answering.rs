//! Answering: the thirteen checks, duplicates, conflicts, surplus and contested answers.

use super::*;
use crate::model::check::failed;
use crate::model::handoff::AttemptState;
use crate::model::result::Standing;
use crate::model::session::Status;
use crate::rules::binding::NAMES;
use crate::rules::lease::RELAY_TTL_MS;

fn asked() -> (World, SessionId, Job, Sent) {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    (world, session, job, sent)
}

#[test]
fn a_bound_answer_is_stored_checked_and_completes_its_attempt() {
    let (mut world, session, _, sent) = asked();
    let answer = world.answer(&sent, "reject");
    let bound = world.reply(&answer).unwrap();
    assert_eq!(
        world.words(),
        [
            "reply.received",
            "result.stored",
            "result.checked",
            "handoff.completed",
            "session.moved",
            "checkpoint.saved",
        ]
    );
    let names: Vec<&str> = bound.checks.iter().map(|check| check.check.as_str()).collect();
    assert_eq!(names, NAMES);
    assert_eq!(failed(&bound.checks), Vec::<String>::new());
    assert_eq!(bound.standing, Standing::Valid);
    assert_eq!(bound.verdict.route, Some(name("repair.story")));
    assert_eq!(world.attempt(&sent).state, AttemptState::Completed);
    assert_eq!(world.get_session(&session).status, Status::AwaitingUser, "a reply moves no session");
    assert!(world.packets.is_empty(), "the packet and its nonce are dropped");
}

#[test]
fn each_change_fails_its_own_check_and_no_other() {
    let set = |pointer: &'static str, value: Value| {
        move |answer: &mut Value| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = if parent.is_empty() { answer } else { answer.pointer_mut(parent).unwrap() };
            parent.as_object_mut().unwrap().insert(key.to_owned(), value.clone());
        }
    };
    let table: Vec<(&[&str], Box<dyn Fn(&mut Value)>)> = vec![
        (&["form"], Box::new(set("/extra", json!(1)))),
        (&["form"], Box::new(set("/nf/extra", json!(1)))),
        (&["form"], Box::new(set("/worker/extra", json!("x")))),
        (&["form"], Box::new(set("/status", json!("done")))),
        (&["form"], Box::new(set("/reason", json!("x".repeat(501))))),
        (&["job"], Box::new(set("/nf/job", json!("j-000000000000")))),
        (&["fingerprint"], Box::new(set("/nf/fingerprint", json!("nf1:00")))),
        (&["schema"], Box::new(set("/output/evidence", json!("one")))),
        (&["schema", "verdict"], Box::new(set("/output/verdict", json!("maybe")))),
        (&["evidence"], Box::new(set("/output/evidence", json!([])))),
        (&["evidence"], Box::new(set("/output/evidence", json!([""])))),
        (&["evidence"], Box::new(set("/output/evidence", json!(["\n", " \u{a0}"])))),
        (&["scope"], Box::new(set("/scope", json!("evaluation")))),
        (&["scope"], Box::new(set("/output/canon_write", json!(true)))),
        (&["leakage"], Box::new(set("/output/Chain_Of_Thought", json!("x")))),
        (&["leakage"], Box::new(set("/output/expected", json!("x")))),
        (&["provenance", "independence"], Box::new(set("/worker/model", json!(" ")))),
    ];
    for (wanted, change) in table {
        let (mut world, _, _, sent) = asked();
        let mut answer = world.answer(&sent, "accept");
        change(&mut answer);
        let refused = world.reply(&answer).expect_err("a refusal");
        assert_eq!(refused.kind, Kind::SemanticInvalid);
        let got = &refused.details["failed"];
        // A status that is not known says nothing of completion, so only the form can be judged.
        assert_eq!(got, &json!(wanted), "{answer}");
        assert_eq!(world.words(), ["reply.received"], "an invalid answer is counted, and never stored");
    }
}

#[test]
fn models_count_only_where_the_job_names_them() {
    for (models, ok) in [(r#"[]"#, true), (r#"["m1"]"#, true), (r#"["m2"]"#, false)] {
        let mut world = World::new();
        let session = world.start();
        let terms = format!(r#"{{"independent": true, "models": {models}}}"#);
        let job = world.freeze(&session, &JOB.replace(r#"{"independent": true}"#, &terms), "text\n");
        let sent = world.packet(&session, &job, Transport::Chat).unwrap();
        let answer = world.answer(&sent, "accept");
        assert_eq!(world.reply(&answer).is_ok(), ok, "{models}");
    }
}

#[test]
fn the_same_answer_again_is_the_same_and_another_is_a_hard_stop() {
    let (mut world, _, _, sent) = asked();
    let answer = world.answer(&sent, "reject");
    let first = world.reply(&answer).unwrap();
    let mut again = answer.clone();
    again["worker"]["model"] = json!("m2");
    let second = world.reply(&again).unwrap();
    assert!(second.duplicate && world.last.is_empty());
    assert_eq!(first.result, second.result);
    let mut other = answer.clone();
    other["output"]["verdict"] = json!("accept");
    let refused = world.reply(&other).expect_err("a refusal");
    assert_eq!(refused.kind, Kind::ResultConflict);
    assert_eq!(world.words(), ["reply.received", "conflict.refused"]);
    let kept: Hash = refused.details["value"].as_str().unwrap().parse().unwrap();
    assert!(world.blobs.contains_key(&kept), "the refused value is kept");
    assert_eq!(world.state.meta().conflicts, 1);
}

#[test]
fn a_refused_value_with_private_reasoning_is_not_kept() {
    let (mut world, _, _, sent) = asked();
    let answer = world.answer(&sent, "reject");
    world.reply(&answer).unwrap();
    let mut other = answer.clone();
    other["output"]["thinking"] = json!("secret");
    let refused = world.reply(&other).expect_err("a refusal");
    assert_eq!((refused.kind, &refused.details["value"]), (Kind::ResultConflict, &Value::Null));
}

#[test]
fn a_late_answer_revives_its_lease_while_nobody_has_claimed() {
    let (mut world, _, _, sent) = asked();
    world.pass(RELAY_TTL_MS * 2);
    let answer = world.answer(&sent, "accept");
    world.reply(&answer).unwrap();
    assert_eq!(world.words()[0], "lease.revived");
}

#[test]
fn a_second_valid_answer_of_a_question_is_surplus() {
    let (mut world, _, job, first) = asked();
    let late = world.answer(&first, "accept");
    world.pass(RELAY_TTL_MS);
    let other = world.start();
    let second = world.packet(&other, &job, Transport::Chat).unwrap();
    let answer = world.answer(&second, "reject");
    world.reply(&answer).unwrap();
    let refused = world.reply(&late).expect_err("a refusal");
    assert_eq!(refused.kind, Kind::Surplus);
    let surplus: ResultId = refused.details["result"].as_str().unwrap().parse().unwrap();
    assert_eq!(kind(world.consume(&surplus, "gate", None)), Kind::NotConsumable);
    assert_eq!(kind(world.reply(&late)), Kind::Surplus, "and it stays surplus when it is pasted again");
    assert!(world.last.is_empty());
}

#[test]
fn an_answer_that_follows_another_readable_verdict_is_contested() {
    for (first, second, standing) in [
        ("reject", "accept", Standing::Contested),
        ("reject", "reject", Standing::Valid),
        ("maybe", "accept", Standing::Valid),
    ] {
        let (mut world, _, _, sent) = asked();
        let mut invalid = world.answer(&sent, first);
        invalid["output"]["evidence"] = json!([]);
        assert_eq!(kind(world.reply(&invalid)), Kind::SemanticInvalid);
        let answer = world.answer(&sent, second);
        let bound = world.reply(&answer).unwrap();
        assert_eq!(bound.standing, standing, "{first} then {second}");
        let plain = world.consume(&bound.result, "gate", None);
        assert_eq!(plain.is_ok(), standing == Standing::Valid);
        if standing == Standing::Contested {
            assert_eq!(kind(plain), Kind::Contested);
            world.consume(&bound.result, "gate", Some("the first was cut")).unwrap();
        }
    }
}

#[test]
fn bytes_that_are_no_value_count_against_the_attempt_whose_nonce_they_carry() {
    let (mut world, _, job, sent) = asked();
    let answer = world.answer(&sent, "accept").to_string();
    let nonce = answer.split('"').find(|part| part.len() == 26).unwrap().to_owned();
    let refused = world.reply_bytes(&answer.as_bytes()[..answer.len() - 3], &nonce).expect_err("a refusal");
    assert_eq!((refused.kind, &refused.details["reason"]), (Kind::SemanticInvalid, &json!("truncated")));
    assert_eq!(world.attempt(&sent).invalid, 1);
    assert_eq!(world.state.history(&job.fingerprint).invalid, 1);
}

#[test]
fn a_person_answers_by_name() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Human).unwrap();
    let mut blank = world.answer(&sent, "accept");
    blank["worker"] = json!({"name": ""});
    assert_eq!(kind(world.reply(&blank)), Kind::SemanticInvalid);
    let answer = world.answer(&sent, "accept");
    assert_eq!(world.reply(&answer).unwrap().standing, Standing::Valid);
}
