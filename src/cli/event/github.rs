//! `event import github`: one delivery of GitHub becomes one typed event. An answer in a comment of somebody
//! whom the user's settings name is bound on the way, in the same record; from anybody else it is an
//! observation.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{EventSource, Given, Hash, Name, Received, event, json as model_json, load};
use crate::cli::ctx::{Context, Opened, find};
use crate::cli::input::file_or_stdin;
use crate::cli::output::{Done, Report};
use crate::cli::reply::{self, Brought};
use crate::cli::workers::{Settings, settings};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::id::{HandoffId, Id};
use crate::model::state::State;
use crate::rules::answer::Bound;
use crate::rules::event::Delivery;
use crate::rules::github::{MAX_BODY, Told, read, verify};
use crate::rules::intake::nonces;
use crate::store::Gathered;

/// A delivery of another service.
#[derive(Debug, Args)]
pub struct Import {
    /// The service: github
    #[arg(value_parser = ["github"])]
    pub service: String,
    /// The body of the delivery, byte for byte, or - for standard input
    pub file: PathBuf,
    /// What it is called (header X-GitHub-Event): repository_dispatch, issue_comment or workflow_run
    #[arg(long, value_name = "EVENT")]
    pub name: String,
    /// Its id (header X-GitHub-Delivery): the same id is the same event, for ever
    #[arg(long, value_name = "ID")]
    pub delivery: Name,
    /// Its signature (header X-Hub-Signature-256)
    #[arg(long, value_name = "SIGNATURE", requires = "secret_env")]
    pub signature: Option<String>,
    /// The variable that holds the webhook's secret
    #[arg(long, value_name = "VARIABLE", requires = "signature")]
    pub secret_env: Option<String>,
    /// What it is about, where it does not say so itself
    #[arg(long, value_name = "NAME")]
    pub resource: Option<Name>,
}

/// What came of a delivery.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Imported {
    /// The event; none where the delivery says nothing here.
    pub received: Option<Received>,
    /// The answer that it carried, bound now.
    pub bound: Option<Bound>,
    /// Why nothing was recorded, or why a comment's answer was not read as one.
    pub note: Option<String>,
}

/// A delivery that was imported.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ImportReport(Imported);

impl Report for ImportReport {
    const COMMAND: &'static str = "event.import";

    fn answer(&self) -> String {
        self.0.received.as_ref().map_or_else(String::new, |received| received.event.to_string())
    }

    fn news(&self) -> Vec<String> {
        let Imported { received, bound, note } = &self.0;
        let mut news = Vec::new();
        news.extend(received.as_ref().map(super::heard));
        news.extend(bound.iter().flat_map(reply::news));
        news.extend(note.clone());
        news
    }

    fn next(&self) -> Option<String> {
        match (&self.0.bound, &self.0.received) {
            (Some(bound), _) => reply::next(bound),
            (None, Some(received)) => Some(super::next(received)),
            (None, None) => None,
        }
    }
}

/// What came in.
struct Body {
    /// What it says.
    told: Told,
    /// BLAKE3 of all its bytes.
    whole: Hash,
}

/// What was read before the lock.
struct Facts {
    /// The answer, where the comment carries one that counts.
    answer: Option<reply::Facts>,
    /// The handoff that it answers.
    handoff: Option<HandoffId>,
    /// Whether the text may be kept: no nonce of this store stands in it.
    plain: bool,
    /// What to tell.
    note: Option<String>,
}

