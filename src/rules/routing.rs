//! Routing: which of the seven families may answer a job, by its own terms and the evidence there is now
//! (semantic-execution contract, 02, 09 and 13). Preferences order what is eligible and make nothing so; a
//! packet is never held back by evidence.

use super::capability::lack;
use super::lease::already_judged;
use crate::error::{Error, Kind, Result};
use crate::model::capability::Capability;
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::id::{HandoffId, JobId, Name, RunId};
use crate::model::job::{Cost, Execution, Family, Grade, Job, Locality};
use crate::model::run::{GateStatus, Run};
use crate::model::session::Session;
use crate::model::state::State;
use crate::model::time::Time;
use crate::words;

words! {
    /// What keeps a family from answering.
    Obstacle {
        /// The family, or the scope that it is allowed, is not what the job permits.
        Permission = "permission",
        /// It cannot prove as separate a reviewer as the job demands.
        Independence = "independence",
        /// A person would have to act.
        Interaction = "interaction",
        /// It has no model answer.
        ModelExecution = "model_execution",
        /// It costs what the job does not allow.
        Cost = "cost",
        /// The text would leave this machine.
        Locality = "locality",
        /// It does not serve a model that the job allows.
        Models = "models",
        /// Nothing current says that it is there.
        Evidence = "evidence",
    }
}

/// What is known of a family without any evidence.
struct Known {
    family: Family,
    /// The best grade that an answer by it can have: `nf` itself can run a program or a call, not a person.
    best: Grade,
    /// Of the two that need no evidence: what they cost, and whether the text stays with the user.
    relay: Option<(&'static [Cost], bool)>,
}

/// The seven families, in the contract's order.
const KNOWN: [Known; 7] = [
    Known {
        family: Family::PeerChat,
        best: Grade::Declared,
        relay: Some((&[Cost::Free, Cost::Plan], false)),
    },
    Known { family: Family::Human, best: Grade::Declared, relay: Some((&[Cost::Human], true)) },
    Known { family: Family::LocalAgent, best: Grade::Attested, relay: None },
    Known { family: Family::ProviderApi, best: Grade::Attested, relay: None },
    Known { family: Family::LocalModel, best: Grade::Attested, relay: None },
    Known { family: Family::McpWorker, best: Grade::Declared, relay: None },
    Known { family: Family::ServiceJob, best: Grade::Attested, relay: None },
];

/// One reason why a family may not answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Reason {
    /// What stands in the way.
    pub obstacle: Obstacle,
    /// The capability that it is said of; none where the job's own terms say it of the whole family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Name>,
    /// Want and got, in words.
    pub why: String,
}

/// A family and whether it may answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Route {
    /// The family.
    pub family: Family,
    /// Whether it may answer now.
    pub eligible: bool,
    /// Its place among those that may, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The capabilities that would serve, by name; peer_chat and human need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Name>,
    /// Every reason why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// What the job's own terms say against a family, whatever evidence there is.
pub fn barred(execution: &Execution, family: Family) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut bar = |obstacle, why: String| reasons.push(Reason { obstacle, capability: None, why });
    if !execution.families.contains(&family) {
        let allowed = words(&execution.families, |family| family.word());
        bar(Obstacle::Permission, format!("family {family} is not among {allowed}"));
    }
    let Some(known) = KNOWN.iter().find(|known| known.family == family) else { return reasons };
    if known.best < execution.min_grade {
        let why = format!("min_grade is {}, and {family} is at best {}", execution.min_grade, known.best);
        bar(Obstacle::Independence, why);
    }
    let Some((costs, stays)) = known.relay else { return reasons };
    if !execution.interactive {
        bar(Obstacle::Interaction, "interactive is false, and a relay needs a person".to_owned());
    }
    if !costs.iter().any(|cost| execution.cost.contains(cost)) {
        let (allowed, costs) = (words(&execution.cost, |cost| cost.word()), words(costs, |cost| cost.word()));
        bar(Obstacle::Cost, format!("cost may be {allowed}, and {family} costs {costs}"));
    }
    if execution.locality == Locality::Local && !stays {
        bar(Obstacle::Locality, format!("locality is local, and {family} takes the text elsewhere"));
    }
    reasons
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> String {
    all.iter().map(|one| word(*one)).collect::<Vec<_>>().join(", ")
}

