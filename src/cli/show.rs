//! `show`: one object, whole, with what explains it.

use clap::Args;
use serde_json::Value;

use super::ctx::{Context, kind_of, resolve};
use super::list::named::{CAPABILITY, with_state};
use super::output::{Done, Report, checks};
use crate::error::Result;
use crate::model::check::Check;
use crate::model::id::{
    AttemptId, CheckpointId, EffectId, EventId, HandoffId, Id, IdKind, JobId, ReceiptId, ResultId, RunId,
    SessionId,
};
use crate::model::result::{History, Judgement};
use crate::model::state::State;
use crate::rules::independence::grade;
use explain::Looked;

mod explain;

/// Show one object and what explains it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf show j-7hd3      a job with its history\n  \
    nf show h-1x9d      a handoff: why it waits, and its attempts\n  \
    nf show x-8c1v      a result with its independence, line by line\n  nf show t-4q2m      a receipt")]
pub struct Show {
    /// The id, or a unique beginning of it; or the name of a capability
    pub id: String,
}

/// One object.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ShowReport {
    /// The kind of object.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// The object, as the log tells it.
    pub object: Value,
    /// The question, where it is a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Value>,
    /// The typed answer, where it is a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What it carries, where it is an event that keeps that in a blob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// What has happened to its question, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Judgements under other questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Judgement>,
    /// The grounds of its independence grade, where it is a result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grounds: Vec<Check>,
    /// What explains it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The command that leads on, where it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl ShowReport {
    /// An object without anything that explains it yet.
    fn of(kind: &str, id: String, object: Value) -> Self {
        Self {
            kind: kind.to_owned(),
            id,
            object,
            question: None,
            output: None,
            payload: None,
            history: None,
            earlier: Vec::new(),
            grounds: Vec::new(),
            remarks: Vec::new(),
            next: None,
        }
    }
}

impl Report for ShowReport {
    const COMMAND: &'static str = "show";

    fn answer(&self) -> String {
        let mut lines = vec![format!("{} {}", self.kind, self.id)];
        let parts = [("question:", &self.question), ("answer:", &self.output), ("payload:", &self.payload)];
        for (title, value) in parts {
            if let Some(value) = value {
                lines.push(title.to_owned());
                plain(value, 1, &mut lines);
            }
        }
        if parts.iter().any(|(_, value)| value.is_some()) {
            lines.push("record:".to_owned());
        }
        plain(&self.object, 1, &mut lines);
        if let Some(history) = &self.history {
            lines.push(explain::history_line(history));
        }
        for judgement in &self.earlier {
            let verdict = judgement.verdict.as_deref().unwrap_or("no verdict");
            lines.push(format!("earlier: {} ({verdict}), same {}", judgement.result, judgement.shares));
        }
        if !self.grounds.is_empty() {
            lines.push(format!("independence: {}", grade(&self.grounds)));
            lines.extend(checks(&self.grounds));
        }
        lines.extend(self.remarks.iter().cloned());
        lines.join("\n")
    }

    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

/// A value as indented lines: what a person reads, with the members of an object by name.
fn plain(value: &Value, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, member) in map {
                match short(member) {
                    Some(text) => lines.push(format!("{indent}{key}: {text}")),
                    None => {
                        lines.push(format!("{indent}{key}:"));
                        plain(member, depth + 1, lines);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match short(item) {
                    Some(text) => lines.push(format!("{indent}- {text}")),
                    None => {
                        lines.push(format!("{indent}-"));
                        plain(item, depth + 1, lines);
                    }
                }
            }
        }
        other => lines.push(format!("{indent}{other}")),
    }
}

/// A value that fits on its line.
fn short(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(map) if map.is_empty() => Some("none".to_owned()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        // Every check is one line, so that thirteen of them stay a table.
        Value::Object(map) if map.contains_key("check") && map.contains_key("ok") => {
            let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
            let mark = if map.get("ok") == Some(&Value::Bool(true)) { "ok" } else { "FAIL" };
            Some(format!("{mark} {}: want {}, got {}", text("check"), text("want"), text("got")))
        }
        Value::Object(_) | Value::Array(_) => None,
        other => Some(other.to_string()),
    }
}

impl Show {
    /// Runs the command.
    ///
    /// # Errors
    /// `usage` for what is no id, `unknown_id`, `ambiguous_id`, and those of reading the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let snapshot = opened.store.read()?;
        let state = &snapshot.state;
        let kind = match (kind_of(&self.id), state.capability(&self.id)) {
            (Err(_), Some(capability)) => {
                let now = (opened.source.moment)().wall;
                let report = ShowReport::of(CAPABILITY, self.id, with_state(state, &capability, now));
                return Ok(Done::of(&report).warned(snapshot.warnings));
            }
            (kind, _) => kind?,
        };
        let id = any_id(state, kind, &self.id)?;
        let object = state.value(&id).unwrap_or_default();
        let mut report = ShowReport::of(kind.word(), id, object);
        let moment = (opened.source.moment)();
        let looked = Looked { opened: &opened, state, moment: &moment, json: ctx.global.json };
        looked.explain(kind, &mut report)?;
        Ok(Done::of(&report).warned(snapshot.warnings))
    }
}

/// An id of any kind from a unique beginning.
///
/// # Errors
/// As [`resolve`].
pub fn any_id(state: &State, kind: IdKind, text: &str) -> Result<String> {
    fn one<T: Id>(state: &State, text: &str) -> Result<String> {
        Ok(resolve::<T>(state, text)?.as_str().to_owned())
    }
    match kind {
        IdKind::SessionId => one::<SessionId>(state, text),
        IdKind::RunId => one::<RunId>(state, text),
        IdKind::CheckpointId => one::<CheckpointId>(state, text),
        IdKind::JobId => one::<JobId>(state, text),
        IdKind::HandoffId => one::<HandoffId>(state, text),
        IdKind::AttemptId => one::<AttemptId>(state, text),
        IdKind::ResultId => one::<ResultId>(state, text),
        IdKind::EventId => one::<EventId>(state, text),
        IdKind::ReceiptId => one::<ReceiptId>(state, text),
        IdKind::EffectId => one::<EffectId>(state, text),
    }
}
