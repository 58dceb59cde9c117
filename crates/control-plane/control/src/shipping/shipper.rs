//! Moves the audit's records from the disk into the store, in order and each once.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::UNIX_EPOCH,
};

use narthex_audit::{
    Audit, LineColumns, SpoolBatch, SpoolGrown, SpoolReader, YIELD_EVERY, line_hash,
};
use narthex_model::Timestamp;
use narthex_store::{AuditChain, AuditRow, StatementError, Store};
use narthex_vault::{Vault, VaultError, Voucher};

use crate::shipping::Spooled;

/// Moves records in batches.
#[derive(Debug)]
pub(crate) struct Shipper {
    /// The reader of the spool. Reading blocks the thread.
    reader: Arc<Mutex<SpoolReader>>,
    store: Store,
    vault: Option<Vault>,
    /// True if the last batch was full.
    is_behind: bool,
}

/// The reason why events are not moved. They stay in the spool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShipError {
    /// The spool cannot be read.
    #[error("the files of the audit cannot be read: {0}")]
    Spool(#[source] io::Error),
    /// A statement of the store failed.
    #[error("{0}")]
    Store(#[source] StatementError),
    /// The vault cannot mark a chain.
    #[error("{0}")]
    Vault(#[source] VaultError),
    /// Another process was faster; this process may still move the events after these.
    #[error("another process moves the same events")]
    Contended,
    /// A thread that reads files failed.
    #[error("a thread that reads files failed: {0}")]
    Bug(#[source] tokio::task::JoinError),
}

impl Shipper {
    /// Creates a shipper. `None` if the audit has no spool, or there is no store.
    #[must_use]
    pub(crate) fn new(audit: &Audit, store: Option<&Store>, vault: Option<&Vault>) -> Option<Self> {
        let reader = Arc::new(Mutex::new(audit.reader()?));
        Some(Self { reader, store: store?.clone(), vault: vault.cloned(), is_behind: false })
    }

    /// A signal that the spool may have further events.
    #[must_use]
    pub(crate) fn grown(&self) -> SpoolGrown {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).grown()
    }

    /// True if the last batch had the largest possible size.
    #[must_use]
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// The spool that this shipper reads, which knows the moved events.
    #[must_use]
    pub(crate) fn spooled(&self) -> Spooled {
        Spooled::new(self.reader.clone())
    }

    /// Moves a batch; `false` if there is none. Reads and parses on the thread that polls it, for
    /// milliseconds: calls on the same thread would wait.
    ///
    /// # Errors
    /// When the batch stays in the spool; the next step tries it again.
    pub(crate) async fn step(&mut self) -> Result<bool, ShipError> {
        let step = self.try_step().await;
        let is_stuck = step.as_ref().is_err_and(|error| !matches!(error, ShipError::Contended));
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).tell_stuck(is_stuck);
        step
    }

    async fn try_step(&mut self) -> Result<bool, ShipError> {
        let next = self.reader.lock().unwrap_or_else(PoisonError::into_inner).next_batch();
        let next = next.map_err(ShipError::Spool)?;
        self.is_behind = next.as_ref().is_some_and(|batch| batch.is_full);
        let Some(batch) = next else { return Ok(false) };
        self.store(&batch).await?;
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).moved(&batch);
        Ok(true)
    }

    async fn store(&self, batch: &SpoolBatch) -> Result<(), ShipError> {
        let mut chains: BTreeMap<(String, String), (AuditChain, AuditChain)> = BTreeMap::new();
        let mut rows = Vec::new();
        for (index, line) in batch.lines.iter().enumerate() {
            if index.is_multiple_of(YIELD_EVERY) {
                thread::yield_now();
            }
            let Some((row, hash)) = row_of(line) else {
                tracing::error!("a line of the audit's files cannot be read and is skipped");
                continue;
            };
            let name = (row.workspace.clone(), row.writer.clone());
            let chain = match chains.entry(name) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let found = self.store.audit().chain(&row.workspace, &row.writer).await;
                    let found = found.map_err(ShipError::Store)?;
                    let before =
                        found.unwrap_or_else(|| AuditChain::empty(&row.workspace, &row.writer));
                    entry.insert((before.clone(), before))
                }
            };
            // After a crash, lines that were moved before are read again.
            if row.seq <= chain.1.head_seq {
                continue;
            }
            if row.seq > chain.1.head_seq + 1 {
                // If a raised number were accepted, all following events would count as moved
                // already.
                if !is_whole(line, &hash) {
                    tracing::error!(
                        writer = row.writer,
                        seq = row.seq,
                        "a line of the audit's files was changed and is skipped"
                    );
                    continue;
                }
                tracing::error!(
                    writer = row.writer,
                    seq = row.seq,
                    "events of the audit are missing: numbers were skipped before this one"
                );
            }
            (chain.1.head_seq, chain.1.head_hash) = (row.seq, hash);
            rows.push(row);
        }
        let mut grown = Vec::new();
        for (before, now) in chains.into_values().filter(|(before, now)| before != now) {
            let now = vouched(self.vault.as_ref(), &before, now).await.map_err(ShipError::Vault)?;
            grown.push((before, now));
        }
        let is_done = self.store.audit().append(&grown, &rows).await.map_err(ShipError::Store)?;
        if is_done { Ok(()) } else { Err(ShipError::Contended) }
    }
}

