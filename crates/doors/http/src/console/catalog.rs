//! The catalog: the servers of a workspace that agents attach, their forms, and their removal.

mod after;
mod draft;
mod edit;
mod entry;
mod fields;
mod from_definition;
mod paste;
mod paths;
mod remove;
mod saving;
mod to_definition;
mod value;

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::catalog::{CatalogPage, FileServers},
    parts::{Empty, Filter, Same, Words},
};
use narthex_control::{CatalogObject, CatalogServers};
use narthex_model::command::narthex;
use serde_json::Value;

pub(super) use self::paths::path;
use self::{
    draft::Shape,
    paths::{CHANGE, READ, is_first, row, sees_all, target},
    value::is_disabled,
};
use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    viewer::Viewer,
};
use crate::servers::Query;

/// The list, an entry, its form, and its removal.
pub(super) const PAGES: &[Page] = &[
    Page::get("catalog", READ, |viewer, _| Box::pin(list(viewer))).in_nav("Catalog", "layers"),
    Page::get("catalog/new", CHANGE, |viewer, _| Box::pin(edit::new(viewer))),
    Page::post("catalog/new/save", CHANGE, |viewer, body| Box::pin(edit::add(viewer, body))),
    Page::get("catalog/{entry}", READ, |viewer, _| Box::pin(entry::show(viewer))),
    Page::get("catalog/{entry}/edit", CHANGE, |viewer, _| Box::pin(edit::open(viewer))),
    Page::post("catalog/{entry}/save", CHANGE, |viewer, body| Box::pin(edit::save(viewer, body))),
    Page::post("catalog/{entry}/enable", CHANGE, |viewer, body| {
        Box::pin(edit::enable(viewer, body))
    }),
    Page::get("catalog/{entry}/remove", CHANGE, |viewer, _| Box::pin(remove::ask(viewer))),
    Page::post("catalog/{entry}/delete", CHANGE, |viewer, body| {
        Box::pin(remove::delete(viewer, body))
    }),
];

/// Number of rows of one page, which keeps the page under 100 KB.
const PAGE: usize = 40;
/// The parameters of the address: the filters, the place of the page, and the last action.
const KNOWN: [&str; 5] = ["q", "is", "after", "done", "name"];
/// The filters beside those by shape.
const STATES: [(&str, &str); 4] = [
    ("draft", "draft"),
    ("disabled", "disabled"),
    ("unusable", "cannot be used"),
    ("unused", "not attached"),
];

async fn list(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let all = viewer.control().catalog_servers(&viewer.workspace).await?;
    let command = narthex("servers list", &[]).in_workspace(&viewer.workspace);
    let request = format!("GET /api/workspaces/{}/mcp-servers", viewer.workspace);
    let head = Head {
        title: Words::new("Catalog"),
        sentence: "The servers that agents of this workspace attach. They start with a run, and \
                   Connected services has those of your clients.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let part = query.text("q").to_lowercase();
    let named: Vec<_> =
        all.servers.iter().filter(|object| is_named(viewer, object, &part)).collect();
    let wanted = query.text("is");
    let is_wanted =
        |object: &&&CatalogObject| wanted.is_empty() || fits(viewer, object, &all, wanted);
    let fitting: Vec<_> = named.iter().filter(is_wanted).collect();
    let mut rest = fitting.iter().filter(|object| object.id.as_str() > query.text("after"));
    let shown: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(shown.last()).map(|last| {
        address(viewer, &[("q", query.text("q")), ("is", wanted), ("after", &last.id)])
    });
    let users = |object: &CatalogObject| all.users.get(&object.id).map_or(&[][..], Vec::as_slice);
    let page = CatalogPage {
        frame,
        filtered: Words::within(query.text("q"), 200),
        path: viewer.path("catalog"),
        add: viewer.may(CHANGE).then(|| viewer.path("catalog/new")),
        filters: filters(viewer, &query, &named, &all),
        rows: shown.iter().map(|object| row(viewer, object, users(object))).collect(),
        count: fitting.len(),
        next,
        files: files(viewer),
        empty: empty(viewer, all.servers.is_empty()),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// True if the id, the name or the target has a text. Only those who see a target find it.
fn is_named(viewer: &Viewer<'_>, object: &CatalogObject, part: &str) -> bool {
    let definition = object.definition.as_ref().unwrap_or(&Value::Null);
    let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
    let has = |text: &str| text.to_lowercase().contains(part);
    has(&object.id)
        || has(name)
        || sees_all(viewer) && target(definition).is_some_and(|target| has(&target))
}

/// True if a filter keeps an entry. The filters by shape are for those who see shapes.
fn fits(viewer: &Viewer<'_>, object: &CatalogObject, all: &CatalogServers, filter: &str) -> bool {
    let definition = object.definition.as_ref().unwrap_or(&Value::Null);
    match filter {
        "unused" => !all.users.contains_key(&object.id),
        _ if !sees_all(viewer) => false,
        "draft" => is_disabled(definition) && is_first(object),
        "disabled" => is_disabled(definition),
        "unusable" => !object.errors.is_empty(),
        shape => Shape::of(definition).is_some_and(|found| found.word() == shape),
    }
}

/// The filters that keep at least one entry, and the one that is set.
fn filters(
    viewer: &Viewer<'_>,
    query: &Query,
    named: &[&CatalogObject],
    all: &CatalogServers,
) -> Vec<Filter> {
    let (part, chosen) = (query.text("q"), query.text("is"));
    let filter = |word: &str, label: &str, count: usize| Filter {
        href: address(viewer, &[("q", part), ("is", word)]),
        label: label.to_owned(),
        count: Some(count),
        is_current: chosen == word,
    };
    let shapes = Shape::ALL.into_iter().map(|shape| (shape.word(), shape.label()));
    let each = shapes.chain(STATES).filter_map(|(word, label)| {
        let count = named.iter().filter(|object| fits(viewer, object, all, word)).count();
        (count > 0 || word == chosen).then(|| filter(word, label, count))
    });
    let mut filters: Vec<_> = std::iter::once(filter("", "all", named.len())).chain(each).collect();
    if !part.is_empty() {
        let label = format!("with “{}” ✕", Words::within(part, 40));
        let href = address(viewer, &[("is", chosen)]);
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    filters
}

/// The address of the list with these parameters; empty ones are left out.
fn address(viewer: &Viewer<'_>, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path("catalog"),
        query => viewer.path(&format!("catalog?{query}")),
    }
}

/// The servers of the daemon's files, for those who see them.
fn files(viewer: &Viewer<'_>) -> Option<FileServers> {
    if !viewer.sees_servers() {
        return None;
    }
    let count = viewer.door.gateway.registry().snapshot().servers.len();
    (count > 0).then(|| FileServers { count, path: viewer.path("servers") })
}

fn empty(viewer: &Viewer<'_>, is_whole: bool) -> Empty {
    match is_whole {
        true => Empty {
            title: "No servers yet",
            sentence: "An entry says how a server is reached, and which configuration it takes. \
                       Agents attach it by its id."
                .to_owned(),
            example: Some(
                narthex("servers apply -f .vscode/mcp.json", &[])
                    .in_workspace(&viewer.workspace)
                    .to_string(),
            ),
            page: Some("docs/guides/catalog.md"),
        },
        false => Empty {
            title: "No server fits",
            sentence: "No server has this name and state. Take a filter away to see more."
                .to_owned(),
            example: None,
            page: None,
        },
    }
}

/// The sentence for an entry that was removed.
fn told(query: &Query) -> Option<Told> {
    let sentence = match query.text("done") {
        "removed" => format!("{} is removed.", query.subject()),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}
