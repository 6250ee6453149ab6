//! The lock, POISON and head as a writer meets them.

use super::*;
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn a_lock_that_is_held_is_waited_for_and_then_refused() {
    let home = Home::new();
    let store = home.open();
    let held = lock::acquire(&store.folder, 0).unwrap();
    let other = Store::open(&home.root, Options { lock_timeout_ms: 50, ..options() }).unwrap();
    let error = write(&other).unwrap_err();
    assert_eq!((error.kind, error.kind.exit()), (Kind::Busy, 75));
    let cause = error.cause.unwrap();
    assert!(cause.contains(&format!("process {}", std::process::id())), "{cause}");
    // A waiter gets it when it is given back, and a waiter that gave up does not keep it.
    let (send, receive) = mpsc::channel();
    let root = home.root.clone();
    let waiter = std::thread::spawn(move || {
        let store = Store::open(&root, options()).unwrap();
        send.send(()).unwrap();
        write(&store).unwrap().outcome
    });
    receive.recv().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    held.release().unwrap();
    assert_eq!(waiter.join().unwrap(), Ok(2));
    assert_eq!(write(&home.open()).unwrap().outcome, Ok(3));
}

#[test]
fn waiters_that_gave_up_release_what_they_get() {
    let home = Home::new();
    let store = home.open();
    let held = lock::acquire(&store.folder, 0).unwrap();
    let hasty = Store::open(&home.root, Options { lock_timeout_ms: 1, ..options() }).unwrap();
    (0..8).for_each(|_| assert_eq!(write(&hasty).unwrap_err().kind, Kind::Busy));
    drop(held);
    let start = Instant::now();
    assert!(write(&home.open()).is_ok());
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_replaced_lock_file_is_noticed() {
    let home = Home::new();
    let store = home.open();
    let held = lock::acquire(&store.folder, 0).unwrap();
    let root = home.root.clone();
    let waiter = std::thread::spawn(move || {
        let store = Store::open(&root, options()).unwrap();
        let held = lock::acquire(&store.folder, 2000).unwrap();
        // Another may not have it now, under the new name.
        let busy = lock::acquire(&store.folder, 1).unwrap_err().kind;
        drop(held);
        busy
    });
    std::thread::sleep(Duration::from_millis(100));
    std::fs::rename(home.path("lock"), home.path("lock.old")).unwrap();
    std::fs::write(home.path("lock"), b"").unwrap();
    held.release().unwrap();
    assert_eq!(waiter.join().unwrap(), Kind::Busy);
}

#[test]
fn the_probe_says_whether_the_lock_was_free() {
    let home = Home::new();
    let store = home.open();
    let path = home.path("lock");
    assert_eq!(lock::probe(&path), Ok(true));
    let held = lock::acquire(&store.folder, 0).unwrap();
    assert_eq!(lock::probe(&path), Ok(false));
    drop(held);
    assert_eq!(lock::probe(&path), Ok(true));
    assert!(lock::probe(&home.path("none")).is_err());
}

#[test]
fn a_lock_that_does_not_exclude_is_refused() {
    // Programs that answer as the probe would: `true` could not take the lock, `false` took it.
    let checked = |program: &str| Options { self_check: Some(program.into()), ..options() };
    let home = Home::new();
    for (program, kind) in [("/bin/false", Kind::LockNotExclusive), ("/no/such", Kind::Io)] {
        let root = home.dir().join("other");
        let made = Store::init(&root, &InitOptions::default(), checked(program), &source());
        assert_eq!(made.unwrap_err().kind, kind);
        assert_eq!(Store::open(&root, options()).unwrap_err().kind, Kind::NoStore);
    }
    let root = home.dir().join("other");
    Store::init(&root, &InitOptions::default(), checked("/bin/true"), &source()).unwrap();
    // On another device than head says, the lock is tried again before anything is written.
    let store = Store::open(&root, checked("/bin/false")).unwrap();
    assert!(write(&store).is_ok());
    let mut file = head::HeadFile::open(&store.folder, &store.info.store_id).unwrap();
    let moved = head::Head { device: 1, ..file.slots.newest().unwrap().clone() };
    file.write(moved, &store.folder).unwrap();
    assert_eq!(write(&store).unwrap_err().kind, Kind::LockNotExclusive);
    let good = Store::open(&root, checked("/bin/true")).unwrap();
    assert!(write(&good).is_ok() && write(&store).is_ok());
    let findings = store.findings();
    assert_eq!(findings[0].code, "lock_not_exclusive");
}

#[test]
fn poison_stops_writers_and_no_readers() {
    let home = Home::filled(2);
    let store = home.open();
    store.poison("a sync failed");
    store.poison("a second reason is not taken");
    let error = write(&store).unwrap_err();
    assert_eq!((error.kind, error.kind.exit()), (Kind::Poisoned, 11));
    assert_eq!(error.cause.as_deref(), Some("POISON: a sync failed"));
    assert_eq!(seen(&home.open()), 3);
    assert_eq!(store.poisoned().unwrap().as_deref(), Some("a sync failed"));
    home.set("POISON", b"");
    assert!(store.poisoned().unwrap().is_some());
}

#[test]
fn a_log_that_grows_under_the_lock_is_poison() {
    let home = Home::new();
    let store = home.open();
    let intruder = home.segment(1);
    let answer = store.transact::<(), ()>(
        &source(),
        &request("test"),
        |_| Ok(Gathered::of(())),
        |_, ()| {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().append(true).open(&intruder);
            file.unwrap().write_all(b"no lock\n").unwrap();
            Ok(Decision::new(vec![counted()], ()))
        },
    );
    assert_eq!(answer.unwrap_err().kind, Kind::LockNotExclusive);
    assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Poisoned);
    assert_eq!(home.fix(false), ["poisoned"]);
    assert_eq!(write(&home.open()).unwrap().outcome, Ok(2));
    assert_eq!(home.names("torn").len(), 1);
}

