//! A server of the catalog: an entry with its config schema, or with a manifest.

pub(crate) mod auth;
pub(crate) mod built_in;
mod confinement;
mod made_by;
mod scopes;
pub(crate) mod settings;
mod shape;
pub(crate) mod url;

use std::collections::BTreeMap;

use narthex_model::{
    Gates, ServerId, ToolScopes, did_you_mean, is_secret_name,
    json::{Node, Place},
};
use serde::Serialize;

pub use auth::{
    AuthClient, AuthText, EntryAuth, EntryClientCredentials, EntryExchange, EntryProof, EntrySignIn,
};
pub(crate) use confinement::ProgramConfinement;
pub use made_by::MadeBy;
use scopes::SCOPES;
pub use scopes::{ScopeKey, ScopeSchema};
pub use settings::{Isolation, NameRules, OnFlagged, ServerSettings};
pub use shape::{CommandShape, HttpShape, Shape, StdioShape};

use crate::{
    carrier::{carrier_of, mistaken},
    fault::{FaultCode, Faults},
    layer::{self, Layer, Objection, objection},
    reader::{Object, Parsed, Reader, parse, partly},
    schema::{ConfigSchema, KeySchema},
    template::{ConfigValue, Source, Tree},
};

/// The longest name for people, in characters (O40).
const NAME_MAX: usize = 100;

/// The target of a server, and the configuration that it accepts (O1, X-M9, X-M17, X-M18).
///
/// Serializes to its one normal form, which [`ServerEntry::parse`] reads as the same entry. A
/// caller that may see the entry may see all of it: secrets are only named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerEntry {
    /// The server's id, which never changes.
    pub id: ServerId,
    /// The server's name for people.
    pub name: String,
    /// The server's purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The transport and address.
    #[serde(flatten)]
    pub shape: Shape,
    /// The authentication of requests.
    #[serde(skip_serializing_if = "EntryAuth::is_none")]
    pub auth: EntryAuth,
    /// The keys that the server accepts. `None` if not declared: then any header is accepted, but
    /// no further variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<ConfigSchema>,
    /// The lowest level of configuration.
    #[serde(skip_serializing_if = "Layer::is_empty")]
    pub(crate) default_config: Layer,
    /// The tool scopes that each tool requires. A tool without an entry requires none (D14).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_scopes: BTreeMap<String, ToolScopes>,
    /// Required tool scopes of resources and templates, by patterns of URIs: `*` stands for any
    /// number of characters and `?` for one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_scopes: BTreeMap<String, ToolScopes>,
    /// Required tool scopes of prompts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_scopes: BTreeMap<String, ToolScopes>,
    /// The expected scope of the server's runs (O94).
    #[serde(skip_serializing_if = "ScopeSchema::is_empty")]
    pub scope_schema: ScopeSchema,
    /// True if config keys are header names verbatim, in any form.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbatim_headers: bool,
    /// The agent whose manifest has made the server, and may replace it; `None` for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    /// Limits, and the items that callers may see.
    #[serde(flatten)]
    pub settings: ServerSettings,
}

const KEYS: [&str; 39] = [
    "id",
    "name",
    "display_name",
    "description",
    "type",
    "transport",
    "kind",
    "url",
    "command",
    "args",
    "cwd",
    "confinement",
    "env",
    "image",
    "script",
    "auth",
    "config_schema",
    "manifest",
    "default_config",
    "tool_scopes",
    "resource_scopes",
    "prompt_scopes",
    "scope_schema",
    "verbatim_headers",
    "made_by",
    "timeoutMs",
    "progressExtends",
    "mountTimeoutMs",
    "autoRecover",
    "maxOutputTokens",
    "maxOutputBytes",
    "limits",
    "tools",
    "resources",
    "prompts",
    "notifications",
    "isolation",
    "on_flagged",
    "disabled",
];

impl ServerEntry {
    /// Reads an entry. `id` is the id in the address of the request. The entry may leave out its
    /// own id, but may not have another (O1).
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8], id: Option<&ServerId>) -> Result<Parsed<Self>, Faults> {
        parse(text, |reader, object| read(reader, object, id))
    }

    /// Reads the valid part of a faulty text, as a program if the transport is unknown: enough to
    /// find further faults.
    #[must_use]
    pub fn partly(text: &[u8]) -> Option<Self> {
        partly(text, |reader, object| {
            read(reader, object, None).or_else(|| {
                let (id, _) = names(reader, object, None)?;
                let stand_in = format!(r#"{{"id": "{id}", "command": "true"}}"#);
                Self::parse(stand_in.as_bytes(), None).ok().map(|parsed| parsed.value)
            })
        })
    }
}

