//! Claude Code and Codex as workers, by programs that stand in for them: what they are given, what is taken
//! for an answer, which grade it has, and who is asked next where one gives none.

use serde_json::{Value, json};

use crate::expect::{done, events_of, failed, names, refused, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::{CLASS, queued};
use crate::harness::{JOB, Project};
use crate::work::{WORK, program, project, provenance};

pub const CLAUDE_HELP: &str = include_str!("../fixtures/agents/claude-help.txt");
pub const CODEX_HELP: &str = include_str!("../fixtures/agents/codex-exec-help.txt");

/// A job whose answer has a shape that a program can be held to.
pub fn strict() -> String {
    JOB.replace("additionalProperties: true", "additionalProperties: false")
        .replace("verdict: {enum", "verdict: {type: string, enum")
}

/// A stand-in for an agent: it tells its version and options, and runs a text for a packet.
pub fn agent(project: &Project, name: &str, help: &str, text: &str) {
    let file = format!("{name}-help.txt");
    project.write(&file, help);
    let help = project.at(&file).display().to_string();
    let text = format!(
        "case \"$*\" in *--version*) echo '{name} 9.9'; exit;; *--help*) cat {help}; exit;; esac
for word in \"$@\"; do echo \"$word\"; done > \"$0.argv\"
read_packet
escaped() {{ sed 's/\\\\/\\\\\\\\/g; s/\"/\\\\\"/g' | tr -d '\\n'; }}
{text}"
    );
    program(project, &format!("bin/{name}"), &text);
}

/// What Claude Code prints with `$result` as its answer.
const CLAUDE: &str = r#"
echo '{"type":"system","subtype":"init","tools":[],"mcp_servers":[],"session_id":"native-1"}'
echo '{"type":"assistant","message":{"model":"served-1"},"request_id":"req-1","session_id":"native-1"}'
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"native-1",'
printf '"result":"%s",' "$result"
echo '"usage":{"input_tokens":4000,"output_tokens":50}}'
"#;

/// What Codex prints, with `$result` as its last message.
const CODEX: &str = r#"
while [ $# -gt 0 ]; do case "$1" in -o) last=$2;; --output-schema) cp "$2" "$0.schema";; esac; shift; done
echo '{"type":"thread.started","thread_id":"thread-1"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"an earlier message"}}'
printf '%s' "$result" > "$last"
echo '{"type":"turn.completed","usage":{"input_tokens":4000,"output_tokens":50}}'
"#;

fn claude(project: &Project, before: &str) {
    let text = format!("{before}\nresult=$(answer ${{verdict:-accept}} \"$found\" | escaped)\n{CLAUDE}");
    agent(project, "claude", CLAUDE_HELP, &text);
}

fn codex(project: &Project, before: &str) {
    let text = format!("{before}\nresult=$(answer ${{verdict:-accept}})\n{CODEX}");
    agent(project, "codex", CODEX_HELP, &text);
}

fn by<'a>(agents: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let agents = agents.iter().flat_map(|agent| ["--agent", agent]);
    WORK.iter().copied().chain(agents).chain(more.iter().copied()).collect()
}

/// The one item of a report, with the provenance of its result.
fn one(project: &Project, data: &Value) -> (Value, Value) {
    let item = data["items"].as_array().and_then(|items| items.last()).expect("an item").clone();
    let seen = provenance(project, item["result"].as_str().unwrap_or_else(|| panic!("a result in {data}")));
    (item, seen)
}

#[test]
fn claude_is_run_without_tools_and_told_from_what_it_calls_itself() {
    let project = project();
    queued(&project, "novel/q1", &[]);
    claude(&project, "");
    let (item, seen) = one(&project, &done(&project, &by(&["claude"], &["--model", "asked-1"])));
    assert_eq!((&item["worker"], &item["grade"]), (&json!("claude"), &json!("declared")));
    assert_eq!((&seen["transport"], &seen["family"]), (&json!("process"), &json!("local_agent")));
    assert_eq!((&seen["model_requested"], &seen["model_served"]), (&json!("asked-1"), &json!("served-1")));
    assert_eq!(seen["model_stated"], "stated-1", "what the answer says of itself stands apart");
    let witness = &seen["witness"];
    assert_eq!(
        (&witness["native_session"], &witness["tool_version"]),
        (&json!("native-1"), &json!("claude 9.9"))
    );
    assert_eq!((&witness["tokens_in"], &witness["request_id"]), (&json!(4000), &json!("req-1")));
    let notes = witness["notes"].to_string();
    assert!(notes.contains("not sent: an object is open, at /properties/output/anyOf/0"), "{notes}");
    let argv = project.read("bin/claude.argv");
    assert!(
        argv.starts_with("-p\n--output-format\nstream-json\n--verbose\n--model\nasked-1\n--tools\n\n"),
        "{argv}"
    );
    assert!(!argv.contains("--json-schema"), "{argv}");
    assert_sound(&project);
}

#[test]
fn a_schema_that_is_strict_is_sent_without_the_nonce() {
    let project = project();
    project.write("job.yaml", strict());
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    project.nf(&["handoff", "open", "--class", CLASS]).expect(0);
    codex(&project, "printf '%s' \"$(member nonce)\" > \"$0.nonce\"");
    let (_, seen) = one(&project, &done(&project, &by(&["codex"], &["--model", "asked-1"])));
    assert_eq!(seen["witness"].get("notes"), None, "nothing was left out");
    let schema: Value = serde_json::from_str(&project.read("bin/codex.schema")).expect("JSON");
    assert_eq!(schema["required"], json!(["nf", "worker", "status", "output"]));
    assert_eq!(
        schema.pointer("/properties/output/anyOf/0/properties/verdict/enum"),
        Some(&json!(["accept", "reject"]))
    );
    let nonce = project.read("bin/codex.nonce");
    assert!(nonce.len() == 26 && !schema.to_string().contains(&nonce), "{nonce}");
    let argv = project.read("bin/codex.argv");
    assert!(
        !argv.contains(&nonce) && argv.contains("--sandbox\nread-only\n") && argv.ends_with("\n-\n"),
        "{argv}"
    );
    // It reports no model: what it was asked for and what the answer says are no proof of what served.
    assert_eq!((seen.get("model_served"), &seen["model_stated"]), (None, &json!("stated-1")));
    assert_eq!((&seen["model_requested"], &seen["witness"]["unattested"]), (&json!("asked-1"), &json!(true)));
    assert_eq!(seen["witness"]["native_session"], "thread-1");
}

/// A stand-in that looks for what it should not know, and tells what it found.
const SPY: &str = r#"
found=$({ cat "$HOME/.claude/CLAUDE.md" CLAUDE.md ../CLAUDE.md ../../CLAUDE.md .git/config; env | grep CANARY
    find "$HOME" . -type f -exec cat {} +; } 2> /dev/null | grep -o 'canary-[a-z]*' | sort -u | tr '\n' ' ')
found="found: $found"
"#;

#[test]
fn canaries_reach_nobody_whose_answer_is_attested() {
    for (isolate, grade, found) in [(true, "attested", "found: "), (false, "declared", "found: canary-home ")]
    {
        let mut project = project();
        project.write("home/.claude/CLAUDE.md", "canary-home\n");
        project.write("CLAUDE.md", "canary-tree\n");
        project.write(".git/config", "canary-git\n");
        let home = project.at("home").display().to_string();
        project.set("HOME", &home);
        project.set("CANARY", "canary-env");
        project.set("HOUSE_KEY", "k");
        let terms = JOB.replace("min_grade: declared", &format!("min_grade: {grade}"));
        project.write("job.yaml", terms);
        project.start();
        project.nf(&["freeze", "job.yaml"]).expect(0);
        let handoff = project.nf(&["handoff", "open", "--class", CLASS]).expect(0).line();
        claude(&project, SPY);
        if isolate {
            let error = refused(&project, &by(&["claude"], &[&handoff]), 6, "execution_unavailable");
            names(&error["cause"], &["min_grade is attested"]);
        }
        let more: &[&str] = if isolate { &["--isolate", "--key-env", "HOUSE_KEY"] } else { &[] };
        let (item, seen) = one(&project, &done(&project, &by(&["claude"], more)));
        assert_eq!(item["grade"], grade);
        let result = item["result"].as_str().expect("an id");
        let told = done(&project, &["show", result]);
        assert_eq!(told["output"]["evidence"], json!([found]), "{grade}");
        let grounds = told["grounds"].as_array().expect("grounds");
        let apart = grounds.iter().filter(|ground| ground["check"] == "apart").count();
        assert_eq!(apart, if isolate { 4 } else { 0 }, "{grounds:?}");
        assert_eq!(seen["witness"].get("isolation").is_some(), isolate);
        // The deciding validation comes to the same.
        let gate = item["gate"].as_str().expect("a gate");
        let consumed = done(&project, &["consume", "--as", gate]);
        assert_eq!(consumed["outcome"]["value"], "accept");
    }
}

#[test]
fn options_that_are_not_listed_are_named_and_nothing_is_run() {
    let project = project();
    queued(&project, "novel/q1", &[]);
    agent(
        &project,
        "claude",
        &CLAUDE_HELP.replace("--safe-mode", "--save-mode").replace("--tools", "--t"),
        "exit 0",
    );
    let error = refused(&project, &by(&["claude"], &[]), 6, "execution_unavailable");
    names(&error["cause"], &["missing_flags", "claude 9.9 does not list --tools, --safe-mode"]);
    refused(&project, &by(&["codex"], &[]), 6, "execution_unavailable");
    let error = refused(&project, &by(&["claude", "codex"], &[]), 6, "execution_unavailable");
    names(&error["cause"], &["claude is not there", "codex is not there"]);
}

#[test]
fn what_is_no_verdict_goes_on_to_the_next_worker_with_the_same_question() {
    let project = project();
    let (_, job, handoff) = queued(&project, "novel/q1", &[]);
    agent(
        &project,
        "claude",
        CLAUDE_HELP,
        r#"echo '{"type":"result","subtype":"success","is_error":true,"result":"usage limit reached"}'"#,
    );
    codex(&project, "echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"boom\"}}'");
    program(&project, "answer.sh", "read_packet; answer reject");
    let data = done(&project, &by(&["claude", "codex"], &["--", "./answer.sh"]));
    let fates: Vec<(&str, &str)> = data["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| {
            (item["worker"].as_str().unwrap_or_default(), item["reason"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(fates, [("claude", "quota"), ("codex", "turn_failed"), ("answer.sh", "")]);
    assert_eq!(shown(&project, &handoff, "/number"), 3, "each is an attempt of its own");
    let asked = events_of(&project, "handoff.claimed");
    assert!(asked.iter().all(|claimed| claimed["attempt"]["job"] == job.as_str()));
    let reasons: Vec<Value> =
        events_of(&project, "attempt.ended").iter().map(|end| end["reason"].clone()).collect();
    assert_eq!(reasons, [json!("execution_failed/quota"), json!("execution_failed/turn_failed")]);
    assert_sound(&project);
}

#[test]
fn nobody_is_asked_after_a_valid_verdict_nor_after_an_answer_that_does_not_bind() {
    for (verdict, code) in [("reject", 0), ("perhaps", 5)] {
        let project = project();
        let (_, _, handoff) = queued(&project, "novel/q1", &[]);
        claude(&project, &format!("verdict={verdict}"));
        program(&project, "answer.sh", "touch \"$0.ran\"; read_packet; answer accept");
        project.nf(&by(&["claude"], &["--", "./answer.sh"])).expect(code);
        assert!(!project.at("answer.sh.ran").exists(), "{verdict}");
        assert_eq!(shown(&project, &handoff, "/number"), 1);
    }
}

#[test]
fn a_way_that_is_gone_is_asked_no_more_and_its_evidence_ends() {
    let project = project();
    for number in 0..2 {
        queued(&project, &format!("novel/q{number}"), &[]);
    }
    let declare = "capability declare claude --family local_agent --permission-class diagnostic --cost plan \
        --interactive false --executes-model true --isolated true";
    project.nf(&declare.split_whitespace().collect::<Vec<_>>()).expect(0);
    agent(
        &project,
        "claude",
        CLAUDE_HELP,
        r#"echo "$$" >> "$0.ran"
        echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401}'; exit 1"#,
    );
    program(&project, "answer.sh", "read_packet; answer accept");
    let data = done(&project, &by(&["claude"], &["--drain", "--", "./answer.sh"]));
    assert_eq!((&data["answered"], &data["unanswered"]), (&json!(2), &json!(1)));
    assert_eq!(data["items"][0]["fate"], "execution_unavailable");
    assert_eq!(project.read("bin/claude.ran").lines().count(), 1, "it is asked once");
    let evidence = done(&project, &["show", "claude"]);
    assert_eq!(evidence["object"]["available"], false, "{evidence}");
    names(&evidence["object"]["detail"], &["status 401"]);
    // With nobody left it is the way that is missing, whatever waits; the question stays in the queue.
    let (_, _, handoff) = queued(&project, "novel/q9", &[]);
    let error = failed(&project, &by(&["claude"], &["--drain"]), b"", 6, "execution_unavailable");
    names(&error["cause"], &["claude: unauthorized"]);
    assert_eq!(shown(&project, &handoff, "/state"), "queued");
    assert_sound(&project);
}

#[test]
fn workers_of_one_program_and_model_are_independent_only_by_their_sessions() {
    let cases =
        [("claude", "native-1", 5), ("claude", "native-2", 0), ("codex", "thread-1", 5), ("codex", "x", 0)];
    for (name, native, code) in cases {
        let project = project();
        let new = ["session", "new", "--resource", "novel/pride", "--task", "review", "--native", native];
        let session = project.nf(&new).expect(0).line();
        project.nf(&["session", "move", &session, "running"]).expect(0);
        project.nf(&["freeze", "job.yaml", "--session", &session]).expect(0);
        let open = ["handoff", "open", "--class", CLASS, "--session", &session];
        let handoff = project.nf(&open).expect(0).line();
        claude(&project, "");
        codex(&project, "");
        let ran = project.nf(&by(&[name], &["--model", "one-and-the-same"])).expect(code);
        let told = ran.stderr.contains(&format!("native: want another native id, got {native}"));
        assert_eq!(told, code > 0, "{}", ran.stderr);
        let state = if code > 0 { "queued" } else { "completed" };
        assert_eq!(shown(&project, &handoff, "/state"), state, "{name} {native}");
    }
}

#[test]
fn a_packet_that_was_cut_on_its_way_is_no_answer() {
    let project = project();
    project.write("ch01.md", "A sentence of the chapter. ".repeat(8000));
    queued(&project, "novel/q1", &[]);
    claude(&project, "");
    let error = failed(&project, &by(&["claude"], &[]), b"", 7, "execution_failed");
    names(&error["cause"], &["truncated_input", "4000 tokens"]);
}
