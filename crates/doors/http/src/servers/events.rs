//! Events of sessions: reads them page by page, follows them as a stream, and stores messages as
//! events.

use std::{collections::BTreeSet, future::pending, time::Duration};

use http::{HeaderMap, StatusCode};
use narthex_control::{Control, ControlError, FieldError, MessageError, Speaker};
use narthex_events::{EventKind, EventRow, Events, EventsError, Follower, Wanted};
use narthex_model::{ErrorKind, SessionId, WorkspaceId, json::shortened};
use narthex_runs::Runs;
use narthex_wire::headers::LAST_EVENT_ID;
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use super::{Answered, Asked, Query, access::created, ok, query::refused};
use crate::listener::single;
use crate::{
    auth::Principal,
    body::RequestBody,
    feed,
    post::prefers_stream,
    problem::Problem,
    shapes::{
        EVENTS_MAX, MessagesAcknowledged, SessionEvent, SessionEventPage, SessionEventType,
        SessionStreamEnd, SessionStreamed, WorkspaceStreamBegin, WorkspaceStreamed,
    },
};

/// Number of events in a page, by default and at most.
const PAGE: u64 = 500;
const PAGE_MAX: u64 = EVENTS_MAX;
/// The longest life of a stream. Its reader must then prove its identity again (S6).
pub(super) const STREAM_LIFE: Duration = Duration::from_secs(15 * 60);
/// The events in a workspace's stream by default: those that a dashboard shows.
const OF_WORKSPACE: [EventKind; 15] = [
    EventKind::AgentStatus,
    EventKind::AgentError,
    EventKind::AgentInputRequest,
    EventKind::AgentPermissionRequest,
    EventKind::PermissionGranted,
    EventKind::PermissionDenied,
    EventKind::SessionCreated,
    EventKind::SessionResumed,
    EventKind::SessionSuspended,
    EventKind::SessionCompleted,
    EventKind::SessionFailed,
    EventKind::SessionRunRefused,
    EventKind::SessionCancelledByParent,
    EventKind::SessionMessageUndelivered,
    EventKind::SessionEnded,
];

/// A stream of events.
#[derive(Debug, Clone, Copy)]
enum Stream {
    /// Events of a session, until the session ends.
    Session(SessionId),
    /// Events of a workspace after this number.
    Workspace(u64),
}

/// The target of a request about events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventTarget {
    /// Events of a session.
    Session,
    /// Events of all sessions of a workspace.
    Workspace,
    /// Messages for the agent of a session.
    Messages,
    /// The acknowledgement of the messages that the session's run has read.
    Acknowledgement,
}

