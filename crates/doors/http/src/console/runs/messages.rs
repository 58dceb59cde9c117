//! Messages, questions and reports of a run's session, and the form for a message.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::runs::tabs::{MessageForm, MessageList, MessageRow, MessageRowPart, MessagesPage},
    parts::{
        Moment, Same, Words,
        form::{Field, Input, line_breaks},
    },
};
use narthex_events::{EventKind, EventRow, Wanted};
use narthex_model::{ErrorKind, PrincipalId, command::narthex};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    one::One,
    places::{path, queried},
};
use crate::{
    Access,
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live::{self, Follows, Fragment, Live, RUN, Topic},
        viewer::{Form, Viewer},
    },
    problem::Problem,
    routes::{ANSWER, SEE_RUNS},
    servers::{Query, heard, speaker, takes_messages},
};

/// The messages of a run's session, live.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "messages",
    access: Access::Member(SEE_RUNS),
    params: &[RUN, "before"],
    follows: Follows::Messages,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// Number of messages of one page.
const PAGE: usize = 40;
/// Number of events that are looked at for one page.
const LOOKED_AT: u64 = 500;
/// Maximum number of characters of a text on the page.
const TEXT_MAX: usize = 2_000;
/// The longest text of a message.
const SENT_MAX: usize = 8_000;
/// The kinds of events on the page.
const KINDS: [EventKind; 14] = [
    EventKind::AgentStatus,
    EventKind::AgentError,
    EventKind::AgentInputRequest,
    EventKind::AgentMessage,
    EventKind::UserMessage,
    EventKind::AgentPermissionRequest,
    EventKind::PermissionGranted,
    EventKind::PermissionDenied,
    EventKind::SessionFailed,
    EventKind::SessionRunRefused,
    EventKind::SessionMessageUndelivered,
    EventKind::McpError,
    EventKind::SessionCompleted,
    EventKind::SessionSuspended,
];

/// The form for a message.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    csrf: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    request_id: String,
}

impl Form for Sent {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["before", "done"])?;
    let told = (query.text("done") == "message")
        .then(|| Told { sentence: Words::new("The message is sent."), is_failure: false });
    page(viewer, query, told, StatusCode::OK, fields("", "", None)).await
}

