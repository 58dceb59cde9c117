//! A server to sign in to, with the settings of its entry.

use narthex_model::{AuthorizationCodeAuth, ExchangeFallback, OAuth, OAuthTokens, ServerAuth};
use narthex_oauth::client::{ClientCredentials, ConfiguredFault, Exchange, Settings, redirect_uri};
use url::Url;

use crate::{SignInError, options::RedirectBases, store::GrantKey};

/// A server to sign in to.
#[derive(Debug, Clone)]
pub struct SignInTarget {
    /// The key of the grant.
    pub key: GrantKey,
    /// The name of the server's row, for messages.
    pub alias: String,
    /// The address of the server.
    pub url: Url,
    /// The authentication of its entry.
    pub auth: ServerAuth,
    /// Hash of the login session of the browser; `None` if there is no login.
    pub session: Option<String>,
}

/// The settings of a server, as read.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) alias: String,
    pub(crate) url: Url,
    /// The configured authentication, to notice a change.
    pub(crate) auth: ServerAuth,
    pub(crate) mode: Mode,
}

/// The way to tokens.
#[derive(Debug)]
pub(crate) enum Mode {
    /// A person signs in.
    Person(Box<Person>),
    /// The client's own credentials.
    Machine(Box<ClientCredentials>),
    /// The identity of a person at the company's provider.
    Exchange(Box<Exchanged>),
    /// The settings cannot be used.
    Faulty(SignInError),
}

/// The settings of an exchange, and of the sign-in that may follow it.
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub(crate) exchange: Exchange,
    /// The sign-in of a person after the exchange was refused for good, if the entry has one.
    pub(crate) fallback: Option<Person>,
}

/// The settings of a sign-in by a person.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) settings: Settings,
    /// Tokens of the configuration.
    pub(crate) tokens: Option<OAuthTokens>,
    /// The configured redirect URI.
    pub(crate) redirect_uri: Option<Url>,
    /// True if idle grants are renewed.
    pub(crate) keep_alive: bool,
    /// True if the entry names no authentication: a refusal may have another meaning.
    pub(crate) is_unstated: bool,
}

impl Entry {
    pub(crate) fn new(alias: &str, url: &Url, auth: &ServerAuth) -> Self {
        let mode = Mode::of(alias, auth);
        Self { alias: alias.to_owned(), url: url.clone(), auth: auth.clone(), mode }
    }

    /// True if this is the entry of these settings.
    pub(crate) fn is_of(&self, alias: &str, url: &Url, auth: &ServerAuth) -> bool {
        self.alias == alias && self.url == *url && self.auth == *auth
    }

    /// The settings of a sign-in by a person, which may be one after an exchange.
    pub(crate) fn person(&self) -> Result<&Person, SignInError> {
        match &self.mode {
            Mode::Person(person) => Ok(person),
            Mode::Machine(_) => {
                Err(SignInError::NoPerson { server: self.alias.clone(), mode: self.auth.mode() })
            }
            Mode::Exchange(exchanged) => match &exchanged.fallback {
                Some(person) => Ok(person),
                None => Err(SignInError::ByExchange { server: self.alias.clone() }),
            },
            Mode::Faulty(error) => Err(error.clone()),
        }
    }

    /// The server as grants are bound to it: its address without query and fragment, and the
    /// audience or the identity of the settings.
    pub(crate) fn place(&self) -> String {
        let place = place(&self.url);
        match &self.mode {
            Mode::Machine(machine) => match &machine.audience {
                Some(audience) => format!("{place}#{audience}"),
                None => place,
            },
            Mode::Exchange(exchanged) => format!("{place}#{}", exchanged.exchange.print()),
            Mode::Person(_) | Mode::Faulty(_) => place,
        }
    }

    /// True if the entry has an exchange that a sign-in by a person may follow.
    pub(crate) fn falls_back(&self) -> bool {
        matches!(&self.mode, Mode::Exchange(exchanged) if exchanged.fallback.is_some())
    }

    /// True if a grant of this place can be one of the entry. Tokens of a sign-in after an exchange
    /// have the place of a sign-in.
    pub(crate) fn has_place(&self, of_grant: &str) -> bool {
        self.place() == of_grant || (self.falls_back() && place(&self.url) == of_grant)
    }

    /// Addresses that an operator chose: the server's own, and those of the settings.
    pub(crate) fn chosen(&self) -> Vec<Url> {
        let (settings, token_url) = match &self.mode {
            Mode::Person(person) => (Some(&person.settings), None),
            Mode::Machine(machine) => (Some(&machine.settings), machine.token_url.as_ref()),
            Mode::Exchange(exchanged) => (Some(&exchanged.exchange.settings), None),
            Mode::Faulty(_) => (None, None),
        };
        let issuer = settings.and_then(|settings| settings.authorization_server.as_deref());
        let issuer = issuer.and_then(|text| Url::parse(text).ok());
        issuer.into_iter().chain(token_url.cloned()).collect()
    }
}

