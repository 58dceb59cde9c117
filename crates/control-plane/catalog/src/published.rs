//! A server of the catalog in the terms of registries of servers: the address or package that
//! reaches it, and the values that it takes.
//!
//! No configured value is in it: defaults come from the schema alone, and a text with a placeholder
//! is left out with all that depends on it.

use narthex_model::package::unpinned;
use serde_json::Value;

use crate::{
    carrier::carrier_of,
    schema::{KeySchema, ValueType},
    server::{CommandShape, HttpShape, ServerEntry, Shape, StdioShape},
    template::{ConfigValue, Tree},
};

/// A server in the terms of registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The way to reach it; `None` if registries have no words for it.
    pub reach: Option<Reach>,
    /// The headers of a remote server, or the variables of a package. Only values that the
    /// platform sets itself are not among them.
    pub inputs: Vec<PublishedInput>,
}

/// A way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A server that runs elsewhere.
    Remote {
        /// Its address.
        url: String,
        /// True for HTTP+SSE of revision 2024-11-05.
        is_sse: bool,
    },
    /// A package with exactly one version.
    Package {
        /// `npm`, `pypi` or `oci`.
        registry: &'static str,
        /// The name of the package, or the reference of the image.
        identifier: String,
        /// The version; `None` for an image, whose reference has it.
        version: Option<String>,
        /// The arguments of the package's program.
        args: Vec<String>,
    },
}

/// A value that a server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedInput {
    /// The header or the variable.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// True if the server does not work without it.
    pub is_required: bool,
    /// True if the value is hidden.
    pub is_secret: bool,
    /// `number` or `boolean`; `None` for text.
    pub format: Option<&'static str>,
    /// The schema's default.
    pub default: Option<String>,
    /// The only permitted values; empty for any.
    pub choices: Vec<String>,
}

impl ServerEntry {
    /// The server in the terms of registries.
    #[must_use]
    pub fn published(&self) -> Published {
        let declared = self.config_schema.iter().flatten();
        let inputs = declared.filter(|(_, schema)| !schema.internal).filter_map(|(key, schema)| {
            let carrier = carrier_of(self, key).ok()?;
            Some(input(carrier.name(), schema))
        });
        Published { reach: reach(&self.shape), inputs: inputs.collect() }
    }
}

fn reach(shape: &Shape) -> Option<Reach> {
    let remote = |http: &HttpShape, is_sse| {
        let url = http.url.plain()?.to_owned();
        Some(Reach::Remote { url, is_sse })
    };
    match shape {
        Shape::Http(http) => remote(http, false),
        Shape::Sse(http) => remote(http, true),
        Shape::Stdio(StdioShape::Command(command)) => package(command),
        Shape::Stdio(StdioShape::Image { image }) => Some(Reach::Package {
            registry: "oci",
            identifier: image.clone(),
            version: None,
            args: Vec::new(),
        }),
        Shape::Stdio(StdioShape::Script { .. }) => None,
    }
}

/// The package of a plain `npx` or `uvx` command.
fn package(command: &CommandShape) -> Option<Reach> {
    let args: Vec<&str> = command.args.iter().map(|arg| arg.plain()).collect::<Option<_>>()?;
    let (registry, words, sign) = match (command.command.as_str(), args.as_slice()) {
        ("npx", ["-y" | "--yes", words @ ..]) => ("npm", words, "@"),
        ("npx", words) => ("npm", words, "@"),
        ("uvx", words) => ("pypi", words, if words.first()?.contains("==") { "==" } else { "@" }),
        _ => return None,
    };
    let (spec, rest) = words.split_first()?;
    let is_plain = !spec.starts_with('-') && !spec.contains("://");
    if !is_plain || !unpinned(&command.command, &args).is_empty() {
        return None;
    }
    let (identifier, version) = spec.rsplit_once(sign)?;
    Some(Reach::Package {
        registry,
        identifier: identifier.to_owned(),
        version: Some(version.to_owned()),
        args: rest.iter().map(|word| (*word).to_owned()).collect(),
    })
}

