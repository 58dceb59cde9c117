//! The event stream of a page: its live parts, as often as they change.

use std::{collections::HashMap, future::pending, sync::Arc, time::Duration};

use http::request::Parts;
use narthex_control::Control;
use narthex_events::{EventKind, Follower};
use narthex_model::{ErrorKind, WorkspaceId};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::sleep,
};

use super::{
    answer::Answered,
    live::{Follows, Fragment, Topic, fragments, mark},
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
        arrivals: topics
            .iter()
            .any(|topic| topic.follows == Follows::Clients)
            .then(|| door.gateway.arrivals_changed()),
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
    if !topics.iter().any(|topic| topic.follows == Follows::Requests) {
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
    arrivals: Option<watch::Receiver<u64>>,
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
                () = arrived(&mut self.arrivals) => {}
            }
            sleep(TOGETHER).await;
        }
    }

    /// The parts as they are now; `None` if the human may not see them any more.
    async fn fragments(&self) -> Option<Vec<Fragment>> {
        let browser =
            BrowserRequest { door: &self.door, control: &self.control, parts: &self.parts };
        let (token, signed_in) = browser.session().ok()??;
        let csrf = self.control.form_token(token);
        let place = Place { workspace: self.workspace.clone(), segments: [""; 2], nav: Vec::new() };
        let viewer = Viewer::new(&self.door, browser, place, signed_in, csrf);
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
