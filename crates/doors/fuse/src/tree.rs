//! Numbers of files and directories, and their paths in the namespace.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use fuser::{FileAttr, FileType, INodeNo};
use narthex_vfs::{Node, Place, ROOT, name};

use crate::sizes::{UNKNOWN, sized};

/// One component that is shown for a path of the namespace.
#[derive(Debug, Clone)]
pub(crate) struct Inode {
    /// The path of the namespace.
    pub(crate) path: Arc<str>,
    pub(crate) place: Arc<Place>,
}

impl Inode {
    pub(crate) fn is_directory(&self) -> bool {
        match self.place.as_ref() {
            Place::Mounts => true,
            Place::In(_, node) => node.is_directory(),
        }
    }

    pub(crate) fn node(&self) -> Option<&Node> {
        match self.place.as_ref() {
            Place::Mounts => None,
            Place::In(_, node) => Some(node),
        }
    }
}

/// All inodes that the kernel knows of.
#[derive(Debug)]
pub(crate) struct Tree {
    known: Mutex<HashMap<u64, (Inode, u64)>>,
    began: SystemTime,
    uid: u32,
    gid: u32,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Inode { path: ROOT.into(), place: Arc::new(Place::Mounts) };
        Self {
            known: Mutex::new(HashMap::from([(INodeNo::ROOT.0, (root, 1))])),
            began: SystemTime::now(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    pub(crate) fn get(&self, ino: INodeNo) -> Option<Inode> {
        self.known().get(&ino.0).map(|(inode, _)| inode.clone())
    }

    /// The inode of a path, one time more; forgotten as often as it was looked up.
    pub(crate) fn look_up(&self, path: String, place: Place) -> (INodeNo, Inode) {
        let mut known = self.known();
        let mut ino = number(&path);
        loop {
            match known.get_mut(&ino) {
                Some((inode, times)) if *inode.path == *path => {
                    *times += 1;
                    return (INodeNo(ino), inode.clone());
                }
                // Two paths of one number: the second one has the next.
                Some(_) => ino = ino.wrapping_add(1).max(2),
                None => {
                    let inode = Inode { path: path.into(), place: Arc::new(place) };
                    known.insert(ino, (inode.clone(), 1));
                    return (INodeNo(ino), inode);
                }
            }
        }
    }

    pub(crate) fn forget(&self, ino: INodeNo, times: u64) {
        let mut known = self.known();
        let Some((_, left)) = known.get_mut(&ino.0).filter(|_| ino != INodeNo::ROOT) else {
            return;
        };
        *left = left.saturating_sub(times);
        if *left == 0 {
            known.remove(&ino.0);
        }
    }

    /// The attributes for `stat`. No size is known before a file is open.
    pub(crate) fn attributes(&self, ino: INodeNo, inode: &Inode) -> FileAttr {
        let is_directory = inode.is_directory();
        let is_writable = inode.node().is_some_and(Node::is_writable);
        let attributes = FileAttr {
            ino,
            size: 0,
            blocks: 0,
            atime: self.began,
            mtime: self.began,
            ctime: self.began,
            crtime: self.began,
            kind: kind(is_directory),
            perm: match (is_directory, is_writable) {
                (true, _) => 0o500,
                (false, true) => 0o600,
                (false, false) => 0o400,
            },
            nlink: if is_directory { 2 } else { 1 },
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        if is_directory { attributes } else { sized(attributes, UNKNOWN) }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, (Inode, u64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The type that a directory shows.
pub(crate) fn kind(is_directory: bool) -> FileType {
    if is_directory { FileType::Directory } else { FileType::RegularFile }
}

/// The number of a path: the same each time, and neither 0 nor the root's.
pub(crate) fn number(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish().max(2)
}

/// The path of the namespace for a file of a directory, by its name there.
pub(crate) fn child(directory: &Inode, file: &str) -> Option<(String, Place)> {
    let path = child_path(directory, file);
    let place = Place::parse(&path).ok()?;
    Some((path, place))
}

/// The path of a file in a directory, whether or not it leads anywhere.
pub(crate) fn child_path(directory: &Inode, file: &str) -> String {
    match directory.place.as_ref() {
        // A file's name is decoded once; a URI is used unchanged.
        Place::In(mount, Node::List(narthex_vfs::Kind::Resources)) => {
            format!("{}/resources/{}", mount.path(), name::decoded(file))
        }
        _ => format!("{}/{file}", directory.path),
    }
}
