//! Requests for tokens (RFC 6749, 4.1.3, 4.4 and 6; RFC 7523; RFC 8693), as they are sent.

use narthex_model::Secret;

use super::{
    answer::{ErrorCode, OAuthError},
    authorize::named_resource,
    credentials::{Credentials, read_form},
    door::{Door, Resource},
    params::Params,
};
use crate::{
    scopes::Scopes,
    urns::{ACCESS_TOKEN, ID_JAG, JWT_BEARER, TOKEN_EXCHANGE},
};

/// A request for tokens. The client in it is not proved yet: see [`Credentials::prove`].
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// The client and its proof.
    pub credentials: Credentials,
    /// The grant that the client has.
    pub grant: GrantRequest,
}

/// The grant of a request.
#[derive(Debug, Clone)]
pub enum GrantRequest {
    /// An authorization code.
    Code(CodeRequest),
    /// A refresh token.
    Refresh(RefreshRequest),
    /// The assertion of an identity provider.
    Assertion(AssertionRequest),
    /// The client's own proof alone.
    Service(ServiceRequest),
}

/// A request with an authorization code.
#[derive(Debug, Clone)]
pub struct CodeRequest {
    /// The code, by the hash of which the caller finds its record.
    pub code: Secret,
    /// The verifier of the client's challenge.
    pub verifier: Secret,
    /// The redirect URI of the authorization request; `None` if it is not repeated, as OAuth 2.1
    /// allows.
    pub redirect_uri: Option<String>,
    /// The named resource.
    pub resource: Option<Resource>,
}

/// A request with a refresh token.
#[derive(Debug, Clone)]
pub struct RefreshRequest {
    /// The refresh token.
    pub token: Secret,
    /// The scopes; `None` for all that were given.
    pub scopes: Option<Scopes>,
    /// The named resource.
    pub resource: Option<Resource>,
}

/// A request of a service in its own name.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// The scopes; `None` for all that the client may get.
    pub scopes: Option<Scopes>,
    /// The named resource.
    pub resource: Option<Resource>,
}

/// A request with an assertion.
#[derive(Debug, Clone)]
pub struct AssertionRequest {
    /// The assertion.
    pub assertion: Secret,
    /// The way in which it came, which decides about the form of the answer.
    pub way: AssertionWay,
    /// The scopes; `None` for all that the assertion allows.
    pub scopes: Option<Scopes>,
    /// The named resource.
    pub resource: Option<Resource>,
}

/// The way in which an assertion comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssertionWay {
    /// As a grant of its own (RFC 7523).
    JwtBearer,
    /// As the subject of a token exchange (RFC 8693).
    TokenExchange,
}

impl TokenRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// `invalid_request`, `invalid_client`, `invalid_scope`, `invalid_target` or
    /// `unsupported_grant_type`, by the first fault.
    pub fn read(
        authorization: Option<&str>,
        content_type: Option<&str>,
        body: &[u8],
        door: &Door,
    ) -> Result<Self, OAuthError> {
        let form = read_form(content_type, body)?;
        let credentials = Credentials::read(authorization, &form)?;
        let resource = named_resource(&form, door)?;
        let grant = match required(&form, "grant_type")? {
            "authorization_code" => GrantRequest::Code(CodeRequest {
                code: Secret::new(required(&form, "code")?),
                verifier: Secret::new(required(&form, "code_verifier")?),
                redirect_uri: form.get("redirect_uri").map(str::to_owned),
                resource,
            }),
            "refresh_token" => GrantRequest::Refresh(RefreshRequest {
                token: Secret::new(required(&form, "refresh_token")?),
                scopes: scopes(&form)?,
                resource,
            }),
            "client_credentials" => {
                GrantRequest::Service(ServiceRequest { scopes: scopes(&form)?, resource })
            }
            JWT_BEARER => GrantRequest::Assertion(AssertionRequest {
                assertion: Secret::new(required(&form, "assertion")?),
                way: AssertionWay::JwtBearer,
                scopes: scopes(&form)?,
                resource,
            }),
            TOKEN_EXCHANGE => GrantRequest::Assertion(exchange(&form, resource, door)?),
            _ => {
                let text = "the grant_type is not supported";
                return Err(OAuthError::new(ErrorCode::UnsupportedGrantType, text));
            }
        };
        Ok(Self { credentials, grant })
    }
}

fn refuse(description: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidRequest, description)
}

/// Reads a token exchange for an access token of this server.
fn exchange(
    form: &Params,
    resource: Option<Resource>,
    door: &Door,
) -> Result<AssertionRequest, OAuthError> {
    if required(form, "subject_token_type")? != ID_JAG {
        return Err(refuse("the subject_token_type is not supported"));
    }
    if form.get("requested_token_type").is_some_and(|kind| kind != ACCESS_TOKEN) {
        return Err(refuse("the requested_token_type is not supported"));
    }
    if form.get("actor_token").is_some() {
        return Err(refuse("the parameter actor_token is not supported"));
    }
    if form.all("audience").any(|audience| audience != door.issuer()) {
        let text = "the audience is not this server";
        return Err(OAuthError::new(ErrorCode::InvalidTarget, text));
    }
    Ok(AssertionRequest {
        assertion: Secret::new(required(form, "subject_token")?),
        way: AssertionWay::TokenExchange,
        scopes: scopes(form)?,
        resource,
    })
}

