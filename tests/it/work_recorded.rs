//! What Claude Code and Codex really printed, case by case, through the whole of `work`: programs that stand
//! in for them print the recordings of `tests/fixtures/agents`. `tests/it/live_agents.rs` runs the same cases
//! with the programs themselves.

use serde_json::{Value, json};

use crate::expect::{done, events_of, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::CLASS;
use crate::harness::{Project, report};
use crate::work::{WORK, program, project, provenance};
use crate::work_agents::{CLAUDE_HELP, CODEX_HELP, agent, strict};
use crate::work_children::until;

const CLAUDE: [(&str, &str); 7] = [
    ("answered", include_str!("../fixtures/agents/claude-answered.jsonl")),
    ("alias", include_str!("../fixtures/agents/claude-alias.jsonl")),
    ("bad", include_str!("../fixtures/agents/claude-bad.jsonl")),
    ("empty", include_str!("../fixtures/agents/claude-empty.jsonl")),
    ("refused", include_str!("../fixtures/agents/claude-refused.jsonl")),
    ("limited", include_str!("../fixtures/agents/claude-limited.jsonl")),
    ("retrying", include_str!("../fixtures/agents/claude-retrying.jsonl")),
];
const CODEX: [(&str, &str, &str); 6] = [
    (
        "answered",
        include_str!("../fixtures/agents/codex-answered.jsonl"),
        include_str!("../fixtures/agents/codex-answered.last.json"),
    ),
    (
        "bad",
        include_str!("../fixtures/agents/codex-bad.jsonl"),
        include_str!("../fixtures/agents/codex-bad.last.json"),
    ),
    ("empty", include_str!("../fixtures/agents/codex-empty.jsonl"), ""),
    ("refused", include_str!("../fixtures/agents/codex-refused.jsonl"), ""),
    ("limited", include_str!("../fixtures/agents/codex-limited.jsonl"), ""),
    ("retrying", include_str!("../fixtures/agents/codex-retrying.jsonl"), ""),
];

/// How a stand-in tells a recording with the packet's own values in it.
const TELL: &str = r#"tell() { sed "s/@JOB@/$(member job)/g; s/@FINGERPRINT@/$(member fingerprint)/g;
    s/@NONCE@/$(member nonce)/g" "$1"; }"#;

/// A recorded agent that ends as `end` says: an exit code, or a process that goes on.
fn recorded(project: &Project, kind: &str, name: &str, end: &str, verdict: &str) {
    let verdict = |text: &str| text.replace("accept", verdict);
    let stream = format!("{kind}-{name}.jsonl");
    let tell = format!("{TELL}\ntell {}", project.at(&stream).display());
    if kind == "claude" {
        let (_, text) = CLAUDE.iter().find(|(known, _)| *known == name).expect("a recording");
        project.write(&stream, verdict(text));
        agent(project, kind, CLAUDE_HELP, &format!("{tell}\n{end}"));
    } else {
        let (_, text, last) = CODEX.iter().find(|(known, ..)| *known == name).expect("a recording");
        project.write(&stream, verdict(text));
        project.write("last.json", verdict(last));
        let keep = "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && last=$2; shift; done";
        let file = project.at("last.json").display().to_string();
        agent(project, kind, CODEX_HELP, &format!("{keep}\n{tell}\ntell {file} > \"$last\"\n{end}"));
    }
}

/// A queued question of a closed shape, which allows these models, or any.
fn asked(models: &str) -> (Project, String) {
    let project = project();
    let terms = match models {
        "" => strict(),
        models => {
            strict().replace("min_grade: declared", &format!("min_grade: declared, models: [{models}]"))
        }
    };
    project.write("job.yaml", terms);
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let handoff = project.nf(&["handoff", "open", "--class", CLASS]).expect(0).line();
    (project, handoff)
}

fn line<'a>(kind: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [WORK, &["--agent", kind, "--model", "stub-alias"], more].concat()
}

#[test]
fn a_recorded_answer_binds_whatever_it_says_under_the_model_that_served() {
    for (kind, name, verdict, served) in [
        ("claude", "answered", "accept", Some("stub-pass")),
        ("claude", "answered", "reject", Some("stub-pass")),
        ("claude", "alias", "accept", Some("stub-alias-20260101")),
        ("codex", "answered", "accept", None),
        ("codex", "answered", "reject", None),
    ] {
        let (project, handoff) = asked("");
        recorded(&project, kind, name, "exit 0", verdict);
        let item = done(&project, &line(kind, &["--isolate"]))["items"][0].clone();
        assert_eq!((&item["fate"], &item["verdict"]["value"]), (&json!("valid"), &json!(verdict)));
        assert_eq!(item["grade"], if kind == "claude" { "attested" } else { "declared" });
        let seen = provenance(&project, item["result"].as_str().expect("a result"));
        assert_eq!(seen.get("model_served").cloned(), served.map(Value::from), "{seen}");
        assert_eq!(
            (&seen["model_requested"], &seen["model_stated"]),
            (&json!("stub-alias"), &json!("what-it-calls-itself"))
        );
        assert_eq!(seen["witness"].get("unattested").is_some(), served.is_none());
        assert_eq!(shown(&project, &handoff, "/state"), "completed");
        assert_sound(&project);
    }
}

