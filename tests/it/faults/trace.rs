//! Failures put under a command by strace: it counts the calls of one kind and makes the Nth fail.

use std::process::Command;

use crate::harness::{NF, Project, Ran};

/// strace, where it is.
pub struct Strace;

/// Finds strace; says loudly that a test is skipped without it.
pub fn strace() -> Option<Strace> {
    let there = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return Some(Strace);
    }
    crate::harness::skipped("NF_NEED_STRACE", "strace does not run here");
    None
}

/// Which of some calls are tried: all if they are few, else this many, spread from the first to the last.
pub fn spread(calls: u64, most: u64) -> Vec<u64> {
    if calls <= most || most < 2 {
        return (1..=calls).take(most.max(1) as usize).collect();
    }
    (0..most).map(|number| 1 + number * (calls - 1) / (most - 1)).collect()
}

impl Strace {
    /// The calls of a kind that a command makes (on this project, which it changes), with the paths of
    /// their files, in order.
    pub fn lines(&self, project: &Project, arguments: &[&str], call: &str) -> Vec<String> {
        let out = tempfile::NamedTempFile::new().expect("a file");
        let path = out.path().to_str().expect("a path").to_owned();
        self.run(project, arguments, &["-y", "-e", &format!("trace={call}")], &path);
        let text = std::fs::read_to_string(&path).expect("a trace");
        let sign = format!(" {call}(");
        text.lines().filter(|line| line.contains(&sign)).map(str::to_owned).collect()
    }

    /// How many there are.
    pub fn calls(&self, project: &Project, arguments: &[&str], call: &str) -> u64 {
        self.lines(project, arguments, call).len() as u64
    }

    /// Runs a command whose Nth call of a kind meets `fault`: `error=EIO`, `retval=5`, `signal=KILL`.
    pub fn inject(
        &self,
        project: &Project,
        arguments: &[&str],
        call: &str,
        fault: &str,
        when: impl std::fmt::Display,
    ) -> Ran {
        self.with(project, arguments, &[&format!("inject={call}:{fault}:when={when}")])
    }

    /// Runs a command with several injections, as strace spells them.
    pub fn with(&self, project: &Project, arguments: &[&str], injections: &[&str]) -> Ran {
        let options: Vec<&str> = injections.iter().flat_map(|injection| ["-e", injection]).collect();
        self.run(project, arguments, &options, "/dev/null")
    }

    fn run(&self, project: &Project, arguments: &[&str], options: &[&str], out: &str) -> Ran {
        let plain = project.command(arguments);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", out]).args(options).arg(NF).args(arguments);
        command.current_dir(project.path()).env_clear().stdin(std::process::Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().expect("strace runs");
        output.into()
    }
}
