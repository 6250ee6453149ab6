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
        let lower = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match blake3::Hash::from_hex(text) {
            Ok(hash) if lower => Ok(Self(*hash.as_bytes())),
            _ => Err(format!("not 64 lower-case hex digits: {text:?}")),
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
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
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
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
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
}
