//! What the servers of a run had when they first listed for it (D10). Tools, prompts and templates
//! that a server adds or changes later are for the next run: a definition that was looked at cannot
//! be exchanged in the midst of a run (S23). Resources are content, and come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{Alias, ServerState};
use narthex_upstream::{Inventory, InventoryEntry, Listed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{MountSet, ServerRow};

/// The first lists of a run's own servers.
#[derive(Debug, Clone, Default)]
pub struct FirstLists(BTreeMap<Alias, First>);

/// The same by digests, to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLists(BTreeMap<Alias, KeptServer>);

#[derive(Debug, Clone)]
enum First {
    /// As it was listed here: it costs nothing as long as the server lists the same.
    Listed(Arc<Inventory>),
    /// As it was listed before this process was.
    Kept(KeptServer),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeptServer {
    tools: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    templates: BTreeMap<String, KeptDigest>,
}

/// A SHA-256, written in 43 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeptDigest([u8; 32]);

impl FirstLists {
    /// What they have now.
    #[must_use]
    pub fn of(servers: &MountSet) -> Self {
        Self::again(&KeptLists::default(), servers)
    }

    /// What was kept; of servers of which nothing was, what they have now.
    #[must_use]
    pub fn again(kept: &KeptLists, servers: &MountSet) -> Self {
        let first = servers.mounts().iter().filter_map(|mount| {
            let found = mount.found();
            let first = match kept.0.get(mount.alias()) {
                Some(kept) => First::Kept(kept.clone()),
                // What has listed nothing yet is frozen to nothing.
                None if found.state != ServerState::Ready => return None,
                None => First::Listed(found.inventory.clone()),
            };
            Some((mount.alias().clone(), first))
        });
        Self(first.collect())
    }

    /// The same by digests.
    #[must_use]
    pub fn kept(&self) -> KeptLists {
        let kept = self.0.iter().map(|(alias, first)| {
            let kept = match first {
                First::Listed(inventory) => KeptServer::of(inventory),
                First::Kept(kept) => kept.clone(),
            };
            (alias.clone(), kept)
        });
        KeptLists(kept.collect())
    }

    /// Whether a server is among them.
    #[must_use]
    pub fn has(&self, alias: &Alias) -> bool {
        self.0.contains_key(alias)
    }

    /// A row as the run sees it.
    #[must_use]
    pub fn row(&self, row: Arc<ServerRow>) -> Arc<ServerRow> {
        let first = row.alias.as_ref().and_then(|alias| self.0.get(alias));
        let Some(first) = first else { return row };
        let seen = first.of(&row.inventory);
        match Arc::ptr_eq(&seen, &row.inventory) {
            true => row,
            false => Arc::new(row.with_inventory(seen)),
        }
    }
}

impl First {
    /// What of a later inventory was there at first.
    fn of(&self, now: &Arc<Inventory>) -> Arc<Inventory> {
        match self {
            Self::Listed(first) => unchanged(first, now),
            Self::Kept(kept) => now.only(|list, entry| {
                let kept = kept.list(list);
                kept.is_none_or(|kept| kept.get(&*entry.key) == Some(&KeptDigest::of(entry)))
            }),
        }
    }
}

/// What of an inventory is as it was in an earlier one.
#[must_use]
pub fn unchanged(first: &Arc<Inventory>, now: &Arc<Inventory>) -> Arc<Inventory> {
    if Arc::ptr_eq(first, now) {
        return now.clone();
    }
    let before: std::collections::HashMap<_, _> =
        first.entries().map(|(list, entry)| ((list, &*entry.key), &entry.raw)).collect();
    now.only(|list, entry| {
        list == Listed::Resource || before.get(&(list, &*entry.key)) == Some(&&entry.raw)
    })
}

impl KeptServer {
    fn of(inventory: &Inventory) -> Self {
        let digests = |list: Listed| {
            // Of two of one name the first counts, and so it does here.
            let entries = inventory.list(list).iter().rev();
            entries.map(|entry| (entry.key.to_string(), KeptDigest::of(entry))).collect()
        };
        Self {
            tools: digests(Listed::Tool),
            prompts: digests(Listed::Prompt),
            templates: digests(Listed::Template),
        }
    }

    /// `None` for what does not freeze.
    fn list(&self, list: Listed) -> Option<&BTreeMap<String, KeptDigest>> {
        match list {
            Listed::Tool => Some(&self.tools),
            Listed::Prompt => Some(&self.prompts),
            Listed::Template => Some(&self.templates),
            Listed::Resource => None,
        }
    }
}

impl KeptDigest {
    fn of(entry: &InventoryEntry) -> Self {
        Self(*entry.digest())
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn inventory(tools: &[(&str, &'static str)], resources: &[&str]) -> Arc<Inventory> {
        let definitions = [Listed::Tool, Listed::Prompt, Listed::Template].into_iter();
        let definitions = definitions.flat_map(|list| {
            let entry = |raw: &'static str| Bytes::from_static(raw.as_bytes());
            tools.iter().map(move |(name, raw)| (list, InventoryEntry::new(name, entry(raw))))
        });
        let resource = |uri: &&str| (Listed::Resource, InventoryEntry::new(uri, Bytes::new()));
        Arc::new(Inventory::new(definitions.chain(resources.iter().map(resource))))
    }

    fn names(inventory: &Inventory, list: Listed) -> Vec<&str> {
        inventory.list(list).iter().map(|entry| &*entry.key).collect()
    }

    /// D10, S23: what is added or changed is not there, what is removed is gone, and what comes
    /// back as it was is there again; the same from digests that were written down.
    #[test]
    fn s23_a_definition_cannot_be_exchanged() {
        let first = inventory(&[("a", "{1}"), ("b", "{2}"), ("c", "{3}")], &["r:1"]);
        let kept = KeptServer::of(&first);
        let kept: KeptServer =
            serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
        for first in [First::Listed(first.clone()), First::Kept(kept)] {
            let changed = inventory(&[("a", "{1}"), ("b", "{!}"), ("d", "{2}")], &["r:2"]);
            let seen = first.of(&changed);
            for list in [Listed::Tool, Listed::Prompt, Listed::Template] {
                assert_eq!(names(&seen, list), ["a"], "{list:?}");
            }
            assert_eq!(names(&seen, Listed::Resource), ["r:2"], "resources are content");
            assert!(seen.tool("a").is_some() && seen.tool("b").is_none());
            let again = inventory(&[("c", "{3}"), ("b", "{2}"), ("a", "{1}")], &[]);
            assert!(Arc::ptr_eq(&first.of(&again), &again), "nothing is copied");
        }
    }

    #[test]
    fn a_digest_that_is_none_is_refused() {
        for bad in ["", "AAAA", &"A".repeat(44), &"!".repeat(43)] {
            let text = serde_json::json!({ "tools": { "a": bad } });
            assert!(serde_json::from_value::<KeptServer>(text).is_err(), "{bad}");
        }
    }
}
