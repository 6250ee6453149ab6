//! Plain data: ids, times, hashes, entities, events and their fold. Does no input or output, reads no
//! clock and no environment, and knows no rule.

mod canonical;
pub mod capability;
pub mod check;
pub mod checkpoint;
pub mod decision;
pub mod effect;
pub mod event;
pub mod external;
pub mod fold;
pub mod handoff;
pub mod hash;
pub mod id;
pub mod job;
pub mod json;
pub mod lease;
pub mod lists;
pub mod queue;
pub mod result;
pub mod run;
pub mod session;
pub mod state;
pub mod tables;
mod tagged;
mod text;
pub mod time;
pub mod witness;
pub mod worker;
pub mod yaml;
