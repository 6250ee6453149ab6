//! The user's own settings of workers: which programs and endpoints may answer, and whose comments count.
//! They stand in `workers.yaml` of the user's config folder and never in a store, so that a store that
//! somebody copied can name nothing that is run or called. Keys stand in variables that are named here, never
//! here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::ctx::Context;
use super::input::own;
use crate::adapters::http::{Address, Dialect, Endpoint};
use crate::error::{Error, Kind, Result};
use crate::model::id::Name;
use crate::model::job::{Cost, Family, Locality};
use crate::model::time::parse_millis;
use crate::model::worker::WorkerKind;
use crate::model::yaml;
use crate::rules::members::{Members, nearest, wrong};
use crate::rules::secret::looks_secret;

/// The file's name in the config folder.
pub const FILE: &str = "workers.yaml";
/// How long a worker may take where the settings do not say.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The longest time that the settings may give, in milliseconds.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;
/// Workers at most.
const MAX_WORKERS: usize = 256;
/// The members of a worker.
const MEMBERS: &[&str] = &[
    "kind",
    "command",
    "url",
    "model",
    "key_env",
    "timeout",
    "cost",
    "family",
    "isolate",
    "insecure",
    "max_tokens",
];

/// How a worker is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A program with its arguments: a name on `PATH` or an absolute path.
    Program(Vec<String>),
    /// An endpoint.
    Endpoint(Endpoint),
}

/// One worker, as the settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// What it is called.
    pub name: Name,
    /// What it is.
    pub kind: WorkerKind,
    /// How it is reached.
    pub way: Way,
    /// The family that it answers as.
    pub family: Family,
    /// The model that is wanted.
    pub model: Option<String>,
    /// The variable that holds its key.
    pub key_env: Option<String>,
    /// How long it may take for one answer.
    pub timeout: Duration,
    /// What it costs.
    pub cost: Cost,
    /// Whether each invocation gets an empty home of its own.
    pub isolate: bool,
}

/// Whether the text stays on this machine.
pub fn locality(endpoint: &Endpoint) -> Locality {
    if endpoint.address.is_loopback() { Locality::Local } else { Locality::Any }
}

impl Worker {
    /// Whether the text stays on this machine: known of an endpoint on it, and of nothing else.
    pub fn locality(&self) -> Locality {
        match &self.way {
            Way::Endpoint(endpoint) => locality(endpoint),
            Way::Program(_) => Locality::Any,
        }
    }

    /// Its key, where its variable is set.
    pub fn key(&self, ctx: &Context) -> Option<String> {
        (ctx.lookup)(self.key_env.as_deref()?).filter(|key| !key.trim().is_empty())
    }
}

/// The user's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where they stand, or would.
    pub path: PathBuf,
    /// The workers by name.
    pub workers: BTreeMap<Name, Worker>,
    /// Accounts at GitHub whose comments may carry answers.
    pub actors: Vec<String>,
}

impl Settings {
    /// A worker by its name.
    ///
    /// # Errors
    /// `usage` with the nearest one.
    pub fn worker(&self, name: &str) -> Result<&Worker> {
        if let Some((_, worker)) = self.workers.iter().find(|(known, _)| known.as_str() == name) {
            return Ok(worker);
        }
        let known = self.workers.keys().map(Name::as_str);
        let error = Error::new(Kind::Usage, format!("no worker is named {name}"))
            .fix(format!("name it in {}", self.path.display()));
        Err(match (nearest(name, known.clone()), known.collect::<Vec<_>>().join(", ")) {
            (Some(near), _) => error.because(format!("did you mean {near}?")),
            (None, all) if all.is_empty() => error.because("the settings name none"),
            (None, all) => error.because(format!("known are {all}")),
        })
    }

    /// Whether an account's comments may carry answers. GitHub tells no letter's case apart.
    pub fn is_actor(&self, login: &str) -> bool {
        self.actors.iter().any(|actor| actor.eq_ignore_ascii_case(login))
    }
}

/// The user's config folder: `NF_CONFIG`, else the platform's.
fn folder(ctx: &Context) -> Option<PathBuf> {
    match ctx.env.get("NF_CONFIG") {
        Some(folder) => Some(ctx.folder.join(folder)),
        None => (ctx.config)(),
    }
}

/// The user's settings; empty ones where there is no file.
///
/// # Errors
/// `bad_input` with file and pointer; `foreign_store` where others may have written it.
pub fn settings(ctx: &Context) -> Result<Settings> {
    let Some(folder) = folder(ctx) else { return Ok(Settings::default()) };
    let path = folder.join(FILE);
    match own::read(&path)? {
        Some(bytes) => read(&path, &bytes),
        None => Ok(Settings { path, ..Settings::default() }),
    }
}

