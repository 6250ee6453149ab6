//! What the `effect` commands find out before a rule decides: who acts, what stands at the path, and what a
//! plan names.

use super::PlanEffect;
use crate::adapters::place;
use crate::cli::ctx::{Context, Opened, find, get};
use crate::cli::input::{MAX_BOUND, Reader, config, file_or_stdin};
use crate::cli::load;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::Bindings;
use crate::model::effect::{Effect, EffectState};
use crate::model::hash::Hash;
use crate::model::id::{IdKind, Name, ReceiptId};
use crate::model::lists::Common;
use crate::model::result::Receipt;
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::checkpoint::carry;
use crate::rules::effect::{Plan, Seen, of_resume, own};
use crate::rules::members::nearest;
use crate::store::{FileStamp, Gathered};

/// What stands at a path, and how the file looked before it was read.
#[derive(Debug, Clone)]
pub struct Look {
    /// What stands there.
    pub seen: Seen,
    /// How it looked; none where not even that could be told.
    pub stamp: Option<FileStamp>,
}

/// Looks at a resolved path.
pub fn look(opened: &Opened, path: &str) -> Look {
    let stamp = FileStamp::of(&opened.project.path(path)).ok();
    Look { seen: place::look(opened.project.root(), path, MAX_BOUND), stamp }
}

/// The effects that a resume of a session answers for, each with a look at its path.
pub fn for_resume(
    opened: &Opened,
    state: &State,
    session: &Session,
    bindings: &Bindings,
) -> Vec<(Effect, Look)> {
    let effects = of_resume(state, session, &bindings.effects).into_iter();
    effects.map(|effect| (look(opened, &effect.path), effect)).map(|(look, effect)| (effect, look)).collect()
}

/// The newest effect of a key.
///
/// # Errors
/// `unknown_id` with the nearest key.
pub fn effect_of(state: &State, key: &Name) -> Result<Effect> {
    state.effect_of(key).ok_or_else(|| {
        let rows = state.of_kind(IdKind::EffectId, None).take(1000);
        let known: Vec<Effect> = rows.filter_map(|row| state.get(&row.id.parse().ok()?)).collect();
        let error = Error::new(Kind::UnknownId, format!("no effect has the key {key}")).fix("nf list effect");
        match nearest(key.as_str(), known.iter().map(|effect| effect.key.as_str())) {
            Some(near) => error.because(format!("did you mean {near}?")),
            None => error,
        }
    })
}

/// The session that acts: the one named, else the one that planned the effect while it can, else the only
/// open one.
///
/// # Errors
/// As [`Context::session`].
pub fn session_that_acts(ctx: &Context, state: &State, effect: &Effect) -> Result<Session> {
    if let Some(named) = ctx.named_session(state)? {
        return Ok(named);
    }
    let planner: Session = get(state, &effect.session)?;
    if planner.status.is_ended() { ctx.session(state) } else { Ok(planner) }
}

/// The session that settles an effect. It needs no current run: an uncertain effect stops resume, so that
/// it must be settled before there is one. A run that is named must be the current one all the same.
///
/// # Errors
/// `effect_refused` for a stranger, `not_current_run`, `version_mismatch`.
pub fn acting(ctx: &Context, state: &State, effect: &Effect) -> Result<Session> {
    let session = session_that_acts(ctx, state, effect)?;
    own(state, &session, effect)?;
    ctx.current_run(state, &session)?;
    ctx.expect_version(&session)?;
    Ok(session)
}

/// What a plan rests on outside the log.
pub struct Facts {
    path: String,
    required: Hash,
    before: Seen,
    receipts: Vec<ReceiptId>,
    declared: Bindings,
}

/// Reads what a plan names.
///
/// # Errors
/// `bad_input` for a path that is none; `io` for a file that cannot be read; `unknown_id`.
pub fn planning(
    ctx: &Context,
    opened: &Opened,
    state: &State,
    named: &PlanEffect,
) -> Result<Gathered<Facts>> {
    let session = ctx.session(state)?;
    let path = place::resolve(opened.project.root(), opened.project.store(), &named.path)?;
    let look = look(opened, &path);
    let mut stamps: Vec<FileStamp> = look.stamp.into_iter().collect();
    let required = match named.expect.parse::<Hash>() {
        Ok(hash) => hash,
        // A tool's caller names files of the project and no others.
        Err(_) if ctx.served.is_some() => {
            let (bytes, stamp) = opened.project.read(&named.expect, MAX_BOUND)?;
            stamps.push(stamp);
            Hash::of(&bytes)
        }
        Err(_) => {
            let file = ctx.folder.join(&named.expect);
            stamps.extend(FileStamp::of(&file).ok());
            Hash::of(&file_or_stdin(ctx, Some(&file), MAX_BOUND)?)
        }
    };
    let find_receipt = |text: &String| find::<Receipt>(state, text).map(|receipt| receipt.id);
    let receipts = named.receipts.iter().map(find_receipt).collect::<Result<Vec<_>>>()?;
    let held = load::newest_bindings(&opened.store, state, &session)?;
    let mut reader = Reader::new(&opened.project);
    let declared = reader.declared(&config(&opened.store)?, &held)?;
    let mut gathered = Gathered::of(Facts { path, required, before: look.seen, receipts, declared });
    gathered.files = reader.stamps;
    gathered.files.extend(stamps);
    Ok(gathered)
}

impl Facts {
    /// The plan, on the state that it is decided on.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn plan(&self, opened: &Opened, state: &State, key: Name, acting: (Session, Run)) -> Result<Plan> {
        let receipts =
            self.receipts.iter().map(|id| get::<Receipt>(state, id)).collect::<Result<Vec<_>>>()?;
        let contested = receipts.iter().filter(|receipt| receipt.contested.is_some());
        let newest = load::newest_bindings(&opened.store, state, &acting.0)?;
        Ok(Plan {
            key,
            path: self.path.clone(),
            before: self.before.clone(),
            twin: twin(opened, state, &self.path),
            required: self.required,
            contested: contested.map(|receipt| receipt.id.clone()).collect(),
            receipts,
            acting,
            bindings: carry(&newest, &self.declared),
        })
    }
}

/// An open effect on another path that is the same file now, as two hard links are. Few effects are open at a
/// time, and only the file system knows which of them are one.
pub fn twin(opened: &Opened, state: &State, path: &str) -> Option<Effect> {
    let root = opened.project.root();
    let own = place::identity(root, path)?;
    let open = [EffectState::Planned, EffectState::Started].into_iter().flat_map(|word| {
        let common = Common { state: Some(word.word()), ..Common::default() };
        state.listed(IdKind::EffectId, &common, None)
    });
    let mut effects = open.filter_map(|row| state.get::<Effect>(&row.id.parse().ok()?));
    effects.find(|effect| effect.path != path && place::identity(root, &effect.path) == Some(own))
}

/// An effect that is neither done nor cleared, in one line.
pub fn open_line(effect: &Effect) -> String {
    let Effect { id, key, path, state, .. } = effect;
    match state {
        EffectState::Started => {
            format!("effect {id} ({key}) on {path} is uncertain: started and not done; nf effect check {key}")
        }
        _ => format!("effect {id} ({key}) on {path} is {state}"),
    }
}
