//! Routing: each family by each requirement, preferences, gates; and what evidence may say.

use super::*;
use crate::model::capability::{Capability, Currency, Proof};
use crate::model::job::{Cost, Family, Locality, ResultScope};
use crate::model::run::GateStatus;
use crate::rules::capability::{
    DECLARED_MS, MAX_MODELS, MAX_MS, MAX_TEXT, PROBED_MS, Probed, Stated, declare, probe,
};
use crate::rules::routing::{Gated, Obstacle, Route, Routed, resolve, resolve_for, routes};

use Family::{Human, LocalAgent, LocalModel, McpWorker, PeerChat, ProviderApi, ServiceJob};
use Obstacle::{Evidence, Independence, Interaction, ModelExecution, Models, Permission};

/// The five that need evidence.
const PROVED: [Family; 5] = [LocalAgent, ProviderApi, LocalModel, McpWorker, ServiceJob];

/// Evidence that meets every demand.
fn best(text: &str, family: Family) -> Stated {
    let mut stated = Stated::least(name(text), family);
    stated.evidence = Capability {
        permission_class: ResultScope::Evaluation,
        cost: Cost::Free,
        interactive: false,
        executes_model: true,
        isolated_invocation: true,
        locality: Locality::Local,
        models: vec!["m1".to_owned()],
        ..stated.evidence
    };
    stated
}

fn changed(mut stated: Stated, change: impl Fn(&mut Capability)) -> Stated {
    change(&mut stated.evidence);
    stated
}

impl World {
    fn declare(&mut self, stated: Stated) -> Result<Capability> {
        self.act(|turn, _| declare(turn, stated))
    }

    fn declare_all(&mut self) {
        for family in PROVED {
            self.declare(best(&format!("the-{family}"), family)).unwrap();
        }
    }

    fn known(&self) -> Vec<Capability> {
        self.state.capabilities().map(|seen| seen.capability).collect()
    }

    fn routes(&self, job: &Job, preferences: &[Family]) -> Vec<Route> {
        routes(job, &self.known(), preferences, self.now.wall)
    }
}

