//! One event: in words, and as it was written.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use narthex_audit::line_hash;
use narthex_console::{
    Related, html,
    pages::audit::{AuditEventPage, AuditFact},
    parts::{Same, Words},
};
use narthex_control::{AuditItem, AuditPlace, AuditQuery};
use narthex_model::{RunId, SessionId};
use serde_json::Value;

use super::place::{address, api, command, object};
use crate::{
    console::{
        answer::{self, Answered, nothing},
        frame::{Head, frame},
        links::Links,
        viewer::Viewer,
    },
    problem::Problem,
    servers::{audit_cursor, audit_place},
};

/// Number of events of one moment that are read.
const OF_A_MOMENT: u32 = 200;
/// The smallest difference of two times in the audit.
const MOMENT: Duration = Duration::from_millis(1);
/// Maximum number of characters of an event on the page.
const RAW_MAX: usize = 40_000;

/// The members that say something, each with its words and the filter for it.
const MEMBERS: [(&str, &str, Option<&str>); 13] = [
    ("/time", "at", None),
    ("/kind", "what", Some("kind")),
    ("/actor/kind", "kind of actor", None),
    ("/actor/id", "who", Some("actor")),
    ("/resource/kind", "kind of object", None),
    ("/resource/id", "object", Some("resource")),
    ("/run", "run", Some("run")),
    ("/session", "session", None),
    ("/server", "server", Some("server")),
    ("/tool", "tool", None),
    ("/outcome", "outcome", Some("outcome")),
    ("/granted_via", "allowed by the grants", None),
    ("/details/refused_by", "refused by the check", None),
];

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["at"])?;
    let place = match query.text("at") {
        "" => None,
        text => Some(audit_place(text).ok_or_else(nothing)?),
    };
    let item = find(viewer, place.as_ref()).await?.ok_or_else(nothing)?;
    let place = &item.place;
    let (hash, is_as_written) = compared(&item.event);
    let id = format!("{}-{}", place.writer, place.seq);
    let since = narthex_model::Timestamp::new(place.happened_at).to_string();
    let command = command(viewer).option("--since", &since);
    let command = command.in_workspace(viewer.workspace.as_str());
    let request = format!("GET {}?since={since}", api(viewer));
    let head = Head {
        title: Words::within(&format!("Event {id}"), 120),
        sentence: "One event of the audit, in words and as it was written.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let raw = serde_json::to_string_pretty(&item.event).unwrap_or_default();
    let mut frame = frame(viewer, head).await?;
    frame.related = related(viewer, &item.event);
    let page = AuditEventPage {
        frame,
        back: viewer.path("audit"),
        sentence: Words::new(&sentence(&item.event)),
        facts: facts(viewer, &item.event),
        hash,
        is_as_written,
        raw: raw.chars().take(RAW_MAX).collect(),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The run of the event, and its session.
fn related(viewer: &Viewer<'_>, event: &Value) -> Vec<Related> {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str);
    let mut links = Links::of(viewer);
    if let Some(run) = text("/run").filter(|text| RunId::parse(text).is_some()) {
        links = links.run("The run", run);
    }
    if let Some(session) = text("/session").filter(|text| SessionId::parse(text).is_some()) {
        links = links.runs("Runs of the session", &[("session", session)]);
    }
    links.found()
}

/// The event at a place, or the newest one.
async fn find(
    viewer: &Viewer<'_>,
    place: Option<&AuditPlace>,
) -> Result<Option<AuditItem>, Problem> {
    let since = place.map_or(SystemTime::UNIX_EPOCH, |place| place.happened_at);
    let query = AuditQuery {
        since,
        until: place.and_then(|place| place.happened_at.checked_add(MOMENT)),
        ..AuditQuery::newest(viewer.audited(), if place.is_some() { OF_A_MOMENT } else { 1 })
    };
    let mut items = viewer.control().audit_list(&query).await?.items.into_iter();
    Ok(match place.map(audit_cursor) {
        Some(wanted) => items.find(|item| audit_cursor(&item.place) == wanted),
        None => items.next(),
    })
}

/// The result of comparing an event with its hash, which happens now.
fn compared(event: &Value) -> (&'static str, bool) {
    match line_hash(&event.to_string()) {
        Ok((made, Some(stated))) if made == stated => (
            "The event matches its hash: it was compared just now. That nothing is missing before \
             or after it is known only by “Verify now” on the list.",
            true,
        ),
        Ok(_) => ("The event does not match its hash: it was changed after it was written.", false),
        Err(_no_form) => ("The event has no form that its hash could be compared with.", false),
    }
}

fn sentence(event: &Value) -> String {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let object = object(event);
    let on = if object.is_empty() { String::new() } else { format!(" on {object}") };
    let fields = event.get("fields").and_then(Value::as_array);
    let fields: Vec<_> = fields.into_iter().flatten().filter_map(Value::as_str).collect();
    let changed = match fields.is_empty() {
        true => String::new(),
        false => format!(" It changed {}.", fields.join(", ")),
    };
    format!(
        "{} {} did {}{on}, with the outcome {}.{changed}",
        text("/actor/kind").replace('_', " "),
        text("/actor/id"),
        text("/kind"),
        text("/outcome"),
    )
}

fn facts(viewer: &Viewer<'_>, event: &Value) -> Vec<AuditFact> {
    let fact = |(place, name, filter): &(&str, &'static str, Option<&str>)| {
        let value = event.pointer(place)?.as_str()?;
        let href = filter.map(|filter| address(viewer, &[(filter, value.to_owned())]));
        Some(AuditFact { name, value: Words::new(value), href })
    };
    MEMBERS.iter().filter_map(fact).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// R3: an event counts as written only if its hash was made of this text.
    #[test]
    fn r3_a_changed_event_does_not_match_its_hash() {
        let mut event = json!({ "v": 1, "kind": "x", "seq": 1 });
        let (hash, _) = line_hash(&event.to_string()).unwrap();
        event["hash"] = json!(hash);
        assert!(compared(&event).1);
        event["kind"] = json!("y");
        assert!(!compared(&event).1);
        assert!(!compared(&json!({ "v": 1 })).1);
    }

    #[test]
    fn an_event_is_told_in_a_sentence() {
        let event = json!({
            "kind": "workspace.secret.set", "outcome": "ok", "fields": ["a", "b"],
            "actor": { "kind": "local_admin", "id": "admin" },
            "resource": { "kind": "secret", "id": "KEY" },
        });
        let told = "local admin admin did workspace.secret.set on secret KEY, with the outcome ok. \
                    It changed a, b.";
        assert_eq!(sentence(&event), told);
    }
}
