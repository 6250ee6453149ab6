//! What may be asked: everything else is refused when it is frozen, by place and reason, and nothing is kept.

use serde_json::{Value, json};

use crate::expect::{answer, done, names, refused, refused_with, shown};
use crate::harness::{JOB, Project};

/// The job of the cases as a value.
fn job() -> Value {
    json!({
        "kind": "reader_reaction",
        "subject": "novel/pride/ch01",
        "input": {
            "question": "Would a first-time reader turn the page?",
            "artifacts": [{"name": "chapter", "path": "ch01.md"}],
        },
        "rubric": ["Judge only the text in the packet."],
        "output": {
            "type": "object",
            "required": ["verdict"],
            "properties": {"verdict": {"enum": ["accept", "reject"]}},
        },
        "verdict": {
            "pointer": "/verdict",
            "pass": ["accept"],
            "fail": ["reject"],
            "repair": {"reject": "repair.story"},
        },
        "permissions": {"result_scope": "diagnostic"},
        "execution": {"independent": true},
    })
}

fn with(pointer: &str, key: &str, value: Value) -> Value {
    let mut job = job();
    job.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"))[key] = value;
    job
}

#[track_caller]
fn refuse(project: &Project, job: &Value, code: i32, kind: &str, words: &[&str]) {
    let error = refused_with(project, &["freeze", "-"], job.to_string().as_bytes(), code, kind);
    let all = json!(format!("{} {} {} {}", error["message"], error["cause"], error["fix"], error["details"]));
    names(&all, words);
}

#[test]
fn keys_that_show_a_hoped_for_or_private_answer_are_refused_at_any_depth_and_in_any_case() {
    let project = Project::new();
    let forbidden = [
        "expected",
        "expected_verdict",
        "expected_codes",
        "gold",
        "gold_label",
        "answer_key",
        "prior_result",
        "prior_verdict",
        "reviewer_verdict",
        "messages",
        "conversation",
        "transcript",
        "chat_history",
        "chain_of_thought",
        "reasoning",
        "thinking",
        "scratchpad",
        "private_reasoning",
    ];
    for (index, key) in forbidden.into_iter().enumerate() {
        let key = if index % 2 == 0 { key.to_uppercase() } else { key.to_owned() };
        let deep = json!({"a": [{key.clone(): 1}]});
        refuse(&project, &with("/input", "notes", deep), 3, "not_blind", &[&format!("/notes/a/0/{key}")]);
    }
    refuse(&project, &with("", "rubric", json!([{"Gold": "x"}])), 3, "not_blind", &["rubric", "/0/Gold"]);
    let mut own = with("/input", "notes", json!({"Author_Intent": 1}));
    own["forbidden_keys"] = json!(["author_intent"]);
    refuse(&project, &own, 3, "not_blind", &["/notes/Author_Intent"]);
}

#[test]
fn a_forbidden_key_is_found_in_structured_artifacts_and_not_in_prose() {
    let project = Project::new();
    project.write("sheet.json", "{\"rows\": [{\"Expected_Verdict\": \"accept\"}]}");
    project.write("sheet.yaml", "rows:\n  - answer_key: b\n");
    project.write("prose.md", "expected: rain. gold: none.\n");
    for path in ["sheet.json", "sheet.yaml"] {
        let artifacts = json!([{"name": "sheet", "path": path}]);
        refuse(
            &project,
            &with("/input", "artifacts", artifacts.clone()),
            3,
            "not_blind",
            &["artifact sheet", "/rows/0/"],
        );
        refuse(&project, &with("", "context", artifacts), 3, "not_blind", &["artifact sheet"]);
    }
    let prose = with("", "context", json!([{"name": "prose", "path": "prose.md"}]));
    project.nf_with(&["freeze", "-"], prose.to_string().as_bytes()).expect(0);
}

#[test]
fn what_the_rubric_asks_to_judge_can_be_lifted_and_private_keys_never() {
    let project = Project::new();
    let mut lifted = with("/input", "notes", json!({"expected": "rain"}));
    lifted["allow_evidence"] = json!(["expected"]);
    project.nf_with(&["freeze", "-"], lifted.to_string().as_bytes()).expect(0);
    let mut private = with("/input", "notes", json!({"thinking": "x"}));
    private["allow_evidence"] = json!(["thinking"]);
    let error = refused_with(&project, &["freeze", "-"], private.to_string().as_bytes(), 3, "not_blind");
    names(&error["message"], &["/notes/thinking"]);
}

