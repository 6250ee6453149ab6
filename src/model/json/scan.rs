//! Reads the shape of JSON without recursion and finds every fault with its place.
//!
//! Hands single numbers and strings to `serde_json`, so that their values are its own. Must never skip,
//! repair or recurse.

use serde_json::{Map, Number, Value};

use super::guard::{self, Guard, Limits, Refusal, Step};
use super::{Fault, FaultKind};

/// The budget of one JSON text: the callers bound its bytes, this bounds the memory of its values.
const LIMITS: Limits = Limits { nodes: 1_000_000, bytes: usize::MAX };

/// Why the reading stops at a byte offset.
type Stop = (usize, Refusal);

/// An array or object that is not closed yet.
enum Frame {
    Array(Vec<Value>),
    Object(Map<String, Value>),
}

/// What must come next.
enum Next {
    Value,
    FirstItem,
    FirstKey,
    Key,
    After(Value),
}

/// The value at the start of a text, after white space, and the bytes taken.
pub(super) fn value(text: &str) -> Result<(Value, usize), Fault> {
    let mut scan = Scan { text, at: 0, guard: Guard::new(LIMITS), frames: Vec::new() };
    scan.run().map_err(|(offset, refusal)| Fault::at(text, offset, refusal, scan.guard.pointer()))
}

/// The offset of the first byte from `from` that is not JSON white space.
pub(super) fn white_space(text: &str, from: usize) -> usize {
    let rest = &text.as_bytes()[from..];
    from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// One reading of one value.
struct Scan<'text> {
    text: &'text str,
    at: usize,
    guard: Guard,
    frames: Vec<Frame>,
}

