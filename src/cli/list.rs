//! `list`: objects of a kind, newest first, a page at a time. A page's token stays good while new objects
//! come in.

use clap::Args;
use serde_json::Value;

use super::ctx::{Context, find};
use super::output::{Done, Report, table, when};
use crate::error::{Error, Kind, Result};
use crate::model::effect::EffectState;
use crate::model::handoff::{AttemptState, HandoffState};
use crate::model::id::{IdKind, JobId, Name, SessionId};
use crate::model::job::Job;
use crate::model::lists::{Common, Row};
use crate::model::result::Standing;
use crate::model::run::RunStatus;
use crate::model::session::Status;
use crate::model::state::State;
use crate::model::time::{Moment, Time};
use crate::rules::members::nearest;

use named::CAPABILITY;

mod columns;
pub mod named;
mod reclaim;

/// Objects on a page, where no other number is asked for.
const LIMIT: u32 = 20;

/// List objects of a kind, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf list session\n  nf list result --limit 5\n  \
    nf list attempt --job j-7hd3\n  nf list capability --state current\n  \
    nf list job --resource novel/pride/ch01\n  \
    nf list handoff --state reclaimable   claimed, and its lease is over")]
pub struct List {
    /// session, run, checkpoint, job, handoff, attempt, result, event, receipt, effect or capability
    pub kind: String,
    /// Only those of this state (status, state or standing)
    #[arg(long, value_name = "STATE")]
    pub state: Option<String>,
    /// Only those of this resource; for jobs, of this subject
    #[arg(long, value_name = "NAME")]
    pub resource: Option<Name>,
    /// Only those of this job
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on after the page that gave this token
    #[arg(long, value_name = "TOKEN")]
    pub after: Option<u64>,
}

/// A page of objects.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ListReport {
    /// The kind.
    pub kind: String,
    /// The objects, as the log tells them.
    pub items: Vec<Value>,
    /// The token of the next page, where there is one.
    pub next: Option<u64>,
    #[serde(skip)]
    now: Option<Time>,
    /// The command of this page, which the next one repeats.
    #[serde(skip)]
    command: String,
}

impl Report for ListReport {
    const COMMAND: &'static str = "list";

    fn answer(&self) -> String {
        if self.items.is_empty() {
            return String::new();
        }
        let columns = columns::columns(&self.kind);
        let moment = |text: &str| Some(when(text.parse().ok()?, self.now?));
        let cell = |item: &Value, pointer: &str| match item.pointer(pointer) {
            Some(Value::String(text)) if pointer.ends_with("_at") || pointer == "/at" => {
                moment(text).unwrap_or_else(|| text.clone())
            }
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "-".to_owned(),
            Some(other) => other.to_string(),
        };
        let head: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        let rows = self.items.iter().map(|item| columns.iter().map(|(_, at)| cell(item, at)).collect());
        table(&head, rows.collect())
    }

    fn news(&self) -> Vec<String> {
        if self.items.is_empty() { vec![format!("no {} to list", self.kind)] } else { Vec::new() }
    }

    fn next(&self) -> Option<String> {
        self.next.map(|token| format!("{} --after {token}", self.command))
    }
}

/// The kinds that can be listed now.
const KINDS: &[IdKind] = &[
    IdKind::SessionId,
    IdKind::RunId,
    IdKind::CheckpointId,
    IdKind::JobId,
    IdKind::HandoffId,
    IdKind::AttemptId,
    IdKind::ResultId,
    IdKind::EventId,
    IdKind::ReceiptId,
    IdKind::EffectId,
];

/// The kinds that have rows by resource, and by job.
const OF_RESOURCE: &[IdKind] =
    &[IdKind::SessionId, IdKind::RunId, IdKind::JobId, IdKind::HandoffId, IdKind::EventId];
const OF_JOB: &[IdKind] = &[IdKind::HandoffId, IdKind::AttemptId, IdKind::ResultId];

/// The states that an object of a kind can be in.
fn states(kind: IdKind) -> Vec<&'static str> {
    match kind {
        IdKind::SessionId => Status::ALL.iter().map(|state| state.word()).collect(),
        IdKind::RunId => RunStatus::ALL.iter().map(|state| state.word()).collect(),
        IdKind::HandoffId => {
            HandoffState::ALL.iter().map(|state| state.word()).chain([reclaim::RECLAIMABLE]).collect()
        }
        IdKind::AttemptId => AttemptState::ALL.iter().map(|state| state.word()).collect(),
        IdKind::ResultId => Standing::ALL.iter().map(|state| state.word()).collect(),
        IdKind::EffectId => EffectState::ALL.iter().map(|state| state.word()).collect(),
        _ => Vec::new(),
    }
}

