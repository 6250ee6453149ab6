//! Lists: the objects of a kind in the order of their making, by what they belong to and by their state. Rows
//! of one object stand at one place in all of them, so that what several lists have in common is found by
//! leaping from the one to the other. A fold like all of the state.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fold::Position;
use super::id::{Id, IdKind, JobId, Name, SessionId};
use super::state::{Entity, State};
use super::tables::{Key, Ready, Table};

/// A row of a list: an id and where in the order it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The id.
    pub id: String,
    /// Its place: sequence number of the record × 2^12 + number of the event in it.
    pub place: u64,
}

impl Row {
    fn ready(id: &str, place: u64) -> Arc<Ready> {
        // What serde would write of it: two of five rows that a fold makes are these.
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = place;
        while rest > 0 || first == digits.len() {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Ready::of([b"{\"id\":\"", id.as_bytes(), b"\",\"place\":", &digits[first..], b"}"].concat())
    }
}

/// Where an object stands in the lists, and by which state it is found there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Placed {
    place: u64,
    state: Option<Cow<'static, str>>,
}

impl Placed {
    fn new(place: u64, state: Option<&'static str>) -> Self {
        Self { place, state: state.map(Cow::Borrowed) }
    }
}

/// What the objects of a list have in common; without anything, all of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Common<'a> {
    /// The session that they belong to.
    pub session: Option<&'a SessionId>,
    /// The resource that they are about.
    pub resource: Option<&'a Name>,
    /// The job that they are about; of jobs, the one itself.
    pub job: Option<&'a JobId>,
    /// The word of their state.
    pub state: Option<&'a str>,
}

fn of_kind(kind: IdKind) -> Key {
    Key::new(Table::Kind).text(kind.word())
}

fn of_session(session: &SessionId, kind: IdKind) -> Key {
    Key::new(Table::Member).text(session.as_str()).text(kind.word())
}

fn of_resource(resource: &Name, kind: IdKind) -> Key {
    Key::new(Table::Resource).text(resource.as_str()).text(kind.word())
}

fn of_job(job: &JobId, kind: IdKind) -> Key {
    Key::new(Table::Job).text(job.as_str()).text(kind.word())
}

fn of_state(kind: IdKind, word: &str) -> Key {
    Key::new(Table::State).text(kind.word()).text(word)
}

fn placed_key(id: &str) -> Key {
    Key::new(Table::Placed).text(id)
}

impl Common<'_> {
    /// The lists in each of which a row must stand.
    fn lists(&self, kind: IdKind) -> Vec<Key> {
        let narrower = [
            self.session.map(|session| of_session(session, kind)),
            self.job.map(|job| of_job(job, kind)),
            self.resource.map(|resource| of_resource(resource, kind)),
            self.state.map(|word| of_state(kind, word)),
        ];
        let lists: Vec<Key> = narrower.into_iter().flatten().collect();
        if lists.is_empty() { vec![of_kind(kind)] } else { lists }
    }
}

/// The rows that stand in each of several lists, newest first.
struct Leaping<'a> {
    state: &'a State,
    lists: Vec<Key>,
    before: Option<u64>,
}

impl Iterator for Leaping<'_> {
    type Item = Row;

    /// Each list in turn is asked for its newest row up to the place that the one before it named, until all
    /// name the same.
    fn next(&mut self) -> Option<Row> {
        let mut named: Option<Row> = None;
        let mut agree = 0;
        for list in self.lists.iter().cycle() {
            let before = named.as_ref().map(|row| row.place.saturating_add(1)).or(self.before);
            let row = self.state.rows(list, before).next()?;
            agree = if named.as_ref().is_some_and(|named| named.place == row.place) { agree + 1 } else { 1 };
            if agree == self.lists.len() {
                self.before = Some(row.place);
                return Some(row);
            }
            named = Some(row);
        }
        None
    }
}

