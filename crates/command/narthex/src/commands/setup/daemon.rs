//! The daemon of a set-up: found or started, and asked which servers work.

use std::{collections::BTreeMap, path::Path, time::Duration};

use narthex_client::commands::{running::ensure, waiting::spinner};
use narthex_model::{Alias, CallError, CallErrorKind, ErrorKind, ServerState, command::narthex};
use tokio::time::{Instant, sleep};

use crate::{
    Failure, cli::Context, commands::followed::follows, daemon_client::DaemonClient,
    output::harmless, rows::Row,
};

/// The time in which the servers have to come up. Packages are downloaded in it.
const SETTLING: Duration = Duration::from_secs(600);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// The daemon.
pub(super) struct Daemon {
    pub(super) client: DaemonClient,
    /// True if the daemon was started here.
    pub(super) is_started: bool,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    /// The tools are listed.
    Ready {
        /// Number of tools.
        tools: usize,
    },
    /// The server does not work.
    Failed {
        /// The reason, as a sentence without its end.
        reason: String,
        /// True if a person must sign in to the server.
        needs_sign_in: bool,
        /// The variables that its entry needs and that the daemon does not have.
        unset: Vec<String>,
    },
    /// The server refuses the credential of its entry, or asks for one.
    Refused {
        /// The reason, as a sentence without its end.
        reason: String,
    },
    /// The daemon has no such server.
    Absent {
        /// True if another file has a server of this name, which counts first.
        is_overridden: bool,
    },
}

impl Daemon {
    /// Finds the daemon of the data directory, or starts one.
    pub(super) async fn ensure(context: &Context) -> Result<Self, Failure> {
        let options = &context.settings.daemon;
        if let Some(client) = DaemonClient::of_data_if_up(options)? {
            return Ok(Self { client, is_started: false });
        }
        ensure(&context.client()).await?;
        Ok(Self { client: DaemonClient::of_data(options)?, is_started: true })
    }

    /// The daemon of the data directory, which must run.
    pub(super) fn running(context: &Context) -> Result<Self, Failure> {
        let client = DaemonClient::of_data(&context.settings.daemon)?;
        Ok(Self { client, is_started: false })
    }

    /// Has the daemon of the data directory read its files, if one runs. One that does not answer
    /// finds the change by itself.
    pub(super) async fn read_if_up(context: &Context) {
        let client = DaemonClient::of_data_if_up(&context.settings.daemon);
        let Ok(Some(client)) = client else { return };
        if let Err(failure) = client.api_post("/api/reload").await {
            tracing::debug!("the daemon did not read its files: {}", failure.message);
        }
    }

    /// Refuses a running daemon that reads another settings file, before anything changes.
    pub(super) async fn check_before(settings: &Path, context: &Context) -> Result<(), Failure> {
        match DaemonClient::of_data_if_up(&context.settings.daemon)? {
            Some(client) => Self { client, is_started: false }.check_follows(settings).await,
            None => Ok(()),
        }
    }

    /// Refuses a daemon that reads another settings file.
    pub(super) async fn check_follows(&self, settings: &Path) -> Result<(), Failure> {
        if follows(&self.client, settings).await? {
            return Ok(());
        }
        let text = format!(
            "{} does not read {}; stop it with `{}`, then run the command again",
            self.client.place(),
            settings.display(),
            narthex("daemon stop", &[])
        );
        Err(Failure::new(ErrorKind::Conflict, text))
    }

    /// Has the daemon read its files.
    pub(super) async fn reload(&self) -> Result<(), Failure> {
        let reloaded = self.client.api_post("/api/reload").await?;
        let files = reloaded["files"].as_array().map(Vec::as_slice).unwrap_or_default();
        let settings = files.iter().filter(|file| file["provenance"] == "settings");
        let mut errors = settings.filter_map(|file| file["error"].as_str());
        match errors.next() {
            Some(error) => Err(Failure::new(ErrorKind::Invalid, error)),
            None => Ok(()),
        }
    }

