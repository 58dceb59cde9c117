//! Runs that began before this process: each begins again when its token is first shown, from its
//! frozen configuration (D10).

use std::{
    collections::{BTreeSet, HashMap},
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, SystemTime},
};

use narthex_control::{ControlError, KeyedLock};
use narthex_gateway::{FindingRun, LookingAt, RunSource, RunToken, RunView};
use narthex_model::{Alias, RunId};
use narthex_registry::{FirstLists, HeldBack, MountFault, MountSet};
use narthex_store::RunRow;
use narthex_upstream::Inventory;
use tokio::{sync::OwnedMutexGuard, time::Instant};

use crate::{
    RunError, Runs, Shared, asked,
    create::ATTEMPTS,
    definitions::LookedAt,
    driver::Place,
    frozen::{Frozen, FrozenAgent, Made, run_place},
    mounting::Mounting,
    prepare::{self, Failed, Of, Opened, Prepared},
};

/// Time for which a token that opens nothing is not looked for again.
const ABSENT_FOR: Duration = Duration::from_secs(30);
/// Number of such tokens that are remembered.
const ABSENT_MAX: usize = 4096;

/// Facts of runs that are not in the gateway's table.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Hashes of tokens that open nothing, each with the time until which that is believed. A token
    /// names its run itself: a forged one must not shut out the one that opens that run.
    absent: Mutex<HashMap<[u8; 32], Instant>>,
    /// Locks per run for its new begin.
    beginning: KeyedLock<RunId>,
}

impl Kept {
    fn is_absent(&self, hash: &[u8; 32]) -> bool {
        self.absent().get(hash).is_some_and(|until| Instant::now() < *until)
    }

    fn note_absent(&self, hash: [u8; 32]) {
        let (mut absent, now) = (self.absent(), Instant::now());
        if absent.len() >= ABSENT_MAX {
            absent.retain(|_, until| now < *until);
        }
        // Further tokens are looked for in the store each time.
        if absent.len() < ABSENT_MAX {
            absent.insert(hash, now + ABSENT_FOR);
        }
    }

