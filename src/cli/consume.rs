//! `consume` lets a result or an event act, once, for a named consumer.

use clap::Args;
use serde_json::json;

use super::ctx::{Context, Opened, get, kind_of, only, resolve};
use super::input::{MAX_BOUND, Reader, config};
use super::load;
use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::Bindings;
use crate::model::decision::{Decision, Turn};
use crate::model::external::ExternalEvent;
use crate::model::handoff::Handoff;
use crate::model::hash::Hash;
use crate::model::id::{EventId, IdKind, Name, ResultId};
use crate::model::job::Polarity;
use crate::model::result::{Source, Standing, StoredResult};
use crate::model::run::Run;
use crate::model::session::{Session, Status};
use crate::model::state::State;
use crate::rules::checkpoint::carry;
use crate::rules::lease::what;
use crate::rules::once::{self, Consumed};
use crate::store::Gathered;

/// Let a result or an event act, once, for a named consumer
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf consume --as gate/ch01-review\n  \
    nf consume x-8c1v --as ci/gate --exit-verdict   0 pass, 10 any other verdict\n  \
    nf consume e-4q2m --as mail/desk                a receipt; an event moves no gate")]
pub struct Consume {
    /// The result or event; may be left out while exactly one result is valid and not consumed by NAME
    pub source: Option<String>,
    /// Who applies it; a gate moves only by a result and only under its own name
    #[arg(long = "as", value_name = "NAME")]
    pub consumer: Name,
    /// Exit 10 where the verdict is not a passing one
    #[arg(long)]
    pub exit_verdict: bool,
    /// Apply a contested result, for this reason (kept in the receipt)
    #[arg(long, value_name = "REASON")]
    pub contested: Option<String>,
}

/// A source that acted.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ConsumeReport {
    /// What came of it.
    #[serde(flatten)]
    pub consumed: Consumed,
    /// Why no gate moved, where none did.
    pub note: Option<String>,
    /// Artifacts whose files are not what was judged.
    pub changed: Vec<Name>,
    #[serde(skip)]
    not_passing: bool,
}

impl Report for ConsumeReport {
    const COMMAND: &'static str = "consume";

    fn answer(&self) -> String {
        self.consumed.application.to_string()
    }

    fn news(&self) -> Vec<String> {
        let Consumed { receipt, source, outcome, gate, gate_status, .. } = &self.consumed;
        let outcome = match source {
            Source::Result(_) => {
                let verdict = outcome.value.as_deref().unwrap_or("answered");
                let route =
                    outcome.route.as_ref().map_or_else(String::new, |route| format!(", route {route}"));
                format!(": outcome {verdict}{route}")
            }
            Source::Event(_) => String::new(),
        };
        let mut news = vec![format!("receipt {receipt} for {source}{outcome}")];
        match (gate, gate_status) {
            (Some(gate), Some(status)) => news.push(format!("gate {gate} is {status}")),
            _ => news.extend(self.note.clone()),
        }
        news.extend(self.changed.iter().map(|name| format!("note: {name} has changed since it was frozen")));
        news
    }

    fn next(&self) -> Option<String> {
        let Consumed { session, status, outcome, gate, way, .. } = &self.consumed;
        if gate.is_none() {
            return way.clone();
        }
        match &outcome.route {
            _ if outcome.polarity == Polarity::Neutral => {
                Some("no decision: change the text or the question, then nf freeze FILE".to_owned())
            }
            Some(route) if *status == Status::Running => {
                Some(format!("repair along {route}, then nf freeze FILE"))
            }
            _ => Some(crate::rules::lifecycle::way(session, *status)),
        }
    }

    fn failure(&self) -> Option<Error> {
        self.not_passing.then(|| {
            let verdict = self.consumed.outcome.value.as_deref().unwrap_or("none");
            Error::new(Kind::NotPassing, "the verdict is not a passing one")
                .because(format!("verdict {verdict}"))
        })
    }
}

/// What was read before the lock.
struct Facts {
    source: Source,
    declared: Bindings,
    changed: Vec<Name>,
}

