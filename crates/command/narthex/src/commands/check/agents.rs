//! The agents of the catalog, if a daemon runs: their servers, faults that keep these from working,
//! and missing programs.

use narthex_model::command::narthex;
use std::{collections::HashMap, path::Path};

use narthex_control::never_starts;
use narthex_model::{
    CatalogKind, ErrorKind, WorkspaceId,
    package::{self, UnpinnedPackage},
};
use serde_json::Value;

use super::{Check, executors, gates, host::find};
use crate::{
    Failure,
    commands::{across, catalog::text},
    config::Settings,
    daemon_client::{DaemonClient, segment, workspace_path},
    data_dir::DataDir,
    stored::StorePlace,
};

/// The workspace that is counted in a data folder without a daemon.
const WORKSPACE: &str = "default";
/// The code of the findings about all agents.
const CODE: &str = "AGENTS";
/// Number of agents that are looked at one by one.
const AGENTS_MAX: usize = 200;

pub(super) async fn all(settings: &Settings) -> Vec<Check> {
    match look(settings).await {
        Ok(Some(checks)) => checks,
        Ok(None) => unseen(stored(settings).await).into_iter().collect(),
        Err(failure) => {
            let hint = "name a token that may read them with `--token-file FILE`";
            let check = Check::warn(CODE, "the agents of the catalog cannot be read", hint);
            vec![check.detail(failure.message)]
        }
    }
}

/// True if findings are about agents, which a person alone on a machine has none of.
pub(super) fn are_named(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.code == CODE)
}

/// Says that agents are not looked at, and how many there are, if that is known.
fn unseen(stored: Result<usize, Failure>) -> Option<Check> {
    let (up, again) = (narthex("up --detach", &[]), narthex("check mcp", &[]));
    let hint = format!("start a daemon with `{up}`, and run `{again}` again");
    match stored {
        Ok(0) => None,
        Ok(count) => {
            let plural = if count == 1 { "" } else { "s" };
            let text = format!(
                "{count} agent{plural} of the data folder cannot be checked: no daemon runs"
            );
            Some(Check::warn(CODE, text, hint))
        }
        Err(failure) => {
            let text = "agents of the data folder cannot be checked: no daemon runs";
            Some(Check::warn(CODE, text, hint).detail(failure.message))
        }
    }
}

/// Number of agents in the store. Makes nothing.
async fn stored(settings: &Settings) -> Result<usize, Failure> {
    let place = StorePlace::of(&DataDir::at(&settings.daemon.data), settings);
    let Some(store) = place.look().await? else { return Ok(0) };
    let workspace = WorkspaceId::new(WORKSPACE)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    let agents = store.catalog(CatalogKind::Agent).all(&workspace).await;
    store.close().await;
    Ok(agents.map_err(|error| Failure::caused(error.kind(), &error))?.len())
}

/// `None` if no daemon runs.
async fn look(settings: &Settings) -> Result<Option<Vec<Check>>, Failure> {
    let Some(client) = DaemonClient::operator_if_up(&settings.daemon)? else { return Ok(None) };
    let mut all = across::workspaces(&client).await?;
    if all.is_empty() {
        all.push(WORKSPACE.to_owned());
    }
    let mut checks = Vec::new();
    for workspace in &all {
        let of_workspace = look_at(&client, workspace, settings).await?;
        checks.extend(of_workspace.into_iter().map(|check| match all.len() {
            1 => check,
            _ => Check { message: format!("workspace {workspace}: {}", check.message), ..check },
        }));
    }
    checks.extend(gates::of_live(&client).await?);
    Ok(Some(checks))
}

/// The agents of one workspace.
async fn look_at(
    client: &DaemonClient,
    workspace: &str,
    settings: &Settings,
) -> Result<Vec<Check>, Failure> {
    let agents = client.api_all(&workspace_path(workspace, "/agents")).await?;
    let servers = client.api_all(&workspace_path(workspace, "/mcp-servers")).await?;
    let command = |server: &Value| Some(server["definition"]["command"].as_str()?.to_owned());
    let commands: HashMap<_, _> = servers
        .iter()
        // Programs of another machine are not to be found on this one.
        .filter(|_| settings.daemon.daemon_url.is_none())
        .filter_map(|server| Some((text(server, "id").to_owned(), command(server)?)))
        .collect();
    let (mut having, mut faults) = (Vec::new(), Vec::new());
    for agent in agents.iter().take(AGENTS_MAX) {
        let id = text(agent, "id");
        if agent.get("errors").is_some() {
            let text = format!("the agent `{id}` cannot be used in its stored form");
            faults.push(Check::warn("AGENT", text, "store it again"));
            continue;
        }
        // The settings of a daemon elsewhere are not these.
        if let Some(named) = agent["definition"]["executor"].as_str()
            && settings.daemon.daemon_url.is_none()
        {
            faults.extend(executors::of_agent(id, named, &settings.executors));
        }
        let path = workspace_path(workspace, &format!("/agents/{}?view=merged", segment(id)));
        let merged = client.api_get(path).await?;
        having.extend(servers_of(id, &merged));
        faults.extend(faults_of(id, &merged));
        faults.extend(not_installed(id, &merged, &commands));
    }
    let mut checks: Vec<_> = summary(agents.len(), &having).into_iter().collect();
    checks.extend(servers.iter().filter_map(|server| {
        let why = never_starts(&server["definition"])?;
        let (what, instead) = why.split_once("; ").unwrap_or((&why, "change the server"));
        let told =
            format!("the server `{}` of the catalog never starts: {what}", text(server, "id"));
        Some(Check::warn("SERVER", told, instead))
    }));
    checks.extend(servers.iter().flat_map(unpinned));
    checks.extend(faults);
    checks.extend(gates::of_catalog(client, workspace, &servers).await?);
    Ok(checks)
}

