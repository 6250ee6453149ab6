//! The one JSON document of a command: what `--json` prints and what a tool gives.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Done, PLANNED};
use crate::error::{Body, Error};
use crate::model::event::Event;
use crate::store::Position;

/// The one JSON document of `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Envelope<T> {
    /// `nf.<command>/1`.
    pub schema: String,
    /// Whether the command did what it was asked.
    pub ok: bool,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// The failure or refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Body>,
    /// The record that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Position>,
    /// The events that a dry run would have recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Vec<Event>>,
    /// What was recovered or found on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Envelope<Value> {
    /// Of a finished command.
    pub fn of(done: Done) -> Self {
        let ok = done.failure.is_none();
        Self {
            schema: done.schema,
            ok,
            error: done.failure.map(|failure| failure.details(done.data.clone()).body()),
            data: ok.then_some(done.data),
            record: done.record,
            planned: done.planned,
            notes: done.notes,
        }
    }

    /// Of a failure or refusal. What a dry run would have recorded of it travels among the error's details,
    /// and stands where every dry run's events stand.
    pub fn failed(schema: String, error: &Error) -> Self {
        let mut body = error.body();
        let planned = body.details.as_object_mut().and_then(|details| details.remove(PLANNED));
        if body.details == serde_json::json!({}) {
            body.details = Value::Null;
        }
        let planned = planned.and_then(|events| serde_json::from_value(events).ok());
        let (error, notes) = (Some(body), Vec::new());
        Self { schema, ok: false, data: None, error, record: None, planned, notes }
    }
}
