//! What doctor mends: every whole line stays, and what was durable is given up only where that is accepted.

use super::*;

fn lines(home: &Home) -> Vec<Vec<u8>> {
    home.bytes(LOG).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The store is sound and takes records.
fn sound(home: &Home, records: u64) {
    let ignored = ["torn_kept"];
    let left: Vec<String> =
        home.codes().into_iter().filter(|code| !ignored.contains(&code.as_str())).collect();
    assert!(left.is_empty(), "{:?}", home.open().findings());
    assert_eq!(seen(&home.open()), records);
    assert_eq!(write(&home.open()).unwrap().outcome, Ok(records + 1));
    assert!(home.open().verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap().findings.is_empty());
}

#[test]
fn damage_that_the_lines_themselves_undo_costs_nothing() {
    type Break = fn(&mut Vec<Vec<u8>>);
    let table: [(&str, Break); 11] = [
        ("CRLF", |lines| lines.iter_mut().for_each(|line| drop(line.splice(line.len() - 1.., *b"\r\n")))),
        ("one bit", |lines| lines[2][33] ^= 4),
        ("one bit of the hash", |lines| {
            let at = lines[2].len() - 10;
            lines[2][at] ^= 1;
        }),
        ("a newline", |lines| *lines[2].last_mut().unwrap() ^= 4),
        ("the last newline", |lines| *lines.last_mut().unwrap().last_mut().unwrap() ^= 4),
        ("repeated", |lines| lines.insert(3, lines[2].clone())),
        ("conflict markers", |lines| {
            lines.insert(2, b"<<<<<<< HEAD\n".to_vec());
            lines.insert(4, b"=======\n".to_vec());
            lines.push(b">>>>>>> theirs\n".to_vec());
        }),
        ("two lines exchanged", |lines| lines.swap(2, 3)),
        ("the first line last", |lines| lines.rotate_left(1)),
        ("NULs between", |lines| lines.insert(3, vec![0; 5000])),
        ("two bits in two lines", |lines| {
            lines[1][9] ^= 1;
            lines[4][60] ^= 16;
        }),
    ];
    for (name, break_it) in table {
        let home = Home::filled(5);
        let whole = home.bytes(LOG);
        let mut changed = lines(&home);
        break_it(&mut changed);
        home.set(LOG, &changed.concat());
        let done = home.open().fix(&source(), false).unwrap();
        assert!(
            done.iter().any(|finding| finding.code == "damage" && finding.fix == "done"),
            "{name}: {done:?}"
        );
        assert_eq!(home.bytes(LOG), whole, "{name}");
        assert_eq!(home.names("torn").len(), 1, "{name}");
        sound(&home, 6);
    }
}

#[test]
fn what_was_durable_is_given_up_only_openly() {
    type Break = fn(&mut Vec<Vec<u8>>);
    let table: [(&str, u64, Break); 6] = [
        ("a line destroyed", 2, |lines| lines[2].fill(b'x')),
        ("a line missing", 3, |lines| drop(lines.remove(3))),
        ("two histories", 3, |lines| lines[3] = lines[3].clone().into_iter().rev().collect()),
        ("the end cut off", 4, |lines| lines.truncate(4)),
        ("NULs at the end", 3, |lines| lines[3..].iter_mut().for_each(|line| line.fill(0))),
        ("everything", 0, |lines| lines.iter_mut().for_each(|line| line.fill(b'y'))),
    ];
    for (name, kept, break_it) in table {
        let home = Home::filled(5);
        let mut changed = lines(&home);
        break_it(&mut changed);
        home.set(LOG, &changed.concat());
        let broken = home.bytes(LOG);
        let done = home.fix(false);
        assert_eq!(done, ["loss"], "{name}");
        assert_eq!(home.bytes(LOG), broken, "{name}");
        assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged, "{name}");
        assert!(home.fix(true).contains(&"loss".to_owned()), "{name}");
        let last = home.open().records_back().unwrap().next().unwrap().unwrap();
        // Where nothing is left, a first record is made anew.
        let kept = kept.max(1);
        assert_eq!((last.seq, last.cmd.as_str()), (kept + 1, "doctor"), "{name}");
        let Some(Event::LossAccepted { bytes, quarantined, .. }) = last.events.first() else {
            panic!("{last:?}")
        };
        if *bytes > 0 {
            let torn = home.names("torn");
            let all: Vec<Hash> =
                torn.iter().map(|file| Hash::of(&home.bytes(&format!("torn/{file}")))).collect();
            assert!(all.contains(quarantined), "{name}");
        }
        sound(&home, kept + 1);
    }
}

#[test]
fn segments_after_a_loss_are_kept_aside() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1);
    (0..4).for_each(|_| drop(write(&store).unwrap()));
    let mut second = home.bytes("log/00000002.jsonl");
    second[..40].fill(b'z');
    home.set("log/00000002.jsonl", &second);
    assert_eq!(home.fix(false), ["loss"]);
    assert!(home.fix(true).contains(&"loss".to_owned()));
    assert_eq!(home.names("log"), ["00000001.jsonl", "00000002.jsonl"]);
    assert!(home.names("torn").len() >= 4, "{:?}", home.names("torn"));
    // Three records of segment 1, then the new segment's first and the record of the loss.
    sound(&home, 5);
}

#[test]
fn a_missing_segment_is_a_loss() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1);
    (0..4).for_each(|_| drop(write(&store).unwrap()));
    std::fs::remove_file(home.segment(3)).unwrap();
    assert_eq!(home.fix(false), ["loss"]);
    assert!(home.fix(true).contains(&"loss".to_owned()));
    sound(&home, 8);
}

