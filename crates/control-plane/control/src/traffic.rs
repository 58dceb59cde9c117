//! Limits of traffic (O100): this module sets them, and the gateway enforces them with daily counts
//! that outlive a restart. No call waits for this module.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::{Agent, ServerEntry};
use narthex_model::{
    Alias, CatalogKind, ChildLimits, RunBudget, TrafficLimits, WorkspaceId, WorkspaceLimits,
};
use narthex_store::{CallCount, Store};
use narthex_traffic::{DayCount, Meter, MeterKey, MeterKind, RunMeters};
use serde_json::json;

use crate::{By, CatalogError, Control, ControlError, FieldError};

/// Pause between two times at which counts are stored. A crash may lose about as much.
const STORE_EVERY: Duration = Duration::from_secs(5);
/// Number of days for which counts are stored.
const KEPT_DAYS: u32 = 31;
/// Number of counts that one transaction stores.
const BATCH: usize = 500;

/// The kinds of the catalog whose calls are counted.
const COUNTED: [(CatalogKind, MeterKind); 2] = [AGENT, SERVER];
const AGENT: (CatalogKind, MeterKind) = (CatalogKind::Agent, MeterKind::Agent);
const SERVER: (CatalogKind, MeterKind) = (CatalogKind::Server, MeterKind::Server);

/// Use of a workspace today, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Days since 1970, in UTC.
    pub day: u32,
    /// Milliseconds until the day ends.
    pub day_left_ms: u64,
    /// The workspace, and all objects in it that have limits or were used today.
    pub rows: Vec<UsageRow>,
}

/// Number of calls in a workspace today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallsToday {
    /// Days since 1970, in UTC.
    pub day: u32,
    /// The number.
    pub calls: u64,
}

/// Today's use of one object, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// The kind of the object.
    pub kind: MeterKind,
    /// The object's id or name.
    pub name: String,
    /// Number of calls today, with the stored ones of other daemons.
    pub calls: u64,
    /// Number of open calls at this daemon.
    pub open: u32,
    /// The object's limits.
    pub limits: TrafficLimits,
}

