//! The table of tasks.

use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{Alias, RunId};
use narthex_policy::Origin;
use narthex_registry::ServerKey;
use narthex_upstream::Link;
use narthex_wire::Raw;

use crate::tasks::awake::{Awake, has_ended};

/// Most remembered tasks. Beyond that number, the oldest task of the run that has most is
/// forgotten.
const TASKS_MAX: usize = 10_000;
/// The longest id of a task, in bytes. It travels in a header.
const ID_MAX: usize = 4096;

/// The routes of live tasks. Touched only by code that starts, polls or reports a task.
#[derive(Debug, Default)]
pub(crate) struct TaskRoutes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Tasks by the id that the run's clients know at the aggregated endpoint.
    routes: HashMap<(RunId, Arc<str>), (Alias, Arc<str>)>,
    /// The ids that the clients know, by the server's own ids.
    shown: HashMap<Owned, Arc<str>>,
    order: VecDeque<Owned>,
    /// Number of tasks of each run.
    counts: HashMap<RunId, usize>,
    /// The calls that created the tasks.
    origins: HashMap<Owned, Arc<Origin>>,
    /// The active tasks, by the server's own id. Each is also in `order`.
    awake: HashMap<(ServerKey, Arc<str>), Awake>,
}

/// A task of a run: its server, and the server's own id.
type Owned = (RunId, ServerKey, Arc<str>);

impl TaskRoutes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that a server made a task for a run.
    pub(crate) fn learn(
        &self,
        run: RunId,
        task: &str,
        server: &ServerKey,
        origin: Option<&Arc<Origin>>,
    ) {
        let alias = &server.alias;
        if task.len() > ID_MAX {
            tracing::warn!(server.name = %alias, "gave a task an id of more than {ID_MAX} bytes");
            return;
        }
        let mut table = self.table();
        let id: Arc<str> = task.into();
        let owned = (run, server.clone(), id.clone());
        if !table.shown.contains_key(&owned) {
            let shown = table.free_id(run, alias, &id);
            table.routes.insert((run, shown.clone()), (alias.clone(), id.clone()));
            table.shown.insert(owned.clone(), shown);
            if let Some(origin) = origin {
                table.origins.insert(owned.clone(), origin.clone());
            }
            table.order.push_back(owned);
            *table.counts.entry(run).or_default() += 1;
        }
        while table.order.len() > TASKS_MAX {
            table.forget_oldest();
        }
    }

    /// Keeps a server awake for a task that it has just made, and that is known.
    pub(crate) fn keep_awake(
        &self,
        run: RunId,
        task: Raw<'_>,
        server: &ServerKey,
        link: &Arc<Link>,
    ) {
        let Some(id) = task.get("taskId").and_then(Raw::as_str) else { return };
        let id: Arc<str> = id.as_ref().into();
        let mut table = self.table();
        let is_known = table.shown.contains_key(&(run, server.clone(), id.clone()));
        if is_known && !has_ended(task.get("status")) {
            table.awake.insert((server.clone(), id), Awake::new(run, task, link));
        }
    }

    /// Takes the status of a server's task, by its own id: a task that has ended keeps the server
    /// awake no longer.
    pub(crate) fn heard(&self, server: &ServerKey, id: Option<Raw<'_>>, status: Option<Raw<'_>>) {
        let Some(id) = id.and_then(Raw::as_str) else { return };
        let key = (server.clone(), Arc::from(id.as_ref()));
        let mut table = self.table();
        if has_ended(status) {
            table.awake.remove(&key);
        } else if let Some(awake) = table.awake.get_mut(&key) {
            awake.renew();
        }
    }

    /// Notes that a task has a result, so it keeps the server awake no longer.
    pub(crate) fn has_result(&self, server: &ServerKey, id: Option<Raw<'_>>) {
        if let Some(id) = id.and_then(Raw::as_str) {
            self.table().awake.remove(&(server.clone(), Arc::from(id.as_ref())));
        }
    }

    /// Lets servers sleep whose tasks have expired, or were lost with their link.
    pub(crate) fn expire(&self) {
        self.table().awake.retain(|_, awake| !awake.is_over());
    }

    /// The server that made the task which a run's clients know by this id at the aggregated
    /// endpoint, and the server's own id.
    #[must_use]
    pub(crate) fn route(&self, run: RunId, shown: &str) -> Option<(Alias, Arc<str>)> {
        self.table().routes.get(&(run, Arc::from(shown))).cloned()
    }

    /// The id by which a run's clients know a task at the aggregated endpoint; `None` if the server
    /// made no such task for this run.
    #[must_use]
    pub(crate) fn shown(&self, run: RunId, server: &ServerKey, id: &str) -> Option<Arc<str>> {
        self.table().shown.get(&(run, server.clone(), Arc::from(id))).cloned()
    }

    /// The call that made a task, if the call required a grant.
    #[must_use]
    pub(crate) fn origin(&self, run: RunId, server: &ServerKey, id: &str) -> Option<Arc<Origin>> {
        self.table().origins.get(&(run, server.clone(), Arc::from(id))).cloned()
    }

    /// True if a server made a task for this run.
    #[must_use]
    pub(crate) fn owns(&self, run: RunId, server: &ServerKey, id: &str) -> bool {
        self.shown(run, server, id).is_some()
    }

    /// The servers that made tasks for a run.
    #[must_use]
    pub(crate) fn servers(&self, run: RunId) -> BTreeSet<Alias> {
        let table = self.table();
        let its = table.order.iter().filter(|(of, _, _)| *of == run);
        its.map(|(_, server, _)| server.alias.clone()).collect()
    }

    /// Forgets the tasks of a run that has ended.
    pub(crate) fn forget(&self, run: RunId) {
        let mut table = self.table();
        table.routes.retain(|(of, _), _| *of != run);
        table.shown.retain(|(of, _, _), _| *of != run);
        table.order.retain(|(of, _, _)| *of != run);
        table.counts.remove(&run);
        table.origins.retain(|(of, _, _), _| *of != run);
        table.awake.retain(|_, awake| awake.run != run);
    }

    /// True if the status that a server sends over a link of the client's own is of another run's
    /// task. False for a task without an owner: the answer that creates it may be on its way.
    #[must_use]
    pub(crate) fn is_anothers(&self, run: RunId, server: &ServerKey, id: &str) -> bool {
        let table = self.table();
        let is_it = |(_, of, other): &Owned| of == server && **other == *id;
        !table.shown.contains_key(&(run, server.clone(), Arc::from(id)))
            && table.order.iter().any(is_it)
    }
}

