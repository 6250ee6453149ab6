//! `handoff open` and `handoff cancel`: what the session that asks does with the queue.

use clap::Args;
use serde_json::json;

use super::task::{Given, Read, TaskArgs};
use crate::cli::ctx::{Context, Opened, find, get};
use crate::cli::load;
use crate::cli::output::{Done, Report, when};
use crate::cli::packet::waiting_job;
use crate::error::Result;
use crate::model::checkpoint::Bindings;
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::Handoff;
use crate::model::id::{JobId, Name};
use crate::model::job::Job;
use crate::model::session::{Role, Session};
use crate::model::state::State;
use crate::model::time::{Time, parse_millis};
use crate::rules::checkpoint::carry;
use crate::rules::handoff::{Opening, Queued, TakenBack, Terms, Work, cancel, open};
use crate::rules::ways::left_for_another;
use crate::store::Gathered;

/// Queue a frozen question for workers of a class
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf handoff open --class semantic_reviewer --wait\n  \
    nf handoff open j-7hd3 --class specialist --gate ci/gate --priority 5 --max-attempts 2\n  \
    nf handoff open --class specialist --gate research/ch02 --instructions task.md --returns shape.yaml")]
pub struct Open {
    /// The job; may be left out while exactly one waits for an answer
    pub job: Option<String>,
    /// manager, writer, specialist, semantic_reviewer, human_reviewer or other:NAME
    #[arg(long, value_name = "CLASS")]
    pub class: Role,
    /// The gate that the answer moves [default: gate/SUBJECT/KIND]
    #[arg(long, value_name = "NAME")]
    pub gate: Option<Name>,
    /// Let the session wait for the answer
    #[arg(long)]
    pub wait: bool,
    /// 9 goes before 0; the oldest first among equals
    #[arg(long, value_name = "0-9", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: u8,
    /// Not to be claimed before this moment (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub not_before: Option<Time>,
    /// Attempts that the question may have, over all its handoffs
    #[arg(long, value_name = "N", default_value_t = crate::rules::handoff::WORKER_MAX_ATTEMPTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_attempts: u32,
    /// How long a claim is protected: one second to 30 days
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_millis)]
    pub ttl: u64,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// Take a handoff back for good; its attempt, if one is active, is revoked
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nf handoff cancel h-4q2mk7ta0xwd")]
pub struct Cancel {
    /// The handoff (id or unique beginning)
    pub handoff: String,
}

/// A handoff in the queue.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct OpenReport {
    #[serde(flatten)]
    queued: Queued,
    #[serde(skip)]
    now: Option<Time>,
}

impl Report for OpenReport {
    const COMMAND: &'static str = "handoff.open";

    fn answer(&self) -> String {
        self.queued.handoff.to_string()
    }

    fn news(&self) -> Vec<String> {
        let Queued { handoff, session, status, class, gate, ready_at, again, .. } = &self.queued;
        let again = if *again { " (open already)" } else { "" };
        let from = match (ready_at, self.now) {
            (Some(from), Some(now)) => format!(", not before {}", when(*from, now)),
            _ => String::new(),
        };
        let mut news = vec![
            format!("handoff {handoff} for {class}, gate {gate}{again}{from}"),
            format!("session {session} is {status}"),
        ];
        news.extend(self.queued.displaced.as_ref().map(|other| left_for_another(gate, other)));
        news
    }

    fn next(&self) -> Option<String> {
        Some(self.queued.way.clone())
    }
}

/// A handoff that was taken back.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct CancelReport(TakenBack);

impl Report for CancelReport {
    const COMMAND: &'static str = "handoff.cancel";

    fn answer(&self) -> String {
        self.0.handoff.to_string()
    }

    fn news(&self) -> Vec<String> {
        taken_back(&self.0)
    }

    fn next(&self) -> Option<String> {
        Some("nf status".to_owned())
    }
}

/// What became of a handoff and its attempt, in words.
pub fn taken_back(told: &TakenBack) -> Vec<String> {
    let again = if told.again { " already" } else { "" };
    let attempt = told.attempt.as_ref().map(|attempt| format!("attempt {attempt} is revoked"));
    std::iter::once(format!("handoff {} is {}{again}", told.handoff, told.state)).chain(attempt).collect()
}