/// The value of a parameter that must be there.
fn required<'f>(form: &'f Params, name: &'static str) -> Result<&'f str, OAuthError> {
    form.get(name).ok_or_else(|| {
        refuse(match name {
            "grant_type" => "the grant_type is missing",
            "code" => "the code is missing",
            "code_verifier" => "the code_verifier is missing",
            "refresh_token" => "the refresh_token is missing",
            "assertion" => "the assertion is missing",
            "subject_token" => "the subject_token is missing",
            "subject_token_type" => "the subject_token_type is missing",
            _ => "a parameter is missing",
        })
    })
}

fn scopes(form: &Params) -> Result<Option<Scopes>, OAuthError> {
    let scopes = form.get("scope").map(Scopes::read).transpose();
    let malformed = OAuthError::new(ErrorCode::InvalidScope, "the scope is malformed");
    // A text of blanks names no scopes, as if it were missing.
    scopes.map(|scopes| scopes.filter(|scopes| !scopes.is_empty())).map_err(|_error| malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::sample::{CLIENT, VERIFIER, door};

    fn read(form: &str) -> Result<TokenRequest, OAuthError> {
        let body = format!("client_id={CLIENT}&{form}");
        let content_type = Some("application/x-www-form-urlencoded");
        TokenRequest::read(None, content_type, body.as_bytes(), &door())
    }

    #[test]
    fn door_a8_each_grant_is_read() {
        let code = format!("grant_type=authorization_code&code=nxd_1&code_verifier={VERIFIER}");
        let GrantRequest::Code(found) = read(&code).unwrap().grant else { panic!("a code") };
        assert_eq!((found.code.expose(), found.redirect_uri), ("nxd_1", None));
        let refresh = "grant_type=refresh_token&refresh_token=nxr_1&scope=mcp\
                       &resource=https://narthex.example/mcp";
        let GrantRequest::Refresh(found) = read(refresh).unwrap().grant else { panic!("a token") };
        assert_eq!(found.scopes.unwrap().to_string(), "mcp");
        assert_eq!(found.resource, Some(door().aggregated()));
        assert!(!format!("{:?}", read(refresh).unwrap()).contains("nxr_1"));
        let blank = "grant_type=refresh_token&refresh_token=nxr_1&scope=+";
        let GrantRequest::Refresh(found) = read(blank).unwrap().grant else { panic!("a token") };
        assert_eq!(found.scopes, None);
        let service = "grant_type=client_credentials&scope=mcp";
        let GrantRequest::Service(found) = read(service).unwrap().grant else { panic!("none") };
        assert_eq!((found.scopes.unwrap().to_string().as_str(), found.resource), ("mcp", None));
    }

    #[test]
    fn door_a11_assertions_come_in_two_ways() {
        let way = |form: String| match read(&form).map(|request| request.grant) {
            Ok(GrantRequest::Assertion(found)) => Ok(found.way),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.code),
        };
        let bearer = format!("grant_type={JWT_BEARER}&assertion=a.b.c");
        assert_eq!(way(bearer), Ok(AssertionWay::JwtBearer));
        let exchange =
            format!("grant_type={TOKEN_EXCHANGE}&subject_token=a.b.c&subject_token_type={ID_JAG}");
        assert_eq!(way(exchange.clone()), Ok(AssertionWay::TokenExchange));
        let good = format!("&requested_token_type={ACCESS_TOKEN}&audience={}", door().issuer());
        assert_eq!(way(exchange.clone() + &good), Ok(AssertionWay::TokenExchange));
        for (more, code) in [
            ("&requested_token_type=urn:x", ErrorCode::InvalidRequest),
            ("&actor_token=x", ErrorCode::InvalidRequest),
            ("&audience=https://evil.example", ErrorCode::InvalidTarget),
        ] {
            assert_eq!(way(exchange.clone() + more), Err(code), "{more}");
        }
        let other = exchange.replace(ID_JAG, "urn:ietf:params:oauth:token-type:id_token");
        assert_eq!(way(other), Err(ErrorCode::InvalidRequest));
    }

    #[test]
    fn door_a8_faults_have_their_codes() {
        use ErrorCode::{InvalidRequest, InvalidScope, InvalidTarget, UnsupportedGrantType};
        for (form, code) in [
            ("", InvalidRequest),
            ("grant_type=password&username=a&password=b", UnsupportedGrantType),
            ("grant_type=client_credentials&scope=%22", InvalidScope),
            ("grant_type=authorization_code&code=nxd_1", InvalidRequest),
            ("grant_type=authorization_code&code_verifier=a", InvalidRequest),
            ("grant_type=refresh_token", InvalidRequest),
            ("grant_type=refresh_token&refresh_token=a&scope=%22", InvalidScope),
            ("grant_type=refresh_token&refresh_token=a&resource=https://a.example/", InvalidTarget),
        ] {
            assert_eq!(read(form).unwrap_err().code, code, "{form}");
        }
    }
}
