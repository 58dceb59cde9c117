//! One thread, which looks at what is under way in an order that the seed decides: the same each
//! time. What an operation sees of changes is known exactly then.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use narthex_testkit::rounds;
use narthex_vfs::{Code, Entry, Lease, Limits, Mounted, Namespace, Process, VfsError};
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

const OPERATIONS: usize = 100_000;
const FILES: usize = 8;
const FLIGHTS: usize = 24;
const LEASES: usize = 12;

type Answering = Pin<Box<dyn Future<Output = Result<Answer, Code>>>>;

/// The answer of an operation.
enum Answer {
    Bytes(Vec<u8>),
    Entries(Vec<Entry>),
}

/// An operation that is under way.
struct Flight {
    of: Of,
    began: u64,
    /// When a server was asked for it first, as far as it still waits for that.
    asked: Option<u64>,
    answering: Answering,
}

/// The target of an operation.
enum Of {
    File(usize, Doing),
    List(Opened),
}

struct Running {
    number: usize,
    process: Arc<Process>,
    /// The files behind its descriptors.
    fds: BTreeMap<u64, usize>,
}

/// A kept lease.
struct Leased {
    lease: Lease,
    process: Arc<Process>,
    of: Opened,
    was_over: bool,
}

struct World {
    namespace: Namespace,
    chance: Chance,
    facts: Facts,
    running: BTreeMap<u64, Running>,
    /// The ended processes that the test still holds.
    ended: Vec<(usize, Arc<Process>)>,
    mounted: Vec<(usize, Name, Mounted)>,
    files: Vec<File>,
    /// The last failure that a process has met at a name.
    failures: BTreeMap<(usize, Name), Code>,
    flights: Vec<Flight>,
    leases: Vec<Leased>,
    writes: u64,
    /// Number of operations started.
    begun: usize,
    /// Number of operations of each kind that were over, failed and succeeded: the test has to see
    /// all.
    tally: BTreeMap<&'static str, usize>,
}

fn code(error: VfsError) -> Code {
    error.code()
}

impl World {
    fn new(seed: u64) -> Self {
        let limits = Limits { files: FILES, ..Limits::default() };
        Self {
            namespace: Namespace::new(limits, None),
            chance: Chance(seed),
            facts: Facts::default(),
            running: BTreeMap::new(),
            ended: Vec::new(),
            mounted: Vec::new(),
            files: Vec::new(),
            failures: BTreeMap::new(),
            flights: Vec::new(),
            leases: Vec::new(),
            writes: 0,
            begun: 0,
            tally: BTreeMap::new(),
        }
    }

    fn step(&mut self) {
        match self.chance.below(200) {
            0..4 => self.begin(),
            4 => self.end(),
            5..15 => self.mount(),
            15..18 => self.unmount(),
            18 => self.revoke(),
            19..23 => self.crash_or_come_back(),
            23..40 => self.open(),
            40..72 => self.write(),
            72..104 => self.read(),
            104..110 => self.list(),
            110..128 => self.close(),
            128..130 => self.also(),
            130 => self.know(),
            131 => self.close_off(),
            132..134 => self.renew(),
            134..138 => self.lease(),
            138..148 => self.check(),
            _ => self.look(),
        }
    }

    fn someone(&mut self) -> Option<u64> {
        let of = 1 + self.chance.below(4) as u64;
        self.running.contains_key(&of).then_some(of)
    }

    fn any_name(&mut self) -> Name {
        (1 + self.chance.below(4) as u64, self.chance.of(&ALIASES))
    }

    fn begin(&mut self) {
        let of = 1 + self.chance.below(4) as u64;
        let above = self.someone().filter(|above| *above != of);
        let parent = above.map(|above| self.running[&above].number);
        let inherited: Vec<_> = match parent {
            Some(parent) => self.facts.allowed_now(parent).into_iter().map(mount_name_of).collect(),
            None => Vec::new(),
        };
        let began = self.namespace.begin(pid(of), above.map(pid), &inherited);
        if self.running.contains_key(&of) {
            assert_eq!(began.expect_err("it is there").code(), Code::AlreadyMounted);
            return;
        }
        let process = began.expect("it is new");
        let number = self.facts.begin_process(of, parent);
        self.running.insert(of, Running { number, process, fds: BTreeMap::new() });
    }

    fn end(&mut self) {
        let of = 1 + self.chance.below(4) as u64;
        let Some(running) = self.running.remove(&of) else {
            assert!(!self.namespace.end(pid(of)));
            return;
        };
        let change = self.facts.end_process(running.number);
        assert!(self.namespace.end(pid(of)));
        self.facts.end(change);
        self.ended.push((running.number, running.process));
        // An ended process is held for a while.
        if self.ended.len() > 3 {
            self.ended.remove(0);
        }
    }

