//! Unacknowledged messages that are removed with the oldest events of their session.

use super::{DueMessage, Inboxes, due};
use crate::{
    EventsOf, StatementError,
    objects::events::number_value,
    statement::{Statement, Value},
};

/// Messages before `$3` that the daemon has not reported as given up, in an active session where a
/// client acknowledges messages.
const BEFORE: Statement = Statement {
    name: "inboxes.before",
    sql: "SELECT unread_messages.workspace, unread_messages.session, unread_messages.seq, sender, \
          unread_messages.expires_at, tellings, sessions.ended_at AS ended_at, message_id, \
          CAST(1 AS BIGINT) AS runs FROM unread_messages \
          JOIN sessions ON sessions.workspace = unread_messages.workspace \
          AND sessions.id = unread_messages.session AND sessions.ended_at = 0 \
          JOIN inboxes ON inboxes.workspace = unread_messages.workspace \
          AND inboxes.session = unread_messages.session \
          JOIN session_events ON session_events.workspace = unread_messages.workspace \
          AND session_events.session = unread_messages.session \
          AND session_events.seq = unread_messages.seq \
          WHERE unread_messages.workspace = $1 AND unread_messages.session = $2 \
          AND unread_messages.seq < $3 AND tellings < 6 ORDER BY unread_messages.seq",
};
impl Inboxes<'_> {
    /// The messages of an active session before this number that are neither acknowledged nor given
    /// up. Empty if no client acknowledges the session's messages.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn before(&self, of: &EventsOf, seq: u64) -> Result<Vec<DueMessage>, StatementError> {
        let session = of.session.to_text();
        let values = [Value::Text(of.workspace.as_str()), Value::Text(&session), number_value(seq)];
        self.database.read(BEFORE, &values).await?.iter().map(due).collect()
    }
}
