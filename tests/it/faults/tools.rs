//! What the fault tests share: seeded randomness, copies of a store at each step of the loop, the log as
//! records, and what must hold of every store whatever was done to it.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{Packet, Project, Ran};

/// The gate of the question in the harness's job.
pub const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// A number from the environment, so that a run by hand can be larger.
pub fn count(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
        Err(_) => default,
    }
}

/// Random numbers of one test (splitmix64). `NF_TEST_SEED` repeats a run; a failure prints the seed.
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// From `NF_TEST_SEED`, else from the clock.
    pub fn new() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        Self::of(count("NF_TEST_SEED", clock.as_nanos() as u64))
    }

    /// From a seed.
    pub fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with NF_TEST_SEED={}", self.seed);
        }
    }
}

/// Copies a folder with its modes.
pub fn copy_tree(from: &Path, to: &Path) {
    let meta = from.symlink_metadata().expect("a file or folder");
    if meta.is_dir() {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            copy_tree(&entry.path(), &to.join(entry.file_name()));
        }
        std::fs::set_permissions(to, meta.permissions()).expect("a mode");
    } else {
        std::fs::copy(from, to).expect("a copy");
    }
}

/// A project with everything that another one has, its clock too if that one fixed it.
pub fn twin(project: &Project) -> Project {
    let twin = Project::in_memory();
    copy_tree(project.path(), twin.path());
    twin
}

/// Every file and folder below a path with its mode, size, owner and bytes; a link with its target. Two
/// equal pictures mean that nothing was changed. Sparse giants are told by their size alone.
pub fn picture(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, u32, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder).follow_links(false) {
        let entry = entry.expect("an entry");
        let meta = entry.path().symlink_metadata().expect("meta");
        let bytes = if meta.is_file() && meta.len() < 1 << 26 {
            std::fs::read(entry.path()).expect("bytes")
        } else if meta.is_symlink() {
            std::fs::read_link(entry.path()).expect("a target").to_string_lossy().into_owned().into_bytes()
        } else {
            Vec::new()
        };
        let size = if meta.is_file() { meta.len() } else { 0 };
        seen.insert(entry.path().to_owned(), (meta.permissions().mode(), size, meta.uid(), bytes));
    }
    seen
}

/// The records of a project's log, as JSON.
#[track_caller]
pub fn records(project: &Project) -> Vec<Value> {
    let log = project.log();
    let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a whole line")).collect()
}

/// All events of a type.
pub fn events(project: &Project, kind: &str) -> Vec<Value> {
    let all = records(project)
        .into_iter()
        .flat_map(|record| record["events"].as_array().cloned().unwrap_or_default());
    all.filter(|event| event["type"] == kind).collect()
}

/// The store verifies, its numbers have no gap, and no receipt stands twice.
#[track_caller]
pub fn assert_sound(project: &Project) {
    project.nf(&["verify"]).expect(0);
    let numbers: Vec<u64> = records(project).iter().filter_map(|record| record["seq"].as_u64()).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    let mut receipts: Vec<String> = events(project, "receipt.recorded")
        .iter()
        .map(|event| format!("{} {}", event["receipt"]["source"], event["receipt"]["consumer"]))
        .collect();
    let all = receipts.len();
    receipts.sort();
    receipts.dedup();
    assert_eq!(receipts.len(), all, "a result was consumed twice for one consumer");
}

/// The record that an answer in JSON acknowledges.
pub fn acknowledged(ran: &Ran) -> Option<(u64, String)> {
    let document: Value = serde_json::from_str(&ran.stdout).ok()?;
    let record = if document["record"].is_null() {
        &document["error"]["details"]["record"]
    } else {
        &document["record"]
    };
    Some((record["seq"].as_u64()?, record["hash"].as_str()?.to_owned()))
}

/// Every acknowledged record is in the log, under its number and with its hash.
#[track_caller]
pub fn assert_kept(project: &Project, acknowledged: &[(u64, String)]) {
    let records = records(project);
    for (seq, hash) in acknowledged {
        let found = records.get(*seq as usize - 1);
        assert_eq!(found.and_then(|record| record["hash"].as_str()), Some(hash.as_str()), "record {seq}");
    }
}

/// The kind of error that a command gave with `--json`.
pub fn kind(ran: &Ran) -> String {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    document["error"]["kind"].as_str().unwrap_or_default().to_owned()
}

/// Starts a command without waiting for it.
pub fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nf starts")
}

/// Starts all commands while the store's lock is held, so that they pile up on it, then lets them go.
pub fn at_once(project: &Project, commands: &[Vec<String>]) -> Vec<Ran> {
    let lock = std::fs::OpenOptions::new().read(true).write(true).open(project.at(".novelforge/lock"));
    let lock = lock.expect("a lock file");
    lock.lock().expect("the lock");
    let children: Vec<Child> = commands
        .iter()
        .map(|words| {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.extend(["--json", "--lock-timeout", "60s"]);
            spawn(project.command(&words))
        })
        .collect();
    lock.unlock().expect("the lock");
    children.into_iter().map(|child| child.wait_with_output().expect("nf ends").into()).collect()
}

/// Words of a command line.
pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// One store at each step of the loop: what stands right before `start`, `freeze`, `packet`, `reply`,
/// `consume`, `resume` and `event`.
pub struct Steps {
    stages: Vec<(&'static str, Project)>,
}

/// The commands of the loop, in order, as they are given in each stage.
pub const LOOP: [(&str, &[&str]); 7] = [
    ("start", &["start", "--resource", "novel/pride", "--task", "review"]),
    ("freeze", &["freeze", "job.yaml"]),
    ("packet", &["packet"]),
    ("reply", &["reply", "answer.json"]),
    ("consume", &["consume", "--as", GATE]),
    ("resume", &["resume"]),
    ("event", &["event", "put", "feedback.observed", "--key", "mail/1", "--payload", LETTER]),
];

/// A payload that is kept in a blob.
const LETTER: &str = concat!(
    r#"{"letter": ["Nine people are named on the first page, and none of them is seen to do a thing.", "#,
    r#""The second page is the same page again in other words, and the third is a list of the nine.", "#,
    r#""I should like to have met one of them before I was told the names of all their horses."]}"#
);

impl Steps {
    /// Runs the loop once and keeps each stage.
    pub fn new() -> Self {
        let project = Project::in_memory().furnished();
        let mut stages = Vec::new();
        for (name, command) in LOOP {
            stages.push((name, twin(&project)));
            let ran = project.nf(command).expect(0);
            if name == "packet" {
                let sent = Packet::read(&ran.stdout);
                project.write("answer.json", sent.verdict("reject"));
            }
        }
        stages.push(("end", project));
        Self { stages }
    }

    /// A new copy of the stage right before a command; `end` is after all.
    #[track_caller]
    pub fn before(&self, name: &str) -> Project {
        let stage = self.stages.iter().find(|(stage, _)| *stage == name);
        twin(&stage.expect("a stage").1)
    }
}
