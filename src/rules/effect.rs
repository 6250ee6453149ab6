//! The guard of a consequential write: planned with the state before and the state required after, started
//! at most once, done only where the path proves it (session-runtime contract, 08 and 12; control-plane
//! contract, 07 and 11). A write that was started and is not proved is uncertain, and is never run again.

use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::effect::{Effect, EffectState, FileState, Witness};
use crate::model::event::Event;
use crate::model::id::EffectId;
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;

mod plan;

pub use super::once::Application;
pub use plan::{Plan, Planned, drop_what_is_over, plan};

/// What stands at the path of an effect now, or why that cannot be said.
pub type Seen = std::result::Result<FileState, String>;

crate::words! {
    /// What log and path say of an effect together.
    EffectStatus {
        /// Nothing was started, and the path is as it was planned.
        Untouched = "untouched",
        /// Started, and neither done nor cleared.
        Started = "started",
        /// The path holds the required state, or a later effect went on from it.
        Applied = "applied",
        /// The path holds what no record explains.
        Diverged = "diverged",
    }
}

/// What log and path say of an effect together.
pub fn status(effect: &Effect, now: &Seen) -> EffectStatus {
    let holds = |wanted: FileState| now.as_ref() == Ok(&wanted);
    match effect.state {
        EffectState::Started => EffectStatus::Started,
        EffectState::Done if effect.followed_by.is_some() => EffectStatus::Applied,
        _ if holds(FileState::File(effect.required)) => EffectStatus::Applied,
        EffectState::Done => EffectStatus::Diverged,
        EffectState::Planned | EffectState::Cleared if holds(effect.before) => EffectStatus::Untouched,
        EffectState::Planned | EffectState::Cleared => EffectStatus::Diverged,
    }
}

/// What the path holds, in words.
pub fn held(effect: &Effect, now: &Seen) -> String {
    match now {
        Ok(state) if *state == FileState::File(effect.required) => "the required state".to_owned(),
        Ok(state) if *state == effect.before => "what it held before".to_owned(),
        Ok(FileState::File(hash)) => format!("{}, neither before nor after", hash.short()),
        Ok(FileState::Nothing(_)) => "nothing".to_owned(),
        Err(why) => format!("what cannot be read ({why})"),
    }
}

/// Why the work cannot go on while an effect stands so; nothing where it can.
pub fn unproved(effect: &Effect, now: &Seen) -> Option<Error> {
    let Effect { id, key, path, .. } = effect;
    let held = held(effect, now);
    let error = match status(effect, now) {
        EffectStatus::Untouched | EffectStatus::Applied => return None,
        EffectStatus::Started => {
            let fix = if now.as_ref() == Ok(&FileState::File(effect.required)) {
                format!("once its command has ended: nf effect done {key}")
            } else {
                format!(
                    "look at {path} once its command has ended; nf effect done {key} when it is as required, \
                     or nf effect clear {key} --reason TEXT, then plan anew"
                )
            };
            Error::new(Kind::Uncertain, format!("effect {id} ({key}) is uncertain: started and not done"))
                .because(format!("{path} holds {held}; whether its command wrote, or will, nothing proves"))
                .fix(fix)
        }
        EffectStatus::Diverged => {
            let fix = if effect.state == EffectState::Done {
                let session = &effect.session;
                format!(
                    "restore {path}, or leave the session behind: nf session move {session} stale, then nf \
                     start --from {session}"
                )
            } else {
                format!("restore {path}, or nf effect clear {key} --reason TEXT and plan anew")
            };
            Error::new(Kind::Diverged, format!("effect {id} ({key}) has diverged: {path} holds {held}"))
                .because(match effect.state {
                    EffectState::Done => format!("want {}", effect.required),
                    _ => format!("want {} before, or {} after", effect.before, effect.required),
                })
                .fix(fix)
        }
    };
    Some(error.details(serde_json::json!({"effect": id, "key": key, "path": path,
        "status": status(effect, now), "now": now.as_ref().ok()})))
}

/// Refuses a session that neither planned the effect nor came from one that did.
///
/// # Errors
/// `effect_refused`.
pub fn own(state: &State, acting: &Session, effect: &Effect) -> Result<()> {
    if acting.id == effect.session || state.ancestors(acting).contains(&effect.session) {
        return Ok(());
    }
    let error = Error::new(
        Kind::EffectRefused,
        format!("session {} planned effect {}, not {}", effect.session, effect.id, acting.id),
    );
    Err(error.fix(format!("give --session {}, or one that was begun from it", effect.session)))
}

/// What came of a step of an effect.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Stepped {
    /// `new`, or `already` where it had been recorded before.
    pub application: Application,
    /// The effect, as the step leaves it.
    pub effect: Effect,
    /// What log and path say of it now.
    pub status: EffectStatus,
}

impl Stepped {
    fn of(application: Application, effect: Effect, now: &Seen) -> Self {
        Self { application, status: status(&effect, now), effect }
    }
}

fn not_cleared(effect: &Effect) -> Result<()> {
    if effect.state == EffectState::Cleared {
        return Err(Error::new(
            Kind::EffectRefused,
            format!("effect {} ({}) was cleared", effect.id, effect.key),
        )
        .because("what was given up is neither run nor done")
        .fix(format!(
            "nf effect plan --key {} --path {} --expect HASH|FILE plans it anew, from what is there now",
            effect.key, effect.path
        )));
    }
    Ok(())
}

