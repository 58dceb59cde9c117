//! Reads events: pages of sessions and workspaces, and streams.

use std::time::SystemTime;

use narthex_model::WorkspaceId;

use super::{EventRow, EventRows, EventStream, EventsOf, event, events_of, number_value, whole};
use crate::{
    StatementError,
    objects::{ms, optional_time},
    statement::{Row, Statement, Value},
};

/// Reads all in one statement, so that the stream's state is of the same moment as the events.
const PAGE: Statement = Statement {
    name: "events.page",
    sql: "SELECT sessions.workspace, sessions.id AS session, ended_at, \
          COALESCE(oldest_seq, 1) AS oldest_seq, COALESCE(last_seq, 0) AS last_seq, seq, number, \
          happened_at, kind, session_events.run AS run, message_id, payload FROM sessions \
          LEFT JOIN event_streams ON event_streams.workspace = sessions.workspace \
          AND event_streams.session = sessions.id \
          LEFT JOIN session_events ON session_events.workspace = sessions.workspace \
          AND session_events.session = sessions.id AND seq > $3 \
          AND ($4 = '' OR replace($4, ',' || kind || ',', '') <> $4) \
          WHERE sessions.workspace = $1 AND sessions.id = $2 ORDER BY seq LIMIT $5",
};
const FEED: Statement = Statement {
    name: "events.feed",
    sql: "SELECT event_totals.workspace, last_number, session, seq, number, happened_at, kind, \
          run, message_id, payload FROM event_totals \
          LEFT JOIN session_events ON session_events.workspace = event_totals.workspace \
          AND number > $2 AND ($3 = '' OR replace($3, ',' || kind || ',', '') <> $3) \
          WHERE event_totals.workspace = $1 ORDER BY number LIMIT $4",
};
const MESSAGE: Statement = Statement {
    name: "events.message",
    sql: "SELECT workspace, session, seq, number, happened_at, kind, run, message_id, payload \
          FROM session_events WHERE workspace = $1 AND session = $2 AND kind = $3 \
          AND message_id = $4 AND message_id <> ''",
};
const SIZES: Statement = Statement {
    name: "events.sizes",
    sql: "SELECT seq, bytes FROM session_events WHERE workspace = $1 AND session = $2 \
          ORDER BY seq LIMIT $3",
};
/// Streams of ended sessions first, then those of the longest silence.
const SPARE: Statement = Statement {
    name: "events.spare",
    sql: "SELECT event_streams.workspace, event_streams.session, oldest_seq, last_seq, bytes, \
          bytes AS total FROM event_streams JOIN sessions \
          ON sessions.workspace = event_streams.workspace AND sessions.id = event_streams.session \
          WHERE event_streams.workspace = $1 AND bytes > 0 AND event_streams.session <> $2 \
          ORDER BY CASE WHEN ended_at = 0 THEN 1 ELSE 0 END, last_at LIMIT 1",
};
const OVERDUE: Statement = Statement {
    name: "events.overdue",
    sql: "SELECT event_streams.workspace, event_streams.session, oldest_seq, last_seq, bytes, \
          bytes AS total FROM event_streams JOIN sessions \
          ON sessions.workspace = event_streams.workspace AND sessions.id = event_streams.session \
          JOIN workspaces ON workspaces.id = event_streams.workspace \
          WHERE bytes > 0 AND ended_at > 0 AND events_kept_days > 0 \
          AND ended_at < $1 - events_kept_days * 86400000 LIMIT $2",
};

/// Selects events.
#[derive(Debug, Clone, Copy)]
pub struct EventFilter<'f> {
    /// The number after which events are selected.
    pub after: u64,
    /// The kinds; all if this is empty.
    pub kinds: &'f [&'f str],
    /// Maximum number of events.
    pub limit: u32,
}

/// Events of a session in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The selected events.
    pub events: Vec<EventRow>,
    /// Number of the first stored event; one more than `last` if none is stored.
    pub oldest: u64,
    /// Number of the last event; 0 if there was none.
    pub last: u64,
    /// True if the session has ended.
    pub has_ended: bool,
}

