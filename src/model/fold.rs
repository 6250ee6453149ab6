//! The fold: how one event changes the state. It never refuses: history is fact.

use super::event::{AttemptEnd, Event, Record};
use super::handoff::{Attempt, AttemptState, Handoff, HandoffState};
use super::id::{AttemptId, Id, Name, RunId, SessionId};
use super::job::Job;
use super::result::{Answer, History, Judgement, Receipt, ReplyClass, Shared, Standing, StoredResult};
use super::run::{Gate, Run, RunStatus};
use super::session::Session;
use super::state::{Answered, Entity, Row, State, entity_key};
use super::tables::{Key, Table};
use super::time::Time;

mod effects;

/// Where an event stands: its record's number, time and its own number in the record.
#[derive(Clone, Copy)]
struct Position {
    place: u64,
    at: Time,
}

impl State {
    /// Applies the next record. Records come in order of `seq`, without gaps.
    pub fn apply(&mut self, record: &Record) {
        for (index, event) in record.events.iter().enumerate() {
            let place = record.seq << 12 | (index as u64 & 0xfff);
            self.event(event, Position { place, at: record.at });
            if let (Event::OpAnswered { answer }, Some(op), Some(req)) = (event, &record.op, &record.req) {
                let key = Key::new(Table::Operation).text(op.as_str());
                let answered =
                    Answered { req: *req, seq: record.seq, hash: record.hash, answer: answer.clone() };
                self.tables.put(key, &answered);
            }
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
                    self.tables.delete(&Key::new(Table::Open).text(session.as_str()));
                }
            }
            Event::RunStarted { .. }
            | Event::RunWaited { .. }
            | Event::RunEnded { .. }
            | Event::RunStepped { .. }
            | Event::GateMoved { .. } => self.run_event(event, at),
            Event::CheckpointSaved { checkpoint } => {
                self.tables.put(entity_key(checkpoint.id.as_str()), checkpoint);
                self.listed(checkpoint, Some(&checkpoint.session), None, at);
                self.change(&checkpoint.session, |session: &mut Session| {
                    session.checkpoint = Some(checkpoint.id.clone());
                });
            }
            Event::JobFrozen { job } => {
                self.tables.put(entity_key(job.id.as_str()), job);
                self.listed(job, job.frozen_by.first(), Some(&job.subject), at);
            }
            Event::JobFrozenAgain { job, session, places } => {
                let mut known = true;
                self.change(job, |job: &mut Job| {
                    job.places.clone_from(places);
                    if let Some(session) = session.as_ref().filter(|id| !job.frozen_by.contains(id)) {
                        job.frozen_by.push(session.clone());
                        known = false;
                    }
                });
                if let (false, Some(session)) = (known, session) {
                    self.member(session, "job", job.as_str(), at);
                }
            }
            Event::HandoffOpened { .. }
            | Event::HandoffClaimed { .. }
            | Event::HandoffQueued { .. }
            | Event::HandoffExhausted { .. }
            | Event::HandoffCancelled { .. }
            | Event::HandoffCompleted { .. } => self.handoff_event(event, at),
            Event::LeaseRevived { attempt, lease } => {
                self.change(attempt, |attempt: &mut Attempt| attempt.lease = lease.clone());
            }
            Event::AttemptEnded { attempt, how, reason } => self.attempt_ended(attempt, *how, reason, at),
            Event::ReplyReceived { reply } => self.reply_received(reply),
            Event::ResultStored { .. } | Event::ResultChecked { .. } | Event::ReceiptRecorded { .. } => {
                self.result_event(event, at);
            }
            Event::EffectPlanned { .. }
            | Event::EffectStarted { .. }
            | Event::EffectDone { .. }
            | Event::EffectCleared { .. } => self.effect_event(event, at),
            Event::ConflictRefused { .. } => self.meta.conflicts += 1,
        }
    }

    fn session_created(&mut self, session: &Session, at: Position) {
        self.tables.put(entity_key(session.id.as_str()), session);
        self.listed(session, None, Some(&session.resource), at);
        if session.worker_of.is_none() {
            self.tables.put(Key::new(Table::Open).text(session.id.as_str()), &session.id);
        }
    }

    fn run_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::RunStarted { run } => {
                self.tables.put(entity_key(run.id.as_str()), run);
                self.listed(run, Some(&run.session), Some(&run.resource), at);
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

    fn handoff_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::HandoffOpened { handoff } => {
                self.tables.put(entity_key(handoff.id.as_str()), handoff);
                self.listed(handoff, Some(&handoff.source_session), Some(&handoff.resource), at);
                self.outstanding_again(handoff);
            }
            Event::HandoffClaimed { attempt } => {
                self.tables.put(entity_key(attempt.id.as_str()), attempt);
                let source = self.get::<Handoff>(&attempt.handoff).map(|handoff| handoff.source_session);
                self.listed(attempt, source.as_ref(), None, at);
                let key = Key::new(Table::Nonce).text(&attempt.nonce_hash.hex());
                self.tables.put(key, &attempt.id);
                self.change(&attempt.handoff, |handoff: &mut Handoff| {
                    handoff.state = HandoffState::Claimed;
                    handoff.number = attempt.number;
                    handoff.attempt = Some(attempt.id.clone());
                });
                self.told(&attempt.fingerprint, |history| {
                    history.opened += 1;
                    history.active.push(attempt.id.clone());
                });
            }
            Event::HandoffQueued { handoff } => {
                self.change(handoff, |handoff: &mut Handoff| handoff.state = HandoffState::Queued);
            }
            Event::HandoffExhausted { handoff } => {
                self.change(handoff, |handoff: &mut Handoff| handoff.state = HandoffState::Exhausted);
                self.no_longer_outstanding(handoff);
            }
            Event::HandoffCancelled { handoff, .. } => {
                self.change(handoff, |handoff: &mut Handoff| handoff.state = HandoffState::Cancelled);
                self.no_longer_outstanding(handoff);
            }
            Event::HandoffCompleted { handoff, attempt, result } => {
                self.change(handoff, |handoff: &mut Handoff| {
                    handoff.state = HandoffState::Completed;
                    handoff.result = Some(result.clone());
                });
                self.no_longer_outstanding(handoff);
                self.ended(attempt, AttemptState::Completed, None, at);
                self.change(attempt, |attempt: &mut Attempt| attempt.result = Some(result.clone()));
            }
            _ => {}
        }
    }

    /// A handoff is outstanding from its opening until it is completed, exhausted or cancelled.
    fn outstanding_again(&mut self, handoff: &Handoff) {
        let key =
            Key::new(Table::Outstanding).text(handoff.source_session.as_str()).text(handoff.id.as_str());
        self.tables.put(key, &handoff.id);
        self.expected(handoff, true);
    }

    fn no_longer_outstanding(&mut self, id: &super::id::HandoffId) {
        if let Some(handoff) = self.get::<Handoff>(id) {
            let key = Key::new(Table::Outstanding).text(handoff.source_session.as_str()).text(id.as_str());
            self.tables.delete(&key);
            self.expected(&handoff, false);
        }
    }

    /// The newest run of the source session expects the handoff's answer, or no longer does.
    fn expected(&mut self, handoff: &Handoff, expected: bool) {
        let run = self.get::<Session>(&handoff.source_session).and_then(|session| session.run);
        if let Some(run) = run {
            self.change::<Run>(&run, |run| {
                if expected {
                    run.pending.handoffs.insert(handoff.id.clone());
                } else {
                    run.pending.handoffs.remove(&handoff.id);
                }
            });
        }
    }

    fn attempt_ended(&mut self, id: &AttemptId, how: AttemptEnd, reason: &Name, at: Position) {
        let state = match how {
            AttemptEnd::Failed => AttemptState::Failed,
            AttemptEnd::Released => AttemptState::Released,
            AttemptEnd::Superseded => AttemptState::Superseded,
            AttemptEnd::Revoked => AttemptState::Revoked,
        };
        self.ended(id, state, Some(reason), at);
        if let Some(attempt) = self.get::<Attempt>(id) {
            self.told(&attempt.fingerprint, |history| match how {
                AttemptEnd::Failed => {}
                AttemptEnd::Released => history.released += 1,
                AttemptEnd::Superseded => history.expired += 1,
                AttemptEnd::Revoked => history.cancelled += 1,
            });
        }
    }

    fn ended(&mut self, id: &AttemptId, state: AttemptState, reason: Option<&Name>, at: Position) {
        self.change(id, |attempt: &mut Attempt| {
            attempt.state = state;
            attempt.ended_at = Some(at.at);
            attempt.reason = reason.cloned();
        });
        if let Some(attempt) = self.get::<Attempt>(id) {
            self.told(&attempt.fingerprint, |history| history.active.retain(|active| active != id));
        }
    }

    fn reply_received(&mut self, reply: &super::event::Reply) {
        self.change(&reply.attempt, |attempt: &mut Attempt| {
            if reply.class == ReplyClass::SemanticInvalid {
                attempt.invalid += 1;
            }
        });
        let Some(attempt) = self.get::<Attempt>(&reply.attempt) else { return };
        self.told(&attempt.fingerprint, |history| {
            match reply.class {
                ReplyClass::SemanticInvalid => history.invalid += 1,
                ReplyClass::ExecutionFailed => history.cannot_judge += 1,
                ReplyClass::Late => history.late += 1,
                ReplyClass::Conflict => history.conflicts += 1,
                ReplyClass::Valid => {}
            }
            for verdict in reply.verdict.iter().chain(&reply.others) {
                if !history.verdicts.contains(verdict) {
                    history.verdicts.push(verdict.clone());
                }
            }
        });
    }

    fn result_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::ResultStored { result } => {
                self.tables.put(entity_key(result.id.as_str()), result);
                self.listed(result, Some(&result.provenance.source_session), None, at);
                self.tables.put(Key::new(Table::Answer).text(&result.blob.hex()), &result.id);
            }
            Event::ResultChecked { result, checked } => {
                self.change(result, |result: &mut StoredResult| result.checked = Some(checked.clone()));
                if let Some(result) = self.get::<StoredResult>(result) {
                    self.judged(&result, at);
                }
            }
            Event::ReceiptRecorded { receipt } => self.receipt_recorded(receipt, at),
            _ => {}
        }
    }

    /// A checked answer counts for its question, and is a judgement of its artifacts and subject.
    fn judged(&mut self, result: &StoredResult, at: Position) {
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
        self.told(&result.fingerprint, |history| history.answers.push(answer));
        if checked.standing == Standing::Surplus {
            return;
        }
        let Some(job) = self.get::<Job>(&result.job) else { return };
        let mut judgement = Judgement {
            fingerprint: result.fingerprint.clone(),
            job: result.job.clone(),
            result: result.id.clone(),
            verdict: checked.verdict.value.clone(),
            shares: Shared::Subject,
        };
        let subject = format!("subject {}", job.subject);
        self.tables.put(Key::new(Table::Judgement).text(&subject).number(at.place), &judgement);
        judgement.shares = Shared::Artifact;
        for place in &job.places {
            let key = Key::new(Table::Judgement).text(&place.hash.hex()).number(at.place);
            self.tables.put(key, &judgement);
        }
    }

    fn receipt_recorded(&mut self, receipt: &Receipt, at: Position) {
        self.tables.put(entity_key(receipt.id.as_str()), receipt);
        let result = self.get::<StoredResult>(&receipt.source);
        self.listed(receipt, result.as_ref().map(|result| &result.provenance.source_session), None, at);
        let by_source =
            Key::new(Table::Receipt).text(receipt.source.as_str()).text(receipt.consumer.as_str());
        self.tables.put(by_source, &receipt.id);
        let by_question =
            Key::new(Table::Question).text(&receipt.fingerprint).text(receipt.consumer.as_str());
        self.tables.put(by_question, &receipt.id);
        self.change(&receipt.source, |result: &mut StoredResult| {
            result.consumed.insert(receipt.consumer.clone(), receipt.id.clone());
        });
    }

    fn listed<T: Entity>(
        &mut self,
        entity: &T,
        session: Option<&SessionId>,
        resource: Option<&Name>,
        at: Position,
    ) {
        let (word, id) = (T::Id::KIND.word(), entity.id().as_str());
        let row = Row { id: id.to_owned(), place: at.place };
        self.tables.put(Key::new(Table::Kind).text(word).number(at.place), &row);
        if let Some(session) = session {
            self.member(session, word, id, at);
        }
        if let Some(resource) = resource {
            let key = Key::new(Table::Resource).text(resource.as_str()).text(word).number(at.place);
            self.tables.put(key, &row);
        }
    }

    fn member(&mut self, session: &SessionId, word: &str, id: &str, at: Position) {
        let key = Key::new(Table::Member).text(session.as_str()).text(word).number(at.place);
        self.tables.put(key, &Row { id: id.to_owned(), place: at.place });
    }

    fn change<T: Entity>(&mut self, id: &T::Id, change: impl FnOnce(&mut T)) {
        if let Some(mut entity) = self.get::<T>(id) {
            change(&mut entity);
            self.tables.put(entity_key(id.as_str()), &entity);
        }
    }

    fn told(&mut self, fingerprint: &str, change: impl FnOnce(&mut History)) {
        let mut history = self.history(fingerprint);
        change(&mut history);
        self.tables.put(Key::new(Table::History).text(fingerprint), &history);
    }
}

/// The newest run of a session, if it is current (running or waiting).
pub fn current_run(state: &State, session: &Session) -> Option<Run> {
    let id: &RunId = session.run.as_ref()?;
    state.get::<Run>(id).filter(|run| run.status.is_current())
}
