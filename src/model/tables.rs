//! Ordered tables of bytes: the one shape in which the state is kept and looked up. Keys are tuples whose
//! parts are length-prefixed, never joined strings; values are JSON. An index on disk serves the same lookups
//! as a base below; nothing above this file notices.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::de::DeserializeOwned;

mod key;
#[cfg(test)]
mod tests;
mod value;

pub use key::{KEY_LIMIT, Key};
use value::Written;
pub use value::{Ready, Stored};

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
    /// Ids by job and kind, in order of their making.
    Job = b'w' as isize,
    /// Ids by kind and state, in order of their making.
    State = b's' as isize,
    /// Place and state by id, for what moves between states.
    Placed = b'g' as isize,
    /// Sessions that are not ended and are nobody's worker.
    Open = b'o' as isize,
    /// Open handoffs by source session.
    Outstanding = b'h' as isize,
    /// Handoffs that can be claimed, by class, filter, terms, priority and age.
    Ready = b'y' as isize,
    /// Handoffs that can be claimed later, by class and moment.
    Waiting = b'd' as isize,
    /// Running leases by class and clock, soonest end first.
    Lease = b'l' as isize,
    /// Attempts whose lease was seen to have run out, by id.
    Lapsed = b'x' as isize,
    /// Handoffs whose question is still to be answered, by question.
    Asked = b'u' as isize,
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
    /// External event by its sender's key.
    EventKey = b'i' as isize,
    /// Answer by operation key.
    Operation = b'p' as isize,
    /// Newest evidence by capability.
    Capability = b'b' as isize,
    /// Effects by key, by session while open, by path and by receipt.
    Effect = b'z' as isize,
    /// Counters.
    Meta = b'c' as isize,
}

/// Rows below the tables in memory: an index on disk, or another state. Keys have at most
/// [`KEY_LIMIT`] bytes.
pub trait Base: std::fmt::Debug + Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>>;
    /// The first row of a range.
    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)>;
    /// The last row of a range.
    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)>;
}

/// Rows in memory: a value, or that there is none any more. A fold changes the same few values again and
/// again, so they are kept as they are and written as bytes only when they leave memory.
type Overlay = BTreeMap<Key, Option<Arc<dyn Written>>>;
/// A key and its value.
pub type RowBytes<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The tables: what changed, in memory, over what an index holds, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    base: Option<Arc<dyn Base>>,
    rows: Overlay,
}

/// Two tables are equal when they hold the same rows, wherever they hold them.
impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        match (&self.base, &other.base) {
            (None, None) if self.rows.len() != other.rows.len() => false,
            _ => self.all().eq(other.all()),
        }
    }
}

impl Tables {
    /// Nothing changed yet over a base.
    pub fn on(base: Arc<dyn Base>) -> Self {
        Self { base: Some(base), rows: Overlay::new() }
    }

    /// Whether there is a base.
    pub fn is_based(&self) -> bool {
        self.base.is_some()
    }

    /// The value of a key; `None` where there is none.
    pub fn get<T: Stored>(&self, key: &Key) -> Option<T> {
        self.see::<T>(key).map(Cow::into_owned)
    }

