//! `log --follow`: goes on with each record as it becomes durable, beside writers, and ends without a word.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::expect::records;
use crate::harness::Project;

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(20);

struct Reader {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Reader {
    fn new(project: &Project, words: &[&str]) -> Self {
        let mut command = with_signals(&project.command(&[&["log", "--follow"], words].concat()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nf runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }

    fn record(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("a record")
    }

    /// The signal or exit code by which it ended, once it ended by itself, and what it said.
    fn ended(mut self) -> (Option<i32>, Option<i32>, String) {
        drop(self.lines);
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                self.child.kill().expect("a child");
                panic!("it goes on although nobody reads");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().expect("a pipe"), &mut said)
            .expect("text");
        (status.code(), status.signal(), said)
    }
}

/// The same command with no signal ignored: where the tests run in the background of a shell without job
/// control, all that they start would ignore SIGINT, as that shell means it to.
fn with_signals(command: &Command) -> Command {
    let mut wrapped = Command::new("/usr/bin/env");
    wrapped.arg("--default-signal=INT,TERM").arg(command.get_program()).args(command.get_args());
    wrapped.current_dir(command.get_current_dir().expect("a folder")).stdin(Stdio::null()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped
}

fn step(project: &Project, number: usize) {
    project.nf(&["run", "step", "--cursor", &format!("step-{number}")]).expect(0);
}

#[test]
fn each_record_comes_once_as_it_is_written() {
    let project = Project::new();
    project.start();
    (0..5).for_each(|number| step(&project, number));
    let mut reader = Reader::new(&project, &["--json", "--limit", "3"]);
    let mut got: Vec<Value> = (0..3).map(|_| reader.record()).collect();
    for number in 5..12 {
        step(&project, number);
        got.push(reader.record());
    }
    // Several writers at once: all their records, in the order of the log.
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let project = &project;
            scope.spawn(move || (0..4).for_each(|number| step(project, 100 * writer + number)));
        }
        got.extend((0..12).map(|_| reader.record()));
    });
    let all = records(&project);
    assert_eq!(got, all[all.len() - got.len()..]);
    assert_eq!(reader.ended(), (Some(0), None, String::new()));
    project.nf(&["verify"]).expect(0);
}

#[test]
fn only_what_names_the_id_comes_and_people_get_lines() {
    let project = Project::new();
    let (first, second) = (project.start(), project.start());
    let mut reader = Reader::new(&project, &[&second, "--limit", "1"]);
    assert!(reader.line().contains(" start "), "what is there comes first");
    for session in [&first, &second, &first] {
        project.nf(&["session", "move", session, "idle"]).expect(0);
        project.nf(&["resume", session]).expect(0);
    }
    let line = reader.line();
    assert!(line.contains("session move") && line.contains("session.moved"), "{line}");
    assert!(reader.line().contains("resume"));
    project.nf(&["session", "move", &second, "terminated"]).expect(0);
    assert!(reader.line().contains("session move"), "nothing of the other session came between");
    assert_eq!(reader.ended(), (Some(0), None, String::new()));
}

#[test]
fn a_reader_that_goes_is_noticed_though_nothing_is_written() {
    let project = Project::new();
    let mut reader = Reader::new(&project, &["--json"]);
    reader.record();
    assert_eq!(reader.ended(), (Some(0), None, String::new()));
}

#[test]
fn a_signal_ends_it_without_a_word_and_leaves_nothing_behind() {
    let project = Project::new();
    project.start();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut reader = Reader::new(&project, &["--json", "--limit", "1"]);
        reader.record();
        let id = i32::try_from(reader.child.id()).expect("a number");
        let id = rustix::process::Pid::from_raw(id).expect("a process");
        // The pipe stays open, so that it is the signal that ends it.
        let pipe = std::os::fd::AsFd::as_fd(reader.lines.get_ref()).try_clone_to_owned().expect("a pipe");
        rustix::process::kill_process(id, signal).expect("a signal");
        let (code, by, said) = reader.ended();
        drop(pipe);
        assert_eq!((code, by, said.as_str()), (None, Some(signal.as_raw()), ""));
        step(&project, 1);
    }
    project.nf(&["verify"]).expect(0);
}

#[test]
fn a_damaged_log_is_no_log_to_follow() {
    let project = Project::new();
    project.start();
    let mut log = std::fs::read(project.at(".novelforge/log/00000001.jsonl")).expect("a log");
    let at = log.len() - 30;
    log[at] ^= 1;
    std::fs::write(project.at(".novelforge/log/00000001.jsonl"), log).expect("a log");
    project.nf(&["log", "--follow"]).expect(11);
    project.nf(&["log", "--follow", "--allow-damaged"]).expect(11);
}
