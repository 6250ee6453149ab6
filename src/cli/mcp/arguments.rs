//! A tool's arguments: their JSON Schema out of the command's definition, and the command line out of their
//! values. Knows no tool by name; the command's own parser has the last word on every value.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::super::misuse::takes_value;
use crate::error::{Error, Kind, Result};
use crate::rules::members::nearest;

/// Where an argument stands on the command line.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// `--name=value`, or `--name` for a switch.
    Flag(String),
    /// After `--`.
    Position,
    /// The text of a file that the command reads: the flag that names the file, or its position.
    Text(Option<String>),
}

/// What an argument holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Switch,
    Flag,
    Integer,
    Text,
    Texts,
    /// JSON itself, or its text.
    Json,
}

/// One argument of a tool.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name.
    pub name: String,
    place: Place,
    form: Form,
    help: String,
    required: bool,
    default: Option<String>,
    words: Vec<String>,
}

/// A command line, and the texts that stand in for files in it.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// The program's name, the command's words and its arguments.
    pub arguments: Vec<OsString>,
    /// The texts by the name that stands in the file's place; `-` is standard input.
    pub texts: BTreeMap<PathBuf, Vec<u8>>,
    /// Whether the caller said how long to wait for the lock.
    pub lock_timeout: bool,
}

/// The options whose file is given as a text, besides positions.
const TEXTS: &[&str] = &["instructions", "returns"];

