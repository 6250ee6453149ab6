//! A bar on a terminal, for work that takes over a second.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::ctx::Global;

/// Shown on stderr where that is a terminal; silent everywhere else.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// One whose second begins now.
    pub fn new(global: &Global) -> Self {
        let shown = !global.quiet && !global.json && std::io::IsTerminal::is_terminal(&std::io::stderr());
        Self(shown.then(|| {
            let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}");
            let bar = ProgressBar::new(0).with_elapsed(Duration::ZERO);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        }))
    }

    /// So many bytes of so many.
    pub fn show(&self, done: u64, total: u64) {
        if let Some(bar) = self.0.as_ref().filter(|bar| bar.elapsed() > Duration::from_secs(1)) {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
