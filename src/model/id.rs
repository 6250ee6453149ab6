//! Ids, names and nonces. An id is a kind letter, `-` and 12 Crockford base32 characters; names are what
//! users choose. Neither is ever a path.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Crockford's base32 alphabet in lower case: no i, l, o, u.
pub const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The first `length` base32 characters of bytes, 5 bits each, most significant first.
pub fn base32(bytes: &[u8], length: usize) -> String {
    (0..length)
        .map(|index| {
            let value = (0..5).fold(0u8, |value, bit| {
                let at = index * 5 + bit;
                let byte = bytes.get(at / 8).copied().unwrap_or(0);
                value << 1 | (byte >> (7 - at % 8)) & 1
            });
            char::from(CROCKFORD[usize::from(value)])
        })
        .collect()
}

/// Whether a text is `length` characters of the alphabet.
pub fn is_base32(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(in_base32)
}

/// Whether a byte is a character of the alphabet.
pub fn in_base32(byte: u8) -> bool {
    IN_IDS[usize::from(byte)]
}

/// Which bytes are of the alphabet.
const IN_IDS: [bool; 256] = of_set(CROCKFORD);
/// Which bytes stand in names.
const IN_NAMES: [bool; 256] =
    of_set(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._:/@+-");

/// Which bytes a set has: ids and names are read for every event of a log.
const fn of_set(set: &[u8]) -> [bool; 256] {
    let mut has = [false; 256];
    let mut at = 0;
    while at < set.len() {
        has[set[at] as usize] = true;
        at += 1;
    }
    has
}

/// Characters of an id after its letter.
pub const ID_LENGTH: usize = 12;
/// Characters of a nonce.
pub const NONCE_LENGTH: usize = 26;

/// Bytes of the text of an id.
const ID_BYTES: usize = 2 + ID_LENGTH;

/// The text of an id where it stands, so that a copy takes no room of its own. Two blanks fill it up: whole
/// words are looked at faster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(align(8))]
struct IdText([u8; ID_BYTES + 2]);

impl IdText {
    fn new(text: &str) -> Self {
        let mut bytes = [b' '; ID_BYTES + 2];
        let length = text.len().min(ID_BYTES);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self(bytes)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).ok().and_then(|text| text.get(..ID_BYTES)).unwrap_or_default()
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $letter:literal $word:literal;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
            #[schemars(transparent)]
            pub struct $name(#[schemars(with = "String")] IdText);

            impl Id for $name {
                const KIND: IdKind = IdKind::$name;
                fn from_text(text: impl AsRef<str>) -> Self { Self(IdText::new(text.as_ref())) }
                fn as_str(&self) -> &str { self.0.as_str() }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.0.as_str()) }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.0.as_str()) }
            }

            impl FromStr for $name {
                type Err = String;
                fn from_str(text: &str) -> Result<Self, String> { parse::<Self>(text) }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.0.as_str())
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    super::text::deserialize(deserializer)
                }
            }
        )+

        /// The kinds of objects that have ids.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum IdKind { $($(#[$doc])* $name,)+ }

        impl IdKind {
            /// Every kind.
            pub const ALL: &'static [IdKind] = &[$(IdKind::$name,)+];
            /// The letter that begins its ids.
            pub const fn letter(self) -> char {
                match self { $(IdKind::$name => $letter,)+ }
            }
            /// The word that people use.
            pub const fn word(self) -> &'static str {
                match self { $(IdKind::$name => $word,)+ }
            }
        }
    };
}

/// What every id type can do.
pub trait Id: Sized + Clone + fmt::Display {
    /// The kind of object.
    const KIND: IdKind;
    /// Wraps a text that is known to be an id of this kind.
    fn from_text(text: impl AsRef<str>) -> Self;
    /// The text of the id.
    fn as_str(&self) -> &str;
    /// An id of this kind from 8 or more bytes (the first 60 bits count).
    fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_text(format!("{}-{}", Self::KIND.letter(), base32(bytes, ID_LENGTH)))
    }
}

