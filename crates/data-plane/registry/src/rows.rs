//! The rows of a registry, and their change by a new configuration in one step.
//!
//! Each change happens under one lock and waits for no server. So applies come one after the other,
//! and the newest set wins (E128), however slow the servers of an older set are.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use narthex_model::{
    Alias, CallErrorKind, ServerDefinition, ServerFailure, ServerState, command::narthex,
};
use narthex_supervisor::LogRing;
use narthex_upstream::Inventory;

use crate::{
    Declared, Found, Mount, MountIdentity, ServerRow, Sharing,
    config::Entry,
    connection::Before,
    digest::Digest,
    outcome::{Awaited, ServerResult, disabled},
    registry::Shared,
};

/// The error text for a server whose definitions cannot be stored.
fn no_pins() -> String {
    format!(
        "`pinDefinitions` needs a daemon with a store: start one with `{}`, or remove the setting \
         from the entry",
        narthex("up", &[])
    )
}

/// The configured servers and their present state.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) slots: Vec<Slot>,
    /// The names that a person has disabled (E57).
    pub(crate) disabled: BTreeSet<String>,
    pub(crate) is_closed: bool,
    /// Mounts that end as soon as the next snapshot is published.
    leaving: Vec<Leaving>,
}

/// A mount that a row held and no longer holds. The mount ends only when a snapshot without it is
/// published: a caller whose link takes no calls then finds its successor, too (E41).
#[derive(Debug)]
enum Leaving {
    /// Ends after its open calls, if no other owner holds it.
    Released(Mount),
    /// Ends at once: switching a server off cuts through (D5, D10).
    Cut(Mount),
}

/// One row with its mount.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) declared: Declared,
    digest: Option<Digest>,
    /// `None` for an entry that is faulty, disabled or overridden.
    pub(crate) mount: Option<Mount>,
    pub(crate) row: Arc<ServerRow>,
}

impl Slot {
    /// The state found of the server, for another connection to it by a configuration with this
    /// digest. The lists of another configuration were never received, so they are left out.
    fn before(&self, digest: Digest) -> Found {
        let mut found = Found::clone(&self.row.found);
        if self.digest != Some(digest) {
            (found.first, found.changed, found.pinned) = (None, 0, None);
            found.health = Arc::default();
        }
        found
    }

    pub(crate) fn name(&self) -> &str {
        &self.row.name
    }

    /// True if this is the row that counts under its name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        !self.row.is_overridden && self.row.name == name
    }

    /// The answer of the verbs.
    pub(crate) fn awaited(&self) -> Awaited {
        let id = self.name().to_owned();
        match &self.mount {
            Some(mount) => Awaited::Connecting(id, mount.connection().clone()),
            None => Awaited::Known(match &self.row.error {
                Some(error) => ServerResult::Error { id, error: error.for_operators() },
                None if self.row.is_overridden => {
                    let text = "an entry of the same name in another layer is used instead";
                    ServerResult::error(&id, CallErrorKind::ServerDisabled, text)
                }
                None => disabled(&id),
            }),
        }
    }
}

impl Rows {
    pub(crate) fn new(disabled: BTreeSet<String>) -> Self {
        Self { disabled, ..Self::default() }
    }

    /// True if no caller may start this server: it is disabled by its entry, by a person, or in
    /// the row of its name.
    pub(crate) fn is_off(&self, definition: &ServerDefinition) -> bool {
        let name = definition.alias.as_str();
        let row = self.position(name).map(|index| &self.slots[index].row);
        definition.is_disabled
            || self.disabled.contains(name)
            || row.is_some_and(|row| row.state == ServerState::Disabled)
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.slots.iter().position(|slot| slot.is_named(name))
    }

