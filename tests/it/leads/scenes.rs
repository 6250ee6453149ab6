//! The states that work can be in, each as a project that came there by commands.

use serde_json::{Value, json};

use crate::expect::done;
use crate::harness::{CHAPTER, JOB, Packet, Project};

const NOW: &str = "2026-01-01T08:00:00Z";
const CLASS: &str = "semantic_reviewer";

/// A state, with what can be named in it.
pub struct Scene {
    pub name: String,
    pub project: Project,
    pub variables: Vec<(String, String)>,
    pub ids: Vec<String>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let mut project = Project::in_memory();
        let mut variables = Vec::new();
        for (variable, value) in
            [("NF_NOW", NOW), ("NF_BOOT", "machine/boot/time/1000"), ("PATH", "/usr/local/bin:/usr/bin:/bin")]
        {
            project.set(variable, value);
            variables.push((variable.to_owned(), value.to_owned()));
        }
        project.nf(&["init", "--testing"]).expect(0);
        project.write("ch01.md", CHAPTER);
        project.write("canon.md", "old\n");
        project.write("draft.md", "new\n");
        project.write("job.yaml", JOB);
        project.write("new.yaml", JOB.replace("novel/pride/ch01", "novel/pride/new"));
        project.write("task.md", "Find three sources.\n");
        project.write("returns.yaml", "type: object\n");
        Self { name: name.to_owned(), project, variables, ids: Vec::new() }
    }

    fn set(&mut self, variable: &str, value: &str) {
        self.project.set(variable, value);
        self.variables.retain(|(name, _)| name != variable);
        self.variables.push((variable.to_owned(), value.to_owned()));
    }

    fn nf(&self, line: &str) -> Value {
        done(&self.project, &line.split(' ').collect::<Vec<_>>())
    }

    fn tried(&self, line: &str, code: i32) {
        self.project.nf(&line.split(' ').collect::<Vec<_>>()).expect(code);
    }

    /// Begins a session that every later command acts for.
    fn start(&mut self) -> String {
        let started = self.nf("start --resource novel/pride --task review");
        let session = started["session"].as_str().expect("an id").to_owned();
        self.set("NF_SESSION", &session);
        session
    }

    /// As much later.
    fn later(&mut self, days: u64) {
        self.set("NF_NOW", &format!("2026-01-{:02}T08:00:00Z", 1 + days));
        self.set("NF_BOOT", &format!("machine/boot/time/{}", 1000 + days * 86_400_000));
    }

    fn frozen(&mut self) -> String {
        let session = self.start();
        self.nf("freeze job.yaml");
        session
    }

    fn queued(&mut self, more: &str) -> String {
        let session = self.frozen();
        self.nf(&format!("handoff open --class {CLASS}{more}"));
        session
    }

    fn claim(&self) -> Packet {
        let claimed = self.nf(&format!("handoff claim --class {CLASS} --worker w"));
        Packet::read(claimed["packet"].as_str().expect("a packet"))
    }

    fn packet(&self) -> Packet {
        Packet::read(self.nf("packet")["packet"].as_str().expect("a packet"))
    }

    fn answer(&self, packet: &Packet, verdict: &str, code: i32) {
        self.project.nf_with(&["reply"], packet.verdict(verdict).as_bytes()).expect(code);
    }

    fn fail(&self, packet: &Packet, more: &str) {
        self.nf(&format!("handoff fail --reason crash --nonce {}{more}", packet.nonce));
    }

    /// With everything that can be named in it.
    fn whole(mut self) -> Self {
        for kind in ["session", "job", "handoff", "result", "effect"] {
            let page = done(&self.project, &["list", kind, "--limit", "50"]);
            for item in page["items"].as_array().into_iter().flatten() {
                if item["worker_of"].is_null() {
                    self.ids.push(item["id"].as_str().expect("an id").to_owned());
                }
            }
        }
        self
    }
}

type Build = fn(&mut Scene);

