//! `export`: a queued handoff leaves as one file, to be answered where there is no store.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{VERSION, free, mark, named, written};
use crate::cli::ctx::{Context, Opened, find, get};
use crate::cli::load;
use crate::cli::output::{Done, Report, text_or_path};
use crate::error::{Error, Kind, Result};
use crate::model::decision::{Decision, Turn};
use crate::model::handoff::Handoff;
use crate::model::id::Name;
use crate::model::job::Family;
use crate::model::session::Session;
use crate::model::time::parse_millis;
use crate::rules::attempt::Asking;
use crate::rules::carry::Export;
use crate::rules::carry::export::{Exported, Exporting, export, is_whole};
use crate::store::Gathered;

/// Claim a handoff as a file, to be answered where there is no store
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf export h-4q2m --worker jane --out export.json\n  \
    nf export h-4q2m --out export.json   the same file again while it is open")]
pub struct ExportCommand {
    /// The handoff (id or unique beginning)
    pub handoff: String,
    /// Who carries the file: the name stands in the record and proves nothing
    #[arg(long, value_name = "NAME")]
    pub worker: Option<Name>,
    /// Who is to answer: peer_chat, human, local_agent, provider_api, local_model, mcp_worker or
    /// service_job [default: peer_chat]
    #[arg(long)]
    pub family: Option<Family>,
    /// How long nobody else may claim it [default: 7d, or longer if the handoff says so]
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub ttl: Option<u64>,
    /// Write the file here (0600) and print its path
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A handoff that is out as a file.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ExportReport {
    #[serde(flatten)]
    exported: Exported,
    /// The file's text, unless it was written; it holds the nonce: a secret while it is open.
    export: Option<String>,
    /// Where it was written.
    out: Option<PathBuf>,
}

impl Report for ExportReport {
    const COMMAND: &'static str = "export";

    fn answer(&self) -> String {
        text_or_path(self.export.as_ref(), self.out.as_deref())
    }

    fn news(&self) -> Vec<String> {
        let Exported { handoff, attempt, number, family, expires_at, again, .. } = &self.exported;
        let again = if *again { " (shown again)" } else { "" };
        vec![
            format!("handoff {handoff}, attempt {attempt} (number {number}){again}"),
            format!("to be answered by {family}; nobody else may claim it until {expires_at}"),
            "the file holds the packet and its nonce: a secret while it is open".to_owned(),
        ]
    }

    fn next(&self) -> Option<String> {
        Some(
            "far away nf packet --from FILE, nf reply --from FILE --out RESULT; here nf import RESULT".into(),
        )
    }

    fn is_raw(&self) -> bool {
        true
    }
}

impl ExportCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `io` for the file.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let out = named(self.out.as_deref());
        if let Some(path) = &out {
            free(ctx, path, "export file", &[&mark::<Export>()])?;
        }
        let arguments = json!({
            "handoff": self.handoff, "worker": self.worker, "family": self.family, "ttl_ms": self.ttl,
        });
        let answer = opened.transact(
            &ctx.request("export", arguments),
            |_| Ok(Gathered::of(())),
            |turn, ()| self.decide(&opened, turn),
        )?;
        let text = match &answer.outcome {
            Ok(exported) if !answer.dry_run => Some(kept(&opened, exported)?),
            _ => None,
        };
        let out = match (&text, &out) {
            (Some(text), Some(path)) => {
                written::<Export>(ctx, path, text)?;
                Some(path.clone())
            }
            _ => None,
        };
        let text = text.filter(|_| out.is_none());
        Done::written(answer, |exported| ExportReport { exported, export: text, out })
    }

    fn decide(&self, opened: &Opened, turn: &mut Turn<'_>) -> Result<Decision<Exported>> {
        let handoff: Handoff = find(turn.state, &self.handoff)?;
        let job = load::job(turn.state, handoff.job.as_ref())?;
        let source: Session = get(turn.state, &handoff.source_session)?;
        let frozen = load::asked(&opened.store, job.as_ref(), &handoff)?;
        let artifacts = load::artifacts(&opened.store, &frozen)?;
        let kept = match &handoff.attempt {
            Some(attempt) => opened.store.packet(attempt)?,
            None => None,
        };
        let exporting = Exporting {
            handoff: &handoff,
            worker: self.worker.clone(),
            family: self.family,
            ttl_ms: self.ttl,
            store: &opened.store.info().store_id,
            version: VERSION,
            kept,
        };
        export(turn, exporting, &Asking { source: &source, frozen: &frozen, artifacts: &artifacts })
    }
}

/// The file of an open export, as it is kept.
fn kept(opened: &Opened, exported: &Exported) -> Result<String> {
    let text = opened.store.packet(&exported.attempt)?;
    text.filter(|text| is_whole(text, &exported.attempt, &exported.packet_hash)).ok_or_else(|| {
        Error::new(Kind::LeaseLost, format!("attempt {} has ended, and its file with it", exported.attempt))
            .fix("nf status")
    })
}
