//! Client authentication at endpoints of an authorization server (RFC 6749, 2.3; RFC 7523).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use narthex_model::Secret;
use serde_json::json;
use url::form_urlencoded;

use super::Form;
use crate::{
    jwt::{SigningFault, SigningKey},
    random::random_text,
    urns::JWT_BEARER_ASSERTION,
};

/// Lifetime of a signed assertion, in seconds.
const ASSERTION_LIFE: u64 = 60;
/// Number of random bytes of an assertion's id.
const ID_BYTES: usize = 32;

/// A method of client authentication.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthMethod {
    /// Id and secret in the header `Authorization`.
    #[default]
    Basic,
    /// Id and secret in the form.
    Post,
    /// An assertion that is signed with a private key.
    PrivateKeyJwt,
    /// The id in the form, and no proof.
    None,
}

impl AuthMethod {
    const ALL: [Self; 4] = [Self::Basic, Self::Post, Self::PrivateKeyJwt, Self::None];

    /// The registered name of the method.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
            Self::None => "none",
        }
    }

    /// The method of a registered name; `None` for unsupported ones.
    #[must_use]
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The first supported method that the server lists, for a client that is to be registered. No
    /// list, or an empty one, means [`AuthMethod::Basic`] (RFC 8414, 2).
    #[must_use]
    pub fn to_register(listed: Option<&[String]>, has_key: bool) -> Self {
        let usable = |method: &Self| *method != Self::PrivateKeyJwt || has_key;
        Self::ALL.into_iter().filter(usable).find(|method| method.is_in(listed)).unwrap_or_default()
    }

    fn is_in(self, listed: Option<&[String]>) -> bool {
        match listed {
            None | Some([]) => self == Self::Basic,
            Some(names) => names.iter().any(|name| name == self.name()),
        }
    }
}

/// A client at one authorization server, with its proof.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// The client's id.
    pub id: String,
    /// The client's secret, if it has one.
    pub secret: Option<Secret>,
    /// The key of its assertions, if it has one.
    pub key: Option<Arc<SigningKey>>,
    /// The method by which it authenticates.
    pub method: AuthMethod,
}

impl ClientIdentity {
    /// A client with a secret, or a public one. The method is the first that the server lists and
    /// the client can use. A secret is used even if no method for it is listed: in the form then,
    /// as a server that lists others reads the client's id there.
    #[must_use]
    pub fn new(id: impl Into<String>, secret: Option<Secret>, listed: Option<&[String]>) -> Self {
        let method = match &secret {
            Some(_) if AuthMethod::Basic.is_in(listed) => AuthMethod::Basic,
            Some(_) => AuthMethod::Post,
            None => AuthMethod::None,
        };
        Self { id: id.into(), secret, key: None, method }
    }

    /// A client that proves itself with a private key.
    #[must_use]
    pub fn with_key(id: impl Into<String>, key: Arc<SigningKey>) -> Self {
        let method = AuthMethod::PrivateKeyJwt;
        Self { id: id.into(), secret: None, key: Some(key), method }
    }

    /// The client with the first method that a server lists and the client can use. A key is used
    /// whatever the list is.
    #[must_use]
    pub fn listed(self, listed: Option<&[String]>) -> Self {
        match self.key {
            Some(_) => self,
            None => Self::new(self.id, self.secret, listed),
        }
    }

    /// The client with the method that its registration names, if the client can use the method.
    #[must_use]
    pub fn registered_as(mut self, method: AuthMethod) -> Self {
        let is_usable = match method {
            AuthMethod::Basic | AuthMethod::Post => self.secret.is_some(),
            AuthMethod::PrivateKeyJwt => self.key.is_some(),
            AuthMethod::None => self.secret.is_none() && self.key.is_none(),
        };
        if is_usable {
            self.method = method;
        }
        self
    }

    /// Adds the client's id and proof to a form; returns the value of the header `Authorization`,
    /// if the proof goes there. `audience` is the server's issuer, `now` in seconds since 1970.
    ///
    /// # Errors
    /// When an assertion cannot be signed.
    pub fn prove(
        &self,
        form: &mut Form,
        audience: &str,
        now: u64,
    ) -> Result<Option<Secret>, SigningFault> {
        let secret = self.secret.as_ref().map_or("", Secret::expose);
        match (self.method, &self.key) {
            (AuthMethod::Basic, _) => return Ok(Some(basic(&self.id, secret))),
            (AuthMethod::Post, _) => {
                form.add("client_id", &self.id).add("client_secret", secret);
            }
            (AuthMethod::PrivateKeyJwt, Some(key)) => {
                let assertion = self.assertion(key, audience, now)?;
                form.add("client_id", &self.id)
                    .add("client_assertion_type", JWT_BEARER_ASSERTION)
                    .add("client_assertion", assertion.expose());
            }
            (AuthMethod::PrivateKeyJwt, None) => return Err(SigningFault::NoKey),
            (AuthMethod::None, _) => {
                form.add("client_id", &self.id);
            }
        }
        Ok(None)
    }

