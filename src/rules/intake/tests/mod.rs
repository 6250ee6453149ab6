//! What intake makes of whole replies.

mod cases;
mod forms;
mod properties;
mod refusals;
mod rule;
mod speed;

use serde_json::{Value, json};

use super::*;

/// The values that stand in every reply of these tests.
const JOB: &str = "j-0123456789ab";
const FINGERPRINT: &str = "nf1:1111111111111111111111111111111111111111111111111111111111111111";
const NONCE: &str = "0123456789abcdefghjkmnpqrs";

/// A sound answer, compact.
fn good() -> String {
    answer("reject")
}

fn answer(verdict: &str) -> String {
    let identity = format!(r#"{{"job":"{JOB}","fingerprint":"{FINGERPRINT}","nonce":"{NONCE}"}}"#);
    let output = format!(r#"{{"verdict":"{verdict}","evidence":["Nine people."],"confidence":0.7}}"#);
    let worker = r#"{"provider":"p","model":"m"}"#;
    format!(r#"{{"nf":{identity},"worker":{worker},"status":"completed","output":{output}}}"#)
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn pretty() -> String {
    serde_json::to_string_pretty(&value(&good())).unwrap()
}

/// The packet's form with its blanks.
fn blank() -> Value {
    let identity = json!({"job": JOB, "fingerprint": FINGERPRINT, "nonce": NONCE});
    json!({"nf": identity, "worker": {"provider": "", "model": ""}, "status": "completed", "output": {}})
}

fn take(bytes: &[u8]) -> std::result::Result<Extracted, IntakeFault> {
    extract(bytes, &|value| *value == blank())
}

/// The steps by name, joined; or the reason.
fn outcome(bytes: &[u8]) -> String {
    match take(bytes) {
        Ok(extracted) => {
            let steps: Vec<&str> = extracted.steps.iter().map(|step| step.word()).collect();
            format!("ok {}", steps.join(" ")).trim_end().to_owned()
        }
        Err(fault) => {
            assert_eq!(fault.line.is_some(), fault.column.is_some(), "{fault:?}");
            assert!(!fault.message.is_empty() && !fault.ask.is_empty(), "{fault:?}");
            fault.reason.to_string()
        }
    }
}
