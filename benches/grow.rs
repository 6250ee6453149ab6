//! Makes a store large, fast, through the library: copies of everything that the real commands recorded in
//! it, each with ids, hashes, blobs and numbers of its own, many in one record.
//!
//! `cargo run --release --example grow -- FOLDER EVENTS`: FOLDER is a project that `benches/seed.sh` made;
//! EVENTS is how many there are to be in all. Put it in memory (`/dev/shm`) while it grows: blobs and
//! records are synced.
//!
//! `grow FOLDER --queue N [later|family|review M]`: a queue of N questions for the class `semantic_reviewer`,
//! and M before them that nobody may claim: their moment is to come, another family has to answer, or the
//! question is under review elsewhere. FOLDER holds what `callgrind.sh` made by commands: a session without a
//! run, and a handoff that was claimed. Only claims may be measured there: all share the first one's blobs.

use std::collections::BTreeMap;

use nf::model::decision::{Decision, Turn};
use nf::model::event::Event;
use nf::model::handoff::{Attempt, Handoff, terms};
use nf::model::hash::Hash;
use nf::model::id::{ID_LENGTH, SessionId, base32, is_base32};
use nf::model::job::{Family, Job};
use nf::model::time::{Moment, Source, Time};
use nf::store::{Gathered, LINE_LIMIT, Options, Request, Store};
use serde_json::Value;

/// What `seed.sh` writes where a copy has its number.
const NUMBER: &str = "n000000";
/// Events that one record may have without two of them getting the same place in the order.
const EVENTS: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        [folder, wanted] => copies(folder, number(wanted)),
        [folder, "--queue", wanted] => queue(folder, number(wanted), "", 0),
        [folder, "--queue", wanted, kind, ahead] => queue(folder, number(wanted), kind, number(ahead)),
        _ => panic!("grow FOLDER EVENTS | grow FOLDER --queue N [later|family|review M]"),
    }
}

/// The store of a folder, and the clock that everything is recorded by.
fn opened(folder: &str) -> (Store, Source) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.trim().to_owned();
    let root = std::path::Path::new(folder).join(".novelforge");
    let store =
        Store::open(&root, Options { boot: Some(boot.clone()), ..Options::default() }).expect("a store");
    let moment = Moment {
        wall: Time::from_micros(1_760_000_000_000_000),
        machine: "grow".into(),
        boot_id: boot,
        namespace: String::new(),
        boottime_ms: 1,
    };
    (store, Source::fixed(moment, "grow".into()))
}

fn copies(folder: &str, wanted: usize) {
    let (store, source) = opened(folder);
    let template = Template::read(&store);
    assert!(template.count > 0, "the store has nothing to copy: benches/seed.sh makes one that has");
    let at_once = ((LINE_LIMIT - 4096) / template.length).min(EVENTS / template.count).max(1);
    let request = Request { cmd: "grow".into(), op: None, args: Value::Null, dry_run: false };
    let (mut made, mut number) = (template.count + 1, 0);
    while made < wanted {
        let (mut events, mut blobs) = (Vec::new(), Vec::new());
        for _ in 0..at_once.min((wanted - made).div_ceil(template.count)) {
            number += 1;
            let mut copy = Copy { number, template: &template, hashes: BTreeMap::new(), blobs: Vec::new() };
            let text = copy.text(&template.events);
            events.extend(serde_json::from_str::<Vec<Event>>(&text).expect("events"));
            blobs.append(&mut copy.blobs);
        }
        made += events.len();
        let gathered = |_: &_| Ok(Gathered { blobs: blobs.clone(), ..Gathered::of(()) });
        let decide = |turn: &mut Turn<'_>, _: &()| {
            let mut events = events.clone();
            for event in &mut events {
                if let Event::ReceiptRecorded { receipt } = event {
                    receipt.seq = turn.seq();
                }
            }
            Ok(Decision::new(events, ()))
        };
        store.transact(&source, &request, gathered, decide).expect("a record");
    }
    println!("{made} events: {} recorded by commands and {number} copies of them", template.count);
}

/// What a queue is made of, as real commands recorded it.
struct Queued {
    job: Job,
    handoff: Handoff,
    attempt: Attempt,
    /// A session without a run, so that no run has a list of all that it waits for.
    source: SessionId,
}