fn input(name: &str, schema: &KeySchema) -> PublishedInput {
    let is_secret = schema.is_hidden();
    let default = match &schema.default {
        Some(ConfigValue::Tree(Tree::Plain(value))) if !is_secret => scalar(value),
        _ => None,
    };
    PublishedInput {
        name: name.to_owned(),
        description: schema.description.clone().or_else(|| schema.label.clone()),
        is_required: schema.required,
        is_secret,
        format: match schema.value_type {
            ValueType::Number | ValueType::Integer => Some("number"),
            ValueType::Boolean => Some("boolean"),
            ValueType::String | ValueType::Json => None,
        },
        default,
        choices: schema.allowed.iter().flatten().filter_map(scalar).collect(),
    }
}

/// The text of a value as it travels in a header or variable.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn published(entry: &Value) -> Published {
        ServerEntry::parse(entry.to_string().as_bytes(), None).unwrap().value.published()
    }

    /// E208: the address and the declared keys are published, and no configured value.
    #[test]
    fn e208_an_address_and_declared_keys_are_published_without_values() {
        let entry = json!({
            "id": "docs",
            "url": "https://docs.test/mcp",
            "config_schema": {
                "api_key": { "type": "string", "kind": "secret", "required": true,
                    "description": "The key" },
                "depth": { "type": "integer", "default": 3, "enum": [1, 3] },
                "tenant": { "type": "string", "internal": true },
            },
            "default_config": { "api_key": "${DOCS_KEY}", "depth": 1, "tenant": "hidden-4b" },
        });
        let found = published(&entry);
        let url = "https://docs.test/mcp".to_owned();
        assert_eq!(found.reach, Some(Reach::Remote { url, is_sse: false }));
        let [key, depth] = found.inputs.as_slice() else { panic!("{found:?}") };
        assert_eq!((key.name.as_str(), key.is_required, key.is_secret), ("x-api-key", true, true));
        assert_eq!(key.description.as_deref(), Some("The key"));
        assert_eq!((depth.name.as_str(), depth.format), ("x-depth", Some("number")));
        assert_eq!((depth.default.as_deref(), depth.choices.len()), (Some("3"), 2));
        let templated = json!({ "id": "docs", "url": "https://docs.test/${scope.path}" });
        assert_eq!(published(&templated).reach, None);
    }

    /// E208: plain commands of `npx` and `uvx` with one version are packages, and others are not.
    #[test]
    fn e208_commands_with_one_version_are_published_as_packages() {
        let of = |command: &str, args: &[&str]| {
            let entry = json!({ "id": "a", "command": command, "args": args });
            published(&entry).reach.map(|reach| match reach {
                Reach::Package { registry, identifier, version, args } => {
                    format!(
                        "{registry} {identifier} {} {}",
                        version.unwrap_or_default(),
                        args.join(" ")
                    )
                }
                Reach::Remote { url, .. } => url,
            })
        };
        let npm = Some("npm @a/b 1.2.3 --x 1".to_owned());
        assert_eq!(of("npx", &["-y", "@a/b@1.2.3", "--x", "1"]), npm);
        assert_eq!(of("uvx", &["p==0.5"]), Some("pypi p 0.5 ".to_owned()));
        assert_eq!(of("uvx", &["p@0.5"]), Some("pypi p 0.5 ".to_owned()));
        for (command, args) in [
            ("npx", &["-y", "@a/b"][..]),
            ("npx", &["-y", "@a/b@latest"]),
            ("npx", &["--package=x", "y"]),
            ("npx", &[]),
            ("uvx", &["--from", "p==1", "q"]),
            ("node", &["server.js"]),
        ] {
            assert_eq!(of(command, args), None, "{command} {args:?}");
        }
        let image = json!({ "id": "a", "image": "ghcr.io/a/b:1" });
        let expected = Reach::Package {
            registry: "oci",
            identifier: "ghcr.io/a/b:1".to_owned(),
            version: None,
            args: Vec::new(),
        };
        assert_eq!(published(&image).reach, Some(expected));
    }
}
