//! What a person finds in the morning: `status` with all that waits, and `show` with why.

use crate::expect::{done, done_with, names, shown};
use crate::handoffs::{claimed, queued};
use crate::harness::Project;

#[test]
fn everything_that_waits_is_there_with_its_command() {
    let mut project = Project::testing("2026-01-01T08:00:00Z");
    let (_, _, leased) = queued(&project, "novel/q1", &[]);
    let (data, _) = claimed(&project, &[]);
    assert_eq!(data["handoff"], leased.as_str());
    let (_, _, late) = queued(&project, "novel/q2", &["--not-before", "2026-01-02T00:00:00Z"]);
    let (_, lost, stuck) = queued(&project, "novel/q3", &["--max-attempts", "1"]);
    let (_, packet) = claimed(&project, &[]);
    done(&project, &["handoff", "fail", "--reason", "crash", "--nonce", &packet.nonce]);
    let (_, _, short) = queued(&project, "novel/q4", &["--ttl", "1m"]);
    claimed(&project, &[]);
    let (asking, _, relayed) = queued(&project, "novel/q5", &[]);
    done(&project, &["packet", &relayed, "--session", &asking]);
    let (judged, _, answered) = queued(&project, "novel/q6", &[]);
    let (_, packet) = claimed(&project, &[]);
    let result = done_with(&project, &["handoff", "complete"], packet.verdict("reject").as_bytes());
    let result = result["result"].as_str().expect("an id").to_owned();
    project.set("NF_NOW", "2026-01-01T08:05:00Z");
    let status = done(&project, &["status"]);
    let text = project.nf(&["status"]).expect(0).stdout;
    for (group, id, command) in [
        ("leased", &leased, format!("nf handoff release {leased} --revoke takes it back")),
        ("queued", &late, format!("nf handoff cancel {late} takes it back")),
        ("stuck", &stuck, format!("nf handoff open {lost} --class semantic_reviewer --max-attempts 2")),
        ("you", &relayed, format!("nf packet {relayed} shows the packet again")),
        ("you", &result, format!("nf consume {result} --as gate/novel/q6/reader_reaction")),
    ] {
        let sessions = status["sessions"].as_array().expect("sessions").iter();
        let matters = sessions.flat_map(|session| session["matters"].as_array().expect("matters"));
        let matter = matters.into_iter().find(|matter| matter["id"] == id.as_str());
        let matter = matter.unwrap_or_else(|| panic!("{id} in {status}"));
        assert_eq!(matter["group"], group, "{matter}");
        names(&matter["command"], &[&command]);
        assert!(text.contains(&command), "{command} in {text}");
    }
    for words in ["6 open sessions: 2 on you, ", "ci-7 holds it since ", "  waits on you:\n", "in 16 h"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(shown(&project, &answered, "/state"), "completed");
    // A gate that was refused waits on a person too, with the way of its repair.
    done(&project, &["consume", &result, "--as", "gate/novel/q6/reader_reaction", "--session", &judged]);
    let text = project.nf(&["status", "--session", &judged]).expect(0).stdout;
    names(&text.into(), &["rejected", "repair along repair.story, then nf freeze FILE"]);
    let again = done(&project, &["status", "--session", &asking]);
    let out = &again["sessions"][0]["outstanding"][0];
    assert_eq!((&out["stand"], &out["transport"]), (&"out".into(), &"chat".into()));
    assert_ne!(short, leased);
}

#[test]
fn what_is_shown_says_why() {
    let project = Project::new();
    let (session, _, handoff) = queued(&project, "novel/q1", &["--max-attempts", "2"]);
    let show = |id: &str| project.nf(&["show", id]).expect(0);
    let waits = show(&handoff);
    for words in ["stands: ready: waits for a semantic_reviewer", "queue: the next one", "attempts: 0 of 2"] {
        assert!(waits.stdout.contains(words), "{words} in {}", waits.stdout);
    }
    assert!(waits.stderr.contains(&format!("next: nf handoff claim {handoff}")), "{}", waits.stderr);
    let (data, packet) = claimed(&project, &[]);
    let attempt = data["attempt"].as_str().expect("an id").to_owned();
    let held = show(&handoff).stdout;
    for words in ["stands: leased: ci-7 holds it", &format!("attempt {attempt} (number 1, worker by ci-7)")] {
        assert!(held.contains(words), "{words} in {held}");
    }
    assert!(show(&attempt).stdout.contains("nobody else may claim its work"));
    done(&project, &["handoff", "release", "--nonce", &packet.nonce]);
    let over = show(&attempt).stdout;
    assert!(over.contains("it may no longer act (released)"), "{over}");
    let (_, packet) = claimed(&project, &[]);
    let result = done_with(&project, &["handoff", "complete"], packet.verdict("reject").as_bytes());
    let result = result["result"].as_str().expect("an id").to_owned();
    let judged = show(&handoff);
    names(&judged.stdout.clone().into(), &["stands: judged", &result, "is released", "is completed"]);
    let gate = "gate/novel/q1/reader_reaction";
    let of_result = show(&result);
    assert!(of_result.stderr.contains(&format!("next: nf consume {result} --as {gate}")));
    assert!(of_result.stdout.contains("independence: declared\n  ok   session"), "{}", of_result.stdout);
    let receipt = done(&project, &["consume", &result, "--as", gate, "--session", &session]);
    let receipt = receipt["receipt"].as_str().expect("an id").to_owned();
    let text = show(&receipt).stdout;
    for words in [
        format!("{gate} applied {result}, verdict reject, repair route repair.story"),
        format!("rests on: result {result} of job "),
        "history: 2 attempts opened, 1 attempt given back, 1 answer".to_owned(),
        "13 checks ran again when it was recorded, 0 failed".to_owned(),
    ] {
        assert!(text.contains(&words), "{words} in {text}");
    }
    assert!(show(&result).stdout.contains(&format!("applied by {gate}, receipt {receipt}")));
    let event = done(&project, &["event", "put", "ci.observed", "--key", "k", "--session", &session]);
    let event = event["event"].as_str().expect("an id");
    let text = show(event);
    names(&text.stdout.into(), &[&format!("belongs to session {session}"), "nobody has applied it"]);
    assert!(text.stderr.contains(&format!("next: nf consume {event} --as NAME")), "{}", text.stderr);
}
