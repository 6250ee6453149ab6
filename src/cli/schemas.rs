//! The JSON schemas of every command's `--json` document, each whole in itself, and the same for
//! `docs/json/`, where the events of a dry run stand in one document that the others refer to.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Map, Value, json};

use super::output::{Envelope, Report, schema_name};
use super::{
    capability, carry, checkpoint, consume, contract, doctor, effect, event, freeze, handoff, init, list,
    packet, reply, resume, route, session, shell, show, start, status, validate, work,
};
use crate::model::event::Event;

fn of<R: Report>() -> (String, Schema) {
    (schema_name(R::COMMAND), schema_for!(Envelope<R>))
}

/// The document of all events.
pub const EVENTS: &str = "nf.events/1";

/// The file of a schema in `docs/json/`.
pub fn file(name: &str) -> String {
    format!("{}.json", name.trim_end_matches("/1"))
}

/// Every schema as `docs/json/` has it: what one says of the events of a dry run is said once, in [`EVENTS`].
pub fn documents() -> Vec<(String, Value)> {
    let events = (EVENTS.to_owned(), schema_for!(Event).to_value());
    let others = all().into_iter().map(|(name, schema)| {
        let mut schema = schema.to_value();
        refer(&mut schema);
        keep_what_is_used(&mut schema);
        (name, schema)
    });
    std::iter::once(events).chain(others).collect()
}

/// Puts the reference to the events' document in place of that to the schema's own copy.
fn refer(schema: &mut Value) {
    match schema {
        Value::Object(map) if map.get("$ref") == Some(&json!("#/$defs/Event")) => {
            map.insert("$ref".to_owned(), file(EVENTS).into());
        }
        Value::Object(map) => map.values_mut().for_each(refer),
        Value::Array(all) => all.iter_mut().for_each(refer),
        _ => {}
    }
}

/// Leaves out the definitions that nothing refers to any more.
fn keep_what_is_used(schema: &mut Value) {
    let Some(mut held) = schema.as_object_mut().and_then(|map| map.remove("$defs")) else { return };
    let Some(held) = held.as_object_mut() else { return };
    let mut wanted = BTreeSet::new();
    named(schema, &mut wanted);
    let mut kept = Map::new();
    while let Some(name) = wanted.pop_first() {
        if let Some(definition) = held.remove(&name) {
            named(&definition, &mut wanted);
            kept.insert(name, definition);
        }
    }
    kept.sort_keys();
    if let Some(map) = schema.as_object_mut().filter(|_| !kept.is_empty()) {
        map.insert("$defs".to_owned(), kept.into());
    }
}

/// The definitions that a schema refers to.
fn named(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
            into.extend(name.map(str::to_owned));
            map.values().for_each(|inner| named(inner, into));
        }
        Value::Array(all) => all.iter().for_each(|inner| named(inner, into)),
        _ => {}
    }
}

/// Every schema by name, whole in itself. `log --json` is JSON Lines, one record a line, and has its own.
pub fn all() -> Vec<(String, Schema)> {
    vec![
        of::<init::InitReport>(),
        of::<start::Started>(),
        of::<freeze::FrozenReport>(),
        of::<packet::PacketReport>(),
        of::<reply::ReplyReport>(),
        of::<reply::Ask>(),
        of::<consume::ConsumeReport>(),
        of::<resume::ResumeReport>(),
        of::<status::StatusReport>(),
        of::<show::ShowReport>(),
        of::<list::ListReport>(),
        of::<validate::ValidateReport>(),
        of::<doctor::VerifyReport>(),
        of::<doctor::DoctorReport>(),
        of::<session::Made>(),
        of::<session::Moved>(),
        of::<session::Stepped>(),
        of::<session::Finished>(),
        of::<checkpoint::SaveReport>(),
        of::<route::RouteReport>(),
        of::<capability::DeclareReport>(),
        of::<capability::ProbeReport>(),
        of::<event::PutReport>(),
        of::<event::github::ImportReport>(),
        of::<effect::report::PlanReport>(),
        of::<effect::report::CheckReport>(),
        of::<effect::report::RunReport>(),
        of::<effect::report::DoneReport>(),
        of::<effect::report::ClearReport>(),
        of::<handoff::open::OpenReport>(),
        of::<handoff::claim::ClaimReport>(),
        of::<handoff::hold::RenewReport>(),
        of::<handoff::hold::ReleaseReport>(),
        of::<reply::CompleteReport>(),
        of::<handoff::hold::FailReport>(),
        of::<handoff::open::CancelReport>(),
        of::<contract::Packs>(),
        of::<contract::Sound>(),
        of::<carry::export::ExportReport>(),
        of::<carry::far::FarPacket>(),
        of::<carry::far::FarReply>(),
        of::<carry::import::ImportReport>(),
        of::<work::WorkReport>(),
        of::<work::WorkedFar>(),
        of::<shell::CompletionsReport>(),
        of::<shell::ManReport>(),
        (schema_name("log"), schema_for!(crate::model::event::Record)),
    ]
}

/// What a tool gives in place of JSON Lines: the records in one document.
#[derive(serde::Serialize, JsonSchema)]
pub struct Records {
    /// Whole records, oldest first.
    pub records: Vec<crate::model::event::Record>,
}

/// The two answers of `reply`.
#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Replied {
    /// The answer was bound.
    Bound(Box<reply::ReplyReport>),
    /// With `ask`: what to send back to the reviewer.
    Ask(reply::Ask),
}

/// The schema of every tool's structured content, by the name of the document.
pub fn of_tools() -> BTreeMap<String, Schema> {
    let mut all: BTreeMap<String, Schema> = all().into_iter().collect();
    all.insert(schema_name("log"), schema_for!(Envelope<Records>));
    all.insert(schema_name("reply"), schema_for!(Envelope<Replied>));
    all
}
