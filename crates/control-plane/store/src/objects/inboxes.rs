//! Unacknowledged messages of sessions, and the times of their next reminders.

mod dropped;

use std::time::SystemTime;

use narthex_model::SessionId;

use super::{
    events::{event, events_of, number_value, whole},
    ms, optional_time, time,
};
use crate::{
    EventRow, EventsOf, StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Sets the time of the first reminder only if a client acknowledges messages of the session.
const ADD: Statement = Statement {
    name: "inboxes.add",
    sql: "INSERT INTO unread_messages \
          (workspace, session, seq, sender, expires_at, tellings, due_at, given) \
          SELECT $1, $2, last_seq, $3, $4, 0, CASE WHEN EXISTS (SELECT 1 FROM inboxes \
          WHERE workspace = $1 AND session = $2) THEN $5 ELSE 0 END, 0 \
          FROM event_streams WHERE workspace = $1 AND session = $2",
};
const OPEN: Statement = Statement {
    name: "inboxes.open",
    sql: "INSERT INTO inboxes (workspace, session, acknowledged) VALUES ($1, $2, $3) \
          ON CONFLICT (workspace, session) DO UPDATE SET acknowledged = \
          CASE WHEN inboxes.acknowledged < excluded.acknowledged THEN excluded.acknowledged \
          ELSE inboxes.acknowledged END",
};
/// Leaves expired messages: no reader gets them any more.
const ACKNOWLEDGE: Statement = Statement {
    name: "inboxes.acknowledge",
    sql: "DELETE FROM unread_messages WHERE workspace = $1 AND session = $2 AND seq <= $3 \
          AND (expires_at = 0 OR expires_at > $4)",
};
/// Sets the next reminder to `$3`, or to the expiry if that comes first. Skips messages that were
/// given up after six reminders, and messages that have a time already.
const BEGIN: Statement = Statement {
    name: "inboxes.begin",
    sql: "UPDATE unread_messages SET due_at = \
          CASE WHEN expires_at > 0 AND expires_at < $3 THEN expires_at ELSE $3 END \
          WHERE workspace = $1 AND session = $2 AND tellings < 6 \
          AND (due_at = 0 OR due_at = expires_at) AND (expires_at = 0 OR expires_at > $4) \
          AND EXISTS (SELECT 1 FROM inboxes WHERE workspace = $1 AND session = $2)",
};
/// Puts a message off once between two reminders: `given` is one more than the number of reminders
/// before which a reader last got it.
const GIVE: Statement = Statement {
    name: "inboxes.give",
    sql: "UPDATE unread_messages SET given = tellings + 1, due_at = \
          CASE WHEN expires_at > 0 AND expires_at < $4 THEN expires_at \
          WHEN due_at > $4 AND due_at <> expires_at THEN due_at ELSE $4 END \
          WHERE workspace = $1 AND session = $2 AND seq <= $3 AND tellings < 6 \
          AND given <= tellings AND (expires_at = 0 OR expires_at > $5)",
};
const UNREAD: Statement = Statement {
    name: "inboxes.unread",
    sql: "SELECT session_events.workspace, session_events.session, session_events.seq, number, \
          happened_at, kind, run, message_id, payload FROM unread_messages \
          JOIN session_events ON session_events.workspace = unread_messages.workspace \
          AND session_events.session = unread_messages.session \
          AND session_events.seq = unread_messages.seq \
          WHERE unread_messages.workspace = $1 AND unread_messages.session = $2 \
          AND (expires_at = 0 OR expires_at > $3) ORDER BY session_events.seq LIMIT $4",
};
const COUNT: Statement = Statement {
    name: "inboxes.count",
    sql: "SELECT COUNT(*) AS unread, COALESCE((SELECT acknowledged FROM inboxes \
          WHERE workspace = $1 AND session = $2), 0) AS acknowledged FROM unread_messages \
          WHERE workspace = $1 AND session = $2 AND (expires_at = 0 OR expires_at > $3)",
};
const EXPIRED: Statement = Statement {
    name: "inboxes.expired",
    sql: "SELECT seq FROM unread_messages WHERE workspace = $1 AND session = $2 \
          AND seq >= $3 AND seq <= $4 AND expires_at > 0 AND expires_at <= $5",
};
const DUE: Statement = Statement {
    name: "inboxes.due",
    sql: "SELECT unread_messages.workspace, unread_messages.session, unread_messages.seq, sender, \
          unread_messages.expires_at, tellings, sessions.ended_at AS ended_at, message_id, \
          (SELECT COUNT(*) FROM runs WHERE runs.workspace = unread_messages.workspace \
          AND runs.session = unread_messages.session AND runs.ended_at = 0 \
          AND (claimable = 0 OR claimed_until > $1)) AS runs FROM unread_messages \
          JOIN sessions ON sessions.workspace = unread_messages.workspace \
          AND sessions.id = unread_messages.session \
          JOIN session_events ON session_events.workspace = unread_messages.workspace \
          AND session_events.session = unread_messages.session \
          AND session_events.seq = unread_messages.seq \
          WHERE due_at > 0 AND due_at <= $1 ORDER BY due_at, unread_messages.seq LIMIT $2",
};
const NEXT: Statement = Statement {
    name: "inboxes.next",
    sql: "SELECT due_at FROM unread_messages WHERE due_at > 0 ORDER BY due_at LIMIT 1",
};
const TOLD: Statement = Statement {
    name: "inboxes.told",
    sql: "UPDATE unread_messages SET tellings = $5, due_at = $6 \
          WHERE workspace = $1 AND session = $2 AND seq = $3 AND tellings = $4",
};
/// Skips a session with a run that was created, or claimed, just now.
const HOLD: Statement = Statement {
    name: "inboxes.hold",
    sql: "UPDATE unread_messages SET due_at = expires_at WHERE workspace = $1 AND session = $2 \
          AND due_at > 0 AND due_at <= $3 AND (expires_at = 0 OR expires_at > $3) \
          AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workspace = $1 AND runs.session = $2 \
          AND runs.ended_at = 0 AND (claimable = 0 OR claimed_until > $3))",
};
const LEAVE: Statement = Statement {
    name: "inboxes.leave",
    sql: "UPDATE unread_messages SET due_at = 0 WHERE workspace = $1 AND session = $2",
};

/// Access to unacknowledged messages.
#[derive(Debug, Clone, Copy)]
pub struct Inboxes<'a> {
    database: &'a Database,
}