/// Events of a workspace in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFeed {
    /// The selected events.
    pub events: Vec<EventRow>,
    /// Number of the last event; 0 if there was none.
    pub last: u64,
}

impl EventRows<'_> {
    /// Events of a session by their numbers in it. `None` if there is no such session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        of: &EventsOf,
        filter: EventFilter<'_>,
    ) -> Result<Option<EventPage>, StatementError> {
        let (session, kinds) = (of.session.to_text(), kinds(&filter));
        let values = [
            Value::Text(of.workspace.as_str()),
            Value::Text(&session),
            number_value(filter.after),
            Value::Text(&kinds),
            Value::Integer(filter.limit.into()),
        ];
        let rows = self.database.read(PAGE, &values).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let (oldest, last) = (whole(first, "oldest_seq")?, whole(first, "last_seq")?);
        let has_ended = optional_time(first, "ended_at")?.is_some();
        Ok(Some(EventPage { events: joined(&rows)?, oldest, last, has_ended }))
    }

    /// Events of a workspace by their numbers in it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn feed(
        &self,
        workspace: &WorkspaceId,
        filter: EventFilter<'_>,
    ) -> Result<EventFeed, StatementError> {
        let kinds = kinds(&filter);
        let values = [
            Value::Text(workspace.as_str()),
            number_value(filter.after),
            Value::Text(&kinds),
            Value::Integer(filter.limit.into()),
        ];
        let rows = self.database.read(FEED, &values).await?;
        let last = rows.first().map_or(Ok(0), |row| whole(row, "last_number"))?;
        Ok(EventFeed { events: joined(&rows)?, last })
    }

    /// The event of a message of this kind, if it is stored.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn message(
        &self,
        of: &EventsOf,
        kind: &str,
        message_id: &str,
    ) -> Result<Option<EventRow>, StatementError> {
        let session = of.session.to_text();
        let values = [
            Value::Text(of.workspace.as_str()),
            Value::Text(&session),
            Value::Text(kind),
            Value::Text(message_id),
        ];
        self.database.read(MESSAGE, &values).await?.first().map(event).transpose()
    }

    /// The numbers of the first events of a session, with their sizes.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn sizes(
        &self,
        of: &EventsOf,
        limit: u32,
    ) -> Result<Vec<(u64, u64)>, StatementError> {
        let session = of.session.to_text();
        let place = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        let values = [place[0], place[1], Value::Integer(limit.into())];
        let rows = self.database.read(SIZES, &values).await?;
        rows.iter().map(|row| Ok((whole(row, "seq")?, whole(row, "bytes")?))).collect()
    }

    /// The stream of another session of the workspace from which events can be removed first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn spare(
        &self,
        but: &EventsOf,
    ) -> Result<Option<(EventsOf, EventStream)>, StatementError> {
        let session = but.session.to_text();
        let values = [Value::Text(but.workspace.as_str()), Value::Text(&session)];
        let rows = self.database.read(SPARE, &values).await?;
        rows.first().map(whose_stream).transpose()
    }

    /// Some streams of ended sessions whose events are beyond their workspace's retention.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn overdue(
        &self,
        now: SystemTime,
        limit: u32,
    ) -> Result<Vec<(EventsOf, EventStream)>, StatementError> {
        let values = [Value::Integer(ms(now)), Value::Integer(limit.into())];
        let rows = self.database.read(OVERDUE, &values).await?;
        rows.iter().map(whose_stream).collect()
    }
}

/// Each of them between commas, so that none is found in another.
fn kinds(filter: &EventFilter<'_>) -> String {
    match filter.kinds {
        [] => String::new(),
        kinds => format!(",{},", kinds.join(",,")),
    }
}

/// The events of the rows. A stream without events has one row, which holds the stream alone.
fn joined(rows: &[Row]) -> Result<Vec<EventRow>, StatementError> {
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        if row.has("seq")? {
            events.push(event(row)?);
        }
    }
    Ok(events)
}

fn whose_stream(row: &Row) -> Result<(EventsOf, EventStream), StatementError> {
    Ok((events_of(row)?, super::stream(row)?))
}
