//! The kernel's requests. What can be answered at once is answered here; what takes time is a task.

use std::{
    collections::HashMap,
    ffi::OsStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    IoctlFlags, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen,
    ReplyPoll, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use narthex_vfs::{Code, Failure, MountName, Node, Operation, Place};

use crate::{
    callers::lineage,
    errno::{absent, busy, cancelled, errno_for, errno_of, too_large, unread},
    handle::{Handle, Mode, Opened},
    lists::{BELIEVED_FOR, Listed},
    next::{Flushing, Reading, Refused, Written},
    result_cache::Call,
    running::{Shared, appends, lock, may_wait, mode},
    tree::{Inode, Tree, child, child_path, kind, number},
    waiting::{PendingFlush, PendingRead},
};

/// The attribute with the last failure at a file's mount, as JSON.
const ERROR_ATTRIBUTE: &str = "user.narthex.error";

/// The file system that answers the kernel.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tree: Arc<Tree>,
    directories: Arc<Mutex<HashMap<u64, Arc<Listed>>>>,
    next: Arc<AtomicU64>,
}

impl Files {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            tree: Arc::new(Tree::new()),
            directories: Arc::default(),
            next: Arc::new(AtomicU64::new(1)),
        }
    }

    fn handle(&self, fh: FileHandle) -> Option<Arc<Handle>> {
        lock(&self.shared.handles).get(&fh.0).cloned()
    }

    /// True if a file exists, as far as that is known without asking a server; `None` if it is not
    /// known.
    fn is_there(
        &self,
        directory: &Inode,
        file: &str,
        place: &Place,
    ) -> Option<Result<(), Failure>> {
        match place {
            Place::Mounts => Some(Ok(())),
            Place::In(mount, Node::Root) => Some(self.has(mount, file)),
            // Resources of templates are in no list: only reading shows if one exists.
            Place::In(mount, Node::Resource(uri)) if uri.contains(':') => {
                Some(self.has(mount, file))
            }
            Place::In(_, node) if node.is_directory() => Some(Ok(())),
            Place::In(_, Node::Status | Node::Logs | Node::Error) => Some(Ok(())),
            Place::In(..) => {
                let listed = self.shared.lists.known(&directory.path)?;
                Some(listed.get(file).map(drop).ok_or_else(|| absent(file)))
            }
        }
    }

    /// A mount of those above that is not for this process is there; of others nothing is known.
    fn has(&self, mount: &MountName, file: &str) -> Result<(), Failure> {
        let looked = self.shared.process.may_open(mount);
        looked.map_err(|failure| match failure.code {
            Code::NotFound => absent(file),
            _ => failure,
        })
    }
}

/// Answers that a name exists.
fn entry(shared: &Shared, tree: &Tree, path: String, place: Place, reply: ReplyEntry) {
    let (ino, inode) = tree.look_up(path, place);
    let attributes = tree.attributes(ino, &inode);
    let believed = shared.believed_for(ino);
    reply.entry_with_ttls(&believed, &BELIEVED_FOR, &attributes, Generation(0));
}

impl Filesystem for Files {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Some(directory) = self.tree.get(parent) else { return reply.error(Errno::ENOENT) };
        let Some(name) = name.to_str() else { return reply.error(Errno::ENOENT) };
        let Some((path, place)) = child(&directory, name) else {
            self.shared.note_looked_for(&child_path(&directory, name), name, absent(name));
            return reply.error(Errno::ENOENT);
        };
        match self.is_there(&directory, name, &place) {
            Some(Ok(())) => entry(&self.shared, &self.tree, path, place, reply),
            Some(Err(failure)) => {
                let errno = errno_for(&failure);
                self.shared.note_looked_for(&path, name, failure);
                reply.error(errno);
            }
            None => {
                let (shared, tree, name) =
                    (self.shared.clone(), self.tree.clone(), name.to_owned());
                self.shared.spawn(async move {
                    match shared.has(&directory.path, &name).await {
                        Ok(Some(true)) => entry(&shared, &tree, path, place, reply),
                        Ok(Some(false)) => {
                            shared.note_looked_for(&path, &name, absent(&name));
                            reply.error(Errno::ENOENT);
                        }
                        // Its kind becomes known when it is called or read.
                        Ok(None) => {
                            let (ino, inode) = tree.look_up(path, place);
                            let attributes = tree.attributes(ino, &inode);
                            reply.entry(&Duration::ZERO, &attributes, Generation(0));
                        }
                        Err(errno) => reply.error(errno),
                    }
                });
            }
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.tree.forget(ino, nlookup);
    }

