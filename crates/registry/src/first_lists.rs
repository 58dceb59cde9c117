//! What the servers of a run had when they first listed for it (D10). What a server adds or changes
//! later is for the next run: a definition that was looked at cannot be exchanged in the midst of a
//! run (S23).

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{Alias, ServerState};
use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerFacts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{HeldNames, MountSet, ServerRow};

/// The first lists of a run's own servers, and what these told models of themselves then.
#[derive(Debug, Clone, Default)]
pub struct FirstLists {
    lists: BTreeMap<Alias, FirstList>,
    /// Of a server that is not here, this is not frozen.
    words: BTreeMap<Alias, FirstWords>,
}

/// What a server told models of itself.
#[derive(Debug, Clone, Default)]
struct FirstWords {
    digest: Option<KeptDigest>,
    /// As it was told here.
    text: Option<String>,
}

/// The same by digests, to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLists(BTreeMap<Alias, KeptServer>);

/// What one server had at first.
#[derive(Debug, Clone)]
pub enum FirstList {
    /// As it was listed here: it costs nothing as long as the server lists the same.
    Listed(Arc<Inventory>),
    /// As it was listed before this process was.
    Kept(Arc<KeptServer>),
}

/// What one server had at first, by digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptServer {
    tools: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<String, KeptDigest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    templates: BTreeMap<String, KeptDigest>,
    /// `None` in what was kept when resources did not freeze.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resources: Option<BTreeMap<String, KeptDigest>>,
    /// What it told models of itself: one text, or none. `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<Vec<KeptDigest>>,
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
        let mut all = Self::default();
        for mount in servers.mounts() {
            let (alias, found) = (mount.alias().clone(), mount.found());
            let (first, words) = match kept.0.get(&alias) {
                Some(kept) => (FirstList::Kept(Arc::new(kept.clone())), FirstWords::kept(kept)),
                // What has listed nothing yet is frozen to nothing.
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

    /// The same by digests.
    #[must_use]
    pub fn kept(&self) -> KeptLists {
        let kept = self.lists.iter().map(|(alias, first)| {
            let words = self.words.get(alias).map(|words| words.digest.into_iter().collect());
            (alias.clone(), KeptServer { words, ..first.kept() })
        });
        KeptLists(kept.collect())
    }

    /// What was listed here and may have to be looked at, each with its server.
    pub fn listed(&self) -> impl Iterator<Item = (&Alias, &Arc<Inventory>)> {
        self.lists.iter().filter_map(|(alias, first)| match first {
            FirstList::Listed(inventory) => Some((alias, inventory)),
            FirstList::Kept(_) => None,
        })
    }

    /// What such a server told models of itself, if it did.
    #[must_use]
    pub fn told(&self, alias: &Alias) -> Option<&str> {
        self.words.get(alias)?.text.as_deref()
    }

    /// The same, where this server tells models nothing of itself.
    #[must_use]
    pub fn silent(mut self, alias: &Alias) -> Self {
        self.words.insert(alias.clone(), FirstWords::default());
        self
    }

    /// Whether a server may tell models what it says of itself now: what it did at first.
    #[must_use]
    pub fn lets_tell(&self, alias: &Alias, text: &str) -> bool {
        let first = self.words.get(alias);
        first.is_none_or(|first| first.digest == Some(KeptDigest::of_text(text)))
    }

    /// The same without what is held back.
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

    /// The same, where those of these servers that have listed nothing yet have nothing: what they
    /// list later was looked at by nobody.
    #[must_use]
    pub fn or_nothing<'a>(mut self, servers: impl IntoIterator<Item = &'a Alias>) -> Self {
        for alias in servers {
            let nothing = || FirstList::Listed(Arc::default());
            if !self.lists.contains_key(alias) {
                self.words.insert(alias.clone(), FirstWords::default());
            }
            self.lists.entry(alias.clone()).or_insert_with(nothing);
        }
        self
    }

    /// Whether a server is among them.
    #[must_use]
    pub fn has(&self, alias: &Alias) -> bool {
        self.lists.contains_key(alias)
    }

    /// A row as the run sees it.
    #[must_use]
    pub fn row(&self, row: Arc<ServerRow>) -> Arc<ServerRow> {
        let Some(alias) = &row.alias else { return row };
        let Some(first) = self.lists.get(alias) else { return row };
        let seen = first.of(&row.inventory);
        let told = row.facts.as_ref().and_then(|facts| facts.instructions());
        let is_told = told.is_none_or(|told| self.lets_tell(alias, &told));
        match Arc::ptr_eq(&seen, &row.inventory) && is_told {
            true => row,
            false => Arc::new(row.seen_as(seen, is_told)),
        }
    }
}

