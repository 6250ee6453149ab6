//! Files inside the store's folder: opened relative to a folder that is held open, never through a
//! symbolic link, and only where owner and mode are right. Knows no record and decides no protocol.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

pub(super) use super::access::Access;
use crate::error::{Error, Kind, Result};

/// A file with what `fstat` said of it when it was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// The file.
    pub file: File,
    /// Its length in bytes at that moment.
    pub size: u64,
    /// Everything else.
    pub stat: Stat,
}

/// How a file that exists is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// For reading.
    Read,
    /// For reading and writing in place.
    Write,
    /// For reading and appending.
    Append,
    /// For reading and writing, made empty where it is missing.
    Make,
}

/// A folder of the store, held open.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// Who may own and write what is in it.
    pub access: Access,
    /// What `fstat` said of it.
    pub stat: Stat,
}

const STRICT: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

impl Folder {
    /// Opens the store's own folder; owner and mode are not looked at yet. `None` where it is missing.
    pub fn root(path: &Path) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | STRICT;
        match retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) {
            Ok(fd) => {
                let access = Access::new(false);
                Ok(Some(Self::of(fd, path.to_owned(), access)?))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refused(path, errno)),
        }
    }

    fn of(fd: OwnedFd, path: PathBuf, access: Access) -> Result<Self> {
        let stat = rustix::fs::fstat(&fd).map_err(|errno| failed("stat", &path, errno))?;
        Ok(Self { fd, path, access, stat })
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a member, for messages.
    pub fn member(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a folder inside; `None` where it is missing.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let path = self.member(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | STRICT;
        let opened = retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()));
        match opened {
            Ok(fd) => {
                let folder = Self::of(fd, path, self.access)?;
                self.access.check(&folder.stat, folder.path())?;
                Ok(Some(folder))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refused(&path, errno)),
        }
    }

    /// Opens a folder inside, made and synced where it is missing (git keeps no empty folders).
    pub fn folder_made(&self, name: &str) -> Result<Self> {
        let mut made = self.folders_made([name.to_owned()])?;
        made.remove(name).ok_or_else(|| self.vanished(name))
    }

    /// Opens folders inside, by name; those that are missing are made, and synced once all are there.
    pub fn folders_made(&self, names: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, Self>> {
        let (mut folders, mut missing) = (BTreeMap::new(), Vec::new());
        for name in names {
            match self.folder(&name)? {
                Some(folder) => drop(folders.insert(name, folder)),
                None => missing.push(name),
            }
        }
        for name in &missing {
            self.make_folder(name)?;
        }
        if !missing.is_empty() {
            self.sync()?;
        }
        for name in missing {
            let folder = self.folder(&name)?.ok_or_else(|| self.vanished(&name))?;
            folders.insert(name, folder);
        }
        Ok(folders)
    }

    fn vanished(&self, name: &str) -> Error {
        Error::new(Kind::Io, format!("{} vanished", self.member(name).display()))
    }

    /// Makes a folder inside; one that exists is left as it is.
    pub fn make_folder(&self, name: &str) -> Result<()> {
        let mode = Mode::from_raw_mode(self.access.folder());
        match rustix::fs::mkdirat(&self.fd, name, mode) {
            Ok(()) if self.access.shared => {
                // The umask took the group's bits away.
                rustix::fs::chmodat(&self.fd, name, mode, AtFlags::empty())
                    .map_err(|errno| failed("chmod", &self.member(name), errno))
            }
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed("mkdir", &self.member(name), errno)),
        }
    }

    /// Opens a file that exists, or with [`Want::Make`] makes it; `None` where it is missing.
    pub fn open(&self, name: &str, want: Want) -> Result<Option<Opened>> {
        let flags = match want {
            Want::Read => OFlags::RDONLY,
            Want::Write => OFlags::RDWR,
            Want::Append => OFlags::RDWR | OFlags::APPEND,
            Want::Make => OFlags::RDWR | OFlags::CREATE,
        };
        let mode = Mode::from_raw_mode(self.access.file());
        let path = self.member(name);
        let fd = match retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags | STRICT, mode)) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if want != Want::Make => return Ok(None),
            Err(errno) => return Err(refused(&path, errno)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|errno| failed("stat", &path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::new(Kind::ForeignStore, format!("{} is not a plain file", path.display()))
                .fix("move it away, then nf doctor"));
        }
        self.access.check(&stat, &path)?;
        if want == Want::Make && self.access.shared && Mode::from_raw_mode(stat.st_mode) != mode {
            // The umask took the group's bits away; only the owner can give them back.
            let _ = rustix::fs::fchmod(&fd, mode);
        }
        Ok(Some(Opened { file: File::from(fd), size: stat.st_size as u64, stat }))
    }

    /// Makes a new file; `None` where the name is taken.
    pub fn create(&self, name: &str, mode: u32) -> Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | STRICT;
        let mode = Mode::from_raw_mode(mode);
        let path = self.member(name);
        let fd = match retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, mode)) {
            Ok(fd) => fd,
            Err(Errno::EXIST) => return Ok(None),
            Err(errno) => return Err(failed("create", &path, errno)),
        };
        if self.access.shared {
            rustix::fs::fchmod(&fd, mode).map_err(|errno| failed("chmod", &path, errno))?;
        }
        Ok(Some(File::from(fd)))
    }

    /// Makes a new file for a while; one that a dead writer left under this name is replaced.
    pub fn create_fresh(&self, name: &str, mode: u32) -> Result<File> {
        for _ in 0..3 {
            if let Some(file) = self.create(name, mode)? {
                return Ok(file);
            }
            self.unlink(name)?;
        }
        Err(Error::new(Kind::Io, format!("{} cannot be made anew", self.member(name).display())))
    }

    /// The whole of a small file; `None` where it is missing.
    ///
    /// # Errors
    /// It is longer than `limit`, or cannot be read.
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(opened) = self.open(name, Want::Read)? else { return Ok(None) };
        let path = self.member(name);
        if opened.size > limit {
            let message = format!("{} has {} bytes, more than {limit}", path.display(), opened.size);
            return Err(Error::new(Kind::TooLarge, message));
        }
        let mut bytes = vec![0; opened.size as usize];
        let read = read_at(&opened.file, &mut bytes, 0)
            .map_err(|error| Error::io(format!("read of {}", path.display()), &error))?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    /// Puts a whole small file in place, over what is there, and makes it durable with its name.
    pub fn put(&self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let fresh = format!("{name}.new");
        let file = self.create_fresh(&fresh, mode)?;
        write_at(&file, bytes, 0, &self.member(&fresh))?;
        sync_bytes(&file, &self.member(&fresh))?;
        self.rename(&fresh, self, name)?;
        self.sync()
    }

    /// What `lstat` says of a member; `None` where it is missing.
    pub fn stat_of(&self, name: &str) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed("stat", &self.member(name), errno)),
        }
    }

    /// Whether there is a member of this name, of any kind.
    pub fn has(&self, name: &str) -> Result<bool> {
        Ok(self.stat_of(name)?.is_some())
    }

    /// Renames a member into another folder, over what is there.
    pub fn rename(&self, name: &str, into: &Folder, new: &str) -> Result<()> {
        rustix::fs::renameat(&self.fd, name, &into.fd, new)
            .map_err(|errno| failed("rename to", &into.member(new), errno))
    }

    /// Renames a member into another folder; false where the new name is taken.
    pub fn rename_new(&self, name: &str, into: &Folder, new: &str) -> Result<bool> {
        match rustix::fs::renameat_with(&self.fd, name, &into.fd, new, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(errno) => return Err(failed("rename to", &into.member(new), errno)),
        }
        // A file system without that flag: a hard link is as exclusive.
        match rustix::fs::linkat(&self.fd, name, &into.fd, new, AtFlags::empty()) {
            Ok(()) => self.unlink(name).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(failed("link to", &into.member(new), errno)),
        }
    }

    /// Removes a file; one that is missing already is as good.
    pub fn unlink(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed("removal of", &self.member(name), errno)),
        }
    }

    /// Sets the mode of a member that is no link.
    pub fn chmod(&self, name: &str, mode: u32) -> Result<()> {
        rustix::fs::chmodat(&self.fd, name, Mode::from_raw_mode(mode), AtFlags::empty())
            .map_err(|errno| failed("chmod of", &self.member(name), errno))
    }

    /// Makes the names in the folder durable.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).map_err(|errno| failed("sync of", &self.path, errno))
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Result<Vec<String>> {
        let wrong = |errno| failed("listing of", &self.path, errno);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// How many members there are.
    pub fn count(&self) -> Result<u64> {
        let wrong = |errno| failed("listing of", &self.path, errno);
        let mut entries = rustix::fs::Dir::read_from(&self.fd).map_err(wrong)?;
        entries.try_fold(0, |count, entry| {
            let entry = entry.map_err(wrong)?;
            Ok(count + u64::from(entry.file_name() != c"." && entry.file_name() != c".."))
        })
    }

    /// Locks the folder itself for this process, as long as it is held open; false where another has it.
    pub fn lock_alone(&self) -> bool {
        rustix::fs::flock(&self.fd, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// The file system's magic number.
    #[cfg(target_os = "linux")]
    pub fn file_system(&self) -> Result<u64> {
        let stat = rustix::fs::fstatfs(&self.fd).map_err(|errno| failed("statfs of", &self.path, errno))?;
        Ok(stat.f_type as u64)
    }

    /// The number of the mount that it is seen through.
    #[cfg(target_os = "linux")]
    pub fn mount(&self) -> Result<u64> {
        let flags = rustix::fs::StatxFlags::MNT_ID;
        let stat = rustix::fs::statx(&self.fd, "", AtFlags::EMPTY_PATH, flags)
            .map_err(|errno| failed("statx of", &self.path, errno))?;
        Ok(stat.stx_mnt_id)
    }

    /// Elsewhere mounts have no numbers; the device stands for them.
    #[cfg(not(target_os = "linux"))]
    pub fn mount(&self) -> Result<u64> {
        Ok(self.stat.st_dev as u64)
    }

    /// The device it is on.
    pub fn device(&self) -> u64 {
        self.stat.st_dev
    }
}

/// Syncs the bytes of a file. Every error counts, an interruption too: the caller never tries again.
pub(super) fn sync_bytes(file: &File, path: &Path) -> Result<()> {
    #[cfg(target_vendor = "apple")]
    let done = rustix::fs::fcntl_fullfsync(file);
    #[cfg(not(target_vendor = "apple"))]
    let done = rustix::fs::fdatasync(file);
    done.map_err(|errno| failed("sync of", path, errno))
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Writes all bytes at an offset; not for files opened to append.
pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64, path: &Path) -> Result<()> {
    file.write_all_at(bytes, offset)
        .map_err(|error| Error::io(format!("write of {}", path.display()), &error))
}

/// The length of a file in bytes.
pub(super) fn size(file: impl AsFd, path: &Path) -> Result<u64> {
    rustix::fs::fstat(file).map(|stat| stat.st_size as u64).map_err(|errno| failed("stat of", path, errno))
}

/// Cuts a file.
pub(super) fn truncate(file: &File, size: u64, path: &Path) -> Result<()> {
    retry_on_intr(|| rustix::fs::ftruncate(file, size)).map_err(|errno| failed("cutting of", path, errno))
}

pub(super) fn failed(what: &str, path: &Path, errno: Errno) -> Error {
    Error::io(format!("{what} {}", path.display()), &io::Error::from(errno))
}

/// An open that failed: a link, or something that is not what it should be, is said as such.
fn refused(path: &Path, errno: Errno) -> Error {
    let link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
    if link && matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::MLINK) {
        return Error::new(Kind::ForeignStore, format!("{} is a symbolic link", path.display()))
            .fix("remove the link and put the thing itself there");
    }
    failed("open of", path, errno)
}
