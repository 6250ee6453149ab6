//! `work --from`: a worker answers an export file where there is no store, and its answer goes into a result
//! file, as `reply --from` writes it.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::Work;
use super::report::no_answer;
use super::spell::{Place, told_to_end};
use crate::adapters::ask::Ask;
use crate::adapters::signals::{self, Orphans};
use crate::cli::carry::far::{FarReply, Reading};
use crate::cli::ctx::Context;
use crate::cli::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::rules::carry::Export;
use crate::rules::return_form;

/// An answer that a worker gave where there is no store.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct WorkedFar(FarReply);

impl Report for WorkedFar {
    const COMMAND: &'static str = "work.from";

    fn answer(&self) -> String {
        self.0.answer()
    }

    fn news(&self) -> Vec<String> {
        self.0.news()
    }

    fn next(&self) -> Option<String> {
        self.0.next()
    }
}

/// Has an export file answered, by the first worker that gives an answer.
///
/// # Errors
/// Those of reading the file; `execution_failed` and `execution_unavailable`; `semantic_invalid`; `pending`
/// where it is told to end.
pub fn work(ctx: &Context, work: &Work, from: &Path, places: &[Place<'_>]) -> Result<Done> {
    let reading = Reading::open(ctx, from, work.out.as_deref())?;
    let signalled =
        signals::stop_flag().map_err(|error| Error::io("registering the signal handlers", &error))?;
    let orphans = Orphans::adopt();
    let mut last = None;
    for Place { ready, .. } in places {
        let Export { job, handoff, nonce, .. } = &reading.export;
        let told = ready.is_private().then_some(nonce.as_str());
        let schema = return_form::schema(job, handoff, told);
        let ask = Ask {
            packet: &reading.export.packet,
            schema: Some(&schema).filter(|_| ready.takes_schema()),
            model: ready.worker.model.as_deref(),
            limits: work.limits(&ready.worker),
            stop: &signalled,
        };
        // The keeper ends a child with the thread that started it: this one.
        let outcome = ready.ask(&ask);
        orphans.end();
        match outcome.answer {
            Ok(bytes) => {
                return Ok(Done::of(&WorkedFar(reading.taken(ctx, &bytes, Some(outcome.witness))?)));
            }
            Err(_) if signalled.load(Ordering::Relaxed) => {
                return Err(told_to_end("the export file is not answered, and nothing was written"));
            }
            Err(failure) => last = Some(no_answer(&ready.worker.name, &failure)),
        }
    }
    Err(last.unwrap_or_else(|| Error::new(Kind::Usage, "no worker is named")))
}
