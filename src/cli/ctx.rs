//! What every command stands on: the flags, the store, the project around it and the clock. Flag goes
//! before environment, environment before the only candidate, and else an error lists the candidates.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bar::{Bar, Told};
use super::env::Env;
use super::global::Global;
use super::input::Project;
use super::served::Served;
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::fold::current_run;
use crate::model::id::{Id, IdKind, RunId, is_base32};
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::{Entity, State};
use crate::model::time::{Source, Time};
use crate::rules::members::nearest;
use crate::rules::resume::not_current;
use crate::store::{Answer, Doubt, Gathered, Options, Request, Store, Watch};

/// The name of the store's folder.
pub const STORE: &str = ".novelforge";

/// The flags, the environment and the process around one command.
pub struct Context {
    /// Flags.
    pub global: Global,
    /// Environment.
    pub env: Env,
    /// The folder to start from.
    pub folder: PathBuf,
    /// This program's own file, for the lock's self-check.
    pub executable: Option<PathBuf>,
    /// A variable that is none of [`Env`]'s, by its name.
    pub lookup: fn(&str) -> Option<String>,
    /// The system's time and randomness.
    pub source: Arc<Source>,
    /// The user's config folder, as the platform says it.
    pub config: fn() -> Option<PathBuf>,
    /// Whether what the command read counts.
    pub doubt: Doubt,
    /// What a server brings, where one runs the command.
    pub served: Option<Served>,
    /// Told how far long work has come.
    pub told: Option<Told>,
}

/// An opened store with the project around it and the clock to use.
pub struct Opened {
    /// The store.
    pub store: Arc<Store>,
    /// The project around it.
    pub project: Project,
    /// Time and randomness: the system's, or a testing store's fixed ones.
    pub source: Arc<Source>,
}

impl Opened {
    /// Decides and records, as [`Store::transact`]; what was recovered on the way goes with a failure too.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn transact<F, T: Serialize + DeserializeOwned>(
        &self,
        request: &Request,
        gather: impl FnMut(&State) -> Result<Gathered<F>>,
        mut decide: impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
    ) -> Result<Answer<T>> {
        let decide = |turn: &mut Turn<'_>, facts: &F| {
            let decision = decide(turn, facts)?;
            super::secret::none_in(turn, &decision.events, request.op.as_ref())?;
            Ok(decision)
        };
        self.store
            .transact(&self.source, request, gather, decide)
            .map_err(|error| error.with("notes", &self.store.take_notes()))
    }
}

impl Context {
    /// The store options that the flags ask for.
    pub fn options(&self) -> Options {
        Options {
            lock_timeout_ms: self.global.lock_timeout,
            allow_fs: self.global.allow_fs,
            allow_damaged: self.global.allow_damaged,
            self_check: self.executable.clone(),
            boot: Some((self.source.moment)().boot_id).filter(|boot| !boot.is_empty()),
            watch: self.watch(),
            doubt: self.doubt.clone(),
            group: false,
        }
    }

    /// A bar for the making of an index, taken away at its end.
    fn watch(&self) -> Watch {
        let bar = Bar::new(self);
        Watch::new(move |done, total| match done < total {
            // An index is made piece by piece and nobody waits for it: there is nothing to give up.
            true => drop(bar.show(done, total)),
            false => bar.end(),
        })
    }

    /// Where the store is: `NF_DIR`, else the nearest `.novelforge/` upward.
    ///
    /// # Errors
    /// `no_store`.
    pub fn root(&self) -> Result<PathBuf> {
        if let Some(folder) = self.env.get("NF_DIR") {
            return Ok(self.folder.join(folder));
        }
        let upward = self.folder.ancestors().map(|folder| folder.join(STORE));
        let mut found = upward.filter(|root| super::input::is_there(root));
        found.next().ok_or_else(|| {
            Error::new(Kind::NoStore, format!("no {STORE}/ in {} or above it", self.folder.display()))
        })
    }

    /// Opens the store and the project around it.
    ///
    /// # Errors
    /// `no_store`, those of [`Store::open`], `usage` for a fixed clock in a store that is not for testing.
    pub fn open(&self) -> Result<Opened> {
        let root = self.root()?;
        let store = match self.served.as_ref().and_then(|served| served.store.clone()) {
            Some(store) => store,
            None => Arc::new(Store::open(&root, self.options())?),
        };
        let source = self.source_for(store.info().testing)?;
        let project = Project::around(&root)?;
        Ok(Opened { store, project, source })
    }

