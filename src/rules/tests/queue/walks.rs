//! Random walks of several workers and sessions through the queue, each step compared with a model of the
//! rules. `NF_TEST_CASES` (500) walks.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::model::{self, Said, Wanted};
use super::*;
use crate::model::id::JobId;

const CLASSES: [Role; 2] = [Role::SemanticReviewer, Role::Specialist];
const SESSIONS: usize = 2;
const QUESTIONS: usize = 3;
const GATES: [&str; 2] = ["gate/one", "gate/two"];
const TTLS: [u64; 3] = [1_000, 60_000, TTL];
const SECOND: i64 = 1_000;
const PASSES: [i64; 8] =
    [0, 1, SECOND, 30 * SECOND, 60 * SECOND, 91 * SECOND, 900 * SECOND, 604_800 * SECOND];

/// One command with the numbers that it draws its words from.
type Step = (u8, u8, u8, u8);

/// The world and the model of it, with the ids of the world by the numbers of the model.
struct Walk {
    world: World,
    model: model::Model,
    sessions: Vec<SessionId>,
    jobs: Vec<Job>,
    handoffs: Vec<HandoffId>,
    /// What each attempt's holder has: attempt, job, nonce and transport.
    attempts: Vec<(AttemptId, JobId, String, Transport)>,
}

/// One boot, another one of the same machine, and another time namespace of the first.
fn on_boot(now: &mut Moment, boot: usize) {
    let [machine, boot, namespace] = [["a", "b", "c"], ["a", "d", "c"], ["a", "b", "e"]][boot];
    (now.machine, now.boot_id, now.namespace) = (machine.into(), boot.into(), namespace.into());
}

/// The start of every walk: two sessions that have frozen the same questions.
fn start() -> Walk {
    let mut world = World::new();
    on_boot(&mut world.now, 0);
    let sessions: Vec<SessionId> = (0..SESSIONS).map(|_| world.start()).collect();
    let closed = JOB.replace("\"independent\": true", "\"independent\": true, \"families\": [\"peer_chat\"]");
    let text = |question: usize| if question == QUESTIONS - 1 { &closed } else { JOB };
    let mut jobs = Vec::new();
    for question in 0..QUESTIONS {
        for session in &sessions {
            let job = world.freeze(session, text(question), &format!("text {question}\n"));
            jobs.truncate(question);
            jobs.push(job);
        }
    }
    let questions = vec![model::Question::default(); QUESTIONS];
    let mut model = model::Model { questions, closed: QUESTIONS - 1, ..model::Model::default() };
    model.clock.wall = world.now.wall.millis();
    (model.clock.at, model.clock.latest) = (model.clock.wall, model.clock.wall);
    model.clock.boottime = 1_000;
    Walk { world, model, sessions, jobs, handoffs: Vec::new(), attempts: Vec::new() }
}

/// Done before or now, or the word of a refusal's kind.
type Got = std::result::Result<bool, String>;

/// What the rules said, in the model's words.
fn said<T>(outcome: Result<T>, again: impl FnOnce(&T) -> bool) -> (Option<T>, Got) {
    match outcome {
        Ok(done) => {
            let again = again(&done);
            (Some(done), Ok(again))
        }
        Err(error) => (None, Err(error.kind.word())),
    }
}

#[track_caller]
fn same(step: Step, got: Got, want: &Said) {
    let want = match want {
        Said::Done => Ok(false),
        Said::Again => Ok(true),
        Said::Refused(kind) => Err((*kind).to_owned()),
    };
    assert_eq!(got, want, "{step:?}: rules and model differ");
}

impl Walk {
    fn copy(&self) -> Self {
        let World { state, now, draws, blobs, packets, last, witness } = &self.world;
        let (state, now, draws) = (state.clone(), now.clone(), *draws);
        let (blobs, packets, last) = (blobs.clone(), packets.clone(), last.clone());
        let witness = witness.clone();
        Self {
            world: World { state, now, draws, blobs, packets, last, witness },
            model: self.model.clone(),
            sessions: self.sessions.clone(),
            jobs: self.jobs.clone(),
            handoffs: self.handoffs.clone(),
            attempts: self.attempts.clone(),
        }
    }

