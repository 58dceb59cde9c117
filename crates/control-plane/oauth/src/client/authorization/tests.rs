//! Authorizations: the address for the browser, and the answers to it.

use std::collections::BTreeSet;

use narthex_model::{ErrorKind, Secret};
use url::Url;

use super::{ATTEMPT_LIFE, Attempt, AuthorizationError, Binding, Plan};
use crate::{
    client::{Callback, ClientIdentity, TokenEndpoint},
    metadata::ServerMetadata,
    pkce::CodeChallenge,
    scopes::Scopes,
};

const NOW: u64 = 2_000_000_000;
const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "https://narthex.example/oauth/callback/x";

fn metadata() -> ServerMetadata {
    let url = |text: &str| Some(Url::parse(text).unwrap());
    ServerMetadata {
        issuer: ISSUER.to_owned(),
        authorization_endpoint: url("https://as.example/authorize?tenant=1"),
        token_endpoint: url("https://as.example/token"),
        sends_issuer: true,
        ..ServerMetadata::default()
    }
}

fn binding() -> Binding {
    Binding {
        workspace: "w".to_owned(),
        server: "x".to_owned(),
        user: Some("u".to_owned()),
        session: Some("hash".to_owned()),
    }
}

/// A started attempt, with the address that the browser is sent to.
struct Begun {
    url: Url,
    attempt: Attempt,
}

impl Begun {
    fn new() -> Self {
        Self::with(&metadata(), Some("https://mcp.example/mcp"), "b a")
    }

    fn with(metadata: &ServerMetadata, resource: Option<&str>, scopes: &str) -> Self {
        let client = ClientIdentity::new("narthex", Some(Secret::new("s3cret")), None);
        let plan = Plan {
            metadata,
            client: &client,
            redirect_uri: REDIRECT,
            resource,
            scopes: &Scopes::parse(scopes),
            place: Some("serv/er"),
            binding: binding(),
        };
        let (url, attempt) = Attempt::begin(plan, NOW).unwrap();
        Self { url, attempt }
    }

    fn sent(&self, name: &str) -> Option<String> {
        let mut found = self.url.query_pairs().filter(|(key, _)| key == name);
        let value = found.next().map(|(_, value)| value.into_owned());
        assert!(found.next().is_none(), "{name} comes twice");
        value
    }

    fn callback(&self, rest: &str) -> Callback {
        Callback::read(&format!("state={}{rest}", self.sent("state").unwrap())).unwrap()
    }

    fn redeem(&self, rest: &str) -> Result<String, AuthorizationError> {
        let callback = self.callback(rest);
        let code = self.attempt.redeem(&callback, &binding(), NOW + 1);
        code.map(|code| code.expose().to_owned())
    }

    fn refusal(&self, rest: &str) -> String {
        self.redeem(rest).unwrap_err().to_string()
    }
}

#[test]
fn oauth_c16_and_c18_the_address_has_all_parameters() {
    let begun = Begun::new();
    assert!(begun.url.as_str().starts_with("https://as.example/authorize?tenant=1&"));
    let sent = |name| begun.sent(name).unwrap();
    assert_eq!(sent("response_type"), "code");
    assert_eq!(sent("client_id"), "narthex");
    assert_eq!(sent("redirect_uri"), REDIRECT);
    assert_eq!(sent("scope"), "a b");
    assert_eq!(sent("resource"), "https://mcp.example/mcp");
    assert_eq!(sent("code_challenge_method"), "S256");
    assert_eq!(sent("code_challenge"), begun.attempt.verifier().challenge().as_str());
    assert!(sent("state").len() >= 43);
    assert!(!begun.url.as_str().contains("s3cret"));
    let bare = Begun::with(&metadata(), None, "");
    assert_eq!((bare.sent("scope"), bare.sent("resource")), (None, None));
}

#[test]
fn oauth_c16_states_and_challenges_differ_and_are_not_printed() {
    let all: Vec<_> = (0..20).map(|_| Begun::new()).collect();
    for name in ["state", "code_challenge"] {
        let values: BTreeSet<_> = all.iter().map(|one| one.sent(name).unwrap()).collect();
        assert_eq!(values.len(), 20, "{name}");
    }
    let Begun { attempt, .. } = &all[0];
    let shown = format!("{attempt:?}");
    assert!(!shown.contains(attempt.verifier().expose()), "{shown}");
    assert!(!shown.contains(&all[0].sent("state").unwrap()), "{shown}");
}

#[test]
fn google_gets_its_parameters() {
    let google = ServerMetadata { issuer: "https://accounts.google.com".to_owned(), ..metadata() };
    let begun = Begun::with(&google, None, "a");
    assert_eq!(begun.sent("access_type").as_deref(), Some("offline"));
    assert_eq!(Begun::new().sent("access_type"), None);
}

#[test]
fn oauth_c15_the_state_names_the_server_and_the_key() {
    let begun = Begun::new();
    let callback = begun.callback("&code=c");
    assert_eq!(callback.place().as_deref(), Some("serv/er"));
    assert_eq!(callback.state_hash().as_deref(), Some(begun.attempt.key()));
    let other = Callback::read("state=abc").unwrap();
    assert_eq!((other.place(), Callback::read("").unwrap().state_hash()), (None, None));
}

