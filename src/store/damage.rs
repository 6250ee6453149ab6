//! Damage as data: what is wrong in the log, and where. Judges nothing.

use std::sync::{Arc, Mutex};

use crate::error::{Error, Kind};
use crate::words;

words! {
    /// What is wrong with recorded bytes.
    Flaw {
        /// Some bytes are not what they were.
        Bits = "bit damage",
        /// Zero bytes stand where text stood.
        Nuls = "NUL bytes",
        /// Line ends were changed from LF to CRLF.
        Crlf = "CRLF checkout",
        /// Git left its marks of a conflict.
        Conflict = "conflict markers",
        /// A line stands there twice.
        Repeated = "repeated line",
        /// A line is whole, but not the one that belongs here.
        Order = "lines missing or out of order",
        /// A line is whole, but does not follow the line before.
        Chain = "wrong prev",
        /// A line of another store, or of another segment.
        Foreign = "segment of another place",
        /// The closing record's hash or length does not fit the segment.
        Segment = "wrong segment hash",
        /// Bytes stand after the closing record of a segment.
        After = "bytes after the closing record",
        /// The log ends before the point that head covers: acknowledged records are lost.
        Lost = "acknowledged records are lost",
        /// A whole segment is missing: acknowledged records are lost.
        Missing = "segment missing",
        /// The log holds other records than head covers.
        Head = "head covers another record",
        /// A line is not complete.
        Torn = "incomplete line",
    }
}

/// Damage in the log, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub segment: u32,
    /// From 1.
    pub line: u64,
    /// Offset of the line's first byte in its segment.
    pub byte: u64,
    pub flaw: Flaw,
}

impl Damage {
    /// The error of a command that meets it.
    pub fn error(&self) -> Error {
        Error::new(Kind::Damaged, format!("the log is damaged: {self}")).details(serde_json::json!({
            "segment": self.segment, "line": self.line, "byte": self.byte, "damage": self.flaw.word(),
        }))
    }
}

/// Raised where a row of the index was no good and the log could not say what belongs there: then nothing
/// that was looked up counts. Copies share it, so that whoever gave one with [`super::Options`] can ask
/// afterwards.
#[derive(Debug, Clone, Default)]
pub struct Doubt(Arc<Mutex<Option<Error>>>);

impl Doubt {
    pub(super) fn raise(&self, error: &Error) {
        let cause =
            error.cause.as_deref().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let raised = Error::new(Kind::Damaged, "the index is damaged, and the log that it was made from too");
        if let Ok(mut doubt) = self.0.lock() {
            *doubt = Some(raised.because(cause).details(error.details.clone()));
        }
    }

    /// Whether it was raised; it no longer is.
    pub(super) fn take(&self) -> bool {
        self.0.lock().is_ok_and(|mut doubt| doubt.take().is_some())
    }

    /// Refuses where it was raised.
    ///
    /// # Errors
    /// [`Kind::Damaged`], with what is wrong with the log.
    pub fn check(&self) -> crate::error::Result<()> {
        self.0.lock().ok().and_then(|doubt| doubt.clone()).map_or(Ok(()), Err)
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, line, byte, flaw } = self;
        write!(f, "segment {segment}, line {line}, byte {byte}: {flaw}")
    }
}
