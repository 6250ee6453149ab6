//! Handoffs: one bounded transfer of work, put into the queue by the session that asks, and taken back by it
//! alone (control-plane contract, 04; session-runtime contract, 09).

use super::checkpoint::{self, Saved};
use super::lease::{self, Admission, Asked};
use super::lifecycle::Course;
use super::task::FrozenTask;
use super::{waiting, ways};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::handoff::{Attempt, ContextPolicy, Handoff, HandoffState, Permissions, Task, terms};
use crate::model::id::{HandoffId, JobId, Name, SessionId};
use crate::model::job::Job;
use crate::model::queue::MAX_PRIORITY;
use crate::model::result::History;
use crate::model::run::{Gate, GateStatus, Run};
use crate::model::session::{Role, Session, Status};
use crate::model::state::State;
use crate::model::time::Time;

mod back;

pub use back::{TakenBack, cancel, revoke};

/// How long a worker's lease lasts unless it says otherwise.
pub const WORKER_TTL_MS: u64 = 15 * 60 * 1000;
/// Attempts that a question may have in the queue unless its opener says otherwise.
pub const WORKER_MAX_ATTEMPTS: u32 = 3;
/// The shortest and the longest lease: one second and thirty days.
pub const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=30 * 24 * 60 * 60 * 1000;

/// How a handoff is to be queued.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The role that may answer.
    pub class: Role,
    /// The gate that the answer moves; by default the job's own.
    pub gate: Option<Name>,
    /// 9 goes before 0.
    pub priority: u8,
    /// Before when it is not to be claimed.
    pub not_before: Option<Time>,
    /// Attempts that the question may have, over all its handoffs.
    pub max_attempts: u32,
    /// How long a lease lasts, in milliseconds.
    pub ttl_ms: u64,
}

impl Terms {
    /// Terms of a class with every default.
    pub fn of(class: Role) -> Self {
        Self {
            class,
            gate: None,
            priority: 0,
            not_before: None,
            max_attempts: WORKER_MAX_ATTEMPTS,
            ttl_ms: WORKER_TTL_MS,
        }
    }

    fn sound(&self) -> Result<()> {
        sound_ttl(self.ttl_ms)?;
        if self.priority > MAX_PRIORITY {
            return Err(Error::new(Kind::Usage, format!("a priority is 0 to {MAX_PRIORITY}")));
        }
        if self.max_attempts == 0 {
            return Err(Error::new(Kind::Usage, "a handoff has at least one attempt"));
        }
        Ok(())
    }
}

/// Refuses a lease that is too short or too long.
///
/// # Errors
/// `usage`.
pub fn sound_ttl(ttl_ms: u64) -> Result<()> {
    if TTL_MS.contains(&ttl_ms) {
        return Ok(());
    }
    Err(Error::new(Kind::Usage, "a lease lasts one second at least and 30 days at most")
        .because(format!("got {ttl_ms} ms"))
        .fix("give --ttl a duration such as 15m"))
}

/// What a handoff is about.
#[derive(Clone, Copy)]
pub enum Work<'a> {
    /// A frozen question.
    Question(&'a Job),
    /// Work that is none, with what is listed for its worker besides the packet.
    Task(&'a FrozenTask, &'a [Name]),
}

impl<'a> Work<'a> {
    /// The job, where it is a frozen question.
    pub fn job(self) -> Option<&'a Job> {
        match self {
            Work::Question(job) => Some(job),
            Work::Task(..) => None,
        }
    }
}

/// Everything that an opening is decided on.
pub struct Opening<'a> {
    /// The session that asks.
    pub session: Session,
    /// Its current run.
    pub run: Option<Run>,
    /// What is to be done.
    pub work: Work<'a>,
    /// How it is to be queued.
    pub terms: Terms,
    /// Whether the session waits for the answer.
    pub wait: bool,
    /// The session's own open handoff of this job.
    pub own: Option<Handoff>,
    /// What has happened to the question.
    pub history: History,
    /// The question's active attempts.
    pub active: Vec<Attempt>,
    /// The bindings that a checkpoint carries over, with what the config declares.
    pub bindings: Bindings,
}

