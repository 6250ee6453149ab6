//! What is wrong with the settings: the store's `config.yaml` and contract packs, and the user's own
//! `workers.yaml`. None of it damages a store; each is found here before a command stumbles over it.

use crate::cli::contract::packs;
use crate::cli::ctx::{Context, Opened};
use crate::cli::input::config;
use crate::cli::workers::{Worker, settings};
use crate::error::Error;
use crate::store::{Finding, Severity};

/// Every fault of the settings, and every key that is named and not set.
pub fn findings(ctx: &Context, opened: &Opened) -> Vec<Finding> {
    let mut found = Vec::new();
    let store = [("config", config(&opened.store).err()), ("contracts", packs(&opened.store).err())];
    found.extend(store.into_iter().filter_map(|(code, error)| Some(fault(code, &error?))));
    match settings(ctx) {
        Err(error) => found.push(fault("workers", &error)),
        Ok(settings) => {
            let without = settings.workers.values().filter(|worker| worker.key(ctx).is_none());
            found.extend(without.filter_map(unset));
        }
    }
    found
}

fn fault(code: &str, error: &Error) -> Finding {
    let cause = error.cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"));
    Finding {
        code: code.to_owned(),
        severity: Severity::Warning,
        what: format!("{}{cause}", error.message),
        fix: error.next_step().to_owned(),
    }
}

/// A worker whose key has a variable that is not set. It may well be set where the worker is run.
fn unset(worker: &Worker) -> Option<Finding> {
    let variable = worker.key_env.as_ref()?;
    Some(Finding {
        code: "key_unset".to_owned(),
        severity: Severity::Note,
        what: format!("worker {} takes its key from {variable}, which is not set here", worker.name),
        fix: format!("export {variable} where the worker is run"),
    })
}
