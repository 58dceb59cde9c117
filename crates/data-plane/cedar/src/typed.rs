//! The rest of a rule that got an argument of another type than it requires.
//!
//! Such a rule counts as matching as far as it would with any value of the argument: its other
//! conditions must hold. Otherwise a rule that names its tool first would apply to other tools.

use cedar_policy::{Policy, PolicyId};
use serde_json::{Value, json};

use crate::part::{conditions, in_pairs};

/// A rule that asks for arguments, to be asked without some of them.
#[derive(Debug)]
pub(crate) struct Typed {
    /// The types of its arguments, by their number in the set.
    pub(crate) kinds: usize,
    id: PolicyId,
    /// The rule in Cedar's JSON, without its conditions; `None` if the rule has no JSON form.
    head: Option<Value>,
    /// The conditions, all of which must be true.
    conditions: Vec<Value>,
}

/// A rule without its conditions on some arguments; `None` if that rule cannot be built.
pub(crate) struct Left(pub(crate) Option<Policy>);

impl Typed {
    /// The types of a rule that uses arguments of these types, by their number in the set.
    pub(crate) fn of(rule: &Policy, kinds: usize) -> Self {
        let head = rule.to_json().ok().map(|mut head| {
            head["conditions"] = json!([]);
            head
        });
        let mut conditions = conditions(rule).unwrap_or_default();
        conditions.reverse();
        Self { kinds, id: rule.id().clone(), head, conditions }
    }

    /// The rest of the rule if these arguments are of other types than it requires: the rule counts
    /// as matching if the rest does.
    pub(crate) fn left(&self, mistyped: &[&str]) -> Left {
        Left(self.without(mistyped))
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

/// True if a condition may use an argument of this name: the word occurs in it. A condition that
/// means another thing by the word is left out, too, so that a rule rather matches.
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
