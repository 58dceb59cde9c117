//! The event stream of a page: its live parts, as often as they change.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    future::{pending, ready},
    sync::Arc,
    time::Duration,
};

use http::request::Parts;
use narthex_console::NavLink;
use narthex_control::Control;
use narthex_events::{EventKind, Follower};
use narthex_model::{ErrorKind, RunId, WorkspaceId};
use narthex_run_events::{Operation, Watcher};
use narthex_runs::RunStatus;
use tokio::{
    sync::{OwnedSemaphorePermit, broadcast, watch},
    time::sleep,
};

use super::{
    answer::Answered,
    live::{Follows, Fragment, RUN, SERVER, Topic, entries_event, fragments, gone_event, mark},
    page::Page,
    topics::TOPICS,
    viewer::{Place, Viewer},
};
use crate::{
    Access,
    door::Door,
    feed::{Events, FeedStream},
    page_streams::PagePlace,
    problem::Problem,
    respond::event_stream,
    routes::EVERY,
    servers::Query,
    signin::BrowserRequest,
};

/// The stream of a page's live parts.
pub(super) const PAGES: &[Page] =
    &[Page::get("live", Access::Member(EVERY), |viewer, _| Box::pin(stream(viewer)))];

/// The longest life of a stream. Its reader must then prove its identity again (S6).
const LIFE: Duration = Duration::from_secs(15 * 60);
/// Changes that follow each other within this time are sent together.
const TOGETHER: Duration = Duration::from_millis(50);
/// Number of operations of a run that a stream remembers: more than a page shows.
const RECENT: usize = 100;
/// The parameters of a stream's address besides those of its topics.
const OWN: [&str; 2] = ["topics", "mark"];
/// The events of a workspace that change what waits, and which runs are active.
const REQUESTS: [EventKind; 9] = [
    EventKind::AgentPermissionRequest,
    EventKind::PermissionGranted,
    EventKind::PermissionDenied,
    EventKind::SessionCreated,
    EventKind::SessionCompleted,
    EventKind::SessionFailed,
    EventKind::SessionEnded,
    EventKind::SessionResumed,
    EventKind::SessionSuspended,
];
/// The events of a workspace that a page with messages shows besides these.
const MESSAGES: [EventKind; 7] = [
    EventKind::AgentStatus,
    EventKind::AgentError,
    EventKind::AgentInputRequest,
    EventKind::AgentMessage,
    EventKind::UserMessage,
    EventKind::SessionMessageUnread,
    EventKind::SessionMessageUndelivered,
];

async fn stream(viewer: &Viewer<'_>) -> Answered {
    let params = TOPICS.iter().flat_map(|topic| topic.params.iter().copied());
    let known: Vec<_> = OWN.into_iter().chain(params).collect();
    let query = viewer.query(&known)?;
    let topics = topics(&query)?;
    // An absent right is answered now, and not by a stream that ends at once.
    fragments(viewer, &topics, &query).await?;
    let door = viewer.door.clone();
    let place = door.page_streams.take(&viewer.signed_in.session).ok_or_else(too_many)?;
    let shared = door.event_streams.clone().try_acquire_owned().map_err(|_none| too_many())?;
    let (end, metrics) = (door.options.closing.clone(), door.gateway.metrics());
    let (open, keep_alive) = (metrics.stream_opened(), door.options.keep_alive);
    let watching = Watching {
        control: viewer.control().clone(),
        parts: viewer.browser.parts.clone(),
        workspace: viewer.workspace.clone(),
        nav: viewer.nav.clone(),
        changes: door.gateway.registry().changes(),
        requests: requests(viewer, &topics).await?,
        runs: follows(&topics, Follows::Runs).then(|| door.gateway.runs().changes()),
        operations: operations(viewer, &topics, &query).await?,
        recent: VecDeque::new(),
        arrivals: follows(&topics, Follows::Clients).then(|| door.gateway.arrivals_changed()),
        door: door.clone(),
        query,
        topics,
        _places: (place, shared),
    };
    let work = async move |events: Events| {
        tokio::select! {
            biased;
            () = sleep(LIFE) => {}
            () = watching.put_all(&events) => {}
        }
    };
    let end = Box::pin(end.cancelled_owned());
    Ok(event_stream(FeedStream::new(work, end, keep_alive, open)))
}

