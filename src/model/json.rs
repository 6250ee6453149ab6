//! The guarded I-JSON reader (RFC 8259 and RFC 7493): the one door through which JSON from outside comes
//! in. What passes has one meaning for every reader and keeps its value in RFC 8785 form.
//!
//! Owns the faults of reading, with their places, and the JSON pointers of values. `serde_json` reads the
//! single numbers and strings; the shape is read here, without recursion, so that every fault has a place
//! and no input can exhaust the stack. The rules themselves (`json/guard.rs`) are shared with
//! [`crate::model::yaml`]. Must never repair, guess or normalise, and knows no schema.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Kind};

pub(crate) mod guard;
mod pointer;
mod scan;
#[cfg(test)]
mod tests;

pub use pointer::{differing, pointers_of_keys, push_pointer};

/// Arrays and objects may stand in one another up to this depth.
pub const DEPTH_LIMIT: usize = 128;

/// The largest magnitude of an integer that every reader of JSON keeps exactly: 2^53 - 1.
pub const INTEGER_LIMIT: i128 = 9_007_199_254_740_991;

/// How many characters of the text a fault shows.
const NEAR_CHARACTERS: usize = 24;

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Not the grammar of the format, or nothing at all.
    Syntax,
    /// The input ends inside a value.
    Truncated,
    /// Not UTF-8, or a byte order mark in front.
    Encoding,
    /// An object has a key twice, also when only their escapes differ.
    DuplicateKey,
    /// NaN, an infinity, or a number that overflows to one.
    NonFinite,
    /// An integer literal beyond ±(2^53 - 1).
    IntegerRange,
    /// Half of a surrogate pair, escaped.
    LoneSurrogate,
    /// Nested deeper than [`DEPTH_LIMIT`].
    Depth,
    /// More values or text than the reader allows, counted after aliases expand.
    Budget,
    /// A YAML tag or merge key.
    Tag,
    /// A YAML key that is not a string.
    KeyNotString,
    /// An unquoted YAML date or timestamp.
    Date,
    /// More bytes than the format is read for.
    Size,
}

/// Why a text was not read, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The same in words, lower case, without the place.
    pub message: String,
    /// Bytes from the start of the text.
    pub offset: usize,
    /// The line, from 1; a line ends with a line feed.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// JSON pointer (RFC 6901) of the value or member that is wrong; empty for the root.
    pub pointer: String,
    /// Up to 24 characters of the text from that place; what does not print is shown as U+FFFD.
    pub near: String,
}

impl Fault {
    /// A fault at a byte offset of a text; an offset beyond the text or inside a character moves back.
    pub(crate) fn at(text: &str, offset: usize, refusal: guard::Refusal, pointer: String) -> Self {
        let offset = text.floor_char_boundary(offset);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            kind: refusal.kind,
            message: refusal.message,
            offset,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            pointer,
            near: text[offset..].chars().take(NEAR_CHARACTERS).map(printable).collect(),
        }
    }

    /// The error of a command that reads `what`, with the place in its details: [`Kind::TooLarge`] for
    /// limits on size, else [`Kind::BadInput`].
    pub fn into_error(self, what: impl fmt::Display) -> Error {
        let kind = match self.kind {
            FaultKind::Size | FaultKind::Budget => Kind::TooLarge,
            _ => Kind::BadInput,
        };
        let details = serde_json::to_value(&self).unwrap_or_default();
        Error::new(kind, format!("{what} cannot be read: {self}")).details(details)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {}", self.message, self.line, self.column)?;
        if !self.pointer.is_empty() {
            write!(f, ", at {}", self.pointer)?;
        }
        if !self.near.is_empty() {
            write!(f, ", near {:?}", self.near)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Fault {}

/// A character as it may stand in a message: white space as a space, what does not print replaced, so
/// that no text can move the cursor or turn the direction of a terminal.
fn printable(character: char) -> char {
    match character {
        '\'' | '"' | '\\' => character,
        '\n' | '\r' | '\t' => ' ',
        other if other.escape_debug().len() > 1 => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

/// Reads one JSON value that fills the input; white space may surround it.
///
/// Refuses, with the place: what is not RFC 8259, invalid UTF-8, a byte order mark, duplicate keys,
/// integer literals (no point, no exponent) beyond ±(2^53 - 1), numbers that are not finite, lone
/// surrogates, depth over [`DEPTH_LIMIT`], and more than a million values. Clause: semantic jobs,
/// fingerprint, "refused at parse".
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    let text = text_of(bytes)?;
    let (value, end) = scan::value(text)?;
    let rest = scan::white_space(text, end);
    if rest < text.len() {
        let refusal = guard::Refusal::syntax("there is more text after the value");
        return Err(Fault::at(text, rest, refusal, String::new()));
    }
    Ok(value)
}

/// The text of bytes, or an encoding fault: a byte order mark, or the first byte that is not UTF-8.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Fault> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.starts_with('\u{feff}') => {
            let refusal = guard::Refusal::encoding("the text begins with a byte order mark");
            Err(Fault::at(text, 0, refusal, String::new()))
        }
        Ok(text) => Ok(text),
        Err(error) => {
            let good = error.valid_up_to();
            let sound = String::from_utf8_lossy(&bytes[..good]);
            // The sound part ends inside the value that holds the bad byte, so its fault has the pointer.
            let pointer = match scan::value(&sound) {
                Err(fault) if fault.kind == FaultKind::Truncated => fault.pointer,
                _ => String::new(),
            };
            let refusal = guard::Refusal::encoding("the byte here is not UTF-8");
            Err(Fault::at(&sound, good, refusal, pointer))
        }
    }
}
