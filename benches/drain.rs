//! Counts the commands a second of workers that drain a queue, beside as many programs that only append at
//! the same time of day. `drain.sh` builds and calls it.
//!
//! `drain NF FLOOR PROJECT WORKERS`: PROJECT has a store with queued questions of the class
//! `semantic_reviewer`; FLOOR appends to a file beside it. Each turn drains a part of the queue and then runs
//! the floor as often, so that both see the same machine.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Handoffs of one turn.
const TURN: usize = 250;
/// The least part of the floor's commands a second that is good enough.
const AIM: f64 = 0.8;

/// Runs a program to its end; what it printed, or nothing where it ended with exit code 8.
fn run(program: &str, words: &[&str], folder: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_clear().stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Some(said),
        Some(8) => None,
        _ => panic!("{program} {words:?}: {said}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// What stands behind a word, up to the end of its line.
fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let at = text.find(word).unwrap_or_else(|| panic!("no {word} in {text}")) + word.len();
    text[at..].lines().next().unwrap_or_default()
}

/// The packet's own form, filled in.
fn answer(packet: &str) -> String {
    let form = packet.rfind("```json").expect("a form") + "```json".len();
    let form = packet[form..].split("```").next().expect("a form");
    form.replace("\"verdict\": \"\"", "\"verdict\": \"reject\"")
        .replace("\"evidence\": []", "\"evidence\": [\"Nobody came.\"]")
        .replace("\"confidence\": null", "\"confidence\": 0.8")
        .replace("\"provider\": \"\"", "\"provider\": \"canned\"")
        .replace("\"model\": \"\"", "\"model\": \"drain\"")
}

/// Claims, answers and consumes one question; whether there was one.
fn one(nf: &str, worker: usize, project: &Path) -> bool {
    let name = format!("w{worker}");
    let claim = ["handoff", "claim", "--class", "semantic_reviewer", "--worker", &name, "-q"];
    let Some(packet) = run(nf, &claim, project) else { return false };
    let file = format!("answer-{worker}.txt");
    std::fs::write(project.join(&file), answer(&packet)).expect("an answer");
    let result = run(nf, &["handoff", "complete", &file, "-q"], project).expect("a result");
    let gate = format!("gate/{}/{}", after(&packet, "\nsubject: "), after(&packet, "\nkind: "));
    let session = after(&packet, "\nsource session: ");
    run(nf, &["consume", result.trim(), "--as", &gate, "--session", session, "-q"], project);
    true
}

/// Does something as often as wanted, by several workers at once; how often it was done, and the seconds.
fn at_once(workers: usize, times: usize, act: impl Fn(usize) -> bool + Sync) -> (usize, f64) {
    let (left, done, begun) = (AtomicUsize::new(times), AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (left, done, act) = (&left, &done, &act);
            scope.spawn(move || {
                let fewer = |left: usize| left.checked_sub(1);
                let next = || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok();
                while next() && act(worker) {
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    (done.into_inner(), begun.elapsed().as_secs_f64())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [nf, floor, project, workers] = &arguments[..] else { panic!("drain NF FLOOR PROJECT WORKERS") };
    let (project, workers) = (Path::new(project), workers.parse().expect("a number"));
    let (mut drained, mut ratios, mut rates) = (0, Vec::new(), Vec::new());
    println!("| handoffs | nf, commands a second | floor | ratio |\n|---|---|---|---|");
    loop {
        let (done, taken) = at_once(workers, TURN, |worker| one(nf, worker, project));
        if done == 0 {
            break;
        }
        let append = |_| run(floor, &["floor.log"], project).is_some();
        let (appended, beside) = at_once(workers, 3 * done, append);
        let (rate, least) = (3.0 * done as f64 / taken, appended as f64 / beside);
        println!("| {done} | {rate:.0} | {least:.0} | {:.2} |", rate / least);
        drained += done;
        ratios.push(rate / least);
        rates.push(rate);
    }
    ratios.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    assert!(drained > 0, "the queue was empty");
    let (ratio, rate) = (ratios[ratios.len() / 2], rates[rates.len() / 2]);
    let missed = if ratio < AIM { format!("; short of {AIM}") } else { String::new() };
    println!("\n{drained} handoffs by {workers} workers:");
    println!("{rate:.0} commands a second, {ratio:.2} × floor{missed}");
    ExitCode::from(u8::from(ratio < AIM))
}
