//! The only file that prints. stdout carries the answer, stderr the news; text from outside is printed
//! with control and bidirectional characters made visible; a closed pipe ends quietly.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::global::Global;
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::time::Time;
use crate::store::{Answer, Position};

mod envelope;
mod text;

pub use envelope::Envelope;
pub use text::{checks, table, text_or_path};

/// What a command answers: data for programs, an answer for stdout and news for people.
pub trait Report: Serialize + JsonSchema {
    /// The command's words joined by `.`: the schema is `nf.<command>/1`.
    const COMMAND: &'static str;
    /// What stands on stdout.
    fn answer(&self) -> String;
    /// What changed, for stderr.
    fn news(&self) -> Vec<String> {
        Vec::new()
    }
    /// The next command, for stderr.
    fn next(&self) -> Option<String> {
        None
    }
    /// Why the command is not content although it has a report: the exit code, and in JSON the error, whose
    /// details are the report.
    fn failure(&self) -> Option<Error> {
        None
    }
    /// Whether the answer is printed byte for byte, because it is somebody's text to carry on.
    fn is_raw(&self) -> bool {
        false
    }
}

/// A finished command, ready to print.
#[derive(Debug, Clone)]
pub struct Done {
    /// The schema of its data.
    pub schema: String,
    /// Its data.
    pub data: Value,
    /// Its answer on stdout.
    pub answer: String,
    /// Its news on stderr.
    pub news: Vec<String>,
    /// The next command.
    pub next: Option<String>,
    /// Why it is not content.
    pub failure: Option<Error>,
    /// Whether the answer is printed byte for byte.
    pub raw: bool,
    /// What was recovered or found on the way.
    pub notes: Vec<String>,
    /// The record that it wrote, or that the first run of its operation key wrote.
    pub record: Option<Position>,
    /// The events that a dry run would have recorded.
    pub planned: Option<Vec<Event>>,
    /// With --json: JSON Lines in place of one document.
    pub lines: Option<Vec<String>>,
}

/// The schema's name of a command.
pub fn schema_name(command: &str) -> String {
    format!("nf.{command}/1")
}

impl Done {
    /// From a report that wrote nothing.
    pub fn of<R: Report>(report: &R) -> Self {
        Self {
            schema: schema_name(R::COMMAND),
            data: serde_json::to_value(report).unwrap_or_default(),
            answer: report.answer(),
            news: report.news(),
            next: report.next(),
            failure: report.failure(),
            raw: report.is_raw(),
            notes: Vec::new(),
            record: None,
            planned: None,
            lines: None,
        }
    }

    /// Of a command that has nothing to print, in JSON neither: what it had to say was said.
    #[cfg(feature = "mcp")]
    pub fn silent(command: &str) -> Self {
        Self {
            schema: schema_name(command),
            data: Value::Null,
            answer: String::new(),
            news: Vec::new(),
            next: None,
            failure: None,
            raw: false,
            notes: Vec::new(),
            record: None,
            planned: None,
            lines: Some(Vec::new()),
        }
    }

    /// From what the store answered, made into a report.
    ///
    /// # Errors
    /// A refusal whose events were recorded; its details name the record.
    pub fn written<T, R: Report>(answer: Answer<T>, report: impl FnOnce(T) -> R) -> Result<Self> {
        let Answer { outcome, events, position, notes, repeated: _, dry_run } = answer;
        let data = outcome.map_err(|error| {
            let error = recorded(error, position.as_ref(), &notes);
            // A refusal is recorded too: a dry run shows what of.
            if dry_run { error.with(PLANNED, &events) } else { error }
        })?;
        let mut done = Self::of(&report(data));
        done.notes = notes;
        done.record = position;
        done.planned = dry_run.then_some(events);
        Ok(done)
    }

    /// Adds warnings of a reading.
    #[must_use]
    pub fn warned(mut self, warnings: Vec<String>) -> Self {
        self.notes.extend(warnings);
        self
    }
}

/// The detail of a refusal in a dry run that holds the events which would have been recorded.
const PLANNED: &str = "planned";

/// A refusal that was recorded names its record; what was recovered on the way goes with it.
fn recorded(error: Error, position: Option<&Position>, notes: &[String]) -> Error {
    let error = error.with("notes", &notes);
    match position {
        Some(position) => error.with("record", position),
        None => error,
    }
}

/// Prints a finished command and gives its exit code.
pub fn done(global: &Global, done: Done) -> u8 {
    let exit = done.failure.as_ref().map_or(0, |failure| failure.kind.exit());
    if global.json {
        match done.lines {
            Some(lines) => lines.iter().for_each(|line| exactly(&format!("{line}\n"))),
            None => document(&Envelope::of(done)),
        }
        return exit;
    }
    for note in &done.notes {
        say_unless(global.quiet, &format!("note: {}", visible(note)));
    }
    match &done.planned {
        Some(events) => show_planned(events, global.quiet),
        None if done.raw => exactly(&done.answer),
        None if done.answer.is_empty() => {}
        None => out(&format!("{}\n", visible(&done.answer))),
    }
    for line in &done.news {
        say_unless(global.quiet, &visible(line));
    }
    if let (Some(record), None) = (&done.record, &done.planned) {
        say_unless(global.quiet, &format!("record {}:{}", record.seq, &record.hash.hex()[..16]));
    }
    if let (Some(next), None) = (&done.next, &done.planned) {
        say_unless(global.quiet, &styled(AnsiColor::Green, "next:", next));
    }
    exit
}

/// The events that a dry run would have recorded.
fn show_planned(events: &[Event], quiet: bool) {
    for event in events {
        out(&format!("{}\n", escaped(&serde_json::to_string(event).unwrap_or_default())));
    }
    say_unless(quiet, "dry run: nothing was recorded");
}

