//! `effect`: the guard of a consequential write. `nf` never writes the file; it says what stood there
//! before, what must stand there after, and whether that came true. What is found out beforehand is in
//! `facts`, what is said in `report`.

use std::cell::RefCell;
use std::ffi::OsString;

use clap::{Args, Subcommand};
use serde_json::json;

use super::ctx::{Context, Opened};
use super::output::Done;
use crate::adapters::place;
use crate::adapters::process::{self, Ending, Job};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::effect::{Effect, EffectState, Witness};
use crate::model::event::Event;
use crate::model::id::{EffectId, Name};
use crate::rules::effect::{Application, Plan, Stepped, begin, clear, done, plan};
use crate::store::{Answer, Gathered, Running};

pub mod facts;
pub mod report;

use facts::{Look, acting, effect_of, look, planning, session_that_acts, twin};
use report::{CheckReport, ClearReport, DoneReport, PlanReport, RunReport};

/// The variable that tells a command what stood at the path when it was started.
const BEFORE: &str = "NF_EFFECT_BEFORE";
/// Variables that a command must not take over: keys and nonces are for one command.
const UNSET: &[&str] = &["NF_OP", "NF_NONCE"];

/// Guard a consequential write: it happens once, and its outcome is proved
#[derive(Debug, Subcommand)]
pub enum EffectCommand {
    /// Record a write before it is made
    #[command(after_help = "Example:\n  nf effect plan --key settle/ch01 --path canon/ch01.md \
        --expect drafts/ch01.md --receipt t-4q2m\n\nThe same plan under the same key again gives the same \
        effect; another plan is a conflict (exit 4). What\n--path names is compared and never written by \
        nf. Without --receipt the write rests on no review.")]
    Plan(PlanEffect),
    /// Say how an effect stands: untouched, started, applied or diverged
    #[command(after_help = "Example:\n  nf effect check settle/ch01\n\nExit 0 where it is untouched or \
        applied; exit 9 where it was started and not done, or has diverged.")]
    Check {
        /// The effect's key
        key: Name,
    },
    /// Run the command that writes, at most once, and record that it is done
    #[command(after_help = "Example:\n  nf effect run settle/ch01 -- cp drafts/ch01.md canon/ch01.md\n\n\
        CMD runs in this folder, without input and without the store's lock; its output goes to standard \
        error.\nNF_EFFECT_BEFORE tells it what stood at the path (a hash, or absent), to compare and swap. \
        The path decides\nwhether it is done, not CMD's exit code. Where nothing proves the write the effect \
        is uncertain and is not\nrun again: nf effect done KEY, or nf effect clear KEY --reason TEXT.")]
    Run(RunEffect),
    /// Record by hand that the path is as required
    #[command(
        after_help = "Example:\n  nf effect done settle/ch01\n\nRecorded only where the path hashes to \
        the required state."
    )]
    Done {
        /// The effect's key
        key: Name,
    },
    /// Give an effect up openly, so that its key can be planned anew
    #[command(
        after_help = "Example:\n  nf effect clear settle/ch01 --reason 'the disk was full; nothing was \
        written'\n\nAfter it nf effect plan records the write anew, under the same key or another, from the \
        state that is\nthere then, and nf effect run runs it. What is done stays done and cannot be cleared."
    )]
    Clear {
        /// The effect's key
        key: Name,
        /// Why it is given up
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// What is planned.
#[derive(Debug, Args)]
pub struct PlanEffect {
    /// What the effect is called: one key, one plan
    #[arg(long)]
    pub key: Name,
    /// The file that will be written, from the project folder
    #[arg(long)]
    pub path: String,
    /// What it must hold afterwards: a hash of 64 digits, or a file with those bytes
    #[arg(long, value_name = "HASH|FILE")]
    pub expect: String,
    /// A receipt that the write rests on; a negative one is refused
    #[arg(long = "receipt", value_name = "ID")]
    pub receipts: Vec<String>,
}

/// What is run.
#[derive(Debug, Args)]
pub struct RunEffect {
    /// The effect's key
    pub key: Name,
    /// The command that writes
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl EffectCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `bad_input` for a path that is none; `execution_failed` for a
    /// command that failed and left the path as it was.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            EffectCommand::Plan(command) => command.run(ctx),
            EffectCommand::Check { key } => check(ctx, &key),
            EffectCommand::Run(command) => command.run(ctx),
            EffectCommand::Done { key } => by_hand(ctx, &key),
            EffectCommand::Clear { key, reason } => give_up(ctx, &key, &reason),
        }
    }
}

