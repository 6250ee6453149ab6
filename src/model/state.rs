//! The state: the fold of all events, seen only through lookups by key. [`super::fold`] writes it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoint::Checkpoint;
use super::effect::Effect;
use super::external::ExternalEvent;
use super::handoff::{Attempt, Handoff};
use super::hash::Hash;
use super::id::{
    AttemptId, CheckpointId, EffectId, EventId, HandoffId, Id, JobId, Name, ReceiptId, ResultId, RunId,
    SessionId,
};
use super::job::Job;
use super::result::{History, Judgement, Receipt, Source, StoredResult};
use super::run::Run;
use super::session::Session;
use super::tables::{Base, Key, Stored, Table, Tables};

/// What an entity is looked up by.
pub trait Entity: Stored {
    /// Its id type.
    type Id: Id;
    /// Its id.
    fn id(&self) -> &Self::Id;
    /// The word of its state, where its kind has states.
    fn state_word(&self) -> Option<&'static str> {
        None
    }
}

macro_rules! entities {
    ($($entity:ident => $id:ty $({ $state:expr })?),+ $(,)?) => {
        $(impl Entity for $entity {
            type Id = $id;
            fn id(&self) -> &$id { &self.id }
            $(fn state_word(&self) -> Option<&'static str> {
                let of: fn(&$entity) -> Option<&'static str> = $state;
                of(self)
            })?
        })+
    };
}

entities! {
    Session => SessionId { |session| Some(session.status.word()) },
    Run => RunId { |run| Some(run.status.word()) },
    Checkpoint => CheckpointId,
    Job => JobId,
    Handoff => HandoffId { |handoff| Some(handoff.state.word()) },
    Attempt => AttemptId { |attempt| Some(attempt.state.word()) },
    StoredResult => ResultId { |result| Some(result.checked.as_ref()?.standing.word()) },
    Receipt => ReceiptId,
    ExternalEvent => EventId,
    Effect => EffectId { |effect| Some(effect.state.word()) },
}

/// Counters and the position that the state covers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Sequence number of the last record applied; 0 before the first.
    pub seq: u64,
    /// Hash of the last record applied.
    pub last: Option<Hash>,
    /// Time of the last record applied.
    pub at: Option<super::time::Time>,
    /// The segment that is being written.
    pub segment: u32,
    /// Refused contradictions so far.
    pub conflicts: u64,
}

/// What a command with an operation key answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Hash of its command and request.
    pub req: Hash,
    /// Its record.
    pub seq: u64,
    /// Hash of its record.
    pub hash: Hash,
    /// Its answer.
    pub answer: Value,
}

/// The fold of all events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) tables: Tables,
    pub(super) meta: Meta,
}

pub(super) fn entity_key(id: &str) -> Key {
    Key::new(Table::Entity).raw(id)
}

impl State {
    /// The state that an index holds, or another state, with nothing changed over it yet.
    pub fn on(base: Arc<dyn Base>, meta: Meta) -> Self {
        Self { tables: Tables::on(base), meta }
    }

    /// Whether a base lies below what is held in memory.
    pub fn is_based(&self) -> bool {
        self.tables.is_based()
    }

    /// What changed over the base: the bytes of keys with their values, or with none any more.
    pub fn changes(&self) -> impl Iterator<Item = (&[u8], Option<Vec<u8>>)> {
        self.tables.changes()
    }

    /// The same, where the bytes of a value are added to others.
    pub fn written(&self) -> impl Iterator<Item = (&[u8], Option<impl FnOnce(&mut Vec<u8>)>)> {
        self.tables.written()
    }

