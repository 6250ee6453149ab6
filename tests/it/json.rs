//! Each command's `--json` document is what its generated schema says, also when it fails.

use std::collections::{BTreeMap, BTreeSet};

use nf::cli::schemas::EVENTS;
use nf::rules::schema::check;
use serde_json::{Value, json};

use crate::expect::with;
use crate::harness::{Packet, Project};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// The published document with the one of the events that it refers to, as a reader of both puts them
/// together.
fn with_events(mut schema: Value, events: &Value) -> Value {
    let text = events.to_string().replace("#/$defs/", "#/$defs/events/$defs/");
    let events: Value = serde_json::from_str(&text).expect("JSON");
    schema.as_object_mut().expect("a schema").entry("$defs").or_insert(json!({}))["events"] = events;
    let reference = format!("\"$ref\":\"{}\"", nf::cli::schemas::file(EVENTS));
    let whole = schema.to_string().replace(&reference, "\"$ref\":\"#/$defs/events\"");
    serde_json::from_str(&whole).expect("JSON")
}

fn schemas() -> BTreeMap<String, Value> {
    let mut all: BTreeMap<String, Value> = nf::cli::schemas::documents().into_iter().collect();
    let events = all.remove(EVENTS).expect("the events");
    all.into_iter().map(|(name, schema)| (name, with_events(schema, &events))).collect()
}

#[track_caller]
fn holds(schemas: &BTreeMap<String, Value>, document: &Value) -> String {
    let name = document["schema"].as_str().unwrap_or_else(|| panic!("no schema in {document}")).to_owned();
    let schema = schemas.get(&name).unwrap_or_else(|| panic!("{name} is not among the schemas"));
    let found = check(schema, document).unwrap_or_else(|bad| panic!("{name} is no schema: {bad:?}"));
    assert!(found.is_empty(), "{name}: {found:?}\n{document:#}");
    assert_eq!(document["ok"].as_bool(), Some(document.get("data").is_some()), "{document}");
    name
}

/// Runs commands in one project and keeps their documents.
struct Documents {
    project: Project,
    all: Vec<Value>,
}

impl Documents {
    #[track_caller]
    fn run(&mut self, code: i32, arguments: &[&str], input: &str) -> Value {
        let arguments = with(arguments, &["--json"]);
        let document = self.project.nf_with(&arguments, input.as_bytes()).expect(code).json();
        self.all.push(document.clone());
        document
    }
}

fn daily() -> Documents {
    let project = Project::empty();
    project.write("ch01.md", crate::harness::CHAPTER);
    project.write("job.yaml", crate::harness::JOB);
    project.write("pack.yaml", "id: a\nversion: 1\nkind: k\noutput: {type: object}\n");
    let mut documents = Documents { project, all: Vec::new() };
    documents.run(0, &["init"], "");
    documents.run(0, &["status"], "");
    documents.run(0, &["list", "session"], "");
    let start = ["start", "--resource", "novel/pride", "--task", "review"];
    let session = documents.run(0, &start, "")["data"]["session"].as_str().expect("an id").to_owned();
    documents.run(0, &["run", "step", "--cursor", "ch01"], "");
    documents.run(0, &["checkpoint", "save", "--boundary", "other", "--artifact", "chapter=ch01.md"], "");
    documents.run(0, &["freeze", "job.yaml", "-n"], "");
    documents.run(0, &["freeze", "job.yaml"], "");
    documents.run(0, &["route"], "");
    let packet = documents.run(0, &["packet"], "");
    let packet = Packet::read(packet["data"]["packet"].as_str().expect("a packet"));
    documents.run(0, &["status"], "");
    documents.run(0, &["reply", "-n"], &packet.verdict("reject"));
    let result = documents.run(0, &["reply"], &packet.verdict("reject"));
    let result = result["data"]["result"].as_str().expect("an id").to_owned();
    documents.run(0, &["validate", &result], "");
    documents.run(0, &["status"], "");
    documents.run(0, &["consume", "--as", GATE], "");
    documents.run(0, &["consume", "--as", GATE], "");
    documents.run(0, &["resume"], "");
    let put = ["event", "put", "ci.observed", "--key", "k", "--payload", "-", "--session", &session];
    let payload = format!("{{\"log\": \"{}\"}}", "x".repeat(300));
    let event = documents.run(0, &put, &payload)["data"]["event"].as_str().expect("an id").to_owned();
    documents.run(0, &put, &payload);
    documents.run(0, &["consume", &event, "--as", "desk"], "");
    documents.run(0, &["consume", &event, "--as", "desk"], "");
    documents.project.write("new.md", "new\n");
    let plan = ["effect", "plan", "--key", "settle", "--path", "a.md", "--expect", "new.md"];
    documents.run(0, &plan, "");
    documents.run(0, &["effect", "check", "settle"], "");
    documents.run(0, &["effect", "clear", "settle", "--reason", "another way"], "");
    documents.run(0, &plan, "");
    documents.run(0, &["status"], "");
    let copy = documents.project.nf(&["effect", "run", "settle", "--json", "--", "cp", "new.md", "a.md"]);
    documents.all.push(copy.expect(0).json());
    documents.run(0, &["effect", "done", "settle"], "");
    let new = ["session", "new", "--resource", "novel/pride", "--task", "review"];
    let other = documents.run(0, &new, "")["data"]["session"].as_str().expect("an id").to_owned();
    documents.run(0, &["session", "move", &other, "running"], "");
    documents.run(0, &["run", "finish", "--status", "completed", "--session", &session], "");
    queue(&mut documents, &other);
    for kind in
        ["session", "run", "checkpoint", "job", "handoff", "attempt", "result", "event", "receipt", "effect"]
    {
        let listed = documents.run(0, &["list", kind, "--limit", "2"], "");
        let items = listed["data"]["items"].as_array().expect("items").clone();
        assert!(!items.is_empty(), "{kind}");
        for item in items {
            documents.run(0, &["show", item["id"].as_str().expect("an id")], "");
        }
    }
    documents.run(0, crate::routes::DECLARE, "");
    documents.run(0, &["capability", "probe", "env", "--family", "service_job", "--", "/usr/bin/env"], "");
    documents.run(0, &["list", "capability"], "");
    documents.run(0, &["show", "house-model"], "");
    documents.run(0, &["contract", "list"], "");
    documents.run(0, &["contract", "check", "pack.yaml"], "");
    documents.run(0, &["verify"], "");
    documents.run(0, &["doctor"], "");
    documents.run(0, &["completions", "bash"], "");
    documents.run(0, &["man"], "");
    documents
}

