//! The log cut, flipped, cloned and mixed up: what is torn is mended, what is damaged is named.

use super::*;
use crate::store::damage::Flaw;

/// Lines of the log with their newlines.
fn lines(log: &[u8]) -> Vec<Vec<u8>> {
    log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn kind_of(home: &Home) -> Kind {
    home.open().read().unwrap_err().kind
}

#[test]
fn a_log_cut_anywhere_beyond_head_recovers_what_is_whole() {
    // Head as it stood after record 4; records 5 to 7 beyond it, as after a power cut.
    let home = Home::filled(3);
    let old_head = home.bytes("head");
    let covered = home.bytes(LOG).len();
    let store = home.open();
    (0..3).for_each(|_| drop(write(&store).unwrap()));
    let log = home.bytes(LOG);
    let ends: Vec<usize> = (0..log.len()).filter(|at| log[*at] == b'\n').map(|at| at + 1).collect();
    for cut in covered..=log.len() {
        home.set(LOG, &log[..cut]);
        home.set("head", &old_head);
        let store = home.open();
        assert_eq!(seen(&store), 4, "cut at {cut}");
        let whole = ends.iter().filter(|end| **end <= cut).count() as u64;
        let answer = write(&store).unwrap();
        assert_eq!(answer.outcome, Ok(whole + 1), "cut at {cut}");
        let torn = ends.iter().all(|end| *end != cut);
        let quarantined = answer.notes.iter().any(|note| note.contains("never acknowledged; moved to torn/"));
        assert_eq!(quarantined, torn, "cut at {cut}: {:?}", answer.notes);
        let behind = answer.notes.iter().any(|note| note.contains("now count"));
        assert_eq!(behind, whole > 4, "cut at {cut}: {:?}", answer.notes);
        assert_eq!(seen(&home.open()), whole + 1);
    }
    assert!(!home.names("torn").is_empty());
}

#[test]
fn torn_bytes_are_kept_and_another_boot_casts_doubt() {
    let home = Home::filled(2);
    let log = home.bytes(LOG);
    home.set(LOG, &[&log[..], b"{\"v\":1,\"seq\":4,"].concat());
    let source = Source::fixed(moment("boot-2", 5), "x".into());
    let answer = write_with(&home.open(), &source, &request("test")).unwrap();
    let torn = home.names("torn");
    assert_eq!(home.bytes(&format!("torn/{}", torn[0])), b"{\"v\":1,\"seq\":4,");
    let hash = Hash::of(b"{\"v\":1,\"seq\":4,").hex();
    let note = &answer.notes[0];
    assert!(note.contains("unacknowledged or damaged") && note.contains(&hash), "{note}");
    assert_eq!(answer.outcome, Ok(4));
}

#[test]
fn a_log_cut_anywhere_before_head_is_lost_data() {
    let home = Home::filled(5);
    let log = home.bytes(LOG);
    let last_three = log.len() - lines(&log)[3..].concat().len();
    for cut in last_three..log.len() {
        home.set(LOG, &log[..cut]);
        let error = home.open().read().unwrap_err();
        assert_eq!(error.kind, Kind::Damaged, "cut at {cut}");
        assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged, "cut at {cut}");
        assert_eq!(home.bytes(LOG), &log[..cut]);
    }
    home.set(LOG, &log[..log.len() - 1]);
    let options = Options { allow_damaged: true, ..options() };
    let snapshot = Store::open(&home.root, options).unwrap().read().unwrap();
    assert_eq!(snapshot.position.unwrap().seq, 5);
    assert!(snapshot.warnings[0].contains("damaged"), "{:?}", snapshot.warnings);
}

#[test]
fn every_flipped_bit_of_the_log_is_reported() {
    let home = Home::filled(2);
    let log = home.bytes(LOG);
    for at in 0..log.len() {
        let mut flipped = log.clone();
        flipped[at] ^= 1 << (at % 8);
        home.set(LOG, &flipped);
        assert_eq!(kind_of(&home), Kind::Damaged, "byte {at}");
        if at % 19 != 0 {
            continue;
        }
        let verified = home.open().verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap();
        assert!(verified.findings.iter().any(|found| found.code == "damage"), "byte {at}: {verified:?}");
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let home = Home::filled(4);
    let log = home.bytes(LOG);
    let mut parts = lines(&log);
    let second = parts[0].len();
    let mut table: Vec<(Flaw, Vec<Vec<u8>>)> = Vec::new();
    let mut changed = parts.clone();
    changed[1][30] ^= 4;
    table.push((Flaw::Bits, changed));
    let mut changed = parts.clone();
    changed[1][30..60].fill(0);
    table.push((Flaw::Nuls, changed));
    let mut changed = parts.clone();
    changed[1].splice(parts[1].len() - 1.., *b"\r\n");
    table.push((Flaw::Crlf, changed));
    let mut changed = parts.clone();
    changed.insert(1, b"<<<<<<< HEAD\n".to_vec());
    table.push((Flaw::Conflict, changed));
    let mut changed = parts.clone();
    changed.insert(1, parts[0].clone());
    table.push((Flaw::Repeated, changed));
    let mut changed = parts.clone();
    changed.remove(1);
    table.push((Flaw::Order, changed));
    parts.swap(1, 2);
    table.push((Flaw::Order, parts));
    for (flaw, lines) in table {
        home.set(LOG, &lines.concat());
        let error = home.open().read().unwrap_err();
        let want = json!({"segment": 1, "line": 2, "byte": second, "damage": flaw.word()});
        assert_eq!((error.kind, error.details), (Kind::Damaged, want), "{flaw}");
        assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged, "{flaw}");
    }
}

