//! The arguments of a tool that are mirrored in headers, by the `x-mcp-header` annotations of its
//! schema.

use std::{borrow::Cow, collections::HashSet};

use http::{HeaderMap, HeaderName};

use super::{
    Header, HeaderFault, MCP_PARAM_PREFIX,
    value::{Mirrored, shortened},
};
use crate::{
    Raw,
    json::{Object, Scanner, decode_string},
};

/// The annotation's keyword.
const KEYWORD: &str = "x-mcp-header";
/// More annotations than this in one tool are refused: each one is a header of each call.
const MOST: usize = 64;
/// Annotations in longer schemas are refused, as are those below longer names.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
const PATH_BYTES_MAX: usize = 4096;
/// Number of faults after which the search ends.
const FAULTS_MAX: usize = 16;

/// The arguments of one tool that are mirrored in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderParams {
    params: Vec<HeaderParam>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HeaderParam {
    /// The property names from the root of the arguments.
    path: Vec<String>,
    name: HeaderName,
    /// The name as the schema spells it.
    shown: String,
}

/// A fault of an annotation. The tool must not be offered to clients over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamFault {
    /// The annotation is empty, or not a valid part of a header's name.
    #[error("`x-mcp-header` at {at:?} is not an HTTP token")]
    Name {
        /// The steps from the schema's root.
        at: String,
    },
    /// The argument's type cannot be mirrored in a header.
    #[error("`x-mcp-header` at {at:?} needs the type string, integer or boolean")]
    Type {
        /// The steps from the schema's root.
        at: String,
    },
    /// The annotation is not reached through `properties` alone.
    #[error("`x-mcp-header` at {at:?} must be reached only through `properties`")]
    Unreachable {
        /// The steps from the schema's root.
        at: String,
    },
    /// Two arguments would share a header.
    #[error("`x-mcp-header` at {at:?} has a name that is used already")]
    Duplicate {
        /// The steps from the schema's root.
        at: String,
    },
    /// The schema has more annotations than a call can carry, or is too large to search.
    #[error(
        "more than {MOST} `x-mcp-header` annotations, or an annotation in a schema that is too \
         large"
    )]
    Excessive,
    /// The schema has a key twice or an undecodable key, so that readers could differ on
    /// annotations.
    #[error("the schema is ambiguous at {at:?}")]
    Ambiguous {
        /// The steps from the schema's root.
        at: String,
    },
}

impl HeaderParams {
    /// Finds the annotations in the raw input schema of a tool.
    ///
    /// # Errors
    /// All faults that were found.
    pub fn parse(schema: Raw<'_>) -> Result<Self, Vec<ParamFault>> {
        let text = schema.as_bytes();
        let has = |needle: &[u8]| memchr::memmem::find(text, needle).is_some();
        // An escape could hide the keyword's letters.
        if !has(KEYWORD.as_bytes()) && !has(b"\\u") {
            return Ok(Self::default());
        }
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(vec![ParamFault::Excessive]);
        }
        let mut walk = Walk::default();
        walk.nodes.push(Node { parent: 0, step: "".into(), is_reachable: true });
        walk.open.push((schema, 0));
        while let Some((schema, node)) = walk.open.pop() {
            walk.schema(schema, node);
            if walk.params.len() > MOST {
                walk.faults.push(ParamFault::Excessive);
            }
            if walk.faults.len() >= FAULTS_MAX || walk.params.len() > MOST {
                break;
            }
        }
        // The stack turned the order around; headers are easier to read in the schema's.
        walk.params.reverse();
        if walk.faults.is_empty() { Ok(Self { params: walk.params }) } else { Err(walk.faults) }
    }

    /// True if no argument is mirrored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Adds the headers for a call with these arguments. Absent and null arguments get no header.
    pub fn fill(&self, arguments: Raw<'_>, headers: &mut HeaderMap) {
        let object = Scanner::new(arguments.as_bytes(), 0, 0).object().ok();
        for param in &self.params {
            if let Some(value) = param.find(arguments, object.as_ref()).to_header() {
                headers.insert(param.name.clone(), value);
            }
        }
    }

    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        arguments: Option<Raw<'_>>,
        is_required: bool,
    ) -> Result<(), HeaderFault> {
        if self.is_empty() {
            return Ok(());
        }
        let object = arguments.and_then(|a| Scanner::new(a.as_bytes(), 0, 0).object().ok());
        for param in &self.params {
            let body = arguments.map_or(Mirrored::Absent, |a| param.find(a, object.as_ref()));
            let header = Header { name: &param.name, shown: &param.shown, is_encoded: true };
            let member = || format!("params.arguments.{}", param.path.join("."));
            header.check(headers, &body, is_required, member)?;
        }
        Ok(())
    }
}

impl HeaderParam {
    /// The argument's value. `object` is the index of `arguments`, if they are a readable object.
    fn find<'a>(&self, arguments: Raw<'a>, object: Option<&Object>) -> Mirrored<'a> {
        let mut raw = arguments;
        for (depth, key) in self.path.iter().enumerate() {
            if !raw.is_object() {
                return Mirrored::Absent;
            }
            let text = raw.as_bytes();
            let found = if depth == 0 {
                object.map(|object| object.get(text, key))
            } else {
                Scanner::new(text, 0, 0).object().ok().map(|object| object.get(text, key))
            };
            match found {
                None => return Mirrored::Impossible,
                Some(None) => return Mirrored::Absent,
                Some(Some(span)) => raw = Raw::new(span.of(text)),
            }
        }
        Mirrored::of(raw)
    }
}