    fn mount(&mut self) {
        let name = self.any_name();
        let number = self.facts.mounts.len();
        let device = Arc::new(Tagged::new(number, true));
        let mounted = self.namespace.mount(mount_name_of(name), device.clone());
        let Some(owner) = self.running.get(&name.0) else {
            assert_eq!(mounted.expect_err("no process has it").code(), Code::NotFound);
            return;
        };
        if self.facts.mounted(name).is_some() {
            assert_eq!(mounted.expect_err("taken").code(), Code::AlreadyMounted);
            return;
        }
        let (mount, change) = self.facts.mount(owner.number, name, device);
        assert_eq!(mount, number);
        self.facts.end_mount(mount, change);
        self.mounted.push((mount, name, mounted.expect("it is free")));
    }

    fn unmount(&mut self) {
        if self.mounted.is_empty() {
            return;
        }
        let at = self.chance.below(self.mounted.len());
        let (mount, name, handle) = self.mounted.swap_remove(at);
        if self.facts.mounted(name) != Some(mount) {
            assert!(!self.namespace.unmount(&handle), "an old handle unmounts nothing");
            return;
        }
        let change = self.facts.unmount(mount);
        assert!(self.namespace.unmount(&handle));
        self.facts.end(change);
    }

    fn revoke(&mut self) {
        let Some(of) = self.someone() else { return };
        let name = self.any_name();
        let running = &self.running[&of];
        let change = self.facts.revoke(running.number, name);
        running.process.revoke(&mount_name_of(name));
        self.facts.end(change);
    }

    /// Any name, also of what is never there.
    fn any_path(&mut self) -> Name {
        (1 + self.chance.below(5) as u64, self.chance.of(&ALIASES))
    }

    fn also(&mut self) {
        let Some(of) = self.someone() else { return };
        let (old, mut now) = (self.any_path(), self.any_name());
        now.0 = self.chance.of(&[of, now.0]);
        let running = &self.running[&of];
        let change = self.facts.also(running.number, old, now);
        running.process.also(mount_name_of(old), mount_name_of(now));
        self.facts.end(change);
    }

    fn know(&mut self) {
        let Some(of) = self.someone() else { return };
        let (above, _) = self.any_name();
        let running = &self.running[&of];
        let change = self.facts.know(running.number, above);
        running.process.know(pid(above));
        self.facts.end(change);
    }

    fn close_off(&mut self) {
        let Some(of) = self.someone() else { return };
        let closed: BTreeSet<_> = (0..self.chance.below(5)).map(|_| self.any_path()).collect();
        let names = closed.iter().copied().map(mount_name_of).collect();
        let running = &self.running[&of];
        let change = self.facts.close_off(running.number, closed);
        running.process.close_off(names);
        self.facts.end(change);
    }

    /// Puts another server behind a mount: its open files stay usable, and its leases end.
    fn renew(&mut self) {
        if self.mounted.is_empty() {
            return;
        }
        let at = self.chance.below(self.mounted.len());
        let (mount, name, handle) = &self.mounted[at];
        if self.facts.mounted(*name) != Some(*mount) {
            assert!(!self.namespace.renew(handle), "an old handle renews nothing");
            return;
        }
        let change = self.facts.renew(*mount);
        assert!(self.namespace.renew(handle));
        self.facts.end(change);
    }

    fn lease(&mut self) {
        let Some(of) = self.someone() else { return };
        let (number, process) = (self.running[&of].number, self.running[&of].process.clone());
        let (mut name, node) = (self.any_path(), self.chance.of(&NODES));
        name.0 = self.chance.of(&[of, name.0]);
        let began = self.facts.moment();
        let leased = process.lease(&format!("{}{node}", mount_name_of(name).path()));
        let at = Span { began, ended: self.facts.moment() };
        let found = self.facts.finding(number, name, at);
        let (permitted, name) = (found.permitted, found.name);
        match leased {
            Err(error) => {
                let is_permitted = !permitted.may_go_on && permitted.codes.contains(&error.code());
                assert!(is_permitted, "{error}, and not {permitted:?}");
            }
            Ok(lease) => {
                assert!(permitted.may_go_on, "leased, and not {permitted:?}");
                assert_eq!(*lease.name(), mount_name_of(name), "the name of the mount itself");
                let of = Opened { process: number, name, mounts: found.mounts, at, closed: None };
                self.leases.push(Leased { lease, process, of, was_over: false });
            }
        }
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
        let began = self.facts.moment();
        let Leased { lease, process, of, was_over } = &mut self.leases[at];
        let checked = process.check(lease).map_err(|failure| failure.code);
        let look = Span { began, ended: self.facts.moment() };
        let permitted = self.facts.checking(of, look);
        let is_permitted = match checked {
            Ok(()) => permitted.may_go_on,
            Err(code) => !permitted.may_go_on && permitted.codes.contains(&code),
        };
        assert!(is_permitted, "{checked:?} of a lease, and not {permitted:?}");
        assert_eq!(lease.is_over(), self.facts.lease_over(of, look) == Sure::Yes);
        assert!(!*was_over || checked.is_err(), "what was over is good again");
        // A lease that is over is checked once more.
        if std::mem::replace(was_over, checked.is_err()) {
            self.leases.swap_remove(at);
        }
        self.count(if checked.is_ok() { "lease good" } else { "lease over" });
    }

