//! Events from outside: recorded once for each key, never with authority, and applied once for each consumer.

use super::*;
use crate::model::external::{EVENT_TYPES, EventArtifact, EventScope, EventSource, ExternalEvent, Payload};
use crate::model::handoff::Handoff;
use crate::model::id::{EventId, Id, IdKind};
use crate::model::job::Polarity;
use crate::model::lists::Common;
use crate::model::result::{Receipt, Source as Applied};
use crate::model::run::GateStatus;
use crate::rules::blind::{HIGH_PERMISSIONS, PRIVATE_KEYS};
use crate::rules::event::{self, Delivery, Given, MAX_DEPTH, MAX_PAYLOAD, MAX_STATED, Received};
use crate::rules::once::{self, Application};

fn given(kind: &str, payload: Value) -> Given {
    Given {
        kind: event::kind(kind).unwrap(),
        key: name("delivery/1"),
        resource: Some(name("novel/pride")),
        session: None,
        run: None,
        handoff: None,
        source: EventSource { kind: name("webhook"), actor: None, transport: None, reference: None },
        artifacts: Vec::new(),
        payload: Some(payload),
        held: None,
    }
}

impl World {
    fn carried(&self, event: &ExternalEvent) -> Option<Value> {
        match event.payload.clone()? {
            Payload::Inline(value) => Some(value),
            Payload::Blob(hash) => Some(serde_json::from_slice(&self.blobs[&hash]).unwrap()),
        }
    }

    fn put(&mut self, mut given: Given) -> Result<Received> {
        given.held = self.state.event_of_key(&given.key).map(|event| (event.clone(), self.carried(&event)));
        self.act(|turn, _| event::put(turn, given))
    }

    fn apply(&mut self, id: &EventId, consumer: &str, session: &SessionId) -> Result<Consumed> {
        let event: ExternalEvent = self.state.get(id).unwrap();
        let acting = (self.get_session(session), self.run(session));
        let held = self.state.receipt_for(&id.clone().into(), &name(consumer));
        let consuming = once::event::Consume {
            payload: self.carried(&event),
            event,
            consumer: name(consumer),
            acting,
            held,
        };
        self.act(|turn, _| once::event::consume(turn, consuming))
    }
}

#[test]
fn a_type_is_one_of_the_table_or_an_observation_of_ones_own() {
    for (word, scope) in EVENT_TYPES {
        assert_eq!(event::kind(word).unwrap().scope(), *scope);
    }
    assert_eq!(event::kind("x.weather").unwrap().scope(), EventScope::Observation);
    let error = event::kind("ci.observd").unwrap_err();
    assert_eq!((error.kind, error.cause.as_deref()), (Kind::Usage, Some("did you mean ci.observed?")));
    assert!(event::kind("canon.written").unwrap_err().fix.unwrap().contains("acceptance.observed"));
    for permission in HIGH_PERMISSIONS {
        for word in [format!("x.{permission}"), format!("x.a/{}", permission.to_uppercase())] {
            assert_eq!(kind(event::kind(&word)), Kind::AuthorityDenied, "{word}");
        }
    }
}

#[test]
fn an_event_records_itself_and_nothing_else() {
    for (word, scope) in EVENT_TYPES {
        let mut world = World::new();
        let received = world.put(given(word, json!({"a": 1}))).unwrap();
        assert_eq!((received.delivery, received.scope), (Delivery::New, *scope));
        assert_eq!(world.words(), ["event.received"]);
        let event: ExternalEvent = world.state.get(&received.event).unwrap();
        let want = json!({"type": word, "scope": scope, "resource": "novel/pride", "payload": {"a": 1}});
        assert_eq!(event.payload_hash, Hash::of(&canonical(&want)), "the hash is of what was given");
        assert_eq!(world.state.event_of_key(&name("delivery/1")), Some(event));
    }
}

#[test]
fn the_same_meaning_again_is_the_first_event_whoever_brings_it() {
    let mut world = World::new();
    let first = world.put(given("ci.observed", json!({"a": 1, "b": [2.0]}))).unwrap();
    for text in [r#"{"a":1,"b":[2.0]}"#, r#"{"b":[2],"a":1.0}"#, r#"{ "b": [20e-1], "\u0061": 1 }"#] {
        world.pass(86_400_000);
        let mut again = given("ci.observed", serde_json::from_str(text).unwrap());
        again.source = EventSource {
            kind: name("schedule"),
            actor: Some("somebody".to_owned()),
            transport: Some(format!("delivery {text}")),
            reference: Some("https://ci.example".to_owned()),
        };
        let received = world.put(again).unwrap();
        assert_eq!(received, Received { delivery: Delivery::Duplicate, ..first.clone() }, "{text}");
        assert!(world.last.is_empty(), "{text}");
    }
}

