//! An index that is made at one go: it holds what the log says, counts only when it is whole, and is in
//! nobody's way.

use super::*;
use crate::store::files::Folder;
use crate::store::index::home_made;
use crate::store::lock;

fn with_sessions(count: u64) -> Home {
    let home = Home::new();
    let store = home.open();
    for number in 0..count {
        put(&store, vec![session_created(&format!("s-{number:012}")), counted()]).unwrap();
    }
    home
}

/// The names in the folder of this boot's index.
fn names(store: &Store) -> Vec<String> {
    home_made(store).map(|home| home.names().unwrap()).unwrap_or_default()
}

fn is_whole(home: &Home) {
    let seen = home.indexed("b").read().unwrap();
    assert!(seen.state.is_based() && seen.state.changes().next().is_none(), "nothing was folded");
    assert_eq!(seen.state, home.open().read().unwrap().state);
    let found = home.indexed("b").verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap().findings;
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn made_at_one_go_it_holds_what_the_log_says_and_goes_on_from_there() {
    let home = with_sessions(40);
    assert_eq!(home.indexed("b").build_whole(), Some(()));
    assert_eq!(names(&home.indexed("b")), ["1", "stamp"]);
    is_whole(&home);
    write(&home.indexed("b")).unwrap();
    is_whole(&home);
    // One that counts is left as it is.
    assert_eq!(home.indexed("b").build_whole(), Some(()));
    assert_eq!(names(&home.indexed("b")), ["1", "stamp"]);
}

#[test]
fn one_process_makes_it_and_the_others_wait_for_it_but_not_for_ever() {
    let home = with_sessions(10);
    let mut store = home.indexed("b");
    store.options.lock_timeout_ms = 50;
    let other: Folder = home_made(&store).unwrap();
    assert!(other.lock_alone());
    assert_eq!(store.build_whole(), None);
    assert!(names(&store).is_empty());
    drop(other);
    assert_eq!(store.build_whole(), Some(()));
    drop(store);
    is_whole(&home);
}

#[test]
fn while_the_lock_is_held_and_while_writes_are_stopped_nothing_is_made() {
    let home = with_sessions(10);
    let store = home.indexed("b");
    let held = lock::try_acquire(&store.folder).unwrap();
    assert_eq!(store.build_whole(), None);
    assert!(names(&store).is_empty());
    held.release().unwrap();
    home.set("POISON", b"a sync failed\n");
    assert_eq!(store.build_whole(), None);
    assert!(names(&store).is_empty());
}

#[test]
fn what_was_removed_meanwhile_or_is_older_than_what_counts_does_not_come_to_count() {
    let home = with_sessions(10);
    let store = home.indexed("b");
    let older = crate::store::index::make(&store).unwrap();
    drop(home.indexed("b").read().unwrap());
    assert_eq!(older.count(), None, "another was made meanwhile");
    older.discard();
    is_whole(&home);
}

/// LMDB tells by record locks of its file whether anybody else is there. A process that closes any descriptor
/// of that file loses them all; whoever opens it next would then take the places of all readers away, and
/// what they look up could seem absent.
#[test]
fn who_makes_an_index_piece_by_piece_or_at_one_go_keeps_its_locks() {
    use std::os::unix::fs::MetadataExt;
    for whole in [false, true] {
        let home = with_sessions(40);
        let store = home.indexed("b");
        if whole {
            store.build_whole().unwrap();
        }
        assert!(store.read().unwrap().state.is_based());
        let file = home_made(&store).unwrap().member("1").join("lock.mdb");
        let (inode, own) = (std::fs::metadata(file).unwrap().ino(), std::process::id());
        let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return };
        let shared = locks.lines().filter(|line| line.contains(&format!(":{inode} 0 0")));
        let held: Vec<&str> = shared.filter(|line| line.contains(&format!(" READ {own} "))).collect();
        assert_eq!(held.len(), 1, "made at one go: {whole}\n{locks}");
    }
}
