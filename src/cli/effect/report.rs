//! What the `effect` commands say.

use crate::cli::output::Report;
use crate::error::Error;
use crate::model::effect::{Effect, EffectState, FileState};
use crate::rules::effect::{EffectStatus, Planned, Seen, Stepped, held, status, unproved};

/// A plan that stands.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct PlanReport(pub Planned);

impl Report for PlanReport {
    const COMMAND: &'static str = "effect.plan";

    fn answer(&self) -> String {
        self.0.effect.id.to_string()
    }

    fn news(&self) -> Vec<String> {
        let Effect { key, path, before, required, receipts, state, .. } = &self.0.effect;
        let short = |state: &FileState| match state {
            FileState::File(hash) => hash.short(),
            FileState::Nothing(nothing) => nothing.to_string(),
        };
        let (from, to) = (short(before), required.short());
        let mut news = vec![format!("effect {key} is {state}: {path} from {from} to {to}")];
        if receipts.is_empty() {
            news.push("note: it rests on no receipt".to_owned());
        }
        news.extend(self.0.bound.iter().map(|name| {
            format!("note: {path} is bound as {name}; once it is written, nf checkpoint save binds it anew")
        }));
        let contested = self.0.contested.iter();
        news.extend(contested.map(|id| format!("note: receipt {id} rests on a contested result")));
        news
    }

    fn next(&self) -> Option<String> {
        let Effect { key, state, .. } = &self.0.effect;
        Some(match state {
            EffectState::Planned => format!("nf effect run {key} -- CMD"),
            _ => format!("nf effect check {key}"),
        })
    }
}

/// How an effect stands.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct CheckReport {
    /// What log and path say of it together.
    pub status: EffectStatus,
    /// Whether it was started and neither done nor proved by its path.
    pub uncertain: bool,
    /// What stands at its path now; null where that cannot be read.
    pub now: Option<FileState>,
    /// The effect, as the log tells it.
    pub effect: Effect,
    #[serde(skip)]
    seen: Seen,
}

impl CheckReport {
    /// The report on an effect, with what stands at its path.
    pub fn of(effect: Effect, seen: Seen) -> Self {
        let proved = seen == Ok(FileState::File(effect.required));
        Self {
            status: status(&effect, &seen),
            uncertain: effect.state == EffectState::Started && !proved,
            now: seen.clone().ok(),
            effect,
            seen,
        }
    }
}

impl Report for CheckReport {
    const COMMAND: &'static str = "effect.check";

    fn answer(&self) -> String {
        self.status.to_string()
    }

    fn news(&self) -> Vec<String> {
        let Effect { id, key, path, state, followed_by, .. } = &self.effect;
        let mut news = vec![format!("effect {id} ({key}) is {state}; {path} holds {}", self.held())];
        news.extend(followed_by.as_ref().map(|next| format!("effect {next} went on from it")));
        if let Some(error) = unproved(&self.effect, &self.seen) {
            let fix = format!("fix:   {}", error.next_step());
            news.extend([format!("{}: {}", error.message, error.cause.unwrap_or_default()), fix]);
        }
        news
    }

    fn next(&self) -> Option<String> {
        let key = &self.effect.key;
        match (self.status, self.effect.state) {
            (EffectStatus::Untouched, EffectState::Planned) => Some(format!("nf effect run {key} -- CMD")),
            (EffectStatus::Applied, EffectState::Planned) => Some(format!("nf effect done {key}")),
            _ => None,
        }
    }

    fn failure(&self) -> Option<Error> {
        unproved(&self.effect, &self.seen)
    }
}

impl CheckReport {
    fn held(&self) -> String {
        held(&self.effect, &self.seen)
    }
}

macro_rules! step_report {
    ($(#[$doc:meta])* $name:ident $command:literal) => {
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Stepped);

        impl Report for $name {
            const COMMAND: &'static str = $command;

            fn answer(&self) -> String {
                self.0.application.to_string()
            }

            fn news(&self) -> Vec<String> {
                let Effect { id, key, path, state, .. } = &self.0.effect;
                let mut news = vec![format!("effect {id} ({key}) is {state}")];
                if self.0.status == EffectStatus::Diverged && *state == EffectState::Done {
                    news.push(format!("note: {path} has changed since: nf effect check {key}"));
                }
                news
            }

            fn next(&self) -> Option<String> {
                let Effect { key, path, state, .. } = &self.0.effect;
                let cleared = *state == EffectState::Cleared;
                cleared.then(|| format!("nf effect plan --key {key} --path {path} --expect HASH|FILE"))
            }
        }
    };
}

step_report! {
    /// A command that wrote.
    RunReport "effect.run"
}
step_report! {
    /// An effect that is done.
    DoneReport "effect.done"
}
step_report! {
    /// An effect that was given up.
    ClearReport "effect.clear"
}
