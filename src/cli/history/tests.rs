//! Histories that no `nf` wrote, and one that it could have written.

use serde_json::{Value, json};

use super::{History, MAX_FINDINGS};
use crate::model::event::{Event, Record};
use crate::model::hash::Hash;

const AT: &str = "2026-11-30T10:00:00Z";
const SESSION: &str = "s-000000000001";
const HANDOFF: &str = "h-000000000001";
const RESULT: &str = "x-000000000001";
const EFFECT: &str = "f-000000000001";

fn hash() -> String {
    Hash::of(b"x").hex()
}

fn created(status: &str) -> Value {
    json!({"type": "session.created", "session": {
        "id": SESSION, "resource": "novel/pride", "role": "manager", "task_mode": "review",
        "memory_policy": "session", "resume_policy": "revalidate", "host": "shell", "status": status,
        "version": 1, "created_at": AT, "updated_at": AT}})
}

fn moved(from: &str, to: &str, version: u64) -> Value {
    json!({"type": "session.moved", "session": SESSION, "from": from, "to": to, "version": version})
}

fn attempt(number: u32) -> String {
    format!("a-00000000000{number}")
}

fn claimed(number: u32) -> Value {
    json!({"type": "handoff.claimed", "attempt": {
        "id": attempt(number), "handoff": HANDOFF, "job": "j-000000000001", "fingerprint": "nf1:1",
        "number": number, "worker_session": "s-000000000002", "transport": "chat",
        "nonce_hash": hash(), "packet_hash": hash(), "context_manifest": [], "claimed_at": AT,
        "state": "active", "lease": {"ttl_ms": 1, "machine": "m", "boot_id": "b", "namespace": "n",
            "boottime_ms": 1, "wall": AT}}})
}

fn ended(number: u32) -> Value {
    json!({"type": "attempt.ended", "attempt": attempt(number), "how": "failed", "reason": "cannot_judge"})
}

fn completed(number: u32) -> Value {
    json!({"type": "handoff.completed", "handoff": HANDOFF, "attempt": attempt(number), "result": RESULT})
}

fn checked(standing: &str) -> Value {
    json!({"type": "result.checked", "result": RESULT, "checked": {"standing": standing, "grade": "declared",
        "verdict": {"value": "accept", "polarity": "pass"}, "checks": []}})
}

fn receipt(consumer: &str, seq: u64) -> Value {
    json!({"type": "receipt.recorded", "receipt": {
        "id": "t-000000000001", "source": RESULT, "consumer": consumer, "result_hash": hash(),
        "fingerprint": "nf1:1", "outcome": {"value": "accept", "polarity": "pass"},
        "attempt": attempt(1), "checks": [], "earlier": [], "seq": seq, "at": AT,
        "history": {"opened": 1, "cancelled": 0, "released": 0, "expired": 0, "invalid": 0,
            "cannot_judge": 0, "late": 0, "conflicts": 0}}})
}

/// The findings of a history whose records hold these events, each its code and what it says.
#[track_caller]
fn found(records: &[&[Value]]) -> Vec<(String, String)> {
    let mut history = History::default();
    for (at, events) in records.iter().enumerate() {
        let events = events.iter().map(|event| {
            serde_json::from_value::<Event>(event.clone()).unwrap_or_else(|error| panic!("{error}: {event}"))
        });
        history.take(&Record {
            v: 1,
            seq: at as u64 + 1,
            at: AT.parse().unwrap(),
            op: None,
            req: None,
            cmd: "test".to_owned(),
            events: events.collect(),
            prev: Hash::of(b""),
            hash: Hash::of(b""),
        });
    }
    history.findings().into_iter().map(|finding| (finding.code, finding.what)).collect()
}

/// The history has this one finding, in this record.
#[track_caller]
fn only(records: &[&[Value]], code: &str, record: u64) {
    let all = found(records);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].0, code, "{all:?}");
    assert!(all[0].1.starts_with(&format!("record {record}: ")), "{all:?}");
}

#[test]
fn a_sound_history_has_no_finding() {
    let whole: &[&[Value]] = &[
        &[created("created"), moved("created", "running", 2)],
        &[claimed(1), moved("running", "awaiting_user", 3)],
        &[ended(1)],
        &[claimed(2)],
        &[checked("contested"), completed(2)],
        &[receipt("gate/one", 6)],
        &[receipt("ci/nightly", 7)],
        &[moved("awaiting_user", "running", 4), moved("running", "completed", 5)],
        &[moved("completed", "stale", 6), moved("stale", "terminated", 7)],
    ];
    assert_eq!(found(whole), []);
}

#[test]
fn a_move_that_the_lifecycle_has_not_is_found() {
    only(&[&[created("running")]], "lifecycle", 1);
    only(&[&[created("created")], &[moved("created", "completed", 2)]], "lifecycle", 2);
    only(&[&[created("created")], &[moved("running", "idle", 2)]], "lifecycle", 2);
    only(&[&[moved("created", "running", 2)]], "lifecycle", 1);
    for skipped in [0, 1, 3] {
        only(&[&[created("created")], &[moved("created", "running", skipped)]], "lifecycle", 2);
    }
    let ended = [created("created"), moved("created", "running", 2), moved("running", "terminated", 3)];
    only(&[&ended, &[moved("terminated", "running", 4)]], "lifecycle", 2);
}

