//! `capability declare|probe`: what somebody says of a way to have a question answered, and whether it is
//! there. A store never names what is looked at: the command line and the user's own settings do.

use std::cell::OnceCell;

use clap::{ArgAction, Args, Subcommand};
use serde_json::json;

use super::ctx::Context;
use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::capability::Capability;
use crate::model::id::Name;
use crate::model::job::{Cost, Family, Locality, ResultScope};
use crate::model::time::parse_millis;
use crate::rules::capability::{Probed, Stated, declare, probe};
use crate::store::Gathered;

mod look;

use look::Target;

/// Declare or probe what could answer a question
#[derive(Debug, Subcommand)]
pub enum CapabilityCommand {
    /// Record what you say of a capability; it counts for 30 days
    #[command(after_help = "Example:\n  nf capability declare house-model --family local_model \
        --permission-class evaluation --cost free \\\n    --interactive false --executes-model true \
        --isolated true --locality local --model qwen3-30b")]
    Declare(Declare),
    /// Record whether a worker of your settings, or a program, is there; it counts for 24 hours
    #[command(
        long_about = "Record whether a worker of your settings, or a program, is there; it counts for 24 \
        hours.\n\nWithout a program NAME is a worker of workers.yaml. A program is asked for its version, an \
        agent also for its help, in which every option that its adapter passes must be listed; an endpoint \
        is asked for its models; a command of your own is only looked for. No model answers, and no text of \
        the store leaves.\n\nA probe proves that what it looked at is there, and nothing else. What it \
        cannot see is as the settings or the other options state it, and else the least: what nobody stated \
        makes no route eligible."
    )]
    #[command(after_help = "Examples:\n  nf capability probe house-model --permission-class evaluation    \
        a worker of workers.yaml\n  nf capability probe codex --family local_agent --executes-model true \
        --isolated true \\\n    --interactive false --cost plan --permission-class evaluation -- codex")]
    Probe(Probe),
}

/// What is declared.
#[derive(Debug, Args)]
pub struct Declare {
    /// What to call it; nothing is read out of the name
    pub name: Name,
    /// peer_chat, human, local_agent, provider_api, local_model, mcp_worker or service_job
    #[arg(long)]
    pub family: Family,
    /// Whether it is there
    #[arg(long, value_name = "true|false", action = ArgAction::Set, default_value_t = true)]
    pub available: bool,
    /// The widest result scope allowed: diagnostic, proposal, observation or evaluation
    #[arg(long, value_name = "SCOPE")]
    pub permission_class: ResultScope,
    /// free, plan, metered or human
    #[arg(long)]
    pub cost: Cost,
    /// Whether a person has to act for it
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub interactive: bool,
    /// Whether it has a model answer
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub executes_model: bool,
    /// Whether each invocation is a separate one without the asker's context
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub isolated: bool,
    /// local where the text stays on this machine, else any
    #[arg(long, default_value = "any")]
    pub locality: Locality,
    /// A model that it serves; may be given again
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// What else is known of it; never a secret
    #[arg(long, value_name = "TEXT")]
    pub detail: Option<String>,
    /// How long this counts, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub expires: Option<u64>,
}

/// What is probed.
#[derive(Debug, Args)]
pub struct Probe {
    /// The worker; with a program, what to call it
    pub name: Name,
    /// With a program: peer_chat, human, local_agent, provider_api, local_model, mcp_worker or service_job
    #[arg(long)]
    pub family: Option<Family>,
    /// The widest result scope allowed [default: diagnostic]
    #[arg(long, value_name = "SCOPE")]
    pub permission_class: Option<ResultScope>,
    /// free, plan, metered or human [default: as the settings say; metered]
    #[arg(long)]
    pub cost: Option<Cost>,
    /// Whether a person has to act for it [default: false for a worker, else true]
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub interactive: Option<bool>,
    /// Whether it has a model answer [default: true for agents and endpoints, else false]
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub executes_model: Option<bool>,
    /// Whether each invocation is a separate one without the asker's context [default: true for
    /// endpoints and with isolate, else false]
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    pub isolated: Option<bool>,
    /// local where the text stays on this machine [default: local for endpoints on it, else any]
    #[arg(long)]
    pub locality: Option<Locality>,
    /// A model that it serves; may be given again
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// How long this counts, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub expires: Option<u64>,
    /// A program that is no worker of the settings: a name on PATH, or a path with a slash in it
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Option<String>,
}

