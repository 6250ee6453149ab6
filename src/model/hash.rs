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
        self.digits(str::to_owned)
    }

    /// Whether a text is the 64 hex digits. Cheaper than reading them: it is asked of every line of a log.
    pub fn is_written(&self, hex: &[u8]) -> bool {
        self.digits(|digits| digits.as_bytes() == hex)
    }

    /// Gives the 64 hex digits to `take`, without room of their own.
    fn digits<T>(&self, take: impl FnOnce(&str) -> T) -> T {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (at, byte) in self.0.iter().enumerate() {
            hex[at * 2] = DIGITS[usize::from(byte >> 4)];
            hex[at * 2 + 1] = DIGITS[usize::from(byte & 15)];
        }
        take(std::str::from_utf8(&hex).unwrap_or_default())
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
        self.digits(|hex| f.write_str(hex))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({})", self.short())
    }
}

/// The value of each byte as a lower-case hex digit; 255 where it is none.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        nibbles[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    nibbles
};

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut bytes = [0; 32];
        // What is no digit has its upper bits set, and they stay in `bad`.
        let mut bad = 0;
        if let Ok(text) = <&[u8; 64]>::try_from(text.as_bytes()) {
            for (at, byte) in bytes.iter_mut().enumerate() {
                let (high, low) =
                    (NIBBLES[usize::from(text[at * 2])], NIBBLES[usize::from(text[at * 2 + 1])]);
                bad |= high | low;
                *byte = high << 4 | low & 15;
            }
            if bad < 16 {
                return Ok(Self(bytes));
            }
        }
        Err(format!("not 64 lower-case hex digits: {text:?}"))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digits(|hex| serializer.serialize_str(hex))
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
    // Mostly it is enough to put members in their order: that takes a fifth of making a tree of values.
    if let Some(bytes) = serde_json::to_vec(value).ok().and_then(|text| super::canonical::sorted(&text)) {
        return bytes;
    }
    // Serialising plain data to memory fails only for non-finite numbers and non-string keys; neither
    // can stand in a guarded value or in a struct of this crate.
    let value = serde_json::to_value(value);
    value.ok().and_then(|value| serde_json_canonicalizer::to_vec(&value).ok()).unwrap_or_default()
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
        assert!(
            hash.is_written(hash.hex().as_bytes()) && !hash.is_written(hash.hex().to_uppercase().as_bytes())
        );
        assert!(!hash.is_written(&hash.hex().as_bytes()[1..]) && !hash.is_written(b""));
        for (at, byte) in (0..64).flat_map(|at| (0..128u8).map(move |byte| (at, byte))) {
            let mut text = hash.hex().into_bytes();
            text[at] = byte;
            let text = String::from_utf8(text).unwrap();
            let known = blake3::Hash::from_hex(&text).ok().filter(|_| text == text.to_lowercase());
            assert_eq!(
                text.parse::<Hash>().ok().map(|hash| *hash.bytes()),
                known.map(|hash| *hash.as_bytes())
            );
        }
        assert!(format!("{}0", hash.hex()).parse::<Hash>().is_err());
        assert!(format!("é{}", &hash.hex()[2..]).parse::<Hash>().is_err());
        assert_eq!(hash.hex(), blake3::hash(b"nf").to_hex().as_str());
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

    /// A value whose members are written last to first.
    struct Backwards<'a>(&'a serde_json::Value);

    impl Serialize for Backwards<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                serde_json::Value::Array(items) => serializer.collect_seq(items.iter().map(Backwards)),
                serde_json::Value::Object(members) => {
                    serializer.collect_map(members.iter().rev().map(|(key, member)| (key, Backwards(member))))
                }
                plain => plain.serialize(serializer),
            }
        }
    }

    #[test]
    fn members_are_moved_where_that_is_enough_and_only_there() {
        use crate::model::canonical::sorted;
        for (text, canonical) in [
            (
                r#"{"b":{"d":[],"c":"\\\"}"},"a":[{"y":1,"x":-2},null]}"#,
                r#"{"a":[{"x":-2,"y":1},null],"b":{"c":"\\\"}","d":[]}}"#,
            ),
            (r#"{"b":1,"ba":2,"a":true}"#, r#"{"a":true,"b":1,"ba":2}"#),
            (r#""x""#, r#""x""#),
            ("[[],{}]", "[[],{}]"),
            ("999999999999999", "999999999999999"),
        ] {
            assert_eq!(sorted(text.as_bytes()).as_deref(), Some(canonical.as_bytes()), "{text}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        for text in [
            "1.0",
            "1e3",
            "1000000000000000",
            r#"{"é":1}"#,
            r#"{"\n":1}"#,
            r#"{"b":1,"a":2,"a":3}"#,
            r#"{"a":1,"a":2}"#,
            "",
            "nul",
            "1 ",
            "[1",
            "[1,]",
            r#"{"a"}"#,
            r#"{a:1}"#,
            r#"{"a":1"#,
            r#""a"#,
            "-",
            deep.as_str(),
        ] {
            assert_eq!(sorted(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn the_quick_way_and_the_library_write_the_same_bytes(value in values()) {
            let known = serde_json_canonicalizer::to_vec(&value).unwrap();
            prop_assert_eq!(canonical(&value), known.clone());
            // Read again with the members in the order that they had, as a struct's are.
            let text = serde_json::to_string(&Backwards(&value)).unwrap();
            prop_assert_eq!(crate::model::canonical::sorted(text.as_bytes()).unwrap_or(known.clone()), known);
        }
    }
}