#[test]
fn a_job_that_names_a_model_takes_it_only_by_a_name_that_it_lists() {
    for (name, models, code) in [
        ("alias", "stub-alias, stub-alias-20260101", 0),
        ("alias", "stub-alias", 5),
        ("answered", "stub-alias", 5),
    ] {
        let (project, _) = asked(models);
        recorded(&project, "claude", name, "exit 0", "accept");
        let ran = project.nf(&line("claude", &[])).expect(code);
        if code > 0 {
            let served = if name == "alias" { "stub-alias-20260101" } else { "stub-pass" };
            let told = format!("model: want one of stub-alias, got {served}");
            assert!(ran.stderr.contains(&told), "{}", ran.stderr);
        }
    }
    // Codex tells no model: it is not asked where one is wanted.
    let (project, handoff) = asked("stub-alias");
    recorded(&project, "codex", "answered", "exit 0", "accept");
    project.nf(&line("codex", &[&handoff])).expect(6);
    assert_eq!(events_of(&project, "handoff.claimed").len(), 0);
}

/// What no verdict comes of: the recording, how it ended, the exit code of `work`, the error's kind, the
/// reason.
const NO_VERDICT: [(&str, &str, i32, &str, &str); 4] = [
    ("bad", "exit 0", 5, "semantic_invalid", "semantic_invalid"),
    ("empty", "exit 0", 7, "execution_failed", "empty"),
    ("limited", "exit 1", 7, "execution_failed", "quota"),
    ("refused", "exit 1", 7, "execution_failed", "refused_request"),
];

#[test]
fn what_no_verdict_comes_of_has_its_class_and_its_exit_code() {
    for kind in ["claude", "codex"] {
        for (name, end, code, error, reason) in NO_VERDICT {
            // What Codex passes on of a refused request has no status.
            let reason = if (kind, name) == ("codex", "refused") { "turn_failed" } else { reason };
            let (project, handoff) = asked("");
            recorded(&project, kind, name, end, "accept");
            no_verdict(&project, &handoff, &line(kind, &[]), (code, error, reason));
        }
    }
}

#[track_caller]
fn no_verdict(project: &Project, handoff: &str, line: &[&str], (code, kind, reason): (i32, &str, &str)) {
    let ran = project.nf(&[line, &["--json"]].concat()).expect(code);
    let document = ran.json();
    let item = &report(&document)["items"][0];
    assert_eq!((&document["error"]["kind"], &item["reason"]), (&json!(kind), &json!(reason)), "{document}");
    assert_eq!(events_of(project, "result.stored").len(), 0);
    assert_ne!(shown(project, handoff, "/state"), "completed");
    assert_sound(project);
}

/// An agent whose key is refused tries again, and again: it is ended at its limit, with what it started, and
/// what it told last is the reason. Then the next worker has the question.
fn tried_again(kind: &str) {
    let (project, handoff) = asked("");
    let declare = format!(
        "capability declare {kind} --family local_agent --permission-class diagnostic --cost plan \
         --interactive false --executes-model true --isolated true"
    );
    done(&project, &declare.split_whitespace().collect::<Vec<_>>());
    recorded(&project, kind, "retrying", "sleep 300 & echo $! > \"$0.left\"; wait", "accept");
    no_verdict(
        &project,
        &handoff,
        &line(kind, &["--wall", "8s"]),
        (6, "execution_unavailable", "unauthorized"),
    );
    let left = format!("/proc/{}/cmdline", project.read(&format!("bin/{kind}.left")).trim());
    let line = std::fs::read_to_string(left).unwrap_or_default().replace('\0', " ");
    assert_ne!(line, "sleep 300 ", "it was left behind");
    assert_eq!(shown(&project, kind, "/available"), false, "its evidence ends");
    program(&project, "answer.sh", "read_packet; answer reject");
    // The question is free again after a pause.
    let data = until("the next answer", || {
        let ran = project.nf(&[WORK, &["--json", "--", "./answer.sh"]].concat());
        (ran.code == 0).then(|| ran.json()["data"].clone())
    });
    assert_eq!(data["items"][0]["verdict"]["value"], "reject");
    assert_eq!(shown(&project, &handoff, "/number"), 2);
}

#[test]
fn claude_that_tries_a_refused_key_for_ever_is_ended_for_that_reason() {
    tried_again("claude");
}

#[test]
fn codex_that_tries_a_refused_key_for_ever_is_ended_for_that_reason() {
    tried_again("codex");
}
