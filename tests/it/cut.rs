//! A store whose bytes were cut, flipped, deleted, doubled or swapped: what nobody acknowledged is set
//! aside and kept, everything else is said and nothing is changed. `NF_TEST_FLIPS` (120) flipped bits,
//! `NF_TEST_STRIDE` (1) the distance of two cuts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::faults::tools::{LOOP, Random, Steps, assert_sound, count, kind, picture, records, twin};
use crate::harness::{Project, report};

const SEGMENT: &str = ".novelforge/log/00000001.jsonl";
const HEAD: &str = ".novelforge/head";
/// A writer with a short record.
const STEP: [&str; 5] = ["run", "step", "--cursor", "ch09", "--json"];

/// A store with a few short records at its end, and head as it stood before them.
struct Cut {
    project: Project,
    log: Vec<u8>,
    head: Vec<u8>,
    earlier: Vec<u8>,
    /// Offsets at which the last lines begin.
    starts: Vec<usize>,
}

impl Cut {
    fn new() -> Self {
        let project = Project::in_memory().furnished();
        project.start();
        project.nf(&["run", "step", "--cursor", "ch00"]).expect(0);
        let earlier = std::fs::read(project.at(HEAD)).expect("head");
        let mut starts = Vec::new();
        for number in 1..=3 {
            starts.push(project.log().len());
            project.nf(&["run", "step", "--cursor", &format!("ch0{number}")]).expect(0);
        }
        let (log, head) = (project.log(), std::fs::read(project.at(HEAD)).expect("head"));
        Self { project, log, head, earlier, starts }
    }

    /// Puts a log of this length in place, with this head and an empty `torn/`.
    fn put(&self, length: usize, head: &[u8]) {
        self.project.write(SEGMENT, &self.log[..length]);
        self.project.write(HEAD, head);
        for entry in std::fs::read_dir(self.project.at(".novelforge/torn")).expect("torn") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
    }

    fn torn(&self) -> Vec<Vec<u8>> {
        let entries = std::fs::read_dir(self.project.at(".novelforge/torn")).expect("torn");
        entries.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("bytes")).collect()
    }

    fn lengths(&self) -> impl Iterator<Item = usize> + use<> {
        (self.starts[0]..self.log.len()).step_by(count("NF_TEST_STRIDE", 1) as usize)
    }
}

#[test]
fn a_log_cut_before_head_is_loss_and_nothing_is_changed() {
    let cut = Cut::new();
    for length in cut.lengths() {
        cut.put(length, &cut.head);
        let ran = cut.project.nf(&STEP);
        assert_eq!((ran.code, kind(&ran).as_str()), (11, "damaged"), "{length}: {}", ran.stdout);
        assert!(cut.project.log() == cut.log[..length], "{length}: the log was changed");
        assert!(cut.torn().is_empty(), "{length}");
        assert!(std::fs::read(cut.project.at(HEAD)).expect("head") == cut.head, "{length}: head was changed");
        if length % 61 == 0 {
            let before = picture(cut.project.path());
            cut.project.nf(&["verify"]).expect(11);
            cut.project.nf(&["doctor"]).expect(11);
            cut.project.nf(&["status"]).expect(11);
            cut.project.nf(&["status", "--allow-damaged"]).expect(0);
            assert!(picture(cut.project.path()) == before, "{length}: something was changed");
        }
    }
}

#[test]
fn a_log_cut_beyond_head_is_recovered_and_its_torn_end_is_kept() {
    let cut = Cut::new();
    let ends: Vec<usize> = cut.starts.iter().copied().chain([cut.log.len()]).collect();
    for length in cut.lengths() {
        cut.put(length, &cut.earlier);
        let whole = ends.iter().copied().filter(|end| *end <= length).max().expect("an end");
        let kept = cut.log[..whole].iter().filter(|byte| **byte == b'\n').count();
        let ran = cut.project.nf(&STEP);
        assert_eq!(ran.code, 0, "{length}: {}{}", ran.stdout, ran.stderr);
        assert!(cut.project.log().starts_with(&cut.log[..whole]), "{length}: a whole line was lost");
        assert_eq!(ran.json()["record"]["seq"], kept as u64 + 1, "{length}");
        let torn = &cut.log[whole..length];
        if torn.is_empty() {
            assert!(cut.torn().is_empty(), "{length}");
        } else {
            assert_eq!(cut.torn(), [torn], "{length}");
            assert!(ran.json()["notes"].to_string().contains("torn/"), "{length}: {}", ran.stdout);
        }
        if length % 61 == 0 {
            assert_sound(&cut.project);
        }
    }
}

