//! Gates whose names match nothing of a server: a typo there leaves open an item that its author
//! meant to gate.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use wildmatch::WildMatch;

use super::Gates;
use crate::nearest;

/// The configuration's field for each kind of gates.
const TOOLS: &str = "tool_scopes";
const RESOURCES: &str = "resource_scopes";
const PROMPTS: &str = "prompt_scopes";

/// The names of what a server lists.
#[derive(Debug, Clone, Default)]
pub struct ListedNames<'n> {
    /// The names of tools.
    pub tools: Vec<&'n str>,
    /// The names of prompts.
    pub prompts: Vec<&'n str>,
    /// URIs of resources.
    pub resources: Vec<&'n str>,
    /// Texts of templates.
    pub templates: Vec<&'n str>,
}

/// A gate under whose name the server lists nothing, so that it gates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmatchedGate {
    /// The field of the gate: `tool_scopes`, `resource_scopes` or `prompt_scopes`.
    pub field: &'static str,
    /// The name in the gate.
    pub name: String,
    /// The name that was probably meant, in the server's own words.
    pub nearest: Option<String>,
}

impl UnmatchedGate {
    /// The finding in a sentence without a word of the server, for a reader that must not see any.
    #[must_use]
    pub fn plain(&self) -> String {
        let Self { field, name, .. } = self;
        let name: String = name.chars().take(200).collect();
        format!("`{field}` names `{name}`, which the server does not list, so it has no effect")
    }
}

impl fmt::Display for UnmatchedGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain())?;
        match &self.nearest {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

impl Gates {
    /// The names in the gates, each with its field.
    fn named(&self) -> impl Iterator<Item = (&'static str, String)> {
        let tools = self.tools.keys().map(|name| (TOOLS, name.clone()));
        let prompts = self.prompts.keys().map(|name| (PROMPTS, name.clone()));
        let resources = self.resources.iter().map(|gate| (RESOURCES, gate.written.clone()));
        tools.chain(resources).chain(prompts)
    }

    /// The gates that gate nothing of what a server lists. What templates cover is in no list, so
    /// that where there are any, patterns of resources are taken as they are.
    #[must_use]
    pub fn unmatched(&self, listed: &ListedNames<'_>) -> Vec<UnmatchedGate> {
        unmatched_gates(self.named(), listed)
    }
}

/// The gates, given by their field and name, that match nothing of a server's lists. Resources of
/// templates are in no list: if there are templates, patterns of resources count as matching.
fn unmatched_gates(
    named: impl IntoIterator<Item = (&'static str, String)>,
    listed: &ListedNames<'_>,
) -> Vec<UnmatchedGate> {
    let unmatched = named.into_iter().filter_map(|(field, name)| {
        let (known, is_there) = match field {
            TOOLS => (&listed.tools, listed.tools.contains(&name.as_str())),
            PROMPTS => (&listed.prompts, listed.prompts.contains(&name.as_str())),
            _ => {
                let pattern = WildMatch::new(&name);
                let is_there = listed.resources.iter().any(|uri| pattern.matches(uri));
                (&listed.resources, is_there || !listed.templates.is_empty())
            }
        };
        let meant = || nearest(&name, known.iter().copied()).map(str::to_owned);
        let nearest = (!is_there).then(meant)?;
        Some(UnmatchedGate { field, name, nearest })
    });
    unmatched.collect()
}

/// The fields of gates in a configuration.
pub const GATE_FIELDS: [&str; 3] = [TOOLS, RESOURCES, PROMPTS];

/// As [`Gates::unmatched`], for a server of the catalog, by its definition.
///
/// Compared with all names that the server was seen to list, each with its kind, such as `tool`.
/// Empty for a server that has listed nothing yet.
#[must_use]
pub fn unmatched_in(definition: &Value, seen: &[(&str, &str)]) -> Vec<UnmatchedGate> {
    if seen.is_empty() {
        return Vec::new();
    }
    let named = GATE_FIELDS.into_iter().flat_map(|field| {
        let names = definition[field].as_object().into_iter().flatten();
        names.map(move |(name, _)| (field, name.clone()))
    });
    let of = |wanted: &str| {
        let names = seen.iter().filter(|(kind, _)| *kind == wanted);
        names.map(|(_, name)| *name).collect()
    };
    let listed = ListedNames {
        tools: of("tool"),
        prompts: of("prompt"),
        resources: of("resource"),
        templates: of("template"),
    };
    unmatched_gates(named, &listed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{ToolScope, ToolScopes};

    fn map(names: &[&str]) -> BTreeMap<String, ToolScopes> {
        let scopes: ToolScopes = [ToolScope::new("a.write").unwrap()].into();
        names.iter().map(|name| ((*name).to_owned(), scopes.clone())).collect()
    }

    /// D14: a gate for an absent name is reported, with the name that was probably meant.
    #[test]
    fn d14_a_gate_for_an_absent_name_is_reported() {
        let gates = Gates::new(
            map(&["delete_usr", "echo"]),
            &map(&["file:///etc/*", "test://a*"]),
            map(&["brief"]),
        );
        let mut listed = ListedNames {
            tools: vec!["delete_user", "echo"],
            resources: vec!["test://abc"],
            ..ListedNames::default()
        };
        let told: Vec<_> = gates.unmatched(&listed).iter().map(ToString::to_string).collect();
        let nothing = "which the server does not list, so it has no effect";
        let tool = format!("`tool_scopes` names `delete_usr`, {nothing}");
        assert_eq!(
            told,
            [
                format!("{tool}; did you mean `delete_user`?"),
                format!("`resource_scopes` names `file:///etc/*`, {nothing}"),
                format!("`prompt_scopes` names `brief`, {nothing}"),
            ]
        );
        assert_eq!(gates.unmatched(&listed)[0].plain(), tool, "no word of the server");
        let definition = serde_json::json!({ "tool_scopes": { "delete_usr": ["a.write"] } });
        let seen = [("tool", "delete_user"), ("prompt", "delete_usr")];
        let [found]: [_; 1] = unmatched_in(&definition, &seen).try_into().unwrap();
        assert_eq!(found.nearest.as_deref(), Some("delete_user"));
        assert!(unmatched_in(&definition, &[]).is_empty(), "the server has not been listed yet");
        // Resources of templates are in no list.
        listed.templates = vec!["file:///{path}"];
        assert_eq!(gates.unmatched(&listed).len(), 2);
    }
}
