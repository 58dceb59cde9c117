//! Shapes of rights: workspaces, principals, members, passkeys and tokens of services.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    ids::{OauthOnOrchestrators, PrincipalId, PrincipalName, Role, Time, TokenId, WorkspaceId},
    page::Listed,
};

/// A workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "team",
    "name": "The team",
    "audits_contents": false,
    "oauth_on_orchestrators": "off",
    "events_kept_days": 30,
    "models": [],
    "runtime_requests": true
}))]
pub(crate) struct Workspace {
    pub(crate) id: WorkspaceId,
    pub(crate) name: String,
    /// True if the audit has the arguments and answers of calls.
    pub(crate) audits_contents: bool,
    pub(crate) oauth_on_orchestrators: OauthOnOrchestrators,
    /// Days for which the events of a session stay after its end. 0 means for ever.
    #[schemars(extend("maximum" = 36500))]
    pub(crate) events_kept_days: u64,
    /// The models that runs may ask for, the newest first. An empty list allows every model.
    #[schemars(extend("maxItems" = 200))]
    pub(crate) models: Vec<EnabledModel>,
    /// True if runs may ask humans for grants.
    pub(crate) runtime_requests: bool,
}

impl Listed for Workspace {
    const PAGE: &str = "WorkspacePage";
    const ABOUT: &str = "The workspaces that the caller may see.";
}

/// The workspace to create.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "team",
    "name": "The team"
}))]
pub(crate) struct WorkspaceNew {
    pub(crate) id: WorkspaceId,
    #[schemars(extend("maxLength" = 200))]
    pub(crate) name: Option<String>,
}

/// The members of a workspace to change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[schemars(example = json!({
    "name": "The whole team"
}))]
#[schemars(example = json!({
    "audits_contents": true
}))]
#[schemars(example = json!({
    "oauth_on_orchestrators": "on_attended"
}))]
#[schemars(example = json!({
    "events_kept_days": 7
}))]
#[schemars(example = json!({
    "runtime_requests": false
}))]
pub(crate) struct WorkspaceChange {
    #[schemars(default, with = "String")]
    #[schemars(extend("maxLength" = 200))]
    pub(crate) name: Option<String>,
    /// True if the audit has the arguments and answers of calls, without known secrets.
    #[schemars(default, with = "bool")]
    pub(crate) audits_contents: Option<bool>,
    #[schemars(default, with = "OauthOnOrchestrators")]
    pub(crate) oauth_on_orchestrators: Option<OauthOnOrchestrators>,
    /// Days for which the events of a session stay after its end. 0 means for ever.
    #[schemars(default, with = "u64")]
    #[schemars(extend("maximum" = 36500))]
    pub(crate) events_kept_days: Option<u64>,
    /// The models that runs may ask for, the newest first. An empty list allows every model.
    #[schemars(extend("maxItems" = 200))]
    pub(crate) models: Option<Vec<EnabledModel>>,
    /// True if runs may ask humans for grants.
    #[schemars(default, with = "bool")]
    pub(crate) runtime_requests: Option<bool>,
}

/// A human, a service or an MCP client.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "prn_0011223344556677",
    "kind": "human",
    "name": "ada",
    "workspace": null,
    "is_operator": false,
    "roles": {
        "team": [
            "author"
        ]
    },
    "created_at": "2026-11-22T13:00:00.000Z",
    "created_by": "admin",
    "disabled_at": null
}))]
pub(crate) struct Principal {
    pub(crate) id: PrincipalId,
    #[schemars(extend("enum" = ["human", "service", "client"]))]
    pub(crate) kind: &'static str,
    pub(crate) name: PrincipalName,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) is_operator: bool,
    /// The roles by workspace.
    pub(crate) roles: BTreeMap<String, Vec<Role>>,
    pub(crate) created_at: Time,
    pub(crate) created_by: String,
    pub(crate) disabled_at: Option<Time>,
}

impl Listed for Principal {
    const PAGE: &str = "PrincipalPage";
    const ABOUT: &str = "Humans and services.";
}

/// The human to create.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "ada"
}))]
pub(crate) struct PrincipalNew {
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9._@+-]{0,127}$", "maxLength" = 128))]
    pub(crate) name: String,
    pub(crate) is_operator: Option<bool>,
}

