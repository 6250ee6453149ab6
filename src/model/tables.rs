//! Ordered tables of bytes: the one shape in which the state is kept and looked up. Keys are tuples whose
//! parts are length-prefixed, never joined strings; values are JSON. An index on disk can serve the same
//! lookups; nothing above this file would notice.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The tables; the byte begins each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Entity by id.
    Entity = b'e' as isize,
    /// Ids by kind, in order of their making.
    Kind = b'k' as isize,
    /// Ids by session and kind, in order of their making.
    Member = b'm' as isize,
    /// Ids by resource and kind, in order of their making.
    Resource = b'r' as isize,
    /// Sessions that are not ended and are nobody's worker.
    Open = b'o' as isize,
    /// Open handoffs by source session.
    Outstanding = b'h' as isize,
    /// Attempt by nonce hash.
    Nonce = b'n' as isize,
    /// History by fingerprint.
    History = b'f' as isize,
    /// Judgements by artifact hash or subject.
    Judgement = b'j' as isize,
    /// Receipt by source and consumer.
    Receipt = b't' as isize,
    /// Receipt by fingerprint and consumer.
    Question = b'q' as isize,
    /// Result by the hash of its blob.
    Answer = b'a' as isize,
    /// Answer by operation key.
    Operation = b'p' as isize,
    /// Counters.
    Meta = b'c' as isize,
}

/// A key: a table and a tuple of parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<u8>);

impl Key {
    /// The empty tuple of a table; as a range, the whole table.
    pub fn new(table: Table) -> Self {
        Self(vec![table as u8])
    }

    /// Adds a text with its length before it.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        // Names and ids are at most 128 bytes and hashes 68; a longer part is named by its hash.
        let long;
        let part = if text.len() < 255 {
            text
        } else {
            long = super::hash::Hash::of(text.as_bytes()).hex();
            &long
        };
        self.0.push(part.len() as u8);
        self.0.extend_from_slice(part.as_bytes());
        self
    }

    /// Adds a number, in an order that sorts as numbers do.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Adds the beginning of a last text; ids are looked up by their prefixes.
    #[must_use]
    pub fn raw(mut self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn after_all(&self) -> Bound<Vec<u8>> {
        let mut end = self.0.clone();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Bound::Excluded(end);
            }
        }
        Bound::Unbounded
    }
}

/// The tables in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Tables {
    /// The value of a key; `None` where there is none.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        // Values were written by `put` of the same build, so reading one back cannot fail.
        self.rows.get(&key.0).and_then(|bytes| serde_json::from_slice(bytes).ok())
    }

    /// The bytes of a value, for comparing two readings.
    pub fn bytes(&self, key: &Key) -> Option<&[u8]> {
        self.rows.get(&key.0).map(Vec::as_slice)
    }

    /// Sets the value of a key.
    pub fn put<T: Serialize>(&mut self, key: Key, value: &T) {
        if let Ok(bytes) = serde_json::to_vec(value) {
            self.rows.insert(key.0, bytes);
        }
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &Key) {
        self.rows.remove(&key.0);
    }

    /// The values whose keys begin with `prefix`, first to last.
    pub fn scan<'a, T: DeserializeOwned>(&'a self, prefix: &Key) -> impl Iterator<Item = T> + use<'a, T> {
        self.rows
            .range((Bound::Included(prefix.0.clone()), prefix.after_all()))
            .filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok())
    }

    /// The values whose keys begin with `prefix`, last to first, from before `before` where given.
    pub fn scan_back<'a, T: DeserializeOwned>(
        &'a self,
        prefix: &Key,
        before: Option<&Key>,
    ) -> impl Iterator<Item = T> + use<'a, T> {
        let end = before.map_or_else(|| prefix.after_all(), |key| Bound::Excluded(key.0.clone()));
        self.rows
            .range((Bound::Included(prefix.0.clone()), end))
            .rev()
            .filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok())
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_do_not_run_into_each_other() {
        let mut tables = Tables::default();
        tables.put(Key::new(Table::Receipt).text("ab").text("c"), &1);
        tables.put(Key::new(Table::Receipt).text("a").text("bc"), &2);
        assert_eq!(tables.scan::<u32>(&Key::new(Table::Receipt).text("a")).collect::<Vec<_>>(), [2]);
        assert_eq!(tables.get::<u32>(&Key::new(Table::Receipt).text("ab").text("c")), Some(1));
    }

    #[test]
    fn scans_go_both_ways_and_stop_at_their_prefix() {
        let mut tables = Tables::default();
        for number in 0..4u64 {
            tables.put(Key::new(Table::Kind).text("s").number(number), &number);
        }
        tables.put(Key::new(Table::Member).text("s"), &9u64);
        let prefix = Key::new(Table::Kind).text("s");
        assert_eq!(tables.scan::<u64>(&prefix).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let before = prefix.clone().number(2);
        assert_eq!(tables.scan_back::<u64>(&prefix, Some(&before)).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(tables.scan_back::<u64>(&prefix, None).next(), Some(3));
    }
}
