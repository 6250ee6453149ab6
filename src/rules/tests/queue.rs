//! The queue: who gets which work, who holds it, and what becomes of it when the holder is late.

mod ends;
mod model;
mod seen;
mod waits;
mod walks;

use super::*;
use crate::model::handoff::{AttemptState, Handoff, HandoffState};
use crate::model::id::{AttemptId, HandoffId};
use crate::model::job::Family;
use crate::model::run::GateStatus;
use crate::model::session::{Host, Role, Status};
use crate::rules::attempt::{Asking, Claimed, Secret, claim, claim_again};
use crate::rules::claim::{Offer, Wish, find};
use crate::rules::handoff::{self, Opening, Queued, TakenBack, Terms, Work};
use crate::rules::holding::{self, Failure, FailureClass, Held};

const MINUTE: u64 = 60_000;
const TTL: u64 = 15 * MINUTE;

fn terms() -> Terms {
    Terms::of(Role::SemanticReviewer)
}

fn wish() -> Wish {
    Wish {
        class: Role::SemanticReviewer,
        handoff: None,
        resource: None,
        job: None,
        gate: None,
        worker: name("worker"),
        family: Family::ServiceJob,
        ttl_ms: None,
        session: None,
        offer: Offer::by_hand(),
    }
}

impl World {
    fn open(&mut self, id: &SessionId, job: &Job, terms: Terms, wait: bool) -> Result<Queued> {
        let session = self.get_session(id);
        let history = self.state.history(&job.fingerprint);
        let opening = Opening {
            run: current_run(&self.state, &session),
            bindings: self.bindings(&session),
            own: self.state.outstanding(id).into_iter().find(|handoff| handoff.job.as_ref() == Some(&job.id)),
            active: self.state.active(&history).collect(),
            history,
            session,
            work: Work::Question(job),
            terms,
            wait,
        };
        self.act(|turn, _| handoff::open(turn, opening))
    }

    /// A question of its own in the queue, by a session of its own.
    fn queued(&mut self, text: &str, terms: Terms) -> Queued {
        let session = self.start();
        let job = self.freeze(&session, JOB, text);
        self.open(&session, &job, terms, false).unwrap()
    }

