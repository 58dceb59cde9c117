//! The tool scopes that the tools, resources and prompts of a server require of their users (D14).

mod unmatched;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use wildmatch::WildMatch;

pub use self::unmatched::{GATE_FIELDS, ListedNames, UnmatchedGate, unmatched_in};
use crate::{
    ToolScope,
    uri::{closing, has_steps, spellings},
};

/// The tool scopes that something requires: all of them.
pub type ToolScopes = BTreeSet<ToolScope>;

/// The items that require tool scopes. An item without a gate requires none (X-M57).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gates {
    /// The gates of tools, by the server's own names.
    tools: BTreeMap<String, ToolScopes>,
    /// The gates of prompts, by the server's own names.
    prompts: BTreeMap<String, ToolScopes>,
    /// The gates of resources, by patterns of URIs, and of templates, by patterns of their texts.
    resources: Vec<UriGate>,
}

/// The gate of resources and templates whose URI or text a pattern matches.
#[derive(Debug, Clone, PartialEq)]
struct UriGate {
    /// The pattern as it is written.
    written: String,
    /// The pattern in all spellings, and the resources that it covers as a template.
    patterns: Vec<WildMatch>,
    scopes: ToolScopes,
}

/// The gates of a server that has none.
pub static NO_GATES: Gates =
    Gates { tools: BTreeMap::new(), prompts: BTreeMap::new(), resources: Vec::new() };

static NOTHING: ToolScopes = BTreeSet::new();

impl Gates {
    /// Gates by name and, for resources, by pattern: `*` is any number of characters and `?` is
    /// one. A pattern that is a template's text gates what the template covers as well. A name
    /// without a scope requires none.
    #[must_use]
    pub fn new(
        tools: BTreeMap<String, ToolScopes>,
        resources: &BTreeMap<String, ToolScopes>,
        prompts: BTreeMap<String, ToolScopes>,
    ) -> Self {
        let named = |mut gates: BTreeMap<String, ToolScopes>| {
            gates.retain(|_, scopes| !scopes.is_empty());
            gates
        };
        let resources = resources.iter().filter(|(_, scopes)| !scopes.is_empty());
        let resources = resources.map(|(text, scopes)| UriGate {
            written: text.clone(),
            patterns: closing(text).iter().map(|one| WildMatch::new(one)).collect(),
            scopes: scopes.clone(),
        });
        Self { tools: named(tools), prompts: named(prompts), resources: resources.collect() }
    }

    /// True if no item requires a scope.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty() && self.resources.is_empty()
    }

    /// The scopes that a tool requires, by the server's own name for it.
    #[must_use]
    pub fn of_tool(&self, name: &str) -> &ToolScopes {
        self.tools.get(name).unwrap_or(&NOTHING)
    }

    /// The scopes that a prompt requires, by the server's own name for it.
    #[must_use]
    pub fn of_prompt(&self, name: &str) -> &ToolScopes {
        self.prompts.get(name).unwrap_or(&NOTHING)
    }

    /// The scopes that a resource requires, by its URI, or a template, by its text: those of all
    /// patterns that match it in any of its [spellings]. A URI with steps such as `..` may lead to
    /// any resource of the server, and requires the scopes of all patterns.
    #[must_use]
    pub fn of_resource(&self, uri: &str) -> Cow<'_, ToolScopes> {
        if self.resources.is_empty() {
            return Cow::Borrowed(&NOTHING);
        }
        let spelled = spellings(uri);
        let means_any = spelled.iter().any(|one| has_steps(one));
        let mut meant = self.resources.iter().filter(|gate| means_any || gate.gates(&spelled));
        let Some(first) = meant.next() else { return Cow::Borrowed(&NOTHING) };
        let mut all = Cow::Borrowed(&first.scopes);
        for gate in meant {
            all.to_mut().extend(gate.scopes.iter().cloned());
        }
        all
    }

    /// All tool scopes that something requires.
    pub fn scopes(&self) -> impl Iterator<Item = &ToolScope> {
        let of_uris = self.resources.iter().map(|gate| &gate.scopes);
        self.tools.values().chain(self.prompts.values()).chain(of_uris).flatten()
    }

    /// Each tool and each prompt that requires something, by the server's own name for it.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, &ToolScopes)> {
        self.tools().chain(self.prompts.iter().map(|(name, scopes)| (name.as_str(), scopes)))
    }

    /// The names of the tools that require something.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &ToolScopes)> {
        self.tools.iter().map(|(name, scopes)| (name.as_str(), scopes))
    }
}

