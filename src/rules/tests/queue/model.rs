//! A small model of the queue that shares nothing with the rules: lists, one pass over them for each
//! question, and clocks as plain numbers. What it says of a command is what the rules must say.

use std::collections::BTreeSet;

/// What a command comes to: done, repeated, or refused with the word of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Done,
    Again,
    Refused(&'static str),
}
use Said::{Again, Done, Refused};

mod answers;

/// Milliseconds of a relay's lease and the grace between two wall clocks.
const WEEK: i64 = 7 * 24 * 60 * 60 * 1000;
const GRACE: i64 = 30_000;

/// The clocks.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    pub wall: i64,
    pub boottime: i64,
    /// Which boot of which machine in which time namespace.
    pub boot: usize,
    /// The latest that the wall has ever shown.
    pub latest: i64,
    /// The time of the newest record.
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Queued,
    Claimed,
    Completed,
    Exhausted,
    Cancelled,
}

#[derive(Debug, Clone)]
pub struct Handoff {
    /// Its name in the world, by whose order one of several is meant.
    pub id: String,
    pub session: usize,
    pub question: usize,
    pub class: usize,
    /// A gate of its own, or the question's.
    pub gate: Option<usize>,
    pub priority: u8,
    pub ready: i64,
    pub limit: u32,
    pub ttl: i64,
    pub state: State,
    pub failures: u32,
    pub newest: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    Active,
    Completed,
    Failed,
    Released,
    Superseded,
    Revoked,
}

#[derive(Debug, Clone)]
pub struct Attempt {
    pub handoff: usize,
    pub number: u32,
    pub relay: bool,
    pub ttl: i64,
    pub start: Clock,
    /// Some claim saw that its lease had run out.
    pub seen_late: bool,
    pub state: Try,
    pub invalid: u32,
    /// Its stored answer and whether that came second.
    pub answer: Option<(&'static str, bool)>,
}

#[derive(Debug, Clone, Default)]
pub struct Question {
    pub opened: u32,
    pub answered: bool,
    /// Verdicts that could be read in any reply.
    pub verdicts: BTreeSet<&'static str>,
    /// Whether the answer follows another verdict.
    pub contested: bool,
    pub consumed: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub clock: Clock,
    pub questions: Vec<Question>,
    pub handoffs: Vec<Handoff>,
    pub attempts: Vec<Attempt>,
    /// The question that only chats and people may answer.
    pub closed: usize,
}

/// What a claim asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub class: usize,
    pub gate: Option<usize>,
    pub question: Option<usize>,
    pub chat: bool,
}

impl Model {
    fn over(&self, attempt: &Attempt) -> bool {
        let (now, start) = (&self.clock, &attempt.start);
        match now.boot == start.boot {
            true => now.boottime >= start.boottime + attempt.ttl,
            false => now.wall >= start.wall + attempt.ttl + GRACE,
        }
    }

    fn live(&self, attempt: &Attempt) -> bool {
        attempt.state == Try::Active && !attempt.seen_late && !self.over(attempt)
    }

    fn live_on(&self, question: usize) -> impl Iterator<Item = &Attempt> {
        let on = move |attempt: &&Attempt| self.handoffs[attempt.handoff].question == question;
        self.attempts.iter().filter(on).filter(|attempt| self.live(attempt))
    }

    /// The session's own handoff of a question that still waits for an answer.
    pub fn own(&self, session: usize, question: usize) -> Option<usize> {
        let open = |handoff: &Handoff| matches!(handoff.state, State::Queued | State::Claimed);
        let mine = |at: &usize| {
            let handoff = &self.handoffs[*at];
            open(handoff) && (handoff.session, handoff.question) == (session, question)
        };
        // One that was exhausted lives on with its last attempt, beside one that was opened since.
        (0..self.handoffs.len()).filter(mine).min_by_key(|at| &self.handoffs[*at].id)
    }

    fn asked(&self, question: usize, own: Option<usize>, limit: u32) -> Said {
        if self.questions[question].answered {
            return Refused("already_judged");
        }
        if self.live_on(question).any(|attempt| Some(attempt.handoff) != own) {
            return Refused("under_review");
        }
        if self.live_on(question).next().is_some() {
            return Again;
        }
        if self.questions[question].opened >= limit { Refused("exhausted") } else { Done }
    }

    pub fn open(&mut self, wish: Handoff) -> Said {
        if let Some(own) = self.own(wish.session, wish.question) {
            let held = &self.handoffs[own];
            let other_gate = wish.gate.is_some() && wish.gate != held.gate;
            let other = other_gate || wish.class != held.class;
            return if other { Refused("usage") } else { Again };
        }
        let said = self.asked(wish.question, None, wish.limit);
        if said == Done {
            self.tick();
            self.handoffs.push(wish);
        }
        said
    }

    /// Something is recorded.
    fn tick(&mut self) {
        self.clock.at = self.clock.at.max(self.clock.wall);
    }

    /// Whether a handoff may be claimed by this worker now; `strict` counts a pause that another clock has
    /// seen over as over only by this one.
    pub fn claimable(&self, at: usize, wanted: &Wanted, strict: bool) -> Said {
        let handoff = &self.handoffs[at];
        if handoff.class != wanted.class {
            return Refused("usage");
        }
        match self.asked(handoff.question, Some(at), handoff.limit) {
            Done => {}
            Again => return Refused("under_review"),
            refused => return refused,
        }
        match handoff.state {
            State::Queued | State::Claimed => {}
            State::Exhausted => return Refused("exhausted"),
            State::Completed | State::Cancelled => return Refused("handoff_cancelled"),
        }
        let now = if strict { self.clock.wall } else { self.clock.latest };
        if handoff.ready > now {
            return Refused("pending");
        }
        let allowed = handoff.question != self.closed || wanted.chat;
        if allowed { Done } else { Refused("execution_unavailable") }
    }

