//! A store that can be read and not written: everything that only reads answers as elsewhere, and what would
//! write says what to do. On a read-only mount, and with modes that forbid it. Needs root.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::faults::tools::{GATE, copy_tree, twin};
use crate::harness::{NF, Project, Ran, skipped};

const NOW: &str = "2026-11-30T10:00:00.000000Z";
/// A user who is nobody in particular.
const USER: u32 = 54_321;

/// A store with an answer to consume and a log that is long enough for an index; its session and result.
fn answered() -> (Project, String, String) {
    let project = Project::testing(NOW);
    let packet = project.ask();
    let result = project.nf_with(&["reply", "-"], packet.verdict("reject").as_bytes()).expect(0).line();
    let session = project.nf(&["list", "session", "--json"]).expect(0).json();
    let mut ids = session["data"]["items"].as_array().expect("items").iter();
    let asker = ids.find(|item| item["worker_of"].is_null()).expect("a session")["id"].clone();
    let asker = asker.as_str().expect("an id").to_owned();
    while project.log().len() < 70 * 1024 {
        let key = format!("op-{}", project.log().len());
        project.nf(&["start", "--resource", "novel/emma", "--task", "review", "-q", "--op", &key]).expect(0);
    }
    (project, asker, result)
}

/// Everything that only reads.
fn reading<'a>(session: &'a str, result: &'a str) -> Vec<Vec<&'a str>> {
    vec![
        vec!["status", "--json"],
        vec!["status", "--session", session],
        vec!["list", "session", "--json"],
        vec!["list", "attempt"],
        vec!["show", result, "--json"],
        vec!["show", session],
        vec!["log", "--limit", "9"],
        vec!["validate", result],
        vec!["verify", "--json"],
        vec!["resume", "-n", "--session", session],
        vec!["consume", "-n", "--session", session, result, "--as", GATE],
    ]
}

/// All that a command that only reads answers, and how a writer and doctor end.
fn only_reads(
    nf: &dyn Fn(&[&str]) -> Ran,
    writable: &dyn Fn(&[&str]) -> Ran,
    session: &str,
    result: &str,
    word: &str,
) {
    for words in reading(session, result) {
        let (here, there) = (nf(&words).expect(0), writable(&words).expect(0));
        assert_eq!(here.stdout, there.stdout, "{words:?}");
        assert_eq!(here.stderr, there.stderr, "{words:?}");
    }
    let doctor = nf(&["doctor", "--json"]).expect(0).json();
    let codes: Vec<&str> = doctor["data"]["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| finding["code"].as_str().expect("a code"))
        .filter(|code| *code != "modes" && *code != "index_old")
        .collect();
    assert_eq!(codes, ["read_only"], "{doctor}");
    for words in [
        &["start", "--resource", "novel/emma", "--task", "review"][..],
        &["consume", "--session", session, result, "--as", GATE],
        &["run", "step", "--session", session, "--cursor", "on"],
    ] {
        let ran = nf(&[words, &["--json"]].concat()).expect(1);
        let error = &ran.json()["error"];
        assert_eq!(error["kind"], "io", "{words:?}: {error}");
        assert!(error["fix"].as_str().is_some_and(|fix| fix.contains(word)), "{words:?}: {error}");
    }
}

/// A folder seen a second time through a mount, taken away when dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(of: &Path) -> Option<Self> {
        let place = tempfile::tempdir().expect("a folder");
        let bound = Command::new("mount").arg("--bind").arg(of).arg(place.path()).output();
        if bound.is_ok_and(|ran| ran.status.success()) {
            return Some(Self(place));
        }
        skipped("NF_NEED_MOUNT", "there is no right to mount a folder again");
        None
    }

    fn read_only(&self) {
        let ran = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(self.0.path()).output();
        assert!(ran.expect("mount runs").status.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

/// Runs `nf` in a folder of another place than the project's own, with the project's clock.
fn there(program: PathBuf, folder: PathBuf, user: Option<u32>) -> impl Fn(&[&str]) -> Ran {
    move |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(&folder).env_clear().env("NF_NOW", NOW).env("NF_SEED", "seed");
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        command.output().expect("nf runs").into()
    }
}

#[test]
fn a_read_only_mount_is_read_like_any_store() {
    let (project, session, result) = answered();
    for indexed in [false, true] {
        let Some(mounted) = Mounted::new(project.path()) else { return };
        let nf = there(NF.into(), mounted.0.path().to_owned(), None);
        let index = project.at(".novelforge/index");
        let _ = std::fs::remove_dir_all(&index);
        if indexed {
            // An index belongs to the mount that it was made through.
            nf(&["status"]).expect(0);
            assert!(index.exists());
        }
        let mut writable = twin(&project);
        writable.set("NF_NOW", NOW);
        writable.set("NF_SEED", "seed");
        mounted.read_only();
        only_reads(&nf, &|words| writable.nf(words), &session, &result, "read-only");
        nf(&["doctor", "--fix"]).expect(1);
        assert_eq!(index.exists(), indexed);
    }
}

#[test]
fn modes_that_forbid_writing_leave_reading() {
    if !rustix::process::geteuid().is_root() {
        return skipped("NF_NEED_ROOT", "only root can be another user for a while");
    }
    let (project, session, result) = answered();
    for indexed in [false, true] {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("project");
        copy_tree(project.path(), &folder);
        let _ = std::fs::remove_dir_all(folder.join(".novelforge/index"));
        let own = |path: &Path| std::os::unix::fs::chown(path, Some(USER), Some(USER)).expect("given away");
        own(place.path());
        walkdir::WalkDir::new(&folder).into_iter().for_each(|entry| own(entry.expect("an entry").path()));
        // Where the program lies the other user may not come.
        let program = place.path().join("nf");
        std::fs::copy(NF, &program).expect("a copy");
        let nf = there(program, folder.clone(), Some(USER));
        if indexed {
            nf(&["status"]).expect(0);
        }
        assert_eq!(folder.join(".novelforge/index").exists(), indexed);
        let forbid = |how: &str| {
            let ran = Command::new("chmod").args(["-R", how]).arg(&folder).output().expect("chmod runs");
            assert!(ran.status.success());
        };
        forbid("a-w");
        let mut writable = twin(&project);
        writable.set("NF_NOW", NOW);
        writable.set("NF_SEED", "seed");
        only_reads(&nf, &|words| writable.nf(words), &session, &result, "nf doctor --fix");
        // The modes are the user's own to set, and doctor knows them.
        nf(&["doctor", "--fix"]).expect(0);
        nf(&["start", "--resource", "novel/emma", "--task", "review"]).expect(0);
    }
}