impl Table {
    /// An id that none of the run's clients knows yet: the server's own, if it is free.
    fn free_id(&self, run: RunId, alias: &Alias, id: &Arc<str>) -> Arc<str> {
        let mut shown = id.clone();
        while self.routes.contains_key(&(run, shown.clone())) {
            shown = format!("mcp__{alias}__{shown}").into();
        }
        shown
    }

    /// Forgets the oldest task of the run that has most: no run displaces tasks of other runs.
    fn forget_oldest(&mut self) {
        let most = self.counts.iter().max_by_key(|(_, count)| **count).map(|(run, _)| *run);
        let at = most.and_then(|run| self.order.iter().position(|(of, _, _)| *of == run));
        let Some(oldest) = self.order.remove(at.unwrap_or_default()) else { return };
        if let Entry::Occupied(mut count) = self.counts.entry(oldest.0) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.origins.remove(&oldest);
        if let Some(shown) = self.shown.remove(&oldest) {
            self.routes.remove(&(oldest.0, shown));
        }
        let (run, server, id) = oldest;
        if let Entry::Occupied(awake) = self.awake.entry((server, id))
            && awake.get().run == run
        {
            awake.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u8) -> RunId {
        RunId::new([number; RunId::BYTES])
    }

    fn server(name: &str) -> ServerKey {
        ServerKey::shared(&Alias::new(name).unwrap())
    }

    /// S18: another run's task is unknown; memory is bounded.
    #[test]
    fn s18_tasks_belong_to_their_run() {
        let routes = TaskRoutes::default();
        let (mine, other) = (run(1), run(2));
        let git = server("git");
        routes.learn(mine, "t0", &git, None);
        assert_eq!(routes.route(mine, "t0"), Some((git.alias.clone(), "t0".into())));
        assert_eq!(routes.route(other, "t0"), None);
        assert!(!routes.owns(other, &git, "t0"));
        for n in 0..=TASKS_MAX {
            routes.learn(mine, &format!("n{n}"), &git, None);
        }
        assert_eq!(routes.route(mine, "t0"), None);
        let table = routes.table();
        assert_eq!([table.routes.len(), table.shown.len()], [TASKS_MAX; 2]);
    }

    /// S31: a run that makes more tasks than are remembered forgets its own.
    #[test]
    fn s31_a_run_with_too_many_tasks_loses_only_its_own_tasks() {
        let routes = TaskRoutes::default();
        let (flood, other, git) = (run(1), run(2), server("git"));
        for n in 0..5 {
            routes.learn(other, &format!("t{n}"), &git, None);
        }
        for n in 0..TASKS_MAX + 10 {
            routes.learn(flood, &format!("n{n}"), &git, None);
        }
        assert!((0..5).all(|n| routes.owns(other, &git, &format!("t{n}"))));
        assert!(!routes.owns(flood, &git, "n0") && routes.owns(flood, &git, "n20"));
        let table = routes.table();
        assert_eq!([table.order.len(), table.counts.values().sum()], [TASKS_MAX; 2]);
    }

    /// E79: a task keeps its id, and a later task with the same id gets another. No task takes the
    /// place of another, whatever a server calls its tasks.
    #[test]
    fn e79_equal_task_ids_of_two_servers_get_different_routes() {
        let routes = TaskRoutes::default();
        let (run, other) = (run(1), run(2));
        let (one, two) = (server("one"), server("two"));
        routes.learn(run, "mcp__two__t", &one, None);
        for server in [&one, &two, &one] {
            routes.learn(run, "t", server, None);
        }
        assert_eq!(routes.route(run, "t"), Some((one.alias.clone(), "t".into())));
        assert_eq!(
            routes.route(run, "mcp__two__t"),
            Some((one.alias.clone(), "mcp__two__t".into()))
        );
        let shown = routes.shown(run, &two, "t").unwrap();
        assert_eq!(routes.route(run, &shown), Some((two.alias.clone(), "t".into())));
        routes.learn(other, "t", &two, None);
        assert_eq!(routes.shown(other, &two, "t").as_deref(), Some("t"));
        assert_eq!(routes.servers(run), [one.alias, two.alias.clone()].into());
        // A run that ends leaves no routes, and other runs keep theirs.
        routes.forget(run);
        assert_eq!((routes.route(run, "t"), routes.servers(run).len()), (None, 0));
        assert_eq!(routes.shown(other, &two, "t").as_deref(), Some("t"));
        let table = routes.table();
        assert_eq!([table.routes.len(), table.shown.len(), table.order.len()], [1; 3]);
    }
}
