//! Metadata of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID
//! Connect Discovery), read leniently: a member of a wrong type counts as missing.
//!
//! Nothing here is trusted yet: the reader of a document must compare its `resource` or `issuer`
//! with the asked one, and check each address before it is used.

use serde_json::{Map, Value, json};
use url::Url;

use crate::{pkce, scopes::Scopes};

/// The largest number of entries that is taken of a list.
const ENTRIES_MAX: usize = 100;

/// Metadata of a protected resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceMetadata {
    /// The resource's identifier.
    pub resource: Option<String>,
    /// Issuers of its authorization servers, in the order of preference.
    pub authorization_servers: Vec<String>,
    /// Scopes of its requests.
    pub scopes_supported: Option<Scopes>,
}

/// Metadata of an authorization server. An absent list is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMetadata {
    /// The server's identifier, as written in the document.
    pub issuer: String,
    /// Address for the browser.
    pub authorization_endpoint: Option<Url>,
    /// Address of token requests.
    pub token_endpoint: Option<Url>,
    /// Address of dynamic registration (RFC 7591).
    pub registration_endpoint: Option<Url>,
    /// Address of revocation (RFC 7009).
    pub revocation_endpoint: Option<Url>,
    /// Address of device authorization (RFC 8628).
    pub device_authorization_endpoint: Option<Url>,
    /// Address of its public keys.
    pub jwks_uri: Option<Url>,
    /// Methods of client authentication at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Grant types.
    pub grant_types_supported: Option<Vec<String>>,
    /// Methods of PKCE (RFC 7636).
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Scopes that it knows.
    pub scopes_supported: Option<Scopes>,
    /// True if its redirects carry `iss` (RFC 9207).
    pub sends_issuer: bool,
    /// True if it takes the address of a metadata document as client id.
    pub takes_metadata_documents: bool,
}

impl ResourceMetadata {
    /// Reads a document. `None` if the text is no JSON object, as a web page.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        let document = Document::read(body)?;
        Some(Self {
            resource: document.text("resource"),
            authorization_servers: document.list("authorization_servers").unwrap_or_default(),
            scopes_supported: document.scopes("scopes_supported"),
        })
    }
}

impl ServerMetadata {
    /// Reads a document. `None` if the text is no JSON object with an issuer.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        Self::of(&Document::read(body)?)
    }

    /// Reads a stored value, as [`Self::to_json`] makes it.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        value.as_object().cloned().and_then(|members| Self::of(&Document(members)))
    }

    fn of(document: &Document) -> Option<Self> {
        Some(Self {
            issuer: document.text("issuer")?,
            authorization_endpoint: document.url("authorization_endpoint"),
            token_endpoint: document.url("token_endpoint"),
            registration_endpoint: document.url("registration_endpoint"),
            revocation_endpoint: document.url("revocation_endpoint"),
            device_authorization_endpoint: document.url("device_authorization_endpoint"),
            jwks_uri: document.url("jwks_uri"),
            token_endpoint_auth_methods_supported: document
                .list("token_endpoint_auth_methods_supported"),
            grant_types_supported: document.list("grant_types_supported"),
            code_challenge_methods_supported: document.list("code_challenge_methods_supported"),
            scopes_supported: document.scopes("scopes_supported"),
            sends_issuer: document.flag("authorization_response_iss_parameter_supported"),
            takes_metadata_documents: document.flag("client_id_metadata_document_supported"),
        })
    }

    /// The document as JSON. Absent members are left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let url = |url: &Option<Url>| url.as_ref().map(Url::to_string);
        let scopes = self.scopes_supported.as_ref().map(|scopes| scopes.iter().collect::<Vec<_>>());
        let mut document = json!({
            "issuer": self.issuer,
            "authorization_endpoint": url(&self.authorization_endpoint),
            "token_endpoint": url(&self.token_endpoint),
            "registration_endpoint": url(&self.registration_endpoint),
            "revocation_endpoint": url(&self.revocation_endpoint),
            "device_authorization_endpoint": url(&self.device_authorization_endpoint),
            "jwks_uri": url(&self.jwks_uri),
            "token_endpoint_auth_methods_supported": self.token_endpoint_auth_methods_supported,
            "grant_types_supported": self.grant_types_supported,
            "code_challenge_methods_supported": self.code_challenge_methods_supported,
            "scopes_supported": scopes,
            "authorization_response_iss_parameter_supported": self.sends_issuer,
            "client_id_metadata_document_supported": self.takes_metadata_documents,
        });
        if let Some(members) = document.as_object_mut() {
            members.retain(|_name, value| !value.is_null());
        }
        document
    }

    /// The endpoints that are present, with their names.
    pub fn endpoints(&self) -> impl Iterator<Item = (&'static str, &Url)> {
        let all = [
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("registration_endpoint", &self.registration_endpoint),
            ("revocation_endpoint", &self.revocation_endpoint),
            ("device_authorization_endpoint", &self.device_authorization_endpoint),
            ("jwks_uri", &self.jwks_uri),
        ];
        all.into_iter().filter_map(|(name, url)| url.as_ref().map(|url| (name, url)))
    }

    /// True if the document lists PKCE's S256.
    #[must_use]
    pub fn supports_s256(&self) -> bool {
        let methods = self.code_challenge_methods_supported.iter().flatten();
        methods.into_iter().any(|method| method == pkce::METHOD)
    }
}

