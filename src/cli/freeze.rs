//! `freeze` turns a job file and the texts it names into one job whose bytes never change.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::contract::find_contract;
use super::ctx::{Context, Opened};
use super::input::{Reader, config, file_or_stdin};
use super::load;
use super::output::{Done, Report, count};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, Boundary, CheckpointPending};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::hash::Hash;
use crate::model::id::{JobId, Name};
use crate::model::job::{Job, Place};
use crate::model::result::{Judgement, Shared};
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;
use crate::model::yaml;
use crate::rules::checkpoint::{self, Saved, carry, loosen, moved, of_places, rebind};
use crate::rules::freeze::{Frozen, MAX_INPUT, WARN_INPUT, freeze, no_stored_result};
use crate::rules::intake::nonces;
use crate::rules::jobfile;
use crate::rules::once::earlier;
use crate::rules::ways;
use crate::store::Gathered;

/// Freeze a question with the texts it is about
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf freeze review.yaml\n  job=$(nf freeze review.yaml -q)")]
pub struct Freeze {
    /// The job file (YAML or JSON), or - for standard input
    pub file: PathBuf,
}

/// A frozen question.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct FrozenReport {
    /// The job.
    pub job: JobId,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its digest.
    pub job_digest: String,
    /// Whether it is new to the store.
    pub new: bool,
    /// What it was frozen over.
    pub artifacts: Vec<Place>,
    /// Bytes of its whole input.
    pub bytes: u64,
    /// Judgements of the same texts or the same subject under other questions.
    pub earlier: Vec<Judgement>,
    /// A valid result that it has already; it is not asked again.
    pub judged: Option<crate::model::id::ResultId>,
    /// The command that leads on.
    pub way: String,
}

impl Report for FrozenReport {
    const COMMAND: &'static str = "freeze";

    fn answer(&self) -> String {
        self.job.to_string()
    }

    fn news(&self) -> Vec<String> {
        let artifacts = count(self.artifacts.len(), "artifact");
        let same = if self.new { "" } else { " (frozen before: same content, same job)" };
        let mut news =
            vec![format!("fingerprint {}, {artifacts}, {} bytes{same}", self.fingerprint, self.bytes)];
        if self.bytes > WARN_INPUT {
            news.push(
                "warning: over 256 KiB; many chats cut what is pasted: use packet --out or --for agent"
                    .to_owned(),
            );
        }
        for judgement in &self.earlier {
            let verdict = judgement.verdict.clone().unwrap_or_else(|| "no verdict".to_owned());
            let what = match judgement.shares {
                Shared::Artifact => "the same text was judged under another question",
                Shared::Subject => "an earlier text of this subject was judged",
            };
            news.push(format!("earlier: {what}: {} ({verdict})", judgement.result));
        }
        if let Some(result) = &self.judged {
            news.push(format!("judged already: {result}; it is not asked again"));
        }
        news
    }

    fn next(&self) -> Option<String> {
        Some(self.way.clone())
    }
}

/// What was read before the lock.
struct Facts {
    frozen: Frozen,
    declared: Bindings,
}

impl Freeze {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rules and the store.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        let bytes = file_or_stdin(ctx, Some(&self.file), MAX_INPUT)?;
        let value = yaml::parse_either(&bytes).map_err(|fault| fault.into_error(self.file.display()))?;
        let request = ctx.request("freeze", json!({"file": Hash::of(&bytes)}));
        let answer = opened.transact(
            &request,
            |state| {
                let held = match session_of(ctx, state)? {
                    Some(session) => load::newest_bindings(&opened.store, state, &session)?,
                    None => Bindings::default(),
                };
                gather(&opened, state, &value, &held)
            },
            |turn, facts: &Facts| {
                let session = session_of(ctx, turn.state)?;
                let run = match &session {
                    Some(session) => {
                        ctx.expect_version(session)?;
                        ctx.current_run(turn.state, session)?
                    }
                    None => None,
                };
                decide(turn, &opened, facts, session, run)
            },
        )?;
        Done::written(answer, |report| report)
    }
}