#[test]
fn damage_in_a_full_segment_is_mended_in_place() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1000);
    (0..12).for_each(|_| drop(write(&store).unwrap()));
    let count = seen(&store);
    let whole = home.bytes("log/00000002.jsonl");
    let mut flipped = whole.clone();
    flipped[100] ^= 2;
    home.set("log/00000002.jsonl", &[flipped, b"\n".to_vec()].concat());
    assert!(home.fix(false).contains(&"damage".to_owned()));
    assert_eq!(home.bytes("log/00000002.jsonl"), whole);
    home.fix(false);
    sound(&home, count);
}

#[test]
fn poison_is_cleared_by_copying_what_is_verified() {
    use std::os::unix::fs::MetadataExt;
    let home = Home::filled(3);
    let head = home.bytes("head");
    let store = home.open();
    write(&store).unwrap();
    let whole = home.bytes(LOG);
    // The sync of record 5 failed: head does not cover it, and a part of a sixth is there as well.
    home.set("head", &head);
    home.set(LOG, &[&whole[..], b"{\"v\":1,\"seq\":6,"].concat());
    store.poison("sync failed");
    let inode = std::fs::metadata(home.segment(1)).unwrap().ino();
    let done = home.fix(false);
    assert!(done.contains(&"poisoned".to_owned()) && !done.contains(&"loss".to_owned()), "{done:?}");
    assert_eq!(home.bytes(LOG), whole);
    assert_ne!(std::fs::metadata(home.segment(1)).unwrap().ino(), inode);
    assert_eq!(home.names("torn").len(), 1);
    // A process that had the store open goes on.
    assert_eq!(write(&store).unwrap().outcome, Ok(6));
    sound(&home, 6);
}

#[test]
fn poison_over_a_loss_stays_until_the_loss_is_accepted() {
    let home = Home::filled(3);
    home.open().poison("sync failed");
    let whole = home.bytes(LOG);
    home.set(LOG, &whole[..whole.len() - 10]);
    assert_eq!(home.fix(false), ["loss"]);
    assert_eq!(write(&home.open()).unwrap_err().kind.exit(), 11);
    assert!(home.path("POISON").exists());
    let done = home.fix(true);
    assert!(done.contains(&"loss".to_owned()) && done.contains(&"poisoned".to_owned()), "{done:?}");
    sound(&home, 4);
}

#[test]
fn head_is_written_anew() {
    let home = Home::filled(3);
    let good = home.bytes("head");
    for at in [10, 200, 600, 4200] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        home.set("head", &bad);
        assert!(home.fix(false).contains(&"head_slot".to_owned()), "byte {at}");
        assert!(home.codes().is_empty(), "byte {at}: {:?}", home.open().findings());
    }
    std::fs::remove_file(home.path("head")).unwrap();
    home.fix(false);
    home.set("head", b"nothing");
    home.fix(false);
    sound(&home, 4);
}

#[test]
fn folders_modes_leftovers_marks_and_packets_are_put_in_order() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    put(&home.open(), vec![receipt_recorded("gate/a", 2), receipt_recorded("gate/b", 2)]).unwrap();
    let marks: Vec<String> = home.names("receipts").iter().map(|name| format!("receipts/{name}")).collect();
    let good = home.bytes(&marks[0]);
    home.set(&marks[0], b"{\"other\":1}\n");
    home.set(&marks[1], b"");
    home.set("tmp/half", b"x");
    home.set("head.new", b"x");
    home.set("packets/a-000000000009", b"old");
    std::fs::remove_dir(home.path("blobs/10")).unwrap();
    std::fs::remove_dir(home.path("torn")).unwrap();
    std::fs::set_permissions(home.path(LOG), std::fs::Permissions::from_mode(0o644)).unwrap();
    let done = home.fix(false);
    for code in ["folders", "modes", "unfinished", "mark_missing", "packets"] {
        assert!(done.contains(&code.to_owned()), "{code}: {done:?}");
    }
    assert_eq!(home.bytes(&marks[0]), good);
    assert!(!home.bytes(&marks[1]).is_empty());
    let left = home.codes();
    assert!(left.iter().all(|code| code == "blob_missing"), "{left:?}");
}

#[test]
fn marks_without_records_and_damaged_blobs_go_aside_only_openly() {
    let home = Home::new();
    let cited = Hash::of(b"cited");
    let value = json!({"type": "conflict.refused", "kind": "late", "value": cited});
    home.open()
        .transact::<(), ()>(
            &source(),
            &request("test"),
            |_| Ok(Gathered { blobs: vec![b"cited".to_vec(), b"loose".to_vec()], ..Gathered::of(()) }),
            |_, ()| Ok(Decision::new(vec![event(value.clone())], ())),
        )
        .unwrap();
    let path = |hash: &Hash| format!("blobs/{}/{hash}", &hash.hex()[..2]);
    home.set(&path(&cited), b"wrong");
    home.set(&path(&Hash::of(b"loose")), b"wrong too");
    home.set(&format!("receipts/{}", Hash::of(b"x")), b"{}\n");
    home.fix(false);
    assert!(!home.path(&path(&Hash::of(b"loose"))).exists());
    assert!(home.path(&path(&cited)).exists());
    assert_eq!(home.names("receipts").len(), 1);
    home.fix(true);
    assert!(!home.path(&path(&cited)).exists() && home.names("receipts").is_empty());
    assert_eq!(home.names("torn").len(), 3);
    assert_eq!(home.open().blob(&cited).unwrap_err().kind, Kind::Damaged);
}

#[test]
fn fixing_a_sound_store_changes_nothing() {
    let home = Home::filled(3);
    let before = home.bytes(LOG);
    assert!(home.fix(true).is_empty());
    assert_eq!(home.bytes(LOG), before);
    sound(&home, 4);
}
