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
/// Bytes that most keys do without growing.
const ROOM: usize = 40;

/// A key: a table and a tuple of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its first bytes as a number, so that most keys are told apart without looking at where they stand.
    head: Head,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head(u64, u64);

impl Head {
    const BYTES: usize = 16;

    /// Of a key that is shorter the rest is zero; where that is no difference the bytes themselves decide.
    fn of(bytes: &[u8]) -> Self {
        let mut first = [0; Self::BYTES];
        let length = bytes.len().min(Self::BYTES);
        first[..length].copy_from_slice(&bytes[..length]);
        let number = u128::from_be_bytes(first);
        Self((number >> 64) as u64, number as u64)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.head.0 != other.head.0 {
            return self.head.0.cmp(&other.head.0);
        }
        if self.head.1 != other.head.1 {
            return self.head.1.cmp(&other.head.1);
        }
        self.bytes.cmp(&other.bytes)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key {
    /// The empty tuple of a table; as a range, the whole table.
    pub fn new(table: Table) -> Self {
        let mut bytes = Vec::with_capacity(ROOM);
        bytes.push(table as u8);
        Self { head: Head::of(&bytes), bytes }
    }

    /// The key that has these bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { head: Head::of(&bytes), bytes }
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
        let before = self.bytes.len();
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(then);
        if before < Head::BYTES {
            self.head = Head::of(&self.bytes);
        }
        self
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The end of the keys that begin with this one.
    pub(super) fn after_all(&self) -> Bound<Vec<u8>> {
        let mut end = self.bytes.clone();
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
        #[test]
        fn keys_stand_in_the_order_of_their_bytes(
            one in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(u8::MAX)], 0..20),
            other in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(u8::MAX)], 0..20),
            shared in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let (one, other) = ([shared.clone(), one].concat(), [shared, other].concat());
            prop_assert_eq!(Key::of(one.clone()).cmp(&Key::of(other.clone())), one.cmp(&other));
            prop_assert_eq!(Key::of(one.clone()) == Key::of(other.clone()), one == other);
        }

        #[test]
        fn a_key_is_the_same_however_it_was_made(
            text in "[a-z]{0,200}", number in any::<u64>(), raw in "[a-z]{0,20}",
        ) {
            let key = Key::new(Table::Kind).raw(&raw).text(&text).number(number);
            prop_assert_eq!(&key, &Key::of(key.bytes().to_vec()));
        }
    }
}
