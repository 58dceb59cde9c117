//! Finds rules that name a built-in tool by another of its names: policy decides only on the first,
//! so such a rule matches no call.

use cedar_policy::Policy;
use narthex_model::{Alias, BuiltInTools};
use serde_json::Value;

/// The reason why a rule can match no call, and the text to write instead; `None` if the rule names
/// no such tool.
///
/// A rule is about the tool if it has `Tool::"narthex/NAME"`, or the text `NAME` together with the
/// built-in server, as an entity or by its alias.
pub(crate) fn fault(policy: &Policy) -> Option<(String, String)> {
    let rule = policy.to_json().ok()?;
    let built_in = Alias::built_in();
    let mut told = Told { built_in: built_in.as_str(), ..Told::default() };
    // Annotations are for people.
    ["resource", "conditions"].iter().for_each(|part| told.read(&rule[*part]));
    let (further, ruled) = told.entity.or(told.text.filter(|_| told.is_of_built_in))?;
    let message = format!(
        "`{further}` is another name of `{ruled}`, which no rule can name: this one would match \
         no call"
    );
    Some((message, format!("write `Tool::\"{built_in}/{ruled}\"`, which covers both names")))
}

/// Names in the JSON of a rule.
#[derive(Default)]
struct Told<'b> {
    built_in: &'b str,
    /// An entity with another name of a tool, and the name that rules know.
    entity: Option<(&'static str, &'static str)>,
    /// A text with another name of a tool, and the name that rules know.
    text: Option<(&'static str, &'static str)>,
    /// True if a text is the name of the built-in server.
    is_of_built_in: bool,
}

impl Told<'_> {
    fn read(&mut self, node: &Value) {
        match node {
            Value::Object(members) if members.len() == 2 && node["type"].is_string() => {
                self.note_entity(&node["type"], &node["id"]);
            }
            Value::Object(members) => members.values().for_each(|member| self.read(member)),
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::String(text) => {
                self.is_of_built_in |= text == self.built_in;
                self.text = self.text.or(named(text));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn note_entity(&mut self, kind: &Value, id: &Value) {
        let (Some(kind), Some(id)) = (kind.as_str(), id.as_str()) else { return };
        match (kind, id.strip_prefix(self.built_in).and_then(|rest| rest.strip_prefix('/'))) {
            ("Tool", Some(tool)) => self.entity = self.entity.or(named(tool)),
            ("Server", _) => self.is_of_built_in |= id == self.built_in,
            _ => {}
        }
    }
}

fn named(name: &str) -> Option<(&'static str, &'static str)> {
    BuiltInTools::further_names().find(|(further, _)| *further == name)
}
