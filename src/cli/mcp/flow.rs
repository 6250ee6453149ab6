//! Requests that were read and are not answered: how many there may be at once, which answers belong together
//! in a batch, and whether all is said. Reads and writes nothing.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
    bytes: usize,
    batches: BTreeMap<u64, Batch>,
    batches_begun: u64,
    closed: bool,
}

struct Open {
    bytes: usize,
    batch: Option<u64>,
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
    /// One with the same id is open already.
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
        // The answers of a batch wait for one another: to hold back one of its requests would hold it for ever.
        let full = |state: &State| batch.is_none() && (state.open.len() >= MOST || state.bytes >= MOST_BYTES);
        while full(&state) && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Admitted::Closed;
        }
        if state.open.contains_key(id) {
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

    /// What is to be written now that this answer is there: itself, the whole batch it completes, or nothing.
    pub fn answer(&self, id: Option<&str>, batch: Option<u64>, text: String) -> Option<String> {
        let mut state = self.state();
        match batch.or_else(|| state.open.get(id?)?.batch) {
            None => Some(text),
            Some(number) => state.arrived(number, Some(text)),
        }
    }

    /// Closes requests whose answers are written.
    pub fn release(&self, ids: &[String]) {
        let mut state = self.state();
        for id in ids {
            if let Some(open) = state.open.remove(id) {
                state.bytes -= open.bytes;
            }
        }
        self.changed.notify_all();
    }

    /// Closes a request that was cancelled and will not be answered; gives the batch that this completes.
    pub fn forget(&self, id: &str) -> Option<String> {
        let mut state = self.state();
        let open = state.open.remove(id)?;
        state.bytes -= open.bytes;
        self.changed.notify_all();
        state.arrived(open.batch?, None)
    }

    /// Waits until every request is answered, or nobody reads answers any more.
    pub fn wait_idle(&self) {
        let mut state = self.state();
        while !state.open.is_empty() && !state.closed {
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
        assert_eq!(flow.answer(Some("1"), None, "one".to_owned()).as_deref(), Some("one"));
        flow.release(&["1".to_owned()]);
        assert_eq!(flow.admit("1", 10, None), Admitted::Yes);
        flow.release(&["1".to_owned()]);
        let batch = Some(flow.begin_batch(4));
        for id in ["a", "b", "c"] {
            assert_eq!(flow.admit(id, 1, batch), Admitted::Yes);
        }
        assert_eq!(flow.answer(Some("b"), None, "B".to_owned()), None);
        assert_eq!(flow.answer(None, batch, "refused".to_owned()), None);
        assert_eq!(flow.forget("c"), None);
        assert_eq!(flow.answer(Some("a"), None, "A".to_owned()).as_deref(), Some("[B,refused,A]"));
        assert_eq!(flow.forget("c"), None);
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
        flow.release(&["0".to_owned()]);
        assert_eq!(receive.recv(), Ok(Admitted::Yes));
        thread.join().unwrap().unwrap();
        flow.close();
        flow.wait_idle();
        assert_eq!(flow.admit("later", 1, None), Admitted::Closed);
    }
}