/// Reads all members before it checks that the required ones exist, so that no fault hides another.
fn read(reader: &mut Reader, object: &Object<'_>, id: Option<&ServerId>) -> Option<ServerEntry> {
    reader.only(object, &KEYS);
    let names = names(reader, object, id);
    let shape = shape::read(reader, object);
    let auth = auth::read(reader, object, shape.as_ref());
    let description = reader.owned(object, "description");
    let manifest = manifest(reader, object);
    let config_schema = config_schema(reader, object, manifest.as_ref());
    let default_config = default_config(reader, object);
    let [tool_scopes, resource_scopes, prompt_scopes] =
        SCOPES.map(|key| scopes::required(reader, manifest.as_ref().unwrap_or(object), key));
    let scope_schema = scopes::schema(reader, object);
    let verbatim_headers = reader.flag(object, "verbatim_headers").unwrap_or(false);
    let made_by = made_by::read(reader, object);
    let settings = settings::read(reader, object);
    let (id, name) = names?;
    let (shape, auth) = (shape?, auth?);
    auth::check(reader, object, &shape, &auth);
    let entry = ServerEntry {
        id,
        name,
        description,
        shape,
        auth,
        config_schema,
        default_config,
        tool_scopes,
        resource_scopes,
        prompt_scopes,
        scope_schema,
        verbatim_headers,
        made_by,
        settings,
    };
    entry.check(reader, object);
    built_in::check(&entry, reader, object);
    Some(entry)
}

/// The id and the name for people. Where there is no `id`, `name` is the id, and `display_name` is
/// the name for people.
fn names(
    reader: &mut Reader,
    object: &Object<'_>,
    wanted: Option<&ServerId>,
) -> Option<(ServerId, String)> {
    let name = reader.owned(object, "name");
    let display_name = reader.owned(object, "display_name");
    let (key, text) = match reader.text(object, "id") {
        Some(text) => ("id", text),
        None if object.get("id").is_some() => return None,
        None => match (&name, wanted) {
            (_, Some(id)) => ("id", id.as_str()),
            (Some(name), None) => ("name", name.as_str()),
            (None, None) => {
                reader.missing(object, "id", "the id by which agents refer to the server");
                return None;
            }
        },
    };
    let at = object.at.key(key);
    let id = reader.name(&at, text, ServerId::new)?;
    if wanted.is_some_and(|wanted| *wanted != id) {
        let message = "the id differs from the id in the path, and ids never change";
        reader.invalid(&at, message, "leave it out, or add a new server and remove the old one");
    }
    let name = display_name.or(name).unwrap_or_else(|| id.to_string());
    if name.is_empty() || name.chars().count() > NAME_MAX {
        let message = "the name is empty or longer than 100 characters";
        reader.invalid(&object.at.key("name"), message, "shorten it");
    }
    Some((id, name))
}

fn manifest<'n>(reader: &mut Reader, object: &Object<'n>) -> Option<Object<'n>> {
    let manifest = reader.object(object, "manifest")?;
    let [tools, resources, prompts] = SCOPES;
    reader.only(&manifest, &["env", tools, resources, prompts]);
    for key in ["config_schema", tools, resources, prompts] {
        reader.excluding(object, key, "manifest");
    }
    Some(manifest)
}

fn config_schema(
    reader: &mut Reader,
    object: &Object<'_>,
    manifest: Option<&Object<'_>>,
) -> Option<ConfigSchema> {
    match manifest {
        Some(manifest) => Some(layer::schema(reader, manifest, "env", true).unwrap_or_default()),
        None => layer::schema(reader, object, "config_schema", false),
    }
}

/// `default_config`, and the `env` of an entry as other programs write it (X-M12).
fn default_config(reader: &mut Reader, object: &Object<'_>) -> Layer {
    let mut found = Layer::new();
    for key in ["env", "default_config"] {
        let Some(inner) = reader.object(object, key) else { continue };
        for (name, value) in layer::read(reader, &inner) {
            if found.insert(name.clone(), value).is_some() {
                let at = inner.at.key(&name);
                let message = "the key is in both `env` and `default_config`";
                reader.fault(&at, FaultCode::FieldsExclude, message, "keep one");
            }
        }
    }
    found
}

/// True if two keys differ by case, and by `-` and `_`, alone.
fn is_spelling_of(known: &str, key: &str) -> bool {
    let plain = |text: &str| text.replace('-', "_").to_ascii_lowercase();
    plain(known) == plain(key)
}

