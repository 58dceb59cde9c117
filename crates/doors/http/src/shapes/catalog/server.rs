//! Servers of the catalog.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::shapes::{
    ids::{Alias, Transport},
    limits::{TrafficLimits, TrafficLimitsNew},
    part::As,
};

/// Patterns of the names that callers see: a list of allowed patterns, or `allow` and `deny`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum NameRules {
    Allowed(Vec<String>),
    Rules {
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Vec<String>")]
        allow: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Vec<String>")]
        deny: Option<Vec<String>>,
    },
}

raw! {
    /// Type of a value.
    ConfigType = {
        "type": "string",
        "enum": spelled!(narthex_catalog::ValueType: String, Json, Boolean, Number, Integer),
    };
}

/// A key of a server's configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigKey {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "ConfigType")]
    pub(crate) value_type: Option<ConfigType>,
    /// `secret`, or a word for the display of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "bool")]
    pub(crate) required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "bool")]
    pub(crate) sensitive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "bool")]
    pub(crate) internal: Option<bool>,
    /// An example of a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Value")]
    pub(crate) example: Option<Value>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Values")]
    pub(crate) words: Option<Values>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) pattern: Option<String>,
    /// Read as `pattern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) regex: Option<String>,
    /// Value that is used if no other is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Value")]
    pub(crate) default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String")]
    pub(crate) env: Option<String>,
}

raw! {
    /// Values of any type.
    Values = { "type": "array" };

    /// A number of milliseconds, or a flag.
    ProgressExtends = { "type": ["integer", "boolean"], "minimum": 1, "maximum": 3_600_000 };
}

/// The agent whose manifest made a server. The next manifest of the agent may replace the server,
/// or have it deleted. A server without this member belongs to a person.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "agent": "helper" }))]
pub(crate) struct MadeBy {
    /// Name of the agent.
    pub(crate) agent: String,
}

/// Confinement of a program: a word, or settings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Confinement {
    Word(ConfinementWord),
    Settings(Map<String, Value>),
}

raw! {
    /// Confinement of a program in a word.
    ConfinementWord = { "type": "string", "enum": ["strict", "none"] };
}

raw! {
    /// Sharing of a server's connection.
    Isolation = { "type": "string", "enum": spelled!(narthex_catalog::Isolation: Run, Shared) };
}

raw! {
    /// Handling of flagged definitions.
    OnFlagged = {
        "type": "string",
        "enum": spelled!(narthex_catalog::OnFlagged: Quarantine, Warn),
    };
}

/// Scopes that tools, resources or prompts require, by name.
type Scopes = BTreeMap<String, Vec<String>>;

/// The members of a server that answers and bodies have alike.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ServerMembers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<As<String>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<As<Transport>>,
    /// URL of the server, which may contain placeholders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<As<Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<As<String>>,
    /// Confinement of the server's program: `strict`, `none`, or an object with `filesystem`,
    /// `network`, `syscalls`, `limits` and `bwrap`. See configuration.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confinement: Option<As<Confinement>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<As<String>>,
    /// `mode` (`none`, `apiKey`, `clientCredentials`, `authorizationCode`) and its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<As<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config_schema: Option<As<BTreeMap<String, ConfigKey>>>,
    /// Values by key, which may contain placeholders. A secret is `${NAME}` or
    /// `{"$secret": "NAME"}`. Null removes the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_config: Option<As<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_scopes: Option<As<Scopes>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_scopes: Option<As<Scopes>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_scopes: Option<As<Scopes>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verbatim_headers: Option<As<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) made_by: Option<As<MadeBy>>,
    #[serde(rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 600_000))]
    pub(crate) timeout_ms: Option<As<u64>>,
    /// Largest duration of a call in milliseconds, if each progress notification restarts
    /// `timeoutMs`. True means 600000. Without this member, progress does not extend a call.
    #[serde(rename = "progressExtends", skip_serializing_if = "Option::is_none")]
    pub(crate) progress_extends: Option<As<ProgressExtends>>,
    #[serde(rename = "mountTimeoutMs", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 600_000))]
    pub(crate) mount_timeout_ms: Option<As<u64>>,
    /// True if narthex reconnects to an unreachable server over HTTP by itself. The default is
    /// true.
    #[serde(rename = "autoRecover", skip_serializing_if = "Option::is_none")]
    pub(crate) auto_recover: Option<As<bool>>,
    #[serde(rename = "maxOutputTokens", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_output_tokens: Option<As<u64>>,
    #[serde(rename = "maxOutputBytes", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_output_bytes: Option<As<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<As<NameRules>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<As<NameRules>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompts: Option<As<NameRules>>,
    /// Exact names of notifications outside `notifications/` that clients may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notifications: Option<As<Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) isolation: Option<As<Isolation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_flagged: Option<As<OnFlagged>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled: Option<As<bool>>,
}

