//! Revocation of tokens (RFC 7009).

use narthex_model::Secret;

use super::{
    Form, FormRequest, Refusal, Reply, TokenEndpoint, Tokens, token_endpoint::RequestFault,
    tokens::successful,
};

/// A token to be revoked.
#[derive(Debug, Clone)]
pub struct Revocation {
    token: Secret,
    hint: &'static str,
}

/// The outcome of a revocation. The caller deletes its own rows in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevocationOutcome {
    /// The token has no more effect.
    Revoked,
    /// The server cannot revoke tokens of this kind: they end by themselves.
    Unsupported,
    /// The server did not revoke the token; it may be asked again.
    Failed(Refusal),
}

impl Revocation {
    /// The revocations that end a grant: the refresh token first, which usually ends the access
    /// tokens too.
    #[must_use]
    pub fn of(tokens: &Tokens) -> Vec<Self> {
        let refresh = tokens.refresh_token.iter().map(|token| (token, "refresh_token"));
        let access = std::iter::once((&tokens.access_token, "access_token"));
        let revocation = |(token, hint): (&Secret, _)| Self { token: token.clone(), hint };
        refresh.chain(access).map(revocation).collect()
    }

    /// Reads the reply to [`TokenEndpoint::revoke`].
    #[must_use]
    pub fn read(reply: &Reply<'_>) -> RevocationOutcome {
        if reply.is_success() && reply.json().is_none() {
            // Usually without a body.
            return RevocationOutcome::Revoked;
        }
        match successful(reply) {
            Ok(_) => RevocationOutcome::Revoked,
            Err(refusal) => match refusal.code.as_str() {
                "unsupported_token_type" => RevocationOutcome::Unsupported,
                "invalid_token" | "invalid_grant" | "token_revoked" => RevocationOutcome::Revoked,
                _ => RevocationOutcome::Failed(refusal),
            },
        }
    }
}

impl TokenEndpoint<'_> {
    /// Revokes a token (RFC 7009, 2.1).
    ///
    /// # Errors
    /// When the server has no such endpoint, or the request cannot be made.
    pub fn revoke(&self, revocation: &Revocation) -> Result<FormRequest, RequestFault> {
        let mut form = Form::default();
        form.add("token", revocation.token.expose()).add("token_type_hint", revocation.hint);
        self.request("revocation_endpoint", self.metadata.revocation_endpoint.as_ref(), form)
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{
        client::{Asked, ClientIdentity, Failure, TokenGrant},
        metadata::ServerMetadata,
        scopes::Scopes,
    };

    #[test]
    fn oauth_c29_both_tokens_are_revoked() {
        let body = b"{\"access_token\":\"s3cret-a\",\"refresh_token\":\"s3cret-r\"}";
        let asked = Asked { grant: TokenGrant::Code, scopes: &Scopes::default(), now: 0 };
        let mut tokens = Tokens::read(&Reply::of(200, body), asked).unwrap();
        let metadata = ServerMetadata {
            revocation_endpoint: Url::parse("https://as.example/revoke").ok(),
            ..ServerMetadata::default()
        };
        let client = ClientIdentity::new("c", None, None);
        let endpoint =
            TokenEndpoint { metadata: &metadata, client: &client, resource: Some("r"), now: 0 };
        let revocations = Revocation::of(&tokens);
        assert!(!format!("{revocations:?}").contains("s3cret"));
        let forms: Vec<_> =
            revocations.iter().map(|one| endpoint.revoke(one).unwrap().form).collect();
        let forms: Vec<_> = forms.iter().map(Secret::expose).collect();
        assert_eq!(
            forms,
            [
                "token=s3cret-r&token_type_hint=refresh_token&client_id=c",
                "token=s3cret-a&token_type_hint=access_token&client_id=c",
            ]
        );
        tokens.refresh_token = None;
        assert_eq!(Revocation::of(&tokens).len(), 1);
        let none = ServerMetadata::default();
        let endpoint = TokenEndpoint { metadata: &none, ..endpoint };
        assert!(endpoint.revoke(&revocations[0]).is_err());
    }

    #[test]
    fn oauth_c29_an_unknown_token_counts_as_revoked() {
        let read = |status, body: &str| Revocation::read(&Reply::of(status, body.as_bytes()));
        for (status, body) in
            [(200, ""), (204, ""), (200, "{}"), (400, "{\"error\":\"invalid_token\"}")]
        {
            assert_eq!(read(status, body), RevocationOutcome::Revoked, "{status} {body}");
        }
        let unsupported = read(400, "{\"error\":\"unsupported_token_type\"}");
        assert_eq!(unsupported, RevocationOutcome::Unsupported);
        for (status, body, class) in [
            (503, "", Failure::Unavailable),
            (401, "{\"error\":\"invalid_client\"}", Failure::ClientUnknown),
            (200, "{\"ok\":false,\"error\":\"invalid_client_id\"}", Failure::ClientUnknown),
        ] {
            let RevocationOutcome::Failed(refusal) = read(status, body) else { panic!("{body}") };
            assert_eq!(refusal.failure, class, "{body}");
        }
    }
}
