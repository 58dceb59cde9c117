//! Runs that began before this process: each begins again from its frozen configuration when a
//! client first shows its token (D10).

use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use narthex_control::ControlError;
use narthex_definitions::reviews::Screened;
use narthex_gateway::{FindingRun, LookingAt, RunSource, RunToken, RunView};
use narthex_model::{Alias, RunId};
use narthex_registry::{FirstLists, HeldBack, MountFault, MountSet};
use narthex_store::RunRow;
use narthex_upstream::Inventory;
use tokio::sync::OwnedMutexGuard;

use crate::{
    ATTEMPTS, RunError, Runs, Shared,
    create::{
        driver::Place,
        own_servers,
        resolve::holder,
        servers,
        servers::{OpenedSecrets, RunServers, ServerInputs, UnopenedServer},
    },
    frozen::{Frozen, FrozenAgent, ServerSource, run_place},
    server_events::StartedServers,
};

/// The servers of a run after a restart.
struct RestartedServers {
    set: MountSet,
    /// The rest of the preparation, without the mounted servers.
    resolved: RunServers,
    failed: Vec<MountFault>,
}

impl RunSource for Shared {
    fn find<'a>(&'a self, token: &'a RunToken) -> FindingRun<'a> {
        Box::pin(async move {
            if self.restarts.is_absent(&token.hash()) {
                return None;
            }
            let (token, id) = (token.clone(), token.run_id());
            let runs = Runs { shared: self.this.upgrade()? };
            let again = async move { runs.again(&token).await };
            // The task completes also if the caller disconnects: other callers wait for the run.
            match self.control.spawn(again).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    tracing::warn!(
                        run.id = %id,
                        "a run could not be continued after a restart: {error}"
                    );
                    None
                }
                Err(error) => {
                    tracing::error!(
                        run.id = %id, %error,
                        "continuing a run after a restart failed"
                    );
                    None
                }
            }
        })
    }

    fn look_at<'a>(
        &'a self,
        run: &'a Arc<RunView>,
        alias: &'a Alias,
        listed: &'a Arc<Inventory>,
    ) -> LookingAt<'a> {
        self.reviews.review_later(run, alias, listed)
    }

    fn keep_lists(&self, run: &Arc<RunView>) {
        let (this, run) = (self.this.upgrade(), run.clone());
        self.control.spawn(async move {
            let Some(shared) = this else { return };
            if let Err(error) = (Runs { shared }).store_further_lists(&run).await {
                tracing::warn!(
                    run.id = %run.id,
                    "the frozen lists of a run could not be stored: {error}"
                );
            }
        });
    }
}

impl Runs {
    /// Stores the lists of servers that a run has first got since its start, if the run is stored.
    async fn store_further_lists(&self, run: &RunView) -> Result<(), RunError> {
        let _turn = self.shared.restarts.beginning.take(&run.id).await;
        let Some(row) = self.living_row(run.id).await? else { return Ok(()) };
        let (further, held) = (run.further_lists(), run.held_back().kept());
        let lists = run.first_lists();
        let frozen = Frozen { lists, further, held, ..self.frozen(&row).await? };
        let sealed = self.seal(&row.workspace, &run_place(row.id), &frozen.text()).await?;
        let stored = self.store()?.runs().freeze(&row.workspace, row.id, &sealed).await;
        stored.map(drop).map_err(|error| ControlError::Store(error).into())
    }

    /// Takes the lock of a run for its new begin.
    pub(crate) async fn restart_turn(&self, id: RunId) -> OwnedMutexGuard<()> {
        self.shared.restarts.beginning.take(&id).await
    }

    async fn again(&self, token: &RunToken) -> Result<Option<Arc<RunView>>, RunError> {
        let id = token.run_id();
        // The token is checked before the lock is taken: a caller with an invalid token blocks no
        // caller with a valid one.
        if self.row_of(token).await?.is_none() {
            self.shared.restarts.note_absent(token.hash());
            return Ok(None);
        }
        let _turn = self.shared.restarts.beginning.take(&id).await;
        if let Some(run) = self.shared.gateway.runs().identify(token.expose()) {
            return Ok(Some(run));
        }
        match self.row_of(token).await? {
            Some(row) => self.restart_if_active(&row).await,
            None => Ok(None),
        }
    }

    /// The row of the run that a token opens, if it is active.
    async fn row_of(&self, token: &RunToken) -> Result<Option<RunRow>, RunError> {
        // Comparing hashes of random tokens reveals nothing by the time that it takes.
        let hash = hex::encode(token.hash());
        Ok(self.living_row(token.run_id()).await?.filter(|row| row.token == hash))
    }

    /// Restarts a run without its token.
    pub(crate) async fn restart_by_id(&self, id: RunId) -> Result<Option<Arc<RunView>>, RunError> {
        let _turn = self.shared.restarts.beginning.take(&id).await;
        if let Some(run) = self.shared.gateway.runs().get(id) {
            return Ok(Some(run));
        }
        match self.living_row(id).await? {
            Some(row) => self.restart_if_active(&row).await,
            None => Ok(None),
        }
    }

    pub(crate) async fn restart_if_active(
        &self,
        row: &RunRow,
    ) -> Result<Option<Arc<RunView>>, RunError> {
        let run = self.restart_row(row).await?;
        // A caller that did not find the run in the gateway's table may have ended it meanwhile.
        if self.living_row(row.id).await?.is_none() {
            self.release(row.id).await;
            return Ok(None);
        }
        Ok(Some(run))
    }

    /// The row of a run, if it is active.
    async fn living_row(&self, id: RunId) -> Result<Option<RunRow>, RunError> {
        let row = self.store()?.runs().find(id).await.map_err(ControlError::Store)?;
        let now = SystemTime::now();
        Ok(row.filter(|row| row.ended.is_none() && now < row.expires_at))
    }