const SCENES: &[(&str, Build)] = &[
    ("nothing was begun", |_| {}),
    ("a session runs", |scene| drop(scene.start())),
    ("a question is frozen", |scene| drop(scene.frozen())),
    ("a packet is out", |scene| {
        scene.frozen();
        scene.packet();
    }),
    ("a form is out", |scene| {
        scene.frozen();
        scene.nf("packet --for human");
    }),
    ("a document for an agent is out", |scene| {
        scene.frozen();
        scene.nf("packet --for agent");
    }),
    ("a packet ran out", |scene| {
        scene.frozen();
        scene.packet();
        scene.later(8);
    }),
    ("a form ran out", |scene| {
        scene.frozen();
        scene.nf("packet --for human");
        scene.later(8);
    }),
    ("a packet ran out and was the last", |scene| {
        scene.queued(" --max-attempts 1");
        scene.packet();
        scene.later(8);
    }),
    ("queued", |scene| drop(scene.queued(""))),
    ("queued for later", |scene| drop(scene.queued(" --not-before 2026-01-05T00:00:00Z"))),
    ("queued by a session that is idle now", |scene| {
        scene.queued("");
        scene.nf("run finish --status completed");
    }),
    ("queued by a session that waits", |scene| drop(scene.queued(" --wait"))),
    ("leased", |scene| {
        scene.queued("");
        scene.claim();
    }),
    ("leased while the session waits", |scene| {
        scene.queued(" --wait");
        scene.claim();
    }),
    ("a lease ran out", |scene| {
        scene.queued("");
        scene.claim();
        scene.later(1);
    }),
    ("the last lease ran out", |scene| {
        scene.queued(" --max-attempts 1");
        scene.claim();
        scene.later(1);
    }),
    ("the last lease was seen to run out", |scene| {
        scene.queued(" --max-attempts 1");
        scene.claim();
        scene.later(1);
        scene.tried(&format!("handoff claim --class {CLASS} --worker w"), 8);
    }),
    ("failed and pausing", |scene| {
        scene.queued("");
        scene.fail(&scene.claim(), "");
    }),
    ("failed for good", |scene| {
        scene.queued("");
        scene.fail(&scene.claim(), " --no-retry");
    }),
    ("failed as often as it may", |scene| {
        scene.queued(" --max-attempts 1");
        scene.fail(&scene.claim(), "");
    }),
    ("failed for good, and the session idle", |scene| {
        scene.queued(" --max-attempts 1");
        scene.fail(&scene.claim(), "");
        scene.nf("run finish --status completed");
    }),
    ("cancelled", |scene| {
        let handoff = {
            scene.queued("");
            scene.nf("list handoff")["items"][0]["id"].clone()
        };
        scene.nf(&format!("handoff cancel {}", handoff.as_str().expect("an id")));
    }),
    ("exported", |scene| {
        scene.queued("");
        let handoff = scene.nf("list handoff")["items"][0]["id"].clone();
        scene.nf(&format!("export {} --worker jane", handoff.as_str().expect("an id")));
    }),
    ("an export ran out", |scene| {
        scene.queued("");
        let handoff = scene.nf("list handoff")["items"][0]["id"].clone();
        scene.nf(&format!("export {} --worker jane", handoff.as_str().expect("an id")));
        scene.later(8);
    }),
    ("five invalid replies", |scene| {
        scene.frozen();
        let packet = scene.packet();
        for _ in 0..5 {
            scene.project.nf_with(&["reply"], packet.answer(&json!({})).as_bytes()).expect(5);
        }
    }),
    ("answered", |scene| {
        scene.frozen();
        scene.answer(&scene.packet(), "reject", 0);
    }),
    ("answered while the session is idle", |scene| {
        scene.queued("");
        let packet = scene.claim();
        scene.nf("run finish --status completed");
        scene.answer(&packet, "accept", 0);
    }),
    ("rejected", |scene| {
        scene.frozen();
        scene.answer(&scene.packet(), "reject", 0);
        scene.nf("consume --as gate/novel/pride/ch01/reader_reaction");
    }),
    ("passed", |scene| {
        scene.queued("");
        scene.answer(&scene.claim(), "accept", 0);
        scene.nf("consume --as gate/novel/pride/ch01/reader_reaction");
    }),
    ("contested", |scene| drop(contested(scene))),
    ("contested, and asked by another session", |scene| {
        contested(scene);
        scene.start();
    }),
    ("contested, and the session idle", |scene| {
        contested(scene);
        scene.nf("run finish --status completed");
    }),
    ("judged for another session", |scene| {
        scene.frozen();
        scene.answer(&scene.packet(), "reject", 0);
        scene.frozen();
    }),
    ("judged for another session that is ended", |scene| {
        let first = scene.queued("");
        scene.answer(&scene.claim(), "accept", 0);
        scene.frozen();
        scene.nf(&format!("session move {first} terminated"));
    }),
    ("judged for another session that is idle", |scene| {
        let first = scene.queued("");
        scene.answer(&scene.claim(), "accept", 0);
        scene.nf(&format!("run finish --status completed --session {first}"));
        scene.frozen();
    }),
    ("judged and applied for another session", |scene| {
        scene.queued("");
        scene.answer(&scene.claim(), "accept", 0);
        scene.nf("consume --as gate/novel/pride/ch01/reader_reaction");
        scene.frozen();
    }),
    ("under review for another session", |scene| {
        scene.queued("");
        scene.claim();
        scene.frozen();
    }),
    ("a gate has left an answered question for another", |scene| {
        scene.queued("");
        scene.answer(&scene.claim(), "accept", 0);
        scene.nf("freeze new.yaml");
        let job = scene.nf("list job")["items"][0]["id"].clone();
        let job = job.as_str().expect("an id");
        scene.nf(&format!("handoff open {job} --class {CLASS} --gate gate/novel/pride/ch01/reader_reaction"));
    }),
    ("a session was left", |scene| {
        let session = scene.queued("");
        scene.nf(&format!("session move {session} stale"));
    }),
    ("a session was ended", |scene| {
        let session = scene.queued("");
        scene.nf(&format!("session move {session} terminated"));
    }),
    ("a session is completed", |scene| {
        let session = scene.queued("");
        scene.nf(&format!("session move {session} completed"));
    }),
    ("a session has failed", |scene| {
        scene.queued("");
        scene.nf("run finish --status failed");
    }),
    ("work without a question waits", |scene| drop(task(scene))),
    ("work without a question is leased", |scene| {
        task(scene);
        scene.nf("handoff claim --class specialist --worker w");
    }),
    ("work without a question is given up", |scene| {
        task(scene);
        let claimed = scene.nf("handoff claim --class specialist --worker w");
        let nonce = claimed["nonce"].as_str().expect("a nonce");
        scene.nf(&format!("handoff fail --reason crash --no-retry --nonce {nonce}"));
    }),
    ("a write is planned", |scene| plan(scene)),
    ("a write is uncertain", |scene| {
        plan(scene);
        scene.tried("effect run settle -- false", 7);
    }),
    ("a write was proved by nobody yet", |scene| {
        plan(scene);
        scene.tried("effect run settle -- false", 7);
        scene.project.write("canon.md", "new\n");
    }),
    ("a path holds something else", |scene| {
        plan(scene);
        scene.project.write("canon.md", "other\n");
    }),
    ("a write is done", |scene| {
        plan(scene);
        scene.nf("effect run settle -- cp draft.md canon.md");
    }),
    ("a write was given up", |scene| {
        plan(scene);
        scene.nf("effect clear settle --reason because");
    }),
];

