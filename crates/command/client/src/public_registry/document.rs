//! Descriptions of servers as registries have them: `server.json` and the answers of the API.
//!
//! Members that this version does not know are ignored. A package or remote of another form does
//! not hide the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The member of an answer's `_meta` with the registry's own facts.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// A page of `GET /v0.1/servers`, or the answer with all versions of a server.
#[derive(Debug, Deserialize)]
pub struct ServerPage {
    /// The listed servers, each still unread, so that one that is unreadable hides no other.
    pub servers: Vec<Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: PageMetadata,
}

/// The facts about a page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMetadata {
    /// The `cursor` of the next page; absent or empty on the last one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A server as a registry lists it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ListedServer {
    /// The publisher's description.
    pub server: ServerDocument,
    #[serde(rename = "_meta", default, deserialize_with = "or_default")]
    meta: BTreeMap<String, Value>,
}

/// The state of a version in its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    /// In use; also where the registry has no state.
    Active,
    /// Its publisher advises against it.
    Deprecated,
    /// Taken out of the registry.
    Deleted,
}

/// A publisher's description of one version of a server: `server.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerDocument {
    /// The name in the registry: the publisher's namespace, `/`, and the server.
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    #[serde(default)]
    pub repository: Option<Repository>,
    #[serde(default)]
    pub website_url: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub packages: Vec<Readable<Package>>,
    #[serde(default, deserialize_with = "or_default")]
    pub remotes: Vec<Readable<Remote>>,
}

/// A part of a description that may have a form of another version.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Readable<T> {
    Read(T),
    Unread(Value),
}

/// The source code of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Repository {
    #[serde(default, deserialize_with = "or_default")]
    pub url: String,
    #[serde(default)]
    pub subfolder: Option<String>,
}

/// A package that runs the server on this machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// `npm`, `pypi`, `oci`, `mcpb`, `nuget`, or another word.
    pub registry_type: String,
    #[serde(default)]
    pub registry_base_url: Option<String>,
    /// The package's name, the reference of an image, or the URL of a file.
    pub identifier: String,
    /// The hash of the file, for a bundle.
    #[serde(rename = "fileSha256", default)]
    pub file_sha256: Option<String>,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub runtime_hint: Option<String>,
    #[serde(default)]
    pub transport: Transport,
    #[serde(default, deserialize_with = "or_default")]
    pub runtime_arguments: Vec<Argument>,
    #[serde(default, deserialize_with = "or_default")]
    pub package_arguments: Vec<Argument>,
    #[serde(default, deserialize_with = "or_default")]
    pub environment_variables: Vec<NamedInput>,
}

/// The transport of a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Transport {
    /// `stdio`, `streamable-http` or `sse`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Default for Transport {
    fn default() -> Self {
        Self { kind: "stdio".to_owned() }
    }
}

/// A server that runs elsewhere.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Remote {
    /// `streamable-http` or `sse`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address, in which `{name}` stands for a variable.
    pub url: String,
    #[serde(default, deserialize_with = "or_default")]
    pub headers: Vec<NamedInput>,
    #[serde(default, deserialize_with = "or_default")]
    pub variables: BTreeMap<String, Input>,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Argument {
    /// `positional` or `named`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The flag of a named argument, with its dashes.
    #[serde(default)]
    pub name: Option<String>,
    /// The name of a positional argument for people.
    #[serde(default)]
    pub value_hint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub is_repeated: bool,
    #[serde(flatten)]
    pub input: Input,
}

/// A header or an environment variable.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NamedInput {
    pub name: String,
    #[serde(flatten)]
    pub input: Input,
}

/// A value that a publisher has set, or that a user gives.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub is_required: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub is_secret: bool,
    #[serde(default)]
    pub format: Option<String>,
    /// The publisher's value, in which `{name}` stands for a variable. A user cannot change it.
    #[serde(default, deserialize_with = "scalar")]
    pub value: Option<String>,
    #[serde(default, deserialize_with = "scalar")]
    pub default: Option<String>,
    #[serde(default, deserialize_with = "scalar")]
    pub placeholder: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub choices: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub variables: BTreeMap<String, Input>,
}

