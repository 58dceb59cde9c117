//! Reads the part of an entry that requires tool scopes for items of a server (D14).

use std::collections::BTreeMap;

use narthex_model::{Gates, ToolScope, ToolScopes};

use super::{
    node::{Node, Place, field},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

impl Reader<'_> {
    /// Reads `tool_scopes`, `resource_scopes` and `prompt_scopes`. A value that cannot be read is a
    /// fault in every document: to ignore it would open items that its author meant to gate.
    pub(super) fn gates(&mut self, fields: &Fields, at: &Place) -> Gates {
        Gates::new(
            self.scopes(fields, at, "tool_scopes"),
            &self.scopes(fields, at, "resource_scopes"),
            self.scopes(fields, at, "prompt_scopes"),
        )
    }

    fn scopes(&mut self, fields: &Fields, at: &Place, key: &str) -> BTreeMap<String, ToolScopes> {
        let place = at.key(key);
        let mut found = BTreeMap::new();
        match field(fields, key) {
            None => {}
            Some(Node::Object(named)) => {
                for (name, node) in named {
                    found.insert(name.clone(), self.scopes_of(node, &place.key(name)));
                }
            }
            Some(node) => self.wrong_type(&place, node, "an object of names with tool scopes"),
        }
        found
    }

    /// Reads one scope or a list of scopes, of which all are required.
    fn scopes_of(&mut self, node: &Node, at: &Place) -> ToolScopes {
        match node {
            Node::List(nodes) => {
                let one = |(index, node)| self.scope(node, &at.index(index));
                nodes.iter().enumerate().filter_map(one).collect()
            }
            node => self.scope(node, at).into_iter().collect(),
        }
    }

    fn scope(&mut self, node: &Node, at: &Place) -> Option<ToolScope> {
        let Node::Text(text) = node else {
            self.wrong_type(at, node, "a tool scope such as `linear.write`");
            return None;
        };
        let scope = ToolScope::new(text);
        scope.map_err(|error| self.fault(at, EntryProblem::BadScope(error))).ok()
    }
}
