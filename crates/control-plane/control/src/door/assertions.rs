//! Assertions of the company's own issuers (ID-JAG), for which programs get short access tokens.

use std::{sync::OnceLock, time::SystemTime};

use narthex_oauth::{
    jwt::{Jwt, JwtFault, Keys},
    server::{
        ASSERTION_USED, Account, AssertionIssuer, AssertionRequest, Client, ErrorCode, IssueRules,
        OAuthError, admit_assertions_of, check_assertion,
    },
};

use super::{
    DoorDesk,
    answers::{DoorAnswer, DoorAsserted, DoorToken},
    foreign_token::DoorForeign,
    key_source::KeySource,
};
use crate::{ControlError, KnownClient};

impl DoorDesk<'_> {
    /// Checks the assertion of a proved client, and finds its person. The assertion stays unused
    /// until its token is stored, so that a request that fails does not burn it.
    pub(super) async fn asserted(
        &self,
        request: AssertionRequest,
        client: Client,
    ) -> Result<DoorToken, ControlError> {
        let (server, now) = (self.server, SystemTime::now());
        if server.options.issuers.is_empty() {
            let text = "the grant_type is not supported";
            return Ok(OAuthError::new(ErrorCode::UnsupportedGrantType, text).into());
        }
        if let Err(error) = admit_assertions_of(&client) {
            return Ok(error.into());
        }
        let jwt = match Jwt::parse(request.assertion.expose()) {
            Ok(jwt) => jwt,
            Err(fault) => return Ok(OAuthError::from(fault).into()),
        };
        let Some(issuer) = server.issuer_of(&jwt) else {
            return Ok(OAuthError::from(JwtFault::WrongIssuer).into());
        };
        let (door, named) = (server.door(), request.resource.as_ref());
        let check = |keys: &Keys| {
            let by = AssertionIssuer { issuer: &issuer.trusted, keys };
            check_assertion(jwt.clone(), by, &client, door, named, now)
        };
        let source = KeySource::Issuer(issuer);
        let checked = match server.check_with_keys(source, jwt.kid(), now, check).await {
            Ok(checked) => checked,
            Err(fault) => {
                tracing::info!(issuer = issuer.name, "an assertion is refused: {fault}");
                return Ok(OAuthError::from(fault).into());
            }
        };
        let Some(human) = self.person(&checked.issuer, &checked.subject).await? else {
            let text = "the person of the assertion has no account here; they sign in once in a \
                        browser";
            return Ok(OAuthError::new(ErrorCode::InvalidGrant, text).into());
        };
        let scopes = checked.scopes().unwrap_or(server.scopes()).clone();
        let foreign = DoorForeign {
            place: format!("assertion of {}", checked.issuer),
            issuer: issuer.clone(),
            human,
            client_id: client.id.clone(),
            resource: checked.resource.clone(),
            scopes,
            connection: OnceLock::new(),
        };
        Ok(DoorToken::Asserted(Box::new(DoorAsserted { foreign, checked, request, client })))
    }

    /// Gives an access token for an assertion to the client that was let in for it, and uses the
    /// assertion up.
    ///
    /// # Errors
    /// When the store fails. Refusals are answers.
    pub async fn issue(
        &self,
        asserted: DoorAsserted,
        known: &KnownClient,
    ) -> Result<DoorAnswer, ControlError> {
        let DoorAsserted { foreign, checked, request, client } = asserted;
        let account = Account {
            user: foreign.human,
            workspace: known.row.workspace.as_str().to_owned(),
            agent: known.row.agent.clone(),
        };
        let rules = IssueRules { client: &client, scopes: self.server.scopes() };
        let now = SystemTime::now();
        let outcome = checked.redeem(&request, rules, account, now);
        let done = self.store_outcome(outcome, &known.row.id, &client).await?;
        // The token of an assertion is stored unless the assertion was used before.
        Ok(done.unwrap_or_else(|| ASSERTION_USED.into()))
    }
}
