//! Threads that meet as they may: some use files, and for each process one changes what is there.
//! An operation may have seen each change that it overlaps, and must have seen those before it.

use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
};

use bytes::Bytes;
use narthex_vfs::{Code, Lease, Limits, MountName, Mounted, Namespace, Process};
use tokio::runtime::Builder;

use super::{
    ALIASES, ERROR, NODES, Seed, arguments,
    device::{Seen, Tagged},
    facts::{Facts, Name, Opened, Span, Sure},
    file::{Doing, Done, File},
};
use crate::{
    device::{name as mount_name, pid},
    model::Chance,
};

const STEPS: usize = 100_000;
const USERS: usize = 3;
const PIDS: [u64; 2] = [1, 2];
/// A pid of no process: its paths mean mounts of the process that continues it.
const OLD: u64 = 9;
/// Number of steps between two changes of one process.
const STEPS_OF_A_CHANGE: usize = 12;
/// Most steps that the users are ahead of the changes, however busy the machine is.
const AHEAD: usize = 200;
/// More often than any server has to be looked at before it answers.
const LOOKS: usize = 1000;
/// Most open files of a user.
const OPEN: usize = 6;
/// Most kept leases of a user.
const LEASES: usize = 3;

struct Shared {
    namespace: Namespace,
    facts: Mutex<Facts>,
    /// The last process of each number; it may have ended.
    processes: Mutex<Vec<(usize, Arc<Process>)>>,
    /// Number of steps that the users have done.
    steps: AtomicUsize,
    /// Number of steps for which there were changes, of each process.
    changed: [AtomicUsize; PIDS.len()],
}

/// A user of files: the files are its own, and it does one operation at a time.
struct User<'a> {
    shared: &'a Shared,
    chance: Chance,
    files: Vec<(Arc<Process>, u64, File)>,
    leases: Vec<Leased>,
    writes: u64,
    answered: usize,
    failed: usize,
}

/// A lease that a user keeps.
struct Leased {
    lease: Lease,
    process: Arc<Process>,
    of: Opened,
    was_over: bool,
}

/// A thread that changes the mounts and permissions of a process.
struct Changer<'a> {
    shared: &'a Shared,
    of: u64,
    chance: Chance,
    number: usize,
    process: Arc<Process>,
    mounted: Vec<(usize, Name, Mounted)>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at an operation until it has ended.
fn ended<T>(operation: impl Future<Output = T>) -> T {
    let mut operation = pin!(operation);
    for _look in 0..LOOKS {
        if let Poll::Ready(done) = operation.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            return done;
        }
        thread::yield_now();
    }
    panic!("an operation is left without an answer")
}

impl Shared {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        lock(&self.facts)
    }

    /// Makes a change that is noted before and after.
    fn change(&self, note: impl FnOnce(&mut Facts) -> usize, make: impl FnOnce()) {
        let change = note(&mut self.facts());
        make();
        self.facts().end(change);
    }
}

