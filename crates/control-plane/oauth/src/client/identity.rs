//! The identity of a person at the company's provider, and the settings of its exchange.

use narthex_model::{
    AuthorizationCodeAuth, ExchangeIdentity, ExchangeKind, GivenIdentity, OAuthClient,
    OAuthExchange, Secret,
};
use url::Url;

use super::{
    ClientIdentity, ConfiguredFault, Grant, Settings, Subject, TokenGrant, Tokens,
    configured::address,
};
use crate::{
    TokenHash,
    jwt::unverified_expiry,
    scopes::Scopes,
    urns::{ID_TOKEN, REFRESH_TOKEN},
};

/// Name of the setting of the provider's token endpoint, for messages.
pub const SETTING_PROVIDER_TOKEN_URL: &str = "auth.exchange.tokenUrl";

/// Seconds before the end of an ID token at which another one is used.
const MARGIN: u64 = 30;
/// Stands for the provider's access token, which is of no use here.
const NO_TOKEN: &str = "none";

/// The identity of a person at the company's provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The ID token.
    pub id_token: Option<Secret>,
    /// The refresh token, which gives the next ID token.
    pub refresh_token: Option<Secret>,
}

impl Identity {
    /// The ID token as the subject of an exchange, if it has not ended. `now` in seconds since
    /// 1970.
    #[must_use]
    pub fn living(&self, now: u64) -> Option<Subject> {
        let id_token = self.id_token.as_ref()?;
        let ends = unverified_expiry(id_token.expose());
        let is_living = ends.is_none_or(|end| now < end.saturating_sub(MARGIN));
        is_living.then(|| Subject { token: id_token.clone(), token_type: ID_TOKEN })
    }

    /// The subject of an exchange after a renewal: the new ID token, or the refresh token at a
    /// provider that gives no new one.
    #[must_use]
    pub fn renewed_subject(&self, now: u64) -> Option<Subject> {
        self.living(now).or_else(|| {
            let token = self.refresh_token.clone()?;
            Some(Subject { token, token_type: REFRESH_TOKEN })
        })
    }

    /// The identity after a renewal at the provider. An answer without a refresh token keeps the
    /// old one. An old ID token is not kept, as it was renewed for a reason.
    #[must_use]
    pub fn renewed(&self, answer: Tokens) -> Self {
        let refresh_token = answer.refresh_token.or_else(|| self.refresh_token.clone());
        Self { id_token: answer.id_token, refresh_token }
    }

    /// The identity as a grant at the provider, to be sealed and stored.
    #[must_use]
    pub fn to_grant(&self, issuer: String, client_id: String, now: u64) -> Grant {
        let ends = self.id_token.as_ref().and_then(|token| unverified_expiry(token.expose()));
        let tokens = Tokens {
            access_token: Secret::new(NO_TOKEN),
            refresh_token: self.refresh_token.clone(),
            id_token: self.id_token.clone(),
            token_type: "bearer".to_owned(),
            scopes: Scopes::default(),
            obtained_at: now,
            expires_at: ends.unwrap_or(now),
            is_expiry_guessed: ends.is_none(),
        };
        Grant {
            issuer,
            client_id,
            resource: None,
            requested: Scopes::default(),
            origin: TokenGrant::Code,
            tokens,
            generation: 0,
            key: None,
        }
    }

    /// The identity in a grant of [`Self::to_grant`].
    #[must_use]
    pub fn of_grant(grant: &Grant) -> Self {
        let Tokens { id_token, refresh_token, .. } = &grant.tokens;
        Self { id_token: id_token.clone(), refresh_token: refresh_token.clone() }
    }
}

/// Settings of an exchange (C31, C32).
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The settings of discovery and of requests, before presets, with the client at the server's
    /// authorization server.
    pub settings: Settings,
    /// The result of the exchange at the provider.
    pub kind: ExchangeKind,
    /// The audience of a token of the provider.
    pub audience: Option<String>,
    /// The identity.
    pub identity: IdentitySource,
}

/// The source of a person's identity.
#[derive(Debug, Clone)]
pub enum IdentitySource {
    /// The sign-in of a human with this login provider.
    Login(String),
    /// Tokens of the settings.
    Given(Box<Given>),
}

/// The identity of a person as tokens of the settings.
#[derive(Debug, Clone)]
pub struct Given {
    /// The provider's token endpoint.
    pub token_url: Url,
    /// The client at the provider.
    pub client: ClientIdentity,
    /// The tokens.
    pub identity: Identity,
    /// A hash of all of it, by which a change is noticed.
    pub print: TokenHash,
}