impl PlanEffect {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request = ctx.request(
            "effect plan",
            json!({"key": self.key, "path": self.path, "expect": self.expect, "receipts": self.receipts,
                "run": ctx.global.run}),
        );
        let answer = opened.transact(
            &request,
            |state| planning(ctx, &opened, state, &self),
            |turn, facts| {
                let session = ctx.session(turn.state)?;
                ctx.expect_version(&session)?;
                let run = ctx.need_run(turn.state, &session)?;
                let planned: Plan = facts.plan(&opened, turn.state, self.key.clone(), (session, run))?;
                plan(turn, planned)
            },
        )?;
        Done::written(answer, PlanReport)
    }
}

fn check(ctx: &Context, key: &Name) -> Result<Done> {
    let opened = ctx.open()?;
    let snapshot = opened.store.read()?;
    let effect = effect_of(&snapshot.state, key)?;
    let look = look(&opened, &effect.path);
    Ok(Done::of(&CheckReport::of(effect, look.seen)).warned(snapshot.warnings))
}

/// A step that looks at the path, and may make what it saw durable: bytes that change after the look are seen
/// under the lock, and looked at and synced anew.
fn gather(opened: &Opened, effect: &Effect, sync: bool) -> Result<Gathered<Look>> {
    let look = look(opened, &effect.path);
    if sync {
        place::sync(opened.project.root(), &effect.path)?;
    }
    let stamps = look.stamp.clone().into_iter().collect();
    let mut gathered = Gathered::of(look);
    gathered.files = stamps;
    Ok(gathered)
}

fn by_hand(ctx: &Context, key: &Name) -> Result<Done> {
    let opened = ctx.open()?;
    let request = ctx.request("effect done", json!({"key": key, "run": ctx.global.run}));
    let answer = opened.transact(
        &request,
        |state| gather(&opened, &effect_of(state, key)?, !request.dry_run),
        |turn, look: &Look| {
            let effect = effect_of(turn.state, key)?;
            let session = acting(ctx, turn.state, &effect)?;
            done(turn, effect, Witness::Hand, &session, &look.seen)
        },
    )?;
    settled(&opened, &answer);
    Done::written(answer, DoneReport)
}

fn give_up(ctx: &Context, key: &Name, reason: &str) -> Result<Done> {
    if reason.trim().is_empty() {
        return Err(Error::new(Kind::Usage, "--reason wants a reason in words"));
    }
    let opened = ctx.open()?;
    let request = ctx.request("effect clear", json!({"key": key, "reason": reason, "run": ctx.global.run}));
    let answer = opened.transact(
        &request,
        |state| gather(&opened, &effect_of(state, key)?, false),
        |turn, look: &Look| {
            let effect = effect_of(turn.state, key)?;
            let session = acting(ctx, turn.state, &effect)?;
            let running = opened.store.is_running(&effect.id)?;
            clear(turn, effect, reason, &session, (&look.seen, running))
                .map_err(|error| held_by(&opened, error))
        },
    )?;
    settled(&opened, &answer);
    Done::written(answer, ClearReport)
}

/// Holds the lock of a command that is about to start; a decision that is taken anew holds it already.
fn hold(opened: &Opened, stepped: &Stepped, held: &RefCell<Option<(EffectId, Running)>>) -> Result<()> {
    let Effect { id, state, .. } = &stepped.effect;
    let starts = stepped.application == Application::New && *state == EffectState::Started;
    if starts && held.borrow().as_ref().is_none_or(|(effect, _)| effect != id) {
        held.replace(Some((id.clone(), opened.store.run_begins(id)?)));
    }
    Ok(())
}

/// What is settled needs the file no more by which its command was known to run.
fn settled(opened: &Opened, answer: &Answer<Stepped>) {
    if let (Ok(stepped), false) = (&answer.outcome, answer.dry_run) {
        opened.store.run_is_over(&stepped.effect.id);
    }
}

/// Names the file that a running command holds, for whoever looks for it.
fn held_by(opened: &Opened, error: Error) -> Error {
    let running = error.details.get("running").is_some();
    let effect = error.details.get("effect").and_then(serde_json::Value::as_str);
    match effect.and_then(|id| id.parse().ok()).filter(|_| running) {
        Some(effect) => {
            let cause = error.cause.clone().unwrap_or_default();
            let file = opened.store.running_file(&effect);
            error.because(format!("{cause} (fuser {file} names the processes)"))
        }
        None => error,
    }
}