/// `effect run`, before its command: at most one command is ever started for an effect.
///
/// # Errors
/// `uncertain`, `diverged`; `effect_refused` where the path is as required already, or is the file of another
/// open effect.
pub fn begin(
    turn: &Turn<'_>,
    effect: Effect,
    run: &Run,
    now: &Seen,
    twin: Option<&Effect>,
) -> Result<Decision<Stepped>> {
    not_cleared(&effect)?;
    if effect.state == EffectState::Done {
        return Ok(Decision::nothing(Stepped::of(Application::Already, effect, now)));
    }
    if let Some(error) = unproved(&effect, now) {
        return Err(error);
    }
    if status(&effect, now) == EffectStatus::Applied {
        return Err(Error::new(Kind::EffectRefused, format!("{} is as required already", effect.path))
            .because("somebody wrote it; a second write is not run")
            .fix(format!("nf effect done {}", effect.key)));
    }
    if let Some(twin) = twin {
        return Err(plan::same_file(&effect.path, twin));
    }
    let event = Event::EffectStarted { effect: effect.id.clone(), run: run.id.clone() };
    let started = Effect { state: EffectState::Started, started_at: Some(turn.at()), ..effect };
    Ok(Decision::new(vec![event], Stepped::of(Application::New, started, now)))
}

/// Records that the path holds the required state; nothing else makes an effect done.
///
/// # Errors
/// `uncertain`, `diverged`; `effect_refused` where nothing was written, or it was cleared.
pub fn done(
    turn: &Turn<'_>,
    effect: Effect,
    witness: Witness,
    acting: &Session,
    now: &Seen,
) -> Result<Decision<Stepped>> {
    not_cleared(&effect)?;
    if effect.state == EffectState::Done {
        return Ok(Decision::nothing(Stepped::of(Application::Already, effect, now)));
    }
    if now.as_ref() != Ok(&FileState::File(effect.required)) {
        return Err(unproved(&effect, now).unwrap_or_else(|| nothing_written(&effect)));
    }
    let event = Event::EffectDone { effect: effect.id.clone(), witness, session: acting.id.clone() };
    let state = EffectState::Done;
    let done = Effect { state, witness: Some(witness), ended_at: Some(turn.at()), ..effect };
    Ok(Decision::new(vec![event], Stepped::of(Application::New, done, now)))
}

fn nothing_written(effect: &Effect) -> Error {
    Error::new(Kind::EffectRefused, format!("{} is untouched: nothing was written", effect.path))
        .because(format!("want {}, got {}", effect.required, effect.before))
        .fix(format!("nf effect run {} -- CMD", effect.key))
}

/// Gives an effect up, openly: its key is free for a new plan from the state that is there then. What is
/// done stays done.
///
/// # Errors
/// `effect_refused` for what is done; `uncertain` while its command, or what that left behind, may still
/// write.
pub fn clear(
    turn: &mut Turn<'_>,
    effect: Effect,
    reason: &str,
    acting: &Session,
    (now, running): (&Seen, bool),
) -> Result<Decision<Stepped>> {
    if running && effect.is_open() {
        let Effect { id, key, .. } = effect;
        return Err(Error::new(
            Kind::Uncertain,
            format!("the command of effect {id} ({key}) is still running"),
        )
        .because("it may write yet, and a new plan would let another write beside it")
        .fix(format!("let it end, or end it; then nf effect clear {key} --reason TEXT"))
        .details(serde_json::json!({"effect": id, "key": key, "running": true})));
    }
    match effect.state {
        EffectState::Done => Err(Error::new(
            Kind::EffectRefused,
            format!("effect {} ({}) is done, and stays so", effect.id, effect.key),
        )
        .because("a write that is recorded as done is never run again")
        .fix("another write is another plan, under another key")),
        EffectState::Cleared => Ok(Decision::nothing(Stepped::of(Application::Already, effect, now))),
        EffectState::Planned | EffectState::Started => {
            let reason = turn.text(reason);
            let event = Event::EffectCleared {
                effect: effect.id.clone(),
                reason: reason.clone(),
                session: acting.id.clone(),
            };
            let (state, ended_at) = (EffectState::Cleared, Some(turn.at()));
            let cleared = Effect { state, ended_at, reason: Some(reason), ..effect };
            Ok(Decision::new(vec![event], Stepped::of(Application::New, cleared, now)))
        }
    }
}

/// The effects that a resume answers for: those that its checkpoint lists, and those that this session or
/// one before it started and neither proved nor cleared.
pub fn of_resume(state: &State, session: &Session, listed: &[EffectId]) -> Vec<Effect> {
    let mut all: Vec<Effect> = listed.iter().filter_map(|id| state.get::<Effect>(id)).collect();
    all.retain(Effect::stands);
    for id in std::iter::once(session.id.clone()).chain(state.ancestors(session)) {
        let started = state.open_effects(&id).filter(|effect| effect.state == EffectState::Started);
        let fresh: Vec<Effect> =
            started.filter(|effect| all.iter().all(|held| held.id != effect.id)).collect();
        all.extend(fresh);
    }
    all
}