    /// The same, where it stands if it stands in memory.
    pub fn see<T: Stored>(&self, key: &Key) -> Option<Cow<'_, T>> {
        if let Some(value) = self.rows.get(key)
            && let Some(value) = value.as_ref()?.as_any().downcast_ref::<T>()
        {
            return Some(Cow::Borrowed(value));
        }
        // Values were written by `put` of the same build, so reading one back cannot fail.
        self.bytes(key).and_then(|bytes| serde_json::from_slice(&bytes).ok()).map(Cow::Owned)
    }

    /// Whether a key has a value.
    pub fn holds(&self, key: &Key) -> bool {
        match self.rows.get(key) {
            Some(value) => value.is_some(),
            None => self.base.as_ref().is_some_and(|base| base.get(key.bytes()).is_some()),
        }
    }

    /// The bytes of a value, for comparing two readings.
    pub fn bytes(&self, key: &Key) -> Option<Cow<'_, [u8]>> {
        match self.rows.get(key) {
            Some(value) => value.as_ref().map(|value| Cow::Owned(value.bytes())),
            None => self.base.as_ref()?.get(key.bytes()).map(Cow::Owned),
        }
    }

    /// The same by the bytes of the key.
    pub fn value(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.bytes(&Key::of(key))
    }

    /// Sets the value of a key.
    pub fn put<T: Stored>(&mut self, key: Key, value: &T) {
        self.put_own(key, value.clone());
    }

    /// The same, of a value that nobody else needs.
    pub fn put_own<T: Stored>(&mut self, key: Key, value: T) {
        self.insert(key, Arc::new(value));
    }

    /// The same, of a value that stands under several keys.
    pub fn put_ready(&mut self, key: Key, value: &Arc<Ready>) {
        self.insert(key, value.clone());
    }

    fn insert(&mut self, key: Key, value: Arc<dyn Written>) {
        debug_assert!(key.bytes().len() <= KEY_LIMIT, "a key of {} bytes", key.bytes().len());
        self.rows.insert(key, Some(value));
    }

    /// Changes the value of a key, if there is one: where it stands, unless another state has it as well.
    pub fn change<T: Stored>(&mut self, key: Key, change: impl FnOnce(&mut T)) {
        if let Some(row) = self.rows.get_mut(&key) {
            let Some(value) = row else { return };
            let value = Arc::get_mut(value).and_then(|value| value.as_any_mut().downcast_mut::<T>());
            if let Some(value) = value {
                return change(value);
            }
        }
        if let Some(mut value) = self.get::<T>(&key) {
            change(&mut value);
            self.put_own(key, value);
        }
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Key) {
        if self.base.is_some() {
            self.rows.insert(key, None);
        } else {
            self.rows.remove(&key);
        }
    }

    /// The values whose keys begin with `prefix`, first to last.
    pub fn scan<'a, T: DeserializeOwned>(&'a self, prefix: &Key) -> impl Iterator<Item = T> + use<'a, T> {
        self.range(Bound::Included(prefix.bytes().to_vec()), prefix.after_all(), false)
            .filter_map(|(_, bytes)| serde_json::from_slice(&bytes).ok())
    }

    /// The values whose keys begin with `prefix`, last to first, from before `before` where given.
    pub fn scan_back<'a, T: DeserializeOwned>(
        &'a self,
        prefix: &Key,
        before: Option<&Key>,
    ) -> impl Iterator<Item = T> + use<'a, T> {
        let end = before.map_or_else(|| prefix.after_all(), |key| Bound::Excluded(key.bytes().to_vec()));
        self.range(Bound::Included(prefix.bytes().to_vec()), end, true)
            .filter_map(|(_, bytes)| serde_json::from_slice(&bytes).ok())
    }

    /// The values whose keys go on behind `prefix` with a number up to `last`, first to last.
    pub fn scan_to<'a, T: DeserializeOwned>(
        &'a self,
        prefix: &Key,
        last: u64,
    ) -> impl Iterator<Item = T> + use<'a, T> {
        self.range(Bound::Included(prefix.bytes().to_vec()), prefix.clone().number(last).after_all(), false)
            .filter_map(|(_, bytes)| serde_json::from_slice(&bytes).ok())
    }

    /// What follows `prefix` in the keys that go on with the beginning `raw`, first to last.
    pub fn endings<'a>(&'a self, prefix: &Key, raw: &str) -> impl Iterator<Item = String> + use<'a> {
        let (begin, from) = (prefix.bytes().len(), prefix.clone().raw(raw));
        self.range(Bound::Included(from.bytes().to_vec()), from.after_all(), false)
            .filter_map(move |(key, _)| Some(std::str::from_utf8(key.get(begin..)?).ok()?.to_owned()))
    }

    /// The different texts that follow a prefix, one lookup each.
    pub fn texts(&self, prefix: &Key) -> Vec<String> {
        let mut found = Vec::new();
        let mut from = Bound::Included(prefix.bytes().to_vec());
        while let Some((key, _)) = self.range(from, prefix.after_all(), false).next() {
            let rest = &key[prefix.bytes().len()..];
            let text = rest.split_first().and_then(|(length, rest)| rest.get(..usize::from(*length)));
            let Some(text) = text.and_then(|text| std::str::from_utf8(text).ok()) else { break };
            from = match prefix.clone().text(text).after_all() {
                Bound::Excluded(next) => Bound::Included(next),
                other => other,
            };
            found.push(text.to_owned());
        }
        found
    }

    /// All rows, first to last.
    pub fn all(&self) -> Merged<'_> {
        self.range(Bound::Unbounded, Bound::Unbounded, false)
    }

    /// The rows of a range, one after the other: nothing is gathered beforehand.
    pub fn range(&self, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, back: bool) -> Merged<'_> {
        let key = |bytes: &Vec<u8>| Key::of(bytes);
        let over = self.rows.range((from.as_ref().map(key), to.as_ref().map(key)));
        Merged { base: self.base.as_deref(), over, from, to, back, next_over: None, next_base: None }
    }

    /// What changed over the base: a value, or that there is none any more.
    pub fn changes(&self) -> impl Iterator<Item = (&[u8], Option<Vec<u8>>)> {
        self.rows.iter().map(|(key, value)| (key.bytes(), value.as_ref().map(|value| value.bytes())))
    }

    /// The same, where the bytes of a value are added to others.
    pub fn written(&self) -> impl Iterator<Item = (&[u8], Option<impl FnOnce(&mut Vec<u8>)>)> {
        let write = |value: &'_ Arc<dyn Written>| {
            let value = value.clone();
            move |into: &mut Vec<u8>| value.write(into)
        };
        self.rows.iter().map(move |(key, value)| (key.bytes(), value.as_ref().map(write)))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        if self.base.is_none() { self.rows.len() } else { self.all().count() }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// The rows of a range, from memory and from the base below it.