    /// Puts a whole set in place of the present one; servers missing from the set are removed (E2).
    pub(crate) fn replace(&mut self, shared: &Arc<Shared>, set: Vec<Declared>) -> Vec<Awaited> {
        // The slots are indexed by name, since sets may be large. Rows that do not count, and rows
        // whose name is taken, hold no connection.
        let mut before = HashMap::with_capacity(self.slots.len());
        for slot in std::mem::take(&mut self.slots) {
            if !slot.row.is_overridden {
                before.entry(slot.name().to_owned()).or_insert(slot);
            }
        }
        let mut named = HashSet::with_capacity(set.len());
        for declared in set {
            let counts = !declared.is_overridden;
            let is_twice = counts && !named.insert(declared.name().to_owned());
            let slot = if is_twice {
                twice(declared)
            } else {
                let old = counts.then(|| before.remove(declared.name())).flatten();
                self.slot(shared, declared, old, IsRetry::IfFailed)
            };
            self.slots.push(slot);
        }
        // The remaining slots are no longer in the set: their open calls finish (E40).
        before.into_values().for_each(|slot| self.release(slot));
        self.slots.iter().map(Slot::awaited).collect()
    }

    /// Removes the row that counts under a name. Returns `false` if there is no such row.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let removed = self.position(name).map(|index| self.slots.remove(index));
        let is_there = removed.is_some();
        removed.into_iter().for_each(|slot| self.release(slot));
        is_there
    }

    /// Ends the mounts that no row holds any more. To be called after the rows were published.
    pub(crate) fn end_leaving(&mut self) {
        for leaving in self.leaving.drain(..) {
            match leaving {
                Leaving::Released(mount) => drop(mount),
                Leaving::Cut(mount) => mount.connection().cut(),
            }
        }
    }

    fn release(&mut self, slot: Slot) {
        self.leaving.extend(slot.mount.map(Leaving::Released));
    }

    /// Puts one entry in its place, or at the end.
    pub(crate) fn put(
        &mut self,
        shared: &Arc<Shared>,
        declared: Declared,
        retry: IsRetry,
    ) -> Awaited {
        match self.position(declared.name()) {
            Some(index) => {
                let last = self.slots.len() - 1;
                let old = self.slots.swap_remove(index);
                let slot = self.slot(shared, declared, Some(old), retry);
                self.slots.push(slot);
                self.slots.swap(index, last);
                self.slots[index].awaited()
            }
            None => {
                let slot = self.slot(shared, declared, None, retry);
                let awaited = slot.awaited();
                self.slots.push(slot);
                awaited
            }
        }
    }

    /// Builds a slot; keeps the mount of `old` if its configuration is unchanged.
    fn slot(
        &mut self,
        shared: &Arc<Shared>,
        declared: Declared,
        old: Option<Slot>,
        retry: IsRetry,
    ) -> Slot {
        let definition = match &declared.entry {
            Entry::Fault(fault) => {
                let error = ServerFailure::of_operators(fault.error.clone());
                let kept = kept_of(old.as_ref());
                old.into_iter().for_each(|slot| self.release(slot));
                return at_rest(declared, ServerState::Error, Some(error), kept);
            }
            Entry::Server(definition) => Arc::new(definition.clone()),
        };
        let is_off = definition.is_disabled || self.disabled.contains(declared.name());
        if is_off || declared.is_overridden {
            let kept = kept_of(old.as_ref());
            let was_off = old.as_ref().is_some_and(|old| old.row.state == ServerState::Disabled);
            self.leaving.extend(old.and_then(|slot| slot.mount).map(Leaving::Cut));
            if !was_off && !declared.is_overridden {
                // The server ends for owners that have mounted it for themselves, too (D10).
                let mounted = shared.pool.of(&definition.alias);
                self.leaving.extend(mounted.into_iter().map(Leaving::Cut));
            }
            return at_rest(declared, ServerState::Disabled, None, kept);
        }
        if definition.pins_definitions && !shared.options.has_pins {
            let kept = kept_of(old.as_ref());
            old.into_iter().for_each(|slot| self.release(slot));
            let error = ServerFailure::new(CallErrorKind::TransportError, no_pins());
            return at_rest(declared, ServerState::Error, Some(error), kept);
        }
        let digest = shared.key.of_live(&definition, declared.file.as_deref());
        let kept = old.as_ref().and_then(|old| {
            let is_same = old.digest == Some(digest) && retry != IsRetry::Always;
            old.mount.clone().filter(|mount| is_same && mount.connection().is_usable())
        });
        if retry == IsRetry::Always
            && let Some(mount) = old.as_ref().and_then(|old| old.mount.as_ref())
        {
            // A new connection must get the same key. Mounts that share the present connection keep
            // it.
            shared.pool.forget(mount);
            // The program behind the same definition may be another by now.
            mount.found().legacy.forget();
        }
        let mount = kept.unwrap_or_else(|| {
            let before = old.as_ref().map(|old| old.before(digest));
            let file = declared.file.clone();
            let before = Before { found: before.as_ref(), file, ..Before::default() };
            shared.mount_live(&definition, digest, before)
        });
        let listing = old.as_ref().map(|old| old.row.listing.clone()).unwrap_or_default();
        let before = old.as_ref().and_then(|old| old.row.definition.clone());
        let row = ServerRow {
            found: mount.found(),
            connection: Some(mount.id()),
            definition: Some(definition),
            listing,
            ..bare(&declared)
        };
        tell_new_gates(&row, before.as_deref());
        old.into_iter().for_each(|slot| self.release(slot));
        Slot { declared, digest: Some(digest), mount: Some(mount), row: Arc::new(row) }
    }
}

