//! Thin ways out: programs that the user names on the command line. Nothing here knows a rule or the store,
//! and nothing that a store holds ever names what is run.

pub mod process;
