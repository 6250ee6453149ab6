//! Whether a question can be answered at all: its schema, its verdict rule and its evidence fit together
//! (semantic-execution contract, 06 and 07).

use serde_json::Value;

use super::blind::private_in_schema;
use super::members::wrong;
use super::schema;
use crate::error::{Error, Kind, Result};
use crate::model::job::VerdictRule;

/// Refuses what is not a JSON Schema.
///
/// # Errors
/// `bad_input` with the pointer inside the schema.
pub fn valid_schema(what: &str, pointer: &str, value: &Value) -> Result<()> {
    schema::compile_check(value).map_err(|bad| {
        wrong(what, &format!("{pointer}{}", bad.pointer), "not a JSON Schema").because(bad.message)
    })
}

/// Whether a text is a JSON Pointer to a member (RFC 6901): a tilde stands only in ~0 and ~1.
fn is_pointer(text: &str) -> bool {
    let escapes =
        text.match_indices('~').all(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
    text.starts_with('/') && escapes
}

/// What must hold of every finished question: a sound schema without private keys, a verdict rule that
/// knows every value, a repair route for every failing one.
///
/// # Errors
/// `bad_input` with the pointer; `not_blind` for an output that asks for private reasoning.
pub fn finished(
    what: &str,
    output: &Value,
    verdict: Option<&VerdictRule>,
    evidence: &[String],
) -> Result<()> {
    valid_schema(what, "/output", output)?;
    let private = private_in_schema(output);
    if !private.is_empty() {
        return Err(Error::new(Kind::NotBlind, format!("{what}: the output asks for private reasoning"))
            .because(format!("at /output{}", private.join(", /output")))
            .details(serde_json::json!({"pointers": private})));
    }
    for (index, pointer) in evidence.iter().enumerate() {
        if !is_pointer(pointer) {
            return Err(wrong(
                what,
                &format!("/evidence/{index}"),
                "a JSON pointer such as /evidence is wanted",
            ));
        }
    }
    verdict.map_or(Ok(()), |rule| verdict_rule(what, output, rule))
}

fn verdict_rule(what: &str, output: &Value, rule: &VerdictRule) -> Result<()> {
    if !is_pointer(&rule.pointer) {
        return Err(wrong(what, "/verdict/pointer", "a JSON pointer such as /verdict is wanted"));
    }
    let known: Vec<&String> = rule.pass.iter().chain(&rule.fail).chain(&rule.neutral).collect();
    if let Some(twice) = known.iter().enumerate().find(|(index, value)| known[..*index].contains(value)) {
        return Err(wrong(what, "/verdict", &format!("{:?} stands twice", twice.1)));
    }
    if known.is_empty() {
        return Err(wrong(what, "/verdict", "no value is in pass, fail or neutral"));
    }
    if let Some(value) = rule.fail.iter().find(|value| !rule.repair.contains_key(*value)) {
        return Err(wrong(
            what,
            "/verdict/repair",
            &format!("the failing value {value:?} has no repair route"),
        ));
    }
    let values = enum_at(output, &rule.pointer).unwrap_or_default();
    for value in &values {
        if !value.as_str().is_some_and(|text| known.iter().any(|known| *known == text)) {
            return Err(wrong(
                what,
                "/verdict",
                &format!("the output's value {value} is in none of pass, fail, neutral"),
            ));
        }
    }
    let listed = |known: &String| values.iter().any(|value| value.as_str() == Some(known));
    match known.iter().find(|value| !values.is_empty() && !listed(value)) {
        Some(value) => Err(wrong(what, "/verdict", &format!("the output's enum does not have {value:?}"))),
        None => Ok(()),
    }
}

/// The enum that a schema gives for the value at a pointer, through `properties` only.
fn enum_at(schema: &Value, pointer: &str) -> Option<Vec<Value>> {
    let mut here = schema;
    for token in pointer.split('/').skip(1) {
        here = here.get("properties")?.get(token.replace("~1", "/").replace("~0", "~"))?;
    }
    match (here.get("enum"), here.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        _ => None,
    }
}
