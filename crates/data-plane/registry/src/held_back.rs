//! Definitions of a run's servers that are under review: no human has accepted them (D10, S22 to
//! S24).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::{Alias, QualifiedNames, ServerId};
use narthex_upstream::Listed;
use narthex_wire::Template;
use serde::{Deserialize, Serialize};

/// A server of the catalog, whose definitions are pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedServer {
    /// The server's id in the catalog.
    pub id: ServerId,
    /// True if runs get a flagged definition that is the first of its name.
    pub shows_flagged: bool,
}

/// The definitions under review of a run's servers. Definitions may join them during the run, when
/// a server lists on a link of another kind.
#[derive(Debug, Default)]
pub struct HeldBack {
    servers: BTreeMap<Alias, PinnedServer>,
    names: Mutex<HeldNames>,
}

/// Names of the definitions under review, for the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldNames(BTreeMap<Alias, HeldOfServer>);

/// Names of the definitions of one server that are under review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct HeldOfServer {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    tools: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    prompts: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    templates: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    resources: BTreeSet<String>,
}

impl HeldOfServer {
    fn list(&self, list: Listed) -> &BTreeSet<String> {
        match list {
            Listed::Tool => &self.tools,
            Listed::Prompt => &self.prompts,
            Listed::Template => &self.templates,
            Listed::Resource => &self.resources,
        }
    }
}

impl HeldNames {
    /// True if no definition is under review.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of definitions under review.
    #[must_use]
    pub fn count(&self) -> usize {
        let lists = [Listed::Tool, Listed::Prompt, Listed::Template, Listed::Resource];
        self.0.values().flat_map(|of| lists.map(|list| of.list(list).len())).sum()
    }

    /// Adds the name of one definition.
    pub fn add(&mut self, alias: &Alias, list: Listed, name: &str) {
        let names = self.0.entry(alias.clone()).or_default();
        let names = match list {
            Listed::Tool => &mut names.tools,
            Listed::Prompt => &mut names.prompts,
            Listed::Template => &mut names.templates,
            Listed::Resource => &mut names.resources,
        };
        names.insert(name.to_owned());
    }

    /// Adds other names.
    pub fn extend(&mut self, others: &Self) {
        for (alias, of) in &others.0 {
            for list in [Listed::Tool, Listed::Prompt, Listed::Template, Listed::Resource] {
                of.list(list).iter().for_each(|name| self.add(alias, list, name));
            }
        }
    }

    /// True if this definition is under review.
    #[must_use]
    pub fn has(&self, alias: &Alias, list: Listed, name: &str) -> bool {
        self.0.get(alias).is_some_and(|of| of.list(list).contains(name))
    }

    /// Finds the definition under review that a name or URI means: see [`HeldBack::find`].
    #[must_use]
    pub fn find(
        &self,
        alias: Option<&Alias>,
        list: Listed,
        name: &str,
        limit: usize,
    ) -> Option<(Alias, String)> {
        if self.is_empty() {
            return None;
        }
        match (list, alias) {
            (Listed::Template | Listed::Resource, _) => self.template(alias, name),
            (_, Some(alias)) => {
                self.has(alias, list, name).then(|| (alias.clone(), name.to_owned()))
            }
            (_, None) => self.qualified(list, name, limit),
        }
    }

    /// The alias and own name behind a name at an aggregated endpoint.
    fn qualified(&self, list: Listed, name: &str, limit: usize) -> Option<(Alias, String)> {
        let pairs = self.0.iter().flat_map(|(alias, of)| {
            let names = of.list(list).iter();
            names.map(move |name| (alias, name.as_str()))
        });
        let names = QualifiedNames::build(pairs, limit);
        names.route(name).map(|(alias, own)| (alias.clone(), own.to_string()))
    }

