//! Random operations against a model of the namespace: 100,000 steps, each with the answer of the
//! model.
//!
//! The operations of frontends are among them: paths that mean other mounts, knowledge about other
//! processes, servers that change behind a mount, and leases of opened files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use narthex_vfs::{Code, Lease, Limits, MountName, Mounted, Namespace, Place, Process};

use crate::device::{Fake, Mood, name, pid, refused};

const STEPS: usize = 100_000;
const FILES: usize = 8;
const HANDLES: usize = 12;
const LEASES: usize = 12;
/// Numbers of processes; what is named by the one after the last is never there.
const PIDS: u64 = 4;
const ALIASES: [&str; 3] = ["a", "ab", "b"];
const NODES: [&str; 7] =
    ["", "/tools", "/tools/echo", "/resources/x:y", "/prompts/greet", "/ctl/logs", "/nothing"];

/// A seeded source of choices: the same each time (a linear congruential generator).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % most
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The name of a mount: whose it is, and the alias.
type Key = (u64, &'static str);

/// The model's facts about a descriptor.
#[derive(Debug, Clone)]
struct Fd {
    mount: Key,
    number: u64,
    node: &'static str,
    content: Option<Result<Vec<u8>, Code>>,
    is_revoked: bool,
}

#[derive(Debug, Default)]
struct Proc {
    /// The process's number among all that were started.
    number: u64,
    allowed: BTreeSet<Key>,
    also: BTreeMap<Key, Key>,
    known: BTreeSet<u64>,
    closed: BTreeSet<Key>,
    failures: BTreeMap<Key, Code>,
    fds: BTreeMap<u64, Fd>,
}

impl Proc {
    fn meaning(&self, key: Key) -> Key {
        self.also.get(&key).copied().unwrap_or(key)
    }
}

/// A server at its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct There {
    number: u64,
    /// Number of servers that were behind the mount before.
    turn: u64,
}

/// A kept lease, and its mount.
struct Leased {
    lease: Lease,
    process: Arc<Process>,
    /// The number of the process that took the lease; its pid may be another process's by now.
    of: (u64, u64),
    mount: Key,
    there: There,
    was_over: bool,
}

#[derive(Default)]
struct Model {
    mounts: BTreeMap<Key, There>,
    processes: BTreeMap<u64, Proc>,
    next: u64,
}

/// The namespace, its intended state, and the model that it is checked against.
struct World {
    namespace: Namespace,
    fake: Arc<Fake>,
    is_well: bool,
    handles: Vec<(Mounted, Key, u64)>,
    processes: BTreeMap<u64, Arc<Process>>,
    leases: Vec<Leased>,
    model: Model,
    chance: Chance,
    /// Counts of the rare events: the test has to see all of them.
    tally: BTreeMap<&'static str, usize>,
}

fn mount_name((of, alias): Key) -> MountName {
    name(of, alias)
}

fn mount_names(keys: impl IntoIterator<Item = Key>) -> Vec<MountName> {
    keys.into_iter().map(mount_name).collect()
}

impl World {
    fn begin(&mut self) {
        let of = self.any_pid();
        let parent = self.chance.of(&[None, Some(of % PIDS + 1)]);
        let inherited: Vec<_> = (0..self.chance.below(4)).map(|_| self.any_key()).collect();
        let names = mount_names(inherited.iter().copied());
        let began = self.namespace.begin(pid(of), parent.map(pid), &names);
        if self.model.processes.contains_key(&of) {
            assert_eq!(began.expect_err("it is there").code(), Code::AlreadyMounted);
            return;
        }
        self.model.next += 1;
        let mut process = Proc { number: self.model.next, ..Proc::default() };
        if let Some(parent) = parent.and_then(|parent| self.model.processes.get(&parent)) {
            process.known.clone_from(&parent.known);
            process.allowed.extend(inherited.iter().filter(|key| parent.allowed.contains(key)));
        }
        process.known.insert(of);
        self.model.processes.insert(of, process);
        self.processes.insert(of, began.expect("it is new"));
    }

    fn end(&mut self) {
        let of = self.any_pid();
        let was_there = self.model.processes.remove(&of).is_some();
        assert_eq!(self.namespace.end(pid(of)), was_there);
        self.processes.remove(&of);
        self.model.mounts.retain(|(owner, _), _| *owner != of);
    }