#[test]
fn oauth_c16_an_answer_counts_once_in_time_and_for_its_person_and_server() {
    let begun = Begun::new();
    let callback = begun.callback("&code=c&iss=https://as.example");
    let redeem = |binding: &Binding, now| begun.attempt.redeem(&callback, binding, now);
    assert!(redeem(&binding(), NOW + ATTEMPT_LIFE - 1).is_ok());
    let late = redeem(&binding(), NOW + ATTEMPT_LIFE).unwrap_err();
    assert!(matches!(late, AuthorizationError::Expired));
    for foreign in [
        Binding { workspace: "v".to_owned(), ..binding() },
        Binding { server: "y".to_owned(), ..binding() },
        Binding { user: Some("other".to_owned()), ..binding() },
        Binding { user: None, ..binding() },
        Binding { session: None, ..binding() },
    ] {
        let error = redeem(&foreign, NOW).unwrap_err();
        assert!(matches!(error, AuthorizationError::Foreign), "{foreign:?}");
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    }
}

#[test]
fn oauth_c17_the_issuer_of_an_answer_is_compared_letter_by_letter() {
    let begun = Begun::new();
    assert_eq!(begun.redeem("&code=c%2B1&iss=https://as.example").unwrap(), "c+1");
    let wrong = "this answer does not belong to the sign-in that was started: it comes from \
                 another provider";
    for iss in ["https://as.example/", "https://AS.example", "https://evil.example", ""] {
        assert_eq!(begun.refusal(&format!("&code=c&iss={iss}")), wrong, "{iss}");
        // Errors of another server are not shown either.
        assert_eq!(begun.refusal(&format!("&error=access_denied&iss={iss}")), wrong, "{iss}");
    }
    let unnamed = "this answer does not belong to the sign-in that was started: it does not name \
                   its provider";
    assert_eq!(begun.refusal("&code=c"), unnamed);
    assert_eq!(begun.refusal("&error=access_denied"), unnamed);
    // A server that does not announce the parameter may still send it.
    let silent = ServerMetadata { sends_issuer: false, ..metadata() };
    let begun = Begun::with(&silent, None, "");
    assert!(begun.redeem("&code=c").is_ok());
    assert!(begun.redeem("&code=c&iss=https://as.example").is_ok());
    assert_eq!(begun.refusal("&code=c&iss=https://as.example/"), wrong);
}

#[test]
fn answers_to_other_requests_are_refused() {
    let (begun, other) = (Begun::new(), Begun::new());
    let foreign = other.callback("&code=c&iss=https://as.example");
    let error = begun.attempt.redeem(&foreign, &binding(), NOW).unwrap_err().to_string();
    assert!(error.ends_with("its state belongs to another sign-in"), "{error}");
    assert!(begun.refusal("&iss=https://as.example").ends_with("it has no code"));
    let stateless = Callback::read("code=c&iss=https://as.example").unwrap();
    assert!(begun.attempt.redeem(&stateless, &binding(), NOW).is_err());
}

#[test]
fn refusals_show_error_codes_only() {
    let begun = Begun::new();
    let refusal = |rest: &str| begun.refusal(&format!("&iss=https://as.example&{rest}"));
    assert_eq!(
        refusal("error=access_denied&error_description=<script>"),
        "the authorization server did not agree (access_denied)"
    );
    assert_eq!(refusal("error=<b>x"), "the authorization server did not agree (unknown error)");
}

#[test]
fn oauth_q19_refused_scopes_are_listed_and_retried_without() {
    let known = ServerMetadata { scopes_supported: Some(Scopes::parse("x y")), ..metadata() };
    let rest = "&iss=https://as.example&error=invalid_scope";
    let error = Begun::with(&known, None, "b a").redeem(rest).unwrap_err();
    assert!(error.asks_for_other_scopes());
    assert_eq!(
        error.to_string(),
        "the authorization server refuses the requested scopes (a b); it lists x y; set \
         auth.scopes to those that the server's documentation names"
    );
    assert!(!Begun::with(&known, None, "").redeem(rest).unwrap_err().asks_for_other_scopes());
}

#[test]
fn oauth_c16_a_stored_attempt_is_read_back() {
    let begun = Begun::new();
    let stored = begun.attempt.to_stored();
    let read = Attempt::from_stored(&stored).unwrap();
    assert_eq!(read.to_stored().expose(), stored.expose());
    let callback = begun.callback("&code=c&iss=https://as.example");
    let code = read.redeem(&callback, &binding(), NOW).unwrap();
    let client = ClientIdentity::new("narthex", None, None);
    let endpoint = TokenEndpoint {
        metadata: read.metadata(),
        client: &client,
        resource: read.resource(),
        now: NOW,
    };
    let form = endpoint.code(&read, code).unwrap().form;
    let verifier = form.expose().split("code_verifier=").nth(1).unwrap();
    let verifier = verifier.split('&').next().unwrap();
    let challenge = begun.sent("code_challenge").unwrap();
    assert!(CodeChallenge::parse(&challenge).unwrap().opens_for(verifier));
    for other in ["", "{}", "[]"] {
        assert!(Attempt::from_stored(&Secret::new(other)).is_err());
    }
}
