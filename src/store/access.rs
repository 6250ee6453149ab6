//! Who may own and write the files of a store. Looks at what `fstat` said, changes nothing.

use std::path::Path;

use rustix::fs::{Mode, Stat};

use crate::error::{Error, Kind, Result};

/// Who may own and write what the store is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// The user who asks.
    uid: u32,
    /// Whether the store belongs to a group (`init --shared`).
    pub shared: bool,
    /// Whether the store's own folder shuts everybody else out: then the modes of what is in it grant
    /// nobody anything, and files that the user put there under a loose umask are no reason to refuse.
    pub private: bool,
}

impl Access {
    /// The access of this process's user to a store whose folder was not looked at yet.
    pub fn new(shared: bool) -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), shared, private: false }
    }

    /// The mode of a folder.
    pub fn folder(self) -> u32 {
        if self.shared { 0o2770 } else { 0o700 }
    }

    /// The mode of a file that is written again.
    pub fn file(self) -> u32 {
        if self.shared { 0o660 } else { 0o600 }
    }

    /// The mode of a file that is written once.
    pub fn frozen(self) -> u32 {
        if self.shared { 0o440 } else { 0o400 }
    }

    /// Refuses what another user owns, or what others can write though the store is not shared.
    pub fn check(self, stat: &Stat, path: &Path) -> Result<()> {
        match self.objection(stat) {
            None => Ok(()),
            Some(why) => {
                let error = Error::new(Kind::ForeignStore, format!("{} {why}", path.display()));
                let others = why.contains("written");
                Err(if others { error.fix(format!("chmod go-w {}", path.display())) } else { error })
            }
        }
    }

    /// What is wrong with owner or mode, in words that follow a path.
    pub fn objection(self, stat: &Stat) -> Option<String> {
        let own = stat.st_uid == self.uid;
        let mode = Mode::from_raw_mode(stat.st_mode);
        let ours = own || (self.shared && in_group(stat.st_gid));
        if !ours {
            return Some(format!("belongs to user {}, not to you", stat.st_uid));
        }
        if self.private {
            return None;
        }
        if mode.contains(Mode::WOTH) {
            return Some("can be written by everybody".to_owned());
        }
        if mode.contains(Mode::WGRP) && !self.shared {
            return Some("can be written by its group, and the store is not shared".to_owned());
        }
        None
    }
}

fn in_group(gid: u32) -> bool {
    let own = rustix::process::getegid().as_raw() == gid;
    own || rustix::process::getgroups().is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == gid))
}
