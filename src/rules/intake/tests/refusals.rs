//! Refusals name the first thing that is wrong, and where.

use super::*;

/// The good answer with one part replaced: what is wrong, the reason, and the text at the place named.
const BROKEN: &[(&str, &str, &str, Reason, &str)] = &[
    ("\"verdict\"", "\u{201c}verdict\u{201d}", "a curly quote", Reason::Broken, "\u{201c}verdict"),
    ("\"reject\"", "\"reject\u{201d}", "holds a curly quote", Reason::Broken, "evidence"),
    ("\"nf\"", "\u{201c}nf\u{201d}", "a curly quote", Reason::Broken, "\u{201c}nf"),
    ("0.7}}", "0.7,}}", "a trailing comma", Reason::Broken, ",}}"),
    ("people.\"]", "people.\",]", "a trailing comma", Reason::Broken, ",]"),
    ("\"verdict\"", "// why\n\"verdict\"", "a comment", Reason::Broken, "// why"),
    ("\"verdict\"", "/* why */\"verdict\"", "a comment", Reason::Broken, "/* why"),
    ("\"verdict\"", "# why\n\"verdict\"", "a comment", Reason::Broken, "# why"),
    ("\"verdict\"", "'verdict'", "a single quote", Reason::Broken, "'verdict'"),
    ("\"reject\"", "`reject`", "a backtick", Reason::Broken, "`reject`"),
    ("\"verdict\"", "&quot;verdict&quot;", "an HTML entity", Reason::Broken, "&quot;verdict"),
    ("\"verdict\"", "verdict", "a key without double quotes", Reason::Broken, "verdict:"),
    ("\"reject\"", "reject", "a word without quotes", Reason::Broken, "reject,"),
    ("0.7", "None", "a word without quotes", Reason::Broken, "None}"),
    ("0.7", "NaN", "not finite", Reason::NonFinite, "NaN"),
    ("0.7", "-Infinity", "not finite", Reason::NonFinite, "-Infinity"),
    ("0.7", ".7", "a number", Reason::Broken, ".7"),
    ("0.7", "+0.7", "a number", Reason::Broken, "+0.7"),
    ("0.7", "07", "a number", Reason::Broken, "7}}"),
    ("0.7", "0.", "a number", Reason::Broken, "}}"),
    ("0.7", "", "a key without a value", Reason::Broken, "}}"),
    ("0.7", "...", "an ellipsis", Reason::Broken, "...}}"),
    ("0.7", "\u{2026}", "an ellipsis", Reason::Broken, "\u{2026}}}"),
    ("people.\"]", "people.\"", "a colon inside an array", Reason::Broken, ":0.7}}"),
    ("\"confidence\":0.7}}", "\"s\":[1}}", "a bracket `}` where `]` is missing", Reason::Broken, "}}"),
    ("0.7}}", "0.7]}", "a bracket `]` where `}` is missing", Reason::Broken, "]}"),
    ("0.7}}", "0.7}}}", "a closing bracket too many", Reason::Broken, "}"),
    ("\"completed\",", "\"completed\"", "no comma", Reason::Broken, "\"output\""),
    ("\"output\":", "\"output\"", "no colon", Reason::Broken, "{\"verdict\""),
    ("Nine people.", "Nine \"people\".", "text behind a string", Reason::Broken, "people"),
    ("Nine people.", "Nine\npeople.", "a line break inside a string", Reason::Broken, "\npeople"),
    ("Nine people.", "Nine\u{1}people.", "a control character", Reason::Broken, "\u{1}people"),
    ("Nine people.", "Nine\\_people.", "an escape that JSON has not", Reason::Broken, "\\_people"),
    ("\"verdict\"", "\u{2003}\"verdict\"", "an em space (U+2003)", Reason::Broken, "\u{2003}\"verdict"),
    ("\"verdict\"", "\u{200b}\"verdict\"", "a zero width space", Reason::Broken, "\u{200b}\"verdict"),
    ("\"verdict\"", "\u{feff}\"verdict\"", "a byte order mark", Reason::Broken, "\u{feff}\"verdict"),
    ("\"verdict\"", "\u{ff02}verdict\u{ff02}", "the fullwidth character", Reason::Broken, "\u{ff02}verdict"),
    ("0.7}}", "0.7}\u{ff5d}", "the fullwidth character", Reason::Broken, "\u{ff5d}"),
    ("0.7", "\u{43e}.7", "U+043E", Reason::Broken, "\u{43e}.7"),
    ("\"verdict\"", "\n> \"verdict\"", "a block quote mark", Reason::Broken, "> \"verdict\""),
    ("\"reject\"", "\"reject\",\"verdict\":\"accept\"", "verdict", Reason::DuplicateKey, ""),
    ("0.7", "9007199254740993", "", Reason::IntegerRange, ""),
    ("0.7", "1e999", "", Reason::NonFinite, ""),
    ("Nine", "\\ud800", "", Reason::LoneSurrogate, ""),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (part, by, what, reason, near) in BROKEN {
        let text = format!("Sure,\n{}\nBye", good().replacen(part, by, 1));
        let fault = take(text.as_bytes()).unwrap_err();
        assert_eq!(fault.reason, *reason, "{text}: {fault:?}");
        assert!(fault.message.contains(what), "{text}: {fault:?}");
        let (line, column) = (fault.line.unwrap(), fault.column.unwrap());
        assert!(line >= 2 && column >= 1, "{fault:?}");
        let offset = fault.offset.unwrap();
        assert!(
            text[offset..].trim_start().starts_with(near.trim_start()),
            "{by}: {} is at {offset}, wanted {near}",
            &text[offset..]
        );
        assert_eq!(look::position(&text, offset), (line, column));
        assert!(fault.ask.starts_with(fault.reason.ask()), "{}", fault.ask);
        assert!(!fault.ask.contains("reject") && !fault.ask.contains("accept"), "{}", fault.ask);
    }
}

