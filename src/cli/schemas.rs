//! The JSON schemas of every command's `--json` document, for `docs/json/`.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};

use super::output::{Envelope, Report, schema_name};
use super::{
    capability, carry, checkpoint, consume, contract, doctor, effect, event, freeze, handoff, init, list,
    packet, reply, resume, route, session, shell, show, start, status, validate,
};

fn of<R: Report>() -> (String, Schema) {
    (schema_name(R::COMMAND), schema_for!(Envelope<R>))
}

/// Every schema by name. `log --json` is JSON Lines, one record a line, and has its own.
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
