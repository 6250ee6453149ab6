//! Freezing: what a job file may say, and what makes one job another.

use super::*;
use crate::model::event::Text;
use crate::rules::freeze::{MAX_INPUT, no_stored_result};
use crate::rules::packet::{Packet, render};

fn frozen(text: &str, chapter: &[u8]) -> Result<Frozen> {
    let spec = World::spec(text)?;
    freeze(&spec, &BTreeMap::from([(name("chapter"), chapter.to_vec())]))
}

fn with(pointer: &str, value: Value) -> String {
    let mut job: Value = serde_json::from_str(JOB).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = if parent.is_empty() { &mut job } else { job.pointer_mut(parent).unwrap() };
    parent.as_object_mut().unwrap().insert(key.to_owned(), value);
    job.to_string()
}

#[test]
fn same_content_same_job_and_any_change_of_it_another() {
    let base = frozen(JOB, b"text").unwrap().job;
    assert_eq!(frozen(JOB, b"text").unwrap().job, base);
    let moved = with("/input/artifacts", json!([{"name": "chapter", "path": "elsewhere/ch01.md"}]));
    assert_eq!(frozen(&moved, b"text").unwrap().job, base, "a path is no part of the question");
    for (changed, question) in [
        (with("/input/question", json!("Really?")), true),
        (with("/rubric", json!(["Judge only the text. "])), true),
        (with("/subject", json!("novel/pride/ch02")), true),
        (with("/evidence", json!([])), true),
        (with("/permissions", json!({"result_scope": "evaluation"})), false),
        (with("/execution", json!({"independent": false})), false),
        (with("/forbidden_keys", json!(["hint"])), false),
    ] {
        let job = frozen(&changed, b"text").unwrap().job;
        assert_ne!(job.id, base.id, "{changed}");
        assert_eq!(job.fingerprint != base.fingerprint, question, "{changed}");
    }
    assert_ne!(frozen(JOB, b"text ").unwrap().job.fingerprint, base.fingerprint);
    let (fingerprint, digest) = base.digest_again();
    assert_eq!((Some(fingerprint), Some(digest)), (base.fingerprint, base.job_digest));
}

#[test]
fn what_a_job_file_may_not_say() {
    let enumeration =
        json!({"type": "object", "properties": {"verdict": {"enum": ["accept", "reject", "maybe"]}}});
    let table = vec![
        (with("/rubrik", json!([])), Kind::BadInput, "/rubrik"),
        (with("/kind", json!("two words")), Kind::BadInput, "/kind"),
        (with("/permissions", json!({"canon_write": true})), Kind::AuthorityDenied, "canon_write"),
        (
            with("/permissions", json!({"framework_promotion": "no"})),
            Kind::AuthorityDenied,
            "framework_promotion",
        ),
        (with("/output", json!({"type": "objekt"})), Kind::BadInput, "/output"),
        (with("/output", json!({"properties": {"reasoning": {}}})), Kind::NotBlind, "private reasoning"),
        (with("/output", enumeration), Kind::BadInput, "maybe"),
        (with("/verdict/repair", json!({})), Kind::BadInput, "repair route"),
        (with("/verdict/pass", json!(["accept", "reject"])), Kind::BadInput, "twice"),
        (with("/verdict/pointer", json!("verdict")), Kind::BadInput, "pointer"),
        (with("/evidence", json!(["evidence"])), Kind::BadInput, "/evidence/0"),
        (with("/evidence", json!(["/a~2"])), Kind::BadInput, "/evidence/0"),
        (with("/execution", json!({"indepedent": true})), Kind::BadInput, "/execution/indepedent"),
        (with("/execution", json!({"independent": true, "min_grade": "none"})), Kind::BadInput, "min_grade"),
        (with("/execution", json!({"families": []})), Kind::BadInput, "/execution"),
        (with("/execution", json!({"families": ["pigeon"]})), Kind::BadInput, "/execution/families"),
        (with("/contract", json!("reader@1")), Kind::BadInput, "no contract"),
        (with("/context", json!([{"name": "chapter", "path": "x"}])), Kind::BadInput, "twice"),
        (with("/context", json!([{"name": "a", "path": "../x"}])), Kind::BadInput, "/context/0/path"),
        (with("/context", json!([{"name": "a", "path": "/x"}])), Kind::BadInput, "/context/0/path"),
        (
            with("/context", json!([{"name": "a", "path": ".novelforge/log"}])),
            Kind::BadInput,
            "/context/0/path",
        ),
        (
            with("/context", json!([{"name": "a", "path": "x", "lines": "0-3"}])),
            Kind::BadInput,
            "/context/0/lines",
        ),
        (
            with("/context", json!([{"name": "a", "path": "x", "lines": "5-3"}])),
            Kind::BadInput,
            "/context/0/lines",
        ),
        (
            with("/context", json!([{"name": "a", "path": "x", "encoding": "rot13"}])),
            Kind::BadInput,
            "encoding",
        ),
    ];
    for (text, wanted, named) in table {
        let refused = frozen(&text, b"text").expect_err(&text);
        assert_eq!(refused.kind, wanted, "{text}");
        let said = format!("{refused} {}", refused.cause.clone().unwrap_or_default());
        assert!(said.contains(named), "{said} does not name {named}");
    }
}

