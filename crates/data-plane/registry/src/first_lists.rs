//! The first lists of a run's servers (D10). Definitions that a server adds or changes later are
//! for the next run: no server can exchange a reviewed definition during a run (S23).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{Alias, ServerState};
use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerFacts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{HeldNames, MountSet, ServerRow};

/// The first lists of a run's own servers, and each server's first instructions to models.
#[derive(Debug, Clone, Default)]
pub struct FirstLists {
    lists: BTreeMap<Alias, FirstList>,
    /// First instructions by server. A server that is missing here has no frozen instructions.
    words: BTreeMap<Alias, FirstWords>,
    /// Servers that have listed nothing yet: what they list first becomes their first list, once it
    /// is reviewed.
    awaited: BTreeSet<Alias>,
}

/// The first instructions of a server to models.
#[derive(Debug, Clone, Default)]
struct FirstWords {
    digest: Option<KeptDigest>,
    /// The text, if this process received it.
    text: Option<String>,
}

/// First lists as digests, for the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLists(BTreeMap<Alias, KeptServer>);

/// The first list of one server.
#[derive(Debug, Clone)]
pub enum FirstList {
    /// The list that this process received. Comparing is free as long as the server lists the same.
    Listed(Arc<Inventory>),
    /// The list that an earlier process stored.
    Kept(Arc<KeptServer>),
}

/// The first list of one server, as digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptServer {
    tools: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    templates: BTreeMap<String, KeptDigest>,
    /// `None` in rows that were stored when resources did not freeze.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resources: Option<BTreeMap<String, KeptDigest>>,
    /// The server's instructions to models: one text, or none. `None` as for `resources`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<Vec<KeptDigest>>,
}

/// Compares an entry with the first list: true if unchanged; `None` if its name was not there.
type Comparing<'a> = Box<dyn Fn(Listed, &InventoryEntry) -> Option<bool> + 'a>;

/// A SHA-256, written in 43 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeptDigest([u8; 32]);

impl FirstLists {
    /// Takes the present lists of these servers as their first lists.
    #[must_use]
    pub fn of(servers: &MountSet) -> Self {
        Self::again(&KeptLists::default(), servers)
    }

    /// The stored first lists; for a server without one, its present list.
    #[must_use]
    pub fn again(kept: &KeptLists, servers: &MountSet) -> Self {
        let mut all = Self::default();
        for mount in servers.mounts() {
            let (alias, found) = (mount.alias().clone(), mount.found());
            let (first, words) = match kept.0.get(&alias) {
                Some(kept) => (FirstList::Kept(Arc::new(kept.clone())), FirstWords::kept(kept)),
                // A server that has listed nothing yet has no first list.
                None if found.state != ServerState::Ready => continue,
                None => {
                    let words = FirstWords::of(found.facts.as_deref());
                    (FirstList::Listed(found.inventory.clone()), Some(words))
                }
            };
            all.words.extend(words.map(|words| (alias.clone(), words)));
            all.lists.insert(alias, first);
        }
        all
    }

    /// The first lists in their stored form: digests instead of definitions. A server that has
    /// listed nothing yet is absent.
    #[must_use]
    pub fn kept(&self) -> KeptLists {
        let lists = self.lists.iter().filter(|(alias, _)| !self.awaits(alias));
        let kept = lists.map(|(alias, first)| {
            let words = self.words.get(alias).map(|words| words.digest.into_iter().collect());
            (alias.clone(), KeptServer { words, ..first.kept() })
        });
        KeptLists(kept.collect())
    }

    /// The lists that this process received, and that may need a review, each with its server.
    pub fn listed(&self) -> impl Iterator<Item = (&Alias, &Arc<Inventory>)> {
        self.lists.iter().filter_map(|(alias, first)| match first {
            FirstList::Listed(inventory) => Some((alias, inventory)),
            FirstList::Kept(_) => None,
        })
    }

    /// The first instructions to models of a server, if this process received any.
    #[must_use]
    pub fn told(&self, alias: &Alias) -> Option<&str> {
        self.words.get(alias)?.text.as_deref()
    }

