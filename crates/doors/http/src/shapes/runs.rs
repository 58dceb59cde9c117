//! Shapes of runs and sessions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ids::{Alias, ObjectName, PrincipalId, RunId, RunStatus, SessionId, Time},
    page::Listed,
    schema::one_of,
    servers::ServerDetails,
};

/// The most seconds of a run.
const EXPIRES_IN_MAX: u64 = 2_592_000;

/// The members that each run has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunHead {
    pub(crate) run_id: RunId,
    pub(crate) status: RunStatus,
    pub(crate) created_at: Time,
    /// Number of the run in the workspace. 0 is the daemon's own run.
    pub(crate) pid: u64,
}

/// The stored members of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunStored {
    pub(crate) session_id: SessionId,
    #[schemars(extend("x-nullable" = true))]
    pub(crate) agent_name: Option<ObjectName>,
    /// The variables that an operator has bound to secrets for the run's agent.
    pub(crate) agent_env_names: Vec<String>,
    #[schemars(extend("x-nullable" = true))]
    pub(crate) parent_run_id: Option<RunId>,
    /// The human who drives the run.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) user: Option<PrincipalId>,
    /// The human whose turn it is, and whose grants count.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) acts_for: Option<PrincipalId>,
    /// The claim of a run that an executor claims.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) claim: Option<RunClaim>,
    pub(crate) created_by: String,
    pub(crate) expires_at: Time,
    #[schemars(extend("x-nullable" = true))]
    pub(crate) ended_at: Option<Time>,
}

/// The members of a run that was used since the daemon started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunLive {
    /// True for the daemon's own run.
    pub(crate) is_local: bool,
    pub(crate) mcp_sessions: u64,
    /// The shared servers that the run asks for. `*` means all.
    pub(crate) tools: Vec<String>,
    pub(crate) servers: Vec<RunServer>,
    #[schemars(extend("x-nullable" = true))]
    pub(crate) tool_set: Option<ToolSet>,
}

/// The stored part of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunRow {
    #[serde(flatten)]
    pub(crate) head: RunHead,
    #[serde(flatten)]
    pub(crate) stored: RunStored,
}

/// A run. The daemon's own run has no stored members, such as `session_id`. Live members, such as
/// `servers`, are there only for an active run that was used since the daemon started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Run {
    #[serde(flatten)]
    pub(crate) head: RunHead,
    #[serde(flatten)]
    pub(crate) stored: Option<RunStored>,
    #[serde(flatten)]
    pub(crate) live: Option<RunLive>,
}

impl Listed for Run {
    const PAGE: &str = "RunPage";
    const ABOUT: &str = "The runs of a workspace, in the order of their numbers.";
}

/// The recorded set of tools that a run sees.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolSet {
    pub(crate) count: u64,
    #[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
    pub(crate) digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<SeenTool>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct SeenTool {
    pub(crate) name: String,
    pub(crate) server: String,
    #[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
    pub(crate) digest: String,
}

/// A server of a run: its row, or the failure of its start.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = one_of)]
pub(crate) enum RunServer {
    Row(Box<RunServerRow>),
    Failed(RunServerFailed),
}

/// A server of the run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunServerRow {
    pub(crate) alias: String,
    #[serde(flatten)]
    pub(crate) server: ServerDetails,
}

/// A server that failed to start.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunServerFailed {
    pub(crate) alias: String,
    #[schemars(extend("const" = Self::STATE))]
    pub(crate) state: &'static str,
    pub(crate) error: CallFault,
}

impl RunServerFailed {
    const STATE: &str = "error";

    pub(crate) fn new(alias: impl ToString, error: CallFault) -> Self {
        Self { alias: alias.to_string(), state: Self::STATE, error }
    }
}

/// The failure of a server of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallFault {
    #[schemars(extend("pattern" = "^[a-z_]+$"))]
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

/// The claim of a run by its executor.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunClaim {
    /// The model that the parent run asks for.
    pub(crate) model: Option<String>,
    /// The runtime that the parent run asks for.
    pub(crate) runtime_type: Option<String>,
    /// The daemon's executor that carries the run out.
    pub(crate) executor: Option<ObjectName>,
    /// Number of claims so far.
    pub(crate) attempts: u64,
    /// The last claimant.
    pub(crate) claimed_by: Option<String>,
    pub(crate) claimed_until: Option<Time>,
}

/// The entry of a server for the configuration of a client.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClientEntry {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "http"))]
    pub(crate) transport: &'static str,
    pub(crate) url: String,
    pub(crate) headers: ClientHeaders,
}

impl ClientEntry {
    /// The entry for an endpoint and a token.
    pub(crate) fn new(url: &str, token: &str) -> Self {
        let headers = ClientHeaders { authorization: format!("Bearer {token}") };
        Self { transport: "http", url: url.to_owned(), headers }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ClientHeaders {
    #[serde(rename = "Authorization")]
    pub(crate) authorization: String,
}

/// Entry for a client that starts programs: `socat` connects the client with a socket of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SocatEntry {
    #[schemars(extend("const" = "socat"))]
    pub(crate) command: &'static str,
    pub(crate) args: [String; 2],
    #[schemars(extend("maxProperties" = 0))]
    pub(crate) env: Map<String, Value>,
}

/// The addresses of a run's servers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunEndpoints {
    pub(crate) aggregated: String,
    pub(crate) servers: BTreeMap<String, String>,
    /// The address of the events of the run's session.
    pub(crate) events: Option<String>,
}

