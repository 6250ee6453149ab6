//! The flags that every command takes. Says what they are called and what they default to; what they do is
//! the context's affair.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::model::id::Name;

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Change to this folder first
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub folder: Option<PathBuf>,
    /// Print one JSON document on stdout, also on failure
    #[arg(long, global = true)]
    pub json: bool,
    /// Print nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    #[arg(value_parser = ["auto", "always", "never"])]
    pub color: String,
    /// Show the events that would be recorded, and record nothing
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// The session to act for (id or unique beginning)
    #[arg(long, value_name = "ID", global = true)]
    pub session: Option<String>,
    /// The run to act for; refused when it is no longer the current one
    #[arg(long, value_name = "ID", global = true)]
    pub run: Option<String>,
    /// The attempt's nonce, where the reply does not carry it
    #[arg(long, value_name = "NONCE", global = true)]
    pub nonce: Option<String>,
    /// Refuse if the session is at another version
    #[arg(long, value_name = "N", global = true)]
    pub expect_version: Option<u64>,
    /// Operation key: the same key and request get the same answer, and nothing is written twice
    #[arg(long, value_name = "KEY", global = true, value_parser = Name::from_str)]
    pub op: Option<Name>,
    /// How long to wait for the store lock
    #[arg(long, value_name = "DURATION", default_value = "10s", global = true)]
    #[arg(value_parser = crate::model::time::parse_millis)]
    pub lock_timeout: u64,
    /// Use a file system that is not known to keep locks and syncs
    #[arg(long, global = true)]
    pub allow_fs: bool,
    /// Read what is undamaged of a damaged store
    #[arg(long, global = true)]
    pub allow_damaged: bool,
}
