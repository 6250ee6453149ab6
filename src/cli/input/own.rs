//! The user's own settings files, outside every project and store: read only where nobody else can have
//! written them, since they say which programs are run and which hosts are called.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::model::yaml::SIZE_LIMIT;

/// The bytes of a settings file; `None` where there is none.
///
/// # Errors
/// `foreign_store` where another user owns the file or its folder, or may write to it, or where it lies in a
/// store; `bad_input` for what is no file; `too_large`; `io`.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let shown = path.display();
    let failed = |error: &std::io::Error| Error::io(format!("reading {shown}"), error);
    // A pipe in its place must not make every command wait.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(&error)),
    };
    let meta = file.metadata().map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(Error::new(Kind::BadInput, format!("{shown} is no regular file")));
    }
    let place = path.canonicalize().map_err(|error| failed(&error))?;
    if place.components().any(|part| part.as_os_str() == crate::cli::ctx::STORE) {
        return Err(refused(path, "it lies in a store, and a store names no program and no host")
            .fix("keep workers.yaml in your own config folder, or let NF_CONFIG name another one"));
    }
    let folder = place.parent().unwrap_or(Path::new("/"));
    let around = folder.metadata().map_err(|error| failed(&error))?;
    for (what, meta) in [("it", &meta), ("its folder", &around)] {
        if let Some(why) = open_to_others(what, meta) {
            return Err(refused(path, &why).fix(format!("chmod go-w {shown} {}, or chown", folder.display())));
        }
    }
    super::read_limited(file, SIZE_LIMIT as u64, &shown.to_string()).map(Some)
}

fn open_to_others(what: &str, meta: &std::fs::Metadata) -> Option<String> {
    let me = rustix::process::geteuid().as_raw();
    // Who is root may write anything anyway.
    if ![me, 0].contains(&meta.uid()) {
        return Some(format!("{what} belongs to user {}, and you are {me}", meta.uid()));
    }
    // In a folder with the sticky bit others cannot replace the file.
    let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
    let open = meta.mode() & 0o022 != 0 && !sticky;
    open.then(|| format!("others may write to {what} (mode {:03o})", meta.mode() & 0o777))
}

fn refused(path: &Path, why: &str) -> Error {
    let message = format!("{} names what is run and called, and cannot be trusted", path.display());
    Error::new(Kind::ForeignStore, message).because(why)
}
