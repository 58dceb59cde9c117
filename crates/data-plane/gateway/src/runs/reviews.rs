//! Reviews of lists that arrive after the start of a run, and the first lists that freeze the run.

use std::{collections::HashMap, sync::Arc};

use narthex_model::{Alias, CallErrorKind};
use narthex_registry::FirstList;
use narthex_upstream::{ClientIdentity, Inventory};
use tokio_util::task::TaskTracker;

use super::source::Source;
use crate::{RunView, refusal::Refusal};

/// The lists of a run's servers that were sent to review.
pub(crate) type LookedAt = HashMap<Alias, Arc<Inventory>>;

impl Source {
    /// Sends definitions to review that servers of the catalog have changed since a run began
    /// (S23). The review stores and reports them, and puts them under review for other runs as
    /// well.
    pub(crate) fn look_at_changed(
        &self,
        run: &Arc<RunView>,
        looked: &mut LookedAt,
        tasks: &TaskTracker,
    ) {
        let Some(source) = self.get() else { return };
        for (alias, listed, names) in run.changed() {
            let before = looked.insert(alias.clone(), listed.clone());
            if before.is_some_and(|before| Arc::ptr_eq(&before, &listed)) {
                continue;
            }
            tracing::warn!(
                run.id = %run.id, server.name = %alias,
                "{} of its definitions have changed since the run was created, so the run cannot \
                 use them any more",
                names.len()
            );
            let (source, run) = (source.clone(), run.clone());
            tasks.spawn(async move {
                if source.look_at(&run, &alias, &listed).await.is_some() {
                    source.keep_lists(&run);
                }
            });
        }
    }

    /// Sends the lists of servers to review that had listed nothing when the run began. The part
    /// that the run may have becomes their first lists (X-E47).
    pub(crate) fn look_at_arrived(
        &self,
        run: &Arc<RunView>,
        looked: &mut LookedAt,
        tasks: &TaskTracker,
    ) {
        let Some(source) = self.get() else { return };
        for (alias, listed) in run.awaited() {
            let before = looked.insert(alias.clone(), listed.clone());
            if before.is_some_and(|before| Arc::ptr_eq(&before, &listed)) {
                continue;
            }
            let (source, run) = (source.clone(), run.clone());
            tasks.spawn(async move {
                if let Some(reviewed) = source.look_at(&run, &alias, &listed).await {
                    run.arrived(&alias, &reviewed);
                    source.keep_lists(&run);
                }
            });
        }
    }

    /// The part of a server's lists that a run may have, if these are the run's first lists on
    /// links of this kind; otherwise all of the lists.
    pub(crate) async fn looked_at(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> Result<Arc<Inventory>, Refusal> {
        let has_first = run.variants(alias).is_none_or(|variants| variants.has(alias, client));
        if has_first || run.held_back().server(alias).is_none() {
            return Ok(listed.clone());
        }
        let Some(source) = self.get() else {
            // Without a reviewer, items under review by name are refused here, too.
            let held = run.held_back().kept();
            return Ok(listed.only(|list, entry| !held.has(alias, list, &entry.key)));
        };
        source.look_at(run, alias, listed).await.ok_or_else(|| {
            let text = format!("the lists of server `{alias}` could not be reviewed; try again");
            Refusal::call(CallErrorKind::TransportError, text)
        })
    }

    /// The first lists of a server for a run on a link of this kind; `None` if these are not
    /// frozen. New first lists are stored, so that they survive a restart.
    pub(crate) async fn first_of(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> Result<Option<FirstList>, Refusal> {
        let Some(variants) = run.variants(alias) else { return Ok(None) };
        let listed = self.looked_at(run, alias, client, listed).await?;
        let (first, is_new) = variants.first_of(alias, client, &listed);
        self.keep_first(run, is_new);
        Ok(Some(first))
    }

    /// The part of a server's lists on a link of this kind that is unchanged since a run's first
    /// lists. All of the lists if they are not frozen.
    pub(crate) async fn unchanged(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: Arc<Inventory>,
    ) -> Result<Arc<Inventory>, Refusal> {
        let Some(variants) = run.variants(alias) else { return Ok(listed) };
        let first = self.looked_at(run, alias, client, &listed).await?;
        let (seen, is_new) = variants.unchanged(alias, client, &first, &listed);
        self.keep_first(run, is_new);
        Ok(seen)
    }

    fn keep_first(&self, run: &Arc<RunView>, is_new: bool) {
        if let Some(source) = self.get().filter(|_| is_new) {
            source.keep_lists(run);
        }
    }
}
