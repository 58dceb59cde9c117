//! Connected services: the servers of this daemon's configuration, and the actions of their rows.

mod add;
mod described;
mod verbs;

use http::StatusCode;
use narthex_console::{
    html,
    pages::servers::{ServerFilters, ServerList, ServerRow, ServerRowPart, ServersPage},
    parts::{Action, Empty, Filter, Same, Words},
};
use narthex_model::{ErrorKind, ServerState, command::narthex};

use super::{
    answer::{self, Answered},
    frame::{self, Head, frame},
    live::{self, Follows, Fragment, Live, Topic},
    page::Page,
    rows::{self, UNREADY},
    viewer::Viewer,
};
use crate::{Access, problem::Problem, servers::Query};

/// The list, and the actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("servers", Access::Shared, |viewer, _| Box::pin(list(viewer)))
        .in_nav("Connected services", "plug"),
    Page::get("add-server", Access::Operator, |viewer, _| Box::pin(add::show(viewer))),
    Page::post("add-server", Access::Operator, |viewer, body| Box::pin(add::add(viewer, body))),
    Page::post("reload", Access::Operator, |viewer, body| Box::pin(verbs::reload(viewer, body))),
    Page::post("servers/{name}/disable", Access::Operator, |viewer, body| {
        Box::pin(verbs::disable(viewer, body))
    }),
    Page::post("servers/{name}/enable", Access::Operator, |viewer, body| {
        Box::pin(verbs::enable(viewer, body))
    }),
    Page::post("servers/{name}/reconnect", Access::Operator, |viewer, body| {
        Box::pin(verbs::reconnect(viewer, body))
    }),
    Page::post("servers/{name}/test", Access::Operator, |viewer, body| {
        Box::pin(verbs::test(viewer, body))
    }),
    Page::post("servers/{name}/authorize", Access::Operator, |viewer, body| {
        Box::pin(verbs::authorize(viewer, body))
    }),
    Page::post("servers/{name}/reauthorize", Access::Operator, |viewer, body| {
        Box::pin(verbs::reauthorize(viewer, body))
    }),
];

/// The live part of the list.
pub(super) const TOPIC: Topic = Topic {
    name: "servers",
    access: Access::Shared,
    params: &["q", "state", "after"],
    follows: Follows::Servers,
    parts: |viewer, query| Box::pin(async move { parts(viewer, query) }),
};

/// Number of rows of one page, which keeps the page under 100 KB.
const PAGE: usize = 40;
/// The states in the order of the filters.
const STATES: [ServerState; 5] = [
    ServerState::Ready,
    ServerState::Connecting,
    ServerState::Authenticating,
    ServerState::Error,
    ServerState::Disabled,
];

/// The parameters of the address: the filters, the place of the page, and the last action.
const KNOWN: [&str; 5] = ["q", "state", "after", "done", "name"];

async fn list(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let list = read(viewer, &query)?;
    let head = Head {
        title: Words::new("Connected services"),
        sentence: "The servers of this daemon's configuration: whether they work, and what mends \
                   them.",
        same: Some(Same::new(&narthex("mcp list", &[]).to_string(), "GET /api/servers")),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = rows::told(query.text("done"), query.subject());
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: parts_of(viewer, &list) }];
    frame.live = Some(live::address(viewer, live, &query));
    let (filtered, path) = (query.text("q").to_owned(), viewer.path("servers"));
    let add = may_add(viewer).then(|| viewer.path("add-server"));
    let page = ServersPage { frame, list, filtered, path, add, reload: reload(viewer) };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// True if the human may add a server to the configuration.
fn may_add(viewer: &Viewer<'_>) -> bool {
    viewer.sees_servers() && viewer.may(Access::Operator)
}

/// The button that reads the files of the configuration anew.
fn reload(viewer: &Viewer<'_>) -> Option<Action> {
    let hint = "changes in the files count at once; files that are followed are read by themselves";
    viewer.sees_servers().then(|| Action::new(viewer.path("reload"), "Read the files again", hint))
}

fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    Ok(parts_of(viewer, &read(viewer, query)?))
}

fn parts_of(viewer: &Viewer<'_>, list: &ServerList) -> Vec<Fragment> {
    let key: Vec<_> = list.rows.iter().map(|row| row.id.clone()).collect();
    let key = (key, list.count, list.next.clone());
    let filters = html(&list.filters);
    let rows: Vec<_> = list.rows.iter().map(|row| part(viewer, row.clone())).collect();
    let mut all = vec![
        Fragment::new("server-filters", filters),
        Fragment::around("servers", html(list), &key),
    ];
    all.extend(rows);
    all
}

fn part(viewer: &Viewer<'_>, row: ServerRow) -> Fragment {
    let id = row.id.clone();
    Fragment::new(id, html(&ServerRowPart { csrf: viewer.csrf.clone(), row }))
}