#[test]
fn an_output_that_asks_for_private_reasoning_or_a_permission_that_nothing_grants_is_refused() {
    let project = Project::new();
    for key in ["reasoning", "Chain_Of_Thought"] {
        let asks = with("/output/properties", key, json!({"type": "string"}));
        refuse(&project, &asks, 3, "not_blind", &[key]);
    }
    let requires = with("/output", "required", json!(["verdict", "thinking"]));
    refuse(&project, &requires, 3, "not_blind", &["required"]);
    for key in ["canon_write", "framework_promotion", "durable_taste_write"] {
        for value in [json!(true), json!("no"), json!(0), Value::Null] {
            refuse(
                &project,
                &with("/permissions", key, value),
                3,
                "authority_denied",
                &[key, "only be false"],
            );
        }
        let false_is_nothing = with("/permissions", key, json!(false));
        let frozen = project.nf_with(&["freeze", "-"], false_is_nothing.to_string().as_bytes()).expect(0);
        let plain = project.nf_with(&["freeze", "-"], job().to_string().as_bytes()).expect(0);
        assert_eq!(frozen.line(), plain.line());
    }
}

#[test]
fn unknown_members_are_named_with_their_place_and_what_was_meant() {
    let project = Project::new();
    for (job, words) in [
        (with("", "rubrik", json!([])), ["/rubrik", "did you mean rubric?"]),
        (with("/verdict", "pas", json!([])), ["/verdict/pas", "did you mean pass?"]),
        (
            with("/execution", "independant", json!(true)),
            ["/execution/independant", "did you mean independent?"],
        ),
        (
            with("/permissions", "canon_writes", json!(false)),
            ["/permissions/canon_writes", "did you mean canon_write?"],
        ),
        (with("/input/artifacts/0", "pth", json!("x")), ["/input/artifacts/0/pth", "did you mean path?"]),
    ] {
        refuse(&project, &job, 1, "bad_input", &words);
    }
}

#[test]
fn a_verdict_rule_covers_every_value_and_routes_every_failure() {
    let project = Project::new();
    let third = with("/output/properties/verdict", "enum", json!(["accept", "reject", "maybe"]));
    refuse(&project, &third, 1, "bad_input", &["maybe"]);
    refuse(&project, &with("/verdict", "repair", json!({})), 1, "bad_input", &["reject", "repair"]);
    refuse(&project, &with("/verdict", "pass", json!(["accept", "reject"])), 1, "bad_input", &["reject"]);
    refuse(&project, &with("/verdict", "pointer", json!("verdict")), 1, "bad_input", &["pointer"]);
    let mut neutral = third;
    neutral["verdict"]["neutral"] = json!(["maybe"]);
    project.nf_with(&["freeze", "-"], neutral.to_string().as_bytes()).expect(0);
}

#[test]
fn artifacts_stay_in_the_project_and_out_of_the_store() {
    let project = Project::new();
    std::os::unix::fs::symlink("/etc/hostname", project.at("out.md")).expect("a link");
    std::os::unix::fs::symlink(".novelforge/store.json", project.at("in.md")).expect("a link");
    project.write("sub/ok.md", "Inside.\n");
    std::os::unix::fs::symlink("sub/ok.md", project.at("link.md")).expect("a link");
    for path in [
        "../ch01.md",
        "/etc/hostname",
        "sub/../../x",
        ".novelforge/store.json",
        "out.md",
        "in.md",
        "no.md",
        "sub",
    ] {
        let names = if path == "no.md" { "no.md" } else { path.rsplit('/').next().unwrap_or(path) };
        let outside = with("/input/artifacts/0", "path", json!(path));
        let error = refused_with(&project, &["freeze", "-"], outside.to_string().as_bytes(), 1, "bad_input");
        let text = format!("{error}");
        assert!(text.contains(names) || text.contains("/input/artifacts/0/path"), "{path}: {error}");
    }
    let inside = with("/input/artifacts/0", "path", json!("link.md"));
    project.nf_with(&["freeze", "-"], inside.to_string().as_bytes()).expect(0);
}

#[test]
fn one_name_stands_for_one_artifact() {
    let project = Project::new();
    let twice = with("", "context", json!([{"name": "chapter", "path": "job.yaml"}]));
    refuse(&project, &twice, 1, "bad_input", &["/context/0/name", "the name chapter stands twice"]);
    let empty = with("", "input", json!({}));
    refuse(&project, &empty, 1, "bad_input", &["/input"]);
    for (key, value) in [("families", json!([])), ("cost", json!([])), ("min_grade", json!("none"))] {
        refuse(&project, &with("/execution", key, value), 1, "bad_input", &["/execution"]);
    }
}

#[test]
fn a_stored_answer_is_no_artifact() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "accept");
    let hash = shown(&project, &result, "/blob");
    let hash = hash.as_str().expect("a hash");
    project.write("earlier.md", project.read(&format!(".novelforge/blobs/{}/{hash}", &hash[..2])));
    let copied = with("", "context", json!([{"name": "earlier", "path": "earlier.md"}]));
    refuse(&project, &copied, 3, "not_blind", &["artifact earlier", &result]);
}

