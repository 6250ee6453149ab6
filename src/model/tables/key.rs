//! Keys: a table and a tuple of parts as bytes whose order is that of the tuples. Owns how they are made and
//! compared; knows no value.

use std::cmp::Ordering;
use std::ops::Bound;

use super::Table;
use crate::model::hash::Hash;

/// Bytes that a key has at most: what an index on disk takes.
pub const KEY_LIMIT: usize = 511;
/// Bytes of a part; three of them and a number stay below the limit of a key.
const PART_LIMIT: usize = 160;
/// Bytes that are compared at once.
type Word = [u8; 8];
/// Words that most keys do with, and that take no room of their own.
const WORDS: usize = 5;
const ROOM: usize = WORDS * size_of::<Word>();

/// A key: a table and a tuple of parts.
#[derive(Clone)]
pub struct Key(Bytes);

#[derive(Clone)]
enum Bytes {
    /// Up to a length; zero behind.
    Short(u8, [Word; WORDS]),
    Long(Vec<u8>),
}

impl Ord for Key {
    /// As the bytes compare. A fold does little else, so that it goes by whole words as far as they tell.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let (Bytes::Short(length, one), Bytes::Short(other_length, other)) = (&self.0, &other.0) else {
            return self.by_bytes(other);
        };
        let mut at = 0;
        while at < WORDS {
            if one[at] != other[at] {
                return u64::from_be_bytes(one[at]).cmp(&u64::from_be_bytes(other[at]));
            }
            at += 1;
        }
        // The longer one has zeros where the shorter one has nothing.
        length.cmp(other_length)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.bytes().escape_ascii())
    }
}

impl Key {
    /// The order of keys of which one is long. Apart, so that the way of the others is a short one.
    #[cold]
    #[inline(never)]
    fn by_bytes(&self, other: &Self) -> Ordering {
        let (one, other) = (self.bytes(), other.bytes());
        match (one.first_chunk(), other.first_chunk()) {
            (Some(first), Some(second)) if first != second => {
                u64::from_be_bytes(*first).cmp(&u64::from_be_bytes(*second))
            }
            _ => one.cmp(other),
        }
    }

    /// The empty tuple of a table; as a range, the whole table.
    pub fn new(table: Table) -> Self {
        Self::of(&[table as u8])
    }

    /// The key that has these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Bytes::Short(0, [[0; 8]; WORDS])).with(bytes, &[])
    }

    /// Adds a text with its length before it.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        // Names have at most 128 bytes and hashes 68; a longer part is named by its hash.
        if text.len() > PART_LIMIT {
            return self.text(&Hash::of(text.as_bytes()).hex());
        }
        self.with(&[text.len() as u8], text.as_bytes())
    }

    /// Adds a number, in an order that sorts as numbers do.
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        self.with(&number.to_be_bytes(), &[])
    }

    /// Adds the beginning of a last text; ids are looked up by their prefixes.
    #[must_use]
    pub fn raw(self, text: &str) -> Self {
        self.with(&[], text.as_bytes())
    }

    fn with(mut self, first: &[u8], then: &[u8]) -> Self {
        match &mut self.0 {
            Bytes::Short(length, words) => {
                let bytes = words.as_flattened_mut();
                let from = usize::from(*length);
                let (middle, to) = (from + first.len(), from + first.len() + then.len());
                if to > ROOM {
                    return Self(Bytes::Long([&bytes[..from], first, then].concat()));
                }
                bytes[from..middle].copy_from_slice(first);
                bytes[middle..to].copy_from_slice(then);
                *length = to as u8;
            }
            Bytes::Long(bytes) => {
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(then);
            }
        }
        self
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short(length, words) => &words.as_flattened()[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }

    /// The end of the keys that begin with this one.
    pub(super) fn after_all(&self) -> Bound<Vec<u8>> {
        let mut end = self.bytes().to_vec();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Bound::Excluded(end);
            }
        }
        Bound::Unbounded
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_key_is_longer_than_an_index_takes() {
        let long = "x".repeat(1000);
        let key = Key::new(Table::Receipt).text(&long).text(&"y".repeat(160)).text(&long).number(1);
        assert!(key.bytes().len() <= KEY_LIMIT);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn keys_stand_in_the_order_of_their_bytes(
            one in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(u8::MAX)], 0..12),
            other in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(u8::MAX)], 0..12),
            shared in proptest::collection::vec(any::<u8>(), 0..48),
        ) {
            let (one, other) = ([shared.clone(), one].concat(), [shared, other].concat());
            prop_assert_eq!(Key::of(&one).cmp(&Key::of(&other)), one.cmp(&other));
            prop_assert_eq!(Key::of(&one) == Key::of(&other), one == other);
        }

        #[test]
        fn a_key_is_the_same_however_it_was_made(
            text in "[a-z]{0,200}", number in any::<u64>(), raw in "[a-z]{0,50}",
        ) {
            let key = Key::new(Table::Kind).raw(&raw).text(&text).number(number);
            prop_assert_eq!(&key, &Key::of(key.bytes()));
            if text.len() <= PART_LIMIT {
                let (text, number) = ([&[text.len() as u8], text.as_bytes()].concat(), number.to_be_bytes());
                prop_assert_eq!(key.bytes(), [b"k", raw.as_bytes(), &text, &number].concat());
            }
        }
    }
}
