//! `mcp` serves the commands as tools to agents that speak the Model Context Protocol, over standard input
//! and output. Everything asynchronous of the program stands here and below.
//!
//! Three threads and no more: one reads lines (`src/cli/mcp/wire.rs`), one writes them, and one runs the
//! commands, in the order in which they came (`src/cli/mcp/worker.rs`); a fourth runs `verify`, which may
//! take long. The protocol itself is rmcp's (`src/cli/mcp/handler.rs`), on the main thread. Must never
//! decide anything that the command line would decide otherwise: a tool call becomes the command's own
//! arguments.

use std::sync::Arc;

use clap::Args;

use super::ctx::Context;
use super::output::Done;
use crate::error::{Error, Kind, Result};

mod arguments;
mod call;
mod flow;
mod handler;
mod message;
mod resources;
mod tools;
mod wire;
mod worker;

use handler::Handler;
use tools::Catalog;
use worker::Workers;

/// Serve the commands as tools to an agent, on standard input and output
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  claude mcp add nf -- nf -C /home/jane/novel mcp\n  \
    nf mcp --read-only            only what reads\n  \
    nf mcp --tools nf_status,nf_handoff_claim,nf_handoff_complete\n\nEnds at the end of its input. \
    docs/mcp.md has settings for several agents.")]
pub struct McpCommand {
    /// Serve only the tools that read
    #[arg(long)]
    pub read_only: bool,
    /// Serve only these tools
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub tools: Vec<String>,
}

impl McpCommand {
    /// Serves until its input ends or nobody reads its output any more.
    ///
    /// # Errors
    /// `usage` for an unknown tool, a flag that belongs to one call, or standard input that cannot be served;
    /// `io` where a thread cannot be made.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        for_one_call(ctx)?;
        let catalog = Arc::new(Catalog::new(self.read_only, self.tools)?);
        let failed = |error: std::io::Error| Error::io("beginning the server", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let (workers, queue) = Workers::begin(ctx).map_err(failed)?;
        let lines = wire::begin().map_err(failed)?;
        // The protocol's own diagnostics show whole messages, nonces among them: they go nowhere.
        let quiet = tracing::subscriber::NoSubscriber::default();
        tracing::subscriber::with_default(quiet, || {
            runtime.block_on(handler::serve(Handler::new(catalog, queue), lines))
        });
        drop(runtime);
        // What was begun is finished and made durable, whether or not anybody is left to be told.
        workers.end();
        Ok(Done::silent("mcp"))
    }
}

/// Flags whose value belongs to one call have no meaning for a server.
fn for_one_call(ctx: &Context) -> Result<()> {
    let global = &ctx.global;
    let given = [
        (global.op.is_some() && ctx.env.get("NF_OP").is_none(), "--op"),
        (global.nonce.is_some(), "--nonce"),
        (global.expect_version.is_some(), "--expect-version"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(Error::new(Kind::Usage, format!("{flag} belongs to one call"))
            .fix("leave it out; every tool that uses it has it as an argument")),
        None => Ok(()),
    }
}
