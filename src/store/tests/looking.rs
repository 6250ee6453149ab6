//! What verify and doctor see.

use super::*;
use crate::store::finding::Severity;

fn verify(home: &Home) -> Verified {
    home.open().verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap()
}

fn codes(verified: &Verified) -> Vec<&str> {
    verified.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// A store with a blob that a record cites and one that none does.
fn with_blobs() -> (Home, Hash, Hash) {
    let home = Home::new();
    let (cited, loose) = (Hash::of(b"cited"), Hash::of(b"loose"));
    let answer = home.open().transact::<(), ()>(
        &source(),
        &request("test"),
        |_| Ok(Gathered { blobs: vec![b"cited".to_vec(), b"loose".to_vec()], ..Gathered::of(()) }),
        |_, ()| {
            let refused = json!({"type": "conflict.refused", "kind": "late", "value": cited});
            Ok(Decision::new(vec![event(refused)], ()))
        },
    );
    answer.unwrap();
    (home, cited, loose)
}

fn path_of(hash: &Hash) -> String {
    format!("blobs/{}/{hash}", &hash.hex()[..2])
}

#[test]
fn a_sound_store_verifies_with_figures() {
    let (home, ..) = with_blobs();
    let (mut last, mut records) = ((0, 0), Vec::new());
    let verified = home
        .open()
        .verify(
            &mut |done, total| {
                last = (done, total);
                Ok(())
            },
            &mut |record| records.push(record.seq),
        )
        .unwrap();
    assert_eq!((verified.records, verified.segments, verified.blobs, verified.receipts), (2, 1, 2, 0));
    assert_eq!(verified.bytes, home.bytes(LOG).len() as u64 + 10);
    assert_eq!((last.0, records), (last.1, vec![1, 2]), "it came to its end");
    assert!(last.1 > home.bytes(LOG).len() as u64, "{last:?}: the blobs are a part of it");
    assert_eq!(verified.head.unwrap().seq, 2);
    assert_eq!(codes(&verified), ["blob_uncited"]);
    assert_eq!(verified.findings[0].severity, Severity::Note);
}

#[test]
fn blobs_are_hashed_and_missed() {
    let (home, cited, loose) = with_blobs();
    home.set(&path_of(&cited), b"cites");
    home.set(&path_of(&loose), b"lose");
    let verified = verify(&home);
    assert_eq!(codes(&verified), ["blob_damaged", "blob_damaged", "blob_uncited"]);
    let severities: Vec<Severity> = verified.findings.iter().map(|finding| finding.severity).collect();
    assert!(severities.contains(&Severity::Error) && severities.contains(&Severity::Warning));
    std::fs::remove_file(home.path(&path_of(&cited))).unwrap();
    assert!(codes(&verify(&home)).contains(&"blob_missing"));
    assert!(home.codes().contains(&"blob_missing".to_owned()));
}

#[test]
fn verify_sees_all_damage_not_only_the_first() {
    let home = Home::filled(8);
    let mut log = home.bytes(LOG);
    let ends: Vec<usize> = (0..log.len()).filter(|at| log[*at] == b'\n').collect();
    log[ends[2] + 20] ^= 1;
    log[ends[5] + 20] ^= 1;
    home.set(LOG, &log);
    let verified = verify(&home);
    // Each damaged line, and after each the gap in the chain.
    let what: Vec<&str> = verified.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(what[0].contains("line 4, ") && what.iter().any(|what| what.contains("line 7, ")), "{what:?}");
    assert_eq!(verified.records, 7);
}

#[test]
fn verify_goes_over_segment_ends_after_damage() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1);
    (0..3).for_each(|_| drop(write(&store).unwrap()));
    let mut second = home.bytes("log/00000002.jsonl");
    let end = second.len();
    second[end - 30] ^= 1;
    home.set("log/00000002.jsonl", &second);
    let verified = verify(&home);
    assert!(codes(&verified).contains(&"damage"));
    assert_eq!((verified.segments, verified.records), (4, 9));
    std::fs::remove_file(home.segment(2)).unwrap();
    let verified = verify(&home);
    assert!(verified.findings[0].what.contains("segment missing"), "{verified:?}");
}

