//! stdout is only the answer, stderr the news; text from outside is made visible before it is printed.

use serde_json::{Value, json};

use crate::expect::{done, done_with, names, refused_with};
use crate::harness::{Packet, Project, Ran};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// The daily path with a flag; each command's words, its input and what it answered.
fn daily(flag: &str) -> Vec<(String, Ran)> {
    let project = Project::empty();
    project.write("ch01.md", crate::harness::CHAPTER);
    project.write("job.yaml", crate::harness::JOB);
    let mut all = Vec::new();
    let mut run = |arguments: &[&str], input: &str| {
        let ran = project.nf_with(&[arguments, &[flag]].concat(), input.as_bytes()).expect(0);
        let out = ran.stdout.clone();
        all.push((arguments.join(" "), ran));
        out
    };
    run(&["init"], "");
    run(&["start", "--resource", "novel/pride", "--task", "review"], "");
    run(&["run", "step", "--cursor", "ch01"], "");
    run(&["checkpoint", "save", "--boundary", "other", "--artifact", "chapter=ch01.md"], "");
    run(&["freeze", "job.yaml"], "");
    let packet = Packet::read(&run(&["packet"], ""));
    run(&["status"], "");
    run(&["reply"], &packet.verdict("reject"));
    run(&["consume", "--as", GATE], "");
    run(&["resume"], "");
    run(&["validate"], "");
    run(&["list", "session"], "");
    run(&["log"], "");
    run(&["run", "finish", "--status", "completed"], "");
    all
}

#[test]
fn quiet_leaves_the_answer_alone_on_stdout_and_nothing_on_stderr() {
    for (command, ran) in daily("--quiet") {
        assert_eq!(ran.stderr, "", "{command}");
        assert!(!ran.stdout.is_empty(), "{command}");
    }
}

#[test]
fn answers_are_bare_so_that_a_script_can_take_them() {
    let all = daily("--color=never");
    let line = |command: &str| {
        let (_, ran) = all.iter().find(|(words, _)| words.starts_with(command)).expect("a command");
        assert_eq!(ran.stdout.lines().count(), 1, "{command}: {}", ran.stdout);
        ran.line()
    };
    for (command, start) in
        [("start", "s-"), ("freeze", "j-"), ("reply", "x-"), ("checkpoint", "c-"), ("run step", "s-")]
    {
        let answer = line(command);
        assert!(answer.starts_with(start) && answer.len() == 14, "{command}: {answer}");
    }
    assert_eq!(line("consume"), "new");
    let news =
        |command: &str| &all.iter().find(|(words, _)| words.starts_with(command)).expect("one").1.stderr;
    for (command, next) in [
        ("init", "next: nf start"),
        ("start", "next: nf freeze"),
        ("freeze", "next: nf packet"),
        ("packet", "next: nf reply"),
        ("reply", "next: nf consume"),
        ("consume", "next: nf resume"),
    ] {
        let lines = news(command).lines().filter(|line| line.starts_with("next:")).collect::<Vec<_>>();
        assert!(lines.len() == 1 && lines[0].starts_with(next), "{command}: {}", news(command));
    }
}

#[test]
fn every_writer_prints_the_position_of_its_record() {
    for (command, ran) in daily("--color=never") {
        let reads = ["status", "validate", "list", "log"].iter().any(|reader| command.starts_with(reader));
        let said = ran.stderr.lines().any(|line| line.starts_with("record "));
        assert_eq!(said, !reads, "{command}: {}", ran.stderr);
    }
}

#[test]
fn colour_is_off_in_a_pipe_and_on_when_it_is_asked_for() {
    let project = Project::new();
    let start = ["start", "--resource", "a", "--task", "b"];
    assert!(!project.nf(&start).expect(0).stderr.contains('\u{1b}'));
    let always = project.nf(&[&start[..], &["--color", "always"]].concat()).expect(0);
    assert!(always.stderr.contains('\u{1b}'));
    assert!(!always.stdout.contains('\u{1b}'), "an id stays an id");
    let forced = project.command(&start).env("CLICOLOR_FORCE", "1").output().expect("nf runs");
    assert!(Ran::from(forced).stderr.contains('\u{1b}'));
    let none =
        project.command(&start).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().expect("nf runs");
    assert!(!Ran::from(none).stderr.contains('\u{1b}'), "NO_COLOR wins");
}

