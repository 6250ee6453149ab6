//! The lifecycle and lease rules, run again over the whole history: what `verify` checks beside the bytes.
//! Bounded: a session's state and an attempt's are a word each.

use std::collections::BTreeMap;

use crate::model::effect::EffectState;
use crate::model::event::{Event, Record};
use crate::model::id::{AttemptId, EffectId, HandoffId, Name, SessionId};
use crate::model::result::{Source, Standing};
use crate::model::session::Status;
use crate::rules::lifecycle::followers;
use crate::store::{Finding, Severity};

/// Findings that one verification lists at most.
const MAX_FINDINGS: usize = 100;

/// What has been seen so far.
#[derive(Default)]
pub struct History {
    sessions: BTreeMap<SessionId, (Status, u64)>,
    attempts: BTreeMap<AttemptId, HandoffId>,
    claims: BTreeMap<HandoffId, (u32, Option<AttemptId>)>,
    /// Whether a source may be applied.
    sources: BTreeMap<Source, bool>,
    receipts: BTreeMap<(Source, Name), u64>,
    keys: BTreeMap<Name, u64>,
    effects: BTreeMap<EffectId, EffectState>,
    findings: Vec<Finding>,
}

impl History {
    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        for event in &record.events {
            self.event(record.seq, event);
        }
    }

    /// What no sound history has.
    pub fn findings(self) -> Vec<Finding> {
        self.findings
    }

    fn wrong(&mut self, seq: u64, code: &str, what: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding {
                code: code.to_owned(),
                severity: Severity::Error,
                what: format!("record {seq}: {what}"),
                fix: "no nf wrote this history; compare with a backup".to_owned(),
            });
        }
    }

    fn event(&mut self, seq: u64, event: &Event) {
        match event {
            Event::SessionCreated { session } => {
                if session.status != Status::Created {
                    self.wrong(
                        seq,
                        "lifecycle",
                        format!("session {} was made {}", session.id, session.status),
                    );
                }
                self.sessions.insert(session.id.clone(), (session.status, session.version));
            }
            Event::SessionMoved { session, from, to, version } => {
                let held = self.sessions.get(session).copied();
                let legal = held == Some((*from, version.saturating_sub(1))) && followers(*from).contains(to);
                if !legal {
                    self.wrong(seq, "lifecycle", format!("session {session} went from {from} to {to}"));
                }
                self.sessions.insert(session.clone(), (*to, *version));
            }
            Event::HandoffClaimed { attempt } => {
                let (number, current) = self.claims.get(&attempt.handoff).cloned().unwrap_or_default();
                if attempt.number != number + 1 || current.is_some() {
                    self.wrong(seq, "lease", format!("attempt {} claimed what was not free", attempt.id));
                }
                let claim = (attempt.number, Some(attempt.id.clone()));
                self.claims.insert(attempt.handoff.clone(), claim);
                self.attempts.insert(attempt.id.clone(), attempt.handoff.clone());
            }
            Event::AttemptEnded { attempt, .. } => self.ended(seq, attempt),
            Event::HandoffCompleted { attempt, .. } => self.ended(seq, attempt),
            Event::ResultChecked { result, checked } => {
                self.sources.insert(result.clone().into(), checked.standing != Standing::Surplus);
            }
            Event::ExternalReceived { event } => {
                self.sources.insert(event.id.clone().into(), event.reports().is_none());
                if let Some(first) = self.keys.insert(event.key.clone(), seq) {
                    let what = format!("key {} stands again, after record {first}", event.key);
                    self.wrong(seq, "event_key", what);
                }
            }
            Event::ReceiptRecorded { receipt } => {
                let key = (receipt.source.clone(), receipt.consumer.clone());
                if let Some(first) = self.receipts.insert(key, seq) {
                    let what = format!(
                        "{} applied {} again, after record {first}",
                        receipt.consumer, receipt.source
                    );
                    self.wrong(seq, "consumed_twice", what);
                }
                if self.sources.get(&receipt.source) != Some(&true) {
                    self.wrong(seq, "consumed_invalid", format!("{} is no valid source", receipt.source));
                }
                if receipt.seq != seq {
                    self.wrong(
                        seq,
                        "receipt_place",
                        format!("receipt {} says record {}", receipt.id, receipt.seq),
                    );
                }
            }
            Event::EffectPlanned { effect } => self.effect(seq, &effect.id, EffectState::Planned),
            Event::EffectStarted { effect, .. } => self.effect(seq, effect, EffectState::Started),
            Event::EffectDone { effect, .. } => self.effect(seq, effect, EffectState::Done),
            Event::EffectCleared { effect, .. } => self.effect(seq, effect, EffectState::Cleared),
            _ => {}
        }
    }

    /// An effect is planned once, started at most once, and ends once.
    fn effect(&mut self, seq: u64, id: &EffectId, to: EffectState) {
        let from = self.effects.insert(id.clone(), to);
        let legal = match to {
            EffectState::Planned => from.is_none(),
            EffectState::Started => from == Some(EffectState::Planned),
            _ => matches!(from, Some(EffectState::Planned | EffectState::Started)),
        };
        if !legal {
            let from = from.map_or("nothing", EffectState::word);
            self.wrong(seq, "effect", format!("effect {id} went from {from} to {to}"));
        }
    }

    /// Only the current attempt of a handoff may end.
    fn ended(&mut self, seq: u64, attempt: &AttemptId) {
        let handoff = self.attempts.get(attempt).cloned();
        let claim = handoff.as_ref().and_then(|handoff| self.claims.get_mut(handoff));
        match claim {
            Some((_, current)) if current.as_ref() == Some(attempt) => *current = None,
            _ => self.wrong(seq, "lease", format!("attempt {attempt} ended and was not current")),
        }
    }
}

#[cfg(test)]
mod tests;
