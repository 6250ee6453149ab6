//! The one integration crate: every test runs the real binary on a real store in a folder of its own.

mod cases;
mod expect;
mod forms;
mod harness;
mod relay;
mod replies;
mod resume;
mod suites;
