//! Exchange of tokens (RFC 8693): for an identity assertion (ID-JAG) of a company's provider, or
//! for a token in the name of a person.

use narthex_model::Secret;
use serde_json::Value;

use super::{
    Asked, Form, FormRequest, Refusal, Reply, TokenEndpoint, Tokens, token_endpoint::RequestFault,
    tokens::successful,
};
use crate::{
    scopes::Scopes,
    urns::{ACCESS_TOKEN, ID_JAG, JWT, TOKEN_EXCHANGE},
};

/// The type of a token that is sent with no request (RFC 8693, 2.2.1).
const NO_ACCESS_TOKEN: &str = "N_A";

/// A token that proves a person or a service, with its type.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The token.
    pub token: Secret,
    /// Its type, such as [`ID_TOKEN`](crate::urns::ID_TOKEN).
    pub token_type: &'static str,
}

/// A request for an exchange.
#[derive(Debug, Clone)]
pub struct TokenExchange<'a> {
    /// The person in whose name the token is.
    pub subject: &'a Subject,
    /// The service that acts for the person, if it is named.
    pub actor: Option<&'a Subject>,
    /// The requested type; `None`: the server chooses.
    pub requested_type: Option<&'static str>,
    /// The service that the token is for. For an ID-JAG: the issuer of its authorization server.
    pub audience: Option<&'a str>,
    /// The scopes.
    pub scopes: &'a Scopes,
}

impl<'a> TokenExchange<'a> {
    /// A request for an ID-JAG, which the authorization server `audience` redeems with
    /// [`TokenEndpoint::assertion`]. It is sent to the company's provider, with the MCP server as
    /// `resource`.
    #[must_use]
    pub fn id_jag(subject: &'a Subject, audience: &'a str, scopes: &'a Scopes) -> Self {
        let (requested_type, audience) = (Some(ID_JAG), Some(audience));
        Self { subject, actor: None, requested_type, audience, scopes }
    }
}

impl TokenEndpoint<'_> {
    /// Exchanges a token (RFC 8693, 2.1).
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn exchange(&self, exchange: &TokenExchange<'_>) -> Result<FormRequest, RequestFault> {
        let TokenExchange { subject, actor, requested_type, audience, scopes } = exchange;
        let mut form = Form::of(TOKEN_EXCHANGE);
        form.add("subject_token", subject.token.expose())
            .add("subject_token_type", subject.token_type)
            .add_some("requested_token_type", *requested_type)
            .add_some("audience", *audience);
        if let Some(actor) = actor {
            form.add("actor_token", actor.token.expose()).add("actor_token_type", actor.token_type);
        }
        self.token_request(self.with_scopes_and_resource(form, Some(scopes)))
    }
}

/// Reads the token of a service in the reply to an exchange (RFC 8693, 2.2).
///
/// # Errors
/// When the server refused, or gave a token of another type.
pub fn read_exchanged(reply: &Reply<'_>, asked: Asked<'_>) -> Result<Tokens, Refusal> {
    let members = successful(reply)?;
    match members.get("issued_token_type").map(Value::as_str) {
        // Some servers leave the type out.
        None | Some(Some(ACCESS_TOKEN | JWT)) => Tokens::read(reply, asked),
        Some(_) => Err(Refusal::unusable(reply, "it gives no access token")),
    }
}

