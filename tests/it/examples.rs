//! Every file in `examples/` is run, and the store in `.novelforge.example/` is the one that its script
//! makes. A file that no test here names is a failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{NF, Project, Ran, skipped};

/// Every file in `examples/`, and the test that runs it.
const RUN: &[(&str, &str)] = &[
    ("canned-answer.sh", "the_daily_path_ends_well"),
    ("ci-gate.sh", "a_gate_exits_by_the_verdict"),
    ("config.yaml", "the_settings_of_the_examples_are_sound"),
    ("contracts/reader.engagement.yaml", "the_contract_pack_is_sound_and_its_job_freezes"),
    ("daily-path.sh", "the_daily_path_ends_well"),
    ("fingerprint.py", "another_program_finds_the_same_fingerprints"),
    ("github-actions.yml", "a_runner_takes_a_packet_and_hands_a_result_back"),
    ("live-model.sh", "a_live_model_is_served_where_that_is_asked_for"),
    ("make-example.sh", "the_example_store_is_what_its_script_makes"),
    ("manuscript/ch01-repaired.md", "the_daily_path_ends_well"),
    ("manuscript/ch01.md", "the_daily_path_ends_well"),
    ("mcp-clients.sh", "clients_that_others_wrote_walk_the_daily_path"),
    ("mcp_daily_path.py", "the_python_client_walks_the_daily_path"),
    ("read_log.py", "another_program_verifies_the_example_store"),
    ("review-by-contract.yaml", "the_contract_pack_is_sound_and_its_job_freezes"),
    ("review.yaml", "the_daily_path_ends_well"),
    ("workers.yaml", "the_settings_of_the_examples_are_sound"),
];

