//! One call: the command line that a tool's arguments became, run as the command itself, and the document
//! that `--json` would print. What a group of calls wrote is made durable here, before any of them is
//! answered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::FromArgMatches;
use serde_json::{Value, json};

use super::super::bar::Told;
use super::super::ctx::Context;
use super::super::env::Env;
use super::super::global::Global;
use super::super::misuse;
use super::super::output::{Envelope, schema_name};
use super::super::served::Served;
use super::super::{Command, command_for, dispatch, schema_of};
use super::arguments::Line;
use crate::error::{Error, Result};
use crate::model::time::Source;
use crate::store::{Doubt, Options, Store};

/// The document of a call, and whether the call failed.
#[derive(Debug, Clone)]
pub struct Document {
    /// What `--json` prints.
    pub value: Value,
    /// Whether it is an error.
    pub failed: bool,
}

impl Document {
    fn of(envelope: &Envelope<Value>) -> Self {
        Self { failed: !envelope.ok, value: serde_json::to_value(envelope).unwrap_or_default() }
    }

    /// Of a failure, under the schema of a wrong command line.
    pub fn misused(error: &Error) -> Self {
        Self::of(&Envelope::failed(schema_name("usage"), error))
    }

    /// The same call's document where an error took its answer away.
    pub fn undone(&self, error: &Error) -> Self {
        let schema = self.value.get("schema").and_then(Value::as_str).unwrap_or_default();
        Self::of(&Envelope::failed(schema.to_owned(), error))
    }

    fn note(&mut self, notes: &[String]) {
        if let Some(map) = self.value.as_object_mut().filter(|_| !notes.is_empty()) {
            let held = map.entry("notes").or_insert_with(|| json!([]));
            if let Some(held) = held.as_array_mut() {
                held.extend(notes.iter().map(|note| note.clone().into()));
            }
        }
    }
}

/// Runs calls, one after the other.
pub struct Runner {
    /// The flags that the server was started with.
    base: Global,
    env: Env,
    lookup: fn(&str) -> Option<String>,
    config: fn() -> Option<PathBuf>,
    folder: PathBuf,
    executable: Option<PathBuf>,
    source: Arc<Source>,
    /// The command lines' definitions by their first word; to make one takes longer than most commands do.
    definitions: BTreeMap<String, clap::Command>,
    group: Option<Group>,
}

/// The store that a group of calls writes to.
struct Group {
    store: Arc<Store>,
    doubt: Doubt,
    source: Arc<Source>,
}

impl Runner {
    /// One that runs commands as the server's own process would.
    pub fn new(ctx: &Context) -> Self {
        Self {
            base: ctx.global.clone(),
            env: ctx.env.clone(),
            lookup: ctx.lookup,
            config: ctx.config,
            folder: ctx.folder.clone(),
            executable: ctx.executable.clone(),
            source: ctx.source.clone(),
            definitions: BTreeMap::new(),
            group: None,
        }
    }

    /// Runs a call by itself, and writes nothing.
    pub fn read(&mut self, line: Line, told: Option<Told>) -> Document {
        self.run(line, told, u64::MAX, false)
    }

    /// Runs a call as part of a group: its answer may be told after [`Runner::commit`] and not before. It
    /// waits for the lock as long as it asks, and at most `patience_ms`.
    pub fn write(&mut self, line: Line, patience_ms: u64) -> Document {
        self.run(line, None, patience_ms, true)
    }

    /// Whether the group is over: it has met rows that nothing bears out, so that the next one reads anew, or
    /// it does not hold the lock. Then no answer waits for it, and the next call waits as long as it says
    /// itself.
    pub fn is_over(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.doubt.check().is_err() || !group.store.is_holding())
    }

    /// Makes durable what the calls since the last time have written; on failure none of them is to be
    /// answered as if it were.
    pub fn commit(&mut self, documents: &mut [Document]) {
        let Some(group) = self.group.take() else { return };
        match group.store.commit(&group.source) {
            Ok(notes) => {
                if let Some(first) = documents.first_mut() {
                    first.note(&notes);
                }
            }
            Err(error) => documents.iter_mut().for_each(|document| *document = document.undone(&error)),
        }
    }

    fn run(&mut self, line: Line, told: Option<Told>, patience_ms: u64, grouped: bool) -> Document {
        let word = line.arguments.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let definition = self
            .definitions
            .entry(word)
            .or_insert_with(|| command_for(&line.arguments[..line.arguments.len().min(2)]));
        let parsed = definition.try_get_matches_from_mut(&line.arguments).and_then(|matches| {
            let given = Global::from_arg_matches(&matches)?;
            Ok((schema_of(&matches), given, Command::from_arg_matches(&matches)?))
        });
        let (schema, given, command) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return Document::misused(&misuse::misused(&error, definition, &line.arguments)),
        };
        let mut ctx = self.context(self.flags(given, line.lock_timeout, patience_ms), line.texts, told);
        if grouped {
            self.join(&mut ctx);
        }
        let done = {
            let _span = tracing::debug_span!("command", schema).entered();
            let done = dispatch(command, &ctx);
            // What rests on rows that nothing bears out is no answer, and no refusal either.
            ctx.doubt.check().and(done)
        };
        match done {
            Ok(mut done) => {
                // A document holds what JSON Lines would.
                if let Some(lines) = done.lines.take() {
                    let records = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                    done.data = json!({"records": records.collect::<Vec<_>>()});
                }
                Document::of(&Envelope::of(done))
            }
            Err(error) => {
                let error = misuse::with_help(error, &schema);
                Document::of(&Envelope::failed(schema, &error))
            }
        }
    }

    /// A call's flags over the server's.
    fn flags(&self, given: Global, lock_timeout: bool, patience_ms: u64) -> Global {
        let base = &self.base;
        let asked = if lock_timeout { given.lock_timeout } else { base.lock_timeout };
        Global {
            folder: None,
            json: true,
            quiet: true,
            color: base.color.clone(),
            dry_run: given.dry_run || base.dry_run,
            session: given.session.or_else(|| base.session.clone()),
            run: given.run.or_else(|| base.run.clone()),
            nonce: given.nonce,
            expect_version: given.expect_version,
            op: given.op,
            lock_timeout: asked.min(patience_ms),
            allow_fs: base.allow_fs,
            allow_damaged: base.allow_damaged,
        }
    }

    fn context(&self, global: Global, texts: BTreeMap<PathBuf, Vec<u8>>, told: Option<Told>) -> Context {
        Context {
            global,
            env: self.env.clone(),
            lookup: self.lookup,
            config: self.config,
            folder: self.folder.clone(),
            executable: self.executable.clone(),
            source: self.source.clone(),
            doubt: Doubt::default(),
            served: Some(Served { texts, store: None }),
            told,
        }
    }

    /// Lets a call write to the group's store, which the first of them opens. Where it cannot be opened the
    /// command fails over the same.
    fn join(&mut self, ctx: &mut Context) {
        if self.group.is_none() {
            self.group = opened(ctx).ok();
        }
        if let (Some(group), Some(served)) = (&self.group, &mut ctx.served) {
            ctx.doubt = group.doubt.clone();
            served.store = Some(group.store.clone());
        }
    }
}

fn opened(ctx: &Context) -> Result<Group> {
    let store = Store::open(&ctx.root()?, Options { group: true, ..ctx.options() })?;
    let source = ctx.source_for(store.info().testing)?;
    Ok(Group { store: Arc::new(store), doubt: ctx.doubt.clone(), source })
}
