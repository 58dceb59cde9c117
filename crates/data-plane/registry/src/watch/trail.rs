//! The path of a file: the folders in which a change can redirect it, and the names in them that
//! matter.
//!
//! Folders are watched instead of files, because a save often replaces the old file by a new one.
//! Where the path goes through links, the folders of the links count as well: a mounted set of
//! files is often exchanged in one step, by replacing a link.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// Largest number of links that are followed, as in the system.
const LINKS_MAX: usize = 40;

/// The places to watch for changes of one or more files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Trail {
    /// Folders to watch; each exists, and none is reached through a link.
    pub(super) folders: BTreeSet<PathBuf>,
    /// The names that matter in the folders, and the folders themselves.
    pub(super) names: HashSet<PathBuf>,
}

/// One step of a path.
#[derive(Debug)]
enum Step {
    Up,
    Down(OsString),
}

impl Trail {
    /// The way to each of `paths`, as far as it exists.
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let mut trail = Self::default();
        for path in paths {
            trail.follow(path);
        }
        trail.names.extend(trail.folders.iter().cloned());
        trail
    }

    fn follow(&mut self, path: &Path) {
        // This fails for the empty path alone, and no file has that.
        let Ok(path) = std::path::absolute(path) else { return };
        let mut here = PathBuf::from("/");
        let mut ahead: VecDeque<Step> = steps(&path).collect();
        let mut links = 0;
        while let Some(step) = ahead.pop_front() {
            let Step::Down(name) = step else {
                here.pop();
                continue;
            };
            let entry = here.join(&name);
            let Ok(metadata) = fs_err::symlink_metadata(&entry) else {
                // A missing entry may be created later.
                return self.mark(here, entry);
            };
            if metadata.is_symlink() && links < LINKS_MAX {
                let Ok(target) = fs_err::read_link(&entry) else { return self.mark(here, entry) };
                links += 1;
                self.mark(here.clone(), entry);
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for step in steps(&target).rev() {
                    ahead.push_front(step);
                }
            } else if metadata.is_dir() && !ahead.is_empty() {
                if ahead.len() == 1 {
                    // The folder of the file can be replaced as a whole.
                    self.mark(here.clone(), entry.clone());
                }
                here = entry;
            } else {
                return self.mark(here, entry);
            }
        }
    }

    fn mark(&mut self, folder: PathBuf, entry: PathBuf) {
        self.folders.insert(folder);
        self.names.insert(entry);
    }
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::ParentDir => Some(Step::Up),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The folders and names of one path, relative to `root`.
    fn trail(root: &Path, path: &str) -> (Vec<String>, Vec<String>) {
        let trail = Trail::of(&[root.join(path)]);
        let inside = |path: &PathBuf| {
            let path = path.strip_prefix(root).ok()?;
            Some(path.to_str().unwrap().to_owned())
        };
        let mut names: Vec<String> = trail.names.iter().filter_map(inside).collect();
        names.sort();
        (trail.folders.iter().filter_map(inside).collect(), names)
    }

    fn root() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        (dir, root)
    }

    /// E123, E125: the folder is watched, with or without the file, and so is the folder's own
    /// place.
    #[test]
    fn e125_a_file_is_watched_through_its_folder() {
        let (_dir, root) = root();
        fs_err::create_dir_all(root.join("a/b")).unwrap();
        let expected = (vec!["a", "a/b"], vec!["a", "a/b", "a/b/mcp.json"]);
        let (folders, names) = trail(&root, "a/b/mcp.json");
        assert_eq!(
            (folders, names),
            (
                expected.0.iter().map(ToString::to_string).collect(),
                expected.1.iter().map(ToString::to_string).collect()
            )
        );
        fs_err::write(root.join("a/b/mcp.json"), "").unwrap();
        let (folders, _) = trail(&root, "a/./b/../b/mcp.json");
        assert_eq!(folders, ["a", "a/b"]);
    }

    /// E123: if a path does not exist yet, a change of its next missing step counts.
    #[test]
    fn e123_a_missing_folder_is_awaited_in_its_parent_folder() {
        let (_dir, root) = root();
        fs_err::create_dir(root.join("a")).unwrap();
        assert_eq!(
            trail(&root, "a/b/c/mcp.json"),
            (vec!["a".into()], vec!["a".into(), "a/b".into()])
        );
        fs_err::write(root.join("a/b"), "").unwrap();
        assert_eq!(trail(&root, "a/b/c/mcp.json").1, ["a", "a/b"]);
    }

    /// E125: each link on the way can be exchanged, and so can its target.
    #[test]
    fn e125_links_are_watched_in_their_own_folders() {
        let (_dir, root) = root();
        fs_err::create_dir_all(root.join("conf/..v1")).unwrap();
        fs_err::write(root.join("conf/..v1/mcp.json"), "").unwrap();
        symlink("..v1", root.join("conf/..data")).unwrap();
        symlink("..data/mcp.json", root.join("conf/mcp.json")).unwrap();
        symlink(root.join("conf"), root.join("link")).unwrap();
        let (folders, names) = trail(&root, "link/mcp.json");
        assert_eq!(folders, ["", "conf", "conf/..v1"]);
        for name in ["link", "conf/mcp.json", "conf/..data", "conf/..v1/mcp.json"] {
            assert!(names.iter().any(|other| other == name), "{name} in {names:?}");
        }
    }

    /// Following a link to itself ends, as it does in the system.
    #[test]
    fn following_a_loop_of_links_ends() {
        let (_dir, root) = root();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert_eq!(trail(&root, "a").0, [""]);
    }
}
