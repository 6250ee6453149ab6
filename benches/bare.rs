//! Does nothing: what it costs to start and end a process here.

fn main() {}
