//! What the adapters of local agents share: the program with what it says of itself, its stream of events,
//! and what its errors mean. A stream is read line by line, and no line of it is trusted to be one of the
//! program's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::ask::{Ask, Failure};
use super::flags::{Flags, lists};
use super::room::House;
use super::{probe, strict};

/// How long a program may take to tell its version, or its options.
const TOLD_LIMIT: Duration = Duration::from_secs(30);
/// Characters of what the other side calls itself, its model or its session that are kept.
const LONGEST: usize = 512;
/// Bytes of a packet that at least one token must be counted for.
const BYTES_A_TOKEN: u64 = 8;

crate::words! {
    /// A local agent that is known by name.
    Agent {
        /// Claude Code.
        Claude = "claude",
        /// Codex.
        Codex = "codex",
    }
}

/// An agent's program as it is installed.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its file.
    pub file: PathBuf,
    /// The version that it says it has.
    pub version: String,
    help: String,
}

impl Tool {
    /// Finds a program and asks it for its version and its options.
    ///
    /// # Errors
    /// A failure that says the way is not there: no program, no answer, or no such options, by name. Without
    /// an option the run would be a weaker one than what is recorded of it.
    pub fn find(program: &str, flags: &Flags, house: &House<'_>) -> Result<Self, Failure> {
        let missing = |why: String| Failure::gone("not_there", why);
        let file = probe::find(program, house.path(), Path::new("/")).map_err(missing)?;
        let version = probe::version(&file, house.path(), TOLD_LIMIT)
            .map_err(|why| missing(format!("{program}: {why}")))?;
        let help = probe::said(&file, flags.help, house.path(), TOLD_LIMIT)
            .map_err(|why| missing(format!("{program}: {why}")))?;
        let tool = Self { file, version: clipped(&version), help };
        let absent = flags.missing(&tool.help);
        if absent.is_empty() {
            return Ok(tool);
        }
        let why = format!("{program} {} does not list {}", tool.version, absent.join(", "));
        Err(Failure::gone("missing_flags", why))
    }

    /// Whether the program lists an option.
    pub fn lists(&self, flag: &str) -> bool {
        lists(&self.help, flag)
    }
}

