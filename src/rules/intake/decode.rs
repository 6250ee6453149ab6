//! From the bytes of a reply to its text. Owns byte order marks and encodings.
//! Must never guess an encoding and never replace a byte that it cannot read.

/// A reply as text, with what it takes to name a place in its bytes again.
pub(super) struct Decoded {
    /// The text, without its byte order mark.
    pub text: String,
    encoding: Encoding,
}

/// How the bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    MarkedUtf8,
    Utf16,
}

/// Why bytes are not text, and the first byte that shows it.
#[derive(Debug)]
pub(super) struct Undecodable {
    /// Counted from the first byte of the reply.
    pub offset: usize,
    pub message: String,
}

impl Decoded {
    /// Whether the bytes were UTF-16 with its mark.
    pub fn was_utf16(&self) -> bool {
        self.encoding == Encoding::Utf16
    }

    /// Whether a UTF-8 mark was removed.
    pub fn had_mark(&self) -> bool {
        self.encoding == Encoding::MarkedUtf8
    }

    /// The offset in the reply's own bytes of an offset in the text.
    pub fn offset(&self, in_text: usize) -> usize {
        match self.encoding {
            Encoding::Utf8 => in_text,
            Encoding::MarkedUtf8 => UTF8_MARK.len() + in_text,
            Encoding::Utf16 => {
                let before = self.text.get(..in_text).unwrap_or(&self.text);
                2 + 2 * before.encode_utf16().count()
            }
        }
    }
}

const UTF8_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
const UTF16_LITTLE: &[u8] = &[0xFF, 0xFE];
const UTF16_BIG: &[u8] = &[0xFE, 0xFF];
const UTF32_LITTLE: &[u8] = &[0xFF, 0xFE, 0, 0];
const UTF32_BIG: &[u8] = &[0, 0, 0xFE, 0xFF];

/// Reads UTF-8, with or without its mark, and UTF-16 with its mark.
///
/// Errors: the offset of the first byte that is neither. UTF-32 is refused by its mark, since its
/// little-endian mark begins like that of UTF-16.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Undecodable> {
    if bytes.starts_with(UTF32_LITTLE) || bytes.starts_with(UTF32_BIG) {
        return Err(fault(0, "a UTF-32 byte order mark".to_owned()));
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_LITTLE) {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_BIG) {
        return utf16(rest, u16::from_be_bytes);
    }
    let (encoding, rest) = match bytes.strip_prefix(UTF8_MARK) {
        Some(rest) => (Encoding::MarkedUtf8, rest),
        None => (Encoding::Utf8, bytes),
    };
    if let Some(offset) = unmarked_utf16(bytes) {
        return Err(fault(offset, "a NUL byte, as in UTF-16 without its byte order mark".to_owned()));
    }
    match std::str::from_utf8(rest) {
        Ok(text) => Ok(Decoded { text: text.to_owned(), encoding }),
        Err(error) => {
            let offset = bytes.len() - rest.len() + error.valid_up_to();
            let byte = bytes.get(offset).copied().unwrap_or(0);
            let cut = if error.error_len().is_none() { ": the bytes end inside a character" } else { "" };
            Err(fault(offset, format!("the byte {byte:#04x}, which is not UTF-8{cut}")))
        }
    }
}

fn fault(offset: usize, what: String) -> Undecodable {
    Undecodable { offset, message: format!("at byte {offset} stands {what}") }
}

fn utf16(rest: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Decoded, Undecodable> {
    let (pairs, odd) = rest.as_chunks::<2>();
    let mut text = String::with_capacity(rest.len() / 2);
    let mut offset = 2;
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match character {
            Ok(character) => {
                text.push(character);
                offset += 2 * character.len_utf16();
            }
            Err(error) => {
                let what = format!("the lone surrogate {:#06x} in UTF-16", error.unpaired_surrogate());
                return Err(fault(offset, what));
            }
        }
    }
    if odd.is_empty() {
        Ok(Decoded { text, encoding: Encoding::Utf16 })
    } else {
        Err(fault(offset, "half of a UTF-16 character: the number of bytes is odd".to_owned()))
    }
}

/// The first NUL, where NULs are as frequent as in UTF-16. They are valid UTF-8, so that the bytes would
/// otherwise be read as a text full of NULs and refused with a reason that helps nobody.
fn unmarked_utf16(bytes: &[u8]) -> Option<usize> {
    let first = bytes.iter().position(|byte| *byte == 0)?;
    let nuls = bytes.iter().filter(|byte| **byte == 0).count();
    (first < 4 || nuls * 4 >= bytes.len()).then_some(first)
}

/// The text as well as it can be read, for what is searched in replies that are refused: only to find the
/// attempt that a failed reply belongs to, never to read a value from.
pub(super) fn lossy(bytes: &[u8]) -> String {
    if let Ok(decoded) = decode(bytes) {
        return decoded.text;
    }
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes).replace('\0', ""),
    };
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units).replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16_bytes(text: &str, little: bool) -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    }

    #[test]
    fn each_encoding_gives_the_same_text() {
        let text = "{\"a\":\"caf\u{e9} \u{1f600}\"}";
        for bytes in [
            text.as_bytes().to_vec(),
            [UTF8_MARK, text.as_bytes()].concat(),
            utf16_bytes(text, true),
            utf16_bytes(text, false),
        ] {
            assert_eq!(decode(&bytes).unwrap().text, text);
        }
    }

    #[test]
    fn offsets_are_those_of_the_bytes_as_given() {
        let text = "\u{1f600}x";
        assert_eq!(decode(text.as_bytes()).unwrap().offset(4), 4);
        assert_eq!(decode(&[UTF8_MARK, text.as_bytes()].concat()).unwrap().offset(4), 7);
        assert_eq!(decode(&utf16_bytes(text, true)).unwrap().offset(4), 6);
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_at_the_first_bad_one() {
        let lone = [utf16_bytes("ab", true), vec![0x00, 0xD8, b'c', 0]].concat();
        let latin = b"{\"a\":\"caf\xe9\"}";
        let bare_little: Vec<u8> = utf16_bytes("{\"a\":1}", true)[2..].to_vec();
        let bare_big: Vec<u8> = utf16_bytes("{\"a\":1}", false)[2..].to_vec();
        for (bytes, offset) in [
            (latin.to_vec(), 9),
            ([UTF8_MARK, latin.as_slice()].concat(), 12),
            (utf16_bytes("abc", true)[..7].to_vec(), 6),
            (lone, 6),
            (vec![0xFF, 0xFE, 0, 0, b'{', 0, 0, 0], 0),
            (vec![0, 0, 0xFE, 0xFF, 0, 0, 0, b'{'], 0),
            (bare_little, 1),
            (bare_big, 0),
            ("caf\u{e9}".as_bytes()[..4].to_vec(), 3),
        ] {
            assert_eq!(decode(&bytes).err().map(|fault| fault.offset), Some(offset), "{bytes:?}");
        }
    }

    #[test]
    fn a_stray_nul_far_inside_is_a_character_like_any_other() {
        assert!(decode(b"some prose with one \0 inside").is_ok());
    }
}
