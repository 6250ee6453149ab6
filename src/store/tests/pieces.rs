//! Lines and head slots by themselves: their exact bytes, and every way in which they can be wrong.

use super::damage::Flaw;
use super::head::{self, Head, HeadFile};
use super::record::{self, Draft, Read};
use super::*;

fn line() -> Vec<u8> {
    let events = [counted()];
    let (op, req, prev) = ("op".parse().unwrap(), Hash::of(b"req"), Hash::of(b"prev"));
    let draft = Draft {
        seq: 7,
        at: Time::from_micros(1_700_000_000_123_456),
        op: Some((&op, req)),
        cmd: "handoff claim",
        events: &events,
        prev,
    };
    record::encode(&draft).unwrap().1
}

#[test]
fn a_line_has_the_bytes_of_the_contract() {
    let line = line();
    let text = String::from_utf8(line.clone()).unwrap();
    let body = format!(
        "{{\"v\":1,\"seq\":7,\"at\":\"2023-11-14T22:13:20.123456Z\",\"op\":\"op\",\"req\":\"{}\",\
         \"cmd\":\"handoff claim\",\"events\":[\
         {{\"type\":\"conflict.refused\",\"kind\":\"late\"}}],\"prev\":\"{}\"",
        Hash::of(b"req"),
        Hash::of(b"prev")
    );
    let hash = Hash::derive("novelforge log v1", body.as_bytes());
    assert_eq!(text, format!("{body},\"hash\":\"{hash}\"}}\n"));
    match record::read(line.strip_suffix(b"\n").unwrap(), &Hash::of(b"prev")) {
        Ok(Read::Record(record)) => assert_eq!((record.seq, record.hash), (7, hash)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_damage_to_a_line_is_named() {
    let line = line();
    let line = line.strip_suffix(b"\n").unwrap();
    let mut crlf = line.to_vec();
    crlf.push(b'\r');
    let mut nuls = line.to_vec();
    nuls[20..40].fill(0);
    let table: [(&[u8], Flaw); 9] = [
        (&crlf, Flaw::Crlf),
        (&nuls, Flaw::Nuls),
        (&[0; 4096], Flaw::Nuls),
        (b"<<<<<<< HEAD", Flaw::Conflict),
        (b"=======", Flaw::Conflict),
        (b">>>>>>> theirs", Flaw::Conflict),
        (b"", Flaw::Bits),
        (&line[1..], Flaw::Bits),
        (b"{}", Flaw::Bits),
    ];
    for (bytes, want) in table {
        assert_eq!(
            record::read(bytes, &Hash::of(b"prev")).err(),
            Some(want),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
    for at in 0..line.len() {
        for bit in 0..8 {
            let mut bytes = line.to_vec();
            bytes[at] ^= 1 << bit;
            assert!(record::read(&bytes, &Hash::of(b"prev")).is_err(), "byte {at}, bit {bit}");
        }
    }
}

/// A sealed line of other text.
fn sealed(body: &str) -> Vec<u8> {
    let hash = Hash::derive("novelforge log v1", body.as_bytes());
    format!("{body},\"hash\":\"{hash}\"}}").into_bytes()
}

#[test]
fn a_line_of_a_newer_program_is_no_damage() {
    let prev = Hash::of(b"prev");
    let newer = sealed(&format!(
        "{{\"v\":2,\"seq\":7,\"at\":\"2023-11-14T22:13:20.123456Z\",\"cmd\":\"x\",\
         \"events\":[{{\"type\":\"moon.rose\"}}],\"prev\":\"{prev}\""
    ));
    match record::read(&newer, &prev) {
        Ok(Read::Newer { v, seq, prev: before, .. }) => assert_eq!((v, seq, before), (2, 7, prev)),
        other => panic!("{other:?}"),
    }
    assert_eq!(record::read(&sealed("{\"v\":1"), &prev).err(), Some(Flaw::Bits));
}

fn head(turn: u64, seq: u64) -> Head {
    Head {
        turn,
        seq,
        segment: 1,
        offset: seq * 100,
        hash: Hash::of(&seq.to_be_bytes()),
        store: "s".repeat(26),
        boot: head::boot_mark("boot"),
        device: 0xfe00,
        synced: 17,
    }
}

#[test]
fn head_is_written_in_turn_and_either_slot_may_be_lost() {
    let home = Home::new();
    let store = home.open();
    let id = store.info.store_id.clone();
    let mut file = HeadFile::open(&store.folder, &id).unwrap();
    for seq in 2..9 {
        let head = Head { store: id.clone(), ..head(0, seq) };
        file.write(head, &store.folder).unwrap();
        assert_eq!(head::read(&store.folder, &id).unwrap().newest().unwrap().seq, seq);
        assert_eq!(head::read(&store.folder, &id).unwrap().valid(), 2);
    }
    let bytes = home.bytes("head");
    assert_eq!(head::faults(&bytes, &id), Vec::<String>::new());
    for (at, newest) in [(0, 8), (4096, 7)] {
        // The last writing, number 8, went to the second slot or the first: one of them is one behind.
        let mut torn = bytes.clone();
        torn[at + 100] ^= 1;
        home.set("head", &torn);
        let slots = head::read(&store.folder, &id).unwrap();
        assert_eq!(slots.valid(), 1);
        let seq = slots.newest().unwrap().seq;
        assert!(seq == newest || seq == 15 - newest, "{seq}");
        assert_eq!(head::faults(&torn, &id).len(), 1);
    }
    home.set("head", &bytes[..300]);
    assert!(head::read(&store.folder, &id).unwrap().newest().is_none());
}

#[test]
fn every_bit_of_head_is_watched() {
    let home = Home::filled(2);
    let store = home.open();
    let bytes = home.bytes("head");
    for at in (0..bytes.len()).filter(|at| !(600..4000).contains(at) || at % 97 == 0) {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(!head::faults(&flipped, &store.info.store_id).is_empty(), "byte {at}, bit {bit}");
        }
    }
    assert_eq!(head::faults(&bytes, "another").len(), 2);
    assert_eq!(head::faults(&bytes[1..], &store.info.store_id).len(), 1);
}
