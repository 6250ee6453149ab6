//! BLAKE3 and canonical JSON (RFC 8785): the names of bytes. The only file that names `blake3`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 digest of 32 bytes, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The digest of plain bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest in derive-key mode, for bytes whose meaning is fixed by a context.
    pub fn derive(context: &str, bytes: &[u8]) -> Self {
        Self(blake3::derive_key(context, bytes))
    }

    /// The digest of a tuple: each part is preceded by its length, so no two tuples share bytes.
    pub fn of_parts(parts: &[&str]) -> Self {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Self::of(&bytes)
    }

    /// The 64 hex digits.
    pub fn hex(&self) -> String {
        blake3::Hash::from(self.0).to_hex().to_string()
    }

    /// The first 12 hex digits, for people.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }

    /// The raw bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({})", self.short())
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (mut bytes, pairs) = ([0; 32], text.as_bytes().chunks_exact(2));
        let whole = text.len() == 2 * bytes.len();
        let read = pairs.zip(&mut bytes).try_for_each(|(pair, byte)| {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            Some(())
        });
        match read.filter(|()| whole) {
            Some(()) => Ok(Self(bytes)),
            None => Err(format!("not 64 lower-case hex digits: {text:?}")),
        }
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::text::deserialize(deserializer)
    }
}

impl schemars::JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
    }
}

/// A running digest, for bytes that are not held at once.
#[derive(Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest so far.
    pub fn finish(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

/// The RFC 8785 bytes of a value: what every digest of JSON is taken over.
///
/// The value must have passed the guard of [`crate::model::json`] or be made by this program: integers
/// beyond 2^53 would be rounded.
pub fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    // Serialising plain data to memory fails only for non-finite numbers and non-string keys; neither
    // can stand in a guarded value or in a struct of this crate.
    match serde_json::to_value(value) {
        // What serde_json writes is canonical already, and made in a tenth of the time.
        Ok(value) if is_plain(&value) => serde_json::to_vec(&value).unwrap_or_default(),
        _ => serde_json_canonicalizer::to_vec(value).unwrap_or_default(),
    }
}

/// Whether a value has only whole numbers that a double holds, and keys whose order is the same in bytes as
/// in UTF-16: where the RFC and the plain writing of a sorted map agree.
fn is_plain(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => members.iter().all(|(key, member)| key.is_ascii() && is_plain(member)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_and_back() {
        let hash = Hash::of(b"nf");
        assert_eq!(hash.hex().parse::<Hash>(), Ok(hash));
        assert!(hash.hex().to_uppercase().parse::<Hash>().is_err());
        assert!("12".parse::<Hash>().is_err());
    }

    #[test]
    fn tuples_are_not_joined_strings() {
        assert_ne!(Hash::of_parts(&["ab", "c"]), Hash::of_parts(&["a", "bc"]));
        assert_ne!(Hash::of_parts(&["ab"]), Hash::of_parts(&["ab", ""]));
    }

    #[test]
    fn canonical_sorts_keys_and_writes_numbers_as_the_rfc_says() {
        let value: serde_json::Value = serde_json::from_str(r#"{"b":1.0,"a":[1e21,0.1]}"#).unwrap();
        assert_eq!(canonical(&value), br#"{"a":[1e+21,0.1],"b":1}"#);
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-9i64..9).prop_map(|step| ((1i64 << 53) + step).into()),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
            "[\\x00-\\x7f\u{e000}\u{10000}é]{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            let key = "[\\x00-\\x7fé\u{e000}\u{fffd}\u{10000}]{0,4}";
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                proptest::collection::btree_map(key, inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn the_quick_way_and_the_library_write_the_same_bytes(value in values()) {
            prop_assert_eq!(canonical(&value), serde_json_canonicalizer::to_vec(&value).unwrap());
        }
    }
}
