//! Canonical JSON (RFC 8785) out of plain JSON text: the members of each map are put in order where they stand,
//! without a tree of values between. Knows only what can be done by moving bytes, and says where that is not
//! enough; never writes a number or a string anew.

use std::ops::Range;

/// Depth up to which maps and lists are followed: that of a guarded value, and a little more.
const DEPTH: u32 = 192;
/// Digits up to which every whole number is one that a double holds.
const DIGITS: usize = 15;

/// The canonical bytes of what `serde_json` wrote without blanks; `None` where moving members is not enough: for
/// a number that is not short and whole, a key whose order in UTF-16 may be another one, a repeated key, or
/// great depth.
pub(super) fn sorted(text: &[u8]) -> Option<Vec<u8>> {
    let mut sorter = Sorter { text, at: 0, out: Vec::with_capacity(text.len()), members: Vec::new() };
    sorter.value(DEPTH)?;
    (sorter.at == text.len()).then_some(sorter.out)
}

struct Sorter<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// The members of the maps that are open: where the key stands in the text, and key and value in `out`.
    members: Vec<(Range<usize>, Range<usize>)>,
}

impl Sorter<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn copy(&mut self, to: usize) {
        self.out.extend_from_slice(&self.text[self.at..to]);
        self.at = to;
    }

    /// Copies one byte, which must be this one.
    fn sign(&mut self, sign: u8) -> Option<()> {
        (self.next()? == sign).then(|| self.copy(self.at + 1))
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.next()? {
            b'{' => self.map(depth.checked_sub(1)?),
            b'[' => self.list(depth.checked_sub(1)?),
            b'"' => {
                let to = self.string_end()?;
                self.copy(to);
                Some(())
            }
            _ => self.word(),
        }
    }

    /// The byte after the string that begins here.
    fn string_end(&self) -> Option<usize> {
        let mut at = self.at + 1;
        loop {
            at += self.text.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            match self.text[at] {
                b'"' => return Some(at + 1),
                _ => at += 2,
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        let word = &rest[..length];
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let whole = (1..=DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        (whole || matches!(word, b"true" | b"false" | b"null")).then(|| self.copy(self.at + length))
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        self.sign(b'[')?;
        if self.next()? != b']' {
            self.value(depth)?;
            while self.next()? == b',' {
                self.sign(b',')?;
                self.value(depth)?;
            }
        }
        self.sign(b']')
    }

    fn map(&mut self, depth: u32) -> Option<()> {
        self.sign(b'{')?;
        let first = self.members.len();
        let mut in_order = true;
        while self.next()? != b'}' {
            if self.members.len() > first {
                self.sign(b',')?;
            }
            let (key, from) = (self.key()?, self.out.len());
            self.copy(key.end + 1);
            self.sign(b':')?;
            self.value(depth)?;
            let before = self.members[first..].last();
            in_order &= before.is_none_or(|(before, _)| self.text[before.clone()] < self.text[key.clone()]);
            self.members.push((key, from..self.out.len()));
        }
        if !in_order {
            self.reorder(first)?;
        }
        self.members.truncate(first);
        self.sign(b'}')
    }

    /// The key that begins here, without its quotes. Of plain ASCII the order is the same in every encoding.
    fn key(&self) -> Option<Range<usize>> {
        let key = self.at + 1..self.string_end()? - 1;
        let plain = self.next()? == b'"'
            && self.text[key.clone()].iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        plain.then_some(key)
    }

    /// Puts the members of the innermost map in the order of their keys.
    fn reorder(&mut self, first: usize) -> Option<()> {
        let (text, members) = (self.text, &mut self.members[first..]);
        let from = members.first()?.1.start;
        members.sort_unstable_by(|one, other| text[one.0.clone()].cmp(&text[other.0.clone()]));
        if members.windows(2).any(|pair| text[pair[0].0.clone()] == text[pair[1].0.clone()]) {
            return None;
        }
        let read = self.out.split_off(from);
        for (number, (_, member)) in members.iter().enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&read[member.start - from..member.end - from]);
        }
        Some(())
    }
}
