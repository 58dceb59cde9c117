//! The servers of a running daemon: the ready ones, and the failed ones with their reasons.

use std::{collections::BTreeSet, path::PathBuf};

use narthex_model::{CallError, CallErrorKind, ServerState, command::narthex};
use serde_json::Value;

use super::Check;
use crate::{Failure, config::Settings, daemon_client::DaemonClient, rows::Row};

/// The servers and files of a running daemon: it may have other variables than this shell, and
/// other files approved.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The servers whose entry has no fault.
    pub(super) names: BTreeSet<String>,
    /// The files that servers come from.
    pub(super) files: BTreeSet<PathBuf>,
}

/// The servers and files of the daemon here; none if no daemon runs or answers.
pub(super) async fn served(settings: &Settings) -> Served {
    let client = DaemonClient::operator_if_up(&settings.daemon).ok().flatten();
    let Some(client) = client.filter(|_| settings.daemon.daemon_url.is_none()) else {
        return Served::default();
    };
    let rows = client.api_all("/api/servers").await.unwrap_or_default();
    let rows: Vec<_> = rows.iter().filter(|row| row["transport"].is_string()).collect();
    let name = |row: &&Value| row["name"].as_str().map(str::to_owned);
    let file = |row: &&Value| row["file"].as_str().map(PathBuf::from);
    Served {
        names: rows.iter().filter_map(name).collect(),
        files: rows.iter().filter_map(file).collect(),
    }
}

/// A row of the daemon for each of its servers; nothing if none runs.
pub(super) async fn all(settings: &Settings) -> Vec<Check> {
    match look(settings).await {
        Ok(checks) => checks,
        Err(failure) => {
            let text = "the servers of the daemon cannot be read";
            let hint = "name a token that may read them with `--token-file FILE`";
            vec![Check::error("SERVER", text, hint).detail(failure.message)]
        }
    }
}

async fn look(settings: &Settings) -> Result<Vec<Check>, Failure> {
    let Some(client) = DaemonClient::operator_if_up(&settings.daemon)? else {
        return Ok(Vec::new());
    };
    let rows = client.rows::<Row>().await?;
    Ok(rows.iter().filter(|row| !row.is_overridden).map(check).collect())
}

/// True if the server takes no call for want of a credential that it accepts.
fn is_refused(error: &CallError) -> bool {
    error.kind == CallErrorKind::AuthUnavailable
}

fn check(row: &Row) -> Check {
    let (name, state) = (&row.alias, row.status.as_str());
    let text = match row.status {
        ServerState::Error => format!("`{name}` has failed"),
        _ => format!("`{name}` is {state}"),
    };
    match (row.status, &row.error) {
        (ServerState::Error, error) => {
            let of_entry = error.as_ref().and_then(|error| error.details.as_ref());
            let hint = match row.transport.as_deref() {
                _ if of_entry.is_some_and(|details| details["problems"].is_array()) => {
                    let reload = narthex("mcp reload", &[]);
                    format!("correct the entry, then read the file again with `{reload}`")
                }
                // The detail names the value and the command.
                _ if error.as_ref().is_some_and(is_refused) => {
                    "change the named value, or make the server accept it".to_owned()
                }
                Some("stdio") if row.has_logs => {
                    let logs = narthex("mcp logs {}", &[name]);
                    let again = narthex("mcp reconnect {}", &[name]);
                    format!("read the server's log with `{logs}`, then try again with `{again}`")
                }
                _ => format!("try again with `{}`", narthex("mcp reconnect {}", &[name])),
            };
            let check = Check::error("SERVER", text, hint);
            match error {
                Some(error) => check.detail(error.message.clone()),
                None => check,
            }
        }
        (ServerState::Authenticating, _) => {
            let authorize = narthex("mcp authorize {}", &[name]);
            Check::warn("SERVER", text, format!("sign in with `{authorize}`"))
        }
        (ServerState::Ready | ServerState::Connecting | ServerState::Disabled, _) => {
            Check::info("SERVER", text)
        }
    }
}