impl Asked<'_> {
    /// Reads events of sessions, or stores messages and acknowledgements.
    pub(super) async fn of_events(&self, target: EventTarget, body: RequestBody) -> Answered {
        match target {
            EventTarget::Session => self.session_events().await,
            EventTarget::Workspace => self.workspace_events().await,
            EventTarget::Messages => self.send_message(body).await,
            EventTarget::Acknowledgement => self.acknowledge(body).await,
        }
    }

    /// The events of a session: a page, or a stream if the caller prefers one.
    async fn session_events(&self) -> Answered {
        let query = self.query(&["after", "limit", "type"])?;
        let (after, limit, kinds) = (after(&query)?, limit(&query)?, kinds(&query)?);
        let workspace = self.workspace()?;
        let session = self.own_session()?;
        let events = self.events_of(&workspace).await?;
        let wanted = Wanted { after: after.unwrap_or(0), limit, kinds: &kinds };
        if !prefers_stream(&self.parts.headers) {
            let page = events.read(&workspace, session, wanted).await?;
            heard(self.control()?, &page.events).await?;
            let read = |event: EventRow| as_read(event, self.principal.is_model());
            let next = (page.next < page.last).then_some(page.next);
            return Ok(ok(&SessionEventPage {
                items: page.events.into_iter().map(read).collect(),
                oldest: page.oldest,
                last: page.last,
                next: next.map(|next| next.to_string()),
            }));
        }
        // An absent session gets an error, not a stream that ends at once.
        let page = events.read(&workspace, session, Wanted { limit: 1, ..wanted }).await?;
        let after = last_event_id(&self.parts.headers)?.or(after).unwrap_or(0);
        check_place(after, page.last)?;
        let follower = events.follow(&workspace, session, after, kinds);
        self.following(follower, Stream::Session(session))
    }

    /// Streams the events of all sessions of a workspace. The stream starts now, unless the caller
    /// names an earlier event.
    async fn workspace_events(&self) -> Answered {
        let query = self.query(&["after", "type"])?;
        let (after, mut kinds) = (after(&query)?, kinds(&query)?);
        if kinds.is_empty() {
            kinds = OF_WORKSPACE.to_vec();
        }
        let workspace = self.workspace()?;
        let events = self.events_of(&workspace).await?;
        let last = events.last_number(&workspace).await?;
        let after = last_event_id(&self.parts.headers)?.or(after).unwrap_or(last);
        check_place(after, last)?;
        let follower = events.follow_workspace(&workspace, after, kinds);
        self.following(follower, Stream::Workspace(after))
    }

    /// Stores a message for the agent of a session.
    async fn send_message(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let text = self.entry(body, &[]).await?;
        let control = self.control()?;
        takes_messages(self.door.options.runs.as_ref(), &id)?;
        let speaks = (&self.by(), self.speaker());
        let sent = control.session_message(&workspace, &id, text.as_bytes(), speaks).await?;
        let after = sent.seq - 1;
        let place = format!(
            "/api/workspaces/{workspace}/sessions/{}/events?after={after}&limit=1",
            sent.place.session
        );
        Ok(created(&shown(sent), &place))
    }

    /// The sender of a message to an agent, who thereby takes the turn (X-E81).
    pub(super) fn speaker(&self) -> Speaker {
        speaker(&self.principal, self.door.options.control.as_ref())
    }

    /// Records which messages of its session a run has read.
    async fn acknowledge(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, session) = (self.workspace()?, self.own_session()?);
        let text = self.entry(body, &[]).await?;
        let runs = self.known_runs()?;
        let done = runs.acknowledge(&workspace, session, text.as_bytes()).await?;
        let (acknowledged, unread) = done;
        Ok(ok(&MessagesAcknowledged { acknowledged, unread }))
    }

    /// The session of the path. For a run, sessions other than its own are absent.
    fn own_session(&self) -> Result<SessionId, Problem> {
        let text = self.segment(1);
        let unknown = || absent(&text);
        let session = SessionId::parse(&text).ok_or_else(unknown)?;
        match &self.principal {
            Principal::Run(run) if run.authority.actors().session != Some(session) => {
                Err(unknown())
            }
            _ => Ok(session),
        }
    }

    async fn events_of(&self, workspace: &WorkspaceId) -> Result<&Events, Problem> {
        let control = self.control()?;
        // Fails with its own message if there is no store, or no such workspace.
        control.catalog_store(workspace).await?;
        control.events().ok_or_else(|| {
            Problem::new(ErrorKind::Conflict, "this process has no store for events")
        })
    }

    /// Streams the events that a follower reads.
    fn following(&self, follower: Follower, stream: Stream) -> Answered {
        let place = self.stream_place()?;
        let run = match &self.principal {
            Principal::Run(run) => Some(run.clone()),
            Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => None,
        };
        let (control, is_model) = (self.control()?.clone(), self.principal.is_model());
        Ok(self.stream(async move |events: feed::Events| {
            let over = async {
                match &run {
                    Some(run) => run.ended().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = over => {}
                () = sleep(STREAM_LIFE) => {}
                () = put_all(&control, follower, (stream, is_model), &events, place) => {}
            }
        }))
    }
}

/// Puts events into the stream until its follower ends.
async fn put_all(
    control: &Control,
    mut follower: Follower,
    (stream, is_model): (Stream, bool),
    events: &feed::Events,
    _place: OwnedSemaphorePermit,
) {
    // Without this event, a reader that disconnects early would have no event id to resume from.
    if let Stream::Workspace(after) = stream {
        let begin = WorkspaceStreamed::Begin(WorkspaceStreamBegin::new());
        events.put_as(after, &begin).await;
    }
    loop {
        let found = match follower.next().await {
            Ok(Some(found)) => heard(control, &found).await.map(|()| Some(found)),
            Ok(None) => Ok(None),
            Err(error) => Err(MessageError::Events(error).into()),
        };
        match found {
            Ok(Some(found)) => {
                for event in found {
                    stream.put(event, is_model, events).await;
                }
            }
            Ok(None) => {
                if let Stream::Session(session) = stream {
                    let end = SessionStreamEnd::new(session.to_text().into());
                    events.put(&SessionStreamed::End(end)).await;
                }
                return;
            }
            // The reader connects again, and resumes after the last event that it received.
            Err(error) => {
                tracing::warn!("a stream of events ends early: {error}");
                return;
            }
        }
    }
}

impl Stream {
    /// Puts an event into the stream, with its number in that stream as the id.
    async fn put(self, event: EventRow, is_model: bool, events: &feed::Events) {
        let (seq, number, event) = (event.seq, event.number, as_read(event, is_model));
        match self {
            Self::Session(_) => events.put_as(seq, &SessionStreamed::Event(event)).await,
            Self::Workspace(_) => events.put_as(number, &WorkspaceStreamed::Event(event)).await,
        }
    }
}

