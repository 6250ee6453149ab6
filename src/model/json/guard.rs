//! The rules that hold for every value read from outside, whatever its format: one place for depth,
//! budgets, duplicate keys and numbers, and for the pointer of the value being read.
//!
//! Knows no format and no text. Must never be bypassed by a reader of JSON or YAML.

use serde_json::{Map, Number, Value};

use super::{DEPTH_LIMIT, FaultKind, INTEGER_LIMIT, push_pointer};

/// A refusal without its place, which only the reader knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// What is wrong.
    pub kind: FaultKind,
    /// The same in words.
    pub message: String,
}

impl Refusal {
    /// A refusal of a kind with its words.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A refusal by the grammar.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Syntax, message)
    }

    /// A refusal of the bytes.
    pub fn encoding(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Encoding, message)
    }

    /// A refusal of an integer literal.
    pub fn range() -> Self {
        Self::new(FaultKind::IntegerRange, "an integer is beyond ±(2^53 - 1): write it as a string")
    }

    /// A refusal of a number that is not finite.
    pub fn not_finite() -> Self {
        Self::new(FaultKind::NonFinite, "a number is too large to be finite")
    }
}

/// What a reader may give back at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Values, keys not counted.
    pub nodes: usize,
    /// Bytes of keys and strings.
    pub bytes: usize,
}

/// One step of the way from the root to the value being read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A member of an object.
    Key(String),
    /// An element of an array.
    Index(usize),
}

/// The state of one reading.
#[derive(Debug)]
pub(crate) struct Guard {
    limits: Limits,
    nodes: usize,
    bytes: usize,
    depth: usize,
    path: Vec<Step>,
}

impl Guard {
    /// A guard at the root.
    pub fn new(limits: Limits) -> Self {
        Self { limits, nodes: 0, bytes: 0, depth: 0, path: Vec::new() }
    }

    /// Counts one value.
    pub fn node(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            let message = format!("there are more than {} values", self.limits.nodes);
            return Err(Refusal::new(FaultKind::Budget, message));
        }
        Ok(())
    }

    /// Counts the bytes of a key or string.
    pub fn text(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            let message = format!("there are more than {} bytes of text", self.limits.bytes);
            return Err(Refusal::new(FaultKind::Budget, message));
        }
        Ok(())
    }

    /// Enters an array or object.
    pub fn open(&mut self) -> Result<(), Refusal> {
        if self.depth == DEPTH_LIMIT {
            return Err(Self::too_deep());
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves an array or object.
    pub fn close(&mut self) {
        self.depth -= 1;
    }

    /// The refusal of too much depth.
    pub fn too_deep() -> Refusal {
        Refusal::new(FaultKind::Depth, format!("arrays and objects are nested deeper than {DEPTH_LIMIT}"))
    }

    /// Goes on to an element or member; a fault from here on is at it.
    pub fn enter(&mut self, step: Step) {
        self.path.push(step);
    }

    /// Comes back from an element or member.
    pub fn leave(&mut self) -> Option<Step> {
        self.path.pop()
    }

    /// Goes on to a new member of an object; refuses a key that it has already.
    pub fn enter_member(&mut self, members: &Map<String, Value>, key: String) -> Result<(), Refusal> {
        let twice = members.contains_key(&key);
        self.enter(Step::Key(key));
        if twice {
            return Err(Refusal::new(FaultKind::DuplicateKey, "an object has this key twice"));
        }
        Ok(())
    }

    /// The JSON pointer of where the reading is.
    pub fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |base, step| match step {
            Step::Key(key) => push_pointer(&base, key),
            Step::Index(index) => push_pointer(&base, &index.to_string()),
        })
    }
}

/// An integer literal as a value.
pub(crate) fn integer(number: i128) -> Result<Value, Refusal> {
    match i64::try_from(number) {
        Ok(small) if number.abs() <= INTEGER_LIMIT => Ok(Value::from(small)),
        _ => Err(Refusal::range()),
    }
}

/// A literal with a point or an exponent as a value.
pub(crate) fn float(number: f64) -> Result<Value, Refusal> {
    Number::from_f64(number).map(Value::Number).ok_or_else(Refusal::not_finite)
}
