//! Whether there is what a run asks a grant for: a grant for a name that nothing has would be
//! decided on for nothing.

use narthex_gateway::{Gateway, RunView, shown};
use narthex_model::{Alias, GrantOf, ToolScopeGrant, nearest};
use narthex_wire::Template;

/// How many names are told of what there is.
const TOLD_MAX: usize = 20;

/// The server and the tool of a request that the run does not have, each with its place. What is
/// hidden from it is as what does not exist (D5), and of a server that is not there now nothing is
/// said.
pub(super) fn absent(gateway: &Gateway, run: &RunView, of: &GrantOf) -> Vec<(String, String)> {
    let GrantOf::ToolScope(ToolScopeGrant { server: Some(server), tool, .. }) = of else {
        return Vec::new();
    };
    let attached = gateway.aliases(run);
    let is_built_in = server.is_built_in() || run.built_in(server.as_str()).is_some();
    if !is_built_in && !attached.contains(server) {
        let names: Vec<_> = attached.iter().map(Alias::as_str).collect();
        let told = format!("this run has no server `{server}`");
        return vec![("details.server".to_owned(), with_names(told, server.as_str(), &names))];
    }
    let snapshot = gateway.snapshot(run);
    let row = snapshot.get(server.as_str()).filter(|row| row.is_ready());
    let listed = match is_built_in {
        true => gateway.built_in_inventory(),
        false => row.map(|row| shown(row)),
    };
    let (Some(tool), Some(listed)) = (tool, listed) else { return Vec::new() };
    let is_template = |text: &str| text == tool.as_str() || Template::parse(text).matches(tool);
    let is_there = listed.tool(tool).is_some()
        || listed.has_prompt(tool)
        || listed.resources.iter().any(|entry| *entry.key == **tool)
        || listed.templates.iter().any(|entry| is_template(&entry.key));
    if is_there {
        return Vec::new();
    }
    let names: Vec<_> = listed.tools.iter().map(|entry| &*entry.key).collect();
    let shown: String = tool.chars().take(200).collect();
    let told = format!("there is no tool, prompt or resource `{shown}` at the server `{server}`");
    vec![("details.tool".to_owned(), with_names(told, tool, &names))]
}

fn with_names(told: String, name: &str, known: &[&str]) -> String {
    let meant = nearest(name, known.iter().copied());
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let all: Vec<_> = known.iter().take(TOLD_MAX).map(|name| format!("`{name}`")).collect();
    let more = known.len().saturating_sub(TOLD_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match all.is_empty() {
        true => told,
        false => format!("{told}{meant}; there are {}{more}", all.join(", ")),
    }
}
