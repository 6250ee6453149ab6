//! Resuming: every check alone stops, and all are shown.

use super::*;
use crate::model::check::failed;
use crate::model::checkpoint::{
    ArtifactPlace, BindingKind, BoundApproval, BoundArtifact, BoundAuthority, BoundCompatibility, Boundary,
};
use crate::model::run::RunStatus;
use crate::model::session::{ResumePolicy, Status};
use crate::rules::resume::{Difference, NAMES, Observed, Resume, Resumed, Returned, resume};
use crate::rules::session::{finish, save};

fn bindings() -> Bindings {
    let hash = Hash::of(b"recorded");
    let artifact = |text: &str, binding| BoundArtifact {
        name: name(text),
        path: format!("{text}.md"),
        lines: None,
        hash,
        binding,
    };
    Bindings {
        artifacts: vec![artifact("chapter", BindingKind::Exact), artifact("notes", BindingKind::Context)],
        authority: vec![BoundAuthority { name: name("canon"), path: "canon.md".into(), hash }],
        compatibility: vec![BoundCompatibility {
            name: name("framework"),
            path: "framework.json".into(),
            pointer: Some("/version".into()),
            hash,
        }],
        approvals: vec![BoundApproval {
            reference: name("editor"),
            path: "approval.txt".into(),
            hash,
            expires_at: Some(Time::from_micros(2_000_000_000_000_000)),
        }],
        capabilities: Vec::new(),
        effects: Vec::new(),
    }
}

fn place(text: &str) -> ArtifactPlace {
    (name(text), format!("{text}.md"), None)
}

fn observed() -> Observed {
    let same = || Ok(Hash::of(b"recorded"));
    Observed {
        artifacts: [("chapter", (same(), None)), ("notes", (same(), None))]
            .into_iter()
            .map(|(key, seen)| (place(key), seen))
            .collect(),
        authority: [(name("canon"), same())].into(),
        compatibility: [(name("framework"), same())].into(),
        approvals: [(name("editor"), same())].into(),
    }
}

/// An idle session whose newest checkpoint holds everything.
pub(super) fn idle() -> (World, SessionId) {
    let mut world = World::new();
    let session = world.start();
    let (course, run) = (world.course(&session), world.run(&session));
    let point = (Boundary::BeforeSettlement, Some(name("ch01/settle")));
    world.act(|turn, _| save(turn, course, run, point, bindings(), None)).unwrap();
    let course = world.course(&session);
    world.act(|_, _| finish(course, false, None)).unwrap();
    (world, session)
}

pub(super) fn input(world: &World, id: &SessionId) -> Resume {
    let session = world.get_session(id);
    Resume {
        run: Some(world.run(id)),
        checkpoint: session.checkpoint.as_ref().and_then(|id| world.state.get(id)),
        bindings: bindings(),
        observed: observed(),
        interrupted: false,
        expected_run: None,
        expected_version: None,
        outstanding: world
            .state
            .outstanding(id)
            .into_iter()
            .map(|handoff| {
                let attempt = handoff.attempt.as_ref().and_then(|id| world.state.get(id));
                (handoff, attempt)
            })
            .collect(),
        returned: Vec::new(),
        evidence: Default::default(),
        effects: Vec::new(),
        carried: bindings(),
        session,
    }
}

pub(super) fn resumed(world: &mut World, input: Resume) -> Result<Resumed> {
    world.act(|turn, _| resume(turn, input))
}

#[test]
fn an_unchanged_session_goes_on_at_its_cursor_in_a_new_run() {
    let (mut world, session) = idle();
    let old = world.run(&session);
    let input = input(&world, &session);
    let answer = resumed(&mut world, input).unwrap();
    let names: Vec<&str> = answer.checks.iter().map(|check| check.check.as_str()).collect();
    assert_eq!(names, NAMES);
    assert_eq!(failed(&answer.checks), Vec::<String>::new());
    assert_eq!((answer.cursor, answer.status), (name("ch01/settle"), Status::Running));
    let run = world.run(&session);
    assert_eq!((run.resumed_from, run.context_manifest.len()), (Some(old.id), 2));
}

