//! The events of sessions, and messages for their agents.

use super::super::operation::{Content, Operation, get, post, written};

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/api/workspaces/{workspace}/sessions/{id}/events",
        "session_events",
        "Lists or streams the events of a session",
    )
    .asks(&["session_event_after", "session_event_limit", "session_event_type", "LastEventId"])
    .answers(
        200,
        Content::JsonOrEvents(written("SessionEventPage"), written("SessionStreamed")),
        &[],
    )
    .refuses(&[400, 429]),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/messages",
        "session_message",
        "Sends a message to the agent of a session",
    )
    .takes(written("SessionMessage"))
    .makes(written("SessionEvent")),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/messages/acknowledgement",
        "session_messages_acknowledge",
        "Acknowledges the messages that a run has read",
    )
    .takes(written("MessageAcknowledgement"))
    .gives(written("MessagesAcknowledged")),
    get(
        "/api/workspaces/{workspace}/events",
        "workspace_events",
        "Streams the events of all sessions of a workspace",
    )
    .asks(&["session_event_after", "session_event_type", "LastEventId"])
    .answers(200, Content::Events(written("WorkspaceStreamed")), &[])
    .refuses(&[400, 429]),
];