    fn getattr(&self, req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree.get(ino) {
            Some(inode) => self.attributes_for(req.pid(), ino, &inode, reply),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(inode) = self.tree.get(ino) else { return reply.error(Errno::ENOENT) };
        if mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        if size.is_some() && !inode.node().is_some_and(Node::is_writable) {
            return reply.error(Errno::EACCES);
        }
        if let Some(handle) = fh.filter(|_| size == Some(0)).and_then(|fh| self.handle(fh)) {
            handle.truncate();
        }
        reply.attr(&self.shared.believed_for(ino), &self.tree.attributes(ino, &inode));
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some(inode) = self.tree.get(ino) else { return reply.error(Errno::ENOENT) };
        let Some(node) = inode.node() else { return reply.error(Errno::EISDIR) };
        let mode = match mode(flags, node) {
            Ok(mode) => mode,
            Err(errno) => return reply.error(errno),
        };
        // A file that was revoked since its look-up is not opened (S29).
        let lease = match self.shared.process.lease(&inode.path) {
            Ok(lease) => lease,
            Err(error) => return reply.error(errno_of(&error)),
        };
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        let opened = Opened { ino, mode, may_wait: may_wait(flags), thread: req.pid() };
        let handle = Handle::new(inode, lease, &opened);
        lock(&self.shared.handles).insert(fh, Arc::new(handle));
        if mode == Mode::Read {
            // The kernel may have got attributes without a size.
            self.shared.forget_attributes(ino);
        }
        // The writes of one descriptor do not affect other descriptors. The kernel makes use of
        // that where a write is no longer than what was written to the file before.
        let uncached = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let flags = match mode {
            Mode::Write => uncached,
            // Closing such a file does nothing here: newer kernels then do not ask.
            Mode::Read | Mode::Both => uncached | FopenFlags::FOPEN_NOFLUSH,
        };
        reply.opened(FileHandle(fh), flags);
    }

    fn read(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(handle) = self.handle(fh) else { return reply.error(Errno::EBADF) };
        let read = PendingRead { thread: req.pid(), offset, size: size as usize, reply };
        // A file that can only be read has no call to wait for. Programs that open all files
        // without waiting, such as `grep -r`, read it like any file of a disk.
        let is_called = handle.inode.node().is_some_and(Node::is_writable);
        if let Err(failure) = self.shared.check(&handle, Operation::Read) {
            return handle.refuse(read, &failure);
        }
        let may_wait = may_wait(flags) || !is_called;
        match handle.read(read, may_wait) {
            Reading::Taken => {}
            Reading::Call(request) => self.shared.call_for_read(&handle, Some(request)),
            Reading::Nothing(read) => self.read_elsewhere(&handle, read, may_wait),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(handle) = self.handle(fh) else { return reply.error(Errno::EBADF) };
        let Ok(length) = u32::try_from(data.len()) else { return reply.error(Errno::EFBIG) };
        if let Err(failure) = self.shared.check(&handle, Operation::Write) {
            return reply.error(errno_for(&failure));
        }
        let offset = (!appends(flags)).then_some(offset);
        match handle.write(offset, data, self.shared.write_bytes) {
            Ok(Written { request, is_lost }) => {
                if is_lost {
                    self.shared.process.note(Operation::Write, &handle.inode.path, unread(true));
                }
                // A reader then waits for the call, which the file already knows: the program comes
                // to its reading while the call starts here.
                reply.written(length);
                if request.is_some() {
                    self.shared.call_for_read(&handle, request);
                }
            }
            Err(refused) => {
                let failure = match refused {
                    Refused::TooLarge => too_large(self.shared.write_bytes),
                    Refused::Busy => busy(),
                };
                let errno = errno_for(&failure);
                self.shared.process.note(Operation::Write, &handle.inode.path, failure);
                reply.error(errno);
            }
        }
    }

    /// No file here is a terminal, which is what programs ask for.
    fn ioctl(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _data: &[u8],
        _size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn flush(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let Some(handle) = self.handle(fh) else { return reply.error(Errno::EBADF) };
        // A descriptor that is also read from calls when it is read. Shells flush it before.
        if handle.mode != Mode::Write {
            return reply.ok();
        }
        match handle.flush(PendingFlush { thread: req.pid(), reply }) {
            Flushing::Taken => {}
            Flushing::Call(flush, request) => self.shared.call_for_close(&handle, request, flush),
            Flushing::Incomplete(PendingFlush { thread, reply }, request) => {
                self.shared.refuse(&handle, request, lineage(thread), Some(reply));
            }
            Flushing::Dropped(PendingFlush { thread, reply }) => {
                let lineage = lineage(thread);
                self.shared.results.keep(&handle, &lineage, Err(cancelled()));
                reply.error(Errno::EINTR);
            }
            Flushing::TooLarge(PendingFlush { thread, reply }) => {
                let failure = too_large(self.shared.write_bytes);
                let errno = errno_for(&failure);
                self.shared.keep(&handle, thread, Call::over(Err(failure)));
                reply.error(errno);
            }
        }
    }

    fn fsync(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.flush(req, ino, fh, LockOwner(0), reply);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let handle = lock(&self.shared.handles).remove(&fh.0);
        if let Some(handle) = handle {
            if let Some(failure) = handle.release() {
                self.shared.process.note(Operation::Close, &handle.inode.path, failure);
            }
            if let Some((request, lineage)) = handle.unfinished() {
                self.shared.refuse(&handle, request, lineage, None);
            }
        }
        reply.ok();
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let Some(inode) = self.tree.get(ino) else { return reply.error(Errno::ENOENT) };
        if !inode.is_directory() {
            return reply.error(Errno::ENOTDIR);
        }
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        let (shared, directories) = (self.shared.clone(), self.directories.clone());
        let thread = req.pid();
        self.shared.spawn(async move {
            match shared.list(&inode.path, thread).await {
                Ok(listed) => {
                    lock(&directories).insert(fh, listed);
                    reply.opened(FileHandle(fh), FopenFlags::empty());
                }
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = lock(&self.directories).get(&fh.0).cloned();
        let (Some(listed), Some(inode)) = (listed, self.tree.get(ino)) else {
            return reply.error(Errno::EBADF);
        };
        let dots = [(".", true), ("..", true)].into_iter();
        let entries = listed.entries.iter().map(|(name, is_dir)| (name.as_str(), *is_dir));
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, (name, is_directory)) in (0_u64..).zip(dots.chain(entries)).skip(from) {
            let number = if at < 2 { ino } else { INodeNo(number(&child_path(&inode, name))) };
            if reply.add(number, at + 1, kind(is_directory), name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.directories).remove(&fh.0);
        reply.ok();
    }

    fn poll(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        ph: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let Some(handle) = self.handle(fh) else { return reply.error(Errno::EBADF) };
        if handle.mode == Mode::Both
            && let Some(request) = handle.hopeless()
        {
            self.shared.call_for_read(&handle, Some(request));
        }
        match self.shared.process.check(&handle.lease) {
            Ok(()) => reply.poll(handle.ready_or_tell(ph)),
            Err(_told_when_it_is_read) => reply.poll(PollEvents::POLLIN | PollEvents::POLLERR),
        }
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let inode = self.tree.get(ino).filter(|_| name == OsStr::new(ERROR_ATTRIBUTE));
        let last = inode.and_then(|inode| match inode.place.as_ref() {
            Place::In(mount, _) => self.shared.process.last_failure(mount),
            Place::Mounts => None,
        });
        match last {
            Some(failure) => sized(failure.to_json().as_bytes(), size, reply),
            None => reply.error(Errno::ENODATA),
        }
    }

    fn listxattr(&self, _req: &Request, _ino: INodeNo, size: u32, reply: ReplyXattr) {
        let mut names = ERROR_ATTRIBUTE.as_bytes().to_vec();
        names.push(0);
        sized(&names, size, reply);
    }

    fn access(&self, _req: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let Some(inode) = self.tree.get(ino) else { return reply.error(Errno::ENOENT) };
        let is_writable = inode.node().is_some_and(Node::is_writable);
        let is_directory = inode.is_directory();
        match () {
            () if mask.contains(AccessFlags::W_OK) && !is_writable => reply.error(Errno::EACCES),
            () if mask.contains(AccessFlags::X_OK) && !is_directory => reply.error(Errno::EACCES),
            () => reply.ok(),
        }
    }

    // No file is made, removed or renamed here.

    fn create(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EACCES);
    }

    fn mknod(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EACCES);
    }

    fn mkdir(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EACCES);
    }

    fn unlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EACCES);
    }

    fn rmdir(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EACCES);
    }

