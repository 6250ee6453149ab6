//! Input that means harm, through the program: each has its error and exit code, and nothing is changed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use nf::model::hash::Hash;
use serde_json::Value;

use crate::faults::tools::{LOOP, Steps, assert_sound, kind, picture, twin};
use crate::harness::{NF, Packet, Project, Ran};

const SEGMENT: &str = ".novelforge/log/00000001.jsonl";
const START: [&str; 6] = ["start", "--resource", "novel/pride", "--task", "review", "--json"];
const FREEZE: [&str; 3] = ["freeze", "job.yaml", "--json"];

/// The command is refused so, and nothing in the project changes.
#[track_caller]
fn refused(project: &Project, words: &[&str], code: i32, error: &str) -> Ran {
    let before = picture(project.path());
    let ran = project.nf(&with_json(words));
    let shown: Vec<String> = words.iter().map(|word| word.chars().take(60).collect()).collect();
    assert_eq!((ran.code, kind(&ran).as_str()), (code, error), "{shown:?}: {}{}", ran.stdout, ran.stderr);
    assert!(picture(project.path()) == before, "{shown:?}: something was changed");
    ran
}

fn with_json<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.to_vec();
    if !words.contains(&"--json") {
        words.push("--json");
    }
    words
}

/// A project with a running session.
fn running() -> Project {
    let project = Project::in_memory().furnished();
    project.start();
    project
}

#[test]
fn ids_and_names_are_never_paths() {
    let project = running();
    let long = format!("s-{}", "a".repeat(10_000));
    for id in
        ["s-../../../etc", "s-a/b/c/d", "../store.json", "s-....", "s-%2e%2e%2f", "s-\u{202e}abcd", &long]
    {
        for words in [["show", id], ["resume", id]] {
            refused(&project, &words, 2, "usage");
        }
    }
    let name = "n".repeat(10_000);
    for name in ["../x", "a..b", "/etc/passwd", "a b", "a\u{1b}[31m", "", name.as_str()] {
        refused(&project, &["start", "--resource", name, "--task", "t"], 2, "usage");
        refused(&project, &["consume", "--as", name], 2, "usage");
        refused(&project, &["start", "--resource", "r", "--task", "t", "--op", name], 2, "usage");
    }
    for subject in [r#""../up""#, r#""a\0b""#, r#""a/../b""#, r#""\ud800""#] {
        project.write("job.yaml", crate::harness::JOB.replace("novel/pride/ch01", subject));
        refused(&project, &FREEZE, 1, "bad_input");
    }
}

#[test]
fn links_inside_the_store_are_refused_and_their_targets_untouched() {
    let steps = Steps::new();
    let cases = [
        ("start", "log"),
        ("start", "log/00000001.jsonl"),
        ("start", "head"),
        ("start", "lock"),
        ("start", "store.json"),
        ("start", "config.yaml"),
        ("freeze", "blobs"),
        ("freeze", "tmp"),
        ("packet", "packets"),
        ("consume", "receipts"),
    ];
    for (stage, member) in cases {
        let (project, outside) = (steps.before(stage), Project::in_memory());
        let (inside, target) = (project.at(&format!(".novelforge/{member}")), outside.at("target"));
        if inside.exists() {
            std::fs::rename(&inside, &target).expect("moved");
        } else {
            std::fs::write(&target, "{}\n").expect("a target");
        }
        symlink(&target, &inside).expect("a link");
        let before = picture(outside.path());
        let command = LOOP.iter().find(|(name, _)| *name == stage).expect("a command").1;
        refused(&project, command, 1, "foreign_store");
        let doctor = project.nf(&["doctor", "--json"]);
        assert!(doctor.code != 0 && doctor.stdout.contains("symbolic"), "{member}: {}", doctor.stdout);
        project.nf(&["doctor", "--fix"]);
        assert!(picture(outside.path()) == before, "{member}: the target was changed");
    }
}

#[test]
fn a_store_that_is_a_link_is_refused() {
    let (project, outside) = (running(), Project::in_memory());
    std::fs::rename(project.at(".novelforge"), outside.at("store")).expect("moved");
    symlink(outside.at("store"), project.at(".novelforge")).expect("a link");
    let before = picture(outside.path());
    refused(&project, &START, 1, "foreign_store");
    refused(&project, &["status"], 1, "foreign_store");
    assert!(picture(outside.path()) == before);
}

