//! The answer to an authorization request, as the browser delivers it (RFC 6749, 4.1.2; RFC 9207).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::Secret;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::shown_code;

/// The authorization server's answer.
#[derive(Debug, Default)]
pub struct Callback {
    state: Option<Secret>,
    code: Option<Secret>,
    issuer: Option<String>,
    error: Option<String>,
}

/// The reason why an answer gives no code. None of these shows a text of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// The answer belongs to another request or another server.
    #[error("this answer does not belong to the sign-in that was started: {0}")]
    Wrong(&'static str),
    /// The server or the person refused.
    #[error("the authorization server did not agree ({0})")]
    Declined(String),
}

/// The request that an answer must belong to.
#[derive(Debug, Clone, Copy)]
pub struct Awaited<'a> {
    /// [`state_hash`] of the request's state.
    pub state_hash: &'a str,
    /// The issuer, letter by letter.
    pub issuer: &'a str,
    /// True if the server's answers name their issuer.
    pub sends_issuer: bool,
}

impl Callback {
    /// Reads the query of the redirect.
    ///
    /// # Errors
    /// When a parameter is given twice, so that its value is ambiguous.
    pub fn read(query: &str) -> Result<Self, CallbackFault> {
        let mut callback = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_second = match &*name {
                "state" => callback.state.replace(Secret::new(value)).is_some(),
                "code" => callback.code.replace(Secret::new(value)).is_some(),
                "iss" => callback.issuer.replace(value).is_some(),
                "error" => callback.error.replace(value).is_some(),
                _ => false,
            };
            if is_second {
                return Err(CallbackFault::Wrong("it has a parameter twice"));
            }
        }
        Ok(callback)
    }

    /// The hash of the answer's state, by which the stored request is found.
    #[must_use]
    pub fn state_hash(&self) -> Option<String> {
        self.state.as_ref().map(|state| state_hash(state.expose()))
    }

    /// The server that the state names, if all servers share one redirect URI. Nothing proves it
    /// before the state is checked.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let (_, place) = self.state.as_ref()?.expose().split_once('.')?;
        String::from_utf8(URL_SAFE_NO_PAD.decode(place).ok()?).ok()
    }

    /// Returns the code, if this is the answer to a request.
    ///
    /// # Errors
    /// When the answer belongs to another request or another server, or the server refused.
    pub fn code(&self, awaited: Awaited<'_>) -> Result<&Secret, CallbackFault> {
        let hash = self.state_hash().ok_or(CallbackFault::Wrong("it has no state"))?;
        // Compares hashes, so that the time it takes leaks nothing of the state itself.
        if hash != awaited.state_hash {
            return Err(CallbackFault::Wrong("its state belongs to another sign-in"));
        }
        match &self.issuer {
            Some(issuer) if issuer != awaited.issuer => {
                return Err(CallbackFault::Wrong("it comes from another provider"));
            }
            None if awaited.sends_issuer => {
                return Err(CallbackFault::Wrong("it does not name its provider"));
            }
            Some(_) | None => {}
        }
        if let Some(error) = &self.error {
            return Err(CallbackFault::Declined(shown_code(error)));
        }
        self.code.as_ref().ok_or(CallbackFault::Wrong("it has no code"))
    }
}

/// The redirect URI of a server below a base, such as `http.public_url`; or the common one of all
/// servers, whose answers name their server in `state` ([`Callback::place`]).
#[must_use]
pub fn redirect_uri(base: &Url, server: Option<&str>) -> Url {
    let mut uri = base.clone();
    uri.set_query(None);
    uri.set_fragment(None);
    if let Ok(mut path) = uri.path_segments_mut() {
        path.pop_if_empty().extend(["oauth", "callback"]).extend(server);
    }
    uri
}

/// The stored form of a state: SHA-256, as 43 characters of base64url.
#[must_use]
pub fn state_hash(state: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(state))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn oauth_c15_redirect_uris_lie_below_the_base() {
        let of = |base: &str, server| redirect_uri(&Url::parse(base).unwrap(), server).to_string();
        assert_eq!(
            of("https://n.example", Some("linear")),
            "https://n.example/oauth/callback/linear"
        );
        assert_eq!(of("https://n.example/base/", None), "https://n.example/base/oauth/callback");
        // A name cannot leave its place.
        assert_eq!(
            of("http://127.0.0.1:4711/?x#y", Some("a/b?c")),
            "http://127.0.0.1:4711/oauth/callback/a%2Fb%3Fc"
        );
    }

    #[test]
    fn an_ambiguous_answer_is_refused() {
        for twice in ["state=a&state=b", "code=a&code=a", "iss=a&iss=b", "error=a&error=b"] {
            assert!(matches!(Callback::read(twice), Err(CallbackFault::Wrong(_))), "{twice}");
        }
        let read = Callback::read("state=s3cret&code=c0de&scope=a&scope=b").unwrap();
        let shown = format!("{read:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("c0de"), "{shown}");
    }

    proptest! {
        #[test]
        fn only_the_state_of_the_request_gives_the_code(
            state in "\\PC{0,9}",
            other in "\\PC{0,9}",
        ) {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("state", &state)
                .append_pair("code", "c")
                .finish();
            let callback = Callback::read(&query).unwrap();
            let hash = state_hash(&other);
            let awaited = Awaited { state_hash: &hash, issuer: "i", sends_issuer: false };
            prop_assert_eq!(callback.code(awaited).is_ok(), state == other);
        }
    }
}
