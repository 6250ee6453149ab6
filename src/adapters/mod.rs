//! Thin ways out: other programs, and the files that they write. Know no rule, no store and no command, and
//! nothing that a store holds ever names what is run.

pub mod agent;
pub mod ask;
pub mod child;
pub mod claude;
pub mod codex;
pub mod command;
pub mod flags;
pub mod http;
pub mod leak;
pub mod place;
pub mod probe;
pub mod process;
pub mod room;
pub mod signals;
pub mod strict;
