//! The one integration crate: every test runs the real binary on a real store in a folder of its own.

mod cases;
mod consume;
mod contracts;
mod crash;
mod cut;
mod docs;
mod errors;
mod examples;
mod expect;
mod faults;
mod forms;
mod freezing;
mod harness;
mod hostile;
mod json;
mod late;
mod lifecycle;
mod ops;
mod race;
mod reading;
mod relay;
mod replies;
mod resume;
mod streams;
mod suites;
mod tidy;
