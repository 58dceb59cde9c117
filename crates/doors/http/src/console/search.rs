//! The search over everything that the human may see. Each page with names of its own adds a
//! function to [`SOURCES`].

use futures_core::future::BoxFuture;
use http::StatusCode;
use narthex_console::{
    html,
    pages::search::{Found, Group, SearchPage},
    parts::Words,
};
use narthex_control::decision_path;
use narthex_gateway::shown;

use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    rows,
    viewer::Viewer,
    waits::Waits,
};
use crate::{
    Access,
    problem::Problem,
    routes::{AUDIT, EVERY},
};

/// The page.
pub(super) const PAGES: &[Page] =
    &[Page::get("search", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))];

/// Number of results of one kind.
const SHOWN: usize = 20;
/// Maximum number of characters of the searched text.
const TEXT_MAX: usize = 200;

/// A kind of results: its heading, and the code that finds those with a text in their name.
type Source = (
    &'static str,
    for<'v> fn(&'v Viewer<'v>, &'v str) -> BoxFuture<'v, Result<Vec<Found>, Problem>>,
);

/// All kinds, in the order of the results.
const SOURCES: &[Source] = &[
    ("Pages", |viewer, text| Box::pin(async move { Ok(pages(viewer, text)) })),
    ("Servers", |viewer, text| Box::pin(async move { Ok(servers(viewer, text)) })),
    ("Tools", |viewer, text| Box::pin(async move { Ok(tools(viewer, text)) })),
    ("Requests", |viewer, text| Box::pin(requests(viewer, text))),
    ("Clients", |viewer, text| Box::pin(async move { clients(viewer, text) })),
];

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["q"])?;
    let text: String = query.text("q").trim().chars().take(TEXT_MAX).collect();
    let wanted = text.to_lowercase();
    let mut groups = Vec::new();
    if !wanted.is_empty() {
        for (title, find) in SOURCES {
            let mut found = find(viewer, &wanted).await?;
            let has_more = found.len() > SHOWN;
            found.truncate(SHOWN);
            if !found.is_empty() {
                groups.push(Group { title, found, has_more });
            }
        }
    }
    let head = Head {
        title: Words::new("Search"),
        sentence: "Everything that you may see, by its name.",
        same: None,
    };
    let mut frame = frame(viewer, head).await?;
    frame.searched = Words::within(&text, TEXT_MAX);
    Ok(answer::page(StatusCode::OK, html(&SearchPage { frame, groups })))
}

fn pages(viewer: &Viewer<'_>, text: &str) -> Vec<Found> {
    let named = viewer.nav.iter().filter(|link| link.label.to_lowercase().contains(text));
    let found = named.map(|link| Found {
        href: link.href.clone(),
        name: Words::new(link.label),
        about: Words::new("a page"),
    });
    found.collect()
}

fn servers(viewer: &Viewer<'_>, text: &str) -> Vec<Found> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let all = rows::seen(viewer, &snapshot);
    let named = all.iter().filter(|(_, row)| row.name.to_lowercase().contains(text));
    let found = named.map(|(_, row)| Found {
        href: list(viewer, &row.name),
        name: Words::new(&row.name),
        about: Words::new(&format!("a server, {}", row.state.as_str())),
    });
    found.take(SHOWN + 1).collect()
}

fn tools(viewer: &Viewer<'_>, text: &str) -> Vec<Found> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let all = rows::seen(viewer, &snapshot);
    let mut found = Vec::new();
    for (_, row) in all.iter().filter(|(_, row)| row.is_ready()) {
        for entry in &shown(row).tools {
            if found.len() > SHOWN {
                return found;
            }
            if entry.key.to_lowercase().contains(text) {
                found.push(Found {
                    href: rows::path(viewer, &row.name, "tools"),
                    name: Words::new(&entry.key),
                    about: Words::new(&format!("a tool of {}", row.name)),
                });
            }
        }
    }
    found
}

async fn requests(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    let waits = Waits::read(viewer).await?;
    let found = waits.requests.iter().filter_map(|row| {
        let agent = row.agent.as_ref()?.to_string();
        let found = Found {
            href: decision_path(&row.workspace, &row.id.to_text()),
            name: Words::new(&agent),
            about: Words::new("an agent that waits for a decision"),
        };
        agent.to_lowercase().contains(text).then_some(found)
    });
    Ok(found.take(SHOWN + 1).collect())
}

/// The registered clients, for those who may read their list.
fn clients(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    if !viewer.may(Access::Member(AUDIT)) {
        return Ok(Vec::new());
    }
    let all = viewer.control().clients(&viewer.workspace)?;
    let found = all.iter().filter_map(|client| {
        let name = client.account.name.as_str();
        let name = name.split_once('/').map_or(name, |(_, name)| name);
        name.to_lowercase().contains(text).then(|| Found {
            href: viewer.path(&format!("clients?open={}", client.row.id)),
            name: Words::new(name),
            about: Words::new("a client"),
        })
    });
    Ok(found.take(SHOWN + 1).collect())
}

/// The list with the row of a server.
fn list(viewer: &Viewer<'_>, name: &str) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.append_pair("q", name);
    viewer.path(&format!("servers?{}", written.finish()))
}
