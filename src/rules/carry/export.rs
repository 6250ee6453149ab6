//! `export`: an attempt at a queued handoff whose packet leaves as a file. It is a claim like any other, by
//! whoever carries the file; while it is open, the same file is shown again.

use super::{Export, FORMAT, MAX_EXPORT, content, sealed};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::event::AttemptEnd;
use crate::model::handoff::{Attempt, AttemptState, Handoff, Transport};
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId, Name, SessionId, word};
use crate::model::job::{Family, Job};
use crate::model::json;
use crate::model::time::Time;
use crate::rules::attempt::{Asking, Claimant, begin};
use crate::rules::claim::{Offer, Wish, find};
use crate::rules::lease;

/// Everything that an export is decided on.
pub struct Exporting<'a> {
    /// The handoff.
    pub handoff: &'a Handoff,
    /// Who carries the file; needed where an attempt opens.
    pub worker: Option<Name>,
    /// The family that is to answer.
    pub family: Option<Family>,
    /// How long nobody else may claim, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The id of the store.
    pub store: &'a str,
    /// The version of this program.
    pub version: &'a str,
    /// The file of the handoff's newest attempt, if it is there.
    pub kept: Option<String>,
}

/// What went out.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Exported {
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its number within the handoff.
    pub number: u32,
    /// The job.
    pub job: Option<JobId>,
    /// The gate that the answer moves.
    pub gate: Name,
    /// The family that is to answer.
    pub family: Family,
    /// Who carries the file.
    pub worker: Option<Name>,
    /// The session that the answer will be of.
    pub worker_session: SessionId,
    /// Until when nobody else may claim.
    pub expires_at: Time,
    /// BLAKE3 of the packet in the file.
    pub packet_hash: Hash,
    /// Whether an open export was shown again.
    pub again: bool,
}

/// Whether a kept file is the one that went out with an attempt.
pub fn is_whole(text: &str, attempt: &AttemptId, packet: &Hash) -> bool {
    Export::read(text.as_bytes())
        .is_ok_and(|(export, _)| export.attempt == *attempt && Hash::of(export.packet.as_bytes()) == *packet)
}

/// Opens an attempt whose packet leaves as a file, or shows the open one again.
///
/// # Errors
/// Those of a claim; `usage` where nobody is named; `under_review` for an export that is out otherwise;
/// `too_large` for a file that could not be read far away.
pub fn export(
    turn: &mut Turn<'_>,
    exporting: Exporting<'_>,
    asking: &Asking<'_>,
) -> Result<Decision<Exported>> {
    if let Some(attempt) = open(turn, exporting.handoff) {
        return again(&exporting, &attempt);
    }
    let family = exporting.family.unwrap_or_else(|| Transport::Import.family());
    let worker = exporting.worker.clone().ok_or_else(|| {
        Error::new(Kind::Usage, "who carries the file is not named")
            .because("an export opens an attempt, as a claim does")
            .fix("give --worker NAME")
    })?;
    let wish = Wish {
        class: exporting.handoff.target_class.clone(),
        handoff: Some(exporting.handoff.clone()),
        resource: None,
        job: None,
        gate: None,
        worker: worker.clone(),
        family,
        ttl_ms: exporting.ttl_ms,
        session: None,
        offer: Offer::by_hand(),
    };
    let found = match find(turn, &wish)? {
        Ok(found) => found,
        Err((events, error)) => return Ok(Decision::refused(events, error)),
    };
    let mut events = found.events;
    if let Some(old) = &found.overtaken {
        events.extend(lease::end(turn.state, old, AttemptEnd::Superseded, &word("lease_expired")?)?);
    }
    let claimant = Claimant {
        transport: Transport::Import,
        family: Some(family).filter(|family| *family != Transport::Import.family()),
        worker: Some(worker),
        session: None,
        // A file travels as a relay does: by hand, and in its own time.
        ttl_ms: exporting.ttl_ms.unwrap_or_else(|| lease::RELAY_TTL_MS.max(found.handoff.ttl_ms)),
    };
    let (attempt, packet, nonce) = begin(turn, &mut events, &found.handoff, asking, claimant)?;
    let text = file(&exporting, asking, &attempt, packet, nonce)?;
    let outcome = Ok(exported(&attempt, exporting.handoff, false));
    Ok(Decision { events, packet: Some((attempt.id, text)), outcome })
}

