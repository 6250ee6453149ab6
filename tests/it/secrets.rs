//! An open packet's nonce, typed where it does not belong, is refused before it is written.

use crate::harness::{Packet, Project};

#[test]
fn a_nonce_stands_in_no_name_and_no_short_text() {
    let project = Project::new();
    project.start();
    project.nf(&["freeze", "job.yaml"]).expect(0);
    project.nf(&["handoff", "open", "--class", "semantic_reviewer"]).expect(0);
    let claim = ["handoff", "claim", "--class", "semantic_reviewer", "--worker", "w"];
    let packet = Packet::read(&project.nf(&claim).expect(0).stdout);
    let nonce = packet.nonce.as_str();
    let path = format!("ch01/{nonce}");
    let payload = format!("{{\"seen\": \"{nonce}\"}}");
    let before = project.log();
    for words in [
        &["run", "step", "--cursor", &path][..],
        &["run", "step", "--cursor", "ch01", "--op", nonce],
        &["start", "--resource", nonce, "--task", "review"],
        &["event", "put", "ci.observed", "--key", "k", "--payload", &payload],
        &["handoff", "fail", "--reason", nonce, "--nonce", nonce],
    ] {
        let refused = project.nf(words).expect(3);
        assert!(
            refused.stderr.contains("holds the nonce") || refused.stderr.contains("hold the nonce"),
            "{words:?}"
        );
        assert!(!refused.stderr.contains(nonce), "{words:?}: {}", refused.stderr);
    }
    assert!(before == project.log());
    project.nf(&["run", "step", "--cursor", "0123456789abcdefghjkmnpqrs"]).expect(0);
    project.nf(&["handoff", "renew", "--nonce", nonce]).expect(0);
}
