//! The command line: parse, gather facts, ask a rule, report. One file per command; the only layer that
//! knows both the store and the rules.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, FromArgMatches, Subcommand};

use crate::error::{Error, Kind, Result};
use crate::model::time::Source;
use crate::store::Doubt;

mod bar;
mod capability;
mod carry;
mod checkpoint;
mod consume;
mod contract;
mod ctx;
mod doctor;
mod effect;
pub mod env;
mod event;
mod freeze;
mod global;
mod handoff;
mod history;
mod init;
mod input;
mod list;
mod load;
mod log;
#[cfg(feature = "mcp")]
mod mcp;
mod misuse;
mod output;
mod packet;
mod reply;
mod resume;
mod route;
pub mod schemas;
mod secret;
mod served;
mod session;
mod shell;
mod show;
mod start;
mod status;
mod validate;
mod work;
mod workers;

use ctx::Context;
use env::Env;
use global::Global;
use output::Done;

/// What the process brings: made in `main`, or by a test.
pub struct Edge {
    /// The command line, the program's name first.
    pub arguments: Vec<OsString>,
    /// The variables of [`env::VARIABLES`] that are set.
    pub variables: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
    /// This program's own file.
    pub executable: Option<PathBuf>,
    /// Any other variable, by its name: those that a child may have, and those that the user's settings or a
    /// flag name: a key or a webhook's secret, looked up where it is used and kept nowhere.
    pub lookup: fn(&str) -> Option<String>,
    /// Time and randomness.
    pub source: Source,
    /// The user's config folder of this program, where the platform has one.
    pub config: fn() -> Option<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes:
   0  done; also a valid negative verdict and an identical duplicate
   1  failed: input or output error, unknown id, unreadable input
   2  usage
   3  refused by rule: illegal transition, lease lost, already judged, authority denied
   4  conflict, hard stop: same identity, other content
   5  semantic_invalid: the reply fails intake or binding
   6  execution_unavailable
   7  execution_failed
   8  pending: nothing to claim, reply not in yet
   9  stale or uncertain: a resume or effect check failed
  10  verdict is not a passing one; only with --exit-verdict
  11  store damaged: nf doctor says what and what to do
  12  not durable: a sync failed; may or may not be recorded
  75  busy: the store lock was not had in time; try again";

const DAILY_PATH: &str = "The daily path:\n  nf init; nf start --resource R --task T; nf freeze FILE; \
    nf packet; nf reply; nf consume --as GATE; nf resume";

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Start(start::Start),
    Freeze(freeze::Freeze),
    Packet(packet::Packet),
    Reply(reply::ReplyCommand),
    Consume(consume::Consume),
    Resume(resume::ResumeCommand),
    Status(status::StatusCommand),
    Show(show::Show),
    List(list::List),
    Log(log::Log),
    Validate(validate::Validate),
    Verify(doctor::Verify),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Session(session::SessionCommand),
    #[command(subcommand)]
    Run(session::RunCommand),
    #[command(subcommand)]
    Checkpoint(checkpoint::CheckpointCommand),
    Route(route::RouteCommand),
    #[command(subcommand)]
    Capability(capability::CapabilityCommand),
    #[command(subcommand)]
    Event(event::EventCommand),
    #[command(subcommand)]
    Effect(effect::EffectCommand),
    #[command(subcommand)]
    Handoff(handoff::HandoffCommand),
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    Work(work::Work),
    Export(carry::export::ExportCommand),
    Import(carry::import::ImportCommand),
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpCommand),
    Completions(shell::Completions),
    Man(shell::Man),
    /// Become another program that does not outlive the process that started this one
    #[command(hide = true)]
    Keep {
        /// The process that started this one
        parent: u32,
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Try to take a lock that the parent holds
    #[command(hide = true)]
    LockProbe {
        /// The lock file
        path: PathBuf,
    },
}

/// The whole command line, with exit codes and environment in its help.
pub fn command() -> clap::Command {
    whole(root())
}

/// The program with every command.
fn whole(root: clap::Command) -> clap::Command {
    let help = format!("{EXIT_CODES}\n\n{}", Env::help());
    Command::augment_subcommands(root).after_help(DAILY_PATH).after_long_help(help)
}

