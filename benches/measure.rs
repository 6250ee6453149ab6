//! Times every command of `nf` on stores of several sizes, beside a partner program in the same run, and
//! prints one row a command with the aims that it falls short of. `compare.sh` builds and calls it.
//!
//! `measure commands NF FLOOR BARE ANSWER ROUNDS FOLDER EVENTS…`: `FOLDER/EVENTS` are projects with a store;
//! the first is the empty one, of which each round uses a fresh copy.
//! `measure whole NF PROJECT EVENTS`: what reads a whole log.
//! `measure floors FLOOR BARE FOLDER ROUNDS`: what the syncs of a command cost by themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// What a command is measured against.
#[derive(Clone, Copy, PartialEq)]
enum Partner {
    /// A durable append, before and after a command that writes.
    Floor,
    /// A process that does nothing, before and after one that reads.
    Bare,
}
use Partner::{Bare, Floor};

/// The rows in the order of a round, which is a daily path and then everything that reads: the name, the
/// partner, the words, and the name under which the answer is kept for `{it}` in later rows.
const ROWS: &[(&str, Partner, &str, &str)] = &[
    ("start", Floor, "start --resource bench/b --task review -q", "session"),
    ("freeze", Floor, "freeze bench.yaml -q", "job"),
    ("packet", Floor, "packet {job} --gate gate/b --out packet.txt -q", ""),
    ("reply", Floor, "reply answer.txt -q", "result"),
    ("consume", Floor, "consume {result} --as gate/b -q", ""),
    ("resume", Floor, "resume {session} -q", ""),
    ("run step", Floor, "run step --cursor next -q", ""),
    ("checkpoint save", Floor, "checkpoint save --boundary other -q", ""),
    ("freeze, queued", Floor, "freeze bench.yaml -q", "job"),
    ("handoff open", Floor, "handoff open {job} --class semantic_reviewer --gate gate/q -q", "handoff"),
    (
        "handoff claim",
        Floor,
        "handoff claim {handoff} --class semantic_reviewer --worker w --family peer_chat \
        --out claim.txt -q",
        "",
    ),
    ("handoff complete", Floor, "handoff complete answer.txt -q", ""),
    ("event put", Floor, "event put ci.observed --key {handoff} -q", ""),
    ("effect plan", Floor, "effect plan --key {handoff} --path out.md --expect review.yaml -q", ""),
    ("effect clear", Floor, "effect clear {handoff} --reason bench -q", ""),
    ("run finish", Floor, "run finish --status completed -q", ""),
    ("session move", Floor, "session move {session} stale -q", ""),
    ("--version", Bare, "--version", ""),
    ("status", Bare, "status", ""),
    ("show RESULT", Bare, "show {result}", ""),
    ("show SESSION", Bare, "show {session}", ""),
    ("list --limit 20", Bare, "list checkpoint --limit 20", ""),
    ("list handoff", Bare, "list handoff --limit 20", ""),
    ("log --limit 20", Bare, "log --limit 20", ""),
    ("validate", Bare, "validate {result}", ""),
];

/// Times the floor that a writing command may take on an empty store.
const FLOORS: f64 = 1.5;
/// Times its own on an empty store that it may take on the largest.
const GROWTH: f64 = 1.15;
/// Times a bare process that a reading command may take on the largest.
const BARES: f64 = 4.0;
/// Resident MiB that a command may have, and one that reads the whole log.
const MEMORY: (f64, f64) = (16.0, 64.0);
/// Megabytes of log a second that `verify` is to read.
const VERIFIED: f64 = 150.0;
/// Seconds that an index of a million events may take.
const REBUILT: f64 = 15.0;

/// Rounds that do not count: they warm caches, and put records of real commands behind those that `grow.rs`
/// packed, which no command ever shows by the score.
const WARM: usize = 3;

