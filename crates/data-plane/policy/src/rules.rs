//! The server rules of one run, and proof of a permission.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use arc_swap::ArcSwap;
use narthex_model::{Alias, AliasError, ErrorKind, Profile, ToolScope};
use tokio::sync::watch;

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
    /// Live mode: the servers and items of a profile, as the configuration has it now.
    Profile(LiveProfile),
}

/// A profile within the policy of another run, by which a run sees its servers. A reload of the
/// configuration replaces it, also for runs that are open. Clones are the same profile.
#[derive(Debug, Clone)]
pub struct LiveProfile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    within: RunPolicy,
    current: ArcSwap<Profile>,
    /// Counts the replacements.
    changes: watch::Sender<u64>,
}

/// Two values are equal if they are the same profile.
impl PartialEq for LiveProfile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LiveProfile {}

impl LiveProfile {
    /// A profile that narrows `within`.
    #[must_use]
    pub fn new(within: RunPolicy, profile: Arc<Profile>) -> Self {
        let current = ArcSwap::new(profile);
        Self(Arc::new(Inner { within, current, changes: watch::Sender::new(0) }))
    }

    /// The profile as it is now.
    #[must_use]
    pub fn current(&self) -> Arc<Profile> {
        self.0.current.load_full()
    }

    /// Replaces the profile. Decisions from now on are made by the new one.
    pub fn replace(&self, profile: Arc<Profile>) {
        self.0.current.store(profile);
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// A receiver of replacements; it may skip some.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// True if anything of a server is visible.
    pub(crate) fn is_attached(&self, alias: &Alias) -> bool {
        let has = || alias.is_built_in() || self.0.current.load().has(alias);
        self.0.within.is_attached(alias) && has()
    }

    /// True if an item is visible; a task is if the tool that made it is.
    pub(crate) fn shows(&self, alias: &Alias, item: &Item, made_by: Option<&str>) -> bool {
        if !self.0.within.shows(alias, item, made_by) {
            return false;
        }
        let profile = self.0.current.load();
        match (profile.exposed(alias), item, made_by) {
            // Every run has the built-in server (X-M1).
            (None, ..) => alias.is_built_in(),
            (Some(exposed), Item::Task(_), Some(tool)) => exposed.tools.lets(tool),
            // These are about no single item: log levels, and lists of the run's own tasks.
            (Some(_), Item::Task(_) | Item::Server, _) => true,
            (Some(exposed), item, _) => item.is_exposed(exposed),
        }
    }
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
            Self::Profile(profile) => profile.is_attached(alias),
        }
    }

    /// True if the run may know of an item of an attached server. Lists, routes and decisions ask
    /// this same question (D5). `made_by` is the tool that made the item, if the item is a task.
    #[must_use]
    pub fn shows(&self, alias: &Alias, item: &Item, made_by: Option<&str>) -> bool {
        match self {
            Self::AllAttached | Self::Attached(_) => true,
            Self::Profile(profile) => profile.shows(alias, item, made_by),
        }
    }

    /// The profile by which the run sees its servers, if there is one.
    #[must_use]
    pub fn profile(&self) -> Option<&LiveProfile> {
        match self {
            Self::AllAttached | Self::Attached(_) => None,
            Self::Profile(profile) => Some(profile),
        }
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{Profile, ProfileName};

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

    /// P4: a profile narrows the policy of the run that it belongs to, and never widens it. A
    /// replaced profile counts from then on.
    #[test]
    fn p4_a_profile_narrows_what_a_run_may_know() {
        let alias = |name: &str| Alias::new(name).unwrap();
        let profile = |whole: &str, part: &str| {
            let mut profile = Profile::new(ProfileName::new("work").unwrap());
            profile.add_server(alias(whole));
            profile.add_tools(alias(part), "search*").unwrap();
            Arc::new(profile)
        };
        let within = RunPolicy::of(&["github", "linear"]).unwrap();
        let live = LiveProfile::new(within, profile("github", "linear"));
        let policy = RunPolicy::Profile(live.clone());
        let tool = |name: &str| Item::Tool(name.into());
        let shows = |server: &str, item: Item| policy.shows(&alias(server), &item, None);
        assert!(policy.is_attached(&alias("linear")) && policy.is_attached(&Alias::built_in()));
        assert!(shows("github", tool("delete")) && shows("github", Item::Prompt("x".into())));
        assert!(shows("linear", tool("search_all")) && !shows("linear", tool("delete")));
        for hidden in [Item::Prompt("x".into()), Item::Resource("a://b".into())] {
            assert!(!shows("linear", hidden.clone()), "{hidden:?}");
        }
        assert!(shows("linear", Item::Server) && !shows("billing", Item::Server));
        let made_by = |of: &str| policy.shows(&alias("linear"), &Item::Task("1".into()), Some(of));
        assert!(made_by("search") && !made_by("delete"));
        assert!(!shows("billing", tool("pay")));
        let changes = live.changes();
        live.replace(profile("billing", "github"));
        assert!(changes.has_changed().unwrap());
        assert!(!policy.is_attached(&alias("linear")) && !shows("linear", tool("search")));
        assert!(!policy.is_attached(&alias("billing")), "the run itself does not have it");
        assert!(shows("github", tool("search")) && !shows("github", tool("delete")));
        assert_eq!(policy, RunPolicy::Profile(live));
        let twin = LiveProfile::new(RunPolicy::AllAttached, profile("billing", "github"));
        assert_ne!(policy, RunPolicy::Profile(twin), "profiles of two runs");
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
