//! How many rows a page looks at.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::model::event::Record;
use crate::model::id::Id;
use crate::model::tables::Base;

/// Another base, with its lookups counted.
#[derive(Debug)]
pub struct Counted(pub State, pub Arc<AtomicUsize>);

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

pub const AT: &str = "2026-01-01T00:00:00.000000Z";

pub fn record(seq: u64, events: Value) -> Record {
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
            "id": format!("h-{number:012}"), "job": job, "source_session": session,
            "fingerprint": format!("nf1:{number}"),
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

/// The state after 2,000 sessions, over a base that counts its lookups.
fn counted() -> (State, Arc<AtomicUsize>) {
    let mut state = State::default();
    for number in 0..2000 {
        state.apply(&worked(number));
    }
    let meta = state.meta().clone();
    let looks = Arc::new(AtomicUsize::new(0));
    (State::on(Arc::new(Counted(state, looks.clone())), meta), looks)
}

#[test]
fn a_page_looks_at_little_more_than_it_shows() {
    let (state, looks) = counted();
    let (session, job) = ("s-000000000150".parse().unwrap(), "j-000000000001".parse().unwrap());
    // Words, session, job, objects shown, lists that are gone through.
    type Case<'a> = (&'a [&'a str], Option<&'a SessionId>, Option<&'a JobId>, usize, usize);
    let cases: [Case<'_>; 16] = [
        (&["session", "--limit", "5"], None, None, 5, 1),
        (&["session", "--resource", "rare", "--limit", "5"], None, None, 5, 1),
        (&["run", "--resource", "rare", "--limit", "5"], None, None, 5, 1),
        (&["handoff", "--resource", "rare", "--limit", "5"], None, None, 5, 1),
        (&["handoff", "--limit", "5"], None, Some(&job), 5, 1),
        (&["handoff", "--limit", "1000"], None, Some(&job), 20, 1),
        (&["run", "--limit", "5"], Some(&session), None, 1, 1),
        (&["handoff", "--limit", "5", "--after", "4096000"], None, Some(&job), 5, 1),
        (&["session", "--state", "stale", "--limit", "5"], None, None, 5, 1),
        (&["session", "--state", "stale", "--limit", "1000"], None, None, 20, 1),
        (&["session", "--state", "failed"], None, None, 0, 1),
        (&["session", "--state", "stale", "--resource", "rare", "--limit", "5"], None, None, 5, 2),
        (&["session", "--state", "completed", "--resource", "rare"], None, None, 0, 2),
        (&["handoff", "--state", "queued", "--limit", "5"], None, Some(&job), 5, 2),
        (&["handoff", "--state", "queued", "--resource", "rare", "--limit", "5"], None, Some(&job), 5, 3),
        (&["handoff", "--state", "queued", "--resource", "rare"], Some(&session), Some(&job), 1, 4),
    ];
    for (words, session, job, shown, lists) in cases {
        looks.store(0, Ordering::Relaxed);
        let list = list(words);
        let kind = kind_named(&list.kind).unwrap();
        let (items, _) = list.take(&state, kind, session, job);
        assert_eq!(items.len(), shown, "{words:?}");
        // For each object a row in each list and itself; then a row more in each list. Lists that have
        // nothing in common are left after as many rows as the shorter one has.
        let looks = looks.load(Ordering::Relaxed);
        let most = if shown == 0 { 2 * 20 + 2 } else { (lists + 1) * shown + lists };
        assert!(looks <= most, "{words:?}: {looks} lookups for {shown}");
    }
}

/// A handoff's way through its states, and a session's, by the number of the step.
fn moved(step: u64, of: u64) -> Record {
    let (session, handoff) = (format!("s-{of:012}"), format!("h-{of:012}"));
    let events = match step % 5 {
        0 => json!([{"type": "handoff.exhausted", "handoff": handoff}]),
        1 => json!([{"type": "handoff.cancelled", "handoff": handoff, "reason": "by_source"}]),
        2 => json!([{"type": "handoff.queued", "handoff": handoff}]),
        3 => json!([{"type": "session.moved", "session": session, "from": "stale", "to": "terminated",
            "version": 3}]),
        _ => json!([{"type": "run.ended", "run": format!("r-{of:012}"), "status": "failed", "outcome": "x"}]),
    };
    record(1000 + step, events)
}

#[test]
fn every_combination_gives_what_a_walk_over_all_gives() {
    let mut below = State::default();
    (0..150).for_each(|number| below.apply(&worked(number)));
    (0..40).for_each(|step| below.apply(&moved(step, step * 7 % 150)));
    let meta = below.meta().clone();
    let mut state = State::on(Arc::new(Counted(below, Arc::default())), meta);
    (40..200).for_each(|step| state.apply(&moved(step, step * 11 % 150)));
    let session: SessionId = "s-000000000050".parse().unwrap();
    let job: JobId = "j-000000000001".parse().unwrap();
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
    };
    let mut shown = 0;
    for kind in [IdKind::SessionId, IdKind::RunId, IdKind::HandoffId] {
        let all: Vec<Value> = state.of_kind(kind, None).map(|row| state.value(&row.id).unwrap()).collect();
        assert_eq!(all.len(), 150);
        for word in states(kind).into_iter().map(Some).chain([None]) {
            for chosen in 0..8 {
                let of_session = (chosen & 1 != 0 && kind != IdKind::SessionId).then_some(&session);
                let of_job = (chosen & 2 != 0 && kind == IdKind::HandoffId).then_some(&job);
                let resource = (chosen & 4 != 0).then_some("rare");
                let keeps = |value: &&Value| {
                    let source = [text(value, "/session"), text(value, "/source_session")];
                    of_session.is_none_or(|id| source.contains(&id.to_string()))
                        && of_job.is_none_or(|id| text(value, "/job") == id.as_str())
                        && resource.is_none_or(|name| text(value, "/resource") == name)
                        && word.is_none_or(|word| {
                            [text(value, "/state"), text(value, "/status")].contains(&word.to_owned())
                        })
                };
                let want: Vec<&Value> = all.iter().filter(keeps).collect();
                let mut words = vec![kind.word(), "--limit", "1000"];
                words.extend(word.iter().flat_map(|word| ["--state", word]));
                words.extend(resource.iter().flat_map(|name| ["--resource", name]));
                let (got, _) = list(&words).take(&state, kind, of_session, of_job);
                assert_eq!(got.iter().collect::<Vec<_>>(), want, "{words:?} {of_session:?} {of_job:?}");
                shown += want.len();
            }
        }
    }
    assert!(shown > 1000, "{shown}");
}
