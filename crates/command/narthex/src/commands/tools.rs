//! `narthex tools`: the tools that can be called, or one of them with its arguments.

mod one;
mod schema;

use std::{path::Path, process::ExitCode, time::Duration};

use narthex_client::{cli::ToolsArgs, rows::logs_of};
use narthex_model::{Alias, ErrorKind, ServerState, command::narthex};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::one::Shown;
use super::{in_process, source, waiting::waiting};
use crate::{
    Failure,
    cli::Context,
    daemon_client::DaemonClient,
    output::{self, Format},
    peer::{Peer, Tool, near_names},
    rows::Row,
    server_rows, table,
};

/// The pause between two looks at servers that are connecting.
const PAUSE: Duration = Duration::from_millis(200);

/// A server with its tools; the row explains why there are none.
struct Listed {
    row: Row,
    tools: Vec<Tool>,
    /// The reason why a server that is ready could not list them.
    failure: Option<Failure>,
}

impl Listed {
    /// The reason why there are no tools.
    fn absence(&self) -> String {
        self.failure.as_ref().map_or_else(|| self.row.summary(), ToString::to_string)
    }

    /// The failure of a command for one of the tools, none of which is listed. `config` is the file
    /// of the server, if it runs in this process.
    fn unlisted(&self, alias: &Alias, tool: &str, config: Option<&Path>) -> Failure {
        let (row, error) = (&self.row, self.row.error.as_ref());
        let cause = match (&self.failure, error, row.unlisted_tools()) {
            (Some(failure), _, _) => failure.message.clone(),
            (None, Some(error), _) => error.message.clone(),
            (None, None, Some(warning)) => warning.to_owned(),
            (None, None, None) if row.status == ServerState::Ready => {
                let text = format!("`{alias}` has no tools, and so no tool `{tool}`");
                return Failure::new(ErrorKind::NotFound, text);
            }
            (None, None, None) => format!("it is {}", row.status.as_str()),
        };
        let remedy = match config {
            Some(file) => format!("correct its entry in {}, then try again", file.display()),
            None if row.status == ServerState::Disabled => {
                format!("`{}` enables it", narthex("mcp enable {}", &[alias]))
            }
            None => {
                let kind = error.map(|error| error.kind.as_str()).unwrap_or_default();
                let logs = logs_of(alias.as_str(), kind, row.has_logs).unwrap_or_default();
                format!("`{}` tries it step by step{logs}", narthex("mcp test {}", &[alias]))
            }
        };
        let cause = cause.trim_end_matches('.');
        let text = format!("the tools of `{alias}` cannot be listed: {cause}; {remedy}");
        Failure::new(ErrorKind::Unavailable, text)
    }
}

pub(crate) async fn run(args: ToolsArgs, context: Context) -> Result<ExitCode, Failure> {
    let Some(file) = &args.config else {
        let client = DaemonClient::of_run_or_file(&context.settings.daemon)?;
        let settling = settled(&client, args.alias.as_ref(), context.settings.call_timeout);
        let what = "waiting for servers that are connecting";
        let rows = waiting(what, &context.client(), settling).await?;
        return show(&list(Peer::Daemon(&client), rows).await, &args, &context);
    };
    let mut loaded = source::read(file)?;
    if let Some(alias) = &args.alias {
        source::narrow(&mut loaded, alias, file)?;
    }
    let app = in_process::start(loaded, None, &context).await?;
    in_process::run(&app, async {
        in_process::settle(&app).await;
        let rows = server_rows::all(&app.registry().snapshot());
        show(&list(Peer::Local(&app), rows).await, &args, &context)
    })
    .await
}

/// The chosen rows, once none of the servers is connecting. A server that takes longer than a call
/// may take is shown as it is then.
async fn settled(
    client: &DaemonClient,
    alias: Option<&Alias>,
    limit: Duration,
) -> Result<Vec<Row>, Failure> {
    let began = Instant::now();
    loop {
        let rows = chosen(client.rows::<Row>().await?, alias, &client.place())?;
        let is_settled = rows.iter().all(|row| row.status.is_settled());
        if is_settled || began.elapsed() >= limit {
            return Ok(rows);
        }
        sleep(PAUSE).await;
    }
}

fn chosen(rows: Vec<Row>, alias: Option<&Alias>, place: &str) -> Result<Vec<Row>, Failure> {
    let Some(alias) = alias else { return Ok(rows) };
    let (found, others): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.alias == alias.as_str());
    if found.is_empty() {
        let names: Vec<_> = others.iter().map(|row| row.alias.as_str()).collect();
        return Err(source::unknown(alias, place, &names));
    }
    Ok(found)
}

