//! The grants of humans, and the requests of runs.

use super::super::operation::{Operation, delete, get, of, post};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/workspaces/{workspace}/grants", "grant_list", "Lists the grants")
        .asks(&["include_revoked", "after", "limit"])
        .gives(of::<shapes::Page<shapes::Grant>>()),
    post("/api/workspaces/{workspace}/grants", "grant_create", "Creates a grant; humans only")
        .takes(of::<shapes::GrantNew>())
        .makes(of::<shapes::Grant>()),
    get("/api/workspaces/{workspace}/grants/{id}", "grant_show", "Shows one grant")
        .gives(of::<shapes::Grant>()),
    delete("/api/workspaces/{workspace}/grants/{id}", "grant_revoke", "Revokes a grant").ends(),
    get("/api/workspaces/{workspace}/grant-requests", "grant_request_list", "Lists the requests")
        .asks(&["grant_request_status", "after", "limit"])
        .gives(of::<shapes::Page<shapes::GrantRequest>>()),
    post(
        "/api/workspaces/{workspace}/grant-requests/{id}/approve",
        "grant_request_approve",
        "Approves a grant request",
    )
    .takes(of::<shapes::GrantApproval>())
    .gives(of::<shapes::GrantRequest>()),
    post(
        "/api/workspaces/{workspace}/grant-requests/{id}/deny",
        "grant_request_deny",
        "Denies a grant request",
    )
    .takes(of::<shapes::GrantDenial>())
    .gives(of::<shapes::GrantRequest>()),
];
