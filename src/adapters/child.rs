//! One child that reads a packet and prints an answer. Owns it and its process group from the start until
//! both are gone, whatever it does: it never reads, prints for ever, closes everything, or leaves others
//! behind that hold its pipes. What it prints on standard error is counted and dropped.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::ask::{Failure, Limits};
use super::room::{House, Room};
use crate::model::hash::{Hash, canonical};
use crate::model::witness::Invocation;

/// How long a child may take to end after it was asked to.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long nothing is looked at while nothing comes.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes that are taken or given at once.
const PIECE: usize = 64 * 1024;

/// What is run.
pub struct Run<'a> {
    /// The program's file and its arguments; at least one.
    pub command: &'a [OsString],
    /// Where it is run, with which variables.
    pub room: &'a Room,
    /// What it reads; then end of file.
    pub input: &'a [u8],
    /// How long and how much.
    pub limits: Limits,
    /// Set when it is wanted no longer.
    pub stop: &'a AtomicBool,
    /// What all children have in common.
    pub house: &'a House<'a>,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with an exit code.
    Exit(i32),
    /// By a signal that was not sent from here.
    Signal(i32),
    /// It never began; why, in words.
    NotStarted(String),
    /// It was ended at the limit of its time.
    Wall,
    /// It was ended after it had printed nothing for too long.
    Idle,
    /// It was ended at the limit of its output.
    TooMuch,
    /// It was ended because its answer was wanted no longer.
    Stopped,
}

/// A child that is gone.
pub struct Ended {
    /// What it printed on standard output.
    pub output: Vec<u8>,
    /// How it ended.
    pub end: End,
    /// What is recorded of it; none where it never began.
    pub invocation: Option<Invocation>,
}

impl End {
    /// Why this end is a failure; none where it ended by itself with exit code 0.
    pub fn failure(&self, limits: &Limits) -> Option<Failure> {
        Some(match self {
            End::Exit(0) => return None,
            End::Exit(code) => {
                let hint =
                    if *code == 127 { " (127: it or something that it needs is not there)" } else { "" };
                Failure::failed("crash", true, format!("it ended with exit code {code}{hint}"))
            }
            End::Signal(signal) => Failure::failed("crash", true, format!("it was ended by signal {signal}")),
            End::NotStarted(why) => Failure::gone("not_started", why),
            End::Wall => Failure::failed("timeout", true, format!("it was ended after {:?}", limits.wall)),
            End::Idle => {
                Failure::failed("idle", true, format!("it was ended after {:?} without output", limits.idle))
            }
            End::TooMuch => Failure::failed(
                "too_much_output",
                true,
                format!("it printed more than {} bytes", limits.bytes),
            ),
            End::Stopped => Failure::failed("stopped", true, "it was ended: its answer was wanted no longer"),
        })
    }
}

