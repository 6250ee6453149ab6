//! The forms for people and agents: what comes back in them, and the text that asks again.

use serde_json::{Value, json};

use crate::expect::{done_with, failed, refused_with, silent};
use crate::harness::{Packet, Project};

fn ask_for(project: &Project, whom: &str) -> Packet {
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    Packet::read(&project.nf(&["packet", "--for", whom]).expect(0).stdout)
}

/// The lines of the human form, filled in.
fn filled(packet: &Packet, verdict: &str) -> String {
    let start = packet.text.find("# NF FORM").expect("a form");
    let end = packet.text.rfind("END NF PACKET").expect("an end");
    packet.text[start..end]
        .trim_end()
        .replace("name: \"\"", "name: \"A. Reader\"")
        .replace("\"confidence\": null", "\"confidence\": 0.5")
        .replace("\"evidence\": []", "\"evidence\": [\"The first page names nine people.\"]")
        .replace("\"verdict\": \"\"", &format!("\"verdict\": \"{verdict}\""))
}

#[test]
fn a_human_form_binds_as_it_is_in_a_fence_and_with_other_line_endings() {
    type Around = fn(&str) -> String;
    let cases: &[(&str, Around, &[&str])] = &[
        ("as it is", |form| form.to_owned(), &["yaml_form_parsed"]),
        ("with CRLF", |form| form.replace('\n', "\r\n"), &["yaml_form_parsed"]),
        ("in a fence", |form| format!("```yaml\n{form}\n```\n"), &["fence_extracted", "yaml_form_parsed"]),
        (
            "in a letter",
            |form| format!("Dear Sir,\n\n{form}\n\nYours, A.\n"),
            &["prose_stripped", "yaml_form_parsed"],
        ),
    ];
    for (name, around, steps) in cases {
        let project = Project::new();
        let packet = ask_for(&project, "human");
        let data = done_with(&project, &["reply"], around(&filled(&packet, "reject")).as_bytes());
        assert_eq!(data["steps"], json!(steps), "{name}");
        assert_eq!(data["verdict"]["value"], "reject", "{name}");
        assert_eq!(data["grade"], "declared", "{name}");
    }
}

#[test]
fn a_human_form_that_is_not_filled_in_or_lost_its_end_is_named() {
    let project = Project::new();
    let packet = ask_for(&project, "human");
    let whole = filled(&packet, "accept");
    let start = packet.text.find("# NF FORM").expect("a form");
    let empty = packet.text[start..].replace("END NF PACKET", "");
    let cut = whole[..whole.find("# END NF FORM").expect("an end")].to_owned();
    let nameless = whole.replace("A. Reader", "");
    for (name, reply, reason) in [
        ("empty", &empty, "form_not_filled_in"),
        ("cut", &cut, "truncated"),
        ("nameless", &nameless, "binding"),
    ] {
        let error = failed(&project, &["reply", "-n"], reply.as_bytes(), 5, "semantic_invalid");
        assert_eq!(error["details"]["reason"], reason, "{name}: {error}");
    }
}

#[test]
fn a_reader_who_cannot_judge_says_so_in_the_form() {
    let project = Project::new();
    let packet = ask_for(&project, "human");
    let whole = filled(&packet, "accept");
    let output = whole.find("\noutput:").expect("an output") + 1;
    let end = whole.find("# END NF FORM").expect("an end");
    let reply =
        format!("{}{}", whole[..output].replace("completed", "cannot_judge\nreason: \"ill\""), &whole[end..]);
    let reply = reply.replace("# cannot_judge\nreason: \"ill\"; or", "# completed; or");
    let error = failed(&project, &["reply"], reply.as_bytes(), 7, "execution_failed");
    assert_eq!(error["details"]["said"], "ill");
}

#[test]
fn an_agent_gets_one_document_and_answers_with_its_form() {
    let project = Project::new();
    let packet = ask_for(&project, "agent");
    let document: Value = serde_json::from_str(&packet.text).expect("one JSON document");
    let mut form = document["return_form"].clone();
    let alone = failed(&project, &["reply", "-n"], form.to_string().as_bytes(), 5, "semantic_invalid");
    assert_eq!(alone["details"]["reason"], "form_not_filled_in");
    form["worker"] = json!({"provider": "somebody", "model": "some-agent-2"});
    form["output"] = json!({"verdict": "accept", "evidence": ["Nine people."], "confidence": 1});
    let data = done_with(&project, &["reply"], form.to_string().as_bytes());
    assert_eq!(data["steps"], json!([]));
    let status = done_with(&project, &["status"], b"");
    assert_eq!(status["sessions"][0]["status"], "awaiting_external");
}

