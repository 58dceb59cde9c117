//! The lines on stderr of servers that did not start for a run, so that people can read them after
//! the end of the processes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::{Alias, WorkspaceId};
use narthex_registry::{MountFault, MountSet};

/// Number of servers that are remembered, over all workspaces; the oldest failure goes first.
const SERVERS_MAX: usize = 64;

/// The servers that failed last, the newest at the end, each once.
#[derive(Debug, Default)]
pub(crate) struct FailedStarts {
    held: Mutex<VecDeque<FailedStart>>,
}

#[derive(Debug)]
struct FailedStart {
    workspace: WorkspaceId,
    alias: Alias,
    lines: Vec<String>,
}

impl FailedStarts {
    /// Remembers the lines of servers that have failed.
    pub(crate) fn failed(&self, workspace: &WorkspaceId, faults: &[MountFault]) {
        let mut held = self.held();
        for MountFault { alias, lines, .. } in faults {
            held.retain(|one| !one.is_of(workspace, alias));
            if held.len() == SERVERS_MAX {
                held.pop_front();
            }
            let (workspace, alias, lines) = (workspace.clone(), alias.clone(), lines.clone());
            held.push_back(FailedStart { workspace, alias, lines });
        }
    }

    /// Forgets servers that have started since.
    pub(crate) fn started(&self, workspace: &WorkspaceId, set: &MountSet) {
        self.held()
            .retain(|one| one.workspace != *workspace || set.get(one.alias.as_str()).is_none());
    }

    /// The lines of the last failure of a server.
    pub(crate) fn lines(&self, workspace: &WorkspaceId, alias: &str) -> Option<Vec<String>> {
        let held = self.held();
        let found =
            held.iter().find(|one| one.workspace == *workspace && one.alias.as_str() == alias);
        found.map(|one| one.lines.clone())
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<FailedStart>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailedStart {
    fn is_of(&self, workspace: &WorkspaceId, alias: &Alias) -> bool {
        self.workspace == *workspace && self.alias == *alias
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{CallErrorKind, ServerFailure};

    use super::*;

    fn fault(alias: &str, line: &str) -> MountFault {
        let error = ServerFailure::new(CallErrorKind::TransportError, "it ended");
        MountFault { alias: Alias::new(alias).unwrap(), error, lines: vec![line.to_owned()] }
    }

    /// R-C2: a newer failure of a server replaces the older one, and the oldest of all goes first.
    #[test]
    fn the_last_failures_are_remembered_by_workspace_and_server() {
        let (failed, team) = (FailedStarts::default(), WorkspaceId::new("team").unwrap());
        failed.failed(&team, &[fault("git", "one"), fault("docs", "two")]);
        failed.failed(&team, &[fault("git", "three")]);
        assert_eq!(failed.lines(&team, "git"), Some(vec!["three".to_owned()]));
        assert_eq!(failed.lines(&WorkspaceId::default(), "git"), None);
        for number in 0..SERVERS_MAX - 1 {
            failed.failed(&WorkspaceId::default(), &[fault(&format!("s{number}"), "x")]);
        }
        assert_eq!(failed.lines(&team, "docs"), None, "the oldest has gone");
        assert!(failed.lines(&team, "git").is_some());
    }
}
