//! The grants that may count, in memory: one set per workspace, shared with its runs.
//!
//! A change by this daemon counts at once; a change by another daemon on the store within
//! [`super::POLL`]. If the store cannot be read for [`super::STALE`], no grant counts until it can.

use std::{collections::HashSet, sync::Arc};

use narthex_model::{AgentName, GrantId, GrantSubject, PrincipalId, WorkspaceId};
use narthex_policy::Grants;
use narthex_store::{GrantRow, StatementError, Store};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::live::{Polls, ProofRule, STALE, by_workspace::ByWorkspace};

/// Number of polls after which all grants are read anew, so that expired ones are forgotten.
const WHOLE_EVERY: u32 = 900;

/// The grants of all workspaces.
#[derive(Debug)]
pub(crate) struct LiveGrants {
    proof: ProofRule,
    by_workspace: ByWorkspace<Grants>,
    /// The number of the last known change, locked while grants change or are read anew, so that
    /// the newest state comes last. `None` if all grants must be read.
    last: tokio::sync::Mutex<Option<i64>>,
}

impl LiveGrants {
    /// Loads the grants from the store; none without one. `home` is the set of the workspace of the
    /// live configuration; where `proof` is required no advisory grant counts (D15).
    ///
    /// # Errors
    /// When a statement fails.
    pub(crate) async fn load(
        store: Option<&Store>,
        workspace: WorkspaceId,
        home: Arc<Grants>,
        proof: ProofRule,
    ) -> Result<Self, StatementError> {
        let live = Self {
            proof,
            by_workspace: ByWorkspace::with(workspace, home),
            last: tokio::sync::Mutex::new(None),
        };
        if let Some(store) = store {
            let mut last = live.last.lock().await;
            live.proof.look(store).await?;
            live.read_all(store, &mut last).await?;
            drop(last);
        }
        Ok(live)
    }

    /// The set of a workspace, for its runs.
    #[must_use]
    pub(crate) fn of(&self, workspace: &WorkspaceId) -> Arc<Grants> {
        self.by_workspace.of(workspace)
    }

    /// The rule that decides if grants need the proof of a human.
    #[must_use]
    pub(crate) fn proof(&self) -> &ProofRule {
        &self.proof
    }

    /// Checks whether grants need proof, after a passkey was added or removed. If that has changed,
    /// reads all grants anew, so that only those count that meet the rule.
    ///
    /// # Errors
    /// When a statement fails.
    pub(crate) async fn passkeys_changed(&self, store: &Store) -> Result<(), StatementError> {
        let mut last = self.last.lock().await;
        if self.proof.look(store).await? {
            *last = None;
            self.read_all(store, &mut last).await?;
        }
        Ok(())
    }

    /// Returns the lock that a caller holds while it writes a grant to the store and then
    /// [applies](Self::apply) it.
    pub(crate) async fn changing(&self) -> tokio::sync::MutexGuard<'_, Option<i64>> {
        self.last.lock().await
    }

    /// Applies the current state of a grant.
    pub(crate) fn apply(&self, row: &GrantRow) {
        let GrantRow { grant, workspace, consumed, revoked, is_advisory, .. } = row;
        let set = self.of(workspace);
        if *is_advisory && self.proof.is_required() {
            // The grant was created before proof was required.
            let _ = set.remove(grant.id);
            return;
        }
        match (revoked, consumed) {
            (Some(_), _) => _ = set.remove(grant.id),
            (None, Some(_)) => set.add_taken(grant.clone()),
            (None, None) => set.add(grant.clone()),
        }
    }

    /// Removes a grant, so that it no longer counts.
    pub(crate) fn forget(&self, workspace: &WorkspaceId, id: GrantId) {
        let _ = self.of(workspace).remove(id);
    }

    /// Removes all grants of a user in a workspace.
    pub(crate) fn forget_user(&self, workspace: &WorkspaceId, user: &PrincipalId) {
        let subject = GrantSubject::User(user.clone());
        self.forget_subject(workspace, &subject);
    }

    /// Removes all grants of an agent in a workspace.
    pub(crate) fn forget_agent(&self, workspace: &WorkspaceId, agent: &AgentName) {
        self.forget_subject(workspace, &GrantSubject::Agent(agent.clone()));
    }

    fn forget_subject(&self, workspace: &WorkspaceId, subject: &GrantSubject) {
        let set = self.of(workspace);
        let is_theirs =
            |id: &GrantId| set.get(*id).is_some_and(|one| one.grant().subject == *subject);
        let theirs: Vec<_> = set.ids().into_iter().filter(is_theirs).collect();
        theirs.into_iter().for_each(|id| _ = set.remove(id));
    }

    /// Removes all grants of a workspace.
    pub(crate) fn forget_all(&self, workspace: &WorkspaceId) {
        let Some(set) = self.by_workspace.remove(workspace) else { return };
        set.ids().into_iter().for_each(|id| _ = set.remove(id));
    }

    /// Follows changes by other daemons, until the daemon stops. After a change of permissions, all
    /// grants are read anew, since a workspace may have been deleted with its grants.
    pub(crate) async fn follow(
        self: Arc<Self>,
        store: Store,
        mut access: watch::Receiver<u64>,
        closing: CancellationToken,
    ) {
        let (mut polls, mut looks, mut confirmed) = (Polls::until(closing), 0_u32, Instant::now());
        while polls.next().await {
            looks = looks.wrapping_add(1);
            let mut last = self.last.lock().await;
            if access.has_changed().unwrap_or(true) || looks.is_multiple_of(WHOLE_EVERY) {
                access.mark_unchanged();
                *last = None;
            }
            match self.read_news(&store, &mut last).await {
                Ok(()) => confirmed = Instant::now(),
                Err(error) => {
                    tracing::warn!("changes of grants cannot be read from the store: {error}");
                    if confirmed.elapsed() >= STALE {
                        self.keep_only(&HashSet::new());
                        *last = None;
                    }
                }
            }
            drop(last);
        }
    }

    async fn read_news(&self, store: &Store, last: &mut Option<i64>) -> Result<(), StatementError> {
        // Another daemon may have added the first passkey, or removed the last one.
        if self.proof.look(store).await? {
            *last = None;
        }
        let Some(known) = *last else { return self.read_all(store, last).await };
        let changes = store.grants().since(known).await?;
        changes.rows.iter().for_each(|row| self.apply(row));
        *last = Some(changes.last);
        Ok(())
    }

    async fn read_all(&self, store: &Store, last: &mut Option<i64>) -> Result<(), StatementError> {
        let live = store.grants().live().await?;
        self.keep_only(&live.rows.iter().map(|row| row.grant.id).collect());
        live.rows.iter().for_each(|row| self.apply(row));
        *last = Some(live.last);
        Ok(())
    }

    fn keep_only(&self, known: &HashSet<GrantId>) {
        for set in self.by_workspace.all() {
            let gone = set.ids().into_iter().filter(|id| !known.contains(id));
            gone.for_each(|id| _ = set.remove(id));
        }
    }
}