/// Prints an error and gives its exit code.
pub fn failed(json: bool, quiet: bool, schema: String, error: &Error) -> u8 {
    let failed = Envelope::failed(schema, error);
    if json {
        document(&failed);
        return error.kind.exit();
    }
    let (Some(body), planned) = (failed.error, failed.planned) else { return error.kind.exit() };
    if let Some(events) = &planned {
        show_planned(events, quiet);
    }
    for note in body.details.get("notes").and_then(Value::as_array).into_iter().flatten() {
        say_unless(quiet, &format!("note: {}", visible(note.as_str().unwrap_or_default())));
    }
    say(&styled(AnsiColor::Red, "error:", &visible(&body.message)));
    if let Some(cause) = &body.cause {
        say(&format!("cause: {}", visible(cause)));
    }
    say(&styled(AnsiColor::Green, "fix:  ", &visible(&body.fix)));
    body.code
}

fn document<T: Serialize>(envelope: &T) {
    exactly(&format!("{}\n", serde_json::to_string_pretty(envelope).unwrap_or_default()));
}

fn styled(color: AnsiColor, word: &str, rest: &str) -> String {
    let style = Style::new().fg_color(Some(color.into())).bold();
    format!("{style}{word}{style:#} {rest}")
}

/// Writes to stdout; a closed pipe ends quietly.
pub fn out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    noted(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Writes a line of an answer that goes on: a JSON text as it is, any other made visible. False where nobody
/// reads any more.
pub fn goes_on(line: &str, json: bool) -> bool {
    let text = if json { format!("{line}\n") } else { format!("{}\n", visible(line)) };
    let mut stdout = std::io::stdout().lock();
    noted(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Waits that long, or until nobody reads stdout any more; false then.
pub fn pause(length: std::time::Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let length = Timespec { tv_sec: length.as_secs() as i64, tv_nsec: i64::from(length.subsec_nanos()) };
    // Without a question a pipe still says that its other end is gone.
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    !matches!(poll(&mut ends, Some(&length)), Ok(gone) if gone > 0)
}

/// The first failed write to stdout: an answer that nobody got is no success.
static LOST: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Remembers a failed write, and says whether it was none. A reader that is gone ends quietly: nobody is left
/// to tell.
fn noted(written: std::io::Result<()>) -> bool {
    let whole = written.is_ok();
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = LOST.set(error.to_string());
        }
        _ => {}
    }
    whole
}

/// The exit code when all is printed: a lost answer turns success into a failure.
pub fn ended(code: u8) -> u8 {
    match LOST.get() {
        Some(cause) if code == 0 => {
            let error = Error::new(Kind::Io, "the answer could not be written to standard output")
                .because(cause.clone())
                .fix("what was recorded stands; run the command again with the same --op, or nf status");
            failed(false, false, String::new(), &error)
        }
        _ => code,
    }
}

/// Writes lines of a protocol to stdout; false where nobody reads any more.
#[cfg(feature = "mcp")]
pub fn protocol(lines: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    noted(stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes to stdout byte for byte: what is in a packet or a document is not taken for colour and dropped.
fn exactly(text: &str) {
    let mut stdout = std::io::stdout().lock();
    noted(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Writes a line to stderr.
pub fn say(line: &str) {
    let mut stderr = anstream::stderr().lock();
    // One write a line, so that lines of several processes do not run into each other.
    let _ = stderr.write_all(format!("{line}\n").as_bytes());
}

fn say_unless(quiet: bool, line: &str) {
    if !quiet {
        say(line);
    }
}

/// Decides once whether the streams carry colour.
pub fn set_color(when: &str) {
    let choice = match when {
        "always" => anstream::ColorChoice::Always,
        "never" => anstream::ColorChoice::Never,
        _ => anstream::ColorChoice::Auto,
    };
    choice.write_global();
}

/// Text from outside with control, escape and bidirectional characters made visible.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && c != '\n' && c != '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A character that a terminal obeys and does not show.
fn is_hidden(c: char) -> bool {
    let bidirectional = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    c.is_control() || bidirectional
}

/// A JSON text of one line in which such characters are escaped as JSON does it.
fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A moment in local time with how far away it is.
pub fn when(time: Time, now: Time) -> String {
    let local = time.timestamp().to_zoned_datetime(jiff::tz::TimeZone::system());
    let seconds = (time.micros() - now.micros()) / 1_000_000;
    let rounded = |seconds: u64, unit: u64| (seconds + unit / 2) / unit;
    let far = match seconds.unsigned_abs() {
        near @ 0..=89 => format!("{near} s"),
        more @ 90..=5399 => format!("{} min", rounded(more, 60)),
        more @ 5400..=172_799 => format!("{} h", rounded(more, 3600)),
        more => format!("{} days", rounded(more, 86_400)),
    };
    let relative = if seconds > 0 { format!("in {far}") } else { format!("{far} ago") };
    format!("{} ({relative})", local.strftime("%Y-%m-%d %H:%M"))
}

/// A count with its noun, in the plural where it is not one.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_and_bidirectional_characters_are_made_visible() {
        assert_eq!(visible("a\x1b[31mb\u{202e}c\nd\te\u{7f}"), "a\\u{1b}[31mb\\u{202e}c\nd\te\\u{7f}");
        assert_eq!(visible("café “quoted” 日本"), "café “quoted” 日本");
    }

    #[test]
    fn moments_say_how_far_away_they_are() {
        let now = Time::from_micros(1_700_000_000_000_000);
        assert!(when(now.plus_millis(60_000), now).ends_with("(in 60 s)"));
        assert!(when(now, now.plus_millis(7_200_000)).ends_with("(2 h ago)"));
    }
}
