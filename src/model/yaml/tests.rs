//! YAML as tables: what it stands for, what is refused, and how little a hostile text costs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::FaultKind::*;
use super::*;

fn fault(text: &str) -> Fault {
    match parse(text.as_bytes()) {
        Ok(value) => panic!("{text:?} was read as {value}"),
        Err(fault) => fault,
    }
}

#[test]
fn sound_texts_become_json() {
    let cases = [
        ("a: 1\nb: [x, 'y', \"z\"]\n", json!({"a": 1, "b": ["x", "y", "z"]})),
        ("--- # c\na: ~\nb:\nc: null\nd: true\n...\n", json!({"a": null, "b": null, "c": null, "d": true})),
        ("- 0x10\n- 0o17\n- -7\n- +3\n- 1.5\n- 1e3\n- .5\n", json!([16, 15, -7, 3, 1.5, 1000.0, 0.5])),
        ("a: |\n  one\n  two\nb: >-\n  one\n  two\n", json!({"a": "one\ntwo\n", "b": "one two"})),
        (
            "d: \"2026-01-01\"\ne: '2026-01-01'\nf: on 2026-01-01 it\n\"2026-01-02\": x\n",
            json!({"d": "2026-01-01", "e": "2026-01-01", "f": "on 2026-01-01 it", "2026-01-02": "x"}),
        ),
        ("base: &b {x: 1}\nuse: [*b, *b]\n", json!({"base": {"x": 1}, "use": [{"x": 1}, {"x": 1}]})),
        (
            "yes: on\nno: 010\ntime: 12:30:45\nversion: 1.2.3\n",
            json!({"yes": "on", "no": "010", "time": "12:30:45", "version": "1.2.3"}),
        ),
        (
            "a: hello !world\nb: \"x, !y\"\n# !c\nc: |\n  !d\n  [!e\n",
            json!({"a": "hello !world", "b": "x, !y", "c": "!d\n[!e\n"}),
        ),
        ("\"<<\": 1\n\"1\": 2\n'true': 3\n\"\": 4\n", json!({"<<": 1, "1": 2, "true": 3, "": 4})),
        ("9007199254740991", json!(9_007_199_254_740_991_i64)),
        ("- '1e400'\n- \".inf\"\n- 'NaN'\n- inf\n", json!(["1e400", ".inf", "NaN", "inf"])),
        ("\"\\u00e9 \\U0001F600\"", json!("é 😀")),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text.as_bytes()), Ok(want), "{text:?}");
    }
}

#[test]
fn every_refusal_has_its_kind_place_and_pointer() {
    let long = "1".repeat(45);
    let longer = "1".repeat(400);
    let cases: Vec<(&str, FaultKind, (usize, usize), &str)> = vec![
        ("", Syntax, (1, 1), ""),
        ("# only a comment\n", Syntax, (2, 1), ""),
        ("a: [1, 2\nb: 3\n", Syntax, (2, 2), "/a/2"),
        ("a: 'x\n", Syntax, (2, 1), "/a"),
        ("a: b: c\n", Syntax, (1, 5), ""),
        ("a: *nowhere\n", Syntax, (1, 4), "/a"),
        ("a: 1\n---\nb: 2\n", Syntax, (3, 1), ""),
        ("{\"a\": 1} x", Syntax, (1, 10), ""),
        ("a: 1\nb: {c: 1, d: 2, \"c\": 3}\n", DuplicateKey, (2, 17), "/b/c"),
        ("é: 1\nb: 2\né: 3\n", DuplicateKey, (3, 1), "/é"),
        ("a: [x, !foo y]\n", Tag, (1, 8), "/a/1"),
        ("a: !!str 5\n", Tag, (1, 4), "/a"),
        ("a: {\"b\":!!int \"5\"}\n", Tag, (1, 9), "/a/b"),
        ("- !!binary aGk=\n", Tag, (1, 3), "/0"),
        ("a:\n  !!set {x, y}\n", Tag, (2, 3), "/a"),
        ("a: !<tag:yaml.org,2002:int> '7'\n", Tag, (1, 4), "/a"),
        ("! 12\n", Tag, (1, 1), ""),
        ("!!map {a: 1}\n", Tag, (1, 1), ""),
        ("%TAG !e! tag:example.com,2000:\n---\n!e!foo x\n", Tag, (1, 1), ""),
        ("b: &b {x: 1}\na:\n  <<: *b\n", Tag, (3, 3), "/a"),
        ("1: a\n", KeyNotString, (1, 1), ""),
        ("x:\n  true: a\n", KeyNotString, (2, 3), "/x"),
        ("~: a\n", KeyNotString, (1, 1), ""),
        ("? [a, b]\n: c\n", KeyNotString, (1, 3), ""),
        ("? {a: b}\n: c\n", KeyNotString, (1, 3), ""),
        ("1.5: a\n", KeyNotString, (1, 1), ""),
        ("a: .nan\n", NonFinite, (1, 4), "/a"),
        ("[-.inf]\n", NonFinite, (1, 2), "/0"),
        ("a: 1e400\n", NonFinite, (1, 4), "/a"),
        ("a: -1.5e999\n", NonFinite, (1, 4), "/a"),
        ("a: 2026-01-01\n", Date, (1, 4), "/a"),
        ("2026-1-1: a\n", Date, (1, 1), ""),
        ("[2026-01-01T10:00:00Z]\n", Date, (1, 2), "/0"),
        ("a: 2026-01-01 10:00:00.5 +02:00\n", Date, (1, 4), "/a"),
        ("a: 9007199254740992\n", IntegerRange, (1, 4), "/a"),
        ("a: -9007199254740992\n", IntegerRange, (1, 4), "/a"),
        ("a: 18446744073709551616\n", IntegerRange, (1, 4), "/a"),
        (&long, IntegerRange, (1, 1), ""),
        (&longer, IntegerRange, (1, 1), ""),
        ("a: 0xffffffffffffffffffffffffffffffffff\n", IntegerRange, (1, 4), "/a"),
        ("\u{feff}a: 1\n", Encoding, (1, 1), ""),
        ("a: &a [*a]\n", Depth, (1, 4), ""),
    ];
    for (text, kind, place, pointer) in cases {
        let fault = fault(text);
        let got = (fault.kind, (fault.line, fault.column));
        assert_eq!(got, (kind, place), "{text:?}: {fault}");
        if kind != Depth {
            assert_eq!(fault.pointer, pointer, "{text:?}: {fault}");
        }
    }
}

