//! One open session as `status` shows it: looked at with a bounded number of lookups, however much it has.

use std::collections::BTreeMap;

use super::MAX_EACH;
use super::matter::{Matter, grouped};
use crate::cli::effect::facts::open_line;
use crate::cli::output::when;
use crate::cli::resume::gate_line;
use crate::model::effect::{Effect, EffectState};
use crate::model::handoff::{Handoff, HandoffState, Transport};
use crate::model::id::{AttemptId, HandoffId, Id, IdKind, Name, ResultId, SessionId};
use crate::model::job::Job;
use crate::model::lists::Common;
use crate::model::result::{Standing, StoredResult};
use crate::model::run::{Gate, GateStatus, Run};
use crate::model::session::{Role, Session, Status};
use crate::model::state::State;
use crate::model::time::{Moment, Time};
use crate::rules::effect::of_resume;
use crate::rules::lease::MAX_INVALID;
use crate::rules::waiting::{self, Group, Stand, Waiting};
use crate::rules::ways;

/// Handoffs that were given up, of all sessions, that are looked at.
const GIVEN_UP: usize = 100;

/// A handoff whose answer is still to come.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Outstanding {
    /// The handoff.
    pub handoff: HandoffId,
    /// Its gate.
    pub gate: Name,
    /// The role that may answer.
    pub class: Role,
    /// Where it stands.
    pub stand: Stand,
    /// Its attempt that is not over.
    pub attempt: Option<AttemptId>,
    /// The name that its worker gave.
    pub worker: Option<Name>,
    /// When it was opened.
    pub opened_at: Time,
    /// When its attempt began.
    pub claimed_at: Option<Time>,
    /// Before when it is not to be claimed.
    pub ready_at: Option<Time>,
    /// How packet and answer travel, where an attempt is open.
    pub transport: Option<Transport>,
    /// Until when nobody else may ask.
    pub expires_at: Option<Time>,
    /// Replies that failed.
    pub invalid: u32,
}

/// A result that waits to be consumed.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Unconsumed {
    /// The result.
    pub result: ResultId,
    /// The gate that it would move.
    pub gate: Name,
    /// Its verdict.
    pub verdict: Option<String>,
    /// What it is good for.
    pub standing: Standing,
}

/// A session that is not ended.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct OpenSession {
    /// The session.
    pub session: SessionId,
    /// The resource.
    pub resource: Name,
    /// The task.
    pub task: Name,
    /// Its state.
    pub status: Status,
    /// Its run's cursor.
    pub cursor: Option<Name>,
    /// When its state last changed.
    pub updated_at: Time,
    /// What its gates say.
    pub gates: BTreeMap<Name, Gate>,
    /// What needs somebody, or is with somebody, each with its command.
    pub matters: Vec<Matter>,
    /// Whether there is more of something than is shown, and the command for all of it.
    pub more: Vec<String>,
    /// Handoffs whose answer is still to come.
    pub outstanding: Vec<Outstanding>,
    /// Results that wait.
    pub unconsumed: Vec<Unconsumed>,
    /// Its writes that are neither done nor cleared, and uncertain ones of the sessions before it.
    pub effects: Vec<Effect>,
    /// The command that leads on.
    pub next: String,
}

impl OpenSession {
    /// The session as a person reads it.
    pub fn lines(&self, now: Time) -> Vec<String> {
        let cursor = self.cursor.as_ref().map_or_else(String::new, |cursor| format!(", cursor {cursor}"));
        let mut lines = vec![format!(
            "{} {} {}: {}{cursor}, since {}",
            self.session,
            self.resource,
            self.task,
            self.status,
            when(self.updated_at, now)
        )];
        lines.extend(grouped(&self.matters));
        let told = |name: &Name| self.matters.iter().any(|matter| matter.id == name.as_str());
        let settled = self.gates.iter().filter(|(name, gate)| {
            !told(name) && (gate.status != GateStatus::Pending || self.matters.is_empty())
        });
        let settled: Vec<String> =
            settled.map(|(name, gate)| format!("  {}", gate_line(name.as_str(), gate))).collect();
        let left = settled.len().saturating_sub(MAX_EACH);
        lines.extend(settled.into_iter().take(MAX_EACH));
        if left > 0 {
            lines.push(format!("  and {left} more gates: nf status --session {} --json", self.session));
        }
        lines.extend(self.more.iter().map(|more| format!("  and more: {more}")));
        lines.push(format!("  next: {}", self.next));
        lines
    }
}

/// What is looked at once for all sessions.
pub struct Seen<'a> {
    state: &'a State,
    now: &'a Moment,
    given_up: Vec<Handoff>,
    /// Whether more were given up than were looked at.
    more_given_up: bool,
}

