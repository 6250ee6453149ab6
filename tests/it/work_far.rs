//! `work --from`: a program answers an export file on a machine without a store, and the answer comes home
//! through the same door as any other. What was seen of the program there is a statement here.

use serde_json::json;

use crate::carry::exported;
use crate::expect::{done, names, refused, shown};
use crate::faults::tools::assert_sound;
use crate::handoffs::{CLASS, queued};
use crate::harness::Project;
use crate::work::{program, project, provenance};

/// An exported question, and a machine without a store that has its file and a program.
fn exported_to(text: &str) -> (Project, Project, String) {
    let home = project();
    let (_, _, handoff) = queued(&home, "novel/q1", &[]);
    let mut far = Project::in_memory();
    far.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    far.write("export.json", exported(&home, &handoff));
    program(&far, "answer.sh", text);
    (home, far, handoff)
}

const WORK: &[&str] = &["work", "--from", "export.json", "--out", "result.json", "--", "./answer.sh"];

#[test]
fn answered_by_a_program_far_away_it_comes_home_declared() {
    let (home, far, handoff) = exported_to("read_packet; answer reject");
    let data = done(&far, WORK);
    assert_eq!((&data["completed"], &data["verdict"]["value"]), (&json!(true), &json!("reject")));
    home.write("result.json", far.read("result.json"));
    let bound = done(&home, &["import", "result.json"]);
    assert_eq!((&bound["grade"], &bound["verdict"]["route"]), (&json!("declared"), &json!("repair.story")));
    let result = bound["result"].as_str().expect("an id");
    let seen = provenance(&home, result);
    assert_eq!(seen["transport"], "import");
    assert_eq!(seen["witness"]["invocation"]["exit"], 0);
    let told = home.nf(&["show", result]).expect(0).stdout;
    assert!(told.contains("as the result file states it"), "{told}");
    assert_eq!(done(&home, &["import", "result.json"])["duplicate"], true);
    assert_eq!(shown(&home, &handoff, "/state"), "completed");
    assert_sound(&home);
}

#[test]
fn a_file_proves_nothing_of_what_it_states() {
    let (home, far, _) = exported_to("read_packet; answer accept");
    done(&far, WORK);
    let mut file: serde_json::Value = serde_json::from_str(&far.read("result.json")).expect("JSON");
    file["witness"]["isolation"] = json!(["a room of its own"]);
    let map = file.as_object_mut().expect("an object");
    map.remove("hash");
    let hash = nf::model::hash::Hash::of(&nf::model::hash::canonical(&file)).hex();
    file["hash"] = json!(hash);
    home.write("result.json", file.to_string());
    assert_eq!(done(&home, &["import", "result.json"])["grade"], "declared");
}

#[test]
fn what_is_no_answer_writes_nothing_and_has_its_class() {
    for (text, code, word) in
        [("exit 3", 7, "crash"), ("read_packet; answer perhaps", 5, "verdict"), ("echo no", 5, "no")]
    {
        let (_home, far, _) = exported_to(text);
        let ran = far.nf(&[WORK, &[]].concat()).expect(code);
        names(&json!(ran.stderr), &[word]);
        assert!(!far.at("result.json").exists(), "{text}");
    }
    let (_home, far, _) = exported_to("exit 0");
    let absent = ["work", "--from", "export.json", "--out", "result.json", "--", "./no-such.sh"];
    far.nf(&absent).expect(6);
}

#[test]
fn where_nothing_can_be_written_nobody_is_asked_and_nothing_is_recorded() {
    let (home, far, handoff) = exported_to("read_packet; touch \"$0.ran\"; answer accept");
    std::fs::create_dir(far.at("folder")).expect("a folder");
    for out in ["none/result.json", "folder"] {
        let to = ["work", "--from", "export.json", "--out", out, "--", "./answer.sh"];
        let told = far.nf(&to).expect(1).stderr;
        assert!(told.contains("make its folder") && told.contains("nothing was done"), "{told}");
        assert!(!far.at("answer.sh.ran").exists(), "{out}");
    }
    home.nf(&["handoff", "release", &handoff, "--revoke"]).expect(0);
    let before = home.log();
    for command in [
        &["handoff", "claim", "--class", CLASS, "--worker", "w", "--out", "none/packet.txt"][..],
        &["export", &handoff, "--worker", "w", "--out", "none/export.json"],
        &["packet", &handoff, "--out", "none/packet.txt"],
    ] {
        refused(&home, command, 1, "io");
        assert!(before == home.log(), "{command:?}");
    }
}
