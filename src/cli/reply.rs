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
use crate::model::id::{AttemptId, HandoffId, JobId};
use crate::model::job::{Job, Polarity};
use crate::model::result::Standing;
use crate::model::session::Session;
use crate::model::state::State;
use crate::model::witness::Witness;
use crate::rules::answer::{Arrival, Bound, Intake, arrive};
use crate::rules::binding::Claim;
use crate::rules::carry::Returned;
use crate::rules::checkpoint::carry;
use crate::rules::freeze::FrozenJob;
use crate::rules::intake::{candidates, extract, nonces};
use crate::rules::packet::blank;
use crate::rules::refusal::intake_error;
use crate::store::Gathered;

mod ask;

pub use ask::{Ask, asked};

/// Take the reviewer's answer and bind it to its question
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  wl-paste | nf reply\n  nf reply answer.txt\n  nf reply answer.txt -n      \
    what would happen\n  nf reply --ask answer.txt   a short text to paste back\n  \
    nf reply --from export.json --out result.json answer.txt   where there is no store"
)]
pub struct ReplyCommand {
    /// The file with the answer, or - for standard input [default: -]
    pub file: Option<PathBuf>,
    /// Record nothing; print a short text that asks the reviewer for what is missing
    #[arg(long)]
    pub ask: bool,
    /// Answer this export file; no store is looked at
    #[arg(long, value_name = "EXPORT")]
    pub from: Option<PathBuf>,
    /// With --from: write the result to this file (0600), to be imported where the store is
    #[arg(long, value_name = "RESULT", requires = "from")]
    pub out: Option<PathBuf>,
}

/// Give the answer to claimed work and bind it to its question
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf handoff complete answer.json")]
pub struct Complete {
    /// The file with the answer, or - for standard input [default: -]
    pub file: Option<PathBuf>,
}

/// Makes the report of a command that binds an answer.
macro_rules! bound_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Bound);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.result.to_string()
            }

            fn news(&self) -> Vec<String> {
                crate::cli::reply::news(&self.0)
            }

            fn next(&self) -> Option<String> {
                crate::cli::reply::next(&self.0)
            }
        }
    };
}
pub(super) use bound_report;

bound_report! {
    /// An answer that was bound.
    ReplyReport "reply"
}
bound_report! {
    /// A claimed piece of work that is answered.
    CompleteReport "handoff.complete"
}

/// What a person is told of an answer that was bound.
pub fn news(bound: &Bound) -> Vec<String> {
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

/// The next command after it.
pub fn next(bound: &Bound) -> Option<String> {
    if bound.consumed.contains(&bound.gate) {
        return Some(format!("nf status; {} has applied this answer already", bound.gate));
    }
    Some(bound.way.clone())
}

/// What was read before the lock.
pub(super) struct Facts {
    intake: Intake,
    attempt: Attempt,
    nonce: Hash,
    frozen: FrozenJob,
    declared: Bindings,
}

impl Facts {
    /// The handoff that is answered.
    pub(super) fn handoff(&self) -> &HandoffId {
        &self.attempt.handoff
    }
}

impl ReplyCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of intake, binding and the store.
    pub fn run(mut self, ctx: &Context) -> Result<Done> {
        if let Some(from) = &self.from {
            return super::carry::far::reply(ctx, from, self.file.as_deref(), self.out.as_deref(), self.ask);
        }
        let opened = ctx.open()?;
        let bytes = reply(ctx, self.file.as_deref())?;
        if std::mem::take(&mut self.ask) {
            return ask(ctx, &opened, &bytes);
        }
        let answer = bind(ctx, &opened, &Brought::pasted("reply", &bytes), ctx.global.dry_run)?;
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
        let brought = Brought::pasted("handoff complete", &bytes);
        let answer = bind(ctx, &opened, &brought, ctx.global.dry_run)?;
        Done::written(answer, CompleteReport)
    }
}

/// What a command brings: an answer's bytes, pasted or out of a result file.
pub struct Brought<'a> {
    /// The command.
    pub command: &'a str,
    /// The answer, with whatever is around it.
    pub bytes: &'a [u8],
    /// BLAKE3 and length of all that came in.
    pub whole: (Hash, u64),
    /// The result file, where it came in one.
    pub file: Option<&'a Returned>,
    /// The attempt that this program itself had answered, where it did.
    pub seen: Option<Seen<'a>>,
}

/// An answer that came from where this program itself asked: no nonce in it makes it another attempt's.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The attempt that was answered.
    pub attempt: &'a AttemptId,
    /// BLAKE3 of the nonce that its packet carries.
    pub nonce: Hash,
    /// What was seen of who answered.
    pub witness: &'a Witness,
}

impl<'a> Brought<'a> {
    pub(super) fn pasted(command: &'a str, bytes: &'a [u8]) -> Self {
        Self { command, bytes, whole: (Hash::of(bytes), bytes.len() as u64), file: None, seen: None }
    }
}

/// Takes an answer through intake and binding, and records what comes of it.
///
/// # Errors
/// Those of intake, binding and the store.
pub fn bind(
    ctx: &Context,
    opened: &Opened,
    brought: &Brought<'_>,
    dry_run: bool,
) -> Result<crate::store::Answer<Bound>> {
    let mut request = ctx.request(brought.command, json!({"bytes": brought.whole.0}));
    request.dry_run = dry_run;
    opened.transact(
        &request,
        |state| gather(ctx, opened, state, brought),
        |turn, facts: &Facts| decide(ctx, opened, turn, facts, brought),
    )
}