/// Settings from the bytes of a file.
fn read(path: &Path, bytes: &[u8]) -> Result<Settings> {
    let what = path.display().to_string();
    let mut settings = Settings { path: path.to_owned(), ..Settings::default() };
    if yaml::is_blank(bytes) {
        return Ok(settings);
    }
    let value = yaml::parse(bytes).map_err(|fault| fault.into_error(&what))?;
    if value.is_null() {
        return Ok(settings);
    }
    let members = Members::new(&what, &value, "", &["workers", "github"])?;
    if let Some(workers) = members.raw("workers").filter(|workers| !workers.is_null()) {
        let all = workers.as_object().ok_or_else(|| wrong(&what, "/workers", "an object is wanted here"))?;
        if all.len() > MAX_WORKERS {
            return Err(wrong(&what, "/workers", &format!("at most {MAX_WORKERS} workers are read")));
        }
        for (name, value) in all {
            let place = crate::model::json::push_pointer("/workers", name);
            let name: Name = name.parse().map_err(|why: String| wrong(&what, &place, &why))?;
            let worker = worker(&what, &place, name.clone(), value)?;
            settings.workers.insert(name, worker);
        }
    }
    if let Some(github) = members.raw("github").filter(|github| !github.is_null()) {
        let inner = Members::new(&what, github, "/github", &["actors"])?;
        settings.actors = inner.get("actors")?.unwrap_or_default();
        if let Some(actor) = settings.actors.iter().find(|actor| !is_login(actor)) {
            let message = format!("{actor:?} is no account's name at GitHub");
            return Err(wrong(&what, "/github/actors", &message));
        }
    }
    Ok(settings)
}

