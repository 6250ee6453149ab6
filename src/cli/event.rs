//! `event put` and `event import` record what came in from outside, once for each of the sender's keys. What
//! an event names is given by the flags of the command alone: an environment says who acts, never what a
//! sender meant.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::ctx::{Context, Opened, find};
use super::input::{MAX_BOUND, Reader, file_or_stdin, named_path};
use super::load;
use super::output::{Done, Report, visible};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::external::{EventArtifact, EventSource};
use crate::model::hash::{Hash, canonical};
use crate::model::id::Name;
use crate::model::json;
use crate::model::state::State;
use crate::rules::event::{self, Delivery, Given, MAX_PAYLOAD, Received};
use crate::store::{Gathered, Request};

pub mod github;

/// Record what came in from outside
#[derive(Debug, Subcommand)]
pub enum EventCommand {
    /// Record a typed event, once for each key
    #[command(
        after_help = "Examples:\n  nf event put ci.observed --key build/42 --payload '{\"green\": true}'\n  \
        nf event put feedback.observed --key mail/7 --resource novel/pride --payload mail.json \\\n    \
        --source mail --actor Jane --transport '<7@example.org>'\n\n\
        --session and --run are references here, and only where they are given as flags."
    )]
    Put(Put),
    /// Record a delivery of another service, once; an answer in it is bound
    #[command(after_help = "Examples:\n  nf event import github body.json --name workflow_run \
        --delivery \"$ID\" \\\n    \
        --signature \"$SIGNATURE\" --secret-env WEBHOOK_SECRET\n  \
        nf event import github - --name issue_comment --delivery \"$ID\"\n\n\
        repository_dispatch: client_payload.nf names the type; resource, session, run and handoff in\n\
        it are references. workflow_run completed: ci.observed. issue_comment: feedback.observed, or the\n\
        answer to a packet, which only accounts of github.actors in workers.yaml may give.")]
    Import(github::Import),
}

/// A typed event.
#[derive(Debug, Args)]
pub struct Put {
    /// resume.requested, eval.requested, maintenance.requested, research.refresh_requested,
    /// semantic.job_requested, semantic.result_arrived, eval.result_arrived, feedback.observed,
    /// acceptance.observed, ci.observed, or x.NAME for an observation of your own
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// The sender's own key: the same key is the same event, for ever
    #[arg(long, value_name = "KEY")]
    pub key: Name,
    /// What it is about
    #[arg(long, value_name = "NAME")]
    pub resource: Option<Name>,
    /// The handoff that it names (id or unique beginning)
    #[arg(long, value_name = "ID")]
    pub handoff: Option<String>,
    /// What it carries: a JSON file, - for standard input, or JSON that begins with { or [
    #[arg(long, value_name = "FILE|-|JSON")]
    pub payload: Option<String>,
    /// A file of the project that it is about, hashed now
    #[arg(long = "artifact", value_name = "NAME=PATH")]
    pub artifacts: Vec<String>,
    /// The kind of sender
    #[arg(long, value_name = "KIND", default_value = "shell")]
    pub source: Name,
    /// Who caused it, as stated
    #[arg(long, value_name = "TEXT")]
    pub actor: Option<String>,
    /// The transport's own id of this delivery; another one is no other event
    #[arg(long, value_name = "TEXT")]
    pub transport: Option<String>,
    /// Where it can be looked up outside
    #[arg(long = "ref", value_name = "TEXT")]
    pub reference: Option<String>,
}

/// An event that was recorded.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct PutReport(Received);

impl Report for PutReport {
    const COMMAND: &'static str = "event.put";

    fn answer(&self) -> String {
        self.0.event.to_string()
    }

    fn news(&self) -> Vec<String> {
        vec![heard(&self.0)]
    }

    fn next(&self) -> Option<String> {
        Some(next(&self.0))
    }
}

/// What a person is told of a delivery.
fn heard(received: &Received) -> String {
    let Received { delivery, event, kind, key, scope, received_at, .. } = received;
    match delivery {
        Delivery::New => format!("{scope} {kind} under key {key}"),
        Delivery::Duplicate => {
            format!("duplicate: {event} came in at {received_at} under key {key}; nothing was written")
        }
    }
}

