//! The nonces that a reply shows, so that one that does not read can be recorded against its attempt.
//! Must never be used to read a value, and proves nothing by itself.

use crate::model::id::{CROCKFORD, NONCE_LENGTH};

use super::decode;

/// At most so many characters of quotes, colon and space may stand between the key and the nonce.
const GAP: usize = 40;

/// Every distinct nonce that stands behind a key `nonce`, in the order of their first appearance.
///
/// The key and the nonce may be in the quotes of JSON, of YAML or in none, or in quotes that make the
/// reply unreadable (curly, escaped, HTML): the characters of the nonce are compared exactly all the same.
/// Bytes that cannot be decoded are passed over (domain, "No reviewer shopping": every intake that carries
/// a known nonce is recorded).
pub fn nonces(bytes: &[u8]) -> Vec<String> {
    let text = decode::lossy(bytes);
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for (at, key) in text.match_indices("nonce") {
        let longer_key = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let nonce = behind(&text[at + key.len()..]).filter(|_| !longer_key);
        found.extend(nonce.filter(|nonce| seen.insert(*nonce)).map(str::to_owned));
    }
    found
}

/// The nonce behind the key's last letter: quotes and spaces, one colon among them, then the nonce.
fn behind(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut colon = false;
    for _ in 0..GAP {
        let next = rest.chars().next()?;
        if let Some(after) =
            ["&quot;", "&#34;", "&#39;", "&apos;"].iter().find_map(|entity| rest.strip_prefix(entity))
        {
            rest = after;
            continue;
        }
        if next.is_alphanumeric() || (next == ':' && colon) || next == ',' {
            break;
        }
        colon |= matches!(next, ':' | '\u{ff1a}');
        rest = &rest[next.len_utf8()..];
    }
    let nonce = rest.get(..NONCE_LENGTH)?;
    let exact = colon && nonce.bytes().all(|byte| CROCKFORD.contains(&byte));
    let ends = !rest[NONCE_LENGTH..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (exact && ends).then_some(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdefghjkmnpqrs";
    const B: &str = "zyxwvtsrqpnmkjhgfedcba9876";

    #[test]
    fn nonces_are_found_in_every_spelling_and_each_once() {
        for text in [
            format!("{{\"nonce\":\"{A}\"}}"),
            format!("{{\"nonce\" : \"{A}\" cut"),
            format!("\"nonce\":\n  \"{A}\","),
            format!("  nonce: {A}\n"),
            format!("  nonce: '{A}' # yours"),
            format!("{{\u{201c}nonce\u{201d}: \u{201c}{A}\u{201d}}}"),
            format!("{{\\\"nonce\\\":\\\"{A}\\\"}}"),
            format!("{{&quot;nonce&quot;:&quot;{A}&quot;}}"),
            format!("\"nonce\":\"{A}\" \"nonce\":\"{A}\""),
            format!("\"nonce\":\"{A}\" caf\u{e9}"),
        ] {
            assert_eq!(nonces(text.as_bytes()), [A], "{text}");
        }
        let both = format!("\"nonce\":\"{B}\", \"nonce\":\"{A}\", \"nonce\":\"{B}\"");
        assert_eq!(nonces(both.as_bytes()), [B, A]);
    }

    #[test]
    fn replies_that_do_not_decode_still_show_theirs() {
        let text = format!("{{\"nonce\":\"{A}\"}}");
        let latin = [text.as_bytes(), b" caf\xe9"].concat();
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let odd = [&[0xFF, 0xFE], units.as_slice(), b"x"].concat();
        for bytes in [latin, units, odd] {
            assert_eq!(nonces(&bytes), [A], "{bytes:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_nonce_is_none() {
        for text in [
            format!("\"nonce\":\"{}\"", A.to_uppercase()),
            format!("\"nonce\":\"{A}0\""),
            format!("\"nonce\":\"{}\"", &A[1..]),
            format!("\"nonce\":\"{}\"", A.replace('a', "u")),
            format!("\"announce\":\"{A}\""),
            format!("\"nonce\" \"{A}\""),
            format!("\"nonce\":\"\",\"job\":\"{A}\""),
        ] {
            assert_eq!(nonces(text.as_bytes()), [""; 0], "{text}");
        }
    }
}
