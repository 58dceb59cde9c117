//! Rules with the same head, which are asked together before each is asked by itself.
//!
//! Asking one rule costs more than what it says: the authorizer puts head and conditions together
//! anew each time. So the conditions of many are joined into one rule that is true or fails where
//! any of them is or does; only then are they asked one by one. Most calls match no rule.

use cedar_policy::{Entities, Policy, PolicyId, PolicySet, Request};
use serde_json::{Value, json};

use crate::ask::AUTHORIZER;

/// How many rules are joined: what a call that matches one of them pays for all.
const JOINED_MAX: usize = 16;
/// Fewer are asked at once.
const JOINED_MIN: usize = 4;
/// How many conditions at the beginning of several rules are asked once for all of them.
const SHARED_MAX: usize = 8;

/// Some rules of a set.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Up to [`JOINED_MAX`] in each.
    sets: Vec<PolicySet>,
    /// One rule for each of the sets, by its number; none if asking it would save nothing.
    joined: PolicySet,
}

impl Part {
    /// Adds a rule, whose id no other one has.
    pub(crate) fn add(&mut self, rule: Policy) {
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
        self.rules().filter_map(|rule| number(rule.id()))
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

/// One rule that matches or fails wherever one of these does. It says nothing of their heads, so it
/// may do so elsewhere as well.
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
    // One that always matches costs time and says nothing wrong.
    of_all(conditions).or_else(|| of_all(json!([]))).expect("a rule of nothing is one")
}

/// What a rule asks for behind its head: what all must be true, the last first.
pub(crate) fn conditions(rule: &Policy) -> Option<Vec<Value>> {
    let mut rule = rule.to_json().ok()?;
    let Value::Array(conditions) = rule["conditions"].take() else { return None };
    let mut all = Vec::new();
    for mut one in conditions.into_iter().rev() {
        let mut body = one["body"].take();
        match one["kind"].as_str()? {
            "when" => {}
            "unless" => body = json!({ "!": { "arg": body } }),
            _ => return None,
        }
        while let Some(both) = body.get_mut("&&") {
            all.push(both["right"].take());
            body = both["left"].take();
        }
        all.push(body);
    }
    Some(all)
}

/// What is true or fails where one of these is or does. What several begin with is asked once.
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
        1 => joined_by("&&", first, rest.remove(0).into_iter().rev()),
        _ if depth == SHARED_MAX => first,
        _ => joined_by("&&", first, [any_of(rest, depth + 1)]),
    });
    in_pairs(groups.collect())
}

fn joined_by(operator: &str, first: Value, rest: impl IntoIterator<Item = Value>) -> Value {
    rest.into_iter()
        .fold(first, |left, right| json!({ operator: { "left": left, "right": right } }))
}

/// So that many are not deep.
fn in_pairs(mut all: Vec<Value>) -> Value {
    while all.len() > 1 {
        let mut rest = all.into_iter();
        let mut pairs = Vec::new();
        while let Some(left) = rest.next() {
            pairs.push(joined_by("||", left, rest.next()));
        }
        all = pairs;
    }
    all.pop().unwrap_or_else(|| json!({ "Value": false }))
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

    #[test]
    fn what_rules_begin_with_is_asked_once() {
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
    fn a_rule_without_conditions_is_always_asked() {
        let bare = "forbid(principal, action, resource is Tool);";
        let text = joined(0, &set(&[bare])).to_string();
        assert!(text.contains("true"), "{text}");
    }

    #[test]
    fn rules_are_joined_where_there_are_some() {
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
