//! Files of one run's folder copied into another's.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::io_error;
use crate::folder::{self, Opened};
use crate::snapshot::{FileCopy, copy_out};
use crate::{Folder, Limits, ShareError, Snapshot};

/// How deep a folder may be that is removed: agents make deeper ones than a stack holds.
const REMOVED_DEPTH: usize = 256;
/// The most names of one folder that is removed.
const REMOVED_NAMES: usize = 1_000_000;
/// Of new files and folders: the daemon's own, and read by whoever the agent runs as.
const FILE: Mode = Mode::from_raw_mode(0o644);
const FOLDER: Mode = Mode::from_raw_mode(0o755);

/// Where something is copied to.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The folder of a run.
    pub folder: &'a Folder,
    /// The path within it, below which the files come. Links on it are refused.
    pub path: &'a str,
    /// Whether what is there is removed before.
    pub is_emptied: bool,
    /// Whether files have the paths there that they have in their own folder; else a file has its
    /// name, and what is in a folder its path within that.
    pub keeps_paths: bool,
}

/// Copies files and folders of `from` as they are at one time, and puts them below the
/// destination. What is there under the same names is replaced; nothing is written through a link.
pub(crate) fn transfer(
    from: &Folder,
    paths: &[&str],
    to: Destination<'_>,
    limits: &Limits,
    temporary: &Path,
) -> Result<Vec<Snapshot>, ShareError> {
    let within = folder::clean(to.path)?;
    let (mut left, mut all) = (*limits, Vec::with_capacity(paths.len()));
    for path in paths {
        let place = match to.keeps_paths {
            true => place(from, path, &within)?,
            false => within.clone(),
        };
        let (snapshot, copies) = copy_out(from, path, &left, temporary)?;
        left.share_bytes = left.share_bytes.saturating_sub(snapshot.total_size);
        left.files = left.files.saturating_sub(snapshot.files.len());
        all.push((place, snapshot, copies));
    }
    if to.is_emptied {
        empty(to.folder, &within)?;
    }
    let mut snapshots = Vec::with_capacity(all.len());
    for (place, snapshot, copies) in all {
        let base = folder_at(to.folder.fd(), &place, &place)?;
        let by_hash: HashMap<_, _> = copies.iter().map(|copy| (copy.hash, copy)).collect();
        for file in &snapshot.files {
            put(&base, &place, &file.path, by_hash[&file.hash])?;
        }
        snapshots.push(snapshot);
    }
    Ok(snapshots)
}

/// Where something comes that keeps its path below another.
fn place(from: &Folder, path: &str, within: &str) -> Result<String, ShareError> {
    let path = folder::clean(path)?;
    let own = match from.at(&path)? {
        Opened::Folder(_) => path.as_str(),
        Opened::File(..) => path.rsplit_once('/').map_or(".", |(above, _)| above),
    };
    Ok(match own {
        "." => within.to_owned(),
        own => format!("{within}/{own}"),
    })
}

/// Writes one file below a folder.
fn put(base: &OwnedFd, within: &str, path: &str, copy: &FileCopy) -> Result<(), ShareError> {
    let shown = format!("{within}/{path}");
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    let folder = folder_at(base.as_fd(), above, &shown)?;
    match fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR) => return Err(ShareError::NotAFile { path: shown }),
        Err(error) => return Err(io_error("replace a file")(error.into())),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let written = fs::openat2(&folder, name, flags, FILE, within_alone());
    let mut written = File::from(written.map_err(|error| refused(error, &shown))?);
    let copied =
        fs_err::File::open(&copy.at).and_then(|mut from| io::copy(&mut from, &mut written));
    copied.map(drop).map_err(io_error("copy a file"))
}

/// The folder at `path`, each part of which is made if it is not there.
fn folder_at(from: BorrowedFd<'_>, path: &str, shown: &str) -> Result<OwnedFd, ShareError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |at: BorrowedFd<'_>, name: &str| {
        let opened = fs::openat2(at, name, flags, Mode::empty(), within_alone());
        opened.map_err(|error| refused(error, shown))
    };
    let mut at = open(from, ".")?;
    for part in path.split('/').filter(|part| *part != ".") {
        match fs::mkdirat(&at, part, FOLDER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(refused(error, shown)),
        }
        at = open(at.as_fd(), part)?;
    }
    Ok(at)
}

/// Removes what is at a path of a folder; the folder itself stays, whatever the path.
fn empty(folder: &Folder, path: &str) -> Result<(), ShareError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let at = match fs::openat2(folder.fd(), path, flags, Mode::empty(), within_alone()) {
        Ok(at) => at,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(refused(error, path)),
    };
    empty_all(&at, path, 0)
}

