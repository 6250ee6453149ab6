//! JSON pointers (RFC 6901) of places in a value. Only names places; must never change a value.

use serde_json::{Number, Value};

/// How many differences are named at most.
const DIFFERENCES_LIMIT: usize = 20;

/// The pointer of a member or element of what `base` points at; `~` and `/` in the token are escaped.
pub fn push_pointer(base: &str, token: &str) -> String {
    format!("{base}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// The pointers of all members, at any depth, whose key is wanted, in the order of the value (keys
/// sorted, an outer member before those inside it).
pub fn pointers_of_keys(value: &Value, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    collect_keys(value, "", wanted, &mut found);
    found
}

/// One value's part of [`pointers_of_keys`].
fn collect_keys(value: &Value, base: &str, wanted: &dyn Fn(&str) -> bool, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let pointer = push_pointer(base, key);
                if wanted(key) {
                    found.push(pointer.clone());
                }
                collect_keys(member, &pointer, wanted, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_keys(item, &push_pointer(base, &index.to_string()), wanted, found);
            }
        }
        _ => {}
    }
}

/// The pointers at which two values differ, as deep as possible, at most 20; empty when they are the same
/// JSON. Numbers are compared as RFC 8785 writes them, so 1 and 1.0 do not differ. A member or element
/// that only one side has is named itself.
pub fn differing(a: &Value, b: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(a, b, "", &mut found);
    found
}

/// One pair's part of [`differing`].
fn compare(a: &Value, b: &Value, base: &str, found: &mut Vec<String>) {
    if found.len() == DIFFERENCES_LIMIT {
        return;
    }
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                compare_parts(left.get(key), right.get(key), &push_pointer(base, key), found);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                let pointer = push_pointer(base, &index.to_string());
                compare_parts(left.get(index), right.get(index), &pointer, found);
            }
        }
        (Value::Number(left), Value::Number(right)) if same_number(left, right) => {}
        (left, right) if left == right => {}
        _ => found.push(base.to_owned()),
    }
}

/// Compares two members or elements, either of which may be missing.
fn compare_parts(a: Option<&Value>, b: Option<&Value>, pointer: &str, found: &mut Vec<String>) {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b, pointer, found),
        _ if found.len() < DIFFERENCES_LIMIT => found.push(pointer.to_owned()),
        _ => {}
    }
}

/// Whether two numbers are the same; two integers are compared exactly.
fn same_number(a: &Number, b: &Number) -> bool {
    a == b || (a.is_f64() != b.is_f64() || a.is_f64()) && a.as_f64() == b.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_escaped() {
        let cases = [("", "a", "/a"), ("/a", "b/c", "/a/b~1c"), ("/a", "~1", "/a/~01"), ("", "", "/")];
        for (base, token, want) in cases {
            assert_eq!(push_pointer(base, token), want);
            let value = json!({token: 1});
            if base.is_empty() {
                assert_eq!(value.pointer(want), Some(&json!(1)));
            }
        }
    }

    #[test]
    fn keys_are_found_at_any_depth_in_order() {
        let value =
            json!({"b": [{"gold": 1}, 2, {"x": {"gold": {"gold": 3}}}], "a/b": {"GOLD": 1}, "gold": 0});
        let found = pointers_of_keys(&value, &|key| key.eq_ignore_ascii_case("gold"));
        assert_eq!(found, ["/a~1b/GOLD", "/b/0/gold", "/b/2/x/gold", "/b/2/x/gold/gold", "/gold"]);
        assert!(pointers_of_keys(&json!("gold"), &|_| true).is_empty());
    }

    #[test]
    fn differences_are_named_as_deep_as_they_are() {
        let cases = [
            (json!(1), json!(1.0), vec![]),
            (json!(-0.0), json!(0), vec![]),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), vec![""]),
            (json!(1), json!(2), vec![""]),
            (json!({"a": [1, 2]}), json!({"a": [1, 3, 4]}), vec!["/a/1", "/a/2"]),
            (json!({"a": 1, "b": null}), json!({"b": {}, "c": 1}), vec!["/a", "/b", "/c"]),
            (json!({"a": {}}), json!({"a": []}), vec!["/a"]),
        ];
        for (a, b, want) in cases {
            assert_eq!(differing(&a, &b), want, "{a} {b}");
            assert_eq!(differing(&b, &a), want, "{b} {a}");
        }
        let many: Vec<u32> = (0..100).collect();
        assert_eq!(differing(&json!(many), &json!([])).len(), 20);
        assert_eq!(differing(&json!(many), &json!(vec![-1; 100])).len(), 20);
    }
}
