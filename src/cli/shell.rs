//! `completions` and `man`: what a shell and a reader need, made from the command line itself.

use clap::Args;
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
        clap_complete::generate(self.shell, &mut super::command(), "nf", &mut bytes);
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
        let page = clap_mangen::Man::new(super::command());
        page.render(&mut bytes)
            .map_err(|error| Error::new(Kind::Io, "the manual page").because(error.to_string()))?;
        let mut whole = super::command();
        whole.build();
        bytes.extend_from_slice(b".SH COMMANDS\n");
        commands(&whole, "nf", &mut bytes);
        Ok(Done::of(&ManReport { text: String::from_utf8_lossy(&bytes).into_owned() }))
    }
}

/// The long help of every command, as it is printed, each under its words.
fn commands(command: &clap::Command, words: &str, out: &mut Vec<u8>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let words = format!("{words} {}", inner.get_name());
        if inner.has_subcommands() {
            commands(inner, &words, out);
            continue;
        }
        let help = inner.clone().render_long_help().to_string();
        // In roff a backslash escapes, and a line that begins with a dot or a quote is a request.
        let lines = help.lines().map(|line| line.replace('\\', "\\e"));
        let safe = lines.map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line });
        let text = safe.collect::<Vec<_>>().join("\n");
        out.extend_from_slice(format!(".SS {words}\n.nf\n{text}\n.fi\n").as_bytes());
    }
}

/// The lock that the parent holds could not be taken.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ProbeReport {}

impl Report for ProbeReport {
    const COMMAND: &'static str = "lock-probe";

    fn answer(&self) -> String {
        String::new()
    }
}

/// The hidden child of the lock's self-check: exit 0 where the lock could not be taken.
///
/// # Errors
/// `io`, exit 1, where it could: then it protects nobody.
pub fn probe(path: &std::path::Path) -> Result<Done> {
    if crate::store::lock::probe(path)? {
        return Err(Error::new(Kind::Io, "the lock could be taken while another process holds it"));
    }
    Ok(Done::of(&ProbeReport {}))
}
