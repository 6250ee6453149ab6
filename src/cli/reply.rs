//! `reply` takes the answer that a person brings back, whatever is around it, and binds it.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::ctx::{Context, Opened, get};
use super::input::reply;
use super::load;
use super::output::{Done, Report, checks};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::Bindings;
use crate::model::decision::{Decision, Turn};
use crate::model::fold::current_run;
use crate::model::handoff::{Attempt, Handoff, Transport};
use crate::model::hash::{Hash, canonical};
use crate::model::id::JobId;
use crate::model::job::{Job, Polarity};
use crate::model::result::Standing;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::answer::{Arrival, Bound, Intake, arrive};
use crate::rules::binding::Claim;
use crate::rules::checkpoint::carry;
use crate::rules::freeze::FrozenJob;
use crate::rules::intake::{candidates, extract, nonces};
use crate::rules::packet::blank;
use crate::rules::refusal::intake_error;
use crate::store::Gathered;

/// Take the reviewer's answer and bind it to its question
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  wl-paste | nf reply\n  nf reply answer.txt\n  nf reply answer.txt -n      \
    what would happen\n  nf reply --ask answer.txt   a short text to paste back"
)]
pub struct ReplyCommand {
    /// The file with the answer, or - for standard input [default: -]
    pub file: Option<PathBuf>,
    /// Record nothing; print a short text that asks the reviewer for what is missing
    #[arg(long)]
    pub ask: bool,
}

/// Give the answer to claimed work and bind it to its question
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf handoff complete answer.json")]
pub struct Complete {
    /// The file with the answer, or - for standard input [default: -]
    pub file: Option<PathBuf>,
}

macro_rules! bound_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Bound);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.result.to_string()
            }

            fn news(&self) -> Vec<String> {
                news(&self.0)
            }

            fn next(&self) -> Option<String> {
                next(&self.0)
            }
        }
    };
}

bound_report! {
    /// An answer that was bound.
    ReplyReport "reply"
}
bound_report! {
    /// A claimed piece of work that is answered.
    CompleteReport "handoff.complete"
}

fn news(bound: &Bound) -> Vec<String> {
    let held = bound.checks.iter().filter(|check| check.ok).count();
    let mut news = checks(&bound.checks);
    if !bound.steps.is_empty() {
        news.push(format!("normalised: {}", bound.steps.join(", ")));
    }
    let verdict = bound.verdict.value.clone().unwrap_or_else(|| "none asked".to_owned());
    let kind = match bound.verdict.polarity {
        Polarity::Fail => " (a valid outcome)",
        _ => "",
    };
    let again = if bound.duplicate { "; the same answer was there already" } else { "" };
    news.push(format!("{held} of {} checks; verdict {verdict}{kind}{again}", bound.checks.len()));
    if bound.standing == Standing::Contested {
        news.push("contested: an earlier reply to this question carried another verdict".to_owned());
    }
    news
}

fn next(bound: &Bound) -> Option<String> {
    if bound.consumed.contains(&bound.gate) {
        return Some(format!("nf status; {} has applied this answer already", bound.gate));
    }
    let contested = if bound.standing == Standing::Contested { " --contested REASON" } else { "" };
    Some(format!("nf consume {} --as {}{contested}", bound.result, bound.gate))
}

/// What to paste back.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Ask {
    /// Whether the answer would bind.
    pub binds: bool,
    /// The text; empty where nothing is missing.
    pub ask: String,
}

impl Report for Ask {
    const COMMAND: &'static str = "reply";

    fn answer(&self) -> String {
        self.ask.clone()
    }

