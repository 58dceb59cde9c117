//! Events of sessions: added at the end of their stream, read by their numbers, and removed from
//! its start.

mod reading;

use std::time::SystemTime;

use narthex_model::{RunId, SessionId, TurnOf, WorkspaceId};

pub use self::reading::{EventFeed, EventFilter, EventPage};
use super::{
    inboxes::{self, NewUnread},
    ms,
    resting::{NewRest, RestTexts},
    runs, time, workspace,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const BEGIN: Statement = Statement {
    name: "events.begin",
    sql: "INSERT INTO event_streams (workspace, session, oldest_seq, last_seq, last_at, own_at, \
          bytes) VALUES ($1, $2, 1, 0, 0, 0, 0) ON CONFLICT (workspace, session) DO NOTHING",
};
/// Skips a message that is stored already. The condition that no id is empty lets the database use
/// the index. Time does not go back within a stream.
const COUNT: Statement = Statement {
    name: "events.count",
    sql: "UPDATE event_streams SET last_seq = last_seq + 1, bytes = bytes + $3, \
          last_at = CASE WHEN last_at > $4 THEN last_at ELSE $4 END, \
          own_at = CASE WHEN $7 = 0 THEN own_at WHEN last_at > $4 THEN last_at ELSE $4 END \
          WHERE workspace = $1 AND session = $2 AND ($5 = '' OR NOT EXISTS (SELECT 1 \
          FROM session_events WHERE workspace = $1 AND session = $2 AND kind = $6 \
          AND message_id = $5 AND message_id <> ''))",
};
const NUMBER: Statement = Statement {
    name: "events.number",
    sql: "INSERT INTO event_totals (workspace, last_number, bytes) VALUES ($1, 1, $2) \
          ON CONFLICT (workspace) DO UPDATE SET last_number = event_totals.last_number + 1, \
          bytes = event_totals.bytes + excluded.bytes",
};
const ADD: Statement = Statement {
    name: "events.add",
    sql: "INSERT INTO session_events (workspace, session, seq, number, happened_at, kind, run, \
          message_id, bytes, payload) \
          SELECT $1, $2, event_streams.last_seq, event_totals.last_number, event_streams.last_at, \
          $3, $4, $5, $6, $7 FROM event_streams, event_totals \
          WHERE event_streams.workspace = $1 AND event_streams.session = $2 \
          AND event_totals.workspace = $1",
};
const ADDED: Statement = Statement {
    name: "events.added",
    sql: "SELECT session_events.workspace, session_events.session, seq, number, happened_at, \
          kind, run, message_id, payload, oldest_seq, last_seq, event_streams.bytes AS bytes, \
          event_totals.bytes AS total, turns.n AS turn FROM event_streams \
          JOIN session_events ON session_events.workspace = event_streams.workspace \
          AND session_events.session = event_streams.session AND seq = last_seq \
          JOIN event_totals ON event_totals.workspace = event_streams.workspace \
          JOIN turns ON turns.id = 1 \
          WHERE event_streams.workspace = $1 AND event_streams.session = $2",
};
const TAKE_FROM_TOTAL: Statement = Statement {
    name: "events.take_from_total",
    sql: "UPDATE event_totals SET bytes = bytes - (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) \
          FROM session_events WHERE workspace = $1 AND session = $2 AND seq < $3) \
          WHERE workspace = $1",
};
const TAKE_FROM_STREAM: Statement = Statement {
    name: "events.take_from_stream",
    sql: "UPDATE event_streams SET oldest_seq = $3, \
          bytes = bytes - (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM session_events \
          WHERE workspace = $1 AND session = $2 AND seq < $3) \
          WHERE workspace = $1 AND session = $2 AND oldest_seq < $3 AND last_seq >= $3 - 1",
};
const FORGET: Statement = Statement {
    name: "events.forget",
    sql: "DELETE FROM session_events WHERE workspace = $1 AND session = $2 AND seq < $3",
};

/// About the bytes that an event takes besides its payload.
const OVERHEAD: usize = 128;

/// Access to the events of sessions.
#[derive(Debug, Clone, Copy)]
pub struct EventRows<'a> {
    database: &'a Database,
}

/// The session that events belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventsOf {
    /// The workspace that owns the session.
    pub workspace: WorkspaceId,
    /// The session's id.
    pub session: SessionId,
}

/// An event to be added.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    /// The session of the event.
    pub of: &'a EventsOf,
    /// The run of the event, if there is one.
    pub run: Option<RunId>,
    /// The event's kind.
    pub kind: &'a str,
    /// The id by which a repeated event of its kind is recognised.
    pub message_id: Option<&'a str>,
    /// The payload, as JSON.
    pub payload: &'a str,
    /// Time of the event.
    pub happened_at: SystemTime,
    /// The user who takes the turn of the session by the event; `None` if the turn does not change.
    pub turn: Option<&'a TurnOf>,
    /// The data to store until the message is acknowledged, if the event is a message.
    pub unread: Option<NewUnread>,
    /// The data for resuming the event's session, if it has no active run.
    pub owed: Option<&'a NewRest>,
    /// True if the session itself reports the event, instead of another party.
    pub is_own: bool,
}

