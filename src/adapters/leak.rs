//! Keeps a worker's key out of all that is kept of what the worker said. Decides nothing else of an answer.

use super::ask::Failure;
use super::ask::Outcome;

/// A key that is shorter stands in any text by chance.
const SHORTEST: usize = 8;

/// Takes the key out of what a worker sent back, whichever way it was asked: an answer that repeats it is
/// none.
pub fn keep_out(key: &str, outcome: &mut Outcome) {
    let key = key.trim();
    if key.len() < SHORTEST {
        return;
    }
    let witness = &mut outcome.witness;
    for text in [&mut witness.model_served, &mut witness.request_id, &mut witness.native_session] {
        if text.as_ref().is_some_and(|text| text.contains(key)) {
            *text = None;
        }
    }
    if outcome.answer.as_ref().is_ok_and(|answer| repeats(answer, key.as_bytes())) {
        let detail = "the answer repeats the key; nothing of it was kept";
        outcome.answer = Err(Failure::failed("leaked_key", false, detail));
    }
}

/// Whether bytes hold a key, as it is or as a string of JSON may spell it.
fn repeats(bytes: &[u8], key: &[u8]) -> bool {
    let holds = |bytes: &[u8]| bytes.windows(key.len()).any(|part| part == key);
    holds(bytes) || (bytes.contains(&b'\\') && holds(&unescaped(bytes)))
}

/// The bytes with JSON's escapes of characters that a key may have undone; all others are left out.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let Some(&kind) = bytes.get(at) else { break };
        at += 1;
        if kind != b'u' {
            plain.push(kind);
            continue;
        }
        let digits = bytes.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let Some(character) = code.and_then(char::from_u32) {
            at += 4;
            plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::witness::Witness;

    #[test]
    fn a_key_is_found_as_it_is_and_as_json_may_spell_it() {
        const KEY: &str = "sk-ab/c\"d\\0";
        for (answer, leaks) in [
            (r#"it is sk-ab/c"d\0"#, true),
            (r#"{"a": "sk-ab/c\"d\\0"}"#, true),
            (r#"{"a": "sk-ab\/c\"d\\0"}"#, true),
            (r#"{"a": "\u0073k-ab\u002Fc\u0022d\u005c0"}"#, true),
            (r#"{"a": "sk-ab/c"}"#, false),
            (r#"{"a": "\u00"}"#, false),
            ("sk-ab/c\\", false),
        ] {
            let text = |text: &str| Some(text.to_owned());
            let witness = Witness {
                model_served: text(KEY),
                request_id: text("r-1"),
                native_session: text(&format!("s {KEY}")),
                ..Witness::default()
            };
            let mut outcome = Outcome { answer: Ok(answer.as_bytes().to_vec()), witness };
            keep_out(KEY, &mut outcome);
            assert_eq!(outcome.answer.is_err(), leaks, "{answer}");
            assert_eq!(outcome.witness.model_served, None);
            assert_eq!(outcome.witness.native_session, None);
            assert_eq!(outcome.witness.request_id, text("r-1"));
            keep_out("{", &mut outcome);
            assert_eq!(outcome.answer.is_err(), leaks, "what is shorter stands anywhere by chance");
        }
    }
}