    /// The clock and randomness to use: the variables that fix them count only in a testing store.
    ///
    /// # Errors
    /// `usage`.
    pub fn source_for(&self, testing: bool) -> Result<Arc<Source>> {
        let fixed = ["NF_NOW", "NF_BOOT", "NF_SEED"].into_iter().find(|name| self.env.get(name).is_some());
        let Some(name) = fixed else { return Ok(self.source.clone()) };
        if !testing {
            return Err(Error::new(Kind::Usage, format!("{name} is set, and this store is not for testing"))
                .fix(format!("unset {name}; only nf init --testing makes a store that honours it")));
        }
        let mut moment = (self.source.moment)();
        if let Some(text) = self.env.get("NF_NOW") {
            moment.wall =
                Time::from_str(text).map_err(|bad| Error::new(Kind::Usage, format!("NF_NOW: {bad}")))?;
        }
        if let Some(text) = self.env.get("NF_BOOT") {
            moment = super::env::boot(text, moment.wall)?;
        }
        match self.env.get("NF_SEED") {
            Some(seed) => Ok(Arc::new(Source::fixed(moment, seed.to_owned()))),
            None => {
                let system = self.source.clone();
                Ok(Arc::new(Source {
                    moment: Box::new(move || moment.clone()),
                    random: Box::new(move |bytes| (system.random)(bytes)),
                }))
            }
        }
    }

    /// The request of a command, for its operation key and its record.
    pub fn request(&self, command: &str, mut arguments: serde_json::Value) -> Request {
        if let (Some(map), Some(session)) =
            (arguments.as_object_mut(), self.named("NF_SESSION", &self.global.session))
        {
            map.insert("session".to_owned(), session.into());
        }
        Request {
            cmd: command.to_owned(),
            op: self.global.op.clone(),
            args: arguments,
            dry_run: self.global.dry_run,
        }
    }

    fn named<'a>(&'a self, variable: &str, flag: &'a Option<String>) -> Option<&'a str> {
        flag.as_deref().or_else(|| self.env.get(variable))
    }

    /// The nonce that was given beside the reply.
    pub fn nonce(&self) -> Option<&str> {
        self.named("NF_NONCE", &self.global.nonce)
    }

    /// The session that was named, if any.
    ///
    /// # Errors
    /// `unknown_id`, `ambiguous_id`.
    pub fn named_session(&self, state: &State) -> Result<Option<Session>> {
        let text = self.named("NF_SESSION", &self.global.session);
        text.map(|text| find::<Session>(state, text)).transpose()
    }

    /// The session to act for: the one named, else the only one that is not ended.
    ///
    /// # Errors
    /// `no_candidate`, `not_only_candidate` with the list.
    pub fn session(&self, state: &State) -> Result<Session> {
        if let Some(session) = self.named_session(state)? {
            return Ok(session);
        }
        only("session", state.open_sessions().collect(), |session| {
            format!("{} {} {} ({})", session.id, session.resource, session.task_mode, session.status)
        })
        .map_err(|error| match error.kind {
            Kind::NoCandidate => error.fix("nf start --resource R --task T"),
            _ => error.fix("give --session ID, or set NF_SESSION; nf session move ID terminated ends one"),
        })
    }

    /// The run that the caller means, where it says so.
    ///
    /// # Errors
    /// `usage` for what is no run id.
    pub fn expected_run(&self, state: &State) -> Result<Option<RunId>> {
        self.named("NF_RUN", &self.global.run).map(|text| resolve::<RunId>(state, text)).transpose()
    }

    /// Refuses to act on a session that is at another version than the caller expects.
    ///
    /// # Errors
    /// `version_mismatch`.
    pub fn expect_version(&self, session: &Session) -> Result<()> {
        crate::rules::lifecycle::expect_version(session, self.global.expect_version)
    }

    /// The session's current run, and no other than the one named.
    ///
    /// # Errors
    /// `not_current_run`.
    pub fn current_run(&self, state: &State, session: &Session) -> Result<Option<Run>> {
        let current = current_run(state, session);
        match self.expected_run(state)? {
            Some(named) if current.as_ref().map(|run| &run.id) != Some(&named) => {
                Err(not_current(session, &named))
            }
            _ => Ok(current),
        }
    }

