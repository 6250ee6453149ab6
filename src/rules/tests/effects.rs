//! Effects: planned once, started at most once, done only where the path proves it.

use super::*;
use crate::model::checkpoint::Boundary;
use crate::model::effect::{Effect, EffectState, FileState, Witness};
use crate::model::event::ConflictKind;
use crate::model::id::EffectId;
use crate::model::job::Polarity;
use crate::model::result::Receipt;
use crate::rules::effect::{
    Application, EffectStatus, Plan, Planned, Seen, Stepped, begin, clear, done, drop_what_is_over, plan,
    status,
};

pub(super) fn file(text: &str) -> FileState {
    FileState::File(Hash::of(text.as_bytes()))
}

pub(super) fn old() -> Seen {
    Ok(file("old"))
}

pub(super) fn new() -> Seen {
    Ok(file("new"))
}

/// A plan for `canon.md` from "old" to "new".
fn input(world: &World, session: &SessionId, key: &str) -> Plan {
    let holder = world.get_session(session);
    Plan {
        key: name(key),
        path: "canon.md".to_owned(),
        before: old(),
        twin: None,
        required: Hash::of(b"new"),
        receipts: Vec::new(),
        contested: Vec::new(),
        bindings: world.bindings(&holder),
        acting: (holder, world.run(session)),
    }
}

fn planned(world: &mut World, input: Plan) -> Result<Planned> {
    world.act(|turn, _| plan(turn, input))
}

/// A world with one effect, `settle`, as far as this state.
pub(super) fn at(state: EffectState) -> (World, SessionId, EffectId) {
    let mut world = World::new();
    let session = world.start();
    let plan = input(&world, &session, "settle");
    let id = planned(&mut world, plan).unwrap().effect.id;
    match state {
        EffectState::Planned => {}
        EffectState::Started => drop(start(&mut world, &id, &old()).unwrap()),
        EffectState::Done => drop(prove(&mut world, &id, &new()).unwrap()),
        EffectState::Cleared => drop(give_up(&mut world, &id).unwrap()),
    }
    assert_eq!(effect(&world, &id).state, state);
    (world, session, id)
}

pub(super) fn effect(world: &World, id: &EffectId) -> Effect {
    world.state.get(id).unwrap()
}

fn start(world: &mut World, id: &EffectId, now: &Seen) -> Result<Stepped> {
    let held = effect(world, id);
    let run = world.run(&held.session);
    world.act(|turn, _| begin(turn, held, &run, now, None))
}

fn prove(world: &mut World, id: &EffectId, now: &Seen) -> Result<Stepped> {
    let held = effect(world, id);
    let session = world.get_session(&held.session);
    world.act(|turn, _| done(turn, held, Witness::Hand, &session, now))
}

fn give_up(world: &mut World, id: &EffectId) -> Result<Stepped> {
    let held = effect(world, id);
    let session = world.get_session(&held.session);
    world.act(|turn, _| clear(turn, held, "nothing was written", &session, (&old(), false)))
}

pub(super) const STATES: [EffectState; 4] =
    [EffectState::Planned, EffectState::Started, EffectState::Done, EffectState::Cleared];

/// What may stand at the path.
fn sights() -> [Seen; 5] {
    [old(), new(), Ok(file("other")), Ok(FileState::ABSENT), Err("permission denied".to_owned())]
}

#[test]
fn a_status_is_log_and_path_together() {
    use EffectStatus::{Applied, Diverged, Started, Untouched};
    let table = [
        (EffectState::Planned, [Untouched, Applied, Diverged, Diverged, Diverged]),
        (EffectState::Started, [Started, Started, Started, Started, Started]),
        (EffectState::Done, [Diverged, Applied, Diverged, Diverged, Diverged]),
        (EffectState::Cleared, [Untouched, Applied, Diverged, Diverged, Diverged]),
    ];
    for (state, wanted) in table {
        let (world, _, id) = at(state);
        let got = sights().map(|now| status(&effect(&world, &id), &now));
        assert_eq!(got, wanted, "{state}");
    }
}

/// What a step comes to: done now, done already, or refused.
fn came(outcome: Result<Stepped>) -> std::result::Result<Application, Kind> {
    outcome.map(|stepped| stepped.application).map_err(|error| error.kind)
}

