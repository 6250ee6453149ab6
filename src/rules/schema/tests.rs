//! Schemas as tables: violations with their places, and what is not a schema.

use serde_json::json;

use super::*;

#[test]
fn violations_have_places_and_short_words() {
    let schema = json!({
        "type": "object",
        "required": ["verdict", "evidence"],
        "properties": {
            "verdict": {"enum": ["accept", "reject"]},
            "evidence": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 2}},
            "score": {"type": "integer", "minimum": 1, "maximum": 5},
            "a/b": {"const": {"x": 1}},
            "either": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "code": {"pattern": "^[a-z]+$"}
        },
        "dependentRequired": {"score": ["reason"]},
        "additionalProperties": false
    });
    let cases = [
        (json!({"verdict": "accept", "evidence": ["ok"]}), vec![]),
        (json!({}), vec![("/evidence", "required"), ("/verdict", "required")]),
        (json!([]), vec![("", "must be object, not array")]),
        (
            json!({"verdict": "maybe", "evidence": [], "extra~": 1, "reason2": 1}),
            vec![
                ("/evidence", "must have 1 items or more, not 0"),
                ("/extra~0", "not allowed"),
                ("/reason2", "not allowed"),
                ("/verdict", "must be one of \"accept\", \"reject\""),
            ],
        ),
        (
            json!({
                "verdict": "reject", "evidence": ["ok", 1, "x"],
                "score": 9, "a/b": 2, "either": 1, "code": "A"
            }),
            vec![
                ("/a~1b", "must be {\"x\":1}"),
                ("/code", "must match ^[a-z]+$"),
                ("/either", "must match one of the alternatives"),
                ("/evidence/1", "must be string, not number"),
                ("/evidence/2", "must have 2 characters or more, not 1"),
                ("/reason", "required beside \"score\""),
                ("/score", "must be 5 at most"),
            ],
        ),
    ];
    for (instance, want) in cases {
        let got = check(&schema, &instance).unwrap();
        let got: Vec<_> = got.iter().map(|v| (v.pointer.as_str(), v.message.as_str())).collect();
        assert_eq!(got, want, "{instance}");
    }
}

#[test]
fn boolean_schemas_and_inner_references_work() {
    assert_eq!(check(&json!(true), &json!(1)), Ok(vec![]));
    assert_eq!(check(&json!(false), &json!(1)), Ok(vec![Violation::new("", "not allowed")]));
    let schema = json!({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}});
    assert_eq!(check(&schema, &json!(["x"])).unwrap()[0], Violation::new("/0", "must be number, not string"));
    let meta = json!({"$schema": DRAFT, "$ref": DRAFT});
    assert_eq!(check(&meta, &json!({"type": "string"})), Ok(vec![]));
    assert_eq!(check(&meta, &json!({"type": "text"})).unwrap()[0].pointer, "/type");
}

#[test]
fn at_most_twenty_are_named() {
    let got = check(&json!({"items": false}), &json!(vec![1; 50])).unwrap();
    assert_eq!(got.len(), 20);
    let names: Vec<String> = (0..50).map(|n| format!("p{n:02}")).collect();
    let got = check(&json!({"required": names}), &json!({})).unwrap();
    assert_eq!((got.len(), got[0].pointer.as_str(), got[19].pointer.as_str()), (20, "/p00", "/p19"));
}

#[test]
fn what_is_not_a_schema_is_refused_with_its_place() {
    let cases = [
        (json!("text"), "", "not a 2020-12 schema: must be boolean or object, not string"),
        (json!({"type": "text"}), "/type", "not a 2020-12 schema: "),
        (
            json!({"properties": {"a": {"minLength": -1}}}),
            "/properties/a/minLength",
            "not a 2020-12 schema: ",
        ),
        (json!({"required": "a"}), "/required", "not a 2020-12 schema: must be array, not string"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            "/$schema",
            "must be the draft 2020-12",
        ),
        (json!({"$schema": "https://example.com/x"}), "/$schema", "must be the draft 2020-12"),
        (
            json!({"items": {"$ref": "https://example.com/x"}}),
            "/items/$ref",
            "refers to another document, https",
        ),
        (json!({"items": {"$ref": "file:///etc/passwd"}}), "/items/$ref", "refers to another document, file"),
        (
            json!({"items": {"$ref": "other.json#/a"}}),
            "/items/$ref",
            "refers to another document, nf:///other",
        ),
        (json!({"items": {"$ref": "#/$defs/none"}}), "/items/$ref", "refers to nothing"),
        (json!({"items": {"$ref": "#none"}}), "/items/$ref", "refers to nothing"),
        (json!({"items": {"$ref": "http://[x"}}), "/items/$ref", "not a"),
        (json!({"pattern": "("}), "/pattern", "not a regular expression"),
        (json!({"pattern": "(?=a)"}), "/pattern", "not a regular expression"),
        (json!({"items": {"pattern": "\\p{Foo}"}}), "/items/pattern", "not a regular expression"),
        (json!({"allOf": [{"pattern": "a{1000000000}"}]}), "/allOf/0/pattern", "not a regular expression"),
        (json!({"patternProperties": {"\\p{Foo}": true}}), "/patternProperties/\\p{Foo}", "not a regular"),
        (
            json!({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}}),
            "/$defs/b",
            "the $id nf:///x is there twice",
        ),
    ];
    for (schema, pointer, message) in cases {
        let violation = compile_check(&schema).unwrap_err();
        assert_eq!(violation.pointer, pointer, "{schema}: {violation:?}");
        assert!(violation.message.starts_with(message), "{schema}: {violation:?}");
        assert_eq!(check(&schema, &json!(1)), Err(violation));
    }
}