/// The program without a command: its name and the global flags.
fn root() -> clap::Command {
    Global::augment_args(clap::Command::new("nf"))
        .about("A durable, checkable record of long AI and human work")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// The command line that these arguments need. Where one of them names the command, the others are left out:
/// making them all takes longer than most commands do.
fn command_for(arguments: &[OsString]) -> clap::Command {
    let root = root();
    match misuse::word(&root, arguments).and_then(named) {
        Some(named) => root.subcommand(named),
        None => whole(root),
    }
}

/// One command alone, as it stands among all. A word that is not here is looked for among all.
fn named(word: &str) -> Option<clap::Command> {
    fn alone<T: Args>(word: &'static str) -> clap::Command {
        T::augment_args(clap::Command::new(word))
    }
    fn group<T: Subcommand>(word: &'static str) -> clap::Command {
        let group = clap::Command::new(word).subcommand_required(true).arg_required_else_help(true);
        T::augment_subcommands(group)
    }
    Some(match word {
        "init" => alone::<init::Init>("init"),
        "start" => alone::<start::Start>("start"),
        "freeze" => alone::<freeze::Freeze>("freeze"),
        "packet" => alone::<packet::Packet>("packet"),
        "reply" => alone::<reply::ReplyCommand>("reply"),
        "consume" => alone::<consume::Consume>("consume"),
        "resume" => alone::<resume::ResumeCommand>("resume"),
        "status" => alone::<status::StatusCommand>("status"),
        "show" => alone::<show::Show>("show"),
        "list" => alone::<list::List>("list"),
        "log" => alone::<log::Log>("log"),
        "validate" => alone::<validate::Validate>("validate"),
        "verify" => alone::<doctor::Verify>("verify"),
        "doctor" => alone::<doctor::Doctor>("doctor"),
        "session" => group::<session::SessionCommand>("session"),
        "run" => group::<session::RunCommand>("run"),
        "checkpoint" => group::<checkpoint::CheckpointCommand>("checkpoint"),
        "route" => alone::<route::RouteCommand>("route"),
        "capability" => group::<capability::CapabilityCommand>("capability"),
        "event" => group::<event::EventCommand>("event"),
        "effect" => group::<effect::EffectCommand>("effect"),
        "handoff" => group::<handoff::HandoffCommand>("handoff"),
        "contract" => group::<contract::ContractCommand>("contract"),
        "work" => alone::<work::Work>("work"),
        "export" => alone::<carry::export::ExportCommand>("export"),
        "import" => alone::<carry::import::ImportCommand>("import"),
        #[cfg(feature = "mcp")]
        "mcp" => alone::<mcp::McpCommand>("mcp"),
        "completions" => alone::<shell::Completions>("completions"),
        "man" => alone::<shell::Man>("man"),
        _ => return None,
    })
}

/// Runs one command and gives the exit code of the process.
pub fn run(edge: Edge) -> u8 {
    output::ended(answered(edge))
}

fn answered(edge: Edge) -> u8 {
    let json = edge.arguments.iter().any(|argument| argument == "--json");
    // The process ends after one command: taking the command line apart again would be time for nothing.
    let mut line = std::mem::ManuallyDrop::new(command_for(&edge.arguments));
    let parsed = line.try_get_matches_from_mut(&edge.arguments).and_then(|matches| {
        let given = Global::from_arg_matches(&matches)?;
        Ok((schema_of(&matches), given, Command::from_arg_matches(&matches)?))
    });
    let (schema, global, command) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return misuse::told(json, &error, &line, &edge.arguments),
    };
    if let Command::Keep { parent, command } = &command {
        return crate::adapters::child::keep(*parent, command);
    }
    output::set_color(&global.color);
    let done = prepare(edge, &global).and_then(|ctx| {
        let _span = tracing::debug_span!("command", schema).entered();
        let done = dispatch(command, &ctx);
        // What rests on rows that nothing bears out is no answer, and no refusal either.
        ctx.doubt.check().and(done)
    });
    match done {
        Ok(done) => output::done(&global, done),
        Err(error) => {
            let error = misuse::with_help(error, &schema);
            output::failed(global.json, global.quiet, schema, &error)
        }
    }
}