async fn page(
    viewer: &Viewer<'_>,
    query: Query,
    told: Option<Told>,
    status: StatusCode,
    fields: Vec<Field>,
) -> Answered {
    let one = One::of(viewer).await?;
    let read = read(viewer, &one, &query).await?;
    let session = one.run.row.as_ref().map(|row| row.session.to_text());
    let name = session.clone().unwrap_or_else(|| "SESSION".to_owned());
    let request = format!("GET /api/workspaces/{}/sessions/{name}/events", viewer.workspace);
    let command = narthex("sessions events {}", &[&name]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new(&format!("Messages: run {}", one.name())),
        sentence: "What the agent said, asked and was told, in all runs of its session.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.related = one.related(viewer);
    frame.told = told;
    let top = one.top(viewer);
    let messages = Live { topic: &TOPIC, parts: parts_of(&read.list) };
    let live = vec![frame::live(&frame), One::live(&top), messages];
    frame.live = Some(live::address(viewer, live, &one.with_path(query)));
    let older = read.older.map(|seq| {
        let query = queried(&[("before", seq.to_string())]);
        format!("{}?{query}", path(viewer, one.id, "messages"))
    });
    let form = MessageForm {
        path: path(viewer, one.id, "message"),
        fields,
        off: off(viewer, &one).map(Words::new),
    };
    let tabs = one.tabs(viewer, "messages");
    let page = MessagesPage { frame, top, tabs, list: read.list, form, older };
    Ok(answer::page(status, html(&page)))
}

/// The reason why no message can be sent.
fn off(viewer: &Viewer<'_>, one: &One) -> Option<&'static str> {
    let Some(session) = &one.session else {
        return Some("The daemon's own run takes no messages: talk to the user of its token.");
    };
    if session.row.ended_at.is_some() {
        return Some("The session has ended, and takes no messages any more.");
    }
    let may = viewer.may(Access::Member(ANSWER));
    (!may).then_some("Your roles in this workspace do not include admin, author or runner.")
}

fn fields(text: &str, request: &str, fault: Option<&str>) -> Vec<Field> {
    vec![
        Field::new("text", "Message", Input::area(text, 3)).required().fault(fault),
        Field::new("request_id", "Id of the question that it answers", Input::line(request))
            .help("Leave it empty if it answers no question."),
    ]
}

/// Sends a message to the agent.
pub(super) async fn send(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let Sent { csrf: _, text, request_id } = viewer.form(body).await?;
    let text = line_breaks(&text);
    let again = async |status, fault: &str| {
        // The page has more than those see who may only send.
        if !viewer.may(Access::Member(SEE_RUNS)) {
            return Err(Problem::new(ErrorKind::Invalid, fault).with_status(status));
        }
        let fields = fields(&text, &request_id, Some(fault));
        page(viewer, viewer.query(&[])?, None, status, fields).await
    };
    if text.trim().is_empty() {
        return again(StatusCode::BAD_REQUEST, "Write what the agent shall read.").await;
    }
    if text.chars().count() > SENT_MAX {
        let fault = format!("The text is too long: write at most {SENT_MAX} characters.");
        return again(StatusCode::BAD_REQUEST, &fault).await;
    }
    let one = One::of(viewer).await?;
    let Some(row) = &one.run.row else {
        let why = off(viewer, &one).unwrap_or_default();
        return Err(Problem::new(ErrorKind::Conflict, why));
    };
    let session = row.session.to_text();
    takes_messages(viewer.door.options.runs.as_ref(), &session)?;
    let mut document = json!({ "text": text });
    if !request_id.is_empty() {
        document["request_id"] = json!(request_id);
    }
    let control = viewer.control();
    let speaks = (&viewer.by(), speaker(&viewer.principal, Some(control)));
    let sent = document.to_string();
    let sent = control.session_message(&viewer.workspace, &session, sent.as_bytes(), speaks);
    match sent.await.map_err(Problem::from) {
        Ok(_) => answer::redirect(&format!("{}?done=message", path(viewer, one.id, "messages"))),
        Err(problem) if problem.kind() == ErrorKind::Invalid => {
            again(problem.status(), problem.detail()).await
        }
        Err(problem) => Err(problem),
    }
}

/// The messages of a page.
struct Read {
    list: MessageList,
    /// The number of the event before which the earlier page begins.
    older: Option<u64>,
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let one = One::plain(viewer, query.text(RUN)).await?;
    Ok(parts_of(&read(viewer, &one, query).await?.list))
}

fn parts_of(list: &MessageList) -> Vec<Fragment> {
    let entry = |row: &MessageRow| {
        Fragment::entry("messages", row.id.clone(), html(&MessageRowPart { row: row.clone() }))
    };
    let entries = list.rows.iter().map(entry);
    std::iter::once(Fragment::log("messages", html(list))).chain(entries).collect()
}

async fn read(viewer: &Viewer<'_>, one: &One, query: &Query) -> Result<Read, Problem> {
    let nothing = Read { list: MessageList { rows: Vec::new() }, older: None };
    let Some(row) = &one.run.row else { return Ok(nothing) };
    let (control, session) = (viewer.control(), row.session);
    let Some(events) = control.events() else { return Ok(nothing) };
    let before = match query.text("before") {
        "" => {
            let wanted = Wanted { after: u64::MAX, limit: 1, kinds: &KINDS };
            events.read(&viewer.workspace, session, wanted).await?.last.saturating_add(1)
        }
        text => {
            let unfit = |_no_number| Problem::new(ErrorKind::Invalid, "this is no event");
            text.parse().map_err(unfit)?
        }
    };
    let after = before.saturating_sub(LOOKED_AT + 1);
    let wanted = Wanted { after, limit: LOOKED_AT, kinds: &KINDS };
    let page = events.read(&viewer.workspace, session, wanted).await?;
    heard(control, &page.events).await?;
    let found = page.events.iter().filter(|event| event.seq < before).rev();
    let rows: Vec<_> = found.take(PAGE).map(|event| (event.seq, message(viewer, event))).collect();
    let oldest = match rows.last() {
        Some((seq, _)) if rows.len() == PAGE => *seq,
        _ => after.saturating_add(1),
    };
    let older = (oldest > page.oldest).then_some(oldest);
    Ok(Read { list: MessageList { rows: rows.into_iter().map(|(_, row)| row).collect() }, older })
}

fn message(viewer: &Viewer<'_>, event: &EventRow) -> MessageRow {
    let kind = EventKind::parse(&event.kind);
    let by = event.payload.get("by").and_then(|by| by.get("id")).and_then(Value::as_str);
    let by = match (by, kind) {
        (Some(id), _) => name(viewer, id),
        (None, Some(kind)) if kind.is_own() => "the agent".to_owned(),
        (None, _) => "narthex".to_owned(),
    };
    let request = event.payload.get("request_id").and_then(Value::as_str);
    MessageRow {
        id: format!("message-{}", event.seq),
        kind: kind.map_or("event", words),
        by: Words::new(&by),
        at: Moment::new(event.at),
        text: text(&event.payload),
        question: request.map(Words::new),
    }
}

/// The name of a principal for people.
fn name(viewer: &Viewer<'_>, id: &str) -> String {
    match PrincipalId::new(id) {
        Ok(id) => viewer.control().principal_name(&id),
        Err(_no_principal) => id.to_owned(),
    }
}

/// The kind of an event in words.
fn words(kind: EventKind) -> &'static str {
    match kind {
        EventKind::AgentStatus => "status",
        EventKind::AgentError => "error that the agent reports",
        EventKind::AgentInputRequest => "question",
        EventKind::AgentMessage => "message to its caller",
        EventKind::UserMessage => "message",
        EventKind::AgentPermissionRequest => "request for a grant",
        EventKind::PermissionGranted => "grant",
        EventKind::PermissionDenied => "refusal of a grant",
        EventKind::SessionFailed => "failure of the program",
        EventKind::SessionRunRefused => "run that was refused",
        EventKind::SessionMessageUndelivered => "message that was given up",
        EventKind::McpError => "failure of a server",
        EventKind::SessionCompleted => "result",
        EventKind::SessionSuspended => "suspension",
        _ => "event",
    }
}

/// The text of an event: that of a person or an agent, or else all of its members.
fn text(payload: &Value) -> String {
    let said = ["text", "message", "prompt", "question", "summary", "reason"]
        .iter()
        .find_map(|name| payload.get(*name).and_then(Value::as_str))
        .map(str::to_owned);
    let text = said.unwrap_or_else(|| match payload {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            };
            members.iter().map(member).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    });
    let mut left = TEXT_MAX;
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = Words::within(line, left);
        left = left.saturating_sub(line.as_str().chars().count());
        lines.push(line.as_str().to_owned());
        if left == 0 {
            break;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts keep their lines, and long ones are cut.
    #[test]
    fn texts_keep_their_lines() {
        assert_eq!(text(&json!({ "text": "one\ntwo" })), "one\ntwo");
        assert_eq!(text(&json!({ "n": 3, "server": "git" })), "n: 3\nserver: git");
        let long = text(&json!({ "text": "x".repeat(9_000) }));
        assert_eq!(long.chars().count(), TEXT_MAX + 1);
    }

    /// Each kind on the page has words of its own.
    #[test]
    fn each_kind_has_words() {
        let words: std::collections::BTreeSet<_> = KINDS.map(words).into_iter().collect();
        assert_eq!(words.len(), KINDS.len());
        assert!(!words.contains("event"));
    }
}