fn kind_named(text: &str) -> Result<IdKind> {
    let singular = text.strip_suffix('s').unwrap_or(text);
    KINDS.iter().copied().find(|kind| kind.word() == singular).ok_or_else(|| {
        let words: Vec<&str> = KINDS.iter().map(|kind| kind.word()).chain([CAPABILITY]).collect();
        let shown: String = text.chars().take(40).collect();
        let error = Error::new(Kind::Usage, format!("{shown:?} is no kind"))
            .fix(format!("one of {}", words.join(", ")));
        match nearest(singular, words.iter().copied()) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error,
        }
    })
}

impl List {
    /// Runs the command.
    ///
    /// # Errors
    /// `usage`, and those of reading the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let snapshot = opened.store.read()?;
        let moment = (opened.source.moment)();
        let now = moment.wall;
        let (kind, (items, next)) = if ["capability", "capabilities"].contains(&self.kind.as_str()) {
            (CAPABILITY, named::page(&self, &snapshot.state, now)?)
        } else {
            let kind = kind_named(&self.kind)?;
            (kind.word(), self.page(ctx, &snapshot.state, kind, &moment)?)
        };
        let command = self.command(ctx, kind);
        let report = ListReport { kind: kind.to_owned(), items, next, now: Some(now), command };
        Ok(Done::of(&report).warned(snapshot.warnings))
    }

    /// The command with everything that chooses the objects, but for the place to go on from.
    fn command(&self, ctx: &Context, kind: &str) -> String {
        let given = [
            ("session", ctx.global.session.clone()),
            ("state", self.state.clone()),
            ("resource", self.resource.as_ref().map(ToString::to_string)),
            ("job", self.job.clone()),
            ("limit", (self.limit != LIMIT).then(|| self.limit.to_string())),
        ];
        let flags = given.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", value?)));
        format!("nf list {kind}{}", flags.collect::<String>())
    }

    fn page(
        &self,
        ctx: &Context,
        state: &State,
        kind: IdKind,
        now: &Moment,
    ) -> Result<(Vec<Value>, Option<u64>)> {
        self.fits(kind)?;
        let session = ctx.named_session(state)?.filter(|_| kind != IdKind::SessionId);
        let job = self.job.as_deref().map(|text| find::<Job>(state, text)).transpose()?.map(|job| job.id);
        let session = session.as_ref().map(|session| &session.id);
        if kind != IdKind::HandoffId {
            return Ok(self.take(state, kind, session, job.as_ref()));
        }
        if self.state.as_deref() == Some(reclaim::RECLAIMABLE) {
            let only = reclaim::Only { session, resource: self.resource.as_ref(), job: job.as_ref() };
            return Ok(reclaim::page(state, &only, now, (self.after, self.limit as usize)));
        }
        let (items, next) = self.take(state, kind, session, job.as_ref());
        Ok((items.into_iter().map(|item| reclaim::stands(state, item, now)).collect(), next))
    }

    /// Refuses what no object of the kind can be: an answer without objects would only hide the slip.
    fn fits(&self, kind: IdKind) -> Result<()> {
        let none = |what: &str, fix: String| {
            Err(Error::new(Kind::Usage, format!("no {} has a {what}", kind.word())).fix(fix))
        };
        if let Some(state) = &self.state {
            let words = states(kind);
            if words.is_empty() {
                return none("state", format!("nf list {}, without --state", kind.word()));
            }
            if !words.contains(&state.as_str()) {
                let shown: String = state.chars().take(40).collect();
                let what = format!("{shown:?} is the state of no {}", kind.word());
                return Err(Error::new(Kind::Usage, what).fix(format!("one of {}", words.join(", "))));
            }
        }
        if self.resource.is_some() && !OF_RESOURCE.contains(&kind) {
            let fix = format!("nf list {} --session ID; nf list session --resource R", kind.word());
            return none("resource", fix);
        }
        if self.job.is_some() && kind != IdKind::JobId && !OF_JOB.contains(&kind) {
            return none("job", format!("nf list {}, without --job", kind.word()));
        }
        Ok(())
    }

    /// A page, out of what the lists of each filter have in common: no more is looked at than that.
    fn take(
        &self,
        state: &State,
        kind: IdKind,
        session: Option<&SessionId>,
        job: Option<&JobId>,
    ) -> (Vec<Value>, Option<u64>) {
        let common = Common { session, resource: self.resource.as_ref(), job, state: self.state.as_deref() };
        let mut rows = state.listed(kind, &common, self.after).fuse();
        let page: Vec<Row> = rows.by_ref().take(self.limit as usize).collect();
        let next = rows.next().and_then(|_| page.last()).map(|row| row.place);
        (page.iter().filter_map(|row| state.value(&row.id)).collect(), next)
    }
}

#[cfg(test)]
pub mod tests;
