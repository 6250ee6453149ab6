//! Evidence for capabilities: what may be recorded, from when on it ends, and whether what outstanding work
//! needs has any (semantic-execution contract, 02; session-runtime contract, 07). Nothing is inferred from a
//! name, and evidence grants nothing.

use super::secret::looks_secret;
use crate::error::{Error, Kind, Result};
use crate::model::capability::{Capability, Currency, Proof};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::id::{ID_LENGTH, IdKind, Name, is_base32};
use crate::model::job::{Cost, Family, Locality, ResultScope};
use crate::model::time::Time;

/// How long a declaration counts.
pub const DECLARED_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// How long a probe counts.
pub const PROBED_MS: u64 = 24 * 60 * 60 * 1000;
/// How long any evidence may count.
pub const MAX_MS: u64 = 366 * 24 * 60 * 60 * 1000;
/// Bytes that a detail or the name of a model or program has at most.
pub const MAX_TEXT: usize = 1024;
/// Models that one capability lists at most.
pub const MAX_MODELS: usize = 64;
/// Characters of a version line that are kept.
const VERSION_SHOWN: usize = 200;

/// What is said of a capability.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    /// The evidence as it is said; what it rests on and its times are the rule's to fill in.
    pub evidence: Capability,
    /// How long the evidence counts, where that is said.
    pub expires_ms: Option<u64>,
}

impl Stated {
    /// What is known of a capability of which nothing is said: the least in everything, so that no route
    /// rests on what nobody stated.
    pub fn least(name: Name, family: Family) -> Self {
        let evidence = Capability {
            name,
            family,
            available: true,
            proof: Proof::Declared,
            source: String::new(),
            permission_class: ResultScope::Diagnostic,
            cost: Cost::Metered,
            interactive: true,
            executes_model: false,
            isolated_invocation: false,
            locality: Locality::Any,
            models: Vec::new(),
            detail: None,
            observed_at: Time::from_micros(0),
            expires_at: Time::from_micros(0),
        };
        Self { evidence, expires_ms: None }
    }
}

/// What a probe came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// What was looked at: a program's file where it was found, an endpoint's host, else what was asked for.
    pub source: String,
    /// What it said of itself, or why it said nothing.
    pub answer: std::result::Result<String, String>,
    /// The models that it listed.
    pub models: Vec<String>,
    /// What to do where it is not there.
    pub fix: &'static str,
}

/// Records what somebody says of a capability.
///
/// # Errors
/// `usage` for a text or an end that cannot be kept; `looks_secret`.
pub fn declare(turn: &mut Turn<'_>, stated: Stated) -> Result<Decision<Capability>> {
    let evidence = evidence(turn, stated, Proof::Declared, "command line".to_owned(), DECLARED_MS)?;
    Ok(Decision::new(vec![observed(&evidence)], evidence))
}

/// Records what a probe saw. One that saw nothing is evidence too, and the command is not content.
///
/// # Errors
/// As [`declare`]; `execution_unavailable`, recorded, where what was probed is not there or does not answer.
pub fn probe(turn: &mut Turn<'_>, mut stated: Stated, probed: Probed) -> Result<Decision<Capability>> {
    stated.evidence.available = probed.answer.is_ok();
    if stated.evidence.models.is_empty() {
        // A list of models is a stranger's text too.
        let kept = probed.models.into_iter().filter(|model| may_be_kept("a model", model).is_ok());
        stated.evidence.models = kept.take(MAX_MODELS).collect();
    }
    let found = match &probed.answer {
        // A version is a stranger's text: what of it cannot be kept is left out.
        Ok(line) if looks_secret(line).is_some() => "answers --version; its text is not kept".to_owned(),
        Ok(line) => line.chars().filter(|c| !is_hidden(*c)).take(VERSION_SHOWN).collect(),
        Err(why) => why.clone(),
    };
    stated.evidence.detail = Some(found.clone());
    let evidence = evidence(turn, stated, Proof::Probed, probed.source, PROBED_MS)?;
    let event = observed(&evidence);
    if evidence.available {
        return Ok(Decision::new(vec![event], evidence));
    }
    let error = Error::new(Kind::ExecutionUnavailable, format!("capability {} is not there", evidence.name))
        .because(found)
        .fix(probed.fix)
        .details(serde_json::json!({"capability": evidence}));
    Ok(Decision::refused(vec![event], error))
}

