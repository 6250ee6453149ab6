//! `nf mcp`: the commands as tools.

use serde_json::{Value, json};

use crate::expect::records;
use crate::harness::{JOB, Packet, Project};

mod client;
mod groups;
mod hostile;
mod many;
mod revisions;
mod same;
mod worker;

use client::{Server, document, modern};

const GATE: &str = "gate/ch01";

/// Start, freeze, packet by tools. Gives the packet.
fn asked(server: &mut Server) -> Packet {
    server.done("nf_start", &json!({"resource": "novel/pride", "task": "review"}));
    server.done("nf_freeze", &json!({"text": JOB}));
    let packet = server.done("nf_packet", &json!({"gate": GATE}));
    Packet::read(packet["packet"].as_str().expect("a packet"))
}

#[test]
fn the_daily_path_by_tools_is_the_one_by_commands() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let packet = asked(&mut server);
    let result = server.done("nf_reply", &json!({"text": packet.verdict("reject")}))["result"].clone();
    let receipt = server.done("nf_consume", &json!({"as": GATE}));
    assert_eq!((&receipt["application"], &receipt["source"]), (&json!("new"), &result), "{receipt}");
    assert_eq!(server.done("nf_consume", &json!({"as": GATE}))["application"], "already");
    let resumed = server.done("nf_resume", &json!({}));
    assert_eq!(resumed["gates"][GATE]["status"], "rejected", "{resumed}");
    // Tools and commands write the same records into one log.
    let words: Vec<Value> = records(&project).iter().map(|record| record["cmd"].clone()).collect();
    assert_eq!(words, ["init", "start", "freeze", "packet", "reply", "consume", "resume"]);
    project.nf(&["verify"]).expect(0);
    let (rest, status) = server.end();
    assert!(rest.is_empty() && status.success(), "{rest:?} {status}");
}

/// An agent that speaks to the server is a worker like any other: of its own family, where the job's terms
/// let it.
#[test]
fn an_agent_is_a_worker_by_tools_where_the_terms_of_the_job_let_it() {
    let project = Project::new();
    let mut manager = Server::begin(&project, &[]);
    manager.done("nf_start", &json!({"resource": "novel/pride", "task": "review"}));
    let mut worker = Server::begin(&project, &["--tools", "nf_handoff_claim,nf_handoff_complete"]);
    let claim = json!({"class": "specialist", "worker": "agent-1", "family": "mcp_worker"});
    for (terms, lets) in [("families: [human]", false), ("families: [mcp_worker]", true)] {
        let job = JOB.replace("min_grade: declared", terms).replace("novel/pride/ch01", &terms[11..14]);
        let job = manager.done("nf_freeze", &json!({"text": job}))["job"].clone();
        let open = json!({"job": job, "class": "specialist", "gate": GATE});
        let handoff = manager.done("nf_handoff_open", &open)["handoff"].clone();
        if !lets {
            worker.refused("nf_handoff_claim", &claim, 8, "pending");
            let mut named = claim.clone();
            named["handoff"] = handoff;
            worker.refused("nf_handoff_claim", &named, 6, "execution_unavailable");
            continue;
        }
        let claimed = worker.done("nf_handoff_claim", &claim);
        let packet = Packet::read(claimed["packet"].as_str().expect("a packet"));
        let bound = worker.done("nf_handoff_complete", &json!({"text": packet.verdict("reject")}));
        assert_eq!((&bound["grade"], &bound["gate"]), (&json!("declared"), &json!(GATE)));
        let shown = manager.done("nf_show", &json!({"id": bound["result"]}));
        let seen = &shown["object"]["provenance"];
        assert_eq!((&seen["family"], &seen["transport"]), (&json!("mcp_worker"), &json!("worker")));
        let session = manager.done("nf_show", &json!({"id": seen["worker_session"]}));
        assert_eq!(session["object"]["host"], "mcp");
        assert_eq!(manager.done("nf_consume", &json!({"as": GATE}))["outcome"]["value"], "reject");
    }
    project.nf(&["verify"]).expect(0);
}

