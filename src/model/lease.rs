//! Leases: how long an attempt is protected, by each clock that may be asked later. A clock only decides when
//! others may reclaim; whether that time has come is a rule's to say (control-plane contract, 05).

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::time::{Moment, Time};

/// What wall clocks of two boots may differ by.
const WALL_GRACE_MS: i64 = 30_000;

/// How long an attempt is protected from reclaim, by each clock that may be asked later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lease {
    /// Its length in milliseconds.
    pub ttl_ms: u64,
    /// Hash of the machine id.
    pub machine: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// The time namespace.
    pub namespace: String,
    /// CLOCK_BOOTTIME at its start, in milliseconds.
    pub boottime_ms: u64,
    /// Wall clock at its start.
    pub wall: Time,
}

impl Lease {
    /// A lease that starts now.
    pub fn starting(now: &Moment, ttl_ms: u64) -> Self {
        Self {
            ttl_ms,
            machine: now.machine.clone(),
            boot_id: now.boot_id.clone(),
            namespace: now.namespace.clone(),
            boottime_ms: now.boottime_ms,
            wall: now.wall,
        }
    }

    /// When it ends by its own boot clock, in milliseconds.
    pub fn boottime_end(&self) -> u64 {
        self.boottime_ms.saturating_add(self.ttl_ms)
    }

    /// From when it counts as over by the wall clock of another boot or machine, in milliseconds.
    pub fn wall_end(&self) -> i64 {
        let length = i64::try_from(self.ttl_ms).unwrap_or(i64::MAX);
        self.wall.millis().saturating_add(length).saturating_add(WALL_GRACE_MS)
    }

    /// The machine, boot and time namespace whose boot clock it runs by, as one word.
    pub fn clock(&self) -> String {
        clock(&self.machine, &self.boot_id, &self.namespace)
    }

    /// When it ends by the wall clock, for people.
    pub fn expires_at(&self) -> Time {
        self.wall.plus_millis(self.ttl_ms)
    }
}

/// The one word for a machine, boot and time namespace.
pub fn clock(machine: &str, boot_id: &str, namespace: &str) -> String {
    Hash::of_parts(&[machine, boot_id, namespace]).hex()[..16].to_owned()
}
