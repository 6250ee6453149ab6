//! The queue by its commands: a session opens work, a worker claims, holds and answers it, and everybody who
//! asks wrongly is told what to do instead.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::examples::repository;
use crate::expect::{done, done_with, events_of, failed, names, recorded, refused, refused_with, shown};
use crate::harness::{JOB, NF, Packet, Project, Ran};

/// The queue's own class in these tests.
pub const CLASS: &str = "semantic_reviewer";
/// What every worker of these tests begins with.
pub const CLAIM: &[&str] = &["handoff", "claim", "--class", CLASS, "--worker", "ci-7"];

/// A queued question of a new session about a subject of its own; gives session, job and handoff.
pub fn queued(project: &Project, subject: &str, more: &[&str]) -> (String, String, String) {
    let file = format!("{}.yaml", subject.replace('/', "-"));
    project.write(&file, JOB.replace("novel/pride/ch01", subject));
    let session = project.start();
    let job = project.nf(&["freeze", &file, "--session", &session]).expect(0).line();
    let open = [&["handoff", "open", &job, "--class", CLASS, "--session", &session], more].concat();
    let handoff = project.nf(&open).expect(0).line();
    (session, job, handoff)
}

/// Claims the next piece of work.
#[track_caller]
pub fn claimed(project: &Project, more: &[&str]) -> (Value, Packet) {
    let data = done(project, &[CLAIM, more].concat());
    let packet = Packet::read(data["packet"].as_str().expect("a packet"));
    (data, packet)
}

fn id(data: &Value, member: &str) -> String {
    data[member].as_str().unwrap_or_else(|| panic!("{member} in {data}")).to_owned()
}

/// The script of the command line's page, with a canned answer in the reviewer's place.
const SCRIPT: &str = r#"
set -eu
NF_SESSION=$(nf start --resource novel/pride --task review -q); export NF_SESSION
job=$(nf freeze job.yaml -q)
nf handoff open "$job" --class semantic_reviewer --gate ci/gate --wait -q > handoff
nf show "$NF_SESSION" --json > waiting.json
(
    unset NF_SESSION
    nf handoff claim --class semantic_reviewer --worker ci-7 --gate ci/gate --out packet.txt -q > attempt
    "$EXAMPLES/canned-answer.sh" packet.txt "$1" | nf handoff complete -q > result
)
code=0
nf consume --as ci/gate --exit-verdict -q > /dev/null || code=$?
echo "verdict $code"
nf resume -q > cursor
nf verify -q > /dev/null
"#;

#[test]
fn a_script_opens_waits_and_goes_on_by_the_verdict_that_a_worker_brought() {
    for (verdict, code) in [("accept", 0), ("reject", 10)] {
        let project = Project::new();
        let mut script = Command::new("sh");
        let programs = std::path::Path::new(NF).parent().expect("a folder").display().to_string();
        script.args(["-c", SCRIPT, "sh", verdict]).current_dir(project.path()).env_clear();
        script.env("PATH", format!("{programs}:/usr/bin:/bin")).env("EXAMPLES", repository("examples"));
        let ran: Ran = script.output().expect("a shell").into();
        let ran = ran.expect(0);
        assert_eq!(ran.line(), format!("verdict {code}"));
        assert_eq!(ran.stderr, "", "-q says nothing");
        let waiting: Value = serde_json::from_str(&project.read("waiting.json")).expect("JSON");
        assert_eq!(waiting["data"]["object"]["status"], "awaiting_external");
        let mode = std::fs::metadata(project.at("packet.txt")).expect("a packet").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the packet holds a secret");
        let handoff = project.read("handoff").trim().to_owned();
        assert_eq!(shown(&project, &handoff, "/state"), "completed");
        assert_eq!(shown(&project, &handoff, "/attempt"), project.read("attempt").trim());
        assert_eq!(shown(&project, &handoff, "/result"), project.read("result").trim());
        let source = shown(&project, &handoff, "/source_session");
        assert_eq!(shown(&project, source.as_str().expect("an id"), "/status"), "running");
        let cursor = project.read("cursor");
        assert!(cursor.starts_with("cursor start\n") && cursor.contains("gate ci/gate"), "{cursor}");
    }
}