/// What stands against one capability; nothing where it would serve.
fn against(job: &Job, evidence: &Capability, now: Time) -> Vec<Reason> {
    let execution = &job.execution;
    let mut reasons = Vec::new();
    let mut bar = |obstacle, why: String| {
        reasons.push(Reason { obstacle, capability: Some(evidence.name.clone()), why });
    };
    if let Some(why) = lack(Some(evidence), now) {
        bar(Obstacle::Evidence, why);
    }
    if evidence.permission_class < job.result_scope {
        let (want, got) = (job.result_scope, evidence.permission_class);
        bar(Obstacle::Permission, format!("the result scope is {want}, and its permission class is {got}"));
    }
    let separate = execution.independent || execution.min_grade > Grade::None;
    if separate && !evidence.isolated_invocation {
        bar(
            Obstacle::Independence,
            "a separate reviewer is wanted, and its invocation is not isolated".into(),
        );
    }
    if evidence.interactive && !execution.interactive {
        bar(Obstacle::Interaction, "interactive is false, and it needs a person".into());
    }
    if !evidence.executes_model {
        bar(Obstacle::ModelExecution, "a judgement is wanted, and it executes no model".into());
    }
    if !execution.cost.contains(&evidence.cost) {
        let allowed = words(&execution.cost, |cost| cost.word());
        bar(Obstacle::Cost, format!("cost may be {allowed}, and it costs {}", evidence.cost));
    }
    if execution.locality == Locality::Local && evidence.locality != Locality::Local {
        bar(Obstacle::Locality, "locality is local, and it takes the text elsewhere".into());
    }
    let serves = |model: &String| evidence.models.contains(model);
    if !execution.models.is_empty() && !execution.models.iter().any(serves) {
        let served =
            if evidence.models.is_empty() { "none named".into() } else { evidence.models.join(", ") };
        let why = format!("the model must be one of {}, and it serves {served}", execution.models.join(", "));
        bar(Obstacle::Models, why);
    }
    reasons
}

fn route(job: &Job, known: &Known, evidence: &[Capability], now: Time) -> Route {
    let family = known.family;
    let mut reasons = barred(&job.execution, family);
    let barred = !reasons.is_empty();
    let mut capabilities = Vec::new();
    if known.relay.is_none() {
        let own: Vec<&Capability> = evidence.iter().filter(|evidence| evidence.family == family).collect();
        let mut refused = Vec::new();
        for capability in &own {
            let found = against(job, capability, now);
            match found.is_empty() {
                true => capabilities.push(capability.name.clone()),
                false => refused.extend(found),
            }
        }
        if own.is_empty() {
            let why = format!("no {family} is declared or probed");
            refused.push(Reason { obstacle: Obstacle::Evidence, capability: None, why });
        }
        // One that serves is enough: what keeps its neighbours back keeps the family back no more.
        if capabilities.is_empty() {
            reasons.extend(refused);
        }
    }
    if barred {
        capabilities.clear();
    }
    Route { family, eligible: reasons.is_empty(), rank: None, capabilities, reasons }
}

/// All seven families: the eligible ones first, in the order preferred, else in the contract's.
pub fn routes(job: &Job, evidence: &[Capability], preferences: &[Family], now: Time) -> Vec<Route> {
    let mut all: Vec<Route> = KNOWN.iter().map(|known| route(job, known, evidence, now)).collect();
    let wish = |family: Family| preferences.iter().position(|one| *one == family).unwrap_or(KNOWN.len());
    all.sort_by_key(|route| (!route.eligible, if route.eligible { wish(route.family) } else { 0 }));
    let mut rank = 0;
    for route in all.iter_mut().filter(|route| route.eligible) {
        rank += 1;
        route.rank = Some(rank);
    }
    all
}

/// What a job's routes came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Routed {
    /// The job.
    pub job: JobId,
    /// All seven families, the eligible ones first.
    pub routes: Vec<Route>,
    /// The best grade of independence that the job asks for.
    pub min_grade: Grade,
    /// The command that leads on, where there is one.
    #[serde(default)]
    pub way: Option<String>,
}