/// Runs the whole of intake and binding without recording, and turns a refusal into a request.
fn ask(ctx: &Context, opened: &Opened, bytes: &[u8]) -> Result<Done> {
    let failed = match bind(ctx, opened, &Brought::pasted("reply", bytes), true) {
        Ok(answer) => answer.outcome.err(),
        Err(error) => Some(error),
    };
    let Some(error) = failed else { return Ok(Done::of(&Ask { binds: true, ask: String::new() })) };
    if error.kind != Kind::SemanticInvalid {
        return Err(error);
    }
    Ok(asked(&error, is_form(opened, bytes)?))
}

/// Whether the answer is one to a packet with a form for people.
fn is_form(opened: &Opened, bytes: &[u8]) -> Result<bool> {
    let state = opened.store.read()?.state;
    let attempts = nonces(bytes).into_iter().filter_map(|nonce| attempt_of(&state, &nonce));
    Ok(attempts.map(|attempt| attempt.form()).next() == Some(Transport::Human))
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
            canonical(&blank(&frozen, &attempt.handoff, nonce, attempt.form())) == canonical(value)
        })
    };
    extract(bytes, &is_blank)
}

/// The nonce that stands in the answer, or was given beside it, or stands in bytes that cannot be read: its
/// hash, with the attempt that it belongs to.
fn known_attempt(ctx: &Context, state: &State, intake: &Intake, bytes: &[u8]) -> Option<(Attempt, Hash)> {
    let known = |nonce: String| Some((attempt_of(state, &nonce)?, Hash::of(nonce.as_bytes())));
    let read = intake.as_ref().ok().map(|extracted| Claim::read(&extracted.value).nonce);
    match read {
        Some(nonce) if !nonce.is_empty() => known(nonce),
        _ => {
            let given: Option<String> = ctx.nonce().map(str::to_owned);
            given.into_iter().chain(nonces(bytes)).find_map(known)
        }
    }
}

/// Intake of what was brought, with all that its binding is decided on.
///
/// # Errors
/// Those of intake where no packet here is answered.
pub(super) fn gather(
    ctx: &Context,
    opened: &Opened,
    state: &State,
    brought: &Brought<'_>,
) -> Result<Gathered<Facts>> {
    let bytes = brought.bytes;
    brought.file.map_or(Ok(()), |file| super::carry::import::known(file, state))?;
    let mut intake = intake(opened, state, bytes);
    let attempt = match &brought.seen {
        Some(seen) => Some((get(state, seen.attempt)?, seen.nonce)),
        None => known_attempt(ctx, state, &intake, bytes),
    };
    let Some((attempt, nonce)) = attempt else {
        return Err(match &intake {
            Err(fault) => intake_error(fault),
            Ok(extracted) => no_such_packet(state, &Claim::read(&extracted.value)),
        });
    };
    match (brought.file, &brought.seen) {
        (Some(file), _) => {
            super::carry::import::same_attempt(file, &attempt)?;
            intake = intake.map(|extracted| file.told(extracted));
        }
        (None, None) => complete_nonce(ctx, &mut intake),
        (None, Some(_)) => {}
    }
    let job = load::job(state, attempt.job.as_ref())?;
    let handoff: Handoff = get(state, &attempt.handoff)?;
    let source: Session = get(state, &handoff.source_session)?;
    let held = load::newest_bindings(&opened.store, state, &source)?;
    let frozen = load::asked(&opened.store, job.as_ref(), &handoff)?;
    Ok(load::declared(opened, &held)?.map(|declared| Facts { intake, attempt, nonce, frozen, declared }))
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

/// Binds what was gathered.
///
/// # Errors
/// As [`bind`].
pub(super) fn decide(
    ctx: &Context,
    opened: &Opened,
    turn: &mut Turn<'_>,
    facts: &Facts,
    brought: &Brought<'_>,
) -> Result<Decision<Bound>> {
    let state = turn.state;
    let attempt: Attempt = get(state, &facts.attempt.id)?;
    let handoff: Handoff = get(state, &attempt.handoff)?;
    let job = load::job(state, attempt.job.as_ref())?;
    let source: Session = get(state, &handoff.source_session)?;
    ctx.expect_version(&source)?;
    let newest = load::newest_bindings(&opened.store, state, &source)?;
    let arrival = Arrival {
        bytes: brought.whole,
        imported: brought.file.map(|file| super::carry::import::imported(file, brought.whole.0)),
        intake: &facts.intake,
        candidates: if facts.intake.is_err() { candidates(brought.bytes) } else { Vec::new() },
        handoff,
        frozen: &facts.frozen,
        history: state.history(attempt.question()),
        ancestors: state.ancestors(&source),
        natives: load::natives(state, &source, job.as_ref()),
        job,
        witness: brought.seen.map(|seen| seen.witness).or_else(|| brought.file?.witness.as_ref()).cloned(),
        worker: get(state, &attempt.worker_session)?,
        held: attempt.result.as_ref().and_then(|id| state.get(id)),
        bindings: carry(&newest, &facts.declared),
        source: (source.clone(), current_run(state, &source)),
        attempt,
        nonce: facts.nonce,
    };
    arrive(turn, arrival)
}