impl User<'_> {
    fn step(&mut self) {
        match self.chance.below(100) {
            _ if self.files.is_empty() => self.open(),
            4..25 if self.files.len() < OPEN => self.open(),
            0..4 => {
                let at = self.chance.below(self.files.len());
                self.close(at);
            }
            4..46 => self.write(),
            46..91 => self.read(),
            91..94 => self.lease(),
            _ => self.check(),
        }
    }

    fn someone(&mut self) -> (usize, Arc<Process>) {
        let processes = lock(&self.shared.processes);
        processes[self.chance.below(processes.len())].clone()
    }

    fn any_path(&mut self) -> Name {
        (self.chance.of(&[PIDS[0], PIDS[1], OLD]), self.chance.of(&ALIASES))
    }

    fn lease(&mut self) {
        let ((number, process), name) = (self.someone(), self.any_path());
        let path = mount_name(name.0, name.1).path();
        let began = self.shared.facts().moment();
        let leased = process.lease(&path);
        let mut facts = self.shared.facts();
        let at = Span { began, ended: facts.moment() };
        let found = facts.finding(number, name, at);
        drop(facts);
        let (permitted, name, mounts) = (found.permitted, found.name, found.mounts);
        match leased {
            Ok(lease) => {
                assert!(permitted.may_go_on, "{path} leased, and not {permitted:?}");
                assert_eq!(*lease.name(), mount_name(name.0, name.1));
                let of = Opened { process: number, name, mounts, at, closed: None };
                self.leases.push(Leased { lease, process, of, was_over: false });
            }
            Err(error) => {
                assert!(permitted.codes.contains(&error.code()), "{error}, and not {permitted:?}");
            }
        }
        if self.leases.len() > LEASES {
            self.leases.remove(0);
        }
    }

    /// Checks that a lease is valid as the model expects; once over, it is over for ever.
    fn check(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let at = self.chance.below(self.leases.len());
        let Leased { lease, process, of, was_over } = &mut self.leases[at];
        let began = self.shared.facts().moment();
        let was_there = !lease.is_over();
        let checked = process.check(lease).map_err(|failure| failure.code);
        let is_over = lease.is_over();
        let mut facts = self.shared.facts();
        let look = Span { began, ended: facts.moment() };
        let (permitted, gone) = (facts.checking(of, look), facts.lease_over(of, look));
        drop(facts);
        let is_permitted = match checked {
            Ok(()) => permitted.may_go_on,
            Err(code) => permitted.codes.contains(&code),
        };
        assert!(is_permitted, "{checked:?} of {of:?}, and not {permitted:?}");
        assert!(gone < Sure::Yes || !was_there, "what is gone is there: {of:?}");
        assert!(gone > Sure::No || !is_over, "what is there is gone: {of:?}");
        assert!(was_there || (is_over && checked.is_err()), "what was gone is there again");
        assert!(!*was_over || checked.is_err(), "what was over is good again");
        // A lease that is over is checked once more.
        if std::mem::replace(was_over, checked.is_err()) {
            self.leases.swap_remove(at);
        }
    }

    fn open(&mut self) {
        let ((number, process), name) = (self.someone(), self.any_path());
        let node = self.chance.of(&NODES.map(|node| if node == ERROR { "/tools" } else { node }));
        let path = format!("{}{node}", mount_name(name.0, name.1).path());
        let began = self.shared.facts().moment();
        let opened = process.open(&path);
        let mut facts = self.shared.facts();
        let at = Span { began, ended: facts.moment() };
        let found = facts.finding(number, name, at);
        drop(facts);
        let (permitted, name, mounts) = (found.permitted, found.name, found.mounts);
        match opened {
            Ok(fd) => {
                assert!(permitted.may_go_on, "{path} opened, and not {permitted:?}");
                let opened = Opened { process: number, name, mounts, at, closed: None };
                self.files.push((process, fd, File::new(opened, node, None)));
            }
            Err(error) => {
                assert!(permitted.codes.contains(&error.code()), "{error}, and not {permitted:?}");
            }
        }
    }

    fn close(&mut self, at: usize) {
        let (process, fd, file) = self.files.swap_remove(at);
        let began = self.shared.facts().moment();
        let closed = process.close(fd);
        let mut facts = self.shared.facts();
        let whole = Span { began, ended: facts.moment() };
        // Only the end of its process can have closed the file before.
        let has_ended = facts.ended(file.opened.process, whole);
        match closed {
            Ok(()) => assert_ne!(has_ended, Sure::Yes, "it was closed twice"),
            Err(error) => {
                assert_eq!(error.code(), Code::DeviceDisconnected);
                assert_ne!(has_ended, Sure::No, "no thread has closed it");
            }
        }
    }

    fn write(&mut self) {
        self.writes += 1;
        let text = arguments(self.writes);
        self.doing(|process, fd, file| {
            let turn = file.begin_write();
            let written = ended(process.write(fd, Bytes::from(text.clone())));
            let result = written.map(|_| Vec::new()).map_err(|error| error.code());
            (Doing::Write(text, turn), result)
        });
    }

    fn read(&mut self) {
        let length = self.chance.of(&[-1_i64, 0, 1, 7, 1000]);
        self.doing(|process, fd, _file| {
            let read = ended(process.read(fd, length));
            let result = read.map(|bytes| bytes.to_vec()).map_err(|error| error.code());
            (Doing::Read(length), result)
        });
    }

    fn doing(
        &mut self,
        operate: impl FnOnce(&Process, u64, &mut File) -> (Doing, Result<Vec<u8>, Code>),
    ) {
        let at = self.chance.below(self.files.len());
        let (process, fd, file) = &mut self.files[at];
        Seen::take();
        let began = self.shared.facts().moment();
        let (doing, result) = operate(process, *fd, file);
        let mut facts = self.shared.facts();
        let whole = Span { began, ended: facts.moment() };
        match &result {
            Ok(_) => self.answered += 1,
            Err(_) => self.failed += 1,
        }
        let is_over = !facts.over(&file.opened, whole).may_go_on;
        let done = Done { doing, result, whole, look: whole, seen: Seen::take() };
        file.check(&done, &facts);
        drop(facts);
        if is_over && self.chance.below(2) == 0 {
            self.close(at);
        }
    }
}

