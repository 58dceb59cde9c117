//! The server rules of one run, and proof of a permission.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use narthex_model::{Alias, AliasError, ErrorKind, ToolScope};

use crate::{Basis, Item, workspace_rules::Forbidding};

/// The name for every server.
const EVERY: &str = "*";

/// The servers that a run may use. A run that names no server has none (E17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPolicy {
    /// Live mode: every registered server is attached (decision D11).
    AllAttached,
    /// These servers and no others.
    Attached(BTreeSet<Alias>),
}

/// Proof that policy allowed this one value. Other crates cannot make, change or take it apart.
#[derive(Debug)]
pub struct Permitted<T> {
    value: T,
    basis: Basis,
}

impl<T> Permitted<T> {
    /// Consumes the proof and returns the allowed value, to be sent.
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

/// The reason why a request is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The server is not attached to the run. The answer is that for an absent server (D5).
    #[error("server `{0}` is not attached to this run")]
    NotAttached(Alias),
    /// The server's rules hide the item from all callers. The answer is that for an absent item
    /// (D5).
    #[error("`{}` is not to be seen here", .0.name())]
    Hidden(Item),
    /// A rule of the workspace forbids it.
    #[error("the rule `{}` forbids this", .by.rule)]
    Forbidden {
        /// The item of the request.
        item: Item,
        /// The forbidding rule.
        by: Forbidding,
    },
    /// No grant covers a required tool scope (X-M55).
    #[error("this requires {}", listed(.missing))]
    Ungranted {
        /// The server, by its name in grants.
        server: Arc<str>,
        /// The item of the request.
        item: Item,
        /// The item's name in grants; for a task, the tool that made it.
        name: Arc<str>,
        /// The tool scopes for which there is no grant.
        missing: Vec<ToolScope>,
        /// True if the arguments have a digest. Without one, no grant for exact arguments counts.
        has_digest: bool,
    },
}

impl Denial {
    /// The called tool, by its server's own name; `None` if the tool is hidden, or the item is no
    /// tool.
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
    /// The kind, which each door maps to its own codes.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAttached(_) | Self::Hidden(_) => ErrorKind::NotFound,
            Self::Forbidden { .. } | Self::Ungranted { .. } => ErrorKind::Denied,
        }
    }

    /// The name of the check that refused, from [`crate::CHECKS`].
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
    /// Parses a list of servers' names; `*` stands for every server, also later ones (E17, E150).
    ///
    /// # Errors
    /// When a name is no valid alias.
    pub fn of<T: AsRef<str>>(names: &[T]) -> Result<Self, AliasError> {
        if names.iter().any(|name| name.as_ref() == EVERY) {
            return Ok(Self::AllAttached);
        }
        let aliases: Result<_, _> = names.iter().map(|name| Alias::new(name.as_ref())).collect();
        aliases.map(Self::Attached)
    }

    /// True if `alias` is attached to the run. Lists and calls check the same (D5).
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
    fn e17_a_run_has_the_servers_that_its_request_names() {
        let (git, time) = (Alias::new("git").unwrap(), Alias::new("time").unwrap());
        let has = |policy: &RunPolicy| [policy.is_attached(&git), policy.is_attached(&time)];
        assert_eq!(has(&RunPolicy::of(&["git"]).unwrap()), [true, false]);
        assert_eq!(has(&RunPolicy::of(&["git", "*"]).unwrap()), [true, true]);
        assert_eq!(has(&RunPolicy::of::<&str>(&[]).unwrap()), [false, false]);
        assert_eq!(RunPolicy::of::<&str>(&[]).unwrap(), RunPolicy::default());
        let refused = RunPolicy::of(&["git", "Git Hub"]).unwrap_err().to_string();
        assert!(refused.contains("`Git Hub` is not a valid server name"), "{refused}");
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
