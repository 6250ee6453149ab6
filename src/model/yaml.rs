//! YAML for people who write job files: read at once into the JSON it stands for. The only file that
//! names `serde_yaml`.
//!
//! Owns the limits of YAML and everything that YAML has and JSON has not: aliases are expanded within a
//! budget; tags, merge keys, keys that are not strings, dates without quotes and further documents are
//! refused. Must never give a value that [`super::json`] would refuse, and never writes YAML.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::json::guard::{self, Guard, Limits, Refusal, Step};
use super::json::{self, Fault, FaultKind};

mod plain;
#[cfg(test)]
mod tests;

/// The longest YAML text that is read, in bytes.
pub const SIZE_LIMIT: usize = 256 * 1024;

/// What the values of one text may come to once its aliases are expanded.
const LIMITS: Limits = Limits { nodes: 100_000, bytes: 8 * 1024 * 1024 };

/// The parser's time grows with the square of the depth of its brackets (18 s for 256 KiB of `{a: `), and
/// it reads a whole text before the guard sees its first value. So a text with many brackets is tried in
/// steps of so many bytes; the first one that is too deep ends it.
const STEP: usize = 16 * 1024;

/// A text with fewer brackets than this cannot cost much.
const BRACKETS: usize = 512;

/// Reads one YAML document as the JSON value it stands for.
///
/// Refuses, with the place: more than [`SIZE_LIMIT`] bytes, invalid UTF-8, a byte order mark, what is not
/// YAML, more than one document, duplicate keys, tags, merge keys, keys that are not strings, dates and
/// timestamps without quotes, `.nan` and `.inf`, integers beyond ±(2^53 - 1), depth over 128, and more
/// than 100,000 values or 8 MiB of text after aliases expand. Clause: semantic jobs, job file.
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    if bytes.len() > SIZE_LIMIT {
        let message = format!("YAML is read up to {SIZE_LIMIT} bytes, and this is {}", bytes.len());
        return Err(Fault::at("", 0, Refusal::new(FaultKind::Size, message), String::new()));
    }
    let text = json::text_of(bytes)?;
    if let Some(offset) = plain::tag_directive(text) {
        return Err(Fault::at(
            text,
            offset,
            Refusal::new(FaultKind::Tag, "tags are not read"),
            String::new(),
        ));
    }
    if text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > BRACKETS {
        try_in_steps(text)?;
    }
    refuse_tags(text)?;
    read(text)
}

/// Whether a text holds nothing but white space and comments: a settings file that sets nothing.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| line.is_empty() || line[0] == b'#')
}

/// Reads a text that is JSON if its first byte that is not white space is `{`, and YAML otherwise.
///
/// Each by its own reader, so the faults are those of [`json::parse`] or of [`parse`].
pub fn parse_either(bytes: &[u8]) -> Result<Value, Fault> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => json::parse(bytes),
        _ => parse(bytes),
    }
}

/// Refuses a text one of whose beginnings is too deep or too large. Any other fault of a beginning may be
/// only its end; one that the next beginning has too, at the same place, is the text's own, and must end
/// the trial as well, since what comes after it was not looked at.
fn try_in_steps(text: &str) -> Result<(), Fault> {
    let mut last: Option<Fault> = None;
    for end in (STEP..text.len()).step_by(STEP) {
        let fault = read(&text[..text.floor_char_boundary(end)]).err();
        if let Some(fault) = &fault {
            let again = last.as_ref().is_some_and(|last| {
                (last.kind, last.offset, &last.pointer) == (fault.kind, fault.offset, &fault.pointer)
            });
            if again || matches!(fault.kind, FaultKind::Depth | FaultKind::Budget) {
                return Err(fault.clone());
            }
        }
        last = fault;
    }
    Ok(())
}

/// Refuses every tag. The parser hides the tags of YAML itself (`!!str`), so the text is read once more
/// with an `@` in place of each `!` that may begin a tag. Inside a scalar or a comment that changes
/// nothing; where a tag may stand, nothing may begin with `@` and the parser stops exactly there.
fn refuse_tags(text: &str) -> Result<(), Fault> {
    let marks = plain::tag_marks(text);
    if marks.is_empty() {
        return Ok(());
    }
    let mut masked = String::with_capacity(text.len());
    for (offset, character) in text.char_indices() {
        masked.push(if marks.binary_search(&offset).is_ok() { '@' } else { character });
    }
    match read(&masked) {
        Err(fault) if marks.binary_search(&fault.offset).is_ok() && fault.kind == FaultKind::Syntax => {
            let refusal = Refusal::new(FaultKind::Tag, "tags are not read");
            Err(Fault::at(text, fault.offset, refusal, fault.pointer))
        }
        _ => Ok(()),
    }
}

/// One reading of a text.
struct Reading<'text> {
    text: &'text str,
    guard: Guard,
    /// The bits of integers so long that the parser makes them floats.
    long_integers: BTreeSet<u64>,
    refusal: Option<Refusal>,
}

impl Reading<'_> {
    /// Keeps the refusal, which a parser's error could carry only as words.
    fn refuse<E: serde::de::Error>(&mut self, refusal: Refusal) -> E {
        let error = E::custom(&refusal.message);
        self.refusal.get_or_insert(refusal);
        error
    }

    /// A result of the guard as a result of the parser.
    fn checked<T, E: serde::de::Error>(&mut self, result: Result<T, Refusal>) -> Result<T, E> {
        result.map_err(|refusal| self.refuse(refusal))
    }
}

