//! `start` begins a session that runs, anew or where an ended one stopped.

use clap::Args;
use serde_json::json;

use super::ctx::{Context, find, get};
use super::load::declared;
use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Checkpoint};
use crate::model::id::{IdKind, Name};
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::resume::not_current;
use crate::rules::session::{Before, Stands, start, start_from};

/// Begin a session that runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf start --resource novel/pride --task review\n  \
    session=$(nf start --resource novel/pride --task review -q)\n  nf start --from s-4q2mk7ta0xwd")]
pub struct Start {
    /// The durable resource that is worked on, such as novel/pride
    #[arg(long, required_unless_present = "from")]
    pub resource: Option<Name>,
    /// The one task of the session, such as review
    #[arg(long, required_unless_present = "from")]
    pub task: Option<Name>,
    /// Begin where this stale, failed or terminated session stopped, or at this checkpoint's cursor
    #[arg(long, value_name = "SESSION|CHECKPOINT", conflicts_with_all = ["resource", "task"])]
    pub from: Option<String>,
}

/// A session that was begun.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Started(Stands);

impl Report for Started {
    const COMMAND: &'static str = "start";

    fn answer(&self) -> String {
        self.0.session.to_string()
    }

    fn news(&self) -> Vec<String> {
        let Stands { session, status, run, cursor, parent, .. } = &self.0;
        let run = run.as_ref().map_or_else(String::new, |run| format!(", run {run}"));
        let cursor = cursor.as_ref().map_or_else(String::new, |cursor| format!(", cursor {cursor}"));
        let from = parent.as_ref().map_or_else(String::new, |parent| format!(", from {parent}"));
        vec![format!("session {session} is {status}{run}{cursor}{from}")]
    }

    fn next(&self) -> Option<String> {
        Some("nf freeze FILE".to_owned())
    }
}

impl Start {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request =
            ctx.request("start", json!({"resource": self.resource, "task": self.task, "from": self.from}));
        let answer = opened.transact(
            &request,
            |_| declared(&opened, &Bindings::default()),
            |turn, declared: &Bindings| match (&self.resource, &self.task, &self.from) {
                (Some(resource), Some(task), None) => {
                    start(turn, resource.clone(), task.clone(), declared.clone())
                }
                (_, _, Some(from)) => {
                    let before = before(turn.state, from)?;
                    ctx.expect_version(&before.session)?;
                    match ctx.expected_run(turn.state)? {
                        Some(run) if before.session.run.as_ref() != Some(&run) => {
                            return Err(not_current(&before.session, &run));
                        }
                        _ => {}
                    }
                    start_from(turn, before, declared.clone())
                }
                _ => Err(Error::new(Kind::Usage, "start needs --resource and --task, or --from")),
            },
        )?;
        Done::written(answer, Started)
    }
}

/// The session that is left, and where it stopped.
fn before(state: &State, from: &str) -> Result<Before> {
    let checkpoint = match super::ctx::kind_of(from)? {
        IdKind::CheckpointId => Some(find::<Checkpoint>(state, from)?),
        _ => None,
    };
    let session: Session = match &checkpoint {
        Some(checkpoint) => get(state, &checkpoint.session)?,
        None => find(state, from)?,
    };
    let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
    let outstanding = state.outstanding(&session.id);
    Ok(Before { session, run, cursor: checkpoint.map(|checkpoint| checkpoint.cursor), outstanding })
}
