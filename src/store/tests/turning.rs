//! From one segment to the next, and every point at which a writer may die on the way.

use super::*;

/// A store whose segments are closed at once, at every record.
fn tiny(home: &Home) -> Store {
    let mut store = home.open();
    store.limit_segments(1);
    store
}

#[test]
fn full_segments_are_closed_and_followed() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(2000);
    let mut written = Vec::new();
    for _ in 0..60 {
        let answer = write(&store).unwrap();
        assert!(answer.notes.is_empty(), "{:?}", answer.notes);
        written.push(answer.position.unwrap());
    }
    assert!(home.names("log").len() > 8, "{:?}", home.names("log"));
    let again = home.open();
    let snapshot = again.read().unwrap();
    assert_eq!(snapshot.state.meta().conflicts, 60);
    assert_eq!(snapshot.state.meta().segment as usize, home.names("log").len());
    assert!(written.iter().all(|position| again.contains(position).unwrap()));
    let back: Vec<u64> = again.records_back().unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(back, (1..=back.len() as u64).rev().collect::<Vec<_>>());
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(home.segment(1)).unwrap().mode() & 0o777, 0o400);
    let last = home.names("log").len() as u32;
    assert_eq!(std::fs::metadata(home.segment(last)).unwrap().mode() & 0o777, 0o600);
    assert!(home.codes().is_empty(), "{:?}", again.findings());
    let verified = again.verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap();
    assert_eq!((verified.records, verified.segments as usize), (back.len() as u64, home.names("log").len()));
    assert!(verified.findings.is_empty(), "{verified:?}");
}

#[test]
fn who_follows_gets_each_record_once_over_the_ends_of_segments() {
    let home = Home::new();
    let mut store = home.open();
    store.limit_segments(1500);
    // From every place where a reader may begin: within a segment, and at its ends.
    for begun in 0..12 {
        let reader = home.open();
        let (back, mut later) = reader.records_and_later().unwrap();
        let newest = back.map(|record| record.unwrap().seq).next().unwrap();
        let mut got = Vec::new();
        for _ in 0..7 {
            assert!(later.next().is_none(), "{begun}: nothing is new");
            write(&store).unwrap();
            got.extend(later.by_ref().map(|record| record.unwrap().seq));
        }
        let last = home.open().covered().unwrap().unwrap().seq;
        assert_eq!(got, (newest + 1..=last).collect::<Vec<_>>(), "{begun}");
    }
    assert!(home.names("log").len() > 12, "{:?}", home.names("log"));
}

#[test]
fn damage_is_named_by_its_line_to_who_follows() {
    let home = Home::filled(3);
    let reader = home.open();
    let (_, mut later) = reader.records_and_later().unwrap();
    write(&home.open()).unwrap();
    let mut log = home.bytes(LOG);
    let end = log.len() - 20;
    log[end] ^= 1;
    home.set(LOG, &log);
    let error = later.next().unwrap().unwrap_err();
    let lines = log.iter().filter(|byte| **byte == b'\n').count();
    assert!(error.to_string().contains(&format!("line {lines}, ")), "{error}");
    assert!(later.next().is_none(), "there is no going on");
}

/// The files of a store as they were.
struct Kept(Vec<(String, Vec<u8>)>);

fn keep(home: &Home) -> Kept {
    let mut files = vec![("head".to_owned(), home.bytes("head"))];
    files.extend(
        home.names("log").into_iter().map(|name| (format!("log/{name}"), home.bytes(&format!("log/{name}")))),
    );
    Kept(files)
}

fn restore(home: &Home, kept: &Kept) {
    for name in home.names("log") {
        std::fs::remove_file(home.path("log").join(name)).unwrap();
    }
    kept.0.iter().for_each(|(name, bytes)| home.set(name, bytes));
}

#[test]
fn a_writer_may_die_anywhere_between_two_segments() {
    let home = Home::filled(1);
    let before = keep(&home);
    write(&tiny(&home)).unwrap();
    let after = keep(&home);
    let (first, second) = (after.0[1].1.clone(), after.0[2].1.clone());
    let start = before.0[1].1.len();
    let record = start + first[start..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // Cut the bytes of both segments anywhere, under the head from before.
    for cut in start..=first.len() + second.len() {
        let (one, two) = (cut.min(first.len()), cut.saturating_sub(first.len()));
        let files: &[bool] = if one == first.len() { &[false, true] } else { &[false] };
        for with_second in files {
            if two > 0 && !with_second {
                continue;
            }
            restore(&home, &before);
            home.set(LOG, &first[..one]);
            if *with_second {
                home.set("log/00000002.jsonl", &second[..two]);
            }
            let answer = write(&home.open()).unwrap();
            let closing = one == first.len();
            let kept = 2 + u64::from(one >= record) + 2 * u64::from(closing);
            assert_eq!(answer.outcome, Ok(kept + 1), "cut at {cut} ({with_second}): {:?}", answer.notes);
            if cut % 32 != 0 && one != first.len() {
                continue;
            }
            let found = home.open().findings();
            let bad = found.iter().find(|found| !["torn_kept", "modes"].contains(&found.code.as_str()));
            assert!(bad.is_none(), "cut at {cut}: {bad:?}");
            assert_eq!(home.open().read().unwrap().state.meta().conflicts, 2 + u64::from(one >= record));
        }
    }
}

#[test]
fn a_missing_segment_and_foreign_bytes_are_damage() {
    let home = Home::new();
    let store = tiny(&home);
    (0..4).for_each(|_| drop(write(&store).unwrap()));
    let whole = keep(&home);
    std::fs::remove_file(home.segment(2)).unwrap();
    let error = home.open().read().unwrap_err();
    assert!(error.message.contains("segment missing"), "{error}");
    restore(&home, &whole);
    std::fs::remove_file(home.segment(5)).unwrap();
    assert_eq!(home.open().read().unwrap_err().kind, Kind::Damaged);
    restore(&home, &whole);
    let second = home.bytes("log/00000002.jsonl");
    home.set("log/00000003.jsonl", &second);
    assert_eq!(home.open().read().unwrap_err().kind, Kind::Damaged);
    restore(&home, &whole);
    std::fs::remove_file(home.path("head")).unwrap();
    let first = home.bytes(LOG);
    home.set(LOG, &[first, b"more\n".to_vec()].concat());
    let error = home.open().read().unwrap_err();
    assert!(error.message.contains("after the closing record"), "{error}");
}

#[test]
fn a_stale_head_over_several_segments_is_caught_up() {
    let home = Home::filled(1);
    let old_head = home.bytes("head");
    let store = tiny(&home);
    (0..4).for_each(|_| drop(write(&store).unwrap()));
    let count = seen(&store);
    home.set("head", &old_head);
    assert_eq!(seen(&home.open()), 2);
    let answer = write(&home.open()).unwrap();
    assert_eq!(answer.outcome, Ok(count + 1));
    assert!(home.codes().is_empty(), "{:?}", home.open().findings());
}

#[test]
fn verify_hashes_each_closed_segment() {
    let home = Home::new();
    write(&tiny(&home)).unwrap();
    let verified = home.open().verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap();
    assert_eq!((verified.segments, verified.records), (2, 4));
    assert!(verified.findings.is_empty());
}
