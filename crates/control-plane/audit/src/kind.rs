//! The names of events (X-M59 to X-M62, and more in their style). `docs/reference/audit.md` lists
//! them all.

/// Makes a constant of each name, and [`ALL`] of all of them.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $constant:ident = $name:literal;)+) => {
        $($(#[doc = $doc])+ pub const $constant: &str = $name;)+

        /// Every name, in the order of this file.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

kinds! {
    /// A secret got its first value.
    SECRET_SET = "workspace.secret.set";
    /// A secret got another value.
    SECRET_REPLACED = "workspace.secret.replaced";
    /// A secret lost all its values.
    SECRET_CLEARED = "workspace.secret.cleared";
    /// A secret is bound to a variable of agents' own environment.
    ENV_BOUND = "workspace.env_binding.set";
    /// A binding of a secret to a variable was removed.
    ENV_UNBOUND = "workspace.env_binding.removed";
    /// The values of all secrets are sealed under another key.
    KEY_ROTATED = "vault.key.rotated";
    /// A server came into the catalog.
    SERVER_REGISTERED = "workspace.mcp.registered";
    /// A server of the catalog is another one.
    SERVER_UPDATED = "workspace.mcp.updated";
    /// A server is in the catalog no more.
    SERVER_REMOVED = "workspace.mcp.removed";
    /// A server was switched off.
    SERVER_DISABLED = "workspace.mcp.disabled";
    /// A server was switched on.
    SERVER_ENABLED = "workspace.mcp.enabled";
    /// A capability came into the catalog.
    CAPABILITY_REGISTERED = "workspace.capability.registered";
    /// A capability is another one.
    CAPABILITY_UPDATED = "workspace.capability.updated";
    /// A capability is in the catalog no more.
    CAPABILITY_REMOVED = "workspace.capability.removed";
    /// An agent came into the catalog.
    AGENT_REGISTERED = "workspace.agent.registered";
    /// An agent is another one.
    AGENT_UPDATED = "workspace.agent.updated";
    /// An agent is in the catalog no more.
    AGENT_REMOVED = "workspace.agent.removed";
    /// A server was attached to an agent.
    AGENT_ATTACHED = "agent.mcp.attached";
    /// A server is attached to an agent no more.
    AGENT_DETACHED = "agent.mcp.detached";
    /// An attachment of an agent is another one.
    AGENT_ENV_UPDATED = "agent.mcp.env_updated";
    /// A server was put into the user's settings, or another entry of its name.
    SETTINGS_SERVER_SET = "settings.mcp.set";
    /// A server was taken out of the user's settings.
    SETTINGS_SERVER_REMOVED = "settings.mcp.removed";
    /// A workspace was made.
    WORKSPACE_CREATED = "workspace.created";
    /// A workspace has another name.
    WORKSPACE_UPDATED = "workspace.updated";
    /// A workspace has other limits of traffic.
    LIMITS_UPDATED = "workspace.limits.updated";
    /// A workspace has other rules.
    RULES_UPDATED = "workspace.rules.updated";
    /// Contents of a workspace's calls are recorded from now on.
    CONTENTS_ON = "workspace.audit_contents.enabled";
    /// Contents of a workspace's calls are not recorded any more.
    CONTENTS_OFF = "workspace.audit_contents.disabled";
    /// The setting changed for which agents may have servers with a sign-in per person;
    /// `details.value` is the new value.
    OAUTH_UPDATED = "workspace.oauth_on_orchestrators.updated";
    /// The number of days changed for which events of sessions are stored; `details.value` is the
    /// new value.
    EVENTS_KEPT_UPDATED = "workspace.events_kept_days.updated";
    /// The setting changed that lets runs of a workspace ask humans for grants.
    RUNTIME_REQUESTS_UPDATED = "workspace.runtime_requests.updated";
    /// A message was sent to a session.
    SESSION_MESSAGE_SENT = "session.message.sent";
    /// Usage of a session was reported.
    SESSION_COST_REPORTED = "session.cost.reported";
    /// A run has shared files.
    SHARE_CREATED = "session.share.created";
    /// A run has put other files in place of those of a share.
    SHARE_REPLACED = "session.share.replaced";
    /// A share was deleted.
    SHARE_DELETED = "session.share.deleted";
    /// A comment on a share was written.
    SHARE_COMMENTED = "session.share.commented";
    /// A thread of comments was settled.
    THREAD_RESOLVED = "session.share.thread_resolved";
    /// A settled thread of comments was opened again.
    THREAD_REOPENED = "session.share.thread_reopened";
    /// Agents can post to a channel, or it is another one.
    CHANNEL_SET = "workspace.channel.set";
    /// Agents cannot post to a channel any more.
    CHANNEL_REMOVED = "workspace.channel.removed";
    /// A webhook was created or changed: it gets decisions of humans.
    WEBHOOK_SET = "workspace.webhook.set";
    /// A webhook was removed, and gets no events any more.
    WEBHOOK_REMOVED = "workspace.webhook.removed";
    /// A run has posted a message to a channel.
    MESSAGE_POSTED = "session.message.posted";
    /// A workspace was deleted, with all its contents.
    WORKSPACE_DELETED = "workspace.deleted";
    /// A principal has these roles in a workspace.
    MEMBER_SET = "workspace.member.set";
    /// A principal has no role in a workspace any more.
    MEMBER_REMOVED = "workspace.member.removed";
    /// A workspace got a service.
    SERVICE_CREATED = "workspace.service.created";
    /// A service got a token.
    TOKEN_CREATED = "workspace.token.created";
    /// A token opens nothing any more.
    TOKEN_REVOKED = "workspace.token.revoked";
    /// An MCP client was registered, for runs of an agent.
    CLIENT_REGISTERED = "client.registered";
    /// An MCP client was revoked: its token opens nothing any more.
    CLIENT_REVOKED = "client.revoked";
    /// There is one more human.
    PRINCIPAL_CREATED = "principal.created";
    /// A principal was disabled or enabled, or is an operator or none any more.
    PRINCIPAL_UPDATED = "principal.updated";
    /// A link was created that signs a principal in once.
    LINK_CREATED = "principal.link.created";
    /// A principal has one more passkey.
    PASSKEY_ADDED = "principal.passkey.added";
    /// A principal has one passkey less.
    PASSKEY_REMOVED = "principal.passkey.removed";
    /// A principal has signed in.
    SIGNED_IN = "principal.signed_in";
    /// A principal has signed out, or a new sign-in in the same browser replaced the old one.
    SIGNED_OUT = "principal.signed_out";
    /// A session was suspended until a user resumes it, and its runs have ended.
    SESSION_SUSPENDED = "session.suspended";
    /// A session has ended, and all its runs have.
    SESSION_ENDED = "session.ended";
    /// A tool was called, or a call of one was refused.
    TOOL_CALLED = "session.mcp.tool_called";
    /// Any other request went to a server; `details.method` has its method.
    REQUESTED = "session.mcp.requested";
    /// A run sees other tools than before.
    TOOLS_SEEN = "session.mcp.tools_seen";
    /// A run was created.
    RUN_CREATED = "session.run.created";
    /// A run of an agent was refused before it was created; `details.faults` has its faults.
    RUN_REFUSED = "session.run.refused";
    /// The creator of a run got the values of its configuration, to start its servers itself.
    RUN_DIRECT = "session.run.direct";
    /// The creator of a run got values for the agent's own environment.
    RUN_ENV_INJECTED = "session.run.env_injected";
    /// An executor has claimed a run that another caller created; `details.until` is the claim's
    /// end.
    RUN_CLAIMED = "session.run.claimed";
    /// A run has ended.
    RUN_ENDED = "session.run.ended";
    /// A write came again, with its idempotency key, and got the answer that it had got.
    REQUEST_REPLAYED = "request.replayed";
    /// A caller came without a proof of its identity; `details.count` has the number of attempts.
    AUTH_REFUSED = "auth.refused";
    /// A known caller asked for something that it has no right to.
    ACCESS_DENIED = "access.denied";
    /// A human has granted a permission.
    PERMISSION_GRANTED = "permission.granted";
    /// A human has refused a run's request for a permission.
    PERMISSION_DENIED = "permission.denied";
    /// A grant of a human does not count any more.
    PERMISSION_REVOKED = "permission.revoked";
    /// A run has requested a permission.
    PERMISSION_REQUESTED = "permission.requested";
    /// A grant for a single call was used up by one.
    PERMISSION_CONSUMED = "permission.consumed";
    /// A run has found definitions of a server that are the first of their names, and has them.
    DEFINITION_PINNED = "definition.pinned";
    /// A run has found definitions that have changed, or that have suspicious content: the run gets
    /// none of them.
    DEFINITION_QUARANTINED = "definition.quarantined";
    /// A human has accepted definitions: runs have them from now on.
    DEFINITION_ACCEPTED = "definition.accepted";
    /// A human does not want definitions: runs do not have them from now on.
    DEFINITION_REJECTED = "definition.rejected";
    /// A writer begins a chain; names the one that it wrote before.
    CHAIN_OPENED = "audit.chain.opened";
    /// Old events were removed.
    TRIMMED = "audit.trimmed";
    /// The audit's settings of a workspace were changed.
    SETTINGS_CHANGED = "audit.settings.changed";
}
