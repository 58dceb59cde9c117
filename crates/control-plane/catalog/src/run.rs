//! The request to create a run: the parts for the model, and those that no model sees.

use std::fmt;

use narthex_model::{AgentName, BuiltInTools, RunScope, json::Node};
use serde_json::{Map, Value};

use crate::{
    agent::Agent,
    fault::{FaultCode, Faults},
    reader::{Object, Parsed, Reader, parse},
    schema::word,
};

/// A request to create a run, as written by its caller. `Debug` shows no value.
#[derive(Clone, PartialEq)]
pub struct RunRequest {
    /// The kind of the request: to start or to resume a session.
    pub kind: RunKind,
    /// The agent. `None` only for a resumed session, whose agent is known.
    pub agent_name: Option<AgentName>,
    /// The session to resume, or the id for the new session.
    pub session_id: Option<String>,
    /// The prompt for the model. No placeholder in it is ever filled in (D7).
    pub prompt: Option<String>,
    /// The agent's parameters, which the model sees.
    pub params: Map<String, Value>,
    /// The scope, which no model sees.
    pub scope: RunScope,
    /// True if the request has a scope, even an empty one.
    pub has_scope: bool,
    /// Value of `${runtime.project_dir}`.
    pub project_dir: Option<String>,
    /// The parent run, if the caller may name one.
    pub parent_run_id: Option<String>,
    /// The driving human by id or name, if the caller may name one.
    pub user: Option<String>,
    /// Time limit of the run in seconds; `None` for the default.
    pub expires_in: Option<u64>,
    /// True if the caller wants the resolved servers with all values, to start them itself.
    pub is_direct: bool,
    /// True if the run gets Unix sockets as well (D2).
    pub has_sockets: bool,
    /// The tools of the built-in server for the session (D29); `None` for those of its agent.
    pub builtin: Option<BuiltInTools>,
    /// True if the request has its own servers instead of an agent's, in `servers` and `tools`,
    /// which are read elsewhere.
    pub has_own_servers: bool,
    is_prompt_inside: bool,
}

/// The kind of a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Starts a session.
    StartSession,
    /// Resumes a session with a prompt and a scope, and without parameters (O21, O85).
    ResumeSession,
}

/// Longest life of a run, in seconds: 30 days.
const LIFE_MAX: u64 = 30 * 24 * 60 * 60;
const KEYS: [&str; 16] = [
    "type",
    "agent_name",
    "session_id",
    "prompt",
    "params",
    "parameters",
    "scope",
    "project_dir",
    "parent_run_id",
    "user",
    "expires_in",
    "direct",
    "sockets",
    "builtin",
    "servers",
    "tools",
];
/// Members that a run with servers of its own must not have.
const OF_AGENTS: [&str; 6] =
    ["agent_name", "params", "parameters", "scope", "project_dir", "direct"];
const KINDS: [(&str, RunKind); 2] =
    [("start_session", RunKind::StartSession), ("resume_session", RunKind::ResumeSession)];

impl RunRequest {
    /// Reads a request. The prompt may be at the top level or inside the parameters.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8]) -> Result<Parsed<Self>, Faults> {
        parse(text, read)
    }

    /// The parameters of a run of this agent. A member `prompt` counts as a parameter only if the
    /// agent's schema declares it.
    #[must_use]
    pub fn params_for(&self, agent: &Agent) -> Map<String, Value> {
        let mut params = self.params.clone();
        if self.is_prompt_inside && !agent.params_schema.as_ref().is_some_and(|s| s.names("prompt"))
        {
            params.remove("prompt");
        }
        params
    }
}

fn read(reader: &mut Reader, object: &Object<'_>) -> Option<RunRequest> {
    reader.only(object, &KEYS);
    let kind = word(reader, object, "type", &KINDS);
    let agent_name = reader.text(object, "agent_name").and_then(|text| {
        let at = object.at.key("agent_name");
        reader.name(&at, text, AgentName::new)
    });
    let session_id = reader.owned(object, "session_id");
    reader.excluding(object, "params", "parameters");
    let key = if object.get("parameters").is_some() { "parameters" } else { "params" };
    let params = values(reader, object, key);
    let scope = RunScope::new(values(reader, object, "scope"));
    let project_dir = reader.owned(object, "project_dir");
    let own = ["servers", "tools"].into_iter().find(|key| object.get(key).is_some());
    for key in OF_AGENTS.into_iter().filter(|key| own.is_some() && object.get(key).is_some()) {
        let message = format!("a run without an agent has no `{key}`");
        let remedy = "remove it, or name an agent instead of `servers` and `tools`";
        reader.fault(&object.at.key(key), FaultCode::FieldsExclude, message, remedy);
    }
    let inner = params.get("prompt").and_then(Value::as_str).map(str::to_owned);
    let outer = reader.owned(object, "prompt");
    let is_prompt_inside = outer.is_none() && inner.is_some();
    let kind = match (kind, object.get("type").is_some()) {
        (None, true) => return None,
        (kind, _) => kind.unwrap_or(RunKind::StartSession),
    };
    match kind {
        RunKind::StartSession => {
            if object.get("agent_name").is_none() && own.is_none() {
                reader.missing(object, "agent_name", "the agent to run");
            }
        }
        RunKind::ResumeSession => {
            let builtin = object.get("builtin").map(|_| "builtin");
            for own in own.into_iter().chain(builtin) {
                let message = format!("a resumed session takes no `{own}`");
                let remedy = "remove it, or start a new session";
                reader.fault(&object.at.key(own), FaultCode::FieldsExclude, message, remedy);
            }
            if object.get("session_id").is_none() {
                reader.missing(object, "session_id", "the session to resume");
            }
            if params.keys().any(|key| key != "prompt") {
                let message = "a resumed session takes a prompt and no parameters";
                let remedy = "remove them, or start a new session";
                reader.fault(&object.at.key(key), FaultCode::FieldsExclude, message, remedy);
            }
        }
    }
    let prompt = outer.or(inner);
    Some(RunRequest {
        kind,
        agent_name,
        session_id,
        prompt,
        params,
        scope,
        has_scope: object.get("scope").is_some(),
        project_dir,
        parent_run_id: reader.owned(object, "parent_run_id"),
        user: reader.owned(object, "user"),
        expires_in: expires_in(reader, object),
        is_direct: reader.flag(object, "direct").unwrap_or(false),
        has_sockets: reader.flag(object, "sockets").unwrap_or(false),
        builtin: reader.built_in_tools(object),
        has_own_servers: own.is_some(),
        is_prompt_inside,
    })
}

fn expires_in(reader: &mut Reader, object: &Object<'_>) -> Option<u64> {
    let seconds = reader.amount(object, "expires_in")?;
    if seconds > LIFE_MAX {
        let at = object.at.key("expires_in");
        let message = format!("a run lasts {LIFE_MAX} seconds at most");
        reader.invalid(&at, message, "ask for less, and resume the session afterwards");
    }
    Some(seconds)
}

fn values(reader: &mut Reader, object: &Object<'_>, key: &str) -> Map<String, Value> {
    let Some(inner) = reader.object(object, key) else { return Map::new() };
    inner.fields.iter().map(|(key, node): &(String, Node)| (key.clone(), node.to_value())).collect()
}

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest")
            .field("kind", &self.kind)
            .field("agent_name", &self.agent_name)
            .field("session_id", &self.session_id)
            .field("params", &self.params.keys().collect::<Vec<_>>())
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
