//! `status`: what waits on whom, and the command for it.

use std::collections::BTreeMap;

use clap::Args;

use super::ctx::Context;
use super::effect::facts::open_line;
use super::output::{Done, Report, count, when};
use super::resume::gate_line;
use crate::error::Result;
use crate::model::effect::{Effect, EffectState};
use crate::model::handoff::{Attempt, Handoff, Transport};
use crate::model::id::{HandoffId, IdKind, Name, ResultId, SessionId};
use crate::model::result::{Standing, StoredResult};
use crate::model::run::{Gate, Run};
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::model::time::Time;
use crate::rules::effect::of_resume;
use crate::rules::lease::MAX_INVALID;
use crate::store::Position;

/// Show what waits on whom
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf status\n  nf status --json")]
pub struct StatusCommand {}

/// Sessions that one answer shows.
const MAX_SESSIONS: usize = 100;

/// A packet that is out.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Outstanding {
    /// The handoff.
    pub handoff: HandoffId,
    /// Its gate.
    pub gate: Name,
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
    /// Packets that are out.
    pub outstanding: Vec<Outstanding>,
    /// Results that wait.
    pub unconsumed: Vec<Unconsumed>,
    /// Its writes that are neither done nor cleared, and uncertain ones of the sessions before it.
    pub effects: Vec<Effect>,
    /// The command that leads on.
    pub next: String,
}

/// The whole picture.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct StatusReport {
    /// Sessions that are not ended.
    pub sessions: Vec<OpenSession>,
    /// Whether there are more than are shown.
    pub more: bool,
    /// The newest session, where it was left behind and nothing was begun from it.
    pub left: Option<SessionId>,
    /// Contradictions that were refused so far.
    pub conflicts: u64,
    /// The newest record.
    pub head: Option<Position>,
    /// The moment of the picture.
    pub now: Time,
}

impl Report for StatusReport {
    const COMMAND: &'static str = "status";

    fn answer(&self) -> String {
        let mut lines = Vec::new();
        for session in &self.sessions {
            let cursor =
                session.cursor.as_ref().map_or_else(String::new, |cursor| format!(", cursor {cursor}"));
            lines.push(format!(
                "{} {} {}: {}{cursor}, since {}",
                session.session,
                session.resource,
                session.task,
                session.status,
                when(session.updated_at, self.now)
            ));
            lines.extend(
                session.gates.iter().map(|(name, gate)| format!("  {}", gate_line(name.as_str(), gate))),
            );
            lines.extend(session.outstanding.iter().map(|out| self.outstanding_line(out)));
            lines.extend(session.unconsumed.iter().map(|result| {
                let verdict = result.verdict.as_deref().unwrap_or("none");
                format!(
                    "  unconsumed {} for {} ({}, verdict {verdict})",
                    result.result, result.gate, result.standing
                )
            }));
            lines.extend(session.effects.iter().map(|effect| format!("  {}", open_line(effect))));
            lines.push(format!("  next: {}", session.next));
        }
        if self.sessions.len() > 1 {
            lines.push(
                "several sessions are open: give --session ID or set NF_SESSION; nf session move ID \
                 terminated ends one"
                    .to_owned(),
            );
        }
        if self.more {
            lines.push(format!("more than {MAX_SESSIONS} open sessions: nf list session"));
        }
        if self.conflicts > 0 {
            let refused = count(self.conflicts as usize, "contradiction");
            lines.push(format!("refused so far: {refused} (nf log shows conflict.refused)"));
        }
        if lines.is_empty() {
            lines.push("no open session".to_owned());
        }
        lines.join("\n")
    }

    fn next(&self) -> Option<String> {
        if let Some(left) = &self.left {
            return Some(format!("nf start --from {left}, or nf start --resource R --task T"));
        }
        self.sessions.is_empty().then(|| "nf start --resource R --task T".to_owned())
    }
}

impl StatusReport {
    fn outstanding_line(&self, out: &Outstanding) -> String {
        let open = match (out.transport, out.expires_at) {
            (Some(transport), Some(until)) => {
                if until < self.now {
                    let ended = when(until, self.now);
                    format!(
                        "the time of its packet for {transport} ran out {ended}; an answer is still taken"
                    )
                } else {
                    format!("packet for {transport} is out until {}", when(until, self.now))
                }
            }
            _ => "no packet is out".to_owned(),
        };
        let invalid = if out.invalid > 0 {
            format!(", {} of {MAX_INVALID} invalid", out.invalid)
        } else {
            String::new()
        };
        format!("  outstanding {} for {}: {open}{invalid}", out.handoff, out.gate)
    }
}

