//! One process of a namespace: what it may open, and what it has open.

mod held;
mod kin;
mod lease;
mod reports;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use narthex_model::Pid;
use tokio::time::Instant;

use crate::{
    Code, Done, Entry, Failure, Kind, MountName, Node, Operation, Place, ROOT, Stat, VfsError,
    entry::entries,
    file::{Ended, File, closed, over},
    mounted::Mount,
    namespace::Shared,
    tools,
};

pub(crate) use self::kin::Kin;
pub use self::{held::Held, lease::Lease};

/// A process. Its descriptors are its own.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    kin: Kin,
    files: BTreeMap<u64, Arc<File>>,
    /// The lists that are being fetched for a directory, which has no descriptor.
    lists: BTreeMap<u64, Arc<File>>,
    next_list: u64,
    /// The last failure at each mount that it met one at.
    failures: BTreeMap<MountName, Failure>,
    has_ended: bool,
}

impl Process {
    pub(crate) fn new(pid: Pid, kin: Kin, shared: Arc<Shared>) -> Self {
        let state = State {
            kin,
            files: BTreeMap::new(),
            lists: BTreeMap::new(),
            next_list: 0,
            failures: BTreeMap::new(),
            has_ended: false,
        };
        Self { pid, shared, state: Mutex::new(state) }
    }

    /// The process's number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// From here on it may not open a mount; what it has open of it is of no use any more (S29).
    pub fn revoke(&self, name: &MountName) {
        let mut state = self.state();
        state.kin.allowed.remove(name);
        let open = state.files.values().chain(state.lists.values());
        let open = open.filter(|file| file.mount.name == *name);
        let open: Vec<_> = open.cloned().collect();
        drop(state);
        for file in open {
            file.end(Ended::Revoked);
        }
    }

    /// The mounts that it may open and that are there, in order.
    #[must_use]
    pub fn mounts(&self) -> Vec<MountName> {
        let allowed = self.state().kin.allowed.clone();
        allowed.into_iter().filter(|name| self.shared.mount(name).is_some()).collect()
    }

    /// Opens a path: the smallest number that is free. No server is asked.
    ///
    /// # Errors
    /// `NOT_FOUND` for what is not there or not known to it, `PERMISSION` for a mount of its own
    /// kin that it may not open, `IS_DIRECTORY` for [`ROOT`], `RESOURCE_EXHAUSTED` when it has as
    /// many open as it may, `DEVICE_DISCONNECTED` when it has ended.
    pub fn open(&self, path: &str) -> Result<u64, VfsError> {
        let began = Instant::now();
        let opened = self.find(path).and_then(|(mount, node)| self.opened(mount, node, path));
        self.observe((Operation::Open, path), (None, None), opened.as_ref().copied(), began);
        opened.map_err(|failure| VfsError::new(Operation::Open, path, failure))
    }

