//! What a hostile or broken client sends. Every byte on standard output parses, nothing is executed that is
//! no request, and the server goes on.

use serde_json::{Value, json};

use super::Server;
use crate::expect::records;
use crate::harness::Project;

/// A call that writes, as a notification or with whatever else is wrong about it.
const START: &str =
    r#""method":"tools/call","params":{"name":"nf_start","arguments":{"resource":"r","task":"t"}}"#;

/// Lines that are no request, and whether an error answers them.
fn lines() -> Vec<(Vec<u8>, bool)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let mut lines: Vec<(Vec<u8>, bool)> = vec![
        (text("garbage"), true),
        (text("{"), true),
        (text("\"text\""), true),
        (text("null"), true),
        (text("[]"), true),
        (text("[[[]]]"), true),
        (text("{}"), true),
        (b"\xff\xfe{\x00".to_vec(), true),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}".to_vec(), true),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#), true),
        (text(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#), true),
        (text(r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#), true),
        (text(r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#), true),
        (text(&("[".repeat(100_000) + &"]".repeat(100_000))), true),
        (text(&("{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000))), true),
        (text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":null,{START}}}")), true),
        (text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1.5,{START}}}")), true),
        (text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{{}},{START}}}")), true),
        (text(&format!("{{\"jsonrpc\":\"1.0\",\"id\":\"v\",{START}}}")), true),
        (text(&format!("{{\"id\":\"v\",{START}}}")), true),
        (text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"v\",\"result\":{{}},{START}}}")), true),
        (text(r#"{"jsonrpc":"2.0","id":"v","method":7}"#), true),
        (text(r#"{"jsonrpc":"2.0","id":"v","method":"tools/call","params":[1]}"#), true),
        (text(r#"{"jsonrpc":"2.0","id":"v"}"#), true),
        (text(&format!("{{\"jsonrpc\":\"2.0\",{START}}}")), false),
        (text(r#"{"jsonrpc":"2.0","method":"notifications/nothing"}"#), false),
        (
            text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}"#),
            false,
        ),
        (text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#), false),
        (text(r#"{"jsonrpc":"2.0","method":"tools/call","params":7}"#), false),
        (text(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), false),
        (text(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#), false),
        (text(""), false),
        (text("   \t\r"), false),
    ];
    let mut long = text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
    long.resize(50_000_000, b'x');
    lines.push((long, true));
    lines
}

#[test]
fn what_is_no_request_is_an_error_or_nothing_and_never_executed() {
    let project = Project::new();
    for level in [None, Some("trace")] {
        let mut command = project.command(&["mcp"]);
        command.envs(level.map(|level| ("NF_LOG", level))).stderr(std::process::Stdio::null());
        let mut server = Server::bare(command);
        // Before the handshake and after it.
        for round in 0..2 {
            for (line, answered) in lines() {
                let start = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
                server.write(&line);
                server.write(b"\n");
                if answered {
                    let error = server.message().expect("an answer");
                    let code = error["error"]["code"].as_i64().unwrap_or_else(|| panic!("{start}: {error}"));
                    assert!([-32700, -32600, -32602].contains(&code), "{start}: {error}");
                }
                server.send(&json!({"jsonrpc": "2.0", "id": "alive", "method": "ping"}));
                let alive = server.message().expect("an answer");
                assert_eq!(alive, json!({"jsonrpc": "2.0", "id": "alive", "result": {}}), "{start}");
            }
            if round == 0 {
                server.initialize("2025-06-18");
            }
        }
        let resident = peak(&server);
        assert!(resident < 120 * 1024, "{resident} KiB for a line of 50 MB");
        server.done("nf_status", &json!({}));
        let (rest, status) = server.end();
        assert!(rest.is_empty() && status.success(), "{rest:?} {status}");
    }
    assert_eq!(records(&project).len(), 1, "nothing was executed");
}

/// The most that a server has had resident, in KiB.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_anything_runs() {
    let project = Project::new();
    let session = project.start();
    let mut server = Server::begin(&project, &[]);
    let before = project.log();
    let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
    for (name, arguments, near) in [
        ("nf_start", json!({"resourc": "r", "task": "t"}), "did you mean resource?"),
        ("nf_start", json!({"resource": "r", "task": "t", "--json": true}), "it has"),
        ("nf_start", json!({"resource": 7, "task": "t"}), "want a text, got a number"),
        ("nf_start", json!({"resource": null, "task": "t"}), "want a text, got null"),
        ("nf_start", json!({"resource": {"a": 1}, "task": "t"}), "want a text, got an object"),
        (
            "nf_start",
            json!({"resource": "r", "task": "t", "dry_run": "yes"}),
            "want true or false, got a text",
        ),
        ("nf_start", json!({"resource": "r", "task": "t", "dry_run": 1}), "want true or false"),
        ("nf_run_step", json!({"cursor": "c", "expect_version": -1}), "want a whole number"),
        ("nf_run_step", json!({"cursor": "c", "expect_version": 1.5}), "want a whole number"),
        ("nf_run_step", json!({"cursor": "c", "expect_version": "1"}), "want a whole number"),
        ("nf_checkpoint_save", json!({"boundary": "other", "artifact": "a=b"}), "want a list of texts"),
        ("nf_checkpoint_save", json!({"boundary": "other", "artifact": ["a=b", 7]}), "want a list of texts"),
        (
            "nf_event_put",
            json!({"type": "x.a", "key": "k", "payload": "@/etc/passwd"}),
            "want an object or a list",
        ),
        ("nf_event_put", json!({"type": "x.a", "key": "k", "payload": deep, "x": 1}), "it has"),
        ("nf_freeze", json!({}), "text is missing"),
        ("nf_freeze", json!({"file": "job.yaml"}), "it has"),
        ("nf_reply", json!({"text": ["x"]}), "want a text, got a list"),
    ] {
        let error = server.refused(name, &arguments, 2, "usage");
        let cause = error["cause"].as_str().unwrap_or_default();
        assert!(cause.contains(near), "{name} {arguments}: {error}");
        assert!(error["fix"].as_str().is_some_and(|fix| fix.contains("nothing was done")), "{error}");
    }
    // A value is never a flag, whatever it looks like.
    for text in ["--json", "-C/", "-n", "--", "-", "--session=x", "\u{0}", "\n", "../..", "\u{202e}x"] {
        let error = server.call("nf_run_step", &json!({"cursor": text, "session": session}))["error"].clone();
        assert_eq!((&error["code"], &error["kind"]), (&json!(2), &json!("usage")), "{text:?}: {error}");
        let shown = server.call("nf_show", &json!({"id": text}))["error"].clone();
        assert!([json!(1), json!(2)].contains(&shown["code"]), "{text:?}: {shown}");
    }
    for arguments in [json!("x"), json!([1]), json!(7)] {
        let answer = server.request("tools/call", json!({"name": "nf_status", "arguments": arguments}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    for params in
        [json!({}), json!({"name": 7}), json!({"arguments": {}}), json!({"name": "nf_status", "_meta": 7})]
    {
        assert_eq!(server.request("tools/call", params)["error"]["code"], -32602);
    }
    let long = "x".repeat(100_000);
    let unknown = server.request("tools/call", json!({"name": long}));
    assert!(unknown["error"]["code"] == -32602 && unknown.to_string().len() < 1000, "{unknown}");
    assert!(before == project.log(), "nothing was written");
}

#[test]
fn an_id_that_is_open_is_not_opened_twice() {
    let project = Project::new();
    project.start();
    let mut server = Server::begin(&project, &[]);
    let call = |cursor: &str| {
        let params = json!({"name": "nf_run_step", "arguments": {"cursor": cursor}});
        json!({"jsonrpc": "2.0", "id": "twin", "method": "tools/call", "params": params}).to_string()
    };
    let both: String = (0..50).map(|number| call(&format!("c{number}")) + "\n").collect();
    server.write(both.as_bytes());
    server.send(&json!({"jsonrpc": "2.0", "id": "last", "method": "ping"}));
    let (rest, _) = server.end();
    let refused = rest.iter().filter(|message| message["error"]["code"] == -32600).count();
    let done = rest.iter().filter(|message| message["id"] == "twin").count();
    assert_eq!(
        (done + refused, records(&project).len() - 2),
        (50, done),
        "each is answered, and run if it was not refused"
    );
    assert!(done >= 1, "{rest:?}");
}

#[test]
fn a_client_that_never_reads_is_not_served_for_ever() {
    let project = Project::new();
    project.start();
    let mut command = project.command(&["mcp"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("nf runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // The reader is gone: the server ends quietly, though its input stays open.
    drop(child.stdout.take());
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).expect("written");
    let status = child.wait().expect("nf ends");
    assert!(status.success(), "{status}");
}

#[test]
fn what_is_cancelled_before_it_is_begun_is_never_run() {
    let project = Project::new();
    let session = project.start();
    let mut server = Server::begin(&project, &[]);
    let lock = std::fs::File::open(project.at(".novelforge/lock")).expect("a lock");
    fs2::FileExt::lock_exclusive(&lock).expect("held");
    let step = |cursor: &str| json!({"cursor": cursor, "session": session, "lock_timeout": "15s"});
    let first = server.ask_tool("nf_run_step", &step("first"));
    // The first one waits for the lock; the second waits for the first.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let second = server.ask_tool("nf_run_step", &step("second"));
    let third = server.ask_tool("nf_run_step", &step("third"));
    let gone =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": second}});
    server.send(&gone);
    // Under its id nothing else is asked: what is still said of the first call would answer it.
    let fourth = json!({"name": "nf_run_step", "arguments": step("fourth")});
    server.send(&json!({"jsonrpc": "2.0", "id": second, "method": "tools/call", "params": fourth}));
    assert_eq!(server.request("ping", json!({}))["result"], json!({}), "the protocol goes on");
    assert_eq!(server.others.last().expect("a refusal")["error"]["code"], -32600, "{:?}", server.others);
    drop(lock);
    for id in [first, third] {
        let answer: Value = server.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let (rest, _) = server.end();
    assert!(rest.iter().all(|message| message["id"] != second), "a cancelled call is not answered: {rest:?}");
    let cursors: Vec<Value> =
        records(&project)[2..].iter().map(|record| record["events"][0]["cursor"].clone()).collect();
    assert_eq!(cursors, ["first", "third"]);
}