#[test]
fn readers_show_what_head_covers_and_leave_a_torn_end_alone() {
    let cut = Cut::new();
    cut.put(cut.log.len() - 1, &cut.earlier);
    let before = picture(cut.project.path());
    for words in [
        &["status"][..],
        &["list", "session"],
        &["log"],
        &["verify"],
        &["run", "step", "--cursor", "x", "-n"],
    ] {
        cut.project.nf(words).expect(0);
    }
    assert!(picture(cut.project.path()) == before);
}

#[test]
fn head_is_believed_by_its_good_slot_and_made_anew_without_one() {
    let cut = Cut::new();
    let kept = records(&cut.project).len() as u64;
    let damage = |slots: &[usize]| {
        let mut head = cut.head.clone();
        slots.iter().for_each(|slot| head[slot * 4096 + 100] ^= 1);
        head
    };
    for head in [damage(&[0]), damage(&[1]), damage(&[0, 1]), cut.head[..600].to_vec(), Vec::new()] {
        cut.put(cut.log.len(), &head);
        let doctor = cut.project.nf(&["doctor"]);
        assert!(doctor.stdout.contains("head"), "{}", doctor.stdout);
        cut.project.nf(&["status"]).expect(0);
        let ran = cut.project.nf(&STEP).expect(0);
        assert_eq!(ran.json()["record"]["seq"], kept + 1, "{}", ran.stdout);
        assert!(cut.project.log().starts_with(&cut.log));
        assert_sound(&cut.project);
    }
    cut.put(cut.log.len(), &cut.head);
    std::fs::remove_file(cut.project.at(HEAD)).expect("removed");
    let status = cut.project.nf(&["status", "--json"]).expect(0);
    assert!(status.json()["notes"].to_string().contains("head"), "{}", status.stdout);
    let ran = cut.project.nf(&STEP).expect(0);
    assert_eq!(ran.json()["record"]["seq"], kept + 1);
    assert_sound(&cut.project);
}

/// What `verify` and `doctor` say of a store, and their exit codes.
fn said(project: &Project) -> (i32, i32, BTreeSet<String>) {
    let (verify, doctor) = (project.nf(&["verify", "--json"]), project.nf(&["doctor", "--json"]));
    let mut findings = BTreeSet::new();
    for ran in [&verify, &doctor] {
        let document = ran.json();
        let list = report(&document)["findings"].as_array().cloned().unwrap_or_default();
        findings.extend(list.iter().map(|finding| finding["what"].to_string()));
        findings.extend(document["error"]["message"].as_str().map(str::to_owned));
    }
    (verify.code, doctor.code, findings)
}

fn files(project: &Project, folder: &str) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(project.at(folder)).sort_by_file_name().into_iter();
    let entries = walk.map(|entry| entry.expect("an entry"));
    entries.filter(|entry| entry.file_type().is_file()).map(|entry| entry.path().to_owned()).collect()
}

/// Writes a file that may be read-only, and leaves its mode as it was.
fn overwrite(path: &PathBuf, bytes: &[u8]) {
    let mode = std::fs::metadata(path).expect("meta").permissions();
    std::fs::remove_file(path).expect("removed");
    std::fs::write(path, bytes).expect("written");
    std::fs::set_permissions(path, mode).expect("a mode");
}

