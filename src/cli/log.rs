//! `log`: the records themselves, oldest first, as they stand.

use clap::Args;
use serde_json::Value;

use super::ctx::{Context, Opened, kind_of};
use super::output::{Done, Report, goes_on, pause, when};
use super::show::any_id;
use crate::error::{Kind, Result};
use crate::model::event::Record;
use crate::model::time::Time;

/// Show the records, newest last
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nf log --limit 20\n  nf log s-4q2m\n  nf log --json     a record a line\n  \
        nf log --follow --json"
)]
pub struct Log {
    /// Only records that name this id
    pub id: Option<String>,
    /// How many at most, the newest
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on with each new record as it becomes durable, until the reader goes or a signal comes
    #[arg(long)]
    pub follow: bool,
}

/// How long a reader that follows waits before it looks again.
const PACE: std::time::Duration = std::time::Duration::from_millis(200);

/// A record in a line.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Line {
    /// Its number.
    pub seq: u64,
    /// Its time.
    pub at: Time,
    /// The command that wrote it.
    pub cmd: String,
    /// The words of its events.
    pub events: Vec<String>,
}

impl Line {
    fn of(record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
            cmd: record.cmd.clone(),
            events: record.events.iter().map(crate::model::event::Event::word).collect(),
        }
    }

    fn shown(&self, now: Time) -> String {
        format!("{:>6}  {}  {:<16} {}", self.seq, when(self.at, now), self.cmd, self.events.join(", "))
    }
}

/// Records.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct LogReport {
    /// The records, oldest first.
    pub lines: Vec<Line>,
    #[serde(skip)]
    now: Time,
}

impl Report for LogReport {
    const COMMAND: &'static str = "log";

    fn answer(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| line.shown(self.now)).collect();
        lines.join("\n")
    }
}

impl Log {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let wanted = match &self.id {
            None => None,
            Some(text) => Some(any_id(&opened.store.read()?.state, kind_of(text)?, text)?),
        };
        let wanted = |record: &Record| wanted.as_ref().is_none_or(|id| names(record, id));
        if self.follow {
            return self.following(ctx, &opened, &wanted);
        }
        let (records, notes) = self.records(ctx, &opened, &wanted)?;
        let lines = records.iter().map(Line::of);
        let mut done = Done::of(&LogReport { lines: lines.collect(), now: (opened.source.moment)().wall });
        done.lines = Some(records.iter().filter_map(|record| serde_json::to_string(record).ok()).collect());
        Ok(done.warned(notes))
    }

    /// Prints the newest records, then each new one. Takes no lock and holds nothing between two looks:
    /// it may be killed at any time.
    fn following(&self, ctx: &Context, opened: &Opened, wanted: &dyn Fn(&Record) -> bool) -> Result<Done> {
        let (back, mut later) = opened.store.records_and_later()?;
        let kept = back.filter(|record| record.as_ref().map_or(true, wanted));
        let mut records = kept.take(self.limit as usize).collect::<Result<Vec<Record>>>()?;
        records.reverse();
        let now = || (opened.source.moment)().wall;
        let print = |record: &Record| match ctx.global.json {
            true => goes_on(&serde_json::to_string(record).unwrap_or_default(), true),
            false => goes_on(&Line::of(record).shown(now()), false),
        };
        let mut read = records.iter().all(print);
        while read {
            for record in later.by_ref() {
                let record = record?;
                read = read && (!wanted(&record) || print(&record));
            }
            read = read && pause(PACE);
        }
        let mut done = Done::of(&LogReport { lines: Vec::new(), now: now() });
        done.lines = Some(Vec::new());
        Ok(done)
    }

    /// The newest records that are wanted, oldest first. Behind damage nothing is sure, so that a damaged log
    /// is read from its beginning.
    fn records(
        &self,
        ctx: &Context,
        opened: &Opened,
        wanted: &dyn Fn(&Record) -> bool,
    ) -> Result<(Vec<Record>, Vec<String>)> {
        let limit = self.limit as usize;
        let back = opened.store.records_back().and_then(|records| {
            let kept = records.filter(|record| record.as_ref().map_or(true, wanted));
            kept.take(limit).collect::<Result<Vec<Record>>>()
        });
        match back {
            Ok(mut records) => {
                records.reverse();
                Ok((records, Vec::new()))
            }
            Err(error) if error.kind == Kind::Damaged && ctx.global.allow_damaged => {
                let sound = opened.store.records(1).map_while(Result::ok);
                let mut records: Vec<Record> = sound.filter(|record| wanted(record)).collect();
                records.drain(..records.len().saturating_sub(limit));
                Ok((records, vec![format!("{error}; only what comes before the damage is shown")]))
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a record's events name an id anywhere.
fn names(record: &Record, id: &str) -> bool {
    fn holds(value: &Value, id: &str) -> bool {
        match value {
            Value::String(text) => text == id,
            Value::Array(items) => items.iter().any(|item| holds(item, id)),
            Value::Object(map) => map.values().any(|member| holds(member, id)),
            _ => false,
        }
    }
    serde_json::to_value(&record.events).is_ok_and(|events| holds(&events, id))
}
