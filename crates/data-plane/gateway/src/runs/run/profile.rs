//! Runs by which clients see the live configuration through a profile.

use std::sync::Arc;

use narthex_model::{Alias, McpClientId, PrincipalId, Profile, RunId};
use narthex_policy::{Actors, Authority, Item, LiveProfile, RunPolicy};
use narthex_traffic::RunMeters;

use super::RunView;

/// The hash of no token: nothing opens such a run but the daemon's own run, and clients that are
/// bound to the profile.
const OPENED_BY_NONE: [u8; 32] = [0; 32];

impl RunView {
    /// A run that sees what `base` sees, narrowed by a profile. It has the id that this profile
    /// always has at this daemon.
    #[must_use]
    pub(crate) fn in_profile(base: &Self, profile: Arc<Profile>) -> Self {
        let id = base.id.of_profile(profile.name());
        let policy = RunPolicy::Profile(LiveProfile::new(base.policy.clone(), profile));
        Self::beside(base, id, policy, None)
    }

    /// A run of a registered client alone, which sees what `base` sees, for another user if there
    /// is one.
    #[must_use]
    pub(crate) fn of_client(base: &Self, client: &McpClientId, user: Option<&PrincipalId>) -> Self {
        Self::beside(base, base.id.of_client(client), base.policy.clone(), user)
    }

    /// A run with the session, grants, rules and workspace meter of `base`, and with its user
    /// unless there is another.
    fn beside(base: &Self, id: RunId, policy: RunPolicy, user: Option<&PrincipalId>) -> Self {
        let of = &base.authority;
        let own = Actors::clone(&of.actors());
        let user = user.cloned().or_else(|| own.user.clone());
        let actors = Actors { run: Some(id), user, ..own };
        let meters = RunMeters { workspace: base.meters.workspace.clone(), ..<_>::default() };
        Self {
            reader: base.reader,
            workspace: base.workspace.clone(),
            authority: Authority::new(actors, of.grants.clone(), of.rules.clone()),
            meters,
            is_beside: true,
            ..Self::of(id, OPENED_BY_NONE, policy)
        }
    }

    /// True for the run of a profile or of a registered client that sees the live configuration, as
    /// the daemon's own run does.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// The profile of the live configuration through which the run sees servers; `None` for any
    /// other run.
    #[must_use]
    pub fn profile(&self) -> Option<Arc<Profile>> {
        self.policy.profile().map(LiveProfile::current)
    }

    /// True if the run may know of this item of one of its servers. Lists and routes ask this of
    /// each item (D5).
    pub(crate) fn shows(&self, alias: &Alias, item: &Item) -> bool {
        self.policy.shows(alias, item, None)
    }

    /// The server and its own name of the tool to which the run's profile gives this name.
    pub(crate) fn original(&self, given: &str) -> Option<(Alias, Arc<str>)> {
        let profile = self.profile()?;
        profile.original(given).map(|(alias, tool)| (alias.clone(), tool.clone()))
    }

    /// True if the run's profile gives a tool another name.
    pub(crate) fn is_renamed(&self, alias: &Alias, tool: &str) -> bool {
        let profile = self.profile();
        let given = profile.as_ref().and_then(|profile| profile.override_of(alias, tool));
        given.is_some_and(|given| given.name.is_some())
    }
}