/// Every command that is asked wrongly: exit code, kind, a word of the next step, and the command line, in
/// which `H` and `A` are the claimed handoff and its attempt, `N` its nonce, `O` another's nonce, `Q` a
/// queued handoff, `D` one that is answered, `X` one that was cancelled, `L` one whose moment is to come.
const WRONG: &[(i32, &str, &str, &str)] = &[
    (1, "unknown_id", "nf list", "handoff claim h-zzzzzzzzzzzz --class semantic_reviewer --worker w"),
    (1, "unknown_id", "nf list", "handoff cancel h-zzzzzzzzzzzz"),
    (1, "unknown_id", "nf list", "handoff release h-zzzzzzzzzzzz --revoke"),
    (1, "unknown_id", "nf list", "handoff renew a-zzzzzzzzzzzz --nonce N"),
    (1, "unknown_id", "nf list", "handoff open j-zzzzzzzzzzzz --class specialist --session S"),
    (2, "usage", "nf", "handoff claim H --worker w"),
    (2, "usage", "nf", "handoff claim --class semantic_reviewer"),
    (2, "usage", "nf", "handoff open --session S"),
    (2, "usage", "nf", "handoff open --class reviewer --session S"),
    (2, "usage", "nf", "handoff open --class specialist --priority 10 --session S"),
    (2, "usage", "nf", "handoff open --class specialist --max-attempts 0 --session S"),
    (2, "usage", "nf", "handoff open --class specialist --not-before soon --session S"),
    (2, "usage", "--ttl", "handoff open J --class specialist --ttl 999ms --session S"),
    (2, "usage", "--ttl", "handoff open J --class specialist --ttl 31d --session S"),
    (2, "usage", "--ttl", "handoff claim --class semantic_reviewer --worker w --ttl 31d"),
    (2, "usage", "--ttl", "handoff renew --ttl 999ms --nonce N"),
    (2, "usage", "--class semantic_reviewer", "handoff claim Q --class specialist --worker w"),
    (2, "usage", "--nonce", "handoff renew A"),
    (2, "usage", "--nonce", "handoff release"),
    (2, "usage", "--nonce", "handoff fail --reason crash"),
    (2, "usage", "give one", "handoff fail --reason crash --no-retry --retry-after 1m --nonce N"),
    (2, "usage", "nf", "handoff fail --nonce N"),
    (2, "usage", "--session", "handoff cancel Q --session S"),
    (2, "usage", "--session", "handoff release H --revoke --session S"),
    (3, "lease_lost", "nf status", "handoff renew --nonce 00000000000000000000000000"),
    (3, "lease_lost", "nf status", "handoff release A --nonce O"),
    (3, "lease_lost", "nf status", "handoff fail A --reason crash --nonce O"),
    (3, "lease_lost", "nf show", "handoff release Q --revoke"),
    (3, "already_judged", "nf consume", "handoff cancel D"),
    (3, "already_judged", "nf consume", "handoff claim D --class semantic_reviewer --worker w"),
    (3, "handoff_cancelled", "nothing was applied", "handoff claim X --class semantic_reviewer --worker w"),
    (8, "under_review", "wait", "handoff claim H --class semantic_reviewer --worker w"),
    (8, "pending", "nf status", "handoff claim --class writer --worker w"),
    (8, "pending", "claim it then", "handoff claim L --class semantic_reviewer --worker w"),
];

