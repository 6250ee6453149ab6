//! The least that a durable append can cost: spawn, open, lock, append 300 bytes, fdatasync, exit.
//!
//! `floor FILE [KEPT]`: KEPT files of 1,000 bytes are made durable before, as the store keeps a blob: written
//! under another name, synced, renamed, and their folder synced.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or(std::io::ErrorKind::InvalidInput)?;
    let kept = arguments.next().and_then(|kept| kept.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    file.lock()?;
    for number in 0..kept {
        keep(Path::new(&path), number)?;
    }
    file.write_all(&[b'x'; 300])?;
    file.sync_data()?;
    file.unlock()
}

fn keep(beside: &Path, number: u32) -> std::io::Result<()> {
    let folder = beside.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = format!("kept-{}-{number}", std::process::id());
    let (new, whole) = (folder.join(format!("{name}.new")), folder.join(name));
    let mut file = File::create_new(&new)?;
    file.write_all(&[b'x'; 1000])?;
    file.sync_data()?;
    std::fs::rename(&new, &whole)?;
    File::open(folder)?.sync_all()
}