    /// The alias and text of a resource under review, or of a template under review that covers a
    /// URI or equals this text.
    fn template(&self, alias: Option<&Alias>, uri: &str) -> Option<(Alias, String)> {
        let of = self.0.iter().filter(|(own, _)| alias.is_none_or(|alias| alias == *own));
        let mut all = of.flat_map(|(alias, of)| {
            let templates = of.templates.iter().map(move |one| (alias, one, true));
            of.resources.iter().map(move |one| (alias, one, false)).chain(templates)
        });
        let found = all.find(|(_, one, is_template)| {
            *one == uri || (*is_template && Template::parse(one).matches(uri))
        });
        found.map(|(alias, one, _)| (alias.clone(), one.clone()))
    }
}

impl HeldBack {
    /// Starts with these definitions under review; each server is one of the catalog.
    #[must_use]
    pub fn new(servers: BTreeMap<Alias, PinnedServer>, names: HeldNames) -> Self {
        Self { servers, names: Mutex::new(names) }
    }

    /// The catalog's server behind an alias; `None` for a server whose definitions never go under
    /// review.
    #[must_use]
    pub fn server(&self, alias: &Alias) -> Option<&PinnedServer> {
        self.servers.get(alias)
    }

    /// Adds definitions that went under review later.
    pub fn add(&self, names: &HeldNames) {
        self.names().extend(names);
    }

    /// All names under review now, for the store.
    #[must_use]
    pub fn kept(&self) -> HeldNames {
        self.names().clone()
    }

    /// Finds the definition under review that a name or URI means; returns its server and its own
    /// name. At an aggregated endpoint, without `alias`, names are qualified and at most `limit`
    /// characters long. For URIs, `list` is the list of templates.
    #[must_use]
    pub fn find(
        &self,
        alias: Option<&Alias>,
        list: Listed,
        name: &str,
        limit: usize,
    ) -> Option<(Alias, String)> {
        self.names().find(alias, list, name, limit)
    }

    fn names(&self) -> MutexGuard<'_, HeldNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(text: &str) -> Alias {
        Alias::new(text).unwrap()
    }

    fn held() -> HeldBack {
        let mut names = HeldNames::default();
        names.add(&alias("files"), Listed::Tool, "read.all");
        names.add(&alias("files"), Listed::Template, "file:///{path}");
        names.add(&alias("files"), Listed::Resource, "file:///etc/passwd");
        names.add(&alias("mail"), Listed::Prompt, "summary");
        let text = serde_json::to_string(&names).unwrap();
        HeldBack::new(BTreeMap::new(), serde_json::from_str(&text).unwrap())
    }

    /// S23: a caller finds a definition under review by its own name, its qualified name, and each
    /// URI that it covers.
    #[test]
    fn s23_a_definition_under_review_is_found_by_each_of_its_names() {
        let (held, files, mail) = (held(), alias("files"), alias("mail"));
        let found = |alias, list, name| held.find(alias, list, name, 128).map(|found| found.1);
        let tool = Some("read.all".to_owned());
        assert_eq!(found(Some(&files), Listed::Tool, "read.all"), tool);
        let pairs = [(&files, "read.all")];
        let qualified = QualifiedNames::build(pairs, 128);
        let qualified = qualified.name(&files, "read.all").unwrap().as_str().to_owned();
        assert_eq!(found(None, Listed::Tool, &qualified), tool);
        assert!(found(None, Listed::Prompt, "mcp__mail__summary").is_some());
        for at in [None, Some(&files)] {
            for uri in ["file:///{path}", "file:///a"] {
                assert!(found(at, Listed::Template, uri).is_some(), "{uri}");
            }
        }
        assert!(found(None, Listed::Template, "file:///etc/passwd").is_some());
        for (at, list, name) in [
            (Some(&mail), Listed::Tool, "read.all"),
            (Some(&files), Listed::Prompt, "read.all"),
            (Some(&mail), Listed::Template, "file:///a"),
            (None, Listed::Tool, "mcp__mail__summary"),
            (None, Listed::Tool, "read.all"),
        ] {
            assert!(found(at, list, name).is_none(), "{name}");
        }
    }
}