#[test]
fn each_change_stops_by_its_own_check_and_nothing_is_written() {
    let other = || Ok(Hash::of(b"changed"));
    let table: Vec<(&[&str], Box<dyn Fn(&mut Resume)>)> = vec![
        (
            &["artifacts"],
            Box::new(move |input| {
                input.observed.artifacts.insert(place("chapter"), (other(), Some(Difference::Text)));
            }),
        ),
        (
            &["context"],
            Box::new(|input| {
                input.observed.artifacts.insert(place("notes"), (Err("gone".into()), None));
            }),
        ),
        (
            &["authority"],
            Box::new(move |input| {
                input.observed.authority.insert(name("canon"), other());
            }),
        ),
        (
            &["compatibility"],
            Box::new(move |input| {
                input.observed.compatibility.insert(name("framework"), other());
            }),
        ),
        (
            &["approvals"],
            Box::new(move |input| {
                input.observed.approvals.insert(name("editor"), other());
            }),
        ),
        (
            &["approvals"],
            Box::new(|input| {
                input.bindings.approvals[0].expires_at = Some(Time::from_micros(1));
            }),
        ),
        (
            &["pending"],
            Box::new(|input| {
                let returned = Returned {
                    result: "x-000000000000".parse().unwrap(),
                    gate: name("gate"),
                    consumed: false,
                    failed: vec!["schema".into()],
                };
                input.returned.push(returned);
            }),
        ),
        (
            &["checkpoint"],
            Box::new(|input| {
                input.checkpoint.as_mut().unwrap().run = "r-000000000000".parse().unwrap();
            }),
        ),
    ];
    for (wanted, change) in table {
        let (mut world, session) = idle();
        let mut changed = input(&world, &session);
        change(&mut changed);
        let before = world.state.clone();
        let refused = resumed(&mut world, changed).expect_err("a refusal");
        assert_eq!((refused.kind, &refused.details["failed"]), (Kind::Stale, &json!(wanted)));
        assert_eq!(refused.details["checks"].as_array().unwrap().len(), 11, "all are shown");
        assert!(refused.next_step().contains("nf session move") && refused.next_step().contains("--from"));
        assert_eq!(world.state, before);
    }
}

#[test]
fn a_changed_context_artifact_is_listed_for_rereading() {
    let (mut world, session) = idle();
    let mut changed = input(&world, &session);
    changed.observed.artifacts.insert(place("notes"), (Ok(Hash::of(b"changed")), Some(Difference::Text)));
    let answer = resumed(&mut world, changed).unwrap();
    assert_eq!(answer.reread, [name("notes")]);
    assert_eq!(answer.context[1].hash, Hash::of(b"changed"));
}

#[test]
fn a_difference_that_nobody_sees_is_named_and_still_blocks() {
    for (before, after, difference, words) in [
        ("a\nb\n", "a\r\nb\r\n", Difference::LineEndings, "line endings"),
        ("caf\u{e9}\n", "cafe\u{301}\n", Difference::Normalisation, "normalisation"),
        ("a\n", "b\n", Difference::Text, "want"),
    ] {
        assert_eq!(Difference::between(before.as_bytes(), after.as_bytes()), difference);
        let (mut world, session) = idle();
        let mut changed = input(&world, &session);
        changed.observed.artifacts.insert(place("chapter"), (Ok(Hash::of(b"changed")), Some(difference)));
        let refused = resumed(&mut world, changed).expect_err("a refusal");
        assert_eq!(refused.kind, Kind::Stale);
        assert!(refused.cause.unwrap().contains(words));
    }
}

#[test]
fn outstanding_work_is_exit_8_and_a_change_beside_it_exit_9() {
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    world.packet(&session, &job, Transport::Chat).unwrap();
    let waiting = input(&world, &session);
    assert_eq!(kind(resumed(&mut world, waiting)), Kind::Pending);
    let mut both = input(&world, &session);
    both.observed.authority.insert(name("canon"), Ok(Hash::of(b"changed")));
    assert_eq!(kind(resumed(&mut world, both)), Kind::Stale);
}

