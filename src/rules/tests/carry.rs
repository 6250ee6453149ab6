//! Work that is carried away and back: what goes out, what is taken far away, and what the store makes of it.

mod files;

use super::*;
use crate::model::handoff::{AttemptState, Handoff};
use crate::model::id::HandoffId;
use crate::model::job::Family;
use crate::model::result::Standing;
use crate::model::session::Role;
use crate::rules::answer::Intake;
use crate::rules::attempt::Asking;
use crate::rules::binding::LEFT;
use crate::rules::carry::export::{Exported, Exporting, export};
use crate::rules::carry::far::{printed, take};
use crate::rules::carry::{Export, Returned, sealed};
use crate::rules::handoff::{self, Opening, Terms, Work};
use crate::rules::lease::{MAX_INVALID, RELAY_TTL_MS};

const STORE: &str = "01234567890123456789abcdef";

impl World {
    /// A question of its own in the queue.
    fn waiting(&mut self, text: &str) -> HandoffId {
        let id = self.start();
        let job = self.freeze(&id, text, "text\n");
        let session = self.get_session(&id);
        let history = self.state.history(&job.fingerprint);
        let opening = Opening {
            run: current_run(&self.state, &session),
            bindings: self.bindings(&session),
            own: None,
            active: Vec::new(),
            history,
            session,
            work: Work::Question(&job),
            terms: Terms::of(Role::SemanticReviewer),
            wait: false,
        };
        self.act(|turn, _| handoff::open(turn, opening)).unwrap().handoff
    }

    fn export(&mut self, id: &HandoffId, worker: Option<&str>, family: Option<Family>) -> Result<Exported> {
        let handoff: Handoff = self.state.get(id).unwrap();
        let (source, frozen) = (self.get_session(&handoff.source_session), self.asked(&handoff));
        let artifacts: Vec<Vec<u8>> =
            frozen.artifacts().iter().map(|artifact| self.blobs[&artifact.hash].clone()).collect();
        let kept = handoff.attempt.as_ref().and_then(|id| self.packets.get(&id.to_string()).cloned());
        self.act(|turn, _| {
            let exporting = Exporting {
                handoff: &handoff,
                worker: worker.map(name),
                family,
                ttl_ms: None,
                store: STORE,
                version: "0.1.0",
                kept,
            };
            export(turn, exporting, &Asking { source: &source, frozen: &frozen, artifacts: &artifacts })
        })
    }

    fn file(&self, exported: &Exported) -> String {
        self.packets[&exported.attempt.to_string()].clone()
    }

    /// Takes a result file home.
    fn import(&mut self, file: &str) -> Result<Bound> {
        let returned = Returned::read(file.as_bytes())?;
        let intake: Intake = extract(&canonical(&returned.answer), &|_| false);
        let intake = intake.map(|extracted| returned.told(extracted));
        let attempt: Attempt = self.state.get(&returned.attempt).expect("a known attempt");
        let imported = Imported {
            file: Hash::of(file.as_bytes()),
            export: returned.export,
            pasted: returned.pasted.clone(),
            nf: returned.nf.clone(),
        };
        self.arrives(attempt.clone(), attempt.nonce_hash, file.as_bytes(), &intake, Some(imported))
    }
}

/// A filled-in form, as its family asks for it.
fn filled(export: &Export, verdict: &str) -> Value {
    let mut value = blank(&export.job, &export.handoff, &export.nonce, export.form());
    value["worker"] = match export.family {
        Family::Human => json!({"name": "Jane"}),
        _ => json!({"provider": "peer", "model": "m1"}),
    };
    value["output"] = json!({"verdict": verdict, "evidence": ["line one"]});
    value
}

/// The result file of an answer that was pasted far away with a word before it.
fn answered(export_file: &str, answer: &Value) -> Result<String> {
    let (export, hash) = Export::read(export_file.as_bytes())?;
    let pasted = format!("Certainly.\n{answer}");
    Ok(sealed(&take(&export, hash, pasted.as_bytes(), "0.1.0", None)?.returned).0)
}

