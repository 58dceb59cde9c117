//! The page with the table of tools, and with the form that changes several.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::tools::{Batch, ToolRow, ToolsPage, Unknown},
    parts::{
        Empty, Filter, Moment, Same, Words,
        form::{Choice, Field, Input},
    },
};
use narthex_model::command::narthex;

use super::{
    act::{Act, fixed},
    calls::Calls,
    list::{Listed, Shown, Sort, State, Wanted},
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        rows,
        viewer::Viewer,
    },
    routes::RUN,
};

/// Number of rows of one page, which keeps the page under 100 KB.
const PAGE: usize = 50;
/// Maximum number of characters of a name and of a description in a row.
const NAME_MAX: usize = 80;
const DESCRIPTION_MAX: usize = 160;

/// The parts of the page that an action without effect shows again.
#[derive(Debug, Default)]
pub(super) struct Again {
    pub(super) act: Option<Act>,
    pub(super) scope: String,
    pub(super) fault: Option<String>,
    pub(super) is_whole: bool,
    pub(super) picked: Vec<String>,
    pub(super) told: Option<Told>,
}

/// The page with these filters.
pub(super) async fn page(
    viewer: &Viewer<'_>,
    wanted: &Wanted,
    again: Again,
    status: StatusCode,
) -> Answered {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let listed = Listed::of(viewer, &snapshot, wanted);
    let (fitting, first) = (listed.tools.len(), wanted.page.saturating_mul(PAGE));
    let may_change = viewer.may(Access::Operator);
    let on_page = listed.tools.iter().skip(first).take(PAGE).enumerate();
    let calls = Calls::read(viewer).await;
    let rows = on_page.map(|(index, one)| {
        let called = calls.as_ref().and_then(|calls| calls.last_of(&one.row.name, one.name));
        ToolRow { called: called.map(Moment::new), ..row(viewer, one, index, &again) }
    });
    let rows = rows.collect();
    let mut frame = frame(viewer, head()).await?;
    frame.told = again.told.clone();
    let page = ToolsPage {
        frame,
        path: viewer.path("tools"),
        filtered: wanted.text.clone(),
        kept: wanted.kept(),
        filters: filters(viewer, wanted, &listed),
        sorts: sorts(viewer, wanted),
        rows,
        looked_at: calls.as_ref().map(|calls| calls.count),
        fitting,
        all: listed.all,
        previous: wanted.page.checked_sub(1).map(|page| wanted.on_page(page).address(viewer)),
        next: (first.saturating_add(PAGE) < fitting)
            .then(|| wanted.on_page(wanted.page.saturating_add(1)).address(viewer)),
        unknown: (listed.unknown > 0)
            .then(|| Unknown { count: listed.unknown, href: unready(viewer) }),
        batch: may_change.then(|| batch(viewer, fitting, &again)),
        empty: empty(viewer, &listed),
    };
    Ok(answer::page(status, html(&page)))
}

fn head() -> Head {
    Head {
        title: Words::new("Tools"),
        sentence: "The tools of all servers: what callers see, what it requires, and its size.",
        same: Some(Same::new(&narthex("tools", &[]).to_string(), "GET /api/tools")),
    }
}

fn row(viewer: &Viewer<'_>, one: &Shown<'_>, index: usize, again: &Again) -> ToolRow {
    let name = &one.row.name;
    let pick = one.pick();
    let calls = viewer.may(Access::Member(RUN)) && one.is_visible();
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.append_pair("server", name).append_pair("tool", one.name);
    let try_href = calls.then(|| viewer.path(&format!("play?{}", written.finish())));
    ToolRow {
        index,
        is_picked: again.picked.contains(&pick),
        pick,
        name: Words::within(one.name, NAME_MAX),
        server: Words::within(name, NAME_MAX),
        server_href: server_href(viewer, name, one.name),
        description: Words::within(&one.description(), DESCRIPTION_MAX),
        state: one.state.word(),
        scopes: one.scopes().iter().map(|scope| Words::new(scope.as_str())).collect(),
        hints: one.hints(),
        called: None,
        tokens: one.tokens(),
        try_href,
        off: fixed(one.row).map(|why| Words::new(&why)),
    }
}

