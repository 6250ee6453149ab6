//! Planning a write: what stands there, what is to stand there, and what it rests on. One key, one plan; one
//! path, one open plan.

use super::Application;
use super::Seen;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{BindingKind, Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::effect::{Effect, EffectState, FileState};
use crate::model::event::{ConflictKind, Event};
use crate::model::hash::{Hash, canonical};
use crate::model::id::{CheckpointId, EffectId, Name, ReceiptId};
use crate::model::job::Polarity;
use crate::model::result::Receipt;
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::checkpoint::{self, Saved};

/// Everything that a plan is decided on.
pub struct Plan {
    /// What the effect is called.
    pub key: Name,
    /// The file, from the project root.
    pub path: String,
    /// What stands there now.
    pub before: Seen,
    /// An open effect on another path that is the same file.
    pub twin: Option<Effect>,
    /// What is to stand there after.
    pub required: Hash,
    /// The receipts that it rests on.
    pub receipts: Vec<Receipt>,
    /// Those of them that rest on a contested result.
    pub contested: Vec<ReceiptId>,
    /// The session that acts, and its current run.
    pub acting: (Session, Run),
    /// The bindings that its checkpoint carries over.
    pub bindings: Bindings,
}

/// A plan that stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Planned {
    /// `new`, or `already` for the same plan again.
    pub application: Application,
    /// The effect.
    pub effect: Effect,
    /// Receipts that rest on a contested result.
    pub contested: Vec<ReceiptId>,
    /// Names under which its path is bound: a resume will find them changed by the write.
    pub bound: Vec<Name>,
    /// The checkpoint that was saved before the write.
    pub checkpoint: Option<CheckpointId>,
}

/// Records a write before it is made.
///
/// # Errors
/// `effect_refused`: a negative receipt, nothing to write, another plan open on the path; `uncertain`: a
/// write on the path is not proved; `bad_input`: the path cannot be read; `effect_conflict` as a recorded
/// refusal.
pub fn plan(turn: &mut Turn<'_>, plan: Plan) -> Result<Decision<Planned>> {
    let mut receipts: Vec<ReceiptId> = plan.receipts.iter().map(|receipt| receipt.id.clone()).collect();
    receipts.sort();
    receipts.dedup();
    let last = turn.state.effect_of(&plan.key);
    if let Some(held) = last.as_ref().filter(|held| held.state != EffectState::Cleared) {
        let same = held.path == plan.path && held.required == plan.required && held.receipts == receipts;
        return Ok(if same { again(plan, held) } else { conflict(turn, &plan, &receipts, held) });
    }
    if let Some(negative) = plan.receipts.iter().find(|receipt| receipt.outcome.polarity == Polarity::Fail) {
        return Err(rests_on_a_refusal(negative));
    }
    let before = plan
        .before
        .clone()
        .map_err(|why| Error::new(Kind::BadInput, format!("{} cannot be guarded", plan.path)).because(why))?;
    if before == FileState::File(plan.required) {
        return Err(Error::new(Kind::EffectRefused, format!("{} is as required already", plan.path))
            .because("a plan whose before equals its after guards nothing")
            .fix("nothing needs to be written; --expect names the state after the write"));
    }
    if let Some(other) = turn.state.effect_on(&plan.path).filter(Effect::is_open) {
        return Err(open_on_the_path(&other));
    }
    if let Some(twin) = &plan.twin {
        return Err(same_file(&plan.path, twin));
    }
    let (session, run) = &plan.acting;
    let effect = Effect {
        id: turn.id()?,
        key: plan.key,
        path: plan.path,
        before,
        required: plan.required,
        receipts,
        session: session.id.clone(),
        run: run.id.clone(),
        resource: session.resource.clone(),
        state: EffectState::Planned,
        previous: last.map(|last| last.id),
        follows: None,
        followed_by: None,
        planned_at: turn.at(),
        started_at: None,
        ended_at: None,
        witness: None,
        reason: None,
    };
    let mut bindings = plan.bindings;
    let bound = bound(&bindings, &effect.path);
    drop_what_is_over(turn.state, &mut bindings);
    bindings.effects.push(effect.id.clone());
    let pending = CheckpointPending::default();
    let saved = Saved { session, run, boundary: Boundary::BeforeWrite, pending };
    let checkpoint = checkpoint::save(turn, saved, bindings)?;
    let planned = Planned {
        application: Application::New,
        effect: effect.clone(),
        contested: plan.contested,
        bound,
        checkpoint: Some(checkpoint.id.clone()),
    };
    Ok(Decision::new(vec![Event::EffectPlanned { effect }, Event::CheckpointSaved { checkpoint }], planned))
}