/// Lookups.
impl State {
    /// Ids of a kind that have something in common, newest first, from before a place where one is given. As
    /// cheap as the shortest list that has them.
    pub fn listed(
        &self,
        kind: IdKind,
        common: &Common<'_>,
        before: Option<u64>,
    ) -> impl Iterator<Item = Row> + use<'_> {
        Leaping { state: self, lists: common.lists(kind), before }
    }

    /// Ids of a kind, newest first, from before a place where one is given.
    pub fn of_kind(&self, kind: IdKind, before: Option<u64>) -> impl Iterator<Item = Row> + use<'_> {
        self.rows(&of_kind(kind), before)
    }

    /// Ids of a kind that belong to a session, newest first.
    pub fn of_session(
        &self,
        session: &SessionId,
        kind: IdKind,
        before: Option<u64>,
    ) -> impl Iterator<Item = Row> + use<'_> {
        self.rows(&of_session(session, kind), before)
    }

    fn rows(&self, list: &Key, before: Option<u64>) -> impl Iterator<Item = Row> + use<'_> {
        let before = before.map(|place| list.clone().number(place));
        self.tables.scan_back(list, before.as_ref())
    }
}

/// The fold's side.
impl State {
    /// A new object enters the lists.
    pub(super) fn enlisted<T: Entity>(
        &mut self,
        entity: &T,
        session: Option<&SessionId>,
        resource: Option<&Name>,
        at: Position,
    ) {
        let kind = T::Id::KIND;
        let id = entity.id().as_str();
        let row = Row::ready(id, at.place);
        self.tables.put_ready(of_kind(kind).number(at.place), &row);
        if let Some(session) = session {
            self.tables.put_ready(of_session(session, kind).number(at.place), &row);
        }
        if let Some(resource) = resource {
            self.tables.put_ready(of_resource(resource, kind).number(at.place), &row);
        }
        let moves = matches!(
            kind,
            IdKind::SessionId
                | IdKind::RunId
                | IdKind::HandoffId
                | IdKind::AttemptId
                | IdKind::ResultId
                | IdKind::EffectId
        );
        if moves || kind == IdKind::JobId {
            let before = self.tables.get::<Placed>(&placed_key(id));
            let now = Placed::new(at.place, entity.state_word());
            self.stands(kind, &row, before.as_ref(), &now);
            self.tables.put_own(placed_key(id), now);
        }
    }

    /// A new object is about a job.
    pub(super) fn about<T: Entity>(&mut self, job: Option<&JobId>, entity: &T, at: Position) {
        let Some(job) = job else { return };
        let row = Row::ready(entity.id().as_str(), at.place);
        self.tables.put_ready(of_job(job, T::Id::KIND).number(at.place), &row);
    }

    /// A known job is another session's too; it keeps its place.
    pub(super) fn member_too(&mut self, session: &SessionId, job: &JobId) {
        if let Some(Placed { place, .. }) = self.tables.get(&placed_key(job.as_str())) {
            let row = Row::ready(job.as_str(), place);
            self.tables.put_ready(of_session(session, IdKind::JobId).number(place), &row);
        }
    }

    /// An object has come to another state.
    pub(super) fn sorted<T: Entity>(&mut self, id: &T::Id, state: Option<&'static str>) {
        let id = id.as_str();
        let mut before = None;
        self.tables.change(placed_key(id), |placed: &mut Placed| {
            let now = Placed::new(placed.place, state);
            before = Some(std::mem::replace(placed, now));
        });
        if let Some(before) = before {
            let now = Placed::new(before.place, state);
            self.stands(T::Id::KIND, &Row::ready(id, before.place), Some(&before), &now);
        }
    }

    /// The row under the state that was goes, one under the state that is comes.
    fn stands(&mut self, kind: IdKind, row: &Arc<Ready>, before: Option<&Placed>, now: &Placed) {
        if let Some(Placed { place, state: Some(word) }) = before {
            self.tables.delete(of_state(kind, word).number(*place));
        }
        if let Some(word) = &now.state {
            self.tables.put_ready(of_state(kind, word).number(now.place), row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_as_serde_writes_it() {
        for place in [0, 9, 10, 4096, 1 << 53, u64::MAX] {
            let row = Row { id: "s-0123456789ab".into(), place };
            let known = Ready::of(serde_json::to_vec(&row).unwrap());
            assert_eq!(Row::ready(&row.id, place), known);
        }
    }
}
