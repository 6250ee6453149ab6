//! Every command with the stage of a project that it starts from.

use super::*;

pub const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// How far a project is before the command that is tested.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Stage {
    Empty,
    Started,
    Frozen,
    Asked,
    Answered,
    Contested,
    Idle,
    Stale,
    Told,
    Planned,
    Written,
    Queued,
    Claimed,
    Carried,
}

pub use Stage::{
    Answered, Asked, Carried, Claimed, Contested, Empty, Frozen, Idle, Planned, Queued, Stale, Started, Told,
    Written,
};

pub struct Scene {
    pub project: Project,
    pub session: String,
    pub checkpoint: String,
    pub event: String,
    pub handoff: String,
    pub packet: Option<Packet>,
}

pub fn scene(stage: Stage) -> Scene {
    scene_in(Project::new(), stage)
}

/// The same in a furnished project.
pub fn scene_in(project: Project, stage: Stage) -> Scene {
    project.write("canon.md", "Canon.\n");
    project.write("delivery.json", crate::github::WORKFLOW);
    let session = if stage == Empty { String::new() } else { project.start() };
    let reached = |wanted: Stage| stage >= wanted && stage <= Contested;
    if reached(Frozen) || stage >= Queued {
        project.nf(&["freeze", "job.yaml"]).expect(0);
    }
    let handoff = if stage >= Queued { project.nf(OPEN).expect(0).line() } else { String::new() };
    let way = if stage == Claimed { CLAIM } else { &["packet"][..] };
    let out = reached(Asked) || stage == Claimed;
    let packet = out.then(|| Packet::read(&project.nf(way).expect(0).stdout));
    if let (true, Some(packet)) = (stage == Answered, &packet) {
        answer(&project, packet, "reject");
    }
    if let (true, Some(packet)) = (stage == Contested, &packet) {
        let invalid = packet.verdict("accept").replace("0.7", "7");
        recorded(&project, &["reply"], invalid.as_bytes(), 5, "semantic_invalid");
        answer(&project, packet, "reject");
    }
    if stage == Planned || stage == Written {
        project.nf(PLAN).expect(0);
    }
    if stage == Written {
        project.write("settled.md", CHAPTER);
    }
    if stage == Idle {
        project.nf(&["run", "finish", "--status", "completed"]).expect(0);
    }
    if stage == Stale {
        project.nf(&["session", "move", &session, "stale"]).expect(0);
    }
    if stage == Carried {
        crate::carry::answered(&project, &handoff, &["reject"]);
    }
    let checkpoint = match stage {
        Empty => String::new(),
        _ => shown(&project, &session, "/checkpoint").as_str().expect("an id").to_owned(),
    };
    let event = match stage {
        Told => done(&project, &["event", "put", "ci.observed", "--key", "k-0"])["event"].to_string(),
        _ => String::new(),
    };
    Scene { project, session, checkpoint, event: event.replace('"', ""), handoff, packet }
}

pub const PLAN: &[&str] =
    &["effect", "plan", "--key", "settle", "--path", "settled.md", "--expect", "ch01.md"];
pub const OPEN: &[&str] = &["handoff", "open", "--class", "semantic_reviewer"];
pub const CLAIM: &[&str] = &["handoff", "claim", "--class", "semantic_reviewer", "--worker", "ci-7"];

