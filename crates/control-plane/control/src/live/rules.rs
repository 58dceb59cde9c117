//! The rules that count, in memory: one set per workspace, shared with its runs.
//!
//! A change by this daemon counts at once; a change by another daemon on the store within
//! [`super::POLL`]. While the store cannot be read, the last known rules stay in force: rules only
//! narrow, so they cannot allow a call.

use std::{collections::HashMap, sync::Arc};

use narthex_cedar::{RuleFaults, RuleSet, UnreadableRules};
use narthex_model::{WorkspaceId, command::narthex};
use narthex_policy::{Rules, WorkspaceRules};
use narthex_store::{RulesHead, StatementError, Store};
use tokio_util::sync::CancellationToken;

use crate::live::{Polls, by_workspace::ByWorkspace};

/// The heads of the rules of each workspace when they were last read.
pub(crate) type KnownRules = HashMap<WorkspaceId, RulesHead>;

/// The rules of all workspaces.
#[derive(Debug)]
pub(crate) struct LiveRules {
    by_workspace: ByWorkspace<WorkspaceRules>,
    /// Locked while rules change or are read anew, so that the newest state comes last.
    known: tokio::sync::Mutex<KnownRules>,
}

impl LiveRules {
    /// Loads the rules from the store; there are none without a store. `home` are the rules of the
    /// live configuration's workspace.
    ///
    /// # Errors
    /// When a statement fails.
    pub(crate) async fn load(
        store: Option<&Store>,
        workspace: WorkspaceId,
        home: Arc<WorkspaceRules>,
    ) -> Result<Self, StatementError> {
        let live = Self {
            by_workspace: ByWorkspace::with(workspace, home),
            known: tokio::sync::Mutex::default(),
        };
        if let Some(store) = store {
            let mut known = live.known.lock().await;
            live.read_news(store, &mut known).await?;
            drop(known);
        }
        Ok(live)
    }

    /// The rules of a workspace, for its runs.
    #[must_use]
    pub(crate) fn of(&self, workspace: &WorkspaceId) -> Arc<WorkspaceRules> {
        self.by_workspace.of(workspace)
    }

    /// Returns the lock that a caller holds while it writes rules to the store and then sets them
    /// here.
    pub(crate) async fn changing(&self) -> tokio::sync::MutexGuard<'_, KnownRules> {
        self.known.lock().await
    }

    /// Follows changes by other daemons, until the daemon stops.
    pub(crate) async fn follow(self: Arc<Self>, store: Store, closing: CancellationToken) {
        let mut polls = Polls::until(closing);
        while polls.next().await {
            let mut known = self.known.lock().await;
            if let Err(error) = self.read_news(&store, &mut known).await {
                tracing::warn!("changes of rules cannot be read from the store: {error}");
            }
        }
    }

    /// Reads the rules that differ from the known ones.
    async fn read_news(&self, store: &Store, known: &mut KnownRules) -> Result<(), StatementError> {
        let heads: KnownRules = store.rules().heads().await?.into_iter().collect();
        let gone: Vec<_> = known.keys().filter(|id| !heads.contains_key(*id)).cloned().collect();
        for workspace in gone {
            self.of(&workspace).set(None);
            known.remove(&workspace);
        }
        for (workspace, head) in heads {
            if known.get(&workspace) == Some(&head) {
                continue;
            }
            // If the rules were removed in the meantime, the next poll finds that.
            let Some(row) = store.rules().find(&workspace).await? else { continue };
            self.of(&workspace).set(compiled(&workspace, &row.document));
            known.insert(workspace, row.head);
        }
        Ok(())
    }
}

fn compiled(workspace: &WorkspaceId, text: &str) -> Option<Box<dyn Rules>> {
    match RuleSet::compile(text) {
        Ok(set) => set.boxed(),
        Err(faults) => {
            tracing::error!(%workspace, "{}", cannot_be_read(workspace, &faults));
            Some(Box::new(UnreadableRules))
        }
    }
}

/// One log line: the faults, their consequence, and the commands that mend them.
fn cannot_be_read(workspace: &WorkspaceId, RuleFaults(faults): &RuleFaults) -> String {
    let [show, set] = ["policy show", "policy set --file FILE"]
        .map(|template| narthex(template, &[]).in_workspace(workspace.as_str()));
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    let more = match faults.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!(
        "the stored rules of the workspace {workspace} cannot be read, so all calls of its runs \
         are refused: {first}{more}; print the rules and all their faults with `{show}`, correct \
         the text in a file, then store it with `{set}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D13: the line of the log names the fault and the commands that mend it.
    #[test]
    fn d13_the_log_of_unreadable_rules_names_the_commands_that_repair_them() {
        let workspace = WorkspaceId::new("team").unwrap();
        let text = "permit(principal, action, resource);\n\
                    forbid(principal, action, resource == Tool::\"narthex/start_agent\");";
        let line = cannot_be_read(&workspace, &RuleSet::compile(text).unwrap_err());
        for part in [
            "workspace team",
            "line 1",
            "(and 1 more)",
            "`narthex policy show --workspace team`",
            "`narthex policy set --file FILE --workspace team`",
        ] {
            assert!(line.contains(part), "no {part}: {line}");
        }
        assert!(!line.contains('\n'), "{line}");
    }

    /// D13: while rules cannot be read, they forbid every call.
    #[test]
    fn d13_unreadable_rules_forbid_every_call() {
        let workspace = WorkspaceId::default();
        assert!(compiled(&workspace, "").is_none());
        let rules = WorkspaceRules::default();
        rules.set(compiled(&workspace, "permit(principal, action, resource);"));
        assert!(!rules.is_empty());
        let unreadable = compiled(&workspace, "forbid everything").unwrap();
        let actors = narthex_policy::Actors::default();
        let ruling = unreadable.ask(&narthex_policy::Question {
            actors: &actors,
            server: &narthex_model::Alias::new("git").unwrap(),
            item: &narthex_policy::Item::Server,
            method: "x",
            origin: narthex_policy::CallOrigin::Call,
            arguments: narthex_policy::Arguments::Json(b"{}"),
            site: narthex_policy::Site::default(),
            at: std::time::SystemTime::UNIX_EPOCH,
        });
        assert_eq!(&*ruling.forbidden.unwrap().rule, "unreadable");
    }
}