    /// Time passes, the wall is set, or the store comes to another boot.
    fn clock(&mut self, how: u8, much: u8) {
        let (world, clock) = (&mut self.world.now, &mut self.model.clock);
        let passes = PASSES[usize::from(much) % PASSES.len()];
        match how % 8 {
            6 => clock.wall += [3_600, -3_600, -1, 315_360_000, -315_360_000][usize::from(much) % 5] * SECOND,
            7 => (clock.boot, clock.boottime) = (usize::from(much) % 3, 1_000 + i64::from(much)),
            _ => {
                clock.wall += passes;
                clock.boottime += passes;
            }
        }
        clock.latest = clock.latest.max(clock.wall);
        world.wall = Time::from_micros(clock.wall * 1_000);
        world.boottime_ms = clock.boottime as u64;
        on_boot(world, clock.boot);
    }

    fn opens(&mut self, step: Step) {
        let (_, a, b, c) = step;
        let (session, question) = (usize::from(a) % SESSIONS, usize::from(a / 2) % QUESTIONS);
        let class = usize::from(b % 4 == 3);
        let gate = (b / 4 % 4 == 3).then_some(session);
        let (limit, ttl) = (u32::from(c % 3) + 1, TTLS[usize::from(c / 3) % 3]);
        let waits = c / 9 % 4 == 3;
        let from = self.world.now.wall.plus_millis(45_000);
        let wish = Terms {
            gate: gate.map(|gate| name(GATES[gate])),
            priority: b / 16 % 3,
            not_before: waits.then_some(from),
            max_attempts: limit,
            ttl_ms: ttl,
            ..Terms::of(CLASSES[class].clone())
        };
        let want = self.model.open(model::Handoff {
            id: String::new(),
            session,
            question,
            class,
            gate,
            priority: wish.priority,
            ready: if waits { from.millis() } else { 0 },
            limit,
            ttl: ttl as i64,
            state: model::State::Queued,
            failures: 0,
            newest: None,
        });
        let (id, job) = (self.sessions[session].clone(), self.jobs[question].clone());
        let (queued, got) = said(self.world.open(&id, &job, wish, c % 2 == 0), |queued| queued.again);
        same(step, got, &want);
        if let Some(queued) = queued.filter(|queued| !queued.again) {
            self.named(queued.handoff);
        }
    }

    fn named(&mut self, id: HandoffId) {
        let newest = self.model.handoffs.last_mut().expect("a new one");
        newest.id = id.to_string();
        self.handoffs.push(id);
    }

    fn claims(&mut self, step: Step) {
        let (_, a, b, _) = step;
        let wanted = Wanted {
            class: usize::from(a % 4 == 3),
            gate: (a / 4 % 8 == 7).then_some(usize::from(b) % 2),
            question: (b / 2 % 8 == 7).then_some(usize::from(b / 16) % QUESTIONS),
            chat: a / 32 % 4 == 3,
        };
        let wish = Wish {
            class: CLASSES[wanted.class].clone(),
            gate: wanted.gate.map(|gate| name(GATES[gate])),
            job: wanted.question.map(|question| self.jobs[question].id.clone()),
            family: if wanted.chat { Family::PeerChat } else { Family::ServiceJob },
            ..wish()
        };
        let (sure, perhaps) = (self.model.choice(&wanted, true), self.model.choice(&wanted, false));
        self.model.sweep();
        match self.world.claim(&wish) {
            Ok((claimed, secret)) => {
                let at = self.handoffs.iter().position(|id| *id == claimed.handoff).expect("a known one");
                assert!(perhaps.contains(&at), "{step:?}: {at} may not be claimed: {perhaps:?}");
                let better = sure.iter().find(|other| self.model.rank(**other) < self.model.rank(at));
                assert_eq!(better, None, "{step:?}: {at} was claimed before it");
                self.won(at, claimed, secret);
            }
            Err(error) => {
                assert_eq!(error.kind, Kind::Pending, "{step:?}");
                assert_eq!(sure, Vec::<usize>::new(), "{step:?}: these could have been claimed");
            }
        }
    }

