//! `packet` opens a relay attempt, or shows the open one again, and prints the one text to carry.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::ctx::{Context, Opened, find, get, kind_of, only};
use super::handoff::open::source;
use super::input::{free_for_packet, write_secret};
use super::load;
use super::output::{Done, Report, text_or_path};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::Bindings;
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::{Attempt, Handoff, Transport};
use crate::model::hash::Hash;
use crate::model::id::{HandoffId, IdKind, JobId, Name};
use crate::model::job::Job;
use crate::model::session::Session;
use crate::model::state::State;
use crate::rules::checkpoint::carry;
use crate::rules::freeze::FrozenJob;
use crate::rules::relay::{Relay, Sent, send};
use crate::rules::ways::left_for_another;
use crate::store::Gathered;

/// Print the packet for a separate reviewer
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf packet | wl-copy\n  \
    nf packet j-7hd3 --gate gate/ch01-review --out packet.txt\n  \
    nf packet --for human --out form.txt\n  nf packet --from export.json   where there is no store")]
pub struct Packet {
    /// The job or handoff; may be left out while exactly one job waits for an answer
    pub what: Option<String>,
    /// chat, human or agent [default: chat; with --from as it was exported]
    #[arg(long = "for", value_name = "WHOM", value_parser = relayed)]
    pub transport: Option<Transport>,
    /// The gate that the answer moves [default: gate/SUBJECT/KIND]
    #[arg(long, value_name = "NAME")]
    pub gate: Option<Name>,
    /// Print the packet of this export file; no store is looked at
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["what", "gate"])]
    pub from: Option<PathBuf>,
    /// Write the packet to this file (0600) and print its path
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

fn relayed(text: &str) -> std::result::Result<Transport, String> {
    let transport = text.parse::<Transport>().ok().filter(|transport| transport.is_relay());
    transport.ok_or_else(|| format!("{text:?} is not one of chat, human, agent"))
}

/// A packet that is out.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct PacketReport {
    /// What went out.
    #[serde(flatten)]
    pub sent: Sent,
    /// The packet itself, unless it was written to a file. It holds the nonce: a secret while it is open.
    pub packet: Option<String>,
    /// The file that it was written to.
    pub out: Option<PathBuf>,
}

impl Report for PacketReport {
    const COMMAND: &'static str = "packet";

    fn answer(&self) -> String {
        text_or_path(self.packet.as_ref(), self.out.as_deref())
    }

    fn news(&self) -> Vec<String> {
        let Sent { handoff, attempt, session, status, gate, again, .. } = &self.sent;
        let again = if *again { " (shown again)" } else { "" };
        let carry = match self.sent.transport {
            Transport::Chat => "paste the packet into a separate chat and copy its answer",
            Transport::Human => "give the packet to a person, who fills in the form at its end",
            Transport::Agent
            | Transport::Worker
            | Transport::Process
            | Transport::Http
            | Transport::Import => "hand the packet to a separate agent and keep its answer",
        };
        let mut news = vec![
            format!("handoff {handoff}, attempt {attempt}{again}, gate {gate}"),
            format!("session {session} is {status}; {carry}"),
        ];
        news.extend(self.sent.displaced.as_ref().map(|other| left_for_another(gate, other)));
        news
    }

    fn next(&self) -> Option<String> {
        Some("nf reply FILE, or nf reply - with the answer on standard input".to_owned())
    }

    fn is_raw(&self) -> bool {
        true
    }
}

/// What is to be sent.
enum What {
    /// A frozen question.
    Question(JobId),
    /// The work of a handoff that carries no question.
    Task(HandoffId),
}

/// What was read before the lock.
struct Facts {
    frozen: FrozenJob,
    artifacts: Vec<Vec<u8>>,
    asked: What,
    declared: Bindings,
}

