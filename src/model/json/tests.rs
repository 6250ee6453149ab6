//! The guard of JSON as tables: what passes, what is refused, and the place of every refusal.

use serde_json::{Value, json};

use super::FaultKind::*;
use super::*;

fn fault(text: &str) -> Fault {
    match parse(text.as_bytes()) {
        Ok(value) => panic!("{text:?} was read as {value}"),
        Err(fault) => fault,
    }
}

#[test]
fn sound_texts_have_their_values() {
    let cases = [
        (" 1 ", json!(1)),
        ("-0", json!(-0.0)),
        ("9007199254740991", json!(9_007_199_254_740_991_i64)),
        ("-9007199254740991", json!(-9_007_199_254_740_991_i64)),
        ("9007199254740993.0", json!(9_007_199_254_740_992.0)),
        ("1e30", json!(1e30)),
        ("1e-400", json!(0.0)),
        ("5e-324", json!(5e-324)),
        ("\t[ ]\r\n", json!([])),
        ("{ }", json!({})),
        (
            r#"{"a":[{"b":null},[true,false]],"":{"a":"x"}}"#,
            json!({"a": [{"b": null}, [true, false]], "": {"a": "x"}}),
        ),
        (r#""\ud83d\ude00\u0000\/\"\\\b\f\n\r\t\u00e9""#, json!("😀\0/\"\\\u{8}\u{c}\n\r\té")),
        ("\"\u{2028}\u{feff}\u{7f}\"", json!("\u{2028}\u{feff}\u{7f}")),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text.as_bytes()), Ok(want), "{text:?}");
    }
}

