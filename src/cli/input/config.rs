//! The store's `config.yaml`: bindings and preferences. It comes with a store that somebody may have copied,
//! so it can name no program, no host and no key.

use super::split_pointer;
use crate::error::Result;
use crate::model::id::Name;
use crate::model::job::Family;
use crate::model::yaml;
use crate::rules::members::{Members, names_nothing, wrong};
use crate::store::Store;

/// What the store's `config.yaml` declares: bindings, each still without a hash, and preferences.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// Authority files.
    pub authority: Vec<String>,
    /// Recorded versions: name, path and pointer.
    pub compatibility: Vec<(Name, String, Option<String>)>,
    /// The families that routes are ranked by, the dearest first. They make none eligible.
    pub families: Vec<Family>,
}

/// Reads `config.yaml`. It holds preferences and bindings; it can never name a program or a host.
///
/// # Errors
/// `bad_input` with the pointer.
pub fn config(store: &Store) -> Result<Declared> {
    read(store).map_err(names_nothing)
}

fn read(store: &Store) -> Result<Declared> {
    let Some(bytes) = store.config()? else { return Ok(Declared::default()) };
    if yaml::is_blank(&bytes) {
        return Ok(Declared::default());
    }
    let value = yaml::parse(&bytes).map_err(|fault| fault.into_error("config.yaml"))?;
    let what = "config.yaml";
    if value.is_null() {
        return Ok(Declared::default());
    }
    let members = Members::new(what, &value, "", &["bindings", "preferences"])?;
    let families = preferred(what, &members)?;
    let Some(bindings) = members.raw("bindings") else {
        return Ok(Declared { families, ..Declared::default() });
    };
    let inner = Members::new(what, bindings, "/bindings", &["authority", "compatibility"])?;
    let compatibility: std::collections::BTreeMap<Name, String> =
        inner.get("compatibility")?.unwrap_or_default();
    Ok(Declared {
        families,
        authority: inner.get("authority")?.unwrap_or_default(),
        compatibility: compatibility
            .into_iter()
            .map(|(name, place)| {
                let (path, pointer) = split_pointer(&place);
                (name, path, pointer)
            })
            .collect(),
    })
}

fn preferred(what: &str, members: &Members<'_>) -> Result<Vec<Family>> {
    let Some(preferences) = members.raw("preferences") else { return Ok(Vec::new()) };
    let inner = Members::new(what, preferences, "/preferences", &["families"])?;
    let families: Vec<Family> = inner.get("families")?.unwrap_or_default();
    match families.iter().enumerate().find(|(at, family)| families[..*at].contains(family)) {
        Some((_, twice)) => Err(wrong(what, &inner.at("families"), &format!("{twice} stands here twice"))),
        None => Ok(families),
    }
}
