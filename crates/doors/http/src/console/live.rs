//! One event stream for each page: parts of the page, rendered again by the same template when they
//! change, with the rights that the human has at that moment.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    future::pending,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_core::future::BoxFuture;
use http::request::Parts;
use narthex_control::Control;
use narthex_events::{EventKind, Follower};
use narthex_model::{ErrorKind, WorkspaceId};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::sleep,
};

use super::{
    Answered, TOPICS,
    page::{Page, Spot},
    viewer::Viewer,
};
use crate::{
    Access,
    door::Door,
    feed::{Events, FeedStream},
    problem::Problem,
    respond::event_stream,
    routes::EVERY,
    servers::Query,
    signin::BrowserRequest,
};

/// The stream of a page's live parts.
pub(super) const PAGES: &[Page] =
    &[Page::get("live", Access::Member(EVERY), |viewer, _| Box::pin(stream(viewer)))];

/// Number of open streams of one login session. A browser has six connections to a host.
const STREAMS_MAX: usize = 4;
/// The longest life of a stream. Its reader must then prove its identity again (S6).
const LIFE: Duration = Duration::from_secs(15 * 60);
/// Changes that follow each other within this time are sent together.
const TOGETHER: Duration = Duration::from_millis(50);
/// The parameters of a stream's address besides those of its topics.
const OWN: [&str; 2] = ["topics", "mark"];
/// The events of a workspace that change what waits, and which runs are active.
const REQUESTS: [EventKind; 7] = [
    EventKind::AgentPermissionRequest,
    EventKind::PermissionGranted,
    EventKind::PermissionDenied,
    EventKind::SessionCreated,
    EventKind::SessionCompleted,
    EventKind::SessionFailed,
    EventKind::SessionEnded,
];

/// The code that renders the live parts of a page.
pub(super) type Render =
    for<'v> fn(&'v Viewer<'v>, &'v Query) -> BoxFuture<'v, Result<Vec<Fragment>, Problem>>;

/// A live part of pages.
#[derive(Debug)]
pub(super) struct Topic {
    /// The name in addresses of streams.
    pub(super) name: &'static str,
    /// The access of the page's own route.
    pub(super) access: Access,
    /// The parameters of the page on which the part depends.
    pub(super) params: &'static [&'static str],
    pub(super) follows: Follows,
    pub(super) parts: Render,
}

/// The changes after which a part is rendered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// Changes of servers.
    Servers,
    /// Changes of servers, and requests and sessions in the workspace.
    Requests,
}

/// An element of a page, as it is now.
#[derive(Debug)]
pub(super) struct Fragment {
    /// The id of the element.
    id: String,
    html: String,
    /// The element is sent again when this value changes.
    key: u64,
    /// True if the further elements of its topic are inside of it.
    has_rest: bool,
    /// True for the first element of a topic.
    is_first: bool,
}

impl Fragment {
    /// An element that is sent again when its text changes.
    pub(super) fn new(id: impl Into<String>, html: String) -> Self {
        let key = hash_of(&html);
        Self { id: id.into(), html, key, has_rest: false, is_first: false }
    }

    /// An element with the following ones inside of it, which is sent again only when `key`
    /// changes, such as the ids of its rows.
    pub(super) fn around(id: impl Into<String>, html: String, key: &impl Hash) -> Self {
        Self { id: id.into(), html, key: hash_of(key), has_rest: true, is_first: false }
    }

    fn event(&self) -> String {
        let Self { id, html, .. } = self;
        format!("<hx-partial hx-target=\"#{id}\" hx-swap=\"outerMorph\">{html}</hx-partial>")
    }
}

fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The address of the stream of a page with these parts, to which the parameters of the page
/// belong. The address tells the state of the parts in the page, which is not sent again.
pub(super) async fn address(
    viewer: &Viewer<'_>,
    topics: &[&Topic],
    query: &Query,
) -> Result<String, Problem> {
    let mark = mark(&fragments(viewer, topics, query).await?);
    let names: Vec<_> = topics.iter().map(|topic| topic.name).collect();
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("topics", &names.join(","));
    for name in topics.iter().flat_map(|topic| topic.params) {
        if !query.text(name).is_empty() {
            pairs.append_pair(name, query.text(name));
        }
    }
    pairs.append_pair("mark", &format!("{mark:x}"));
    Ok(viewer.path(&format!("live?{}", pairs.finish())))
}

fn mark(fragments: &[Fragment]) -> u64 {
    hash_of(&fragments.iter().map(|one| (&*one.id, one.key)).collect::<Vec<_>>())
}