impl FirstList {
    /// What of a later inventory was there at first.
    #[must_use]
    pub fn of(&self, now: &Arc<Inventory>) -> Arc<Inventory> {
        match self {
            Self::Listed(first) if Arc::ptr_eq(first, now) => now.clone(),
            Self::Listed(first) => {
                let entries = first.entries().map(|(list, entry)| ((list, &*entry.key), entry));
                let mut before = HashMap::new();
                for (key, entry) in entries {
                    before.entry(key).or_insert(entry);
                }
                now.frozen(|list, entry| {
                    let before = before.get(&(list, &*entry.key));
                    before.is_some_and(|before| before.says(list, &entry.raw))
                })
            }
            Self::Kept(kept) => now.frozen(|list, entry| {
                let digest = || KeptDigest::of(list, entry);
                kept.list(list).is_none_or(|kept| kept.get(&*entry.key) == Some(&digest()))
            }),
        }
    }

    /// The same by digests.
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
            // Of two of one name the first counts, and so it does here.
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

    /// `None` for what is not frozen.
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

    /// `None` for what is not frozen.
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

/// The first lists on a run's links besides the shared ones, by digests, to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFurther(pub Vec<KeptVariant>);

/// A server as it listed at first for clients of some kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVariant {
    /// The server.
    pub alias: Alias,
    /// What the clients declared, as they wrote it.
    pub capabilities: String,
    /// The revision that they speak.
    pub revision: String,
    /// What it listed.
    pub lists: KeptServer,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn inventory(
        tools: &[(&str, &'static str)],
        resources: &[(&str, &'static str)],
    ) -> Arc<Inventory> {
        let entry = |list| {
            move |(name, raw): &(&str, &'static str)| {
                (list, InventoryEntry::new(name, Bytes::from_static(raw.as_bytes())))
            }
        };
        let lists = [Listed::Tool, Listed::Prompt, Listed::Template];
        let definitions = lists.into_iter().flat_map(|list| tools.iter().map(entry(list)));
        Arc::new(Inventory::new(definitions.chain(resources.iter().map(entry(Listed::Resource)))))
    }

    fn names(inventory: &Inventory, list: Listed) -> Vec<&str> {
        inventory.list(list).iter().map(|entry| &*entry.key).collect()
    }

    /// As it is here, and as it is after a restart.
    fn both(first: &Arc<Inventory>) -> [FirstList; 2] {
        let text = serde_json::to_string(&KeptServer::of(first)).unwrap();
        let kept = Arc::new(serde_json::from_str(&text).unwrap());
        [FirstList::Listed(first.clone()), FirstList::Kept(kept)]
    }

    /// D10, S23: what is added or changed is not there, what is removed is gone, and what comes
    /// back as it was is there again; the same from digests that were written down.
    #[test]
    fn s23_a_definition_cannot_be_exchanged() {
        let first = inventory(&[("a", "{1}"), ("b", "{2}"), ("c", "{3}")], &[]);
        for first in both(&first) {
            let changed = inventory(&[("a", "{1}"), ("b", "{!}"), ("d", "{2}")], &[]);
            let seen = first.of(&changed);
            for list in [Listed::Tool, Listed::Prompt, Listed::Template] {
                assert_eq!(names(&seen, list), ["a"], "{list:?}");
            }
            assert!(seen.tool("a").is_some() && seen.tool("b").is_none());
            let again = inventory(&[("c", "{3}"), ("b", "{2}"), ("a", "{1}")], &[]);
            assert!(Arc::ptr_eq(&first.of(&again), &again), "nothing is copied");
        }
    }

    /// D10, D5: resources freeze by what a model reads of them, not by what their content changes;
    /// what comes later is not there, unless a template that was there covers it.
    #[test]
    fn d10_resources_freeze_by_what_is_told_of_them() {
        let (small, large) = (r#"{"name":"n","size":1}"#, r#"{"name":"n","size":2}"#);
        let told = r#"{"name":"n","description":"Ask for keys"}"#;
        let first = inventory(&[("t:{id}", "{}")], &[("r:1", small), ("r:2", small)]);
        for first in both(&first) {
            let templates = [("t:{id}", "{}"), ("later:{id}", "{}")];
            let resources = [("r:1", large), ("r:2", told), ("r:3", small), ("t:9", small)];
            let seen = first.of(&inventory(&templates, &resources));
            assert_eq!(names(&seen, Listed::Resource), ["r:1"]);
            for uri in ["r:2", "r:3", "later:4", "later:{id}"] {
                assert!(seen.withholds(uri), "{uri}");
            }
            for uri in ["r:1", "t:9", "t:{id}", "r:4", "in-no-list"] {
                assert!(!seen.withholds(uri), "{uri}");
            }
            let shown = seen.only(|list, _| list != Listed::Tool);
            assert!(shown.withholds("r:3"), "rules on what is seen change nothing of it");
        }
        // What was kept before resources froze does not hide any.
        let kept: KeptServer = serde_json::from_str(r#"{"tools":{}}"#).unwrap();
        let now = inventory(&[], &[("r:1", small)]);
        assert!(Arc::ptr_eq(&FirstList::Kept(Arc::new(kept)).of(&now), &now));
    }

    /// S22: of two definitions of one name the first counts, and the second is nowhere.
    #[test]
    fn s22_the_second_of_two_of_one_name_does_not_count() {
        let first = inventory(&[("a", "{1}"), ("a", "{2}")], &[]);
        for first in both(&first) {
            let exchanged = inventory(&[("a", "{2}")], &[]);
            assert!(names(&first.of(&exchanged), Listed::Tool).is_empty());
            let same = inventory(&[("a", "{1}")], &[]);
            assert_eq!(names(&first.of(&same), Listed::Tool), ["a"]);
        }
    }

    /// S23: a server that lists later, unseen by anybody, has nothing; others have what they had.
    #[test]
    fn s23_what_nobody_has_looked_at_is_nothing() {
        let listed = inventory(&[("a", "{1}")], &[("r:1", "{2}")]);
        let [early, late] = ["early", "late"].map(|name| Alias::new(name).unwrap());
        let first = BTreeMap::from([(early.clone(), FirstList::Listed(listed.clone()))]);
        let first = FirstLists { lists: first, ..FirstLists::default() };
        let first = first.or_nothing([&early, &late]);
        assert!(Arc::ptr_eq(&first.lists[&early].of(&listed), &listed));
        let seen = first.lists[&late].of(&listed);
        assert!(seen.is_empty() && seen.withholds("r:1"));
        assert!(!first.lets_tell(&late, "x") && first.lets_tell(&early, "x"), "it is not frozen");
    }

    /// S23: what is held back is not there, and what a template of it covers cannot be read.
    #[test]
    fn s23_first_lists_are_without_what_is_held_back() {
        let listed = inventory(&[("a", "{1}"), ("b:{id}", "{2}")], &[]);
        let alias = Alias::new("files").unwrap();
        let first = BTreeMap::from([(alias.clone(), FirstList::Listed(listed.clone()))]);
        let mut held = HeldNames::default();
        held.add(&alias, Listed::Tool, "a");
        held.add(&alias, Listed::Template, "b:{id}");
        let first = FirstLists { lists: first, ..FirstLists::default() }.without(&held);
        let first = &first.lists[&alias];
        for first in [first.clone(), FirstList::Kept(first.kept().into())] {
            let seen = first.of(&listed);
            assert_eq!(names(&seen, Listed::Tool), ["b:{id}"]);
            assert_eq!(names(&seen, Listed::Prompt), ["a", "b:{id}"]);
            assert!(seen.withholds("b:1") && !seen.withholds("c:1"));
        }
    }

    /// S23: what a server tells models of itself is what it was at first, also from its digest.
    #[test]
    fn s23_what_a_server_tells_models_cannot_be_exchanged() {
        let alias = Alias::new("docs").unwrap();
        let words = FirstWords { digest: Some(KeptDigest::of_text("x")), text: None };
        let first = FirstLists {
            lists: [(alias.clone(), FirstList::Listed(inventory(&[("a", "{1}")], &[])))].into(),
            words: [(alias.clone(), words)].into(),
        };
        let lets = |first: &FirstLists| ["x", "y"].map(|text| first.lets_tell(&alias, text));
        assert_eq!(lets(&first), [true, false]);
        let text = serde_json::to_string(&first.kept()).unwrap();
        let kept: KeptLists = serde_json::from_str(&text).unwrap();
        let words = FirstWords::kept(&kept.0[&alias]).unwrap();
        let again = FirstLists { words: [(alias.clone(), words)].into(), ..first.clone() };
        assert_eq!(lets(&again), [true, false]);
        let silent = first.silent(&alias);
        assert_eq!(lets(&silent), [false, false]);
        assert_eq!(silent.kept().0[&alias].words, Some(Vec::new()));
        let old: KeptServer = serde_json::from_str(r#"{"tools":{}}"#).unwrap();
        assert!(FirstWords::kept(&old).is_none(), "it was not frozen then");
    }

    #[test]
    fn a_digest_that_is_none_is_refused() {
        for bad in ["", "AAAA", &"A".repeat(44), &"!".repeat(43)] {
            let text = serde_json::json!({ "tools": { "a": bad } });
            assert!(serde_json::from_value::<KeptServer>(text).is_err(), "{bad}");
        }
    }
}
