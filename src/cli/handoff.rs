//! `handoff …`: work that goes through the queue. A session opens it and may take it back; a worker claims
//! it, holds it and gives its answer.

use clap::Subcommand;

use super::ctx::Context;
use super::output::Done;
use crate::error::Result;

pub mod claim;
pub mod hold;
pub mod open;
mod task;

/// Queue work, claim it, hold it and answer it
#[derive(Debug, Subcommand)]
pub enum HandoffCommand {
    Open(open::Open),
    Claim(claim::Claim),
    Renew(hold::Renew),
    Release(hold::Release),
    Complete(super::reply::Complete),
    Fail(hold::Fail),
    Cancel(open::Cancel),
}

impl HandoffCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            HandoffCommand::Open(command) => command.run(ctx),
            HandoffCommand::Claim(command) => command.run(ctx),
            HandoffCommand::Renew(command) => command.run(ctx),
            HandoffCommand::Release(command) => command.run(ctx),
            HandoffCommand::Complete(command) => command.run(ctx),
            HandoffCommand::Fail(command) => command.run(ctx),
            HandoffCommand::Cancel(command) => command.run(ctx),
        }
    }
}
