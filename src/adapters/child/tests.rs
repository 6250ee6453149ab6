//! A child that does what no child should: no deadlock, no orphan, and the right word for its end.

use super::*;
use crate::adapters::room::tests::house;

const LONG: Duration = Duration::from_secs(60);

fn limits() -> Limits {
    Limits { wall: LONG, idle: LONG, bytes: 16 * 1024 * 1024 }
}

fn sh(script: &str, input: &[u8], limits: Limits) -> Ended {
    let (house, stop) = (house(), AtomicBool::new(false));
    let room = house.room().unwrap();
    let command: Vec<OsString> = ["/bin/sh", "-c", script].map(OsString::from).into();
    run(&Run { command: &command, room: &room, input, limits, stop: &stop, house: &house })
}

fn gone(pid: i32) -> bool {
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    (0..1000).any(|_| {
        let is = stat().is_empty() || stat().contains(") Z ");
        if !is {
            std::thread::sleep(PAUSE);
        }
        is
    })
}

#[test]
fn whatever_it_reads_and_prints_there_is_no_deadlock() {
    let large = vec![b'x'; 3_000_000];
    for (script, input, output) in [
        ("cat", &large[..], large.len()),
        ("cat", b"".as_slice(), 0),
        ("wc -c | tr -d '\\n'", &large, 7),
        ("exec <&-; echo done", &large, 5),
        ("echo done", &large, 5),
        ("head -c 1000000 /dev/zero; cat >/dev/null", &large, 1_000_000),
        ("head -c 1000000 /dev/zero >&2; cat", &large, large.len()),
        ("exec >&- 2>&-; cat >/dev/null", b"short", 0),
        (":", b"short", 0),
    ] {
        let ended = sh(script, input, limits());
        assert_eq!((ended.end, ended.output.len()), (End::Exit(0), output), "{script}");
    }
}

#[test]
fn each_end_has_its_word_and_the_output_until_then_is_there() {
    let short = Duration::from_millis(400);
    let table = [
        ("echo a; exit 3", limits(), End::Exit(3), "crash"),
        ("echo a; kill -9 $$", limits(), End::Signal(9), "crash"),
        ("echo a; exec sleep 300", Limits { wall: short, ..limits() }, End::Wall, "timeout"),
        ("echo a; exec sleep 300", Limits { idle: short, ..limits() }, End::Idle, "idle"),
        (
            "echo a; exec cat /dev/zero",
            Limits { bytes: 9_000_000, ..limits() },
            End::TooMuch,
            "too_much_output",
        ),
        (
            "trap '' TERM; echo a; while :; do sleep 1; done",
            Limits { wall: short, ..limits() },
            End::Wall,
            "timeout",
        ),
    ];
    for (script, limits, end, reason) in table {
        let ended = sh(script, b"", limits);
        assert!(ended.output.starts_with(b"a\n"), "{script}");
        assert_eq!(ended.end.failure(&limits).map(|failure| failure.reason), Some(reason), "{script}");
        assert_eq!(ended.end, end, "{script}");
        let invocation = ended.invocation.unwrap();
        assert_eq!(invocation.exit, if let End::Exit(code) = end { Some(code) } else { None });
        assert!(gone(i32::try_from(invocation.pid).unwrap()), "{script}");
    }
}

#[test]
fn a_child_of_the_child_that_holds_the_pipes_is_ended_and_holds_nobody_up() {
    for script in ["sleep 300 & echo $!", "(trap '' TERM HUP; sleep 300) & echo $!"] {
        let ended = sh(script, b"", limits());
        assert_eq!(ended.end, End::Exit(0));
        let pid = String::from_utf8(ended.output).unwrap().trim().parse().unwrap();
        assert!(gone(pid), "{script}");
    }
}

#[test]
fn one_that_is_wanted_no_longer_is_ended_and_one_that_is_not_there_never_began() {
    let (house, stop) = (house(), AtomicBool::new(false));
    let room = house.room().unwrap();
    let run_it = |command: &[OsString]| {
        run(&Run { command, room: &room, input: b"", limits: limits(), stop: &stop, house: &house })
    };
    let command: Vec<OsString> = ["/bin/sleep", "300"].map(OsString::from).into();
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| run_it(&command));
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(ended.join().unwrap().end, End::Stopped);
    });
    stop.store(false, Ordering::Relaxed);
    for command in [vec![OsString::from("/no/such")], Vec::new()] {
        let ended = run_it(&command);
        assert!(ended.end.failure(&limits()).unwrap().unavailable, "{:?}", ended.end);
        assert!(ended.invocation.is_none());
    }
}

#[test]
fn what_ended_while_nobody_looked_has_given_its_answer_in_time() {
    // Whoever stops this program and lets it go on later finds the child gone and its time over.
    let house = house();
    let room = house.room().unwrap();
    let (stop, nothing) = (AtomicBool::new(false), Duration::ZERO);
    let command: Vec<OsString> = ["/bin/echo", "done"].map(OsString::from).into();
    let limits = Limits { wall: nothing, idle: nothing, ..limits() };
    let run = Run { command: &command, room: &room, input: b"", limits, stop: &stop, house: &house };
    let mut child = spawn(&run).unwrap();
    let mut pipes = Pipes::of(&mut child, run.input);
    while !has_ended(&child) {
        std::thread::sleep(PAUSE);
    }
    assert_eq!(pipes.attend(&run, &child), None);
    assert_eq!(pipes.output, b"done\n");
    assert!(child.wait().unwrap().success());
    // What others print for ever into its pipes is not waited for either.
    let ended =
        sh("setsid sh -c 'while echo y; do sleep 0.05; done' & sleep 0.2; echo done", b"", self::limits());
    assert_eq!(ended.end, End::Exit(0));
}
