//! Files and streams of the user's: project files, the store's config, standard input, a packet's file.
//! Paths from outside never leave the project, and never lead into the store.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use serde_json::Value;

use super::ctx::Context;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::{Bindings, BoundAuthority, BoundCompatibility};
use crate::model::hash::{Hash, canonical};
use crate::model::id::Name;
use crate::model::{json, yaml};
use crate::rules::intake::MAX_BYTES;
use crate::store::FileStamp;

mod config;
pub mod own;

pub use config::{Declared, config};

/// Bytes that a bound file may have.
pub const MAX_BOUND: u64 = 64 * 1024 * 1024;

/// The files around the store.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    store: PathBuf,
}

impl Project {
    /// The project around a store folder.
    ///
    /// # Errors
    /// `io` where the folder cannot be resolved.
    pub fn around(store: &Path) -> Result<Self> {
        let resolved = store.canonicalize();
        let store = resolved.map_err(|error| Error::io(format!("resolving {}", store.display()), &error))?;
        Ok(Self { root: super::ctx::project_root(&store), store })
    }

    /// The project's folder, resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The store's folder, resolved.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The absolute path of a path from the project root.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Refuses to write a file into the store: what lies there is the store's own.
    ///
    /// # Errors
    /// `usage`.
    pub fn not_in_store(&self, path: &Path) -> Result<()> {
        let folder = || path.parent().unwrap_or(Path::new("/")).canonicalize();
        match path.canonicalize().or_else(|_| folder()) {
            Ok(place) if place.starts_with(&self.store) => {
                Err(Error::new(Kind::Usage, format!("{} lies in the store", path.display()))
                    .fix("name a file outside .novelforge"))
            }
            // What cannot be resolved fails where it is written.
            _ => Ok(()),
        }
    }

    /// A file's bytes and its stamp. Symlinks are followed only inside the project.
    ///
    /// # Errors
    /// `bad_input` for a path that leads out of the project or into the store, or is no file; `too_large`.
    pub fn read(&self, relative: &str, limit: u64) -> Result<(Vec<u8>, FileStamp)> {
        let whole = self.path(relative);
        let stamp = FileStamp::of(&whole)?;
        let resolved = whole.canonicalize().map_err(|error| unreadable(relative, &error))?;
        if !resolved.starts_with(&self.root) || resolved.starts_with(&self.store) {
            return Err(outside(relative));
        }
        let file = self.beneath(relative, &resolved)?;
        let size = file.metadata().map_err(|error| unreadable(relative, &error))?;
        if !size.is_file() {
            return Err(Error::new(Kind::BadInput, format!("{relative} is no regular file")));
        }
        Ok((read_limited(file, limit, relative)?, stamp))
    }

    /// Opens beneath the root, so that nothing swapped in meanwhile leads out of it.
    fn beneath(&self, relative: &str, resolved: &Path) -> Result<File> {
        let inside = resolved.strip_prefix(&self.root).unwrap_or(resolved);
        let root = File::open(&self.root).map_err(|error| unreadable(relative, &error))?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened: std::result::Result<OwnedFd, _> =
            rustix::fs::openat2(&root, inside, flags, Mode::empty(), resolve);
        opened.map(File::from).map_err(|error| unreadable(relative, &error.into()))
    }
}

fn unreadable(relative: &str, error: &std::io::Error) -> Error {
    Error::new(Kind::BadInput, format!("{relative} cannot be read")).because(error.to_string())
}

fn outside(relative: &str) -> Error {
    Error::new(Kind::BadInput, format!("{relative} leads out of the project or into the store"))
        .fix("name a file inside the project folder, outside .novelforge")
}

/// Whether something stands at a path, a dangling link too.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether a folder is there.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

fn read_limited(mut from: impl Read, limit: u64, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.by_ref().take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(format!("reading {what}"), &error))?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(Kind::TooLarge, format!("{what} is over {limit} bytes")));
    }
    Ok(bytes)
}

/// The lines `first` to `last` of a text, 1-based and inclusive, with their line ends.
///
/// # Errors
/// `bad_input` where the text has fewer lines.
pub fn slice(bytes: Vec<u8>, lines: Option<(u64, u64)>, path: &str) -> Result<Vec<u8>> {
    let Some((first, last)) = lines else { return Ok(bytes) };
    let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if (all.len() as u64) < last {
        return Err(Error::new(Kind::BadInput, format!("{path} has no line {last}"))
            .because(format!("it has {} lines", all.len())));
    }
    let (first, last) = (first as usize - 1, last as usize);
    Ok(all[first..last].concat())
}