/// The outcome of a step for each state and each sight of the path.
fn all(step: impl Fn(&mut World, &EffectId, &Seen) -> Result<Stepped>) -> Vec<Vec<Outcome>> {
    let row = |state| {
        sights()
            .iter()
            .map(|now| {
                let (mut world, _, id) = at(state);
                let before = world.state.clone();
                let came = came(step(&mut world, &id, now));
                let wrote = world.state != before;
                assert_eq!(wrote, came == Ok(Application::New), "{state} {now:?}: {came:?}");
                came
            })
            .collect()
    };
    STATES.into_iter().map(row).collect()
}

type Outcome = std::result::Result<Application, Kind>;
const NEW: Outcome = Ok(Application::New);
const ALREADY: Outcome = Ok(Application::Already);
const REFUSED: Outcome = Err(Kind::EffectRefused);
const UNCERTAIN: Outcome = Err(Kind::Uncertain);
const DIVERGED: Outcome = Err(Kind::Diverged);

#[test]
fn a_command_is_started_only_for_an_untouched_plan() {
    let got = all(start);
    assert_eq!(got[0], [NEW, REFUSED, DIVERGED, DIVERGED, DIVERGED], "planned");
    assert_eq!(got[1], [UNCERTAIN; 5], "started: never again");
    assert_eq!(got[2], [ALREADY; 5], "done: the record wins over the file");
    assert_eq!(got[3], [REFUSED; 5], "cleared");
}

#[test]
fn an_effect_is_done_only_where_its_path_proves_it() {
    let got = all(prove);
    assert_eq!(got[0], [REFUSED, NEW, DIVERGED, DIVERGED, DIVERGED], "planned");
    assert_eq!(got[1], [UNCERTAIN, NEW, UNCERTAIN, UNCERTAIN, UNCERTAIN], "started");
    assert_eq!(got[2], [ALREADY; 5], "done");
    assert_eq!(got[3], [REFUSED; 5], "cleared");
}

#[test]
fn what_is_done_is_never_cleared_and_all_else_may_be() {
    let got = all(|world, id, _| give_up(world, id));
    assert_eq!(got, [[NEW; 5], [NEW; 5], [REFUSED; 5], [ALREADY; 5]]);
}

#[test]
fn a_plan_saves_a_point_before_the_write_that_lists_it() {
    let (world, session, id) = at(EffectState::Planned);
    assert_eq!(world.words(), ["effect.planned", "checkpoint.saved"]);
    let checkpoint = world.get_session(&session).checkpoint.unwrap();
    let checkpoint: Checkpoint = world.state.get(&checkpoint).unwrap();
    assert_eq!(checkpoint.boundary, Boundary::BeforeWrite);
    assert_eq!(world.bindings(&world.get_session(&session)).effects, [id]);
}

#[test]
fn the_same_plan_is_the_same_effect_and_another_is_a_conflict() {
    for state in [EffectState::Planned, EffectState::Started, EffectState::Done] {
        let (mut world, session, id) = at(state);
        let before = world.state.clone();
        let mut same = input(&world, &session, "settle");
        // What stands at the path is no part of a plan: a repeat may come after the write.
        same.before = new();
        let again = planned(&mut world, same).unwrap();
        assert_eq!((again.application, again.effect.id), (Application::Already, id.clone()));
        assert_eq!(world.state, before, "nothing is written");
        let changes: [fn(&mut Plan); 2] =
            [|plan| plan.path = "other.md".to_owned(), |plan| plan.required = Hash::of(b"newer")];
        for change in changes {
            let mut other = input(&world, &session, "settle");
            change(&mut other);
            let (path, required) = (other.path.clone(), other.required);
            let conflicts = world.state.meta().conflicts;
            let error = planned(&mut world, other).expect_err("a refusal");
            assert_eq!((error.kind, error.kind.exit()), (Kind::EffectConflict, 4));
            assert_eq!(world.words(), ["conflict.refused"]);
            assert_eq!(world.state.meta().conflicts, conflicts + 1);
            let Some(Event::ConflictRefused { kind, effect, value, .. }) = world.last.first() else {
                panic!("no conflict")
            };
            assert_eq!((*kind, effect.as_ref()), (ConflictKind::Effect, Some(&id)));
            let kept: Value = serde_json::from_slice(&world.blobs[&value.unwrap()]).unwrap();
            assert_eq!((&kept["path"], &kept["required"]), (&json!(path), &json!(required)));
        }
        assert_eq!(effect(&world, &id).state, state, "no entity changes");
    }
}

