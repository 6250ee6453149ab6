//! A real model behind a real endpoint, only where it is asked for (`NF_LIVE_MODEL=1`): it needs package
//! registries and about a minute. The model is small and its judgement worth nothing; its answer is bound
//! like any other.
#![cfg(feature = "http")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nf::adapters::ask::{Ask, Limits};
use nf::adapters::http::{Address, Dialect, Endpoint, ask, reach};
use serde_json::{Value, json};

use crate::examples::repository;
use crate::expect::{done, done_with};
use crate::handoffs::{claimed, queued};
use crate::harness::{Packet, Project};

const MINUTES: Duration = Duration::from_secs(10 * 60);

/// Whether the live model is asked for; says so where it is not.
pub fn wanted() -> bool {
    let wanted = std::env::var_os("NF_LIVE_MODEL").is_some_and(|value| value == "1");
    if !wanted {
        eprintln!("SKIPPED: NF_LIVE_MODEL is not 1, and a real model needs package registries");
    }
    wanted
}

/// The return form of a packet as a strict schema: its identity can be copied and nothing else.
fn form(packet: &Packet) -> Value {
    let closed = |properties: Value| {
        let required: Vec<String> = properties.as_object().expect("members").keys().cloned().collect();
        json!({"type": "object", "additionalProperties": false, "required": required,
            "properties": properties})
    };
    let fixed = |text: &str| json!({"const": text});
    closed(json!({
        "nf": closed(json!({"job": fixed(&packet.job), "fingerprint": fixed(&packet.fingerprint),
            "nonce": fixed(&packet.nonce)})),
        "worker": closed(json!({"provider": fixed("small-model"), "model": fixed("smollm2-135m")})),
        "status": fixed("completed"),
        "output": closed(json!({"verdict": {"enum": ["accept", "reject"]},
            "evidence": {"type": "array", "minItems": 1, "maxItems": 2,
                "items": {"type": "string", "minLength": 1, "maxLength": 80}},
            "confidence": {"enum": [0.25, 0.5, 0.75]}})),
    }))
}

#[test]
fn a_small_model_on_this_machine_answers_a_packet_and_is_bound() {
    if !wanted() {
        return;
    }
    let mut script = Command::new(repository("examples/live-model.sh"));
    script.args(["sh", "-c", "echo \"$NF_LIVE_URL\"; cat > /dev/null"]);
    let mut server = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the script");
    let mut url = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut url).expect("an address");
    let address = Address::parse(url.trim()).expect("an address");
    assert!(address.is_loopback());
    let endpoint = Endpoint {
        provider: "small-model".to_owned(),
        dialect: Dialect::Openai,
        address,
        insecure: false,
        max_tokens: Some(400),
    };
    assert_eq!(reach(&endpoint, None, MINUTES).expect("an endpoint").models, ["smollm2-135m"]);
    let project = Project::new();
    queued(&project, "novel/pride/ch01", &[]);
    let (_, packet) = claimed(&project, &["--family", "local_model"]);
    let (schema, stop) = (form(&packet), AtomicBool::new(false));
    let limits = Limits { wall: MINUTES, idle: MINUTES, bytes: 1 << 20 };
    let put = |text: &str| {
        let asked =
            Ask { packet: text, schema: Some(&schema), model: Some("smollm2-135m"), limits, stop: &stop };
        ask(&endpoint, None, &asked)
    };
    let outcome = put(&packet.text);
    eprintln!("{:?}", outcome.witness);
    assert_eq!(outcome.witness.model_served.as_deref(), Some("smollm2-135m"));
    assert!(outcome.witness.request_id.is_some() && outcome.witness.notes.is_empty());
    assert!(outcome.witness.tokens_in.is_some_and(|tokens| tokens > packet.text.len() as u64 / 8));
    let answer = outcome.answer.expect("an answer");
    let bound = done_with(&project, &["handoff", "complete"], &answer);
    assert!(
        ["accept", "reject"].contains(&bound["verdict"]["value"].as_str().expect("a verdict")),
        "{bound}"
    );
    done(&project, &["verify"]);
    // What does not fit into its context is refused by it, and never answered in part.
    let long = put(&packet.text.repeat(20)).answer.expect_err("too long");
    eprintln!("{long:?}");
    assert_eq!((long.reason, long.retryable), ("too_large", false), "{long:?}");
    drop(server.stdin.take());
    assert!(server.wait().expect("the script ends").success());
}

#[test]
fn the_script_probes_the_model_and_lists_it_among_the_routes() {
    if !wanted() {
        return;
    }
    let mut script = Command::new(repository("examples/live-model.sh"));
    let ran: crate::harness::Ran = script.env("NF", crate::harness::NF).output().expect("the script").into();
    let ran = ran.expect(0);
    assert!(ran.stdout.contains("eligible by small-model"), "{}\n{}", ran.stdout, ran.stderr);
}
