//! Typed external events: delivered at least once, recorded once. The same key with the same meaning is a
//! safe duplicate, with another a hard stop; and no event carries authority (control-plane contract, 03
//! and 12).

use serde_json::Value;

use super::blind;
use super::members::nearest;
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::{ConflictKind, Event, INLINE_TEXT};
use crate::model::external::{
    EVENT_TYPES, EventArtifact, EventScope, EventSource, EventType, ExternalEvent, Payload,
};
use crate::model::handoff::Handoff;
use crate::model::hash::{Hash, canonical};
use crate::model::id::{EventId, HandoffId, Name};
use crate::model::json::differing;
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::time::Time;

/// Bytes that a payload has at most, in RFC 8785 form.
pub const MAX_PAYLOAD: usize = 64 * 1024;
/// Arrays and objects of a payload may stand in one another up to this depth: it is read again as part of
/// a record and of an entity.
pub const MAX_DEPTH: usize = 64;
/// Files that an event names at most.
pub const MAX_ARTIFACTS: usize = 64;
/// Bytes of each thing that a source states of itself.
pub const MAX_STATED: usize = 1024;

/// What a sender gave, with the entities that it named.
pub struct Given {
    /// The type.
    pub kind: EventType,
    /// The sender's key.
    pub key: Name,
    /// What it is about.
    pub resource: Option<Name>,
    /// The session that it names.
    pub session: Option<Session>,
    /// The run that it names.
    pub run: Option<Run>,
    /// The handoff that it names.
    pub handoff: Option<Handoff>,
    /// Who sends it and how.
    pub source: EventSource,
    /// Files that it is about.
    pub artifacts: Vec<EventArtifact>,
    /// What it carries.
    pub payload: Option<Value>,
    /// The event that is recorded under its key, with what that one carries.
    pub held: Option<(ExternalEvent, Option<Value>)>,
}

crate::words! {
    /// Whether a delivery recorded something.
    Delivery {
        /// It did, now.
        New = "new",
        /// The same was recorded before; nothing was written.
        Duplicate = "duplicate",
    }
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Received {
    /// `new`, or `duplicate` for a repeat.
    pub delivery: Delivery,
    /// The event; of a repeat, the first one.
    pub event: EventId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Its key.
    pub key: Name,
    /// The scope of its type.
    pub scope: EventScope,
    /// The hash of its meaning.
    pub payload_hash: Hash,
    /// When it was recorded.
    pub received_at: Time,
    /// The handoff whose result it only reports, so that it can never be consumed.
    pub reports: Option<HandoffId>,
}

impl Received {
    fn of(delivery: Delivery, event: &ExternalEvent) -> Self {
        Self {
            delivery,
            event: event.id.clone(),
            kind: event.kind.clone(),
            key: event.key.clone(),
            scope: event.scope,
            payload_hash: event.payload_hash,
            received_at: event.received_at,
            reports: event.reports().cloned(),
        }
    }
}

/// The type that a word names.
///
/// # Errors
/// `usage` for an unknown one, with the nearest; `authority_denied` where an own type is named like a
/// permission.
pub fn kind(text: &str) -> Result<EventType> {
    let known = || EVENT_TYPES.iter().map(|(word, _)| *word);
    let kind: EventType = text.parse().map_err(|unknown: String| {
        let all = known().collect::<Vec<_>>().join(", ");
        let error = Error::new(Kind::Usage, unknown).fix(format!("one of {all}, or x.NAME"));
        match nearest(text, known()) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error.because("a type is one of the table, or x. and a name for an observation"),
        }
    })?;
    let parts = kind.as_str().split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    match parts.into_iter().find(|part| blind::is_high_permission(part)) {
        Some(part) => Err(Error::new(Kind::AuthorityDenied, format!("no event is a {part}"))
            .because("an event carries no authority")),
        None => Ok(kind),
    }
}

/// Records an event, once for each key.
///
/// # Errors
/// `too_large`, `bad_input`, `private_key` and `authority_denied` with pointers, `mismatched_references`;
/// `event_conflict` as a recorded refusal.
pub fn put(turn: &mut Turn<'_>, mut given: Given) -> Result<Decision<Received>> {
    given.artifacts.sort_by(|a, b| a.name.cmp(&b.name));
    within_limits(&given)?;
    let held = given.held.take();
    let payload = given.payload.take();
    let mut event = draft(turn, &given)?;
    let meaning = event.meaning(payload.as_ref());
    event.payload_hash = ExternalEvent::hash_of(&meaning);
    blind::no_private_keys("an event", &meaning)?;
    no_authority(&meaning)?;
    if let Some((first, payload)) = held {
        if first.payload_hash == event.payload_hash {
            return Ok(Decision::nothing(Received::of(Delivery::Duplicate, &first)));
        }
        return Ok(conflict(turn, (&first, &first.meaning(payload.as_ref())), &meaning));
    }
    belong_together(&given)?;
    event.payload = payload.map(|payload| {
        let bytes = canonical(&payload);
        if bytes.len() <= INLINE_TEXT { Payload::Inline(payload) } else { Payload::Blob(turn.blob(bytes)) }
    });
    let received = Received::of(Delivery::New, &event);
    Ok(Decision::new(vec![Event::ExternalReceived { event }], received))
}

