//! Compares the present definitions and instructions of a live server with its first ones (S23).
//! Runs get the present ones, and narthex reports the differences to operators.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use narthex_upstream::{Inventory, Listed, ServerFacts};

/// Largest part of a name that is reported, in characters.
const NAME_TOLD: usize = 100;

/// Definitions and instructions from the first listing of a server in this process.
#[derive(Debug)]
pub struct Baseline {
    inventory: Arc<Inventory>,
    instructions: Option<String>,
}

impl Baseline {
    pub(crate) fn new(inventory: &Arc<Inventory>, facts: &ServerFacts) -> Self {
        let instructions = facts.instructions().map(Cow::into_owned);
        Self { inventory: inventory.clone(), instructions }
    }

    /// Reports the definitions that differ from the first definition under the same name. The text
    /// of each is its kind and its shortened, quoted name, which are harmless to show. New and
    /// removed names are no change.
    pub(crate) fn changed(&self, now: &Inventory, facts: &ServerFacts) -> Vec<String> {
        let mut first = HashMap::new();
        for (list, entry) in self.inventory.entries() {
            first.entry((list, &*entry.key)).or_insert(entry);
        }
        let mut changed = Vec::new();
        for (list, entry) in now.entries() {
            let before = first.get(&(list, &*entry.key));
            if before.is_some_and(|before| !before.says(list, &entry.raw)) {
                changed.push(named(list, &entry.key));
            }
        }
        if facts.instructions().as_deref() != self.instructions.as_deref() {
            changed.push("its instructions".to_owned());
        }
        changed.dedup();
        changed
    }
}

fn named(list: Listed, key: &str) -> String {
    let kind = match list {
        Listed::Tool => "tool",
        Listed::Prompt => "prompt",
        Listed::Resource => "resource",
        Listed::Template => "template",
    };
    let name: String = key.chars().take(NAME_TOLD).collect();
    format!("{kind} {name:?}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_upstream::{InventoryEntry, ServerCapabilities};
    use narthex_wire::Revision;
    use serde_json::json;

    use super::*;

    fn inventory(tools: &[(&str, &str)]) -> Arc<Inventory> {
        let entry = |(name, text): &(&str, &str)| {
            let raw = json!({ "name": name, "description": text }).to_string();
            (Listed::Tool, InventoryEntry::new(name, Bytes::from(raw)))
        };
        Arc::new(Inventory::new(tools.iter().map(entry)))
    }

    fn facts(instructions: &str) -> ServerFacts {
        ServerFacts {
            revision: Revision::LATEST,
            result: json!({ "instructions": instructions, "a": 1 }).to_string().into(),
            capabilities: ServerCapabilities::default(),
        }
    }

    /// S23: another text under a name is a change; a new, removed or restored name is none.
    #[test]
    fn s23_a_different_text_under_a_name_is_a_change() {
        let first = Baseline::new(&inventory(&[("a", "1"), ("b", "2")]), &facts("x"));
        let changed = |tools: &[(&str, &str)], told| first.changed(&inventory(tools), &facts(told));
        assert!(changed(&[("b", "2"), ("c", "3")], "x").is_empty());
        assert_eq!(changed(&[("a", "!"), ("b", "2")], "x"), ["tool \"a\""]);
        assert_eq!(changed(&[], "y"), ["its instructions"]);
        let silent = facts("x").without_instructions();
        assert_eq!((silent.instructions(), &silent.result[..]), (None, &br#"{"a":1}"#[..]));
        let odd = Baseline::new(&inventory(&[("a\nb", "1")]), &facts("x"));
        assert_eq!(odd.changed(&inventory(&[("a\nb", "2")]), &facts("x")), ["tool \"a\\nb\""]);
    }
}
