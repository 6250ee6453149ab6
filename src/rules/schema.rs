//! JSON Schema 2020-12: whether a schema is one, and where a value departs from it. The only file that
//! names `boon`.
//!
//! Owns the words for violations. Must never load anything: a schema is judged by what it holds and by
//! the drafts' own meta-schemas.

use std::collections::BTreeSet;
use std::error::Error as StdError;

use boon::{CompileError, Compiler, Draft, SchemaIndex, Schemas, UrlLoader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::json::push_pointer;

mod plain;
#[cfg(test)]
mod tests;
mod words;

use words::{collect, not_a_schema};

/// The address a schema has while it is read; relative references resolve against it and then fail.
const ADDRESS: &str = "nf:///schema";

/// The address of a schema that was found to be one before. What lies at this host boon takes for sound by
/// the meta-schema, and does not spend most of a check on proving it again.
const SOUND_ADDRESS: &str = "https://json-schema.org/nf/frozen";

/// The meta-schema of the one draft that is read.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How many violations are named at most.
const VIOLATIONS_LIMIT: usize = 20;

/// How many objects and booleans a schema may hold; compiling takes the square of their number.
const SCHEMA_LIMIT: usize = 5_000;

/// How many regular expressions a schema may hold; each may take 10 MiB.
const PATTERN_LIMIT: usize = 256;

/// One place where a value departs from what it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Violation {
    /// JSON pointer (RFC 6901) of the place: in the value, or in the schema if that is what is wrong. A
    /// missing member is named by the pointer it would have.
    pub pointer: String,
    /// What is wrong there, short and in lower case.
    pub message: String,
}

impl Violation {
    /// A violation at a place.
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

/// Whether a value is a JSON Schema 2020-12 that stands by itself.
///
/// Fails with the first place, in the schema, that is wrong: not valid by the meta-schema, another draft,
/// a reference to nothing or to another document, a regular expression that is not one, or too large.
/// Clause: semantic jobs, freeze, `output`.
pub fn compile_check(schema: &Value) -> Result<(), Violation> {
    refuse_draft(schema)?;
    if plain::is_plain(schema) && compile(SOUND_ADDRESS, schema, &|_| None).is_ok() {
        return Ok(());
    }
    compile(ADDRESS, schema, &|_| None).map(|_| ())
}

/// Where an instance departs from a schema: empty if nowhere, sorted by pointer, at most 20.
///
/// Fails if the schema is not one, as [`compile_check`]. Clause: semantic jobs, binding, `schema`.
pub fn check(schema: &Value, instance: &Value) -> Result<Vec<Violation>, Violation> {
    refuse_draft(schema)?;
    check_with(schema, instance, &|_| None)
}

/// [`check`] against a schema that [`compile_check`] found sound before, as a frozen job's is: most of a
/// check would go into finding that out again.
///
/// Fails if the schema cannot be compiled all the same. Clause: semantic jobs, binding, `schema`.
pub fn check_sound(schema: &Value, instance: &Value) -> Result<Vec<Violation>, Violation> {
    departures(SOUND_ADDRESS, schema, instance, &|_| None)
}

/// [`check`] with further documents by address, for suites of tests; nothing in `nf` has any.
#[doc(hidden)]
pub fn check_with(
    schema: &Value,
    instance: &Value,
    remotes: &dyn Fn(&str) -> Option<Value>,
) -> Result<Vec<Violation>, Violation> {
    departures(ADDRESS, schema, instance, remotes)
}

fn departures(
    address: &str,
    schema: &Value,
    instance: &Value,
    remotes: &dyn Fn(&str) -> Option<Value>,
) -> Result<Vec<Violation>, Violation> {
    let (schemas, index) = compile(address, schema, remotes)?;
    let mut found = BTreeSet::new();
    if let Err(error) = schemas.validate(instance, index) {
        collect(&error, &mut found);
    }
    Ok(found.into_iter().take(VIOLATIONS_LIMIT).collect())
}

/// Refuses a schema that names another draft.
fn refuse_draft(schema: &Value) -> Result<(), Violation> {
    match schema.get("$schema") {
        Some(Value::String(draft)) if draft.trim_end_matches('#') != DRAFT => {
            Err(Violation::new("/$schema", "must be the draft 2020-12, or absent"))
        }
        _ => Ok(()),
    }
}

/// Gives out no document.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _: &str) -> Result<Value, Box<dyn StdError>> {
        Err("nothing outside the schema is read".into())
    }
}