    fn symlink(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _link_name: &OsStr,
        _target: &std::path::Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EACCES);
    }

    fn rename(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _newparent: INodeNo,
        _newname: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EACCES);
    }
}

impl Files {
    /// The call whose result a thread reads at a file that it has not written to, if there is one.
    pub(crate) fn result_for(&self, handle: &Handle, thread: u32) -> Option<Arc<Call>> {
        let near = match handle.inode.node() {
            Some(Node::Tool(_)) => usize::MAX,
            // Without a write it is that of no arguments, whatever others of its tree have asked.
            Some(Node::Prompt(_)) => 2,
            _ => return None,
        };
        let lineage: Vec<_> = lineage(thread).into_iter().take(near).collect();
        self.shared.results.find(handle, &lineage)
    }

    /// A read of a file that nothing was written to: what its tree of processes has left there, or
    /// what can be fetched.
    fn read_elsewhere(&self, handle: &Arc<Handle>, read: PendingRead, may_wait: bool) {
        if let Some(call) = self.result_for(handle, read.thread) {
            let Some(outcome) = call.outcome() else {
                handle.wait(read, may_wait);
                return self.shared.follow(handle, call);
            };
            handle.end(&outcome);
            return handle.answer(read, &outcome);
        }
        // There is no call that the caller has started and could come back for.
        handle.wait(read, true);
        self.shared.call_for_read(handle, None);
    }
}

fn sized(value: &[u8], size: u32, reply: ReplyXattr) {
    let Ok(length) = u32::try_from(value.len()) else { return reply.error(Errno::E2BIG) };
    match size {
        0 => reply.size(length),
        size if size < length => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}
