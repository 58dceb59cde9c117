//! The way to a client id at an authorization server, and narthex's own metadata document.

use serde_json::{Value, json};
use url::Url;

use super::{
    ClientIdentity, Preset, RegistrationRule, SETTING_CLIENT_ID, SETTING_REGISTRATION, Settings,
    shown_url,
};
use crate::metadata::ServerMetadata;

/// The way to a client id.
#[derive(Debug, Clone)]
pub enum Way {
    /// The client of the settings.
    Preregistered(ClientIdentity),
    /// The client id is the address of narthex's metadata document.
    Document(Url),
    /// Dynamic registration (RFC 7591) at this address.
    Dynamic(Url),
}

/// The reason why there is no way to a client id: an operator must register one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WayError {
    /// The server registers no clients by itself.
    #[error(
        "the authorization server {issuer} registers no clients by itself; register narthex there \
         with the redirect URI {redirect_uri}, and set {SETTING_CLIENT_ID}{help}"
    )]
    NoWay {
        /// The issuer, as it may be shown.
        issuer: String,
        /// The redirect URI to register.
        redirect_uri: String,
        /// Instructions for a known provider, with a blank before them.
        help: String,
    },
    /// The settings demand a way that does not exist.
    #[error(
        "{SETTING_REGISTRATION} is {way}, but {reason}; change it to \"auto\" or set \
         {SETTING_CLIENT_ID}"
    )]
    Pinned {
        /// The demanded way, as it is written.
        way: &'static str,
        /// The reason why it does not exist.
        reason: &'static str,
    },
}

impl Way {
    /// Chooses the first possible way: the client of the settings, the metadata document, dynamic
    /// registration. `document` is the address of narthex's metadata document, if it has a public
    /// one.
    ///
    /// # Errors
    /// When an operator must register a client.
    pub fn choose(
        settings: &Settings,
        metadata: &ServerMetadata,
        document: Option<&Url>,
        redirect_uri: &Url,
    ) -> Result<Self, WayError> {
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let preregistered = settings.client.clone().map(|client| client.listed(methods));
        let preregistered = preregistered.map(Self::Preregistered);
        let document = document.filter(|url| is_client_id(url)).cloned().map(Self::Document);
        let dynamic = metadata.registration_endpoint.clone().map(Self::Dynamic);
        let pinned =
            |way, found: Option<Self>, reason| found.ok_or(WayError::Pinned { way, reason });
        match settings.registration {
            RegistrationRule::Auto => {
                let document = document.filter(|_| metadata.takes_metadata_documents);
                let way = preregistered.or(document).or(dynamic);
                way.ok_or_else(|| no_way(metadata, redirect_uri))
            }
            RegistrationRule::Preregistered => {
                pinned("\"preregistered\"", preregistered, "no client id is set")
            }
            RegistrationRule::Cimd => {
                let reason = "narthex has no metadata document at a public https address";
                pinned("\"cimd\"", document, reason)
            }
            RegistrationRule::Dcr => {
                pinned("\"dcr\"", dynamic, "the authorization server has no registration endpoint")
            }
        }
    }
}

fn no_way(metadata: &ServerMetadata, redirect_uri: &Url) -> WayError {
    let issuer = Url::parse(&metadata.issuer).ok();
    let preset = issuer.as_ref().and_then(Preset::of);
    WayError::NoWay {
        issuer: issuer.as_ref().map(shown_url).unwrap_or_default(),
        redirect_uri: redirect_uri.to_string(),
        help: preset
            .map(|preset| format!(". {}: {}", preset.name(), preset.help()))
            .unwrap_or_default(),
    }
}

/// True if an address can be a client id: https with a path, and nothing that could be read in two
/// ways.
fn is_client_id(url: &Url) -> bool {
    let is_plain =
        url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    url.scheme() == "https" && url.path() != "/" && is_plain
}

/// Narthex's client id metadata document, which narthex serves at its own address.
#[derive(Debug, Clone)]
pub struct ClientDocument {
    /// The address of the document, which is the client id.
    pub id: Url,
    /// The name that people see when they consent.
    pub name: String,
    /// The address of a page about narthex.
    pub uri: Option<Url>,
    /// All redirect URIs.
    pub redirect_uris: Vec<Url>,
    /// The address of narthex's public keys, if it proves itself with a key.
    pub jwks_uri: Option<Url>,
}

