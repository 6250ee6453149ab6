//! `resume` validates everything afresh and goes on, or says what changed.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use super::ctx::{Context, Opened, find, get, only};
use super::effect::facts::{Look, for_resume};
use super::input::{Reader, config};
use super::load;
use super::output::{Done, Report, checks};
use crate::error::Result;
use crate::model::capability::Capability;
use crate::model::check::failed;
use crate::model::checkpoint::{Bindings, Checkpoint};
use crate::model::decision::{Decision, Turn};
use crate::model::effect::Effect;
use crate::model::handoff::{Attempt, Handoff};
use crate::model::id::Name;
use crate::model::run::{Gate, Run};
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::rules::checkpoint::carry;
use crate::rules::resume::{Difference, Observed, Resume, Resumed, Returned, resume};
use crate::store::Gathered;

/// Validate everything afresh and go on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf resume\n  nf resume -n                what would happen\n  \
    nf resume s-4q2m --interrupted   after a crash")]
pub struct ResumeCommand {
    /// The session; may be left out while exactly one can be resumed
    #[arg(id = "which", value_name = "SESSION")]
    pub session: Option<String>,
    /// End the run that a dead shell left behind, then resume
    #[arg(long)]
    pub interrupted: bool,
    /// Resume from this checkpoint; an older one than the newest is refused
    #[arg(long, value_name = "ID")]
    pub checkpoint: Option<String>,
}

/// Where the work goes on.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ResumeReport(Resumed);

impl Report for ResumeReport {
    const COMMAND: &'static str = "resume";

    fn answer(&self) -> String {
        let mut lines = vec![format!("cursor {}", self.0.cursor)];
        for entry in &self.0.context {
            let reread = if self.0.reread.contains(&entry.name) { "  (changed: read again)" } else { "" };
            let path = entry.path.as_deref().unwrap_or("-");
            lines.push(format!("context {} {path} {}{reread}", entry.name, entry.hash));
        }
        lines.extend(self.0.gates.iter().map(|(name, gate)| gate_line(name.as_str(), gate)));
        lines
            .extend(self.0.unconsumed.iter().map(|(result, gate)| format!("unconsumed {result} for {gate}")));
        lines.join("\n")
    }

    fn news(&self) -> Vec<String> {
        let mut news = checks(&self.0.checks);
        let held = self.0.checks.iter().filter(|check| check.ok).count();
        news.push(format!(
            "{held} of {} checks; session {} is {}, run {}",
            self.0.checks.len(),
            self.0.session,
            self.0.status,
            self.0.run
        ));
        news
    }

    fn next(&self) -> Option<String> {
        if let Some(way) = &self.0.way {
            return Some(way.clone());
        }
        let route = self.0.gates.values().find_map(|gate| gate.route.as_ref());
        Some(match route {
            Some(route) => format!("repair along {route}, then nf freeze FILE"),
            None => crate::rules::lifecycle::way(&self.0.session, self.0.status),
        })
    }
}

/// A gate in one line.
pub fn gate_line(name: &str, gate: &Gate) -> String {
    let verdict = gate.verdict.as_ref().map_or_else(String::new, |verdict| format!(", verdict {verdict}"));
    let route = gate.route.as_ref().map_or_else(String::new, |route| format!(", repair route {route}"));
    format!("gate {name} {}{verdict}{route}", gate.status)
}

/// What was read before the lock; it holds for the session as it stood then.
struct Facts {
    session: Session,
    checkpoint: Option<Checkpoint>,
    bindings: Bindings,
    observed: Observed,
    effects: Vec<(Effect, Look)>,
    returned: Vec<Returned>,
    carried: Bindings,
}

