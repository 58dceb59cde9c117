//! Rules with the same head, which are evaluated together before each is by itself.
//!
//! Evaluating one rule costs more than its conditions: the authorizer combines head and conditions
//! anew each time. So the conditions of many are joined into one rule, which is true or fails where
//! any of them is or does. Only then are they evaluated one by one. Most calls match no rule.

use cedar_policy::{Entities, Policy, PolicyId, PolicySet, Request};
use serde_json::{Value, json};

use crate::{ask::AUTHORIZER, bounds};

/// Number of rules that are joined: a call that matches one of them pays for all.
const JOINED_MAX: usize = 16;
/// A smaller number of rules is asked at once.
const JOINED_MIN: usize = 4;
/// Most levels of shared first conditions that are asked once for several rules.
const SHARED_MAX: usize = 8;

/// Some rules of a set.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Sets with up to [`JOINED_MAX`] rules each.
    sets: Vec<PolicySet>,
    /// The numbers of all rules.
    numbers: Vec<usize>,
    /// One joined rule per set, by its number. A set has none if that would save nothing.
    joined: PolicySet,
}

impl Part {
    /// Adds a rule, whose id no other one has.
    pub(crate) fn add(&mut self, rule: Policy) {
        self.numbers.extend(number(rule.id()));
        match self.sets.last_mut() {
            Some(set) if set.num_of_policies() < JOINED_MAX => add(set, rule),
            _ => {
                let mut set = PolicySet::new();
                add(&mut set, rule);
                self.sets.push(set);
            }
        }
    }

    /// Joins the rules that were added.
    pub(crate) fn join(&mut self) {
        if self.rules().count() < JOINED_MIN {
            return;
        }
        for (number, set) in self.sets.iter().enumerate() {
            add(&mut self.joined, joined(number, set));
        }
    }

    /// All of them.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Policy> {
        self.sets.iter().flat_map(PolicySet::policies)
    }

    /// Their numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.numbers.iter().copied()
    }

    /// The sets in which a rule may match or fail.
    pub(crate) fn sets_for(&self, request: &Request, entities: &Entities) -> Vec<&PolicySet> {
        if self.joined.is_empty() {
            return self.sets.iter().collect();
        }
        let said = AUTHORIZER.is_authorized(request, &self.joined, entities);
        let said = said.diagnostics();
        let failed = said.errors().map(|error| {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            error.policy_id()
        });
        let numbers = said.reason().chain(failed);
        numbers.filter_map(|id| self.sets.get(number(id)?)).collect()
    }
}

/// Rules and sets are numbered when they are compiled.
pub(crate) fn number(id: &PolicyId) -> Option<usize> {
    AsRef::<str>::as_ref(id).parse().ok()
}

fn add(set: &mut PolicySet, rule: Policy) {
    set.add(rule).expect("each rule has a number of its own");
}

/// One rule that matches or fails if one of these does. It ignores their heads, so it may also
/// match in other cases.
fn joined(number: usize, set: &PolicySet) -> Policy {
    let id = PolicyId::new(number.to_string());
    let conditions: Option<Vec<_>> = set.policies().map(conditions).collect();
    let conditions =
        conditions.map_or(json!([]), |all| json!([{ "kind": "when", "body": any_of(all, 0) }]));
    let of_all = |conditions: Value| {
        let all = json!({ "op": "All" });
        let rule = json!({
            "effect": "forbid", "principal": all, "action": all, "resource": all,
            "conditions": conditions,
        });
        Policy::from_json(Some(id.clone()), rule).ok()
    };
    // A condition that always matches costs time and decides nothing wrongly.
    of_all(conditions).or_else(|| of_all(json!([]))).expect("a rule of nothing is one")
}

/// The rule with its conditions rewritten so that no chain of `&&` or `||` is deep. So evaluating,
/// copying and dropping the rule need little stack. The error gives the reason why this form cannot
/// be made.
pub(crate) fn shallow(rule: &Policy) -> Result<Policy, String> {
    let unwritable = || "it cannot be written as Cedar's JSON".to_owned();
    let mut all = conditions(rule).ok_or_else(unwritable)?;
    all.reverse();
    let condition = in_pairs("&&", all);
    if let Some(fault) = bounds::kept_fault(&condition) {
        return Err(fault);
    }
    let mut text = rule.to_json().map_err(|_error| unwritable())?;
    text["conditions"] = json!([{ "kind": "when", "body": condition }]);
    Policy::from_json(Some(rule.id().clone()), text).map_err(|_error| unwritable())
}

/// The conditions of a rule behind its head, all of which must be true, the last first.
pub(crate) fn conditions(rule: &Policy) -> Option<Vec<Value>> {
    let mut rule = rule.to_json().ok()?;
    let Value::Array(conditions) = rule["conditions"].take() else { return None };
    let mut all = Vec::new();
    for mut one in conditions {
        let body = one["body"].take();
        match one["kind"].as_str()? {
            "when" => all.extend(operands("&&", body)),
            "unless" => all.push(json!({ "!": { "arg": balanced(body) } })),
            _ => return None,
        }
    }
    all.reverse();
    Some(all)
}

/// The operands of a chain in their order, each of them balanced.
fn operands(operator: &str, chain: Value) -> Vec<Value> {
    let (mut found, mut rest) = (Vec::new(), vec![chain]);
    while let Some(mut next) = rest.pop() {
        match next.get_mut(operator) {
            Some(both) => rest.extend([both["right"].take(), both["left"].take()]),
            None => found.push(balanced(next)),
        }
    }
    found
}

