//! What a process that runs others for long owes its machine: it notices that it is to end, and it leaves
//! nobody behind. Owns the handlers of three signals and the finding of orphans; decides nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How often orphans are looked for, and how long between two looks.
const LOOKS: (u32, Duration) = (400, Duration::from_millis(5));

/// A flag that SIGTERM, SIGINT and SIGHUP set in place of ending the process. SIGINT also where whoever
/// started it had it ignored; SIGHUP not there, since that is how a program is told to outlive its terminal.
///
/// # Errors
/// The system's own.
pub fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        if signal != SIGHUP || !is_ignored(signal) {
            signal_hook::flag::register(signal, flag.clone())?;
        }
    }
    Ok(flag)
}

/// Whether a signal is ignored now.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

/// A process: its number, and when it began, since numbers are given again.
type Known = (Pid, u64);

/// What children leave behind, which becomes this process's own child.
pub struct Orphans {
    /// Those that were there before any was started from here: whoever became this program by `exec`, as the
    /// first process of a container does, may have children that are no business of it.
    before: Vec<Known>,
}

impl Orphans {
    /// From now on what a child leaves behind becomes this process's own child, so that it can be found. To
    /// be called before the first child is started.
    pub fn adopt() -> Self {
        let before = children();
        // Where the system refuses, process groups are all that is ended.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Self { before }
    }

    /// Ends every child that was started since, and theirs. To be called only while none is wanted: what is
    /// ended is told by its parent alone.
    pub fn end(&self) {
        for _ in 0..LOOKS.0 {
            let orphans: Vec<Known> =
                children().into_iter().filter(|child| !self.before.contains(child)).collect();
            for (orphan, _) in &orphans {
                let _ = rustix::process::kill_process(*orphan, Signal::KILL);
            }
            while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
            if orphans.is_empty() {
                return;
            }
            std::thread::sleep(LOOKS.1);
        }
    }
}

/// The children of this process, as the system lists them.
fn children() -> Vec<Known> {
    let own = rustix::process::getpid().as_raw_nonzero().get().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let known = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of a process may hold spaces and brackets; what comes after the last one is numbers.
        let facts: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let is_own = facts.get(1).is_some_and(|parent| *parent == own);
        Some((Pid::from_raw(pid)?, facts.get(19)?.parse().ok()?)).filter(|_| is_own)
    };
    pids.filter_map(known).collect()
}
