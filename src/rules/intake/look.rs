//! Small looks at the text of a run: does it name `nf`, does its bracket begin a value. Each is linear in
//! what it passes. Decides nothing.

/// Whether the text holds the key that makes a candidate.
pub(super) fn names_nf(run: &str) -> bool {
    run.contains("\"nf\"")
}

/// Whether the word `nf` stands in the text, in whatever quotes: only to explain a refusal.
pub(super) fn has_word_nf(run: &str) -> bool {
    word_nf(run).is_some()
}

/// Where the word `nf` stands first.
pub(super) fn word_nf(text: &str) -> Option<usize> {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices("nf").map(|(at, _)| at).find(|at| {
        let (before, after) = (text[..*at].chars().next_back(), text[*at + 2..].chars().next());
        !word(before) && !word(after)
    })
}

/// Characters that people and programs use as quotes around a key or a string.
pub(super) const QUOTES: &[char] = &[
    '"', '\'', '`', '\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}',
    '\u{ab}', '\u{bb}', '\u{ff02}', '\u{ff07}',
];

/// What is read as white space between the tokens of a value.
const SPACE: &[char] = &[' ', '\t', '\n', '\r', '\u{a0}'];

/// Whether the bracket at the start of a text that is not JSON begins an object or a list all the same,
/// however sloppy: a first key with its colon, a first string with its comma, or a comment. What else
/// follows a bracket is prose.
pub(super) fn begins_value(run: &str) -> bool {
    // Only what a walk passes as white space is passed here, so that this stops no later than the walk did
    // and lines of brackets cost no look at all the lines that follow.
    let mut rest = run;
    while let Some(inner) = rest.strip_prefix('[') {
        rest = inner.trim_start_matches(SPACE);
    }
    let (inside, ends): (&str, &[char]) = match rest.strip_prefix('{') {
        Some(inside) => (inside.trim_start_matches(SPACE), &[':', '\u{ff1a}']),
        None => (rest, &[',', ']']),
    };
    if inside.starts_with("//") || inside.starts_with("/*") {
        return true;
    }
    let after = match quoted(inside) {
        Some(after) => after,
        None if ends.contains(&':') => {
            inside.trim_start_matches(|c: char| c.is_alphanumeric() || "_-$.".contains(c))
        }
        None => return false,
    };
    after.len() < inside.len() && after.trim_start_matches(SPACE).starts_with(ends)
}

/// Whether a text ends with a key in double quotes and its colon, where an object has its members: at a
/// line's start or behind a bracket or a comma. A quoted word in a sentence is no key. Keys of more than
/// a few hundred bytes are not looked for, so that one long line costs no look at all of it.
pub(super) fn ends_with_key(text: &str) -> bool {
    const DOUBLE: &[char] = &['"', '\u{ff02}'];
    let Some(key) = text.trim_end().strip_suffix(':').and_then(|head| head.trim_end().strip_suffix(DOUBLE))
    else {
        return false;
    };
    let mut window = key.len().saturating_sub(300);
    while !key.is_char_boundary(window) {
        window += 1;
    }
    let line = key[window..].rsplit(['\n', '\r']).next().unwrap_or("");
    line.rfind(DOUBLE).is_some_and(|open| {
        let head = line[..open].trim_end();
        head.is_empty() || head.ends_with([',', '{', '[', '}', ']', '\u{ff5b}', '\u{ff3b}'])
    })
}

/// What follows the quoted text at the start of a line's rest.
fn quoted(text: &str) -> Option<&str> {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let end = if let Some(rest) = line.strip_prefix("&quot;") {
        rest.find("&quot;")? + 2 * "&quot;".len()
    } else {
        let first = line.strip_prefix('\\').unwrap_or(line);
        let inner = first.strip_prefix(QUOTES)?;
        let length = inner.find(QUOTES)?;
        let close = inner[length..].chars().next().map_or(0, char::len_utf8);
        line.len() - inner.len() + length + close
    };
    text.get(end..)
}

/// A run of JSON with each no-break space outside its strings as two spaces: so no offset changes.
pub(super) fn spaces(run: &str) -> String {
    let mut out = String::with_capacity(run.len());
    let (mut string, mut escaped) = (false, false);
    for c in run.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            '\u{a0}' if !string => {
                out.push_str("  ");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The line and column (from 1, in characters) of a byte of a text. A line ends with LF, CR or both.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text.as_bytes()[..end];
    let mut line = 1;
    let mut start = 0;
    for (index, byte) in before.iter().enumerate() {
        if *byte == b'\n' || (*byte == b'\r' && text.as_bytes().get(index + 1) != Some(&b'\n')) {
            line += 1;
            start = index + 1;
        }
    }
    (line, text[start..end].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_begins_a_value_or_prose() {
        for begins in [
            "{\"draft\": x",
            "{draft: x",
            "{ 'draft' : x",
            "{\u{201c}draft\u{201d}: x",
            "{&quot;draft&quot;: x",
            "{\\\"draft\\\": x",
            "{`a`: 1",
            "{\n  draft-1: x",
            "[{a: 1",
            "[[\"a\", x",
            "['a', x",
            "{ // note\n",
            "[ /* note */",
        ] {
            assert!(begins_value(begins), "{begins}");
        }
        for prose in [
            "[1 for more",
            "[0, 1) holds",
            "[see, for one",
            "[ ",
            "{",
            "{ in code",
            "{\" as usual.",
            "{\" and \"}\" are",
            "{\" as usual.\n\"a\": 1",
            "{{x}",
            "[",
            "[\"Foo\" was said",
            "{: x",
        ] {
            assert!(!begins_value(prose), "{prose}");
        }
    }

    #[test]
    fn a_key_is_told_from_a_quoted_word() {
        for key in ["\"draft\": ", "x\n  \"draft\" :\n", "}, \"draft\":"] {
            assert!(ends_with_key(key), "{key}");
        }
        for prose in
            ["My \"answer\": ", "answer: ", "\": ", "\u{201c}Review\u{201d}:\n", "\"draft\" ", "\"a\": b", ""]
        {
            assert!(!ends_with_key(prose), "{prose}");
        }
    }

    #[test]
    fn the_word_is_told_from_parts_of_words() {
        for text in ["{nf: 1}", "\u{201c}nf\u{201d}", "'nf'", "\\\"nf\\\"", "nf"] {
            assert!(has_word_nf(text), "{text}");
        }
        for text in ["info", "nfc", "_nf", "conf", "NF"] {
            assert!(!has_word_nf(text), "{text}");
        }
    }

    #[test]
    fn spaces_change_nothing_in_strings() {
        let run = "{\u{a0}\"a\u{a0}\\\"\u{a0}\":\u{a0}1}";
        assert_eq!(spaces(run), "{  \"a\u{a0}\\\"\u{a0}\":  1}");
        assert_eq!(spaces(run).len(), run.len());
    }

    #[test]
    fn positions_count_lines_of_every_kind_and_characters() {
        let text = "a\nb\r\n\u{e9}c\rd";
        for (offset, want) in
            [(0, (1, 1)), (2, (2, 1)), (5, (3, 1)), (7, (3, 2)), (8, (3, 3)), (9, (4, 1)), (99, (4, 2))]
        {
            assert_eq!(position(text, offset), want, "{offset}");
        }
    }
}
