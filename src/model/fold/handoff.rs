//! The fold of handoffs, attempts, leases and replies.

use super::Position;
use crate::model::event::{AttemptEnd, Event, Reply};
use crate::model::handoff::{Attempt, AttemptState, Handoff, HandoffState, Transport};
use crate::model::id::{AttemptId, HandoffId, Id, Name};
use crate::model::result::{ReplyClass, StoredResult};
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::{State, entity_key};
use crate::model::tables::{Key, Table};

impl State {
    pub(super) fn handoff_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::HandoffOpened { handoff } => {
                let handoff = &Handoff { place: at.place, ..handoff.clone() };
                self.tables.put(entity_key(handoff.id.as_str()), handoff);
                self.enlisted(handoff, Some(&handoff.source_session), Some(&handoff.resource), at);
                self.about(handoff.job.as_ref(), handoff, at);
                self.outstanding_again(handoff);
                self.asked(handoff);
            }
            Event::HandoffClaimed { attempt } => {
                self.tables.put(entity_key(attempt.id.as_str()), attempt);
                self.leased(attempt);
                let source = self.see::<Handoff>(&attempt.handoff);
                let source = source.map(|handoff| handoff.source_session.clone());
                self.enlisted(attempt, source.as_ref(), None, at);
                self.about(attempt.job.as_ref(), attempt, at);
                let key = Key::new(Table::Nonce).text(&attempt.nonce_hash.hex());
                self.tables.put(key, &attempt.id);
                self.change(&attempt.handoff, |handoff: &mut Handoff| {
                    handoff.state = HandoffState::Claimed;
                    handoff.number = attempt.number;
                    handoff.attempt = Some(attempt.id.clone());
                });
                self.told(attempt.question(), |history| {
                    history.opened += 1;
                    history.active.push(attempt.id.clone());
                });
            }
            Event::HandoffQueued { handoff, ready_at } => {
                if let Some(before) = self.get::<Handoff>(handoff) {
                    self.unqueue(&before);
                }
                self.change(handoff, |handoff: &mut Handoff| {
                    handoff.state = HandoffState::Queued;
                    handoff.ready_at = *ready_at;
                });
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

    pub(super) fn lease_event(&mut self, event: &Event) {
        match event {
            Event::LeaseRenewed { attempt, lease } | Event::LeaseRevived { attempt, lease } => {
                let Some(before) = self.get::<Attempt>(attempt) else { return };
                self.no_longer_leased(&before);
                let after = Attempt { lease: lease.clone(), lapsed: false, ..before };
                self.tables.put(entity_key(after.id.as_str()), &after);
                self.leased(&after);
                // A handoff was given up with its last attempt still open, and that one lives on.
                if let Some(handoff) = self.get::<Handoff>(&after.handoff)
                    && handoff.state == HandoffState::Exhausted
                {
                    self.change(&handoff.id, |handoff: &mut Handoff| handoff.state = HandoffState::Claimed);
                    self.outstanding_again(&handoff);
                    self.asked(&handoff);
                }
            }
            Event::LeaseExpired { attempt } => {
                if let Some(before) = self.get::<Attempt>(attempt) {
                    self.lease_lapsed(&before);
                }
                self.change(attempt, |attempt: &mut Attempt| attempt.lapsed = true);
            }
            // The old nonce still leads to its attempt: what comes under it is known, recorded and refused.
            Event::AttemptRenonced { attempt, nonce_hash, packet_hash } => {
                let Some(before) = self.get::<Attempt>(attempt) else { return };
                let after = Attempt { nonce_hash: *nonce_hash, packet_hash: *packet_hash, ..before };
                self.tables.put(Key::new(Table::Nonce).text(&nonce_hash.hex()), &after.id);
                self.tables.put(entity_key(after.id.as_str()), &after);
            }
            _ => {}
        }
    }

    /// The question about which an event says something that decides who may be asked.
    pub(super) fn question_of(&self, event: &Event) -> Option<String> {
        let of_handoff = |id| self.see::<Handoff>(id).map(|handoff| handoff.question().to_owned());
        let of_attempt = |id| self.see::<Attempt>(id).map(|attempt| attempt.question().to_owned());
        match event {
            Event::HandoffOpened { handoff } => Some(handoff.question().to_owned()),
            Event::HandoffClaimed { attempt } => Some(attempt.question().to_owned()),
            Event::HandoffQueued { handoff, .. }
            | Event::HandoffExhausted { handoff }
            | Event::HandoffCancelled { handoff, .. }
            | Event::HandoffCompleted { handoff, .. } => of_handoff(handoff),
            Event::LeaseRenewed { attempt, .. }
            | Event::LeaseExpired { attempt }
            | Event::LeaseRevived { attempt, .. }
            | Event::AttemptEnded { attempt, .. } => of_attempt(attempt),
            Event::ResultChecked { result, .. } => {
                self.see::<StoredResult>(result).map(|result| result.question().to_owned())
            }
            _ => None,
        }
    }

    /// A handoff is outstanding from its opening until it is completed, exhausted or cancelled.
    fn outstanding_again(&mut self, handoff: &Handoff) {
        let key =
            Key::new(Table::Outstanding).text(handoff.source_session.as_str()).text(handoff.id.as_str());
        self.tables.put(key, &handoff.id);
        self.expected(handoff, true);
    }

    fn no_longer_outstanding(&mut self, id: &HandoffId) {
        if let Some(handoff) = self.get::<Handoff>(id) {
            let key = Key::new(Table::Outstanding).text(handoff.source_session.as_str()).text(id.as_str());
            self.tables.delete(key);
            self.expected(&handoff, false);
            self.no_longer_asked(&handoff);
        }
    }

    /// The newest run of the source session expects the handoff's answer, or no longer does.
    fn expected(&mut self, handoff: &Handoff, expected: bool) {
        let run = self.see::<Session>(&handoff.source_session).and_then(|session| session.run.clone());
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

    pub(super) fn attempt_ended(&mut self, id: &AttemptId, how: AttemptEnd, reason: &Name, at: Position) {
        let state = match how {
            AttemptEnd::Failed => AttemptState::Failed,
            AttemptEnd::Released => AttemptState::Released,
            AttemptEnd::Superseded => AttemptState::Superseded,
            AttemptEnd::Revoked => AttemptState::Revoked,
        };
        self.ended(id, state, Some(reason), at);
        if let Some(attempt) = self.get::<Attempt>(id) {
            if how == AttemptEnd::Failed {
                self.change(&attempt.handoff, |handoff: &mut Handoff| handoff.failures += 1);
            }
            self.told(attempt.question(), |history| match how {
                AttemptEnd::Failed => {}
                AttemptEnd::Released => history.released += 1,
                AttemptEnd::Superseded => history.expired += 1,
                AttemptEnd::Revoked => history.cancelled += 1,
            });
        }
    }

    fn ended(&mut self, id: &AttemptId, state: AttemptState, reason: Option<&Name>, at: Position) {
        if let Some(attempt) = self.get::<Attempt>(id) {
            self.no_longer_leased(&attempt);
        }
        self.change(id, |attempt: &mut Attempt| {
            attempt.state = state;
            attempt.ended_at = Some(at.at);
            attempt.reason = reason.cloned();
        });
        if let Some(attempt) = self.get::<Attempt>(id) {
            self.told(attempt.question(), |history| history.active.retain(|active| active != id));
        }
    }

    pub(super) fn reply_received(&mut self, reply: &Reply) {
        self.change(&reply.attempt, |attempt: &mut Attempt| {
            if reply.class == ReplyClass::SemanticInvalid {
                attempt.invalid += 1;
            }
            if attempt.transport == Transport::Import {
                attempt.brought = Some(reply.hash);
            }
        });
        let Some(attempt) = self.get::<Attempt>(&reply.attempt) else { return };
        self.told(attempt.question(), |history| {
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
}
