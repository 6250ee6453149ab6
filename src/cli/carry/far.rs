//! `packet --from` and `reply --from`: what is done with an export file where there is no store. Nothing is
//! recorded here, and nothing that the file says can name a program, a folder or a host.

use std::path::{Path, PathBuf};

use super::{VERSION, free, mark, named, written};
use crate::cli::ctx::Context;
use crate::cli::input::{PACKET_MARKS, file_or_stdin, reply as pasted, write_secret};
use crate::cli::output::{Done, Report, checks, text_or_path};
use crate::cli::reply::{Ask, asked};
use crate::error::{Error, Kind, Result};
use crate::model::check::Check;
use crate::model::handoff::Transport;
use crate::model::hash::Hash;
use crate::model::id::{AttemptId, HandoffId, JobId};
use crate::model::job::Verdict;
use crate::model::time::Time;
use crate::model::witness::Witness;
use crate::rules::binding::LEFT;
use crate::rules::carry::far::{Taken, printed, take};
use crate::rules::carry::{Export, MAX_EXPORT, Returned, sealed};

/// A packet out of an export file.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct FarPacket {
    /// The handoff.
    handoff: HandoffId,
    /// The attempt.
    attempt: AttemptId,
    /// The job, where it is a frozen question.
    job: Option<JobId>,
    /// The form of the packet.
    form: Transport,
    /// Until when nobody else may claim it.
    expires_at: Time,
    /// The packet, unless it was written to a file. It holds the nonce: a secret while it is open.
    packet: Option<String>,
    /// The file that it was written to.
    out: Option<PathBuf>,
}

impl Report for FarPacket {
    const COMMAND: &'static str = "packet.from";

    fn answer(&self) -> String {
        text_or_path(self.packet.as_ref(), self.out.as_deref())
    }

    fn news(&self) -> Vec<String> {
        let FarPacket { handoff, attempt, expires_at, .. } = self;
        vec![format!("handoff {handoff}, attempt {attempt}, for {}, until {expires_at}", self.form)]
    }

    fn next(&self) -> Option<String> {
        Some("nf reply --from EXPORT --out RESULT FILE with the answer".to_owned())
    }

    fn is_raw(&self) -> bool {
        true
    }
}

/// An answer that was taken where there is no store.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct FarReply {
    /// The handoff.
    handoff: HandoffId,
    /// The attempt.
    attempt: AttemptId,
    /// The job, where it is a frozen question.
    job: Option<JobId>,
    /// Whether the reviewer judged; one that could not is told to the store by the import.
    completed: bool,
    /// The verdict, where one was given; a negative one is valid.
    verdict: Option<Verdict>,
    /// All thirteen checks; what only the store can say of them is left to the import.
    checks: Vec<Check>,
    /// What intake changed.
    steps: Vec<String>,
    /// The result file; absent in a dry run.
    out: Option<PathBuf>,
}

impl Report for FarReply {
    const COMMAND: &'static str = "reply.from";

