//! Consuming: once for each consumer, never something else under the same name.

use super::*;
use crate::model::checkpoint::{BindingKind, BoundArtifact};
use crate::model::job::Polarity;
use crate::model::result::Shared;
use crate::model::run::GateStatus;
use crate::rules::checkpoint::of_places;
use crate::rules::once::{Application, earlier};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

fn answered(verdict: &str) -> (World, SessionId, Job, ResultId) {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let answer = world.answer(&sent, verdict);
    let bound = world.reply(&answer).unwrap();
    (world, session, job, bound.result)
}

#[test]
fn the_gate_moves_under_its_own_name_only() {
    for (verdict, status) in [("accept", GateStatus::Passed), ("reject", GateStatus::Rejected)] {
        let (mut world, session, _, result) = answered(verdict);
        let other = world.consume(&result, "somebody", None).unwrap();
        assert_eq!((other.application, other.gate), (Application::New, None));
        assert_eq!(world.run(&session).pending.gates[&name(GATE)].status, GateStatus::Pending);
        let own = world.consume(&result, GATE, None).unwrap();
        assert_eq!((own.gate_status, own.application), (Some(status), Application::New));
        let gate = &world.run(&session).pending.gates[&name(GATE)];
        assert_eq!(gate.status, status);
        assert_eq!(gate.route.is_some(), verdict == "reject");
    }
}

#[test]
fn the_same_name_again_writes_nothing() {
    let (mut world, _, _, result) = answered("accept");
    let first = world.consume(&result, GATE, None).unwrap();
    let again = world.consume(&result, GATE, None).unwrap();
    assert_eq!(again.application, Application::Already);
    assert_eq!(again.receipt, first.receipt);
    assert!(world.last.is_empty());
}

#[test]
fn another_result_for_the_same_question_and_consumer_is_a_hard_stop() {
    let mut world = World::new();
    let session = world.start();
    let weak =
        world.freeze(&session, &JOB.replace("\"independent\": true", "\"independent\": false"), "text\n");
    let strong = world.freeze(&session, JOB, "text\n");
    let mut results = Vec::new();
    for job in [&weak, &strong] {
        // Each is asked by itself: the weak answer would otherwise be found first.
        let sent = world.packet(&session, job, Transport::Chat);
        let Ok(sent) = sent else { continue };
        let answer = world.answer(&sent, "accept");
        results.push(world.reply(&answer).unwrap().result);
    }
    world.consume(&results[0], "gate", None).unwrap();
    let receipt = world.state.receipt_for_question(&weak.fingerprint, &name("gate")).unwrap();
    let mut evidence = world.evidence(&results[0]);
    evidence.result.id = "x-zzzzzzzzzzzz".parse().unwrap();
    let acting = (world.get_session(&session), world.run(&session));
    let input = Consume {
        evidence,
        consumer: name("gate"),
        contested: None,
        acting,
        held: None,
        held_for_question: Some(receipt),
        bindings: Bindings::default(),
    };
    let refused = world.act(|turn, _| consume(turn, input));
    assert_eq!(kind(refused), Kind::ReceiptConflict);
    assert_eq!(world.words(), ["conflict.refused"]);
}

#[test]
fn a_result_that_no_longer_binds_is_not_applied() {
    let (mut world, _, _, result) = answered("accept");
    let stored: StoredResult = world.state.get(&result).unwrap();
    let mut body: Value = serde_json::from_slice(&world.blobs[&stored.blob]).unwrap();
    body["output"]["verdict"] = json!("reject?");
    world.blobs.insert(stored.blob, canonical(&body));
    assert_eq!(kind(world.consume(&result, GATE, None)), Kind::SemanticInvalid);
    assert!(world.state.receipt_for(&result.clone().into(), &name(GATE)).is_none());
}

#[test]
fn a_receipt_carries_the_history_and_earlier_judgements() {
    let (mut world, session, first_job, first) = answered("reject");
    world.consume(&first, GATE, None).unwrap();
    let other_question = JOB.replace("Turn the page?", "Turn this page?");
    let same_text = world.freeze(&session, &other_question, "text\n");
    let repaired = world.freeze(&session, JOB, "better text\n");
    assert_ne!(first_job.fingerprint, repaired.fingerprint);
    let shares = |job: &Job| earlier(&world.state, job).iter().map(|found| found.shares).collect::<Vec<_>>();
    assert_eq!(shares(&same_text), [Shared::Artifact]);
    assert_eq!(shares(&repaired), [Shared::Subject]);
    assert!(shares(&first_job).is_empty(), "its own judgement is no earlier one");
    let sent = world.packet(&session, &repaired, Transport::Chat).unwrap();
    let answer = world.answer(&sent, "accept");
    let bound = world.reply(&answer).unwrap();
    let consumed = world.consume(&bound.result, GATE, None).unwrap();
    let receipt: crate::model::result::Receipt = world.state.get(&consumed.receipt).unwrap();
    let opened = receipt.history.map(|history| history.opened);
    assert_eq!((receipt.earlier.len(), opened, receipt.checks.len()), (1, Some(1), 13));
    assert_eq!(receipt.outcome.polarity, Polarity::Pass);
    assert_eq!(receipt.seq, world.state.meta().seq);
}

#[test]
fn after_a_reject_the_judged_text_is_for_rereading() {
    let (mut world, session, job, result) = answered("reject");
    let evidence = world.evidence(&result);
    let acting = (world.get_session(&session), world.run(&session));
    let bindings = of_places(&job.places);
    assert_eq!(bindings.artifacts[0].binding, BindingKind::Exact);
    let input = Consume {
        evidence,
        consumer: name(GATE),
        contested: None,
        acting,
        held: None,
        held_for_question: None,
        bindings,
    };
    world.act(|turn, _| consume(turn, input)).unwrap();
    let kept: Vec<BoundArtifact> = world.bindings(&world.get_session(&session)).artifacts;
    assert_eq!(kept[0].binding, BindingKind::Context);
}

#[test]
fn the_answer_to_an_earlier_question_moves_the_gate_no_more() {
    let mut world = World::new();
    let session = world.start();
    let first = world.freeze(&session, JOB, "text\n");
    let second = world.freeze(&session, JOB, "other text\n");
    let early = world.packet(&session, &first, Transport::Chat).unwrap();
    let late = world.packet(&session, &second, Transport::Chat).unwrap();
    assert_eq!(early.gate, late.gate);
    let (yes, no) = (world.answer(&early, "accept"), world.answer(&late, "reject"));
    let rejected = world.reply(&no).unwrap().result;
    world.consume(&rejected, GATE, None).unwrap();
    let accepted = world.reply(&yes).unwrap().result;
    assert_eq!(kind(world.consume(&accepted, GATE, None)), Kind::NotConsumable);
    assert_eq!(world.run(&session).pending.gates[&name(GATE)].status, GateStatus::Rejected);
    assert!(world.consume(&accepted, "somebody", None).is_ok(), "another consumer may use it");
}
