//! What reviewers really paste back: each reply gives its exit code and its reason, in a store of its own.

use serde_json::{Value, json};

use crate::expect::{done_with, events_of, failed, recorded};
use crate::harness::{Packet, Project};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/replies");

/// What a reply must come to.
enum Must {
    /// It binds, after these steps of intake.
    Bind(&'static [&'static str]),
    /// Intake refuses it: the reason, and what the message or cause says.
    Refuse(&'static str, &'static str),
    /// It is read and does not bind: the failed checks, and what the cause says.
    Fail(&'static [&'static str], &'static str),
    /// No verdict was given.
    CannotJudge,
}

use Must::{Bind, CannotJudge, Fail, Refuse};

const CASES: &[(&str, Must)] = &[
    ("bare.txt", Bind(&[])),
    ("pretty.txt", Bind(&[])),
    ("fenced-json.txt", Bind(&["fence_extracted"])),
    ("fenced-prose-both-sides.txt", Bind(&["fence_extracted", "prose_stripped"])),
    ("no-fence-prose.txt", Bind(&["prose_stripped"])),
    ("tilde-fence.txt", Bind(&["fence_extracted"])),
    ("long-fence-with-inner-fence.txt", Bind(&["fence_extracted"])),
    ("bash-fence-first.txt", Bind(&["fence_extracted", "prose_stripped"])),
    ("example-then-answer.txt", Bind(&["fence_extracted", "prose_stripped"])),
    ("same-twice.txt", Bind(&["prose_stripped"])),
    ("two-different.txt", Refuse("ambiguous", "2 different answers")),
    ("bom.txt", Bind(&["bom_removed"])),
    ("utf16le.txt", Bind(&["utf16_decoded"])),
    ("crlf.txt", Bind(&[])),
    ("nbsp-indent.txt", Bind(&["nbsp_whitespace"])),
    ("curly-delimiters.txt", Refuse("broken", "line 1, column 242: a curly quote")),
    ("curly-inside-string.txt", Bind(&[])),
    ("trailing-comma.txt", Refuse("broken", "line 1, column 326: a trailing comma")),
    ("duplicate-key.txt", Refuse("duplicate_key", "this key twice")),
    ("nan.txt", Refuse("non_finite", "not finite")),
    ("truncated.txt", Refuse("truncated", "ends at line 11")),
    ("truncated-outer-good-inner.txt", Refuse("truncated", "ends at line 1")),
    ("placeholder.txt", Refuse("placeholder", "placeholder for a pasted text")),
    ("empty.txt", Refuse("empty", "the reply is empty")),
    ("wrong-fingerprint.txt", Fail(&["fingerprint"], "want nf1:")),
    ("wrong-nonce.txt", Refuse("no_such_packet", "no such packet")),
    ("missing-evidence.txt", Fail(&["schema"], "/evidence")),
    ("unknown-verdict.txt", Fail(&["schema", "verdict"], "\"maybe\"")),
    ("private-reasoning.txt", Fail(&["leakage"], "/output/chain_of_thought")),
    ("cannot-judge.txt", CannotJudge),
];

fn said(error: &Value) -> String {
    format!(
        "{} {}",
        error["message"].as_str().unwrap_or_default(),
        error["cause"].as_str().unwrap_or_default()
    )
}

#[track_caller]
fn comes_to(project: &Project, name: &str, arguments: &[&str], reply: &[u8], must: &Must) {
    match must {
        Bind(steps) => {
            let data = done_with(project, arguments, reply);
            assert_eq!(data["steps"], json!(steps), "{name}");
            assert_eq!(data["standing"], "valid", "{name}");
            let checks = data["checks"].as_array().expect("checks");
            assert!(checks.len() == 13 && checks.iter().all(|check| check["ok"] == true), "{name}: {data}");
        }
        Refuse(reason, word) => {
            let error = failed(project, arguments, reply, 5, "semantic_invalid");
            assert_eq!(error["details"]["reason"], *reason, "{name}: {error}");
            assert!(said(&error).contains(word), "{name}: {word} in {error}");
        }
        Fail(checks, word) => {
            let error = failed(project, arguments, reply, 5, "semantic_invalid");
            assert_eq!(error["details"]["reason"], "binding", "{name}: {error}");
            assert_eq!(error["details"]["failed"], json!(checks), "{name}: {error}");
            assert!(said(&error).contains(word), "{name}: {word} in {error}");
        }
        CannotJudge => {
            let error = failed(project, arguments, reply, 7, "execution_failed");
            assert_eq!(error["details"]["reason"], "cannot_judge", "{name}: {error}");
        }
    }
}

