//! The least that a durable append can cost: spawn, open, lock, append 300 bytes, fdatasync, exit.

use std::fs::OpenOptions;
use std::io::Write;

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.lock()?;
    file.write_all(&[b'x'; 300])?;
    file.sync_data()?;
    file.unlock()
}
