//! The steps, and the conditions after each of them and at quiet points.

use std::{
    collections::{BTreeSet, HashSet},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use narthex_model::{ServerState, Target};
use narthex_registry::{
    ConnectionId, Declared, MountError, MountOptions, MountSet, Mountable, Registry, ServerRow,
    VerbError, config::Entry,
};
use narthex_upstream::LinkError;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    model::{Config, Model, NAMES, Random},
    servers::Servers,
};
use crate::{
    unruly::{ask, zombies},
    world::{DEADLINE, start},
};

/// Average number of steps between two quiet points.
const QUIET_EVERY: usize = 25;
/// Time that a step may wait for servers to be ready.
const SETTLING: Duration = Duration::from_millis(20);
/// Interval of checks for quiet.
const LOOK: Duration = Duration::from_millis(2);

/// Actions that run while further steps are taken.
enum Done {
    /// A verb has its answer.
    Verb,
    Mounted(Result<MountSet, MountError>),
    Unmounted,
    Called {
        name: &'static str,
        begun: u64,
        result: Result<String, LinkError>,
    },
}

pub(super) struct Simulation {
    seed: u64,
    random: Random,
    servers: Servers,
    registry: Registry,
    model: Model,
    mounts: Vec<MountSet>,
    /// Number of sets that are being mounted or unmounted.
    under_way: usize,
    running: JoinSet<Done>,
    /// Rises with each action that may end open calls: for each name.
    disturbed: [u64; NAMES.len()],
    /// The last steps, for a failure.
    log: Vec<String>,
    /// Number of calls that have ended well.
    calls: u64,
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.log.len().saturating_sub(40);
            eprintln!("NARTHEX_TEST_SEED={}, after {} steps", self.seed, self.log.len());
            eprintln!("the last ones: {:#?}\n{:#?}", &self.log[last..], self.model);
        }
    }
}

fn index(name: &str) -> usize {
    NAMES.iter().position(|one| *one == name).unwrap()
}