#[test]
fn every_command_that_is_asked_wrongly_says_what_to_do_instead() {
    let project = Project::new();
    let (_, _, answered) = queued(&project, "novel/q1", &["--priority", "9"]);
    let (_, packet) = claimed(&project, &[]);
    done_with(&project, &["handoff", "complete"], packet.verdict("accept").as_bytes());
    let (_, _, held) = queued(&project, "novel/q2", &["--priority", "9"]);
    let (data, own) = claimed(&project, &[]);
    assert_eq!(id(&data, "handoff"), held);
    queued(&project, "novel/q3", &["--priority", "9"]);
    let (_, other) = claimed(&project, &[]);
    let (_, _, waiting) = queued(&project, "novel/q4", &[]);
    let (_, _, cancelled) = queued(&project, "novel/q5", &[]);
    done(&project, &["handoff", "cancel", &cancelled]);
    let (_, _, later) = queued(&project, "novel/q6", &["--not-before", "2999-01-01T00:00:00Z"]);
    project.write("q7.yaml", JOB.replace("novel/pride/ch01", "novel/q7"));
    let session = project.start();
    let job = project.nf(&["freeze", "q7.yaml", "--session", &session]).expect(0).line();
    let attempt = id(&data, "attempt");
    for (code, kind, fix, line) in WRONG {
        let words = line.split(' ').map(|word| match word {
            "H" => held.as_str(),
            "A" => &attempt,
            "N" => &own.nonce,
            "O" => &other.nonce,
            "Q" => &waiting,
            "D" => &answered,
            "X" => &cancelled,
            "L" => &later,
            "S" => &session,
            "J" => &job,
            word => word,
        });
        let error = refused(&project, &words.collect::<Vec<_>>(), *code, kind);
        assert!(error["fix"].as_str().is_some_and(|text| text.contains(fix)), "{line}: {error}");
    }
    let stranger = refused_with(
        &project,
        &["handoff", "complete"],
        own.verdict("accept").replace(&own.nonce, "00000000000000000000000000").as_bytes(),
        5,
        "semantic_invalid",
    );
    names(&stranger["message"], &["no such packet"]);
    done(&project, &["handoff", "renew", &attempt, "--nonce", &own.nonce]);
    let past = ["--not-before", "2020-01-01T00:00:00Z", "--priority", "9"];
    let (_, _, past) = queued(&project, "novel/q8", &past);
    assert_eq!(shown(&project, &past, "").get("ready_at"), None, "a moment that has passed is no wait");
    assert_eq!(id(&claimed(&project, &[]).0, "handoff"), past);
}

#[test]
fn an_answer_of_another_attempts_question_binds_to_neither() {
    let project = Project::new();
    queued(&project, "novel/q1", &[]);
    queued(&project, "novel/q2", &[]);
    let (first, one) = claimed(&project, &[]);
    let (_, two) = claimed(&project, &[]);
    let crossed = one.verdict("accept").replace(&one.nonce, &two.nonce);
    let error = recorded(&project, &["handoff", "complete"], crossed.as_bytes(), 5, "semantic_invalid");
    names(&error["fix"], &["nf handoff claim"]);
    let attempt = id(&first, "attempt");
    assert_eq!(shown(&project, &attempt, "/state"), "active", "only the nonce's own attempt has failed");
    done_with(&project, &["handoff", "complete"], one.verdict("accept").as_bytes());
}

#[test]
fn a_store_that_stops_writing_refuses_every_command_of_the_queue() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &[]);
    let (_, packet) = claimed(&project, &[]);
    project.write(".novelforge/POISON", "x");
    let nonce = packet.nonce.as_str();
    for words in [
        &["handoff", "claim", "--class", CLASS, "--worker", "w"][..],
        &["handoff", "renew", "--nonce", nonce],
        &["handoff", "release", "--nonce", nonce],
        &["handoff", "release", &handoff, "--revoke"],
        &["handoff", "fail", "--reason", "crash", "--nonce", nonce],
        &["handoff", "cancel", &handoff],
        &["handoff", "complete"],
    ] {
        let error = refused_with(&project, words, packet.verdict("accept").as_bytes(), 11, "poisoned");
        names(&error["fix"], &["nf doctor"]);
    }
}