/// A path in the repository.
pub fn repository(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// Every file below a folder, as paths from it, sorted.
pub fn files_below(folder: &Path) -> Vec<String> {
    let mut found: Vec<String> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap_or_else(|error| panic!("{error}")))
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(folder).expect("below").to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

/// A python3 that has these modules: the one that CI prepared, else the one on the PATH. Without one the
/// test that asks says so and skips; with `NF_NEED_PYTHON` set, as in CI, it fails.
pub fn python(modules: &str) -> Option<PathBuf> {
    let prepared = repository("target/venv/bin/python3");
    for python in [prepared, PathBuf::from("python3")] {
        let import = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
        if import.is_ok_and(|output| output.status.success()) {
            return Some(python);
        }
    }
    let install = modules.replace(',', "");
    skipped("NF_NEED_PYTHON", &format!("no python3 has {modules} (pip install {install})"));
    None
}

/// Runs a script of `examples/` in a project's folder, with the binary under test.
fn script(project: &Project, name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(repository("examples").join(name));
    command.args(arguments).current_dir(project.path()).env("NF", NF).envs(variables.iter().copied());
    command.output().unwrap_or_else(|error| panic!("{name}: {error}")).into()
}

/// A project with the example's job files and manuscript.
pub fn example_project() -> Project {
    let project = Project::empty();
    for name in files_below(&repository("examples")) {
        if name.ends_with(".yaml") || name.starts_with("manuscript/") {
            project.write(&name, std::fs::read(repository("examples").join(&name)).expect("a file"));
        }
    }
    project
}

#[test]
fn every_example_is_run_by_a_test() {
    let named: Vec<&str> = RUN.iter().map(|(file, _)| *file).collect();
    assert_eq!(files_below(&repository("examples")), named);
    let source = include_str!("examples.rs");
    for (file, test) in RUN {
        assert!(source.contains(&format!("\nfn {test}() {{")), "{file}: there is no test {test}");
    }
}

/// Runs the main example with some program.
pub fn daily_path(nf: &str) -> Ran {
    script(&Project::empty(), "daily-path.sh", &[], &[("NF", nf)])
}

#[test]
fn the_daily_path_ends_well() {
    let ran = daily_path(NF).expect(0);
    assert!(ran.stdout.ends_with("the daily path is done\n"), "{}", ran.stdout);
    for part in ["13 of 13 checks; verdict reject (a valid outcome)", "11 of 11 checks", "is judged already"]
    {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
}

#[test]
fn a_gate_exits_by_the_verdict() {
    let project = example_project();
    project.nf(&["init"]).expect(0);
    let session = project.nf(&["start", "--resource", "novel/pride", "--task", "review"]).expect(0).line();
    let variables = [("NF_SESSION", session.as_str())];
    let gate = |answer: &[&str]| {
        script(&project, "ci-gate.sh", &[&["review.yaml", "ci/review"], answer].concat(), &variables)
    };
    let answered = |verdict: &str| {
        let answer = script(&project, "canned-answer.sh", &["packet.txt", verdict], &[]).expect(0);
        project.write("answer.txt", answer.stdout);
    };
    gate(&[]).expect(8);
    gate(&[]).expect(8);
    answered("reject");
    gate(&["answer.txt"]).expect(10);
    gate(&[]).expect(10);
    project.nf(&["resume"]).expect(0);
    project.write("manuscript/ch01.md", project.read("manuscript/ch01-repaired.md"));
    gate(&[]).expect(8);
    answered("accept");
    gate(&["answer.txt"]).expect(0);
}

#[test]
fn the_contract_pack_is_sound_and_its_job_freezes() {
    let project = example_project();
    project.nf(&["init"]).expect(0);
    project.nf(&["contract", "check", "contracts/reader.engagement.yaml"]).expect(0);
    project.nf(&["freeze", "review-by-contract.yaml"]).expect(1);
    let pack = project.read("contracts/reader.engagement.yaml");
    project.write(".novelforge/contracts/reader.engagement.yaml", pack);
    let frozen = project.nf(&["freeze", "review-by-contract.yaml"]).expect(0);
    let shown = project.nf(&["show", &frozen.line()]).expect(0);
    assert!(shown.stdout.contains("reader.engagement@1"), "{}", shown.stdout);
}

#[test]
fn the_settings_of_the_examples_are_sound() {
    let mut project = Project::new();
    let settings = std::fs::read_to_string(repository("examples/workers.yaml")).expect("a file");
    crate::workers::with_settings(&mut project, &settings);
    let config = std::fs::read_to_string(repository("examples/config.yaml")).expect("a file");
    project.write(".novelforge/config.yaml", &config);
    project.write("canon.md", "Canon.\n");
    project.write("style.yaml", "version: 3\n");
    for variable in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        assert!(settings.contains(variable));
        project.set(variable, "a-key");
    }
    let doctor = crate::expect::done(&project, &["doctor"]);
    assert_eq!(doctor["settings"], serde_json::json!([]), "{doctor}");
    // Each worker is known by its name, and no program of the example is there where PATH names none.
    for name in ["claude", "codex", "house-reviewer"] {
        crate::expect::recorded(&project, &["capability", "probe", name], b"", 6, "execution_unavailable");
    }
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    project.nf(&["run", "finish", "--status", "completed"]).expect(0);
    project.write("style.yaml", "version: 4\n");
    let stale = project.nf(&["resume"]).expect(9);
    assert!(stale.stderr.contains("style-guide"), "{}", stale.stderr);
    // Commented out as a whole, both set nothing.
    let blank = |text: &str| text.lines().map(|line| format!("# {line}\n")).collect::<String>();
    crate::workers::with_settings(&mut project, &blank(&settings));
    project.write(".novelforge/config.yaml", blank(&config));
    assert_eq!(crate::expect::done(&project, &["doctor"])["settings"], serde_json::json!([]));
}

/// What it does is tested in `live`, where a real model is asked for; that it can be run at all, always.
#[test]
fn a_live_model_is_served_where_that_is_asked_for() {
    let mut check = Command::new("bash");
    check.arg("-n").arg(repository("examples/live-model.sh"));
    Ran::from(check.output().expect("bash")).expect(0);
    let live = include_str!("live.rs");
    assert_eq!(live.matches("examples/live-model.sh").count(), 2);
}

/// The workflow is sound, and its packet comes out of a secret as it went in.
#[test]
fn a_runner_takes_a_packet_and_hands_a_result_back() {
    let text = std::fs::read(repository("examples/github-actions.yml")).expect("a file");
    let workflow = nf::model::yaml::parse(&text).expect("YAML");
    assert_eq!(workflow["on"], serde_json::json!(["workflow_dispatch"]));
    let steps = workflow["jobs"]["review"]["steps"].as_array().expect("steps");
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1], "nf work --from packet.json --out result.json -- ./reviewer.sh");
    let last = steps.last().expect("steps");
    assert_eq!(
        (last["with"]["name"].as_str(), last["with"]["path"].as_str()),
        (Some("nf-result"), Some("result.json"))
    );
    // The manager's part, as the comment at the top has it.
    let home = Project::new();
    let session = home.start();
    let job = home.nf(&["freeze", "job.yaml"]).expect(0).line();
    let open = ["handoff", "open", &job, "--class", "semantic_reviewer", "--gate", "ci/gate", "--wait"];
    let handoff = home.nf(&open).expect(0).line();
    let export =
        ["export", &handoff, "--worker", "actions", "--family", "service_job", "--out", "packet.json"];
    home.nf(&export).expect(0);
    // The runner has the repository, its secret and nf; no store.
    let secret = home.read("packet.json");
    let runner = Project::empty();
    crate::work::program(&runner, "reviewer.sh", "read_packet; answer reject");
    let programs = Path::new(NF).parent().expect("a folder").display().to_string();
    let step = |run: &str| -> Ran {
        let mut step = Command::new("bash");
        step.args(["-euo", "pipefail", "-c", run]).current_dir(runner.path()).env_clear();
        step.env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin")).env("NF_PACKET", &secret);
        step.output().expect("bash").into()
    };
    step(runs[0]).expect(0);
    assert_eq!(runner.read("packet.json"), secret);
    let mode = std::fs::metadata(runner.at("packet.json")).expect("a packet").permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
    assert_eq!(mode & 0o777, 0o600, "nobody else on the runner reads it");
    step(runs[1]).expect(0);
    assert!(!runner.at(".novelforge").exists());
    home.write("result.json", runner.read("result.json"));
    let bound = crate::expect::done(&home, &["import", "result.json"]);
    assert_eq!((&bound["grade"], &bound["verdict"]["value"]), (&"declared".into(), &"reject".into()));
    assert_eq!(home.nf(&["consume", "--as", "ci/gate", "--exit-verdict"]).code, 10);
    home.nf(&["resume", &session]).expect(0);
    // A step whose program gives no answer fails, and leaves nothing to be handed back.
    std::fs::remove_file(runner.at("result.json")).expect("a result");
    crate::work::program(&runner, "reviewer.sh", "exit 1");
    step(runs[1]).expect(7);
    assert!(!runner.at("result.json").exists());
}

