//! The events of sessions, and messages for their agents.

use super::super::operation::{Content, Operation, get, of, post};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/api/workspaces/{workspace}/sessions/{id}/events",
        "session_events",
        "Lists or streams the events of a session",
    )
    .asks(&["session_event_after", "session_event_limit", "session_event_type", "LastEventId"])
    .answers(
        200,
        Content::JsonOrEvents(of::<shapes::SessionEventPage>(), of::<shapes::SessionStreamed>()),
        &[],
    )
    .refuses(&[400, 429]),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/messages",
        "session_message",
        "Sends a message to the agent of a session",
    )
    .takes(of::<shapes::SessionMessage>())
    .makes(of::<shapes::SessionEvent>()),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/messages/acknowledgement",
        "session_messages_acknowledge",
        "Acknowledges the messages that a run has read",
    )
    .takes(of::<shapes::MessageAcknowledgement>())
    .gives(of::<shapes::MessagesAcknowledged>()),
    get(
        "/api/workspaces/{workspace}/events",
        "workspace_events",
        "Streams the events of all sessions of a workspace",
    )
    .asks(&["session_event_after", "session_event_type", "LastEventId"])
    .answers(200, Content::Events(of::<shapes::WorkspaceStreamed>()), &[])
    .refuses(&[400, 429]),
];