/// What a worker and the session that asks do with the queue.
fn queue(documents: &mut Documents, session: &str) {
    let job = crate::harness::JOB.replace("novel/pride/ch01", "novel/pride/queued");
    documents.project.write("queued.yaml", job);
    documents.run(0, &["freeze", "queued.yaml", "--session", session], "");
    let open = ["handoff", "open", "--class", "specialist", "--wait", "--session", session];
    let handoff = documents.run(0, &open, "")["data"]["handoff"].as_str().expect("an id").to_owned();
    let claim = ["handoff", "claim", "--class", "specialist", "--worker", "w"];
    let claimed = |documents: &mut Documents| {
        let document = documents.run(0, &claim, "");
        Packet::read(document["data"]["packet"].as_str().expect("a packet"))
    };
    let first = claimed(documents);
    documents.run(8, &claim, "");
    documents.run(0, &["handoff", "renew", "--nonce", &first.nonce], "");
    documents.run(0, &["handoff", "release", "--nonce", &first.nonce], "");
    let second = claimed(documents);
    documents.run(0, &["handoff", "release", &handoff, "--revoke"], "");
    documents.run(3, &["handoff", "fail", "--reason", "crash", "--nonce", &second.nonce], "");
    let third = claimed(documents);
    documents.run(0, &["reply", "--ask"], &third.verdict("accept"));
    documents.run(0, &["reply", "--ask"], "nothing");
    documents.run(0, &["handoff", "complete"], &third.verdict("accept"));
    let job = crate::harness::JOB.replace("novel/pride/ch01", "novel/pride/failed");
    documents.project.write("failed.yaml", job);
    let job = documents.run(0, &["freeze", "failed.yaml", "--session", session], "");
    let job = job["data"]["job"].as_str().expect("an id").to_owned();
    let open = ["handoff", "open", &job, "--class", "specialist", "--session", session];
    let handoff = documents.run(0, &open, "")["data"]["handoff"].as_str().expect("an id").to_owned();
    let fourth = claimed(documents);
    documents.run(0, &["handoff", "fail", "--reason", "crash", "--nonce", &fourth.nonce], "");
    documents.run(0, &["handoff", "cancel", &handoff], "");
    worked(documents, session);
    carried(documents, session);
}

/// What a program answers, and what it does not.
fn worked(documents: &mut Documents, session: &str) {
    let job = crate::harness::JOB.replace("novel/pride/ch01", "novel/pride/worked");
    documents.project.write("worked.yaml", job);
    let job = documents.run(0, &["freeze", "worked.yaml", "--session", session], "");
    let job = job["data"]["job"].as_str().expect("an id").to_owned();
    documents.run(0, &["handoff", "open", &job, "--class", "specialist", "--session", session], "");
    crate::work::program(&documents.project, "answer.sh", "read_packet; answer accept");
    let work = ["work", "--class", "specialist", "--json", "--", "./answer.sh"];
    documents.all.push(documents.project.nf(&work).expect(0).json());
    documents.all.push(documents.project.nf(&work).expect(8).json());
}

