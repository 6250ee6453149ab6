//! The release build that the README recommends is one static file, not too large, that does the main job.
//! `.ci/run` makes it and names it in `NF_STATIC`.

use std::path::PathBuf;

use crate::harness::skipped;

/// Bytes that it may have.
const LARGEST: usize = 10 * 1024 * 1024;

/// The static build, or `None` where nobody made one.
fn built() -> Option<PathBuf> {
    let path = std::env::var_os("NF_STATIC").map(PathBuf::from);
    if path.is_none() {
        skipped("NF_NEED_STATIC", "NF_STATIC names no static build (cargo static)");
    }
    path
}

/// The types of the program headers of a 64-bit little-endian ELF file.
fn headers(bytes: &[u8]) -> Vec<u32> {
    assert_eq!(&bytes[..6], b"\x7fELF\x02\x01", "a 64-bit little-endian ELF file");
    let short = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let table = u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes")) as usize;
    let (size, count) = (short(54), short(56));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (0..count).map(|index| word(table + index * size)).collect()
}

/// The header that names the loader of a program with libraries.
const INTERP: u32 = 3;

#[test]
fn the_recommended_build_is_one_static_file_of_at_most_ten_mebibytes() {
    // The program under test is not static: what is looked for can be found.
    let dynamic = std::fs::read(crate::harness::NF).expect("the program under test");
    assert!(headers(&dynamic).contains(&INTERP), "the check sees no loader in any program");
    let Some(path) = built() else { return };
    let bytes = std::fs::read(&path).expect("the static build");
    assert!(!headers(&bytes).contains(&INTERP), "{} wants a loader", path.display());
    assert!(bytes.len() <= LARGEST, "{} has {} bytes", path.display(), bytes.len());
}

#[test]
fn the_recommended_build_does_the_main_job() {
    let Some(path) = built() else { return };
    let ran = crate::examples::daily_path(&path.to_string_lossy()).expect(0);
    assert!(ran.stdout.ends_with("the daily path is done\n"), "{}", ran.stdout);
}

#[test]
fn the_recommended_build_reads_the_time_zones_of_the_machine() {
    let Some(path) = built() else { return };
    // Half an hour off: no two readings of the clock show the same minutes by chance of a full hour.
    let zone = "/usr/share/zoneinfo/Asia/Kolkata";
    if !std::path::Path::new(zone).exists() {
        return skipped("NF_NEED_ZONES", "this machine has no time zones");
    }
    let project = crate::harness::Project::testing("2026-01-15T09:30:00Z");
    let shown = |zone: &str| {
        let mut command = std::process::Command::new(&path);
        command.args(["log"]).current_dir(project.path()).env_clear().env("TZ", zone);
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).split_whitespace().nth(2).map(str::to_owned)
    };
    assert_eq!(shown("").as_deref(), Some("09:30"));
    assert_eq!(shown(zone).as_deref(), Some("15:00"));
}
