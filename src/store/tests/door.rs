//! What is written beside the log: blobs, packets, receipt marks, the user's files.

use super::*;
use crate::model::id::AttemptId;
use crate::model::result::Source;

fn with_blobs(store: &Store, blobs: Vec<Vec<u8>>, events: Vec<Event>) -> Result<Answer<Hash>> {
    store.transact(
        &source(),
        &request("test"),
        |_| Ok(Gathered { blobs: blobs.clone(), ..Gathered::of(()) }),
        |turn, ()| {
            let hash = turn.blob(b"of the turn".to_vec());
            Ok(Decision::new(events.clone(), hash))
        },
    )
}

fn blob_path(home: &Home, hash: &Hash) -> PathBuf {
    home.path("blobs").join(&hash.hex()[..2]).join(hash.hex())
}

#[test]
fn blobs_are_written_once_and_hashed_again() {
    let home = Home::new();
    let store = home.open();
    let big = vec![7u8; 100_000];
    let events = vec![counted()];
    let hash = with_blobs(&store, vec![big.clone(), big.clone()], events.clone()).unwrap().outcome.unwrap();
    assert_eq!(store.blob(&hash).unwrap(), b"of the turn");
    assert_eq!(store.blob(&Hash::of(&big)).unwrap(), big);
    assert!(home.names("tmp").is_empty());
    // The same again: the equal blob is hashed and left as it is.
    with_blobs(&store, vec![big.clone()], events.clone()).unwrap();
    let path = blob_path(&home, &hash);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"of the turm").unwrap();
    assert_eq!(store.blob(&hash).unwrap_err().kind, Kind::Damaged);
    let before = seen(&store);
    assert_eq!(with_blobs(&store, Vec::new(), events).unwrap_err().kind, Kind::Damaged);
    assert_eq!(seen(&store), before);
    std::fs::remove_file(&path).unwrap();
    let error = store.blob(&hash).unwrap_err();
    assert!(error.kind == Kind::Damaged && error.message.contains(&hash.hex()), "{error}");
}

#[test]
fn a_decision_without_events_keeps_no_blob() {
    let home = Home::new();
    let store = home.open();
    let hash = with_blobs(&store, vec![b"x".to_vec()], Vec::new()).unwrap().outcome.unwrap();
    assert!(store.blob(&hash).is_err() && store.blob(&Hash::of(b"x")).is_err());
}

#[test]
fn an_unfinished_blob_of_a_dead_writer_is_no_hindrance() {
    let home = Home::new();
    let store = home.open();
    home.set(&format!("tmp/{}", Hash::of(b"x")), b"ha");
    std::fs::remove_dir(home.path("blobs").join(&Hash::of(b"x").hex()[..2])).unwrap();
    with_blobs(&store, vec![b"x".to_vec()], vec![counted()]).unwrap();
    assert_eq!(store.blob(&Hash::of(b"x")).unwrap(), b"x");
}

#[test]
fn packets_live_as_long_as_their_attempts() {
    let home = Home::new();
    let store = home.open();
    let attempt: AttemptId = "a-000000000001".parse().unwrap();
    assert_eq!(store.packet(&attempt).unwrap(), None);
    for text in ["the packet", "the packet again"] {
        let kept = store.transact::<(), ()>(
            &source(),
            &request("packet"),
            |_| Ok(Gathered::of(())),
            |_, ()| {
                let mut decision = Decision::new(vec![counted()], ());
                decision.packet = Some((attempt.clone(), text.to_owned()));
                Ok(decision)
            },
        );
        kept.unwrap();
        assert_eq!(store.packet(&attempt).unwrap().as_deref(), Some(text));
    }
    assert_eq!(home.names("packets"), [attempt.to_string()]);
    put(&store, vec![attempt_ended("a-000000000001")]).unwrap();
    assert_eq!(store.packet(&attempt).unwrap(), None);
}

