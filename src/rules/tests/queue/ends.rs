//! How claimed work ends: late, failed, given or taken back, answered elsewhere, or never.

use super::*;
use crate::rules::session::move_to;

#[test]
fn an_owner_goes_on_after_its_time_while_nobody_has_claimed() {
    let mut world = World::new();
    world.queued("text\n", terms());
    let (claimed, secret) = world.claim(&wish()).unwrap();
    world.pass(TTL);
    assert!(!world.renew(&claimed.attempt).unwrap().again);
    assert_eq!(world.words(), ["lease.revived"]);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending, "a revived lease protects again");
    world.renew(&claimed.attempt).unwrap();
    assert_eq!(world.words(), ["lease.renewed"]);
    world.pass(TTL);
    let better = world.queued("better\n", Terms { priority: 9, ..terms() });
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, better.handoff);
    assert_eq!(world.words()[0], "lease.expired", "a claim of other work saw it run out");
    assert!(world.complete(&claimed, &secret, "accept").is_ok());
    assert_eq!(world.words()[0], "lease.revived");
}

#[test]
fn the_last_attempt_may_still_answer_after_the_handoff_is_exhausted() {
    let mut world = World::new();
    let queued = world.queued("text\n", Terms { max_attempts: 1, ..terms() });
    let (claimed, secret) = world.claim(&wish()).unwrap();
    world.pass(TTL);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    assert_eq!(world.words(), ["lease.expired", "handoff.exhausted"]);
    assert_eq!(world.handoff(&queued.handoff).state, HandoffState::Exhausted);
    assert!(world.state.outstanding(&queued.session).is_empty());
    let held = world.renew(&claimed.attempt).unwrap();
    assert_eq!(held.handoff_state, HandoffState::Claimed);
    assert_eq!(world.handoff(&queued.handoff).state, HandoffState::Claimed);
    assert_eq!(world.state.outstanding(&queued.session).len(), 1);
    world.pass(TTL);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    assert!(world.complete(&claimed, &secret, "reject").is_ok());
    assert_eq!(world.handoff(&queued.handoff).state, HandoffState::Completed);
    assert!(world.state.outstanding(&queued.session).is_empty());
}

#[test]
fn failures_pause_the_work_longer_and_longer_and_then_exhaust_it() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let before = world.now.wall;
    let (first, _) = world.claim(&wish()).unwrap();
    let held = world.fail(&first.attempt, true, None).unwrap();
    assert_eq!(held.ready_at, Some(before.plus_millis(30_000)));
    assert!(world.fail(&first.attempt, true, None).unwrap().again, "the same failure again is the same");
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    world.pass(30_000);
    let (second, _) = world.claim(&wish()).unwrap();
    assert_eq!(second.number, 2);
    let from = world.now.wall;
    assert_eq!(world.fail(&second.attempt, true, None).unwrap().ready_at, Some(from.plus_millis(MINUTE)));
    world.pass(MINUTE);
    let (third, _) = world.claim(&wish()).unwrap();
    let held = world.fail(&third.attempt, true, None).unwrap();
    assert_eq!((held.handoff_state, held.ready_at), (HandoffState::Exhausted, None));
    let named = Wish { handoff: Some(world.handoff(&queued.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::Exhausted);
    let history = world.state.history(world.handoff(&queued.handoff).question());
    assert_eq!((history.opened, history.verdicts.len()), (3, 0), "a failure is never a verdict");
}

#[test]
fn a_worker_says_how_long_to_wait_or_that_nothing_helps() {
    let mut world = World::new();
    world.queued("text\n", terms());
    let (claimed, _) = world.claim(&wish()).unwrap();
    let from = world.now.wall;
    let held = world.fail(&claimed.attempt, true, Some(7_000)).unwrap();
    assert_eq!(held.ready_at, Some(from.plus_millis(7_000)));
    world.pass(7_000);
    let (claimed, _) = world.claim(&wish()).unwrap();
    assert_eq!(world.fail(&claimed.attempt, false, None).unwrap().handoff_state, HandoffState::Exhausted);
}

#[test]
fn an_answer_that_does_not_bind_fails_a_worker_at_once_and_not_the_question() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let (claimed, secret) = world.claim(&wish()).unwrap();
    assert_eq!(kind(world.complete(&claimed, &secret, "perhaps")), Kind::SemanticInvalid);
    assert_eq!(world.words(), ["reply.received", "attempt.ended", "session.moved", "handoff.queued"]);
    assert_eq!(world.handoff(&queued.handoff).state, HandoffState::Queued);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    world.pass(30_000);
    assert!(world.claim(&wish()).is_ok());
}

