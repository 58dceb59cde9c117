//! Compares the definitions that a server lists with its earlier ones. Pure.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use narthex_model::json::Node;
use narthex_store::{KnownDefinition, NewDefinition};
use narthex_upstream::{Inventory, InventoryEntry, Listed};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    Change, DEFINITION_MAX, Definition, Difference, LookAlike, Names, Resemblance, Unwanted,
    compare, harmless, screen, screen_raw,
};

/// The longest name or URI that is stored, in bytes: ordinary ones have some dozens.
const NAME_BYTES_MAX: usize = 500;
/// Largest stored part of a text that cannot be read, in characters.
const UNREAD_MAX: usize = 2000;

/// The lists whose definitions are stored.
pub(crate) const LISTS: [(Listed, &str); 4] = [
    (Listed::Tool, "tool"),
    (Listed::Prompt, "prompt"),
    (Listed::Template, "template"),
    (Listed::Resource, "resource"),
];
/// Kind and name of a server's instructions to models.
pub(crate) const INSTRUCTIONS: &str = "instructions";
/// Members of a resource that a model reads. All other members, such as its size, change with its
/// content.
const TOLD: [&str; 5] = ["uri", "name", "title", "description", "mimeType"];
/// Members that can hold more text than a name.
const PROSE: [&str; 2] = ["title", "description"];

/// The reason why a human must review a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefinitionReason {
    /// The content differs from that of an earlier definition of the name.
    Changed,
    /// A definition that runs have, or that no run may get, had another name before.
    Renamed,
    /// The name resembles one of another server.
    LookAlike,
    /// A rule has flagged the definition.
    Flagged,
}

impl DefinitionReason {
    /// The name in JSON.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Renamed => "renamed",
            Self::LookAlike => "look_alike",
            Self::Flagged => "flagged",
        }
    }
}

/// A definition that a server lists.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The list; `None` for the server's instructions to models.
    pub(crate) list: Option<Listed>,
    kind: &'static str,
    pub(crate) name: String,
    text: String,
    /// Digest of the content and the key.
    pub(crate) digest: String,
    definition: Option<Definition>,
    findings: Vec<Value>,
}

/// The stored data with which a list is compared.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The server's texts that runs have; of one name the first counts.
    pub(crate) texts: Vec<KnownDefinition>,
    /// Definitions under review, and rejected ones.
    pub(crate) unwanted: Vec<KnownDefinition>,
    /// All definitions that the server ever listed, by kind and name. Only a definition with a new
    /// name can be pinned without a review (S23).
    pub(crate) names: HashSet<(String, String)>,
    /// The tools of other servers, as pairs of server and tool.
    pub(crate) others: Vec<(String, String)>,
    /// Names of further servers, shared by the comparisons of many lists.
    pub(crate) beside: Vec<Arc<Names>>,
}

impl Seen {
    /// All definitions of a server, and its instructions to models. Of two entries of one name the
    /// first counts. At this point only unreadable definitions have findings.
    pub(crate) fn all(inventory: &Inventory, told: Option<&str>) -> Vec<Self> {
        let told = told.filter(|told| !told.trim().is_empty()).map(|told| {
            let raw = json!({ INSTRUCTIONS: told }).to_string().into();
            Self::new(None, INSTRUCTIONS, &InventoryEntry::new(INSTRUCTIONS, raw))
        });
        let of_list = |(list, kind)| {
            let mut names = HashSet::new();
            let entries = inventory.list(list).iter();
            let first = entries.filter(move |entry| names.insert(entry.key.clone()));
            first.filter_map(move |entry| match list {
                Listed::Resource => Self::of_resource(kind, entry),
                list => Some(Self::new(Some(list), kind, entry)),
            })
        };
        LISTS.into_iter().flat_map(of_list).chain(told).collect()
    }

    /// The part of a resource that models read. `None` for a resource with only a name and no
    /// findings: servers may have any number of these.
    fn of_resource(kind: &'static str, entry: &InventoryEntry) -> Option<Self> {
        let Ok(Node::Object(members)) = Node::parse(&entry.raw) else {
            // An unreadable resource is screened in its raw form.
            return Some(Self::new(Some(Listed::Resource), kind, entry));
        };
        let told: Vec<_> =
            members.iter().filter(|(name, _)| TOLD.contains(&name.as_str())).collect();
        let has_prose = told.iter().any(|(name, _)| PROSE.contains(&name.as_str()));
        let member =
            |(name, node): &&(String, Node)| format!("{}:{}", json!(name), node.to_value());
        let told = format!("{{{}}}", told.iter().map(member).collect::<Vec<_>>().join(","));
        let entry = InventoryEntry::new(&entry.key, told.into());
        let is_looked_at = has_prose || !screen_raw(&entry.key, &entry.raw).is_empty();
        is_looked_at.then(|| Self::new(Some(Listed::Resource), kind, &entry))
    }

