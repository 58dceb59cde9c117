//! The forms that clients send to the token, revocation and introspection endpoints, and the proof
//! of the client in them (RFC 6749, 2.3).

use base64::{Engine, engine::general_purpose::STANDARD};
use narthex_model::Secret;
use percent_encoding::percent_decode_str;

use super::{
    answer::{ErrorCode, OAuthError},
    client::{Client, ClientId, ClientProof},
    params::Params,
};
use crate::{jwt::Jwt, urns::JWT_BEARER_ASSERTION};

/// The client that a request names, and its proof.
#[derive(Debug, Clone)]
pub struct Credentials {
    client_id: ClientId,
    /// The readings of the secret. Empty without one.
    secrets: Vec<Secret>,
    /// The assertion of a client with keys.
    assertion: Option<Jwt>,
}

/// The content of a header `Authorization: Basic`.
struct Basic {
    id: String,
    secrets: Vec<Secret>,
}

const fn invalid(description: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidClient, description)
}

/// Reads a form.
///
/// # Errors
/// `invalid_request`, when the body is no form, is too large, or repeats a parameter.
pub(super) fn read_form(content_type: Option<&str>, body: &[u8]) -> Result<Params, OAuthError> {
    let refuse = |text| OAuthError::new(ErrorCode::InvalidRequest, text);
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(refuse("the body must be application/x-www-form-urlencoded"));
    }
    let text = "the body is larger than 64 KiB, or gives a parameter more than once";
    Params::parse(body).map_err(|_error| refuse(text))
}

/// The token that a form is about.
///
/// # Errors
/// `invalid_request`, when there is none.
pub(super) fn token_in(form: &Params) -> Result<Secret, OAuthError> {
    let missing = OAuthError::new(ErrorCode::InvalidRequest, "the token is missing");
    form.get("token").ok_or(missing).map(Secret::new)
}

impl Credentials {
    /// Reads the client and its proof from the header `Authorization` and the form. The id may be
    /// in either place, or the same in both. In the header, id and secret are taken with and
    /// without the encoding that RFC 6749, 2.3.1, demands, since clients of both kinds exist.
    ///
    /// # Errors
    /// `invalid_client`, when there is no client id, or two different ones; `invalid_request`, when
    /// there are two secrets.
    pub(super) fn read(authorization: Option<&str>, form: &Params) -> Result<Self, OAuthError> {
        let basic = authorization.map(Basic::read).transpose()?.flatten();
        let assertion = read_assertion(form)?;
        let in_header = basic.as_ref().map(|basic| &*basic.id);
        let in_assertion = assertion.as_ref().and_then(Jwt::claimed_issuer);
        let client_id = one_client([in_header, form.get("client_id"), in_assertion])?;
        let mut secrets = basic.map(|basic| basic.secrets).unwrap_or_default();
        if let Some(secret) = form.get("client_secret") {
            if !secrets.is_empty() && !secrets.iter().any(|other| other.expose() == secret) {
                return Err(TWO_PROOFS);
            }
            secrets = vec![Secret::new(secret)];
        }
        if assertion.is_some() && !secrets.is_empty() {
            return Err(TWO_PROOFS);
        }
        Ok(Self { client_id, secrets, assertion })
    }

    /// The client, which the caller looks up.
    #[must_use]
    pub fn client_id(&self) -> &ClientId {
        &self.client_id
    }

    /// The assertion by which the client proves itself, if it sent one.
    #[must_use]
    pub fn assertion(&self) -> Option<&Jwt> {
        self.assertion.as_ref()
    }

    /// Checks the proof of the client that the caller found. A secret or an assertion of a public
    /// client proves nothing, and is ignored. A client with [`ClientProof::Keys`] is proved by
    /// [`check_assertion`](Self::check_assertion) instead.
    ///
    /// # Errors
    /// `invalid_client`, when the client is unknown, or the secret is missing or wrong. Clients
    /// then register again.
    pub fn prove<'c>(&self, client: Option<&'c Client>) -> Result<&'c Client, OAuthError> {
        let client = client.filter(|client| client.id == self.client_id);
        let client = client.ok_or(invalid("the client is unknown; register it again"))?;
        match &client.proof {
            ClientProof::Public => Ok(client),
            ClientProof::Secret(hash) => {
                let is_proved = self.secrets.iter().any(|secret| hash.opens_for(secret.expose()));
                let error = invalid("the client secret is missing or wrong");
                if is_proved { Ok(client) } else { Err(error) }
            }
            ClientProof::Keys(_) => Err(invalid("the client has to send a client_assertion")),
        }
    }
}

/// The error for a client that proves itself twice (RFC 6749, 2.3).
const TWO_PROOFS: OAuthError =
    OAuthError::new(ErrorCode::InvalidRequest, "the client proves itself in two ways");

/// The client of a request, which may name it in several places.
fn one_client(named: [Option<&str>; 3]) -> Result<ClientId, OAuthError> {
    let mut named = named.into_iter().flatten();
    let id = named.next().ok_or(invalid("the client_id is missing"))?;
    if named.any(|other| other != id) {
        return Err(invalid("the request names different clients"));
    }
    ClientId::parse(id).map_err(|_error| invalid("the client is unknown"))
}