#[test]
fn another_meaning_under_the_same_key_is_a_hard_stop_with_its_pointers() {
    let (mut world, session) = (World::new(), SessionId::from_bytes(&[0; 8]));
    let own = world.start();
    assert_ne!(own, session);
    let first = world.put(given("ci.observed", json!({"a": {"b": [1, 2]}, "c": 1}))).unwrap();
    let artifact = |bytes: &[u8]| EventArtifact {
        name: name("chapter"),
        path: "ch01.md".to_owned(),
        hash: Hash::of(bytes),
    };
    type Change<'a> = Box<dyn Fn(&mut Given) + 'a>;
    let changes: Vec<(Change<'_>, &[&str])> = vec![
        (Box::new(|it| it.payload = Some(json!({"a": {"b": [1, 3]}, "c": 1}))), &["/payload/a/b/1"]),
        (Box::new(|it| it.payload = Some(json!({"a": {"b": [1]}}))), &["/payload/a/b/1", "/payload/c"]),
        (Box::new(|it| it.payload = None), &["/payload"]),
        (Box::new(|it| it.payload = Some(Value::Null)), &["/payload"]),
        (Box::new(|it| it.kind = event::kind("x.ci").unwrap()), &["/type"]),
        (Box::new(|it| it.kind = event::kind("eval.requested").unwrap()), &["/scope", "/type"]),
        (Box::new(|it| it.resource = None), &["/resource"]),
        (Box::new(|it| it.session = Some(world.get_session(&own))), &["/session"]),
        (Box::new(|it| it.run = Some(world.run(&own))), &["/run"]),
        (Box::new(|it| it.artifacts = vec![artifact(b"x")]), &["/artifacts"]),
    ];
    let changed: Vec<(Given, &[&str])> = changes
        .iter()
        .map(|(change, pointers)| {
            let mut other = given("ci.observed", json!({"a": {"b": [1, 2]}, "c": 1}));
            change(&mut other);
            (other, *pointers)
        })
        .collect();
    drop(changes);
    for (other, pointers) in changed {
        let error = world.put(other).unwrap_err();
        assert_eq!((error.kind, &error.details["pointers"]), (Kind::EventConflict, &json!(pointers)));
        assert_eq!(error.details["event"], json!(first.event));
        assert_eq!(error.details["want"], json!(first.payload_hash));
        assert_eq!(world.words(), ["conflict.refused"]);
        let got: Hash = error.details["got"].as_str().unwrap().parse().unwrap();
        assert!(world.blobs.contains_key(&got), "the refused meaning is kept under its hash");
        assert!(matches!(&world.last[0], Event::ConflictRefused { value, event, .. }
            if *value == Some(got) && *event == Some(first.event.clone())));
        assert_eq!(world.state.event_of_key(&name("delivery/1")).unwrap().payload_hash, first.payload_hash);
    }
}

