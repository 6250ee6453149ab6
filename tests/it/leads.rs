//! Every `next:` and `fix:` line, and every command that `status` and `show` name, is a command that is not
//! refused when it is run: walked over the states that work can be in, and over what a person may try in each
//! of them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::faults::tools::copy_tree;
use crate::harness::{Project, Ran};

mod scenes;
mod words;

use scenes::Scene;

/// Exit codes that are an answer and no refusal: done, and not yet. What only looks, or looks anew, may find
/// something wrong (9, 6).
fn is_no_refusal(line: &[String], code: i32) -> bool {
    match line.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["route", ..] => [0, 6].contains(&code),
        // What is done is for the path to say, which the one who reads looks at first.
        ["resume", ..] | ["effect", "check" | "done", ..] => [0, 8, 9].contains(&code),
        // Started in a folder where nothing writes what is required.
        ["effect", "run", ..] => [0, 7, 9].contains(&code),
        _ => [0, 8].contains(&code),
    }
}

/// Whether a command writes nothing.
fn looks(line: &[String]) -> bool {
    match line[0].as_str() {
        "show" | "status" | "list" | "capability" => true,
        "route" => !line.iter().any(|word| word == "--gate"),
        "effect" => line[1] == "check",
        _ => false,
    }
}

fn copy(scene: &Scene, of: &Project) -> Project {
    let mut project = Project::in_memory();
    copy_tree(of.path(), project.path());
    for (name, value) in &scene.variables {
        project.set(name, value);
    }
    project
}

/// What a command says that leads on.
fn leads(ran: &Ran) -> Vec<String> {
    let lines = ran.stderr.lines();
    let told = lines.filter_map(|line| line.strip_prefix("next: ").or(line.strip_prefix("fix:   ")));
    told.map(str::to_owned).collect()
}

/// What `status` and `show` name.
fn named(project: &Project, ids: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let status = project.nf(&["status", "--json"]).json();
    for session in status["data"]["sessions"].as_array().into_iter().flatten() {
        all.push(session["next"].clone());
        let matters = session["matters"].as_array().into_iter().flatten();
        all.extend(matters.map(|matter| matter["command"].clone()));
    }
    for id in ids {
        all.push(project.nf(&["show", id, "--json"]).json()["data"]["next"].clone());
    }
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Runs what a text leads to, each alternative in a copy of its own, and gives what was refused.
fn follow(scene: &Scene, project: &Project, from: &str, text: &str) -> (usize, Vec<String>) {
    let (mut run, mut refused) = (0, Vec::new());
    for sequence in words::commands(text) {
        // What only looks needs no copy.
        let copied = (!sequence.iter().all(|line| looks(line))).then(|| copy(scene, project));
        let there = copied.as_ref().unwrap_or(project);
        for line in sequence {
            let arguments: Vec<&str> = line.iter().map(String::as_str).collect();
            let ran = there.nf(&arguments);
            run += 1;
            if !is_no_refusal(&line, ran.code) {
                refused.push(format!(
                    "{} | {from}: {text}\n    {} exits {}:\n    {}",
                    scene.name,
                    line.join(" "),
                    ran.code,
                    ran.stderr.trim().replace('\n', "\n    ")
                ));
            }
            if ran.code != 0 {
                break;
            }
        }
    }
    (run, refused)
}

/// Everything that a person may try in a scene.
fn tries(scene: &Scene) -> Vec<Vec<String>> {
    let mut all: Vec<String> = [
        "freeze job.yaml",
        "packet",
        "packet --for human",
        "resume",
        "run finish --status completed",
        "consume --as gate/novel/pride/ch01/reader_reaction",
        "consume --as other/consumer",
        "route",
        "handoff claim --class semantic_reviewer --worker w",
        "handoff open --class semantic_reviewer",
    ]
    .map(str::to_owned)
    .to_vec();
    for id in &scene.ids {
        all.extend(match id.as_bytes()[0] {
            b'j' => vec![
                format!("packet {id}"),
                format!("handoff open {id} --class semantic_reviewer"),
                format!("route {id}"),
                format!("route {id} --gate ci/gate"),
            ],
            b'h' => vec![
                format!("packet {id}"),
                format!("handoff claim {id} --class semantic_reviewer --worker w"),
                format!("handoff claim {id} --class specialist --worker w"),
                format!("export {id} --worker jane"),
                format!("handoff cancel {id}"),
                format!("handoff release {id} --revoke"),
            ],
            b'x' => vec![
                format!("consume {id} --as gate/novel/pride/ch01/reader_reaction"),
                format!("consume {id} --as other/consumer"),
            ],
            b's' => vec![
                format!("start --from {id}"),
                format!("session move {id} stale"),
                format!("session move {id} running"),
            ],
            b'f' => [
                "run settle -- true",
                "done settle",
                "clear settle --reason because",
                "check settle",
                "plan --key other --path canon.md --expect job.yaml",
            ]
            .map(|words| format!("effect {words}"))
            .to_vec(),
            _ => Vec::new(),
        });
    }
    all.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn walk(scene: &Scene) -> (usize, Vec<String>) {
    let (mut run, mut refused) = (0, Vec::new());
    let mut seen = BTreeSet::new();
    let mut follow_all = |project: &Project, from: &str, texts: Vec<String>, fresh: bool| {
        for text in texts {
            // In one unchanged state the same words are tried once.
            if fresh || seen.insert(text.clone()) {
                let (more, wrong) = follow(scene, project, from, &text);
                run += more;
                refused.extend(wrong);
            }
        }
    };
    follow_all(&scene.project, "status and show", named(&scene.project, &scene.ids), false);
    for line in tries(scene) {
        let there = copy(scene, &scene.project);
        let before = there.log();
        let arguments: Vec<&str> = line.iter().map(String::as_str).collect();
        let ran = there.nf(&arguments);
        let changed = there.log() != before;
        follow_all(&there, &line.join(" "), leads(&ran), changed);
    }
    (run, refused)
}

#[test]
fn every_command_that_leads_on_is_not_refused() {
    let scenes = scenes::all();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut told = Vec::new();
        while let Some(scene) = scenes.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            told.push(walk(scene));
        }
        told
    };
    let told: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    let run: usize = told.iter().map(|(run, _)| run).sum();
    let refused: BTreeSet<String> = told.into_iter().flat_map(|(_, refused)| refused).collect();
    let all: Vec<String> = refused.iter().cloned().collect();
    assert!(refused.is_empty(), "{} of {run} commands were refused:\n{}", refused.len(), all.join("\n"));
    assert!(run > 300, "only {run} commands were found in the texts");
}