fn topics(query: &Query) -> Result<Vec<&'static Topic>, Problem> {
    let names = query.text("topics").split(',');
    let topic = |name| {
        let found = TOPICS.iter().find(|topic| topic.name == name).copied();
        found.ok_or_else(|| {
            Problem::new(ErrorKind::Invalid, "a topic is not known; reload the page")
        })
    };
    names.map(topic).collect()
}

/// The events that some of the topics follow.
async fn requests(viewer: &Viewer<'_>, topics: &[&Topic]) -> Result<Option<Follower>, Problem> {
    let of_events = [Follows::Requests, Follows::Runs, Follows::Run, Follows::Messages];
    if !of_events.iter().any(|what| follows(topics, *what)) {
        return Ok(None);
    }
    let Some(events) = viewer.control().events() else { return Ok(None) };
    let last = events.last_number(&viewer.workspace).await?;
    let mut kinds = REQUESTS.to_vec();
    if follows(topics, Follows::Messages) {
        kinds.extend(MESSAGES);
    }
    Ok(Some(events.follow_workspace(&viewer.workspace, last, kinds)))
}

/// True if one of the topics follows these changes.
fn follows(topics: &[&Topic], what: Follows) -> bool {
    topics.iter().any(|topic| topic.follows == what)
}

/// The operations of the run that some of the topics follow, while the run is active. Nothing is
/// watched otherwise, since calls of all runs are cheaper without any watcher.
async fn operations(
    viewer: &Viewer<'_>,
    topics: &[&Topic],
    query: &Query,
) -> Result<Option<Watcher>, Problem> {
    let runs = viewer.door.options.runs.as_ref().filter(|_| follows(topics, Follows::Run));
    let Some((runs, id)) = runs.zip(RunId::parse(query.text(RUN))) else { return Ok(None) };
    // The run is read after the beginning, so that its end cannot come in between.
    let watcher = viewer.door.gateway.tap().watch(id, Vec::new());
    let run = runs.get(&viewer.workspace, &id.to_text()).await?;
    Ok(Some(watcher).filter(|_| !matches!(run.status(), RunStatus::Over(_))))
}

fn too_many() -> Problem {
    let text = "too many pages are live at the same time; close some of them";
    Problem::new(ErrorKind::Exhausted, text)
}

/// The state of an open stream.
struct Watching {
    door: Arc<Door>,
    control: Control,
    parts: Parts,
    workspace: WorkspaceId,
    /// The pages to which parts may lead. Each page checks its human anew.
    nav: Vec<NavLink>,
    query: Query,
    topics: Vec<&'static Topic>,
    changes: watch::Receiver<u64>,
    requests: Option<Follower>,
    /// Tells of runs that begin or end.
    runs: Option<watch::Receiver<u64>>,
    operations: Option<Watcher>,
    /// The last operations, the oldest first.
    recent: VecDeque<Operation>,
    /// Tells of clients that describe themselves.
    arrivals: Option<watch::Receiver<u64>>,
    _places: (PagePlace, OwnedSemaphorePermit),
}