/// A step from the schema's root to a schema within it.
struct Node<'a> {
    parent: usize,
    step: Cow<'a, str>,
    is_reachable: bool,
}

/// The walk over a schema. Without recursion, as schemas come from servers.
#[derive(Default)]
struct Walk<'a> {
    nodes: Vec<Node<'a>>,
    open: Vec<(Raw<'a>, usize)>,
    params: Vec<HeaderParam>,
    names: HashSet<HeaderName>,
    faults: Vec<ParamFault>,
}

type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// The members of an object; `None` if they cannot be read in one way only.
fn members(raw: Raw<'_>) -> Option<Members<'_>> {
    let text = raw.as_bytes();
    let object = Scanner::new(text, 0, 0).object().ok()?;
    let pair = |member: &crate::json::Member| {
        Some((decode_string(member.key.of(text))?, Raw::new(member.value.of(text))))
    };
    object.members.iter().map(pair).collect()
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: Raw<'a>, node: usize) {
        let Some(members) = members(schema) else {
            return self.faults.push(ParamFault::Ambiguous { at: self.at(node) });
        };
        if let Some((_, name)) = members.iter().find(|(key, _)| key == KEYWORD) {
            self.annotation(*name, &members, node);
        }
        for (key, value) in members {
            match &*key {
                // Data, in which the keyword would mean nothing.
                "const" | "default" | "dependentRequired" | "enum" | "examples" | KEYWORD => {}
                "properties" => self.named(value, node, None),
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies" => self.named(value, node, Some(key)),
                _ if value.is_object() => {
                    let below = self.enter(node, key, false);
                    self.open.push((value, below));
                }
                _ => {
                    let schemas: Vec<_> =
                        value.items().into_iter().filter(|item| item.is_object()).collect();
                    if !schemas.is_empty() {
                        let below = self.enter(node, key, false);
                        self.open.extend(schemas.into_iter().map(|item| (item, below)));
                    }
                }
            }
        }
    }

    /// Enters the schemas of a map from names; without `keyword`, it is `properties`.
    fn named(&mut self, map: Raw<'a>, node: usize, keyword: Option<Cow<'a, str>>) {
        if !map.is_object() {
            return;
        }
        let is_properties = keyword.is_none();
        let node = keyword.map_or(node, |keyword| self.enter(node, keyword, false));
        let Some(members) = members(map) else {
            return self.faults.push(ParamFault::Ambiguous { at: self.at(node) });
        };
        for (key, value) in members.into_iter().filter(|(_, value)| value.is_object()) {
            let below = self.enter(node, key, is_properties);
            self.open.push((value, below));
        }
    }

    fn enter(&mut self, parent: usize, step: Cow<'a, str>, is_property: bool) -> usize {
        let is_reachable = is_property && self.nodes[parent].is_reachable;
        self.nodes.push(Node { parent, step, is_reachable });
        self.nodes.len() - 1
    }

    fn steps(&self, mut node: usize) -> Vec<&str> {
        let mut steps = Vec::new();
        while node != 0 {
            steps.push(&*self.nodes[node].step);
            node = self.nodes[node].parent;
        }
        steps.reverse();
        steps
    }

    fn at(&self, node: usize) -> String {
        shortened(&self.steps(node).join("/"))
    }

    fn annotation(&mut self, name: Raw<'a>, members: &Members<'a>, node: usize) {
        let at = self.at(node);
        if node == 0 || !self.nodes[node].is_reachable {
            return self.faults.push(ParamFault::Unreachable { at });
        }
        let kind = members.iter().find(|(key, _)| key == "type");
        if !kind.is_some_and(|(_, kind)| is_primitive(*kind)) {
            return self.faults.push(ParamFault::Type { at });
        }
        let text = name.as_str().filter(|text| !text.is_empty()).unwrap_or_default();
        let shown = format!("{MCP_PARAM_PREFIX}{text}");
        let Ok(name) = HeaderName::try_from(&shown) else {
            return self.faults.push(ParamFault::Name { at });
        };
        if text.is_empty() {
            return self.faults.push(ParamFault::Name { at });
        }
        if !self.names.insert(name.clone()) {
            return self.faults.push(ParamFault::Duplicate { at });
        }
        let steps = self.steps(node);
        if steps.iter().map(|step| step.len()).sum::<usize>() > PATH_BYTES_MAX {
            return self.faults.push(ParamFault::Excessive);
        }
        let path = steps.into_iter().map(str::to_owned).collect();
        self.params.push(HeaderParam { path, name, shown });
    }
}

/// True if a schema's `type` can be mirrored, alone or together with null.
fn is_primitive(kind: Raw<'_>) -> bool {
    let is_one = |name: Raw<'_>| {
        name.as_str().is_some_and(|name| matches!(&*name, "string" | "integer" | "boolean"))
    };
    let mut kinds = kind.items();
    kinds.retain(|kind| kind.as_bytes() != b"\"null\"");
    is_one(kind) || matches!(kinds[..], [only] if is_one(only))
}
