//! Permissions: workspaces, principals, members, tokens, secrets, and their audit.

use super::super::operation::{Content, Operation, delete, get, of, patch, post, put};
use crate::shapes;

const PAGES: &[&str] = &["after", "limit"];
const AUDIT: &[&str] =
    &["actor", "resource", "run", "event_kind", "since", "until", "order", "event_after", "limit"];

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/me", "me_show", "Shows the caller").gives(of::<shapes::Me>()),
    get("/api/principals", "principal_list", "Lists humans and services")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Principal>>()),
    post("/api/principals", "principal_create", "Creates a human")
        .takes(of::<shapes::PrincipalNew>())
        .makes(of::<shapes::Principal>()),
    get("/api/principals/{principal}", "principal_show", "Shows a human or a service")
        .gives(of::<shapes::Principal>()),
    patch("/api/principals/{principal}", "principal_change", "Changes a human or a service")
        .merges(of::<shapes::PrincipalChange>())
        .gives(of::<shapes::Principal>()),
    post(
        "/api/principals/{principal}/sign-in-links",
        "sign_in_link_create",
        "Creates a sign-in link",
    )
    .answers(201, Content::Json(of::<shapes::SignInLink>()), &[])
    .refuses(&[429]),
    get("/api/principals/{principal}/passkeys", "passkey_list", "Lists the passkeys of a human")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Passkey>>()),
    delete("/api/principals/{principal}/passkeys/{id}", "passkey_remove", "Removes a passkey")
        .ends(),
    post(
        "/api/secrets/rotate-key",
        "key_rotate",
        "Encrypts all secrets again with a new master key",
    )
    .gives(of::<shapes::KeyRotation>())
    .refuses(&[429]),
    get("/api/secrets/keys", "key_show", "Shows the master keys, without their bytes")
        .gives(of::<shapes::MasterKeys>()),
    get("/api/daemon", "daemon_show", "Shows the daemon, its store and its numbers")
        .gives(of::<shapes::Daemon>()),
    get(
        "/api/daemon/workspaces",
        "workspace_use_list",
        "Lists all workspaces with the numbers of their objects",
    )
    .asks(PAGES)
    .gives(of::<shapes::Page<shapes::WorkspaceUse>>()),
    get("/api/workspaces", "workspace_list", "Lists the workspaces that the caller may see")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Workspace>>()),
    post("/api/workspaces", "workspace_create", "Creates a workspace")
        .takes(of::<shapes::WorkspaceNew>())
        .makes(of::<shapes::Workspace>()),
    get("/api/workspaces/{workspace}", "workspace_show", "Shows a workspace")
        .gives(of::<shapes::Workspace>()),
    patch("/api/workspaces/{workspace}", "workspace_change", "Changes a workspace")
        .merges(of::<shapes::WorkspaceChange>())
        .gives(of::<shapes::Workspace>()),
    delete("/api/workspaces/{workspace}", "workspace_delete", "Deletes a workspace")
        .asks(&["force"])
        .ends(),
    get("/api/workspaces/{workspace}/members", "member_list", "Lists the members")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Member>>()),
    put(
        "/api/workspaces/{workspace}/members/{principal}",
        "member_set",
        "Sets the roles of a member",
    )
    .takes(of::<shapes::MemberRoles>())
    .gives(of::<shapes::Member>()),
    delete("/api/workspaces/{workspace}/members/{principal}", "member_remove", "Removes a member")
        .ends(),
    get(
        "/api/workspaces/{workspace}/service-tokens",
        "service_token_list",
        "Lists tokens of services",
    )
    .asks(PAGES)
    .gives(of::<shapes::Page<shapes::ServiceToken>>()),
    post(
        "/api/workspaces/{workspace}/service-tokens",
        "service_token_create",
        "Creates a token, which is shown once",
    )
    .takes(of::<shapes::ServiceTokenNew>())
    .makes(of::<shapes::ServiceTokenMade>())
    .refuses(&[429]),
    delete(
        "/api/workspaces/{workspace}/service-tokens/{id}",
        "service_token_revoke",
        "Revokes a token",
    )
    .ends(),
    get(
        "/api/workspaces/{workspace}/secrets",
        "secret_list",
        "Lists secrets, without their values",
    )
    .asks(PAGES)
    .gives(of::<shapes::Page<shapes::SecretSummary>>()),
    put("/api/workspaces/{workspace}/secrets/{name}", "secret_set", "Sets a secret")
        .takes(of::<shapes::SecretValue>())
        .gives(of::<shapes::SecretStored>())
        .answers(201, Content::Json(of::<shapes::SecretStored>()), &[])
        .refuses(&[429]),
    delete("/api/workspaces/{workspace}/secrets/{name}", "secret_clear", "Clears a secret")
        .answers(200, Content::Json(of::<shapes::SecretCleared>()), &[])
        .ends()
        .refuses(&[400]),
    get("/api/workspaces/{workspace}/env-bindings", "env_binding_list", "Lists bindings")
        .asks(&["env_scope", "scope_id", "after", "limit"])
        .gives(of::<shapes::Page<shapes::EnvBinding>>()),
    post("/api/workspaces/{workspace}/env-bindings", "env_binding_create", "Binds a secret")
        .takes(of::<shapes::EnvBindingNew>())
        .makes(of::<shapes::EnvBinding>()),
    put(
        "/api/workspaces/{workspace}/env-bindings/{id}",
        "env_binding_set",
        "Replaces the binding of a secret",
    )
    .takes(of::<shapes::EnvBindingSecret>())
    .gives(of::<shapes::EnvBinding>())
    .makes(of::<shapes::EnvBinding>()),
    delete(
        "/api/workspaces/{workspace}/env-bindings/{id}",
        "env_binding_remove",
        "Removes a binding",
    )
    .ends(),
    get("/api/workspaces/{workspace}/limits", "limits_show", "Shows the limits of the workspace")
        .gives(of::<shapes::WorkspaceLimits>()),
    put("/api/workspaces/{workspace}/limits", "limits_set", "Replaces the limits of the workspace")
        .takes(of::<shapes::WorkspaceLimitsNew>())
        .gives(of::<shapes::WorkspaceLimits>()),
    get("/api/workspaces/{workspace}/usage", "usage_show", "Shows the usage of today")
        .asks(PAGES)
        .gives(of::<shapes::UsagePage>()),
    get("/api/workspaces/{workspace}/audit", "audit_list", "Lists events of the workspace")
        .asks(AUDIT)
        .answers(200, Content::JsonOrLines(of::<shapes::AuditPage>()), &[]),
    get(
        "/api/workspaces/{workspace}/audit/settings",
        "audit_settings_show",
        "Shows how long events are kept",
    )
    .gives(of::<shapes::AuditSettings>()),
    put(
        "/api/workspaces/{workspace}/audit/settings",
        "audit_settings_set",
        "Sets how long events are kept",
    )
    .takes(of::<shapes::AuditSettings>())
    .gives(of::<shapes::AuditSettings>()),
    get("/api/audit", "installation_audit_list", "Lists events of the installation")
        .asks(AUDIT)
        .answers(200, Content::JsonOrLines(of::<shapes::AuditPage>()), &[]),
    get(
        "/api/audit/settings",
        "installation_audit_settings_show",
        "Shows how long events of the installation are kept",
    )
    .gives(of::<shapes::AuditSettings>()),
    put(
        "/api/audit/settings",
        "installation_audit_settings_set",
        "Sets how long events of the installation are kept",
    )
    .takes(of::<shapes::AuditSettings>())
    .gives(of::<shapes::AuditSettings>()),
];