impl Watching {
    /// Sends what has changed, until the login session ends or loses its rights.
    async fn put_all(mut self, events: &Events) {
        let mut sent = Sent::default();
        let mut is_first = true;
        loop {
            self.changes.mark_unchanged();
            let mut lines = self.lines();
            take_all(&mut self.operations, &mut self.recent).await;
            let Some(fragments) = self.fragments().await else { return };
            let is_known = is_first && self.query.text("mark") == format!("{:x}", mark(&fragments));
            is_first = false;
            let event = sent.changed(&fragments);
            if !is_known && !event.is_empty() {
                events.put_html(event).await;
            }
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return },
                () = next(&mut self.requests) => {}
                () = line(&mut lines) => {}
                () = arrived(&mut self.arrivals) => {}
                () = next_run(&mut self.runs) => {}
                () = next_operation(&mut self.operations, &mut self.recent) => {}
            }
            sleep(TOGETHER).await;
        }
    }

    /// The further lines of the log that a topic follows. The lines up to now are in the parts that
    /// are rendered after this.
    fn lines(&self) -> Option<broadcast::Receiver<Arc<str>>> {
        let is_followed = follows(&self.topics, Follows::Log);
        let row = is_followed.then(|| self.door.gateway.registry().get(self.query.text(SERVER)));
        Some(row.flatten()?.log.subscribe())
    }

    /// The parts as they are now; `None` if the human may not see them any more.
    async fn fragments(&self) -> Option<Vec<Fragment>> {
        let browser =
            BrowserRequest { door: &self.door, control: &self.control, parts: &self.parts };
        let (token, signed_in) = browser.session().ok()??;
        let csrf = self.control.form_token(token);
        let (workspace, nav) = (self.workspace.clone(), self.nav.clone());
        let place = Place { workspace, segments: [""; 2], nav };
        let mut viewer = Viewer::new(&self.door, browser, place, signed_in, csrf);
        viewer.recent = self.recent.iter().cloned().collect();
        match fragments(&viewer, &self.topics, &self.query).await {
            Ok(fragments) => Some(fragments),
            Err(problem) => {
                tracing::debug!("the stream of a page ends early: {}", problem.detail());
                None
            }
        }
    }
}

/// Waits for the next event of the workspace, if the stream follows any.
async fn next(requests: &mut Option<Follower>) {
    let Some(follower) = requests else { return pending().await };
    if !matches!(follower.next().await, Ok(Some(_))) {
        *requests = None;
    }
}

/// Waits for the next client that describes itself, if the stream follows them.
async fn arrived(arrivals: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = arrivals else { return pending().await };
    if changes.changed().await.is_err() {
        *arrivals = None;
    }
}

/// Waits for the next line of a log, if the stream follows one.
async fn line(lines: &mut Option<broadcast::Receiver<Arc<str>>>) {
    let Some(receiver) = lines else { return pending().await };
    // Lines that were missed are in the log, too.
    if matches!(receiver.recv().await, Err(broadcast::error::RecvError::Closed)) {
        *lines = None;
    }
}

/// Waits for a run that begins or ends, if the stream follows runs.
async fn next_run(runs: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = runs else { return pending().await };
    if changes.changed().await.is_err() {
        *runs = None;
    }
}

/// Waits for the next operation of the run, or for its end, if the stream follows one.
async fn next_operation(operations: &mut Option<Watcher>, recent: &mut VecDeque<Operation>) {
    let Some(watcher) = operations else { return pending().await };
    match watcher.next().await {
        Some(seen) => {
            if recent.len() >= RECENT {
                recent.pop_front();
            }
            recent.push_back(seen.operation);
        }
        None => *operations = None,
    }
}

/// Takes all operations that have ended by now: the parts show them from here on.
async fn take_all(operations: &mut Option<Watcher>, recent: &mut VecDeque<Operation>) {
    while operations.is_some() {
        tokio::select! {
            biased;
            () = next_operation(operations, recent) => {}
            () = ready(()) => return,
        }
    }
}

/// The parts of a page as its reader has them.
#[derive(Debug, Default)]
struct Sent {
    /// The key of each part, by the id of its element.
    keys: HashMap<String, u64>,
    /// The entries of lists.
    entries: BTreeSet<String>,
}

/// New entries of a list that follow each other.
#[derive(Debug, Default)]
struct NewEntries<'f> {
    /// The last entry that the reader has, with its list.
    front: Option<(&'f str, &'f str)>,
    /// The list of the new entries.
    list: &'f str,
    html: String,
}

impl<'f> NewEntries<'f> {
    fn add(&mut self, list: &'f str, fragment: &'f Fragment) {
        self.list = list;
        self.html.push_str(fragment.html());
    }

    /// The event with the new entries, which are then known; empty without any.
    fn end(&mut self) -> String {
        if self.html.is_empty() {
            return String::new();
        }
        let front = self.front.filter(|(list, _)| *list == self.list).map(|(_, id)| id);
        entries_event(self.list, front, &std::mem::take(&mut self.html))
    }
}

