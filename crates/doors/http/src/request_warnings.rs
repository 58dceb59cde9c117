//! Warnings about grant requests of runs. This file imports no other file of the door, so that the
//! API and the console can both use it.

use narthex_control::{Control, ControlError, GrantRequestRow, GrantRequestStatus};
use narthex_model::WorkspaceId;

/// The warning of each request, if it waits and a human should know of a probable mistake in it.
/// Warnings name scopes of servers, so that callers who may not read the catalog get none.
pub(crate) async fn warnings(
    control: &Control,
    workspace: &WorkspaceId,
    rows: &[GrantRequestRow],
    reads_catalog: bool,
) -> Result<Vec<Option<String>>, ControlError> {
    let is_pending = |row: &GrantRequestRow| row.status == GrantRequestStatus::Pending;
    let required = match reads_catalog && rows.iter().any(is_pending) {
        true => Some(control.required_scopes(workspace).await?),
        false => None,
    };
    let warning =
        |row: &GrantRequestRow| required.as_ref().filter(|_| is_pending(row))?.warning_of(&row.of);
    Ok(rows.iter().map(warning).collect())
}
