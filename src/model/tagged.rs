//! Reads a map whose first member, `type`, names the variant of an enum: the members after it go to their
//! fields as they come. serde's own way keeps all of them first, which takes longer than all else that is
//! done to a line of the log.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{CowStrDeserializer, MapDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// The member that names the variant.
const TYPE: &str = "type";

/// An enum whose variants all have named fields, and how it is read once its variant is known.
pub trait Variants: Sized {
    /// The derived reader.
    ///
    /// # Errors
    /// A type or members that the enum does not have.
    fn read<'de, D: Deserializer<'de>>(variant: D) -> Result<Self, D::Error>;
}

/// Reads a tagged map.
///
/// # Errors
/// Those of the format; no `type`; a type or members that the enum does not have.
pub fn deserialize<'de, D: Deserializer<'de>, T: Variants>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(MapVisitor(PhantomData))
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Variants> Visitor<'de> for MapVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map with a member named type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Some(Lent(first)) = map.next_key()? else { return Err(A::Error::missing_field(TYPE)) };
        if first == TYPE {
            let Lent(tag) = map.next_value()?;
            return T::read(Tagged { tag, map });
        }
        // Another program may have put the members in another order.
        let mut members = Map::from_iter([(first.into_owned(), map.next_value::<Value>()?)]);
        while let Some((key, value)) = map.next_entry()? {
            members.insert(key, value);
        }
        let Some(Value::String(tag)) = members.remove(TYPE) else {
            return Err(A::Error::missing_field(TYPE));
        };
        let map = MapDeserializer::new(members.into_iter());
        T::read(Tagged { tag: tag.into(), map }).map_err(|error: serde_json::Error| A::Error::custom(error))
    }
}

/// A text where it stands, if nothing in it is escaped. Read as a `Cow` it would always be copied.
struct Lent<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Lent<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(LentVisitor)
    }
}

struct LentVisitor;

impl<'de> Visitor<'de> for LentVisitor {
    type Value = Lent<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Lent<'de>, E> {
        Ok(Lent(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Lent<'de>, E> {
        Ok(Lent(Cow::Owned(text.to_owned())))
    }
}

/// A variant by name, and the members that follow.
struct Tagged<'de, A> {
    tag: Cow<'de, str>,
    map: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Tagged<'de, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Tagged<'de, A> {
    type Error = A::Error;
    type Variant = Members<A>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Members<A>), A::Error> {
        let tag: CowStrDeserializer<'_, A::Error> = self.tag.into_deserializer();
        Ok((seed.deserialize(tag)?, Members(self.map)))
    }
}

/// The members of a variant whose name is read.
struct Members<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Members<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(A::Error::custom("the variant has named fields"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, A::Error> {
        Err(A::Error::custom("the variant has named fields"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("the variant has named fields"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::event::Event;

    #[test]
    fn the_type_may_stand_anywhere_and_must_stand_somewhere() {
        let first = r#"{"type":"run.stepped","run":"r-0123456789ab","cursor":"next"}"#;
        let event: Event = serde_json::from_str(first).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), first);
        for (text, same) in [
            (r#"{"cursor":"next","type":"run.stepped","run":"r-0123456789ab"}"#, true),
            (r#"{"type":"run.stepped","run":"r-0123456789ab","cursor":"next","later":[{}]}"#, true),
            (r#"{"t\u0079pe":"run.\u0073tepped","run":"r-0123456789ab","cursor":"next"}"#, true),
            (r#"{"run":"r-0123456789ab","cursor":"next"}"#, false),
            (r#"{"type":"run.stepped","run":"r-0123456789ab"}"#, false),
            (r#"{"type":"run.flew","run":"r-0123456789ab","cursor":"next"}"#, false),
            (r#"{"type":7,"run":"r-0123456789ab","cursor":"next"}"#, false),
            ("{}", false),
            ("[]", false),
            (r#""run.stepped""#, false),
        ] {
            let read = serde_json::from_str::<Event>(text).ok();
            assert_eq!(read.as_ref(), same.then_some(&event), "{text}");
        }
    }
}
