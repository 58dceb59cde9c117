//! The catalog of a workspace: servers, capabilities, agents, and all of it at once.

use super::super::operation::{Content, Named, Operation, delete, get, patch, post, put, written};

const PAGES: &[&str] = &["after", "limit"];
const CONDITION: &[&str] = &["IfMatch", "IfNoneMatch"];
const FORCED: &[&str] = &["force", "IfMatch", "IfNoneMatch"];
const TAG: &[&str] = &["ETag"];
const MADE: &[&str] = &["ETag", "Location"];
const CHANGED: &[u16] = &[400, 412];
const FULL: &[u16] = &[400, 412, 429];

/// Makes an object.
const fn made(operation: Operation, given: Named) -> Operation {
    operation.asks(CONDITION).answers(201, Content::Json(given), MADE).refuses(FULL)
}

/// Stores an object whole, which may have been there.
const fn stored(operation: Operation, given: Named) -> Operation {
    made(operation.answers(200, Content::Json(given), TAG), given)
}

/// Stores a part of an object, of which there may be any number.
const fn attached(operation: Operation) -> Operation {
    operation
        .takes(written("AttachmentNew"))
        .asks(CONDITION)
        .answers(200, Content::Json(written("AttachmentWritten")), TAG)
        .answers(201, Content::Json(written("AttachmentWritten")), MADE)
        .refuses(CHANGED)
}

/// Changes an object.
const fn changed(operation: Operation, given: Named) -> Operation {
    operation
        .merges(written("MergePatch"))
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

const DEFINITIONS: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions";
const ACCEPT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/accept";
const REJECT: &str = "/api/workspaces/{workspace}/mcp-servers/{id}/definitions/reject";

pub(super) const OPERATIONS: &[Operation] = &[
    get(DEFINITIONS, "definition_list", "Lists the definitions of a server")
        .asks(&["definition_state", "definition_source", "after", "limit"])
        .gives(written("DefinitionPage")),
    post(ACCEPT, "definition_accept", "Accepts definitions; humans only")
        .asks(&["definition_source"])
        .takes(written("DefinitionChoice"))
        .gives(written("DefinitionDecisions")),
    post(REJECT, "definition_reject", "Rejects definitions; humans only")
        .asks(&["definition_source"])
        .takes(written("DefinitionChoice"))
        .gives(written("DefinitionDecisions")),
    get(SERVERS, "mcp_server_list", "Lists the servers of the catalog")
        .asks(PAGES)
        .gives(written("ServerPage")),
    made(
        post(SERVERS, "mcp_server_create", "Stores a new server")
            .takes(written("CatalogServerNew")),
        written("ServerWritten"),
    ),
    get(SERVER, "mcp_server_show", "Shows one server; authors see a part of it").answers(
        200,
        Content::Json(written("ServerObject")),
        TAG,
    ),
    stored(
        put(SERVER, "mcp_server_put", "Stores a server").takes(written("CatalogServerNew")),
        written("ServerWritten"),
    ),
    changed(patch(SERVER, "mcp_server_change", "Changes a server"), written("ServerWritten")),
    removed(delete(SERVER, "mcp_server_delete", "Removes a server")),
    get(CAPABILITIES, "capability_list", "Lists the capabilities")
        .asks(PAGES)
        .gives(written("CapabilityPage")),
    made(
        post(CAPABILITIES, "capability_create", "Stores a new capability")
            .takes(written("CapabilityNew")),
        written("CapabilityWritten"),
    ),
    get(CAPABILITY, "capability_show", "Shows one capability").answers(
        200,
        Content::Json(written("CapabilityObject")),
        TAG,
    ),
    stored(
        put(CAPABILITY, "capability_put", "Stores a capability").takes(written("CapabilityNew")),
        written("CapabilityWritten"),
    ),
    changed(
        patch(CAPABILITY, "capability_change", "Changes a capability"),
        written("CapabilityWritten"),
    ),
    removed(delete(CAPABILITY, "capability_delete", "Removes a capability")),
    get(AGENTS, "agent_list", "Lists the agents").asks(PAGES).gives(written("AgentPage")),
    made(
        post(AGENTS, "agent_create", "Stores a new agent").takes(written("AgentNew")),
        written("AgentWritten"),
    ),
    get(AGENT, "agent_show", "Shows one agent, or its merged servers").asks(&["view"]).answers(
        200,
        Content::Either(written("AgentObject"), written("Merged")),
        TAG,
    ),
    stored(
        put(AGENT, "agent_put", "Stores an agent").takes(written("AgentNew")),
        written("AgentWritten"),
    ),
    changed(patch(AGENT, "agent_change", "Changes an agent"), written("AgentWritten")),
    removed(delete(AGENT, "agent_delete", "Removes an agent")),
    get(ATTACHMENTS, "attachment_list", "Lists an agent's own attachments").asks(PAGES).answers(
        200,
        Content::Json(written("AttachmentPage")),
        TAG,
    ),
    attached(put(ATTACHMENTS, "attachment_add", "Attaches a server to an agent")),
    get(CONNECTIONS, "connection_list", "Lists the servers that a human must sign in to")
        .asks(PAGES)
        .gives(written("ConnectionPage")),
    get(ATTACHMENT, "attachment_show", "Shows one attachment").answers(
        200,
        Content::Json(written("Attachment")),
        TAG,
    ),
    attached(put(ATTACHMENT, "attachment_put", "Attaches a server under this alias")),
    delete(ATTACHMENT, "attachment_delete", "Removes an attachment from an agent")
        .asks(CONDITION)
        .ends()
        .refuses(CHANGED),
    get("/api/workspaces/{workspace}/export", "workspace_export", "Exports the catalog")
        .gives(written("Export")),
    post("/api/workspaces/{workspace}/import", "workspace_import", "Imports a catalog")
        .asks(&["dry_run", "prune"])
        .takes(written("ImportDocument"))
        .refuses(&[429])
        .gives(written("Imported")),
    post(
        "/api/workspaces/{workspace}/validate",
        "object_validate",
        "Checks an object without storing it",
    )
    .asks(&["object_kind"])
    .takes(written("CatalogObjectNew"))
    .gives(written("Validated")),
    post(
        "/api/workspaces/{workspace}/preview",
        "agent_preview",
        "Previews the merged servers of an agent",
    )
    .takes(written("AgentManifest"))
    .gives(written("Merged")),
];
