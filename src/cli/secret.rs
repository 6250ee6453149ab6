//! The nonce of an attempt stands in no record: what a user types into a name or a short text is looked at
//! before it is written.

use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::hash::Hash;
use crate::model::id::{NONCE_LENGTH, Name, is_base32};
use crate::model::state::State;

/// Refuses events, or an operation key, that hold the nonce of an attempt of this store.
///
/// # Errors
/// `not_blind`.
pub fn none_in(state: &State, events: &[Event], op: Option<&Name>) -> Result<()> {
    let mut text = serde_json::to_string(events).unwrap_or_default();
    text.extend(op.map(|op| format!(" {op}")));
    none_in_text(state, &text)
}

/// Refuses a text that is kept, in a record or beside it, and holds the nonce of an attempt of this store.
///
/// # Errors
/// `not_blind`.
pub fn none_in_text(state: &State, text: &str) -> Result<()> {
    if !has_nonce(state, text) {
        return Ok(());
    }
    Err(Error::new(Kind::NotBlind, "the record would hold the nonce of a packet")
        .because("it stands in a name or a text that was given")
        .fix("give the command without it; --nonce and NF_NONCE are where it belongs"))
}

/// Whether a text holds the nonce of an attempt of this store.
pub fn has_nonce(state: &State, text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_base32(word, NONCE_LENGTH));
    words.into_iter().any(|word| state.attempt_of_nonce(&Hash::of(word.as_bytes())).is_some())
}