#[test]
fn every_flipped_bit_is_said_and_no_writer_builds_on_it() {
    let project = Steps::new().before("end");
    let mut random = Random::new();
    let sound = said(&project);
    assert_eq!((sound.0, sound.1), (0, 0), "{:?}", sound.2);
    for folder in ["log", "head", "blobs", "receipts"] {
        let files = files(&project, &format!(".novelforge/{folder}"));
        assert!(!files.is_empty(), "{folder}");
        for _ in 0..count("NF_TEST_FLIPS", 120) / 4 {
            let path = &files[random.below(files.len())];
            let good = std::fs::read(path).expect("bytes");
            let (at, bit) = (random.below(good.len()), random.below(8));
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            overwrite(path, &bad);
            let now = said(&project);
            let what = format!("{}: bit {bit} of byte {at} of {}", path.display(), good.len());
            assert_ne!(now, sound, "{what} is not said");
            if folder != "head" {
                assert!(now.0 == 11 || now.1 == 11, "{what}: {:?}", now.2);
            }
            if folder == "log" {
                let ran = project.nf(&STEP);
                assert_eq!(ran.code, 11, "{what}: {}", ran.stdout);
                assert!(std::fs::read(path).expect("bytes") == bad, "{what}: the log was changed");
            }
            overwrite(path, &good);
        }
    }
}

#[test]
fn deleted_doubled_and_swapped_lines_are_damage() {
    let project = Steps::new().before("end");
    let log = project.log();
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        let (mut deleted, mut doubled, mut swapped) = (lines.clone(), lines.clone(), lines.clone());
        deleted.remove(at);
        doubled.insert(at, lines[at]);
        let mut bad = vec![("deleted", deleted)];
        if at + 1 < lines.len() {
            swapped.swap(at, at + 1);
            bad.extend([("doubled", doubled), ("swapped", swapped)]);
        }
        for (name, bad) in bad {
            project.write(SEGMENT, bad.concat());
            let before = picture(project.path());
            let what = format!("line {} {name}", at + 1);
            for words in [&["verify", "--json"][..], &["doctor", "--json"], &["status", "--json"], &STEP] {
                let ran = project.nf(words);
                assert_eq!(ran.code, 11, "{what}: {words:?} {}{}", ran.stdout, ran.stderr);
            }
            assert!(picture(project.path()) == before, "{what}: something was changed");
        }
    }
    // The last line twice lies beyond head: it says what is said already, and goes to torn/ or is damage.
    project.write(SEGMENT, [&log[..], lines[lines.len() - 1]].concat());
    let ran = project.nf(&STEP);
    assert!(ran.code == 11 || ran.json()["notes"].to_string().contains("torn/"), "{}", ran.stdout);
    assert!(project.log().starts_with(&log));
}

#[test]
fn a_missing_segment_blob_mark_or_identity_is_said_and_not_made_up() {
    let whole = Steps::new().before("end");
    let mark = files(&whole, ".novelforge/receipts").remove(0);
    let mark = mark.strip_prefix(whole.path()).expect("inside").to_owned();
    for (gone, code) in [(SEGMENT, 11), (".novelforge/store.json", 11)] {
        let project = twin(&whole);
        std::fs::remove_file(project.at(gone)).expect("removed");
        let before = picture(project.path());
        for words in [&["verify"][..], &["status"], LOOP[0].1, &STEP] {
            project.nf(words).expect(code);
        }
        assert!(picture(project.path()) == before, "{gone}: something was made up");
    }
    for blob in files(&whole, ".novelforge/blobs") {
        let project = twin(&whole);
        std::fs::remove_file(project.path().join(blob.strip_prefix(whole.path()).expect("inside")))
            .expect("removed");
        project.nf(&["verify"]).expect(11);
    }
    // The record is the receipt: a mark that is gone is a note, and comes back.
    std::fs::remove_file(whole.path().join(&mark)).expect("removed");
    assert!(whole.nf(&["verify"]).expect(0).stdout.contains("mark"), "nothing is said");
    whole.nf(&["doctor", "--fix"]).expect(0);
    assert!(whole.path().join(&mark).exists());
    assert_sound(&whole);
}

#[test]
fn a_mark_whose_record_is_lost_stops_a_second_consume() {
    let steps = Steps::new();
    let (before, after) = (steps.before("consume"), steps.before("resume"));
    // A copy of the log from before the receipt, under the marks from after it.
    let mark = files(&after, ".novelforge/receipts").remove(0);
    let name = mark.strip_prefix(after.path()).expect("inside");
    std::fs::copy(&mark, before.path().join(name)).expect("a copy");
    let ran = before.nf(&[LOOP[4].1, &["--json"]].concat());
    assert_eq!((ran.code, kind(&ran).as_str()), (11, "damaged"), "{}", ran.stdout);
    before.nf(&["verify"]).expect(11);
}
