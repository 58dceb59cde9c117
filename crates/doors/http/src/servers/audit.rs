//! The audit: finds events by actor, kind and time, exports all events as lines, and sets how long
//! they are stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Method, StatusCode, header};
use narthex_control::{AuditExport, AuditItem, AuditPlace, AuditQuery, Control, FieldError};
use narthex_gateway::Gateway;
use narthex_model::{Timestamp, WorkspaceId};

use super::{
    Answered, Asked, ok,
    query::{self, Query},
};
use crate::{
    body::RequestBody,
    lines::LinesStream,
    problem::Problem,
    respond::Response,
    shapes::{AuditEvent, AuditPage, AuditSettings, AuditWaiting, Page},
};

/// The query parameters of a list of events.
const KNOWN: [&str; 9] =
    ["actor", "resource", "run", "kind", "since", "until", "order", "after", "limit"];
const LINES: &str = "application/x-ndjson";

impl Asked<'_> {
    /// A page of events, or all events if the caller accepts lines.
    pub(super) async fn audit(&self) -> Answered {
        let (workspace, control) = (self.audited()?, self.control()?);
        if self.wants_lines() {
            Query::of(&self.parts.uri, &[])?;
            return self.audit_export(control, workspace.as_ref()).await;
        }
        let query = audit_query(&Query::of(&self.parts.uri, &KNOWN)?, workspace)?;
        let page = control.audit_list(&query).await?;
        let next =
            page.items.last().filter(|_| page.has_more).map(|item| audit_cursor(&item.place));
        let items = page.items.into_iter().map(shown).collect();
        Ok(ok(&AuditPage { page: Page { items, next }, waiting: page.waiting.map(waiting) }))
    }

    /// Reads or sets the limits of stored events.
    pub(super) async fn audit_settings(&self, body: RequestBody) -> Answered {
        let (workspace, control) = (self.audited()?, self.control()?);
        Query::of(&self.parts.uri, &[])?;
        if self.parts.method == Method::PUT {
            let text = self.entry(body, &[]).await?;
            let wanted = serde_json::from_str(&text).map_err(|error| {
                let remedy = "write {\"kept_days\": 0, \"kept_events\": 0}; 0 is for ever";
                let fault = FieldError::invalid("", error.to_string(), remedy);
                let text = format!("the settings of the audit cannot be used: {fault}");
                Problem::of_fields(text, &[fault])
            })?;
            let AuditSettings { kept_days, kept_events } = wanted;
            let settings = narthex_control::AuditSettings { kept_days, kept_events };
            control.audit_keep(workspace.as_ref(), settings, self.by()).await?;
        }
        let narthex_control::AuditSettings { kept_days, kept_events } =
            control.audit_settings(workspace.as_ref()).await?;
        Ok(ok(&AuditSettings { kept_days, kept_events }))
    }

    async fn audit_export(&self, control: &Control, workspace: Option<&WorkspaceId>) -> Answered {
        let export = control.audit_export(workspace).await?;
        Ok(audit_lines(&self.door.gateway, export))
    }

    /// The workspace of the audit. `None` for the installation's audit, which has a separate path.
    fn audited(&self) -> Result<Option<WorkspaceId>, Problem> {
        match self.segments[0] {
            "" => Ok(None),
            _ => self.workspace().map(Some),
        }
    }

    fn wants_lines(&self) -> bool {
        let accepted = self.parts.headers.get_all(header::ACCEPT).iter();
        let mut texts = accepted.filter_map(|value| value.to_str().ok());
        texts.any(|text| text.split([',', ';']).any(|one| one.trim() == LINES))
    }
}

