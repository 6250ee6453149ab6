//! Lets go of the pages of the index that were looked at: a mapped page counts as this process's own until
//! then, and what goes through a whole index would seem to need as much memory as the index has bytes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows that are looked at before it is looked how many pages are held: each may have brought in some dozens.
const LOOKED: u32 = 16;
/// Pages of files that may be held mapped, the program's own among them: 11 MiB where a page has 4 KiB.
const HELD: u64 = 2_816;

/// Counts the rows that are looked at in an index that is open. It must not outlive the map of that index.
#[derive(Debug)]
pub(super) struct Looked {
    folder: PathBuf,
    rows: AtomicU32,
    /// Where the index is mapped, once that was looked up: it stays there as long as it is open.
    ranges: OnceLock<Vec<(usize, usize)>>,
}

impl Looked {
    /// None yet, in the indexes of a folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), rows: AtomicU32::new(0), ranges: OnceLock::new() }
    }

    /// One more; lets go of all pages where they have become many. They stay where they are, in the kernel's
    /// cache, and come back when they are looked at again.
    pub fn one(&self) {
        let due = self.rows.fetch_add(1, Ordering::Relaxed) % LOOKED == LOOKED - 1;
        if due && held().is_some_and(|pages| pages > HELD) {
            for (from, to) in self.ranges.get_or_init(|| ranges(&self.folder).unwrap_or_default()) {
                forget(*from, *to);
            }
        }
    }
}

/// Pages of files that this process holds; `None` where nothing says so.
fn held() -> Option<u64> {
    static COUNTS: OnceLock<Option<File>> = OnceLock::new();
    let counts = COUNTS.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    let mut text = [0; 128];
    let read = counts.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..read]).ok()?.split(' ').nth(2)?.parse().ok()
}

/// Where the files of rows in `folder`, or below it, are mapped by this process; elsewhere than on Linux
/// nothing says so, and the pages stay counted.
fn ranges(folder: &Path) -> Option<Vec<(usize, usize)>> {
    let (maps, folder) = (std::fs::read_to_string("/proc/self/maps").ok()?, folder.to_str()?);
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let inside = rest[rest.find('/')?..].strip_prefix(folder)?;
        let (from, to) = range.split_once('-')?;
        let rows = inside.starts_with('/') && inside.ends_with(super::DATA);
        let address = |text| usize::from_str_radix(text, 16).ok();
        rows.then_some((address(from)?, address(to)?))
    };
    Some(maps.lines().filter_map(range).collect())
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "advice about memory is unsafe by its signature; see the comment inside")]
fn forget(from: usize, to: usize) {
    // Sound: the range is one that the kernel named as the map of an index that is still open. LMDB maps it
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

#[cfg(not(target_os = "linux"))]
fn forget(_: usize, _: usize) {}