    async fn restart_row(&self, row: &RunRow) -> Result<Arc<RunView>, RunError> {
        let hash = token_hash(&row.token).ok_or(RunError::HasEnded(row.id))?;
        let frozen = self.frozen(row).await?;
        let reason = self.restart_reason(row, frozen.from);
        let session = self.store()?.sessions().find(&row.workspace, row.session).await;
        let session = session.map_err(ControlError::Store)?.ok_or(RunError::HasEnded(row.id))?;
        let RestartedServers { set, resolved, failed } =
            self.restarted_servers(row, &frozen).await?;
        let servers = StartedServers::of(&set).failing(&failed);
        let RunServers { policy, counted, built_in, secrets, pinned, .. } = resolved;
        for fault in &failed {
            let error = fault.error.for_operators();
            tracing::warn!(run.id = %row.id, "{}: {error}", fault.alias);
        }
        let agent = frozen.of.agent().map(|agent| agent.name.as_str());
        let (meters, _) = self.control().run_limits(&row.workspace, agent, counted).await?;
        // The lists from before are not screened again: they stay as they were.
        let first = FirstLists::again(&frozen.lists, &set);
        let looked =
            self.shared.reviews.screen_all((&row.workspace, row.id), &pinned, first).await?;
        let Screened { first, mut held, .. } = looked;
        held.extend(&frozen.held);
        let run = RunView::kept(row.id, hash, row.workspace.clone(), policy, set);
        let tools = frozen.of.built_in_tools(session.parent.is_some());
        let run = run.with_built_in(built_in).with_built_in_tools(tools);
        let run = run.with_failed(failed).frozen_to(first);
        let run = run.with_held_back(HeldBack::new(pinned, held));
        let place = Place {
            run: row.id,
            session: row.session,
            agent: &row.agent,
            agent_type: frozen.of.agent().map(FrozenAgent::agent_type),
            is_child: session.parent.is_some(),
        };
        let run =
            run.with_authority(self.authority(&row.workspace, place, row.acts_for().cloned()));
        let run = run.with_meters(meters).with_further_lists(frozen.further);
        let mut run = run.with_secrets(secrets);
        run.began = row.created_at;
        let run = Arc::new(run);
        self.shared.gateway.begin_run(&run).map_err(RunError::Record)?;
        self.shared.stored.note(row.id);
        self.take_turns(&run, row).await?;
        if let Err(error) = self.open_sockets(&run, row.has_sockets) {
            tracing::warn!(run.id = %row.id, "a run continues without its sockets: {error}");
        }
        if row.waiting.is_some() {
            self.shared.claimed.note(row.id, &row.token);
        }
        self.report_servers(row, None, (servers, reason)).await;
        tracing::info!(
            run.id = %row.id, workspace = %row.workspace,
            "a run continues after a restart"
        );
        Ok(run)
    }

    /// Mounts the servers of a run's frozen configuration that start. Calls of the other servers
    /// get the reason why they did not start.
    async fn restarted_servers(
        &self,
        row: &RunRow,
        frozen: &Frozen,
    ) -> Result<RestartedServers, RunError> {
        for _ in 0..ATTEMPTS {
            self.control().look_at_cuts().await?;
            let cuts = self.control().cuts();
            let mut resolved = self.resolved_again(row, frozen, false).await?;
            for fault in &resolved.skipped {
                tracing::warn!(run.id = %row.id, "{}: {}", fault.server, fault.message);
            }
            let servers = take(&mut resolved.servers);
            let holder = holder(&row.workspace, row.driver.as_ref());
            let set = self.start_servers(&row.workspace, servers, false, holder).await?;
            // A cut before the mount of a server here has not reached that server.
            if self.control().cuts() == cuts {
                let failed =
                    take(&mut resolved.failed).into_iter().map(UnopenedServer::into_mount_fault);
                let failed = failed.chain(take(&mut resolved.withheld));
                let failed = failed.chain(set.faults().iter().cloned()).collect();
                return Ok(RestartedServers { set, resolved, failed });
            }
            set.unmount().await;
        }
        Err(RunError::Changed)
    }

    /// Prepares a run's servers from its frozen configuration. With `is_direct`, the result has the
    /// servers with all values, for the answer.
    pub(crate) async fn resolved_again(
        &self,
        row: &RunRow,
        frozen: &Frozen,
        is_direct: bool,
    ) -> Result<RunServers, RunError> {
        let isolation = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let agent = match &frozen.of {
            ServerSource::Own(text) => {
                return own_servers::read(text, &self.shared.options, None, isolation);
            }
            ServerSource::Agent(agent) => agent,
        };
        let mut parts = agent.parts().ok_or(RunError::HasEnded(row.id))?;
        self.control().switch_off(&row.workspace, &mut parts).await?;
        let vault = self.vault()?;
        let opened = OpenedSecrets::pinned(vault, &row.workspace, &agent.secrets).await;
        let of = ServerInputs {
            workspace: &row.workspace,
            run: row.id,
            session: row.session,
            inputs: &agent.inputs,
            scope: &agent.scope(),
            given_scope: None,
            of_children: &BTreeSet::new(),
            variables: self.control().variables(),
            driver: row.driver.as_ref(),
            env: &agent.env,
            is_direct,
            built_in_url: self.shared.options.built_in_url.as_deref(),
        };
        servers::agent(of, &parts, &opened.map_err(ControlError::from)?, isolation)
    }
}

/// Reads the hash of a token in the form that the store has.
fn token_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).ok().map(|()| hash)
}