impl Changer<'_> {
    fn step(&mut self) {
        match self.chance.below(100) {
            0..50 => self.mount(),
            50..60 => {
                let (name, _) = self.name();
                self.unmount(name);
            }
            60..68 => self.revoke(),
            68..80 => self.crash_or_come_back(),
            80..85 => self.also(),
            85..88 => self.know(),
            88..91 => self.close_off(),
            91..97 => self.renew(),
            _ => self.end_and_begin(),
        }
    }

    fn name(&mut self) -> (Name, MountName) {
        let alias = self.chance.of(&ALIASES);
        ((self.of, alias), mount_name(self.of, alias))
    }

    fn mount(&mut self) {
        let (name, mount_name) = self.name();
        let mut facts = self.shared.facts();
        if facts.mounted(name).is_some() {
            // A revoked mount still exists, and no process may use it.
            let is_revoked = !facts.allowed_now(self.number).contains(&name);
            drop(facts);
            if is_revoked {
                self.unmount(name);
            }
            return;
        }
        let device = Arc::new(Tagged::new(facts.mounts.len(), false));
        let (number, change) = facts.mount(self.number, name, device.clone());
        drop(facts);
        let mounted = self.shared.namespace.mount(mount_name, device);
        self.shared.facts().end_mount(number, change);
        self.mounted.push((number, name, mounted.expect("nothing is there")));
    }

    fn unmount(&mut self, name: Name) {
        let Some(at) = self.mounted.iter().position(|(_, one, _)| *one == name) else { return };
        let (number, _, handle) = self.mounted.swap_remove(at);
        let unmount = || assert!(self.shared.namespace.unmount(&handle), "it is mounted");
        self.shared.change(|facts| facts.unmount(number), unmount);
    }

    fn revoke(&mut self) {
        let (name, mount_name) = self.name();
        let revoke = || self.process.revoke(&mount_name);
        self.shared.change(|facts| facts.revoke(self.number, name), revoke);
    }

    /// Gives an old path its meaning; the meaning never changes.
    fn also(&mut self) {
        let (name, mount_name_now) = self.name();
        let old = (OLD, name.1);
        let also = || self.process.also(mount_name(old.0, old.1), mount_name_now);
        self.shared.change(|facts| facts.also(self.number, old, name), also);
    }

    fn know(&mut self) {
        let other = self.chance.of(&PIDS);
        let know = || self.process.know(pid(other));
        self.shared.change(|facts| facts.know(self.number, other), know);
    }

    fn close_off(&mut self) {
        let of = [PIDS[0], PIDS[1], OLD];
        let mut one = || (self.chance.of(&of), self.chance.of(&ALIASES));
        let closed: BTreeSet<Name> = [one(), one(), one()].into();
        let names = closed.iter().map(|(of, alias)| mount_name(*of, alias)).collect();
        let close_off = || self.process.close_off(names);
        self.shared.change(|facts| facts.close_off(self.number, closed), close_off);
    }

    /// Another server is behind a mount, also while it is asked.
    fn renew(&mut self) {
        if self.mounted.is_empty() {
            return;
        }
        let (number, _, handle) = &self.mounted[self.chance.below(self.mounted.len())];
        let renew = || assert!(self.shared.namespace.renew(handle), "it is mounted");
        self.shared.change(|facts| facts.renew(*number), renew);
    }

    fn crash_or_come_back(&mut self) {
        if self.mounted.is_empty() {
            return;
        }
        let facts = self.shared.facts();
        let down = self.mounted.iter().find(|(number, ..)| facts.is_down(*number));
        let at = self.chance.below(self.mounted.len());
        let number = down.map_or(self.mounted[at].0, |(number, ..)| *number);
        let device = facts.mounts[number].device.clone();
        let is_down = facts.is_down(number);
        drop(facts);
        if is_down {
            self.shared.change(|facts| facts.come_back(number), || device.come_back());
        } else {
            self.shared.change(|facts| facts.crash(number), || device.crash());
        }
    }

    fn end(&mut self) {
        let end = || assert!(self.shared.namespace.end(pid(self.of)), "it runs");
        self.shared.change(|facts| facts.end_process(self.number), end);
        self.mounted.clear();
    }

    fn end_and_begin(&mut self) {
        self.end();
        let (number, process) = begin(&self.shared.namespace, &mut self.shared.facts(), self.of);
        (self.number, self.process) = (number, process.clone());
        let at = PIDS.iter().position(|one| *one == self.of).expect("it is one of them");
        lock(&self.shared.processes)[at] = (number, process);
    }
}

