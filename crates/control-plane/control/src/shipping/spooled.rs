//! Answers which events of the spool were moved, and how many wait.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_audit::{KnownHead, SpoolFiles, SpoolReader, Waiting};
use narthex_model::Timestamp;
use narthex_store::AuditChain;

use crate::shipping::{ShipError, row_of};

/// Largest number of bytes of the spool that are read to count events. Without this limit, one
/// request could make the daemon read 4 GiB.
const COUNTED_BYTES: u64 = 16 * 1024 * 1024;

/// Answers questions about the spool, also while events are moved.
#[derive(Debug, Clone)]
pub(crate) struct Spooled(Arc<Mutex<SpoolReader>>);

impl Spooled {
    pub(crate) fn new(reader: Arc<Mutex<SpoolReader>>) -> Self {
        Self(reader)
    }

    /// The recorded events of a workspace, or of the installation, that are missing in the store.
    /// `chains` are the chains that the store has. `None` if the store has all events. `is_stuck`
    /// is true if events cannot be moved now.
    pub(crate) async fn waiting(
        &self,
        workspace: &str,
        chains: &[AuditChain],
        is_stuck: bool,
    ) -> Option<Waiting> {
        let reader = self.0.clone();
        let heads = chains.iter().map(|chain| (chain.writer.clone(), chain.head_seq)).collect();
        let mut waiting = Waiting {
            workspace: workspace.to_owned(),
            events: 0,
            is_more: true,
            since: None,
            is_stuck,
        };
        let counted = tokio::task::spawn_blocking(move || {
            let files = reader.lock().unwrap_or_else(PoisonError::into_inner).files();
            let is_all = files.and_then(|files| count(&files, &heads, &mut waiting));
            waiting.is_more = !is_all.unwrap_or_else(|error| {
                tracing::warn!("the size of the audit's files on the disk is incomplete: {error}");
                false
            });
            waiting
        });
        let waiting = counted.await.unwrap_or_else(|error| {
            tracing::error!("the size of the audit's files on the disk is unknown: {error}");
            let workspace = workspace.to_owned();
            Waiting { workspace, events: 0, is_more: true, since: None, is_stuck: true }
        });
        (waiting.is_more || waiting.events > 0).then_some(waiting)
    }

    /// The last events of a workspace, or of the installation, that were moved into the store from
    /// this disk. An attacker who removes a chain from the store cannot change these records of it.
    ///
    /// # Errors
    /// When the spool cannot be read.
    pub(crate) async fn moved(&self, workspace: &str) -> Result<Vec<KnownHead>, ShipError> {
        let (reader, name) = (self.0.clone(), workspace.to_owned());
        let read = tokio::task::spawn_blocking(move || {
            let files = reader.lock().unwrap_or_else(PoisonError::into_inner).files()?;
            files.moved(&name)
        });
        let heads = read.await.map_err(ShipError::Bug)?.map_err(ShipError::Spool)?;
        let known = |head| KnownHead { workspace: workspace.to_owned(), head };
        Ok(heads.into_iter().map(known).collect())
    }
}

/// Counts the waiting events. Returns true if it has read all of them.
fn count(
    files: &SpoolFiles,
    heads: &BTreeMap<String, u64>,
    waiting: &mut Waiting,
) -> io::Result<bool> {
    let mut oldest = None;
    let is_all = files.waiting(COUNTED_BYTES, |line| {
        let Some((row, _)) = row_of(line) else { return };
        // After a crash, lines that were moved before are read again.
        let is_moved = row.seq <= heads.get(&row.writer).copied().unwrap_or_default();
        if row.workspace == waiting.workspace && !is_moved {
            waiting.events += 1;
            oldest = oldest.into_iter().chain([row.happened_at]).min();
        }
    });
    waiting.since = oldest.map(|oldest| Timestamp::new(oldest).to_string());
    is_all
}
