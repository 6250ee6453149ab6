//! Probes through the binary: a program is there or not, and that is all that a probe proves.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::expect::{done, names, recorded, refused, shown, silent};
use crate::harness::Project;
use crate::routes::{GATE, declared, families, obstacles};

/// A program in a folder of its own, which is the only one on `PATH` beside those of the system.
fn program(project: &mut Project, text: &str, mode: u32) {
    project.write("bin/reviewer", format!("#!/bin/sh\n{text}\n"));
    let file = project.at("bin/reviewer");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("chmod");
    let path = format!("{}:/usr/bin:/bin", project.at("bin").display());
    project.set("PATH", &path);
}

const PROBE: &[&str] = &["capability", "probe", "reviewer", "--family", "local_agent"];

fn probe<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [PROBE, options, &["--", "reviewer"]].concat()
}

#[test]
fn a_probe_proves_that_a_program_is_there_and_nothing_else() {
    let mut project = Project::testing("2026-01-01T00:00:00Z");
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    program(&mut project, "echo ran >> \"${0%/*}/../ran\"; echo \"reviewer 1.2 $1\"", 0o755);
    let seen = done(&project, &probe(&[]));
    assert_eq!(seen["detail"], "reviewer 1.2 --version");
    assert_eq!(seen["source"], json!(project.at("bin/reviewer").display().to_string()));
    assert_eq!((&seen["proof"], &seen["available"]), (&json!("probed"), &json!(true)));
    assert_eq!(seen["expires_at"], "2026-01-02T00:00:00.000000Z");
    assert_eq!(project.read("ran").lines().count(), 1, "run once");
    let routed = done(&project, &["route"]);
    assert_eq!(obstacles(&routed, "local_agent"), ["independence", "model_execution"]);
    let stated = ["--executes-model", "true", "--isolated", "true", "--interactive", "false"];
    done(&project, &probe(&stated));
    assert!(families(&done(&project, &["route"]), true).contains(&"local_agent".to_owned()));
    project.set("NF_NOW", "2026-01-02T00:00:00Z");
    let routed = done(&project, &["route"]);
    assert_eq!(obstacles(&routed, "local_agent"), ["evidence"], "ended");
    // A clock that is set back brings back nothing that the log has seen end.
    done(&project, &["run", "step", "--cursor", "later"]);
    project.set("NF_NOW", "2026-01-01T12:00:00Z");
    assert_eq!(obstacles(&done(&project, &["route"]), "local_agent"), ["evidence"]);
}

#[test]
fn a_probe_that_sees_nothing_is_evidence_too() {
    for (text, mode, word) in [
        ("exit 3", 0o755, "exit status: 3"),
        ("exit 0", 0o755, "printed nothing"),
        ("sleep 60", 0o755, "no answer"),
        ("echo 1", 0o644, "may not be run"),
    ] {
        let mut project = Project::new();
        project.start();
        project.nf(&["freeze", "job.yaml"]).expect(0);
        done(&project, &declared("reviewer", "local_agent", &[]));
        program(&mut project, text, mode);
        assert_eq!(families(&done(&project, &["route"]), true).len(), 3);
        let error = recorded(&project, &probe(&[]), b"", 6, "execution_unavailable");
        names(&error["cause"], &[word]);
        assert!(!families(&done(&project, &["route"]), true).contains(&"local_agent".to_owned()), "{text}");
        assert_eq!(shown(&project, "reviewer", "/state"), "unavailable");
    }
    let mut project = Project::new();
    for path in ["", ".", "bin"] {
        project.write("bin/reviewer", "#!/bin/sh\necho 1\n");
        project.set("PATH", path);
        let error = recorded(&project, &probe(&[]), b"", 6, "execution_unavailable");
        names(&error["cause"], &["not on PATH"]);
    }
}

#[test]
fn a_probe_keeps_nothing_of_a_hostile_version() {
    let mut project = Project::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    program(&mut project, &format!("echo 'reviewer {token}'"), 0o755);
    done(&project, &probe(&[]));
    program(&mut project, "printf 'a\\033[31m\\342\\200\\256b\\n'", 0o755);
    assert_eq!(done(&project, &probe(&[]))["detail"], "a[31mb");
    program(&mut project, "head -c 60000 /dev/zero | tr '\\0' 'x '", 0o755);
    assert_eq!(done(&project, &probe(&[]))["detail"].as_str().map(str::len), Some(200));
    assert!(!String::from_utf8_lossy(&project.log()).contains(&token));
    silent(&project, &probe(&["-n"]), b"");
    refused(&project, &[PROBE, &["--", "reviewer", "--version"]].concat(), 2, "usage");
}

#[test]
fn the_log_names_programs_and_nothing_runs_them() {
    let mut project = Project::new();
    program(&mut project, "echo ran >> \"${0%/*}/../ran\"; echo 1", 0o755);
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    done(&project, &probe(&["--op", "key-1"]));
    // A repeat with the key gives the first answer and looks at nothing.
    silent(&project, &probe(&["--op", "key-1"]), b"");
    for words in [&["route"][..], &["route", "--gate", GATE], &["list", "capability"], &["show", "reviewer"]]
    {
        done(&project, words);
    }
    done(&project, &["verify"]);
    done(&project, &["doctor"]);
    assert_eq!(project.read("ran").lines().count(), 1);
}