#[test]
fn what_is_given_or_taken_back_can_be_claimed_at_once() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let (first, first_secret) = world.claim(&wish()).unwrap();
    world.release(&first.attempt).unwrap();
    assert!(world.release(&first.attempt).unwrap().again && world.last.is_empty());
    assert_eq!(kind(world.complete(&first, &first_secret, "accept")), Kind::LeaseLost);
    let (second, second_secret) = world.claim(&wish()).unwrap();
    let taken = world.take_back(&queued.handoff, handoff::revoke).unwrap();
    assert_eq!(taken.attempt, Some(second.attempt.clone()));
    assert_eq!(kind(world.take_back(&queued.handoff, handoff::revoke)), Kind::LeaseLost);
    assert_eq!(kind(world.complete(&second, &second_secret, "accept")), Kind::LeaseLost);
    let (third, _) = world.claim(&wish()).unwrap();
    assert_eq!(third.number, 3);
    assert_eq!(world.release(&third.attempt).unwrap().handoff_state, HandoffState::Exhausted);
    let history = world.state.history(world.handoff(&queued.handoff).question());
    assert_eq!((history.opened, history.released, history.cancelled), (3, 2, 1));
}

#[test]
fn only_the_source_takes_a_handoff_back_and_then_for_good() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let (claimed, secret) = world.claim(&wish()).unwrap();
    let stranger = world.start();
    let handoff = world.handoff(&queued.handoff);
    let session = world.get_session(&stranger);
    assert_eq!(kind(world.act(|turn, _| handoff::cancel(turn, &session, &handoff))), Kind::Usage);
    assert_eq!(kind(world.act(|turn, _| handoff::revoke(turn, &session, &handoff))), Kind::Usage);
    let taken = world.take_back(&queued.handoff, handoff::cancel).unwrap();
    assert_eq!((taken.attempt, taken.again), (Some(claimed.attempt.clone()), false));
    assert!(world.take_back(&queued.handoff, handoff::cancel).unwrap().again && world.last.is_empty());
    assert_eq!(kind(world.complete(&claimed, &secret, "accept")), Kind::HandoffCancelled);
    assert_eq!(kind(world.renew(&claimed.attempt)), Kind::HandoffCancelled);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    let other = world.queued("other\n", terms());
    let (claimed, secret) = world.claim(&wish()).unwrap();
    world.complete(&claimed, &secret, "accept").unwrap();
    assert_eq!(kind(world.take_back(&other.handoff, handoff::cancel)), Kind::AlreadyJudged);
}