/// The data that is stored with a message's event until the message is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewUnread {
    /// The session that sends the message, if one does.
    pub sender: Option<SessionId>,
    /// Time from which the message is no longer delivered.
    pub expires_at: Option<SystemTime>,
    /// The time of the first reminder, if a client acknowledges messages of the session.
    pub due_at: SystemTime,
}

/// The time at which a reader gets a session's messages, and the times of their next reminders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenAt {
    /// Time of the reading: messages that have expired by then are left out.
    pub now: SystemTime,
    /// The time of the next reminders of the messages that the reader gets.
    pub given_again: SystemTime,
    /// The time of the next reminders of other messages that have none yet.
    pub again: SystemTime,
}

/// The number of unacknowledged messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxCount {
    /// Number of unacknowledged messages that have not expired.
    pub unread: u64,
    /// The number up to which all messages are acknowledged; 0 if none is.
    pub acknowledged: u64,
}

/// A message whose next reminder, or whose end, is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// The session of the message.
    pub of: EventsOf,
    /// Number of the message's event.
    pub seq: u64,
    /// The session that sent the message, if one did.
    pub sender: Option<SessionId>,
    /// The id by which a repeated message is recognised.
    pub message_id: Option<String>,
    /// Time from which the message is no longer delivered.
    pub expires_at: Option<SystemTime>,
    /// Number of sent reminders.
    pub tellings: u32,
    /// True if the session has ended.
    pub has_ended: bool,
    /// True if a run of the session is being carried out.
    pub is_attended: bool,
}

