//! How many rows a picture looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::cli::list::tests::{AT, Counted, record};
use crate::model::time::Moment;

/// A session with so many open handoffs, and as many given up.
fn state(handoffs: u64) -> State {
    let session = json!({
        "id": "s-000000000001", "resource": "novel", "role": "manager", "task_mode": "review",
        "memory_policy": "session", "resume_policy": "revalidate", "host": "shell",
        "status": "created", "version": 1, "created_at": AT, "updated_at": AT,
    });
    let handoff = |letter: char, number: u64| {
        json!({"type": "handoff.opened", "handoff": {
            "id": format!("h-{letter}{number:011}"), "job": "j-000000000001", "fingerprint":
            format!("nf1:{letter}{number}"), "source_session": "s-000000000001",
            "target_class": "semantic_reviewer", "resource": "novel", "gate": "gate/x",
            "context_policy": "packet_only", "permissions": {"result_scope": "evaluation"},
            "max_attempts": 3, "ttl_ms": 1, "state": "queued", "number": 0, "opened_at": AT,
        }})
    };
    let mut state = State::default();
    state.apply(&record(1, json!([{"type": "session.created", "session": session}])));
    for number in 0..handoffs {
        let gone = json!({"type": "handoff.exhausted", "handoff": format!("h-a{number:011}")});
        let events: Value = json!([handoff('z', number), handoff('a', number), gone]);
        state.apply(&record(number + 2, events));
    }
    state
}

fn picture(handoffs: u64) -> (OpenSession, usize) {
    let state = state(handoffs);
    let meta = state.meta().clone();
    let looks = Arc::new(AtomicUsize::new(0));
    let state = State::on(Arc::new(Counted(state, looks.clone())), meta);
    let moment = Moment {
        wall: AT.parse().unwrap(),
        machine: String::new(),
        boot_id: String::new(),
        namespace: String::new(),
        boottime_ms: 0,
    };
    let session = state.open_sessions().next().unwrap();
    let picture = Seen::of(&state, &moment).look(session);
    (picture, looks.load(Ordering::Relaxed))
}

#[test]
fn a_picture_is_as_cheap_however_much_there_is() {
    let (few, some) = picture(300);
    let (many, more) = picture(3000);
    assert_eq!(some, more, "lookups for ten times as much");
    assert!(more < 1000, "{more}");
    for picture in [&few, &many] {
        let of = |group| picture.matters.iter().filter(|matter| matter.group == group).count();
        assert_eq!((of(Group::Queued), of(Group::Stuck)), (MAX_EACH, MAX_EACH));
        assert_eq!(picture.outstanding.len(), MAX_EACH);
        let lines = picture.lines(AT.parse().unwrap()).join("\n");
        assert!(lines.contains("and more: nf list handoff --session s-000000000001\n"), "{lines}");
        assert!(lines.contains("--state exhausted"), "{lines}");
    }
    let (none, _) = picture(0);
    assert!(none.more.is_empty() && none.matters.is_empty());
}
