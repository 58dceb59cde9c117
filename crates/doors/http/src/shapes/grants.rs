//! Shapes of grants, and of requests of runs for grants.

use narthex_control::GrantRequestStatus;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ids::{
        Alias, GrantId, GrantRequestId, GrantScope, GrantType, ObjectName, PrincipalId, RunId,
        SessionId, Time,
    },
    page::Listed,
};

/// The permission of a grant. `tool_scope` has the scope, and can have a server, a tool and the
/// digest of the exact arguments. `spawn` has the agent, and can have its runtimes and models.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct GrantDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<Alias>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) child_agent_id: Option<ObjectName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_runtime_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_models: Option<Vec<String>>,
}

/// The permission to grant. See grants.md.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantNewDetails {
    pub(crate) scope: Option<String>,
    pub(crate) server: Option<Alias>,
    #[schemars(extend("maxLength" = 4096))]
    pub(crate) tool: Option<String>,
    pub(crate) arguments_digest: Option<String>,
    pub(crate) child_agent_id: Option<ObjectName>,
    #[schemars(extend("maxItems" = 100, "items" = short_text()))]
    pub(crate) allowed_runtime_types: Option<Vec<String>>,
    #[schemars(extend("maxItems" = 100, "items" = short_text()))]
    pub(crate) allowed_models: Option<Vec<String>>,
    /// Exact arguments, of which only the digest is stored.
    #[schemars(default, with = "Map<String, Value>")]
    pub(crate) arguments: Option<Map<String, Value>>,
}

/// A permission from a human to a user or an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "gra_0a1b2c3d4e5f6071",
    "grant_type": "tool_scope",
    "details": { "scope": "linear.write" },
    "scope": "once",
    "session_id": null,
    "run_id": null,
    "user_subject_id": null,
    "user_name": null,
    "agent_subject_id": "reader",
    "expires_at": null,
    "reason": "",
    "granted_at": "2026-11-22T12:00:00.000Z",
    "granted_by": "ada",
    "is_advisory": false,
    "counts": true,
    "consumed_at": null,
    "consumed_by": null,
    "revoked_at": null,
    "revoked_by": null
}))]
pub(crate) struct Grant {
    pub(crate) id: GrantId,
    pub(crate) grant_type: GrantType,
    pub(crate) details: GrantDetails,
    pub(crate) scope: GrantScope,
    /// The session of the scope `session`, or of the run that has requested a grant of the scope
    /// `once`.
    pub(crate) session_id: Option<SessionId>,
    pub(crate) run_id: Option<RunId>,
    pub(crate) user_subject_id: Option<PrincipalId>,
    /// The name of this human for people. `admin` is the holder of the admin token.
    pub(crate) user_name: Option<String>,
    pub(crate) agent_subject_id: Option<ObjectName>,
    pub(crate) expires_at: Option<Time>,
    pub(crate) reason: String,
    pub(crate) granted_at: Time,
    pub(crate) granted_by: String,
    /// True if there was no proof that the granter was a human.
    pub(crate) is_advisory: bool,
    /// Probable mistakes, such as a misspelt scope, server or tool. Only the answer to a creation
    /// has this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<Vec<String>>,
    /// True if the grant allows calls now. A grant that is used up, revoked or expired does not.
    /// With `grants.require_proof`, an advisory grant does not either.
    pub(crate) counts: bool,
    pub(crate) consumed_at: Option<Time>,
    pub(crate) consumed_by: Option<RunId>,
    pub(crate) revoked_at: Option<Time>,
    pub(crate) revoked_by: Option<String>,
}

impl Listed for Grant {
    const PAGE: &str = "GrantPage";
    const ABOUT: &str = "The grants of a workspace.";
}

/// The grant to create, for exactly one user or agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "grant_type": "tool_scope",
    "details": { "scope": "linear.write" },
    "scope": "once",
    "agent_subject_id": "reader"
}))]
pub(crate) struct GrantNew {
    pub(crate) grant_type: GrantType,
    pub(crate) details: GrantNewDetails,
    pub(crate) scope: GrantScope,
    pub(crate) session_id: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) expires_at: Option<Time>,
    pub(crate) reason: Option<String>,
    pub(crate) user_subject_id: Option<String>,
    pub(crate) agent_subject_id: Option<String>,
}