    fn claims_one(&mut self, step: Step, at: usize) {
        let (_, _, b, _) = step;
        let (class, chat) = (usize::from(b % 4 == 3), b / 4 % 4 == 3);
        let wanted = Wanted { class, chat, gate: None, question: None };
        let want = self.model.claimable(at, &wanted, true);
        let wish = Wish {
            class: CLASSES[class].clone(),
            handoff: Some(self.world.handoff(&self.handoffs[at])),
            family: if chat { Family::PeerChat } else { Family::ServiceJob },
            ..wish()
        };
        let outcome = self.world.claim(&wish);
        let got: Got = outcome.as_ref().map(|_| false).map_err(|error| error.kind.word());
        // A pause that an unnamed claim saw over stays over when the wall is set back.
        let paused = want == Said::Refused("pending") && got != Err("pending".to_owned());
        same(step, got, &if paused { self.model.claimable(at, &wanted, false) } else { want });
        if let Ok((claimed, secret)) = outcome {
            self.won(at, claimed, secret);
        }
    }

    fn won(&mut self, at: usize, claimed: Claimed, secret: Secret) {
        self.model.begin(at, false);
        assert_eq!(Some(claimed.number), self.model.attempts.last().map(|attempt| attempt.number));
        self.attempts.push((
            claimed.attempt,
            claimed.job.expect("a question"),
            secret.nonce,
            Transport::Worker,
        ));
    }

    fn sends(&mut self, step: Step) {
        let (_, a, ..) = step;
        let (session, question) = (usize::from(a) % SESSIONS, usize::from(a / 2) % QUESTIONS);
        if self.model.own(session, question).is_some_and(|own| self.model.is_doubtful(own)) {
            return;
        }
        let want = self.model.packet(session, question);
        let (id, job) = (self.sessions[session].clone(), self.jobs[question].clone());
        let (sent, got) = said(self.world.packet(&id, &job, Transport::Chat), |sent| sent.again);
        same(step, got, &want);
        if let Some(sent) = sent.filter(|sent| !sent.again) {
            let nonce = self.world.answer(&sent, "accept")["nf"]["nonce"].as_str().expect("a nonce").into();
            if !self.handoffs.contains(&sent.handoff) {
                self.named(sent.handoff);
            }
            let job = sent.job.expect("a job");
            self.attempts.push((sent.attempt, job, nonce, Transport::Chat));
        }
    }

    fn answers(&mut self, step: Step, at: usize) {
        let verdict = ["accept", "accept", "reject", "perhaps"][usize::from(step.2) % 4];
        let want = self.model.answer(at, verdict);
        let (attempt, job, nonce, transport) = self.attempts[at].clone();
        let attempt: Attempt = self.world.state.get(&attempt).unwrap();
        let job: Job = self.world.state.get(&job).unwrap();
        let mut value = blank(&self.world.frozen(&job), &attempt.handoff, &nonce, transport);
        value["worker"] = json!({"provider": "peer", "model": "m1"});
        value["output"] = json!({"verdict": verdict, "evidence": ["line one"]});
        let (_, got) = said(self.world.reply(&value), |bound| bound.duplicate);
        same(step, got, &want);
    }

    fn consumes(&mut self, step: Step, at: usize) {
        let reason = step.2.is_multiple_of(2);
        let want = self.model.consume(at, reason);
        let attempt: Attempt = self.world.state.get(&self.attempts[at].0).unwrap();
        let Some(result) = attempt.result else { return assert_eq!(want, Said::Refused("nothing")) };
        let outcome = self.world.consume(&result, "reader", reason.then_some("both were looked at"));
        let (_, got) = said(outcome, |done| done.application == crate::rules::once::Application::Already);
        same(step, got, &want);
    }

