//! The catalog of a workspace: servers, capabilities, agents, and all of it at once.

use super::super::operation::{Content, Operation, delete, get, of, patch, post, put};
use crate::shapes::{self, Shape};

const PAGES: &[&str] = &["after", "limit"];
const CONDITION: &[&str] = &["IfMatch", "IfNoneMatch"];
const SAVED: &[&str] = &["offline", "IfMatch", "IfNoneMatch"];
const FORCED: &[&str] = &["force", "IfMatch", "IfNoneMatch"];
const TAG: &[&str] = &["ETag"];
const MADE: &[&str] = &["ETag", "Location"];
const CHANGED: &[u16] = &[400, 412];
const FULL: &[u16] = &[400, 412, 429];

/// Makes an object.
const fn made(operation: Operation, given: Shape) -> Operation {
    operation.asks(CONDITION).answers(201, Content::Json(given), MADE).refuses(FULL)
}

/// Stores an object whole, which may have been there.
const fn stored(operation: Operation, given: Shape) -> Operation {
    made(operation.answers(200, Content::Json(given), TAG), given)
}

/// Stores a part of an object, of which there may be any number.
const fn attached(operation: Operation) -> Operation {
    operation
        .takes(of::<shapes::AttachmentNew>())
        .asks(CONDITION)
        .answers(200, Content::Json(of::<shapes::AttachmentWritten>()), TAG)
        .answers(201, Content::Json(of::<shapes::AttachmentWritten>()), MADE)
        .refuses(CHANGED)
}

/// Changes an object.
const fn changed(operation: Operation, given: Shape) -> Operation {
    operation
        .merges(of::<shapes::MergePatch>())
        .asks(CONDITION)
        .answers(200, Content::Json(given), TAG)
        .refuses(CHANGED)
}

const fn removed(operation: Operation) -> Operation {
    operation.asks(FORCED).ends().refuses(CHANGED)
}

const SERVERS: &str = "/api/workspaces/{workspace}/mcp-servers";
const SERVER: &str = "/api/workspaces/{workspace}/mcp-servers/{id}";
const CAPABILITIES: &str = "/api/workspaces/{workspace}/capabilities";
const CAPABILITY: &str = "/api/workspaces/{workspace}/capabilities/{id}";
const AGENTS: &str = "/api/workspaces/{workspace}/agents";
const AGENT: &str = "/api/workspaces/{workspace}/agents/{id}";
const ATTACHMENTS: &str = "/api/workspaces/{workspace}/agents/{id}/mcp-attachments";
const ATTACHMENT: &str = "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/{alias}";
const CONNECTIONS: &str =
    "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/connection-status";
const MY_TOKENS: &str = "/api/users/me/mcp-tokens";
const TOKENS: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens";
const TOKEN: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens/{server}";
const CONNECT: &str = "/api/workspaces/{workspace}/users/{user}/mcp-tokens/{server}/connect";
/// Another server may refuse, or not answer.
const SIGN_IN: &[u16] = &[400, 409, 429, 504];

const DEFINITIONS: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions";
const ACCEPT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/accept";
const REJECT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/reject";