    fn new(list: Option<Listed>, kind: &'static str, entry: &InventoryEntry) -> Self {
        let definition = Definition::read(&entry.key, &entry.raw).ok();
        let mut hash = Sha256::new();
        hash.update(kind);
        match &definition {
            Some(definition) => {
                hash.update([1]);
                hash.update(definition.digest());
            }
            None => {
                hash.update([0]);
                hash.update(&entry.raw);
            }
        }
        let text = match definition {
            Some(_) => String::from_utf8_lossy(&entry.raw).into_owned(),
            None => {
                let beginning = &entry.raw[..entry.raw.len().min(DEFINITION_MAX)];
                harmless(&String::from_utf8_lossy(beginning), UNREAD_MAX)
            }
        };
        let findings = match definition {
            Some(_) => Vec::new(),
            None => as_json(&screen_raw(&entry.key, &entry.raw)),
        };
        let digest = hex::encode(hash.finalize());
        let name = entry.key.to_string();
        Self { list, kind, name, text, digest, definition, findings }
    }

    /// True if the name can be stored.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.name.len() <= NAME_BYTES_MAX && !self.name.contains('\0')
    }
}

/// Judges definitions that are not known yet, at most `most` of them, in the order of the list.
///
/// Each costs a screening of its whole text. `shows_flagged` lets runs have a new definition that
/// is flagged.
pub(crate) fn judge(
    server: &str,
    all: &[Seen],
    (is_known, most): (impl Fn(&Seen) -> bool, usize),
    known: &Known,
    shows_flagged: bool,
) -> Vec<NewDefinition> {
    let new: Vec<_> = all.iter().filter(|seen| !is_known(seen)).take(most).collect();
    if new.is_empty() {
        return Vec::new();
    }
    let changes = changes(all, known);
    let unwanted = unwanted(all, known);
    let names = known.others.iter().map(|(server, name)| (server.as_str(), name.as_str()));
    let mut all_names = vec![Arc::new(Names::new(names))];
    all_names.extend(known.beside.iter().cloned());
    let judged = |seen: &Seen| {
        let change = changes.get(&(seen.kind, seen.name.as_str()));
        // Resources come and go, and many are described alike: one in the place of another is a new
        // one. Of unwanted resources the text alone is enough to recognize them.
        let is_named_anew = |change: &&Change| matches!(change, Change::Renamed { .. });
        let is_resource = seen.list == Some(Listed::Resource);
        let change = change.filter(|change| !(is_resource && is_named_anew(change)));
        let has_been = known.names.contains(&(seen.kind.to_owned(), seen.name.clone()));
        let of_kind = unwanted.get(seen.kind);
        let unwanted = of_kind.and_then(|of_kind| of_kind.like(seen.definition.as_ref()?));
        let findings = match &seen.definition {
            Some(definition) => as_json(&screen(definition)),
            None => seen.findings.clone(),
        };
        let like = look_alike(server, seen, &all_names).map(|like| like.told());
        let reason = match change {
            Some(Change::Changed { .. }) => Some(DefinitionReason::Changed),
            Some(Change::Renamed { .. }) => Some(DefinitionReason::Renamed),
            // No run has a text of it: that was put under review, or rejected.
            _ if has_been => Some(DefinitionReason::Changed),
            _ if unwanted.is_some() => Some(DefinitionReason::Renamed),
            Some(Change::Added { .. } | Change::Removed { .. }) | None if like.is_some() => {
                Some(DefinitionReason::LookAlike)
            }
            // An unreadable definition is never taken on trust.
            _ if seen.definition.is_none() || !(findings.is_empty() || shows_flagged) => {
                Some(DefinitionReason::Flagged)
            }
            _ => None,
        };
        let renamed_from = match change {
            Some(Change::Renamed { old_key, .. }) => Some(old_key.as_str()),
            _ => unwanted.filter(|_| reason == Some(DefinitionReason::Renamed)),
        };
        let why = |reason: Option<DefinitionReason>| {
            json!({
                "reason": reason.map(DefinitionReason::as_str),
                "renamed_from": renamed_from,
                "like": like,
                "findings": findings,
            })
        };
        NewDefinition {
            digest: seen.digest.clone(),
            kind: seen.kind,
            name: seen.name.clone(),
            is_quarantined: reason.is_some(),
            text: seen.text.clone(),
            why: why(reason).to_string(),
            why_late: why(Some(DefinitionReason::Changed)).to_string(),
        }
    };
    new.into_iter().map(judged).collect()
}

/// A pinned definition that must be reviewed now: its digest, its name, and the reason.
#[derive(Debug)]
pub(crate) struct Doubted {
    pub(crate) digest: String,
    pub(crate) name: String,
    pub(crate) why: String,
    /// The server and the name that the definition's name resembles.
    pub(crate) like_server: String,
    pub(crate) like_name: String,
}

