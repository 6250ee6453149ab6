//! Answers of which `nf` itself saw who gave them: what must be recorded, what it proves, and what an
//! answer's own words count for beside it.

use super::*;
use crate::model::check::failed;
use crate::model::job::{Cost, Grade, Locality};
use crate::model::result::Checked;
use crate::model::time::Time;
use crate::model::witness::{Invocation, Witness};

fn process() -> Witness {
    let invocation = Invocation {
        argv_hash: Hash::of(b"argv"),
        env_names: vec!["PATH".to_owned()],
        pid: 7,
        started_at: Time::from_micros(1),
        ended_at: Time::from_micros(2),
        exit: Some(0),
    };
    Witness { invocation: Some(invocation), ..Witness::default() }
}

fn call() -> Witness {
    Witness {
        provider: Some("house".to_owned()),
        model_requested: Some("asked-1".to_owned()),
        request_id: Some("req-1".to_owned()),
        ..Witness::default()
    }
}

/// A question that is claimed by a transport, and the answer of its worker.
fn answered(transport: Transport, witness: Option<Witness>) -> (World, Result<Bound>) {
    let mut world = World::new();
    world.queued("text\n", terms());
    let offer = Offer { transport, best: Grade::Attested, ..Offer::by_hand() };
    let (claimed, secret) = world.claim(&Wish { offer, ..wish() }).unwrap();
    world.witness = witness;
    let bound = world.complete(&claimed, &secret, "reject");
    (world, bound)
}

fn checked(world: &World, bound: &Bound) -> (StoredResult, Checked) {
    let result: StoredResult = world.state.get(&bound.result).unwrap();
    let checked = result.checked.clone().unwrap();
    (result, checked)
}

#[test]
fn each_transport_wants_what_nf_itself_must_have_seen() {
    for (transport, witness, lacks) in [
        (Transport::Process, Some(process()), None),
        (Transport::Process, None, Some("only nf work")),
        (Transport::Process, Some(call()), Some("process")),
        (Transport::Http, Some(call()), None),
        (Transport::Http, None, Some("only nf work")),
        (Transport::Http, Some(process()), Some("provider, model that was asked for, id of the request")),
        (Transport::Http, Some(Witness { request_id: None, ..call() }), Some("id of the request")),
        (Transport::Worker, None, None),
    ] {
        let (world, bound) = answered(transport, witness);
        match (bound, lacks) {
            (Ok(bound), None) => {
                assert_eq!(failed(&bound.checks), Vec::<String>::new());
                let evidence = world.evidence(&bound.result);
                assert_eq!(failed(&evidence.checks()), Vec::<String>::new(), "also when it is consumed");
            }
            (Err(error), Some(lack)) => {
                assert_eq!(error.kind, Kind::SemanticInvalid);
                let cause = error.cause.unwrap();
                assert!(cause.starts_with("provenance") && cause.contains(lack), "{cause}");
            }
            (bound, lacks) => panic!("{transport}: {bound:?}, {lacks:?}"),
        }
    }
}

#[test]
fn only_what_was_kept_apart_is_attested_and_every_proof_is_a_line() {
    let apart = vec!["an empty folder".to_owned(), "no tools".to_owned()];
    for (witness, grade, lines) in [
        (process(), Grade::Declared, 0),
        (Witness { isolation: apart.clone(), ..process() }, Grade::Attested, 2),
        (Witness { isolation: apart, ..call() }, Grade::Attested, 2),
    ] {
        let transport = if witness.invocation.is_some() { Transport::Process } else { Transport::Http };
        let (world, bound) = answered(transport, Some(witness));
        let bound = bound.unwrap();
        assert_eq!(bound.grade, grade);
        let grounds = world.evidence(&bound.result).grounds();
        assert_eq!(grounds.iter().filter(|ground| ground.check == "apart").count(), lines);
    }
}

#[test]
fn what_was_seen_goes_before_what_the_answer_calls_itself() {
    let served = |model: &str| Witness { model_served: Some(model.to_owned()), ..process() };
    for (transport, witness, kept, stated) in [
        (Transport::Process, served("seen-1"), Some("seen-1"), Some("m1")),
        (Transport::Process, served("m1"), Some("m1"), None),
        (Transport::Process, process(), Some("m1"), None),
        (Transport::Process, Witness { unattested: true, ..process() }, None, Some("m1")),
        (Transport::Http, call(), None, Some("m1")),
    ] {
        let (world, bound) = answered(transport, Some(witness.clone()));
        let (result, checked) = checked(&world, &bound.unwrap());
        let seen = result.provenance;
        assert_eq!((seen.model_served.as_deref(), seen.model_stated.as_deref()), (kept, stated));
        assert_eq!(seen.model_requested, witness.model_requested);
        let model = checked.checks.iter().find(|check| check.check == "model").unwrap();
        assert_eq!(model.got, kept.unwrap_or("unattested"));
    }
}

#[test]
fn what_a_worker_offers_must_be_what_the_job_allows() {
    let mut world = World::new();
    let session = world.start();

    let independent = r#""independent": true"#;
    let offer = || Offer { transport: Transport::Process, ..Offer::by_hand() };
    let model = |model: &str| Some(model.to_owned());
    for (line, offer, allowed) in [
        (r#""cost": ["free"]"#, Offer { cost: Some(Cost::Metered), ..offer() }, false),
        (r#""cost": ["free"]"#, Offer { cost: Some(Cost::Free), ..offer() }, true),
        (r#""cost": ["free"]"#, offer(), true),
        (r#""locality": "local""#, Offer { locality: Some(Locality::Any), ..offer() }, false),
        (r#""locality": "local""#, Offer { locality: Some(Locality::Local), ..offer() }, true),
        (r#""models": ["a"]"#, Offer { model: model("a"), ..offer() }, true),
        (r#""models": ["a"]"#, Offer { model: model("b"), ..offer() }, false),
        (r#""models": ["a"]"#, Offer { model: model("a"), unattested: true, ..offer() }, false),
        (r#""min_grade": "attested""#, Offer { best: Grade::Attested, ..offer() }, true),
        (r#""min_grade": "attested""#, offer(), false),
    ] {
        let text = JOB.replace(independent, &format!("{independent}, {line}"));
        let job = world.freeze(&session, &text, &format!("{line} {offer:?}\n"));
        let queued = world.open(&session, &job, terms(), false).unwrap();
        let named = Wish { handoff: Some(world.handoff(&queued.handoff)), offer: offer.clone(), ..wish() };
        match world.claim(&named) {
            Ok(_) => assert!(allowed, "{line} {offer:?}"),
            Err(error) => assert!(!allowed && error.kind == Kind::ExecutionUnavailable, "{line}: {error:?}"),
        }
    }
}