fn read(viewer: &Viewer<'_>, query: &Query) -> Result<ServerList, Problem> {
    let state = state(query)?;
    let (part, after) = (query.text("q").to_lowercase(), query.text("after"));
    let snapshot = viewer.door.gateway.registry().snapshot();
    let named =
        |(_, row): &(String, &narthex_registry::ServerRow)| row.name.to_lowercase().contains(&part);
    let named: Vec<_> = rows::seen(viewer, &snapshot).into_iter().filter(named).collect();
    let count = |wanted| named.iter().filter(|(_, row)| row.state == wanted).count();
    let counts = STATES.map(|state| (state, count(state)));
    let unready = named.iter().filter(|(_, row)| Of::Unready.has(row)).count();
    let is_wanted =
        |(_, row): &&(String, &narthex_registry::ServerRow)| state.is_none_or(|of| of.has(row));
    let fitting: Vec<_> = named.iter().filter(is_wanted).collect();
    let mut rest = fitting.iter().filter(|(place, _)| place.as_str() > after);
    let shown: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(shown.last()).map(|(place, _)| {
        address(viewer, &[("q", query.text("q")), ("state", query.text("state")), ("after", place)])
    });
    Ok(ServerList {
        csrf: viewer.csrf.clone(),
        filters: filters(viewer, query, &counts, unready),
        rows: shown.iter().map(|(place, row)| rows::row(viewer, place, row)).collect(),
        count: fitting.len(),
        next,
        empty: empty(viewer, named.is_empty() && part.is_empty()),
    })
}

/// The servers of a filter.
#[derive(Debug, Clone, Copy)]
enum Of {
    State(ServerState),
    Unready,
}

impl Of {
    fn has(self, row: &narthex_registry::ServerRow) -> bool {
        match self {
            Self::State(state) => row.state == state,
            Self::Unready => {
                !row.is_overridden && !row.is_ready() && row.state != ServerState::Disabled
            }
        }
    }
}

fn state(query: &Query) -> Result<Option<Of>, Problem> {
    match query.text("state") {
        "" => Ok(None),
        UNREADY => Ok(Some(Of::Unready)),
        word => {
            let found = STATES.into_iter().find(|state| state.as_str() == word);
            let text = "this state is not known; choose one of the filters above the list";
            let found = found.map(|state| Some(Of::State(state)));
            found.ok_or_else(|| Problem::new(ErrorKind::Invalid, text))
        }
    }
}

fn filters(
    viewer: &Viewer<'_>,
    query: &Query,
    counts: &[(ServerState, usize)],
    unready: usize,
) -> ServerFilters {
    let chosen = query.text("state");
    let filter = |word: &str, label: &str, count| Filter {
        href: address(viewer, &[("q", query.text("q")), ("state", word)]),
        label: label.to_owned(),
        count: Some(count),
        is_current: chosen == word,
    };
    let all = filter("", "all", counts.iter().map(|(_, count)| count).sum());
    let each = counts.iter().filter(|(state, count)| *count > 0 || state.as_str() == chosen);
    let each = each.map(|(state, count)| filter(state.as_str(), state.as_str(), *count));
    let mut filters: Vec<_> = std::iter::once(all).chain(each).collect();
    if unready > 0 || chosen == UNREADY {
        filters.push(filter(UNREADY, "not ready", unready));
    }
    let part = query.text("q");
    if !part.is_empty() {
        let label = format!("named “{}” ✕", Words::within(part, 40));
        let href = address(viewer, &[("state", chosen)]);
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    ServerFilters { filters }
}

/// The address of the list with these parameters; empty ones are left out.
fn address(viewer: &Viewer<'_>, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path("servers"),
        query => viewer.path(&format!("servers?{query}")),
    }
}

fn empty(viewer: &Viewer<'_>, is_whole: bool) -> Empty {
    let home = viewer.control().home();
    if !viewer.sees_servers() {
        return Empty {
            title: "No servers in this workspace",
            sentence: format!(
                "The servers of this daemon's configuration belong to the workspace {home}. Runs \
                 of this workspace get theirs from its catalog."
            ),
            example: Some(
                narthex("servers list", &[]).in_workspace(viewer.workspace.as_str()).to_string(),
            ),
            page: Some("docs/guides/catalog.md"),
        };
    }
    match is_whole {
        true => Empty {
            title: "No servers yet",
            sentence:
                "A server is a program or an address that has tools for your agents. Servers \
                       of the Catalog start with the runs of agents, and are not shown here."
                    .to_owned(),
            example: Some(narthex("mcp add git -- uvx mcp-server-git", &[]).to_string()),
            page: Some("docs/guides/find-servers.md"),
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