    fn mount(&mut self) {
        let key = (self.any_pid(), self.chance.of(&ALIASES));
        let mounted = self.namespace.mount(mount_name(key), self.fake.clone());
        let Some(process) = self.model.processes.get_mut(&key.0) else {
            assert_eq!(mounted.expect_err("no process has it").code(), Code::NotFound);
            return;
        };
        if self.model.mounts.contains_key(&key) {
            assert_eq!(mounted.expect_err("taken").code(), Code::AlreadyMounted);
            return;
        }
        self.model.next += 1;
        self.model.mounts.insert(key, There { number: self.model.next, turn: 0 });
        process.allowed.insert(key);
        self.handles.push((mounted.expect("it is free"), key, self.model.next));
        // A few handles of unmounted servers are enough.
        if self.handles.len() > HANDLES {
            let is_there =
                |(_, key, number): &(Mounted, Key, u64)| self.model.is_there(*key, *number);
            if let Some(at) = self.handles.iter().position(|handle| !is_there(handle)) {
                self.handles.swap_remove(at);
            }
        }
    }

    fn unmount(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let at = self.chance.below(self.handles.len());
        let (handle, key, number) = self.handles.swap_remove(at);
        let is_there = self.model.is_there(key, number);
        assert_eq!(self.namespace.unmount(&handle), is_there);
        if is_there {
            self.model.mounts.remove(&key);
        }
    }

    fn revoke(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let key = self.key_near(of);
        process.revoke(&mount_name(key));
        let model = self.model.process(of);
        model.allowed.remove(&key);
        model.fds.values_mut().filter(|fd| fd.mount == key).for_each(|fd| fd.is_revoked = true);
    }

    fn also(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let (old, now) = (self.any_key(), self.key_near(of));
        process.also(mount_name(old), mount_name(now));
        self.model.process(of).also.insert(old, now);
    }

    fn know(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let above = self.any_pid();
        process.know(pid(above));
        self.model.process(of).known.insert(above);
    }

    fn close_off(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let closed: BTreeSet<_> = (0..self.chance.below(6)).map(|_| self.any_key()).collect();
        process.close_off(closed.iter().copied().map(mount_name).collect());
        self.model.process(of).closed = closed;
    }

    fn renew(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let at = self.chance.below(self.handles.len());
        let (handle, key, number) = &self.handles[at];
        let is_there = self.model.is_there(*key, *number);
        assert_eq!(self.namespace.renew(handle), is_there, "an old handle renews nothing");
        if is_there {
            self.model.mounts.get_mut(key).expect("it is there").turn += 1;
        }
    }

    fn lease(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let (key, node) = (self.key_near(of), self.chance.of(&NODES));
        let leased = process.lease(&format!("{}{node}", mount_name(key).path()));
        let found = self.model.found(of, key, node);
        let (mount, there) = match (leased, found) {
            (Err(error), Err(code)) => return assert_eq!(error.code(), code),
            (Ok(lease), Ok((mount, there))) => {
                let of = (of, self.model.process(of).number);
                let was_over = false;
                self.leases.push(Leased { lease, process, of, mount, there, was_over });
                (mount, there)
            }
            (leased, found) => panic!("{leased:?}, and not {found:?}"),
        };
        let lease = &self.leases.last().expect("it is there").lease;
        assert_eq!(*lease.name(), mount_name(mount), "{there:?}");
        let path = format!("{}{node}", lease.name().path());
        let Ok(Place::In(_, parsed)) = Place::parse(&path) else { panic!("{path} is a path") };
        assert_eq!(lease.path(&parsed).trim_end_matches('/'), path, "one path, by whatever way");
        if self.leases.len() > LEASES {
            let at = self.chance.below(self.leases.len());
            self.leases.swap_remove(at);
        }
    }

    /// Checks that a lease is valid as the model expects; once over, it is over for ever.
    fn check(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let at = self.chance.below(self.leases.len());
        let Leased { lease, process, of, mount, there, was_over } = &mut self.leases[at];
        let now = self.model.mounts.get(mount);
        let is_there = now == Some(there);
        let model = self.model.processes.get(&of.0).filter(|model| model.number == of.1);
        let (wanted, what) = match model {
            None => (Err(Code::DeviceDisconnected), "a lease of what has ended"),
            Some(model) if !model.allowed.contains(mount) => {
                (Err(Code::Permission), "a lease of what is revoked")
            }
            Some(_) if is_there => (Ok(()), "a lease that is good"),
            Some(_) if now.is_some_and(|now| now.number == there.number) => {
                (Err(Code::DeviceDisconnected), "a lease of what is renewed")
            }
            Some(_) => (Err(Code::DeviceDisconnected), "a lease of what is gone"),
        };
        let checked = process.check(lease).map_err(|failure| failure.code);
        assert_eq!(checked, wanted, "{what}");
        assert_eq!(lease.is_over(), !is_there, "{what}");
        assert!(!*was_over || checked.is_err(), "what was over is good again");
        let is_kept = checked.is_ok() || !std::mem::replace(was_over, checked.is_err());
        if !is_kept {
            self.leases.swap_remove(at);
        }
        self.count(what);
    }