/// Terms under which one family or none may answer.
const TERMS: &[&str] = &[
    "families: [human]",
    "families: [local_agent]",
    "families: [service_job]",
    "families: [mcp_worker, provider_api]",
    "families: [peer_chat]",
    "interactive: false",
    "interactive: false, families: [peer_chat, human]",
    "locality: local",
    "cost: [human]",
    "cost: [metered]",
];

/// An answer that follows another verdict which came too late.
fn contested(scene: &mut Scene) -> String {
    let session = scene.queued("");
    let first = scene.claim();
    scene.later(1);
    let second = scene.claim();
    scene.answer(&first, "reject", 3);
    scene.answer(&second, "accept", 0);
    session
}

fn task(scene: &mut Scene) -> String {
    let session = scene.start();
    scene.nf(
        "handoff open --class specialist --gate research/ch01 --instructions task.md --returns returns.yaml",
    );
    session
}

fn plan(scene: &mut Scene) {
    scene.start();
    scene.nf("effect plan --key settle --path canon.md --expect draft.md");
}

/// Every state.
pub fn all() -> Vec<Scene> {
    let built = SCENES.iter().map(|(name, build)| {
        let mut scene = Scene::new(name);
        build(&mut scene);
        scene.whole()
    });
    let termed = TERMS.iter().flat_map(|terms| {
        [("frozen", ""), ("queued", " --class semantic_reviewer")].map(|(word, open)| {
            let mut scene = Scene::new(&format!("{word} under {terms}"));
            let job = JOB.replace("min_grade: declared", &format!("min_grade: declared, {terms}"));
            scene.project.write("job.yaml", job);
            scene.frozen();
            if !open.is_empty() {
                scene.nf(&format!("handoff open{open}"));
            }
            scene.whole()
        })
    });
    let attested = {
        let mut scene = Scene::new("nobody can be good enough");
        scene.project.write("job.yaml", JOB.replace("min_grade: declared", "min_grade: attested"));
        scene.frozen();
        scene.whole()
    };
    built.chain(termed).chain([attested]).collect()
}