#[test]
fn data_inside_a_schema_is_not_taken_for_schemas() {
    let schema = json!({
        "const": {"pattern": "("}, "enum": [{"pattern": "("}], "examples": [{"pattern": "("}],
        "default": {"pattern": "("},
        "properties": {"pattern": {"type": "string"}, "default": {"pattern": "^a"}}
    });
    assert_eq!(compile_check(&schema), Ok(()));
    assert!(compile_check(&json!({"properties": {"default": {"pattern": "\\p{Foo}"}}})).is_err());
}

#[test]
fn circles_and_large_schemas_come_to_an_end() {
    let circle = json!({"$ref": "#"});
    assert!(check(&circle, &json!(1)).is_ok_and(|found| !found.is_empty()));
    let tree = json!({"properties": {"left": {"$ref": "#"}}, "additionalProperties": false});
    assert_eq!(check(&tree, &json!({"left": {"left": {"x": 1}}})).unwrap()[0].pointer, "/left/left/x");
    let schema = json!({"allOf": vec![json!({}); SCHEMA_LIMIT]});
    assert!(compile_check(&schema).unwrap_err().message.contains("5000 objects"));
    let names: serde_json::Map<_, _> = (0..=PATTERN_LIMIT).map(|n| (format!("a{n}"), json!(true))).collect();
    let refused = compile_check(&json!({"patternProperties": names})).unwrap_err();
    assert!(refused.message.contains("256 regular expressions"), "{refused:?}");
}

const WORDS: &str = "items additionalProperties contains propertyNames not if then else unevaluatedItems \
    unevaluatedProperties properties $defs dependentSchemas allOf anyOf oneOf prefixItems type required \
    enum examples const default title description $comment format pattern deprecated readOnly writeOnly \
    uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems \
    maxItems minProperties maxProperties minContains maxContains $ref $schema $id $anchor $dynamicRef \
    $dynamicAnchor $vocabulary patternProperties dependentRequired contentSchema dependencies definitions \
    unheard";
const VALUES: &str = r##"[null, true, 0, 3, -1, 1.0, 0.5, 1e300, "", "string", "^[a-z]+$", "#/$defs/a",
    "#/%zz", "integer", "https://json-schema.org/draft/2020-12/schema", [], ["string"],
    ["string", "string"], ["string", 1], [1], [[]], [true], [{}], [{"type": "string"}], {},
    {"type": "array"}, {"a": true}, {"a": {"minLength": 1}}, {"a": 1}, {"a": ["b"]}, {"a": {}}]"##;

/// Every word that may be plain, with values of all shapes.
fn plain_or_not() -> Vec<Value> {
    let values: Vec<Value> = serde_json::from_str(VALUES).unwrap();
    WORDS.split(' ').flat_map(|word| values.iter().map(move |value| json!({ word: value }))).collect()
}

#[test]
fn what_is_plainly_a_schema_is_one_by_the_meta_schema() {
    let (plain, others): (Vec<_>, Vec<_>) = plain_or_not().into_iter().partition(plain::is_plain);
    assert!(plain.len() > 200, "{}", plain.len());
    for wrong in [json!({"minLength": -1}), json!({"required": ["a", "a"]}), json!({"properties": {"a": 1}})]
    {
        assert!(!plain::is_plain(&wrong) && compile_check(&wrong).is_err(), "{wrong}");
    }
    assert!(others.len() > plain.len());
    // All at once, since the meta-schema takes long: where one were no schema, the whole would be none.
    let whole = json!({"$defs": {"a": true}, "allOf": plain});
    assert!(plain::is_plain(&whole));
    compile(ADDRESS, &whole, &|_| None).unwrap();
    assert_eq!(compile_check(&whole), Ok(()));
}

#[test]
fn a_plain_schema_that_leads_nowhere_is_refused_with_its_place() {
    let nowhere = compile_check(&json!({"properties": {"a": {"$ref": "#/$defs/b"}}})).unwrap_err();
    assert_eq!(nowhere.pointer, "/properties/a/$ref");
    let pattern = compile_check(&json!({"items": {"pattern": "("}})).unwrap_err();
    assert_eq!(pattern.pointer, "/items/pattern");
}
