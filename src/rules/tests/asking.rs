//! Asking: packets, leases and no reviewer shopping.

use super::*;
use crate::model::handoff::{AttemptState, Handoff, HandoffState};
use crate::model::job::Grade;
use crate::model::run::GateStatus;
use crate::model::session::Status;
use crate::rules::lease::{MAX_INVALID, RELAY_MAX_ATTEMPTS, RELAY_TTL_MS};
use crate::rules::session::{Before, finish, move_to, start_from};

#[test]
fn a_packet_opens_claims_and_waits_in_one_batch() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    assert_eq!(
        world.words(),
        [
            "handoff.opened",
            "session.created",
            "session.moved",
            "handoff.claimed",
            "gate.moved",
            "session.moved",
            "run.waited",
            "checkpoint.saved",
        ]
    );
    assert_eq!(sent.status, Status::AwaitingUser);
    let run = world.run(&session);
    assert_eq!(run.pending.gates[&sent.gate].status, GateStatus::Pending);
    assert!(run.pending.handoffs.contains(&sent.handoff));
    let again = world.packet(&session, &job, Transport::Chat).unwrap();
    assert!(again.again && world.last.is_empty());
    assert_eq!(again.attempt, sent.attempt);
}

#[test]
fn an_agent_is_external_and_a_person_is_the_user() {
    for (transport, status) in [
        (Transport::Chat, Status::AwaitingUser),
        (Transport::Human, Status::AwaitingUser),
        (Transport::Agent, Status::AwaitingExternal),
    ] {
        let mut world = World::new();
        let session = world.start();
        let job = world.freeze(&session, JOB, "text\n");
        assert_eq!(world.packet(&session, &job, transport).unwrap().status, status);
    }
}

#[test]
fn another_form_of_an_open_packet_would_be_a_second_reviewer() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    world.packet(&session, &job, Transport::Chat).unwrap();
    assert_eq!(kind(world.packet(&session, &job, Transport::Human)), Kind::UnderReview);
    assert_eq!(kind(world.packet_for(&session, &job, Transport::Chat, Some(name("other")))), Kind::Usage);
}

#[test]
fn a_question_that_is_out_elsewhere_waits() {
    let mut world = World::new();
    let (one, two) = (world.start(), world.start());
    let job = world.freeze(&one, JOB, "text\n");
    world.packet(&one, &job, Transport::Chat).unwrap();
    assert_eq!(kind(world.packet(&two, &job, Transport::Chat)), Kind::UnderReview);
    world.pass(RELAY_TTL_MS);
    assert!(world.packet(&two, &job, Transport::Chat).is_ok(), "an expired lease protects nobody");
}

#[test]
fn an_expired_attempt_is_overtaken_and_a_lost_packet_too() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let first = world.packet(&session, &job, Transport::Chat).unwrap();
    let answer = world.answer(&first, "accept");
    world.pass(RELAY_TTL_MS);
    let second = world.packet(&session, &job, Transport::Chat).unwrap();
    assert_eq!(world.attempt(&first).state, AttemptState::Superseded);
    assert_eq!((&second.handoff, world.attempt(&second).number), (&first.handoff, 2));
    let worker = world.get_session(&world.attempt(&first).worker_session);
    assert_eq!(worker.status, Status::Terminated);
    assert_eq!(kind(world.reply(&answer)), Kind::LeaseLost);
    assert_eq!(world.words(), ["reply.received", "conflict.refused"]);
    world.packets.clear();
    let third = world.packet(&session, &job, Transport::Chat).unwrap();
    assert_eq!(world.attempt(&second).state, AttemptState::Superseded);
    assert_eq!(world.attempt(&third).number, 3);
}

#[test]
fn a_judged_question_is_asked_no_more_whatever_the_verdict() {
    for verdict in ["accept", "reject"] {
        let mut world = World::new();
        let session = world.start();
        let job = world.freeze(&session, JOB, "text\n");
        let sent = world.packet(&session, &job, Transport::Chat).unwrap();
        let answer = world.answer(&sent, verdict);
        world.reply(&answer).unwrap();
        assert_eq!(kind(world.packet(&session, &job, Transport::Chat)), Kind::AlreadyJudged);
        let other = world.start();
        assert_eq!(kind(world.packet(&other, &job, Transport::Human)), Kind::AlreadyJudged);
    }
}