fn empty_all(folder: &OwnedFd, path: &str, depth: usize) -> Result<(), ShareError> {
    let failed = |error: io::Error| io_error("empty a folder")(error);
    let names = folder::names(folder, REMOVED_NAMES).map_err(failed)?;
    let Some(names) = names.filter(|_| depth < REMOVED_DEPTH) else {
        return Err(ShareError::Outside { path: path.to_owned() });
    };
    for name in names {
        match fs::unlinkat(folder, &name[..], AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            // What systems say of a folder.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inner = fs::openat2(folder, &name[..], flags, Mode::empty(), within_alone());
        empty_all(&inner.map_err(|error| refused(error, path))?, path, depth + 1)?;
        fs::unlinkat(folder, &name[..], AtFlags::REMOVEDIR)
            .map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// Nothing is followed out of a folder, nor through any link.
fn within_alone() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS
}

fn refused(error: Errno, path: &str) -> ShareError {
    let path = path.to_owned();
    match error {
        Errno::XDEV | Errno::LOOP => ShareError::Outside { path },
        Errno::NOTDIR => ShareError::NotAFile { path },
        Errno::ACCESS | Errno::PERM => ShareError::Unreadable { path },
        Errno::NOSYS => ShareError::Unsupported,
        error => io_error("write into a folder")(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use fs_err as fs;
    use tempfile::TempDir;

    use super::*;

    struct World {
        dir: TempDir,
        from: Folder,
        to: Folder,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for name in ["from/out/deep", "to", "temporary", "outside"] {
                fs::create_dir_all(dir.path().join(name)).unwrap();
            }
            fs::write(dir.path().join("from/out/a.txt"), "a").unwrap();
            fs::write(dir.path().join("from/out/deep/b.txt"), "bb").unwrap();
            let open = |name: &str| Folder::open(&dir.path().join(name)).unwrap();
            let (from, to) = (open("from"), open("to"));
            Self { dir, from, to }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn put(&self, path: &str, is_emptied: bool) -> Result<Snapshot, ShareError> {
            let to = Destination { folder: &self.to, path, is_emptied, keeps_paths: false };
            self.all(&["out"], to).map(|mut all| all.remove(0))
        }

        fn all(&self, paths: &[&str], to: Destination<'_>) -> Result<Vec<Snapshot>, ShareError> {
            transfer(&self.from, paths, to, &Limits::default(), &self.path("temporary"))
        }
    }

    #[test]
    fn files_are_put_in_place_of_others() {
        let world = World::new();
        let snapshot = world.put("in/here", false).unwrap();
        assert_eq!((snapshot.files.len(), snapshot.total_size), (2, 3));
        let read = |name: &str| fs::read_to_string(world.path(name)).unwrap();
        assert_eq!(read("to/in/here/a.txt"), "a");
        assert_eq!(read("to/in/here/deep/b.txt"), "bb");
        fs::write(world.path("to/in/here/a.txt"), "changed").unwrap();
        fs::write(world.path("to/in/here/old.txt"), "old").unwrap();
        world.put("in/here", false).unwrap();
        assert_eq!(read("to/in/here/a.txt"), "a");
        assert_eq!(read("to/in/here/old.txt"), "old");
        world.put("in/here", true).unwrap();
        assert!(!world.path("to/in/here/old.txt").exists());
        assert_eq!(fs::read_dir(world.path("temporary")).unwrap().count(), 0, "nothing is left");
    }

    /// S29: nothing is written, or removed, through a link or outside.
    #[test]
    fn s29_nothing_is_put_outside() {
        let world = World::new();
        fs::write(world.path("outside/a.txt"), "theirs").unwrap();
        symlink(world.path("outside"), world.path("to/link")).unwrap();
        fs::create_dir(world.path("to/real")).unwrap();
        symlink(world.path("outside"), world.path("to/real/deep")).unwrap();
        symlink(world.path("outside/a.txt"), world.path("to/real/a.txt")).unwrap();
        for path in ["..", "/etc", "a/../../b", "", "link", "link/x"] {
            for is_emptied in [false, true] {
                assert!(world.put(path, is_emptied).is_err(), "{path}");
            }
        }
        assert!(world.put("real", false).is_err(), "`real/deep` is a link");
        assert!(!fs::symlink_metadata(world.path("to/real/a.txt")).unwrap().is_symlink());
        world.put("real", true).unwrap();
        let outside: Vec<_> = fs::read_dir(world.path("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1);
        assert_eq!(fs::read_to_string(world.path("outside/a.txt")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(world.path("to/real/deep/b.txt")).unwrap(), "bb");
    }

    #[test]
    fn the_whole_folder_can_be_emptied_and_stays() {
        let world = World::new();
        fs::create_dir_all(world.path("to/x/y/z")).unwrap();
        world.put(".", true).unwrap();
        assert!(!world.path("to/x").exists());
        assert!(world.path("to/a.txt").exists());
    }

    #[test]
    fn several_keep_their_paths_or_nothing_happens() {
        let world = World::new();
        let to = |is_emptied| Destination {
            folder: &world.to,
            path: "here",
            is_emptied,
            keeps_paths: true,
        };
        world.all(&["out/a.txt", "out/deep"], to(false)).unwrap();
        for name in ["to/here/out/a.txt", "to/here/out/deep/b.txt"] {
            assert!(world.path(name).exists(), "{name}");
        }
        assert!(world.all(&["out/deep", "out/nothing"], to(true)).is_err());
        assert!(world.path("to/here/out/a.txt").exists(), "it was emptied for nothing");
        world.all(&["."], to(true)).unwrap();
        assert!(world.path("to/here/out/deep/b.txt").exists());
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_not_replaced() {
        let world = World::new();
        fs::create_dir_all(world.path("to/in/a.txt")).unwrap();
        let refused = world.put("in", false);
        assert!(matches!(refused, Err(ShareError::NotAFile { .. })), "{refused:?}");
    }
}
