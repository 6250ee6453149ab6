//! Which commands are tools, in which order, and what is said of each. The tools are the commands: all names,
//! arguments and texts come from the command line's own definition.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clap::Command;
use serde_json::{Map, Value, json};

use super::super::global::Global;
use super::super::output::schema_name;
use super::super::schemas;
use super::arguments::{Argument, schema};
use crate::error::{Error, Kind, Result};
use crate::rules::members::nearest;

/// Commands that are not served, and why.
pub const NOT_SERVED: &[(&str, &str)] = &[
    ("init", "whoever starts the server says where the store is"),
    ("doctor", "mends the store, which is for a person to decide"),
    ("effect run", "runs a program"),
    ("capability probe", "runs a program"),
    ("export", "writes a file that holds a secret"),
    ("import", "reads a file that was carried"),
    ("event import", "reads a file that was carried"),
    ("work", "runs a program"),
    ("mcp", "is the server"),
    ("completions", "is for a shell"),
    ("man", "is for a shell"),
];

/// Commands that record nothing.
const READS: &[&str] = &[
    "status",
    "show",
    "list",
    "log",
    "validate",
    "verify",
    "effect check",
    "contract list",
    "contract check",
];

/// Writers that a repeat with the same arguments leaves as they are.
const REPEATABLE: &[&str] = &[
    "freeze",
    "packet",
    "reply",
    "consume",
    "session move",
    "run finish",
    "event put",
    "effect plan",
    "effect done",
    "effect clear",
    "handoff release",
    "handoff complete",
    "handoff fail",
    "handoff cancel",
];

/// Commands that a worker proves itself to by the nonce of its attempt.
const BY_NONCE: &[&str] = &["reply", "handoff renew", "handoff release", "handoff complete", "handoff fail"];

/// Readers that look at one session where it is named.
const BY_SESSION: &[&str] = &["status", "list"];

/// Global flags of writers.
const OF_WRITERS: &[&str] = &["session", "run", "expect_version", "op", "dry_run", "lock_timeout"];
const SESSION: &str = "session";
const NONCE: &str = "nonce";

/// Flags that mean nothing to a tool: what would not end, or ends a process.
const LEFT_OUT: &[&str] = &["follow"];

/// Definitions that output schemas leave open, and what each is.
const OPEN: &[(&str, &str)] = &[("Event", "object"), ("Kind", "string")];

/// Said of every tool that writes.
const NO_AUTHORITY: &str = "Writes a record, and grants no authority: no permission, approval or acceptance \
    comes of calling it.";

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// `nf_` and the command's words joined by `_`.
    pub name: String,
    /// The command's words.
    pub words: Vec<String>,
    /// Whether it records anything.
    pub writes: bool,
    /// Whether it may take long: it has a thread of its own.
    pub long: bool,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    about: String,
    repeatable: bool,
}

/// The tools of one server, made when they are first asked for.
#[derive(Debug)]
pub struct Catalog {
    read_only: bool,
    only: Vec<String>,
    tools: OnceLock<Vec<Tool>>,
}

impl Catalog {
    /// The tools that are left of all.
    ///
    /// # Errors
    /// `usage` for a name that no tool has, or that `read_only` leaves out.
    pub fn new(read_only: bool, only: Vec<String>) -> Result<Self> {
        let catalog = Self { read_only, only: Vec::new(), tools: OnceLock::new() };
        for name in &only {
            let names = || catalog.tools().iter().map(|tool| tool.name.as_str());
            if names().any(|known| known == name) {
                continue;
            }
            if all().iter().any(|tool| tool.name == *name) {
                return Err(Error::new(Kind::Usage, format!("{name} writes, and --read-only was given"))
                    .fix("leave one of the two out"));
            }
            let shown: String = name.chars().take(40).collect();
            let error = Error::new(Kind::Usage, format!("{shown:?} is no tool"));
            return Err(match nearest(&shown, names()) {
                Some(near) => error.because(format!("did you mean {near}?")),
                None => error.because(format!("the tools are {}", names().collect::<Vec<_>>().join(", "))),
            });
        }
        Ok(Self { read_only, only, tools: OnceLock::new() })
    }

    /// All of them, always in the same order.
    pub fn tools(&self) -> &[Tool] {
        self.tools.get_or_init(|| {
            let kept = |tool: &Tool| {
                (!self.read_only || !tool.writes) && (self.only.is_empty() || self.only.contains(&tool.name))
            };
            all().into_iter().filter(kept).collect()
        })
    }

    /// Whether a tool is among them; asked without making any.
    pub fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// What the protocol says of each.
    pub fn described(&self) -> Vec<rmcp::model::Tool> {
        let documents = schemas::of_tools();
        self.tools().iter().map(|tool| tool.described(&documents)).collect()
    }

