//! `session new|move` and `run step|finish`: the lifecycle by hand.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::ctx::{Context, find};
use super::load::declared;
use super::output::{Done, Report};
use crate::error::Result;
use crate::model::checkpoint::Bindings;
use crate::model::id::Name;
use crate::model::session::{Host, MemoryPolicy, ResumePolicy, Role, Session, Status};
use crate::rules::lifecycle::{Course, same_task, way};
use crate::rules::session::{Spec, Stands, finish, move_to, new, step};
use crate::store::Gathered;

/// Make or move a session by hand
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Make a session that does not run yet
    #[command(after_help = "Example:\n  nf session new --resource novel/pride --task review --role writer")]
    New(NewSession),
    /// Move a session to another state
    #[command(after_help = "Example:\n  nf session move s-4q2mk7ta0xwd stale")]
    Move {
        /// The session (id or unique beginning)
        #[arg(id = "which", value_name = "SESSION")]
        session: String,
        /// created, running, idle, awaiting_user, awaiting_external, completed, failed, terminated or stale
        to: Status,
    },
}

/// What a new session is to be.
#[derive(Debug, Args)]
pub struct NewSession {
    /// The durable resource that is worked on
    #[arg(long)]
    pub resource: Name,
    /// Its one task mode
    #[arg(long)]
    pub task: Name,
    /// manager, writer, specialist, semantic_reviewer, human_reviewer or other:NAME
    #[arg(long, default_value = "manager")]
    pub role: Role,
    /// The project, where it is named apart from the resource
    #[arg(long)]
    pub project: Option<Name>,
    /// none, bounded, session, external or checkpoint_only; reviewers: none (their default) or bounded
    #[arg(long)]
    pub memory: Option<MemoryPolicy>,
    /// revalidate or forbidden
    #[arg(long, default_value = "revalidate")]
    pub resume_policy: ResumePolicy,
    /// The session it comes from
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// chat, local_agent, provider_api, local_model, mcp, service, ci, shell or human
    #[arg(long, default_value = "shell")]
    pub host: Host,
    /// The provider's own id: data, never authority
    #[arg(long)]
    pub native: Option<String>,
}

/// Move or end the current run
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Move the cursor of the current run
    #[command(after_help = "Example:\n  nf run step --cursor ch02/draft")]
    Step {
        /// The workflow step
        #[arg(long)]
        cursor: Name,
        /// Refuse if the session has another task
        #[arg(long)]
        task: Option<Name>,
    },
    /// End the current run; its session becomes idle or failed
    #[command(after_help = "Example:\n  nf run finish --status completed")]
    Finish {
        /// completed or failed
        #[arg(long)]
        status: Ending,
    },
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ending {
    /// Well; the session becomes idle.
    Completed,
    /// In failure; the session becomes failed.
    Failed,
}

macro_rules! stands_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Stands);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.session.to_string()
            }

            fn news(&self) -> Vec<String> {
                let Stands { session, status, version, cursor, .. } = &self.0;
                let at = cursor.as_ref().map_or_else(String::new, |cursor| format!(", cursor {cursor}"));
                vec![format!("session {session} is {status} (version {version}){at}")]
            }

            fn next(&self) -> Option<String> {
                Some(way(&self.0.session, self.0.status))
            }
        }
    };
}

stands_report! {
    /// A session that was made.
    Made "session.new"
}
stands_report! {
    /// A session that was moved.
    Moved "session.move"
}
stands_report! {
    /// A run whose cursor moved.
    Stepped "run.step"
}
stands_report! {
    /// A run that was ended.
    Finished "run.finish"
}

impl SessionCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            SessionCommand::New(spec) => spec.run(ctx),
            SessionCommand::Move { session, to } => {
                let opened = ctx.open()?;
                let request = ctx.request("session move", json!({"session_id": session, "to": to}));
                let answer = opened.transact(
                    &request,
                    |_| match to {
                        Status::Running => declared(&opened, &Bindings::default()),
                        _ => Ok(Gathered::of(Bindings::default())),
                    },
                    |turn, declared: &Bindings| {
                        let session: Session = find(turn.state, &session)?;
                        let run = ctx.current_run(turn.state, &session)?;
                        let course = Course::new(session, run);
                        move_to(turn, course, to, ctx.global.expect_version, declared.clone())
                    },
                )?;
                Done::written(answer, Moved)
            }
        }
    }
}

impl NewSession {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request = ctx.request(
            "session new",
            json!({"resource": self.resource, "task": self.task, "role": self.role, "project": self.project,
                "memory": self.memory, "resume_policy": self.resume_policy, "parent": self.parent,
                "host": self.host, "native": self.native}),
        );
        let answer = opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| {
                let reviewer = matches!(self.role, Role::SemanticReviewer | Role::HumanReviewer);
                let memory = if reviewer { MemoryPolicy::None } else { MemoryPolicy::Session };
                let parent = match &self.parent {
                    Some(text) => Some(find::<Session>(turn.state, text)?.id),
                    None => None,
                };
                let spec = Spec {
                    resource: self.resource.clone(),
                    project: self.project.clone(),
                    role: self.role.clone(),
                    task_mode: self.task.clone(),
                    memory_policy: self.memory.unwrap_or(memory),
                    resume_policy: self.resume_policy,
                    parent,
                    native: self.native.clone(),
                    host: self.host,
                    worker_of: None,
                };
                new(turn, spec)
            },
        )?;
        Done::written(answer, Made)
    }
}

impl RunCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let expected = ctx.global.expect_version;
        match self {
            RunCommand::Step { cursor, task } => {
                let request =
                    ctx.request("run step", json!({"cursor": cursor, "task": task, "run": ctx.global.run}));
                let answer = opened.transact(
                    &request,
                    |_| Ok(Gathered::of(())),
                    |turn, ()| {
                        let session = ctx.session(turn.state)?;
                        if let Some(task) = &task {
                            same_task(&session, task)?;
                        }
                        let run = ctx.need_run(turn.state, &session)?;
                        step(Course::new(session, None), run, cursor.clone(), expected)
                    },
                )?;
                Done::written(answer, Stepped)
            }
            RunCommand::Finish { status } => {
                let failed = status == Ending::Failed;
                let request = ctx.request("run finish", json!({"failed": failed, "run": ctx.global.run}));
                let answer = opened.transact(
                    &request,
                    |_| Ok(Gathered::of(())),
                    |turn, ()| {
                        let session = ctx.session(turn.state)?;
                        let run = ctx.current_run(turn.state, &session)?;
                        finish(Course::new(session, run), failed, expected)
                    },
                )?;
                Done::written(answer, Finished)
            }
        }
    }
}