#[test]
fn artifacts_outside_the_project_or_in_the_store_are_refused() {
    let (project, outside) = (running(), Project::in_memory());
    outside.write("secret", "s\n");
    symlink(outside.at("secret"), project.at("link.md")).expect("a link");
    symlink(outside.path(), project.at("folder")).expect("a link");
    let up = format!("../{}/secret", outside.path().file_name().expect("a name").to_string_lossy());
    let absolute = outside.at("secret").display().to_string();
    for path in [
        "link.md",
        "folder/secret",
        &up,
        &absolute,
        ".novelforge/store.json",
        "./.novelforge/head",
        "/dev/zero",
    ] {
        project.write("job.yaml", crate::harness::JOB.replace("path: ch01.md", &format!("path: {path}")));
        let ran = refused(&project, &FREEZE, 1, "bad_input");
        assert!(!ran.stdout.contains("\"s\\n\""), "{}", ran.stdout);
    }
}

/// Both kinds of alias bomb.
fn bombs() -> Vec<String> {
    let mut classic = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let names = vec![format!("*a{}", level - 1); 9].join(", ");
        classic.push_str(&format!("a{level}: &a{level} [{names}]\n"));
    }
    let items = vec!["x"; 20_000].join(", ");
    let wide = format!("a: &a [{items}]\nb: [{}]\n", vec!["*a"; 2_000].join(", "));
    vec![classic, wide]
}

#[test]
fn yaml_bombs_duplicate_keys_and_tags_are_refused_wherever_yaml_is_read() {
    let project = running();
    let mut bad = bombs();
    bad.push("kind: a\nkind: b\n".to_owned());
    bad.push("kind: !!python/object:os.system x\n".to_owned());
    bad.push(format!("{}x{}\n", "[".repeat(100_000), "]".repeat(100_000)));
    for text in &bad {
        project.write("job.yaml", text);
        let packs = ["contract", "check", ".novelforge/contracts/p.yaml", "--json"];
        for (member, words) in [
            ("job.yaml", &FREEZE[..]),
            (".novelforge/config.yaml", &START),
            (".novelforge/contracts/p.yaml", &packs),
        ] {
            let other = twin(&project);
            other.write(member, text);
            let before = picture(other.path());
            let ran = frugal(&other, words);
            let known = ["bad_input", "too_large"].contains(&kind(&ran).as_str());
            assert!(
                ran.code == 1 && known,
                "{member}: {:.40}: {} {}{}",
                text,
                ran.code,
                ran.stdout,
                ran.stderr
            );
            assert!(picture(other.path()) == before, "{member}: something was changed");
        }
    }
}

#[test]
fn json_a_hundred_thousand_deep_doubled_keys_and_lone_surrogates_are_refused() {
    let project = Project::in_memory().furnished();
    let packet = project.ask();
    let good = packet.verdict("reject");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [deep.clone(), format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000))] {
        project.write("job.json", &text);
        refused(&project, &["freeze", "job.json"], 1, "bad_input");
    }
    let replies = [
        deep,
        good.replacen("\"status\"", "\"status\":\"completed\",\"status\"", 1),
        good.replace("names nine people", "names \\ud800 people"),
        String::from_utf8_lossy(&[0xff, 0xfe, 0xfd]).into_owned(),
    ];
    for text in replies {
        let before = project.log();
        project.write("answer.json", &text);
        let ran = project.nf(&["reply", "answer.json", "--json"]);
        assert_eq!((ran.code, kind(&ran).as_str()), (5, "semantic_invalid"), "{:.90}: {}", text, ran.stdout);
        let more = String::from_utf8_lossy(&project.log()[before.len()..]).into_owned();
        assert!(!more.contains("result.stored"), "{more}");
    }
    project.write("answer.json", good);
    project.nf(&["reply", "answer.json"]).expect(0);
    assert_sound(&project);
}

/// Runs with at most 400 MB of address space.
fn frugal(project: &Project, words: &[&str]) -> Ran {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 400000 && exec \"$@\"", "sh", NF]).args(with_json(words));
    shell.current_dir(project.path()).env_remove("NF_OP").output().expect("sh runs").into()
}