impl Scan<'_> {
    fn run(&mut self) -> Result<(Value, usize), Stop> {
        let mut next = Next::Value;
        loop {
            self.at = match next {
                // After the outermost value nothing more is read, not even white space.
                Next::After(value) if self.frames.is_empty() => return Ok((value, self.at)),
                _ => white_space(self.text, self.at),
            };
            next = match next {
                Next::Value => self.value()?,
                Next::FirstItem if self.peek() == Some(b']') => self.close(Frame::Array(Vec::new()))?,
                Next::FirstItem => {
                    self.frames.push(Frame::Array(Vec::new()));
                    self.guard.enter(Step::Index(0));
                    Next::Value
                }
                Next::FirstKey if self.peek() == Some(b'}') => self.close(Frame::Object(Map::new()))?,
                Next::FirstKey => {
                    self.frames.push(Frame::Object(Map::new()));
                    self.key()?
                }
                Next::Key => self.key()?,
                Next::After(value) => self.after(value)?,
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// A stop here: the input ended, or what stands here is not what must.
    fn unexpected(&self, wanted: &str) -> Stop {
        let refusal = match self.peek() {
            None => Refusal::new(FaultKind::Truncated, format!("the input ends where {wanted} must stand")),
            Some(_) => Refusal::syntax(format!("{wanted} must stand here")),
        };
        (self.at, refusal)
    }

    /// A stop here by one of the guard's rules.
    fn stop(&self, refusal: Refusal) -> Stop {
        (self.at, refusal)
    }

    fn value(&mut self) -> Result<Next, Stop> {
        self.guard.node().map_err(|refusal| self.stop(refusal))?;
        match self.peek() {
            Some(open @ (b'[' | b'{')) => {
                self.guard.open().map_err(|refusal| self.stop(refusal))?;
                self.at += 1;
                Ok(if open == b'[' { Next::FirstItem } else { Next::FirstKey })
            }
            Some(b'"') => Ok(Next::After(Value::String(self.string()?))),
            Some(b'-' | b'0'..=b'9') => self.number().map(Next::After),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') if !self.rest().starts_with("nan") => self.word("null", Value::Null),
            Some(b']' | b'}') if !self.frames.is_empty() => {
                Err(self.stop(Refusal::syntax("a value must stand here; a comma may not come last")))
            }
            None if self.frames.is_empty() => Err(self.stop(Refusal::syntax("there is no value"))),
            _ => Err(self.not_a_value()),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The stop for what begins no value; the words for numbers that are not finite have their own kind.
    fn not_a_value(&self) -> Stop {
        let word = self.rest().trim_start_matches(['+', '-']).bytes();
        let word: String = word
            .take(9)
            .take_while(u8::is_ascii_alphabetic)
            .map(|b| b.to_ascii_lowercase() as char)
            .collect();
        if matches!(word.as_str(), "nan" | "inf" | "infinity") {
            return self
                .stop(Refusal::new(FaultKind::NonFinite, "the words NaN and Infinity are not JSON numbers"));
        }
        self.unexpected("a value")
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Next, Stop> {
        let rest = self.rest();
        if rest.starts_with(word) && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric()) {
            self.at += word.len();
            return Ok(Next::After(value));
        }
        if word.starts_with(rest) {
            self.at = self.text.len();
        }
        Err(self.unexpected(word))
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<Value, Stop> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        let whole = self.digits();
        if whole == 0 {
            return Err(self.not_a_value());
        }
        if whole > 1 && self.text.as_bytes()[first] == b'0' {
            return Err((start, Refusal::syntax("a number may not begin with a zero before other digits")));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        let literal = &self.text[start..self.at];
        if integer && !in_range(literal) {
            return Err((start, Refusal::range()));
        }
        // The literal is sound, so the only thing that can still be wrong is its size.
        let number = serde_json::from_str::<Number>(literal);
        number.map(Value::Number).map_err(|_| (start, Refusal::not_finite()))
    }

    /// Reads a string from its opening quote to its closing one.
    fn string(&mut self) -> Result<String, Stop> {
        let start = self.at;
        let mut plain = true;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    self.escape()?;
                }
                Some(0..=0x1f) => {
                    return Err(self.stop(Refusal::syntax("a control character in a string must be escaped")));
                }
                Some(_) => self.at += 1,
                None => return Err(self.unexpected("the closing quote of a string")),
            }
        }
        self.at += 1;
        let quoted = &self.text[start..self.at];
        let content = match plain {
            true => quoted[1..quoted.len() - 1].to_owned(),
            false => serde_json::from_str(quoted)
                .map_err(|error| (start, Refusal::syntax(format!("the string cannot be read: {error}"))))?,
        };
        self.guard.text(content.len()).map_err(|refusal| (start, refusal))?;
        Ok(content)
    }

    /// Passes one escape; both halves of a surrogate pair are one.
    fn escape(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let lone =
            || (start, Refusal::new(FaultKind::LoneSurrogate, "half of a surrogate pair stands alone"));
        match self.unit()? {
            Some(0xd800..=0xdbff) => match self.peek() {
                Some(b'\\') => match self.unit()? {
                    Some(0xdc00..=0xdfff) => Ok(()),
                    _ => Err(lone()),
                },
                Some(_) => Err(lone()),
                None => Err(self.unexpected("the other half of a surrogate pair")),
            },
            Some(0xdc00..=0xdfff) => Err(lone()),
            _ => Ok(()),
        }
    }

    /// Passes a backslash and what it escapes; gives the code unit of a `\u` escape.
    fn unit(&mut self) -> Result<Option<u32>, Stop> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(None)
            }
            Some(b'u') => {
                self.at += 1;
                let mut unit = 0;
                for _ in 0..4 {
                    let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
                    let Some(digit) = digit else { return Err(self.unexpected("a hexadecimal digit")) };
                    unit = unit * 16 + digit;
                    self.at += 1;
                }
                Ok(Some(unit))
            }
            _ => Err(self.unexpected("an escape that JSON knows")),
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in double quotes"));
        }
        let key = self.string()?;
        if let Some(Frame::Object(members)) = self.frames.last() {
            self.guard.enter_member(members, key).map_err(|refusal| (start, refusal))?;
        }
        self.at = white_space(self.text, self.at);
        if self.peek() != Some(b':') {
            return Err(self.unexpected("a colon"));
        }
        self.at += 1;
        Ok(Next::Value)
    }

    /// Leaves an array or object whose closing bracket is here.
    fn close(&mut self, frame: Frame) -> Result<Next, Stop> {
        self.at += 1;
        self.guard.close();
        Ok(Next::After(match frame {
            Frame::Array(items) => Value::Array(items),
            Frame::Object(members) => Value::Object(members),
        }))
    }

    /// Puts a value where it belongs and reads the comma or bracket after it.
    fn after(&mut self, value: Value) -> Result<Next, Stop> {
        let step = self.guard.leave();
        let Some(mut frame) = self.frames.pop() else { return Ok(Next::After(value)) };
        match (&mut frame, step) {
            (Frame::Array(items), _) => items.push(value),
            (Frame::Object(members), Some(Step::Key(key))) => {
                members.insert(key, value);
            }
            (Frame::Object(_), _) => {}
        }
        match (frame, self.peek()) {
            (frame @ Frame::Array(_), Some(b']')) | (frame @ Frame::Object(_), Some(b'}')) => {
                self.close(frame)
            }
            (Frame::Array(items), Some(b',')) => {
                self.at += 1;
                self.guard.enter(Step::Index(items.len()));
                self.frames.push(Frame::Array(items));
                Ok(Next::Value)
            }
            (frame @ Frame::Object(_), Some(b',')) => {
                self.at += 1;
                self.frames.push(frame);
                Ok(Next::Key)
            }
            (Frame::Array(_), _) => Err(self.unexpected("a comma or ]")),
            (Frame::Object(_), _) => Err(self.unexpected("a comma or }")),
        }
    }
}

/// Whether a sound integer literal is within ±(2^53 - 1).
fn in_range(literal: &str) -> bool {
    literal.parse::<i128>().is_ok_and(|number| guard::integer(number).is_ok())
}
