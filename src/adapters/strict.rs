//! Whether a schema is in the strict subset that programs and endpoints can hold a model to: every object
//! closed and every member of it required. One that is not is left out, and the packet alone says what is
//! wanted.

use serde_json::{Map, Value};

/// Words that say more than what a value looks like. A schema that has one is in nobody's strict subset.
const BEYOND: [&str; 18] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "prefixItems",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$ref",
    "$dynamicRef",
    "minProperties",
    "maxProperties",
];

/// Why a schema is not in the strict subset: where, and what; nothing where it is.
pub fn lack(schema: &Value) -> Option<String> {
    looked(schema, "")
}

fn looked(schema: &Value, pointer: &str) -> Option<String> {
    let place = if pointer.is_empty() { "/" } else { pointer };
    let Some(map) = schema.as_object() else { return Some(format!("{place} is no object")) };
    if let Some(word) = BEYOND.iter().find(|word| map.contains_key(**word)) {
        return Some(format!("{place} says {word}"));
    }
    if !["type", "enum", "const", "anyOf"].iter().any(|word| map.contains_key(*word)) {
        return Some(format!("{place} has no type"));
    }
    let is = |kind: &str| match map.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        one => one.is_some_and(|one| one == kind),
    };
    if is("object") || map.contains_key("properties") {
        return object(map, pointer);
    }
    if let Some(items) = map.get("items") {
        return looked(items, &format!("{pointer}/items"));
    }
    if is("array") {
        return Some(format!("{place} does not say what its items are"));
    }
    let ways = map.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate();
    ways.into_iter().find_map(|(at, way)| looked(way, &format!("{pointer}/anyOf/{at}")))
}

fn object(map: &Map<String, Value>, pointer: &str) -> Option<String> {
    let place = if pointer.is_empty() { "/" } else { pointer };
    if map.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Some(format!("{place} is not closed"));
    }
    let none = Map::new();
    let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if let Some(free) = properties.keys().find(|name| !required.contains(&name.as_str())) {
        return Some(format!("{pointer}/properties/{free} is not required"));
    }
    properties.iter().find_map(|(name, inner)| looked(inner, &format!("{pointer}/properties/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_closed_and_all_their_members_required() {
        let closed = json!({"type": "object", "additionalProperties": false, "required": ["a", "b"],
            "properties": {"a": {"enum": ["x"]}, "b": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(lack(&closed), None);
        assert_eq!(lack(&json!({"anyOf": [closed, {"type": "null"}]})), None);
        let mut open = closed.clone();
        open["additionalProperties"] = json!(true);
        let mut free = closed.clone();
        free["required"] = json!(["a"]);
        let mut inner = closed.clone();
        inner["properties"]["b"]["items"] = json!({"type": "object"});
        for (schema, why) in [
            (open.clone(), "/ is not closed"),
            (free, "/properties/b is not required"),
            (inner, "/properties/b/items is not closed"),
            (json!({"anyOf": [{"type": "null"}, open]}), "/anyOf/1 is not closed"),
            (json!({"type": ["object", "null"]}), "/ is not closed"),
            (json!({"type": "array"}), "/ does not say what its items are"),
            (json!({"oneOf": []}), "/ says oneOf"),
            (json!({}), "/ has no type"),
            (json!(true), "/ is no object"),
        ] {
            assert_eq!(lack(&schema).as_deref(), Some(why), "{schema}");
        }
    }
}