impl Control {
    /// The limits of a workspace.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn workspace_limits(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<WorkspaceLimits, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let text = store.traffic().limits(workspace).await.map_err(ControlError::Store)?;
        Ok(text.map(|text| stored_limits(&text)).unwrap_or_default())
    }

    /// Replaces the limits of a workspace by those in a JSON text. Limits of traffic apply to every
    /// call from now on, also of active runs; limits of runs apply to runs that are created later.
    ///
    /// # Errors
    /// When the text is wrong, there is no store or no such workspace, or the store fails.
    pub async fn set_workspace_limits(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        by: By,
    ) -> Result<WorkspaceLimits, ControlError> {
        let limits = read_limits(text).map_err(CatalogError::Refused)?;
        let workspace = workspace.clone();
        let set = async move |this: Self| {
            let _together = this.shared.cataloguing.take(&workspace).await;
            let store = this.catalog_store(&workspace).await?;
            let document = json!(limits).to_string();
            let event = AuditEvent::new(kind::LIMITS_UPDATED, by.clone()).in_workspace(&workspace);
            let event = event.on("workspace", workspace.to_string());
            let noted = this.note(event.with("limits", json!(limits))).await?;
            let stored = store.traffic().set_limits(&workspace, &document, &by.id).await;
            stored.map_err(ControlError::Store)?;
            let meter =
                this.shared.meters.get(&key(&workspace, MeterKind::Workspace, workspace.as_str()));
            meter.set_limits(limits.traffic);
            noted.done().await;
            tracing::info!(%workspace, limits = document, by = %by.id, "the limits were changed");
            Ok(limits)
        };
        self.to_the_end(set).await
    }

    /// Use of a workspace today, and its limits.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn usage(&self, workspace: &WorkspaceId) -> Result<Usage, ControlError> {
        let limits = self.workspace_limits(workspace).await?;
        self.store_counts().await?;
        let (meters, store) = (&self.shared.meters, self.catalog_store(workspace).await?);
        let day = meters.today();
        let mut rows = Rows::default();
        rows.row(MeterKind::Workspace, workspace.as_str()).limits = limits.traffic;
        for (kind, of) in COUNTED {
            let all = store.catalog(kind).all(workspace).await.map_err(ControlError::Store)?;
            for one in &all {
                rows.row(of, &one.id).limits = limits_of(kind, &one.document);
            }
        }
        if *workspace == self.shared.workspace {
            for row in &self.shared.registry.snapshot().servers {
                let definition = row.definition.as_ref().filter(|_| !row.is_overridden);
                if let (Some(alias), Some(definition)) = (&row.alias, definition) {
                    rows.row(MeterKind::LocalServer, alias.as_str()).limits = definition.traffic;
                }
            }
        }
        let stored = store.traffic().of_workspace(workspace, day).await;
        for count in stored.map_err(ControlError::Store)? {
            if let Some(kind) = MeterKind::parse(&count.kind) {
                rows.row(kind, &count.name).calls = u64::try_from(count.calls).unwrap_or(0);
            }
        }
        for meter in meters.all().iter().filter(|meter| meter.key().workspace == *workspace) {
            let row = rows.row(meter.key().kind, &meter.key().name);
            row.calls = row.calls.max(meter.calls(day));
            row.open = meter.open();
        }
        Ok(Usage { day, day_left_ms: meters.day_left_ms(), rows: rows.told() })
    }

    /// Number of calls in a workspace today: that of [`Control::usage`], without its further rows.
    /// Calls at other daemons on the store count a moment later.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn calls_today(&self, workspace: &WorkspaceId) -> Result<CallsToday, ControlError> {
        let (meters, store) = (&self.shared.meters, self.catalog_store(workspace).await?);
        let day = meters.today();
        let stored = store.traffic().of_workspace(workspace, day).await;
        let stored = stored.map_err(ControlError::Store)?;
        let own = stored
            .iter()
            .find(|count| MeterKind::parse(&count.kind) == Some(MeterKind::Workspace))
            .map_or(0, |count| u64::try_from(count.calls).unwrap_or(0));
        let meter = meters.find(&key(workspace, MeterKind::Workspace, workspace.as_str()));
        Ok(CallsToday { day, calls: own.max(meter.map_or(0, |meter| meter.calls(day))) })
    }

    /// The meters of a run, for its workspace, its agent, and its servers of the catalog, by alias;
    /// and the budget of children that it may start. All limits are the stored ones.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run_limits(
        &self,
        workspace: &WorkspaceId,
        agent: Option<&str>,
        servers: Vec<(Alias, String)>,
    ) -> Result<(RunMeters, RunBudget), ControlError> {
        // Locked so that no change falls between reading and setting the limits.
        let _together = self.shared.cataloguing.take(workspace).await;
        let of_workspace = key(workspace, MeterKind::Workspace, workspace.as_str());
        let limits = self.workspace_limits(workspace).await?;
        let mut meters = RunMeters {
            workspace: Some(self.meter(&of_workspace, limits.traffic)),
            ..<_>::default()
        };
        if let Some(agent) = agent {
            meters.agent = Some(self.stored_meter(workspace, AGENT, agent).await?);
        }
        for (alias, id) in servers {
            let meter = self.stored_meter(workspace, SERVER, &id).await?;
            meters.servers.push((alias, meter));
        }
        Ok((meters, limits.run))
    }

    /// The limits for agents of a workspace that start others.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn child_limits(&self, workspace: &WorkspaceId) -> Result<ChildLimits, ControlError> {
        Ok(self.workspace_limits(workspace).await?.children)
    }

    /// The meter of an object of the catalog, with the stored limits. A removed object keeps its
    /// last limits. The caller has checked that the workspace exists.
    async fn stored_meter(
        &self,
        workspace: &WorkspaceId,
        (kind, of): (CatalogKind, MeterKind),
        id: &str,
    ) -> Result<Arc<Meter>, ControlError> {
        let store = self.needed_store()?;
        let found = store.catalog(kind).find(workspace, id).await.map_err(ControlError::Store)?;
        let meter = self.shared.meters.get(&key(workspace, of, id));
        if let Some(row) = found {
            meter.set_limits(limits_of(kind, &row.document));
        }
        Ok(meter)
    }

    fn meter(&self, key: &MeterKey, limits: TrafficLimits) -> Arc<Meter> {
        let meter = self.shared.meters.get(key);
        meter.set_limits(limits);
        meter
    }

    /// Applies the limits of an object of the catalog that was just stored to the live runs.
    pub(crate) fn limits_changed(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        (id, document): (&str, &str),
    ) {
        let Some((_, of)) = COUNTED.into_iter().find(|(counted, _)| *counted == kind) else {
            return;
        };
        if let Some(meter) = self.shared.meters.find(&key(workspace, of, id)) {
            meter.set_limits(limits_of(kind, document));
        }
    }

    /// Loads today's stored counts and the limits of the local configuration's workspace. Then
    /// starts to store counts at intervals.
    pub(crate) async fn begin_counting(&self) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        let meters = &self.shared.meters;
        let counts = store.traffic().of_day(meters.today()).await.map_err(ControlError::Store)?;
        for count in counts {
            let Some(kind) = MeterKind::parse(&count.kind) else { continue };
            let calls = u64::try_from(count.calls).unwrap_or(0);
            let meter = meters.get(&key(&count.workspace, kind, &count.name));
            meter.restore(DayCount { day: count.day, calls });
        }
        let home = &self.shared.workspace;
        let limits = self.workspace_limits(home).await?;
        self.meter(&key(home, MeterKind::Workspace, home.as_str()), limits.traffic);
        let (this, closing) = (self.clone(), self.shared.closing.clone());
        self.shared.tasks.spawn(async move {
            closing.run_until_cancelled(Box::pin(this.count())).await;
        });
        Ok(())
    }

    async fn count(&self) {
        let meters = &self.shared.meters;
        let mut forgotten = 0;
        loop {
            meters.set_clock();
            let today = meters.today();
            if let Err(error) = self.store_counts().await {
                tracing::warn!("the call counts of today could not be stored yet: {error}");
            } else if forgotten != today {
                match self.forget_counts(today).await {
                    Ok(()) => forgotten = today,
                    Err(error) => tracing::warn!("old call counts could not be removed: {error}"),
                }
            }
            tokio::time::sleep(STORE_EVERY).await;
        }
    }

    async fn forget_counts(&self, today: u32) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        self.shared.meters.forget_unused();
        let forgotten = store.traffic().forget_before(today.saturating_sub(KEPT_DAYS)).await;
        forgotten.map_err(ControlError::Store)
    }

    /// Stores the counts since the last time, and reads the totals of all daemons.
    pub(crate) async fn store_counts(&self) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        let _alone = self.shared.counting.lock().await;
        let mut unstored = Vec::new();
        for meter in self.shared.meters.all() {
            for (counted, more) in meter.unstored() {
                unstored.push((meter.clone(), counted, more));
            }
        }
        for batch in unstored.chunks(BATCH) {
            let more: Vec<_> = batch
                .iter()
                .map(|(meter, counted, more)| count(meter, counted.day, *more))
                .collect();
            store.traffic().add(&more).await.map_err(ControlError::Store)?;
            // Noted now, since these counts are stored even if reading the totals fails.
            for (meter, counted, _) in batch {
                meter.note_stored(*counted, counted.calls);
            }
        }
        let totals = totals(store, &unstored).await.map_err(ControlError::Store)?;
        for (meter, counted, _) in unstored {
            if let Some(total) = totals.get(&(counted.day, meter.key().clone())) {
                meter.note_stored(counted, *total);
            }
        }
        Ok(())
    }
}

