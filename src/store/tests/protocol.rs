//! The write protocol as a caller meets it: answers, operation keys, facts, dry runs.

use super::*;
use crate::model::id::SessionId;
use std::cell::Cell;

#[test]
fn a_new_store_has_one_record_and_takes_more() {
    let home = Home::new();
    let store = home.open();
    assert_eq!(seen(&store), 1);
    let answer = write(&store).unwrap();
    assert_eq!((answer.outcome, answer.repeated, answer.dry_run), (Ok(2), false, false));
    assert_eq!(answer.position.unwrap().seq, 2);
    assert!(answer.notes.is_empty(), "{:?}", answer.notes);
    let snapshot = home.open().read().unwrap();
    assert_eq!(snapshot.position, answer.position);
    assert_eq!(snapshot.state.meta().conflicts, 1);
    assert!(snapshot.warnings.is_empty());
    for number in 3..20 {
        assert_eq!(write(&store).unwrap().outcome, Ok(number));
    }
    assert!(home.codes().is_empty(), "{:?}", home.codes());
}

#[test]
fn two_open_stores_see_each_other() {
    let home = Home::new();
    let (one, two) = (home.open(), home.open());
    for number in 1..10 {
        assert_eq!(write(&one).unwrap().outcome, Ok(2 * number));
        assert_eq!(write(&two).unwrap().outcome, Ok(2 * number + 1));
    }
}

#[test]
fn records_can_be_read_both_ways() {
    let home = Home::filled(300);
    let store = home.open();
    let back: Vec<u64> = store.records_back().unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(back, (1..=301).rev().collect::<Vec<u64>>());
    let mut forward = store.records(290);
    let read: Vec<u64> = forward.by_ref().map(|record| record.unwrap().seq).collect();
    assert_eq!(read, (290..=301).collect::<Vec<u64>>());
    write(&store).unwrap();
    assert_eq!(forward.next().unwrap().unwrap().seq, 302);
    assert!(forward.next().is_none());
}

#[test]
fn a_record_is_named_by_number_and_hash() {
    let home = Home::filled(3);
    let store = home.open();
    let position = store.covered().unwrap().unwrap();
    assert_eq!(position.to_string().parse::<Position>(), Ok(position));
    assert!("7".parse::<Position>().is_err() && "x:y".parse::<Position>().is_err());
    write(&store).unwrap();
    assert!(store.contains(&position).unwrap());
    assert!(!store.contains(&Position { seq: 4, hash: Hash::of(b"other") }).unwrap());
    assert!(!store.contains(&Position { seq: 400, ..position }).unwrap());
}

#[test]
fn a_refusal_may_be_recorded_and_a_bare_error_never_is() {
    let home = Home::new();
    let store = home.open();
    let refused = |events: Vec<Event>| {
        store.transact::<(), u64>(
            &source(),
            &request("test"),
            |_| Ok(Gathered::of(())),
            |_, ()| Ok(Decision::refused(events.clone(), Error::new(Kind::Surplus, "a second one"))),
        )
    };
    let answer = refused(vec![counted()]).unwrap();
    assert_eq!(answer.outcome.unwrap_err().kind, Kind::Surplus);
    assert_eq!(answer.position.unwrap().seq, 2);
    let nothing = refused(Vec::new()).unwrap();
    assert_eq!((nothing.outcome.unwrap_err().kind, nothing.position), (Kind::Surplus, None));
    let bare = store.transact::<(), u64>(
        &source(),
        &request("test"),
        |_| Ok(Gathered::of(())),
        |_, ()| Err(Error::new(Kind::NoCandidate, "nothing")),
    );
    assert_eq!(bare.unwrap_err().kind, Kind::NoCandidate);
    assert_eq!(seen(&home.open()), 2);
    assert_eq!(write(&store).unwrap().outcome, Ok(3));
}

#[test]
fn an_operation_key_gets_the_same_answer_again() {
    let home = Home::new();
    let request = keyed("op-1", json!({"a": 1}));
    let first = write_with(&home.open(), &source(), &request).unwrap();
    assert!(matches!(first.events.last(), Some(Event::OpAnswered { .. })));
    write(&home.open()).unwrap();
    for dry_run in [false, true] {
        let request = Request { dry_run, ..request.clone() };
        let again = write_with(&home.open(), &source(), &request).unwrap();
        assert_eq!((&again.outcome, again.position), (&first.outcome, first.position));
        assert!(again.repeated && again.events.is_empty());
    }
    let other = write_with(&home.open(), &source(), &keyed("op-1", json!({"a": 2})));
    assert_eq!(other.unwrap_err().kind, Kind::OpConflict);
    assert_eq!(seen(&home.open()), 3);
}