impl Simulation {
    pub(super) async fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random(seed),
            servers: Servers::start().await,
            registry: start([]),
            model: Model::default(),
            mounts: Vec::new(),
            under_way: 0,
            running: JoinSet::new(),
            disturbed: [0; NAMES.len()],
            log: Vec::new(),
            calls: 0,
        }
    }

    pub(super) async fn step(&mut self) {
        let name = self.random.one_of(&NAMES);
        let before = self.registry.get(name);
        match self.random.below(100) {
            0..8 => self.apply(),
            8..26 => self.add(name),
            26..36 => self.remove(name),
            36..44 => self.disable(name),
            44..54 => self.enable(name),
            54..59 => self.reconnect(name),
            59..64 => self.crash(name).await,
            64..88 => self.call(name),
            88..94 => self.mount(),
            _ => self.unmount(),
        }
        self.check_rows();
        if let Some(before) = before {
            self.check_refused(&before);
        }
        match self.random.below(QUIET_EVERY) {
            0 => self.be_quiet().await,
            1..8 => {}
            // Gives servers time to be ready for calls, whatever the threads do.
            8..12 => drop(self.registry.wait_until(SETTLING, |all| all.is_settled()).await),
            pause => {
                for _ in 0..pause {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Ends all servers and mounts, and checks that no process or session is left.
    pub(super) async fn end(mut self) {
        self.be_quiet().await;
        assert!(self.calls > 30, "{} calls", self.calls);
        self.registry.close().await;
        assert_eq!(self.servers.sessions(), 0, "sessions are left");
        assert_eq!(self.servers.mark.alive(), Vec::<u32>::new());
        assert_eq!(zombies(), 0);
    }

    fn note(&mut self, step: impl Into<String>) {
        self.log.push(step.into());
    }

    /// Runs a verb's first step now, and its rest during further steps.
    fn begin<T: Send + 'static>(
        &mut self,
        verb: impl Future<Output = Result<T, VerbError>> + Send + 'static,
    ) -> Result<(), VerbError> {
        let mut verb: Pin<Box<dyn Future<Output = Result<T, VerbError>> + Send>> = Box::pin(verb);
        match verb.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done.map(drop),
            Poll::Pending => {
                self.running.spawn(async move {
                    drop(verb.await.expect("a verb that has begun has an answer"));
                    Done::Verb
                });
                Ok(())
            }
        }
    }

    fn apply(&mut self) {
        let mut names = NAMES.to_vec();
        let mut rows = Vec::new();
        for _ in 0..self.random.below(names.len() + 1) {
            let name = names.swap_remove(self.random.below(names.len()));
            let same = self.model.get(name).filter(|_| self.random.below(3) > 0);
            rows.push((name, same.unwrap_or_else(|| Config::random(&mut self.random))));
        }
        self.note(format!("apply {rows:?}"));
        let set = rows.iter().map(|(name, config)| self.servers.entry(name, *config).into());
        let applied = self.registry.apply(set.collect::<Vec<Declared>>()).unwrap();
        for name in NAMES {
            let config = rows.iter().find(|row| row.0 == name).map(|row| row.1);
            if config == Some(Config::Off) {
                self.disturbed[index(name)] += 1;
            }
        }
        let expected: Vec<_> = rows.iter().map(|row| row.0).collect();
        self.model.rows = rows;
        self.running.spawn(async move {
            let results = applied.results().await;
            let ids: Vec<_> = results.iter().map(narthex_registry::ServerResult::id).collect();
            assert_eq!(ids, expected);
            Done::Verb
        });
    }

    fn add(&mut self, name: &'static str) {
        let config = Config::random(&mut self.random);
        self.note(format!("add {name} {config:?}"));
        self.model.put(name, config);
        if config == Config::Off {
            self.disturbed[index(name)] += 1;
        }
        let (registry, entry) = (self.registry.clone(), self.servers.entry(name, config));
        self.begin(async move { registry.add_server(entry).await }).unwrap();
    }

    fn remove(&mut self, name: &'static str) {
        self.note(format!("remove {name}"));
        let is_there = self.model.get(name).is_some();
        self.model.remove(name);
        assert_eq!(self.registry.remove_server(name), Ok(is_there));
    }

    fn disable(&mut self, name: &'static str) {
        self.note(format!("disable {name}"));
        let done = self.registry.disable(name);
        match self.model.get(name) {
            Some(_) => {
                done.unwrap();
                self.model.disabled.insert(name);
                self.disturbed[index(name)] += 1;
            }
            None => assert_eq!(done, Err(VerbError::Unknown(name.to_owned()))),
        }
    }

    fn enable(&mut self, name: &'static str) {
        self.note(format!("enable {name}"));
        let registry = self.registry.clone();
        let done = self.begin(async move {
            match registry.enable(name) {
                Ok(enabling) => Ok(enabling.result().await),
                Err(error) => Err(error),
            }
        });
        match self.model.get(name) {
            None => assert_eq!(done, Err(VerbError::Unknown(name.to_owned()))),
            Some(Config::Off) => {
                assert!(matches!(done, Err(VerbError::DisabledByConfig { .. })), "{done:?}");
            }
            Some(_) => {
                done.unwrap();
                self.model.disabled.remove(name);
            }
        }
    }

    fn reconnect(&mut self, name: &'static str) {
        self.note(format!("reconnect {name}"));
        let registry = self.registry.clone();
        let done = self.begin(async move { registry.reconnect(name).await });
        match self.model.get(name) {
            None => assert_eq!(done, Err(VerbError::Unknown(name.to_owned()))),
            Some(Config::Fault) => assert_eq!(done, Err(VerbError::Faulty(name.to_owned()))),
            Some(_) => done.unwrap(),
        }
    }

    /// A server over HTTP forgets its sessions, which the next call finds out; a child dies.
    async fn crash(&mut self, name: &'static str) {
        // A start that fails stays failed (E34), so only running servers are crashed. A mount on
        // its way may be starting the same server, and share it with a row later.
        if self.under_way > 0 {
            return;
        }
        let row = self.registry.get(name);
        let Some(link) = row.and_then(|row| row.link.as_ref()?.enter()) else { return };
        self.note(format!("crash {name}"));
        self.disturbed[index(name)] += 1;
        if name != "child" {
            return self.servers.forget(name);
        }
        ask(&link, "die", json!({})).await.unwrap_err();
    }

    /// Calls a server. No call reaches a server that may get none, and each call reaches the
    /// version that counts.
    fn call(&mut self, name: &'static str) {
        let row = self.registry.get(name);
        let Some(version) = self.model.version(name) else {
            self.note(format!("no call of {name}"));
            assert!(row.is_none_or(|row| row.link.is_none()), "{name} takes calls");
            return;
        };
        let Some(link) = row.and_then(|row| row.link.clone()) else { return };
        if link.closed().is_cancelled() {
            // The server has just crashed, and its row does not show that yet.
            return;
        }
        self.note(format!("call {name}"));
        let in_use = link.enter().expect("the link of a row takes calls");
        let begun = self.disturbed[index(name)];
        let is_held = name != "child" && self.random.below(3) == 0;
        self.running.spawn(async move {
            let result = match (name, is_held) {
                ("child", _) => ask(&in_use, "environment", json!({})).await.inspect(|text| {
                    assert!(text.contains(&format!(r#""VERSION":"{version}""#)), "{text}");
                }),
                (_, true) => ask(&in_use, "hold", json!({})).await,
                (_, false) => ask(&in_use, "echo", json!({})).await.inspect(|path| {
                    assert_eq!(*path, format!("/{name}/v{version}"));
                }),
            };
            Done::Called { name, begun, result }
        });
    }

    fn mount(&mut self) {
        let count = 1 + self.random.below(3);
        let mut names = BTreeSet::new();
        let mut set = Vec::new();
        for _ in 0..count {
            let name = self.random.one_of(&NAMES);
            let config = self.random.one_of(&[Config::Good(1), Config::Good(2), Config::Refused]);
            if let Entry::Server(definition) = self.servers.entry(name, config)
                && names.insert(name)
            {
                let definition = Arc::new(definition);
                let is_optional = self.random.below(2) == 0;
                set.push(Mountable { is_optional, ..Mountable::new(definition) });
            }
        }
        self.note(format!("mount {names:?}"));
        let is_strict = self.random.below(2) == 0;
        let options = MountOptions { is_strict, timeout: DEADLINE, holder: None };
        let registry = self.registry.clone();
        self.under_way += 1;
        let mounting = async move { Done::Mounted(registry.mount(set, &options).await) };
        self.running.spawn(mounting);
    }

    fn unmount(&mut self) {
        if self.mounts.is_empty() {
            return;
        }
        let set = self.mounts.swap_remove(self.random.below(self.mounts.len()));
        self.note("unmount");
        if self.random.below(2) == 0 {
            return drop(set);
        }
        self.under_way += 1;
        self.running.spawn(async move {
            drop(set.unmount().await);
            Done::Unmounted
        });
    }

    /// E2, E55, E57: no row is lost, all are in their places, and disabled names stay off.
    fn check_rows(&self) {
        let rows = self.registry.list();
        let found: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        let wanted: Vec<_> = self.model.rows.iter().map(|row| row.0).collect();
        assert_eq!(found, wanted);
        let disabled: Vec<_> = self.model.disabled.iter().copied().collect();
        assert_eq!(self.registry.disabled(), disabled);
        for (row, (name, config)) in rows.iter().zip(&self.model.rows) {
            let wanted = self.model.state(name, *config);
            let is_on_its_way = row.state == ServerState::Connecting
                && wanted != ServerState::Disabled
                && *config != Config::Fault;
            assert!(
                is_on_its_way || row.state == wanted,
                "{name} is {:?} ({:?}), wanted {wanted:?}",
                row.state,
                row.error
            );
            match (self.servers.entry(name, *config), &row.definition) {
                (Entry::Server(wanted), Some(found)) => assert_eq!(wanted, **found),
                (Entry::Fault(_), None) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// E40: a connection that was just left takes no calls, also from a caller with its older row.
    fn check_refused(&self, before: &ServerRow) {
        let Some(link) = &before.link else { return };
        let is_same = |row: Arc<ServerRow>| row.connection == before.connection;
        if self.registry.get(&before.name).is_some_and(is_same) {
            return;
        }
        let shared = self.mounts.iter().flat_map(MountSet::mounts);
        let is_shared = shared.into_iter().any(|mount| Some(mount.id()) == before.connection);
        // A set that is being mounted or unmounted may share the link as well.
        let may_be_shared = is_shared || self.under_way > 0;
        assert!(may_be_shared || link.enter().is_none(), "{} takes calls", before.name);
    }

    /// Waits until all is done, and compares the registry with the model.
    async fn be_quiet(&mut self) {
        self.note("quiet");
        tokio::time::timeout(DEADLINE, self.settle()).await.expect("it comes to no rest");
        self.check_rows();
        self.servers.forget_requests();
        tokio::time::timeout(DEADLINE, self.check_nothing_leaked()).await.unwrap_or_else(|_| {
            let (sessions, children) = self.wanted();
            let open = (self.servers.sessions(), self.servers.mark.alive().len());
            panic!("open: {open:?}, wanted: {sessions} sessions, {children} children");
        });
        self.log.push("was quiet".to_owned());
    }

    async fn settle(&mut self) {
        loop {
            // A call may arrive only now.
            self.servers.answer_held();
            match tokio::time::timeout(LOOK, self.running.join_next()).await {
                Ok(Some(done)) => self.take(done.unwrap()),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        loop {
            let snapshot =
                self.registry.wait_until(Duration::from_millis(100), |all| all.is_settled()).await;
            if snapshot.is_settled() {
                return;
            }
            // This test does not wait out the pauses; other tests do.
            for row in snapshot.servers.iter().filter(|row| !row.state.is_settled()) {
                drop(self.registry.reconnect(&row.name).await.unwrap());
            }
        }
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Verb => {}
            Done::Unmounted => self.under_way -= 1,
            Done::Mounted(outcome) => {
                self.under_way -= 1;
                self.mounts.extend(outcome);
            }
            Done::Called { name, begun, result } => {
                let was_disturbed = self.disturbed[index(name)] != begun;
                // The call may be the first to find out that the server has forgotten the session.
                let is_forgotten = matches!(result, Err(LinkError::SessionEnded));
                assert!(
                    result.is_ok() || was_disturbed || is_forgotten,
                    "a call of {name} failed: {result:?}"
                );
                self.calls += u64::from(result.is_ok());
            }
        }
    }

    /// The sessions and children that rows or mounts hold.
    fn wanted(&self) -> (usize, usize) {
        let rows = self.registry.list();
        let of_rows = rows.iter().filter_map(|row| {
            let target = &row.definition.as_ref()?.target;
            Some((row.connection?, row.link.clone()?, matches!(target, Target::Stdio(_))))
        });
        let mounts = self.mounts.iter().flat_map(MountSet::mounts);
        let of_mounts = mounts.filter_map(|mount| {
            let link = mount.found().link.clone()?;
            Some((mount.id(), link, mount.alias().as_str() == "child"))
        });
        let live = of_rows.chain(of_mounts).filter(|(_, link, _)| !link.closed().is_cancelled());
        let live: HashSet<(ConnectionId, bool)> =
            live.map(|(id, _, is_child)| (id, is_child)).collect();
        let children = live.iter().filter(|(_, is_child)| *is_child).count();
        (live.len() - children, children)
    }

    /// S31: the number of open sessions and children matches the rows and mounts. A session that
    /// the server has forgotten does not count; its owner does not know that yet.
    async fn check_nothing_leaked(&self) {
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            let (sessions, children) = self.wanted();
            if self.servers.sessions() <= sessions && self.servers.mark.alive().len() == children {
                return;
            }
            ticks.tick().await;
        }
    }
}