impl Sent {
    /// The event with the parts that differ from those that were sent, which are noted.
    fn changed(&mut self, fragments: &[Fragment]) -> String {
        let (mut event, mut is_covered) = (String::new(), false);
        let mut entries = BTreeSet::new();
        let mut begun = NewEntries::default();
        for fragment in fragments {
            is_covered &= !fragment.is_first;
            let before = self.keys.insert(fragment.id.clone(), fragment.key);
            let is_changed = before != Some(fragment.key) && !is_covered;
            let Some(list) = fragment.list else {
                event.push_str(&begun.end());
                if is_changed {
                    event.push_str(&fragment.event());
                    is_covered = fragment.has_rest;
                }
                continue;
            };
            entries.insert(fragment.id.clone());
            let is_new = before.is_none() || !self.entries.contains(&fragment.id);
            if is_new && !is_covered {
                begun.add(list, fragment);
                continue;
            }
            event.push_str(&begun.end());
            if is_changed {
                event.push_str(&fragment.event());
            }
            begun.front = Some((list, fragment.id.as_str()));
        }
        event.push_str(&begun.end());
        for gone in self.entries.difference(&entries) {
            self.keys.remove(gone);
            event.push_str(&gone_event(gone));
        }
        self.entries = entries;
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what has changed is sent: one row, or the whole list if its rows are others.
    #[test]
    fn only_changed_parts_are_sent() {
        let list = |rows: &[(&str, &str)]| {
            let ids: Vec<_> = rows.iter().map(|(id, _)| *id).collect();
            let whole = Fragment::around("list", format!("<ul>{rows:?}</ul>"), &ids);
            let rows = rows.iter().map(|(id, text)| Fragment::new(*id, format!("<li>{text}</li>")));
            std::iter::once(whole).chain(rows).collect::<Vec<_>>()
        };
        let mut sent = Sent::default();
        let first = sent.changed(&list(&[("a", "1"), ("b", "1")]));
        assert!(first.contains("#list") && !first.contains("#a"), "{first}");
        assert_eq!(sent.changed(&list(&[("a", "1"), ("b", "1")])), "");
        let row = sent.changed(&list(&[("a", "1"), ("b", "2")]));
        assert!(row.contains("#b") && !row.contains("#list") && !row.contains("#a"), "{row}");
        let more = sent.changed(&list(&[("a", "1"), ("b", "2"), ("c", "1")]));
        assert!(more.contains("#list") && !more.contains("#c\""), "{more}");
    }

    /// A new entry is put at its place in a list, an old one is taken out, and the others stay.
    #[test]
    fn entries_of_a_list_come_and_go_without_the_list() {
        let log = |rows: &[(&str, &str)]| {
            let whole = Fragment::log("log", format!("<ul>{rows:?}</ul>"));
            let entry = |(id, text): &(&str, &str)| {
                Fragment::entry("log", *id, format!("<li id=\"{id}\">{text}</li>"))
            };
            std::iter::once(whole).chain(rows.iter().map(entry)).collect::<Vec<_>>()
        };
        let mut sent = Sent::default();
        let first = sent.changed(&log(&[("b", "1"), ("a", "1")]));
        assert_eq!(first.matches("<hx-partial").count(), 1, "{first}");
        assert_eq!(sent.changed(&log(&[("b", "1"), ("a", "1")])), "");
        let new = sent.changed(&log(&[("d", "1"), ("c", "1"), ("b", "2")]));
        let swaps = [
            "#log\" hx-swap=\"afterbegin\"><li id=\"d\">1</li><li id=\"c\">1</li></hx-partial>",
            "#b\" hx-swap=\"outerMorph",
            "#a\" hx-swap=\"delete",
        ];
        for swap in swaps {
            assert_eq!(new.matches(swap).count(), 1, "{swap}: {new}");
        }
        assert_eq!(new.matches("<hx-partial").count(), 3, "{new}");
        let again = sent.changed(&log(&[("a", "1"), ("d", "1")]));
        assert!(again.contains("#log\" hx-swap=\"afterbegin\"><li id=\"a\">"), "{again}");
        let behind = sent.changed(&log(&[("a", "1"), ("f", "1"), ("e", "1"), ("d", "1")]));
        let both = "#a\" hx-swap=\"afterend\"><li id=\"f\">1</li><li id=\"e\">1</li></hx-partial>";
        assert!(behind.contains(both), "{behind}");
    }
}
