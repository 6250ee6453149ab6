//! What an index may and may not do: it is found where it lies, does without a folder that can be written,
//! and shows nothing that head does not cover.

use super::*;
use crate::model::id::{Id, SessionId};
use crate::model::state::State;
use crate::model::tables::{Key, Table};

fn lies(home: &Home) -> Vec<String> {
    let found = home.indexed("b").verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap().findings;
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
    let id = SessionId::from_text("s-000000000003");
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
    home.open().read().unwrap().state.get(&SessionId::from_text("s-000000000003")).unwrap()
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
    // A process opens an index once: the next one would find it in use.
    drop(snapshot);
    let snapshot = home.indexed("b").read().unwrap();
    assert_eq!(snapshot.state, plain);
    drop(snapshot);
    assert!(lies(&home).is_empty(), "the index was made anew");
}

/// A store whose index has rows in every table.
fn with_every_table() -> Home {
    let home = Home::new();
    let store = home.indexed("b");
    store.read().unwrap();
    let id = |letter: char| format!("{letter}-000000000001");
    let at = "2026-01-01T00:00:00.000000Z";
    let fingerprint = "nf1:0";
    let session = session_created(&id('s'));
    let run = event(json!({"type": "run.started", "run": {
        "id": id('r'), "session": id('s'), "resource": "novel/pride", "task_mode": "review",
        "cursor": "start", "status": "running", "context_manifest": [], "pending": {}, "started_at": at,
    }}));
    let receipt = receipt_recorded("gate/x", 2);
    put(&store, vec![session, run]).unwrap();
    record(&store, &source(), &keyed("op-1", json!({})), vec![receipt, counted()]).unwrap();
    let mut folded = store.start(true);
    store.fold_to_head(&mut folded, &mut Vec::new()).unwrap();
    // The tables that take whole jobs and answers to fill get a row each that is as good as any other.
    let rest =
        [Table::Job, Table::Outstanding, Table::Nonce, Table::History, Table::Judgement, Table::Answer];
    for table in rest {
        store.lie(&Key::new(table).text(fingerprint), Some(b"{}"));
    }
    home
}

#[test]
fn a_bad_row_of_any_table_is_read_from_the_log_or_refused() {
    let tables = b"ekmrowhnfjtqap";
    let rows = |home: &Home| -> Vec<Vec<u8>> {
        let store = home.indexed("b");
        assert!(store.read().unwrap().state.is_based());
        let state = store.read().unwrap().state;
        state.all_rows().map(|(key, _)| key.into_owned()).collect()
    };
    let all = rows(&with_every_table());
    for table in tables {
        let Some(key) = all.iter().find(|key| key[0] == *table) else {
            panic!("no row of table {}", char::from(*table));
        };
        for log_too in [false, true] {
            let home = with_every_table();
            let plain = home.open().read().unwrap().state;
            let store = home.indexed("b");
            store.read().unwrap();
            store.spoil_row_at(key);
            drop(store);
            let mut log = home.bytes(LOG);
            if log_too {
                // Record 1 stays whole, record 2 does not.
                let at = log.iter().position(|byte| *byte == b'\n').unwrap() + 40;
                log[at] ^= 1;
                home.set(LOG, &log);
            }
            let store = home.indexed("b");
            let snapshot = store.read().unwrap();
            assert!(snapshot.state.is_based());
            let found = snapshot.state.value_bytes(key);
            assert_eq!(store.options.doubt.check().is_err(), log_too, "{}", char::from(*table));
            if !log_too {
                assert_eq!(found, plain.value_bytes(key), "{}", char::from(*table));
                continue;
            }
            // A writer that looks at it writes nothing, whatever it was told.
            drop((snapshot, store));
            let store = home.indexed("b");
            let looked = |state: &State| drop(state.value_bytes(key));
            let wrote = store.transact(
                &source(),
                &request("test"),
                |state| {
                    looked(state);
                    Ok(Gathered::of(()))
                },
                |turn, ()| Ok(Decision::new(vec![counted()], turn.seq())),
            );
            // The first look took the index away: what refuses now is the log itself.
            assert_eq!(wrote.unwrap_err().kind, Kind::Damaged);
            assert_eq!(home.bytes(LOG), log);
        }
    }
}