fn parse<T: Id>(text: &str) -> Result<T, String> {
    let letter = T::KIND.letter();
    match text.split_at_checked(2) {
        Some((kind, rest)) if kind.as_bytes() == [letter as u8, b'-'] && is_base32(rest, ID_LENGTH) => {
            Ok(T::from_text(text))
        }
        _ => Err(format!("not a {} id ({letter}- and 12 characters)", T::KIND.word())),
    }
}

ids! {
    /// A resumable execution container.
    SessionId 's' "session";
    /// One invocation inside a session.
    RunId 'r' "run";
    /// A validated cursor with its bindings.
    CheckpointId 'c' "checkpoint";
    /// A frozen question: the start of its content digest.
    JobId 'j' "job";
    /// One bounded transfer of work.
    HandoffId 'h' "handoff";
    /// One try at a handoff.
    AttemptId 'a' "attempt";
    /// One stored answer.
    ResultId 'x' "result";
    /// One typed event from outside.
    EventId 'e' "event";
    /// One record that a consumer applied a source.
    ReceiptId 't' "receipt";
    /// One guarded consequential write.
    EffectId 'f' "effect";
}

impl IdKind {
    /// The kind whose ids begin with this letter.
    pub fn of_letter(letter: char) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.letter() == letter)
    }
}

/// A name that a user chooses: `[A-Za-z0-9][A-Za-z0-9._:/@+_-]{0,127}`, without `..`. Never a file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
#[schemars(transparent)]
pub struct Name(#[schemars(with = "String")] Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let (mut plain, mut dots, mut before) = (true, false, 0);
        for &byte in bytes {
            plain &= IN_NAMES[usize::from(byte)];
            dots |= byte == b'.' && before == b'.';
            before = byte;
        }
        match bytes {
            [] => Err("a name has 1 to 128 characters".to_owned()),
            [_, rest @ ..] if rest.len() > 127 => Err("a name has 1 to 128 characters".to_owned()),
            [first, ..] if !first.is_ascii_alphanumeric() => {
                Err("a name begins with a letter or digit".to_owned())
            }
            _ if !plain => {
                let found =
                    text.chars().find(|c| !c.is_ascii() || !IN_NAMES[*c as usize]).unwrap_or_default();
                Err(format!("a name has letters, digits and . _ : / @ + - only, not {found:?}"))
            }
            _ if dots => Err("a name never contains ..".to_owned()),
            _ => Ok(Self(text.into())),
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// One of this crate's own words as a name.
///
/// # Errors
/// `usage` where the word is no name, which a test of its caller finds.
pub fn word(text: &str) -> crate::error::Result<Name> {
    text.parse().map_err(|bad: String| crate::error::Error::new(crate::error::Kind::Usage, bad))
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::text::deserialize(deserializer)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_only_their_own_kind_and_length() {
        assert!("s-0123456789ab".parse::<SessionId>().is_ok());
        for bad in [
            "r-0123456789ab",
            "s-0123456789a",
            "s-0123456789abc",
            "s-0123456789al",
            "s_0123456789ab",
            "S-0123456789ab",
            "s-0123456789aB",
            "",
            "s-",
            "s-../../../../a",
        ] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn base32_takes_five_bits_at_a_time() {
        assert_eq!(base32(&[0xff, 0xff, 0xff], 4), "zzzz");
        assert_eq!(base32(&[0b0000_1000, 0b0100_0000], 3), "110");
        assert_eq!(SessionId::from_bytes(&[0; 8]).as_str(), "s-000000000000");
    }

    #[test]
    fn the_alphabet_is_what_ids_are_read_by() {
        for byte in 0..128u8 {
            let text = char::from(byte).to_string();
            assert_eq!(is_base32(&text, 1), CROCKFORD.contains(&byte), "{text:?}");
        }
        assert!(!is_base32("é", 2));
    }

    #[test]
    fn names() {
        let long = "a".repeat(128);
        for good in ["a", "novel/pride", "gate/ch01-review", "x.y:z@1+2_3", long.as_str()] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        let longer = "a".repeat(129);
        for bad in ["", ".a", "/a", "a..b", "a b", "a\0b", "é", "a\u{202e}b", longer.as_str(), "-a", "a\n"] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn letters_are_unique() {
        for kind in IdKind::ALL {
            assert_eq!(IdKind::of_letter(kind.letter()), Some(*kind));
        }
    }
}
