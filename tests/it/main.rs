//! The one integration crate: every test runs the real binary on a real store in a folder of its own.

mod harness;
mod replies;
mod suites;
