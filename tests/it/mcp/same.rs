//! One operation behind both: for every tool, what the command line answers is what the tool answers. Each
//! case runs as a command in one project and as a tool in its twin.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Server;
use crate::expect::with;
use crate::faults::tools::twin;
use crate::harness::Project;
use crate::ops::table::{
    Answered, Asked, Claimed, Empty, Frozen, GATE, Idle, Planned, Queued, Scene, Stage, Started, Told,
    WRITERS, Written, scene_in,
};

/// What the positions of a command are called as arguments of its tool.
const POSITIONS: &[(&str, &[&str])] = &[
    ("freeze", &["text"]),
    ("packet", &["what"]),
    ("reply", &["text"]),
    ("consume", &["source"]),
    ("resume", &["session"]),
    ("show", &["id"]),
    ("list", &["kind"]),
    ("log", &["id"]),
    ("validate", &["result"]),
    ("route", &["job"]),
    ("session move", &["session", "to"]),
    ("capability declare", &["name"]),
    ("event put", &["type"]),
    ("effect check", &["key"]),
    ("effect done", &["key"]),
    ("effect clear", &["key"]),
    ("handoff open", &["job"]),
    ("handoff claim", &["handoff"]),
    ("handoff renew", &["attempt"]),
    ("handoff release", &["attempt"]),
    ("handoff fail", &["attempt"]),
    ("handoff complete", &["text"]),
    ("handoff cancel", &["handoff"]),
    ("contract check", &["text"]),
];

/// More that is answered, besides the writers of the table.
const DONE: &[(Stage, &[&str])] = &[
    (Answered, &["status"]),
    (Started, &["status", "--session", "S"]),
    (Answered, &["show", "S"]),
    (Answered, &["list", "job", "--limit", "1"]),
    (Answered, &["list", "result", "--state", "valid"]),
    (Asked, &["log", "--limit", "3"]),
    (Asked, &["log", "S"]),
    (Answered, &["validate"]),
    (Answered, &["verify"]),
    (Frozen, &["route"]),
    (Asked, &["reply", "-", "--ask"]),
    (Planned, &["effect", "check", "settle"]),
    (Empty, &["contract", "list"]),
    (Empty, &["contract", "check", "pack.yaml"]),
    (Queued, &["handoff", "claim", "--class", "semantic_reviewer", "--worker", "ci-7", "--ttl", "20m"]),
    (
        Started,
        &[
            "handoff",
            "open",
            "--class",
            "specialist",
            "--gate",
            "research/ch02",
            "--priority",
            "3",
            "--instructions",
            "task.md",
            "--returns",
            "shape.yaml",
            "--artifact",
            "chapter=ch01.md",
        ],
    ),
    (
        Started,
        &["checkpoint", "save", "--boundary", "other", "--artifact", "a=ch01.md", "--artifact", "b=canon.md"],
    ),
    (Asked, &["reply", "-", "-n"]),
    (Frozen, &["handoff", "open", "--class", "specialist", "--op", "k", "--expect-version", "2"]),
    (Started, &["event", "put", "x.a", "--key", "k", "--payload", "[1, {\"two\": null}]"]),
];

/// What is refused, or not content: the code is whatever the command line says.
const REFUSED: &[(Stage, &[&str])] = &[
    (Empty, &["start", "--resource", "a b", "--task", "review"]),
    (Empty, &["start"]),
    (Empty, &["freeze", "-"]),
    (Empty, &["packet"]),
    (Started, &["packet", "j-0000"]),
    (Asked, &["packet", "--for", "somebody"]),
    (Empty, &["reply", "-"]),
    (Asked, &["consume", "--as", GATE]),
    (Asked, &["consume"]),
    (Answered, &["consume", "--as", GATE, "--exit-verdict"]),
    (Asked, &["resume"]),
    (Started, &["resume", "s-0000"]),
    (Started, &["status", "--session", "s-0000"]),
    (Started, &["show", "x-0000"]),
    (Started, &["show"]),
    (Started, &["list", "chapters"]),
    (Started, &["list", "job", "--limit", "0"]),
    (Started, &["log", "nothing"]),
    (Started, &["validate", "x-0000"]),
    (Started, &["verify", "--at", "9:0000000000000000"]),
    (Started, &["verify", "--at", "x"]),
    (Empty, &["session", "new", "--resource", "r", "--task", "t", "--role", "king"]),
    (Started, &["session", "move", "S", "created"]),
    (Started, &["session", "move", "S", "idle", "--expect-version", "99"]),
    (Started, &["run", "step", "--cursor", "../x"]),
    (Idle, &["run", "step", "--cursor", "x"]),
    (Idle, &["run", "finish", "--status", "completed"]),
    (Started, &["checkpoint", "save", "--boundary", "other", "--artifact", "a=nothing.md"]),
    (Started, &["checkpoint", "save", "--boundary", "nowhere"]),
    (Started, &["route"]),
    (Started, &["capability", "declare", "x"]),
    (Told, &["event", "put", "x.other", "--key", "k-0"]),
    (Empty, &["event", "put", "x.a", "--key", "k", "--payload", "{\"canon_write\": true}"]),
    (Started, &["effect", "plan", "--key", "k", "--path", "../a.md", "--expect", "ch01.md"]),
    (Started, &["effect", "check", "nothing"]),
    (Planned, &["effect", "done", "settle"]),
    (Written, &["effect", "clear", "settle", "--reason", " "]),
    (Frozen, &["handoff", "open", "--class", "king"]),
    (Frozen, &["handoff", "open", "--class", "specialist", "--priority", "12"]),
    (Started, &["handoff", "claim", "--class", "specialist", "--worker", "w"]),
    (Claimed, &["handoff", "renew", "--nonce", "nothing"]),
    (Claimed, &["handoff", "release", "--nonce", "nothing"]),
    (Claimed, &["handoff", "fail", "--reason", "a b", "--nonce", "N"]),
    (Started, &["handoff", "complete", "-"]),
    (Started, &["handoff", "cancel", "h-0000"]),
    (Empty, &["contract", "check", "-"]),
    (Empty, &["contract", "list", "--run"]),
];

