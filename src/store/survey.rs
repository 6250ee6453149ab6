//! How the store's folder is laid out against how it should be: kinds, owners, modes, leftovers. Looks
//! only; knows nothing of what the files say, but for head.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};

use super::finding::{Finding, Severity};
use super::head;
use super::init::{FOLDERS, known_file_system};
use super::lock::LOCK;
use super::scan::segment_number;
use super::side::POISON;
use super::{INFO, Store};
use crate::error::Result;

/// Files that the user keeps inside the store; their modes are the user's, as long as others cannot write.
const USER_FILES: [&str; 4] = ["config.yaml", ".gitignore", ".gitattributes", "contracts"];

/// What is to be put right, and the findings that say so.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub findings: Vec<Finding>,
    /// Members and the modes they should have.
    pub modes: Vec<(PathBuf, u32)>,
    /// Unfinished files.
    pub leftovers: Vec<PathBuf>,
    /// Folders that should be there, below the root.
    pub missing: Vec<String>,
    /// Files in `torn/`.
    pub torn: u64,
}

impl Survey {
    /// Looks at everything below the store's folder.
    pub fn of(store: &Store) -> Self {
        let mut survey = Self::default();
        let root = store.root();
        let last = store.head().ok().flatten().map(|head| head.segment);
        let walk = walkdir::WalkDir::new(root).follow_links(false).sort_by_file_name();
        let derived = |entry: &walkdir::DirEntry| entry.depth() == 1 && entry.file_name() == "index";
        for entry in walk.into_iter().filter_entry(|entry| !derived(entry)) {
            match entry {
                Ok(entry) => survey.member(store, &entry, last),
                Err(error) => {
                    survey.find("unreadable", Severity::Error, error.to_string(), "nf doctor --fix")
                }
            }
        }
        survey.sum_up(store);
        survey
    }

    fn find(&mut self, code: &str, severity: Severity, what: impl Into<String>, fix: &str) {
        self.findings.push(Finding::new(code, severity, what, fix));
    }

    fn member(&mut self, store: &Store, entry: &walkdir::DirEntry, last: Option<u32>) {
        let path = entry.path();
        let below = path.strip_prefix(store.root()).unwrap_or(path);
        let kind = entry.file_type();
        if kind.is_symlink() {
            let what = format!("{} is a symbolic link", path.display());
            return self.find(
                "symbolic_link",
                Severity::Error,
                what,
                "remove it, and put the thing itself there",
            );
        }
        if !kind.is_file() && !kind.is_dir() {
            let what = format!("{} is neither a file nor a folder", path.display());
            return self.find("odd_file", Severity::Error, what, "remove it");
        }
        let Ok(stat) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if let Some(why) = store.folder.access.objection(&stat) {
            let what = format!("{} {why}", path.display());
            self.find("foreign", Severity::Error, what, "chown and chmod it");
        }
        if is_leftover(below) && kind.is_file() {
            self.leftovers.push(path.to_owned());
        }
        self.torn += u64::from(below.starts_with("torn") && kind.is_file());
        let want = expected(store, below, kind.is_dir(), last);
        let mode = stat.st_mode & 0o777;
        let user = USER_FILES.iter().any(|name| below.starts_with(name));
        let wrong = if user { mode & 0o022 & !want != 0 } else { mode != want & 0o777 };
        if wrong {
            self.modes.push((path.to_owned(), want));
        }
    }

    fn sum_up(&mut self, store: &Store) {
        if let Some((path, want)) = self.modes.first() {
            let what = format!(
                "{} member(s) have other modes than they should (first: {} should have {want:04o})",
                self.modes.len(),
                path.display()
            );
            self.find("modes", Severity::Warning, what, "nf doctor --fix");
        }
        if let Some(first) = self.leftovers.first() {
            let what = format!("{} unfinished file(s) (first: {})", self.leftovers.len(), first.display());
            self.find("unfinished", Severity::Note, what, "nf doctor --fix removes them");
        }
        let shelves = (0..=255u8).map(|number| format!("blobs/{number:02x}"));
        let wanted = FOLDERS.iter().map(|name| (*name).to_owned()).chain(shelves);
        self.missing = wanted.filter(|name| !store.root().join(name).is_dir()).collect();
        if let Some(first) = self.missing.first() {
            let what = format!("{} folder(s) are missing (first: {first})", self.missing.len());
            self.find("folders", Severity::Note, what, "nf doctor --fix makes them");
        }
        if self.torn > 0 {
            let what = format!("{} quarantined file(s) in torn/", self.torn);
            self.find("torn_kept", Severity::Note, what, "look at them; nf never deletes them");
        }
        if !store.root().join(LOCK).exists() {
            self.find(
                "lock_missing",
                Severity::Note,
                "there is no lock file yet",
                "the next writer makes it",
            );
        }
        if let Err(error) = known_file_system(&store.folder) {
            self.find("file_system", Severity::Error, error.to_string(), error.next_step());
        }
        if store.info.format > 1 {
            let what = format!("{INFO} says format {}", store.info.format);
            self.find("newer_format", Severity::Warning, what, "update nf; this version only reads");
        }
        if let Ok(Some(reason)) = store.poisoned() {
            self.find("poisoned", Severity::Error, format!("{POISON}: {reason}"), "nf doctor --fix");
        }
    }
}

/// The mode that a member should have; `below` is its path from the root.
fn expected(store: &Store, below: &Path, folder: bool, last: Option<u32>) -> u32 {
    let access = store.folder.access;
    if folder {
        return access.folder();
    }
    let name = below.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let full = segment_number(name).is_some_and(|number| last.is_some_and(|last| number < last));
    let frozen = full && !store.info.shared;
    let written_once = below.starts_with("blobs") || below.starts_with("torn") || frozen;
    if written_once { access.frozen() } else { access.file() }
}

/// Files that only a writer at work, or one that died, has.
fn is_leftover(below: &Path) -> bool {
    let new = below.extension().is_some_and(|end| end == "new");
    below.starts_with("tmp") || (new && !below.starts_with("contracts"))
}

/// What is wrong with head itself.
pub(super) fn head_findings(store: &Store) -> Result<Vec<Finding>> {
    let Some(bytes) = store.folder.read(head::HEAD, 1 << 20)? else {
        let fix = "the next writer makes it (after a clone that is as it should be)";
        return Ok(vec![Finding::new("head_missing", Severity::Warning, "there is no head", fix)]);
    };
    let mut found = Vec::new();
    let slots = head::read(&store.folder, &store.info.store_id)?;
    if slots.valid() == 0 {
        let what = "head has no readable slot; what is durable is not known";
        found.push(Finding::new("head_missing", Severity::Warning, what, "nf doctor --fix"));
    }
    for fault in head::faults(&bytes, &store.info.store_id) {
        found.push(Finding::new("head_slot", Severity::Warning, format!("head: {fault}"), "nf doctor --fix"));
    }
    Ok(found)
}