/// The answer with all lines of an export.
pub(crate) fn audit_lines(gateway: &Gateway, export: AuditExport) -> Response {
    let open = gateway.metrics().stream_opened();
    let mut response = Response::new(LinesStream::new(export, open).into());
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

/// The filter of an address.
pub(crate) fn audit_query(
    query: &Query,
    workspace: Option<WorkspaceId>,
) -> Result<AuditQuery, Problem> {
    let mut faults = Vec::new();
    let mut time = |name: &'static str| match query.text(name) {
        "" => None,
        text => {
            let time = point(text);
            if time.is_none() {
                let remedy = "write a UTC day or time as in RFC 3339, such as 2026-11-22 or \
                              2026-11-22T13:00:00Z";
                faults.push(FieldError::invalid(name, "this is not a time", remedy));
            }
            time
        }
    };
    let (since, until) = (time("since"), time("until"));
    let after = match query.text("after") {
        "" => None,
        text => {
            let place = audit_place(text);
            if place.is_none() {
                let remedy = "write the `next` of an earlier answer";
                faults.push(FieldError::invalid(
                    "after",
                    "this is not a position in this list",
                    remedy,
                ));
            }
            place
        }
    };
    if !faults.is_empty() {
        return Err(query::refused(&faults));
    }
    let text = |name| query.text(name).to_owned();
    Ok(AuditQuery {
        workspace,
        actor: text("actor"),
        resource: text("resource"),
        run: text("run"),
        kind: text("kind"),
        since: since.unwrap_or(UNIX_EPOCH),
        until,
        is_ascending: query.word("order", &["newest", "oldest"])? == "oldest",
        after,
        limit: query.limit()?,
    })
}

/// Parses a day, or a time with or without milliseconds.
fn point(text: &str) -> Option<SystemTime> {
    let whole = match text.len() {
        10 => format!("{text}T00:00:00.000Z"),
        20 => format!("{}.000Z", text.strip_suffix('Z')?),
        _ => text.to_owned(),
    };
    Timestamp::read(&whole)
}

/// The place of an event as a text.
pub(crate) fn audit_cursor(place: &AuditPlace) -> String {
    let since = place.happened_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{}", since.as_millis(), place.seq, place.writer)
}

/// The place that a text of [`audit_cursor`] means.
pub(crate) fn audit_place(text: &str) -> Option<AuditPlace> {
    let mut parts = text.splitn(3, '-');
    let since: u64 = parts.next()?.parse().ok()?;
    let seq = parts.next()?.parse().ok()?;
    let writer = parts.next()?.to_owned();
    let happened_at = UNIX_EPOCH.checked_add(Duration::from_millis(since))?;
    Some(AuditPlace { happened_at, writer, seq })
}

/// An event, with an id from its writer and its sequence number.
fn shown(item: AuditItem) -> AuditEvent {
    let AuditItem { event, place } = item;
    let id = format!("{}-{}", place.writer, place.seq);
    AuditEvent { id, place: audit_cursor(&place), written: event }
}

fn waiting(waiting: narthex_audit::Waiting) -> AuditWaiting {
    let narthex_audit::Waiting { workspace, events, is_more, since, is_stuck } = waiting;
    AuditWaiting { workspace, events, is_more, since, is_stuck }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_the_audit_is_read_back_as_it_was_written() {
        let happened_at = UNIX_EPOCH + Duration::from_millis(1_790_000_000_123);
        let place = AuditPlace { happened_at, writer: "0a1b.1.ff-x".to_owned(), seq: 7 };
        assert_eq!(audit_place(&audit_cursor(&place)), Some(place));
        for text in ["", "1", "1-2", "x-1-w", "1-x-w", "99999999999999999999-1-w"] {
            assert_eq!(audit_place(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_in_a_query_means_the_first_moment_of_that_day() {
        let day = point("2026-11-22").unwrap();
        assert_eq!(point("2026-11-22T00:00:00Z"), Some(day));
        assert_eq!(point("2026-11-22T00:00:00.000Z"), Some(day));
        for text in ["2026-13-01", "yesterday", "2026-11-22T00:00:00+01"] {
            assert_eq!(point(text), None, "{text}");
        }
    }
}
