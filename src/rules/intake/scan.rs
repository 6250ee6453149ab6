//! Runs and candidates: which stretches of a reply may be its answer. Owns the rule of what is prose, what
//! is a value, and what is a broken candidate. Must never look for a value inside another one, sound or
//! broken, and never repairs.
//!
//! The rule, for one block at a time:
//!
//! 1. Outside a run `{` and `[` open one; quotes do not.
//! 2. A run that is JSON ends at its own bracket. An object with a member `nf` is a sound candidate. Any
//!    other value is prose, with all inside it.
//! 3. A run that is not JSON ends at the bracket that balances its first; brackets of both kinds count
//!    alike, and those inside strings do not (a string ends with its line). With `"nf"` in it, it is a
//!    broken candidate, else prose.
//! 4. A run that nothing balances goes to the end of the block, as one broken candidate if it holds
//!    `"nf"`. Only if its bracket is clearly prose is reading taken up again, at the first line that
//!    begins after the run stopped being JSON: there was no `"nf"` before that line, and the bracket
//!    begins no object or list, however sloppy (`{`, a key in any quotes or none, a colon; `[`, a string,
//!    a comma). So `see [1 for more` swallows no answer on a later line, and `{"draft": {"nf": …}` cut at
//!    its end, or `{draft: oops`, promotes nothing.
//! 5. What a block ends inside of, with all of it as JSON has it, is cut.
//! 6. A sound candidate that a closing bracket follows, or a comma and a string; that is a member of
//!    something (`"key":` before it, where a member may stand); or that stands on a line quoted with `>`,
//!    is a part of something broken, and so is it. So is the last one before a `}` that closes nothing
//!    and ends what looks like a value: an object that was closed too early leaves one.

use serde_json::Value;

use super::fence::{Block, Layout, Role};
use super::form;
use super::look::{begins_value, ends_with_key, has_word_nf, names_nf, spaces};
use super::syntax::{self, Outcome, Walk};
use crate::model::json::{self, Fault};

/// What a reply holds that matters to its answer.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Values that may be the answer, in order.
    pub sound: Vec<Sound>,
    /// The first broken candidate.
    pub broken: Option<Broken>,
    /// How many broken ones there are.
    pub broken_count: usize,
    /// The best account of why there is no candidate at all, where there is none.
    pub instead: Option<Instead>,
}

/// A value that may be the answer.
#[derive(Debug)]
pub(super) struct Sound {
    pub value: Value,
    pub start: usize,
    pub end: usize,
    /// The fence it stands in, as an index.
    pub fence: Option<usize>,
    pub no_break_space: bool,
    pub form: bool,
}

/// A candidate that is not sound.
#[derive(Debug)]
pub(super) struct Broken {
    pub start: usize,
    pub cause: Cause,
}

/// Why a candidate is not sound.
#[derive(Debug)]
pub(super) enum Cause {
    /// Not JSON.
    Syntax(Walk),
    /// JSON until the block ends; `last` where the reply ends there too.
    Cut { end: usize, last: bool, deep: Option<usize> },
    /// JSON that the guarded reader refuses.
    Guard(Fault),
    /// Its line begins with `>`.
    Quoted,
    /// A closing bracket follows, or another member.
    Closed(usize),
    /// It is a member of something whose start is missing.
    Member,
    /// A human form that does not read, or has no end.
    Form(form::Unread),
}

/// What stands where an answer was wanted.
#[derive(Debug)]
pub(super) enum Instead {
    /// A value that holds an `nf` member somewhere inside it.
    Nested(usize),
    /// A run with a word `nf` in it, though not in straight quotes; or one that the reply ends inside of.
    Alike(Broken),
    /// A value that is nested too deep.
    Deep(usize),
}

impl Instead {
    /// The account that helps most is kept.
    fn rank(&self) -> u8 {
        match self {
            Self::Nested(_) => 3,
            Self::Alike(_) => 2,
            Self::Deep(_) => 1,
        }
    }
}

