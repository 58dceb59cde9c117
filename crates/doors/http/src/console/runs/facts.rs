//! The tools that a run could see, and its frozen configuration as far as the API shows it.

use http::StatusCode;
use narthex_audit::{ToolSet, kind};
use narthex_console::{
    html,
    pages::runs::tabs::{ConfigPage, Fact, Hidden, RunServer, SeenTool, SeenTools, ToolsPage},
    parts::{Moment, Same, State, Words},
};
use narthex_control::AuditQuery;
use narthex_gateway::{RunView, shown};
use narthex_model::{Pid, command::narthex};
use narthex_policy::RunPolicy;
use narthex_registry::ServerRow;
use narthex_vfs::MountName;
use serde_json::Value;

use super::{
    one::{DIGITS, One},
    places::{path, queried},
    stored::agent,
    trace::AFTER_END,
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live,
        viewer::Viewer,
    },
    problem::Problem,
    routes::{AUDIT, SEE_CATALOG},
};

/// Number of tools of one page.
const PAGE: usize = 200;
/// Number of names of hidden tools of one server.
const NAMES: usize = 20;
/// Number of servers that a page shows.
const SERVERS: usize = 100;

/// The tools that a run sees, or saw.
pub(super) async fn tools(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after"])?;
    let one = One::of(viewer).await?;
    let head = head(
        viewer,
        &one,
        "What it could see",
        "The tools that were recorded for the run, and what it does not see.",
    );
    let mut frame = frame(viewer, head).await?;
    frame.related = one.related(viewer);
    let top = one.top(viewer);
    let live = vec![frame::live(&frame), One::live(&top)];
    frame.live = Some(live::address(viewer, live, &one.with_path(viewer.query(&["after"])?)));
    let view = one.run.view.as_deref();
    let after = query.text("after");
    let (tools, unknown) = match view.and_then(RunView::tools) {
        Some(set) => (Some(page_of(viewer, &one, &listed(&set), after)), ""),
        None => recorded(viewer, &one, after).await?,
    };
    let hidden = view.map_or_else(Vec::new, |view| hidden(viewer, view));
    let page = ToolsPage { frame, top, tabs: one.tabs(viewer, "tools"), tools, unknown, hidden };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn head(viewer: &Viewer<'_>, one: &One, of: &str, sentence: &'static str) -> Head {
    let request = format!("GET /api/workspaces/{}/runs/{}", viewer.workspace, one.id);
    let command = narthex("runs show {}", &[&one.id]).in_workspace(viewer.workspace.as_str());
    Head {
        title: Words::new(&format!("{of}: run {}", one.name())),
        sentence,
        same: Some(Same::new(&command.to_string(), &request)),
    }
}

/// A tool: its name, its server and the digest of its definition.
type Listed = (String, String, String);

fn listed(set: &ToolSet) -> Vec<Listed> {
    let tool = |tool: &narthex_audit::SeenTool| {
        (tool.name.to_string(), tool.server.to_string(), tool.digest.to_string())
    };
    set.tools.iter().map(tool).collect()
}

/// The tools of one page, in the order of their names.
fn page_of(viewer: &Viewer<'_>, one: &One, all: &[Listed], after: &str) -> SeenTools {
    let mut sorted: Vec<_> = all.iter().filter(|(name, ..)| name.as_str() > after).collect();
    sorted.sort();
    let has_more = sorted.len() > PAGE;
    sorted.truncate(PAGE);
    let next = sorted.last().filter(|_| has_more).map(|(name, ..)| {
        let query = queried(&[("after", name.clone())]);
        format!("{}?{query}", path(viewer, one.id, "tools"))
    });
    let row = |(name, server, digest): &&Listed| SeenTool {
        name: Words::new(name),
        server: Words::new(server),
        digest: Words::within(digest, 7 + DIGITS),
    };
    SeenTools { rows: sorted.iter().map(row).collect(), count: all.len(), at: None, next }
}

/// The tools that the audit has of a run that this process does not hold, or the reason why they
/// are unknown.
async fn recorded(
    viewer: &Viewer<'_>,
    one: &One,
    after: &str,
) -> Result<(Option<SeenTools>, &'static str), Problem> {
    if !viewer.may(Access::Member(AUDIT)) {
        let why = "Unknown here: the run has ended, or was not used since this daemon started. The \
                   audit has its tools; admins and auditors read it.";
        return Ok((None, why));
    }
    let Some(row) = &one.run.row else { return Ok((None, "Not recorded yet.")) };
    let query = AuditQuery {
        run: one.id.to_text(),
        kind: kind::TOOLS_SEEN.to_owned(),
        since: row.created_at,
        until: row.ended.map(|(at, _)| at + AFTER_END),
        ..AuditQuery::newest(Some(viewer.workspace.clone()), 1)
    };
    let found = viewer.control().audit_list(&query).await?;
    let Some(item) = found.items.first() else {
        return Ok((None, "No list of tools is recorded: the run was never used."));
    };
    let details = item.event.get("details");
    let tools = details.and_then(|details| details.get("tools")).and_then(Value::as_array);
    let tool = |tool: &Value| {
        let text = |name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
        Some((text("name")?, text("server")?, text("digest").unwrap_or_default()))
    };
    let all: Vec<_> = tools.into_iter().flatten().filter_map(tool).collect();
    let counted = details.and_then(|details| details.get("count")).and_then(Value::as_u64);
    let counted = counted.and_then(|count| usize::try_from(count).ok()).unwrap_or(all.len());
    let page = page_of(viewer, one, &all, after);
    let at = Some(Moment::new(item.place.happened_at));
    Ok((Some(SeenTools { at, count: counted, ..page }), ""))
}

/// The parts of servers that a run does not see, and why.
fn hidden(viewer: &Viewer<'_>, view: &RunView) -> Vec<Hidden> {
    let snapshot = viewer.door.gateway.snapshot(view);
    let has = |row: &&std::sync::Arc<ServerRow>| {
        let alias = row.alias.as_ref().filter(|_| !row.is_overridden);
        alias.is_some_and(|alias| view.policy.is_attached(alias))
    };
    let may_name = viewer.may(Access::Member(SEE_CATALOG));
    let mut all = Vec::new();
    for row in snapshot.servers.iter().filter(has).take(SERVERS) {
        all.extend(of_server(row, may_name));
    }
    let held = view.held_back().kept().count();
    if held > 0 {
        all.push(Hidden {
            server: Words::new("servers of the catalog"),
            why: Words::new(&format!("have {held} definitions under review.")),
            names: Vec::new(),
            remedy: Words::new(
                "An admin accepts or rejects them; a run that begins after that sees those that \
                 were accepted.",
            ),
        });
    }
    all
}

/// The parts of one server that a run does not see.
fn of_server(row: &ServerRow, may_name: bool) -> Vec<Hidden> {
    let server = Words::new(&row.name);
    let hidden = |why: String, names: Vec<Words>, remedy: &str| Hidden {
        server: server.clone(),
        why: Words::new(&why),
        names,
        remedy: Words::new(remedy),
    };
    if !row.is_ready() {
        let why = format!("is {}: none of its tools is listed.", row.state.as_str());
        return vec![hidden(why, Vec::new(), "Its tools return when the server is ready.")];
    }
    let mut all = Vec::new();
    let visible = shown(row);
    let is_hidden = |name: &str| !visible.tools.iter().any(|tool| &*tool.key == name);
    let by_entry: Vec<_> = row.inventory.tools.iter().filter(|tool| is_hidden(&tool.key)).collect();
    if !by_entry.is_empty() {
        let names = by_entry.iter().take(NAMES).filter(|_| may_name);
        let names = names.map(|tool| Words::new(&tool.key)).collect();
        let why = format!("has {} tools that its entry hides.", by_entry.len());
        all.push(hidden(why, names, "`tools` of the server's entry or attachment decides this."));
    }
    let held = row.pinned.as_ref().map_or(0, |said| said.held().count());
    if held > 0 {
        let why = format!("has {held} definitions under review.");
        all.push(hidden(why, Vec::new(), "An admin accepts or rejects them."));
    }
    all
}

/// The configuration that was frozen.
pub(super) async fn configuration(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&[])?;
    let one = One::of(viewer).await?;
    let head = head(
        viewer,
        &one,
        "Configuration",
        "What was frozen when the run began: secrets by their names alone.",
    );
    let mut frame = frame(viewer, head).await?;
    frame.related = one.related(viewer);
    let top = one.top(viewer);
    let live = vec![frame::live(&frame), One::live(&top)];
    frame.live = Some(live::address(viewer, live, &one.with_path(query)));
    let pid = one.pid();
    let servers = one.run.view.as_deref().map(|view| servers(viewer, view, pid));
    let tabs = one.tabs(viewer, "configuration");
    let page = ConfigPage { frame, top, tabs, facts: facts(viewer, &one), servers };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn facts(viewer: &Viewer<'_>, one: &One) -> Vec<Fact> {
    let fact = |name, value: &str, origin| Fact { name, value: Words::new(value), origin };
    let mut all = Vec::new();
    if let Some(row) = &one.run.row {
        all.push(fact("agent", agent(&row.agent).as_str(), "the request for the run"));
        let sockets = if row.has_sockets { "yes" } else { "no" };
        all.push(fact("sockets", sockets, "the request for the run"));
        let env: Vec<_> = row.agent_env.iter().map(ToString::to_string).collect();
        if !env.is_empty() {
            let names = env.join(", ");
            all.push(fact("credentials of the agent itself", &names, "bindings of an admin"));
        }
        if let Some(waiting) = &row.waiting {
            let or_any = |text: &str| if text.is_empty() { "any" } else { text }.to_owned();
            all.push(fact("model", &or_any(&waiting.model), "the parent run"));
            all.push(fact("runtime", &or_any(&waiting.runtime), "the parent run"));
            if let Some(executor) = &waiting.executor {
                all.push(fact("executor", executor.as_str(), "the agent"));
            }
            if let Some((by, _)) = &waiting.claim {
                all.push(fact("claimed by", by, "the last claim"));
            }
        }
    }
    if let Some(view) = one.run.view.as_deref() {
        let shared = match &view.policy {
            RunPolicy::AllAttached => "all".to_owned(),
            RunPolicy::Profile(_) => "those of its profile".to_owned(),
            RunPolicy::Attached(named) => {
                let is_own =
                    |alias: &&narthex_model::Alias| view.own_servers().any(|own| own == *alias);
                let names = named.iter().filter(|alias| !is_own(alias)).map(ToString::to_string);
                names.collect::<Vec<_>>().join(", ")
            }
        };
        let shared = if shared.is_empty() { "none" } else { &shared };
        all.push(fact("shared servers", shared, "the request or the agent"));
        let open = viewer.door.gateway.sessions_of(view.id).to_string();
        all.push(fact("open connections of clients", &open, "measured as this page was made"));
    }
    all
}

/// The servers of a run as the API shows them.
fn servers(viewer: &Viewer<'_>, view: &RunView, pid: u64) -> Vec<RunServer> {
    let snapshot = viewer.door.gateway.snapshot(view);
    let is_own = |row: &ServerRow| {
        row.alias.as_ref().is_some_and(|alias| view.own_servers().any(|own| own == alias))
    };
    let has = |row: &&std::sync::Arc<ServerRow>| {
        let alias = row.alias.as_ref().filter(|_| !row.is_overridden);
        alias.is_some_and(|alias| view.policy.is_attached(alias))
    };
    let server = |row: &std::sync::Arc<ServerRow>| {
        let alias = row.alias.clone();
        let error = row.error.as_ref().filter(|_| !row.is_ready());
        let error = error.map(|error| error.read_by(viewer.principal.reader()).message);
        let transport = row.definition.as_ref().map(|definition| definition.transport().as_str());
        let file = row.file.as_ref().map(|file| file.display().to_string());
        let origin = match (is_own(row), file) {
            (true, _) => "of this run: from the catalog or the request".to_owned(),
            (false, Some(file)) => format!("shared: configured in {file}"),
            (false, None) => format!("shared: {}", row.provenance.as_str()),
        };
        let mount = alias.map(|alias| MountName { pid: Pid::new(pid), alias }.path());
        RunServer {
            alias: Words::new(&row.name),
            state: State(row.state),
            origin: Words::new(&origin),
            about: Words::new(transport.unwrap_or("faulty entry")),
            path: Words::new(&mount.unwrap_or_default()),
            error: error.map(|error| Words::new(&error)),
        }
    };
    snapshot.servers.iter().filter(has).take(SERVERS).map(server).collect()
}
