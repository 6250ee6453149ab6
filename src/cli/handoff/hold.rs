//! `handoff renew`, `release` and `fail`: what the holder of an attempt does besides answering. Each wants
//! the attempt's nonce; only `release --revoke`, by the session that asked, does not.

use clap::Args;
use serde_json::json;

use super::claim::holder;
use super::open::{source, taken_back};
use crate::cli::ctx::{Context, find};
use crate::cli::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::{Attempt, Handoff, HandoffState};
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::time::parse_millis;
use crate::rules::handoff::{TakenBack, revoke};
use crate::rules::holding::{Failure, FailureClass, Held, fail, release, renew};
use crate::store::Gathered;

/// Make a claim last longer, from now
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  NF_NONCE=$nonce nf handoff renew --ttl 30m")]
pub struct Renew {
    /// The attempt (id or unique beginning); the nonce says which where it is left out
    pub attempt: Option<String>,
    /// How long from now [default: as before]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub ttl: Option<u64>,
}

/// Give claimed work back to the queue
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  NF_NONCE=$nonce nf handoff release\n  nf handoff release h-4q2m --revoke"
)]
pub struct Release {
    /// The attempt; with --revoke the handoff (id or unique beginning)
    pub attempt: Option<String>,
    /// By the session that asked, without the nonce: take the attempt back and queue the handoff again
    #[arg(long, requires = "attempt")]
    pub revoke: bool,
}

/// Say that a claimed piece of work gave no answer; this is no verdict
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  NF_NONCE=$nonce nf handoff fail --reason timeout --retry-after 10m")]
pub struct Fail {
    /// The attempt (id or unique beginning); the nonce says which where it is left out
    pub attempt: Option<String>,
    /// execution_failed or execution_unavailable
    #[arg(long, default_value = "execution_failed")]
    pub class: FailureClass,
    /// Why, in a word such as crash, timeout, quota or refusal
    #[arg(long, value_name = "WORD")]
    pub reason: Name,
    /// No other attempt could help: the handoff is exhausted
    #[arg(long)]
    pub no_retry: bool,
    /// Wait this long before the next attempt [default: 30s, doubled with each failure, at most 1h]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub retry_after: Option<u64>,
}

macro_rules! held_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Held);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.attempt.to_string()
            }

            fn news(&self) -> Vec<String> {
                told(&self.0)
            }

            fn next(&self) -> Option<String> {
                next(&self.0)
            }
        }
    };
}

held_report! {
    /// A lease that was made longer.
    RenewReport "handoff.renew"
}
held_report! {
    /// An attempt that failed.
    FailReport "handoff.fail"
}

fn told(held: &Held) -> Vec<String> {
    let already = if held.again { " already" } else { "" };
    let mut news = vec![
        format!("attempt {} is {}{already}", held.attempt, held.state),
        format!("handoff {} is {}", held.handoff, held.handoff_state),
    ];
    news.extend(held.expires_at.map(|until| format!("nobody else may claim it until {until}")));
    news.extend(held.ready_at.map(|from| format!("it can be claimed again from {from}")));
    news
}

fn next(held: &Held) -> Option<String> {
    match held.handoff_state {
        HandoffState::Claimed => Some("nf handoff complete FILE with the answer".to_owned()),
        HandoffState::Queued => Some("nf handoff claim --class CLASS --worker NAME".to_owned()),
        _ => Some(format!("nf show {}", held.handoff)),
    }
}

/// Work that was given or taken back.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ReleaseReport {
    /// By the worker.
    Released(Held),
    /// By the session that asked.
    Revoked(TakenBack),
}

impl Report for ReleaseReport {
    const COMMAND: &'static str = "handoff.release";

    fn answer(&self) -> String {
        match self {
            ReleaseReport::Released(held) => held.attempt.to_string(),
            ReleaseReport::Revoked(taken) => taken.handoff.to_string(),
        }
    }

    fn news(&self) -> Vec<String> {
        match self {
            ReleaseReport::Released(held) => told(held),
            ReleaseReport::Revoked(taken) => taken_back(taken),
        }
    }

    fn next(&self) -> Option<String> {
        Some("nf status".to_owned())
    }
}

impl Renew {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let arguments = json!({"attempt": self.attempt, "ttl_ms": self.ttl});
        let answer =
            act(ctx, "handoff renew", arguments, self.attempt.as_deref(), |turn, attempt, handoff| {
                renew(turn, attempt, handoff, self.ttl)
            })?;
        Done::written(answer, RenewReport)
    }
}

impl Release {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let Some(text) = self.attempt.as_ref().filter(|_| self.revoke) else {
            let arguments = json!({"attempt": self.attempt, "revoke": false});
            let answer = act(ctx, "handoff release", arguments, self.attempt.as_deref(), release)?;
            return Done::written(answer, ReleaseReport::Released);
        };
        let opened = ctx.open()?;
        let request = ctx.request("handoff release", json!({"handoff": text, "revoke": true}));
        let answer = opened.transact(
            &request,
            |_| Ok(Gathered::of(())),
            |turn, ()| {
                let handoff: Handoff = find(turn.state, text)?;
                revoke(turn, &source(ctx, turn.state, &handoff)?, &handoff)
            },
        )?;
        Done::written(answer, ReleaseReport::Revoked)
    }
}

impl Fail {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        if self.no_retry && self.retry_after.is_some() {
            return Err(Error::new(Kind::Usage, "--retry-after beside --no-retry").fix("give one of them"));
        }
        let failure = Failure {
            class: self.class,
            reason: self.reason,
            retryable: !self.no_retry,
            retry_after_ms: self.retry_after,
        };
        let arguments = json!({
            "attempt": self.attempt, "class": failure.class, "reason": failure.reason,
            "retryable": failure.retryable, "retry_after_ms": failure.retry_after_ms,
        });
        let answer =
            act(ctx, "handoff fail", arguments, self.attempt.as_deref(), |turn, attempt, handoff| {
                fail(turn, attempt, handoff, &failure)
            })?;
        Done::written(answer, FailReport)
    }
}

/// One act of the holder of an attempt.
fn act(
    ctx: &Context,
    command: &str,
    mut arguments: serde_json::Value,
    named: Option<&str>,
    decide: impl Fn(&Turn<'_>, &Attempt, &Handoff) -> Result<Decision<Held>>,
) -> Result<crate::store::Answer<Held>> {
    let opened = ctx.open()?;
    // Which attempt is meant is part of the request, and the nonce itself stands in no record.
    arguments["nonce"] = json!(ctx.nonce().map(|nonce| Hash::of(nonce.as_bytes())));
    opened.transact(
        &ctx.request(command, arguments),
        |_| Ok(Gathered::of(())),
        |turn, ()| {
            let (attempt, handoff) = holder(ctx, turn.state, named)?;
            decide(turn, &attempt, &handoff)
        },
    )
}