/// How a program ended.
struct Ended {
    answer: String,
    ms: f64,
    /// The most memory that it had resident, in MiB; pages of mapped files count.
    mib: f64,
}

#[repr(C)]
struct Usage {
    /// User and system time: seconds and microseconds of each.
    times: [i64; 4],
    /// The most that was resident, in KiB.
    resident: i64,
    rest: [i64; 13],
}

unsafe extern "C" {
    fn wait4(process: i32, status: *mut i32, options: i32, usage: *mut Usage) -> i32;
}

/// Runs a program to its end. Its news is short enough for a pipe and is read when it is over.
fn run(program: &str, words: &[&str], folder: &Path, session: &str) -> Ended {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    if !session.is_empty() {
        command.env("NF_SESSION", session);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = |from: Option<&mut dyn std::io::Read>| {
        let mut text = String::new();
        from.map(|from| from.read_to_string(&mut text));
        text.trim().to_owned()
    };
    let answer = text(child.stdout.as_mut().map(|pipe| pipe as _));
    let (mut status, mut usage) = (0, Usage { times: [0; 4], resident: 0, rest: [0; 13] });
    // SAFETY: both pointers are to values of the layout that the kernel fills, alive over the call.
    let waited = unsafe { wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let ms = begun.elapsed().as_secs_f64() * 1000.0;
    let said = text(child.stderr.as_mut().map(|pipe| pipe as _));
    assert!(waited > 0 && status == 0, "{program} {words:?}: {said}");
    Ended { answer, ms, mib: usage.resident as f64 / 1024.0 }
}

/// What one command showed in one round on one store.
struct Sample {
    ms: f64,
    partner: f64,
    mib: f64,
}

/// The programs.
struct Programs<'a> {
    nf: &'a str,
    floor: &'a str,
    bare: &'a str,
    answer: &'a str,
}

/// One store in one round.
struct Turn {
    folder: PathBuf,
    /// Answers by the names in [`ROWS`].
    kept: BTreeMap<&'static str, String>,
}

impl Turn {
    /// What a command needs and no command makes: a question that nobody has asked, and its answer.
    fn prepare(&self, programs: &Programs<'_>, row: &str, number: &str) {
        let write = |name: &str, text: String| std::fs::write(self.folder.join(name), text).expect(name);
        if row.starts_with("freeze") {
            let number = format!("{number}, {row}");
            let text = std::fs::read_to_string(self.folder.join("review.yaml")).expect("a job file");
            write(
                "bench.yaml",
                text.replace("Would a first-time", &format!("In number {number}, would a first-time")),
            );
            write("manuscript/ch01.md", format!("Chapter {number}\n\nNobody came.\n"));
        } else if row == "reply" {
            write("answer.txt", run(programs.answer, &["packet.txt", "reject"], &self.folder, "").answer);
        } else if row == "handoff complete" {
            write("answer.txt", run(programs.answer, &["claim.txt", "reject"], &self.folder, "").answer);
        }
    }

    /// One command between two runs of its partner: what drifts meanwhile falls on both.
    fn sample(&mut self, programs: &Programs<'_>, row: usize) -> Sample {
        let (_, partner, line, keeps) = ROWS[row];
        let beside = || match partner {
            Floor => run(programs.floor, &["floor.log"], &self.folder, "").ms,
            Bare => run(programs.bare, &[], &self.folder, "").ms,
        };
        let named = |word: &str| match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
            Some(name) => self.kept[name].clone(),
            None => word.to_owned(),
        };
        let words: Vec<String> = line.split(' ').map(named).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let session = self.kept.get("session").cloned().unwrap_or_default();
        let before = beside();
        let ended = run(programs.nf, &words, &self.folder, &session);
        let after = beside();
        if !keeps.is_empty() {
            self.kept.insert(keeps, ended.answer);
        }
        Sample { ms: ended.ms, partner: (before + after) / 2.0, mib: ended.mib }
    }
}

