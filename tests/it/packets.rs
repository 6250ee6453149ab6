//! What a packet carries and what it never carries, by words that stand nowhere else; and the same question
//! over three transports.

use serde_json::{Value, json};

use crate::expect::{done, done_with, refused, shown, silent};
use crate::harness::{Packet, Project};

const WHOM: [&str; 3] = ["chat", "human", "agent"];

const PACK: &str = "id: zorn.contract
version: 41
kind: zorn_kind
purpose: Zorn-purpose of the pack.
input: {type: object, required: [zorn_question], description: zorn-input-schema}
rubric: [Judge the zorn-pack-rule.]
output:
  type: object
  required: [zorn_verdict, zorn_evidence]
  properties:
    zorn_verdict: {enum: [zorn_yea, zorn_nay, zorn_maybe]}
    zorn_evidence: {type: array, items: {type: string}, description: A zorn-hint for the reader.}
verdict: {pointer: /zorn_verdict, pass: [zorn_yea], fail: [zorn_nay], neutral: [zorn_maybe],
  repair: {zorn_nay: zorn.secret.route}}
evidence: [/zorn_evidence]
permissions: {result_scope: evaluation}
execution: {independent: true, models: [zorn-model-1, zorn-model-2]}
forbidden_keys: [zorn_pack_forbidden]
";

const JOB: &str = "contract: zorn.contract@41
subject: novel/zorn-subject
input:
  zorn_question: Is it zorn-question?
  zorn_notes: {zorn_member: [zorn-nested]}
  artifacts: [{name: zorn_artifact, path: zorn-folder/zorn-file.md}]
context: [{name: zorn_context, path: zorn-folder/zorn-other.md}]
rubric: [Judge the zorn-job-rule.]
forbidden_keys: [zorn_forbidden]
allow_evidence: [gold_label]
";

/// What a reviewer is to see.
const SHOWN: [&str; 21] = [
    "zorn.contract@41",
    "zorn_kind",
    "novel/zorn-subject",
    "zorn_question",
    "Is it zorn-question?",
    "zorn_notes",
    "zorn_member",
    "zorn-nested",
    "zorn_artifact",
    "The zorn-text of the chapter.",
    "zorn_context",
    "The zorn-text of the notes.",
    "Judge the zorn-pack-rule.",
    "Judge the zorn-job-rule.",
    "zorn_verdict",
    "zorn_yea",
    "zorn_nay",
    "zorn_maybe",
    "zorn_evidence",
    "A zorn-hint for the reader.",
    "evaluation",
];

/// What never leaves: where things lie, what an answer leads to, what is forbidden, who is wanted, how far
/// the work is, and everything of the sessions but the id of the one that asks.
const HIDDEN: [&str; 22] = [
    "zorn-folder",
    "zorn-file",
    "zorn-other",
    "ch01.md",
    "zorn.secret.route",
    "repair",
    "neutral",
    "polarity",
    "zorn_pack_forbidden",
    "zorn_forbidden",
    "gold_label",
    "allow_evidence",
    "forbidden_keys",
    "zorn-model",
    "zorn-cursor",
    "zorn-native",
    "zorn-resource",
    "zorn-task",
    "zorn-gate",
    "zorn-elsewhere",
    "zorn-input-schema",
    "Zorn-purpose",
];

/// A project whose every word is known, its packet for each transport in turn: the question is out in a
/// session with a provider's own id, beside another session with another question. Gives the packet.
fn marked(whom: &str) -> (Project, Packet) {
    let project = Project::new();
    project.write(".novelforge/contracts/zorn.yaml", PACK);
    project.write("zorn-folder/zorn-file.md", "The zorn-text of the chapter.\n");
    project.write("zorn-folder/zorn-other.md", "The zorn-text of the notes.\n");
    project.write("zorn.yaml", JOB);
    let elsewhere = project.start();
    let other = crate::harness::JOB.replace("turn the page?", "find zorn-elsewhere?");
    project.write("other.yaml", other);
    done(&project, &["freeze", "other.yaml", "--session", &elsewhere]);
    let new =
        ["session", "new", "--resource", "zorn-resource", "--task", "zorn-task", "--native", "zorn-native"];
    let session = project.nf(&new).expect(0).line();
    done(&project, &["session", "move", &session, "running"]);
    done(&project, &["run", "step", "--cursor", "zorn-cursor", "--session", &session]);
    let job = done(&project, &["freeze", "zorn.yaml", "--session", &session])["job"].clone();
    let job = job.as_str().expect("an id");
    let packet = ["packet", job, "--for", whom, "--gate", "zorn-gate", "--session", &session];
    let text = project.nf(&packet).expect(0).stdout;
    assert_eq!(shown(&project, &session, "/native"), "zorn-native");
    (project, Packet::read(&text))
}