#[test]
fn timestamps_are_told_from_other_strings() {
    let yes =
        ["2026-01-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "2001-12-15 2:59:43.10"];
    let no =
        ["2026-01", "2026-01-01-x", "2026-01-01 to 2026-01-02", "x2026-01-01", "2026-01-01T", "20260101", ""];
    assert!(yes.iter().all(|text| plain::is_timestamp(text)));
    assert!(["2026-01-01T10:00", "2026-01-01T10:00:00+0200"].iter().all(|text| plain::is_timestamp(text)));
    assert!(no.iter().all(|text| !plain::is_timestamp(text)));
}

#[test]
fn the_depth_limit_is_exact() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(json::DEPTH_LIMIT).as_bytes()).is_ok());
    assert_eq!(fault(&nested(json::DEPTH_LIMIT + 1)).kind, Depth);
}

#[test]
fn the_size_limit_is_exact() {
    let text = format!("\"{}\"", "x".repeat(SIZE_LIMIT - 2));
    assert!(parse(text.as_bytes()).is_ok());
    assert_eq!(fault(&format!("{text} ")).kind, Size);
    assert!(parse_either(format!(" {{\"a\": {text}}}").as_bytes()).is_ok());
}

#[test]
fn hostile_texts_are_refused_at_little_cost() {
    let mut laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ('b'..='z').zip('a'..) {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        laughs.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    let anchor = format!("a: &a [{}]\nb: [{}]\n", "x, ".repeat(20_000), "*a, ".repeat(2_000));
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), "*a, ".repeat(10_000));
    let cases = [
        (laughs, Budget),
        (anchor, Budget),
        (text, Budget),
        ("{a: ".repeat(SIZE_LIMIT / 4), Depth),
        ("[a: ".repeat(SIZE_LIMIT / 4), Depth),
        (format!("a: x\n{}b: {}", "# c\n".repeat(SIZE_LIMIT / 8), "{a: ".repeat(SIZE_LIMIT / 9)), Depth),
        (format!("[{}{}", "\"]\", ".repeat(SIZE_LIMIT / 10), "[".repeat(SIZE_LIMIT / 3)), Depth),
        ("- ".repeat(SIZE_LIMIT / 2), Depth),
        ("? ".repeat(SIZE_LIMIT / 2), KeyNotString),
        ((0..16_000).map(|n| format!("%TAG !{n}! x\n")).collect(), Tag),
        ("[!a ".repeat(SIZE_LIMIT / 4), Tag),
        ("[!!seq ".repeat(SIZE_LIMIT / 7), Depth),
        (format!("[.nan, {}", "{a: ".repeat(SIZE_LIMIT / 5)), NonFinite),
        (format!("a: 1\n---\n{}", "{a: ".repeat(SIZE_LIMIT / 5)), Syntax),
    ];
    for (text, kind) in cases {
        let start = Instant::now();
        let fault = fault(&text);
        assert_eq!(fault.kind, kind, "{}: {}", &text[..20], fault.message);
        // Far above what it takes (tenths of a second unoptimised), far below what it took (minutes).
        assert!(start.elapsed() < Duration::from_secs(8), "{}: {:?}", &text[..20], start.elapsed());
    }
}

#[test]
fn many_brackets_are_not_much_depth() {
    let items = "- {name: chapter, lines: [1, 2], note: \"[[[[[[\"}\n".repeat(3_000);
    assert_eq!(parse(items.as_bytes()).unwrap().as_array().map(Vec::len), Some(3_000));
}

#[test]
fn either_format_is_told_by_its_first_byte() {
    assert_eq!(parse_either(b" \n{\"a\": 1}"), Ok(json!({"a": 1})));
    assert_eq!(parse_either(b"a: 1"), Ok(json!({"a": 1})));
    assert_eq!(parse_either(b"[1, 2]"), Ok(json!([1, 2])));
    assert_eq!(parse_either(b"{a: 1}").unwrap_err().kind, Syntax);
    assert_eq!(parse_either(b"{\"a\": 1, \"a\": 2}").unwrap_err().pointer, "/a");
    assert_eq!(parse_either(b"a: \xff").unwrap_err().kind, Encoding);
}
