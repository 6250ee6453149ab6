//! Lets go of the pages of the index that were looked at: a mapped page counts as this process's own until
//! then, and what goes through a whole index would seem to need as much memory as the index has bytes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows that are looked at before it is looked how many pages are held: each may have brought in some dozens.
const LOOKED: u32 = 16;
/// Pages of files that may be held mapped, the program's own among them: 9 MiB where a page has 4 KiB.
const HELD: u64 = 2_304;

/// Counts the rows that are looked at in the indexes of a folder.
#[derive(Debug)]
pub(super) struct Looked {
    folder: PathBuf,
    rows: AtomicU32,
}

impl Looked {
    /// None yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), rows: AtomicU32::new(0) }
    }

    /// One more; lets go of all pages where they have become many.
    pub fn one(&self) {
        let due = self.rows.fetch_add(1, Ordering::Relaxed) % LOOKED == LOOKED - 1;
        if due && held().is_some_and(|pages| pages > HELD) {
            let_go(&self.folder);
        }
    }
}

/// Pages of files that this process holds; `None` where nothing says so.
fn held() -> Option<u64> {
    std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(2)?.parse().ok()
}

/// Lets go of every page of a file in `folder`, or below it, that this process has mapped. They stay where
/// they are, in the kernel's cache, and come back when they are looked at again.
#[cfg(target_os = "linux")]
fn let_go(folder: &Path) -> Option<()> {
    let (maps, folder) = (std::fs::read_to_string("/proc/self/maps").ok()?, folder.to_str()?);
    for line in maps.lines() {
        let Some((range, file)) = line.split_once(' ').and_then(|(range, rest)| {
            let file = &rest[rest.find('/')?..];
            Some((range, file))
        }) else {
            continue;
        };
        if file.strip_prefix(folder).is_none_or(|rest| !rest.starts_with('/')) {
            continue;
        }
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        forget(from, to);
    }
    Some(())
}

/// Elsewhere nothing says where a file is mapped, and the pages stay counted.
#[cfg(not(target_os = "linux"))]
fn let_go(_: &Path) -> Option<()> {
    None
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "advice about memory is unsafe by its signature; see the comment inside")]
fn forget(from: usize, to: usize) {
    // Sound: the range is one that the kernel has just named as the map of a file of the index. LMDB maps it
    // shared and only reads through it, so dropping the pages loses nothing: the next look at one reads it
    // from the file again. Nothing else of this process lies in the range.
    let _ = unsafe {
        rustix::mm::madvise(
            std::ptr::with_exposed_provenance_mut(from),
            to - from,
            rustix::mm::Advice::LinuxDontNeed,
        )
    };
}
