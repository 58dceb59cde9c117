//! The search over everything that the human may see. Each page with names of its own adds a
//! function to [`SOURCES`].

use futures_core::future::BoxFuture;
use http::StatusCode;
use narthex_console::{
    html,
    pages::search::{Found, Group, SearchPage},
    parts::Words,
};
use narthex_gateway::shown;
use narthex_model::CatalogKind;
use narthex_runs::RunSearch;
use serde_json::Value;

use super::{
    agents,
    answer::{self, Answered},
    catalog,
    frame::{Head, frame},
    page::Page,
    rows, settings,
    viewer::Viewer,
    waits::Waits,
};
use crate::{
    Access,
    deciding::approval_path,
    problem::Problem,
    routes::{AUDIT, AUTHOR, EVERY, NAMES, SEE_RUNS},
};

/// The page.
pub(super) const PAGES: &[Page] =
    &[Page::get("search", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))];

/// Number of results of one kind.
const SHOWN: usize = 20;
/// Number of entries of the catalog that are searched; its page searches all.
const CATALOG: u32 = 1_000;
/// Number of the newest runs that are looked at.
const RUNS: u32 = 200;
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
    ("Catalog", |viewer, text| Box::pin(entries(viewer, text))),
    ("Agents", |viewer, text| Box::pin(agents::agents(viewer, text))),
    ("Capabilities", |viewer, text| Box::pin(agents::capabilities(viewer, text))),
    ("Requests", |viewer, text| Box::pin(requests(viewer, text))),
    ("Secrets", |viewer, text| Box::pin(secrets(viewer, text))),
    ("Runs", |viewer, text| Box::pin(runs(viewer, text))),
    ("Clients", |viewer, text| Box::pin(async move { clients(viewer, text) })),
    ("Settings", |viewer, text| Box::pin(settings::found(viewer, text))),
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
        href: rows::page(viewer, &row.name),
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
                let path = rows::path(viewer, &row.name, "tools");
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("q", &entry.key);
                found.push(Found {
                    href: format!("{path}?{}", query.finish()),
                    name: Words::new(&entry.key),
                    about: Words::new(&format!("a tool of {}", row.name)),
                });
            }
        }
    }
    found
}

/// The servers of the catalog, for those who may list them.
async fn entries(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    if !viewer.may(Access::Member(AUTHOR)) {
        return Ok(Vec::new());
    }
    let (control, kind) = (viewer.control(), CatalogKind::Server);
    let page = control.catalog_list(&viewer.workspace, kind, "", CATALOG).await?;
    let found = page.items.iter().filter_map(|object| {
        let definition = object.definition.as_ref();
        let name = definition.and_then(|one| one.get("name")).and_then(Value::as_str);
        let name = name.unwrap_or(&object.id);
        let has = |words: &str| words.to_lowercase().contains(text);
        (has(&object.id) || has(name)).then(|| Found {
            href: catalog::path(viewer, &object.id, ""),
            name: Words::new(&object.id),
            about: Words::new(&format!("a server of the catalog: {name}")),
        })
    });
    Ok(found.take(SHOWN + 1).collect())
}

async fn requests(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    let waits = Waits::read(viewer).await?;
    let found = waits.requests.iter().filter_map(|row| {
        let agent = row.agent.as_ref()?.to_string();
        let found = Found {
            href: approval_path(&row.workspace, &row.id.to_text()),
            name: Words::new(&agent),
            about: Words::new("an agent that waits for a decision"),
        };
        agent.to_lowercase().contains(text).then_some(found)
    });
    Ok(found.take(SHOWN + 1).collect())
}

/// The names of secrets that are set.
async fn secrets(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    if !viewer.may(Access::Member(NAMES)) || viewer.control().vault().is_err() {
        return Ok(Vec::new());
    }
    let all = viewer.control().secrets(&viewer.workspace).await?;
    let named = all.iter().filter(|one| one.is_set());
    let named = named.filter(|one| one.name.as_str().to_lowercase().contains(text));
    let found = named.map(|one| Found {
        href: viewer.path(&format!("secrets?q={}", one.name.as_str())),
        name: Words::new(one.name.as_str()),
        about: Words::new("a secret"),
    });
    Ok(found.take(SHOWN + 1).collect())
}

/// The newest runs by their agent or an id.
async fn runs(viewer: &Viewer<'_>, text: &str) -> Result<Vec<Found>, Problem> {
    let Some(runs) = &viewer.door.options.runs else { return Ok(Vec::new()) };
    if !viewer.may(Access::Member(SEE_RUNS)) {
        return Ok(Vec::new());
    }
    let page = runs.newest(&viewer.workspace, &RunSearch::default(), u64::MAX, RUNS).await?;
    let found = page.items.iter().filter_map(|run| {
        let row = run.row.as_ref()?;
        let (id, session) = (row.id.to_text(), row.session.to_text());
        let names = [&row.agent, &id, &session].map(|name| name.to_lowercase());
        let is_named = names.iter().any(|name| name.contains(text));
        is_named.then(|| Found {
            href: viewer.path(&format!("runs/{id}")),
            name: Words::new(&format!("{} {}", row.pid, row.agent)),
            about: Words::new(&format!("a run, {}", run.status().as_str())),
        })
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
