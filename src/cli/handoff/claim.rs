//! `handoff claim`: a worker takes the next piece of work and gets its packet. The nonce goes to the worker
//! and into no record, so a claim that is repeated with its operation key gets a new one.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::ctx::{Context, Opened, find, get};
use crate::cli::input::{free_for_packet, write_secret};
use crate::cli::load;
use crate::cli::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::{Attempt, Handoff};
use crate::model::id::{Id, Name};
use crate::model::job::{Family, Job};
use crate::model::session::{Role, Session};
use crate::model::time::parse_millis;
use crate::rules::attempt::{Asking, Claimed, Secret, claim, claim_again};
use crate::rules::claim::{Offer, Wish, find as choose};
use crate::store::{Answer, Gathered, Request};

/// Take the next piece of work of a class; prints the packet to answer
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nf handoff claim --class semantic_reviewer --worker ci-7 --out packet.txt\n  \
    nf handoff claim h-4q2m --class specialist --worker me --json"
)]
pub struct Claim {
    /// Only this handoff (id or unique beginning)
    pub handoff: Option<String>,
    /// manager, writer, specialist, semantic_reviewer, human_reviewer or other:NAME
    #[arg(long, value_name = "CLASS")]
    pub class: Role,
    /// The worker's name, which stands in the record and proves nothing
    #[arg(long, value_name = "NAME")]
    pub worker: Name,
    /// Only work on this resource
    #[arg(long, value_name = "NAME")]
    pub resource: Option<Name>,
    /// Only this job's question
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only work for this gate
    #[arg(long, value_name = "NAME")]
    pub gate: Option<Name>,
    /// peer_chat, human, local_agent, provider_api, local_model, mcp_worker or service_job
    #[arg(long, default_value = "service_job")]
    pub family: Family,
    /// How long the claim is protected [default: as the handoff says]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub ttl: Option<u64>,
    /// The session that works; one that keeps nothing is made where none is named
    #[arg(long, value_name = "ID")]
    pub worker_session: Option<String>,
    /// Write the packet to this file (0600) and print the attempt's id
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A claim that was won.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ClaimReport {
    #[serde(flatten)]
    claimed: Claimed,
    /// What proves that the worker is the one: a secret while the attempt is active.
    nonce: Option<String>,
    /// The packet, unless it was written to a file; it holds the nonce.
    packet: Option<String>,
    /// The file that it was written to.
    out: Option<PathBuf>,
}

impl Report for ClaimReport {
    const COMMAND: &'static str = "handoff.claim";

    fn answer(&self) -> String {
        match &self.packet {
            Some(packet) => packet.clone(),
            None => format!("{}\n", self.claimed.attempt),
        }
    }

    fn news(&self) -> Vec<String> {
        let Claimed { handoff, attempt, number, expires_at, expired, .. } = &self.claimed;
        let protected = match expired {
            true => format!("its lease ran out {expires_at}, and anybody may claim it: renew it first"),
            false => format!("nobody else may claim it until {expires_at}"),
        };
        vec![format!("handoff {handoff}, attempt {attempt} (number {number})"), protected]
    }

    fn next(&self) -> Option<String> {
        Some(match self.claimed.expired {
            true => {
                "nf handoff renew --nonce NONCE, then nf handoff complete FILE with the answer".to_owned()
            }
            false => {
                "nf handoff complete FILE with the answer; renew, release and fail want --nonce".to_owned()
            }
        })
    }

    fn is_raw(&self) -> bool {
        true
    }
}

impl Claim {
    /// Runs the command.
    ///
    /// # Errors
    /// `pending` where there is nothing to claim; those of the rule and the store; `io` for the file.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let out = self.out.clone().filter(|path| path.as_os_str() != "-");
        if let Some(path) = &out {
            opened.project.not_in_store(&ctx.folder.join(path))?;
            free_for_packet(&ctx.folder.join(path))?;
        }
        let request = ctx.request(
            "handoff claim",
            json!({
                "handoff": self.handoff, "class": self.class, "worker": self.worker, "job": self.job,
                "resource": self.resource, "gate": self.gate, "family": self.family, "ttl_ms": self.ttl,
                "worker_session": self.worker_session,
            }),
        );
        let secret = RefCell::new(Secret::default());
        let mut answer = opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| kept(self.wanted().decide(&opened, turn)?, &secret),
        )?;
        if let (true, Ok(claimed)) = (answer.repeated && !answer.dry_run, &answer.outcome) {
            answer = again(&opened, &request, claimed.clone(), &secret)?;
        }
        let Secret { nonce, packet } = if answer.dry_run { Secret::default() } else { secret.into_inner() };
        let won = answer.outcome.is_ok();
        if let (true, Some(path)) = (won && !packet.is_empty(), &out) {
            write_secret(&ctx.folder.join(path), &packet)?;
        }
        let shown = |text: String| Some(text).filter(|text| !text.is_empty());
        Done::written(answer, |claimed| ClaimReport {
            claimed,
            nonce: shown(nonce),
            packet: shown(packet).filter(|_| out.is_none()),
            out,
        })
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            class: &self.class,
            handoff: self.handoff.as_deref(),
            resource: self.resource.as_ref(),
            job: self.job.as_deref(),
            gate: self.gate.as_ref(),
            worker: &self.worker,
            family: self.family,
            ttl_ms: self.ttl,
            worker_session: self.worker_session.as_deref(),
            offer: Offer::by_hand(),
        }
    }
}

