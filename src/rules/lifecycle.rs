//! The lifecycle of sessions and what each move does to the run (session-runtime contract, 04). Every
//! pair that is not in the table is refused, naming the legal ones.

use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::id::{Name, SessionId, word};
use crate::model::run::{Run, RunStatus};
use crate::model::session::{Session, Status};

use Status::{AwaitingExternal, AwaitingUser, Completed, Created, Failed, Idle, Running, Stale, Terminated};

/// The contract's table: from each state, the states that may follow.
pub const TABLE: &[(Status, &[Status])] = &[
    (Created, &[Running]),
    (Running, &[Idle, AwaitingUser, AwaitingExternal, Completed, Failed, Terminated, Stale]),
    (Idle, &[Running, Completed, Terminated, Stale]),
    (AwaitingUser, &[Running, Failed, Terminated, Stale]),
    (AwaitingExternal, &[Running, Failed, Terminated, Stale]),
    (Failed, &[Running, Terminated, Stale]),
    (Completed, &[Stale]),
    (Stale, &[Terminated]),
    (Terminated, &[]),
];

/// The states that may follow one.
pub fn followers(from: Status) -> &'static [Status] {
    TABLE.iter().find(|(state, _)| *state == from).map_or(&[], |(_, followers)| followers)
}

/// Refuses a transition that the table does not have.
///
/// # Errors
/// `illegal_transition`, naming the legal ones.
pub fn allow(session: &SessionId, from: Status, to: Status) -> Result<()> {
    let legal = followers(from);
    if legal.contains(&to) {
        return Ok(());
    }
    let names: Vec<&str> = legal.iter().map(|state| state.word()).collect();
    let cause = if names.is_empty() {
        format!("{from} is final")
    } else {
        format!("from {from} only {} may follow", names.join(", "))
    };
    Err(Error::new(Kind::IllegalTransition, format!("session {session} may not go from {from} to {to}"))
        .because(cause)
        .fix(way(session, from))
        .details(serde_json::json!({"from": from, "to": to, "legal": legal})))
}

/// The command that leads on from a state.
pub fn way(session: &SessionId, from: Status) -> String {
    match from {
        Created => format!("nf session move {session} running"),
        Running => "nf freeze FILE, or nf run finish --status completed".to_owned(),
        Idle => format!("nf resume {session}; when the work is done: nf session move {session} completed"),
        AwaitingUser | AwaitingExternal | Failed => format!("nf resume {session}"),
        Completed => format!("nf session move {session} stale, then nf start --from {session}"),
        Stale | Terminated => format!("nf start --from {session}"),
    }
}

/// Refuses a session that is not at the version that the caller expects.
///
/// # Errors
/// `version_mismatch`.
pub fn expect_version(session: &Session, expected: Option<u64>) -> Result<()> {
    match expected {
        Some(version) if version != session.version => Err(Error::new(
            Kind::VersionMismatch,
            format!("session {} is not at version {version}", session.id),
        )
        .because(format!("want {version}, got {}", session.version))),
        _ => Ok(()),
    }
}

/// A session on its way through one batch: each move is checked, counted and told as events.
pub struct Course {
    /// The session as the moves so far leave it.
    pub session: Session,
    /// Its current run, as the moves so far leave it.
    pub run: Option<Run>,
    /// What has happened so far.
    pub events: Vec<Event>,
}

impl Course {
    /// A course from where a session stands, with its current run.
    pub fn new(session: Session, run: Option<Run>) -> Self {
        Self { session, run, events: Vec::new() }
    }

    /// Refuses to go on where the version is not the expected one.
    ///
    /// # Errors
    /// `version_mismatch`.
    pub fn expect_version(&self, expected: Option<u64>) -> Result<()> {
        expect_version(&self.session, expected)
    }

    /// Moves the session; its run waits or ends with it.
    ///
    /// # Errors
    /// `illegal_transition`.
    pub fn go(&mut self, to: Status) -> Result<()> {
        allow(&self.session.id, self.session.status, to)?;
        let moved = Event::SessionMoved {
            session: self.session.id.clone(),
            from: self.session.status,
            to,
            version: self.session.version + 1,
        };
        self.session.status = to;
        self.session.version += 1;
        self.events.push(moved);
        match to {
            AwaitingUser | AwaitingExternal => self.wait(),
            Idle => self.end(RunStatus::Completed, "finished"),
            Completed => self.end(RunStatus::Completed, "completed"),
            Failed => self.end(RunStatus::Failed, "failed"),
            Stale => self.end(RunStatus::Interrupted, "left_behind"),
            Terminated => self.end(RunStatus::Terminated, "terminated"),
            Created | Running => {}
        }
        Ok(())
    }

    fn wait(&mut self) {
        if let Some(run) = &mut self.run {
            run.status = RunStatus::Waiting;
            self.events.push(Event::RunWaited { run: run.id.clone() });
        }
    }

    /// Ends the current run, if there is one.
    pub fn end(&mut self, status: RunStatus, outcome: &str) {
        // The words are this file's own and are names.
        if let (Some(run), Ok(outcome)) = (self.run.take(), word(outcome)) {
            self.events.push(Event::RunEnded { run: run.id, status, outcome });
        }
    }

    /// Begins a run, which becomes the current one.
    pub fn begin(&mut self, run: Run) {
        self.events.push(Event::RunStarted { run: run.clone() });
        self.session.run = Some(run.id.clone());
        self.run = Some(run);
    }
}

/// Refuses a run of another task mode than the session's one.
///
/// # Errors
/// `other_task`.
pub fn same_task(session: &Session, task: &Name) -> Result<()> {
    if session.task_mode == *task {
        return Ok(());
    }
    Err(Error::new(Kind::OtherTask, format!("session {} has one task mode", session.id))
        .because(format!("want {}, got {task}", session.task_mode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract's own lines, kept apart from the table that is tested.
    const CONTRACT: &str = "created → running
running → idle | awaiting_user | awaiting_external | completed | failed | terminated | stale
idle → running | completed | terminated | stale
awaiting_user → running | failed | terminated | stale
awaiting_external → running | failed | terminated | stale
failed → running | terminated | stale
completed → stale
stale → terminated";

    #[test]
    fn all_81_pairs_are_as_the_contract_says() {
        let id: SessionId = "s-000000000000".parse().unwrap();
        let legal: Vec<(String, String)> = CONTRACT
            .lines()
            .flat_map(|line| {
                let (from, to) = line.split_once(" → ").unwrap();
                to.split(" | ").map(|to| (from.to_owned(), to.to_owned())).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(legal.len(), 25);
        let mut pairs = 0;
        for from in Status::ALL {
            for to in Status::ALL {
                pairs += 1;
                let wanted = legal.contains(&(from.word().to_owned(), to.word().to_owned()));
                let got = allow(&id, *from, *to);
                assert_eq!(got.is_ok(), wanted, "{from} to {to}");
                if let Err(error) = got {
                    assert_eq!(error.kind, Kind::IllegalTransition);
                    for follower in followers(*from) {
                        assert!(error.cause.as_ref().unwrap().contains(follower.word()), "{from} to {to}");
                    }
                }
            }
        }
        assert_eq!(pairs, 81);
    }
}
