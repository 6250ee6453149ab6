//! One piece of work from its claim to its end: each worker in turn is asked until one gives an answer,
//! whatever the answer says. Only a failure of execution goes on to the next, with the same question; a valid
//! verdict and a refused answer never do (semantic-execution contract, 09 and 10).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::Work;
use super::lease::Holding;
use super::patience::{is_passing, patient};
use super::report::{Fate, Item, no_answer};
use super::worker::Ready;
use crate::adapters::ask::{Ask, Failure};
use crate::adapters::signals::Orphans;
use crate::cli::ctx::{Context, Opened, get};
use crate::cli::handoff::claim::{Wanted, kept};
use crate::cli::load;
use crate::cli::reply::{Brought, Seen, bind, news};
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::handoff::{Handoff, HandoffState};
use crate::model::hash::Hash;
use crate::model::id::{HandoffId, Id, word};
use crate::model::witness::Witness;
use crate::rules::attempt::{Claimed, Secret};
use crate::rules::capability::gone;
use crate::rules::holding::{Failure as Reported, FailureClass, fail, release};
use crate::rules::{return_form, ways};
use crate::store::{Answer, Gathered, Position, Request};

/// A worker with whether it is still asked.
pub struct Place<'a> {
    /// The worker.
    pub ready: Ready<'a>,
    /// Why it is asked no more, once its way turned out not to be there.
    pub gone: Option<Failure>,
}

/// All that pieces of work are done with.
pub struct Spell<'a> {
    pub ctx: &'a Context,
    /// The store, as it was found for this piece of work.
    pub opened: Rc<Opened>,
    pub work: &'a Work,
    /// The workers in the order in which they are asked.
    pub places: Vec<Place<'a>>,
    /// Set by a signal: end.
    pub signalled: &'a AtomicBool,
    /// What workers leave behind.
    pub orphans: Orphans,
}

/// What became of one piece of work.
pub struct Piece {
    /// Its attempts, each by another worker.
    pub items: Vec<Item>,
    /// The error of the last one, where it is not valid.
    pub error: Option<Error>,
    /// What people are told of a valid answer.
    pub told: Vec<String>,
    /// The record of a valid answer.
    pub record: Option<Position>,
}

/// A claim that was won.
struct Won {
    claimed: Claimed,
    secret: Secret,
    ttl_ms: u64,
}

/// What one worker made of one attempt.
enum Made {
    Valid(Item, Vec<String>, Option<Position>),
    Over(Item, Error),
    Failed(Item, Error),
}

impl<'a> Spell<'a> {
    /// Does the next piece of work; nothing but the reason where there is none to be had.
    ///
    /// # Errors
    /// Those of claiming what is named, and of the store; `execution_unavailable` once no worker is left.
    pub fn piece(&mut self) -> Result<std::result::Result<Piece, Error>> {
        let mut piece = Piece { items: Vec::new(), error: None, told: Vec::new(), record: None };
        let mut handoff: Option<HandoffId> = None;
        let mut refused: Option<Error> = None;
        for at in 0..self.places.len() {
            if self.places[at].gone.is_some() || self.signalled.load(Ordering::Relaxed) {
                continue;
            }
            let won = match self.claim(at, handoff.as_ref()) {
                Ok(won) => won,
                // Another worker may be what the job allows; the first reason is the one that is told.
                Err(error) if matches!(error.kind, Kind::Pending | Kind::ExecutionUnavailable) => {
                    refused = refused.or(Some(error));
                    continue;
                }
                // The question was taken up or closed by somebody else between two workers.
                Err(_) if !piece.items.is_empty() => break,
                // Nothing is lost before a claim: whoever goes on may try again.
                Err(error) if is_passing(&error) => return Ok(Err(error)),
                Err(error) => return Err(error),
            };
            handoff = Some(won.claimed.handoff.clone());
            match self.made(at, &won)? {
                Made::Valid(item, told, record) => {
                    piece.items.push(item);
                    return Ok(Ok(Piece { error: None, told, record, ..piece }));
                }
                Made::Over(item, error) => {
                    piece.items.push(item);
                    return Ok(Ok(Piece { error: Some(error), ..piece }));
                }
                Made::Failed(item, error) => {
                    piece.items.push(item);
                    piece.error = Some(error);
                }
            }
        }
        match (piece.items.is_empty(), refused) {
            (false, _) => Ok(Ok(piece)),
            (true, Some(error)) if self.work.handoff.is_some() => Err(error),
            (true, None) if self.signalled.load(Ordering::Relaxed) => {
                Ok(Err(told_to_end("nothing was claimed")))
            }
            (true, refused) => Ok(Err(refused.unwrap_or_else(|| self.nobody()))),
        }
    }