#[test]
fn all_that_the_question_says_is_in_the_packet_and_nothing_that_it_must_not_say() {
    for whom in WHOM {
        let (project, packet) = marked(whom);
        let lower = packet.text.to_lowercase();
        for word in SHOWN {
            assert!(packet.text.contains(word), "{word} is not in the packet for {whom}:\n{}", packet.text);
        }
        for word in HIDDEN {
            assert!(
                !lower.contains(&word.to_lowercase()),
                "{word} is in the packet for {whom}:\n{}",
                packet.text
            );
        }
        let folder = project.path().to_string_lossy().into_owned();
        assert!(!packet.text.contains(&folder), "where the project lies");
        // Nothing tells a good verdict from a bad one: the words stand side by side, equally often.
        for (word, other) in [("zorn_yea", "zorn_nay"), ("zorn_yea", "zorn_maybe")] {
            assert_eq!(packet.text.matches(word).count(), packet.text.matches(other).count(), "{whom}");
        }
        for list in ["pass:", "fail:", "\"pass\"", "\"fail\"", "pass list", "expected"] {
            assert!(!lower.contains(list), "{list} is in the packet for {whom}");
        }
        only_own_ids(&project, &packet, whom);
    }
}

/// Of all ids in the store a packet names its job, its handoff and the session that asks, and no other.
#[track_caller]
fn only_own_ids(project: &Project, packet: &Packet, whom: &str) {
    let source = shown(project, &packet.handoff, "/source_session");
    let source = source.as_str().expect("an id").to_owned();
    let own = [&packet.job, &packet.handoff, &source];
    for kind in ["session", "run", "checkpoint", "job", "handoff", "attempt"] {
        for item in done(project, &["list", kind])["items"].as_array().expect("items") {
            let id = item["id"].as_str().expect("an id").to_owned();
            assert_eq!(packet.text.contains(&id), own.contains(&&id), "{kind} {id} for {whom}");
        }
    }
}

#[test]
fn the_same_question_and_answer_are_the_same_over_every_transport() {
    let output = json!({"zorn_verdict": "zorn_nay", "zorn_evidence": ["Line one."]});
    let mut seen: Vec<[Value; 5]> = Vec::new();
    for (whom, family, host) in
        [("chat", "peer_chat", "chat"), ("human", "human", "human"), ("agent", "local_agent", "local_agent")]
    {
        let (project, packet) = marked(whom);
        let mut reply: Value = serde_json::from_str(&packet.answer(&output)).expect("JSON");
        reply["worker"] = json!({"name": "A. Reader", "provider": "peer", "model": "zorn-model-2"});
        let bound = done_with(&project, &["reply"], reply.to_string().as_bytes());
        let result = bound["result"].as_str().expect("an id").to_owned();
        let provenance = shown(&project, &result, "/provenance");
        assert_eq!((&provenance["transport"], &provenance["family"]), (&json!(whom), &json!(family)));
        let worker = shown(&project, provenance["worker_session"].as_str().expect("an id"), "");
        assert_eq!(worker["host"], json!(host));
        assert_eq!(worker["memory_policy"], "none");
        let consumed = done(&project, &["consume", &result, "--as", "zorn-gate"]);
        seen.push([
            json!(packet.job),
            json!(packet.fingerprint),
            shown(&project, &result, "/blob"),
            consumed["outcome"].clone(),
            shown(&project, &result, "/checked/grade"),
        ]);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[0][3], json!({"value": "zorn_nay", "polarity": "fail", "route": "zorn.secret.route"}));
    assert_eq!(seen[0][4], "declared", "another host is no better proof");
}

