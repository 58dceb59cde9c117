//! Values with placeholders: `${source.key}`, whole or inside a string, parsed once.
//!
//! A text is split when it is read, and a filled-in value is a separate piece: no value is ever
//! searched for placeholders (O62, S30). `$${` is a literal `${`.

mod text;

use std::fmt;

use narthex_model::{
    SecretName,
    json::{Node, Place},
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use text::{Text, is_variable, parse};
use text::{bad, partial_secret};

/// The source of a placeholder's value (O11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The agent's parameters, which the model sees. Only at the agent's level.
    Params,
    /// The run's scope, which no model sees.
    Scope,
    /// The daemon's environment: names on the allowlist only.
    Env,
    /// Facts of the run: `session_id`, `run_id`, `project_dir`.
    Runtime,
    /// Values that only the program that starts the servers knows.
    Runner,
}

impl Source {
    const ALL: [Self; 5] = narthex_model::every![Params, Scope, Env, Runtime, Runner];

    /// The word before the dot.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Scope => "scope",
            Self::Env => "env",
            Self::Runtime => "runtime",
            Self::Runner => "runner",
        }
    }
}

/// One `${source.key}`. The key is all text after the first dot (O55).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Placeholder {
    /// The source of its value.
    pub(crate) source: Source,
    /// The key in the source.
    pub(crate) key: String,
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.source.as_str(), self.key)
    }
}

/// A part of a text.
#[derive(Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// A text with at least one placeholder.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

/// A JSON value with placeholders in its strings. `Debug` shows placeholders and no text.
#[derive(Clone, PartialEq)]
pub(crate) enum Tree {
    /// A value without any placeholder inside.
    Plain(Value),
    Text(Template),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// The value of one config key at one level.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ConfigValue {
    /// `null`: the key is removed (O8).
    Removed,
    /// The whole value is a secret, by name (X-M33).
    Secret(SecretName),
    Tree(Tree),
}

impl ConfigValue {
    /// True if the platform alone chooses the value: one placeholder of `runtime` or `runner`.
    pub(crate) fn is_the_platforms(&self) -> bool {
        let Self::Tree(Tree::Text(text)) = self else { return false };
        let source = text.whole().map(|placeholder| placeholder.source);
        matches!(source, Some(Source::Runtime | Source::Runner))
    }
}

/// The reason why a text is no template, with the remedy.
pub(crate) struct BadText {
    pub(crate) is_secret: bool,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl Template {
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Placeholder(placeholder) => Some(placeholder),
            Piece::Text(_) => None,
        })
    }

    /// The texts between its placeholders.
    pub(crate) fn literals(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Placeholder(_) => None,
        })
    }

    /// Adds text, which stays text whatever it holds.
    pub(crate) fn push_text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            Some(Piece::Placeholder(_)) | None => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    pub(crate) fn push(&mut self, placeholder: Placeholder) {
        self.0.push(Piece::Placeholder(placeholder));
    }

    /// The text, if no placeholder is in it.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The placeholder that is the whole text.
    pub(crate) fn whole(&self) -> Option<&Placeholder> {
        match self.0.as_slice() {
            [Piece::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// The text as it is written.
    pub(crate) fn written(&self) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => escaped(text),
                Piece::Placeholder(placeholder) => format!("${{{placeholder}}}"),
            })
            .collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

impl Tree {
    pub(crate) fn text(template: Template) -> Self {
        match template.plain() {
            Some(text) => Self::Plain(text.into()),
            None => Self::Text(template),
        }
    }

    pub(crate) fn list(trees: Vec<Self>) -> Self {
        match trees.iter().map(Self::plain).collect() {
            Some(values) => Self::Plain(Value::Array(values)),
            None => Self::List(trees),
        }
    }

    pub(crate) fn object(mut fields: Vec<(String, Self)>) -> Self {
        // Sorted, so that equal trees have equal texts.
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        match fields.iter().map(|(key, tree)| Some((key.clone(), tree.plain()?))).collect() {
            Some(fields) => Self::Plain(Value::Object(fields)),
            None => Self::Object(fields),
        }
    }

    fn plain(&self) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value.clone()),
            Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    pub(crate) fn placeholders(&self) -> Vec<&Placeholder> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Text(template) => template.placeholders().collect(),
            Self::List(trees) => trees.iter().flat_map(Self::placeholders).collect(),
            Self::Object(fields) => {
                fields.iter().flat_map(|(_, tree)| tree.placeholders()).collect()
            }
        }
    }

    /// True if any part of it is more than a reference.
    pub(crate) fn has_literal(&self) -> bool {
        match self {
            Self::Plain(_) | Self::List(_) | Self::Object(_) => true,
            Self::Text(template) => template.0.iter().any(|piece| matches!(piece, Piece::Text(_))),
        }
    }

    /// The tree as it is written, with literal `${` escaped.
    pub(crate) fn written(&self) -> Value {
        match self {
            Self::Plain(value) => written(value),
            Self::Text(template) => template.written().into(),
            Self::List(trees) => trees.iter().map(Self::written).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(key, tree)| (key.clone(), tree.written())).collect()
            }
        }
    }
}

