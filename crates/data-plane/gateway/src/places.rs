//! Places that runs and other principals share: a fixed number, of which one workspace and one
//! holder may have a part.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{PrincipalId, RunId, WorkspaceId};

use crate::RunView;

/// Below this number of places, one run may have all: a part of so few places would be useless.
const SHARED_FROM: usize = 8;

/// The places of one kind. All clones share the same places.
#[derive(Debug, Clone)]
pub struct Places(Arc<Room>);

#[derive(Debug)]
struct Room {
    total: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    workspaces: HashMap<WorkspaceId, usize>,
    holders: HashMap<Holder, usize>,
}

/// Some places of one holder, which are free again when this value is dropped.
#[derive(Debug)]
pub struct Place {
    of: Arc<Room>,
    workspace: Option<WorkspaceId>,
    holder: Holder,
    amount: usize,
}

/// The holder of places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A run.
    Run(RunId),
    /// A human or a service.
    Principal(PrincipalId),
    /// All clients that have not signed in yet, together.
    Visitors,
}

/// The limit that was reached, with its number of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The limit of one run.
    Run(usize),
    /// The limit of another holder.
    Principal(usize),
    /// The limit of all runs of a workspace.
    Workspace(usize),
    /// The limit of all holders together.
    Total(usize),
}

/// Largest number of places of one run, one workspace, and all holders together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Half of the places, for one run.
    pub run: usize,
    /// Three quarters of the places, for the runs of one workspace.
    pub workspace: usize,
    /// All places.
    pub total: usize,
}

impl Parts {
    /// The parts of `total` places. One run may have all of very few places.
    #[must_use]
    pub fn of(total: usize) -> Self {
        Self { run: part(total, 2, 4), workspace: part(total, 3, 4), total }
    }
}

impl Places {
    /// Makes `total` places. A run or another holder may have half of them, and a workspace three
    /// quarters.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Room { total, taken: Mutex::default() }))
    }

    /// Largest number of places of one run.
    #[must_use]
    pub fn of_run(&self) -> usize {
        part(self.0.total, 2, 4)
    }

    fn of_workspace(&self) -> usize {
        part(self.0.total, 3, 4)
    }

    /// Takes `amount` places for a run. Takes a lock, so call this for sessions and streams, and
    /// not for each call.
    ///
    /// # Errors
    /// When the run, its workspace or all holders together have reached their limit.
    pub fn take(&self, run: &RunView, amount: usize) -> Result<Place, Full> {
        self.take_as(Holder::Run(run.id), Some(&run.workspace), amount)
    }

    /// As [`Self::take`], for any holder. Without a workspace, only the limits of the holder and of
    /// all holders apply.
    ///
    /// # Errors
    /// When the holder, its workspace or all holders together have reached their limit.
    pub fn take_as(
        &self,
        holder: Holder,
        workspace: Option<&WorkspaceId>,
        amount: usize,
    ) -> Result<Place, Full> {
        let mut taken = self.0.taken();
        let of_holder = taken.holders.get(&holder).copied().unwrap_or_default() + amount;
        let known = workspace.and_then(|workspace| taken.workspaces.get(workspace));
        let of_workspace = known.copied().unwrap_or_default() + amount;
        if of_holder > self.of_run() {
            return Err(match holder {
                Holder::Run(_) => Full::Run(self.of_run()),
                Holder::Principal(_) | Holder::Visitors => Full::Principal(self.of_run()),
            });
        }
        if workspace.is_some() && of_workspace > self.of_workspace() {
            return Err(Full::Workspace(self.of_workspace()));
        }
        if taken.all + amount > self.0.total {
            return Err(Full::Total(self.0.total));
        }
        taken.all += amount;
        taken.holders.insert(holder.clone(), of_holder);
        if let Some(workspace) = workspace {
            taken.workspaces.insert(workspace.clone(), of_workspace);
        }
        drop(taken);
        Ok(Place { of: self.0.clone(), workspace: workspace.cloned(), holder, amount })
    }
}

impl Full {
    /// The reached limit, in words; `what` names the purpose of the places.
    #[must_use]
    pub fn told(self, what: &str) -> String {
        match self {
            Self::Run(most) => format!("this run has {most} {what}, which is the limit of one run"),
            Self::Principal(most) => {
                format!("you have {most} {what}, which is the limit of one principal")
            }
            Self::Workspace(most) => {
                format!("the runs of this workspace have {most} {what}, which is their limit")
            }
            Self::Total(most) => format!("there are {most} {what}, which is the limit"),
        }
    }
}

impl Room {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all = taken.all.saturating_sub(self.amount);
        give_back(&mut taken.holders, &self.holder, self.amount);
        if let Some(workspace) = &self.workspace {
            give_back(&mut taken.workspaces, workspace, self.amount);
        }
    }
}

fn give_back<K: Eq + Hash>(taken: &mut HashMap<K, usize>, of: &K, amount: usize) {
    if let Some(known) = taken.get_mut(of) {
        *known = known.saturating_sub(amount);
        if *known == 0 {
            taken.remove(of);
        }
    }
}

fn part(total: usize, numerator: usize, denominator: usize) -> usize {
    match total < SHARED_FROM {
        true => total,
        false => total / denominator * numerator + total % denominator * numerator / denominator,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use narthex_policy::RunPolicy;
    use narthex_registry::MountSet;

    use super::*;
    use crate::RunToken;

    fn run(workspace: &str) -> Arc<RunView> {
        let (token, workspace) = (RunToken::generate().unwrap(), WorkspaceId::new(workspace));
        let (workspace, policy) = (workspace.unwrap(), RunPolicy::AllAttached);
        Arc::new(RunView::with_servers(&token, workspace, policy, MountSet::default()))
    }

    /// S31: while one run, or one workspace, has all that it may have, there is room for others;
    /// and a dropped place is free again.
    #[test]
    fn s31_one_run_or_workspace_cannot_take_all_places() {
        let places = Places::new(100);
        let (flood, second, third, other) = (run("one"), run("one"), run("one"), run("two"));
        let held: Vec<_> = (0..50).map(|_| places.take(&flood, 1).unwrap()).collect();
        assert_eq!(places.take(&flood, 1).unwrap_err(), Full::Run(50));
        let more = places.take(&second, 25).unwrap();
        assert_eq!(places.take(&third, 1).unwrap_err(), Full::Workspace(75));
        let last = places.take(&other, 25).unwrap();
        assert_eq!(places.take(&run("three"), 1).unwrap_err(), Full::Total(100));
        drop((last, more, held));
        assert!(places.take(&flood, 50).is_ok());
        assert!(places.0.taken().holders.is_empty() && places.0.taken().workspaces.is_empty());
        assert_eq!(places.take(&flood, 51).unwrap_err(), Full::Run(50));
    }

    /// One run may take all of few places: a part of them would be none.
    #[test]
    fn one_run_may_take_all_places_when_there_are_few() {
        let places = Places::new(3);
        assert!(places.take(&run("one"), 3).is_ok());
        assert_eq!(places.take(&run("one"), 4).unwrap_err(), Full::Run(3));
    }
}
