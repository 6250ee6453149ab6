//! Claude Code and Codex themselves, only where that is asked for (`NF_LIVE_AGENTS=1`): both are installed
//! from their registry at exact versions and run headless by `nf work`. Their model is a stand-in on the
//! loopback address of a network namespace that leads nowhere, so that no account, no key and no provider
//! takes part.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::examples::repository;
use crate::expect::{done, events_of, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::CLASS;
use crate::harness::{JOB, Project, report};
use crate::work::{WORK, program, project, provenance};
use crate::work_agents::strict;
use crate::work_children::until;
use crate::workers::with_settings;

/// The packages, at the versions whose options and events the adapters know.
const PACKAGES: [(&str, &str); 2] = [("@anthropic-ai/claude-code", "2.1.197"), ("@openai/codex", "0.171.0")];
/// Both read their key from a variable; this one opens nothing.
const KEY: &str = "sk-stands-nowhere-in-the-store-2718";

/// Where the packages are, once they are installed; says so where they are not wanted or cannot be had.
fn installed() -> Option<PathBuf> {
    let skip = |why: &str| {
        eprintln!("SKIPPED: {why}");
        None
    };
    if std::env::var_os("NF_LIVE_AGENTS").is_none_or(|value| value != "1") {
        return skip("NF_LIVE_AGENTS is not 1, and real agents need a package registry");
    }
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !["node", "npm", "python3", "unshare", "nsenter"].iter().all(|program| there(program)) {
        return skip("node, npm, python3, unshare and nsenter are needed");
    }
    if !Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success()) {
        return skip("there is no right to make a network namespace");
    }
    let folder = repository("target/agents");
    let has = |(name, version): &(&str, &str)| {
        let text = std::fs::read_to_string(folder.join("node_modules").join(name).join("package.json"));
        let package = text.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        package.is_some_and(|package| package["version"] == *version)
    };
    if !PACKAGES.iter().all(has) {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--prefix"]);
        npm.arg(&folder).args(PACKAGES.map(|(name, version)| format!("{name}@{version}")));
        assert!(npm.status().expect("npm runs").success(), "npm could not install the agents");
    }
    Some(folder.join("node_modules/.bin"))
}