#[test]
fn what_a_reviewer_sends_is_made_visible_in_text_and_kept_in_json() {
    let hostile = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}txet\u{2066}\u{200f}\u{9b}2J";
    let project = Project::new();
    let packet = project.ask();
    let mut reply: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    reply["worker"]["model"] = json!(hostile);
    reply["output"]["evidence"] = json!([hostile]);
    let dry = project.nf_with(&["reply", "-n"], reply.to_string().as_bytes()).expect(0);
    visible(&dry, "reply -n");
    let lines: Vec<Value> =
        dry.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|event| event.to_string().contains(&json!(hostile).to_string())), "{lines:?}");
    let ran = project.nf_with(&["reply"], reply.to_string().as_bytes()).expect(0);
    let result = ran.line();
    visible(&ran, "reply");
    for arguments in
        [&["show", &result][..], &["status"], &["list", "result"], &["log"], &["validate", &result]]
    {
        visible(&project.nf(arguments).expect(0), &arguments.join(" "));
    }
    let text = project.nf(&["show", &result]).expect(0).stdout;
    for shown in ["\\u{1b}[31mred", "\\u{202e}txet", "\\u{2066}", "\\u{200f}", "\\u{7}", "\\u{9b}"] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    let data = done(&project, &["show", &result]);
    assert_eq!(data["output"]["evidence"][0], json!(hostile), "--json keeps the characters");
    assert_eq!(data["object"]["provenance"]["model_served"], json!(hostile));
}

fn visible(ran: &Ran, what: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}'] {
            assert!(!text.contains(bad), "{what} prints {}: {text:?}", bad.escape_unicode());
        }
    }
}

#[test]
fn errors_too_make_visible_what_came_from_outside() {
    let project = Project::new();
    let packet = project.ask();
    let broken = packet.verdict("accept").replace("0.7", "\u{1b}[2J\u{202e}");
    let ran = project.nf_with(&["reply", "-n"], broken.as_bytes()).expect(5);
    visible(&ran, "a broken reply");
    let unknown = packet.verdict("\u{1b}[31m\u{202e}");
    visible(&project.nf_with(&["reply", "-n"], unknown.as_bytes()).expect(5), "an unknown verdict");
    let mut cannot: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    cannot["status"] = json!("cannot_judge");
    cannot["reason"] = json!("ill\u{1b}[31m\u{202e}");
    cannot.as_object_mut().expect("an object").remove("output");
    visible(&project.nf_with(&["reply", "-n"], cannot.to_string().as_bytes()).expect(7), "a reason");
    for arguments in [
        &["show", "\u{1b}[31m\u{202e}"][..],
        &["list", "\u{1b}[31m"],
        &["freeze", "\u{1b}[31m\u{202e}.yaml"],
        &["start", "--resource", "\u{1b}[31m", "--task", "t"],
        &["\u{1b}[31m"],
        &["session", "move", "s-0000", "\u{1b}[31m"],
        &["packet", "--for", "\u{1b}[31m\u{202e}"],
    ] {
        let ran = project.nf(arguments);
        assert_ne!(ran.code, 0);
        visible(&ran, &format!("{arguments:?}"));
    }
    let job = "kind: \"\\e[31m\"\nrubrik: 1\n";
    let ran = project.nf_with(&["freeze", "-"], job.as_bytes()).expect(1);
    visible(&ran, "a job file");
    let error = refused_with(&project, &["freeze", "-"], job.as_bytes(), 1, "bad_input");
    names(&error["message"], &["rubrik"]);
}

#[test]
fn a_packet_is_printed_byte_for_byte() {
    let project = Project::new();
    let text = "A \u{202e}bidi\u{202c} line, an escape \u{1b}[31m, a tab\t, CRLF\r\nand no last line end";
    project.write("ch01.md", text);
    let packet = project.ask();
    assert!(packet.text.contains(text), "{:?}", packet.text);
    done_with(&project, &["reply"], packet.verdict("accept").as_bytes());
}
