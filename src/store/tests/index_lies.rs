//! What an index may and may not do: it is found where it lies, does without a folder that can be written,
//! and shows nothing that head does not cover.

use super::*;
use crate::model::id::{Id, SessionId};
use crate::model::tables::{Key, Table};

fn lies(home: &Home) -> Vec<String> {
    let found = home.indexed("b").verify(&mut |_, _| {}, &mut |_| {}).unwrap().findings;
    found.into_iter().filter(|finding| finding.code == "index").map(|finding| finding.what).collect()
}

fn with_sessions(count: u64) -> Home {
    let home = Home::new();
    let store = home.indexed("b");
    for number in 0..count {
        put(&store, vec![session_created(&format!("s-{number:012}")), counted()]).unwrap();
    }
    home
}

#[test]
fn an_index_is_made_used_and_brought_up() {
    let home = with_sessions(20);
    let store = home.indexed("b");
    let snapshot = store.read().unwrap();
    assert!(snapshot.state.is_based() && snapshot.state.changes().next().is_none(), "nothing was folded");
    assert_eq!(snapshot.state, home.open().read().unwrap().state);
    assert!(lies(&home).is_empty());
    assert!(home.codes().is_empty(), "{:?}", home.codes());
    assert_eq!(home.names("index").len(), 1);
    // Another boot has its own; doctor sweeps both.
    assert!(home.indexed("c").read().unwrap().state.is_based());
    assert_eq!(home.names("index").len(), 2);
    drop(store);
    let found = home.indexed("b").findings();
    assert!(found.iter().any(|finding| finding.code == "index_old"), "{found:?}");
    assert!(home.fix(false).contains(&"index".to_owned()));
    assert!(!home.path("index").exists());
}

#[test]
fn a_short_log_has_no_index() {
    let home = Home::filled(10);
    let options = Options { boot: Some("b".into()), ..options() };
    let store = Store::open(&home.root, options).unwrap();
    assert!(!store.read().unwrap().state.is_based());
    write(&store).unwrap();
    assert!(!home.path("index").exists());
}

#[test]
fn an_index_that_lies_is_found() {
    let home = with_sessions(5);
    let key = Key::new(Table::Entity).raw("s-000000000003");
    let spoil = |key: &Key, value: Option<&[u8]>| {
        let store = home.indexed("b");
        assert!(store.read().unwrap().state.is_based());
        store.lie(key, value);
    };
    assert!(lies(&home).is_empty());
    let before = home.open().read().unwrap().state.value("s-000000000003").unwrap().to_string();
    spoil(&key, None);
    assert_eq!(lies(&home).len(), 1, "a row is missing");
    let id = SessionId::from_text("s-000000000003".into());
    let seen = home.indexed("b").read().unwrap();
    assert!(!seen.state.holds(id.as_str()), "nothing but verify can know");
    drop(seen);
    assert!(home.codes().is_empty(), "{:?}", home.codes());
    assert!(home.indexed("b").findings().iter().any(|finding| finding.code == "index"));
    spoil(&key, Some(before.replace("manager", "worker").as_bytes()));
    assert_eq!(lies(&home).len(), 1, "a row was changed");
    spoil(&key, Some(serde_json::to_vec(&session(&home)).unwrap().as_slice()));
    assert_eq!(lies(&home), Vec::<String>::new(), "it is as it was");
    spoil(&Key::new(Table::Entity).raw("s-zzzzzzzzzzzz"), Some(b"{}"));
    assert_eq!(lies(&home).len(), 1, "a row too many");
    home.fix(false);
    assert!(home.indexed("b").read().unwrap().state.is_based());
    assert!(lies(&home).is_empty());
}

fn session(home: &Home) -> crate::model::session::Session {
    home.open().read().unwrap().state.get(&SessionId::from_text("s-000000000003".into())).unwrap()
}

#[test]
fn a_value_whose_check_does_not_hold_is_read_from_the_log() {
    let home = with_sessions(5);
    let store = home.indexed("b");
    let plain = home.open().read().unwrap().state;
    assert!(store.read().unwrap().state.is_based());
    store.spoil_row(&Key::new(Table::Entity).raw("s-000000000003"));
    drop(store);
    let snapshot = home.indexed("b").read().unwrap();
    assert!(snapshot.state.is_based());
    assert_eq!(snapshot.state, plain);
    // A process opens an index once: verify would find it in use.
    drop(snapshot);
    assert_eq!(lies(&home).len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_costs_only_the_index() {
    let home = Home::filled(10);
    // A file in the place of the folder: not even the owner, nor root, can make an index there.
    std::fs::write(home.path("index"), b"").unwrap();
    let store = home.indexed("b");
    assert_eq!(seen(&store), 11);
    assert_eq!(write(&store).unwrap().outcome, Ok(12));
    assert!(!store.read().unwrap().state.is_based());
    assert_eq!(home.bytes("index"), b"");
}

#[test]
fn a_reader_beside_a_writer_sees_what_head_covers() {
    let home = with_sessions(5);
    let head = home.bytes("head");
    put(&home.indexed("b"), vec![session_created("s-00000000000x")]).unwrap();
    assert!(home.indexed("b").read().unwrap().state.holds("s-00000000000x"));
    // The index is beyond head now: it is not believed.
    home.set("head", &head);
    let snapshot = home.indexed("b").read().unwrap();
    assert!(!snapshot.state.holds("s-00000000000x"));
    assert_eq!(snapshot.position, home.open().read().unwrap().position);
    // A snapshot stays as it was while others write.
    let store = home.indexed("b");
    let before = store.read().unwrap();
    put(&store, vec![session_created("s-00000000000y")]).unwrap();
    assert!(!before.state.holds("s-00000000000y"));
    assert!(store.read().unwrap().state.holds("s-00000000000y"));
}

#[test]
fn readers_and_writers_at_once_agree() {
    let home = with_sessions(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..30 {
                    write(&home.indexed("b")).unwrap();
                    let first = seen(&home.indexed("b"));
                    assert!(seen(&home.open()) >= first);
                }
            });
        }
    });
    assert_eq!(seen(&home.indexed("b")), 4 + 90);
    assert!(lies(&home).is_empty());
}
