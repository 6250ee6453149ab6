//! The strict subset of JSON Schema that providers and agents take beside a packet. Says whether a schema is
//! in it, and changes none: one that is not is left out, since the packet itself holds it, and intake judges.

use serde_json::Value;

/// Members that carry other schemas, by name.
const NAMED: &[&str] = &["properties", "$defs", "definitions"];
/// Members that carry a list of schemas.
const LISTED: &[&str] = &["anyOf", "prefixItems"];
/// Members that the strict subset has not.
const FOREIGN: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "$dynamicRef",
];
/// Schemas that may stand in one another.
const MAX_DEPTH: usize = 64;

/// Why a schema is not in the strict subset, with its pointer; nothing where it is: an object at the top,
/// every object closed, all its keys required.
pub fn not_strict(schema: &Value) -> Option<String> {
    if schema.get("type") != Some(&Value::from("object")) {
        return Some("the top is no object".to_owned());
    }
    look(schema, "", 0).err()
}

fn look(schema: &Value, at: &str, depth: usize) -> Result<(), String> {
    let place = if at.is_empty() { "the top" } else { at };
    let Some(members) = schema.as_object() else {
        return Err(format!("no schema is written out, at {place}"));
    };
    if depth > MAX_DEPTH {
        return Err(format!("it is nested over {MAX_DEPTH} deep"));
    }
    if let Some(foreign) = FOREIGN.iter().find(|word| members.contains_key(**word)) {
        return Err(format!("{foreign} is not in it, at {place}"));
    }
    if !["type", "enum", "const", "anyOf", "$ref"].iter().any(|word| members.contains_key(*word)) {
        return Err(format!("no type is said, at {place}"));
    }
    if is_object(schema) || members.contains_key("properties") {
        closed(schema, place)?;
    }
    for word in NAMED {
        for (name, inner) in members.get(*word).and_then(Value::as_object).into_iter().flatten() {
            look(inner, &format!("{at}/{word}/{name}"), depth + 1)?;
        }
    }
    for word in LISTED {
        for (index, inner) in members.get(*word).and_then(Value::as_array).into_iter().flatten().enumerate() {
            look(inner, &format!("{at}/{word}/{index}"), depth + 1)?;
        }
    }
    match members.get("items") {
        // With a list of its own before it, an array may say that nothing comes after.
        Some(Value::Bool(false)) if members.contains_key("prefixItems") => Ok(()),
        Some(inner) => look(inner, &format!("{at}/items"), depth + 1),
        None => Ok(()),
    }
}

fn is_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "object",
        Some(Value::Array(words)) => words.iter().any(|word| word == "object"),
        _ => false,
    }
}

fn closed(schema: &Value, place: &str) -> Result<(), String> {
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(format!("an object is open, at {place}"));
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties.into_iter().flatten().find(|(name, _)| !required.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("{name} is not required, at {place}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn closed_objects_with_all_keys_required_are_strict() {
        let verdict = json!({"enum": ["accept", "reject"]});
        for schema in [
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "additionalProperties": false, "required": ["a", "b"], "properties": {
                "a": verdict, "b": {"type": "array", "items": {"type": "string"}},
            }}),
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"type": ["object", "null"], "additionalProperties": false}}}),
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 1}]}}}),
        ] {
            assert_eq!(not_strict(&schema), None, "{schema}");
        }
    }

    #[test]
    fn everything_else_is_named_with_its_place() {
        let inside = |schema: Value| {
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": schema}})
        };
        let mut deep = json!({"type": "string"});
        for _ in 0..200 {
            deep = json!({"type": "array", "items": deep});
        }
        for (schema, word) in [
            (json!(true), "the top"),
            (json!({}), "the top"),
            (json!({"type": "array", "items": {"type": "string"}}), "the top"),
            (json!({"type": "object"}), "open, at the top"),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), "open"),
            (
                json!({"type": "object", "additionalProperties": false,
                    "properties": {"a": {"type": "null"}}}),
                "a is not required",
            ),
            (inside(json!({"type": "object"})), "open, at /properties/a"),
            (inside(json!({"properties": {}, "type": ["object", "null"]})), "open, at /properties/a"),
            (inside(json!({"type": "array", "items": {"type": "object"}})), "at /properties/a/items"),
            (inside(json!({"oneOf": [{"type": "null"}]})), "oneOf is not in it"),
            (inside(json!({"anyOf": [{"type": "object"}]})), "at /properties/a/anyOf/0"),
            (inside(json!({})), "no type is said"),
            (inside(json!(true)), "no schema"),
            (inside(deep), "deep"),
        ] {
            let why = not_strict(&schema).unwrap_or_else(|| panic!("{schema}"));
            assert!(why.contains(word), "{schema}: {why}");
        }
    }
}
