//! Shapes of configured servers: their rows, in full and in short, and their tools.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ids::{CallErrorKind, Era, Provenance, ServerState, Time, Transport, WarningKind},
    page::{Listed, Page},
    schema::Nullable,
};

/// Cause of the failure of a call or a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(example = json!({ "kind": "server_disabled", "message": "it is disabled" }))]
pub(crate) struct CallError {
    pub(crate) kind: CallErrorKind,
    pub(crate) message: String,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

impl From<narthex_model::CallError> for CallError {
    fn from(error: narthex_model::CallError) -> Self {
        let narthex_model::CallError { kind, message, details } = error;
        Self { kind: kind.into(), message, details }
    }
}

/// The last failure of a server. The server may have answered since then.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerFailure {
    pub(crate) at: Time,
    /// Kind of the error of a call that fails for this cause.
    pub(crate) kind: &'static str,
    /// The cause.
    pub(crate) message: String,
}

/// The capabilities that a server declared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerCapabilities {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) subscribe: bool,
    pub(crate) completions: bool,
    pub(crate) logging: bool,
    pub(crate) tasks: bool,
    pub(crate) list_changed: bool,
}

/// A tool in the row of its server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

/// A fault that takes away a part of a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RowWarning {
    pub(crate) kind: WarningKind,
    /// The fault and its consequence. May contain words of the server.
    pub(crate) message: String,
}

impl From<&narthex_model::RowWarning> for RowWarning {
    fn from(warning: &narthex_model::RowWarning) -> Self {
        let narthex_model::RowWarning { kind, message } = warning;
        Self { kind: (*kind).into(), message: message.clone() }
    }
}

/// Faults that take away a part of a server. The rest of the server works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RowWarnings(pub(crate) Vec<RowWarning>);

/// The members of a server that its row has in full and in short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerBrief {
    pub(crate) state: ServerState,
    /// True if an entry of another file is used instead.
    pub(crate) is_overridden: bool,
    /// Present activity of a server in `connecting`.
    pub(crate) activity: Option<&'static str>,
    pub(crate) error: Option<CallError>,
    pub(crate) transport: Option<Transport>,
    pub(crate) era: Option<Era>,
    /// Revision of the protocol in use.
    pub(crate) revision: Option<&'static str>,
    /// Number of tools.
    pub(crate) tools: usize,
    /// Number of prompts.
    pub(crate) prompts: usize,
    /// Number of resources.
    pub(crate) resources: usize,
    /// Number of resource templates.
    pub(crate) resource_templates: usize,
    /// Number of definitions that differ from the first listing of the server.
    pub(crate) definitions_changed: usize,
    /// Number of definitions that are hidden until a human accepts them. Only a server with
    /// `pinDefinitions` has some.
    pub(crate) definitions_held_back: usize,
    /// Names in `tool_scopes`, `resource_scopes` and `prompt_scopes` that the server does not list,
    /// so that they gate nothing. One sentence each. The token of a run does not get this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gates_unmatched: Option<Vec<String>>,
    pub(crate) warnings: RowWarnings,
    /// Time of the last answer of the server to a call or a check.
    pub(crate) last_success: Option<Time>,
    pub(crate) last_failure: Option<ServerFailure>,
    /// True if the server's program has written to standard error.
    pub(crate) has_logs: bool,
}

/// The members of a server's row in full.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerDetails {
    #[serde(flatten)]
    pub(crate) brief: ServerBrief,
    /// Path of the server among the files of the run, such as `/mnt/mcp/0-github`. Null if the row
    /// is for no run, or the server can be in none.
    pub(crate) path: Option<String>,
    /// Mode of the authentication at the server.
    pub(crate) auth: Option<&'static str>,
    pub(crate) provenance: Provenance,
    /// The file with the server's entry. The token of a run does not get this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<Nullable<String>>,
    pub(crate) capabilities: Option<ServerCapabilities>,
    /// Number of attempts to reconnect since the connection was lost.
    pub(crate) attempt: u32,
    /// Number of times that the server came back after a loss.
    pub(crate) reconnects: u64,
    /// Number of kills of a program that did not end when asked to.
    pub(crate) forced_kills: u64,
    /// Time of the last reading of the server's lists.
    pub(crate) last_check: Option<Time>,
    /// True if a server in `error` is probed until it is back.
    pub(crate) is_probed: bool,
    /// True if the server was stopped while unused, and starts with the next call.
    pub(crate) is_asleep: bool,
}

/// The members of a row in the words for the agent of a run, which replace those for operators
/// (D28).
#[derive(Debug)]
pub(crate) struct WordsForRuns {
    pub(crate) error: Option<CallError>,
    pub(crate) last_failure: Option<ServerFailure>,
    pub(crate) warnings: RowWarnings,
}

impl ServerBrief {
    /// The part for the agent of a run, which reads no cause and no configuration (D28).
    pub(crate) fn for_runs(self, words: WordsForRuns) -> Self {
        let Self {
            state,
            is_overridden,
            activity,
            error: _,
            transport,
            era,
            revision,
            tools,
            prompts,
            resources,
            resource_templates,
            definitions_changed,
            definitions_held_back,
            gates_unmatched: _,
            warnings: _,
            last_success,
            last_failure: _,
            has_logs,
        } = self;
        let WordsForRuns { error, last_failure, warnings } = words;
        Self {
            state,
            is_overridden,
            activity,
            error,
            transport,
            era,
            revision,
            tools,
            prompts,
            resources,
            resource_templates,
            definitions_changed,
            definitions_held_back,
            gates_unmatched: None,
            warnings,
            last_success,
            last_failure,
            has_logs,
        }
    }
}

