//! What the source text of YAML shows and the parser does not: quotes, tags, and scalars that some
//! readers of YAML take for more than a string.
//!
//! Looks at text only. Must never change it or decide a value.

use std::collections::BTreeSet;

use crate::model::json::FaultKind;
use crate::model::json::guard::Refusal;

/// The fewest digits of an integer that does not fit the parser's widest type and becomes a float.
const LONG_DIGITS: usize = 39;

/// The offset of the first line that defines a tag prefix, if there is one. The parser's time grows with
/// the square of their number, and they serve no purpose without tags.
pub(super) fn tag_directive(text: &str) -> Option<usize> {
    match text.starts_with("%TAG") {
        true => Some(0),
        false => text.find("\n%TAG").map(|end| end + 1),
    }
}

/// The offsets of every `!` that would begin a tag if a node could begin there, in order.
pub(super) fn tag_marks(text: &str) -> Vec<usize> {
    let mut marks = Vec::new();
    let mut before = '\n';
    for (offset, character) in text.char_indices() {
        if character == '!' && (before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':')) {
            marks.push(offset);
        }
        before = character;
    }
    marks
}

/// Whether a scalar that stands in the text as it is has no quotes around it.
pub(super) fn has_no_quotes(text: &str, scalar: &str) -> bool {
    let start = (scalar.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    !matches!(before, Some(b'"' | b'\''))
}

/// The bits of the floats that the integers of 39 digits or more in a text would be read as.
pub(super) fn long_integers(text: &str) -> BTreeSet<u64> {
    let tokens = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_')));
    tokens
        .map(|token| token.trim_start_matches(['+', '-']))
        .filter(|token| token.len() >= LONG_DIGITS && token.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|token| token.parse::<f64>().ok())
        .map(f64::to_bits)
        .collect()
}

/// Refuses a string without quotes that another reader takes for something else: a date or timestamp, a
/// number too large for the parser, a merge key.
pub(super) fn check(scalar: &str, is_key: bool) -> Result<(), Refusal> {
    if is_key && scalar == "<<" {
        return Err(Refusal::new(FaultKind::Tag, "merge keys are not read: write the members out"));
    }
    if is_timestamp(scalar) {
        return Err(Refusal::new(FaultKind::Date, "a date has no quotes: write it as a string in quotes"));
    }
    let unsigned = scalar.strip_prefix(['+', '-']).unwrap_or(scalar);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Ok(());
    }
    let radix = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let digits = if radix == 10 { unsigned } else { &unsigned[2..] };
    let is_whole = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    let overflows = unsigned.parse::<f64>().is_ok_and(f64::is_infinite);
    match (radix, is_whole, overflows) {
        (10, true, true) | (2 | 8 | 16, true, _) => Err(Refusal::range()),
        (10, false, true) => Err(Refusal::not_finite()),
        _ => Ok(()),
    }
}

/// Whether a scalar is entirely a date, or a date and a time, as YAML 1.1 reads them.
pub(super) fn is_timestamp(scalar: &str) -> bool {
    let Some(rest) = date(scalar) else { return false };
    if rest.is_empty() {
        return true;
    }
    let time = rest.strip_prefix(['T', 't']).unwrap_or_else(|| rest.trim_start_matches([' ', '\t']));
    time.len() < rest.len() && clock(time).is_some_and(is_zone)
}

/// What follows a date `2026-01-31`, if there is one.
fn date(text: &str) -> Option<&str> {
    let rest = digits(text, 4, 4)?.strip_prefix('-')?;
    digits(digits(rest, 1, 2)?.strip_prefix('-')?, 1, 2)
}

/// What follows a time `10:30` or `10:30:00.25`, if there is one.
fn clock(text: &str) -> Option<&str> {
    let minutes = digits(digits(text, 1, 2)?.strip_prefix(':')?, 2, 2)?;
    let Some(seconds) = minutes.strip_prefix(':') else { return Some(minutes) };
    let rest = digits(seconds, 2, 2)?;
    Some(
        rest.strip_prefix(['.', ','])
            .map_or(rest, |part| part.trim_start_matches(|c: char| c.is_ascii_digit())),
    )
}

/// Whether a text is nothing, or a zone such as `Z`, `+02:00` or `-5`, after white space or not.
fn is_zone(text: &str) -> bool {
    let zone = text.trim_start_matches([' ', '\t']);
    if matches!(zone, "" | "Z" | "z") {
        return true;
    }
    let hours = zone.strip_prefix(['+', '-']).and_then(|hours| digits(hours, 1, 2));
    hours.is_some_and(|rest| {
        rest.is_empty() || digits(rest.strip_prefix(':').unwrap_or(rest), 2, 2).is_some_and(str::is_empty)
    })
}

/// What follows `least` to `most` digits, as many as there are, if there are enough.
fn digits(text: &str, least: usize, most: usize) -> Option<&str> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least).then(|| &text[count..])
}
