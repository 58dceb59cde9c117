//! The configuration of one run: frozen, with secrets by name, and its uses.

mod open;

use std::{collections::BTreeMap, fmt};

use narthex_model::{AgentName, Alias, Exposed, Gates, SecretName, ServerId};
use serde_json::{Map, Value, json};

pub use open::{OpenError, Opening};

use crate::{
    carrier::Carrier,
    fault::{Fault, Warning},
    fill::text_of,
    origin::Origin,
    plan::SecretRequirement,
    schema::ValueType,
    server::{EntryAuth, Isolation, NameRules, ProgramConfinement, ServerSettings},
    template::{ConfigValue, Source, Template, Tree},
};

/// The key of `runner` for the URL of the built-in server (O14).
pub const BUILT_IN_URL: &str = "orchestrator_mcp_url";

/// The configuration of one run of an agent, until the run ends (D10). `Debug` shows no value.
///
/// Secrets and variables of the environment are only named. [`ResolvedServer::definition`] and
/// [`ResolvedRun::payload`] open them.
#[derive(Clone, PartialEq)]
pub struct ResolvedRun {
    /// The agent.
    pub agent: AgentName,
    /// The run's id.
    pub run_id: String,
    /// The session's id.
    pub session_id: String,
    /// The run's servers.
    pub servers: BTreeMap<Alias, ResolvedServer>,
    /// Optional servers that were left out, with the reasons.
    pub skipped: Vec<Skipped>,
    /// Warnings about unwise values.
    pub warnings: Vec<Warning>,
}

/// An optional server that was left out of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The server.
    pub alias: Alias,
    /// The reasons.
    pub faults: Vec<Fault>,
}

/// One server of a run.
#[derive(Clone, PartialEq)]
pub struct ResolvedServer {
    /// The server's alias in the run.
    pub alias: Alias,
    /// The server's id in the catalog.
    pub reference: ServerId,
    pub(crate) target: ResolvedTarget,
    /// The config keys with values.
    pub config: BTreeMap<String, ResolvedKey>,
    /// Optional keys without values.
    pub omitted: Vec<Omitted>,
    /// Limits, and the items that callers may see.
    pub settings: ServerSettings,
    /// Filters of its attachments for its tools: all of them apply.
    pub tools: Vec<NameRules>,
    /// The items that require tool scopes, frozen with the run (D14).
    pub gates: Gates,
    /// True if the run works without the server when the server fails later (D17).
    pub is_optional: bool,
}

/// The target of a server in a run.
#[derive(Clone, PartialEq)]
pub(crate) enum ResolvedTarget {
    Http {
        url: Template,
        is_sse: bool,
        auth: EntryAuth,
    },
    Command {
        command: String,
        args: Vec<Template>,
        cwd: Option<Template>,
        confinement: Option<Box<ProgramConfinement>>,
    },
    Image {
        image: String,
    },
    Script {
        script: String,
    },
}

/// The value of one config key in a run.
#[derive(Clone, PartialEq)]
pub struct ResolvedKey {
    pub(crate) value: ResolvedValue,
    pub(crate) value_type: Option<ValueType>,
    /// The header or variable for the server.
    pub carrier: Carrier,
    /// The level that set the key.
    pub origin: Origin,
    /// True if the value is never shown.
    pub is_hidden: bool,
}

#[derive(Clone, PartialEq)]
pub(crate) enum ResolvedValue {
    /// A secret, opened when the server starts.
    Secret(SecretName),
    /// A value whose remaining placeholders are only of the environment and the runner.
    Tree(Tree),
}

/// An optional key that was left out, because a value for it is missing (O17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// The key.
    pub key: String,
    /// The missing values, such as `scope.workflow_id`.
    pub missing: Vec<String>,
}

impl ResolvedRun {
    /// The secrets that the run needs, sorted.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretRequirement> {
        let mut found: Vec<_> = self.servers.values().flat_map(ResolvedServer::secrets).collect();
        found.sort();
        found
    }

    /// The run for people: each visible value, and the origin in place of any other.
    #[must_use]
    pub fn shown(&self) -> Value {
        let server = |server: &ResolvedServer| {
            let config: Map<String, Value> =
                server.config.iter().map(|(key, value)| (key.clone(), value.shown())).collect();
            let omitted: Map<String, Value> = server
                .omitted
                .iter()
                .map(|omitted| (omitted.key.clone(), json!({ "missing": omitted.missing })))
                .collect();
            json!({
                "ref": server.reference,
                "type": server.transport(),
                "config": config,
                "omitted": omitted,
                "optional": server.is_optional,
            })
        };
        let servers: Map<String, Value> =
            self.servers.iter().map(|(alias, found)| (alias.to_string(), server(found))).collect();
        let skipped: Vec<Value> = self
            .skipped
            .iter()
            .map(|skipped| json!({ "server_name": skipped.alias, "errors": skipped.faults }))
            .collect();
        json!({
            "agent_name": self.agent,
            "mcpServers": servers,
            "skipped": skipped,
            "warnings": self.warnings,
        })
    }
}

