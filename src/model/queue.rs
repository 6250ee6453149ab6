//! The queue: which handoffs can be claimed now, later, or again once a lease has run out. A fold like all of
//! the state, kept so that the next one is found at once however many wait behind it.

use std::iter::Peekable;

use super::handoff::{Attempt, Handoff, HandoffState, Lease, terms_allow};
use super::id::{AttemptId, HandoffId, JobId, Name};
use super::job::{Family, Grade, Job};
use super::session::Role;
use super::state::State;
use super::tables::{Key, Table};
use super::time::{Moment, Time};

/// The highest priority.
pub const MAX_PRIORITY: u8 = 9;

/// What a worker asks for besides its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Anything.
    All,
    /// Work on a resource.
    Resource(Name),
    /// Work for a gate.
    Gate(Name),
    /// The question of a job.
    Job(JobId),
}

impl Filter {
    fn key(&self, class: &Role) -> Key {
        let (word, value) = match self {
            Filter::All => ("all", ""),
            Filter::Resource(name) => ("resource", name.as_str()),
            Filter::Gate(name) => ("gate", name.as_str()),
            Filter::Job(job) => ("job", super::id::Id::as_str(job)),
        };
        Key::new(Table::Ready).text(&class.to_string()).text(word).text(value)
    }
}

/// Milliseconds as a key takes them.
fn number(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or(0)
}

/// Where a handoff stands in the order of claims: priority, then the order of the log, which is that of age
/// also where the clock stands still.
pub fn order(handoff: &Handoff) -> (u8, u64) {
    (MAX_PRIORITY.saturating_sub(handoff.priority), handoff.place)
}

fn placed(key: Key, handoff: &Handoff) -> Key {
    let (priority, place) = order(handoff);
    key.text(&handoff.terms).number(priority.into()).number(place).text(super::id::Id::as_str(&handoff.id))
}

fn ready_keys(handoff: &Handoff) -> Vec<Key> {
    let filters = [
        Some(Filter::All),
        Some(Filter::Resource(handoff.resource.clone())),
        Some(Filter::Gate(handoff.gate.clone())),
        handoff.job.clone().map(Filter::Job),
    ];
    let filters = filters.into_iter().flatten();
    filters.map(|filter| placed(filter.key(&handoff.target_class), handoff)).collect()
}

fn waiting_key(handoff: &Handoff, from: Time) -> Key {
    let class = Key::new(Table::Waiting).text(&handoff.target_class.to_string());
    class.number(number(from.millis())).text(super::id::Id::as_str(&handoff.id))
}

fn asked_key(handoff: &Handoff) -> Key {
    let key = Key::new(Table::Asked).text(handoff.question());
    key.number(handoff.place).text(super::id::Id::as_str(&handoff.id))
}

fn lapsed_key(attempt: &AttemptId) -> Key {
    Key::new(Table::Lapsed).text(super::id::Id::as_str(attempt))
}

/// The rows of a lease: by the clock of its boot, and by the wall for all other clocks.
fn lease_keys(class: &Role, attempt: &AttemptId, lease: &Lease) -> [Key; 2] {
    let key = Key::new(Table::Lease).text(&class.to_string()).text(&lease.clock());
    let id = super::id::Id::as_str(attempt);
    [
        key.clone().text("boot").number(lease.boottime_end()).text(id),
        key.text("wall").number(number(lease.wall_end())).text(id),
    ]
}

/// Handoffs of several terms, in the one order.
struct Merged<I: Iterator<Item = Handoff>>(Vec<Peekable<I>>);

impl<I: Iterator<Item = Handoff>> Iterator for Merged<I> {
    type Item = Handoff;

    fn next(&mut self) -> Option<Handoff> {
        let first = self.0.iter_mut().enumerate().filter_map(|(at, rows)| Some((order(rows.peek()?), at)));
        let (_, at) = first.min()?;
        self.0[at].next()
    }
}

/// Lookups.
impl State {
    /// Handoffs that can be claimed now by a worker of a class and family whose answers are at best of a
    /// grade, in the order of claims.
    pub fn ready(
        &self,
        class: &Role,
        filter: &Filter,
        family: Family,
        best: Grade,
    ) -> impl Iterator<Item = Handoff> {
        let prefix = filter.key(class);
        let terms = self.tables.texts(&prefix).into_iter().filter(|terms| terms_allow(terms, family, best));
        let rows = terms.map(|terms| {
            let ids = self.tables.scan::<HandoffId>(&prefix.clone().text(&terms));
            ids.filter_map(|id| self.get::<Handoff>(&id)).peekable()
        });
        Merged(rows.collect())
    }

    /// A handoff that could be claimed now, though not by such a worker.
    pub fn ready_for_others(
        &self,
        class: &Role,
        filter: &Filter,
        family: Family,
        best: Grade,
    ) -> Option<Handoff> {
        let prefix = filter.key(class);
        let terms = self.tables.texts(&prefix).into_iter().find(|terms| !terms_allow(terms, family, best))?;
        let id = self.tables.scan::<HandoffId>(&prefix.text(&terms)).next()?;
        self.get(&id)
    }

