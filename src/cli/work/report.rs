//! What `work` tells: one line for each piece of work that it took, and one error for one that gave no
//! answer.

use serde::Serialize;

use crate::adapters::ask::Failure;
use crate::cli::output::{Done, Report, count};
use crate::error::{Error, Kind};
use crate::model::id::{AttemptId, HandoffId, Name, ResultId};
use crate::model::job::{Grade, Verdict};
use crate::model::time::Time;
use crate::rules::answer::Bound;
use crate::store::Position;

/// Pieces of work that are told of at most, the newest ones.
const TOLD: usize = 100;

/// What became of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its answer was bound; a negative verdict is one too.
    Valid,
    /// Its answer failed intake or binding, or was refused.
    Refused,
    /// It gave no answer.
    ExecutionFailed,
    /// The way to the worker is not there.
    ExecutionUnavailable,
    /// It was no longer the current one.
    LeaseLost,
    /// It was given back, as the program was told to end.
    Released,
}

impl Fate {
    /// It in a few words.
    fn words(self) -> &'static str {
        match self {
            Fate::Valid => "valid",
            Fate::Refused => "refused",
            Fate::ExecutionFailed => "no answer",
            Fate::ExecutionUnavailable => "not there",
            Fate::LeaseLost => "lease lost",
            Fate::Released => "given back",
        }
    }
}

/// One attempt that was made.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Item {
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The worker that was asked.
    pub worker: Name,
    /// What became of it.
    pub fate: Fate,
    /// The result, where it is valid.
    pub result: Option<ResultId>,
    /// The gate that `consume --as` names, where it is valid.
    pub gate: Option<Name>,
    /// Its verdict; a negative one is valid.
    pub verdict: Option<Verdict>,
    /// How well a separate reviewer is proved.
    pub grade: Option<Grade>,
    /// Why there is no answer, in a word.
    pub reason: Option<String>,
    /// The same in words.
    pub detail: Option<String>,
    /// From when the handoff can be claimed again.
    pub ready_at: Option<Time>,
    /// The command that leads on from a valid answer.
    #[serde(skip)]
    pub way: Option<String>,
}

impl Item {
    /// An attempt of which nothing is known yet but that it was given back.
    pub fn of(handoff: &HandoffId, attempt: &AttemptId, worker: &Name) -> Self {
        Self {
            handoff: handoff.clone(),
            attempt: attempt.clone(),
            worker: worker.clone(),
            fate: Fate::Released,
            result: None,
            gate: None,
            verdict: None,
            grade: None,
            reason: None,
            detail: None,
            ready_at: None,
            way: None,
        }
    }

    /// The same, answered.
    pub fn bound(self, bound: &Bound) -> Self {
        Self {
            fate: Fate::Valid,
            result: Some(bound.result.clone()),
            gate: Some(bound.gate.clone()),
            verdict: Some(bound.verdict.clone()),
            grade: Some(bound.grade),
            way: crate::cli::reply::next(bound),
            ..self
        }
    }

    /// The same, of a fate for a reason.
    pub fn because(self, fate: Fate, reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fate, reason: Some(reason.into()), detail: Some(detail.into()), ..self }
    }

    /// It in one line.
    pub fn line(&self) -> String {
        let Item { handoff, worker, fate, .. } = self;
        let verdict = self.verdict.as_ref().and_then(|verdict| verdict.value.as_deref());
        let mut line = format!("{handoff} by {worker}: {}", fate.words());
        line.extend(self.result.iter().map(|result| format!(", result {result}")));
        line.extend(verdict.map(|verdict| format!(", verdict {verdict}")));
        line.extend(self.grade.map(|grade| format!(", independence {grade}")));
        line.extend(self.reason.iter().map(|reason| format!(", {reason}")));
        line.extend(self.detail.iter().map(|detail| format!(" ({})", detail.replace('\n', "; "))));
        line
    }
}

/// What a spell of work came to.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WorkReport {
    /// Attempts that were answered validly.
    pub answered: u32,
    /// Attempts that were not.
    pub unanswered: u32,
    /// Whether it ended because it was told to.
    pub stopped: bool,
    /// The attempts, the newest hundred.
    pub items: Vec<Item>,
    /// The checks and the news of a single answer.
    #[serde(skip)]
    pub told: Vec<String>,
}

impl WorkReport {
    /// Adds what became of an attempt.
    pub fn add(&mut self, item: Item) {
        match item.fate {
            Fate::Valid => self.answered += 1,
            _ => self.unanswered += 1,
        }
        self.items.push(item);
        self.items.drain(..self.items.len().saturating_sub(TOLD));
    }

    /// The finished command, with the record of its last answer.
    pub fn done(&self, record: Option<Position>) -> Done {
        Done { record, ..Done::of(self) }
    }
}

impl Report for WorkReport {
    const COMMAND: &'static str = "work";

    fn answer(&self) -> String {
        let results = self.items.iter().filter_map(|item| item.result.as_ref());
        results.map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn news(&self) -> Vec<String> {
        let mut news = self.told.clone();
        let gaps = match self.unanswered {
            0 => String::new(),
            more => format!(", {} without an answer", count(more as usize, "attempt")),
        };
        news.push(format!("{} answered{gaps}", self.answered));
        if self.stopped {
            news.push("ended because it was told to; nothing is left running".to_owned());
        }
        news
    }

    fn next(&self) -> Option<String> {
        let last = self.items.iter().rev().find(|item| item.fate == Fate::Valid)?;
        last.way.clone()
    }
}

/// The error of an execution that gave no answer.
pub fn no_answer(worker: &Name, failure: &Failure) -> Error {
    let kind = if failure.unavailable { Kind::ExecutionUnavailable } else { Kind::ExecutionFailed };
    let fix = match (failure.unavailable, failure.reason) {
        (true, _) => "mend that, or let another worker have it; the question is the same".to_owned(),
        (false, "crash") => "run it with --show-stderr to see what it says; it runs in an empty folder, so \
            that paths in its arguments must be absolute"
            .to_owned(),
        (false, _) if !failure.retryable => "the same again would help nobody: nf handoff open JOB --class \
            CLASS queues it anew, for another worker"
            .to_owned(),
        (false, _) => "nf work again, or with another worker; the question is the same".to_owned(),
    };
    let millis = |wait: std::time::Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Error::new(kind, format!("worker {worker} gave no answer; this is no verdict"))
        .because(format!("{}: {}", failure.reason, failure.detail))
        .fix(fix)
        .details(serde_json::json!({
            "reason": failure.reason, "worker": worker, "retryable": failure.retryable,
            "retry_after_ms": failure.retry_after.map(millis),
        }))
}
