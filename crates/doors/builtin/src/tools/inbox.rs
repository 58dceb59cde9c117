//! Reads messages to the session of a run, waits for them, and acknowledges them (X-E93).

use std::time::{Duration, SystemTime};

use narthex_events::{EventKind, EventRow, Unread, Wanted};
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, SessionId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::{object, wakes};
use crate::{
    Called, Effect, Tool,
    called::{failed, of_events},
    invalid, said,
    waiting::Place,
};

/// Number of messages to read, by default and at most.
const LIMIT: u32 = 50;
const LIMIT_MAX: u32 = 500;
/// Longest time that a call waits for a message, in seconds.
const WAIT_MAX: u64 = 60;
/// The maximum size of the messages in a result, in bytes. The first message is always included.
const RESULT_BYTES: usize = 512 * 1024;
/// Members of an event's payload that its message has too, under the same name.
const TAKEN_OVER: [&str; 10] = [
    "user",
    "from_session_id",
    "request_id",
    "expires_at",
    "body",
    "needs_response",
    "share_id",
    "thread_id",
    "anchor",
    "comment",
];

/// Decisions on the session's grant requests, and wakes by the platform. They count as messages
/// until the agent acknowledges them.
const BESIDES: [EventKind; 3] =
    [EventKind::PermissionGranted, EventKind::PermissionDenied, EventKind::SessionWake];
/// The decisions on grant requests.
const DECISIONS: [EventKind; 2] = [EventKind::PermissionGranted, EventKind::PermissionDenied];
/// Members that a message about a decision has in addition.
const DECIDED: [&str; 7] =
    ["grant_request_id", "status", "grant_type", "details", "scope", "reason", "expires_at"];

pub(super) fn tools() -> Vec<Tool> {
    vec![read_messages()]
}

fn read_messages() -> Tool {
    Tool {
        title: "Read your messages",
        description: "Gives your messages, the oldest first: answers of people, decisions on what \
                      you asked for, words of your caller and your children, and news of these \
                      (`wake`). In your next call acknowledge them with the `next_seq` of the \
                      answer; else they come again. `wait_seconds` waits for the first message.",
        schema: object(
            json!({
                "acknowledge": {"type": "integer", "minimum": 1,
                    "description": "All messages up to this sequence."},
                "wait_seconds": {"type": "integer", "minimum": 0, "maximum": WAIT_MAX,
                    "default": 0},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX,
                    "default": LIMIT},
            }),
            &[],
        ),
        ..Tool::new("read_messages", Effect::Settles, |called| Box::pin(read(called)))
    }
}

#[derive(Deserialize)]
struct Asked {
    acknowledge: Option<u64>,
    #[serde(default)]
    wait_seconds: u64,
    limit: Option<u32>,
}

async fn read(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Asked = called.arguments()?;
    let (events, session) = (called.events()?, called.session()?);
    let workspace = &called.run.workspace;
    if let Some(seq) = asked.acknowledge {
        let done = events.acknowledge(workspace, session, seq).await;
        done.map_err(|error| of_events(&error))?;
    }
    let limit = asked.limit.unwrap_or(LIMIT);
    let mut unread = look(&called, session, limit).await?;
    if asked.wait_seconds > 0
        && unread.messages.is_empty()
        && let Some(place) = called.waiting.begin(workspace, (session, called.run.id))
    {
        let until = Instant::now() + Duration::from_secs(asked.wait_seconds.min(WAIT_MAX));
        unread = wait(&called, &place, (unread, limit), until).await?;
    }
    for child in unread.messages.iter().filter_map(wakes::ended) {
        called.platform.runs.knows_end(called.run.id, child);
    }
    Ok(told(&unread))
}

async fn look(called: &Called<'_>, session: SessionId, limit: u32) -> Result<Unread, CallError> {
    let workspace = &called.run.workspace;
    let unread = called.events()?.unread(workspace, session, (limit, RESULT_BYTES)).await;
    let unread = unread.map_err(|error| of_events(&error))?;
    if !unread.messages.is_empty() {
        // Updates whose turn it is, before an agent acts on the messages (X-E81).
        let heard = called.platform.control.session_heard(workspace, session).await;
        heard.map_err(|error| failed(&error))?;
    }
    with_besides(called, session, unread, limit).await
}