    fn asking<T>(&self, handoff: &Handoff, with: impl FnOnce(&Asking<'_>) -> T) -> T {
        let source = self.get_session(&handoff.source_session);
        let frozen = self.asked(handoff);
        let artifacts: Vec<Vec<u8>> =
            frozen.artifacts().iter().map(|artifact| self.blobs[&artifact.hash].clone()).collect();
        with(&Asking { source: &source, frozen: &frozen, artifacts: &artifacts })
    }

    fn claim(&mut self, wish: &Wish) -> Result<(Claimed, Secret)> {
        let mut secret = Secret::default();
        let claimed = self.act(|turn, world| match find(turn, wish)? {
            Ok(found) => {
                let handoff = found.handoff.clone();
                let (decision, kept) = world.asking(&handoff, |asking| claim(turn, wish, found, asking))?;
                secret = kept;
                Ok(decision)
            }
            Err((events, error)) => Ok(Decision::refused(events, error)),
        })?;
        Ok((claimed, secret))
    }

    fn hold(
        &mut self,
        id: &AttemptId,
        act: impl FnOnce(&mut Turn<'_>, &Attempt, &Handoff) -> Result<Decision<Held>>,
    ) -> Result<Held> {
        let attempt: Attempt = self.state.get(id).unwrap();
        let handoff: Handoff = self.state.get(&attempt.handoff).unwrap();
        self.act(|turn, _| act(turn, &attempt, &handoff))
    }

    fn renew(&mut self, id: &AttemptId) -> Result<Held> {
        self.hold(id, |turn, attempt, handoff| holding::renew(turn, attempt, handoff, None))
    }

    fn release(&mut self, id: &AttemptId) -> Result<Held> {
        self.hold(id, |turn, attempt, handoff| holding::release(turn, attempt, handoff))
    }

    fn fail(&mut self, id: &AttemptId, retryable: bool, retry_after_ms: Option<u64>) -> Result<Held> {
        let (class, reason) = (FailureClass::Failed, name("crash"));
        let failure = Failure { class, reason, retryable, retry_after_ms };
        self.hold(id, |turn, attempt, handoff| holding::fail(turn, attempt, handoff, &failure))
    }

    fn take_back(
        &mut self,
        id: &HandoffId,
        act: impl FnOnce(&Turn<'_>, &Session, &Handoff) -> Result<Decision<TakenBack>>,
    ) -> Result<TakenBack> {
        let handoff = self.handoff(id);
        let session = self.get_session(&handoff.source_session);
        self.act(|turn, _| act(turn, &session, &handoff))
    }

    fn handoff(&self, id: &HandoffId) -> Handoff {
        self.state.get(id).unwrap()
    }

    /// The answer of a worker to the packet that it got.
    fn complete(&mut self, claimed: &Claimed, secret: &Secret, verdict: &str) -> Result<Bound> {
        let frozen = self.asked(&self.handoff(&claimed.handoff));
        let mut value = blank(&frozen, &claimed.handoff, &secret.nonce, Transport::Worker);
        value["worker"] = json!({"provider": "peer", "model": "m1"});
        value["output"] = json!({"verdict": verdict, "evidence": ["line one"]});
        self.reply(&value)
    }
}

#[test]
fn opening_queues_the_question_and_the_session_waits_only_where_it_is_to() {
    for (wait, status, boundary) in
        [(false, Status::Running, "before_long_work"), (true, Status::AwaitingExternal, "external_wait")]
    {
        let mut world = World::new();
        let session = world.start();
        let job = world.freeze(&session, JOB, "text\n");
        let queued = world.open(&session, &job, terms(), wait).unwrap();
        let words = world.words();
        assert_eq!(words[..2], ["handoff.opened", "gate.moved"]);
        assert_eq!(words.last().map(String::as_str), Some("checkpoint.saved"));
        assert_eq!((queued.status, world.get_session(&session).status), (status, status));
        let checkpoint: Checkpoint =
            world.state.get(&world.get_session(&session).checkpoint.unwrap()).unwrap();
        assert_eq!(checkpoint.boundary.word(), boundary);
        assert_eq!(world.run(&session).pending.gates[&queued.gate].status, GateStatus::Pending);
        let again = world.open(&session, &job, terms(), wait).unwrap();
        assert!(again.again && world.last.is_empty());
        assert_eq!(again.handoff, queued.handoff);
        let other = Terms { class: Role::Specialist, ..terms() };
        assert_eq!(kind(world.open(&session, &job, other, wait)), Kind::Usage);
        let other = Terms { gate: Some(name("another")), ..terms() };
        assert_eq!(kind(world.open(&session, &job, other, wait)), Kind::Usage);
    }
}

#[test]
fn terms_that_make_no_sense_are_refused() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    for wrong in [
        Terms { ttl_ms: 999, ..terms() },
        Terms { ttl_ms: 30 * 24 * 60 * MINUTE + 1, ..terms() },
        Terms { priority: 10, ..terms() },
        Terms { max_attempts: 0, ..terms() },
    ] {
        assert_eq!(kind(world.open(&session, &job, wrong, false)), Kind::Usage);
    }
    assert_eq!(kind(world.claim(&Wish { ttl_ms: Some(10), ..wish() })), Kind::Usage);
}

#[test]
fn claims_go_by_priority_and_then_by_age() {
    let mut world = World::new();
    let mut opened = Vec::new();
    for (at, priority) in [0, 5, 9, 5, 0].into_iter().enumerate() {
        world.pass(1);
        opened.push(world.queued(&format!("text {at}\n"), Terms { priority, ..terms() }).handoff);
    }
    let claimed: Vec<HandoffId> = (0..5).map(|_| world.claim(&wish()).unwrap().0.handoff).collect();
    let order = [2, 1, 3, 0, 4].map(|at: usize| opened[at].clone());
    assert_eq!(claimed, order);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    assert!(world.last.is_empty(), "a claim that finds nothing writes nothing");
}

#[test]
fn filters_and_terms_decide_who_gets_what() {
    let mut world = World::new();
    let plain = world.queued("plain\n", terms());
    let gated = world.queued("gated\n", Terms { gate: Some(name("ci/gate")), ..terms() });
    let special = world.queued("special\n", Terms { class: Role::Specialist, ..terms() });
    let job = world.handoff(&special.handoff).job;
    let cases: Vec<(Wish, Option<&HandoffId>)> = vec![
        (Wish { gate: Some(name("ci/gate")), ..wish() }, Some(&gated.handoff)),
        (Wish { gate: Some(name("no/gate")), ..wish() }, None),
        (Wish { resource: Some(name("other")), ..wish() }, None),
        (Wish { job: job.clone(), ..wish() }, None),
        (Wish { job, class: Role::Specialist, ..wish() }, Some(&special.handoff)),
        (Wish { class: Role::Writer, ..wish() }, None),
        (Wish { resource: Some(name("novel/pride")), ..wish() }, Some(&plain.handoff)),
    ];
    for (wish, want) in cases {
        let got = world.claim(&wish).ok().map(|(claimed, _)| claimed.handoff);
        assert_eq!(got.as_ref(), want, "{wish:?}");
    }
}

#[test]
fn a_family_that_the_job_excludes_gets_nothing_and_is_told_why() {
    let mut world = World::new();
    let session = world.start();
    let text = JOB.replace("\"independent\": true", "\"independent\": true, \"families\": [\"peer_chat\"]");
    let closed = world.freeze(&session, &text, "closed\n");
    let closed = world.open(&session, &closed, terms(), false).unwrap();
    let error = world.claim(&wish()).unwrap_err();
    assert_eq!(error.kind, Kind::Pending);
    assert!(error.cause.unwrap().contains(closed.handoff.to_string().as_str()));
    let named = Wish { handoff: Some(world.handoff(&closed.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::ExecutionUnavailable);
    let behind = world.queued("behind\n", terms());
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, behind.handoff, "it starves nobody behind it");
    let chat = Wish { family: Family::PeerChat, ..wish() };
    assert_eq!(world.claim(&chat).unwrap().0.handoff, closed.handoff);
}

#[test]
fn a_claim_makes_an_attempt_with_a_session_that_keeps_nothing() {
    let mut world = World::new();
    let queued = world.queued("text\n", terms());
    let (claimed, secret) = world.claim(&Wish { family: Family::LocalModel, ..wish() }).unwrap();
    assert_eq!((claimed.handoff.clone(), claimed.number), (queued.handoff, 1));
    let attempt: Attempt = world.state.get(&claimed.attempt).unwrap();
    assert_eq!(attempt.nonce_hash, Hash::of(secret.nonce.as_bytes()));
    assert_eq!(attempt.packet_hash, Hash::of(secret.packet.as_bytes()));
    assert!(secret.packet.contains(&secret.nonce) && attempt.family() == Family::LocalModel);
    let worker = world.get_session(&claimed.worker_session);
    assert_eq!((worker.host, worker.status), (Host::LocalModel, Status::Running));
    assert_eq!(worker.parent, Some(queued.session));
    let events = serde_json::to_string(&world.last).unwrap();
    assert!(!events.contains(&secret.nonce), "no record holds a nonce");
    let named = Wish { handoff: Some(world.handoff(&claimed.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::UnderReview);
    let bound = world.complete(&claimed, &secret, "reject").unwrap();
    assert_eq!(world.handoff(&claimed.handoff).state, HandoffState::Completed);
    let kept: StoredResult = world.state.get(&bound.result).unwrap();
    assert_eq!(kept.provenance.family, Family::LocalModel);
    assert_eq!(kept.provenance.name.as_deref(), Some("worker"));
    assert_eq!(world.get_session(&claimed.worker_session).status, Status::Completed);
    let held = world.renew(&claimed.attempt).unwrap();
    assert!(held.again && held.state == AttemptState::Completed && world.last.is_empty());
    let again = world.complete(&claimed, &secret, "reject").unwrap();
    assert!(again.duplicate && world.last.is_empty());
    assert_eq!(kind(world.complete(&claimed, &secret, "accept")), Kind::ResultConflict);
    assert_eq!(kind(world.fail(&claimed.attempt, true, None)), Kind::LeaseLost);
}

#[test]
fn work_is_not_claimed_before_its_moment() {
    let mut world = World::new();
    let from = world.now.wall.plus_millis(10 * MINUTE);
    let queued = world.queued("text\n", Terms { not_before: Some(from), priority: 9, ..terms() });
    let other = world.queued("other\n", terms());
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, other.handoff);
    let named = Wish { handoff: Some(world.handoff(&queued.handoff)), ..wish() };
    assert_eq!(kind(world.claim(&named)), Kind::Pending);
    world.pass(10 * MINUTE - 1);
    assert_eq!(kind(world.claim(&wish())), Kind::Pending);
    let late = world.queued("late\n", terms());
    world.pass(1);
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, queued.handoff, "what is due counts at once");
    assert_eq!(world.words()[0], "handoff.queued");
    assert_eq!(world.claim(&wish()).unwrap().0.handoff, late.handoff);
}

/// A moment as another clock shows it.
type Shift = (&'static str, fn(&mut Moment));

#[test]
fn a_stale_worker_loses_to_the_one_that_overtook_it_on_any_clock() {
    let shifts: [Shift; 6] = [
        ("the same clock", |now| now.boottime_ms += TTL),
        ("the wall an hour forward", |now| {
            now.boottime_ms += TTL;
            now.wall = now.wall.plus_millis(60 * MINUTE);
        }),
        ("the wall an hour back", |now| {
            now.boottime_ms += TTL;
            now.wall = Time::from_micros(now.wall.micros() - 3_600_000_000);
        }),
        ("another boot", |now| {
            now.boot_id = "other".to_owned();
            now.boottime_ms = 5;
            now.wall = now.wall.plus_millis(TTL + 30_000);
        }),
        ("another machine", |now| {
            now.machine = "other".to_owned();
            now.wall = now.wall.plus_millis(TTL + 30_000);
        }),
        ("a shifted time namespace", |now| {
            now.namespace = "other".to_owned();
            now.boottime_ms += 1_000_000_000;
            now.wall = now.wall.plus_millis(TTL + 30_000);
        }),
    ];
    for (clock, shift) in shifts {
        let mut world = World::new();
        world.queued("text\n", terms());
        let (old, old_secret) = world.claim(&wish()).unwrap();
        shift(&mut world.now);
        let (new, new_secret) = world.claim(&wish()).unwrap();
        assert_eq!((new.number, new.handoff.clone()), (2, old.handoff.clone()), "{clock}");
        assert_eq!(world.words()[..3], ["lease.expired", "attempt.ended", "session.moved"], "{clock}");
        assert_eq!(kind(world.renew(&old.attempt)), Kind::LeaseLost, "{clock}");
        assert_eq!(kind(world.release(&old.attempt)), Kind::LeaseLost, "{clock}");
        assert_eq!(kind(world.fail(&old.attempt, true, None)), Kind::LeaseLost, "{clock}");
        assert_eq!(kind(world.complete(&old, &old_secret, "reject")), Kind::LeaseLost, "{clock}");
        assert_eq!(world.words(), ["reply.received", "conflict.refused"], "{clock}");
        let Event::ConflictRefused { value: Some(kept), .. } = &world.last[1] else { panic!("{clock}") };
        assert!(world.blobs.contains_key(kept), "{clock}: nothing lost, nothing applied");
        let attempt: Attempt = world.state.get(&new.attempt).unwrap();
        assert_eq!(attempt.state, AttemptState::Active, "{clock}: the new one is unaffected");
        assert!(world.complete(&new, &new_secret, "reject").is_ok(), "{clock}");
    }
}

#[test]
fn a_clock_that_jumps_takes_no_lease_away_early() {
    let shifts: [Shift; 5] = [
        ("the wall an hour forward", |now| now.wall = now.wall.plus_millis(60 * MINUTE)),
        ("the wall ten years back", |now| {
            now.wall = Time::from_micros(now.wall.micros() - 315_360_000_000_000);
        }),
        ("another boot at once", |now| now.boot_id = "other".to_owned()),
        ("another machine at once", |now| now.machine = "other".to_owned()),
        ("another namespace, far ahead", |now| {
            now.namespace = "other".to_owned();
            now.boottime_ms += 1_000_000_000;
        }),
    ];
    for (clock, shift) in shifts {
        let mut world = World::new();
        world.queued("text\n", terms());
        let (claimed, secret) = world.claim(&wish()).unwrap();
        shift(&mut world.now);
        assert_eq!(kind(world.claim(&wish())), Kind::Pending, "{clock}");
        assert!(world.last.is_empty(), "{clock}");
        assert!(world.complete(&claimed, &secret, "accept").is_ok(), "{clock}");
    }
}