#[test]
fn a_gibibyte_is_refused_in_little_memory() {
    let project = Project::in_memory().furnished();
    project.ask();
    let giant = std::fs::File::create(project.at("giant")).expect("a file");
    giant.set_len(1 << 30).expect("a sparse file");
    project.write("job2.yaml", crate::harness::JOB.replace("path: ch01.md", "path: giant"));
    let before = picture(project.path());
    let cases = [
        (&["reply", "giant"][..], 5, "semantic_invalid"),
        (&["freeze", "giant"], 1, "too_large"),
        (&["freeze", "job2.yaml"], 1, "too_large"),
    ];
    for (words, code, error) in cases {
        let ran = frugal(&project, words);
        assert_eq!((ran.code, kind(&ran).as_str()), (code, error), "{words:?} {}{}", ran.stdout, ran.stderr);
    }
    assert!(picture(project.path()) == before);
    for member in ["config.yaml", "contracts/p.yaml"] {
        let other = running();
        let giant = std::fs::File::create(other.at(&format!(".novelforge/{member}"))).expect("a file");
        giant.set_len(1 << 30).expect("a sparse file");
        let command = if member == "config.yaml" {
            &START[..]
        } else {
            &["contract", "check", ".novelforge/contracts/p.yaml"]
        };
        let ran = frugal(&other, command);
        assert_eq!((ran.code, kind(&ran).as_str()), (1, "too_large"), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_log_that_git_rewrote_is_named_as_such_and_given_back_by_doctor() {
    let project = Steps::new().before("end");
    let log = String::from_utf8(project.log()).expect("text");
    let half = log.len() / 2 + log[log.len() / 2..].find('\n').expect("a line") + 1;
    let (first, second) = log.split_at(half);
    let conflict = format!("{first}<<<<<<< HEAD\n{second}=======\n{second}>>>>>>> other\n");
    for (bad, word) in [(log.replace('\n', "\r\n"), "CRLF"), (conflict, "conflict")] {
        project.write(SEGMENT, &bad);
        for words in [&START[..], &["status"]] {
            let ran = refused(&project, words, 11, "damaged");
            assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
        }
        project.nf(&["doctor", "--fix"]);
        assert_sound(&project);
        assert!(project.log().starts_with(log.as_bytes()), "{word}: a record is gone");
        project.write(SEGMENT, &log);
    }
}

/// A log line with its hash put right.
fn sealed(line: &str) -> String {
    let end = line.rfind(",\"hash\":\"").expect("a hash");
    let hash = Hash::derive("novelforge log v1", &line.as_bytes()[..end]);
    format!("{},\"hash\":\"{hash}\"}}\n", &line[..end])
}

#[test]
fn a_store_of_a_newer_format_is_read_where_understood_and_never_written() {
    let project = Project::in_memory().furnished();
    let old = project.read(".novelforge/store.json");
    let new = old.replace("\"format\":1", "\"format\":2");
    assert_ne!(old, new);
    project.write(".novelforge/store.json", &new);
    let line = project.read(SEGMENT);
    let (from, to) = (Hash::of(old.as_bytes()).hex(), Hash::of(new.as_bytes()).hex());
    project.write(SEGMENT, sealed(&line.trim_end().replace(&from, &to)));
    std::fs::remove_file(project.at(".novelforge/head")).expect("removed");
    refused(&project, &START, 1, "newer_format");
    refused(&project, &["doctor", "--fix"], 1, "newer_format");
    project.nf(&["status"]).expect(0);
    project.nf(&["verify"]).expect(0);
}

#[test]
fn a_record_of_a_newer_format_is_read_where_understood_and_never_written_after() {
    let project = running();
    let log = project.read(SEGMENT);
    let last = log.trim_end().rsplit('\n').next().expect("a line");
    let record: Value = serde_json::from_str(last).expect("a record");
    let (seq, hash) = (record["seq"].as_u64().expect("a number"), record["hash"].as_str().expect("a hash"));
    let at = record["at"].as_str().expect("a time");
    let events = r#"[{"type":"thing.unheard_of","what":{"a":1}}]"#;
    let line = format!(
        r#"{{"v":2,"seq":{},"at":"{at}","cmd":"future","events":{events},"prev":"{hash}","hash":""}}"#,
        seq + 1
    );
    project.write(SEGMENT, format!("{log}{}", sealed(&line)));
    std::fs::remove_file(project.at(".novelforge/head")).expect("removed");
    let before = project.log();
    let ran = project.nf(&START);
    assert_eq!((ran.code, kind(&ran).as_str()), (1, "newer_format"), "{}", ran.stdout);
    let ran = project.nf(&["doctor", "--fix", "--accept-loss"]);
    assert!(ran.code != 0 || project.log() == before, "{}", ran.stdout);
    assert!(project.log() == before, "the log was changed");
    let session = record["events"][0]["session"]["id"].as_str().expect("an id").to_owned();
    let ran = project.nf(&["show", &session]);
    assert!(ran.code == 0 || ran.stderr.contains("newer"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_store_of_another_user_or_open_to_others_is_refused() {
    let project = running();
    for member in [".novelforge", ".novelforge/log", ".novelforge/blobs", ".novelforge/head", SEGMENT] {
        let path = project.at(member);
        let mode = std::fs::metadata(&path).expect("meta").permissions().mode() & 0o777;
        std::os::unix::fs::chown(&path, Some(54_321), None).unwrap_or_else(|_| {
            crate::harness::skipped("NF_NEED_ROOT", "only root can give files away");
        });
        if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&path).expect("meta")) == 54_321 {
            let words = if member.ends_with("blobs") { &FREEZE[..] } else { &START[..] };
            refused(&project, words, 1, "foreign_store");
            std::os::unix::fs::chown(&path, Some(0), None).expect("given back");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    for mode in [0o777, 0o770, 0o702] {
        std::fs::set_permissions(project.at(".novelforge"), std::fs::Permissions::from_mode(mode))
            .expect("a mode");
        refused(&project, &START, 1, "foreign_store");
        refused(&project, &["status"], 1, "foreign_store");
    }
    std::fs::set_permissions(project.at(".novelforge"), std::fs::Permissions::from_mode(0o700))
        .expect("a mode");
    project.nf(&START).expect(0);
}

#[test]
fn a_config_that_names_a_program_host_or_key_is_refused() {
    let project = running();
    for member in [
        "run: /bin/sh -c id",
        "command: [id]",
        "editor: vi",
        "host: https://example.org",
        "url: http://[::1]/",
        "api_key: abc",
        "env: {A: b}",
        "bindings: {run: [id]}",
        "bindings: {authority: [\"|id\"]}",
        "bindings: {authority: [../../etc/passwd]}",
        "bindings: {authority: [/etc/passwd]}",
    ] {
        project.write(".novelforge/config.yaml", format!("{member}\n"));
        let before = picture(project.path());
        let ran = project.nf(&START);
        let known = ["bad_input", "not_a_binding"].contains(&kind(&ran).as_str());
        assert!(known && [1, 3].contains(&ran.code), "{member}: {} {}", ran.code, ran.stdout);
        assert!(picture(project.path()) == before, "{member}");
    }
}

#[test]
fn escape_sequences_and_bidirectional_marks_are_shown_escaped() {
    let project = Project::in_memory().furnished();
    let packet: Packet = project.ask();
    let text = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{202e}txt\u{2066}\u{9b}31m";
    let output = serde_json::json!({"verdict": "reject", "evidence": [text], "confidence": 0.5});
    project.write("answer.json", packet.answer(&output));
    let result = project.nf(&["reply", "answer.json"]).expect(0).line();
    project.write("bad.yaml", "kind: \"a\\e[31m\\u202e\"\n");
    let outputs = [
        project.nf(&["show", &result]),
        project.nf(&["validate", &result]),
        project.nf(&["log"]),
        project.nf(&["status"]),
        project.nf(&["consume", "--as", "gate/x"]),
        project.nf(&["freeze", "bad.yaml"]),
        project.nf(&["freeze", "no\u{1b}[31msuch\u{202e}file"]),
        project.nf(&["show", "s-\u{1b}[31m\u{202e}"]),
        project.nf(&["start", "--resource", "a\u{1b}[31m\u{202e}b", "--task", "t"]),
    ];
    for ran in outputs {
        for shown in [&ran.stdout, &ran.stderr] {
            let raw = ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2066}'];
            assert!(!shown.contains(raw), "{shown:?}");
        }
    }
}