fn is_login(text: &str) -> bool {
    let bare = text.strip_suffix("[bot]").unwrap_or(text);
    (1..=100).contains(&bare.len())
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// One worker.
fn worker(what: &str, place: &str, name: Name, value: &Value) -> Result<Worker> {
    let members = Members::new(what, value, place, MEMBERS)?;
    let kind = word(what, &members, "kind", WorkerKind::ALL, WorkerKind::word)?;
    let kind = kind.ok_or_else(|| wrong(what, &members.at("kind"), "this member is required"))?;
    fits(what, &members, kind)?;
    let way = match kind {
        WorkerKind::Claude | WorkerKind::Codex | WorkerKind::Command => {
            Way::Program(program(what, &members, kind)?)
        }
        WorkerKind::Openai => Way::Endpoint(endpoint(what, &members, &name, Dialect::Openai)?),
        WorkerKind::Anthropic => Way::Endpoint(endpoint(what, &members, &name, Dialect::Anthropic)?),
    };
    let own = defaults(kind, &way);
    let model = text(what, &members, "model")?;
    if kind == WorkerKind::Anthropic && model.is_none() {
        return Err(wrong(what, &members.at("model"), "this dialect wants a model"));
    }
    Ok(Worker {
        family: family(what, &members, kind, own.0)?,
        cost: word(what, &members, "cost", Cost::ALL, Cost::word)?.unwrap_or(own.1),
        model,
        key_env: key_env(what, &members)?,
        timeout: timeout(what, &members)?,
        isolate: members.get("isolate")?.unwrap_or(false),
        name,
        kind,
        way,
    })
}

/// What a worker is taken for where the settings do not say.
fn defaults(kind: WorkerKind, way: &Way) -> (Family, Cost) {
    match (kind, way) {
        (_, Way::Endpoint(endpoint)) if endpoint.address.is_loopback() => (Family::LocalModel, Cost::Free),
        (_, Way::Endpoint(_)) => (Family::ProviderApi, Cost::Metered),
        (WorkerKind::Claude | WorkerKind::Codex, _) => (Family::LocalAgent, Cost::Plan),
        _ => (Family::ServiceJob, Cost::Metered),
    }
}

/// Refuses members that mean nothing for a kind.
fn fits(what: &str, members: &Members<'_>, kind: WorkerKind) -> Result<()> {
    let foreign: &[&str] = match kind {
        WorkerKind::Openai | WorkerKind::Anthropic => &["command", "isolate"],
        _ => &["url", "insecure", "max_tokens"],
    };
    match foreign.iter().find(|member| members.raw(member).is_some()) {
        Some(member) => {
            Err(wrong(what, &members.at(member), &format!("a worker of kind {kind} has no {member}")))
        }
        None => Ok(()),
    }
}

/// A member that is one of some words.
fn word<T: Copy>(
    what: &str,
    members: &Members<'_>,
    key: &str,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<Option<T>> {
    let Some(text) = members.get::<String>(key)? else { return Ok(None) };
    if let Some(found) = all.iter().find(|one| word(**one) == text) {
        return Ok(Some(*found));
    }
    let known: Vec<&str> = all.iter().map(|one| word(*one)).collect();
    let error = wrong(what, &members.at(key), &format!("{text:?} is none of {}", known.join(", ")));
    Err(match nearest(&text, known.into_iter()) {
        Some(near) => error.because(format!("did you mean {near}?")),
        None => error,
    })
}

fn family(what: &str, members: &Members<'_>, kind: WorkerKind, own: Family) -> Result<Family> {
    let allowed: &[Family] = match kind {
        WorkerKind::Claude | WorkerKind::Codex => &[Family::LocalAgent],
        WorkerKind::Openai | WorkerKind::Anthropic => &[Family::ProviderApi, Family::LocalModel],
        WorkerKind::Command => &[
            Family::LocalAgent,
            Family::ProviderApi,
            Family::LocalModel,
            Family::McpWorker,
            Family::ServiceJob,
        ],
    };
    Ok(word(what, members, "family", allowed, Family::word)?.unwrap_or(own))
}

fn program(what: &str, members: &Members<'_>, kind: WorkerKind) -> Result<Vec<String>> {
    let place = members.at("command");
    let command: Vec<String> = match (members.raw("command"), kind) {
        (None, WorkerKind::Command) => return Err(wrong(what, &place, "this member is required")),
        (None, kind) => vec![kind.word().to_owned()],
        (Some(Value::String(program)), _) => vec![program.clone()],
        (Some(_), _) => members.get("command")?.unwrap_or_default(),
    };
    let bad = |message: &str| Err(wrong(what, &place, message));
    let Some(program) = command.first().filter(|program| !program.is_empty()) else {
        return bad("a program is wanted here: a name, a path, or a list with its arguments");
    };
    // A relative path would let the folder that is worked in choose what is run.
    if program.contains('/') && !program.starts_with('/') {
        return bad("a program is a name on PATH or a path from /, so that no project chooses what is run");
    }
    if program.contains(char::is_whitespace) {
        return bad("arguments stand in a list: [PROGRAM, ARGUMENT]");
    }
    if command.iter().any(|part| part.contains('\0')) {
        return bad("no argument holds a NUL");
    }
    if kind != WorkerKind::Command && command.len() > 1 {
        return bad(&format!("the arguments of {kind} are its adapter's"));
    }
    Ok(command)
}

fn endpoint(what: &str, members: &Members<'_>, name: &Name, dialect: Dialect) -> Result<Endpoint> {
    let (url, insecure): (String, bool) = (members.need("url")?, members.get("insecure")?.unwrap_or(false));
    let at = |why: String| wrong(what, &members.at("url"), &format!("this is no address to call: {why}"));
    let address = Address::parse(&url).map_err(at)?;
    address.allowed(insecure).map_err(at)?;
    let max_tokens: Option<u64> = members.get("max_tokens")?;
    if max_tokens == Some(0) {
        return Err(wrong(what, &members.at("max_tokens"), "an answer has one token or more"));
    }
    Ok(Endpoint { provider: name.to_string(), dialect, address, insecure, max_tokens })
}

/// A short text that is no secret.
fn text(what: &str, members: &Members<'_>, key: &str) -> Result<Option<String>> {
    let text: Option<String> = members.get(key)?;
    if text.as_deref().is_some_and(|text| looks_secret(text).is_some()) {
        return Err(wrong(what, &members.at(key), "this looks like a secret; key_env names the variable"));
    }
    match text {
        Some(text) if text.trim().is_empty() || text.len() > 256 || text.chars().any(char::is_control) => {
            Err(wrong(what, &members.at(key), "1 to 256 visible characters are wanted here"))
        }
        text => Ok(text),
    }
}

/// The name of a variable, never a key: what cannot be one is not repeated.
fn key_env(what: &str, members: &Members<'_>) -> Result<Option<String>> {
    let wants = || wrong(what, &members.at("key_env"), "the name of a variable is wanted here, never a key");
    let Some(value) = members.raw("key_env") else { return Ok(None) };
    let name = value.as_str().ok_or_else(wants)?;
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let fits = first && rest && name.len() <= 128 && looks_secret(name).is_none();
    if fits { Ok(Some(name.to_owned())) } else { Err(wants()) }
}

fn timeout(what: &str, members: &Members<'_>) -> Result<Duration> {
    let Some(text) = members.get::<String>("timeout")? else { return Ok(TIMEOUT) };
    let bad = |why: String| wrong(what, &members.at("timeout"), &why);
    match parse_millis(&text).map_err(bad)? {
        millis @ 1000..=MAX_TIMEOUT => Ok(Duration::from_millis(millis)),
        _ => Err(bad("1 second to 24 hours are wanted here".to_owned())),
    }
}

#[cfg(test)]
mod tests;
