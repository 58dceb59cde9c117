//! Which server made which task, so that polls find it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use narthex_model::Alias;

use crate::RunId;

/// How many tasks are remembered; the oldest are forgotten first.
const TASKS_MAX: usize = 10_000;

/// The routes of live tasks. Touched only by calls that start or poll a task.
#[derive(Debug, Default)]
pub(crate) struct TaskRoutes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    routes: HashMap<(RunId, Box<str>), Alias>,
    order: VecDeque<(RunId, Box<str>)>,
}

impl TaskRoutes {
    /// Remembers that `alias` made a task for a run.
    pub(crate) fn learn(&self, run: RunId, task: &str, alias: &Alias) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (run, Box::from(task));
        if table.routes.insert(key.clone(), alias.clone()).is_none() {
            table.order.push_back(key);
        }
        while table.order.len() > TASKS_MAX {
            if let Some(oldest) = table.order.pop_front() {
                table.routes.remove(&oldest);
            }
        }
    }

    /// The server that made the task, if it made it for this run.
    pub(crate) fn route(&self, run: RunId, task: &str) -> Option<Alias> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.routes.get(&(run, Box::from(task))).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunToken;

    /// S18: another run's task is unknown; memory is bounded.
    #[test]
    fn s18_tasks_belong_to_their_run() {
        let routes = TaskRoutes::default();
        let (mine, other) = (RunToken::generate().unwrap(), RunToken::generate().unwrap());
        let git = Alias::new("git").unwrap();
        routes.learn(mine.run_id(), "t0", &git);
        assert_eq!(routes.route(mine.run_id(), "t0"), Some(git.clone()));
        assert_eq!(routes.route(other.run_id(), "t0"), None);
        for n in 0..=TASKS_MAX {
            routes.learn(mine.run_id(), &format!("n{n}"), &git);
        }
        assert_eq!(routes.route(mine.run_id(), "t0"), None);
        assert_eq!(routes.0.lock().unwrap().routes.len(), TASKS_MAX);
    }
}
