//! The caller of a call from the playground, and the tools that it sees.
//!
//! narthex gives the token of a run to its creator alone. So a call from a page is made in a new
//! run, which the human creates as by the API, and which ends after the call.

use std::{collections::BTreeSet, sync::Arc};

use narthex_gateway::shown;
use narthex_model::NO_GATES;
use narthex_registry::{ServerRow, Snapshot};
use narthex_runs::{RunFilter, SeenRun};
use narthex_wire::Raw;
use serde_json::{Value, json};

use crate::{Access, console::viewer::Viewer, problem::Problem, routes::SEE_RUNS};

/// The word for a new run with a server of the configuration.
pub(super) const ME: &str = "me";
/// Number of active runs in the choice.
const RUNS: u32 = 50;
/// Lifetime of the run of a call, in seconds, if its end is not reached otherwise.
const LIFE: u64 = 900;

/// The caller.
pub(super) enum Caller {
    /// A new run of the human, with a server of the configuration.
    Me,
    /// A new run like an active one.
    Like(Box<SeenRun>),
}

/// A caller in a choice.
pub(super) struct Choosable {
    pub(super) value: String,
    pub(super) label: String,
}

/// The servers and tools that a caller sees.
#[derive(Default)]
pub(super) struct Seen {
    rows: Vec<Arc<ServerRow>>,
    /// The tools that the run sees, each with its server; `None` for all of each server.
    visible: Option<BTreeSet<(String, String)>>,
}

/// A tool as its server defines it.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) description: String,
    pub(super) schema: Option<Value>,
    /// The schema as the server wrote it.
    pub(super) schema_text: Option<String>,
    pub(super) is_destructive: bool,
    pub(super) is_read_only: bool,
    pub(super) scopes: Vec<String>,
}

impl Caller {
    /// The caller that a form names.
    pub(super) async fn of(viewer: &Viewer<'_>, word: &str) -> Result<Self, Problem> {
        if matches!(word, "" | ME) {
            return Ok(Self::Me);
        }
        viewer.check(Access::Member(SEE_RUNS))?;
        let Some(runs) = &viewer.door.options.runs else { return Ok(Self::Me) };
        let run = runs.get(&viewer.workspace, word).await?;
        Ok(Self::Like(Box::new(run)))
    }

    /// The caller in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Me => "you, in a new run".to_owned(),
            Self::Like(run) => match &run.row {
                Some(row) if !row.agent.is_empty() => {
                    format!("you, in a new run of the agent {}, like run {}", row.agent, row.pid)
                }
                Some(row) => format!("you, in a new run like run {}", row.pid),
                None => "you, in a new run".to_owned(),
            },
        }
    }

    /// The agent of the new run, if it has one.
    pub(super) fn agent(&self) -> Option<&str> {
        match self {
            Self::Me => None,
            Self::Like(run) => {
                run.row.as_ref().map(|row| row.agent.as_str()).filter(|name| !name.is_empty())
            }
        }
    }

    /// The request that creates the run, with a server and the parameters of an agent.
    pub(super) fn request(&self, server: &str, params: Option<Value>) -> String {
        let Some(agent) = self.agent() else {
            return json!({ "tools": [server], "expires_in": LIFE }).to_string();
        };
        let mut request = json!({ "agent_name": agent, "expires_in": LIFE });
        if let (Some(params), Some(members)) = (params, request.as_object_mut()) {
            members.insert("params".to_owned(), params);
        }
        request.to_string()
    }

    /// The servers and tools that the caller sees.
    pub(super) fn sees(&self, viewer: &Viewer<'_>) -> Seen {
        let gateway = &viewer.door.gateway;
        let run = match self {
            Self::Like(run) if run.row.is_some() => run.view.as_ref(),
            Self::Like(_) | Self::Me => {
                let snapshot = gateway.registry().snapshot();
                return if viewer.sees_servers() { Seen::of(&snapshot) } else { Seen::default() };
            }
        };
        let Some(run) = run else { return Seen::default() };
        let visible = gateway.visible_tools(run).into_iter();
        let visible = visible.map(|one| (one.server.to_string(), one.tool.to_string()));
        Seen { visible: Some(visible.collect()), ..Seen::of(&gateway.snapshot(run)) }
    }
}

/// The callers that a human may choose.
pub(super) async fn choosable(viewer: &Viewer<'_>) -> Result<Vec<Choosable>, Problem> {
    let mut all = Vec::new();
    if viewer.sees_servers() {
        let label = "you, with a server of the configuration".to_owned();
        all.push(Choosable { value: ME.to_owned(), label });
    }
    let Some(runs) = &viewer.door.options.runs else { return Ok(all) };
    if !viewer.may(Access::Member(SEE_RUNS)) {
        return Ok(all);
    }
    let active = RunFilter { status: Some(None), ..RunFilter::default() };
    let page = runs.list(&viewer.workspace, active, 0, RUNS).await?;
    let rows = page.items.into_iter().filter_map(|run| run.row);
    all.extend(rows.map(|row| {
        let agent = if row.agent.is_empty() { "without an agent" } else { row.agent.as_str() };
        let label = format!("a new run like run {} ({agent})", row.pid);
        Choosable { value: row.id.to_text(), label }
    }));
    Ok(all)
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Self {
        let ready = snapshot.servers.iter().filter(|row| row.is_ready() && !row.is_overridden);
        Self { rows: ready.cloned().collect(), visible: None }
    }

    /// The names of the servers.
    pub(super) fn servers(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.rows.iter().map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The names of the tools of a server.
    pub(super) fn tools(&self, server: &str) -> Vec<String> {
        let Some(row) = self.row(server) else { return Vec::new() };
        let inventory = shown(row);
        let names = inventory.tools.iter().map(|entry| entry.key.to_string());
        let mut names: Vec<_> = names.filter(|name| self.shows(server, name)).collect();
        names.sort_unstable();
        names
    }

    /// A tool of a server, if the caller sees it.
    pub(super) fn tool(&self, server: &str, name: &str) -> Option<Tool> {
        let row = self.row(server).filter(|_| self.shows(server, name))?;
        let inventory = shown(row);
        let entry = inventory.tools.iter().find(|entry| &*entry.key == name)?;
        let raw = Raw::new(&entry.raw);
        let text = |key| raw.get(key).and_then(Raw::as_str).unwrap_or_default().into_owned();
        let hint = |key| raw.get("annotations")?.get(key)?.as_bool();
        let schema = raw.get("inputSchema");
        let gates = row.definition.as_deref().map_or(&NO_GATES, |definition| &*definition.gates);
        Some(Tool {
            description: text("description"),
            schema: schema.and_then(|schema| schema.parse().ok()),
            schema_text: schema
                .map(|schema| String::from_utf8_lossy(schema.as_bytes()).into_owned()),
            is_destructive: hint("destructiveHint") == Some(true)
                && hint("readOnlyHint") != Some(true),
            is_read_only: hint("readOnlyHint") == Some(true),
            scopes: gates.of_tool(name).iter().map(|scope| scope.as_str().to_owned()).collect(),
        })
    }

    fn row(&self, server: &str) -> Option<&ServerRow> {
        self.rows.iter().find(|row| row.name == server).map(|row| &**row)
    }

    fn shows(&self, server: &str, tool: &str) -> bool {
        let key = || (server.to_owned(), tool.to_owned());
        self.visible.as_ref().is_none_or(|visible| visible.contains(&key()))
    }
}