    /// Replaces the first instructions of this server by none.
    #[must_use]
    pub fn silent(mut self, alias: &Alias) -> Self {
        self.words.insert(alias.clone(), FirstWords::default());
        self
    }

    /// True if models may receive these instructions of a server: they equal its first ones, or its
    /// instructions are not frozen.
    #[must_use]
    pub fn lets_tell(&self, alias: &Alias, text: &str) -> bool {
        let first = self.words.get(alias);
        first.is_none_or(|first| first.digest == Some(KeptDigest::of_text(text)))
    }

    /// Removes the definitions under review.
    #[must_use]
    pub fn without(self, held: &HeldNames) -> Self {
        let without = |(alias, first)| match first {
            FirstList::Listed(listed) => {
                let listed = listed.only(|list, entry| !held.has(&alias, list, &entry.key));
                (alias, FirstList::Listed(listed))
            }
            kept @ FirstList::Kept(_) => (alias, kept),
        };
        let lists = self.lists.into_iter().map(without).collect();
        Self { lists, ..self }
    }

    /// Gives each of these servers without a first list an empty one: no review covers its
    /// definitions before [`Self::arrived`].
    #[must_use]
    pub fn or_nothing<'a>(mut self, servers: impl IntoIterator<Item = &'a Alias>) -> Self {
        for alias in servers {
            let nothing = || FirstList::Listed(Arc::default());
            if !self.lists.contains_key(alias) {
                self.words.insert(alias.clone(), FirstWords::default());
                self.awaited.insert(alias.clone());
            }
            self.lists.entry(alias.clone()).or_insert_with(nothing);
        }
        self
    }

    /// True if the server has listed nothing that was reviewed: its first list is empty until then.
    #[must_use]
    pub fn awaits(&self, alias: &Alias) -> bool {
        self.awaited.contains(alias)
    }

    /// Takes the reviewed part of the lists of a server that had listed nothing (X-E47). Changes
    /// nothing for a server with a first list.
    #[must_use]
    pub fn arrived(&self, alias: &Alias, reviewed: &Arc<Inventory>) -> Self {
        let mut all = self.clone();
        if all.awaited.remove(alias) {
            all.lists.insert(alias.clone(), FirstList::Listed(reviewed.clone()));
        }
        all
    }

    /// True if the server has a first list.
    #[must_use]
    pub fn has(&self, alias: &Alias) -> bool {
        self.lists.contains_key(alias)
    }

    /// The definitions of a server that differ from its first ones: see [`FirstList::changed`].
    #[must_use]
    pub fn changed(&self, alias: &Alias, now: &Arc<Inventory>) -> Vec<(Listed, Arc<str>)> {
        self.lists.get(alias).map(|first| first.changed(now)).unwrap_or_default()
    }

    /// The row in the run's view: later definitions and instructions are left out. A server whose
    /// first lists are not reviewed yet is being connected.
    #[must_use]
    pub fn row(&self, row: Arc<ServerRow>) -> Arc<ServerRow> {
        let Some(alias) = &row.alias else { return row };
        let Some(first) = self.lists.get(alias) else { return row };
        if self.awaits(alias) && row.state == ServerState::Ready {
            return Arc::new(row.awaited());
        }
        let (seen, had) = (first.of(&row.inventory), first.of(&row.had));
        let is_same = Arc::ptr_eq(&seen, &row.inventory) && Arc::ptr_eq(&had, &row.had);
        let told = row.facts.as_ref().and_then(|facts| facts.instructions());
        let is_told = told.is_none_or(|told| self.lets_tell(alias, &told));
        match is_same && is_told {
            true => row,
            false => Arc::new(row.seen_as(seen, is_told).that_had(had)),
        }
    }
}

impl FirstList {
    /// The part of a later inventory that is unchanged since the first list.
    #[must_use]
    pub fn of(&self, now: &Arc<Inventory>) -> Arc<Inventory> {
        match self {
            _ if now.is_empty() => now.clone(),
            Self::Listed(first) if Arc::ptr_eq(first, now) => now.clone(),
            Self::Listed(_) | Self::Kept(_) => {
                let is_as_before = self.comparing();
                now.frozen(|list, entry| is_as_before(list, entry) == Some(true))
            }
        }
    }

