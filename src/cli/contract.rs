//! `contract list|check` and the packs of the store: questions that are asked again and again.

use std::path::PathBuf;

use clap::Subcommand;

use super::ctx::Context;
use super::input::file_or_stdin;
use super::output::{Done, Report, table};
use crate::error::{Error, Kind, Result};
use crate::model::yaml;
use crate::rules::jobfile::{Contract, contract};
use crate::rules::members::{names_nothing, nearest};
use crate::store::Store;

/// List or check contract packs
#[derive(Debug, Subcommand)]
pub enum ContractCommand {
    /// List the packs in .novelforge/contracts/
    #[command(after_help = "Example:\n  nf contract list")]
    List,
    /// Check a pack file without storing anything
    #[command(after_help = "Example:\n  nf contract check reader.yaml")]
    Check {
        /// The pack (YAML or JSON), or - for standard input
        file: PathBuf,
    },
}

/// A pack in a list.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Pack {
    /// `id@version`.
    pub contract: String,
    /// The kind of question.
    pub kind: String,
    /// What it is for.
    pub purpose: String,
}

impl Pack {
    fn of(pack: &Contract) -> Self {
        Self { contract: pack.reference(), kind: pack.kind.to_string(), purpose: pack.purpose.clone() }
    }
}

/// The packs of the store.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Packs {
    /// The packs, by file name.
    pub packs: Vec<Pack>,
}

impl Report for Packs {
    const COMMAND: &'static str = "contract.list";

    fn answer(&self) -> String {
        if self.packs.is_empty() {
            return String::new();
        }
        let rows = self
            .packs
            .iter()
            .map(|pack| vec![pack.contract.clone(), pack.kind.clone(), pack.purpose.clone()]);
        table(&["CONTRACT", "KIND", "PURPOSE"], rows.collect())
    }

    fn news(&self) -> Vec<String> {
        match self.packs.len() {
            0 => vec!["no contract packs; put YAML files into .novelforge/contracts/".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// A sound pack.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Sound {
    /// The pack.
    pub pack: Pack,
}

impl Report for Sound {
    const COMMAND: &'static str = "contract.check";

    fn answer(&self) -> String {
        self.pack.contract.clone()
    }

    fn next(&self) -> Option<String> {
        Some("copy the file into .novelforge/contracts/ and name the contract in a job file".to_owned())
    }
}

/// Every pack of the store, by file name.
///
/// # Errors
/// `bad_input` for a file that is no pack, or two that have one name.
pub fn packs(store: &Store) -> Result<Vec<Contract>> {
    let mut all: Vec<Contract> = Vec::new();
    for (file, bytes) in store.contract_files()? {
        let value = yaml::parse_either(&bytes).map_err(|fault| fault.into_error(&file))?;
        let pack = contract(&value).map_err(names_nothing).map_err(|mut error| {
            error.message = format!("{file}: {}", error.message);
            error
        })?;
        if all.iter().any(|other| other.reference() == pack.reference()) {
            return Err(Error::new(
                Kind::BadInput,
                format!("{file}: {} stands twice in contracts/", pack.reference()),
            ));
        }
        all.push(pack);
    }
    Ok(all)
}

/// The pack that a job file names as `id@version`.
///
/// # Errors
/// `bad_input` with the nearest one.
pub fn find_contract(store: &Store, reference: &str) -> Result<Contract> {
    let all = packs(store)?;
    let names: Vec<String> = all.iter().map(Contract::reference).collect();
    all.into_iter().find(|pack| pack.reference() == reference).ok_or_else(|| {
        let shown: String = reference.chars().take(80).collect();
        let error = Error::new(Kind::BadInput, format!("no contract {shown} in .novelforge/contracts/"))
            .fix("nf contract list");
        match nearest(reference, names.iter().map(String::as_str)) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error,
        }
    })
}

impl ContractCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// `bad_input` with file and pointer.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            ContractCommand::List => {
                let opened = ctx.open()?;
                let packs = packs(&opened.store)?.iter().map(Pack::of).collect();
                Ok(Done::of(&Packs { packs }))
            }
            ContractCommand::Check { file } => {
                let bytes = file_or_stdin(ctx, Some(&file), 1024 * 1024)?;
                let value = yaml::parse_either(&bytes).map_err(|fault| fault.into_error(file.display()))?;
                Ok(Done::of(&Sound { pack: Pack::of(&contract(&value).map_err(names_nothing)?) }))
            }
        }
    }
}
