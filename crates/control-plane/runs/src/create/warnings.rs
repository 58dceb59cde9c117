//! Warnings of a run that was created, in words for humans and for models.

use narthex_definitions::reviews::ReviewWarning;
use narthex_model::{Alias, UnmatchedGate};
use narthex_registry::MountSet;

/// A gate of a run's server that matches nothing in the server's lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedOf {
    /// The server.
    pub server: Alias,
    /// The gate.
    pub gate: UnmatchedGate,
}

impl UnmatchedOf {
    /// The warning as a sentence. With `is_for_model`, it has no word of the server, such as the
    /// probably meant name.
    #[must_use]
    pub fn told(&self, is_for_model: bool) -> String {
        let gate = if is_for_model { self.gate.plain() } else { self.gate.to_string() };
        format!("server `{}`: {gate}", self.server)
    }
}

/// A warning of a run that was created. No word of a server is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWarning {
    text: String,
    for_models: Option<String>,
}

impl RunWarning {
    /// A warning of the request itself, which its sender reads, human or model.
    pub(crate) fn of_request(text: String) -> Self {
        Self { for_models: Some(text.clone()), text }
    }

    /// A warning of a text by operators and authors: it names their keys, servers or commands, so
    /// models do not get it (D28).
    pub(crate) fn of_operators(text: String) -> Self {
        Self { text, for_models: None }
    }

    /// A warning that definitions of a server are under review.
    pub(crate) fn of_review(warning: ReviewWarning) -> Self {
        let ReviewWarning { for_operators, for_models } = warning;
        Self { text: for_operators, for_models: Some(for_models) }
    }

    /// The words for a reader; `None` if the reader is a model that must not get them.
    #[must_use]
    pub fn read_by(&self, is_model: bool) -> Option<&str> {
        if is_model { self.for_models.as_deref() } else { Some(&self.text) }
    }
}

/// Gates of a run's servers that match nothing in the servers' lists (D14).
pub(crate) fn unmatched(set: &MountSet) -> Vec<UnmatchedOf> {
    let found = set.mounts().iter().flat_map(|mount| {
        let of = |gate: &UnmatchedGate| UnmatchedOf {
            server: mount.alias().clone(),
            gate: gate.clone(),
        };
        mount.found().unmatched.iter().map(of).collect::<Vec<_>>()
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D14: a human reads which name was probably meant by a gate for nothing, and a model no word
    /// of the server.
    #[test]
    fn d14_only_humans_read_which_tool_an_unmatched_gate_probably_meant() {
        let gate = UnmatchedGate {
            field: "tool_scopes",
            name: "ecko".to_owned(),
            nearest: Some("echo".to_owned()),
        };
        let one = UnmatchedOf { server: Alias::new("demo").unwrap(), gate };
        let plain = "server `demo`: `tool_scopes` names `ecko`, which the server does not list, so \
                     it has no effect";
        assert_eq!(one.told(true), plain);
        assert_eq!(one.told(false), format!("{plain}; did you mean `echo`?"));
    }
}