/// An event that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedEvent {
    /// The event.
    pub row: EventRow,
    /// The state of its stream after the event.
    pub stream: EventStream,
    /// The number of the event's turn; without a turn, the number of the last turn of all sessions.
    pub turn: u64,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// The session of the event.
    pub of: EventsOf,
    /// Number of the event in the session, from 1.
    pub seq: u64,
    /// Number of the event in the workspace, from 1.
    pub number: u64,
    /// Time of the event, to the millisecond; never before the previous event.
    pub happened_at: SystemTime,
    /// The event's kind.
    pub kind: String,
    /// The run of the event, if there is one.
    pub run: Option<RunId>,
    /// The id by which a repeated event of its kind is recognised.
    pub message_id: Option<String>,
    /// The payload, as JSON.
    pub payload: String,
}

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStream {
    /// Number of the first stored event; one more than `last` if none is stored.
    pub oldest: u64,
    /// Number of the last event.
    pub last: u64,
    /// Size of its events in bytes.
    pub bytes: u64,
    /// Size of all events of its workspace in bytes.
    pub workspace_bytes: u64,
}

impl<'a> EventRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Adds events to one session, all or none. An event with a turn takes the turn of the session;
    /// an event with `owed` marks that session as due to resume. Returns the last event. Returns
    /// `None` and changes nothing if the message of an event is already stored.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such session, or when a statement fails.
    pub async fn append(
        &self,
        all: &[NewEvent<'_>],
    ) -> Result<Option<AppendedEvent>, StatementError> {
        let Some(NewEvent { of, .. }) = all.first() else { return Ok(None) };
        let session = of.session.to_text();
        let place = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        let texts = all.iter().map(|new| {
            let sender = new.unread.and_then(|unread| unread.sender);
            let sender = sender.map(SessionId::to_text).unwrap_or_default();
            (new.run.map(RunId::to_text).unwrap_or_default(), sender, new.owed.map(RestTexts::new))
        });
        let texts: Vec<_> = texts.collect();
        let mut steps = Vec::new();
        for (new, (run, sender, owed)) in all.iter().zip(&texts) {
            steps.extend(new.steps(place, run));
            let turn = new.turn.map(|turn| runs::take_turn(place[0], place[1], turn));
            steps.extend(turn.into_iter().flatten());
            steps.extend(new.unread.map(|unread| inboxes::add(place, &unread, sender)));
            steps.extend(owed.as_ref().map(RestTexts::step));
        }
        let rows = self.database.write_then_read(&steps, ADDED, place.to_vec()).await?;
        let found = rows.iter().flatten().next();
        let appended = |row: &Row| {
            let (turn, stream) = (whole(row, "turn")?, stream(row)?);
            Ok(AppendedEvent { row: event(row)?, stream, turn })
        };
        found.map(appended).transpose()
    }

    /// Removes the events of a session before the number `oldest`. Returns `false` and changes
    /// nothing if they are removed already, or the session has fewer events.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn trim(&self, of: &EventsOf, oldest: u64) -> Result<bool, StatementError> {
        let session = of.session.to_text();
        let values =
            [Value::Text(of.workspace.as_str()), Value::Text(&session), number_value(oldest)];
        let steps = [
            Step::new(TAKE_FROM_TOTAL, values.to_vec()),
            Step::must_change(TAKE_FROM_STREAM, values.to_vec()),
            Step::new(FORGET, values.to_vec()),
        ];
        self.database.write_steps(&steps).await
    }
}

impl NewEvent<'_> {
    /// Adds the event alone.
    fn steps<'v>(&'v self, place: [Value<'v>; 2], run: &'v str) -> [Step<'v>; 4] {
        let bytes = i64::try_from(self.payload.len() + OVERHEAD).unwrap_or(i64::MAX);
        let (bytes, at) = (Value::Integer(bytes), Value::Integer(ms(self.happened_at)));
        let message = Value::Text(self.message_id.unwrap_or_default());
        let (kind, is_own) = (Value::Text(self.kind), Value::Integer(self.is_own.into()));
        let payload = Value::Text(self.payload);
        let counted = [&place[..], &[bytes, at, message, kind, is_own]].concat();
        let added = [&place[..], &[kind, Value::Text(run), message, bytes, payload]].concat();
        [
            Step::new(BEGIN, place.to_vec()),
            Step::must_change(COUNT, counted),
            Step::new(NUMBER, vec![place[0], bytes]),
            Step::must_change(ADD, added),
        ]
    }
}

pub(super) fn event(row: &Row) -> Result<EventRow, StatementError> {
    let maybe = |column| Ok(Some(row.text(column)?).filter(|text| !text.is_empty()));
    let run = maybe("run")?.map(|text| RunId::parse(&text).ok_or_else(|| row.damaged()));
    Ok(EventRow {
        of: events_of(row)?,
        seq: whole(row, "seq")?,
        number: whole(row, "number")?,
        happened_at: time(row, "happened_at")?,
        kind: row.text("kind")?,
        run: run.transpose()?,
        message_id: maybe("message_id")?,
        payload: row.text("payload")?,
    })
}

pub(super) fn events_of(row: &Row) -> Result<EventsOf, StatementError> {
    let session = SessionId::parse(&row.text("session")?).ok_or_else(|| row.damaged())?;
    Ok(EventsOf { workspace: workspace(row)?, session })
}

fn stream(row: &Row) -> Result<EventStream, StatementError> {
    Ok(EventStream {
        oldest: whole(row, "oldest_seq")?,
        last: whole(row, "last_seq")?,
        bytes: whole(row, "bytes")?,
        workspace_bytes: whole(row, "total")?,
    })
}

pub(super) fn whole(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}

/// A number as a value of the store, which holds at most [`i64::MAX`].
pub(super) fn number_value(number: u64) -> Value<'static> {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
