//! A refusal of an answer as a text to paste back: what is missing, and never a hint at a verdict.

use serde_json::Value;

use crate::cli::output::{Done, Report};
use crate::error::Error;

/// What to paste back.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Ask {
    /// Whether the answer would bind.
    pub binds: bool,
    /// The text; empty where nothing is missing.
    pub ask: String,
}

impl Report for Ask {
    const COMMAND: &'static str = "reply.ask";

    fn answer(&self) -> String {
        self.ask.clone()
    }

    fn news(&self) -> Vec<String> {
        if self.binds {
            vec!["nothing is missing: nf reply takes this answer".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// A refusal of an answer as a text to paste back.
pub fn asked(error: &Error, form: bool) -> Done {
    let asked = error.details.get("ask").and_then(Value::as_str).map(str::to_owned);
    let text = asked.unwrap_or_else(|| binding_request(error, form));
    Done::of(&Ask { binds: false, ask: text })
}

/// What to ask for when the answer can be read and does not bind: the form's faults, never a verdict.
fn binding_request(error: &Error, form: bool) -> String {
    let checks = error.details.get("checks").and_then(Value::as_array);
    let failed = checks.into_iter().flatten().filter(|check| check.get("ok") == Some(&Value::Bool(false)));
    let lines = failed.filter_map(|check| {
        let name = check.get("check").and_then(Value::as_str)?;
        let got = check.get("got").and_then(Value::as_str).unwrap_or_default();
        Some(match name {
            "job" | "fingerprint" | "attempt" => {
                "- The member \"nf\" is not as the packet gave it. Please copy it unchanged.".to_owned()
            }
            "form" | "schema" | "evidence" => format!("- {got}"),
            "verdict" => "- The verdict is not one of the values that the packet's schema lists.".to_owned(),
            "scope" => "- Please leave out \"scope\" and every permission.".to_owned(),
            "leakage" => "- Please leave out private reasoning and the members named like it.".to_owned(),
            "provenance" | "independence" | "model" => {
                "- Please fill in the member \"worker\" as the packet's return form shows.".to_owned()
            }
            _ => return None,
        })
    });
    let mut lines: Vec<String> = lines.collect();
    lines.dedup();
    let again = if form {
        "Please correct the form and send it again: both NF FORM lines and all between them."
    } else {
        "Please send one complete JSON block again, filled in as the packet's return form shows."
    };
    let lines = lines.join("\n");
    format!("Your answer could not be taken:\n{lines}\n{again} Your judgement itself is not in question.")
}