#[test]
fn an_operation_key_repeats_a_refusal_too() {
    let home = Home::new();
    let store = home.open();
    let run = || {
        store.transact::<(), u64>(
            &source(),
            &keyed("op", json!({})),
            |_| Ok(Gathered::of(())),
            |_, ()| {
                Ok(Decision::refused(
                    vec![counted()],
                    Error::new(Kind::ResultConflict, "other").because("why"),
                ))
            },
        )
    };
    let (first, again) = (run().unwrap(), run().unwrap());
    let (one, two) = (first.outcome.unwrap_err(), again.outcome.unwrap_err());
    assert_eq!((one.body().message, one.body().cause), (two.body().message, two.body().cause));
    assert_eq!(two.kind, Kind::ResultConflict);
    assert!(again.repeated);
    // Answers that this program cannot read are not made up.
    let other = store.transact::<(), Vec<String>>(
        &source(),
        &keyed("op", json!({})),
        |_| Ok(Gathered::of(())),
        |_, ()| Ok(Decision::nothing(Vec::new())),
    );
    assert_eq!(other.unwrap().outcome.unwrap_err().kind, Kind::ResultConflict);
    write_with(&store, &source(), &keyed("number", json!({}))).unwrap();
    let unreadable = store.transact::<(), Vec<String>>(
        &source(),
        &keyed("number", json!({})),
        |_| Ok(Gathered::of(())),
        |_, ()| Ok(Decision::nothing(Vec::new())),
    );
    assert_eq!(unreadable.unwrap_err().kind, Kind::NewerFormat);
}

#[test]
fn an_operation_key_that_another_process_used_meanwhile_is_seen_under_the_lock() {
    let home = Home::new();
    let (store, other) = (home.open(), home.open());
    let answer = store.transact::<(), u64>(
        &source(),
        &keyed("op", json!({})),
        |_| {
            write_with(&other, &source(), &keyed("op", json!({})))?;
            Ok(Gathered::of(()))
        },
        |_, ()| panic!("decided though the answer was there"),
    );
    let answer = answer.unwrap();
    assert_eq!((answer.outcome, answer.repeated, seen(&store)), (Ok(2), true, 2));
}

#[test]
fn a_dry_run_writes_nothing_and_takes_no_lock() {
    let home = Home::new();
    let store = home.open();
    let _held = lock::acquire(&store.folder, 0).unwrap();
    let before = home.bytes(LOG);
    let request = Request { dry_run: true, ..keyed("op", json!({})) };
    let answer = write_with(&store, &source(), &request).unwrap();
    assert_eq!((answer.outcome, answer.dry_run, answer.position), (Ok(2), true, None));
    assert_eq!(answer.events.len(), 2);
    assert_eq!(home.bytes(LOG), before);
}

/// Gathers one file and one entity; counts how often.
fn with_facts(store: &Store, file: &Path, count: &Cell<u32>, meanwhile: impl Fn(u32)) -> Result<Answer<u64>> {
    let session: SessionId = "s-000000000001".parse().unwrap();
    store.transact(
        &source(),
        &request("test"),
        |state| {
            count.set(count.get() + 1);
            let files = vec![FileStamp::of(file)?];
            let seen = vec![(session.to_string(), state.stamp(&session.to_string()))];
            meanwhile(count.get());
            Ok(Gathered { facts: count.get(), blobs: Vec::new(), files, seen })
        },
        |_, facts| Ok(Decision::new(vec![counted()], u64::from(*facts))),
    )
}

#[test]
fn facts_that_moved_are_gathered_again() {
    let home = Home::new();
    let (store, other) = (home.open(), home.open());
    let file = home.dir().join("text");
    let count = Cell::new(0);
    assert_eq!(with_facts(&store, &file, &count, |_| {}).unwrap().outcome, Ok(1));
    let changing = |round: u32| match round {
        2 => std::fs::write(&file, "a").unwrap(),
        3 => drop(put(&other, vec![session_created("s-000000000001")]).unwrap()),
        _ => {}
    };
    assert_eq!(with_facts(&store, &file, &count, changing).unwrap().outcome, Ok(4));
    let always = |round: u32| std::fs::write(&file, round.to_string().repeat(round as usize)).unwrap();
    let error = with_facts(&store, &file, &count, always).unwrap_err();
    assert_eq!((error.kind, count.get()), (Kind::FactsMoved, 7));
    assert!(error.message.contains("text"), "{error}");
    assert_eq!(seen(&store), 4);
}

#[test]
fn times_never_go_back() {
    let home = Home::new();
    let store = home.open();
    for boottime in [9_000_000, 4, 10_000_000] {
        let source = Source::fixed(moment("boot-1", boottime), "x".into());
        write_with(&store, &source, &request("test")).unwrap();
    }
    let times: Vec<Time> = store.records(1).map(|record| record.unwrap().at).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(times[1], times[2]);
}

#[test]
fn a_record_that_is_too_long_or_too_deep_is_refused_before_anything_is_written() {
    let home = Home::new();
    let store = home.open();
    let before = home.bytes(LOG);
    let answer = |data: Value| Event::OpAnswered { answer: data };
    let long = put(&store, vec![answer(json!("x".repeat(LINE_LIMIT)))]).unwrap_err();
    assert_eq!(long.kind, Kind::TooLarge);
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(put(&store, vec![answer(deep)]).unwrap_err().kind, Kind::BadInput);
    assert_eq!(home.bytes(LOG), before);
    assert_eq!(write(&store).unwrap().outcome, Ok(2));
}