impl<'a> Seen<'a> {
    /// Looks at a state at a moment.
    pub fn of(state: &'a State, now: &'a Moment) -> Self {
        let common = Common { state: Some(HandoffState::Exhausted.word()), ..Common::default() };
        let mut rows = state.listed(IdKind::HandoffId, &common, None).fuse();
        let newest = rows.by_ref().take(GIVEN_UP);
        let given_up = newest.filter_map(|row| state.get(&row.id.parse().ok()?)).collect();
        Self { state, now, given_up, more_given_up: rows.next().is_some() }
    }

    /// One session.
    pub fn look(&self, session: Session) -> OpenSession {
        let state = self.state;
        let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
        let mut more = Vec::new();
        let mut open = state.open_handoffs(&session.id);
        let shown: Vec<Handoff> = open.by_ref().take(MAX_EACH).collect();
        if open.next().is_some() {
            more.push(format!("nf list handoff --session {}", session.id));
        }
        let mut unconsumed = unconsumed(state, &session, run.as_ref());
        if unconsumed.len() > MAX_EACH {
            unconsumed.truncate(MAX_EACH);
            more.push(format!("nf list result --session {}", session.id));
        }
        let mut effects: Vec<Effect> = state.open_effects(&session.id).take(MAX_EACH + 1).collect();
        if effects.len() > MAX_EACH {
            effects.truncate(MAX_EACH);
            more.push(format!("nf list effect --session {}", session.id));
        }
        let started = of_resume(state, &session, &[]);
        let fresh = started.into_iter().filter(|effect| effect.session != session.id);
        effects.extend(fresh.take(MAX_EACH));
        let mut matters: Vec<Matter> = unconsumed.iter().map(|result| result.matter(state)).collect();
        let mut outstanding = Vec::new();
        for handoff in shown {
            let (out, matter) = self.out(&handoff);
            matters.push(matter);
            outstanding.push(out);
        }
        let frozen = newest_unasked(state, &session);
        let carried =
            outstanding.iter().find(|out: &&Outstanding| out.transport.is_some_and(Transport::is_relay));
        let carried = carried.map(|out| out.handoff.clone());
        let expected = next(&session, run.as_ref(), &matters, carried.as_ref(), frozen.as_ref());
        matters.extend(effects.iter().map(effect_matter));
        let gates = run.as_ref().map(|run| run.pending.gates.clone()).unwrap_or_default();
        matters.extend(gates.iter().filter_map(|(name, gate)| gate_matter(name, gate)).take(MAX_EACH));
        let given_up = self.given_up.iter().filter(|handoff| {
            let gate = gates.get(&handoff.gate).and_then(|gate| gate.handoff.as_ref());
            handoff.source_session == session.id && gate.is_none_or(|newest| *newest == handoff.id)
        });
        let given_up: Vec<&Handoff> = given_up.collect();
        let stuck = given_up.iter().map(|handoff| self.out(handoff).1);
        matters.extend(stuck.filter(|matter| matter.group == Group::Stuck).take(MAX_EACH));
        if given_up.len() > MAX_EACH || self.more_given_up {
            more.push(format!("nf list handoff --session {} --state exhausted", session.id));
        }
        matters.sort_by_key(|matter| matter.group as u8);
        let uncertain = effects.iter().find(|effect| effect.state == EffectState::Started);
        let next = match uncertain {
            Some(effect) => format!("nf effect check {}", effect.key),
            None => expected,
        };
        OpenSession {
            effects,
            matters,
            more,
            resource: session.resource,
            task: session.task_mode,
            status: session.status,
            cursor: run.map(|run| run.cursor),
            updated_at: session.updated_at,
            gates,
            outstanding,
            unconsumed,
            next,
            session: session.id,
        }
    }

    fn out(&self, handoff: &Handoff) -> (Outstanding, Matter) {
        let tell = |moment: Time| when(moment, self.now.wall);
        let Waiting { stand, why, way, attempt } = waiting::look(self.state, handoff, self.now, &tell);
        let invalid = attempt.as_ref().map_or(0, |attempt| attempt.invalid);
        let group = stand.group();
        let failed =
            if invalid > 0 { format!(", {invalid} of {MAX_INVALID} invalid") } else { String::new() };
        let text = format!("handoff {} for {}: {why}{failed}", handoff.id, handoff.gate);
        let out = Outstanding {
            handoff: handoff.id.clone(),
            gate: handoff.gate.clone(),
            class: handoff.target_class.clone(),
            stand,
            attempt: attempt.as_ref().map(|attempt| attempt.id.clone()),
            worker: attempt.as_ref().and_then(|attempt| attempt.worker.clone()),
            opened_at: handoff.opened_at,
            claimed_at: attempt.as_ref().map(|attempt| attempt.claimed_at),
            ready_at: handoff.ready_at,
            transport: attempt.as_ref().map(|attempt| attempt.transport),
            expires_at: attempt.as_ref().map(|attempt| attempt.lease.expires_at()),
            invalid,
        };
        (out, Matter::of(group, IdKind::HandoffId.word(), handoff.id.as_str(), text, way))
    }
}

