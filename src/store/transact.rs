//! The one door: gather, lock, recover, decide, append one batch, make it durable, answer. The protocol
//! and its order are the store contract's; what is decided is the caller's.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Store;
use super::append::{Entry, Locked};
use super::group::Work;
use super::request::{Answer, Gathered, Position, Request};
use crate::error::{Body, Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Source;

/// Times that facts are gathered.
const TRIES: usize = 3;

impl Store {
    /// Decides and records one batch of events.
    ///
    /// `gather` looks at the world outside the lock, on what a reader sees; what it gives is compared again
    /// under the lock and gathered anew where it moved. `decide` is pure. An operation key that was answered
    /// gets the same answer again, before either is called.
    ///
    /// # Errors
    /// Everything that `gather` and `decide` refuse; facts that keep moving; an operation key with another
    /// request; no lock in time; damage, POISON; a failed write or sync. None of these leaves a record, but
    /// for [`Kind::NotDurable`], after which there may or may not be one.
    pub fn transact<F, T>(
        &self,
        source: &Source,
        request: &Request,
        mut gather: impl FnMut(&State) -> Result<Gathered<F>>,
        mut decide: impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
    ) -> Result<Answer<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut work = self.begin_work(!request.dry_run)?;
        let answer = self.transact_on(&mut work, source, request, &mut gather, &mut decide);
        let sure = matches!(&answer, Ok(answer) if !answer.dry_run && !answer.repeated);
        self.end_work(work, sure);
        answer
    }

    fn transact_on<F, T>(
        &self,
        work: &mut Work,
        source: &Source,
        request: &Request,
        gather: &mut impl FnMut(&State) -> Result<Gathered<F>>,
        decide: &mut impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
    ) -> Result<Answer<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let before = repeated(&work.folded.state, request);
        self.options.doubt.check()?;
        if let Some(answer) = before? {
            return Ok(answer);
        }
        if request.dry_run {
            let gathered = gather(&work.folded.state)?;
            let answer = dry_run(&work.folded.state, source, request, &gathered.facts, decide)?;
            return Ok(Answer { notes: std::mem::take(&mut work.warnings), ..answer });
        }
        self.writable(&work.folded)?;
        let mut moved = String::new();
        for _ in 0..TRIES {
            let gathered = gather(&work.folded.state);
            self.options.doubt.check()?;
            let gathered = gathered?;
            let mut locked = self.lock_for(work)?;
            let attempt = Attempt { source, request, gathered };
            let answer = attempt.under_lock(&mut locked, work, decide);
            // Whatever came of it, the lock goes back, or waits for the rest of the group.
            self.unlock_after(work, locked);
            match answer? {
                Outcome::Answered(answer) => return Ok(Answer { notes: self.take_notes(), ..*answer }),
                Outcome::Moved(what) => moved = what,
            }
        }
        Err(Error::new(Kind::FactsMoved, format!("{moved} kept changing while it was read"))
            .because(format!("looked {TRIES} times")))
    }

    /// The answer that the request's operation key got before, for a command that does more than one
    /// transaction: its key belongs to the last one, and is looked up before the first.
    ///
    /// # Errors
    /// Those of reading the store; the key was used for another request.
    pub fn answered<T: DeserializeOwned>(&self, request: &Request) -> Result<Option<Answer<T>>> {
        if request.op.is_none() {
            return Ok(None);
        }
        repeated(&self.read()?.state, request)
    }

    /// What recovery found and mended in transactions that ended in an error, for stderr; those that did
    /// not have it in their [`Answer`]. Taken once.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.lock().map(|mut notes| std::mem::take(&mut *notes)).unwrap_or_default()
    }

    pub(super) fn note(&self, released: Vec<String>) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.extend(released);
        }
    }
}

/// What one round under the lock came to.
enum Outcome<T> {
    Answered(Box<Answer<T>>),
    /// A fact is not what it was when it was gathered.
    Moved(String),
}

/// One round: what was asked and what was gathered for it.
struct Attempt<'a, F> {
    source: &'a Source,
    request: &'a Request,
    gathered: Gathered<F>,
}

