//! Work that is no frozen question, carried to a machine without a store and back.

use serde_json::{Value, json};

use crate::carry::{Far, exported};
use crate::expect::{done, events_of, names, refused, shown};
use crate::faults::tools::assert_sound;
use crate::harness::Project;

const GATE: &str = "research/ch01";

fn project() -> (Project, String) {
    let project = Project::new();
    project.write("task.md", "Find three sources on the flood.\n");
    project
        .write("returns.yaml", "type: object\nrequired: [sources]\nproperties: {sources: {minItems: 1}}\n");
    project.start();
    let open = ["handoff", "open", "--class", "specialist", "--gate", GATE, "--instructions", "task.md"];
    let more = ["--returns", "returns.yaml", "--artifact", "chapter=ch01.md", "--context", "web"];
    let handoff = project.nf(&[&open[..], &more].concat()).expect(0).line();
    (project, handoff)
}

fn answer(export: &str, sources: &Value) -> String {
    let export: Value = serde_json::from_str(export).expect("JSON");
    json!({
        "nf": {"handoff": export["handoff"], "nonce": export["nonce"]},
        "worker": {"provider": "p", "model": "m"}, "status": "completed", "output": {"sources": sources},
    })
    .to_string()
}

#[test]
fn a_task_is_carried_answered_far_away_and_applied_once() {
    let (project, handoff) = project();
    let export = exported(&project, &handoff);
    let far = Far::new();
    far.write("export.json", &export);
    let packet = far.nf(&["packet", "--from", "export.json"]).expect(0).stdout;
    for part in ["Find three sources on the flood.", "context: web", "artifact chapter", &handoff] {
        assert!(packet.contains(part), "{part}: {packet}");
    }
    let document = far.nf(&["packet", "--from", "export.json", "--json"]).expect(0).json();
    assert_eq!(document["data"]["job"], Value::Null);
    far.write("bad.txt", answer(&export, &json!([])));
    let bad = far.nf(&["reply", "--from", "export.json", "bad.txt", "--out", "r.json"]).expect(5);
    assert!(bad.stderr.contains(&format!("handoff {handoff}")) && bad.stderr.contains("/sources"));
    let result = far.answer(&answer(&export, &json!(["Gazette"])));
    project.write("result.json", &result);
    let id = project.nf(&["import", "result.json"]).expect(0).line();
    let again = done(&project, &["import", "result.json"]);
    assert_eq!((&again["duplicate"], &again["result"]), (&json!(true), &json!(id)));
    let object = shown(&project, &id, "");
    assert!(object.get("job").is_none() && object["provenance"]["transport"] == "import", "{object}");
    let other = far.answer(&answer(&export, &json!(["Another"])));
    project.write("other.json", other);
    project.nf(&["import", "other.json"]).expect(4);
    assert_eq!(project.nf(&["consume", "--as", GATE]).expect(0).line(), "new");
    assert_eq!(project.nf(&["consume", "--as", GATE]).expect(0).line(), "already");
    assert_eq!(events_of(&project, "result.stored").len(), 1);
    assert_sound(&project);
}

#[test]
fn a_task_is_exported_as_it_was_queued_and_no_other_answer_comes_home_for_it() {
    let (project, handoff) = project();
    let export = exported(&project, &handoff);
    assert_eq!(project.nf(&["export", &handoff]).expect(0).stdout, export, "the same file again");
    refused(
        &project,
        &["handoff", "claim", &handoff, "--class", "specialist", "--worker", "w"],
        8,
        "under_review",
    );
    project.write("task.md", "Find nothing.\n");
    assert!(!export.contains("Find nothing"));
    let far = Far::new();
    far.write("export.json", export.replace("Find three", "Find four"));
    let ran = far.nf(&["packet", "--from", "export.json"]).expect(1);
    assert!(ran.stderr.contains("not as it was written"), "{}", ran.stderr);
    far.write("export.json", &export);
    let result = far.answer(&answer(&export, &json!(["Gazette"])));
    done(&project, &["handoff", "release", &handoff, "--revoke"]);
    project.write("result.json", result);
    let ran = project.nf(&["import", "result.json", "--json"]).expect(3).json();
    names(&ran["error"]["message"], &["may not act"]);
    let second = exported(&project, &handoff);
    assert_ne!(second, export);
}