#[test]
fn a_question_is_out_once_at_a_time_and_never_again_once_answered() {
    let mut world = World::new();
    let (one, two) = (world.start(), world.start());
    let job = world.freeze(&one, JOB, "text\n");
    world.freeze(&two, JOB, "text\n");
    let first = world.open(&one, &job, terms(), false).unwrap();
    world.pass(1);
    let second = world.open(&two, &job, terms(), false).unwrap();
    let (claimed, _) = world.claim(&wish()).unwrap();
    assert_eq!(claimed.handoff, first.handoff);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending, "the same question is out");
    let named = Wish { handoff: Some(world.handoff(&second.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::UnderReview);
    let three = world.start();
    assert_eq!(kind(world.open(&three, &job, terms(), false)), Kind::UnderReview);
    assert_eq!(kind(world.packet(&two, &job, Transport::Chat)), Kind::UnderReview);
    world.fail(&claimed.attempt, true, None).unwrap();
    let (claimed, secret) = world.claim(&wish()).unwrap();
    assert_eq!(claimed.handoff, second.handoff, "the one that pauses holds the other up no more");
    world.complete(&claimed, &secret, "reject").unwrap();
    world.pass(60 * MINUTE);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    let named = Wish { handoff: Some(world.handoff(&first.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::AlreadyJudged);
    assert_eq!(kind(world.open(&three, &job, terms(), false)), Kind::AlreadyJudged);
}

#[test]
fn attempts_are_counted_over_all_handoffs_of_a_question() {
    let mut world = World::new();
    let (one, two) = (world.start(), world.start());
    let job = world.freeze(&one, JOB, "text\n");
    world.freeze(&two, JOB, "text\n");
    world.open(&one, &job, Terms { max_attempts: 2, ..terms() }, false).unwrap();
    world.open(&two, &job, Terms { max_attempts: 2, ..terms() }, false).unwrap();
    for _ in 0..2 {
        let (claimed, _) = world.claim(&wish()).unwrap();
        world.release(&claimed.attempt).unwrap();
    }
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    let three = world.start();
    assert_eq!(kind(world.open(&three, &job, Terms { max_attempts: 2, ..terms() }, false)), Kind::Exhausted);
}

#[test]
fn a_repeated_claim_gets_a_new_nonce_for_the_same_attempt() {
    let mut world = World::new();
    world.queued("text\n", terms());
    let (claimed, lost) = world.claim(&wish()).unwrap();
    let attempt: Attempt = world.state.get(&claimed.attempt).unwrap();
    let handoff = world.handoff(&claimed.handoff);
    let mut secret = Secret::default();
    let again = world
        .act(|turn, world| {
            let (decision, kept) =
                world.asking(&handoff, |asking| claim_again(turn, &attempt, &handoff, asking))?;
            secret = kept;
            Ok(decision)
        })
        .unwrap();
    assert_eq!(world.words(), ["attempt.renonced"]);
    assert_eq!(again, claimed);
    assert_ne!(secret.nonce, lost.nonce);
    assert_eq!(kind(world.complete(&claimed, &lost, "reject")), Kind::LeaseLost);
    assert_eq!(world.words(), ["reply.received", "conflict.refused"], "what came under the old one counts");
    let (bytes, nonce) = (format!("{{\"nf\": {{\"nonce\": \"{}\"", lost.nonce), lost.nonce.clone());
    assert_eq!(kind(world.reply_bytes(bytes.as_bytes(), &nonce)), Kind::SemanticInvalid);
    let attempt: Attempt = world.state.get(&claimed.attempt).unwrap();
    assert_eq!(attempt.state, AttemptState::Active, "an answer under the old nonce fails nobody");
    assert!(world.complete(&claimed, &secret, "accept").is_ok());
}

#[test]
fn nobody_reviews_what_they_asked_themselves() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let own = Wish { session: Some(world.get_session(&queued.session)), ..wish() };
    assert_eq!(kind(world.claim(&own)), Kind::Pending);
    let named = Wish { handoff: Some(world.handoff(&queued.handoff)), ..own };
    assert_eq!(kind(world.claim(&named)), Kind::ExecutionUnavailable);
    let stranger = world.start();
    let keeps = Wish { session: Some(world.get_session(&stranger)), ..named };
    assert_eq!(kind(world.claim(&keeps)), Kind::ExecutionUnavailable, "a session that keeps memory");
    assert!(world.claim(&wish()).is_ok());
}

#[test]
fn every_expired_lease_is_reclaimed_once() {
    let mut world = World::new();
    let count = 150;
    for at in 0..count {
        world.queued(&format!("text {at}\n"), terms());
    }
    for _ in 0..count {
        world.claim(&wish()).unwrap();
    }
    world.pass(TTL);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..count {
        let (claimed, _) = world.claim(&wish()).unwrap();
        assert_eq!(claimed.number, 2);
        assert!(seen.insert(claimed.handoff), "claimed twice");
    }
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
}

#[test]
fn a_question_that_waits_in_two_classes_is_free_in_both_when_a_worker_of_one_has_left_it() {
    let mut world = World::new();
    let (one, two) = (world.start(), world.start());
    let job = world.freeze(&one, JOB, "text\n");
    world.freeze(&two, JOB, "text\n");
    world.open(&one, &job, terms(), false).unwrap();
    let other = world.open(&two, &job, Terms::of(Role::Specialist), false).unwrap();
    world.claim(&wish()).unwrap();
    let specialist = Wish { class: Role::Specialist, ..wish() };
    assert_eq!(kind(world.claim(&specialist)), Kind::Pending);
    world.pass(TTL);
    assert_eq!(world.claim(&specialist).unwrap().0.handoff, other.handoff);
    assert_eq!(world.words()[0], "lease.expired");
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
}

#[test]
fn however_many_at_the_head_do_not_fit_the_one_behind_them_is_found() {
    let mut world = World::new();
    let gate = Some(name("ci/gate"));
    for at in 0..300 {
        world.queued(&format!("text {at}\n"), Terms { priority: 9, gate: gate.clone(), ..terms() });
    }
    let behind = world.queued("behind\n", Terms { gate: gate.clone(), ..terms() });
    let job = world.handoff(&behind.handoff).job;
    let own = Wish { gate: gate.clone(), job, ..wish() };
    assert_eq!(world.claim(&own).unwrap().0.handoff, behind.handoff);
    let elsewhere = name("novel/other");
    let started: Result<crate::rules::session::Stands> = world.act(|turn, _| {
        crate::rules::session::start(turn, elsewhere.clone(), name("review"), Bindings::default())
    });
    let session = started.unwrap().session;
    let last = world.freeze(&session, JOB, "last\n");
    let last = world.open(&session, &last, Terms { gate: gate.clone(), ..terms() }, false).unwrap();
    let both = Wish { gate, resource: Some(elsewhere), ..wish() };
    assert_eq!(world.claim(&both).unwrap().0.handoff, last.handoff);
}

#[test]
fn what_was_opened_first_is_claimed_first_where_the_clock_stands_still() {
    let mut world = World::new();
    let opened: Vec<HandoffId> =
        (0..12).map(|at| world.queued(&format!("text {at}\n"), terms()).handoff).collect();
    let mut sorted = opened.clone();
    sorted.sort();
    assert_ne!(sorted, opened, "ids say nothing of the order");
    let claimed: Vec<HandoffId> = (0..12).map(|_| world.claim(&wish()).unwrap().0.handoff).collect();
    assert_eq!(claimed, opened);
}

#[test]
fn a_packet_waits_for_the_moment_of_its_handoff_as_a_claim_does() {
    let mut world = World::new();
    let from = world.now.wall.plus_millis(MINUTE);
    let queued = world.queued("text\n", Terms { not_before: Some(from), ..terms() });
    let job: Job = world.state.get(&queued.job.clone().unwrap()).unwrap();
    let early = world.packet(&queued.session, &job, Transport::Chat).unwrap_err();
    assert_eq!(early.kind, Kind::Pending);
    assert!(early.cause.unwrap().contains(&from.to_string()));
    world.pass(MINUTE);
    assert_eq!(world.packet(&queued.session, &job, Transport::Chat).unwrap().handoff, queued.handoff);
}

#[test]
fn a_session_that_is_ended_for_good_asks_nothing_any_more() {
    let mut world = World::new();
    let (one, two) = (world.queued("one\n", terms()), world.queued("two\n", terms()));
    let (held, _) = world.claim(&wish()).unwrap();
    assert_eq!(held.handoff, one.handoff);
    for queued in [&one, &two] {
        let course = Course::new(world.get_session(&queued.session), Some(world.run(&queued.session)));
        world.act(|turn, _| move_to(turn, course, Status::Terminated, None, Bindings::default())).unwrap();
        assert_eq!(world.handoff(&queued.handoff).state, HandoffState::Cancelled);
    }
    let attempt: Attempt = world.state.get(&held.attempt).unwrap();
    assert_eq!(attempt.state, AttemptState::Revoked);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
}

#[test]
fn work_of_an_ended_session_that_an_older_log_left_open_is_not_claimed() {
    let mut world = World::new();
    let queued = world.queued("one\n", terms());
    let mut course = Course::new(world.get_session(&queued.session), Some(world.run(&queued.session)));
    course.go(Status::Terminated).unwrap();
    let events = std::mem::take(&mut course.events);
    world.act(|_, _| Ok(Decision::new(events.clone(), ()))).unwrap();
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    let named = Wish { handoff: Some(world.handoff(&queued.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::HandoffCancelled);
}

#[test]
fn a_gate_that_leaves_another_question_says_so() {
    let mut world = World::new();
    let gate = Some(name("ci/gate"));
    let to_gate = || Terms { gate: gate.clone(), ..terms() };
    let session = world.start();
    let (one, two) = (world.freeze(&session, JOB, "one\n"), world.freeze(&session, JOB, "two\n"));
    let first = world.open(&session, &one, to_gate(), false).unwrap();
    assert_eq!(first.displaced, None);
    let second = world.open(&session, &two, to_gate(), false).unwrap();
    assert_eq!(second.displaced, Some(first.handoff.clone()));
    let again = world.open(&session, &two, to_gate(), false).unwrap();
    assert_eq!((again.again, again.displaced), (true, None), "said once, when it happens");
    world.take_back(&second.handoff, handoff::cancel).unwrap();
    let third = world.open(&session, &two, to_gate(), false).unwrap();
    assert_eq!(third.displaced, None, "what was taken back waits for nothing");
}

#[test]
fn the_end_of_a_session_with_very_much_out_fits_into_a_record_and_leaves_nothing_to_claim() {
    let mut world = World::new();
    let session = world.start();
    for at in 0..310 {
        let job = world.freeze(&session, JOB, &format!("text {at}\n"));
        world.open(&session, &job, terms(), false).unwrap();
    }
    let course = Course::new(world.get_session(&session), Some(world.run(&session)));
    world.act(|turn, _| move_to(turn, course, Status::Terminated, None, Bindings::default())).unwrap();
    assert_eq!(world.words().iter().filter(|word| **word == "handoff.cancelled").count(), 300);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
}
