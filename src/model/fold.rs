//! The fold: how one event changes the state. It never refuses: history is fact.

use std::collections::BTreeSet;

use super::event::{Event, Record};
use super::id::{Id, JobId, ResultId, RunId, SessionId};
use super::job::{Job, Place};
use super::result::{Answer, History, Judgement, Shared, Standing, StoredResult};
use super::run::{Gate, Run, RunStatus};
use super::session::Session;
use super::state::{Answered, Entity, State, entity_key};
use super::tables::{Key, Ready, Table};
use super::time::Time;

mod effects;
mod handoff;
mod sources;

/// Where an event stands: its record's number, time and its own number in the record.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) place: u64,
    at: Time,
}

impl State {
    /// Applies the next record. Records come in order of `seq`, without gaps.
    pub fn apply(&mut self, record: &Record) {
        let mut questions = BTreeSet::new();
        for (index, event) in record.events.iter().enumerate() {
            let place = record.seq << 12 | (index as u64 & 0xfff);
            self.event(event, Position { place, at: record.at });
            questions.extend(self.question_of(event));
            if let (Event::OpAnswered { answer }, Some(op), Some(req)) = (event, &record.op, &record.req) {
                let key = Key::new(Table::Operation).text(op.as_str());
                let answered =
                    Answered { req: *req, seq: record.seq, hash: record.hash, answer: answer.clone() };
                self.tables.put_own(key, answered);
            }
        }
        for question in questions {
            self.settle(&question, record.at);
        }
        self.meta.seq = record.seq;
        self.meta.last = Some(record.hash);
        self.meta.at = Some(record.at);
    }

    fn event(&mut self, event: &Event, at: Position) {
        match event {
            Event::SegmentOpened { segment, .. } => self.meta.segment = *segment,
            Event::SegmentClosed { .. }
            | Event::LossAccepted { .. }
            | Event::OpAnswered { .. }
            | Event::ResultValidated { .. } => {}
            Event::SessionCreated { session } => self.session_created(session, at),
            Event::SessionMoved { session, to, version, .. } => {
                self.change(session, |session: &mut Session| {
                    session.status = *to;
                    session.version = *version;
                    session.updated_at = at.at;
                });
                if to.is_ended() {
                    self.tables.delete(Key::new(Table::Open).text(session.as_str()));
                }
            }
            Event::RunStarted { .. }
            | Event::RunWaited { .. }
            | Event::RunEnded { .. }
            | Event::RunStepped { .. }
            | Event::GateMoved { .. } => self.run_event(event, at),
            Event::CheckpointSaved { checkpoint } => {
                self.tables.put(entity_key(checkpoint.id.as_str()), checkpoint);
                self.enlisted(checkpoint, Some(&checkpoint.session), None, at);
                self.change(&checkpoint.session, |session: &mut Session| {
                    session.checkpoint = Some(checkpoint.id.clone());
                });
            }
            Event::JobFrozen { job } => {
                self.tables.put(entity_key(job.id.as_str()), job);
                self.enlisted(job, job.frozen_by.first(), Some(&job.subject), at);
                self.about(Some(&job.id), job, at);
            }
            Event::JobFrozenAgain { job, session, places } => {
                self.frozen_again(job, session.as_ref(), places);
            }
            Event::HandoffOpened { .. }
            | Event::HandoffClaimed { .. }
            | Event::HandoffQueued { .. }
            | Event::HandoffExhausted { .. }
            | Event::HandoffCancelled { .. }
            | Event::HandoffCompleted { .. } => self.handoff_event(event, at),
            Event::LeaseRenewed { .. }
            | Event::LeaseExpired { .. }
            | Event::LeaseRevived { .. }
            | Event::AttemptRenonced { .. } => self.lease_event(event),
            Event::AttemptEnded { attempt, how, reason } => self.attempt_ended(attempt, *how, reason, at),
            Event::ReplyReceived { reply } => self.reply_received(reply),
            Event::ResultStored { .. } | Event::ResultChecked { .. } | Event::ReceiptRecorded { .. } => {
                self.result_event(event, at);
            }
            Event::ExternalReceived { event } => self.event_received(event, at),
            Event::EffectPlanned { .. }
            | Event::EffectStarted { .. }
            | Event::EffectDone { .. }
            | Event::EffectCleared { .. } => self.effect_event(event, at),
            Event::ConflictRefused { .. } => self.meta.conflicts += 1,
            Event::CapabilityObserved { capability } => self.capability_observed(capability, at.place),
        }
    }

    fn frozen_again(&mut self, job: &JobId, session: Option<&SessionId>, places: &[Place]) {
        let mut known = true;
        self.change(job, |job: &mut Job| {
            job.places = places.to_vec();
            if let Some(session) = session.filter(|id| !job.frozen_by.contains(id)) {
                job.frozen_by.push(session.clone());
                known = false;
            }
        });
        if let (false, Some(session)) = (known, session) {
            self.member_too(session, job);
        }
    }