/// All routes of a job, or the failure where none is eligible.
///
/// # Errors
/// `execution_unavailable`, with every reason.
pub fn resolve(state: &State, job: &Job, routes: Vec<Route>, session: Option<&Session>) -> Result<Routed> {
    if routes.iter().any(|route| route.eligible) {
        let way = way(state, job, &routes, session);
        return Ok(Routed { job: job.id.clone(), routes, min_grade: job.execution.min_grade, way });
    }
    let lines: Vec<String> =
        routes.iter().map(|route| format!("{}: {}", route.family, said(route))).collect();
    Err(Error::new(Kind::ExecutionUnavailable, format!("no route is eligible for job {}", job.id))
        .because(lines.join("\n       "))
        .fix("declare or probe what there is (nf capability --help); another question may have other terms")
        .details(serde_json::json!({"job": job.id, "routes": routes})))
}

/// What leads on: evidence says who could answer, and a packet is how the question reaches three of the
/// families; one that has its answer, or is out, goes on with that.
fn way(state: &State, job: &Job, routes: &[Route], session: Option<&Session>) -> Option<String> {
    let history = state.history(&job.fingerprint);
    if let Some(answer) = history.closing(Some(&job.execution)) {
        return Some(super::ways::after_answer(state, &answer.result));
    }
    if let Some(attempt) = state.active(&history).next() {
        return Some(format!("nf show {} tells who has it", attempt.handoff));
    }
    let whom = |route: &Route| match route.family {
        Family::PeerChat => Some("chat"),
        Family::Human => Some("human"),
        Family::LocalAgent if job.execution.min_grade <= Grade::Declared => Some("agent"),
        _ => None,
    };
    let first = routes.iter().filter(|route| route.eligible).find_map(whom)?;
    Some(super::ways::by_packet(session, &format!("nf packet {} --for {first}", job.id)))
}

/// Why a family may not answer, in one line.
pub fn said(route: &Route) -> String {
    let line = |reason: &Reason| match &reason.capability {
        Some(name) => format!("{} ({name}: {})", reason.obstacle, reason.why),
        None => format!("{} ({})", reason.obstacle, reason.why),
    };
    route.reasons.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// A gate for which a route is wanted, in the run that it belongs to.
pub struct Gated {
    /// The run.
    pub run: Run,
    /// The gate.
    pub gate: Name,
}

/// The same for a gate: with nothing eligible it becomes semantic_pending, and nothing else changes. A gate
/// that waits for a handoff which is out stays as it is: that answer may still come.
///
/// # Errors
/// `already_judged`; `execution_unavailable`, recorded where the gate moved.
pub fn resolve_for(
    turn: &Turn<'_>,
    job: &Job,
    routes: Vec<Route>,
    gated: &Gated,
) -> Result<Decision<Routed>> {
    let history = turn.state.history(&job.fingerprint);
    if let Some(answer) = history.closing(Some(&job.execution)) {
        return Err(already_judged(turn.state, &format!("job {}", job.id), answer));
    }
    let source = turn.state.get::<Session>(&gated.run.session);
    let error = match resolve(turn.state, job, routes, source.as_ref()) {
        Ok(routed) => return Ok(Decision::nothing(routed)),
        Err(error) => error.with("gate", &gated.gate),
    };
    let Gated { run, gate } = gated;
    let held = run.pending.gates.get(gate);
    let out = |handoff: &&HandoffId| run.pending.handoffs.contains(*handoff);
    let waits = held.and_then(|held| held.handoff.as_ref()).filter(out);
    let status = held.map(|held| held.status);
    if let (Some(GateStatus::Pending), Some(handoff)) = (status, waits) {
        return Err(error.fix(format!("gate {gate} still waits for handoff {handoff}: nf status")));
    }
    if status == Some(GateStatus::SemanticPending) {
        return Err(error);
    }
    Ok(Decision::refused(vec![semantic_pending(&run.id, gate)], error))
}

fn semantic_pending(run: &RunId, gate: &Name) -> Event {
    Event::GateMoved {
        run: run.clone(),
        gate: gate.clone(),
        to: GateStatus::SemanticPending,
        handoff: None,
        result: None,
        verdict: None,
    }
}