/// Every row on every store, the stores in turn within each row.
fn commands(programs: &Programs<'_>, rounds: usize, stores: &[PathBuf]) -> Vec<Vec<Vec<Sample>>> {
    let empty = stores[0].join("round");
    let mut samples: Vec<Vec<Vec<Sample>>> =
        ROWS.iter().map(|_| stores.iter().map(|_| Vec::new()).collect()).collect();
    for round in 0..WARM + rounds {
        let copy =
            "rm -rf round && mkdir round && cp -a .novelforge manuscript review.yaml round/ && sync -f round";
        run("sh", &["-c", copy], &stores[0], "");
        let folders = std::iter::once(&empty).chain(&stores[1..]);
        let mut turns: Vec<Turn> =
            folders.map(|folder| Turn { folder: folder.clone(), kept: BTreeMap::new() }).collect();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        for (row, by_store) in samples.iter_mut().enumerate() {
            for (turn, samples) in turns.iter_mut().zip(by_store) {
                turn.prepare(programs, ROWS[row].0, &format!("{now}"));
                let sample = turn.sample(programs, row);
                if round >= WARM {
                    samples.push(sample);
                }
            }
        }
    }
    samples
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the rows; how many fall short of an aim.
fn table(samples: &[Vec<Vec<Sample>>], sizes: &[String]) -> usize {
    let growth = sizes[1..].iter().map(|size| format!(" {size} | × empty |")).collect::<String>();
    println!("| command | partner | empty | × partner |{growth} × partner | MiB | short of |");
    println!("|---|---|---|---|{}---|---|---|", "---|---|".repeat(sizes.len() - 1));
    let mut short = 0;
    for ((name, partner, ..), stores) in ROWS.iter().zip(samples) {
        let partners = |store: &Vec<Sample>| median(store.iter().map(|sample| sample.ms / sample.partner));
        let ms = |store: &Vec<Sample>| median(store.iter().map(|sample| sample.ms));
        let grown =
            |store: &Vec<Sample>| median(store.iter().zip(&stores[0]).map(|(one, empty)| one.ms / empty.ms));
        let last = &stores[stores.len() - 1];
        let mib = last.iter().map(|sample| sample.mib).fold(0.0, f64::max);
        let missed: Vec<String> = match partner {
            Floor => {
                vec![over(partners(&stores[0]), FLOORS, "× floor"), over(grown(last), GROWTH, "× empty")]
            }
            Bare => vec![over(partners(last), BARES, "× bare")],
        };
        let missed: Vec<String> =
            missed.into_iter().chain([over(mib, MEMORY.0, "MiB")]).filter(|text| !text.is_empty()).collect();
        short += usize::from(!missed.is_empty());
        let partner = if *partner == Floor { "floor" } else { "bare" };
        let cells = stores[1..].iter().map(|store| format!(" {:.2} | {:.2} |", ms(store), grown(store)));
        println!(
            "| `{name}` | {partner} | {:.2} | {:.2} |{} {:.2} | {mib:.1} | {} |",
            ms(&stores[0]),
            partners(&stores[0]),
            cells.collect::<String>(),
            partners(last),
            missed.join(", "),
        );
    }
    short
}

/// The aim, where a figure is over it.
fn over(figure: f64, aim: f64, unit: &str) -> String {
    if figure > aim { format!("**{aim} {unit}**") } else { String::new() }
}

/// Bytes of a store's log.
fn log_bytes(project: &Path) -> u64 {
    let files = std::fs::read_dir(project.join(".novelforge/log")).expect("a log");
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |stat| stat.len())).sum()
}