/// A request of a run for a grant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "grq_0a1b2c3d4e5f6071",
    "status": "pending",
    "run_id": "run_0a1b2c3d4e5f",
    "session_id": "ses_0a1b2c3d4e5f",
    "user_subject_id": null,
    "user_name": null,
    "agent_subject_id": "reader",
    "grant_type": "tool_scope",
    "details": { "scope": "linear.write" },
    "arguments": null,
    "scope": "once",
    "reason": "to file the issue",
    "requested_at": "2026-11-22T12:00:00.000Z",
    "expires_at": "2026-11-22T13:00:00.000Z",
    "decided_at": null,
    "decided_by": null,
    "decision_reason": "",
    "grant_id": null,
    "page": "http://localhost:7717/workspaces/default/grant-requests/grq_0a1b2c3d4e5f6071",
    "warnings": []
}))]
pub(crate) struct GrantRequest {
    pub(crate) id: GrantRequestId,
    #[schemars(extend("enum" = GrantRequestStatus::ALL.map(GrantRequestStatus::as_str)))]
    pub(crate) status: &'static str,
    pub(crate) run_id: RunId,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) user_subject_id: Option<PrincipalId>,
    /// The name of this human for people. `admin` is the holder of the admin token.
    pub(crate) user_name: Option<String>,
    pub(crate) agent_subject_id: Option<ObjectName>,
    pub(crate) grant_type: GrantType,
    pub(crate) details: GrantDetails,
    /// The arguments of `arguments_digest`, for people: in canonical form (RFC 8785), of which up
    /// to 3,500 characters are stored. Null if the run has not sent them.
    pub(crate) arguments: Option<String>,
    pub(crate) scope: GrantScope,
    pub(crate) reason: String,
    pub(crate) requested_at: Time,
    pub(crate) expires_at: Time,
    pub(crate) decided_at: Option<Time>,
    pub(crate) decided_by: Option<String>,
    pub(crate) decision_reason: String,
    pub(crate) grant_id: Option<GrantId>,
    /// The address at which a human signs in and decides. Null if there is no sign-in.
    pub(crate) page: Option<String>,
    /// True if there was no proof that the approver was a human. Only the answer to an approval has
    /// this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_advisory: Option<bool>,
    /// Warnings of a pending request, and of an approved one in the answer to the approval. One
    /// names the scope that the tool requires instead, or the scope that was probably meant. In the
    /// answer one can name an unknown server or tool. Empty for callers that may not read the
    /// catalog.
    pub(crate) warnings: Vec<String>,
}

impl GrantRequest {
    /// The part for callers that may not read the catalog: warnings name scopes of servers.
    pub(crate) fn without_catalog(self) -> Self {
        let Self {
            id,
            status,
            run_id,
            session_id,
            user_subject_id,
            user_name,
            agent_subject_id,
            grant_type,
            details,
            arguments,
            scope,
            reason,
            requested_at,
            expires_at,
            decided_at,
            decided_by,
            decision_reason,
            grant_id,
            page,
            is_advisory,
            warnings: _,
        } = self;
        Self {
            id,
            status,
            run_id,
            session_id,
            user_subject_id,
            user_name,
            agent_subject_id,
            grant_type,
            details,
            arguments,
            scope,
            reason,
            requested_at,
            expires_at,
            decided_at,
            decided_by,
            decision_reason,
            grant_id,
            page,
            is_advisory,
            warnings: Vec::new(),
        }
    }
}

impl Listed for GrantRequest {
    const PAGE: &str = "GrantRequestPage";
    const ABOUT: &str = "The requests of a workspace.";
}

/// The reason of an approval, a scope that replaces the requested one, and the time at which the
/// grant ends in any case.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "scope": "session",
    "reason": "for today",
    "expires_at": "2027-01-31T12:00:00.000Z"
}))]
pub(crate) struct GrantApproval {
    pub(crate) scope: Option<GrantScope>,
    pub(crate) reason: Option<String>,
    pub(crate) expires_at: Option<Time>,
}

/// The reason of a denial.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "reason": "not on a Friday" }))]
pub(crate) struct GrantDenial {
    pub(crate) reason: Option<String>,
}

fn short_text() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 200 })
}
