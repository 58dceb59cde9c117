//! The tools of the built-in server that a run has (D29).

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

use crate::{
    did_you_mean,
    json::{Node, shortened},
};

/// The tools by which a run asks humans, and reads their answers.
const ASK: [&str; 3] = ["request_grant", "request_input", "read_messages"];
/// The tools by which every agent talks to its user.
const CORE: [&str; 7] = [
    "emit_status",
    "emit_artifact",
    "request_input",
    "emit_error",
    "share",
    "request_permission",
    "end_session",
];
/// The tools of the daemon's own run, where any of its servers requires a grant.
const LIVE: [&str; 2] = ["request_grant", "read_messages"];
/// The tools that start other agents and follow them: those of the built-in server under another
/// alias.
const ORCHESTRATION: [&str; 11] = [
    "list_spawnable_agents",
    "spawn_session",
    "start_agent",
    "read_child_output",
    "inject_message",
    "cancel_session",
    "share_to_child",
    "pull_from_child",
    "message_caller",
    "expect_quiet_for",
    "read_messages",
];
/// Further names of tools, each with the name that rules, grants, records and limits know.
const FURTHER_NAMES: [(&str, &str); 1] = [("start_agent", "spawn_session")];
/// Tools in no other set.
const OTHERS: [&str; 7] = [
    "read_share",
    "share_comment",
    "share_comment_resolve",
    "post_message",
    "get_session_cost",
    "get_session_tree_cost",
    "get_agent_cost",
];

/// The tools of the built-in server that a run has: a word for a set, or names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BuiltInTools {
    /// No tools.
    None,
    /// The tools to ask humans, and to read their answers.
    Ask,
    /// The seven tools that every agent uses, and those to ask.
    Core,
    /// All tools.
    All,
    /// The tools of these names.
    Named(BTreeSet<String>),
}

impl BuiltInTools {
    /// The words for sets of tools, each with its set.
    pub const WORDS: [(&str, Self); 4] =
        [("none", Self::None), ("ask", Self::Ask), ("core", Self::Core), ("all", Self::All)];

    /// The tools of a run without a setting: those to ask, and to end its session. A child run also
    /// has the tool to send its parent run a message.
    #[must_use]
    pub fn usual(is_child: bool) -> Self {
        let child = is_child.then_some("message_caller");
        Self::named(ASK.into_iter().chain(["end_session"]).chain(child))
    }

    /// The tools of the daemon's own run, where any of its servers requires a grant.
    #[must_use]
    pub fn live() -> Self {
        Self::named(LIVE)
    }

    /// The tools of the built-in server where an agent attaches it under an alias.
    #[must_use]
    pub fn orchestration() -> Self {
        Self::named(ORCHESTRATION)
    }

    fn named(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self::Named(names.into_iter().map(str::to_owned).collect())
    }

