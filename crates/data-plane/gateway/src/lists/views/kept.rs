//! Views and sets of tools that runs share if they see the same of the same servers.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use narthex_audit::{DefinitionDigest, ToolSet};
use narthex_model::{Alias, Profile, ServerDefinition};
use narthex_policy::RunPolicy;
use narthex_registry::{ConnectionId, Snapshot};
use narthex_upstream::Inventory;

use crate::{
    built_in::Offered,
    view::{View, seen_rows},
};

/// Number of entries from which on a search removes unused ones.
const PRUNED_FROM: usize = 64;

/// The views and sets that are held for as long as some run has them.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    views: HashMap<Sources, (Weak<View>, Weak<ToolSet>)>,
    /// The sets of tools by their contents: other servers may have the same tools.
    sets: HashMap<DefinitionDigest, Weak<ToolSet>>,
    pruned_at: usize,
}

/// The values from which a view is made.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    servers: Vec<Source>,
    /// The profile of the run. A strong reference would keep a replaced one.
    profile: Option<Weak<Profile>>,
}

impl Sources {
    fn identity(&self) -> impl PartialEq + Hash {
        (&self.servers, self.profile.as_ref().map(Weak::as_ptr))
    }
}

impl PartialEq for Sources {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Sources {}

impl Hash for Sources {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The values from which a server's part of a view is made, without a strong reference to any.
#[derive(Debug, Clone)]
pub(super) struct Source {
    alias: Alias,
    connection: Option<ConnectionId>,
    inventory_version: u64,
    /// The lists that runs see. Frozen lists may be a part of the lists that the server has now
    /// (D10).
    inventory: Weak<Inventory>,
    definition: Option<Weak<ServerDefinition>>,
    /// True if the server has instructions for models, which may be under review in a run.
    tells_models: bool,
}

impl Source {
    fn identity(&self) -> impl PartialEq + Hash {
        let definition = self.definition.as_ref().map(Weak::as_ptr);
        let inventory = (self.inventory_version, self.inventory.as_ptr());
        (&self.alias, self.connection, inventory, definition, self.tells_models)
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

pub(super) fn sources(
    snapshot: &Snapshot,
    policy: &RunPolicy,
    built_in: &[(Alias, Arc<Offered>)],
) -> Sources {
    let source = |(alias, row, _): (Alias, &Arc<narthex_registry::ServerRow>, _)| Source {
        alias,
        connection: row.connection,
        inventory_version: row.inventory_version,
        inventory: Arc::downgrade(&row.inventory),
        definition: row.definition.as_ref().map(Arc::downgrade),
        tells_models: row.facts.as_ref().is_some_and(|facts| facts.instructions().is_some()),
    };
    let built_in = built_in.iter().map(|(alias, offered)| Source {
        alias: alias.clone(),
        connection: None,
        inventory_version: 0,
        inventory: Arc::downgrade(&offered.inventory),
        definition: None,
        tells_models: offered.tells_models(),
    });
    let profile = policy.profile().map(|profile| Arc::downgrade(&profile.current()));
    Sources { servers: seen_rows(snapshot, policy).map(source).chain(built_in).collect(), profile }
}

impl Kept {
    pub(super) fn find(&self, sources: &Sources) -> (Option<Arc<View>>, Option<Arc<ToolSet>>) {
        let found = self.views.get(sources);
        found.map(|(view, tools)| (view.upgrade(), tools.upgrade())).unwrap_or_default()
    }

    /// Stores a view; returns the one that another caller has built meanwhile, if there is one.
    pub(super) fn keep(&mut self, sources: Sources, view: Arc<View>) -> Arc<View> {
        if let (Some(view), _) = self.find(&sources) {
            return view;
        }
        if self.views.len() >= self.pruned_at.max(PRUNED_FROM) {
            self.views.retain(|_, (view, set)| view.strong_count() + set.strong_count() > 0);
            self.sets.retain(|_, tools| tools.strong_count() > 0);
            self.pruned_at = 2 * self.views.len();
        }
        let tools = self.set_of(&view);
        self.views.insert(sources, (Arc::downgrade(&view), Arc::downgrade(&tools)));
        view
    }

    pub(super) fn set_of(&mut self, view: &View) -> Arc<ToolSet> {
        let shared = |set: ToolSet| {
            let known = self.sets.get(&set.digest).and_then(Weak::upgrade);
            let set = known.unwrap_or_else(|| Arc::new(set));
            self.sets.insert(set.digest, Arc::downgrade(&set));
            set
        };
        view.tool_set(shared)
    }
}
