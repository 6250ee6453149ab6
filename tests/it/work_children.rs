//! The programs that `work` runs, and how they misbehave: what they find around them, what they leave behind,
//! what outlives what, and what signals do. No process is left, no lease is lost, and nothing waits for ever.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::expect::{done, events_of, failed, refused, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::{CLAIM, queued};
use crate::harness::Project;
use crate::work::{line, program, project, with_program};

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for a file of the project to have something in it.
#[track_caller]
pub fn appears(project: &Project, name: &str) -> String {
    // What ends in a line is whole, and so is a packet.
    let whole = |text: &String| text.ends_with('\n') || text.contains("\nEND NF PACKET ");
    until(name, || std::fs::read_to_string(project.at(name)).ok().filter(whole))
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// Waits until all processes whose numbers stand in a file are gone.
#[track_caller]
fn gone(project: &Project, name: &str) {
    let pids = project.read(name);
    assert!(pids.split_whitespace().count() > 0, "{name}");
    until("the end of all processes", || pids.split_whitespace().all(is_gone).then_some(()));
}

/// Descriptors beyond the standard ones that every program which this one starts gets.
fn inherited() -> Vec<String> {
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let passed = |name: &String| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let flags =
            info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("0").trim().to_owned();
        let flags = u64::from_str_radix(&flags, 8).unwrap_or_default();
        !["0", "1", "2"].contains(&name.as_str()) && flags & 0o2_000_000 == 0
    };
    names.filter(passed).collect()
}