/// Reads a text once, by all rules but those about tags that the parser hides.
fn read(text: &str) -> Result<Value, Fault> {
    let long_integers = plain::long_integers(text);
    let mut reading = Reading { text, guard: Guard::new(LIMITS), long_integers, refusal: None };
    let seed = Node { reading: &mut reading, place: Place::Value };
    match seed.deserialize(serde_yaml::Deserializer::from_str(text)) {
        Ok(value) => Ok(value),
        Err(error) => {
            let pointer = reading.guard.pointer();
            let words = error.to_string();
            let (location, refusal) = match reading.refusal.take() {
                Some(refusal) => (error.location(), refusal),
                None if words.contains("more than one document") => (
                    second_document(text),
                    Refusal::syntax("there is more text after the first YAML document"),
                ),
                None => (error.location(), refusal_of(&words)),
            };
            let offset = location.map_or(0, |location| location.index());
            Err(Fault::at(text, offset, refusal, pointer))
        }
    }
}

/// What the parser's own words mean; it gives no other sign.
fn refusal_of(words: &str) -> Refusal {
    let words = words.split(" at line ").next().unwrap_or_default();
    match words {
        "recursion limit exceeded" => Guard::too_deep(),
        "repetition limit exceeded" => Refusal::new(FaultKind::Budget, "aliases repeat too much"),
        _ => Refusal::syntax(format!("not YAML: {words}")),
    }
}

/// Where a second document begins.
fn second_document(text: &str) -> Option<serde_yaml::Location> {
    let second = serde_yaml::Deserializer::from_str(text).nth(1)?;
    second.deserialize_any(Nothing).err()?.location()
}

/// Takes no value at all: its error has the place of the first node.
struct Nothing;

impl Visitor<'_> for Nothing {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no document")
    }
}

/// Where a node stands: as a value, or as a key after these members. A key becomes the guard's next step
/// and has no value of its own; that happens inside the parser's call, so that a fault has its place.
#[derive(Clone, Copy)]
enum Place<'read> {
    Value,
    Key(&'read Map<String, Value>),
}

/// One node of a document.
struct Node<'read, 'text> {
    reading: &'read mut Reading<'text>,
    place: Place<'read>,
}

impl Node<'_, '_> {
    /// A scalar that is not a string.
    fn scalar<E: serde::de::Error>(self, value: Result<Value, Refusal>) -> Result<Value, E> {
        if let Place::Key(_) = self.place {
            let message = "a key is not a string: write it in quotes";
            return Err(self.reading.refuse(Refusal::new(FaultKind::KeyNotString, message)));
        }
        self.reading.checked(value)
    }

    /// A string, and whether its text in the document has no quotes.
    fn string<E: serde::de::Error>(self, string: &str, is_plain: bool) -> Result<Value, E> {
        let counted = self.reading.guard.text(string.len());
        self.reading.checked(counted)?;
        let is_key = matches!(self.place, Place::Key(_));
        if is_plain {
            self.reading.checked(plain::check(string, is_key))?;
        }
        match self.place {
            Place::Value => Ok(Value::String(string.to_owned())),
            Place::Key(members) => {
                let entered = self.reading.guard.enter_member(members, string.to_owned());
                self.reading.checked(entered.map(|()| Value::Null))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if let Place::Value = self.place {
            let counted = self.reading.guard.node();
            self.reading.checked::<_, D::Error>(counted)?;
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(Ok(Value::Bool(value)))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(guard::integer(i128::from(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(guard::integer(i128::from(value)))
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<Value, E> {
        self.scalar(Err(Refusal::range()))
    }

    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<Value, E> {
        self.scalar(Err(Refusal::range()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let value = match self.reading.long_integers.contains(&value.abs().to_bits()) {
            true => Err(Refusal::range()),
            false => guard::float(value),
        };
        self.scalar(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Ok(Value::Null))
    }

    /// The parser's sign for a text without a document.
    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        Err(self.reading.refuse(Refusal::syntax("there is no value")))
    }

    /// A string that stands in the text as it is: only there can it be seen whether it has quotes.
    fn visit_borrowed_str<E: serde::de::Error>(self, string: &'de str) -> Result<Value, E> {
        let is_plain = plain::has_no_quotes(self.reading.text, string);
        self.string(string, is_plain)
    }

    /// A string that had quotes and escapes, was a block, or was folded from several lines.
    fn visit_str<E: serde::de::Error>(self, string: &str) -> Result<Value, E> {
        self.string(string, false)
    }

    /// The parser's sign for a tag that is not YAML's own.
    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(self.reading.refuse(Refusal::new(FaultKind::Tag, "tags are not read")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let Node { reading, place } = self;
        if let Place::Key(_) = place {
            return Node { reading, place }.scalar(Ok(Value::Null));
        }
        let opened = reading.guard.open();
        reading.checked::<_, A::Error>(opened)?;
        let mut items = Vec::new();
        loop {
            reading.guard.enter(Step::Index(items.len()));
            match sequence.next_element_seed(Node { reading: &mut *reading, place: Place::Value })? {
                Some(item) => items.push(item),
                None => break,
            }
            reading.guard.leave();
        }
        reading.guard.leave();
        reading.guard.close();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Value, A::Error> {
        let Node { reading, place } = self;
        if let Place::Key(_) = place {
            return Node { reading, place }.scalar(Ok(Value::Null));
        }
        let opened = reading.guard.open();
        reading.checked::<_, A::Error>(opened)?;
        let mut members = Map::new();
        while mapping.next_key_seed(Node { reading: &mut *reading, place: Place::Key(&members) })?.is_some() {
            let value = mapping.next_value_seed(Node { reading: &mut *reading, place: Place::Value })?;
            if let Some(Step::Key(key)) = reading.guard.leave() {
                members.insert(key, value);
            }
        }
        reading.guard.close();
        Ok(Value::Object(members))
    }
}
