//! Stores that somebody else made or changed: refused, with nothing written.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_without_store_json_is_no_store_and_init_may_go_on_from_anywhere() {
    let home = Home::new();
    assert_eq!(Store::open(&home.dir().join("none"), options()).unwrap_err().kind, Kind::NoStore);
    let again = Store::init(&home.root, &InitOptions::default(), options(), &source());
    assert_eq!(again.unwrap_err().kind, Kind::StoreExists);
    // A half-made store: anything may be there but store.json.
    let parts = ["store.json", "head", "lock", "log/00000001.jsonl", ".gitignore"];
    for missing in 1..=parts.len() {
        for name in &parts[..missing] {
            let _ = std::fs::remove_file(home.path(name));
        }
        assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::NoStore);
        let store = Store::init(&home.root, &InitOptions::default(), options(), &source()).unwrap();
        assert_eq!(write(&store).unwrap().outcome, Ok(2));
        std::fs::remove_file(home.path("log/00000001.jsonl")).unwrap();
        std::fs::remove_file(home.path("store.json")).unwrap();
    }
}

#[test]
fn a_lost_store_json_is_never_made_up() {
    let home = Home::filled(1);
    std::fs::remove_file(home.path("store.json")).unwrap();
    assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::Damaged);
    let made = Store::init(&home.root, &InitOptions::default(), options(), &source());
    assert_eq!(made.unwrap_err().kind, Kind::Damaged);
}

#[test]
fn init_says_what_git_ignores_and_whose_the_store_is() {
    let plain = Home::new();
    assert_eq!(plain.bytes(".gitignore"), b"*\n");
    assert!(!plain.path(".gitattributes").exists());
    let git = Home::with(&InitOptions { git: true, ..InitOptions::default() });
    assert!(String::from_utf8(git.bytes(".gitignore")).unwrap().contains("!log/**"));
    assert_eq!(git.bytes(".gitattributes"), b"* -text\n");
    let shared = Home::with(&InitOptions { shared: true, testing: true, ..InitOptions::default() });
    let info = shared.open().info().clone();
    assert!(info.shared && info.testing && info.format == 1 && info.store_id.len() == 26);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(shared.root.clone()), 0o770);
    assert_eq!((mode(shared.path("head")), mode(shared.path("lock"))), (0o660, 0o660));
    assert_eq!(mode(shared.path("blobs/7f")), 0o770);
    assert_eq!((mode(plain.root.clone()), mode(plain.path("head"))), (0o700, 0o600));
    assert_eq!(mode(plain.path("log/00000001.jsonl")), 0o600);
    write(&shared.open()).unwrap();
    assert!(shared.codes().is_empty(), "{:?}", shared.open().findings());
    let info = String::from_utf8(plain.bytes("store.json")).unwrap();
    assert!(info.starts_with("{\"created_at\":") && info.ends_with("}\n"), "{info}");
}

#[test]
fn a_store_that_others_can_write_is_refused() {
    let home = Home::new();
    for mode in [0o770, 0o702, 0o777] {
        chmod(&home.root, mode);
        assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::ForeignStore, "{mode:o}");
    }
    chmod(&home.root, 0o755);
    assert!(Store::open(&home.root, options()).is_ok());
    chmod(&home.path("log/00000001.jsonl"), 0o666);
    assert_eq!(home.open().read().unwrap_err().kind, Kind::ForeignStore);
    chmod(&home.path("log/00000001.jsonl"), 0o644);
    chmod(&home.path("log"), 0o777);
    assert_eq!(home.open().read().unwrap_err().kind, Kind::ForeignStore);
    // Behind a folder that lets nobody in, the modes of what is inside grant nothing.
    chmod(&home.root, 0o700);
    assert!(home.open().read().is_ok());
}

#[test]
fn a_store_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("NF_NEED_ROOT").is_none(), "NF_NEED_ROOT is set, and this is not root");
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    let home = Home::new();
    std::os::unix::fs::chown(home.path("log/00000001.jsonl"), Some(12345), None).unwrap();
    assert_eq!(home.open().read().unwrap_err().kind, Kind::ForeignStore);
    assert!(home.codes().contains(&"foreign".to_owned()));
    std::os::unix::fs::chown(&home.root, Some(12345), Some(54321)).unwrap();
    assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::ForeignStore);
    // A store that calls itself shared is shared only with those who are in its group.
    chmod(&home.root, 0o770);
    assert_eq!(Store::open(&home.root, options()).unwrap_err().kind, Kind::ForeignStore);
}