    fn absent(&self) -> MutexGuard<'_, HashMap<[u8; 32], Instant>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The servers of a run after a restart.
struct Mounted {
    set: MountSet,
    /// The rest of the preparation, without the mounted servers.
    prepared: Prepared,
    failed: Vec<MountFault>,
}

impl RunSource for Shared {
    fn find<'a>(&'a self, token: &'a RunToken) -> FindingRun<'a> {
        Box::pin(async move {
            if self.kept.is_absent(&token.hash()) {
                return None;
            }
            let (token, id) = (token.clone(), token.run_id());
            let runs = Runs { shared: self.this.upgrade()? };
            let again = async move { runs.again(&token).await };
            // Runs to its end, also if the caller disconnects: others wait for it.
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
        self.look_at_later(run, alias, listed)
    }

    fn keep_lists(&self, run: &Arc<RunView>) {
        let (this, run) = (self.this.upgrade(), run.clone());
        self.control.spawn(async move {
            let Some(shared) = this else { return };
            if let Err(error) = (Runs { shared }).keep_further_lists(&run).await {
                tracing::warn!(
                    run.id = %run.id,
                    "the frozen lists of a run could not be stored: {error}"
                );
            }
        });
    }
}

impl Runs {
    /// Stores the lists of servers that a run has got first by now, unless the run is not stored.
    async fn keep_further_lists(&self, run: &RunView) -> Result<(), RunError> {
        let _turn = self.shared.kept.beginning.take(&run.id).await;
        let Some(row) = self.living_row(run.id).await? else { return Ok(()) };
        let (further, held) = (run.further_lists(), run.held_back().kept());
        let frozen = Frozen { further, held, ..self.frozen(&row).await? };
        let sealed = self.seal(&row.workspace, &run_place(row.id), &frozen.text()).await?;
        let stored = self.store()?.runs().freeze(&row.workspace, row.id, &sealed).await;
        stored.map(drop).map_err(|error| ControlError::Store(error).into())
    }

    /// Takes the lock of a run for its new begin.
    pub(crate) async fn kept_turn(&self, id: RunId) -> OwnedMutexGuard<()> {
        self.shared.kept.beginning.take(&id).await
    }

    /// Removes a run from the table: it begins again when its token is next shown.
    pub(crate) async fn end_view(&self, id: RunId) {
        self.let_go(id).await;
    }

    async fn again(&self, token: &RunToken) -> Result<Option<Arc<RunView>>, RunError> {
        let id = token.run_id();
        // First: a caller with a token that opens nothing blocks no caller with a valid one.
        if self.row_of(token).await?.is_none() {
            self.shared.kept.note_absent(token.hash());
            return Ok(None);
        }
        let _turn = self.shared.kept.beginning.take(&id).await;
        if let Some(run) = self.shared.gateway.runs().identify(token.expose()) {
            return Ok(Some(run));
        }
        match self.row_of(token).await? {
            Some(row) => self.begin_again_if_living(&row).await,
            None => Ok(None),
        }
    }

    /// The row of the run that a token opens, if it is active.
    async fn row_of(&self, token: &RunToken) -> Result<Option<RunRow>, RunError> {
        // Comparing hashes of random tokens reveals nothing by the time that it takes.
        let hash = hex::encode(token.hash());
        Ok(self.living_row(token.run_id()).await?.filter(|row| row.token == hash))
    }

    /// Has a run begin again without its token.
    pub(crate) async fn again_by_id(&self, id: RunId) -> Result<Option<Arc<RunView>>, RunError> {
        let _turn = self.shared.kept.beginning.take(&id).await;
        if let Some(run) = self.shared.gateway.runs().get(id) {
            return Ok(Some(run));
        }
        match self.living_row(id).await? {
            Some(row) => self.begin_again_if_living(&row).await,
            None => Ok(None),
        }
    }

    pub(crate) async fn begin_again_if_living(
        &self,
        row: &RunRow,
    ) -> Result<Option<Arc<RunView>>, RunError> {
        let run = self.begin_again(row).await?;
        // It may have been ended meanwhile, by a caller that found nothing in the table.
        if self.living_row(row.id).await?.is_none() {
            self.let_go(row.id).await;
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

    async fn begin_again(&self, row: &RunRow) -> Result<Arc<RunView>, RunError> {
        let hash = token_hash(&row.token).ok_or(RunError::HasEnded(row.id))?;
        let frozen = self.frozen(row).await?;
        let source = self.source_again(row, frozen.from);
        let session = self.store()?.sessions().find(&row.workspace, row.session).await;
        let session = session.map_err(ControlError::Store)?.ok_or(RunError::HasEnded(row.id))?;
        let Mounted { set, prepared, failed } = self.mounted_again(row, &frozen).await?;
        let mounting = Mounting::of(&set).failing(&failed);
        let Prepared { policy, counted, built_in, secrets, pinned, .. } = prepared;
        for fault in &failed {
            let error = fault.error.for_operators();
            tracing::warn!(run.id = %row.id, "{}: {error}", fault.alias);
        }
        let agent = frozen.of.agent().map(|agent| agent.name.as_str());
        let (meters, _) = self.control().run_limits(&row.workspace, agent, counted).await?;
        // Lists from before are not looked at again: they stay as they were.
        let first = FirstLists::again(&frozen.lists, &set);
        let looked = self.look_at_all((&row.workspace, row.id), &pinned, first).await?;
        let LookedAt { first, mut held, .. } = looked;
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
        self.tell_mounted(row, None, (mounting, source)).await;
        tracing::info!(
            run.id = %row.id, workspace = %row.workspace,
            "a run continues after a restart"
        );
        Ok(run)
    }

    /// Mounts the servers of a run's frozen configuration, as far as they start: calls of the
    /// others get the reason.
    async fn mounted_again(&self, row: &RunRow, frozen: &Frozen) -> Result<Mounted, RunError> {
        for _ in 0..ATTEMPTS {
            self.control().look_at_cuts().await?;
            let cuts = self.control().cuts();
            let mut prepared = self.prepared_again(row, frozen, false).await?;
            for fault in &prepared.skipped {
                tracing::warn!(run.id = %row.id, "{}: {}", fault.server, fault.message);
            }
            let set = self.mount(&row.workspace, take(&mut prepared.servers), false).await?;
            // A cut that came before a server was mounted here has not reached it.
            if self.control().cuts() == cuts {
                let failed = take(&mut prepared.failed).into_iter().map(Failed::into_mount_fault);
                let failed = failed.chain(take(&mut prepared.withheld));
                let failed = failed.chain(set.faults().iter().cloned()).collect();
                return Ok(Mounted { set, prepared, failed });
            }
            set.unmount().await;
        }
        Err(RunError::Changed)
    }

    /// Prepares a run's servers from its frozen configuration; `is_direct` with all values, for the
    /// answer.
    pub(crate) async fn prepared_again(
        &self,
        row: &RunRow,
        frozen: &Frozen,
        is_direct: bool,
    ) -> Result<Prepared, RunError> {
        let isolation = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let agent = match &frozen.of {
            Made::Own(text) => return asked::read(text, &self.shared.options, None, isolation),
            Made::Agent(agent) => agent,
        };
        let mut parts = agent.parts().ok_or(RunError::HasEnded(row.id))?;
        self.control().switch_off(&row.workspace, &mut parts).await?;
        let vault = self.vault()?;
        let opened = Opened::pinned(vault, &row.workspace, &agent.secrets).await;
        let of = Of {
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
        prepare::agent(of, &parts, &opened.map_err(ControlError::from)?, isolation)
    }
}

/// The hash of a token, as it is written in the store.
fn token_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).ok().map(|()| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token that opens nothing is not looked for twice, and shuts out no other token of its run.
    #[tokio::test(start_paused = true)]
    async fn a_token_that_opens_nothing_shuts_out_no_other() {
        let (kept, run) = (Kept::default(), RunId::new([7; 6]));
        let [wrong, right] = [(); 2].map(|()| RunToken::of_run(run).unwrap().hash());
        kept.note_absent(wrong);
        assert!(kept.is_absent(&wrong) && !kept.is_absent(&right));
        tokio::time::advance(ABSENT_FOR).await;
        assert!(!kept.is_absent(&wrong));
        for number in 0..=ABSENT_MAX {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            kept.note_absent(hash);
        }
        assert_eq!(kept.absent().len(), ABSENT_MAX);
    }
}