/// Every writing command with the stage it starts from; `S` stands for the session, `C` for its newest
/// checkpoint, `E` for an event, `H` for the queued handoff, `N` for the nonce that its worker holds.
pub const WRITERS: &[(Stage, &[&str])] = &[
    (Empty, &["start", "--resource", "novel/pride", "--task", "review"]),
    (Empty, &["session", "new", "--resource", "novel/pride", "--task", "review"]),
    (Started, &["session", "move", "S", "idle"]),
    (Started, &["run", "step", "--cursor", "ch01"]),
    (Started, &["run", "finish", "--status", "completed"]),
    (Started, &["run", "finish", "--status", "failed"]),
    (Started, &["resume", "--interrupted"]),
    (Started, &["checkpoint", "save", "--boundary", "other", "--authority", "canon=canon.md"]),
    (Started, DECLARE),
    (Started, &["capability", "probe", "git", "--family", "service_job", "--", "/usr/bin/env"]),
    (Started, &["freeze", "job.yaml"]),
    (Started, PLAN),
    (Planned, &["effect", "run", "settle", "--", "cp", "ch01.md", "settled.md"]),
    (Written, &["effect", "done", "settle"]),
    (Planned, &["effect", "clear", "settle", "--reason", "Another way was found."]),
    (Frozen, &["packet"]),
    (Frozen, &["packet", "--for", "human"]),
    (Frozen, &["packet", "--for", "agent"]),
    (Asked, &["reply", "-"]),
    (Answered, &["consume", "--as", GATE]),
    (Contested, &["consume", "--as", GATE, "--contested", "The first reply had a confidence of seven."]),
    (Idle, &["resume"]),
    (Stale, &["start", "--from", "S"]),
    (Stale, &["start", "--from", "C"]),
    (Empty, &["event", "put", "ci.observed", "--key", "k-1", "--payload", "{\"green\": true}"]),
    (Started, &["event", "put", "x.a", "--key", "k-1", "--artifact", "chapter=ch01.md", "--session", "S"]),
    (Empty, &["event", "import", "github", "delivery.json", "--name", "workflow_run", "--delivery", "d-1"]),
    (Told, &["consume", "E", "--as", "somebody"]),
    (Frozen, OPEN),
    (Frozen, &["handoff", "open", "--class", "specialist", "--gate", "ci/gate", "--wait"]),
    (Queued, &["handoff", "cancel", "H"]),
    (Claimed, &["handoff", "renew", "--nonce", "N"]),
    (Claimed, &["handoff", "release", "--nonce", "N"]),
    (Claimed, &["handoff", "release", "H", "--revoke"]),
    (Claimed, &["handoff", "fail", "--reason", "crash", "--nonce", "N"]),
    (Claimed, &["handoff", "complete", "-"]),
    (Queued, &["export", "H", "--worker", "jane"]),
    (Carried, &["import", "reject.json"]),
];

/// Every other command, and why an operation key means nothing to it.
pub const OTHERS: &[(&str, &str)] = &[
    ("init", "makes the store that keys are kept in; a second one is refused"),
    ("status", "reads"),
    ("show", "reads"),
    ("list", "reads"),
    ("log", "reads"),
    ("validate", "reads"),
    ("verify", "reads"),
    ("doctor", "mends what a key would be looked up in; a repeat finds nothing left to mend"),
    ("route", "writes only with a refusal; a repeat of that is tested beside it"),
    ("effect check", "reads"),
    ("contract list", "reads"),
    ("contract check", "reads"),
    #[cfg(feature = "mcp")]
    ("mcp", "serves the other commands; each call has a key of its own"),
    ("completions", "needs no store"),
    ("man", "needs no store"),
    ("lock-probe", "asks for a lock only"),
    (
        "work",
        "runs programs: what they answer is not known before; a key is refused, and a dry run asks nobody",
    ),
    ("keep", "becomes another program; run by work alone"),
    ("handoff claim", "gives a new nonce each time, as no record holds one; said apart below"),
];

impl Scene {
    pub fn arguments<'a>(&'a self, command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        let named = command.iter().map(|word| match *word {
            "S" => self.session.as_str(),
            "C" => self.checkpoint.as_str(),
            "E" => self.event.as_str(),
            "H" => self.handoff.as_str(),
            "N" => self.packet.as_ref().map_or("", |packet| &packet.nonce),
            word => word,
        });
        // What comes after `--` is another program's.
        let at = command.iter().position(|word| *word == "--").unwrap_or(command.len());
        let (own, rest) = (named.clone().take(at), named.skip(at));
        own.chain(more.iter().copied()).chain(rest).collect()
    }

    pub fn run(&self, command: &[&str], more: &[&str]) -> Ran {
        let reply = self.packet.as_ref().map(|packet| packet.verdict("reject")).unwrap_or_default();
        self.project.nf_with(&self.arguments(command, more), reply.as_bytes())
    }
}
