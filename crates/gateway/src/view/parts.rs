//! What each server adds to a view.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, EVERYTHING, Exposed, ServerDefinition};
use narthex_policy::RunPolicy;
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{Inventory, ServerCapabilities, ServerFacts};
use narthex_wire::Era;

use crate::{built_in::BUILT_IN, exposure::shown};

/// One server's part of a view.
pub(crate) struct Part {
    pub(crate) alias: Alias,
    /// Of what the server lists, that which callers may see.
    pub(super) inventory: Arc<Inventory>,
    pub(super) definition: Option<Arc<ServerDefinition>>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) era: Era,
    /// The server's own result of `initialize` or `server/discover`.
    pub(crate) facts: Bytes,
}

/// The servers that a caller sees: ready ones that policy attaches (E72).
pub(crate) fn seen_rows<'s>(
    snapshot: &'s Snapshot,
    policy: &RunPolicy,
) -> impl Iterator<Item = (Alias, &'s Arc<ServerRow>, &'s ServerFacts)> {
    snapshot.servers.iter().filter_map(|row| {
        let alias = row.alias.clone().filter(|alias| policy.is_attached(alias))?;
        let facts = row.facts.as_deref().filter(|_| row.is_ready())?;
        Some((alias, row, facts))
    })
}

/// Their parts.
pub(crate) fn parts(snapshot: &Snapshot, policy: &RunPolicy) -> Vec<Part> {
    let part = |(alias, row, facts): (Alias, &Arc<ServerRow>, &ServerFacts)| Part {
        alias,
        inventory: shown(row),
        definition: row.definition.clone(),
        capabilities: facts.capabilities,
        era: facts.revision.era(),
        facts: facts.result.clone(),
    };
    seen_rows(snapshot, policy).map(part).collect()
}

impl Part {
    /// Takes what the server lists for one client instead of what it lists for all.
    pub(crate) fn sees(&mut self, listed: &Arc<Inventory>, era: Era) {
        self.inventory = listed.shown(self.exposed());
        self.era = era;
    }

    /// That of the built-in server.
    pub(crate) fn built_in(inventory: Arc<Inventory>, facts: Bytes) -> Self {
        let (alias, era) = (Alias::built_in(), Era::Modern);
        Self { alias, inventory, definition: None, capabilities: BUILT_IN, era, facts }
    }

    pub(super) fn exposed(&self) -> &Exposed {
        self.definition.as_ref().map_or(&EVERYTHING, |definition| &definition.exposed)
    }
}
