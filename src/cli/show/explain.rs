//! What explains each kind of object: why it waits, what it rests on, what has become of it, in words.

use super::ShowReport;
use crate::cli::ctx::{Opened, find};
use crate::cli::effect::facts::{look, open_line};
use crate::cli::load;
use crate::cli::output::{count, when};
use crate::error::Result;
use crate::model::effect::Effect;
use crate::model::external::{ExternalEvent, Payload};
use crate::model::handoff::{Attempt, AttemptState, Handoff};
use crate::model::id::{IdKind, Name, ReceiptId};
use crate::model::job::Job;
use crate::model::lists::Common;
use crate::model::result::{History, Provenance, Receipt, Source, Standing, StoredResult};
use crate::model::session::Session;
use crate::model::state::State;
use crate::model::time::{Moment, Time};
use crate::rules::effect::{held, status};
use crate::rules::lease::{self, MAX_INVALID, has_expired};
use crate::rules::once::earlier;
use crate::rules::waiting::{self, Stand};
use crate::rules::ways;

/// Attempts at a question that are looked at for those of one handoff.
const ATTEMPTS: usize = 200;

/// What an explanation is made from.
pub struct Looked<'a> {
    pub opened: &'a Opened,
    pub state: &'a State,
    pub moment: &'a Moment,
    /// Whether a program reads it: moments stand as in the log then.
    pub json: bool,
}

/// What has happened to a question, in words: what did not happen is left out.
pub fn history_line(history: &History) -> String {
    let History { opened, cancelled, released, expired, invalid, cannot_judge, late, conflicts, .. } =
        history;
    let all = [
        (*opened as usize, "attempt", " opened"),
        (*cancelled as usize, "attempt", " taken back"),
        (*released as usize, "attempt", " given back"),
        (*expired as usize, "attempt", " overtaken"),
        (*invalid as usize, "reply that failed a check", ""),
        (*cannot_judge as usize, "reviewer", " could not judge"),
        (*late as usize, "reply that came too late", ""),
        (*conflicts as usize, "reply that differed from the answer", ""),
        (history.answers.len(), "answer", ""),
    ];
    let told = all.into_iter().filter(|(number, ..)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, noun, what)| match noun.strip_prefix("reply ") {
            Some(rest) if number > 1 => format!("{number} replies {rest}"),
            _ => format!("{}{what}", count(number, noun)),
        })
        .collect();
    let verdicts: Vec<&str> = history.verdicts.iter().map(String::as_str).collect();
    let read = match verdicts.len() {
        0 => String::new(),
        _ => format!("; verdicts that were read: {}", verdicts.join(", ")),
    };
    match told.len() {
        0 => "history: nobody was asked yet".to_owned(),
        _ => format!("history: {}{read}", told.join(", ")),
    }
}

