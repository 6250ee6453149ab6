//! Times each command of `nf` against the floor and the bare program, in pairs that follow each other, and
//! prints one row a command: the median time, and the median of the ratios of the pairs.
//!
//! `measure NF FLOOR BARE ANSWER STORE-FOLDER ROUNDS NAME`: STORE-FOLDER is a project whose `.novelforge`
//! is copied anew for each round; ANSWER is the script that fills in a packet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The programs and the folder of one round.
struct Bench {
    nf: String,
    floor: String,
    bare: String,
    folder: PathBuf,
    session: String,
    /// Milliseconds of a command and of its partner, by the command's name.
    pairs: BTreeMap<(usize, String), Vec<(f64, f64)>>,
}

/// Runs a program and gives its answer and the milliseconds it took.
fn timed(program: &str, arguments: &[&str], folder: &Path, session: &str) -> (String, f64) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    if !session.is_empty() {
        command.env("NF_SESSION", session);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.spawn().and_then(|child| child.wait_with_output());
    let taken = begun.elapsed().as_secs_f64() * 1000.0;
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    (String::from_utf8_lossy(&output.stdout).trim().to_owned(), taken)
}

impl Bench {
    /// A writing command beside the floor, or a reading one beside the bare program.
    fn pair(&mut self, rank: usize, name: &str, arguments: &[&str], writes: bool) -> String {
        let log = self.folder.join("floor.log");
        let partner = |bench: &Self| match writes {
            true => timed(&bench.floor, &[&log.to_string_lossy()], &bench.folder, "").1,
            false => timed(&bench.bare, &[], &bench.folder, "").1,
        };
        // Before and after: what drifts meanwhile falls on both.
        let before = partner(self);
        let (answer, taken) = timed(&self.nf, arguments, &self.folder, &self.session);
        let after = partner(self);
        let pairs = self.pairs.entry((rank, name.to_owned())).or_default();
        pairs.push((taken, (before + after) / 2.0));
        answer
    }

    /// The daily path once, then everything that reads.
    fn round(&mut self, answer: &str) {
        self.session.clear();
        self.session =
            self.pair(0, "start", &["start", "--resource", "bench/b", "--task", "review", "-q"], true);
        let job = self.pair(1, "freeze", &["freeze", "review.yaml", "-q"], true);
        self.pair(2, "packet", &["packet", &job, "--gate", "gate/b", "--out", "packet.txt", "-q"], true);
        let (text, _) = timed(answer, &["packet.txt", "reject"], &self.folder, "");
        std::fs::write(self.folder.join("answer.txt"), text).expect("an answer");
        let result = self.pair(3, "reply", &["reply", "answer.txt", "-q"], true);
        self.pair(4, "consume", &["consume", &result, "--as", "gate/b", "-q"], true);
        let session = self.session.clone();
        self.pair(5, "resume", &["resume", &session, "-q"], true);
        self.pair(6, "run step", &["run", "step", "--cursor", "next", "-q"], true);
        self.pair(7, "checkpoint save", &["checkpoint", "save", "--boundary", "other", "-q"], true);
        self.pair(8, "run finish", &["run", "finish", "--status", "completed", "-q"], true);
        self.pair(9, "session move", &["session", "move", &session, "stale", "-q"], true);
        self.pair(10, "status", &["status"], false);
        self.pair(11, "show RESULT", &["show", &result], false);
        self.pair(12, "list --limit 20", &["list", "checkpoint", "--limit", "20"], false);
        self.pair(13, "log --limit 20", &["log", "--limit", "20"], false);
        self.pair(14, "validate", &["validate", &result], false);
        self.pair(15, "verify", &["verify"], false);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, nf, floor, bare, answer, store, rounds, name] = &arguments[..] else {
        panic!("measure NF FLOOR BARE ANSWER STORE-FOLDER ROUNDS NAME");
    };
    let (nf, floor, bare) = (nf.clone(), floor.clone(), bare.clone());
    let folder = PathBuf::from(store).join("round");
    let mut bench = Bench { nf, floor, bare, folder, session: String::new(), pairs: BTreeMap::new() };
    for round in 0..=rounds.parse::<usize>().expect("a number") {
        let copy =
            "rm -rf round && mkdir round && cp -a .novelforge manuscript review.yaml round/ && sync -f round";
        timed("sh", &["-c", copy], Path::new(store), "");
        bench.round(answer);
        if round == 0 {
            // The first round warms caches.
            bench.pairs.clear();
        }
    }
    println!("\n{name} ({rounds} rounds)\n");
    println!("| command | median ms | partner ms | ratio |\n|---|---|---|---|");
    for ((rank, command), pairs) in bench.pairs {
        let partner = if rank < 10 { "floor" } else { "bare" };
        let taken = median(pairs.iter().map(|pair| pair.0).collect());
        let base = median(pairs.iter().map(|pair| pair.1).collect());
        let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
        println!("| `{command}` | {taken:.2} | {base:.2} | {ratio:.2} × {partner} |");
    }
}
