//! The registry of others: finds servers, and adds them to the catalog as drafts.

mod add;
mod finder;
mod places;
mod server;

use http::StatusCode;
use narthex_console::{
    html,
    pages::registry::{FoundList, FoundRow, RegistryPage, SearchResult},
    parts::{Empty, Same, Words},
};
use narthex_model::command::narthex;

use self::{
    add::added,
    finder::{asked, failed},
    places::{SERVERS, address, of_server, pairs},
};
use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    viewer::Viewer,
};
use crate::{Access, FoundServer, FoundServers, PublicServers, routes::ADMIN};

/// The search, one server, and the action. Only those who add servers make the daemon ask.
pub(super) const PAGES: &[Page] = &[
    Page::get("registry", Access::Member(ADMIN), |viewer, _| Box::pin(search(viewer)))
        .in_nav("Registry", "search"),
    Page::get("registry/server", Access::Member(ADMIN), |viewer, _| Box::pin(server::show(viewer))),
    Page::post("registry/add", Access::Member(ADMIN), |viewer, body| {
        Box::pin(add::add(viewer, body))
    }),
];

/// Number of servers of one page.
const PAGE: usize = 40;
/// Maximum number of characters of the searched words.
const WORDS_MAX: usize = 200;

async fn search(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["q", "after", "added"])?;
    let words: String = query.text("q").trim().chars().take(WORDS_MAX).collect();
    let registry = asked(viewer);
    let result = match (&registry, words.is_empty()) {
        (_, true) => None,
        (Ok(registry), false) => Some(match registry.search(&words).await {
            Ok(found) => SearchResult::Found(list(viewer, &found, &words, query.text("after"))),
            Err(fault) => SearchResult::Failed(failed(fault, address(viewer, &[("q", &words)]))),
        }),
        (Err(fault), false) => {
            let again = address(viewer, &[("q", &words)]);
            Some(SearchResult::Failed(failed(fault.clone(), again)))
        }
    };
    let at = registry.map_or_else(|fault| fault.sentence, PublicServers::address);
    let shown = if words.is_empty() { "WORDS" } else { &words };
    let command = narthex("search {}", &[&shown]).to_string();
    let head = Head {
        title: Words::new("Registry"),
        sentence: "Servers of others, to add to the catalog of this workspace.",
        same: Some(Same::new(
            &command,
            &format!("GET {at}{SERVERS}?{}", pairs(&[("search", shown)])),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = Some(query.text("added")).filter(|id| !id.is_empty()).map(added);
    let page = RegistryPage {
        frame,
        registry: Words::new(&at),
        words,
        path: viewer.path("registry"),
        result,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn list(viewer: &Viewer<'_>, found: &FoundServers, words: &str, after: &str) -> FoundList {
    let mut rest = found.servers.iter().filter(|one| one.name.as_str() > after);
    let shown: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(shown.last());
    let next = next.map(|last| address(viewer, &[("q", words), ("after", &last.name)]));
    FoundList {
        rows: shown.iter().map(|one| row(viewer, one)).collect(),
        count: found.servers.len(),
        next,
        is_cut: found.is_cut,
        unread: found.unread,
        empty: Empty {
            title: "No server has these words",
            sentence: "A registry compares names: search for another word of the server's name."
                .to_owned(),
            example: None,
            page: Some("docs/guides/find-servers.md"),
        },
    }
}

fn row(viewer: &Viewer<'_>, one: &FoundServer) -> FoundRow {
    let mut kinds: Vec<_> = one.ways.iter().map(|way| way.kind).collect();
    kinds.dedup();
    FoundRow {
        name: Words::within(&one.name, 200),
        href: of_server(viewer, &one.name, &one.version),
        version: Words::within(&one.version, 60),
        publisher: Words::within(&one.publisher, 200),
        description: Words::within(&one.description, 300),
        status: one.status.as_deref().map(|status| Words::within(status, 120)),
        ways: Words::new(&kinds.join(", ")),
    }
}
