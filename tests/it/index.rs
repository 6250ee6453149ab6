//! The index as the binary meets it: made once the log is long enough, and never more than a cache.

use crate::harness::Project;

/// A project whose log is long enough for an index.
pub fn long() -> (Project, String) {
    let mut project = Project::in_memory().furnished();
    let session =
        project.nf(&["start", "--resource", "novel/pride", "--task", "review", "-q"]).expect(0).line();
    project.set("NF_SESSION", &session);
    let mut number = 0;
    while project.log().len() < 70 * 1024 {
        number += 1;
        project.nf(&["run", "step", "--cursor", &format!("step-{number}"), "-q"]).expect(0);
    }
    (project, session)
}

/// What is asked, in words that do not change from one asking to the next.
fn answers(project: &Project, session: &str) -> Vec<String> {
    let asked: [&[&str]; 3] =
        [&["show", session, "--json"], &["list", "run", "--json"], &["list", "session", "--json"]];
    asked.iter().map(|words| project.nf(words).expect(0).stdout).collect()
}

#[test]
fn an_index_is_a_cache_whatever_becomes_of_it() {
    let (project, session) = long();
    let index = project.at(".novelforge/index");
    let with = answers(&project, &session);
    assert!(index.is_dir(), "an index was made");
    let data = || {
        let folder =
            std::fs::read_dir(&index).expect("a folder").next().expect("an index").expect("it").path();
        let numbers = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("it").path());
        numbers.map(|path| path.join("data.mdb")).find(|path| path.exists()).expect("rows")
    };
    // Bytes changed, bytes missing.
    let mut bytes = std::fs::read(data()).expect("rows");
    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(data(), bytes).expect("written");
    assert_eq!(answers(&project, &session), with);
    std::fs::OpenOptions::new().write(true).open(data()).expect("rows").set_len(5000).expect("cut");
    project.nf(&["run", "step", "--cursor", "after", "-q"]).expect(0);
    let with = answers(&project, &session);
    project.nf(&["verify"]).expect(0);
    // No folder, and no way to make one.
    std::fs::remove_dir_all(&index).expect("removed");
    std::fs::write(&index, b"").expect("a file");
    assert_eq!(answers(&project, &session), with);
    project.nf(&["run", "step", "--cursor", "still", "-q"]).expect(0);
    std::fs::remove_file(&index).expect("removed");
    let with = answers(&project, &session);
    project.nf(&["doctor", "--fix"]).expect(0);
    assert!(data().exists(), "doctor keeps what is sound");
    assert_eq!(answers(&project, &session), with);
}

#[test]
fn an_index_that_somebody_touched_is_made_anew_once() {
    let (project, session) = long();
    let with = answers(&project, &session);
    let index = project.at(".novelforge/index");
    let home = || std::fs::read_dir(&index).expect("a folder").next().expect("one").expect("it").path();
    let stamp = || std::fs::read_to_string(home().join("stamp")).expect("a stamp");
    let before = stamp();
    let generation = before.split(' ').next().expect("a number").trim_start_matches('0').to_owned();
    use std::os::unix::fs::PermissionsExt;
    let rows = home().join(generation).join("data.mdb");
    // Only how the file looks changes: its change time.
    for mode in [0o400, 0o600] {
        std::fs::set_permissions(&rows, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    assert_eq!(answers(&project, &session), with);
    let after = stamp();
    assert_ne!(after, before, "another generation counts");
    assert_eq!(answers(&project, &session), with);
    assert_eq!(stamp(), after, "and is not made again");
    let numbers = std::fs::read_dir(home()).expect("a folder").count();
    assert_eq!(numbers, 2, "one generation and the stamp");
}

#[test]
fn rows_are_written_when_some_log_has_come_together_and_nothing_is_missed_meanwhile() {
    let (project, _) = long();
    project.nf(&["status"]).expect(0);
    let index = project.at(".novelforge/index");
    let home = std::fs::read_dir(&index).expect("a folder").next().expect("one").expect("it").path();
    let mut stamps = std::collections::BTreeSet::new();
    let steps = 60;
    for number in 0..steps {
        let cursor = format!("later-{number}");
        project.nf(&["run", "step", "--cursor", &cursor, "-q"]).expect(0);
        stamps.insert(std::fs::read(home.join("stamp")).expect("a stamp"));
        let shown = project.nf(&["list", "run"]).expect(0).stdout;
        assert!(shown.contains(&cursor), "{shown}");
    }
    assert!(stamps.len() > 1 && stamps.len() < steps / 4, "{} writings", stamps.len());
    let verified = project.nf(&["verify"]).expect(0);
    assert!(!verified.stdout.contains("index"), "{verified:?}");
}
