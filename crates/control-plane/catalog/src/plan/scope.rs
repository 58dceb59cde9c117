//! Compares the keys of a run's scope with those that the agent's servers accept. A misspelt key
//! would drop a value that narrows the items of a server.

use std::collections::BTreeSet;

use narthex_model::{
    did_you_mean,
    json::{Place, shortened},
};
use serde_json::Value;

use super::{Plan, PlannedServer};
use crate::{
    fault::{Fault, FaultCode, Warning},
    server::{ServerEntry, Shape, StdioShape},
    template::{Placeholder, Source},
};

/// Largest number of reported keys.
const TOLD_MAX: usize = 20;

impl Plan<'_> {
    /// The keys of a run's scope that the servers accept.
    #[must_use]
    pub fn scope_keys(&self) -> BTreeSet<String> {
        self.servers.values().flat_map(taken).collect()
    }

    /// Includes the scope of a run's request in the check. A key that neither a server of the run
    /// nor one of its children (`of_children`) accepts causes a warning; if a server's schema is
    /// closed, it refuses the run. An empty text also causes a warning, as it narrows nothing.
    #[must_use]
    pub fn with_given_scope<'k>(
        mut self,
        given: impl IntoIterator<Item = (&'k String, &'k Value)>,
        of_children: BTreeSet<String>,
    ) -> Self {
        let mut known = self.scope_keys();
        known.extend(of_children);
        let given: Vec<_> = given.into_iter().collect();
        let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
        let blank = given.iter().filter(|(key, value)| known.contains(*key) && is_blank(value));
        for (key, _) in blank.take(TOLD_MAX) {
            let path = Place::root("run").key("scope").key(key).to_string();
            let message = format!(
                "`{}` is an empty text, so it limits nothing; give its value",
                shortened(key)
            );
            self.scope_warnings.push(Warning { path, message });
        }
        let mut entries = self.servers.values().filter_map(|server| server.entry);
        let is_closed = entries.any(|entry| entry.scope_schema.is_closed);
        let unknown = given.iter().map(|(key, _)| *key).filter(|key| !known.contains(*key));
        for key in unknown.take(TOLD_MAX) {
            let at = Place::root("run").key("scope").key(key);
            let message = format!("no server of the agent uses `{}` of the scope", shortened(key));
            let meant = did_you_mean(key, known.iter().map(String::as_str));
            match is_closed {
                true => {
                    let remedy = meant.unwrap_or_else(|| "leave it out".to_owned());
                    let code = FaultCode::UnknownField;
                    self.faults.push(Fault::new(at, code, message, remedy));
                }
                false => {
                    let message =
                        meant.map_or(message.clone(), |meant| format!("{message}; {meant}"));
                    self.scope_warnings.push(Warning { path: at.to_string(), message });
                }
            }
        }
        self
    }
}

/// The keys that a server takes from the scope: each key, and the first part of a key with a dot.
fn taken(server: &PlannedServer<'_>) -> Vec<String> {
    let config = server.keys.values().flat_map(|planned| planned.value.placeholders());
    let own = server.entry.into_iter().flat_map(of_entry);
    let of_scope = config.chain(own).filter(|one| one.source == Source::Scope);
    let both =
        |key: &str| [Some(key.to_owned()), key.split_once('.').map(|(first, _)| first.into())];
    let mut all: Vec<_> = of_scope.flat_map(|one| both(&one.key)).flatten().collect();
    all.extend(server.entry.into_iter().flat_map(|entry| entry.scope_schema.keys.keys().cloned()));
    all
}

/// The placeholders of an entry's own texts.
fn of_entry(entry: &ServerEntry) -> Vec<&Placeholder> {
    let mut found: Vec<_> =
        entry.auth.texts().into_iter().flat_map(|(_, text)| text.0.placeholders()).collect();
    match &entry.shape {
        Shape::Http(http) | Shape::Sse(http) => found.extend(http.url.placeholders()),
        Shape::Stdio(StdioShape::Command(command)) => {
            let texts = command.args.iter().chain(&command.cwd);
            found.extend(texts.flat_map(|text| text.placeholders()));
        }
        Shape::Stdio(StdioShape::Image { .. } | StdioShape::Script { .. }) => {}
    }
    found
}