fn job_of(world: &mut World, execution: &str, scope: &str) -> Job {
    let session = world.start();
    let permissions = format!(r#""permissions": {{"result_scope": "{scope}"}}, "execution""#);
    let text = JOB.replace(r#""execution""#, &permissions);
    world.freeze(&session, &text.replace(r#"{"independent": true}"#, execution), "text\n")
}

/// Why a family may not answer, without words.
fn obstacles(routes: &[Route], family: Family) -> Vec<Obstacle> {
    let route = routes.iter().find(|route| route.family == family).unwrap();
    assert_eq!(route.eligible, route.reasons.is_empty());
    assert_eq!(route.eligible, route.rank.is_some());
    assert!(route.eligible || route.capabilities.is_empty());
    let mut found: Vec<Obstacle> = route.reasons.iter().map(|reason| reason.obstacle).collect();
    found.dedup();
    found
}

#[test]
fn all_seven_families_are_eligible_where_each_is_there() {
    let mut world = World::new();
    let job = job_of(&mut world, r#"{"independent": true}"#, "diagnostic");
    world.declare_all();
    let all = world.routes(&job, &[]);
    let order: Vec<(Family, Option<u32>)> = all.iter().map(|route| (route.family, route.rank)).collect();
    let wanted: Vec<_> = Family::ALL.iter().zip(1..).map(|(family, rank)| (*family, Some(rank))).collect();
    assert_eq!(order, wanted);
    for route in &all {
        let named: Vec<String> = route.capabilities.iter().map(ToString::to_string).collect();
        let wanted =
            if PROVED.contains(&route.family) { vec![format!("the-{}", route.family)] } else { vec![] };
        assert_eq!(named, wanted);
    }
}

#[test]
fn each_demand_of_a_job_refuses_exactly_the_families_that_cannot_meet_it() {
    let local = Obstacle::Locality;
    let dear = Obstacle::Cost;
    let table: Vec<(&str, &str, Vec<(Family, Obstacle)>)> = vec![
        (
            r#"{"independent": true, "min_grade": "attested"}"#,
            "diagnostic",
            vec![(PeerChat, Independence), (Human, Independence), (McpWorker, Independence)],
        ),
        (r#"{"interactive": false}"#, "diagnostic", vec![(PeerChat, Interaction), (Human, Interaction)]),
        (r#"{"cost": ["free"]}"#, "diagnostic", vec![(Human, dear)]),
        (
            r#"{"cost": ["human"]}"#,
            "diagnostic",
            [PeerChat].into_iter().chain(PROVED).map(|family| (family, dear)).collect(),
        ),
        (r#"{"locality": "local"}"#, "diagnostic", vec![(PeerChat, local)]),
        (r#"{"models": ["m1", "m2"]}"#, "evaluation", vec![]),
        (r#"{"models": ["m2"]}"#, "evaluation", PROVED.map(|family| (family, Models)).to_vec()),
    ];
    for (terms, scope, refused) in table {
        let mut world = World::new();
        let job = job_of(&mut world, terms, scope);
        world.declare_all();
        let all = world.routes(&job, &[]);
        for family in Family::ALL {
            let wanted: Vec<Obstacle> =
                refused.iter().filter(|(one, _)| one == family).map(|(_, obstacle)| *obstacle).collect();
            assert_eq!(obstacles(&all, *family), wanted, "{terms}: {family}");
        }
    }
    for family in Family::ALL {
        let mut world = World::new();
        let job = job_of(&mut world, &format!(r#"{{"families": ["{family}"]}}"#), "diagnostic");
        world.declare_all();
        let all = world.routes(&job, &[]);
        for other in Family::ALL {
            let wanted = if other == family { vec![] } else { vec![Permission] };
            assert_eq!(obstacles(&all, *other), wanted, "{family} alone: {other}");
        }
    }
}

/// A demand with evidence that meets all but it, and what then stands in the way.
type Lack = (Obstacle, fn(&mut Stated));

const LACKS: &[Lack] = &[
    (Evidence, |stated| stated.evidence.available = false),
    (Permission, |stated| stated.evidence.permission_class = ResultScope::Observation),
    (Independence, |stated| stated.evidence.isolated_invocation = false),
    (Interaction, |stated| stated.evidence.interactive = true),
    (ModelExecution, |stated| stated.evidence.executes_model = false),
    (Obstacle::Cost, |stated| stated.evidence.cost = Cost::Plan),
    (Obstacle::Locality, |stated| stated.evidence.locality = Locality::Any),
    (Models, |stated| stated.evidence.models = vec!["m2".to_owned()]),
    (Models, |stated| stated.evidence.models.clear()),
];

#[test]
fn a_grade_alone_asks_for_a_separate_invocation() {
    for (terms, wanted) in [
        (r#"{"independent": false}"#, vec![]),
        (r#"{"independent": false, "min_grade": "declared"}"#, vec![Independence]),
        (r#"{"independent": true, "min_grade": "declared"}"#, vec![Independence]),
    ] {
        let mut world = World::new();
        let job = job_of(&mut world, terms, "diagnostic");
        world.declare(changed(best("one", LocalAgent), |one| one.isolated_invocation = false)).unwrap();
        assert_eq!(obstacles(&world.routes(&job, &[]), LocalAgent), wanted, "{terms}");
    }
}

/// Terms that ask for everything.
const STRICT: &str = r#"{"independent": true, "interactive": false, "cost": ["free"], "locality": "local",
    "models": ["m1"]}"#;

#[test]
fn each_family_is_refused_for_each_thing_that_its_evidence_lacks_and_for_no_other() {
    for family in PROVED {
        for (obstacle, change) in LACKS {
            let mut world = World::new();
            let job = job_of(&mut world, STRICT, "evaluation");
            world.declare(best("one", family)).unwrap();
            assert_eq!(obstacles(&world.routes(&job, &[]), family), [], "{family}");
            let mut less = best("one", family);
            change(&mut less);
            world.declare(less).unwrap();
            let all = world.routes(&job, &[]);
            assert_eq!(obstacles(&all, family), [*obstacle], "{family}");
            let route = all.iter().find(|route| route.family == family).unwrap();
            assert_eq!(route.reasons[0].capability, Some(name("one")));
            for other in PROVED.iter().filter(|other| **other != family) {
                assert_eq!(obstacles(&all, *other), [Evidence], "{other} has none");
            }
        }
    }
}

#[test]
fn all_reasons_are_told_and_not_only_the_first() {
    let mut world = World::new();
    let strict = STRICT.replace("\"independent\"", "\"families\": [\"human\"], \"independent\"");
    let job = job_of(&mut world, &strict, "evaluation");
    let nothing = changed(Stated::least(name("one"), LocalAgent), |one| one.available = false);
    world.declare(nothing).unwrap();
    let all = world.routes(&job, &[]);
    let found = obstacles(&all, LocalAgent);
    assert_eq!(
        found,
        [
            Permission,
            Evidence,
            Permission,
            Independence,
            Interaction,
            ModelExecution,
            Obstacle::Cost,
            Obstacle::Locality,
            Models
        ]
    );
    let refused = resolve(&State::default(), &job, all, None).unwrap_err();
    assert_eq!(refused.kind, Kind::ExecutionUnavailable);
    let cause = refused.cause.unwrap();
    for family in Family::ALL {
        assert!(cause.contains(family.word()), "{family} in {cause}");
    }
    for obstacle in Obstacle::ALL {
        assert!(cause.contains(obstacle.word()), "{obstacle} in {cause}");
    }
}

#[test]
fn a_name_says_nothing_and_missing_or_ended_evidence_is_none() {
    let mut world = World::new();
    let job = job_of(&mut world, r#"{"independent": true}"#, "diagnostic");
    // Named like a model, and nothing is stated of it.
    world.declare(Stated::least(name("claude-code"), LocalAgent)).unwrap();
    let found = obstacles(&world.routes(&job, &[]), LocalAgent);
    assert_eq!(found, [Independence, ModelExecution]);
    world.declare(best("one", LocalModel)).unwrap();
    world.pass(DECLARED_MS - 1);
    assert_eq!(obstacles(&world.routes(&job, &[]), LocalModel), []);
    world.pass(1);
    assert_eq!(obstacles(&world.routes(&job, &[]), LocalModel), [Evidence]);
    let short = Stated { expires_ms: Some(1000), ..best("one", LocalModel) };
    world.declare(short).unwrap();
    assert_eq!(obstacles(&world.routes(&job, &[]), LocalModel), []);
    world.pass(1000);
    assert_eq!(obstacles(&world.routes(&job, &[]), LocalModel), [Evidence]);
    assert_eq!(obstacles(&world.routes(&job, &[]), PeerChat), [], "a chat needs none");
}

#[test]
fn the_newest_evidence_of_a_name_counts_and_one_of_a_family_is_enough() {
    let mut world = World::new();
    let job = job_of(&mut world, r#"{"independent": true}"#, "diagnostic");
    world.declare(best("one", LocalAgent)).unwrap();
    world.declare(changed(best("one", LocalAgent), |one| one.available = false)).unwrap();
    assert_eq!(world.known().len(), 1);
    assert_eq!(obstacles(&world.routes(&job, &[]), LocalAgent), [Evidence]);
    world.declare(best("two", LocalAgent)).unwrap();
    let all = world.routes(&job, &[]);
    let route = all.iter().find(|route| route.family == LocalAgent).unwrap();
    assert_eq!((route.eligible, route.capabilities.as_slice()), (true, &[name("two")][..]));
}

#[test]
fn preferences_order_what_is_eligible_and_make_nothing_so() {
    let mut world = World::new();
    let job = job_of(&mut world, r#"{"independent": true, "interactive": false}"#, "diagnostic");
    world.declare(best("api", ProviderApi)).unwrap();
    world.declare(best("agent", LocalAgent)).unwrap();
    for (preferences, wanted) in [
        (vec![], [LocalAgent, ProviderApi]),
        (vec![ProviderApi], [ProviderApi, LocalAgent]),
        (vec![PeerChat, LocalModel, ProviderApi, LocalAgent], [ProviderApi, LocalAgent]),
    ] {
        let all = world.routes(&job, &preferences);
        let eligible: Vec<Family> =
            all.iter().take_while(|route| route.eligible).map(|route| route.family).collect();
        assert_eq!(eligible, wanted, "{preferences:?}");
        assert_eq!(all.iter().filter(|route| route.eligible).count(), 2);
        assert_eq!(obstacles(&all, PeerChat), [Interaction]);
    }
}

fn gated(world: &mut World, job: &Job, session: &SessionId, gate: &str) -> Result<Routed> {
    let run = world.run(session);
    let routes = world.routes(job, &[]);
    world.act(|turn, _| resolve_for(turn, job, routes, &Gated { run, gate: name(gate) }))
}

#[test]
fn a_gate_without_a_route_is_semantic_pending_and_nothing_else_changes() {
    let mut world = World::new();
    let terms = r#"{"interactive": false, "families": ["local_agent"]}"#;
    let session = world.start();
    let job = world.freeze(&session, &JOB.replace(r#"{"independent": true}"#, terms), "text\n");
    let before = (world.get_session(&session), world.run(&session));
    assert_eq!(kind(gated(&mut world, &job, &session, "gate/a")), Kind::ExecutionUnavailable);
    assert_eq!(world.words(), ["gate.moved"]);
    let run = world.run(&session);
    assert_eq!(run.pending.gates[&name("gate/a")].status, GateStatus::SemanticPending);
    assert_eq!((world.get_session(&session), run.status), (before.0, before.1.status));
    assert_eq!(kind(gated(&mut world, &job, &session, "gate/a")), Kind::ExecutionUnavailable);
    // The gate is semantic_pending already: a refusal that records nothing.
    let state = world.state.clone();
    let _ = gated(&mut world, &job, &session, "gate/a");
    assert!(world.state == state);
    world.declare(best("one", LocalAgent)).unwrap();
    let state = world.state.clone();
    assert!(gated(&mut world, &job, &session, "gate/a").is_ok());
    assert!(world.state == state, "a route that is there writes nothing");
}

#[test]
fn a_gate_that_waits_for_an_answer_stays_and_a_judged_question_needs_no_route() {
    let mut world = World::new();
    let terms = r#"{"interactive": false, "families": ["local_agent"]}"#;
    let session = world.start();
    let job = world.freeze(&session, &JOB.replace(r#"{"independent": true}"#, terms), "text\n");
    // A packet is never held back by evidence.
    let sent = world.packet_for(&session, &job, Transport::Agent, Some(name("gate/a"))).unwrap();
    let state = world.state.clone();
    assert_eq!(kind(gated(&mut world, &job, &session, "gate/a")), Kind::ExecutionUnavailable);
    assert!(world.state == state);
    let answer = world.answer(&sent, "reject");
    world.reply(&answer).unwrap();
    let state = world.state.clone();
    assert_eq!(kind(gated(&mut world, &job, &session, "gate/a")), Kind::AlreadyJudged);
    assert!(world.state == state);
}

#[test]
fn evidence_says_what_it_rests_on_and_when_it_ends() {
    let mut world = World::new();
    let declared = world.declare(best("one", LocalAgent)).unwrap();
    assert_eq!((declared.proof, declared.source.as_str()), (Proof::Declared, "command line"));
    assert_eq!(declared.expires_at, declared.observed_at.plus_millis(DECLARED_MS));
    let seen =
        |answer| Probed { source: "/usr/bin/tool".to_owned(), answer, models: Vec::new(), fix: "install it" };
    let good = seen(Ok("tool 1\u{1b}[31m".to_owned()));
    let probed = world.act(|turn, _| probe(turn, best("two", LocalAgent), good)).unwrap();
    assert_eq!((probed.proof, probed.source.as_str()), (Proof::Probed, "/usr/bin/tool"));
    assert_eq!((probed.available, probed.detail.as_deref()), (true, Some("tool 1[31m")));
    assert_eq!(probed.expires_at, probed.observed_at.plus_millis(PROBED_MS));
    let secret = seen(Ok(format!("tool ghp_{}", "a1".repeat(18))));
    let probed = world.act(|turn, _| probe(turn, best("two", LocalAgent), secret)).unwrap();
    assert!(!probed.detail.unwrap().contains("ghp_"));
    let bad = seen(Err("it is not on PATH".to_owned()));
    assert_eq!(
        kind(world.act(|turn, _| probe(turn, best("two", LocalAgent), bad))),
        Kind::ExecutionUnavailable
    );
    let recorded = world.state.capability("two").unwrap();
    assert_eq!(recorded.currency(world.now.wall), Currency::Unavailable);
}

#[test]
fn what_may_not_be_kept_is_refused() {
    let secret = format!("ghp_{}", "a1".repeat(18));
    let table: Vec<(Kind, Box<dyn Fn(&mut Stated)>)> = vec![
        (Kind::LooksSecret, Box::new(|stated| stated.evidence.detail = Some("password=letmein".into()))),
        (
            Kind::LooksSecret,
            Box::new({
                let secret = secret.clone();
                move |stated| stated.evidence.models.push(secret.clone())
            }),
        ),
        (Kind::LooksSecret, Box::new(move |stated| stated.evidence.name = name(&secret))),
        (Kind::Usage, Box::new(|stated| stated.evidence.name = name("s-0123456789ab"))),
        (Kind::Usage, Box::new(|stated| stated.evidence.name = name("x-test"))),
        (Kind::Usage, Box::new(|stated| stated.evidence.detail = Some("a\u{1b}[31m".into()))),
        (Kind::Usage, Box::new(|stated| stated.evidence.detail = Some("a\u{202e}b".into()))),
        (Kind::Usage, Box::new(|stated| stated.evidence.detail = Some("a\nb".into()))),
        (Kind::Usage, Box::new(|stated| stated.evidence.detail = Some(" ".into()))),
        (Kind::Usage, Box::new(|stated| stated.evidence.detail = Some("a ".repeat(MAX_TEXT)))),
        (Kind::Usage, Box::new(|stated| stated.evidence.models = vec!["m".into(); MAX_MODELS + 1])),
        (Kind::Usage, Box::new(|stated| stated.expires_ms = Some(0))),
        (Kind::Usage, Box::new(|stated| stated.expires_ms = Some(999))),
        (Kind::Usage, Box::new(|stated| stated.expires_ms = Some(MAX_MS + 1))),
        (Kind::Usage, Box::new(|stated| stated.expires_ms = Some(u64::MAX))),
    ];
    let mut world = World::new();
    for (number, (wanted, change)) in table.into_iter().enumerate() {
        let mut stated = best("one", LocalAgent);
        change(&mut stated);
        assert_eq!(kind(world.declare(stated)), wanted, "row {number}");
    }
    for good in ["x-ray", "h-index", "vision", "a/b:c"] {
        world.declare(best(good, LocalAgent)).unwrap();
    }
    let most = Stated { expires_ms: Some(MAX_MS), ..best("one", LocalAgent) };
    world.declare(most).unwrap();
}