#[test]
fn a_run_that_a_dead_shell_left_is_interrupted_openly() {
    let mut world = World::new();
    let session = world.start();
    let old = world.run(&session);
    let plain = input(&world, &session);
    let refused = resumed(&mut world, plain).expect_err("a refusal");
    assert_eq!(refused.kind, Kind::IllegalTransition);
    assert!(refused.next_step().contains("--interrupted"));
    let mut openly = input(&world, &session);
    openly.interrupted = true;
    resumed(&mut world, openly).unwrap();
    assert_eq!(world.words()[..4], ["run.ended", "session.moved", "session.moved", "run.started"]);
    let ended: Run = world.state.get(&old.id).unwrap();
    assert_eq!(ended.status, RunStatus::Interrupted);
}

#[test]
fn what_may_not_resume_says_the_legal_way() {
    let (world, session) = idle();
    let table: Vec<(Kind, Box<dyn Fn(&mut Resume)>)> = vec![
        (Kind::CannotResume, Box::new(|input| input.session.resume_policy = ResumePolicy::Forbidden)),
        (Kind::IllegalTransition, Box::new(|input| input.session.status = Status::Completed)),
        (Kind::IllegalTransition, Box::new(|input| input.session.status = Status::Stale)),
        (Kind::IllegalTransition, Box::new(|input| input.session.status = Status::Terminated)),
        (Kind::CannotResume, Box::new(|input| input.session.status = Status::Created)),
        (Kind::CannotResume, Box::new(|input| input.checkpoint = None)),
        (
            Kind::OlderCheckpoint,
            Box::new(|input| {
                input.checkpoint.as_mut().unwrap().id = "c-000000000000".parse().unwrap();
            }),
        ),
        (
            Kind::CannotResume,
            Box::new(|input| {
                input.checkpoint.as_mut().unwrap().session = "s-000000000000".parse().unwrap();
            }),
        ),
        (
            Kind::NotCurrentRun,
            Box::new(|input| {
                input.expected_run = Some("r-000000000000".parse().unwrap());
            }),
        ),
        (Kind::VersionMismatch, Box::new(|input| input.expected_version = Some(99))),
    ];
    for (wanted, change) in table {
        let mut changed = input(&world, &session);
        change(&mut changed);
        let mut here = World::new();
        here.state = world.state.clone();
        let refused = resumed(&mut here, changed).expect_err("a refusal");
        assert_eq!((refused.kind, refused.kind.exit()), (wanted, 3));
    }
}

#[test]
fn capabilities_of_outstanding_work_need_current_evidence() {
    use crate::model::job::Family;
    use crate::rules::capability::{Stated, declare};
    let mut world = World::new();
    let session = world.start();
    let job = world.freeze(&session, JOB, "text\n");
    world.packet(&session, &job, Transport::Chat).unwrap();
    let stated = |available| {
        let mut stated = Stated::least(name("vision"), Family::PeerChat);
        stated.evidence.available = available;
        Stated { expires_ms: Some(60_000), ..stated }
    };
    let asked = |world: &mut World, outstanding: bool| {
        let mut input = input(world, &session);
        input.bindings.capabilities = vec![name("vision")];
        let evidence = world.state.capability("vision");
        input.evidence = evidence.map(|evidence| (evidence.name.clone(), evidence)).into_iter().collect();
        if !outstanding {
            input.outstanding.clear();
        }
        let checks =
            crate::rules::bindings::checks(&input, &input.checkpoint.clone().unwrap(), world.now.wall);
        let check = checks.into_iter().find(|check| check.check == "capabilities").unwrap();
        (check.ok, check.got, resumed(world, input).map_err(|error| error.kind).err())
    };
    let missing = asked(&mut world, true);
    assert_eq!(missing, (false, "vision: no evidence".to_owned(), Some(Kind::Stale)));
    world.act(|turn, _| declare(turn, stated(true))).unwrap();
    let held = asked(&mut world, true);
    assert_eq!(held, (true, "1 with current evidence".to_owned(), Some(Kind::Pending)));
    world.act(|turn, _| declare(turn, stated(false))).unwrap();
    assert_eq!((asked(&mut world, true).0, asked(&mut world, true).2), (false, Some(Kind::Stale)));
    world.act(|turn, _| declare(turn, stated(true))).unwrap();
    world.pass(60_000);
    let ended = asked(&mut world, true);
    assert!(!ended.0 && ended.1.contains("expired at"), "{ended:?}");
    assert_eq!(ended.2, Some(Kind::Stale));
    let returned = asked(&mut world, false);
    assert_eq!((returned.0, returned.2), (true, None), "work that came back needs none");
}
