//! The decisions that a text of rules changes for the tools of active runs.

use std::collections::BTreeSet;

use narthex_console::{
    pages::policy::{Changed, Preview},
    parts::Words,
};
use narthex_control::ControlError;
use narthex_runs::{RunFilter, SeenRun};
use serde_json::{Map, Value, json};

use super::asked::decided;
use crate::{Access, console::viewer::Viewer, routes::SEE_RUNS};

/// Number of active runs whose tools are asked about.
const RUNS: u32 = 50;
/// Number of tools that are asked about, each with the stored rules and with the text.
const TOOLS: usize = 100;

/// A tool that runs of an agent see: the agent, the server and the tool.
type Seen = (String, String, String);

/// The changes of a text, for calls without arguments of the tools that active runs see.
pub(super) async fn of(viewer: &Viewer<'_>, rules: &str) -> Result<Preview, ControlError> {
    // The text is checked first, also where no run is active.
    decided(viewer, &question(&(String::new(), "any".to_owned(), "any".to_owned()), Some(rules)))
        .await?;
    let all = seen(viewer).await;
    let mut rows = Vec::new();
    for one in all.iter().take(TOOLS) {
        let before = decided(viewer, &question(one, None)).await?.decision();
        let after = decided(viewer, &question(one, Some(rules))).await?.decision();
        if before != after {
            let (agent, server, tool) = one;
            let agent = if agent.is_empty() { "none" } else { agent };
            rows.push(Changed {
                agent: Words::within(agent, 80),
                server: Words::within(server, 80),
                tool: Words::within(tool, 80),
                before: words(before),
                after: words(after),
            });
        }
    }
    Ok(Preview { rows, asked: all.len().min(TOOLS), is_part: all.len() > TOOLS })
}

fn words(decision: &str) -> &'static str {
    match decision {
        "forbidden" => "forbidden",
        "approval_required" => "needs a grant",
        _ => "allowed",
    }
}

/// The tools that active runs see, as far as the human may see the runs.
async fn seen(viewer: &Viewer<'_>) -> BTreeSet<Seen> {
    let Some(runs) = &viewer.door.options.runs else { return BTreeSet::new() };
    if !viewer.may(Access::Member(SEE_RUNS)) {
        return BTreeSet::new();
    }
    let active = RunFilter { status: Some(None), ..RunFilter::default() };
    let Ok(page) = runs.list(&viewer.workspace, active, 0, RUNS).await else {
        return BTreeSet::new();
    };
    page.items.iter().flat_map(|run| tools_of(viewer, run)).collect()
}

fn tools_of(viewer: &Viewer<'_>, run: &SeenRun) -> Vec<Seen> {
    let Some(view) = &run.view else { return Vec::new() };
    let agent = run.row.as_ref().map(|row| row.agent.clone()).unwrap_or_default();
    let tools = viewer.door.gateway.visible_tools(view).into_iter();
    tools.map(|one| (agent.clone(), one.server.to_string(), one.tool.to_string())).collect()
}

/// The question about a tool, with the stored rules or with a text.
fn question(one: &Seen, rules: Option<&str>) -> String {
    let (agent, server, tool) = one;
    let mut asked = Map::new();
    asked.insert("server".to_owned(), json!(server));
    asked.insert("tool".to_owned(), json!(tool));
    if !agent.is_empty() {
        asked.insert("agent".to_owned(), json!(agent));
    }
    if let Some(rules) = rules {
        asked.insert("rules".to_owned(), json!(rules));
    }
    Value::Object(asked).to_string()
}
