//! `route`: which families may answer a job now, and every reason why the others may not.

use clap::Args;
use serde_json::json;

use super::ctx::{Context, Opened, find};
use super::input::config;
use super::output::{Done, Report};
use super::packet::waiting_job;
use crate::error::Result;
use crate::model::capability::Capability;
use crate::model::id::Name;
use crate::model::job::{Family, Job};
use crate::model::state::State;
use crate::model::time::Time;
use crate::rules::routing::{Gated, Route, Routed, resolve, resolve_for, routes, said};
use crate::store::Gathered;

/// List who may answer a job now, and why others may not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf route\n  nf route j-7hd3\n  \
    nf route j-7hd3 --gate gate/ch01-review     with nothing eligible the gate becomes semantic_pending")]
pub struct RouteCommand {
    /// The job; may be left out while exactly one job waits for an answer
    pub job: Option<String>,
    /// Where nothing is eligible, move this gate of the current run to semantic_pending
    #[arg(long, value_name = "NAME")]
    pub gate: Option<Name>,
}

/// All seven families, the eligible ones first.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct RouteReport(Routed);

impl Report for RouteReport {
    const COMMAND: &'static str = "route";

    fn answer(&self) -> String {
        self.0.routes.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn next(&self) -> Option<String> {
        self.0.way.clone()
    }
}

fn line(route: &Route) -> String {
    let rank = route.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let said = match (route.eligible, route.capabilities.as_slice()) {
        (false, _) => said(route),
        (true, []) => "eligible".to_owned(),
        (true, names) => {
            format!("eligible by {}", names.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))
        }
    };
    format!("{rank} {:<12} {said}", route.family.word())
}

impl RouteCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// `execution_unavailable` with every reason where nothing is eligible; with a gate also those of the
    /// run; `bad_input` for the config.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        match self.gate.clone() {
            Some(gate) => self.for_gate(ctx, &opened, gate),
            None => {
                let preferred = config(&opened.store)?.families;
                let snapshot = opened.store.read()?;
                let state = &snapshot.state;
                let job = self.job(ctx, state)?;
                let wall = (opened.source.moment)().wall;
                let now = state.meta().at.map_or(wall, |before| before.max(wall));
                let routed = resolve(
                    state,
                    &job,
                    all(state, &job, &preferred, now),
                    ctx.session(state).ok().as_ref(),
                )?;
                Ok(Done::of(&RouteReport(routed)).warned(snapshot.warnings))
            }
        }
    }

    fn for_gate(&self, ctx: &Context, opened: &Opened, gate: Name) -> Result<Done> {
        let request = ctx.request("route", json!({"job": self.job, "gate": gate, "run": ctx.global.run}));
        let gather = |_: &State| Ok(Gathered::of(config(&opened.store)?.families));
        let answer = opened.transact(&request, gather, |turn, preferred: &Vec<Family>| {
            let session = ctx.session(turn.state)?;
            ctx.expect_version(&session)?;
            let run = ctx.need_run(turn.state, &session)?;
            let job = self.job(ctx, turn.state)?;
            let routes = all(turn.state, &job, preferred, turn.at());
            resolve_for(turn, &job, routes, &Gated { run, gate: gate.clone() })
        })?;
        Done::written(answer, RouteReport)
    }

    fn job(&self, ctx: &Context, state: &State) -> Result<Job> {
        match &self.job {
            Some(text) => find(state, text),
            None => waiting_job(state, &ctx.session(state)?).map_err(|error| match error.kind {
                crate::error::Kind::NotOnlyCandidate => error.fix("nf route JOB"),
                _ => error,
            }),
        }
    }
}

fn all(state: &State, job: &Job, preferred: &[Family], now: Time) -> Vec<Route> {
    let evidence: Vec<Capability> = state.capabilities().map(|seen| seen.capability).collect();
    routes(job, &evidence, preferred, now)
}