    /// Whether a worker is left that may be asked.
    pub fn is_manned(&self) -> bool {
        self.places.iter().any(|place| place.gone.is_none())
    }

    /// The error where no worker is left.
    pub fn nobody(&self) -> Error {
        let whys = self.places.iter().filter_map(|place| {
            let failure = place.gone.as_ref()?;
            Some(format!("{}: {}: {}", place.ready.worker.name, failure.reason, failure.detail))
        });
        let whys: Vec<String> = whys.collect();
        Error::new(Kind::ExecutionUnavailable, "no worker is left").because(whys.join("\n       "))
    }

    /// The wish of a worker, for any work or for a handoff that another worker failed at.
    ///
    /// # Errors
    /// `usage` where no class is named.
    pub fn wanted<'s>(&'s self, at: usize, handoff: Option<&'s str>) -> Result<Wanted<'s>> {
        let (work, worker) = (self.work, &self.places[at].ready.worker);
        Ok(Wanted {
            class: work.class()?,
            handoff: handoff.or(work.handoff.as_deref()),
            resource: work.resource.as_ref(),
            job: work.job.as_deref(),
            gate: work.gate.as_ref(),
            worker: &worker.name,
            family: worker.family,
            ttl_ms: work.ttl,
            worker_session: work.worker_session.as_deref(),
            offer: worker.offer(),
        })
    }

    /// Claims by the same rule as `handoff claim`.
    fn claim(&self, at: usize, handoff: Option<&HandoffId>) -> Result<Won> {
        let secret = RefCell::new(Secret::default());
        let wanted = self.wanted(at, handoff.map(|id| id.as_str()))?;
        let answer = self.opened.transact(
            &self.request("claim", wanted.worker.as_str()),
            |_| Ok(Gathered::of(())),
            |turn, ()| kept(wanted.decide(&self.opened, turn)?, &secret),
        )?;
        let lease = answer.events.iter().find_map(|event| match event {
            Event::HandoffClaimed { attempt } => Some(attempt.lease.ttl_ms),
            _ => None,
        });
        let claimed = answer.outcome?;
        Ok(Won { claimed, secret: secret.into_inner(), ttl_ms: lease.unwrap_or_default() })
    }

    fn request(&self, what: &str, worker: &str) -> Request {
        Request {
            cmd: "work".to_owned(),
            op: None,
            args: json!({"act": what, "worker": worker}),
            dry_run: self.ctx.global.dry_run,
        }
    }

    /// Asks a worker the claimed question, and records what comes of it.
    fn made(&mut self, at: usize, won: &Won) -> Result<Made> {
        let (ctx, opened, signalled) = (self.ctx, self.opened.clone(), self.signalled);
        let holding = Holding {
            ctx,
            opened: &opened,
            signalled,
            attempt: won.claimed.attempt.clone(),
            nonce: Hash::of(won.secret.nonce.as_bytes()),
            ttl_ms: won.ttl_ms,
        };
        let ready = &self.places[at].ready;
        let item = Item::of(&won.claimed.handoff, &won.claimed.attempt, &ready.worker.name);
        let told = ready.is_private().then_some(won.secret.nonce.as_str());
        let schema = if ready.takes_schema() { self.schema(&won.claimed.handoff, told)? } else { None };
        let ask = Ask {
            packet: &won.secret.packet,
            schema: schema.as_ref(),
            model: ready.worker.model.as_deref(),
            limits: self.work.limits(&ready.worker),
            stop: signalled,
        };
        let (outcome, lost) = holding.ask(ready, &ask);
        self.orphans.end();
        let failure = match (outcome.answer, lost) {
            // What came before a signal, or before the attempt was lost, is an answer and not thrown away.
            (Ok(bytes), _) => {
                return bound(&holding, &bytes, &outcome.witness, item);
            }
            (Err(_), Some(error)) => {
                let item = item.because(Fate::LeaseLost, error.kind.word(), error.message.clone());
                return Ok(Made::Over(item, error));
            }
            (Err(failure), None) => failure,
        };
        if signalled.load(Ordering::Relaxed) {
            return released(&holding, item);
        }
        self.failed(at, &holding, item, failure)
    }

    /// The schema of the whole answer.
    fn schema(&self, handoff: &HandoffId, nonce: Option<&str>) -> Result<Option<Value>> {
        let state = self.opened.store.read()?.state;
        let handoff: Handoff = get(&state, handoff)?;
        let job = load::job(&state, handoff.job.as_ref())?;
        let asked = load::asked(&self.opened.store, job.as_ref(), &handoff)?;
        Ok(Some(return_form::schema(&asked, &handoff.id, nonce)))
    }