/// A text of the other side, short enough to be kept, without characters that a terminal obeys.
pub fn clipped(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

/// A member of an event that names something.
pub fn named(event: &Value, pointer: &str) -> Option<String> {
    let text = event.pointer(pointer)?.as_str().map(clipped);
    text.filter(|text| !text.trim().is_empty())
}

/// The events of a stream: every line that is a JSON object with a type. What is cut, torn or no event is
/// left out; nothing rests on it.
pub fn events(output: &[u8]) -> impl Iterator<Item = Value> + '_ {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'{'));
    let objects = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    objects.filter(|event| event.get("type").is_some_and(Value::is_string))
}

/// The word of an event.
pub fn kind(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The schema as it may be sent, or a note that it is left out.
pub fn schema(ask: &Ask<'_>, notes: &mut Vec<String>) -> Option<Value> {
    let schema = ask.schema?;
    match strict::not_strict(schema) {
        None => Some(schema.clone()),
        Some(why) => {
            notes.push(format!("the schema of the answer was not sent: {why}"));
            None
        }
    }
}

/// Fewer tokens than a packet of that length can have: it was cut on its way to the model.
pub fn cut(packet: &str, tokens: Option<u64>) -> Option<Failure> {
    let (bytes, tokens) = (packet.len() as u64, tokens?);
    (tokens < bytes / BYTES_A_TOKEN).then(|| {
        Failure::failed(
            "truncated_input",
            true,
            format!("{tokens} tokens were read of a packet of {bytes} bytes"),
        )
    })
}

/// Why there is no answer, of how a run ended and what the program said of its own failure. What it said is
/// better than its exit code, and than a limit of time that it reached while it tried the same call again.
pub fn why(ended: Failure, said: Option<Failure>) -> Failure {
    match said {
        Some(said) if ["crash", "timeout", "idle"].contains(&ended.reason) => {
            Failure { detail: format!("{}; {}", said.detail, ended.detail), ..said }
        }
        _ => ended,
    }
}

/// What the status of a refused call means, where a program reports it.
pub fn refused(status: u64) -> Option<Failure> {
    Some(match status {
        401 | 403 => Failure::gone("unauthorized", format!("the service refuses the key (status {status})")),
        404 => Failure::gone("not_found", "the service has no such model or address (status 404)"),
        429 => Failure::failed("quota", true, "a limit of use is reached (status 429)"),
        500..=599 => Failure::failed("overloaded", true, format!("the service failed (status {status})")),
        400..=499 => {
            Failure::failed("refused_request", false, format!("the service refuses the request ({status})"))
        }
        _ => return None,
    })
}

/// What an error that a program reports means. Its text is looked at and not kept: it may hold anything.
pub fn meant(text: &str, otherwise: &'static str) -> Failure {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["usage limit", "rate limit", "rate_limit", "quota", "limit reached", "credit balance", "429"]) {
        return Failure::failed("quota", true, "the program reports that a limit of use is reached");
    }
    if says(&["overloaded", "529", "503", "try again later"]) {
        return Failure::failed("overloaded", true, "the program reports that the service is overloaded");
    }
    if says(&[
        "api key",
        "api_key",
        "unauthorized",
        "authenticat",
        "/login",
        "log in",
        "logged in",
        "401",
        "403",
    ]) {
        return Failure::gone("unauthorized", "the program reports that it is not logged in");
    }
    if says(&["econnrefused", "connection refused", "connectionrefused"]) {
        return Failure::gone("refused", "the program reports that its service refuses the connection");
    }
    if text.contains("model") && says(&["not exist", "not found", "404", "not supported", "selected model"]) {
        return Failure::gone("not_found", "the program reports that there is no such model for it");
    }
    Failure::failed(otherwise, true, "the program reports an error of its own, which is no verdict")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A tool that was never asked, for tests of what is read.
    pub fn tool(help: &str) -> Tool {
        Tool { file: PathBuf::from("/no/tool"), version: "1".to_owned(), help: help.to_owned() }
    }

    #[test]
    fn options_are_whole_words_of_the_help() {
        let tool = tool("  -o, --output <FILE>   as --json-schema\n  --tools=<x>");
        for (flag, listed) in [
            ("--output", true),
            ("-o", true),
            ("--tools", true),
            ("--json-schema", true),
            ("--json", false),
            ("-x", false),
        ] {
            assert_eq!(tool.lists(flag), listed, "{flag}");
        }
    }

    #[test]
    fn a_stream_of_garbage_has_only_its_events() {
        let long = format!("{{\"type\":\"a\",\"x\":\"{}\"}}", "y".repeat(2_000_000));
        let deep = format!("{}{}", "{\"type\":".repeat(5000), "}".repeat(5000));
        let stream =
            format!("warning\n{{\"type\":\"a\"}}\n{{\"type\":7}}\n[1]\n{long}\n{deep}\n\n{{\"type\":\"b\"\n");
        let bytes = [stream.as_bytes(), b"\xff\xfe\n{\"type\":\"c\"}\n{\"type\":\"cu"].concat();
        let kinds: Vec<String> = events(&bytes).map(|event| kind(&event).to_owned()).collect();
        assert_eq!(kinds, ["a", "a", "c"]);
    }

    #[test]
    fn errors_mean_what_leads_on() {
        for (text, reason, unavailable) in [
            ("You've hit your usage limit. Try again at 5pm.", "quota", false),
            ("API Error: 429 rate_limit_error", "quota", false),
            ("API Error: 529 Overloaded", "overloaded", false),
            ("Invalid API key · Please run /login", "unauthorized", true),
            ("unexpected status 401 Unauthorized", "unauthorized", true),
            ("Unable to connect (ConnectionRefused)", "refused", true),
            ("There's an issue with the selected model (x). It may not exist", "not_found", true),
            ("stream disconnected", "turn_failed", false),
        ] {
            let failure = meant(text, "turn_failed");
            assert_eq!((failure.reason, failure.unavailable), (reason, unavailable), "{text}");
            assert!(!failure.detail.contains("5pm"));
        }
    }

    #[test]
    fn a_packet_of_which_too_little_was_read_was_cut() {
        let packet = "x".repeat(8000);
        assert_eq!(cut(&packet, Some(999)).map(|failure| failure.reason), Some("truncated_input"));
        assert_eq!(cut(&packet, Some(1000)), None);
        assert_eq!(cut(&packet, None), None);
    }
}
