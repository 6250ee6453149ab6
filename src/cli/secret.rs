//! The nonce of an attempt stands in no record: what a user types into a name or a text is looked at before
//! it is written, the blobs of the record as well.

use crate::error::{Error, Kind, Result};
use crate::model::decision::Turn;
use crate::model::event::Event;
use crate::model::handoff::{Attempt, AttemptState};
use crate::model::hash::Hash;
use crate::model::id::{NONCE_LENGTH, Name, in_base32};
use crate::model::state::State;

/// Refuses events, or an operation key, that hold the nonce of an attempt of this store, and blobs that hold
/// that of one which is still open: a text may quote a packet whose attempt is over.
///
/// # Errors
/// `not_blind`.
pub fn none_in(turn: &Turn<'_>, events: &[Event], op: Option<&Name>) -> Result<()> {
    let mut text = serde_json::to_string(events).unwrap_or_default();
    text.extend(op.map(|op| format!(" {op}")));
    if holds(turn.state, text.as_bytes()) || turn.blobs().iter().any(|blob| holds_open(turn.state, blob)) {
        return Err(Error::new(Kind::NotBlind, "the record would hold the nonce of a packet")
            .because("it stands in a name or a text that was given")
            .fix("give the command without it; --nonce and NF_NONCE are where it belongs"));
    }
    Ok(())
}

/// Whether bytes hold the nonce of an attempt of this store, open or over.
pub fn holds(state: &State, bytes: &[u8]) -> bool {
    nonces(bytes).any(|nonce| attempt(state, nonce).is_some())
}

/// Whether bytes hold the nonce of an attempt that is still open.
pub fn holds_open(state: &State, bytes: &[u8]) -> bool {
    let open = |attempt: Attempt| attempt.state == AttemptState::Active;
    nonces(bytes).any(|nonce| attempt(state, nonce).is_some_and(open))
}

/// What has the form of a nonce: that many of its characters, and none more on either side.
fn nonces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| !in_base32(*byte)).filter(|word| word.len() == NONCE_LENGTH)
}

fn attempt(state: &State, nonce: &[u8]) -> Option<Attempt> {
    state.attempt_of_nonce(&Hash::of(nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_form_of_a_nonce_is_found_in_any_bytes() {
        let nonce = "0123456789abcdefghjkmnpqrs";
        assert_eq!(nonce.len(), NONCE_LENGTH);
        for (bytes, found) in [
            (format!("nonce: {nonce}\n"), 1),
            (format!("{{\"seen\":\"{nonce}\"}}"), 1),
            (format!("X{nonce}_{nonce}\u{fe}"), 2),
            (format!("{nonce}0"), 0),
            (nonce.to_uppercase(), 0),
            (String::new(), 0),
        ] {
            assert_eq!(nonces(bytes.as_bytes()).count(), found, "{bytes}");
        }
        assert_eq!(nonces(&[&[0xff][..], nonce.as_bytes(), &[0]].concat()).count(), 1);
    }
}