#[test]
fn every_refusal_has_its_kind_place_and_pointer() {
    let cases = [
        ("", Syntax, 0, ""),
        (" \n ", Syntax, 3, ""),
        ("[1,]", Syntax, 3, "/1"),
        ("[1 2]", Syntax, 3, ""),
        ("[1}", Syntax, 2, ""),
        ("]", Syntax, 0, ""),
        ("1 2", Syntax, 2, ""),
        ("[] x", Syntax, 3, ""),
        ("truex", Syntax, 0, ""),
        ("nul l", Syntax, 0, ""),
        ("01", Syntax, 0, ""),
        ("[1.x]", Syntax, 3, "/0"),
        ("+1", Syntax, 0, ""),
        ("'a'", Syntax, 0, ""),
        ("{a:1}", Syntax, 1, ""),
        (r#"{"a" 1}"#, Syntax, 5, "/a"),
        (r#"{"a":1,}"#, Syntax, 7, ""),
        (r#"{"a":}"#, Syntax, 5, "/a"),
        ("[\"\\x\"]", Syntax, 3, "/0"),
        ("[\"a\tb\"]", Syntax, 3, "/0"),
        (r#""\u12g4""#, Syntax, 5, ""),
        ("[/* c */1]", Syntax, 1, "/0"),
        ("[1,\u{a0}2]", Syntax, 3, "/1"),
        ("[", Truncated, 1, "/0"),
        ("[1,", Truncated, 3, "/1"),
        ("[1", Truncated, 2, ""),
        (r#"{"a"#, Truncated, 3, ""),
        (r#"{"a":{"b":[tr"#, Truncated, 13, "/a/b/0"),
        (r#"{"a":"#, Truncated, 5, "/a"),
        ("-", Truncated, 1, ""),
        ("1.", Truncated, 2, ""),
        ("[1e", Truncated, 3, "/0"),
        (r#""\ud8"#, Truncated, 5, ""),
        (r#""\ud83d"#, Truncated, 7, ""),
        (r#""\ud83d\"#, Truncated, 8, ""),
        ("\u{feff}{}", Encoding, 0, ""),
        (r#"{"a":1,"b":2,"a":3}"#, DuplicateKey, 13, "/a"),
        (r#"[{"a/b":1,"\u0061\/b":2}]"#, DuplicateKey, 10, "/0/a~1b"),
        ("[NaN]", NonFinite, 1, "/0"),
        ("[-Infinity]", NonFinite, 2, "/0"),
        ("[nan]", NonFinite, 1, "/0"),
        ("+Inf", NonFinite, 0, ""),
        (r#"{"a":1e400}"#, NonFinite, 5, "/a"),
        ("-1.5e999", NonFinite, 0, ""),
        ("[9007199254740992]", IntegerRange, 1, "/0"),
        ("-9007199254740992", IntegerRange, 0, ""),
        ("18446744073709551616", IntegerRange, 0, ""),
        (r#"{"a":123456789012345678901234567890123456789012345}"#, IntegerRange, 5, "/a"),
        (r#"["a\ud83d"]"#, LoneSurrogate, 3, "/0"),
        (r#"["\ud83d\n"]"#, LoneSurrogate, 2, "/0"),
        (r#"["\ud83d\ud83d\ude00"]"#, LoneSurrogate, 2, "/0"),
        (r#"{"\ude00":1}"#, LoneSurrogate, 2, ""),
    ];
    for (text, kind, offset, pointer) in cases {
        let fault = fault(text);
        let got = (fault.kind, fault.offset, fault.pointer.as_str());
        assert_eq!(got, (kind, offset, pointer), "{text:?}: {fault}");
        assert!(fault.message.starts_with(|first: char| first.is_ascii_lowercase()), "{}", fault.message);
    }
}

#[test]
fn places_count_lines_and_characters() {
    let fault = fault("{\r\n  \"é😀\": [1,\n\t\"ü\", x\u{1b}[31m\u{202e} and this goes on for long]\n}");
    assert_eq!((fault.line, fault.column, fault.offset), (3, 7, 26));
    assert_eq!(fault.pointer, "/é😀/2");
    assert_eq!(fault.near, "x\u{fffd}[31m\u{fffd} and this goes on");
    assert_eq!(fault.near.chars().count(), 24);
    let words = fault.to_string();
    assert!(words.starts_with("a value must stand here (line 3, column 7, at /é😀/2, near "), "{words}");
}

#[test]
fn bytes_that_are_not_utf_8_have_their_place() {
    let cases: [(&[u8], usize, &str); 4] = [
        (b"\xff\xfe{\0}\0", 0, ""),
        (b"{\"a\":\n [\"x\xe9\"]}", 10, "/a/0"),
        (b"[\"\xed\xa0\x80\"]", 2, "/0"),
        (b"[] \xc3", 3, ""),
    ];
    for (bytes, offset, pointer) in cases {
        let fault = parse(bytes).unwrap_err();
        assert_eq!((fault.kind, fault.offset, fault.pointer.as_str()), (Encoding, offset, pointer));
    }
    assert_eq!(parse(b"{\"a\":\n [\"x\xe9\"]}").unwrap_err().column, 5);
}

#[test]
fn the_depth_limit_is_exact_and_cheap() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(DEPTH_LIMIT).as_bytes()).is_ok());
    let members = format!("{}1{}", r#"{"a":"#.repeat(DEPTH_LIMIT), "}".repeat(DEPTH_LIMIT));
    assert!(parse(members.as_bytes()).is_ok());
    for depth in [DEPTH_LIMIT + 1, 100_000] {
        for text in [nested(depth), "[".repeat(depth), r#"{"a":"#.repeat(depth)] {
            assert_eq!(fault(&text).kind, Depth);
        }
    }
    assert_eq!(fault(&nested(200)).offset, DEPTH_LIMIT);
    assert_eq!(fault(&nested(200)).pointer, "/0".repeat(DEPTH_LIMIT));
}

#[test]
fn a_million_values_are_the_most() {
    let fault = fault(&format!("[{}0]", "0,".repeat(1_000_000)));
    assert_eq!((fault.kind, fault.pointer.as_str()), (Budget, "/999999"));
}

#[test]
fn every_cut_of_a_text_is_truncated_where_it_ends() {
    let text = r#"{"a":[1.5e+3,"\ud83d\ude00é",true,null],"b":{}}"#;
    for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let fault = fault(&text[..end]);
        assert_eq!((fault.kind, fault.offset), (Truncated, end), "{:?}", &text[..end]);
    }
}

#[test]
fn values_are_those_of_serde_json() {
    let text =
        r#"[0.1,1e21,-0.0,123456789012345680000.0,4.9E-324,1.7976931348623157e308,{"z":"\u00e9","a":[{}]}]"#;
    assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn a_fault_becomes_an_error_with_its_place() {
    let error = fault("[1,]").into_error("job.json");
    assert_eq!(error.kind, crate::error::Kind::BadInput);
    assert_eq!(error.details["pointer"], "/1");
    assert_eq!(error.details["kind"], "syntax");
    assert!(error.message.starts_with("job.json cannot be read: "), "{}", error.message);
}
