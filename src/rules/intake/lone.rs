//! Replies that are one known thing and no answer: nothing at all, a placeholder, the word "truncated".
//! Must never look at a reply that holds anything else.

use super::Reason;
use super::fence::{Block, Layout, Role};

/// What the reply is, if it is nothing else.
pub(super) fn lone(text: &str, layout: &Layout) -> Option<Reason> {
    let mut content = layout.blocks.iter().map(|block| piece(text, block)).filter(|text| !text.is_empty());
    let first = match content.next() {
        None => return Some(Reason::Empty),
        Some(first) => first,
    };
    if layout.blocks.iter().any(|block| matches!(block.role, Role::Form(_))) {
        return None;
    }
    let mut all = std::iter::once(first).chain(content);
    if all.clone().all(placeholders) {
        return Some(Reason::Placeholder);
    }
    let only = all.next().filter(|_| all.next().is_none())?;
    let word = only.trim_matches(|c: char| !c.is_alphanumeric());
    // A word in brackets of an object or a call is somebody's data, not the word alone.
    let alone = word.eq_ignore_ascii_case("truncated") && !only.contains(['{', '<', '=', ':']);
    alone.then_some(Reason::PacketCut)
}

fn piece<'a>(text: &'a str, block: &Block) -> &'a str {
    text[block.start..block.end]
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'))
}

/// Whether a text is one or more placeholders, such as `[Pasted text #1 +40 lines]`, and nothing else.
pub(super) fn placeholders(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(length) = placeholder(rest) {
        rest = rest[length..].trim_start();
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// The words that chat programs put first in a placeholder.
const WORDS: &[&str] =
    &["pasted", "truncated text", "image", "attached", "attachment", "file", "screenshot", "document", "pdf"];

/// The length of the placeholder that a text begins with.
fn placeholder(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let length = inside.find([']', '[', '{', '"', '\n'])?;
    let words = inside[..length].trim_start_matches(['.', '\u{2026}', ' ']).to_ascii_lowercase();
    let known = WORDS.iter().any(|word| {
        words.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic()))
    });
    (inside[length..].starts_with(']') && known).then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::super::fence::layout;
    use super::*;

    #[test]
    fn what_stands_alone_is_named() {
        for (text, want) in [
            ("", Some(Reason::Empty)),
            (" \r\n\t\u{a0}\n", Some(Reason::Empty)),
            ("```json\n```\n", Some(Reason::Empty)),
            ("[Pasted text #1 +40 lines]", Some(Reason::Placeholder)),
            ("[Image #1]\n", Some(Reason::Placeholder)),
            ("[Pasted Content 1234 chars]", Some(Reason::Placeholder)),
            ("[Pasted text #1 +40 lines] [Pasted text #2]", Some(Reason::Placeholder)),
            ("[...Truncated text #1 +10 lines...]", Some(Reason::Placeholder)),
            ("```\n[Pasted text #1]\n```", Some(Reason::Placeholder)),
            ("see [Pasted text #1]", None),
            ("[Images]", None),
            ("[1, 2]", None),
            ("truncated", Some(Reason::PacketCut)),
            ("\u{201c}Truncated.\u{201d}\n", Some(Reason::PacketCut)),
            ("**TRUNCATED**", Some(Reason::PacketCut)),
            ("```text\ntruncated\n```\n", Some(Reason::PacketCut)),
            ("`truncated`", Some(Reason::PacketCut)),
            ("It was truncated.", None),
            ("{\"truncated\"}", None),
            ("truncated\n```\ntruncated\n```", None),
        ] {
            assert_eq!(lone(text, &layout(text)), want, "{text:?}");
        }
    }
}
