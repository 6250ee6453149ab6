//! Makes a store large, fast, through the library: whole sessions of nine events, each in one record.
//!
//! `cargo run --release --example grow -- FOLDER EVENTS`: FOLDER is a project whose store exists. Put it in
//! memory (`/dev/shm`) while it grows: each record is synced.

use nf::model::decision::Decision;
use nf::model::event::Event;
use nf::model::id::base32;
use nf::model::time::{Moment, Source, Time};
use nf::store::{Gathered, Options, Request, Store};
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, events] = &arguments[..] else { panic!("grow FOLDER EVENTS") };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let options = Options { boot: Some(boot.trim().to_owned()), ..Options::default() };
    let root = std::path::Path::new(folder).join(".novelforge");
    let store = Store::open(&root, options).expect("a store");
    let mut made = 0;
    let begun = store.read().expect("a state").position.map_or(0, |position| position.seq);
    while made < events.parse().expect("a number") {
        let batch = session(begun * 1_000_000 + made);
        made += batch.len() as u64;
        let moment = Moment {
            wall: Time::from_micros(1_760_000_000_000_000),
            machine: "grow".into(),
            boot_id: boot.trim().into(),
            namespace: String::new(),
            boottime_ms: 1,
        };
        let source = Source::fixed(moment, "grow".into());
        let request = Request { cmd: "grow".into(), op: None, args: Value::Null, dry_run: false };
        store
            .transact(
                &source,
                &request,
                |_| Ok(Gathered::of(())),
                |turn, ()| Ok(Decision::new(batch.clone(), turn.seq())),
            )
            .expect("a record");
    }
    println!("{made} events");
}

/// A session that was worked in and is over.
fn session(number: u64) -> Vec<Event> {
    let digits = base32(nf::model::hash::Hash::of(&number.to_be_bytes()).bytes(), 12);
    let (session, run, at) = (format!("s-{digits}"), format!("r-{digits}"), "2026-01-15T09:30:00.000000Z");
    let resource = format!("bench/grown-{}", number % 97);
    let mut events = vec![
        json!({"type": "session.created", "session": {
            "id": session, "resource": resource, "role": "manager", "task_mode": "review",
            "memory_policy": "session", "resume_policy": "revalidate", "host": "shell", "status": "created",
            "version": 1, "created_at": at, "updated_at": at,
        }}),
        json!({"type": "run.started", "run": {
            "id": run, "session": session, "resource": resource, "task_mode": "review", "cursor": "start",
            "status": "running", "context_manifest": [], "pending": {}, "started_at": at,
        }}),
    ];
    let moved = |from: &str, to: &str, version: u32| {
        json!({
            "type": "session.moved", "session": session, "from": from, "to": to, "version": version,
        })
    };
    events.push(moved("created", "running", 2));
    for step in 1..=4 {
        events.push(json!({"type": "run.stepped", "run": run, "cursor": format!("step-{step}")}));
    }
    events.push(json!({"type": "run.ended", "run": run, "status": "completed", "outcome": "done"}));
    events.push(moved("running", "completed", 3));
    events.into_iter().map(|event| serde_json::from_value(event).expect("an event")).collect()
}