/// A handoff in the queue.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Queued {
    /// The handoff.
    pub handoff: HandoffId,
    /// Its job, where it is a frozen question.
    pub job: Option<JobId>,
    /// The session that asks.
    pub session: SessionId,
    /// Its state now.
    pub status: Status,
    /// The role that may answer.
    pub class: Role,
    /// The gate that the answer moves.
    pub gate: Name,
    /// Before when it is not to be claimed.
    pub ready_at: Option<Time>,
    /// Whether it was open already.
    pub again: bool,
    /// The handoff for whose answer the gate waited until now: that answer moves it no more.
    #[serde(default)]
    pub displaced: Option<HandoffId>,
    /// The command that leads on.
    #[serde(default)]
    pub way: String,
}

/// Puts a question into the queue. The same question of the same session is queued once.
///
/// # Errors
/// `illegal_transition`, `already_judged`, `under_review`, `exhausted`, `usage`.
pub fn open(turn: &mut Turn<'_>, opening: Opening<'_>) -> Result<Decision<Queued>> {
    opening.terms.sound()?;
    if let Some(own) = &opening.own {
        return again(turn, &opening, own);
    }
    let now = turn.now.clone();
    let asked = Asked {
        job: opening.work.job(),
        history: &opening.history,
        active: &opening.active,
        own: None,
        limit: opening.terms.max_attempts,
        now: &now,
        state: turn.state,
    };
    if let Admission::Again(attempt) = lease::admit(&asked)? {
        return Err(lease::under_review(&attempt));
    }
    lease::may_send(&opening.session)?;
    let mut course = Course::new(opening.session, opening.run);
    let handoff = made(turn, &course.session, opening.work, opening.terms)?;
    announce(&mut course, &handoff);
    let displaced = gate_pending(turn.state, &mut course, &handoff);
    let wait = opening.wait.then_some(Status::AwaitingExternal);
    let boundary = if opening.wait { Boundary::ExternalWait } else { Boundary::BeforeLongWork };
    save(turn, &mut course, &handoff, (wait, boundary), opening.bindings)?;
    let way = match handoff.ready_at {
        Some(_) => format!("nf show {}", handoff.id),
        None => ways::to_answer(turn.state, opening.work.job(), &handoff),
    };
    let queued = Queued { displaced, ..told(&handoff, &course.session, false, way) };
    Ok(Decision::new(course.events, queued))
}

fn told(handoff: &Handoff, session: &Session, again: bool, way: String) -> Queued {
    Queued {
        handoff: handoff.id.clone(),
        job: handoff.job.clone(),
        session: session.id.clone(),
        status: session.status,
        class: handoff.target_class.clone(),
        gate: handoff.gate.clone(),
        ready_at: handoff.ready_at,
        again,
        displaced: None,
        way,
    }
}

/// The session has asked already: the same wish is the same handoff, another one is said to be another.
fn again(turn: &Turn<'_>, opening: &Opening<'_>, own: &Handoff) -> Result<Decision<Queued>> {
    lease::same_gate(&own.id, &own.gate, opening.terms.gate.as_ref())?;
    if own.target_class != opening.terms.class {
        return Err(Error::new(Kind::Usage, format!("handoff {} is open for another class", own.id))
            .because(format!("want {}, got {}", own.target_class, opening.terms.class))
            .fix(format!("nf handoff cancel {} takes it back", own.id)));
    }
    let way = waiting::look(turn.state, own, &turn.now, &|time| time.to_string()).way;
    Ok(Decision::nothing(told(own, &opening.session, true, way)))
}

/// The gate of a question where none is given.
fn own_gate(work: Work<'_>) -> Result<Name> {
    match work {
        Work::Question(job) => lease::default_gate(job),
        Work::Task(..) => Err(Error::new(Kind::Usage, "work that is no question has no gate of its own")
            .fix("give --gate NAME")),
    }
}