impl Argument {
    /// From the command's own definition; `None` for a path, which no tool takes.
    pub fn of(arg: &Arg) -> Option<Self> {
        let long = arg.get_long();
        let kind = arg.get_value_parser().type_id();
        let is_path = kind == TypeId::of::<PathBuf>();
        let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
        let flag = long.map(str::to_owned);
        let place = match (is_path, &flag) {
            (false, Some(flag)) => Place::Flag(flag.clone()),
            (false, None) => Place::Position,
            (true, None) => Place::Text(None),
            (true, Some(flag)) if TEXTS.contains(&flag.as_str()) => Place::Text(Some(flag.clone())),
            (true, Some(_)) => return None,
        };
        let name = match (&place, &flag, &value) {
            (Place::Text(None), ..) => "text".to_owned(),
            (_, Some(flag), _) => flag.replace('-', "_"),
            (_, None, Some(word)) if word.chars().all(|c| c.is_ascii_uppercase()) => word.to_lowercase(),
            _ => arg.get_id().to_string(),
        };
        let number = [TypeId::of::<u8>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
        let form = match arg.get_action() {
            _ if !takes_value(arg) => Form::Switch,
            ArgAction::Append => Form::Texts,
            _ if kind == TypeId::of::<bool>() => Form::Flag,
            _ if value.as_deref() == Some("FILE|-|JSON") => Form::Json,
            _ if value.as_deref() != Some("DURATION") && number.iter().any(|number| kind == *number) => {
                Form::Integer
            }
            _ => Form::Text,
        };
        let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        if matches!(place, Place::Text(_)) {
            help.truncate(
                [": a file", ", or -"].iter().filter_map(|end| help.find(end)).min().unwrap_or(help.len()),
            );
        }
        let help = match (&place, form) {
            (Place::Text(None), _) => "The text itself: ".to_owned() + &uncapitalised(&help),
            (Place::Text(Some(_)), _) => format!("{help}; the text itself"),
            _ if name == "lock_timeout" => help + "; 18 s at most in a tool",
            (_, Form::Json) => "What it carries: an object or a list".to_owned(),
            _ => help,
        };
        let default = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        Some(Self {
            name,
            required: arg.is_required_set() || place == Place::Text(None),
            default: default.filter(|_| form != Form::Switch),
            words: arg.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect(),
            place,
            form,
            help,
        })
    }

    /// The JSON Schema of its value.
    fn schema(&self) -> Value {
        let kind = match self.form {
            Form::Switch | Form::Flag => json!({"type": "boolean"}),
            Form::Integer => json!({"type": "integer", "minimum": 0}),
            Form::Text => json!({"type": "string"}),
            Form::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Form::Json => json!({"type": ["object", "array"]}),
        };
        let mut schema = kind;
        schema["description"] = self.help.clone().into();
        if self.form == Form::Text && !self.words.is_empty() {
            schema["enum"] = self.words.clone().into();
        }
        if let Some(default) = &self.default {
            schema["default"] = match self.form {
                Form::Integer | Form::Flag => default.parse().unwrap_or_else(|_| default.clone().into()),
                _ => default.clone().into(),
            };
        }
        schema
    }

    /// Writes its value into a command line.
    fn write(&self, value: &Value, line: &mut Line, positions: &mut Vec<OsString>) -> Result<()> {
        let flag = |text: &str| match &self.place {
            Place::Flag(flag) => OsString::from(format!("--{flag}={text}")),
            _ => OsString::from(text),
        };
        let is_position = matches!(self.place, Place::Position | Place::Text(None));
        let into = if is_position { positions } else { &mut line.arguments };
        match (self.form, value) {
            (Form::Switch, Value::Bool(on)) => {
                if let (true, Place::Flag(flag)) = (on, &self.place) {
                    into.push(format!("--{flag}").into());
                }
            }
            (Form::Flag, Value::Bool(on)) => into.push(flag(&on.to_string())),
            (Form::Integer, Value::Number(number)) if number.is_u64() => into.push(flag(&number.to_string())),
            (Form::Json, Value::Object(_) | Value::Array(_)) => into.push(flag(&value.to_string())),
            (Form::Texts, Value::Array(items)) => {
                for item in items {
                    into.push(flag(item.as_str().ok_or_else(|| self.wrong(value))?));
                }
            }
            (Form::Text, Value::String(text)) => match &self.place {
                Place::Text(name) => {
                    let stand_in = name.clone().unwrap_or_else(|| "-".to_owned());
                    into.push(match name {
                        Some(name) => format!("--{name}={stand_in}").into(),
                        None => stand_in.clone().into(),
                    });
                    line.texts.insert(stand_in.into(), text.clone().into_bytes());
                }
                _ => into.push(flag(text)),
            },
            _ => return Err(self.wrong(value)),
        }
        Ok(())
    }

    fn wrong(&self, value: &Value) -> Error {
        let want = match self.form {
            Form::Switch | Form::Flag => "true or false",
            Form::Integer => "a whole number, zero or more",
            Form::Text => "a text",
            Form::Texts => "a list of texts",
            Form::Json => "an object or a list",
        };
        let got = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Error::new(Kind::Usage, format!("argument {} is of another type", self.name))
            .because(format!("want {want}, got {got}"))
            .fix("call the tool as its inputSchema says; nothing was done")
    }
}

/// The JSON Schema of all arguments of a tool.
pub fn schema(arguments: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.clone(), argument.schema())).collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name.as_str())
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// The command line of a call.
///
/// # Errors
/// `usage` for an argument that the tool does not have, a value of another type, or a text that is left out.
pub fn line(
    tool: &str,
    words: &[String],
    arguments: &[Argument],
    given: &Map<String, Value>,
) -> Result<Line> {
    let mut line = Line::default();
    line.arguments.push("nf".into());
    line.arguments.extend(words.iter().map(OsString::from));
    let mut positions = Vec::new();
    if let Some(unknown) = given.keys().find(|name| arguments.iter().all(|known| known.name != **name)) {
        let shown: String = unknown.chars().take(40).collect();
        let error = Error::new(Kind::Usage, format!("{tool} has no argument {shown:?}"));
        let names = arguments.iter().map(|argument| argument.name.as_str());
        return Err(match nearest(&shown, names.clone()) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.because(format!("it has {}", names.collect::<Vec<_>>().join(", "))),
        }
        .fix("call the tool as its inputSchema says; nothing was done"));
    }
    for argument in arguments {
        match given.get(&argument.name) {
            Some(value) => argument.write(value, &mut line, &mut positions)?,
            // Without its text the command would look for standard input, which is the protocol's.
            None if argument.place == Place::Text(None) => {
                return Err(Error::new(Kind::Usage, format!("{tool} wants its text"))
                    .because("argument text is missing")
                    .fix("give the text itself as the argument text; nothing was done"));
            }
            None => {}
        }
    }
    line.lock_timeout = given.contains_key("lock_timeout");
    line.arguments.push("--".into());
    line.arguments.append(&mut positions);
    Ok(line)
}

fn uncapitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