/// The members of a human or a service to change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "is_operator": false
}))]
pub(crate) struct PrincipalChange {
    pub(crate) is_disabled: Option<bool>,
    pub(crate) is_operator: Option<bool>,
}

/// A link that signs a human in once.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignInLink {
    /// True if the human can add a passkey with the link. A link of a human with a passkey or a
    /// sign-in at a provider adds one. Any other link adds only the first of the installation.
    pub(crate) adds_passkey: bool,
    pub(crate) url: String,
    pub(crate) principal: PrincipalId,
    pub(crate) name: PrincipalName,
    pub(crate) expires_at: Time,
}

/// A passkey of a human.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Passkey {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) enrolled_by: String,
    pub(crate) created_at: Time,
    pub(crate) used_at: Option<Time>,
}

impl Listed for Passkey {
    const PAGE: &str = "PasskeyPage";
    const ABOUT: &str = "The passkeys of a human.";
}

/// The caller.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": null,
    "name": "admin",
    "kind": "local_admin",
    "method": "token",
    "assurance": "advisory",
    "is_operator": true
}))]
pub(crate) struct Me {
    pub(crate) id: Option<PrincipalId>,
    pub(crate) name: String,
    #[schemars(extend("enum" = ["human", "service", "local_admin", "run"]))]
    pub(crate) kind: &'static str,
    pub(crate) method: &'static str,
    #[schemars(extend("enum" = ["authenticated", "advisory"]))]
    pub(crate) assurance: &'static str,
    pub(crate) is_operator: bool,
}

/// A human or a service that has a role in the workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "prn_0011223344556677",
    "kind": "human",
    "name": "ada",
    "roles": [
        "author"
    ],
    "is_disabled": false
}))]
pub(crate) struct Member {
    pub(crate) id: PrincipalId,
    #[schemars(extend("enum" = ["human", "service"]))]
    pub(crate) kind: &'static str,
    pub(crate) name: PrincipalName,
    pub(crate) roles: Vec<Role>,
    pub(crate) is_disabled: bool,
}

impl Listed for Member {
    const PAGE: &str = "MemberPage";
    const ABOUT: &str = "The members of a workspace.";
}

/// The roles to give.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "roles": [
        "author"
    ]
}))]
pub(crate) struct MemberRoles {
    #[schemars(extend("minItems" = 1))]
    pub(crate) roles: Vec<Role>,
}

/// A token of a service, without its text.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceToken {
    pub(crate) id: TokenId,
    pub(crate) service: PrincipalName,
    pub(crate) label: String,
    pub(crate) is_live: bool,
    pub(crate) created_at: Time,
    pub(crate) created_by: String,
    /// True if a human created the token after a sign-in that proves who they are, or if such a
    /// token created it. With `grants.require_proof`, only such a token acts for humans.
    pub(crate) is_proved: bool,
    pub(crate) expires_at: Option<Time>,
    pub(crate) revoked_at: Option<Time>,
    pub(crate) last_used_at: Option<Time>,
}

impl Listed for ServiceToken {
    const PAGE: &str = "ServiceTokenPage";
    const ABOUT: &str = "All tokens that a workspace has or had.";
}

/// The token to create. A new service needs `roles`. A service that exists keeps its roles.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "service": "ci",
    "roles": [
        "runner"
    ],
    "label": "build",
    "expires_in": 86400
}))]
pub(crate) struct ServiceTokenNew {
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9._@+-]{0,127}$", "maxLength" = 128))]
    pub(crate) service: String,
    #[schemars(extend("minItems" = 1))]
    pub(crate) roles: Option<Vec<Role>>,
    #[schemars(extend("maxLength" = 200))]
    pub(crate) label: Option<String>,
    /// Life of the token in seconds. The default is 90 days.
    #[schemars(extend("minimum" = 1, "maximum" = 315360000))]
    pub(crate) expires_in: Option<u64>,
}

/// A new token. Only this answer has its text.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceTokenMade {
    #[serde(flatten)]
    pub(crate) known: ServiceToken,
    /// Text of the token.
    #[schemars(extend("pattern" = "^nxs_"))]
    pub(crate) token: String,
}

/// A model that runs may ask for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EnabledModel {
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) id: String,
    /// Other names of the model.
    #[schemars(extend("items" = { "type": "string", "minLength": 1, "maxLength": 200 }))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Vec<String>")]
    pub(crate) short_names: Option<Vec<String>>,
}
