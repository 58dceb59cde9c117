//! The rules of one run, and the decision.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use narthex_model::{Alias, AliasError, ErrorKind, ToolScope};

use crate::{Basis, Item, workspace_rules::Forbidding};

/// The name for every server.
const EVERY: &str = "*";

/// The servers of a run, and its permissions on them. A run that asks for no server has none (E17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPolicy {
    /// Live mode: every server that is registered at the moment is attached (decision D11).
    AllAttached,
    /// These servers and no others.
    Attached(BTreeSet<Alias>),
}

/// Proof that policy allowed this one value. Cannot be made, changed or taken apart outside.
#[derive(Debug)]
pub struct Permitted<T> {
    value: T,
    basis: Basis,
}

impl<T> Permitted<T> {
    /// Hands over what was allowed, whole, to be sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The grants that allow the request.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    pub(crate) fn new(value: T, basis: Basis) -> Self {
        Self { value, basis }
    }
}

impl<T> Deref for Permitted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Why a request is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The server is not attached to the run; it looks like an absent one (D5).
    #[error("server `{0}` is not attached to this run")]
    NotAttached(Alias),
    /// The server's rules hide this from all callers; it looks like an absent one (D5).
    #[error("`{}` is not to be seen here", .0.name())]
    Hidden(Item),
    /// A rule of the workspace forbids it.
    #[error("the rule `{}` forbids this", .by.rule)]
    Forbidden {
        /// The item that the request is about.
        item: Item,
        /// The rule.
        by: Forbidding,
    },
    /// No grant covers a required tool scope (X-M55).
    #[error("this requires {}", listed(.missing))]
    Ungranted {
        /// The server, as grants know it.
        server: Arc<str>,
        /// The item that the request is about.
        item: Item,
        /// The item's name in grants: a task goes by the tool that made it.
        name: Arc<str>,
        /// The tool scopes for which there is no grant.
        missing: Vec<ToolScope>,
        /// True if its arguments have a digest, without which no grant for exact arguments counts.
        has_digest: bool,
    },
}

impl Denial {
    /// The tool that was to be called, by its server's own name, where it is one that is there.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Forbidden { item: Item::Tool(name), .. }
            | Self::Ungranted { item: Item::Tool(name), .. } => Some(name),
            Self::Forbidden { .. }
            | Self::Ungranted { .. }
            | Self::NotAttached(_)
            | Self::Hidden(_) => None,
        }
    }
}

fn listed(scopes: &[ToolScope]) -> String {
    let names: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    names.join(" and ")
}

impl Denial {
    /// The kind that doors turn into their numbers.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAttached(_) | Self::Hidden(_) => ErrorKind::NotFound,
            Self::Forbidden { .. } | Self::Ungranted { .. } => ErrorKind::Denied,
        }
    }

    /// The check that refused, of [`crate::CHECKS`].
    #[must_use]
    pub fn check(&self) -> &'static str {
        let [attached, exposed, _definitions, rules, grants] = crate::CHECKS;
        match self {
            Self::NotAttached(_) => attached,
            Self::Hidden(_) => exposed,
            Self::Forbidden { .. } => rules,
            Self::Ungranted { .. } => grants,
        }
    }
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self::Attached(BTreeSet::new())
    }
}

impl RunPolicy {
    /// The rule for a list of servers' names; `*` is every server, also one that is
    /// added later (E17, E150).
    ///
    /// # Errors
    /// When a name can be no server's.
    pub fn of<T: AsRef<str>>(names: &[T]) -> Result<Self, AliasError> {
        if names.iter().any(|name| name.as_ref() == EVERY) {
            return Ok(Self::AllAttached);
        }
        let aliases: Result<_, _> = names.iter().map(|name| Alias::new(name.as_ref())).collect();
        aliases.map(Self::Attached)
    }

    /// True if `alias` is visible to the run. Lists and calls ask the same question (D5).
    #[must_use]
    pub fn is_attached(&self, alias: &Alias) -> bool {
        match self {
            Self::AllAttached => true,
            // Every run has the built-in server (X-M1).
            Self::Attached(aliases) => alias.is_built_in() || aliases.contains(alias),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E17, E91, E150: names, a wildcard for all, and nothing for who asks for nothing.
    #[test]
    fn e17_a_run_has_the_servers_that_it_asks_for() {
        let (git, time) = (Alias::new("git").unwrap(), Alias::new("time").unwrap());
        let has = |policy: &RunPolicy| [policy.is_attached(&git), policy.is_attached(&time)];
        assert_eq!(has(&RunPolicy::of(&["git"]).unwrap()), [true, false]);
        assert_eq!(has(&RunPolicy::of(&["git", "*"]).unwrap()), [true, true]);
        assert_eq!(has(&RunPolicy::of::<&str>(&[]).unwrap()), [false, false]);
        assert_eq!(RunPolicy::of::<&str>(&[]).unwrap(), RunPolicy::default());
        assert!(RunPolicy::of(&["Git Hub"]).is_err());
    }

    /// D5: a refusal names the tool only where the caller may know of it, and all that is missing.
    #[test]
    fn d5_a_refusal_names_a_tool_that_the_caller_may_know() {
        let tool = || Item::Tool("write".into());
        let by = Forbidding { rule: "no-writes".into(), reason: "".into() };
        let forbidden = |item| Denial::Forbidden { item, by: by.clone() };
        let missing = ["git.push", "git.write"].map(|name| ToolScope::new(name).unwrap());
        let ungranted = |item| {
            let (server, name, missing) = ("git".into(), "write".into(), missing.to_vec());
            Denial::Ungranted { server, item, name, missing, has_digest: true }
        };
        assert_eq!(forbidden(tool()).tool(), Some("write"));
        assert_eq!(ungranted(tool()).tool(), Some("write"));
        let git = Alias::new("git").unwrap();
        let prompt = || Item::Prompt("write".into());
        for silent in [
            forbidden(prompt()),
            ungranted(prompt()),
            Denial::Hidden(tool()),
            Denial::NotAttached(git),
        ] {
            assert_eq!(silent.tool(), None, "{silent:?}");
        }
        assert_eq!(forbidden(tool()).to_string(), "the rule `no-writes` forbids this");
        assert_eq!(ungranted(tool()).to_string(), "this requires `git.push` and `git.write`");
        assert_eq!(Denial::Hidden(tool()).to_string(), "`write` is not to be seen here");
    }
}
