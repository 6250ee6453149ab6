//! Making a store. `store.json` comes last: a folder without one is no store, and making it can be begun
//! again at any point.

use std::path::Path;

use super::files::{Access, Folder};
use super::head::{Head, HeadFile};
use super::lock;
use super::record::{self, Draft};
use super::scan::{Place, segment_name};
use super::{FORMAT, INFO, Info, InitOptions, Options, Store};
use crate::error::{Error, Kind, Result};
use crate::model::event::Event;
use crate::model::hash::Hash;
use crate::model::id::{NONCE_LENGTH, base32};
use crate::model::time::Source;

/// The folders of a store besides the blobs' own.
pub(super) const FOLDERS: [&str; 7] = ["log", "blobs", "receipts", "packets", "torn", "tmp", "contracts"];

const IGNORE_ALL: &str = "*\n";
const IGNORE_DERIVED: &str = "*\n!.gitignore\n!.gitattributes\n!log/\n!log/**\n!blobs/\n!blobs/**\n\
     !receipts/\n!receipts/**\n!store.json\n!config.yaml\n!contracts/\n!contracts/**\n";
const ATTRIBUTES: &str = "* -text\n";

impl Store {
    /// Makes a store at `root` (`…/.novelforge`) and opens it. Everything is durable before it is a store.
    ///
    /// # Errors
    /// There is a store already; the lock does not exclude others; the folder cannot be made or synced.
    pub fn init(root: &Path, init: &InitOptions, options: Options, source: &Source) -> Result<Self> {
        not_foreign(root)?;
        let access = Access::new(init.shared);
        make_root(root, access)?;
        let gone = || Error::new(Kind::Io, format!("{} vanished", root.display()));
        let mut folder = Folder::root(root)?.ok_or_else(gone)?;
        folder.access = access;
        folder.access.check(&folder.stat, root)?;
        if !options.allow_fs {
            known_file_system(&folder)?;
        }
        let held = lock::acquire(&folder, options.lock_timeout_ms)?;
        if folder.has(INFO)? {
            return Err(Error::new(Kind::StoreExists, format!("there is a store at {}", root.display())));
        }
        if let Some(error) = without_info(&folder)? {
            return Err(error);
        }
        if let Some(program) = &options.self_check {
            lock::self_check(program, &folder, &held)?;
        }
        build(&folder, init, source)?;
        held.release()?;
        sync_parent(root)?;
        Self::open(root, options)
    }
}

/// Names that a store, whole or half made, may have in it.
const MEMBERS: [&str; 8] =
    [INFO, lock::LOCK, "head", "index", "config.yaml", "POISON", ".gitignore", ".gitattributes"];

/// Refuses a folder that is somebody's and no store, before anything is written: one inside another store,
/// or one that holds anything but what a half-made store holds (lock and blobs are made first).
fn not_foreign(root: &Path) -> Result<()> {
    let whole = std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf());
    if let Some(outer) = whole.ancestors().skip(1).find(|folder| folder.join(INFO).is_file()) {
        return Err(Error::new(Kind::BadInput, format!("{} lies inside a store", root.display()))
            .because(format!("{} is one", outer.display()))
            .fix("make the store in the project's folder"));
    }
    let Ok(entries) = std::fs::read_dir(root) else { return Ok(()) };
    let names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    let known = |name: &String| MEMBERS.contains(&name.as_str()) || FOLDERS.contains(&name.as_str());
    let begun = names.iter().any(|name| [lock::LOCK, INFO, "blobs"].contains(&name.as_str()));
    if names.is_empty() || begun && names.iter().all(known) {
        return Ok(());
    }
    let other = names.iter().find(|name| !known(name)).or(names.first()).cloned().unwrap_or_default();
    Err(Error::new(Kind::BadInput, format!("{} is not empty and is no store", root.display()))
        .because(format!("it holds {other}"))
        .fix("give an empty folder, or none: nf init makes .novelforge"))
}

fn make_root(root: &Path, access: Access) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(access.folder()).create(root) {
        Ok(()) if access.shared => {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(access.folder());
            std::fs::set_permissions(root, mode)
                .map_err(|error| Error::io(format!("chmod of {}", root.display()), &error))
        }
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io(format!("making of {}", root.display()), &error)),
    }
}

fn sync_parent(root: &Path) -> Result<()> {
    let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let synced = std::fs::File::open(parent).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Error::io(format!("sync of {}", parent.display()), &error))
}