/// A file that a person names on the command line, or standard input for `-`; at most `limit` bytes.
///
/// # Errors
/// `io`, `too_large`.
pub fn file_or_stdin(ctx: &Context, path: Option<&Path>, limit: u64) -> Result<Vec<u8>> {
    match (&ctx.served, path.filter(|path| path.as_os_str() != "-")) {
        (Some(served), _) => served.text(path, limit),
        (None, Some(path)) => {
            let whole = ctx.folder.join(path);
            let opened = OpenOptions::new().read(true).open(&whole);
            let file = opened.map_err(|error| {
                Error::new(Kind::Io, format!("{} cannot be read", path.display()))
                    .because(error.to_string())
                    .fix("give the path of a file, or - for standard input")
            })?;
            read_limited(file, limit, &path.display().to_string())
        }
        (None, None) => {
            if !ctx.global.quiet && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
                super::output::say("paste, then Ctrl-D");
            }
            read_limited(std::io::stdin().lock(), limit, "standard input")
        }
    }
}

/// What packets begin with, or have as a member.
pub const PACKET_MARKS: [&str; 2] = ["NF PACKET ", "\"nf_packet\""];

/// Refuses to write a packet over a file that is none: a slip of the keyboard must not cost a chapter.
///
/// # Errors
/// `usage`.
pub fn free_for_packet(path: &Path) -> Result<()> {
    free_for(path, "packet", &PACKET_MARKS)
}

/// Refuses to write a file of one kind over anything else: what it begins with says what it is. Refuses too a
/// place where nothing can be written: what is to stand there is made at a cost that must not be lost.
///
/// # Errors
/// `usage`, `io`.
pub fn free_for(path: &Path, what: &str, marks: &[&str]) -> Result<()> {
    can_be_written(path)?;
    let Ok(file) = File::open(path) else { return Ok(()) };
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    let mut start = Vec::new();
    // What cannot be read is refused by the writing itself.
    let _ = file.take(4096).read_to_end(&mut start);
    let text = String::from_utf8_lossy(&start);
    // A text mark stands at the start; a member of JSON may have others before it.
    let is_marked = |mark: &&str| text.starts_with(*mark) || (mark.starts_with('"') && text.contains(*mark));
    if start.is_empty() || marks.iter().any(is_marked) {
        return Ok(());
    }
    Err(Error::new(Kind::Usage, format!("{} is there and is no {what}; nothing was written", path.display()))
        .fix("give --out another name"))
}

/// Looks whether a file can be made or written there, as far as that is known before.
fn can_be_written(path: &Path) -> Result<()> {
    use rustix::fs::{Access, access};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let looked = match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(rustix::io::Errno::ISDIR),
        Ok(_) => access(path, Access::WRITE_OK),
        Err(_) => access(folder, Access::WRITE_OK | Access::EXEC_OK),
    };
    looked.map_err(|errno| {
        Error::io(format!("writing {}", path.display()), &errno.into())
            .fix("make its folder, or give --out another name; nothing was done")
    })
}

/// Writes a packet to a file of the user's. It holds a nonce: only its owner may read it.
///
/// # Errors
/// `io`, `disk_full`.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        // A file that was there kept its mode. A pipe or device is not ours to change, and has no sync.
        let is_file = file.metadata()?.is_file();
        if is_file {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        file.write_all(text.as_bytes())?;
        if is_file { file.sync_data() } else { Ok(()) }
    });
    written.map_err(|error| Error::io(format!("writing {}", path.display()), &error))
}

/// A reply's bytes: one more than its limit is read, so that intake can say that it is too large.
///
/// # Errors
/// `io`.
pub fn reply(ctx: &Context, path: Option<&Path>) -> Result<Vec<u8>> {
    let limit = MAX_BYTES as u64;
    file_or_stdin(ctx, path, limit).map_err(|error| match error.kind {
        Kind::TooLarge => Error::new(Kind::SemanticInvalid, format!("a reply is at most {limit} bytes"))
            .because("too_large")
            .fix("paste the answer alone")
            .details(serde_json::json!({"reason": "too_large"})),
        _ => error,
    })
}