    fn opened(&self, mount: Arc<Mount>, node: Node, path: &str) -> Result<u64, Failure> {
        let mut state = self.state();
        if state.has_ended {
            return Err(over());
        }
        if state.files.len() >= self.shared.limits.files {
            let text = format!("a process has at most {} open", self.shared.limits.files);
            return Err(Failure::new(Code::ResourceExhausted, "limit_exceeded", text));
        }
        // Looked at again under the lock: what was revoked meanwhile is not opened.
        if !state.kin.allowed.contains(&mount.name) {
            return Err(not_allowed());
        }
        let known = match &node {
            Node::Root => Some(Bytes::from_static(br#"["tools","resources","prompts","ctl"]"#)),
            Node::Control => serde_json::to_vec(mount.name.control_files()).ok().map(Bytes::from),
            Node::Error => {
                let last = state.failures.get(&mount.name).map(Failure::to_json);
                Some(Bytes::from(last.unwrap_or_else(|| "null".to_owned()) + "\n"))
            }
            _ => None,
        };
        // From 3 on, as programs expect of what is no standard stream.
        let fd = (3..).find(|fd| !state.files.contains_key(fd)).unwrap_or(u64::MAX);
        let file = File::new(mount, node, path.to_owned(), known, self.shared.limits);
        state.files.insert(fd, Arc::new(file));
        Ok(fd)
    }

    /// Reads at most `length` bytes, or all for 0 and less, of what a descriptor has not given yet.
    /// A list or a resource is fetched by the first read.
    ///
    /// # Errors
    /// `INVALID` for a tool that was not written to; what the last write failed with; `DRIVER` for
    /// a number that is not open; `DEVICE_DISCONNECTED` for what is not mounted any more.
    pub async fn read(&self, fd: u64, length: i64) -> Result<Bytes, VfsError> {
        let began = Instant::now();
        let (file, path) = self.file(fd, Operation::Read)?;
        let read = file.read(length).await;
        let result = read.as_ref().map(|bytes| bytes.len() as u64);
        let most = Some(length).filter(|length| *length > 0);
        self.observe((Operation::Read, &path), (Some(fd), most), result, began);
        read.map_err(|failure| self.failed(Operation::Read, &file, failure))
    }

    /// Writes the arguments of a call, a JSON object, and waits until it is answered; then the
    /// result can be read. Gives the number of bytes.
    ///
    /// # Errors
    /// `INVALID` for what is read-only or no JSON object; `PERMISSION` where the call is not
    /// allowed, and whatever else it failed with; `DRIVER` for a number that is not open.
    pub async fn write(&self, fd: u64, bytes: Bytes) -> Result<usize, VfsError> {
        let began = Instant::now();
        let (file, path) = self.file(fd, Operation::Write)?;
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let observer = self.shared.observer.as_ref();
        let is_watched = observer.is_some_and(|observer| observer.is_watched());
        let written = file.write(bytes, is_watched).await;
        let result = written.as_ref().map(|written| written.size as u64);
        let is_tool_error = written.as_ref().is_ok_and(|written| written.is_tool_error);
        let done = self.done((Operation::Write, &path), (Some(fd), Some(size)), result, began);
        self.ended(Done { is_tool_error, ..done });
        let written = written.map(|written| written.size);
        written.map_err(|failure| self.failed(Operation::Write, &file, failure))
    }

    /// Gives a descriptor back; what is under way for it is given up (R-O11).
    ///
    /// # Errors
    /// `DRIVER` for a number that is not open (R-O10).
    pub fn close(&self, fd: u64) -> Result<(), VfsError> {
        let began = Instant::now();
        let file = self.state().files.remove(&fd);
        let path = file.as_ref().map_or_else(|| fd.to_string(), |file| file.path.clone());
        let closed = match file {
            Some(file) if file.end(Ended::Closed) => Ok(()),
            _ if self.state().has_ended => Err(over()),
            _ => Err(closed()),
        };
        self.observe(
            (Operation::Close, &path),
            (Some(fd), None),
            closed.as_ref().map(|()| 0),
            began,
        );
        closed.map_err(|failure| VfsError::new(Operation::Close, path, failure))
    }

    /// Returns the facts about a path, without asking a server: also for a tool that the server
    /// does not have.
    ///
    /// # Errors
    /// As [`Process::open`] fails for a path that the process may not open.
    pub fn stat(&self, path: &str) -> Result<Stat, VfsError> {
        let began = Instant::now();
        let found = match Place::parse(path) {
            Ok(Place::Mounts) => Ok(Stat {
                name: "/".to_owned(),
                device: ROOT.to_owned(),
                is_directory: true,
                is_writable: false,
            }),
            _ => self.find(path).map(|(mount, node)| Stat {
                name: node.sub_path(),
                device: mount.name.path(),
                is_directory: node.is_directory(),
                is_writable: node.is_writable(),
            }),
        };
        self.observe((Operation::Stat, path), (None, None), found.as_ref().map(|_| 0), began);
        found.map_err(|failure| VfsError::new(Operation::Stat, path, failure))
    }

    /// Returns the entries of a directory, in the server's order.
    ///
    /// # Errors
    /// As [`Process::open`]; `INVALID` for a file; the failure of fetching the list.
    pub async fn list(&self, path: &str) -> Result<Vec<Entry>, VfsError> {
        let began = Instant::now();
        let listed = self.listed(path).await;
        let result = listed.as_ref().map(|all| all.len() as u64);
        self.observe((Operation::List, path), (None, None), result, began);
        listed.map_err(|failure| VfsError::new(Operation::List, path, failure))
    }

    async fn listed(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        if Place::parse(path)? == Place::Mounts {
            let names = self.mounts().into_iter().map(|name| name.to_string());
            return Ok(names.map(|name| Entry::directory(&name)).collect());
        }
        let (mount, node) = self.find(path)?;
        match &node {
            Node::Root => {
                let lists = Kind::ALL.into_iter().map(Kind::as_str);
                Ok(lists.chain(["ctl"]).map(Entry::directory).collect())
            }
            Node::Control => {
                Ok(mount.name.control_files().iter().map(|name| Entry::file(name)).collect())
            }
            Node::List(kind) => {
                let list = self.fetching(mount, node.clone(), path)?;
                let read = list.file.read(0).await;
                let names = read.and_then(|read| tools::names(*kind, &read));
                let names = names.inspect_err(|failure| self.met(&list.file, failure))?;
                Ok(names.iter().flat_map(|name| entries(*kind, name)).collect())
            }
            _ => Err(Failure::invalid("it is a file: only directories have entries")),
        }
    }

    /// A list that ends, as descriptors do, with the process and with what it may open.
    fn fetching(&self, mount: Arc<Mount>, node: Node, path: &str) -> Result<Listing<'_>, Failure> {
        let mut state = self.state();
        if state.has_ended {
            return Err(over());
        }
        if !state.kin.allowed.contains(&mount.name) {
            return Err(not_allowed());
        }
        let file = Arc::new(File::new(mount, node, path.into(), None, self.shared.limits));
        let number = state.next_list;
        state.next_list += 1;
        state.lists.insert(number, file.clone());
        Ok(Listing { process: self, number, file })
    }

    /// The last failure of the process at a mount, by any of its paths, for `ctl/error`.
    #[must_use]
    pub fn last_failure(&self, name: &MountName) -> Option<Failure> {
        let state = self.state();
        let name = state.kin.also.get(name).unwrap_or(name);
        state.failures.get(name).cloned()
    }

    /// Checks that the process may open an existing mount. Reports to no observer: the caller does
    /// so itself.
    ///
    /// # Errors
    /// As [`Process::open`] fails for it.
    pub fn may_open(&self, name: &MountName) -> Result<(), Failure> {
        self.find(&name.path()).map(drop)
    }

    /// The mount and node of a path that it may open.
    fn find(&self, path: &str) -> Result<(Arc<Mount>, Node), Failure> {
        let Place::In(name, node) = Place::parse(path)? else {
            return Err(Failure::new(Code::IsDirectory, "invalid", "it is a directory"));
        };
        let state = self.state();
        if state.has_ended {
            return Err(over());
        }
        let name = state.kin.also.get(&name).cloned().unwrap_or(name);
        let is_known = state.kin.known.contains(&name.pid);
        let is_allowed = state.kin.allowed.contains(&name);
        let is_closed = state.kin.closed.contains(&name);
        drop(state);
        match self.shared.mount(&name) {
            Some(mount) if is_allowed => Ok((mount, node)),
            Some(_) if is_known => Err(not_allowed()),
            None if is_closed => Err(not_allowed()),
            // A mount of another process looks like an absent one (D5).
            _ => Err(Failure::not_found(format!("nothing is mounted at `{}`", name.path()))),
        }
    }

    fn file(&self, fd: u64, operation: Operation) -> Result<(Arc<File>, String), VfsError> {
        let state = self.state();
        let file = state.files.get(&fd).cloned();
        let absent = if state.has_ended { over } else { closed };
        drop(state);
        let file = file.ok_or_else(|| VfsError::new(operation, fd.to_string(), absent()))?;
        let path = file.path.clone();
        Ok((file, path))
    }

    fn failed(&self, operation: Operation, file: &File, failure: Failure) -> VfsError {
        self.met(file, &failure);
        VfsError::new(operation, file.path.clone(), failure)
    }

    /// Keeps a failure as the last one at its mount.
    fn met(&self, file: &File, failure: &Failure) {
        self.state().failures.insert(file.mount.name.clone(), failure.clone());
    }

    /// Closes everything; nothing is opened any more.
    pub(crate) fn close_all(&self) {
        let mut state = self.state();
        state.has_ended = true;
        let files = std::mem::take(&mut state.files);
        let lists = std::mem::take(&mut state.lists);
        drop(state);
        for file in files.into_values().chain(lists.into_values()) {
            file.end(Ended::Over);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list that is being fetched.
struct Listing<'a> {
    process: &'a Process,
    number: u64,
    file: Arc<File>,
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.process.state().lists.remove(&self.number);
    }
}

fn not_allowed() -> Failure {
    Failure::new(Code::Permission, "denied", "this process may not open the mount")
}
