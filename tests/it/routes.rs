//! Capabilities and routes through the binary: who may answer a job, what keeps others back, what is
//! evidence.

use serde_json::{Value, json};

use crate::expect::{answer, done, events_of, failed, names, recorded, records, refused, shown, silent};
use crate::harness::{JOB, Packet, Project};

pub const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// A declaration that meets every demand.
pub const DECLARE: &[&str] = &[
    "capability",
    "declare",
    "house-model",
    "--family",
    "local_model",
    "--permission-class",
    "diagnostic",
    "--cost",
    "free",
    "--interactive",
    "false",
    "--executes-model",
    "true",
    "--isolated",
    "true",
];

/// A declaration with some options put in place of those of [`DECLARE`], or added.
pub fn declared<'a>(name: &'a str, family: &'a str, changes: &[&'a str]) -> Vec<&'a str> {
    let mut words = DECLARE.to_vec();
    words[2] = name;
    words[4] = family;
    for change in changes.chunks(2) {
        match words.iter().position(|word| *word == change[0]) {
            Some(at) => words[at + 1] = change[1],
            None => words.extend(change),
        }
    }
    words
}

/// A project with a frozen job under these terms.
fn frozen(terms: &str) -> Project {
    let project = Project::new();
    project.write("job.yaml", JOB.replace("{independent: true, min_grade: declared}", terms));
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    project
}

pub fn families(data: &Value, eligible: bool) -> Vec<String> {
    let routes = data["routes"].as_array().expect("routes").iter();
    let kept = routes.filter(|route| route["eligible"] == json!(eligible));
    kept.map(|route| route["family"].as_str().expect("a family").to_owned()).collect()
}

pub fn obstacles(data: &Value, family: &str) -> Vec<Value> {
    let routes = data["routes"].as_array().expect("routes");
    let route = routes.iter().find(|route| route["family"] == family).expect("the family");
    let reasons = route["reasons"].as_array().cloned().unwrap_or_default();
    reasons.iter().map(|reason| reason["obstacle"].clone()).collect()
}

#[test]
fn all_seven_families_are_listed_and_become_eligible_by_evidence() {
    let project = frozen("{independent: true}");
    let bare = silent(&project, &["route"], b"");
    assert_eq!(families(&bare, true), ["peer_chat", "human"]);
    let proved = ["local_agent", "provider_api", "local_model", "mcp_worker", "service_job"];
    assert_eq!(families(&bare, false), proved);
    for family in proved {
        assert_eq!(obstacles(&bare, family), ["evidence"]);
        done(&project, &declared(&format!("a-{family}"), family, &[]));
    }
    let all = silent(&project, &["route"], b"");
    assert_eq!(families(&all, true).len(), 7);
    let text = project.nf(&["route"]).expect(0);
    assert_eq!(text.stdout.lines().count(), 7, "{}", text.stdout);
    for line in ["1 peer_chat    eligible", "3 local_agent  eligible by a-local_agent"] {
        assert!(text.stdout.lines().any(|found| found == line), "{line} in {}", text.stdout);
    }
    assert!(text.stderr.contains("next: nf packet j-"), "{}", text.stderr);
}

#[test]
fn each_demand_that_is_not_met_is_named() {
    for (terms, changes, obstacle) in [
        ("{families: [human, local_model]}", &["--available", "false"][..], "evidence"),
        ("{families: [human]}", &[], "permission"),
        ("{independent: true}", &["--isolated", "false"], "independence"),
        ("{interactive: false}", &["--interactive", "true"], "interaction"),
        ("{independent: true}", &["--executes-model", "false"], "model_execution"),
        ("{cost: [free, human]}", &["--cost", "metered"], "cost"),
        ("{locality: local}", &[], "locality"),
        ("{models: [m1]}", &["--model", "m2"], "models"),
    ] {
        let project = frozen(terms);
        done(&project, &declared("house-model", "local_model", changes));
        let routed = project.nf(&["route", "--json"]).json();
        let data = if routed["ok"] == true { &routed["data"] } else { &routed["error"]["details"] };
        assert_eq!(obstacles(data, "local_model"), [obstacle], "{terms} {changes:?}");
        done(&project, &declared("house-model", "local_model", &["--locality", "local", "--model", "m1"]));
        let routed = project.nf(&["route", "--json"]).json();
        let data = if routed["ok"] == true { &routed["data"] } else { &routed["error"]["details"] };
        let barred = if obstacle == "permission" { vec![json!("permission")] } else { vec![] };
        assert_eq!(obstacles(data, "local_model"), barred, "{terms}: the newest evidence counts");
    }
}

