//! The names in rules, for callers that check which of them exist.

use std::sync::Arc;

use cedar_policy::Policy;
use narthex_model::BuiltInTools;
use serde_json::Value;
use wildmatch::WildMatchPattern;

/// A name that a rule uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName {
    /// The id of the rule.
    pub rule: Arc<str>,
    /// The named object.
    pub of: Named,
}

/// An object that a rule names. A rule can be saved before the object exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// An agent.
    Agent(String),
    /// A server, by its id or its alias.
    Server(String),
    /// A tool of a server.
    Tool {
        /// The server's id.
        server: String,
        /// The server's own name of the tool.
        tool: String,
    },
    /// An item of a server without its server's name. No call is about such an item.
    Bare {
        /// Its type in rules: `Tool`, `Prompt` or `Resource`.
        of: &'static str,
        /// The whole name in the rule.
        name: String,
    },
    /// A pattern for names of items of any server: text, with `*` for any characters.
    Pattern(String),
}

impl Named {
    /// True if a pattern covers a name; `false` for any other kind.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Self::Pattern(pattern) => WildMatchPattern::<'*', '\0'>::new(pattern).matches(name),
            Self::Agent(_) | Self::Server(_) | Self::Tool { .. } | Self::Bare { .. } => false,
        }
    }

    /// Another name of a built-in tool that the pattern covers, and the name that rules know, which
    /// the pattern does not cover. `None` if there is no such pair.
    #[must_use]
    pub fn further_name(&self) -> Option<(&'static str, &'static str)> {
        BuiltInTools::further_names()
            .find(|(further, ruled)| self.covers(further) && !self.covers(ruled))
    }
}

/// The types of things that are named with their server in front: `Tool::"SERVER/NAME"`.
const OF_SERVERS: [&str; 3] = ["Tool", "Prompt", "Resource"];

/// The names in a rule, each once.
pub(crate) fn of(policy: &Policy) -> Vec<Named> {
    let Ok(rule) = policy.to_json() else { return Vec::new() };
    let mut found = Vec::new();
    // Annotations are for people.
    ["principal", "resource", "conditions"].iter().for_each(|part| read(&rule[*part], &mut found));
    found.sort_unstable();
    found.dedup();
    found
}

fn read(node: &Value, found: &mut Vec<Named>) {
    match node {
        Value::Object(members) => {
            found.extend(entity(node));
            found.extend(pattern(&node["like"], |like| wildcards(&like["pattern"])));
            found.extend(pattern(&node["=="], |equal| {
                Some(equal["right"]["Value"].as_str()?.to_owned())
            }));
            members.values().for_each(|member| read(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An entity, if the node is one.
fn entity(node: &Value) -> Option<Named> {
    let (kind, id) = (node["type"].as_str()?, node["id"].as_str()?);
    match kind {
        "Agent" if !id.is_empty() => Some(Named::Agent(id.to_owned())),
        "Server" => Some(Named::Server(id.to_owned())),
        "Tool" if let Some((server, tool)) = id.split_once('/') => {
            Some(Named::Tool { server: server.to_owned(), tool: tool.to_owned() })
        }
        _ if id.contains('/') => None,
        kind => {
            let of = OF_SERVERS.into_iter().find(|of| *of == kind)?;
            Some(Named::Bare { of, name: id.to_owned() })
        }
    }
}

/// The text that `resource.name` is compared with.
fn pattern(compared: &Value, text: impl FnOnce(&Value) -> Option<String>) -> Option<Named> {
    let access = &compared["left"]["."];
    let is_name = access["left"]["Var"] == "resource" && access["attr"] == "name";
    text(compared).filter(|_| is_name).map(Named::Pattern)
}

/// A pattern of Cedar with `*` for its wildcards.
fn wildcards(pattern: &Value) -> Option<String> {
    let part = |part: &Value| match part {
        Value::String(word) if word == "Wildcard" => Some("*".to_owned()),
        part => part["Literal"].as_str().map(str::to_owned),
    };
    pattern.as_array()?.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RuleSet;

    fn names(text: &str) -> Vec<Named> {
        let set = RuleSet::compile(text).unwrap();
        set.names().iter().map(|name| name.of.clone()).collect()
    }

    /// D13: each entity and each comparison of a name is found, at any place of a rule.
    #[test]
    fn d13_names_of_rules_are_found() {
        let tool = |server: &str, tool: &str| Named::Tool {
            server: server.to_owned(),
            tool: tool.to_owned(),
        };
        let text = r#"@id("a") forbid(principal == Agent::"writer", action, resource in
            Server::"docs") when { resource.name like "start_*" || resource.name == "echo" };
            forbid(principal, action, resource == Tool::"docs/a/b") unless
            { resource == Tool::"docs/c" };"#;
        let found = names(text);
        let expected = [
            Named::Agent("writer".to_owned()),
            Named::Server("docs".to_owned()),
            Named::Pattern("echo".to_owned()),
            Named::Pattern("start_*".to_owned()),
            tool("docs", "a/b"),
            tool("docs", "c"),
        ];
        assert_eq!(found, expected);
        assert_eq!(*RuleSet::compile(text).unwrap().names()[0].rule, *"a");
    }

    /// D13: a thing without its server is found, of each type that needs one.
    #[test]
    fn d13_a_tool_prompt_or_resource_without_its_server_is_found() {
        let text = r#"forbid(principal, action, resource == Tool::"echo");
            forbid(principal, action, resource) when { resource == Prompt::"triage" ||
            resource == Resource::"memo:x" || resource == Prompt::"docs/triage" };"#;
        let bare = |of, name: &str| Named::Bare { of, name: name.to_owned() };
        let expected = [bare("Tool", "echo"), bare("Prompt", "triage"), bare("Resource", "memo:x")];
        assert_eq!(names(text), expected);
    }

    /// D13: a pattern that covers a further name alone is dead.
    #[test]
    fn d13_a_pattern_that_covers_only_an_alternative_name_is_found() {
        let pattern = |text: &str| Named::Pattern(text.to_owned());
        let ruled = Some(("start_agent", "spawn_session"));
        assert_eq!(pattern("start_*").further_name(), ruled);
        assert_eq!(pattern("*").further_name(), None);
        assert!(pattern("*_user").covers("delete_user") && !pattern("?_user").covers("a_user"));
        assert_eq!(Named::Server("start_agent".to_owned()).further_name(), None);
    }
}
