//! A worker that speaks MCP: it takes a question by tools, sees nothing else, and its answer binds as one of
//! its family.

use serde_json::json;

use super::client::Server;
use crate::expect::{done, shown};
use crate::handoffs::CLASS;
use crate::harness::{JOB, Packet, Project};

const TOOLS: &str = "nf_handoff_claim,nf_handoff_renew,nf_handoff_complete,nf_handoff_fail";

#[test]
fn a_worker_claims_and_answers_by_tools_and_sees_nothing_else() {
    let project = Project::new();
    project.write("job.yaml", JOB.replace("min_grade: declared", "families: [mcp_worker]"));
    let session = project.start();
    let job = project.nf(&["freeze", "job.yaml"]).expect(0).line();
    let open = ["handoff", "open", &job, "--class", CLASS, "--gate", "ci/gate", "--wait"];
    let handoff = project.nf(&open).expect(0).line();
    let mut worker = Server::begin(&project, &["--tools", TOOLS]);
    // Another family is not what the job takes, and hears who may answer.
    let claim = json!({"class": CLASS, "worker": "agent-7"});
    let error = worker.refused("nf_handoff_claim", &claim, 8, "pending");
    let cause = error["cause"].as_str().unwrap_or_default();
    assert!(cause.contains("family service_job is not among mcp_worker"), "{error}");
    let claim = json!({"class": CLASS, "worker": "agent-7", "family": "mcp_worker"});
    let claimed = worker.done("nf_handoff_claim", &claim);
    let packet = Packet::read(claimed["packet"].as_str().expect("a packet"));
    assert_eq!(packet.handoff, handoff);
    let unknown = worker.request("tools/call", json!({"name": "nf_show", "arguments": {"id": job}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(worker.request("resources/list", json!({}))["error"]["code"], -32601);
    let nonce = json!({"nonce": packet.nonce, "ttl": "20m"});
    worker.done("nf_handoff_renew", &nonce);
    let answered = worker.done("nf_handoff_complete", &json!({"text": packet.verdict("reject")}));
    let result = answered["result"].as_str().expect("a result").to_owned();
    let (rest, status) = worker.end();
    assert!(rest.is_empty() && status.success(), "{rest:?} {status}");
    // At home it is a result like any other: bound, consumed once, and the session goes on.
    let provenance = shown(&project, &result, "/provenance");
    assert_eq!(provenance["family"], "mcp_worker", "{provenance}");
    assert_eq!(provenance["source_session"], session.as_str());
    let consumed = done(&project, &["consume", "--as", "ci/gate"]);
    assert_eq!((&consumed["application"], &consumed["source"]), (&json!("new"), &json!(result)));
    assert_eq!(done(&project, &["resume"])["gates"]["ci/gate"]["status"], "rejected");
}
