//! Values in memory: kept as they were put, and written as JSON only when their bytes are wanted. Knows no
//! key.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What can stand as a value in a row.
pub trait Stored: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static> Stored for T {}

/// A value as it was put, until somebody wants its bytes.
pub(super) trait Written: std::fmt::Debug + Send + Sync {
    /// Adds its bytes to others.
    fn write(&self, into: &mut Vec<u8>);
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Stored> Written for T {
    fn write(&self, into: &mut Vec<u8>) {
        // Plain data without foreign keys: writing it to memory cannot fail.
        let _ = serde_json::to_writer(into, self);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A value whose bytes are there already, since it stands under several keys.
#[derive(Debug, PartialEq)]
pub struct Ready(Vec<u8>);

impl Ready {
    /// The bytes of a value.
    pub fn new<T: Stored>(value: &T) -> Arc<Self> {
        let mut bytes = Vec::with_capacity(256);
        Written::write(value, &mut bytes);
        Arc::new(Self(bytes))
    }

    /// The bytes of a value that was written already.
    pub fn of(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self(bytes))
    }
}

impl Written for Ready {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.0);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl dyn Written {
    /// Its bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        self.write(&mut bytes);
        bytes
    }
}
