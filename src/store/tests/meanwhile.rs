//! Rows that others write while one waits for the lock: its work goes on from them, and nothing is written a
//! second time.

use super::*;
use crate::store::append::Entry;
use crate::store::fold::Folded;

/// A store whose rows cover all, a fold over rows that were older by `count` records, and the file of rows.
fn left_behind(home: &Home, count: u64) -> (Store, Folded, PathBuf) {
    let store = home.indexed("b");
    put(&store, vec![session_created("s-000000000000")]).unwrap();
    store.read().unwrap();
    let old = store.start(true);
    assert!(old.state.is_based());
    for number in 1..=count {
        put(&store, vec![session_created(&format!("s-{number:012}")), counted()]).unwrap();
    }
    let index = home.path("index").join(&home.names("index")[0]);
    (store, old, index.join("1").join("data.mdb"))
}

#[test]
fn who_waited_goes_on_from_the_rows_that_others_wrote() {
    let home = Home::new();
    let (store, mut folded, _) = left_behind(&home, 5);
    let before = folded.rows;
    let mut locked = store.lock().unwrap();
    locked.catch_up(&mut folded, &source()).unwrap();
    drop(locked.release());
    assert!(folded.rows > before, "{before:?}");
    assert_eq!(folded.rows, Some((folded.place.segment, folded.place.offset)));
    assert!(folded.state.changes().next().is_none(), "nothing was folded");
    assert_eq!(folded.state, home.open().read().unwrap().state);
}

#[test]
fn what_others_wrote_as_rows_is_not_written_again() {
    let home = Home::new();
    let (store, mut folded, data) = left_behind(&home, 5);
    let stale = folded.rows;
    store.fold_to_head(&mut folded, &mut Vec::new()).unwrap();
    let bytes = std::fs::read(&data).unwrap();
    let locked = store.lock().unwrap();
    locked.index(&mut folded);
    drop(locked.release());
    assert_eq!(folded.rows, stale, "its own rows are the old ones");
    assert_eq!(std::fs::read(&data).unwrap(), bytes, "and the index is as others left it");

    // With a record of its own there is something to write, over the rows as they are now.
    let mut locked = store.lock().unwrap();
    let events = [session_created("s-000000000009")];
    let entry = Entry { op: None, cmd: "test", events: &events };
    let now = (source().moment)();
    let draft = locked.draft(&folded, &entry, now.wall).unwrap();
    locked.append(&mut folded, draft, &events).unwrap();
    locked.settle(&folded, &now).unwrap();
    locked.index(&mut folded);
    drop(locked.release());
    assert_eq!(folded.rows, Some((folded.place.segment, folded.place.offset)));
    assert_ne!(std::fs::read(&data).unwrap(), bytes);
    assert_eq!(folded.state, home.open().read().unwrap().state);
    drop((folded, store));
    let verified = home.indexed("b").verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
}
