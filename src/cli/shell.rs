//! `completions` and `man`: what a shell and a reader need, made from the command line itself.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf completions bash > ~/.local/share/bash-completion/completions/nf")]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell
    pub shell: Shell,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf man > nf.1 && man ./nf.1")]
pub struct Man {}

/// A completion script.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct CompletionsReport {
    /// The script.
    pub text: String,
}

/// The manual page.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ManReport {
    /// The page, in roff.
    pub text: String,
}

impl Report for CompletionsReport {
    const COMMAND: &'static str = "completions";

    fn answer(&self) -> String {
        self.text.clone()
    }

    fn is_raw(&self) -> bool {
        true
    }
}

impl Report for ManReport {
    const COMMAND: &'static str = "man";

    fn answer(&self) -> String {
        self.text.clone()
    }

    fn is_raw(&self) -> bool {
        true
    }
}

impl Completions {
    /// Runs the command.
    ///
    /// # Errors
    /// None; the signature is that of every command.
    pub fn run(self) -> Result<Done> {
        let mut bytes = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "nf", &mut bytes);
        Ok(Done::of(&CompletionsReport { text: String::from_utf8_lossy(&bytes).into_owned() }))
    }
}

impl Man {
    /// Runs the command.
    ///
    /// # Errors
    /// `io`, where the page cannot be rendered.
    pub fn run(self) -> Result<Done> {
        let mut bytes = Vec::new();
        let page = clap_mangen::Man::new(super::Cli::command());
        page.render(&mut bytes)
            .map_err(|error| Error::new(Kind::Io, "the manual page").because(error.to_string()))?;
        Ok(Done::of(&ManReport { text: String::from_utf8_lossy(&bytes).into_owned() }))
    }
}

/// Whether the lock that the parent holds could be taken.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ProbeReport {
    /// Whether it could: then it protects nobody.
    pub taken: bool,
}

impl Report for ProbeReport {
    const COMMAND: &'static str = "lock-probe";

    fn answer(&self) -> String {
        String::new()
    }

    fn exit(&self) -> u8 {
        u8::from(self.taken)
    }
}

/// The hidden child of the lock's self-check: exit 0 where the lock could not be taken.
///
/// # Errors
/// `io`.
pub fn probe(path: &std::path::Path) -> Result<Done> {
    Ok(Done::of(&ProbeReport { taken: crate::store::lock::probe(path)? }))
}
