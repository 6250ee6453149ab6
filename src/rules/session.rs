//! Sessions and runs begin, move and end here, each as one batch (session-runtime contract, 01 to 06).

use super::checkpoint::{self, Saved};
use super::lease;
use super::lifecycle::{self, Course};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::handoff::Handoff;
use crate::model::id::{AttemptId, CheckpointId, Name, RunId, SessionId, word};
use crate::model::run::{ManifestEntry, Outlook, Run, RunStatus};
use crate::model::session::{Host, MemoryPolicy, ResumePolicy, Role, Session, Status};

/// What a new session is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The resource.
    pub resource: Name,
    /// The project.
    pub project: Option<Name>,
    /// The responsibility.
    pub role: Role,
    /// The task mode.
    pub task_mode: Name,
    /// What may be kept.
    pub memory_policy: MemoryPolicy,
    /// Whether it may be resumed.
    pub resume_policy: ResumePolicy,
    /// The session it comes from.
    pub parent: Option<SessionId>,
    /// The provider's own id.
    pub native: Option<String>,
    /// Where it runs.
    pub host: Host,
    /// The attempt that it is made for, where it is a worker's.
    pub worker_of: Option<AttemptId>,
}

impl Spec {
    /// What `start` makes: a manager in a shell that keeps its session.
    pub fn manager(resource: Name, task_mode: Name, parent: Option<SessionId>) -> Self {
        Self {
            resource,
            project: None,
            role: Role::Manager,
            task_mode,
            memory_policy: MemoryPolicy::Session,
            resume_policy: ResumePolicy::Revalidate,
            parent,
            native: None,
            host: Host::Shell,
            worker_of: None,
        }
    }
}

/// A session and where it is.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Stands {
    /// The session.
    pub session: SessionId,
    /// Its state.
    pub status: Status,
    /// Its version.
    pub version: u64,
    /// Its current run.
    pub run: Option<RunId>,
    /// The run's cursor.
    pub cursor: Option<Name>,
    /// The session it began from.
    pub parent: Option<SessionId>,
}

impl Stands {
    fn of(course: &Course) -> Self {
        Self {
            session: course.session.id.clone(),
            status: course.session.status,
            version: course.session.version,
            run: course.run.as_ref().map(|run| run.id.clone()),
            cursor: course.run.as_ref().map(|run| run.cursor.clone()),
            parent: course.session.parent.clone(),
        }
    }
}

/// Makes a session in state `created`.
///
/// # Errors
/// `usage` for a reviewer whose memory policy is not none or bounded, or a native id over 1 KiB.
pub fn create(turn: &mut Turn<'_>, spec: Spec) -> Result<Course> {
    let bounded = matches!(spec.memory_policy, MemoryPolicy::None | MemoryPolicy::Bounded);
    if spec.role == Role::SemanticReviewer && !bounded {
        return Err(Error::new(Kind::Usage, "a semantic_reviewer keeps no memory")
            .because(format!("want none or bounded, got {}", spec.memory_policy))
            .fix("give --memory none or --memory bounded"));
    }
    if spec.native.as_ref().is_some_and(|native| native.len() > 1024) {
        return Err(Error::new(Kind::Usage, "a native id has at most 1024 bytes"));
    }
    let session = Session {
        id: turn.id()?,
        resource: spec.resource,
        project: spec.project,
        role: spec.role,
        task_mode: spec.task_mode,
        memory_policy: spec.memory_policy,
        resume_policy: spec.resume_policy,
        parent: spec.parent,
        native: spec.native,
        host: spec.host,
        worker_of: spec.worker_of,
        status: Status::Created,
        version: 1,
        created_at: turn.at(),
        updated_at: turn.at(),
        run: None,
        checkpoint: None,
    };
    let mut course = Course::new(session, None);
    course.events.push(Event::SessionCreated { session: course.session.clone() });
    Ok(course)
}

