//! The list of capabilities, which have names and no ids: the newest evidence of each name, the newest first.

use serde_json::Value;

use super::List;
use crate::error::{Error, Kind, Result};
use crate::model::capability::{Capability, Currency, Observation};
use crate::model::state::State;
use crate::model::time::Time;

/// The kind, as the command line names it.
pub const CAPABILITY: &str = "capability";

/// Its columns.
pub const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "/name"),
    ("FAMILY", "/family"),
    ("STATE", "/state"),
    ("PROOF", "/proof"),
    ("COST", "/cost"),
    ("EXPIRES", "/expires_at"),
];

/// Evidence as the log tells it, with whether it counts now. A clock that was set back brings nothing back.
pub fn with_state(state: &State, capability: &Capability, wall: Time) -> Value {
    let now = state.meta().at.map_or(wall, |before| before.max(wall));
    let mut value = serde_json::to_value(capability).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("state".to_owned(), capability.currency(now).word().into());
    }
    value
}

/// A page, with the token of the next one.
///
/// # Errors
/// `usage` for what evidence does not have.
pub fn page(list: &List, state: &State, wall: Time) -> Result<(Vec<Value>, Option<u64>)> {
    let wanted = list.state.as_deref().map(str::parse::<Currency>).transpose();
    let wanted = wanted.map_err(|bad| Error::new(Kind::Usage, format!("--state: {bad}")))?;
    if list.resource.is_some() || list.job.is_some() {
        return Err(Error::new(Kind::Usage, "a capability belongs to no resource and no job")
            .fix("nf list capability, without --resource and --job; nf route JOB"));
    }
    let mut all: Vec<Observation> = state.capabilities().collect();
    all.sort_by_key(|observation| std::cmp::Reverse(observation.place));
    let mut rows = all
        .iter()
        .filter(|observation| list.after.is_none_or(|after| observation.place < after))
        .map(|observation| (observation.place, with_state(state, &observation.capability, wall)))
        .filter(|(_, value)| wanted.is_none_or(|wanted| value["state"] == wanted.word()));
    let page: Vec<(u64, Value)> = rows.by_ref().take(list.limit as usize).collect();
    let next = rows.next().and_then(|_| page.last().map(|(place, _)| *place));
    Ok((page.into_iter().map(|(_, value)| value).collect(), next))
}