#[test]
fn a_writer_that_meets_a_bad_row_over_a_damaged_log_writes_nothing() {
    let home = with_sessions(5);
    let key = Key::new(Table::Entity).raw("s-000000000003");
    let store = home.indexed("b");
    store.read().unwrap();
    store.spoil_row(&key);
    drop(store);
    let mut log = home.bytes(LOG);
    let at = log.iter().position(|byte| *byte == b'\n').unwrap() + 40;
    log[at] ^= 1;
    home.set(LOG, &log);
    for decides in [false, true] {
        let store = home.indexed("b");
        let stamped = home.bytes(&stamp(&home));
        let look = |state: &State| assert!(!state.holds("s-000000000003"), "it is not there, as it seems");
        let wrote: Result<Answer<u64>> = store.transact(
            &source(),
            &request("test"),
            |state| {
                if !decides {
                    look(state);
                }
                Ok(Gathered::of(()))
            },
            |turn, ()| {
                look(turn.state);
                Ok(Decision::new(vec![counted()], turn.seq()))
            },
        );
        let error = wrote.unwrap_err();
        assert_eq!(error.kind, Kind::Damaged);
        assert!(error.message.contains("index"), "{error}");
        assert_eq!(home.bytes(LOG), log);
        drop(store);
        home.set(&stamp(&home), &stamped);
    }
}

/// The path of the stamp of the only index.
fn stamp(home: &Home) -> String {
    format!("index/{}/stamp", home.names("index")[0])
}

#[test]
fn an_index_is_made_in_pieces_that_are_told() {
    let home = Home::new();
    for number in 0..60 {
        put(&home.open(), vec![session_created(&format!("s-{number:012}"))]).unwrap();
    }
    let told = Arc::new(Mutex::new(Vec::new()));
    let (tell, root, busy) = (told.clone(), home.root.clone(), Arc::new(Mutex::new(Vec::new())));
    let waited = busy.clone();
    let watch = Watch::new(move |done, total| {
        tell.lock().unwrap().push((done, total));
        if done < total {
            // Another writes between two pieces: the lock is its before the next piece begins.
            let root = root.clone();
            let writer = std::thread::spawn(move || write(&Store::open(&root, options()).unwrap()).unwrap());
            waited.lock().unwrap().push(writer);
            // Until it waits for the lock, which this piece still holds.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    });
    let options = Options { boot: Some("b".into()), watch, ..options() };
    let mut store = Store::open(&home.root, options).unwrap();
    store.index_anything();
    let snapshot = store.read().unwrap();
    for writer in std::mem::take(&mut *busy.lock().unwrap()) {
        std::thread::JoinHandle::join(writer).unwrap();
    }
    let told = told.lock().unwrap();
    assert!(told.len() >= 4, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0].0 <= pair[1].0 || pair[1] == (1, 1)), "{told:?}");
    assert_eq!(told.last(), Some(&(1, 1)));
    let totals: Vec<u64> = told.iter().map(|(_, total)| *total).filter(|total| *total > 1).collect();
    assert!(totals.first() < totals.last(), "no writer came in between: {told:?}");
    assert!(snapshot.state.is_based());
    drop((snapshot, store));
    assert_eq!(home.indexed("b").read().unwrap().state, home.open().read().unwrap().state);
    assert!(lies(&home).is_empty());
}

#[test]
fn doctor_keeps_a_sound_index_and_sweeps_the_others() {
    let home = with_sessions(5);
    let own = home.names("index");
    drop(home.indexed("c").read().unwrap());
    let home_of_own = home.path("index").join(&own[0]);
    std::fs::create_dir(home_of_own.join("fold-7")).unwrap();
    std::fs::create_dir(home_of_own.join("99")).unwrap();
    let store = home.indexed("b");
    assert_eq!(store.foreign_indexes().len(), 1);
    let done: Vec<String> = store.fix(&source(), false).unwrap().into_iter().map(|done| done.code).collect();
    assert_eq!(done, ["index_old"]);
    assert_eq!(home.names("index"), own);
    let names = std::fs::read_dir(&home_of_own).unwrap().count();
    assert_eq!(names, 2, "the generation that counts and the stamp");
    assert!(store.foreign_indexes().is_empty());
    drop(store);
    assert!(home.indexed("b").read().unwrap().state.changes().next().is_none(), "it is used on");
    // One that lies goes.
    let store = home.indexed("b");
    store.read().unwrap();
    store.lie(&Key::new(Table::Entity).raw("s-000000000003"), None);
    let done: Vec<String> = store.fix(&source(), false).unwrap().into_iter().map(|done| done.code).collect();
    assert_eq!(done, ["index"]);
    assert!(!home.path("index").exists());
}

#[test]
fn only_so_many_indexes_of_others_are_kept() {
    let home = with_sessions(5);
    for boot in 0..12 {
        assert!(home.indexed(&format!("boot-{boot}")).read().unwrap().state.is_based());
    }
    assert_eq!(home.names("index").len(), 8);
    assert!(home.indexed("boot-11").read().unwrap().state.changes().next().is_none());
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