impl Unconsumed {
    fn matter(&self, state: &State) -> Matter {
        let verdict = self.verdict.as_deref().unwrap_or("none");
        let Self { result, gate, standing, .. } = self;
        let text = format!("unconsumed {result} for {gate} ({standing}, verdict {verdict})");
        Matter::of(
            Group::You,
            IdKind::ResultId.word(),
            result.as_str(),
            text,
            ways::after_answer(state, result),
        )
    }
}

fn effect_matter(effect: &Effect) -> Matter {
    let (group, way) = match effect.state {
        EffectState::Started => (Group::Stuck, format!("nf effect check {}", effect.key)),
        _ => (Group::You, format!("nf effect run {} -- CMD", effect.key)),
    };
    Matter::of(group, IdKind::EffectId.word(), effect.id.as_str(), open_line(effect), way)
}

/// A gate that needs somebody: a rejected one its repair, one without a route an eligible one.
fn gate_matter(name: &Name, gate: &Gate) -> Option<Matter> {
    let (group, way) = match gate.status {
        GateStatus::Rejected => {
            let route = gate.route.as_ref().map_or_else(String::new, |route| format!(" along {route}"));
            (Group::You, format!("repair{route}, then nf freeze FILE"))
        }
        GateStatus::SemanticPending => {
            let way = "nf route JOB tells why nothing is eligible; nf packet JOB asks a chat or a person";
            (Group::Stuck, way.to_owned())
        }
        GateStatus::Pending | GateStatus::Passed | GateStatus::Answered => return None,
    };
    Some(Matter::of(group, "gate", name.as_str(), gate_line(name.as_str(), gate), way))
}

fn unconsumed(state: &State, session: &Session, run: Option<&Run>) -> Vec<Unconsumed> {
    let rows = state.of_session(&session.id, IdKind::ResultId, None).take(100);
    let results = rows.filter_map(|row| state.get::<StoredResult>(&row.id.parse().ok()?));
    results
        .filter_map(|result| {
            let checked = result.checked.as_ref()?;
            let handoff = state.get::<Handoff>(&result.provenance.handoff)?;
            // A gate waits for the question that was last sent for it, and for no earlier one.
            let gate = run.and_then(|run| run.pending.gates.get(&handoff.gate));
            let newest = gate.and_then(|gate| gate.handoff.as_ref()).is_none_or(|id| *id == handoff.id);
            let open = newest
                && checked.standing != Standing::Surplus
                && !result.consumed.contains_key(&handoff.gate);
            open.then_some(Unconsumed {
                gate: handoff.gate,
                verdict: checked.verdict.value.clone(),
                standing: checked.standing,
                result: result.id,
            })
        })
        .collect()
}

/// The question that was frozen last, where nobody was asked it yet.
fn newest_unasked(state: &State, session: &Session) -> Option<Job> {
    let row = state.of_session(&session.id, IdKind::JobId, None).next()?;
    let job: Job = state.get(&row.id.parse().ok()?)?;
    let history = state.history(&job.fingerprint);
    (history.opened == 0 && history.closing(Some(&job.execution)).is_none()).then_some(job)
}

/// The command that leads on: what waits first, with the command that its own matter names.
fn next(
    session: &Session,
    run: Option<&Run>,
    matters: &[Matter],
    carried: Option<&HandoffId>,
    frozen: Option<&Job>,
) -> String {
    let of = |kind: IdKind| matters.iter().find(move |matter| matter.kind == kind.word());
    // Only a current run consumes: a session without one resumes first.
    let runs = run.is_some_and(|run| run.status.is_current());
    if let Some(result) = of(IdKind::ResultId).filter(|_| runs) {
        return result.command.clone();
    }
    let carried = carried.and_then(|id| matters.iter().find(|matter| matter.id == id.as_str()));
    if let Some(handoff) = carried.or(of(IdKind::HandoffId)) {
        return handoff.command.clone();
    }
    let rejected = run.and_then(|run| run.pending.gates.values().find(|gate| gate.route.is_some()));
    match (session.status, rejected.and_then(|gate| gate.route.as_ref())) {
        (Status::Running, Some(route)) => format!("repair along {route}, then nf freeze FILE"),
        (Status::Running, None) if frozen.is_some() => frozen.map_or_else(String::new, ways::to_ask),
        _ => crate::rules::lifecycle::way(&session.id, session.status),
    }
}
