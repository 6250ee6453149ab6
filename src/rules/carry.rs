//! Work that is carried to a machine without a store and back: the two files, how they are sealed, and how
//! they are read. What a file says is never believed for what it says of itself: its hash finds what was cut
//! or edited on the way, and the store that takes a result back binds it anew.

use base64::Engine;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::freeze::FrozenJob;
use super::intake::{Extracted, Step};
use super::sound::finished;
use super::task;
use crate::error::{Error, Kind, Result};
use crate::model::event::Prose;
use crate::model::handoff::Transport;
use crate::model::hash::{Hash, canonical};
use crate::model::id::{AttemptId, HandoffId, Id, JobId, Name, SessionId};
use crate::model::job::Family;
use crate::model::json;
use crate::model::time::Time;
use crate::model::witness::Witness;

pub mod export;
pub mod far;

/// The format of both files.
pub const FORMAT: u64 = 1;
/// Bytes that an export file may have.
pub const MAX_EXPORT: u64 = 64 * 1024 * 1024;
/// Bytes that a result file may have.
pub const MAX_RETURN: u64 = 8 * 1024 * 1024;
/// Characters of a program's version.
const MAX_VERSION: usize = 64;

/// One of the two files that are carried.
pub trait Carried: Serialize + DeserializeOwned {
    /// The member that names the file's format; it stands first.
    const MARK: &'static str;
    /// What the file is called.
    const WHAT: &'static str;
    /// What to do with one that is given in the other's place.
    const INSTEAD: &'static str;
}

/// What goes out: a packet with all that is needed to answer it where there is no store. It holds the nonce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// The format: [`FORMAT`].
    pub nf_export: u64,
    /// The version of the program that wrote it.
    pub nf: String,
    /// The id of the store that asks.
    pub store: String,
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its number within the handoff.
    pub number: u32,
    /// The session that asks.
    pub source: SessionId,
    /// The family that is to answer.
    pub family: Family,
    /// Who carries it: the name proves nothing.
    pub worker: Option<Name>,
    /// What the answer returns to prove that it answers this packet.
    pub nonce: String,
    /// Until when nobody else may claim.
    pub expires_at: Time,
    /// The packet, in the family's own form.
    pub packet: String,
    /// What is listed for the worker besides the packet, by name.
    pub context: Vec<Name>,
    /// The frozen question and its terms, or the work that is none, in the same form without ids.
    pub job: FrozenJob,
    /// The bytes of its artifacts.
    pub artifacts: Vec<Content>,
}

/// The bytes of one artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// `utf-8` or `base64`.
    pub encoding: String,
    /// The bytes in that encoding.
    pub content: String,
}

/// What comes back: one answer as it was extracted, and how. It holds the nonce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Returned {
    /// The format: [`FORMAT`].
    pub nf_result: u64,
    /// The version of the program that took the answer.
    pub nf: String,
    /// The store that asked.
    pub store: String,
    /// The handoff.
    pub handoff: HandoffId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The job, where it is a frozen question.
    pub job: Option<JobId>,
    /// The hash of the export file that was answered.
    pub export: Hash,
    /// Length and hash of what was pasted; the text itself is not kept.
    pub pasted: Prose,
    /// What intake changed, by name.
    pub steps: Vec<Step>,
    /// Length and hash of the text around the answer; the text itself is not kept.
    pub prose: Option<Prose>,
    /// What was seen of the program that answered, where `nf work` ran one: no more than a statement at home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// The answer: the return form, filled in.
    pub answer: Value,
}

impl Carried for Export {
    const MARK: &'static str = "nf_export";
    const WHAT: &'static str = "export file";
    const INSTEAD: &'static str = "nf packet --from FILE prints its packet, nf reply --from FILE --out RES \
        takes the answer, nf import RES brings it home";
}

impl Carried for Returned {
    const MARK: &'static str = "nf_result";
    const WHAT: &'static str = "result file";
    const INSTEAD: &'static str = "nf import FILE takes it, where the store is";
}

/// A file with the hash that it carries in itself.
#[derive(Serialize)]
struct Sealed<'a, T> {
    #[serde(flatten)]
    document: &'a T,
    hash: Hash,
}

/// The text of a file with its own hash in it, and that hash.
pub fn sealed<T: Carried>(document: &T) -> (String, Hash) {
    let hash = Hash::of(&canonical(document));
    // Only what serialised just now is written again.
    let text = serde_json::to_string_pretty(&Sealed { document, hash }).unwrap_or_default();
    (text + "\n", hash)
}

/// Reads a file that was carried: whole, of a known format, and the right one of the two. Gives its hash too.
///
/// # Errors
/// `too_large`, `bad_input` for what is no such file or is not as it was written, `newer_format`, `usage` for
/// the other of the two files.
pub fn unsealed<T: Carried>(bytes: &[u8]) -> Result<(T, Hash)> {
    let what = T::WHAT;
    let mut value = json::parse(bytes).map_err(|fault| {
        fault.into_error(format!("the {what}")).fix("carry the file again, whole and unchanged")
    })?;
    let Some(map) = value.as_object_mut() else { return Err(no_such_file(what)) };
    known_format::<T>(map)?;
    let stated = map.remove("hash");
    let hash = Hash::of(&canonical(&value));
    if stated.and_then(|stated| serde_json::from_value::<Hash>(stated).ok()) != Some(hash) {
        return Err(Error::new(Kind::BadInput, format!("the {what} is not as it was written"))
            .because("its own hash does not hold: it was cut or edited on the way")
            .fix("carry the file again, whole and unchanged"));
    }
    let document = serde_json::from_value(value).map_err(|error| {
        Error::new(Kind::BadInput, format!("the {what} is none that nf wrote")).because(error.to_string())
    })?;
    Ok((document, hash))
}

