//! A world in memory for the rules: a state, a clock that is moved by hand, and blobs. Every decision is
//! applied as a record, so that a test walks the same path as the program, without a disk.

mod answering;
mod asking;
mod carry;
mod consuming;
mod effect_owners;
mod effects;
mod events;
mod freezing;
mod queue;
mod resuming;
mod routing;
mod tasks;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answer::{Arrival, Bound, Intake, arrive};
use super::freeze::{Frozen, FrozenJob, freeze};
use super::intake::{candidates, extract};
use super::jobfile::{self, JobSpec};
use super::once::{Consume, Consumed, Evidence, consume};
use super::packet::blank;
use super::relay::{Relay, Sent, send};
use super::session::{Stands, start};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, BindingsRef, Checkpoint};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{Event, Record};
use crate::model::fold::current_run;
use crate::model::handoff::{Attempt, Handoff, Transport};
use crate::model::hash::{Hash, canonical};
use crate::model::id::{Name, ResultId, SessionId};
use crate::model::job::Job;
use crate::model::result::{Imported, StoredResult};
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;
use crate::model::time::{Moment, Source, Time};
use crate::rules::lifecycle::Course;

pub const JOB: &str = r#"{
    "kind": "reader_reaction", "subject": "novel/pride/ch01",
    "input": {"question": "Turn the page?", "artifacts": [{"name": "chapter", "path": "ch01.md"}]},
    "rubric": ["Judge only the text."],
    "output": {"type": "object", "required": ["verdict", "evidence"], "properties": {
        "verdict": {"enum": ["accept", "reject"]},
        "evidence": {"type": "array", "items": {"type": "string"}}}},
    "verdict": {"pointer": "/verdict", "pass": ["accept"], "fail": ["reject"],
        "repair": {"reject": "repair.story"}},
    "evidence": ["/evidence"],
    "execution": {"independent": true}
}"#;

/// A name that a test writes.
pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub struct World {
    pub state: State,
    pub now: Moment,
    draws: u64,
    pub blobs: BTreeMap<Hash, Vec<u8>>,
    pub packets: BTreeMap<String, String>,
    /// The events of the last decision.
    pub last: Vec<Event>,
    /// What was seen of who gives the next answers.
    pub witness: Option<crate::model::witness::Witness>,
}

impl World {
    pub fn new() -> Self {
        let now = Moment {
            wall: Time::from_micros(1_000_000_000_000_000),
            machine: "machine".to_owned(),
            boot_id: "boot".to_owned(),
            namespace: "one".to_owned(),
            boottime_ms: 1_000,
        };
        Self {
            state: State::default(),
            now,
            draws: 0,
            blobs: BTreeMap::new(),
            packets: BTreeMap::new(),
            last: Vec::new(),
            witness: None,
        }
    }

    /// Moves both clocks.
    pub fn pass(&mut self, millis: u64) {
        self.now.wall = self.now.wall.plus_millis(millis);
        self.now.boottime_ms += millis;
    }

