//! Thin ways out: other programs, and the files that they write. Know no rule, no store and no command.

pub mod place;
pub mod process;