#[test]
fn a_child_gets_the_packet_an_empty_folder_a_few_variables_and_nothing_else() {
    let text = "read_packet
        { env | cut -d= -f1; } | sort > \"$0.env\"; ls -A > \"$0.folder\"; pwd >> \"$0.folder\"
        tr '\\0' ' ' < /proc/$$/cmdline > \"$0.argv\"
        cut -d' ' -f5 /proc/$$/stat > \"$0.group\"; echo $$ >> \"$0.group\"
        answer accept";
    for isolate in [false, true] {
        let (mut project, _) = with_program(text);
        for (name, value) in [
            ("HOME", "/no/such/home"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("SOME_SECRET", "canary"),
            ("HOUSE_KEY", "key-canary"),
            ("NF_RUN", "r-00000000"),
            ("CLAUDE_CONFIG_DIR", "/no/such"),
        ] {
            project.set(name, value);
        }
        let more: &[&str] = if isolate { &["--isolate"] } else { &[] };
        let data = done(&project, &line(&[more, &["--key-env", "HOUSE_KEY"]].concat()));
        let env = project.read("answer.sh.env");
        let own = ["PWD", "OLDPWD", "SHLVL", "_"];
        let env: Vec<&str> = env.lines().filter(|name| !own.contains(name)).collect();
        assert_eq!(env, ["HOME", "HOUSE_KEY", "LANG", "PATH", "TERM"]);
        let result = data["items"][0]["result"].as_str().expect("a result");
        let witness = shown(&project, result, "/provenance/witness");
        assert_eq!(witness["invocation"]["env_names"], json!(env));
        assert!(!String::from_utf8_lossy(&project.log()).contains("canary"), "a key stands in no record");
        let folder = project.read("answer.sh.folder");
        assert_eq!(folder.lines().count(), 1, "its folder is empty: {folder}");
        assert!(!folder.starts_with(project.path().to_str().expect("text")), "{folder}");
        assert!(!std::path::Path::new(folder.trim()).exists(), "and gone afterwards");
        let argv = project.read("answer.sh.argv");
        assert!(!argv.contains("nonce") && argv.trim().ends_with("answer.sh"), "{argv}");
        let group = project.read("answer.sh.group");
        let group: Vec<&str> = group.split_whitespace().collect();
        assert_eq!(group[0], group[1], "it leads a process group of its own");
        assert_eq!(witness["invocation"]["pid"].to_string(), group[1]);
    }
}

#[test]
fn no_descriptor_but_the_standard_ones_is_passed_on() {
    // A shell opens files of its own; what takes its place shows what both were given.
    let (project, _) = with_program("read_packet; exec ls -l /proc/self/fd > \"$0.fds\"");
    failed(&project, &line(&[]), b"", 7, "execution_failed");
    let listed = project.read("answer.sh.fds");
    let open =
        listed.lines().filter_map(|line| line.split_once(" -> ")).filter(|(_, to)| !to.ends_with("/fd"));
    let mut open: Vec<&str> = open.filter_map(|(name, _)| name.rsplit(' ').next()).collect();
    // What the starter of the tests left open for all is no doing of nf.
    let given = inherited();
    open.retain(|fd| !given.iter().any(|held| held == fd));
    open.sort_unstable();
    assert_eq!(open, ["0", "1", "2"], "{listed}");
}

#[test]
fn however_much_is_read_or_printed_there_is_no_deadlock() {
    let large = "Lorem ipsum dolor sit amet. ".repeat(60_000);
    for text in [
        "read_packet; answer accept",
        "head -c 1000000 /dev/zero | tr '\\0' ' '; read_packet; answer accept",
        "head -c 1000000 /dev/zero >&2; read_packet; answer accept; exec >&- 2>&-; sleep 1",
        "packet=$(head -c 3000 | cat; cat | tail -c 3000); answer accept",
    ] {
        let project = project();
        project.write("ch01.md", &large);
        queued(&project, "novel/q1", &[]);
        program(&project, "answer.sh", text);
        assert_eq!(done(&project, &line(&[]))["answered"], 1, "{text}");
    }
    let (project, _) = with_program("exec head -c 100000000 /dev/zero");
    project.write("ch01.md", &large);
    failed(&project, &line(&[]), b"", 7, "execution_failed");
    let (project, _) = with_program("exec <&-; echo nothing of it was read");
    failed(&project, &line(&[]), b"", 5, "semantic_invalid");
}

#[test]
fn nothing_that_a_program_starts_outlives_it() {
    let table = [
        ("sleep 300 & echo $! > \"$0.pids\"", 0),
        ("(trap '' TERM INT HUP; sleep 300) & echo $! > \"$0.pids\"", 0),
        ("setsid sleep 300 & sleep 0.3; echo $! > \"$0.pids\"", 0),
        ("setsid sh -c 'trap \"\" TERM; sleep 300 & wait' & sleep 0.3; echo $! > \"$0.pids\"", 0),
        ("echo $$ > \"$0.pids\"; trap '' TERM; while :; do sleep 1; done", 7),
        ("echo $$ > \"$0.pids\"; kill -STOP $$", 7),
    ];
    for (text, code) in table {
        let (project, _) = with_program(&format!("read_packet; {text}; answer accept"));
        let ran = project.nf(&line(&["--wall", "8s", "--idle", "4s"])).expect(code);
        gone(&project, "answer.sh.pids");
        assert!(code == 7 || ran.stdout.starts_with("x-"), "{text}: {}", ran.stdout);
        assert_sound(&project);
    }
}

#[test]
fn a_lease_is_renewed_while_the_program_runs() {
    let (project, handoff) = with_program("read_packet; touch \"$0.ran\"; sleep 5; answer accept");
    let mut working = project.command(&line(&["--ttl", "1500ms"])).spawn().expect("nf runs");
    until("its start", || project.at("answer.sh.ran").exists().then_some(()));
    while working.try_wait().expect("a child").is_none() {
        let claim = project.nf(CLAIM);
        assert!([8, 75].contains(&claim.code) || working.try_wait().expect("a child").is_some(), "{claim:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(working.wait().expect("nf ends").code(), Some(0));
    assert_eq!(shown(&project, &handoff, "/number"), 1);
    let renewed = events_of(&project, "lease.renewed").len() + events_of(&project, "lease.revived").len();
    assert!(renewed >= 3, "{renewed}");
    assert_sound(&project);
}

#[test]
fn a_program_whose_attempt_is_taken_away_is_ended() {
    let text = "read_packet; echo $$ > \"$0.pids\"; trap '' TERM; while :; do sleep 1; done";
    let (project, handoff) = with_program(text);
    let working = working(&project, &["--ttl", "1500ms", "--json"], None);
    appears(&project, "answer.sh.pids");
    project.nf(&["handoff", "release", &handoff, "--revoke"]).expect(0);
    let output = working.wait_with_output().expect("nf ends");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"lease_lost\""), "{output:?}");
    gone(&project, "answer.sh.pids");
    assert_eq!(shown(&project, &handoff, "/state"), "queued", "and nothing was recorded of it after");
    assert_sound(&project);
}

/// `work` in the background, begun with a signal ignored or with none.
fn working(project: &Project, more: &[&str], ignored: Option<&str>) -> Child {
    let command = project.command(&line(more));
    let mut wrapped = Command::new("/usr/bin/env");
    match ignored {
        Some(signal) => wrapped.arg(format!("--ignore-signal={signal}")),
        None => wrapped.arg("--default-signal=INT,TERM,HUP"),
    };
    wrapped.arg(command.get_program()).args(command.get_args());
    wrapped.current_dir(project.path()).env_clear().stdin(Stdio::null());
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nf runs")
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a process");
    kill_process(pid, signal).expect("a signal");
}

#[test]
fn a_signal_gives_the_work_back_and_leaves_nobody() {
    let text = "read_packet; echo $$ > \"$0.pids\"; trap '' TERM INT; while :; do sleep 1; done";
    for (signal, ignored, more, code) in [
        (Signal::TERM, None, &["--once"][..], 8),
        (Signal::INT, None, &["--drain"], 8),
        (Signal::INT, Some("INT"), &["--once"], 8),
        (Signal::HUP, None, &["--once"], 8),
        (Signal::TERM, None, &["--loop"], 0),
    ] {
        let (project, handoff) = with_program(text);
        let working = working(&project, more, ignored);
        appears(&project, "answer.sh.pids");
        send(&working, signal);
        let output = working.wait_with_output().expect("nf ends");
        assert_eq!(output.status.code(), Some(code), "{more:?} {output:?}");
        gone(&project, "answer.sh.pids");
        let attempt = shown(&project, &handoff, "/attempt");
        assert_eq!(shown(&project, attempt.as_str().expect("an id"), "/state"), "released");
        assert_eq!(shown(&project, &handoff, "/state"), "queued");
        assert_eq!(done(&project, CLAIM)["number"], 2, "it can be claimed at once");
        assert_sound(&project);
    }
}

#[test]
fn a_loop_waits_for_work_and_ends_well_when_told() {
    let project = project();
    program(&project, "answer.sh", "read_packet; answer accept");
    let working = working(&project, &["--loop"], None);
    let handoffs: Vec<String> =
        (0..2).map(|number| queued(&project, &format!("novel/q{number}"), &[]).2).collect();
    for handoff in &handoffs {
        until("an answer", || (shown(&project, handoff, "/state") == "completed").then_some(()));
    }
    send(&working, Signal::TERM);
    let output = working.wait_with_output().expect("nf ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 answered"), "{output:?}");
}

