//! Work that is no frozen question: queued, claimed, answered and applied like one, and judged by nobody.

use super::*;
use crate::model::handoff::ContextPolicy;
use crate::model::job::{Polarity, ResultScope};
use crate::model::result::Standing;
use crate::model::run::GateStatus;
use crate::model::session::Role;
use crate::rules::attempt::{Asking, Claimed, Secret, claim};
use crate::rules::claim::{Offer, Wish, find};
use crate::rules::handoff::{self, Opening, Queued, Terms, Work};
use crate::rules::jobfile::ArtifactRef;
use crate::rules::task::{FrozenTask, MAX_INSTRUCTIONS, TaskSpec, fix};

fn spec() -> TaskSpec {
    TaskSpec {
        instructions: "Find three sources.\n".to_owned(),
        returns: json!({"type": "object", "required": ["sources"], "properties": {
            "sources": {"type": "array", "minItems": 1}}}),
        artifacts: vec![ArtifactRef {
            name: name("chapter"),
            path: "ch01.md".to_owned(),
            lines: None,
            base64: false,
            pointer: "/artifact".to_owned(),
        }],
        scope: ResultScope::Observation,
    }
}

fn fixed(spec: &TaskSpec, text: &[u8]) -> Result<FrozenTask> {
    fix(spec, &name("novel/pride"), &BTreeMap::from([(name("chapter"), text.to_vec())]))
}

fn terms() -> Terms {
    Terms { gate: Some(name("research/ch01")), ..Terms::of(Role::Specialist) }
}

impl World {
    fn open_task(&mut self, id: &SessionId, terms: Terms, context: &[Name]) -> Result<Queued> {
        let task = fixed(&spec(), b"text\n").unwrap();
        self.blobs.insert(Hash::of(b"text\n"), b"text\n".to_vec());
        let session = self.get_session(id);
        let opening = Opening {
            run: current_run(&self.state, &session),
            bindings: self.bindings(&session),
            own: None,
            active: Vec::new(),
            history: Default::default(),
            session,
            work: Work::Task(&task, context),
            terms,
            wait: false,
        };
        self.act(|turn, _| handoff::open(turn, opening))
    }

    fn claim_task(&mut self) -> Result<(Claimed, Secret)> {
        let wish = Wish {
            class: Role::Specialist,
            handoff: None,
            resource: None,
            job: None,
            gate: None,
            worker: name("worker"),
            family: crate::model::job::Family::LocalAgent,
            ttl_ms: None,
            session: None,
            offer: Offer::by_hand(),
        };
        let mut secret = Secret::default();
        let claimed = self.act(|turn, world| match find(turn, &wish)? {
            Ok(found) => {
                let handoff = found.handoff.clone();
                let source = world.get_session(&handoff.source_session);
                let frozen = world.asked(&handoff);
                let artifacts: Vec<Vec<u8>> =
                    frozen.artifacts().iter().map(|artifact| world.blobs[&artifact.hash].clone()).collect();
                let asking = Asking { source: &source, frozen: &frozen, artifacts: &artifacts };
                let (decision, kept) = claim(turn, &wish, found, &asking)?;
                secret = kept;
                Ok(decision)
            }
            Err((events, error)) => Ok(Decision::refused(events, error)),
        })?;
        Ok((claimed, secret))
    }

    fn filled(&self, claimed: &Claimed, secret: &Secret, sources: Value) -> Value {
        let handoff: Handoff = self.state.get(&claimed.handoff).unwrap();
        let frozen = self.asked(&handoff);
        let mut value = blank(&frozen, &claimed.handoff, &secret.nonce, Transport::Worker);
        value["output"] = json!({"sources": sources});
        value
    }
}

#[test]
fn what_a_task_may_not_say() {
    let long = "x".repeat(MAX_INSTRUCTIONS + 1);
    let cases: Vec<(TaskSpec, Kind)> = vec![
        (TaskSpec { instructions: " \n".to_owned(), ..spec() }, Kind::BadInput),
        (TaskSpec { instructions: long, ..spec() }, Kind::TooLarge),
        (TaskSpec { instructions: "messages: [hello]".to_owned(), ..spec() }, Kind::NotBlind),
        (TaskSpec { instructions: "a:\n  - {b: {Transcript: x}}".to_owned(), ..spec() }, Kind::NotBlind),
        (TaskSpec { returns: json!({"type": 7}), ..spec() }, Kind::BadInput),
        (
            TaskSpec { returns: json!({"type": "object", "properties": {"thinking": {}}}), ..spec() },
            Kind::NotBlind,
        ),
    ];
    for (wrong, want) in cases {
        assert_eq!(kind(fixed(&wrong, b"text")), want, "{wrong:?}");
    }
    assert_eq!(kind(fixed(&spec(), b"\xff")), Kind::BadInput);
    assert!(fixed(&spec(), b"text").is_ok());
}