/// The handoff's exported attempt that is still protected; one whose question has its answer is not shown.
fn open(turn: &Turn<'_>, handoff: &Handoff) -> Option<Attempt> {
    let attempt: Attempt = turn.state.get(handoff.attempt.as_ref()?)?;
    let job = handoff.job.as_ref().and_then(|job| turn.state.get::<Job>(job));
    let live = attempt.state == AttemptState::Active
        && attempt.transport == Transport::Import
        && !attempt.lapsed
        && !lease::has_expired(&attempt.lease, &turn.now)
        && lease::may_answer(&attempt, handoff).is_ok();
    let closed =
        turn.state.history(handoff.question()).closing(job.as_ref().map(|job| &job.execution)).is_some();
    (live && !closed).then_some(attempt)
}

fn again(exporting: &Exporting<'_>, attempt: &Attempt) -> Result<Decision<Exported>> {
    let out = |why: &str| {
        Error::new(Kind::UnderReview, format!("handoff {} is out as export {}", attempt.handoff, attempt.id))
            .because(why.to_owned())
            .fix(format!("nf handoff release {} --revoke takes it back", attempt.handoff))
            .details(serde_json::json!({"attempt": attempt.id, "handoff": attempt.handoff}))
    };
    let other_worker = exporting.worker.is_some() && exporting.worker != attempt.worker;
    let other_family = exporting.family.is_some_and(|family| family != attempt.family());
    if other_worker || other_family {
        let carrier = attempt.worker.as_ref().map_or("nobody", Name::as_str);
        return Err(out(&format!("{carrier} carries it, for {}", attempt.family())));
    }
    let whole = |text: &String| is_whole(text, &attempt.id, &attempt.packet_hash);
    match exporting.kept.as_ref().filter(|text| whole(text)) {
        Some(_) => Ok(Decision::nothing(exported(attempt, exporting.handoff, true))),
        None => Err(out("its file is not kept here any more; who has it may still answer")),
    }
}

fn exported(attempt: &Attempt, handoff: &Handoff, again: bool) -> Exported {
    Exported {
        handoff: handoff.id.clone(),
        attempt: attempt.id.clone(),
        number: attempt.number,
        job: attempt.job.clone(),
        gate: handoff.gate.clone(),
        family: attempt.family(),
        worker: attempt.worker.clone(),
        worker_session: attempt.worker_session.clone(),
        expires_at: attempt.lease.expires_at(),
        packet_hash: attempt.packet_hash,
        again,
    }
}

fn file(
    exporting: &Exporting<'_>,
    asking: &Asking<'_>,
    attempt: &Attempt,
    packet: String,
    nonce: String,
) -> Result<String> {
    let listed = asking.frozen.artifacts();
    let pairs = listed.iter().zip(asking.artifacts);
    let (text, _) = sealed(&Export {
        nf_export: FORMAT,
        nf: exporting.version.to_owned(),
        store: exporting.store.to_owned(),
        handoff: attempt.handoff.clone(),
        attempt: attempt.id.clone(),
        number: attempt.number,
        source: asking.source.id.clone(),
        family: attempt.family(),
        worker: attempt.worker.clone(),
        nonce,
        expires_at: attempt.lease.expires_at(),
        packet,
        context: exporting.handoff.context.clone(),
        job: asking.frozen.clone(),
        artifacts: pairs.map(|(artifact, bytes)| content(&artifact.name, bytes)).collect(),
    });
    if text.len() as u64 > MAX_EXPORT {
        return Err(Error::new(Kind::TooLarge, format!("an export file has at most {MAX_EXPORT} bytes"))
            .because(format!("this one would have {}", text.len())));
    }
    // What goes out must be readable far away, under the same guard.
    json::parse(text.as_bytes()).map_err(|fault| fault.into_error("the export file"))?;
    Ok(text)
}
