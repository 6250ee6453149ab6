//! Capabilities: what somebody said or a probe saw of a way to have a question answered. Evidence has an end
//! and grants nothing; the newest of a name counts (semantic-execution contract, 02).

use serde::{Deserialize, Serialize};

use super::id::Name;
use super::job::{Cost, Family, Locality, ResultScope};
use super::state::State;
use super::tables::{Key, Table};
use super::time::Time;
use crate::words;

words! {
    /// What evidence rests on.
    Proof {
        /// A probe saw that it is there; everything else is as stated.
        Probed = "probed",
        /// Somebody said so.
        Declared = "declared",
    }
}

words! {
    /// Whether evidence counts at a moment.
    Currency {
        /// It says that the capability is there, and has not ended.
        Current = "current",
        /// It says that the capability is not there.
        Unavailable = "unavailable",
        /// It has ended.
        Expired = "expired",
    }
}

/// The evidence for one capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capability {
    /// What it is called. Nothing is read out of the name.
    pub name: Name,
    /// The family of execution that it belongs to.
    pub family: Family,
    /// Whether it is there.
    pub available: bool,
    /// What the evidence rests on.
    pub proof: Proof,
    /// Who or what it comes from: the command line, or the program that was probed.
    pub source: String,
    /// The widest result scope that it is allowed to answer with.
    pub permission_class: ResultScope,
    /// What it costs.
    pub cost: Cost,
    /// Whether a person has to act for it.
    pub interactive: bool,
    /// Whether it has a model answer.
    pub executes_model: bool,
    /// Whether each invocation is a separate one that shares no context with the one who asks.
    pub isolated_invocation: bool,
    /// Whether the text stays on this machine.
    pub locality: Locality,
    /// The models that it serves, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it was said or seen.
    pub observed_at: Time,
    /// From when on it counts no more.
    pub expires_at: Time,
}

impl Capability {
    /// Whether the evidence counts at a moment.
    pub fn currency(&self, now: Time) -> Currency {
        match (now < self.expires_at, self.available) {
            (false, _) => Currency::Expired,
            (true, false) => Currency::Unavailable,
            (true, true) => Currency::Current,
        }
    }
}

/// The newest evidence of a name, and where in the order it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Its place: sequence number of the record × 2^12 + number of the event in it.
    pub place: u64,
    /// The evidence.
    pub capability: Capability,
}

impl State {
    /// The newest evidence of a name counts.
    pub(super) fn capability_observed(&mut self, capability: &Capability, place: u64) {
        let key = Key::new(Table::Capability).text(capability.name.as_str());
        self.tables.put(key, &Observation { place, capability: capability.clone() });
    }

    /// The newest evidence of a capability.
    pub fn capability(&self, name: &str) -> Option<Capability> {
        let key = Key::new(Table::Capability).text(name);
        self.tables.get::<Observation>(&key).map(|observation| observation.capability)
    }

    /// The newest evidence of every name, in the order of the names' lengths and letters.
    pub fn capabilities(&self) -> impl Iterator<Item = Observation> + use<'_> {
        self.tables.scan(&Key::new(Table::Capability))
    }
}
