//! Shows wakes of a session, which the platform makes, as messages (X-E88).

use narthex_events::{EventKind, EventRow};
use narthex_model::{RunEnd, SessionId};
use serde_json::Value;

/// True if the event is a wake.
pub(super) fn is_wake(event: &EventRow) -> bool {
    event.kind == EventKind::SessionWake.as_str()
}

/// True if the wake announces a message, which the session reads anyway.
pub(super) fn is_of_message(event: &EventRow) -> bool {
    is_wake(event) && event.payload["kind"] == "message"
}

/// The child session whose end the wake reports, if it reports one.
pub(super) fn ended(event: &EventRow) -> Option<SessionId> {
    let payload = &event.payload;
    let is_end = is_wake(event)
        && payload["kind"] == "state_change"
        && payload["status"].as_str().and_then(RunEnd::parse).is_some();
    is_end.then(|| SessionId::parse(payload["child_session_id"].as_str()?)).flatten()
}

/// The payload of the wake, as an object.
pub(super) fn shown(event: &EventRow) -> Value {
    let mut shown = event.payload.clone();
    if let Some(members) = shown.as_object_mut() {
        // All wakes have the same source, the platform.
        members.remove("source");
    }
    shown
}

/// The wake in words; `None` if the event is not a wake.
pub(super) fn words(event: &EventRow) -> Option<String> {
    let payload = &event.payload;
    let text = |name: &str| payload[name].as_str().unwrap_or_default();
    let number = |name: &str| payload[name].as_u64().unwrap_or_default();
    let child = format!("the session {} of `{}`", text("child_session_id"), text("child_agent_id"));
    let said = match text("kind") {
        "state_change" if payload["run_status"].is_string() => {
            let how = text("run_status");
            format!("{child} has no active run: its run has ended: {how}")
        }
        "state_change" => format!("{child} has ended: {}", text("status")),
        "watchdog" => format!("{child} has been silent for {} minutes", number("silent_minutes")),
        "heartbeat" => {
            format!("nothing has happened here for {} minutes", number("quiet_minutes"))
        }
        "checkup" => match text("reason") {
            "unclaimed" => format!("no platform carries out {child}"),
            "unread" => format!("{child} does not acknowledge its messages"),
            _ => format!("{child} has been silent for {} minutes", number("silent_minutes")),
        },
        kind => format!("{kind}: {child}"),
    };
    is_wake(event).then_some(said)
}
