//! One file of the project that a consequential write goes to: where it really is, what stands there, and
//! its sync. Never follows a link on a path that was resolved before, and never writes a byte.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::error::{Error, Kind, Result};
use crate::model::effect::FileState;
use crate::model::hash::Hash;

/// The file named by a path from the project root, as a path from there with every link resolved. Its folder
/// must be there; the file itself may be absent.
///
/// # Errors
/// `bad_input` where it leads out of the project, into a store, or is no place for a file.
pub fn resolve(root: &Path, store: &Path, text: &str) -> Result<String> {
    let wrong = |why: &str| Error::new(Kind::BadInput, format!("{text} cannot be guarded")).because(why);
    let named = root.join(text);
    let place = match named.symlink_metadata() {
        Ok(_) => named.canonicalize().map_err(|error| wrong(&error.to_string()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => absent(&named).map_err(|why| wrong(&why))?,
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let inside = place.strip_prefix(root).ok().filter(|_| !place.starts_with(store));
    let inside = inside.ok_or_else(|| {
        wrong("it leads out of the project or into the store")
            .fix("name a file inside the project folder, outside .novelforge")
    })?;
    if inside.components().any(|part| part.as_os_str() == ".novelforge") {
        return Err(wrong("it leads into a store"));
    }
    match place.metadata() {
        Ok(meta) if !meta.is_file() => return Err(wrong("it is no regular file")),
        _ => {}
    }
    inside.to_str().map(str::to_owned).ok_or_else(|| wrong("its name is not UTF-8"))
}

/// The real place of a file that is not there, in a folder that is.
fn absent(named: &Path) -> std::result::Result<PathBuf, String> {
    // A trailing slash or dots name a folder.
    let text = named.to_string_lossy();
    let name = named.file_name().filter(|_| !text.ends_with('/') && !text.ends_with("/."));
    let (Some(name), Some(folder)) = (name, named.parent()) else {
        return Err("it names no file".to_owned());
    };
    let folder = folder.canonicalize().map_err(|error| format!("its folder: {error}"))?;
    if !folder.is_dir() {
        return Err("its folder is none".to_owned());
    }
    Ok(folder.join(name))
}

fn open(root: &Path, inside: &Path, flags: OFlags) -> std::io::Result<File> {
    let root = File::open(root)?;
    let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let opened: std::result::Result<OwnedFd, _> =
        rustix::fs::openat2(&root, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
    Ok(File::from(opened?))
}

/// The file that stands at a resolved path, whatever it is called: its device and inode. None where nothing
/// stands there, or it cannot be looked at.
pub fn identity(root: &Path, path: &str) -> Option<(u64, u64)> {
    let meta = open(root, Path::new(path), OFlags::PATH).ok()?.metadata().ok()?;
    meta.is_file().then(|| (meta.dev(), meta.ino()))
}

/// What stands at a resolved path now; links on it are not followed any more.
///
/// # Errors
/// In words, why that cannot be said.
pub fn look(root: &Path, path: &str, limit: u64) -> std::result::Result<FileState, String> {
    let file = match open(root, Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileState::ABSENT),
        Err(error) => return Err(error.to_string()),
    };
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is over {limit} bytes"));
    }
    Ok(FileState::File(Hash::of(&bytes)))
}

/// Makes what stands at a resolved path durable: its bytes, and its name in its folder.
///
/// # Errors
/// `not_durable`. What is not there, or cannot be opened, has nothing to sync: looking at it says so.
pub fn sync(root: &Path, path: &str) -> Result<()> {
    let path = Path::new(path);
    let failed = |error: &std::io::Error| {
        Error::new(Kind::NotDurable, format!("the sync of {} failed", path.display()))
            .because(error.to_string())
            .fix("nothing was recorded; look at the disk, write the file anew, then nf effect done KEY")
    };
    if let Ok(file) = open(root, path, OFlags::RDONLY | OFlags::NONBLOCK)
        && file.metadata().is_ok_and(|meta| meta.is_file())
    {
        file.sync_all().map_err(|error| failed(&error))?;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    if let Ok(folder) = open(root, folder, OFlags::RDONLY | OFlags::DIRECTORY) {
        folder.sync_all().map_err(|error| failed(&error))?;
    }
    Ok(())
}
