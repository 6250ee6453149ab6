//! Independence: whether another mind answered, and how well that is proved (semantic-execution
//! contract, 04). Each ground is a line that `nf show RESULT` explains.

use crate::model::check::Check;
use crate::model::id::SessionId;
use crate::model::job::Grade;
use crate::model::session::{MemoryPolicy, Session};
use crate::model::witness::Witness;

/// The name of a ground that proves another mind.
const APART: &str = "apart";

/// What is known of the one who asked and the one who answered.
pub struct Facts<'a> {
    /// The session that asked.
    pub source: &'a SessionId,
    /// Its ancestors.
    pub ancestors: &'a [SessionId],
    /// The other side's ids of those who asked and froze, and of those before them, as far as they are known.
    pub natives: &'a [String],
    /// The session that answered.
    pub worker: &'a Session,
    /// What `nf` saw of the invocation, where it made one itself.
    pub witness: Option<&'a Witness>,
    /// Whether that is only what a file from far away states.
    pub imported: bool,
    /// The sessions that froze the job.
    pub frozen_by: &'a [SessionId],
    /// Whether the attempt's own nonce came back.
    pub nonce_returned: bool,
    /// Who answered, as stated: provider and model, or a name; `None` where the blank was left.
    pub named: Option<String>,
}

/// The grounds, each held or not, in the contract's order.
pub fn grounds(facts: &Facts<'_>) -> Vec<Check> {
    let worker = &facts.worker.id;
    let kin = worker == facts.source || facts.ancestors.contains(worker);
    let bounded = matches!(facts.worker.memory_policy, MemoryPolicy::None | MemoryPolicy::Bounded);
    let seen = facts.witness.and_then(|witness| witness.native_session.as_deref());
    let native = match (facts.natives, seen.or(facts.worker.native.as_deref())) {
        (known @ [_, ..], Some(answered)) => {
            let other = known.iter().all(|asked| asked != answered);
            Check::new("native", other, "another native id", answered)
        }
        _ => Check::new("native", true, "another native id where both are known", "not both known"),
    };
    let mut grounds = vec![
        Check::new("session", !kin, "not the source session nor its ancestor", worker.to_string()),
        Check::new(
            "freezer",
            !facts.frozen_by.contains(worker),
            "a session that did not freeze the job",
            worker.to_string(),
        ),
        Check::new("memory", bounded, "none or bounded", facts.worker.memory_policy.word()),
        native,
        Check::new("packet", true, "the packet was the only input nf gave", "its hash is recorded"),
        Check::new(
            "nonce",
            facts.nonce_returned,
            "the attempt's nonce came back",
            if facts.nonce_returned { "it did" } else { "it did not" },
        ),
        Check::new(
            "named",
            facts.named.is_some(),
            "a worker that is named",
            facts.named.clone().unwrap_or_else(|| "the blank".to_owned()),
        ),
    ];
    grounds.extend(facts.witness.map(|witness| apart(witness, facts.imported)).unwrap_or_default());
    grounds
}

/// What was seen of the invocation, line by line: each thing that proves another mind, or that nothing does.
fn apart(witness: &Witness, imported: bool) -> Vec<Check> {
    let made = match (&witness.invocation, &witness.request_id) {
        (Some(process), _) => Some(format!("process {}, from {}", process.pid, process.started_at)),
        (None, Some(request)) => Some(format!("request {request}")),
        (None, None) => None,
    };
    let Some(made) = made else { return Vec::new() };
    if imported {
        let got = format!("{made}, as the result file states it");
        return vec![Check::new("invocation", true, "declared: one that nf made far away", got)];
    }
    let mut lines = vec![Check::new("invocation", true, "one that nf itself made", made)];
    match witness.isolation.as_slice() {
        [] => lines.push(Check::new(
            "isolation",
            true,
            "declared: not proved to be kept from the project",
            "it might read the disk",
        )),
        proofs => lines.extend(proofs.iter().map(|got| Check::new(APART, true, "kept apart", got.clone()))),
    }
    lines
}

/// The grade that the grounds give: a relay is stated and bound by its nonce, never proved; only what `nf`
/// itself ran, and kept apart, is.
pub fn grade(grounds: &[Check]) -> Grade {
    match grounds.iter().all(|ground| ground.ok) {
        false => Grade::None,
        true if grounds.iter().any(|ground| ground.check == APART) => Grade::Attested,
        true => Grade::Declared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::session::{Host, ResumePolicy, Role, Status};
    use crate::model::time::Time;

    /// A worker's session for tests.
    fn session(id: &str, memory: MemoryPolicy) -> Session {
        Session {
            id: id.parse().unwrap(),
            resource: "novel/pride".parse().unwrap(),
            project: None,
            role: Role::SemanticReviewer,
            task_mode: "review".parse().unwrap(),
            memory_policy: memory,
            resume_policy: ResumePolicy::Revalidate,
            parent: None,
            native: None,
            host: Host::Chat,
            worker_of: None,
            status: Status::Running,
            version: 1,
            created_at: Time::from_micros(0),
            updated_at: Time::from_micros(0),
            run: None,
            checkpoint: None,
        }
    }

    #[test]
    fn each_ground_alone_takes_the_grade_away() {
        let source: SessionId = "s-000000000001".parse().unwrap();
        let ancestor: SessionId = "s-000000000002".parse().unwrap();
        let worker = session("s-00000000000a", MemoryPolicy::None);
        let base = || Facts {
            source: &source,
            ancestors: std::slice::from_ref(&ancestor),
            natives: &[],
            worker: &worker,
            witness: None,
            imported: false,
            frozen_by: &[],
            nonce_returned: true,
            named: Some("someone".to_owned()),
        };
        assert_eq!(grade(&grounds(&base())), Grade::Declared);
        let own = session("s-000000000001", MemoryPolicy::None);
        let parent = session("s-000000000002", MemoryPolicy::None);
        let keeps = session("s-00000000000a", MemoryPolicy::Session);
        let mut native = session("s-00000000000a", MemoryPolicy::Bounded);
        native.native = Some("chat-1".to_owned());
        let frozen_by = [worker.id.clone()];
        let (one, two) = (["chat-0".to_owned(), "chat-1".to_owned()], ["chat-2".to_owned()]);
        let table: Vec<(&str, Facts<'_>)> = vec![
            ("session", Facts { worker: &own, ..base() }),
            ("session", Facts { worker: &parent, ..base() }),
            ("freezer", Facts { frozen_by: &frozen_by, ..base() }),
            ("memory", Facts { worker: &keeps, ..base() }),
            ("native", Facts { worker: &native, natives: &one, ..base() }),
            ("nonce", Facts { nonce_returned: false, ..base() }),
            ("named", Facts { named: None, ..base() }),
        ];
        for (ground, facts) in table {
            let lines = grounds(&facts);
            assert_eq!(crate::model::check::failed(&lines), [ground]);
            assert_eq!(grade(&lines), Grade::None);
        }
        let other = Facts { worker: &native, natives: &two, ..base() };
        assert_eq!(grade(&grounds(&other)), Grade::Declared);
    }
}