#[test]
fn the_nonce_stands_in_the_packet_and_in_nothing_that_the_store_keeps() {
    let project = Project::new();
    queued(&project, "novel/q1", &[]);
    queued(&project, "novel/q2", &[]);
    let claim = [CLAIM, &["--out", "one.txt", "--op", "once"]].concat();
    let first = project.nf(&claim).expect(0);
    let lost = Packet::read(&project.read("one.txt"));
    let again = project.nf(&claim).expect(0);
    assert_eq!(first.stdout, again.stdout, "the same attempt");
    let one = Packet::read(&project.read("one.txt"));
    let (_, two) = claimed(&project, &[]);
    let mut with_nonce = project.command(&["handoff", "renew"]);
    with_nonce.env("NF_NONCE", &one.nonce).env("NF_LOG", "trace");
    let renewed = Ran::from(with_nonce.output().expect("nf runs")).expect(0);
    done_with(&project, &["handoff", "complete", "--nonce", &one.nonce], one.verdict("accept").as_bytes());
    recorded(&project, &["handoff", "complete"], one.verdict("reject").as_bytes(), 4, "result_conflict");
    project.nf(&["handoff", "fail", "--reason", "crash", "--nonce", &two.nonce]).expect(0);
    recorded(&project, &["handoff", "complete"], two.verdict("reject").as_bytes(), 3, "lease_lost");
    let told = [&first.stdout, &first.stderr, &again.stdout, &again.stderr, &renewed.stdout, &renewed.stderr];
    for nonce in [&lost.nonce, &one.nonce, &two.nonce] {
        assert_eq!(nonce.len(), 26);
        assert!(told.iter().all(|text| !text.contains(nonce.as_str())), "a command told a nonce");
        for entry in walkdir::WalkDir::new(project.path()) {
            let entry = entry.expect("an entry");
            if !entry.file_type().is_file() || entry.file_name() == "one.txt" {
                continue;
            }
            let bytes = std::fs::read(entry.path()).expect("bytes");
            let there = bytes.windows(nonce.len()).any(|part| part == nonce.as_bytes());
            assert!(!there, "a nonce stands in {}", entry.path().display());
        }
    }
}

#[test]
fn a_nonce_given_beside_the_answer_stands_in_for_the_one_that_it_leaves_out() {
    let project = Project::new();
    queued(&project, "novel/q1", &[]);
    let (_, packet) = claimed(&project, &[]);
    let mut bare: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    bare["nf"].as_object_mut().expect("an object").remove("nonce");
    project.write("bare.json", bare.to_string());
    refused(&project, &["handoff", "complete", "bare.json"], 5, "semantic_invalid");
    let mut command = project.command(&["handoff", "complete", "bare.json", "--json"]);
    command.env("NF_NONCE", &packet.nonce);
    let ran = Ran::from(command.output().expect("nf runs")).expect(0);
    assert_eq!(ran.json()["data"]["verdict"]["value"], "accept");
}

