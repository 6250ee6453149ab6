//! Literal model replies that others collected, most of them broken, read from the folder that
//! `NF_SUITES` names: none may be accepted that a strict reader would refuse.

// Files and shapes that are not as they must be are failures of the test; there is nothing to recover.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use nf::rules::intake::{Extracted, IntakeFault, Reason, candidates, extract, nonces};
use serde_json::{Deserializer, Value};

const NONCE: &str = "0123456789abcdefghjkmnpqrs";

/// The replies of the corpus, if there are suites.
fn corpus() -> Option<Vec<String>> {
    let Some(folder) = std::env::var_os("NF_SUITES") else {
        crate::harness::skipped("NF_NEED_SUITES", "NF_SUITES names no folder");
        return None;
    };
    let text = std::fs::read_to_string(PathBuf::from(folder).join("replies/corpus.jsonl")).unwrap();
    let line =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["input"].as_str().unwrap().to_owned();
    let replies: Vec<String> = text.lines().map(line).collect();
    assert_eq!(replies.len(), 485);
    Some(replies)
}

fn identity() -> String {
    let fingerprint = "1".repeat(64);
    format!(r#"{{"job":"j-0123456789ab","fingerprint":"nf1:{fingerprint}","nonce":"{NONCE}"}}"#)
}

fn take(reply: &str) -> Result<Extracted, IntakeFault> {
    let taken = extract(reply.as_bytes(), &|_| false);
    if let Err(fault) = &taken {
        let placed = matches!(
            fault.reason,
            Reason::Broken
                | Reason::DuplicateKey
                | Reason::NonFinite
                | Reason::IntegerRange
                | Reason::LoneSurrogate
                | Reason::Truncated
        );
        assert!(!placed || fault.line.is_some() && fault.column.is_some(), "{reply}\n{fault:?}");
        assert!(!fault.message.is_empty() && !fault.ask.is_empty(), "{reply}\n{fault:?}");
        assert!(fault.offset.is_none_or(|offset| offset <= reply.len()), "{reply}\n{fault:?}");
    }
    taken
}

/// The text of a reply that is nothing but one fence, else all of it.
fn unfenced(reply: &str) -> &str {
    let text = reply.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.split_once('\n'));
    let inside = inside.and_then(|(_, rest)| rest.strip_suffix("```"));
    inside.unwrap_or(text)
}

/// What a strict reader makes of the whole reply, with nothing around the value but a fence.
fn whole(reply: &str) -> Option<Value> {
    serde_json::from_str(unfenced(reply)).ok()
}

/// What a strict reader makes of the value that begins at an offset, and what follows it.
fn from(reply: &str, offset: usize) -> Option<(Value, &str)> {
    let mut stream = Deserializer::from_str(&reply[offset..]).into_iter::<Value>();
    let value = stream.next()?.ok()?;
    Some((value, &reply[offset + stream.byte_offset()..]))
}

/// What only the guard refuses: sound for a reader that keeps the last of two keys and rounds integers.
fn guarded(fault: &IntakeFault) -> bool {
    matches!(
        fault.reason,
        Reason::DuplicateKey | Reason::IntegerRange | Reason::NonFinite | Reason::LoneSurrogate
    )
}

#[test]
fn replies_without_an_identity_are_refused() {
    let Some(corpus) = corpus() else { return };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reply in &corpus {
        let fault = take(reply).expect_err(reply);
        let known = [Reason::Empty, Reason::NoAnswer, Reason::Truncated];
        assert!(known.contains(&fault.reason), "{reply}\n{fault:?}");
        *reasons.entry(fault.reason.word()).or_default() += 1;
        assert!(candidates(reply.as_bytes()).is_empty() && nonces(reply.as_bytes()).is_empty(), "{reply}");
    }
    assert_eq!(reasons, BTreeMap::from([("empty", 4), ("no_answer", 429), ("truncated", 52)]));
}

#[test]
fn a_reply_as_the_output_of_an_answer_is_read_only_where_the_whole_is_json() {
    let Some(corpus) = corpus() else { return };
    let (mut accepted, mut refused) = (0, 0);
    for original in &corpus {
        let identity = identity();
        let reply = format!(
            r#"{{"nf":{identity},"worker":{{"name":"w"}},"status":"completed","output":{original}}}"#
        );
        match (take(&reply), whole(&reply)) {
            (Ok(extracted), Some(strict)) => {
                assert_eq!(extracted.value, strict, "{reply}");
                assert!(extracted.steps.is_empty() && extracted.prose.is_none(), "{reply}");
                accepted += 1;
            }
            (Ok(extracted), None) => panic!("a strict reader refuses this:\n{reply}\n{extracted:?}"),
            (Err(fault), Some(_)) => {
                assert!(guarded(&fault), "{reply}\n{fault:?}");
                refused += 1;
            }
            (Err(_), None) => refused += 1,
        }
        assert_eq!(nonces(reply.as_bytes()), [NONCE], "{reply}");
    }
    assert_eq!((accepted, refused), (108, 377));
}

#[test]
fn a_reply_with_an_identity_in_its_first_object_is_read_only_where_that_object_is_json() {
    let Some(corpus) = corpus() else { return };
    let (mut alone, mut in_prose, mut refused, mut without) = (0, 0, 0, 0);
    for original in &corpus {
        let Some(at) = original.find('{') else {
            without += 1;
            continue;
        };
        let reply = format!("{}{{\"nf\":{},{}", &original[..at], identity(), &original[at + 1..]);
        let strict = from(&reply, at);
        match take(&reply) {
            Ok(extracted) => {
                let (value, rest) =
                    strict.unwrap_or_else(|| panic!("a strict reader refuses this:\n{reply}"));
                assert_eq!(extracted.value, value, "{reply}");
                // What is a part of an outer value, by its brackets, was not taken out of it.
                assert!(!rest.trim_start().starts_with(['}', ']']), "{reply}");
                assert!(!reply[..at].trim_end().ends_with(['[', '{']), "{reply}");
                if whole(&reply).is_some() { alone += 1 } else { in_prose += 1 }
            }
            Err(fault) => {
                let sound = whole(&reply).filter(|value| value.get("nf").is_some());
                assert!(sound.is_none() || guarded(&fault), "{reply}\n{fault:?}");
                refused += 1;
            }
        }
    }
    assert_eq!((alone, in_prose, refused, without), (82, 44, 188, 171));
}
