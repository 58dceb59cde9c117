//! Applies the declarations of the files to the registry, now and at each change.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use narthex_model::Provenance;
use narthex_registry::{
    config::Entry,
    watch::{LayersEvent, LayersState, Subscription},
};

use crate::{
    Control, ControlError,
    control::Shared,
    filled::{Applied, Filled},
    live::Polls,
};

/// Status of one followed file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStatus {
    /// The file.
    pub file: PathBuf,
    /// The file's layer.
    pub provenance: Provenance,
    /// True if a content of the file is in use.
    pub is_present: bool,
    /// Time when the content in use was read; `None` while none is in use, or if the time is
    /// unknown.
    pub applied_at: Option<SystemTime>,
    /// Reason why the present content is not used.
    pub error: Option<String>,
    /// Time when the present content was found, while it is refused.
    pub refused_since: Option<SystemTime>,
    /// Time of the first reading that missed the file, if an earlier one had found it.
    pub gone_since: Option<SystemTime>,
    /// Time of the last reading.
    pub last_read: Option<SystemTime>,
}

/// The result of reading the files again.
#[derive(Debug, Clone, PartialEq)]
pub struct Reloaded {
    /// The servers in use, sorted by name.
    pub servers: Vec<String>,
    /// Status of the files.
    pub files: Vec<FileStatus>,
}

impl Control {
    /// Reads the files again and applies their declarations. Of the process's settings, only the
    /// variables for the catalog are read again.
    ///
    /// A missing file declares nothing. An unusable file has an error, and its last good content
    /// stays in use.
    ///
    /// # Errors
    /// When no file is followed.
    pub async fn reload(&self) -> Result<Reloaded, ControlError> {
        let variables = self.variables().clone();
        let listed = tokio::task::spawn_blocking(move || variables.reload()).await;
        let listed = listed.map_err(ControlError::Bug)?;
        if self.shared.files.load().await.files.is_empty() {
            return Err(ControlError::NoFiles);
        }
        let state = apply(&self.shared).await;
        let mut servers: Vec<_> = state
            .declared
            .iter()
            .filter(|declared| !declared.is_overridden)
            .map(|declared| declared.name().to_owned())
            .collect();
        servers.sort_unstable();
        let mut files = statuses(&state);
        files.extend(listed.err().and_then(|error| self.settings_status(error)));
        Ok(Reloaded { servers, files })
    }

    /// Status of the settings of this process, which cannot be read again.
    fn settings_status(&self, error: String) -> Option<FileStatus> {
        let now = Some(SystemTime::now());
        Some(FileStatus {
            file: self.variables().file()?.clone(),
            provenance: Provenance::Settings,
            is_present: true,
            applied_at: None,
            error: Some(error),
            refused_since: now,
            gone_since: None,
            last_read: now,
        })
    }

    /// Subscribes to changes of the files from now on.
    #[must_use]
    pub fn file_events(&self) -> Subscription {
        self.shared.files.subscribe()
    }

    /// Status of the followed files.
    #[must_use]
    pub fn files(&self) -> Vec<FileStatus> {
        statuses(&self.shared.files.current())
    }
}

fn statuses(state: &LayersState) -> Vec<FileStatus> {
    let status = |file: &narthex_registry::watch::FileState| FileStatus {
        file: file.file.to_path_buf(),
        provenance: file.provenance,
        is_present: file.is_present,
        applied_at: file.applied_at,
        error: file.error.as_ref().map(ToString::to_string),
        refused_since: file.refused_since,
        gone_since: file.gone_since,
        last_read: file.last_read,
    };
    state.files.iter().map(status).collect()
}

/// Applies the declarations of the files after each change, until the daemon stops.
pub(crate) async fn run(shared: Arc<Shared>, mut events: Subscription) {
    loop {
        let event = tokio::select! {
            biased;
            () = shared.closing.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(LayersEvent::Changed { .. }) => apply_news(&shared).await,
            // The error begins with the file.
            Some(LayersEvent::Failed { error, .. }) => {
                tracing::warn!("{error}; the daemon uses its earlier content");
            }
            Some(LayersEvent::Recovered { file }) => {
                tracing::info!("{} can be used again", file.display());
            }
            Some(LayersEvent::Gone { file }) => {
                let file = file.display();
                tracing::warn!(
                    "{file} was deleted or moved; its servers are unavailable until it is back"
                );
            }
        }
    }
}