/// The same plan again: the same effect, and nothing is written.
fn again(plan: Plan, held: &Effect) -> Decision<Planned> {
    Decision::nothing(Planned {
        application: Application::Already,
        bound: bound(&plan.bindings, &held.path),
        effect: held.clone(),
        contested: plan.contested,
        checkpoint: None,
    })
}

/// The names under which a path is bound so that any change of it stops a resume.
fn bound(bindings: &Bindings, path: &str) -> Vec<Name> {
    let exact = bindings.artifacts.iter().filter(|bound| bound.binding == BindingKind::Exact);
    let artifacts = exact.map(|bound| (&bound.name, &bound.path));
    let authority = bindings.authority.iter().map(|bound| (&bound.name, &bound.path));
    let versions = bindings.compatibility.iter().map(|bound| (&bound.name, &bound.path));
    let all = artifacts.chain(authority).chain(versions).filter(|(_, held)| *held == path);
    all.map(|(name, _)| name.clone()).collect()
}

/// Takes out of the bindings the effects that were cleared, and those that a later write went on from; a
/// later one that is only planned may still be given up, and the path be theirs again.
pub fn drop_what_is_over(state: &State, bindings: &mut Bindings) {
    let only_planned =
        |id: &EffectId| state.get::<Effect>(id).is_some_and(|next| next.state == EffectState::Planned);
    bindings.effects.retain(|id| {
        state.get::<Effect>(id).is_some_and(|effect| {
            effect.state != EffectState::Cleared && effect.followed_by.as_ref().is_none_or(only_planned)
        })
    });
}

fn conflict(turn: &mut Turn<'_>, plan: &Plan, receipts: &[ReceiptId], held: &Effect) -> Decision<Planned> {
    let refused = serde_json::json!({"key": plan.key, "path": plan.path, "required": plan.required,
        "receipts": receipts});
    let value = turn.blob(canonical(&refused));
    let event = Event::ConflictRefused {
        event: None,
        kind: ConflictKind::Effect,
        attempt: None,
        result: None,
        consumer: None,
        effect: Some(held.id.clone()),
        value: Some(value),
    };
    let recorded = serde_json::json!({"key": held.key, "path": held.path, "required": held.required,
        "receipts": held.receipts});
    let error = Error::new(Kind::EffectConflict, format!("{} is the key of another plan", held.key))
        .because(format!("want {recorded} (effect {}), got {refused}", held.id))
        .fix(format!("stop and look: nf show {}; another write needs another key", held.id))
        .details(serde_json::json!({"effect": held.id, "want": recorded, "got": refused, "value": value}));
    Decision::refused(vec![event], error)
}

fn rests_on_a_refusal(receipt: &Receipt) -> Error {
    let verdict = receipt.outcome.value.as_deref().unwrap_or("none");
    let error = Error::new(Kind::EffectRefused, format!("receipt {} is negative", receipt.id))
        .because(format!("verdict {verdict}: a write may not rest on a verdict against it"));
    match &receipt.outcome.route {
        Some(route) => error.fix(format!("repair along {route}, then freeze and ask anew")),
        None => error.fix(format!("nf show {}", receipt.id)),
    }
}

/// One file under two names would be written twice.
pub(super) fn same_file(path: &str, twin: &Effect) -> Error {
    let error = Error::new(Kind::EffectRefused, format!("{path} is the same file as {}", twin.path));
    error.because(format!("effect {} ({}) is open on it", twin.id, twin.key)).fix(format!(
        "nf effect check {} says how that one stands; settle it, or give {path} a file of its own",
        twin.key
    ))
}

fn open_on_the_path(other: &Effect) -> Error {
    let Effect { id, key, path, .. } = other;
    if other.state == EffectState::Started {
        return Error::new(Kind::Uncertain, format!("a write to {path} is uncertain: effect {id} ({key})"))
            .because("it was started and is not done")
            .fix(format!("nf effect check {key}"));
    }
    Error::new(Kind::EffectRefused, format!("{path} has a plan already: effect {id} ({key})"))
        .because("one write to a path is planned at a time")
        .fix(format!("nf effect run {key} -- CMD, or nf effect clear {key} --reason TEXT"))
}