/// Reads the ID-JAG in the reply to an exchange. The reply to another exchange is read by
/// [`read_exchanged`].
///
/// # Errors
/// When the server refused, or gave a token of another type.
pub fn read_id_jag(reply: &Reply<'_>) -> Result<Secret, Refusal> {
    let members = successful(reply)?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let is_jwt = |token: &&str| {
        token.split('.').count() == 3 && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let is_assertion = text("issued_token_type") == Some(ID_JAG)
        && text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case(NO_ACCESS_TOKEN));
    let token = text("access_token").filter(is_jwt).filter(|_| is_assertion);
    token.map(Secret::new).ok_or_else(|| Refusal::unusable(reply, "it gives no ID-JAG"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use url::Url;

    use super::*;
    use crate::{
        client::{ClientIdentity, Failure, TokenGrant},
        metadata::ServerMetadata,
        urns::ID_TOKEN,
    };

    fn sent(exchange: &TokenExchange<'_>, resource: Option<&str>) -> String {
        let metadata = ServerMetadata {
            token_endpoint: Url::parse("https://idp.example/token").ok(),
            ..ServerMetadata::default()
        };
        let client = ClientIdentity::new("c", None, None);
        let endpoint = TokenEndpoint { metadata: &metadata, client: &client, resource, now: 0 };
        let request = endpoint.exchange(exchange).unwrap();
        request.form.expose().replace("urn%3Aietf%3Aparams%3Aoauth%3A", "urn:")
    }

    fn subject() -> Subject {
        Subject { token: Secret::new("s3cret"), token_type: ID_TOKEN }
    }

    #[test]
    fn oauth_c31_an_id_jag_is_requested_for_the_authorization_server() {
        let (subject, scopes) = (subject(), Scopes::parse("a"));
        let exchange = TokenExchange::id_jag(&subject, "https://as.example", &scopes);
        assert_eq!(
            sent(&exchange, Some("https://mcp.example")),
            "grant_type=urn:grant-type%3Atoken-exchange&subject_token=s3cret\
             &subject_token_type=urn:token-type%3Aid_token\
             &requested_token_type=urn:token-type%3Aid-jag&audience=https%3A%2F%2Fas.example\
             &scope=a&resource=https%3A%2F%2Fmcp.example&client_id=c"
        );
        assert!(!format!("{exchange:?}").contains("s3cret"));
    }

    #[test]
    fn oauth_c31_only_an_id_jag_is_taken() {
        let read =
            |status, body: Value| read_id_jag(&Reply::of(status, body.to_string().as_bytes()));
        let good =
            json!({"access_token": "a.b.c", "issued_token_type": ID_JAG, "token_type": "N_A"});
        assert_eq!(read(200, good).unwrap().expose(), "a.b.c");
        for wrong in [
            json!({"access_token": "a.b.c"}),
            json!({"access_token": "a.b.c", "issued_token_type": ID_JAG}),
            json!({"access_token": "a.b.c", "issued_token_type": ID_JAG, "token_type": "Bearer"}),
            json!({"access_token": "a.b.c", "issued_token_type": ACCESS_TOKEN,
                   "token_type": "N_A"}),
            json!({"access_token": "opaque", "issued_token_type": ID_JAG, "token_type": "N_A"}),
            json!({"access_token": "a.b.\n", "issued_token_type": ID_JAG, "token_type": "N_A"}),
            json!({"issued_token_type": ID_JAG, "token_type": "N_A"}),
        ] {
            assert_eq!(read(200, wrong).unwrap_err().code, "it gives no ID-JAG");
        }
        let refused = read(400, json!({"error": "invalid_grant"})).unwrap_err();
        assert_eq!(refused.failure, Failure::GrantEnded);
    }

    #[test]
    fn oauth_c32_only_a_token_of_a_service_is_taken() {
        let scopes = Scopes::default();
        let read = |body: Value| {
            let asked = Asked { grant: TokenGrant::Assertion, scopes: &scopes, now: 0 };
            read_exchanged(&Reply::of(200, body.to_string().as_bytes()), asked)
        };
        for good in [
            json!({"access_token": "a"}),
            json!({"access_token": "a", "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer"}),
            json!({"access_token": "a", "issued_token_type": JWT, "token_type": "Bearer"}),
        ] {
            assert_eq!(read(good).unwrap().access_token.expose(), "a");
        }
        for wrong in [ID_JAG, ID_TOKEN, ""] {
            let wrong = json!({"access_token": "a", "issued_token_type": wrong});
            assert_eq!(read(wrong).unwrap_err().code, "it gives no access token");
        }
    }

    #[test]
    fn oauth_c32_a_token_in_the_name_of_a_person_is_requested() {
        let (subject, scopes) = (subject(), Scopes::default());
        let actor = Subject { token: Secret::new("me"), token_type: ACCESS_TOKEN };
        let exchange = TokenExchange {
            subject: &subject,
            actor: Some(&actor),
            requested_type: Some(ACCESS_TOKEN),
            audience: None,
            scopes: &scopes,
        };
        assert_eq!(
            sent(&exchange, None),
            "grant_type=urn:grant-type%3Atoken-exchange&subject_token=s3cret\
             &subject_token_type=urn:token-type%3Aid_token\
             &requested_token_type=urn:token-type%3Aaccess_token&actor_token=me\
             &actor_token_type=urn:token-type%3Aaccess_token&client_id=c"
        );
    }
}
