//! The registry's rows, for people and programs.

use narthex_model::{
    CallError, CallErrorKind, RowWarning, ServerState, WarningKind,
    command::{CommandLine, narthex},
};
use narthex_wire::method;
use serde::{Deserialize, Serialize};

/// One server, in events, tables and the daemon's reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub alias: String,
    #[serde(alias = "state")]
    pub status: ServerState,
    /// True if an entry of another file counts instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_overridden: bool,
    /// The transport; `None` if the entry is faulty.
    pub transport: Option<String>,
    /// Number of the server's tools.
    pub tools: usize,
    /// Number of definitions that differ from the first ones.
    #[serde(default, rename = "definitions_changed")]
    pub changed: usize,
    /// Number of definitions under review.
    #[serde(default, rename = "definitions_held_back")]
    pub held_back: usize,
    /// Faults that disable a part of the server.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// True if the server's program has written to its log.
    #[serde(default)]
    pub has_logs: bool,
    /// The present step of a server that is connecting.
    pub activity: Option<String>,
    pub error: Option<CallError>,
}

/// A fault that disables a part of a server and leaves the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind, for programs.
    pub kind: String,
    /// The fault and its consequence.
    pub message: String,
}

impl From<RowWarning> for Warning {
    fn from(warning: RowWarning) -> Self {
        Self { kind: warning.kind.as_str().to_owned(), message: warning.message }
    }
}

impl Row {
    /// The command that shows the output of a failed program.
    fn logs(&self) -> Option<String> {
        logs_of(&self.alias, self.error.as_ref()?.kind.as_str(), self.has_logs)
    }

    /// The reason why the server's tools could not be listed; `None` if they could.
    pub fn unlisted_tools(&self) -> Option<&str> {
        let kind = WarningKind::ListFailed.as_str();
        let start = format!("`{}`", method::TOOLS_LIST);
        let mut failed = self.warnings.iter().filter(|warning| warning.kind == kind);
        failed.find(|warning| warning.message.starts_with(&start)).map(|one| &*one.message)
    }

    /// The state in one line, without the name.
    pub fn summary(&self) -> String {
        if self.is_overridden {
            return "overridden".to_owned();
        }
        match (self.status, &self.error, &self.activity) {
            (ServerState::Ready, _, _) => {
                let tools = if self.tools == 1 { "tool" } else { "tools" };
                let changed = match (self.held_back, self.changed) {
                    (0, 0) => String::new(),
                    (0, count) => format!(", {count} of its definitions changed since it started"),
                    (count, _) => {
                        let see = narthex("servers definitions {} --live", &[&self.alias]);
                        format!(", {count} of its definitions are under review: see `{see}`")
                    }
                };
                let warnings = self.warnings.iter().map(|one| warned(&one.message));
                format!("ready: {} {tools}{changed}{}", self.tools, warnings.collect::<String>())
            }
            (state, Some(error), _) => {
                let (state, logs) = (state.as_str(), self.logs());
                let sign_in = sign_in_of(&self.alias, state, &error.message);
                let end = logs.or(sign_in).unwrap_or_default();
                format!("{state}: {error}{end}")
            }
            // A server that connects says so in both.
            (state, None, Some(activity)) if activity != state.as_str() => {
                format!("{}: {activity}", state.as_str())
            }
            (state, None, _) => state.as_str().to_owned(),
        }
    }
}

/// A warning at the end of a server's state.
pub fn warned(message: &str) -> String {
    format!("; warning: {message}")
}

/// The command that shows the log of a server's program. `None` if the log is empty, or cannot
/// explain a failure of this kind.
pub fn logs_of(name: &str, kind: &str, has_logs: bool) -> Option<String> {
    told_in_logs(kind, has_logs).then(|| shown_by(&narthex("mcp logs {}", &[&name])))
}

/// As [`logs_of`], for the mount of a run of a workspace.
pub fn logs_of_mount(mount: &str, workspace: &str, kind: &str, has_logs: bool) -> Option<String> {
    let logs = || narthex("mcp logs {}", &[&mount]).option("--workspace", workspace);
    told_in_logs(kind, has_logs).then(|| shown_by(&logs()))
}

/// The command that signs in to a server, as the end of a sentence. `None` if the server does not
/// wait for a sign-in, or `told` has the command already.
pub fn sign_in_of(name: &str, state: &str, told: &str) -> Option<String> {
    let waits = state == ServerState::Authenticating.as_str();
    (waits && !told.contains("mcp authorize"))
        .then(|| format!("; sign in with `{}`", narthex("mcp authorize {}", &[&name])))
}

fn told_in_logs(kind: &str, has_logs: bool) -> bool {
    let kinds = [CallErrorKind::TransportError, CallErrorKind::Timeout];
    has_logs && kinds.iter().any(|one| one.as_str() == kind)
}

fn shown_by(logs: &CommandLine) -> String {
    format!("; `{logs}` shows its output")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S22: a definition under review may wait or be rejected, and the command that is named shows
    /// both.
    #[test]
    fn s22_a_row_names_the_command_that_shows_definitions_under_review() {
        let mut row = Row {
            alias: "git".to_owned(),
            status: ServerState::Ready,
            is_overridden: false,
            transport: None,
            tools: 1,
            changed: 0,
            held_back: 2,
            warnings: Vec::new(),
            has_logs: false,
            activity: None,
            error: None,
        };
        let told = "ready: 1 tool, 2 of its definitions are under review: see `narthex servers \
                    definitions git --live`";
        assert_eq!(row.summary(), told);
        row.held_back = 0;
        assert_eq!(row.summary(), "ready: 1 tool");
        // D14: the summary also names gates that match nothing.
        let message = "`tool_scopes` names `x`".to_owned();
        row.warnings = vec![Warning { kind: "gate_unmatched".to_owned(), message }];
        assert_eq!(row.summary(), "ready: 1 tool; warning: `tool_scopes` names `x`");
        row.status = ServerState::Error;
        row.transport = Some("stdio".to_owned());
        row.error = Some(CallError::new(CallErrorKind::TransportError, "it ended"));
        assert_eq!(row.summary(), "error: transport_error: it ended", "it wrote nothing");
        row.has_logs = true;
        assert!(row.summary().ends_with("it ended; `narthex mcp logs git` shows its output"));
        // Only the failed list of tools counts.
        let failed = |list: &str| Warning {
            kind: "list_failed".to_owned(),
            message: format!("`{list}` failed, so it is so"),
        };
        row.warnings = vec![failed("prompts/list"), failed("tools/list")];
        assert_eq!(row.unlisted_tools(), Some("`tools/list` failed, so it is so"));
        row.warnings.pop();
        assert_eq!(row.unlisted_tools(), None);
        (row.status, row.error) = (ServerState::Connecting, None);
        for (activity, summary) in
            [("connecting", "connecting"), ("installing", "connecting: installing")]
        {
            row.activity = Some(activity.to_owned());
            assert_eq!(row.summary(), summary);
        }
        // C22: a server that waits for a person names the command, once.
        (row.status, row.activity) = (ServerState::Authenticating, None);
        row.error = Some(CallError::new(CallErrorKind::AuthUnavailable, "it needs a sign-in"));
        let end = "it needs a sign-in; sign in with `narthex mcp authorize git`";
        assert!(row.summary().ends_with(end), "{}", row.summary());
        row.error = Some(CallError::new(CallErrorKind::AuthUnavailable, end));
        assert!(row.summary().ends_with(end), "{}", row.summary());
        row.is_overridden = true;
        assert_eq!(row.summary(), "overridden");
    }
}
