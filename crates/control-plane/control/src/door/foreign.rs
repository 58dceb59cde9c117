//! Access tokens of the company's own issuers: the person and the client of a token.
//!
//! A token is verified when this process sees it first, and again every few minutes. In between,
//! its check reads only memory.

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use narthex_login::IssuerOptions;
use narthex_model::{PrincipalId, ProfileName, WorkspaceId};
use narthex_oauth::{
    TokenHash,
    jwt::{Jwt, JwtFault, Keys},
    server::{ClientId, DoorPath, ForeignAccess, Refusal, Resource, StoredTime},
};

use super::{
    DoorDesk,
    foreign_token::{DoorForeign, VerifiedToken},
    key_source::KeySource,
    requests::DoorChoice,
    server::DoorServer,
};
use crate::{ControlError, Sees};

/// The id of a client whose issuer names none.
const UNNAMED: &str = "unnamed";

/// The refusals of a token.
const NO_ACCOUNT: Refusal = Refusal::BadToken(
    "the person of the access token has no account here; they sign in once in a browser",
);
const OTHER_CLIENT: Refusal = Refusal::BadToken("the client of the access token is not admitted");

impl DoorForeign {
    /// The servers that the client sees: those of the issuer's agent, or else of the profile that
    /// the endpoint names, or all of the live configuration.
    #[must_use]
    pub fn choice(&self, home: &WorkspaceId) -> DoorChoice {
        if let Some(of) = &self.issuer.agent {
            let sees = Sees::Agent(of.agent.clone());
            return DoorChoice { workspace: of.workspace.clone(), sees };
        }
        let path = self.resource.path();
        let profile = path.as_ref().and_then(DoorPath::profile);
        let profile = profile.and_then(|name| ProfileName::new(name).ok());
        let sees = profile.map_or(Sees::Live, Sees::Profile);
        DoorChoice { workspace: home.clone(), sees }
    }
}

impl DoorServer {
    /// The issuer that a token names, if it is one of the settings.
    pub(super) fn issuer_of(&self, token: &Jwt) -> Option<&Arc<IssuerOptions>> {
        let claimed = token.claimed_issuer()?;
        self.options.issuers.iter().find(|one| one.trusted.issuer == claimed)
    }
}

impl DoorDesk<'_> {
    /// The person and the client of an access token of an issuer of the settings, or the refusal
    /// of the token. `None` for any other text.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn foreign(
        &self,
        token: &str,
        resource: Resource,
    ) -> Result<Option<Result<Arc<DoorForeign>, Refusal>>, ControlError> {
        let (server, now) = (self.server, SystemTime::now());
        if server.options.issuers.is_empty() {
            return Ok(None);
        }
        let hash = TokenHash::for_purpose(resource.as_str(), token);
        if let Some(seen) = server.foreign.get(&hash).filter(|seen| seen.is_fresh(now)) {
            return Ok(Some(self.admitted(seen.foreign.clone())));
        }
        let Ok(jwt) = Jwt::parse(token) else { return Ok(None) };
        let Some(issuer) = server.issuer_of(&jwt) else { return Ok(None) };
        let access = match self.verified(&jwt, issuer, &resource, now).await {
            Ok(access) => access,
            Err(fault) => {
                tracing::info!(issuer = issuer.name, "an access token is refused: {fault}");
                return Ok(Some(Err(Refusal::BadToken(words(fault)))));
            }
        };
        let Some(client_id) = client_of(issuer, &access) else {
            return Ok(Some(Err(OTHER_CLIENT)));
        };
        let Some(human) = self.person(&access.issuer, &access.subject).await? else {
            return Ok(Some(Err(NO_ACCOUNT)));
        };
        let foreign = Arc::new(DoorForeign {
            place: format!("access token of {}", access.issuer),
            issuer: issuer.clone(),
            human,
            client_id,
            resource,
            scopes: access.scopes,
            connection: OnceLock::new(),
        });
        let (expires_at, checked_at) = (access.expires_at, StoredTime::of(now));
        let verified = VerifiedToken { foreign: foreign.clone(), expires_at, checked_at };
        server.foreign.insert(hash, Arc::new(verified));
        Ok(Some(self.admitted(foreign)))
    }

    async fn verified(
        &self,
        jwt: &Jwt,
        issuer: &IssuerOptions,
        resource: &Resource,
        now: SystemTime,
    ) -> Result<ForeignAccess, JwtFault> {
        let mut audiences = vec![resource.as_str()];
        audiences.extend(issuer.audience.as_deref());
        let check = |keys: &Keys| issuer.trusted.check(jwt.clone(), keys, &audiences, now);
        let source = KeySource::Issuer(issuer);
        self.server.check_with_keys(source, jwt.kid(), now, check).await
    }

    /// The account of an identity, by which its human signs in as well. Another daemon may have
    /// admitted the human just now.
    pub(super) async fn person(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<PrincipalId>, ControlError> {
        let found = self.store.proofs().find_identity(issuer, subject).await;
        let Some(human) = found.map_err(ControlError::Store)? else { return Ok(None) };
        if !self.control.access().accounts.contains_key(&human) {
            self.control.catch_up().await?;
        }
        Ok(Some(human))
    }

    /// Checks what can change while a token is valid, and its scopes.
    fn admitted(&self, foreign: Arc<DoorForeign>) -> Result<Arc<DoorForeign>, Refusal> {
        let table = self.control.access();
        let account = table.accounts.get(&foreign.human);
        if account.is_none_or(|account| account.disabled_at.is_some()) {
            return Err(NO_ACCOUNT);
        }
        match foreign.scopes.contains_all(&foreign.issuer.scopes) {
            true => Ok(foreign),
            false => Err(Refusal::MoreScopes),
        }
    }
}

/// The client of a token, if the issuer's settings admit it.
fn client_of(issuer: &IssuerOptions, access: &ForeignAccess) -> Option<ClientId> {
    let named = access.client_id.as_deref();
    let is_admitted = match &issuer.clients {
        Some(all) => all.iter().any(|one| Some(one.as_str()) == named),
        None => true,
    };
    ClientId::parse(named.unwrap_or(UNNAMED)).ok().filter(|_| is_admitted)
}

/// The words for a client whose token is refused. They say nothing of the token.
fn words(fault: JwtFault) -> &'static str {
    match fault {
        JwtFault::WrongAudience => "the access token is for another resource",
        JwtFault::Expired => "the access token has expired",
        JwtFault::TooEarly => "the access token is not valid yet",
        JwtFault::WrongType => "the token is no access token",
        JwtFault::NotKeys
        | JwtFault::Malformed
        | JwtFault::ForbiddenAlgorithm
        | JwtFault::UnknownKey
        | JwtFault::AmbiguousKey
        | JwtFault::BadSignature
        | JwtFault::WrongIssuer
        | JwtFault::WrongResource
        | JwtFault::WrongClient
        | JwtFault::TooLong
        | JwtFault::BadClaim(_) => "the access token cannot be verified",
    }
}
