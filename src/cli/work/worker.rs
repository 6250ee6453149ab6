//! A worker: who answers, how it is run, and what is known of its answers before it is asked. Workers come
//! from the command line or the user's own configuration, never from a store: a store that was cloned must
//! not be able to name a program to run.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::adapters::agent::{Agent, Tool};
use crate::adapters::ask::{Ask, Failure, Outcome};
use crate::adapters::child::unavailable;
use crate::adapters::room::{ALLOWED, House};
use crate::adapters::{claude, codex, command, probe};
use crate::cli::ctx::{Context, project_root};
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Transport;
use crate::model::id::Name;
use crate::model::job::{Cost, Family, Grade, Locality};
use crate::rules::claim::Offer;

/// The way to an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// A program of the user's own.
    Process(Vec<OsString>),
    /// A local agent.
    Agent(Agent),
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
}

impl Worker {
    /// How its answers will come, as far as that is known before it is asked.
    pub fn offer(&self) -> Offer {
        let agent = match &self.way {
            Way::Process(_) => None,
            Way::Agent(agent) => Some(*agent),
        };
        let apart = agent == Some(Agent::Claude) && self.isolate;
        Offer {
            transport: Transport::Process,
            best: if apart { Grade::Attested } else { Grade::Declared },
            cost: self.cost,
            // Both agents send the text to their makers; where a program of one's own sends it is not known.
            locality: agent.map(|_| Locality::Any),
            model: self.model.clone(),
            unattested: agent == Some(Agent::Codex),
        }
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
                None => return Ok(Err(unavailable("no_key", format!("the variable {name} is not set")))),
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
        if let Err(why) = house.room() {
            return Ok(Err(unavailable("no_room", why)));
        }
        let found = match &self.way {
            Way::Process(command) => program(ctx, command, &house).map(Found::Command),
            Way::Agent(Agent::Claude) => claude::find(&house).map(Found::Claude),
            Way::Agent(Agent::Codex) => codex::find(&house).map(Found::Codex),
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
        return Err(unavailable("not_there", "no program is given"));
    };
    let Some(name) = program.to_str() else {
        return Err(unavailable("not_there", "the program's name is not UTF-8"));
    };
    let file = probe::find(name, house.path(), &ctx.folder).map_err(|why| unavailable("not_there", why))?;
    Ok(std::iter::once(file.into_os_string()).chain(arguments.iter().cloned()).collect())
}

/// What was found of a worker.
enum Found {
    Command(Vec<OsString>),
    Claude(Tool),
    Codex(Tool),
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

    /// Asks it once.
    pub fn ask(&self, ask: &Ask<'_>) -> Outcome {
        match &self.found {
            Found::Command(words) => command::ask(words, &self.house, ask),
            Found::Claude(tool) => claude::ask(tool, &self.house, ask),
            Found::Codex(tool) => codex::ask(tool, &self.house, ask),
        }
    }
}
