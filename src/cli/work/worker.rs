//! A worker: who answers, how it is run, and what is known of its answers before it is asked. Workers come
//! from the command line or the user's own configuration, never from a store: a store that was cloned must
//! not be able to name a program to run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::adapters::agent::{Agent, Tool};
use crate::adapters::ask::{Ask, Failure, Outcome};
use crate::adapters::http::{self, Endpoint};
use crate::adapters::leak::keep_out;
use crate::adapters::room::{ALLOWED, House};
use crate::adapters::{claude, codex, command, probe};
use crate::cli::ctx::{Context, project_root};
use crate::cli::workers::{self, Worker as Named};
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Transport;
use crate::model::id::Name;
use crate::model::job::{Cost, Family, Grade, Locality};
use crate::model::worker::WorkerKind;
use crate::rules::claim::Offer;

/// The way to an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// A program of the user's own.
    Process(Vec<OsString>),
    /// A local agent, and its program.
    Agent(Agent, String),
    /// An endpoint.
    Endpoint(Endpoint),
}

/// One worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// Its name in the record; it proves nothing. A capability of the same name is its evidence.
    pub name: Name,
    /// The way to its answers.
    pub way: Way,
    /// The family that it belongs to.
    pub family: Family,
    /// The model that it is asked for.
    pub model: Option<String>,
    /// The variable that holds its key: the one that it is given beside the usual few.
    pub key_env: Option<String>,
    /// What it costs, where that is known.
    pub cost: Option<Cost>,
    /// Whether it gets an empty home folder in place of the user's.
    pub isolate: bool,
    /// How long it may take for one answer, where its settings say so.
    pub timeout: Option<Duration>,
}

impl From<&Named> for Worker {
    /// A worker as the user's settings name it.
    fn from(named: &Named) -> Self {
        let way = match (&named.way, named.kind) {
            (workers::Way::Endpoint(endpoint), _) => Way::Endpoint(endpoint.clone()),
            (workers::Way::Program(command), WorkerKind::Claude) => {
                Way::Agent(Agent::Claude, command.concat())
            }
            (workers::Way::Program(command), WorkerKind::Codex) => Way::Agent(Agent::Codex, command.concat()),
            (workers::Way::Program(command), _) => Way::Process(command.iter().map(OsString::from).collect()),
        };
        Self {
            name: named.name.clone(),
            way,
            family: named.family,
            model: named.model.clone(),
            key_env: named.key_env.clone(),
            cost: Some(named.cost),
            isolate: named.isolate,
            timeout: Some(named.timeout),
        }
    }
}

impl Worker {
    /// How its answers will come, as far as that is known before it is asked.
    pub fn offer(&self) -> Offer {
        let (transport, best, locality, unattested) = match &self.way {
            // Where a program of one's own sends the text is not known.
            Way::Process(_) => (Transport::Process, Grade::Declared, None, false),
            // Both agents send it to their makers.
            Way::Agent(Agent::Claude, _) if self.isolate => {
                (Transport::Process, Grade::Attested, Some(Locality::Any), false)
            }
            Way::Agent(agent, _) => {
                (Transport::Process, Grade::Declared, Some(Locality::Any), *agent == Agent::Codex)
            }
            Way::Endpoint(endpoint) => {
                (Transport::Http, Grade::Attested, Some(workers::locality(endpoint)), false)
            }
        };
        Offer { transport, best, cost: self.cost, locality, model: self.model.clone(), unattested }
    }