    /// Handoffs of a class whose pause is over, the longest over first.
    pub fn due(&self, class: &Role, now: &Moment) -> impl Iterator<Item = Handoff> {
        let prefix = Key::new(Table::Waiting).text(&class.to_string());
        let ids = self.tables.scan_to::<HandoffId>(&prefix, number(now.wall.millis()));
        ids.filter_map(|id| self.get::<Handoff>(&id))
    }

    /// Handoffs of a class that wait for their moment or in a pause, the one that is over first.
    pub fn paused(&self, class: &Role) -> impl Iterator<Item = Handoff> {
        let ids = self.tables.scan::<HandoffId>(&Key::new(Table::Waiting).text(&class.to_string()));
        ids.filter_map(|id| self.get::<Handoff>(&id))
    }

    /// Active attempts whose lease may have run out, those of a class first, then the earliest end first.
    /// Those of other classes too: a worker of another class may have left a question that waits here.
    pub fn lapsing(&self, class: &Role, now: &Moment) -> impl Iterator<Item = Attempt> {
        let class = class.to_string();
        let others = self.tables.texts(&Key::new(Table::Lease)).into_iter().filter({
            let class = class.clone();
            move |other| *other != class
        });
        let classes: Vec<String> = std::iter::once(class.clone()).chain(others).collect();
        classes.into_iter().flat_map(move |class| self.lapsing_of(class, now))
    }

    fn lapsing_of(&self, class: String, now: &Moment) -> impl Iterator<Item = Attempt> {
        let prefix = Key::new(Table::Lease).text(&class);
        let own = super::handoff::clock(&now.machine, &now.boot_id, &now.namespace);
        let clocks = self.tables.texts(&prefix).into_iter();
        clocks.flat_map(move |clock| {
            let (word, end) = match clock == own {
                true => ("boot", now.boottime_ms),
                false => ("wall", number(now.wall.millis())),
            };
            let ids = self.tables.scan_to::<AttemptId>(&prefix.clone().text(&clock).text(word), end);
            ids.filter_map(|id| self.get::<Attempt>(&id))
        })
    }

    /// Active attempts whose lease was seen to have run out.
    pub fn lapsed(&self) -> impl Iterator<Item = Attempt> {
        let ids = self.tables.scan::<AttemptId>(&Key::new(Table::Lapsed));
        ids.filter_map(|id| self.get::<Attempt>(&id))
    }

    /// Handoffs whose question is this one and still to be answered, the oldest first.
    pub fn asking(&self, question: &str) -> impl Iterator<Item = Handoff> {
        let ids = self.tables.scan::<HandoffId>(&Key::new(Table::Asked).text(question));
        ids.filter_map(|id| self.get::<Handoff>(&id))
    }
}

/// The fold's side.
impl State {
    pub(super) fn asked(&mut self, handoff: &Handoff) {
        self.tables.put(asked_key(handoff), &handoff.id);
    }

    pub(super) fn no_longer_asked(&mut self, handoff: &Handoff) {
        self.unqueue(handoff);
        self.tables.delete(asked_key(handoff));
    }

    /// Takes a handoff out of the queue, before something changes by which it is found there.
    pub(super) fn unqueue(&mut self, handoff: &Handoff) {
        for key in ready_keys(handoff) {
            self.tables.delete(key);
        }
        if let Some(from) = handoff.ready_at {
            self.tables.delete(waiting_key(handoff, from));
        }
    }

    pub(super) fn leased(&mut self, attempt: &Attempt) {
        if let Some(handoff) = self.get::<Handoff>(&attempt.handoff) {
            for key in lease_keys(&handoff.target_class, &attempt.id, &attempt.lease) {
                self.tables.put(key, &attempt.id);
            }
        }
    }

    pub(super) fn no_longer_leased(&mut self, attempt: &Attempt) {
        self.tables.delete(lapsed_key(&attempt.id));
        if let Some(handoff) = self.get::<Handoff>(&attempt.handoff) {
            for key in lease_keys(&handoff.target_class, &attempt.id, &attempt.lease) {
                self.tables.delete(key);
            }
        }
    }

    /// A lease was seen to have run out.
    pub(super) fn lease_lapsed(&mut self, attempt: &Attempt) {
        self.no_longer_leased(attempt);
        self.tables.put(lapsed_key(&attempt.id), &attempt.id);
    }

    /// Puts every handoff of a question where it belongs, after something about the question has changed: a
    /// question is out once at a time, and not again once it has its answer or has used its attempts.
    pub(super) fn settle(&mut self, question: &str, at: Time) {
        let handoffs: Vec<Handoff> = self.asking(question).collect();
        if handoffs.is_empty() {
            return;
        }
        let history = self.history(question);
        let live = self.active(&history).filter(|attempt| !attempt.lapsed).count();
        for handoff in handoffs {
            self.unqueue(&handoff);
            let open = matches!(handoff.state, HandoffState::Queued | HandoffState::Claimed);
            if !open || live > 0 || history.opened >= handoff.max_attempts {
                continue;
            }
            let job = handoff.job.as_ref().and_then(|id| self.get::<Job>(id));
            if history.closing(job.as_ref().map(|job| &job.execution)).is_some() {
                continue;
            }
            match handoff.ready_at.filter(|from| *from > at) {
                Some(from) => self.tables.put(waiting_key(&handoff, from), &handoff.id),
                None => ready_keys(&handoff).into_iter().for_each(|key| self.tables.put(key, &handoff.id)),
            }
        }
    }
}
