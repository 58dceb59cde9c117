//! The names and descriptions that a caller's profile gives to tools.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use narthex_model::{Alias, QualifiedName, QualifiedNames};
use narthex_wire::with_text_member;

use super::parts::Part;

/// A tool that callers may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleTool {
    /// The name that callers know.
    pub name: Arc<str>,
    /// The server.
    pub server: Alias,
    /// The server's own name of the tool.
    pub tool: Arc<str>,
}

/// The qualified names of tools that a profile renames, by their given names. The record of a run's
/// tools has the qualified ones.
pub(super) type Renamed = HashMap<Arc<str>, QualifiedName>;

/// Gives tools the names of the callers' profile, in place of their qualified names.
pub(super) fn rename(parts: &[Part], tools: &mut QualifiedNames) -> Renamed {
    let mut renamed = Renamed::new();
    for part in parts {
        for (tool, name) in part.given_names() {
            if let Some(qualified) = tools.give(&part.alias, tool, name) {
                renamed.insert(name.clone(), qualified);
            }
        }
    }
    renamed
}

/// A tool's definition with the description that the profile gives to the tool.
pub(super) fn reworded(part: &Part, tool: &str, raw: Bytes) -> Bytes {
    match part.override_of(tool).and_then(|given| given.description.as_deref()) {
        Some(text) => with_text_member(&raw, "description", text),
        None => raw,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use narthex_model::{Profile, ProfileName, ToolOverride};
    use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerCapabilities};
    use narthex_wire::{Era, ListKind};
    use proptest::{prelude::*, sample::subsequence};

    use super::*;
    use crate::view::{View, ViewOptions};

    const SERVERS: [&str; 3] = ["one", "two", "one_"];
    const TOOLS: [&str; 7] = ["echo", "add", "a.b", "a_b", "read", "read_all", "list_resources"];
    const PATTERNS: [&str; 4] = ["read*", "a?b", "echo", "*"];
    const NAMES: [&str; 4] = ["say", "echo", "add", "one__echo"];

    fn alias(text: &str) -> Alias {
        Alias::new(text).unwrap()
    }

    fn part(server: &str, profile: Option<Arc<Profile>>) -> Part {
        let entry = |name: &&str| {
            let raw = Bytes::from(serde_json::json!({ "name": name }).to_string());
            (Listed::Tool, InventoryEntry::new(name, raw))
        };
        let part = Part {
            alias: alias(server),
            inventory: Arc::new(Inventory::new(TOOLS.iter().map(entry))),
            definition: None,
            profile,
            capabilities: ServerCapabilities { tools: true, resources: true, ..<_>::default() },
            era: Era::Modern,
            facts: Bytes::from_static(b"{}"),
        };
        part.narrowed()
    }

    /// The view of all servers that a profile has.
    fn view(profile: Option<&Arc<Profile>>) -> View {
        let has = |server: &&&str| profile.is_none_or(|profile| profile.has(&alias(server)));
        let parts: Vec<_> =
            SERVERS.iter().filter(has).map(|server| part(server, profile.cloned())).collect();
        let options = ViewOptions { name_limit: 128, server_info: b"{}", has_own_tools: true };
        View::build(1, &parts, options)
    }

    fn listed(view: &View) -> Vec<String> {
        let page = view.page(ListKind::Tools, Era::Modern, None).unwrap();
        let page: serde_json::Value = serde_json::from_slice(page).unwrap();
        let tools = page["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn profiles() -> impl Strategy<Value = Arc<Profile>> {
        let servers = subsequence(SERVERS.to_vec(), 0..=SERVERS.len());
        let patterns = subsequence(PATTERNS.to_vec(), 1..=2);
        let given = prop::collection::btree_map(
            (0..SERVERS.len(), 0..TOOLS.len()),
            (prop::option::of(0..NAMES.len()), any::<bool>()),
            0..6,
        );
        (servers, patterns, given).prop_map(|(whole, patterns, given)| {
            let mut profile = Profile::new(ProfileName::new("x").unwrap());
            whole.iter().for_each(|server| profile.add_server(alias(server)));
            for server in SERVERS[..2].iter().filter(|server| !whole.contains(server)) {
                for pattern in &patterns {
                    profile.add_tools(alias(server), pattern).unwrap();
                }
            }
            for ((server, tool), (name, has_text)) in given {
                let name = name.map(|index| NAMES[index].into());
                let description = has_text.then(|| "A text.".into());
                // A refused override gives nothing.
                let given = ToolOverride { name, description };
                drop(profile.add_override(alias(SERVERS[server]), TOOLS[tool], given));
            }
            Arc::new(profile)
        })
    }

    proptest! {
        /// P1, P2: what is listed can be called, what is not listed cannot, and each listed name
        /// leads to one tool that the profile shows.
        #[test]
        fn p2_names_of_a_profile_lead_one_to_one_to_visible_tools(profile in profiles()) {
            let (all, seen) = (view(None), view(Some(&profile)));
            let names = listed(&seen);
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            let mut routes = BTreeMap::new();
            for name in names.iter().filter(|name| seen.own_tool(name).is_none()) {
                let (server, tool) = seen.tool(name).unwrap();
                let is_second = routes.insert((server.clone(), tool.clone()), name.clone());
                prop_assert!(is_second.is_none());
            }
            for server in SERVERS {
                for tool in TOOLS {
                    let exposed = profile.exposed(&alias(server));
                    let is_shown = exposed.is_some_and(|exposed| exposed.tools.lets(tool));
                    let route = routes.get(&(alias(server), tool.into()));
                    prop_assert_eq!(route.is_some(), is_shown, "{} {}", server, tool);
                    let given = profile.override_of(&alias(server), tool);
                    let given = given.and_then(|given| given.name.as_deref());
                    prop_assert!(given.is_none() || route.map(String::as_str) == given);
                }
            }
            for name in listed(&all).iter().filter(|name| !names.contains(name)) {
                prop_assert!(seen.tool(name).is_none() && seen.own_tool(name).is_none());
            }
        }
    }
}
