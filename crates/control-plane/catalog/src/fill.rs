//! Fills in placeholders, in a single pass (O62, O63, S30).
//!
//! Values of params, scope and runtime are filled in verbatim. Placeholders of the environment or
//! the runner stay: the former may be secret, and the latter are not known here.

use narthex_model::{RunScope, Secret, json::shortened, nearest};
use serde_json::{Map, Value};

use crate::{
    surroundings::{EnvValue, Surroundings},
    template::{Piece, Placeholder, Source, Template, Tree},
};

/// The most text that one run's values may have together.
const TOTAL_MAX: usize = 4 << 20;
/// The most text that one value may have.
const VALUE_MAX: usize = 64 << 10;

/// The inputs for resolving one run.
#[derive(Clone, Copy)]
pub struct RunInputs<'a> {
    /// The run's id, which exists before the run is resolved (O72).
    pub run_id: &'a str,
    /// The session's id.
    pub session_id: &'a str,
    /// The folder in which the session works.
    pub project_dir: Option<&'a str>,
    /// The agent's parameters; in a resumed session, those of its start.
    pub params: &'a Map<String, Value>,
    /// The scope of this run, with the inherited keys.
    pub scope: &'a RunScope,
}

impl std::fmt::Debug for RunInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunInputs")
            .field("run_id", &self.run_id)
            .field("session_id", &self.session_id)
            .field("params", &self.params.keys().collect::<Vec<_>>())
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The reason why a value could not be filled in.
#[derive(Debug, Default)]
pub(crate) struct Unfilled {
    /// The placeholders that have no value, in the order of the text.
    pub(crate) missing: Vec<Placeholder>,
    /// True if the text became longer than it may.
    pub(crate) is_too_long: bool,
}

/// Looks up and fills in for one run.
pub(crate) struct Filler<'a> {
    inputs: RunInputs<'a>,
    surroundings: Surroundings<'a>,
    left: usize,
}

/// The value of a placeholder.
pub(crate) enum Found<'a> {
    Borrowed(&'a Value),
    Text(&'a str),
    /// A known value that the program that starts the server fills in.
    Later,
    Missing,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(inputs: RunInputs<'a>, surroundings: Surroundings<'a>) -> Self {
        Self { inputs, surroundings, left: TOTAL_MAX }
    }

    /// Null counts as missing, an empty text does not (O58).
    pub(crate) fn find(&self, placeholder: &Placeholder) -> Found<'a> {
        let key = placeholder.key.as_str();
        let or_missing = |value: Option<&'a Value>| match value {
            Some(Value::Null) | None => Found::Missing,
            Some(value) => Found::Borrowed(value),
        };
        match placeholder.source {
            Source::Params => or_missing(by_key(self.inputs.params, key)),
            Source::Scope => or_missing(by_key(self.inputs.scope.values(), key)),
            Source::Runtime => {
                let text = match key {
                    "run_id" => Some(self.inputs.run_id),
                    "session_id" => Some(self.inputs.session_id),
                    _ => self.inputs.project_dir,
                };
                text.map_or(Found::Missing, Found::Text)
            }
            Source::Env => match (self.surroundings.env)(key) {
                EnvValue::Unset => Found::Missing,
                // The plan has reported a variable that may not be used as a fault.
                EnvValue::Set(_) | EnvValue::NotAllowed => Found::Later,
            },
            Source::Runner => Found::Later,
        }
    }

    /// The step that gives a missing placeholder its value: a key that was given and nearly spells
    /// it is named.
    pub(crate) fn remedy(&self, placeholder: &Placeholder) -> String {
        let key = placeholder.key.as_str();
        let of = |given: &Map<String, Value>, member: &str| match misspelt(given, key) {
            Some(given) => meant(given, key, member),
            None => format!("give `{key}` in the run's `{member}`"),
        };
        match placeholder.source {
            Source::Params => of(self.inputs.params, "params"),
            Source::Scope => of(self.inputs.scope.values(), "scope"),
            Source::Env => format!(
                "set the allowed variable `{key}` in the daemon's environment, and restart the \
                 daemon"
            ),
            Source::Runtime if key == "project_dir" => "only an operator sets `project_dir`: ask \
                 an operator to create this run or its parent run, or attach the server as \
                 `optional`"
                .to_owned(),
            Source::Runtime => format!("give `{key}` when the run is created"),
            Source::Runner => format!("the runner must provide `{key}`"),
        }
    }

    /// Takes this length from the run's budget; false if the value or the run is too long.
    fn take(&mut self, length: usize, unfilled: &mut Unfilled) -> bool {
        let is_enough = length <= VALUE_MAX && length <= self.left;
        self.left = self.left.saturating_sub(length);
        unfilled.is_too_long |= !is_enough;
        is_enough
    }

    /// The tree with all placeholders filled in whose values are known here.
    pub(crate) fn tree(&mut self, tree: &Tree, unfilled: &mut Unfilled) -> Tree {
        match tree {
            Tree::Plain(value) => Tree::Plain(value.clone()),
            Tree::Text(template) => self.text(template, unfilled),
            Tree::List(trees) => {
                Tree::list(trees.iter().map(|tree| self.tree(tree, unfilled)).collect())
            }
            Tree::Object(fields) => {
                let fields = fields.iter();
                let filled = fields.map(|(key, tree)| (key.clone(), self.tree(tree, unfilled)));
                Tree::object(filled.collect())
            }
        }
    }

    /// A placeholder that is the whole text keeps its type (O65).
    fn text(&mut self, template: &Template, unfilled: &mut Unfilled) -> Tree {
        if let Some(placeholder) = template.whole()
            && let Found::Borrowed(value) = self.find(placeholder)
        {
            return match self.take(text_of(value).len(), unfilled) {
                true => Tree::Plain(value.clone()),
                false => Tree::Plain(Value::Null),
            };
        }
        Tree::text(self.template(template, unfilled))
    }

    pub(crate) fn template(&mut self, template: &Template, unfilled: &mut Unfilled) -> Template {
        let mut filled = Template::default();
        let mut length = 0;
        for piece in &template.0 {
            let text = match piece {
                Piece::Text(text) => text.clone(),
                Piece::Placeholder(placeholder) => match self.find(placeholder) {
                    Found::Borrowed(value) => text_of(value),
                    Found::Text(text) => text.to_owned(),
                    Found::Later => {
                        filled.push(placeholder.clone());
                        continue;
                    }
                    Found::Missing => {
                        unfilled.missing.push(placeholder.clone());
                        continue;
                    }
                },
            };
            length += text.len();
            if length > VALUE_MAX || !self.take(text.len(), unfilled) {
                unfilled.is_too_long = true;
                return Template::default();
            }
            filled.push_text(&text);
        }
        filled
    }
}

