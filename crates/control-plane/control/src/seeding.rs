//! Adds default servers to the user's settings, each at most once (E146).

use std::collections::BTreeSet;

use narthex_model::Alias;
use narthex_registry::layers::{self, DefaultServer, EditError};

use crate::{ControlError, control::Shared};

/// Adds servers that were never seeded. Without settings or a store it adds none, since the seeding
/// could not be recorded.
pub(crate) async fn seed(shared: &Shared, defaults: &[DefaultServer]) -> Result<(), ControlError> {
    let (Some(settings), Some(store)) = (&shared.settings, &shared.store) else { return Ok(()) };
    if defaults.is_empty() {
        return Ok(());
    }
    let names = store.seeded_defaults().names(&shared.workspace).await;
    let names = names.map_err(ControlError::Store)?;
    let before: BTreeSet<_> = names.iter().filter_map(|name| Alias::new(name).ok()).collect();
    let present = match settings.names().await {
        Ok(present) => present,
        Err(error) => {
            // A person must repair the file first. The next start adds the servers.
            tracing::warn!("default servers could not be added: {error}");
            return Ok(());
        }
    };
    let seeding = layers::seed(&before, &present, defaults);
    for default in &seeding.add {
        match settings.add(default.name.as_str(), &default.entry).await {
            Ok(_) => tracing::info!(server.name = %default.name, "added a default server"),
            // Another program has just added the server; its entry stays.
            Err(EditError::Exists { .. }) => {}
            Err(error) => {
                tracing::warn!(
                    server.name = %default.name,
                    "a default server could not be added: {error}"
                );
                return Ok(());
            }
        }
    }
    let seeded = seeding.seeded.iter().map(Alias::as_str);
    store.seeded_defaults().mark(&shared.workspace, seeded).await.map_err(ControlError::Store)
}
