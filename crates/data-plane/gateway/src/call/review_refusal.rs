//! Refusals for definitions that are under review in their run (S22 to S24), and the review of
//! lists that arrive after the run's start.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use narthex_model::{Alias, CallErrorKind};
use narthex_policy::Item;
use narthex_registry::{HeldNames, ServerRow};
use narthex_upstream::{ClientIdentity, Inventory, Listed};
use narthex_wire::Message;

use crate::view::Handling;
use crate::view::exposed;
use crate::{
    Caller, RunView,
    call::{identify::own_alias, refusal::Refusal, route::own_item},
    gateway::Shared,
    runs::run::RunRows,
};

/// True if models may read this text of a server about itself: the text is part of the run's frozen
/// lists, or of the pinned ones.
pub(crate) fn may_be_told(run: &RunView, row: &ServerRow, text: &str) -> bool {
    let is_of_run = row.alias.as_ref().is_none_or(|alias| run.may_be_told(alias, text));
    is_of_run && row.lets_tell(text)
}

/// The definitions of live servers under review that a run sees.
fn pinned(rows: &RunRows) -> HeldNames {
    let mut all = HeldNames::default();
    for row in rows.servers() {
        if let Some(said) = &row.pinned {
            all.extend(&said.held().names);
        }
    }
    all
}

/// The items that servers of the catalog have changed since the run began.
fn changed(run: &RunView) -> HeldNames {
    let mut all = HeldNames::default();
    for (alias, _, names) in run.changed() {
        names.iter().for_each(|(list, name)| all.add(&alias, *list, name));
    }
    all
}

/// The lists of a run's servers that were sent to review.
pub(crate) type LookedAt = HashMap<Alias, Arc<Inventory>>;

/// The future of a review of a server's lists.
pub type LookingAt<'a> = Pin<Box<dyn Future<Output = Option<Arc<Inventory>>> + Send + 'a>>;

impl Shared {
    /// Sends definitions to review that servers of the catalog have changed since a run began
    /// (S23). The review stores and reports them, and puts them under review for other runs as
    /// well.
    pub(crate) fn look_at_changed(&self, run: &Arc<RunView>, looked: &mut LookedAt) {
        let Some(source) = self.run_source.get() else { return };
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
            self.spawn(async move {
                if source.look_at(&run, &alias, &listed).await.is_some() {
                    source.keep_lists(&run);
                }
            });
        }
    }

    /// The refusal instead of "not found" for an item that is under review. An item that the rules
    /// of its server hide is not found, and the caller gets no other answer for it.
    pub(crate) fn held_back(
        &self,
        caller: &Caller,
        handling: Handling,
        asked: &Message,
    ) -> Option<Refusal> {
        let item = own_item(handling, asked).ok()?;
        let list = match &item {
            Item::Tool(_) => Listed::Tool,
            Item::Prompt(_) => Listed::Prompt,
            Item::Resource(_) => Listed::Template,
            Item::Task(_) | Item::Server => return None,
        };
        let (own, limit) = (own_alias(caller), self.options.name_limit);
        let snapshot = self.snapshot(&caller.run);
        let of_run = caller.run.held_back().find(own, list, item.name(), limit);
        let of_live = || pinned(&snapshot).find(own, list, item.name(), limit);
        let on_links = || self.held_on_links(caller).find(own, list, item.name(), limit);
        let of_changed = || changed(&caller.run).find(own, list, item.name(), limit);
        let (unaccepted, from_then) =
            ("in a way that no human has accepted", ", for runs created after that");
        // Changed items come first: soon they wait for a human as well.
        let ((alias, name), how, from_then) = if let Some(found) = of_changed() {
            (found, "differently than at the creation of the run", from_then)
        } else if let Some(found) = of_run {
            (found, unaccepted, from_then)
        } else {
            (of_live().or_else(on_links)?, unaccepted, "")
        };
        let exactly = match item {
            Item::Tool(_) => Item::Tool(name.into()),
            Item::Prompt(_) => Item::Prompt(name.into()),
            other => other,
        };
        let row = snapshot.get(alias.as_str()).filter(|row| exactly.is_exposed(exposed(row)))?;
        let text = format!(
            "server `{}` defines this {how}, so it is under review until an admin of the workspace \
             accepts it{from_then}",
            row.name
        );
        Some(Refusal::call(CallErrorKind::DefinitionChanged, text))
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
        let Some(source) = self.run_source.get() else {
            // Without a reviewer, items under review by name are refused here, too.
            let held = run.held_back().kept();
            return Ok(listed.only(|list, entry| !held.has(alias, list, &entry.key)));
        };
        source.look_at(run, alias, listed).await.ok_or_else(|| {
            let text = format!("the lists of server `{alias}` could not be reviewed; try again");
            Refusal::call(CallErrorKind::TransportError, text)
        })
    }
}