#[test]
fn a_receipt_leaves_its_mark() {
    let home = Home::new();
    let store = home.open();
    let (source_id, consumer): (Source, Name) =
        ("x-000000000001".parse().unwrap(), "gate/a".parse().unwrap());
    assert_eq!(store.mark(&source_id, &consumer).unwrap(), None);
    put(&store, vec![receipt_recorded("gate/a", 2)]).unwrap();
    let mark = store.mark(&source_id, &consumer).unwrap().unwrap();
    assert!(mark.ends_with(b"}\n") && mark.starts_with(b"{\"at\":"), "{}", String::from_utf8_lossy(&mark));
    let name = Hash::of_parts(&["x-000000000001", "gate/a"]).hex();
    assert_eq!(home.names("receipts"), [name]);
    assert!(home.codes().iter().all(|code| code == "blob_missing"), "{:?}", home.codes());
}

#[test]
fn a_mark_without_its_record_stops_a_second_receipt() {
    let home = Home::new();
    let store = home.open();
    let (log, head) = (home.bytes(LOG), home.bytes("head"));
    put(&store, vec![receipt_recorded("gate/a", 2)]).unwrap();
    home.set(LOG, &log);
    home.set("head", &head);
    let error = put(&home.open(), vec![receipt_recorded("gate/a", 2)]).unwrap_err();
    assert_eq!(error.kind, Kind::Damaged);
    assert!(home.codes().contains(&"receipt_lost".to_owned()));
    assert_eq!(put(&home.open(), vec![receipt_recorded("gate/b", 2)]).unwrap().outcome, Ok(2));
    // An empty one was only begun.
    home.set(&format!("receipts/{}", home.names("receipts")[0]), b"");
    home.set(&format!("receipts/{}", home.names("receipts")[1]), b"");
    assert!(put(&home.open(), vec![receipt_recorded("gate/a", 3)]).is_ok());
}

#[test]
fn recovery_writes_marks_again_and_drops_packets() {
    let home = Home::new();
    let store = home.open();
    let head = home.bytes("head");
    put(&store, vec![receipt_recorded("gate/a", 2), attempt_ended("a-000000000001")]).unwrap();
    put(&store, vec![receipt_recorded("gate/b", 3)]).unwrap();
    let names = home.names("receipts");
    std::fs::remove_file(home.path("receipts").join(&names[0])).unwrap();
    home.set(&format!("receipts/{}", names[1]), b"");
    home.set("packets/a-000000000001", b"old");
    home.set("head", &head);
    let answer = write(&home.open()).unwrap();
    assert_eq!(
        answer.notes.iter().filter(|note| note.contains("was rewritten")).count(),
        2,
        "{:?}",
        answer.notes
    );
    assert!(home.names("packets").is_empty());
    assert!(names.iter().all(|name| !home.bytes(&format!("receipts/{name}")).is_empty()));
}

#[test]
fn the_users_files_are_bounded_and_never_links() {
    let home = Home::new();
    let store = home.open();
    assert_eq!(store.config().unwrap(), None);
    assert_eq!(store.contract_files().unwrap(), []);
    home.set("config.yaml", b"a: 1\n");
    home.set("contracts/b.yaml", b"b");
    home.set("contracts/a.yaml", b"a");
    home.set("contracts/notes.txt", b"c");
    assert_eq!(store.config().unwrap().unwrap(), b"a: 1\n");
    let names: Vec<String> = store.contract_files().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.yaml", "b.yaml"]);
    home.set("contracts/big.yaml", &vec![b' '; USER_FILE_LIMIT as usize + 1]);
    assert_eq!(store.contract_files().unwrap_err().kind, Kind::TooLarge);
    std::fs::remove_file(home.path("contracts/big.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", home.path("contracts/link.yaml")).unwrap();
    assert_eq!(store.contract_files().unwrap_err().kind, Kind::ForeignStore);
    std::fs::remove_file(home.path("config.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", home.path("config.yaml")).unwrap();
    assert_eq!(store.config().unwrap_err().kind, Kind::ForeignStore);
}