#[test]
fn head_is_synced_once_a_second_and_says_so() {
    let home = Home::new();
    let synced = |boot: &str, boottime: u64| {
        let store = home.open();
        write_with(&store, &Source::fixed(moment(boot, boottime), "x".into()), &request("test")).unwrap();
        store.head().unwrap().unwrap().synced
    };
    assert_eq!(synced("boot-1", 900), 5);
    assert_eq!(synced("boot-1", 1005), 5);
    assert_eq!(synced("boot-1", 1006), 1006);
    assert_eq!(synced("boot-1", 1500), 1006);
    assert_eq!(synced("boot-1", 3), 3);
    assert_eq!(synced("boot-2", 4), 4);
}

#[test]
fn writers_at_once_all_get_their_own_record() {
    let home = Home::new();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let root = home.root.clone();
            std::thread::spawn(move || {
                let options = Options { lock_timeout_ms: 60_000, ..options() };
                let store = Store::open(&root, options).unwrap();
                (0..10).map(|_| write(&store).unwrap().outcome.unwrap()).collect::<Vec<u64>>()
            })
        })
        .collect();
    let mut numbers: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (2..82).collect::<Vec<u64>>());
}

#[test]
fn what_recovery_did_is_told_even_where_the_command_is_refused() {
    let home = Home::filled(1);
    home.set(LOG, &[home.bytes(LOG), b"{\"v\"".to_vec()].concat());
    let store = home.open();
    let refused = store.transact::<(), ()>(
        &source(),
        &request("test"),
        |_| Ok(Gathered::of(())),
        |_, ()| Err(Error::new(Kind::NoCandidate, "nothing")),
    );
    assert_eq!(refused.unwrap_err().kind, Kind::NoCandidate);
    let notes = store.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("moved to torn/"), "{notes:?}");
    assert!(store.take_notes().is_empty());
}

#[test]
fn a_record_that_was_synced_is_answered_though_the_next_segment_cannot_be_begun() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1);
    std::fs::create_dir(home.segment(2)).unwrap();
    let answer = write(&store).unwrap();
    assert_eq!((answer.outcome, answer.position.map(|position| position.seq)), (Ok(2), Some(2)));
    assert!(answer.notes.iter().any(|note| note.contains("could not be begun")), "{:?}", answer.notes);
    assert!(write(&store).is_err());
    std::fs::remove_dir(home.segment(2)).unwrap();
    assert_eq!(write(&store).unwrap().outcome, Ok(5));
}
