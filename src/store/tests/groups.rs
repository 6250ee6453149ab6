//! Transactions that are made durable together.

use super::*;

fn grouped(home: &Home) -> Store {
    Store::open(&home.root, Options { group: true, ..options() }).unwrap()
}

#[test]
fn a_group_is_seen_by_nobody_else_before_it_is_durable_and_by_all_after() {
    let home = Home::filled(2);
    let store = grouped(&home);
    for number in 4..10 {
        let answer = write(&store).unwrap();
        assert_eq!((answer.outcome, answer.position.unwrap().seq), (Ok(number), number));
        assert_eq!(seen(&home.open()), 3, "head covers none of it yet");
        assert_eq!(seen(&store), number, "a reader inside the group sees it");
    }
    // Its lock is held meanwhile, so that no other writer comes between.
    let other = Store::open(&home.root, Options { lock_timeout_ms: 1, ..options() }).unwrap();
    assert_eq!(write(&other).unwrap_err().kind, Kind::Busy);
    assert!(store.commit(&source()).unwrap().is_empty());
    assert_eq!(seen(&home.open()), 9);
    assert_eq!(write(&other).unwrap().outcome, Ok(10));
    // The store goes on from there, and sees what came between.
    assert_eq!(write(&store).unwrap().outcome, Ok(11));
    store.commit(&source()).unwrap();
    store.commit(&source()).unwrap();
    assert_eq!(seen(&home.open()), 11);
    assert!(home.codes().is_empty(), "{:?}", home.codes());
}

#[test]
fn a_group_whose_process_dies_leaves_whole_records_and_a_free_lock() {
    let home = Home::filled(2);
    let store = grouped(&home);
    for _ in 0..3 {
        write(&store).unwrap();
    }
    drop(store);
    assert_eq!(seen(&home.open()), 3, "nothing of it was acknowledged");
    // What was written whole counts once the next writer has made it durable.
    let answer = write(&home.open()).unwrap();
    assert_eq!(answer.outcome, Ok(7));
    assert_eq!(answer.notes.len(), 1, "{:?}", answer.notes);
    assert!(home.codes().is_empty(), "{:?}", home.codes());
}

#[test]
fn after_a_failed_write_no_call_of_its_group_counts_as_durable() {
    let home = Home::filled(2);
    let store = grouped(&home);
    write(&store).unwrap();
    // As if a later write of the group had failed and could not be taken back.
    store.poison("a test");
    let error = store.commit(&source()).unwrap_err();
    assert_eq!(error.kind, Kind::NotDurable);
    assert_eq!(error.next_step(), Kind::NotDurable.fix());
    assert_eq!(seen(&home.open()), 3);
    assert_eq!(write(&grouped(&home)).unwrap_err().kind, Kind::Poisoned);
    home.fix(false);
    assert_eq!(write(&home.open()).unwrap().outcome, Ok(5), "its record was whole and counts now");
}

#[test]
fn a_refusal_takes_nothing_from_its_group() {
    let home = Home::new();
    let store = grouped(&home);
    write(&store).unwrap();
    let refused = store.transact::<(), u64>(
        &source(),
        &request("test"),
        |_| Ok(Gathered::of(())),
        |_, ()| Err(Error::new(Kind::Surplus, "no")),
    );
    assert_eq!(refused.unwrap_err().kind, Kind::Surplus);
    let ungathered = store.transact::<(), u64>(
        &source(),
        &request("test"),
        |_| Err(Error::new(Kind::BadInput, "no")),
        |_, ()| unreachable!(),
    );
    assert_eq!(ungathered.unwrap_err().kind, Kind::BadInput);
    let first = write_with(&store, &source(), &keyed("k", json!(1))).unwrap();
    let again = write_with(&store, &source(), &keyed("k", json!(1))).unwrap();
    assert_eq!((again.repeated, again.position), (true, first.position));
    store.commit(&source()).unwrap();
    assert_eq!(seen(&home.open()), 3);
}

#[test]
fn a_group_goes_over_the_end_of_a_segment() {
    let home = Home::new();
    let mut store = grouped(&home);
    store.limit_segments(2000);
    for _ in 0..40 {
        write(&store).unwrap();
    }
    store.commit(&source()).unwrap();
    assert!(home.names("log").len() > 3, "{:?}", home.names("log"));
    let last = seen(&home.open());
    assert_eq!(write(&home.open()).unwrap().outcome, Ok(last + 1));
    assert!(home.codes().is_empty(), "{:?}", home.codes());
}

#[test]
fn marks_and_packets_follow_the_sync_of_their_group() {
    let home = Home::new();
    let store = grouped(&home);
    put(&store, vec![receipt_recorded("desk", 2)]).unwrap();
    assert!(home.names("receipts").is_empty(), "a mark stands for a durable record");
    store.commit(&source()).unwrap();
    assert_eq!(home.names("receipts").len(), 1);
}

#[test]
fn an_index_follows_a_group_too() {
    let home = Home::filled(5);
    let options = Options { boot: Some("boot-1".to_owned()), group: true, ..options() };
    let mut store = Store::open(&home.root, options).unwrap();
    store.index_anything();
    for _ in 0..5 {
        write(&store).unwrap();
    }
    store.commit(&source()).unwrap();
    assert_eq!(seen(&home.indexed("boot-1")), 11);
    assert_eq!(write(&store).unwrap().outcome, Ok(12));
    store.commit(&source()).unwrap();
    assert!(home.indexed("boot-1").verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap().findings.is_empty());
}