    /// The bytes of all keys and values, in order.
    #[cfg(test)]
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = super::tables::RowBytes<'_>> {
        self.tables.all()
    }

    /// The tables, to serve as a base.
    pub fn as_base(&self) -> &dyn Base {
        &self.tables
    }

    /// The position that the state covers, and its counters.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// An entity by its id.
    pub fn get<T: Entity>(&self, id: &T::Id) -> Option<T> {
        self.tables.get(&entity_key(id.as_str()))
    }

    /// The same, where it stands if it stands in memory.
    pub(super) fn see<T: Entity>(&self, id: &T::Id) -> Option<Cow<'_, T>> {
        self.tables.see(&entity_key(id.as_str()))
    }

    /// Whether anything has this id.
    pub fn holds(&self, id: &str) -> bool {
        self.tables.holds(&entity_key(id))
    }

    /// A fingerprint of the entity as it stands, to tell whether it changed between two readings.
    pub fn stamp(&self, id: &str) -> Option<Hash> {
        self.tables.bytes(&entity_key(id)).map(|bytes| Hash::of(&bytes))
    }

    /// A row by the bytes of its key.
    #[cfg(test)]
    pub(crate) fn value_bytes(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.tables.value(key).map(std::borrow::Cow::into_owned)
    }

    /// The entity of any kind as JSON.
    pub fn value(&self, id: &str) -> Option<Value> {
        self.tables.get(&entity_key(id))
    }

    /// Up to `limit` ids that begin with a prefix (letter, `-` and the first characters), in order.
    pub fn with_prefix(&self, prefix: &str, limit: usize) -> Vec<String> {
        self.tables.endings(&entity_key(""), prefix).take(limit).collect()
    }

    /// Sessions that are not ended and are nobody's worker, oldest id first.
    pub fn open_sessions(&self) -> impl Iterator<Item = Session> {
        let ids = self.tables.scan::<SessionId>(&Key::new(Table::Open));
        ids.filter_map(|id| self.get::<Session>(&id))
    }

    /// The sessions that a session came from, nearest first; at most 1,000 generations.
    pub fn ancestors(&self, session: &Session) -> Vec<SessionId> {
        let mut all = Vec::new();
        let mut next = session.parent.clone();
        while let Some(id) = next.filter(|_| all.len() < 1000) {
            next = self.get::<Session>(&id).and_then(|parent| parent.parent);
            all.push(id);
        }
        all
    }

    /// Open handoffs whose source is a session.
    pub fn outstanding(&self, session: &SessionId) -> Vec<Handoff> {
        self.open_handoffs(session).collect()
    }

    /// The same, one after the other.
    pub fn open_handoffs(&self, session: &SessionId) -> impl Iterator<Item = Handoff> + use<'_> {
        let ids = self.tables.scan::<HandoffId>(&Key::new(Table::Outstanding).text(session.as_str()));
        ids.filter_map(|id| self.get::<Handoff>(&id))
    }

    /// The attempt whose nonce has this hash, or had it before its claim was repeated.
    pub fn attempt_of_nonce(&self, nonce: &Hash) -> Option<Attempt> {
        let id: AttemptId = self.tables.get(&Key::new(Table::Nonce).text(&nonce.hex()))?;
        self.get(&id)
    }

    /// What has happened to a question.
    pub fn history(&self, fingerprint: &str) -> History {
        self.tables.get(&Key::new(Table::History).text(fingerprint)).unwrap_or_default()
    }

    /// The attempts of a question that are not over.
    pub fn active<'a>(&'a self, history: &'a History) -> impl Iterator<Item = Attempt> + use<'a> {
        history.active.iter().filter_map(|id| self.get::<Attempt>(id))
    }

    /// Judgements under an artifact hash or a subject, newest first.
    pub fn judgements(&self, key: &str) -> impl Iterator<Item = Judgement> + use<'_> {
        let prefix = Key::new(Table::Judgement).text(key);
        self.tables.scan_back(&prefix, None)
    }

    /// The receipt of a consumer for a source.
    pub fn receipt_for(&self, source: &Source, consumer: &Name) -> Option<Receipt> {
        let key = Key::new(Table::Receipt).text(source.as_str()).text(consumer.as_str());
        let id: ReceiptId = self.tables.get(&key)?;
        self.get(&id)
    }

    /// The session that an event belongs to: the one it names, else that of its run or its handoff.
    pub fn session_of(&self, event: &ExternalEvent) -> Option<SessionId> {
        let of_run = || Some(self.see::<Run>(event.run.as_ref()?)?.session.clone());
        let of_handoff = || Some(self.see::<Handoff>(event.handoff.as_ref()?)?.source_session.clone());
        event.session.clone().or_else(of_run).or_else(of_handoff)
    }

    /// The session that a source belongs to, if any.
    pub fn session_of_source(&self, source: &Source) -> Option<SessionId> {
        match source {
            Source::Result(id) => Some(self.see::<StoredResult>(id)?.provenance.source_session.clone()),
            Source::Event(id) => self.session_of(&*self.see(id)?),
        }
    }

    /// The receipt of a consumer for a question, under any handoff.
    pub fn receipt_for_question(&self, fingerprint: &str, consumer: &Name) -> Option<Receipt> {
        let key = Key::new(Table::Question).text(fingerprint).text(consumer.as_str());
        let id: ReceiptId = self.tables.get(&key)?;
        self.get(&id)
    }

    /// The result whose stored value has this hash.
    pub fn result_of_blob(&self, hash: &Hash) -> Option<ResultId> {
        self.tables.get(&Key::new(Table::Answer).text(&hash.hex()))
    }

    /// The event that came in under a sender's key.
    pub fn event_of_key(&self, key: &Name) -> Option<ExternalEvent> {
        let id: EventId = self.tables.get(&Key::new(Table::EventKey).text(key.as_str()))?;
        self.get(&id)
    }

    /// What an operation key answered.
    pub fn answered(&self, op: &Name) -> Option<Answered> {
        self.tables.get(&Key::new(Table::Operation).text(op.as_str()))
    }
}