pub(super) const OPERATIONS: &[Operation] = &[
    get(DEFINITIONS, "definition_list", "Lists the definitions of a server")
        .asks(&["definition_state", "definition_source", "after", "limit"])
        .gives(of::<shapes::Page<shapes::SeenDefinition>>()),
    post(ACCEPT, "definition_accept", "Accepts definitions; humans only")
        .asks(&["definition_source"])
        .takes(of::<shapes::DefinitionChoice>())
        .gives(of::<shapes::DefinitionDecisions>()),
    post(REJECT, "definition_reject", "Rejects definitions; humans only")
        .asks(&["definition_source"])
        .takes(of::<shapes::DefinitionChoice>())
        .gives(of::<shapes::DefinitionDecisions>()),
    get(SERVERS, "mcp_server_list", "Lists the servers of the catalog")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::ServerObject>>()),
    made(
        post(SERVERS, "mcp_server_create", "Stores a new server")
            .takes(of::<shapes::CatalogServerNew>()),
        of::<shapes::ServerWritten>(),
    )
    .asks(SAVED),
    get(SERVER, "mcp_server_show", "Shows one server; authors see a part of it").answers(
        200,
        Content::Json(of::<shapes::ServerObject>()),
        TAG,
    ),
    stored(
        put(SERVER, "mcp_server_put", "Stores a server").takes(of::<shapes::CatalogServerNew>()),
        of::<shapes::ServerWritten>(),
    )
    .asks(SAVED),
    changed(patch(SERVER, "mcp_server_change", "Changes a server"), of::<shapes::ServerWritten>())
        .asks(SAVED),
    removed(delete(SERVER, "mcp_server_delete", "Removes a server")),
    get(CAPABILITIES, "capability_list", "Lists the capabilities")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::CapabilityObject>>()),
    made(
        post(CAPABILITIES, "capability_create", "Stores a new capability")
            .takes(of::<shapes::CapabilityNew>()),
        of::<shapes::CapabilityWritten>(),
    ),
    get(CAPABILITY, "capability_show", "Shows one capability").answers(
        200,
        Content::Json(of::<shapes::CapabilityObject>()),
        TAG,
    ),
    stored(
        put(CAPABILITY, "capability_put", "Stores a capability")
            .takes(of::<shapes::CapabilityNew>()),
        of::<shapes::CapabilityWritten>(),
    ),
    changed(
        patch(CAPABILITY, "capability_change", "Changes a capability"),
        of::<shapes::CapabilityWritten>(),
    ),
    removed(delete(CAPABILITY, "capability_delete", "Removes a capability")),
    get(AGENTS, "agent_list", "Lists the agents")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::AgentObject>>()),
    made(
        post(AGENTS, "agent_create", "Stores a new agent").takes(of::<shapes::AgentNew>()),
        of::<shapes::AgentWritten>(),
    ),
    get(AGENT, "agent_show", "Shows one agent, or its merged servers").asks(&["view"]).answers(
        200,
        Content::Either(of::<shapes::AgentObject>(), of::<shapes::Merged>()),
        TAG,
    ),
    stored(
        put(AGENT, "agent_put", "Stores an agent").takes(of::<shapes::AgentNew>()),
        of::<shapes::AgentWritten>(),
    ),
    changed(patch(AGENT, "agent_change", "Changes an agent"), of::<shapes::AgentWritten>()),
    removed(delete(AGENT, "agent_delete", "Removes an agent")),
    get(ATTACHMENTS, "attachment_list", "Lists an agent's own attachments").asks(PAGES).answers(
        200,
        Content::Json(of::<shapes::Page<shapes::Attachment>>()),
        TAG,
    ),
    attached(put(ATTACHMENTS, "attachment_add", "Attaches a server to an agent")),
    get(CONNECTIONS, "connection_list", "Lists the servers that a human must sign in to")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Connection>>()),
    get(MY_TOKENS, "mcp_token_mine", "Lists the caller's connections in all workspaces")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::McpToken>>()),
    get(TOKENS, "mcp_token_list", "Lists a human's connections in a workspace")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::McpToken>>()),
    post(CONNECT, "mcp_token_connect", "Starts a connection of the caller")
        .gives(of::<shapes::ServerSignInBegun>())
        .refuses(SIGN_IN),
    delete(TOKEN, "mcp_token_delete", "Ends a human's connection").ends().refuses(SIGN_IN),
    get(ATTACHMENT, "attachment_show", "Shows one attachment").answers(
        200,
        Content::Json(of::<shapes::Attachment>()),
        TAG,
    ),
    attached(put(ATTACHMENT, "attachment_put", "Attaches a server under this alias")),
    delete(ATTACHMENT, "attachment_delete", "Removes an attachment from an agent")
        .asks(CONDITION)
        .ends()
        .refuses(CHANGED),
    get("/api/workspaces/{workspace}/export", "workspace_export", "Exports the catalog")
        .gives(of::<shapes::Export>()),
    post("/api/workspaces/{workspace}/import", "workspace_import", "Imports a catalog")
        .asks(&["dry_run", "prune", "offline"])
        .takes(of::<shapes::ImportDocument>())
        .refuses(&[429])
        .gives(of::<shapes::Imported>()),
    post(
        "/api/workspaces/{workspace}/validate",
        "object_validate",
        "Checks an object without storing it",
    )
    .asks(&["object_kind"])
    .takes(of::<shapes::CatalogObjectNew>())
    .gives(of::<shapes::Validated>()),
    post(
        "/api/workspaces/{workspace}/preview",
        "agent_preview",
        "Previews the merged servers of an agent",
    )
    .takes(of::<shapes::AgentManifest>())
    .gives(of::<shapes::Merged>()),
];