#[test]
fn killed_itself_its_program_goes_with_it_and_the_work_can_be_claimed_again() {
    let text = "read_packet; echo $$ > \"$0.pids\"; trap '' TERM; while :; do sleep 1; done";
    let (project, _) = with_program(text);
    let mut working = working(&project, &["--ttl", "2s"], None);
    appears(&project, "answer.sh.pids");
    send(&working, Signal::KILL);
    working.wait().expect("nf ends");
    gone(&project, "answer.sh.pids");
    let claimed = until("the end of the lease", || {
        let ran = project.nf(&[CLAIM, &["--json"]].concat());
        (ran.code == 0).then(|| ran.json())
    });
    assert_eq!(claimed["data"]["number"], 2);
    assert_sound(&project);
}

#[test]
fn no_program_is_run_in_the_project() {
    let (mut project, _) = with_program("read_packet; answer accept");
    std::fs::create_dir(project.at("tmp")).expect("a folder");
    let inside = project.at("tmp").display().to_string();
    project.set("TMPDIR", &inside);
    let error = refused(&project, &line(&[]), 6, "execution_unavailable");
    assert!(error["cause"].as_str().is_some_and(|cause| cause.contains("set TMPDIR")), "{error}");
    project.set("TMPDIR", "/no/such");
    refused(&project, &line(&[]), 6, "execution_unavailable");
    project.set("TMPDIR", "/tmp");
    assert_eq!(done(&project, &line(&[]))["answered"], 1, "and it cost no attempt");
}
