//! The parts of a view, one from each server.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, EVERYTHING, Exposed, ServerDefinition};
use narthex_policy::RunPolicy;
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{Inventory, ServerCapabilities, ServerFacts};
use narthex_wire::Era;

/// One server's part of a view.
#[derive(Debug)]
pub(crate) struct Part {
    /// The server's alias.
    pub alias: Alias,
    /// The part of the server's list that callers may see.
    pub(super) inventory: Arc<Inventory>,
    pub(super) definition: Option<Arc<ServerDefinition>>,
    /// The primitives that the server has.
    pub capabilities: ServerCapabilities,
    /// The era that the server's entries are written for.
    pub era: Era,
    /// The server's own result of `initialize` or `server/discover`.
    pub facts: Bytes,
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

/// The parts of the servers that a caller sees.
#[must_use]
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
    /// Replaces the server's lists for all clients by its lists for one client.
    pub(crate) fn sees(&mut self, listed: &Arc<Inventory>, era: Era) {
        self.inventory = listed.shown(self.exposed());
        self.era = era;
    }

    /// The part of the built-in server under this alias, with these capabilities.
    #[must_use]
    pub(crate) fn built_in(
        alias: Alias,
        inventory: Arc<Inventory>,
        capabilities: ServerCapabilities,
        facts: Bytes,
    ) -> Self {
        Self { alias, inventory, definition: None, capabilities, era: Era::Modern, facts }
    }

    pub(super) fn exposed(&self) -> &Exposed {
        self.definition.as_ref().map_or(&EVERYTHING, |definition| &definition.exposed)
    }
}

/// The part of a server's inventory that callers may see (D5).
#[must_use]
pub fn shown(row: &ServerRow) -> Arc<Inventory> {
    row.inventory.shown(exposed(row))
}

/// The rules of a server. A faulty entry has none, and nothing to see.
#[must_use]
pub(crate) fn exposed(row: &ServerRow) -> &Exposed {
    row.definition.as_ref().map_or(&EVERYTHING, |definition| &definition.exposed)
}
