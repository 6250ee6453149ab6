//! Canonical JSON (RFC 8785) out of plain JSON text: the members of each map are put in order where they
//! stand, without a tree of values between. Knows only what can be done by moving bytes, and says where that
//! is not enough; never writes a number or a string anew.

/// Depth up to which maps and lists are followed: that of a guarded value, and a little more.
const DEPTH: u32 = 192;
/// Digits up to which every whole number is one that a double holds.
const DIGITS: usize = 15;

/// The canonical bytes of what `serde_json` wrote without blanks; `None` where moving members is not enough:
/// for a number that is not short and whole, a key whose order in UTF-16 may be another one, a repeated key,
/// or great depth.
pub(super) fn sorted(text: &[u8]) -> Option<Vec<u8>> {
    let mut sorter = Sorter { text, at: 0, out: Vec::with_capacity(text.len()), members: Vec::new() };
    sorter.value(DEPTH)?;
    (sorter.at == text.len()).then_some(sorter.out)
}

/// A member of an open map: where its key stands in the text, and key and value in `out`.
struct Member {
    key: (usize, usize),
    from: usize,
    to: usize,
}

/// The lowest bit of each of eight bytes, and the highest.
const LOW: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = LOW << 7;

/// Whether one of eight bytes is this one. Where it is, no bit of the difference is set, and taking one away
/// sets the highest; no byte before the first such one does that.
fn has(word: u64, byte: u8) -> bool {
    let differs = word ^ (LOW * u64::from(byte));
    differs.wrapping_sub(LOW) & !differs & HIGH != 0
}

struct Sorter<'a> {
    text: &'a [u8],
    /// Up to where the text is read.
    at: usize,
    out: Vec<u8>,
    members: Vec<Member>,
}

impl Sorter<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Copies what was read since a byte of the text.
    fn copy_from(&mut self, from: usize) {
        self.out.extend_from_slice(&self.text[from..self.at]);
    }

    /// Passes over one byte, which must be this one.
    fn pass(&mut self, sign: u8) -> Option<()> {
        (self.next()? == sign).then(|| self.at += 1)
    }

    /// Reads a value, and copies it.
    fn value(&mut self, depth: u32) -> Option<()> {
        let from = self.at;
        match self.next()? {
            b'{' => return self.map(depth.checked_sub(1)?),
            b'[' => return self.list(depth.checked_sub(1)?),
            b'"' => drop(self.string()?),
            _ => self.word()?,
        }
        self.copy_from(from);
        Some(())
    }

    /// Passes over a string; says whether it is plain ASCII in which nothing is escaped. Most of a text is in
    /// strings, so that it goes by eight bytes as long as none of them is a quote or a backslash.
    fn string(&mut self) -> Option<bool> {
        self.pass(b'"')?;
        let (mut seen, mut at) = (0, self.at);
        loop {
            if let Some(eight) = self.text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
                let word = u64::from_ne_bytes(*eight);
                if !has(word, b'"') && !has(word, b'\\') {
                    (seen, at) = (seen | word, at + 8);
                    continue;
                }
            }
            let byte = *self.text.get(at)?;
            seen |= u64::from(byte);
            at += 1;
            match byte {
                b'"' => break,
                b'\\' => (seen, at) = (u64::MAX, at + 1),
                _ => {}
            }
        }
        self.at = at;
        Some(seen & HIGH == 0)
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        let word = &rest[..length];
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let whole = (1..=DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        (whole || matches!(word, b"true" | b"false" | b"null")).then(|| self.at += length)
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        let mut sign = b'[';
        self.pass(sign)?;
        if self.next()? == b']' {
            self.out.push(sign);
        } else {
            loop {
                self.out.push(sign);
                self.value(depth)?;
                sign = b',';
                if self.next()? != sign {
                    break;
                }
                self.at += 1;
            }
        }
        self.out.push(b']');
        self.pass(b']')
    }

    fn map(&mut self, depth: u32) -> Option<()> {
        self.pass(b'{')?;
        self.out.push(b'{');
        let (first, mut in_order) = (self.members.len(), true);
        while self.next()? != b'}' {
            let before = self.members[first..].last().map(|member| member.key);
            if before.is_some() {
                self.pass(b',')?;
                self.out.push(b',');
            }
            let (begin, from) = (self.at, self.out.len());
            // Of plain ASCII the order is the same in every encoding.
            let key = self.string()?.then_some((begin + 1, self.at - 1))?;
            self.pass(b':')?;
            self.copy_from(begin);
            self.value(depth)?;
            in_order &= before.is_none_or(|before| self.text[before.0..before.1] < self.text[key.0..key.1]);
            self.members.push(Member { key, from, to: self.out.len() });
        }
        if !in_order {
            self.reorder(first)?;
        }
        self.members.truncate(first);
        self.out.push(b'}');
        self.pass(b'}')
    }

    /// Puts the members of the innermost map in the order of their keys.
    fn reorder(&mut self, first: usize) -> Option<()> {
        let key = |member: &Member| &self.text[member.key.0..member.key.1];
        let members = &mut self.members[first..];
        let from = members.first()?.from;
        members.sort_unstable_by(|one, other| key(one).cmp(key(other)));
        if members.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
            return None;
        }
        let end = self.out.len();
        for (number, member) in members.iter().enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_within(member.from..member.to);
        }
        // Written behind what was read, the members take its place.
        self.out.copy_within(end.., from);
        self.out.truncate(end);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_where_they_end_whatever_stands_in_them_and_where() {
        for length in 0..36 {
            for at in 0..=length {
                for sign in ["\"", "\\", "\\\"", "\u{1}", "é", "\u{80}", "a"] {
                    let text = "x".repeat(at) + sign + &"y".repeat(length - at);
                    let value = serde_json::json!({"b": text, "a": [text, ""], "aa": 1});
                    let plain = format!("{{\"b\":{0},\"a\":[{0},\"\"],\"aa\":1}}", serde_json::json!(text));
                    let wanted = serde_json_canonicalizer::to_vec(&value).unwrap();
                    assert_eq!(sorted(plain.as_bytes()), Some(wanted), "{plain}");
                    // A key that is not plain is left to the library.
                    let keyed = format!("{{{}:1,\"a\":2}}", serde_json::json!(format!("{text}z")));
                    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphabetic());
                    assert_eq!(sorted(keyed.as_bytes()).is_some(), is_plain, "{keyed}");
                }
            }
        }
        assert_eq!(sorted(b"\"without an end"), None);
        assert_eq!(sorted(b"\"ends in an escape\\"), None);
    }
}
