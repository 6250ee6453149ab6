//! Events that mean harm: each is refused with its place, and nothing is written.

use super::*;

#[test]
fn hostile_input_is_refused_with_its_place_and_nothing_is_written() {
    let project = Project::new();
    project.start();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let large = format!("\"{}\"", "x".repeat(70_000));
    let grows = format!("[{}]", vec!["1e20"; 6_000].join(","));
    let cases: [(&[u8], i32, &str); 11] = [
        (br#"{"a": 1, "\u0061": 2}"#, 1, "bad_input"),
        (br#"{"a": "\ud800"}"#, 1, "bad_input"),
        (b"{\"a\": \"\xff\"}", 1, "bad_input"),
        (br#"{"a": 9007199254740993}"#, 1, "bad_input"),
        (br#"{"a": 1e999}"#, 1, "bad_input"),
        (br#"{"a": 1} {"b": 2}"#, 1, "bad_input"),
        (b"", 1, "bad_input"),
        (deep.as_bytes(), 1, "bad_input"),
        (nested.as_bytes(), 1, "bad_input"),
        (large.as_bytes(), 1, "too_large"),
        (grows.as_bytes(), 1, "too_large"),
    ];
    for (payload, code, kind) in cases {
        refused_with(&project, &put(&["--payload", "-"]), payload, code, kind);
    }
    let error = refused(&project, &put(&["--payload", r#"{"a": [1, {"b": 1, "b": 2}]}"#]), 1, "bad_input");
    assert_eq!(error["details"]["pointer"], "/a/1/b");
    for name in ["", "a b", "../x", "a..b", "a\u{1b}[31m", "a\n", "\u{202e}x", &"k".repeat(129)] {
        refused(&project, &["event", "put", "x.a", "--key", name], 2, "usage");
        refused(&project, &put(&["--resource", name]), 2, "usage");
        refused(&project, &put(&["--source", name]), 2, "usage");
        refused(&project, &put(&["--artifact", &format!("{name}=ch01.md")]), 2, "usage");
    }
    for path in ["/etc/passwd", "../x", ".novelforge/store.json", "nothing.md"] {
        refused(&project, &put(&["--artifact", &format!("a={path}")]), 1, "bad_input");
    }
    refused(&project, &put(&["--artifact", "a=ch01.md", "--artifact", "a=job.yaml"]), 2, "usage");
    refused(&project, &put(&["--artifact", "ch01.md"]), 2, "usage");
    refused(&project, &put(&["--payload", "nothing.json"]), 1, "io");
    for flag in ["--actor", "--transport", "--ref"] {
        refused(&project, &put(&[flag, ""]), 2, "usage");
        refused(&project, &put(&[flag, &"x".repeat(1025)]), 1, "too_large");
    }
    let many: Vec<String> = (0..65).map(|number| format!("--artifact=a{number}=ch01.md")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    refused(&project, &put(&many), 1, "too_large");
    let told = ["--actor", "J\u{1b}[31mane\u{202e}", "--payload", r#"{"\u001b[2J": "\u0000\u202e"}"#];
    let event = done(&project, &put(&told))["event"].to_string().replace('"', "");
    for arguments in [&["show", event.as_str()][..], &["list", "event"], &["log"]] {
        let text = project.nf(arguments).expect(0).stdout;
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\0']), "{arguments:?}: {text}");
    }
}