/// Reads every block.
pub(super) fn scan(text: &str, layout: &Layout) -> Found {
    let mut found = Found::default();
    for block in &layout.blocks {
        match &block.role {
            Role::Text => {
                let closed = block.fence.is_some_and(|index| layout.fences[index].closing.is_some());
                let last = !closed && text[block.end..].trim().is_empty();
                // White space at the end is left out, so that a value cut inside a word or a string is seen
                // as cut, and not as one with a line break in it.
                let text = text[..block.end].trim_end();
                let mut scanner = Scanner { text, block, last, lows: None, found: &mut found };
                scanner.block();
            }
            Role::Skipped => {}
            Role::Form(lines) => {
                let (start, end) = (block.start, block.end);
                match form::read(text, lines) {
                    Ok((value, no_break_space)) => {
                        let fence = block.fence;
                        found.sound.push(Sound { value, start, end, fence, no_break_space, form: true });
                    }
                    Err(unread) => found.broken(Broken { start, cause: Cause::Form(unread) }),
                }
            }
        }
    }
    found
}

impl Found {
    fn broken(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
        self.broken_count += 1;
    }

    fn instead(&mut self, instead: Instead) {
        if self.instead.as_ref().is_none_or(|kept| kept.rank() < instead.rank()) {
            self.instead = Some(instead);
        }
    }
}

struct Scanner<'a> {
    /// The whole text up to the end of the block, without white space at its end.
    text: &'a str,
    block: &'a Block,
    last: bool,
    /// Made when it is first needed.
    lows: Option<Lows>,
    found: &'a mut Found,
}