async fn fragments(
    viewer: &Viewer<'_>,
    topics: &[&Topic],
    query: &Query,
) -> Result<Vec<Fragment>, Problem> {
    let mut all = Vec::new();
    for topic in topics {
        viewer.check(topic.access)?;
        let mut parts = (topic.parts)(viewer, query).await?;
        if let Some(first) = parts.first_mut() {
            first.is_first = true;
        }
        all.extend(parts);
    }
    Ok(all)
}

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
        changes: door.gateway.registry().changes(),
        requests: requests(viewer, &topics).await?,
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
    if topics.iter().all(|topic| topic.follows == Follows::Servers) {
        return Ok(None);
    }
    let Some(events) = viewer.control().events() else { return Ok(None) };
    let last = events.last_number(&viewer.workspace).await?;
    Ok(Some(events.follow_workspace(&viewer.workspace, last, REQUESTS.to_vec())))
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
    query: Query,
    topics: Vec<&'static Topic>,
    changes: watch::Receiver<u64>,
    requests: Option<Follower>,
    _places: (PagePlace, OwnedSemaphorePermit),
}

impl Watching {
    /// Sends what has changed, until the login session ends or loses its rights.
    async fn put_all(mut self, events: &Events) {
        let mut sent: HashMap<String, u64> = HashMap::new();
        let mut is_first = true;
        loop {
            self.changes.mark_unchanged();
            let Some(fragments) = self.fragments().await else { return };
            let is_known = is_first && self.query.text("mark") == format!("{:x}", mark(&fragments));
            is_first = false;
            let event = changed(&fragments, &mut sent);
            if !is_known && !event.is_empty() {
                events.put_html(event).await;
            }
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return },
                () = next(&mut self.requests) => {}
            }
            sleep(TOGETHER).await;
        }
    }

    /// The parts as they are now; `None` if the human may not see them any more.
    async fn fragments(&self) -> Option<Vec<Fragment>> {
        let browser =
            BrowserRequest { door: &self.door, control: &self.control, parts: &self.parts };
        let signed_in = browser.session().ok()??;
        let place = (self.workspace.clone(), Spot::nowhere());
        let viewer = Viewer::new(&self.door, browser, place, signed_in);
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

/// The event with the parts that differ from those that were sent, which are noted.
fn changed(fragments: &[Fragment], sent: &mut HashMap<String, u64>) -> String {
    let (mut event, mut is_covered) = (String::new(), false);
    for fragment in fragments {
        is_covered &= !fragment.is_first;
        let before = sent.insert(fragment.id.clone(), fragment.key);
        if before != Some(fragment.key) && !is_covered {
            event.push_str(&fragment.event());
            is_covered = fragment.has_rest;
        }
    }
    event
}

/// The open streams of each login session.
#[derive(Debug, Default)]
pub(crate) struct PageStreams(Arc<Mutex<HashMap<String, usize>>>);

/// The place of one open stream.
struct PagePlace {
    session: String,
    all: Arc<Mutex<HashMap<String, usize>>>,
}

impl PageStreams {
    /// Takes a place for a stream of a login session; `None` if it has too many.
    fn take(&self, session: &str) -> Option<PagePlace> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(session.to_owned()).or_default();
        if *open >= STREAMS_MAX {
            return None;
        }
        *open += 1;
        Some(PagePlace { session: session.to_owned(), all: self.0.clone() })
    }
}

impl Drop for PagePlace {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&self.session) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                all.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A login session has few streams, and gives back the place of each that ends.
    #[test]
    fn a_login_session_has_a_few_streams_at_a_time() {
        let streams = PageStreams::default();
        let mut places: Vec<_> = (0..STREAMS_MAX).map(|_| streams.take("ada").unwrap()).collect();
        assert!(streams.take("ada").is_none());
        assert!(streams.take("bob").is_some());
        places.pop();
        places.push(streams.take("ada").unwrap());
        drop(places);
        assert!(streams.0.lock().unwrap().is_empty());
    }

    /// Only what has changed is sent: one row, or the whole list if its rows are others.
    #[test]
    fn only_changed_parts_are_sent() {
        let list = |rows: &[(&str, &str)]| {
            let ids: Vec<_> = rows.iter().map(|(id, _)| *id).collect();
            let whole = Fragment::around("list", format!("<ul>{rows:?}</ul>"), &ids);
            let rows = rows.iter().map(|(id, text)| Fragment::new(*id, format!("<li>{text}</li>")));
            std::iter::once(whole).chain(rows).collect::<Vec<_>>()
        };
        let mut sent = HashMap::new();
        let first = changed(&list(&[("a", "1"), ("b", "1")]), &mut sent);
        assert!(first.contains("#list") && !first.contains("#a"), "{first}");
        assert_eq!(changed(&list(&[("a", "1"), ("b", "1")]), &mut sent), "");
        let row = changed(&list(&[("a", "1"), ("b", "2")]), &mut sent);
        assert!(row.contains("#b") && !row.contains("#list") && !row.contains("#a"), "{row}");
        let more = changed(&list(&[("a", "1"), ("b", "2"), ("c", "1")]), &mut sent);
        assert!(more.contains("#list") && !more.contains("#c\""), "{more}");
    }
}