#[test]
fn a_result_keeps_who_answered_when_and_how_and_nothing_else() {
    for (whom, family) in [("chat", "peer_chat"), ("human", "human"), ("agent", "local_agent")] {
        let (project, packet) = marked(whom);
        let output = json!({"zorn_verdict": "zorn_yea", "zorn_evidence": ["Line one."]});
        let mut reply: Value = serde_json::from_str(&packet.answer(&output)).expect("JSON");
        reply["worker"] = json!({"name": "A. Reader", "provider": "peer", "model": "zorn-model-2"});
        let fenced = format!("Here it is.\n\n```json\n{reply}\n```\n");
        let bound = done_with(&project, &["reply"], fenced.as_bytes());
        let result = shown(&project, bound["result"].as_str().expect("an id"), "");
        let handoff = shown(&project, &packet.handoff, "");
        let attempt = handoff["attempt"].as_str().expect("an id").to_owned();
        let want = json!({
            "source_session": handoff["source_session"],
            "worker_session": shown(&project, &attempt, "/worker_session"),
            "handoff": packet.handoff,
            "attempt": attempt,
            "transport": whom,
            "family": family,
            "provider": "peer",
            "model_served": "zorn-model-2",
            "name": "A. Reader",
            "normalisation": ["fence_extracted", "prose_stripped"],
        });
        assert_eq!(result["provenance"], want);
        let known = ["id", "job", "fingerprint", "blob", "provenance", "stored_at", "checked", "consumed"];
        let odd = result.as_object().expect("an object").keys().find(|key| !known.contains(&key.as_str()));
        assert_eq!(odd, None);
        assert!(!result.to_string().contains(&packet.nonce), "no credential is kept");
    }
}

#[test]
fn one_provider_serves_both_sides_while_the_invocation_is_separate() {
    let project = Project::new();
    let new =
        ["session", "new", "--resource", "novel/pride", "--task", "review", "--native", "peer-chat/thread-1"];
    let session = project.nf(&new).expect(0).line();
    done(&project, &["session", "move", &session, "running"]);
    done(&project, &["freeze", "job.yaml"]);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    // The answer names the provider that the asking session runs at.
    let result = crate::expect::answer(&project, &packet, "accept");
    assert_eq!(shown(&project, &result, "/provenance/provider"), "peer-chat");
    assert_eq!(shown(&project, &result, "/checked/standing"), "valid");
    assert_eq!(shown(&project, &result, "/checked/grade"), "declared");
    assert_ne!(shown(&project, &result, "/provenance/worker_session"), json!(session));
}

#[test]
fn a_providers_own_id_is_at_most_a_kibibyte_and_never_read() {
    let project = Project::new();
    let new = |native: &str| {
        ["session", "new", "--resource", "novel/pride", "--task", "review", "--native", native]
            .map(str::to_owned)
    };
    for native in ["n".repeat(1025), "\u{e9}".repeat(513)] {
        let words = new(&native);
        refused(&project, &words.each_ref().map(String::as_str), 2, "usage");
    }
    let accent = "\u{e9}".repeat(512);
    for native in ["n".repeat(1024), accent, "s-000000000001 ../x {\"a\": 1}".to_owned()] {
        let words = new(&native);
        let made = done(&project, &words.each_ref().map(String::as_str));
        let session = made["session"].as_str().expect("an id").to_owned();
        assert_eq!(shown(&project, &session, "/native"), json!(native));
        done(&project, &["session", "move", &session, "running"]);
    }
    // Two sessions with one id of the provider are two sessions.
    let words = new("n");
    let ids: Vec<Value> =
        (0..2).map(|_| done(&project, &words.each_ref().map(String::as_str))["session"].clone()).collect();
    assert_ne!(ids[0], ids[1]);
    let found = silent(&project, &["list", "session"], b"");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(5));
}