    fn crash_or_come_back(&mut self) {
        if self.mounted.is_empty() {
            return;
        }
        let at = self.chance.below(self.mounted.len());
        let mount = self.mounted[at].0;
        let device = self.facts.mounts[mount].device.clone();
        if self.facts.is_down(mount) {
            let change = self.facts.come_back(mount);
            device.come_back();
            self.facts.end(change);
        } else {
            let change = self.facts.crash(mount);
            device.crash();
            self.facts.end(change);
        }
    }

    fn open(&mut self) {
        // Now and then an ended process opens a file.
        let is_late = !self.ended.is_empty() && self.chance.below(20) == 0;
        let (number, process, of) = if is_late {
            let at = self.chance.below(self.ended.len());
            let (number, process) = &self.ended[at];
            (*number, process.clone(), None)
        } else {
            let Some(of) = self.someone() else { return };
            (self.running[&of].number, self.running[&of].process.clone(), Some(of))
        };
        let (mut name, node) = (self.any_path(), self.chance.of(&NODES));
        if self.chance.below(4) > 0 {
            name.0 = process.pid().get();
        }
        self.begun += 1;
        let began = self.facts.moment();
        let opened = process.open(&format!("{}{node}", mount_name_of(name).path()));
        let at = Span { began, ended: self.facts.moment() };
        let found = self.facts.finding(number, name, at);
        let (permitted, mounts) = (found.permitted, found.mounts);
        let is_full = of.is_some_and(|of| self.running[&of].fds.len() >= FILES);
        match opened {
            Err(error) if permitted.may_go_on => {
                assert!(is_full && error.code() == Code::ResourceExhausted, "{error}");
            }
            Err(error) => {
                let code = error.code();
                assert!(permitted.codes.contains(&code), "{error}, and not {permitted:?}");
                self.count("not opened");
                if code == Code::Permission {
                    self.count("not allowed");
                }
            }
            Ok(fd) => {
                assert!(permitted.may_go_on && !is_full, "opened, and not {permitted:?}");
                assert_eq!(mounts.len(), 1, "here it is known which");
                if name != found.name {
                    self.count("opened by another path");
                }
                let name = found.name;
                let opened = Opened { process: number, name, mounts, at, closed: None };
                let failure = self.failures.get(&(number, name)).copied();
                self.files.push(File::new(opened, node, failure));
                let file = self.files.len() - 1;
                let of = of.expect("what has ended opens nothing");
                let fds = &mut self.running.get_mut(&of).expect("it runs").fds;
                assert_eq!(Some(fd), (3..).find(|fd| !fds.contains_key(fd)), "the smallest");
                fds.insert(fd, file);
            }
        }
    }

    /// A descriptor that is open, and the file behind it.
    fn any_file(&mut self) -> Option<(Arc<Process>, u64, usize)> {
        let of = self.someone()?;
        let fds: Vec<_> = self.running[&of].fds.iter().map(|(fd, file)| (*fd, *file)).collect();
        let (fd, file) = *fds.get(self.chance.below(fds.len().max(1)))?;
        Some((self.running[&of].process.clone(), fd, file))
    }

    fn write(&mut self) {
        let Some((process, fd, file)) = self.any_file() else { return };
        self.writes += 1;
        let text = arguments(self.writes);
        let bytes = Bytes::from(text.clone());
        let now = Span { began: self.facts.moment(), ended: self.facts.moment() };
        let is_over = !self.facts.over(&self.files[file].opened, now).may_go_on;
        let turn = if is_over { None } else { self.files[file].begin_write() };
        let answering = Box::pin(async move {
            let length = bytes.len();
            let written = process.write(fd, bytes).await.map_err(code)?;
            assert_eq!(written, length, "a write takes all");
            Ok(Answer::Bytes(Vec::new()))
        });
        self.fly(Of::File(file, Doing::Write(text, turn)), answering);
    }