/// `PATH#POINTER` in its two parts.
pub fn split_pointer(text: &str) -> (String, Option<String>) {
    match text.split_once('#') {
        Some((path, pointer)) => (path.to_owned(), Some(pointer.to_owned())),
        None => (text.to_owned(), None),
    }
}

/// `NAME=PATH` in its two parts.
///
/// # Errors
/// `usage`, naming the flag.
pub fn named_path(flag: &str, text: &str) -> Result<(Name, String)> {
    let wrong = |why: String| Error::new(Kind::Usage, format!("{flag} wants NAME=PATH")).because(why);
    let (name, path) = text.split_once('=').ok_or_else(|| wrong(format!("got {text:?}")))?;
    Ok((name.parse().map_err(wrong)?, path.to_owned()))
}

/// Hashes files of the project and keeps their stamps, so that the store can see whether they moved.
pub struct Reader<'a> {
    project: &'a Project,
    /// The stamps of all that was read.
    pub stamps: Vec<FileStamp>,
}

impl<'a> Reader<'a> {
    /// A reader of a project's files.
    pub fn new(project: &'a Project) -> Self {
        Self { project, stamps: Vec::new() }
    }

    /// A slice of a file.
    ///
    /// # Errors
    /// As [`Project::read`] and [`slice`].
    pub fn bytes(&mut self, path: &str, lines: Option<(u64, u64)>, limit: u64) -> Result<Vec<u8>> {
        let (bytes, stamp) = self.project.read(path, limit)?;
        self.stamps.push(stamp);
        slice(bytes, lines, path)
    }

    /// The hash of a file, or of the canonical value at a pointer in it.
    ///
    /// # Errors
    /// As [`Project::read`]; `bad_input` where the pointer leads nowhere.
    pub fn hash(&mut self, path: &str, pointer: Option<&str>) -> Result<Hash> {
        let bytes = self.bytes(path, None, MAX_BOUND)?;
        let Some(pointer) = pointer else { return Ok(Hash::of(&bytes)) };
        let json = path.to_lowercase().ends_with(".json");
        let parsed: std::result::Result<Value, _> =
            if json { json::parse(&bytes) } else { yaml::parse(&bytes) };
        let value = parsed.map_err(|fault| fault.into_error(path))?;
        match value.pointer(pointer) {
            Some(found) => Ok(Hash::of(&canonical(found))),
            None => Err(Error::new(Kind::BadInput, format!("{path} has nothing at {pointer}"))),
        }
    }

    /// What the config declares and `held` does not have yet, hashed now.
    ///
    /// # Errors
    /// As [`Reader::hash`]: what cannot be read again from a file is no binding.
    pub fn declared(&mut self, declared: &Declared, held: &Bindings) -> Result<Bindings> {
        let mut fresh = Bindings::default();
        for path in &declared.authority {
            let name = name_of_path(path)?;
            if !held.authority.iter().any(|bound| bound.name == name) {
                fresh.authority.push(BoundAuthority {
                    hash: self.hash(path, None).map_err(undeclarable)?,
                    name,
                    path: path.clone(),
                });
            }
        }
        for (name, path, pointer) in &declared.compatibility {
            if !held.compatibility.iter().any(|bound| bound.name == *name) {
                fresh.compatibility.push(BoundCompatibility {
                    name: name.clone(),
                    path: path.clone(),
                    pointer: pointer.clone(),
                    hash: self.hash(path, pointer.as_deref()).map_err(undeclarable)?,
                });
            }
        }
        Ok(fresh)
    }
}

/// The name of a bound file: its path where that is a name, else one made from the path's hash.
fn name_of_path(path: &str) -> Result<Name> {
    path.parse().or_else(|_| crate::model::id::word(&format!("file-{}", Hash::of(path.as_bytes()).short())))
}

/// What the config declares and cannot be read again is no binding.
fn undeclarable(error: Error) -> Error {
    let cause = error.cause.unwrap_or_default();
    Error::new(Kind::NotABinding, format!("config.yaml declares a file as a binding: {}", error.message))
        .because(cause)
        .fix("restore the file, or take it out of bindings in .novelforge/config.yaml")
}
