//! The tools of a server: as a page, and as a part of its row.

use std::{cmp::Ordering, collections::BTreeMap};

use http::StatusCode;
use narthex_console::{
    html,
    pages::server::tools::{ServerToolsPage, Standing, Tool, ToolList, Tools},
    parts::{Filter, Same, Words},
};
use narthex_gateway::shown;
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::ServerRow;
use narthex_wire::{Raw, estimated_tokens};

use super::spot::{self, Tabbed};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live::{self, Follows, Fragment, Live, SERVER, Topic},
        viewer::Viewer,
    },
    problem::Problem,
    servers::Query,
};

/// The live part of the page.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "tools",
    access: Access::Shared,
    params: &[SERVER, "q", "show", "after"],
    follows: Follows::Servers,
    parts: |viewer, query| Box::pin(async move { parts(viewer, query) }),
};

/// Number of tools of one page, which keeps the page under 100 KB.
const PAGE: usize = 40;
/// Maximum number of characters of a description.
const DESCRIPTION_MAX: usize = 300;
/// Maximum number of arguments that are named.
const ARGUMENTS: usize = 8;
/// Maximum number of characters of an argument's name.
const ARGUMENT_MAX: usize = 60;
/// The field of the entry with the tool scopes of tools.
const TOOL_SCOPES: &str = "tool_scopes";

