//! The client id at an authorization server: of the entry, the settings, a document, or a
//! registration.

use narthex_oauth::client::{
    ClientIdentity, ClientProfile, Found, RegisteredClient, Registering, RegistrationError,
    RegistrationStep, Settings, Way,
};
use url::Url;

use crate::{
    SignInError,
    entry::Person,
    grant_row::{Client, ClientKind},
    guard::Guard,
    holding::Holding,
    store::ClientKey,
};

/// Seconds after which a registration is not trusted without a sign that the server still knows it
/// (Q17).
const TRUSTED_FOR: u64 = 24 * 3600;

/// The choice of a client at a discovered authorization server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) person: &'a Person,
    pub(crate) found: &'a Found,
    /// True if a stored registration is not used.
    pub(crate) is_anew: bool,
    /// True if the client is for another device.
    pub(crate) is_for_devices: bool,
}

impl Choice<'_> {
    /// Chooses the client, and registers narthex if that is the way.
    ///
    /// # Errors
    /// When there is no way to a client, or the registration fails.
    pub(crate) async fn make(
        self,
        holding: &Holding,
        guard: &Guard,
    ) -> Result<Client, SignInError> {
        let options = &holding.parts.options;
        let redirects = self.person.redirect_uris(&options.redirect_base, &holding.key.server);
        let Some(first) = redirects.first() else { return Err(no_redirect()) };
        let shared = self.with_shared(holding);
        let settings = shared.as_ref().unwrap_or(&self.person.settings);
        let document = options.client_metadata_url.as_ref();
        let client = |identity, kind, redirect_uri: &Url| Client {
            identity,
            kind,
            redirect_uri: redirect_uri.to_string(),
        };
        // A client of several servers has one redirect URI.
        let common = || {
            let redirect = self.person.common_redirect_uri(&options.redirect_base);
            redirect.unwrap_or_else(|| first.clone())
        };
        match Way::choose(settings, &self.found.metadata, document, first)? {
            Way::Preregistered(identity) if shared.is_some() => {
                Ok(client(identity, ClientKind::Shared, &common()))
            }
            Way::Preregistered(identity) => Ok(client(identity, ClientKind::Preregistered, first)),
            Way::Document(id) => {
                let identity = ClientIdentity::new(id.as_str(), None, None);
                Ok(client(identity, ClientKind::Document, &common()))
            }
            Way::Dynamic(endpoint) => {
                let place = Place { endpoint: &endpoint, redirects: &redirects, first };
                self.registered(holding, guard, place).await
            }
        }
    }

    /// The settings with a shared client, if the server may use one. The client of the entry goes
    /// before it (C11).
    fn with_shared(self, holding: &Holding) -> Option<Settings> {
        let own = &self.person.settings;
        if own.client.is_some() {
            return None;
        }
        let (clients, entry) = (&holding.parts.options.shared_clients, holding.entry());
        let client = clients.at(&self.found.issuer, &holding.key, &entry.url).next()?;
        Some(Settings { client: Some(client.identity(None)), ..own.clone() })
    }

    /// The stored client, or a new one.
    async fn registered(
        self,
        holding: &Holding,
        guard: &Guard,
        place: Place<'_>,
    ) -> Result<Client, SignInError> {
        let store = &holding.parts.options.store;
        let key = key_of(holding, &self.found.issuer, place.first, self.is_for_devices);
        let stored = store.client(key.clone()).await?;
        let known = stored.as_ref().and_then(|text| RegisteredClient::from_stored(text).ok());
        if let Some(known) = known.filter(|known| self.is_usable(holding, known, place.redirects)) {
            return Ok(of_registration(known));
        }
        let made = self.register(holding, guard, place).await?;
        let own = made.to_stored();
        let kept = store.put_client(key.clone(), own.clone(), stored).await?;
        if kept == own {
            holding.parts.options.hooks.on_client_registered(&key);
            return Ok(of_registration(made));
        }
        // Another process was first.
        let kept = RegisteredClient::from_stored(&kept).ok();
        Ok(of_registration(kept.unwrap_or(made)))
    }

    /// True if a stored client can be used for another consent.
    fn is_usable(self, holding: &Holding, known: &RegisteredClient, redirects: &[Url]) -> bool {
        let now = holding.now();
        let has_redirect = redirects
            .iter()
            .any(|uri| Url::parse(&known.redirect_uri).is_ok_and(|own| own == *uri));
        let seen_at = holding.with_state(|state| {
            let held = state.held.as_ref();
            let is_its = |id: &str| id == known.client.id;
            let held = held.filter(|held| is_its(&held.value.grant.client_id));
            held.and_then(|held| held.facts.succeeded_at)
        });
        let known_at = known.registered_at.max(seen_at.unwrap_or(0));
        !self.is_anew
            && known.issuer == self.found.issuer
            && has_redirect
            && !known.has_ended(now)
            && now.saturating_sub(known_at) < TRUSTED_FOR
    }

    async fn register(
        self,
        holding: &Holding,
        guard: &Guard,
        place: Place<'_>,
    ) -> Result<RegisteredClient, SignInError> {
        let Place { endpoint, redirects, first: _ } = place;
        let options = &holding.parts.options;
        let name = self.person.settings.client_name.clone();
        let profile = ClientProfile {
            name: name.unwrap_or_else(|| options.client_name.clone()),
            uri: None,
            redirect_uris: redirects.to_vec(),
            is_for_devices: self.is_for_devices,
        };
        let Found { metadata, scopes, .. } = self.found;
        let begun = Registering::begin(endpoint, metadata, &profile, scopes);
        let Some((mut registering, mut request)) = begun else { return Err(no_redirect()) };
        loop {
            let fetched = holding.parts.fetcher.post_json(guard, &request).await;
            match registering.answer(&fetched.reply(), holding.now()) {
                RegistrationStep::Retry(next) => request = next,
                RegistrationStep::Registered(client) => return Ok(*client),
                RegistrationStep::Failed(error) => return Err(error.into()),
            }
        }
    }
}

/// The place of a registration.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    endpoint: &'a Url,
    redirects: &'a [Url],
    first: &'a Url,
}

fn of_registration(registered: RegisteredClient) -> Client {
    let RegisteredClient { client, redirect_uri, .. } = registered;
    Client { identity: client, kind: ClientKind::Registered, redirect_uri }
}

fn no_redirect() -> SignInError {
    let reason = "narthex has no redirect URI";
    SignInError::Registration(RegistrationError::BadAnswer { endpoint: String::new(), reason })
}

/// The keys of the clients that narthex may have registered for a server.
pub(crate) fn keys_of(holding: &Holding, person: &Person, issuer: &str) -> Vec<ClientKey> {
    let bases = &holding.parts.options.redirect_base;
    let first = person.redirect_uris(bases, &holding.key.server).into_iter().next();
    let keys = |first: Url| {
        [false, true].map(|is_for_devices| key_of(holding, issuer, &first, is_for_devices))
    };
    first.into_iter().flat_map(keys).collect()
}

fn key_of(holding: &Holding, issuer: &str, first: &Url, is_for_devices: bool) -> ClientKey {
    let suffix = if is_for_devices { "#device" } else { "" };
    ClientKey {
        workspace: holding.key.workspace.clone(),
        issuer: issuer.to_owned(),
        redirect_base: format!("{first}{suffix}"),
    }
}