#[test]
fn a_reply_that_ends_inside_its_value_is_truncated_wherever_it_ends() {
    for text in [good(), pretty(), format!("```json\n{}", pretty())] {
        let first = text.find('{').unwrap();
        for end in first + 1..text.len() {
            for after in ["", "\n", "\r\n \n"] {
                let fault = take(format!("{}{after}", &text[..end]).as_bytes()).unwrap_err();
                assert_eq!(fault.reason, Reason::Truncated, "{}", &text[..end]);
                assert!(fault.offset.is_some_and(|offset| offset <= end), "{fault:?}");
            }
        }
    }
}

#[test]
fn values_that_are_quoted_or_escaped_are_not_unwrapped() {
    let quoted: String = pretty().lines().map(|line| format!("> {line}\n")).collect();
    let escaped = serde_json::to_string(&good()).unwrap();
    let html = good().replace('"', "&quot;");
    let wide = good().replace('{', "\u{ff5b}").replace('}', "\u{ff5d}");
    let outer = format!("\u{ff5b}{}\u{ff5d}", &good()[1..good().len() - 1]);
    for (text, reason, what) in [
        (quoted.as_str(), Reason::Broken, "block quote"),
        (&format!("> {}\n", good()), Reason::Broken, "block quote"),
        (&escaped, Reason::Broken, "backslash"),
        (&html, Reason::Broken, "HTML entity"),
        (&wide, Reason::NoAnswer, "fullwidth bracket"),
        (&outer, Reason::NoAnswer, "fullwidth bracket"),
        (&good().replacen("\"nf\"", "nf", 1), Reason::Broken, "a key without double quotes"),
        (&good().replacen("\"nf\"", "\"NF\"", 1), Reason::NoAnswer, "no object"),
        (&good()[1..], Reason::NoAnswer, "stands in no object"),
        ("The answer is reject.", Reason::NoAnswer, "no object"),
        ("[1, 2, 3]", Reason::NoAnswer, "no object"),
        ("{\"verdict\": \"reject\"}", Reason::NoAnswer, "no object"),
        ("{\"verdict\": \"rej", Reason::Truncated, "ends"),
        ("null", Reason::NoAnswer, "no object"),
    ] {
        let fault = take(text.as_bytes()).unwrap_err();
        assert_eq!(fault.reason, reason, "{text}: {fault:?}");
        assert!(fault.message.contains(what), "{text}: {fault:?}");
    }
}

#[test]
fn offsets_are_those_of_the_reply_as_given() {
    let text = good().replace("0.7", "NaN");
    let at = text.find("NaN").unwrap();
    let marked = format!("\u{feff}{text}");
    assert_eq!(take(marked.as_bytes()).unwrap_err().offset, Some(at + 3));
    let wide: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(take(&wide).unwrap_err().offset, Some(2 + 2 * at));
    assert_eq!(take(b"{\"nf\":\"caf\xe9\"}").unwrap_err().offset, Some(10));
}

#[test]
fn several_broken_ones_are_counted() {
    let broken = good().replace("0.7", "NaN");
    let fault = take(format!("{broken}\n{broken}\n{broken}").as_bytes()).unwrap_err();
    assert_eq!((fault.reason, fault.line), (Reason::NonFinite, Some(1)));
    assert!(fault.message.ends_with("2 more do not parse"), "{}", fault.message);
}