#[test]
fn a_claim_of_what_is_not_free_and_an_end_of_what_is_not_current_are_found() {
    only(&[&[claimed(1)], &[claimed(2)]], "lease", 2);
    only(&[&[claimed(2)]], "lease", 1);
    only(&[&[claimed(1)], &[ended(1)], &[claimed(1)]], "lease", 3);
    only(&[&[ended(1)]], "lease", 1);
    only(&[&[completed(1)]], "lease", 1);
    only(&[&[claimed(1)], &[ended(1)], &[ended(1)]], "lease", 3);
    only(&[&[claimed(1)], &[ended(1)], &[completed(1)]], "lease", 3);
    only(&[&[claimed(1)], &[ended(1)], &[claimed(2)], &[completed(1)]], "lease", 4);
}

#[test]
fn a_result_applied_twice_by_one_name_is_found() {
    let records: &[&[Value]] = &[
        &[checked("valid")],
        &[receipt("gate/one", 2)],
        &[receipt("gate/two", 3)],
        &[receipt("gate/one", 4)],
    ];
    only(records, "consumed_twice", 4);
    assert!(found(records)[0].1.contains("after record 2"), "{:?}", found(records));
    only(&[&[checked("valid"), receipt("g", 1), receipt("g", 1)]], "consumed_twice", 1);
}

#[test]
fn a_receipt_for_what_was_never_valid_is_found() {
    only(&[&[receipt("gate/one", 1)]], "consumed_invalid", 1);
    only(&[&[checked("surplus")], &[receipt("gate/one", 2)]], "consumed_invalid", 2);
    only(&[&[receipt("gate/one", 1)], &[checked("valid")]], "consumed_invalid", 1);
}

const EVENT: &str = "e-000000000001";

fn received(id: &str, key: &str, kind: &str) -> Value {
    let scope = if kind == "eval.result_arrived" { "result" } else { "observation" };
    json!({"type": "event.received", "event": {
        "id": id, "type": kind, "key": key, "scope": scope, "handoff": HANDOFF,
        "source": {"kind": "webhook"}, "payload_hash": hash(), "received_at": AT}})
}

fn applied(seq: u64) -> Value {
    json!({"type": "receipt.recorded", "receipt": {
        "id": "t-000000000001", "source": EVENT, "consumer": "somebody", "payload_hash": hash(),
        "outcome": {"polarity": "none"}, "checks": [], "earlier": [], "seq": seq, "at": AT}})
}

#[test]
fn an_event_is_applied_once_after_it_came_in_and_never_where_it_only_reports() {
    assert_eq!(found(&[&[received(EVENT, "k", "ci.observed")], &[applied(2)]]), []);
    only(&[&[applied(1)]], "consumed_invalid", 1);
    only(&[&[received(EVENT, "k", "eval.result_arrived")], &[applied(2)]], "consumed_invalid", 2);
    only(&[&[received(EVENT, "k", "x.a")], &[applied(2)], &[applied(3)]], "consumed_twice", 3);
}

#[test]
fn a_key_that_stands_twice_is_found() {
    let two = [received("e-000000000002", "k", "ci.observed")];
    only(&[&[received(EVENT, "k", "ci.observed")], &two], "event_key", 2);
    assert_eq!(found(&[&[received(EVENT, "other", "ci.observed")], &two]), []);
}

#[test]
fn a_receipt_that_names_another_record_is_found() {
    for wrong in [0, 1, 3] {
        only(&[&[checked("valid")], &[receipt("gate/one", wrong)]], "receipt_place", 2);
    }
}

fn planned() -> Value {
    json!({"type": "effect.planned", "effect": {
        "id": EFFECT, "key": "settle", "path": "canon.md", "before": "absent", "required": hash(),
        "session": SESSION, "run": "r-000000000001", "resource": "novel/pride", "state": "planned",
        "planned_at": AT}})
}

fn started() -> Value {
    json!({"type": "effect.started", "effect": EFFECT, "run": "r-000000000001"})
}

fn done() -> Value {
    json!({"type": "effect.done", "effect": EFFECT, "witness": "run", "session": SESSION})
}

fn cleared() -> Value {
    json!({"type": "effect.cleared", "effect": EFFECT, "reason": {"inline": "x"}, "session": SESSION})
}

#[test]
fn an_effect_that_was_started_or_ended_twice_is_found() {
    for sound in [&[planned(), started(), done()][..], &[planned(), done()], &[planned(), cleared()]] {
        assert_eq!(found(&[sound]), []);
    }
    only(&[&[planned()], &[planned()]], "effect", 2);
    only(&[&[started()]], "effect", 1);
    only(&[&[planned(), started()], &[started()]], "effect", 2);
    only(&[&[planned(), started(), done()], &[started()]], "effect", 2);
    only(&[&[planned(), started(), done()], &[done()]], "effect", 2);
    only(&[&[planned(), started(), done()], &[cleared()]], "effect", 2);
    only(&[&[planned(), cleared()], &[started()]], "effect", 2);
}

#[test]
fn the_list_of_findings_ends_and_the_first_ones_stand_in_it() {
    let wrong = vec![claimed(7); MAX_FINDINGS + 50];
    let all = found(&[&wrong]);
    assert_eq!(all.len(), MAX_FINDINGS);
    assert!(all.iter().all(|(code, _)| code == "lease"));
}