#[test]
fn a_reviewer_sees_no_answer_that_is_hoped_for() {
    let named = |path: &str| with("/input/artifacts", json!([{"name": "chapter", "path": path}]));
    for (text, chapter, blind) in [
        (with("/input/Expected", json!("accept")), "text", false),
        (with("/input/deep", json!([{"gold": 1}])), "text", false),
        (with("/rubric", json!([{"answer_key": 1}])), "text", false),
        (named("notes.json"), r#"{"a": {"expected_verdict": "accept"}}"#, false),
        (named("notes.yaml"), "a:\n  prior_result: accept\n", false),
        (named("notes.yaml"), "date: 2026-01-01\nprior_result: accept\n", false),
        (named("notes.yaml"), "date: 2026-01-01\nmood: fine\n", true),
        (named("notes.md"), "expected: accept", true),
        (named("notes.json"), r#"{"a": 1}"#, true),
    ] {
        let outcome = frozen(&text, chapter.as_bytes());
        assert_eq!(outcome.is_ok(), blind, "{text} {chapter}");
        if let Err(refused) = outcome {
            assert_eq!(refused.kind, Kind::NotBlind);
        }
    }
    let lifted: Value = serde_json::from_str(&with("/input/expected", json!("accept"))).unwrap();
    let mut lifted = lifted;
    lifted["allow_evidence"] = json!(["expected"]);
    assert!(frozen(&lifted.to_string(), b"text").is_ok());
}

#[test]
fn bytes_that_are_no_text_must_be_said_so() {
    let refused = frozen(JOB, b"\xff\xfe").expect_err("a refusal");
    assert_eq!(refused.kind, Kind::BadInput);
    let said = with("/input/artifacts", json!([{"name": "chapter", "path": "a.png", "encoding": "base64"}]));
    assert!(frozen(&said, b"\xff\xfe").is_ok());
    let large = vec![b'a'; MAX_INPUT as usize + 1];
    assert_eq!(kind(frozen(JOB, &large)), Kind::TooLarge);
}

#[test]
fn a_stored_answer_is_no_artifact() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let answer = world.answer(&sent, "accept");
    let bound = world.reply(&answer).unwrap();
    let stored: StoredResult = world.state.get(&bound.result).unwrap();
    let bytes = world.blobs[&stored.blob].clone();
    let places = frozen(&JOB.replace("ch01.md", "ch01.txt"), &bytes).unwrap().places;
    assert_eq!(kind(no_stored_result(&world.state, &places)), Kind::NotBlind);
}

#[test]
fn a_packet_is_a_function_of_job_ids_and_form_and_says_when_it_was_cut() {
    let chapter = "one\n```\nfence inside\n````\nEND NF PACKET\n";
    let job = frozen(JOB, chapter.as_bytes()).unwrap().job;
    let (handoff, source) = ("h-000000000000".parse().unwrap(), "s-000000000000".parse().unwrap());
    let artifacts = [chapter.as_bytes().to_vec()];
    let packet = Packet {
        job: &job,
        artifacts: &artifacts,
        handoff: &handoff,
        nonce: &"n".repeat(26),
        source: &source,
        context: &[],
    };
    for transport in [Transport::Chat, Transport::Human] {
        let text = render(&packet, transport);
        assert_eq!(text, render(&packet, transport), "same attempt, same bytes");
        let (first, body) = text.split_once('\n').unwrap();
        let words: Vec<&str> = first.split(' ').collect();
        assert_eq!(words[..3], ["NF", "PACKET", "h-000000000000"]);
        assert_eq!(words[3].parse::<usize>().unwrap(), body.len());
        assert_eq!(words[6], &Hash::of(body.as_bytes()).hex()[..16]);
        assert!(text.ends_with("END NF PACKET h-000000000000\n"));
        assert!(text.contains(&format!("`````text\n{chapter}`````")), "a fence longer than any inside");
        assert!(!text.contains("repair.story"), "where a verdict leads is not the reviewer's business");
    }
    let agent: Value = serde_json::from_str(&render(&packet, Transport::Agent)).unwrap();
    assert_eq!(agent["artifacts"][0]["content"], json!(chapter));
    assert_eq!(agent["return_form"]["nf"]["nonce"], json!("n".repeat(26)));
}

#[test]
fn the_human_form_read_back_unfilled_is_the_blank() {
    let job = frozen(JOB, b"text").unwrap().job;
    let (handoff, source) = ("h-000000000000".parse().unwrap(), "s-000000000000".parse().unwrap());
    let artifacts = [b"text".to_vec()];
    let nonce = "0".repeat(26);
    let packet = Packet {
        job: &job,
        artifacts: &artifacts,
        handoff: &handoff,
        nonce: &nonce,
        source: &source,
        context: &[],
    };
    let text = render(&packet, Transport::Human);
    let wanted = blank(&job, &handoff, &nonce, Transport::Human);
    let unfilled = extract(text.as_bytes(), &|value| *value == wanted).expect_err("a refusal");
    assert_eq!(unfilled.reason.word(), "form_not_filled_in");
    let filled = text
        .replace("name: \"\"", "name: \"Jane\"")
        .replace("\"evidence\": []", "\"evidence\": [\"one\"]")
        .replace("\"verdict\": \"\"", "\"verdict\": \"accept\"");
    let value = extract(filled.as_bytes(), &|value| *value == wanted).unwrap().value;
    assert_eq!(value["output"], json!({"evidence": ["one"], "verdict": "accept"}));
}

#[test]
fn a_long_reason_is_a_blob() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    let sent = world.packet(&session, &job, Transport::Chat).unwrap();
    let mut answer = world.answer(&sent, "accept");
    answer["status"] = json!("cannot_judge");
    answer["reason"] = json!("x".repeat(400));
    answer.as_object_mut().unwrap().remove("output");
    assert_eq!(kind(world.reply(&answer)), Kind::ExecutionFailed);
    let Some(Event::ReplyReceived { reply }) = world.last.first() else { panic!("{:?}", world.last) };
    assert!(matches!(reply.said, Some(Text::Blob(hash)) if world.blobs.contains_key(&hash)));
}
