//! A project folder with a store and the program to run in it. The environment is cleared for each
//! command, so that nothing but the folder carries over.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary under test.
pub const NF: &str = env!("CARGO_BIN_EXE_nf");

/// A job about `ch01.md`, as the cases use it.
pub const JOB: &str = include_str!("../fixtures/cases/job.yaml");
/// The chapter that it is about (public domain).
pub const CHAPTER: &str = include_str!("../fixtures/cases/ch01.md");

/// Says that a test is skipped, and why. Where this variable is set, the machine is said to have what is
/// missing, and the test fails instead: `.ci/run` sets it for everything that it finds or installs.
#[track_caller]
pub fn skipped(need: &str, why: &str) {
    assert!(std::env::var_os(need).is_none(), "{need} is set, and {why}");
    eprintln!("SKIPPED: {why}");
}

/// A folder of its own with a project in it.
pub struct Project {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a command answered.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its answer.
    pub stdout: String,
    /// Its news.
    pub stderr: String,
}

impl Ran {
    /// The answer's one line.
    pub fn line(&self) -> String {
        self.stdout.trim_end().to_owned()
    }

    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|bad| panic!("{bad}: {}\n{}", self.stdout, self.stderr))
    }
}

/// The report of a document: its data, or the details of its error where the command is not content.
pub fn report(document: &Value) -> &Value {
    if document["ok"] == true { &document["data"] } else { &document["error"]["details"] }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Project {
    /// A folder without a store.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), variables: Vec::new() }
    }

    /// A folder with a store, the chapter and the job.
    pub fn new() -> Self {
        Self::empty().furnished()
    }

    /// A folder without a store, in memory where the machine has such a place: for tests that make stores
    /// by the hundred and ask nothing of the disk.
    pub fn in_memory() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(folder) => Self { folder, variables: Vec::new() },
            Err(_) => Self::empty(),
        }
    }

    /// This folder with a store, the chapter and the job.
    pub fn furnished(self) -> Self {
        self.nf(&["init"]).expect(0);
        self.write("ch01.md", CHAPTER);
        self.write("job.yaml", JOB);
        self
    }

    /// The same with a store whose clock and ids are given from outside.
    pub fn testing(now: &str) -> Self {
        let mut project = Self::empty();
        project.set("NF_NOW", now);
        project.nf(&["init", "--testing"]).expect(0);
        project.write("ch01.md", CHAPTER);
        project.write("job.yaml", JOB);
        project
    }

    /// Sets a variable for all later commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(held, _)| held != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the folder.
    pub fn at(&self, relative: &str) -> PathBuf {
        self.path().join(relative)
    }

    /// Writes a file.
    pub fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.at(relative);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    /// Reads a file.
    pub fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.at(relative)).expect("a file")
    }

    /// The bytes of the whole log.
    pub fn log(&self) -> Vec<u8> {
        let mut names: Vec<PathBuf> = std::fs::read_dir(self.at(".novelforge/log"))
            .expect("a log")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        names.sort();
        names.iter().flat_map(|path| std::fs::read(path).expect("a segment")).collect()
    }

    /// A command that is not yet run, with a cleared environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(NF);
        command.args(arguments).current_dir(self.path()).env_clear().stdin(Stdio::null());
        // Whose machine this is may have settings; no test may meet them.
        command.env("NF_CONFIG", "no-settings");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command.
    pub fn nf(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("nf runs").into()
    }

    /// Runs a command with bytes on its standard input.
    pub fn nf_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        use std::io::Write;
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nf runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that refuses its arguments does not read.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("nf ends").into()
    }

    /// Starts a session and gives its id.
    pub fn start(&self) -> String {
        self.nf(&["start", "--resource", "novel/pride", "--task", "review"]).expect(0).line()
    }

    /// Start, freeze, packet: a question is out. Gives the packet.
    pub fn ask(&self) -> Packet {
        self.start();
        self.nf(&["freeze", "job.yaml"]).expect(0);
        Packet::read(&self.nf(&["packet"]).expect(0).stdout)
    }
}

/// The identity that a packet carries.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The whole text.
    pub text: String,
    /// The job.
    pub job: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The attempt's nonce.
    pub nonce: String,
    /// The handoff.
    pub handoff: String,
}

impl Packet {
    /// Reads the identity out of a packet of any form.
    #[track_caller]
    pub fn read(text: &str) -> Self {
        let after = |key: &str| {
            let at = text.find(key).unwrap_or_else(|| panic!("{key} in {text}")) + key.len();
            text[at..]
                .trim_start_matches([':', ' ', '"'])
                .split(['"', '\n', ' ', ','])
                .next()
                .expect("a word")
                .to_owned()
        };
        let handoff = text.find("h-").map(|at| text[at..at + 14].to_owned()).expect("a handoff");
        Self {
            job: after("job"),
            fingerprint: after("fingerprint"),
            nonce: after(if text.contains("\"nonce\"") { "\"nonce\"" } else { "nonce" }),
            handoff,
            text: text.to_owned(),
        }
    }

    /// An answer with this output.
    pub fn answer(&self, output: &Value) -> String {
        serde_json::json!({
            "nf": {"job": self.job, "fingerprint": self.fingerprint, "nonce": self.nonce},
            "worker": {"provider": "peer-chat", "model": "some-model-1"},
            "status": "completed",
            "output": output,
        })
        .to_string()
    }

    /// A valid answer with this verdict.
    pub fn verdict(&self, verdict: &str) -> String {
        self.answer(&serde_json::json!({
            "verdict": verdict, "evidence": ["The first page names nine people."], "confidence": 0.7,
        }))
    }

    /// A case file with its blanks filled in.
    pub fn fill(&self, case: &[u8]) -> Vec<u8> {
        let mut bytes = case.to_vec();
        for (blank, value) in
            [("@JOB@", &self.job), ("@FINGERPRINT@", &self.fingerprint), ("@NONCE@", &self.nonce)]
        {
            for wide in [false, true] {
                let spell = |text: &str| -> Vec<u8> {
                    if wide { text.encode_utf16().flat_map(u16::to_le_bytes).collect() } else { text.into() }
                };
                bytes = replaced(&bytes, &spell(blank), &spell(value));
            }
        }
        bytes
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