impl ResumeCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request = ctx.request(
            "resume",
            json!({"session_id": self.session, "interrupted": self.interrupted, "checkpoint": self.checkpoint,
                "run": ctx.global.run}),
        );
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, state),
            |turn, facts: &Facts| self.decide(ctx, turn, facts),
        )?;
        Done::written(answer, ResumeReport)
    }

    /// The session that is named, else the only one that can be resumed, else the only one at all: its
    /// refusal says more than "no candidate".
    fn session(&self, ctx: &Context, state: &State) -> Result<Session> {
        if let Some(text) = &self.session {
            return find(state, text);
        }
        if let Some(session) = ctx.named_session(state)? {
            return Ok(session);
        }
        let ready = |session: &Session| {
            matches!(
                session.status,
                Status::Idle | Status::AwaitingUser | Status::AwaitingExternal | Status::Failed
            )
        };
        let resumable: Vec<Session> = state.open_sessions().filter(ready).collect();
        if resumable.is_empty() {
            return ctx.session(state);
        }
        only("session", resumable, |session| {
            format!("{} {} {} ({})", session.id, session.resource, session.task_mode, session.status)
        })
        .map_err(|error| error.fix("nf resume SESSION"))
    }

    fn gather(&self, ctx: &Context, opened: &Opened, state: &State) -> Result<Gathered<Facts>> {
        let session = self.session(ctx, state)?;
        let checkpoint = match &self.checkpoint {
            Some(text) => Some(find::<Checkpoint>(state, text)?),
            None => session.checkpoint.as_ref().and_then(|id| state.get::<Checkpoint>(id)),
        };
        let bindings = match &checkpoint {
            Some(checkpoint) => load::bindings(&opened.store, checkpoint)?,
            None => Bindings::default(),
        };
        let mut reader = Reader::new(&opened.project);
        let observed = observe(opened, &mut reader, &bindings);
        // What the config declares anew is added only if it can be read; what is held is checked above.
        let declared = reader.declared(&config(&opened.store)?, &bindings)?;
        let returned = returned(opened, state, &session)?;
        let seen = vec![(session.id.to_string(), state.stamp(&session.id.to_string()))];
        let carried = carry(&bindings, &declared);
        let effects = for_resume(opened, state, &session, &bindings);
        let mut files = reader.stamps;
        files.extend(effects.iter().filter_map(|(_, look)| look.stamp.clone()));
        let facts = Facts { session, checkpoint, bindings, observed, effects, returned, carried };
        let mut gathered = Gathered::of(facts);
        gathered.files = files;
        gathered.seen = seen;
        Ok(gathered)
    }

    fn decide(&self, ctx: &Context, turn: &mut Turn<'_>, facts: &Facts) -> Result<Decision<Resumed>> {
        let state = turn.state;
        let session: Session = get(state, &facts.session.id)?;
        let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
        let outstanding = state.outstanding(&session.id).into_iter().map(|handoff| {
            let attempt = handoff.attempt.as_ref().and_then(|id| state.get::<Attempt>(id));
            (handoff, attempt)
        });
        let effects = crate::rules::effect::of_resume(state, &session, &facts.bindings.effects);
        let effects = effects.into_iter().map(|effect| {
            let look = facts.effects.iter().find(|(seen, _)| seen.id == effect.id);
            let seen = look.map_or_else(|| Err("not read".to_owned()), |(_, look)| look.seen.clone());
            (effect, seen)
        });
        let input = Resume {
            evidence: evidence(state, &facts.bindings),
            effects: effects.collect(),
            outstanding: outstanding.collect(),
            session,
            run,
            checkpoint: facts.checkpoint.clone(),
            bindings: facts.bindings.clone(),
            observed: facts.observed.clone(),
            interrupted: self.interrupted,
            expected_run: ctx.expected_run(state)?,
            expected_version: ctx.global.expect_version,
            returned: facts.returned.clone(),
            carried: facts.carried.clone(),
        };
        resume(turn, input)
    }
}

/// The newest evidence of every capability that the bindings name.
fn evidence(state: &State, bindings: &Bindings) -> BTreeMap<Name, Capability> {
    let named = bindings.capabilities.iter();
    named.filter_map(|name| Some((name.clone(), state.capability(name.as_str())?))).collect()
}

/// Reads every bound file; what cannot be read is a finding of the check, not a failed command.
fn observe(opened: &Opened, reader: &mut Reader<'_>, bindings: &Bindings) -> Observed {
    let mut observed = Observed::default();
    for artifact in &bindings.artifacts {
        let read = reader.bytes(&artifact.path, artifact.lines, super::input::MAX_BOUND);
        let seen = read.map_err(|error| error.cause.unwrap_or(error.message));
        let (seen, difference) = match seen {
            Ok(bytes) => {
                let hash = crate::model::hash::Hash::of(&bytes);
                let before =
                    (hash != artifact.hash).then(|| opened.store.blob(&artifact.hash).ok()).flatten();
                (Ok(hash), before.map(|before| Difference::between(&before, &bytes)))
            }
            Err(why) => (Err(why), None),
        };
        observed.artifacts.insert(artifact.place(), (seen, difference));
    }
    let mut hash = |path: &str, pointer: Option<&str>| {
        reader.hash(path, pointer).map_err(|error| error.cause.unwrap_or(error.message))
    };
    for bound in &bindings.authority {
        observed.authority.insert(bound.name.clone(), hash(&bound.path, None));
    }
    for bound in &bindings.compatibility {
        observed.compatibility.insert(bound.name.clone(), hash(&bound.path, bound.pointer.as_deref()));
    }
    for bound in &bindings.approvals {
        observed.approvals.insert(bound.reference.clone(), hash(&bound.path, None));
    }
    observed
}

/// The results that came back for the session's gates, each bound again from its bytes.
fn returned(opened: &Opened, state: &State, session: &Session) -> Result<Vec<Returned>> {
    let run = session.run.as_ref().and_then(|run| state.get::<Run>(run));
    let gates = run.map(|run| run.pending.gates).unwrap_or_default();
    let mut all = Vec::new();
    for (name, gate) in gates {
        let Some(handoff) = gate.handoff.as_ref().and_then(|id| state.get::<Handoff>(id)) else { continue };
        let Some(result) = handoff.result.as_ref().and_then(|id| state.get(id)) else { continue };
        let evidence = load::evidence(&opened.store, state, result)?;
        let surplus = evidence
            .result
            .checked
            .as_ref()
            .is_some_and(|checked| checked.standing == crate::model::result::Standing::Surplus);
        if surplus {
            continue;
        }
        all.push(Returned {
            consumed: evidence.result.consumed.contains_key(&name),
            failed: failed(&evidence.checks()),
            result: evidence.result.id,
            gate: name,
        });
    }
    Ok(all)
}
