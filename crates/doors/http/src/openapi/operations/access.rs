//! Permissions: workspaces, principals, members, tokens, secrets, and their audit.

use super::super::operation::{Content, Operation, delete, get, patch, post, put};

const PAGES: &[&str] = &["after", "limit"];
const AUDIT: &[&str] =
    &["actor", "resource", "run", "event_kind", "since", "until", "order", "event_after", "limit"];

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/me", "me_show", "Shows whoever asks").gives("Me"),
    get("/api/principals", "principal_list", "Lists humans and services")
        .asks(PAGES)
        .gives("PrincipalPage"),
    post("/api/principals", "principal_create", "Makes a human")
        .takes("PrincipalNew")
        .makes("Principal"),
    get("/api/principals/{principal}", "principal_show", "Shows a human or a service")
        .gives("Principal"),
    patch("/api/principals/{principal}", "principal_change", "Changes a human or a service")
        .merges("PrincipalChange")
        .gives("Principal"),
    post(
        "/api/principals/{principal}/sign-in-links",
        "sign_in_link_create",
        "Makes a link that signs in",
    )
    .answers(201, Content::Json("SignInLink"), &[])
    .refuses(&[429]),
    get("/api/principals/{principal}/passkeys", "passkey_list", "Lists the passkeys of a human")
        .asks(PAGES)
        .gives("PasskeyPage"),
    delete("/api/principals/{principal}/passkeys/{id}", "passkey_remove", "Removes a passkey")
        .ends(),
    post("/api/secrets/rotate-key", "key_rotate", "Seals all secrets under a new master key")
        .gives("KeyRotation")
        .refuses(&[429]),
    get("/api/workspaces", "workspace_list", "Lists the workspaces that one may know of")
        .asks(PAGES)
        .gives("WorkspacePage"),
    post("/api/workspaces", "workspace_create", "Makes a workspace")
        .takes("WorkspaceNew")
        .makes("Workspace"),
    get("/api/workspaces/{workspace}", "workspace_show", "Shows a workspace").gives("Workspace"),
    patch("/api/workspaces/{workspace}", "workspace_change", "Changes a workspace")
        .merges("WorkspaceChange")
        .gives("Workspace"),
    delete("/api/workspaces/{workspace}", "workspace_delete", "Deletes a workspace")
        .asks(&["force"])
        .ends(),
    get("/api/workspaces/{workspace}/members", "member_list", "Lists the members")
        .asks(PAGES)
        .gives("MemberPage"),
    put("/api/workspaces/{workspace}/members/{principal}", "member_set", "Gives somebody roles")
        .takes("MemberRoles")
        .gives("Member"),
    delete(
        "/api/workspaces/{workspace}/members/{principal}",
        "member_remove",
        "Takes all roles away",
    )
    .ends(),
    get(
        "/api/workspaces/{workspace}/service-tokens",
        "service_token_list",
        "Lists tokens of services",
    )
    .asks(PAGES)
    .gives("ServiceTokenPage"),
    post(
        "/api/workspaces/{workspace}/service-tokens",
        "service_token_create",
        "Makes a token, which is told once",
    )
    .takes("ServiceTokenNew")
    .makes("ServiceTokenMade")
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
    .gives("SecretPage"),
    put("/api/workspaces/{workspace}/secrets/{name}", "secret_set", "Sets a secret")
        .takes("SecretValue")
        .gives("SecretStored")
        .answers(201, Content::Json("SecretStored"), &[])
        .refuses(&[429]),
    delete("/api/workspaces/{workspace}/secrets/{name}", "secret_clear", "Clears a secret")
        .answers(200, Content::Json("SecretCleared"), &[])
        .ends()
        .refuses(&[400]),
    get("/api/workspaces/{workspace}/env-bindings", "env_binding_list", "Lists bindings")
        .asks(&["env_scope", "scope_id", "after", "limit"])
        .gives("EnvBindingPage"),
    post("/api/workspaces/{workspace}/env-bindings", "env_binding_create", "Binds a secret")
        .takes("EnvBindingNew")
        .makes("EnvBinding"),
    put("/api/workspaces/{workspace}/env-bindings/{id}", "env_binding_set", "Binds a secret anew")
        .takes("EnvBindingSecret")
        .gives("EnvBinding")
        .makes("EnvBinding"),
    delete("/api/workspaces/{workspace}/env-bindings/{id}", "env_binding_remove", "Unbinds it")
        .ends(),
    get("/api/workspaces/{workspace}/limits", "limits_show", "Shows the limits of the workspace")
        .gives("WorkspaceLimits"),
    put("/api/workspaces/{workspace}/limits", "limits_set", "Replaces the limits of the workspace")
        .takes("WorkspaceLimitsNew")
        .gives("WorkspaceLimits"),
    get("/api/workspaces/{workspace}/usage", "usage_show", "Shows what was used today")
        .asks(PAGES)
        .gives("UsagePage"),
    get("/api/workspaces/{workspace}/audit", "audit_list", "Lists events of the workspace")
        .asks(AUDIT)
        .answers(200, Content::JsonOrLines("AuditPage"), &[]),
    get(
        "/api/workspaces/{workspace}/audit/settings",
        "audit_settings_show",
        "Shows how long events are kept",
    )
    .gives("AuditSettings"),
    put(
        "/api/workspaces/{workspace}/audit/settings",
        "audit_settings_set",
        "Says how long events are kept",
    )
    .takes("AuditSettings")
    .gives("AuditSettings"),
    get("/api/audit", "installation_audit_list", "Lists events that belong to no workspace")
        .asks(AUDIT)
        .answers(200, Content::JsonOrLines("AuditPage"), &[]),
    get("/api/audit/settings", "installation_audit_settings_show", "Shows how long these are kept")
        .gives("AuditSettings"),
    put("/api/audit/settings", "installation_audit_settings_set", "Says how long these are kept")
        .takes("AuditSettings")
        .gives("AuditSettings"),
];