/// Refuses the other of the two files, and formats that are not known here.
fn known_format<T: Carried>(map: &Map<String, Value>) -> Result<()> {
    let what = T::WHAT;
    match map.get(T::MARK).and_then(Value::as_u64) {
        Some(FORMAT) => return Ok(()),
        Some(newer) if newer > FORMAT => {
            return Err(Error::new(Kind::NewerFormat, format!("this {what} has format {newer}"))
                .because(format!("this version of nf reads format {FORMAT}"))
                .fix("update nf on this machine; the file itself is as it was"));
        }
        _ => {}
    }
    let kinds =
        [(Export::MARK, Export::WHAT, Export::INSTEAD), (Returned::MARK, Returned::WHAT, Returned::INSTEAD)];
    match kinds.into_iter().find(|(mark, ..)| *mark != T::MARK && map.contains_key(*mark)) {
        Some((_, is, instead)) => {
            Err(Error::new(Kind::Usage, format!("the {what} is wanted here, and this is the {is}"))
                .fix(instead))
        }
        None => Err(no_such_file(what)),
    }
}

fn no_such_file(what: &str) -> Error {
    Error::new(Kind::BadInput, format!("this is no {what}"))
        .fix("nf export HANDOFF --out FILE writes an export file, nf reply --from FILE --out RESULT a result")
}

/// Whether a text can be the version of a program: it stands in the record and proves nothing.
fn is_version(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_VERSION && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Export {
    /// Reads an export file, and looks whether its parts belong together.
    ///
    /// # Errors
    /// As [`unsealed`]; `bad_input` where job, artifacts and packet are not of one piece.
    pub fn read(bytes: &[u8]) -> Result<(Self, Hash)> {
        let (export, hash) = unsealed::<Self>(bytes)?;
        let torn = |why: &str| {
            Error::new(Kind::BadInput, "the export file does not hold together").because(why.to_owned())
        };
        let job = &export.job;
        let (fingerprint, digest) = job.digest_again();
        let id = digest.rsplit(':').next().and_then(|hex| hex.parse::<Hash>().ok());
        let id = id.map(|hash| JobId::from_bytes(hash.bytes()));
        let named = (job.fingerprint.as_ref(), job.job_digest.as_ref(), job.id.as_ref());
        // Work that is no question has no digest of its own: the file's hash is all that holds it together,
        // and the store that takes the answer home binds it to what it kept.
        let is_task = named == (None, None, None) && job.question.kind == task::KIND;
        if !is_task && (id.is_none() || named != (Some(&fingerprint), Some(&digest), id.as_ref())) {
            return Err(torn("its job is not the one that its digest names"));
        }
        // No freeze has looked at it on this machine: a schema is used only once it is known to be sound.
        let rule = job.verdict_rule();
        if rule.is_some() != job.question.verdict.is_some() {
            return Err(torn("its verdict rule is none"));
        }
        finished(Self::WHAT, &job.question.output, rule.as_ref(), &job.question.evidence)?;
        let wanted: Vec<Hash> = export.job.artifacts().iter().map(|artifact| artifact.hash).collect();
        let there = export.contents().map(|contents| contents.iter().map(|bytes| Hash::of(bytes)).collect());
        if there != Some(wanted) {
            return Err(torn("its artifacts are not those that its job names"));
        }
        if !export.packet.contains(&export.nonce) || !is_version(&export.nf) {
            return Err(torn("its packet is not that of its attempt"));
        }
        Ok((export, hash))
    }

    /// The bytes of the artifacts, where all can be decoded.
    pub fn contents(&self) -> Option<Vec<Vec<u8>>> {
        let decode = |content: &Content| match content.encoding.as_str() {
            "utf-8" => Some(content.content.clone().into_bytes()),
            "base64" => base64::engine::general_purpose::STANDARD.decode(&content.content).ok(),
            _ => None,
        };
        self.artifacts.iter().map(decode).collect()
    }

    /// The form that its packet has.
    pub fn form(&self) -> Transport {
        Transport::Import.form(self.family)
    }
}

impl Returned {
    /// Reads a result file.
    ///
    /// # Errors
    /// As [`unsealed`].
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let (returned, _) = unsealed::<Self>(bytes)?;
        if !is_version(&returned.nf) {
            return Err(Error::new(Kind::BadInput, "the result file is none that nf wrote")
                .because("the version of the program is none"));
        }
        Ok(returned)
    }

    /// What intake found far away, beside what it finds in the answer here.
    pub fn told(&self, here: Extracted) -> Extracted {
        Extracted { steps: self.steps.clone(), prose: self.prose.clone(), ..here }
    }

    /// Refuses a result of another store.
    ///
    /// # Errors
    /// `mismatched_references`.
    pub fn of_store(&self, store: &str) -> Result<()> {
        if self.store == store {
            return Ok(());
        }
        let theirs: String = self.store.chars().take(40).collect();
        Err(Error::new(Kind::MismatchedReferences, "this result file answers a question of another store")
            .because(format!("want {store}, got {theirs}"))
            .fix("nf import it in the project that exported it"))
    }
}

fn content(name: &str, bytes: &[u8]) -> Content {
    let (encoding, content) = match std::str::from_utf8(bytes) {
        Ok(text) => ("utf-8", text.to_owned()),
        Err(_) => ("base64", base64::engine::general_purpose::STANDARD.encode(bytes)),
    };
    Content { name: name.to_owned(), encoding: encoding.to_owned(), content }
}