#[test]
fn it_ends_at_the_end_of_its_input_and_answers_all_that_came_before() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let start = json!({"resource": "novel/pride", "task": "review"});
    let wanted: Vec<i64> = (0..40).map(|_| server.ask_tool("nf_start", &start)).collect();
    let (rest, status) = server.end();
    assert!(status.success(), "{status}");
    let mut seen: Vec<i64> = rest.iter().filter_map(|message| message["id"].as_i64()).collect();
    seen.sort_unstable();
    assert_eq!(seen, wanted);
    assert_eq!(records(&project).len(), 41);
    // The last line may lack its end, and input that ends at once is no fault.
    let mut command = project.command(&["mcp"]);
    command.arg("--json");
    let mut server = Server::bare(command);
    server.write(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
    let (rest, status) = server.end();
    assert!(status.success() && rest == [json!({"jsonrpc": "2.0", "id": "a", "result": {}})], "{rest:?}");
    let ran = project.nf_with(&["mcp"], b"").expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn what_other_processes_write_is_seen_at_once() {
    let project = Project::empty();
    let mut server = Server::begin(&project, &[]);
    // Even the store may come later.
    server.refused("nf_status", &json!({}), 1, "no_store");
    server.refused("nf_start", &json!({"resource": "novel/pride", "task": "review"}), 1, "no_store");
    let project = project.furnished();
    for number in 1..4 {
        let session = project.start();
        let seen = server.done("nf_list", &json!({"kind": "session"}));
        assert_eq!(seen["items"].as_array().map(Vec::len), Some(number));
        assert_eq!(seen["items"][0]["id"], session);
        // And a tool's write by a command.
        let moved = server.call("nf_session_move", &json!({"session": session, "to": "idle"}));
        assert_eq!(moved["ok"], true, "{moved}");
        assert_eq!(
            project.nf(&["show", &session, "--json"]).expect(0).json()["data"]["object"]["status"],
            "idle"
        );
    }
}

#[test]
fn only_what_is_asked_for_is_served() {
    let project = Project::new();
    let names = |server: &mut Server| -> Vec<String> {
        let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
        let tools = tools.as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let mut all = Server::begin(&project, &[]);
    let served = names(&mut all);
    assert_eq!(served, names(&mut all), "the order is fixed");
    let mut reading = Server::begin(&project, &["--read-only"]);
    let read = names(&mut reading);
    assert!(read.len() > 5 && read.iter().all(|name| served.contains(name)), "{read:?}");
    let before = project.log();
    for name in served.iter().filter(|name| !read.contains(name)) {
        let refused =
            reading.request("tools/call", json!({"name": name, "arguments": {"resource": "r", "task": "t"}}));
        assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
    }
    assert!(before == project.log());
    // A worker that may see nothing but its own work gets no results as resources either.
    let worker = "nf_handoff_claim,nf_handoff_complete";
    let mut worker = Server::begin(&project, &["--tools", worker]);
    assert_eq!(names(&mut worker), ["nf_handoff_claim", "nf_handoff_complete"]);
    for method in ["resources/list", "resources/templates/list", "resources/read"] {
        let answer = worker.request(method, json!({"uri": "nf://result/x-0000"}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    for (arguments, near) in [
        (&["--tools", "nf_statu"][..], "did you mean nf_status?"),
        (&["--tools", "nf_status,init"], "the tools are nf_start"),
        (&["--tools", "nf_start", "--read-only"], "read-only"),
        (&["--op", "k"], "--op belongs to one call"),
        (&["--nonce", "n"], "--nonce belongs to one call"),
        (&["--expect-version", "1"], "--expect-version belongs to one call"),
    ] {
        let ran = project.nf(&[&["mcp"], arguments].concat()).expect(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(near), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("fix:"), "{}", ran.stderr);
    }
}

#[test]
fn what_is_said_of_a_tool_is_what_it_does() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    for tool in tools.as_array().expect("tools") {
        let (name, hints) = (&tool["name"], &tool["annotations"]);
        let reads = hints["readOnlyHint"].as_bool().expect("a hint");
        assert_eq!(
            (&hints["destructiveHint"], &hints["openWorldHint"]),
            (&json!(false), &json!(false)),
            "{name}"
        );
        assert!(hints["idempotentHint"].is_boolean(), "{name}");
        let said = tool["description"].as_str().expect("a description");
        assert_eq!(said.contains("grants no authority"), !reads, "{name}: {said}");
        assert_eq!(said.contains("Reads only"), reads, "{name}: {said}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name} {schema}");
            nf::rules::schema::check(&tool[schema], &json!({}))
                .unwrap_or_else(|bad| panic!("{name}: {bad:?}"));
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().expect("properties") {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 3), "{name} {argument}");
        }
        assert_eq!(tool["inputSchema"]["properties"].get("op").is_some(), !reads, "{name}");
    }
    let text = tools.to_string();
    assert!(!text.contains("\"format\":\"uint"), "a format that no client knows");
    let size = text.len();
    assert!(size < 300_000, "an agent reads them all: {size} bytes");
}

#[test]
fn results_and_receipts_are_resources_with_pages() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let empty = server.request("resources/list", json!({}))["result"].clone();
    assert_eq!((&empty["resources"], &empty["nextCursor"]), (&json!([]), &json!("receipt")), "{empty}");
    let packet = asked(&mut server);
    let result = server.done("nf_reply", &json!({"text": packet.verdict("reject")}))["result"].clone();
    let receipt = server.done("nf_consume", &json!({"as": GATE}))["receipt"].clone();
    for number in 0..60 {
        server.done("nf_consume", &json!({"as": format!("desk/{number}"), "source": result}));
    }
    let (mut cursor, mut uris, mut pages) = (None, Vec::new(), 0);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
        let page = server.request("resources/list", params)["result"].clone();
        let found = page["resources"].as_array().expect("resources").clone();
        uris.extend(found.iter().map(|resource| resource["uri"].as_str().expect("an address").to_owned()));
        pages += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!((uris.len(), pages), (62, 3), "{uris:?}");
    let mut unique = uris.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 62);
    for (kind, id) in [("result", &result), ("receipt", &receipt)] {
        let uri = format!("nf://{kind}/{}", id.as_str().expect("an id"));
        assert!(uris.contains(&uri), "{uri}");
        let read = server.request("resources/read", json!({"uri": uri}))["result"]["contents"][0].clone();
        let text: Value = serde_json::from_str(read["text"].as_str().expect("a text")).expect("JSON");
        let shown = project.nf(&["show", id.as_str().expect("an id"), "--json"]).expect(0).json();
        assert_eq!(text, shown["data"], "{uri}");
    }
    for bad in ["job/1", "result/x", "1", "result/-1", ""] {
        let answer = server.request("resources/list", json!({"cursor": bad}));
        assert_eq!(answer["error"]["code"], -32602, "{bad}: {answer}");
    }
    for bad in [
        "nf://result/x-00000000",
        "nf://job/j-0000",
        "nf://result/t-0000",
        "file:///etc/passwd",
        "nf://result/x-../../x",
    ] {
        assert_eq!(server.request("resources/read", json!({"uri": bad}))["error"]["code"], -32002, "{bad}");
        let modern = server.request("resources/read", modern(json!({"uri": bad})));
        assert_eq!(modern["error"]["code"], -32602, "{bad}: {modern}");
    }
    let templates =
        server.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates[0]["uriTemplate"], "nf://result/{id}");
    assert_eq!(templates[1]["uriTemplate"], "nf://receipt/{id}");
}