/// What a worker asks for, in the words of its command line.
pub struct Wanted<'a> {
    /// The class of the work.
    pub class: &'a Role,
    /// Only this handoff.
    pub handoff: Option<&'a str>,
    /// Only work on this resource.
    pub resource: Option<&'a Name>,
    /// Only this job's question.
    pub job: Option<&'a str>,
    /// Only work for this gate.
    pub gate: Option<&'a Name>,
    /// The worker's name.
    pub worker: &'a Name,
    /// Its family.
    pub family: Family,
    /// How long its lease lasts, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The session that works.
    pub worker_session: Option<&'a str>,
    /// How its answer will come.
    pub offer: Offer,
}

impl Wanted<'_> {
    /// Decides what the wish gets; the secret of a claim that is won goes to the worker alone.
    ///
    /// # Errors
    /// Those of the rule; `unknown_id` for what is named and is not there.
    pub fn decide(&self, opened: &Opened, turn: &mut Turn<'_>) -> Result<(Decision<Claimed>, Secret)> {
        let state = turn.state;
        let wish = Wish {
            class: self.class.clone(),
            handoff: self.handoff.map(|text| find::<Handoff>(state, text)).transpose()?,
            resource: self.resource.cloned(),
            job: self.job.map(|text| find::<Job>(state, text)).transpose()?.map(|job| job.id),
            gate: self.gate.cloned(),
            worker: self.worker.clone(),
            family: self.family,
            ttl_ms: self.ttl_ms,
            session: self.worker_session.map(|text| find::<Session>(state, text)).transpose()?,
            offer: self.offer.clone(),
        };
        match choose(turn, &wish)? {
            Ok(found) => {
                let handoff = found.handoff.clone();
                asked(opened, turn, &handoff, |turn, asking| claim(turn, &wish, found, asking))
            }
            Err((events, error)) => Ok((Decision::refused(events, error), Secret::default())),
        }
    }
}

/// Keeps the secret of a decision for the worker: a decision that is taken anew replaces it.
pub fn kept(
    (decision, secret): (Decision<Claimed>, Secret),
    place: &RefCell<Secret>,
) -> Result<Decision<Claimed>> {
    place.replace(secret);
    Ok(decision)
}

/// Loads what a handoff asks, and decides with it. Blobs never change, so they may be read under the lock.
fn asked(
    opened: &Opened,
    turn: &mut Turn<'_>,
    handoff: &Handoff,
    decide: impl FnOnce(&mut Turn<'_>, &Asking<'_>) -> Result<(Decision<Claimed>, Secret)>,
) -> Result<(Decision<Claimed>, Secret)> {
    let job = load::job(turn.state, handoff.job.as_ref())?;
    let source: Session = get(turn.state, &handoff.source_session)?;
    let frozen = load::asked(&opened.store, job.as_ref(), handoff)?;
    let artifacts = load::artifacts(&opened.store, &frozen)?;
    decide(turn, &Asking { source: &source, frozen: &frozen, artifacts: &artifacts })
}

/// The same claim again, after its answer was lost: the attempt gets a new nonce.
fn again(
    opened: &Opened,
    first: &Request,
    claimed: Claimed,
    secret: &RefCell<Secret>,
) -> Result<Answer<Claimed>> {
    let request = Request {
        cmd: first.cmd.clone(),
        op: None,
        args: json!({"again": claimed.attempt}),
        dry_run: first.dry_run,
    };
    let answer = opened.transact(
        &request,
        |_| Ok(Gathered::of(())),
        |turn, ()| {
            let attempt: Attempt = get(turn.state, &claimed.attempt)?;
            let handoff: Handoff = get(turn.state, &attempt.handoff)?;
            let decided =
                asked(opened, turn, &handoff, |turn, asking| claim_again(turn, &attempt, &handoff, asking));
            kept(decided?, secret)
        },
    )?;
    Ok(answer)
}

/// The attempt that a nonce proves, and no other than the one named.
///
/// # Errors
/// `usage` without a nonce or with another attempt's; `lease_lost` for a nonce that nothing has.
pub fn holder(
    ctx: &Context,
    state: &crate::model::state::State,
    named: Option<&str>,
) -> Result<(Attempt, Handoff)> {
    let nonce = ctx.nonce().ok_or_else(|| {
        Error::new(Kind::Usage, "the attempt's nonce is not given")
            .fix("give --nonce NONCE, or set NF_NONCE; it stands in the packet")
    })?;
    let hash = crate::model::hash::Hash::of(nonce.as_bytes());
    let attempt = state.attempt_of_nonce(&hash).filter(|attempt| attempt.nonce_hash == hash);
    let attempt = attempt.ok_or_else(|| {
        Error::new(Kind::LeaseLost, "no attempt has this nonce")
            .because("it is mistyped, or the claim was repeated and has a newer one")
    })?;
    if let Some(text) = named {
        let wanted: Attempt = find(state, text)?;
        if wanted.id != attempt.id {
            return Err(Error::new(Kind::LeaseLost, format!("the nonce is not that of {}", wanted.id))
                .because(format!("it belongs to {}", attempt.id.as_str())));
        }
    }
    let handoff = get(state, &attempt.handoff)?;
    Ok((attempt, handoff))
}
