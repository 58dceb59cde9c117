//! The endpoints of MCP, health, and metrics for monitors.

use super::super::operation::{Content, Operation, delete, get, of, post};
use crate::shapes;

const EVENT_STREAM: &str = "text/event-stream";
const ANSWERS: &[&str] = &["application/json", EVENT_STREAM];
const HEADERS: &[&str] = &["McpSessionId", "McpProtocolVersion"];
/// The media types of files.
const FILES: &[&str] = &["application/json", "text/markdown", "text/plain"];
const TEXT: &[&str] = &["text/plain"];
/// The refusals of a message; where the message was read, the body is a JSON-RPC error.
const MESSAGE: &[u16] = &[400, 406, 408, 409, 413, 415, 429, 500, 503, 504];

pub(super) const OPERATIONS: &[Operation] = &[
    post("/mcp", "mcp_send", "Accepts an MCP message for all servers of the run")
        .asks(HEADERS)
        .takes(of::<shapes::McpMessage>())
        .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
        .answers(202, Content::None, &[])
        .refuses(MESSAGE),
    get("/mcp", "mcp_listen", "Streams the servers' own messages to a legacy session")
        .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
        .answers(200, Content::Text(&[EVENT_STREAM]), &[])
        .refuses(&[400, 405, 406, 409]),
    delete("/mcp", "mcp_end", "Ends a legacy session").asks(HEADERS).ends().refuses(&[400, 405]),
    post("/mcp/{alias}", "mcp_server_send", "Accepts an MCP message for one server of the run")
        .asks(HEADERS)
        .takes(of::<shapes::McpMessage>())
        .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
        .answers(202, Content::None, &[])
        .refuses(MESSAGE),
    get("/mcp/{alias}", "mcp_server_listen", "Streams one server's own messages")
        .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
        .answers(200, Content::Text(&[EVENT_STREAM]), &[])
        .refuses(&[400, 405, 406, 409]),
    delete("/mcp/{alias}", "mcp_server_end", "Ends a legacy session with one server")
        .asks(HEADERS)
        .ends()
        .refuses(&[400, 405]),
    post("/mcp/p/{profile}", "mcp_profile_send", "Accepts an MCP message for a profile")
        .asks(HEADERS)
        .takes(of::<shapes::McpMessage>())
        .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
        .answers(202, Content::None, &[])
        .refuses(MESSAGE),
    get("/mcp/p/{profile}", "mcp_profile_listen", "Streams the messages of a profile's servers")
        .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
        .answers(200, Content::Text(&[EVENT_STREAM]), &[])
        .refuses(&[400, 405, 406, 409]),
    delete("/mcp/p/{profile}", "mcp_profile_end", "Ends a legacy session with a profile")
        .asks(HEADERS)
        .ends()
        .refuses(&[400, 405]),
    post("/mcp/{alias}/tools/{tool}", "tool_call", "Calls a tool of one server of the run")
        .takes(of::<shapes::ToolArguments>())
        .gives(of::<shapes::ToolResult>())
        .refuses_with(of::<shapes::ToolCallProblem<'static>>())
        .refuses(&[400, 406, 408, 409, 413, 415, 429, 500, 503, 504]),
    post(
        "/mcp/w/{workspace}",
        "mcp_workspace_send",
        "Accepts an MCP message for all servers of a run of the workspace",
    )
    .asks(HEADERS)
    .takes(of::<shapes::McpMessage>())
    .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
    .answers(202, Content::None, &[])
    .refuses(MESSAGE),
    get(
        "/mcp/w/{workspace}",
        "mcp_workspace_listen",
        "Streams the servers' own messages to a legacy session of a run of the workspace",
    )
    .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
    .answers(200, Content::Text(&[EVENT_STREAM]), &[])
    .refuses(&[400, 405, 406, 409]),
    delete(
        "/mcp/w/{workspace}",
        "mcp_workspace_end",
        "Ends a legacy session of a run of the workspace",
    )
    .asks(HEADERS)
    .ends()
    .refuses(&[400, 405]),
    post(
        "/mcp/w/{workspace}/{alias}",
        "mcp_workspace_server_send",
        "Accepts an MCP message for one server of a run of the workspace",
    )
    .asks(HEADERS)
    .takes(of::<shapes::McpMessage>())
    .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
    .answers(202, Content::None, &[])
    .refuses(MESSAGE),
    get(
        "/mcp/w/{workspace}/{alias}",
        "mcp_workspace_server_listen",
        "Streams one server's own messages to a run of the workspace",
    )
    .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
    .answers(200, Content::Text(&[EVENT_STREAM]), &[])
    .refuses(&[400, 405, 406, 409]),
    delete(
        "/mcp/w/{workspace}/{alias}",
        "mcp_workspace_server_end",
        "Ends a legacy session of a run of the workspace with one server",
    )
    .asks(HEADERS)
    .ends()
    .refuses(&[400, 405]),
    post(
        "/mcp/w/{workspace}/p/{profile}",
        "mcp_workspace_profile_send",
        "Accepts an MCP message for a profile in a run of the workspace",
    )
    .asks(HEADERS)
    .takes(of::<shapes::McpMessage>())
    .answers(200, Content::Text(ANSWERS), &["McpSessionId"])
    .answers(202, Content::None, &[])
    .refuses(MESSAGE),
    get(
        "/mcp/w/{workspace}/p/{profile}",
        "mcp_workspace_profile_listen",
        "Streams the messages of a profile's servers to a run of the workspace",
    )
    .asks(&["McpSessionId", "McpProtocolVersion", "LastEventId"])
    .answers(200, Content::Text(&[EVENT_STREAM]), &[])
    .refuses(&[400, 405, 406, 409]),
    delete(
        "/mcp/w/{workspace}/p/{profile}",
        "mcp_workspace_profile_end",
        "Ends a legacy session of a run of the workspace with a profile",
    )
    .asks(HEADERS)
    .ends()
    .refuses(&[400, 405]),
    post(
        "/mcp/w/{workspace}/{alias}/tools/{tool}",
        "tool_call_in_workspace",
        "Calls a tool of one server of a run of the workspace",
    )
    .takes(of::<shapes::ToolArguments>())
    .gives(of::<shapes::ToolResult>())
    .refuses_with(of::<shapes::ToolCallProblem<'static>>())
    .refuses(&[400, 406, 408, 409, 413, 415, 429, 500, 503, 504]),
    get(
        "/vfs/{path}",
        "vfs_look",
        "Lists a directory of the run's files, or reads or describes a file",
    )
    .asks(&["vfs_op"])
    .answers(200, Content::Text(FILES), &[])
    .refuses(&[400, 422, 429, 500, 502, 503, 504]),
    post(
        "/vfs/{path}",
        "vfs_write",
        "Writes to a file of the run, and returns its content after the write",
    )
    .asks(&["vfs_write_op"])
    .takes(of::<shapes::ToolArguments>())
    .answers(200, Content::Text(FILES), &[])
    .answers(202, Content::None, &[])
    .refuses(&[400, 408, 413, 415, 422, 429, 500, 502, 503, 504]),
    get("/healthz", "health_show", "Reports that the daemon runs").answers(
        200,
        Content::Text(TEXT),
        &[],
    ),
    get(
        "/readyz",
        "ready_show",
        "Reports if the daemon is ready: it is not stopping, and its store answers",
    )
    .asks(&["verbose"])
    .answers(200, Content::Text(TEXT), &[])
    .answers(503, Content::Text(TEXT), &[]),
    get("/metrics", "metrics_show", "Shows the metrics for Prometheus").answers(
        200,
        Content::Text(&["application/openmetrics-text"]),
        &[],
    ),
    get("/api/openapi.json", "openapi_show", "This document").gives(of::<shapes::OpenApi>()),
];