#[test]
fn with_nothing_eligible_every_reason_is_told_and_only_a_gate_moves() {
    let project = frozen("{independent: true, interactive: false}");
    let error = refused(&project, &["route"], 6, "execution_unavailable");
    assert_eq!(families(&error["details"], false).len(), 7);
    names(
        &error["cause"],
        &["peer_chat: interaction", "service_job: evidence", "no local_agent is declared"],
    );
    let plain = project.nf(&["route"]).expect(6);
    assert_eq!(plain.stdout, "");
    let session = done(&project, &["list", "session"])["items"][0].clone();
    refused(&project, &["route", "--gate", GATE, "-n"], 6, "execution_unavailable");
    recorded(&project, &["route", "--gate", GATE, "--op", "key-1"], b"", 6, "execution_unavailable");
    let moved = events_of(&project, "gate.moved");
    assert_eq!(
        (moved.len(), &moved[0]["to"], &moved[0]["gate"]),
        (1, &json!("semantic_pending"), &json!(GATE))
    );
    assert_eq!(done(&project, &["list", "session"])["items"][0], session, "the session is unchanged");
    refused(&project, &["route", "--gate", GATE], 6, "execution_unavailable");
    // The same key brings the refusal again, also when a route has come up since.
    done(&project, DECLARE);
    let again = refused(&project, &["route", "--gate", GATE, "--op", "key-1"], 6, "execution_unavailable");
    assert!(again["details"]["record"]["seq"].is_u64(), "{again}");
    silent(&project, &["route", "--gate", GATE], b"");
    let run = session["run"].as_str().expect("a run");
    assert_eq!(shown(&project, run, "/pending/gates")[GATE]["status"], "semantic_pending");
    assert!(project.nf(&["status"]).expect(0).stdout.contains("semantic_pending"));
}

#[test]
fn a_packet_asks_for_no_evidence_and_moves_a_gate_on_from_semantic_pending() {
    let project = frozen("{independent: true, families: [local_agent]}");
    failed(&project, &["route", "--gate", GATE], b"", 6, "execution_unavailable");
    let packet = Packet::read(&project.nf(&["packet", "--for", "agent"]).expect(0).stdout);
    let moved: Vec<Value> =
        events_of(&project, "gate.moved").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(moved, ["semantic_pending", "pending"]);
    let error = refused(&project, &["route", "--gate", GATE], 6, "execution_unavailable");
    names(&error["fix"], &["still waits for handoff", &packet.handoff]);
    answer(&project, &packet, "reject");
    refused(&project, &["route", &packet.job, "--gate", GATE], 3, "already_judged");
    done(&project, &["consume", "--as", GATE]);
    assert_eq!(events_of(&project, "gate.moved").len(), 3);
}

#[test]
fn what_a_job_says_of_cost_and_place_holds_for_packets_too() {
    for (terms, whom, word) in [
        ("{cost: [free]}", "human", "cost may be free, and human costs human"),
        ("{cost: [human]}", "chat", "cost may be human, and peer_chat costs free, plan"),
        ("{locality: local}", "chat", "locality is local"),
    ] {
        let project = frozen(terms);
        let error = refused(&project, &["packet", "--for", whom], 6, "execution_unavailable");
        names(&error["cause"], &[word]);
    }
}

#[test]
fn preferences_rank_and_make_nothing_eligible() {
    let project = frozen("{independent: true}");
    done(&project, DECLARE);
    let config = |text: &str| project.write(".novelforge/config.yaml", text);
    config("preferences: {families: [provider_api, local_model, human]}\n");
    let routed = silent(&project, &["route"], b"");
    assert_eq!(families(&routed, true), ["local_model", "human", "peer_chat"]);
    assert_eq!(obstacles(&routed, "provider_api"), ["evidence"]);
    for wrong in [
        "preferences: {families: [chat]}",
        "preferences: {families: peer_chat}",
        "preferences: {families: [human, human]}",
        "preferences: {family: [human]}",
        "preferences: {families: [human], command: ./run.sh}",
        "preferences: {hosts: [example.org]}",
        "preferences: [human]",
        "workers: {a: {command: ./run.sh}}",
        "capabilities: [house-model]",
    ] {
        config(wrong);
        refused(&project, &["route"], 1, "bad_input");
        refused(&project, &["route", "--gate", GATE], 1, "bad_input");
        refused(&project, &["start", "--resource", "a", "--task", "b"], 1, "bad_input");
    }
    config("preferences: {}\nbindings: {authority: [canon.md]}\n");
    project.write("canon.md", "Canon.\n");
    silent(&project, &["route"], b"");
}

