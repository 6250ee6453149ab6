//! The flags that every command takes. Says what they are called and what they default to; what they do is
//! the context's affair.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::model::id::Name;
use crate::store::LOCK_TIMEOUT_MS;

/// Flags that every command takes, with what counts where one was not given.
#[derive(Debug, Clone)]
pub struct Global {
    /// The folder to change to first.
    pub folder: Option<PathBuf>,
    /// Whether one JSON document is printed.
    pub json: bool,
    /// Whether nothing is printed on stderr but errors.
    pub quiet: bool,
    /// When colour is used: auto, always or never.
    pub color: String,
    /// Whether nothing is recorded.
    pub dry_run: bool,
    /// The session to act for.
    pub session: Option<String>,
    /// The run to act for.
    pub run: Option<String>,
    /// The attempt's nonce.
    pub nonce: Option<String>,
    /// The version that the session must have.
    pub expect_version: Option<u64>,
    /// The operation key.
    pub op: Option<Name>,
    /// How long to wait for the store lock, in milliseconds.
    pub lock_timeout: u64,
    /// Whether a file system is used that is not known to keep locks and syncs.
    pub allow_fs: bool,
    /// Whether a damaged store is read as far as it is undamaged.
    pub allow_damaged: bool,
}

/// The flags as they were given. None of them has a default: clap copies what has a value from each level of
/// the command line to the next, and for thirteen flags that takes longer than the rest of its work.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Given {
    /// Change to this folder first
    #[arg(short = 'C', value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    /// Print one JSON document on stdout, also on failure
    #[arg(long, global = true, num_args = 0, default_missing_value = "true")]
    json: Option<bool>,
    /// Print nothing on stderr but errors
    #[arg(short, long, global = true, num_args = 0, default_missing_value = "true")]
    quiet: Option<bool>,
    /// Use colour [default: auto]
    #[arg(long, value_name = "WHEN", global = true, value_parser = ["auto", "always", "never"])]
    color: Option<String>,
    /// Show the events that would be recorded, and record nothing
    #[arg(short = 'n', long, global = true, num_args = 0, default_missing_value = "true")]
    dry_run: Option<bool>,
    /// The session to act for (id or unique beginning)
    #[arg(long, value_name = "ID", global = true)]
    session: Option<String>,
    /// The run to act for; refused when it is no longer the current one
    #[arg(long, value_name = "ID", global = true)]
    run: Option<String>,
    /// The attempt's nonce, where the reply does not carry it
    #[arg(long, value_name = "NONCE", global = true)]
    nonce: Option<String>,
    /// Refuse if the session is at another version
    #[arg(long, value_name = "N", global = true)]
    expect_version: Option<u64>,
    /// Operation key: the same key and request get the same answer, and nothing is written twice
    #[arg(long, value_name = "KEY", global = true, value_parser = Name::from_str)]
    op: Option<Name>,
    /// How long to wait for the store lock [default: 10s]
    #[arg(long, value_name = "DURATION", global = true)]
    #[arg(value_parser = crate::model::time::parse_millis)]
    lock_timeout: Option<u64>,
    /// Use a file system that is not known to keep locks and syncs
    #[arg(long, global = true, num_args = 0, default_missing_value = "true")]
    allow_fs: Option<bool>,
    /// Read what is undamaged of a damaged store
    #[arg(long, global = true, num_args = 0, default_missing_value = "true")]
    allow_damaged: Option<bool>,
}

impl Global {
    /// Adds the flags to a command.
    pub fn augment_args(command: Command) -> Command {
        Given::augment_args(command)
    }

    /// What the command line says of them.
    ///
    /// # Errors
    /// None where the command line was read by a command that has these flags.
    pub fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Given::from_arg_matches(matches)?;
        Ok(Self {
            folder: given.folder,
            json: given.json.is_some(),
            quiet: given.quiet.is_some(),
            color: given.color.unwrap_or_else(|| "auto".to_owned()),
            dry_run: given.dry_run.is_some(),
            session: given.session,
            run: given.run,
            nonce: given.nonce,
            expect_version: given.expect_version,
            op: given.op,
            lock_timeout: given.lock_timeout.unwrap_or(LOCK_TIMEOUT_MS),
            allow_fs: given.allow_fs.is_some(),
            allow_damaged: given.allow_damaged.is_some(),
        })
    }
}