impl Packet {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `io` for the file.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        if let Some(from) = &self.from {
            return super::carry::far::packet(ctx, from, self.transport, self.out.as_deref());
        }
        let opened = ctx.open()?;
        if let Some(path) = self.out.as_ref().filter(|path| path.as_os_str() != "-") {
            opened.project.not_in_store(&ctx.folder.join(path))?;
            free_for_packet(&ctx.folder.join(path))?;
        }
        let request = ctx.request(
            "packet",
            json!({"what": self.what, "for": self.form(), "gate": self.gate, "run": ctx.global.run}),
        );
        // As elsewhere, - is the standard stream.
        let out = self.out.clone().filter(|path| path.as_os_str() != "-");
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, state),
            |turn, facts: &Facts| self.decide(ctx, &opened, turn, facts),
        )?;
        let dry_run = answer.dry_run;
        let sent = answer.outcome.as_ref().ok().cloned();
        let packet = match &sent {
            Some(sent) if !dry_run => Some(self.kept(&opened, sent)?),
            _ => None,
        };
        let out = match (&packet, &out) {
            (Some(text), Some(path)) => {
                write_secret(&ctx.folder.join(path), text)
                    .map_err(|error| error.fix("the packet is out; nf packet --out FILE shows it again"))?;
                Some(path.clone())
            }
            _ => None,
        };
        let packet = packet.filter(|_| out.is_none());
        Done::written(answer, |sent| PacketReport { sent, packet, out })
    }

    fn form(&self) -> Transport {
        self.transport.unwrap_or(Transport::Chat)
    }

    fn kept(&self, opened: &Opened, sent: &Sent) -> Result<String> {
        let kept = opened.store.packet(&sent.attempt)?.filter(|text| is_whole(text, &sent.packet_hash));
        kept.ok_or_else(|| {
            Error::new(Kind::LeaseLost, format!("attempt {} has ended, and its packet with it", sent.attempt))
                .fix("nf status")
        })
    }

    /// The session that asks: the one named, else that of the handoff that is named, else the only open one.
    fn session(&self, ctx: &Context, state: &State) -> Result<Session> {
        match self.what.as_deref().filter(|text| kind_of(text).is_ok_and(|kind| kind == IdKind::HandoffId)) {
            Some(text) => source(ctx, state, &find(state, text)?),
            None => ctx.session(state),
        }
    }

    fn gather(&self, ctx: &Context, opened: &Opened, state: &State) -> Result<Gathered<Facts>> {
        let session = self.session(ctx, state)?;
        let asked = self.asked(state, &session)?;
        let frozen = match &asked {
            What::Question(job) => load::frozen(&opened.store, &get(state, job)?)?,
            What::Task(handoff) => load::asked(&opened.store, None, &get(state, handoff)?)?,
        };
        let artifacts = load::artifacts(&opened.store, &frozen)?;
        let held = load::newest_bindings(&opened.store, state, &session)?;
        let declared = load::declared(opened, &held)?;
        Ok(declared.map(|declared| Facts { frozen, artifacts, asked, declared }))
    }

    /// The job that is named, directly or by its handoff; else the only one that waits for an answer. A
    /// handoff without a job is itself what is asked.
    fn asked(&self, state: &State, session: &Session) -> Result<What> {
        let Some(text) = &self.what else { return Ok(What::Question(waiting_job(state, session)?.id)) };
        match kind_of(text)? {
            IdKind::HandoffId => {
                let handoff: Handoff = find(state, text)?;
                if handoff.source_session != session.id {
                    return Err(Error::new(
                        Kind::Usage,
                        format!("handoff {} is another session's", handoff.id),
                    )
                    .because(format!("want {}, got {}", handoff.source_session, session.id))
                    .fix(format!("give --session {}", handoff.source_session)));
                }
                if !handoff.state.is_open() && handoff.state != crate::model::handoff::HandoffState::Completed
                {
                    return Err(Error::new(
                        Kind::HandoffCancelled,
                        format!("handoff {} is {}", handoff.id, handoff.state),
                    ));
                }
                Ok(handoff.job.map_or(What::Task(handoff.id), What::Question))
            }
            _ => Ok(What::Question(find::<Job>(state, text)?.id)),
        }
    }

    fn decide(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &mut Turn<'_>,
        facts: &Facts,
    ) -> Result<Decision<Sent>> {
        let state = turn.state;
        let session = self.session(ctx, state)?;
        ctx.expect_version(&session)?;
        let run = ctx.current_run(state, &session)?;
        let (job, own) = match &facts.asked {
            What::Question(id) => {
                let mut outstanding = state.outstanding(&session.id).into_iter();
                let own = outstanding.find(|handoff| handoff.job.as_ref() == Some(id));
                (Some(get::<Job>(state, id)?), own)
            }
            What::Task(id) => (None, Some(get::<Handoff>(state, id)?)),
        };
        let question = job.as_ref().map(|job| job.fingerprint.as_str());
        let question = question.or(own.as_ref().map(Handoff::question)).unwrap_or_default();
        let history = state.history(question);
        let active: Vec<Attempt> = state.active(&history).collect();
        let attempt = own.as_ref().and_then(|own| state.get::<Attempt>(own.attempt.as_ref()?));
        // A packet file that is not what went out is as good as lost: it must never be shown.
        let kept = match attempt {
            Some(attempt) => {
                opened.store.packet(&attempt.id)?.filter(|text| is_whole(text, &attempt.packet_hash))
            }
            None => None,
        };
        let newest = load::newest_bindings(&opened.store, state, &session)?;
        let relay = Relay {
            session,
            run,
            job: job.as_ref(),
            frozen: &facts.frozen,
            artifacts: &facts.artifacts,
            transport: self.form(),
            gate: self.gate.clone(),
            own,
            history,
            active,
            kept,
            bindings: carry(&newest, &facts.declared),
        };
        send(turn, relay)
    }
}

/// Whether a packet's text is the one that went out.
fn is_whole(text: &str, recorded: &Hash) -> bool {
    Hash::of(text.as_bytes()) == *recorded
}

/// The only job frozen by this session whose question is still open.
///
/// # Errors
/// As [`only`].
pub fn waiting_job(state: &State, session: &Session) -> Result<Job> {
    let rows = state.of_session(&session.id, IdKind::JobId, None).take(1000);
    let jobs = rows.filter_map(|row| state.get::<Job>(&row.id.parse().ok()?));
    let (judged, open): (Vec<Job>, Vec<Job>) =
        jobs.partition(|job| state.history(&job.fingerprint).closing(Some(&job.execution)).is_some());
    // Where every question has its answer, the newest one's refusal says more than "no candidate".
    let candidates = if open.is_empty() { judged.into_iter().take(1).collect() } else { open };
    let out = |job: &Job| !state.history(&job.fingerprint).active.is_empty();
    let mark = |job: &Job| if out(job) { " (a packet is out)" } else { "" };
    only("job", candidates, |job| format!("{} {} {}{}", job.id, job.kind, job.subject, mark(job))).map_err(
        |error| match error.kind {
            Kind::NoCandidate => error
                .because(format!("session {} has frozen no job that still waits for an answer", session.id))
                .fix("nf freeze FILE, then nf packet"),
            _ => error.fix("nf packet JOB"),
        },
    )
}
