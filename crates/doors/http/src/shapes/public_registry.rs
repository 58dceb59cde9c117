//! Servers of the catalog as registries of servers list them (`server.json`, registry API v0.1).
//! Names of members are those of that API.

use schemars::JsonSchema;
use serde::Serialize;

use crate::shapes::ids::Time;

raw! {
    /// Schema of the description.
    RegistrySchema = {
        "type": "string",
        "format": "uri",
        "examples": ["https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"],
    };

    /// Name in the registry: the workspace (with `.` for `_`), `/`, and the server's id.
    RegistryName = {
        "type": "string",
        "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
        "minLength": 3,
        "maxLength": 200,
        "examples": ["default/docs"],
    };

    /// Text of at most 100 characters; a longer one is cut.
    RegistryText = { "type": "string", "minLength": 1, "maxLength": 100 };

    /// State of a server: `deprecated` if it is disabled.
    RegistryStatus = { "type": "string", "enum": ["active", "deprecated", "deleted"] };

    /// Transport of a remote server.
    RegistryTransport = { "type": "string", "enum": ["streamable-http", "sse"] };
}

macro_rules! from_text {
    ($($name:ident),*) => {$(
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
    )*};
}

impl RegistryName {
    /// True if the name has this text, in small letters, in any case.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.as_str().is_some_and(|name| name.to_lowercase().contains(text))
    }
}

from_text!(RegistrySchema, RegistryName, RegistryText, RegistryStatus, RegistryTransport);

/// A page of servers, or all versions of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryServers {
    #[schemars(extend("maxItems" = 100))]
    pub(crate) servers: Vec<RegistryEntry>,
    pub(crate) metadata: RegistryPage,
}

/// The facts about a page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryPage {
    /// The `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    /// Number of servers on this page.
    pub(crate) count: usize,
}

/// A server with the registry's facts about it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryEntry {
    pub(crate) server: RegistryServer,
    #[serde(rename = "_meta")]
    pub(crate) meta: RegistryMeta,
}

/// The facts about a server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryMeta {
    #[serde(rename = "io.modelcontextprotocol.registry/official")]
    pub(crate) official: RegistryFacts,
}

/// The state of a server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryFacts {
    pub(crate) status: RegistryStatus,
    /// The reason for the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_message: Option<String>,
    pub(crate) published_at: Time,
    pub(crate) updated_at: Time,
    /// True: only the present version of a server is listed.
    pub(crate) is_latest: bool,
}

/// A server. Authors get it without `packages` and `remotes` (X-D12).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryServer {
    #[serde(rename = "$schema")]
    pub(crate) schema: RegistrySchema,
    pub(crate) name: RegistryName,
    pub(crate) title: RegistryText,
    pub(crate) description: RegistryText,
    /// Number of writes of the server as a version: `3.0.0` after the third.
    pub(crate) version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) packages: Vec<RegistryPackage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remotes: Vec<RegistryRemote>,
}

/// A package that runs a server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryPackage {
    /// `npm`, `pypi` or `oci`.
    pub(crate) registry_type: &'static str,
    pub(crate) identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) transport: RegistryStdio,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) package_arguments: Vec<RegistryArgument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) environment_variables: Vec<RegistryInput>,
}

/// The transport of a package.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryStdio {
    /// `stdio`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

/// An argument of a package's program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryArgument {
    /// `positional`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) value: String,
}

/// A server that runs elsewhere.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistryRemote {
    #[serde(rename = "type")]
    pub(crate) kind: RegistryTransport,
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) headers: Vec<RegistryInput>,
}

/// A header or variable that a server takes. Configured values are never in it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryInput {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    /// `number` or `boolean`; text if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<String>,
}