impl<'a> Inboxes<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Acknowledges all messages of a session up to a number, except those that have expired by
    /// `now`. Other messages without a reminder time get their next reminder at `again`.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such session, or when a statement fails.
    pub async fn acknowledge(
        &self,
        of: &EventsOf,
        seq: u64,
        (now, again): (SystemTime, SystemTime),
    ) -> Result<(), StatementError> {
        let session = of.session.to_text();
        let place = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        let until = [place[0], place[1], number_value(seq)];
        let acknowledged = [&until[..], &[Value::Integer(ms(now))]].concat();
        let steps = [
            Step::new(OPEN, until.to_vec()),
            Step::new(ACKNOWLEDGE, acknowledged),
            Step::new(BEGIN, begin(place, now, again)),
        ];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Sets the next reminders of a session's messages without a reminder time to `again`. Does
    /// nothing if no client has acknowledged or read a message of the session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn begin(
        &self,
        of: &EventsOf,
        (now, again): (SystemTime, SystemTime),
    ) -> Result<(), StatementError> {
        let session = of.session.to_text();
        let place = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        self.database.write(BEGIN, &begin(place, now, again)).await
    }

    /// Stores that a client reads the messages of a session, and got those up to the number
    /// `given`. Their next reminders come at `given_again` at the earliest. Reading puts each
    /// message off only once between two reminders. Other messages without a reminder time get
    /// their next reminder at `again`.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such session, or when a statement fails.
    pub async fn give(
        &self,
        of: &EventsOf,
        given: Option<u64>,
        at: GivenAt,
    ) -> Result<(), StatementError> {
        let session = of.session.to_text();
        let place = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        let mut steps = vec![Step::new(OPEN, vec![place[0], place[1], Value::Integer(0)])];
        if let Some(seq) = given {
            let times = [Value::Integer(ms(at.given_again)), Value::Integer(ms(at.now))];
            let values = [&place[..], &[number_value(seq)], &times].concat();
            steps.push(Step::new(GIVE, values));
        }
        steps.push(Step::new(BEGIN, begin(place, at.now, at.again)));
        self.database.write_steps(&steps).await.map(drop)
    }

    /// The oldest messages of a session that are unacknowledged and have not expired.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn unread(
        &self,
        of: &EventsOf,
        now: SystemTime,
        limit: u32,
    ) -> Result<Vec<EventRow>, StatementError> {
        let session = of.session.to_text();
        let values = [
            Value::Text(of.workspace.as_str()),
            Value::Text(&session),
            Value::Integer(ms(now)),
            Value::Integer(limit.into()),
        ];
        self.database.read(UNREAD, &values).await?.iter().map(event).collect()
    }

    /// Number of unacknowledged messages of a session that have not expired.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count(
        &self,
        of: &EventsOf,
        now: SystemTime,
    ) -> Result<InboxCount, StatementError> {
        let session = of.session.to_text();
        let values =
            [Value::Text(of.workspace.as_str()), Value::Text(&session), Value::Integer(ms(now))];
        let rows = self.database.read(COUNT, &values).await?;
        let number = |column| rows.first().map_or(Ok(0), |row| whole(row, column));
        Ok(InboxCount { unread: number("unread")?, acknowledged: number("acknowledged")? })
    }

    /// Returns the numbers of the messages in this range that have expired without an
    /// acknowledgement.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn expired(
        &self,
        of: &EventsOf,
        (first, last): (u64, u64),
        now: SystemTime,
    ) -> Result<Vec<u64>, StatementError> {
        let session = of.session.to_text();
        let values = [
            Value::Text(of.workspace.as_str()),
            Value::Text(&session),
            number_value(first),
            number_value(last),
            Value::Integer(ms(now)),
        ];
        self.database.read(EXPIRED, &values).await?.iter().map(|row| whole(row, "seq")).collect()
    }

    /// The due messages of all workspaces, the longest waiting ones first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn due(
        &self,
        now: SystemTime,
        limit: u32,
    ) -> Result<Vec<DueMessage>, StatementError> {
        let values = [Value::Integer(ms(now)), Value::Integer(limit.into())];
        self.database.read(DUE, &values).await?.iter().map(due).collect()
    }

    /// The time at which the next message is due; `None` if none is.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn next_due(&self) -> Result<Option<SystemTime>, StatementError> {
        let rows = self.database.read(NEXT, &[]).await?;
        rows.first().map(|row| time(row, "due_at")).transpose()
    }

    /// Stores that one more reminder of a message was sent, and the time of the next one, if there
    /// is a next one. Changes nothing if another daemon has sent it already.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn told(
        &self,
        message: &DueMessage,
        tellings: u32,
        due_at: Option<SystemTime>,
    ) -> Result<(), StatementError> {
        let session = message.of.session.to_text();
        let values = [
            Value::Text(message.of.workspace.as_str()),
            Value::Text(&session),
            number_value(message.seq),
            Value::Integer(message.tellings.into()),
            Value::Integer(tellings.into()),
            Value::Integer(due_at.map_or(0, ms)),
        ];
        self.database.write(TOLD, &values).await
    }

    /// Postpones the due messages of a session until a run of it is carried out, or they expire.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hold(&self, of: &EventsOf, now: SystemTime) -> Result<(), StatementError> {
        let session = of.session.to_text();
        let values =
            [Value::Text(of.workspace.as_str()), Value::Text(&session), Value::Integer(ms(now))];
        self.database.write(HOLD, &values).await
    }

    /// Ends all reminders of a session's messages.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn leave(&self, of: &EventsOf) -> Result<(), StatementError> {
        let session = of.session.to_text();
        let values = [Value::Text(of.workspace.as_str()), Value::Text(&session)];
        self.database.write(LEAVE, &values).await
    }
}

/// The step that keeps the message that was just added to a session.
pub(super) fn add<'v>(place: [Value<'v>; 2], new: &NewUnread, sender: &'v str) -> Step<'v> {
    let expires_at = new.expires_at.map_or(0, ms);
    let due_at = new.expires_at.map_or(new.due_at, |end| end.min(new.due_at));
    let of = [Value::Text(sender), Value::Integer(expires_at), Value::Integer(ms(due_at))];
    Step::must_change(ADD, [&place[..], &of].concat())
}

fn begin(place: [Value<'_>; 2], now: SystemTime, again: SystemTime) -> Vec<Value<'_>> {
    vec![place[0], place[1], Value::Integer(ms(again)), Value::Integer(ms(now))]
}

fn due(row: &Row) -> Result<DueMessage, StatementError> {
    let sender = match row.text("sender")?.as_str() {
        "" => None,
        text => Some(SessionId::parse(text).ok_or_else(|| row.damaged())?),
    };
    Ok(DueMessage {
        of: events_of(row)?,
        seq: whole(row, "seq")?,
        sender,
        message_id: Some(row.text("message_id")?).filter(|text| !text.is_empty()),
        expires_at: optional_time(row, "expires_at")?,
        tellings: u32::try_from(row.integer("tellings")?).map_err(|_unfit| row.damaged())?,
        has_ended: optional_time(row, "ended_at")?.is_some(),
        is_attended: row.integer("runs")? > 0,
    })
}