#[test]
fn no_event_carries_authority_or_private_reasoning_at_any_depth() {
    let mut world = World::new();
    for key in HIGH_PERMISSIONS {
        for value in [json!(true), json!("false"), json!(0), json!(null), json!({})] {
            let payload = json!({"a": [{(*key).to_owned(): value}]});
            let error = world.put(given("acceptance.observed", payload)).unwrap_err();
            assert_eq!(error.kind, Kind::AuthorityDenied);
            assert_eq!(error.details["pointers"], json!([format!("/payload/a/0/{key}")]));
        }
    }
    for key in PRIVATE_KEYS {
        let error =
            world.put(given("x.note", json!([{"b": {key.to_uppercase(): "so it goes"}}]))).unwrap_err();
        assert_eq!(error.kind, Kind::PrivateKey);
        assert_eq!(error.details["pointers"], json!([format!("/payload/0/b/{}", key.to_uppercase())]));
    }
    assert_eq!(world.state.meta().seq, 0, "nothing was recorded");
    // Said to be false it is no permission, and a refused private value is not kept as a conflict either.
    world.put(given("semantic.job_requested", json!({"permissions": {"canon_write": false}}))).unwrap();
    assert_eq!(kind(world.put(given("x.note", json!({"thinking": "x"})))), Kind::PrivateKey);
    assert_eq!(world.state.meta().conflicts, 0);
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    let mut world = World::new();
    let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(kind(world.put(given("x.a", nested(MAX_DEPTH + 1)))), Kind::BadInput);
    assert_eq!(kind(world.put(given("x.a", json!("x".repeat(MAX_PAYLOAD - 1))))), Kind::TooLarge);
    let mut stated = given("x.a", json!(1));
    stated.source.actor = Some("x".repeat(MAX_STATED + 1));
    assert_eq!(kind(world.put(stated)), Kind::TooLarge);
    let artifact = EventArtifact { name: name("a"), path: "a".to_owned(), hash: Hash::of(b"a") };
    let mut twice = given("x.a", json!(1));
    twice.artifacts = vec![artifact.clone(), artifact];
    assert_eq!(kind(world.put(twice)), Kind::Usage);
    let deep = world.put(given("x.a", nested(MAX_DEPTH))).unwrap();
    let event: ExternalEvent = world.state.get(&deep.event).unwrap();
    assert!(matches!(event.payload, Some(Payload::Inline(_))), "deep, short and read again as it was");
    let mut whole = given("x.a", json!("x".repeat(MAX_PAYLOAD - 2)));
    whole.key = name("delivery/2");
    let kept = world.put(whole).unwrap();
    let event: ExternalEvent = world.state.get(&kept.event).unwrap();
    assert!(matches!(event.payload, Some(Payload::Blob(hash)) if world.blobs.contains_key(&hash)));
}

#[test]
fn artifacts_mean_the_same_in_any_order() {
    let artifact = |text: &str| EventArtifact { name: name(text), path: text.into(), hash: Hash::of(b"x") };
    let mut world = World::new();
    let mut one = given("x.a", json!(1));
    one.artifacts = vec![artifact("b"), artifact("a")];
    let mut two = given("x.a", json!(1));
    two.artifacts = vec![artifact("a"), artifact("b")];
    world.put(one).unwrap();
    assert_eq!(world.put(two).unwrap().delivery, Delivery::Duplicate);
}

fn asked() -> (World, SessionId, Handoff, Sent) {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let handoff: Handoff = world.state.get(&sent.handoff).unwrap();
    (world, session, handoff, sent)
}

#[test]
fn what_an_event_names_belongs_together() {
    let (mut world, session, handoff, _) = asked();
    let other = world.start();
    let mut number = 0;
    let mut refused = |world: &mut World, change: &dyn Fn(&World, &mut Given)| {
        number += 1;
        let mut it = given("x.a", json!(number));
        it.key = name(&format!("key/{number}"));
        change(world, &mut it);
        match world.put(it) {
            Ok(_) => None,
            Err(error) => Some((error.kind, error.details["wrong"].as_array().map_or(0, Vec::len))),
        }
    };
    let (own, run, sent) = (world.get_session(&session), world.run(&session), handoff);
    let (stranger, their) = (world.get_session(&other), world.run(&other));
    let mismatch = |count| Some((Kind::MismatchedReferences, count));
    let (own, run, sent, stranger, their) = (&own, &run, &sent, &stranger, &their);
    let all = |it: &mut Given, session: &Session, run: &Run| {
        it.session = Some(session.clone());
        it.run = Some(run.clone());
        it.handoff = Some(sent.clone());
    };
    assert_eq!(refused(&mut world, &|_, it| all(it, own, run)), None);
    assert_eq!(refused(&mut world, &|_, it| all(it, own, their)), mismatch(1));
    assert_eq!(refused(&mut world, &|_, it| all(it, stranger, run)), mismatch(2));
    assert_eq!(refused(&mut world, &|_, it| all(it, stranger, their)), mismatch(1));
    let without = |it: &mut Given, run: &Run| {
        it.run = Some(run.clone());
        it.handoff = Some(sent.clone());
    };
    assert_eq!(refused(&mut world, &|_, it| without(it, run)), None);
    assert_eq!(refused(&mut world, &|_, it| without(it, their)), mismatch(1));
    for (resource, fits) in [
        (Some("novel/pride"), true),
        (Some("novel/pride/ch01"), true),
        (Some("novel"), true),
        (None, true),
        (Some("novel/prideful"), false),
        (Some("novel/emma"), false),
        (Some("nov"), false),
    ] {
        let on = |_: &World, it: &mut Given| {
            all(it, own, run);
            it.resource = resource.map(name);
        };
        assert_eq!(refused(&mut world, &on), if fits { None } else { mismatch(3) }, "{resource:?}");
    }
}