pub struct Merged<'a> {
    base: Option<&'a dyn Base>,
    over: std::collections::btree_map::Range<'a, Key, Option<Arc<dyn Written>>>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    back: bool,
    /// What each side gives next, once it was asked.
    next_over: Option<Option<(&'a Key, &'a Option<Arc<dyn Written>>)>>,
    next_base: Option<Option<(Vec<u8>, Vec<u8>)>>,
}

impl Merged<'_> {
    /// Asks the base for its next row and leaves it out of the range.
    fn step_base(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (from, to) = (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice));
        let base = self.base?;
        let row = if self.back { base.last(from, to) } else { base.first(from, to) };
        match &row {
            Some((key, _)) if self.back => self.to = Bound::Excluded(key.clone()),
            Some((key, _)) => self.from = Bound::Excluded(key.clone()),
            None => self.base = None,
        }
        row
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = RowBytes<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next_over.is_none() {
                self.next_over = Some(if self.back { self.over.next_back() } else { self.over.next() });
            }
            if self.next_base.is_none() {
                self.next_base = Some(self.step_base());
            }
            let order = match (self.next_over.as_ref()?, self.next_base.as_ref()?) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((over, _)), Some((base, _))) if self.back => base.as_slice().cmp(over.bytes()),
                (Some((over, _)), Some((base, _))) => over.bytes().cmp(base),
            };
            if order == Ordering::Greater {
                let (key, value) = self.next_base.take()??;
                return Some((Cow::Owned(key), Cow::Owned(value)));
            }
            if order == Ordering::Equal {
                self.next_base = None;
            }
            if let (key, Some(value)) = self.next_over.take()?? {
                return Some((Cow::Borrowed(key.bytes()), Cow::Owned(value.bytes())));
            }
        }
    }
}

/// A whole set of tables serves as a base too.
impl Base for Tables {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.value(key).map(Cow::into_owned)
    }

    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let row = self.range(from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec), false).next();
        row.map(|(key, value)| (key.into_owned(), value.into_owned()))
    }

    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let row = self.range(from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec), true).next();
        row.map(|(key, value)| (key.into_owned(), value.into_owned()))
    }
}
