//! A real model behind a real endpoint, only where it is asked for (`NF_LIVE_MODEL=1`): it needs package
//! registries and about a minute. The model is small and its judgement worth nothing; its answer is bound
//! like any other.
#![cfg(feature = "http")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::examples::repository;
use crate::expect::{done, failed, names, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::CLASS;
use crate::harness::Project;
use crate::work::{WORK, provenance};
use crate::workers::with_settings;

/// Whether the live model is asked for; says so where it is not.
pub fn wanted() -> bool {
    let wanted = std::env::var_os("NF_LIVE_MODEL").is_some_and(|value| value == "1");
    if !wanted {
        eprintln!("SKIPPED: NF_LIVE_MODEL is not 1, and a real model needs package registries");
    }
    wanted
}

/// A question that so small a model can answer: few words, and a shape of which every part is bounded.
const QUESTION: &str = "kind: reader_reaction
subject: novel/pride/ch01
input:
  question: Would a first-time reader turn the page?
  artifacts: [{name: chapter, path: ch01.md}]
rubric: [Judge only the text in the packet.]
output:
  type: object
  required: [verdict, evidence]
  additionalProperties: false
  properties:
    verdict: {type: string, enum: [accept, reject]}
    evidence: {type: array, minItems: 1, maxItems: 2, items: {type: string, minLength: 1, maxLength: 80}}
verdict: {pointer: /verdict, pass: [accept], fail: [reject], repair: {reject: repair.story}}
evidence: [/evidence]
permissions: {result_scope: diagnostic}
execution: {independent: true, min_grade: attested, models: [smollm2-135m], locality: local, cost: [free]}
";

/// Serves the model while it lives.
struct Served {
    server: Child,
    url: String,
}

impl Served {
    fn new() -> Self {
        let mut script = Command::new(repository("examples/live-model.sh"));
        script.args(["sh", "-c", "echo \"$NF_LIVE_URL\"; cat > /dev/null"]);
        let mut server = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the script");
        let mut url = String::new();
        BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut url).expect("an address");
        Self { server, url: url.trim().to_owned() }
    }

    fn end(mut self) {
        drop(self.server.stdin.take());
        assert!(self.server.wait().expect("the script ends").success());
    }
}

#[test]
fn a_small_model_on_this_machine_answers_a_packet_and_is_bound() {
    if !wanted() {
        return;
    }
    let served = Served::new();
    let mut project = Project::new();
    let url = &served.url;
    with_settings(
        &mut project,
        &format!(
            "workers:\n  small-model: {{kind: openai, url: '{url}', model: smollm2-135m, max_tokens: 400}}\n"
        ),
    );
    done(&project, &["capability", "probe", "small-model"]);
    project.write("job.yaml", QUESTION);
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let open = ["handoff", "open", "--class", CLASS, "--gate", "gate/live", "--wait", "--max-attempts", "9"];
    done(&project, &open);
    // So small a model talks on now and then until its answer is cut, which is no verdict (7): the question
    // is asked again once it is free (8).
    let mut worked = project.nf(&line());
    while [7, 8].contains(&worked.code) {
        eprintln!("{}", worked.stderr);
        std::thread::sleep(std::time::Duration::from_secs(1));
        worked = project.nf(&line());
    }
    let worked = worked.expect(0).json()["data"].clone();
    let item = &worked["items"][0];
    let result = item["result"].as_str().expect("a result");
    let told = done(&project, &["show", result]);
    eprintln!("{item}\n{}\n{}", told["output"], told["object"]["provenance"]);
    let verdict = item["verdict"]["value"].as_str().expect("a verdict");
    assert!(["accept", "reject"].contains(&verdict), "{item}");
    assert_eq!((&item["fate"], &item["grade"]), (&json!("valid"), &json!("attested")));
    let seen = provenance(&project, result);
    assert_eq!((&seen["transport"], &seen["family"]), (&json!("http"), &json!("local_model")));
    assert_eq!(seen["model_served"], "smollm2-135m");
    let witness = &seen["witness"];
    assert!(witness["request_id"].is_string() && witness["tokens_in"].is_u64(), "{seen}");
    assert_eq!(witness.get("notes"), None, "the schema was sent, with what must be repeated fixed in it");
    let consumed = done(&project, &["consume", "--as", "gate/live"]);
    assert_eq!((&consumed["application"], &consumed["outcome"]["value"]), (&json!("new"), &json!(verdict)));
    assert_eq!(done(&project, &["consume", "--as", "gate/live"])["application"], "already");
    done(&project, &["resume"]);
    // What does not fit into its context is refused by it, and never answered in part.
    project.write("ch01.md", project.read("ch01.md").repeat(20));
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let long = done(&project, &["handoff", "open", "--class", CLASS, "--gate", "gate/long"]);
    let error = failed(&project, &line()[..5], b"", 7, "execution_failed");
    eprintln!("{error}");
    names(&error["cause"], &["too_large"]);
    assert_eq!(error["details"]["retryable"], false);
    let handoff = long["handoff"].as_str().expect("a handoff");
    assert_eq!(shown(&project, handoff, "/state"), "exhausted", "the same again would help nobody");
    assert_sound(&project);
    served.end();
}

fn line() -> Vec<&'static str> {
    [WORK, &["--worker-config", "small-model", "--json"]].concat()
}

#[test]
fn the_script_has_the_model_answer_and_applies_its_answer() {
    if !wanted() {
        return;
    }
    let mut script = Command::new(repository("examples/live-model.sh"));
    let ran: crate::harness::Ran = script.env("NF", crate::harness::NF).output().expect("the script").into();
    let ran = ran.expect(0);
    assert!(ran.stdout.contains("eligible by small-model"), "{}\n{}", ran.stdout, ran.stderr);
    for part in ["independence  attested", "13 of 13 checks", "gate gate/ch01-review is "] {
        assert!(ran.stderr.contains(part), "{part} in {}\n{}", ran.stdout, ran.stderr);
    }
}
