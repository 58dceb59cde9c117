//! Sign-in at OpenID providers, with limits on the time and size of their answers.
//!
//! Redirects to other hosts are not followed, and a provider's answer is never shown.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderValue, Method, Request, StatusCode, header};
use narthex_audit::kind;
use narthex_http_client::{AllowedAddresses, ClientSettings, HttpClient, Proxies};
use narthex_login::{
    LoginMethod, Token,
    oidc::{Attempt, Callback, Identity, Keys, Metadata, OidcError, TokenRequest},
};
use narthex_model::{ErrorKind, PrincipalId, PrincipalKind, PrincipalName, Secret};
use narthex_oauth::client;
use narthex_oauth_client::{Guard, LoginIdentity};
use narthex_store::NewPrincipal;
use narthex_wire::Payload;
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use super::{LoginError, NewSession};
use crate::{
    ActorKind, By, Control, ControlError, ProviderOptions,
    access::{new_id, of_principal},
};

/// Longest time and size of an answer of a provider.
const ANSWER: Duration = Duration::from_secs(10);
const ANSWER_MAX: usize = 256 * 1024;
/// Time for which metadata and keys are reused.
const FRESH: Duration = Duration::from_mins(10);
/// Shortest pause between two requests of keys because a token names an unknown one.
const KEYS_AGAIN: Duration = Duration::from_secs(30);
/// Number of names that are tried for a human who signs in for the first time.
const NAMES: usize = 3;

/// A provider, with its own metadata and keys.
#[derive(Debug)]
pub(super) struct Provider {
    options: ProviderOptions,
    client: Arc<narthex_login::oidc::Client>,
    proxies: Arc<Proxies>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    metadata: Option<(Instant, Arc<Metadata>)>,
    keys: Option<(Instant, Arc<Keys>)>,
}

impl Provider {
    pub(super) fn new(options: ProviderOptions, proxies: Arc<Proxies>) -> Self {
        let client = Arc::new(options.client.clone());
        Self { options, client, proxies, known: Mutex::default() }
    }

    async fn metadata(&self) -> Result<Arc<Metadata>, LoginError> {
        let mut known = self.known.lock().await;
        if let Some((at, metadata)) = &known.metadata
            && at.elapsed() < FRESH
        {
            return Ok(metadata.clone());
        }
        let body = get(self, &self.client.metadata_url()).await?;
        let metadata = Arc::new(Metadata::read(&self.client, &body)?);
        known.metadata = Some((Instant::now(), metadata.clone()));
        Ok(metadata)
    }

    /// Returns the keys. Reads them anew if they are older than `fresh`.
    async fn keys(&self, uri: &Url, fresh: Duration) -> Result<Arc<Keys>, LoginError> {
        let mut known = self.known.lock().await;
        if let Some((at, keys)) = &known.keys
            && at.elapsed() < fresh
        {
            return Ok(keys.clone());
        }
        let keys = Arc::new(Keys::read(&get(self, uri).await?)?);
        known.keys = Some((Instant::now(), keys.clone()));
        Ok(keys)
    }

    /// The addresses to which a client may connect for one that the provider names (S9).
    async fn reach(&self, url: &Url) -> Result<AllowedAddresses, LoginError> {
        let guard = Guard::of_choice(&self.client.metadata_url()).await;
        let refused = OidcError::BadMetadata("one of its endpoints must not be asked");
        guard.allowed(url).ok_or(LoginError::Oidc(refused))
    }

    async fn identify(&self, attempt: &Attempt, token: &Secret) -> Result<Identity, LoginError> {
        let keys = self.keys(attempt.jwks_uri(), FRESH).await?;
        match attempt.identify(token, &keys, SystemTime::now()) {
            // The provider has changed its key.
            Err(OidcError::UnknownKey) => {
                let keys = self.keys(attempt.jwks_uri(), KEYS_AGAIN).await?;
                Ok(attempt.identify(token, &keys, SystemTime::now())?)
            }
            identified => Ok(identified?),
        }
    }
}