fn exported(text: &str) -> (World, HandoffId, String) {
    let mut world = World::new();
    let handoff = world.waiting(text);
    let exported = world.export(&handoff, Some("jane"), None).unwrap();
    let file = world.file(&exported);
    (world, handoff, file)
}

fn read(file: &str) -> Export {
    Export::read(file.as_bytes()).unwrap().0
}

#[test]
fn an_export_is_a_claim_whose_file_is_shown_again_while_it_is_open() {
    let mut world = World::new();
    let handoff = world.waiting(JOB);
    assert_eq!(kind(world.export(&handoff, None, None)), Kind::Usage, "somebody must carry it");
    let first = world.export(&handoff, Some("jane"), None).unwrap();
    assert_eq!(world.words(), ["session.created", "session.moved", "handoff.claimed"]);
    let attempt: Attempt = world.state.get(&first.attempt).unwrap();
    assert_eq!((attempt.transport, attempt.family()), (Transport::Import, Family::PeerChat));
    assert_eq!(attempt.lease.ttl_ms, RELAY_TTL_MS);
    let file = world.file(&first);
    let record = serde_json::to_string(&world.last).unwrap();
    assert!(!record.contains(&read(&file).nonce), "the nonce is in no record");
    for worker in [None, Some("jane")] {
        let again = world.export(&handoff, worker, None).unwrap();
        assert_eq!((again.again, &again.attempt, world.words().len()), (true, &first.attempt, 0));
        assert_eq!(world.file(&again), file, "the same bytes");
    }
    assert_eq!(kind(world.export(&handoff, Some("joe"), None)), Kind::UnderReview);
    assert_eq!(kind(world.export(&handoff, None, Some(Family::Human))), Kind::UnderReview);
    world.packets.clear();
    assert_eq!(kind(world.export(&handoff, None, None)), Kind::UnderReview, "its file is not made anew");
    world.pass(RELAY_TTL_MS);
    let second = world.export(&handoff, Some("joe"), None).unwrap();
    assert_eq!((second.number, second.again), (2, false));
    assert_eq!(world.attempt_state(&first), AttemptState::Superseded);
}

impl World {
    fn attempt_state(&self, exported: &Exported) -> AttemptState {
        self.state.get::<Attempt>(&exported.attempt).unwrap().state
    }
}

