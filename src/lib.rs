//! `nf`: a durable, checkable record of long AI and human work.
//!
//! A command flows one way: [`cli`] parses, gathers facts and asks a rule; [`rules`] decide, knowing no
//! disk and no clock; [`store`] makes the decision's events durable as one record of an append-only log;
//! [`adapters`] run what is no part of `nf`.
//! [`model`] is the plain data between them and [`error`] the one error. Imports go downward only:
//!
//! ```text
//! main → cli → { store, rules, adapters } → model → error
//! ```

pub mod adapters;
pub mod cli;
pub mod error;
pub mod model;
pub mod rules;
pub mod store;
