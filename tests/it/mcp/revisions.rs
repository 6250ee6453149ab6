//! The five revisions of the protocol: what the server says in each is what its published schema allows,
//! and the published messages of the newest one are read. The schemas come from `NF_SUITES`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{GATE, Server, asked, modern};
use crate::harness::Project;

const HANDSHAKES: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const NEWEST: &str = "2026-07-28";

fn suite(revision: &str) -> Option<PathBuf> {
    match std::env::var_os("NF_SUITES") {
        Some(folder) => Some(Path::new(&folder).join("mcp").join(revision)),
        None => {
            crate::harness::skipped("NF_NEED_SUITES", "NF_SUITES names no folder");
            None
        }
    }
}

/// A revision's schema.
struct Published {
    revision: String,
    whole: Value,
    checked: usize,
}

impl Published {
    fn read(revision: &str) -> Option<Self> {
        let text = std::fs::read(suite(revision)?.join("schema.json")).expect("a schema");
        let whole = serde_json::from_slice(&text).expect("JSON");
        Some(Self { revision: revision.to_owned(), whole, checked: 0 })
    }

    fn definitions(&self) -> &'static str {
        if self.whole.get("$defs").is_some() { "$defs" } else { "definitions" }
    }

    #[track_caller]
    fn holds(&mut self, name: &str, value: &Value) {
        let definitions = self.definitions();
        assert!(self.whole[definitions].get(name).is_some(), "{}: no {name}", self.revision);
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("http://localhost/schema.json", self.whole.clone()).expect("a schema");
        let mut schemas = boon::Schemas::new();
        let place = format!("http://localhost/schema.json#/{definitions}/{name}");
        let index = compiler.compile(&place, &mut schemas).unwrap_or_else(|bad| panic!("{place}: {bad}"));
        let found = schemas.validate(value, index);
        assert!(found.is_ok(), "{} {name}: {}\n{value:#}", self.revision, found.expect_err("a fault"));
        self.checked += 1;
    }

    /// A whole answer, and what is in it.
    #[track_caller]
    fn answer(&mut self, kind: &str, answer: &Value) {
        self.holds("JSONRPCMessage", answer);
        match answer.get("result") {
            Some(result) => self.holds(kind, result),
            None => {
                let error =
                    if self.definitions() == "$defs" { "JSONRPCErrorResponse" } else { "JSONRPCError" };
                self.holds(error, answer);
                assert_eq!(kind, "error", "{answer}");
            }
        }
    }
}