/// What reads a whole log: `verify`, with and without an index to compare, and the making of an index.
fn whole(nf: &str, project: &Path, events: f64) -> usize {
    let bytes = log_bytes(project) as f64;
    let index = project.join(".novelforge/index");
    let (mut with, mut without, mut made, mut usual) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        with.push(run(nf, &["verify"], project, ""));
        std::fs::remove_dir_all(&index).expect("an index to make anew");
        without.push(run(nf, &["verify"], project, ""));
        made.push(run(nf, &["status"], project, ""));
        usual.push(run(nf, &["status"], project, ""));
    }
    let seconds = |ended: &[Ended]| median(ended.iter().map(|ended| ended.ms / 1000.0));
    let memory = |ended: &[Ended]| ended.iter().map(|ended| ended.mib).fold(0.0, f64::max);
    println!("| whole log, {events} events, {:.1} MB | seconds | rate | MiB | short of |", bytes / 1e6);
    println!("|---|---|---|---|---|");
    let mut short = 0;
    let mut row = |name: &str, taken: f64, rate: String, missed: String, mib: f64| {
        let missed = [missed, over(mib, MEMORY.1, "MiB")];
        let missed = missed.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(", ");
        short += usize::from(!missed.is_empty());
        println!("| {name} | {taken:.2} | {rate} | {mib:.1} | {missed} |");
    };
    for (name, ended) in [("`verify`, index beside it", &with), ("`verify`, no index", &without)] {
        let rate = bytes / 1e6 / seconds(ended);
        let missed = if rate < VERIFIED { format!("**{VERIFIED} MB/s**") } else { String::new() };
        row(name, seconds(ended), format!("{rate:.0} MB/s"), missed, memory(ended));
    }
    let taken = seconds(&made) - seconds(&usual);
    let million = taken * 1e6 / events;
    let missed = over(million, REBUILT, "s a million");
    row("making the index", taken, format!("{million:.1} s a million events"), missed, memory(&made));
    short
}

/// What lies below every command: a process, and an append behind up to three files that are made durable
/// before it, as blobs and packets are. In a folder of their own that is removed afterwards.
fn floors(floor: &str, bare: &str, folder: &Path, rounds: usize) {
    let round = folder.join("floors");
    std::fs::create_dir_all(&round).expect("a folder");
    let rows: [(&str, &str, &[&str]); 5] = [
        ("a process", bare, &[]),
        ("an append", floor, &["floor.log"]),
        ("one file kept before it", floor, &["floor.log", "1"]),
        ("two files", floor, &["floor.log", "2"]),
        ("three files", floor, &["floor.log", "3"]),
    ];
    let mut taken: Vec<Vec<f64>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..WARM + rounds {
        for ((_, program, words), taken) in rows.iter().zip(&mut taken) {
            taken.push(run(program, words, &round, "").ms);
        }
    }
    std::fs::remove_dir_all(&round).expect("a folder");
    println!("| what | ms | × an append |\n|---|---|---|");
    for ((name, ..), row) in rows.iter().zip(&taken) {
        let ratio = median(row.iter().zip(&taken[1]).skip(WARM).map(|(one, append)| one / append));
        println!("| {name} | {:.2} | {ratio:.2} |", median(row.iter().skip(WARM).copied()));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let short = match words[..] {
        ["commands", nf, floor, bare, answer, rounds, folder, _, ..] => {
            let stores: Vec<PathBuf> = words[7..].iter().map(|size| Path::new(folder).join(size)).collect();
            let programs = Programs { nf, floor, bare, answer };
            let samples = commands(&programs, rounds.parse().expect("a number"), &stores);
            table(&samples, &arguments[7..])
        }
        ["floors", floor, bare, folder, rounds] => {
            floors(floor, bare, Path::new(folder), rounds.parse().expect("a number"));
            0
        }
        ["whole", nf, project, events] => whole(nf, Path::new(project), events.parse().expect("a number")),
        _ => panic!(
            "measure commands NF FLOOR BARE ANSWER ROUNDS FOLDER EVENTS… | measure whole NF PROJECT EVENTS | \
             measure floors FLOOR BARE FOLDER ROUNDS"
        ),
    };
    ExitCode::from(u8::from(short > 0))
}