    fn news(&self) -> Vec<String> {
        if self.binds {
            vec!["nothing is missing: nf reply takes this answer".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// What was read before the lock.
struct Facts {
    intake: Intake,
    attempt: Attempt,
    frozen: FrozenJob,
    declared: Bindings,
}

impl ReplyCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of intake, binding and the store.
    pub fn run(mut self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let bytes = reply(ctx, self.file.as_deref())?;
        if std::mem::take(&mut self.ask) {
            return ask(ctx, &opened, &bytes);
        }
        let answer = bind(ctx, "reply", &opened, &bytes, ctx.global.dry_run)?;
        Done::written(answer, ReplyReport)
    }
}

impl Complete {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of intake, binding and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let bytes = reply(ctx, self.file.as_deref())?;
        let answer = bind(ctx, "handoff complete", &opened, &bytes, ctx.global.dry_run)?;
        Done::written(answer, CompleteReport)
    }
}

fn bind(
    ctx: &Context,
    command: &str,
    opened: &Opened,
    bytes: &[u8],
    dry_run: bool,
) -> Result<crate::store::Answer<Bound>> {
    let mut request = ctx.request(command, json!({"bytes": Hash::of(bytes)}));
    request.dry_run = dry_run;
    opened.transact(
        &request,
        |state| gather(ctx, opened, state, bytes),
        |turn, facts: &Facts| decide(ctx, opened, turn, facts, bytes),
    )
}

/// Runs the whole of intake and binding without recording, and turns a refusal into a request.
fn ask(ctx: &Context, opened: &Opened, bytes: &[u8]) -> Result<Done> {
    let failed = match bind(ctx, "reply", opened, bytes, true) {
        Ok(answer) => answer.outcome.err(),
        Err(error) => Some(error),
    };
    let Some(error) = failed else { return Ok(Done::of(&Ask { binds: true, ask: String::new() })) };
    if error.kind != Kind::SemanticInvalid {
        return Err(error);
    }
    let form = is_form(opened, bytes)?;
    let asked = error.details.get("ask").and_then(Value::as_str).map(str::to_owned);
    let text = asked.unwrap_or_else(|| binding_request(&error, form));
    Ok(Done::of(&Ask { binds: false, ask: text }))
}

/// What to ask for when the answer can be read and does not bind: the form's faults, never a verdict.
fn binding_request(error: &Error, form: bool) -> String {
    let checks = error.details.get("checks").and_then(Value::as_array);
    let failed = checks.into_iter().flatten().filter(|check| check.get("ok") == Some(&Value::Bool(false)));
    let lines = failed.filter_map(|check| {
        let name = check.get("check").and_then(Value::as_str)?;
        let got = check.get("got").and_then(Value::as_str).unwrap_or_default();
        Some(match name {
            "job" | "fingerprint" | "attempt" => {
                "- The member \"nf\" is not as the packet gave it. Please copy it unchanged.".to_owned()
            }
            "form" | "schema" | "evidence" => format!("- {got}"),
            "verdict" => "- The verdict is not one of the values that the packet's schema lists.".to_owned(),
            "scope" => "- Please leave out \"scope\" and every permission.".to_owned(),
            "leakage" => "- Please leave out private reasoning and the members named like it.".to_owned(),
            "provenance" | "independence" | "model" => {
                "- Please fill in the member \"worker\" as the packet's return form shows.".to_owned()
            }
            _ => return None,
        })
    });
    let mut lines: Vec<String> = lines.collect();
    lines.dedup();
    let again = if form {
        "Please correct the form and send it again: both NF FORM lines and all between them."
    } else {
        "Please send one complete JSON block again, filled in as the packet's return form shows."
    };
    let lines = lines.join("\n");
    format!("Your answer could not be taken:\n{lines}\n{again} Your judgement itself is not in question.")
}

/// Whether the answer is one to a packet with a form for people.
fn is_form(opened: &Opened, bytes: &[u8]) -> Result<bool> {
    let state = opened.store.read()?.state;
    let attempts = nonces(bytes).into_iter().filter_map(|nonce| attempt_of(&state, &nonce));
    Ok(attempts.map(|attempt| attempt.transport).next() == Some(Transport::Human))
}

fn attempt_of(state: &State, nonce: &str) -> Option<Attempt> {
    state.attempt_of_nonce(&Hash::of(nonce.as_bytes()))
}

/// Intake with the packet's empty form known, so that one sent back unfilled is named for what it is.
fn intake(opened: &Opened, state: &State, bytes: &[u8]) -> Intake {
    let is_blank = |value: &Value| {
        let nonce = value.pointer("/nf/nonce").and_then(Value::as_str).unwrap_or_default();
        let frozen = attempt_of(state, nonce).and_then(|attempt| {
            let handoff = state.get::<Handoff>(&attempt.handoff)?;
            let job = attempt.job.as_ref().and_then(|id| state.get::<Job>(id));
            Some((load::asked(&opened.store, job.as_ref(), &handoff).ok()?, attempt))
        });
        frozen.is_some_and(|(frozen, attempt)| {
            canonical(&blank(&frozen, &attempt.handoff, nonce, attempt.transport)) == canonical(value)
        })
    };
    extract(bytes, &is_blank)
}

/// The nonce that stands in the answer, or was given beside it, or stands in bytes that cannot be read.
fn known_attempt(ctx: &Context, state: &State, intake: &Intake, bytes: &[u8]) -> Option<Attempt> {
    let read = intake.as_ref().ok().map(|extracted| Claim::read(&extracted.value).nonce);
    match read {
        Some(nonce) if !nonce.is_empty() => attempt_of(state, &nonce),
        _ => {
            let given: Option<String> = ctx.nonce().map(str::to_owned);
            given.into_iter().chain(nonces(bytes)).find_map(|nonce| attempt_of(state, &nonce))
        }
    }
}

fn gather(ctx: &Context, opened: &Opened, state: &State, bytes: &[u8]) -> Result<Gathered<Facts>> {
    let mut intake = intake(opened, state, bytes);
    let Some(attempt) = known_attempt(ctx, state, &intake, bytes) else {
        return Err(match &intake {
            Err(fault) => intake_error(fault),
            Ok(extracted) => no_such_packet(state, &Claim::read(&extracted.value)),
        });
    };
    complete_nonce(ctx, &mut intake);
    let job = attempt.job.as_ref().map(|id| get::<Job>(state, id)).transpose()?;
    let handoff: Handoff = get(state, &attempt.handoff)?;
    let source: Session = get(state, &handoff.source_session)?;
    let held = load::newest_bindings(&opened.store, state, &source)?;
    let frozen = load::asked(&opened.store, job.as_ref(), &handoff)?;
    Ok(load::declared(opened, &held)?.map(|declared| Facts { intake, attempt, frozen, declared }))
}

/// A nonce given beside the reply stands in for one that the reply leaves out, never for another one.
fn complete_nonce(ctx: &Context, intake: &mut Intake) {
    let (Some(nonce), Ok(extracted)) = (ctx.nonce(), intake) else { return };
    if let Some(nf) = extracted.value.get_mut("nf").and_then(Value::as_object_mut) {
        nf.entry("nonce").or_insert_with(|| nonce.into());
    }
}

/// What to ask for where the identity is missing or another one.
const NF_AGAIN: &str = "Please copy the member \"nf\" from the packet unchanged, the nonce too, and send the \
    whole JSON block again.";

fn no_such_packet(state: &State, claim: &Claim) -> Error {
    let job = claim.job.parse::<JobId>().ok().and_then(|id| state.get::<Job>(&id));
    if claim.nonce.is_empty() {
        return Error::new(Kind::SemanticInvalid, "no such packet: the answer carries no nonce")
            .because("its member \"nf\" is not whole")
            .fix("nf reply FILE --nonce NONCE (it stands in the packet), or ask for the whole block again")
            .details(json!({"reason": "no_such_packet", "ask": NF_AGAIN}));
    }
    let hint = match job {
        Some(job) => format!("job {} is known; its packet carries another nonce", job.id),
        None => "the answer names no job of this store".to_owned(),
    };
    Error::new(Kind::SemanticInvalid, "no such packet: none is open with this nonce")
        .because(hint)
        .fix("answer the packet that nf packet prints; nf status shows what is outstanding")
        .details(json!({
            "reason": "no_such_packet",
            "ask": NF_AGAIN,
        }))
}

fn decide(
    ctx: &Context,
    opened: &Opened,
    turn: &mut Turn<'_>,
    facts: &Facts,
    bytes: &[u8],
) -> Result<Decision<Bound>> {
    let state = turn.state;
    let attempt: Attempt = get(state, &facts.attempt.id)?;
    let handoff: Handoff = get(state, &attempt.handoff)?;
    let job = attempt.job.as_ref().map(|id| get::<Job>(state, id)).transpose()?;
    let source: Session = get(state, &handoff.source_session)?;
    ctx.expect_version(&source)?;
    let newest = load::newest_bindings(&opened.store, state, &source)?;
    let arrival = Arrival {
        bytes: (Hash::of(bytes), bytes.len() as u64),
        intake: &facts.intake,
        candidates: if facts.intake.is_err() { candidates(bytes) } else { Vec::new() },
        handoff,
        frozen: &facts.frozen,
        history: state.history(attempt.question()),
        job,
        ancestors: state.ancestors(&source),
        worker: get(state, &attempt.worker_session)?,
        held: attempt.result.as_ref().and_then(|id| state.get(id)),
        bindings: carry(&newest, &facts.declared),
        source: (source.clone(), current_run(state, &source)),
        attempt,
    };
    arrive(turn, arrival)
}