#[test]
fn another_program_finds_the_same_fingerprints() {
    let Some(python) = python("blake3,rfc8785") else { return };
    let ran: Ran =
        Command::new(python).arg(repository("examples/fingerprint.py")).output().expect("python").into();
    let ran = ran.expect(0);
    let counts = ran.stdout.lines().last().unwrap_or_default();
    assert!(counts.ends_with(" passed, 0 failed") && !counts.starts_with("0 "), "{}", ran.stdout);
}

/// A private copy of the committed store, as somebody has it who copied a checkout. Git keeps no modes but
/// the one bit, and no empty folder: nf takes both as they are, as long as the store's own folder lets
/// nobody else in, which is what the chmod sees to.
fn copied() -> Project {
    let project = example_project();
    let store = repository(".novelforge.example");
    for name in files_below(&store) {
        project.write(&format!(".novelforge/{name}"), std::fs::read(store.join(&name)).expect("a file"));
    }
    let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(project.at(".novelforge"), private).expect("chmod");
    project
}

#[test]
fn the_example_store_opens_verifies_and_folds() {
    let project = copied();
    let seen = project.nf(&["verify", "--json"]).expect(0).json();
    let codes: Vec<&str> = seen["data"]["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|f| f["code"].as_str())
        .collect();
    assert_eq!(codes, ["head_missing"], "a checkout has no head, and nothing else is amiss");
    let results = project.nf(&["list", "result", "--json"]).expect(0).json();
    let standing = |at: usize| results["data"]["items"][at]["checked"]["verdict"]["value"].clone();
    assert_eq!((standing(0), standing(1)), ("accept".into(), "reject".into()));
    // The first writer makes the head that git did not keep.
    project.write("manuscript/ch01.md", project.read("manuscript/ch01-repaired.md"));
    project.nf(&["resume"]).expect(0);
    project.nf(&["doctor", "--fix"]).expect(0);
    let mended = project.nf(&["verify", "--json"]).expect(0).json();
    assert_eq!(mended["data"]["findings"].as_array().map(Vec::len), Some(0), "{mended}");
}

#[test]
fn the_example_store_is_what_its_script_makes() {
    let project = Project::empty();
    let made = project.at("made");
    script(&project, "make-example.sh", &[&made.to_string_lossy()], &[]).expect(0);
    let committed = repository(".novelforge.example");
    assert_eq!(files_below(&made), files_below(&committed), "run examples/make-example.sh");
    for name in files_below(&made) {
        let same = std::fs::read(made.join(&name)).ok() == std::fs::read(committed.join(&name)).ok();
        assert!(same, "{name} differs; run examples/make-example.sh");
    }
}

#[test]
fn another_program_verifies_the_example_store() {
    let Some(python) = python("blake3") else { return };
    let read = |store: &Path| -> Ran {
        let mut command = Command::new(&python);
        command.arg(repository("examples/read_log.py")).arg(store);
        command.output().expect("python").into()
    };
    let ran = read(&repository(".novelforge.example")).expect(0);
    let count = ran.stdout.lines().count() - 1;
    assert!(ran.stdout.contains(&format!("{count} records, 6 blobs, 2 receipts verified")), "{}", ran.stdout);
    // It must be able to say no.
    let project = copied();
    let log = ".novelforge/log/00000001.jsonl";
    project.write(log, project.read(log).replace("novel/pride", "novel/prude"));
    read(&project.at(".novelforge")).expect(1);
    project.write(log, std::fs::read(repository(".novelforge.example/log/00000001.jsonl")).expect("a log"));
    read(&project.at(".novelforge")).expect(0);
    let shelf = std::fs::read_dir(project.at(".novelforge/blobs")).expect("blobs").next().expect("one");
    std::fs::remove_dir_all(shelf.expect("a shelf").path()).expect("removed");
    read(&project.at(".novelforge")).expect(1);
}

#[cfg(feature = "mcp")]
#[test]
fn the_python_client_walks_the_daily_path() {
    let Some(python) = python("mcp") else { return };
    for (mode, revision) in [("session", ""), ("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let project = Project::new();
        let mut command = Command::new(&python);
        command.arg(repository("examples/mcp_daily_path.py")).args([NF.as_ref(), project.path().as_os_str()]);
        let ran = Ran::from(command.arg(mode).output().expect("python")).expect(0);
        assert!(ran.stdout.ends_with("the daily path is done\n"), "{mode}: {}", ran.stdout);
        assert!(
            revision.is_empty() || ran.stdout.contains(&format!("revision {revision}\n")),
            "{}",
            ran.stdout
        );
        project.nf(&["verify"]).expect(0);
        assert_eq!(crate::expect::records(&project).len(), 7, "{mode}");
    }
}

/// Installs packages from two registries, and so runs only where it is asked for.
#[cfg(feature = "mcp")]
#[test]
fn clients_that_others_wrote_walk_the_daily_path() {
    if std::env::var_os("NF_TEST_MCP_CLIENTS").is_none() {
        skipped("NF_NEED_MCP_CLIENTS", "NF_TEST_MCP_CLIENTS is not set (it runs pip and npm)");
        return;
    }
    let project = Project::empty();
    let ran = script(&project, "mcp-clients.sh", &["clients"], &[]).expect(0);
    assert!(ran.stdout.ends_with("all clients that are here went through\n"), "{}", ran.stdout);
}
