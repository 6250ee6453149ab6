//! Typed external events: what came in from outside, by a sender's own key. An event writes nothing but
//! itself, carries no authority and moves no gate (control-plane contract, 03 and 12).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::hash::{Hash, canonical};
use super::id::{EventId, HandoffId, Name, ReceiptId, RunId, SessionId};
use super::time::Time;
use crate::words;

words! {
    /// What kind of thing an event says.
    EventScope {
        /// Somebody asks for work.
        Request = "request",
        /// Somebody says that a result is there.
        Result = "result",
        /// Somebody saw something.
        Observation = "observation",
    }
}

/// The types of the contract with their scopes; beside them only `x.<name>`, an observation.
pub const EVENT_TYPES: &[(&str, EventScope)] = &[
    ("resume.requested", EventScope::Request),
    ("eval.requested", EventScope::Request),
    ("maintenance.requested", EventScope::Request),
    ("research.refresh_requested", EventScope::Request),
    ("semantic.job_requested", EventScope::Request),
    ("semantic.result_arrived", EventScope::Result),
    ("eval.result_arrived", EventScope::Result),
    ("feedback.observed", EventScope::Observation),
    ("acceptance.observed", EventScope::Observation),
    ("ci.observed", EventScope::Observation),
];

/// A type of the table, or `x.<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct EventType(String);

impl EventType {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The scope that the table gives it.
    pub fn scope(&self) -> EventScope {
        let known = EVENT_TYPES.iter().find(|(word, _)| *word == self.0);
        known.map_or(EventScope::Observation, |(_, scope)| *scope)
    }
}

impl FromStr for EventType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = EVENT_TYPES.iter().any(|(word, _)| *word == text);
        let own = text.strip_prefix("x.").is_some_and(|rest| rest.parse::<Name>().is_ok());
        // The whole must be a name too, so that it is no longer than one.
        if known || own && text.parse::<Name>().is_ok() {
            return Ok(Self(text.to_owned()));
        }
        let shown: String = text.chars().take(40).collect();
        Err(format!("{shown:?} is no type of event"))
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who sent an event and how it came: no part of its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EventSource {
    /// The kind of sender, such as `webhook`, `schedule` or `shell`.
    pub kind: Name,
    /// Who caused it, as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The transport's own id of this delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Where it can be looked up outside.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// A file that an event is about, with the hash it had then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EventArtifact {
    /// Its name in the event.
    pub name: Name,
    /// Its path from the project root.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub hash: Hash,
}

/// What an event carries: in place up to [`super::event::INLINE_TEXT`] canonical bytes, else in a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// In place.
    Inline(Value),
    /// The canonical JSON in a blob.
    Blob(Hash),
}

/// One typed event from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExternalEvent {
    /// Its id.
    pub id: EventId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The sender's key: the same key is the same event, for ever.
    pub key: Name,
    /// The scope of its type.
    pub scope: EventScope,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Name>,
    /// The session that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The run that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The handoff that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// Who sent it and how it came.
    pub source: EventSource,
    /// Files that it is about, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<EventArtifact>,
    /// What it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// BLAKE3 of its meaning ([`ExternalEvent::meaning`]) in RFC 8785 form.
    pub payload_hash: Hash,
    /// When it was recorded.
    pub received_at: Time,
    /// Who consumed it, with the receipt of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed: BTreeMap<Name, ReceiptId>,
}

impl ExternalEvent {
    /// What the event means, with the payload that it carries: the members that the sender gave and no
    /// others; never a time, an id or the source, so that a retry means the same.
    pub fn meaning(&self, payload: Option<&Value>) -> Value {
        let mut meaning = Map::new();
        meaning.insert("type".to_owned(), json!(self.kind));
        meaning.insert("scope".to_owned(), json!(self.scope));
        let given = [
            ("resource", self.resource.as_ref().map(|it| json!(it))),
            ("session", self.session.as_ref().map(|it| json!(it))),
            ("run", self.run.as_ref().map(|it| json!(it))),
            ("handoff", self.handoff.as_ref().map(|it| json!(it))),
            ("artifacts", (!self.artifacts.is_empty()).then(|| json!(self.artifacts))),
            ("payload", payload.cloned()),
        ];
        meaning.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(meaning)
    }

