//! The two shapes of rule meet the store here: a [`Turn`] is what a decision may know and draw, a
//! [`Decision`] what it says. Neither touches a disk or a clock.

use super::event::{Event, INLINE_TEXT, Text};
use super::hash::Hash;
use super::id::{AttemptId, ID_LENGTH, Id, NONCE_LENGTH, base32};
use super::state::State;
use super::time::{Moment, Source, Time};
use crate::error::{Error, Kind, Result};

/// What a decision is taken on: the state at the log's head, the moment, and fresh ids.
pub struct Turn<'a> {
    /// The state that the next record will stand on.
    pub state: &'a State,
    /// One reading of all clocks.
    pub now: Moment,
    source: &'a Source,
    drawn: Vec<String>,
    blobs: Vec<Vec<u8>>,
}

impl<'a> Turn<'a> {
    /// A turn on a state.
    pub fn new(state: &'a State, source: &'a Source) -> Self {
        Self { state, now: (source.moment)(), source, drawn: Vec::new(), blobs: Vec::new() }
    }

    /// The sequence number that the record of this turn will have.
    pub fn seq(&self) -> u64 {
        self.state.meta().seq + 1
    }

    /// The time that the record of this turn will have: never earlier than the one before.
    pub fn at(&self) -> Time {
        self.state.meta().at.map_or(self.now.wall, |before| before.max(self.now.wall))
    }

    fn draw(&mut self, length: usize) -> Result<String> {
        let mut bytes = [0u8; 32];
        let drawn = (self.source.random)(&mut bytes);
        drawn.ok_or_else(|| Error::new(Kind::Io, "the system gave no random bytes"))?;
        // Mixed with the position, so that a seeded source never repeats itself from record to record.
        let mixed = Hash::of_parts(&[&base32(&bytes, 51), &self.seq().to_string()]);
        Ok(base32(mixed.bytes(), length))
    }

    /// A new id that nothing in the store has.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn id<T: Id>(&mut self) -> Result<T> {
        loop {
            let id = format!("{}-{}", T::KIND.letter(), self.draw(ID_LENGTH)?);
            if !self.state.holds(&id) && !self.drawn.contains(&id) {
                self.drawn.push(id.clone());
                return Ok(T::from_text(id));
            }
        }
    }

    /// A new nonce of 130 bits.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn nonce(&mut self) -> Result<String> {
        self.draw(NONCE_LENGTH)
    }

    /// Keeps bytes as a blob of this turn and gives their hash.
    pub fn blob(&mut self, bytes: Vec<u8>) -> Hash {
        let hash = Hash::of(&bytes);
        self.blobs.push(bytes);
        hash
    }

    /// A user's text, as the log keeps it: a long one becomes a blob.
    pub fn text(&mut self, text: &str) -> Text {
        if text.len() <= INLINE_TEXT {
            Text::Inline(text.to_owned())
        } else {
            Text::Blob(self.blob(text.as_bytes().to_vec()))
        }
    }

    /// The blobs kept so far.
    pub fn blobs(&self) -> &[Vec<u8>] {
        &self.blobs
    }

    /// Takes the blobs kept so far; what the store makes durable before it appends.
    pub fn take_blobs(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.blobs)
    }
}

/// What a decision says: the events of one batch and the answer. The outcome may be a refusal whose
/// events are recorded all the same; an `Err` beside a decision records nothing.
#[derive(Debug)]
pub struct Decision<T> {
    /// The batch; empty where there is nothing to record.
    pub events: Vec<Event>,
    /// A packet to keep while its attempt is open.
    pub packet: Option<(AttemptId, String)>,
    /// The answer, or a refusal.
    pub outcome: Result<T>,
}

impl<T> Decision<T> {
    /// Events and their answer.
    pub fn new(events: Vec<Event>, outcome: T) -> Self {
        Self { events, packet: None, outcome: Ok(outcome) }
    }

    /// An answer with nothing to record.
    pub fn nothing(outcome: T) -> Self {
        Self::new(Vec::new(), outcome)
    }

    /// A refusal whose events are recorded.
    pub fn refused(events: Vec<Event>, error: Error) -> Self {
        Self { events, packet: None, outcome: Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::SessionId;

    fn source() -> Source {
        let moment = Moment {
            wall: Time::from_micros(1_000_000),
            machine: "m".into(),
            boot_id: "b".into(),
            namespace: "n".into(),
            boottime_ms: 5,
        };
        Source::fixed(moment, "seed".into())
    }

    #[test]
    fn ids_and_nonces_are_fresh() {
        let (state, source) = (State::default(), source());
        let mut turn = Turn::new(&state, &source);
        let (one, two) = (turn.id::<SessionId>().unwrap(), turn.id::<SessionId>().unwrap());
        assert_ne!(one, two);
        let nonce = turn.nonce().unwrap();
        assert!(crate::model::id::is_base32(&nonce, NONCE_LENGTH));
        assert_ne!(nonce, turn.nonce().unwrap());
    }

    #[test]
    fn long_texts_become_blobs() {
        let (state, source) = (State::default(), source());
        let mut turn = Turn::new(&state, &source);
        assert_eq!(turn.text("short"), Text::Inline("short".into()));
        let long = "x".repeat(INLINE_TEXT + 1);
        assert_eq!(turn.text(&long), Text::Blob(Hash::of(long.as_bytes())));
        assert_eq!(turn.take_blobs(), [long.into_bytes()]);
    }

    #[test]
    fn no_random_bytes_is_an_error() {
        let (state, mut source) = (State::default(), source());
        source.random = Box::new(|_| None);
        assert!(Turn::new(&state, &source).nonce().is_err());
    }
}
