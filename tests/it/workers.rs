//! The user's settings of workers through the binary: who may have written them, what doctor says, what a
//! probe of a worker records, and how the seven families become and cease to be eligible.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::expect::{done, names, recorded, refused, shown, silent};
use crate::harness::{JOB, Project};
use crate::routes::{families, obstacles};

/// Settings in a folder that no other user may write to, named by `NF_CONFIG`.
pub fn with_settings(project: &mut Project, text: &str) {
    project.write("settings/workers.yaml", text);
    chmod(&project.at("settings"), 0o700);
    chmod(&project.at("settings/workers.yaml"), 0o600);
    let folder = project.at("settings").display().to_string();
    project.set("NF_CONFIG", &folder);
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

fn tool(project: &mut Project, name: &str, text: &str) {
    let file = format!("bin/{name}");
    project.write(&file, format!("#!/bin/sh\n{text}\n"));
    chmod(&project.at(&file), 0o755);
    let path = format!("{}:/usr/bin:/bin", project.at("bin").display());
    project.set("PATH", &path);
}

#[test]
fn settings_that_others_may_have_written_are_refused() {
    let mut project = Project::new();
    with_settings(&mut project, "workers: {w: {kind: command, command: git}}\n");
    let probe = ["capability", "probe", "w"];
    project.set("PATH", "/usr/bin:/bin");
    for (path, mode, word) in [
        ("settings/workers.yaml", 0o620, "others may write to it (mode 620)"),
        ("settings/workers.yaml", 0o602, "others may write to it (mode 602)"),
        ("settings", 0o770, "others may write to its folder"),
    ] {
        let before = std::fs::metadata(project.at(path)).expect("a file").permissions();
        chmod(&project.at(path), mode);
        let error = refused(&project, &probe, 1, "foreign_store");
        names(&error["cause"], &[word]);
        names(&error["fix"], &["chmod go-w"]);
        std::fs::set_permissions(project.at(path), before).expect("chmod");
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(project.at("settings/workers.yaml"), Some(4711), None).expect("chown");
        names(&refused(&project, &probe, 1, "foreign_store")["cause"], &["belongs to user 4711"]);
        std::os::unix::fs::chown(project.at("settings/workers.yaml"), Some(0), None).expect("chown");
    }
    // A store is no place for them, however it is named.
    project.write(".novelforge/workers.yaml", "workers: {w: {kind: command, command: git}}\n");
    std::os::unix::fs::symlink(project.at(".novelforge"), project.at("link")).expect("a link");
    for folder in [".novelforge", "link"] {
        project.set("NF_CONFIG", folder);
        names(&refused(&project, &probe, 1, "foreign_store")["cause"], &["it lies in a store"]);
    }
    std::fs::create_dir_all(project.at("piped")).expect("a folder");
    chmod(&project.at("piped"), 0o700);
    let pipe = std::process::Command::new("mkfifo").arg(project.at("piped/workers.yaml")).status();
    assert!(pipe.expect("mkfifo").success());
    project.set("NF_CONFIG", "piped");
    names(&refused(&project, &probe, 1, "bad_input")["message"], &["no regular file"]);
    project.set("NF_CONFIG", "nowhere");
    names(&refused(&project, &probe, 2, "usage")["cause"], &["the settings name none"]);
    project.set("NF_CONFIG", "settings");
    done(&project, &probe);
}

#[test]
fn a_store_that_names_a_program_a_host_or_a_key_is_told_why_not() {
    let project = Project::new();
    project.write("contract.yaml", "id: a\nversion: 1\nkind: k\noutput: {type: object}\ncommand: ./run.sh\n");
    names(
        &refused(&project, &["contract", "check", "contract.yaml"], 1, "bad_input")["cause"],
        &["a store names"],
    );
    for text in [
        "workers: {w: {kind: claude}}",
        "url: 'https://example.org'",
        "preferences: {command: ./x}",
        "bindings: {program: x}",
        "key_env: A",
        "preferences: {hosts: [a]}",
    ] {
        project.write(".novelforge/config.yaml", format!("{text}\n"));
        let error = refused(&project, &["start", "--resource", "a", "--task", "b"], 1, "bad_input");
        names(&error["cause"], &["a store names no program, no host and no key"]);
        names(&error["fix"], &["workers.yaml of your own config folder"]);
        assert!(error["details"]["pointer"].is_string(), "{error}");
    }
    project.write(".novelforge/contracts/a.yaml", "id: a\nversion: 1\nkind: k\noutput: {}\nworkers: {}\n");
    names(&refused(&project, &["contract", "list"], 1, "bad_input")["cause"], &["a store names no program"]);
    project.write(".novelforge/config.yaml", "preference: {}\n");
    let error = refused(&project, &["start", "--resource", "a", "--task", "b"], 1, "bad_input");
    names(&error["cause"], &["did you mean preferences?"]);
}

#[test]
fn doctor_names_every_fault_of_the_settings_and_the_store_stays_sound() {
    let mut project = Project::new();
    assert_eq!(done(&project, &["doctor"])["settings"], json!([]));
    with_settings(
        &mut project,
        "workers: {a: {kind: codex, key_env: A_KEY}, b: {kind: claude, key_env: B_KEY}}\n",
    );
    project.set("B_KEY", "the-key-of-b");
    let found = silent(&project, &["doctor"], b"");
    assert_eq!(found["findings"], json!([]));
    assert_eq!(found["settings"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["settings"][0]["severity"], "note");
    names(&found["settings"][0]["what"], &["worker a", "A_KEY", "not set"]);
    let text = project.nf(&["doctor"]).expect(0).stdout;
    assert!(
        text.contains("the store is sound\nnote key_unset: worker a") && !text.contains("the-key"),
        "{text}"
    );
    with_settings(&mut project, "workers: {a: {kind: clade}}\n");
    project.write(".novelforge/config.yaml", "preferences: {families: [chat]}\n");
    project.write(".novelforge/contracts/a.yaml", "id: a\n");
    let found = silent(&project, &["doctor"], b"");
    let codes: Vec<&Value> =
        found["settings"].as_array().expect("a list").iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["config", "contracts", "workers"]);
    names(&found["settings"][2]["what"], &["/workers/a/kind", "did you mean claude?"]);
    assert!(found["settings"].as_array().expect("a list").iter().all(|one| one["severity"] == "warning"));
    assert!(project.nf(&["doctor", "--fix"]).expect(0).stdout.contains("the store is sound"));
}

#[test]
fn a_worker_is_probed_by_its_name_with_what_the_settings_say() {
    let mut project = Project::new();
    with_settings(
        &mut project,
        "workers:\n  mine: {kind: command, command: [reviewer, --fast], family: mcp_worker, cost: free}\n  \
        codex: {kind: codex, isolate: true, model: m-1}\n  gone: {kind: claude, command: /no/such/claude}\n",
    );
    tool(&mut project, "reviewer", "echo ran >> \"${0%/*}/ran\"; echo 1");
    let seen = done(&project, &["capability", "probe", "mine"]);
    assert_eq!((&seen["family"], &seen["cost"]), (&json!("mcp_worker"), &json!("free")));
    assert_eq!((&seen["executes_model"], &seen["isolated_invocation"]), (&json!(false), &json!(false)));
    assert!(!project.at("bin/ran").exists(), "a reviewer of one's own is not run to be looked at");
    let stated = ["capability", "probe", "mine", "--executes-model", "true", "--isolated", "true"];
    assert_eq!(done(&project, &stated)["isolated_invocation"], true);
    // A version that lacks an option is no way at all.
    let flags = nf::adapters::flags::CODEX.required;
    let help =
        |flags: &[&str]| format!("[ \"$1\" = exec ] && echo '{}' || echo 'codex 1.2'", flags.join("\n"));
    tool(&mut project, "codex", &help(&flags[1..]));
    let error = recorded(&project, &["capability", "probe", "codex"], b"", 6, "execution_unavailable");
    names(&error["cause"], &["exec --help does not list --json"]);
    names(&error["fix"], &["install a version"]);
    assert_eq!(shown(&project, "codex", "/state"), "unavailable");
    tool(&mut project, "codex", &help(flags));
    let seen = done(&project, &["capability", "probe", "codex"]);
    assert_eq!((&seen["detail"], &seen["models"]), (&json!("codex 1.2"), &json!(["m-1"])));
    assert_eq!((&seen["isolated_invocation"], &seen["interactive"]), (&json!(true), &json!(false)));
    recorded(&project, &["capability", "probe", "gone"], b"", 6, "execution_unavailable");
    let error = refused(&project, &["capability", "probe", "codecs"], 2, "usage");
    names(&error["cause"], &["did you mean codex?"]);
    names(&error["fix"], &["workers.yaml", "-- PROGRAM"]);
    let error = refused(&project, &["capability", "probe", "codex", "--family", "service_job"], 2, "usage");
    names(&error["message"], &["local_agent"]);
    refused(&project, &["capability", "probe", "codex", "--", "git"], 2, "usage");
}

#[cfg(feature = "http")]
#[test]
fn an_endpoint_is_probed_for_its_models_and_a_key_is_kept_nowhere() {
    use crate::stub::{Stub, response};
    const KEY: &str = "a-key-that-stands-nowhere-0815";
    let mut project = Project::new();
    let list = json!({"data": [{"id": "m-1"}, {"id": format!("ghp_{}", "a1B2".repeat(9))}]}).to_string();
    let stub = Stub::new(move |request, stream| {
        let known = request.header("authorization").is_some_and(|value| value.ends_with(KEY));
        let said = if known { response("200 OK", "", &list) } else { response("401 No", "", KEY) };
        let _ = std::io::Write::write_all(stream, &said);
    });
    let url = stub.url();
    let text = format!(
        "workers:\n  here: {{kind: openai, url: '{url}', key_env: A_KEY}}\n  \
        other: {{kind: openai, url: '{url}', model: m-2}}\n"
    );
    with_settings(&mut project, &text);
    let probe = ["capability", "probe", "here"];
    let error = recorded(&project, &probe, b"", 6, "execution_unavailable");
    names(&error["cause"], &["A_KEY is not set"]);
    assert_eq!(stub.requests().len(), 0, "nothing is called without the key that it needs");
    project.set("A_KEY", KEY);
    let seen = done(&project, &probe);
    assert_eq!(
        (&seen["family"], &seen["locality"], &seen["cost"]),
        (&json!("local_model"), &json!("local"), &json!("free"))
    );
    assert_eq!((&seen["models"], &seen["source"]), (&json!(["m-1"]), &json!(url)));
    assert_eq!((&seen["isolated_invocation"], &seen["executes_model"]), (&json!(true), &json!(true)));
    let error = recorded(&project, &["capability", "probe", "other"], b"", 6, "execution_unavailable");
    names(&error["cause"], &["401"]);
    names(&error["fix"], &["key_env"]);
    silent(&project, &["capability", "probe", "here", "-n"], b"");
    drop(stub);
    let log = String::from_utf8_lossy(&project.log()).into_owned();
    assert!(!log.contains(KEY) && !log.contains("ghp_"), "{log}");
    assert!(!project.nf(&["capability", "probe", "here"]).stderr.contains(KEY));
    assert!(crate::expect::records(&project).len() > 3);
}

/// One worker for each family that needs evidence, in settings and by declaration.
fn equipped() -> Project {
    let mut project = Project::new();
    let text = "workers:\n  \
        agent: {kind: command, command: reviewer, family: local_agent, isolate: true, cost: plan}\n  \
        provider: {kind: command, command: reviewer, family: provider_api, isolate: true}\n  \
        model: {kind: command, command: reviewer, family: local_model, isolate: true, cost: free, \
        model: m-1}\n  \
        mcp: {kind: command, command: reviewer, family: mcp_worker, isolate: true, cost: plan}\n  \
        service: {kind: command, command: reviewer, isolate: true, cost: plan}\n";
    with_settings(&mut project, text);
    tool(&mut project, "reviewer", "exit 1");
    for name in ["agent", "provider", "model", "mcp", "service"] {
        let locality = if name == "model" { "local" } else { "any" };
        let probe = ["capability", "probe", name, "--executes-model", "true", "--locality", locality];
        done(&project, &probe);
    }
    project.start();
    project
}

/// The routes of a job that is frozen under these terms.
fn routed(project: &Project, subject: &str, terms: &str) -> Value {
    let job =
        JOB.replace("novel/pride/ch01", subject).replace("{independent: true, min_grade: declared}", terms);
    project.write("job.yaml", job);
    let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
    let document = project.nf(&["route", &job, "--json"]).json();
    crate::harness::report(&document).clone()
}

#[test]
fn seven_families_are_eligible_by_evidence_and_each_requirement_takes_its_own_away() {
    let project = equipped();
    let all = routed(&project, "novel/all", "{independent: true}");
    assert_eq!(families(&all, true).len(), 7, "{all}");
    let seven =
        ["peer_chat", "human", "local_agent", "provider_api", "local_model", "mcp_worker", "service_job"];
    for (at, (terms, kept, obstacle)) in [
        ("{families: [human, local_model]}", &["human", "local_model"][..], "permission"),
        (
            "{independent: true, min_grade: attested}",
            &["local_agent", "provider_api", "local_model", "service_job"],
            "independence",
        ),
        (
            "{interactive: false}",
            &["local_agent", "provider_api", "local_model", "mcp_worker", "service_job"],
            "interaction",
        ),
        ("{cost: [metered]}", &["provider_api"], "cost"),
        ("{cost: [free]}", &["peer_chat", "local_model"], "cost"),
        ("{locality: local}", &["human", "local_model"], "locality"),
        ("{models: [m-1]}", &["peer_chat", "human", "local_model"], "models"),
    ]
    .into_iter()
    .enumerate()
    {
        let routes = routed(&project, &format!("novel/{at}"), terms);
        let mut eligible = families(&routes, true);
        eligible.sort_by_key(|family| seven.iter().position(|known| known == family));
        assert_eq!(eligible, kept, "{terms}");
        for family in seven.iter().filter(|family| !kept.contains(family)) {
            assert!(obstacles(&routes, family).contains(&json!(obstacle)), "{terms} {family}: {routes}");
        }
    }
    // One by one the evidence goes, and with it the family and no other.
    let proved = [("agent", 2), ("provider", 3), ("model", 4), ("mcp", 5), ("service", 6)];
    std::fs::remove_file(project.at("bin/reviewer")).expect("a program");
    for (left, (name, at)) in proved.into_iter().enumerate() {
        recorded(&project, &["capability", "probe", name], b"", 6, "execution_unavailable");
        let routes = routed(&project, &format!("novel/without/{name}"), "{independent: true}");
        assert_eq!(families(&routes, true).len(), 6 - left, "{routes}");
        assert!(obstacles(&routes, seven[at]).contains(&json!("evidence")), "{routes}");
    }
    let none = routed(&project, "novel/none", "{independent: true, interactive: false}");
    assert_eq!(families(&none, false).len(), 7);
}