/// An address without query and fragment.
pub(crate) fn place(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

impl Mode {
    fn of(alias: &str, auth: &ServerAuth) -> Self {
        let read = match auth {
            ServerAuth::OAuth(oauth) => match &**oauth {
                OAuth::ClientCredentials(auth) => {
                    ClientCredentials::of(auth).map(|read| Self::Machine(Box::new(read)))
                }
                OAuth::AuthorizationCode(auth) => sign_in(auth),
            },
            ServerAuth::Unstated => Ok(Self::Person(Box::new(Person {
                settings: Settings::default(),
                tokens: None,
                redirect_uri: None,
                keep_alive: false,
                is_unstated: true,
            }))),
            ServerAuth::None | ServerAuth::ApiKey(_) => {
                let (server, mode) = (alias.to_owned(), auth.mode());
                return Self::Faulty(SignInError::NoPerson { server, mode });
            }
        };
        read.unwrap_or_else(|fault| Self::Faulty(fault.into()))
    }
}

/// The way of a sign-in by a person, or of the exchange in its place.
fn sign_in(auth: &AuthorizationCodeAuth) -> Result<Mode, ConfiguredFault> {
    let Some(exchange) = &auth.exchange else {
        return Ok(Mode::Person(Box::new(Person::of(auth)?)));
    };
    let fallback = match exchange.fallback {
        Some(ExchangeFallback::SignIn) => Some(Person::of(auth)?),
        None => None,
    };
    let exchange = Exchange::of(auth, exchange)?;
    Ok(Mode::Exchange(Box::new(Exchanged { exchange, fallback })))
}

impl Person {
    fn of(auth: &AuthorizationCodeAuth) -> Result<Self, ConfiguredFault> {
        let redirect_uri = auth.redirect_uri.as_deref();
        Ok(Self {
            settings: Settings::of(auth)?,
            tokens: auth.tokens.clone(),
            redirect_uri: redirect_uri.and_then(|text| Url::parse(text).ok()),
            keep_alive: auth.keep_alive,
            is_unstated: false,
        })
    }

    /// The possible redirect URIs, the preferred one first. A configured one is the only one
    /// (E94).
    pub(crate) fn redirect_uris(&self, bases: &RedirectBases, server: &str) -> Vec<Url> {
        match &self.redirect_uri {
            Some(uri) => vec![uri.clone()],
            None => bases.all().map(|base| redirect_uri(base, Some(server))).collect(),
        }
    }

    /// The redirect URI of a client id metadata document or a shared client, which is the same for
    /// all servers.
    pub(crate) fn common_redirect_uri(&self, bases: &RedirectBases) -> Option<Url> {
        let common = || bases.all().next().map(|base| redirect_uri(base, None));
        self.redirect_uri.clone().or_else(common)
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::AuthorizationCodeAuth;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn bases(public: Option<&str>) -> RedirectBases {
        RedirectBases { loopback: url("http://127.0.0.1:4711/"), public: public.map(url) }
    }

    fn uris(auth: AuthorizationCodeAuth, public: Option<&str>) -> Vec<String> {
        let auth = ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(auth)));
        let entry = Entry::new("lin", &url("https://mcp.example/mcp"), &auth);
        let person = entry.person().unwrap();
        let uris = person.redirect_uris(&bases(public), "lin ear");
        uris.iter().map(Url::to_string).collect()
    }

    #[test]
    fn e94_the_redirect_base_has_no_slash_and_an_explicit_redirect_uri_wins() {
        let own = AuthorizationCodeAuth::default();
        assert_eq!(uris(own.clone(), None), ["http://127.0.0.1:4711/oauth/callback/lin%20ear"]);
        assert_eq!(
            uris(own, Some("https://n.example/base/")),
            [
                "https://n.example/base/oauth/callback/lin%20ear",
                "http://127.0.0.1:4711/oauth/callback/lin%20ear"
            ]
        );
        let explicit = AuthorizationCodeAuth {
            redirect_uri: Some("https://own.example/back".to_owned()),
            ..AuthorizationCodeAuth::default()
        };
        assert_eq!(uris(explicit, Some("https://n.example")), ["https://own.example/back"]);
    }

    #[test]
    fn grants_are_bound_to_the_address_without_its_query() {
        let entry = Entry::new("a", &url("https://mcp.example/mcp?key=1#x"), &ServerAuth::Unstated);
        assert_eq!(entry.place(), "https://mcp.example/mcp");
        assert!(entry.is_of("a", &entry.url, &ServerAuth::Unstated));
        assert!(!entry.is_of("a", &url("https://mcp.example/other"), &ServerAuth::Unstated));
    }

    #[test]
    fn entries_without_a_sign_in_say_so() {
        let entry = Entry::new("a", &url("https://mcp.example"), &ServerAuth::None);
        let text = entry.person().unwrap_err().to_string();
        assert!(text.contains("auth.mode: none"), "{text}");
    }
}