impl UriGate {
    fn gates(&self, spelled: &[Cow<'_, str>]) -> bool {
        self.patterns.iter().any(|pattern| spelled.iter().any(|one| pattern.matches(one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(names: &[&str]) -> ToolScopes {
        names.iter().map(|name| ToolScope::new(name).unwrap()).collect()
    }

    fn map(entries: &[(&str, &[&str])]) -> BTreeMap<String, ToolScopes> {
        entries.iter().map(|(name, all)| ((*name).to_owned(), scopes(all))).collect()
    }

    /// X-M57, D14: what is not named requires nothing; what is named requires all of its scopes.
    #[test]
    fn x_m57_gates_are_by_name() {
        let gates = Gates::new(
            map(&[("write", &["a.write", "a.read"]), ("open", &[])]),
            &map(&[]),
            map(&[("brief", &["a.read"])]),
        );
        assert_eq!(*gates.of_tool("write"), scopes(&["a.read", "a.write"]));
        assert_eq!(*gates.of_prompt("brief"), scopes(&["a.read"]));
        for free in ["open", "brief", "Write", "write ", ""] {
            assert!(gates.of_tool(free).is_empty(), "{free}");
        }
        assert!(gates.of_prompt("write").is_empty() && gates.of_resource("a:write").is_empty());
        assert!(!gates.is_empty() && NO_GATES.is_empty());
        assert!(Gates::new(map(&[("open", &[])]), &map(&[("*", &[])]), map(&[])).is_empty());
    }

    /// D5: no spelling of a URI gets around a gate.
    #[test]
    fn d5_no_spelling_of_a_uri_gets_around_a_gate() {
        let gates = Gates::new(
            map(&[]),
            &map(&[("file:///secret/*", &["s.read"]), ("file:///*.key", &["k.read"])]),
            map(&[]),
        );
        for (uri, required) in [
            ("file:///docs/a", &[][..]),
            ("file:///secret/a", &["s.read"]),
            ("file:///%73ecret/a", &["s.read"]),
            ("file:///secret/a.key", &["s.read", "k.read"]),
            ("file:///docs/a%2Ekey", &["k.read"]),
            ("file:///docs/../secret/a", &["s.read", "k.read"]),
            ("file:///docs/%2e%2e/secret/a", &["s.read", "k.read"]),
            ("file:///secret/{path}", &["s.read"]),
            ("FILE:/secret/a", &["s.read"]),
        ] {
            assert_eq!(*gates.of_resource(uri), scopes(required), "{uri}");
        }
    }

    /// D14: a gate that is written as a template gates what the template covers, and the template.
    #[test]
    fn d14_a_gate_of_a_template_gates_its_resources() {
        let template = "demo://text/{id}/of{?q}";
        let gates = Gates::new(map(&[]), &map(&[(template, &["t.read"])]), map(&[]));
        for gated in [template, "demo://text/1/of", "demo://text/1/of?q=2", "Demo://text/%31/of"] {
            assert_eq!(*gates.of_resource(gated), scopes(&["t.read"]), "{gated}");
        }
        assert!(gates.of_resource("demo://text/1").is_empty());
        let listed = ListedNames { templates: vec![template], ..ListedNames::default() };
        assert!(gates.unmatched(&listed).is_empty());
        let [told]: [_; 1] = gates.unmatched(&ListedNames::default()).try_into().unwrap();
        assert_eq!(told.name, template, "as it is written");
    }
}