fn observed(evidence: &Capability) -> Event {
    Event::CapabilityObserved { capability: evidence.clone() }
}

fn evidence(
    turn: &Turn<'_>,
    stated: Stated,
    proof: Proof,
    source: String,
    default_ms: u64,
) -> Result<Capability> {
    let Stated { evidence: said, expires_ms } = stated;
    is_no_id(&said.name)?;
    let models = said.models.iter().map(|model| ("--model", model.as_str()));
    let texts = [("the name", said.name.as_str()), ("the program", source.as_str())];
    let detail = said.detail.iter().map(|detail| ("--detail", detail.as_str()));
    for (what, text) in texts.into_iter().chain(models).chain(detail) {
        may_be_kept(what, text)?;
    }
    if said.models.len() > MAX_MODELS {
        return Err(Error::new(Kind::Usage, format!("at most {MAX_MODELS} models can be listed")));
    }
    let length = expires_ms.unwrap_or(default_ms);
    if !(1000..=MAX_MS).contains(&length) {
        return Err(Error::new(Kind::Usage, "evidence counts from 1 second to 366 days")
            .because(format!("--expires gives {length} ms"))
            .fix("give --expires a duration such as 12h or 30d"));
    }
    let (observed_at, expires_at) = (turn.at(), turn.at().plus_millis(length));
    Ok(Capability { proof, source, observed_at, expires_at, ..said })
}

/// The end of the evidence for a capability that turned out not to be there: refused, or nobody answers.
/// Nothing where there is no evidence that says otherwise.
pub fn gone(turn: &Turn<'_>, name: &Name, why: &str) -> Option<Event> {
    let held = turn.state.capability(name.as_str())?;
    (held.currency(turn.at()) == Currency::Current).then(|| Event::CapabilityObserved {
        capability: Capability {
            available: false,
            detail: Some(why.chars().filter(|c| !is_hidden(*c)).take(VERSION_SHOWN).collect()),
            observed_at: turn.at(),
            ..held
        },
    })
}

/// `show` takes ids and names of capabilities; a name that could be an id would hide behind one.
fn is_no_id(name: &Name) -> Result<()> {
    let (letter, rest) = name.as_str().split_once('-').unwrap_or_default();
    let kind = letter.chars().next().filter(|_| letter.len() == 1).and_then(IdKind::of_letter);
    match kind {
        Some(kind) if (4..=ID_LENGTH).contains(&rest.len()) && is_base32(rest, rest.len()) => {
            Err(Error::new(Kind::Usage, format!("{name} has the form of a {} id", kind.word()))
                .fix("give the capability another name"))
        }
        _ => Ok(()),
    }
}

fn may_be_kept(what: &str, text: &str) -> Result<()> {
    if let Some(why) = looks_secret(text) {
        return Err(Error::new(Kind::LooksSecret, format!("{what} looks like a secret")).because(why));
    }
    if text.trim().is_empty() || text.len() > MAX_TEXT {
        return Err(Error::new(Kind::Usage, format!("{what} has 1 to {MAX_TEXT} bytes")));
    }
    if text.chars().any(is_hidden) {
        return Err(Error::new(Kind::Usage, format!("{what} has control or bidirectional characters")));
    }
    Ok(())
}

/// A character that a terminal obeys and does not show.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Why a capability cannot be counted on now; nothing where its evidence is current.
pub fn lack(evidence: Option<&Capability>, now: Time) -> Option<String> {
    let Some(evidence) = evidence else { return Some("no evidence".to_owned()) };
    match evidence.currency(now) {
        Currency::Current => None,
        Currency::Expired => Some(format!("its evidence expired at {}", evidence.expires_at)),
        Currency::Unavailable => {
            let detail = evidence.detail.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            Some(format!("recorded as unavailable{detail}"))
        }
    }
}
