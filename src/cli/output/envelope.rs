//! The one JSON document of a command: what `--json` prints and what a tool gives.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Done;
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

    /// Of a failure or refusal.
    pub fn failed(schema: String, error: &Error) -> Self {
        let (error, notes) = (Some(error.body()), Vec::new());
        Self { schema, ok: false, data: None, error, record: None, planned: None, notes }
    }
}
