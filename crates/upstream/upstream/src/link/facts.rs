//! The two sides' descriptions of themselves.

use std::borrow::Cow;

use bytes::Bytes;
use narthex_model::{ExchangeKind, Target};
use narthex_wire::{Raw, Revision, json::encode_string, meta_key};

/// The member with a server's instructions for models.
const INSTRUCTIONS: &str = "instructions";
/// The member of capabilities with extensions, by name.
const EXTENSIONS: &str = "extensions";

/// The description of the client in the handshake with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// `clientInfo`, a JSON object.
    pub info: Bytes,
    /// `capabilities`, a JSON object.
    pub capabilities: Bytes,
    /// The legacy revision that the client proposes.
    pub revision: Revision,
}

impl ClientIdentity {
    /// The description for a server, with the extensions that its entry uses (C31).
    #[must_use]
    pub(crate) fn declaring(&self, target: &Target) -> Self {
        let exchange = match target {
            Target::Stdio(_) => None,
            Target::Http(target) => target.auth.exchange(),
        };
        match exchange.map(|exchange| exchange.kind) {
            Some(ExchangeKind::IdJag) => Self {
                capabilities: with_extension(&self.capabilities, meta_key::ENTERPRISE_EXTENSION),
                ..self.clone()
            },
            Some(ExchangeKind::Token) | None => self.clone(),
        }
    }
}

/// Capabilities with one more extension, which has no settings.
fn with_extension(capabilities: &Bytes, extension: &str) -> Bytes {
    let members = Raw::new(capabilities).entries();
    let is_extensions = |key: &str| key == EXTENSIONS;
    let known = members.iter().find(|(key, _)| is_extensions(key));
    let known = known.map(|(_, value)| value.entries()).unwrap_or_default();
    let known = known.into_iter().filter(|(key, _)| key != extension);
    let mut extensions: Vec<_> = known.map(|(key, value)| member(&key, value.as_bytes())).collect();
    extensions.push(member(extension, b"{}"));
    let others = members.iter().filter(|(key, _)| !is_extensions(key));
    let mut all: Vec<_> = others.map(|(key, value)| member(key, value.as_bytes())).collect();
    all.push(member(EXTENSIONS, &object(&extensions)));
    object(&all).into()
}

/// One member of an object, as JSON.
fn member(key: &str, value: &[u8]) -> Vec<u8> {
    [&encode_string(key)[..], b":", value].concat()
}

/// An object of these members, as JSON.
fn object(members: &[Vec<u8>]) -> Vec<u8> {
    [b"{", &members.join(&b","[..])[..], b"}"].concat()
}

/// A server's description of itself.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The revision in use.
    pub revision: Revision,
    /// The result of `initialize` or `server/discover`, byte for byte.
    pub result: Bytes,
    /// The server's capabilities, as far as the gateway uses them.
    pub capabilities: ServerCapabilities,
}

impl ServerFacts {
    /// The server's instructions for models.
    #[must_use]
    pub fn instructions(&self) -> Option<Cow<'_, str>> {
        Raw::new(&self.result).get(INSTRUCTIONS).and_then(Raw::as_str)
    }

    /// The facts without instructions that cannot be read as text: no person can review these, and
    /// a client may read some text in them (S22).
    #[must_use]
    pub(crate) fn readable(self) -> Self {
        let told = Raw::new(&self.result).get(INSTRUCTIONS);
        match told.is_some_and(|told| told.as_str().is_none()) {
            true => self.without_instructions(),
            false => self,
        }
    }

    /// The facts without the server's instructions for models.
    #[must_use]
    pub fn without_instructions(&self) -> Self {
        let members = Raw::new(&self.result).entries().into_iter();
        let kept = members.filter(|(key, _)| key != INSTRUCTIONS);
        let kept: Vec<_> = kept.map(|(key, value)| member(&key, value.as_bytes())).collect();
        Self { result: object(&kept).into(), ..self.clone() }
    }
}

/// The features that a server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent member on the wire")]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources and templates.
    pub resources: bool,
    /// Subscriptions to single resources.
    pub subscribe: bool,
    /// Argument completion.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Tasks, by the extension of the modern era.
    pub tasks: bool,
    /// Notifications about changes of any list.
    pub list_changed: bool,
}

impl ServerCapabilities {
    /// Reads the `capabilities` member of an initialize or discover result.
    #[must_use]
    pub fn read(capabilities: Option<Raw<'_>>) -> Self {
        let Some(declared) = capabilities else { return Self::default() };
        let has = |name| declared.get(name).is_some_and(Raw::is_object);
        let resources = declared.get("resources");
        let tells = |name| {
            declared.get(name).and_then(|list| list.get("listChanged")?.as_bool()) == Some(true)
        };
        let extensions = declared.get("extensions");
        let tasks = extensions.and_then(|all| all.get("io.modelcontextprotocol/tasks"));
        Self {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            subscribe: resources
                .and_then(|resources| resources.get("subscribe")?.as_bool())
                .unwrap_or_default(),
            completions: has("completions"),
            logging: has("logging"),
            tasks: tasks.is_some(),
            list_changed: tells("tools") || tells("prompts") || tells("resources"),
        }
    }
}

/// The `_meta` member of narthex's own modern requests.
pub(crate) fn modern_meta(identity: &ClientIdentity) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let revision = Revision::LATEST.as_str();
    out.extend_from_slice(
        format!(
            r#""_meta":{{"{}":"{revision}","{}":"#,
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_INFO
        )
        .as_bytes(),
    );
    out.extend_from_slice(&identity.info);
    out.extend_from_slice(format!(r#","{}":"#, meta_key::CLIENT_CAPABILITIES).as_bytes());
    out.extend_from_slice(&identity.capabilities);
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use narthex_model::{
        AuthorizationCodeAuth, ExchangeIdentity, HttpTarget, OAuth, OAuthExchange, ServerAuth,
    };

    use super::*;

    fn declared(capabilities: &'static [u8], kind: ExchangeKind) -> Bytes {
        let identity = ClientIdentity {
            info: Bytes::from_static(b"{}"),
            capabilities: Bytes::from_static(capabilities),
            revision: Revision::LEGACY_LATEST,
        };
        let identity_of_human = ExchangeIdentity::Login("okta".to_owned());
        let exchange =
            OAuthExchange { kind, identity: identity_of_human, audience: None, fallback: None };
        let auth = AuthorizationCodeAuth {
            exchange: Some(Box::new(exchange)),
            ..AuthorizationCodeAuth::default()
        };
        let target = Target::Http(HttpTarget {
            url: "https://mcp.example/mcp".to_owned(),
            is_sse: false,
            headers: std::collections::BTreeMap::new(),
            auth: ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(auth))),
        });
        identity.declaring(&target).capabilities
    }

    #[test]
    fn oauth_c31_the_extension_of_identity_assertions_is_declared() {
        let plain = declared(b"{}", ExchangeKind::IdJag);
        assert_eq!(
            plain,
            concat!(
                r#"{"extensions":{"#,
                r#""io.modelcontextprotocol/enterprise-managed-authorization":{}}}"#
            )
            .as_bytes()
        );
        let more = br#"{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        assert_eq!(
            declared(more, ExchangeKind::IdJag),
            concat!(
                r#"{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{},"#,
                r#""io.modelcontextprotocol/enterprise-managed-authorization":{}}}"#
            )
            .as_bytes()
        );
        assert_eq!(declared(b"{}", ExchangeKind::Token), &b"{}"[..]);
    }
}