/// The stored counts of all daemons for these meters and days.
async fn totals(
    store: &Store,
    of: &[(Arc<Meter>, DayCount, i64)],
) -> Result<HashMap<(u32, MeterKey), u64>, narthex_store::StatementError> {
    let days: std::collections::BTreeSet<u32> = of.iter().map(|(_, one, _)| one.day).collect();
    let mut found = HashMap::new();
    for day in days {
        for count in store.traffic().of_day(day).await? {
            let Some(kind) = MeterKind::parse(&count.kind) else { continue };
            let key = key(&count.workspace, kind, &count.name);
            found.insert((day, key), u64::try_from(count.calls).unwrap_or(0));
        }
    }
    Ok(found)
}

fn count(meter: &Meter, day: u32, more: i64) -> CallCount {
    let MeterKey { workspace, kind, name } = meter.key().clone();
    let (kind, name) = (kind.as_str().to_owned(), name.to_string());
    CallCount { workspace, day, kind, name, calls: more }
}

pub(crate) fn key(workspace: &WorkspaceId, kind: MeterKind, name: &str) -> MeterKey {
    MeterKey { workspace: workspace.clone(), kind, name: name.into() }
}

/// The limits in a stored object; an unreadable object has none.
fn limits_of(kind: CatalogKind, document: &str) -> TrafficLimits {
    let text = document.as_bytes();
    // Most objects have no limits and need not be parsed.
    if !document.contains("\"limits\"") {
        return TrafficLimits::default();
    }
    match kind {
        CatalogKind::Server => {
            let read = ServerEntry::parse(text, None);
            read.map(|parsed| parsed.value.settings.limits).unwrap_or_default()
        }
        CatalogKind::Agent => {
            Agent::parse(text, None).map(|parsed| parsed.value.limits).unwrap_or_default()
        }
        CatalogKind::Capability => TrafficLimits::default(),
    }
}

/// Parses stored limits, which were checked before they were stored.
fn stored_limits(text: &str) -> WorkspaceLimits {
    read_limits(text.as_bytes()).unwrap_or_else(|faults| {
        for fault in &faults {
            tracing::warn!("the stored limits of a workspace cannot be read: {fault}");
        }
        WorkspaceLimits::default()
    })
}

fn read_limits(text: &[u8]) -> Result<WorkspaceLimits, Vec<FieldError>> {
    let mut faults = Vec::new();
    let limits = WorkspaceLimits::parse(text, &mut |place, problem| {
        faults.push(FieldError::invalid(&place.to_string(), problem.to_string(), problem.remedy()));
    });
    let limits = limits.map_err(|problem| {
        vec![FieldError::invalid("", problem.to_string(), "send a JSON object of limits")]
    })?;
    if faults.is_empty() { Ok(limits) } else { Err(faults) }
}

/// Rows by kind and name.
#[derive(Default)]
struct Rows(BTreeMap<(MeterKind, String), UsageRow>);

impl Rows {
    fn row(&mut self, kind: MeterKind, name: &str) -> &mut UsageRow {
        self.0.entry((kind, name.to_owned())).or_insert_with(|| UsageRow {
            kind,
            name: name.to_owned(),
            calls: 0,
            open: 0,
            limits: TrafficLimits::default(),
        })
    }

    fn told(self) -> Vec<UsageRow> {
        let is_told = |row: &UsageRow| {
            let is_used = row.calls > 0 || row.open > 0;
            row.kind == MeterKind::Workspace || is_used || !row.limits.is_none()
        };
        self.0.into_values().filter(is_told).collect()
    }
}
