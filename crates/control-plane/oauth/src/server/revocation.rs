//! Revocation of tokens by their clients (RFC 7009).

use narthex_model::Secret;

use super::{
    answer::OAuthError,
    client::Client,
    credentials::{Credentials, read_form, token_in},
    family::Family,
    grant::AccessRecord,
    token::FamilyId,
};
use crate::TokenHash;

/// A request for revocation. The client in it is not proved yet: see
/// [`Credentials::prove`].
#[derive(Debug, Clone)]
pub struct RevocationRequest {
    /// The client and its proof.
    pub credentials: Credentials,
    /// The token. The caller looks for an access token by its hash, and for a family by
    /// [`FamilyId::of_refresh_token`]; the client's hint about the kind is not needed.
    pub token: Secret,
}

/// The record of a token that the caller found.
#[derive(Debug, Clone, Copy)]
pub enum FoundToken<'f> {
    /// An access token.
    Access(&'f AccessRecord),
    /// The family of a refresh token.
    Family(&'f Family),
    /// None.
    Unknown,
}

/// The consequence of a revocation. The answer is [`Answer::empty`](super::Answer::empty) for all
/// of them, so that a client learns nothing about other clients' tokens (RFC 7009, 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// The family ends, with all its tokens.
    Family(FamilyId),
    /// This access token ends.
    Access(TokenHash),
    /// Nothing changes: the token is unknown, or belongs to another client.
    Nothing,
}

impl RevocationRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// `invalid_request` or `invalid_client`, by the first fault.
    pub fn read(
        authorization: Option<&str>,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<Self, OAuthError> {
        let form = read_form(content_type, body)?;
        let credentials = Credentials::read(authorization, &form)?;
        let token = token_in(&form)?;
        Ok(Self { credentials, token })
    }

    /// Decides about the token of a client that is proved. A refresh token ends its family, also if
    /// it is an old one.
    #[must_use]
    pub fn decide(&self, client: &Client, found: FoundToken<'_>) -> Revocation {
        let text = self.token.expose();
        match found {
            FoundToken::Access(record)
                if record.grant.client_id == client.id && record.hash.opens_for(text) =>
            {
                Revocation::Access(record.hash.clone())
            }
            FoundToken::Family(family)
                if family.grant.client_id == client.id
                    && FamilyId::of_refresh_token(text).as_ref() == Some(&family.id) =>
            {
                Revocation::Family(family.id.clone())
            }
            FoundToken::Access(_) | FoundToken::Family(_) | FoundToken::Unknown => {
                Revocation::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::answer::ErrorCode;
    use crate::server::{
        client::ClientId,
        family::NewRefresh,
        grant::NewAccess,
        sample::{CLIENT, grant, now, public_client},
    };

    fn request(token: &str) -> RevocationRequest {
        let body = format!("client_id={CLIENT}&token={token}&token_type_hint=refresh_token");
        let content_type = Some("application/x-www-form-urlencoded");
        RevocationRequest::read(None, content_type, body.as_bytes()).unwrap()
    }

    #[test]
    fn door_a13_clients_revoke_their_own_tokens() {
        let client = public_client();
        let NewAccess { token, record } = NewAccess::generate(grant(), None, now()).unwrap();
        let found = request(token.expose()).decide(&client, FoundToken::Access(&record));
        assert_eq!(found, Revocation::Access(record.hash));
        let NewRefresh { family, token } = Family::begin(grant(), true, now()).unwrap();
        let next = family.rotated(now()).unwrap().family;
        for family in [&family, &next] {
            let found = request(token.expose()).decide(&client, FoundToken::Family(family));
            assert_eq!(found, Revocation::Family(family.id.clone()));
        }
    }

    #[test]
    fn door_a13_other_tokens_stay() {
        let other = Client { id: ClientId::parse("dcr-other").unwrap(), ..public_client() };
        let NewAccess { token, record } = NewAccess::generate(grant(), None, now()).unwrap();
        let NewRefresh { family, .. } = Family::begin(grant(), true, now()).unwrap();
        let request = request(token.expose());
        for (client, found) in [
            (&other, FoundToken::Access(&record)),
            (&other, FoundToken::Family(&family)),
            (&public_client(), FoundToken::Family(&family)),
            (&public_client(), FoundToken::Unknown),
        ] {
            assert_eq!(request.decide(client, found), Revocation::Nothing, "{found:?}");
        }
        let error = RevocationRequest::read(None, None, b"").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
    }
}