impl ServerDetails {
    /// The part for the agent of a run, which reads no cause and no configuration (D28).
    pub(crate) fn for_runs(self, words: WordsForRuns) -> Self {
        let Self {
            brief,
            path,
            auth,
            provenance,
            file: _,
            capabilities,
            attempt,
            reconnects,
            forced_kills,
            last_check,
            is_probed,
            is_asleep,
        } = self;
        Self {
            brief: brief.for_runs(words),
            path,
            auth,
            provenance,
            file: None,
            capabilities,
            attempt,
            reconnects,
            forced_kills,
            last_check,
            is_probed,
            is_asleep,
        }
    }
}

/// A configured server and its state.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerRow {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) server: ServerDetails,
    /// The address at which a human signs in, while a sign-in is open. The token of a run does not
    /// get this member.
    #[serde(rename = "authUrl", skip_serializing_if = "Option::is_none")]
    pub(crate) auth_url: Option<String>,
    /// The sign-in whose tokens the server gets. The token of a run does not get this member.
    #[serde(rename = "signIn", skip_serializing_if = "Option::is_none")]
    pub(crate) sign_in: Option<ServerSignIn>,
    /// The server's tools. Only with `tools=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_list: Option<Vec<ListedTool>>,
}

/// The sign-in to a server. It shows no token.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerSignIn {
    /// The authorization server.
    pub(crate) issuer: String,
    /// The granted scopes.
    pub(crate) scopes: Vec<String>,
    /// End of the access token, if it is known.
    pub(crate) expires_at: Option<Time>,
    /// True if the token can be renewed without a human.
    pub(crate) can_renew: bool,
    /// Origin of narthex's client id there: `entry`, `settings` (the section `oauth.clients`),
    /// `document` or `registration`. Null if it is not known now.
    pub(crate) client_origin: Option<ClientIdOrigin>,
    /// Name of the client in the settings, if it is one of them.
    pub(crate) client_setting: Option<String>,
    /// Time of the last request for tokens that succeeded.
    pub(crate) succeeded_at: Option<Time>,
    /// Time of the last request for tokens that failed.
    pub(crate) failed_at: Option<Time>,
    /// Cause of the last failure, if no request has succeeded since.
    pub(crate) failure: Option<String>,
}

/// The origin of narthex's client id at an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientIdOrigin {
    Entry,
    Settings,
    Document,
    Registration,
}

/// An open sign-in to a server, which a human finishes in a browser.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerSignInBegun {
    /// The address to open in the browser.
    pub(crate) url: String,
    pub(crate) expires_at: Time,
    /// The address to which the authorization server sends the browser back.
    pub(crate) redirect_uri: String,
}

/// An open sign-in to a server, which a human finishes at another device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceSignInBegun {
    /// The code that the human enters.
    pub(crate) user_code: String,
    /// The address at which the human enters the code.
    pub(crate) verification_uri: String,
    /// The same address with the code in it.
    pub(crate) verification_uri_complete: Option<String>,
    pub(crate) expires_at: Time,
    /// Id of the sign-in, for its state.
    pub(crate) id: String,
}

/// State of a sign-in at another device.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeviceSignIn {
    #[schemars(extend("enum" = ["pending", "done", "denied", "expired", "failed"]))]
    pub(crate) state: &'static str,
    /// Cause of the failure.
    pub(crate) failure: Option<String>,
}

impl Listed for ServerRow {
    const PAGE: &str = "ServerRows";
    const ABOUT: &str = "Servers that the caller may see, by name.";
}

/// Servers that the caller may see, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerRowPage {
    /// True if no server is connecting, on this page or another.
    pub(crate) settled: bool,
    #[serde(flatten)]
    pub(crate) page: Page<ServerRow>,
}

/// An event of the stream: all rows, sent after a change of one or more.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServersEvent<'e> {
    pub(crate) seq: u64,
    pub(crate) settled: bool,
    pub(crate) servers: &'e [ServerRow],
}

/// A server in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusRow {
    pub(crate) alias: String,
    #[serde(flatten)]
    pub(crate) server: ServerBrief,
}

impl Listed for StatusRow {
    const PAGE: &str = "StatusRows";
    const ABOUT: &str = "Servers that the caller may see, in short, by name.";
}

/// Servers that the caller may see, in short, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusPage {
    /// True if no server is connecting, on this page or another.
    pub(crate) settled: bool,
    #[serde(flatten)]
    pub(crate) page: Page<StatusRow>,
}

/// A tool under both of its names.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "alias": "docs",
    "name": "search",
    "qualified_name": "mcp__docs__search",
    "description": null
}))]
pub(crate) struct ToolRow {
    pub(crate) alias: String,
    /// Name of the tool at its server.
    pub(crate) name: String,
    /// Name of the tool at the aggregated endpoint.
    pub(crate) qualified_name: Option<String>,
    pub(crate) description: Option<String>,
}

impl Listed for ToolRow {
    const PAGE: &str = "ToolPage";
    const ABOUT: &str = "Tools of all servers, by alias and name.";
}
