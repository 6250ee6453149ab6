//! From what a reply holds to one value or one reason. Owns the comparison of candidates, the words of a
//! refusal and what is counted as text around the value. Must never choose between two answers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::decode::Decoded;
use super::diagnose;
use super::fence::{Layout, Role, glued_closing};
use super::look::{has_word_nf, position};
use super::scan::{Broken, Cause, Found, Instead, Sound};
use super::syntax::Outcome;
use super::{Extracted, IntakeFault, Prose, Reason, Step};
use crate::model::hash::{Hash, canonical};
use crate::model::json::{Fault, FaultKind};

/// So many different candidates are shown.
const SHOWN: usize = 4;
/// So many characters of a candidate are shown.
const LONGEST: usize = 4000;
/// So many characters of a place are shown.
const NEAR: usize = 40;

/// A reply that was read.
pub(super) struct Reply<'a> {
    pub decoded: &'a Decoded,
    pub layout: &'a Layout,
}

/// A refusal before it has its position in the reply.
#[derive(Default)]
struct Refusal {
    at: Option<usize>,
    message: String,
    pointer: Option<String>,
    found: Vec<String>,
    /// What to add to the question, without a word of the reply.
    detail: Option<String>,
    /// Whether it is a human form that is refused.
    form: bool,
}

/// The reason of a fault of the guarded readers, and the pointer it names.
pub(super) fn of_fault(fault: &Fault) -> (Reason, Option<String>) {
    let reason = match fault.kind {
        FaultKind::Encoding => Reason::Encoding,
        FaultKind::DuplicateKey => Reason::DuplicateKey,
        FaultKind::NonFinite => Reason::NonFinite,
        FaultKind::IntegerRange => Reason::IntegerRange,
        FaultKind::LoneSurrogate => Reason::LoneSurrogate,
        FaultKind::Depth => Reason::Depth,
        FaultKind::Size | FaultKind::Budget => Reason::TooLarge,
        FaultKind::Syntax
        | FaultKind::Truncated
        | FaultKind::Tag
        | FaultKind::KeyNotString
        | FaultKind::Date => Reason::Broken,
    };
    (reason, Some(fault.pointer.clone()).filter(|pointer| !pointer.is_empty()))
}

