//! The token endpoint and the revocation endpoint.
//!
//! The decisions are those of `oauth`. This stores each together with the check that nothing
//! changed since the records were read; otherwise it reads and decides again.

use std::{sync::Arc, time::SystemTime};

use narthex_audit::kind;
use narthex_model::McpClientId;
use narthex_oauth::{
    TokenHash,
    server::{
        AccessRecord, Answer, Client, ClientProof, CodeRecord, Credentials, DocumentUse, ErrorCode,
        Family, FamilyId, FoundToken, GrantRequest, Issue, OAuthError, Outcome, Revocation,
        RevocationRequest, StoredTime, TokenRequest, UsedAssertion, redeem_code, refresh,
    },
};
use narthex_store::{DoorFamilyRow, DoorTokenRow, DoorTokens, Store, UsedCode, UsedProof};

use super::{
    DoorDesk,
    answers::{DoorAnswer, DoorForm, DoorToken},
    clients::ClientFault,
    documents::{read, text_of},
};
use crate::{Control, ControlError, KnownClient, access::of_client};

/// Number of attempts at a decision whose records other requests change meanwhile.
const ATTEMPTS: usize = 5;

/// A record of the store with the client that it belongs to.
#[derive(Debug)]
struct Found<T> {
    record: T,
    connection: McpClientId,
}

