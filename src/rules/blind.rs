//! Blindness: what must never reach a reviewer, and what must never be kept (session-runtime contract,
//! 03 and 06; semantic-execution contract, 06 and 11).

use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::model::json::pointers_of_keys;

/// Keys that may hold private reasoning or a conversation: in no packet, result or checkpoint, and never
/// lifted.
pub const PRIVATE_KEYS: &[&str] = &[
    "messages",
    "conversation",
    "transcript",
    "chat_history",
    "chain_of_thought",
    "reasoning",
    "thinking",
    "scratchpad",
    "private_reasoning",
];

/// Keys that would show a reviewer the answer that is hoped for, or an earlier one.
pub const FORBIDDEN_KEYS: &[&str] = &[
    "expected",
    "expected_verdict",
    "expected_codes",
    "gold",
    "gold_label",
    "answer_key",
    "prior_result",
    "prior_verdict",
    "reviewer_verdict",
];

/// Permissions that parse only as `false`, and names that no answer may carry: nothing here grants
/// authority (control-plane contract, 12).
pub const HIGH_PERMISSIONS: &[&str] = &["canon_write", "framework_promotion", "durable_taste_write"];

fn is_one_of(key: &str, list: &[&str]) -> bool {
    let key = key.to_lowercase();
    list.contains(&key.as_str())
}

/// Pointers of every member whose key may hold private reasoning, at any depth, in any letter case.
pub fn private(value: &Value) -> Vec<String> {
    pointers_of_keys(value, &|key| is_one_of(key, PRIVATE_KEYS))
}

/// Pointers of every member that is named like a high permission.
pub fn high_permissions(value: &Value) -> Vec<String> {
    pointers_of_keys(value, &|key| is_one_of(key, HIGH_PERMISSIONS))
}

/// Whether a word is the name of a high permission.
pub fn is_high_permission(word: &str) -> bool {
    is_one_of(word, HIGH_PERMISSIONS)
}

/// The keys that one job forbids: the built-in list and its own, less what its rubric asks to judge.
pub struct Forbidden {
    keys: Vec<String>,
}

impl Forbidden {
    /// From a job's own list and what it lifts.
    pub fn new(own: &[String], lifted: &[String]) -> Self {
        let lifted: Vec<String> = lifted.iter().map(|key| key.to_lowercase()).collect();
        let built_in = FORBIDDEN_KEYS.iter().map(|key| (*key).to_owned());
        let keys = built_in
            .chain(own.iter().map(|key| key.to_lowercase()))
            .filter(|key| !lifted.contains(key))
            .chain(PRIVATE_KEYS.iter().map(|key| (*key).to_owned()));
        Self { keys: keys.collect() }
    }

    /// What is forbidden everywhere: private reasoning and conversations.
    pub fn private() -> Self {
        Self { keys: PRIVATE_KEYS.iter().map(|key| (*key).to_owned()).collect() }
    }

    /// Pointers of every member with a forbidden key, at any depth, in any letter case.
    pub fn find(&self, value: &Value) -> Vec<String> {
        pointers_of_keys(value, &|key| self.keys.contains(&key.to_lowercase()))
    }

    /// Refuses a value with a forbidden key.
    ///
    /// # Errors
    /// `not_blind`, with the pointers.
    pub fn refuse(&self, what: &str, value: &Value) -> Result<()> {
        let found = self.find(value);
        if found.is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::NotBlind, format!("{what} would show the reviewer {}", found.join(", ")))
            .because("a reviewer sees no expected, earlier or private answer")
            .details(serde_json::json!({"in": what, "pointers": found})))
    }
}

impl Forbidden {
    /// Refuses a text in which a forbidden key stands before a colon: for files that are named as JSON or
    /// YAML and cannot be read as such.
    ///
    /// # Errors
    /// `not_blind`, with the first line that has one.
    pub fn refuse_text(&self, what: &str, text: &str) -> Result<()> {
        let is_key = |line: &str, key: &str| {
            line.match_indices(key).any(|(at, _)| {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let before = line[..at].chars().next_back().is_some_and(word);
                let after = line[at + key.len()..].trim_start_matches(['"', '\'', ' ', '\t']);
                !before && after.starts_with(':')
            })
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            if let Some(key) = self.keys.iter().find(|key| is_key(&line, key)) {
                return Err(Error::new(Kind::NotBlind, format!("{what} would show the reviewer {key}"))
                    .because(format!(
                        "line {}; the file cannot be read as a value, so it is searched as text",
                        number + 1
                    )));
            }
        }
        Ok(())
    }
}

/// Refuses a value that carries a key of the private list.
///
/// # Errors
/// `private_key`, with the pointers.
pub fn no_private_keys(what: &str, value: &Value) -> Result<()> {
    let found = private(value);
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::PrivateKey, format!("{what} may not hold {}", found.join(", ")))
        .details(serde_json::json!({"in": what, "pointers": found})))
}

/// Private keys that an output schema names, as members or as required names.
pub fn private_in_schema(schema: &Value) -> Vec<String> {
    let mut found = private(schema);
    required_names(schema, String::new(), &mut found);
    found
}

fn required_names(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, member) in map {
                let here = crate::model::json::push_pointer(&pointer, key);
                if key == "required" {
                    let names = member.as_array().into_iter().flatten().filter_map(Value::as_str);
                    if names.clone().any(|name| is_one_of(name, PRIVATE_KEYS)) {
                        found.push(here.clone());
                    }
                }
                required_names(member, here, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                required_names(item, format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn forbidden_keys_at_any_depth_and_in_any_case() {
        let forbidden =
            Forbidden::new(&["Author_Intent".to_owned()], &["gold".to_owned(), "thinking".to_owned()]);
        for (value, found) in [
            (json!({"a": [{"Expected": 1}]}), vec!["/a/0/Expected"]),
            (json!({"author_intent": 1}), vec!["/author_intent"]),
            (json!({"gold": 1}), vec![]),
            (json!({"thinking": 1}), vec!["/thinking"]),
            (json!({"text": "expected gold"}), vec![]),
        ] {
            assert_eq!(forbidden.find(&value), found, "{value}");
            assert_eq!(forbidden.refuse("input", &value).is_err(), !found.is_empty());
        }
    }

    #[test]
    fn every_private_key_is_refused_and_every_forbidden_one_found() {
        for key in PRIVATE_KEYS {
            let value = json!({"x": {(*key).to_owned(): 1}});
            assert_eq!(no_private_keys("a checkpoint", &value).unwrap_err().kind, Kind::PrivateKey);
        }
        for key in FORBIDDEN_KEYS {
            let value = json!({(*key).to_owned(): 1});
            assert_eq!(Forbidden::new(&[], &[]).find(&value).len(), 1);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_as_a_value_is_searched_as_text() {
        let forbidden = Forbidden::new(&[], &[]);
        for (text, refused) in [
            ("date: 2026-01-01\nExpected : x", true),
            ("- \"gold\": 1", true),
            ("note: we expected rain", false),
            ("unexpected: 1", false),
        ] {
            assert_eq!(forbidden.refuse_text("artifact a", text).is_err(), refused, "{text}");
        }
    }

    #[test]
    fn a_schema_may_not_ask_for_private_reasoning() {
        let schema = json!({"properties": {"a": {"required": ["Reasoning"]}}});
        assert_eq!(private_in_schema(&schema), ["/properties/a/required"]);
        let schema = json!({"properties": {"thinking": {}}});
        assert_eq!(private_in_schema(&schema), ["/properties/thinking"]);
        assert!(private_in_schema(&json!({"properties": {"verdict": {}}})).is_empty());
    }
}