impl Consume {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the rule and the store; `damaged` where the stored bytes are not what was recorded.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let opened = ctx.open()?;
        if self.contested.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            return Err(Error::new(Kind::Usage, "--contested wants a reason in words"));
        }
        let request = ctx.request(
            "consume",
            json!({"source": self.source, "as": self.consumer, "contested": self.contested,
                "run": ctx.global.run}),
        );
        // What is said about the files stands beside the answer: it is no part of what was decided.
        let changed = std::cell::RefCell::new(Vec::new());
        let answer = opened.transact(
            &request,
            |state| self.gather(ctx, &opened, state),
            |turn, facts: &Facts| {
                changed.replace(facts.changed.clone());
                self.decide(ctx, &opened, turn, facts)
            },
        )?;
        let exit_verdict = self.exit_verdict;
        let changed = changed.into_inner();
        Done::written(answer, |consumed| {
            let passes = consumed.outcome.polarity == Polarity::Pass;
            let note = consumed.gate.is_none().then(|| no_gate(consumed.own_gate.as_ref(), &self.consumer));
            ConsumeReport { consumed, note, changed, not_passing: exit_verdict && !passes }
        })
    }

    fn gather(&self, ctx: &Context, opened: &Opened, state: &State) -> Result<Gathered<Facts>> {
        let source = self.source(ctx, state)?;
        let Source::Result(id) = &source else {
            self.for_results_only()?;
            let (declared, changed) = (Bindings::default(), Vec::new());
            return Ok(Gathered::of(Facts { source, declared, changed }));
        };
        let result: StoredResult = get(state, id)?;
        let acting = acting(ctx, state, &source)?;
        let held = load::newest_bindings(&opened.store, state, &acting)?;
        let mut reader = Reader::new(&opened.project);
        let declared = reader.declared(&config(&opened.store)?, &held)?;
        let job = load::job(state, result.job.as_ref())?;
        let places = job.map(|job| job.places).unwrap_or_default();
        let changed = places.iter().filter(|place| {
            let bytes = reader.bytes(&place.path, place.lines, MAX_BOUND);
            !bytes.is_ok_and(|bytes| Hash::of(&bytes) == place.hash)
        });
        let changed = changed.map(|place| place.name.clone()).collect();
        let mut gathered = Gathered::of(Facts { source, declared, changed });
        gathered.files = reader.stamps;
        Ok(gathered)
    }

    /// Refuses what asks an event for a verdict.
    fn for_results_only(&self) -> Result<()> {
        let flags = [("--exit-verdict", self.exit_verdict), ("--contested", self.contested.is_some())];
        match flags.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Error::new(Kind::Usage, format!("{flag} is for results"))
                .because("an event has no verdict")
                .fix(format!("leave {flag} out"))),
            None => Ok(()),
        }
    }

    /// The source that is named; else the only valid result that the consumer has not applied; else, if there
    /// is none, the one that it has.
    fn source(&self, ctx: &Context, state: &State) -> Result<Source> {
        match &self.source {
            Some(text) if kind_of(text).is_ok_and(|kind| kind == IdKind::EventId) => {
                resolve::<EventId>(state, text).map(Source::Event)
            }
            Some(text) => resolve::<ResultId>(state, text).map(Source::Result),
            None => self.only_result(ctx, state).map(Source::Result),
        }
    }

    fn only_result(&self, ctx: &Context, state: &State) -> Result<ResultId> {
        let session = ctx.session(state)?;
        // A gate that waits takes the answer to its own question and no other.
        let run = session.run.as_ref().and_then(|id| state.get::<Run>(id));
        let waits = run.is_some_and(|run| run.pending.gates.contains_key(&self.consumer));
        let for_gate = |result: &StoredResult| {
            let handoff = state.get::<Handoff>(&result.provenance.handoff);
            !waits || handoff.is_some_and(|handoff| handoff.gate == self.consumer)
        };
        let rows = state.of_session(&session.id, IdKind::ResultId, None).take(1000);
        let results: Vec<StoredResult> = rows
            .filter_map(|row| state.get::<StoredResult>(&row.id.parse().ok()?))
            .filter(|result| {
                result.checked.as_ref().is_some_and(|checked| checked.standing != Standing::Surplus)
            })
            .filter(for_gate)
            .collect();
        let (applied, fresh): (Vec<_>, Vec<_>) =
            results.into_iter().partition(|result| result.consumed.contains_key(&self.consumer));
        if fresh.is_empty() && applied.is_empty() {
            return Err(nothing_back(state, &session));
        }
        let candidates = if fresh.is_empty() { applied } else { fresh };
        only("result", candidates, |result| {
            let verdict = result.checked.as_ref().and_then(|checked| checked.verdict.value.clone());
            let asked = what(result.job.as_ref(), Some(&result.provenance.handoff));
            format!("{} {asked} {}", result.id, verdict.unwrap_or_default())
        })
        .map(|result| result.id)
        .map_err(|error| error.fix(format!("nf consume RESULT --as {}", self.consumer)))
    }

    fn decide(
        &self,
        ctx: &Context,
        opened: &Opened,
        turn: &mut Turn<'_>,
        facts: &Facts,
    ) -> Result<Decision<Consumed>> {
        let (state, source) = (turn.state, &facts.source);
        let session = acting(ctx, state, source)?;
        ctx.expect_version(&session)?;
        let held = state.receipt_for(source, &self.consumer);
        let run = match (&held, ctx.current_run(state, &session)?) {
            (_, Some(run)) => run,
            // A repeat needs no current run: nothing will be written.
            (Some(_), None) => get(state, session.run.as_ref().ok_or_else(|| no_run(&session))?)?,
            (None, None) => return Err(no_run(&session)),
        };
        if held.is_none() && opened.store.mark(source, &self.consumer)?.is_some_and(|mark| !mark.is_empty()) {
            return Err(mark_without_record(source, &self.consumer));
        }
        let (consumer, acting) = (self.consumer.clone(), (session, run));
        match source {
            Source::Result(id) => {
                let result: StoredResult = get(state, id)?;
                let newest = load::newest_bindings(&opened.store, state, &acting.0)?;
                let held_for_question = state
                    .receipt_for_question(result.question(), &consumer)
                    .filter(|receipt| receipt.source != *source);
                let evidence = load::evidence(&opened.store, state, result)?;
                let contested = self.contested.clone();
                let bindings = carry(&newest, &facts.declared);
                let consuming = once::Consume {
                    evidence,
                    consumer,
                    contested,
                    acting,
                    held,
                    held_for_question,
                    bindings,
                };
                once::consume(turn, consuming)
            }
            Source::Event(id) => {
                let event: ExternalEvent = get(state, id)?;
                let payload = load::payload(&opened.store, &event)?;
                once::event::consume(turn, once::event::Consume { event, payload, consumer, acting, held })
            }
        }
    }
}