impl StatusCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let snapshot = opened.store.read()?;
        let state = &snapshot.state;
        let named = ctx.named_session(state)?;
        let mut sessions: Vec<Session> = match named {
            Some(session) => vec![session],
            None => state.open_sessions().take(MAX_SESSIONS + 1).collect(),
        };
        let more = sessions.len() > MAX_SESSIONS;
        sessions.truncate(MAX_SESSIONS);
        let left = if sessions.is_empty() { left_behind(state) } else { None };
        let report = StatusReport {
            left,
            sessions: sessions.into_iter().map(|session| look(state, session)).collect(),
            more,
            conflicts: state.meta().conflicts,
            head: snapshot.position,
            now: (opened.source.moment)().wall,
        };
        Ok(Done::of(&report).warned(snapshot.warnings))
    }
}

/// The newest session that is nobody's worker, if it was left behind.
fn left_behind(state: &State) -> Option<SessionId> {
    let rows = state.of_kind(IdKind::SessionId, None).take(100);
    let mut own = rows.filter_map(|row| state.get::<Session>(&row.id.parse().ok()?));
    let newest = own.find(|session| session.worker_of.is_none())?;
    (newest.status == Status::Stale).then_some(newest.id)
}

fn look(state: &State, session: Session) -> OpenSession {
    let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
    let outstanding: Vec<Outstanding> =
        state.outstanding(&session.id).into_iter().map(|handoff| out(state, handoff)).collect();
    let unconsumed = unconsumed(state, &session, run.as_ref());
    let mut effects: Vec<Effect> = state.open_effects(&session.id).collect();
    let started = of_resume(state, &session, &[]);
    effects.extend(started.into_iter().filter(|effect| effect.session != session.id));
    let uncertain = effects.iter().find(|effect| effect.state == EffectState::Started);
    let next = match uncertain {
        Some(effect) => format!("nf effect check {}", effect.key),
        None => next(&session, run.as_ref(), &outstanding, &unconsumed),
    };
    OpenSession {
        effects,
        resource: session.resource,
        task: session.task_mode,
        status: session.status,
        cursor: run.as_ref().map(|run| run.cursor.clone()),
        updated_at: session.updated_at,
        gates: run.map(|run| run.pending.gates).unwrap_or_default(),
        outstanding,
        unconsumed,
        next,
        session: session.id,
    }
}

fn out(state: &State, handoff: Handoff) -> Outstanding {
    let attempt = handoff.attempt.as_ref().and_then(|id| state.get::<Attempt>(id));
    let active =
        attempt.as_ref().filter(|attempt| attempt.state == crate::model::handoff::AttemptState::Active);
    Outstanding {
        handoff: handoff.id,
        gate: handoff.gate,
        transport: active.map(|attempt| attempt.transport),
        expires_at: active.map(|attempt| attempt.lease.expires_at()),
        invalid: attempt.map_or(0, |attempt| attempt.invalid),
    }
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

fn next(session: &Session, run: Option<&Run>, out: &[Outstanding], unconsumed: &[Unconsumed]) -> String {
    // Only a current run consumes: a session without one resumes first.
    let runs = run.is_some_and(|run| run.status.is_current());
    if let Some(result) = unconsumed.first().filter(|_| runs) {
        let contested = if result.standing == Standing::Contested { " --contested REASON" } else { "" };
        return format!("nf consume {} --as {}{contested}", result.result, result.gate);
    }
    match out.first() {
        Some(out) if out.transport == Some(Transport::Import) => {
            format!("nf import RESULT; nf export {} shows its file again", out.handoff)
        }
        Some(out) if out.transport.is_some() => {
            format!("nf reply with the answer; nf packet {} shows the packet again", out.handoff)
        }
        Some(out) => format!("nf packet {}", out.handoff),
        None => {
            let rejected = run.and_then(|run| run.pending.gates.values().find(|gate| gate.route.is_some()));
            match (session.status, rejected.and_then(|gate| gate.route.as_ref())) {
                (Status::Running, Some(route)) => format!("repair along {route}, then nf freeze FILE"),
                _ => crate::rules::lifecycle::way(&session.id, session.status),
            }
        }
    }
}
