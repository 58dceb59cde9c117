//! The tree of a text: values with the places at which they stand, the same for every format.

use std::ops::Range;

use serde_json::{Map, Value, json};

/// The key of an alias in a value without places. No key of a file has this character.
pub(super) const ALIAS: &str = "\0alias";

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Bytes of the value, without tags and anchors before it.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
    /// True for `{…}` and `[…]`, and for scalars on the line of their key.
    pub(super) is_flow: bool,
    /// The identifier of its anchor in YAML; 0 without one.
    pub(super) anchor: usize,
    /// True if a tag or an anchor stands before it.
    pub(super) is_marked: bool,
}

/// The content of a value.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Map(Vec<Member>),
    List(Vec<Node>),
    Scalar(Value),
    /// A reference of YAML to another value: its name, and the anchor.
    Alias(String, usize),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    /// Bytes of the key.
    pub(super) key_span: Range<usize>,
    pub(super) value: Node,
}

impl Member {
    /// Bytes from the start of the key to the end of the value.
    pub(super) fn span(&self) -> Range<usize> {
        self.key_span.start..self.value.span.end.max(self.key_span.end)
    }
}

impl Node {
    pub(super) fn new(span: Range<usize>, kind: Kind) -> Self {
        Self { span, kind, is_flow: true, anchor: 0, is_marked: false }
    }

    /// The members of a map; none of anything else.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Map(members) => members,
            Kind::List(_) | Kind::Scalar(_) | Kind::Alias(..) => &[],
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Value::Null))
    }

    /// True for a map or a list with nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Map(members) => members.is_empty(),
            Kind::List(items) => items.is_empty(),
            Kind::Scalar(_) | Kind::Alias(..) => false,
        }
    }

    /// The noun of the kind, for messages.
    pub(super) fn noun(&self) -> &'static str {
        match &self.kind {
            Kind::Map(_) => "a map of keys",
            Kind::List(_) => "a list",
            Kind::Alias(..) => "an alias",
            Kind::Scalar(Value::Null) => "null",
            Kind::Scalar(_) => "a single value",
        }
    }

    /// Places of the members or items, in their order.
    pub(super) fn item_spans(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Map(members) => members.iter().map(Member::span).collect(),
            Kind::List(items) => items.iter().map(|item| item.span.clone()).collect(),
            Kind::Scalar(_) | Kind::Alias(..) => Vec::new(),
        }
    }

    /// The value without places. An alias stays a name, so the size is that of the text.
    pub(super) fn shape(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Self::shape).collect()),
            Kind::Map(members) => Value::Object(
                members.iter().map(|member| (member.key.clone(), member.value.shape())).collect(),
            ),
            Kind::Alias(name, _) => json!({ ALIAS: name }),
        }
    }

    /// The node with an anchor.
    fn anchored(&self, anchor: usize) -> Option<&Self> {
        if self.anchor == anchor {
            return Some(self);
        }
        match &self.kind {
            Kind::Map(members) => members.iter().find_map(|member| member.value.anchored(anchor)),
            Kind::List(items) => items.iter().find_map(|item| item.anchored(anchor)),
            Kind::Scalar(_) | Kind::Alias(..) => None,
        }
    }

    /// The value with aliases replaced by their targets in the tree of `root`. `None` when the
    /// result is larger than the budget allows, as with aliases of aliases.
    pub(super) fn resolved(&self, root: &Self, budget: &mut Budget) -> Option<Value> {
        budget.nodes = budget.nodes.checked_sub(1)?;
        budget.depth = budget.depth.checked_sub(1)?;
        let value = match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => {
                let items = items.iter().map(|item| item.resolved(root, budget));
                Value::Array(items.collect::<Option<_>>()?)
            }
            Kind::Map(members) => {
                let mut map = Map::new();
                for member in members {
                    map.insert(member.key.clone(), member.value.resolved(root, budget)?);
                }
                Value::Object(map)
            }
            Kind::Alias(_, anchor) => root.anchored(*anchor)?.resolved(root, budget)?,
        };
        budget.depth += 1;
        Some(value)
    }
}

/// Limits of a value with its aliases resolved.
pub(super) struct Budget {
    nodes: usize,
    depth: usize,
}

impl Default for Budget {
    fn default() -> Self {
        // The parsers allow a depth of 512 at most.
        Self { nodes: 100_000, depth: 600 }
    }
}

/// The result of following a path.
pub(super) struct Walk<'a> {
    /// The deepest node on the path. `None` if the text has no value at all.
    pub(super) node: Option<&'a Node>,
    /// Number of keys of the path that exist.
    pub(super) depth: usize,
    /// The member that holds the node, if it is not the root.
    pub(super) member: Option<&'a Member>,
}

/// Follows the keys of a path as far as they exist.
pub(super) fn walk<'a>(root: Option<&'a Node>, path: &[String]) -> Walk<'a> {
    let mut walk = Walk { node: root, depth: 0, member: None };
    for key in path {
        let Some(member) = walk.node.and_then(|node| node.member(key)) else { break };
        walk = Walk { node: Some(&member.value), depth: walk.depth + 1, member: Some(member) };
    }
    walk
}
