//! The configuration values that a run's creator passes in, and that no model ever sees.

use std::fmt;

use serde_json::{Map, Value};

/// Keys and values of a run that only configuration may use (O19, O20). `Debug` shows the keys.
#[derive(Clone, Default, PartialEq)]
pub struct RunScope(Map<String, Value>);

impl RunScope {
    /// A scope of these keys.
    #[must_use]
    pub fn new(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// The keys with their values, for configuration and for sealed storage alone.
    #[must_use]
    pub fn values(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The scope of a child run: this one, the parent's, with the child's own values on top (O74).
    /// Who may bring values of its own is the caller's question.
    #[must_use]
    pub fn of_child(&self, own: &Self) -> Self {
        let mut merged = self.0.clone();
        merged.extend(own.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        Self(merged)
    }
}

impl fmt::Debug for RunScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope(value: Value) -> RunScope {
        let Value::Object(values) = value else { panic!("no object") };
        RunScope::new(values)
    }

    /// O74, O19, O84: a child has its parent's scope, and its own values on top.
    #[test]
    fn o74_a_child_inherits_its_parents_scope() {
        let parent = scope(json!({ "context_id": "p", "tenant": "t" }));
        assert_eq!(parent.of_child(&RunScope::default()), parent);
        let child = parent.of_child(&scope(json!({ "context_id": "c" })));
        assert_eq!(child, scope(json!({ "context_id": "c", "tenant": "t" })));
    }

    /// O20: a scope's values are in no log.
    #[test]
    fn o20_values_do_not_print() {
        let printed = format!("{:?}", scope(json!({ "token": "canary" })));
        assert!(printed.contains("token") && !printed.contains("canary"));
    }
}
