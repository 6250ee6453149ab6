//! `checkpoint save` binds files by hand, each with the hash that it has now.

use std::str::FromStr;

use clap::{Args, Subcommand};
use serde_json::json;

use super::ctx::{Context, Opened};
use super::input::{MAX_BOUND, Reader, config, named_path, split_pointer};
use super::load;
use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{
    BindingKind, Bindings, BoundApproval, BoundArtifact, BoundAuthority, BoundCompatibility, Boundary,
};
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::state::State;
use crate::model::time::Time;
use crate::rules::checkpoint::{carry, rebind};
use crate::rules::lifecycle::Course;
use crate::rules::session::{SavedPoint, save};
use crate::store::Gathered;

/// Keep a point to resume from
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// Bind files with the hashes they have now
    #[command(after_help = "Example:\n  nf checkpoint save --boundary before_settlement --cursor settle \
        --artifact chapter=manuscript/ch01.md --authority canon=canon/bible.md \\\n    \
        --approval editor=approvals/ch01.txt,expires=2027-01-31T00:00:00Z")]
    Save(Save),
}

/// What a checkpoint binds.
#[derive(Debug, Args)]
pub struct Save {
    /// context_freeze, candidate_frozen, user_wait, external_wait, before_write, result_bound,
    /// before_settlement, before_long_work or other
    #[arg(long)]
    pub boundary: Boundary,
    /// Move the cursor here first
    #[arg(long)]
    pub cursor: Option<Name>,
    /// A text that must not change; with :context a changed one is listed for re-reading
    #[arg(long = "artifact", value_name = "NAME=PATH[:context]")]
    pub artifacts: Vec<String>,
    /// A file that carries authority over the work
    #[arg(long = "authority", value_name = "NAME=PATH")]
    pub authority: Vec<String>,
    /// A recorded version: a file, or one value in it
    #[arg(long = "compat", value_name = "NAME=PATH[#POINTER]")]
    pub compatibility: Vec<String>,
    /// An approval that somebody gave, as a file
    #[arg(long = "approval", value_name = "REF=PATH[,expires=TIME]")]
    pub approvals: Vec<String>,
    /// A capability that outstanding work needs
    #[arg(long = "capability", value_name = "NAME")]
    pub capabilities: Vec<Name>,
}

/// A point that was kept.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct SaveReport(SavedPoint);

impl Report for SaveReport {
    const COMMAND: &'static str = "checkpoint.save";

    fn answer(&self) -> String {
        self.0.checkpoint.to_string()
    }

    fn news(&self) -> Vec<String> {
        let bindings = &self.0.bindings;
        vec![format!(
            "session {}, cursor {}: {} artifacts, {} authority, {} versions, {} approvals bound",
            self.0.session,
            self.0.cursor,
            bindings.artifacts.len(),
            bindings.authority.len(),
            bindings.compatibility.len(),
            bindings.approvals.len()
        )]
    }
}

impl CheckpointCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `not_a_binding` for what cannot be read again from a file.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let CheckpointCommand::Save(save_command) = self;
        save_command.run(ctx)
    }
}

impl Save {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request = ctx.request(
            "checkpoint save",
            json!({"boundary": self.boundary, "cursor": self.cursor, "artifacts": self.artifacts,
                "authority": self.authority, "compatibility": self.compatibility, "approvals": self.approvals,
                "capabilities": self.capabilities, "run": ctx.global.run}),
        );
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, state),
            |turn, (named, declared): &(Bindings, Bindings)| {
                let session = ctx.session(turn.state)?;
                let run = ctx.need_run(turn.state, &session)?;
                let newest = load::newest_bindings(&opened.store, turn.state, &session)?;
                let bindings = rebind(&carry(&newest, declared), named);
                let course = Course::new(session, None);
                let boundary = (self.boundary, self.cursor.clone());
                save(turn, course, run, boundary, bindings, ctx.global.expect_version)
            },
        )?;
        Done::written(answer, SaveReport)
    }

    fn gather(
        &self,
        ctx: &Context,
        opened: &Opened,
        state: &State,
    ) -> Result<Gathered<(Bindings, Bindings)>> {
        let session = ctx.session(state)?;
        let held = load::newest_bindings(&opened.store, state, &session)?;
        let mut reader = Reader::new(&opened.project);
        let named = self.named(&mut reader)?;
        // What is named here needs no second reading for the config's sake.
        let known = rebind(&held, &named);
        let declared = reader.declared(&config(&opened.store)?, &known)?;
        let mut gathered = Gathered::of((named, declared));
        gathered.files = reader.stamps;
        Ok(gathered)
    }

    fn named(&self, reader: &mut Reader<'_>) -> Result<Bindings> {
        let mut bindings = Bindings { capabilities: self.capabilities.clone(), ..Bindings::default() };
        for text in &self.artifacts {
            let (name, place) = named_path("--artifact", text)?;
            let (path, binding) = match place.strip_suffix(":context") {
                Some(path) => (path.to_owned(), BindingKind::Context),
                None => (place, BindingKind::Exact),
            };
            let hash = Hash::of(&readable(reader.bytes(&path, None, MAX_BOUND))?);
            bindings.artifacts.push(BoundArtifact { name, path, lines: None, hash, binding });
        }
        for text in &self.authority {
            let (name, path) = named_path("--authority", text)?;
            let hash = readable(reader.hash(&path, None))?;
            bindings.authority.push(BoundAuthority { name, path, hash });
        }
        for text in &self.compatibility {
            let (name, place) = named_path("--compat", text)?;
            let (path, pointer) = split_pointer(&place);
            let hash = readable(reader.hash(&path, pointer.as_deref()))?;
            bindings.compatibility.push(BoundCompatibility { name, path, pointer, hash });
        }
        for text in &self.approvals {
            let (reference, place) = named_path("--approval", text)?;
            let (path, expires_at) = match place.split_once(",expires=") {
                Some((path, time)) => {
                    let time = Time::from_str(time)
                        .map_err(|bad| Error::new(Kind::Usage, format!("--approval: {bad}")))?;
                    (path.to_owned(), Some(time))
                }
                None => (place, None),
            };
            let hash = readable(reader.hash(&path, None))?;
            bindings.approvals.push(BoundApproval { reference, path, hash, expires_at });
        }
        Ok(bindings)
    }
}

/// What cannot be read again from a file is refused as a binding.
fn readable<T>(read: Result<T>) -> Result<T> {
    read.map_err(|error| match error.kind {
        Kind::BadInput => {
            let cause = error.cause.clone().unwrap_or_default();
            Error::new(Kind::NotABinding, error.message).because(cause)
        }
        _ => error,
    })
}
