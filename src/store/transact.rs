//! The one door: gather, lock, recover, decide, append one batch, make it durable, answer. The protocol
//! and its order are the store contract's; what is decided is the caller's.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Store;
use super::append::{Entry, Locked};
use super::fold::Folded;
use super::request::{Answer, Gathered, Position, Request};
use super::scan::Stop;
use crate::error::{Body, Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::hash::Hash;
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
        let mut folded = self.take_folded();
        let mut notes = Vec::new();
        self.fold_to_head(&mut folded, &mut Vec::new()).map_err(Stop::error)?;
        if let Some(answer) = repeated(&folded.state, request)? {
            return Ok(answer);
        }
        if request.dry_run {
            let gathered = gather(&folded.state)?;
            return dry_run(&folded.state, source, request, &gathered.facts, decide);
        }
        self.writable(&folded)?;
        let mut moved = String::new();
        for _ in 0..TRIES {
            let gathered = gather(&folded.state)?;
            let mut locked = self.lock()?;
            locked.catch_up(&mut folded, source)?;
            if let Some(mut answer) = repeated(&folded.state, request)? {
                answer.notes = joined(notes, locked.release()?);
                return Ok(answer);
            }
            match gathered.moved(&folded.state)? {
                None => {
                    let mut answer =
                        self.conclude(locked, &mut folded, source, request, gathered, &mut decide)?;
                    answer.notes = joined(notes, answer.notes);
                    self.keep_folded(folded);
                    return Ok(answer);
                }
                Some(what) => moved = what,
            }
            notes.extend(locked.release()?);
        }
        Err(Error::new(Kind::FactsMoved, format!("{moved} kept changing while it was read"))
            .because(format!("looked {TRIES} times")))
    }

    /// Steps 3 to 8 of the protocol, under the lock.
    #[allow(clippy::too_many_arguments, reason = "one half of the protocol, cut out for its length")]
    fn conclude<F, T>(
        &self,
        mut locked: Locked<'_>,
        folded: &mut Folded,
        source: &Source,
        request: &Request,
        gathered: Gathered<F>,
        decide: &mut impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
    ) -> Result<Answer<T>>
    where
        T: Serialize,
    {
        let mut turn = Turn::new(&folded.state, source);
        let decision = decide(&mut turn, &gathered.facts)?;
        let now = turn.now.clone();
        let blobs: Vec<Vec<u8>> = turn.take_blobs().into_iter().chain(gathered.blobs).collect();
        let (events, outcome) = (with_answer(decision.events, request, &decision.outcome), decision.outcome);
        let mut answer =
            Answer { outcome, events, position: None, notes: Vec::new(), repeated: false, dry_run: false };
        if answer.events.is_empty() {
            answer.notes = locked.release()?;
            return Ok(answer);
        }
        let req = request.op.as_ref().map(|op| (op, request.hash()));
        let entry = Entry { op: req, cmd: &request.cmd, events: &answer.events };
        let draft = locked.draft(folded, &entry, now.wall)?;
        self.no_foreign_mark(&answer.events)?;
        let mut kept = BTreeSet::new();
        for bytes in blobs {
            if kept.insert(Hash::of(&bytes)) {
                self.put_blob(&bytes)?;
            }
        }
        if let Some((attempt, text)) = &decision.packet {
            self.keep_packet(attempt, text)?;
        }
        answer.position = Some(locked.append(folded, draft, &now)?);
        self.settle(&answer.events, false, &mut locked.notes);
        if folded.place.offset >= self.segment_limit {
            // The record is durable: a segment that cannot be changed now is changed by the next writer.
            if let Err(error) = locked.rotate(folded, &now) {
                let cause = error.cause.as_deref().unwrap_or("").to_owned();
                locked.notes.push(format!("the next log segment could not be begun: {error} ({cause})"));
                folded.covered = false;
            }
        }
        answer.notes = locked.release()?;
        Ok(answer)
    }

    /// What this process folded last; the fold goes on from there.
    fn take_folded(&self) -> Folded {
        let kept = self.folded.lock().ok().and_then(|mut folded| folded.take());
        kept.filter(|folded| folded.covered).unwrap_or_else(|| self.blank())
    }

    fn keep_folded(&self, folded: Folded) {
        if let Ok(mut kept) = self.folded.lock() {
            *kept = Some(folded);
        }
    }
}

fn joined(mut notes: Vec<String>, more: Vec<String>) -> Vec<String> {
    notes.extend(more);
    notes
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
    mut decide: impl FnMut(&mut Turn<'_>, &F) -> Result<Decision<T>>,
) -> Result<Answer<T>> {
    let decision = decide(&mut Turn::new(state, source), facts)?;
    let events = with_answer(decision.events, request, &decision.outcome);
    let outcome = decision.outcome;
    Ok(Answer { outcome, events, position: None, notes: Vec::new(), repeated: false, dry_run: true })
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
    let (events, notes) = (Vec::new(), Vec::new());
    Ok(Some(Answer { outcome, events, position, notes, repeated: true, dry_run: request.dry_run }))
}
