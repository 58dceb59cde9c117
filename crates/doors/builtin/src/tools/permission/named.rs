//! Checks that the server and tool of a requested grant exist. A grant for an unknown name would
//! have no effect.

use std::collections::BTreeSet;

use narthex_gateway::{Gateway, RunView, shown};
use narthex_model::{Alias, BuiltInTools, GrantOf, ToolScope, ToolScopeGrant, meant_hint, nearest};
use narthex_wire::Template;

/// Number of existing names that an error lists.
const TOLD_MAX: usize = 20;

/// Replaces the run's names of a server and a tool in a request by the names that grants use. The
/// id of one of the run's servers stays as it is, since refusals name servers by id.
pub(super) fn by_id(gateway: &Gateway, run: &RunView, of: &mut GrantOf) {
    let GrantOf::ToolScope(ToolScopeGrant { server: Some(server), tool, .. }) = of else {
        return;
    };
    let attached = gateway.aliases(run);
    let is_id = attached.iter().any(|alias| run.granted_as(alias) == *server);
    if !is_id && attached.contains(server) {
        *server = run.granted_as(server);
    }
    let further = tool.as_deref().filter(|_| server.is_built_in());
    if let Some(name) = further
        && let Some(ruled) = BuiltInTools::ruled_name(name)
        && gateway.built_in_of(run).iter().any(|offered| offered.tool(name).is_some())
    {
        *tool = Some(ruled.to_owned());
    }
}

/// The server and the tool in a request that the run lacks, each with its place. Servers and tools
/// that are hidden from the run count as absent (D5). If a server is not available, its tools are
/// not checked.
pub(super) fn absent(gateway: &Gateway, run: &RunView, of: &GrantOf) -> Vec<(String, String)> {
    let GrantOf::ToolScope(ToolScopeGrant { server: Some(server), tool, .. }) = of else {
        return Vec::new();
    };
    let attached = gateway.aliases(run);
    let meant: Vec<_> = attached.iter().filter(|alias| run.granted_as(alias) == *server).collect();
    if meant.is_empty() {
        let names: Vec<_> = attached.iter().map(Alias::as_str).collect();
        let told = format!("this run has no server `{server}`");
        return vec![("details.server".to_owned(), with_names(told, server.as_str(), &names))];
    }
    let Some(tool) = tool else { return Vec::new() };
    let snapshot = gateway.snapshot(run);
    let row = |alias: &Alias| snapshot.get(alias.as_str()).filter(|row| row.is_ready());
    let listed: Option<Vec<_>> = match server.is_built_in() {
        true => Some(gateway.built_in_of(run)),
        false => meant.iter().map(|alias| row(alias).map(|row| shown(row))).collect(),
    };
    let Some(listed) = listed else { return Vec::new() };
    let is_template = |text: &str| text == tool.as_str() || Template::parse(text).matches(tool);
    let tools = || listed.iter().flat_map(|listed| &listed.tools).map(|one| &*one.key);
    // A grant uses one of a built-in tool's names. The run may know only another name.
    let is_granted_as =
        |name: &str| server.is_built_in() && BuiltInTools::ruled_name(name) == Some(tool.as_str());
    let is_there = tools().any(|name| name == tool || is_granted_as(name))
        || listed.iter().any(|listed| {
            listed.has_prompt(tool)
                || listed.resources.iter().any(|entry| *entry.key == **tool)
                || listed.templates.iter().any(|entry| is_template(&entry.key))
        });
    if is_there {
        return Vec::new();
    }
    let names: Vec<_> = tools().collect::<BTreeSet<_>>().into_iter().collect();
    let shown: String = tool.chars().take(200).collect();
    let told = format!("there is no tool, prompt or resource `{shown}` at the server `{server}`");
    vec![("details.tool".to_owned(), with_names(told, tool, &names))]
}

/// The scope that was probably meant, if nothing visible to the run requires the given one. `None`
/// if something requires it, or if no known scope is similar. Servers and tools that are hidden
/// from the run count as absent (D5).
pub(super) fn meant(gateway: &Gateway, run: &RunView, scope: &ToolScope) -> Option<String> {
    let snapshot = gateway.snapshot(run);
    let mut known = BTreeSet::new();
    for row in &snapshot.servers {
        let Some(definition) = row.definition.as_ref().filter(|one| !one.gates.is_empty()) else {
            continue;
        };
        let (gates, listed) = (&definition.gates, shown(row));
        let tools = listed.tools.iter().flat_map(|entry| gates.of_tool(&entry.key));
        let prompts = listed.prompts.iter().flat_map(|entry| gates.of_prompt(&entry.key));
        known.extend(tools.chain(prompts).cloned());
        for entry in listed.resources.iter().chain(&listed.templates) {
            known.extend(gates.of_resource(&entry.key).iter().cloned());
        }
    }
    if known.contains(scope) {
        return None;
    }
    nearest(scope.as_str(), known.iter().map(ToolScope::as_str)).map(str::to_owned)
}

fn with_names(told: String, name: &str, known: &[&str]) -> String {
    let meant = meant_hint(name, known.iter().copied());
    let all: Vec<_> = known.iter().take(TOLD_MAX).map(|name| format!("`{name}`")).collect();
    let more = known.len().saturating_sub(TOLD_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match all.is_empty() {
        true => told,
        false => format!("{told}{meant}; there are {}{more}", all.join(", ")),
    }
}