/// Compiles a schema, adding those documents that it asks for and `remotes` has.
fn compile(
    address: &str,
    schema: &Value,
    remotes: &dyn Fn(&str) -> Option<Value>,
) -> Result<(Schemas, SchemaIndex), Violation> {
    refuse_size(schema)?;
    let mut patterns = Vec::new();
    collect_patterns(schema, "", &mut patterns);
    refuse_patterns(&patterns)?;
    let mut resources: Vec<(String, Value)> = vec![(address.to_owned(), schema.clone())];
    loop {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(NoLoader));
        for (address, document) in &resources {
            let added = compiler.add_resource(address, document.clone());
            added.map_err(|error| not_a_schema(schema, &error))?;
        }
        match compiler.compile(address, &mut schemas) {
            Ok(index) => return Ok((schemas, index)),
            Err(CompileError::LoadUrlError { url, src }) => match remotes(&url) {
                Some(document) => resources.push((url, document)),
                None => return Err(not_a_schema(schema, &CompileError::LoadUrlError { url, src })),
            },
            Err(error) => return Err(not_a_schema(schema, &error)),
        }
    }
}

/// Refuses a schema that is too large to compile.
fn refuse_size(schema: &Value) -> Result<(), Violation> {
    let mut left = vec![schema];
    let mut count = 0;
    while let Some(value) = left.pop() {
        match value {
            Value::Bool(_) => count += 1,
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                count += 1;
                left.extend(members.values());
            }
            _ => {}
        }
    }
    match count > SCHEMA_LIMIT {
        true => {
            Err(Violation::new("", format!("a schema may hold {SCHEMA_LIMIT} objects and booleans at most")))
        }
        false => Ok(()),
    }
}

/// Collects the regular expressions of a schema with their pointers, data such as `const` left out.
fn collect_patterns(schema: &Value, base: &str, found: &mut Vec<(String, String)>) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                let pointer = push_pointer(base, key);
                match (key.as_str(), member) {
                    ("pattern", Value::String(pattern)) => found.push((pointer, pattern.clone())),
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (
                        "properties" | "patternProperties" | "$defs" | "dependentSchemas",
                        Value::Object(inner),
                    ) => {
                        for (name, schema) in inner {
                            let pointer = push_pointer(&pointer, name);
                            if key == "patternProperties" {
                                found.push((pointer.clone(), name.clone()));
                            }
                            collect_patterns(schema, &pointer, found);
                        }
                    }
                    _ => collect_patterns(member, &pointer, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_patterns(item, &push_pointer(base, &index.to_string()), found);
            }
        }
        _ => {}
    }
}

/// Refuses regular expressions that do not compile. Tried as property names first: there the compiler
/// reports what it takes for its own fault in a `pattern`, where a debug build of it stops the process.
fn refuse_patterns(patterns: &[(String, String)]) -> Result<(), Violation> {
    if patterns.len() > PATTERN_LIMIT {
        let message = format!("a schema may hold {PATTERN_LIMIT} regular expressions at most");
        return Err(Violation::new(&patterns[PATTERN_LIMIT].0, message));
    }
    let compiles = |names: &[(String, String)]| {
        let names: serde_json::Map<_, _> =
            names.iter().map(|(_, name)| (name.clone(), json!(true))).collect();
        let mut compiler = Compiler::new();
        let added = compiler.add_resource(ADDRESS, json!({"$schema": DRAFT, "patternProperties": names}));
        added.is_ok() && compiler.compile(ADDRESS, &mut Schemas::new()).is_ok()
    };
    if patterns.is_empty() || compiles(patterns) {
        return Ok(());
    }
    match patterns.iter().find(|pattern| !compiles(std::slice::from_ref(pattern))) {
        Some((pointer, _)) => Err(Violation::new(pointer, "not a regular expression that is read here")),
        None => Ok(()),
    }
}
