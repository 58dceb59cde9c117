//! Requests that reach a human, and refusals: on a page, or by a redirect.

use std::collections::BTreeMap;

use proptest::prelude::*;
use url::Url;

use super::*;
use crate::server::sample::{CHALLENGE, CLIENT, REDIRECT, door, now, public_client};

/// A good request, with parameters replaced, or removed by an empty value.
fn query(changes: &[(&str, &str)]) -> String {
    let mut params = BTreeMap::from([
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", REDIRECT),
        ("scope", "mcp"),
        ("state", "s t&te"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("resource", "https://narthex.example/mcp/git"),
    ]);
    params.extend(changes.iter().copied());
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(params.iter().filter(|(_, value)| !value.is_empty())).finish()
}

fn check_of(
    client: &Client,
    query: &str,
    resource: ResourceRule,
) -> Result<Checked, AuthorizeRefusal> {
    let scopes = &Scopes::read("mcp mcp.write").unwrap();
    let (door, redirects) = (&door(), &RedirectRules::default());
    let rules = AuthorizeRules { door, redirects, scopes, resource };
    let request = AuthorizeRequest::read(query).map_err(AuthorizeRefusal::Page)?;
    request.check(client, &rules, now())
}

fn check_as(query: &str, rule: ResourceRule) -> Result<Checked, AuthorizeRefusal> {
    check_of(&public_client(), query, rule)
}

fn check(changes: &[(&str, &str)]) -> Result<Checked, AuthorizeRefusal> {
    check_as(&query(changes), ResourceRule::Defaulted)
}

fn page(changes: &[(&str, &str)]) -> PageError {
    match check(changes).unwrap_err() {
        AuthorizeRefusal::Page(error) => error,
        AuthorizeRefusal::Redirect(to) => panic!("it redirects to {}", to.expose()),
    }
}

/// The parameters of the redirect of a refusal.
fn redirected(refusal: AuthorizeRefusal) -> BTreeMap<String, String> {
    match refusal {
        AuthorizeRefusal::Redirect(to) => {
            assert!(to.expose().starts_with(REDIRECT), "{}", to.expose());
            Url::parse(to.expose()).unwrap().query_pairs().into_owned().collect()
        }
        AuthorizeRefusal::Page(error) => panic!("a page: {error}"),
    }
}

#[test]
fn door_a6_a_good_request_waits_for_its_human() {
    let Checked { pending, prompt } = check(&[]).unwrap();
    assert_eq!(prompt, Prompt::IfNeeded);
    assert_eq!(pending.client_id.as_str(), CLIENT);
    assert_eq!(pending.redirect_uri.as_str(), REDIRECT);
    assert_eq!(pending.scopes.to_string(), "mcp");
    assert_eq!(pending.resource.as_str(), "https://narthex.example/mcp/git");
    assert_eq!(pending.state.as_deref(), Some("s t&te"));
    let stored = serde_json::to_string(&pending).unwrap();
    assert_eq!(serde_json::from_str::<PendingConsent>(&stored).unwrap(), pending);
    assert!(!format!("{pending:?}").contains("s t&te"));
}

#[test]
fn door_a5_a_free_port_stays_in_the_redirect() {
    let uri = "http://localhost:51234/callback";
    let pending = check(&[("redirect_uri", uri)]).unwrap().pending;
    assert_eq!(pending.redirect_uri.as_str(), uri);
}

#[test]
fn door_a5_rules_count_for_clients_that_registered_before_them() {
    let older = RedirectRules::new(["zed:"]).unwrap();
    let redirect_uris = vec![older.admit("zed://cb").unwrap(), older.admit(REDIRECT).unwrap()];
    let client = Client { redirect_uris, ..public_client() };
    let check = |uri| {
        check_of(&client, &query(&[("redirect_uri", uri)]), ResourceRule::Defaulted).map(drop)
    };
    assert!(check(REDIRECT).is_ok());
    let refused = check("zed://cb").unwrap_err();
    assert!(matches!(refused, AuthorizeRefusal::Page(PageError::BadRedirectUri)));
}

#[test]
fn door_a6_q23_errors_before_the_redirect_is_verified_are_pages() {
    assert_eq!(page(&[("client_id", "")]), PageError::BadClientId);
    assert_eq!(page(&[("client_id", "a b")]), PageError::BadClientId);
    assert_eq!(page(&[("client_id", "dcr-app,dcr-other")]), PageError::BadClientId);
    assert_eq!(page(&[("client_id", "other")]), PageError::UnknownClient);
    assert_eq!(page(&[("redirect_uri", "")]), PageError::BadRedirectUri);
    for uri in ["https://evil.example/cb", "javascript:alert(1)", "https://app.example/cb/../x"] {
        assert_eq!(page(&[("redirect_uri", uri)]), PageError::BadRedirectUri, "{uri}");
    }
    // Also if there are other faults.
    let both = [("redirect_uri", "https://evil.example/cb"), ("response_type", "token")];
    assert_eq!(page(&both), PageError::BadRedirectUri);
    let twice = format!("{}&state=other", query(&[]));
    let found = check_as(&twice, ResourceRule::Defaulted);
    assert!(matches!(found, Err(AuthorizeRefusal::Page(PageError::Unreadable))));
    let twice = format!("{}&client_id={CLIENT}", query(&[]));
    assert_eq!(AuthorizeRequest::read(&twice).unwrap_err(), PageError::Unreadable);
}

#[test]
fn door_a6_errors_after_that_are_redirects() {
    let long = "s".repeat(STATE_MAX + 1);
    let table = [
        ("response_type", "", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "code token", "unsupported_response_type"),
        ("response_mode", "fragment", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("scope", "a\"b", "invalid_scope"),
        ("scope", "unknown", "invalid_scope"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("request", "e30.", "request_not_supported"),
        ("request_uri", "https://evil.example/", "request_uri_not_supported"),
        ("state", &long, "invalid_request"),
    ];
    for (name, value, error) in table {
        let found = redirected(check(&[(name, value)]).unwrap_err());
        assert_eq!(found["error"], error, "{name}={value}");
        assert_eq!(found["iss"], "https://narthex.example");
        let state = found.get("state").map(String::as_str);
        assert_eq!(state, (name != "state").then_some("s t&te"));
        assert!(!found["error_description"].is_empty());
    }
}

#[test]
fn door_a10_a_resource_is_demanded_or_defaulted() {
    let none = query(&[("resource", "")]);
    let pending = check_as(&none, ResourceRule::Defaulted).unwrap().pending;
    assert_eq!(pending.resource, door().aggregated());
    let refusal = check_as(&none, ResourceRule::Demanded).unwrap_err();
    assert_eq!(redirected(refusal)["error"], "invalid_target");
    let two = format!("{}&resource=https://narthex.example/mcp", query(&[]));
    let refusal = check_as(&two, ResourceRule::Defaulted).unwrap_err();
    assert_eq!(redirected(refusal)["error"], "invalid_target");
    let same = format!("{}&resource=https://narthex.example/mcp/git/", query(&[]));
    assert!(check_as(&same, ResourceRule::Defaulted).is_ok());
}

#[test]
fn door_q20_scopes_are_reduced_and_offline_access_stays() {
    let scopes = |scope| check(&[("scope", scope)]).unwrap().pending.scopes.to_string();
    assert_eq!(scopes("offline_access mcp unknown"), "mcp offline_access");
    assert_eq!(scopes("offline_access"), "offline_access");
    assert_eq!(scopes(""), "mcp mcp.write offline_access");
    assert_eq!(scopes("  "), "mcp mcp.write offline_access");
}

#[test]
fn door_a6_a_client_without_a_page_gets_an_error() {
    let Checked { pending, prompt } = check(&[("prompt", "none")]).unwrap();
    assert_eq!(prompt, Prompt::Never);
    let error = |is_signed_in| {
        let refusal = AuthorizeRefusal::needs_page(&pending, is_signed_in, &door());
        redirected(refusal)["error"].clone()
    };
    assert_eq!(error(false), "login_required");
    assert_eq!(error(true), "consent_required");
    assert_eq!(check(&[("prompt", "login consent")]).unwrap().prompt, Prompt::Consent);
    assert_eq!(check(&[("prompt", "select_account")]).unwrap().prompt, Prompt::IfNeeded);
}

proptest! {
    #[test]
    fn door_a6_a_redirect_leads_to_a_registered_address(
        name in prop::sample::select(vec![
            "client_id", "redirect_uri", "response_type", "scope", "state", "resource", "request",
        ]),
        value in "(?s).{0,40}|https?://[a-z.@:/]{1,30}",
    ) {
        let found = check(&[(name, value.as_str())]);
        if let Err(AuthorizeRefusal::Redirect(to)) = found {
            let client = public_client();
            let to = Url::parse(to.expose()).unwrap();
            let mut bare = to.clone();
            bare.set_query(None);
            prop_assert!(client.redirect_uri(bare.as_str()).is_some(), "{}", to);
        }
    }
}