/// A receipt for an answer with this verdict.
fn receipt(world: &mut World, session: &SessionId, verdict: &str) -> Receipt {
    let job = world.freeze(session, JOB, verdict);
    let sent = world.packet(session, &job, Transport::Chat).unwrap();
    let answer = world.answer(&sent, verdict);
    let result = world.reply(&answer).unwrap().result;
    let consumed = world.consume(&result, "settler", None).unwrap();
    world.state.get(&consumed.receipt).unwrap()
}

#[test]
fn a_write_never_rests_on_a_negative_receipt() {
    let mut world = World::new();
    let session = world.start();
    let yes = receipt(&mut world, &session, "accept");
    let no = receipt(&mut world, &session, "reject");
    assert_eq!(no.outcome.polarity, Polarity::Fail);
    let mut refused = input(&world, &session, "settle");
    refused.receipts = vec![yes.clone(), no.clone()];
    let error = planned(&mut world, refused).expect_err("a refusal");
    assert_eq!(error.kind, Kind::EffectRefused);
    assert!(error.message.contains(no.id.to_string().as_str()));
    assert!(error.next_step().contains("repair.story"), "{}", error.next_step());
    let mut twice = input(&world, &session, "settle");
    twice.receipts = vec![yes.clone(), yes.clone()];
    twice.contested = vec![yes.id.clone()];
    let good = planned(&mut world, twice).unwrap();
    assert_eq!(good.effect.receipts, std::slice::from_ref(&yes.id));
    assert_eq!(good.contested, std::slice::from_ref(&yes.id), "told");
    let resting: Vec<EffectId> = world.state.effects_of_receipt(&yes.id).map(|effect| effect.id).collect();
    assert_eq!(resting, [good.effect.id]);
    assert_eq!(world.state.effects_of_receipt(&no.id).count(), 0);
    let without = input(&world, &session, "settle");
    assert_eq!(kind(planned(&mut world, without)), Kind::EffectConflict, "receipts are part of the plan");
}

#[test]
fn a_plan_needs_something_to_write_and_a_path_that_is_free() {
    let mut world = World::new();
    let session = world.start();
    let mut nothing = input(&world, &session, "settle");
    nothing.before = new();
    assert_eq!(kind(planned(&mut world, nothing)), Kind::EffectRefused);
    let mut unreadable = input(&world, &session, "settle");
    unreadable.before = Err("permission denied".to_owned());
    assert_eq!(kind(planned(&mut world, unreadable)), Kind::BadInput);
    for (state, wanted) in [
        (EffectState::Planned, Some(Kind::EffectRefused)),
        (EffectState::Started, Some(Kind::Uncertain)),
        (EffectState::Done, None),
        (EffectState::Cleared, None),
    ] {
        let (mut world, session, _) = at(state);
        let mut second = input(&world, &session, "second");
        second.required = Hash::of(b"newer");
        assert_eq!(planned(&mut world, second).err().map(|error| error.kind), wanted, "{state}");
    }
}

#[test]
fn a_cleared_key_is_planned_anew_from_what_stands_there_then() {
    let (mut world, session, first) = at(EffectState::Cleared);
    let mut again = input(&world, &session, "settle");
    again.before = Ok(file("half"));
    let second = planned(&mut world, again).unwrap();
    assert_eq!(second.application, Application::New);
    assert_eq!((second.effect.previous, second.effect.before), (Some(first.clone()), file("half")));
    let id = second.effect.id;
    let listed = world.bindings(&world.get_session(&session)).effects;
    assert_eq!(listed, std::slice::from_ref(&id), "the cleared one is out");
    assert_eq!(came(start(&mut world, &id, &Ok(file("half")))), NEW);
    assert_eq!(effect(&world, &first).state, EffectState::Cleared);
    let (mut world, session, _) = at(EffectState::Cleared);
    let mut written = input(&world, &session, "settle");
    written.before = new();
    assert_eq!(kind(planned(&mut world, written)), Kind::EffectRefused, "it had been written after all");
}