    /// The hash of a meaning.
    pub fn hash_of(meaning: &Value) -> Hash {
        Hash::of(&canonical(meaning))
    }

    /// The handoff whose result it only reports: the result itself is what can be applied.
    pub fn reports(&self) -> Option<&HandoffId> {
        self.handoff.as_ref().filter(|_| self.scope == EventScope::Result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::Event;

    #[test]
    fn every_type_has_its_scope_and_an_own_one_is_an_observation() {
        for (word, scope) in EVENT_TYPES {
            assert_eq!(word.parse::<EventType>().unwrap().scope(), *scope);
        }
        for own in ["x.note", "x.build/42", "x.x.y"] {
            assert_eq!(own.parse::<EventType>().unwrap().scope(), EventScope::Observation);
        }
        let long = format!("x.{}", "a".repeat(127));
        for bad in ["", "x.", "x", "x..a", "x. a", "X.a", "ci.seen", "ci.observed ", "x.a\n", "x.é", &long] {
            assert!(bad.parse::<EventType>().is_err(), "{bad:?}");
        }
    }

    fn whole() -> Value {
        json!({
            "id": "e-0123456789ab", "type": "ci.observed", "key": "delivery/1", "scope": "observation",
            "resource": "novel/pride", "session": "s-0123456789ab", "run": "r-0123456789ab",
            "handoff": "h-0123456789ab", "source": {"kind": "webhook", "actor": "a", "transport": "t",
                "ref": "https://ci.example/1"},
            "artifacts": [{"name": "chapter", "path": "ch01.md", "hash": Hash::of(b"x")}],
            "payload": {"inline": {"a": [1, 0.5]}}, "payload_hash": Hash::of(b"y"),
            "received_at": "2026-01-01T00:00:00.000000Z", "consumed": {"somebody": "t-0123456789ab"},
        })
    }

    #[test]
    fn an_event_is_written_and_read_again_as_it_is() {
        let mut bare = whole();
        let members = ["resource", "session", "run", "handoff", "artifacts", "payload", "consumed"];
        for member in members {
            bare.as_object_mut().unwrap().remove(member);
        }
        bare["source"] = json!({"kind": "shell"});
        let mut kept = whole();
        kept["payload"] = json!({"blob": Hash::of(b"z")});
        for value in [whole(), bare, kept] {
            let logged = json!({"type": "event.received", "event": value});
            let event: Event = serde_json::from_value(logged.clone()).unwrap();
            assert_eq!(event.word(), "event.received");
            assert_eq!(serde_json::to_value(&event).unwrap(), logged);
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }

    #[test]
    fn the_meaning_is_what_was_given_and_nothing_else() {
        let event: ExternalEvent = serde_json::from_value(whole()).unwrap();
        let payload = json!({"a": [1, 0.5]});
        let members = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        let meaning = event.meaning(Some(&payload));
        assert_eq!(
            members(&meaning),
            ["artifacts", "handoff", "payload", "resource", "run", "scope", "session", "type"]
        );
        let mut other = event.clone();
        other.id = "e-zzzzzzzzzzzz".parse().unwrap();
        other.key = "another".parse().unwrap();
        other.source = EventSource { kind: other.key.clone(), actor: None, transport: None, reference: None };
        other.received_at = other.received_at.plus_millis(1);
        other.payload = None;
        other.consumed.clear();
        assert_eq!(other.meaning(Some(&payload)), meaning);
        assert_ne!(event.meaning(None), meaning);
        assert_ne!(event.meaning(Some(&Value::Null)), event.meaning(None), "null is a payload");
    }
}
