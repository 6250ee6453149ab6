//! `nf`: a durable, checkable record of long AI and human work.

pub mod error;
pub mod model;
pub mod rules;
