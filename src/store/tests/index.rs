//! Histories with an index that is deleted, noised, cut, copied, of another boot, or of a store that was put
//! back from a copy: whatever becomes of it, everything that is looked up is what the plain fold says.
//! `NF_TEST_CASES` (300) histories.

use proptest::prelude::*;

use super::*;

/// One turn of a history.
#[derive(Debug, Clone)]
enum Turn {
    /// A record of some events, under an operation key or not, written with the index of a boot.
    Write { kind: u8, id: u8, keyed: bool, boot: u8 },
    /// A look, with the index of a boot.
    Read { boot: u8 },
    /// The index of a boot is made at one go, where none counts.
    Whole { boot: u8 },
    /// All indexes are deleted.
    Delete,
    /// A byte of a file of the index is changed, or the file cut there.
    Spoil { file: u8, at: u16, cut: bool },
    /// The index's folder is kept aside, or put back as it was.
    Aside { back: bool },
    /// The whole store is kept aside, or put back over itself.
    Backup { back: bool },
    /// The last writer died before head covered its record.
    Kill,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let boot = 0..3u8;
    let turn = prop_oneof![
        8 => (any::<u8>(), 0..6u8, any::<bool>(), boot.clone())
            .prop_map(|(kind, id, keyed, boot)| Turn::Write { kind, id, keyed, boot }),
        3 => boot.clone().prop_map(|boot| Turn::Read { boot }),
        1 => boot.prop_map(|boot| Turn::Whole { boot }),
        1 => Just(Turn::Delete),
        2 => (0..3u8, any::<u16>(), any::<bool>()).prop_map(|(file, at, cut)| Turn::Spoil { file, at, cut }),
        1 => any::<bool>().prop_map(|back| Turn::Aside { back }),
        1 => any::<bool>().prop_map(|back| Turn::Backup { back }),
        1 => Just(Turn::Kill),
    ];
    prop::collection::vec(turn, 1..24)
}

fn events(kind: u8, id: u8) -> Vec<Event> {
    let session = format!("s-00000000000{id}");
    let run = format!("r-00000000000{id}");
    let moved = |to: &str| {
        event(json!({"type": "session.moved", "session": session, "from": "created", "to": to, "version": 2}))
    };
    match kind % 9 {
        0 => vec![session_created(&session)],
        1 => vec![moved("running"), counted()],
        2 => vec![moved("stale")],
        3 => vec![event(json!({"type": "run.started", "run": {
            "id": run, "session": session, "resource": "novel/pride", "task_mode": "review",
            "cursor": "start", "status": "running", "context_manifest": [], "pending": {},
            "started_at": "2026-01-01T00:00:00.000000Z",
        }}))],
        4 => vec![event(json!({"type": "run.stepped", "run": run, "cursor": format!("step-{kind}")}))],
        5 => vec![attempt_ended(&format!("a-00000000000{id}"))],
        6 => vec![receipt_recorded(&format!("gate/{kind}"), 1)],
        7 => vec![event(json!({"type": "capability.observed", "capability": {
            "name": format!("capability-{id}"), "family": "local_agent", "available": true,
            "proof": "declared", "source": "command line", "permission_class": "diagnostic", "cost": "free",
            "interactive": false, "executes_model": true, "isolated_invocation": true, "locality": "any",
            "detail": format!("the {kind}th"), "observed_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2026-01-31T00:00:00.000000Z",
        }}))],
        _ => vec![session_created(&session), moved("running"), counted()],
    }
}

fn copy_over(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().map(|entry| entry.unwrap()) {
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
        } else {
            // Over what is there, so that inodes stay: the hardest case to notice.
            let bytes = std::fs::read(entry.path()).unwrap();
            let _ = std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o600));
            std::fs::write(&target, bytes).unwrap();
            std::fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
        }
    }
}

/// Receipts that the put-back log lacks would be lost data; marks go with the log here.
fn put_back(home: &Home, kept: &Path) {
    std::fs::remove_dir_all(home.path("receipts")).unwrap();
    copy_over(kept, &home.root);
}

fn index_files(home: &Home) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(home.path("index")).sort_by_file_name();
    let files = walk.into_iter().filter_map(|entry| entry.ok()).filter(|entry| entry.file_type().is_file());
    files.map(|entry| entry.path().to_owned()).collect()
}

fn spoil(home: &Home, file: u8, at: u16, cut: bool) {
    let files = index_files(home);
    let Some(path) = files.get(usize::from(file) % files.len().max(1)) else { return };
    let mut bytes = std::fs::read(path).unwrap();
    let at = usize::from(at) % bytes.len().max(1);
    if cut {
        bytes.truncate(at);
    } else {
        bytes.iter_mut().skip(at).take(64).for_each(|byte| *byte ^= 0xa5);
    }
    std::fs::write(path, bytes).unwrap();
}

fn apply(home: &Home, turn: &Turn, number: usize, old_head: &mut Vec<u8>) {
    let aside = home.dir().join("index-aside");
    let backup = home.dir().join("backup");
    match turn {
        Turn::Write { kind, id, keyed: under_key, boot } => {
            *old_head = home.bytes("head");
            let store = home.indexed(&format!("boot-{boot}"));
            let request =
                if *under_key { keyed(&format!("op-{number}"), json!({})) } else { request("test") };
            // A receipt twice, and a mark beyond a log that was put back, are refused: no fault of the index.
            let _ = record(&store, &source(), &request, events(*kind, *id));
        }
        Turn::Read { boot } => drop(home.indexed(&format!("boot-{boot}")).read().unwrap()),
        Turn::Whole { boot } => drop(home.indexed(&format!("boot-{boot}")).build_whole()),
        Turn::Delete => drop(std::fs::remove_dir_all(home.path("index"))),
        Turn::Spoil { file, at, cut } => spoil(home, *file, *at, *cut),
        Turn::Aside { back: false } if home.path("index").exists() => copy_over(&home.path("index"), &aside),
        Turn::Aside { back: true } if aside.exists() => copy_over(&aside, &home.path("index")),
        Turn::Backup { back: false } if !backup.exists() => copy_over(&home.root, &backup),
        Turn::Backup { back: true } if backup.exists() => put_back(home, &backup),
        Turn::Kill if !old_head.is_empty() => home.set("head", old_head),
        _ => {}
    }
    if matches!(turn, Turn::Backup { .. }) {
        old_head.clear();
    }
}

fn config() -> ProptestConfig {
    let cases = std::env::var("NF_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_lookup_is_what_the_plain_fold_says(turns in turns()) {
        let home = Home::new();
        let mut old_head = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            apply(&home, turn, number, &mut old_head);
            let plain = home.open().read().unwrap();
            let indexed = home.indexed("boot-0").read().unwrap();
            prop_assert_eq!(&indexed.position, &plain.position);
            prop_assert!(indexed.state == plain.state, "{:?}", turns);
            prop_assert_eq!(indexed.state.meta(), plain.state.meta());
        }
        drop(home.indexed("boot-0").read().unwrap());
        let found = home.indexed("boot-0").verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap().findings;
        prop_assert!(found.iter().all(|finding| finding.code != "index"), "{:?}", found);
    }
}