    /// Waits until each server works or has failed. The daemon has read the settings: a server that
    /// it does not have then, it will not have. A terminal shows the ones that it waits for.
    pub(super) async fn check(
        &self,
        names: &[&Alias],
        context: &Context,
    ) -> Result<BTreeMap<Alias, Checked>, Failure> {
        let bar = if context.format.is_quiet() { None } else { spinner() };
        let begin = Instant::now();
        let mut all = BTreeMap::new();
        while all.len() < names.len() {
            let rows: Vec<Row> = self.client.rows().await?;
            for name in names.iter().filter(|name| !all.contains_key(**name)).collect::<Vec<_>>() {
                let of_name: Vec<_> =
                    rows.iter().filter(|row| row.alias == name.as_str()).collect();
                if let Some(checked) = checked(&of_name, begin.elapsed()) {
                    all.insert((*name).clone(), checked);
                }
            }
            let waiting = names.iter().filter(|name| !all.contains_key(**name));
            let waiting: Vec<_> = waiting.map(|name| name.as_str()).collect();
            if waiting.is_empty() {
                break;
            }
            if let Some(bar) = &bar {
                bar.set_message(harmless(&format!("waiting for {}", waiting.join(", "))));
            }
            sleep(PAUSE).await;
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        Ok(all)
    }
}

/// The result for the rows of one name; `None` while it is not known.
fn checked(rows: &[&Row], passed: Duration) -> Option<Checked> {
    let failed = |reason: &str, needs_sign_in| {
        let reason = harmless(reason.trim_end_matches('.'));
        Some(Checked::Failed { reason, needs_sign_in, unset: Vec::new() })
    };
    // An entry of a project's file may hide the one of the settings.
    let Some(row) = rows.iter().find(|row| !row.is_overridden) else {
        return Some(Checked::Absent { is_overridden: !rows.is_empty() });
    };
    match row.status {
        ServerState::Connecting if passed >= SETTLING => {
            failed("it did not answer in 10 minutes", false)
        }
        ServerState::Connecting => None,
        ServerState::Disabled => {
            let enable = narthex("mcp enable {}", &[&row.alias]);
            failed(&format!("narthex has it disabled; `{enable}` enables it"), false)
        }
        ServerState::Ready => match row.unlisted_tools() {
            Some(reason) => failed(reason, false),
            None => Some(Checked::Ready { tools: row.tools }),
        },
        ServerState::Authenticating | ServerState::Error => {
            let kind = row.error.as_ref().map(|error| error.kind);
            let is_waiting = row.status == ServerState::Authenticating;
            let needs_sign_in = is_waiting || kind == Some(CallErrorKind::AuthUnavailable);
            let reason = row.error.as_ref().map(|error| error.message.clone());
            let reason = reason.unwrap_or_else(|| row.summary());
            // The rest of the message has commands about a row that the set-up takes out again.
            let cause = reason.split("; ").next().filter(|_| needs_sign_in);
            let mut reason = cause.unwrap_or(&reason).trim_end_matches('.').to_owned();
            if is_waiting {
                reason.push_str(&signing_in(&row.alias));
            }
            let reason = harmless(&reason);
            let unset = row.error.as_ref().map(unset).unwrap_or_default();
            Some(match needs_sign_in && !is_waiting && unset.is_empty() {
                true => Checked::Refused { reason },
                false => Checked::Failed { reason, needs_sign_in, unset },
            })
        }
    }
}

/// The commands after which a server with a sign-in moves, as the end of a sentence. Its row goes
/// with the set-up, since only a server that works may leave the files of clients.
fn signing_in(alias: &str) -> String {
    let authorize = narthex("mcp authorize {}", &[&alias]);
    let setup = narthex("setup", &[]);
    format!("; add its URL to narthex, sign in with `{authorize}`, then run `{setup}` again")
}

/// The variables without which an entry cannot be used, from the problems of its row.
fn unset(error: &CallError) -> Vec<String> {
    let details = error.details.as_ref();
    let problems = details.and_then(|details| details["problems"].as_array());
    let names = problems.into_iter().flatten().filter_map(|one| one["variable"].as_str());
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(status: &str, error: &serde_json::Value) -> Row {
        serde_json::from_value(json!({
            "alias": "a", "status": status, "transport": "http", "tools": 3, "error": error,
        }))
        .unwrap()
    }

    #[test]
    fn a_server_works_once_its_tools_are_listed() {
        let absent = Some(Checked::Absent { is_overridden: false });
        assert_eq!(checked(&[], Duration::ZERO), absent);
        assert_eq!(checked(&[&row("connecting", &json!(null))], Duration::ZERO), None);
        let ready = row("ready", &json!(null));
        assert_eq!(checked(&[&ready], Duration::ZERO), Some(Checked::Ready { tools: 3 }));
        let mut unlisted = ready;
        let message = "`tools/list` failed.".to_owned();
        unlisted.warnings = vec![crate::rows::Warning { kind: "list_failed".to_owned(), message }];
        let failed = |reason: &str, needs_sign_in, unset: &[&str]| {
            let unset = unset.iter().map(|name| (*name).to_owned()).collect();
            Some(Checked::Failed { reason: reason.to_owned(), needs_sign_in, unset })
        };
        let listing = failed("`tools/list` failed", false, &[]);
        assert_eq!(checked(&[&unlisted], Duration::ZERO), listing);
        let message = "401; for operators: `narthex mcp reconnect a`";
        let error = json!({ "kind": "auth_unavailable", "message": message });
        let refused = Some(Checked::Refused { reason: "401".to_owned() });
        assert_eq!(checked(&[&row("error", &error)], Duration::ZERO), refused);
        // A server that waits for a person stays, and the commands that mend it are named.
        let waiting = checked(&[&row("authenticating", &error)], Duration::ZERO);
        let reason = "401; add its URL to narthex, sign in with `narthex mcp authorize a`, then \
                      run `narthex setup` again";
        assert_eq!(waiting, failed(reason, true, &[]));
        let problems = json!([
            { "code": "variable_missing", "variable": "B" },
            { "code": "type_wrong" },
            { "code": "variable_missing", "variable": "A" },
            { "code": "variable_missing", "variable": "B" },
        ]);
        let details = json!({ "file": "/a", "problems": problems });
        let error = json!({ "kind": "transport_error", "message": "no.", "details": details });
        let unset = failed("no", false, &["A", "B"]);
        assert_eq!(checked(&[&row("error", &error)], Duration::ZERO), unset);
    }
}