#[test]
fn the_table_covers_every_case_with_the_exit_code_that_is_expected() {
    let expected = std::fs::read_to_string(format!("{FOLDER}/EXPECTED.tsv")).expect("the table");
    let expected: Vec<(&str, &str)> = expected
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'))
        .map(|(file, rest)| (file, rest.split('\t').next().unwrap_or_default()))
        .collect();
    assert_eq!(expected.len(), 30);
    for (file, exit) in expected {
        let case = CASES.iter().find(|(name, _)| *name == file);
        let got = match &case.unwrap_or_else(|| panic!("{file} has no case")).1 {
            Bind(_) => "0",
            Refuse(..) | Fail(..) => "5",
            CannotJudge => "7",
        };
        assert_eq!(got, exit, "{file}");
    }
}

#[track_caller]
fn run_cases(part: usize) {
    for (name, must) in CASES.iter().skip(part).step_by(3) {
        let project = Project::new();
        let packet = project.ask();
        let reply = packet.fill(&std::fs::read(format!("{FOLDER}/{name}")).expect("a case"));
        comes_to(&project, name, &["reply"], &reply, must);
    }
}

#[test]
fn each_reply_gives_its_exit_code_and_its_reason_first_third() {
    run_cases(0);
}

#[test]
fn each_reply_gives_its_exit_code_and_its_reason_second_third() {
    run_cases(1);
}

#[test]
fn each_reply_gives_its_exit_code_and_its_reason_last_third() {
    run_cases(2);
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}

fn pretty(answer: &str) -> String {
    serde_json::to_string_pretty(&serde_json::from_str::<Value>(answer).expect("JSON")).expect("JSON")
}

/// Further replies of the same kinds, as bytes made from a packet.
fn others(packet: &Packet) -> Vec<(&'static str, Vec<u8>, Must)> {
    let accept = packet.verdict("accept");
    let reject = packet.verdict("reject");
    let broken = reject.replace("0.7", "0.7,");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let text = |text: String| text.into_bytes();
    let twice = |first: &str| format!("<think>\n{first}\n</think>\n{accept}\n");
    vec![
        ("utf-16, big end first", [b"\xfe\xff".to_vec(), wide(&accept)].concat(), Bind(&["utf16_decoded"])),
        ("utf-16 without its mark", wide(&accept), Refuse("encoding", "byte 0")),
        ("latin-1", [b"caf\xe9 ".to_vec(), accept.clone().into()].concat(), Refuse("encoding", "byte 3")),
        (
            "a broken answer beside a sound one",
            text(format!("{accept}\n\n{broken}")),
            Refuse("ambiguous", "broken"),
        ),
        ("a broken object that is no answer", text(format!("{{a: b}}\n{accept}")), Bind(&["prose_stripped"])),
        (
            "thoughts before the answer",
            text(format!("<think>{{perhaps}}</think>{accept}")),
            Bind(&["prose_stripped"]),
        ),
        ("the same draft in the thoughts", text(twice(&accept)), Bind(&["prose_stripped"])),
        ("another draft in the thoughts", text(twice(&reject)), Refuse("ambiguous", "2 different answers")),
        ("a block quote", text(quoted(&pretty(&accept))), Refuse("broken", "block quote")),
        ("a block quote of one line", text(quoted(&accept)), Refuse("broken", "block quote")),
    ]
}