    fn answer(&self) -> String {
        self.out.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn news(&self) -> Vec<String> {
        let mut news = checks(&self.checks);
        if !self.steps.is_empty() {
            news.push(format!("normalised: {}", self.steps.join(", ")));
        }
        let verdict = self.verdict.as_ref().and_then(|verdict| verdict.value.clone());
        news.push(match self.completed {
            true => format!("verdict {}", verdict.unwrap_or_else(|| "none asked".to_owned())),
            false => "the reviewer could not judge: take the result home all the same".to_owned(),
        });
        news.push(format!("that the attempt is current, and another mind's, is {LEFT}"));
        if self.out.is_none() {
            news.push("dry run: nothing was written".to_owned());
        }
        news
    }

    fn next(&self) -> Option<String> {
        self.out.as_ref().map(|path| format!("nf import {}, where the store is", path.display()))
    }
}

fn export(ctx: &Context, from: &Path) -> Result<(Export, Hash)> {
    Export::read(&file_or_stdin(ctx, Some(from), MAX_EXPORT)?)
}

/// Prints the packet of an export file.
///
/// # Errors
/// Those of reading the file; `usage` for a form that does not fit; `io` for the file that is written.
pub fn packet(ctx: &Context, from: &Path, form: Option<Transport>, out: Option<&Path>) -> Result<Done> {
    let out = named(out);
    if let Some(path) = &out {
        free(ctx, path, "packet", &PACKET_MARKS)?;
    }
    let (export, _) = export(ctx, from)?;
    let (form, text) = printed(&export, form)?;
    let out = out.filter(|_| !ctx.global.dry_run);
    if let Some(path) = &out {
        write_secret(&ctx.folder.join(path), &text)?;
    }
    let packet = Some(text).filter(|_| out.is_none());
    Ok(Done::of(&FarPacket {
        job: export.job.id.clone(),
        handoff: export.handoff,
        attempt: export.attempt,
        form,
        expires_at: export.expires_at,
        packet,
        out,
    }))
}

/// Takes the answer to an export file, and writes the result file that is taken home.
///
/// # Errors
/// Those of reading the files; `semantic_invalid` as `reply` says it; `usage` where no result is named.
pub fn reply(ctx: &Context, from: &Path, file: Option<&Path>, out: Option<&Path>, ask: bool) -> Result<Done> {
    let out = result_file(ctx, out, ask)?;
    if from.as_os_str() == "-" && file.is_none_or(|file| file.as_os_str() == "-") {
        return Err(Error::new(Kind::Usage, "export file and answer cannot both be standard input")
            .fix("name a file for one of them"));
    }
    let (export, hash) = export(ctx, from)?;
    let bytes = pasted(ctx, file)?;
    if ask {
        return match take(&export, hash, &bytes, VERSION, None) {
            Ok(_) => Ok(Done::of(&Ask { binds: true, ask: String::new() })),
            Err(error) if error.kind == Kind::SemanticInvalid => {
                Ok(asked(&error, export.form() == Transport::Human))
            }
            Err(error) => Err(error),
        };
    }
    Ok(Done::of(&Reading { export, hash, out }.taken(ctx, &bytes, None)?))
}

/// The result file that is to be written; one must be named where something is.
fn result_file(ctx: &Context, out: Option<&Path>, ask: bool) -> Result<Option<PathBuf>> {
    let out = named(out);
    if let Some(path) = &out {
        free(ctx, path, "result file", &[&mark::<Returned>()])?;
    } else if !ask && !ctx.global.dry_run {
        return Err(Error::new(Kind::Usage, "--from without --out: the result is to be written to a file")
            .because("it holds the nonce of the attempt, and is taken home to the store")
            .fix("give --out RESULT"));
    }
    Ok(out)
}

/// An export file that is being answered.
pub struct Reading {
    /// What it holds.
    pub export: Export,
    hash: Hash,
    out: Option<PathBuf>,
}

impl Reading {
    /// Reads an export file and looks at the place of its result.
    ///
    /// # Errors
    /// Those of reading the file; `usage` where no result is named.
    pub fn open(ctx: &Context, from: &Path, out: Option<&Path>) -> Result<Self> {
        let out = result_file(ctx, out, false)?;
        let (export, hash) = export(ctx, from)?;
        Ok(Self { export, hash, out })
    }

    /// Takes the answer, and writes the result file that is taken home.
    ///
    /// # Errors
    /// `semantic_invalid` as `reply` says it; `io` for the file.
    pub fn taken(self, ctx: &Context, bytes: &[u8], witness: Option<Witness>) -> Result<FarReply> {
        let taken = take(&self.export, self.hash, bytes, VERSION, witness);
        let Taken { returned, completed, verdict, checks } = taken.map_err(here)?;
        let out = self.out.filter(|_| !ctx.global.dry_run);
        if let Some(path) = &out {
            written::<Returned>(ctx, path, &sealed(&returned).0)?;
        }
        Ok(FarReply {
            handoff: returned.handoff,
            attempt: returned.attempt,
            job: returned.job,
            completed,
            verdict,
            checks,
            steps: returned.steps.iter().map(|step| step.word().to_owned()).collect(),
            out,
        })
    }
}

/// The general next step of an answer that does not bind names the command as it is given here.
fn here(error: Error) -> Error {
    match (error.kind, error.fix.is_some()) {
        (Kind::SemanticInvalid, false) => {
            error.fix("nf reply --from EXPORT FILE --ask prints what to ask the reviewer for")
        }
        _ => error,
    }
}