impl Scanner<'_> {
    fn block(&mut self) {
        let mut at = self.block.start;
        let mut line = at;
        while let Some(byte) = self.text.as_bytes().get(at) {
            match byte {
                b'{' | b'[' => {
                    let next = self.run(at, line);
                    if let Some(end) = self.text[at..next].rfind(['\n', '\r']) {
                        line = at + end + 1;
                    }
                    at = next;
                }
                b'\n' | b'\r' => {
                    at += 1;
                    line = at;
                }
                b'}' => {
                    self.stray(at);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Rule 6, its last sentence.
    fn stray(&mut self, at: usize) {
        let before = self.text[self.block.start..at].trim_end().chars().next_back();
        let ends_value = before.is_some_and(|c| matches!(c, '"' | '}' | ']') || c.is_alphanumeric());
        let here = |sound: &mut Sound| sound.start >= self.block.start;
        if let Some(sound) = self.found.sound.pop_if(|sound| ends_value && here(sound)) {
            self.found.broken(Broken { start: sound.start, cause: Cause::Closed(at) });
        }
    }

    /// Reads the run that opens at `start` and gives where to read on.
    fn run(&mut self, start: usize, line: usize) -> usize {
        let walk = syntax::walk(self.text, start);
        match walk.outcome {
            Outcome::Whole(end) => {
                self.whole(start, end, line, &walk);
                end
            }
            Outcome::Cut => {
                let end = self.text.len();
                let cause = Cause::Cut { end, last: self.last, deep: walk.deep };
                let broken = Broken { start, cause };
                if names_nf(&self.text[start..]) {
                    self.found.broken(broken);
                } else if self.last {
                    self.found.instead(Instead::Alike(broken));
                }
                end
            }
            Outcome::Broken(stop) => self.not_json(start, stop.at, walk),
        }
    }

    fn whole(&mut self, start: usize, end: usize, line: usize, walk: &Walk) {
        let run = &self.text[start..end];
        // An array can be no answer, and its guard's opinion helps nobody.
        if run.starts_with('[') {
            if names_nf(run) {
                self.found.instead(Instead::Nested(start));
            } else if let Some(deep) = walk.deep {
                self.found.instead(Instead::Deep(deep));
            }
            return;
        }
        let parsed = if walk.no_break_space {
            json::parse(spaces(run).as_bytes())
        } else {
            json::parse(run.as_bytes())
        };
        let cause = match parsed {
            Ok(value) if value.get("nf").is_some() => match self.part_of_something(start, end, line) {
                Some(cause) => cause,
                None => {
                    let (fence, no_break_space) = (self.block.fence, walk.no_break_space);
                    self.found.sound.push(Sound { value, start, end, fence, no_break_space, form: false });
                    return;
                }
            },
            Ok(_) if names_nf(run) => return self.found.instead(Instead::Nested(start)),
            Ok(_) => return,
            Err(fault) if names_nf(run) => Cause::Guard(fault),
            Err(_) => return walk.deep.into_iter().for_each(|deep| self.found.instead(Instead::Deep(deep))),
        };
        self.found.broken(Broken { start, cause });
    }

    /// Rule 6.
    fn part_of_something(&self, start: usize, end: usize, line: usize) -> Option<Cause> {
        let head = &self.text[line..];
        let unindented = head.trim_start_matches(' ');
        if unindented.starts_with('>') && head.len() - unindented.len() <= 3 {
            return Some(Cause::Quoted);
        }
        let after = self.text[end..].trim_start();
        let goes_on = after.strip_prefix(',').is_some_and(|more| more.trim_start().starts_with('"'));
        if after.starts_with(['}', ']', '\u{ff5d}', '\u{ff3d}']) || goes_on {
            return Some(Cause::Closed(self.text.len() - after.len()));
        }
        ends_with_key(&self.text[self.block.start..start]).then_some(Cause::Member)
    }

    /// Rules 3 and 4.
    fn not_json(&mut self, start: usize, stopped: usize, walk: Walk) -> usize {
        let broken = Broken { start, cause: Cause::Syntax(walk) };
        let text = self.text;
        let end = match self.balance(start) {
            Some(end) => end,
            None => {
                let next = text[stopped..].find(['\n', '\r']).map(|length| stopped + length + 1);
                match next {
                    Some(next) if !names_nf(&text[start..next]) && !begins_value(&text[start..]) => {
                        self.alike(&text[start..next], broken);
                        return next;
                    }
                    _ => text.len(),
                }
            }
        };
        if names_nf(&text[start..end]) {
            self.found.broken(broken);
        } else {
            self.alike(&text[start..end], broken);
        }
        end
    }

    fn alike(&mut self, run: &str, broken: Broken) {
        if has_word_nf(run) {
            self.found.instead(Instead::Alike(broken));
        }
    }

    /// The byte after the bracket that balances the one at `start`; none if nothing does. Whether anything
    /// does is known at the end of the first line, so that no bracket costs a look at all that follows.
    fn balance(&mut self, start: usize) -> Option<usize> {
        let (text, from) = (self.text, self.block.start);
        let mut lexer = Lexer::default();
        let mut depth = 0;
        let mut first_line = true;
        for (length, byte) in text.as_bytes()[start..].iter().enumerate() {
            depth += lexer.feed(*byte);
            if depth == 0 {
                return Some(start + length + 1);
            }
            if first_line && matches!(byte, b'\n' | b'\r') {
                first_line = false;
                let lows = self.lows.get_or_insert_with(|| Lows::of(text, from));
                if depth + lows.after(start + length + 1) > 0 {
                    return None;
                }
            }
        }
        None
    }
}

/// Tells brackets from those in strings, inside a run that need not be JSON. A string ends with its line:
/// JSON has no line break in one, and so an odd quote spoils no line but its own.
#[derive(Default)]
struct Lexer {
    string: bool,
    escaped: bool,
}

impl Lexer {
    /// By how much a byte changes the depth.
    fn feed(&mut self, byte: u8) -> i32 {
        if matches!(byte, b'\n' | b'\r') {
            *self = Self::default();
        } else if self.escaped {
            self.escaped = false;
        } else if self.string {
            self.escaped = byte == b'\\';
            self.string = byte != b'"';
        } else {
            match byte {
                b'"' => self.string = true,
                b'{' | b'[' => return 1,
                b'}' | b']' => return -1,
                _ => {}
            }
        }
        0
    }
}

/// For each line with a bracket in it, how far the depth sinks from its start to the end of the block.
struct Lows(Vec<(usize, i32)>);

impl Lows {
    fn of(text: &str, from: usize) -> Self {
        let mut lines: Vec<(usize, i32, i32)> = Vec::new();
        let mut start = from;
        for line in text[from..].split_inclusive(['\n', '\r']) {
            let mut lexer = Lexer::default();
            let (mut depth, mut low) = (0, 0);
            let mut any = false;
            for byte in line.bytes() {
                let change = lexer.feed(byte);
                any |= change != 0;
                depth += change;
                low = low.min(depth);
            }
            if any {
                lines.push((start, depth, low));
            }
            start += line.len();
        }
        let mut rest = 0;
        let mut lows: Vec<(usize, i32)> = Vec::with_capacity(lines.len());
        for (start, depth, low) in lines.into_iter().rev() {
            rest = low.min(depth + rest);
            lows.push((start, rest));
        }
        lows.reverse();
        Self(lows)
    }

    /// How far the depth sinks from a line's start on; never above zero.
    fn after(&self, line: usize) -> i32 {
        let index = self.0.partition_point(|(start, _)| *start < line);
        self.0.get(index).map_or(0, |(_, low)| *low)
    }
}