/// S5: packages of a server of the catalog that may be other code at each start.
fn unpinned(server: &Value) -> Vec<Check> {
    let definition = &server["definition"];
    let args: Vec<_> = definition["args"].as_array().into_iter().flatten().collect();
    let args: Vec<&str> = args.into_iter().filter_map(Value::as_str).collect();
    let id = text(server, "id");
    let check = |package: UnpinnedPackage| {
        let told =
            format!("the server `{id}` of the catalog downloads a package without a fixed version");
        let hint = "write the pin into the server's `args`";
        Check::warn("UNPINNED", told, hint).detail(package.to_string())
    };
    package::unpinned(text(definition, "command"), &args).into_iter().map(check).collect()
}

/// The number of agents with servers; `None` where there are no agents.
fn summary(count: usize, having: &[String]) -> Option<Check> {
    if count == 0 {
        return None;
    }
    let most =
        if count > AGENTS_MAX { format!(" of the first {AGENTS_MAX}") } else { String::new() };
    let text = match having.len() {
        1 => format!("1 agent{most} has settings for servers"),
        with => format!("{with} agents{most} have settings for servers"),
    };
    let check = Check::info(CODE, text);
    Some(if having.is_empty() { check } else { check.detail(having.join("; ")) })
}

/// An agent with the names of its servers, or that it has none on purpose (R-M8).
fn servers_of(id: &str, merged: &Value) -> Option<String> {
    let servers = merged["mcpServers"].as_object().filter(|servers| !servers.is_empty());
    match servers {
        Some(servers) => {
            let names: Vec<_> = servers.keys().map(String::as_str).collect();
            Some(format!("{id}: {}", names.join(", ")))
        }
        None => merged.get("mcp").map(|_mark| format!("{id}: none, as its `mcp: {{}}` says")),
    }
}

/// The faults that keep runs of it from beginning, such as a variable or a secret that is not set.
fn faults_of(id: &str, merged: &Value) -> Vec<Check> {
    let of = |value: &Value| value["errors"].as_array().cloned().unwrap_or_default();
    let servers = merged["mcpServers"].as_object().into_iter().flat_map(|all| all.values());
    let all = of(merged).into_iter().chain(servers.flat_map(of));
    let mut checks: Vec<Check> = Vec::new();
    for fault in all {
        let told = format!("runs of the agent `{id}` are refused: {}", text(&fault, "message"));
        let check = Check::warn("AGENT", told, text(&fault, "remedy"));
        let check = check.detail(text(&fault, "path"));
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks
}

fn not_installed(id: &str, merged: &Value, commands: &HashMap<String, String>) -> Vec<Check> {
    let servers = merged["mcpServers"].as_object().into_iter().flatten();
    let missing = servers.filter_map(|(alias, server)| {
        let command = commands.get(text(server, "ref"))?;
        let is_known = command.contains("${") || find(command, Path::new("")).is_some();
        let place = if command.contains('/') { "there" } else { "in PATH" };
        let told = format!(
            "the agent `{id}` has the server `{alias}`, whose program {command} was not found \
             {place}"
        );
        let hint = "install it, or write the path of the program";
        (!is_known).then(|| Check::warn("AGENT", told, hint))
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Level, *};

    /// S5: servers of the catalog are named whose package has no fixed version.
    #[test]
    fn s5_packages_of_the_catalog_without_a_version_are_named() {
        let checks =
            |definition: Value| unpinned(&json!({ "id": "files", "definition": definition }));
        let one = checks(json!({ "command": "npx", "args": ["-y", "some-server", "/data"] }));
        assert_eq!(one.len(), 1);
        assert!(one[0].message.contains("`files`"), "{}", one[0].message);
        assert!(one[0].detail.as_deref().is_some_and(|detail| detail.contains("some-server@")));
        let pinned = json!({ "command": "npx", "args": ["-y", "some-server@1.2.3"] });
        assert!(checks(pinned).is_empty() && checks(json!({ "url": "https://a.test" })).is_empty());
    }

    /// R-M33: agents that were not looked at are counted, and are no clean bill where there are
    /// some.
    #[test]
    fn r_m33_unchecked_agents_are_counted() {
        assert_eq!(unseen(Ok(0)), None);
        assert_eq!(unseen(Ok(2)).unwrap().level, Level::Warn);
        let failure = Failure::new(ErrorKind::Unavailable, "it is locked");
        let check = unseen(Err(failure)).unwrap();
        assert_eq!((check.level, check.detail.as_deref()), (Level::Warn, Some("it is locked")));
        let one = unseen(Ok(1)).unwrap();
        assert!(one.message.contains("1 agent of the data folder cannot be checked"));
    }

    /// Agents are a word of teams: a person without any does not read of them.
    #[test]
    fn without_agents_nothing_is_said_about_them() {
        assert_eq!(summary(0, &[]), None);
        let some = summary(2, &["a: git".to_owned()]).unwrap();
        assert_eq!(some.message, "1 agent has settings for servers");
        assert!(are_named(&[some]) && !are_named(&[]));
    }

    /// R-M8: an agent with the mark is shown, one without servers and mark is not.
    #[test]
    fn r_m8_an_agent_marked_as_without_servers_is_shown() {
        let shown = |merged: Value| servers_of("a", &merged);
        let two = json!({ "mcpServers": { "git": {}, "web": {} } });
        assert_eq!(shown(two).as_deref(), Some("a: git, web"));
        let marked = json!({ "mcpServers": {}, "mcp": {} });
        assert_eq!(shown(marked).as_deref(), Some("a: none, as its `mcp: {}` says"));
        assert_eq!(shown(json!({ "mcpServers": {} })), None);
    }
}
