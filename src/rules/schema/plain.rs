//! Schemas that are seen to be schemas without the meta-schema, which takes most of the time of a `freeze`.
//! Says yes only of what the meta-schema allows for certain; what it does not know it leaves to that.

use serde_json::{Map, Value};

use super::DRAFT;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Whether a value is plainly a schema of the draft: known words only, each with a value of the right shape.
/// What its regular expressions and references lead to is not looked at.
pub(super) fn is_plain(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => members.iter().all(|(word, value)| is_plain_member(word, value)),
        _ => false,
    }
}

fn is_plain_member(word: &str, value: &Value) -> bool {
    match word {
        "items"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties" => is_plain(value),
        "properties" | "$defs" | "dependentSchemas" => value.as_object().is_some_and(all_plain),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            value.as_array().is_some_and(|schemas| !schemas.is_empty() && schemas.iter().all(is_plain))
        }
        "type" => match value {
            Value::Array(types) => !types.is_empty() && are_different(types) && types.iter().all(is_type),
            one => is_type(one),
        },
        "required" => {
            value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && are_different(names))
        }
        "enum" | "examples" => value.is_array(),
        "const" | "default" => true,
        "title" | "description" | "$comment" | "format" | "pattern" => value.is_string(),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.is_u64(),
        "$ref" => value.as_str().is_some_and(is_inner),
        "$schema" => value.as_str() == Some(DRAFT),
        _ => false,
    }
}

fn all_plain(schemas: &Map<String, Value>) -> bool {
    schemas.values().all(is_plain)
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|word| TYPES.contains(&word))
}

/// Whether the texts of a list are all different; only a short list is looked through.
fn are_different(texts: &[Value]) -> bool {
    texts.len() <= 100 && texts.iter().enumerate().all(|(at, text)| !texts[..at].contains(text))
}

/// Whether a reference leads into the same document, in characters that mean nothing else in an address.
fn is_inner(reference: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/$_-".contains(&byte);
    reference.strip_prefix("#/").is_some_and(|pointer| pointer.bytes().all(plain))
}
