//! One event stream for each page: parts of the page, rendered again by the same template when they
//! change, with the rights that the human has at that moment.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use futures_core::future::BoxFuture;

use super::viewer::Viewer;
use crate::{Access, problem::Problem, servers::Query};

/// The parameter of a stream that names the server of its page.
pub(super) const SERVER: &str = "server";

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
    /// Changes of servers, and lines in the log of the server that the parameter [`SERVER`] names.
    Log,
    /// The same, and runs that begin or end at this daemon.
    Runs,
    /// The same as for requests, and the operations and the end of the run that the parameter
    /// [`RUN`] names.
    Run,
    /// The same as for requests, and messages in the workspace.
    Messages,
    /// Clients that describe themselves, and changes of servers.
    Clients,
}

/// The parameter with the run that a part is about.
pub(super) const RUN: &str = "run";

/// An element of a page, as it is now.
#[derive(Debug)]
pub(super) struct Fragment {
    /// The id of the element.
    pub(super) id: String,
    html: String,
    /// The element is sent again when this value changes.
    pub(super) key: u64,
    /// True if the further elements of its topic are inside of it.
    pub(super) has_rest: bool,
    /// True for the first element of a topic.
    pub(super) is_first: bool,
    /// The id of the list of which this is an entry.
    pub(super) list: Option<&'static str>,
}

impl Fragment {
    /// An element that is sent again when its text changes.
    pub(super) fn new(id: impl Into<String>, html: String) -> Self {
        let key = hash_of(&html);
        Self { id: id.into(), html, key, has_rest: false, is_first: false, list: None }
    }

    /// An element with the following ones inside of it, which is sent again only when `key`
    /// changes, such as the ids of its rows.
    pub(super) fn around(id: impl Into<String>, html: String, key: &impl Hash) -> Self {
        let key = hash_of(key);
        Self { id: id.into(), html, key, has_rest: true, is_first: false, list: None }
    }

    /// A list with the following entries inside of it, the newest first. It is sent once: later
    /// entries are put in, and entries that have gone are taken out.
    pub(super) fn log(id: &'static str, html: String) -> Self {
        Self::around(id, html, &())
    }

    /// An entry of the list with the id `list`, at its place in the list.
    pub(super) fn entry(list: &'static str, id: impl Into<String>, html: String) -> Self {
        Self { list: Some(list), ..Self::new(id, html) }
    }

    /// The element in an event.
    pub(super) fn event(&self) -> String {
        let Self { id, html, .. } = self;
        format!("<hx-partial hx-target=\"#{id}\" hx-swap=\"outerMorph\">{html}</hx-partial>")
    }

    /// The text of the element.
    pub(super) fn html(&self) -> &str {
        &self.html
    }
}

/// New entries of a list in an event: behind the entry `front`, or first.
///
/// Entries that follow each other are one part of the event: a browser looks for the targets of
/// all parts before it puts any in.
pub(super) fn entries_event(list: &str, front: Option<&str>, html: &str) -> String {
    let (target, swap) = match front {
        Some(front) => (front, "afterend"),
        None => (list, "afterbegin"),
    };
    format!("<hx-partial hx-target=\"#{target}\" hx-swap=\"{swap}\">{html}</hx-partial>")
}

/// The end of an entry in an event.
pub(super) fn gone_event(id: &str) -> String {
    format!("<hx-partial hx-target=\"#{id}\" hx-swap=\"delete\"></hx-partial>")
}

fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A topic with its parts as a page shows them.
pub(super) struct Live {
    pub(super) topic: &'static Topic,
    pub(super) parts: Vec<Fragment>,
}

/// The address of the stream of a page with these live parts, to which the parameters of the page
/// belong. The address has the state of the parts in the page, which are not sent again.
pub(super) fn address(viewer: &Viewer<'_>, live: Vec<Live>, query: &Query) -> String {
    let names: Vec<_> = live.iter().map(|live| live.topic.name).collect();
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("topics", &names.join(","));
    // Several parts may depend on one parameter.
    let params: BTreeSet<_> = live.iter().flat_map(|live| live.topic.params).collect();
    for name in params {
        if !query.text(name).is_empty() {
            pairs.append_pair(name, query.text(name));
        }
    }
    let parts: Vec<_> = live.into_iter().flat_map(|live| live.parts).collect();
    pairs.append_pair("mark", &format!("{:x}", mark(&parts)));
    viewer.path(&format!("live?{}", pairs.finish()))
}

/// The state of all parts.
pub(super) fn mark(fragments: &[Fragment]) -> u64 {
    hash_of(&fragments.iter().map(|one| (&*one.id, one.key)).collect::<Vec<_>>())
}

/// The parts of these topics as they are now, with the access of each.
pub(super) async fn fragments(
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