/// The members of a JSON object.
struct Document(Map<String, Value>);

impl Document {
    fn read(body: &[u8]) -> Option<Self> {
        // A byte order mark is not JSON, but some servers send one.
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        serde_json::from_slice(body).ok().map(Self)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn url(&self, name: &str) -> Option<Url> {
        self.0.get(name)?.as_str().and_then(|text| Url::parse(text).ok())
    }

    /// The texts of a list. A single text counts as a list of one.
    fn list(&self, name: &str) -> Option<Vec<String>> {
        match self.0.get(name)? {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(all) => {
                let texts = all.iter().filter_map(Value::as_str).take(ENTRIES_MAX);
                Some(texts.map(str::to_owned).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    fn scopes(&self, name: &str) -> Option<Scopes> {
        self.0.get(name).and_then(Scopes::from_json)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn oauth_c3_resource_metadata_is_read_leniently() {
        let read = |text: &str| ResourceMetadata::read(text.as_bytes());
        let full = read(
            "{\"resource\":\"https://a/mcp\",\"authorization_servers\":[\"https://b\",1],\
             \"scopes_supported\":[\"x\",\"y\"],\"bearer_methods_supported\":[\"header\"]}",
        );
        let full = full.unwrap();
        assert_eq!(full.resource.as_deref(), Some("https://a/mcp"));
        assert_eq!(full.authorization_servers, ["https://b"]);
        assert_eq!(full.scopes_supported.unwrap().to_string(), "x y");
        let odd = read("\u{feff}{\"resource\":1,\"authorization_servers\":\"https://b\"}").unwrap();
        assert_eq!((odd.resource, odd.authorization_servers.len()), (None, 1));
    }

    #[test]
    fn oauth_q3_a_web_page_is_no_metadata() {
        for text in ["<!doctype html><html>", "", "[]", "null", "\"x\"", "{", "{}x"] {
            assert_eq!(ResourceMetadata::read(text.as_bytes()), None, "{text}");
            assert_eq!(ServerMetadata::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(ServerMetadata::read(b"{\"token_endpoint\":\"https://a/t\"}"), None);
    }

    #[test]
    fn members_of_wrong_types_count_as_missing() {
        let read = ServerMetadata::read(
            b"{\"issuer\":\"i\",\"token_endpoint\":\"/relative\",\"jwks_uri\":{},\
              \"code_challenge_methods_supported\":\"S256\",\
              \"authorization_response_iss_parameter_supported\":\"true\"}",
        );
        let read = read.unwrap();
        assert!(read.supports_s256() && !read.sends_issuer);
        assert_eq!(read.endpoints().count(), 0);
    }

    fn list() -> impl Strategy<Value = Option<Vec<String>>> {
        prop::option::of(prop::collection::vec("[a-zA-Z0-9_]{1,8}", 0..4))
    }

    fn url() -> impl Strategy<Value = Option<Url>> {
        let url = "https://[a-z]{1,8}\\.example/[a-z]{0,8}";
        prop::option::of(url.prop_map(|text| Url::parse(&text).unwrap()))
    }

    prop_compose! {
        fn metadata()(
            issuer in "https://[a-z]{1,9}",
            endpoints in prop::array::uniform6(url()),
            lists in prop::array::uniform3(list()),
            scopes_supported in prop::option::of("[a-z ]{0,9}"),
            flags in any::<[bool; 2]>(),
        ) -> ServerMetadata {
            let [authorization, token, registration, revocation, device, jwks_uri] = endpoints;
            let [auth_methods, grant_types_supported, code_challenge_methods_supported] = lists;
            ServerMetadata {
                issuer,
                authorization_endpoint: authorization,
                token_endpoint: token,
                registration_endpoint: registration,
                revocation_endpoint: revocation,
                device_authorization_endpoint: device,
                jwks_uri,
                token_endpoint_auth_methods_supported: auth_methods,
                grant_types_supported,
                code_challenge_methods_supported,
                scopes_supported: scopes_supported.map(|text| Scopes::parse(&text)),
                sends_issuer: flags[0],
                takes_metadata_documents: flags[1],
            }
        }
    }

    proptest! {
        #[test]
        fn a_stored_document_is_read_back(written in metadata()) {
            let stored = written.to_json();
            prop_assert_eq!(ServerMetadata::from_json(&stored), Some(written.clone()));
            prop_assert_eq!(ServerMetadata::read(stored.to_string().as_bytes()), Some(written));
        }
    }
}