#[test]
fn a_nonce_beside_the_reply_stands_in_for_a_missing_one_and_never_for_another() {
    let project = Project::new();
    let packet = project.ask();
    let mut answer: Value = serde_json::from_str(&packet.verdict("accept")).expect("JSON");
    answer["nf"]["nonce"] = json!("00000000000000000000000000");
    let nonce = packet.nonce.clone();
    let wrong = refused_with(
        &project,
        &["reply", "--nonce", &nonce],
        answer.to_string().as_bytes(),
        5,
        "semantic_invalid",
    );
    assert_eq!(wrong["details"]["reason"], "no_such_packet");
    answer["nf"].as_object_mut().expect("nf").remove("nonce");
    let without = answer.to_string();
    let missing = refused_with(&project, &["reply"], without.as_bytes(), 5, "semantic_invalid");
    assert_eq!(missing["details"]["reason"], "no_such_packet");
    done_with(&project, &["reply", "--nonce", &nonce], without.as_bytes());
}

#[test]
fn asking_again_writes_nothing_and_hints_at_no_verdict() {
    let project = Project::new();
    let packet = project.ask();
    let accept = packet.verdict("accept");
    for (name, reply, word) in [
        ("empty", String::new(), "Nothing arrived"),
        ("trailing comma", accept.replace("0.7", "0.7,"), "trailing commas"),
        ("no evidence", packet.answer(&json!({"verdict": "accept", "confidence": 1})), "/evidence"),
        ("unknown verdict", accept.replace("\"accept\"", "\"splendid\""), "verdict"),
        ("no worker", accept.replace("peer-chat", ""), "worker"),
        ("private", accept.replace("\"confidence\"", "\"Thinking\":1,\"confidence\""), "private reasoning"),
    ] {
        let data = silent(&project, &["reply", "--ask"], reply.as_bytes());
        assert_eq!(data["binds"], false, "{name}");
        let ask = data["ask"].as_str().expect("a text");
        assert!(ask.contains(word), "{name}: {ask}");
        for hint in ["\"reject\"", "\"accept\"", "splendid"] {
            assert!(name == "unknown verdict" || !ask.contains(hint), "{name} hints at {hint}: {ask}");
        }
    }
    let sound = silent(&project, &["reply", "--ask"], accept.as_bytes());
    assert_eq!(sound, json!({"binds": true, "ask": ""}));
}

#[test]
fn a_queued_handoff_goes_to_a_person_and_comes_back_by_reply() {
    use crate::expect::{done, refused, shown};
    for gate in [None, Some("desk/gate")] {
        let project = Project::new();
        let session = project.start();
        let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
        let mut open = vec!["handoff", "open", &job, "--class", "human_reviewer", "--wait"];
        open.extend(gate.iter().flat_map(|gate| ["--gate", gate]));
        let handoff = project.nf(&open).expect(0).line();
        let packet = Packet::read(&project.nf(&["packet", &handoff, "--for", "human"]).expect(0).stdout);
        assert_eq!(packet.handoff, handoff, "the handoff itself goes out, and no second one");
        let gate = gate.unwrap_or("gate/novel/pride/ch01/reader_reaction");
        assert_eq!(shown(&project, &handoff, "/gate"), gate);
        // Nobody else gets it meanwhile, and the person's packet can be shown again.
        let claim = ["handoff", "claim", "--class", "human_reviewer", "--worker", "w"];
        refused(&project, &claim, 8, "pending");
        let again = project.nf(&["packet", &handoff, "--for", "human"]).expect(0).stdout;
        assert_eq!(again, packet.text);
        refused(&project, &["resume"], 8, "pending");
        let data = done_with(&project, &["reply"], filled(&packet, "reject").as_bytes());
        assert_eq!((&data["verdict"]["value"], &data["grade"]), (&json!("reject"), &json!("declared")));
        done(&project, &["consume", "--as", gate]);
        done(&project, &["resume"]);
        assert_eq!(shown(&project, &session, "/status"), "running");
        assert_eq!(shown(&project, &handoff, "/state"), "completed");
    }
    // What a worker holds is not taken from it.
    let project = Project::new();
    let (session, _, handoff) = crate::handoffs::queued(&project, "novel/pride/ch01", &[]);
    crate::handoffs::claimed(&project, &[]);
    refused(&project, &["packet", &handoff, "--for", "human", "--session", &session], 8, "under_review");
}