    /// Takes a decision and applies it, as the store does.
    pub fn act<T>(&mut self, rule: impl FnOnce(&mut Turn<'_>, &World) -> Result<Decision<T>>) -> Result<T> {
        self.draws += 1;
        let source = Source::fixed(self.now.clone(), format!("seed {}", self.draws));
        let state = self.state.clone();
        let mut turn = Turn::new(&state, &source);
        let decision = rule(&mut turn, self)?;
        let (seq, at) = (turn.seq(), turn.at());
        for blob in turn.take_blobs() {
            self.blobs.insert(Hash::of(&blob), blob);
        }
        if let Some((attempt, packet)) = decision.packet {
            self.packets.insert(attempt.to_string(), packet);
        }
        for attempt in decision.events.iter().filter_map(Event::ended_attempt) {
            self.packets.remove(&attempt.to_string());
        }
        if !decision.events.is_empty() {
            let hash = Hash::of(&seq.to_be_bytes());
            let events = decision.events.clone();
            let (op, req, cmd) = (None, None, "test".to_owned());
            self.state.apply(&Record { v: 1, seq, at, op, req, cmd, events, prev: hash, hash });
        }
        self.last = decision.events;
        decision.outcome
    }

    pub fn get_session(&self, id: &SessionId) -> Session {
        self.state.get(id).unwrap()
    }

    pub fn run(&self, id: &SessionId) -> Run {
        self.state.get(&self.get_session(id).run.unwrap()).unwrap()
    }

    pub fn course(&self, id: &SessionId) -> Course {
        let session = self.get_session(id);
        let run = current_run(&self.state, &session);
        Course::new(session, run)
    }

    pub fn start(&mut self) -> SessionId {
        let stands: Result<Stands> =
            self.act(|turn, _| start(turn, name("novel/pride"), name("review"), Bindings::default()));
        stands.unwrap().session
    }

    pub fn spec(text: &str) -> Result<JobSpec> {
        jobfile::job(&serde_json::from_str(text).unwrap(), &|reference| {
            Err(Error::new(Kind::BadInput, format!("no contract {reference}")))
        })
    }

    /// Freezes a job over one chapter, for a session.
    pub fn freeze(&mut self, session: &SessionId, text: &str, chapter: &str) -> Job {
        let contents = BTreeMap::from([(name("chapter"), chapter.as_bytes().to_vec())]);
        let frozen: Frozen = freeze(&Self::spec(text).unwrap(), &contents).unwrap();
        self.blobs.insert(Hash::of(&frozen.blob()), frozen.blob());
        self.blobs.insert(Hash::of(chapter.as_bytes()), chapter.as_bytes().to_vec());
        let run = self.run(session).id;
        let entity = frozen.entity(Some(session), Some(&run), self.now.wall).unwrap();
        self.act(|_, _| Ok(Decision::new(vec![Event::JobFrozen { job: entity.clone() }], ()))).unwrap();
        entity
    }

    pub fn frozen(&self, job: &Job) -> FrozenJob {
        serde_json::from_slice(&self.blobs[&job.blob]).unwrap()
    }

    /// What a handoff asks.
    pub fn asked(&self, handoff: &Handoff) -> FrozenJob {
        match handoff.job.as_ref().and_then(|id| self.state.get::<Job>(id)) {
            Some(job) => self.frozen(&job),
            None => serde_json::from_slice(&self.blobs[&handoff.task.as_ref().unwrap().blob]).unwrap(),
        }
    }

    pub fn bindings(&self, session: &Session) -> Bindings {
        let checkpoint = session.checkpoint.as_ref().and_then(|id| self.state.get::<Checkpoint>(id));
        match checkpoint.map(|checkpoint| checkpoint.bindings) {
            Some(BindingsRef::Inline(bindings)) => bindings,
            Some(BindingsRef::Blob(hash)) => serde_json::from_slice(&self.blobs[&hash]).unwrap(),
            None => Bindings::default(),
        }
    }

    pub fn packet(&mut self, session: &SessionId, job: &Job, transport: Transport) -> Result<Sent> {
        self.packet_for(session, job, transport, None)
    }

    pub fn packet_for(
        &mut self,
        id: &SessionId,
        job: &Job,
        transport: Transport,
        gate: Option<Name>,
    ) -> Result<Sent> {
        let session = self.get_session(id);
        let history = self.state.history(&job.fingerprint);
        let frozen = self.frozen(job);
        let artifacts: Vec<Vec<u8>> =
            frozen.artifacts().iter().map(|artifact| self.blobs[&artifact.hash].clone()).collect();
        let own =
            self.state.outstanding(id).into_iter().find(|handoff| handoff.job.as_ref() == Some(&job.id));
        let kept = own
            .as_ref()
            .and_then(|own| own.attempt.as_ref())
            .and_then(|attempt| self.packets.get(&attempt.to_string()).cloned());
        self.act(|turn, world| {
            let relay = Relay {
                run: current_run(&world.state, &session),
                bindings: world.bindings(&session),
                session,
                job: Some(job),
                frozen: &frozen,
                artifacts: &artifacts,
                transport,
                gate,
                own,
                active: world.state.active(&history).collect(),
                history,
                kept,
            };
            send(turn, relay)
        })
    }

    /// A well-formed answer to an open attempt.
    pub fn answer(&self, sent: &Sent, verdict: &str) -> Value {
        let packet = &self.packets[&sent.attempt.to_string()];
        let at = packet.find("nonce\": \"").or_else(|| packet.find("nonce: \"")).unwrap();
        let nonce = packet[at..].split('"').find(|part| part.len() == 26).unwrap();
        let job: Job = self.state.get(sent.job.as_ref().unwrap()).unwrap();
        let mut value = blank(&self.frozen(&job), &sent.handoff, nonce, sent.transport);
        value["worker"] = match sent.transport {
            Transport::Human => json!({"name": "Jane"}),
            _ => json!({"provider": "peer", "model": "m1"}),
        };
        value["output"] = json!({"verdict": verdict, "evidence": ["line one"]});
        value
    }

    pub fn reply(&mut self, value: &Value) -> Result<Bound> {
        self.reply_bytes(&canonical(value), value["nf"]["nonce"].as_str().unwrap())
    }

    /// A reply of any bytes that carries this nonce.
    pub fn reply_bytes(&mut self, bytes: &[u8], nonce: &str) -> Result<Bound> {
        let intake = extract(bytes, &|_| false);
        let nonce = Hash::of(nonce.as_bytes());
        let attempt = self.state.attempt_of_nonce(&nonce).expect("a known nonce");
        self.arrives(attempt, nonce, bytes, &intake, None)
    }

    /// The arrival of an answer, pasted or imported, under a nonce of its attempt.
    pub fn arrives(
        &mut self,
        attempt: Attempt,
        nonce: Hash,
        bytes: &[u8],
        intake: &Intake,
        imported: Option<Imported>,
    ) -> Result<Bound> {
        self.act(|turn, world| {
            let handoff: Handoff = world.state.get(&attempt.handoff).unwrap();
            let job = attempt.job.as_ref().and_then(|id| world.state.get::<Job>(id));
            let source = world.get_session(&handoff.source_session);
            let arrival = Arrival {
                bytes: (Hash::of(bytes), bytes.len() as u64),
                imported,
                intake,
                candidates: if intake.is_err() { candidates(bytes) } else { Vec::new() },
                frozen: &world.asked(&handoff),
                history: world.state.history(attempt.question()),
                job,
                ancestors: Vec::new(),
                natives: source.native.clone().into_iter().collect(),
                witness: world.witness.clone(),
                worker: world.get_session(&attempt.worker_session),
                held: attempt.result.as_ref().and_then(|id| world.state.get(id)),
                bindings: world.bindings(&source),
                source: (source.clone(), current_run(&world.state, &source)),
                attempt,
                nonce,
                handoff,
            };
            arrive(turn, arrival)
        })
    }

    pub fn evidence(&self, id: &ResultId) -> Evidence {
        let result: StoredResult = self.state.get(id).unwrap();
        let job = result.job.as_ref().and_then(|id| self.state.get::<Job>(id));
        let handoff: Handoff = self.state.get(&result.provenance.handoff).unwrap();
        Evidence {
            body: serde_json::from_slice(&self.blobs[&result.blob]).unwrap(),
            frozen: self.asked(&handoff),
            attempt: self.state.get(&result.provenance.attempt).unwrap(),
            handoff,
            ancestors: Vec::new(),
            natives: Vec::new(),
            source: self.get_session(&result.provenance.source_session),
            worker: self.get_session(&result.provenance.worker_session),
            job,
            result,
        }
    }

    pub fn consume(&mut self, id: &ResultId, consumer: &str, contested: Option<&str>) -> Result<Consumed> {
        let evidence = self.evidence(id);
        let acting = (evidence.source.clone(), self.run(&evidence.source.id));
        let consumer = name(consumer);
        let held = self.state.receipt_for(&id.clone().into(), &consumer);
        let for_question = self.state.receipt_for_question(evidence.result.question(), &consumer);
        let held_for_question = for_question.filter(|receipt| receipt.source != id.clone().into());
        let bindings = self.bindings(&evidence.source);
        let contested = contested.map(str::to_owned);
        self.act(|turn, _| {
            consume(
                turn,
                Consume { evidence, consumer, contested, acting, held, held_for_question, bindings },
            )
        })
    }

    pub fn attempt(&self, sent: &Sent) -> Attempt {
        self.state.get(&sent.attempt).unwrap()
    }

    /// The words of the last decision's events.
    pub fn words(&self) -> Vec<String> {
        self.last.iter().map(Event::word).collect()
    }
}

/// The kind of a refusal.
#[track_caller]
pub fn kind<T: std::fmt::Debug>(outcome: Result<T>) -> Kind {
    outcome.expect_err("a refusal").kind
}