    fn read(&mut self) {
        let Some((process, fd, file)) = self.any_file() else { return };
        let length = match self.files[file].node {
            ERROR => 0,
            _ => self.chance.of(&[-1_i64, 0, 1, 7, 1000]),
        };
        let answering = Box::pin(async move {
            let read = process.read(fd, length).await.map_err(code)?;
            Ok(Answer::Bytes(read.to_vec()))
        });
        self.fly(Of::File(file, Doing::Read(length)), answering);
    }

    fn list(&mut self) {
        let Some(of) = self.someone() else { return };
        let (process, number) = (self.running[&of].process.clone(), self.running[&of].number);
        let name = self.any_path();
        self.begun += 1;
        let began = self.facts.moment();
        let at = Span { began, ended: self.facts.moment() };
        let found = self.facts.finding(number, name, at);
        let permitted = found.permitted;
        let mut answering: Answering = Box::pin(async move {
            let path = format!("{}/tools", mount_name_of(name).path());
            Ok(Answer::Entries(process.list(&path).await.map_err(code)?))
        });
        if permitted.may_go_on {
            let (name, mounts) = (found.name, found.mounts);
            let opened = Opened { process: number, name, mounts, at, closed: None };
            return self.fly(Of::List(opened), answering);
        }
        let Poll::Ready(Err(code)) = poll(&mut answering) else {
            panic!("a list of what is not there, and not {permitted:?}");
        };
        assert!(permitted.codes.contains(&code), "{code}, and not {permitted:?}");
    }

    fn close(&mut self) {
        let Some((process, fd, file)) = self.any_file() else { return };
        let began = self.facts.moment();
        let now = Span { began, ended: self.facts.moment() };
        let is_over = !self.facts.over(&self.files[file].opened, now).may_go_on;
        // A file that is over is closed sooner.
        if !is_over && self.chance.below(4) > 0 {
            return;
        }
        self.begun += 1;
        let began = self.facts.moment();
        process.close(fd).expect("it is open");
        self.files[file].opened.closed = Some(Span { began, ended: self.facts.moment() });
        let pid = process.pid().get();
        self.running.get_mut(&pid).expect("it runs").fds.remove(&fd);
        let again = process.close(fd).expect_err("it is closed");
        assert_eq!(again.code(), Code::Driver);
    }

    /// Begins an operation, and looks at it once.
    fn fly(&mut self, of: Of, answering: Answering) {
        if matches!(of, Of::File(..)) {
            self.begun += 1;
        }
        let began = self.facts.moment();
        self.flights.push(Flight { of, began, asked: None, answering });
        self.look_at(self.flights.len() - 1);
        while self.flights.len() > FLIGHTS {
            let at = self.chance.below(self.flights.len());
            // A flight may be left without an answer: the end of its mount gives one.
            if !self.look_at(at) {
                self.chance_to_end(at);
            }
        }
    }

    fn chance_to_end(&mut self, at: usize) {
        let opened = match &self.flights[at].of {
            Of::File(file, _) => &self.files[*file].opened,
            Of::List(opened) => opened,
        };
        let mount = opened.mounts[0];
        let Some(at) = self.mounted.iter().position(|(one, ..)| *one == mount) else { return };
        if self.chance.below(8) > 0 {
            return;
        }
        let (mount, _, handle) = self.mounted.swap_remove(at);
        if self.facts.is_mounted(mount) {
            let change = self.facts.unmount(mount);
            assert!(self.namespace.unmount(&handle));
            self.facts.end(change);
        }
    }

    fn look(&mut self) {
        if !self.flights.is_empty() {
            let at = self.chance.below(self.flights.len());
            self.look_at(at);
        }
    }