#[test]
fn a_later_write_on_the_path_goes_on_from_the_one_before() {
    let followed = |world: &World, id: &EffectId| {
        (status(&effect(world, id), &Ok(file("newest"))), effect(world, id).stands())
    };
    let second = |world: &mut World, session: &SessionId, before: Seen| {
        let mut second = input(world, session, "second");
        (second.before, second.required) = (before, Hash::of(b"newest"));
        planned(world, second).unwrap().effect.id
    };
    let (mut world, session, first) = at(EffectState::Done);
    let next = second(&mut world, &session, new());
    assert_eq!(followed(&world, &first), (EffectStatus::Applied, false));
    assert_eq!(effect(&world, &next).follows, Some(first.clone()));
    let listed = |world: &World| world.bindings(&world.get_session(&session)).effects;
    assert_eq!(listed(&world), [first.clone(), next.clone()], "the later one may still be given up");
    // A plan that is given up before anything was run leaves the path to the one before it.
    give_up(&mut world, &next).unwrap();
    assert_eq!(followed(&world, &first), (EffectStatus::Diverged, true));
    assert_eq!(world.state.effect_on("canon.md").unwrap().id, first);
    // One that was started may have written.
    let (mut world, session, first) = at(EffectState::Done);
    let next = second(&mut world, &session, new());
    start(&mut world, &next, &new()).unwrap();
    let mut bindings = world.bindings(&world.get_session(&session));
    drop_what_is_over(&world.state, &mut bindings);
    assert_eq!(bindings.effects, std::slice::from_ref(&next));
    give_up(&mut world, &next).unwrap();
    assert_eq!(followed(&world, &first), (EffectStatus::Applied, false));
    // One that found something else there proves nothing of the one before.
    let (mut world, session, first) = at(EffectState::Done);
    second(&mut world, &session, Ok(file("by hand")));
    assert_eq!(followed(&world, &first), (EffectStatus::Diverged, true));
}

#[test]
fn long_reasons_are_kept_in_a_blob() {
    let (mut world, session, id) = at(EffectState::Started);
    let (held, acting) = (effect(&world, &id), world.get_session(&session));
    let reason = "x".repeat(1000);
    world.act(|turn, _| clear(turn, held, &reason, &acting, (&old(), false))).unwrap();
    let hash = Hash::of(reason.as_bytes());
    assert_eq!(effect(&world, &id).reason, Some(crate::model::event::Text::Blob(hash)));
    assert!(world.blobs.contains_key(&hash));
}

#[test]
fn an_effect_is_not_cleared_while_its_command_runs() {
    for (state, refused) in
        [(EffectState::Planned, true), (EffectState::Started, true), (EffectState::Cleared, false)]
    {
        let (mut world, session, id) = at(state);
        let (held, acting) = (effect(&world, &id), world.get_session(&session));
        let cleared = world.act(|turn, _| clear(turn, held, "gone", &acting, (&old(), true)));
        assert_eq!(cleared.err().map(|error| error.kind), refused.then_some(Kind::Uncertain), "{state}");
        assert_eq!(effect(&world, &id).state, state);
    }
}

#[test]
fn one_file_under_two_names_has_one_open_effect() {
    let (mut world, session, id) = at(EffectState::Planned);
    let twin = effect(&world, &id);
    let other =
        Plan { path: "other.md".to_owned(), twin: Some(twin.clone()), ..input(&world, &session, "o") };
    let refused = planned(&mut world, other).unwrap_err();
    assert_eq!(refused.kind, Kind::EffectRefused);
    assert!(refused.cause.unwrap().contains("settle"));
    let run = world.run(&session);
    let begun = world.act(|turn, _| begin(turn, twin.clone(), &run, &old(), Some(&twin)));
    assert_eq!(begun.unwrap_err().kind, Kind::EffectRefused, "linked after both were planned");
}