impl Control {
    /// Starts a sign-in at a provider. Returns the address for the browser, and a token that only
    /// the browser stores until it comes back.
    ///
    /// # Errors
    /// When the provider is unknown or cannot be reached.
    pub async fn oidc_begin(&self, name: &str) -> Result<(Url, Token), ControlError> {
        let login = self.login()?;
        let provider = login.providers.get(name).ok_or(LoginError::UnknownProvider)?;
        let metadata = provider.metadata().await?;
        let redirect = login.origin.at(&format!("/signin/oidc/{name}/callback"));
        let begun = Attempt::begin(provider.client.clone(), metadata, redirect);
        let (url, attempt) = begun.map_err(LoginError::Oidc)?;
        let token = login.attempts.put((name.to_owned(), attempt));
        Ok((url, token.map_err(LoginError::Pending)?))
    }

    /// Ends a sign-in with the query that the browser brought back from this provider.
    ///
    /// # Errors
    /// When the sign-in has expired or was started elsewhere, the provider refused, its answer
    /// proves nothing, or the human is not admitted.
    pub async fn oidc_finish(
        &self,
        name: &str,
        kept: &str,
        query: &str,
    ) -> Result<NewSession, ControlError> {
        let login = self.login()?;
        let provider = login.providers.get(name).ok_or(LoginError::UnknownProvider)?;
        // The attempt is removed in any case: a second try must start a new sign-in.
        let (begun_at, attempt) = login.attempts.take(kept).ok_or(LoginError::NoCeremony)?;
        if begun_at != name {
            return Err(LoginError::NoCeremony.into());
        }
        let callback = Callback::read(query).map_err(LoginError::Oidc)?;
        let request = attempt.redeem(&callback).map_err(LoginError::Oidc)?;
        let answer = redeem(provider, request).await?;
        let token = attempt.id_token(&answer).map_err(LoginError::Oidc)?;
        let identity = provider.identify(&attempt, &token).await?;
        let principal = self.known_or_admitted(provider, &identity).await?;
        let session = self.begin_session(principal, LoginMethod::Oidc).await?;
        if provider.client.keeps_identity {
            let identity = client::Identity {
                refresh_token: attempt.refresh_token(&answer),
                id_token: Some(token),
            };
            let identity = LoginIdentity {
                provider: name.to_owned(),
                issuer: provider.client.issuer_text.clone(),
                token_endpoint: attempt.token_endpoint().clone(),
                auth_methods: attempt.auth_methods().map(<[String]>::to_vec),
                client_id: provider.client.client_id.clone(),
                identity,
            };
            self.keep_identity(&session.principal, identity).await;
        }
        Ok(session)
    }

    /// Keeps the identity of a human for exchanges. The sign-in to narthex counts in any case.
    async fn keep_identity(&self, principal: &PrincipalId, identity: LoginIdentity) {
        let Some(sign_ins) = self.sign_ins() else { return };
        let provider = identity.provider.clone();
        if let Err(error) = sign_ins.keep_identity(principal.as_str(), identity).await {
            tracing::warn!(%provider, %error, "the identity of a human is not stored");
        }
    }

    async fn known_or_admitted(
        &self,
        provider: &Arc<Provider>,
        identity: &Identity,
    ) -> Result<PrincipalId, ControlError> {
        let Identity { issuer, subject, .. } = identity;
        let proofs = self.needed_store()?.proofs();
        let known = proofs.find_identity(issuer, subject).await.map_err(ControlError::Store)?;
        if let Some(known) = known {
            return Ok(known);
        }
        if !provider.options.admission.admits(identity) {
            tracing::info!(provider = provider.options.name, "a sign-in was refused");
            return Err(LoginError::Oidc(OidcError::NotAdmitted).into());
        }
        let wanted = wanted_name(identity);
        for number in 0..NAMES {
            // Another principal may have the name: issuer and subject alone identify the human.
            let name = if number == 0 { wanted.clone() } else { format!("{wanted}-{}", suffix()?) };
            let name = PrincipalName::new(&name).ok();
            let name = name.filter(|name| name.unfit_for_humans().is_none());
            let Some(name) = name else { continue };
            match self.admit(provider, identity, name).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                admitted => return admitted,
            }
            let known = proofs.find_identity(issuer, subject).await.map_err(ControlError::Store)?;
            if let Some(known) = known {
                return Ok(known);
            }
        }
        Err(LoginError::NoName.into())
    }

    async fn admit(
        &self,
        provider: &Arc<Provider>,
        identity: &Identity,
        name: PrincipalName,
    ) -> Result<PrincipalId, ControlError> {
        let (id, provider) = (new_id()?, provider.clone());
        let (issuer, subject) = (identity.issuer.clone(), identity.subject.clone());
        self.change_access(async move |this, store| {
            this.is_free(&name)?;
            let by = format!("oidc:{}", provider.options.name);
            let event = By::new(ActorKind::System, by.clone());
            let event = of_principal(kind::PRINCIPAL_CREATED, &id, event);
            let noted = this.note(event.with("name", name.as_str())).await?;
            let (kind, workspace, is_operator) = (PrincipalKind::Human, None, false);
            let new = NewPrincipal { id: &id, name: &name, kind, workspace, is_operator, by: &by };
            let (proofs, roles) = (store.proofs(), &provider.options.roles);
            let admitted = proofs.admit(&issuer, &subject, new, roles).await;
            admitted.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(id)
        })
        .await
    }
}