impl ListedServer {
    /// Reads one server of an answer; `None` if it has no form that this version knows.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    /// The state of this version.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        match self.official("status").and_then(Value::as_str) {
            Some("deprecated") => ServerStatus::Deprecated,
            Some("deleted") => ServerStatus::Deleted,
            _ => ServerStatus::Active,
        }
    }

    /// The reason for the state, in the publisher's words.
    #[must_use]
    pub fn status_message(&self) -> Option<&str> {
        self.official("statusMessage").and_then(Value::as_str)
    }

    /// True if the registry calls this version the latest.
    #[must_use]
    pub fn is_latest(&self) -> bool {
        self.official("isLatest").and_then(Value::as_bool).unwrap_or(false)
    }

    fn official(&self, member: &str) -> Option<&Value> {
        self.meta.get(OFFICIAL)?.get(member)
    }
}

impl ServerStatus {
    /// The word for the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Deleted => "deleted",
        }
    }
}

impl ServerDocument {
    /// The namespace of the publisher, which the registry has verified: `io.github.ada` of
    /// `io.github.ada/weather`.
    #[must_use]
    pub fn publisher(&self) -> &str {
        self.name.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The address of the source code, if the description has one.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        let repository = self.repository.as_ref().filter(|found| !found.url.is_empty())?;
        Some(match repository.subfolder.as_deref().filter(|folder| !folder.is_empty()) {
            Some(folder) => format!("{}, in {folder}", repository.url),
            None => repository.url.clone(),
        })
    }

    /// True if each of these words, in small letters, is in the name, title or description.
    #[must_use]
    pub fn has_words(&self, words: &[String]) -> bool {
        let title = self.title.as_deref().unwrap_or_default();
        let text = format!("{}\n{title}\n{}", self.name, self.description).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Reads null as the default, as programs in Go write empty lists.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a text; numbers and booleans become text, as publishers write them without quotes.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// E201: unknown members, nulls and parts of another form hide nothing else.
    #[test]
    fn e201_descriptions_are_read_whatever_else_is_in_them() {
        let value = json!({
            "server": {
                "$schema": "https://static.modelcontextprotocol.io/schemas/2999-01-01/server.schema.json",
                "name": "com.example/notes",
                "description": "Takes notes",
                "version": "1.2.3",
                "repository": { "url": "https://git.example/notes", "source": "x", "subfolder": "a/b" },
                "remotes": null,
                "more": [1],
                "packages": [
                    { "registryType": 7 },
                    {
                        "registryType": "npm",
                        "identifier": "notes",
                        "version": "1.2.3",
                        "transport": { "type": "stdio", "more": 1 },
                        "packageArguments": null,
                        "environmentVariables": [
                            { "name": "LEVEL", "default": 3, "isRequired": null },
                        ],
                    },
                ],
            },
            "_meta": {
                "io.modelcontextprotocol.registry/official": {
                    "status": "deprecated", "statusMessage": "use two", "isLatest": true,
                },
            },
        });
        let listed = ListedServer::read(&value).unwrap();
        assert_eq!((listed.status(), listed.is_latest()), (ServerStatus::Deprecated, true));
        assert_eq!(listed.status_message(), Some("use two"));
        let server = &listed.server;
        assert_eq!(server.publisher(), "com.example");
        assert_eq!(server.source().unwrap(), "https://git.example/notes, in a/b");
        assert!(matches!(server.packages[0], Readable::Unread(_)));
        let Readable::Read(package) = &server.packages[1] else { panic!("{server:?}") };
        assert_eq!(package.environment_variables[0].input.default.as_deref(), Some("3"));
        assert!(ListedServer::read(&json!({ "server": { "title": "no name" } })).is_none());
        let plain = ListedServer::read(&json!({ "server": { "name": "a/b" } })).unwrap();
        assert_eq!((plain.status(), plain.is_latest()), (ServerStatus::Active, false));
    }

    #[test]
    fn words_are_looked_for_in_name_title_and_description() {
        let server =
            json!({ "name": "com.example/notes", "title": "My Pad", "description": "Takes" });
        let server: ServerDocument = serde_json::from_value(server).unwrap();
        let has = |words: &[&str]| {
            server.has_words(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
        };
        assert!(has(&["notes", "pad", "takes"]) && has(&[]));
        assert!(!has(&["notes", "absent"]));
    }
}
