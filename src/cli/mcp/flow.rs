//! Requests that were read and are not answered: how many there may be at once, which answers belong together
//! in a batch, and whether all is said. Reads and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::model::hash::Hash;

/// Requests that may be open at once; more are read when some are answered.
const MOST: usize = 256;
/// Bytes of open requests, beyond which no other is read.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The requests that are open.
#[derive(Default)]
pub struct Flow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: BTreeMap<String, Open>,
    /// Hashes of the ids of all that were cancelled: the answer to one may still come, and would be taken for
    /// that of another request of its id.
    cancelled: BTreeSet<Hash>,
    /// Answered, and not yet written.
    unwritten: usize,
    /// Bytes of all that are open or unwritten.
    bytes: usize,
    batches: BTreeMap<u64, Batch>,
    batches_begun: u64,
    closed: bool,
}

struct Open {
    bytes: usize,
    batch: Option<u64>,
}

/// What answers take until they are written.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Room {
    count: usize,
    bytes: usize,
}

impl Room {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Room) -> Self {
        Self { count: self.count + other.count, bytes: self.bytes + other.bytes }
    }
}

/// A batch: how many answers are still to come, and those that are there.
struct Batch {
    awaited: usize,
    answers: Vec<String>,
}

/// Whether a request may go on.
#[derive(Debug, PartialEq)]
pub enum Admitted {
    /// It is open now.
    Yes,
    /// One with the same id is open already, or was cancelled.
    Twice,
    /// Nobody reads answers any more.
    Closed,
}

impl Flow {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a request, when there is room for it.
    pub fn admit(&self, id: &str, bytes: usize, batch: Option<u64>) -> Admitted {
        let mut state = self.state();
        // The answers of a batch wait for one another: to hold back one of its requests would hold it for
        // ever.
        let count = |state: &State| state.open.len() + state.unwritten;
        let full = |state: &State| batch.is_none() && (count(state) >= MOST || state.bytes >= MOST_BYTES);
        while full(&state) && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Admitted::Closed;
        }
        if state.open.contains_key(id) || state.cancelled.contains(&Hash::of(id.as_bytes())) {
            return Admitted::Twice;
        }
        state.bytes += bytes;
        state.open.insert(id.to_owned(), Open { bytes, batch });
        Admitted::Yes
    }

    /// Begins a batch of which so many answers are to come.
    pub fn begin_batch(&self, awaited: usize) -> u64 {
        let mut state = self.state();
        state.batches_begun += 1;
        let number = state.batches_begun;
        state.batches.insert(number, Batch { awaited, answers: Vec::new() });
        number
    }

    /// Closes a request, whose id is free from now on. Gives what is to be written: the answer itself, the
    /// whole batch that it completes, or nothing; and the room that it takes until that is done.
    pub fn answer(&self, id: Option<&str>, batch: Option<u64>, text: String) -> (Option<String>, Room) {
        let mut state = self.state();
        let open = id.and_then(|id| state.open.remove(id));
        let room = open.as_ref().map_or(Room::default(), |open| Room { count: 1, bytes: open.bytes });
        state.unwritten += room.count;
        match batch.or_else(|| open.and_then(|open| open.batch)) {
            None => (Some(text), room),
            Some(number) => (state.arrived(number, Some(text)), room),
        }
    }

    /// Gives the room of answers back, when they are written.
    pub fn release(&self, room: &Room) {
        let mut state = self.state();
        state.unwritten -= room.count;
        state.bytes -= room.bytes;
        self.changed.notify_all();
    }

    /// Closes a request that was cancelled and will not be answered; gives the batch that this completes.
    pub fn forget(&self, id: &str) -> Option<String> {
        let mut state = self.state();
        let open = state.open.remove(id)?;
        state.cancelled.insert(Hash::of(id.as_bytes()));
        state.bytes -= open.bytes;
        self.changed.notify_all();
        state.arrived(open.batch?, None)
    }

    /// Waits until every request is answered, or nobody reads answers any more.
    pub fn wait_idle(&self) {
        let mut state = self.state();
        while (!state.open.is_empty() || state.unwritten > 0) && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nobody reads answers any more.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

impl State {
    fn arrived(&mut self, number: u64, answer: Option<String>) -> Option<String> {
        let batch = self.batches.get_mut(&number)?;
        batch.awaited = batch.awaited.saturating_sub(1);
        batch.answers.extend(answer);
        if batch.awaited > 0 {
            return None;
        }
        let batch = self.batches.remove(&number)?;
        (!batch.answers.is_empty()).then(|| format!("[{}]", batch.answers.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_open_once_and_a_batch_is_answered_when_all_of_it_is() {
        let flow = Flow::default();
        assert_eq!(flow.admit("1", 10, None), Admitted::Yes);
        assert_eq!(flow.admit("1", 10, None), Admitted::Twice);
        let (text, room) = flow.answer(Some("1"), None, "one".to_owned());
        assert_eq!((text.as_deref(), room), (Some("one"), Room { count: 1, bytes: 10 }));
        // Whoever has read the answer may use the id again, before the writer knows that it was read.
        assert_eq!(flow.admit("1", 10, None), Admitted::Yes);
        flow.release(&room);
        flow.release(&flow.answer(Some("1"), None, String::new()).1);
        let answer = |id, batch, text: &str| {
            let (text, room) = flow.answer(id, batch, text.to_owned());
            flow.release(&room);
            text
        };
        let batch = Some(flow.begin_batch(4));
        for id in ["a", "b", "c"] {
            assert_eq!(flow.admit(id, 1, batch), Admitted::Yes);
        }
        assert_eq!(answer(Some("b"), None, "B"), None);
        assert_eq!(answer(None, batch, "refused"), None);
        assert_eq!(flow.forget("c"), None);
        assert_eq!(answer(Some("a"), None, "A").as_deref(), Some("[B,refused,A]"));
        assert_eq!(flow.admit("c", 1, None), Admitted::Twice, "the answer to the first may still come");
        assert_eq!(flow.forget("c"), None);
        flow.wait_idle();
    }

    #[test]
    fn a_batch_of_which_all_is_cancelled_is_not_answered() {
        let flow = Flow::default();
        let batch = Some(flow.begin_batch(1));
        flow.admit("a", 1, batch);
        assert_eq!(flow.forget("a"), None);
        flow.wait_idle();
    }

    #[test]
    fn no_more_are_read_than_there_is_room_for() {
        let flow = std::sync::Arc::new(Flow::default());
        for id in 0..MOST {
            assert_eq!(flow.admit(&id.to_string(), 1, None), Admitted::Yes);
        }
        let (other, (send, receive)) = (flow.clone(), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || send.send(other.admit("more", 1, None)));
        assert!(receive.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "it waits");
        let (_, room) = flow.answer(Some("0"), None, String::new());
        assert!(receive.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "it is not written yet");
        flow.release(&room);
        assert_eq!(receive.recv(), Ok(Admitted::Yes));
        thread.join().unwrap().unwrap();
        flow.close();
        flow.wait_idle();
        assert_eq!(flow.admit("later", 1, None), Admitted::Closed);
    }
}
