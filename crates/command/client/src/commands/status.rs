//! `narthex status`: the daemon, and a row for each of its servers and for each active run, of all
//! workspaces that the token may see.

use std::{process::ExitCode, time::SystemTime};

use narthex_model::command::completed;
use serde_json::{Value, json};

use crate::{
    Context, Failure,
    commands::{
        across::{HOME, OWN_HIDDEN, active_runs, if_operator, workspaces},
        files,
    },
    daemon_client::DaemonClient,
    output::{self, harmless},
    rows::{self, Row, logs_of_mount},
    table,
};

/// The place of the workspace in a row of a server.
const WORKSPACE: usize = 1;

pub async fn run(context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let own = if_operator(client.rows::<Row>().await)?;
    let is_operator = own.is_some();
    let rows = own.unwrap_or_default();
    let files = files::followed(&client).await?;
    let workspaces = workspaces(&client).await?;
    let mut runs = Vec::new();
    for workspace in &workspaces {
        runs.extend(active_runs(&client, workspace).await?);
    }
    let state = &client.state;
    if context.format.is_json() {
        output::done(&json!({
            "url": state.url,
            "pid": state.pid,
            "fingerprint": state.fingerprints.first(),
            "socket_dir": state.socket_dir,
            "config": state.config,
            "files": files,
            "servers": rows,
            "workspaces": workspaces,
            "runs": runs,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        return Ok(ExitCode::SUCCESS);
    }
    // A daemon at an address alone has no process here.
    let process = if state.pid == 0 { String::new() } else { format!(" (process {})", state.pid) };
    output::sentence(&format!("The daemon listens at {}{process}.", state.url))?;
    if let Some(fingerprint) = state.fingerprints.first() {
        output::sentence(&format!("Its certificate has the SHA-256 fingerprint {fingerprint}."))?;
    }
    output::sentence("")?;
    let shared = rows.iter().map(|row| {
        let transport = row.transport.clone().unwrap_or_default();
        vec![harmless(&row.alias), HOME.to_owned(), transport, harmless(&completed(&row.summary()))]
    });
    // The words of a team stay out of sight until one is there.
    let is_alone = runs.is_empty() && workspaces.iter().map(String::as_str).eq([HOME]);
    let rows = shared.chain(runs.iter().flat_map(servers_of));
    let servers: Vec<_> = rows.map(|row| columns(row, is_alone)).collect();
    let header = columns(vec!["server", "workspace", "transport", "status"], is_alone);
    let none = if is_operator { "There are no servers." } else { "No run has servers of its own." };
    output::line(&table::render(&header, &servers, none))?;
    if !is_operator {
        output::notice(OWN_HIDDEN);
    }
    if !is_alone {
        show_runs(&runs, &workspaces)?;
    }
    for sentence in files::warnings(&files, SystemTime::now()) {
        output::sentence(&format!("\nwarning: {sentence}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The cells of a row, without that of the workspace if there is only one.
fn columns<T>(mut cells: Vec<T>, is_alone: bool) -> Vec<T> {
    if is_alone && cells.len() > WORKSPACE {
        cells.remove(WORKSPACE);
    }
    cells
}

fn show_runs(runs: &[Value], workspaces: &[String]) -> Result<(), Failure> {
    let runs: Vec<_> = runs.iter().map(run_row).collect();
    let none = match workspaces {
        [] => "This token may see no workspace, and so no runs.".to_owned(),
        names => format!("There are no active runs in {}.", names.join(", ")),
    };
    let header = ["run", "pid", "workspace", "status", "agent"];
    output::line(&format!("\n{}", table::render(&header, &runs, &none)))
}

/// The servers that a run has for itself, named as their mounts are.
fn servers_of(run: &Value) -> Vec<Vec<String>> {
    let servers = run["servers"].as_array().into_iter().flatten();
    let row = |server: &Value| {
        let pid = run["pid"].as_u64().unwrap_or_default();
        let mount = format!("{pid}-{}", table::text(server, "alias"));
        let member =
            |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let workspace = member(run, "workspace");
        let error = server["error"]["message"].as_str().map(|text| {
            let kind = member(&server["error"], "kind");
            let has_logs = server["has_logs"] == true;
            let logs = logs_of_mount(&mount, &workspace, &kind, has_logs);
            harmless(&format!(": {}{}", completed(text), logs.unwrap_or_default()))
        });
        vec![
            mount,
            table::text(run, "workspace"),
            table::text(server, "transport"),
            format!(
                "{}{}{}",
                table::text(server, "state"),
                error.unwrap_or_default(),
                warned(server)
            ),
        ]
    };
    servers.map(row).collect()
}

/// The warnings of a server of a run, as those of the others are shown.
fn warned(server: &Value) -> String {
    let warnings = server["warnings"].as_array().into_iter().flatten();
    let messages = warnings.filter_map(|one| one["message"].as_str());
    messages.map(|message| harmless(&rows::warned(message))).collect()
}

fn run_row(run: &Value) -> Vec<String> {
    vec![
        table::text(run, "run_id"),
        run["pid"].as_u64().map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        table::text(run, "workspace"),
        table::text(run, "status"),
        table::or_none(run, "agent_name"),
    ]
}
