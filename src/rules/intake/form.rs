//! The human form: the YAML lines between `# NF FORM <handoff>` and `# END NF FORM <handoff>`.
//! Must never read lines that have no end marker, and never alters a character inside a text of the form.

use serde_json::Value;

use super::Reason;
use super::decide::of_fault;
use super::fence::Form;
use crate::model::yaml;

/// Why a form gives no value.
#[derive(Debug)]
pub(super) struct Unread {
    pub reason: Reason,
    pub message: String,
    /// Where, as an offset in the whole text.
    pub at: usize,
    pub pointer: Option<String>,
}

/// Reads a form's value, and tells whether no-break spaces of its indentation were read as spaces.
///
/// Errors: `truncated` without its last line, what the guarded YAML reader refuses, and `no_answer` where
/// the lines give no object with an `nf` member.
pub(super) fn read(text: &str, form: &Form) -> Result<(Value, bool), Unread> {
    let start = form.start;
    if !form.complete {
        let message = "the form has no line `# END NF FORM` with its own handoff".to_owned();
        return Err(Unread { reason: Reason::Truncated, message, at: form.end, pointer: None });
    }
    let sent = &text[form.start..form.end];
    let (lines, moved) = match unindented(sent, &form.indent) {
        Some(lines) => (lines, form.indent.chars().count()),
        None => (sent.to_owned(), 0),
    };
    let (lines, no_break_space) = with_plain_indentation(lines);
    let value = yaml::parse(lines.as_bytes()).map_err(|fault| {
        let (line, column) = (fault.line.max(1), fault.column.max(1) + moved);
        let (reason, pointer) = of_fault(&fault);
        let message = format!("the form is not the YAML that is read here: {}", fault.message);
        Unread { reason, message, at: start + offset_of(sent, line, column), pointer }
    })?;
    if value.get("nf").is_none() {
        let message = "the form has no member `nf`".to_owned();
        let reason = Reason::NoAnswer;
        return Err(Unread { reason, message, at: start, pointer: None });
    }
    Ok((value, no_break_space))
}

/// The byte of a line and column, both from 1.
fn offset_of(lines: &str, line: usize, column: usize) -> usize {
    let mut all = lines.split_inclusive('\n');
    let start: usize = all.by_ref().take(line - 1).map(str::len).sum();
    start + all.next().unwrap_or("").chars().take(column - 1).map(char::len_utf8).sum::<usize>()
}

/// The lines without the white space that stands before the first marker too, if all have it.
fn unindented(lines: &str, indent: &str) -> Option<String> {
    let mut out = String::with_capacity(lines.len());
    for line in lines.split_inclusive('\n') {
        match line.strip_prefix(indent) {
            Some(rest) => out.push_str(rest),
            None if line.trim().is_empty() => out.push_str(line.trim_start_matches([' ', '\t', '\u{a0}'])),
            None => return None,
        }
    }
    Some(out)
}

/// No-break spaces in the indentation as spaces. Where a block text (`|` or `>` at a line's end) may hold
/// them as characters of its own, nothing is changed.
fn with_plain_indentation(lines: String) -> (String, bool) {
    let indented = |line: &str| line.len() - line.trim_start_matches([' ', '\u{a0}']).len();
    let has = lines.split('\n').any(|line| line[..indented(line)].contains('\u{a0}'));
    if !has || lines.split('\n').any(opens_block_text) {
        return (lines, false);
    }
    let plain = lines.split_inclusive('\n').map(|line| {
        let (indentation, rest) = line.split_at(indented(line));
        indentation.replace('\u{a0}', " ") + rest
    });
    (plain.collect(), true)
}

fn opens_block_text(line: &str) -> bool {
    let head = line.split(" #").next().unwrap_or(line).trim_end();
    let head = head.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
    head.ends_with(['|', '>'])
}

#[cfg(test)]
mod tests {
    use super::super::fence::{Role, layout};
    use super::*;

    fn read_first(text: &str) -> Result<(Value, bool), Unread> {
        let layout = layout(text);
        let form = layout.blocks.iter().find_map(|block| match &block.role {
            Role::Form(form) => Some(form),
            _ => None,
        });
        read(text, form.unwrap())
    }

    #[test]
    fn a_form_is_read_as_it_was_sent() {
        let want = serde_json::json!({"nf": {"job": "j-1"}, "output": {"verdict": "reject"}});
        let body = "nf:\n  job: j-1\noutput:\n  # one of accept, reject\n  verdict: reject\n";
        let text = format!("# NF FORM h-1\n{body}# END NF FORM h-1\n");
        let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
        for (text, nbsp) in [
            (text.clone(), false),
            (text.replace('\n', "\r\n"), false),
            (indented, false),
            (text.replace("  ", "\u{a0}\u{a0}"), true),
            (text.replace("  ", "\u{a0} "), true),
        ] {
            assert_eq!(read_first(&text).unwrap(), (want.clone(), nbsp), "{text:?}");
        }
    }

    #[test]
    fn characters_of_a_block_text_are_never_altered() {
        let text = "# NF FORM h-1\nnf: {}\nreason: |\n  a\n  \u{a0}b\n# END NF FORM h-1\n";
        let (value, changed) = read_first(text).unwrap();
        assert_eq!((value["reason"].as_str(), changed), (Some("a\n\u{a0}b\n"), false));
    }

    #[test]
    fn a_form_without_its_end_is_never_read() {
        let unread = read_first("x\n# NF FORM h-1\nnf: {}\n# END NF FORM h-2\n").unwrap_err();
        assert_eq!((unread.reason, unread.at), (Reason::Truncated, 41));
    }

    #[test]
    fn a_form_that_is_not_yaml_or_has_no_identity_is_named() {
        let broken = read_first("# NF FORM h-1\nnf: {}\na: [1\nb: 2\n# END NF FORM h-1\n").unwrap_err();
        assert_eq!(broken.reason, Reason::Broken);
        assert!((21..33).contains(&broken.at), "{broken:?}");
        let other = read_first("# NF FORM h-1\n- a\n# END NF FORM h-1\n").unwrap_err();
        assert_eq!(other.reason, Reason::NoAnswer);
    }
}
