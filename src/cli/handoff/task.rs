//! What `handoff open` is given where the work is no frozen question: instructions, the schema of what comes
//! back, and texts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::cli::ctx::{Context, Opened};
use crate::cli::input::{MAX_BOUND, Reader, file_or_stdin, named_path};
use crate::error::{Error, Kind, Result};
use crate::model::decision::Turn;
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::job::ResultScope;
use crate::model::yaml;
use crate::rules::jobfile::ArtifactRef;
use crate::rules::task::{FrozenTask, MAX_INSTRUCTIONS, TaskSpec, fix};
use crate::store::FileStamp;

/// Flags for work that is no frozen question.
#[derive(Debug, Args)]
#[command(next_help_heading = "Work without a job")]
pub struct TaskArgs {
    /// What is to be done: a file, or - for standard input
    #[arg(long, value_name = "FILE", requires = "returns", requires = "gate", conflicts_with = "job")]
    pub instructions: Option<PathBuf>,
    /// The JSON Schema of what comes back, as YAML or JSON
    #[arg(long, value_name = "FILE", requires = "instructions")]
    pub returns: Option<PathBuf>,
    /// A text that the worker needs
    #[arg(long = "artifact", value_name = "NAME=PATH", requires = "instructions")]
    pub artifacts: Vec<String>,
    /// What the worker may use besides the packet, by name
    #[arg(long = "context", value_name = "NAME", requires = "instructions")]
    pub context: Vec<Name>,
    /// How far the result may reach: diagnostic, proposal, observation or evaluation
    #[arg(long, value_name = "SCOPE", requires = "instructions", default_value = "observation")]
    pub scope: ResultScope,
}

/// What the flags say, read once: standard input is not there a second time.
pub struct Given {
    instructions: String,
    returns: Value,
    artifacts: Vec<ArtifactRef>,
    scope: ResultScope,
}

impl Given {
    /// What tells one request from another.
    pub fn facts(&self) -> Value {
        let artifacts: Vec<_> =
            self.artifacts.iter().map(|artifact| (&artifact.name, &artifact.path)).collect();
        serde_json::json!({
            "instructions": Hash::of(self.instructions.as_bytes()),
            "returns": self.returns,
            "artifacts": artifacts,
            "scope": self.scope,
        })
    }
}

impl TaskArgs {
    /// Reads what the flags name; `None` where a frozen question is to be queued.
    ///
    /// # Errors
    /// `io`, `bad_input`, `too_large`, `usage`.
    pub fn read(&self, ctx: &Context) -> Result<Option<Given>> {
        let (Some(instructions), Some(returns)) = (&self.instructions, &self.returns) else {
            return Ok(None);
        };
        let bytes = file_or_stdin(ctx, Some(instructions), MAX_INSTRUCTIONS as u64)?;
        let instructions = String::from_utf8(bytes).map_err(|error| {
            Error::new(Kind::BadInput, "the instructions are not UTF-8 text")
                .because(format!("first bad byte at offset {}", error.utf8_error().valid_up_to()))
        })?;
        let schema = file_or_stdin(ctx, Some(returns), MAX_INSTRUCTIONS as u64)?;
        let schema = yaml::parse_either(&schema).map_err(|fault| fault.into_error(returns.display()))?;
        let artifacts = self.artifacts.iter().map(|text| {
            let (name, path) = named_path("--artifact", text)?;
            Ok(ArtifactRef { name, path, lines: None, base64: false, pointer: "/artifact".to_owned() })
        });
        let artifacts: Vec<ArtifactRef> = artifacts.collect::<Result<_>>()?;
        let twice = artifacts.iter().enumerate();
        if let Some((_, twice)) =
            twice.into_iter().find(|(at, one)| artifacts[..*at].iter().any(|other| other.name == one.name))
        {
            return Err(Error::new(Kind::Usage, format!("--artifact {} stands twice", twice.name)));
        }
        Ok(Some(Given { instructions, returns: schema, artifacts, scope: self.scope }))
    }
}

/// A task with the bytes of its artifacts.
pub struct Read {
    /// The task.
    pub task: FrozenTask,
    contents: BTreeMap<Name, Vec<u8>>,
}

impl Read {
    /// Fixes a task over the files as they are now, with their stamps.
    ///
    /// # Errors
    /// Those of [`fix`] and of reading the files.
    pub fn now(opened: &Opened, given: &Given, resource: &Name) -> Result<(Self, Vec<FileStamp>)> {
        let mut reader = Reader::new(&opened.project);
        let mut contents = BTreeMap::new();
        for artifact in &given.artifacts {
            contents.insert(artifact.name.clone(), reader.bytes(&artifact.path, None, MAX_BOUND)?);
        }
        let spec = TaskSpec {
            instructions: given.instructions.clone(),
            returns: given.returns.clone(),
            artifacts: given.artifacts.clone(),
            scope: given.scope,
        };
        Ok((Self { task: fix(&spec, resource, &contents)?, contents }, reader.stamps))
    }

    /// Keeps the artifacts' bytes with the record.
    pub fn keep(&self, turn: &mut Turn<'_>) {
        for bytes in self.contents.values() {
            turn.blob(bytes.clone());
        }
    }
}
