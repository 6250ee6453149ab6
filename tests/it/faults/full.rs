//! A disk that is really full, and a lock that locks nothing.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::tools::{LOOP, Steps, assert_sound, copy_tree, kind, records};
use crate::harness::{NF, Project, Ran, skipped};

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A small disk in memory, taken away when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let options = format!("size={bytes},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path());
        if run(&mut mount) {
            return Some(Self(folder));
        }
        skipped("NF_NEED_MOUNT", "there is no right to mount a small disk");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run(Command::new("umount").arg(self.0.path()));
    }
}

#[test]
fn a_full_disk_is_said_and_earlier_records_stand() {
    let Some(disk) = SmallDisk::new(4 << 20) else { return };
    let steps = Steps::new();
    let mut full = 0;
    for (name, command) in LOOP {
        let folder = disk.0.path().join(name);
        copy_tree(steps.before(name).path(), &folder);
        let (place, root) = (folder.to_str().expect("a path"), Project::empty());
        let nf = |words: &[&str]| -> Ran { root.nf(&[&["-C", place], words].concat()) };
        let log = std::fs::read(folder.join(".novelforge/log/00000001.jsonl")).expect("a log");
        let answer = folder.join("answer.json");
        let words: Vec<&str> = command
            .iter()
            .map(|word| if *word == "answer.json" { answer.to_str().expect("a path") } else { word })
            .collect();
        let words = [&words[..], &["--op", "once", "--json"]].concat();
        let filler = disk.0.path().join("filler");
        // All the room there is, to the last page.
        run(Command::new("dd").args(["if=/dev/zero", "bs=4096"]).arg(format!("of={}", filler.display())));
        let ran = nf(&words);
        assert!(ran.code == 1 || ran.code == 0, "{name}: {} {}", ran.code, ran.stdout);
        if ran.code == 1 {
            full += 1;
            assert_eq!(kind(&ran), "disk_full", "{name}: {}", ran.stdout);
            assert_eq!(std::fs::read(folder.join(".novelforge/log/00000001.jsonl")).expect("a log"), log);
        }
        nf(&["verify"]).expect(0);
        nf(&["status"]).expect(0);
        std::fs::remove_file(&filler).expect("room again");
        nf(&words).expect(0);
        nf(&["verify"]).expect(0);
        std::fs::remove_dir_all(&folder).expect("room again");
    }
    // A short record may still fit into the log's last page.
    assert!(full >= 3, "only {full} commands met the full disk");
}

#[test]
fn a_limit_on_the_size_of_files_stops_the_append_and_nothing_else() {
    let steps = Steps::new();
    for (name, command) in LOOP {
        let project = steps.before(name);
        let log = project.log();
        let size = std::fs::metadata(project.at(".novelforge/log/00000001.jsonl")).expect("a log").size();
        let words = [command, &["--op", "once", "--json"]].concat();
        // The limit's signal is ignored, so that the write itself fails; it cuts the append in two.
        let limit = format!("--fsize={}", size + 100);
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", "prlimit", &limit, NF]).args(&words);
        limited.current_dir(project.path());
        let ran: Ran = limited.output().expect("sh runs").into();
        if ran.code == 127 {
            skipped("NF_NEED_PRLIMIT", "prlimit is not there");
            return;
        }
        // Blobs and packets may be over the limit too; the cause differs, the rule does not.
        assert!(ran.code == 1, "{name}: {} {} {}", ran.code, ran.stdout, ran.stderr);
        assert!(["io", "disk_full"].contains(&kind(&ran).as_str()), "{name}: {}", ran.stdout);
        assert_eq!(project.log(), log, "{name}");
        project.nf(&words).expect(0);
        assert_eq!(records(&project).iter().filter(|record| record["op"] == "once").count(), 1);
        assert_sound(&project);
    }
}

const NO_LOCK: &str = "int flock(int fd, int how) { (void)fd; (void)how; return 0; }\n";

#[test]
fn a_lock_that_locks_nothing_is_found_at_init_and_by_doctor() {
    let project = Project::empty();
    project.write("no_lock.c", NO_LOCK);
    let library = project.at("no_lock.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(project.at("no_lock.c"));
    if !run(&mut cc) {
        skipped("NF_NEED_CC", "cc makes no library");
        return;
    }
    let preloaded = |words: &[&str]| -> Ran {
        project.command(words).env("LD_PRELOAD", &library).output().expect("nf runs").into()
    };
    let ran = preloaded(&["init", "--json"]);
    assert_eq!((ran.code, kind(&ran).as_str()), (11, "lock_not_exclusive"), "{} {}", ran.stdout, ran.stderr);
    assert!(!project.at(".novelforge/store.json").exists());
    project.nf(&["init"]).expect(0);
    project.nf(&["doctor", "--selftest"]).expect(0);
    let ran = preloaded(&["doctor", "--json"]);
    assert_eq!(ran.code, 11, "{}", ran.stdout);
    assert!(ran.stdout.contains("lock_not_exclusive"), "{}", ran.stdout);
}