impl Exchange {
    /// Reads the settings.
    ///
    /// # Errors
    /// When an address or a scope cannot be used.
    pub fn of(
        auth: &AuthorizationCodeAuth,
        exchange: &OAuthExchange,
    ) -> Result<Self, ConfiguredFault> {
        let mut settings = Settings::of(auth)?;
        let OAuthExchange { kind, identity, audience, fallback: _ } = exchange;
        if *kind == ExchangeKind::Token {
            // It is the client of the sign-in that may follow.
            settings.client = None;
        }
        let identity = match identity {
            ExchangeIdentity::Login(provider) => IdentitySource::Login(provider.clone()),
            ExchangeIdentity::Given(given) => IdentitySource::Given(Box::new(Given::of(given)?)),
        };
        Ok(Self { settings, kind: *kind, audience: audience.clone(), identity })
    }

    /// The person and the kind of the result: tokens of other ones are not used.
    #[must_use]
    pub fn print(&self) -> String {
        let kind = self.kind.word();
        let audience = self.audience.as_deref().unwrap_or_default();
        match &self.identity {
            IdentitySource::Login(provider) => format!("{kind} {audience} {provider}"),
            IdentitySource::Given(given) => format!("{kind} {audience} {}", given.print.as_str()),
        }
    }
}

impl Given {
    fn of(given: &GivenIdentity) -> Result<Self, ConfiguredFault> {
        let GivenIdentity { token_url, client, id_token, refresh_token } = given;
        let OAuthClient { id, secret } = client;
        let exposed =
            |token: &Option<Secret>| token.as_ref().map(|token| token.expose().to_owned());
        let parts =
            [Some(token_url.clone()), Some(id.clone()), exposed(id_token), exposed(refresh_token)];
        let parts = parts.map(Option::unwrap_or_default).join("\n");
        Ok(Self {
            token_url: address(SETTING_PROVIDER_TOKEN_URL, token_url)?,
            client: ClientIdentity::new(id.clone(), secret.clone(), None),
            identity: Identity { id_token: id_token.clone(), refresh_token: refresh_token.clone() },
            print: TokenHash::for_purpose("identity", &parts),
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

    use super::*;

    fn id_token(end: u64) -> Secret {
        let claims = URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{end}}}"));
        Secret::new(format!("e30.{claims}.c2ln"))
    }

    fn tokens(id_token: Option<Secret>, refresh_token: Option<Secret>) -> Tokens {
        Identity { id_token, refresh_token }.to_grant(String::new(), String::new(), 0).tokens
    }

    fn exchange(token_url: &str) -> Result<Exchange, ConfiguredFault> {
        let given = GivenIdentity {
            token_url: token_url.to_owned(),
            client: OAuthClient { id: "c".to_owned(), secret: Some(Secret::new("s3cret")) },
            id_token: Some(Secret::new("s3cret-id")),
            refresh_token: None,
        };
        let identity = ExchangeIdentity::Given(Box::new(given));
        let kind = ExchangeKind::IdJag;
        let exchange = OAuthExchange { kind, identity, audience: None, fallback: None };
        Exchange::of(&AuthorizationCodeAuth::default(), &exchange)
    }

    #[test]
    fn oauth_c31_an_ended_id_token_is_no_subject() {
        let identity = Identity { id_token: Some(id_token(100)), refresh_token: None };
        assert_eq!(identity.living(69).unwrap().token_type, ID_TOKEN);
        assert!(identity.living(70).is_none());
        assert!(identity.renewed_subject(70).is_none());
        let opaque = Identity { id_token: Some(Secret::new("opaque")), refresh_token: None };
        assert!(opaque.living(u64::MAX).is_some());
    }

    #[test]
    fn oauth_c31_a_renewal_gives_the_next_subject() {
        let refresh = |text: &str| Some(Secret::new(text));
        let old = Identity { id_token: Some(id_token(100)), refresh_token: refresh("one") };
        let next = old.renewed(tokens(Some(id_token(200)), refresh("two")));
        assert_eq!(next.renewed_subject(100).unwrap().token, id_token(200));
        assert_eq!(next.refresh_token, refresh("two"));
        // A provider that gives no new ID token takes the refresh token itself.
        let silent = old.renewed(tokens(None, None));
        let subject = silent.renewed_subject(100).unwrap();
        assert_eq!((subject.token.expose(), subject.token_type), ("one", REFRESH_TOKEN));
    }

    #[test]
    fn oauth_c31_a_stored_identity_is_read_again() {
        let refresh_token = Some(Secret::new("refresh"));
        let identity = Identity { id_token: Some(id_token(100)), refresh_token };
        let grant = identity.to_grant("https://idp.example".to_owned(), "c".to_owned(), 7);
        let read = Grant::from_stored(&grant.to_stored()).unwrap();
        assert_eq!(Identity::of_grant(&read), identity);
        assert_eq!((read.tokens.expires_at, read.tokens.obtained_at), (100, 7));
    }

    #[test]
    fn s27_settings_of_an_exchange_print_no_secret() {
        let read = exchange("https://idp.example/token").unwrap();
        let shown = format!("{read:?} {}", read.print());
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(read.print().starts_with("idJag "), "{shown}");
        let fault = exchange("http://idp.example/token").unwrap_err().to_string();
        assert!(fault.starts_with("auth.exchange.tokenUrl cannot be used: "), "{fault}");
    }
}