/// The key among `given` values that nearly spells `wanted`, which is missing there.
pub(crate) fn misspelt<'g>(given: &'g Map<String, Value>, wanted: &str) -> Option<&'g str> {
    let first = wanted.split_once('.').map_or(wanted, |(first, _)| first);
    let others = given.keys().map(String::as_str).filter(|key| *key != wanted && *key != first);
    nearest(first, others)
}

/// The remedy where a value was given under a misspelt key.
pub(crate) fn meant(given: &str, wanted: &str, member: &str) -> String {
    let given = shortened(given);
    format!("the run's `{member}` gives `{given}`; did you mean `{wanted}`?")
}

/// Looks up `${scope.a.b}`: the key `a.b`, and without one the key `b` of the object `a` (O55).
fn by_key<'v>(values: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    values.get(key).or_else(|| {
        let (first, rest) = key.split_once('.')?;
        by_key(values.get(first)?.as_object()?, rest)
    })
}

/// A value inside a text: a string as it is, any other value as compact JSON (O65).
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Lookups for the placeholders that a run's configuration left open. `None` from either: the value
/// is not available.
pub(crate) struct Openers<'a> {
    pub(crate) env: &'a dyn Fn(&str) -> Option<Secret>,
    pub(crate) runner: &'a dyn Fn(&str) -> Option<String>,
}

/// The template as text, with the values of the starter; else the placeholder without a value.
pub(crate) fn opened_text(
    template: &Template,
    openers: &Openers<'_>,
) -> Result<String, Placeholder> {
    let mut opened = String::new();
    for piece in &template.0 {
        match piece {
            Piece::Text(text) => opened.push_str(text),
            Piece::Placeholder(placeholder) => {
                let key = placeholder.key.as_str();
                let missing = || placeholder.clone();
                match placeholder.source {
                    Source::Env => {
                        opened.push_str((openers.env)(key).ok_or_else(missing)?.expose());
                    }
                    Source::Runner => {
                        opened.push_str(&(openers.runner)(key).ok_or_else(missing)?);
                    }
                    Source::Params | Source::Scope | Source::Runtime => return Err(missing()),
                }
            }
        }
    }
    Ok(opened)
}

/// Does as [`opened_text`], for a whole tree.
pub(crate) fn opened(tree: &Tree, openers: &Openers<'_>) -> Result<Value, Placeholder> {
    match tree {
        Tree::Plain(value) => Ok(value.clone()),
        Tree::Text(template) => opened_text(template, openers).map(Value::String),
        Tree::List(trees) => trees.iter().map(|tree| opened(tree, openers)).collect(),
        Tree::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(key, tree)| Ok((key.clone(), opened(tree, openers)?))).collect()
        }
    }
}
