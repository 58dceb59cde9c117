//! An agent: capabilities, its own attachments, and the parameters of its runs.

use std::collections::BTreeSet;

use narthex_model::{
    AgentName, AgentType, BuiltInTools, CapabilityName, ExecutorName, NameError, TrafficLimits,
    command::narthex,
    json::{Node, Place},
};
use serde::Serialize;

use crate::{
    attachment::{self, Attachments, Holder},
    fault::{FaultCode, Faults},
    params::ParamsSchema,
    reader::{Object, Parsed, Reader, parse, partly},
    schema::word,
};

/// An agent as written by its author.
///
/// Serializes to its one normal form, which [`Agent::parse`] reads as the same agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    /// Name of the agent.
    pub name: AgentName,
    /// Purpose of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The subject for which the agent's runs act (X-M15).
    #[serde(skip_serializing_if = "AgentType::is_worker")]
    pub agent_type: AgentType,
    /// True if runs of the agent may be created (O51).
    pub active: bool,
    /// Text for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The included capabilities, in their order (O47).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<CapabilityName>,
    /// The agent's own attachments, which override those of its capabilities.
    #[serde(rename = "mcpServers", skip_serializing_if = "Attachments::is_empty")]
    pub servers: Attachments,
    /// Set if the agent has no server in `mcp`, on purpose (R-M8).
    #[serde(rename = "mcp", skip_serializing_if = "Option::is_none")]
    pub no_servers: Option<NoServers>,
    /// Schema of the parameters of its runs; `None` accepts any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params_schema: Option<ParamsSchema>,
    /// The agents whose sessions the agent may create.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub spawnable_agents: BTreeSet<AgentName>,
    /// The daemon's executor of its runs; `None` if another party carries them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorName>,
    /// Minutes without a new event after which an orchestrator's session is woken (X-E88); `None`
    /// for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_minutes: Option<u16>,
    /// The answer to runs that call `end_session`.
    #[serde(skip_serializing_if = "EndSession::is_accept")]
    pub end_session: EndSession,
    /// Tools of the built-in server for its runs (D29); `None` for the default ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin: Option<BuiltInTools>,
    /// Limits for the traffic of all its runs together (O100). They are never frozen with a run.
    #[serde(skip_serializing_if = "TrafficLimits::is_none")]
    pub limits: TrafficLimits,
}

/// The value `mcp: {}` of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NoServers {}

/// The longest time between heartbeats, in minutes.
const HEARTBEAT_MAX: u16 = 1440;
/// The answer to a run that asks to end its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndSession {
    /// The session ends.
    #[default]
    Accept,
    /// The session stays active: only people end it.
    Reject,
}

impl EndSession {
    /// Parses a word; `None` for an unknown one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        ENDINGS.into_iter().find(|(one, _)| *one == word).map(|(_, one)| one)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_accept(&self) -> bool {
        *self == Self::Accept
    }
}

const ENDINGS: [(&str, EndSession); 2] =
    [("accept", EndSession::Accept), ("reject", EndSession::Reject)];

const KEYS: [&str; 17] = [
    "id",
    "name",
    "description",
    "agent_type",
    "active",
    "system_prompt",
    "capabilities",
    "mcpServers",
    "mcp_servers",
    "mcp",
    "params_schema",
    "spawnable_agents",
    "executor",
    "heartbeat_minutes",
    "end_session",
    "builtin",
    "limits",
];

impl Agent {
    /// Reads an agent. `name` is the name in the address of the request.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8], name: Option<&AgentName>) -> Result<Parsed<Self>, Faults> {
        parse(text, |reader, object| read(reader, object, name))
    }

    /// Reads the valid part of a faulty text: enough to find further faults.
    #[must_use]
    pub fn partly(text: &[u8]) -> Option<Self> {
        partly(text, |reader, object| read(reader, object, None))
    }
}

