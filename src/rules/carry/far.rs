//! Far away, where there is no store: the packet in the form that is wanted, and every step of intake and
//! binding that can be made there. What only the store can say is left to the import, and is said to be.

use serde_json::Value;

use super::{Export, FORMAT, Returned};
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::event::Prose;
use crate::model::handoff::{Attempt, Begun, Lease, Transport};
use crate::model::hash::{Hash, canonical};
use crate::model::job::{Family, Verdict};
use crate::model::time::Time;
use crate::model::witness::Witness;
use crate::rules::binding::{self, Against, Claim, LEFT};
use crate::rules::freeze::Frozen;
use crate::rules::intake::extract;
use crate::rules::lease::what;
use crate::rules::packet::{self, Packet, blank};
use crate::rules::refusal::{binding_error, intake_error};

/// The packet of an export file in a form; its own where none is wished.
///
/// # Errors
/// `usage` for a form that the family of the attempt could not answer.
pub fn printed(export: &Export, wished: Option<Transport>) -> Result<(Transport, String)> {
    let own = export.form();
    let form = wished.unwrap_or(own);
    let same = form == own || (form == Transport::Chat && own == Transport::Worker);
    if same {
        return Ok((form, export.packet.clone()));
    }
    if form == Transport::Human || own == Transport::Human {
        return Err(Error::new(Kind::Usage, format!("this packet is to be answered by {}", export.family))
            .because("a person's form names a person, and every other form a provider and a model")
            .fix(format!("leave --for out, or export it anew with --family {}", Family::Human)));
    }
    let artifacts = export.contents().unwrap_or_default();
    let packet = Packet {
        job: &export.job,
        artifacts: &artifacts,
        handoff: &export.handoff,
        nonce: &export.nonce,
        source: &export.source,
        context: &export.context,
    };
    Ok((form, packet::render(&packet, form)))
}

/// An answer that was taken far away.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// What goes home.
    pub returned: Returned,
    /// Whether the reviewer judged.
    pub completed: bool,
    /// The verdict, where one was given.
    pub verdict: Option<Verdict>,
    /// All thirteen checks; two of them in part.
    pub checks: Vec<Check>,
}

/// Takes an answer through intake and all of binding that needs no store.
///
/// # Errors
/// `semantic_invalid`, as `reply` would say it.
pub fn take(
    export: &Export,
    hash: Hash,
    bytes: &[u8],
    version: &str,
    witness: Option<Witness>,
) -> Result<Taken> {
    let forms = [export.form(), Transport::Chat, Transport::Agent];
    let blanks = forms.map(|form| canonical(&blank(&export.job, &export.handoff, &export.nonce, form)));
    let is_blank = |value: &Value| blanks.contains(&canonical(value));
    let extracted = extract(bytes, &is_blank).map_err(|fault| intake_error(&fault))?;
    let attempt = attempt(export);
    let claim = Claim { imported: true, ..Claim::read(&extracted.value) }.seen(&attempt, witness.as_ref());
    let job = match export.job.id {
        Some(_) => {
            let frozen = Frozen { job: export.job.clone(), places: Vec::new(), bytes: 0 };
            Some(frozen.entity(None, None, export.expires_at)?)
        }
        None => None,
    };
    let against = Against {
        frozen: &export.job,
        job: job.as_ref(),
        attempt: &attempt,
        attempt_check: Check::new(
            "attempt",
            claim.nonce == export.nonce,
            format!("attempt {} (number {}), with its nonce", export.attempt, export.number),
            if claim.nonce == export.nonce {
                format!("its nonce; whether it is current is {LEFT}")
            } else {
                "another nonce".to_owned()
            },
        ),
        independence: None,
    };
    let checks = binding::bind(&claim, &against);
    if !failed(&checks).is_empty() {
        return Err(binding_error(&what(export.job.id.as_ref(), Some(&export.handoff)), checks));
    }
    let output = claim.output.as_ref().filter(|_| claim.completed);
    let verdict = output.and_then(|output| binding::verdict(&export.job, output));
    let returned = Returned {
        nf_result: FORMAT,
        nf: version.to_owned(),
        store: export.store.clone(),
        handoff: export.handoff.clone(),
        attempt: export.attempt.clone(),
        job: export.job.id.clone(),
        export: hash,
        pasted: Prose { bytes: bytes.len() as u64, hash: Hash::of(bytes) },
        steps: extracted.steps,
        prose: extracted.prose,
        witness,
        answer: extracted.value,
    };
    Ok(Taken { returned, completed: claim.completed, verdict, checks })
}

/// The attempt, as far as it is known where there is no store.
fn attempt(export: &Export) -> Attempt {
    let lease = Lease {
        ttl_ms: 0,
        machine: String::new(),
        boot_id: String::new(),
        namespace: String::new(),
        boottime_ms: 0,
        wall: export.expires_at,
    };
    Attempt::new(Begun {
        id: export.attempt.clone(),
        handoff: (export.handoff.clone(), export.number),
        question: (export.job.id.clone(), export.job.fingerprint.clone()),
        // Which session answers is the store's to say, and no check here looks at it.
        worker_session: export.source.clone(),
        by: (Transport::Import, Some(export.family)),
        worker: export.worker.clone(),
        secret: (Hash::of(export.nonce.as_bytes()), Hash::of(export.packet.as_bytes())),
        context_manifest: Vec::new(),
        lease: (lease, Time::from_micros(0)),
    })
}