impl Looked<'_> {
    /// Adds what explains an object of a kind.
    ///
    /// # Errors
    /// Those of reading its blobs.
    pub fn explain(&self, kind: IdKind, report: &mut ShowReport) -> Result<()> {
        let state = self.state;
        match kind {
            IdKind::JobId => self.job(&find(state, &report.id)?, report)?,
            IdKind::HandoffId => self.handoff(&find(state, &report.id)?, report),
            IdKind::AttemptId => self.attempt(&find(state, &report.id)?, report),
            IdKind::ResultId => self.result(find(state, &report.id)?, report)?,
            IdKind::ReceiptId => self.receipt(&find(state, &report.id)?, report),
            IdKind::EventId => self.event(&find(state, &report.id)?, report)?,
            IdKind::EffectId => {
                let effect: Effect = find(state, &report.id)?;
                let seen = look(self.opened, &effect.path).seen;
                report.remarks.push(format!("now: {}", status(&effect, &seen)));
                report.remarks.push(format!("{} holds {}", effect.path, held(&effect, &seen)));
            }
            IdKind::SessionId => {
                let session: Session = find(state, &report.id)?;
                report.remarks.extend(state.open_effects(&session.id).map(|effect| open_line(&effect)));
            }
            IdKind::RunId | IdKind::CheckpointId => {}
        }
        Ok(())
    }

    fn tell(&self, time: Time) -> String {
        if self.json { time.to_string() } else { when(time, self.moment.wall) }
    }

    fn job(&self, job: &Job, report: &mut ShowReport) -> Result<()> {
        report.history = Some(self.state.history(&job.fingerprint));
        report.earlier = earlier(self.state, job);
        let frozen = load::frozen(&self.opened.store, job)?;
        let question = &frozen.question;
        report.question = Some(serde_json::json!({"input": question.input, "rubric": question.rubric}));
        report.remarks.push(format!(
            "demands: families {}, min_grade {}, interactive {}",
            frozen.execution.families.iter().map(|family| family.word()).collect::<Vec<_>>().join(", "),
            frozen.execution.min_grade,
            frozen.execution.interactive
        ));
        Ok(())
    }

    fn handoff(&self, handoff: &Handoff, report: &mut ShowReport) {
        let state = self.state;
        let history = state.history(handoff.question());
        let waiting = waiting::look(state, handoff, self.moment, &|time| self.tell(time));
        report.remarks.push(format!("stands: {}: {}", waiting.stand, waiting.why));
        if let (Stand::Ready, Some((ahead, family))) = (waiting.stand, waiting::ahead(state, handoff)) {
            let place = match ahead {
                0 => "the next one".to_owned(),
                ahead => format!("number {}, with {ahead} before it,", ahead + 1),
            };
            let class = &handoff.target_class;
            report.remarks.push(format!("queue: {place} for a {class} of family {family}"));
        }
        let (opened, most) = (history.opened, handoff.max_attempts);
        report
            .remarks
            .push(format!("attempts: {opened} of {most} are used, over all handoffs of its question"));
        let session = Some(&handoff.source_session).filter(|_| handoff.job.is_none());
        let common = Common { job: handoff.job.as_ref(), session, ..Common::default() };
        let rows = state.listed(IdKind::AttemptId, &common, None).take(ATTEMPTS);
        let attempts = rows.filter_map(|row| state.get::<Attempt>(&row.id.parse().ok()?));
        let mut own: Vec<Attempt> = attempts.filter(|attempt| attempt.handoff == handoff.id).collect();
        own.reverse();
        report.remarks.extend(own.iter().map(|attempt| format!("  {}", self.attempt_line(attempt))));
        report.history = Some(history);
        report.next = Some(waiting.way);
    }

    fn attempt_line(&self, attempt: &Attempt) -> String {
        let Attempt { id, number, transport, state, lease, claimed_at, .. } = attempt;
        let by = attempt.worker.as_ref().map_or_else(String::new, |worker| format!(" by {worker}"));
        let claimed = self.tell(*claimed_at);
        let mut line = format!("attempt {id} (number {number}, {transport}{by}) is {state}; from {claimed}");
        match attempt.ended_at {
            Some(ended) => line.push_str(&format!(" to {}", self.tell(ended))),
            None => line.push_str(&format!(", leased until {}", self.tell(lease.expires_at()))),
        }
        if let Some(reason) = &attempt.reason {
            line.push_str(&format!(", reason {reason}"));
        }
        if attempt.invalid > 0 {
            line.push_str(&format!(", {} of {MAX_INVALID} invalid", attempt.invalid));
        }
        if let Some(result) = &attempt.result {
            line.push_str(&format!(", result {result}"));
        }
        line
    }

    fn attempt(&self, attempt: &Attempt, report: &mut ShowReport) {
        let handoff = self.state.get::<Handoff>(&attempt.handoff);
        let newest = handoff.as_ref().and_then(|handoff| handoff.attempt.clone());
        report.history = Some(self.state.history(attempt.question()));
        report.remarks.push(self.attempt_line(attempt));
        let over = attempt.lapsed || has_expired(&attempt.lease, self.moment);
        report.remarks.push(match (attempt.state, over) {
            (AttemptState::Active, false) => "it may answer, and nobody else may claim its work".to_owned(),
            (AttemptState::Active, true) => {
                "its lease has run out: it may answer until somebody else claims its work".to_owned()
            }
            (AttemptState::Completed, _) => "its answer is in".to_owned(),
            (state, _) => match newest.filter(|newest| *newest != attempt.id) {
                Some(newest) => format!("it may no longer act ({state}); attempt {newest} came after it"),
                None => format!("it may no longer act ({state})"),
            },
        });
        if let (AttemptState::Active, Some(handoff)) = (attempt.state, &handoff) {
            report.next = Some(format!("nf show {}", handoff.id));
        }
    }

    fn result(&self, result: StoredResult, report: &mut ShowReport) -> Result<()> {
        let evidence = load::evidence(&self.opened.store, self.state, result)?;
        report.grounds = evidence.grounds();
        report.output = evidence.body.get("output").cloned();
        let result = &evidence.result;
        report.history = Some(self.state.history(result.question()));
        report.remarks.extend(result.consumed.iter().map(|(by, receipt)| consumed_line(by, receipt)));
        let gate = &evidence.handoff.gate;
        let standing = result.checked.as_ref().map(|checked| checked.standing);
        match standing {
            Some(Standing::Surplus) => {
                report.remarks.push("surplus: another answer came first; it is never consumed".to_owned());
            }
            Some(_) if !result.consumed.contains_key(gate) => {
                report.next = Some(ways::to_apply(self.state, result, &evidence.handoff));
            }
            _ => {}
        }
        Ok(())
    }

    fn receipt(&self, receipt: &Receipt, report: &mut ShowReport) {
        let state = self.state;
        let outcome = &receipt.outcome;
        let verdict = outcome.value.as_ref().map_or_else(String::new, |value| format!(", verdict {value}"));
        let route =
            outcome.route.as_ref().map_or_else(String::new, |route| format!(", repair route {route}"));
        let at = self.tell(receipt.at);
        report.remarks.push(format!("{} applied {}{verdict}{route}, {at}", receipt.consumer, receipt.source));
        match &receipt.source {
            Source::Result(id) => {
                if let Some(result) = state.get::<StoredResult>(id) {
                    let grade = result.checked.as_ref().map_or("none", |checked| checked.grade.word());
                    let Provenance { attempt, handoff, transport, .. } = &result.provenance;
                    report.remarks.push(format!(
                        "rests on: result {id} of {}, attempt {attempt} of handoff {handoff} by \
                         {transport}, independence {grade}",
                        lease::what(result.job.as_ref(), Some(handoff))
                    ));
                }
            }
            Source::Event(id) => report.remarks.push(format!("rests on: event {id}; it moves no gate")),
        }
        let failed = receipt.checks.iter().filter(|check| !check.ok).count();
        let all = count(receipt.checks.len(), "check");
        report.remarks.push(format!("{all} ran again when it was recorded, {failed} failed"));
        if receipt.contested.is_some() {
            report.remarks.push("the answer was contested, and consumed openly with a reason".to_owned());
        }
        report.history.clone_from(&receipt.history);
        report.earlier.clone_from(&receipt.earlier);
        let effects = state.effects_of_receipt(&receipt.id);
        report.remarks.extend(effects.map(|effect| match effect.is_open() {
            true => format!("rests on it: {}", open_line(&effect)),
            false => format!("rests on it: effect {} ({}) is {}", effect.id, effect.key, effect.state),
        }));
    }

    fn event(&self, event: &ExternalEvent, report: &mut ShowReport) -> Result<()> {
        if matches!(event.payload, Some(Payload::Blob(_))) {
            report.payload = load::payload(&self.opened.store, event)?;
        }
        if let Some(session) = self.state.session_of(event) {
            report.remarks.push(format!("belongs to session {session}"));
        }
        report.remarks.extend(event.consumed.iter().map(|(by, receipt)| consumed_line(by, receipt)));
        match event.reports() {
            Some(handoff) => {
                report
                    .remarks
                    .push(format!("reports a result of handoff {handoff}; only a result is consumed"));
                report.next = Some(format!("nf show {handoff}"));
            }
            None if event.consumed.is_empty() => {
                report.remarks.push("nobody has applied it; it moves no gate and grants nothing".to_owned());
                report.next = Some(format!("nf consume {} --as NAME", event.id));
            }
            None => {}
        }
        Ok(())
    }
}

fn consumed_line(by: &Name, receipt: &ReceiptId) -> String {
    format!("applied by {by}, receipt {receipt}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_tells_what_happened_and_nothing_else() {
        let mut history = History::default();
        assert_eq!(history_line(&history), "history: nobody was asked yet");
        history.opened = 2;
        history.invalid = 1;
        assert_eq!(history_line(&history), "history: 2 attempts opened, 1 reply that failed a check");
        history = History { invalid: 3, released: 1, verdicts: vec!["accept".to_owned()], ..history };
        assert_eq!(
            history_line(&history),
            "history: 2 attempts opened, 1 attempt given back, 3 replies that failed a check; verdicts that \
             were read: accept"
        );
    }
}