/// A handoff of a piece of work by a session.
///
/// # Errors
/// `usage` where no gate is given and the job's own is no name.
pub fn made(turn: &mut Turn<'_>, session: &Session, work: Work<'_>, given: Terms) -> Result<Handoff> {
    let (execution, scope) = match work {
        Work::Question(job) => (&job.execution, job.result_scope),
        Work::Task(task, _) => (&task.work.execution, task.work.permissions.result_scope),
    };
    let task = match work {
        Work::Question(_) => None,
        Work::Task(task, _) => Some(Task { blob: turn.blob(task.blob()), places: task.places.clone() }),
    };
    let context = match work {
        Work::Question(_) => Vec::new(),
        Work::Task(_, listed) => listed.to_vec(),
    };
    let gate = given.gate.map_or_else(|| own_gate(work), Ok)?;
    let job = work.job();
    Ok(Handoff {
        id: turn.id()?,
        job: job.map(|job| job.id.clone()),
        fingerprint: job.map(|job| job.fingerprint.clone()),
        task,
        source_session: session.id.clone(),
        target_class: given.class,
        resource: session.resource.clone(),
        gate,
        context_policy: match context.is_empty() {
            true => ContextPolicy::PacketOnly,
            false => ContextPolicy::Listed,
        },
        context,
        permissions: Permissions { result_scope: scope },
        priority: given.priority,
        terms: terms(execution),
        ready_at: given.not_before.filter(|from| *from > turn.now.wall),
        failures: 0,
        max_attempts: given.max_attempts,
        ttl_ms: given.ttl_ms,
        state: HandoffState::Queued,
        number: 0,
        attempt: None,
        result: None,
        opened_at: turn.at(),
        place: 0,
    })
}

/// Opens a handoff in the events of a session's course.
pub fn announce(course: &mut Course, handoff: &Handoff) {
    course.events.push(Event::HandoffOpened { handoff: handoff.clone() });
    if let Some(run) = &mut course.run {
        run.pending.handoffs.insert(handoff.id.clone());
    }
}

/// The gate of the run waits for the handoff, unless it does already. Gives the one that it waited for until
/// now, where that may still be answered or its answer is not applied yet.
pub fn gate_pending(state: &State, course: &mut Course, handoff: &Handoff) -> Option<HandoffId> {
    let run = course.run.as_ref()?;
    let held = run.pending.gates.get(&handoff.gate).filter(|gate| gate.status == GateStatus::Pending);
    let waited = held.and_then(|gate: &Gate| gate.handoff.clone());
    if waited.as_ref() != Some(&handoff.id) {
        course.events.push(Event::GateMoved {
            run: run.id.clone(),
            gate: handoff.gate.clone(),
            to: GateStatus::Pending,
            handoff: Some(handoff.id.clone()),
            result: None,
            verdict: None,
        });
    }
    // The same question, sent again for the gate, has the one answer that both wait for.
    let other = waited.and_then(|id| state.get::<Handoff>(&id));
    let other = other.filter(|other| other.id != handoff.id && other.question() != handoff.question());
    let given_up = [HandoffState::Cancelled, HandoffState::Exhausted];
    other.filter(|other| !given_up.contains(&other.state)).map(|other| other.id)
}

/// The session waits where it is to and does not yet, and the moment is kept as a checkpoint.
///
/// # Errors
/// Those of the lifecycle and of [`checkpoint::save`].
pub fn save(
    turn: &mut Turn<'_>,
    course: &mut Course,
    handoff: &Handoff,
    (wait, boundary): (Option<Status>, Boundary),
    bindings: Bindings,
) -> Result<()> {
    if let Some(status) = wait.filter(|_| course.session.status == Status::Running) {
        course.go(status)?;
    }
    let Some(run) = course.run.clone() else { return Ok(()) };
    let pending = CheckpointPending { handoff: Some(handoff.id.clone()), gate: Some(handoff.gate.clone()) };
    let saved = Saved { session: &course.session, run: &run, boundary, pending };
    let checkpoint = checkpoint::save(turn, saved, bindings)?;
    course.events.push(Event::CheckpointSaved { checkpoint });
    Ok(())
}