impl ClientDocument {
    /// The document as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { id, name, uri, redirect_uris, jwks_uri } = self;
        let redirect_uris: Vec<_> = redirect_uris.iter().map(Url::as_str).collect();
        let mut document = json!({
            "client_id": id.as_str(),
            "client_name": name,
            "redirect_uris": redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        if let Some(uri) = uri {
            document["client_uri"] = uri.as_str().into();
        }
        if let Some(jwks_uri) = jwks_uri {
            document["token_endpoint_auth_method"] = "private_key_jwt".into();
            document["jwks_uri"] = jwks_uri.as_str().into();
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::AuthMethod;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn metadata() -> ServerMetadata {
        ServerMetadata {
            issuer: "https://as.example".to_owned(),
            registration_endpoint: Some(url("https://as.example/register")),
            takes_metadata_documents: true,
            ..ServerMetadata::default()
        }
    }

    fn choose(
        settings: &Settings,
        metadata: &ServerMetadata,
        document: Option<&str>,
    ) -> Result<Way, WayError> {
        let document = document.map(url);
        let redirect_uri = url("https://narthex.example/oauth/callback/x");
        Way::choose(settings, metadata, document.as_ref(), &redirect_uri)
    }

    const DOCUMENT: Option<&str> = Some("https://narthex.example/oauth/client.json");

    #[test]
    fn oauth_c11_the_first_possible_way_is_taken() {
        let auto = Settings::default();
        let client = ClientIdentity::new("c", None, None);
        let own = Settings { client: Some(client), ..Settings::default() };
        let way = |settings: &Settings, metadata: &ServerMetadata, document: Option<&str>| {
            choose(settings, metadata, document).unwrap()
        };
        assert!(matches!(way(&own, &metadata(), DOCUMENT), Way::Preregistered(_)));
        assert!(matches!(way(&auto, &metadata(), DOCUMENT), Way::Document(_)));
        assert!(matches!(way(&auto, &metadata(), None), Way::Dynamic(_)));
        let silent = ServerMetadata { takes_metadata_documents: false, ..metadata() };
        assert!(matches!(way(&auto, &silent, DOCUMENT), Way::Dynamic(_)));
        for no_id in
            ["https://narthex.example", "http://127.0.0.1/client.json", "https://u@n.example/x"]
        {
            assert!(matches!(way(&auto, &metadata(), Some(no_id)), Way::Dynamic(_)), "{no_id}");
        }
    }

    #[test]
    fn oauth_c20_a_client_of_the_settings_uses_a_listed_method() {
        let client = ClientIdentity::new("c", Some(narthex_model::Secret::new("s")), None);
        let settings = Settings { client: Some(client), ..Settings::default() };
        for (listed, wanted) in [
            (None, AuthMethod::Basic),
            (Some(vec!["client_secret_post".to_owned()]), AuthMethod::Post),
        ] {
            let metadata =
                ServerMetadata { token_endpoint_auth_methods_supported: listed, ..metadata() };
            match choose(&settings, &metadata, None).unwrap() {
                Way::Preregistered(client) => assert_eq!(client.method, wanted),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn oauth_c11_without_a_way_an_operator_is_asked() {
        let closed = ServerMetadata {
            registration_endpoint: None,
            takes_metadata_documents: false,
            ..metadata()
        };
        let error = choose(&Settings::default(), &closed, DOCUMENT).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the authorization server https://as.example/ registers no clients by itself; register \
             narthex there with the redirect URI https://narthex.example/oauth/callback/x, and set \
             auth.client.clientId"
        );
    }

    #[test]
    fn oauth_q6_and_q7_the_help_of_a_known_provider_is_shown() {
        for (issuer, help) in [
            ("https://slack.com", "https://api.slack.com/apps"),
            ("https://github.com/login/oauth", "personal access token"),
            ("https://accounts.google.com", "Google Cloud console"),
        ] {
            let closed = ServerMetadata { issuer: issuer.to_owned(), ..ServerMetadata::default() };
            let error = choose(&Settings::default(), &closed, None).unwrap_err().to_string();
            assert!(error.contains(help), "{error}");
        }
    }

    #[test]
    fn oauth_c11_a_setting_pins_one_way() {
        let pinned = |registration| Settings { registration, ..Settings::default() };
        let (cimd, dcr) = (pinned(RegistrationRule::Cimd), pinned(RegistrationRule::Dcr));
        let silent = ServerMetadata { takes_metadata_documents: false, ..metadata() };
        assert!(matches!(choose(&cimd, &silent, DOCUMENT), Ok(Way::Document(_))));
        assert!(matches!(choose(&dcr, &metadata(), DOCUMENT), Ok(Way::Dynamic(_))));
        let error = choose(&pinned(RegistrationRule::Preregistered), &metadata(), DOCUMENT);
        assert_eq!(
            error.unwrap_err().to_string(),
            "auth.registration is \"preregistered\", but no client id is set; change it to \
             \"auto\" or set auth.client.clientId"
        );
        assert!(choose(&cimd, &metadata(), None).is_err());
    }

    #[test]
    fn oauth_c12_the_document_names_its_own_address() {
        let mut document = ClientDocument {
            id: url("https://narthex.example/oauth/client.json"),
            name: "narthex".to_owned(),
            uri: Some(url("https://narthex.example/")),
            redirect_uris: vec![url("https://narthex.example/oauth/callback")],
            jwks_uri: None,
        };
        let public = json!({
            "client_id": "https://narthex.example/oauth/client.json",
            "client_name": "narthex",
            "client_uri": "https://narthex.example/",
            "redirect_uris": ["https://narthex.example/oauth/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        assert_eq!(document.to_json(), public);
        document.jwks_uri = Some(url("https://narthex.example/oauth/keys"));
        let proving = document.to_json();
        assert_eq!(proving["token_endpoint_auth_method"], "private_key_jwt");
        assert_eq!(proving["jwks_uri"], "https://narthex.example/oauth/keys");
    }
}
