//! Reply intake: from the bytes that a reviewer sent back to exactly one value, or one reason why not.
//! Must never repair by guess, choose between two answers, or keep any of the text around the value.
//!
//! Serves the section "Reply intake" of the semantic jobs. The parts: `decode` (bytes to text), `fence`
//! (text to blocks), `syntax` (how far a run is JSON), `scan` (which runs are candidates; its head has the
//! whole rule), `form` (the human form), `decide` (one value or one reason) and `nonce`. All are linear in
//! the reply and none recurses on it.

mod decide;
mod decode;
mod diagnose;
mod fence;
mod form;
mod lone;
mod look;
mod nonce;
mod reason;
mod scan;
mod syntax;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

pub use crate::model::event::Prose;
pub use nonce::nonces;
pub use reason::Reason;

use decide::Reply;

/// The most bytes of a reply: 8 MiB.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

crate::words! {
    /// What intake did to find the value, by name, in the order in which it is done.
    Step {
        /// UTF-16 with its byte order mark became text.
        Utf16Decoded = "utf16_decoded",
        /// A UTF-8 byte order mark was removed.
        BomRemoved = "bom_removed",
        /// The value stood in a fenced block.
        FenceExtracted = "fence_extracted",
        /// Something other than white space stood around the value, the lines of its own fence apart;
        /// other blocks, skipped ones too, and further copies of the value count as such.
        ProseStripped = "prose_stripped",
        /// U+00A0 outside strings was read as a space.
        NbspWhitespace = "nbsp_whitespace",
        /// The value was a human form.
        YamlFormParsed = "yaml_form_parsed",
    }
}

/// The one value of a reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extracted {
    /// The value, as it was written: an object with a member `nf`.
    pub value: Value,
    /// What was done to find it; each step once, in the order of [`Step::ALL`].
    pub steps: Vec<Step>,
    /// Length in bytes of UTF-8, and BLAKE3, of all text around the value, if that was not only white
    /// space. The text itself may hold private reasoning and is not kept.
    pub prose: Option<Prose>,
}

/// Why a reply gives no value, with what a person needs to ask for a better one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntakeFault {
    /// The reason, a stable word.
    pub reason: Reason,
    /// What was found, in lower case, with its place.
    pub message: String,
    /// The line of the fault, from 1, where it has a place.
    pub line: Option<usize>,
    /// The column of the fault in characters, from 1.
    pub column: Option<usize>,
    /// The offset of the fault in bytes of the reply as it was given, from 0.
    pub offset: Option<usize>,
    /// The JSON pointer of the fault inside the value, where there is one.
    pub pointer: Option<String>,
    /// The text at the fault, or the candidates of an ambiguous reply as compact JSON: at most four, and
    /// each at most 4,000 characters and then its length. Control characters are replaced by U+FFFD.
    pub found: Vec<String>,
    /// What to ask the reviewer for. It hints at no verdict and holds no text of the reply.
    pub ask: String,
}

/// Reads a reply: exactly one value, or one reason.
///
/// `is_blank` tells the packet's own form with its blanks: such a value is ignored, and refused as
/// `form_not_filled_in` where it is alone. Errors: an [`IntakeFault`], never a guess (semantic jobs, "Reply
/// intake").
pub fn extract(bytes: &[u8], is_blank: &dyn Fn(&Value) -> bool) -> Result<Extracted, IntakeFault> {
    if bytes.len() > MAX_BYTES {
        let message =
            format!("the reply has {} bytes, and {MAX_BYTES} is the most that is read", bytes.len());
        return Err(unplaced(Reason::TooLarge, message, None));
    }
    let decoded = decode::decode(bytes).map_err(|fault| {
        let message = format!("the reply is neither UTF-8 nor UTF-16 with its mark: {}", fault.message);
        unplaced(Reason::Encoding, message, Some(fault.offset))
    })?;
    let layout = fence::layout(&decoded.text);
    let reply = Reply { decoded: &decoded, layout: &layout };
    if let Some(reason) = lone::lone(&decoded.text, &layout) {
        return Err(reply.lone(reason));
    }
    let found = scan::scan(&decoded.text, &layout);
    reply.decide(&found, is_blank)
}

fn unplaced(reason: Reason, message: String, offset: Option<usize>) -> IntakeFault {
    IntakeFault {
        reason,
        message,
        line: None,
        column: None,
        offset,
        pointer: None,
        found: Vec::new(),
        ask: reason.ask().to_owned(),
    }
}

/// Every sound candidate of a reply, different ones once, in order: also of one that [`extract`] refuses,
/// so that the readable verdicts of an ambiguous reply can be recorded. The packet's own form is among
/// them. Nothing for what is too large or cannot be decoded.
pub fn candidates(bytes: &[u8]) -> Vec<Value> {
    if bytes.len() > MAX_BYTES {
        return Vec::new();
    }
    let Ok(decoded) = decode::decode(bytes) else { return Vec::new() };
    let found = scan::scan(&decoded.text, &fence::layout(&decoded.text));
    let mut seen = std::collections::BTreeSet::new();
    let different = found.sound.into_iter().map(|sound| sound.value);
    different.filter(|value| seen.insert(crate::model::hash::canonical(value))).collect()
}