impl RunEffect {
    /// Three steps: the start is recorded under the lock, the command runs without it, the end is recorded
    /// under it again. The operation key belongs to the last record, so that only a proved write answers it.
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let request =
            ctx.request("effect run", json!({"key": self.key, "command": words, "run": ctx.global.run}));
        if let Some(answer) = opened.store.answered::<Stepped>(&request)? {
            return Done::written(answer, RunReport);
        }
        let first = crate::store::Request { op: None, ..request.clone() };
        // Taken under the store's lock, before the start is recorded: whoever reads of a start finds it
        // running.
        let running = RefCell::new(None);
        let started = opened.transact(
            &first,
            |state| gather(&opened, &effect_of(state, &self.key)?, false),
            |turn, look: &Look| {
                let decision = self.begin(ctx, &opened, turn, look, request.dry_run)?;
                if let Ok(stepped) = decision.outcome.as_ref()
                    && !request.dry_run
                {
                    hold(&opened, stepped, &running)?;
                }
                Ok(decision)
            },
        )?;
        let running = running.into_inner();
        let Answer {
            outcome: Ok(Stepped { application: Application::New, effect, .. }), dry_run: false, ..
        } = &started
        else {
            return Done::written(started, RunReport);
        };
        let ending = process::run(&Job {
            command: &self.command,
            folder: &ctx.folder,
            set: &[(BEFORE, effect.before.to_string())],
            unset: UNSET,
            quiet: ctx.global.quiet,
            keeps: running.as_ref().map(|(_, running)| running.fd()),
        });
        let mut ended = self.end(&opened, &request, effect, &ending)?;
        settled(&opened, &ended);
        ended.notes.splice(0..0, started.notes);
        if let Ending::Badly(how) = ending {
            ended.notes.push(format!("the command {how}; the path is as required all the same"));
        }
        Done::written(ended, RunReport)
    }

    fn begin(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &Turn<'_>,
        look: &Look,
        dry_run: bool,
    ) -> Result<Decision<Stepped>> {
        let effect = effect_of(turn.state, &self.key)?;
        let session = session_that_acts(ctx, turn.state, &effect)?;
        if effect.state == EffectState::Done {
            ctx.current_run(turn.state, &session)?;
            return done(turn, effect, Witness::Run, &session, &look.seen);
        }
        crate::rules::effect::own(turn.state, &session, &effect)?;
        ctx.expect_version(&session)?;
        let run = ctx.need_run(turn.state, &session)?;
        let id = effect.id.clone();
        let twin = twin(opened, turn.state, &effect.path);
        let mut decision = begin(turn, effect, &run, &look.seen, twin.as_ref())?;
        let program = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        if !process::is_there(program, &ctx.folder, ctx.env.get("PATH")) {
            let program = program.to_string_lossy();
            return Err(Error::new(
                Kind::ExecutionFailed,
                format!("{program:?} is no program that can be run"),
            )
            .because("nothing was started and nothing was recorded")
            .fix("name a program on PATH, or the path of one"));
        }
        if dry_run {
            let session = session.id;
            decision.events.push(Event::EffectDone { effect: id, witness: Witness::Run, session });
        }
        Ok(decision)
    }

    /// What happened is a fact whoever is current by now: the run that started the command is asked no more.
    fn end(
        &self,
        opened: &Opened,
        request: &crate::store::Request,
        started: &Effect,
        ending: &Ending,
    ) -> Result<Answer<Stepped>> {
        let answer = opened.transact(
            request,
            |_| gather(opened, started, true),
            |turn, look: &Look| {
                let effect = super::ctx::get::<Effect>(turn.state, &started.id)?;
                let session = super::ctx::get(turn.state, &effect.session)?;
                let mut decision = done(turn, effect, Witness::Run, &session, &look.seen)?;
                if let Ok(stepped) = &mut decision.outcome {
                    stepped.application = Application::New;
                }
                Ok(decision)
            },
        );
        answer.map_err(|error| not_done(error, started, ending))
    }
}

/// The command failed and left the path as it was; everything else keeps its own error.
fn not_done(error: Error, effect: &Effect, ending: &Ending) -> Error {
    let Ending::Badly(how) = ending else { return error };
    let untouched = error.details.get("now") == serde_json::to_value(effect.before).ok().as_ref();
    if error.kind != Kind::Uncertain || !untouched {
        let cause = error.cause.clone().unwrap_or_default();
        return error.because(format!("the command {how}; {cause}"));
    }
    let failed = Error::new(Kind::ExecutionFailed, format!("the command of effect {} {how}", effect.key));
    failed
        .because(format!(
            "{} is as it was before; the effect is uncertain until that is settled",
            effect.path
        ))
        .fix(error.next_step().to_owned())
        .details(error.details)
}
