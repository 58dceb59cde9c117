//! `narthex mcp list`: a row per server; without a daemon, the configured ones.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use narthex_model::{Timestamp, command::narthex};
use serde_json::{Value, json};

use super::text;
use crate::{
    Context, Failure,
    commands::{
        across::{HOME, OWN_HIDDEN, active_runs, all_active_runs, if_operator},
        files,
        mcp::{Configured, Unapproved},
    },
    daemon_client::DaemonClient,
    output::{self, age, harmless},
    rows::{logs_of, sign_in_of},
    table,
};

const COLUMNS: [&str; 8] = [
    "name",
    "workspace",
    "transport",
    "status",
    "tools",
    "resources",
    "last check",
    "last failure",
];
/// Idle time after which a server over HTTP may have stopped answering unnoticed.
const LONG_IDLE: Duration = Duration::from_secs(60);
/// Time before the end of a sign-in from which the list shows that end.
const SIGN_IN_SOON: Duration = Duration::from_hours(24);
/// The column that is left out where all rows are of the home workspace.
const WORKSPACE: usize = 1;

/// Lists the servers, or only those of a workspace.
pub(super) async fn run(
    workspace: Option<&str>,
    context: &Context,
    configured: impl AsyncFn() -> Configured,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator_if_up(&context.daemon)?;
    let (mut rows, mut files, mut sees_own) = (Vec::new(), Vec::new(), true);
    if let Some(client) = &client {
        if workspace.is_none_or(|name| name == HOME) {
            let own = if_operator(client.api_all("/api/servers").await)?;
            sees_own = own.is_some();
            rows.extend(own.into_iter().flatten().map(at_home));
        }
        rows.extend(of_runs(workspace, client).await?);
        files = files::followed(client).await?;
    }
    if context.format.is_json() {
        let mounts: Vec<_> = rows.iter().map(mount).collect();
        let daemon = if client.is_some() { "running" } else { "down" };
        let configured = configured().await.names;
        output::done(&json!({
            "mounts": mounts,
            "daemon": daemon,
            "configured": configured,
            "files": files,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        for row in rows.iter().filter(|row| row["is_overridden"] != true) {
            output::line(&harmless(&shown_name(row)))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemTime::now();
    if !sees_own {
        output::notice(OWN_HIDDEN);
    }
    if rows.is_empty() && !sees_own {
        output::sentence("No active run that this token can see has servers of its own.")?;
    } else if let Some(other) = workspace
        && rows.is_empty()
        && client.is_some()
        && other != HOME
    {
        output::sentence(&none_in(other))?;
    } else if rows.is_empty() {
        nothing(client.is_some(), configured().await)?;
    } else {
        show(&rows, now, context)?;
    }
    for sentence in files::warnings(&files, now) {
        output::notice(&format!("warning: {sentence}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The table, and below it the causes of failures, and warnings.
fn show(rows: &[Value], now: SystemTime, context: &Context) -> Result<(), Failure> {
    let mut columns = COLUMNS.to_vec();
    let mut cells: Vec<_> = rows.iter().map(|row| cells(row, now, context.is_ascii)).collect();
    if rows.iter().all(|row| row["workspace"] == HOME) {
        columns.remove(WORKSPACE);
        cells.iter_mut().for_each(|cells| drop(cells.remove(WORKSPACE)));
    }
    output::line(&table::render(&columns, &cells, "The daemon has no servers."))?;
    for row in rows.iter().filter(|row| row["error"].is_object()) {
        let (name, error) = (shown_name(row), &row["error"]);
        let logs = logs_of(&name, text(error, "kind"), row["has_logs"] == true);
        let is_ours = row["pid"].is_null();
        let sign_in = sign_in_of(&name, text(row, "state"), text(error, "message"));
        let end = logs.or(sign_in.filter(|_| is_ours)).unwrap_or_default();
        let told = format!("{}{end}", text(error, "message"));
        output::notice(&format!("{}: {}", harmless(&name), harmless(&told)));
    }
    for row in rows.iter().filter(|row| !row["error"].is_object()) {
        if let Some(told) = failure_since(row, now) {
            output::notice(&format!("{}: {}", harmless(&shown_name(row)), harmless(&told)));
        }
    }
    for row in rows {
        if let Some(told) = sign_in_ends(row, now) {
            output::notice(&format!("{}: {}", harmless(&shown_name(row)), harmless(&told)));
        }
    }
    if rows.iter().any(|row| is_long_idle(row, now)) {
        let test = narthex("mcp test NAME", &[]);
        output::notice(&format!(
            "LAST CHECK is when a server last answered. narthex checks no idle server before its \
             next call: check one now with `{test}`."
        ));
    }
    for row in rows {
        for warning in row["warnings"].as_array().into_iter().flatten() {
            let told = harmless(text(warning, "message"));
            output::notice(&format!("{}: warning: {told}", harmless(&shown_name(row))));
        }
    }
    Ok(())
}

/// The sentence for a workspace, other than that of the daemon's own servers, without rows.
fn none_in(workspace: &str) -> String {
    format!(
        "No active run of workspace {} that this token can see has servers; `{}` shows those of \
         its catalog.",
        harmless(workspace),
        narthex("servers list", &[]).in_workspace(workspace)
    )
}

fn nothing(is_up: bool, configured: Configured) -> Result<(), Failure> {
    let sentence = match is_up {
        true => "Neither the daemon nor any active run that this token can see has servers.",
        false => "No daemon runs, so no server is connected.",
    };
    output::sentence(sentence)?;
    if configured.names.is_empty() {
        output::notice(&first_step(is_up));
    }
    if !configured.names.is_empty() {
        let names: Vec<_> = configured.names.iter().map(|name| harmless(name)).collect();
        let remedy = narthex(if is_up { "mcp reload" } else { "up --detach" }, &[]);
        let then = match configured.unapproved {
            None => format!("`{remedy}` starts them."),
            Some(Unapproved { why, approve }) => format!(
                "mcp.json {why}, so `{remedy}` does not start them: read what the file starts and \
                 approve it with `{approve}`."
            ),
        };
        output::sentence(&format!("Configured here: {}. {then}", names.join(", ")))?;
    }
    Ok(())
}

/// The commands of a user who has no server yet.
fn first_step(is_up: bool) -> String {
    if !is_up {
        return format!("start one with `{}`", narthex("up --detach", &[]));
    }
    format!(
        "take the servers of your MCP clients with `{}`, or add one with `{}` from a registry, or \
         `{}`",
        narthex("setup", &[]),
        narthex("add NAME", &[]),
        narthex("mcp add NAME -- COMMAND", &[])
    )
}

/// Why a server failed that has no error, if it has not answered since then: it is being connected
/// again, or looked at.
fn failure_since(row: &Value, now: SystemTime) -> Option<String> {
    let failure = &row["last_failure"];
    let at = Timestamp::read(failure["at"].as_str()?)?;
    let answered = row["last_success"].as_str().and_then(Timestamp::read);
    if row["state"] != "connecting" && answered.is_some_and(|answered| answered > at) {
        return None;
    }
    Some(format!("failed {}: {}", age(at, now), text(failure, "message")))
}

/// The end of a sign-in that a person has to renew soon, or the failure of its renewal.
fn sign_in_ends(row: &Value, now: SystemTime) -> Option<String> {
    let sign_in = &row["signIn"];
    let authorize = narthex("mcp authorize {}", &[&text(row, "name")]);
    if let Some(failure) = sign_in["failure"].as_str() {
        let at = Timestamp::read(text(sign_in, "failedAt"))?;
        return Some(format!(
            "its tokens could not be renewed {}: {failure}; if that stays, sign in with \
             `{authorize}`",
            age(at, now)
        ));
    }
    let end = Timestamp::read(text(sign_in, "expiresAt"))?;
    let is_near = end < now + SIGN_IN_SOON;
    (is_near && sign_in["canRenew"] != true).then(|| {
        format!(
            "its sign-in ends at {} and cannot be renewed; sign in again with `{authorize}`",
            Timestamp::new(end)
        )
    })
}

/// True if a server may have stopped answering unnoticed: it is ready, over HTTP, and was not asked
/// anything for a minute. The end of a program is seen by itself.
fn is_long_idle(row: &Value, now: SystemTime) -> bool {
    let answered = row["last_success"].as_str().and_then(Timestamp::read);
    let idle = answered.and_then(|answered| now.duration_since(answered).ok());
    let is_ready = row["state"] == "ready" && row["is_asleep"] != true;
    is_ready && row["transport"] != "stdio" && idle.is_some_and(|idle| idle >= LONG_IDLE)
}

/// A row of the daemon's own servers, with their workspace.
fn at_home(mut row: Value) -> Value {
    row["workspace"] = json!(HOME);
    row
}

/// The servers that active runs have for themselves, of one workspace or of all; none for a caller
/// that may not see runs.
async fn of_runs(workspace: Option<&str>, client: &DaemonClient) -> Result<Vec<Value>, Failure> {
    let runs = match workspace {
        Some(workspace) => active_runs(client, workspace).await?,
        None => all_active_runs(client).await?,
    };
    Ok(runs.iter().flat_map(rows_of_run).collect())
}

/// A server that a run has for itself, and its workspace.
pub(super) struct MountOfRun {
    /// Its name in lists: `<pid>-<name>`.
    pub(super) name: String,
    pub(super) workspace: String,
    pub(super) run_id: String,
}

/// The servers of this name, or with mounts of this name, that runs have for themselves, the oldest
/// run first.
pub(super) async fn mounts_of_runs(
    name: &str,
    client: &DaemonClient,
) -> Result<Vec<MountOfRun>, Failure> {
    let mut rows = of_runs(None, client).await?;
    rows.retain(|row| row["name"] == name || shown_name(row) == name);
    rows.sort_by_key(|row| row["pid"].as_u64());
    let mount = |row: &Value| MountOfRun {
        name: shown_name(row),
        workspace: text(row, "workspace").to_owned(),
        run_id: text(row, "run_id").to_owned(),
    };
    Ok(rows.iter().map(mount).collect())
}

/// The servers that a run has for itself, as rows (R-C1).
fn rows_of_run(run: &Value) -> Vec<Value> {
    let servers = run["servers"].as_array().into_iter().flatten();
    let row = |server: &Value| {
        let mut row = server.clone();
        if let Some(members) = row.as_object_mut()
            && let Some(alias) = members.remove("alias")
        {
            members.insert("name".to_owned(), alias);
            for member in ["pid", "run_id", "agent_name", "workspace"] {
                members.insert(member.to_owned(), run[member].clone());
            }
        }
        row
    };
    servers.map(row).collect()
}

/// The name of a row for people: that of a run by the name of its mount, `<pid>-<name>`, as `logs`
/// takes it.
fn shown_name(row: &Value) -> String {
    let name = text(row, "name");
    row["pid"].as_u64().map_or_else(|| name.to_owned(), |pid| format!("{pid}-{name}"))
}

/// A row in JSON: as the daemon sends it, with its state under the word of the table.
fn mount(row: &Value) -> Value {
    let mut mount = row.clone();
    if let Some(members) = mount.as_object_mut()
        && let Some(state) = members.remove("state")
    {
        members.insert("status".to_owned(), state);
    }
    mount
}

fn cells(row: &Value, now: SystemTime, is_ascii: bool) -> Vec<String> {
    let none = || if is_ascii { "-" } else { "—" }.to_owned();
    let or_none = |text: &str| if text.is_empty() { none() } else { text.to_owned() };
    let count = |member: &str| match row[member].as_u64() {
        None | Some(0) => none(),
        Some(count) => count.to_string(),
    };
    let status = match (row["is_overridden"] == true, row["is_asleep"] == true) {
        (true, _) => "overridden",
        (false, true) => "asleep",
        (false, false) => text(row, "state"),
    };
    let ago = |row: &Value, member: &str| {
        Timestamp::read(text(row, member)).map_or_else(none, |time| age(time, now))
    };
    vec![
        harmless(&shown_name(row)),
        harmless(text(row, "workspace")),
        or_none(text(row, "transport")),
        status.to_owned(),
        count("tools"),
        count("resources"),
        ago(row, "last_success"),
        ago(&row["last_failure"], "at"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-C1: a row of a run has its path, and is called as its mount is.
    #[test]
    fn r_c1_rows_of_runs_have_their_mounts_names() {
        let path = "/mnt/mcp/3-git";
        let run = json!({ "run_id": "run_1", "pid": 3, "agent_name": "helper", "workspace": "team",
            "servers": [{ "alias": "git", "path": path, "state": "ready" }] });
        let rows = rows_of_run(&run);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((&row["name"], &row["path"]), (&json!("git"), &json!(path)));
        assert_eq!((&row["run_id"], &row["agent_name"]), (&json!("run_1"), &json!("helper")));
        assert_eq!((shown_name(row).as_str(), &row["workspace"]), ("3-git", &json!("team")));
        assert_eq!(mount(row)["status"], "ready");
        assert_eq!(shown_name(&json!({ "name": "git" })), "git");
    }

    /// A sign-in that no renewal prolongs is named before it ends, and one that is renewed is
    /// not.
    #[test]
    fn oauth_c24_the_end_of_a_sign_in_is_told_with_its_command() {
        let now = SystemTime::now();
        let row = |hours: u64, can_renew: bool| {
            let end = Timestamp::new(now + Duration::from_hours(hours)).to_string();
            json!({ "name": "git", "signIn": { "expiresAt": end, "canRenew": can_renew } })
        };
        let told = sign_in_ends(&row(1, false), now).unwrap();
        assert!(told.ends_with("sign in again with `narthex mcp authorize git`"), "{told}");
        assert_eq!(sign_in_ends(&row(1, true), now), None);
        assert_eq!(sign_in_ends(&row(48, false), now), None);
        assert_eq!(sign_in_ends(&json!({ "name": "git" }), now), None);
        let mut failed = row(1, true);
        failed["signIn"]["failure"] = json!("no answer");
        failed["signIn"]["failedAt"] = json!(Timestamp::new(now).to_string());
        let told = sign_in_ends(&failed, now).unwrap();
        assert!(told.starts_with("its tokens could not be renewed 0s ago: no answer;"), "{told}");
    }

    #[test]
    fn a_workspace_without_rows_is_led_to_its_catalog() {
        assert_eq!(
            none_in("team"),
            "No active run of workspace team that this token can see has servers; `narthex \
             servers list --workspace team` shows those of its catalog."
        );
    }

    /// D30: a ready server over HTTP that had no call for a minute may have stopped answering.
    #[test]
    fn d30_a_ready_http_server_idle_for_over_a_minute_is_marked() {
        let now = SystemTime::now();
        let row = |state: &str, transport: &str, seconds| {
            let at = Timestamp::new(now - Duration::from_secs(seconds)).to_string();
            json!({ "state": state, "transport": transport, "last_success": at })
        };
        for (row, expected) in [
            (row("ready", "http", 61), true),
            (row("ready", "http", 50), false),
            (row("ready", "stdio", 600), false),
            (row("error", "http", 600), false),
            (json!({ "state": "ready", "transport": "http", "last_success": null }), false),
        ] {
            assert_eq!(is_long_idle(&row, now), expected, "{row}");
        }
    }

    /// D30: a failure after which the server has not answered is shown with its cause, also of a
    /// row that is still ready.
    #[test]
    fn d30_a_failure_is_shown_until_the_server_answers_again() {
        let now = SystemTime::now();
        let at = |seconds| Timestamp::new(now - Duration::from_secs(seconds)).to_string();
        let told = |state: &str, success: u64, failure: u64| {
            let failure = json!({ "at": at(failure), "message": "no answer within 30000 ms" });
            let row =
                json!({ "state": state, "last_success": at(success), "last_failure": failure });
            failure_since(&row, now)
        };
        let expected = "failed 8s ago: no answer within 30000 ms";
        assert_eq!(told("ready", 38, 8).as_deref(), Some(expected));
        assert_eq!(told("ready", 3, 8), None);
        assert_eq!(told("connecting", 3, 8).as_deref(), Some(expected));
        assert_eq!(failure_since(&json!({ "state": "ready", "last_failure": null }), now), None);
    }

    /// R-F1: counts are shown, and nothing is shown as a dash.
    #[test]
    fn r_f1_empty_and_zero_cells_are_shown_as_a_dash() {
        let row = json!({"name": "a\u{1b}[2K", "transport": null, "state": "ready", "tools": 3,
            "resources": 0, "last_success": null, "last_failure": null, "is_overridden": false,
            "is_asleep": false});
        let shown = |is_ascii| cells(&row, SystemTime::now(), is_ascii);
        assert_eq!(shown(false), ["a\u{fffd}[2K", "", "—", "ready", "3", "—", "—", "—"]);
        assert_eq!(shown(true)[5..], ["-", "-", "-"]);
    }
}
