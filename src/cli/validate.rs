//! `validate`: the thirteen checks of a stored result, run again from its bytes. Writes nothing.

use clap::Args;

use super::ctx::{Context, find, only};
use super::load;
use super::output::{Done, Report, checks};
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::id::{IdKind, ResultId};
use crate::model::result::{Standing, StoredResult};

/// Run a result's thirteen checks again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf validate x-8c1v")]
pub struct Validate {
    /// The result; may be left out while there is exactly one
    pub result: Option<String>,
}

/// The checks of a result.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ValidateReport {
    /// The result.
    pub result: ResultId,
    /// What it is good for.
    pub standing: Option<Standing>,
    /// All thirteen checks.
    pub checks: Vec<Check>,
}

impl Report for ValidateReport {
    const COMMAND: &'static str = "validate";

    fn answer(&self) -> String {
        let held = self.checks.iter().filter(|check| check.ok).count();
        let mut lines = checks(&self.checks);
        let standing = self.standing.map_or("never checked", Standing::word);
        lines.push(format!("{held} of {} checks; {} is {standing}", self.checks.len(), self.result));
        lines.join("\n")
    }

    fn failure(&self) -> Option<Error> {
        let failed = failed(&self.checks);
        (!failed.is_empty()).then(|| {
            Error::new(Kind::SemanticInvalid, format!("result {} no longer binds", self.result))
                .because(failed.join(", "))
                .fix(format!("nf show {}", self.result))
        })
    }
}

impl Validate {
    /// Runs the command.
    ///
    /// # Errors
    /// `unknown_id`; `damaged` where the stored bytes are not what was recorded.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let snapshot = opened.store.read()?;
        let state = &snapshot.state;
        let result: StoredResult = match &self.result {
            Some(text) => find(state, text)?,
            None => {
                let rows = state.of_kind(IdKind::ResultId, None).take(11);
                let all = rows.filter_map(|row| state.get(&row.id.parse().ok()?)).collect();
                only("result", all, |result: &StoredResult| result.id.to_string())
                    .map_err(|error| error.fix("nf validate RESULT"))?
            }
        };
        let evidence = load::evidence(&opened.store, state, result)?;
        let report = ValidateReport {
            result: evidence.result.id.clone(),
            standing: evidence.result.checked.as_ref().map(|checked| checked.standing),
            checks: evidence.checks(),
        };
        Ok(Done::of(&report).warned(snapshot.warnings))
    }
}