    /// True if a tool is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Ask => ASK.contains(&name),
            Self::Core => CORE.contains(&name) || ASK.contains(&name),
            Self::All => true,
            Self::Named(names) => names.contains(name),
        }
    }

    /// The names of all tools.
    pub fn all_names() -> BTreeSet<&'static str> {
        [&ASK[..], &CORE, &LIVE, &ORCHESTRATION, &OTHERS].concat().into_iter().collect()
    }

    /// The name that rules, grants, records and limits know a tool by, where `name` is a further
    /// name of it.
    #[must_use]
    pub fn ruled_name(name: &str) -> Option<&'static str> {
        FURTHER_NAMES.into_iter().find(|(further, _)| *further == name).map(|(_, ruled)| ruled)
    }

    /// Each further name of a tool, with the name that rules, grants, records and limits know.
    pub fn further_names() -> impl Iterator<Item = (&'static str, &'static str)> {
        FURTHER_NAMES.into_iter()
    }

    /// Reads a word or a list of names.
    ///
    /// # Errors
    /// Each thing that is wrong: its index if it is in a list, what it is, and what to do.
    pub fn read(node: &Node) -> Result<Self, Vec<(Option<usize>, String, String)>> {
        let write = || "write `none`, `ask`, `core`, `all` or a list of tools".to_owned();
        match node {
            Node::Text(word) => Self::of_word(word).ok_or_else(|| {
                vec![(None, format!("`{}` is not a set of tools", shortened(word)), write())]
            }),
            Node::List(items) => Self::of_list(items),
            other => Err(vec![(None, format!("it is {}", other.found()), write())]),
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(one, _)| *one == word).map(|(_, set)| set)
    }

    fn of_list(items: &[Node]) -> Result<Self, Vec<(Option<usize>, String, String)>> {
        let (all, mut names, mut faults) = (Self::all_names(), BTreeSet::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            let Node::Text(name) = item else {
                let message = format!("it is {}, not the name of a tool", item.found());
                faults.push((Some(index), message, "write names of tools".to_owned()));
                continue;
            };
            if all.contains(name.as_str()) {
                names.insert(name.clone());
                continue;
            }
            let message = format!("there is no built-in tool `{}`", shortened(name));
            let remedy = match did_you_mean(name, all.iter().copied()) {
                _ if Self::of_word(name).is_some() => {
                    format!("write `\"{name}\"` without brackets to choose that set")
                }
                Some(meant) => meant,
                None => {
                    let all: Vec<_> = all.iter().copied().collect();
                    format!("the built-in tools are `{}`", all.join("`, `"))
                }
            };
            faults.push((Some(index), message, remedy));
        }
        if faults.is_empty() { Ok(Self::Named(names)) } else { Err(faults) }
    }
}

impl Serialize for BuiltInTools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(names) => names.serialize(serializer),
            word => {
                let found = Self::WORDS.into_iter().find(|(_, set)| set == word);
                found.map_or("all", |(word, _)| word).serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for BuiltInTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let node = Node::parse(value.to_string().as_bytes());
        let node = node.map_err(|_fault| D::Error::custom("no JSON"))?;
        Self::read(&node).map_err(|_faults| D::Error::custom("not a set of built-in tools"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<BuiltInTools, Vec<(Option<usize>, String, String)>> {
        BuiltInTools::read(&Node::parse(value.to_string().as_bytes()).unwrap())
    }

    /// D13: each further name belongs to a tool, and leads to one that has no other name.
    #[test]
    fn d13_further_names_lead_to_tools() {
        let all = BuiltInTools::all_names();
        for (further, ruled) in BuiltInTools::further_names() {
            assert!(all.contains(further) && all.contains(ruled), "{further} {ruled}");
            assert_eq!(BuiltInTools::ruled_name(further), Some(ruled));
            assert_eq!(BuiltInTools::ruled_name(ruled), None);
        }
    }

    /// D29: a set is a word or names, its text is read as the same set, and a misspelt one is an
    /// error.
    #[test]
    fn d29_sets_are_words_or_names() {
        for written in [json!("none"), json!("ask"), json!("core"), json!("all"), json!(["share"])]
        {
            let set = read(written.clone()).unwrap();
            assert_eq!(json!(set), written);
            assert_eq!(serde_json::from_value::<BuiltInTools>(written).unwrap(), set);
        }
        let (ask, core) = (read(json!("ask")).unwrap(), read(json!("core")).unwrap());
        assert!(ask.has("request_grant") && !ask.has("emit_status") && core.has("emit_status"));
        assert!(core.has("read_messages") && !core.has("spawn_session"));
        let (own, child) = (BuiltInTools::usual(false), BuiltInTools::usual(true));
        assert!(own.has("end_session") && !own.has("message_caller"));
        assert!(child.has("message_caller") && child.has("request_input"));
        for (wrong, index, remedy) in [
            (json!("cor"), None, "`core`"),
            (json!(7), None, "`core`"),
            (json!(["share", "emit_statu"]), Some(1), "did you mean `emit_status`?"),
            (json!(["ask"]), Some(0), "write `\"ask\"` without brackets"),
            (json!(["zzzzzzzz"]), Some(0), "the built-in tools are `"),
            (json!([1]), Some(0), "names of tools"),
        ] {
            let faults = read(wrong).unwrap_err();
            assert_eq!(faults[0].0, index);
            assert!(faults[0].2.contains(remedy), "{faults:?}");
        }
    }
}