#[test]
fn marks_are_compared_with_their_records() {
    let home = Home::new();
    put(&home.open(), vec![receipt_recorded("gate/a", 2)]).unwrap();
    let name = format!("receipts/{}", home.names("receipts")[0]);
    let mark = home.bytes(&name);
    let without_blob = |verified: Verified| {
        let mut codes: Vec<String> = verified.findings.into_iter().map(|finding| finding.code).collect();
        codes.retain(|code| code != "blob_missing");
        codes
    };
    assert!(without_blob(verify(&home)).is_empty());
    for at in (0..mark.len()).step_by(23) {
        let mut flipped = mark.clone();
        flipped[at] ^= 1;
        home.set(&name, &flipped);
        assert_eq!(without_blob(verify(&home)), ["mark_damaged"], "byte {at}");
    }
    home.set(&name, b"");
    assert_eq!(without_blob(verify(&home)), ["mark_missing"]);
    std::fs::remove_file(home.path(&name)).unwrap();
    assert_eq!(without_blob(verify(&home)), ["mark_missing"]);
    home.set(&name, &mark);
    home.set(&format!("receipts/{}", Hash::of(b"other")), &mark);
    assert_eq!(without_blob(verify(&home)), ["receipt_lost"]);
}

#[test]
fn doctor_finds_what_is_not_as_it_should_be() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    type Break<'a> = &'a dyn Fn(&Home);
    let table: [(&str, Break<'_>); 15] = [
        ("poisoned", &|home| home.set("POISON", b"why\n")),
        ("unfinished", &|home| home.set("tmp/x", b"half")),
        ("unfinished", &|home| home.set("log/00000001.jsonl.new", b"half")),
        ("torn_kept", &|home| home.set("torn/x", b"tail")),
        ("symbolic_link", &|home| symlink("/etc", home.path("receipts/x")).unwrap()),
        ("modes", &|home| {
            std::fs::set_permissions(home.path("head"), std::fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("foreign", &|home| {
            std::fs::set_permissions(&home.root, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::set_permissions(home.path("head"), std::fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("folders", &|home| std::fs::remove_dir(home.path("blobs/a0")).unwrap()),
        ("lock_missing", &|home| std::fs::remove_file(home.path("lock")).unwrap()),
        ("head_missing", &|home| std::fs::remove_file(home.path("head")).unwrap()),
        ("head_slot", &|home| {
            let mut head = home.bytes("head");
            head[4100] ^= 1;
            home.set("head", &head);
        }),
        ("packets", &|home| home.set("packets/a-000000000009", b"old")),
        ("torn", &|home| home.set(LOG, &[home.bytes(LOG), b"{\"v\"".to_vec()].concat())),
        ("damage", &|home| home.set(LOG, &home.bytes(LOG)[1..])),
        ("receipt_lost", &|home| home.set(&format!("receipts/{}", Hash::of(b"x")), b"{}\n")),
    ];
    for (code, break_it) in table {
        let home = Home::filled(1);
        break_it(&home);
        let files = home.bytes(LOG);
        let found = home.open().findings();
        assert!(found.iter().any(|finding| finding.code == code), "{code}: {found:?}");
        assert!(found.iter().all(|finding| !finding.fix.is_empty() && !finding.what.is_empty()), "{found:?}");
        assert_eq!(home.bytes(LOG), files, "{code}");
    }
}

#[test]
fn doctor_says_what_lies_beyond_head_and_that_the_lock_is_busy() {
    let home = Home::filled(1);
    let head = home.bytes("head");
    write(&home.open()).unwrap();
    home.set("head", &head);
    assert_eq!(home.codes(), ["behind"]);
    let store = Store::open(&home.root, Options { lock_timeout_ms: 1, ..options() }).unwrap();
    let held = lock::acquire(&store.folder, 0).unwrap();
    assert!(store.findings().iter().any(|finding| finding.code == "lock_busy"));
    drop(held);
}
