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
    /// A server was added to the catalog.
    SERVER_REGISTERED = "workspace.mcp.registered";
    /// A server of the catalog was changed.
    SERVER_UPDATED = "workspace.mcp.updated";
    /// A server was removed from the catalog.
    SERVER_REMOVED = "workspace.mcp.removed";
    /// A server was disabled.
    SERVER_DISABLED = "workspace.mcp.disabled";
    /// A server was enabled.
    SERVER_ENABLED = "workspace.mcp.enabled";
    /// A sign-in to a server was started; `details.device` is true if another device finishes it.
    SERVER_SIGN_IN_BEGUN = "workspace.mcp.sign_in_begun";
    /// A human has signed in to a server; `details.issuer` is its authorization server.
    SERVER_SIGNED_IN = "workspace.mcp.signed_in";
    /// A sign-in to a server failed at its end; `details.reason` is the kind of the failure.
    SERVER_SIGN_IN_FAILED = "workspace.mcp.sign_in_failed";
    /// The tokens of a server were deleted.
    SERVER_SIGNED_OUT = "workspace.mcp.signed_out";
    /// The tokens of a server could not be renewed; `details.reason` is the cause.
    SERVER_RENEWAL_FAILED = "workspace.mcp.renewal_failed";
    /// A human began to connect their account to a server of the catalog.
    CONNECTION_BEGUN = "workspace.connection.begun";
    /// A human has connected their account to a server of the catalog; `details.issuer` is its
    /// authorization server.
    CONNECTION_MADE = "workspace.connection.made";
    /// The answer of an authorization server came from the browser of another human, belonged to no
    /// open connection, or led to no tokens: then `details.reason` is the kind of the failure.
    CONNECTION_REFUSED = "workspace.connection.refused";
    /// The tokens of a human at a server of the catalog were deleted; `details.user` is the human.
    CONNECTION_ENDED = "workspace.connection.ended";
    /// A capability was added to the catalog.
    CAPABILITY_REGISTERED = "workspace.capability.registered";
    /// A capability was changed.
    CAPABILITY_UPDATED = "workspace.capability.updated";
    /// A capability was removed from the catalog.
    CAPABILITY_REMOVED = "workspace.capability.removed";
    /// An agent was added to the catalog.
    AGENT_REGISTERED = "workspace.agent.registered";
    /// An agent was changed.
    AGENT_UPDATED = "workspace.agent.updated";
    /// An agent was removed from the catalog.
    AGENT_REMOVED = "workspace.agent.removed";
    /// A server was attached to an agent.
    AGENT_ATTACHED = "agent.mcp.attached";
    /// A server was detached from an agent.
    AGENT_DETACHED = "agent.mcp.detached";
    /// An attachment of an agent was changed.
    AGENT_ENV_UPDATED = "agent.mcp.env_updated";
    /// A server was added to the user's settings, or its entry was replaced.
    SETTINGS_SERVER_SET = "settings.mcp.set";
    /// A server was removed from the user's settings.
    SETTINGS_SERVER_REMOVED = "settings.mcp.removed";
    /// A workspace was created.
    WORKSPACE_CREATED = "workspace.created";
    /// A workspace was changed.
    WORKSPACE_UPDATED = "workspace.updated";
    /// The limits of traffic of a workspace were changed.
    LIMITS_UPDATED = "workspace.limits.updated";
    /// The rules of a workspace were changed.
    RULES_UPDATED = "workspace.rules.updated";
    /// Contents of a workspace's calls are recorded from now on.
    CONTENTS_ON = "workspace.audit_contents.enabled";
    /// Contents of a workspace's calls are no longer recorded.
    CONTENTS_OFF = "workspace.audit_contents.disabled";
    /// The setting for agents with a sign-in per person was changed; `details.value` is the new
    /// value.
    OAUTH_UPDATED = "workspace.oauth_on_orchestrators.updated";
    /// The number of days for which events of sessions are stored was changed; `details.value` is
    /// the new value.
    EVENTS_KEPT_UPDATED = "workspace.events_kept_days.updated";
    /// The setting that lets runs of a workspace ask humans for grants was changed.
    RUNTIME_REQUESTS_UPDATED = "workspace.runtime_requests.updated";
    /// A message was sent to a session.
    SESSION_MESSAGE_SENT = "session.message.sent";
    /// Usage of a session was reported.
    SESSION_COST_REPORTED = "session.cost.reported";
    /// A run has shared files.
    SHARE_CREATED = "session.share.created";
    /// A run has replaced the files of a share.
    SHARE_REPLACED = "session.share.replaced";
    /// A share was deleted.
    SHARE_DELETED = "session.share.deleted";
    /// A comment on a share was written.
    SHARE_COMMENTED = "session.share.commented";
    /// A thread of comments was resolved.
    THREAD_RESOLVED = "session.share.thread_resolved";
    /// A resolved thread of comments was opened again.
    THREAD_REOPENED = "session.share.thread_reopened";
    /// A channel for agents was created or changed.
    CHANNEL_SET = "workspace.channel.set";
    /// A channel for agents was removed.
    CHANNEL_REMOVED = "workspace.channel.removed";
    /// A webhook, which receives decisions of humans, was created or changed.
    WEBHOOK_SET = "workspace.webhook.set";
    /// A webhook was removed, and receives no more events.
    WEBHOOK_REMOVED = "workspace.webhook.removed";
    /// A run has posted a message to a channel.
    MESSAGE_POSTED = "session.message.posted";
    /// A workspace was deleted, with all its contents.
    WORKSPACE_DELETED = "workspace.deleted";
    /// The roles of a principal in a workspace were set.
    MEMBER_SET = "workspace.member.set";
    /// The last role of a principal in a workspace was removed.
    MEMBER_REMOVED = "workspace.member.removed";
    /// A workspace got a service.
    SERVICE_CREATED = "workspace.service.created";
    /// A service got a token.
    TOKEN_CREATED = "workspace.token.created";
    /// A token was revoked.
    TOKEN_REVOKED = "workspace.token.revoked";
    /// An MCP client was registered, for runs of an agent.
    CLIENT_REGISTERED = "client.registered";
    /// An MCP client was revoked, and its token with it.
    CLIENT_REVOKED = "client.revoked";
    /// A client used a code or refresh token of the door again, so its tokens were revoked.
    CLIENT_TOKEN_REUSED = "client.token.reused";
    /// A human was created.
    PRINCIPAL_CREATED = "principal.created";
    /// A principal was disabled or enabled, or became an operator or an ordinary principal.
    PRINCIPAL_UPDATED = "principal.updated";
    /// A link was created that signs a principal in once.
    LINK_CREATED = "principal.link.created";
    /// A passkey of a principal was added.
    PASSKEY_ADDED = "principal.passkey.added";
    /// A passkey of a principal was removed.
    PASSKEY_REMOVED = "principal.passkey.removed";
    /// A principal has signed in.
    SIGNED_IN = "principal.signed_in";
    /// A principal has signed out, or a new sign-in in the same browser replaced the old one.
    SIGNED_OUT = "principal.signed_out";
    /// A session was suspended until a user resumes it, and its runs have ended.
    SESSION_SUSPENDED = "session.suspended";
    /// A session has ended, and all its runs have.
    SESSION_ENDED = "session.ended";
    /// A tool was called, or the call was refused.
    TOOL_CALLED = "session.mcp.tool_called";
    /// Another request was sent to a server; `details.method` has its method.
    REQUESTED = "session.mcp.requested";
    /// The tools that a run sees have changed.
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
    /// A write was repeated with its idempotency key, and got its earlier answer.
    REQUEST_REPLAYED = "request.replayed";
    /// A caller had no proof of its identity; `details.count` has the number of attempts.
    AUTH_REFUSED = "auth.refused";
    /// A known caller requested an action for which it has no right.
    ACCESS_DENIED = "access.denied";
    /// A human has created a grant.
    PERMISSION_GRANTED = "permission.granted";
    /// A human has denied a run's request for a grant.
    PERMISSION_DENIED = "permission.denied";
    /// A grant of a human was revoked.
    PERMISSION_REVOKED = "permission.revoked";
    /// A run has requested a grant.
    PERMISSION_REQUESTED = "permission.requested";
    /// A call has used up a grant for a single call.
    PERMISSION_CONSUMED = "permission.consumed";
    /// A run has found definitions of a server that are the first of their names, and gets them.
    DEFINITION_PINNED = "definition.pinned";
    /// A run has found definitions that have changed or have suspicious content, and does not get
    /// them.
    DEFINITION_QUARANTINED = "definition.quarantined";
    /// A human has accepted definitions: runs get them from now on.
    DEFINITION_ACCEPTED = "definition.accepted";
    /// A human has rejected definitions: runs no longer get them.
    DEFINITION_REJECTED = "definition.rejected";
    /// A writer has opened a chain, which names the previous one.
    CHAIN_OPENED = "audit.chain.opened";
    /// Old events were removed.
    TRIMMED = "audit.trimmed";
    /// The audit settings of a workspace were changed.
    SETTINGS_CHANGED = "audit.settings.changed";
}
