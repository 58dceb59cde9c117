//! What is left of a rule where an argument is of another type than it says.
//!
//! Such a rule counts as matching, as far as it would whatever the argument were: what it asks for
//! besides must be so. Else a rule that asks for the tool first would concern others.

use cedar_policy::{Policy, PolicyId};
use narthex_model::json::Node;
use serde_json::{Value, json};

use crate::{
    arguments::Kinds,
    part::{conditions, in_pairs},
};

/// A rule that asks for arguments, to be asked without some of them.
#[derive(Debug)]
pub(crate) struct Typed {
    kinds: Kinds,
    id: PolicyId,
    /// In Cedar's JSON, without its conditions; `None` if it cannot be written so.
    head: Option<Value>,
    /// What all must be true.
    conditions: Vec<Value>,
}

/// A rule without what it asks of some arguments; `None` if nobody can say what that is.
pub(crate) struct Left(pub(crate) Option<Policy>);

impl Typed {
    /// Of a rule that asks for arguments of these types.
    pub(crate) fn of(rule: &Policy, kinds: Kinds) -> Self {
        let head = rule.to_json().ok().map(|mut head| {
            head["conditions"] = json!([]);
            head
        });
        let mut conditions = conditions(rule).unwrap_or_default();
        conditions.reverse();
        Self { kinds, id: rule.id().clone(), head, conditions }
    }

    /// What is left of the rule where arguments are of other types than it says: it counts as
    /// matching if that does. `None` if all are as it says.
    pub(crate) fn left(&self, given: &Node) -> Option<Left> {
        let names = self.kinds.mistyped(given);
        (!names.is_empty()).then(|| Left(self.without(&names)))
    }

    /// The rule without the conditions that name one of these arguments.
    fn without(&self, names: &[&str]) -> Option<Policy> {
        let left = self.conditions.iter().filter(|one| !names.iter().any(|name| says(one, name)));
        let body = in_pairs("&&", left.cloned().collect());
        let mut rule = self.head.clone()?;
        rule["conditions"] = json!([{ "kind": "when", "body": body }]);
        Policy::from_json(Some(self.id.clone()), rule).ok()
    }
}

/// Whether a condition may look at an argument of this name: it says the word somewhere. One that
/// means something else by it is left out, too, so that a rule rather matches.
fn says(condition: &Value, name: &str) -> bool {
    match condition {
        Value::String(text) => text == name || text.split('.').any(|part| part == name),
        Value::Array(items) => items.iter().any(|item| says(item, name)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key == name || says(value, name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