    /// The entries of a later inventory whose name was in the first list with another definition.
    #[must_use]
    pub fn changed(&self, now: &Arc<Inventory>) -> Vec<(Listed, Arc<str>)> {
        match self {
            Self::Listed(first) if Arc::ptr_eq(first, now) => Vec::new(),
            Self::Listed(_) | Self::Kept(_) => {
                let is_as_before = self.comparing();
                let is_changed = |(list, entry): &(Listed, &InventoryEntry)| {
                    is_as_before(*list, entry) == Some(false)
                };
                let changed = now.entries().filter(is_changed);
                changed.map(|(list, entry)| (list, entry.key.clone())).collect()
            }
        }
    }

    /// Compares an entry with the first list: true if unchanged; `None` if its name was not there.
    fn comparing(&self) -> Comparing<'_> {
        match self {
            Self::Listed(first) => {
                let entries = first.entries().map(|(list, entry)| ((list, &*entry.key), entry));
                let mut before = HashMap::new();
                for (key, entry) in entries {
                    before.entry(key).or_insert(entry);
                }
                Box::new(move |list, entry| {
                    let before = before.get(&(list, &*entry.key));
                    before.map(|before| before.says(list, &entry.raw))
                })
            }
            Self::Kept(kept) => Box::new(|list, entry| {
                let Some(kept) = kept.list(list) else { return Some(true) };
                kept.get(&*entry.key).map(|kept| *kept == KeptDigest::of(list, entry))
            }),
        }
    }

    /// The list as digests.
    #[must_use]
    pub fn kept(&self) -> KeptServer {
        match self {
            Self::Listed(inventory) => KeptServer::of(inventory),
            Self::Kept(kept) => KeptServer::clone(kept),
        }
    }
}

impl KeptServer {
    fn of(inventory: &Inventory) -> Self {
        let digests = |list: Listed| {
            // If two entries have one name, the first entry counts, here as elsewhere.
            let entries = inventory.list(list).iter().rev();
            entries.map(|entry| (entry.key.to_string(), KeptDigest::of(list, entry))).collect()
        };
        Self {
            tools: digests(Listed::Tool),
            prompts: digests(Listed::Prompt),
            templates: digests(Listed::Template),
            resources: Some(digests(Listed::Resource)),
            words: None,
        }
    }

    /// The digests of one list; `None` for a list that is not frozen.
    fn list(&self, list: Listed) -> Option<&BTreeMap<String, KeptDigest>> {
        match list {
            Listed::Tool => Some(&self.tools),
            Listed::Prompt => Some(&self.prompts),
            Listed::Template => Some(&self.templates),
            Listed::Resource => self.resources.as_ref(),
        }
    }
}

impl FirstWords {
    fn of(facts: Option<&ServerFacts>) -> Self {
        let text = facts.and_then(|facts| facts.instructions()).map(Cow::into_owned);
        Self { digest: text.as_deref().map(KeptDigest::of_text), text }
    }

    /// The stored digest of the instructions; `None` if the instructions are not frozen.
    fn kept(kept: &KeptServer) -> Option<Self> {
        let digest = kept.words.as_ref()?.first().copied();
        Some(Self { digest, text: None })
    }
}

impl KeptDigest {
    fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    fn of(list: Listed, entry: &InventoryEntry) -> Self {
        Self(*entry.digest(list))
    }
}

impl Serialize for KeptDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for KeptDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        let length = URL_SAFE_NO_PAD.decode_slice(&text, &mut bytes);
        match length {
            Ok(32) => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(serde::de::Error::custom("no digest of a definition")),
        }
    }
}

/// The first lists on a run's further links, as digests, for the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFurther(pub Vec<KeptVariant>);

/// The first lists that a server gave to one kind of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVariant {
    /// The server.
    pub alias: Alias,
    /// Declared capabilities of the clients, verbatim.
    pub capabilities: String,
    /// The protocol revision of the clients.
    pub revision: String,
    /// The first lists of the server on such a link.
    pub lists: KeptServer,
}

#[cfg(test)]
mod tests;