#[test]
fn links_are_never_followed() {
    let home = Home::filled(1);
    let aside = home.dir().join("aside");
    for name in ["head", "lock", "log/00000001.jsonl", "log", "blobs", "receipts", "packets", "store.json"] {
        let path = home.path(name);
        std::fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        let made = Store::open(&home.root, options()).and_then(|store| {
            record(&store, &source(), &request("test"), vec![receipt_recorded("gate/x", 3)])?;
            store.blob(&Hash::of(b"x")).map(drop).or_else(|error| match error.kind {
                Kind::Damaged => store.packet(&"a-000000000001".parse().unwrap()).map(drop),
                _ => Err(error),
            })
        });
        // A blob that is not there is no matter here; a link is.
        let error = made.expect_err(name);
        assert_eq!(error.kind, Kind::ForeignStore, "{name}: {error}");
        if name != "store.json" {
            assert!(home.codes().contains(&"symbolic_link".to_owned()), "{name}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        restore_after(&home);
    }
    symlink(&home.root, home.dir().join("link")).unwrap();
    assert_eq!(Store::open(&home.dir().join("link"), options()).unwrap_err().kind, Kind::ForeignStore);
}

/// A mark that an attempt above left without a record is taken away.
fn restore_after(home: &Home) {
    for name in home.names("receipts") {
        std::fs::remove_file(home.path("receipts").join(name)).unwrap();
    }
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let home = Home::new();
    std::fs::remove_file(home.path("head")).unwrap();
    std::fs::create_dir(home.path("head")).unwrap();
    assert_eq!(home.open().read().unwrap_err().kind, Kind::ForeignStore);
    std::fs::remove_dir(home.path("head")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.path("head"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(home.open().read().unwrap_err().kind, Kind::ForeignStore);
    assert!(home.codes().contains(&"odd_file".to_owned()));
}

#[test]
fn a_newer_store_is_read_and_never_written() {
    let home = Home::new();
    let info = String::from_utf8(home.bytes("store.json")).unwrap();
    // A newer store, whose first record rests on its own store.json.
    let newer = info.replace("\"format\":1", "\"format\":2");
    home.set("store.json", newer.as_bytes());
    let (old, new) = (Hash::of(info.as_bytes()).hex(), Hash::of(newer.as_bytes()).hex());
    let log = String::from_utf8(home.bytes(LOG)).unwrap().replace(&old, &new);
    home.set(LOG, &resealed(&log));
    std::fs::remove_file(home.path("head")).unwrap();
    let store = home.open();
    let snapshot = store.read().unwrap();
    assert_eq!(snapshot.position.unwrap().seq, 1);
    assert!(snapshot.warnings.iter().any(|text| text.contains("newer")), "{:?}", snapshot.warnings);
    assert_eq!(write(&store).unwrap_err().kind, Kind::NewerFormat);
    assert_eq!(store.fix(&source(), true).unwrap_err().kind, Kind::NewerFormat);
    assert!(home.codes().contains(&"newer_format".to_owned()));
}

/// The one line of a log with its hash made anew.
fn resealed(line: &str) -> Vec<u8> {
    let body = line.rsplit_once(",\"hash\":\"").unwrap().0;
    let hash = Hash::derive("novelforge log v1", body.as_bytes());
    format!("{body},\"hash\":\"{hash}\"}}\n").into_bytes()
}

#[test]
fn newer_records_are_read_where_understood_and_never_written_after() {
    let home = Home::filled(1);
    let log = String::from_utf8(home.bytes(LOG)).unwrap();
    let (first, second) = log.split_at(log.find('\n').unwrap() + 1);
    let table = [
        (second.replace("{\"v\":1,", "{\"v\":2,"), true),
        (second.replace("conflict.refused", "moon.risen"), false),
    ];
    for (line, understood) in table {
        home.set(LOG, &[first.as_bytes(), &resealed(&line)].concat());
        let _ = std::fs::remove_file(home.path("head"));
        let read = home.open().read();
        match understood {
            true => assert_eq!(read.unwrap().position.unwrap().seq, 2),
            false => assert_eq!(read.unwrap_err().kind, Kind::NewerFormat),
        }
        assert_eq!(write(&home.open()).unwrap_err().kind, Kind::NewerFormat);
        assert_eq!(home.open().fix(&source(), true).unwrap_err().kind, Kind::NewerFormat);
        let verified = home.open().verify(&mut |_, _| Ok(()), &mut |_| {}).unwrap();
        assert_eq!(verified.records, 2);
        assert!(verified.findings.iter().all(|found| found.code != "damage"), "{verified:?}");
    }
}

#[test]
fn unknown_file_systems_are_refused_by_name() {
    let proc = files::Folder::root(Path::new("/proc")).unwrap().unwrap();
    let error = init::known_file_system(&proc).unwrap_err();
    assert_eq!(error.kind, Kind::UnsupportedFileSystem);
    let here = files::Folder::root(Path::new("/tmp")).unwrap().unwrap();
    assert!(init::known_file_system(&here).is_ok());
}