/// Replies whose fault stands in the answer itself.
fn faults(packet: &Packet) -> Vec<(&'static str, Vec<u8>, Must)> {
    let accept = packet.verdict("accept");
    let text = |text: String| text.into_bytes();
    let deep = |depth: usize| accept.replace("0.7", &format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
    vec![
        (
            "a look-alike letter in the key",
            text(accept.replace("\"nf\"", "\"n\u{192}\"")),
            Refuse("no_answer", "nf"),
        ),
        (
            "a look-alike letter in the verdict",
            text(accept.replace("accept", "\u{430}ccept")),
            Fail(&["schema", "verdict"], "/verdict"),
        ),
        (
            "a look-alike letter in the status",
            text(accept.replace("completed", "c\u{43e}mpleted")),
            Fail(&["form"], "/status"),
        ),
        ("nothing but brackets, 100,000 deep", text("[".repeat(100_000)), Refuse("depth", "deeper than 128")),
        ("an answer 100,000 deep", text(deep(100_000)), Refuse("depth", "deeper than 128")),
        ("an answer just too deep", text(deep(127)), Refuse("depth", "deeper than 128")),
        (
            "just over 8 MiB",
            text(format!("{}{accept}", " ".repeat(8 * 1024 * 1024 + 1 - accept.len()))),
            Refuse("too_large", "8388608"),
        ),
        ("just 8 MiB", text(format!("{}{accept}", " ".repeat(8 * 1024 * 1024 - accept.len()))), Bind(&[])),
        ("the lone word", text("  Truncated.\n".to_owned()), Refuse("packet_cut", "truncated")),
        ("an answer in an array", text(format!("[{accept}]")), Refuse("no_answer", "array")),
        ("an answer as a quoted text", text(json!(accept).to_string()), Refuse("broken", "quoted text")),
        ("HTML entities", text(accept.replace('"', "&quot;")), Refuse("broken", "HTML")),
        ("single quotes", text(accept.replace('"', "'")), Refuse("broken", "single quote")),
        ("a comment", text(accept.replace("{\"nf\"", "{// x\n\"nf\"")), Refuse("broken", "comment")),
        ("prose alone", text("I would accept it.".to_owned()), Refuse("no_answer", "nf")),
        ("the verdict alone", text("{\"verdict\":\"accept\"}".to_owned()), Refuse("no_answer", "nf")),
        ("a lone surrogate", text(accept.replace("names", "\\ud800")), Refuse("lone_surrogate", "surrogate")),
        (
            "a number too large",
            text(accept.replace("0.7", "9007199254740993")),
            Refuse("integer_range", "2^53"),
        ),
        (
            "a pasted text",
            text("[Pasted text #1 +33 lines]".to_owned()),
            Refuse("placeholder", "placeholder"),
        ),
    ]
}

#[test]
fn other_replies_of_the_same_kinds() {
    let project = Project::new();
    let packet = project.ask();
    let before = project.log();
    for (name, reply, must) in others(&packet).into_iter().chain(faults(&packet)) {
        comes_to(&project, name, &["reply", "-n"], &reply, &must);
    }
    assert!(before == project.log(), "a dry run writes nothing");
}

#[test]
fn words_about_a_verdict_are_no_verdict() {
    let project = Project::new();
    let packet = project.ask();
    let (job, fingerprint, nonce) = (&packet.job, &packet.fingerprint, &packet.nonce);
    let ids = format!("job {job}, fingerprint {fingerprint}, nonce {nonce}");
    let told = [
        format!(
            "I judged it ({ids}). My verdict is accept, my confidence 0.7; the first page names nine people."
        ),
        format!("| nonce | verdict |\n|---|---|\n| {nonce} | accept |\n\nAs I said yesterday in our chat."),
        format!(
            "nf: job={job}; fingerprint={fingerprint}; nonce={nonce}\nverdict = accept\nconfidence = 0.7"
        ),
        format!("\"verdict\": \"accept\", \"confidence\": 0.7, \"nonce\": \"{nonce}\""),
    ];
    for reply in told {
        failed(&project, &["reply"], reply.as_bytes(), 5, "semantic_invalid");
    }
    assert_eq!(events_of(&project, "result.stored").len(), 0);
    let received = events_of(&project, "reply.received");
    assert!(received.iter().all(|event| event["reply"]["verdict"].is_null()), "{received:?}");
    let gate = "gate/novel/pride/ch01/reader_reaction";
    failed(&project, &["consume", "--as", gate], b"", 8, "pending");
    let bound = done_with(&project, &["reply"], packet.verdict("reject").as_bytes());
    assert_eq!(bound["standing"], "valid", "what was only told stands against no answer: {bound}");
}

#[test]
fn members_that_the_form_has_not_and_scopes_that_are_too_wide_do_not_bind() {
    let project = Project::new();
    let packet = project.ask();
    let mut whole: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    let mut case = |pointer: &str, key: &str, value: Value, must: Must| {
        let before = whole.clone();
        whole.pointer_mut(pointer).expect("a member")[key] = value;
        comes_to(&project, key, &["reply", "-n"], whole.to_string().as_bytes(), &must);
        whole = before;
    };
    case("", "note", json!("x"), Fail(&["form"], "/note"));
    case("/nf", "version", json!(1), Fail(&["form"], "/nf/version"));
    case("/worker", "mood", json!("x"), Fail(&["form"], "/worker/mood"));
    case("", "scope", json!("evaluation"), Fail(&["scope"], "evaluation"));
    case("", "scope", json!("diagnostic"), Bind(&[]));
    case("/output", "canon_write", json!(false), Fail(&["scope"], "/output/canon_write"));
    case("/output", "Durable_Taste_Write", json!(true), Fail(&["scope"], "Durable_Taste_Write"));
    case("/output", "Expected_Verdict", json!("accept"), Fail(&["leakage"], "/output/Expected_Verdict"));
    case("", "reason", json!({"Thinking": "x"}), Fail(&["form", "leakage"], "/reason/Thinking"));
    case("/nf", "job", json!("j-000000000000"), Fail(&["job"], "j-000000000000"));
    case("", "worker", json!({"provider": "", "model": ""}), Fail(&["provenance", "independence"], "named"));
}

#[test]
fn the_empty_form_is_ignored_beside_an_answer_and_named_when_alone() {
    let project = Project::new();
    let packet = project.ask();
    let form = &packet.text[packet.text.rfind("```json\n").expect("a form") + 8..];
    let form = &form[..form.find("```").expect("its end")];
    comes_to(&project, "alone", &["reply", "-n"], form.as_bytes(), &Refuse("form_not_filled_in", "blank"));
    let both = format!("```json\n{form}```\n\n```json\n{}\n```\n", packet.verdict("accept"));
    comes_to(&project, "both", &["reply"], both.as_bytes(), &Bind(&["fence_extracted", "prose_stripped"]));
}

#[test]
fn a_refused_reply_is_recorded_without_the_text_around_it() {
    let project = Project::new();
    let packet = project.ask();
    let reply = format!("My secret plan was simple.\n{}", packet.answer(&json!({"verdict": "accept"})));
    recorded(&project, &["reply"], reply.as_bytes(), 5, "semantic_invalid");
    let received = events_of(&project, "reply.received");
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["reply"]["class"], "semantic_invalid");
    assert_eq!(received[0]["reply"]["verdict"], "accept", "the readable verdict is kept");
    assert!(!String::from_utf8_lossy(&project.log()).contains("secret plan"));
    let valid = format!("Another private thought.\n{}", packet.verdict("accept"));
    project.nf_with(&["reply"], valid.as_bytes()).expect(0);
    for entry in walkdir(project.path()) {
        let bytes = std::fs::read(&entry).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("private thought") && !text.contains("secret plan"), "{}", entry.display());
    }
}

fn walkdir(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(walkdir(&path)) } else { files.push(path) }
    }
    files
}
