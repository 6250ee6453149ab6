//! `status`: what waits on whom, and the command for it.

use clap::Args;

use super::ctx::Context;
use super::output::{Done, Report, count};
use crate::error::Result;
use crate::model::id::{IdKind, SessionId};
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::model::time::Time;
use crate::rules::waiting::Group;
use crate::store::Position;
use matter::Matter;
use session::{OpenSession, Seen};

mod matter;
mod session;

/// Show what waits on whom
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf status\n  nf status --json")]
pub struct StatusCommand {}

/// Sessions that one answer shows.
const MAX_SESSIONS: usize = 100;
/// Objects of one sort that it shows of a session.
const MAX_EACH: usize = 20;

/// The whole picture.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct StatusReport {
    /// Sessions that are not ended.
    pub sessions: Vec<OpenSession>,
    /// Whether there are more than are shown.
    pub more: bool,
    /// The newest session, where it was left behind and nothing was begun from it.
    pub left: Option<SessionId>,
    /// Contradictions that were refused so far.
    pub conflicts: u64,
    /// The newest record.
    pub head: Option<Position>,
    /// The moment of the picture.
    pub now: Time,
}

impl Report for StatusReport {
    const COMMAND: &'static str = "status";

    fn answer(&self) -> String {
        let mut lines = Vec::new();
        if self.sessions.len() > 1 {
            lines.push(self.summary());
        }
        for session in &self.sessions {
            lines.extend(session.lines(self.now));
        }
        if self.sessions.len() > 1 {
            lines.push(
                "several sessions are open: give --session ID or set NF_SESSION; nf session move ID \
                 terminated ends one"
                    .to_owned(),
            );
        }
        if self.more {
            lines.push(format!("more than {MAX_SESSIONS} open sessions: nf list session"));
        }
        if self.conflicts > 0 {
            let refused = count(self.conflicts as usize, "contradiction");
            lines.push(format!("refused so far: {refused} (nf log shows conflict.refused)"));
        }
        if lines.is_empty() {
            lines.push("no open session".to_owned());
        }
        lines.join("\n")
    }

    fn next(&self) -> Option<String> {
        if let Some(left) = &self.left {
            return Some(format!("nf start --from {left}, or nf start --resource R --task T"));
        }
        self.sessions.is_empty().then(|| "nf start --resource R --task T".to_owned())
    }
}

impl StatusReport {
    /// How much there is of each group, over all sessions.
    fn summary(&self) -> String {
        let all: Vec<&Matter> = self.sessions.iter().flat_map(|session| &session.matters).collect();
        let of = |group: Group| all.iter().filter(|matter| matter.group == group).count();
        format!(
            "{}: {} on you, {} stuck, {} leased, {} queued",
            count(self.sessions.len(), "open session"),
            of(Group::You),
            of(Group::Stuck),
            of(Group::Leased),
            of(Group::Queued)
        )
    }
}

impl StatusCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let snapshot = opened.store.read()?;
        let state = &snapshot.state;
        let named = ctx.named_session(state)?;
        let mut sessions: Vec<Session> = match named {
            Some(session) => vec![session],
            None => state.open_sessions().take(MAX_SESSIONS + 1).collect(),
        };
        let more = sessions.len() > MAX_SESSIONS;
        sessions.truncate(MAX_SESSIONS);
        let left = if sessions.is_empty() { left_behind(state) } else { None };
        let moment = (opened.source.moment)();
        let seen = Seen::of(state, &moment);
        let report = StatusReport {
            left,
            sessions: sessions.into_iter().map(|session| seen.look(session)).collect(),
            more,
            conflicts: state.meta().conflicts,
            head: snapshot.position,
            now: moment.wall,
        };
        Ok(Done::of(&report).warned(snapshot.warnings))
    }
}

/// The newest session that is nobody's worker, if it was left behind.
fn left_behind(state: &State) -> Option<SessionId> {
    let rows = state.of_kind(IdKind::SessionId, None).take(100);
    let mut own = rows.filter_map(|row| state.get::<Session>(&row.id.parse().ok()?));
    let newest = own.find(|session| session.worker_of.is_none())?;
    (newest.status == Status::Stale).then_some(newest.id)
}

#[cfg(test)]
mod tests;
