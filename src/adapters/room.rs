//! What a child that answers finds around itself: empty folders of its own, and a few variables by name. Owns
//! the folders and takes them away with all that the child left in them. Nothing of the project is in here.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::time::Time;

/// Variables that a child may have beside the one that holds its key. None of `nf` is among them.
pub const ALLOWED: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TERM", "HOME"];

/// How often another name is tried for a folder.
const TRIES: u64 = 10_000;

/// What the rooms of all children have in common.
pub struct House<'a> {
    /// The variables of [`ALLOWED`] that are set here.
    pub variables: BTreeMap<String, String>,
    /// The variable that holds the key, and its value.
    pub key: Option<(String, String)>,
    /// Whether a child gets an empty `HOME` of its own in place of the user's.
    pub isolate: bool,
    /// Where folders are made that are soon gone again.
    pub temporary: PathBuf,
    /// The project's folder: no child's folder is made in it.
    pub project: Option<PathBuf>,
    /// The program that ends a child with the process that started it: this one. Without it a child that is
    /// left alone ends by itself only.
    pub keeper: Option<PathBuf>,
    /// Whether what a child prints on standard error goes to this program's own; else it is dropped.
    pub show_errors: bool,
    /// The wall clock.
    pub now: &'a (dyn Fn() -> Time + Sync),
}

impl House<'_> {
    /// The folders that programs are looked for in.
    pub fn path(&self) -> &str {
        self.variables.get("PATH").map_or("", String::as_str)
    }

    /// An empty room for one child.
    ///
    /// # Errors
    /// Why none could be made, in words.
    pub fn room(&self) -> Result<Room, String> {
        let temporary = self.temporary.canonicalize().map_err(|error| told(&self.temporary, &error))?;
        let project = self.project.as_ref().and_then(|project| project.canonicalize().ok());
        if project.is_some_and(|project| temporary.starts_with(&project)) {
            let shown = temporary.display();
            return Err(format!("{shown} lies in the project, which a child must not see: set TMPDIR"));
        }
        Room::new(&temporary, self)
    }
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The folders and variables of one child. They are gone when this is dropped.
pub struct Room {
    root: PathBuf,
    /// Its working folder, empty.
    pub folder: PathBuf,
    /// A folder for what its adapter exchanges with it; not its working folder.
    pub side: PathBuf,
    /// All variables that it gets.
    pub variables: BTreeMap<String, String>,
}

impl Room {
    fn new(temporary: &Path, house: &House<'_>) -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700);
        let own = std::process::id();
        let root = (0..TRIES).find_map(|_| {
            let root = temporary.join(format!("nf-work-{own}-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
            match private.create(&root) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| root).map_err(|error| told(temporary, &error))),
            }
        });
        let root = root.unwrap_or_else(|| Err(format!("{}: no name is free", temporary.display())))?;
        let mut variables = house.variables.clone();
        variables.retain(|name, _| ALLOWED.contains(&name.as_str()));
        let room = |name: &str| root.join(name);
        if house.isolate {
            variables.insert("HOME".to_owned(), room("home").display().to_string());
        }
        variables.extend(house.key.clone());
        let made = Self { folder: room("empty"), side: room("side"), variables, root: root.clone() };
        for name in ["empty", "side", "home"] {
            private.create(room(name)).map_err(|error| told(&root, &error))?;
        }
        Ok(made)
    }

    /// The names of the variables, in order.
    pub fn names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.root).is_err() {
            // A child may have taken the rights away from folders that it made.
            open_up(&self.root);
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// Gives the owner all rights to a folder and those below; links are not followed.
fn open_up(folder: &Path) {
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A house for tests: the tests' own PATH, and no keeper.
    pub fn house() -> House<'static> {
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        House {
            variables: [("PATH".to_owned(), path), ("HOME".to_owned(), "/no/home".to_owned())].into(),
            key: None,
            isolate: false,
            temporary: std::env::temp_dir(),
            project: None,
            keeper: None,
            show_errors: false,
            now: &|| Time::from_micros(0),
        }
    }

    #[test]
    fn a_room_is_empty_private_and_gone_afterwards() {
        let mut house = house();
        house.variables.insert("NF_SESSION".to_owned(), "s-1".to_owned());
        house.key = Some(("SOME_KEY".to_owned(), "k".to_owned()));
        let room = house.room().unwrap();
        assert_eq!(room.names(), ["HOME", "PATH", "SOME_KEY"]);
        assert_eq!(room.variables["HOME"], "/no/home");
        assert_eq!(std::fs::read_dir(&room.folder).unwrap().count(), 0);
        assert_eq!(std::fs::metadata(&room.root).unwrap().permissions().mode() & 0o777, 0o700);
        let root = room.root.clone();
        std::fs::create_dir_all(room.folder.join("a/b")).unwrap();
        std::fs::set_permissions(room.folder.join("a"), std::fs::Permissions::from_mode(0o000)).unwrap();
        drop(room);
        assert!(!root.exists());
        house.isolate = true;
        let room = house.room().unwrap();
        assert!(room.variables["HOME"].starts_with(root.parent().unwrap().to_str().unwrap()));
        assert_eq!(std::fs::read_dir(&room.variables["HOME"]).unwrap().count(), 0);
    }

    #[test]
    fn no_room_is_made_in_the_project() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join("tmp")).unwrap();
        let inside = project.path().join("tmp");
        let house = House { temporary: inside.clone(), project: Some(project.path().to_owned()), ..house() };
        assert!(house.room().err().unwrap().contains("set TMPDIR"));
        let other = House { temporary: inside, ..tests::house() };
        assert!(other.room().is_ok());
    }
}
