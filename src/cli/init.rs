//! `init` makes the store.

use std::path::PathBuf;

use clap::Args;

use super::ctx::{Context, STORE};
use super::output::{Done, Report};
use crate::error::{Error, Kind, Result};
use crate::store::{InitOptions, Store};

/// Make a store in this folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nf init\n  nf init --git     for a store kept in git")]
pub struct Init {
    /// Keep what is not derived in git: write .gitignore and .gitattributes for it
    #[arg(long)]
    pub git: bool,
    /// Let the folder's group write too
    #[arg(long)]
    pub shared: bool,
    /// Honour NF_NOW, NF_BOOT and NF_SEED (for tests only)
    #[arg(long)]
    pub testing: bool,
}

/// A store that was made.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct InitReport {
    /// The store's folder.
    pub store: PathBuf,
    /// Its id.
    pub store_id: String,
}

impl Report for InitReport {
    const COMMAND: &'static str = "init";

    fn answer(&self) -> String {
        format!("{}/", self.store.display())
    }

    fn next(&self) -> Option<String> {
        Some("nf start --resource R --task T".to_owned())
    }
}

impl Init {
    /// Runs the command.
    ///
    /// # Errors
    /// `store_exists`, `unsupported_file_system`, `lock_not_exclusive`, `io`.
    pub fn run(self, ctx: &Context) -> Result<Done> {
        let root = match ctx.env.get("NF_DIR") {
            Some(folder) => ctx.folder.join(folder),
            None => ctx.folder.join(STORE),
        };
        let options = InitOptions { git: self.git, shared: self.shared, testing: self.testing };
        let source = ctx.source_for(self.testing)?;
        if ctx.global.dry_run {
            if super::input::is_there(&root.join("store.json")) {
                return Err(Error::new(Kind::StoreExists, format!("there is a store at {}", root.display())));
            }
            let report = InitReport { store: self.shown(ctx, &root), store_id: String::new() };
            let mut done = Done::of(&report);
            done.planned = Some(Vec::new());
            return Ok(done);
        }
        let store = Store::init(&root, &options, ctx.options(), &source)?;
        let report = InitReport { store: self.shown(ctx, &root), store_id: store.info().store_id.clone() };
        let mut done = Done::of(&report);
        done.record = store.covered()?;
        Ok(done)
    }

    fn shown(&self, ctx: &Context, root: &std::path::Path) -> PathBuf {
        root.strip_prefix(&ctx.folder).unwrap_or(root).to_path_buf()
    }
}
