//! MCP clients that are registered in a workspace.

use super::super::operation::{Operation, delete, get, of, post};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/workspaces/{workspace}/mcp-clients", "mcp_client_list", "Lists MCP clients")
        .asks(&["after", "limit"])
        .gives(of::<shapes::Page<shapes::McpClient>>()),
    post(
        "/api/workspaces/{workspace}/mcp-clients",
        "mcp_client_register",
        "Registers an MCP client, whose token is shown once",
    )
    .takes(of::<shapes::McpClientNew>())
    .makes(of::<shapes::McpClientMade>())
    .refuses(&[429]),
    get("/api/workspaces/{workspace}/mcp-clients/{id}", "mcp_client_show", "Shows an MCP client")
        .gives(of::<shapes::McpClient>()),
    delete(
        "/api/workspaces/{workspace}/mcp-clients/{id}",
        "mcp_client_revoke",
        "Revokes an MCP client, and ends its run",
    )
    .ends(),
];