/// Logs the gates without a match of an entry whose gates have changed on a present connection.
fn tell_new_gates(row: &ServerRow, before: Option<&ServerDefinition>) {
    let Some((before, now)) = before.zip(row.definition.as_deref()) else { return };
    if before.gates != now.gates {
        for gate in row.unmatched() {
            tracing::warn!(server.name = %row.name, "{gate}");
        }
    }
}

/// Tells if a present connection is replaced although its configuration has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsRetry {
    /// A connection that has failed is replaced (E51).
    IfFailed,
    /// A person asks for a new connection.
    Always,
}

/// The log of the server's processes so far, and the server's last inventory: both survive changes
/// of its configuration.
fn kept_of(old: Option<&Slot>) -> (LogRing, Arc<Inventory>) {
    let Some(old) = old else { return Default::default() };
    let is_there = !old.row.inventory.is_empty();
    let had = if is_there { &old.row.inventory } else { &old.row.had };
    (old.row.log.clone(), had.clone())
}

/// A row without a connection, with the log and inventory from before.
fn at_rest(
    declared: Declared,
    state: ServerState,
    error: Option<ServerFailure>,
    (log, had): (LogRing, Arc<Inventory>),
) -> Slot {
    let definition = match &declared.entry {
        Entry::Server(definition) => Some(Arc::new(definition.clone())),
        Entry::Fault(_) => None,
    };
    let found = Arc::new(Found { error, log, had, ..Found::new(state) });
    let row = ServerRow { found, definition, ..bare(&declared) };
    Slot { declared, digest: None, mount: None, row: Arc::new(row) }
}

fn twice(declared: Declared) -> Slot {
    let text = format!("`{}` is in the set twice; keep one", declared.name());
    let error = ServerFailure::new(CallErrorKind::TransportError, text);
    let mut slot = at_rest(declared, ServerState::Error, Some(error), Default::default());
    let row = Arc::make_mut(&mut slot.row);
    // The first row in the set has the name.
    row.alias = None;
    slot
}

fn bare(declared: &Declared) -> ServerRow {
    let name = declared.name().to_owned();
    ServerRow {
        alias: Alias::of_server(&name).ok(),
        name,
        provenance: declared.provenance,
        file: declared.file.clone(),
        is_overridden: declared.is_overridden,
        definition: None,
        found: Arc::new(Found::new(ServerState::Error)),
        connection: None,
        listing: Arc::default(),
        mounted: None,
    }
}

impl Shared {
    /// The connection that a live row shares with all callers.
    fn mount_live(
        self: &Arc<Self>,
        definition: &Arc<ServerDefinition>,
        digest: Digest,
        before: Before<'_>,
    ) -> Mount {
        let opened = definition.named_secrets.iter().filter_map(|named| named.opened.as_ref());
        let secrets = opened.map(|id| (id.key.clone(), id.version)).collect();
        let identity = MountIdentity { secrets, ..MountIdentity::default() }.into();
        let key = crate::pool::PoolKey::new(definition, digest, identity, Sharing::Everybody);
        let mount = self.mount(key, definition, self.settings(), before);
        mount.connection().has_row();
        mount
    }
}
