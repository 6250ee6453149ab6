//! Large and hostile replies are decided in linear time and without recursion.

use std::time::{Duration, Instant};

use super::*;

/// Far above what a debug build needs, far below what anything quadratic would.
const LIMIT: Duration = Duration::from_secs(20);

/// As many bytes as are read, or a small part of that where nothing is optimised: what is quadratic would
/// need many minutes for that as well.
const BYTES: usize = if cfg!(debug_assertions) { MAX_BYTES / 32 } else { MAX_BYTES };

fn filled_with(part: &str) -> String {
    part.repeat(BYTES / part.len())
}

#[test]
fn large_hostile_replies_are_refused_quickly() {
    for part in [
        "{",
        "[",
        "]",
        "}",
        "\n",
        " ",
        "\u{a0}",
        "\"",
        "`",
        ">",
        "{\n",
        "[\n",
        "[x\n",
        "{x\n",
        "{a\n",
        "[x\r",
        "[\u{2003}\n",
        "[\n\n\n\n",
        "{\"\n",
        "{\"a\"\n",
        "[1 \n",
        "{\"nf\":",
        "{\"nf\":\n",
        "[{\"nf\":",
        "{}",
        "[]",
        "{\"a\":1}",
        "{\"nf\"}",
        "[\"nf\"]",
        "{\"nf\":[",
        "{\\\"nf\\\":",
        "[x]",
        "{ \u{a0}",
        "```\n",
        "~~~\n{\n",
        "``` {\n",
        "\\",
        "{\"\\",
        "# NF FORM h-1\n",
        "# NF FORM h-1\n# END NF FORM h-1\n",
        "nonce",
        "nonce: ",
        "nf",
        "[Image]",
        "[x {",
        "[x\n]\n",
        "{x }\n[y\n",
        "\u{feff}",
        "> {\n",
        "{\u{201c}nf\u{201d}:1}\n",
    ] {
        let text = filled_with(part);
        let begun = Instant::now();
        let fault = take(text.as_bytes()).unwrap_err();
        let taken = begun.elapsed();
        assert!(taken < LIMIT, "{part:?}: {taken:?}, {}", fault.reason);
        assert!(fault.message.len() < 10_000, "{part:?}");
        let begun = Instant::now();
        assert_eq!(nonces(text.as_bytes()), [""; 0]);
        assert!(begun.elapsed() < LIMIT, "{part:?}");
    }
}

#[test]
fn many_candidates_are_compared_quickly() {
    let text = filled_with("{\"nf\":1}\n");
    let begun = Instant::now();
    assert_eq!(outcome(text.as_bytes()), "ok prose_stripped");
    let different: String = (0..200_000).map(|number| format!("{{\"nf\":{number}}}\n")).collect();
    let fault = take(different.as_bytes()).unwrap_err();
    assert_eq!((fault.reason, fault.found.len()), (Reason::Ambiguous, 4));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn depth_is_refused_by_name() {
    let deep = |length: usize| format!("{}{}", "[".repeat(length), "]".repeat(length));
    for (text, want) in [
        (good().replace("0.7", &deep(100)), "ok"),
        (good().replace("0.7", &deep(200)), "depth"),
        (good().replace("0.7", &deep(100_000)), "depth"),
        (good().replace("0.7", &"[".repeat(100_000)), "depth"),
        (deep(100_000), "depth"),
        ("{\"a\":".repeat(100_000), "depth"),
        ("{\"nf\":".repeat(100_000), "depth"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want);
    }
}

#[test]
fn the_limit_is_eight_mebibytes() {
    let good = good();
    let mut text = good.clone();
    text.push_str(&" ".repeat(MAX_BYTES - good.len()));
    assert_eq!(outcome(text.as_bytes()), "ok");
    text.push(' ');
    assert_eq!(outcome(text.as_bytes()), "too_large");
    assert_eq!(candidates(text.as_bytes()), [Value::Null; 0]);
    assert_eq!(nonces(text.as_bytes()), [NONCE]);
}

#[test]
fn a_large_sound_value_is_read() {
    let long = good().replace("Nine people.", &"\u{e9}".repeat(MAX_BYTES / 2 - 1000));
    let begun = Instant::now();
    assert_eq!(outcome(long.as_bytes()), "ok");
    assert!(begun.elapsed() < LIMIT);
}