/// Cases of the writers' table whose commands are not served, by their first words.
fn is_served(command: &[&str]) -> bool {
    !["effect run", "capability probe", "export", "import", "event import", "work"]
        .iter()
        .any(|left| command.join(" ").starts_with(left))
}

/// The tools of a server by the words of their commands.
fn tools(server: &mut Server) -> BTreeMap<String, Value> {
    let answer = server.request("tools/list", json!({}));
    let all = answer["result"]["tools"].as_array().expect("tools").clone();
    all.into_iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool)).collect()
}

/// The tool of a command line, and the arguments that say the same.
fn translated(
    tools: &BTreeMap<String, Value>,
    project: &Project,
    line: &[&str],
    input: &str,
) -> (String, Map<String, Value>) {
    let two = line.len() > 1 && tools.contains_key(&format!("nf_{}_{}", line[0], line[1]));
    let words = &line[..if two { 2 } else { 1 }];
    let name = format!("nf_{}", words.join("_"));
    let properties = &tools.get(&name).unwrap_or_else(|| panic!("{name}"))["inputSchema"]["properties"];
    let command = words.join(" ");
    let positions = POSITIONS.iter().find(|(known, _)| *known == command).map_or(&[][..], |(_, names)| names);
    let (mut positions, mut arguments) = (positions.iter(), Map::new());
    let text = |path: &str| if path == "-" { input.to_owned() } else { project.read(path) };
    let mut rest = line[words.len()..].iter();
    while let Some(word) = rest.next() {
        let flag = match *word {
            "-n" => Some("dry_run".to_owned()),
            word => word.strip_prefix("--").map(|flag| flag.replace('-', "_")),
        };
        let Some(flag) = flag else {
            let position = positions.next().unwrap_or_else(|| panic!("{line:?}: {word}"));
            let value = if *position == "text" { text(word) } else { (*word).to_owned() };
            arguments.insert((*position).to_owned(), value.into());
            continue;
        };
        let mut value = || rest.next().unwrap_or_else(|| panic!("{line:?}: no value")).to_string();
        match properties[&flag]["type"].as_str() {
            Some("boolean")
                if flag == "dry_run"
                    || properties[&flag].get("default").is_none() && !required(&tools[&name], &flag) =>
            {
                arguments.insert(flag, true.into());
            }
            Some("boolean") => drop(arguments.insert(flag, (value() == "true").into())),
            Some("integer") => drop(arguments.insert(flag, value().parse::<u64>().expect("a number").into())),
            Some("array") => {
                let list = arguments.entry(flag).or_insert_with(|| json!([]));
                list.as_array_mut().expect("a list").push(value().into());
            }
            Some(_) if ["instructions", "returns"].contains(&flag.as_str()) => {
                let given = text(&value());
                arguments.insert(flag, given.into());
            }
            Some(_) => drop(arguments.insert(flag, value().into())),
            None if properties[&flag]["type"].is_array() => {
                let given = serde_json::from_str(&value()).expect("JSON");
                arguments.insert(flag, given);
            }
            None => drop(arguments.insert(flag, Value::Null)),
        }
    }
    // A command reads standard input where it is given no file.
    if properties.get("text").is_some() {
        arguments.entry("text").or_insert_with(|| input.into());
    }
    (name, arguments)
}

fn required(tool: &Value, name: &str) -> bool {
    tool["inputSchema"]["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

/// A document in which what is new, and so never the same twice, is called by what it is: ids, hashes,
/// secrets and times that the log does not hold.
fn plain(document: &Value, log: &str) -> Value {
    let text = document.to_string();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':' || c == '.';
    let mut out = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(&named(word, log));
        let skip = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..skip]);
        rest = &after[skip..];
    }
    serde_json::from_str(&out).expect("JSON")
}

