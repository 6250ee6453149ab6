//! How far a text is JSON: one walk from an opening bracket to its closing one, to the first character
//! that no JSON has there, or to the end. Never recurses, never makes a value, never looks back.

/// A walk over one run.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    pub outcome: Outcome,
    /// Whether a no-break space stood between tokens, where it is read as a space.
    pub no_break_space: bool,
    /// Where brackets were first nested deeper than the guard allows.
    pub deep: Option<usize>,
    /// The last comma between tokens.
    pub comma: usize,
    /// The last string, its quotes included; it may not be whole.
    pub string: (usize, usize),
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// At the byte after the bracket that closes the first.
    Whole(usize),
    /// At the end of the text, with all before it as JSON has it.
    Cut,
    /// At a character that JSON does not have there.
    Broken(Stop),
}

/// The first character that is not JSON, and what was wanted in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    pub at: usize,
    pub wanted: Wanted,
}

/// What JSON has at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A value, after a colon or a comma.
    Value,
    /// A value or `]`, after `[`.
    FirstValue,
    /// A key, after a comma.
    Key,
    /// A key or `}`, after `{`.
    FirstKey,
    /// A colon, after a key.
    Colon,
    /// A comma or the closing bracket of the array or object, after a value.
    Comma { object: bool },
    /// More of a string: no control character may stand in it.
    StringText,
    /// One of JSON's escapes, after a backslash.
    Escape,
    /// A digit of a number.
    Digit,
}

/// The deepest nesting that the guarded reader takes; beyond it only the place is noted.
const DEEP: usize = 128;

/// Walks the text from the bracket at `start`; linear in what it passes.
pub(super) fn walk(text: &str, start: usize) -> Walk {
    let mut walker = Walker {
        bytes: text.as_bytes(),
        at: start,
        wanted: Wanted::Value,
        objects: Vec::new(),
        walk: Walk {
            outcome: Outcome::Cut,
            no_break_space: false,
            deep: None,
            comma: start,
            string: (start, start),
        },
    };
    loop {
        walker.space();
        match walker.token() {
            Ok(()) if walker.objects.is_empty() => {
                walker.walk.outcome = Outcome::Whole(walker.at);
                return walker.walk;
            }
            Ok(()) => {}
            Err(end) => {
                walker.walk.outcome = end.map_or(Outcome::Cut, Outcome::Broken);
                return walker.walk;
            }
        }
    }
}

struct Walker<'a> {
    bytes: &'a [u8],
    at: usize,
    wanted: Wanted,
    /// For each open bracket, whether it is an object's.
    objects: Vec<bool>,
    walk: Walk,
}

/// Why a token did not come: nothing at the end of the text, else the place.
type End = Option<Stop>;

