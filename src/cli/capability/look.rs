//! What a probe looks at: a program that the command line names, or a worker of the user's settings.

use std::path::Path;
use std::time::Duration;

use super::Probe;
use crate::adapters::flags::{CLAUDE, CODEX, Flags};
use crate::adapters::{http, probe};
use crate::cli::ctx::Context;
use crate::cli::workers::{Way, Worker, settings};
use crate::error::{Error, Kind, Result};
use crate::model::capability::Capability;
use crate::model::id::Name;
use crate::model::job::Family;
use crate::model::worker::WorkerKind;
use crate::rules::capability::{Probed, Stated};
use crate::rules::secret::looks_secret;

/// How long an endpoint may take to list its models.
const REACH_LIMIT: Duration = Duration::from_secs(10);
const PROGRAM_FIX: &str = "install the program or name another one, then probe again";
const AGENT_FIX: &str = "install a version that has these options, or name another program, then probe again";
const ENDPOINT_FIX: &str = "start it or mend url and key_env in workers.yaml, then probe again; \
    nf capability declare says what no probe can see";

/// What is looked at.
pub enum Target {
    /// A program of the command line, with its family.
    Program(String, Family),
    /// A worker of the settings.
    Worker(Box<Worker>),
}

impl Target {
    /// What the command line means.
    ///
    /// # Errors
    /// `usage`; `looks_secret`; those of the settings.
    pub fn of(ctx: &Context, asked: &Probe) -> Result<Self> {
        match (&asked.program, asked.family) {
            (Some(program), Some(family)) => match looks_secret(program) {
                Some(why) => {
                    Err(Error::new(Kind::LooksSecret, "the program looks like a secret").because(why))
                }
                None => Ok(Target::Program(program.clone(), family)),
            },
            (Some(_), None) => Err(Error::new(Kind::Usage, "a program is of no family by itself")
                .fix("give --family, such as --family service_job")),
            (None, family) => {
                let settings = settings(ctx)?;
                let worker = settings.worker(asked.name.as_str()).map_err(|error| {
                    let or = format!("{}; or give a program: -- PROGRAM", error.next_step());
                    error.fix(or)
                })?;
                match family.filter(|family| *family != worker.family) {
                    Some(other) => Err(Error::new(
                        Kind::Usage,
                        format!("worker {} is a {} and no {other}", worker.name, worker.family),
                    )
                    .fix("leave --family out, or change it in workers.yaml")),
                    None => Ok(Target::Worker(Box::new(worker.clone()))),
                }
            }
        }
    }

    /// What is known of it without the options: what the settings say, and else the least.
    pub fn known(&self, name: &Name) -> Stated {
        match self {
            Target::Program(_, family) => Stated::least(name.clone(), *family),
            Target::Worker(worker) => {
                let least = Stated::least(name.clone(), worker.family);
                let evidence = Capability {
                    cost: worker.cost,
                    interactive: false,
                    executes_model: worker.kind != WorkerKind::Command,
                    isolated_invocation: worker.isolate || matches!(worker.way, Way::Endpoint(_)),
                    locality: worker.locality(),
                    models: worker.model.iter().cloned().collect(),
                    ..least.evidence
                };
                Stated { evidence, ..least }
            }
        }
    }

    /// Looks, without having a model answer and without a text of the store.
    ///
    /// # Errors
    /// None of its own: what is not there is what the look came to.
    pub fn look(&self, ctx: &Context) -> Result<Probed> {
        match self {
            Target::Program(program, _) => Ok(look_for(ctx, program, Ask::Version)),
            Target::Worker(worker) => Ok(match &worker.way {
                Way::Program(command) => {
                    let program = command.first().map(String::as_str).unwrap_or_default();
                    look_for(ctx, program, ask_of(worker.kind))
                }
                Way::Endpoint(endpoint) => look_at(ctx, worker, endpoint),
            }),
        }
    }
}

/// What a program that was found is asked.
enum Ask {
    /// Nothing: a reviewer of one's own need not know `--version`, and might begin to review.
    Nothing,
    /// Its version.
    Version,
    /// Its version, and the options that are passed to it.
    Flags(Flags),
}

fn ask_of(kind: WorkerKind) -> Ask {
    match kind {
        WorkerKind::Claude => Ask::Flags(CLAUDE),
        WorkerKind::Codex => Ask::Flags(CODEX),
        WorkerKind::Command | WorkerKind::Openai | WorkerKind::Anthropic => Ask::Nothing,
    }
}

/// Looks for a program and asks it what it may be asked.
fn look_for(ctx: &Context, program: &str, ask: Ask) -> Probed {
    let path = ctx.env.get("PATH").unwrap_or_default();
    let probed = |source: String, answer, fix| Probed { source, answer, models: Vec::new(), fix };
    let file = match probe::find(program, path, &ctx.folder) {
        Ok(file) => file,
        Err(why) => return probed(program.to_owned(), Err(why), PROGRAM_FIX),
    };
    let source = file.display().to_string();
    if let Ask::Nothing = ask {
        return probed(
            source,
            Ok("it is there and may be run; it was asked nothing".to_owned()),
            PROGRAM_FIX,
        );
    }
    if let Ask::Flags(flags) = ask {
        match listed(&file, path, flags) {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let why = format!("{} does not list {}", flags.help.join(" "), missing.join(", "));
                return probed(source, Err(why), AGENT_FIX);
            }
            Err(why) => return probed(source, Err(why), PROGRAM_FIX),
        }
    }
    probed(source, probe::version(&file, path, probe::VERSION_LIMIT), PROGRAM_FIX)
}

fn listed(file: &Path, path: &str, flags: Flags) -> std::result::Result<Vec<&'static str>, String> {
    probe::said(file, flags.help, path, probe::VERSION_LIMIT).map(|help| flags.missing(&help))
}

/// Asks an endpoint for its models.
fn look_at(ctx: &Context, worker: &Worker, endpoint: &http::Endpoint) -> Probed {
    let (source, key) = (endpoint.address.origin(), worker.key(ctx));
    let reached = match (&worker.key_env, &key) {
        (Some(variable), None) => Err(format!("variable {variable} is not set, and key_env names it")),
        _ => http::reach(endpoint, key.as_deref(), REACH_LIMIT),
    };
    let reached = reached.map(|reached| {
        let lacks = worker.model.as_ref().filter(|model| !reached.models.contains(model));
        let lacks = lacks.map_or_else(String::new, |model| format!("; {model} is not among them"));
        (format!("{}{lacks}", reached.said), reached.models)
    });
    match reached {
        Ok((said, models)) => Probed { source, answer: Ok(said), models, fix: ENDPOINT_FIX },
        Err(why) => Probed { source, answer: Err(why), models: Vec::new(), fix: ENDPOINT_FIX },
    }
}