/// The addresses of a created run's servers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunMadeEndpoints {
    #[serde(flatten)]
    pub(crate) known: RunEndpoints,
    /// The folder of the run's sockets, if the request asked for sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sockets: Option<String>,
}

/// The token of a run, its addresses `E`, and entries for clients.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunEntries<E> {
    #[schemars(extend("pattern" = "^nxt_"))]
    pub(crate) token: String,
    pub(crate) endpoints: E,
    pub(crate) mcp_servers: BTreeMap<String, ClientEntry>,
    pub(crate) mcp_servers_by_alias: BTreeMap<String, ClientEntry>,
}

/// A created run. Only this answer has the token, unless an executor carries the run out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunMade {
    #[serde(flatten)]
    pub(crate) head: RunHead,
    #[serde(flatten)]
    pub(crate) stored: RunStored,
    #[serde(flatten)]
    pub(crate) live: RunLive,
    #[serde(flatten)]
    pub(crate) entries: Option<RunEntries<RunMadeEndpoints>>,
    pub(crate) warnings: Vec<String>,
    /// The optional config keys that the run's servers do without, because a placeholder has no
    /// value. A key that restricts a server may be among them.
    pub(crate) omitted: Vec<OmittedKey>,
    pub(crate) missing: Vec<String>,
    /// The servers with all values. Only in direct mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolved_mcp_servers: Option<Map<String, Value>>,
    /// The values for the agent's own environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_env: Option<BTreeMap<String, String>>,
    /// Entries for clients that start programs, over the run's sockets, if the request asked for
    /// sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) socat: Option<SocatEntries>,
    /// The numbers of the earlier runs of the session. Paths of mounts with these numbers mean the
    /// run's servers, too.
    pub(crate) former_pids: Vec<u64>,
}

impl RunMade {
    /// The part for models: keys of servers and of the scope are their author's.
    pub(crate) fn for_models(self) -> Self {
        let Self {
            head,
            stored,
            live,
            entries,
            warnings,
            omitted: _,
            missing,
            resolved_mcp_servers,
            agent_env,
            socat,
            former_pids,
        } = self;
        Self {
            head,
            stored,
            live,
            entries,
            warnings,
            omitted: Vec::new(),
            missing,
            resolved_mcp_servers,
            agent_env,
            socat,
            former_pids,
        }
    }
}

/// An optional config key that a server does without.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct OmittedKey {
    pub(crate) server_name: Alias,
    pub(crate) key: String,
    /// The placeholders without a value, such as `scope.team_partition`.
    pub(crate) missing: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SocatEntries {
    pub(crate) mcp_servers: BTreeMap<String, SocatEntry>,
    pub(crate) mcp_servers_by_alias: BTreeMap<String, SocatEntry>,
}

/// The run to create: of an agent, or with its own `servers` and `tools`. See runs.md.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "type": "start_session",
    "agent_name": "reader",
    "prompt": "Summarise",
    "scope": { "context_id": "ctx-9" },
    "expires_in": 3600
}))]
pub(crate) struct RunNew {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["start_session", "resume_session", null]))]
    pub(crate) request: Option<String>,
    pub(crate) agent_name: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) params: Option<Map<String, Value>>,
    pub(crate) parameters: Option<Map<String, Value>>,
    pub(crate) scope: Option<Map<String, Value>>,
    pub(crate) project_dir: Option<String>,
    pub(crate) parent_run_id: Option<String>,
    pub(crate) user: Option<String>,
    #[schemars(extend("minimum" = 1, "maximum" = EXPIRES_IN_MAX))]
    pub(crate) expires_in: Option<u64>,
    pub(crate) direct: Option<bool>,
    pub(crate) servers: Option<BTreeMap<String, Map<String, Value>>>,
    pub(crate) tools: Option<Vec<String>>,
    #[schemars(default, with = "BuiltInTools")]
    pub(crate) builtin: Option<BuiltInTools>,
    pub(crate) sockets: Option<bool>,
}

raw! {
    /// A set of built-in tools.
    BuiltInSet = {
        "type": "string",
        "enum": narthex_model::BuiltInTools::WORDS.map(|(word, _)| word),
    };
}

/// The built-in tools of a run: a word for a set, or names. The default is the tools that ask
/// humans, and `end_session`. A child also has `message_caller`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum BuiltInTools {
    Set(BuiltInSet),
    Names(Vec<String>),
    Default(()),
}

/// The next run of a session. An absent member of a suspended session stays as it was.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "prompt": "Go on where you were.",
    "scope": { "context_id": "ctx-9" },
    "expires_in": 3600
}))]
pub(crate) struct RunResume {
    pub(crate) prompt: Option<String>,
    pub(crate) scope: Option<Map<String, Value>>,
    pub(crate) user: Option<String>,
    #[schemars(extend("minimum" = 1, "maximum" = EXPIRES_IN_MAX))]
    pub(crate) expires_in: Option<u64>,
    pub(crate) direct: Option<bool>,
    pub(crate) sockets: Option<bool>,
}