/// The schema's name from the words of the command.
fn schema_of(matches: &clap::ArgMatches) -> String {
    let mut words = Vec::new();
    let mut here = matches;
    while let Some((word, inner)) = here.subcommand() {
        words.push(word.to_owned());
        here = inner;
    }
    output::schema_name(&words.join("."))
}

fn prepare(edge: Edge, global: &Global) -> Result<Context> {
    let env = Env(edge.variables);
    diagnostics(env.get("NF_LOG"))?;
    let mut global = global.clone();
    if global.op.is_none() {
        let parse =
            |text: &str| text.parse().map_err(|bad: String| Error::new(Kind::Usage, format!("NF_OP: {bad}")));
        global.op = env.get("NF_OP").map(parse).transpose()?;
    }
    let folder = match &global.folder {
        Some(folder) => edge.folder.join(folder),
        None => edge.folder,
    };
    if !input::is_folder(&folder) {
        return Err(Error::new(Kind::Io, format!("{} is no folder", folder.display()))
            .fix("give -C a folder that is there"));
    }
    let Edge { executable, lookup, config, .. } = edge;
    let source = Arc::new(edge.source);
    let (doubt, served, told) = (Doubt::default(), None, None);
    Ok(Context { global, env, folder, executable, lookup, source, config, doubt, served, told })
}

/// Diagnostics go to stderr and only there; they are never part of the record.
fn diagnostics(level: Option<&str>) -> Result<()> {
    let Some(level) = level else { return Ok(()) };
    let level: tracing::Level = level.parse().map_err(|_| {
        Error::new(Kind::Usage, format!("NF_LOG is {level:?}"))
            .because("want error, warn, info, debug or trace")
    })?;
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).without_time().finish();
    // A second command in one process keeps the first one's diagnostics.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

fn dispatch(command: Command, ctx: &Context) -> Result<Done> {
    match command {
        Command::Init(command) => command.run(ctx),
        Command::Start(command) => command.run(ctx),
        Command::Freeze(command) => command.run(ctx),
        Command::Packet(command) => command.run(ctx),
        Command::Reply(command) => command.run(ctx),
        Command::Consume(command) => command.run(ctx),
        Command::Resume(command) => command.run(ctx),
        Command::Status(command) => command.run(ctx),
        Command::Show(command) => command.run(ctx),
        Command::List(command) => command.run(ctx),
        Command::Log(command) => command.run(ctx),
        Command::Validate(command) => command.run(ctx),
        Command::Verify(command) => command.run(ctx),
        Command::Doctor(command) => command.run(ctx),
        Command::Session(command) => command.run(ctx),
        Command::Run(command) => command.run(ctx),
        Command::Checkpoint(command) => command.run(ctx),
        Command::Route(command) => command.run(ctx),
        Command::Capability(command) => command.run(ctx),
        Command::Event(command) => command.run(ctx),
        Command::Effect(command) => command.run(ctx),
        Command::Handoff(command) => command.run(ctx),
        Command::Contract(command) => command.run(ctx),
        Command::Work(command) => command.run(ctx),
        Command::Export(command) => command.run(ctx),
        Command::Import(command) => command.run(ctx),
        #[cfg(feature = "mcp")]
        Command::Mcp(command) => command.run(ctx),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::LockProbe { path } => shell::probe(&path),
        Command::Keep { .. } => Err(Error::new(Kind::Usage, "keep is run by nf work alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_exit_code() {
        for kind in Kind::ALL {
            let code = format!("\n{:>4}  ", kind.exit());
            assert!(EXIT_CODES.contains(&code), "{kind} exits {}", kind.exit());
        }
    }

    #[test]
    fn a_command_made_alone_is_the_one_among_all() {
        for among in command().get_subcommands().filter(|among| !among.is_hide_set()) {
            let word = among.get_name();
            let alone = named(word).unwrap_or_else(|| panic!("{word} is not in the table"));
            let shown = |command: &clap::Command| format!("{:?}", command.clone().display_order(0));
            assert_eq!(shown(&alone), shown(among), "{word}");
        }
        assert!(named("nothing").is_none());
    }
}