/// What a delivery that was recorded before comes to, where its transport proves that it is the same.
pub fn again(first: &ExternalEvent) -> Received {
    Received::of(Delivery::Duplicate, first)
}

/// The event without its payload and hash.
fn draft(turn: &mut Turn<'_>, given: &Given) -> Result<ExternalEvent> {
    Ok(ExternalEvent {
        id: turn.id()?,
        kind: given.kind.clone(),
        key: given.key.clone(),
        scope: given.kind.scope(),
        resource: given.resource.clone(),
        session: given.session.as_ref().map(|session| session.id.clone()),
        run: given.run.as_ref().map(|run| run.id.clone()),
        handoff: given.handoff.as_ref().map(|handoff| handoff.id.clone()),
        source: given.source.clone(),
        artifacts: given.artifacts.clone(),
        payload: None,
        payload_hash: Hash::of(&[]),
        received_at: turn.at(),
        consumed: Default::default(),
    })
}

fn within_limits(given: &Given) -> Result<()> {
    let too_large = |what: String| Err(Error::new(Kind::TooLarge, what));
    if let Some(payload) = &given.payload {
        if depth(payload) > MAX_DEPTH {
            let message = format!("a payload is nested at most {MAX_DEPTH} deep");
            return Err(Error::new(Kind::BadInput, message));
        }
        let bytes = canonical(payload).len();
        if bytes > MAX_PAYLOAD {
            return too_large(format!("a payload has at most {MAX_PAYLOAD} bytes, this one {bytes}"));
        }
    }
    if given.artifacts.len() > MAX_ARTIFACTS {
        return too_large(format!("an event names at most {MAX_ARTIFACTS} artifacts"));
    }
    if let Some(pair) = given.artifacts.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Error::new(Kind::Usage, format!("two artifacts are named {}", pair[0].name)));
    }
    let EventSource { actor, transport, reference, .. } = &given.source;
    for (what, stated) in [("actor", actor), ("transport", transport), ("ref", reference)] {
        if stated.as_ref().is_some_and(|stated| stated.len() > MAX_STATED) {
            return too_large(format!("the {what} of an event has at most {MAX_STATED} bytes"));
        }
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A permission that nothing here grants may be said not to be given, and no more.
fn no_authority(meaning: &Value) -> Result<()> {
    let mut found = blind::high_permissions(meaning);
    found.retain(|pointer| meaning.pointer(pointer) != Some(&Value::Bool(false)));
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::AuthorityDenied, format!("an event may not hold {}", found.join(", ")))
        .because("an event carries no authority; these are false or absent")
        .details(serde_json::json!({"pointers": found})))
}

/// What an event names must be of one piece of work: the run of the session, the handoff sent by it, and all
/// on the resource, on a part of it or on what it is part of.
fn belong_together(given: &Given) -> Result<()> {
    let mut wrong = Vec::new();
    let session = given.session.as_ref().map(|session| &session.id);
    let of_run = given.run.as_ref().map(|run| &run.session);
    if let (Some(run), Some(of), Some(session)) = (&given.run, of_run, session)
        && of != session
    {
        wrong.push(format!("run {} is of session {of}, not {session}", run.id));
    }
    if let (Some(handoff), Some(session)) = (&given.handoff, session.or(of_run))
        && handoff.source_session != *session
    {
        let source = &handoff.source_session;
        wrong.push(format!("handoff {} was sent by session {source}, not {session}", handoff.id));
    }
    let on = [
        given.session.as_ref().map(|it| (it.id.to_string(), &it.resource)),
        given.run.as_ref().map(|it| (it.id.to_string(), &it.resource)),
        given.handoff.as_ref().map(|it| (it.id.to_string(), &it.resource)),
    ];
    for (id, own) in on.into_iter().flatten() {
        if given.resource.as_ref().is_some_and(|resource| !is_part(resource, own) && !is_part(own, resource))
        {
            wrong.push(format!("{id} is on {own}"));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let about = given.resource.as_ref().map_or_else(String::new, |resource| format!(" about {resource}"));
    Err(Error::new(
        Kind::MismatchedReferences,
        format!("an event{about} names what does not belong together"),
    )
    .because(wrong.join("\n       "))
    .details(serde_json::json!({"wrong": wrong})))
}

fn is_part(part: &Name, whole: &Name) -> bool {
    let rest = part.as_str().strip_prefix(whole.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The sender says something else under a key that is taken: its value is kept beside the record of the
/// refusal, and nothing else changes.
fn conflict(turn: &mut Turn<'_>, first: (&ExternalEvent, &Value), meaning: &Value) -> Decision<Received> {
    let (event, meant) = first;
    let value = turn.blob(canonical(meaning));
    let pointers = differing(meant, meaning);
    let error = Error::new(Kind::EventConflict, format!("key {} is of event {}", event.key, event.id))
        .because(format!("want {}, got {value}; they differ at {}", event.payload_hash, pointers.join(", ")))
        .fix(format!("stop and look: nf show {}; what is new needs a key of its own", event.id))
        .details(serde_json::json!({
            "event": event.id, "want": event.payload_hash, "got": value, "pointers": pointers,
        }));
    let refused = Event::ConflictRefused {
        effect: None,
        kind: ConflictKind::Event,
        attempt: None,
        result: None,
        consumer: None,
        event: Some(event.id.clone()),
        value: Some(value),
    };
    Decision::refused(vec![refused], error)
}
