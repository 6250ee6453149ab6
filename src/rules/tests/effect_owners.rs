//! Who answers for an effect: the session that planned it and those that come from it, and each resume.

use super::effects::{STATES, at, effect, file, new, old};
use super::resuming::{idle, input as resuming, resumed};
use super::*;
use crate::model::effect::{Effect, EffectState};
use crate::model::id::EffectId;
use crate::rules::effect::{of_resume, own};
use crate::rules::session::{Before, start_from};

/// A session that was begun where another one was left.
fn heir(world: &mut World, of: &SessionId) -> SessionId {
    let course = world.course(of);
    world
        .act(|turn, _| {
            let to = crate::model::session::Status::Stale;
            crate::rules::session::move_to(turn, course, to, None, Bindings::default())
        })
        .unwrap();
    let before = Before { session: world.get_session(of), run: None, cursor: None, outstanding: Vec::new() };
    world.act(|turn, _| start_from(turn, before, Bindings::default())).unwrap().session
}

#[test]
fn only_the_planner_and_who_comes_from_it_may_act() {
    let (mut world, planner, id) = at(EffectState::Planned);
    let stranger = world.start();
    let heir = heir(&mut world, &planner);
    let may = |id: &SessionId, effect: &Effect| own(&world.state, &world.get_session(id), effect);
    let effect = effect(&world, &id);
    assert!(may(&planner, &effect).is_ok() && may(&heir, &effect).is_ok());
    let error = may(&stranger, &effect).expect_err("a refusal");
    assert_eq!(error.kind, Kind::EffectRefused);
    assert!(error.next_step().contains(planner.to_string().as_str()));
}

#[test]
fn a_resume_answers_for_what_it_lists_and_for_every_uncertain_write_before_it() {
    for state in STATES {
        let (mut world, planner, id) = at(state);
        let listed = |world: &World, session: &SessionId| {
            let holder = world.get_session(session);
            let effects = of_resume(&world.state, &holder, &world.bindings(&holder).effects);
            effects.into_iter().map(|effect| effect.id).collect::<Vec<_>>()
        };
        let own: &[EffectId] = if state == EffectState::Cleared { &[] } else { std::slice::from_ref(&id) };
        assert_eq!(listed(&world, &planner), own, "{state}");
        let stranger = world.start();
        assert!(listed(&world, &stranger).is_empty());
        let heir = heir(&mut world, &planner);
        let uncertain: &[EffectId] = if state == EffectState::Started { own } else { &[] };
        assert_eq!(listed(&world, &heir), uncertain, "{state}: what is uncertain is not left behind");
    }
}

#[test]
fn a_resume_goes_on_only_over_proved_writes() {
    use EffectState::{Done, Planned, Started};
    for (state, now, goes) in [
        (Planned, old(), true),
        (Planned, new(), true),
        (Planned, Ok(file("other")), false),
        (Started, old(), false),
        (Started, new(), false),
        (Started, Ok(file("other")), false),
        (Done, new(), true),
        (Done, old(), false),
        (Done, Err("permission denied".to_owned()), false),
    ] {
        let (effects, _, id) = at(state);
        let (mut world, session) = idle();
        let mut resuming = resuming(&world, &session);
        resuming.effects.push((effect(&effects, &id), now.clone()));
        let before = world.state.clone();
        let came = resumed(&mut world, resuming);
        assert_eq!(came.is_ok(), goes, "{state} {now:?}");
        let Err(error) = came else { continue };
        assert_eq!((error.kind, error.kind.exit()), (Kind::Stale, 9));
        assert_eq!(error.details["failed"], json!(["effects"]));
        let word = if state == Started { "uncertain" } else { "diverged" };
        assert!(error.cause.as_ref().unwrap().contains(word), "{error:?}");
        assert!(error.next_step().contains("settle each effect"), "{}", error.next_step());
        assert_eq!(world.state, before);
    }
}
