//! The model's packets, answers and consumptions.

use super::*;

impl Model {
    pub fn packet(&mut self, session: usize, question: usize) -> Said {
        let own = self.own(session, question);
        let limit = own.map_or(10, |own| self.handoffs[own].limit);
        match self.asked(question, own, limit) {
            Done => {}
            Again if self.live_on(question).all(|attempt| attempt.relay) => return Again,
            Again => return Refused("under_review"),
            refused => return refused,
        }
        if own.is_some_and(|own| self.handoffs[own].ready > self.clock.wall) {
            return Refused("pending");
        }
        let own = own.unwrap_or_else(|| {
            self.tick();
            let state = State::Queued;
            let (class, gate, newest) = (0, None, None);
            let (priority, ready, limit, ttl, failures) = (0, 0, 10, WEEK, 0);
            self.handoffs.push(Handoff {
                id: String::new(),
                session,
                question,
                class,
                gate,
                priority,
                ready,
                limit,
                ttl,
                state,
                failures,
                newest,
            });
            self.handoffs.len() - 1
        });
        self.begin(own, true);
        Done
    }

    /// An answer with a verdict that the question knows, or with one that it does not.
    pub fn answer(&mut self, at: usize, verdict: &'static str) -> Said {
        let handoff = self.attempts[at].handoff;
        let question = self.handoffs[handoff].question;
        let known = verdict != "perhaps";
        if let Some((held, second)) = self.attempts[at].answer {
            return match held == verdict {
                true if second => Refused("surplus"),
                true => Again,
                false => self.heard(question, verdict, Refused("result_conflict")),
            };
        }
        if self.current(at) != Done {
            let said = self.current(at);
            return self.heard(question, verdict, said);
        }
        if !known {
            self.attempts[at].invalid += 1;
            self.tick();
            let relay = self.attempts[at].relay;
            if !relay || self.attempts[at].invalid == 5 {
                self.failed(at, true, !relay);
            }
            return Refused("semantic_invalid");
        }
        self.end(handoff, Try::Completed);
        self.handoffs[handoff].state = State::Completed;
        let second = self.questions[question].answered;
        self.attempts[at].answer = Some((verdict, second));
        if !second {
            let asked = &mut self.questions[question];
            (asked.answered, asked.contested) = (true, asked.verdicts.iter().any(|held| *held != verdict));
        }
        let said = if second { Refused("surplus") } else { Done };
        self.heard(question, verdict, said)
    }

    fn heard(&mut self, question: usize, verdict: &'static str, said: Said) -> Said {
        self.tick();
        if verdict != "perhaps" {
            self.questions[question].verdicts.insert(verdict);
        }
        said
    }

    /// The answer of an attempt goes to a consumer, with a reason for taking one that is contested, or none.
    pub fn consume(&mut self, at: usize, reason: bool) -> Said {
        let Some((_, second)) = self.attempts[at].answer else { return Refused("nothing") };
        let asked = &mut self.questions[self.handoffs[self.attempts[at].handoff].question];
        if second {
            return Refused("not_consumable");
        }
        if asked.consumed {
            return Again;
        }
        asked.consumed = reason || !asked.contested;
        if asked.consumed { Done } else { Refused("contested") }
    }
}