/// Runs a child to its end. Nothing of its process group is left then.
pub fn run(run: &Run<'_>) -> Ended {
    let started_at = (run.house.now)();
    let mut child = match spawn(run) {
        Ok(child) => child,
        Err(why) => return Ended { output: Vec::new(), end: End::NotStarted(why), invocation: None },
    };
    let mut pipes = Pipes::of(&mut child, run.input);
    let forced = pipes.attend(run, &child);
    if forced.is_some() {
        signal(&child, Signal::TERM);
        pipes.until_gone(&child, Instant::now() + GRACE);
    }
    // A group that is gone already is what is wanted; while its leader is not collected its number is its
    // own.
    signal(&child, Signal::KILL);
    let status = child.wait();
    let end = match (forced, status) {
        (Some(end), _) => end,
        (None, Ok(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => End::Exit(code),
            (None, signal) => End::Signal(signal.unwrap_or_default()),
        },
        (None, Err(error)) => End::NotStarted(format!("it could not be waited for: {error}")),
    };
    let exit = if let End::Exit(code) = end { Some(code) } else { None };
    let words: Vec<String> = run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let invocation = Invocation {
        argv_hash: Hash::of(&canonical(&words)),
        env_names: run.room.names(),
        pid: child.id(),
        started_at,
        ended_at: (run.house.now)(),
        exit,
    };
    Ended { output: pipes.output, end, invocation: Some(invocation) }
}

fn spawn(run: &Run<'_>) -> Result<Child, String> {
    let [program, arguments @ ..] = run.command else { return Err("no program is given".to_owned()) };
    let mut command = match &run.house.keeper {
        Some(keeper) => {
            let mut command = Command::new(keeper);
            command.arg("keep").arg(std::process::id().to_string()).arg("--").arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(arguments).current_dir(&run.room.folder).env_clear().envs(&run.room.variables);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command.stderr(if run.house.show_errors { Stdio::inherit() } else { Stdio::piped() });
    command.spawn().map_err(|error| format!("{} could not be run: {error}", program.to_string_lossy()))
}

/// Becomes another program that is killed when the process that started this one goes. Gives the exit code to
/// end with where that is not possible.
pub fn keep(parent: u32, command: &[OsString]) -> u8 {
    /// As shells say that a program could not be run.
    const NOT_RUN: u8 = 127;
    let [program, arguments @ ..] = command else { return NOT_RUN };
    let armed = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // One that went before this was armed sends no signal any more.
    let there = rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    if !armed || there != Some(parent) {
        return NOT_RUN;
    }
    let _ = Command::new(program).args(arguments).exec();
    NOT_RUN
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = pid_of(child) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Whether a child has ended. It is left to be collected, so that its number is nobody else's.
fn has_ended(child: &Child) -> bool {
    let Some(pid) = pid_of(child) else { return true };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match rustix::process::waitid(WaitId::Pid(pid), look) {
        Ok(None) | Err(rustix::io::Errno::INTR) => false,
        Ok(Some(_)) | Err(_) => true,
    }
}

/// The three pipes of a child. Nothing here ever waits on one of them alone.
struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<std::process::ChildStdout>,
    stderr: Option<std::process::ChildStderr>,
    output: Vec<u8>,
    /// Bytes that came on both.
    came: u64,
}

impl<'a> Pipes<'a> {
    fn of(child: &mut Child, input: &'a [u8]) -> Self {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // Each end of a pipe has its own mode: the child's ends wait as usual.
        let _ = stdin.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        let _ = stdout.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        let _ = stderr.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        Self { stdin, input, stdout, stderr, output: Vec::new(), came: 0 }
    }

    /// Gives and takes until the child has ended and all that it printed is here; or says why it is to be
    /// ended.
    fn attend(&mut self, run: &Run<'_>, child: &Child) -> Option<End> {
        let begun = Instant::now();
        let (mut last, mut ended) = (begun, None);
        loop {
            // Looked at before reading: what a child that is gone has printed is in the pipe by then.
            let gone = has_ended(child);
            if gone {
                signal(child, Signal::KILL);
            }
            let came = self.take(true);
            let gave = !gone && self.give();
            let now = Instant::now();
            if came {
                last = now;
            }
            if self.came > run.limits.bytes {
                return Some(End::TooMuch);
            }
            if gone {
                // It has ended by itself, in time or while nobody could look since this program was stopped
                // itself. What others go on printing into its pipes is not waited for.
                let ended = *ended.get_or_insert(now);
                if !came || now.duration_since(ended) >= GRACE {
                    return None;
                }
                continue;
            }
            let end = [
                (run.stop.load(Ordering::Relaxed), End::Stopped),
                (now.duration_since(begun) >= run.limits.wall, End::Wall),
                (now.duration_since(last) >= run.limits.idle, End::Idle),
            ];
            if let Some((_, end)) = end.into_iter().find(|(over, _)| *over) {
                return Some(end);
            }
            if !came && !gave {
                self.wait();
            }
        }
    }

    /// Takes and drops what comes until the child has ended, or until a moment.
    fn until_gone(&mut self, child: &Child, until: Instant) {
        self.stdin = None;
        while !has_ended(child) && Instant::now() < until {
            if !self.take(false) {
                self.wait();
            }
        }
    }

    /// Takes what is there; true where something was.
    fn take(&mut self, keep: bool) -> bool {
        let mut piece = [0; PIECE];
        let out = taken(&mut self.stdout, &mut piece);
        if keep {
            self.output.extend_from_slice(&piece[..out]);
        }
        let dropped = taken(&mut self.stderr, &mut piece);
        self.came += (out + dropped) as u64;
        out + dropped > 0
    }

    /// Gives what the child takes; true where it took something. After the last byte the pipe is closed.
    fn give(&mut self) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let gave = match self.input.is_empty() {
            true => Ok(0),
            false => stdin.write(&self.input[..self.input.len().min(PIECE)]),
        };
        match gave {
            Ok(count) if count < self.input.len() => {
                self.input = &self.input[count..];
                count > 0
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => false,
            // All is given, or nobody reads any more.
            _ => {
                self.stdin = None;
                true
            }
        }
    }

    /// Waits until a pipe has something or takes something, or a short time.
    fn wait(&self) {
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) };
        let mut ends = Vec::new();
        ends.extend(self.stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        ends.extend(self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        ends.extend(self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let _ = poll(&mut ends, Some(&pause));
    }
}

/// Bytes that a pipe has now; one at its end is closed.
fn taken(pipe: &mut Option<impl Read>, piece: &mut [u8]) -> usize {
    let Some(open) = pipe else { return 0 };
    match open.read(piece) {
        Ok(count) if count > 0 => count,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
        _ => {
            *pipe = None;
            0
        }
    }
}

#[cfg(test)]
mod tests;
