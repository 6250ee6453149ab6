//! `import`: a result file comes home, through the same intake and binding as any pasted answer.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ctx::{Context, get};
use crate::cli::input::file_or_stdin;
use crate::cli::output::{Done, Report};
use crate::cli::reply::{Brought, bind, bound_report};
use crate::error::{Error, Kind, Result};
use crate::model::handoff::Attempt;
use crate::model::hash::{Hash, canonical};
use crate::model::result::Imported;
use crate::model::state::State;
use crate::rules::answer::Bound;
use crate::rules::carry::{MAX_RETURN, Returned};

/// Take a result file home and bind it to its question
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf import result.json\n  nf import result.json -n   what would happen")]
pub struct ImportCommand {
    /// The result file, or - for standard input
    #[arg(value_name = "RESULT")]
    pub file: PathBuf,
}

bound_report! {
    /// An answer that was taken home and bound.
    ImportReport "import"
}

impl ImportCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of reading the file, of intake, binding and the store; `mismatched_references` for a result of
    /// another store or another attempt.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let bytes = file_or_stdin(ctx, Some(&self.file), MAX_RETURN)?;
        let returned = Returned::read(&bytes)?;
        returned.of_store(&opened.store.info().store_id)?;
        let answer = canonical(&returned.answer);
        let brought = Brought {
            command: "import",
            bytes: &answer,
            whole: (Hash::of(&bytes), bytes.len() as u64),
            file: Some(&returned),
            seen: None,
        };
        let answer = bind(ctx, &opened, &brought, ctx.global.dry_run)?;
        Done::written(answer, ImportReport)
    }
}

/// Refuses a result of an attempt that this store never opened, as one whose log was put back is.
///
/// # Errors
/// `unknown_id`.
pub fn known(file: &Returned, state: &State) -> Result<()> {
    let known = get::<Attempt>(state, &file.attempt);
    known.map(drop).map_err(|error| {
        error
            .because("the result file names this attempt, and the log does not have it")
            .fix("import it in the store that exported it; nf list attempt shows those of this one")
    })
}

/// Refuses a result file that names another attempt than its answer's nonce proves.
///
/// # Errors
/// `mismatched_references`.
pub fn same_attempt(file: &Returned, attempt: &Attempt) -> Result<()> {
    let named = (&file.attempt, &file.handoff, &file.job);
    if named == (&attempt.id, &attempt.handoff, &attempt.job) {
        return Ok(());
    }
    Err(Error::new(Kind::MismatchedReferences, "the result file names another attempt than its answer")
        .because(format!("the nonce is that of {}, the file names {}", attempt.id, file.attempt))
        .fix("carry the result file again, as it was written"))
}

/// Where an answer came in from, for its provenance.
pub fn imported(file: &Returned, hash: Hash) -> Imported {
    Imported { file: hash, export: file.export, pasted: file.pasted.clone(), nf: file.nf.clone() }
}