impl Import {
    /// Runs the command.
    ///
    /// # Errors
    /// `bad_signature`, before anything else is looked at; those of the delivery, of intake and binding, and
    /// of the store; `event_conflict` for another body under a delivery that is recorded.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let bytes = file_or_stdin(ctx, Some(&self.file), MAX_BODY)?;
        self.check(ctx, &bytes)?;
        let what = self.file.display();
        let body = model_json::parse(&bytes).map_err(|fault| fault.into_error(what))?;
        let whole = Hash::of(&bytes);
        let body = match read(&self.name, &body, &whole)? {
            Ok(told) => Body { told, whole },
            Err(note) => {
                let nothing = Imported { received: None, bound: None, note: Some(note) };
                return Ok(Done::of(&ImportReport(nothing)));
            }
        };
        let settings = settings(ctx)?;
        let opened = ctx.open()?;
        let mut request = ctx.request(
            "event import",
            json!({"service": self.service, "name": self.name, "delivery": self.delivery, "body": whole,
                "resource": self.resource, "run": ctx.global.run}),
        );
        request.args["session"] = json!(ctx.global.session);
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, state, &body.told, &settings),
            |turn, facts: &Facts| self.decide(ctx, &opened, turn, facts, &body),
        )?;
        Done::written(answer, ImportReport)
    }

    fn check(&self, ctx: &Context, bytes: &[u8]) -> Result<()> {
        let (Some(signature), Some(variable)) = (&self.signature, &self.secret_env) else { return Ok(()) };
        let secret = (ctx.lookup)(variable).filter(|secret| !secret.is_empty()).ok_or_else(|| {
            Error::new(Kind::Usage, format!("variable {variable} is not set"))
                .because("--secret-env names the variable that holds the webhook's secret")
                .fix(format!("export {variable}, then run the command again"))
        })?;
        verify(secret.as_bytes(), bytes, signature)
    }

    fn key(&self) -> Result<Name> {
        let key = format!("{}/{}", self.service, self.delivery);
        key.parse().map_err(|why: String| Error::new(Kind::Usage, "--delivery is too long").because(why))
    }

    /// Whether a comment carries an answer to a packet of this store, and whether it counts.
    fn gather(
        &self,
        ctx: &Context,
        opened: &Opened,
        state: &State,
        told: &Told,
        settings: &Settings,
    ) -> Result<Gathered<Facts>> {
        let none = Facts { answer: None, handoff: None, plain: true, note: None };
        let Some(comment) = &told.comment else { return Ok(Gathered::of(none)) };
        let bytes = comment.text.as_bytes();
        let plain = !crate::cli::secret::holds(state, bytes);
        let known = |nonce: &String| state.attempt_of_nonce(&Hash::of(nonce.as_bytes())).is_some();
        if !nonces(bytes).iter().any(known) {
            return Ok(Gathered::of(Facts { plain, ..none }));
        }
        if let Some(other) = comment.speakers.iter().find(|speaker| !settings.is_actor(speaker)) {
            let place = settings.path.display();
            let note = format!("its answer was not read: {other} is not among github.actors of {place}");
            return Ok(Gathered::of(Facts { plain, note: Some(note), ..none }));
        }
        let brought = Brought::pasted("event import", bytes);
        let gathered = reply::gather(ctx, opened, state, &brought)?;
        Ok(gathered.map(|answer| Facts {
            handoff: Some(answer.handoff().clone()),
            answer: Some(answer),
            plain: false,
            note: None,
        }))
    }

    fn decide(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &mut Turn<'_>,
        facts: &Facts,
        body: &Body,
    ) -> Result<Decision<Imported>> {
        let Body { told, whole } = body;
        let held = match turn.state.event_of_key(&self.key()?) {
            Some(event) => Some((event.clone(), load::payload(&opened.store, &event)?)),
            None => None,
        };
        let done = |received, bound| Imported { received: Some(received), bound, note: facts.note.clone() };
        if let Some((first, Some(payload))) = &held
            && payload.get("delivered") == Some(&json!(whole))
        {
            // The same bytes are the same delivery, whoever counts as an actor by now.
            return Ok(Decision::nothing(done(event::again(first), None)));
        }
        let given = self.given(ctx, turn.state, facts, told, held)?;
        let told_event = event::put(turn, given)?;
        let received = match (&told_event.outcome, &facts.answer) {
            (Ok(received), Some(_)) if received.delivery == Delivery::New => received.clone(),
            _ => {
                let Decision { events, packet, outcome } = told_event;
                return Ok(Decision {
                    events,
                    packet,
                    outcome: outcome.map(|received| done(received, None)),
                });
            }
        };
        let Some(answer) = &facts.answer else { return Ok(Decision::nothing(done(received, None))) };
        let bytes = told.comment.as_ref().map_or("", |comment| &comment.text).as_bytes();
        let bound = reply::decide(ctx, opened, turn, answer, &Brought::pasted("event import", bytes))?;
        // One record: an answer that is bound and its delivery, or neither.
        let Decision { mut events, packet, outcome } = bound;
        events.extend(told_event.events);
        Ok(Decision { events, packet, outcome: outcome.map(|bound| done(received, Some(bound))) })
    }

    fn given(
        &self,
        ctx: &Context,
        state: &State,
        facts: &Facts,
        told: &Told,
        held: Option<(crate::model::external::ExternalEvent, Option<Value>)>,
    ) -> Result<Given> {
        let told = match (&facts.answer, facts.plain) {
            (Some(_), _) => told.clone().reporting(event::kind("semantic.result_arrived")?),
            (None, true) => told.clone().with_text(),
            (None, false) => told.clone(),
        };
        let payload = Value::from(told.payload);
        let names = |name: &str| text_of(&told.references, name);
        let resource = names("resource").map(str::parse::<Name>).transpose();
        let resource =
            resource.map_err(|why| Error::new(Kind::BadInput, "client_payload.resource").because(why))?;
        let handoff = match &facts.handoff {
            Some(handoff) => Some(handoff.as_str()),
            None => names("handoff"),
        };
        Ok(Given {
            key: self.key()?,
            resource: self.resource.clone().or(resource),
            session: ctx
                .global
                .session
                .as_deref()
                .or(names("session"))
                .map(|id| find(state, id))
                .transpose()?,
            run: ctx.global.run.as_deref().or(names("run")).map(|id| find(state, id)).transpose()?,
            handoff: handoff.map(|id| find(state, id)).transpose()?,
            source: EventSource {
                kind: crate::model::id::word(&self.service)?,
                actor: told.actor.clone(),
                transport: Some(self.delivery.to_string()),
                reference: told.reference.clone(),
            },
            artifacts: Vec::new(),
            kind: told.kind,
            payload: Some(payload),
            held,
        })
    }
}

fn text_of<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}
