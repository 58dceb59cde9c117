//! Sign-in of humans: combines the ceremonies of `login`, the rows of the store, and requests to
//! OpenID providers.

mod error;
mod links;
mod oidc;
mod passkeys;
mod session;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use narthex_http_client::Proxies;
use narthex_login::{
    Consents, LoginOptions, Passkeys, Pending, ProviderOptions, PublicOrigin, Registration,
    SessionLimits, SignIn, TokenHash, oidc::Attempt,
};
use narthex_model::PrincipalId;

use self::oidc::Provider;
pub(crate) use self::session::KnownSession;
pub use self::{
    error::LoginError,
    links::CreatedLink,
    passkeys::Ceremony,
    session::{NewSession, OwnSession, SignedIn},
};
use crate::{Control, ControlError, DoorServer};

/// Time for a browser to answer.
const CEREMONY: Duration = Duration::from_mins(5);
/// Time for a human to sign in at a provider.
const AT_PROVIDER: Duration = Duration::from_mins(15);
/// Largest number of open ceremonies of each kind.
const WAITING_MAX: usize = 1000;

/// All parts of sign-in, for as long as the process lives.
#[derive(Debug)]
pub(crate) struct Login {
    origin: PublicOrigin,
    limits: SessionLimits,
    /// Passkeys; `None` where browsers reach narthex by an IP address, to which no passkey can
    /// belong.
    passkeys: Option<Passkeys>,
    registrations: Pending<(PrincipalId, Registration)>,
    sign_ins: Pending<SignIn>,
    attempts: Pending<(String, Attempt)>,
    providers: BTreeMap<String, Arc<Provider>>,
    consents: Consents,
    door: Option<DoorServer>,
}

impl Login {
    pub(crate) fn new(options: LoginOptions, proxies: &Arc<Proxies>) -> Self {
        let LoginOptions { origin, limits, providers, door } = options;
        let named = |one: ProviderOptions| {
            (one.name.clone(), Arc::new(Provider::new(one, proxies.clone())))
        };
        Self {
            passkeys: Passkeys::new(&origin).ok(),
            origin,
            limits,
            registrations: Pending::new(CEREMONY, WAITING_MAX),
            sign_ins: Pending::new(CEREMONY, WAITING_MAX),
            attempts: Pending::new(AT_PROVIDER, WAITING_MAX),
            providers: providers.into_iter().map(named).collect(),
            consents: Consents::default(),
            door: door.map(|options| DoorServer::new(options, proxies.clone())),
        }
    }
}

impl Control {
    /// The origin at which browsers reach this process; `None` if sign-in is off.
    #[must_use]
    pub fn sign_in_origin(&self) -> Option<&PublicOrigin> {
        self.shared.login.as_ref().map(|login| &login.origin)
    }

    /// The consents for pages on which a human decides.
    ///
    /// # Errors
    /// When sign-in is off.
    pub fn consents(&self) -> Result<&Consents, ControlError> {
        Ok(&self.login()?.consents)
    }

    /// The rules of the door as an authorization server; `None` if the door gives no tokens.
    pub(crate) fn door_server(&self) -> Option<&DoorServer> {
        self.shared.login.as_ref()?.door.as_ref()
    }

    /// The names of the OpenID providers.
    #[must_use]
    pub fn sign_in_providers(&self) -> Vec<&str> {
        let providers = self.shared.login.iter().flat_map(|login| login.providers.keys());
        providers.map(String::as_str).collect()
    }

    /// The token that a form of a session has to repeat. Only a page of the session's owner can
    /// read the token, and it gives no access by itself.
    #[must_use]
    pub fn form_token(&self, token: &str) -> String {
        TokenHash::for_purpose("form", token).as_str().to_owned()
    }

    /// True if passkeys can be used at this address.
    #[must_use]
    pub fn has_passkeys(&self) -> bool {
        self.shared.login.as_ref().is_some_and(|login| login.passkeys.is_some())
    }

    fn login(&self) -> Result<&Login, ControlError> {
        self.shared.login.as_ref().ok_or_else(|| LoginError::NoSignIn.into())
    }
}