/// The sender of a message to an agent, who thereby takes the turn (X-E81).
pub(crate) fn speaker(principal: &Principal, control: Option<&Control>) -> Speaker {
    match principal {
        Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin
            if principal.is_unproved(control) =>
        {
            Speaker::unproved()
        }
        Principal::Human(signed_in) => Speaker::human(signed_in.account.id.clone()),
        Principal::LocalAdmin => Speaker::local(),
        Principal::Known(_) => Speaker::service(),
        Principal::Run(_) => Speaker::aside(),
    }
}

/// Refuses messages to the session of the daemon's own run: the person who started the daemon
/// drives it (X-E81).
pub(crate) fn takes_messages(runs: Option<&Runs>, session: &str) -> Result<(), Problem> {
    match SessionId::parse(session).zip(runs) {
        Some((session, runs)) if runs.is_own_session(session) => {
            let text = "the session of the daemon's own run takes no messages; talk to the user of \
                        its token directly";
            Err(Problem::new(ErrorKind::Conflict, text))
        }
        _ => Ok(()),
    }
}

/// An event as its reader may see it: the holder of a run's token is a model (D28).
fn as_read(event: EventRow, is_model: bool) -> SessionEvent {
    shown(if is_model { event.for_models() } else { event })
}

fn shown(event: EventRow) -> SessionEvent {
    let EventRow { place, seq, number: _, at, kind, message_id, payload } = event;
    SessionEvent {
        session_id: place.session.to_text().into(),
        timestamp: at.into(),
        sequence: seq,
        event_type: SessionEventType(kind),
        payload,
        run_id: place.run.map(|run| run.to_text().into()),
        message_id,
    }
}

/// Updates whose turn it is, if these events have messages, before any caller acts on them (X-E81).
pub(crate) async fn heard(control: &Control, events: &[EventRow]) -> Result<(), ControlError> {
    let said = |event: &&EventRow| event.kind == EventKind::UserMessage.as_str();
    let places =
        events.iter().filter(said).map(|event| (&event.place.workspace, event.place.session));
    for (workspace, session) in places.collect::<BTreeSet<_>>() {
        control.session_heard(workspace, session).await?;
    }
    Ok(())
}

fn absent(session: &str) -> Problem {
    ControlError::from(MessageError::UnknownSession(shortened(session))).into()
}

fn unfit(name: &str, remedy: String) -> Problem {
    refused(&[FieldError::invalid(name, "this value is not valid", remedy)])
}

fn after(query: &Query) -> Result<Option<u64>, Problem> {
    let remedy = || "write the number of an event, or `next` of a page".to_owned();
    match query.text("after") {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_no_number| unfit("after", remedy())),
    }
}

fn limit(query: &Query) -> Result<u64, Problem> {
    let text = query.text("limit");
    if text.is_empty() {
        return Ok(PAGE);
    }
    let limit = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
    limit.ok_or_else(|| unfit("limit", format!("write a whole number from 1 to {PAGE_MAX}")))
}

/// The kinds of events in a query, separated by commas; an empty list means all kinds.
fn kinds(query: &Query) -> Result<Vec<EventKind>, Problem> {
    let words = query.text("type").split(',').filter(|word| !word.is_empty());
    let known = || EventKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join("`, `");
    let kind = |word| {
        EventKind::parse(word)
            .ok_or_else(|| unfit("type", format!("write some of `{}`, with commas", known())))
    };
    words.map(kind).collect()
}

/// Refuses a position after the last event: a reader from there would miss the events up to it.
fn check_place(after: u64, last: u64) -> Result<(), Problem> {
    if after <= last {
        return Ok(());
    }
    let text = format!(
        "there is no event {after} yet, the last is {last}: `after` or Last-Event-ID is of another \
         stream, or the store was restored from a copy; follow from {last}, or from 0"
    );
    Err(Problem::new(ErrorKind::Invalid, text).with_status(StatusCode::BAD_REQUEST))
}

/// The id of the last event that the reader has received.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let wrong = || {
        let text = "Last-Event-ID is not the id of an event of this stream; leave it out";
        Problem::new(ErrorKind::Invalid, text).with_status(StatusCode::BAD_REQUEST)
    };
    match single(headers, &LAST_EVENT_ID) {
        None => Err(wrong()),
        Some(None) => Ok(None),
        Some(Some(text)) => text.parse().map(Some).map_err(|_no_number| wrong()),
    }
}

impl From<EventsError> for Problem {
    fn from(error: EventsError) -> Self {
        match error {
            EventsError::NoSession(session) => absent(&session.to_text()),
            error => ControlError::from(MessageError::Events(error)).into(),
        }
    }
}