/// Marks a chain with a key of the vault. If another program has changed the chain's ends before,
/// the chain keeps a mark that does not match, so that the change is noticed.
///
/// # Errors
/// When the vault cannot make or check a mark.
pub(crate) async fn vouched(
    vault: Option<&Vault>,
    before: &AuditChain,
    mut now: AuditChain,
) -> Result<AuditChain, VaultError> {
    let Some(vault) = vault else { return Ok(now) };
    if before.head_seq > 0 && vouches(Some(vault), before).await? != Some(true) {
        return Ok(now);
    }
    let Voucher { key, mark } = vault.vouch(&vouched_text(&now)).await?;
    (now.key_id, now.seal) = (key.as_str().to_owned(), mark);
    Ok(now)
}

/// True if a mark by one of the vault's keys matches the ends of a chain; `None` without a vault.
///
/// # Errors
/// When the vault cannot check the chain.
pub(crate) async fn vouches(
    vault: Option<&Vault>,
    chain: &AuditChain,
) -> Result<Option<bool>, VaultError> {
    let Some(vault) = vault else { return Ok(None) };
    // A chain without a mark comes from a process without a vault, or an attacker has removed the
    // mark.
    let Some(key) = narthex_model::KeyId::new(&chain.key_id) else { return Ok(Some(false)) };
    let voucher = Voucher { key, mark: chain.seal.clone() };
    vault.vouches(&vouched_text(chain), &voucher).await
}

/// The text that a mark signs.
#[must_use]
pub(crate) fn vouched_text(chain: &AuditChain) -> String {
    let AuditChain { workspace, writer, base_seq, base_hash, head_seq, head_hash, .. } = chain;
    format!("audit chain\n{workspace}\n{writer}\n{base_seq} {base_hash}\n{head_seq} {head_hash}\n")
}

/// The row and the hash of a line; `None` if the line is no event of the audit.
#[must_use]
pub(crate) fn row_of(line: &str) -> Option<(AuditRow, String)> {
    let parsed = LineColumns::read(line)?;
    let row = AuditRow {
        happened_at: Timestamp::read(&parsed.time).unwrap_or(UNIX_EPOCH),
        kind: storable(parsed.kind),
        actor: storable(parsed.actor.id),
        resource: storable(parsed.resource.id),
        run: storable(parsed.run),
        workspace: storable(parsed.workspace),
        writer: storable(parsed.writer),
        seq: parsed.seq,
        document: line.to_owned(),
    };
    Some((row, storable(parsed.hash)))
}

/// True if a line's content matches its hash.
fn is_whole(line: &str, hash: &str) -> bool {
    line_hash(line).is_ok_and(|(made, _)| made == hash)
}

/// Replaces zero bytes, which names from clients may have and no store accepts: one such event
/// would block all later events.
fn storable(text: Cow<'_, str>) -> String {
    match text.as_bytes().contains(&0) {
        true => text.replace('\0', "\u{fffd}"),
        false => text.into_owned(),
    }
}