/// A plain value with literal `${` escaped.
fn written(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => escaped(text).into(),
        Value::Array(values) => values.iter().map(written).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), written(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tree").field(&self.placeholders()).finish()
    }
}

impl ConfigValue {
    /// True for a text that is empty, or has blanks alone.
    pub(crate) fn is_empty_text(&self) -> bool {
        matches!(self, Self::Tree(Tree::Plain(Value::String(text))) if text.trim().is_empty())
    }

    /// The value as it is written; a secret as its reference.
    pub(crate) fn written(&self) -> Value {
        match self {
            Self::Removed => Value::Null,
            Self::Secret(name) => serde_json::json!({ "$secret": name }),
            Self::Tree(tree) => tree.written(),
        }
    }

    pub(crate) fn placeholders(&self) -> Vec<&Placeholder> {
        match self {
            Self::Removed | Self::Secret(_) => Vec::new(),
            Self::Tree(tree) => tree.placeholders(),
        }
    }
}

impl Serialize for ConfigValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(serializer)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written())
    }
}

/// A value of an object that is no secret's reference, as a tree; each bad text goes to `fault`
/// with the keys and indexes that lead to it.
pub(crate) fn tree(
    node: &Node,
    place: &Place,
    fault: &mut dyn FnMut(&Place, BadText),
) -> Option<Tree> {
    match node {
        Node::Null | Node::Bool(_) | Node::Number(_) => Some(Tree::Plain(node.to_value())),
        Node::Text(text) => match parse(text, false) {
            Ok(Text::Template(template)) => Some(Tree::text(template)),
            Ok(Text::Secret(name)) => {
                fault(place, partial_secret(&name));
                None
            }
            Err(bad) => {
                fault(place, bad);
                None
            }
        },
        Node::List(nodes) => {
            let trees = nodes.iter().enumerate();
            let trees: Vec<Option<Tree>> =
                trees.map(|(index, node)| tree(node, &place.index(index), fault)).collect();
            Some(Tree::list(trees.into_iter().collect::<Option<_>>()?))
        }
        Node::Object(fields) => {
            let mut trees = Vec::with_capacity(fields.len());
            for (key, node) in fields {
                let place = place.key(key);
                if key == "$secret" {
                    fault(&place, nested_secret());
                } else if key.contains("${") {
                    fault(&place, bad("a key holds `${`", "use placeholders only in values"));
                }
                trees.push(tree(node, &place, fault).map(|tree| (key.clone(), tree)));
            }
            Some(Tree::object(trees.into_iter().collect::<Option<_>>()?))
        }
    }
}

fn nested_secret() -> BadText {
    BadText {
        is_secret: true,
        message: "a secret is inside another value".to_owned(),
        remedy: "make it the whole value of a key of its own".to_owned(),
    }
}