    /// An assertion about the client (RFC 7523, 3), used once. Its audience is the issuer alone, so
    /// that no other server can use the assertion.
    fn assertion(
        &self,
        key: &SigningKey,
        audience: &str,
        now: u64,
    ) -> Result<Secret, SigningFault> {
        let id = random_text::<ID_BYTES>().map_err(|_error| SigningFault::NoRandomness)?;
        let claims = json!({
            "iss": self.id,
            "sub": self.id,
            "aud": audience,
            "jti": id,
            "iat": now,
            "exp": now.saturating_add(ASSERTION_LIFE),
        });
        key.sign("JWT", &claims)
    }
}

/// The header's value. Both halves are encoded as in a form first (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> Secret {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{Expected, Keys};

    const NOW: u64 = 2_000_000_000;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn form_of(client: &ClientIdentity) -> (String, Option<String>) {
        let mut form = Form::default();
        let header = client.prove(&mut form, "https://as.example", NOW).unwrap();
        (form.finish().expose().to_owned(), header.map(|header| header.expose().to_owned()))
    }

    #[test]
    fn oauth_c20_the_first_usable_method_is_taken() {
        let all = names(&["none", "private_key_jwt", "client_secret_post", "client_secret_basic"]);
        let register = |listed: Option<&[String]>, key| AuthMethod::to_register(listed, key);
        assert_eq!(register(Some(&all), false), AuthMethod::Basic);
        assert_eq!(register(Some(&all[..3]), false), AuthMethod::Post);
        assert_eq!(register(Some(&all[..2]), true), AuthMethod::PrivateKeyJwt);
        assert_eq!(register(Some(&all[..2]), false), AuthMethod::None);
        assert_eq!(register(None, true), AuthMethod::Basic);
        assert_eq!(register(Some(&[]), false), AuthMethod::Basic);
        assert_eq!(register(Some(&names(&["tls_client_auth"])), false), AuthMethod::Basic);
    }

    #[test]
    fn oauth_c20_a_client_uses_what_the_server_lists_and_it_has() {
        let secret = || Some(Secret::new("s&c ret"));
        let method =
            |listed: &[&str]| ClientIdentity::new("c", secret(), Some(&names(listed))).method;
        assert_eq!(method(&["client_secret_post", "client_secret_basic"]), AuthMethod::Basic);
        assert_eq!(method(&["none", "client_secret_post"]), AuthMethod::Post);
        assert_eq!(method(&[]), AuthMethod::Basic);
        assert_eq!(ClientIdentity::new("c", None, None).method, AuthMethod::None);
    }

    #[test]
    fn oauth_q8_a_secret_is_used_though_none_was_asked_for() {
        let client = ClientIdentity::new("c", Some(Secret::new("s")), Some(&names(&["none"])));
        let client = client.registered_as(AuthMethod::None);
        assert_eq!(client.method, AuthMethod::Post);
        assert_eq!(client.registered_as(AuthMethod::Basic).method, AuthMethod::Basic);
        let public = ClientIdentity::new("c", None, None).registered_as(AuthMethod::Basic);
        assert_eq!(public.method, AuthMethod::None);
    }

    #[test]
    fn oauth_c20_each_method_proves_the_client_in_its_place() {
        let client = ClientIdentity::new("nar thex", Some(Secret::new("s&c:ret")), None);
        let (form, header) = form_of(&client);
        // `nar+thex:s%26c%3Aret`
        assert_eq!(
            (form.as_str(), header.as_deref()),
            ("", Some("Basic bmFyK3RoZXg6cyUyNmMlM0FyZXQ="))
        );
        let (form, header) = form_of(&client.registered_as(AuthMethod::Post));
        assert_eq!((form.as_str(), header), ("client_id=nar+thex&client_secret=s%26c%3Aret", None));
        let (form, header) = form_of(&ClientIdentity::new("c", None, None));
        assert_eq!((form.as_str(), header), ("client_id=c", None));
    }

    #[test]
    fn oauth_c30_an_assertion_names_the_client_and_the_issuer() {
        let pem = Secret::new(include_str!("../jwt/test-key.pem"));
        let key = Arc::new(SigningKey::from_pem(&pem, None).unwrap());
        let client = ClientIdentity::with_key("c", key.clone());
        let (form, header) = form_of(&client);
        assert_eq!(header, None);
        let field = |name: &str| {
            let mut all = form_urlencoded::parse(form.as_bytes());
            all.find(|(key, _)| key == name).unwrap().1.into_owned()
        };
        assert_eq!(field("client_assertion_type"), JWT_BEARER_ASSERTION);
        assert_eq!(field("client_id"), "c");
        let keys = json!({"keys": [key.public_jwk()]}).to_string();
        let keys = Keys::read(keys.as_bytes()).unwrap();
        let expected = Expected { issuer: "c", audience: "https://as.example" };
        let claims = keys.verify(&Secret::new(field("client_assertion")), expected).unwrap();
        assert_eq!((&claims["sub"], &claims["exp"]), (&json!("c"), &json!(NOW + 60)));
        assert!(claims["jti"].as_str().unwrap().len() >= 22);
        assert_ne!(form_of(&client).0, form, "each assertion has an id of its own");
    }

    #[test]
    fn a_client_prints_no_secret() {
        let client = ClientIdentity::new("c", Some(Secret::new("s3cret")), None);
        assert!(!format!("{client:?}").contains("s3cret"));
    }
}