/// The wanted name of a human, from the verified e-mail address or else the subject.
fn wanted_name(identity: &Identity) -> String {
    let wanted = identity.verified_email().unwrap_or(&identity.subject).to_ascii_lowercase();
    let is_good = |c: &char| c.is_ascii_alphanumeric() || "._@+-".contains(*c);
    let wanted: String = wanted.chars().filter(is_good).take(100).collect();
    let wanted = wanted.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if wanted.is_empty() { "human".to_owned() } else { wanted.to_owned() }
}

fn suffix() -> Result<String, LoginError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(LoginError::Randomness)?;
    Ok(hex::encode(bytes))
}

async fn get(provider: &Provider, url: &Url) -> Result<Vec<u8>, LoginError> {
    let mut request = Request::new(Payload::default());
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::ACCEPT, json);
    ask(provider, url, request).await
}

async fn redeem(provider: &Provider, request: TokenRequest) -> Result<Vec<u8>, LoginError> {
    let TokenRequest { url, authorization, form } = request;
    let mut asked = Request::new(Payload::from(form.expose().as_bytes().to_vec()));
    *asked.method_mut() = Method::POST;
    let headers = asked.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(header::CONTENT_TYPE, kind);
    if let Some(authorization) = authorization {
        let mut value =
            HeaderValue::from_str(authorization.expose()).expect("base64 may stand in a header");
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    ask(provider, &url, asked).await
}

/// Sends one request on a new connection: sign-ins are rare.
async fn ask(
    provider: &Provider,
    url: &Url,
    mut request: Request<Payload>,
) -> Result<Vec<u8>, LoginError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    *request.uri_mut() = path.parse().expect("the path of an address is one");
    let asked = async {
        let (reach, proxies) = (provider.reach(url).await?, Arc::clone(&provider.proxies));
        let settings = ClientSettings { reach, proxies, ..ClientSettings::default() };
        let client = HttpClient::new(url, settings).map_err(LoginError::Unreachable)?;
        let response = client.send(request).await.map_err(LoginError::Unreachable)?;
        if response.status != StatusCode::OK {
            return Err(LoginError::Status(response.status.as_u16()));
        }
        let body = response.body.collect(ANSWER_MAX).await.map_err(LoginError::Unreachable)?;
        Ok(body.to_vec())
    };
    tokio::time::timeout(ANSWER, asked).await.unwrap_or(Err(LoginError::TooSlow))
}

#[cfg(test)]
mod tests {
    use narthex_login::oidc::{Admission, Client};
    use narthex_testkit::addresses::{ClosedProxy, INSIDE};

    use super::*;

    /// S9, E169: a provider names an inner address, in any spelling. It is not asked, and no proxy
    /// is asked for it.
    #[tokio::test]
    async fn s9_a_provider_leads_to_no_inner_address() {
        let proxy = ClosedProxy::start().await;
        let proxies = Proxies::new(Some(&proxy.url), Some(&proxy.url), "").unwrap();
        let options = ProviderOptions {
            name: "corp".to_owned(),
            client: Client::new("https://1.1.1.1/corp", "narthex", None).unwrap(),
            admission: Admission::default(),
            roles: Vec::new(),
        };
        let provider = Provider::new(options, Arc::new(proxies));
        for inside in INSIDE {
            get(&provider, &Url::parse(inside).unwrap()).await.unwrap_err();
        }
        assert_eq!(proxy.asked(), [""; 0]);
        // Its own host is an operator's choice.
        provider.metadata().await.unwrap_err();
        get(&provider, &Url::parse("https://1.0.0.1/keys").unwrap()).await.unwrap_err();
        assert_eq!(proxy.asked(), ["1.1.1.1:443", "1.0.0.1:443"]);
    }
}