/// The trusted tools of a list that can be mistaken for a tool of `others`, which were unknown at
/// their first review.
pub(crate) fn doubted(
    server: &str,
    all: &[Seen],
    is_trusted: impl Fn(&Seen) -> bool,
    others: &[Arc<Names>],
) -> Vec<Doubted> {
    let trusted = all.iter().filter(|seen| seen.list == Some(Listed::Tool) && is_trusted(seen));
    let doubted = trusted.filter_map(|seen| {
        let like = look_alike(server, seen, others)?;
        let why = json!({
            "reason": DefinitionReason::LookAlike.as_str(),
            "renamed_from": null,
            "like": like.told(),
            "findings": seen.definition.as_ref().map(|one| as_json(&screen(one))),
        });
        let (digest, name) = (seen.digest.clone(), seen.name.clone());
        let (like_server, like_name) = (like.it.server, like.it.name);
        Some(Doubted { digest, name, why: why.to_string(), like_server, like_name })
    });
    doubted.collect()
}

/// The changes in the definitions of each list, by kind and name.
fn changes<'s>(all: &'s [Seen], known: &Known) -> BTreeMap<(&'static str, &'s str), Change> {
    let mut changed = BTreeMap::new();
    for kind in LISTS.map(|(_, kind)| kind).into_iter().chain([INSTRUCTIONS]) {
        let of_kind = known.texts.iter().filter(|one| one.kind == kind);
        let old = of_kind.filter_map(|one| Definition::read(&one.name, one.text.as_bytes()).ok());
        let old = old.collect::<Vec<_>>();
        let of_kind = || all.iter().filter(|one| one.kind == kind);
        // If two have one name the first counts.
        let named: HashMap<_, _> = of_kind().rev().map(|one| (one.name.as_str(), one)).collect();
        let new = of_kind().filter_map(|one| one.definition.clone()).collect::<Vec<_>>();
        for change in compare(&old, &new) {
            let key = match &change {
                Change::Added { key }
                | Change::Changed { key, .. }
                | Change::Renamed { key, .. } => key,
                Change::Removed { .. } => continue,
            };
            if let Some(seen) = named.get(key.as_str()) {
                changed.insert((kind, seen.name.as_str()), change);
            }
        }
    }
    changed
}

/// The definitions that no run may get, even under another name, by kind.
fn unwanted(all: &[Seen], known: &Known) -> BTreeMap<&'static str, Unwanted> {
    let of_kind = |(_, kind): (Listed, &'static str)| {
        let listed = all.iter().filter(|one| one.kind == kind);
        let listed: HashSet<_> = listed.map(|one| one.name.as_str()).collect();
        let texts = known.unwanted.iter().filter(|one| one.kind == kind);
        let texts = texts.filter_map(|one| Definition::read(&one.name, one.text.as_bytes()).ok());
        let texts: Vec<_> = texts.collect();
        (kind, Unwanted::new(&texts, |name| listed.contains(name)))
    };
    LISTS.into_iter().map(of_kind).collect()
}

/// A tool of another server that this one can be taken for. Equal names are none: calls are routed
/// by server; nor are names that other conventions would write so.
fn look_alike(server: &str, seen: &Seen, names: &[Arc<Names>]) -> Option<Like> {
    if seen.list != Some(Listed::Tool) {
        return None;
    }
    let all = names.iter().filter_map(|names| names.look_alike(server, &seen.name));
    let it = all.max_by_key(|like| like.resemblance)?;
    let how = match it.resemblance {
        Resemblance::Same | Resemblance::Spelling => return None,
        Resemblance::Cut => "cut",
        Resemblance::Prefixed => "prefixed",
        Resemblance::Confusable => "confusable",
    };
    Some(Like { it, how })
}

/// A tool of another server that one can be taken for.
#[derive(Debug)]
struct Like {
    it: LookAlike,
    how: &'static str,
}

impl Like {
    fn told(&self) -> Value {
        json!({ "server": self.it.server, "name": self.it.name, "how": self.how })
    }
}

fn as_json(findings: &[crate::Finding]) -> Vec<Value> {
    findings.iter().map(|finding| json!(finding)).collect()
}

/// The differences from one text to another; `None` if one of the texts cannot be read.
pub(crate) fn difference(name: &str, old: &str, new: &str) -> Option<Difference> {
    let old = Definition::read(name, old.as_bytes()).ok()?;
    let new = Definition::read(name, new.as_bytes()).ok()?;
    Some(crate::difference(&old, &new))
}

/// The tools of a list whose names count: those under review do, rejected ones do not.
pub(crate) fn tools<'a>(
    list: &'a Inventory,
    rejected: &'a HashSet<String>,
) -> impl Iterator<Item = &'a str> {
    list.tools.iter().map(|tool| &*tool.key).filter(|tool| !rejected.contains(*tool))
}

#[cfg(test)]
mod tests;
