//! Settings of one server's sign-in, after the defaults of a known provider.

use url::Url;

use super::{ClientIdentity, Preset};
use crate::scopes::Scopes;

/// Name of the setting of the authorization server, for messages.
pub const SETTING_AUTHORIZATION_SERVER: &str = "auth.authorizationServer";
/// Name of the setting of an own client id, for messages.
pub const SETTING_CLIENT_ID: &str = "auth.client.clientId";
/// Name of the setting of the registered name, for messages.
pub const SETTING_CLIENT_NAME: &str = "auth.clientName";
/// Name of the setting of the PKCE rule, for messages.
pub const SETTING_PKCE: &str = "auth.pkce";
/// Name of the setting of the way of registration, for messages.
pub const SETTING_REGISTRATION: &str = "auth.registration";
/// Name of the setting of the scopes, for messages.
pub const SETTING_SCOPES: &str = "auth.scopes";

/// The kind of grant that discovery is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// A person agrees in a browser: PKCE and an authorization endpoint are required.
    Browser,
    /// A person agrees on another device (RFC 8628).
    Device,
    /// No person: client credentials and assertions.
    Machine,
}

/// The rule for servers that do not list S256 (RFC 7636).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PkceRule {
    /// Refuse them.
    Require,
    /// Use S256 nevertheless.
    Assume,
}

/// The parameter `resource` of all requests to the authorization server (RFC 8707).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceRule {
    /// The identifier that discovery finds.
    Discovered,
    /// Leave the parameter out, for servers that refuse it.
    Omit,
    /// This text.
    Fixed(String),
}

/// The way to a client id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RegistrationRule {
    /// The first possible of the others.
    #[default]
    Auto,
    /// A client id from the settings.
    Preregistered,
    /// A client id metadata document.
    Cimd,
    /// Dynamic client registration (RFC 7591).
    Dcr,
}

/// Settings of one server's sign-in. `None` takes the preset of a known provider, or else the
/// default.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Issuer of the authorization server, instead of the one that the server names.
    pub authorization_server: Option<String>,
    /// Rule for servers that do not list S256; by default they are refused.
    pub pkce: Option<PkceRule>,
    /// Value of `resource`; by default the discovered one.
    pub resource: Option<ResourceRule>,
    /// True if refresh requests carry `scope`; by default they do not.
    pub refresh_scope: Option<bool>,
    /// Requested scopes, instead of those that the server names.
    pub scopes: Option<Scopes>,
    /// The way to a client id.
    pub registration: RegistrationRule,
    /// A client that an operator has registered.
    pub client: Option<ClientIdentity>,
    /// The name in registrations.
    pub client_name: Option<String>,
    /// True if servers without metadata are tried as of MCP 2025-03-26.
    pub legacy: bool,
}

impl Settings {
    /// Fills in the settings that a preset knows and the operator left open. Of several addresses,
    /// such as the server's and the issuer's, the first with a preset counts.
    #[must_use]
    pub fn with_preset<'u>(&self, addresses: impl IntoIterator<Item = &'u Url>) -> Self {
        let mut filled = self.clone();
        if let Some(preset) = addresses.into_iter().find_map(Preset::of) {
            filled.pkce = filled.pkce.or_else(|| preset.assumes_pkce().then_some(PkceRule::Assume));
            let omit = || preset.omits_resource().then_some(ResourceRule::Omit);
            filled.resource = filled.resource.or_else(omit);
            filled.refresh_scope = filled.refresh_scope.or(preset.refresh_scope());
        }
        filled
    }

    /// The value of the parameter `resource`, after a discovered one. `None`: leave it out.
    #[must_use]
    pub fn resource(&self, discovered: &str) -> Option<String> {
        match self.resource.as_ref().unwrap_or(&ResourceRule::Discovered) {
            ResourceRule::Discovered => Some(discovered.to_owned()),
            ResourceRule::Omit => None,
            ResourceRule::Fixed(text) => Some(text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn oauth_q4_entra_gets_no_resource_unless_set() {
        let (server, entra) =
            (url("https://mcp.corp.example"), url("https://login.microsoftonline.com/t/v2.0"));
        let filled = Settings::default().with_preset([&server, &entra]);
        assert_eq!(filled.resource("https://r"), None);
        let fixed = Settings {
            resource: Some(ResourceRule::Fixed("api://x".to_owned())),
            ..Settings::default()
        };
        let fixed = fixed.with_preset([&server, &entra]);
        assert_eq!(fixed.resource("https://r").as_deref(), Some("api://x"));
        let other = Settings::default().with_preset([&server]);
        assert_eq!(other.resource("https://r").as_deref(), Some("https://r"));
    }

    #[test]
    fn oauth_q13_entra_wants_the_scope_in_refresh_requests_unless_set() {
        let entra = url("https://login.microsoftonline.com/t/v2.0");
        assert_eq!(Settings::default().with_preset([&entra]).refresh_scope, Some(true));
        let off = Settings { refresh_scope: Some(false), ..Settings::default() };
        assert_eq!(off.with_preset([&entra]).refresh_scope, Some(false));
    }

    #[test]
    fn oauth_q5_silent_providers_are_known() {
        for issuer in [
            "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a",
            "https://login.microsoftonline.com/t/v2.0",
        ] {
            let filled = Settings::default().with_preset([&url(issuer)]);
            assert_eq!(filled.pkce, Some(PkceRule::Assume), "{issuer}");
        }
        let strict = Settings { pkce: Some(PkceRule::Require), ..Settings::default() };
        let entra = url("https://login.microsoftonline.com/t/v2.0");
        assert_eq!(strict.with_preset([&entra]).pkce, Some(PkceRule::Require));
    }
}