    /// One by its name.
    ///
    /// # Errors
    /// `usage` with the nearest name.
    pub fn find(&self, name: &str) -> Result<&Tool> {
        let found = self.tools().iter().find(|tool| tool.name == name);
        found.ok_or_else(|| {
            let shown: String = name.chars().take(40).collect();
            let error = Error::new(Kind::Usage, format!("unknown tool {shown:?}"))
                .fix("call a tool that tools/list names; nothing was done");
            match nearest(&shown, self.tools().iter().map(|tool| tool.name.as_str())) {
                Some(near) => error.because(format!("did you mean {near}?")),
                None => error.because("tools/list has them all"),
            }
        })
    }
}

/// Every tool there is, in the order of the commands.
pub fn all() -> Vec<Tool> {
    let globals = Global::augment_args(Command::new("global"));
    let mut tools = Vec::new();
    leaves(&super::super::command(), &mut Vec::new(), &globals, &mut tools);
    tools
}

fn leaves(command: &Command, words: &mut Vec<String>, globals: &Command, tools: &mut Vec<Tool>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        words.push(inner.get_name().to_owned());
        let line = words.join(" ");
        if NOT_SERVED.iter().all(|(left, _)| *left != line) {
            match inner.has_subcommands() {
                true => leaves(inner, words, globals, tools),
                false => tools.push(Tool::of(inner, words, globals)),
            }
        }
        words.pop();
    }
}

impl Tool {
    fn of(command: &Command, words: &[String], globals: &Command) -> Self {
        let line = words.join(" ");
        let is = |table: &[&str]| table.contains(&line.as_str());
        let writes = !is(READS);
        let own = command.get_arguments().filter(|arg| !LEFT_OUT.contains(&arg.get_id().as_str()));
        let mut arguments: Vec<Argument> = own.filter_map(Argument::of).collect();
        let global = |name: &str| {
            (writes && OF_WRITERS.contains(&name))
                || (name == NONCE && is(BY_NONCE))
                || (name == SESSION && is(BY_SESSION))
        };
        let more = globals.get_arguments().filter(|arg| global(arg.get_id().as_str()));
        for argument in more.filter_map(Argument::of) {
            if arguments.iter().all(|held| held.name != argument.name) {
                arguments.push(argument);
            }
        }
        Self {
            name: format!("nf_{}", line.replace([' ', '-'], "_")),
            words: words.to_vec(),
            writes,
            long: line == "verify",
            arguments,
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            repeatable: is(REPEATABLE),
        }
    }

    /// What the protocol says of it.
    fn described(&self, documents: &BTreeMap<String, schemars::Schema>) -> rmcp::model::Tool {
        let about = match self.writes {
            true => format!("{}. {NO_AUTHORITY}", self.about),
            false => format!("{}. Reads only.", self.about),
        };
        let hints = rmcp::model::ToolAnnotations::new()
            .read_only(!self.writes)
            .destructive(false)
            .idempotent(!self.writes || self.repeatable)
            .open_world(false);
        let mut tool = rmcp::model::Tool::new(self.name.clone(), about, schema(&self.arguments));
        tool.output_schema = Some(self.output(documents).into());
        tool.annotations = Some(hints);
        tool
    }

    /// The schema of the command's `--json` document, with events and the words of errors left open: to spell
    /// them all out in every tool would take a hundred times the room of the rest.
    fn output(&self, documents: &BTreeMap<String, schemars::Schema>) -> Map<String, Value> {
        let document = documents.get(&schema_name(&self.words.join(".")));
        let mut schema = document.and_then(schemars::Schema::as_object).cloned().unwrap_or_default();
        if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
            for (name, kind) in OPEN {
                if let Some(definition) = definitions.get_mut(*name) {
                    *definition = json!({"type": kind});
                }
            }
        }
        schema.remove("$schema");
        prune(&mut schema);
        let mut schema = Value::Object(schema);
        without_widths(&mut schema);
        schema.as_object().cloned().unwrap_or_default()
    }
}

/// Takes away formats such as `uint64`, which say how wide a number is here: clients that check formats know
/// none of them, and say so for each.
fn without_widths(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_width = |format: &Value| {
                format
                    .as_str()
                    .is_some_and(|format| ["uint", "int", "double"].iter().any(|w| format.starts_with(w)))
            };
            if map.get("format").is_some_and(is_width) {
                map.remove("format");
            }
            map.values_mut().for_each(without_widths);
        }
        Value::Array(items) => items.iter_mut().for_each(without_widths),
        _ => {}
    }
}

/// Removes the definitions that nothing names any more.
fn prune(schema: &mut Map<String, Value>) {
    let Some(Value::Object(mut left)) = schema.remove("$defs") else { return };
    let mut kept = Map::new();
    let mut wanted = Vec::new();
    named(&Value::Object(schema.clone()), &mut wanted);
    while let Some(name) = wanted.pop() {
        if let Some(definition) = left.remove(&name) {
            named(&definition, &mut wanted);
            kept.insert(name, definition);
        }
    }
    if !kept.is_empty() {
        schema.insert("$defs".to_owned(), kept.into());
    }
}

fn named(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            found.extend(reference.and_then(|text| text.strip_prefix("#/$defs/")).map(str::to_owned));
            map.values().for_each(|inner| named(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| named(inner, found)),
        _ => {}
    }
}