    fn step(&mut self, step: Step) {
        let (kind, a, b, _) = step;
        let pick = |of: usize| (of > 0).then(|| of - 1 - usize::from(a) % of.min(6));
        let (handoff, attempt) = (pick(self.handoffs.len()), pick(self.attempts.len()));
        match (kind % 24, handoff, attempt) {
            (0..=4, ..) => self.opens(step),
            (5..=9, ..) => self.claims(step),
            (10, Some(at), _) => self.claims_one(step, at),
            (11..=13, ..) => self.clock(a, b),
            (14, ..) => self.sends(step),
            (15..=16, _, Some(at)) => self.answers(step, at),
            (17, _, Some(at)) => self.consumes(step, at),
            (18, _, Some(at)) => {
                let (want, id) = (self.model.renew(at), self.attempts[at].0.clone());
                same(step, said(self.world.renew(&id), |held| held.again).1, &want);
            }
            (19, _, Some(at)) => {
                let (want, id) = (self.model.release(at), self.attempts[at].0.clone());
                same(step, said(self.world.release(&id), |held| held.again).1, &want);
            }
            (20..=21, _, Some(at)) => {
                let (want, id) = (self.model.fail(at, b % 4 != 3), self.attempts[at].0.clone());
                same(step, said(self.world.fail(&id, b % 4 != 3, None), |held| held.again).1, &want);
            }
            (22, Some(at), _) => {
                let (want, id) = (self.model.revoke(at), self.handoffs[at].clone());
                same(step, said(self.world.take_back(&id, handoff::revoke), |told| told.again).1, &want);
            }
            (23, Some(at), _) => {
                let (want, id) = (self.model.cancel(at), self.handoffs[at].clone());
                same(step, said(self.world.take_back(&id, handoff::cancel), |told| told.again).1, &want);
            }
            _ => {}
        }
        self.compare(step);
        // What became due is recorded too, which the model need not follow.
        self.model.clock.at = self.world.state.meta().at.map_or(0, Time::millis);
    }

    /// Every handoff and attempt stands as the model has it, and none has two attempts that may act.
    fn compare(&self, step: Step) {
        for (at, id) in self.handoffs.iter().enumerate() {
            let (held, want) = (self.world.handoff(id), &self.model.handoffs[at]);
            let newest = held.attempt.as_ref().map(|id| self.attempts.iter().position(|held| held.0 == *id));
            let got = (format!("{:?}", held.state), newest.flatten());
            assert_eq!(got, (format!("{:?}", want.state), want.newest), "{step:?}: handoff {at}");
        }
        let mut active = Vec::new();
        for (at, (id, ..)) in self.attempts.iter().enumerate() {
            let (held, want) = (self.world.state.get::<Attempt>(id).unwrap(), &self.model.attempts[at]);
            let got = (format!("{:?}", held.state), held.lapsed, held.number);
            let late = want.seen_late && want.state == model::Try::Active;
            let lapsed = if held.state == AttemptState::Active { late } else { held.lapsed };
            assert_eq!(got, (format!("{:?}", want.state), lapsed, want.number), "{step:?}: attempt {at}");
            active.extend((held.state == AttemptState::Active).then_some(held.handoff));
        }
        let all = active.len();
        active.sort();
        active.dedup();
        assert_eq!(active.len(), all, "{step:?}: two attempts of one handoff may act");
    }
}

#[test]
fn random_walks_come_to_what_the_model_says() {
    let cases = std::env::var("NF_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let walks = prop::collection::vec(any::<Step>(), 1..60);
    let begun = start();
    let outcome = TestRunner::new(config).run(&walks, |steps| {
        let mut walk = begun.copy();
        steps.iter().for_each(|step| walk.step(*step));
        Ok(())
    });
    if let Err(failed) = outcome {
        panic!("{failed}");
    }
}
