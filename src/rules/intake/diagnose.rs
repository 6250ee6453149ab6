//! In words, why a run is not JSON: the character that stopped it, and where. Must never propose what the
//! text should have said, and its words hold nothing of the reply but single characters.

use super::Reason;
use super::syntax::{Stop, Walk, Wanted};

/// What stopped a run.
pub(super) struct Told {
    pub reason: Reason,
    /// The place to name; for a trailing comma that of the comma.
    pub at: usize,
    pub what: String,
}

/// Names the character that stopped the walk.
pub(super) fn tell(text: &str, walk: &Walk, stop: Stop) -> Told {
    let rest = &text[stop.at..];
    let broken = |what: String| Told { reason: Reason::Broken, at: stop.at, what };
    let c = match rest.chars().next() {
        Some(c) => c,
        None => return broken("the end".to_owned()),
    };
    if matches!(stop.wanted, Wanted::StringText | Wanted::Escape) {
        return broken(in_string(stop.wanted, c).to_owned() + &curly_before(text, walk));
    }
    let value = matches!(stop.wanted, Wanted::Value | Wanted::FirstValue | Wanted::Digit);
    let infinite = ["NaN", "Infinity", "-Infinity", "+Infinity", "-NaN"];
    if value && infinite.iter().any(|word| rest.starts_with(word)) {
        let what = "a number that is not finite, which JSON has not".to_owned();
        return Told { reason: Reason::NonFinite, at: stop.at, what };
    }
    if let Some(what) = strange(text, stop.at, c) {
        return broken(what);
    }
    if matches!(c, '}' | ']') {
        return closing(text, walk, stop, c);
    }
    broken(plain(text, stop, c) + &curly_before(text, walk))
}

fn in_string(wanted: Wanted, c: char) -> &'static str {
    match (wanted, c) {
        (Wanted::Escape, _) => "an escape that JSON has not, inside a string",
        (_, '\n' | '\r') => "a line break inside a string: its closing quote is missing, or it needs `\\n`",
        _ => "a control character inside a string",
    }
}

/// Characters that stand outside strings nowhere in JSON and often come from somewhere known.
fn strange(text: &str, at: usize, c: char) -> Option<String> {
    let rest = &text[at..];
    let code = u32::from(c);
    let told = match c {
        '\u{201c}'..='\u{201f}' | '\u{2018}'..='\u{201b}' | '\u{ab}' | '\u{bb}' => {
            format!("a curly quote {c} (U+{code:04X}) where JSON has a straight one")
        }
        '\'' => "a single quote where JSON has a double one".to_owned(),
        '`' if rest.starts_with("```") => "a code fence inside the value".to_owned(),
        '`' => "a backtick where JSON has a double quote".to_owned(),
        '&' => "an HTML entity, or its `&`, outside a string".to_owned(),
        '/' if rest.starts_with("//") || rest.starts_with("/*") => "a comment, which JSON has not".to_owned(),
        '#' => "a comment, which JSON has not".to_owned(),
        '\\' => "a backslash outside a string: was the value pasted as a quoted text?".to_owned(),
        '\u{2026}' => "an ellipsis in place of a part of the value".to_owned(),
        '.' if rest.starts_with("...") => "an ellipsis in place of a part of the value".to_owned(),
        '>' if starts_line(text, at) => "a block quote mark `>`: quoted lines are not unwrapped".to_owned(),
        '\u{ff01}'..='\u{ff5e}' => {
            format!("the fullwidth character {c} (U+{code:04X}), not its ASCII look-alike")
        }
        _ => format!("{} (U+{code:04X}) outside a string", space_name(c)?),
    };
    Some(told)
}

fn starts_line(text: &str, at: usize) -> bool {
    text[..at].trim_end_matches(' ').ends_with(['\n', '\r'])
}

fn space_name(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2002}' => "an en space",
        '\u{2003}' => "an em space",
        '\u{2009}' => "a thin space",
        '\u{200a}' => "a hair space",
        '\u{200b}' => "a zero width space",
        '\u{200c}' => "a zero width non-joiner",
        '\u{200d}' => "a zero width joiner",
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "a direction mark",
        '\u{2028}' => "a line separator",
        '\u{2029}' => "a paragraph separator",
        '\u{202f}' => "a narrow no-break space",
        '\u{2060}' => "a word joiner",
        '\u{3000}' => "an ideographic space",
        '\u{feff}' => "a byte order mark inside the text",
        '\u{ad}' => "a soft hyphen",
        _ if c.is_whitespace() => "a space that JSON has not",
        _ if c.is_control() => "a control character",
        _ => return None,
    })
}

fn closing(text: &str, walk: &Walk, stop: Stop, c: char) -> Told {
    let after_comma = text.as_bytes()[walk.comma] == b','
        && text[walk.comma + 1..stop.at].chars().all(|c| c.is_whitespace());
    let (at, what) = match stop.wanted {
        Wanted::Key | Wanted::Value if after_comma => (walk.comma, "a trailing comma".to_owned()),
        Wanted::Value => (stop.at, "a key without a value".to_owned()),
        Wanted::Colon => (stop.at, "a key without a colon and a value".to_owned()),
        Wanted::Digit => (stop.at, "a number that JSON does not write like this".to_owned()),
        _ => {
            let missing = if c == '}' { ']' } else { '}' };
            (stop.at, format!("a bracket `{c}` where `{missing}` is missing"))
        }
    };
    Told { reason: Reason::Broken, at, what }
}

fn plain(text: &str, stop: Stop, c: char) -> String {
    let before = text[..stop.at].chars().next_back();
    let number = c.is_ascii_digit() || matches!(c, '+' | '.' | '-');
    let told = match (stop.wanted, c) {
        (Wanted::Digit, _) => "a number that JSON does not write like this",
        (Wanted::Value | Wanted::FirstValue, _) if number => "a number that JSON does not write like this",
        (Wanted::Comma { .. }, _) if number && before.is_some_and(|c| c.is_ascii_digit()) => {
            "a number that JSON does not write like this"
        }
        (Wanted::Comma { object: false }, ':') => "a colon inside an array: is its `]` missing?",
        (Wanted::Comma { .. }, '"' | '{' | '[') => "no comma between two values",
        (Wanted::Comma { .. }, _) if before == Some('"') => {
            "text behind a string: a quote inside the string needs `\\\"`, or a comma is missing"
        }
        (Wanted::Comma { .. }, _) => "text where a comma or a closing bracket is wanted",
        (Wanted::Colon, _) => "no colon behind a key",
        (Wanted::Key | Wanted::FirstKey, '{' | '[') => "a bracket where a key is wanted",
        (Wanted::Key | Wanted::FirstKey, ',') => "a comma where a key is wanted",
        (Wanted::Key | Wanted::FirstKey, _) => "a key without double quotes",
        (_, ',') => "a comma where a value is wanted",
        (_, ':') => "a colon where a value is wanted",
        _ => "a word without quotes that is not true, false or null",
    };
    if c.is_ascii() { told.to_owned() } else { format!("{told} ({c}, U+{:04X})", u32::from(c)) }
}

/// A hint for a string that was opened straight and closed curly: it went on to the next straight quote,
/// so that the walk stopped too late.
fn curly_before(text: &str, walk: &Walk) -> String {
    let (start, end) = walk.string;
    let curly = |c: char| matches!(c, '\u{201c}'..='\u{201f}');
    match text[start..end].find(curly) {
        Some(length) => {
            let (line, column) = super::look::position(text, start + length);
            format!("; the string before it holds a curly quote at line {line}, column {column}")
        }
        None => String::new(),
    }
}