/// A namespace with nothing in it but a loopback device and the stand-in for a model.
struct Nowhere {
    stub: Child,
    port: String,
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Nowhere {
    fn new(programs: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut stub = Command::new("unshare");
        stub.args(["-n", "python3"]).arg(repository("tests/fixtures/agents/stub_model.py"));
        let stub = stub.arg(folder.path().join("port")).stdin(Stdio::null()).spawn().expect("the stub");
        let port = until("the stub", || std::fs::read_to_string(folder.path().join("port")).ok());
        let nowhere = Self { stub, port, folder, programs };
        let routes = nowhere.inside(&["cat", "/proc/net/route"]);
        assert_eq!(routes.lines().count(), 1, "there is a way out: {routes}");
        nowhere
    }

    fn net(&self) -> String {
        format!("/proc/{}/ns/net", self.stub.id())
    }

    fn inside(&self, words: &[&str]) -> String {
        let mut command = Command::new("nsenter");
        let output = command.arg(format!("--net={}", self.net())).args(words).output().expect("nsenter");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Processes in the namespace, but for the stand-in.
    fn left(&self) -> Vec<String> {
        let own = std::fs::read_link(self.net()).expect("a namespace");
        let pids = std::fs::read_dir("/proc").expect("processes").flatten();
        let pids = pids.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let inside = |pid: &String| {
            let place = std::fs::read_link(Path::new("/proc").join(pid).join("ns/net"));
            place.is_ok_and(|place| place == own) && *pid != self.stub.id().to_string()
        };
        pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(inside).collect()
    }

    /// A wrapper that runs an agent in here. `retries` is how often it may try a call again by itself.
    fn wrapper(&self, kind: &str, retries: u32) -> String {
        let (net, programs, port) = (self.net(), self.programs.display(), &self.port);
        let line = match kind {
            "claude" => format!(
                "env ANTHROPIC_BASE_URL=http://127.0.0.1:{port} CLAUDE_CODE_MAX_RETRIES={retries} \
                 {programs}/claude"
            ),
            _ => format!(
                "{programs}/codex -c model_provider=stub -c 'model_providers.stub={{name=\"stub\", \
                 base_url=\"http://127.0.0.1:{port}/v1\", env_key=\"CODEX_API_KEY\", \
                 wire_api=\"responses\", request_max_retries=0, stream_max_retries={retries}}}'"
            ),
        };
        let file = self.folder.path().join(format!("{kind}-{retries}"));
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::write(&file, format!("#!/bin/sh\nexec nsenter --net={net} {line} \"$@\"\n"))
            .expect("a file");
        std::fs::set_permissions(&file, mode).expect("a mode");
        file.display().to_string()
    }
}

impl Drop for Nowhere {
    fn drop(&mut self) {
        let _ = self.stub.kill();
        let _ = self.stub.wait();
    }
}

/// What is asked of an agent, and what must come of it.
struct Case {
    /// The word in the model's name: how the model behaves.
    word: &'static str,
    /// Models that the job allows; none: any.
    models: &'static str,
    /// How often the agent may try again by itself.
    retries: u32,
    more: &'static [&'static str],
    code: i32,
    /// The word of the error's kind, and of what became of the attempt.
    kind: &'static str,
    reason: &'static str,
    verdict: Option<&'static str>,
    served: Option<&'static str>,
}

const CASE: Case = Case {
    word: "",
    models: "",
    retries: 1,
    more: &[],
    code: 0,
    kind: "",
    reason: "",
    verdict: None,
    served: None,
};
/// What every agent must do with these.
const COMMON: [Case; 4] = [
    Case { word: "bad", code: 5, kind: "semantic_invalid", reason: "semantic_invalid", ..CASE },
    Case { word: "empty", code: 7, kind: "execution_failed", reason: "empty", ..CASE },
    Case { word: "401", code: 6, kind: "execution_unavailable", reason: "unauthorized", ..CASE },
    Case { word: "429", code: 7, kind: "execution_failed", reason: "quota", ..CASE },
];
/// It would go on for minutes: what it said last is why there is no answer.
const FOR_EVER: Case = Case {
    word: "401",
    retries: 100,
    more: &["--wall", "25s"],
    code: 6,
    kind: "execution_unavailable",
    reason: "unauthorized",
    ..CASE
};

/// A queued question of a closed shape, and a worker of the settings that the case is about.
fn prepared(nowhere: &Nowhere, kind: &str, case: &Case) -> (Project, String) {
    let mut project = project();
    let variable = if kind == "claude" { "ANTHROPIC_API_KEY" } else { "CODEX_API_KEY" };
    project.set(variable, KEY);
    project.set("NF_LOG", "trace");
    let wrapper = nowhere.wrapper(kind, case.retries);
    with_settings(
        &mut project,
        &format!(
            "workers:\n  asked: {{kind: {kind}, command: {wrapper}, model: stub-{}, key_env: {variable}, \
            isolate: true}}\n",
            case.word
        ),
    );
    let terms = match case.models {
        "" => strict(),
        models => {
            strict().replace("min_grade: declared", &format!("min_grade: declared, models: [{models}]"))
        }
    };
    assert!(terms.contains("additionalProperties: false") && terms.contains("type: string"), "{JOB}");
    project.write("job.yaml", terms);
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let handoff = project.nf(&["handoff", "open", "--class", CLASS]).expect(0).line();
    (project, handoff)
}

/// Runs one case, prints what came of it, and gives the project with the item of the one attempt.
fn run(nowhere: &Nowhere, kind: &str, case: &Case) -> (Project, Value) {
    let (project, handoff) = prepared(nowhere, kind, case);
    let item = run_as(nowhere, &project, &handoff, kind, case);
    (project, item)
}

fn run_as(nowhere: &Nowhere, project: &Project, handoff: &str, kind: &str, case: &Case) -> Value {
    let line = [WORK, &["--worker-config", "asked", "--json"], case.more].concat();
    let ran = project.nf(&line);
    let document = ran.json();
    let item = report(&document)["items"][0].clone();
    let model = case.word;
    eprintln!(
        "{kind} stub-{model}: exit {}, {} {} ({})",
        ran.code, item["fate"], item["reason"], item["detail"]
    );
    assert_eq!(ran.code, case.code, "{document}\n{}", ran.stderr);
    assert_eq!(nowhere.left(), Vec::<String>::new(), "{kind} {model} left processes behind");
    if case.code > 0 {
        assert_eq!((&document["error"]["kind"], &item["reason"]), (&json!(case.kind), &json!(case.reason)));
        assert_eq!(item["result"], Value::Null, "no verdict comes of it");
        assert_eq!(events_of(project, "result.stored").len(), 0);
        assert_ne!(shown(project, handoff, "/state"), "completed");
    }
    let seen = String::from_utf8_lossy(&project.log()).into_owned() + &ran.stderr + &ran.stdout;
    assert!(!seen.contains(KEY), "the key is kept nowhere");
    assert_sound(project);
    item
}

/// The provenance of an answer that was bound, after its verdict was looked at.
fn bound(project: &Project, item: &Value, case: &Case) -> Value {
    assert_eq!(item["verdict"]["value"], json!(case.verdict), "{item}");
    let seen = provenance(project, item["result"].as_str().expect("a result"));
    assert_eq!(seen.get("model_served").cloned(), case.served.map(Value::from), "{seen}");
    assert_eq!(seen["model_requested"], format!("stub-{}", case.word));
    assert_eq!(seen["model_stated"], "what-it-calls-itself");
    assert!(seen["witness"]["native_session"].is_string() && seen["witness"]["invocation"]["exit"] == 0);
    eprintln!("    served {}, {}, {}", seen["model_served"], item["grade"], seen["witness"]);
    seen
}

#[test]
fn claude_code_itself_answers_and_fails_as_it_is_told() {
    let Some(programs) = installed() else { return };
    let nowhere = Nowhere::new(programs);
    for case in [
        Case { word: "pass", verdict: Some("accept"), served: Some("stub-pass"), ..CASE },
        Case { word: "reject", verdict: Some("reject"), served: Some("stub-reject"), ..CASE },
        Case { word: "other", verdict: Some("accept"), served: Some("another-model-9"), ..CASE },
        Case { word: "alias", verdict: Some("accept"), served: Some("stub-alias-20260101"), ..CASE },
        Case {
            word: "alias",
            models: "stub-alias, stub-alias-20260101",
            verdict: Some("accept"),
            served: Some("stub-alias-20260101"),
            ..CASE
        },
    ] {
        let (project, item) = run(&nowhere, "claude", &case);
        let seen = bound(&project, &item, &case);
        assert_eq!(item["grade"], "attested");
        assert_eq!(seen["witness"]["isolation"].as_array().map(Vec::len), Some(4));
        let notes = seen["witness"]["notes"].to_string();
        assert!(!notes.contains("schema"), "the schema was sent: {notes}");
        let gate = item["gate"].as_str().expect("a gate");
        assert_eq!(done(&project, &["consume", "--as", gate])["outcome"]["value"], json!(case.verdict));
    }
    let refused = Case { word: "400", code: 7, kind: "execution_failed", reason: "refused_request", ..CASE };
    for case in COMMON.into_iter().chain([refused]) {
        run(&nowhere, "claude", &case);
    }
    // A job that names a model takes no other one, nor the same one by a name that it does not list.
    for (word, served) in [("other", "another-model-9"), ("alias", "stub-alias-20260101")] {
        let models = if word == "other" { "stub-other" } else { "stub-alias" };
        let (kind, reason) = ("semantic_invalid", "semantic_invalid");
        let (_, item) = run(&nowhere, "claude", &Case { word, models, code: 5, kind, reason, ..CASE });
        let detail = item["detail"].as_str().expect("words");
        assert!(detail.contains(&format!("one of {models}")) && detail.contains(served), "{detail}");
    }
}

#[test]
fn codex_itself_answers_and_fails_as_it_is_told() {
    let Some(programs) = installed() else { return };
    let nowhere = Nowhere::new(programs);
    for case in [
        Case { word: "pass", verdict: Some("accept"), ..CASE },
        Case { word: "reject", verdict: Some("reject"), ..CASE },
        // It does not tell which model served, so that another one cannot be told from the one asked for.
        Case { word: "other", verdict: Some("accept"), ..CASE },
    ] {
        let (project, item) = run(&nowhere, "codex", &case);
        let seen = bound(&project, &item, &case);
        assert_eq!((&item["grade"], &seen["witness"]["unattested"]), (&json!("declared"), &json!(true)));
        assert_eq!(seen["witness"].get("notes"), None, "the schema was sent");
    }
    let failed = Case { word: "400", code: 7, kind: "execution_failed", reason: "turn_failed", ..CASE };
    for case in COMMON.into_iter().chain([failed]) {
        run(&nowhere, "codex", &case);
    }
    // Where the job wants a model by name it is not asked at all.
    let case = Case { word: "pass", models: "stub-pass", ..CASE };
    let (project, _) = prepared(&nowhere, "codex", &case);
    project.nf(&[WORK, &["--worker-config", "asked"]].concat()).expect(8);
}

#[test]
fn agents_that_try_again_for_ever_are_ended_and_the_next_worker_has_the_same_question() {
    let Some(programs) = installed() else { return };
    let nowhere = Nowhere::new(programs);
    for kind in ["claude", "codex"] {
        let (project, handoff) = prepared(&nowhere, kind, &FOR_EVER);
        program(&project, "answer.sh", "read_packet; answer reject");
        let named = ["--worker-config", "asked"];
        let data = done(&project, &[WORK, &named, FOR_EVER.more, &["--", "./answer.sh"]].concat());
        eprintln!("{kind} stub-401 for ever: {}", data["items"][0]["detail"]);
        assert_eq!(data["items"][0]["reason"], FOR_EVER.reason);
        assert_eq!(data["items"][1]["verdict"]["value"], "reject", "{data}");
        assert_eq!(shown(&project, &handoff, "/number"), 2);
        assert_eq!(nowhere.left(), Vec::<String>::new());
        // With nobody else it is the way that is missing, and the question stays in the queue.
        let (project, handoff) = prepared(&nowhere, kind, &FOR_EVER);
        run_as(&nowhere, &project, &handoff, kind, &FOR_EVER);
        assert_eq!(shown(&project, &handoff, "/state"), "queued");
    }
}
