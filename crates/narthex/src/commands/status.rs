//! `narthex status`: the daemon and a row for each of its servers.

use std::process::ExitCode;

use serde_json::json;

use crate::{Failure, cli::Context, daemon_client::DaemonClient, output, rows::Row, table};

pub(crate) async fn run(context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::new(&context.settings)?;
    let rows = client.rows::<Row>().await?;
    let state = &client.state;
    if context.format.is_json() {
        output::json(&json!({
            "url": state.url,
            "pid": state.pid,
            "socket_dir": state.socket_dir,
            "config": state.config,
            "servers": rows,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!("narthex runs at {} (process {})\n", state.url, state.pid))?;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let transport = row.transport.clone().unwrap_or_default();
            vec![row.alias.clone(), transport, row.summary()]
        })
        .collect();
    output::line(&table::render(&["server", "transport", "status"], &rows))?;
    Ok(ExitCode::SUCCESS)
}
