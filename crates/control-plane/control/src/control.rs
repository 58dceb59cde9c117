//! The control plane: registry, files and store together.

use std::{fmt, path::PathBuf, sync::Arc};

use narthex_audit::Audit;
use narthex_events::Events;
use narthex_model::{KnownExecutors, WorkspaceId};
use narthex_oauth_client::SignIns;
use narthex_policy::{Grants, WorkspaceRules};
use narthex_registry::{
    Registry,
    layers::{DefaultServer, SettingsFile},
    watch::{LayerFiles, LayerOptions},
};
use narthex_store::Store;
use narthex_traffic::Meters;
use narthex_vault::Vault;
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::live::{KeyedLock, LiveGrants, LiveRules, LiveTurns, ProofRule};
use crate::shipping::Shipper;
use crate::{
    ControlError, GrantOptions, LoginOptions, Variables,
    access::Access,
    audit,
    cuts::{self, Cuts},
    filled::Applied,
    follow,
    login::Login,
    seeding,
    sign_ins::recorder::ServerSignIns,
};

/// The parts of a control plane.
pub struct ControlOptions {
    /// The files that configure servers. The control plane follows them.
    pub files: LayerOptions,
    /// The store, for all data that must outlive a restart. Without a store, a server that was
    /// disabled is on again after a restart.
    pub store: Option<Store>,
    /// The store of secrets; `None` if there are no secrets.
    pub vault: Option<Vault>,
    /// The variables that the catalog may name.
    pub variables: Variables,
    /// The log of all recorded actions.
    pub audit: Audit,
    /// The ways for humans to sign in; `None` if no human can.
    pub login: Option<LoginOptions>,
    /// The sign-ins to servers, which the registry uses as well; `None` if there are none.
    pub sign_ins: Option<ServerSignIns>,
    /// The meters of calls, shared with the gateway.
    pub meters: Meters,
    /// The grants of the live configuration's workspace, shared with the process's own run.
    pub grants: Arc<Grants>,
    /// The conditions for grants, in all workspaces.
    pub granting: GrantOptions,
    /// The rules of the live configuration's workspace, shared with the process's own run.
    pub rules: Arc<WorkspaceRules>,
    /// The executors for runs of agents that name them.
    pub executors: KnownExecutors,
    /// Servers that are put into the user's settings once (E146).
    pub defaults: Vec<DefaultServer>,
}

/// The control plane, for operators. Clones share one state.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) files: LayerFiles,
    pub(crate) settings: Option<SettingsFile>,
    pub(crate) settings_path: Option<PathBuf>,
    pub(crate) store: Option<Store>,
    /// The events of sessions; only with a store.
    pub(crate) events: Option<Events>,
    pub(crate) vault: Option<Vault>,
    pub(crate) variables: Variables,
    pub(crate) audit: Audit,
    /// Moves recorded events into the store. Locked during each move.
    pub(crate) shipper: Option<Arc<tokio::sync::Mutex<Shipper>>>,
    /// Locked for writing while old events are removed, and for reading while the audit is
    /// exported.
    pub(crate) trimming: Arc<tokio::sync::RwLock<()>>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) access: Arc<Access>,
    pub(crate) grants: Arc<LiveGrants>,
    pub(crate) granting: GrantOptions,
    pub(crate) rules: Arc<LiveRules>,
    pub(crate) turns: Arc<LiveTurns>,
    pub(crate) executors: KnownExecutors,
    pub(crate) login: Option<Login>,
    pub(crate) sign_ins: Option<ServerSignIns>,
    /// Locked while a change modifies the store and the registry, so that both agree.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Locked while the catalog of a workspace changes, so that the checks against it still hold.
    pub(crate) cataloguing: KeyedLock<WorkspaceId>,
    /// Locked while counts of calls are stored, so that no count is stored twice.
    pub(crate) counting: tokio::sync::Mutex<()>,
    pub(crate) meters: Meters,
    /// The servers applied last. Locked while they change, so that the newest state comes last
    /// (E128).
    pub(crate) applied: tokio::sync::Mutex<Option<Applied>>,
    pub(crate) cuts: Cuts,
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
}