/// Why no gate moved.
fn no_gate(own: Option<&Name>, consumer: &Name) -> String {
    match own {
        Some(own) if own == consumer => format!("{own} is no gate of this session's run"),
        Some(own) => format!("no gate moved: the result is for {own}, not {consumer}"),
        None => "no gate moved: an event moves none".to_owned(),
    }
}

/// The session that acts: the one named, else the source's own while it can, else the only open one.
fn acting(ctx: &Context, state: &State, source: &Source) -> Result<Session> {
    if let Some(named) = ctx.named_session(state)? {
        return Ok(named);
    }
    let own = state.session_of_source(source).and_then(|id| state.get::<Session>(&id));
    own.filter(|session| !session.status.is_ended()).map_or_else(|| ctx.session(state), Ok)
}

fn no_run(session: &Session) -> Error {
    Error::new(
        Kind::NotCurrentRun,
        format!("session {} is {} and has no current run", session.id, session.status),
    )
    .fix(crate::rules::lifecycle::way(&session.id, session.status))
}

fn nothing_back(state: &State, session: &Session) -> Error {
    let outstanding = state.outstanding(&session.id);
    match outstanding.first() {
        Some(handoff) => Error::new(Kind::Pending, format!("handoff {} has no valid result yet", handoff.id))
            .because(format!("gate {} waits for it", handoff.gate))
            .fix("nf reply takes the answer; nf status shows what is outstanding"),
        None => Error::new(Kind::NoCandidate, format!("session {} has no result to consume", session.id))
            .fix("nf status"),
    }
}

/// The dangerous lie of an index is "absent": the mark is a second witness.
fn mark_without_record(source: &Source, consumer: &Name) -> Error {
    Error::new(Kind::Damaged, format!("a receipt mark of {consumer} for {source} has no record in the log"))
        .because("the log may have lost a record that was acknowledged")
}