/// Freezing needs no session; where there are some, it is the only one's, or the one that is named.
fn session_of(ctx: &Context, state: &State) -> Result<Option<Session>> {
    match ctx.session(state) {
        Ok(session) => Ok(Some(session)),
        Err(error) if error.kind == Kind::NoCandidate => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses what holds the nonce of an attempt: a packet or an answer is no text to be judged, and the secret
/// of one reviewer is nothing for another.
fn no_nonce<'a>(state: &State, texts: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<()> {
    for (name, bytes) in texts {
        let known = |nonce: &String| state.attempt_of_nonce(&Hash::of(nonce.as_bytes())).is_some();
        if nonces(bytes).iter().take(100).any(known) {
            return Err(Error::new(Kind::NotBlind, format!("{name} holds the nonce of a packet"))
                .because("a packet or an answer is in it")
                .fix("leave it out of the job"));
        }
    }
    Ok(())
}

fn gather(opened: &Opened, state: &State, value: &Value, held: &Bindings) -> Result<Gathered<Facts>> {
    let spec = jobfile::job(value, &|reference| find_contract(&opened.store, reference))?;
    let mut reader = Reader::new(&opened.project);
    let mut contents: BTreeMap<Name, Vec<u8>> = BTreeMap::new();
    for artifact in spec.artifacts.iter().flatten().chain(&spec.context) {
        let limit = if artifact.lines.is_some() { super::input::MAX_BOUND } else { MAX_INPUT };
        let bytes = reader.bytes(&artifact.path, artifact.lines, limit).map_err(|error| {
            let start = opened.project.path("");
            let cause = error.cause.clone().unwrap_or_default();
            Error { message: format!("{}, named at {}/path", error.message, artifact.pointer), ..error }
                .because(format!("{cause} (paths start at {})", start.display()))
        })?;
        contents.insert(artifact.name.clone(), bytes);
    }
    let frozen = freeze(&spec, &contents)?;
    no_nonce(state, contents.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?;
    no_nonce(state, [("the job file", frozen.blob().as_slice())].into_iter())?;
    let declared = reader.declared(&config(&opened.store)?, held)?;
    let blobs = contents.into_values().chain([frozen.blob()]).collect();
    let mut gathered = Gathered::of(Facts { frozen, declared });
    gathered.blobs = blobs;
    gathered.files = reader.stamps;
    Ok(gathered)
}

fn decide(
    turn: &mut Turn<'_>,
    opened: &Opened,
    facts: &Facts,
    session: Option<Session>,
    run: Option<Run>,
) -> Result<Decision<FrozenReport>> {
    let frozen = &facts.frozen;
    no_stored_result(turn.state, &frozen.places)?;
    let id = session.as_ref().map(|session| session.id.clone());
    let fresh = frozen.entity(id.as_ref(), run.as_ref().map(|run| &run.id), turn.at())?;
    let held = turn.state.get::<Job>(&fresh.id);
    let mut events = Vec::new();
    let job = match &held {
        None => {
            events.push(Event::JobFrozen { job: fresh.clone() });
            fresh
        }
        Some(held) => {
            let known = id.as_ref().is_none_or(|id| held.frozen_by.contains(id));
            if !known || held.places != fresh.places {
                let (job, places, session) = (held.id.clone(), fresh.places.clone(), id.clone());
                events.push(Event::JobFrozenAgain { job, session, places });
            }
            Job { places: fresh.places, ..held.clone() }
        }
    };
    let history = turn.state.history(&job.fingerprint);
    let closing = history.closing(Some(&job.execution));
    let judged = closing.map(|answer| answer.result.clone());
    let rule = frozen.job.verdict_rule();
    let fails = |verdict: &String| rule.as_ref().is_some_and(|rule| rule.fail.contains(verdict));
    let rejected = closing.and_then(|answer| answer.verdict.as_ref()).is_some_and(fails);
    if let (Some(session), Some(run)) = (&session, &run) {
        let newest = load::newest_bindings(&opened.store, turn.state, session)?;
        let fresh = of_places(&job.places);
        // A rejected text is there to be repaired: freezing it again binds it no tighter.
        let fresh = if rejected { loosen(&fresh, &job.places) } else { fresh };
        let before = held.as_ref().map(|held| held.places.as_slice()).unwrap_or_default();
        let kept = moved(&carry(&newest, &facts.declared), before, &job.places);
        let bindings = rebind(&kept, &fresh);
        // The same text frozen again changes nothing that a checkpoint would hold.
        if bindings != newest || held.is_none() {
            let pending = CheckpointPending::default();
            let saved = Saved { session, run, boundary: Boundary::CandidateFrozen, pending };
            events.push(Event::CheckpointSaved { checkpoint: checkpoint::save(turn, saved, bindings)? });
        }
    }
    let way = ways::to_go_on(turn, &job, session.as_ref());
    let report = FrozenReport {
        way,
        earlier: earlier(turn.state, &job),
        job: job.id,
        fingerprint: job.fingerprint,
        job_digest: job.job_digest,
        new: held.is_none(),
        artifacts: job.places,
        bytes: job.bytes,
        judged,
    };
    Ok(Decision::new(events, report))
}