/// `session new`: a session that does not run yet.
///
/// # Errors
/// As [`create`].
pub fn new(turn: &mut Turn<'_>, spec: Spec) -> Result<Decision<Stands>> {
    let course = create(turn, spec)?;
    let stands = Stands::of(&course);
    Ok(Decision::new(course.events, stands))
}

/// A run that begins now; what the one before waits for, and what its gates say, goes on in it.
///
/// # Errors
/// The system gives no random bytes.
pub fn next_run(
    turn: &mut Turn<'_>,
    session: &Session,
    cursor: Name,
    context_manifest: Vec<ManifestEntry>,
    before: Option<&Run>,
) -> Result<Run> {
    Ok(Run {
        id: turn.id()?,
        session: session.id.clone(),
        task_mode: session.task_mode.clone(),
        resource: session.resource.clone(),
        cursor,
        context_manifest,
        pending: before.map_or_else(Outlook::default, |run| run.pending.clone()),
        status: RunStatus::Running,
        outcome: None,
        resumed_from: before.map(|run| run.id.clone()),
        started_at: turn.at(),
        ended_at: None,
    })
}

/// The first run of a session: it runs, and its bindings are kept.
fn run_first(turn: &mut Turn<'_>, course: &mut Course, cursor: Name, bindings: Bindings) -> Result<()> {
    course.go(Status::Running)?;
    let run = next_run(turn, &course.session, cursor, Vec::new(), None)?;
    course.begin(run.clone());
    let saved = Saved {
        session: &course.session,
        run: &run,
        boundary: Boundary::Other,
        pending: CheckpointPending::default(),
    };
    let checkpoint = checkpoint::save(turn, saved, bindings)?;
    course.events.push(Event::CheckpointSaved { checkpoint });
    Ok(())
}

/// `start`: a manager that runs.
///
/// # Errors
/// As [`create`].
pub fn start(
    turn: &mut Turn<'_>,
    resource: Name,
    task: Name,
    declared: Bindings,
) -> Result<Decision<Stands>> {
    let mut course = create(turn, Spec::manager(resource, task, None))?;
    let cursor = word("start")?;
    run_first(turn, &mut course, cursor, declared)?;
    let stands = Stands::of(&course);
    Ok(Decision::new(course.events, stands))
}

/// What a session begins from.
pub struct Before {
    /// The session that is left.
    pub session: Session,
    /// Its newest run.
    pub run: Option<Run>,
    /// The cursor of the checkpoint that was named.
    pub cursor: Option<Name>,
    /// Its outstanding handoffs.
    pub outstanding: Vec<Handoff>,
}

/// `start --from`: a new session where an ended one stopped, with no bindings of the old. What was
/// outstanding is cancelled.
///
/// # Errors
/// `illegal_transition` where the old session is not stale, failed or terminated.
pub fn start_from(turn: &mut Turn<'_>, before: Before, declared: Bindings) -> Result<Decision<Stands>> {
    let old = &before.session;
    if !matches!(old.status, Status::Stale | Status::Failed | Status::Terminated) {
        return Err(Error::new(
            Kind::IllegalTransition,
            format!("session {} is {} and has not been left behind", old.id, old.status),
        )
        .because("a session begins from one that is stale, failed or terminated")
        .fix(format!("nf session move {} stale, then nf start --from {}", old.id, old.id)));
    }
    let cursor = before.cursor.or_else(|| before.run.as_ref().map(|run| run.cursor.clone()));
    let cursor = cursor.map_or_else(|| word("start"), Ok)?;
    let mut spec = Spec::manager(old.resource.clone(), old.task_mode.clone(), Some(old.id.clone()));
    spec.project.clone_from(&old.project);
    let mut events = Vec::new();
    let reason = word("left_behind")?;
    for handoff in &before.outstanding {
        events.extend(lease::cancel(turn.state, handoff, &reason)?);
    }
    let mut course = create(turn, spec)?;
    run_first(turn, &mut course, cursor, declared)?;
    let stands = Stands::of(&course);
    events.append(&mut course.events);
    Ok(Decision::new(events, stands))
}