    /// Looks at one operation that is under way. `true` if it has ended.
    fn look_at(&mut self, at: usize) -> bool {
        let flight = &mut self.flights[at];
        Seen::take();
        let began = self.facts.moment();
        let polled = poll(&mut flight.answering);
        let look = Span { began, ended: self.facts.moment() };
        let seen = Seen::take();
        let opened = match &flight.of {
            Of::File(file, _) => &self.files[*file].opened,
            Of::List(opened) => opened,
        };
        let over = self.facts.over(opened, look);
        assert!(over.may_go_on || !seen.is_asked, "a server was asked by what is over");
        let Poll::Ready(result) = polled else {
            assert!(over.may_go_on, "a caller of an ended file got no answer: {opened:?}");
            let is_cut =
                flight.asked.is_some_and(|at| self.facts.has_crashed(&opened.mounts, at, look));
            assert!(!is_cut, "a caller of a crashed server got no answer: {opened:?}");
            if seen.is_asked {
                flight.asked.get_or_insert(look.ended);
            }
            return false;
        };
        let flight = self.flights.swap_remove(at);
        let whole = Span { began: flight.began, ended: look.ended };
        self.count(match &result {
            Ok(_) => "answered",
            Err(_) if !over.may_go_on => "over",
            Err(_) => "failed",
        });
        match flight.of {
            Of::List(opened) => {
                if let Err(code) = &result {
                    self.failures.insert((opened.process, opened.name), *code);
                }
                self.check_list(&opened, result, whole, look, &seen);
            }
            Of::File(file, doing) => {
                let opened = &self.files[file].opened;
                if let Err(code) = &result {
                    self.failures.insert((opened.process, opened.name), *code);
                }
                let result = result.map(|answer| match answer {
                    Answer::Bytes(bytes) => bytes,
                    Answer::Entries(_) => panic!("this is no list"),
                });
                let done = Done { doing, result, whole, look, seen };
                self.files[file].check(&done, &self.facts);
            }
        }
        true
    }

    fn check_list(
        &self,
        opened: &Opened,
        result: Result<Answer, Code>,
        whole: Span,
        look: Span,
        seen: &Seen,
    ) {
        let over = self.facts.over(opened, look);
        let failing = self.facts.failing(&opened.mounts, whole);
        match result {
            Err(code) if over.codes.contains(&code) => {}
            Err(code) => {
                let is_permitted = over.may_go_on && failing.codes.contains(&code);
                assert!(is_permitted, "{code} of a list, and not {over:?} or {failing:?}");
            }
            Ok(Answer::Bytes(_)) => panic!("this is a list"),
            Ok(Answer::Entries(entries)) => {
                assert!(over.may_go_on && failing.may_go_on, "{over:?}, {failing:?}");
                let answered = seen.answered.as_ref().expect("the server has answered");
                let name = &entries.first().expect("there is one").name;
                assert!(String::from_utf8_lossy(answered).contains(name), "another's list: {name}");
                let of = format!("server {} answer ", opened.mounts[0]);
                assert!(name.starts_with(&of), "`{name}` is not {of}");
            }
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Ends all processes and mounts: then no operation waits, and no server is asked or kept.
    fn finish(mut self) -> BTreeMap<&'static str, usize> {
        for of in 1..=4 {
            if let Some(running) = self.running.remove(&of) {
                let change = self.facts.end_process(running.number);
                assert!(self.namespace.end(pid(of)));
                self.facts.end(change);
            }
        }
        while !self.flights.is_empty() {
            assert!(self.look_at(0), "an operation is left without an answer");
        }
        assert!(self.namespace.mounts().is_empty(), "something is mounted");
        drop((self.ended, self.leases, self.namespace));
        for (number, mount) in self.facts.mounts.iter().enumerate() {
            assert_eq!(mount.device.under_way(), 0, "server {number} has calls under way");
            assert_eq!(Arc::strong_count(&mount.device), 1, "server {number} is kept");
        }
        self.tally
    }

    /// No server has more under way than operations are.
    fn check_counts(&self) {
        let under_way: usize = self.facts.mounts.iter().map(|mount| mount.device.under_way()).sum();
        let asking = self.flights.iter().filter(|flight| flight.asked.is_some()).count();
        assert_eq!(under_way, asking, "what is under way at servers, and for whom");
    }
}

fn mount_name_of((of, alias): Name) -> narthex_vfs::MountName {
    mount_name(of, alias)
}

fn poll(answering: &mut Answering) -> Poll<Result<Answer, Code>> {
    answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// S29.
#[test]
fn overlapping_operations_and_changes_match_the_model() {
    for (seed, _) in (20_261_123..).zip(0..rounds(2)) {
        let _said_if_it_fails = Seed(seed);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("there is one");
        let _timers = runtime.enter();
        let mut world = World::new(seed);
        while world.begun < OPERATIONS {
            world.step();
            if world.chance.below(100) == 0 {
                world.check_counts();
            }
        }
        let tally = world.finish();
        for what in ["answered", "over", "failed", "not opened"] {
            let times = tally.get(what).copied().unwrap_or(0);
            assert!(times > OPERATIONS / 10, "{what} only {times} times: {tally:?}");
        }
        for what in ["opened by another path", "not allowed", "lease good", "lease over"] {
            let times = tally.get(what).copied().unwrap_or(0);
            assert!(times > OPERATIONS / 200, "{what} only {times} times: {tally:?}");
        }
    }
}