impl ServerMembers {
    /// The part for authors: the members that attaching takes, and none that reaches or configures
    /// the server (X-D12).
    fn for_authors(self) -> Self {
        let Self {
            description,
            config_schema,
            tool_scopes,
            resource_scopes,
            prompt_scopes,
            transport: _,
            url: _,
            command: _,
            args: _,
            cwd: _,
            confinement: _,
            image: _,
            script: _,
            auth: _,
            default_config: _,
            verbatim_headers: _,
            made_by: _,
            timeout_ms: _,
            progress_extends: _,
            mount_timeout_ms: _,
            auto_recover: _,
            max_output_tokens: _,
            max_output_bytes: _,
            tools: _,
            resources: _,
            prompts: _,
            notifications: _,
            isolation: _,
            on_flagged: _,
            disabled: _,
        } = self;
        Self {
            description,
            config_schema,
            tool_scopes,
            resource_scopes,
            prompt_scopes,
            ..Self::default()
        }
    }
}

/// A server and the configuration that it takes, in normal form. Authors get only `id`, `name`,
/// `description`, `config_schema`, `tool_scopes`, `resource_scopes` and `prompt_scopes`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CatalogServer {
    pub(crate) id: As<Alias>,
    pub(crate) name: As<String>,
    #[serde(flatten)]
    pub(crate) members: ServerMembers,
    /// Expected keys of the run scope, each with its schema, or a JSON Schema of an object. With
    /// `"additionalProperties": false`, a request for a run is refused if its scope has a key that
    /// no server of the agent takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope_schema: Option<As<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<As<TrafficLimits>>,
}

impl CatalogServer {
    /// The part for authors: the members that attaching takes, and none that reaches or configures
    /// the server (X-D12).
    pub(crate) fn for_authors(self) -> Self {
        let Self { id, name, members, scope_schema: _, limits: _ } = self;
        Self { id, name, members: members.for_authors(), scope_schema: None, limits: None }
    }
}

raw! {
    /// Kind of a server, in the words of other programs.
    ServerKind = { "type": "string", "enum": ["stdio", "remote_oauth"] };
}

/// A server and the configuration that it takes, with exactly one of `url`, `command`, `image` and
/// `script`. The body may leave out the `id` of the path.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "docs",
    "name": "Papers",
    "url": "http://localhost:9501/mcp",
    "config_schema": {
        "context_id": { "type": "string", "required": true },
        "api_key": { "type": "string", "kind": "secret" }
    },
    "default_config": { "context_id": "default", "api_key": "${DOCS_KEY}" }
}))]
pub(crate) struct CatalogServerNew {
    pub(crate) id: Option<Alias>,
    #[schemars(extend("minLength" = 1, "maxLength" = 100))]
    pub(crate) name: Option<String>,
    #[schemars(extend("minLength" = 1, "maxLength" = 100))]
    pub(crate) display_name: Option<String>,
    #[serde(flatten)]
    pub(crate) members: ServerMembers,
    pub(crate) scope_schema: Option<BTreeMap<String, Map<String, Value>>>,
    pub(crate) limits: Option<TrafficLimitsNew>,
    pub(crate) transport: Option<Transport>,
    pub(crate) kind: Option<ServerKind>,
    pub(crate) env: Option<Map<String, Value>>,
    /// The server in the form of a manifest.
    #[schemars(default, with = "Value")]
    pub(crate) manifest: Option<Value>,
}
