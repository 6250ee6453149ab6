//! The golden vectors, and what must and must not change an identity.

use serde_json::json;

use super::*;
use crate::model::id::{Id, JobId};

const VECTORS: &[(&str, &str)] = &[
    ("astral", include_str!("../../../tests/fixtures/fingerprint/astral.json")),
    ("combining-forms", include_str!("../../../tests/fixtures/fingerprint/combining-forms.json")),
    ("control-characters", include_str!("../../../tests/fixtures/fingerprint/control-characters.json")),
    ("empty-input", include_str!("../../../tests/fixtures/fingerprint/empty-input.json")),
    ("governed", include_str!("../../../tests/fixtures/fingerprint/governed.json")),
    ("key-order", include_str!("../../../tests/fixtures/fingerprint/key-order.json")),
    (
        "null-contract-and-verdict",
        include_str!("../../../tests/fixtures/fingerprint/null-contract-and-verdict.json"),
    ),
    ("numbers", include_str!("../../../tests/fixtures/fingerprint/numbers.json")),
    ("plain", include_str!("../../../tests/fixtures/fingerprint/plain.json")),
    ("prose-is-kept", include_str!("../../../tests/fixtures/fingerprint/prose-is-kept.json")),
];

/// A vector of `tests/fixtures/fingerprint`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    question: Question,
    permissions: Value,
    execution: Value,
    forbidden_keys: Vec<String>,
    allow_evidence: Vec<String>,
    canonical: String,
    fingerprint: String,
    job_digest: String,
    job_id: String,
}

#[test]
fn golden_vectors_hold() {
    assert_eq!(VECTORS.len(), 10);
    for (name, text) in VECTORS {
        let value = crate::model::json::parse(text.as_bytes()).unwrap();
        let vector: Vector = serde_json::from_value(value).unwrap();
        assert_eq!(&vector.name, name);
        assert_eq!(
            String::from_utf8(canonical_question(&vector.question)).unwrap(),
            vector.canonical,
            "{name}"
        );
        assert_eq!(fingerprint(&vector.question), vector.fingerprint, "{name}");
        let digest = job_digest(
            &vector.fingerprint,
            &vector.permissions,
            &vector.execution,
            &vector.forbidden_keys,
            &vector.allow_evidence,
        );
        assert_eq!(job_digest_text(&digest), vector.job_digest, "{name}");
        assert_eq!(JobId::from_bytes(digest.bytes()).as_str(), vector.job_id, "{name}");
    }
}

fn question() -> Question {
    Question {
        context: vec![FrozenArtifact { name: "notes".to_owned(), hash: Hash::of(b"notes"), bytes: 5 }],
        contract: Some("reader.engagement@1".to_owned()),
        evidence: vec!["/evidence".to_owned()],
        input: json!({"question": "Does it hold?"}),
        kind: "reader_reaction".to_owned(),
        output: json!({"type": "object"}),
        rubric: json!(["tension"]),
        subject: "novel/ch01".to_owned(),
        verdict: Some(json!({"pointer": "/verdict"})),
    }
}

/// A change to one member of a question.
type Change = fn(&mut Question);

#[test]
fn every_member_changes_the_fingerprint() {
    let base = fingerprint(&question());
    let changes: [Change; 12] = [
        |q| q.context[0].name.push('x'),
        |q| q.context[0].hash = Hash::of(b"other"),
        |q| q.context[0].bytes = 6,
        |q| q.contract = None,
        |q| q.evidence.clear(),
        |q| q.input = json!({"question": "Does it hold ?"}),
        |q| q.kind.push('x'),
        |q| q.output = json!({}),
        |q| q.rubric = json!([]),
        |q| q.subject = "Novel/ch01".to_owned(),
        |q| q.verdict = None,
        |q| q.verdict = Some(json!({"pointer": "/Verdict"})),
    ];
    let mut seen = std::collections::BTreeSet::from([base]);
    for change in changes {
        let mut question = question();
        change(&mut question);
        assert!(seen.insert(fingerprint(&question)));
    }
}

#[test]
fn the_hashed_object_has_exactly_its_members() {
    let value: Value = serde_json::from_slice(&canonical_question(&question())).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let want =
        ["context", "contract", "evidence", "input", "kind", "output", "rubric", "subject", "v", "verdict"];
    assert_eq!(keys, want);
    assert_eq!(value["v"], 1);
}

#[test]
fn a_question_survives_storage() {
    for question in [question(), Question { contract: None, verdict: None, ..question() }] {
        let stored = serde_json::to_vec(&question).unwrap();
        assert_eq!(serde_json::from_slice::<Question>(&stored).unwrap(), question);
    }
}

#[test]
fn everything_that_governs_a_job_changes_its_digest() {
    let print = fingerprint(&question());
    let key = ["gold".to_owned()];
    let digests = [
        job_digest(&print, &json!({}), &json!({}), &[], &[]),
        job_digest("nf1:0", &json!({}), &json!({}), &[], &[]),
        job_digest(&print, &json!({"result_scope": "diagnostic"}), &json!({}), &[], &[]),
        job_digest(&print, &json!({}), &json!({"independent": true}), &[], &[]),
        job_digest(&print, &json!({}), &json!({}), &key, &[]),
        job_digest(&print, &json!({}), &json!({}), &[], &key),
    ];
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn ids_are_the_first_sixty_bits() {
    let cases = [
        ("00000000000000000000000000000000", "j-000000000000"),
        ("ffffffffffffffffffffffffffffffff", "j-zzzzzzzzzzzz"),
        ("0000000000000010ffffffffffffffff", "j-000000000001"),
        ("000000000000000f0000000000000000", "j-000000000000"),
        ("084210842108421f0000000000000000", "j-111111111111"),
    ];
    for (start, want) in cases {
        let digest: Hash = format!("{start}{}", "0".repeat(32)).parse().unwrap();
        assert_eq!(JobId::from_bytes(digest.bytes()).as_str(), want);
    }
}
