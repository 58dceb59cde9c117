//! The registry's rows for commands.

use narthex_client::rows::{Row, Warning};
use narthex_model::ServerFailure;
use narthex_registry::{ServerRow, Snapshot};

/// A row of the registry as commands show it.
fn shown(row: &ServerRow) -> Row {
    let transport = row.definition.as_ref().map(|one| one.transport().as_str().to_owned());
    Row {
        alias: row.name.clone(),
        status: row.state,
        is_overridden: row.is_overridden,
        transport,
        tools: narthex_gateway::shown(row).tools.len(),
        changed: row.changed,
        held_back: row.pinned.as_ref().map_or(0, |said| said.held().count()),
        warnings: row.warnings().into_iter().map(Warning::from).collect(),
        has_logs: row.log.has_output(),
        activity: row.activity.map(str::to_owned),
        error: row.error.as_ref().map(ServerFailure::for_operators),
    }
}

/// Every row of a snapshot that counts: an entry that another one hides does not run (E140).
pub(crate) fn all(snapshot: &Snapshot) -> Vec<Row> {
    let counting = snapshot.servers.iter().filter(|row| !row.is_overridden);
    counting.map(|row| shown(row)).collect()
}
