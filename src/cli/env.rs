//! The environment variables of `nf`, declared in one place. Only `main` reads them.

use std::collections::BTreeMap;

use crate::error::{Error, Kind, Result};
use crate::model::time::{Moment, Time};

/// Every variable that `nf` reads, with what it is for.
pub const VARIABLES: &[(&str, &str)] = &[
    ("NF_DIR", "the store folder itself, in place of the nearest .novelforge/ upward"),
    ("NF_CONFIG", "the folder of workers.yaml, in place of the platform's config folder"),
    ("NF_SESSION", "the session that commands act for; --session goes before it"),
    ("NF_RUN", "the run that commands act for; refused where it is no longer the current one"),
    ("NF_NONCE", "the nonce of an attempt, where a reply does not carry it"),
    ("NF_OP", "the operation key; --op goes before it"),
    ("PATH", "where capability probe, effect run and work look for a program; only absolute folders count"),
    ("TMPDIR", "where work makes the empty folder of a program that it runs [/tmp]; never in the project"),
    ("NF_LOG", "diagnostics on stderr: error, warn, info, debug or trace"),
    ("NF_NOW", "a fixed time (RFC 3339); only in a store made with init --testing"),
    ("NF_BOOT", "fixed clocks MACHINE/BOOT_ID/NAMESPACE/BOOTTIME_MS; only in a testing store"),
    ("NF_SEED", "seeded ids and nonces; only in a testing store"),
    ("NO_COLOR", "no colour, unless --color always"),
    ("CLICOLOR", "0: no colour"),
    ("CLICOLOR_FORCE", "1: colour also where the output is no terminal"),
];

/// The variables that were set.
#[derive(Debug, Clone, Default)]
pub struct Env(pub BTreeMap<String, String>);

impl Env {
    /// A variable, where it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The variables as `nf --help` lists them.
    pub fn help() -> String {
        let lines: Vec<String> =
            VARIABLES.iter().map(|(name, what)| format!("  {name:<15} {what}")).collect();
        format!("Environment:\n{}", lines.join("\n"))
    }
}

/// The moment that `NF_BOOT` gives a testing store: `MACHINE/BOOT_ID/NAMESPACE/BOOTTIME_MS`.
///
/// # Errors
/// `usage` for another form.
pub fn boot(text: &str, wall: Time) -> Result<Moment> {
    let wrong = || {
        Error::new(Kind::Usage, "NF_BOOT is not MACHINE/BOOT_ID/NAMESPACE/BOOTTIME_MS")
            .because(format!("got {text:?}"))
    };
    let parts: Vec<&str> = text.split('/').collect();
    let [machine, boot_id, namespace, boottime] = parts[..] else { return Err(wrong()) };
    Ok(Moment {
        wall,
        machine: machine.to_owned(),
        boot_id: boot_id.to_owned(),
        namespace: namespace.to_owned(),
        boottime_ms: boottime.parse().map_err(|_| wrong())?,
    })
}
