//! Keeps an answer that the store cannot take now: it was waited for and perhaps paid for, and a store that
//! another process holds, or a disk that is full, is so for a while only. Decides nothing about the answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::waited;
use crate::cli::ctx::Context;
use crate::cli::output::{say, visible};
use crate::error::{Error, Kind, Result};

/// How long is waited before the store is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether a failure of the store is over by itself.
pub fn is_passing(error: &Error) -> bool {
    matches!(error.kind, Kind::Busy | Kind::DiskFull)
}

/// Records something, and again where the store could not take it, as long as the lease of its attempt lasts;
/// once more and no longer where this program is told to end.
///
/// # Errors
/// Those of `act`.
pub fn patient<T>(
    ctx: &Context,
    ttl_ms: u64,
    signalled: &AtomicBool,
    mut act: impl FnMut() -> Result<T>,
) -> Result<T> {
    // The machine's own clock, which goes on also where a testing store's stands still.
    let boottime = || (ctx.source.moment)().boottime_ms;
    let (until, mut told) = (boottime().saturating_add(ttl_ms), ctx.global.json || ctx.global.quiet);
    loop {
        let is_last = signalled.load(Ordering::Relaxed) || boottime() >= until;
        match act() {
            Err(error) if is_passing(&error) && !is_last => {
                if !std::mem::replace(&mut told, true) {
                    say(&visible(&format!("{error}; what the worker gave is kept and recorded then")));
                }
                waited(PAUSE, signalled);
            }
            done => return done,
        }
    }
}
