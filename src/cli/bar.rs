//! How far long work has come: a bar on a terminal, for work that takes over a second, or whoever serves the
//! command.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::ctx::Context;
use crate::error::Result;

/// Told how many of how many bytes are done; an error ends the work. What a server gives its commands.
pub type Told = Arc<dyn Fn(u64, u64) -> Result<()> + Send + Sync>;

/// Shown on stderr where that is a terminal; silent everywhere else.
pub struct Bar(Option<ProgressBar>, Option<Told>);

impl Bar {
    /// One whose second begins now.
    pub fn new(ctx: &Context) -> Self {
        let global = &ctx.global;
        let shown = !global.quiet && !global.json && std::io::IsTerminal::is_terminal(&std::io::stderr());
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}");
            let bar = ProgressBar::new(0).with_elapsed(Duration::ZERO);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        Self(bar, ctx.told.clone())
    }

    /// So many bytes of so many.
    ///
    /// # Errors
    /// That of a server which gives the work up.
    pub fn show(&self, done: u64, total: u64) -> Result<()> {
        if let Some(bar) = self.0.as_ref().filter(|bar| bar.elapsed() > Duration::from_secs(1)) {
            bar.set_length(total);
            bar.set_position(done);
        }
        self.1.as_ref().map_or(Ok(()), |told| told(done, total))
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