impl Control {
    /// Seeds the user's settings, applies the declarations of the files, and follows the files from
    /// then on. Servers are still connecting when this returns, and an unusable file is logged, not
    /// fatal (E117, E118, E130).
    ///
    /// # Errors
    /// When the store fails, or the registry is closed.
    pub async fn start(registry: Registry, options: ControlOptions) -> Result<Self, ControlError> {
        let ControlOptions {
            files: layers,
            store,
            vault,
            variables,
            audit,
            login,
            sign_ins,
            meters,
            grants,
            granting,
            rules,
            executors,
            defaults,
        } = options;
        let shipper = Shipper::new(&audit, store.as_ref(), vault.as_ref());
        let settings_path = layers.settings.clone();
        let settings = settings_path
            .as_ref()
            .map(|path| SettingsFile::new(path, &layers.workspace_root, layers.env.clone()));
        let tasks = TaskTracker::new();
        let access = Arc::new(Access::load(store.as_ref(), vault.as_ref(), audit.clone()).await?);
        let (events, workspace) = (store.clone().map(Events::new), WorkspaceId::default());
        let has_provider = login.as_ref().is_some_and(|login| !login.providers.is_empty());
        let proof = ProofRule::new(granting.require_proof, has_provider);
        let grants = LiveGrants::load(store.as_ref(), workspace.clone(), grants, proof).await;
        let rules = LiveRules::load(store.as_ref(), workspace.clone(), rules).await;
        let proxies = registry.proxies();
        let shared = Arc::new(Shared {
            registry,
            files: LayerFiles::new(layers, tasks.clone()),
            settings,
            settings_path,
            cuts: Cuts::load(store.as_ref()).await?,
            turns: LiveTurns::load(store.as_ref()).await.map_err(ControlError::Store)?.into(),
            store,
            events,
            vault,
            variables,
            audit,
            shipper: shipper.map(|shipper| Arc::new(tokio::sync::Mutex::new(shipper))),
            trimming: Arc::default(),
            workspace,
            access,
            grants: Arc::new(grants.map_err(ControlError::Store)?),
            granting,
            rules: Arc::new(rules.map_err(ControlError::Store)?),
            executors,
            login: login.map(|options| Login::new(options, &proxies)),
            sign_ins,
            changing: tokio::sync::Mutex::default(),
            cataloguing: KeyedLock::default(),
            counting: tokio::sync::Mutex::default(),
            meters,
            applied: tokio::sync::Mutex::default(),
            tasks,
            closing: CancellationToken::new(),
        });
        audit::start(&shared);
        seeding::seed(&shared, &defaults).await?;
        shared.files.load().await;
        follow::tell_faults(&*follow::apply(&shared).await);
        // Subscribed before the files are followed, so that no change is missed.
        shared.tasks.spawn(follow::run(shared.clone(), shared.files.subscribe()));
        shared.files.start().await;
        follow_store(&shared);
        let control = Self { shared };
        control.begin_counting().await?;
        Ok(control)
    }

    /// The registry of servers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The store, for all data that must outlive a restart; `None` without a store.
    #[must_use]
    pub fn store(&self) -> Option<&Store> {
        self.shared.store.as_ref()
    }

    /// The events of sessions; `None` without a store.
    #[must_use]
    pub fn events(&self) -> Option<&Events> {
        self.shared.events.as_ref()
    }

    /// The workspace whose servers the live configuration has.
    #[must_use]
    pub fn home(&self) -> &WorkspaceId {
        &self.shared.workspace
    }

    /// The grants of a workspace, for its runs.
    #[must_use]
    pub fn grants_of(&self, workspace: &WorkspaceId) -> Arc<Grants> {
        self.shared.grants.of(workspace)
    }

    /// The turns of users in sessions.
    #[must_use]
    pub fn turns(&self) -> &LiveTurns {
        &self.shared.turns
    }

    /// The sign-ins to servers; `None` if this process stores no grants.
    #[must_use]
    pub fn sign_ins(&self) -> Option<&SignIns> {
        self.shared.sign_ins.as_ref().map(|all| &all.sign_ins)
    }

    /// Starts a task that [`close`](Self::close) waits for.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.shared.tasks.spawn(task)
    }

    /// A token that [`close`](Self::close) cancels.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.shared.closing.clone()
    }

    /// The variables that the catalog may name, for creators of runs.
    #[must_use]
    pub fn variables(&self) -> &Variables {
        &self.shared.variables
    }

    /// The executors for runs of agents that name them.
    #[must_use]
    pub fn executors(&self) -> &KnownExecutors {
        &self.shared.executors
    }

    /// Stops following files; later changes of files are not applied. The registry and its servers
    /// stay active until they are closed. A second call does nothing (E126).
    pub async fn close(&self) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.files.stop().await;
        shared.tasks.close();
        shared.tasks.wait().await;
        audit::end(shared).await;
        if let Err(error) = self.store_counts().await {
            tracing::warn!("the last call counts of today could not be stored: {error}");
        }
        if let Some(store) = &shared.store {
            store.close().await;
        }
    }
}

/// Follows changes by other daemons on the store, and removes expired rows.
fn follow_store(shared: &Arc<Shared>) {
    if let Some(store) = shared.store.clone() {
        let closing = shared.closing.clone();
        let (of_grants, changes) = (store.clone(), shared.access.changes());
        let following = shared.grants.clone().follow(of_grants, changes, closing.clone());
        shared.tasks.spawn(following);
        shared.tasks.spawn(shared.rules.clone().follow(store.clone(), closing.clone()));
        shared.tasks.spawn(shared.turns.clone().follow(store.clone(), closing.clone()));
        shared.tasks.spawn(shared.access.clone().follow(store, closing));
        shared.tasks.spawn(cuts::follow(shared.clone()));
        shared.tasks.spawn(follow::follow_secrets(shared.clone()));
        Control { shared: shared.clone() }.follow_requests();
    }
    if let Some(events) = shared.events.clone() {
        let closing = shared.closing.clone();
        shared.tasks.spawn(async move {
            closing.run_until_cancelled(Box::pin(events.sweep_daily())).await;
        });
    }
}

impl fmt::Debug for ControlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlOptions").field("files", &self.files).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("registry", &self.registry)
            .field("settings", &self.settings_path)
            .finish_non_exhaustive()
    }
}
