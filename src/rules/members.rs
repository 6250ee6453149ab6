//! Reading objects that people write: unknown members are refused with their pointer and the nearest
//! known one, wrong types with their pointer.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Kind, Result};
use crate::model::json::push_pointer;

/// An object of a job file or contract pack, with where it stands.
pub struct Members<'a> {
    map: &'a Map<String, Value>,
    pointer: String,
    what: &'a str,
}

impl<'a> Members<'a> {
    /// An object whose members are all among `known`.
    ///
    /// # Errors
    /// `bad_input` with the pointer; did-you-mean for an unknown member.
    pub fn new(what: &'a str, value: &'a Value, pointer: &str, known: &[&str]) -> Result<Self> {
        let map = value.as_object().ok_or_else(|| wrong(what, pointer, "an object is wanted here"))?;
        if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
            let place = push_pointer(pointer, key);
            let near = nearest(key, known.iter().copied()).map_or_else(
                || format!("known are {}", known.join(", ")),
                |near| format!("did you mean {near}?"),
            );
            return Err(wrong(what, &place, "no such member").because(near));
        }
        Ok(Self { map, pointer: pointer.to_owned(), what })
    }

    /// The pointer of a member.
    pub fn at(&self, key: &str) -> String {
        push_pointer(&self.pointer, key)
    }

    /// A member as it is.
    pub fn raw(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// A member of a type, where it is given.
    ///
    /// # Errors
    /// `bad_input` with the pointer and what was wanted.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.map.get(key) else { return Ok(None) };
        serde_json::from_value(value.clone()).map(Some).map_err(|error| {
            wrong(self.what, &self.at(key), "not what is wanted here").because(error.to_string())
        })
    }

    /// A member that must be given.
    ///
    /// # Errors
    /// `bad_input` where it is missing or of another type.
    pub fn need<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| wrong(self.what, &self.at(key), "this member is required"))
    }
}

/// A `bad_input` at a pointer.
pub fn wrong(what: &str, pointer: &str, message: &str) -> Error {
    let place = if pointer.is_empty() { "the top" } else { pointer };
    Error::new(Kind::BadInput, format!("{what}: {message}, at {place}"))
        .details(serde_json::json!({"pointer": pointer}))
}

/// What a file of a store might try to name: whoever copies a store must not run or call what it says.
const NAMING: &[&str] = &[
    "agent", "api_key", "args", "argv", "command", "commands", "endpoint", "env", "exec", "host", "hosts",
    "key", "key_env", "program", "programs", "run", "script", "url", "urls", "worker", "workers",
];

/// The refusal of a store's file, in words that say why where it names a program, a host or a key.
pub fn names_nothing(error: Error) -> Error {
    let pointer = error.details.get("pointer").and_then(Value::as_str).unwrap_or_default();
    let last = pointer.rsplit('/').next().unwrap_or_default().to_lowercase();
    if !error.message.contains("no such member") || !NAMING.contains(&last.as_str()) {
        return error;
    }
    error
        .because("a store names no program, no host and no key: whoever copies it must not run what it says")
        .fix("put workers into workers.yaml of your own config folder; docs/adapters.md tells how")
}

/// The candidate that is most like a word, if any is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, near) = candidates.map(|known| (strsim::osa_distance(word, known), known)).min()?;
    (distance <= 1 + word.chars().count() / 3).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_members_are_named_with_the_nearest_known_one() {
        let value = json!({"rubrik": 1});
        let error = Members::new("job file", &value, "/x", &["rubric", "output"]).err().unwrap();
        assert_eq!(error.message, "job file: no such member, at /x/rubrik");
        assert_eq!(error.cause.as_deref(), Some("did you mean rubric?"));
        let value = json!({"zzz": 1});
        let error = Members::new("job file", &value, "", &["rubric", "output"]).err().unwrap();
        assert_eq!(error.cause.as_deref(), Some("known are rubric, output"));
    }

    #[test]
    fn wrong_types_and_missing_members_have_their_pointer() {
        let value = json!({"a": 1});
        let members = Members::new("job file", &value, "", &["a", "b"]).unwrap();
        assert!(members.get::<String>("a").unwrap_err().message.ends_with("at /a"));
        assert!(members.need::<String>("b").unwrap_err().message.contains("required"));
        assert_eq!(members.get::<u32>("a"), Ok(Some(1)));
    }
}