/// The next command after it.
fn next(received: &Received) -> String {
    let Received { event, reports, .. } = received;
    match reports {
        Some(handoff) => format!("nf show {handoff}; the result itself is consumed, not the report of it"),
        None => format!("nf consume {event} --as NAME"),
    }
}

impl EventCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `bad_input` for what cannot be read as JSON.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            EventCommand::Put(put) => put.run(ctx),
            EventCommand::Import(import) => import.run(ctx),
        }
    }
}

impl Put {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        event::kind(&self.kind)?;
        let payload = self.payload(ctx)?;
        let answer = opened.transact(
            &self.request(ctx, payload.as_ref()),
            |_| self.gather(&opened),
            |turn, artifacts: &Vec<EventArtifact>| self.decide(ctx, &opened, turn, artifacts, &payload),
        )?;
        Done::written(answer, PutReport)
    }

    /// What the operation key stands for: the meaning. Who delivered it and how is no part of that.
    fn request(&self, ctx: &Context, payload: Option<&Value>) -> Request {
        let mut request = ctx.request(
            "event put",
            json!({"type": self.kind, "key": self.key, "resource": self.resource, "run": ctx.global.run,
                "handoff": self.handoff, "artifacts": self.artifacts,
                "payload": payload.map(|payload| Hash::of(&canonical(payload)))}),
        );
        // The session of the environment is no reference.
        request.args["session"] = json!(ctx.global.session);
        request
    }

    fn payload(&self, ctx: &Context) -> Result<Option<Value>> {
        let Some(text) = &self.payload else { return Ok(None) };
        let inline = text.trim_start().starts_with(['{', '[']);
        let bytes = match inline {
            true => text.clone().into_bytes(),
            false => file_or_stdin(ctx, Some(Path::new(text)), MAX_PAYLOAD as u64)?,
        };
        let what = if inline { "the payload".to_owned() } else { format!("payload {}", visible(text)) };
        json::parse(&bytes).map(Some).map_err(|fault| fault.into_error(what))
    }

    fn gather(&self, opened: &Opened) -> Result<Gathered<Vec<EventArtifact>>> {
        let mut reader = Reader::new(&opened.project);
        let mut artifacts = Vec::new();
        for text in &self.artifacts {
            let (name, path) = named_path("--artifact", text)?;
            let hash = Hash::of(&reader.bytes(&path, None, MAX_BOUND)?);
            artifacts.push(EventArtifact { name, path, hash });
        }
        let mut gathered = Gathered::of(artifacts);
        gathered.files = reader.stamps;
        Ok(gathered)
    }

    fn decide(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &mut Turn<'_>,
        artifacts: &[EventArtifact],
        payload: &Option<Value>,
    ) -> Result<Decision<Received>> {
        let state: &State = turn.state;
        let held = match state.event_of_key(&self.key) {
            Some(event) => Some((event.clone(), load::payload(&opened.store, &event)?)),
            None => None,
        };
        let given = Given {
            kind: event::kind(&self.kind)?,
            key: self.key.clone(),
            resource: self.resource.clone(),
            session: ctx.global.session.as_deref().map(|text| find(state, text)).transpose()?,
            run: ctx.global.run.as_deref().map(|text| find(state, text)).transpose()?,
            handoff: self.handoff.as_deref().map(|text| find(state, text)).transpose()?,
            source: self.stated()?,
            artifacts: artifacts.to_vec(),
            payload: payload.clone(),
            held,
        };
        event::put(turn, given)
    }

    fn stated(&self) -> Result<EventSource> {
        let flags = [("--actor", &self.actor), ("--transport", &self.transport), ("--ref", &self.reference)];
        if let Some((flag, _)) = flags.iter().find(|(_, text)| text.as_ref().is_some_and(String::is_empty)) {
            return Err(Error::new(Kind::Usage, format!("{flag} is empty")).fix("leave it out"));
        }
        Ok(EventSource {
            kind: self.source.clone(),
            actor: self.actor.clone(),
            transport: self.transport.clone(),
            reference: self.reference.clone(),
        })
    }
}
