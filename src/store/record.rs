//! One record as one line: its exact bytes, and what can be wrong with them. Verifies the bytes as they
//! stand and never serialises anything again to do so. Touches no file.

use serde::{Deserialize, Serialize};

use super::damage::Flaw;
use crate::error::{Error, Kind, Result};
use crate::model::event::{Event, Record};
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::time::Time;

/// Bytes that a line may have, its newline included.
pub const LINE_LIMIT: usize = 256 * 1024;

/// The record format that this program writes.
pub(super) const FORMAT: u32 = 1;

const CONTEXT: &str = "novelforge log v1";
const JOINT: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";
/// Bytes from the joint to the end of the line, without the newline.
const SEAL: usize = JOINT.len() + 64 + END.len();

/// What goes into a record; the store adds the place.
#[derive(Debug, Clone)]
pub(super) struct Draft<'a> {
    pub seq: u64,
    pub at: Time,
    pub op: Option<(&'a Name, Hash)>,
    pub cmd: &'a str,
    pub events: &'a [Event],
    pub prev: Hash,
}

#[derive(Serialize)]
struct Body<'a> {
    v: u32,
    seq: u64,
    at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'a Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    req: Option<Hash>,
    cmd: &'a str,
    events: &'a [Event],
    prev: Hash,
}

/// A record as a reader will see it, and its line, newline included.
pub(super) type Line = (Record, Vec<u8>);

/// The line of a record, newline included, and the record as a reader will see it.
///
/// # Errors
/// Over [`LINE_LIMIT`], or not readable again (nested too deeply).
pub(super) fn encode(draft: &Draft<'_>) -> Result<Line> {
    let body = Body {
        v: FORMAT,
        seq: draft.seq,
        at: draft.at,
        op: draft.op.map(|(op, _)| op),
        req: draft.op.map(|(_, req)| req),
        cmd: draft.cmd,
        events: draft.events,
        prev: draft.prev,
    };
    let unreadable = |error: String| Error::new(Kind::BadInput, "the record cannot be kept").because(error);
    let mut line = serde_json::to_vec(&body).map_err(|error| unreadable(error.to_string()))?;
    line.pop();
    let hash = Hash::derive(CONTEXT, &line);
    line.extend_from_slice(JOINT);
    line.extend_from_slice(hash.hex().as_bytes());
    line.extend_from_slice(END);
    if line.len() >= LINE_LIMIT {
        let message = format!("the record has {} bytes, more than {LINE_LIMIT}", line.len() + 1);
        return Err(Error::new(Kind::TooLarge, message));
    }
    // What is written must be readable: a value nested too deeply would close the store for ever.
    let record = serde_json::from_slice(&line).map_err(|error| unreadable(error.to_string()))?;
    line.push(b'\n');
    Ok((record, line))
}

/// The hash at the end of a line (without its newline), if the bytes before have it.
pub(super) fn sealed(line: &[u8]) -> Option<Hash> {
    let (body, seal) = line.split_at_checked(line.len().checked_sub(SEAL)?)?;
    let hex = seal.strip_prefix(JOINT)?.strip_suffix(END)?;
    let hash = Hash::derive(CONTEXT, body);
    hash.is_written(hex).then_some(hash)
}

/// A line as it is mostly met: whole, after the record that it names. Its hashes are compared, not parsed.
#[derive(Deserialize)]
struct Wire<'a> {
    v: u32,
    seq: u64,
    at: Time,
    #[serde(default)]
    op: Option<Name>,
    #[serde(default)]
    req: Option<Hash>,
    cmd: String,
    events: Vec<Event>,
    prev: &'a str,
}

impl Wire<'_> {
    fn record(self, before: &Hash, hash: Hash) -> Option<Record> {
        let Self { v, seq, at, op, req, cmd, events, prev } = self;
        let follows = before.is_written(prev.as_bytes());
        follows.then_some(Record { v, seq, at, op, req, cmd, events, prev: *before, hash })
    }
}

/// The members of a line that every format has.
#[derive(Deserialize)]
pub(super) struct Envelope {
    pub v: u32,
    pub seq: u64,
    pub prev: Hash,
}

/// A line that a writer did write.
#[derive(Debug)]
pub(super) enum Read {
    /// Understood.
    Record(Box<Record>),
    /// Written by a newer program: only its place is understood.
    Newer { v: u32, seq: u64, prev: Hash, hash: Hash },
}

/// Reads a line without its newline; `before` is the hash that it most likely follows.
///
/// # Errors
/// The hash does not fit the bytes; says how, as far as the line alone shows it.
pub(super) fn read(line: &[u8], before: &Hash) -> std::result::Result<Read, Flaw> {
    let hash = sealed(line).ok_or_else(|| flaw(line))?;
    // Looked at once as a whole, and not again in each of its strings.
    let line = std::str::from_utf8(line).map_err(|_| Flaw::Bits)?;
    let wire = serde_json::from_str::<Wire<'_>>(line).ok();
    if let Some(record) = wire.and_then(|wire| wire.record(before, hash)) {
        return Ok(Read::Record(Box::new(record)));
    }
    if let Ok(record) = serde_json::from_str::<Record>(line) {
        return Ok(Read::Record(Box::new(record)));
    }
    // The bytes are as they were written: a newer program knew more events than this one.
    let Envelope { v, seq, prev } = serde_json::from_str(line).map_err(|_| Flaw::Bits)?;
    Ok(Read::Newer { v, seq, prev, hash })
}

/// What happened to a line whose hash does not fit.
pub(super) fn flaw(line: &[u8]) -> Flaw {
    let marks: [&[u8]; 4] = [b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||"];
    if line.contains(&0) {
        Flaw::Nuls
    } else if line.strip_suffix(b"\r").is_some_and(|line| sealed(line).is_some()) {
        Flaw::Crlf
    } else if marks.iter().any(|mark| line.starts_with(mark)) {
        Flaw::Conflict
    } else {
        Flaw::Bits
    }
}