/// Every sort of answer that the server gives; `ask` says how a request is made in this revision.
fn walk(server: &mut Server, published: &mut Published, ask: &dyn Fn(Value) -> Value) {
    let packet = asked(server);
    server.done("nf_reply", &json!({"text": packet.verdict("reject")}));
    server.done("nf_consume", &json!({"as": GATE}));
    let tools = server.request("tools/list", ask(json!({})));
    published.answer("ListToolsResult", &tools);
    for tool in tools["result"]["tools"].as_array().expect("tools") {
        published.holds("Tool", tool);
    }
    for (name, arguments) in [
        ("nf_status", json!({})),
        ("nf_packet", json!({"what": packet.job})),
        ("nf_start", json!({"resource": 7})),
        ("nf_show", json!({"id": "x-0000"})),
    ] {
        let called = server.request("tools/call", ask(json!({"name": name, "arguments": arguments})));
        published.answer("CallToolResult", &called);
    }
    let listed = server.request("resources/list", ask(json!({})));
    published.answer("ListResourcesResult", &listed);
    let uri = listed["result"]["resources"][0]["uri"].clone();
    assert!(uri.is_string(), "{listed}");
    published.answer("ReadResourceResult", &server.request("resources/read", ask(json!({"uri": uri}))));
    let templates = server.request("resources/templates/list", ask(json!({})));
    published.answer("ListResourceTemplatesResult", &templates);
    for (method, params) in [
        ("tools/call", json!({"name": "nf_nothing"})),
        ("tools/call", json!({"name": ["nf_status"]})),
        ("tools/list", json!({"cursor": "x"})),
        ("resources/read", json!({"uri": "nf://result/x-0000"})),
        ("resources/list", json!({"cursor": "x"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "x"})),
        ("logging/setLevel", json!({"level": "info"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
        ),
        ("nothing/here", json!({})),
    ] {
        let answer = server.request(method, ask(params.clone()));
        let code = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"));
        assert!([-32601, -32602, -32002].contains(&code), "{method} {params}: {answer}");
        published.answer("error", &answer);
    }
    // A call that takes over a second says how far it is, to whom asks.
    let held = lock_held(server);
    let mut params = json!({"name": "nf_run_step", "arguments": {"cursor": "x", "lock_timeout": "1500ms"}});
    params = ask(params);
    params["_meta"]["progressToken"] = "token-1".into();
    let busy = server.request("tools/call", params);
    held();
    published.answer("CallToolResult", &busy);
    assert_eq!(busy["result"]["structuredContent"]["error"]["kind"], "busy", "{busy}");
    assert_eq!(busy["result"]["structuredContent"]["error"]["code"], 75, "{busy}");
    assert!(!server.others.is_empty(), "it said nothing while it waited");
    for progress in std::mem::take(&mut server.others) {
        published.answer_is_progress(&progress);
    }
}

impl Published {
    #[track_caller]
    fn answer_is_progress(&mut self, message: &Value) {
        self.holds("JSONRPCMessage", message);
        self.holds("ProgressNotification", message);
        assert_eq!(message["params"]["progressToken"], "token-1", "{message}");
    }
}

/// Holds the store's lock until what is given back is called.
fn lock_held(server: &Server) -> impl FnOnce() + use<> {
    let folder = std::fs::read_link(format!("/proc/{}/cwd", server.child.id())).expect("a folder");
    let file = std::fs::File::open(folder.join(".novelforge/lock")).expect("a lock");
    fs2::FileExt::lock_exclusive(&file).expect("held");
    move || drop(file)
}

#[test]
fn what_is_said_after_each_handshake_is_what_its_schema_allows() {
    for revision in HANDSHAKES {
        let Some(mut published) = Published::read(revision) else { return };
        let project = Project::new();
        let mut server = Server::bare(project.command(&["mcp"]));
        let answer = server.request("ping", json!({}));
        published.answer("EmptyResult", &answer);
        let agreed = server.initialize(revision);
        published.answer("InitializeResult", &agreed);
        assert_eq!(agreed["result"]["protocolVersion"], *revision);
        walk(&mut server, &mut published, &|params| params);
        let answer = server.request("ping", json!({}));
        published.answer("EmptyResult", &answer);
        assert!(published.checked > 70, "{revision}: {}", published.checked);
        let (rest, status) = server.end();
        assert!(rest.is_empty() && status.success(), "{rest:?}");
    }
}

#[test]
fn what_is_said_without_a_handshake_is_what_the_newest_schema_allows() {
    let Some(mut published) = Published::read(NEWEST) else { return };
    let project = Project::new();
    let mut server = Server::bare(project.command(&["mcp"]));
    server.others.clear();
    let discovered = server.request("server/discover", modern(json!({})));
    published.answer("DiscoverResult", &discovered);
    let all: Vec<&str> = HANDSHAKES.iter().copied().chain([NEWEST]).collect();
    assert_eq!(discovered["result"]["supportedVersions"], json!(all), "{discovered}");
    // The helpers of `walk` call tools as the older revisions do: each request says its own.
    server.initialize("2025-11-25");
    walk(&mut server, &mut published, &modern);
    let called = server.request("tools/call", modern(json!({"name": "nf_status"})));
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    let mut other = modern(json!({"name": "nf_status"}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let refused = server.request("tools/call", other);
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    published.holds("UnsupportedProtocolVersionError", &refused);
    assert_eq!(refused["error"]["data"]["supported"], json!(all), "{refused}");
    // What the revision no longer has.
    assert_eq!(server.request("ping", modern(json!({})))["error"]["code"], -32601);
    assert!(published.checked > 70, "{}", published.checked);
}

#[test]
fn a_version_that_is_not_known_is_answered_with_one_that_is() {
    let project = Project::new();
    for asked in ["1999-01-01", "2025-12-31", NEWEST, "", "not a date"] {
        let mut server = Server::bare(project.command(&["mcp"]));
        let agreed = server.initialize(asked);
        assert_eq!(agreed["result"]["protocolVersion"], "2025-11-25", "{asked}: {agreed}");
        // Later answers are of the revision agreed on, whatever was asked for.
        let called = server.request("tools/call", json!({"name": "nf_status"}));
        assert!(called["result"].get("resultType").is_none(), "{asked}: {called}");
    }
    // Without a word on the version nothing is served.
    let mut server = Server::bare(project.command(&["mcp"]));
    let early = server
        .request("tools/call", json!({"name": "nf_start", "arguments": {"resource": "r", "task": "t"}}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    assert_eq!(crate::expect::records(&project).len(), 1);
    let half = json!({"name": "nf_status", "_meta": {"io.modelcontextprotocol/protocolVersion": NEWEST}});
    assert_eq!(server.request("tools/call", half)["error"]["code"], -32602);
}

#[test]
fn the_published_messages_of_the_newest_revision_are_read() {
    let (Some(folder), Some(mut published)) = (suite(NEWEST), Published::read(NEWEST)) else { return };
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let before = project.log();
    let (mut examples, mut requests) = (0, 0);
    for name in crate::examples::files_below(&folder.join("examples")) {
        let text = std::fs::read(folder.join("examples").join(&name)).expect("an example");
        let example: Value = serde_json::from_slice(&text).expect("JSON");
        published.holds(name.split('/').next().expect("a folder"), &example);
        examples += 1;
        if example.get("jsonrpc").is_none() {
            continue;
        }
        server.send(&example);
        if let (Some(id), Some(_)) = (example.get("id"), example.get("method")) {
            let answer = server.answer(id.clone());
            let code = answer["error"]["code"].as_i64();
            assert!(![Some(-32700), Some(-32600)].contains(&code), "{name}: {answer}");
            requests += 1;
        }
    }
    assert!(examples > 100 && requests >= 10, "{examples} examples, {requests} requests");
    assert!(before == project.log(), "none of them is a write");
    let (rest, status) = server.end();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
}

#[test]
fn the_one_revision_with_batches_answers_them_together() {
    let project = Project::new();
    let of = |params: Value| json!({"jsonrpc": "2.0", "method": "tools/call", "params": params});
    let call = |id: &str, name: &str| {
        let mut message = of(json!({"name": name}));
        message["id"] = id.into();
        message
    };
    let unasked = of(json!({"name": "nf_start", "arguments": {"resource": "r", "task": "t"}}));
    let batch = json!([call("a", "nf_status"), call("b", "nf_nothing"), unasked, 7, call("c", "nf_log")]);
    let mut server = Server::bare(project.command(&["mcp"]));
    server.initialize("2025-03-26");
    server.send(&batch);
    let answers = server.message().expect("a batch");
    let mut ids: Vec<String> =
        answers.as_array().expect("a batch").iter().map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["\"a\"", "\"b\"", "\"c\"", "null"], "{answers}");
    if let Some(mut published) = Published::read("2025-03-26") {
        let known: Vec<Value> = answers
            .as_array()
            .expect("a batch")
            .iter()
            .filter(|answer| answer.get("id").is_some())
            .cloned()
            .collect();
        published.holds("JSONRPCBatchResponse", &json!(known));
    }
    // A batch without a request is not answered, and an empty one is none.
    server.send(&json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
    server.send(&json!([]));
    assert_eq!(server.message().expect("an answer")["error"]["code"], -32600);
    let mut server = Server::begin(&project, &[]);
    server.send(&batch);
    assert_eq!(server.message().expect("an answer")["error"]["code"], -32600);
    let (rest, _) = server.end();
    assert!(rest.is_empty(), "nothing of it was run: {rest:?}");
    assert_eq!(crate::expect::records(&project).len(), 1);
}