/// Inserts decisions and wakes between the messages. Leaves out those that come after an omitted
/// message: acknowledging them would acknowledge that message too.
async fn with_besides(
    called: &Called<'_>,
    session: SessionId,
    mut unread: Unread,
    limit: u32,
) -> Result<Unread, CallError> {
    let given = u64::try_from(unread.messages.len()).unwrap_or(u64::MAX);
    let (is_all, seen) = (unread.count <= given, unread.last);
    let last = unread.messages.last().map_or(0, |message| message.seq);
    // Events that arrived after the messages were read may follow a message that is missing here.
    let fits = |one: &EventRow| {
        one.seq <= seen && (is_all || one.seq < last) && !wakes::is_of_message(one)
    };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut besides, mut after) = (Vec::new(), unread.acknowledged);
    // Wakes for messages are left out. The loop reads on, since other events may follow them.
    while besides.len() < most {
        let wanted = Wanted { after, limit: LIMIT_MAX.into(), kinds: &BESIDES };
        let page = called.events()?.read(&called.run.workspace, session, wanted).await;
        let page = page.map_err(|error| of_events(&error))?.events;
        let Some(end) = page.last() else { break };
        after = end.seq;
        besides.extend(page.into_iter().filter(fits));
    }
    besides.truncate(most);
    let before = unread.messages.len();
    unread.messages.extend(besides);
    unread.count += u64::try_from(unread.messages.len() - before).unwrap_or_default();
    unread.messages.sort_by_key(|message| message.seq);
    unread.messages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(unread)
}

/// Waits for the first message. Stops when the run, its session or the daemon ends, when the time
/// is over, or when a newer call of the run waits.
async fn wait(
    called: &Called<'_>,
    place: &Place<'_>,
    (mut unread, limit): (Unread, u32),
    until: Instant,
) -> Result<Unread, CallError> {
    let kinds = [EventKind::UserMessage].into_iter().chain(BESIDES).collect();
    let (workspace, session) = (&called.run.workspace, place.session());
    let mut follower = called.events()?.follow(workspace, session, unread.last, kinds);
    let closing = called.platform.control.closing();
    while unread.messages.is_empty() {
        let found = tokio::select! {
            biased;
            () = called.run.ended() => break,
            () = closing.cancelled() => break,
            () = place.taken() => break,
            found = follower.next() => found.map_err(|error| of_events(&error))?,
            () = sleep_until(until) => break,
        };
        // The session has ended.
        if found.is_none() {
            break;
        }
        // In the meantime a message may have expired, or another reader may have acknowledged it.
        unread = look(called, session, limit).await?;
    }
    Ok(unread)
}

fn told(unread: &Unread) -> BuiltInResult {
    let messages: Vec<_> = unread.messages.iter().map(shown).collect();
    let next = unread.messages.last().map_or(unread.acknowledged, |event| event.seq);
    let given = u64::try_from(messages.len()).unwrap_or(u64::MAX);
    let left = unread.count.saturating_sub(given);
    let text = match given {
        0 => "no messages".to_owned(),
        1 => format!("1 message, {left} left"),
        given => format!("{given} messages, {left} left"),
    };
    said(text, json!({ "ok": true, "messages": messages, "next_seq": next, "left_count": left }))
}

fn shown(event: &EventRow) -> Value {
    let mut message = Map::new();
    message.insert("sequence".to_owned(), json!(event.seq));
    message.insert("timestamp".to_owned(), json!(Timestamp::new(event.at).to_string()));
    let is_decision = DECISIONS.iter().any(|kind| kind.as_str() == event.kind);
    let text = match wakes::words(event) {
        Some(words) => json!(words),
        None if is_decision => json!(decided(event)),
        None => event.payload["text"].clone(),
    };
    message.insert("text".to_owned(), text);
    if wakes::is_wake(event) {
        message.insert("wake".to_owned(), wakes::shown(event));
        return Value::Object(message);
    }
    if let Some(id) = &event.message_id {
        message.insert("message_id".to_owned(), json!(id));
    }
    let further: &[&str] = if is_decision { &DECIDED } else { &[] };
    for name in TAKEN_OVER.iter().chain(further) {
        let value = &event.payload[name];
        if !value.is_null() {
            message.insert((*name).to_owned(), value.clone());
        }
    }
    Value::Object(message)
}

/// The outcome of a grant request, in words.
fn decided(event: &EventRow) -> String {
    let said = event.payload["reason"].as_str().filter(|reason| !reason.is_empty());
    let said = said.map(|reason| format!(": {reason}")).unwrap_or_default();
    let is_granted = event.kind == EventKind::PermissionGranted.as_str();
    match event.payload["status"].as_str() {
        _ if is_granted => format!("granted{said}; make the refused call again"),
        Some("expired") => "no human decided in time; ask again if you still need it".into(),
        _ => format!("denied{said}; continue without it"),
    }
}

/// The schema of the time after which a message is no longer delivered.
pub(super) fn expires_at_argument() -> Value {
    json!({"type": "string", "maxLength": 50,
           "description": "Until when it may be read: a time such as 2027-01-31T12:00:00Z."})
}

/// The parsed time, which must be in the future.
pub(super) fn expires_at(text: Option<&str>) -> Result<Option<SystemTime>, CallError> {
    let Some(text) = text else { return Ok(None) };
    match Timestamp::parse(text).filter(|end| *end > SystemTime::now()) {
        Some(end) => Ok(Some(end)),
        None => {
            let message = "it is not a time, or it has passed; write a future time, such as \
                           2027-01-31T12:00:00Z";
            Err(invalid(vec![("expires_at".to_owned(), message.to_owned())]))
        }
    }
}