impl DoorDesk<'_> {
    /// Gives tokens for a code or a refresh token, and checks an assertion.
    ///
    /// # Errors
    /// When the store fails. Refusals are answers.
    pub async fn token(&self, form: DoorForm<'_>) -> Result<DoorToken, ControlError> {
        let server = self.server;
        let DoorForm { authorization, content_type, body } = form;
        let request = match TokenRequest::read(authorization, content_type, body, server.door()) {
            Ok(request) => request,
            Err(error) => return Ok(error.into()),
        };
        let client = match self.proved(&request.credentials).await? {
            Ok(client) => client,
            Err(error) => return Ok(error.into()),
        };
        let grant = match request.grant {
            GrantRequest::Assertion(asked) => return self.asserted(asked, client).await,
            grant => grant,
        };
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.decided(&grant, &client).await? {
                return Ok(DoorToken::Answered(done));
            }
        }
        Ok(DoorToken::Answered(DoorAnswer::busy()))
    }

    /// Revokes a token of a program (RFC 7009).
    ///
    /// # Errors
    /// When the store fails. Refusals are answers.
    pub async fn revoke(&self, form: DoorForm<'_>) -> Result<DoorAnswer, ControlError> {
        let DoorForm { authorization, content_type, body } = form;
        let request = match RevocationRequest::read(authorization, content_type, body) {
            Ok(request) => request,
            Err(error) => return Ok(error.into()),
        };
        let client = match self.proved(&request.credentials).await? {
            Ok(client) => client,
            Err(error) => return Ok(error.into()),
        };
        let text = request.token.expose();
        let family = match FamilyId::of_refresh_token(text) {
            Some(id) => self.found_family(&id).await?,
            None => None,
        };
        let access = self.found_access(&TokenHash::of(text)).await?;
        let found = match (&family, &access) {
            (Some(family), _) => FoundToken::Family(&family.record),
            (None, Some(access)) => FoundToken::Access(&access.record),
            (None, None) => FoundToken::Unknown,
        };
        let decided = request.decide(&client, found);
        let connection = family.map(|one| one.connection).or(access.map(|one| one.connection));
        let ended = match (decided, connection) {
            (Revocation::Family(id), Some(of)) => self.end_family(&id, &of, None).await?,
            (Revocation::Access(hash), Some(of)) => {
                let revoking = async move |_this: Control, store: Store| {
                    let revoked = store.door_tokens().revoke(hash.as_str()).await;
                    revoked.map_err(ControlError::Store)
                };
                let is_revoked = self.control.change_access(revoking).await?;
                // A stream that was opened with the token may be a thief's.
                self.control.access().clients.get(&of).cloned().filter(|_| is_revoked)
            }
            (Revocation::Nothing, _) | (_, None) => None,
        };
        Ok(DoorAnswer { answer: Answer::empty(), ended })
    }

    /// The time at which a family of a client's tokens was revoked last, within the last hour.
    #[must_use]
    pub fn family_end(&self, client: &McpClientId) -> Option<SystemTime> {
        self.control.access().family_ends.get(client).copied()
    }

    /// The program of a request, if it proves itself.
    pub(super) async fn proved(
        &self,
        credentials: &Credentials,
    ) -> Result<Result<Client, OAuthError>, ControlError> {
        let found = self.client(credentials.client_id(), DocumentUse::RunningLogin).await;
        let client = match found {
            Ok(client) => client,
            Err(ClientFault::Document(error)) => {
                tracing::info!(client.id = credentials.client_id().as_str(), "{error}");
                None
            }
            Err(ClientFault::Control(error)) => return Err(error),
        };
        let with_keys = client.as_ref().and_then(|client| match &client.proof {
            ClientProof::Keys(keys) => Some((client, keys)),
            ClientProof::Public | ClientProof::Secret(_) => None,
        });
        match with_keys {
            Some((client, keys)) => self.proved_by_key(credentials, client, keys).await,
            None => Ok(credentials.prove(client.as_ref()).cloned()),
        }
    }

    /// Decides about a request, and stores the outcome. `None` if another request was faster.
    async fn decided(
        &self,
        grant: &GrantRequest,
        client: &Client,
    ) -> Result<Option<DoorAnswer>, ControlError> {
        let now = SystemTime::now();
        let (outcome, connection) = match grant {
            GrantRequest::Code(request) => {
                let hash = TokenHash::of(request.code.expose());
                let row = self.tokens().code(hash.as_str()).await.map_err(ControlError::Store)?;
                let (record, connection) = match row {
                    Some(row) => (Some(read::<CodeRecord>(&row.document)?), Some(row.connection)),
                    None => (None, None),
                };
                (redeem_code(request, client, record.as_ref(), now), connection)
            }
            GrantRequest::Refresh(request) => {
                let found = match FamilyId::of_refresh_token(request.token.expose()) {
                    Some(id) => self.found_family(&id).await?,
                    None => None,
                };
                let family = found.as_ref().map(|found| &found.record);
                let outcome = refresh(request, client, family, now);
                (outcome, found.map(|found| found.connection))
            }
            GrantRequest::Assertion(_) | GrantRequest::Service(_) => {
                let text = "the grant_type is not supported";
                return Ok(Some(OAuthError::new(ErrorCode::UnsupportedGrantType, text).into()));
            }
        };
        let Some(connection) = connection else {
            return Ok(Some(DoorAnswer::plain(outcome.answer())));
        };
        if !self.is_connected(&connection).await? {
            let text = "the access of this client was revoked";
            return Ok(Some(OAuthError::new(ErrorCode::InvalidGrant, text).into()));
        }
        self.store_outcome(outcome, &connection, client).await
    }

    /// Stores an outcome. `None` if another request was faster.
    pub(super) async fn store_outcome(
        &self,
        outcome: Outcome,
        connection: &McpClientId,
        client: &Client,
    ) -> Result<Option<DoorAnswer>, ControlError> {
        let tokens = self.tokens();
        let answer = outcome.answer();
        let is_stored = match outcome {
            Outcome::Issue(issue) => {
                let is_stored = issued(tokens, *issue, connection).await?;
                let used = self.store.door().client_used(client.id.as_str()).await;
                used.map_err(ControlError::Store)?;
                is_stored
            }
            Outcome::GraceAccessOnly { access, .. } => {
                let added = tokens.add(&token_row(&access, connection)).await;
                added.map_err(ControlError::Store)?
            }
            Outcome::ReuseRevokesFamily { family, .. } => {
                let ended = self.end_family(&family, connection, Some(client)).await?;
                return Ok(Some(DoorAnswer { answer, ended }));
            }
            Outcome::SpendCode { code, .. } => {
                let document = text_of(&code);
                let used = UsedCode { hash: code.hash.as_str(), document: &document };
                tokens.spend_code(used).await.map_err(ControlError::Store)?
            }
            Outcome::Refuse(_) => true,
        };
        Ok(is_stored.then(|| DoorAnswer::plain(answer)))
    }

    /// True if the client of a consent may still act. Another daemon may have registered it now.
    async fn is_connected(&self, connection: &McpClientId) -> Result<bool, ControlError> {
        if !self.control.access().clients.contains_key(connection) {
            self.control.catch_up().await?;
        }
        let table = self.control.access();
        let now = SystemTime::now();
        Ok(table.clients.get(connection).is_some_and(|client| client.is_live(now)))
    }

    /// Revokes a family. `reused_by` is the program that showed a token of it again. Returns the
    /// client whose run has to end, unless the family was revoked before.
    async fn end_family(
        &self,
        id: &FamilyId,
        connection: &McpClientId,
        reused_by: Option<&Client>,
    ) -> Result<Option<Arc<KnownClient>>, ControlError> {
        let family = self.tokens().family(id.as_str()).await.map_err(ControlError::Store)?;
        if family.is_none_or(|family| family.revoked_at.is_some()) {
            return Ok(None);
        }
        let known = self.control.access().clients.get(connection).cloned();
        let event = known.as_ref().filter(|_| reused_by.is_some()).map(|known| {
            let by = known.account.actor();
            of_client(kind::CLIENT_TOKEN_REUSED, &known.row.workspace, &known.row.id, by)
        });
        let id = id.as_str().to_owned();
        let revoking = async move |this: Control, store: Store| {
            let noted = match event {
                Some(event) => Some(this.note(event).await?),
                None => None,
            };
            let revoked = store.door_tokens().revoke_family(&id).await;
            let is_revoked = revoked.map_err(ControlError::Store)?;
            if let Some(noted) = noted {
                noted.done().await;
            }
            Ok(is_revoked)
        };
        let is_revoked = self.control.change_access(revoking).await?;
        if let Some(client) = reused_by.filter(|_| is_revoked) {
            tracing::warn!(
                client.id = %connection, program = client.id.as_str(),
                "a token was used twice, so all tokens of this sign-in are revoked"
            );
        }
        Ok(known.filter(|_| is_revoked))
    }

    async fn found_family(&self, id: &FamilyId) -> Result<Option<Found<Family>>, ControlError> {
        let row = self.tokens().family(id.as_str()).await.map_err(ControlError::Store)?;
        let Some(row) = row else { return Ok(None) };
        let family: Family = read(&row.document)?;
        let record = match row.revoked_at {
            Some(at) => family.revoked(at),
            None => family,
        };
        Ok(Some(Found { record, connection: row.connection }))
    }

    async fn found_access(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<Found<AccessRecord>>, ControlError> {
        let row = self.tokens().token(hash.as_str()).await.map_err(ControlError::Store)?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Found { record: read(&row.document)?, connection: row.connection }))
    }

    fn tokens(&self) -> DoorTokens<'_> {
        self.store.door_tokens()
    }
}