/// Applies the current declarations of the files.
pub(crate) async fn apply(shared: &Shared) -> Arc<LayersState> {
    let mut applied = shared.applied.lock().await;
    let state = shared.files.current();
    put(shared, &state, &mut applied).await;
    state
}

/// Applies the current declarations, unless they were applied last: applying them again would retry
/// failed servers.
async fn apply_news(shared: &Shared) {
    let mut applied = shared.applied.lock().await;
    let state = shared.files.current();
    if !applied.as_ref().is_some_and(|applied| Arc::ptr_eq(&applied.declared, &state.declared)) {
        put(shared, &state, &mut applied).await;
    }
}

async fn put(shared: &Shared, state: &LayersState, applied: &mut Option<Applied>) {
    for warning in state.warnings.iter() {
        tracing::warn!("{warning}");
    }
    // A daemon in the background has its rows nowhere but in its log.
    for one in state.declared.iter().filter(|one| one.is_editable()) {
        if let Entry::Fault(fault) = &one.entry {
            tracing::warn!(server.name = %fault.name, "{}", fault.error.message);
        }
    }
    let declared = state.declared.clone();
    let filled = Filled::of(&declared, shared.vault.as_ref(), &shared.workspace).await;
    match shared.registry.apply(filled.entries.clone()) {
        Ok(_connecting) => tracing::debug!(servers = state.declared.len(), "applied"),
        Err(error) => tracing::debug!(%error, "not applied"),
    }
    let changed = shared.registry.set_profiles(&state.profiles, &state.declared);
    for profile in changed.iter().flat_map(|all| all.iter()) {
        for fault in &profile.faults {
            tracing::warn!(profile = profile.name, "a profile is refused: {fault}");
        }
    }
    *applied = Some(Applied { declared, filled });
}

/// Opens the secrets of the applied declarations anew, and replaces the servers whose values have
/// changed (D38). Other servers stay as they are.
pub(crate) async fn fill_anew(shared: &Shared) {
    let mut applied = shared.applied.lock().await;
    let Some(Applied { declared, filled }) = &mut *applied else { return };
    if !filled.names_secrets() {
        return;
    }
    let now = Filled::of(declared, shared.vault.as_ref(), &shared.workspace).await;
    let changed = now.changed_since(filled);
    if !changed.is_empty()
        && let Err(error) = shared.registry.replace_entries(changed)
    {
        tracing::debug!(%error, "new values of secrets are not applied");
    }
    *filled = now;
}

/// Follows changes of secrets by other daemons on the store, and opens values again that could not
/// be read, until the daemon stops.
pub(crate) async fn follow_secrets(shared: Arc<Shared>) {
    let mut polls = Polls::until(shared.closing.clone());
    while polls.next().await {
        if are_secrets_behind(&shared).await {
            fill_anew(&shared).await;
        }
    }
}

/// True if the applied servers have other values of secrets than the store.
async fn are_secrets_behind(shared: &Shared) -> bool {
    let Some(vault) = &shared.vault else { return false };
    let is_named = |applied: &Applied| applied.filled.names_secrets();
    if !shared.applied.lock().await.as_ref().is_some_and(is_named) {
        return false;
    }
    match vault.list(&shared.workspace).await {
        Ok(present) => {
            let is_behind = |applied: &Applied| applied.filled.is_behind(&present);
            shared.applied.lock().await.as_ref().is_some_and(is_behind)
        }
        // The reader of cuts reports a store that fails.
        Err(error) => {
            tracing::debug!(%error, "the versions of secrets cannot be read");
            false
        }
    }
}

pub(crate) fn tell_faults(state: &LayersState) {
    for file in &state.files {
        if let Some(error) = &file.error {
            tracing::warn!("{error}");
        }
    }
}