macro_rules! evidence_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Capability);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.name.to_string()
            }

            fn news(&self) -> Vec<String> {
                news(&self.0)
            }

            fn next(&self) -> Option<String> {
                Some("nf route JOB tells which families may answer a job".to_owned())
            }
        }
    };
}

evidence_report! {
    /// Evidence that was declared.
    DeclareReport "capability.declare"
}
evidence_report! {
    /// Evidence that a probe gave.
    ProbeReport "capability.probe"
}

fn news(evidence: &Capability) -> Vec<String> {
    let there = if evidence.available { "available" } else { "unavailable" };
    let Capability { name, family, proof, expires_at, .. } = evidence;
    let detail = evidence.detail.as_deref().map_or_else(String::new, |detail| format!(": {detail}"));
    vec![format!("{name} ({family}) is {there}, {proof} until {expires_at}{detail}")]
}

impl CapabilityCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        match self {
            CapabilityCommand::Declare(declare) => declare.run(ctx),
            CapabilityCommand::Probe(probe) => probe.run(ctx),
        }
    }
}

impl Declare {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let least = Stated::least(self.name, self.family).evidence;
        let evidence = Capability {
            available: self.available,
            permission_class: self.permission_class,
            cost: self.cost,
            interactive: self.interactive,
            executes_model: self.executes_model,
            isolated_invocation: self.isolated,
            locality: self.locality,
            models: self.models,
            detail: self.detail,
            ..least
        };
        let stated = Stated { evidence, expires_ms: self.expires };
        let request = ctx.request("capability declare", asked(&stated));
        let nothing = |_: &_| Ok(Gathered::of(()));
        let answer = opened.transact(&request, nothing, |turn, ()| declare(turn, stated.clone()))?;
        Done::written(answer, DeclareReport)
    }
}

/// What was asked, for the operation key.
fn asked(stated: &Stated) -> serde_json::Value {
    let mut facts = serde_json::to_value(&stated.evidence).unwrap_or_default();
    if let Some(map) = facts.as_object_mut() {
        // What the rule fills in is no part of what was asked.
        map.retain(|name, _| !["proof", "source", "observed_at", "expires_at"].contains(&name.as_str()));
        map.insert("expires_ms".to_owned(), json!(stated.expires_ms));
    }
    facts
}

impl Probe {
    fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let target = Target::of(ctx, &self)?;
        let stated = self.stated(target.known(&self.name));
        let mut args = asked(&stated);
        if let (Some(map), Some(program)) = (args.as_object_mut(), &self.program) {
            map.insert("program".to_owned(), program.clone().into());
        }
        let request = ctx.request("capability probe", args);
        // What is probed is looked at once, however often the facts are gathered.
        let probed = OnceCell::new();
        let gather = |_: &_| {
            if probed.get().is_none() {
                let _ = probed.set(target.look(ctx)?);
            }
            Ok(Gathered::of(probed.get().cloned()))
        };
        let answer = opened.transact(&request, gather, |turn, probed: &Option<Probed>| {
            let missing = || Error::new(Kind::Io, "nothing was looked at");
            probe(turn, stated.clone(), probed.clone().ok_or_else(missing)?)
        })?;
        Done::written(answer, ProbeReport)
    }

    /// What the options say, over what is known without them.
    fn stated(&self, known: Stated) -> Stated {
        let known = known.evidence;
        let evidence = Capability {
            permission_class: self.permission_class.unwrap_or(known.permission_class),
            cost: self.cost.unwrap_or(known.cost),
            interactive: self.interactive.unwrap_or(known.interactive),
            executes_model: self.executes_model.unwrap_or(known.executes_model),
            isolated_invocation: self.isolated.unwrap_or(known.isolated_invocation),
            locality: self.locality.unwrap_or(known.locality),
            models: if self.models.is_empty() { known.models.clone() } else { self.models.clone() },
            ..known
        };
        Stated { evidence, expires_ms: self.expires }
    }
}