    /// Records that a worker gave no answer. The question is free at once for the next one, else after a
    /// pause.
    fn failed(&mut self, at: usize, holding: &Holding<'_>, item: Item, failure: Failure) -> Result<Made> {
        let another = self.places[at + 1..].iter().any(|place| place.gone.is_none());
        let name = self.places[at].ready.worker.name.clone();
        let asked = failure.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let reported = Reported {
            class: if failure.unavailable { FailureClass::Unavailable } else { FailureClass::Failed },
            reason: word(failure.reason)?,
            // That this way is gone says nothing of other ways.
            retryable: failure.retryable || failure.unavailable || another,
            retry_after_ms: if another { Some(0) } else { asked },
        };
        let answer = holding.last("fail", |turn, attempt, handoff| {
            let mut decision = fail(turn, attempt, handoff, &reported)?;
            if failure.unavailable {
                decision.events.extend(gone(turn, &name, &failure.detail));
            }
            Ok(decision)
        });
        let mut error =
            no_answer(&name, &failure).with("handoff", &item.handoff).with("attempt", &item.attempt);
        let fate = if failure.unavailable { Fate::ExecutionUnavailable } else { Fate::ExecutionFailed };
        let mut item = item.because(fate, failure.reason, failure.detail.clone());
        if failure.unavailable {
            self.places[at].gone = Some(failure);
        }
        match answer.and_then(|answer| answer.outcome) {
            Ok(held) => {
                item.ready_at = held.ready_at;
                if held.handoff_state == HandoffState::Exhausted {
                    let mend = if fate == Fate::ExecutionUnavailable { "mend that; " } else { "" };
                    error = error.fix(format!("{mend}{}", self.anew(&held.handoff)?));
                }
            }
            // Somebody has taken the attempt away meanwhile: nothing is left to be recorded of it.
            Err(late) if late.kind == Kind::LeaseLost || late.kind == Kind::HandoffCancelled => {
                let item = item.because(Fate::LeaseLost, late.kind.word(), late.message.clone());
                return Ok(Made::Over(item, late));
            }
            Err(other) => return Err(other),
        }
        Ok(Made::Failed(item, error))
    }

    /// What leads on from a handoff that has no attempt left: the queue does not have it again.
    fn anew(&self, handoff: &HandoffId) -> Result<String> {
        let state = self.opened.store.read()?.state;
        let handoff: Handoff = get(&state, handoff)?;
        let more = state.history(handoff.question()).opened + 1;
        Ok(format!("nf show {} tells why; {}", handoff.id, ways::anew(&state, &handoff, Some(more))))
    }
}

/// Binds an answer by the same rule as `handoff complete`.
fn bound(holding: &Holding<'_>, bytes: &[u8], witness: &Witness, item: Item) -> Result<Made> {
    let Holding { ctx, opened, attempt, nonce, ttl_ms, signalled } = holding;
    let brought = Brought {
        command: "work",
        bytes,
        whole: (Hash::of(bytes), bytes.len() as u64),
        file: None,
        seen: Some(Seen { attempt, nonce: *nonce, witness }),
    };
    let Answer { outcome, position, .. } =
        patient(ctx, *ttl_ms, signalled, || bind(ctx, opened, &brought, false))?;
    Ok(match outcome {
        Ok(bound) => Made::Valid(item.bound(&bound), news(&bound), position),
        Err(error) => {
            let fate = match error.kind {
                Kind::ExecutionFailed => Fate::ExecutionFailed,
                Kind::LeaseLost | Kind::HandoffCancelled => Fate::LeaseLost,
                _ => Fate::Refused,
            };
            let why = error.cause.clone().unwrap_or_else(|| error.message.clone());
            Made::Over(item.because(fate, error.kind.word(), why), error)
        }
    })
}

/// The error of what was not done because this program was told to end.
pub fn told_to_end(what: &str) -> Error {
    Error::new(Kind::Pending, what.to_owned())
        .because("nf work was told to end")
        .fix("nf work again: the question is the same")
}

/// Gives an attempt back, as this program was told to end.
fn released(holding: &Holding<'_>, item: Item) -> Result<Made> {
    let detail = "the program was told to end; the work is queued again";
    let error = told_to_end(&format!("{} was given back unanswered", item.handoff));
    match holding.last("release", release).and_then(|answer| answer.outcome) {
        Ok(_) => Ok(Made::Over(item.because(Fate::Released, "stopped", detail), error)),
        Err(late) if late.kind == Kind::LeaseLost || late.kind == Kind::HandoffCancelled => {
            Ok(Made::Over(item.because(Fate::LeaseLost, late.kind.word(), late.message.clone()), late))
        }
        Err(other) => Err(other),
    }
}