#[test]
fn a_worker_works_in_the_session_that_it_names_and_says_its_family() {
    let project = Project::new();
    let (source, _, handoff) = queued(&project, "novel/q1", &[]);
    let new = ["session", "new", "--resource", "novel/pride", "--task", "review"];
    let bounded = [&new[..], &["--role", CLASS, "--memory", "bounded"]].concat();
    let worker = project.nf(&bounded).expect(0).line();
    let own = [CLAIM, &[&handoff, "--worker-session", &source]].concat();
    refused(&project, &own, 6, "execution_unavailable");
    let (data, packet) = claimed(&project, &["--worker-session", &worker, "--family", "local_model"]);
    assert_eq!(id(&data, "worker_session"), worker);
    assert_eq!(shown(&project, &id(&data, "attempt"), "/family"), "local_model");
    assert_eq!(shown(&project, &id(&data, "attempt"), "/worker"), "ci-7");
    let bound = done_with(&project, &["handoff", "complete"], packet.verdict("reject").as_bytes());
    let result = id(&bound, "result");
    assert_eq!(shown(&project, &result, "/provenance/family"), "local_model");
    assert_eq!(shown(&project, &result, "/provenance/worker_session"), json!(worker));
    assert_eq!(shown(&project, &worker, "/status"), "created", "a session of somebody's own stays as it is");
    let chat = JOB.replace("novel/pride/ch01", "novel/q2");
    let chat = chat.replace("min_grade: declared", "min_grade: declared, families: [peer_chat]");
    project.write("q2.yaml", chat);
    project.nf(&["freeze", "q2.yaml", "--session", &source]).expect(0);
    let open = ["handoff", "open", "--class", CLASS, "--session", &source];
    let handoff = project.nf(&open).expect(0).line();
    let error = failed(&project, CLAIM, b"", 8, "pending");
    names(&error["cause"], &[&handoff, "service_job"]);
    let (data, _) = claimed(&project, &["--family", "peer_chat"]);
    assert_eq!(id(&data, "handoff"), handoff);
}

#[test]
fn a_queued_question_can_go_to_a_person_instead_and_a_worker_then_waits() {
    let project = Project::new();
    let (session, job, handoff) = queued(&project, "novel/q1", &[]);
    let sent = project.nf(&["packet", &handoff, "--session", &session]).expect(0);
    let packet = Packet::read(&sent.stdout);
    assert_eq!((&packet.handoff, &packet.job), (&handoff, &job));
    assert_eq!(shown(&project, &session, "/status"), "awaiting_user");
    refused(&project, CLAIM, 8, "pending");
    let named = [CLAIM, &[&handoff]].concat();
    refused(&project, &named, 8, "under_review");
    assert_eq!(project.nf(&["packet", &handoff, "--session", &session]).expect(0).stdout, sent.stdout);
    done_with(&project, &["reply"], packet.verdict("reject").as_bytes());
    assert_eq!(shown(&project, &handoff, "/state"), "completed");
    refused(&project, &named, 3, "already_judged");
}

#[test]
fn a_packet_never_takes_the_work_of_a_worker_that_holds_it() {
    let project = Project::new();
    let (session, _, handoff) = queued(&project, "novel/q1", &[]);
    let (data, worker) = claimed(&project, &[]);
    let error = refused(&project, &["packet", &handoff, "--session", &session], 8, "under_review");
    names(&error["fix"], &["nf handoff release", &handoff, "--revoke"]);
    assert_eq!(shown(&project, &id(&data, "attempt"), "/state"), "active");
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    let packet = Packet::read(&project.nf(&["packet", &handoff, "--session", &session]).expect(0).stdout);
    assert_eq!(packet.handoff, handoff);
    recorded(&project, &["handoff", "complete"], worker.verdict("accept").as_bytes(), 3, "lease_lost");
    done_with(&project, &["reply"], packet.verdict("accept").as_bytes());
    assert_eq!(events_of(&project, "result.stored").len(), 1);
}

#[test]
fn a_workers_packet_may_be_answered_through_plain_reply() {
    let project = Project::new();
    let (_, _, handoff) = queued(&project, "novel/q1", &["--gate", "ci/gate"]);
    let (_, packet) = claimed(&project, &[]);
    let ran = project.nf_with(&["reply"], packet.verdict("reject").as_bytes()).expect(0);
    assert!(ran.stderr.contains("nf consume"), "{}", ran.stderr);
    assert_eq!(shown(&project, &handoff, "/result"), json!(ran.line()));
    let again = done_with(&project, &["handoff", "complete"], packet.verdict("reject").as_bytes());
    assert_eq!((&again["duplicate"], &again["result"]), (&json!(true), &json!(ran.line())));
    assert_eq!(done(&project, &["consume", "--as", "ci/gate"])["outcome"]["value"], "reject");
}
