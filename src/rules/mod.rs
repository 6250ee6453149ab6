//! Pure decisions and checks: the contracts' rules, one file each. Nothing here knows a disk, a clock, the
//! environment or a command. A decision takes the entities that a command named and gives events with an
//! answer; a check gives a list and never stops at the first failure.

pub mod answer;
pub mod attempt;
pub mod binding;
pub mod bindings;
pub mod blind;
pub mod capability;
pub mod carry;
pub mod checkpoint;
pub mod claim;
pub mod effect;
pub mod event;
pub mod fingerprint;
pub mod freeze;
pub mod github;
pub mod handoff;
pub mod holding;
pub mod independence;
pub mod intake;
pub mod jobfile;
pub mod lease;
pub mod lifecycle;
pub mod members;
mod no_result;
pub mod once;
pub mod packet;
pub mod refusal;
pub mod relay;
pub mod resume;
pub mod return_form;
pub mod routing;
pub mod schema;
pub mod secret;
pub mod session;
pub mod sound;
pub mod task;
pub mod waiting;
pub mod ways;

#[cfg(test)]
mod tests;