/// Stores issued tokens. Returns `false` if another request was faster.
async fn issued(
    tokens: DoorTokens<'_>,
    issue: Issue,
    connection: &McpClientId,
) -> Result<bool, ControlError> {
    let Issue { access, family, code, assertion, answer: _ } = issue;
    let token = token_row(&access, connection);
    let family = family.map(|family| DoorFamilyRow {
        id: family.id.as_str().to_owned(),
        connection: connection.clone(),
        generation: i64::try_from(family.generation).unwrap_or(i64::MAX),
        document: text_of(&family),
        expires_at: time_of(family.expires_at),
        revoked_at: None,
    });
    let stored = match (code, family) {
        (Some(code), Some(family)) => {
            let document = text_of(&code);
            let used = UsedCode { hash: code.hash.as_str(), document: &document };
            tokens.redeem(used, &family, &token).await
        }
        (None, Some(family)) => tokens.rotate(&family, &token).await,
        (_, None) => match assertion {
            Some(used) => {
                let hash = hash_of(&used);
                let proof = UsedProof { hash: hash.as_str(), forget_at: time_of(used.forget_at) };
                tokens.add_once(proof, &token).await
            }
            None => tokens.add(&token).await,
        },
    };
    stored.map_err(ControlError::Store)
}

/// The stored form of the id of an assertion. No issuer has a space.
fn hash_of(used: &UsedAssertion) -> TokenHash {
    TokenHash::for_purpose("assertion", &format!("{} {}", used.issuer, used.jti))
}

fn token_row(access: &AccessRecord, connection: &McpClientId) -> DoorTokenRow {
    DoorTokenRow {
        hash: access.hash.as_str().to_owned(),
        connection: connection.clone(),
        family: access.family.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        document: text_of(access),
        expires_at: time_of(access.expires_at),
    }
}

pub(super) fn time_of(time: StoredTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(time.seconds())
}
