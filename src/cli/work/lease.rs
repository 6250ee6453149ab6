//! The lease of an attempt that is being worked on: it is renewed while the worker runs, and the worker is
//! ended when the attempt is no longer this one's, or when this program is told to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;

use crate::adapters::ask::{Ask, Failure, Outcome};
use crate::cli::ctx::{Context, Opened, get};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::{Attempt, AttemptState, Handoff};
use crate::model::hash::Hash;
use crate::model::id::AttemptId;
use crate::model::witness::Witness;
use crate::rules::holding::{Held, renew};
use crate::store::{Answer, Gathered, Request};

use super::patience::patient;
use super::worker::Ready;

/// How often signals are looked at while a worker runs.
const LOOK: Duration = Duration::from_millis(50);
/// How soon a renewal is tried again that did not come through.
const AGAIN_MS: u64 = 1000;

/// An attempt that this process holds.
pub struct Holding<'a> {
    pub ctx: &'a Context,
    pub opened: &'a Opened,
    /// The attempt.
    pub attempt: AttemptId,
    /// BLAKE3 of its nonce, which proves that it is this one's.
    pub nonce: Hash,
    /// How long its lease lasts, in milliseconds.
    pub ttl_ms: u64,
    /// Set by a signal: end.
    pub signalled: &'a AtomicBool,
}

impl Holding<'_> {
    /// One act of the holder, recorded as work.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn act(
        &self,
        what: &str,
        decide: impl Fn(&Turn<'_>, &Attempt, &Handoff) -> Result<Decision<Held>>,
    ) -> Result<Answer<Held>> {
        let request = Request {
            cmd: "work".to_owned(),
            op: None,
            args: json!({"act": what, "attempt": self.attempt}),
            dry_run: false,
        };
        self.opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| {
                let attempt: Attempt = get(turn.state, &self.attempt)?;
                let handoff: Handoff = get(turn.state, &attempt.handoff)?;
                if attempt.nonce_hash != self.nonce {
                    let changed = format!("the nonce of attempt {} is another one now", attempt.id);
                    return Err(Error::new(Kind::LeaseLost, changed));
                }
                decide(turn, &attempt, &handoff)
            },
        )
    }

    /// The last act of the holder, which is kept until the store can take it.
    ///
    /// # Errors
    /// As [`Holding::act`].
    pub fn last(
        &self,
        what: &str,
        decide: impl Fn(&Turn<'_>, &Attempt, &Handoff) -> Result<Decision<Held>>,
    ) -> Result<Answer<Held>> {
        patient(self.ctx, self.ttl_ms, self.signalled, || self.act(what, &decide))
    }

    /// Asks a worker and keeps the lease meanwhile. Beside the outcome, why the attempt is no longer this
    /// one's.
    pub fn ask(&self, ready: &Ready<'_>, ask: &Ask<'_>) -> (Outcome, Option<Error>) {
        let stop = AtomicBool::new(false);
        let own = Ask { stop: &stop, ..*ask };
        let (sender, receiver) = channel();
        let mut lost = None;
        let outcome = std::thread::scope(|scope| {
            // The child lives no longer than the thread that started it, and that one waits for its end.
            scope.spawn(|| drop(sender.send(ready.ask(&own))));
            let mut due = self.boottime() + self.third();
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(outcome) => return outcome,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return broken(),
                }
                if self.signalled.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
                if lost.is_none() && !stop.load(Ordering::Relaxed) && self.boottime() >= due {
                    due = self.boottime() + self.third();
                    match self.renewed() {
                        Ok(()) => {}
                        Err(error) if is_lost(error.kind) => {
                            stop.store(true, Ordering::Relaxed);
                            lost = Some(error);
                        }
                        // A store that is busy or full says nothing of the lease; it is asked again soon.
                        Err(_) => due = self.boottime() + AGAIN_MS.min(self.third()),
                    }
                }
            }
        });
        (outcome, lost)
    }

    fn renewed(&self) -> Result<()> {
        let held = self.act("renew", |turn, attempt, handoff| renew(turn, attempt, handoff, None))?.outcome?;
        match held.state {
            AttemptState::Active => Ok(()),
            state => Err(Error::new(Kind::LeaseLost, format!("attempt {} is {state}", self.attempt))),
        }
    }

    fn third(&self) -> u64 {
        (self.ttl_ms / 3).max(1)
    }

    /// The machine's own clock, which goes on also where a testing store's stands still.
    fn boottime(&self) -> u64 {
        (self.ctx.source.moment)().boottime_ms
    }
}

/// Whether a refusal means that the attempt may act no more.
fn is_lost(kind: Kind) -> bool {
    matches!(kind, Kind::LeaseLost | Kind::HandoffCancelled | Kind::UnknownId)
}

/// An adapter that went without a word.
fn broken() -> Outcome {
    Outcome {
        answer: Err(Failure::failed("broken", true, "the adapter broke off")),
        witness: Witness::default(),
    }
}