impl ResolvedServer {
    /// The secrets that the server needs, sorted.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretRequirement> {
        let require = |field: String, name: &SecretName| SecretRequirement {
            name: name.clone(),
            alias: self.alias.clone(),
            field,
        };
        let mut found = Vec::new();
        for (key, resolved) in &self.config {
            if let ResolvedValue::Secret(name) = &resolved.value {
                found.push(require(format!("config.{key}"), name));
            }
        }
        if let ResolvedTarget::Http { auth, .. } = &self.target {
            for (field, text) in auth.texts() {
                if let ConfigValue::Secret(name) = &text.0 {
                    found.push(require(format!("auth.{field}"), name));
                }
            }
        }
        found.sort();
        found
    }

    /// The sharing of the started server, as set by its entry. By default a program belongs to one
    /// run, and a connection over HTTP is shared (D12).
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.settings.isolation.unwrap_or(match &self.target {
            ResolvedTarget::Http { .. } => Isolation::Shared,
            ResolvedTarget::Command { .. }
            | ResolvedTarget::Image { .. }
            | ResolvedTarget::Script { .. } => Isolation::Run,
        })
    }

    /// True if this is the built-in server: only that server has its URL (O28).
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        let whole = match &self.target {
            ResolvedTarget::Http { url, .. } => url.whole(),
            ResolvedTarget::Command { .. }
            | ResolvedTarget::Image { .. }
            | ResolvedTarget::Script { .. } => None,
        };
        whole.is_some_and(|at| at.source == Source::Runner && at.key == BUILT_IN_URL)
    }

    /// True if each person signs in separately (X-M14).
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        matches!(&self.target, ResolvedTarget::Http { auth, .. } if auth.is_per_user())
    }

    /// The items that callers may see: its entry and each level restrict its tools.
    fn exposed(&self) -> Exposed {
        let Exposed { tools, resources, prompts } = self.settings.exposed();
        let tools = self.tools.iter().fold(tools, |rule, further| rule.narrowed(further.rule()));
        Exposed { tools, resources, prompts }
    }

    /// The transport's name.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        match &self.target {
            ResolvedTarget::Http { is_sse: false, .. } => "http",
            ResolvedTarget::Http { is_sse: true, .. } => "sse",
            ResolvedTarget::Command { .. }
            | ResolvedTarget::Image { .. }
            | ResolvedTarget::Script { .. } => "stdio",
        }
    }
}

impl ResolvedKey {
    /// The value, if it is visible and known here.
    #[must_use]
    pub fn visible(&self) -> Option<&Value> {
        match &self.value {
            ResolvedValue::Tree(Tree::Plain(value)) if !self.is_hidden => Some(value),
            ResolvedValue::Tree(_) | ResolvedValue::Secret(_) => None,
        }
    }

    fn shown(&self) -> Value {
        let value = match (&self.value, self.visible()) {
            (_, Some(value)) => value.clone(),
            (ResolvedValue::Secret(name), None) => json!({ "$secret": name }),
            (ResolvedValue::Tree(tree), None) if tree.placeholders().is_empty() => {
                crate::plan::HIDDEN.into()
            }
            (ResolvedValue::Tree(tree), None) => {
                let open = tree.placeholders();
                let open: Vec<String> = open.iter().map(|open| format!("${{{open}}}")).collect();
                format!("(from {})", open.join(", ")).into()
            }
        };
        json!({ "value": value, "origin": self.origin, "hidden": self.is_hidden })
    }
}

/// True if the whole value is one variable of the daemon's environment.
pub(crate) fn is_from_env(tree: &Tree) -> bool {
    let whole = match tree {
        Tree::Text(template) => template.whole(),
        Tree::Plain(_) | Tree::List(_) | Tree::Object(_) => None,
    };
    whole.is_some_and(|placeholder| placeholder.source == Source::Env)
}

/// A value as the text that travels (O65): of type `json` a string is quoted, so that no text turns
/// into another type.
pub(crate) fn carried(value_type: Option<ValueType>, filled: &Tree, value: &Value) -> String {
    match value {
        Value::String(_) if value_type == Some(ValueType::Json) && !is_from_env(filled) => {
            value.to_string()
        }
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => text_of(value),
    }
}

impl fmt::Debug for ResolvedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedRun")
            .field("agent", &self.agent)
            .field("run_id", &self.run_id)
            .field("servers", &self.servers)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResolvedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedServer")
            .field("alias", &self.alias)
            .field("reference", &self.reference)
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResolvedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedKey")
            .field("carrier", &self.carrier)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