#[test]
fn an_event_is_listed_under_the_session_of_what_it_names() {
    let (mut world, session, handoff, _) = asked();
    let mut it = given("x.a", json!(1));
    it.handoff = Some(handoff);
    let id = world.put(it).unwrap().event;
    let rows: Vec<String> =
        world.state.of_session(&session, IdKind::EventId, None).map(|row| row.id).collect();
    assert_eq!(rows, [id.to_string()]);
    let novel = name("novel/pride");
    let common = Common { resource: Some(&novel), ..Common::default() };
    let on: Vec<String> = world.state.listed(IdKind::EventId, &common, None).map(|row| row.id).collect();
    assert_eq!(on, [id.to_string()]);
    let event: ExternalEvent = world.state.get(&id).unwrap();
    assert_eq!(event.session, None, "what the sender did not give is not filled in");
}

#[test]
fn an_event_is_applied_once_for_each_consumer_and_moves_no_gate() {
    let (mut world, session, handoff, _) = asked();
    let id = world.put(given("acceptance.observed", json!({"accepted": true}))).unwrap().event;
    let gates = world.run(&session).pending.gates;
    for consumer in ["somebody", handoff.gate.as_str()] {
        let first = world.apply(&id, consumer, &session).unwrap();
        assert_eq!(world.words(), ["receipt.recorded"]);
        assert_eq!(
            (first.application, first.gate.clone(), first.own_gate.clone()),
            (Application::New, None, None)
        );
        assert_eq!(first.outcome.polarity, Polarity::None);
        let again = world.apply(&id, consumer, &session).unwrap();
        assert_eq!((again.application, &again.receipt), (Application::Already, &first.receipt));
        assert!(world.last.is_empty());
        let receipt: Receipt = world.state.get(&first.receipt).unwrap();
        assert_eq!(receipt.source, Applied::Event(id.clone()));
        assert_eq!((receipt.result_hash, receipt.fingerprint, receipt.attempt), (None, None, None));
    }
    assert_eq!(world.run(&session).pending.gates, gates);
    assert_eq!(gates[&handoff.gate].status, GateStatus::Pending);
    let event: ExternalEvent = world.state.get(&id).unwrap();
    assert_eq!(event.consumed.len(), 2);
}

#[test]
fn what_only_reports_a_result_is_no_source_and_points_to_it() {
    let (mut world, session, handoff, sent) = asked();
    let mut report = given("semantic.result_arrived", json!({"verdict": "accept"}));
    report.handoff = Some(handoff.clone());
    let id = world.put(report).unwrap().event;
    let before = world.state.meta().seq;
    let early = world.apply(&id, "somebody", &session).unwrap_err();
    assert_eq!(early.kind, Kind::NotConsumable);
    assert!(early.fix.unwrap().contains(handoff.id.as_str()));
    let answer = world.answer(&sent, "reject");
    let result = world.reply(&answer).unwrap().result;
    let late = world.apply(&id, "somebody", &session).unwrap_err();
    assert_eq!((late.kind, &late.details["result"]), (Kind::NotConsumable, &json!(result)));
    assert!(late.fix.unwrap().contains(&format!("nf consume {result} --as somebody")));
    assert_eq!(world.state.meta().seq, before + 1, "the answer alone was recorded");
    // A result that no handoff waits for is told by the event alone; so is a request that names a handoff.
    let mut bare = given("eval.result_arrived", json!({"score": 3}));
    bare.key = name("delivery/2");
    let mut request = given("eval.requested", json!({}));
    (request.key, request.handoff) = (name("delivery/3"), Some(handoff));
    for it in [bare, request] {
        let id = world.put(it).unwrap().event;
        assert_eq!(world.apply(&id, "somebody", &session).unwrap().application, Application::New);
    }
}

#[test]
fn an_event_that_does_not_mean_what_was_recorded_is_damage() {
    let mut world = World::new();
    let session = world.start();
    let id = world.put(given("x.a", json!("x".repeat(300)))).unwrap().event;
    let event: ExternalEvent = world.state.get(&id).unwrap();
    let Some(Payload::Blob(hash)) = event.payload else { panic!("a blob") };
    let whole = world.blobs.insert(hash, b"1".to_vec()).unwrap();
    let before = world.state.meta().seq;
    assert_eq!(kind(world.apply(&id, "somebody", &session)), Kind::Damaged);
    assert_eq!(world.state.meta().seq, before);
    world.blobs.insert(hash, whole);
    world.apply(&id, "somebody", &session).unwrap();
}