fn begin(namespace: &Namespace, facts: &mut Facts, of: u64) -> (usize, Arc<Process>) {
    let process = namespace.begin(pid(of), None, &[]).expect("no process has this number");
    (facts.begin_process(of, None), process)
}

/// Releases the waiting threads when a thread fails.
struct Failing<'a>(&'a AtomicUsize);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fetch_add(2 * STEPS, Ordering::SeqCst);
        }
    }
}

fn use_files(shared: &Shared, seed: u64) -> (usize, usize) {
    let _waited_for = Failing(&shared.steps);
    let (chance, files) = (Chance(seed), Vec::new());
    let leases = Vec::new();
    let mut user = User { shared, chance, files, leases, writes: 0, answered: 0, failed: 0 };
    for _step in 0..STEPS.div_ceil(USERS) {
        user.step();
        let done = shared.steps.fetch_add(1, Ordering::SeqCst);
        for changed in &shared.changed {
            // If another user has failed, the count of steps is higher than the steps done.
            wait_until(changed, done.saturating_sub(AHEAD).min(STEPS - STEPS_OF_A_CHANGE));
        }
    }
    (user.answered, user.failed)
}

fn make_changes(mut changer: Changer<'_>) {
    let shared = changer.shared;
    let at = PIDS.iter().position(|one| *one == changer.of).expect("it is one of them");
    let _waited_for = Failing(&shared.changed[at]);
    for next in (STEPS_OF_A_CHANGE..=STEPS).step_by(STEPS_OF_A_CHANGE) {
        changer.step();
        shared.changed[at].store(next, Ordering::SeqCst);
        wait_until(&shared.steps, next);
    }
    changer.end();
}

fn wait_until(progress: &AtomicUsize, at_least: usize) {
    while progress.load(Ordering::SeqCst) < at_least {
        thread::yield_now();
    }
}

/// S29.
#[test]
fn results_of_concurrent_threads_match_the_model() {
    let seed = 20_261_123;
    let _said_if_it_fails = Seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("there is one");
    let namespace = Namespace::new(Limits::default(), None);
    let mut facts = Facts::default();
    let processes: Vec<_> = PIDS.map(|of| begin(&namespace, &mut facts, of)).into();
    let shared = Shared {
        namespace,
        facts: Mutex::new(facts),
        processes: Mutex::new(processes.clone()),
        steps: AtomicUsize::new(0),
        changed: PIDS.map(|_| AtomicUsize::new(0)),
    };
    let (mut answered, mut failed) = (0, 0);
    thread::scope(|scope| {
        for (of, (number, process)) in PIDS.into_iter().zip(processes) {
            let (shared, chance, mounted) = (&shared, Chance(seed + of), Vec::new());
            scope.spawn(move || {
                make_changes(Changer { shared, of, chance, number, process, mounted });
            });
        }
        let users: Vec<_> = (0..USERS as u64)
            .map(|user| {
                let (shared, handle) = (&shared, runtime.handle().clone());
                scope.spawn(move || {
                    let _timers = handle.enter();
                    use_files(shared, seed + 100 + user)
                })
            })
            .collect();
        for user in users {
            let (well, badly) = user.join().expect("it goes as the model permits");
            answered += well;
            failed += badly;
        }
    });
    assert!(answered > STEPS / 20 && failed > STEPS / 20, "{answered} and {failed} of {STEPS}");
    assert!(shared.namespace.mounts().is_empty(), "something is mounted");
    let Shared { namespace, facts, processes, .. } = shared;
    drop((namespace, processes));
    for (number, mount) in facts.into_inner().expect("no thread failed").mounts.iter().enumerate() {
        assert_eq!(mount.device.under_way(), 0, "server {number} has calls under way");
        assert_eq!(Arc::strong_count(&mount.device), 1, "server {number} is kept");
    }
}
