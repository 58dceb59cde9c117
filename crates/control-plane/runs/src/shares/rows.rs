//! Shares as they are stored.

use narthex_model::ShareId;
use narthex_shares::Snapshot;
use narthex_store::{ShareRow, SharedFileRow};

use super::Sharer;
use crate::RunError;

/// The share that a run has copied, anew or in place of an earlier one.
pub(super) fn new_row(
    sharer: &Sharer,
    title: Option<String>,
    earlier: Option<&ShareRow>,
    snapshot: &Snapshot,
) -> Result<ShareRow, RunError> {
    let id = match earlier {
        Some(earlier) => earlier.id,
        None => {
            let mut bytes = [0; ShareId::BYTES];
            getrandom::fill(&mut bytes).map_err(RunError::Randomness)?;
            ShareId::new(bytes)
        }
    };
    let named = || match &*snapshot.name {
        "." => "Files".to_owned(),
        name => name.to_owned(),
    };
    let title = title.or_else(|| earlier.map(|earlier| earlier.title.clone()));
    let now = std::time::SystemTime::now();
    Ok(ShareRow {
        workspace: sharer.workspace.clone(),
        id,
        session: sharer.session,
        run: sharer.run,
        title: title.unwrap_or_else(named),
        kind: snapshot.kind.as_str().to_owned(),
        entry_point: snapshot.entry_point.clone(),
        total_size: snapshot.total_size,
        revision: 0,
        created_at: now,
        updated_at: now,
    })
}

/// A file of the share.
pub(super) fn file_row(file: &narthex_shares::SharedFile) -> SharedFileRow {
    SharedFileRow {
        path: file.path.clone(),
        size: file.size,
        content_type: file.content_type.to_owned(),
        hash: file.hash.to_string(),
    }
}