/// The list of the servers that are not ready.
fn unready(viewer: &Viewer<'_>) -> String {
    viewer.path(&format!("servers?state={}", rows::UNREADY))
}

/// The tool on the page of its server.
fn server_href(viewer: &Viewer<'_>, name: &str, tool: &str) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.append_pair("q", tool);
    format!("{}?{}", rows::path(viewer, name, "tools"), written.finish())
}

fn filters(viewer: &Viewer<'_>, wanted: &Wanted, listed: &Listed<'_>) -> Vec<Filter> {
    let filter = |word: &str, count| Filter {
        href: wanted.in_state(word).address(viewer),
        label: if word.is_empty() { "all" } else { word }.to_owned(),
        count: Some(count),
        is_current: wanted.state.map_or("", State::filter) == word,
    };
    let all = filter("", listed.in_states.iter().map(|(_, count)| count).sum());
    let each = listed.in_states.iter().map(|(state, count)| filter(state.filter(), *count));
    let mut filters: Vec<_> = std::iter::once(all).chain(each).collect();
    let away = |label: String, href| Filter { href, label, count: None, is_current: true };
    if !wanted.text.is_empty() {
        let label = format!("with “{}” ✕", Words::within(&wanted.text, 40));
        filters.push(away(label, wanted.with_text("").address(viewer)));
    }
    if !wanted.server.is_empty() {
        let label = format!("of {} ✕", Words::within(&wanted.server, 40));
        filters.push(away(label, wanted.of_server("").address(viewer)));
    }
    filters
}

fn sorts(viewer: &Viewer<'_>, wanted: &Wanted) -> Vec<Filter> {
    let sort = |sort: Sort, label: &str| Filter {
        href: wanted.sorted(sort).address(viewer),
        label: label.to_owned(),
        count: None,
        is_current: wanted.sort == sort,
    };
    vec![
        sort(Sort::Server, "by server"),
        sort(Sort::Name, "by name"),
        sort(Sort::Size, "largest first"),
    ]
}

fn batch(viewer: &Viewer<'_>, fitting: usize, again: &Again) -> Batch {
    let options = Act::ALL.map(|act| Choice {
        value: act.word().to_owned(),
        label: Words::new(act.label()),
        is_chosen: again.act == Some(act),
    });
    let act = Input::Choice { options: options.into() };
    let scope = Input::Line { value: again.scope.clone(), example: "linear.write".to_owned() };
    let tools = if fitting == 1 { "The tool".to_owned() } else { format!("All {fitting} tools") };
    let verb = if fitting == 1 { "fits" } else { "fit" };
    let whole = format!("{tools} that {verb} the filters, on all pages");
    let rule = "Only for “require a scope”: at least two words with a dot between, such as \
                linear.write.";
    Batch {
        path: viewer.path("tools/change"),
        act: Field::new("act", "Change", act),
        scope: Field::new("scope", "Tool scope", scope).help(rule).fault(again.fault.as_deref()),
        whole: Field::new("whole", &whole, Input::Check { is_on: again.is_whole }),
    }
}

fn empty(viewer: &Viewer<'_>, listed: &Listed<'_>) -> Empty {
    let nothing = |title, sentence: &str| Empty {
        title,
        sentence: sentence.to_owned(),
        example: None,
        page: None,
    };
    if !viewer.sees_servers() {
        let list = narthex("servers list", &[]).in_workspace(viewer.workspace.as_str());
        return Empty {
            example: Some(list.to_string()),
            page: Some("docs/guides/catalog.md"),
            ..nothing(
                "No tools in this workspace",
                "Runs of this workspace get their servers from its catalog. The tools of a run \
                 are known once it has begun.",
            )
        };
    }
    match listed.all {
        0 => Empty {
            example: Some(narthex("mcp add git -- uvx mcp-server-git", &[]).to_string()),
            page: Some("docs/guides/find-servers.md"),
            ..nothing("No tools yet", "A server is a program or an address that has tools.")
        },
        _ => nothing("No tool fits", "Take a filter away to see more."),
    }
}