    /// Checks the answers that a process gets without opening a file.
    fn ask(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let key = self.key_near(of);
        let found = self.model.found(of, key, "");
        let may_open = process.may_open(&mount_name(key)).map_err(|failure| failure.code);
        assert_eq!(may_open, found.map(|_| ()));
        let stat = process.stat(&mount_name(key).path()).map(|stat| stat.device);
        let device = found.map(|(mount, _)| mount_name(mount).path());
        assert_eq!(stat.map_err(|error| error.code()), device);
        let model = &self.model.processes[&of];
        let failure = process.last_failure(&mount_name(key)).map(|failure| failure.code);
        assert_eq!(failure, model.failures.get(&model.meaning(key)).copied());
        let also = model.also.iter().map(|(old, now)| (mount_name(*old), mount_name(*now)));
        assert_eq!(process.synonyms(), also.collect::<Vec<_>>());
        let (may, may_not): (Vec<Key>, Vec<Key>) =
            self.model.mounts.keys().partition(|key| model.allowed.contains(key));
        assert_eq!(process.mounts(), mount_names(may));
        let is_closed = |key: &Key| model.known.contains(&key.0) && !model.also.contains_key(key);
        let closed = mount_names(may_not.into_iter().filter(is_closed));
        assert_eq!(process.closed(), closed);
        if !closed.is_empty() {
            self.count("what is known and not for it");
        }
    }