impl Walker<'_> {
    fn space(&mut self) {
        loop {
            match self.bytes.get(self.at..) {
                Some([b' ' | b'\t' | b'\n' | b'\r', ..]) => self.at += 1,
                Some([0xC2, 0xA0, ..]) => {
                    self.walk.no_break_space = true;
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<(), End> {
        let byte = *self.bytes.get(self.at).ok_or(None)?;
        match (self.wanted, byte) {
            (Wanted::Value | Wanted::FirstValue, b'{' | b'[') => self.open(byte == b'{'),
            (Wanted::FirstValue, b']') | (Wanted::FirstKey, b'}') => self.close(),
            (Wanted::Value | Wanted::FirstValue, _) => self.scalar(byte)?,
            (Wanted::Key | Wanted::FirstKey, b'"') => {
                self.string()?;
                self.wanted = Wanted::Colon;
            }
            (Wanted::Colon, b':') => {
                self.at += 1;
                self.wanted = Wanted::Value;
            }
            (Wanted::Comma { object }, b',') => {
                self.walk.comma = self.at;
                self.at += 1;
                self.wanted = if object { Wanted::Key } else { Wanted::Value };
            }
            (Wanted::Comma { object: true }, b'}') | (Wanted::Comma { object: false }, b']') => self.close(),
            (wanted, _) => return Err(self.stop(wanted)),
        }
        Ok(())
    }

    fn stop(&self, wanted: Wanted) -> End {
        Some(Stop { at: self.at, wanted })
    }

    fn open(&mut self, object: bool) {
        if self.objects.len() == DEEP {
            self.walk.deep.get_or_insert(self.at);
        }
        self.objects.push(object);
        self.at += 1;
        self.wanted = if object { Wanted::FirstKey } else { Wanted::FirstValue };
    }

    fn close(&mut self) {
        self.objects.pop();
        self.at += 1;
        self.after_value();
    }

    fn after_value(&mut self) {
        self.wanted = Wanted::Comma { object: self.objects.last().copied().unwrap_or(false) };
    }

    fn scalar(&mut self, byte: u8) -> Result<(), End> {
        match byte {
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => return Err(self.stop(self.wanted)),
        }
        self.after_value();
        Ok(())
    }

    /// A literal. A part of one at the very end of the text is cut, not broken.
    fn word(&mut self, word: &[u8]) -> Result<(), End> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(None)
        } else {
            Err(self.stop(self.wanted))
        }
    }

    fn string(&mut self) -> Result<(), End> {
        let start = self.at;
        self.at += 1;
        loop {
            let found = self.bytes.get(self.at).copied();
            self.walk.string = (start, self.at);
            match found.ok_or(None)? {
                b'"' => {
                    self.at += 1;
                    self.walk.string = (start, self.at);
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..0x20 => return Err(self.stop(Wanted::StringText)),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), End> {
        match self.bytes.get(self.at + 1).copied().ok_or(None)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                for digit in self.at + 2..self.at + 6 {
                    if !self.bytes.get(digit).ok_or(None)?.is_ascii_hexdigit() {
                        return Err(self.stop(Wanted::Escape));
                    }
                }
                self.at += 6;
            }
            _ => return Err(self.stop(Wanted::Escape)),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), End> {
        // A number that starts wrongly, as `-Infinity` does, is reported where it starts.
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else if self.digits().is_err_and(|end| end.is_some()) {
            return Err(Some(Stop { at: start, wanted: Wanted::Digit }));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), End> {
        if !self.bytes.get(self.at).ok_or(None)?.is_ascii_digit() {
            return Err(self.stop(Wanted::Digit));
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Outcome {
        walk(text, 0).outcome
    }

    fn broken(at: usize, wanted: Wanted) -> Outcome {
        Outcome::Broken(Stop { at, wanted })
    }

    #[test]
    fn whole_values_end_at_their_own_bracket() {
        for text in [
            "{}",
            "[]",
            "[1,-0.5e+3,0,true,false,null]",
            "{\"a\":{\"b\":[\"}\",\"\\\"\",\"\\u00e9\"]}}",
            "{\u{a0}\"a\" :\r\n\t1\u{a0}}",
        ] {
            assert_eq!(outcome(text), Outcome::Whole(text.len()), "{text}");
            assert_eq!(outcome(&format!("{text}]}}")), Outcome::Whole(text.len()), "{text}");
        }
    }

    #[test]
    fn every_cut_of_a_value_is_cut() {
        let text = "{\"a\":[true,null,-1.5e-3,\"x\\u00e9\\n\"],\"b\":{}}";
        for end in 1..text.len() {
            assert_eq!(outcome(&text[..end]), Outcome::Cut, "{}", &text[..end]);
        }
    }

    #[test]
    fn the_first_wrong_character_is_named() {
        for (text, want) in [
            ("{a:1}", broken(1, Wanted::FirstKey)),
            ("{\"a\" 1}", broken(5, Wanted::Colon)),
            ("{\"a\":}", broken(5, Wanted::Value)),
            ("{\"a\":1,}", broken(7, Wanted::Key)),
            ("[1,]", broken(3, Wanted::Value)),
            ("[,1]", broken(1, Wanted::FirstValue)),
            ("[1 2]", broken(3, Wanted::Comma { object: false })),
            ("[1}", broken(2, Wanted::Comma { object: false })),
            ("{\"a\":1]", broken(6, Wanted::Comma { object: true })),
            ("[\"a\nb\"]", broken(3, Wanted::StringText)),
            ("[\"\\x\"]", broken(2, Wanted::Escape)),
            ("[\"\\u00g0\"]", broken(2, Wanted::Escape)),
            ("[01]", broken(2, Wanted::Comma { object: false })),
            ("[1.]", broken(3, Wanted::Digit)),
            ("[1e]", broken(3, Wanted::Digit)),
            ("[-Infinity]", broken(1, Wanted::Digit)),
            ("[+1]", broken(1, Wanted::FirstValue)),
            ("[NaN]", broken(1, Wanted::FirstValue)),
            ("[trie]", broken(1, Wanted::FirstValue)),
            ("[1\u{2003}]", broken(2, Wanted::Comma { object: false })),
        ] {
            assert_eq!(outcome(text), want, "{text}");
        }
    }

    #[test]
    fn depth_is_noted_where_it_goes_too_far() {
        assert_eq!(walk(&"[".repeat(128), 0).deep, None);
        assert_eq!(walk(&"[".repeat(100_000), 0).deep, Some(128));
    }
}