async fn list(peer: Peer<'_>, rows: Vec<Row>) -> Vec<Listed> {
    let mut all = Vec::new();
    for row in rows {
        let (mut tools, mut failure) = (Vec::new(), None);
        if let (ServerState::Ready, Ok(alias)) = (row.status, Alias::new(&row.alias)) {
            match peer.tools(&alias).await {
                Ok(listed) => tools = listed,
                Err(error) => failure = Some(error),
            }
        }
        all.push(Listed { row, tools, failure });
    }
    all
}

fn show(all: &[Listed], args: &ToolsArgs, context: &Context) -> Result<ExitCode, Failure> {
    if let (Some(alias), Some(tool)) = (&args.alias, &args.tool) {
        let config = args.config.as_deref();
        return show_one(&Shown::new(alias, found(all, alias, tool, config)?, config), context);
    }
    if context.format.is_json() {
        let servers: Vec<_> = all.iter().map(listed_json).collect();
        output::done(&json!({ "servers": servers }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        let names = all.iter().flat_map(|one| one.tools.iter().map(|tool| (&one.row.alias, tool)));
        for (alias, tool) in names {
            // A line break would begin another name.
            let name = tool.name.replace(['\n', '\r'], "\u{fffd}");
            output::line(&format!("{alias} {name}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = all.iter().flat_map(table_rows).collect();
    output::line(&table::render(
        &["server", "tool", "description"],
        &rows,
        "There are no servers, and so no tools.",
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn show_one(shown: &Shown<'_>, context: &Context) -> Result<ExitCode, Failure> {
    match context.format {
        Format::Json => output::done(&shown.json())?,
        Format::Quiet => output::line(&shown.example.to_string())?,
        Format::Text => output::line(&shown.page())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The tool of this name.
fn found<'l>(
    all: &'l [Listed],
    alias: &Alias,
    name: &str,
    config: Option<&Path>,
) -> Result<&'l Tool, Failure> {
    if let Some(tool) = all.iter().flat_map(|one| &one.tools).find(|tool| tool.name == name) {
        return Ok(tool);
    }
    // An entry that another one overrides says nothing about the server.
    let unlisted = all.iter().find(|one| !one.row.is_overridden).or(all.first());
    match (all.iter().find(|one| !one.tools.is_empty()), unlisted) {
        (None, Some(listed)) => Err(listed.unlisted(alias, name, config)),
        (listed, _) => {
            let tools = listed.map(|listed| listed.tools.as_slice()).unwrap_or_default();
            let hint = near_names(alias, name, tools, config);
            let text = format!("`{alias}` has no tool `{name}`; {hint}");
            Err(Failure::new(ErrorKind::NotFound, text))
        }
    }
}

fn listed_json(listed: &Listed) -> Value {
    let tools: Vec<_> = listed.tools.iter().map(|tool| &tool.definition).collect();
    let Row { alias, status, error, .. } = &listed.row;
    let unlisted = listed.failure.as_ref().map(|failure| failure.to_json()["error"].take());
    let error = unlisted.unwrap_or_else(|| json!(error));
    json!({ "alias": alias, "status": status, "error": error, "tools": tools })
}

fn table_rows(listed: &Listed) -> Vec<Vec<String>> {
    let alias = &listed.row.alias;
    if listed.tools.is_empty() {
        return vec![vec![alias.clone(), "-".to_owned(), listed.absence()]];
    }
    let row = |tool: &Tool| vec![alias.clone(), tool.name.clone(), tool.description().to_owned()];
    listed.tools.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message for a tool of a server in this state.
    fn told(row: Value, config: Option<&Path>) -> String {
        let row: Row = serde_json::from_value(row).unwrap();
        let listed = [Listed { row, tools: Vec::new(), failure: None }];
        found(&listed, &Alias::new("docs").unwrap(), "find", config).unwrap_err().to_string()
    }

    /// The cause stands there once, with the command that helps.
    #[test]
    fn a_server_without_tools_has_one_cause_and_a_command() {
        let row = |status: &str, error: Value, has_logs: bool| {
            json!({
                "alias": "docs", "status": status, "transport": "stdio", "tools": 0,
                "error": error, "has_logs": has_logs,
            })
        };
        let refused = || json!({ "kind": "transport_error", "message": "connection refused." });
        let begin = "unavailable: the tools of `docs` cannot be listed: ";
        assert_eq!(
            told(row("error", refused(), true), None),
            format!(
                "{begin}connection refused; `narthex mcp test docs` tries it step by step; \
                 `narthex mcp logs docs` shows its output"
            )
        );
        let file = Path::new("/srv/mcp.json");
        assert_eq!(
            told(row("error", refused(), true), Some(file)),
            format!(
                "{begin}connection refused; correct its entry in /srv/mcp.json, then try again"
            )
        );
        assert_eq!(
            told(row("disabled", Value::Null, false), None),
            format!("{begin}it is disabled; `narthex mcp enable docs` enables it")
        );
        assert_eq!(
            told(row("ready", Value::Null, false), None),
            "not_found: `docs` has no tools, and so no tool `find`"
        );
    }
}