#[test]
fn another_store_json_is_seen() {
    let home = Home::filled(1);
    let info = String::from_utf8(home.bytes("store.json")).unwrap();
    home.set("store.json", info.replace("}", " }").as_bytes());
    assert_eq!(kind_of(&home), Kind::Damaged);
    let findings = home.open().findings();
    assert!(findings.iter().any(|found| found.what.contains("store.json is not")), "{findings:?}");
    home.set("store.json", b"not json");
    assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::Damaged);
}

#[test]
fn a_clone_without_head_reads_all_and_its_first_writer_writes_head() {
    let home = Home::filled(4);
    for name in ["head", "lock"] {
        std::fs::remove_file(home.path(name)).unwrap();
    }
    for name in ["packets", "tmp", "torn", "receipts", "blobs/00"] {
        std::fs::remove_dir(home.path(name)).unwrap();
    }
    let snapshot = home.open().read().unwrap();
    assert_eq!(snapshot.position.unwrap().seq, 5);
    assert!(snapshot.warnings[0].contains("head is missing"), "{:?}", snapshot.warnings);
    let back = home.open().records_back().unwrap().map(|record| record.unwrap().seq).collect::<Vec<_>>();
    assert_eq!(back, [5, 4, 3, 2, 1]);
    let answer = write(&home.open()).unwrap();
    assert_eq!(answer.outcome, Ok(6));
    assert!(answer.notes[0].contains("head was missing"), "{:?}", answer.notes);
    assert!(home.open().read().unwrap().warnings.is_empty());
}

#[test]
fn without_head_a_torn_end_is_no_damage_and_a_hole_is() {
    let home = Home::filled(4);
    let log = home.bytes(LOG);
    let blank = vec![b'x'; home.bytes("head").len()];
    home.set("head", &blank);
    home.set(LOG, &log[..log.len() - 20]);
    let snapshot = home.open().read().unwrap();
    assert_eq!((snapshot.position.unwrap().seq, snapshot.warnings.len()), (4, 2));
    let mut hole = log.clone();
    hole[log.len() / 2] ^= 1;
    home.set(LOG, &hole);
    assert_eq!(kind_of(&home), Kind::Damaged);
    assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged);
    home.set(LOG, &log[..log.len() - 20]);
    let answer = write(&home.open()).unwrap();
    assert_eq!(answer.outcome, Ok(5));
    assert_eq!(home.names("torn").len(), 1);
    home.set(LOG, b"");
    home.set("head", &blank);
    assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged);
}

#[test]
fn a_hole_beyond_head_is_damage_and_nothing_is_changed() {
    let home = Home::filled(2);
    let old_head = home.bytes("head");
    let store = home.open();
    (0..3).for_each(|_| drop(write(&store).unwrap()));
    let mut log = home.bytes(LOG);
    let start: usize = lines(&log)[..3].iter().map(Vec::len).sum();
    log[start + 40] ^= 1;
    home.set(LOG, &log);
    home.set("head", &old_head);
    assert_eq!(seen(&home.open()), 3);
    assert_eq!(write(&home.open()).unwrap_err().kind, Kind::Damaged);
    assert_eq!(home.bytes(LOG), log);
    assert!(home.codes().contains(&"damage".to_owned()));
}

#[test]
fn a_log_put_back_from_a_copy_is_seen_by_its_head() {
    let home = Home::filled(2);
    let old = home.bytes(LOG);
    let store = home.open();
    write(&store).unwrap();
    home.set(LOG, &old);
    assert_eq!(kind_of(&home), Kind::Damaged);
    // The open store holds a fold that went further: it must not trust it.
    assert_eq!(write(&store).unwrap_err().kind, Kind::Damaged);
}

#[test]
fn a_whole_copy_put_back_is_folded_anew() {
    let home = Home::filled(2);
    let (old, old_head) = (home.bytes(LOG), home.bytes("head"));
    let store = home.open();
    (0..5).for_each(|_| drop(write(&store).unwrap()));
    home.set(LOG, &old);
    home.set("head", &old_head);
    assert_eq!(write(&store).unwrap().outcome, Ok(4));
    assert_eq!(home.open().read().unwrap().state.meta().conflicts, 3);
}

#[test]
fn readers_of_records_stop_at_damage_from_either_end() {
    let home = Home::filled(4);
    let mut log = home.bytes(LOG);
    let start: usize = lines(&log)[..2].iter().map(Vec::len).sum();
    log[start + 40] ^= 1;
    home.set(LOG, &log);
    let store = home.open();
    let forward: Vec<Result<u64>> = store.records(1).map(|record| record.map(|record| record.seq)).collect();
    assert!(forward.len() == 3 && forward[2].is_err(), "{forward:?}");
    let back: Vec<Result<u64>> =
        store.records_back().unwrap().map(|record| record.map(|record| record.seq)).collect();
    assert!(back.len() == 3 && back[0] == Ok(5) && back[2].is_err(), "{back:?}");
    let position = Position { seq: 5, hash: Hash::of(b"x") };
    assert_eq!(store.contains(&position).unwrap_err().kind, Kind::Damaged);
}