/// What was read before the lock.
struct Facts {
    work: Asked,
    declared: Bindings,
}

/// What is to be queued, as it was found before the lock.
enum Asked {
    Question(JobId),
    Task(Box<Read>),
}

impl Open {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let given = self.task.read(ctx)?;
        let request = ctx.request(
            "handoff open",
            json!({
                "job": self.job, "task": given.as_ref().map(Given::facts), "context": self.task.context,
                "class": self.class, "gate": self.gate, "wait": self.wait,
                "priority": self.priority, "not_before": self.not_before, "run": ctx.global.run,
                "max_attempts": self.max_attempts, "ttl_ms": self.ttl,
            }),
        );
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, given.as_ref(), state),
            |turn, facts: &Facts| self.decide(ctx, &opened, turn, facts),
        )?;
        let now = Some((opened.source.moment)().wall);
        Done::written(answer, |queued| OpenReport { queued, now })
    }

    fn gather(
        &self,
        ctx: &Context,
        opened: &Opened,
        given: Option<&Given>,
        state: &State,
    ) -> Result<Gathered<Facts>> {
        let session = ctx.session(state)?;
        let (work, stamps) = match (given, &self.job) {
            (Some(given), _) => {
                let (read, stamps) = Read::now(opened, given, &session.resource)?;
                (Asked::Task(Box::new(read)), stamps)
            }
            (None, Some(text)) => (Asked::Question(find::<Job>(state, text)?.id), Vec::new()),
            (None, None) => (Asked::Question(waiting_job(state, &session)?.id), Vec::new()),
        };
        let held = load::newest_bindings(&opened.store, state, &session)?;
        let mut gathered = load::declared(opened, &held)?.map(|declared| Facts { work, declared });
        gathered.files.extend(stamps);
        Ok(gathered)
    }

    fn decide(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &mut Turn<'_>,
        facts: &Facts,
    ) -> Result<Decision<Queued>> {
        let state = turn.state;
        let session: Session = ctx.session(state)?;
        ctx.expect_version(&session)?;
        let run = ctx.current_run(state, &session)?;
        let job: Job;
        let work = match &facts.work {
            Asked::Question(id) => {
                job = get(state, id)?;
                Work::Question(&job)
            }
            Asked::Task(read) => {
                read.keep(turn);
                Work::Task(&read.task, &self.task.context)
            }
        };
        let history = work.job().map(|job| state.history(&job.fingerprint)).unwrap_or_default();
        let same = |handoff: &Handoff| work.job().is_some_and(|job| handoff.job.as_ref() == Some(&job.id));
        let newest = load::newest_bindings(&opened.store, state, &session)?;
        let opening = Opening {
            active: state.active(&history).collect(),
            own: state.outstanding(&session.id).into_iter().find(same),
            history,
            session,
            run,
            work,
            terms: Terms {
                class: self.class.clone(),
                gate: self.gate.clone(),
                priority: self.priority,
                not_before: self.not_before,
                max_attempts: self.max_attempts,
                ttl_ms: self.ttl,
            },
            wait: self.wait,
            bindings: carry(&newest, &facts.declared),
        };
        open(turn, opening)
    }
}

impl Cancel {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let request = ctx.request("handoff cancel", json!({"handoff": self.handoff}));
        let answer = opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| {
                let handoff: Handoff = find(turn.state, &self.handoff)?;
                let session = source(ctx, turn.state, &handoff)?;
                cancel(turn, &session, &handoff)
            },
        )?;
        Done::written(answer, CancelReport)
    }
}

/// The session that acts for a handoff: the one named, else the one that asked.
///
/// # Errors
/// `unknown_id`, `version_mismatch`.
pub fn source(ctx: &Context, state: &State, handoff: &Handoff) -> Result<Session> {
    let session = match ctx.named_session(state)? {
        Some(session) => session,
        None => get(state, &handoff.source_session)?,
    };
    ctx.expect_version(&session)?;
    Ok(session)
}