#[test]
fn a_task_needs_a_gate_and_is_the_handoffs_own() {
    let mut world = World::new();
    let session = world.start();
    assert_eq!(kind(world.open_task(&session, Terms { gate: None, ..terms() }, &[])), Kind::Usage);
    let one = world.open_task(&session, terms(), &[]).unwrap();
    let two = world.open_task(&session, terms(), &[name("web")]).unwrap();
    assert_ne!(one.handoff, two.handoff, "the same words twice are two pieces of work");
    let policy = |id| world.state.get::<Handoff>(id).map(|handoff| handoff.context_policy);
    assert_eq!(policy(&one.handoff), Some(ContextPolicy::PacketOnly));
    assert_eq!(policy(&two.handoff), Some(ContextPolicy::Listed));
    let (first, secret) = world.claim_task().unwrap();
    assert!(first.job.is_none() && secret.packet.contains("Find three sources."));
    assert!(secret.packet.contains("text\n") && !secret.packet.contains("# Rubric"));
    let answer = world.filled(&first, &secret, json!(["Gazette"]));
    world.reply(&answer).unwrap();
    let (second, secret) = world.claim_task().expect("the other one is still to be done");
    assert!(secret.packet.contains("context: web"));
    assert_ne!(first.handoff, second.handoff);
}

#[test]
fn what_comes_back_is_bound_to_its_handoff_and_applied_once() {
    let mut world = World::new();
    let session = world.start();
    let queued = world.open_task(&session, terms(), &[]).unwrap();
    let (claimed, secret) = world.claim_task().unwrap();
    let answer = world.filled(&claimed, &secret, json!(["Gazette"]));
    assert_eq!(answer["nf"], json!({"handoff": claimed.handoff, "nonce": secret.nonce}));
    let bound = world.reply(&answer).unwrap();
    assert_eq!((bound.standing, bound.verdict.polarity), (Standing::Valid, Polarity::None));
    assert_eq!(bound.job, None);
    let not_asked = bound.checks.iter().filter(|check| check.want == "not asked");
    let not_asked: Vec<&str> = not_asked.map(|check| check.check.as_str()).collect();
    assert_eq!(not_asked, ["fingerprint", "job_digest", "verdict", "evidence", "independence"]);
    let stored: StoredResult = world.state.get(&bound.result).unwrap();
    let body: Value = serde_json::from_slice(&world.blobs[&stored.blob]).unwrap();
    assert_eq!(body["handoff"], json!(queued.handoff));
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    assert!(world.reply(&answer).unwrap().duplicate && world.last.is_empty());
    let consumed = world.consume(&bound.result, "research/ch01", None).unwrap();
    assert_eq!(consumed.gate_status, Some(GateStatus::Answered));
    world.consume(&bound.result, "research/ch01", None).unwrap();
    assert!(world.last.is_empty());
}

#[test]
fn an_answer_to_something_else_does_not_bind() {
    let spoil: [(&str, fn(&mut Value)); 5] = [
        ("job", |answer| answer["nf"]["handoff"] = json!("h-000000000000")),
        ("form", |answer| answer["nf"]["job"] = json!("j-000000000000")),
        ("schema", |answer| answer["output"]["sources"] = json!([])),
        ("leakage", |answer| answer["output"]["reasoning"] = json!("because")),
        ("scope", |answer| answer["scope"] = json!("evaluation")),
    ];
    for (check, spoil) in spoil {
        let mut world = World::new();
        let session = world.start();
        world.open_task(&session, terms(), &[]).unwrap();
        let (claimed, secret) = world.claim_task().unwrap();
        let mut answer = world.filled(&claimed, &secret, json!(["Gazette"]));
        spoil(&mut answer);
        let error = world.reply(&answer).unwrap_err();
        assert_eq!(
            (error.kind, &error.details["failed"]),
            (Kind::SemanticInvalid, &json!([check])),
            "{check}"
        );
    }
}