    /// The session's current run, which the command needs.
    ///
    /// # Errors
    /// `not_current_run`.
    pub fn need_run(&self, state: &State, session: &Session) -> Result<Run> {
        self.current_run(state, session)?.ok_or_else(|| {
            let way = crate::rules::lifecycle::way(&session.id, session.status);
            Error::new(
                Kind::NotCurrentRun,
                format!("session {} is {} and has no current run", session.id, session.status),
            )
            .fix(way)
        })
    }
}

/// The only candidate, else an error that lists them.
///
/// # Errors
/// `no_candidate`, `not_only_candidate`.
pub fn only<T>(what: &str, mut candidates: Vec<T>, line: impl Fn(&T) -> String) -> Result<T> {
    match candidates.len() {
        1 => Ok(candidates.remove(0)),
        0 => Err(Error::new(Kind::NoCandidate, format!("there is no {what} that could be meant"))),
        count => {
            let lines: Vec<String> = candidates.iter().take(10).map(line).collect();
            Err(Error::new(Kind::NotOnlyCandidate, format!("{count} candidates could be meant as {what}"))
                .because(lines.join("\n       "))
                .details(serde_json::json!({"candidates": lines})))
        }
    }
}

/// An id from its text or any unique beginning of four or more characters after the letter.
///
/// # Errors
/// `usage` for what is no id of this kind; `unknown_id` with the nearest one; `ambiguous_id`.
pub fn resolve<T: Id>(state: &State, text: &str) -> Result<T> {
    let (kind, letter) = (T::KIND.word(), T::KIND.letter());
    let rest = text.strip_prefix(letter).and_then(|rest| rest.strip_prefix('-'));
    let rest = rest.filter(|rest| (4..=12).contains(&rest.len()) && is_base32(rest, rest.len()));
    if rest.is_none() {
        let shown: String = text.chars().take(40).collect();
        return Err(Error::new(Kind::Usage, format!("{shown:?} is no {kind} id"))
            .because(format!("want {letter}- and 4 to 12 characters of 0-9 and a-z without i, l, o, u"))
            .fix(format!("nf list {kind}")));
    }
    let found = state.with_prefix(text, 2);
    match found.as_slice() {
        [id] => Ok(T::from_text(id.clone())),
        [] => Err(unknown::<T>(state, text)),
        _ => Err(Error::new(Kind::AmbiguousId, format!("more than one {kind} begins with {text}"))
            .because(state.with_prefix(text, 10).join(", "))),
    }
}

fn unknown<T: Id>(state: &State, text: &str) -> Error {
    let known: Vec<String> = state.of_kind(T::KIND, None).take(1000).map(|row| row.id).collect();
    let error = Error::new(Kind::UnknownId, format!("no {} has the id {text}", T::KIND.word()))
        .fix(format!("nf list {}", T::KIND.word()));
    match nearest(text, known.iter().map(String::as_str)) {
        Some(near) => error.because(format!("did you mean {near}?")),
        None => error,
    }
}

/// An entity by its id or a unique beginning.
///
/// # Errors
/// As [`resolve`].
pub fn find<T: Entity>(state: &State, text: &str) -> Result<T> {
    let id = resolve::<T::Id>(state, text)?;
    get(state, &id)
}

/// An entity that another one names.
///
/// # Errors
/// `unknown_id`, which in a sound store cannot be.
pub fn get<T: Entity>(state: &State, id: &T::Id) -> Result<T> {
    state.get(id).ok_or_else(|| Error::new(Kind::UnknownId, format!("nothing has the id {id}")))
}

/// The kind that an id's letter says.
///
/// # Errors
/// `usage`.
pub fn kind_of(text: &str) -> Result<IdKind> {
    let letter = text.split_once('-').map(|(letter, _)| letter).unwrap_or_default();
    let kind = letter.chars().next().filter(|_| letter.len() == 1).and_then(IdKind::of_letter);
    kind.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Error::new(Kind::Usage, format!("{shown:?} is no id"))
            .because("an id is a letter, - and up to 12 characters, such as s-4q2mk7ta0xwd")
            .fix("nf status names what is open; nf list KIND lists the ids of a kind")
    })
}

/// The parent of the store folder.
pub fn project_root(store: &Path) -> PathBuf {
    match store.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
        None => store.to_path_buf(),
    }
}