fn named(word: &str, log: &str) -> String {
    let bare = word.trim_end_matches(['.', ':']);
    let is_new = bare.len() > 9 && !log.contains(bare);
    let is_base32 = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
    let is_id = bare.len() == 14 && bare.as_bytes()[1] == b'-' && is_base32(&bare[2..]);
    let is_time = bare.len() >= 20 && bare.starts_with("20") && bare.contains('T');
    let has_digits = bare.chars().any(|c| c.is_ascii_digit());
    let is_hash = bare.len() >= 16 && is_base32(bare) && (has_digits || bare.len() == 26);
    match is_new {
        true if is_id => word.replace(bare, "ID"),
        true if is_time => word.replace(bare, "TIME"),
        true if is_hash => word.replace(bare, "HASH"),
        _ => word.to_owned(),
    }
}

fn furnished(stage: Stage) -> Scene {
    let scene = scene_in(Project::in_memory().furnished(), stage);
    scene.project.write("task.md", "List the flowers.\n");
    scene.project.write("shape.yaml", "type: object\n");
    scene.project.write("pack.yaml", "id: a\nversion: 1\nkind: k\noutput: {type: object}\n");
    scene
}

#[test]
fn every_tool_answers_as_its_command_does() {
    let (mut done, mut refused, mut served) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut known = None;
    let mut scenes: Vec<(Stage, Scene)> = Vec::new();
    let writers = WRITERS.iter().filter(|(_, command)| is_served(command));
    let cases = writers.chain(DONE).map(|case| (case, true)).chain(REFUSED.iter().map(|case| (case, false)));
    for ((stage, command), content) in cases {
        if scenes.iter().all(|(known, _)| known != stage) {
            scenes.push((*stage, furnished(*stage)));
        }
        let scene = &scenes.iter().find(|(known, _)| known == stage).expect("a scene").1;
        let line = scene.arguments(command, &[]);
        let (by_command, twin) = (twin(&scene.project), twin(&scene.project));
        let log = String::from_utf8(twin.log()).expect("UTF-8");
        let input = match (content, &scene.packet) {
            (true, Some(packet)) => packet.verdict("reject"),
            _ => "nothing of the sort".to_owned(),
        };
        let ran = by_command.nf_with(&with(&line, &["--json"]), input.as_bytes());
        let mut wanted = match command[0] {
            // JSON Lines in one document.
            "log" if ran.code == 0 => {
                let records: Vec<Value> =
                    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
                json!({"schema": "nf.log/1", "ok": true, "data": {"records": records}})
            }
            _ => ran.json(),
        };
        let mut server = Server::begin(&twin, &[]);
        let tools = known.get_or_insert_with(|| tools(&mut server));
        served.extend(tools.keys().cloned());
        let (name, arguments) = translated(tools, &twin, &line, &input);
        let mut got = server.call(&name, &arguments.clone().into());
        assert_eq!(got["ok"], content, "{command:?} {arguments:?}: {got:#}");
        assert_eq!(ran.code == 0, content, "{command:?}: {}{}", ran.stdout, ran.stderr);
        if content {
            done.insert(name.clone());
            let schema = &tools[&name]["outputSchema"];
            let found =
                nf::rules::schema::check(schema, &got).unwrap_or_else(|bad| panic!("{name}: {bad:?}"));
            assert!(found.is_empty(), "{name}: {found:?}\n{got:#}");
        } else {
            assert_eq!(got["error"]["code"], ran.code, "{command:?}: {got}");
            refused.insert(name.clone());
            // The usage that the parser shows repeats the flags that were given.
            if let Some(cause) = wanted["error"]["cause"].as_str().map(|cause| cause.replace(" --json", "")) {
                wanted["error"]["cause"] = cause.into();
            }
            // What a tool's caller may not write at all never comes to the command: the code and kind are the
            // same, and the words are about arguments.
            if got["error"]["fix"].as_str().is_some_and(|fix| fix.contains("inputSchema")) {
                assert_eq!(
                    (&got["error"]["kind"], &wanted["error"]["kind"]),
                    (&json!("usage"), &json!("usage"))
                );
                continue;
            }
        }
        wanted = plain(&wanted, &log);
        got = plain(&got, &log);
        assert_eq!(got, wanted, "{command:?} as {name} {arguments:?}");
    }
    assert_eq!(done, served, "every tool has a case that it does");
    let without: Vec<&String> = served.difference(&refused).collect();
    assert!(without.is_empty(), "every tool has a case that it refuses: {without:?}");
}

#[test]
fn every_command_is_served_or_said_not_to_be() {
    let project = Project::new();
    let mut server = Server::begin(&project, &[]);
    let tools = tools(&mut server);
    let doc = std::fs::read_to_string(crate::examples::repository("docs/mcp.md")).expect("a document");
    fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let words = format!("{words} {}", inner.get_name()).trim().to_owned();
            match inner.has_subcommands() {
                true => leaves(inner, &words, found),
                false if !inner.is_hide_set() => found.push(words),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    leaves(&nf::cli::command(), "", &mut found);
    for command in found {
        let tool = format!("nf_{}", command.replace(' ', "_"));
        let is_said = doc.contains(&format!("| `{command}` |"));
        assert_ne!(tools.contains_key(&tool), is_said, "{command}: served, or in the table of docs/mcp.md");
        assert!(is_said || doc.contains(&format!("`{tool}`")), "{tool} is in docs/mcp.md");
    }
}
