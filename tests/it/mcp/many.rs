//! Several servers on one store, and servers that are killed: no work twice, nothing acknowledged lost.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Server, document};
use crate::expect::{events_of, records};
use crate::faults::tools::{Random, count};
use crate::harness::{JOB, Packet, Project};

const SERVERS: usize = 8;

/// Queues so many questions by one server, all at once.
fn queued(project: &Project, number: u64) {
    let mut server = Server::begin(project, &[]);
    server.done("nf_start", &json!({"resource": "novel/pride", "task": "review"}));
    let jobs: Vec<i64> = (0..number)
        .map(|chapter| {
            let job = JOB.replace("novel/pride/ch01", &format!("novel/pride/ch{chapter}"));
            server.ask_tool("nf_freeze", &json!({"text": job}))
        })
        .collect();
    let opened: Vec<i64> = jobs
        .into_iter()
        .map(|id| {
            let job = document(&server.answer(id))["data"]["job"].clone();
            server.ask_tool("nf_handoff_open", &json!({"job": job, "class": "specialist"}))
        })
        .collect();
    for id in opened {
        let answer = document(&server.answer(id));
        assert_eq!(answer["ok"], true, "{answer}");
    }
}

/// Takes and answers until there is nothing left; gives the attempts that were answered.
fn drain(project: &Project, worker: usize) -> Vec<String> {
    let mut server = Server::begin(project, &["--tools", "nf_handoff_claim,nf_handoff_complete"]);
    let claim = json!({"class": "specialist", "worker": format!("worker-{worker}")});
    let mut done = Vec::new();
    loop {
        let claimed = server.call("nf_handoff_claim", &claim);
        if claimed["ok"] == false {
            assert_eq!(claimed["error"]["kind"], "pending", "{claimed}");
            return done;
        }
        let packet = Packet::read(claimed["data"]["packet"].as_str().expect("a packet"));
        server.done("nf_handoff_complete", &json!({"text": packet.verdict("accept")}));
        done.push(claimed["data"]["handoff"].as_str().expect("an id").to_owned());
    }
}

#[test]
fn many_servers_drain_one_queue_and_none_answers_twice() {
    // By hand: NF_TEST_HANDOFFS=2000.
    let number = count("NF_TEST_HANDOFFS", 48);
    let project = Project::new();
    queued(&project, number);
    let done: Vec<String> = std::thread::scope(|scope| {
        let project = &project;
        let workers: Vec<_> =
            (0..SERVERS).map(|worker| scope.spawn(move || drain(project, worker))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    assert_eq!(done.len() as u64, number);
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len() as u64, number, "none twice");
    assert_eq!(events_of(&project, "handoff.claimed").len() as u64, number);
    assert_eq!(events_of(&project, "result.stored").len() as u64, number);
    project.nf(&["verify"]).expect(0);
}

#[test]
fn a_server_that_is_killed_at_any_moment_loses_nothing_acknowledged() {
    let mut random = Random::new();
    let project = Project::new();
    project.start();
    let mut told: Vec<Value> = Vec::new();
    for round in 0..count("NF_TEST_ROUNDS", 12) {
        let mut server = Server::begin(&project, &[]);
        let asked: Vec<i64> = (0..200)
            .map(|number| server.ask_tool("nf_run_step", &json!({"cursor": format!("c{round}-{number}")})))
            .collect();
        std::thread::sleep(Duration::from_micros(random.next() % 60_000));
        server.child.kill().expect("killed");
        for id in asked {
            let Some(answer) = server.answered(id) else { break };
            let document = document(&answer);
            assert_eq!(document["ok"], true, "{document}");
            told.push(document["record"].clone());
        }
    }
    project.nf(&["run", "step", "--cursor", "after"]).expect(0);
    project.nf(&["verify"]).expect(0);
    let kept: Vec<Value> = records(&project)
        .iter()
        .map(|record| json!({"seq": record["seq"], "hash": record["hash"]}))
        .collect();
    for record in &told {
        let at = record["seq"].as_u64().expect("a number") as usize - 1;
        assert_eq!(kept.get(at), Some(record), "an acknowledged record is not there");
    }
    eprintln!("{} acknowledged, {} recorded", told.len(), kept.len());
}
