//! `work`: takes work from the queue, has a worker answer it, and gives the answer back, by the same rules as
//! `handoff claim` and `handoff complete`. What it runs is named on its command line or in the user's own
//! configuration, never in a store.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use crate::adapters::agent::Agent;
use crate::adapters::ask::Limits;
use crate::adapters::signals::{self, Orphans};
use crate::cli::ctx::Context;
use crate::cli::output::{Done, say, visible};
use crate::cli::workers::settings;
use crate::error::{Error, Kind, Result};
use crate::model::id::Name;
use crate::model::job::Family;
use crate::model::session::Role;
use crate::model::time::parse_millis;
use crate::store::Gathered;

mod far;
mod lease;
mod patience;
mod report;
mod spell;
mod worker;

pub use far::WorkedFar;
use patience::is_passing;
pub use report::WorkReport;
use spell::{Place, Spell};
use worker::{Way, Worker};

/// The first and the longest pause between two looks at a queue that has nothing.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// How long a worker may take where neither a flag nor its settings say.
const WALL: Duration = Duration::from_secs(30 * 60);
/// How often a pause looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Take queued work, have a program or a local agent answer it, and give the answer back
#[derive(Debug, Args)]
#[command(
    group(clap::ArgGroup::new("mode").args(["once", "drain", "endless"])),
    after_help = "Examples:\n  nf work --class semantic_reviewer -- ./review.sh\n  \
    nf work --class semantic_reviewer --agent claude --model sonnet --isolate --key-env ANTHROPIC_API_KEY\n  \
    nf work --class specialist --drain --agent codex -- ./fallback.sh\n  \
    nf work --class semantic_reviewer --worker-config local --worker-config hosted\n  \
    nf work --from export.json --out result.json -- ./review.sh     where there is no store\n\n\
    The program reads the packet on standard input and prints the answer. It runs in an empty folder with a \
    few variables: give absolute paths. Of several workers the next one is asked where one gives no answer."
)]
pub struct Work {
    /// Only this handoff (id or unique beginning)
    pub handoff: Option<String>,
    /// manager, writer, specialist, semantic_reviewer, human_reviewer or other:NAME
    #[arg(long, value_name = "CLASS", required_unless_present = "from")]
    pub class: Option<Role>,
    /// The worker's name in the record [default: that of the agent or program]
    #[arg(long, value_name = "NAME")]
    pub worker: Option<Name>,
    /// A worker of your own workers.yaml to ask; the first one given is asked first, before agents and CMD
    #[arg(long = "worker-config", value_name = "NAME")]
    pub configs: Vec<Name>,
    /// A local agent to ask, claude or codex; the first one given is asked first
    #[arg(long = "agent", value_name = "AGENT")]
    pub agents: Vec<Agent>,
    /// The model to ask for, of agents and CMD; what serves is recorded as it is seen
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The family of the program [default: service_job, and local_agent for an agent]
    #[arg(long)]
    pub family: Option<Family>,
    /// Give agents and CMD an empty home folder: no memory, no settings, no login but a key
    #[arg(long)]
    pub isolate: bool,
    /// The variable that holds the key of agents and CMD; it is passed on, and neither stored nor shown
    #[arg(long, value_name = "VARIABLE")]
    pub key_env: Option<String>,
    /// Take one piece of work; this is the default
    #[arg(long)]
    pub once: bool,
    /// Go on until nothing is left to claim
    #[arg(long)]
    pub drain: bool,
    /// Go on, and wait for work where there is none
    #[arg(long = "loop")]
    pub endless: bool,
    /// Only work on this resource
    #[arg(long, value_name = "NAME")]
    pub resource: Option<Name>,
    /// Only this job's question
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only work for this gate
    #[arg(long, value_name = "NAME")]
    pub gate: Option<Name>,
    /// How long the claim is protected, from its last renewal [default: as the handoff says]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub ttl: Option<u64>,
    /// The session that works; one that keeps nothing is made where none is named
    #[arg(long, value_name = "ID")]
    pub worker_session: Option<String>,
    /// How long it may run [default: as workers.yaml says, else 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub wall: Option<u64>,
    /// How long it may print nothing
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_millis)]
    pub idle: u64,
    /// How many bytes it may print
    #[arg(long, value_name = "N", default_value = "16777216")]
    pub max_bytes: u64,
    /// Show what it prints on standard error; it is never kept
    #[arg(long)]
    pub show_stderr: bool,
    /// Answer this export file; no store is looked at
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["class", "handoff", "mode"])]
    pub from: Option<PathBuf>,
    /// With --from: write the result to this file (0600), to be imported where the store is
    #[arg(long, value_name = "RESULT", requires = "from")]
    pub out: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl Work {
    /// Runs the command.
    ///
    /// # Errors
    /// `pending` where there is nothing to claim; of one piece of work, why it has no valid answer; those of
    /// the rules and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        self.sound(ctx)?;
        let source = ctx.source.clone();
        let now = move || (source.moment)().wall;
        let workers = self.workers(ctx)?;
        let mut places = Vec::new();
        let mut absent = Vec::new();
        for worker in workers {
            let name = worker.name.clone();
            match worker.ready(ctx, &now, self.show_stderr)? {
                Ok(ready) => places.push(Place { ready, gone: None }),
                Err(failure) => absent.push((name, failure)),
            }
        }
        let notes = absent.iter().map(|(name, failure)| format!("{name} is not there: {}", failure.detail));
        let notes: Vec<String> = notes.collect();
        if let ([], [(name, failure), ..]) = (places.as_slice(), absent.as_slice()) {
            let error = report::no_answer(name, failure);
            return Err(if absent.len() > 1 { error.because(notes.join("\n       ")) } else { error });
        }
        let done = match &self.from {
            Some(from) => far::work(ctx, &self, from, &places),
            None => self.spell(ctx, places),
        };
        done.map(|done| done.warned(notes))
    }

    /// Refuses flags that mean nothing here.
    fn sound(&self, ctx: &Context) -> Result<()> {
        let wrong = |what: &str, why: &str, fix: &str| {
            Err(Error::new(Kind::Usage, what.to_owned()).because(why.to_owned()).fix(fix.to_owned()))
        };
        if ctx.global.op.is_some() {
            return wrong(
                "work takes no operation key",
                "each claim gives a new nonce, and what a program answers is not known before",
                "leave --op and NF_OP out: a question that has its answer is not asked again",
            );
        }
        if let Some(flag) = self.idle_flag() {
            return wrong(
                &format!("{flag} without --agent and without CMD"),
                "it says something of the workers that are named on the command line, and none is",
                "say it of the worker in your workers.yaml, or name an agent or a program here",
            );
        }
        if self.from.is_some() && (self.resource.is_some() || self.job.is_some() || self.gate.is_some()) {
            return wrong(
                "--from beside a filter",
                "the export file holds one question",
                "leave the filter out",
            );
        }
        if self.out.is_some() && self.from.is_none() {
            return wrong(
                "--out without --from",
                "where there is a store the answer is recorded there",
                "leave --out out, or give --from EXPORT",
            );
        }
        if self.from.is_some() && ctx.global.dry_run {
            return wrong(
                "--from beside --dry-run",
                "nothing is shown without asking the worker",
                "leave -n out",
            );
        }
        if [self.wall.unwrap_or(1), self.idle, self.max_bytes].contains(&0) {
            return wrong("a limit of nothing", "no program answers within it", "give a limit above 0");
        }
        Ok(())
    }

    /// A flag that describes workers of the command line where all of them are named in the settings.
    fn idle_flag(&self) -> Option<&'static str> {
        let here = !self.agents.is_empty() || !self.command.is_empty() || self.configs.is_empty();
        let given = [
            ("--model", self.model.is_some()),
            ("--family", self.family.is_some()),
            ("--isolate", self.isolate),
            ("--key-env", self.key_env.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given && !here).map(|(flag, _)| flag)
    }

    /// The class of the work.
    ///
    /// # Errors
    /// `usage` where none is named.
    pub fn class(&self) -> Result<&Role> {
        self.class.as_ref().ok_or_else(|| Error::new(Kind::Usage, "--class is not given"))
    }

    /// The limits of one invocation of a worker.
    pub fn limits(&self, worker: &Worker) -> Limits {
        let wall = self.wall.map(Duration::from_millis).or(worker.timeout).unwrap_or(WALL);
        Limits { wall, idle: Duration::from_millis(self.idle), bytes: self.max_bytes }
    }

    /// The workers in the order in which they are asked: those of the settings, the agents, the program.
    fn workers(&self, ctx: &Context) -> Result<Vec<Worker>> {
        let mut workers = Vec::new();
        if !self.configs.is_empty() {
            let settings = settings(ctx)?;
            for name in &self.configs {
                workers.push(self.called(settings.worker(name.as_str())?.into()));
            }
        }
        let ways = self.agents.iter().map(|agent| Way::Agent(*agent, agent.word().to_owned()));
        let program = Some(Way::Process(self.command.clone())).filter(|_| !self.command.is_empty());
        for way in ways.chain(program) {
            workers.push(self.called(self.worker(way)?));
        }
        if workers.is_empty() {
            return Err(Error::new(Kind::Usage, "no worker is named").fix(
                "give a program after --, such as -- ./review.sh, or --agent claude or codex, or \
                 --worker-config NAME of your workers.yaml",
            ));
        }
        Ok(workers)
    }

    /// The same worker under the name that the record is to have.
    fn called(&self, worker: Worker) -> Worker {
        Worker { name: self.worker.clone().unwrap_or(worker.name), ..worker }
    }

    fn worker(&self, way: Way) -> Result<Worker> {
        let (own, family) = match &way {
            Way::Agent(agent, _) => (agent.word().to_owned(), Family::LocalAgent),
            Way::Endpoint(endpoint) => (endpoint.provider.clone(), Family::ProviderApi),
            Way::Process(command) => {
                let file = command.first().map(PathBuf::from);
                let name = file.as_ref().and_then(|file| file.file_name()).map(|name| name.to_string_lossy());
                (name.unwrap_or_default().into_owned(), self.family.unwrap_or(Family::ServiceJob))
            }
        };
        Ok(Worker {
            name: own.parse().or_else(|_| crate::model::id::word("program"))?,
            way,
            family,
            model: self.model.clone(),
            key_env: self.key_env.clone(),
            cost: None,
            isolate: self.isolate,
            timeout: None,
        })
    }

    fn spell(&self, ctx: &Context, places: Vec<Place<'_>>) -> Result<Done> {
        let opened = Rc::new(ctx.open()?);
        let signalled =
            signals::stop_flag().map_err(|error| Error::io("registering the signal handlers", &error))?;
        let orphans = Orphans::adopt();
        let signalled = &*signalled;
        let mut spell = Spell { ctx, opened, work: self, places, signalled, orphans };
        if ctx.global.dry_run {
            return self.dry(&spell);
        }
        match (self.drain, self.endless) {
            (false, false) => once(&mut spell),
            _ => self.many(&mut spell),
        }
    }

    /// What would be claimed first; nothing is run.
    fn dry(&self, spell: &Spell<'_>) -> Result<Done> {
        let wanted = spell.wanted(0, None)?;
        let request = spell.ctx.request("work", serde_json::json!({"act": "claim"}));
        let answer = spell.opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| Ok(wanted.decide(&spell.opened, turn)?.0),
        )?;
        Done::written(answer, |_| WorkReport::default())
    }

    /// Piece after piece, until there is none, or until it is told to end.
    fn many(&self, spell: &mut Spell<'_>) -> Result<Done> {
        let tells = !spell.ctx.global.json && !spell.ctx.global.quiet;
        let (mut report, mut last, mut record) = (WorkReport::default(), None, None);
        let mut pause = PAUSES.0;
        while !spell.signalled.load(Ordering::Relaxed) {
            match spell.piece().map_err(|error| error.with("items", &report.items))? {
                Ok(piece) => {
                    pause = PAUSES.0;
                    for item in piece.items {
                        if tells {
                            say(&visible(&item.line()));
                        }
                        report.add(item);
                    }
                    last = piece.error;
                    record = piece.record.or(record);
                }
                // What is left is not known: this is no end of a queue.
                Err(passing) if !self.endless && is_passing(&passing) => {
                    return Err(passing.with("items", &report.items));
                }
                Err(nothing) if !self.endless => {
                    last = last.or(Some(nothing));
                    break;
                }
                // Who waits for work waits for a store that is busy or full too.
                Err(_) => {
                    waited(pause, spell.signalled);
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
            if !spell.is_manned() {
                return Err(spell.nobody().with("items", &report.items));
            }
            // What stands in the store's place now is the store: it may have been put back from a copy.
            spell.opened = Rc::new(spell.ctx.open().map_err(|error| error.with("items", &report.items))?);
        }
        report.stopped = spell.signalled.load(Ordering::Relaxed);
        match last.filter(|_| report.answered == 0 && !(self.endless && report.stopped)) {
            Some(error) => Err(error.with("items", &report.items)),
            None => Ok(report.done(record)),
        }
    }
}

/// One piece of work: what its class says is the exit code.
fn once(spell: &mut Spell<'_>) -> Result<Done> {
    let piece = spell.piece()??;
    let mut report = WorkReport { told: piece.told, ..WorkReport::default() };
    report.stopped = piece.error.is_some() && spell.signalled.load(Ordering::Relaxed);
    piece.items.into_iter().for_each(|item| report.add(item));
    match piece.error {
        Some(error) => Err(error.with("items", &report.items)),
        None => Ok(report.done(piece.record)),
    }
}

/// Waits that long, or until a signal comes.
fn waited(length: Duration, signalled: &AtomicBool) {
    let mut left = length;
    while !left.is_zero() && !signalled.load(Ordering::Relaxed) {
        let step = left.min(LOOK);
        std::thread::sleep(step);
        left -= step;
    }
}