/// Reads the assertion of a client with keys; `None` without one (RFC 7523, 2.2).
fn read_assertion(form: &Params) -> Result<Option<Jwt>, OAuthError> {
    let Some(text) = form.get("client_assertion") else { return Ok(None) };
    if form.get("client_assertion_type") != Some(JWT_BEARER_ASSERTION) {
        return Err(invalid("the client_assertion_type is not supported"));
    }
    let assertion = Jwt::parse(text);
    assertion.map(Some).map_err(|_error| invalid("the client_assertion is no signed JWT"))
}

impl Basic {
    /// Reads a header; `None` for another scheme.
    fn read(header: &str) -> Result<Option<Self>, OAuthError> {
        let (scheme, pair) = header.split_once(' ').unwrap_or((header, ""));
        if !scheme.eq_ignore_ascii_case("basic") {
            return Ok(None);
        }
        let pair = STANDARD.decode(pair.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
        let pair = pair.map(Secret::new).ok_or(invalid("the header Authorization is malformed"))?;
        // An id that is an address may come with its colons, and no secret of ours has one.
        let (id, secret) = pair.expose().rsplit_once(':').unwrap_or((pair.expose(), ""));
        let id = if id.starts_with("https://") { id.to_owned() } else { decoded(id) };
        let readings = [secret.to_owned(), decoded(secret)];
        let secrets = readings.into_iter().filter(|secret| !secret.is_empty());
        Ok(Some(Self { id, secrets: secrets.map(Secret::new).collect() }))
    }
}

/// A text as it is encoded in forms; the text itself if it is not.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().map(Into::into).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    use super::*;
    use crate::server::sample::{CLIENT, confidential_client, public_client};

    fn read(authorization: Option<&str>, form: &str) -> Result<Credentials, OAuthError> {
        Credentials::read(authorization, &Params::parse(form.as_bytes()).unwrap())
    }

    fn basic(id: &str, secret: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
    }

    fn encoded(text: &str) -> String {
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    }

    #[test]
    fn door_a8_the_client_id_is_taken_from_either_place() {
        let header = basic(CLIENT, "");
        for (authorization, form) in [
            (None, "client_id=dcr-app"),
            (Some(header.as_str()), ""),
            (Some(header.as_str()), "client_id=dcr-app"),
            (Some("Bearer x"), "client_id=dcr-app"),
        ] {
            let found = read(authorization, form).unwrap();
            assert_eq!(found.client_id().as_str(), CLIENT);
            let client = public_client();
            assert_eq!(found.prove(Some(&client)), Ok(&client));
        }
        let odd = basic("dcr-other", "");
        for (authorization, form) in [
            (None, ""),
            (Some(odd.as_str()), "client_id=dcr-app"),
            (Some("Basic ?"), "client_id=dcr-app"),
            (None, "client_id=a+b"),
            (None, "client_id=dcr-app&client_assertion=e30"),
        ] {
            let error = read(authorization, form).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidClient, "{authorization:?} {form}");
        }
    }

    #[test]
    fn door_a8_a_secret_is_taken_in_both_encodings_and_places() {
        let (client, secret) = confidential_client();
        let secret = secret.expose();
        let (plain, strict) = (basic(CLIENT, secret), basic(&encoded(CLIENT), &encoded(secret)));
        let in_form = format!("client_id={CLIENT}&client_secret={secret}");
        for (authorization, form) in [
            (Some(plain.as_str()), ""),
            (Some(strict.as_str()), ""),
            (None, in_form.as_str()),
            (Some(plain.as_str()), in_form.as_str()),
        ] {
            let found = read(authorization, form).unwrap();
            assert_eq!(found.prove(Some(&client)), Ok(&client));
            assert!(!format!("{found:?}").contains(secret));
        }
        let error = read(Some(&plain), "client_secret=other").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn door_a8_a_wrong_client_is_invalid_client() {
        let (client, secret) = confidential_client();
        let wrong = |form: &str, client: Option<&Client>| {
            let error = read(None, form).unwrap().prove(client).map(drop).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidClient, "{form}");
            assert_eq!(error.answer().status, 401);
        };
        let good = format!("client_id={CLIENT}&client_secret={}", secret.expose());
        wrong(&good, None);
        wrong("client_id=dcr-other", Some(&client));
        wrong("client_id=dcr-app", Some(&client));
        wrong("client_id=dcr-app&client_secret=", Some(&client));
        wrong("client_id=dcr-app&client_secret=nxp_wrong", Some(&client));
        let superfluous = read(None, &good).unwrap();
        assert!(superfluous.prove(Some(&public_client())).is_ok());
    }

    #[test]
    fn door_a8_an_address_is_an_id_in_the_header_too() {
        let id = "https://app.example:8443/client.json";
        for header in [basic(id, ""), basic(&encoded(id), ""), basic(&encoded(id), "x")] {
            assert_eq!(read(Some(&header), "").unwrap().client_id().as_str(), id);
        }
    }

    #[test]
    fn door_a8_bodies_are_forms() {
        let form = Some("application/x-www-form-urlencoded; charset=utf-8");
        assert!(read_form(form, b"a=1").is_ok());
        for (content_type, body) in
            [(None, "a=1"), (Some("application/json"), "{}"), (form, "a=1&a=1")]
        {
            let error = read_form(content_type, body.as_bytes()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidRequest, "{content_type:?}");
        }
    }
}
