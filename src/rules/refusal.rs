//! The words of refusals: what a reply's sender is told, with the place, want and got, and what to do.

use super::intake::{IntakeFault, nonces};
use crate::error::{Error, Kind};
use crate::model::check::{Check, failed};
use crate::model::result::{History, StoredResult};

/// The error of a failed intake.
pub fn intake_error(fault: &IntakeFault) -> Error {
    // A nonce is shown nowhere but in its packet, and an ambiguous reply is printed.
    let found: Vec<String> = fault.found.iter().map(|text| without_nonces(text)).collect();
    let place = match (fault.line, fault.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}"),
        _ => fault.offset.map_or_else(String::new, |offset| format!("byte {offset}")),
    };
    let error = Error::new(Kind::SemanticInvalid, fault.message.clone())
        .fix(format!("ask the reviewer: {}", fault.ask))
        .details(serde_json::json!({
            "reason": fault.reason, "line": fault.line, "column": fault.column, "offset": fault.offset,
            "pointer": fault.pointer, "found": found, "ask": fault.ask,
        }));
    match (place.is_empty(), found.is_empty()) {
        (true, true) => error.because(fault.reason.word()),
        (false, true) => error.because(format!("{}: {place}", fault.reason.word())),
        (_, false) => error.because(format!("{}: {}", fault.reason.word(), found.join("\n       and: "))),
    }
}

/// A text in which every nonce is blanked.
fn without_nonces(text: &str) -> String {
    nonces(text.as_bytes()).iter().fold(text.to_owned(), |text, nonce| text.replace(nonce, "(nonce)"))
}

/// The error of a failed binding.
pub fn binding_error(name: &str, checks: Vec<Check>) -> Error {
    let lines: Vec<String> = checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| format!("{}: want {}, got {}", check.check, check.want, check.got))
        .collect();
    let passed = checks.iter().filter(|check| check.ok).count();
    Error::new(
        Kind::SemanticInvalid,
        format!("the answer does not bind to {name}: {passed} of {} checks", checks.len()),
    )
    .because(lines.join("\n       "))
    .details(serde_json::json!({"reason": "binding", "failed": failed(&checks), "checks": checks}))
}

/// The refusal of a second valid answer, naming the first.
pub fn surplus(history: &History, result: &StoredResult) -> Error {
    let first = history.answers.iter().find(|answer| answer.result != result.id);
    let first = first.map_or_else(|| "another result".to_owned(), |answer| answer.result.to_string());
    Error::new(Kind::Surplus, format!("result {} is a second valid answer and is never consumed", result.id))
        .because(format!("{first} answered the same question first"))
        .details(serde_json::json!({"result": result.id, "first": first}))
}