#[test]
fn secrets_and_unfit_values_are_refused_and_stand_nowhere() {
    let project = Project::new();
    let token = format!("sk-{}", "aB3x".repeat(10));
    let sentence = format!("the key is {token}");
    for changes in [["--detail", sentence.as_str()], ["--model", token.as_str()]] {
        let error = refused(&project, &declared("a", "provider_api", &changes), 3, "looks_secret");
        assert!(!error.to_string().contains(&token), "{error}");
    }
    refused(&project, &declared(&token, "provider_api", &[]), 3, "looks_secret");
    let probe = ["capability", "probe", "a", "--family", "local_agent", "--", &token];
    refused(&project, &probe, 3, "looks_secret");
    refused(
        &project,
        &declared("a", "provider_api", &["--detail", "a -----BEGIN KEY-----"]),
        3,
        "looks_secret",
    );
    for changes in [
        ["--detail", "a\u{1b}[2J"],
        ["--detail", "a\u{202e}b"],
        ["--detail", ""],
        ["--model", "a\nb"],
        ["--expires", "0s"],
        ["--expires", "367d"],
        ["--expires", "9999999d"],
        ["--expires", "-1d"],
        ["--expires", "soon"],
        ["--expires", "1 month"],
        ["--family", "codex"],
        ["--cost", "cheap"],
        ["--interactive", "maybe"],
        ["--permission-class", "canon_write"],
        ["--locality", "here"],
    ] {
        refused(&project, &declared("a", "provider_api", &changes), 2, "usage");
    }
    for name in ["s-0123456789ab", "x-test", "../a", "a b", "", "\u{e9}"] {
        refused(&project, &declared(name, "provider_api", &[]), 2, "usage");
    }
    refused(&project, &["capability", "declare", "a", "--family", "human"], 2, "usage");
    assert_eq!(records(&project).len(), 1);
}

#[test]
fn evidence_is_listed_by_name_with_whether_it_counts() {
    let mut project = Project::testing("2026-01-01T00:00:00Z");
    let list = |project: &Project, more: &[&str]| -> Vec<String> {
        let data = silent(project, &[&["list", "capability"], more].concat(), b"");
        let items = data["items"].as_array().expect("items").clone();
        items.iter().map(|item| format!("{} {}", item["name"], item["state"]).replace('"', "")).collect()
    };
    assert_eq!(list(&project, &[]), Vec::<String>::new());
    done(&project, &declared("one", "local_agent", &["--expires", "1h"]));
    done(&project, &declared("two", "local_agent", &["--available", "false"]));
    done(&project, &declared("three", "mcp_worker", &[]));
    done(&project, &declared("one", "provider_api", &["--expires", "2h"]));
    assert_eq!(list(&project, &[]), ["one current", "three current", "two unavailable"]);
    assert_eq!(list(&project, &["--state", "unavailable"]), ["two unavailable"]);
    let first = silent(&project, &["list", "capabilities", "--limit", "2"], b"");
    let rest = list(&project, &["--limit", "2", "--after", &first["next"].to_string()]);
    assert_eq!(rest, ["two unavailable"]);
    project.set("NF_NOW", "2026-01-01T02:00:00Z");
    assert_eq!(list(&project, &[]), ["one expired", "three current", "two unavailable"]);
    assert_eq!(shown(&project, "one", "/family"), "provider_api");
    assert_eq!(shown(&project, "one", "/state"), "expired");
    let text = project.nf(&["list", "capability"]).expect(0).stdout;
    assert!(
        text.trim_start().starts_with("NAME") && text.contains("provider_api") && text.contains("declared"),
        "{text}"
    );
    refused(&project, &["show", "four"], 2, "usage");
}

#[test]
fn resume_asks_for_the_evidence_that_outstanding_work_needs() {
    let project = Project::new();
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    let save = ["checkpoint", "save", "--boundary", "before_long_work", "--capability", "house-model"];
    done(&project, &save);
    let packet = Packet::read(&project.nf(&["packet"]).expect(0).stdout);
    let error = refused(&project, &["resume"], 9, "stale");
    names(&error["cause"], &["capabilities: house-model: no evidence"]);
    done(&project, DECLARE);
    refused(&project, &["resume"], 8, "pending");
    done(
        &project,
        &declared("house-model", "local_model", &["--available", "false", "--detail", "switched off"]),
    );
    let error = refused(&project, &["resume"], 9, "stale");
    names(&error["cause"], &["house-model: recorded as unavailable: switched off"]);
    answer(&project, &packet, "accept");
    let resumed = done(&project, &["resume"]);
    let checks = resumed["checks"].as_array().expect("checks");
    assert!(checks.iter().all(|check| check["ok"] == true), "work that came back needs none");
}
