//! `log`: the records themselves, oldest first, as they stand.

use clap::Args;
use serde_json::Value;

use super::ctx::{Context, kind_of};
use super::output::{Done, Report, when};
use super::show::any_id;
use crate::error::Result;
use crate::model::event::Record;
use crate::model::time::Time;

/// Show the records, newest last
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nf log --limit 20\n  nf log s-4q2m\n  nf log --json     a record a line"
)]
pub struct Log {
    /// Only records that name this id
    pub id: Option<String>,
    /// How many at most, the newest
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

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
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| {
                format!(
                    "{:>6}  {}  {:<16} {}",
                    line.seq,
                    when(line.at, self.now),
                    line.cmd,
                    line.events.join(", ")
                )
            })
            .collect();
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
        let mut records: Vec<Record> = Vec::new();
        for record in opened.store.records_back()? {
            let record = record?;
            if wanted.as_ref().is_none_or(|id| names(&record, id)) {
                records.push(record);
            }
            if records.len() == self.limit as usize {
                break;
            }
        }
        records.reverse();
        let lines = records.iter().map(|record| Line {
            seq: record.seq,
            at: record.at,
            cmd: record.cmd.clone(),
            events: record.events.iter().map(crate::model::event::Event::word).collect(),
        });
        let mut done = Done::of(&LogReport { lines: lines.collect(), now: (opened.source.moment)().wall });
        done.lines = Some(records.iter().filter_map(|record| serde_json::to_string(record).ok()).collect());
        Ok(done)
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