#[test]
fn a_session_that_the_server_was_started_with_is_every_calls() {
    let project = Project::new();
    let (first, second) = (project.start(), project.start());
    let mut server = Server::begin(&project, &["--session", &first]);
    assert_eq!(server.done("nf_run_step", &json!({"cursor": "ch01"}))["session"], first);
    assert_eq!(server.done("nf_run_step", &json!({"cursor": "ch02", "session": second}))["session"], second);
    // A key in the environment would make every call the same one: it counts for commands only.
    let mut command = project.command(&["mcp", "--session", &first, "--dry-run"]);
    command.env("NF_OP", "key-1");
    let mut server = Server::bare(command);
    server.initialize("2025-11-25");
    let before = project.log();
    let planned = server.call("nf_run_step", &json!({"cursor": "ch03"}));
    assert_eq!(planned["planned"][0]["type"], "run.stepped", "{planned}");
    assert!(before == project.log() && planned.get("record").is_none(), "{planned}");
}

#[test]
fn a_file_of_the_callers_is_never_opened() {
    let project = Project::new();
    project.write("payload.json", "{\"secret\": 1}");
    let mut server = Server::begin(&project, &[]);
    server.done("nf_start", &json!({"resource": "novel/pride", "task": "review"}));
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    for tool in tools.as_array().expect("tools") {
        for left in ["out", "file", "follow"] {
            assert!(tool["inputSchema"]["properties"].get(left).is_none(), "{}: {left}", tool["name"]);
        }
    }
    let put = json!({"type": "x.a", "key": "k", "payload": "payload.json"});
    server.refused("nf_event_put", &put, 2, "usage");
    let plan = |expect: &str| json!({"key": "k", "path": "a.md", "expect": expect});
    let outside = Project::new().at("ch01.md").display().to_string();
    for path in ["../../etc/passwd", "/etc/passwd", ".novelforge/store.json", outside.as_str()] {
        server.refused("nf_effect_plan", &plan(path), 1, "bad_input");
    }
    // A file of the project is named and not given.
    server.done("nf_effect_plan", &plan("ch01.md"));
}