#[test]
fn a_weak_answer_closes_no_stronger_question() {
    let mut world = World::new();
    let session = world.start();
    let weak =
        world.freeze(&session, &JOB.replace("\"independent\": true", "\"independent\": false"), "text\n");
    let strong = world.freeze(&session, JOB, "text\n");
    assert_eq!(weak.fingerprint, strong.fingerprint);
    assert_ne!(weak.id, strong.id);
    let sent = world.packet(&session, &weak, Transport::Chat).unwrap();
    let mut answer = world.answer(&sent, "accept");
    answer["worker"] = json!({"provider": "p", "model": "m"});
    world.reply(&answer).unwrap();
    let mut history = world.state.history(&weak.fingerprint);
    history.answers[0].grade = Grade::None;
    assert!(history.closing(Some(&strong.execution)).is_none());
    assert!(history.closing(Some(&weak.execution)).is_some());
}

#[test]
fn attempts_of_a_question_are_counted_over_all_its_handoffs() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    for number in 1..=RELAY_MAX_ATTEMPTS {
        let sent = world.packet(&session, &job, Transport::Chat).unwrap();
        let mut answer = world.answer(&sent, "accept");
        answer["status"] = json!("cannot_judge");
        answer.as_object_mut().unwrap().remove("output");
        answer["reason"] = json!("the end is missing");
        assert_eq!(kind(world.reply(&answer)), Kind::ExecutionFailed, "attempt {number}");
        let handoff: Handoff = world.state.get(&sent.handoff).unwrap();
        let last = number == RELAY_MAX_ATTEMPTS;
        assert_eq!(handoff.state, if last { HandoffState::Exhausted } else { HandoffState::Queued });
    }
    assert_eq!(kind(world.packet(&session, &job, Transport::Chat)), Kind::Exhausted);
    let other = world.start();
    assert_eq!(kind(world.packet(&other, &job, Transport::Chat)), Kind::Exhausted);
    assert_eq!(world.state.history(&job.fingerprint).cannot_judge, RELAY_MAX_ATTEMPTS);
}

#[test]
fn five_invalid_replies_end_the_attempt() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let mut bad = world.answer(&sent, "accept");
    bad["output"].as_object_mut().unwrap().remove("evidence");
    for number in 1..=MAX_INVALID {
        assert_eq!(kind(world.reply(&bad)), Kind::SemanticInvalid);
        let state = world.attempt(&sent).state;
        assert_eq!(state, if number < MAX_INVALID { AttemptState::Active } else { AttemptState::Failed });
    }
    assert_eq!(kind(world.reply(&bad)), Kind::LeaseLost);
    assert_eq!(world.state.history(&job.fingerprint).invalid, MAX_INVALID);
    let next = world.packet(&session, &job, Transport::Chat).unwrap();
    assert_eq!(world.attempt(&next).number, 2);
}

#[test]
fn a_session_that_neither_runs_nor_waits_sends_nothing_and_is_told_the_way() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let course = world.course(&session);
    world.act(|_, _| finish(course, false, None)).unwrap();
    let refused = world.packet(&session, &job, Transport::Chat).unwrap_err();
    assert_eq!(refused.kind, Kind::IllegalTransition);
    assert!(refused.next_step().contains("nf resume"), "{}", refused.next_step());
}

#[test]
fn terms_that_exclude_a_transport_refuse_it_before_any_work() {
    for (terms, transport) in [
        (r#"{"families": ["human"]}"#, Transport::Chat),
        (r#"{"families": ["peer_chat"]}"#, Transport::Human),
        (r#"{"interactive": false}"#, Transport::Chat),
        (r#"{"interactive": false}"#, Transport::Human),
        (r#"{"min_grade": "attested"}"#, Transport::Agent),
    ] {
        let mut world = World::new();
        let session = world.start();
        let job = world.freeze(&session, &JOB.replace(r#"{"independent": true}"#, terms), "text\n");
        assert_eq!(kind(world.packet(&session, &job, transport)), Kind::ExecutionUnavailable, "{terms}");
        assert!(world.state.outstanding(&session).is_empty());
    }
}

#[test]
fn leaving_a_session_behind_cancels_what_is_out() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let answer = world.answer(&sent, "accept");
    let before = |world: &World| Before {
        session: world.get_session(&session),
        run: Some(world.run(&session)),
        cursor: None,
        outstanding: world.state.outstanding(&session),
    };
    let early = before(&world);
    let refused = world.act(|turn, _| start_from(turn, early, Bindings::default()));
    assert_eq!(kind(refused), Kind::IllegalTransition);
    let course = world.course(&session);
    world.act(|turn, _| move_to(turn, course, Status::Stale, None, Bindings::default())).unwrap();
    let late = before(&world);
    let next = world.act(|turn, _| start_from(turn, late, Bindings::default())).unwrap();
    assert_eq!(next.parent, Some(session.clone()));
    assert_eq!(world.attempt(&sent).state, AttemptState::Revoked);
    assert_eq!(kind(world.reply(&answer)), Kind::HandoffCancelled);
    assert!(
        world.packet(&next.session, &job, Transport::Chat).is_ok(),
        "the question may be asked openly again"
    );
}
