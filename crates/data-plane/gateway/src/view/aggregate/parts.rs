//! The parts of a view, one from each server.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, EVERYTHING, Exposed, Profile, ServerDefinition, ToolOverride};
use narthex_policy::{LiveProfile, RunPolicy};
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
    /// The profile of the caller, which narrows the part and gives tools other names.
    pub(super) profile: Option<Arc<Profile>>,
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
    let profile = policy.profile().map(LiveProfile::current);
    let part = |(alias, row, facts): (Alias, &Arc<ServerRow>, &ServerFacts)| {
        let part = Part {
            alias,
            inventory: shown(row),
            definition: row.definition.clone(),
            profile: profile.clone(),
            capabilities: facts.capabilities,
            era: facts.revision.era(),
            facts: facts.result.clone(),
        };
        part.narrowed()
    };
    seen_rows(snapshot, policy).map(part).collect()
}

impl Part {
    /// Replaces the server's lists for all clients by its lists for one client.
    pub(crate) fn sees(&mut self, listed: &Arc<Inventory>, era: Era) {
        self.inventory = self.in_profile(&listed.shown(self.exposed()));
        self.era = era;
    }

    /// The part of the server that the caller's profile shows. A server of which only tools are
    /// visible has no other primitive.
    pub(super) fn narrowed(mut self) -> Self {
        self.inventory = self.in_profile(&self.inventory);
        if self.profile.as_ref().is_some_and(|profile| !profile.is_whole(&self.alias)) {
            let ServerCapabilities { tools, logging, tasks, list_changed, .. } = self.capabilities;
            let some = ServerCapabilities { tools, logging, tasks, list_changed, ..<_>::default() };
            self.capabilities = some;
        }
        self
    }

    fn in_profile(&self, inventory: &Arc<Inventory>) -> Arc<Inventory> {
        match self.profile.as_ref().map(|profile| profile.exposed(&self.alias)) {
            None => inventory.clone(),
            Some(Some(exposed)) => inventory.shown(exposed),
            // The profile was replaced since the server was found in it.
            Some(None) => Arc::default(),
        }
    }

    /// The tools of the server that the caller's profile renames, each with its given name.
    pub(super) fn given_names(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let all = self.profile.iter().flat_map(|profile| profile.overrides_of(&self.alias));
        all.filter_map(|(tool, given)| Some((tool, given.name.as_ref()?)))
    }

    /// The words that the caller's profile gives to a tool, by the server's own name of the tool.
    pub(super) fn override_of(&self, tool: &str) -> Option<&ToolOverride> {
        self.profile.as_ref()?.override_of(&self.alias, tool)
    }

    /// The part of the built-in server under this alias, with these capabilities.
    #[must_use]
    pub(crate) fn built_in(
        alias: Alias,
        inventory: Arc<Inventory>,
        capabilities: ServerCapabilities,
        facts: Bytes,
    ) -> Self {
        let (era, profile) = (Era::Modern, None);
        Self { alias, inventory, definition: None, profile, capabilities, era, facts }
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