#[test]
fn a_jobs_terms_hold_for_whoever_answers_far_away() {
    for (terms, family, refusal) in [
        (r#"{"families": ["human"]}"#, None, Some(Kind::ExecutionUnavailable)),
        (r#"{"families": ["human"]}"#, Some(Family::Human), None),
        (r#"{"min_grade": "attested"}"#, None, Some(Kind::ExecutionUnavailable)),
    ] {
        let mut world = World::new();
        let handoff = world.waiting(&JOB.replace(r#"{"independent": true}"#, terms));
        let outcome = world.export(&handoff, Some("jane"), family);
        assert_eq!(outcome.err().map(|error| error.kind), refusal, "{terms}");
    }
}

#[test]
fn far_away_all_is_checked_that_needs_no_store_and_the_rest_is_said_to_be_left() {
    let (_, _, file) = exported(JOB);
    let (export, hash) = Export::read(file.as_bytes()).unwrap();
    let good = filled(&export, "reject");
    let taken = take(&export, hash, good.to_string().as_bytes(), "0.1.0", None).unwrap();
    let left: Vec<&str> = taken.checks.iter().filter(|c| c.got.contains(LEFT)).map(|c| &*c.check).collect();
    assert_eq!(left, ["attempt", "independence"]);
    assert_eq!(taken.checks.len(), 13);
    type Change = fn(&mut Value);
    let table: [(&str, Change); 8] = [
        ("form", |answer| answer["extra"] = json!(1)),
        ("job", |answer| answer["nf"]["job"] = json!("j-000000000000")),
        ("fingerprint", |answer| answer["nf"]["fingerprint"] = json!("nf1:0")),
        ("attempt", |answer| answer["nf"]["nonce"] = json!("0".repeat(26))),
        ("schema", |answer| answer["output"]["verdict"] = json!("maybe")),
        ("evidence", |answer| answer["output"]["evidence"] = json!([])),
        ("scope", |answer| answer["scope"] = json!("evaluation")),
        ("provenance", |answer| answer["worker"]["model"] = json!("")),
    ];
    for (check, change) in table {
        let mut answer = good.clone();
        change(&mut answer);
        let error = take(&export, hash, answer.to_string().as_bytes(), "0.1.0", None).unwrap_err();
        assert_eq!(error.kind, Kind::SemanticInvalid, "{check}");
        let failed = error.details["failed"].as_array().unwrap().clone();
        assert!(failed.contains(&json!(check)), "{check}: {failed:?}");
    }
    let blank = blank(&export.job, &export.handoff, &export.nonce, export.form()).to_string();
    let error = take(&export, hash, blank.as_bytes(), "0.1.0", None).unwrap_err();
    assert_eq!(error.details["reason"], "form_not_filled_in");
}

#[test]
fn the_packet_is_printed_in_the_forms_that_its_family_can_answer() {
    let (mut world, handoff, file) = exported(JOB);
    let chat = read(&file);
    assert_eq!(printed(&chat, None).unwrap(), (Transport::Chat, chat.packet.clone()));
    let (_, agent) = printed(&chat, Some(Transport::Agent)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&agent).unwrap()["return_form"]["nf"]["nonce"], chat.nonce);
    assert_eq!(kind(printed(&chat, Some(Transport::Human))), Kind::Usage);
    world.pass(RELAY_TTL_MS);
    let person = world.export(&handoff, Some("jane"), Some(Family::Human)).unwrap();
    let person = read(&world.file(&person));
    assert!(printed(&person, None).unwrap().1.contains("NF FORM"));
    assert_eq!(kind(printed(&person, Some(Transport::Chat))), Kind::Usage);
}

#[test]
fn an_answer_comes_home_is_bound_once_and_says_where_it_came_from() {
    for family in [Family::PeerChat, Family::Human, Family::LocalAgent, Family::ServiceJob] {
        let mut world = World::new();
        let handoff = world.waiting(JOB);
        let out = world.export(&handoff, Some("jane"), Some(family)).unwrap();
        let export = read(&world.file(&out));
        let file = answered(&world.file(&out), &filled(&export, "reject")).unwrap();
        assert!(!file.contains("Certainly"), "what stood around the answer stays far away");
        let bound = world.import(&file).unwrap();
        assert_eq!((bound.standing, bound.steps), (Standing::Valid, vec!["prose_stripped".to_owned()]));
        let result: StoredResult = world.state.get(&bound.result).unwrap();
        let from = result.provenance.imported_from.clone().unwrap();
        assert_eq!(from.file, Hash::of(file.as_bytes()));
        assert_eq!((result.provenance.family, from.nf.as_str()), (family, "0.1.0"));
        let again = world.import(&file).unwrap();
        assert!(again.duplicate && again.result == bound.result && world.last.is_empty());
        let gate = bound.gate.to_string();
        world.consume(&bound.result, &gate, None).unwrap();
        world.consume(&bound.result, &gate, None).unwrap();
        assert_eq!(world.words(), Vec::<String>::new(), "consumed once");
        let other = judged(&export, "accept");
        assert_eq!(kind(world.import(&other)), Kind::ResultConflict);
        assert!(!world.last.is_empty());
        assert_eq!(kind(world.import(&other)), Kind::ResultConflict);
        assert!(world.last.is_empty(), "the same file says nothing new");
        assert_eq!(world.state.history(&out_fingerprint(&world, &out)).conflicts, 1);
    }
}

fn out_fingerprint(world: &World, out: &Exported) -> String {
    world.state.get::<Job>(out.job.as_ref().unwrap()).unwrap().fingerprint
}

/// Another answer to an export, taken far away where nobody knows that it has one.
fn judged(export: &Export, verdict: &str) -> String {
    answered(&sealed(export).0, &filled(export, verdict)).unwrap()
}

#[test]
fn what_is_pasted_at_home_is_no_answer_to_an_exported_packet() {
    let (mut world, _, file) = exported(JOB);
    let export = read(&file);
    let error = world.reply(&filled(&export, "accept")).unwrap_err();
    assert_eq!(error.details["failed"], json!(["provenance"]));
    assert_eq!(world.words(), ["reply.received"], "and it is recorded, for the verdict that it shows");
    world.import(&judged(&export, "accept")).unwrap();
}

#[test]
fn stale_surplus_invalid_and_undecided_answers_are_counted_once_for_each_file() {
    let (mut world, handoff, file) = exported(JOB);
    let export = read(&file);
    world.pass(RELAY_TTL_MS);
    let second = world.export(&handoff, Some("joe"), None).unwrap();
    let stale = judged(&export, "accept");
    for events in [2, 0] {
        assert_eq!(kind(world.import(&stale)), Kind::LeaseLost);
        assert_eq!(world.last.len(), events);
    }
    let export = read(&world.file(&second));
    let fingerprint = out_fingerprint(&world, &second);
    let mut undecided = filled(&export, "accept");
    undecided["status"] = json!("cannot_judge");
    undecided.as_object_mut().unwrap().remove("output");
    let file = given(&export, &undecided);
    assert_eq!(kind(world.import(&file)), Kind::ExecutionFailed);
    assert_eq!(kind(world.import(&file)), Kind::LeaseLost);
    assert!(world.last.is_empty());
    let history = world.state.history(&fingerprint);
    assert_eq!((history.late, history.cannot_judge, history.opened), (1, 1, 2));
    assert_eq!(history.verdicts, ["accept"], "a late verdict is remembered");
    let third = world.export(&handoff, Some("joe"), None).unwrap();
    let export = read(&world.file(&third));
    for number in 1..=MAX_INVALID {
        let (whole, hash) = Export::read(world.file(&third).as_bytes()).unwrap();
        let mut returned =
            take(&whole, hash, filled(&export, "accept").to_string().as_bytes(), "0.1.0", None);
        returned.as_mut().unwrap().returned.answer["output"]["verdict"] = json!(format!("odd {number}"));
        let file = sealed(&returned.unwrap().returned).0;
        assert_eq!(kind(world.import(&file)), Kind::SemanticInvalid);
        assert_eq!(world.state.history(&fingerprint).invalid, number);
    }
    assert_eq!(world.attempt_state(&third), AttemptState::Failed, "it outlives four, and not the fifth");
}

fn given(export: &Export, answer: &Value) -> String {
    answered(&sealed(export).0, answer).unwrap()
}

#[test]
fn a_second_valid_answer_to_the_question_is_surplus() {
    let (mut world, handoff, file) = exported(JOB);
    let export = read(&file);
    let asked: Handoff = world.state.get(&handoff).unwrap();
    let job: Job = world.state.get(asked.job.as_ref().unwrap()).unwrap();
    world.pass(RELAY_TTL_MS);
    let other = world.start();
    let sent = world.packet(&other, &job, Transport::Chat).unwrap();
    let answer = world.answer(&sent, "reject");
    world.reply(&answer).unwrap();
    assert_eq!(kind(world.import(&judged(&export, "reject"))), Kind::Surplus);
    assert_eq!(kind(world.import(&judged(&export, "reject"))), Kind::Surplus);
    assert!(world.last.is_empty());
    assert_eq!(kind(world.export(&handoff, Some("jane"), None)), Kind::AlreadyJudged);
}