/// The expression with its chains of `&&` and `||` as trees. It evaluates the same operands, in the
/// same order and to the same point.
fn balanced(expression: Value) -> Value {
    match expression {
        Value::Object(members) if members.contains_key("&&") => {
            in_pairs("&&", operands("&&", Value::Object(members)))
        }
        Value::Object(members) if members.contains_key("||") => {
            in_pairs("||", operands("||", Value::Object(members)))
        }
        // The content of a value is no operator.
        Value::Object(members) if members.contains_key("Value") => Value::Object(members),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, balanced(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(balanced).collect(),
        other => other,
    }
}

/// An expression that is true or fails where one of these is or does. A shared first condition is
/// asked once.
fn any_of(all: Vec<Vec<Value>>, depth: usize) -> Value {
    let mut groups: Vec<(Value, Vec<Vec<Value>>)> = Vec::new();
    for mut rest in all {
        let Some(first) = rest.pop() else { return json!({ "Value": true }) };
        match groups.iter_mut().find(|(known, _)| *known == first) {
            Some((_, others)) => others.push(rest),
            None => groups.push((first, vec![rest])),
        }
    }
    let groups = groups.into_iter().map(|(first, mut rest)| match rest.len() {
        _ if rest.iter().any(Vec::is_empty) => first,
        1 => in_pairs("&&", [vec![first], rest.remove(0).into_iter().rev().collect()].concat()),
        _ if depth == SHARED_MAX => first,
        _ => in_pairs("&&", vec![first, any_of(rest, depth + 1)]),
    });
    in_pairs("||", groups.collect())
}

/// Expressions joined by `&&` or `||`, in their order, so that many are not deep.
pub(crate) fn in_pairs(operator: &str, mut all: Vec<Value>) -> Value {
    while all.len() > 1 {
        let mut rest = all.into_iter();
        let mut pairs = Vec::new();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => json!({ operator: { "left": left, "right": right } }),
                None => left,
            });
        }
        all = pairs;
    }
    all.pop().unwrap_or_else(|| json!({ "Value": operator == "&&" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rules: &[&str]) -> PolicySet {
        rules.concat().parse().unwrap()
    }

    #[test]
    fn a_joined_rule_has_the_conditions_of_all() {
        let rule = joined(
            7,
            &set(&[
                "forbid(principal, action, resource) when { context.a } unless { context.b };",
                "forbid(principal, action, resource) when { context.c == 1 };",
                "forbid(principal, action, resource) unless { context.d };",
            ]),
        );
        assert_eq!(number(rule.id()), Some(7));
        let text = rule.to_string();
        for part in ["context.a && (!context.b)", "context.c == 1", "!context.d", "||"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// Chains of any length are stored as trees, with the operands in their order.
    #[test]
    fn a_long_chain_of_a_rule_is_stored_as_a_shallow_tree() {
        let numbers: Vec<_> = (0..999).map(|number| number.to_string()).collect();
        let terms = |by: &str| {
            let all: Vec<_> =
                numbers.iter().map(|number| format!("context.c == {number}")).collect();
            all.join(by)
        };
        for conditions in [
            format!("when {{ {} }}", terms(" || ")),
            format!("when {{ {} }}", terms(" && ")),
            format!("unless {{ {} }}", terms(" && ")),
            format!("when {{ {} }}", terms(" } when { ")),
            format!("when {{ context.c == ({}) }}", terms(" || ")),
        ] {
            let text = format!("forbid(principal, action, resource) {conditions};");
            let written = bounds::with_room(|| {
                let rule = Policy::parse(Some(PolicyId::new("7")), &text).unwrap();
                let kept = shallow(&rule).unwrap();
                assert_eq!(number(kept.id()), Some(7));
                kept.to_json().unwrap()
            });
            assert_eq!(bounds::kept_fault(&written), None);
            let written = written.to_string();
            let found = written.split("\"Value\":").skip(1);
            let found = found.map(|rest| rest.split('}').next().unwrap_or_default());
            assert_eq!(found.collect::<Vec<_>>(), numbers);
        }
    }

    #[test]
    fn a_rule_that_stays_deep_is_refused() {
        let deep = format!("context.{}", vec!["a"; 900].join("."));
        let deep = format!("forbid(principal, action, resource) when {{ {deep} }};");
        let kept = bounds::with_room(|| shallow(&Policy::parse(None, deep).unwrap()).map(drop));
        assert!(kept.unwrap_err().contains("deep"));
    }

    #[test]
    fn common_first_conditions_of_joined_rules_are_evaluated_once() {
        let rules = ["1", "2", "3"].map(|one| {
            format!(
                "forbid(principal, action, resource) when {{ context.a && context.b && \
                 context.c == {one} }};"
            )
        });
        let text = joined(0, &set(&rules.each_ref().map(String::as_str))).to_string();
        let count = |what: &str| text.matches(what).count();
        assert_eq!(
            (count("context.a"), count("context.b"), count("context.c")),
            (1, 1, 3),
            "{text}"
        );
    }

    #[test]
    fn a_rule_without_conditions_is_always_evaluated() {
        let bare = "forbid(principal, action, resource is Tool);";
        let text = joined(0, &set(&[bare])).to_string();
        assert!(text.contains("true"), "{text}");
    }

    #[test]
    fn four_or_more_rules_are_joined() {
        for (count, sets, joined) in [(1, 1, 0), (3, 1, 0), (4, 1, 1), (16, 1, 1), (17, 2, 2)] {
            let mut part = Part::default();
            for number in 0..count {
                let rule = "forbid(principal, action, resource) when { context.a };";
                part.add(Policy::parse(Some(PolicyId::new(number.to_string())), rule).unwrap());
            }
            part.join();
            assert_eq!((part.rules().count(), part.sets.len()), (count, sets));
            assert_eq!(part.joined.num_of_policies(), joined);
        }
    }
}