/// A tool that the server lists, or that its entry names.
struct Known {
    name: String,
    standing: Standing,
    /// The definition, as the server lists it.
    raw: Vec<u8>,
    reason: Option<String>,
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let name = viewer.segment(0);
    let query = viewer.query(&["q", "show", "after"])?.with(SERVER, &name);
    let (_, row) = spot::find(viewer, &name)?;
    let path = Tabbed::Tools.path(viewer, &name);
    let list = read(&row, &path, &query)?;
    if viewer.wants_part() {
        return Ok(answer::page(StatusCode::OK, html(&list.tools)));
    }
    let request = format!("GET /api/servers/{name}?tools=true");
    let head = Head {
        title: Words::new(&format!("Tools of {name}")),
        sentence: "Each tool by the server's own name, and whether callers see it.",
        same: Some(Same::new(&narthex("tools {}", &[&name]).to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: vec![drawn_list(&list)] }];
    frame.live = Some(live::address(viewer, live, &query));
    let page = ServerToolsPage {
        frame,
        tabs: spot::tabs(viewer, &row, Tabbed::Tools),
        filtered: query.text("q").to_owned(),
        standing: query.text("show").to_owned(),
        path,
        list,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let name = query.text(SERVER);
    let (_, row) = spot::find(viewer, name)?;
    let path = Tabbed::Tools.path(viewer, name);
    Ok(vec![drawn_list(&read(&row, &path, query)?)])
}

fn drawn_list(list: &ToolList) -> Fragment {
    Fragment::new("server-tools", html(list))
}

fn read(row: &ServerRow, path: &str, query: &Query) -> Result<ToolList, Problem> {
    let (part, after) = (query.text("q").to_lowercase(), query.text("after"));
    let wanted = wanted(query)?;
    let mut all = known(row);
    all.retain(|tool| tool.name.to_lowercase().contains(&part));
    let filters = filters(path, query, &all);
    let fits = |tool: &&Known| wanted.is_none_or(|standing| tool.standing == standing);
    let fitting: Vec<_> = all.iter().filter(fits).collect();
    let mut rest = fitting.iter().filter(|tool| tool.name.as_str() > after);
    let page: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(page.last()).map(|last| {
        let (q, show) = (query.text("q"), query.text("show"));
        spot::with(path, &[("q", q), ("show", show), ("after", &last.name)])
    });
    let unlisted = row.inventory.unlisted_tools();
    let tools = Tools {
        fault: unlisted.map(|why| Words::new(&format!("The tools could not be listed: {why}"))),
        tools: page.iter().map(|tool| drawn(row, tool)).collect(),
        count: fitting.len(),
        next,
        none: none(row, all.is_empty() && part.is_empty()),
    };
    Ok(ToolList { filters, tools })
}

fn none(row: &ServerRow, is_whole: bool) -> &'static str {
    match (row.is_ready(), is_whole) {
        (true, true) => "The server lists no tools.",
        (false, true) => "The server is not ready, so that its tools are unknown now.",
        (_, false) => "No tool fits. Take a filter away to see more.",
    }
}

fn wanted(query: &Query) -> Result<Option<Standing>, Problem> {
    match query.text("show") {
        "" => Ok(None),
        word => {
            let found = Standing::ALL.into_iter().find(|standing| standing.word() == word);
            let text = "this filter is not known; choose one of those above the list";
            found.map(Some).ok_or_else(|| Problem::new(ErrorKind::Invalid, text))
        }
    }
}

fn filters(path: &str, query: &Query, all: &[Known]) -> Vec<Filter> {
    let (part, chosen) = (query.text("q"), query.text("show"));
    let filter = |word: &str, label: &str, count| Filter {
        href: spot::with(path, &[("q", part), ("show", word)]),
        label: label.to_owned(),
        count: Some(count),
        is_current: chosen == word,
    };
    let each = Standing::ALL.into_iter().filter_map(|standing| {
        let count = all.iter().filter(|tool| tool.standing == standing).count();
        let word = standing.word();
        (count > 0 || word == chosen).then(|| filter(word, word, count))
    });
    let mut filters: Vec<_> = std::iter::once(filter("", "all", all.len())).chain(each).collect();
    if !part.is_empty() {
        let label = format!("named “{}” ✕", Words::within(part, 40));
        let href = spot::with(path, &[("show", chosen)]);
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    filters
}

/// All tools by name: those that the server lists, or listed when it was ready, and those that the
/// entry gates without being listed.
fn known(row: &ServerRow) -> Vec<Known> {
    let visible = shown(row);
    let listed = row.pinned.as_ref().map_or(&row.inventory, |said| said.listed());
    let listed = if listed.tools.is_empty() { &row.had } else { listed };
    // If two tools have one name, the first counts.
    let mut all: BTreeMap<&str, Known> = BTreeMap::new();
    for entry in &listed.tools {
        let is_visible = visible.tool(&entry.key).is_some();
        let standing = standing(row, &entry.key, is_visible);
        all.entry(&entry.key).or_insert_with(|| Known {
            name: entry.key.to_string(),
            standing,
            raw: entry.raw.to_vec(),
            reason: reason(row, standing),
        });
    }
    let mut all: Vec<_> = all.into_values().collect();
    if row.is_ready() {
        let gates = row.unmatched().into_iter().filter(|gate| gate.field == TOOL_SCOPES);
        all.extend(gates.map(|gate| Known {
            reason: Some(gate.to_string()),
            name: gate.name,
            standing: Standing::Absent,
            raw: Vec::new(),
        }));
        all.sort_by(by_name);
    }
    all
}

fn by_name(one: &Known, other: &Known) -> Ordering {
    one.name.cmp(&other.name)
}

fn standing(row: &ServerRow, name: &str, is_visible: bool) -> Standing {
    let exposed = row.definition.as_ref().map(|definition| &definition.exposed.tools);
    match (row.is_ready(), is_visible) {
        (false, _) => Standing::Unknown,
        (true, true) => Standing::Visible,
        (true, false) if exposed.is_some_and(|rule| !rule.lets(name)) => Standing::Off,
        (true, false) => Standing::Withheld,
    }
}

/// The reason why callers do not see a tool, in words.
fn reason(row: &ServerRow, standing: Standing) -> Option<String> {
    match standing {
        Standing::Visible | Standing::Absent => None,
        Standing::Withheld => Some(
            "its definition is under review, or was rejected: see Definition differences"
                .to_owned(),
        ),
        Standing::Off => {
            Some("the rule `tools` of the entry hides it: see Configuration".to_owned())
        }
        Standing::Unknown => Some(format!(
            "the server is {}: this is its list from when it was ready",
            row.state.as_str()
        )),
    }
}

/// A tool for the page.
fn drawn(row: &ServerRow, tool: &Known) -> Tool {
    let raw = Raw::new(&tool.raw);
    let annotations = raw.get("annotations");
    let own = raw.get("title").and_then(Raw::as_str);
    let title = own.or_else(|| annotations?.get("title").and_then(Raw::as_str));
    let description = raw.get("description").and_then(Raw::as_str);
    let definition = row.definition.as_ref();
    let scopes = definition.map(|definition| definition.gates.of_tool(&tool.name));
    let (arguments, more_arguments) = arguments(raw);
    Tool {
        name: Words::new(&tool.name),
        title: title.map(|title| Words::within(&title, DESCRIPTION_MAX)),
        description: Words::within(&description.unwrap_or_default(), DESCRIPTION_MAX),
        standing: tool.standing,
        reason: tool.reason.as_deref().map(Words::new),
        claims: annotations.map(claims).unwrap_or_default(),
        arguments,
        more_arguments,
        scopes: scopes.into_iter().flatten().map(ToString::to_string).collect(),
        tokens: (!tool.raw.is_empty()).then(|| estimated_tokens(&tool.raw)),
    }
}

/// The server's claims about a tool, which relax nothing (S25).
fn claims(annotations: Raw<'_>) -> Vec<&'static str> {
    const CLAIMS: [(&str, bool, &str); 7] = [
        ("readOnlyHint", true, "it only reads"),
        ("readOnlyHint", false, "it changes something"),
        ("destructiveHint", true, "it may destroy something"),
        ("destructiveHint", false, "it destroys nothing"),
        ("idempotentHint", true, "a second call changes nothing more"),
        ("openWorldHint", true, "it reaches other systems"),
        ("openWorldHint", false, "it reaches no other system"),
    ];
    let says = |name: &str| annotations.get(name).and_then(Raw::as_bool);
    let said = CLAIMS.iter().filter(|(name, value, _)| says(name) == Some(*value));
    said.map(|(_, _, words)| *words).collect()
}

/// The names of a tool's arguments, and the number of further ones.
fn arguments(raw: Raw<'_>) -> (Vec<Words>, usize) {
    let properties = raw.get("inputSchema").and_then(|schema| schema.get("properties"));
    let names = properties.map(Raw::entries).unwrap_or_default();
    let shown = names.iter().take(ARGUMENTS).map(|(name, _)| Words::within(name, ARGUMENT_MAX));
    (shown.collect(), names.len().saturating_sub(ARGUMENTS))
}
