//! How many rows a page looks at.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::model::event::Record;
use crate::model::tables::Base;

/// Another base, with its lookups counted.
#[derive(Debug)]
struct Counted(State, Arc<AtomicUsize>);

impl Counted {
    fn base(&self) -> &dyn Base {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.as_base()
    }
}

impl Base for Counted {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.base().get(key)
    }

    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        self.base().first(from, to)
    }

    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        self.base().last(from, to)
    }
}

const AT: &str = "2026-01-01T00:00:00.000000Z";

fn record(seq: u64, events: Value) -> Record {
    let hash = crate::model::hash::Hash::of(b"x").hex();
    serde_json::from_value(json!({
        "v": 1, "seq": seq, "at": AT, "cmd": "test", "events": events, "prev": hash, "hash": hash,
    }))
    .unwrap()
}

/// A session with a run and a question; one in a hundred is about `rare` and job 1.
fn worked(number: u64) -> Record {
    let rare = number % 100 == 50;
    let (session, run) = (format!("s-{number:012}"), format!("r-{number:012}"));
    let resource = if rare { "rare" } else { "common" };
    let job = format!("j-{:012}", if rare { 1 } else { 2 });
    let events = json!([
        {"type": "session.created", "session": {
            "id": session, "resource": resource, "role": "manager", "task_mode": "review",
            "memory_policy": "session", "resume_policy": "revalidate", "host": "shell",
            "status": "created", "version": 1, "created_at": AT, "updated_at": AT,
        }},
        {"type": "session.moved", "session": session, "from": "created",
            "to": if rare { "stale" } else { "completed" }, "version": 2},
        {"type": "run.started", "run": {
            "id": run, "session": session, "resource": resource, "task_mode": "review",
            "cursor": "start", "status": "running", "context_manifest": [], "pending": {}, "started_at": AT,
        }},
        {"type": "handoff.opened", "handoff": {
            "id": format!("h-{number:012}"), "job": job, "fingerprint": "nf1:0", "source_session": session,
            "target_class": "semantic_reviewer", "resource": resource, "gate": "gate/x",
            "context_policy": "packet_only", "permissions": {"result_scope": "evaluation"},
            "max_attempts": 3, "ttl_ms": 1, "state": "queued", "number": 0, "opened_at": AT,
        }},
    ]);
    record(number + 1, events)
}

fn list(words: &[&str]) -> List {
    use clap::FromArgMatches;
    let words = [&["list"], words].concat();
    let command = List::augment_args(clap::Command::new("list"));
    List::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

#[test]
fn a_page_looks_at_little_more_than_it_shows() {
    let mut state = State::default();
    for number in 0..2000 {
        state.apply(&worked(number));
    }
    let meta = state.meta().clone();
    let looks = Arc::new(AtomicUsize::new(0));
    let state = State::on(Arc::new(Counted(state, looks.clone())), meta);
    let (session, job) = ("s-000000000150".parse().unwrap(), "j-000000000001".parse().unwrap());
    let cases: [(&[&str], Option<&SessionId>, Option<&JobId>, usize); 8] = [
        (&["session", "--limit", "5"], None, None, 5),
        (&["session", "--resource", "rare", "--limit", "5"], None, None, 5),
        (&["run", "--resource", "rare", "--limit", "5"], None, None, 5),
        (&["handoff", "--resource", "rare", "--limit", "5"], None, None, 5),
        (&["handoff", "--limit", "5"], None, Some(&job), 5),
        (&["handoff", "--limit", "1000"], None, Some(&job), 20),
        (&["run", "--limit", "5"], Some(&session), None, 1),
        (&["handoff", "--limit", "5", "--after", "4096000"], None, Some(&job), 5),
    ];
    for (words, session, job, shown) in cases {
        looks.store(0, Ordering::Relaxed);
        let list = list(words);
        let kind = kind_named(&list.kind).unwrap();
        let (items, _) = list.take(&state, kind, session, job);
        assert_eq!(items.len(), shown, "{words:?}");
        // For each object its row and itself, then one row more.
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks <= 2 * shown + 2, "{words:?}: {looks} lookups for {shown}");
    }
    // A state has no rows of its own: what is rare is looked for among all of the kind.
    let (items, _) =
        list(&["session", "--state", "stale", "--limit", "5"]).take(&state, IdKind::SessionId, None, None);
    assert_eq!(items.len(), 5);
}