    /// Those among which an unnamed claim chooses, best first: of one priority, the one that was opened
    /// first.
    pub fn choice(&self, wanted: &Wanted, strict: bool) -> Vec<usize> {
        let fits = |at: &usize| {
            let handoff = &self.handoffs[*at];
            wanted.gate.is_none_or(|gate| handoff.gate == Some(gate))
                && wanted.question.is_none_or(|question| handoff.question == question)
                && self.claimable(*at, wanted, strict) == Done
        };
        let mut found: Vec<usize> = (0..self.handoffs.len()).filter(fits).collect();
        found.sort_by_key(|at| self.rank(*at));
        found
    }

    /// Whether a pause is over for one clock and not for this one: a claim may have seen that, or none.
    pub fn is_doubtful(&self, at: usize) -> bool {
        let ready = self.handoffs[at].ready;
        ready > self.clock.wall && ready <= self.clock.latest
    }

    pub fn rank(&self, at: usize) -> (u8, usize) {
        (9 - self.handoffs[at].priority, at)
    }

    /// An unnamed claim looks at every lease that has run out.
    pub fn sweep(&mut self) {
        for at in 0..self.attempts.len() {
            let attempt = &self.attempts[at];
            if attempt.state == Try::Active && !attempt.seen_late && self.over(attempt) {
                let handoff = attempt.handoff;
                self.attempts[at].seen_late = true;
                self.tick();
                if self.questions[self.handoffs[handoff].question].opened >= self.handoffs[handoff].limit {
                    self.handoffs[handoff].state = State::Exhausted;
                }
            }
        }
    }

    /// A new attempt at a handoff; an older one that was still open is overtaken.
    pub fn begin(&mut self, at: usize, relay: bool) {
        self.tick();
        self.end(at, Try::Superseded);
        let ttl = if relay { WEEK } else { self.handoffs[at].ttl };
        let number = self.attempts.iter().filter(|attempt| attempt.handoff == at).count() as u32 + 1;
        let start = self.clock.clone();
        let (seen_late, state, invalid, answer) = (false, Try::Active, 0, None);
        self.attempts.push(Attempt {
            handoff: at,
            number,
            relay,
            ttl,
            start,
            seen_late,
            state,
            invalid,
            answer,
        });
        let handoff = &mut self.handoffs[at];
        (handoff.state, handoff.newest) = (State::Claimed, Some(self.attempts.len() - 1));
        self.questions[handoff.question].opened += 1;
    }

    fn end(&mut self, handoff: usize, how: Try) -> bool {
        let newest = self.handoffs[handoff].newest;
        let Some(at) = newest.filter(|at| self.attempts[*at].state == Try::Active) else { return false };
        self.attempts[at].state = how;
        true
    }

    fn queue(&mut self, handoff: usize, ready: i64, again: bool) {
        let left = self.questions[self.handoffs[handoff].question].opened < self.handoffs[handoff].limit;
        let handoff = &mut self.handoffs[handoff];
        match again && left {
            true => (handoff.state, handoff.ready) = (State::Queued, ready),
            false => handoff.state = State::Exhausted,
        }
    }

    fn current(&self, at: usize) -> Said {
        let attempt = &self.attempts[at];
        let handoff = &self.handoffs[attempt.handoff];
        if handoff.state == State::Cancelled {
            return Refused("handoff_cancelled");
        }
        let current = handoff.newest == Some(at) && attempt.state == Try::Active;
        if current { Done } else { Refused("lease_lost") }
    }

    pub fn renew(&mut self, at: usize) -> Said {
        if self.attempts[at].state == Try::Completed {
            return Again;
        }
        let said = self.current(at);
        if said == Done {
            self.tick();
            (self.attempts[at].start, self.attempts[at].seen_late) = (self.clock.clone(), false);
            self.handoffs[self.attempts[at].handoff].state = State::Claimed;
        }
        said
    }

    pub fn release(&mut self, at: usize) -> Said {
        if matches!(self.attempts[at].state, Try::Completed | Try::Released) {
            return Again;
        }
        let said = self.current(at);
        if said == Done {
            self.tick();
            self.end(self.attempts[at].handoff, Try::Released);
            self.queue(self.attempts[at].handoff, 0, true);
        }
        said
    }

    pub fn fail(&mut self, at: usize, again: bool) -> Said {
        match self.attempts[at].state {
            Try::Completed => return Refused("lease_lost"),
            Try::Failed => return Again,
            _ => {}
        }
        let said = self.current(at);
        if said == Done {
            self.failed(at, again, true);
        }
        said
    }

    fn failed(&mut self, at: usize, again: bool, pause: bool) {
        self.tick();
        let handoff = self.attempts[at].handoff;
        self.end(handoff, Try::Failed);
        let wait = (30_000 << self.handoffs[handoff].failures.min(20)).min(3_600_000);
        self.handoffs[handoff].failures += 1;
        self.queue(handoff, if pause { self.clock.at + wait } else { 0 }, again);
    }

    pub fn revoke(&mut self, at: usize) -> Said {
        if self.handoffs[at].state == State::Completed {
            return Refused("already_judged");
        }
        if !self.end(at, Try::Revoked) {
            return Refused("lease_lost");
        }
        self.tick();
        self.queue(at, 0, true);
        Done
    }

    pub fn cancel(&mut self, at: usize) -> Said {
        match self.handoffs[at].state {
            State::Cancelled => return Again,
            State::Completed => return Refused("already_judged"),
            _ => {}
        }
        self.tick();
        self.end(at, Try::Revoked);
        self.handoffs[at].state = State::Cancelled;
        Done
    }
}