impl Queued {
    fn read(store: &Store) -> Self {
        let records: Vec<_> = store.records(2).map(|record| record.expect("a record")).collect();
        let (mut job, mut handoff, mut attempt, mut source) = (None, None, None, None);
        for event in records.into_iter().flat_map(|record| record.events) {
            match event {
                Event::JobFrozen { job: found } => job = Some(found),
                Event::HandoffOpened { handoff: found } => handoff = Some(found),
                Event::HandoffClaimed { attempt: found } => attempt = Some(found),
                Event::SessionCreated { session } if session.worker_of.is_none() => source = Some(session.id),
                _ => {}
            }
        }
        Self {
            job: job.expect("a job"),
            handoff: handoff.expect("a handoff"),
            attempt: attempt.expect("an attempt"),
            source: source.expect("a session"),
        }
    }

    /// One question in the queue, of a kind that may be claimed or of one that may not.
    fn question(&self, number: usize, kind: &str) -> Vec<Event> {
        let mixed = |what: &str| Hash::of_parts(&[what, kind, &number.to_string()]);
        let id = |letter: &str| format!("{letter}-{}", base32(mixed(letter).bytes(), ID_LENGTH));
        let mut job = self.job.clone();
        job.id = id("j").parse().expect("an id");
        job.fingerprint = format!("nf1:{}", mixed("fingerprint").hex());
        if kind == "family" {
            job.execution.families = vec![Family::PeerChat];
        }
        let mut handoff = Handoff {
            id: id("h").parse().expect("an id"),
            job: job.id.clone(),
            fingerprint: job.fingerprint.clone(),
            source_session: self.source.clone(),
            priority: if kind.is_empty() { 0 } else { 9 },
            terms: terms(&job.execution),
            opened_at: Time::from_micros(1_760_000_000_000_000 + number as i64),
            ..self.handoff.clone()
        };
        if kind == "later" {
            handoff.ready_at = Some("2999-01-01T00:00:00Z".parse().expect("a time"));
        }
        let mut events = vec![Event::JobFrozen { job }, Event::HandoffOpened { handoff: handoff.clone() }];
        if kind == "review" {
            let mut attempt = self.attempt.clone();
            attempt.id = id("a").parse().expect("an id");
            (attempt.handoff, attempt.job) = (handoff.id.clone(), handoff.job.clone());
            (attempt.fingerprint, attempt.nonce_hash) = (handoff.fingerprint.clone(), mixed("nonce"));
            attempt.lease.ttl_ms = 30 * 24 * 60 * 60 * 1000;
            events.push(Event::HandoffClaimed { attempt });
            handoff.id = format!("h-{}", base32(mixed("again").bytes(), ID_LENGTH)).parse().expect("an id");
            events.push(Event::HandoffOpened { handoff });
        }
        events
    }
}

fn queue(folder: &str, wanted: usize, kind: &str, ahead: usize) {
    let (store, source) = opened(folder);
    let template = Queued::read(&store);
    let request = Request { cmd: "grow".into(), op: None, args: Value::Null, dry_run: false };
    let mut questions = (0..wanted).map(|at| (at, "")).chain((0..ahead).map(|at| (at, kind))).peekable();
    while questions.peek().is_some() {
        let (mut events, mut length) = (Vec::new(), 0);
        while let Some((number, kind)) = questions.next_if(|_| length < LINE_LIMIT - (16 << 10)) {
            let made = template.question(number, kind);
            length += serde_json::to_string(&made).expect("JSON").len();
            events.extend(made);
        }
        let decide = |_: &mut Turn<'_>, (): &()| Ok(Decision::new(events.clone(), ()));
        store.transact(&source, &request, |_| Ok(Gathered::of(())), decide).expect("a record");
    }
    println!("{wanted} questions in the queue, and {ahead} before them that nobody may claim");
}

/// A part of a text that is copied.
enum Piece {
    /// The same in every copy.
    Same(String),
    /// An id, with its letter.
    Id(String),
    /// A hash in hex.
    Hash(String),
    /// The number of the copy.
    Number,
}

