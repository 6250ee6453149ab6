//! Entities with their blobs: what a rule is given. Blobs never change, so they may be read at any time;
//! what can change is looked up in the state that the decision stands on.

use serde_json::Value;

use super::ctx::{Opened, get};
use super::input::{Reader, config};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, BindingsRef, Checkpoint};
use crate::model::external::{ExternalEvent, Payload};
use crate::model::handoff::{Attempt, Handoff};
use crate::model::hash::Hash;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::json;
use crate::model::result::StoredResult;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::freeze::FrozenJob;
use crate::rules::once::Evidence;
use crate::store::{Gathered, Store};

/// The bindings of a checkpoint, in place or from their blob.
///
/// # Errors
/// `damaged` where the blob is not what was recorded.
pub fn bindings(store: &Store, checkpoint: &Checkpoint) -> Result<Bindings> {
    match &checkpoint.bindings {
        BindingsRef::Inline(bindings) => Ok(bindings.clone()),
        BindingsRef::Blob(hash) => read(store, hash),
    }
}

/// The bindings of a session's newest checkpoint; none where it has none.
///
/// # Errors
/// As [`bindings`].
pub fn newest_bindings(store: &Store, state: &State, session: &Session) -> Result<Bindings> {
    match session.checkpoint.as_ref().and_then(|id| state.get::<Checkpoint>(id)) {
        Some(checkpoint) => bindings(store, &checkpoint),
        None => Ok(Bindings::default()),
    }
}

/// What the config declares and `held` does not have yet, hashed now, with what was looked at.
///
/// # Errors
/// `bad_input` for the config, `not_a_binding` for a file that it names.
pub fn declared(opened: &Opened, held: &Bindings) -> Result<Gathered<Bindings>> {
    let mut reader = Reader::new(&opened.project);
    let mut gathered = Gathered::of(reader.declared(&config(&opened.store)?, held)?);
    gathered.files = reader.stamps;
    Ok(gathered)
}

/// A frozen job from its blob.
///
/// # Errors
/// As [`bindings`].
pub fn frozen(store: &Store, job: &Job) -> Result<FrozenJob> {
    read(store, &job.blob)
}

/// The job of a handoff, an attempt or a result, where there is one.
///
/// # Errors
/// `unknown_id`, which in a sound store cannot be.
pub fn job(state: &State, id: Option<&JobId>) -> Result<Option<Job>> {
    id.map(|id| get::<Job>(state, id)).transpose()
}

/// What a handoff asks: its job, or the work that it carries itself.
///
/// # Errors
/// As [`bindings`].
pub fn asked(store: &Store, job: Option<&Job>, handoff: &Handoff) -> Result<FrozenJob> {
    match (job, &handoff.task) {
        (Some(job), _) => frozen(store, job),
        (None, Some(task)) => read(store, &task.blob),
        (None, None) => {
            Err(Error::new(Kind::UnknownId, format!("handoff {} has neither job nor task", handoff.id)))
        }
    }
}

/// The bytes of a frozen job's artifacts, input before context.
///
/// # Errors
/// As [`bindings`].
pub fn artifacts(store: &Store, frozen: &FrozenJob) -> Result<Vec<Vec<u8>>> {
    frozen.artifacts().iter().map(|artifact| store.blob(&artifact.hash)).collect()
}

/// What an event carries.
///
/// # Errors
/// `damaged` where its blob is not what was recorded.
pub fn payload(store: &Store, event: &ExternalEvent) -> Result<Option<Value>> {
    Ok(match &event.payload {
        None => None,
        Some(Payload::Inline(value)) => Some(value.clone()),
        Some(Payload::Blob(hash)) => Some(read(store, hash)?),
    })
}

/// A stored result with everything that it is checked against.
///
/// # Errors
/// `damaged` where a blob is not what was recorded; `unknown_id`, which in a sound store cannot be.
pub fn evidence(store: &Store, state: &State, result: StoredResult) -> Result<Evidence> {
    let job = job(state, result.job.as_ref())?;
    let attempt: Attempt = get(state, &result.provenance.attempt)?;
    let handoff: Handoff = get(state, &result.provenance.handoff)?;
    let source: Session = get(state, &result.provenance.source_session)?;
    let worker: Session = get(state, &result.provenance.worker_session)?;
    Ok(Evidence {
        body: read::<Value>(store, &result.blob)?,
        frozen: asked(store, job.as_ref(), &handoff)?,
        ancestors: state.ancestors(&source),
        natives: natives(state, &source, job.as_ref()),
        result,
        job,
        attempt,
        handoff,
        source,
        worker,
    })
}

/// The other side's ids, as far as they are known, of the session that asked, of those before it, and of
/// those that froze the job: none of them may answer where another mind is wanted.
pub fn natives(state: &State, source: &Session, job: Option<&Job>) -> Vec<String> {
    let frozen_by = job.map_or(&[][..], |job| &job.frozen_by);
    let others = state.ancestors(source).into_iter().chain(frozen_by.iter().cloned());
    let others = others.filter_map(|id| state.get::<Session>(&id)).filter_map(|session| session.native);
    let mut all: Vec<String> = source.native.clone().into_iter().chain(others).collect();
    all.sort();
    all.dedup();
    all
}

fn read<T: serde::de::DeserializeOwned>(store: &Store, hash: &Hash) -> Result<T> {
    // The guard reads deeper than serde_json's own reader, and everything kept has passed it.
    let wrong = |why: String| {
        Error::new(Kind::Damaged, format!("blob {hash} is not what it was recorded as")).because(why)
    };
    let value = json::parse(&store.blob(hash)?).map_err(|fault| wrong(fault.to_string()))?;
    serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
}