/// Handoffs that the end of a session takes back in its one record; no claim takes what is left.
const TAKEN_BACK: usize = 300;

/// `session move`: to any legal state; to running only from created, which opens the first run.
///
/// # Errors
/// `illegal_transition`, `version_mismatch`.
pub fn move_to(
    turn: &mut Turn<'_>,
    mut course: Course,
    to: Status,
    expected_version: Option<u64>,
    declared: Bindings,
) -> Result<Decision<Stands>> {
    course.expect_version(expected_version)?;
    let from = course.session.status;
    if to == Status::Running && from != Status::Created {
        lifecycle::allow(&course.session.id, from, to)?;
        return Err(Error::new(
            Kind::IllegalTransition,
            format!("session {} goes from {from} to running only by a fresh validation", course.session.id),
        )
        .fix(format!("nf resume {}", course.session.id)));
    }
    if to == Status::Running {
        run_first(turn, &mut course, word("start")?, declared)?;
    } else {
        course.go(to)?;
    }
    if to == Status::Terminated {
        // Nobody is left to apply an answer: what was asked is taken back with the one who asked it.
        let reason = word("terminated")?;
        for handoff in turn.state.open_handoffs(&course.session.id).take(TAKEN_BACK) {
            course.events.extend(lease::cancel(turn.state, &handoff, &reason)?);
        }
    }
    let stands = Stands::of(&course);
    Ok(Decision::new(course.events, stands))
}

/// `run step`: the cursor of the current run moves.
///
/// # Errors
/// `version_mismatch`.
pub fn step(
    mut course: Course,
    mut run: Run,
    cursor: Name,
    expected_version: Option<u64>,
) -> Result<Decision<Stands>> {
    course.expect_version(expected_version)?;
    if run.cursor != cursor {
        course.events.push(Event::RunStepped { run: run.id.clone(), cursor: cursor.clone() });
    }
    run.cursor = cursor;
    course.run = Some(run);
    let stands = Stands::of(&course);
    Ok(Decision::new(course.events, stands))
}

/// `run finish`: the session becomes idle or failed, and its run ends with it.
///
/// # Errors
/// `illegal_transition`, `version_mismatch`.
pub fn finish(mut course: Course, failed: bool, expected_version: Option<u64>) -> Result<Decision<Stands>> {
    course.expect_version(expected_version)?;
    course.go(if failed { Status::Failed } else { Status::Idle })?;
    let stands = Stands::of(&course);
    Ok(Decision::new(course.events, stands))
}

/// What `checkpoint save` saved.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct SavedPoint {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Its session.
    pub session: SessionId,
    /// Its run.
    pub run: RunId,
    /// Where in the work it stands.
    pub boundary: Boundary,
    /// The workflow step.
    pub cursor: Name,
    /// Everything that it binds.
    pub bindings: Bindings,
}

/// `checkpoint save`: what was named is bound with the hash it has now; the cursor moves with it.
///
/// # Errors
/// `too_large`, `private_key`, `version_mismatch`.
pub fn save(
    turn: &mut Turn<'_>,
    mut course: Course,
    mut run: Run,
    (boundary, cursor): (Boundary, Option<Name>),
    bindings: Bindings,
    expected_version: Option<u64>,
) -> Result<Decision<SavedPoint>> {
    course.expect_version(expected_version)?;
    if let Some(cursor) = cursor.filter(|cursor| *cursor != run.cursor) {
        course.events.push(Event::RunStepped { run: run.id.clone(), cursor: cursor.clone() });
        run.cursor = cursor;
    }
    let saved =
        Saved { session: &course.session, run: &run, boundary, pending: CheckpointPending::default() };
    let checkpoint = checkpoint::save(turn, saved, bindings.clone())?;
    let point = SavedPoint {
        checkpoint: checkpoint.id.clone(),
        session: course.session.id.clone(),
        run: run.id,
        boundary,
        cursor: run.cursor,
        bindings,
    };
    course.events.push(Event::CheckpointSaved { checkpoint });
    Ok(Decision::new(course.events, point))
}