/// What is copied.
struct Template {
    events: Vec<Piece>,
    count: usize,
    /// Bytes of the events of one copy.
    length: usize,
    /// The blobs that they cite, by hash.
    blobs: BTreeMap<String, Vec<Piece>>,
}

impl Template {
    /// Everything in the store but the opening of its first segment.
    fn read(store: &Store) -> Self {
        let records: Vec<_> = store.records(2).map(|record| record.expect("a record")).collect();
        assert!(records.iter().all(|record| record.cmd != "grow"), "this store was grown already");
        let events: Vec<&Event> = records.iter().flat_map(|record| &record.events).collect();
        let text = serde_json::to_string(&events).expect("JSON");
        let mut template =
            Self { count: events.len(), length: text.len(), events: pieces(&text), blobs: BTreeMap::new() };
        let mut cited = hashes(&template.events);
        while let Some(hash) = cited.pop() {
            let Ok(bytes) = store.blob(&hash.parse().expect("a hash")) else { continue };
            let text = pieces(&String::from_utf8(bytes).expect("text"));
            cited.extend(hashes(&text).into_iter().filter(|hash| !template.blobs.contains_key(hash)));
            template.blobs.insert(hash, text);
        }
        template
    }
}

/// The hashes in a text.
fn hashes(pieces: &[Piece]) -> Vec<String> {
    let of = |piece: &Piece| match piece {
        Piece::Hash(hash) => Some(hash.clone()),
        _ => None,
    };
    pieces.iter().filter_map(of).collect()
}

/// Cuts a text where a copy has something of its own.
fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut same, mut rest) = (Vec::new(), String::new(), text);
    while let Some(first) = rest.chars().next() {
        let begins = !same.ends_with(|c: char| c.is_ascii_alphanumeric());
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
        let (length, piece) = match begins.then(|| token(word)).flatten() {
            Some((length, piece)) => (length, Some(piece)),
            None => (first.len_utf8(), None),
        };
        match piece {
            Some(piece) => pieces.extend([Piece::Same(std::mem::take(&mut same)), piece]),
            None => same.push(first),
        }
        rest = &rest[length..];
    }
    pieces.push(Piece::Same(same));
    pieces
}

/// What stands at the start of a word, and its length.
fn token(word: &str) -> Option<(usize, Piece)> {
    let id = word.get(2..).is_some_and(|rest| word[1..].starts_with('-') && is_base32(rest, ID_LENGTH));
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    match word.len() {
        _ if id => Some((word.len(), Piece::Id(word.to_owned()))),
        64 if word.bytes().all(hex) => Some((64, Piece::Hash(word.to_owned()))),
        _ if word.starts_with(NUMBER) => Some((NUMBER.len(), Piece::Number)),
        _ => None,
    }
}

/// One copy in the making.
struct Copy<'a> {
    number: usize,
    template: &'a Template,
    /// The hashes that it has in the place of the template's.
    hashes: BTreeMap<&'a str, Hash>,
    blobs: Vec<Vec<u8>>,
}

impl<'a> Copy<'a> {
    fn text(&mut self, pieces: &'a [Piece]) -> String {
        let mut text = String::with_capacity(self.template.length);
        for piece in pieces {
            match piece {
                Piece::Same(same) => text.push_str(same),
                Piece::Id(id) => {
                    let mixed = Hash::of_parts(&[id, &self.number.to_string()]);
                    text.push_str(&id[..2]);
                    text.push_str(&base32(mixed.bytes(), ID_LENGTH));
                }
                Piece::Hash(hash) => text.push_str(&self.hash(hash).hex()),
                Piece::Number => text.push_str(&format!("n{:06}", self.number)),
            }
        }
        text
    }

    /// The hash of this copy's blob, or one of its own for what is no blob.
    fn hash(&mut self, old: &'a str) -> Hash {
        if let Some(known) = self.hashes.get(old) {
            return *known;
        }
        let new = match self.template.blobs.get(old) {
            Some(pieces) => {
                let bytes = self.text(pieces).into_bytes();
                let hash = Hash::of(&bytes);
                self.blobs.push(bytes);
                hash
            }
            None => Hash::of_parts(&[old, &self.number.to_string()]),
        };
        self.hashes.insert(old, new);
        new
    }
}
