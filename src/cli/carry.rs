//! Work that is carried to a machine without a store and back: `export` and `import` where the store is, and
//! `packet --from` and `reply --from` where there is none.

use std::path::{Path, PathBuf};

use super::ctx::Context;
use super::input::{Project, free_for, write_secret};
use crate::error::Result;
use crate::rules::carry::Carried;

pub mod export;
pub mod far;
pub mod import;

/// The version that stands in the files that this program writes.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The file that is to be written, if it is none of the standard streams.
fn named(out: Option<&Path>) -> Option<PathBuf> {
    out.filter(|path| path.as_os_str() != "-").map(Path::to_path_buf)
}

/// Refuses an output file that is something else, or lies in a store that is around.
fn free(ctx: &Context, out: &Path, what: &str, marks: &[&str]) -> Result<()> {
    let whole = ctx.folder.join(out);
    if let Ok(project) = ctx.root().and_then(|root| Project::around(&root)) {
        project.not_in_store(&whole)?;
    }
    free_for(&whole, what, marks)
}

/// Writes one of the two files. It holds a nonce: only its owner may read it.
fn written<T: Carried>(ctx: &Context, out: &Path, text: &str) -> Result<()> {
    write_secret(&ctx.folder.join(out), text)
        .map_err(|error| error.fix(format!("run the command again: it writes the same {}", T::WHAT)))
}

/// The mark of a file of this kind, as it stands in its text.
fn mark<T: Carried>() -> String {
    format!("\"{}\"", T::MARK)
}
