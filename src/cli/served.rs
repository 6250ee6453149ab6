//! What a server brings to the commands that it runs. Without one, a command has its own standard input and
//! its own store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::store::Store;

/// What a server brings to a command: it has no standard input, and no file of its caller is opened.
#[derive(Clone, Default)]
pub struct Served {
    /// The texts given in place of files, by the name that stands in the file's place; `-` is the stream.
    pub texts: BTreeMap<PathBuf, Vec<u8>>,
    /// The store of a group of commands that are made durable together.
    pub store: Option<Arc<Store>>,
}

impl Served {
    /// The text that the caller gave in a file's place.
    ///
    /// # Errors
    /// `usage` where none was given; `too_large`.
    pub fn text(&self, path: Option<&Path>, limit: u64) -> Result<Vec<u8>> {
        let name = path.unwrap_or(Path::new("-"));
        let text = self.texts.get(name).ok_or_else(|| {
            Error::new(Kind::Usage, format!("{} is not read here", name.display()))
                .because("a tool opens no file of its caller's")
                .fix("give the text itself")
        })?;
        if text.len() as u64 > limit {
            return Err(Error::new(Kind::TooLarge, format!("standard input is over {limit} bytes")));
        }
        Ok(text.clone())
    }
}