impl Reply<'_> {
    fn text(&self) -> &str {
        &self.decoded.text
    }

    /// Exactly one value, or the reason why not.
    pub fn decide(&self, found: &Found, is_blank: &dyn Fn(&Value) -> bool) -> Result<Extracted, IntakeFault> {
        let mut seen = BTreeSet::new();
        let different: Vec<&Sound> =
            found.sound.iter().filter(|sound| seen.insert(canonical(&sound.value))).collect();
        let answers: Vec<&Sound> =
            different.iter().copied().filter(|sound| !is_blank(&sound.value)).collect();
        match (answers.as_slice(), &found.broken) {
            ([sound], None) => Ok(self.extracted(sound)),
            ([], Some(broken)) => Err(self.broken(broken, found.broken_count)),
            ([], None) if !different.is_empty() => Err(self.refuse(
                Reason::FormNotFilledIn,
                Refusal {
                    at: different.first().map(|sound| sound.start),
                    message: "the form came back with its blanks".to_owned(),
                    ..Refusal::default()
                },
            )),
            ([], None) => Err(self.no_answer(found)),
            (several, broken) => Err(self.ambiguous(several, broken.as_ref(), found.broken_count)),
        }
    }

    /// A fault with its position.
    fn refuse(&self, reason: Reason, refusal: Refusal) -> IntakeFault {
        let place = refusal.at.map(|at| position(self.text(), at));
        let mut ask = if refusal.form { reason.ask_form() } else { reason.ask() }.to_owned();
        if let (Some(detail), Some((line, column))) = (&refusal.detail, place) {
            ask.push_str(&format!(" (Line {line}, column {column}: {detail}.)"));
        }
        IntakeFault {
            reason,
            message: refusal.message,
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            offset: refusal.at.map(|at| self.decoded.offset(at)),
            pointer: refusal.pointer,
            found: refusal.found,
            ask,
        }
    }

    /// A reply that is one known thing.
    pub fn lone(&self, reason: Reason) -> IntakeFault {
        let message = match reason {
            Reason::Empty => "the reply is empty",
            Reason::Placeholder => {
                "the reply is only a placeholder for a pasted text; the text itself did not come"
            }
            _ => {
                "the reply is only the word \"truncated\": the packet lost its end on the way to the reviewer"
            }
        };
        self.refuse(reason, Refusal { message: message.to_owned(), ..Refusal::default() })
    }

    fn place(&self, at: usize) -> String {
        let (line, column) = position(self.text(), at);
        format!("line {line}, column {column}")
    }

    /// The text at a place, to the end of its line.
    fn near(&self, at: usize) -> String {
        let rest = self.text().get(at..).unwrap_or("");
        rest.split(['\n', '\r']).next().unwrap_or("").chars().take(NEAR).map(printable).collect()
    }

    fn broken(&self, broken: &Broken, count: usize) -> IntakeFault {
        let (reason, mut refusal) = self.cause(broken);
        if count > 1 {
            let more = if count == 2 {
                "one more does not parse".to_owned()
            } else {
                format!("{} more do not parse", count - 1)
            };
            refusal.message.push_str(&format!("; {more}"));
        }
        self.refuse(reason, refusal)
    }

    fn cause(&self, broken: &Broken) -> (Reason, Refusal) {
        let begins = format!("the value that begins at {}", self.place(broken.start));
        let at = |reason, at: usize, what: String| {
            let near = self.near(at);
            let shown = if near.is_empty() { String::new() } else { format!(": {near}") };
            let message = format!("{begins} is broken at {}: {what}{shown}", self.place(at));
            let found = if near.is_empty() { Vec::new() } else { vec![near] };
            (reason, Refusal { at: Some(at), message, found, detail: Some(what), ..Refusal::default() })
        };
        match &broken.cause {
            Cause::Syntax(walk) => {
                if let Some(deep) = walk.deep {
                    return at(Reason::Depth, deep, too_deep());
                }
                let Outcome::Broken(stop) = walk.outcome else {
                    return at(Reason::Broken, broken.start, "it is not JSON".to_owned());
                };
                let told = diagnose::tell(self.text(), walk, stop);
                at(told.reason, told.at, told.what)
            }
            Cause::Cut { deep: Some(deep), .. } => at(Reason::Depth, *deep, too_deep()),
            Cause::Cut { end, last: true, .. } => {
                let message = format!("the reply ends at {} inside {begins}", self.place(*end));
                (Reason::Truncated, Refusal { at: Some(*end), message, ..Refusal::default() })
            }
            Cause::Cut { end, .. } => at(
                Reason::Broken,
                *end,
                "a fence or a form begins or ends inside it: a bracket is missing".to_owned(),
            ),
            Cause::Guard(fault) => {
                let (reason, pointer) = of_fault(fault);
                let place = pointer.iter().map(|pointer| format!(", at {pointer}")).collect::<String>();
                let what = format!("{}{place}", fault.message).chars().map(printable).collect();
                let (reason, refusal) = at(reason, broken.start + fault.offset, what);
                // The guard's words and the pointer hold keys of the reply; the reason says what to ask.
                (reason, Refusal { detail: None, pointer, ..refusal })
            }
            Cause::Quoted => at(
                Reason::Broken,
                broken.start,
                "it stands in a block quote (`>`), which is not unwrapped".to_owned(),
            ),
            Cause::Closed(extra) => at(
                Reason::Broken,
                *extra,
                "a closing bracket too many or too early, or an opening one is missing".to_owned(),
            ),
            Cause::Member => at(
                Reason::Broken,
                broken.start,
                "a key stands before it: the start of an outer object is missing".to_owned(),
            ),
            Cause::Form(unread) => {
                let message = format!("{} ({})", unread.message, self.place(unread.at));
                // Where a form is cut, what stands there is no part of it.
                let near =
                    if unread.reason == Reason::Truncated { String::new() } else { self.near(unread.at) };
                let found = if near.is_empty() { Vec::new() } else { vec![near] };
                let pointer = unread.pointer.clone();
                (
                    unread.reason,
                    Refusal { at: Some(unread.at), message, pointer, found, detail: None, form: true },
                )
            }
        }
    }

    fn ambiguous(&self, several: &[&Sound], broken: Option<&Broken>, count: usize) -> IntakeFault {
        let mut places: Vec<String> =
            several.iter().take(SHOWN).map(|sound| self.place(sound.start)).collect();
        let mut found: Vec<String> = several.iter().take(SHOWN).map(|sound| compact(&sound.value)).collect();
        let mut message = if several.len() > 1 {
            format!("{} different answers stand in the reply", several.len())
        } else {
            "a broken answer stands beside a sound one".to_owned()
        };
        if let Some(broken) = broken {
            let (reason, refusal) = self.cause(broken);
            places.push(format!("{} ({reason})", self.place(broken.start)));
            found.push(self.near(broken.start));
            if several.len() > 1 {
                message.push_str(&format!(", and {count} broken"));
            }
            message.push_str(&format!(" ({})", refusal.message));
        }
        let message = format!("{message}: {}", places.join("; "));
        let at = several.get(1).map(|sound| sound.start).or(broken.map(|broken| broken.start));
        self.refuse(Reason::Ambiguous, Refusal { at, message, found, ..Refusal::default() })
    }

    fn no_answer(&self, found: &Found) -> IntakeFault {
        let (at, message) = match &found.instead {
            Some(Instead::Alike(broken)) => return self.broken(broken, 1),
            Some(Instead::Deep(at)) => {
                let message = format!("{} ({})", too_deep(), self.place(*at));
                return self.refuse(Reason::Depth, Refusal { at: Some(*at), message, ..Refusal::default() });
            }
            Some(Instead::Nested(at)) => {
                let outer = if self.text()[*at..].starts_with('[') { "an array" } else { "another object" };
                (
                    Some(*at),
                    format!("`nf` stands only inside {outer}, and nothing inside a value is an answer"),
                )
            }
            None => self.elsewhere(),
        };
        let message = match at {
            Some(at) => format!("{message} ({})", self.place(at)),
            None => message,
        };
        self.refuse(Reason::NoAnswer, Refusal { at, message, ..Refusal::default() })
    }

    /// Why there is not even a broken candidate.
    fn elsewhere(&self) -> (Option<usize>, String) {
        let text = self.text();
        let skipped = self
            .layout
            .blocks
            .iter()
            .find(|block| block.role == Role::Skipped && has_word_nf(&text[block.start..block.end]));
        if let Some(fence) = skipped.and_then(|block| block.fence) {
            let at = self.layout.fences[fence].opening.0;
            return (
                Some(at),
                format!("an `nf` member stands in a fence that is not read: {}", self.near(at).trim()),
            );
        }
        if let Some(at) = text.find("NF FORM ") {
            return (Some(at), "the lines that mark a form are not whole lines of their own".to_owned());
        }
        if let Some(at) = text.find(['\u{ff5b}', '\u{ff3b}']) {
            return (
                Some(at),
                "a fullwidth bracket opens no value, and no object with an `nf` member was found".to_owned(),
            );
        }
        if let Some(at) = text.find("\"nf\"") {
            return (Some(at), "the key `nf` stands in no object".to_owned());
        }
        (None, "no object with an `nf` member was found".to_owned())
    }

    fn extracted(&self, sound: &Sound) -> Extracted {
        let around = self.around(sound);
        let white = around.chars().all(char::is_whitespace);
        let prose = (!white).then(|| Prose { bytes: around.len() as u64, hash: Hash::of(around.as_bytes()) });
        // A no-break space around a value that stands alone was read as a space too.
        let no_break_space = sound.no_break_space || white && around.contains('\u{a0}');
        let steps = [
            (Step::Utf16Decoded, self.decoded.was_utf16()),
            (Step::BomRemoved, self.decoded.had_mark()),
            (Step::FenceExtracted, sound.fence.is_some()),
            (Step::ProseStripped, prose.is_some()),
            (Step::NbspWhitespace, no_break_space),
            (Step::YamlFormParsed, sound.form),
        ];
        let steps = steps.into_iter().filter(|(_, taken)| *taken).map(|(step, _)| step).collect();
        Extracted { value: sound.value.clone(), steps, prose }
    }

    /// All text but the value and the lines of its own fence.
    fn around(&self, sound: &Sound) -> String {
        let text = self.text();
        let Some(fence) = sound.fence.map(|index| &self.layout.fences[index]) else {
            return [&text[..sound.start], &text[sound.end..]].concat();
        };
        let before = [&text[..fence.opening.0], &text[fence.opening.1..sound.start]];
        let after = match fence.closing {
            Some((start, end)) => [&text[sound.end..start], &text[end..]],
            None => {
                let rest = &text[sound.end..];
                ["", &rest[glued_closing(fence, rest)..]]
            }
        };
        [before, after].concat().concat()
    }
}

/// A character as it may be shown: none that could move a cursor or turn the direction of a terminal.
fn printable(c: char) -> char {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { char::REPLACEMENT_CHARACTER } else { c }
}

fn too_deep() -> String {
    "brackets are nested deeper than 128".to_owned()
}

/// A value as compact JSON, to be shown; a long one is cut.
fn compact(value: &Value) -> String {
    let json = canonical(value);
    let text = String::from_utf8_lossy(&json);
    let shown: String = text.chars().map(printable).take(LONGEST).collect();
    let longer = text.chars().nth(LONGEST).is_some();
    if longer { format!("{shown}\u{2026} ({} bytes)", json.len()) } else { shown }
}