    fn session_created(&mut self, session: &Session, at: Position) {
        self.tables.put(entity_key(session.id.as_str()), session);
        self.enlisted(session, None, Some(&session.resource), at);
        if session.worker_of.is_none() {
            self.tables.put(Key::new(Table::Open).text(session.id.as_str()), &session.id);
        }
    }

    fn run_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::RunStarted { run } => {
                self.tables.put(entity_key(run.id.as_str()), run);
                self.enlisted(run, Some(&run.session), Some(&run.resource), at);
                self.change(&run.session, |session: &mut Session| session.run = Some(run.id.clone()));
            }
            Event::RunWaited { run } => {
                self.change(run, |run: &mut Run| run.status = RunStatus::Waiting);
            }
            Event::RunEnded { run, status, outcome } => self.change(run, |run: &mut Run| {
                run.status = *status;
                run.outcome = Some(outcome.clone());
                run.ended_at = Some(at.at);
            }),
            Event::RunStepped { run, cursor } => {
                self.change(run, |run: &mut Run| run.cursor = cursor.clone());
            }
            Event::GateMoved { run, gate, to, handoff, result, verdict } => {
                let verdict = verdict.clone();
                self.change(run, |run: &mut Run| {
                    let entry = Gate {
                        status: *to,
                        handoff: handoff.clone(),
                        result: result.clone(),
                        verdict: verdict.as_ref().and_then(|verdict| verdict.value.clone()),
                        route: verdict.and_then(|verdict| verdict.route),
                    };
                    run.pending.gates.insert(gate.clone(), entry);
                });
            }
            _ => {}
        }
    }

    fn result_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::ResultStored { result } => {
                self.tables.put(entity_key(result.id.as_str()), result);
                self.enlisted(result, Some(&result.provenance.source_session), None, at);
                self.about(result.job.as_ref(), result, at);
                self.tables.put(Key::new(Table::Answer).text(&result.blob.hex()), &result.id);
            }
            Event::ResultChecked { result, checked } => {
                self.change(result, |result: &mut StoredResult| result.checked = Some(checked.clone()));
                self.judged(result, at);
            }
            Event::ReceiptRecorded { receipt } => self.receipt_recorded(receipt, at),
            _ => {}
        }
    }

    /// A checked answer counts for its question, and is a judgement of its artifacts and subject.
    fn judged(&mut self, id: &ResultId, at: Position) {
        let Some(result) = self.see::<StoredResult>(id) else { return };
        let Some(checked) = &result.checked else { return };
        let answer = Answer {
            result: result.id.clone(),
            job: result.job.clone(),
            verdict: checked.verdict.value.clone(),
            grade: checked.grade,
            family: result.provenance.family,
            model: result.provenance.model_served.clone(),
            standing: checked.standing,
        };
        let (standing, question) = (checked.standing, result.question().to_owned());
        self.told(&question, |history| history.answers.push(answer.clone()));
        if standing == Standing::Surplus {
            return;
        }
        let Some(job) = answer.job.as_ref().and_then(|id| self.get::<Job>(id)) else { return };
        let mut judgement = Judgement {
            fingerprint: job.fingerprint.clone(),
            job: job.id.clone(),
            result: answer.result,
            verdict: answer.verdict,
            shares: Shared::Subject,
        };
        let subject = format!("subject {}", job.subject);
        self.tables.put(Key::new(Table::Judgement).text(&subject).number(at.place), &judgement);
        judgement.shares = Shared::Artifact;
        let judgement = Ready::new(&judgement);
        for place in &job.places {
            let key = Key::new(Table::Judgement).text(&place.hash.hex()).number(at.place);
            self.tables.put_ready(key, &judgement);
        }
    }

    fn change<T: Entity>(&mut self, id: &T::Id, change: impl FnOnce(&mut T)) {
        let mut moved = None;
        self.tables.change(entity_key(id.as_str()), |entity: &mut T| {
            let before = entity.state_word();
            change(entity);
            moved = Some(entity.state_word()).filter(|now| *now != before);
        });
        if let Some(word) = moved {
            self.sorted::<T>(id, word);
        }
    }

    fn told(&mut self, fingerprint: &str, change: impl FnOnce(&mut History)) {
        let key = Key::new(Table::History).text(fingerprint);
        if !self.tables.holds(&key) {
            self.tables.put_own(key.clone(), History::default());
        }
        self.tables.change(key, change);
    }
}

/// The newest run of a session, if it is current (running or waiting).
pub fn current_run(state: &State, session: &Session) -> Option<Run> {
    let id: &RunId = session.run.as_ref()?;
    state.get::<Run>(id).filter(|run| run.status.is_current())
}