impl<F> Attempt<'_, F> {
    /// Steps 2 to 8 of the protocol.
    fn under_lock<T: Serialize + DeserializeOwned>(
        self,
        locked: &mut Locked<'_>,
        work: &mut Work,
        decide: &mut impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
    ) -> Result<Outcome<T>> {
        let (store, request) = (locked.store, self.request);
        if !work.caught_up {
            locked.catch_up(&mut work.folded, self.source)?;
            work.caught_up = true;
        }
        let folded = &mut work.folded;
        if let Some(answer) = repeated(&folded.state, request)? {
            return Ok(Outcome::Answered(Box::new(answer)));
        }
        if let Some(what) = self.gathered.moved(&folded.state)? {
            return Ok(Outcome::Moved(what));
        }
        let mut turn = Turn::new(&folded.state, self.source);
        let decided = decide(&mut turn, &self.gathered.facts);
        // Nothing is decided on rows of which neither the index nor the log says what they are.
        store.options.doubt.check()?;
        let decision = decided?;
        let now = turn.now.clone();
        let blobs = turn.take_blobs().into_iter().chain(self.gathered.blobs);
        let events = with_answer(decision.events, request, &decision.outcome);
        let mut answer = Answer::of(decision.outcome, events);
        if answer.events.is_empty() {
            return Ok(Outcome::Answered(Box::new(answer)));
        }
        let req = request.op.as_ref().map(|op| (op, request.hash()));
        let entry = Entry { op: req, cmd: &request.cmd, events: &answer.events };
        let draft = locked.draft(folded, &entry, now.wall)?;
        store.no_foreign_mark(&answer.events)?;
        store.put_blobs(blobs)?;
        if let Some((attempt, text)) = &decision.packet {
            store.keep_packet(attempt, text)?;
        }
        let record = locked.append_only(folded, draft, &answer.events)?;
        answer.position = Some(Position { seq: record.seq, hash: record.hash });
        let full = folded.place.offset >= store.segment_limit;
        // Most processes end after one record, and nobody asks for a state that holds it.
        work.spent = !store.options.group && !full && !folded.is_due();
        if !work.spent {
            folded.state.apply(&record);
        }
        if full || !store.options.group {
            locked.settle(folded, &now)?;
        }
        if full && let Err(error) = locked.rotate(folded, &now) {
            // The record is durable: a segment that cannot be followed now is followed by the next writer.
            let cause = error.cause.as_deref().unwrap_or("").to_owned();
            locked.notes.push(format!("the next log segment could not be begun: {error} ({cause})"));
            folded.covered = false;
            work.caught_up = false;
        }
        if !store.options.group {
            locked.index(&mut work.folded);
        }
        Ok(Outcome::Answered(Box::new(answer)))
    }
}

/// The events of a decision, with the answer that the operation key will give again.
fn with_answer<T: Serialize>(mut events: Vec<Event>, request: &Request, outcome: &Result<T>) -> Vec<Event> {
    if request.op.is_some() && !events.is_empty() {
        let answer = match outcome {
            Ok(data) => json!({"ok": true, "data": data}),
            Err(error) => json!({"ok": false, "error": error.body()}),
        };
        events.push(Event::OpAnswered { answer });
    }
    events
}

fn dry_run<F, T: Serialize>(
    state: &State,
    source: &Source,
    request: &Request,
    facts: &F,
    decide: &mut impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
) -> Result<Answer<T>> {
    let decision = decide(&mut Turn::new(state, source), facts)?;
    let events = with_answer(decision.events, request, &decision.outcome);
    Ok(Answer { dry_run: true, ..Answer::of(decision.outcome, events) })
}

/// The answer that the operation key got before; `None` where it is new.
///
/// # Errors
/// The key was used for another request.
fn repeated<T: DeserializeOwned>(state: &State, request: &Request) -> Result<Option<Answer<T>>> {
    let Some(op) = &request.op else { return Ok(None) };
    let Some(before) = state.answered(op) else { return Ok(None) };
    let req = request.hash();
    if before.req != req {
        let error = Error::new(Kind::OpConflict, format!("operation {op} was another request"));
        return Err(error
            .because(format!("recorded {}, given {req}", before.req))
            .details(json!({"seq": before.seq, "recorded": before.req, "given": req})));
    }
    let unknown = || {
        Error::new(Kind::NewerFormat, format!("the answer recorded for operation {op} cannot be read"))
            .because(format!("record {}", before.seq))
    };
    let outcome = if before.answer.get("ok") == Some(&Value::Bool(true)) {
        let data = before.answer.get("data").cloned().unwrap_or_default();
        Ok(serde_json::from_value::<T>(data).map_err(|_| unknown())?)
    } else {
        let error = before.answer.get("error").cloned().unwrap_or_default();
        Err(Error::from(serde_json::from_value::<Body>(error).map_err(|_| unknown())?))
    };
    let position = Some(Position { seq: before.seq, hash: before.hash });
    Ok(Some(Answer { position, repeated: true, dry_run: request.dry_run, ..Answer::of(outcome, Vec::new()) }))
}
