//! Reads what is written as a text (an id, a name, a hash, a time) straight from the bytes that it stands in.
//! Owns no form: each type says itself what its text is.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};

/// Reads a value from its text. A text of its own is made of what is kept only.
///
/// # Errors
/// Those of the format; what the type says of a text that it does not take.
pub fn deserialize<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor(PhantomData))
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