    fn open(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let (key, node) = (self.key_near(of), self.chance.of(&NODES));
        let opened = process.open(&format!("{}{node}", mount_name(key).path()));
        let found = self.model.found(of, key, node);
        let model = self.model.process(of);
        let wanted = match found {
            Ok(_) if model.fds.len() >= FILES => Err(Code::ResourceExhausted),
            found => found,
        };
        let what = match (wanted, opened) {
            (Err(code), opened) => {
                assert_eq!(opened.expect_err("it is refused").code(), code);
                match code {
                    Code::Permission if model.closed.contains(&model.meaning(key)) => "closed off",
                    Code::Permission => "not allowed",
                    _ => "not there",
                }
            }
            (Ok((mount, there)), opened) => {
                let fd = opened.expect("it opens");
                let free = (3..).find(|fd| !model.fds.contains_key(fd));
                assert_eq!(Some(fd), free, "the smallest that is free");
                let content = (node.is_empty())
                    .then(|| Ok(br#"["tools","resources","prompts","ctl"]"#.to_vec()));
                let number = there.number;
                model.fds.insert(fd, Fd { mount, number, node, content, is_revoked: false });
                if mount == key { "opened" } else { "opened by another path" }
            }
        };
        self.count(what);
    }

    async fn write(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let text = self.chance.of(&["{}", r#"{"a":1}"#, "no json", "[]"]);
        let written = process.write(fd, Bytes::from_static(text.as_bytes())).await;
        let written = written.map_err(|error| error.code());
        let open = self.model.fd(of, fd);
        let wanted = match open {
            Err(code) => Err(code),
            Ok(open) if !matches!(open.node, "/tools/echo" | "/prompts/greet") => {
                Err(Code::Invalid)
            }
            Ok(open) => {
                let answer = match (text.starts_with('{'), self.is_well, open.node) {
                    (false, _, _) => Err(Code::Invalid),
                    (true, false, _) => Err(Code::Permission),
                    (true, true, "/tools/echo") => Ok(format!("echo:{text}").into_bytes()),
                    (true, true, _) => Ok(format!("prompt:greet:{text}").into_bytes()),
                };
                open.content = Some(answer.clone());
                answer.map(|_| text.len())
            }
        };
        assert_eq!(written, wanted);
        self.model.met(of, fd, wanted.err());
    }

    async fn read(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let length = self.chance.of(&[-1_i64, 0, 1, 7, 1000]);
        let read = process.read(fd, length).await;
        let read = read.map(|bytes| bytes.to_vec()).map_err(|error| error.code());
        let is_well = self.is_well;
        let wanted = self.model.fd(of, fd).and_then(|open| {
            if open.content.is_none() {
                let fetched = match (open.node, is_well) {
                    ("/tools/echo", _) => return Err(Code::Invalid),
                    (_, false) => return Err(Code::Permission),
                    ("/tools", _) => crate::device::TOOLS,
                    ("/resources/x:y", _) => "resource:x:y",
                    ("/prompts/greet", _) => "prompt:greet:{}",
                    _ => "said\n",
                };
                open.content = Some(Ok(fetched.into()));
            }
            let content = open.content.as_mut().expect("it was fetched");
            let rest = content.as_mut().map_err(|code| *code)?;
            let wanted = usize::try_from(length).ok().filter(|length| *length > 0);
            let taken = wanted.map_or(rest.len(), |wanted| wanted.min(rest.len()));
            Ok(rest.drain(..taken).collect::<Vec<u8>>())
        });
        assert_eq!(read, wanted);
        self.model.met(of, fd, wanted.err());
    }

    fn close(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let closed = process.close(fd).map_err(|error| error.code());
        let model = self.model.process(of);
        assert_eq!(closed, model.fds.remove(&fd).map(|_| ()).ok_or(Code::Driver));
    }

    fn turn(&mut self) {
        self.is_well = self.chance.below(3) > 0;
        self.fake.set(if self.is_well { Mood::Well } else { Mood::Fails(refused()) });
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn any_pid(&mut self) -> u64 {
        1 + self.chance.below(4) as u64
    }

    /// Any name, also of what is never there.
    fn any_key(&mut self) -> Key {
        (1 + self.chance.below(5) as u64, self.chance.of(&ALIASES))
    }

    /// Half of the time a name of a process's own.
    fn key_near(&mut self, of: u64) -> Key {
        let (any, alias) = self.any_key();
        (self.chance.of(&[of, any]), alias)
    }

    fn someone(&mut self) -> Option<(u64, Arc<Process>)> {
        let of = self.any_pid();
        self.processes.get(&of).map(|process| (of, process.clone()))
    }
}

impl Model {
    fn process(&mut self, of: u64) -> &mut Proc {
        self.processes.get_mut(&of).expect("the model has it")
    }

    fn is_there(&self, key: Key, number: u64) -> bool {
        self.mounts.get(&key).is_some_and(|there| there.number == number)
    }

    /// The place that a path leads a process to.
    fn found(&self, of: u64, key: Key, node: &str) -> Result<(Key, There), Code> {
        let process = &self.processes[&of];
        let key = process.meaning(key);
        let is_closed = process.closed.contains(&key);
        match self.mounts.get(&key) {
            _ if node == "/nothing" => Err(Code::NotFound),
            Some(there) if process.allowed.contains(&key) => Ok((key, *there)),
            Some(_) if process.known.contains(&key.0) => Err(Code::Permission),
            None if is_closed => Err(Code::Permission),
            _ => Err(Code::NotFound),
        }
    }

    /// A failure of an open descriptor is the last failure at its mount.
    fn met(&mut self, of: u64, fd: u64, code: Option<Code>) {
        let process = self.process(of);
        if let (Some(open), Some(code)) = (process.fds.get(&fd), code) {
            process.failures.insert(open.mount, code);
        }
    }

    fn fd(&mut self, of: u64, fd: u64) -> Result<&mut Fd, Code> {
        let process = self.processes.get_mut(&of).expect("the model has it");
        let open = process.fds.get_mut(&fd).ok_or(Code::Driver)?;
        if open.is_revoked {
            return Err(Code::Permission);
        }
        match self.mounts.get(&open.mount) {
            Some(there) if there.number == open.number => Ok(open),
            _ => Err(Code::DeviceDisconnected),
        }
    }
}

#[tokio::test]
async fn a_hundred_thousand_random_operations_match_the_model() {
    let fake = Fake::new();
    let limits = Limits { files: FILES, ..Limits::default() };
    let mut world = World {
        namespace: Namespace::new(limits, None),
        fake,
        is_well: true,
        handles: Vec::new(),
        processes: BTreeMap::new(),
        leases: Vec::new(),
        model: Model::default(),
        chance: Chance(20_261_123),
        tally: BTreeMap::new(),
    };
    for _step in 0..STEPS {
        match world.chance.below(100) {
            0..2 => world.begin(),
            2 if world.chance.below(3) == 0 => world.end(),
            2..9 => world.mount(),
            9..12 => world.unmount(),
            12 => world.revoke(),
            13..15 => world.also(),
            15 => world.know(),
            16 => world.close_off(),
            17..19 => world.renew(),
            19..23 => world.lease(),
            23..29 => world.check(),
            29..31 => world.ask(),
            31..50 => world.open(),
            50..66 => world.write().await,
            66..84 => world.read().await,
            84..97 => world.close(),
            _ => world.turn(),
        }
    }
    let wanted = mount_names(world.model.mounts.keys().copied());
    assert_eq!(world.namespace.mounts(), wanted);
    for what in [
        "opened",
        "opened by another path",
        "closed off",
        "not allowed",
        "not there",
        "what is known and not for it",
        "a lease that is good",
        "a lease of what has ended",
        "a lease of what is revoked",
        "a lease of what is renewed",
        "a lease of what is gone",
    ] {
        let times = world.tally.get(what).copied().unwrap_or(0);
        assert!(times > STEPS / 2000, "{what} only {times} times: {:?}", world.tally);
    }
}