#[test]
fn bytes_that_are_not_text_need_their_encoding_said() {
    let project = Project::new();
    project.write("picture.bin", b"\x89PNG\xff\x00");
    let bytes = with("", "context", json!([{"name": "picture", "path": "picture.bin"}]));
    refuse(&project, &bytes, 1, "bad_input", &["picture.bin", "offset 0", "base64"]);
    let said = json!([{"name": "picture", "path": "picture.bin", "encoding": "base64"}]);
    project.nf_with(&["freeze", "-"], with("", "context", said).to_string().as_bytes()).expect(0);
    let other = json!([{"name": "picture", "path": "picture.bin", "encoding": "hex"}]);
    refuse(&project, &with("", "context", other), 1, "bad_input", &["/context/0/encoding", "hex"]);
}

#[test]
fn a_slice_is_hashed_by_its_lines_alone() {
    let project = Project::new();
    project.write("long.md", "one\ntwo\nthree\nfour\n");
    let sliced = |lines: &str| with("/input/artifacts/0", "lines", json!(lines));
    let path = |mut job: Value| {
        job["input"]["artifacts"][0]["path"] = json!("long.md");
        job
    };
    let freeze = |job: &Value| project.nf_with(&["freeze", "-"], job.to_string().as_bytes()).expect(0).line();
    let first = freeze(&path(sliced("2-3")));
    assert_eq!(shown(&project, &first, "/places/0/bytes"), 10);
    assert_eq!(shown(&project, &first, "/places/0/lines"), json!([2, 3]));
    project.write("long.md", "zero\none\ntwo\nthree\n");
    assert_eq!(freeze(&path(sliced("3-4"))), first, "the same lines elsewhere are the same question");
    assert_eq!(shown(&project, &first, "/places/0/lines"), json!([3, 4]), "the moved place is kept");
    for (lines, word) in
        [("0-2", "lines"), ("3-2", "lines"), ("2", "lines"), ("4-9", "no line 9"), ("a-b", "lines")]
    {
        refuse(&project, &path(sliced(lines)), 1, "bad_input", &[word]);
    }
}

#[test]
fn what_is_no_job_file_is_refused_with_its_place() {
    let project = Project::new();
    for (text, word) in [
        ("kind: [", "line"),
        ("kind: a\nkind: b\n", "kind"),
        ("- a\n- b\n", "job file"),
        ("kind: !!binary aGk=\n", "tag"),
        ("{\"kind\": 9007199254740993}", "2^53"),
        ("{\"kind\": \"a\", \"kind\": \"b\"}", "kind"),
        ("kind: 2026-11-30\n", "date"),
        ("1: x\n", "key"),
        ("", "no value"),
    ] {
        let error = refused_with(&project, &["freeze", "-"], text.as_bytes(), 1, "bad_input");
        assert!(error.to_string().contains(word), "{text:?}: {word} in {error}");
    }
    refused(&project, &["freeze", "nothing.yaml"], 1, "io");
    project.write("huge.md", "x".repeat(8 * 1024 * 1024 + 1));
    let huge = with("/input/artifacts/0", "path", json!("huge.md"));
    refuse(&project, &huge, 1, "too_large", &["huge.md"]);
}

#[test]
fn the_same_content_is_the_same_job_however_it_is_written() {
    let project = Project::new();
    project.start();
    let first = done(&project, &["freeze", "job.yaml"]);
    assert_eq!(first["new"], true);
    let before = project.log();
    let again = done(&project, &["freeze", "job.yaml"]);
    assert_eq!((again["new"].clone(), again["job"].clone()), (json!(false), first["job"].clone()));
    project.write(
        "other.yaml",
        format!("# another comment\n{}", JOB.replace("rubric:", "context: []\nrubric:")),
    );
    assert_eq!(done(&project, &["freeze", "other.yaml"])["job"], first["job"]);
    assert!(before == project.log(), "the same content writes nothing");
    for (name, from, to) in [
        ("question", "turn the page", "close the book"),
        ("rubric", "at least one", "at least two"),
        ("terms", "min_grade: declared", "min_grade: attested"),
        ("scope", "result_scope: diagnostic", "result_scope: proposal"),
    ] {
        project.write("other.yaml", JOB.replace(from, to));
        let changed = done(&project, &["freeze", "other.yaml"]);
        assert_ne!(changed["job"], first["job"], "{name}");
        let same_question = matches!(name, "terms" | "scope");
        assert_eq!(changed["fingerprint"] == first["fingerprint"], same_question, "{name}");
    }
}
