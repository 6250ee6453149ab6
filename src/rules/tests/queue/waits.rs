//! Where a handoff stands, and why: each reason in the scene that gives it, and the order among several.

use super::*;
use crate::model::id::Id;
use crate::rules::waiting::{self, Stand};

impl World {
    fn stands(&self, id: &HandoffId) -> (Stand, String, String) {
        let looked = waiting::look(&self.state, &self.handoff(id), &self.now, &|time| time.to_string());
        (looked.stand, looked.why, looked.way)
    }

    /// Fails the test unless a handoff stands so, for a reason and with a way on that hold these words.
    #[track_caller]
    fn must_stand(&self, id: &HandoffId, stand: Stand, why: &str, way: &str) {
        let (got, because, on) = self.stands(id);
        assert_eq!(got, stand, "{because}");
        assert!(because.contains(why), "{because}");
        assert!(on.contains(way), "{on}");
    }
}

#[test]
fn a_handoff_stands_where_its_last_event_and_the_clock_have_left_it() {
    let mut world = World::new();
    let from = world.now.wall.plus_millis(MINUTE);
    let queued = world.queued("text\n", Terms { not_before: Some(from), max_attempts: 2, ..terms() });
    let id = queued.handoff;
    world.must_stand(&id, Stand::Later, &from.to_string(), "nf handoff cancel");
    world.pass(MINUTE);
    world.must_stand(&id, Stand::Ready, "semantic_reviewer", &format!("nf handoff claim {id} --class"));
    let (first, _) = world.claim(&wish()).unwrap();
    let until = first.expires_at.to_string();
    world.must_stand(&id, Stand::Leased, &format!("until {until}"), "--revoke");
    world.must_stand(&id, Stand::Leased, "worker holds it", "--revoke");
    world.pass(TTL);
    world.must_stand(&id, Stand::Reclaimable, &until, &format!("nf handoff claim {id}"));
    let (second, secret) = world.claim(&wish()).unwrap();
    world.must_stand(&id, Stand::Leased, second.attempt.as_str(), "--revoke");
    world.fail(&second.attempt, true, None).unwrap();
    world.must_stand(&id, Stand::Exhausted, "2 of 2 attempts", "--max-attempts 3");
    drop(secret);
    world.take_back(&id, handoff::cancel).unwrap();
    world.must_stand(&id, Stand::Cancelled, "cancelled", "nf handoff open j-");
}

#[test]
fn a_question_that_is_asked_elsewhere_or_has_its_answer_is_held_up_by_that() {
    let mut world = World::new();
    let (one, two) = (world.start(), world.start());
    let job = world.freeze(&one, JOB, "text\n");
    let first = world.open(&one, &job, terms(), false).unwrap().handoff;
    let second = world.open(&two, &job, terms(), false).unwrap().handoff;
    let (claimed, secret) = world.claim(&wish()).unwrap();
    let other = if claimed.handoff == first { second } else { first };
    let holder = claimed.handoff.to_string();
    world.must_stand(&other, Stand::UnderReview, &holder, &format!("nf show {holder}"));
    let named = Wish { handoff: Some(world.handoff(&other)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::UnderReview, "a claim says the same");
    let bound = world.complete(&claimed, &secret, "reject").unwrap();
    world.must_stand(&other, Stand::Judged, "(reject)", "nf consume");
    world.must_stand(&other, Stand::Judged, bound.result.as_str(), "nf consume");
    assert_eq!(kind(world.claim(&named)), Kind::AlreadyJudged);
}

#[test]
fn the_place_in_the_queue_is_that_of_the_claims() {
    let mut world = World::new();
    let low = world.queued("low\n", terms()).handoff;
    world.pass(1);
    let high = world.queued("high\n", Terms { priority: 5, ..terms() }).handoff;
    let other = world.queued("other\n", Terms { class: Role::Specialist, ..terms() }).handoff;
    let ahead = |world: &World, id| waiting::ahead(&world.state, &world.handoff(id)).map(|(ahead, _)| ahead);
    assert_eq!([&low, &high, &other].map(|id| ahead(&world, id)), [Some(1), Some(0), Some(0)]);
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, high);
    assert_eq!([&low, &high].map(|id| ahead(&world, id)), [Some(0), None]);
}