    /// Looks whether it is there, once, before anything is claimed for it.
    ///
    /// # Errors
    /// In the inner result, a failure that says the way is not there; else `usage` for its key's variable.
    pub fn ready<'a>(
        self,
        ctx: &'a Context,
        now: &'a (dyn Fn() -> crate::model::time::Time + Sync),
        show_errors: bool,
    ) -> Result<std::result::Result<Ready<'a>, Failure>> {
        let key = match &self.key_env {
            None => None,
            Some(name) => match key(ctx, name)? {
                Some(value) => Some((name.clone(), value)),
                None => return Ok(Err(Failure::gone("no_key", format!("the variable {name} is not set")))),
            },
        };
        let allowed = ALLOWED.iter().filter_map(|name| Some(((*name).to_owned(), (ctx.lookup)(name)?)));
        let house = House {
            variables: allowed.collect(),
            key,
            isolate: self.isolate,
            temporary: PathBuf::from(ctx.env.get("TMPDIR").unwrap_or("/tmp")),
            project: ctx.root().ok().map(|root| project_root(&root)),
            keeper: ctx.executable.clone().filter(|file| crate::cli::input::is_there(file)),
            show_errors,
            now,
        };
        // A place that cannot be had costs no attempt if it is noticed before a claim.
        let runs = !matches!(self.way, Way::Endpoint(_));
        if let Err(why) = if runs { house.room().map(drop) } else { Ok(()) } {
            return Ok(Err(Failure::gone("no_room", why)));
        }
        let found = match &self.way {
            Way::Process(command) => program(ctx, command, &house).map(Found::Command),
            Way::Agent(Agent::Claude, program) => claude::find(program, &house).map(Found::Claude),
            Way::Agent(Agent::Codex, program) => codex::find(program, &house).map(Found::Codex),
            Way::Endpoint(endpoint) => Ok(Found::Endpoint(endpoint.clone())),
        };
        Ok(found.map(|found| Ready { worker: self, found, house }))
    }
}

/// The value of the variable that holds a worker's key.
fn key(ctx: &Context, name: &str) -> Result<Option<String>> {
    let sound = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.is_empty();
    if !sound || name.starts_with("NF_") || ALLOWED.contains(&name) {
        return Err(Error::new(Kind::Usage, format!("{name:?} is no variable that holds a worker's key"))
            .because("a child gets no variable of nf, and PATH, HOME and the like are not chosen so")
            .fix("name the variable that the program reads its key from, such as ANTHROPIC_API_KEY"));
    }
    Ok((ctx.lookup)(name).filter(|value| !value.is_empty()))
}

/// The command with the file of its program. The child runs elsewhere, so that it is found from here.
fn program(
    ctx: &Context,
    command: &[OsString],
    house: &House<'_>,
) -> std::result::Result<Vec<OsString>, Failure> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::gone("not_there", "no program is given"));
    };
    let Some(name) = program.to_str() else {
        return Err(Failure::gone("not_there", "the program's name is not UTF-8"));
    };
    let file = probe::find(name, house.path(), &ctx.folder).map_err(|why| Failure::gone("not_there", why))?;
    Ok(std::iter::once(file.into_os_string()).chain(arguments.iter().cloned()).collect())
}

/// What was found of a worker.
enum Found {
    Command(Vec<OsString>),
    Claude(Tool),
    Codex(Tool),
    Endpoint(Endpoint),
}

/// A worker that is there.
pub struct Ready<'a> {
    /// The worker.
    pub worker: Worker,
    found: Found,
    house: House<'a>,
}

impl Ready<'_> {
    /// Whether it can be held to a schema.
    pub fn takes_schema(&self) -> bool {
        !matches!(self.found, Found::Command(_))
    }

    /// Whether the schema that it is held to is seen by nobody else: the arguments of a program are.
    pub fn is_private(&self) -> bool {
        matches!(self.found, Found::Endpoint(_))
    }

    /// Asks it once.
    pub fn ask(&self, ask: &Ask<'_>) -> Outcome {
        let mut outcome = match &self.found {
            Found::Command(words) => command::ask(words, &self.house, ask),
            Found::Claude(tool) => claude::ask(tool, &self.house, ask),
            Found::Codex(tool) => codex::ask(tool, &self.house, ask),
            Found::Endpoint(endpoint) => {
                let key = self.house.key.as_ref().map(|(_, value)| value.as_str());
                http::ask(endpoint, key, ask)
            }
        };
        // A program has its key in a variable, and may print what it finds there.
        if let Some((_, key)) = &self.house.key {
            keep_out(key, &mut outcome);
        }
        outcome
    }
}