/// What stands in a folder without `store.json`: a half-made store holds one record at most, and may be
/// made again; more records than that are somebody's work.
pub(super) fn without_info(folder: &Folder) -> Result<Option<Error>> {
    let Some(log) = folder.folder("log")? else { return Ok(None) };
    let first = segment_name(1);
    let bytes = log.read(&first, record::LINE_LIMIT as u64);
    let whole = match bytes {
        Ok(bytes) => bytes.is_none_or(|bytes| bytes.split(|byte| *byte == b'\n').count() <= 2),
        Err(error) if error.kind == Kind::TooLarge => false,
        Err(error) => return Err(error),
    };
    if whole && log.names()?.iter().all(|name| *name == first) {
        return Ok(None);
    }
    let error = Error::new(Kind::Damaged, format!("{} is missing, and the log holds records", INFO))
        .fix("put store.json back from a copy; every record rests on its bytes");
    Ok(Some(error))
}

fn build(folder: &Folder, init: &InitOptions, source: &Source) -> Result<()> {
    let moment = (source.moment)();
    let info = Info {
        format: FORMAT,
        store_id: store_id(source)?,
        created_at: moment.wall,
        shared: init.shared,
        testing: init.testing,
    };
    let bytes = info.encode();
    let mode = folder.access.file();
    for name in FOLDERS {
        folder.make_folder(name)?;
    }
    make_blob_folders(&folder.folder_made("blobs")?)?;
    let ignore = if init.git { IGNORE_DERIVED } else { IGNORE_ALL };
    folder.put(".gitignore", ignore.as_bytes(), mode)?;
    if init.git {
        folder.put(".gitattributes", ATTRIBUTES.as_bytes(), mode)?;
    }
    let hash = Hash::of(&bytes);
    let events = [Event::SegmentOpened { segment: 1, store: info.store_id.clone(), last: hash }];
    let draft = Draft { seq: 1, at: moment.wall, op: None, cmd: "init", events: &events, prev: hash };
    let (record, line) = record::encode(&draft)?;
    let log = folder.folder_made("log")?;
    log.put(&segment_name(1), &line, mode)?;
    folder.unlink(super::head::HEAD)?;
    let mut head = HeadFile::open(folder, &info.store_id)?;
    let place = Place::start(hash).after(&record, line.len() as u64);
    let synced = moment.boottime_ms;
    head.write(Head::at(&place, &info.store_id, folder.device(), &moment.boot_id, synced), folder)?;
    head.sync(folder)?;
    for name in FOLDERS {
        folder.folder_made(name)?.sync()?;
    }
    folder.sync()?;
    folder.put(INFO, &bytes, mode)
}

fn store_id(source: &Source) -> Result<String> {
    let mut bytes = [0u8; 32];
    let drawn = (source.random)(&mut bytes);
    drawn.ok_or_else(|| Error::new(Kind::Io, "the system gave no random bytes"))?;
    Ok(base32(&bytes, NONCE_LENGTH))
}

fn make_blob_folders(blobs: &Folder) -> Result<()> {
    // All are made before the first is synced: one commit of the file system's journal carries them all.
    for number in 0..=255u8 {
        blobs.make_folder(&format!("{number:02x}"))?;
    }
    for number in 0..=255u8 {
        blobs.folder_made(&format!("{number:02x}"))?.sync()?;
    }
    blobs.sync()
}

/// The file systems known to keep locks and syncs, by magic number.
#[cfg(target_os = "linux")]
const KNOWN: [(u64, &str); 8] = [
    (0xef53, "ext"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlay"),
];

/// Names of others that people have, so that the refusal can name them.
#[cfg(target_os = "linux")]
const OTHERS: [(u64, &str); 10] = [
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x517b, "smb"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x5346_544e, "ntfs"),
    (0x00c3_6400, "ceph"),
];

/// Refuses a file system that is not on the list.
#[cfg(target_os = "linux")]
pub(super) fn known_file_system(folder: &Folder) -> Result<()> {
    // The kernel's word is signed on some machines: only its lower half is the number.
    let magic = folder.file_system()? & 0xffff_ffff;
    if KNOWN.iter().any(|(known, _)| *known == magic) {
        return Ok(());
    }
    let name = OTHERS.iter().find(|(other, _)| *other == magic);
    let name = name.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).to_owned());
    let known: Vec<&str> = KNOWN.iter().map(|(_, name)| *name).collect();
    let message = format!("{} is on a file system ({name}) not known to keep locks", folder.path().display());
    Err(Error::new(Kind::UnsupportedFileSystem, message).because(format!("known: {}", known.join(", "))))
}

/// Elsewhere only apfs is met in practice; the lock's self-check stands guard.
#[cfg(not(target_os = "linux"))]
pub(super) fn known_file_system(_: &Folder) -> Result<()> {
    Ok(())
}