impl ServerEntry {
    /// The reason why this version can never start the server, whatever its values are: the field
    /// at fault, and the remedy. `None` if the server may start.
    #[must_use]
    pub fn never_starts(&self) -> Option<(&'static str, String)> {
        let started = |what: &str, instead: &str| format!("{what} is not supported yet; {instead}");
        let by_command = "give the server a `command` with `args` that runs it";
        match &self.shape {
            Shape::Stdio(StdioShape::Image { .. }) => {
                Some(("image", started("starting a container image", by_command)))
            }
            Shape::Stdio(StdioShape::Script { .. }) => {
                Some(("script", started("starting a script", by_command)))
            }
            Shape::Stdio(StdioShape::Command(_)) | Shape::Http(_) | Shape::Sse(_) => None,
        }
    }

    /// The items that require tool scopes.
    #[must_use]
    pub fn gates(&self) -> Gates {
        Gates::new(self.tool_scopes.clone(), &self.resource_scopes, self.prompt_scopes.clone())
    }

    /// The schema of a key that some level sets. `None`: the server accepts it undeclared.
    pub(crate) fn declared(&self, key: &str) -> Result<Option<&KeySchema>, Objection> {
        let is_header = self.shape.is_http() && (key.contains('-') || self.verbatim_headers);
        let objection = |remedy: String| Objection {
            code: FaultCode::KeyUndeclared,
            message: format!("the server `{}` has no key with this name", self.id),
            remedy,
        };
        let Some(schema) = &self.config_schema else {
            if self.shape.is_http() || self.default_config.contains_key(key) {
                return Ok(None);
            }
            return Err(objection(
                "declare it in the server's `config_schema`: a program gets only variables that \
                 are declared there or set in `default_config`"
                    .to_owned(),
            ));
        };
        match schema.get(key) {
            Some(schema) => Ok(Some(schema)),
            None if is_header => match schema.keys().find(|known| is_spelling_of(known, key)) {
                // The text names a new header, but its author meant the key of the schema.
                Some(meant) => Err(objection(format!("did you mean `{meant}`?"))),
                None => Ok(None),
            },
            None => Err(objection(
                did_you_mean(key, schema.keys().map(String::as_str))
                    .unwrap_or_else(|| "declare it in the server's `config_schema`".to_owned()),
            )),
        }
    }

    /// Checks an entry by itself, once all of its parts are known.
    fn check(&self, reader: &mut Reader, object: &Object<'_>) {
        let inside = |key: &str| {
            let is_pasted = object.get("env").is_some_and(
                |node| matches!(node, Node::Object(fields) if fields.iter().any(|(k, _)| k == key)),
            );
            object.at.key(if is_pasted { "env" } else { "default_config" }).key(key)
        };
        for (key, value) in &self.default_config {
            let at = inside(key);
            let found = match self.config_schema.as_ref().map(|_| self.declared(key)) {
                Some(Err(undeclared)) => Some(undeclared),
                Some(Ok(Some(schema))) => objection(schema, value),
                Some(Ok(None)) | None => None,
            };
            if let Some(found) = found {
                reader.fault(&at, found.code, found.message, found.remedy);
            }
            if value.placeholders().iter().any(|p| p.source == Source::Params) {
                let message = "`params` has a value only in an agent";
                let remedy = "set the key in the agent";
                reader.fault(&at, FaultCode::PlaceholderNotAllowed, message, remedy);
            }
            let schema = self.config_schema.as_ref().and_then(|schema| schema.get(key));
            if (is_secret_name(key) || schema.is_some_and(KeySchema::is_hidden))
                && matches!(value, ConfigValue::Tree(Tree::Plain(_)))
            {
                let message = "a sensitive key has a literal value here, which every reader of the \
                               server can see; refer to a secret";
                reader.warn(&at, message);
            }
        }
        self.check_carriers(reader, object, &inside);
    }

    /// Each key travels, and no two as the same header or variable (D8, O87).
    fn check_carriers(
        &self,
        reader: &mut Reader,
        object: &Object<'_>,
        inside: &dyn Fn(&str) -> Place,
    ) {
        let is_manifest = object.get("manifest").is_some();
        let schema_at = match is_manifest {
            true => object.at.key("manifest").key("env"),
            false => object.at.key("config_schema"),
        };
        let declared = self.config_schema.iter().flatten();
        let mut places: BTreeMap<&str, Place> =
            self.default_config.keys().map(|key| (key.as_str(), inside(key))).collect();
        places.extend(declared.map(|(key, _)| (key.as_str(), schema_at.key(key))));
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (key, at) in &places {
            match carrier_of(self, key) {
                Err(found) => reader.fault(at, found.code, found.message, found.remedy),
                Ok(carrier) => {
                    mistaken(self, key).into_iter().for_each(|told| reader.warn(at, told));
                    if let Some(other) = seen.insert(carrier.identity(), key) {
                        let message = format!("`{key}` and `{other}` are both sent as {carrier}");
                        let remedy = "give one of them another `header` or `env`";
                        reader.fault(at, FaultCode::CarrierConflict, message, remedy);
                    }
                }
            }
        }
    }
}