fn read(reader: &mut Reader, object: &Object<'_>, wanted: Option<&AgentName>) -> Option<Agent> {
    reader.only(object, &KEYS);
    let name = wanted_name(reader, object, wanted, AgentName::new);
    let system_prompt = reader.owned(object, "system_prompt");
    if let Some(text) = &system_prompt {
        refuse_placeholders(reader, text, &object.at.key("system_prompt"));
    }
    let mut capabilities = Vec::new();
    for (at, node) in reader.list(object, "capabilities").unwrap_or_default() {
        let Some(text) = reader.as_text(node, &at) else { continue };
        let Some(name) = reader.name(&at, text, CapabilityName::new) else { continue };
        if capabilities.contains(&name) {
            let message = format!("the capability `{name}` is included twice");
            reader.fault(&at, FaultCode::ValueInvalid, message, "keep one");
        } else {
            capabilities.push(name);
        }
    }
    let servers = attachment::read(reader, object, Holder::Agent);
    let no_servers = no_servers(reader, object).filter(|_| servers.is_empty());
    let params_schema = params_schema(reader, object);
    let mut spawnable_agents = BTreeSet::new();
    for (at, node) in reader.list(object, "spawnable_agents").unwrap_or_default() {
        let text = reader.as_text(node, &at);
        spawnable_agents.extend(text.and_then(|text| reader.name(&at, text, AgentName::new)));
    }
    let executor = reader.text(object, "executor").and_then(|text| {
        let at = object.at.key("executor");
        reader.name(&at, text, ExecutorName::new)
    });
    let limits = reader.traffic(object, "limits");
    let agent_type = word(reader, object, "agent_type", &types());
    let heartbeat_minutes = heartbeat(reader, object, agent_type.unwrap_or_default());
    let end_session = word(reader, object, "end_session", &ENDINGS);
    let builtin = reader.built_in_tools(object);
    let description = reader.owned(object, "description");
    let active = reader.flag(object, "active").unwrap_or(true);
    Some(Agent {
        name: name?,
        description,
        agent_type: agent_type.unwrap_or_default(),
        active,
        system_prompt,
        capabilities,
        servers,
        no_servers,
        params_schema,
        spawnable_agents,
        executor,
        heartbeat_minutes,
        end_session: end_session.unwrap_or_default(),
        builtin,
        limits,
    })
}

/// `mcp` as an empty object. With servers inside it is a manifest, which an import takes apart.
fn no_servers(reader: &mut Reader, object: &Object<'_>) -> Option<NoServers> {
    let mcp = reader.object(object, "mcp")?;
    if mcp.entries().next().is_some() {
        let remedy = format!(
            "store the agent with `{}` or `POST …/import`, which accept manifests, or attach \
             servers of the catalog in `mcpServers`",
            narthex("agents apply --file FILE", &[])
        );
        reader.invalid(&mcp.at, "an agent cannot contain servers here", remedy);
        return None;
    }
    Some(NoServers {})
}

fn types() -> [(&'static str, AgentType); AgentType::ALL.len()] {
    AgentType::ALL.map(|one| (one.as_str(), one))
}

fn heartbeat(reader: &mut Reader, object: &Object<'_>, of: AgentType) -> Option<u16> {
    let at = object.at.key("heartbeat_minutes");
    object.get("heartbeat_minutes")?;
    if of != AgentType::Orchestrator {
        let remedy = "leave it out, or write `\"agent_type\": \"orchestrator\"`";
        reader.invalid(&at, "only sessions of orchestrators have a heartbeat", remedy);
        return None;
    }
    let minutes = reader.amount(object, "heartbeat_minutes")?;
    let fits = u16::try_from(minutes).ok().filter(|minutes| *minutes <= HEARTBEAT_MAX);
    if fits.is_none() {
        let message = format!("{minutes} minutes are more than one day");
        reader.invalid(&at, message, format!("write 1 to {HEARTBEAT_MAX}"));
    }
    fits
}

fn params_schema(reader: &mut Reader, object: &Object<'_>) -> Option<ParamsSchema> {
    let at = object.at.key("params_schema");
    let node: &Node = object.get("params_schema")?;
    reader.as_object(node, &at)?;
    match ParamsSchema::new(node.to_value()) {
        Ok(schema) => Some(schema),
        Err(why) => {
            let message = format!("this schema cannot be used: {why}");
            let remedy = "write a JSON Schema that refers to nothing outside, or \
                          `{\"name\": {\"type\": \"string\", \"required\": true}}`";
            reader.invalid(&at, message, remedy);
            None
        }
    }
}

/// The `name` of an object, which may be written as its `id`, or the name in the address of the
/// request.
pub(crate) fn wanted_name<T: Clone + PartialEq>(
    reader: &mut Reader,
    object: &Object<'_>,
    wanted: Option<&T>,
    new: fn(&str) -> Result<T, NameError>,
) -> Option<T> {
    reader.excluding(object, "name", "id");
    let is_id = object.get("name").is_none() && object.get("id").is_some();
    let key = if is_id { "id" } else { "name" };
    let at = object.at.key(key);
    if object.get(key).is_none() {
        if wanted.is_none() {
            reader.missing(object, "name", "the name by which others refer to it");
        }
        return wanted.cloned();
    }
    let text = reader.text(object, key)?;
    let name = reader.name(&at, text, new)?;
    if wanted.is_some_and(|wanted| *wanted != name) {
        let message = "the name differs from the name in the path";
        reader.invalid(&at, message, "leave it out, or write to its own address");
    }
    Some(name)
}

/// Text that a model reads is never filled in, and must not look as if it were (D7, O67).
pub(crate) fn refuse_placeholders(reader: &mut Reader, text: &str, at: &Place) {
    for source in ["env", "scope"] {
        if text.contains(&format!("${{{source}.")) {
            let message = format!("a text that the model sees names `${{{source}.…}}`");
            let remedy = "remove it: placeholders are not filled in here, so that no model sees \
                          such a value";
            reader.fault(at, FaultCode::PlaceholderNotAllowed, message, remedy);
        }
    }
}