/// What is carried away and back, all in one folder.
fn carried(documents: &mut Documents, session: &str) {
    let job = crate::harness::JOB.replace("novel/pride/ch01", "novel/pride/carried");
    documents.project.write("carried.yaml", job);
    let job = documents.run(0, &["freeze", "carried.yaml", "--session", session], "");
    let job = job["data"]["job"].as_str().expect("an id").to_owned();
    let open = ["handoff", "open", &job, "--class", "specialist", "--session", session];
    let handoff = documents.run(0, &open, "")["data"]["handoff"].as_str().expect("an id").to_owned();
    documents.run(0, &["export", &handoff, "--worker", "w", "--out", "export.json"], "");
    documents.run(0, &["export", &handoff], "");
    let worked = ["work", "--from", "export.json", "--out", "worked.json", "--json", "--", "./answer.sh"];
    documents.all.push(documents.project.nf(&worked).expect(0).json());
    let packet = documents.run(0, &["packet", "--from", "export.json"], "");
    let packet = Packet::read(packet["data"]["packet"].as_str().expect("a packet"));
    let reply = ["reply", "--from", "export.json", "--out", "result.json"];
    documents.run(0, &reply, &packet.verdict("accept"));
    documents.run(0, &["import", "result.json"], "");
    let delivery = ["event", "import", "github", "-", "--name", "workflow_run", "--delivery", "d"];
    documents.run(0, &delivery, crate::github::WORKFLOW);
}

#[test]
fn every_commands_document_is_what_its_schema_says() {
    let schemas = schemas();
    let documents = daily();
    let seen: BTreeSet<String> = documents.all.iter().map(|document| holds(&schemas, document)).collect();
    let lines: BTreeSet<String> = ["nf.log/1".to_owned()].into();
    let all: BTreeSet<String> = schemas.keys().cloned().collect();
    let missed: Vec<&String> = all.difference(&seen).filter(|name| !lines.contains(*name)).collect();
    assert_eq!(missed, Vec::<&String>::new(), "schemas that no document was held against");
}

#[test]
fn a_failed_commands_document_is_what_its_schema_says() {
    let schemas = schemas();
    let project = Project::new();
    let packet = project.ask();
    let mut documents = Documents { project, all: Vec::new() };
    documents.run(1, &["init"], "");
    documents.run(5, &["reply"], "nothing");
    documents.run(5, &["reply"], &packet.answer(&json!({})));
    documents.run(8, &["resume"], "");
    documents.run(8, &["consume", "--as", GATE], "");
    documents.run(1, &["show", "s-0000"], "");
    documents.run(1, &["freeze", "ch01.md"], "");
    let second = documents.project.start();
    documents.run(3, &["session", "move", &second, "created"], "");
    documents.run(2, &["run", "step", "--cursor", "x"], "");
    documents.run(2, &["list", "chapters"], "");
    documents.run(0, &["event", "put", "x.a", "--key", "k"], "");
    documents.run(4, &["event", "put", "x.b", "--key", "k"], "");
    for document in &documents.all {
        holds(&schemas, document);
        if document["ok"] == true {
            continue;
        }
        let error = &document["error"];
        for member in ["message", "fix", "kind"] {
            assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member} in {document}");
        }
    }
}

#[test]
fn log_is_json_lines_of_whole_records() {
    let schemas = schemas();
    let project = Project::new();
    project.ask();
    let ran = project.nf(&["log", "--json"]).expect(0);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert_eq!(lines, crate::expect::records(&project));
    for (index, line) in lines.iter().enumerate() {
        let found = check(&schemas["nf.log/1"], line).expect("a schema");
        assert!(found.is_empty(), "{found:?}\n{line:#}");
        assert_eq!(line["seq"], json!(index + 1));
    }
    assert_eq!(project.nf(&["log", "--json", "--limit", "1"]).expect(0).stdout.lines().count(), 1);
}

#[test]
fn the_schemas_refuse_what_no_command_prints() {
    let schemas = schemas();
    for (name, schema) in &schemas {
        let refuses = |document: &Value| !check(schema, document).expect("a schema").is_empty();
        assert!(refuses(&json!({})), "{name} allows an empty document");
        assert!(refuses(&json!([])), "{name} allows a list");
    }
    let mut started: Value = json!({"schema": "nf.start/1", "ok": "yes"});
    assert!(!check(&schemas["nf.start/1"], &started).expect("a schema").is_empty());
    started["ok"] = json!(true);
    started["data"] = json!({"session": 7});
    assert!(!check(&schemas["nf.start/1"], &started).expect("a schema").is_empty());
}
