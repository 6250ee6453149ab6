//! What a checkpoint binds: an automatic save carries the newest bindings over as they were recorded and
//! adds what the store's config declares and no earlier checkpoint holds (session-runtime contract, 06).

use serde_json::Value;

use super::blind;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{
    BindingKind, Bindings, BindingsRef, BoundArtifact, Boundary, Checkpoint, CheckpointPending,
};
use crate::model::decision::Turn;
use crate::model::hash::canonical;
use crate::model::id::{EffectId, Name};
use crate::model::job::Place;
use crate::model::run::Run;
use crate::model::session::Session;

/// Bytes of bindings up to which they stand in the log itself.
pub const INLINE_BINDINGS: usize = 4 * 1024;
/// Bytes over which a checkpoint is refused: it is no copy of a chat.
pub const MAX_BINDINGS: usize = 64 * 1024;

/// The newest bindings with those of the config that are new: what is recorded under a name stays.
pub fn carry(newest: &Bindings, declared: &Bindings) -> Bindings {
    let mut all = newest.clone();
    for authority in &declared.authority {
        if !all.authority.iter().any(|held| held.name == authority.name) {
            all.authority.push(authority.clone());
        }
    }
    for compatibility in &declared.compatibility {
        if !all.compatibility.iter().any(|held| held.name == compatibility.name) {
            all.compatibility.push(compatibility.clone());
        }
    }
    all
}

/// The bindings with others put in under their names: what `freeze` does for its artifacts and
/// `checkpoint save` for what it names. Two texts of one name stand in two places and are bound both.
pub fn rebind(held: &Bindings, fresh: &Bindings) -> Bindings {
    fn put<T: Clone, K: PartialEq>(held: &mut Vec<T>, fresh: &[T], name: impl Fn(&T) -> K) {
        for item in fresh {
            match held.iter_mut().find(|old| name(old) == name(item)) {
                Some(old) => *old = item.clone(),
                None => held.push(item.clone()),
            }
        }
    }
    let mut all = held.clone();
    put(&mut all.artifacts, &fresh.artifacts, BoundArtifact::place);
    put(&mut all.authority, &fresh.authority, |item| item.name.clone());
    put(&mut all.compatibility, &fresh.compatibility, |item| item.name.clone());
    put(&mut all.approvals, &fresh.approvals, |item| item.reference.clone());
    put(&mut all.capabilities, &fresh.capabilities, Name::clone);
    put(&mut all.effects, &fresh.effects, EffectId::clone);
    all
}

/// The artifacts of a job as exact bindings.
pub fn of_places(places: &[Place]) -> Bindings {
    let artifacts = places.iter().map(|place| BoundArtifact {
        name: place.name.clone(),
        path: place.path.clone(),
        lines: place.lines,
        hash: place.hash,
        binding: BindingKind::Exact,
    });
    Bindings { artifacts: artifacts.collect(), ..Bindings::default() }
}

/// The bindings without artifacts that stood elsewhere before: their texts were frozen again where they
/// stand now.
pub fn moved(held: &Bindings, before: &[Place], now: &[Place]) -> Bindings {
    let mut all = held.clone();
    let gone = |artifact: &BoundArtifact| {
        let at = |place: &Place| {
            (&place.name, &place.path, place.lines) == (&artifact.name, &artifact.path, artifact.lines)
        };
        before.iter().any(at) && !now.iter().any(at)
    };
    all.artifacts.retain(|artifact| !gone(artifact));
    all
}

/// The bindings with some artifacts loosened: a rejected text is expected to change.
pub fn loosen(held: &Bindings, judged: &[Place]) -> Bindings {
    let mut all = held.clone();
    for artifact in &mut all.artifacts {
        let same = |place: &Place| place.name == artifact.name && place.path == artifact.path;
        if judged.iter().any(same) {
            artifact.binding = BindingKind::Context;
        }
    }
    all
}

/// Where and why a checkpoint is saved.
pub struct Saved<'a> {
    /// The session, as the batch leaves it.
    pub session: &'a Session,
    /// Its current run, as the batch leaves it.
    pub run: &'a Run,
    /// Where in the work it stands.
    pub boundary: Boundary,
    /// What it waits for.
    pub pending: CheckpointPending,
}

/// A checkpoint with its bindings; large ones become a blob of the turn.
///
/// # Errors
/// `too_large` over 64 KiB; `private_key` where the bindings carry a key of the private list.
pub fn save(turn: &mut Turn<'_>, saved: Saved<'_>, bindings: Bindings) -> Result<Checkpoint> {
    let bytes = canonical(&bindings);
    if bytes.len() > MAX_BINDINGS {
        return Err(Error::new(Kind::TooLarge, "a checkpoint is at most 64 KiB")
            .because(format!("this one has {} bytes of bindings", bytes.len()))
            .fix("bind fewer artifacts, or one file that lists them"));
    }
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    blind::no_private_keys("a checkpoint", &value)?;
    let bindings = if bytes.len() <= INLINE_BINDINGS {
        BindingsRef::Inline(bindings)
    } else {
        BindingsRef::Blob(turn.blob(bytes))
    };
    Ok(Checkpoint {
        id: turn.id()?,
        session: saved.session.id.clone(),
        session_version: saved.session.version,
        run: saved.run.id.clone(),
        boundary: saved.boundary,
        cursor: saved.run.cursor.clone(),
        pending: saved.pending,
        resume_policy: saved.session.resume_policy,
        at: turn.at(),
        bindings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checkpoint::BoundAuthority;
    use crate::model::hash::Hash;

    fn authority(name: &str, bytes: &[u8]) -> BoundAuthority {
        BoundAuthority { name: name.parse().unwrap(), path: name.to_owned(), hash: Hash::of(bytes) }
    }

    #[test]
    fn carrying_over_never_puts_a_new_hash_under_an_old_name() {
        let held = Bindings { authority: vec![authority("canon", b"old")], ..Bindings::default() };
        let declared = Bindings {
            authority: vec![authority("canon", b"new"), authority("lock", b"1")],
            ..Bindings::default()
        };
        let carried = carry(&held, &declared);
        assert_eq!(carried.authority, [authority("canon", b"old"), authority("lock", b"1")]);
        let rebound = rebind(&held, &declared);
        assert_eq!(rebound.authority, [authority("canon", b"new"), authority("lock", b"1")]);
    }

    #[test]
    fn only_the_judged_artifacts_are_loosened() {
        let place = |name: &str| Place {
            name: name.parse().unwrap(),
            path: name.to_owned(),
            lines: None,
            hash: Hash::of(b"x"),
            bytes: 1,
        };
        let held = of_places(&[place("chapter"), place("notes")]);
        let loosened = loosen(&held, &[place("chapter")]);
        let kinds: Vec<_> = loosened.artifacts.iter().map(|artifact| artifact.binding).collect();
        assert_eq!(kinds, [BindingKind::Context, BindingKind::Exact]);
    }
}
